"""Machines for several classes: one for every pair, or one for every class against the rest.

    one-vs-one    y = +1 for class i, -1 for class j, i < j, no rows of other classes; (0, 1), (0, 2), ...
    one-vs-rest   y = +1 for class i, -1 for all others

Two classes are one machine, with y = +1 for class 1. Rows of weight 0 (U = 0) are left out. The machines do
not depend on each other: each is solved by one thread, whoever is free takes the next, and the result does
not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.certificate import Certificate
from sixfold.solvers.kernel.binary_svm import DualProblem, DualSolution, solve_dual
from sixfold.solvers.kernel.certificate import certify
from sixfold.solvers.kernel.gram_cache import ClassBlocks, GramCache
from sixfold.solvers.kernel.kernel_rows import KernelRows
from sixfold.solvers.threads import one_blas_thread

Array = NDArray[Any]

LEAST_MEMORY = 8 << 20  # with less, a thousand rows would take turns for ever
SMALL = 1e7  # entries of all Gram matrices: below, threads would wait for the interpreter most of the time
# Products of numbers in the block of a class with itself, below which it is computed again sooner than put in
# place: the matrices of three pairs of 50 rows take 116 microseconds, and 155 put together.
WORTH_SHARING = 1 << 17
Outcome = tuple[DualSolution, Certificate, str | None]  # and why it was stopped


@dataclass(frozen=True)
class Machine:
    """One solved machine.

    Attributes
    ----------
    positive : int
        The class of y = +1.
    negative : int or None
        The class of y = -1; None for all others.
    problem : DualProblem
    solution : DualSolution
    certificate : Certificate
    """

    positive: int
    negative: int | None
    problem: DualProblem
    solution: DualSolution
    certificate: Certificate


def train(
    rows: KernelRows,
    labels: Array,
    n_classes: int,
    upper: Array,
    strategy: Literal["ovo", "ovr"],
    tol: float,
    cache_size_mb: float,
    budget: Budget,
    most_iterations: int | None = None,
    starts: Sequence[Array | None] | None = None,
) -> list[Machine]:
    """Solve all machines.

    Parameters
    ----------
    rows : KernelRows
    labels : ndarray of int
        0, ..., n_classes - 1.
    upper : ndarray of float
        C times the weight of each row.
    strategy : {"ovo", "ovr"}
    cache_size_mb : float
        Most megabytes for kernel values; 8 are taken in any case.
    budget : Budget
        One record a machine; with a single machine, one a round.
    most_iterations : int, optional
        Of each machine.
    starts : sequence of ndarray or None, optional
        First guesses of alpha, aligned with the rows of each machine (``problem.index``).

    Returns
    -------
    list of Machine
    """
    counts = upper > 0.0
    members = [((labels == number) & counts).nonzero()[0] for number in range(n_classes)]
    sides = list(_sides(n_classes, strategy))
    problems = [_problem(rows, members, side, upper) for side in sides]
    guesses = [None] * len(sides) if starts is None else list(starts)
    memory = max(int(cache_size_mb * (1 << 20)), LEAST_MEMORY)
    if len(problems) == 1:
        solution = solve_dual(problems[0], tol, memory, budget, most_iterations, guesses[0])
        return [Machine(*sides[0], problems[0], solution, certify(problems[0], solution, tol))]
    found = _solve_all(problems, sides, members, tol, memory, budget, most_iterations, guesses)
    return [
        Machine(*side, problem, solution, certificate)
        for side, problem, (solution, certificate, _) in zip(sides, problems, found, strict=True)
    ]


def _sides(n_classes: int, strategy: str) -> Iterator[tuple[int, int | None]]:
    if n_classes == 2:
        yield 1, 0
    elif strategy == "ovo":
        yield from combinations(range(n_classes), 2)
    else:
        yield from ((number, None) for number in range(n_classes))


def _problem(
    rows: KernelRows, members: list[Array], side: tuple[int, int | None], upper: Array
) -> DualProblem:
    """Return one machine's rows, the positive ones first (LIBSVM's order)."""
    positive, negative = side
    if negative is None:
        others = np.sort(np.concatenate([m for number, m in enumerate(members) if number != positive]))
    else:
        others = members[negative]
    index = np.concatenate([members[positive], others])
    y = np.ones(index.size)
    y[members[positive].size :] = -1.0
    return DualProblem(rows, index, y, upper[index])


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
        """Whether this machine, or all of them, have to end now."""
        return self.whole.stopped_by is not None or super().exhausted()

    def record(self, objective: float, gap: float, scale: float) -> bool:
        """Note nothing: callbacks are called by the main thread."""
        return self.exhausted()


def _solve_all(
    problems: list[DualProblem],
    sides: list[tuple[int, int | None]],
    members: list[Array],
    tol: float,
    memory: int,
    budget: Budget,
    most_iterations: int | None,
    starts: Sequence[Array | None],
) -> list[Outcome]:
    """Solve several machines, each on one thread."""
    workers = min(core.threads(), len(problems))
    largest = max(part.size for part in members) ** 2 * problems[0].rows.table.shape[1]
    shared = sides[0][1] is not None and largest >= WORTH_SHARING  # only pairs have blocks in common
    common = min(memory // 2, sum(8 * part.size**2 for part in members)) if shared else 0
    blocks = ClassBlocks(problems[0].rows, members, common) if shared else None
    share = (memory - common) // workers

    def solve(number: int) -> Outcome:
        before = core.limit_threads(1)
        try:
            problem, own = problems[number], _Shared(budget)
            one, other = sides[number]
            pair = (one, other) if shared and other is not None else None
            cache = GramCache(problem.rows, problem.index, share, blocks, pair)
            solution = solve_dual(problem, tol, share, own, most_iterations, starts[number], cache)
            return solution, certify(problem, solution, tol), own.stopped_by
        finally:
            core.limit_threads(before)

    numbers = range(len(problems))
    if sum(problem.y.size**2 for problem in problems) <= SMALL:
        found = _collect(((number, solve(number)) for number in numbers), budget)
    else:
        found = _on_threads(solve, workers, len(problems), budget)
    # Not earlier: it would have ended the other machines.
    reasons = (reason for _, _, reason in found if reason is not None)
    budget.stopped_by = budget.stopped_by or next(reasons, None)
    return found


def _on_threads(solve: Callable[[int], Outcome], workers: int, count: int, budget: Budget) -> list[Outcome]:
    """Solve all machines on a pool of threads."""
    with one_blas_thread, ThreadPoolExecutor(workers) as pool:
        futures = {pool.submit(solve, number): number for number in range(count)}
        try:
            done = ((futures[future], future.result()) for future in as_completed(futures))
            return _collect(done, budget)
        except BaseException:
            budget.flag[0] = 1  # the other machines need not go on
            pool.shutdown(cancel_futures=True)
            raise


def _collect(done: Iterable[tuple[int, Outcome]], budget: Budget) -> list[Outcome]:
    """Return what was found for all machines in their order; record each when it is there."""
    found: dict[int, Outcome] = {}
    objective = gap = scale = 0.0
    for number, outcome in done:
        found[number] = outcome
        part = outcome[1]
        objective, gap, scale = objective + part.objective, gap + part.gap, scale + part.scale
        budget.record(objective, gap, scale)
    return [found[number] for number in sorted(found)]
