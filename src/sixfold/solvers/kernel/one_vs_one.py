"""The binary SVMs of several classes: one for every pair, or one for every class against the rest.

    two classes   one SVM, y = +1 for class 1
    one-vs-one    y = +1 for class i, -1 for class j, no rows of other classes; (0, 1), (0, 2), ..., (1, 2)
    one-vs-rest   y = +1 for class i, -1 for all others

Rows of weight 0 (U = 0) are left out. The SVMs do not depend on each other: each is solved by one thread,
whoever is free takes the next, and the result does not depend on the number of threads.

They share one list of support vectors, in scikit-learn's layout (:class:`SupportLayout`): those of any SVM,
sorted by class, then by row. ``dual_coef[m, v]`` is y_v a_v of support vector v in its m-th SVM. One-vs-one,
a support vector of class c is in the SVMs of c and each other class j, and row m speaks of j = m for m < c
and of j = m + 1 from there on; so there are as many rows as other classes. Otherwise, row m speaks of SVM m.

Source: Hsu and Lin (2002), A comparison of methods for multiclass support vector machines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget, BudgetExhausted
from sixfold.certificate import Certificate
from sixfold.solvers.kernel.decomposition import DIRECT_ROWS, make_cache, solve_dual
from sixfold.solvers.kernel.dual import DualProblem, DualSolution, certify, make_certificate
from sixfold.solvers.kernel.gram_cache import ClassBlocks
from sixfold.solvers.kernel.kernel_rows import KernelRows
from sixfold.solvers.kernel.small_svms import FlatProblems, FlatSolutions, solve_small_svms, suit
from sixfold.solvers.threads import one_blas_thread

Array = NDArray[Any]

LEAST_MEMORY = 8 << 20  # with less, a thousand rows would take turns for ever
# Of several SVMs in one native loop; digits, 1,797 x 64 of ten classes, take 11.6 ms instead of 15.1.
ROWS_AT_ONCE = 2000
# Of a single SVM in one native loop: that saves 80 microseconds, and its Gram matrix is computed again where
# pairs are not all it takes (1,400 rows at C=100: 18 ms instead of 15).
FEW_ROWS = 400
FEW_ENTRIES = 1e7  # of all Gram matrices: below, threads would wait for the interpreter most of the time
# Products of numbers in the block of a class with itself, below which it is computed again sooner than put in
# place: the matrices of three pairs of 50 rows take 116 microseconds, and 155 put together.
WORTH_SHARING = 1 << 17
# SVMs: up to so many, most of them with coefficient 0, cost less than reading the rows once a class. Ten
# classes of 4,000 images: 0.13 s of processor time at once and 0.21 s class by class.
MOST_SVMS_AT_ONCE = 64
CLEARLY_FREE = 1e-3  # of its bound or the largest of all: a multiplier this far from both ends is free


def class_sides(n_classes: int, pairwise: bool) -> list[tuple[int, int | None]]:
    """Return the positive and the negative class of each binary SVM; None is the rest.

    >>> class_sides(3, pairwise=True)
    [(0, 1), (0, 2), (1, 2)]
    """
    if n_classes == 2:
        return [(1, 0)]
    return list(combinations(range(n_classes), 2)) if pairwise else [(c, None) for c in range(n_classes)]


def svms_of(label: int, n_classes: int) -> Array:
    """Return the SVMs of a class with each other class, in the order of the others.

    >>> svms_of(1, 3)
    array([0, 2])
    """
    first = np.arange(label)  # those before it, which are the first of their pair
    before = first * (2 * n_classes - first - 1) // 2 + label - first - 1
    start = label * (2 * n_classes - label - 1) // 2
    return np.concatenate([before, np.arange(start, start + n_classes - label - 1)])


def rows_of_classes(labels: Array, n_classes: int, upper: Array) -> list[Array]:
    """Return the rows of each class that count, ascending.

    >>> [rows.tolist() for rows in rows_of_classes(np.array([1, 0, 1, 1]), 2, np.array([1.0, 1.0, 0.0, 2.0]))]
    [[1], [0, 3]]
    """
    there = (upper > 0.0).nonzero()[0]
    narrow = labels[there].astype(np.uint16)  # which are sorted digit by digit
    order = there[narrow.argsort(kind="stable")]
    ends = np.add.accumulate(np.bincount(narrow, minlength=n_classes)).tolist()
    return [order[start:end] for start, end in zip([0, *ends], ends, strict=False)]


# -- solving -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BinarySVM:
    """One solved binary SVM.

    Attributes
    ----------
    positive : int
        The class of y = +1.
    negative : int or None
        The class of y = -1; None for all others.
    problem : DualProblem
    solution : DualSolution
    certificate : Certificate
    stopped_by : str or None
        Why it was ended, if it was.
    """

    positive: int
    negative: int | None
    problem: DualProblem
    solution: DualSolution
    certificate: Certificate
    stopped_by: str | None = None


def fit_binary_svms(
    rows: KernelRows,
    labels: Array,
    n_classes: int,
    upper: Array,
    pairwise: bool,
    tol: float,
    cache_size_mb: float,
    budget: Budget,
    most_iterations: int | None = None,
    starts: Sequence[Array | None] | None = None,
) -> Sequence[BinarySVM]:
    """Solve the binary SVMs of all classes.

    Parameters
    ----------
    rows : KernelRows
    labels : ndarray of int
        0, ..., n_classes - 1.
    upper : ndarray of float
        C times the weight of each row.
    pairwise : bool
        Whether there is one for each pair of classes, or one for each class against the rest.
    cache_size_mb : float
        Most megabytes for kernel values; 8 are taken in any case.
    budget : Budget
        One record an SVM; with a single one, one a round.
    most_iterations : int, optional
        Of each SVM.
    starts : sequence of ndarray or None, optional
        First guesses of alpha, aligned with the rows of each SVM (``problem.index``).

    Returns
    -------
    sequence of BinarySVM
        In the order of :func:`class_sides`.
    """
    members = rows_of_classes(labels, n_classes, upper)
    sides = class_sides(n_classes, pairwise)
    memory = max(int(cache_size_mb * (1 << 20)), LEAST_MEMORY)
    largest = max(part.size for part in members) ** 2 * rows.table.shape[1]
    shared = sides[0][1] is not None and largest >= WORTH_SHARING  # only pairs have blocks in common
    guesses: Sequence[Array | None] = [None] * len(sides) if starts is None else starts
    earlier = [0] * len(sides)  # pairs that led to the guesses
    if most_iterations is None and starts is None and not budget.exhausted():
        flat = _solve_at_once(rows, members, sides, upper, tol, memory, budget)
        if flat is not None and flat.optimal:
            return SmallSVMs(rows, sides, flat, tol)
        if flat is not None:
            guesses, earlier = flat.starts(), flat.iterations.tolist()
    problems = [_problem(rows, members, side, upper) for side in sides]
    if len(problems) == 1:
        solution = solve_dual(
            problems[0], tol, memory, budget, most_iterations, guesses[0], earlier=earlier[0]
        )
        return [BinarySVM(*sides[0], problems[0], solution, certify(problems[0], solution, tol))]
    workers = min(core.threads(), len(problems))
    common = min(memory // 2, sum(8 * part.size**2 for part in members)) if shared else 0
    blocks = ClassBlocks(rows, members, common) if shared else None
    share = (memory - common) // workers

    def solve(number: int) -> BinarySVM:
        before = core.limit_threads(1)
        try:
            problem, own = problems[number], _Shared(budget)
            one, other = sides[number]
            pair = (one, other) if shared and other is not None else None
            cache = make_cache(problem.rows, problem.index, share, blocks, pair)
            solution = solve_dual(
                problem, tol, share, own, most_iterations, guesses[number], cache, earlier[number]
            )
            return BinarySVM(one, other, problem, solution, certify(problem, solution, tol), own.stopped_by)
        finally:
            core.limit_threads(before)

    if sum(problem.y.size**2 for problem in problems) <= FEW_ENTRIES:
        svms = _collect(((number, solve(number)) for number in range(len(problems))), budget)
    else:
        svms = _on_threads(solve, workers, len(problems), budget)
    # Not earlier: it would have ended the other SVMs.
    reasons = (svm.stopped_by for svm in svms if svm.stopped_by is not None)
    budget.stopped_by = budget.stopped_by or next(reasons, None)
    return svms


class SmallSVMs(Sequence[BinarySVM]):
    """Binary SVMs that were solved at once; each is made of the flat arrays when it is asked for."""

    def __init__(
        self, rows: KernelRows, sides: list[tuple[int, int | None]], flat: FlatSolutions, tol: float
    ) -> None:
        self.rows, self.sides, self.flat, self.tol = rows, sides, flat, tol

    def __len__(self) -> int:
        return len(self.sides)

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self[k] for k in range(*number.indices(len(self)))]
        (positive, negative), flat = self.sides[number], self.flat.problems
        number = range(len(self))[number]
        some = slice(flat.start[number], flat.start[number + 1])
        problem = DualProblem(self.rows, flat.index[some], flat.y[some], flat.upper[some])
        solution = self.flat.solution(number)
        return BinarySVM(positive, negative, problem, solution, certify(problem, solution, self.tol))


def _solve_at_once(
    rows: KernelRows,
    members: list[Array],
    sides: list[tuple[int, int | None]],
    upper: Array,
    tol: float,
    memory: int,
    budget: Budget,
) -> FlatSolutions | None:
    """Return what comes of all binary SVMs at once, if they are small and each has two classes; else None."""
    most = ROWS_AT_ONCE if len(sides) > 1 else min(FEW_ROWS, ROWS_AT_ONCE)
    if rows.n_rows > most or not all(part.size for part in members):
        return None
    problems = FlatProblems.of(members, [_rows_of(members, side) for side in sides], upper)
    if problems.entries > FEW_ENTRIES or not suit(rows, problems, memory):
        return None
    try:
        with one_blas_thread:
            flat = solve_small_svms(rows, problems, tol, budget)
    except BudgetExhausted:
        return None
    for sums in flat.sums if flat.optimal else ():
        if budget.record(*sums) and budget.stopped_by_callback:
            break
    return flat


def fit_svm_paths(
    rows: KernelRows,
    labels: Array,
    n_classes: int,
    uppers: Sequence[Array],
    pairwise: bool,
    tol: float,
    cache_size_mb: float,
    interrupted: NDArray[np.int32] | None = None,
) -> list[list[BinarySVM]]:
    """Solve the binary SVMs of all classes for several C: one Gram matrix, each from the solution before.

    Parameters
    ----------
    rows, labels, n_classes, pairwise, cache_size_mb
        As in :func:`fit_binary_svms`.
    uppers : sequence of ndarray
        C times the weight of each row, C ascending.
    interrupted : ndarray of int32, optional
        The flag of a budget (``Budget.flag``), which ends all of them when it is set.

    Returns
    -------
    list of list of BinarySVM
        For each C, in the order of :func:`class_sides`.
    """
    members = rows_of_classes(labels, n_classes, uppers[0])
    sides = class_sides(n_classes, pairwise)
    memory = max(int(cache_size_mb * (1 << 20)), LEAST_MEMORY)
    alone = len(sides) == 1
    entries = sum(_problem(rows, members, side, uppers[0]).y.size ** 2 for side in sides)
    workers = 1 if alone or entries <= FEW_ENTRIES else min(core.threads(), len(sides))
    largest = max(part.size for part in members) ** 2 * rows.table.shape[1]
    shared = sides[0][1] is not None and not alone and largest >= WORTH_SHARING
    common = min(memory // 2, sum(8 * part.size**2 for part in members)) if shared else 0
    blocks = ClassBlocks(rows, members, common) if shared else None
    share = (memory - common) // workers
    flag = np.zeros(1, dtype=np.int32) if interrupted is None else interrupted

    def solve(side: tuple[int, int | None]) -> list[BinarySVM]:
        before = core.limit_threads(1) if workers > 1 else None
        try:
            return _path(rows, members, side, uppers, tol, share, blocks, flag)
        finally:
            if before is not None:
                core.limit_threads(before)

    if workers == 1:
        paths = [solve(side) for side in sides]
    else:
        with one_blas_thread, ThreadPoolExecutor(workers) as pool:
            paths = list(pool.map(solve, sides))
    return [list(svms) for svms in zip(*paths, strict=True)]


def _path(
    rows: KernelRows,
    members: list[Array],
    side: tuple[int, int | None],
    uppers: Sequence[Array],
    tol: float,
    memory: int,
    blocks: ClassBlocks | None,
    flag: NDArray[np.int32],
) -> list[BinarySVM]:
    """Return one binary SVM for each C."""

    def new_budget() -> Budget:
        own = Budget(tol)
        own.flag = flag
        return own

    one, other = side
    pair = (one, other) if blocks is not None and other is not None else None
    found: list[BinarySVM] = []
    cache = None
    for upper in uppers:
        problem, budget = _problem(rows, members, side, upper), new_budget()
        # Which of its stationary points an indefinite problem ends at depends on where it starts, and on the
        # rows that are active first: those of a fit of its own.
        alike = rows.kernel.definite or problem.y.size <= DIRECT_ROWS
        cache = cache if cache and alike else make_cache(rows, problem.index, memory, blocks, pair)
        start = _next_start(found[-1], problem) if found and rows.kernel.definite else None
        solution = solve_dual(problem, tol, memory, budget, start=start, cache=cache)
        if start is not None and not _is_determined(problem, solution):
            solution = solve_dual(problem, tol, memory, budget := new_budget(), cache=cache)
        certificate = certify(problem, solution, tol)
        found.append(BinarySVM(one, other, problem, solution, certificate, budget.stopped_by))
    return found


def _next_start(before: BinarySVM, problem: DualProblem) -> DualSolution | None:
    """Return where to start for a larger C: scores are known there.

    Where most support vectors are at their bound most of them will be at the next one, and all multipliers
    grow with C; else most will stay where they are. Where none is at its bound the optimum is the same. Of 25
    settings of 2,000 rows, C ten times as large each time, that saves a seventh of the time.
    """
    solution, old, new = before.solution, before.problem.upper, problem.upper
    if problem.box.hard:
        return None
    bound = solution.alpha >= old
    if np.count_nonzero(bound) <= np.count_nonzero((solution.alpha > 0.0) & ~bound):
        return solution
    factor = float(new[0] / old[0])
    alpha = np.where(bound, new, np.minimum(factor * solution.alpha, new))
    scores, rounding = factor * solution.scores, factor * solution.rounding
    return replace(solution, alpha=alpha, scores=scores, rounding=rounding)


def _is_determined(problem: DualProblem, solution: DualSolution) -> bool:
    """Return whether the optimum has one intercept: that of a row which is clearly free.

    Where all support vectors are at their bound, every intercept between two limits is optimal, and which one
    a fit ends with depends on its path. So the path has to be that of a fit of its own.
    """
    room = np.minimum(solution.alpha, problem.upper - solution.alpha)
    return bool((room > CLEARLY_FREE * np.minimum(problem.upper, solution.alpha.max())).any())


def certify_all(svms: Sequence[BinarySVM], tol: float) -> Certificate:
    """Return what is known of all binary SVMs together: their objectives, gaps and scales add up."""
    if isinstance(svms, SmallSVMs):
        return svms.flat.certificate(tol)
    parts = [svm.certificate for svm in svms]
    if len(parts) == 1:
        return parts[0]
    objective, gap, scale, rounding = (
        sum(getattr(part, name) for part in parts) for name in ("objective", "gap", "scale", "rounding")
    )
    return make_certificate([svm.solution for svm in svms], objective, gap, scale, tol, rounding)


class Figures(NamedTuple):
    """Of each binary SVM |w|^2 and the pairs that were moved; of all the largest violation and rounding."""

    squares: list[float]
    iterations: list[int]
    violation: float
    rounding: float


def figures_of(svms: Sequence[BinarySVM]) -> Figures:
    """Return what the learner's attributes say of the SVMs one by one."""
    if isinstance(svms, SmallSVMs):
        flat = svms.flat
        largest = float(flat.violations.max()), float(flat.rounding.max())
        return Figures(flat.squares.tolist(), flat.iterations.tolist(), *largest)
    solutions = [svm.solution for svm in svms]
    return Figures(
        [one.state.square for one in solutions],
        [one.iterations for one in solutions],
        max(one.violation for one in solutions),
        max(one.rounding for one in solutions),
    )


