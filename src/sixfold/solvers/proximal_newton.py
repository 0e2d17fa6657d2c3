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

# Columns fetched at a time after a pass over all of them. Those near to their bound come along where there is room:
# passes are dear, working columns are not.
FIRST_COLUMNS = 1024
NEARLY = 0.8
# Coordinates the first model begins with; later ones grow by half as many as have a weight.
FIRST_COORDINATES = 256
# The set is solved to this part of the gap that all columns together have; once no column is missing, to this part
# of the tolerance.
INNER_PART = 0.05
REST = 0.3
MOST_ROUNDS = 50
# A model is minimised until the gap it leaves is this part of the one before.
MODEL_PART = 0.1
EPOCHS_A_ROUND = 100
MOST_POLISHES = 5
RESIDUAL_EPOCHS = 50
# Second derivatives are computed anew when a step on old ones leaves more than this of the gap.
SLOW = 0.15
# A step that brings less than this share of the decrease that its slope promises is cut to the best length.
SUFFICIENT = 0.1
BISECTIONS = 30
# Steps cut to less than this call for more damping, which is never less than what keeps every coordinate bent.
SHORT = 0.25
LEAST_DAMPING = 1e-10
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
        chosen = _largest(steep, size, max(FIRST_COORDINATES, np.count_nonzero(self.w) // 2))
        score, place = np.divmod(chosen, slope.shape[1])
        self.model.extend(self.working.ids[place], score)
        self.w = np.concatenate([self.w, np.zeros(len(chosen))])

    def _trim(self) -> None:
        """Drop the coordinates without a weight."""
        kept = np.flatnonzero(self.w)
        self.model.restrict(kept)
        self.w = self.w[kept]

    @property
    def _places(self) -> tuple[Array, Array]:
        return self.model.score, self.working.place[self.model.column]

    # -- the minimum over the working columns -----------------------------------------------------

    def _lower(self, point: Point, settled: bool) -> None:
        """Lower the objective on the set until its gap is small against that of all columns."""
        goal = REST * self.budget.tol * self.scale
        if not settled:
            goal = max(goal, INNER_PART * point.gap)
        before, lower = np.inf, True
        for _ in range(MOST_ROUNDS):
            if self.budget.interrupted or self.budget.seconds_left <= 0.0:
                raise Interrupted
            u = self.loss.gradient(self.score, self.y)
            slope = -self.working.slopes(np.ascontiguousarray((self.q[:, None] * u).T), self.budget)
            w = np.zeros_like(slope)
            w[self._places] = self.w
            left = self._bound(u, w, slope)
            # Close to the minimum the objective moves by less than its rounding while the gap still falls.
            if left <= goal or not (lower or left < 0.5 * before):
                return
            # On its own coordinates a model that is still good has left little.
            slow = self._bound(u, self.w, slope[self._places]) > SLOW * before
            if slow:
                self._trim()
                self.model.forget()
            self._admit(slope)
            before = left
            if self.working.gram_pays(self.model.column, slow):
                lower = self._step_on_gram(u, slope[self._places], left)
            else:
                lower = self._step_on_residuals(left)
            if self.problem.fit_intercept:
                self._settle_intercepts()

    def _step_on_gram(self, u: Array, slope: Array, left: float) -> bool:
        """Minimise the model and search along the step to its minimum; false if nothing is left to win."""
        if self.model.empty:
            self.model.renew(Curvature.at(self.loss, self.score, self.y, self.q, self.damping))
        self.model.complete(self.budget)
        gram, slope_b = self.model.gram, -self.q @ u
        w, down = self.w.copy(), self.model.reduced_slope(slope, slope_b)
        goal = self._move_goal(left, float(gram.diagonal().max(initial=0.0)))
        for _ in range(MOST_POLISHES):
            if descend(gram, w, down, self.rule, epochs=EPOCHS_A_ROUND, goal=goal, budget=self.budget):
                break
            polish(gram, w, down, self.rule, self.budget)
        return self._search_line(u, w, self.model.intercept_step(slope_b, w - self.w))

    def _step_on_residuals(self, left: float) -> bool:
        """Do the same for one score after the other, where a Gram matrix would be too large."""
        self.model.forget()
        lower = False
        for k in range(self.n_scores):
            of_k = np.flatnonzero(self.model.score == k)
            u = self.loss.gradient(self.score, self.y)
            curvature = Curvature.at(self.loss, self.score, self.y, self.q, self.damping).of_score(k)
            total, pull = curvature.sum(), -self.q * u[:, k]
            share, v = curvature / total, pull / total
            centred = self.problem.fit_intercept
            if centred:
                v -= v.sum() * share
            part, residuals = self.w[of_k], self.working.residuals(self.model.column[of_k], share, centred)
            goal = self._move_goal(left, total * float(residuals.curvature.max(initial=0.0))) / total
            rule = (self.rule.l1 / total, self.rule.l2 / total, self.rule.positive, RESIDUAL_EPOCHS, goal)
            finished = residuals.descend(v, part, rule, self.budget)
            w, step_c = self.w.copy(), np.zeros(self.n_scores)
            w[of_k] = part
            if centred:
                centre = residuals.mean - self.working.mean_of_table[self.model.column[of_k]]
                step_c[k] = pull.sum() / total - (part - self.w[of_k]) @ centre
            lower |= self._search_line(u, w, step_c)
            if not finished:
                raise Interrupted
        return lower

    def _move_goal(self, left: float, curvature: float) -> float:
        """Return how little curvature * move^2 has to become in coordinate descent on the model.

        A move changes the slope of its coordinate by curvature * move. Errors e of the slopes leave a gap of about
        |w|_1 max |e|, or with squares in the penalty one of |e|^2 / (2 l2).
        """
        part = MODEL_PART * left
        if self.rule.l2 > 0.0:
            return 2.0 * self.rule.l2 * part / (len(self.w) * (curvature + self.rule.l2))
        return (self.rule.l1 * part / max(self.newest.objective, left)) ** 2 / max(curvature, EPS**2)

    def _search_line(self, u: Array, w: Array, step_c: Array) -> bool:
        """Move to w, or to the minimum on the way there; false if the objective does not fall beyond rounding."""
        step, along = w - self.w, self._combine(w - self.w) + step_c
        risk, penalty = self._risk(self.score), self.rule.penalty(self.w)
        decrease = penalty - self.rule.penalty(w) - float((self.q @ (u * along)).sum())
        rounding = 4.0 * EPS * (risk + penalty)
        length, moved = 1.0, self.score + along
        change = (self._risk(moved) - risk) + (self.rule.penalty(w) - penalty)
        if change > rounding - SUFFICIENT * decrease:
            length = self._minimum_on_the_way(step, along)
            w, moved = self.w + length * step, self.score + length * along
            change = (self._risk(moved) - risk) + (self.rule.penalty(w) - penalty)
        if length < SHORT:
            exhausted = self.damping == 1.0
            self.damping = min(max(8.0 * self.damping, 1e-4), 1.0)
            self.model.forget()
            if change >= 0.0:
                return not exhausted
        else:
            self.damping = max(self.damping / 8.0, LEAST_DAMPING)
        self.w, self.c, self.score = w, self.c + length * step_c, moved
        return bool(change < -rounding)

    def _minimum_on_the_way(self, step: Array, along: Array) -> float:
        """Return the length in [0, 1] that lowers the objective most, by bisection of its slope."""
        low, high = 0.0, 1.0
        for _ in range(BISECTIONS):
            length = 0.5 * (low + high)
            u = self.loss.gradient(self.score + length * along, self.y)
            w = self.w + length * step
            slope = float((self.q @ (u * along)).sum()) + step @ (self.rule.l1 * np.sign(w) + self.rule.l2 * w)
            low, high = (length, high) if slope < 0.0 else (low, length)
            if high < 1.25 * low:
                break
        return low

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
        """Find the best intercepts for the weights as they are, by Newton steps on sums over the rows.

        With one class only they would grow for ever: they end where that gains nothing.
        """
        for _ in range(100):
            slope = self.q @ self.loss.gradient(self.score, self.y)
            curvature = Curvature.at(self.loss, self.score, self.y, self.q, LEAST_DAMPING)
            H = np.diag(curvature.own.sum(axis=0))
            if curvature.shared is not None:
                H -= curvature.shared.T @ curvature.shared
            step, risk = -np.linalg.pinv(H, rcond=1e-12, hermitian=True) @ slope, self._risk(self.score)
            if -slope @ step <= 1e-28 * self.scale:
                return
            for _ in range(30):
                if self._risk(self.score + step) <= (1.0 + 4.0 * EPS) * risk:
                    break
                step = 0.5 * step
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
