"""Limits of time and iterations, interrupts, and fits in several threads."""

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.geometry.kernels import RBF
from sixfold.solvers.kernel import decomposition, dual
from sixfold.solvers.kernel.decomposition import solve_dual
from sixfold.solvers.kernel.dual import DualProblem, certify
from sixfold.solvers.kernel.kernel_rows import KernelRows
from solvers.kernel.dual_problems import PLENTY, check, make_problem


@pytest.mark.parametrize("rounds", [False, True])
@pytest.mark.parametrize("most", [1, 7, 60])
def test_most_iterations_end_at_a_feasible_point(request, rounds, most):
    if rounds:
        request.getfixturevalue("in_rounds")
    problem, gram = make_problem(300, C=10.0)
    budget = Budget()
    solution = solve_dual(problem, 1e-3, PLENTY, budget, most_iterations=most)
    assert solution.iterations <= most
    assert solution.violation > 1e-3
    assert budget.stopped_by == f"max_iter={most}"
    check(problem, gram, solution, tol=np.inf)
    assert not certify(problem, solution, 1e-9).converged


def test_interrupt_keeps_what_there_is(in_rounds):
    problem, gram = make_problem(300, C=100.0)
    budget = Budget(callbacks=[lambda record: budget._note_interrupt(2, None)])
    solution = solve_dual(problem, 1e-9, PLENTY, budget)
    assert budget.stopped_by == "Ctrl-C"
    assert len(budget.history) == 1
    check(problem, gram, solution, tol=np.inf)


def test_stale_scores_are_not_waited_for_when_time_is_up(in_rounds, monkeypatch):
    monkeypatch.setattr(dual, "STALE_DISTANCE", 0.0)  # all other scores are stale at once
    monkeypatch.setattr(decomposition, "OVERTIME", 0)
    problem, gram = make_problem(400, C=10.0)
    objectives, computed = [], []

    def record(entry):
        objectives.append(entry.objective)
        if len(objectives) == 2:
            original = KernelRows.scores
            monkeypatch.setattr(
                KernelRows, "scores", lambda *a: (computed.append(len(a[1])), original(*a))[1]
            )
        return len(objectives) == 2

    solution = solve_dual(problem, 1e-9, PLENTY, Budget(callbacks=[record]))
    assert not computed
    check(problem, gram, solution, tol=np.inf)  # a point without stale scores


def test_most_iterations_of_a_hard_margin_are_those_of_all_bounds():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 2)) * 1e-3
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    problem = DualProblem(KernelRows(X, RBF(1.0)), np.arange(60), y, np.full(60, np.inf))
    budget = Budget()
    solution = solve_dual(problem, 1e-3, PLENTY, budget, most_iterations=150)
    assert solution.iterations <= 150
    assert budget.stopped_by == "max_iter=150"
    assert not certify(problem, solution, 1e-3).converged


def test_no_time_at_all_leaves_the_start():
    problem, gram = make_problem(100)
    budget = Budget(time_limit=0.0)
    solution = solve_dual(problem, 1e-3, PLENTY, budget)
    assert not solution.alpha.any()
    assert solution.violation == 2.0
    check(problem, gram, solution, tol=np.inf)
    assert "time_limit" in budget.stopped_by


def test_callback_that_returns_true_ends_the_rounds(in_rounds):
    problem, gram = make_problem(400)
    budget = Budget(callbacks=[lambda record: record.iteration == 2])
    solution = solve_dual(problem, 1e-9, PLENTY, budget)
    assert budget.stopped_by == "a callback"
    assert len(budget.history) == 2
    check(problem, gram, solution, tol=np.inf)


@pytest.mark.skipif(not core.blas_threads(), reason="BLAS does not let its threads be limited")
def test_fits_that_overlap_leave_the_threads_of_blas_as_they_were():
    problem, _ = make_problem()
    with threadpool_limits(2, user_api="blas"):
        entered, leave = threading.Event(), threading.Event()

        def wait(record):
            entered.set()
            leave.wait(10.0)

        slow = threading.Thread(
            target=solve_dual, args=(problem, 1e-3, PLENTY, Budget(callbacks=[wait])), daemon=True
        )

        def begin(record):  # the other fit begins inside this one, and ends after it
            slow.start()
            entered.wait(10.0)
            assert set(core.blas_threads()) == {1}

        solve_dual(problem, 1e-3, PLENTY, Budget(callbacks=[begin]))
        assert set(core.blas_threads()) == {1}
        leave.set()
        slow.join()
        assert set(core.blas_threads()) == {2}