def _problem(
    rows: KernelRows, members: list[Array], side: tuple[int, int | None], upper: Array
) -> DualProblem:
    """Return the rows of one binary SVM, the positive ones first (LIBSVM's order)."""
    positive, negative = _rows_of(members, side)
    index = np.concatenate([positive, negative])
    y = np.ones(index.size)
    y[positive.size :] = -1.0
    return DualProblem(rows, index, y, upper[index])


def _rows_of(members: list[Array], side: tuple[int, int | None]) -> tuple[Array, Array]:
    """Return the positive and the negative rows of one binary SVM."""
    positive, negative = side
    if negative is not None:
        return members[positive], members[negative]
    others = [part for number, part in enumerate(members) if number != positive]
    return members[positive], np.sort(np.concatenate(others))


class _Shared(Budget):
    """A budget for one of several threads: it keeps to the limits of the whole, and records nothing."""

    def __init__(self, whole: Budget) -> None:
        super().__init__(whole.tol, time_limit=whole.time_limit)
        self.whole = whole
        self.flag = whole.flag

    @property
    def seconds_left(self) -> float:
        """Seconds until the time limit of the whole."""
        return self.whole.seconds_left

    def exhausted(self) -> bool:
        """Whether this SVM, or all of them, have to end now."""
        return self.whole.stopped_by is not None or super().exhausted()

    def record(self, objective: float, gap: float, scale: float) -> bool:
        """Note nothing: callbacks are called by the main thread."""
        return self.exhausted()


