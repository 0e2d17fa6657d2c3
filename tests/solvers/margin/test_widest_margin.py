"""The widest margin is that of its definition, and bounded by the distance of the hulls."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.datasets import load_iris
from sklearn.svm import SVC

from sixfold.budget import Budget
from sixfold.solvers.margin.widest_margin import check_widest_margin, widest_margin
from solvers.problems import blocks, problem


def widest(X, y, *, fit_intercept=True, weight=None, rows_per_block=None):
    stated, data = (
        problem("hinge", fit_intercept=fit_intercept),
        blocks(X, np.asarray(y, float), weight, rows_per_block),
    )
    found = widest_margin(stated, data, Budget())
    assert check_widest_margin(found, stated, data)
    return found


def two_clouds(random, n, d, apart):
    X = random.normal(size=(n, d))
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    return X + apart * y[:, None] * np.ones(d), y


def test_two_rows_have_the_plane_in_the_middle():
    found = widest(np.array([[0.0, 0.0], [3.0, 4.0]]), [-1, 1])
    np.testing.assert_allclose(found.w[:, 0], [0.24, 0.32])
    np.testing.assert_allclose(found.b, [-1.0])
    np.testing.assert_allclose([found.margin, found.bound], 2.5)
    np.testing.assert_allclose(found.weights, 0.08)


def test_the_plane_is_that_of_a_support_vector_machine_with_a_huge_C():  # noqa: N802
    X, y = load_iris(return_X_y=True)
    y = np.where(y == 0, 1, -1)
    found = widest(X, y)
    peer = SVC(kernel="linear", C=1e10, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(found.w[:, 0], peer.coef_[0], rtol=1e-4)
    np.testing.assert_allclose(found.b, peer.intercept_, rtol=1e-4)
    assert found.rows.tolist() == sorted(peer.support_.tolist())
    np.testing.assert_allclose((found.weights * y[found.rows]) @ X[found.rows], found.w[:, 0], rtol=1e-9)


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 30), st.integers(1, 6), st.booleans(), st.integers(0, 10**6))
def test_the_margin_meets_its_bound(n, d, fit_intercept, seed):
    random = np.random.default_rng(seed)
    X, y = two_clouds(random, n, d, 6.0)
    found = widest(X, y, fit_intercept=fit_intercept)
    assert found.kind == "separable"
    np.testing.assert_allclose(found.margin, found.bound, rtol=1e-9)
    score = y * (X @ found.w[:, 0] + found.b[0])
    np.testing.assert_allclose(score.min(), 1.0)
    np.testing.assert_allclose(score[found.rows], 1.0, rtol=1e-8)
    if not fit_intercept:
        assert found.b[0] == 0.0
    for other in (sp.csr_array(X), X + 0.0):
        again = widest(other, y, fit_intercept=fit_intercept, rows_per_block=4)
        np.testing.assert_allclose(again.w, found.w, rtol=1e-7, atol=1e-9)


def test_the_plane_minimises_the_length_of_w():
    random = np.random.default_rng(2)
    X, y = two_clouds(random, 20, 2, 2.0)
    answer = minimize(
        lambda v: v[:2] @ v[:2] / 2,
        np.array([1.0, 1.0, 0.0]),
        constraints={"type": "ineq", "fun": lambda v: y * (X @ v[:2] + v[2]) - 1.0},
        options={"ftol": 1e-14},
    )
    found = widest(X, y)
    np.testing.assert_allclose(np.append(found.w, found.b), answer.x, rtol=1e-5)


@pytest.mark.parametrize(("scale", "mean"), [(1e8, 0.0), (1e-8, 0.0), (1.0, 1e6)])
def test_units_and_means_only_scale_the_margin(scale, mean):
    X, y = two_clouds(np.random.default_rng(3), 200, 4, 3.0)
    np.testing.assert_allclose(widest(scale * X + mean, y).margin, scale * widest(X, y).margin, rtol=1e-7)


def test_columns_of_different_size_may_all_be_needed():
    X, y = two_clouds(np.random.default_rng(3), 100, 3, 0.0)
    X[:, 0] = y * (1.0 + X[:, 0] ** 2)
    found = widest(X * [1e-8, 1e8, 1.0], y)
    assert found.kind == "separable"
    assert found.bound >= found.margin


def test_exclusive_or_has_no_plane():
    X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    found = widest(X, [-1, -1, 1, 1])
    assert found.kind == "not separable"
    assert found.margin == 0.0
    np.testing.assert_allclose(found.proof.weights, 0.25)


def test_hulls_that_touch_are_not_separable():
    assert widest(np.array([[-1.0], [0.0], [0.0], [1.0]]), [-1, -1, 1, 1]).kind == "not separable"


@pytest.mark.parametrize("size", [1e-3, 1e-6])
def test_a_tiny_margin_is_found_and_a_tiny_overlap_is_not_separable(size):
    X, y = two_clouds(np.random.default_rng(5), 100, 3, 0.0)
    X[:, 0] = y * (size / 2 + X[:, 0] ** 2)
    X[0], X[1] = [-size / 2, 0.0, 0.0], [size / 2, 0.0, 0.0]
    np.testing.assert_allclose(widest(X, y).margin, size / 2, rtol=1e-6)
    X = np.vstack([X, [3 * size, 0.0, 0.0], [-10.0, 30.0, 0.0], [-10.0, -30.0, 5.0], [-10.0, -30.0, -5.0]])
    X = np.vstack([X, [2 * size, 0.0, 0.0]])
    assert widest(X, np.append(y, [-1.0] * 4 + [1.0])).kind == "not separable"


def test_rows_of_weight_zero_do_not_count():
    X, y = np.array([[0.0], [1.0], [2.0], [0.5]]), [-1, -1, 1, 1]
    assert widest(X, y).kind == "not separable"
    assert widest(X, y, weight=np.array([1.0, 1.0, 1.0, 0.0])).margin == pytest.approx(0.5)


def test_one_class_alone_has_a_plane_at_any_distance():
    found = widest(np.array([[1.0], [2.0]]), [-1, -1])
    assert (found.w[0, 0], found.b[0], found.margin) == (0.0, -1.0, np.inf)
    assert widest(np.array([[1.0], [2.0]]), [1, 1], fit_intercept=False).margin == pytest.approx(1.0)


def test_nothing_is_claimed_when_time_is_up():
    X, y = two_clouds(np.random.default_rng(6), 50, 2, 3.0)
    found = widest_margin(problem("hinge"), blocks(X, y), Budget(time_limit=0.0))
    assert found.kind == "unknown"


def test_the_check_refuses_what_the_data_do_not_bear_out():
    X, y = two_clouds(np.random.default_rng(8), 50, 2, 4.0)
    stated, data = problem("hinge"), blocks(X, y)
    found = widest_margin(stated, data, Budget())
    assert check_widest_margin(found, stated, data)
    assert not check_widest_margin(replace(found, b=found.b + 0.1), stated, data)
    assert not check_widest_margin(replace(found, bound=found.bound * 0.9), stated, data)
    assert not check_widest_margin(replace(found, bound=found.bound * 1.1), stated, data)
    assert not check_widest_margin(replace(found, kind="not separable"), stated, data)
