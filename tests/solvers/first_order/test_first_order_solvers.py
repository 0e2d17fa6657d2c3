"""Gradient descent, stochastic and mini-batch: the right answer, honest stops, usable after any stop."""

import numpy as np
import pytest
from scipy.optimize import linprog

from sixfold.data.blocks import MemoryBlocks
from sixfold.solvers.first_order.stochastic import MiniBatch
from solvers.first_order.first_order_problems import OFFSETS, SIZES, SOLVERS, regression, solve
from solvers.problems import problem

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


# -- odd data ----------------------------------------------------------------------------------


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
