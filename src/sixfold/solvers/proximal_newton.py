"""Smooth losses with an l1, elastic-net or sign constraint: Newton steps on working sets of columns.

    minimise    sum_i q_i loss(w.x_i + b, y_i) + alpha (rho |w|_1 + (1 - rho) |w|^2 / 2)

optionally with w >= 0; for the logistic loss, the squared hinge and the softmax. Most weights are zero at the
optimum, so only a working set of coordinates (a column and a score) is ever optimised over. One iteration

1. adds to the set the coordinates whose slopes g = -sum_i q_i u_i x_ij exceed their bound alpha rho most, where
   u_i = loss'(s_i) (Johnson and Guestrin 2015; Massias et al. 2018);
2. minimises over the set: a quadratic model of the loss with the penalty itself (proximal Newton, Lee, Sun and
   Saunders 2014; see :mod:`sixfold.solvers.curvature_model`), by coordinate descent and Newton steps on the signs
   found, then a line search along the step; again, until the set's own gap is small against that of all columns;
3. passes over all columns for their slopes, which bound the distance to the optimum: with t the largest fraction
   in [0, 1] for which all |t g| <= alpha rho (t = 1 unless rho = 1)

       R(w, b) - min R  <=  sum_i q_i FY_loss(s_i, t u_i) + alpha FY_penalty(w, t g / alpha)

   as in :mod:`sixfold.risk.problem`, u balanced over the rows if there is an intercept.

One-vs-rest targets are minimised one after the other, the scores of a softmax together. Memory beyond X: a copy of
the working columns (an eighth of X at most), their Gram matrix, vectors as long as the table; for a sparse X also
its copy as compressed columns.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.certificate import Certificate
from sixfold.risk.problem import BALANCE, Problem
from sixfold.solvers.active_set import Rule, descend, polish
from sixfold.solvers.columns import Columns, Interrupted, make_columns
from sixfold.solvers.curvature_model import Curvature, Model
from sixfold.solvers.working_columns import make_working_columns

Array = NDArray[Any]

# The first working set; from then on it grows by as many coordinates as have a weight.
FIRST_COORDINATES = 256
FIRST_COLUMNS = 1024
# Coordinates this near to their bound come along where there is room.
NEARLY = 0.8
# The set is solved to this part of the gap that all columns together have.
INNER_PART = 0.03
MOST_ROUNDS = 50
EPOCHS_A_ROUND = 100
MODEL_PART = 0.1
RESIDUAL_EPOCHS = 20
# The second derivatives are computed anew when a step on old ones leaves more than this of the set's gap.
SLOW = 0.25
SUFFICIENT = 1e-4  # share of the predicted decrease that a step has to bring (Armijo)
LEAST_DAMPING = 1e-10  # keeps every coordinate bent, also where no row is
# Iterations without a better gap or objective after which only rounding is left.
PATIENCE = 3
# Seconds for the certificate of a stopped fit; past them the last certified model is kept.
GRACE = 0.1
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Point:
    """Weights of one group of scores, and what a pass over the data says of them.

    w has shape (scores, columns), as its slopes downhill; c is the intercept of the centred columns.
    """

    w: Array
    c: Array
    slope: Array
    objective: float
    gap: float


def minimise(
    problem: Problem, X: Any, y: Array, weight: Array | None, n_scores: int, budget: Budget
) -> tuple[Array, Array, Certificate]:
    """Return w of shape (columns, scores), b of shape (scores,) and what is certified of them."""
    columns = make_columns(X, weight, problem.fit_intercept)
    if problem.loss.labels == "class":
        groups = [Search(problem, columns, y[:, 0], n_scores, budget)]
    else:
        y = y.astype(np.float64)
        groups = [Search(problem, columns, y[:, [k]], 1, budget) for k in range(n_scores)]
    try:
        _search(groups, columns, budget)
    except Interrupted:
        budget.exhausted()  # notes why
    if X.dtype != np.float64:  # what is certified is what is kept
        for group in groups:
            group.round_to(X.dtype)
    w = np.vstack([group.best.w for group in groups]).T
    b = np.concatenate([group.intercepts() for group in groups])
    return w, b, _certificate(groups, budget)


def _search(groups: list[Search], columns: Columns, budget: Budget) -> None:
    at_zero = np.hstack([group.balanced_slopes() for group in groups])
    slopes = -columns.start(np.ascontiguousarray(at_zero.T), budget)
    for k, group in enumerate(groups):
        group.begin(slopes[k * group.n_scores : (k + 1) * group.n_scores])
    if all(group.reached for group in groups):
        _record(groups, budget)
    for group in groups:
        stale = 0
        while not group.reached and stale < PATIENCE and not budget.exhausted():
            stale = 0 if group.improve() else stale + 1
            _record(groups, budget)


def _certificate(groups: list[Search], budget: Budget) -> Certificate:
    objective, gap, scale = _totals(groups)
    return Certificate("duality gap", objective, gap, scale, budget.tol)


def _record(groups: list[Search], budget: Budget) -> None:
    budget.record(*_totals(groups))


def _totals(groups: list[Search]) -> tuple[float, float, float]:
    return (
        sum(group.best.objective for group in groups),
        sum(group.best.gap for group in groups),
        sum(group.scale for group in groups),
    )


def _largest(ids: Array, size: Array, most: int) -> Array:
    """Return those of the ids that have the largest sizes, in order."""
    if len(ids) > most:
        ids = np.sort(ids[np.argpartition(-size[ids], most)[:most]])
    return ids


DEBUG = 0

class Search:
    """The minimum over the scores that share a label: one target, or all classes."""

    def __init__(self, problem: Problem, columns: Columns, y: Array, n_scores: int, budget: Budget) -> None:
        self.problem, self.columns, self.y, self.budget = problem, columns, y, budget
        self.loss, self.q = problem.loss, columns.share
        self.n_scores = n_scores
        self.rule = Rule(problem.l1, problem.l2, problem.penalty.positive)
        self.score = np.zeros((len(self.q), n_scores))
        self.scale = self._risk(self.score)
        self.c = np.zeros(n_scores)
        if problem.fit_intercept:
            self._settle_intercepts()
        d = columns.mean.size
        objective = self._risk(self.score)
        # Losses are never negative: before any pass over the data the objective is a bound.
        self.best = Point(np.zeros((n_scores, d)), self.c, np.zeros((n_scores, d)), objective, objective)
        self.working = make_working_columns(columns)
        self.model = Model(self.working, n_scores, problem.fit_intercept)
        self.w = np.empty(0)  # of the coordinates of the model
        self.damping = LEAST_DAMPING

    def begin(self, slope: Array) -> None:
        """Take the slopes at w = 0, which were found together with those of other groups."""
        self.newest = self.best = self._point(self.best.w, self.balanced_slopes(), slope)

    @property
    def reached(self) -> bool:
        """Whether the tolerance is met."""
        return self.best.gap <= self.budget.tol * self.scale

    def improve(self) -> bool:
        """Make one iteration; true if the next one may bring more."""
        before = self.newest
        grown = self._grow(before)
        try:
            self._lower(before, settled=grown == 0)
            self.newest = self._evaluate(self._weights(), self.budget)
        except Interrupted:
            with suppress(Interrupted):
                self._offer(self._evaluate(self._weights(), Budget(time_limit=GRACE)))
            raise
        lower = self.newest.objective < (1.0 - 1e-14) * before.objective
        better = grown > 0 or lower or self.newest.gap < 0.5 * self.best.gap
        self._offer(self.newest)
        return better

    def intercepts(self) -> Array:
        """Return b of the best point."""
        return self.best.c - self.best.w @ self.working.mean_of_table

    def round_to(self, dtype: Any) -> None:
        """Round the best point, and certify what is then kept."""
        w, b = (part.astype(dtype).astype(np.float64) for part in (self.best.w, self.intercepts()))
        self.c = b + w @ self.working.mean_of_table
        self.best = self._evaluate(w, Budget())

    # -- the working columns ----------------------------------------------------------------------

    def _grow(self, point: Point) -> int:
        """Fetch the columns that lower the objective most, and some that nearly do; return how many do."""
        size = self._steepness(point.slope).max(axis=0)
        size[self.working.ids] = 0.0
        over = int(np.count_nonzero(size > self.rule.l1))
        if over > 0:
            steep = np.flatnonzero(size > NEARLY * self.rule.l1)
            # Once few are missing, few that are near will turn out to be.
            self.working.grow(_largest(steep, size, min(FIRST_COLUMNS, FIRST_COLUMNS // 8 + 2 * over)))
        return over

    def _steepness(self, slope: Array) -> Array:
        return slope.copy() if self.rule.positive else np.abs(slope)

    def _admit(self, slope: Array) -> None:
        """Add the coordinates of working columns that lower the objective most."""
        size = self._steepness(slope)
        size[self.model.score, self.working.place[self.model.column]] = 0.0
        size = size.ravel()
        steep = np.flatnonzero(size > self.rule.l1)
        chosen = _largest(steep, size, max(FIRST_COORDINATES, int(np.count_nonzero(self.w))))
        score, place = np.divmod(chosen, slope.shape[1])
        self.model.extend(self.working.ids[place], score)
        self.w = np.concatenate([self.w, np.zeros(len(chosen))])

    def _renew(self, slope: Array) -> None:
        """Take the second derivatives where they are now, of the coordinates that still matter."""
        kept = np.flatnonzero(self.w)
        self.model.restrict(kept)
        self.w = self.w[kept]
        self.model.renew(Curvature.at(self.loss, self.score, self.y, self.q, self.damping))

    @property
    def _places(self) -> tuple[Array, Array]:
        return self.model.score, self.working.place[self.model.column]

    # -- the minimum over the working columns -----------------------------------------------------

    def _lower(self, point: Point, settled: bool) -> None:
        """Lower the objective on the set until its gap is small against that of all columns."""
        goal = 0.3 * self.budget.tol * self.scale
        if not settled:
            goal = max(goal, INNER_PART * point.gap)
        before = np.inf
        for _ in range(MOST_ROUNDS):
            u = self.loss.gradient(self.score, self.y)
            v = self.q[:, None] * u
            slope = -self.working.slopes(np.ascontiguousarray(v.T), self.budget)
            w = np.zeros_like(slope)
            w[self._places] = self.w
            left = self._bound(u, w, slope)
            if DEBUG: print('   ', '%.2e'%left, len(self.w), np.count_nonzero(self.w), len(self.working.ids), left>SLOW*before, self.damping)
            if left <= goal:
                return
            if self.model.fresh or left > SLOW * before:
                self._renew(slope)
            self._admit(slope)
            before = left
            if not self._newton_step(slope[self._places], -v.sum(axis=0), left):
                return

    def _newton_step(self, slope: Array, slope_b: Array, left: float) -> bool:
        """Minimise the model and search along the step to its minimum; false if nothing is left to win."""
        self.model.complete(self.budget)
        w, down = self.w.copy(), self.model.reduced_slope(slope, slope_b)
        # The gap is about |w|_1 times the largest error of a slope, and a move of a coordinate changes its
        # slope by curvature times the move.
        error = MODEL_PART * left / max(self.newest.objective, left) * self.rule.l1
        goal = error**2 / float(self.model.gram.diagonal().max(initial=EPS)) if error else 1e-3 * left / len(w)
        settled = descend(self.model.gram, w, down, self.rule, epochs=EPOCHS_A_ROUND, goal=goal, budget=self.budget)
        if not settled:
            polish(self.model.gram, w, down, self.rule, self.budget)
        step = w - self.w
        return self._search_line(w, slope, slope_b, self.model.intercept_step(slope_b, step))

    def _search_line(self, w: Array, slope: Array, slope_b: Array, step_c: Array) -> bool:
        """Move to w, or as far towards it as the objective falls; false if it does not."""
        along = self._combine(w - self.w) + step_c
        risk, penalty = self._risk(self.score), self.rule.penalty(self.w)
        decrease = slope @ (w - self.w) + slope_b @ step_c - (self.rule.penalty(w) - penalty)
        length = 1.0
        while length > 1e-10:
            trial = self.w + length * (w - self.w) if length < 1.0 else w
            moved = self.score + length * along
            change = (self._risk(moved) - risk) + (self.rule.penalty(trial) - penalty)
            if change <= 4.0 * EPS * (risk + penalty) - SUFFICIENT * length * decrease:
                break
            length *= 0.5
        else:
            return False
        self.w, self.c, self.score = trial, self.c + length * step_c, moved
        self.damping = max(self.damping / 8.0, LEAST_DAMPING) if length == 1.0 else min(
            max(4.0 * self.damping, 1e-3), 1.0
        )
        return bool(change < 0.0)

    def _combine(self, w: Array) -> Array:
        parts = []
        for k in range(self.n_scores):
            of_k = np.flatnonzero((self.model.score == k) & (w != 0.0))
            parts.append(self.working.combine(self.model.column[of_k], w[of_k], self.budget))
        return np.column_stack(parts)

    # -- what the data say ------------------------------------------------------------------------

    def _risk(self, score: Array) -> float:
        return float((self.q @ self.loss.value(score, self.y)).sum())

    def _settle_intercepts(self) -> None:
        """Find the best intercepts for w = 0, by damped Newton steps on sums over the rows."""
        for _ in range(100):
            slope = self.q @ self.loss.gradient(self.score, self.y)
            curvature = Curvature.at(self.loss, self.score, self.y, self.q, 1e-6)
            H = np.diag(curvature.own.sum(axis=0))
            if curvature.shared is not None:
                H -= curvature.shared.T @ curvature.shared
            step, risk = np.linalg.solve(H, -slope), self._risk(self.score)
            while self._risk(self.score + step) > risk and np.abs(step).max() > 1e-12:
                step = 0.5 * step
            if -slope @ step <= 1e-15 * risk:
                return
            self.c = self.c + step
            self.score = self.score + step

    def balanced_slopes(self) -> Array:
        """Return loss'(s) moved to where the bound of step 3 is finite in the intercept."""
        u = self.loss.gradient(self.score, self.y)
        if self.problem.fit_intercept:
            y = self.y
            u = BALANCE[self.loss.labels](u, y, self.q)
        u[self.q == 0.0] = 0.0
        return u

    def _weights(self) -> Array:
        w = np.zeros_like(self.best.w)
        w[self.model.score, self.model.column] = self.w
        return w

    def _evaluate(self, w: Array, budget: Budget) -> Point:
        support = [np.flatnonzero(row) for row in w]
        scores = [self.working.combine(ids, row[ids], budget) for ids, row in zip(support, w, strict=True)]
        self.score = np.column_stack(scores) + self.c
        u = self.balanced_slopes()
        return self._point(w, u, -self.columns.slopes(np.ascontiguousarray(u.T), budget))

    def _point(self, w: Array, u: Array, slope: Array) -> Point:
        objective = self._risk(self.score) + self.rule.penalty(w.ravel())
        return Point(w, self.c, slope, objective, min(self._bound(u, w, slope), objective))

    def _bound(self, u: Array, w: Array, slope: Array) -> float:
        alpha, penalty = self.problem.alpha, self.problem.penalty
        v = slope / alpha
        t = penalty.feasible_fraction(v)
        excess = float((self.q @ self.loss.fenchel_young(self.score, t * u, self.y)).sum())
        return excess + alpha * penalty.fenchel_young(w, t * v)

    def _offer(self, point: Point) -> None:
        if point.gap <= self.best.gap:
            self.best = point
