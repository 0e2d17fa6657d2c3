"""Penalised logistic, squared hinge and softmax losses: answers, certificates, limits."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from oracles.linear import penalised_classification
from sixfold.budget import Budget
from sixfold.errors import IncompatibleError
from sixfold.solvers.base import choose
from sixfold.solvers.l1 import proximal_newton, subproblem, working_set
from sixfold.solvers.l1.coordinate import CoordinateDescent
from solvers.problems import blocks, problem

LOSSES = ["logistic", "squared_hinge", "softmax"]


def working_sets():
    """Return the solver as it goes along a path, where few columns too are for working sets."""
    return CoordinateDescent(proximal_newton.PathMemory())


def solve(stated, data, tol=1e-9, **limits):
    """Solve, and check that the certificate says what the problem itself says of the solution."""
    with Budget(tol, **limits) as budget:
        found = working_sets().solve(stated, data, budget)
    certificate = found.certificate
    assert certificate.scale == pytest.approx(stated.constant_objective(data), rel=1e-12)
    assert certificate.objective == pytest.approx(stated.objective(found.w, found.b, data), rel=1e-11)
    honest = stated.gap(found.w, found.b, data)
    computed = certificate.gap - certificate.rounding
    assert computed == pytest.approx(honest, rel=1e-6, abs=1e-11 * certificate.scale)
    if not stated.fit_intercept:
        assert not found.b.any()
    return found


def classification(n, d, loss="logistic", *, seed=0, classes=3, informative=4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    W = np.zeros((d, classes))
    W[:informative] = 2.0 * rng.standard_normal((min(informative, d), classes))
    noisy = X @ W + rng.gumbel(size=(n, classes))
    if loss == "softmax":
        return X + 1.0, noisy.argmax(axis=1).astype(float)
    return X + 1.0, np.where(noisy[:, 0] > noisy[:, 1], 1.0, -1.0)


def largest_alpha(X, y, loss):
    """Return a strength of the l1 penalty that is near to where all weights vanish."""
    if loss == "softmax":
        slopes = [np.abs(X.T @ ((y == k) - np.mean(y == k))).max() for k in np.unique(y)]
        return max(slopes) / len(y)
    return np.abs(X.T @ (y - y.mean())).max() / (2.0 * len(y))


# -- the answer -----------------------------------------------------------------------------------


@given(
    loss=st.sampled_from(LOSSES),
    n=st.integers(2, 14),
    d=st.integers(1, 10),
    seed=st.integers(0, 10_000),
    fraction=st.sampled_from([0.01, 0.1, 0.5, 1.1]),
    l1_ratio=st.sampled_from([1.0, 0.7, 0.0]),
    positive=st.booleans(),
    intercept=st.booleans(),
    grid=st.booleans(),
    sparse=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_is_certified_and_not_above_the_oracle(
    loss, n, d, seed, fraction, l1_ratio, positive, intercept, grid, sparse
):
    rng = np.random.default_rng(seed)
    # Integers make ties, duplicate and constant columns.
    X = rng.integers(-2, 3, (n, d)).astype(float) if grid else rng.standard_normal((n, d))
    y = rng.integers(0, 3, n).astype(float) if loss == "softmax" else rng.choice([-1.0, 1.0], n)
    weight = rng.integers(0, 3, n).astype(float)
    y[:2] = [0.0, 2.0] if loss == "softmax" else [-1.0, 1.0]
    weight[:2] = 1.0  # two labels count, so that there is a minimum
    alpha = fraction * largest_alpha(X, y, loss) + 1e-3
    stated = problem(loss, "elasticnet", alpha, l1_ratio=l1_ratio, positive=positive, fit_intercept=intercept)
    data = blocks(sp.csr_array(X) if sparse else X, y, weight)
    found = solve(stated, data)
    assert found.certificate.converged
    w, b = penalised_classification(X, y, weight, loss, stated.l1, stated.l2, intercept, positive, steps=500)
    theirs = stated.objective(w, b, data)
    assert found.certificate.objective <= theirs + 1e-9 * found.certificate.scale


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
@pytest.mark.parametrize("intercept", [True, False])
def test_logistic_equals_scikit_learn(l1_ratio, intercept):
    X, y = classification(80, 12)
    alpha = 0.02
    found = solve(
        problem("logistic", "elasticnet", alpha, l1_ratio=l1_ratio, fit_intercept=intercept), blocks(X, y)
    )
    peer = LogisticRegression(
        C=1.0 / (alpha * 80),
        l1_ratio=l1_ratio,
        solver="saga",
        fit_intercept=intercept,
        tol=1e-10,
        max_iter=100_000,
    ).fit(X, y)
    np.testing.assert_allclose(found.w[:, 0], peer.coef_[0], atol=1e-5)
    np.testing.assert_allclose(found.b, peer.intercept_, atol=1e-5)


def test_softmax_equals_scikit_learn():
    X, y = classification(90, 8, "softmax")
    alpha = 0.02
    stated = problem("softmax", "l1", alpha)
    found = solve(stated, blocks(X, y))
    peer = LogisticRegression(C=1.0 / (alpha * 90), l1_ratio=1.0, solver="saga", tol=1e-10, max_iter=100_000)
    peer.fit(X, y)
    np.testing.assert_allclose(found.w, peer.coef_.T, atol=1e-4)
    shifted = peer.intercept_ - peer.intercept_.mean()  # all scores may move together
    np.testing.assert_allclose(found.b - found.b.mean(), shifted, atol=1e-4)


def test_squared_hinge_equals_liblinear():
    X, y = classification(70, 10)
    alpha = 0.05
    found = solve(problem("squared_hinge", "l1", alpha, fit_intercept=False), blocks(X, y))
    # LIBLINEAR has no 1/2 in front of the squared hinge: C n = 1 / (2 alpha).
    peer = LinearSVC(
        C=1.0 / (2.0 * alpha * 70), penalty="l1", dual=False, fit_intercept=False, tol=1e-10, max_iter=100_000
    ).fit(X, y)
    np.testing.assert_allclose(found.w[:, 0], peer.coef_[0], atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_non_negative_weights_equal_the_oracle(loss):
    X, y = classification(60, 6, loss)
    found = solve(problem(loss, "elasticnet", 0.02, l1_ratio=0.8, positive=True), blocks(X, y), tol=1e-12)
    w, _ = penalised_classification(X, y, np.ones(60), loss, 0.016, 0.004, positive=True)
    assert (w == 0.0).any()
    assert (w > 0.0).any()
    np.testing.assert_allclose(found.w, w, atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_large_alpha_gives_zero_and_a_smaller_one_does_not(loss):
    X, y = classification(50, 20, loss)
    data = blocks(X, y)
    centred = X - X.mean(axis=0)
    alpha = largest_alpha(centred, y, loss) * (2.0 if loss == "squared_hinge" else 1.0)
    if loss == "squared_hinge":  # at the best intercept, the slope of a row is y - mean(y)
        alpha = np.abs(centred.T @ (y - y.mean())).max() / 50
    above = solve(problem(loss, "l1", alpha * (1 + 1e-6)), data)
    assert not above.w.any()
    assert above.certificate.converged
    assert np.count_nonzero(solve(problem(loss, "l1", alpha * 0.99), data).w) >= 1


@pytest.mark.parametrize("loss", LOSSES)
def test_a_tiny_alpha_on_separable_data_reaches_the_tolerance(loss):
    X, y = classification(40, 100, loss)
    found = solve(problem(loss, "l1", 1e-4), blocks(X, y), tol=1e-7)
    assert found.certificate.converged
    assert found.certificate.objective < 0.1 * found.certificate.scale


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_several_targets_are_solved_each_by_itself(loss):
    X, y = classification(60, 15)
    Y = np.column_stack([y, y[::-1], np.where(X[:, 3] > 1.0, 1.0, -1.0)])
    together = solve(problem(loss, "l1", 0.02), blocks(X, Y), tol=1e-10)
    assert together.certificate.converged
    for k in range(3):
        alone = solve(problem(loss, "l1", 0.02), blocks(X, Y[:, k]), tol=1e-10)
        np.testing.assert_allclose(together.w[:, k], alone.w[:, 0], atol=1e-6)
        np.testing.assert_allclose(together.b[k], alone.b[0], atol=1e-6)


# -- odd data -------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_zero_weights_remove_rows_and_integer_weights_repeat_them(loss):
    X, y = classification(50, 30, loss)
    weight = np.random.default_rng(2).integers(0, 3, 50)
    stated = problem(loss, "l1", 0.03)
    X[weight == 0] *= 1e10
    weighted = solve(stated, blocks(X, y, weight.astype(float)))
    repeated = solve(stated, blocks(np.repeat(X, weight, axis=0), np.repeat(y, weight)))
    np.testing.assert_allclose(weighted.w, repeated.w, atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_duplicate_columns_share_one_weight(loss):
    X, y = classification(60, 6, loss)
    stated = problem(loss, "l1", 0.03)
    doubled, single = solve(stated, blocks(np.hstack([X, X]), y)), solve(stated, blocks(X, y))
    assert doubled.certificate.converged
    np.testing.assert_allclose(doubled.w[:6] + doubled.w[6:], single.w, atol=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("value", [0.0, 1.0, 0.1])
def test_constant_columns_get_no_weight(loss, value):
    X, y = classification(100, 5, loss)
    X[:, 2] = value
    for table in (X, np.asfortranarray(X), sp.csr_array(X)):
        found = solve(problem(loss, "elasticnet", 0.01, l1_ratio=0.5), blocks(table, y))
        assert not found.w[2].any()
        assert found.certificate.converged


@pytest.mark.parametrize("loss", LOSSES)
def test_columns_of_very_different_scale_take_no_longer(loss):
    # With l1 taken to nothing the scaled problem is the same one.
    X, y = classification(60, 8, loss)
    scale = 10.0 ** np.arange(-4, 4)
    iterations = []
    for table in (X, X * scale):
        budget = Budget(1e-7)
        found = working_sets().solve(problem(loss, "l1", 1e-5), blocks(table, y), budget)
        assert found.certificate.converged
        iterations.append(len(budget.history))
    assert iterations[1] <= iterations[0] + 3


@pytest.mark.parametrize("order", ["C", "F", "sparse"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", LOSSES)
def test_layout_and_precision_of_the_table_do_not_matter(loss, dtype, order):
    rng = np.random.default_rng(3)
    X = (rng.standard_normal((80, 130)) * (rng.random((80, 130)) < 0.3)).astype(np.float32).astype(float)
    _, y = classification(80, 5, loss)
    stated = problem(loss, "elasticnet", 0.03, l1_ratio=0.9)
    expected = solve(stated, blocks(X, y))
    table = (sp.csr_array(X) if order == "sparse" else np.asarray(X, order=order)).astype(dtype)
    found = solve(stated, blocks(table, y.astype(dtype)))
    np.testing.assert_allclose(found.w, expected.w, atol=1e-4)
    # What is kept of float32 has 7 digits, and the certificate speaks of that.
    assert found.certificate.relative_gap <= (1e-6 if dtype == np.float32 else 1e-9)
    assert np.array_equal(found.w, found.w.astype(dtype))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("table", ["C", "F", "sparse"])
@pytest.mark.parametrize("copied", [0.0, 1.0])
def test_small_limits_give_the_same_answer(monkeypatch, loss, table, copied):
    X, y = classification(50, 60, loss)
    weight = np.random.default_rng(4).random(50)
    stated = problem(loss, "elasticnet", 0.05, l1_ratio=0.5)
    expected = solve(stated, blocks(X, y, weight))
    monkeypatch.setattr(proximal_newton, "FETCHED_COLUMNS", 5)
    monkeypatch.setattr(subproblem, "FIRST_COORDINATES", 3)
    monkeypatch.setattr(working_set, "MOST_GRAM", 4)
    monkeypatch.setattr(working_set, "COPIED", copied)
    X = sp.csr_array(X) if table == "sparse" else np.asarray(X, order=table)
    found = solve(stated, blocks(X, y, weight), tol=1e-7)
    assert found.certificate.converged
    np.testing.assert_allclose(found.w, expected.w, atol=1e-3)


def test_one_class_only_ends_with_a_small_objective():
    X, _ = classification(20, 3)
    found = solve(problem("logistic", "l1", 0.1), blocks(X, np.ones(20)), tol=1e-6)
    assert found.certificate.converged
    assert not found.w.any()


def test_rows_in_several_blocks_give_the_same_answer():
    X, y = classification(50, 20)
    stated = problem("logistic", "l1", 0.02)
    expected = solve(stated, blocks(X, y))
    np.testing.assert_array_equal(solve(stated, blocks(X, y, None, 7)).w, expected.w)


@pytest.mark.parametrize("loss", LOSSES)
def test_any_number_of_threads_gives_the_same_bits(loss):
    X, y = classification(3000, 400, loss, informative=40)
    stated, data = problem(loss, "l1", 0.005), blocks(X, y)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="openmp"):
            found.append(working_sets().solve(stated, data, Budget(1e-6)))
    assert np.count_nonzero(found[0].w) > 20
    np.testing.assert_array_equal(found[0].w, found[1].w)


# -- limits ---------------------------------------------------------------------------------------


@pytest.fixture
def long():
    """Return a problem whose first iteration takes many seconds: residuals of nearly dependent columns."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((400, 1)) + 1e-3 * rng.standard_normal((400, 700))
    y = np.where(X @ rng.standard_normal(700) > 0, 1.0, -1.0)
    return problem("logistic", "l1", 1e-9), blocks(X, y)