def _on_threads(
    solve: Callable[[int], BinarySVM], workers: int, count: int, budget: Budget
) -> list[BinarySVM]:
    """Solve all SVMs on a pool of threads."""
    with one_blas_thread, ThreadPoolExecutor(workers) as pool:
        futures = {pool.submit(solve, number): number for number in range(count)}
        try:
            done = ((futures[future], future.result()) for future in as_completed(futures))
            return _collect(done, budget)
        except BaseException:
            budget.flag[0] = 1  # the other SVMs need not go on
            pool.shutdown(cancel_futures=True)
            raise


def _collect(done: Iterable[tuple[int, BinarySVM]], budget: Budget) -> list[BinarySVM]:
    """Return all SVMs in their order; record each when it is there."""
    found: dict[int, BinarySVM] = {}
    objective = gap = scale = 0.0
    for number, svm in done:
        found[number] = svm
        part = svm.certificate
        objective, gap, scale = objective + part.objective, gap + part.gap, scale + part.scale
        budget.record(objective, gap, scale)
    return [found[number] for number in sorted(found)]


# -- their support vectors ---------------------------------------------------------------------------------


class Scorer(Protocol):
    """Scores rows by coefficients on some of the support vectors."""

    def __call__(self, vectors: slice, coefficients: Array) -> Array:
        """Return K(rows, support vectors) @ coefficients, of shape (rows, columns of coefficients)."""


