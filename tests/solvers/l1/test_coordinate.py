"""Least squares under an l1, elastic-net or sign constraint: answers, certificates, limits."""

from __future__ import annotations

import math
import os
import signal
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls
from sklearn.linear_model import ElasticNet, Lasso

import sixfold.solvers.l1.coordinate as module
from oracles.linear import optimality_violation, penalised_least_squares
from sixfold.budget import Budget
from sixfold.data.blocks import MemoryBlocks
from sixfold.errors import IncompatibleError
from sixfold.risk.losses import AbsoluteLoss, SquaredLoss
from sixfold.risk.penalties import make_penalty
from sixfold.risk.problem import Problem
from sixfold.solvers.base import choose
from sixfold.solvers.l1.coordinate import CoordinateDescent


def solve(
    X,
    y,
    alpha,
    l1_ratio=1.0,
    *,
    weight=None,
    intercept=True,
    positive=False,
    penalty="elasticnet",
    budget=None,
    rows_per_block=None,
):
    """Solve, and check that the certificate says what the problem itself says of the solution."""
    problem = Problem(SquaredLoss(), make_penalty(penalty, l1_ratio, positive), alpha, intercept)
    y = np.asarray(y, dtype=X.dtype)
    blocks = MemoryBlocks(X, y.reshape(len(y), -1), weight, rows_per_block)
    budget = budget or Budget(tol=1e-12)
    with budget:
        solution = CoordinateDescent().solve(problem, blocks, budget)
    scale = problem.constant_objective(blocks)
    certificate = solution.certificate
    rounding = 1e-11 * max(scale, certificate.objective) + 1e-28 * np.square(y, dtype=float).max()
    assert certificate.scale == pytest.approx(scale, rel=1e-9, abs=1e-25)
    assert certificate.objective == pytest.approx(
        problem.objective(solution.w, solution.b, blocks), abs=rounding
    )
    assert certificate.gap >= 0.0
    honest = problem.gap(solution.w, solution.b, blocks, solution.dual)
    computed = certificate.gap - certificate.rounding
    assert computed <= honest * (1.0 + 1e-6) + rounding
    if certificate.rounding + honest <= budget.tol * scale:
        # Else a closer bound was looked for, by moving the dual point to where the penalty wants it.
        assert computed == pytest.approx(honest, rel=1e-6, abs=rounding)
    return solution


