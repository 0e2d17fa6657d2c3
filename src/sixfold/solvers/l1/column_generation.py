"""Absolute values in the penalty, and more columns than a system may have: those that count, one by one found.

    minimise    sum_i q_i loss(w.x_i + b, y_i) + l1 |w|_1 + l2 |w|^2 / 2      over w_j, j in J;   w_j = 0 else

has a dual point u whose slopes g_j = -sum_i q_i u_i x_ij meet |g_j| <= l1 + l2 |w_j| for j in J. Where
|g_j| <= l1 for all others too, the minimum over J is that over all columns; where not, the columns with the
largest |g_j| come into J (column generation: Ford and Fulkerson 1958; for absolute values as a penalty,
Dedieu, Mazumder and Wang 2022). Some optimum has no more columns than rows in it where l2 = 0, so J stays as
small as that, and a method with a linear system of |J| + 1 unknowns in every step can be taken where one of
all columns would be too large. A column of J without a weight is dropped only where J would grow too large:
the least objective over J falls from round to round, so that no J comes twice.

Every target has columns of its own. A round is solved to a part of the gap that all columns together had
after the one before, and is one iteration of the budget.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.data.blocks import Block, Blocks, MemoryBlocks
from sixfold.risk.problem import BALANCE, Problem, normalized_weights
from sixfold.solvers.base import Rescuer, Solution, missing_methods
from sixfold.solvers.passes import transposed_times

Array = NDArray[Any]

MOST_UNKNOWNS = 4000  # of a system
FIRST_COLUMNS = 200  # and columns that are added at once, if J has not as many
INNER_PART = 0.05  # of the gap, to which the next round is solved
REST = 0.3  # of the tolerance, likewise
MOST_ROUNDS = 60
MOST_IDLE = 3  # rounds without a smaller gap or objective, after which only rounding is left


class ColumnGeneration:
    """The columns that count, found in rounds; ``solvers`` minimise over them, the first that can."""

    name: ClassVar[str] = "column-generation"
    title: ClassVar[str] = "column generation"
    needs: ClassVar[tuple[str, ...]] = ("gradient", "conjugate")
    notices_nonfinite: ClassVar[bool] = False

    def __init__(self, solvers: Sequence[Rescuer]) -> None:
        self.solvers = tuple(solvers)

    def objection(self, problem: Problem) -> str | None:
        """Return why this solver cannot minimise the problem, or None."""
        if problem.l1 == 0 or problem.penalty.positive:
            return "it minimises penalties with absolute values, without w >= 0"
        return None if self._inner(problem) else "no method is known for a part of the columns"

    def suits(self, problem: Problem, blocks: Blocks) -> bool:
        """Return whether coordinate descent is no choice and there are many columns."""
        return not problem.loss.smooth and self.rescues(problem, blocks)

    def rescues(self, problem: Problem, blocks: Blocks) -> bool:
        """Return whether systems of some columns are much smaller than one of all."""
        few = max(blocks.n_rows, FIRST_COLUMNS)
        return blocks.n_columns > min(few, _most_columns(problem, blocks))

    def _inner(self, problem: Problem) -> Rescuer | None:
        able = (one for one in self.solvers if not (missing_methods(one, problem) or one.objection(problem)))
        return next(able, None)

    def solve(
        self, problem: Problem, blocks: Blocks, budget: Budget, start: Solution | None = None
    ) -> Solution:
        """Minimise the problem, one target after the other, from the columns of ``start``."""
        inner = self._inner(problem)
        assert inner is not None
        whole, scores = blocks.whole(), problem.n_scores(blocks)
        w, b = np.zeros((blocks.n_columns, scores)), np.zeros(scores)
        dual = np.zeros((blocks.n_rows, scores))
        together = problem.loss.labels == "class"
        parts = [slice(0, scores)] if together else [slice(k, k + 1) for k in range(scores)]
        if start is not None:
            w, b = start.w.copy(), start.b.copy()
            dual = _slopes_of_rows(problem, whole, w, b) if start.dual is None else start.dual.copy()
        for part in parts:
            budget.new_part()
            y = whole.y if together else whole.y[:, part]
            target = _Target(problem, MemoryBlocks(whole.X, y, whole.weight), budget, inner)
            if start is None:
                target.begin(w[:, part], b[part])
            else:
                target.offer(w[:, part], b[part], dual[:, part])
            target.minimise()
            w[:, part], b[part], dual[:, part] = target.w, target.b, target.dual
        certificate, kept = problem.certify_with_dual("duality gap", w, b, blocks, budget.tol, dual)
        return Solution(w, b, certificate, self.title, len(budget.history), kept)


class _Target:
    """The best model of one target, or of all classes, and the dual point with the best bound."""

    def __init__(self, problem: Problem, blocks: MemoryBlocks, budget: Budget, inner: Rescuer) -> None:
        self.problem, self.blocks, self.budget, self.inner = problem, blocks, budget, inner
        self.block = blocks.whole()
        self.q = normalized_weights(self.block, blocks)
        self.scale = problem.constant_objective(blocks)
        self.most = _most_columns(problem, blocks)
        self.gap = self.objective = math.inf

    def begin(self, w: Array, b: Array) -> None:
        """Take w = 0, with any slopes of the loss there."""
        self.offer(w, b, _slopes_of_rows(self.problem, self.block, w, b))

    def offer(self, w: Array, b: Array, dual: Array) -> bool:
        """Take a model if its gap is smaller; true if it is, or the objective."""
        objective = self.problem.objective(w, b, self.blocks)
        gap = self.problem.gap(w, b, self.blocks, dual)
        better = gap < self.gap or objective < (1.0 - 1e-12) * self.objective
        self.objective = min(objective, self.objective)
        if not gap >= self.gap:
            self.w, self.b, self.dual, self.gap = w, b, dual, gap
        return better

    def minimise(self) -> None:
        """Go on until the gap is small enough, or no column is missing."""
        columns = np.flatnonzero(self.w.any(axis=1))
        size, idle = self.sizes(self.dual), 0
        columns = self.grown(columns[:0] if columns.size > self.most // 2 else columns, size, 0.0)
        for _ in range(MOST_ROUNDS):
            found = self.solve_on(columns)
            w = np.zeros((self.blocks.n_columns, found.w.shape[1]))
            w[columns] = found.w
            dual = found.dual
            if dual is None:
                dual = _slopes_of_rows(self.problem, self.block, w, found.b)
            idle = 0 if self.offer(w, found.b, dual) else idle + 1
            self.budget.record(self.objective, self.gap, self.scale)
            if self.gap <= self.budget.tol * self.scale or self.budget.exhausted() or idle > MOST_IDLE:
                return
            size = self.sizes(dual)
            before = columns
            columns = self.grown(columns, size, self.problem.l1)
            if columns.size > self.most:
                weighted = np.flatnonzero(w.any(axis=1))
                columns = self.grown(weighted, size, self.problem.l1)[: self.most]
            if columns.size == before.size and found.certificate.relative_gap > REST * self.budget.tol:
                return

    def solve_on(self, columns: Array) -> Solution:
        """Return the minimum over these columns."""
        left = self.budget.seconds_left
        tol = max(REST * self.budget.tol, INNER_PART * min(self.gap / self.scale, 1.0))
        limits = Budget(tol, time_limit=None if math.isinf(left) else max(left, 0.0))
        limits.flag = self.budget.flag
        some = MemoryBlocks(self.block.X[:, columns], self.block.y, self.block.weight)
        return self.inner.solve(self.problem, some, limits)

    def sizes(self, dual: Array) -> Array:
        """Return the largest |g_j| of each column."""
        u = dual
        if self.problem.fit_intercept:
            u = BALANCE[self.problem.loss.labels](u, self.problem.targets(self.block), self.q)
        return np.abs(transposed_times(self.block.X, self.q[:, None] * u)).max(axis=1)

    def grown(self, columns: Array, size: Array, least: float) -> Array:
        """Return the columns and the steepest of the others, as many again at most."""
        size = size.copy()
        size[columns] = 0.0
        steep = np.flatnonzero(size > least)
        most = max(columns.size, FIRST_COLUMNS)
        if steep.size > most:
            steep = steep[np.argpartition(-size[steep], most)[:most]]
        return np.union1d(columns, steep)


def _most_columns(problem: Problem, blocks: Blocks) -> int:
    scores = problem.n_scores(blocks) if problem.loss.labels == "class" else 1
    return MOST_UNKNOWNS // scores - 1


def _slopes_of_rows(problem: Problem, block: Block, w: Array, b: Array) -> Array:
    score = np.asarray(block.X @ w, dtype=np.float64) + b
    return np.asarray(problem.loss.gradient(score, problem.targets(block))).reshape(score.shape)
