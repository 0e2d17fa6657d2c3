"""L1-penalised least squares for one penalty after the other on the same rows.

    minimise    sum_i q_i (w.x_i + b - y_i)^2 / 2 + l1 |w|_1 + l2 |w|^2 / 2     from strong penalties to weak

optionally with w >= 0. Only some columns are ever worked on. Their Gram matrix G is kept from penalty to
penalty, and so is what it costs: once a column. For each penalty

1. the weights go on along the line through the last two minima, which is where the next one is as long as the
   same weights are not zero, for minima are piecewise linear in l1 (Efron et al. 2004);
2. coordinate descent on G, and Newton steps on the signs found where that is slow, minimise over the columns
   worked on;
3. one pass over all columns gives their slopes g and, as in :mod:`sixfold.solvers.l1.coordinate`, a bound on
   the distance to the optimum. Columns whose slopes are above l1, or will soon be, are added to G: ahead of
   the next penalty those above 2 l1_next - l1 (the strong rule of Tibshirani et al. 2012). It is the bound
   that decides, so that no rule can be wrong.

Memory beyond X: the columns worked on, centred and weighted, and G.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.risk.problem import Problem
from sixfold.solvers.l1.active_set import Shrinkage, descend, polish
from sixfold.solvers.l1.columns import Columns, make_columns
from sixfold.solvers.l1.proximal_point import minimise_on_gram
from sixfold.solvers.l1.score_path import PathMinimum

Array = NDArray[Any]

MOST_COLUMNS = 4096  # worked on: G has 128 MB
MOST_PASSES = 30
REST = 0.8  # of the tolerance: what the columns worked on may leave
EPOCHS = 20
MOST_ROUNDS = 12
PLAIN_ROUNDS = 6  # before proximal points are taken
SLOW = 0.6  # of what is left: more than that after some epochs calls for a Newton step
NEAR_BOUND = 0.9
FIRST_COLUMNS = 64
ROOM = 1.25  # times the columns worked on
MOVED = 1e-3  # of the goal: what all moves of the last epoch may have brought
LONGEST_STEP = 2.0


class LassoPath:
    """The rows, the columns worked on, and the last two minima."""

    def __init__(self, problem: Problem, X: Any, y: Array, weight: Array | None, budget: Budget) -> None:
        self.fit_intercept, self.positive = problem.fit_intercept, problem.penalty.positive
        self.columns: Columns = make_columns(X, weight, problem.fit_intercept)
        q, y = self.columns.q, np.asarray(y, dtype=np.float64)
        self.root = np.sqrt(q)
        at_zero = 0.5 * float(q @ np.square(y))
        self.y_mean = y[0] + float(q @ (y - y[0])) if self.fit_intercept else 0.0
        self.target = y - self.y_mean
        self.scale = 0.5 * float(q @ np.square(self.target)) + (
            1e-30 * at_zero if self.fit_intercept else 0.0
        )
        self.slope_at_zero = self.columns.start(self.target[None], budget)[0]
        self.slope = self.slope_at_zero  # of all columns at the last minimum
        self.d = X.shape[1]
        self.worked = np.zeros(self.d, dtype=bool)
        # There is room for more columns than are worked on: zeros, which nothing moves.
        self.count = 0
        self.ids = np.zeros(0, dtype=np.int64)
        self.Z = np.zeros((0, len(q)))  # a row a column worked on, centred and times root
        self.gram = np.zeros((0, 0))
        self.at_zero = np.zeros(0)  # slopes at w = 0
        self.w = np.zeros(0)
        self.l1 = math.inf
        self.last: tuple[float, Array] | None = None
        self.before: tuple[float, Array] | None = None

    def solve(self, problem: Problem, budget: Budget) -> PathMinimum | None:
        """Return the minimum under this penalty, or None if the tolerance was not reached."""
        rule = Shrinkage(problem.l1, problem.l2, self.positive)
        enough = budget.tol * self.scale
        self._predict(problem.alpha)
        self._grow(rule.l1, ahead=True, budget=budget)
        gap_before = math.inf
        for passes in range(1, MOST_PASSES + 1):
            budget.check()
            if self.count:
                self._minimise(rule, REST * enough, budget)
            ids, own = self.ids[: self.count], self.w[: self.count]
            r, offset = self._residuals()
            self.slope = self.columns.slopes_of(self.root * r, budget)
            gap = self._bound(rule, self.slope, self.slope[ids], own, float(r @ r))
            if gap <= enough:
                self._keep(problem.alpha)
                w = np.zeros(self.d)
                w[ids] = own
                b = self.y_mean + offset - float(self.columns.mean[ids] @ own)
                return PathMinimum(w, b if self.fit_intercept else 0.0, gap, self.scale, passes)
            grown = self._grow(rule.l1, ahead=False, budget=budget)
            if grown < 0 or (grown == 0 and not gap < 0.5 * gap_before):
                return None
            gap_before = gap if grown == 0 else math.inf
        return None

    # -- all columns --------------------------------------------------------------------------------

    def _residuals(self) -> tuple[Array, float]:
        """Return the residuals times the roots of the weights, and what b has to change by for them."""
        r = self.root * self.target - self.w @ self.Z
        if not self.fit_intercept:
            return r, 0.0
        offset = float(self.root @ r)
        return r - offset * self.root, offset

    def _bound(self, rule: Shrinkage, slope: Array, own: Array, w: Array, square: float) -> float:
        """Return the bound on the distance to the optimum of some columns, of which ``own`` have weights."""
        size = slope if rule.positive else np.abs(slope)
        if rule.l2 > 0.0:
            over = np.maximum(size - rule.l1, 0.0)
            return max(rule.penalty(w) + float(over @ over) / (2.0 * rule.l2) - float(own @ w), 0.0)
        t = min(1.0, rule.l1 / max(float(size.max(initial=0.0)), 1e-300))
        return max(0.5 * (1.0 - t) ** 2 * square + rule.penalty(w) - t * float(own @ w), 0.0)

    def _grow(self, l1: float, ahead: bool, budget: Budget) -> int:
        """Add columns to those worked on, and return how many; -1 where there are too many.

        ``ahead`` of the next penalty those that it may call for, afterwards those that it does and some more.
        """
        size = self.slope.copy() if self.positive else np.abs(self.slope)
        size[self.worked] = 0.0
        least = l1
        if ahead:
            last = self.l1 if math.isfinite(self.l1) else float(size.max(initial=0.0))
            least, self.l1 = max(2.0 * l1 - last, NEAR_BOUND * l1), l1
        elif not np.any(size > l1):
            return 0
        else:
            least = NEAR_BOUND * l1
        fresh = np.flatnonzero(size > least)
        if self.count + len(fresh) > MOST_COLUMNS:
            return -1
        if len(fresh) == 0:
            return 0
        self._make_room(self.count + len(fresh))
        self.worked[fresh] = True
        old = slice(0, self.count)
        new = slice(self.count, self.count + len(fresh))
        Z = self.columns.weighted(fresh, self.root).T
        self.Z[new], self.ids[new] = Z, fresh
        self.at_zero[new] = self.slope_at_zero[fresh]
        self.gram[new, new] = self.Z[new] @ self.Z[new].T
        self.gram[new, old] = self.Z[new] @ self.Z[old].T
        self.gram[old, new] = self.gram[new, old].T
        self.count += len(fresh)
        return len(fresh)

    def _make_room(self, count: int) -> None:
        room = len(self.w)
        if count <= room:
            return
        more = min(max(FIRST_COLUMNS, int(ROOM * count)), max(MOST_COLUMNS, count)) - room
        gram, Z = np.zeros((room + more, room + more)), np.zeros((room + more, self.Z.shape[1]))
        gram[:room, :room], Z[:room] = self.gram, self.Z
        self.gram, self.Z = gram, Z
        self.ids, self.at_zero, self.w = (
            np.concatenate([part, np.zeros(more, dtype=part.dtype)])
            for part in (self.ids, self.at_zero, self.w)
        )

    # -- the columns worked on ----------------------------------------------------------------------

    def _minimise(self, rule: Shrinkage, goal: float, budget: Budget) -> None:
        """Lower the objective on the columns worked on until they leave no more than the goal."""
        w, before, moves = self.w, math.inf, MOVED * goal / self.count
        slope = self.at_zero - self.gram @ w

        def left(w: Array, slope: Array) -> float:
            square = 2.0 * self.scale - float(w @ (self.at_zero + slope))
            return self._bound(rule, slope, slope, w, square)

        for done in range(MOST_ROUNDS):
            if done == PLAIN_ROUNDS:
                found = minimise_on_gram(
                    self.gram, w, slope, rule, lambda w, slope: left(w, slope) <= goal, budget
                )
                if left(*found) < left(w, slope):
                    w[:], slope[:] = found
            descend(self.gram, w, slope, rule, epochs=EPOCHS, goal=moves, budget=budget)
            now = left(w, slope)
            if now <= goal:
                return
            if now > SLOW * before:
                polish(self.gram, w, slope, rule, budget)
            before = now

    # -- along the path -----------------------------------------------------------------------------

    def _keep(self, alpha: float) -> None:
        self.before, self.last = self.last, (alpha, self.w[: self.count].copy())

    def _predict(self, alpha: float) -> None:
        """Go on along the line through the last two minima."""
        if self.last is None or self.before is None or self.last[0] == self.before[0]:
            return
        (own, w), (old, w_old) = self.last, self.before
        part = (alpha - own) / (own - old)
        if not 0.0 < part <= LONGEST_STEP:
            return
        there = w + part * w
        there[: len(w_old)] -= part * w_old
        there[there * w <= 0.0] = 0.0
        self.w[: len(w)] = there