def regression(n, d, *, seed=0, correlation=0.0, informative=5, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = correlation * X[:, j - 1] + math.sqrt(1.0 - correlation**2) * X[:, j]
    w = np.zeros(d)
    w[rng.permutation(d)[:informative]] = 5.0 * rng.standard_normal(min(informative, d))
    return X + 3.0, X @ w + noise * rng.standard_normal(n) - 7.0


def largest_alpha(X, y):
    return np.abs((y - y.mean()) @ X).max() / len(y)


# -- the answer -------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(200, 10), (60, 60), (40, 300)])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5, 0.1])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("intercept", [True, False])
def test_equals_scikit_learn(shape, l1_ratio, positive, intercept):
    X, y = regression(*shape)
    alpha = 0.05 * largest_alpha(X, y) / l1_ratio
    found = solve(X, y, alpha, l1_ratio, positive=positive, intercept=intercept)
    peer = ElasticNet(
        alpha=alpha,
        l1_ratio=l1_ratio,
        positive=positive,
        fit_intercept=intercept,
        tol=1e-10,
        max_iter=100_000,
    ).fit(X, y)
    assert found.certificate.converged
    np.testing.assert_allclose(found.w[:, 0], peer.coef_, atol=1e-3)
    np.testing.assert_allclose(found.b[0], peer.intercept_, atol=1e-2)


def test_lasso_has_the_scaling_of_scikit_learn():
    X, y = regression(50, 20)
    found = solve(X, y, 0.3, penalty="l1")
    peer = Lasso(alpha=0.3, tol=1e-14, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(found.w[:, 0], peer.coef_, atol=1e-7)


@given(
    n=st.integers(1, 12),
    d=st.integers(1, 12),
    seed=st.integers(0, 10_000),
    fraction=st.sampled_from([1e-3, 0.03, 0.3, 0.9]),
    l1_ratio=st.sampled_from([1.0, 0.7, 0.2]),
    positive=st.booleans(),
    intercept=st.booleans(),
    grid=st.booleans(),
)
@settings(max_examples=80, deadline=None)
def test_meets_the_optimality_conditions_and_the_objective_of_the_oracle(
    n, d, seed, fraction, l1_ratio, positive, intercept, grid
):
    rng = np.random.default_rng(seed)
    # Integers make ties, duplicate and constant columns.
    X = rng.integers(-2, 3, (n, d)).astype(float) if grid else rng.standard_normal((n, d))
    y = rng.integers(-3, 4, n).astype(float) if grid else rng.standard_normal(n)
    weight = rng.integers(0, 3, n).astype(float)
    weight[rng.integers(n)] = 1.0
    q = weight / weight.sum()
    centred = y - q @ y if intercept else y
    alpha = fraction * np.abs((q * centred) @ X).max() + 1e-6
    found = solve(X, y, alpha, l1_ratio, weight=weight, intercept=intercept, positive=positive)
    w, b = found.w[:, 0], found.b[0]
    l1, l2 = alpha * l1_ratio, alpha * (1 - l1_ratio)
    assert optimality_violation(X, y, weight, l1, l2, w, b, positive) <= 1e-6 * (alpha + np.abs(y).max())
    other, other_b = penalised_least_squares(X, y, weight, l1, l2, intercept, positive, epochs=2000)
    problem = Problem(SquaredLoss(), make_penalty("elasticnet", l1_ratio, positive), alpha, intercept)
    blocks = MemoryBlocks(X, y[:, None], weight)
    theirs = problem.objective(other[:, None], np.array([other_b]), blocks)
    assert found.certificate.objective <= theirs + 1e-10 * max(found.certificate.scale, 1e-12)


def test_equals_the_oracle_where_the_answer_is_unique():
    X, y = regression(30, 8, correlation=0.6)
    weight = np.random.default_rng(1).random(30)
    found = solve(X, y, 0.2, 0.8, weight=weight)
    w, b = penalised_least_squares(X, y, weight, 0.16, 0.04)
    np.testing.assert_allclose(found.w[:, 0], w, atol=1e-9)
    np.testing.assert_allclose(found.b[0], b, atol=1e-8)


@pytest.mark.parametrize("shape", [(50, 8), (30, 30), (20, 45)])
def test_without_penalty_and_positive_it_is_non_negative_least_squares(shape):
    X, y = regression(*shape)
    found = solve(X, y, 0.0, penalty=None, positive=True, intercept=False, budget=Budget(tol=1e-10))
    expected, norm = nnls(X, y)
    assert found.certificate.converged
    assert found.certificate.objective == pytest.approx(0.5 * norm**2 / shape[0], rel=1e-7, abs=1e-9)
    np.testing.assert_allclose(X @ found.w[:, 0], X @ expected, atol=1e-4)
    assert np.all(found.w >= 0.0)


def test_ridge_with_non_negative_weights():
    X, y = regression(40, 10)
    found = solve(X, y, 0.5, penalty="l2", positive=True)
    w, _ = penalised_least_squares(X, y, np.ones(40), 0.0, 0.5, positive=True)
    assert np.any(w == 0.0)
    assert np.any(w > 0.0)
    np.testing.assert_allclose(found.w[:, 0], w, atol=1e-7)


def test_a_small_alpha_on_a_correlated_design_reaches_the_tolerance():
    X, y = regression(80, 200, correlation=0.95)
    alpha = 1e-4 * largest_alpha(X, y)
    found = solve(X, y, alpha, budget=Budget(tol=1e-10))
    assert found.certificate.converged
    assert optimality_violation(X, y, np.ones(80), alpha, 0.0, found.w[:, 0], found.b[0]) < 1e-3 * alpha


def test_alpha_at_its_largest_gives_zero_and_just_below_does_not():
    X, y = regression(50, 30)
    alpha = largest_alpha(X, y)
    above = solve(X, y, alpha * (1 + 1e-9))
    assert not above.w.any()
    assert above.b[0] == pytest.approx(y.mean())
    assert above.certificate.converged
    assert np.count_nonzero(solve(X, y, alpha * 0.999).w) == 1


def test_several_targets_are_solved_each_by_itself():
    X, y = regression(60, 15)
    Y = np.column_stack([y, 1e-6 * y[::-1], np.full(60, 4.0)])
    alpha = 0.01 * largest_alpha(X, Y[:, 1])
    together = solve(X, Y, alpha)
    for k in range(3):
        alone = solve(X, Y[:, k], alpha)
        np.testing.assert_allclose(together.w[:, k], alone.w[:, 0], rtol=1e-6, atol=1e-12)
    assert together.w[:, 1].any()
    assert not together.w[:, 2].any()


# -- odd data ---------------------------------------------------------------------------------


def test_zero_weights_remove_rows_and_integer_weights_repeat_them():
    X, y = regression(40, 60)
    weight = np.random.default_rng(2).integers(0, 3, 40)
    weighted = solve(X, y, 0.1, weight=weight.astype(float))
    repeated = solve(np.repeat(X, weight, axis=0), np.repeat(y, weight), 0.1)
    np.testing.assert_allclose(weighted.w, repeated.w, atol=1e-8)
    np.testing.assert_allclose(weighted.b, repeated.b, atol=1e-7)


def test_duplicate_columns_share_one_weight():
    X, y = regression(50, 6, informative=6)
    doubled = solve(np.hstack([X, X]), y, 0.1)
    single = solve(X, y, 0.1)
    assert doubled.certificate.converged
    np.testing.assert_allclose(doubled.w[:6] + doubled.w[6:], single.w, atol=1e-7)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, 1e15])
