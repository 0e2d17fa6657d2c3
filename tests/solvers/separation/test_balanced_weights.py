"""Weights of all rows that balance each other prove overlap; a plane that separates may come out as well."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.solvers.separation.balanced_weights import DIRECTION, WEIGHTS, settle
from sixfold.solvers.separation.separation import check_separation, separate
from solvers.problems import blocks, problem


def balance(Z, y, most_factors=20):
    c, v = np.full(y.size, 1.0 / y.size), np.zeros(Z.shape[1])
    answer = core.balance_weights(Z, y, most_factors, c, v, np.inf, np.zeros(1, dtype=np.int32))
    return answer, c, v


def test_one_factor_gives_the_weights_of_least_squares():
    # Where no residual of labels 1 is negative, these are the weights: c = 1 - A (A'A)^-1 A'1.
    rng = np.random.default_rng(0)
    Z = np.column_stack([rng.standard_normal((2003, 37)), np.ones(2003)])
    y = np.sign(rng.standard_normal(2003))
    A = y[:, None] * Z
    expected = 1.0 - A @ np.linalg.lstsq(A, np.ones(2003), rcond=None)[0]
    assert expected.min() > 0.0
    answer, c, _ = balance(Z, y, 1)
    assert answer == WEIGHTS
    np.testing.assert_allclose(c, expected / expected.sum(), rtol=1e-8)
    np.testing.assert_allclose(c @ A, 0.0, atol=1e-15)


@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(2, 60), st.floats(0.0, 3.0))
def test_what_is_found_is_what_the_search_finds(seed, d, n, slope):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) + rng.uniform(-5, 5, d)
    y = np.where(slope * (X[:, :1] - X[:, 0].mean()) + rng.logistic(size=(n, 1)) > 0, 1.0, -1.0)
    stated, data = problem("perceptron"), blocks(X, y)
    for target, found in settle(stated, data, Budget(), [0]).items():
        assert found.kind == separate(stated, data, Budget(), target).kind
        assert check_separation(found, stated, data, target)


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_columns_of_any_size_constant_and_equal_ones_are_no_matter(scale):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((80, 3))
    X = np.column_stack([scale * x, x[:, 0], np.full(80, 0.1), x[:, 1] + 1e6])
    y = np.sign(rng.standard_normal((80, 1)))
    stated, data = problem("perceptron"), blocks(X, y)
    found = settle(stated, data, Budget(), [0])[0]
    assert found.kind == "overlap"
    assert check_separation(found, stated, data)


def test_rows_of_weight_zero_are_in_no_proof():
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((60, 2)), np.sign(rng.standard_normal((60, 1)))
    weight = np.arange(60.0) % 3
    found = settle(problem("perceptron"), blocks(X, y, weight), Budget(), [0])[0]
    assert (weight[found.proof.rows] > 0).all()


def test_one_side_alone_and_no_time_leave_it_open():
    X = np.random.default_rng(3).standard_normal((30, 2))
    assert settle(problem("perceptron"), blocks(X, np.ones((30, 1))), Budget(), [0]) == {}
    y = np.sign(X[:, :1] * X[:, 1:])
    assert settle(problem("perceptron"), blocks(X, y), Budget(), [0])[0].kind == "overlap"
    assert settle(problem("perceptron"), blocks(X, y), Budget(time_limit=1e-9), [0]) == {}


def test_a_direction_has_every_row_on_its_right_side():
    rng = np.random.default_rng(4)
    Z = np.column_stack([rng.standard_normal((50, 3)), np.ones(50)])
    y = np.sign(Z[:, 0] + 0.3)
    answer, _, v = balance(Z, y)
    assert answer == DIRECTION
    assert (y * (Z @ v) > 0.0).all()
