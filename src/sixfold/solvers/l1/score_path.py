"""One score under absolute values, for one penalty after the other on the same rows.

    minimise    sum_i q_i loss(w.x_i + b, y_i) + l1 |w|_1 + l2 |w|^2 / 2        from strong penalties to weak

What :mod:`sixfold.solvers.l1.proximal_newton` does with working sets, for tables of which a centred copy may
be kept; a single fit is a path of one penalty. Newton steps on the columns with a weight or a slope above l1,
whose model is minimised by coordinate descent (Friedman, Hastie and Tibshirani 2010; Yuan, Ho and Lin 2012).
Between penalties weights and scores go on along the line through the last two minima, and second derivatives
are kept while steps on them do. Values, slopes and second derivatives of a row come from one exponential.

A fit ends where the bound of :mod:`sixfold.risk.bounds` is below the tolerance, as computed; where it does
not, None says so, and another solver has to.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.risk.losses import Loss
from sixfold.risk.problem import Problem
from sixfold.solvers.l1.active_set import Shrinkage, descend, polish
from sixfold.solvers.l1.columns import CONSTANT_COLUMN
from sixfold.solvers.l1.score_risk import ScoreRisk

Array = NDArray[Any]

MOST_VALUES = 1 << 22  # of a table that is copied
MOST_COORDINATES = 500  # of a matrix of second derivatives
MOST_ROUNDS = 40
REST = 0.3  # of the tolerance: what is aimed at
NEARLY = 3.0  # times the goal: estimates from which on the bound is computed
# Second derivatives are computed anew when a step on old ones leaves more than this of the gap.
SLOW = 0.1
MODEL_PART = 0.01
EPOCHS = 100
SUFFICIENT = 1e-4
MOST_HALVINGS = 30
LONGEST_STEP = 2.0  # along a path of penalties, as a multiple of the one before
BALANCED = 0.02  # of the goal: what a slope of the intercept may cost
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class PathMinimum:
    """The minimum under one penalty.

    Attributes
    ----------
    w : ndarray of shape (columns,)
    b : float
    gap : float
        How far from the least objective it is at most, as computed.
    scale : float
        The loss of the model whose scores are all zero.
    rounds : int
        How many steps it took.
    """

    w: Array
    b: float
    gap: float
    scale: float
    rounds: int


@dataclass(frozen=True)
class _Point:
    """Scores, and what one pass over the rows says of them."""

    score: Array
    value: float
    u: Array  # slopes of the loss, times q
    h: Array  # second derivatives, times q


@dataclass
class _Model:
    """Second derivatives in some columns, the intercept eliminated."""

    ids: Array
    columns: Array
    root: Array  # of the second derivative of each row
    scaled: Array  # columns times root
    whole: Array  # before the intercept is eliminated
    gram: Array
    cross: Array
    total: float


class ScorePath:
    """The rows, and the last two minima."""

    def __init__(self, problem: Problem, X: Array, y: Array, q: Array) -> None:
        self.loss: Loss = problem.loss
        self.fit_intercept = problem.fit_intercept
        self.y, self.q, self.X = np.ascontiguousarray(y, dtype=np.float64), q, X
        first = X[int(np.argmax(q > 0))]
        self.mean = np.zeros(X.shape[1])
        self.A = X
        if self.fit_intercept:  # differences to a row of the table are exactly zero for a constant column
            self.A = np.asfortranarray(X - first)
            mean = q @ self.A
            self.A -= mean
            self.mean = first + mean
        self.w, self.c = np.zeros(X.shape[1]), 0.0
        self.score = np.zeros(len(q))
        self.model: _Model | None = None
        self.before: tuple[float, Array, float, Array] | None = None
        self.last: tuple[float, Array, float, Array] | None = None

    @staticmethod
    def suits(problem: Problem, X: Any, n_scores: int) -> bool:
        """Return whether the problem is one of these, and the table small enough to copy."""
        plain = isinstance(X, np.ndarray) and X.dtype == np.float64 and X.size <= MOST_VALUES
        return plain and n_scores == 1 and problem.loss.name == "logistic" and problem.l1 > 0

    @property
    def b(self) -> float:
        """The intercept beside ``w``."""
        return self.c - float(self.mean @ self.w)

    def solve(self, problem: Problem, budget: Budget) -> PathMinimum | None:
        """Return the minimum under this penalty, or None if the tolerance was not reached.

        ``w`` and ``b`` then are the best so far.
        """
        rule = Shrinkage(problem.l1, problem.l2, problem.penalty.positive)
        risk = ScoreRisk(problem, self.y[:, None], self.q, 1)
        self._predict(problem.alpha)
        goal = REST * budget.tol * risk.scale
        point, last, lowest = self._settle(goal), math.inf, math.inf
        for rounds in range(MOST_ROUNDS):
            budget.check()
            slope = -(point.u @ self.A)
            left = gap = self._estimate(slope, rule, point)
            objective, ended = point.value + rule.penalty(self.w), False
            if left <= NEARLY * goal:
                gap = self._bound(risk, point, slope)
                ended = gap <= goal or (gap <= budget.tol * risk.scale and left > 0.5 * lowest)
            if rounds or ended:
                budget.record(objective, min(gap, objective), risk.scale)
            if ended:
                self._keep(problem.alpha)
                return PathMinimum(self.w.copy(), self.b, gap, risk.scale, rounds)
            if budget.exhausted():
                return None
            stale = left > SLOW * last
            lowest = min(lowest, left)
            moved = self._step(point, slope, rule, left, stale, budget)
            if moved is None:
                return None
            point, last = self._settle(goal), left
        return None

    # -- the rows -----------------------------------------------------------------------------------------

    def _at(self, score: Array) -> _Point:
        """Return value, slopes and second derivatives of the logistic loss."""
        z = self.y * score
        e = np.exp(-np.abs(z))
        over = 1.0 / (1.0 + e)
        value = float(self.q @ (np.log1p(e) - np.minimum(z, 0.0)))
        share = np.where(z < 0.0, over, e * over)  # of the other class
        return _Point(score, value, self.q * (-self.y * share), self.q * (e * over * over))

    def _settle(self, goal: float) -> _Point:
        """Move the intercept to where slopes sum to nearly nothing."""
        point = self._at(self.score)
        if not self.fit_intercept:
            return point
        for _ in range(20):
            slope, total = float(point.u.sum()), float(point.h.sum())
            if abs(slope) <= BALANCED * goal or total == 0.0:
                break
            step = -slope / total
            for _ in range(MOST_HALVINGS):
                moved = self._at(self.score + step)
                if moved.value <= point.value * (1.0 + 4.0 * EPS):
                    break
                step *= 0.5
            else:
                break
            self.c, self.score, point = self.c + step, moved.score, moved
        return point

    def _estimate(self, slope: Array, rule: Shrinkage, point: _Point) -> float:
        """Return about what the bound will be, from weights and slopes alone."""
        w, size = self.w, slope if rule.positive else np.abs(slope)
        penalty = rule.penalty(w)
        if rule.l2 > 0.0:
            over = np.maximum(size - rule.l1, 0.0)
            return abs(penalty + float(over @ over) / (2.0 * rule.l2) - float(slope @ w))
        t = min(1.0, rule.l1 / max(float(size.max(initial=0.0)), 1e-300))
        return abs(penalty - t * float(slope @ w)) + (1.0 - t) ** 2 * point.value

    def _bound(self, risk: ScoreRisk, point: _Point, slope: Array) -> float:
        score = point.score[:, None]
        # What is left of the intercept's slope is balanced exactly; slopes of columns move by less than that.
        u = risk.balanced_slopes(score)
        return risk.bound(
            score, u, self.w, slope if not self.fit_intercept else -((self.q * u[:, 0]) @ self.A)
        )

    # -- one step -------------------------------------------------------------------------------------------

    def _step(
        self, point: _Point, slope: Array, rule: Shrinkage, left: float, stale: bool, budget: Budget
    ) -> bool | None:
        """Move to the minimum of the model; None if there is no way down."""
        size = slope if rule.positive else np.abs(slope)
        wanted = (self.w != 0.0) | (size > rule.l1)
        model = None if stale else self.model
        if model is not None:
            wanted[model.ids] = False
        missing = np.flatnonzero(wanted)
        if len(missing) + (0 if model is None else len(model.ids)) > MOST_COORDINATES:
            return None
        if model is None or len(missing):
            model = self.model = self._second_derivatives(missing, point, model)
        before = self.w[model.ids]
        w, slope_b = before.copy(), -float(point.u.sum())
        down = slope[model.ids] - model.cross * (slope_b / model.total)
        curvature = float(model.gram.diagonal().max(initial=0.0))
        # Errors e of slopes leave a gap of about |w|_1 max |e|; a move changes its slope by curvature * move.
        part = MODEL_PART * left
        size_w = max(float(np.abs(before).sum()), left / max(rule.l1, 1e-300))
        enough = (part / size_w) ** 2 / max(curvature, EPS**2) if size_w > 0.0 else 0.0
        for _ in range(3):
            if descend(model.gram, w, down, rule, epochs=EPOCHS, goal=enough, budget=budget):
                break
            polish(model.gram, w, down, rule, budget)
        move = w - before
        along = model.columns @ move
        step_c = 0.0
        if self.fit_intercept:
            step_c = (slope_b - float(model.cross @ move)) / model.total
            along += step_c
        penalty = rule.penalty(before)
        promised = penalty - rule.penalty(w) - float(point.u @ along)
        length, noise = 1.0, 8.0 * EPS * (point.value + penalty)
        for _ in range(MOST_HALVINGS):
            moved = self._at(self.score + length * along)
            lower = moved.value + rule.penalty(before + length * move) - point.value - penalty
            if lower <= noise - SUFFICIENT * length * promised:
                break
            length *= 0.5
        else:
            return None
        self.w[model.ids] = before + length * move
        if length == 1.0:
            self.w[model.ids] = w
        self.c, self.score = self.c + length * step_c, moved.score
        if length < 1.0:
            self.model = None
        return True

    def _second_derivatives(self, ids: Array, point: _Point, old: _Model | None) -> _Model:
        """Return the model of these columns, or the old one with them added."""
        root = np.sqrt(np.maximum(point.h, 1e-15 * self.q)) if old is None else old.root
        columns = self.A[:, ids] if len(ids) < self.A.shape[1] else self.A
        scaled = columns * root[:, None]
        if old is None:
            whole = scaled.T @ scaled
        else:
            k = len(old.ids)
            ids = np.concatenate([old.ids, ids])
            columns = np.concatenate([old.columns.T, columns.T]).T
            rows = scaled.T @ old.scaled
            whole = np.empty((len(ids), len(ids)))
            whole[:k, :k], whole[k:, :k], whole[:k, k:] = old.whole, rows, rows.T
            whole[k:, k:] = scaled.T @ scaled
            scaled = np.concatenate([old.scaled.T, scaled.T]).T
        gram, total, cross = whole, float(root @ root), np.zeros(len(ids))
        if self.fit_intercept:
            cross = root @ scaled
            gram = whole - np.outer(cross, cross / total)
            gone = np.flatnonzero(gram.diagonal() <= CONSTANT_COLUMN * whole.diagonal())
            gram[gone], gram[:, gone] = 0.0, 0.0
        return _Model(ids, columns, root, scaled, whole, np.ascontiguousarray(gram), cross, total)

    # -- along the path -------------------------------------------------------------------------------------

    def _keep(self, alpha: float) -> None:
        self.before, self.last = self.last, (math.log(alpha), self.w.copy(), self.c, self.score)

    def _predict(self, alpha: float) -> None:
        """Go on along the line through the last two minima."""
        if self.last is None:
            return
        own, w, c, score = self.last
        self.w, self.c, self.score = w.copy(), c, score
        if self.before is None or own == self.before[0]:
            return
        old, w_old, c_old, score_old = self.before
        part = (math.log(alpha) - own) / (own - old)
        if not 0.0 < part <= LONGEST_STEP:
            return
        there = w + part * (w - w_old)
        turned = (there * w <= 0.0) & ((w != 0.0) | (w_old != 0.0))
        there[there * w <= 0.0] = 0.0
        self.w, self.c = there, c + part * (c - c_old)
        if turned.any():
            some = np.flatnonzero(there)
            self.score = self.A[:, some] @ there[some] + self.c
        else:
            self.score = score + part * (score - score_old)
