"""The objective of a smooth problem as its solvers see it: value, slope and curvature at theta = (w, c).

    f(theta) = sum_i q_i loss(s_i, y_i) + l2 |w|^2 / 2,     s = w.(x - shift) + c

The columns are moved by a rough mean (``shift``; zero without intercept), which leaves the problem as it is,
with b = c - w.shift, but keeps the digits of the curvature where a mean is far larger than the spread around
it.

    slope      sum_i q_i loss'(s_i) z_i + l2 (w, 0)                 z = (x - shift, 1)
    curvature  sum_i q_i loss''(s_i) z_i z_i' + l2 diag(1, ..., 1, 0)

Every method is one native pass over the rows, which are read from memory once. A pass that the budget ends
raises :class:`~sixfold.budget.BudgetExhausted`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.data.blocks import Block, Blocks
from sixfold.risk.problem import Problem
from sixfold.solvers.least_squares.moments import SHIFT_ROWS, rough_mean
from sixfold.solvers.linalg import EPS, SymmetricFactor
from sixfold.solvers.passes import LOSS_CODES, times

Array = NDArray[Any]

# Up to so many columns a block of packed rows stays in the L2 cache, so that one pass can do everything.
FUSED_COLUMNS = 700
SHORT = 4096  # numbers whose product no BLAS shares between threads; einsum takes 8 us more


@dataclass(frozen=True)
class ObjectivePoint:
    """What is known of the objective at one theta.

    Attributes
    ----------
    theta : ndarray of shape (columns + 1, scores)
    value : float
    slope : ndarray of the shape of theta
        Its last row is zero without intercept.
    score : ndarray of shape (rows,), or None where scores are not kept
    matrix : ndarray or None
        The curvature, where it was asked for.
    """

    theta: Array
    value: float
    slope: Array
    score: Array | None = None
    matrix: Array | None = None


class SmoothObjective(ABC):
    """What the objectives of one score and of several have in common."""

    def __init__(self, problem: Problem, blocks: Blocks, budget: Budget, shift: Array, spread: float) -> None:
        self.problem, self.blocks, self.budget = problem, blocks, budget
        self.shift, self.spread, self.shifted = shift, spread, bool(shift.any())
        self.d, self.l2 = blocks.n_columns, problem.l2
        self.weight = [block.float64_weight for block in blocks]

    def factor(self, matrix: Array) -> SymmetricFactor:
        """Return a curvature, ready to be divided by; entries of theta that must not move do not."""
        return SymmetricFactor(matrix, self.constant(np.diag(matrix).reshape(self.d + 1, -1)).ravel())

    def constant(self, diagonal: Array) -> NDArray[np.bool_]:
        """Return which entries of theta must not move: the intercept, if there is none, and constant columns.

        Of a constant column the shift leaves rounding errors, which must not be scaled up to length 1.
        ``diagonal`` has the mean square of each column, or a multiple, and of the ones in its last row.
        """
        fixed = np.zeros(diagonal.shape, dtype=bool)
        fixed[-1] = not self.problem.fit_intercept
        if self.l2 == 0:
            fixed[:-1] = diagonal[:-1] <= np.square(16.0 * EPS * self.shift)[:, None] * diagonal[-1]
        return fixed

    def model(self, theta: Array) -> tuple[Array, Array]:
        """Return w and b, as the type of the data holds them."""
        w = self.blocks.rounded(theta[:-1])
        b = theta[-1] - self.shift @ w if self.problem.fit_intercept else np.zeros(theta.shape[1])
        return w, self.blocks.rounded(b)

    def metric(self, h: Array) -> Array:
        """Return sum_i q_i h_i z_i z_i' + l2 D."""
        weights = [
            h[block.rows] * (1.0 if weight is None else weight)
            for block, weight in zip(self.blocks, self.weight, strict=True)
        ]
        return self._with_penalty(self._gram(weights))

    def column_squares(self) -> Array:
        """Return the diagonal of sum_i q_i z_i z_i'."""
        total, part = np.zeros(self.d + 1), np.empty(self.d + 1)
        for block, weight, _, limits in self._passes():
            self.budget.check(core.column_squares(*parts_of(block.X), weight, self.shift, part, **limits))
            total += part
        if not np.isfinite(total).all():
            raise FloatingPointError("the squares of the columns are not finite")
        return total / self.blocks.weight_sum

    def first(self, theta: Array, curvature: bool = False) -> ObjectivePoint:
        """Return the point a solver starts from: the pass that meets every value of X.

        Raises
        ------
        FloatingPointError
            If one of the values is not finite, or too large to be summed.
        """
        point = self.at(theta, curvature)
        if not (math.isfinite(point.value) and np.isfinite(point.slope).all()):
            raise FloatingPointError("the objective is not finite")
        return point

    @abstractmethod
    def at(self, theta: Array, curvature: bool = False) -> ObjectivePoint:
        """Return value and slope at theta, and the curvature where it is asked for."""

    def largest_move(self, delta: Array) -> float:
        """Return how much a step changes any score of a row that counts at most."""
        w, c = delta[:-1], delta[-1] - self.shift @ delta[:-1]
        most = 0.0
        for block, weight in zip(self.blocks, self.weight, strict=True):
            for k in range(w.shape[1]):  # one after the other, since all scores may be more than X
                move = np.abs(times(block.X, w[:, k : k + 1])[:, 0] + c[k])
                most = max(most, float((move if weight is None else move[weight > 0]).max(initial=0.0)))
        return most

    def _passes(self) -> Iterator[tuple[Block, Array | None, slice, dict[str, Any]]]:
        """Go through the blocks with their weights, their place among the rows, and the limits of a pass."""
        for block, weight in zip(self.blocks, self.weight, strict=True):
            limits = {"seconds_left": self.budget.seconds_left, "flag": self.budget.flag}
            yield block, weight, block.rows, limits

    def _complete(self, theta: Array, value: float, slope: Array) -> tuple[float, Array]:
        """Return value and slope with what the shift, the weights and the penalty make of them."""
        if self.shifted:
            slope[:-1] -= self.shift[:, None] * slope[-1]
        slope /= self.blocks.weight_sum
        slope[:-1] += self.l2 * theta[:-1]
        if not self.problem.fit_intercept:
            slope[-1] = 0.0
        return value / self.blocks.weight_sum + 0.5 * self.l2 * inner(theta[:-1], theta[:-1]), slope

    def _gram(self, weights: list[Array]) -> Array:
        """Return sum_i weight_i z_i z_i', one array of weights a block."""
        total = np.zeros((self.d + 1, self.d + 1))
        for (block, _, _, limits), weight in zip(self._passes(), weights, strict=True):
            if isinstance(block.X, np.ndarray):
                part = np.empty_like(total)
                none = np.empty((block.X.shape[0], 0), block.X.dtype)
                self.budget.check(core.moments(block.X, none, weight, self.shift, None, part, **limits))
                total += part
            else:  # never shifted
                weighted = block.X.multiply(weight[:, None]).tocsr()
                total[:-1, :-1] += (block.X.T @ weighted).toarray()
                total[:-1, -1] += block.X.T @ weight
                total[-1, :-1] = total[:-1, -1]
                total[-1, -1] += weight.sum()
        return total

    def _with_penalty(self, gram: Array) -> Array:
        gram /= self.blocks.weight_sum
        gram.flat[: self.d * (self.d + 2) : self.d + 2] += self.l2
        return gram


