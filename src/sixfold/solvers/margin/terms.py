"""The terms of a piecewise linear loss as an interior point sees them: rows, multipliers and their gap.

:mod:`sixfold.solvers.margin.central_path` states the problem and the names. Columns are taken relative to a
rough mean m where there is an intercept, which then stands for b + m.w: a large mean would otherwise use up
the digits of the matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.data.blocks import Block, Blocks
from sixfold.risk.problem import BALANCE, Problem, normalized_weights
from sixfold.risk.rounding import rounded_model
from sixfold.solvers.few_rows import few_rows_solver
from sixfold.solvers.least_squares.moments import rough_mean, weighted_gram
from sixfold.solvers.linalg import SymmetricFactor
from sixfold.solvers.wide_tables import MAX_ROWS

Array = NDArray[Any]

KEPT_OFF = 0.9  # of l1 at most
NO_SLOPE = 1e-14  # of the length of a column times all multipliers: what rounding leaves of a slope of 0
MOST_NUMBERS = 1 << 22  # in a table whose root is factorised in every iteration


@dataclass(frozen=True)
class Point:
    """Parameters, multipliers, and a bound of how far the former are from the optimum."""

    theta: Array
    a: Array
    gap: float


class Terms:
    """The terms of one target: one for every row that counts, one for every |w_j| that is penalised."""

    def __init__(self, problem: Problem, blocks: Blocks, target: int, budget: Budget) -> None:
        self.problem, self.blocks, self.target, self.budget = problem, blocks, target, budget
        self.n, self.d = blocks.n_rows, blocks.n_columns
        self.penalties = self.d if problem.l1 > 0 else 0
        self.shrink = np.append(np.full(self.d, problem.l2), 0.0)  # l2 D
        centred = problem.fit_intercept and not blocks.sparse
        self.shift = rough_mean(blocks) if centred else np.zeros(self.d)
        self.parts = [(block.start, self._rows(block.X)) for block in blocks]
        if self.penalties:
            one = sp.eye_array(self.d, format="csr")
            self.parts.append((self.n, core.sparse_rows(one.data, one.indices, one.indptr, self.d, 0.0)))
        # p, m, a, low, high, weight and the steps of p, m and a, as the native sweeps know them
        self.vectors = np.zeros((9, self.n + self.penalties))
        self.p, self.m, self.a, self.low, self.high, self.weight, *self.spare = self.vectors
        self.one_sided = one_sided = problem.loss.labels == "sign"
        for block in blocks:
            rows, q, y = block.rows, normalized_weights(block, blocks), block.y[:, target]
            self.high[rows] = np.where(y > 0, q, 0.0) if one_sided else q
            self.low[rows] = np.where(y > 0, 0.0, -q) if one_sided else -q
        self.high[self.n :], self.low[self.n :] = problem.l1, -problem.l1
        self.unit = 1.0  # a typical residual
        self.factor: SymmetricFactor | None = None  # of Z'QZ + l2 D

    def parameters(self, theta: Array) -> tuple[Array, float]:
        """Return w and b as the user knows them, as the type of the data holds them."""
        w, b = rounded_model(self.blocks, theta[:-1, None], theta[-1:], self.shift)
        return w[:, 0], float(b[0])

    def targets(self) -> Array:
        """Return t."""
        columns = [np.asarray(block.y[:, self.target], dtype=np.float64) for block in self.blocks]
        return np.concatenate([*columns, np.zeros(self.penalties)])

    def constant(self) -> float | None:
        """Return the one value of a target that has no other: b fits it to the last bit, no path does."""
        t = self.targets()[: self.n][self.high[: self.n] > self.low[: self.n]]
        alike = self.problem.fit_intercept and t.size > 0 and (t == t[0]).all()
        return float(t[0]) if alike else None

    def scores(self, theta: Array) -> Array:
        """Return Z theta."""
        result = np.empty(self.n + self.penalties)
        ends = [start for start, _ in self.parts[1:]] + [result.size]
        for (start, rows), end in zip(self.parts, ends, strict=True):
            self.budget.check(core.row_scores(rows, theta, result[start:end], *self._limits()))
        return result

    def slope(self, a: Array) -> Array:
        """Return Z'a; its entry for b is zero without intercept."""
        result, part = np.zeros(self.d + 1), np.empty(self.d + 1)
        ends = [start for start, _ in self.parts[1:]] + [a.size]
        for (start, rows), end in zip(self.parts, ends, strict=True):
            self.budget.check(core.row_slope(rows, a[start:end], part, *self._limits()))
            result += part
        return result

    def matrix(self) -> tuple[Array, Array]:
        """Return Z'WZ + l2 D and Z'W t."""
        matrix, right = np.diag(self.shrink), np.zeros(self.d + 1)
        for block in self.blocks:
            more = self._moments(block, self.weight[block.rows])
            matrix += more[0]
            right += more[1]
        if not self.problem.fit_intercept:  # b stays 0
            matrix[-1], matrix[:, -1], right[-1] = 0.0, 0.0, 0.0
        diagonal = np.arange(self.penalties)
        matrix[diagonal, diagonal] += self.weight[self.n :]
        empty = np.flatnonzero(matrix.diagonal() == 0)
        matrix[empty, empty] = 1.0
        return matrix, right

    @property
    def wide(self) -> bool:
        """Whether the systems are those of the rows."""
        return self.penalties > 0 and self.n < self.d and self.n <= MAX_ROWS

    def few_rows(self) -> Callable[[Array], Array]:
        """Return right -> (Z'WZ + l2 D)^-1 right from a matrix of the rows."""
        root = np.sqrt(self.weight[: self.n])
        diagonal = self.shrink + np.append(self.weight[self.n :], 0.0 if self.problem.fit_intercept else 1.0)
        if self.blocks.sparse:
            return few_rows_solver((sp.diags_array(root) @ self._table).tocsc(), diagonal)
        return few_rows_solver(root[:, None] * self._table, diagonal)

    def predict(self, step: Array) -> tuple[Array, Array]:
        """Make the predicted step; return what it says of its length and the sums of the corrector."""
        sums, some = np.zeros((4, self.d + 1)), np.empty((4, self.d + 1))
        found = np.zeros(5)
        for start, rows in self.parts:
            finished, *part = core.predict_step(rows, step, self.vectors, start, some, *self._limits())
            self.budget.check(finished)
            sums += some
            found[:2] = np.maximum(found[:2], part[:2])
            found[2:] += part[2:]
        return found, sums

    def correct(self, step: Array, aim: float) -> Array:
        """Make the corrected step; return the reciprocals of its longest lengths."""
        largest = np.zeros(2)
        for start, rows in self.parts:
            finished, *part = core.correct_step(rows, step, aim, self.vectors, start, *self._limits())
            self.budget.check(finished)
            largest = np.maximum(largest, part)
        return largest

    def take(self, primal: float, dual: float) -> tuple[float, float, float]:
        """Take the step; return the loss, its distance from what a certifies, and the sum of products."""
        state: tuple[float, float, float] = core.take_step(primal, dual, self.vectors)
        return state

    def objective_and_gap(self, theta: Array, slope: Array, loss: float, slack: float) -> tuple[float, float]:
        """Return the objective and its distance from the bound that a certifies, slope = Z'a.

        An imbalance of a in b has to be made up for, at the price of what it would gain by moving b.
        """
        objective = loss + 0.5 * self.problem.l2 * float(theta[:-1] @ theta[:-1])
        return objective, slack + self.price(slope - self.shrink * theta, theta)

    def keep_off(self, theta: Array, tolerance: float) -> None:
        """Make absolute values count for less, where the tolerance allows it near this theta.

        Slopes then keep off l1, and that they are rounded costs nothing.
        """
        penalty = self.problem.l1 * float(np.abs(theta[:-1]).sum())
        limit = self.problem.l1 * (1.0 - min(KEPT_OFF, 0.3 * tolerance / max(penalty, 1e-300)))
        self.high[self.n :], self.low[self.n :] = limit, -limit

    def left_out(self, theta: Array) -> float:
        """Return the part of the penalty that does not count."""
        return float((self.problem.l1 - self.high[self.n :]) @ np.abs(theta[: self.penalties]))

    def price(self, unmet: Array, theta: Array) -> float:
        """Return what unmet = Z'a - l2 D theta adds to the gap."""
        price = float(np.abs(unmet[-1])) * (abs(theta[-1]) + self.unit)
        if self.problem.l2 > 0:
            return price + 0.5 * float(unmet[:-1] @ unmet[:-1]) / self.problem.l2
        return price + float(np.abs(unmet[:-1]) @ np.abs(theta[:-1]))

    def point(self, theta: Array, a: Array, residual: Array) -> Point:
        """Return theta and a with the gap that they will be certified with; residual = t - Z theta.

        :meth:`~sixfold.risk.problem.Problem.certify` makes up for an imbalance in b by shrinking one side,
        which moves the slopes of all columns.
        """
        even = a
        if self.problem.fit_intercept and self.one_sided:
            even = a.copy()
            even[: self.n] = BALANCE["sign"](a[: self.n, None], a[: self.n, None], np.ones(self.n))[:, 0]
        cost = np.maximum(self.high * residual, self.low * residual)
        slack, slope = float((cost - even * residual).sum()), self.slope(even)
        objective, gap = self.objective_and_gap(theta, slope, float(cost.sum()), slack)
        if self.problem.l2 == 0:
            unmet = slope - self.shrink * theta
            gap = max(slack - float(unmet @ theta), 0.0)
            gap = objective - self._share(slope, even) * max(objective - gap, 0.0)
        return Point(theta, a, gap)

    def _share(self, slope: Array, a: Array) -> float:
        """Return how much of a can be certified where no squared penalty puts a price on its slope."""
        if self.penalties:  # no slope of the rows may be above l1
            steepest = float(np.abs(slope[:-1] - a[self.n :]).max(initial=0.0))
            return min(self.problem.l1 / steepest, 1.0) if steepest > 0 else 1.0
        return float((np.abs(self.seen(slope)) <= NO_SLOPE * self.lengths * np.abs(a).sum()).all())

    @property
    def lengths(self) -> Array:
        """The lengths of the columns."""
        return np.ones(self.d + 1) if self.factor is None else self.factor.scale

    def seen(self, slope: Array) -> Array:
        """Return a slope without its part along combinations of columns that are 0 but for rounding."""
        if self.factor is None or self.factor.vectors is None:
            return slope
        vectors, scale = self.factor.vectors, self.factor.scale
        return np.asarray(scale * (vectors @ (vectors.T @ (slope / scale))))

    @cached_property
    def _table(self) -> Any:
        """The rows of Z that are not those of the penalty."""
        X, constant = self.blocks.whole().X, np.full((self.n, 1), float(self.problem.fit_intercept))
        return sp.hstack([X, constant]) if self.blocks.sparse else np.hstack([X - self.shift, constant])

    @property
    def few(self) -> bool:
        """Whether all rows of Z may be held at once, and an orthogonal factorisation is affordable."""
        return (self.n + self.penalties) * (self.d + 1) <= MOST_NUMBERS

    @cached_property
    def all_rows(self) -> Array:
        """Z."""
        return self.gather(np.arange(self.n + self.penalties))

    def gather(self, chosen: NDArray[np.intp]) -> Array:
        """Return the chosen rows of Z, in order."""
        result = np.zeros((chosen.size, self.d + 1))
        for block in self.blocks:
            begin, end = np.searchsorted(chosen, [block.rows.start, block.rows.stop])
            part = block.X[chosen[begin:end] - block.start]
            result[begin:end, :-1] = (part.toarray() if self.blocks.sparse else part) - self.shift
            result[begin:end, -1] = self.problem.fit_intercept
        begin = int(np.searchsorted(chosen, self.n))
        result[np.arange(begin, chosen.size), chosen[begin:] - self.n] = 1.0
        return result

    def _rows(self, X: Any) -> Any:
        constant = float(self.problem.fit_intercept)
        if not self.blocks.sparse:
            return core.dense_rows(X, self.shift, constant)
        starts = X.indptr.astype(X.indices.dtype, copy=False)
        return core.sparse_rows(X.data, X.indices, starts, self.d, constant)

    def _moments(self, block: Block, weight: Array) -> tuple[Array, Array]:
        """Return sum_i weight_i z_i z_i' and sum_i weight_i z_i t_i over the rows of a block."""
        y = block.y[:, self.target : self.target + 1]
        if self.blocks.sparse:
            gram, right = weighted_gram(block, weight, self.budget.flag), np.empty(self.d + 1)
            self.budget.check(core.row_slope(self._rows(block.X), weight * y[:, 0], right, *self._limits()))
            return gram, right
        gram = np.empty((self.d + 2, self.d + 2))
        about = np.append(self.shift, 0.0)
        self.budget.check(core.moments(block.X, y, weight, about, None, gram, *self._limits()))
        z = np.append(np.arange(self.d), self.d + 1)
        return gram[np.ix_(z, z)], gram[z, self.d]

    def _limits(self) -> tuple[float, NDArray[np.int32]]:
        return self.budget.seconds_left, self.budget.flag
