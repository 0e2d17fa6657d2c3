"""Least squares for many squared penalties from one factorisation.

    minimise  sum_i q_i |y_i - b - w.x_i|^2 / 2 + l2 |w|^2 / 2       for every l2 > 0 of a list

With B = sqrt(q) (X - mean), t = sqrt(q) (y - mean), A = B'B and c = B't of tall tables, K = BB' of wide ones,
and the eigenvectors V and eigenvalues e of A or K,

    w(l2) = V ((V'c) / (e + l2))        or        w(l2) = B' a,  a = V ((V't) / (e + l2)),

so every further penalty costs a product, not a factorisation. What is left of the slope is fed back, so that
columns of very different size do not matter. This is what tuning a ridge regression uses.

*How far from the minimum.* The objective bends by l2 + min e in every direction, and by l2 in those of w, so

    R - min R  <=  |c - A w - l2 w|^2 / (2 (l2 + min e))        or       |t - K a - l2 a|^2 / 2

where the sums are off by as much as the moments are (:mod:`sixfold.solvers.least_squares.moments`) or the
products of the rows: (d + n) u times their lengths. Half the square of what the means are off by is added.
That is said of the model as it predicts, w.(x - mean) + level in float64.

*How far from the predictions of the minimum.* With h(x) = (x - mean)' (A + l2 I)^-1 (x - mean), which is at
most |x - mean|^2 / (l2 + min e), no prediction is further off than sqrt(2 h(x) (R - min R)). Penalties for
which that is more than ``ACCURATE`` of the standard deviation of y at some row are for a solver that sees the
rows again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import lapack

from sixfold.solvers.least_squares.moments import LEFT, UNIT, Moments
from sixfold.solvers.linalg import EPS
from sixfold.solvers.threads import single_threaded_blas

Array = NDArray[Any]

ACCURATE = 1e-6  # of the standard deviation of y: by how much a prediction may be off at most
FEEDBACKS = 3  # of what is left of the slope; each shrinks it by eps times the condition number
CERTAIN = 1e-7  # of an eigenvalue: rounding that it may have without a closer look
RESOLVED = 1e-2  # of an eigenvalue: rounding that it may have to be of use
TINY = 1e-280  # below, squares lose digits to underflow
SMALL_VARIANCE = 1e-24  # of the squared mean: a column whose variance is less may be a constant one, rounded


@dataclass(frozen=True)
class RidgeModels:
    """The models of some penalties, those of the targets of one penalty next to each other.

    Attributes
    ----------
    parameters : ndarray of shape (penalties * targets, columns or rows)
        w of tall tables; of wide ones v = sqrt(q) a, the share of each row.
    level : ndarray of shape (penalties * targets,)
        The score at the means of the columns.
    penalties : ndarray of shape (penalties,)
    above : ndarray of shape (penalties, targets)
        How far above its minimum each is at most, relative to the objective of the constant model.
    gap : ndarray of shape (penalties,)
        The same for all targets together, with what the means are off by.
    """

    parameters: Array
    level: Array
    penalties: Array
    above: Array
    gap: Array

    def some(self, places: slice) -> RidgeModels:
        """Return those of some penalties."""
        n_targets = self.above.shape[1]
        rows = slice(places.start * n_targets, places.stop * n_targets)
        return RidgeModels(
            self.parameters[rows],
            self.level[rows],
            self.penalties[places],
            self.above[places],
            self.gap[places],
        )


class RidgePath(ABC):
    """Some rows, factored: the models of any number of penalties and what they predict.

    Attributes
    ----------
    e, V : ndarray
        Eigenvalues and eigenvectors.
    """

    fit_intercept: bool
    mean_y: Array
    e: Array
    V: Array
    y2: Array  # the mean square of every target, about its mean

    def models(self, penalties: Sequence[float] | Array) -> RidgeModels:
        """Return the models of all penalties."""
        l2 = np.asarray(penalties, dtype=np.float64)
        n_targets = self.mean_y.size
        each = np.repeat(l2, n_targets)[:, None]
        with single_threaded_blas(self.e.size):
            left = np.tile(self._right_side(), (l2.size, 1))
            found = np.zeros_like(left)
            for _ in range(1 + FEEDBACKS):
                found = found + ((left @ self.V) / (self.e + each)) @ self.V.T
                left, distance, error = self._left(found, each)
                if (distance <= error).all():
                    break
            above = self._above(distance + error, each[:, 0])
            off = self._off(found) if self.fit_intercept else np.zeros_like(above)
        above = above.reshape(l2.size, n_targets)
        gap = above + 0.5 * np.square(off.reshape(l2.size, n_targets))
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = above / (0.5 * self.y2)
            gap = gap.sum(axis=1) / (0.5 * self.y2.sum())
        return RidgeModels(found, np.tile(self.mean_y, l2.size), l2, relative, gap)

    def accurate(self, models: RidgeModels, held_out: Any) -> NDArray[np.bool_]:
        """Return, for every penalty, whether the predictions of these rows have the digits that count."""
        l2, above = models.penalties, models.above.max(axis=1)
        varies = self.y2 > np.maximum(SMALL_VARIANCE * np.square(self.mean_y), TINY)
        usable = np.isfinite(models.gap) & (l2 > TINY) & varies.all()
        # In units of the standard deviation of y, whose square is 2 above's unit.
        allowed = np.square(ACCURATE) / np.maximum(above, 1e-300)
        with np.errstate(over="ignore", invalid="ignore"):
            good: NDArray[np.bool_] = usable & (self._reach(held_out, l2) <= allowed)
            again = usable & ~good
            if again.any():
                good[again] = self._exact_reach(held_out, l2[again]) <= allowed[again]
        return good

    @abstractmethod
    def _reach(self, held_out: Any, l2: Array) -> Array:
        """Return what the largest h of these rows is below."""

    def _exact_reach(self, held_out: Any, l2: Array) -> Array:
        """Return the largest h of these rows, more closely."""
        return self._reach(held_out, l2)

    @abstractmethod
    def _right_side(self) -> Array:
        """Return c or t, one row a target."""

    @abstractmethod
    def _left(self, found: Array, l2: Array) -> tuple[Array, Array, Array]:
        """Return what is left of the equations, its length, and how far that may be off."""

    @abstractmethod
    def _above(self, distance: Array, l2: Array) -> Array:
        """Return how far the objective is above its minimum at most."""

    @abstractmethod
    def _off(self, found: Array) -> Array:
        """Return how far the mean residual of each model may be from zero."""


class ColumnPath(RidgePath):
    """The penalties of a tall table, from its moments."""

    def __init__(self, moments: Moments, fit_intercept: bool, constant: Array | None = None) -> None:
        self.fit_intercept, d = fit_intercept, moments.n_columns
        A, c, y2 = moments.second(fit_intercept)
        if not all(np.isfinite(part).all() for part in (A, c, y2)):
            raise FloatingPointError("the moments are not finite")
        size = moments.sizes(fit_intercept)
        if constant is not None and constant.size and fit_intercept:
            A[constant], A[:, constant], c[constant] = 0.0, 0.0, 0.0
        self.mean_x, self.mean_y = moments.mean[:d], moments.mean[d:]
        if not fit_intercept:
            self.mean_x, self.mean_y = np.zeros(d), np.zeros_like(self.mean_y)
        self.A, self.c, self.mean_error = A, c, moments.mean_rounding()
        self.size, self.size_y = size[:d], size[d:]
        self.lost = moments.rounding + (2 * d + 8) * UNIT
        self.y2, self.scale = y2, np.ones(d)
        self.R: tuple[Array, Array] | None = None  # the columns that vary, and the factor of C
        with single_threaded_blas(d):
            self.e, self.V = np.linalg.eigh(A)
            self.off = moments.rounding * float(self.size @ self.size) + 8 * d * EPS * abs(float(self.e[-1]))
            self.floor = max(float(self.e[0]) - self.off, 0.0)
            if self.off > CERTAIN * self.e[0]:
                self._factor_scaled(moments.rounding)
        if constant is not None and constant.size and fit_intercept:
            self.V[constant] = 0.0  # so that their coefficients are exactly zero
        self.e = np.maximum(self.e, 0.0)

    def _factor_scaled(self, rounding: float) -> None:
        """Factor again, if that helps, such that columns of very different size do not lose their digits.

        With A = S C S, S^2 = diag(A) and C = R'R, eigenvalues are the squared singular values of R S, which
        Jacobi's method finds to as many digits as the condition of C allows, whatever S is (Drmac and Veselic
        2008). Lengths are those of vectors divided by S from then on, and ``floor`` is that of C.
        """
        scale = np.sqrt(np.maximum(self.A.diagonal(), 0.0))
        some = np.flatnonzero(scale > 0)
        scale[scale == 0] = 1.0
        if some.size == 0:
            return
        C = (self.A / (scale[:, None] * scale))[np.ix_(some, some)]
        R, failed = lapack.dpotrf(C, lower=0, clean=1)
        if failed:
            return
        least, largest = np.linalg.eigvalsh(C)[[0, -1]]
        sizes = self.size / scale
        off = rounding * float(sizes @ sizes) + 8 * scale.size * EPS * float(largest)
        if not (off < RESOLVED * least and off / least < self.off / max(float(self.e[0]), TINY)):
            return
        values, _, vectors, numbers, _, failed = lapack.dgejsv(R * scale[some], joba=0, jobu=3, jobv=0)
        if failed:
            return
        self.e, self.V = np.zeros_like(scale), np.zeros_like(self.A)
        self.e[: some.size] = np.square(values * (numbers[0] / numbers[1]))[::-1]
        self.V[some, : some.size] = vectors[:, ::-1]
        self.scale, self.off, self.floor, self.R = scale, off, float(least - off), (some, R)

    def uncertainty(self, l2: float) -> float:
        """Return by what share the sums of eigenvalues and this penalty may be off."""
        return self.off / max(self.floor + (l2 if self.R is None else 0.0), TINY)

    def _right_side(self) -> Array:
        return self.c.T

    def _left(self, found: Array, l2: Array) -> tuple[Array, Array, Array]:
        repeats = found.shape[0] // self.c.shape[1]
        left = np.tile(self.c.T, (repeats, 1)) - found @ self.A - l2 * found
        total = np.tile(self.size_y, repeats) + np.abs(found) @ self.size
        error = self.lost * float(np.linalg.norm(self.size / self.scale)) * total
        error += 4 * UNIT * l2[:, 0] * np.linalg.norm(found / self.scale, axis=1)
        return left, np.linalg.norm(left / self.scale, axis=1), error

    def _above(self, distance: Array, l2: Array) -> Array:
        bends = self.floor + l2 / np.square(self.scale.max(initial=1.0))
        return np.asarray(0.5 * np.square(distance) / bends)

    def _off(self, found: Array) -> Array:
        error_x, error_y = np.split(self.mean_error, [self.mean_x.size])
        return np.tile(error_y, found.shape[0] // error_y.size) + np.abs(found) @ error_x

    def centred(self, X: Any) -> Any:
        """Return rows to predict for as the other methods read them; sparse ones stay as they are."""
        return X if sp.issparse(X) else X - self.mean_x

    def predict(self, models: RidgeModels, held_out: Any) -> Array:
        """Return the scores of some rows, one line a model."""
        w, level = models.parameters, models.level[:, None]
        if sp.issparse(held_out):
            scores = np.ascontiguousarray(np.asarray(held_out @ w.T).T)
            return np.asarray(scores + (level - (w @ self.mean_x)[:, None]))
        scores = w @ held_out.T
        scores += level
        return scores

    def _reach(self, held_out: Any, l2: Array) -> Array:
        if sp.issparse(held_out):
            far = np.linalg.norm(self.mean_x) + np.sqrt(held_out.multiply(held_out).sum(axis=1).max())
            square = far**2
        else:
            square = np.einsum("ij,ij->i", held_out, held_out).max(initial=0.0)
        return np.asarray(square / (l2 + (self.floor if self.R is None else 0.0)))

    def _exact_reach(self, held_out: Any, l2: Array) -> Array:
        if self.R is not None and not sp.issparse(held_out):
            some, R = self.R
            scaled = held_out[:, some] / self.scale[some]
            half = lapack.dtrtrs(R, np.asfortranarray(scaled.T), lower=0, trans=1)[0]
            return np.full(l2.shape, np.square(half).sum(axis=0).max(initial=0.0))
        rotated = np.asarray(held_out @ self.V)
        if sp.issparse(held_out):
            rotated = rotated - self.mean_x @ self.V
        bends = np.maximum(self.e - (self.off if self.R is None else 0.0), 0.0)[:, None] + l2
        return np.asarray((np.square(rotated) @ (1.0 / bends)).max(axis=0, initial=0.0))


class RowPath(RidgePath):
    """The penalties of a wide table, from the products of its rows.

    Parameters
    ----------
    products : ndarray of shape (rows, rows)
        Of the rows after one and the same point was subtracted from all; without intercept that is zero.
    Y : ndarray of shape (rows, targets)
    q : ndarray of shape (rows,)
        The weights, with sum 1.
    n_columns : int
    fit_intercept : bool
    """

    def __init__(self, products: Array, Y: Array, q: Array, n_columns: int, fit_intercept: bool) -> None:
        self.fit_intercept, n = fit_intercept, q.size
        root = np.sqrt(q)
        self.at_mean = products @ q if fit_intercept else np.zeros(n)
        self.mean_y = Y[0] + q @ (Y - Y[0]) if fit_intercept else np.zeros(Y.shape[1])
        length = root * np.sqrt(np.maximum(products.diagonal(), 0.0))
        K = products
        if fit_intercept:
            K = products - self.at_mean[:, None] - self.at_mean + q @ self.at_mean
        K = root[:, None] * K * root
        target = root[:, None] * (Y - self.mean_y)
        if not (np.isfinite(K).all() and np.isfinite(target).all()):
            raise FloatingPointError("the products of the rows are not finite")
        self.K, self.target, self.root = K, target, root
        self.size, self.size_y = length, q @ np.abs(Y)
        self.lost = (n_columns + 3 * n + 16) * UNIT
        with single_threaded_blas(n):
            if fit_intercept:
                # sqrt(q) is an eigenvector for 0. Apart from all others it can be left out, so that every
                # model is balanced: sum_i sqrt(q_i) a_i = 0.
                apart = 2.0 * float(np.trace(K)) + 1e-300
                e, V = np.linalg.eigh(K + apart * np.outer(root, root))
                self.e, self.V = e[:-1], V[:, :-1]
            else:
                self.e, self.V = np.linalg.eigh(K)
        self.off = self.lost * float(length @ length) + 8 * n * EPS * abs(float(self.e[-1]))
        self.y2 = np.square(target).sum(axis=0)

    @property
    def lost_digits(self) -> bool:
        """Whether too little is left of the squares of the rows, now that they are about their mean."""
        return not float(np.trace(self.K)) >= LEFT * float(self.size @ self.size)

    def _right_side(self) -> Array:
        return self.target.T

    def _left(self, found: Array, l2: Array) -> tuple[Array, Array, Array]:
        n_targets = self.target.shape[1]
        left = np.tile(self.target.T, (found.shape[0] // n_targets, 1)) - found @ self.K - l2 * found
        if self.fit_intercept:
            left -= np.outer(left @ self.root, self.root)
        of_target = np.tile(np.linalg.norm(self.target, axis=0), found.shape[0] // n_targets)
        total = np.abs(found) @ self.size
        error = self.lost * (float(np.linalg.norm(self.size)) * total + of_target)
        error += 8 * UNIT * l2[:, 0] * np.linalg.norm(found, axis=1)
        return left, np.linalg.norm(left, axis=1), error

    def _above(self, distance: Array, l2: Array) -> Array:
        return np.asarray(0.5 * np.square(distance))

    def _off(self, found: Array) -> Array:
        of_mean = np.tile(self.size_y, found.shape[0] // self.size_y.size)
        return self.lost * (float(np.linalg.norm(self.size)) * (np.abs(found) @ self.size) + of_mean)

    def _reach(self, held_out: tuple[Array, Array], l2: Array) -> Array:
        # (K + l2 I)^-1 is at most 1 / l2, and B shortens no more than it lengthens.
        far = np.sqrt(held_out[1].max(initial=0.0)) + np.sqrt(max(float(self.root**2 @ self.at_mean), 0.0))
        return np.asarray(far**2 / l2)

    def _exact_reach(self, held_out: tuple[Array, Array], l2: Array) -> Array:
        # With k = B (x - mean), what is left of the equations counts by (K + l2 I)^-1 k.
        rotated = ((held_out[0] - self.at_mean) * self.root) @ self.V
        bends = np.maximum(self.e - self.off, 0.0)[:, None] + l2
        return np.asarray((np.square(rotated) @ (1.0 / np.square(bends))).max(axis=0, initial=0.0))

    def predict(self, models: RidgeModels, held_out: tuple[Array, Array]) -> Array:
        """Return the scores of some rows, one line a model.

        Parameters
        ----------
        models : RidgeModels
        held_out : tuple of ndarray
            The products of these rows with those of the fit, and with themselves, about the same point.
        """
        shares = models.parameters * self.root
        return np.asarray(shares @ (held_out[0] - self.at_mean).T + models.level[:, None])


def row_products(X: Any, about: Array | None, others: Any = None) -> Array:
    """Return (x_i - about).(z_j - about) of all pairs of rows; sparse tables are about zero."""
    if sp.issparse(X):
        other = X if others is None else others
        return np.asarray((X @ other.T).toarray(), dtype=np.float64)
    Z = _about(X, about)
    return np.asarray(Z @ (Z if others is None else _about(others, about)).T)


def squared_lengths(X: Any, about: Array | None) -> Array:
    """Return (x_i - about)^2 of all rows; sparse tables are about zero."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    Z = _about(X, about)
    return np.asarray(np.einsum("ij,ij->i", Z, Z))


def _about(rows: Any, about: Array | None) -> Array:
    rows = np.asarray(rows, dtype=np.float64)
    return rows if about is None else np.asarray(rows - about)


def suspects(moments: Moments) -> Array:
    """Return the columns that may be constant: their variance is no more than rounding may have made."""
    d = moments.n_columns
    variance = moments.scatter.diagonal()[:d] / moments.weight
    noise = 4.0 * moments.rounding * np.square(moments.size[:d])
    return np.flatnonzero(variance <= noise + SMALL_VARIANCE * np.square(moments.mean[:d]))
