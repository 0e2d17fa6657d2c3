"""Rounds of sequential minimal optimisation on active rows.

One round (the formulas of what it looks at are in :mod:`sixfold.solvers.dual_point`):

1. choose active rows W: the free ones, those that violate optimality, and those closest to doing so, as many as
   fit in memory. Few rows are all active, and one round is enough;
2. the Gram matrix of W, of which :class:`~sixfold.solvers.gram_cache.GramCache` has most from the last round;
3. second-order sequential minimal optimisation on W (``core.smo``), the other rows fixed;
4. the scores of all rows move by K(all, changed) (y * change), which never stores that block;
5. done when the violation over *all* rows is at most tol, and the gap at most tol times the objective of the best
   constant model.

A most violating pair is always in W, so every round makes D larger and the rounds converge also where not even
the support vectors fit in memory (Lin, 2001).

*Precision.* A Gram matrix in float32 takes half the memory and time. Its errors are those of an approximate
Hessian: where step 4 is exact, a round that was led astray is put right by the next. What an entry in float32 is
off by, times |a|, says whether step 4 may be in float32 as well; otherwise it is in float64. Where float32 leads
nowhere, the Gram matrix is in float64 too.

Sources: Fan, Chen and Lin (2005), Working set selection using second order information; Lin (2001), On the
convergence of the decomposition method for support vector machines.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.solvers.descent import CERTIFY_WORK, OutOfTimeError
from sixfold.solvers.dual_point import (
    DualProblem,
    DualSolution,
    Optimality,
    dual_objective,
    examine,
    feasible,
    snap,
)
from sixfold.solvers.gram_cache import GramCache

Array = NDArray[Any]

DOUBLE_ROWS = 1500  # up to here a Gram matrix in float64 costs nothing worth saving
DIRECT_ROWS = 3000  # up to here all rows are active at once
SAMPLE_ROWS = 2000  # active in the first round otherwise, at most
LOOSE = 30.0  # times the tolerance: what the first round solves its sample to
INNER = 0.7  # of the tolerance on active rows leaves the others some room
BAND = 0.3  # of the margin: how close to it other rows are active
STRETCH = 100_000  # iterations without convergence after which the free rows are solved for at once
MOST_ITERATIONS = 10_000_000  # or 100 a row: where a fit without max_iter gives up
CERTAIN = 4.0  # errors of entries add up like random numbers: standard deviations that are never met
FINE = 0.1  # of the tolerance: what scores may be off by


class Rounds:
    """A feasible alpha with its scores, and the rounds that improve it.

    Parameters
    ----------
    problem : DualProblem
    tol : float
    budget : Budget
    most_iterations : int or None
    cache : GramCache
        Of the problem's rows.
    bound : float
        A finite upper bound for the hard margin.
    """

    def __init__(
        self,
        problem: DualProblem,
        tol: float,
        budget: Budget,
        most_iterations: int | None,
        cache: GramCache,
        bound: float = math.inf,
    ) -> None:
        n = problem.y.size
        self.problem, self.tol, self.budget, self.cache = problem, tol, budget, cache
        self.y, self.upper = problem.y, np.minimum(problem.upper, bound)
        self.hard = math.isfinite(bound)
        self.given_limit = most_iterations is not None
        self.limit = max(MOST_ITERATIONS, 100 * n) if most_iterations is None else most_iterations
        self.iterations = 0
        self.indefinite = False
        self.alpha, self.scores, self.variance = np.zeros(n), np.zeros(n), 0.0
        self.single = n > DOUBLE_ROWS or cache.capacity(np.float64) < n
        self.direct = n <= DIRECT_ROWS and cache.capacity(self._gram_dtype) >= n
        self.inner = tol if self.direct else LOOSE * tol
        self.state = self._examine()

    def run(self, start: Array | None = None) -> DualSolution:
        """Go through rounds until the point is optimal or the budget is used up."""
        try:
            if start is not None and start.any():
                self._begin(feasible(self.y, self.upper, start))
            while not self._finished():
                self._round()
        except OutOfTimeError:
            self.budget.exhausted()
        return DualSolution(
            self.alpha,
            self.scores,
            self.state.intercept,
            self.state.violation,
            self.iterations,
            self.indefinite,
            self._rounding,
        )

    @property
    def _gram_dtype(self) -> type:
        return np.float32 if self.single else np.float64

    @property
    def _rounding(self) -> float:
        return CERTAIN * math.sqrt(self.variance)

    def _examine(self) -> Optimality:
        # The hard margin is judged as such: its finite bound only keeps rounds from running away.
        upper = self.problem.upper if self.hard and not (self.alpha >= self.upper).any() else self.upper
        return examine(self.y, upper, self.alpha, self.scores)

    def _finished(self) -> bool:
        if self._optimal():
            if self._rounding <= FINE * self.tol or not self.single:
                return True
            self._refresh()
            if self._optimal():
                return True
        if self.iterations >= self.limit:
            limit = f"max_iter={self.limit}" if self.given_limit else f"the limit of {self.limit} iterations"
            self.budget.stopped_by = self.budget.stopped_by or limit
        return self.budget.exhausted()

    def _optimal(self) -> bool:
        return self.state.violation <= self.tol and self.state.gap <= self.tol * self.state.scale

    # -- one round ---------------------------------------------------------------------------------------

    def _round(self) -> None:
        wanted = self._choose()
        active, gram = self.cache.hold(wanted, self._gram_dtype, self.budget)
        alpha, gradient, completed = self._optimise(active, gram)
        budget = self.budget if completed else self._overtime(active, alpha)
        before = self.state
        drift = self._move(alpha, active, gram, gradient, budget)
        self.state = self._examine()
        self.budget.record(-dual_objective(self.y, self.alpha, self.scores), self.state.gap, self.state.scale)
        self._tighten(before, drift, active.size == self.y.size)

    def _choose(self) -> Array:
        """Return the rows to optimise next."""
        n = self.y.size
        if self.direct:
            return np.arange(n)
        most = self.cache.capacity(self._gram_dtype)
        if not self.alpha.any():
            return self._sample(min(most, SAMPLE_ROWS, n))
        # How far a row violates optimality, or is from doing so: 1 - y f where a = 0, y f - 1 where a = U.
        slack = 1.0 - self.y * (self.scores + self.state.intercept)
        above, below = self.alpha > 0.0, self.alpha < self.upper
        excess = np.where(above, np.where(below, np.abs(slack), -slack), slack)
        wanted = np.flatnonzero((excess > -BAND) | (above & below))
        return wanted if wanted.size <= most else self._most_violating(most, excess)

    def _sample(self, size: int) -> Array:
        """Return rows of both classes, as many of each as its share says, but one at least."""
        random = np.random.default_rng(0)
        parts = [np.flatnonzero(self.y > 0.0), np.flatnonzero(self.y < 0.0)]
        shares = [min(max(size * part.size // self.y.size, 1), part.size) for part in parts]
        return np.concatenate(
            [random.choice(part, share, replace=False) for part, share in zip(parts, shares, strict=True)]
        )

    def _most_violating(self, most: int, excess: Array) -> Array:
        """Return as many rows that can go up as can go down, those that violate optimality most."""
        v = self.y - self.scores
        above, below = self.alpha > 0.0, self.alpha < self.upper
        up = np.where(np.where(self.y > 0.0, below, above), v, -math.inf)
        down = np.where(np.where(self.y > 0.0, above, below), -v, -math.inf)
        half = most // 2
        chosen = np.zeros(self.y.size, dtype=bool)
        for side in (up, down):
            chosen[np.argpartition(-side, half - 1)[:half]] = True
        rest = np.where(chosen, -math.inf, excess)
        spare = most - int(np.count_nonzero(chosen))
        if spare:
            chosen[np.argpartition(-rest, spare - 1)[:spare]] = True
        return np.flatnonzero(chosen)

    def _optimise(self, active: Array, gram: Array) -> tuple[Array, Array, bool]:
        """Return alpha with the active rows optimised, their gradient, and whether there was time for it."""
        y, upper = self.y[active], self.upper[active]
        part = self.alpha[active]
        gradient = y * self.scores[active] - 1.0
        while True:
            stretch = min(self.limit - self.iterations, max(STRETCH, 10 * active.size))
            made, violation, completed, indefinite = core.smo(
                gram,
                y,
                upper,
                part,
                gradient,
                self.inner,
                stretch,
                self.budget.seconds_left,
                self.budget.flag,
            )
            self.iterations += made
            self.indefinite |= indefinite
            if violation <= self.inner or not completed or made < stretch or self.iterations >= self.limit:
                break
        alpha = self.alpha.copy()
        alpha[active] = snap(y, upper, part)
        return alpha, gradient, completed

    def _overtime(self, active: Array, alpha: Array) -> Budget:
        """Return a budget for the scores of an optimisation that time has ended, if they cost little."""
        changed = int(np.count_nonzero(alpha != self.alpha))
        if active.size < self.y.size and changed * self.y.size > CERTIFY_WORK / 100:
            raise OutOfTimeError
        return Budget()

    def _tighten(self, before: Optimality, drift: float, complete: bool) -> None:
        """Choose the tolerance and the precision of the next round."""
        if drift > 0.3 * max(before.violation, self.tol):
            self.single = False  # exact scores are nowhere near those that the Gram matrix led to
        if self.state.violation <= self.tol or complete:
            self.inner *= 0.5  # rounding, or the gap is not small enough yet
        elif not self.direct:
            self.inner = max(INNER * self.tol, min(self.inner, 0.1 * self.state.violation))

    # -- scores --------------------------------------------------------------------------------------------

    def _begin(self, alpha: Array) -> None:
        """Start from another point than 0."""
        if self.direct:
            everything = np.arange(self.y.size)
            active, gram = self.cache.hold(everything, self._gram_dtype, self.budget)
            gradient = np.empty(self.y.size)
            gradient[:] = self.y[active] * (gram @ (alpha * self.y)[active]) - 1.0
            self._move(alpha, active, gram, gradient, self.budget)
        else:
            dtype = np.float32 if self._single_will_do(alpha) else np.float64
            changed = np.flatnonzero(alpha)
            self.scores = self._scores(None, changed, alpha, dtype, self.budget)
            self.alpha, self.variance = alpha, self._error(dtype, alpha)
        self.state = self._examine()

    def _move(self, alpha: Array, active: Array, gram: Array, gradient: Array, budget: Budget) -> float:
        """Go to another alpha, and bring the scores of all rows with it.

        Returns how far the scores that the Gram matrix led to are from exact ones.
        """
        change = alpha - self.alpha
        changed = np.flatnonzero(change)
        scores, drift = self.scores.copy(), 0.0
        expected = self.y[active] * (gradient + 1.0)
        if gram.dtype == np.float64 and active.size == self.y.size:
            scores[active] = gram @ (alpha * self.y)[active]
            self.variance = self._error(np.float64, alpha)
        elif self._single_will_do(alpha):
            rest = np.ones(self.y.size, dtype=bool)
            rest[active] = False
            scores[active] = expected
            others = np.flatnonzero(rest)
            if others.size and changed.size:
                scores[others] += self._scores(others, changed, change, np.float32, budget)
            self.variance += self._error(np.float32, change)
        else:
            scores += self._scores(None, changed, change, np.float64, budget)
            self.variance += self._error(np.float64, change)
            drift = float(np.max(np.abs(scores[active] - expected)))
        self.alpha, self.scores = alpha, scores
        return drift

    def _refresh(self) -> None:
        """Compute all scores again, in float64."""
        self.scores = self._scores(None, np.flatnonzero(self.alpha), self.alpha, np.float64, self.budget)
        self.variance = self._error(np.float64, self.alpha)
        self.state = self._examine()

    def _scores(
        self, which: Array | None, changed: Array, change: Array, dtype: type, budget: Budget
    ) -> Array:
        """Return sum_j y_j change_j K_ij of these rows, all by default."""
        index = self.problem.index
        rows = index if which is None else index[which]
        coefficients = (self.y * change)[changed, None]
        return self.problem.rows.scores(rows, index[changed], coefficients, dtype, budget)[:, 0]

    def _error(self, dtype: type, change: Array) -> float:
        """Return the variance of the error that such a change of alpha brings to a score."""
        return self.problem.rows.entry_error(dtype) ** 2 * float(change @ change)

    def _single_will_do(self, alpha: Array) -> bool:
        return self.single and CERTAIN * math.sqrt(self._error(np.float32, alpha)) <= FINE * self.tol
