"""The minimum of risk and penalty over a few columns, by proximal Newton steps.

A round adds the coordinates (a column and a score) whose slopes exceed the penalty's, minimises a
quadratic model of the risk with the penalty itself, and searches along the step to that minimum (Lee, Sun
and Saunders 2014). The model is minimised on its Gram matrix (:mod:`sixfold.solvers.l1.active_set`), or by
coordinate descent on residuals weighted by row, one score after the other, where that is cheaper.

Where rows can nearly be separated, or the penalty hardly counts, second derivatives change by orders of
magnitude along a step, and so does the set of weights that are zero: rounds crawl, and another solver should
go on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.solvers.l1.active_set import MOST_FACES, Shrinkage, descend, polish
from sixfold.solvers.l1.quadratic_model import QuadraticModel
from sixfold.solvers.l1.score_risk import ScoreRisk
from sixfold.solvers.l1.working_set import WorkingColumns
from sixfold.solvers.linalg import EPS

Array = NDArray[Any]

# Coordinates the first model begins with; later ones grow by half as many as have a weight.
FIRST_COORDINATES = 256
MOST_ROUNDS = 50
# Where another solver can go on, so many rounds have to leave no more than this part of the gap.
WATCHED_ROUNDS = 5
CRAWLING = 0.3
# A model of so many coordinates takes half a second. An optimum has no more than there are scores of rows,
# unless the penalty has squares: what has more is far from it, or dear.
MANY = 1000
FEW_FACES = 2  # in one model, likewise
# A model is minimised until the gap it leaves is this part of the one before, in so many passes.
MODEL_PART = 0.1
EPOCHS = 100
MOST_POLISHES = 2
RESIDUAL_EPOCHS = 50
# Second derivatives are computed anew when a step on old ones leaves more than this of the gap.
SLOW = 0.15
BALANCED = 0.1  # of the goal: what slopes that do not sum to zero may cost
# A step that brings less than this share of the decrease that its slope promises is cut to the best length.
SUFFICIENT = 0.1
BISECTIONS = 30
# Steps cut to less than this call for more damping.
SHORT = 0.25
# The least damping keeps every coordinate bent, also where no row is.
LEAST_DAMPING = 1e-15


class WorkingMinimum:
    """The weights of the working columns, and the scores they give.

    Attributes
    ----------
    w : ndarray
        The weight of every coordinate of ``model``; all others are zero.
    c : ndarray of shape (scores,)
        The intercepts of the centred columns.
    score : ndarray of shape (rows, scores)
    crawls : bool
        Whether rounds have brought so little that another solver should go on.
    """

    def __init__(self, risk: ScoreRisk, working: WorkingColumns, budget: Budget) -> None:
        problem = risk.problem
        self.risk, self.working, self.budget = risk, working, budget
        self.fit_intercept, self.n_scores = problem.fit_intercept, risk.n_scores
        self.rule = Shrinkage(problem.l1, problem.l2, problem.penalty.positive)
        self.model = QuadraticModel(working, self.n_scores, self.fit_intercept)
        self.w = np.empty(0)
        self.c = np.zeros(self.n_scores)
        self.score = np.zeros((len(risk.q), self.n_scores))
        self.damping = LEAST_DAMPING
        self.crawls = False
        self._settle_intercepts()

    def resume(self, risk: ScoreRisk, budget: Budget) -> None:
        """Go on with another penalty; an old model costs steps and never the answer."""
        problem = risk.problem
        self.risk, self.budget, self.crawls, self.damping = risk, budget, False, LEAST_DAMPING
        self.rule = Shrinkage(problem.l1, problem.l2, problem.penalty.positive)

    def lower(self, goal: float) -> None:
        """Lower the objective until the columns have a gap of at most the goal, or only rounding is left."""
        gaps, lower, slow_rounds = [np.inf], True, 0
        for _ in range(MOST_ROUNDS):
            self.budget.check()
            u = self.risk.slopes(self.score)
            slope = -self.working.slopes(np.ascontiguousarray((self.risk.q[:, None] * u).T), self.budget)
            w = np.zeros_like(slope)
            w[self._places] = self.w
            left = self.risk.bound(self.score, u, w, slope)
            # Close to the minimum the objective moves by less than its rounding while the gap still falls.
            if left <= goal or not (lower or left < 0.5 * gaps[-1]):
                return
            dear = np.count_nonzero(self.w) > max(self.score.size, MANY) and left > SLOW * gaps[-1]
            self.crawls = self.budget.another_follows and (dear or crawls([*gaps, left]))
            if self.crawls:
                return
            # On its own coordinates a model that is still good has left little.
            slow = left > SLOW * gaps[-1]
            slow = slow and self.risk.bound(self.score, u, self.w, slope[self._places]) > SLOW * gaps[-1]
            slow_rounds = slow_rounds + 1 if slow else 0
            if slow:
                self._trim()
            self._admit(slope)
            # One slow round may be that of a model which was taken far away.
            if self.working.gram_pays(self.model.column, slow_rounds > 1):
                lower = self._step_on_gram(u, slope[self._places], left)
            else:
                lower = self._step_on_residuals(left)
            self._settle_intercepts(BALANCED * goal)
            gaps.append(left)

    # -- coordinates ------------------------------------------------------------------------------

    @property
    def _places(self) -> tuple[Array, Array]:
        """Where the slopes of the coordinates are among those of the working columns."""
        return self.model.score, self.working.place[self.model.column]

    def _admit(self, slope: Array) -> None:
        """Add the coordinates that lower the objective most."""
        size = slope.copy() if self.rule.positive else np.abs(slope)
        size[self._places] = 0.0
        size = size.ravel()
        most = max(FIRST_COORDINATES, int(np.count_nonzero(self.w)) // 2)
        chosen = largest(np.flatnonzero(size > self.rule.l1), size, most)
        score, place = np.divmod(chosen, slope.shape[1])
        self.model.extend(self.working.ids[place], score)
        self.w = np.concatenate([self.w, np.zeros(len(chosen))])

    def _trim(self) -> None:
        """Drop the coordinates without a weight, and the model with them."""
        kept = np.flatnonzero(self.w)
        self.model.forget()
        self.model.restrict(kept)
        self.w = self.w[kept]

    # -- steps ------------------------------------------------------------------------------------

    def _step_on_gram(self, u: Array, slope: Array, left: float) -> bool:
        """Minimise the model and move towards its minimum; false if the objective did not fall."""
        if self.model.empty:
            self.model.renew(self.risk.curvature(self.score, self.damping))
        self.model.complete(self.budget)
        gram, slope_b = self.model.gram, -self.risk.q @ u
        w, down = self.w.copy(), self.model.reduced_slope(slope, slope_b)
        goal = self._move_goal(left, float(gram.diagonal().max(initial=0.0)))
        for _ in range(MOST_POLISHES):
            if descend(gram, w, down, self.rule, epochs=EPOCHS, goal=goal, budget=self.budget):
                break
            polish(
                gram,
                w,
                down,
                self.rule,
                self.budget,
                FEW_FACES if self.budget.another_follows else MOST_FACES,
            )
        return self._move_towards(w, self.model.intercept_step(slope_b, w - self.w), u)

    def _step_on_residuals(self, left: float) -> bool:
        """Do the same for one score after the other, without a Gram matrix."""
        self.model.forget()
        lower = False
        for k in range(self.n_scores):
            of_k = np.flatnonzero(self.model.score == k)
            ids, part = self.model.column[of_k], self.w[of_k]
            u = self.risk.slopes(self.score)
            curvature = self.risk.curvature(self.score, self.damping).of_score(k)
            total, pull = curvature.sum(), -self.risk.q * u[:, k]
            weight, v = curvature / total, pull / total
            if self.fit_intercept:
                v -= v.sum() * weight
            residuals = self.working.residuals(ids, weight, self.fit_intercept)
            goal = self._move_goal(left, total * float(residuals.curvature.max(initial=0.0))) / total
            rule = (self.rule.l1 / total, self.rule.l2 / total, self.rule.positive, RESIDUAL_EPOCHS, goal)
            finished = residuals.descend(v, part, rule, self.budget)
            w, step_c = self.w.copy(), np.zeros(self.n_scores)
            w[of_k] = part
            if self.fit_intercept:
                centre = residuals.mean - self.working.table_mean[ids]
                step_c[k] = pull.sum() / total - (part - self.w[of_k]) @ centre
            lower |= self._move_towards(w, step_c, u)
            self.budget.check(finished)
        return lower

    def _move_goal(self, left: float, curvature: float) -> float:
        """Return how little curvature * move^2 has to become in coordinate descent on the model.

        A move changes the slope of its coordinate by curvature * move. Errors e of the slopes leave a gap of
        about |w|_1 max |e| <= max |e| scale / l1, or with squares in the penalty one of |e|^2 / (2 l2).
        """
        part = MODEL_PART * left
        if self.rule.l2 > 0.0:
            return 2.0 * self.rule.l2 * part / (max(len(self.w), 1) * (curvature + self.rule.l2))
        return (self.rule.l1 * part / max(self.risk.scale, left)) ** 2 / max(curvature, EPS**2)

    def _move_towards(self, w: Array, step_c: Array, u: Array) -> bool:
        """Move to w, or to the minimum on the way; false if the objective did not fall beyond rounding."""
        step, along = w - self.w, self._scores(w - self.w) + step_c
        if not np.isfinite(along).all():  # nothing bends where the model was taken
            return self._damp()
        value, penalty = self.risk.value(self.score), self.rule.penalty(self.w)
        promised = penalty - self.rule.penalty(w) - self.risk.along(u, along)
        rounding = 4.0 * EPS * (value + penalty)
        length, moved = 1.0, self.score + along
        change = (self.risk.value(moved) - value) + (self.rule.penalty(w) - penalty)
        if not change <= rounding - SUFFICIENT * promised:
            length = self._best_length(step, along)
            w, moved = self.w + length * step, self.score + length * along
            change = (self.risk.value(moved) - value) + (self.rule.penalty(w) - penalty)
        if length < SHORT:
            less = self._damp()
            if not change < 0.0:
                return less
        else:
            self.damping = max(self.damping / 8.0, LEAST_DAMPING)
        self.w, self.c, self.score = w, self.c + length * step_c, moved
        return bool(change < -rounding)

    def _damp(self) -> bool:
        """Bend the next model more; false if it cannot be."""
        most_damped = self.damping == 1.0
        self.damping = min(max(8.0 * self.damping, 1e-4), 1.0)
        self.model.forget()
        return not most_damped

    def _best_length(self, step: Array, along: Array) -> float:
        """Return the part of a step that lowers the objective most, by bisection of its slope."""
        low, high = 0.0, 1.0
        for _ in range(BISECTIONS):
            length = 0.5 * (low + high)
            w = self.w + length * step
            slope = step @ (self.rule.l1 * np.sign(w) + self.rule.l2 * w)
            slope += self.risk.along(self.risk.slopes(self.score + length * along), along)
            low, high = (length, high) if slope < 0.0 else (low, length)
            if high < 1.25 * low:
                break
        return low

    def _scores(self, w: Array) -> Array:
        parts = []
        for k in range(self.n_scores):
            of_k = np.flatnonzero((self.model.score == k) & (w != 0.0))
            parts.append(self.working.combine(self.model.column[of_k], w[of_k], self.budget))
        return np.column_stack(parts)

    def _settle_intercepts(self, enough: float = 0.0) -> None:
        """Make the slopes of the rows balance, as the bound supposes."""
        if self.fit_intercept:
            shift = self.risk.best_shift(self.score, enough)
            self.c, self.score = self.c + shift, self.score + shift


def crawls(gaps: list[float]) -> bool:
    """Return whether the last rounds have brought little."""
    return len(gaps) > WATCHED_ROUNDS and gaps[-1] > CRAWLING * gaps[-1 - WATCHED_ROUNDS]


def largest(ids: Array, size: Array, most: int) -> Array:
    """Return those of the ids that have the largest sizes, in order."""
    if len(ids) > most:
        ids = np.sort(ids[np.argpartition(-size[ids], most)[:most]])
    return ids
