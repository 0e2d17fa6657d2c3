"""The judges of the linear-regression benchmark, at the optimum and a known step away from it."""

import numpy as np
import pytest

from benchmarks.linear.regression_tasks import (
    RegressionTask,
    ill_conditioned,
    lasso_gap,
    least_squares_excess,
    ridge_excess,
    sparse_truth,
    tall,
    wide,
    worst_weight,
)


def objective(task, answer, penalty):
    w, b = answer
    residuals = task.y - task.X @ w - b
    return residuals @ residuals / (2 * len(task.y)) + task.alpha * penalty(w)


def half_square(w):
    return w @ w / 2


def scale(task):
    return np.var(task.y) / 2


def test_least_squares_excess_is_the_difference_of_objectives():
    task = tall(300, 7, quick=False)
    *w, b = np.linalg.lstsq(np.column_stack([task.X, np.ones(300)]), task.y, rcond=None)[0]
    best, moved = (np.array(w), b), (np.array(w) + 0.01, b - 0.2)
    assert least_squares_excess(task, best) <= 1e-25
    expected = objective(task, moved, lambda w: 0) - objective(task, best, lambda w: 0)
    assert least_squares_excess(task, moved) == pytest.approx(expected / scale(task), rel=1e-9)


def test_ridge_excess_vanishes_at_the_optimum_and_bounds_the_difference_elsewhere():
    task = wide(quick=True)
    X, y = task.X - task.X.mean(axis=0), task.y - task.y.mean()
    w = X.T @ np.linalg.solve(X @ X.T + len(y) * task.alpha * np.eye(len(y)), y)
    best = (w, task.y.mean() - task.X.mean(axis=0) @ w)
    assert ridge_excess(task, best) <= 1e-25
    moved = (w * 1.001, best[1] + 0.01)
    difference = (objective(task, moved, half_square) - objective(task, best, half_square)) / scale(task)
    assert difference <= ridge_excess(task, moved) <= 1e3 * difference


def test_lasso_gap_of_an_orthogonal_table_solved_by_hand():
    # Columns of +-1 with X'X = 4 I and mean 0: w = soft(X'y / 4, alpha) and b = mean(y) = 1.
    X = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    task = RegressionTask(X, X @ np.array([3.0, 0.25]) + 1.0, alpha=0.5)
    best = (np.array([2.5, 0.0]), 1.0)
    assert lasso_gap(task, best) == pytest.approx(0.0, abs=1e-15)
    # At w = (3, 0), b = 1 the residuals are 0.25 of the second column, feasible as they stand:
    # primal = 0.03125 + 1.5, dual = 0.03125, scale = (9 + 0.0625) / 2.
    moved = (np.array([3.0, 0.0]), 1.0)
    assert lasso_gap(task, moved) == pytest.approx(1.5 / 4.53125)
    # An intercept that is off by 0.1 costs 0.1^2 / 2 more.
    assert lasso_gap(task, (best[0], 1.1)) == pytest.approx(0.005 / 4.53125)


def test_lasso_alpha_is_a_hundredth_of_the_one_that_empties_the_model():
    task = sparse_truth(quick=True)
    empty = (np.zeros(task.X.shape[1]), task.y.mean())
    assert lasso_gap(task._replace(alpha=100.01 * task.alpha), empty) == pytest.approx(0.0, abs=1e-15)
    assert lasso_gap(task._replace(alpha=99 * task.alpha), empty) > 1e-5


def test_ill_conditioned_target_is_exact_and_the_condition_as_said():
    task = ill_conditioned(quick=True)
    exact = task.X.astype(np.longdouble) @ task.truth.astype(np.longdouble)
    assert (exact == task.y).all()
    assert np.linalg.cond(task.X) == pytest.approx(1e8, rel=0.01)
    assert worst_weight(task, (task.truth, 0.0)) == 0
    assert worst_weight(task, (task.truth * (1 - 1e-5), 0.0)) == pytest.approx(1e-5)
