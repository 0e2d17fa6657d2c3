"""The minimum of risk and penalty over a few columns, by proximal Newton steps.

A round adds the coordinates (a column and a score) whose slopes exceed the penalty's, minimises a
quadratic model of the risk with the penalty itself, and searches along the step to that minimum (Lee, Sun
and Saunders 2014); where rounds crawl, an interior point takes over (:mod:`sixfold.solvers.l1.interior`). The
model is minimised on its Gram matrix (:mod:`sixfold.solvers.l1.active_set`), or by
coordinate descent on residuals weighted by row, one score after the other, where that is cheaper.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.solvers.l1.active_set import Shrinkage, descend, polish
from sixfold.solvers.l1.interior import approach
from sixfold.solvers.l1.quadratic_model import QuadraticModel
from sixfold.solvers.l1.score_risk import ScoreRisk
from sixfold.solvers.l1.working_set import WorkingColumns
from sixfold.solvers.linalg import EPS

Array = NDArray[Any]

# Coordinates the first model begins with; later ones grow by half as many as have a weight.
FIRST_COORDINATES = 256
MOST_ROUNDS = 50
# Rounds after which an interior point is asked, of so many coordinates at most.
PLAIN_ROUNDS = 4
MOST_APPROACHED = 2048
# Weights whose slope the interior point leaves at less than this part of the penalty's are dropped; fewer of
# them the next time, where that left too large a gap.
STEEP = (0.5, 0.1, 0.0)
# A model is minimised until the gap it leaves is this part of the one before, in so many passes.
MODEL_PART = 0.1
EPOCHS = 100
MOST_POLISHES = 2
RESIDUAL_EPOCHS = 50
# Second derivatives are computed anew when a step on old ones leaves more than this of the gap.
SLOW = 0.15
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
        self._settle_intercepts()

    def lower(self, goal: float) -> None:
        """Lower the objective until the columns have a gap of at most the goal, or only rounding is left."""
        before, lower, asked = np.inf, True, 0
        for done in range(1, MOST_ROUNDS + 1):
            self.budget.check()
            u = self.risk.slopes(self.score)
            slope = -self.working.slopes(np.ascontiguousarray((self.risk.q[:, None] * u).T), self.budget)
            w = np.zeros_like(slope)
            w[self._places] = self.w
            left = self.risk.bound(self.score, u, w, slope)
            if left <= goal:
                return
            # Close to the minimum the objective moves by less than its rounding while the gap still falls.
            stuck = not (lower or left < 0.5 * before)
            if stuck or done % PLAIN_ROUNDS == 0:
                asked += 1
                if asked <= len(STEEP) and self._approach(goal, STEEP[asked - 1]):
                    before = np.inf
                    continue
                if stuck:
                    return
            # On its own coordinates a model that is still good has left little.
            slow = self.risk.bound(self.score, u, self.w, slope[self._places]) > SLOW * before
            if slow:
                self._trim()
            self._admit(slope)
            if self.working.gram_pays(self.model.column, slow):
                lower = self._step_on_gram(u, slope[self._places], left)
            else:
                lower = self._step_on_residuals(left)
            self._settle_intercepts()
            before = left

    def _approach(self, goal: float, steep: float) -> bool:
        """Let an interior point find the minimum, and drop the weights it takes for zero; false if it cannot.

        Where dropping them has cost too much, and rounds did not make it good, they are kept the next time.
        """
        count = len(self.working.ids) * self.n_scores
        if self.rule.positive or self.rule.l1 == 0.0 or not 0 < count <= MOST_APPROACHED:
            return False
        present = np.zeros((self.n_scores, len(self.working.ids)), dtype=bool)
        present[self._places] = True
        score, place = np.nonzero(~present)
        self.model.extend(self.working.ids[place], score)
        self.w = np.concatenate([self.w, np.zeros(len(score))])
        kept, before = (self.w, self.c, self.score), self._left()
        if not approach(self, goal):
            if self._left() > before:
                self.place(*kept)
            return False
        if steep > 0.0:
            _, slope = self.slopes()
            dropped = np.abs(slope - self.rule.l2 * self.w) <= steep * self.rule.l1
            left = self.score - self.scores(np.where(dropped, self.w, 0.0))
            self.model.forget()
            self.model.restrict(np.flatnonzero(~dropped))
            self.place(self.w[~dropped], self.c, left)
            approach(self, goal)
            kept = self.w, self.c, self.score
            # What is still next to nothing becomes zero, unless that is no better.
            u, slope = self.slopes()
            self._step_on_gram(u, slope, goal)
            self._settle_intercepts()
            if self._left() > goal:
                self.place(*kept)
        return True

    def _left(self) -> float:
        u, slope = self.slopes()
        return self.risk.bound(self.score, u, self.w, slope)

    def slopes(self) -> tuple[Array, Array]:
        """Return the slopes of the rows, and those of the coordinates downhill."""
        u = self.risk.slopes(self.score)
        slope = -self.working.slopes(np.ascontiguousarray((self.risk.q[:, None] * u).T), self.budget)
        return u, slope[self._places]

    def place(self, w: Array, c: Array, score: Array) -> None:
        """Move to these weights and intercepts, and to the best intercepts from there."""
        self.w, self.c, self.score = w, c, score
        self._settle_intercepts()

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
            polish(gram, w, down, self.rule, self.budget)
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
        step, along = w - self.w, self.scores(w - self.w) + step_c
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

    def scores(self, w: Array) -> Array:
        """Return the scores that weights of the coordinates give."""
        parts = []
        for k in range(self.n_scores):
            of_k = np.flatnonzero((self.model.score == k) & (w != 0.0))
            parts.append(self.working.combine(self.model.column[of_k], w[of_k], self.budget))
        return np.column_stack(parts)

    def _settle_intercepts(self) -> None:
        """Make the slopes of the rows balance, as the bound supposes."""
        if self.fit_intercept:
            shift = self.risk.best_shift(self.score)
            self.c, self.score = self.c + shift, self.score + shift


def largest(ids: Array, size: Array, most: int) -> Array:
    """Return those of the ids that have the largest sizes, in order."""
    if len(ids) > most:
        ids = np.sort(ids[np.argpartition(-size[ids], most)[:most]])
    return ids
