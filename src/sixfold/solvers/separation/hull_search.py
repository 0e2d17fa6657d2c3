"""Whether points have a plane through 0 all on one side, in all dimensions or in those that are left.

    is there a direction v with p.v > 0 for every point, or a convex combination of the points that is 0?

The shortest point of the hull is the answer (:mod:`sixfold.solvers.separation.min_norm_point`). It rests on
few points, and a pass over the data finds those that the direction so far has furthest on the wrong side,
until there are none.

Points may be scaled, since that changes the sign of no p.v: here all of them have length 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from sixfold.budget import BudgetExhausted
from sixfold.solvers.separation.min_norm_point import Corral, shorten
from sixfold.solvers.separation.signed_points import SignedPoints
from sixfold.solvers.threads import single_threaded_blas

Array = NDArray[Any]
Combination = tuple[Array, Array]  # numbers of points, and their weights

BOUNDARY = 1e-10  # of a point's length: nothing is left of it, or it is on the boundary
SPAN = 1e-11  # of the longest: what a pivot of a factorisation must exceed to add a dimension
NEAR_ENOUGH = 0.9  # any direction will do, not the one with the widest margin
MOST_NUMBERS = 1 << 25  # in the points at hand (256 MB); more dimensions than that are not decided


@dataclass
class ProjectedPoints:
    """What is left of the points after a span was projected out: a face, in the words of facial reduction.

    Attributes
    ----------
    basis : ndarray of shape (dimensions, left), or None
        None where nothing was projected out.
    lengths : ndarray of shape (rows, 1 or classes)
        Of what is left; 0 where nothing is.
    """

    points: SignedPoints
    basis: Array | None
    lengths: Array

    @classmethod
    def of(cls, points: SignedPoints, whole: Array) -> ProjectedPoints:
        """Return all points; those of classes are orthogonal to a model that is alike for all."""
        if points.classes == 1:
            return cls(points, None, whole)
        apart = np.linalg.qr(np.eye(points.classes)[:, 1:] - 1.0 / points.classes)[0]
        return cls(points, np.kron(np.eye(points.width), apart), whole)

    @property
    def dimensions(self) -> int:
        """How many coordinates are left."""
        return self.points.dimensions if self.basis is None else self.basis.shape[1]

    def take(self, numbers: Array) -> Array:
        """Return what is left of some points, each scaled to length 1, which changes no sign."""
        coordinates = self.points.take(numbers)
        if self.basis is not None:
            coordinates = coordinates @ self.basis
        length = np.linalg.norm(coordinates, axis=1, keepdims=True)
        return coordinates / np.where(length > 0, length, 1.0)

    def present(self) -> Array:
        """Return of which points something is left."""
        return self.points.present() & (self.lengths > 0)

    def whole(self, v: Array) -> Array:
        """Return a direction of what is left, or several, in the coordinates of the points."""
        return v if self.basis is None else self.basis @ v

    def margins(self, v: Array) -> Array:
        """Return the margin of every point relative to its length; infinite where nothing is left."""
        margin = self.points.margins(self.whole(v))
        return np.divide(margin, self.lengths, out=np.full_like(margin, np.inf), where=self.present())


def find_direction(projected: ProjectedPoints) -> tuple[Array | None, Combination | None]:
    """Search for a direction with every point on its right side.

    Returns
    -------
    direction : ndarray or None
    support : tuple of ndarray, or None
        Where there is no direction: points, and the weights with which what is left of them adds up to 0.
        None as well where rounding or sheer size hides the answer.
    """
    there = np.flatnonzero(projected.present())
    batch = min(3 * projected.dimensions + 20, there.size)
    if batch * projected.dimensions > MOST_NUMBERS:
        return None, None
    corral = Corral(projected.dimensions)
    candidates = _CandidatePoints(projected)
    v = _least_squares(projected, there)
    while True:
        margins = projected.margins(v).ravel()
        worst = np.argpartition(margins, min(batch, margins.size - 1))[:batch]
        if margins[worst].min() > projected.points.rounding:
            return v, None
        if not candidates.add(worst[np.isfinite(margins[worst])]):
            return None, None
        zero = shorten(corral, candidates.price, NEAR_ENOUGH, projected.points.out_of_time)
        if projected.points.out_of_time():
            raise BudgetExhausted
        if zero:
            return None, _support(projected, corral)
        v = -corral.residual()[:-1]
        v /= np.linalg.norm(v)


def _least_squares(projected: ProjectedPoints, there: Array) -> Array:
    """Return the direction whose margins are nearest to 1, over some of the points.

    It separates what is wide apart, and the points it has on the wrong side are the first to look at.
    """
    some = projected.take(there[:: max(there.size // (5 * projected.dimensions + 500), 1)])
    gram = some.T @ some
    gram.flat[:: projected.dimensions + 1] += 1e-8 * some.shape[0]
    with single_threaded_blas(projected.dimensions):
        v = np.linalg.solve(gram, some.sum(axis=0))
    return np.asarray(v / (np.linalg.norm(v) or 1.0))


def _support(projected: ProjectedPoints, corral: Corral) -> Combination:
    """Return the points of a combination that is 0, and their weights before they were scaled to length 1.

    A weight that rounding could have made is none: points that do have one are found again after the next
    projection.
    """
    numbers, weights = np.array(corral.labels, dtype=np.intp), corral.combination()
    numbers, weights = numbers[weights > corral.zero], weights[weights > corral.zero]
    lengths = np.broadcast_to(projected.lengths, (projected.points.labels.size, projected.points.classes))
    return numbers, weights / lengths.ravel()[numbers]


class _CandidatePoints:
    """The points that were once among the worst, with their coordinates."""

    def __init__(self, projected: ProjectedPoints) -> None:
        self.projected = projected
        self.numbers = np.zeros(0, dtype=np.intp)
        self.coordinates = np.zeros((0, projected.dimensions))

    def add(self, numbers: Array) -> bool:
        """Take up more points; false if all of them were there."""
        fresh = numbers[~np.isin(numbers, self.numbers)]
        if fresh.size == 0:
            return False
        if self.coordinates.size > MOST_NUMBERS:  # those in the corral are kept there
            self.numbers, self.coordinates = self.numbers[:0], self.coordinates[:0]
        self.numbers = np.concatenate([self.numbers, fresh])
        self.coordinates = np.vstack([self.coordinates, self.projected.take(fresh)])
        return True

    def price(self, r: Array) -> tuple[int, Array, float]:
        """Return the point with the largest (p, 1).r, as :func:`shorten` asks for it."""
        gains = self.coordinates @ r[:-1] + r[-1]
        best = int(np.argmax(gains))
        return int(self.numbers[best]), self.coordinates[best], float(gains[best])


# -- projecting points out -------------------------------------------------------------------------------


def project_out(projected: ProjectedPoints, support: Array, whole: Array) -> ProjectedPoints:
    """Return what is left of all points orthogonally to some of them."""
    basis = complement(projected, support)
    left = projected.points.lengths(basis) if basis.shape[1] else np.zeros((1, 1))
    return ProjectedPoints(projected.points, basis, np.where(left > BOUNDARY * whole, left, 0.0))


def complement(projected: ProjectedPoints, support: Array) -> Array:
    """Return a basis of what is orthogonal to the supporting points and to all that went before."""
    with single_threaded_blas(projected.dimensions):
        q, r, _ = qr(projected.take(support).T, pivoting=True)
    pivots = np.abs(np.diagonal(r))
    rank = int((pivots > SPAN * pivots.max(initial=0.0)).sum())
    return projected.whole(q[:, rank:])
