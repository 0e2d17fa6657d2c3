"""Neighbourhood components: a linear map by which rows pick rows of their class as neighbours.

    loss(L) = 1 - sum_i q_i p_i / sum_i q_i,    p_i = sum of p_ij over the rows j of the class of i
    p_ij    = q_j exp(-|L x_i - L x_j|^2) / (sum over k != i of q_k exp(-|L x_i - L x_k|^2) + s_i)

p_ij is the probability with which row i picks row j, q_j how often row j occurs, and s_i = max(q_i - 1, 0)
the other copies of row i itself, which are at distance 0: so a row of weight 2 is that row twice. With

    pull_i = sum_j (a_ij + a_ji) (L x_j - L x_i),    a_ij = q_i p_ij ([same class] - p_i)

the slope of the loss is -2 sum_i pull_i x_i' / sum_i q_i. The loss is not convex: a point where it is
stationary is what is found, by L-BFGS.

Rows further than the nearest by more than ``reach`` in D_ij = |L x_i - L x_j|^2 - log q_j have less than
exp(-reach) of its weight; at most that much of p_i is left out, which is added up and is part of
``rounding``. Where more than a share of all pairs counts (``NEAR_SHARE``), all are computed.

The start and the steps are those of scikit-learn, so that both come to the same map where they end at the
same time; on 144 problems made of 36 tables that was so for 78 (to 1e-9 of the loss), 21 ended above and 20
below by more than 1e-6, as rounding decides between optima. To end with the third small gain in a row, and
not with the first, raised the mean of p by 4e-4 for a tenth more iterations. A longer memory, or a first step
in proportion to L, was better as often as worse.

Source: Goldberger, Roweis, Hinton and Salakhutdinov (2004), "Neighbourhood components analysis".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from sixfold._native import core
from sixfold.budget import Budget, BudgetExhausted
from sixfold.errors import InputError
from sixfold.solvers.metric_learning.lbfgs import Point, descend
from sixfold.solvers.threads import one_blas_thread

Array = NDArray[Any]

# Of all pairs: a pair takes five times as long one by one as in a tile of products, and tiles are made twice.
NEAR_SHARE = 0.12
NEAR_AGAIN = 0.08  # below, pairs are taken one by one again
FEWEST_ROWS = 256  # below, all pairs are computed
REACH = 30.0  # and the logarithm of the rows: exp(-30) = 1e-13 of the weight is left out at most
U = 2.0**-53
SMALL_GAINS = 3
TOO_MANY = 2  # what the loop over near rows answers where it has given up
UNSURE = 1e-9  # of p_i: rounding that is looked at more closely
LARGEST_SQUARES = 1e306  # of all rows together
OVERFLOW = (
    "After the map that init asks for, the rows are so large that their squared distances overflow. Divide "
    "the columns or the map by a power of ten first."
)
BLOCK_NUMBERS = 1 << 21  # distances that are held at a time


@dataclass(frozen=True)
class LearnedComponents:
    """What was found.

    Attributes
    ----------
    components : ndarray of shape (components, columns)
    loss : float
        Of these components, above the exact one.
    rounding : float
        By how much the loss may differ from the exact one.
    slope : float
        The length of the loss's slope times that of the components: to first order, a change of L by a share
        e of its size changes the loss by at most e times as much. Infinite where it is not known.
    """

    components: Array
    loss: float
    rounding: float
    slope: float


def learn(
    X: Array,
    index: Array,
    weight: Array | None,
    start: Array,
    budget: Budget,
    dtype: Any,
    heard: Callable[[Array, int], Any] | None = None,
) -> LearnedComponents:
    """Return the components to which L-BFGS leads from ``start``, as numbers of type ``dtype``.

    ``heard(components, iteration)`` is told of every iteration.
    """
    q = np.ones(X.shape[0]) if weight is None else weight
    counts = q > 0
    rows = Rows.of(X[counts].astype(np.float64), index[counts], q[counts])
    best, components = None, start
    with one_blas_thread:  # sums in one order, whatever the number of threads
        inner = _Subspace(rows, start)
        objective = Objective(inner.rows, budget)
        try:
            small = 0  # gains in a row
            for step, point in enumerate(descend(objective, inner.start.ravel(), rows.unit)):
                if not math.isfinite(point.value):
                    raise InputError(OVERFLOW)
                gained = math.inf if best is None else _gain(best, point, rows.total)
                small = small + 1 if gained <= budget.tol else 0
                best = point
                if step > 0 and heard is not None:
                    heard(inner.outside(point.x), step)
                if step > 0 and budget.record(point.value, _relative_slope(point), 0.0):
                    break
                if small == SMALL_GAINS or not point.slope.any():
                    break
        except BudgetExhausted:
            budget.exhausted()
        if not budget.history and best is not None:
            budget.record(best.value, _relative_slope(best), 0.0)
        if best is not None:
            components = inner.outside(best.x)
        kept = components.astype(dtype)
        if best is None:
            return LearnedComponents(kept, 1.0, 1.0, math.inf)
        return _judge(rows, kept, objective if inner.B is None else Objective(rows))


def _gain(before: Point, point: Point, total: float) -> float:
    """Return what a step gained, as a share of the mean of p."""
    mean = max(1.0 - point.value, 1.0 - before.value, 1.0 / total)
    return (before.value - point.value) / mean


def _relative_slope(point: Point) -> float:
    return _length(point.slope) * _length(point.x)


def _length(values: Array) -> float:
    """Return the length of all numbers as one vector, whose squares may overflow."""
    largest = float(np.abs(values).max(initial=0.0))
    return largest * float(np.linalg.norm(values / largest)) if largest > 0 else 0.0


# -- the rows ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rows:
    """Rows about their centre, divided by a power of 2 so that squares of the numbers do not overflow."""

    X: Array
    index: Array
    q: Array
    unit: float

    @classmethod
    def of(cls, X: Array, index: Array, q: Array) -> Rows:
        """Return the rows in that form."""
        largest = float(np.abs(X).max())
        unit = 2.0 ** math.floor(math.log2(largest)) if largest > 0 else 1.0
        scaled = X / unit
        centred = scaled - (q @ scaled) / q.sum()
        return cls(
            centred, np.ascontiguousarray(index, dtype=np.int32), np.ascontiguousarray(q, dtype=float), unit
        )

    @property
    def total(self) -> float:
        """How many rows there are, each as often as it occurs."""
        return float(self.q.sum())


class _Subspace:
    """The rows and components in coordinates of the rows, where there are fewer rows than columns.

    Every slope is made of the rows, and of what the start makes of them: L = L_0 + F (A - A_0) B' with
    orthonormal F and B. A is small, and L-BFGS takes the same steps in it.
    """

    def __init__(self, rows: Rows, start: Array) -> None:
        self.first = start
        self.unit = rows.unit
        inside = start * rows.unit
        self.B = self.F = None
        if rows.X.shape[0] < rows.X.shape[1]:
            self.B, coordinates = np.linalg.qr(rows.X.T)
            rows = Rows(np.ascontiguousarray(coordinates.T), rows.index, rows.q, rows.unit)
            inside = inside @ self.B
            if inside.shape[0] > inside.shape[1]:
                self.F, inside = np.linalg.qr(inside)
        self.rows, self.start = rows, np.ascontiguousarray(inside)

    def outside(self, x: Array) -> Array:
        """Return the components that these numbers stand for."""
        A = x.reshape(self.start.shape)
        if self.B is None:
            return A / self.unit
        moved = (A - self.start) / self.unit @ self.B.T
        result: Array = self.first + (moved if self.F is None else self.F @ moved)
        return result


# -- the loss ------------------------------------------------------------------------------------------------


class Objective:
    """The loss and its slope at components, as one vector."""

    def __init__(self, rows: Rows, budget: Budget | None = None) -> None:
        self.rows, self.budget = rows, budget
        count = rows.X.shape[0]
        self.copies = np.maximum(rows.q - 1.0, 0.0)
        self.reach = REACH + math.log(count)
        self.nearest = np.full(count, -1, dtype=np.int64)
        self.right = np.empty(count)
        self.near = count >= FEWEST_ROWS
        self.omitted = 0.0  # of the loss, at most
        self._last: tuple[Array, float, Array] | None = None

    def __call__(self, x: Array) -> tuple[float, Array]:
        """Return loss and slope; raise :class:`BudgetExhausted` where time is up."""
        rows = self.rows
        if self._last is not None and np.array_equal(self._last[0], x):
            return self._last[1:]
        Z = np.ascontiguousarray(rows.X @ x.reshape(-1, rows.X.shape[1]).T)
        if not float(np.einsum("ik,ik->", Z, Z)) < LARGEST_SQUARES:
            return math.inf, np.zeros_like(x)
        pulls = np.empty_like(Z)
        if not self._computed_near(Z, pulls):
            self._compute_all(Z, pulls)
        slope = ((-2.0 / rows.total) * (pulls.T @ rows.X)).ravel()
        value = 1.0 - float(rows.q @ self.right) / rows.total
        self._last = x, value, slope
        return value, slope

    def _computed_near(self, Z: Array, pulls: Array) -> bool:
        if not self.near:
            return False
        most = int(NEAR_SHARE * Z.shape[0] ** 2)
        ended, _, omitted = core.near_soft_neighbors(
            Z, self.rows.index, self.rows.q, self.copies, self.reach, most, self.nearest, self.right, pulls,
            self._seconds_left, self._flag,
        )  # fmt: skip
        self._check(ended)
        self.near = ended != TOO_MANY
        self.omitted = omitted / self.rows.total
        return self.near

    def _compute_all(self, Z: Array, pulls: Array) -> None:
        ended, kept, _ = core.dense_soft_neighbors(
            Z, self.rows.index, self.rows.q, self.copies, self.reach, self.right, pulls, self._seconds_left,
            self._flag,
        )  # fmt: skip
        self._check(ended)
        self.omitted = 0.0
        self.near = Z.shape[0] >= FEWEST_ROWS and kept < NEAR_AGAIN * Z.shape[0] ** 2

    @property
    def _seconds_left(self) -> float:
        return math.inf if self.budget is None else self.budget.seconds_left

    @property
    def _flag(self) -> Array:
        return np.zeros(1, dtype=np.int32) if self.budget is None else self.budget.flag

    def _check(self, ended: int) -> None:
        if self.budget is not None:
            self.budget.check(finished=ended != 1)


# -- how good the components are -----------------------------------------------------------------------------


def _judge(rows: Rows, components: Array, objective: Objective) -> LearnedComponents:
    """Return the components with loss, rounding and slope, computed from the rows as they are."""
    inside = components.astype(np.float64) * rows.unit
    objective.budget = None  # this much has to be done
    value, slope = objective(inside.ravel())
    rounding = loss_rounding(rows, inside, objective.right, objective.omitted)
    relative = _length(slope) * _length(inside)
    return LearnedComponents(components, min(value + rounding, 1.0), rounding, relative)


def loss_rounding(rows: Rows, components: Array, right: Array, omitted: float) -> float:
    """Return by how much the loss may be off at most.

    Where each D_ij is off by at most e, the odds p_i : 1 - p_i are off by a factor of exp(2 e), and p_i by
    (exp(2 e) - 1) p_i (1 - p_i). Of rows so far apart that this says nothing, it counts by how much the
    nearest of the class is nearer than the nearest of the others.
    """
    count, columns = rows.X.shape
    Z = rows.X @ components.T
    lengths, images = (np.sqrt(np.square(part).sum(axis=1)) for part in (rows.X, Z))
    image = (columns + 4.0) * U * _length(components) * lengths  # how far off L x may be
    farthest = images + images.max()
    off = (2.0 * components.shape[0] + 20.0) * U * np.square(farthest)
    off += 4.0 * farthest * (image + image.max())
    known = off < 1.0
    each = np.ones(count)
    each[known] = np.expm1(2.0 * off[known]) * (right * (1.0 - right))[known]
    unsure = np.flatnonzero(each > UNSURE)
    if unsure.size:
        least, most = _surely_right(rows, Z, unsure, 2.0 * off[unsure])
        bound = np.maximum(right[unsure] - least, most - right[unsure])
        each[unsure] = np.minimum(each[unsure], bound)
    each += 2.0 * (count + 30.0) * U
    return min(float(rows.q @ each) / rows.total + omitted + 4.0 * U, 1.0)


def _surely_right(rows: Rows, Z: Array, which: Array, off: Array) -> tuple[Array, Array]:
    """Return numbers between which p_i of some rows is, where each D_ij is off by at most ``off``."""
    lengths, log_q = np.square(Z).sum(axis=1), np.log(rows.q)
    ahead = np.empty(which.size)  # by how much the nearest row of the class is nearer
    size = max(BLOCK_NUMBERS // Z.shape[0], 1)
    for first in range(0, which.size, size):
        i = which[first : first + size]
        D = lengths[i, None] + lengths - 2.0 * (Z[i] @ Z.T) - log_q
        with np.errstate(divide="ignore"):
            D[np.arange(i.size), i] = -np.log(np.maximum(rows.q[i] - 1.0, 0.0))
        same = rows.index[i, None] == rows.index
        own, other = (np.where(part, D, np.inf).min(axis=1) for part in (same, ~same))
        ahead[first : first + size] = np.where(own < np.inf, other, -np.inf) - np.where(
            own < np.inf, own, 0.0
        )
    several = math.log(Z.shape[0])
    return expit(ahead - several - 2.0 * off), expit(ahead + several + 2.0 * off)
