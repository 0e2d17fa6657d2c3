"""Decomposition: the dual of a binary SVM by sequential minimal optimisation on active rows, round by round.

    maximise   D(a) = sum_i a_i - 1/2 sum_ij a_i a_j y_i y_j K_ij      0 <= a_i <= U_i,  sum_i a_i y_i = 0

One round (the formulas of what it looks at are in :mod:`sixfold.solvers.kernel.dual`):

1. choose active rows W: the free ones, those that violate optimality, and those closest to doing so, as
   many as fit in memory. Few rows are all active, and one round is enough;
2. the Gram matrix of W, most of which :class:`~sixfold.solvers.kernel.gram_cache.GramCache` has already
   (few rows have theirs whole, :class:`WholeGram`);
3. second-order sequential minimal optimisation on W (``core.smo``), the other rows fixed;
4. the scores of the other rows move with those that changed;
5. done when the violation over *all* rows is at most tol, and the gap at most tol times the objective of
   the best constant model.

A most violating pair is always in W, so every round makes D larger and the rounds converge also where not
even the support vectors fit in memory (Lin, 2001). The first active rows are a sample, solved loosely: it
tells which rows are worth looking at.

*Precision.* A Gram matrix in float32 takes half the memory and time. Its errors are those of an approximate
Hessian: where step 4 is in float64, a round that was led astray is put right by the next. Where that gets
nowhere, the Gram matrix is in float64 too.

The hard margin has U infinite. It is solved with a finite bound, which is raised as long as a row reaches it:
each such problem has a solution, and its multipliers tend to a proof that the classes overlap if they do
(:mod:`sixfold.solvers.kernel.separability`).

Sources: Fan, Chen and Lin (2005), Working set selection using second order information; Lin (2001), On the
convergence of the decomposition method for support vector machines.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget, BudgetExhausted
from sixfold.solvers.kernel import linear_interior_point
from sixfold.solvers.kernel.definiteness import definite_when_balanced
from sixfold.solvers.kernel.dual import (
    DualBox,
    DualProblem,
    DualScores,
    DualSolution,
    Optimality,
    certify,
    cheapest_intercept,
    dot,
    feasible,
    optimality,
    optimality_at_zero,
    snap,
)
from sixfold.solvers.kernel.free_step import FreeSteps
from sixfold.solvers.kernel.gram_cache import WORTH_LINES, ClassBlocks, GramCache
from sixfold.solvers.kernel.kernel_rows import KernelRows
from sixfold.solvers.kernel.separability import overlap
from sixfold.solvers.threads import one_blas_thread

Array = NDArray[Any]

DOUBLE_ROWS = 1500  # up to here a Gram matrix in float64 costs nothing worth saving
DIRECT_ROWS = 3000  # up to here all rows are active at once
FIRST_ACTIVE_ROWS = 2000  # active in the first round otherwise, at most
FIRST_ROUNDS_TOL = 300.0  # times the tolerance: what the first rounds are solved to
# Of the tolerance: LIBSVM's path in other precision would end with a dual objective 1e-8 lower.
SINGLE_PRECISION_TOL = 0.7
ACTIVE_ROWS_GROWTH = 3.0  # times the rows of the round before, at most: not all that violate will matter
MOST_ACTIVE_ROWS = 4500  # unless more are free: bounded ones that violate optimality take turns
ACTIVE_PER_FREE_ROW = 3.0  # times the free rows is allowed in any case
ACTIVE_MARGIN = 0.01  # of the margin: how close to violating optimality other rows are active
PAIRS_BEFORE_FREE_STEP = 20_000  # or 10 a row: then solving for all free rows may pay
MOST_ITERATIONS = 10_000_000  # or 100 a row: where a fit without max_iter gives up
PAIRS_BEFORE_COLUMNS = 1_000_000  # or 10 a row, where an interior point can go on
MOST_UNMOVED_ROUNDS = 4  # without a step, with ever smaller tolerances, after which rounding is to blame
MOST_IDLE_ROUNDS = 40  # that leave the violation as it is, likewise
MOST_LOST_ROUNDS = 2  # or stretches, where the violation that stays is lost in the rounding of scores
NEARLY_CONVERGED = 10.0  # times the tolerance: below, luck may bring a violation lost in rounding there
BEFORE_ROUNDING = 0.9  # of the gap allowed: the certificate adds to it what rounding may be
OVERTIME = 2e7  # kernel values (at most some 0.2 s) that are still computed when time is up
FIRST_BOUND = 1e3  # in units of 1 / K(x, x): the first bound for the hard margin
BOUND_FACTOR = 1e3  # what it is multiplied with
LAST_BOUND = 1e15  # beyond it rounding decides


def solve_dual(
    problem: DualProblem,
    tol: float,
    memory: int,
    budget: Budget,
    most_iterations: int | None = None,
    start: Array | DualSolution | None = None,
    cache: GramCache | WholeGram | None = None,
    earlier: int = 0,
) -> DualSolution:
    """Maximise D.

    Parameters
    ----------
    problem : DualProblem
    tol : float
        The largest violation allowed, and the gap relative to the objective of the best constant model.
    memory : int
        Most bytes for kernel values.
    budget : Budget
        One record a round.
    most_iterations : int, optional
        Without it, the larger of ten million and a hundred a row.
    start : ndarray or DualSolution, optional
        A first guess of alpha; it need not be feasible. Of a point of the same rows, where it is feasible,
        the scores are known as well.
    cache : GramCache or WholeGram, optional
        One that was used for the same rows before, with another C for instance.
    earlier : int
        Pairs that led from 0 to the start; they count like those made here.

    Returns
    -------
    DualSolution
        The best point found, feasible also where the budget ended the work.
    """
    cache = make_cache(problem.rows, problem.index, memory) if cache is None else cache
    if not (cache.index is problem.index or np.array_equal(cache.index, problem.index)):
        raise ValueError("The cache is one of other rows than the problem's.")
    # Products of vectors as long as these are not worth a second thread, which OpenBLAS would wait for.
    with one_blas_thread:
        if problem.box.hard:
            solution = _solve_hard(problem, tol, budget, most_iterations, start, cache)
        else:
            solution = _solve_soft(problem, tol, budget, most_iterations, start, cache, earlier)
        if solution.definite is None and cache.whole is not None and budget.seconds_left > 0.0:
            if cache.definite is None:
                cache.definite = definite_when_balanced(cache.whole)
            return replace(solution, definite=cache.definite)
        return solution


def _solve_soft(
    problem: DualProblem,
    tol: float,
    budget: Budget,
    most_iterations: int | None,
    start: Array | DualSolution | None,
    cache: GramCache | WholeGram,
    earlier: int,
) -> DualSolution:
    """Go on with columns where pairs of rows get no further, or have been many; then with pairs again."""
    pairs = Decomposition(problem, tol, budget, most_iterations, cache, made=earlier)
    pairs.earlier = earlier
    columns = linear_interior_point.suits(problem)
    if columns and most_iterations is None:
        pairs.limit = max(PAIRS_BEFORE_COLUMNS, 10 * problem.y.size)
    solution = pairs.run(start)
    ended = budget.stopped_by not in (None, pairs.gave_up)
    if ended or not columns or certify(problem, solution, tol).converged:
        return solution
    budget.stopped_by = None
    solution = linear_interior_point.refine(problem, solution, tol, budget)
    if certify(problem, solution, tol).converged or budget.stopped_by is not None:
        return solution
    if pairs.iterations < pairs.limit or most_iterations is not None:  # no help, or not asked for
        budget.stopped_by = pairs.gave_up or None
        return solution
    rest = Decomposition(problem, tol, budget, None, cache, made=pairs.iterations).run(solution.alpha)
    return min(solution, rest, key=lambda found: certify(problem, found, tol).gap)


def _solve_hard(
    problem: DualProblem,
    tol: float,
    budget: Budget,
    most_iterations: int | None,
    start: Array | DualSolution | None,
    cache: GramCache | WholeGram,
) -> DualSolution:
    """Raise a bound until no row reaches it, or until the rows that do prove that the classes overlap."""
    unit = 1.0 / max(float(np.mean(problem.rows.diagonal()[problem.index])), 1e-300)
    bound = FIRST_BOUND * unit
    made = 0
    while True:
        bounded = Decomposition(problem, tol, budget, most_iterations, cache, bound, made).run(start)
        # As a solution of the problem without bounds.
        solution = replace(bounded, state=optimality(problem.box, bounded.alpha, bounded.scores))
        start, made = solution.alpha, solution.iterations
        if not (start >= bound).any() or budget.exhausted():
            return solution
        proof = overlap(problem, start, budget)
        if proof is not None or bound >= LAST_BOUND * unit:
            return replace(solution, overlap=proof)
        bound *= BOUND_FACTOR


class WholeGram:
    """The Gram matrix of all rows of a problem, which are few: what :class:`GramCache` is for many.

    Attributes
    ----------
    definite : bool or None
        Whether it is positive semi-definite, once somebody has found out.
    """

    def __init__(self, rows: KernelRows, index: Array, memory: int) -> None:
        self.rows, self.index, self.memory = rows, index, memory
        self.held: Array = np.arange(index.size)
        self.definite: bool | None = None
        self._gram: Array | None = None

    @property
    def whole(self) -> Array | None:
        """The matrix, if it is in float64."""
        return self._gram if self._gram is not None and self._gram.dtype == np.float64 else None

    def capacity(self, dtype: Any) -> int:
        """How many rows fit: all."""
        return self.index.size

    def hold(self, wanted: Array, dtype: Any, budget: Budget) -> tuple[Array, Array]:
        """Return all positions and their Gram matrix."""
        if self._gram is None or self._gram.dtype != dtype:
            self._gram = self.rows.gram(self.index, dtype, budget)
        return self.held, self._gram


def make_cache(
    rows: KernelRows,
    index: Array,
    memory: int,
    blocks: ClassBlocks | None = None,
    pair: tuple[int, int] | None = None,
) -> GramCache | WholeGram:
    """Return where the Gram matrix of these rows is; see :class:`GramCache`."""
    few = index.size < min(WORTH_LINES, DIRECT_ROWS) and 8 * index.size**2 <= memory
    if few and pair is None:
        return WholeGram(rows, index, memory)
    return GramCache(rows, index, memory, blocks, pair)


class Decomposition:
    """A feasible point, and the rounds that improve it.

    Parameters
    ----------
    problem : DualProblem
    tol : float
    budget : Budget
    most_iterations : int or None
    cache : GramCache or WholeGram
        Of the problem's rows.
    bound : float
        A finite upper bound for the hard margin.
    made : int
        Iterations that were made before.
    """

    def __init__(
        self,
        problem: DualProblem,
        tol: float,
        budget: Budget,
        most_iterations: int | None,
        cache: GramCache | WholeGram,
        bound: float = math.inf,
        made: int = 0,
    ) -> None:
        n = problem.y.size
        self.problem, self.tol, self.budget, self.cache = problem, tol, budget, cache
        # The hard margin has a finite bound only to keep rounds from running away.
        self.box = DualBox(problem.y, np.minimum(problem.upper, bound)) if problem.box.hard else problem.box
        self.y, self.upper = self.box.y, self.box.upper
        self.given_limit = most_iterations is not None
        self.limit = max(MOST_ITERATIONS, 100 * n) if most_iterations is None else most_iterations
        self.iterations = made
        self.earlier = 0  # of them, those that count to the first stretch of pairs
        self.gave_up = ""  # why, where it was not the budget that ended the rounds
        self.indefinite = False  # whether a pair was met along which D curves upwards
        self.point = DualScores(problem, tol, n > DOUBLE_ROWS or cache.capacity(np.float64) < n)
        self.single = self.point.single
        self.direct = n <= DIRECT_ROWS and cache.capacity(self._gram_dtype) >= n
        self.free_steps: FreeSteps | None = None  # made where pairs do not converge
        share = (SINGLE_PRECISION_TOL if self.single else 1.0) if self.direct else FIRST_ROUNDS_TOL
        self.inner = share * tol
        self.active = np.zeros(n, dtype=bool)
        self.short = False  # whether there was no room for all rows that should be active
        self.unmoved = self.idle = 0  # rounds without any step, and without a smaller violation
        self.least = math.inf  # violation so far
        self.complete: tuple[Array, Array, float] | None = None  # a point without stale scores
        self.state = optimality_at_zero(problem.box)

    def run(self, start: Array | DualSolution | None = None) -> DualSolution:
        """Go through rounds until the point is optimal or the budget is used up."""
        try:
            self._begin(start)
            while not self._finished():
                self._round()
        except BudgetExhausted:
            self.budget.exhausted()
        self._complete_scores()
        if not self._optimal():
            self._set_cheapest_intercept()
        point = self.point
        known = True if self.problem.rows.kernel.definite else False if self.indefinite else None
        return DualSolution(point.alpha, point.scores, self.state, self.iterations, known, point.rounding)

    def _begin(self, start: Array | DualSolution | None) -> None:
        guess = start.alpha if isinstance(start, DualSolution) else start
        if guess is None or not guess.any():
            return
        alpha = feasible(self.y, self.upper, guess)
        if isinstance(start, DualSolution) and np.array_equal(alpha, guess):
            self.point.resume(start)
        else:
            self.point.begin(alpha, self.budget)
        self.state = self._optimality()

    @property
    def _gram_dtype(self) -> type:
        return np.float32 if self.single else np.float64

    def _optimality(self) -> Optimality:
        point = self.point
        # The hard margin is judged as such, unless a row is at the bound.
        as_asked = self.box is self.problem.box or not (point.alpha >= self.upper).any()
        return optimality(self.problem.box if as_asked else self.box, point.alpha, point.scores)

    def _finished(self) -> bool:
        if self._optimal():
            if self.point.complete:
                return True
            self._update_stale()
            if self._optimal():
                return True
        lost = self.idle >= MOST_LOST_ROUNDS and self._lost(self.state.violation, self.point.alpha)
        if self.unmoved >= MOST_UNMOVED_ROUNDS or self.idle >= MOST_IDLE_ROUNDS or lost:
            self._end("rounding: no step makes it better")
        if self.iterations >= self.limit and self.given_limit:
            self.budget.stopped_by = self.budget.stopped_by or f"max_iter={self.limit}"
        elif self.iterations >= self.limit:
            self._end(f"the limit of {self.limit} iterations")
        return self.budget.exhausted()

    def _end(self, reason: str) -> None:
        """End for a reason of its own, unless the budget is used up."""
        if self.budget.stopped_by is None:
            self.budget.stopped_by = self.gave_up = reason

    def _optimal(self) -> bool:
        enough = BEFORE_ROUNDING * self.tol * self.state.scale
        return self.state.violation <= self.tol and self.state.gap <= enough

    def _lost(self, violation: float, alpha: Array) -> bool:
        """Return whether the violation is far from the tolerance, and no more than rounding may make it."""
        return NEARLY_CONVERGED * self.tol < violation <= self.point.noise_floor(alpha)

    def _set_cheapest_intercept(self) -> None:
        """Give an unfinished point the intercept that suits it.

        The point itself is kept: no other that was met has a larger D, and though its P may be beyond that of
        a constant model, its direction tells the classes apart.
        """
        if not self.problem.box.hard:
            intercept = cheapest_intercept(self.y, self.upper, self.point.scores)
            self.state = optimality(self.box, self.point.alpha, self.point.scores, intercept)

    # -- one round ---------------------------------------------------------------------------------------

    def _round(self) -> None:
        wanted = self._choose()
        active, gram = self.cache.hold(wanted, self._gram_dtype, self.budget)
        if not self.point.complete and self.point.stale[active].any():
            self._update_stale()
        alpha, gradient, completed = self._optimise(active, gram)
        self.unmoved = 0 if np.count_nonzero(alpha != self.point.alpha) else self.unmoved + 1
        before = self.state
        drift = self._move(alpha, active, gram, gradient, completed)
        self.state = self._optimality()
        new = active.size - int(np.count_nonzero(self.active[active]))
        self.active[:] = False
        self.active[active] = True
        self.budget.record(self.state.dual + self.state.gap, self.state.gap, self.state.scale)
        self._tighten(before, drift, new / active.size)

    def _choose(self) -> Array:
        """Return the rows to optimise next."""
        n = self.y.size
        if self.direct:
            return np.arange(n)
        most = self.cache.capacity(self._gram_dtype)
        if not self.point.alpha.any():
            held = self.cache.held  # by a problem with another C: rows that mattered there
            both = np.unique(self.y[held]).size == 2
            return held if both and held.size <= most else self._sample(min(most, FIRST_ACTIVE_ROWS, n))
        excess = self._excess()
        close = excess > -ACTIVE_MARGIN
        if not self.point.complete and (close & self.point.stale).any():
            self._update_stale()
            excess = self._excess()
            close = excess > -ACTIVE_MARGIN
        before = int(np.count_nonzero(self.active))
        most = min(most, max(int(ACTIVE_ROWS_GROWTH * before), FIRST_ACTIVE_ROWS)) if before else most
        free = int(np.count_nonzero((self.point.alpha > 0.0) & (self.point.alpha < self.upper)))
        most = min(most, max(MOST_ACTIVE_ROWS, int(ACTIVE_PER_FREE_ROW * free)))
        wanted = np.flatnonzero(close)
        self.short = wanted.size > most
        return self._most_violating(most, excess) if self.short else wanted

    def _excess(self) -> Array:
        """Return how far rows violate optimality, negative if they do not: 1 - y f or y f - 1 at a bound."""
        alpha = self.point.alpha
        slack = 1.0 - self.y * (self.point.scores + self.state.intercept)
        above, below = alpha > 0.0, alpha < self.upper
        return np.where(above, np.where(below, np.abs(slack), -slack), slack)

    def _sample(self, size: int) -> Array:
        """Return rows of both classes, as many of each as its share says, but one at least."""
        random = np.random.default_rng(0)
        parts = [np.flatnonzero(self.y > 0.0), np.flatnonzero(self.y < 0.0)]
        shares = [min(max(size * part.size // self.y.size, 1), part.size) for part in parts]
        return np.concatenate(
            [random.choice(part, share, replace=False) for part, share in zip(parts, shares, strict=True)]
        )

    def _most_violating(self, most: int, excess: Array) -> Array:
        """Return free rows and those that violate optimality most, some of them on either side."""
        alpha = self.point.alpha
        above, below = alpha > 0.0, alpha < self.upper
        positive = self.y > 0.0
        v = self.y - self.point.scores
        chosen = np.zeros(alpha.size, dtype=bool)
        some = max(most // 8, 1)
        _add_largest(chosen, np.where(np.where(positive, below, above), v, -math.inf), some)
        _add_largest(chosen, np.where(np.where(positive, above, below), -v, -math.inf), some)
        free = above & below
        if np.count_nonzero(free | chosen) <= most:
            chosen |= free
        _add_largest(chosen, excess, most - int(np.count_nonzero(chosen)))
        return np.flatnonzero(chosen)

    def _optimise(self, active: Array, gram: Array) -> tuple[Array, Array, bool]:
        """Return alpha with the active rows optimised, their gradient, and whether there was time for it."""
        y, upper = self.y[active], self.upper[active]
        part = self.point.alpha[active]
        gradient = y * self.point.scores[active] - 1.0
        stretch = max(PAIRS_BEFORE_FREE_STEP, 10 * active.size)
        values = gram if np.count_nonzero(part) or not self.direct else _in_single_precision(gram)
        least, idle = math.inf, 0
        begun = self.point.alpha[active], gradient.copy()
        if self.earlier:  # from 0
            begun = np.zeros(active.size), np.full(active.size, -1.0)
        first = True
        while True:
            allowed = min(self.limit - self.iterations, max(stretch - self.earlier, 0))
            made, violation, completed, indefinite = core.smo(
                values,
                y,
                upper,
                part,
                gradient,
                self.inner,
                allowed,
                self.budget.seconds_left,
                self.budget.flag,
            )
            self.iterations += made
            made, self.earlier = made + self.earlier, 0
            self.indefinite |= indefinite
            idle = 0 if violation < 0.5 * least else idle + 1
            least = min(least, violation)
            if violation <= self.inner or not completed or made < stretch:
                break
            if idle >= MOST_LOST_ROUNDS and self._lost(violation, part):
                break
            if values is not gram:
                values, gradient = gram, y * (gram @ (y * part)) - 1.0
            if self.free_steps is None:
                self.free_steps = FreeSteps(self.cache.memory)
            if first:
                first = False
                self.free_steps.begin(*begun)
            if self.indefinite or not self.free_steps.step(gram, y, upper, part, gradient, made):
                stretch *= 2
        alpha = self.point.alpha.copy()
        alpha[active] = 0.0
        alpha[active] = snap(y, upper, part, dot(self.y, alpha))
        return alpha, gradient, completed

    def _tighten(self, before: Optimality, drift: float, new: float) -> None:
        """Choose the tolerance and the precision of the next round; ``new`` is the share of new rows."""
        self.idle = 0 if self.state.violation < 0.99 * self.least or self.short else self.idle + 1
        self.least = min(self.least, self.state.violation)
        if self.single and (
            drift > 0.3 * max(before.violation, self.tol) or self.unmoved or 2 * self.idle >= MOST_IDLE_ROUNDS
        ):
            # Exact scores are nowhere near those that the Gram matrix led to, or it sees nothing to improve.
            self.single = self.point.single = False
            self.direct = self.direct and self.cache.capacity(np.float64) >= self.y.size
        if self.unmoved:
            self.inner *= 0.1
        elif self.state.violation <= self.tol or self.direct:
            self.inner *= 0.5  # rounding, or the gap is not small enough yet
        elif new < 0.05 or self.state.violation < 20.0 * self.tol:
            self.inner = min(self.inner, SINGLE_PRECISION_TOL * self.tol)
        else:
            self.inner = min(self.inner, 0.1 * self.state.violation)

    # -- scores --------------------------------------------------------------------------------------------

    def _move(self, alpha: Array, active: Array, gram: Array, gradient: Array, completed: bool) -> float:
        if gram.dtype == np.float64 and active.size == alpha.size:
            self.point.move_all(alpha, active, gram)
            return 0.0
        if self.point.complete:
            self.complete = self.point.alpha, self.point.scores, self.point.variance
        expected = self.y[active] * (gradient + 1.0)
        budget = self.budget
        if not completed:
            changed = int(np.count_nonzero(alpha != self.point.alpha))
            if changed * (alpha.size - active.size) > OVERTIME:
                raise BudgetExhausted
            budget = Budget()
        return self.point.move(alpha, active, expected, -ACTIVE_MARGIN - self._excess(), budget)

    def _update_stale(self) -> None:
        self.point.update_stale(self.budget)
        self.state = self._optimality()

    def _complete_scores(self) -> None:
        """Bring all scores up to date when the rounds have ended, or go back to where they were."""
        if self.point.complete:
            return
        if self.point.stale_values() <= OVERTIME or self.complete is None:
            self.point.update_stale(Budget())
        else:
            self.point.restore(self.complete)
        self.state = self._optimality()


def _in_single_precision(gram: Array) -> Array:
    """Return kernel values rounded to float32, with which LIBSVM's path begins, unless they overflow.

    The pairs it goes through depend on their last bits: for heart_scale and a linear kernel it ends with an
    intercept of 1.0507, and with 1.0490 where nothing is rounded. Rounds that follow are exact.
    """
    try:
        with np.errstate(over="raise"):
            return gram.astype(np.float32, copy=False)
    except FloatingPointError:
        return gram


def _add_largest(chosen: Array, value: Array, count: int) -> None:
    """Choose so many more rows, those with the largest values."""
    rest = np.flatnonzero(~chosen)
    count = min(count, rest.size)
    if count > 0:
        chosen[rest[np.argpartition(-value[rest], count - 1)[:count]]] = True
