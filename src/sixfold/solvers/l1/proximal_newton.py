"""Smooth losses with an l1, elastic-net or sign constraint: Newton steps on working sets of columns.

    minimise    sum_i q_i loss(w.x_i + b, y_i) + alpha (rho |w|_1 + (1 - rho) |w|^2 / 2)

optionally with w >= 0; for the logistic loss, the squared hinge and the softmax. Most weights are zero at
the optimum, so only a working set of columns is ever optimised over. One iteration

1. adds to the set the columns whose slopes g = -sum_i q_i u_i x_ij exceed their bound alpha rho most,
   where u_i = loss'(s_i) (Johnson and Guestrin 2015; Massias et al. 2018);
2. minimises over the set (see :mod:`sixfold.solvers.l1.subproblem`) until the set's own gap is small
   against that of all columns;
3. passes over all columns for their slopes, which bound the distance to the optimum: with t the largest
   fraction in [0, 1] for which all |t g| <= alpha rho (t = 1 unless rho = 1)

       R(w, b) - min R  <=  sum_i q_i FY_loss(s_i, t u_i) + alpha FY_penalty(w, t g / alpha)

   as in :mod:`sixfold.risk.problem`, u balanced over the rows if there is an intercept.

One-vs-rest targets are minimised one after the other, the scores of a softmax together. Memory beyond X:
the Gram matrix of the weights that are not zero, vectors as long as the table, and for a table in row
order a copy of the working columns (an eighth of X at most); for a sparse X its copy as compressed
columns.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget, BudgetExhausted
from sixfold.risk.problem import Problem
from sixfold.solvers.l1.columns import Columns, make_columns
from sixfold.solvers.l1.score_risk import ScoreRisk
from sixfold.solvers.l1.subproblem import WorkingMinimum, largest
from sixfold.solvers.l1.working_set import make_working_columns

Array = NDArray[Any]

FETCHED_COLUMNS = 1024  # at a time, after a pass over all of them
# Columns this near to their bound come along where there is room: passes are dear, working columns are not.
# For least squares that saves one pass in six.
NEAR_BOUND = 0.8
# The set is solved to this part of the gap that all columns together have; once no column is missing, to this
# part of the tolerance.
INNER_PART = 0.05
REST = 0.3
# Iterations without a better gap or objective after which only rounding is left.
MOST_STALE_ITERATIONS = 3
# Seconds for the certificate of a stopped fit; past them the last certified model is kept.
GRACE_SECONDS = 0.1
LONGEST_STEP = 2.0  # along a path of penalties, as a multiple of the one before


@dataclass
class PathMemory:
    """What a solve leaves for the next one on the same rows under another penalty.

    The columns and those that were worked on, the weights, their scores and slopes, and the model of second
    derivatives: it is all still right, or nearly, where the penalty has changed a little.
    """

    rows: tuple[Any, ...] = ()
    columns: Columns | None = None
    states: list[ProximalNewtonState] = field(default_factory=list)

    def recall(self, problem: Problem, rows: tuple[Any, ...], budget: Budget) -> list[ProximalNewtonState]:
        """Return the states for another penalty, or none where the rows or the loss are not those."""
        same = len(rows) == len(self.rows) and all(a is b for a, b in zip(rows, self.rows, strict=True))
        if not same or any(not state.resumes(problem) for state in self.states):
            return []
        for state in self.states:
            state.resume(problem, budget)
        return self.states

    def keep(self, rows: tuple[Any, ...], columns: Columns, states: list[ProximalNewtonState]) -> None:
        """Keep what was found."""
        self.rows, self.columns, self.states = rows, columns, states

    def forget(self) -> None:
        """Keep nothing."""
        self.rows, self.columns, self.states = (), None, []


def minimise(
    problem: Problem,
    X: Any,
    y: Array,
    weight: Array | None,
    n_scores: int,
    budget: Budget,
    memory: PathMemory | None = None,
) -> tuple[Array, Array]:
    """Return w of shape (columns, scores) and b of shape (scores,)."""
    memory = PathMemory() if memory is None else memory
    rows = (X, y, weight)
    states = memory.recall(problem, rows, budget)
    begun, columns = len(states) > 0, memory.columns
    if not begun or columns is None:
        columns = make_columns(X, weight, problem.fit_intercept)
        if problem.loss.labels == "class":
            risks = [ScoreRisk(problem, y[:, 0], columns.q, n_scores)]
        else:
            y = y.astype(np.float64)
            risks = [ScoreRisk(problem, y[:, [k]], columns.q, 1) for k in range(n_scores)]
        states = [ProximalNewtonState(risk, columns, budget) for risk in risks]
    memory.forget()
    try:
        if not begun:
            _begin_all(states, columns, budget)
        _improve_all(states, budget)
        memory.keep(rows, columns, states)
    except BudgetExhausted:
        budget.exhausted()  # notes why
    best = [state.best for state in states]
    if X.dtype != np.float64:  # what is certified is what is kept
        best = [state.rounded(X.dtype) for state in states]
    w = np.vstack([point.w for point in best]).T
    b = np.concatenate([state.intercepts(point) for state, point in zip(states, best, strict=True)])
    return w, b


def _begin_all(states: list[ProximalNewtonState], columns: Columns, budget: Budget) -> None:
    """Find the slopes at w = 0, in one pass over the data."""
    slopes_of_rows = np.hstack([state.risk.balanced_slopes(state.minimum.score) for state in states])
    slopes = -columns.start(np.ascontiguousarray(slopes_of_rows.T), budget)
    for state, slope in zip(states, np.split(slopes, len(states)), strict=True):
        state.begin(slope)


def _improve_all(states: list[ProximalNewtonState], budget: Budget) -> None:
    if all(state.reached for state in states):
        budget.record(*_totals(states))
    for state in states:
        budget.new_part()
        stale = 0
        while not state.reached and stale < MOST_STALE_ITERATIONS and not budget.exhausted():
            stale = 0 if state.improve() else stale + 1
            budget.record(*_totals(states))
            if state.minimum.crawls:
                return


def _totals(states: list[ProximalNewtonState]) -> tuple[float, float, float]:
    """Return objective, gap and scale of all states together."""
    points = [state.best for state in states]
    scale = sum(state.risk.scale for state in states)
    return sum(point.objective for point in points), sum(point.gap for point in points), scale


@dataclass(frozen=True)
class SmoothLossPoint:
    """Weights of scores that share a label, and what a pass over the data says of them.

    w has shape (scores, columns), as its slopes downhill; c is the intercept of the centred columns.
    """

    w: Array
    c: Array
    slope: Array
    objective: float
    gap: float


@dataclass(frozen=True)
class PathPoint:
    """The minimum under one penalty: with the one before, it tells where the next may be."""

    problem: Problem
    w: Array
    c: Array
    score: Array

    def part_of_step(self, before: PathPoint, problem: Problem) -> float:
        """Return how far the next penalty is, in steps from the one before to this; 0 if it is elsewhere."""
        problems = (before.problem, self.problem, problem)
        if any(one.penalty != problem.penalty for one in problems):
            return 0.0
        old, own, new = (math.log(one.alpha) for one in problems)
        part = (new - own) / (own - old) if own != old else 0.0
        return part if 0.0 < part <= LONGEST_STEP else 0.0

    def extrapolate(self, before: PathPoint, part: float) -> tuple[Array, bool]:
        """Return the weights so many steps on, none of another sign; and whether all went as far as that."""
        w = self.w + part * (self.w - before.w)
        turned = w * self.w <= 0.0
        w[turned] = 0.0
        return w, not (turned & ((self.w != 0.0) | (before.w != 0.0))).any()


class ProximalNewtonState:
    """The minimum over the scores that share a label: one target, or all classes."""

    def __init__(self, risk: ScoreRisk, columns: Columns, budget: Budget) -> None:
        self.risk, self.columns, self.budget = risk, columns, budget
        self.working = make_working_columns(columns)
        self.minimum = WorkingMinimum(risk, self.working, budget)
        self.rule = self.minimum.rule
        self._before: PathPoint | None = None
        nothing = np.zeros((risk.n_scores, columns.mean.size))
        objective = risk.value(self.minimum.score)
        # Losses are never negative: before any pass over the data the objective is a bound.
        self.newest = self.best = SmoothLossPoint(nothing, self.minimum.c, nothing, objective, objective)

    def begin(self, slope: Array) -> None:
        """Take the slopes at w = 0, which were found together with those of other states."""
        score = self.minimum.score
        self.newest = self.best = self._point(self.best.w, self.minimum.c, score, slope)

    def resumes(self, problem: Problem) -> bool:
        """Return whether another problem differs in the penalty only."""
        own = self.risk.problem
        same = problem.loss is own.loss and problem.fit_intercept == own.fit_intercept
        return same and problem.penalised and problem.penalty.positive == own.penalty.positive

    def resume(self, problem: Problem, budget: Budget) -> None:
        """Go on from the newest point with another penalty; its slopes are those of the loss, and stay."""
        minimum, point = self.minimum, self.newest
        here = PathPoint(self.risk.problem, self._weights(), minimum.c, minimum.score)
        self.risk, self.budget = self.risk.under(problem), budget
        minimum.resume(self.risk, budget)
        self.rule, before = minimum.rule, self._before
        self.newest = self.best = self._point(point.w, minimum.c, minimum.score, point.slope)
        self._before = here
        part = 0.0 if before is None else here.part_of_step(before, problem)
        if part > 0.0 and not self.reached and before is not None:
            w, exact = here.extrapolate(before, part)
            minimum.w = w[minimum.model.score, minimum.model.column]
            minimum.c = here.c + part * (here.c - before.c)
            if exact:
                minimum.score = here.score + part * (here.score - before.score)
            else:
                minimum.score = self._scores(w, minimum.c, budget)

    @property
    def reached(self) -> bool:
        """Whether the tolerance is met."""
        return bool(self.best.gap <= self.budget.tol * self.risk.scale)

    def improve(self) -> bool:
        """Make one iteration; true if the next one may bring more."""
        before = self.newest
        grown = self._grow(before)
        goal = REST * self.budget.tol * self.risk.scale
        try:
            self.minimum.lower(goal if grown == 0 else max(goal, INNER_PART * before.gap))
            self.newest = self._evaluate(self._weights(), self.minimum.c, self.budget)
        except BudgetExhausted:
            with suppress(BudgetExhausted):
                self._offer(self._evaluate(self._weights(), self.minimum.c, Budget(time_limit=GRACE_SECONDS)))
            raise
        lower = self.newest.objective < (1.0 - 1e-14) * before.objective
        better = grown > 0 or lower or self.newest.gap < 0.5 * self.best.gap
        self._offer(self.newest)
        return better

    def intercepts(self, point: SmoothLossPoint) -> Array:
        """Return b of a point."""
        b = np.asarray(point.c - point.w @ self.working.table_mean)
        # Those of classes may all move by the same amount.
        return b - b.mean() if self.risk.loss.labels == "class" and self.risk.problem.fit_intercept else b

    def rounded(self, dtype: Any) -> SmoothLossPoint:
        """Return the best point rounded, with the intercepts that suit rounded weights."""
        w = self.best.w.astype(dtype).astype(np.float64)
        c = self.intercepts(self.best) + w @ self.working.table_mean
        if self.risk.problem.fit_intercept:
            c = c + self.risk.best_shift(self._scores(w, c, Budget()))
        b = (c - w @ self.working.table_mean).astype(dtype).astype(np.float64)
        return self._evaluate(w, b + w @ self.working.table_mean, Budget())

    def _grow(self, point: SmoothLossPoint) -> int:
        """Fetch columns that lower the objective, and some that nearly do; return how many were missing."""
        size = (point.slope if self.rule.positive else np.abs(point.slope)).max(axis=0)
        size[self.working.ids] = 0.0
        missing = int(np.count_nonzero(size > self.rule.l1))
        if missing > 0:
            steep = np.flatnonzero(size > NEAR_BOUND * self.rule.l1)
            # Once few are missing, few that are near will turn out to be.
            self.working.grow(largest(steep, size, min(FETCHED_COLUMNS, FETCHED_COLUMNS // 8 + 2 * missing)))
        return missing

    def _weights(self) -> Array:
        w = np.zeros_like(self.best.w)
        w[self.minimum.model.score, self.minimum.model.column] = self.minimum.w
        return w

    def _scores(self, w: Array, c: Array, budget: Budget) -> Array:
        support = [np.flatnonzero(row) for row in w]
        parts = [self.working.combine(ids, row[ids], budget) for ids, row in zip(support, w, strict=True)]
        return np.column_stack(parts) + c

    def _evaluate(self, w: Array, c: Array, budget: Budget) -> SmoothLossPoint:
        score = self._scores(w, c, budget)
        u = np.ascontiguousarray(self.risk.balanced_slopes(score).T)
        return self._point(w, c, score, -self.columns.slopes(u, budget))

    def _point(self, w: Array, c: Array, score: Array, slope: Array) -> SmoothLossPoint:
        objective = self.risk.value(score) + self.rule.penalty(w.ravel())
        gap = self.risk.bound(score, self.risk.balanced_slopes(score), w, slope)
        return SmoothLossPoint(w, c, slope, objective, min(gap, objective))

    def _offer(self, point: SmoothLossPoint) -> None:
        if point.gap <= self.best.gap:
            self.best = point