class LinearObjective(SmoothObjective):
    """The objective of one target: one score a row."""

    def __init__(
        self, problem: Problem, blocks: Blocks, budget: Budget, shift: Array, spread: float, target: int = 0
    ) -> None:
        super().__init__(problem, blocks, budget, shift, spread)
        self.code, self.target = LOSS_CODES.index(problem.loss.name), target
        self.y = [np.ascontiguousarray(block.y[:, target], dtype=np.float64) for block in blocks]

    def of_rows(self, blocks: Blocks, budget: Budget) -> LinearObjective:
        """Return the same objective of other rows."""
        return LinearObjective(self.problem, blocks, budget, self.shift, self.spread, self.target)

    def start(self) -> Array:
        """Return the constant model."""
        theta = np.zeros((self.d + 1, 1))
        if self.problem.fit_intercept and self.problem.loss.labels == "real":
            sums = [y.sum() if w is None else w @ y for y, w in zip(self.y, self.weight, strict=True)]
            theta[-1] = sum(sums) / self.blocks.weight_sum
        return theta

    def at(self, theta: Array, curvature: bool = False) -> ObjectivePoint:
        """Return value and slope at theta, and the curvature where it is asked for."""
        if curvature and self._fits_in_a_pass():
            return self._fused(theta)
        score, h = np.empty(self.blocks.n_rows), np.empty(self.blocks.n_rows) if curvature else None
        value, slope, part = 0.0, np.zeros((self.d + 1, 1)), np.empty(self.d + 1)
        w, b = np.ascontiguousarray(theta[:-1, 0]), float(theta[-1, 0]) - inner(self.shift, theta[:-1, 0])
        for (block, weight, rows, limits), y in zip(self._passes(), self.y, strict=True):
            outputs = {"score": score[rows], "curvature": None if h is None else h[rows], "slope": part}
            finished, loss = core.loss_sweep(
                *parts_of(block.X), y=y, weight=weight, loss=self.code, w=w, b=b, **outputs, **limits
            )
            self.budget.check(finished)
            value += loss
            slope[:, 0] += part
        value, slope = self._complete(theta, value, slope)
        return ObjectivePoint(theta, value, slope, score, None if h is None else self._matrix(h))

    def _fits_in_a_pass(self) -> bool:
        """Return whether one pass finds value, slope and curvature."""
        return not self.blocks.sparse and self.d <= FUSED_COLUMNS

    def _fused(self, theta: Array) -> ObjectivePoint:
        score = np.empty(self.blocks.n_rows)
        value, slope, part = 0.0, np.zeros((self.d + 1, 1)), np.empty(self.d + 1)
        gram, part_gram = np.zeros((self.d + 1, self.d + 1)), np.empty((self.d + 1, self.d + 1))
        for (block, weight, rows, limits), y in zip(self._passes(), self.y, strict=True):
            finished, loss = core.newton_sweep(
                block.X, y, weight, self.code, np.ascontiguousarray(theta[:, 0]), self.shift, score[rows],
                part, part_gram, **limits,
            )  # fmt: skip
            self.budget.check(finished)
            value += loss
            slope[:, 0] += part
            gram += part_gram
        slope[:-1] += self.shift[:, None] * slope[-1]  # the pass has moved the columns already
        value, slope = self._complete(theta, value, slope)
        return ObjectivePoint(theta, value, slope, score, self._with_penalty(gram))

    def curvature(self, point: ObjectivePoint) -> Array:
        """Return the curvature at a point where only value and slope are known.

        A whole pass takes less time than arrays of its own: of 20,000,000 x 30 rows 0.5 s instead of 2.4.
        """
        if self._fits_in_a_pass():
            matrix = self._fused(point.theta).matrix
            assert matrix is not None
            return matrix
        return self._matrix(self.row_curvature(point))

    def row_curvature(self, point: ObjectivePoint) -> Array:
        """Return weight_i loss''(s_i) for every row."""
        assert point.score is not None
        return self._weighted(self.problem.loss.curvature(point.score, np.concatenate(self.y)))

    def product(self, h: Array, v: Array) -> Array:
        """Return the curvature of rows with ``row_curvature`` h times v."""
        total, part = np.zeros((self.d + 1, 1)), np.empty(self.d + 1)
        flat, c = np.ascontiguousarray(v[:-1, 0]), float(v[-1, 0]) - inner(self.shift, v[:-1, 0])
        for block, _, rows, limits in self._passes():
            self.budget.check(core.curvature_sweep(*parts_of(block.X), h[rows], flat, c, part, **limits))
            total[:, 0] += part
        return self._complete(v, 0.0, total)[1]

    def slope_along(self, start: ObjectivePoint, end: ObjectivePoint, length: float) -> float:
        """Return the slope in the length on the way from one point to another, without a pass over X."""
        assert start.score is not None
        assert end.score is not None
        slope = 0.0
        for (_, weight, rows, _), y in zip(self._passes(), self.y, strict=True):
            slope += core.losses_along(self.code, start.score[rows], end.score[rows], length, y, weight)[1]
        delta = (end.theta - start.theta)[:-1]
        return slope / self.blocks.weight_sum + self.l2 * inner(start.theta[:-1] + length * delta, delta)

    def mean_curvature(self, theta: Array) -> Array:
        """Return loss''(s_i) for every row."""
        w, b = theta[:-1], theta[-1] - self.shift @ theta[:-1]
        score = np.concatenate([times(block.X, w)[:, 0] + b[0] for block in self.blocks])
        return self.problem.loss.curvature(score, np.concatenate(self.y))

    def data_curvature(self, h: Array) -> Array:
        """Return sum_i q_i h_i z_i z_i', the curvature without penalty."""
        weighted = self._weighted(h.copy())
        return self._gram([weighted[rows] for _, _, rows, _ in self._passes()]) / self.blocks.weight_sum

    def _weighted(self, values: Array) -> Array:
        for _, weight, rows, _ in self._passes():
            if weight is not None:
                values[rows] *= weight
        return values

    def _matrix(self, h: Array) -> Array:
        return self._with_penalty(self._gram([h[rows] for _, _, rows, _ in self._passes()]))


