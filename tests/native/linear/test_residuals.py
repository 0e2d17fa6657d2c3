"""The double-double residuals against exact rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixfold._native import core

FLAG = np.zeros(1, dtype=np.int32)


def exact_slope(X, y, weight, w, b, shift=None):
    """Return sum weight r (x - shift, 1) and sum weight r^2 in exact arithmetic, rounded once."""
    shift = np.zeros(X.shape[1]) if shift is None else shift
    columns = X.shape[1]
    slope, square = [Fraction(0)] * (columns + 1), Fraction(0)
    for i in range(X.shape[0]):
        row = [Fraction(float(value)) for value in X[i]]
        share = Fraction(1 if weight is None else float(weight[i]))
        residual = (
            Fraction(float(y[i])) - Fraction(b) - sum(Fraction(float(w[j])) * row[j] for j in range(columns))
        )
        for j in range(columns):
            slope[j] += share * residual * (row[j] - Fraction(float(shift[j])))
        slope[columns] += share * residual
        square += share * residual**2
    return np.array([float(value) for value in slope]), float(square)


def native_slope(X, y, weight, w, b, shift=None, b_rest=0.0):
    slope = np.empty(X.shape[1] + 1)
    done, square = core.residual_slope(X, y[:, None], 0, weight, w, b, b_rest, shift, slope, np.inf, FLAG)
    assert done
    return slope, square


@settings(max_examples=50, deadline=None)
@given(
    rows=st.integers(1, 30),
    columns=st.integers(1, 6),
    dtype=st.sampled_from([np.float32, np.float64]),
    order=st.sampled_from("CF"),
    weighted=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_slope_is_the_exact_one_rounded(rows, columns, dtype, order, weighted, seed):
    random = np.random.default_rng(seed)
    X = np.asarray(
        random.normal(size=(rows, columns)) * 10.0 ** random.integers(-3, 4, columns),
        dtype,
        order=order,
    )
    w, b = random.normal(size=columns), float(random.normal())
    # Targets that nearly cancel: residuals of 1e-13 made of terms of 1e3.
    y = (X.astype(float) @ w + b + 1e-13 * random.normal(size=rows)).astype(dtype)
    weight = random.integers(0, 3, rows).astype(float) if weighted else None
    expected, expected_square = exact_slope(X, y, weight, w, b)
    slope, square = native_slope(X, y, weight, w, b)
    np.testing.assert_allclose(slope, expected, rtol=1e-9, atol=1e-24)
    assert square == pytest.approx(expected_square, rel=1e-9, abs=1e-40)


@pytest.mark.parametrize("columns", [1, 5, 16, 33])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_shift_is_exact_also_where_differences_are_not(columns, order):
    random = np.random.default_rng(columns)
    far = 1e9 * (np.arange(columns) % 3 - 1.0)
    X = np.asarray(
        far + random.normal(size=(50, columns)) * 10.0 ** random.uniform(-3, 3, columns), order=order
    )
    X[::7] = random.normal(size=(8, columns))  # rows that are nowhere near the shift
    w, shift = random.normal(size=columns), far + random.normal(size=columns)
    b = Fraction(random.normal()) + Fraction(1e-17)
    y = random.normal(size=50)
    expected, expected_square = exact_slope(X, y, None, w, b, shift)
    slope, square = native_slope(X, y, None, w, float(b), shift, float(b - Fraction(float(b))))
    np.testing.assert_allclose(slope, expected, rtol=1e-13)
    assert square == pytest.approx(expected_square, rel=1e-14)


def test_plain_double_arithmetic_would_lose_what_this_keeps():
    X = np.array([[1e8, 1.0], [1.0, -1e8]])
    w, y = np.array([1.0, 1e-8]), np.array([1e8, 0.0])
    expected, _ = exact_slope(X, y, None, w, 0.0)
    slope, _ = native_slope(X, y, None, w, 0.0)
    np.testing.assert_allclose(slope, expected, rtol=1e-12)
    plain = X.T @ (y - X @ w)
    assert not np.allclose(plain, expected[:2], rtol=1e-3)