def test_constant_columns_get_no_weight(value):
    X, y = regression(300, 5)
    X[:, 2] = value
    for table in (X, np.asfortranarray(X), sp.csr_array(X)):
        found = solve(table, y, 0.01) if value < 1e15 else _only_solve(table, y, 1e-4)
        assert found.w[2, 0] == 0.0
        assert found.certificate.converged


def _only_solve(X, y, alpha):
    """Solve without the comparison, whose plain sums lose the digits that a huge constant eats."""
    problem = Problem(SquaredLoss(), make_penalty("l1"), alpha)
    return CoordinateDescent().solve(problem, MemoryBlocks(X, y[:, None]), Budget(tol=1e-10))


def test_one_row_one_column_and_constant_targets():
    one_row = solve(np.array([[1.0, 2.0]]), np.array([3.0]), 0.1)
    assert not one_row.w.any()
    assert one_row.b[0] == 3.0
    no_intercept = solve(np.array([[1.0, 2.0]]), np.array([3.0]), 0.1, intercept=False)
    np.testing.assert_allclose(no_intercept.w[:, 0], [0.0, (6.0 - 0.1) / 4.0])
    x = np.array([[0.0], [1.0], [2.0]])
    # Slope of the constant model 4/3, curvature 2/3: w = (4/3 - 1/3) / (2/3).
    np.testing.assert_allclose(solve(x, 2.0 * x[:, 0], 1.0 / 3.0).w, [[1.5]])
    for constant in (0.0, 5.0, 0.1):
        found = solve(regression(30, 4)[0], np.full(30, constant), 0.1)
        assert not found.w.any()
        assert found.b[0] == pytest.approx(constant)
        assert found.certificate.converged


def test_of_proportional_columns_the_larger_takes_the_weight():
    # Coordinate descent alone creeps along the valley between them in steps of about alpha.
    x, alpha = np.array([-1.0, 0.5, 0.5, 2.0, -2.0]), 1e-9
    X, y = np.column_stack([1.7 * x, 2.3 * x, -0.4 * x]), 3.0 * x
    curvature = 2.3**2 * np.square(x).mean()
    found = solve(X, y, alpha, budget=Budget(tol=1e-15))
    expected = (3.0 / 2.3 * curvature - alpha) / curvature
    np.testing.assert_allclose(found.w[:, 0], [0.0, expected, 0.0], rtol=1e-12)


