"""Dual coordinate descent on features, beside the same steps in plain Python and the optimum."""

import numpy as np
import pytest
from scipy.optimize import minimize

from sixfold._native import core
from tests.oracles.landmarks import hinge_objective

FLAG = np.zeros(1, dtype=np.int32)


def problem(rows=40, columns=5, dtype=np.float64, seed=0):
    random = np.random.default_rng(seed)
    features = random.normal(size=(rows, columns)).astype(dtype)
    y = np.where(features @ random.normal(size=columns) + 0.5 * random.normal(size=rows) > 0.3, 1.0, -1.0)
    return features, y, np.full(rows, 0.7)


def descend(features, y, upper, enough=0.0, most=2000, rho=30.0, seconds=np.inf, index=None):
    index = np.arange(y.size) if index is None else index
    a, w = np.zeros(y.size), np.zeros(features.shape[1], features.dtype)
    square = np.square(features[index].astype(np.float64)).sum(axis=1)
    centre, balance, _, passes, gap = core.descend_features(
        features, index, y, upper, square, a, w, 0.0, 0.0, rho, 1, enough, most, seconds, FLAG
    )
    return a, w, centre + balance / rho, balance, passes, gap


def test_it_ends_at_the_optimum_with_balanced_classes():
    features, y, upper = problem()
    a, w, b, balance, _, gap = descend(features, y, upper)
    best = minimize(
        lambda v: hinge_objective(v[:-1], v[-1], features, y, upper),
        np.append(w, b),
        method="Nelder-Mead",
        options={"maxiter": 20000, "fatol": 1e-12, "xatol": 1e-10},
    )
    assert hinge_objective(w, b, features, y, upper) <= best.fun + 1e-6
    assert abs(balance) < 1e-8
    assert abs(gap) < 1e-6
    np.testing.assert_allclose(w, features.T @ (a * y), atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_multipliers_stay_within_their_bounds_and_w_follows_them(dtype):
    features, y, upper = problem(300, 70, dtype, 3)
    a, w, _, _, passes, _ = descend(features, y, upper, most=7)
    assert passes == 7
    assert np.all((a >= 0.0) & (a <= upper))
    np.testing.assert_allclose(w, features.astype(np.float64).T @ (a * y), atol=1e-3)


def test_a_pass_is_what_plain_python_does():
    features, y, upper = problem(1, 3)
    a, w, b, balance, passes, gap = descend(features, y, upper, most=1)
    curvature = features[0] @ features[0] + 1.0 / 30.0
    expected = min(1.25 / curvature, 0.7)  # a quarter beyond the best value
    assert passes == 1
    assert gap == pytest.approx(0.7)
    assert a[0] == pytest.approx(expected)
    assert balance == pytest.approx(y[0] * expected)
    # The centre has moved by what the intercept had.
    assert b == pytest.approx(2.0 * y[0] * expected / 30.0)
    np.testing.assert_allclose(w, y[0] * expected * features[0])


def test_rows_are_those_of_the_index():
    features, y, upper = problem()
    some = np.array([3, 30, 7, 21, 12, 5], dtype=np.int64)
    one = descend(features, y[some], upper[some], index=some)
    other = descend(np.ascontiguousarray(features[some]), y[some], upper[some])
    assert np.array_equal(one[0], other[0])
    assert np.array_equal(one[1], other[1])


def test_the_clock_ends_it_before_anything_moves():
    features, y, upper = problem()
    a, w, _, _, passes, gap = descend(features, y, upper, seconds=0.0)
    assert passes == 0
    assert not a.any()
    assert not w.any()
    assert gap == np.inf


def test_indices_and_sizes_that_do_not_fit_are_refused():
    features, y, upper = problem()
    with pytest.raises(ValueError, match="numbers of rows"):
        core.descend_features(
            features,
            np.array([40]),
            y[:1],
            y[:1],
            y[:1],
            y[:1].copy(),
            np.zeros(5),
            0,
            0,
            1,
            1,
            0,
            1,
            1,
            FLAG,
        )
    with pytest.raises(ValueError, match="one entry a row"):
        core.descend_features(
            features, np.arange(40), y, upper[:3], upper, upper.copy(), np.zeros(5), 0, 0, 1, 1, 0, 1, 1, FLAG
        )
    with pytest.raises(ValueError, match="one entry a column"):
        core.descend_features(
            features, np.arange(40), y, upper, upper, upper.copy(), np.zeros(4), 0, 0, 1, 1, 0, 1, 1, FLAG
        )
