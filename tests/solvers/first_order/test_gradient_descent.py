"""Gradient descent over all rows reaches the optimum, on unscaled columns and with every penalty."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Lasso, LogisticRegression, Ridge

from sixfold.budget import Budget
from sixfold.data.blocks import MemoryBlocks
from sixfold.solvers.first_order.gradient_descent import GradientDescent
from solvers.first_order.first_order_problems import OFFSETS, SIZES, regression, solve
from solvers.problems import problem


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


def test_gd_with_weights_is_gd_with_repeated_rows():
    X, y = regression(n=40)
    weight = np.arange(40) % 4.0
    task = problem(penalty="l1", alpha=0.1)
    options = {"max_iter": 15, "tol": 0.0, "eta0": 1e-6, "standardize": False}
    weighted = solve(GradientDescent, task, MemoryBlocks(X, y, weight), **options)
    rows = np.repeat(np.arange(40), weight.astype(int))
    repeated = solve(GradientDescent, task, MemoryBlocks(X[rows], y[rows]), **options)
    # Sums of other terms are rounded otherwise: on one processor by 1e-11 of the largest coefficient.
    np.testing.assert_allclose(weighted.w, repeated.w, rtol=1e-9, atol=1e-10 * np.abs(repeated.w).max())
    np.testing.assert_allclose(weighted.b, repeated.b, rtol=1e-9)