@pytest.fixture
def on_residuals(monkeypatch):
    monkeypatch.setattr(working_set, "MOST_GRAM", 0)
    monkeypatch.setattr(subproblem, "RESIDUAL_EPOCHS", 10**9)


def test_history_has_one_record_an_iteration_and_the_objective_falls():
    X, y = classification(200, 2000, informative=30)
    with Budget(1e-8) as budget:
        found = working_sets().solve(problem("logistic", "l1", 0.005), blocks(X, y), budget)
    assert found.n_iter == len(budget.history) > 1
    assert budget.history[-1].objective == pytest.approx(found.certificate.objective, rel=1e-11)
    assert budget.history[-1].objective < budget.history[0].objective
    assert budget.stopped_by is None


def test_iteration_limit_leaves_an_honest_certificate():
    X, y = classification(200, 2000, informative=30)
    found = solve(problem("logistic", "l1", 0.005), blocks(X, y), max_iter=1)
    assert found.n_iter == 1
    assert not found.certificate.converged
    assert found.certificate.objective < found.certificate.scale


@pytest.mark.usefixtures("on_residuals")
def test_time_limit_stops_inside_the_loop_and_keeps_its_work(long):
    with Budget(0.0, time_limit=0.3) as budget:
        found = working_sets().solve(*long, budget)
    assert budget.stopped_by == "time_limit=0.3 s"
    assert budget.seconds < 5.0
    assert found.certificate.objective < found.certificate.scale
    assert found.certificate.gap == pytest.approx(long[0].gap(found.w, found.b, long[1]), rel=1e-6)


