"""The dual of the kernel machine by sequential minimal optimisation.

    maximise   D(a) = sum_i a_i - 1/2 sum_ij a_i a_j y_i y_j K_ij      0 <= a_i <= U_i,  sum_i a_i y_i = 0

The work is done in rounds on active rows (:mod:`sixfold.solvers.kernel.decomposition`). The hard margin has U
infinite. It is solved with a finite bound, which is raised as long as a row reaches it: each such problem
has a solution, and its multipliers tend to a proof that the classes overlap if they do
(:mod:`sixfold.solvers.kernel.separability`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.solvers.kernel.decomposition import Rounds
from sixfold.solvers.kernel.definiteness import definite_when_balanced
from sixfold.solvers.kernel.dual import DualProblem, DualSolution, examine
from sixfold.solvers.kernel.gram_cache import GramCache
from sixfold.solvers.kernel.separability import overlap
from sixfold.solvers.threads import one_blas_thread

__all__ = ["DualProblem", "DualSolution", "GramCache", "solve_dual"]

Array = NDArray[Any]

FIRST_BOUND = 1e3  # in units of 1 / K(x, x): the first bound for the hard margin
RAISE = 1e3  # what it is multiplied with
LAST_BOUND = 1e15  # beyond it rounding decides


def solve_dual(
    problem: DualProblem,
    tol: float,
    memory: int,
    budget: Budget,
    most_iterations: int | None = None,
    start: Array | None = None,
    cache: GramCache | None = None,
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
    start : ndarray, optional
        A first guess of alpha; it need not be feasible.
    cache : GramCache, optional
        One that was used for the same rows before, with another C for instance.

    Returns
    -------
    DualSolution
        The best point found, feasible also where the budget ended the work.
    """
    cache = GramCache(problem.rows, problem.index, memory) if cache is None else cache
    if not (cache.index is problem.index or np.array_equal(cache.index, problem.index)):
        raise ValueError("The cache is one of other rows than the problem's.")
    # Products of vectors as long as these are not worth a second thread, which OpenBLAS would wait for.
    with one_blas_thread:
        if problem.box.hard:
            solution = _solve_hard(problem, tol, budget, most_iterations, start, cache)
        else:
            solution = Rounds(problem, tol, budget, most_iterations, cache).run(start)
        if solution.definite is None and cache.whole is not None and budget.seconds_left > 0.0:
            return replace(solution, definite=definite_when_balanced(cache.whole))
        return solution


def _solve_hard(
    problem: DualProblem,
    tol: float,
    budget: Budget,
    most_iterations: int | None,
    start: Array | None,
    cache: GramCache,
) -> DualSolution:
    """Raise a bound until no row reaches it, or until the rows that do prove that the classes overlap."""
    unit = 1.0 / max(float(np.mean(problem.rows.diagonal()[problem.index])), 1e-300)
    bound = FIRST_BOUND * unit
    made = 0
    while True:
        rounds = Rounds(problem, tol, budget, most_iterations, cache, bound, made)
        solution = _unbounded(problem, rounds.run(start))
        start, made = solution.alpha, solution.iterations
        if not (start >= bound).any() or budget.exhausted():
            return solution
        proof = overlap(problem, start, budget)
        if proof is not None or bound >= LAST_BOUND * unit:
            return replace(solution, overlap=proof)
        bound *= RAISE


def _unbounded(problem: DualProblem, solution: DualSolution) -> DualSolution:
    """Return the solution as one of the problem without bounds."""
    return replace(solution, state=examine(problem.box, solution.alpha, solution.scores))