def inner(one: Array, other: Array) -> float:
    """Return the inner product of two arrays of the same shape.

    A BLAS would share a long one between threads, which stay awake for 20 ms to see if there is more to do,
    on the cores that native passes need by then, and its result would depend on the number of threads.
    """
    if one.size <= SHORT:
        return float(np.vdot(one, other))
    return float(np.einsum("j,j->", one.ravel(), other.ravel()))


def parts_of(X: Any) -> tuple[Array, ...]:
    """Return a table as native passes take it: itself, or the three arrays of a CSR table."""
    return (X,) if isinstance(X, np.ndarray) else (X.data, X.indices, X.indptr)


def centre_and_spread(problem: Problem, blocks: Blocks) -> tuple[Array, float]:
    """Return the rough mean of the rows, and the root mean square distance of some of them from it.

    The mean is zero where columns must not be moved: without intercept, or where that would fill a sparse
    table.
    """
    every = max(blocks.n_rows // SHIFT_ROWS, 1)
    some = [block.X[::every] for block in blocks]
    mean, rows = np.zeros(blocks.n_columns), sum(part.shape[0] for part in some)
    if blocks.sparse:
        return mean, math.sqrt(sum(float(np.square(part.data).sum()) for part in some) / rows)
    if problem.fit_intercept:
        mean = rough_mean(blocks)
    return mean, math.sqrt(sum(float(np.square(part - mean).sum()) for part in some) / rows)


def check_places(blocks: Blocks) -> None:
    """Refuse a CSR table that points outside itself, once for all passes.

    Raises
    ------
    ValueError
        If a column number or a row's end is out of range.
    """
    for block in blocks:
        X = block.X
        if blocks.sparse and not core.csr_is_sound(X.indices, X.indptr, X.shape[1], X.data):
            raise ValueError("The CSR table X is damaged: a column number or a row's end is out of range.")
