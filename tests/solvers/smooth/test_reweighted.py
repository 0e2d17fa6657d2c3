"""Newton's step from least squares is Newton's step, and what it leaves is a dual point."""

import numpy as np
import pytest

from sixfold.budget import Budget
from sixfold.solvers.smooth.reweighted import Reweighted, balanced_slopes
from sixfold.solvers.smooth.scaled_rows import ScaledRows
from solvers.problems import blocks, problem

LOSSES = ("logistic", "squared_hinge", "cubed", "softmax")


def stated(loss, alpha=1e-3, rows=40, columns=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)) * [1.0, 1e3, 1e-3] + [0.0, 1e4, 5.0]
    real = {"softmax": rng.integers(0, 3, rows).astype(float), "cubed": rng.normal(size=rows)}
    y = real.get(loss, rng.choice([-1.0, 1.0], rows))
    weight = rng.uniform(0.1, 2.0, rows)
    weight[0] = 0.0
    return problem(loss, "l2", alpha), blocks(X, y, weight), rng


@pytest.mark.parametrize("loss", LOSSES)
def test_the_step_solves_newtons_equations(loss):
    problem_, data, rng = stated(loss)
    rows = ScaledRows(problem_, data)
    target = Reweighted(problem_, rows, data, Budget(), 0)
    theta = 0.3 * rng.normal(size=(4, 3 if loss == "softmax" else 1))

    def slope(at):
        score = rows.times(at)
        return rows.transposed_times(rows.q[:, None] * target.slopes(score)) + target.penalty * at

    step = target.step(theta, rows.times(theta))
    h = 1e-6
    product = (slope(theta + h * step.delta) - slope(theta - h * step.delta)) / (2.0 * h)
    np.testing.assert_allclose(product, -slope(theta), atol=2e-8)
    assert step.decrement == pytest.approx(-float((slope(theta) * step.delta).sum()), rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_what_the_step_leaves_balances_the_penalty(loss):
    problem_, data, rng = stated(loss)
    rows = ScaledRows(problem_, data)
    target = Reweighted(problem_, rows, data, Budget(), 0)
    theta = np.zeros((4, 3 if loss == "softmax" else 1))
    for _ in range(30):  # close enough that no slope is at the end of its domain
        theta = theta + target.step(theta, rows.times(theta)).delta
    theta += 1e-3 * rng.normal(size=theta.shape)
    step = target.step(theta, rows.times(theta))
    left = rows.transposed_times(rows.q[:, None] * step.dual) + target.penalty * (theta + step.delta)
    np.testing.assert_allclose(left, 0.0, atol=1e-15)
    assert target.gap(theta, rows.times(theta), step.dual) == pytest.approx(0.5 * step.decrement, rel=0.05)


@pytest.mark.parametrize("loss", ["logistic", "softmax"])
@pytest.mark.parametrize("alpha", [1e-6, 1e-10, 1e-14])
def test_the_gap_of_the_dual_point_does_not_grow_as_the_penalty_falls(loss, alpha):
    problem_, data, rng = stated(loss, alpha, rows=200)
    rows = ScaledRows(problem_, data)
    target = Reweighted(problem_, rows, data, Budget(), 0)
    theta = np.zeros((4, 3 if loss == "softmax" else 1))
    for _ in range(30):
        theta = theta + target.step(theta, rows.times(theta)).delta
    theta *= 1.0 + 1e-5 * rng.normal(size=theta.shape)
    w, b = rows.model(theta)
    dual = balanced_slopes(problem_, data, Budget(), w, b)
    score = rows.times(theta)
    assert target.gap(theta, score, dual) < 1e-9
    assert problem_.certify("duality gap", w, b, data, 1e-6, dual).converged
    # The slopes of the loss themselves have |g|^2 / (2 l2).
    if alpha < 1e-8:
        assert target.gap(theta, score, target.slopes(score)) > 1e-6


def test_scaled_rows_have_the_scores_of_the_table_whatever_the_offset():
    rng = np.random.default_rng(1)
    X = np.column_stack([1.7e9 + rng.integers(0, 1000, 50), 1e-9 * rng.normal(size=50), np.full(50, 0.1)])
    data, problem_ = blocks(X, rng.choice([-1.0, 1.0], 50)), problem("logistic")
    rows = ScaledRows(problem_, data)
    Z = rows.times(np.vstack([np.eye(3), np.zeros(3)]))
    np.testing.assert_allclose(Z[:, :2].mean(axis=0), 0.0, atol=1e-9)  # an ulp of the mean
    np.testing.assert_allclose(np.square(Z[:, :2]).mean(axis=0), 1.0, rtol=1e-9)
    assert rows.constant.tolist() == [False, False, True]
    theta = rng.normal(size=(4, 1))
    theta[2] = 0.0
    w, b = rows.model(theta)
    exact = X.astype(np.longdouble) @ w.astype(np.longdouble) + b
    # All that is lost is the rounding of w and b.
    np.testing.assert_allclose(exact[:, 0].astype(float), rows.times(theta)[:, 0], atol=1e-6)
    np.testing.assert_allclose(rows.theta(w, b), theta, atol=1e-6)