def test_a_removed_row_may_hold_anything():
    X, y = regression(20, 5)
    weight = np.ones(20)
    weight[0] = 0.0
    expected = solve(X[1:], y[1:], 0.1)
    X[0] = 1e100
    np.testing.assert_allclose(solve(X, y, 0.1, weight=weight).w, expected.w, atol=1e-10)


def test_repeated_entries_of_a_sparse_table_add_up():
    X, y = regression(20, 3)
    doubled = sp.csr_array(
        (
            np.repeat(X.ravel() / 2.0, 2),
            np.repeat(np.tile(np.arange(3), 20), 2),
            np.arange(21) * 6,
        ),
        shape=X.shape,
    )
    expected = solve(X, y, 0.1)
    np.testing.assert_allclose(_only_solve(doubled, y, 0.1).w, expected.w, atol=1e-6)


def test_tied_columns_leave_an_optimal_answer():
    X = np.vstack([np.eye(4), -np.eye(4)])
    y = np.concatenate([np.full(4, 2.0), np.full(4, -2.0)])
    np.testing.assert_allclose(solve(X, y, 0.1).w[:, 0], np.full(4, 2.0 - 0.1 * 4.0))


def test_columns_of_very_different_scale():
    X, y = regression(60, 8, informative=8)
    scale = 10.0 ** np.arange(-4, 4)
    found = solve(X * scale, y, 1e-4, budget=Budget(tol=1e-10))
    assert found.certificate.converged
    violation = optimality_violation(X * scale, y, np.ones(60), 1e-4, 0.0, found.w[:, 0], found.b[0])
    assert violation < 1e-6


