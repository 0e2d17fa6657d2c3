"""Dual coordinate descent for support vector machines: the hinge and its square, for sparse and wide data.

    minimise  l2 |w|^2 / 2 + sum_i q_i loss(y_i (w.x_i + b)),   loss(m) = max(0, 1 - m) or max(0, 1 - m)^2 / 2

Its dual is a box problem in one multiplier a row,

    maximise  sum_i a_i - sum_i a_i^2 r_i / 2 - |sum_i a_i y_i x_i|^2 / (2 l2),    0 <= a <= upper,
    subject to sum_i a_i y_i = 0 (if there is an intercept),

with upper = q and r = 0 for the hinge, no upper end and r = 1 / q for its square. Without the last line a
multiplier at a time is moved to its best value or a little past it, in random order, and rows that stay at
an end are set aside (Hsieh, Chang, Lin, Keerthi and Sundararajan 2008). Those between their ends are solved
for together once they are known. Few dense rows go through their products (:mod:`.gram_descent`).

The intercept is not penalised, so that line is there. It is met by the method of multipliers: b is drawn to a
centre by rho (b - centre)^2 / 2, and every time the multipliers have settled the centre moves to b. Near the
optimum an error in b shrinks by rho / (rho + c) each time, where the curvature c of the objective in b is
about l2 / mean |x|^2 for every row on the margin: with rho = 30 l2 / mean |x|^2 a handful of moves suffices.
Columns in very different units or a penalty that hardly counts make all this slow; an interior point is the
better choice where there are few columns.

u = -a y / q is the dual point behind the duality gap.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.certificate import Certificate
from sixfold.data.blocks import Blocks
from sixfold.risk.multiplier_bound import certify_multipliers
from sixfold.risk.problem import Problem, normalized_weights
from sixfold.solvers.base import Solution
from sixfold.solvers.margin.gram_descent import solve_by_products, suits_products
from sixfold.solvers.margin.interior_point import InteriorPoint
from sixfold.solvers.margin.progress import MarginProgress
from sixfold.solvers.smooth.objective import inner
from sixfold.solvers.wide_tables import MAX_ROWS, RowCoordinates

Array = NDArray[Any]
HINGES = ("hinge", "squared_hinge")
PASSES = 100  # over the active rows before all rows are looked at again
# How loose b is, in rows: 50,000 x 100,000 texts took 31 passes with 0.1, 28 with 0.03, 32 with 0.01,
# and 26 without intercept.
DRAW = 0.03
STIFFEST = 0.1  # rho beyond which multipliers, which add up to 1 at most, could hardly move b at all
ENOUGH = 0.8  # of the gap asked for: what a round expects to be left is about the gap, not quite
FIRST = 0.1  # gap of the first round, of the objective at zero weights
SHRINK = 0.03  # how much smaller the gap of the next round should be
WIDE = 3  # columns a row
SQUARED_ROWS_A_COLUMN = 1.5
MOST_PASSES = 250  # over all rows, where an interior point suits, which takes as long as these
WATCHED = 10  # rounds that should halve the gap, if another solver could do it
UNCHANGED = 1e-15  # of the largest entry: a round that changes no more has nothing left to change


class DualCoordinate:
    """One multiplier at a time, in random order; several targets one after the other."""

    name: ClassVar[str] = "dual_coordinate"
    needs: ClassVar[tuple[str, ...]] = ("gradient", "conjugate", "domain")
    notices_nonfinite: ClassVar[bool] = False

    def objection(self, problem: Problem) -> str | None:
        """Return why this solver cannot minimise the problem, or None."""
        if problem.loss.name not in HINGES:
            return "it is made for the hinge and its square"
        if problem.l2 == 0 or not problem.penalty.quadratic:
            return "it needs the l2 penalty, and no other"
        return None

    def suits(self, problem: Problem, blocks: Blocks) -> bool:
        """Return whether the rows are sparse or wide enough to be cheaper than systems of all columns."""
        if suits_products(problem, blocks):
            return True
        if problem.loss.name == "squared_hinge":
            # With fewer rows than columns as good as every row counts, and each moves freely. 2,000 texts in
            # five classes, C = 1e4, take 20 ms, and 70 s by conjugate gradients; 2,000 x 2,000 rows take 2.5
            # ms instead of 7 at C = 1, and 3 instead of 1,100 at C = 100. Twice as many rows take longer.
            return blocks.sparse and blocks.n_rows < SQUARED_ROWS_A_COLUMN * blocks.n_columns
        return _is_wide(blocks) or not InteriorPoint().suits(problem, blocks)

    def solve(
        self, problem: Problem, blocks: Blocks, budget: Budget, start: Solution | None = None
    ) -> Solution:
        """Minimise the problem; multipliers begin at 0, wherever another solver ended."""
        if suits_products(problem, blocks):
            found = solve_by_products(problem, blocks, budget)
            if found is not None and (found.certificate.converged or budget.another_follows):
                return found
        wide = RowCoordinates.of(problem, blocks, budget) if _is_wide(blocks) else None
        if wide is not None:
            return wide.solve(self, None)
        w, b = np.zeros((blocks.n_columns, blocks.n_targets)), np.zeros(blocks.n_targets)
        descent = _DualDescent(problem, blocks, budget)
        for k in range(blocks.n_targets):
            budget.new_part()
            w[:, k], b[k] = descent.minimise(k)
        w, b = blocks.rounded(w), blocks.rounded(b)
        certificate = descent.certify(w, b)
        return Solution(w, b, certificate, "dual coordinate descent", len(budget.history), descent.dual)


class _DualDescent:
    """What all targets share: rows, their lengths, limits and progress."""

    def __init__(self, problem: Problem, blocks: Blocks, budget: Budget) -> None:
        self.problem, self.blocks, self.budget = problem, blocks, budget
        self.progress = MarginProgress(problem, blocks, budget)
        self.rows = _native_rows(blocks)
        self.q = np.concatenate([normalized_weights(block, blocks) for block in blocks])
        self.dual = np.zeros((blocks.n_rows, blocks.n_targets))
        # y, upper, quadratic, |x|^2 and a, as the native loop knows them
        self.vectors = np.zeros((5, blocks.n_rows))
        squared, counts = problem.loss.name == "squared_hinge", self.q > 0
        self.vectors[1] = np.where(counts, np.inf, 0.0) if squared else self.q
        if squared:
            np.divide(1.0, self.q, out=self.vectors[2], where=counts)
        core.row_squares(self.rows, self.vectors[3])
        self.counted = np.flatnonzero(counts).astype(np.int32)
        self.order = np.empty(blocks.n_rows, np.int32)  # begins with the rows that are not set aside
        mean = float(self.q @ self.vectors[3])
        self.rho = min(problem.l2 / (DRAW * mean or 1.0), STIFFEST) if problem.fit_intercept else np.inf

    def minimise(self, k: int) -> tuple[Array, float]:
        """Return w and b of one target; its multipliers go to ``dual``."""
        y, _, _, _, a = self.vectors
        y[:], a[:] = np.concatenate([block.y[:, k] for block in self.blocks]), 0.0
        goal = self.progress.tolerance(k)
        enough = FIRST * self.progress.objective[k]
        lowest, bound = float(self.progress.objective[k]), -np.inf  # of the zero model
        w, centre, balance, random = np.zeros(self.blocks.n_columns), 0.0, 0.0, 1
        high, low = np.inf, -np.inf
        best, active = (w.copy(), 0.0), self.counted.size
        gaps: list[float] = []
        follows, left = self.budget.another_follows, np.inf
        if follows and InteriorPoint().suits(self.problem, self.blocks):
            left = MOST_PASSES * self.counted.size
        self.order[:active] = self.counted
        for _ in self.budget.iterations():
            before = w.copy(), a.copy()
            balance, high, low, random, passes = core.descend_margins(
                X=self.rows,
                vectors=self.vectors,
                w=w,
                order=self.order[:active],
                l2=self.problem.l2,
                rho=self.rho,
                balance=balance,
                centre=centre,
                high=high,
                low=low,
                random=random,
                enough=enough,
                passes=PASSES,
                seconds_left=self.budget.seconds_left,
                flag=self.budget.flag,
            )
            b = centre + balance / self.rho
            left -= passes * active
            value, gap, active = self._record(k, w, b, balance, (high, low))
            # The best model and the best bound need not be of one iteration.
            if value < lowest:
                best, lowest = (w.copy(), b), value
            if value - gap > bound:
                bound = value - gap
                np.divide(-a * y, self.q, out=self.dual[:, k], where=self.q > 0)
            settled = abs(b - centre) <= UNCHANGED * (1.0 + abs(b))
            if gap <= goal or (settled and _same(w, before[0]) and _same(a, before[1])):
                break
            gaps.append(gap)
            if left <= 0 or (follows and len(gaps) > WATCHED and gap > 0.5 * gaps[-WATCHED]):
                break
            centre = b
            enough = min(enough, max(SHRINK * gap, ENOUGH * goal))
            if gap <= goal / ENOUGH:
                enough *= 0.5  # what was summed up on the way promised too much
        return best

    def certify(self, w: Array, b: Array) -> Certificate:
        """Return the certificate of all targets."""
        block, tol, scale = self.blocks.whole(), self.budget.tol, self.progress.scale
        found, y = None, np.asarray(block.y, dtype=np.float64)
        if self.progress.gap.sum() <= tol * scale:
            none = np.zeros(self.blocks.n_columns)
            found = certify_multipliers(self.problem, block.X, none, y, self.q, w, b, self.dual, tol, scale)
        if found is None:
            found = self.problem.certify("duality gap", w, b, self.blocks, tol, self.dual, scale)
        return found

    def _record(
        self, k: int, w: Array, b: float, balance: float, aside: tuple[float, float]
    ) -> tuple[float, float, int]:
        """Return objective and gap, infinite if there was no time for them, and the number of active rows."""
        finished, loss, slack, active = core.margin_gap(
            X=self.rows,
            vectors=self.vectors,
            w=w,
            b=b,
            next=b + balance / self.rho,
            high=aside[0],
            low=aside[1],
            order=self.order,
            seconds_left=self.budget.seconds_left,
            flag=self.budget.flag,
        )
        if not finished:
            return np.inf, np.inf, active
        # Multipliers that do not add up to 0 will be made up for by shrinking those of one side, at the price
        # of their distances from the margin: 1 + |b| for weights near 0.
        if self.problem.fit_intercept:
            slack += 2.0 * abs(balance) * (1.0 + abs(b))
        value = float(loss + 0.5 * self.problem.l2 * inner(w, w))
        self.progress.record(k, value, slack)
        return value, float(slack), active


def _is_wide(blocks: Blocks) -> bool:
    return not blocks.sparse and WIDE * blocks.n_rows <= blocks.n_columns and blocks.n_rows <= MAX_ROWS


def _same(values: Array, before: Array) -> bool:
    change = np.abs(values - before).max(initial=0.0)
    return bool(change <= UNCHANGED * np.abs(values).max(initial=0.0))


def _native_rows(blocks: Blocks) -> Any:
    """Return the whole table as native rows: they are visited in random order, so all must be at hand."""
    X = blocks.whole().X
    if blocks.sparse:
        starts = X.indptr.astype(X.indices.dtype, copy=False)
        return core.sparse_rows(X.data, X.indices, starts, blocks.n_columns, 1.0)
    return core.dense_rows(np.ascontiguousarray(X), np.zeros(blocks.n_columns), 1.0)