@pytest.mark.usefixtures("on_residuals")
def test_ctrl_c_stops_inside_the_loop_and_keeps_its_work(long):
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    with Budget(0.0, time_limit=60.0) as budget:
        timer.start()
        found = working_sets().solve(*long, budget)
        timer.join()
    assert budget.interrupted
    assert budget.seconds < 30.0
    assert found.certificate.objective < found.certificate.scale


def test_no_time_at_all_leaves_the_constant_model():
    X, y = classification(50, 20)
    found = working_sets().solve(problem("logistic", "l1", 0.1), blocks(X, y), Budget(time_limit=0.0))
    assert not found.w.any()
    share = (y > 0).mean()
    np.testing.assert_allclose(found.b, [np.log(share / (1.0 - share))], rtol=1e-6)
    assert not found.certificate.converged


@pytest.mark.parametrize("loss", LOSSES)
def test_a_tolerance_below_rounding_ends(loss):
    X, y = classification(50, 20, loss)
    with Budget(0.0, time_limit=60.0) as budget:
        found = working_sets().solve(problem(loss, "l1", 0.03), blocks(X, y), budget)
    assert budget.stopped_by is None
    assert found.certificate.relative_gap < 1e-11


# -- where it is used -----------------------------------------------------------------------------


def test_it_suits_kinks_and_refuses_what_it_cannot_bound():
    X, y = classification(10, 3)
    solver, data = working_sets(), blocks(X, y)
    assert solver.suits(problem("logistic", "l1", 1.0), data)
    assert choose("auto", problem("logistic", "l1", 1.0), data, [solver]) is solver
    with pytest.raises(IncompatibleError, match="the loss has kinks"):
        choose("coordinate", problem("hinge", "l1", 1.0), data, [solver])
    with pytest.raises(IncompatibleError, match="without a penalty"):
        choose("coordinate", problem("logistic", None, positive=True), data, [solver])