@pytest.mark.parametrize("order", ["C", "F", "sliced"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_memory_order_and_precision_of_the_table_do_not_matter(order, dtype):
    X, y = regression(70, 130)
    expected = solve(X, y, 0.1)
    table = (
        np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2]
        if order == "sliced"
        else np.asarray(X, order=order)
    )
    found = solve(table.astype(dtype, order="K") if order != "sliced" else table, y, 0.1)
    np.testing.assert_allclose(found.w, expected.w, atol=1e-4 if dtype == np.float32 else 1e-9)
    # What is kept of float32 has 7 digits, and the certificate speaks of that.
    assert found.certificate.relative_gap <= (1e-6 if dtype == np.float32 else found.certificate.tolerance)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_equals_dense(intercept, dtype):
    rng = np.random.default_rng(3)
    X = (rng.random((60, 90)) * (rng.random((60, 90)) < 0.2)).astype(dtype)
    y = (X[:, 0] - 2.0 * X[:, 1] + 0.1 * rng.standard_normal(60)).astype(dtype)
    weight = rng.random(60)
    dense = solve(X, y, 0.003, 0.9, weight=weight, intercept=intercept)
    sparse = solve(sp.csr_array(X), y, 0.003, 0.9, weight=weight, intercept=intercept)
    assert sparse.certificate.converged
    np.testing.assert_allclose(sparse.w, dense.w, atol=1e-6)


@pytest.mark.parametrize("table", ["C", "F", "sparse"])
@pytest.mark.parametrize("positive", [False, True])
def test_too_many_columns_for_a_gram_matrix_give_the_same_answer(monkeypatch, table, positive):
    X, y = regression(50, 80)
    weight = np.random.default_rng(4).random(50)
    expected = solve(X, y, 0.3, 0.5, weight=weight, positive=positive)
    monkeypatch.setattr(module, "MOST_GRAM", 3)
    X = sp.csr_array(X) if table == "sparse" else np.asarray(X, order=table)
    found = solve(X, y, 0.3, 0.5, weight=weight, positive=positive)
    assert found.certificate.converged
    np.testing.assert_allclose(found.w, expected.w, atol=1e-5)


def test_rows_in_several_blocks_give_the_same_answer():
    X, y = regression(50, 20)
    expected = solve(X, y, 0.1)
    np.testing.assert_array_equal(solve(X, y, 0.1, rows_per_block=7).w, expected.w)


# -- limits -----------------------------------------------------------------------------------


def test_history_has_one_record_an_iteration_and_the_objective_falls():
    X, y = regression(100, 400, informative=40)
    budget = Budget(tol=1e-10)
    found = solve(X, y, 0.01 * largest_alpha(X, y), budget=budget)
    assert found.n_iter == len(budget.history) > 1
    objectives = [record.objective for record in budget.history]
    assert objectives[-1] == min(objectives) == pytest.approx(found.certificate.objective, rel=1e-11)
    assert budget.stopped_by is None


def test_iteration_limit_leaves_an_honest_certificate():
    X, y = regression(100, 400, informative=40)
    budget = Budget(tol=1e-12, max_iter=1)
    found = solve(X, y, 0.01 * largest_alpha(X, y), budget=budget)
    assert found.n_iter == 1
    assert not found.certificate.converged
    assert found.certificate.objective < found.certificate.scale
    assert budget.stopped_by == "max_iter=1"


def test_a_callback_stops_the_search():
    X, y = regression(100, 400, informative=40)
    budget = Budget(tol=1e-12, callbacks=[lambda record: record.iteration == 2])
    assert solve(X, y, 0.01 * largest_alpha(X, y), budget=budget).n_iter == 2
    assert budget.stopped_by == "a callback"


@pytest.fixture
def endless(monkeypatch):
    """Return a problem whose first iteration takes minutes, on nearly dependent columns."""
    monkeypatch.setattr(module, "MOST_GRAM", 1)
    monkeypatch.setattr(module, "FIRST_COLUMNS", 10**6)
    monkeypatch.setattr(module, "RESIDUAL_EPOCHS", 10**9)
    monkeypatch.setattr(module, "INNER_PART", 0.0)
    X, y = regression(400, 700, correlation=0.9999, informative=300)
    return X, y, 1e-9 * largest_alpha(X, y)


def test_time_limit_stops_inside_the_loop_and_keeps_its_work(endless):
    budget = Budget(tol=0.0, time_limit=0.3)
    found = solve(*endless, budget=budget)
    assert budget.stopped_by == "time_limit=0.3 s"
    assert found.n_iter == 0
    assert found.certificate.objective < found.certificate.scale
    assert not found.certificate.converged


def test_ctrl_c_stops_inside_the_loop_and_keeps_its_work(endless):
    budget = Budget(tol=0.0, time_limit=60.0)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    found = solve(*endless, budget=budget)
    timer.join()
    assert budget.interrupted
    assert found.n_iter == 0
    assert found.certificate.objective < found.certificate.scale


def test_no_time_at_all_leaves_the_constant_model():
    X, y = regression(50, 20)
    found = CoordinateDescent().solve(
        Problem(SquaredLoss(), make_penalty("l1"), 0.1),
        MemoryBlocks(X, y[:, None]),
        Budget(time_limit=0.0),
    )
    assert not found.w.any()
    assert found.b[0] == pytest.approx(y.mean())
    assert found.certificate.objective == pytest.approx(found.certificate.scale)
    assert 0.5 * found.certificate.scale < found.certificate.gap <= found.certificate.objective


def test_a_tolerance_below_rounding_ends():
    X, y = regression(50, 20)
    start = time.perf_counter()
    found = solve(X, y, 0.1, budget=Budget(tol=0.0, time_limit=20.0))
    assert time.perf_counter() - start < 20.0
    assert found.certificate.relative_gap < 1e-13


# -- where it is used -------------------------------------------------------------------------


def test_it_is_chosen_for_kinks_and_constraints_and_refuses_other_losses():
    X, y = regression(10, 3)
    blocks = MemoryBlocks(X, y[:, None])
    solver = CoordinateDescent()
    assert solver.suits(Problem(SquaredLoss(), make_penalty("l1"), 1.0), blocks)
    assert solver.suits(Problem(SquaredLoss(), make_penalty(None, positive=True)), blocks)
    assert not solver.suits(Problem(SquaredLoss(), make_penalty("l1"), 0.0), blocks)
    assert not solver.suits(Problem(SquaredLoss(), make_penalty("l2"), 1.0), blocks)
    with pytest.raises(IncompatibleError, match="the loss has kinks"):
        choose("coordinate", Problem(AbsoluteLoss(), make_penalty("l1"), 1.0), blocks, [solver])
