"""Least squares with an l1, elastic-net or sign constraint, by working sets of columns.

    minimise    sum_i q_i (w.x_i + b - y_i)^2 / 2 + alpha (rho |w|_1 + (1 - rho) |w|^2 / 2)

optionally with w >= 0. Most weights are zero at the optimum, so only a working set of columns is
ever optimised over (Johnson and Guestrin 2015; Massias et al. 2018). One iteration

1. adds to the set the columns whose slopes g_j = sum_i q_i r_i x_ij, at the residuals
   r = y - b - X w, exceed their bound alpha rho most;
2. solves the problem on the set: on its Gram matrix (see :mod:`sixfold.solvers.l1.active_set`) as
   long as that has at most ``MOST_GRAM`` columns, else by coordinate descent on the residuals;
3. passes over all columns for their slopes, which bound the distance to the optimum: with t the
   largest fraction in [0, 1] for which |t g_j| <= alpha rho (t = 1 unless rho = 1), the dual point
   t r gives

       R(w) - min R  <=  (1 - t)^2 sum_i q_i r_i^2 / 2 + alpha FY(w, t g / alpha)

   where FY(w, v) = penalty(w) + conjugate(v) - w.v.

Memory beyond X: the Gram matrix of the working set (twice at most 128 MB while it grows) and a few
vectors; for a sparse X also its copy as compressed columns; beyond ``MOST_GRAM`` columns also a
copy of the working columns, unless X is in column order and all its columns are in the set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget, BudgetExhausted
from sixfold.data.blocks import Blocks, MemoryBlocks
from sixfold.risk.problem import Problem, normalized_weights
from sixfold.risk.rounding import rounded_model
from sixfold.solvers.base import Solution
from sixfold.solvers.l1 import proximal_newton
from sixfold.solvers.l1.active_set import Shrinkage, WorkingGram, descend, polish, solve_semidefinite
from sixfold.solvers.l1.columns import Residuals, make_columns
from sixfold.solvers.l1.few_columns import FewColumns
from sixfold.solvers.l1.one_score import OneScore
from sixfold.solvers.l1.proximal_newton import GRACE_SECONDS, MOST_STALE_ITERATIONS, NEAR_BOUND, REST
from sixfold.solvers.l1.proximal_point import minimise_on_gram, minimise_on_rows
from sixfold.solvers.l1.score_path import ScorePath
from sixfold.solvers.l1.subproblem import crawls

Array = NDArray[Any]
Model = tuple[Array, Array]  # w and b

MOST_GRAM = 4096
# The first working set; from then on it grows by as many columns as have a weight.
FIRST_COLUMNS = 128
# The working set is solved to this part of the gap that all columns together have.
INNER_PART = 0.01
MOST_ROUNDS = 4
EPOCHS_A_ROUND = 20
# All columns of a table with few, and at least a row a column, are taken at once and minimised over to the
# end where their products take so many multiplications, or at least every other one would lower the
# objective: else most of them are for nothing (100,000 x 100, 5 of which count: 76 ms instead of 35).
SMALL_PRODUCTS = 1 << 21
# So many visits of columns cost less than the Newton steps that they save, and rounds less than proximal
# points: 1.1 ms for a fit of 100 x 100, where 20 epochs in 4 rounds make it 3.2.
FEW_COLUMNS_VISITS = 5000
FEW_COLUMNS_ROUNDS = 6
RESIDUAL_EPOCHS = 100
# From so many columns a row the working set is minimised on the rows, of which there may be so many; passes
# over its columns are taken first, as long as so many of them leave this part of the gap.
WIDE = 2
VERY_WIDE = 4
MOST_ROWS = 2048
FEW_ROWS_EPOCHS = 10
FAST_EPOCHS = 0.3
# Of the tolerance: what one score is brought to, and once more where the bound is above.
RESTS = (0.3, 1e-4)
# Rounds at the end in which proximal points are taken, where coordinate descent and Newton steps have left
# more than the goal.
ROUNDS_OF_POINTS = 2


@dataclass(frozen=True)
class LeastSquaresPoint:
    """Weights of one target, and what a pass over the data says of them."""

    w: Array
    b: float
    r: Array
    slope: Array
    square: float
    objective: float
    gap: float


class CoordinateDescent:
    """Working sets, coordinate descent and Newton steps on the signs found.

    ``at_once`` is asked first for squared loss without a start; it returns None where it has no answer.
    """

    name: ClassVar[str] = "coordinate"
    needs: ClassVar[tuple[str, ...]] = ("gradient",)
    notices_nonfinite: ClassVar[bool] = False

    def __init__(
        self,
        memory: proximal_newton.PathMemory | None = None,
        start: Model | None = None,
        at_once: Callable[[Problem, Blocks, Budget], Solution | None] | None = None,
    ) -> None:
        self.memory, self.start, self.at_once = memory, start, at_once

    def objection(self, problem: Problem) -> str | None:
        """Return why this solver cannot minimise the problem, or None."""
        if problem.loss.name == "squared":
            return None
        if not problem.loss.smooth:
            return "the loss has kinks, where it has no curvature"
        if not problem.penalised:
            return "without a penalty it minimises the squared loss only"
        return None

    def suits(self, problem: Problem, blocks: Blocks) -> bool:
        """Return whether there is a kink or a constraint: else a linear system is faster."""
        return problem.l1 > 0 or problem.penalty.positive

    def solve(self, problem: Problem, blocks: Blocks, budget: Budget) -> Solution:
        """Minimise the problem, one target after the other."""
        if problem.loss.name != "squared":
            return self._solve_smooth(problem, blocks, budget)
        if self.start is None and self.at_once is not None:
            found = self.at_once(problem, blocks, budget)
            if found is not None:
                return found
        whole = blocks.whole()
        X, y, weight = whole.X, whole.y, whole.weight
        state = _LassoState(problem, X, y, weight, budget)
        try:
            state.begin(None if self.start is None else self.start[0])
            for target in range(y.shape[1]):
                budget.new_part()
                if state.improve(target):
                    break
        except BudgetExhausted:
            budget.exhausted()  # notes why
        w = np.column_stack([point.w for point in state.points])
        b = np.array([point.b for point in state.points])
        dual = None
        if blocks.dtype != np.float64:  # what is certified is what is kept
            w, b = blocks.rounded(w), blocks.rounded(b)
        elif len(state.points) == 1:
            # Scores that are computed anew round differently, and the slope of a column of large values with
            # them: beside a small alpha that alone has cost 1e-10 of the scale.
            dual = -state.points[0].r[:, None]
        scale = float(state.scales.sum())
        certificate = problem.certify("duality gap", w, b, blocks, budget.tol, dual, scale)
        return Solution(w, b, certificate, "coordinate descent", len(budget.history), dual)

    def _solve_smooth(self, problem: Problem, blocks: Blocks, budget: Budget) -> Solution:
        best, scale = None, None
        for minimum in self._smooth_minima(problem, blocks, budget):
            w, b = minimum
            if blocks.dtype != np.float64:  # what is certified is what is kept
                centre = (
                    np.asarray(blocks.whole().X.mean(axis=0), dtype=np.float64).ravel()
                    * problem.fit_intercept
                )
                w, b = rounded_model(blocks, w, b + centre @ w, centre)
            if scale is None:
                scale = problem.constant_objective(blocks)
            certificate, dual = problem.certify_with_dual(
                "duality gap", w, b, blocks, budget.tol, scale=scale
            )
            if best is None or certificate.gap <= best.certificate.gap:
                best = Solution(w, b, certificate, "coordinate descent", 0, dual)
            if best.certificate.converged or budget.exhausted():
                break
        assert best is not None
        return replace(best, n_iter=len(budget.history))

    def _smooth_minima(self, problem: Problem, blocks: Blocks, budget: Budget) -> Iterator[Model]:
        """Find the minimum, once more where that of an earlier method turns out not to be good enough.

        One score is one native call where the table is sparse, wide or small, else steps on few columns; then
        come tables of which there may be a copy.
        """
        whole, n_scores = blocks.whole(), problem.n_scores(blocks)
        X, y, weight = whole.X, whole.y, whole.weight
        alone: tuple[type[OneScore] | type[FewColumns], ...] = (OneScore, FewColumns)
        for kind in alone if self.memory is None else ():
            if not kind.suits(problem, X, n_scores):
                continue
            steps = kind(problem, blocks, budget)
            for rest in RESTS:
                reached = steps.run(rest)
                if reached or budget.exhausted():
                    yield steps.model
                if not reached:
                    break
            else:  # what is left is rounding
                return
        if self.memory is None and ScorePath.suits(problem, X, n_scores) and not budget.exhausted():
            path, found = ScorePath(problem, X, y[:, 0], normalized_weights(whole, blocks)), None
            with suppress(BudgetExhausted):
                found = path.solve(problem, budget)
            if found is not None or budget.exhausted():
                yield path.w[:, None], np.array([path.b])
        yield proximal_newton.minimise(problem, X, y, weight, n_scores, budget, self.memory)


class _LassoState:
    """The state of one solve: the best certified point of every target."""

    def __init__(self, problem: Problem, X: Any, y: Array, weight: Array | None, budget: Budget) -> None:
        self.problem, self.X, self.y, self.weight, self.budget = problem, X, y, weight, budget
        self.columns = make_columns(X, weight, problem.fit_intercept)
        self.rule = Shrinkage(problem.l1, problem.l2, problem.penalty.positive)
        q, targets = self.columns.q, np.ascontiguousarray(y.T, dtype=np.float64)
        at_zero = 0.5 * np.square(targets) @ q
        first = targets[:, 0]  # so that the mean of a constant target is that constant
        self.y_mean = np.zeros(len(targets))
        if problem.fit_intercept:
            self.y_mean = first + (targets - first[:, None]) @ q
        self.targets = targets - self.y_mean[:, None]
        constant = 0.5 * np.square(self.targets) @ q
        # What rounding leaves of a constant target, as in Problem.constant_objective.
        self.scales = constant + (1e-30 * at_zero if problem.fit_intercept else 0.0)
        nothing, d = np.zeros(X.shape[1]), X.shape[1]
        self.curvature = np.empty(0)
        self.gram: Array | None = None
        # Losses are never negative: before any pass over the data the objective is a bound.
        self.points = [
            LeastSquaresPoint(
                nothing, float(self.y_mean[k]), r, np.zeros(d), 2.0 * loss, float(loss), float(loss)
            )
            for k, (r, loss) in enumerate(zip(self.targets, constant, strict=True))
        ]

    def begin(self, start: Array | None = None) -> None:
        """Find the means and the certificates of w = 0, in one pass over the data, and of ``start``."""
        slopes = self.columns.start(self.targets, self.budget)
        zero = np.zeros(self.X.shape[1])
        if not self.problem.penalised:
            self.curvature = self.columns.curvature()
        for k, slope in enumerate(slopes):
            self.points[k] = self._point(k, zero, float(self.y_mean[k]), self.targets[k], slope)
            if start is not None:
                self._offer(k, self._evaluate(k, start[:, k], self.budget))
        if all(self._reached(k) for k in range(len(slopes))):
            self._record()

    def improve(self, k: int) -> bool:
        """Bring target k within the tolerance, or to where only rounding is left.

        True if that brings so little that another solver should go on.
        """
        working, gaps = WorkingGram(self.columns), [np.inf]
        newest, stale = self.points[k], 0
        while not self._reached(k) and stale < MOST_STALE_ITERATIONS and not self.budget.exhausted():
            before, w = newest, newest.w.copy()
            try:
                grown = self._lower(working, before, w, float(self.scales[k]))
                newest = self._evaluate(k, w, self.budget)
            except BudgetExhausted:
                self._keep_if_certified(k, w)
                raise
            lower = newest.objective < (1.0 - 1e-14) * before.objective
            stale = 0 if grown or lower or newest.gap < 0.5 * self.points[k].gap else stale + 1
            self._offer(k, newest)
            self._record()
            gaps = [np.inf] if grown else [*gaps, newest.gap]
            if self.budget.another_follows and crawls(gaps):
                return True
        return False

    # -- one iteration ------------------------------------------------------------------------

    def _lower(self, working: WorkingGram, point: LeastSquaresPoint, w: Array, scale: float) -> bool:
        """Add columns to the working set and lower the objective on it; true if it grew."""
        goal = INNER_PART * (point.gap if self.problem.penalised else self.budget.tol * scale)
        weighted = np.flatnonzero(w)
        few = self._few_columns(point)
        if few and len(working.ids) == 0:
            goal = REST * self.budget.tol * scale
            # Slopes of constant columns are exactly 0 at first.
            fresh = np.flatnonzero((point.slope != 0.0) & (w == 0.0))
        else:
            fresh = self._violators(np.concatenate([working.ids, weighted]), point)
        if len(working.ids) + len(fresh) > MOST_GRAM:
            working.keep(np.flatnonzero(w[working.ids]))
        wanted = np.sort(np.concatenate([weighted, fresh]))  # no column is in both
        if self.problem.penalised and self.X.shape[0] <= min(MOST_ROWS, len(wanted) // WIDE):
            wanted = np.union1d(weighted, self._violators(weighted, point, np.inf))
            self._lower_on_rows(wanted, w, point, REST * self.budget.tol * scale)
            return False
        if self._most_count(len(weighted), point):
            self._lower_on_rows(np.arange(w.size), w, point, REST * self.budget.tol * scale, passes=False)
            return False
        if len(wanted) > MOST_GRAM:
            part, v = w[wanted], self.columns.q * point.r
            try:
                self._descend_residuals(self.columns.take(wanted), v, part, goal, RESIDUAL_EPOCHS)
            finally:
                w[wanted] = part
            return False
        missing = np.ones(w.size, dtype=bool)
        missing[working.ids] = False
        working.add(wanted[missing[wanted]], self.budget)
        part, slope = w[working.ids], point.slope[working.ids]
        try:
            settling = few or 2 * len(fresh) <= int(np.count_nonzero(w))
            self._lower_on_gram(working.gram, part, slope, point.square, goal, settling, few)
        finally:
            w[working.ids] = part
        return len(fresh) > 0

    def _few_columns(self, point: LeastSquaresPoint) -> bool:
        """Return whether all columns are to be worked on from the start."""
        n, d = self.X.shape
        if not self.problem.penalised or d > min(FIRST_COLUMNS, n):
            return False
        return n * d * d <= SMALL_PRODUCTS or 2 * int(np.count_nonzero(self._steep(point))) >= d

    def _steep(self, point: LeastSquaresPoint) -> NDArray[np.bool_]:
        """Return which columns would lower the objective if their weight were zero."""
        size = point.slope if self.rule.positive else np.abs(point.slope)
        return np.asarray(size > self.rule.l1)

    def _descend_residuals(self, columns: Residuals, v: Array, w: Array, goal: float, epochs: int) -> None:
        """Lower the objective by passes over the residuals v / q, in place."""
        moves = (self.rule.l1, self.rule.l2, self.rule.positive, epochs, goal / len(w))
        self.budget.check(columns.descend(v, w, moves, self.budget))

    def _most_count(self, weighted: int, point: LeastSquaresPoint) -> bool:
        """Return whether so many columns have a weight or would lower the objective that all should count.

        At zero nearly all would; a squared penalty lets more columns than rows have a weight in the end.
        """
        rows = self.X.shape[0]
        if weighted == 0 or self.rule.l2 == 0.0 or rows > MOST_ROWS or not isinstance(self.X, np.ndarray):
            return False
        return bool(np.count_nonzero(self._steep(point)) >= VERY_WIDE * rows)

    def _lower_on_rows(
        self, ids: Array, w: Array, point: LeastSquaresPoint, goal: float, passes: bool = True
    ) -> None:
        """Minimise on more columns than rows: by ``passes`` while these do, then by proximal points."""
        part, q = w[ids], self.columns.q
        v, some, left = q * point.r, self.columns.take(ids) if passes else None, np.inf
        counted, before = q > 0.0, np.inf
        try:
            while some is not None and left > goal and left <= FAST_EPOCHS * before:
                before = left
                self._descend_residuals(some, v, part, goal, FEW_ROWS_EPOCHS)
                square = float((np.square(v[counted]) / q[counted]).sum())
                left = self._bound(part, some.slopes(v), square)
            if left > goal:
                root = np.sqrt(q)
                A = self.columns.weighted(ids, root)
                part = minimise_on_rows(
                    A,
                    root * point.r + A @ point.w[ids],
                    part,
                    self.rule,
                    lambda w, slope, square: self._bound(w, slope, square) <= goal,
                    self.budget,
                )
        finally:
            w[ids] = part

    def _lower_on_gram(
        self, gram: Array, w: Array, slope: Array, square: float, goal: float, settling: bool, few: bool
    ) -> None:
        """Lower the objective on the working set: to the goal, or roughly while many columns are missing."""
        rounds, epochs = MOST_ROUNDS, EPOCHS_A_ROUND
        if few:
            rounds, epochs = FEW_COLUMNS_ROUNDS, max(epochs, FEW_COLUMNS_VISITS // max(len(w), 1))
        before, slope_before = w.copy(), slope.copy()

        def left(w: Array, slope: Array) -> float:
            # |r|^2 falls by step.(slope before + slope after), without a look at the rows.
            now = square - float((w - before) @ (slope_before + slope))
            if self.problem.penalised:
                return self._bound(w, slope, now)
            return float(self._shortfall(w, slope, np.diagonal(gram)).sum())

        plain = rounds - ROUNDS_OF_POINTS
        for done in range(rounds):
            if done >= plain:
                found = minimise_on_gram(
                    gram, w, slope, self.rule, lambda w, slope: left(w, slope) <= goal, self.budget
                )
                if left(*found) < left(w, slope):
                    w[:], slope[:] = found
            descend(
                gram,
                w,
                slope,
                self.rule,
                epochs=epochs,
                goal=1e-3 * goal / max(len(w), 1),
                budget=self.budget,
            )
            if self.problem.penalised and not settling:
                return
            polish(gram, w, slope, self.rule, self.budget)
            if left(w, slope) <= goal or done > plain:
                return

    def _violators(self, ids: Array, point: LeastSquaresPoint, most: float | None = None) -> Array:
        """Return columns outside the set that would lower the objective, and some that nearly do.

        The steepest first, so many at most; none if no column would lower it.
        """
        size = point.slope.copy() if self.rule.positive else np.abs(point.slope)
        size[ids] = 0.0
        if not np.any(size > self.rule.l1):
            return np.empty(0, dtype=np.int64)
        steep = np.flatnonzero(size > NEAR_BOUND * self.rule.l1)
        if most is None:
            most = max(FIRST_COLUMNS, int(np.count_nonzero(point.w)))
            # Once few columns are missing, few that are near will turn out to be.
            most = min(most, FIRST_COLUMNS // 4 + int(1.5 * np.count_nonzero(size > self.rule.l1)))
        if len(steep) > most:
            steep = steep[np.argpartition(-size[steep], int(most))[: int(most)]]
        return np.sort(steep)

    # -- what the data say of a point ---------------------------------------------------------

    def _evaluate(self, k: int, w: Array, budget: Budget) -> LeastSquaresPoint:
        r = self.targets[k] - self.columns.combine(w, budget)
        b = self.y_mean[k]
        if self.problem.fit_intercept:
            offset = self.columns.q @ r
            r -= offset
            b = b + offset - self.columns.mean @ w
        return self._point(k, w, float(b), r, self.columns.slopes(r[None], budget)[0])

    def _point(self, k: int, w: Array, b: float, r: Array, slope: Array) -> LeastSquaresPoint:
        square = float(self.columns.q @ np.square(r))
        objective = 0.5 * square + self.rule.penalty(w)
        if self.problem.penalised:
            gap = self._bound(w, slope, square)
        else:
            gap = self._bound_without_penalty(k, w, b, slope)
        return LeastSquaresPoint(w, b, r, slope, square, objective, float(min(gap, objective)))

    def _bound(self, w: Array, slope: Array, square: float) -> float:
        """Return the bound of step 3 above."""
        alpha, penalty = self.problem.alpha, self.problem.penalty
        v = slope / alpha
        t = penalty.feasible_fraction(v)
        return 0.5 * (1.0 - t) ** 2 * square + alpha * penalty.fenchel_young(w, t * v)

    def _bound_without_penalty(self, k: int, w: Array, b: float, slope: Array) -> float:
        """Return the bound that Problem.gap defines, by way of the Gram matrix where that will do.

        The slopes f that have no right to be there (all, or those above zero under w >= 0) are
        projected out of the residuals, which costs f'G^-1 f / 2.
        """
        shortfall = self._shortfall(w, slope, self.curvature)
        if shortfall.max(initial=0.0) > self.budget.tol * self.scales[k]:
            return np.inf  # one coordinate alone can gain more than the tolerance
        d = len(w)
        if d <= min(MOST_GRAM, self.X.shape[0]):
            if self.gram is None:
                self.gram = self.columns.gram_rows(np.arange(d), 0, self.budget)
            forbidden = self._forbidden(slope)
            beta, null = solve_semidefinite(self.gram, forbidden)
            if null.shape[1] == 0:
                allowed = np.abs(w * (slope - forbidden)).sum() if self.rule.positive else 0.0
                return float(0.5 * forbidden @ beta + allowed)
        target = MemoryBlocks(self.X, self.y[:, [k]], self.weight)
        return self.problem.gap(w[:, None], np.array([b]), target)

    def _forbidden(self, slope: Array) -> Array:
        return np.maximum(slope, 0.0) if self.rule.positive else slope

    def _shortfall(self, w: Array, slope: Array, curvature: Array) -> Array:
        """Return what each coordinate by itself could still gain where nothing is penalised."""
        gain = np.square(self._forbidden(slope))
        gain = gain / (2.0 * np.where(curvature > 0.0, curvature, np.inf))
        return np.asarray(gain + (np.abs(w * slope) if self.rule.positive else 0.0))

    # -- bookkeeping --------------------------------------------------------------------------

    def _reached(self, k: int) -> bool:
        return bool(self.points[k].gap <= self.budget.tol * self.scales[k])

    def _offer(self, k: int, point: LeastSquaresPoint) -> None:
        if point.gap <= self.points[k].gap:
            self.points[k] = point

    def _keep_if_certified(self, k: int, w: Array) -> None:
        with suppress(BudgetExhausted):
            self._offer(k, self._evaluate(k, w, Budget(time_limit=GRACE_SECONDS)))

    def _record(self) -> None:
        self.budget.record(
            sum(point.objective for point in self.points),
            sum(point.gap for point in self.points),
            float(self.scales.sum()),
        )
