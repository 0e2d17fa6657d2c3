"""One score under absolute values on few columns: Newton steps on all of them at once.

    minimise    R(w, b) = sum_i q_i loss(w.x_i + b, y_i) + l1 |w|_1 + l2 |w|^2 / 2        (optionally w >= 0)

for losses of labels -1 and +1 that have a curvature. With z = (x - shift, 1) and theta = (w, c), c = b +
shift.w, one pass over the rows gives value, slope g and curvature H of the loss at theta. The model

    g.step + step'H step / 2 + penalty(w + step)

is minimised in the step of c first (a Schur complement), and then in that of w by coordinate descent on a
matrix of d x d (Friedman, Hastie and Tibshirani 2010; Yuan, Ho and Lin 2012). Nothing is copied, no column is
ever left out, and a table of 1,000 x 10 takes 0.3 ms where working sets take 2.5.

Steps end where the bound of :mod:`sixfold.risk.bounds` is about to be below the tolerance, which is known
from weights and slopes alone but for what it costs to balance the intercept. Where the bound turns out to be
above, some more steps make that next to nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget, BudgetExhausted
from sixfold.data.blocks import Blocks
from sixfold.risk.problem import Problem
from sixfold.solvers.l1.active_set import Shrinkage, descend, polish
from sixfold.solvers.l1.columns import CONSTANT_COLUMN
from sixfold.solvers.passes import LOSS_CODES

Array = NDArray[Any]

MOST_COLUMNS = 128
MOST_STEPS = 40
MOST_STALE = 3  # steps that lower nothing and do not halve what is left: that is rounding then
MODEL_PART = 0.03  # of what is left: what the minimum of the model may be short of
VISITS = 2000  # of columns, before a Newton step on the signs found
MOST_POLISHES = 3
SUFFICIENT = 1e-4
MOST_HALVINGS = 30
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class _Point:
    """A model, and what one pass over the rows says of it."""

    theta: Array
    value: float
    slope: Array
    curvature: Array
    penalty: float


class FewColumns:
    """One minimisation, which can be resumed.

    Attributes
    ----------
    theta : ndarray of shape (columns + 1,)
        The best so far.
    """

    def __init__(self, problem: Problem, blocks: Blocks, budget: Budget) -> None:
        block = blocks.whole()
        self.problem, self.budget, self.X = problem, budget, block.X
        self.rule = Shrinkage(problem.l1, problem.l2, problem.penalty.positive)
        self.y = np.ascontiguousarray(block.y[:, 0], dtype=np.float64)
        self.weight, self.weight_sum = block.float64_weight, blocks.weight_sum
        self.code = LOSS_CODES.index(problem.loss.name)
        self.point: _Point | None = None
        self.scale: float | None = None
        d = self.X.shape[1]
        self.theta, self.shift = np.zeros(d + 1), np.zeros(d)
        if problem.fit_intercept:
            rough = self.X[:: max(len(self.y) // 128, 1)]
            self.shift = np.add.reduce(rough, axis=0, dtype=np.float64) / len(rough)

    @staticmethod
    def suits(problem: Problem, X: Any, n_scores: int) -> bool:
        """Return whether the problem is one of these."""
        loss = problem.loss
        return (
            isinstance(X, np.ndarray)
            and X.shape[1] <= MOST_COLUMNS
            and n_scores == 1
            and loss.labels == "sign"
            and loss.smooth
            and problem.penalised
        )

    @property
    def model(self) -> tuple[Array, Array]:
        """Return w of shape (columns, 1) and b of shape (1,)."""
        w = self.theta[:-1]
        return w[:, None], np.array([self.theta[-1] - self.shift @ w])

    def run(self, rest: float) -> bool:
        """Take steps until ``rest`` of the tolerance is left; true if they got there."""
        try:
            return self._run(rest * self.budget.tol)
        except BudgetExhausted:
            self.budget.exhausted()  # notes why
            return False

    def _run(self, tol: float) -> bool:
        budget = self.budget
        point = self.point = self._at(self.theta) if self.point is None else self.point
        if self.scale is None:
            self.scale = point.value  # all scores are zero
        least, lowest, stale = math.inf, math.inf, 0
        for steps in range(MOST_STEPS):
            left, objective = self._left(point), point.value + point.penalty
            ended = left <= tol * self.scale
            if steps > 0 or (ended and not budget.history):
                budget.record(objective, min(left, objective), self.scale)
            if ended:
                return True
            stale = 0 if left < 0.5 * least or objective < (1.0 - 1e-14) * lowest else stale + 1
            least, lowest = min(least, left), objective
            if stale == MOST_STALE or budget.exhausted():
                return False
            budget.check()
            moved = self._step(point, left)
            if moved is None:
                return False
            point = self.point = moved
            self.theta = moved.theta
        return False

    def _at(self, theta: Array) -> _Point:
        size = theta.size
        slope, curvature = np.empty(size), np.empty((size, size))
        finished, value = core.newton_sweep(
            self.X, self.y, self.weight, self.code, theta, self.shift, None, slope, curvature,
            self.budget.seconds_left, self.budget.flag,
        )  # fmt: skip
        self.budget.check(finished)
        slope /= self.weight_sum
        curvature /= self.weight_sum
        return _Point(theta, value / self.weight_sum, slope, curvature, self.rule.penalty(theta[:-1]))

    def _left(self, point: _Point) -> float:
        """Return about what the bound will be, from weights and slopes alone."""
        left = self._bound(point.theta[:-1], point.penalty, -point.slope[:-1], point.value)
        if self.problem.fit_intercept:  # the slopes of the rows have to balance
            left += 2.0 * abs(float(point.slope[-1]))
        return left

    def _bound(self, w: Array, penalty: float, down: Array, value: float) -> float:
        """Return what these slopes leave to be gained beside the penalty, of a loss of this value."""
        rule = self.rule
        size = down if rule.positive else np.abs(down)
        if rule.l2 > 0.0:
            over = np.maximum(size - rule.l1, 0.0)
            return abs(penalty + float(over @ over) / (2.0 * rule.l2) - float(down @ w))
        t = min(1.0, rule.l1 / max(float(np.maximum.reduce(size, initial=0.0)), 1e-300))
        return abs(penalty - t * float(down @ w)) + (1.0 - t) ** 2 * value

    def _step(self, point: _Point, left: float) -> _Point | None:
        """Return the minimum of the model, or a point on the way to it; None if there is no way down."""
        rule, budget, before = self.rule, self.budget, point.theta[:-1]
        gram, down = point.curvature[:-1, :-1], -point.slope[:-1]
        cross, total, pull = point.curvature[-1, :-1], float(point.curvature[-1, -1]), 0.0
        if self.problem.fit_intercept:
            if not total > 0.0:
                return None
            pull = -float(point.slope[-1]) / total
            own = gram.diagonal()
            gram = gram - np.multiply.outer(cross, cross / total)
            down = down - cross * pull
            gone = gram.diagonal() <= CONSTANT_COLUMN * own
            if gone.any():
                gram[gone], gram[:, gone] = 0.0, 0.0
        else:
            gram = np.ascontiguousarray(gram)
        w, count = before.copy(), max(before.size, 1)
        # Errors e of slopes leave a gap of about |w|_1 max |e|; a move changes its slope by curvature * move.
        size_w = max(float(np.add.reduce(np.abs(before))), left / max(rule.l1, 1e-300))
        curvature = float(gram.diagonal().max(initial=0.0))
        enough = (MODEL_PART * left / size_w) ** 2 / max(curvature, EPS**2) if size_w > 0.0 else 0.0
        for _ in range(MOST_POLISHES):
            descend(gram, w, down, rule, epochs=max(VISITS // count, 20), goal=enough, budget=budget)
            # Small moves alone say little where columns nearly depend on each other.
            after = rule.penalty(w)
            if self._bound(w, after, down, point.value) <= MODEL_PART * left:
                break
            polish(gram, w, down, rule, budget)
            after = rule.penalty(w)
        step = np.zeros(before.size + 1)
        np.subtract(w, before, out=step[:-1])
        if self.problem.fit_intercept:
            step[-1] = pull - float(cross @ step[:-1]) / total
        penalty = point.penalty
        promised = penalty - after - float(point.slope @ step)
        length, noise = 1.0, 8.0 * EPS * (point.value + penalty)
        for _ in range(MOST_HALVINGS):
            theta = point.theta + length * step
            if length == 1.0:
                theta[:-1] = w  # whose zeros are exact
            moved = self._at(theta)
            lower = moved.value + moved.penalty - point.value - penalty
            if lower <= noise - SUFFICIENT * length * promised:
                return moved
            length *= 0.5
        return None
