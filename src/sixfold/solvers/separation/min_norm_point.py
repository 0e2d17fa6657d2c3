"""The shortest point of a hull: the convex combination of points that lies nearest to 0.

    minimise |sum_i u_i (p_i, 1) - (0, 1)|    over u >= 0

is a least-squares problem with signs, which Lawson and Hanson's active-set method ends in finitely many
steps. Where its residual r = (-g, t) is zero, u is a convex combination of the points that is 0. Where it is
not, u divided by its sum is the combination nearest to 0, and p_i.g / t >= 1 for every point, with g the
shortest such vector: a plane through 0 with all points on one side, as far from the nearest as can be.

The few points that carry weight, the *corral* (Wolfe 1976), are kept as a QR factorisation, from which points
come and go at the cost of one column. The residual is projected twice, so it is orthogonal to the corral
relative to its own length, however short it is (Giraud, Langou and Rozloznik, 2005): hulls that pass 0 at a
distance of 1e-12 of their size are told from hulls that contain it.

Sources: Lawson and Hanson (1974), Solving least squares problems, chapter 23; Wolfe (1976), Finding the
nearest point in a polytope.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr_delete, solve_triangular

from sixfold.solvers.linalg import EPS
from sixfold.solvers.threads import single_threaded_blas

Array = NDArray[Any]
Label = Hashable


class Corral:
    """The points that carry weight.

    Attributes
    ----------
    labels : list
        A name a point.
    points : ndarray of shape (points, dimensions)
        Of length about 1 or less.
    weights : ndarray of shape (points,)
        u above.
    """

    def __init__(self, dimensions: int) -> None:
        self.labels: list[Any] = []
        self.points = np.zeros((0, dimensions))
        self.weights = np.zeros(0)
        self._q = np.zeros((dimensions + 1, 0))
        self._r = np.zeros((0, 0))
        # k insertions leave the factors wrong by about k eps, and k is at most a little above the dimensions.
        self.zero = 4.0 * EPS * (dimensions + 20)

    def residual(self) -> Array:
        """Return r, orthogonal to every (p_i, 1) of the corral."""
        r = -(self._q @ self._q[-1])
        r[-1] += 1.0
        return r - self._q @ (self._q.T @ r)

    def combination(self) -> Array:
        """Return the weights of the shortest point, which sum to 1."""
        return self.weights / self.weights.sum()

    def insert(self, label: Label, point: Array) -> bool:
        """Give weight to one more point, and drop those that lose theirs; false if it takes no weight."""
        column = np.append(point, 1.0)
        products = self._q.T @ column
        rest = column - self._q @ products
        again = self._q.T @ rest
        rest -= self._q @ again
        length = float(np.linalg.norm(rest))
        if length <= 4.0 * EPS * float(np.linalg.norm(column)):
            return False
        size = len(self.labels)
        r = np.zeros((size + 1, size + 1))
        r[:size, :size], r[:size, size], r[size, size] = self._r, products + again, length
        before = self._q, self._r
        self._q, self._r = np.column_stack([self._q, rest / length]), r
        target = self._solve()
        if target[-1] <= 0.0:
            self._q, self._r = before
            return False
        self.labels.append(label)
        self.points = np.vstack([self.points, point])
        self.weights = np.append(self.weights, 0.0)
        self._walk(target)
        return True

    def _solve(self) -> Array:
        return np.asarray(solve_triangular(self._r, self._q[-1], check_finite=False))

    def _walk(self, target: Array) -> None:
        """Walk to the least-squares weights, dropping each point whose weight falls to zero on the way."""
        while target.size and target.min() <= 0.0:
            falling = np.flatnonzero(target <= 0.0)
            parts = self.weights[falling] / (self.weights[falling] - target[falling])
            part = float(parts.min())
            self.weights += part * (target - self.weights)
            self.weights[falling[np.argmin(parts)]] = 0.0
            for place in np.flatnonzero(self.weights <= 0.0)[::-1]:
                self._drop(int(place))
            target = self._solve()
        self.weights = target

    def _drop(self, place: int) -> None:
        del self.labels[place]
        self.points = np.delete(self.points, place, axis=0)
        self.weights = np.delete(self.weights, place)
        if self._q.shape[1] == 1:
            self._q, self._r = self._q[:, :0], self._r[:0, :0]
        else:
            q, r = qr_delete(self._q, self._r, place, which="col", check_finite=False)
            self._q, self._r = q[:, : r.shape[1]], r[: r.shape[1]]


def shorten(
    corral: Corral,
    price: Callable[[Array], tuple[Label, Array, float]],
    tol: float,
    stopped: Callable[[], bool],
) -> bool:
    """Insert points until none brings the shortest point nearer to 0; true if it is 0.

    Parameters
    ----------
    price : callable
        From r to the label and coordinates of the point with the largest (p, 1).r, and that number.
    tol : float
        How far p.g / t may stay below 1.
    stopped : callable
        Whether to end here, which leaves a valid corral.
    """
    shortest = np.inf
    with single_threaded_blas(corral.points.shape[1]):
        while not stopped():
            r = corral.residual()
            length = float(np.linalg.norm(r))
            if length <= corral.zero:
                return True
            label, point, gain = price(r)
            # At the optimum t = |r|^2. Where rounding has its way the length no longer falls.
            enough = gain <= tol * length**2 + 8.0 * EPS * length
            if enough or length >= shortest or not corral.insert(label, point):
                return False
            shortest = length
    return False
