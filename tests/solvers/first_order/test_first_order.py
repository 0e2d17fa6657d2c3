"""Gradient descent, stochastic and mini-batch: the right answer, honest stops, usable after any stop."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog
from sklearn.linear_model import Lasso, LogisticRegression, Ridge

from sixfold.budget import Budget
from sixfold.data.blocks import MemoryBlocks
from sixfold.risk.losses import LOSSES
from sixfold.solvers.first_order.gradient_descent import GradientDescent
from sixfold.solvers.first_order.stochastic import MiniBatch, StochasticGradient
from sixfold.solvers.passes import objective
from solvers.first_order.first_order_problems import OFFSETS, SIZES, SOLVERS, regression, solve
from solvers.problems import problem

# -- full gradients reach the optimum ----------------------------------------------------------


@pytest.mark.parametrize("accelerate", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows_per_block", [None, 70])
def test_gd_reaches_least_squares_on_unscaled_columns(accelerate, dtype, rows_per_block):
    X, y = regression(dtype=dtype)
    blocks = MemoryBlocks(X, y, rows_per_block=rows_per_block)
    solution = solve(GradientDescent, problem(), blocks, tol=1e-12, accelerate=accelerate)
    Z = np.hstack([X.astype(float) - X.mean(axis=0), np.ones((300, 1))])
    best = np.linalg.lstsq(Z, y.astype(float), rcond=None)[0]
    # A float32 intercept of -1.9e4 is only known to 1e-3, and the certificate speaks of what is kept.
    assert solution.certificate.relative_gap < (1e-12 if dtype == np.float64 else 1e-6)
    np.testing.assert_allclose(solution.w, best[:-1], rtol=2e-5)


@pytest.mark.parametrize("sparse", [False, True])
def test_gd_reaches_ridge(sparse):
    X, y = regression()
    blocks = MemoryBlocks(sp.csr_array(X) if sparse else X, y)
    solution = solve(GradientDescent, problem(penalty="l2", alpha=0.1), blocks, tol=1e-13)
    ridge = Ridge(alpha=0.1 * 300).fit(X, y)
    np.testing.assert_allclose(solution.w[:, 0], np.ravel(ridge.coef_), rtol=1e-5)
    np.testing.assert_allclose(solution.b, np.ravel(ridge.intercept_), rtol=1e-5)


@pytest.mark.parametrize("positive", [False, True])
def test_gd_reaches_the_lasso(positive):
    X, y = regression()
    X = (X - OFFSETS) / SIZES
    task = problem(penalty="l1", alpha=0.8, positive=positive)
    solution = solve(GradientDescent, task, MemoryBlocks(X, y), tol=1e-10)
    lasso = Lasso(alpha=0.8, positive=positive, tol=1e-12).fit(X, y[:, 0])
    assert solution.certificate.converged
    np.testing.assert_allclose(solution.w[:, 0], lasso.coef_, atol=1e-5)
    np.testing.assert_array_equal(solution.w[:, 0] == 0, lasso.coef_ == 0)


def test_gd_reaches_logistic_regression():
    X, y = regression()
    y = np.where(y > 700, 1.0, -1.0)
    X = (X - OFFSETS) / SIZES
    task = problem("logistic", "l2", 0.01)
    solution = solve(GradientDescent, task, MemoryBlocks(X, y), tol=1e-12)
    peer = LogisticRegression(C=1 / (0.01 * 300), tol=1e-10, max_iter=1000).fit(X, y[:, 0])
    np.testing.assert_allclose(solution.w[:, 0], peer.coef_[0], rtol=1e-4)


def test_gd_reaches_softmax_regression():
    X, y = regression()
    X = (X - OFFSETS) / SIZES
    y = np.digitize(y, [697.0, 703.0]).astype(float)
    task = problem("softmax", "l2", 0.01)
    budget = Budget(tol=1e-12, max_iter=2000)
    solution = GradientDescent().solve(task, MemoryBlocks(X, y), budget)
    peer = LogisticRegression(C=1 / (0.01 * 300), tol=1e-10, max_iter=1000).fit(X, y[:, 0])
    np.testing.assert_allclose(solution.w.T, peer.coef_, atol=1e-4)
    assert solution.certificate.scale == pytest.approx(np.log(3.0), rel=1e-12)


def test_gd_finds_its_step_for_a_loss_without_curvature_bound():
    X, y = regression()
    solution = solve(GradientDescent, problem("cubed"), MemoryBlocks(X, y), tol=1e-9)
    assert solution.certificate.converged


def test_gd_by_hand_takes_the_step_it_is_given():
    # from w = 0 without intercept: slope = -(1*2 + 2*6) / 2 = -7, w = 0.1 * 7
    blocks = MemoryBlocks(np.array([[1.0], [2.0]]), np.array([[2.0], [6.0]]))
    task = problem(fit_intercept=False)
    solution = solve(GradientDescent, task, blocks, max_iter=1, eta0=0.1, standardize=False)
    assert solution.w[0, 0] == pytest.approx(0.7, rel=1e-15)


def test_gd_schedules_shrink_the_step():
    blocks = MemoryBlocks(np.array([[1.0]]), np.array([[1.0]]))
    found = {}
    for name in ("constant", "decay", "invscaling"):
        options = {"learning_rate": name, "eta0": 0.5, "decay": 1.0, "power_t": 2.0}
        solution = solve(
            GradientDescent,
            problem(fit_intercept=False),
            blocks,
            max_iter=2,
            accelerate=False,
            standardize=False,
            **options,
        )
        found[name] = 1.0 - solution.w[0, 0]
    # residual 1 -> 0.5 after the first step; then steps 0.5, 0.25, 0.125
    assert found == pytest.approx({"constant": 0.25, "decay": 0.375, "invscaling": 0.4375})


def test_momentum_needs_fewer_passes():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((200, 10)) @ np.diag(0.7 ** np.arange(10)) @ rng.standard_normal((10, 10))
    blocks = MemoryBlocks(X, (X.sum(axis=1) + rng.standard_normal(200))[:, None])
    passes = [
        solve(GradientDescent, problem(), blocks, tol=1e-8, accelerate=accelerate).n_iter
        for accelerate in (True, False)
    ]
    assert passes[0] < 0.5 * passes[1]


def test_momentum_never_lets_the_objective_rise():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((200, 10)) @ np.diag(0.7 ** np.arange(10)) @ rng.standard_normal((10, 10))
    blocks = MemoryBlocks(X, (X.sum(axis=1) + rng.standard_normal(200))[:, None])
    budget = Budget(tol=1e-8)
    GradientDescent().solve(problem(), blocks, budget)
    objectives = [record.objective for record in budget.history]
    assert len(objectives) > 50
    assert np.all(np.diff(objectives) <= 1e-12 * objectives[0])


# -- losses with kinks -------------------------------------------------------------------------


def least_absolute(X, y):
    """Return the least mean absolute residual, by linear programming."""
    n, d = X.shape
    A = np.hstack([X, np.ones((n, 1)), np.eye(n), -np.eye(n)])
    cost = np.concatenate([np.zeros(d + 1), np.full(2 * n, 1.0 / n)])
    bounds = [(None, None)] * (d + 1) + [(0, None)] * (2 * n)
    return linprog(cost, A_eq=A, b_eq=y[:, 0], bounds=bounds).fun


@pytest.mark.parametrize("solver", SOLVERS)
def test_absolute_loss_comes_close_to_the_linear_programme(solver):
    X, y = regression(n=150)
    y[::10] += 1000.0  # outliers that a squared loss would chase
    solution = solve(solver, problem("absolute"), MemoryBlocks(X, y), max_iter=500)
    best = least_absolute((X - OFFSETS) / SIZES, y)
    assert best <= solution.certificate.objective <= 1.002 * best
    assert solution.certificate.lower_bound <= best * (1 + 1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_labels_are_learnt_with_default_settings(solver, loss):
    X, y = regression()
    labels = np.where(y > 700.0, 1.0, -1.0)
    solution = solve(solver, problem(loss, "l2", 1e-4), MemoryBlocks(X, labels), max_iter=50)
    assert np.mean(np.sign(X @ solution.w + solution.b) == labels) > 0.9


# -- stochastic updates ------------------------------------------------------------------------


@pytest.mark.parametrize("solver", [StochasticGradient, MiniBatch])
@pytest.mark.parametrize("penalty", [None, "l2", "l1", "elasticnet"])
def test_default_settings_come_close_on_unscaled_columns(solver, penalty):
    X, y = regression(n=1000)
    task, blocks = problem(penalty=penalty, alpha=0.05 if penalty else 0.0), MemoryBlocks(X, y)
    best = solve(GradientDescent, task, blocks, tol=1e-10)
    solution = solve(solver, task, blocks, max_iter=30)
    excess = solution.certificate.objective - best.certificate.objective
    assert 0.0 <= excess <= 1e-3 * solution.certificate.scale
    assert solution.certificate.gap >= excess


def test_sgd_over_sparse_rows_comes_close():
    rng = np.random.default_rng(4)
    X = sp.random_array((2000, 50), density=0.1, rng=rng, format="csr")
    y = X @ rng.standard_normal((50, 1)) + 0.1 * rng.standard_normal((2000, 1))
    task, blocks = problem(penalty="l1", alpha=1e-3), MemoryBlocks(X, y)
    best = solve(GradientDescent, task, blocks, tol=1e-9)
    solution = solve(StochasticGradient, task, blocks, max_iter=30)
    scale = solution.certificate.scale
    assert solution.certificate.objective - best.certificate.objective <= 3e-3 * scale


@pytest.mark.parametrize("solver", [StochasticGradient, MiniBatch])
def test_the_seed_decides_the_result(solver):
    X, y = regression()
    blocks = MemoryBlocks(X, y)
    w = [solve(solver, problem(), blocks, max_iter=3, random_state=seed).w for seed in (1, 1, 2)]
    np.testing.assert_array_equal(w[0], w[1])
    assert np.any(w[0] != w[2])
    generator = np.random.default_rng(1)
    again = solve(solver, problem(), blocks, max_iter=3, random_state=generator).w
    np.testing.assert_array_equal(w[0], again)


@pytest.mark.parametrize(
    "change",
    [
        {"shuffle": False},
        {"average": True},
        {"average": 5},
        {"learning_rate": "constant"},
        {"learning_rate": "invscaling"},
        {"learning_rate": "invscaling", "power_t": 0.9},
        {"decay": 0.5},
        {"batch_size": 7},
        {"eta0": 1e-3},
        {"standardize": False},
    ],
    ids=str,
)
def test_every_option_changes_the_result(change):
    X, y = regression()
    blocks = MemoryBlocks((X - OFFSETS) / SIZES * [1, 2, 3, 4], y)
    plain = {"max_iter": 2, "eta0": 2e-3}
    base = solve(MiniBatch, problem(), blocks, **plain)
    changed = solve(MiniBatch, problem(), blocks, **(plain | change))
    assert np.any(base.w != changed.w)


def test_averaging_calms_a_constant_step():
    X, y = regression(n=1000)
    task, blocks = problem(), MemoryBlocks(X, y)
    options = {"learning_rate": "constant", "eta0": 0.05, "max_iter": 20}
    excess = [
        solve(StochasticGradient, task, blocks, average=average, **options).certificate.gap
        for average in (False, 2000)
    ]
    assert excess[1] < 0.1 * excess[0]


def test_the_passes_are_on_record_with_their_objective():
    X, y = regression()
    budget = Budget(tol=0.0, max_iter=4)
    task, blocks = problem(penalty="l2", alpha=0.1), MemoryBlocks(X, y)
    solution = StochasticGradient().solve(task, blocks, budget)
    objectives = [record.objective for record in budget.history]
    assert len(objectives) == 4
    assert solution.certificate.objective == min(objectives)
    assert all(record.gap >= 0 for record in budget.history)


@pytest.mark.parametrize("loss", [name for name in LOSSES if name != "zero_one"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_native_objective_is_that_of_the_problem(loss, dtype, weighted):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((5000, 7)).astype(dtype)
    labels = LOSSES[loss].labels
    scores = 3 if labels == "class" else 2
    y = rng.standard_normal((5000, 2))
    y = {"real": y, "sign": np.where(y > 0, 1.0, -1.0)}.get(labels, rng.integers(0, 3, (5000, 1)) * 1.0)
    weight = rng.random(5000) if weighted else None
    w, b = 100.0 * rng.standard_normal((7, scores)), rng.standard_normal(scores)
    task = problem(loss, "elasticnet", 0.3)
    value = task.loss.value(X.astype(float) @ w + b, y[:, 0] if labels == "class" else y)
    value = value if labels == "class" else value.sum(axis=1)
    expected = 0.3 * task.penalty.value(w) + np.average(value, weights=weight)
    for kind in (np.asarray, np.asfortranarray, sp.csr_array):
        blocks = MemoryBlocks(kind(X), y, weight, rows_per_block=3000)
        assert objective(task, w, b, blocks, Budget()) == pytest.approx(expected, rel=1e-12)


# -- odd data ----------------------------------------------------------------------------------


def test_gd_with_weights_is_gd_with_repeated_rows():
    X, y = regression(n=40)
    weight = np.arange(40) % 4.0
    task = problem(penalty="l1", alpha=0.1)
    options = {"max_iter": 15, "tol": 0.0, "eta0": 1e-6, "standardize": False}
    weighted = solve(GradientDescent, task, MemoryBlocks(X, y, weight), **options)
    rows = np.repeat(np.arange(40), weight.astype(int))
    repeated = solve(GradientDescent, task, MemoryBlocks(X[rows], y[rows]), **options)
    np.testing.assert_allclose(weighted.w, repeated.w, rtol=1e-9)
    np.testing.assert_allclose(weighted.b, repeated.b, rtol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_rows_of_weight_zero_do_not_count(solver):
    X, y = regression(n=200)
    weight = np.ones(200)
    weight[100:] = 0.0
    y[100:] = 1e9
    solution = solve(solver, problem(), MemoryBlocks(X, y, weight), max_iter=100)
    best = problem().objective(*least_squares(X[:100], y[:100]), MemoryBlocks(X[:100], y[:100]))
    assert solution.certificate.objective <= best + 1e-2 * solution.certificate.scale


def least_squares(X, y):
    Z = np.hstack([X - X.mean(axis=0), np.ones((X.shape[0], 1))])
    w = np.linalg.lstsq(Z, y, rcond=None)[0]
    return w[:-1], w[-1] - X.mean(axis=0) @ w[:-1]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("loss", ["squared", "absolute", "cubed"])
def test_one_row_is_fitted_exactly(solver, loss):
    blocks = MemoryBlocks(np.array([[3.0, 4.0]]), np.array([[5.0]]))
    solution = solve(solver, problem(loss), blocks)
    assert solution.certificate.objective == 0.0
    assert solution.certificate.converged


@pytest.mark.parametrize("solver", SOLVERS)
def test_constant_columns_and_targets_do_no_harm(solver):
    X, y = regression()
    X[:, 0] = 1e4
    solution = solve(solver, problem(), MemoryBlocks(X, y), max_iter=200)
    best = problem().objective(*least_squares(X, y), MemoryBlocks(X, y))
    assert solution.certificate.objective <= best + 1e-3 * solution.certificate.scale
    constant = solve(solver, problem(), MemoryBlocks(X, np.full_like(y, 7.0)), max_iter=200)
    assert constant.certificate.objective == pytest.approx(0.0, abs=1e-20)


@pytest.mark.parametrize("solver", SOLVERS)
def test_several_targets_are_several_problems(solver):
    X, y = regression()
    Y = np.hstack([y, -2.0 * y, y**2 / 700.0])
    task = problem(penalty="l2", alpha=0.1)
    together = solve(solver, task, MemoryBlocks(X, Y), max_iter=5, eta0=1e-3)
    for k in range(3):
        alone = solve(solver, task, MemoryBlocks(X, Y[:, [k]]), max_iter=5, eta0=1e-3)
        np.testing.assert_allclose(together.w[:, [k]], alone.w, rtol=1e-7)
