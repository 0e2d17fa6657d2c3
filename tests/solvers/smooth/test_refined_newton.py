"""Newton along a falling penalty certifies what other solvers leave: any scale, any C, any collinearity."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit

from sixfold.budget import Budget
from sixfold.solvers.smooth.refined_newton import RefinedNewton
from solvers.problems import blocks, problem, solve

LOSSES = ("logistic", "squared_hinge", "softmax")


def labels(loss, rows, rng):
    return rng.integers(0, 3, rows).astype(float) if loss == "softmax" else rng.choice([-1.0, 1.0], rows)


def fitted(loss, X, y, C, weight=None, **limits):
    """Return the solution of the problem that a learner states for this C."""
    total = len(y) if weight is None else weight.sum()
    stated = problem(loss, "l2", 1.0 / (C * total)) if np.isfinite(C) else problem(loss)
    return solve(RefinedNewton(), stated, blocks(X, y, weight), max_iter=1000, **limits)[0]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [1e-6, 1e-2, 1.0, 1e4, 1e8, 1e12])
def test_columns_of_twelve_decades_are_certified_at_every_c(loss, C):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 60)) * 10.0 ** np.linspace(-6, 6, 60)
    found = fitted(loss, X, labels(loss, 60, rng), C)
    assert found.certificate.converged


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [1.0, 1e6, 1e10, 1e12])
def test_classes_that_are_apart_are_certified_at_every_c(loss, C):
    rng = np.random.default_rng(1)
    y = labels(loss, 150, rng)
    X = rng.normal(size=(150, 8)) + 6.0 * np.where(
        np.arange(8) % 3 == (y[:, None] > 0) + (y[:, None] > 1), 1, 0
    )
    assert fitted(loss, X, y, C).certificate.converged


@pytest.mark.parametrize("apart", [1e-6, 1e-8, 1e-10])
def test_nearly_collinear_columns_are_told_apart_without_penalty(apart):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 3))
    hidden = rng.normal(size=300)
    y = np.where(rng.random(300) < expit(hidden), 1.0, -1.0)
    plain = fitted("logistic", np.column_stack([X, hidden]), y, np.inf)
    found = fitted("logistic", np.column_stack([X, X[:, 0] + apart * hidden]), y, np.inf)
    assert found.certificate.objective == pytest.approx(plain.certificate.objective, rel=1e-5)
    assert found.certificate.converged


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_of_twelve_decades(loss):
    rng = np.random.default_rng(3)
    X, weight = rng.normal(size=(200, 5)), 10.0 ** rng.uniform(-6, 6, 200)
    for C in (1e-6, 1.0, 1e4):
        assert fitted(loss, X, labels(loss, 200, rng), C, weight).certificate.converged


@pytest.mark.parametrize("loss", LOSSES)
def test_the_path_is_short_where_few_rows_are_inside_the_margin(loss):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 100))
    y = labels(loss, 400, rng)
    X[np.arange(400), (y > 0) * 1 + (y > 1)] += 3.0
    found = fitted(loss, X, y, 1e6)
    assert found.certificate.converged
    assert found.n_iter <= 80


@pytest.mark.parametrize("loss", LOSSES)
def test_rows_far_on_the_wrong_side_do_no_harm(loss):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(100, 3))
    X[0] *= 1e8
    assert fitted(loss, X, labels(loss, 100, rng), 1.0).certificate.converged


def test_no_intercept_sparse_and_single_precision():
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(120, 6)), labels("logistic", 120, rng)
    X[np.abs(X) < 0.5] = 0.0
    stated = problem("logistic", "l2", 1e-8, fit_intercept=False)
    dense = solve(RefinedNewton(), stated, blocks(X, y))[0]
    assert dense.certificate.converged
    assert not dense.b.any()
    sparse = solve(RefinedNewton(), stated, blocks(sp.csr_array(X), y))[0]
    np.testing.assert_allclose(sparse.w, dense.w, rtol=1e-4)
    single = solve(RefinedNewton(), stated, blocks(X.astype(np.float32), y.astype(np.float32)))[0]
    np.testing.assert_array_equal(single.w, single.w.astype(np.float32))
    assert single.certificate.converged


def test_constant_columns_have_no_weight():
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(2000, 3)), labels("logistic", 2000, rng)
    X[:, 1] = 0.1
    for C in (1.0, np.inf):
        assert fitted("logistic", X, y, C).w[1, 0] == 0.0


def test_limits_are_kept_and_the_best_point_so_far_returned():
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(200, 20)), labels("softmax", 200, rng)
    stated, data = problem("softmax", "l2", 1e-9), blocks(X, y)
    found, budget = solve(RefinedNewton(), stated, data, tol=0.0, max_iter=3)
    assert found.n_iter == len(budget.history) == 3
    assert budget.stopped_by == "max_iter=3"
    assert found.certificate.objective < found.certificate.scale
    late, budget = solve(RefinedNewton(), stated, data, time_limit=0.0)
    assert budget.stopped_by == "time_limit=0 s"
    assert not late.w.any()


def test_every_target_has_its_iterations():
    rng = np.random.default_rng(9)
    X = rng.normal(size=(150, 10))
    Y = np.where(rng.integers(0, 4, 150)[:, None] == np.arange(4), 1.0, -1.0)
    with Budget(1e-6, 40) as budget:
        found = RefinedNewton().solve(problem("squared_hinge", "l2", 1e-8), blocks(X, Y), budget)
    assert found.certificate.converged
    assert budget.shortened_by is None


def test_it_is_no_first_choice_but_for_classes_without_penalty():
    tall, two, three = np.zeros((50, 5)), np.resize([1.0, -1.0], 50), np.resize([0.0, 1.0, 2.0], 50)
    solver = RefinedNewton()
    assert solver.suits(problem("softmax"), blocks(tall, three))
    assert not solver.suits(problem("softmax", "l2", 1.0), blocks(tall, three))
    assert not solver.suits(problem("logistic"), blocks(tall, two))
    assert solver.rescues(problem("logistic", "l2", 1.0), blocks(tall, two))
    assert not solver.rescues(problem("logistic", "l2", 1.0), blocks(sp.csr_array((50, 10_000)), two))
