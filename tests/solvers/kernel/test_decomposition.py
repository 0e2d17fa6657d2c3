"""The dual of kernel SVMs: against quadratic programming, and one way of solving against another."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.kernel import dual_value, quadratic_program
from sixfold._native import core
from sixfold.budget import Budget
from sixfold.geometry.kernels import RBF, Polynomial, Precomputed, linear
from sixfold.solvers.kernel import decomposition, dual
from sixfold.solvers.kernel.decomposition import solve_dual
from sixfold.solvers.kernel.dual import DualBox, DualProblem, certify, optimality, optimality_at_zero
from sixfold.solvers.kernel.gram_cache import GramCache
from sixfold.solvers.kernel.kernel_rows import KernelRows
from solvers.kernel.dual_problems import PLENTY, check, make_problem

# -- against the oracle ----------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(2, 25),
    d=st.integers(1, 4),
    seed=st.integers(0, 10**6),
    exponent=st.floats(-6, 6),
    spread=st.sampled_from([0.0, 1.0, 3.0]),
    ties=st.booleans(),
    direct=st.booleans(),
)
def test_dual_objective_is_that_of_quadratic_programming(n, d, seed, exponent, spread, ties, direct):
    random = np.random.default_rng(seed)
    upper = 10.0 ** (exponent + spread * random.uniform(-1, 1, n))
    X = random.normal(size=(n, d))
    if ties:
        X = np.round(X)
    y = np.where(random.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    rows = KernelRows(X, RBF(0.7))
    problem = DualProblem(rows, np.arange(n), y, upper)
    with pytest.MonkeyPatch.context() as patch:
        if not direct:
            patch.setattr(decomposition, "DIRECT_ROWS", 1)
            patch.setattr(decomposition, "FIRST_ACTIVE_ROWS", 4)
        solution = solve_dual(problem, 1e-6, PLENTY, Budget())
    gram = RBF(0.7)(X)
    check(problem, gram, solution, tol=1e-6)
    best = dual_value(gram, y, quadratic_program(gram, y, upper))
    certificate = certify(problem, solution, 1e-6)
    found = dual_value(gram, y, solution.alpha)
    assert certificate.converged
    rounding = certificate.rounding
    assert certificate.details["dual_objective"] == pytest.approx(found, rel=1e-12, abs=rounding)
    assert best - found <= certificate.gap + 1e-7 * abs(best)
    assert found <= best * (1 + 1e-7)


def test_rows_of_weight_between_one_millionth_and_a_million():
    weights = 10.0 ** np.random.default_rng(1).uniform(-6, 6, 60)
    problem, gram = make_problem(C=weights)
    solution = solve_dual(problem, 1e-5, PLENTY, Budget())
    check(problem, gram, solution, tol=1e-5)
    best = dual_value(gram, problem.y, quadratic_program(gram, problem.y, problem.upper))
    assert dual_value(gram, problem.y, solution.alpha) == pytest.approx(best, rel=1e-5)


def test_one_row_a_class_meets_in_the_middle():
    rows = KernelRows(np.array([[0.0], [2.0]]), linear)
    solution = solve_dual(
        DualProblem(rows, np.arange(2), np.array([1.0, -1.0]), np.full(2, 10.0)), 1e-9, PLENTY, Budget()
    )
    # w = -1, b = 1 by hand: a = |w| / 2.
    np.testing.assert_allclose(solution.alpha, 0.5)
    assert solution.intercept == pytest.approx(1.0)


def test_equal_rows_with_different_labels_are_bounded():
    X = np.zeros((4, 1))
    y = np.array([1.0, 1.0, -1.0, 1.0])
    problem = DualProblem(KernelRows(X, RBF(1.0)), np.arange(4), y, np.full(4, 2.0))
    solution = solve_dual(problem, 1e-6, PLENTY, Budget())
    check(problem, np.ones((4, 4)), solution, tol=1e-6)
    assert solution.alpha[2] == 2.0


def test_one_class_has_nothing_to_optimise():
    problem = DualProblem(KernelRows(np.eye(3), linear), np.arange(3), np.ones(3), np.ones(3))
    solution = solve_dual(problem, 1e-3, PLENTY, Budget())
    assert not solution.alpha.any()
    assert solution.intercept == 1.0
    assert solution.violation == 0.0


@pytest.mark.parametrize("labels", [[1.0, -1.0, 1.0], [1.0, 1.0, 1.0], [-1.0, -1.0, -1.0]])
@pytest.mark.parametrize("C", [2.0, np.inf])
def test_zero_is_judged_like_any_other_point(labels, C):
    box = DualBox(np.array(labels), np.full(3, C))
    assert optimality_at_zero(box) == optimality(box, np.zeros(3), np.zeros(3))


def test_all_rows_at_their_bound():
    problem, gram = make_problem(C=1e-4, flip=0.0)
    half = min(int((problem.y > 0).sum()), int((problem.y < 0).sum()))
    solution = solve_dual(problem, 1e-3, PLENTY, Budget())
    check(problem, gram, solution)
    assert solution.alpha.sum() == pytest.approx(2e-4 * half)


def test_gap_is_small_where_one_class_counts_for_little():
    weights = np.where(make_problem()[0].y > 0, 1e-2, 1e2)
    problem, gram = make_problem(C=weights)
    solution = solve_dual(problem, 0.1, PLENTY, Budget())
    check(problem, gram, solution, tol=0.1)
    first, *_ = core.smo(
        gram, problem.y, weights, np.zeros(60), -np.ones(60), 0.1, 10**6, np.inf, Budget().flag
    )
    assert solution.iterations > first  # a violation of 0.1 was not enough
    assert certify(problem, solution, 0.1).converged


# -- other ways to the same point --------------------------------------------------------------------------


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_rounds_on_active_rows_end_where_all_rows_at_once_do(in_rounds, monkeypatch, C, tol):
    problem, gram = make_problem(400, C=C)
    budget = Budget()
    solution = solve_dual(problem, tol, PLENTY, budget)
    assert len(budget.history) > 2
    check(problem, gram, solution, tol)
    monkeypatch.undo()
    direct = solve_dual(problem, tol, PLENTY, Budget())
    assert dual_value(gram, problem.y, solution.alpha) == pytest.approx(
        dual_value(gram, problem.y, direct.alpha), rel=10 * tol
    )
    assert solution.intercept == pytest.approx(direct.intercept, abs=10 * tol)


def test_stale_scores_of_rows_far_from_the_margin_are_updated(in_rounds, monkeypatch):
    monkeypatch.setattr(dual, "STALE_DISTANCE", 0.0)  # all other scores are stale at once
    problem, gram = make_problem(400, flip=0.0)
    check(problem, gram, solve_dual(problem, 1e-3, PLENTY, Budget()))


@pytest.mark.parametrize("memory", [4 * 30**2, 4 * 8**2, 4 * 2**2])
def test_support_vectors_need_not_fit_in_memory(in_rounds, memory):
    problem, gram = make_problem(150, C=1.0)
    solution = solve_dual(problem, 1e-3, memory, Budget())
    assert np.count_nonzero(solution.alpha) > 30
    check(problem, gram, solution)


@pytest.mark.parametrize("forced", [False, True])
def test_stale_scores_of_rows_that_become_active_are_updated_first(in_rounds, monkeypatch, forced):
    # Four rows can go up, so rows far from the margin fill the places of those that violate optimality most.
    monkeypatch.setattr(dual, "STALE_DISTANCE", 1.0)
    random = np.random.default_rng(0)
    X = random.normal(size=(1500, 5))
    X[:, 0] = -1.0 + 0.01 * X[:, 0]
    X[:750, 0] -= 10.0 * random.uniform(0.2, 1.0, 750)
    X[-4:, 0] = 1.0 + 0.5 * random.normal(size=4)
    y = np.where(np.arange(1500) >= 1496, 1.0, -1.0)
    if forced:
        choose = decomposition.Decomposition._choose
        monkeypatch.setattr(
            decomposition.Decomposition,
            "_choose",
            lambda self: np.union1d(choose(self), np.flatnonzero(self.point.stale)[:5]),
        )
    problem = DualProblem(KernelRows(X, RBF(0.1)), np.arange(1500), y, np.full(1500, 100.0))
    check(problem, RBF(0.1)(X), solve_dual(problem, 1e-3, PLENTY if forced else 4 * 80**2, Budget()))


def test_start_from_another_c_takes_fewer_iterations():
    problem, gram = make_problem(300, C=10.0)
    cold = solve_dual(problem, 1e-3, PLENTY, Budget())
    other = DualProblem(problem.rows, problem.index, problem.y, np.full(300, 11.0))
    warm = solve_dual(other, 1e-3, PLENTY, Budget(), start=cold.alpha)
    check(other, gram, warm)
    again = solve_dual(other, 1e-3, PLENTY, Budget())
    assert warm.iterations < 0.5 * again.iterations


@pytest.mark.parametrize("rounds", [False, True])
def test_start_that_is_not_feasible_is_made_so(request, rounds):
    if rounds:
        request.getfixturevalue("in_rounds")
    problem, gram = make_problem(100, C=1.0)
    start = np.random.default_rng(0).uniform(-1.0, 3.0, 100)
    check(problem, gram, solve_dual(problem, 1e-3, PLENTY, Budget(), start=start))


def test_start_at_the_solution_takes_no_iterations():
    problem, gram = make_problem(100)
    cold = solve_dual(problem, 1e-3, PLENTY, Budget())
    warm = solve_dual(problem, 1e-3, PLENTY, Budget(), start=cold.alpha)
    assert warm.iterations == 0
    check(problem, gram, warm)


@pytest.mark.parametrize("rounds", [False, True])
def test_cache_serves_another_c(request, monkeypatch, rounds):
    if rounds:
        request.getfixturevalue("in_rounds")
    problem, gram = make_problem(300, C=1.0)
    cache = GramCache(problem.rows, problem.index, PLENTY)
    solve_dual(problem, 1e-3, PLENTY, Budget(), cache=cache)
    made = []
    original = KernelRows.gram
    monkeypatch.setattr(KernelRows, "gram", lambda *a, **k: (made.append(len(a[1])), original(*a, **k))[1])
    other = DualProblem(problem.rows, problem.index, problem.y, np.full(300, 1.2))
    start = solve_dual(other, 1e-3, PLENTY, Budget(), cache=cache)
    check(other, gram, start)
    assert sum(size**2 for size in made if size != 64) < 0.5 * 300**2  # 64 rows tell the rounding


@pytest.mark.parametrize(("share", "enough"), [(0.89, True), (0.95, False)])
def test_rounds_leave_room_in_the_gap_for_rounding(share, enough):
    problem, _ = make_problem(n=20)
    rounds = decomposition.Decomposition(
        problem, 1e-3, Budget(), None, GramCache(problem.rows, problem.index, PLENTY)
    )
    state = rounds.state
    rounds.state = state._replace(highest=0.0, lowest=0.0, gap=share * 1e-3 * state.scale)
    assert rounds._optimal() is enough


def test_cache_may_hold_rows_in_any_order():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(40, 3)), np.where(random.random(40) < 0.5, 1.0, -1.0)
    rows = KernelRows(X, RBF(0.5))
    problem = DualProblem(rows, np.arange(40), y, np.ones(40))
    cache = GramCache(rows, problem.index, PLENTY)
    cache.hold(np.array([7, 3, 20]), np.float64, Budget())
    solution = solve_dual(problem, 1e-3, PLENTY, Budget(), cache=cache)
    np.testing.assert_allclose(solution.scores, RBF(0.5)(X) @ (solution.alpha * y), atol=1e-12)


def test_cache_of_other_rows_is_refused():
    problem, _ = make_problem()
    with pytest.raises(ValueError, match="other rows"):
        solve_dual(problem, 1e-3, PLENTY, Budget(), cache=GramCache(problem.rows, problem.index[1:], PLENTY))


@pytest.mark.parametrize("rounds", [False, True])
@pytest.mark.parametrize("kind", ["float32", "sparse", "precomputed", "callable"])
def test_tables_of_other_kinds(request, rounds, kind):
    if rounds:
        request.getfixturevalue("in_rounds")
    problem, gram = make_problem(200, dtype=np.float32 if kind == "float32" else np.float64)
    X = np.random.default_rng(0).normal(size=(200, 3)).astype(problem.rows.dtype)
    table = {
        "float32": lambda: KernelRows(X, RBF(0.5)),
        "sparse": lambda: KernelRows(sp.csr_array(X), RBF(0.5)),
        "precomputed": lambda: KernelRows(gram, Precomputed()),
        "callable": lambda: KernelRows(X, RBF(0.25) * RBF(0.25)),
    }[kind]()
    other = DualProblem(table, problem.index, problem.y, problem.upper)
    solution = solve_dual(other, 1e-3, PLENTY, Budget())
    check(other, gram, solution)
    expected = solve_dual(problem, 1e-3, PLENTY, Budget())
    assert dual_value(gram, other.y, solution.alpha) == pytest.approx(
        dual_value(gram, other.y, expected.alpha), rel=1e-4
    )


def test_some_rows_of_a_table_in_any_order():
    problem, gram = make_problem(80)
    index = np.random.default_rng(0).permutation(80)[:50]
    part = DualProblem(problem.rows, index, problem.y[index], problem.upper[index])
    check(part, gram[np.ix_(index, index)], solve_dual(part, 1e-3, PLENTY, Budget()))


def test_unscaled_columns_and_a_large_c_come_to_an_end():
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 5)) * 10.0 ** np.arange(-1, 4)
    y = np.where(X @ random.normal(size=5) + 100 * random.normal(size=200) > 0, 1.0, -1.0)
    problem = DualProblem(KernelRows(X, linear), np.arange(200), y, np.full(200, 1e6))
    solution = solve_dual(problem, 1e-3, PLENTY, Budget())
    assert solution.violation <= 1e-3
    assert certify(problem, solution, 1e-3).converged


def test_numbers_too_large_for_single_precision(in_rounds):
    random = np.random.default_rng(0)
    X = random.normal(size=(100, 2))
    y = np.where(X[:, 0] + 0.5 * random.normal(size=100) > 0, 1.0, -1.0)
    problem = DualProblem(KernelRows(X * 1e25, linear), np.arange(100), y, np.full(100, 1e-50))
    small = DualProblem(KernelRows(X, linear), np.arange(100), y, np.ones(100))
    solution, expected = (solve_dual(each, 1e-3, PLENTY, Budget()) for each in (problem, small))
    assert solution.violation <= 1e-3
    assert solution.intercept == pytest.approx(expected.intercept, abs=0.01)


def test_single_precision_that_leads_astray_is_given_up(in_rounds):
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 3))
    y = np.where(X[:, 0] + 0.3 * random.normal(size=300) > 0, 1.0, -1.0)
    rows = KernelRows(X + 100.0, Polynomial(3, 1.0, 1.0))  # K of some 1e13, which differ by 1e-4 of that
    budget = Budget()
    solution = solve_dual(DualProblem(rows, np.arange(300), y, np.full(300, 1e-4)), 1e-3, PLENTY, budget)
    assert solution.violation <= 1e-3
    assert len(budget.history) < 30  # 87 with the Gram matrix in float32 until no round makes a step


def test_violation_that_is_lost_in_the_rounding_of_scores_is_not_pursued():
    random = np.random.default_rng(0)
    X = random.normal(size=(100, 5)) * 10.0 ** np.array([3.0, -1.0, 2.0, 0.0, 1.0])  # K of some 1e18
    y = np.where(random.random(100) < 0.5, 1.0, -1.0)
    problem = DualProblem(KernelRows(X, Polynomial(3, 1.0, 1.0)), np.arange(100), y, np.full(100, 10.0))
    budget = Budget()
    solution = solve_dual(problem, 1e-3, PLENTY, budget)
    assert budget.stopped_by.startswith("rounding")
    assert solution.iterations < 2_000_000
    assert not certify(problem, solution, 1e-3).converged


def test_a_solution_is_a_start_whose_scores_are_known(monkeypatch):
    random = np.random.default_rng(0)
    X = random.normal(size=(80, 3))
    y = np.where(X[:, 0] + 0.5 * random.normal(size=80) > 0, 1.0, -1.0)
    rows = KernelRows(X, RBF(0.5))
    small, large = (DualProblem(rows, np.arange(80), y, np.full(80, C)) for C in (1.0, 2.0))
    before = solve_dual(small, 1e-6, PLENTY, Budget())
    scores = before.scores.copy()
    computed = []
    monkeypatch.setattr(dual.DualScores, "begin", lambda *given: computed.append(given))
    same = solve_dual(small, 1e-6, PLENTY, Budget(), start=before)
    assert same.iterations == 0
    np.testing.assert_array_equal(same.alpha, before.alpha)
    found = solve_dual(large, 1e-6, PLENTY, Budget(), start=before)
    assert computed == []
    check(large, RBF(0.5)(X), found)
    np.testing.assert_array_equal(before.scores, scores)
    # What is not feasible is made so, and has other scores.
    monkeypatch.undo()
    check(small, RBF(0.5)(X), solve_dual(small, 1e-6, PLENTY, Budget(), start=found))