@dataclass(frozen=True)
class SupportLayout:
    """The support vectors and coefficients of all binary SVMs, as scikit-learn lays them out.

    Attributes
    ----------
    support : ndarray of int of shape (support vectors,)
        Their training rows.
    n_support : ndarray of int of shape (classes,)
        How many are of each class.
    dual_coef : ndarray of shape (classes - 1, support vectors) or (SVMs, support vectors)
        The second where each is in all SVMs: one against the rest, and in the space of landmarks.
    intercept : ndarray of shape (SVMs,)
    pairwise : bool
        Whether there is an SVM for each of several pairs.
    """

    support: Array
    n_support: Array
    dual_coef: Array
    intercept: Array
    pairwise: bool

    @property
    def sides(self) -> list[tuple[int, int | None]]:
        """The positive and the negative class of each SVM; None is the rest."""
        return class_sides(self.n_support.size, self.pairwise)

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Go through runs of support vectors, with the SVMs that the rows of ``dual_coef`` speak of."""
        if self.dual_coef.shape[0] == self.intercept.size:
            if self.support.size:
                yield slice(0, self.support.size), np.arange(self.intercept.size)
            return
        end = 0
        for label, count in enumerate(self.n_support.tolist()):
            start, end = end, end + count
            if count:
                yield slice(start, end), svms_of(label, self.n_support.size)

    def decisions(self, rows: int, score: Scorer) -> Array:
        """Return f of every SVM for so many rows; ``score`` is asked at once, or class by class."""
        if self.pairwise and self.intercept.size <= MOST_SVMS_AT_ONCE and self.support.size:
            factors = np.zeros((self.support.size, self.intercept.size))
            for vectors, svms in self.blocks():
                factors[vectors, svms] = self.dual_coef[:, vectors].T
            return score(slice(0, self.support.size), factors) + self.intercept
        result = np.tile(self.intercept, (rows, 1))
        for vectors, svms in self.blocks():
            result[:, svms] += score(vectors, np.ascontiguousarray(self.dual_coef[:, vectors].T))
        return result

    def coefficients(self, svm: int) -> Array:
        """Return y_v a_v of every support vector in one SVM; 0 where it is in none of its classes."""
        result = np.zeros(self.support.size)
        for vectors, svms in self.blocks():
            for row in np.flatnonzero(svms == svm):
                result[vectors] = self.dual_coef[row, vectors]
        return result

    def coefficient_lengths(self) -> Array:
        """Return sqrt(sum_v a_v^2) of every SVM."""
        squares = np.zeros(self.intercept.size)
        for vectors, svms in self.blocks():
            squares[svms] += np.square(self.dual_coef[:, vectors]).sum(axis=1)
        return np.sqrt(squares)


def arrange(svms: Sequence[Any], labels: Array, n_classes: int, pairwise: bool) -> SupportLayout:
    """Return binary SVMs in the layout of scikit-learn.

    Parameters
    ----------
    svms : sequence of BinarySVM
        In the order of :func:`class_sides`.
    labels : ndarray of int of shape (rows,)
        The class of each training row.
    pairwise : bool
        Whether there is one SVM for each pair of more than two classes.
    """
    index, signed, sizes, intercepts = _flat(svms)
    there = signed.nonzero()[0]
    own, values = index[there], signed[there]
    if pairwise:  # the rows of the layout that a support vector of either class has its coefficients in
        up, down = np.array(class_sides(n_classes, pairwise)).T[::-1] - [[1], [0]]
        number = np.repeat(np.arange(sizes.size), sizes)[there]
        lines = np.where(values > 0, up[number], down[number])
    else:
        lines = np.repeat(np.arange(sizes.size), sizes)[there]
    used = np.zeros(labels.size, dtype=bool)
    used[own] = True
    support = used.nonzero()[0]
    support = support[labels[support].argsort(kind="stable")]
    place = np.empty(labels.size, dtype=np.intp)
    place[support] = np.arange(support.size)
    coefficients = np.zeros((n_classes - 1 if pairwise else len(svms), support.size))
    coefficients[lines, place[own]] = values
    return SupportLayout(
        support=support.astype(np.int32),
        n_support=np.bincount(labels[support], minlength=n_classes).astype(np.int32),
        dual_coef=coefficients,
        intercept=intercepts,
        pairwise=pairwise,
    )


def _flat(svms: Sequence[Any]) -> tuple[Array, Array, Array, Array]:
    """Return the rows of all SVMs, y a of each, how many each SVM has, and the intercepts."""
    if isinstance(svms, SmallSVMs):
        flat, problems = svms.flat, svms.flat.problems
        return problems.index, problems.y * flat.alpha, np.diff(problems.start), flat.intercepts.copy()
    return (
        np.concatenate([svm.problem.index for svm in svms]),
        np.concatenate([svm.problem.y * svm.solution.alpha for svm in svms]),
        np.array([svm.problem.index.size for svm in svms]),
        np.array([svm.solution.intercept for svm in svms], dtype=np.float64),
    )
