"""L1-penalised least squares for one penalty after the other on the same rows.

    minimise    sum_i q_i (w.x_i + b - y_i)^2 / 2 + l1 |w|_1 + l2 |w|^2 / 2     from strong penalties to weak

optionally with w >= 0. Only some columns are ever worked on. Their Gram matrix G is kept from penalty to
penalty, and so is what it costs: once a column. For each penalty

1. the weights go on along the line through the last two minima, which is where the next one is as long as the
   same weights are not zero, for minima are piecewise linear in l1 (Efron et al. 2004);
2. coordinate descent on G, and Newton steps on the signs found where that is slow, minimise over the columns
   worked on;
3. one pass over all columns gives their slopes g and, as in :mod:`sixfold.solvers.l1.coordinate`, a bound on
   the distance to the optimum. Columns whose slopes are above l1, and those that are near, are added to G.
   Ahead of the next penalty slopes are guessed along the same line, to the same end (a guess where the strong
   rules of Tibshirani et al. 2012 have a bound). It is the bound that decides, so that no guess can be wrong.

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
# And of that, where a round gets there: errors of the tolerance's size decide between neighbouring penalties.
FINE = 0.02
EPOCHS, CHECKS = 5, 4  # passes between two looks at what is left, and looks in a round
MOST_ROUNDS = 12
PLAIN_ROUNDS = 6  # before proximal points are taken
SLOW = 0.6  # of what is left: more than that after some epochs calls for a Newton step
NEAR_BOUND = 0.95
FIRST_COLUMNS = 64
ROOM = 1.25  # times the columns worked on
MOVED = 1e-3  # of the goal: what all moves of the last epoch may have brought
LONGEST_STEP = 2.0
# Slopes in single precision serve tolerances from here on, and tables of so many values.
ROUGH_TOLERANCE = 1e-5
MANY, MOST_ROUGH = 1 << 18, 1 << 27
OFF = 2e-6


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
        self.slope_before = self.slope_at_zero  # and at the one before
        self.rough: RoughColumns | None = None
        if budget.tol >= ROUGH_TOLERANCE and isinstance(X, np.ndarray) and MANY <= X.size <= MOST_ROUGH:
            self.rough = RoughColumns(self.columns, self.root)
        self.d = X.shape[1]
        self.worked = np.zeros(self.d, dtype=bool)
        # There is room for more columns than are worked on: zeros, which nothing moves.
        self.count = 0
        self.ids = np.zeros(0, dtype=np.int64)
        self.Z = np.zeros((0, len(q)))  # a row a column worked on, centred and times root
        self.gram = np.zeros((0, 0))
        self.at_zero = np.zeros(0)  # slopes at w = 0
        self.w = np.zeros(0)
        self.slope_of_worked = np.zeros(0)
        self.last: tuple[float, Array] | None = None
        self.before: tuple[float, Array] | None = None

    def solve(self, problem: Problem, budget: Budget) -> PathMinimum | None:
        """Return the minimum under this penalty, or None if the tolerance was not reached."""
        rule = Shrinkage(problem.l1, problem.l2, self.positive)
        enough = budget.tol * self.scale
        self._grow(self._predict(problem.alpha), rule.l1, budget)
        gap_before, rough = math.inf, self.rough
        for passes in range(1, MOST_PASSES + 1):
            budget.check()
            if self.count:
                self._minimise(rule, REST * enough, budget)
            ids, own = self.ids[: self.count], self.w[: self.count]
            r, offset = self._residuals()
            if rough is None:
                slope = self.columns.slopes_of(self.root * r, budget)
                gap = self._bound(rule, slope, slope[ids], own, float(r @ r))
            else:
                slope, off = rough.slopes(r)
                slope[ids] = self.slope_of_worked[: self.count]
                gap = self._bound(rule, slope + np.copysign(off, slope), slope[ids], own, float(r @ r))
            if gap <= enough:
                self.slope_before, self.slope = self.slope, slope
                self._keep(problem.alpha)
                w = np.zeros(self.d)
                w[ids] = own
                b = self.y_mean + offset - float(self.columns.mean[ids] @ own)
                return PathMinimum(w, b if self.fit_intercept else 0.0, gap, self.scale, passes)
            grown = self._grow(slope, rule.l1, budget)
            if grown < 0 or (grown == 0 and rough is None and not gap < 0.5 * gap_before):
                return None
            gap_before = gap if grown == 0 and rough is None else math.inf
            rough = None if grown == 0 else rough
        return None

    # -- all columns --------------------------------------------------------------------------------

    def _residuals(self) -> tuple[Array, float]:
        """Return the residuals times the roots of the weights, and what b has to change by for them."""
        r = self.root * self.target - self.w[: self.count] @ self.Z[: self.count]
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

    def _grow(self, slope: Array, l1: float, budget: Budget) -> int:
        """Add columns to those worked on if slopes call for some; return how many, -1 if they are too many.

        Where some are above l1, those that are near come along.
        """
        size = slope.copy() if self.positive else np.abs(slope)
        size[self.worked] = 0.0
        if not np.any(size > l1):
            return 0
        fresh = np.flatnonzero(size > NEAR_BOUND * l1)
        if self.count + len(fresh) > MOST_COLUMNS:
            return -1
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
        w, moves = self.w, MOVED * goal / self.count
        slope = self.slope_of_worked = self.at_zero - self.gram @ w

        def left(w: Array, slope: Array) -> float:
            square = 2.0 * self.scale - float(w @ (self.at_zero + slope))
            return self._bound(rule, slope, slope, w, square)

        before = math.inf
        for done in range(MOST_ROUNDS):
            if done == PLAIN_ROUNDS:
                found = minimise_on_gram(
                    self.gram, w, slope, rule, lambda w, slope: left(w, slope) <= goal, budget
                )
                if left(*found) < left(w, slope):
                    w[:], slope[:] = found
            for look in range(CHECKS):
                descend(self.gram, w, slope, rule, epochs=EPOCHS, goal=FINE * moves, budget=budget)
                now = left(w, slope)
                if now <= (FINE * goal if done == 0 and look < CHECKS - 1 else goal):
                    return
            if now > SLOW * before:
                polish(self.gram, w, slope, rule, budget)
            before = now

    # -- along the path -----------------------------------------------------------------------------

    def _keep(self, alpha: float) -> None:
        self.before, self.last = self.last, (alpha, self.w[: self.count].copy())

    def _predict(self, alpha: float) -> Array:
        """Go on along the line through the last two minima; return the slopes of all columns there."""
        if self.last is None or self.before is None or self.last[0] == self.before[0]:
            return self.slope
        (own, w), (old, w_old) = self.last, self.before
        part = (alpha - own) / (own - old)
        if not 0.0 < part <= LONGEST_STEP:
            return self.slope
        there = w + part * w
        there[: len(w_old)] -= part * w_old
        there[there * w <= 0.0] = 0.0
        self.w[: len(w)] = there
        return self.slope + part * (self.slope - self.slope_before)


class RoughColumns:
    """The columns in single precision, each of length 1: a product takes a quarter of the time.

    Sums of n products in single precision are off by about sqrt(n) of its rounding, relative to the lengths
    of what is multiplied; several sums are kept at a time, so that it is less. ``OFF`` allows for that: the
    gap of a path is what is computed, and its models are certified from the data where they are kept.
    """

    def __init__(self, columns: Columns, root: Array) -> None:
        A = columns.weighted(np.arange(columns.mean.size), root)
        length = np.sqrt(np.einsum("ij,ij->j", A, A))
        self.length = length
        A /= np.where(length > 0.0, length, 1.0)
        self.A = A.astype(np.float32)

    def slopes(self, r: Array) -> tuple[Array, Array]:
        """Return sum_i r_i a_ij, and what that may be off by."""
        size = float(np.sqrt(r @ r))
        if size == 0.0:
            return np.zeros_like(self.length), np.zeros_like(self.length)
        scaled = size * self.length
        return scaled * ((r / size).astype(np.float32) @ self.A), OFF * scaled
