"""The direct solver against singular values in plain NumPy, on every shape and by each of its methods."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.linear import least_squares
from sixfold.solvers.least_squares.direct import LeastSquares
from sixfold.solvers.linalg import EPS
from solvers.problems import blocks, problem, solve


def random_table(seed, rows, columns, targets=1):
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, columns)) * 10.0 ** random.integers(-4, 5, columns) + random.normal(
        size=columns
    )
    return X, random.normal(size=(rows, targets)), random.integers(0, 4, rows) + (np.arange(rows) < 2)


@settings(max_examples=150, deadline=None)
@given(
    rows=st.integers(2, 40),
    columns=st.integers(1, 40),
    targets=st.integers(1, 3),
    l2=st.sampled_from([0.0, 1e-3, 10.0]),
    weighted=st.booleans(),
    fit_intercept=st.booleans(),
    cut=st.integers(1, 40),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_shape_gives_the_shortest_best_coefficients(
    rows, columns, targets, l2, weighted, fit_intercept, cut, seed
):
    random = np.random.default_rng(seed)
    X, Y = random.normal(size=(rows, columns)) + 1.0, random.normal(size=(rows, targets))
    weight = random.integers(1, 4, rows).astype(float) if weighted else None
    stated = problem(penalty="l2" if l2 else None, alpha=l2, fit_intercept=fit_intercept)
    data = blocks(X, Y, weight, cut)
    solution, _ = solve(LeastSquares(), stated, data)
    w, b = least_squares(X, Y, weight, l2, fit_intercept)
    condition = solution.certificate.details["condition"]
    np.testing.assert_allclose(solution.w, w, rtol=1e-9, atol=1e-12 * condition * (1 + np.abs(w).max()))
    np.testing.assert_allclose(solution.b, b, rtol=1e-9, atol=1e-11 * condition * (1 + np.abs(w).max()))
    assert solution.certificate.objective == pytest.approx(stated.objective(w, b, data), rel=1e-9, abs=1e-20)


@pytest.mark.parametrize("layout", ["C", "F", "csr"])
@pytest.mark.parametrize("shape", [(200, 7), (8, 60)])
def test_layouts_agree(layout, shape):
    X, Y, weight = random_table(0, *shape, targets=2)
    X[np.abs(X) < np.quantile(np.abs(X), 0.5)] = 0.0
    table = sp.csr_array(X) if layout == "csr" else np.asarray(X, order=layout)
    solution, _ = solve(LeastSquares(), problem(), blocks(table, Y, weight.astype(float)))
    w, _ = least_squares(X, Y, weight)
    np.testing.assert_allclose(solution.w, w, rtol=1e-6, atol=1e-9 * np.abs(w).max())


def orthonormal(random, rows, columns):
    return np.linalg.qr(random.normal(size=(rows, columns)))[0]


@pytest.mark.parametrize(
    ("condition", "method", "digits"),
    [(1e1, "Cholesky", 13), (1e2, "Cholesky with refinement", 13), (1e8, "QR with refinement", 13)],
)
def test_every_method_keeps_the_digits(condition, method, digits):
    """Data that have an exact solution in doubles: integers times powers of two."""
    random = np.random.default_rng(1)
    rows, columns = 4000, 20
    base = random.integers(-(2**20), 2**20, size=(rows, columns)).astype(float)
    # Columns 1, ... differ from column 0 by 1/condition only.
    shrink = 2.0 ** -np.floor(np.log2(condition))
    X = base[:, :1] + np.where(np.arange(columns) == 0, 0.0, shrink) * base if condition > 1e1 else base
    w = random.integers(-8, 9, columns).astype(float)
    y = X @ w
    solution, _ = solve(LeastSquares(), problem(), blocks(X, y))
    assert solution.solver.startswith(method)
    assert -np.log10(np.abs(solution.w[:, 0] - w).max() / np.abs(w).max() + 1e-17) > digits
    assert solution.certificate.converged


def test_near_collinearity_is_told_with_the_digits_that_can_be_trusted():
    random = np.random.default_rng(2)
    X = random.normal(size=(100, 3))
    X[:, 2] = X[:, 0] + 1e-7 * X[:, 2]
    solution, _ = solve(LeastSquares(), problem(), blocks(X, random.normal(size=100)))
    details = solution.certificate.details
    assert 1e6 < details["condition"] < 1e8
    assert 8 < details["digits"] < 10
    assert "digits of the coefficients can be trusted" in str(solution.certificate)


def test_dependent_columns_are_found_with_their_combination():
    random = np.random.default_rng(3)
    X = random.normal(size=(50, 3))
    table = np.column_stack([X, 2.0 * X[:, 0] - 3.0 * X[:, 2], np.full(50, 0.1)])
    y = random.normal(size=50)
    solution, _ = solve(LeastSquares(), problem(), blocks(table, y))
    factor = solution.factor
    assert factor.rank == 3
    rebuilt = table[:, factor.kept] @ factor.combination
    apart = table[:, factor.dependent] - rebuilt
    assert np.ptp(apart, axis=0).max() < 1e-12  # equal up to a constant
    w, _ = least_squares(table, y[:, None])
    np.testing.assert_allclose(solution.w, w, atol=1e-12)


@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_a_large_offset_does_not_cost_the_answer(offset):
    random = np.random.default_rng(4)
    X = np.round(random.normal(size=(300, 4)) * 1024) / 1024
    w = np.array([1.0, -2.0, 3.0, 0.5])
    y = X @ w
    solution, _ = solve(LeastSquares(), problem(), blocks(X + offset, y))
    np.testing.assert_allclose(solution.w[:, 0], w, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e140])
def test_tiny_and_huge_units_do_not_matter(scale):
    random = np.random.default_rng(5)
    X, y = random.normal(size=(60, 3)), random.normal(size=60)
    w, _ = least_squares(X, y[:, None])
    solution, _ = solve(LeastSquares(), problem(), blocks(X * scale, y))
    np.testing.assert_allclose(solution.w * scale, w, rtol=1e-9)


@pytest.mark.parametrize("shape", [(40, 6), (6, 40)])
def test_zero_weights_remove_rows(shape):
    random = np.random.default_rng(6)
    X, y = random.normal(size=shape), random.normal(size=shape[0])
    weight = np.where(np.arange(shape[0]) % 3 == 0, 0.0, 2.0)
    stated = problem(penalty="l2", alpha=0.1)
    some, _ = solve(LeastSquares(), stated, blocks(X[weight > 0], y[weight > 0]))
    all_rows, _ = solve(LeastSquares(), stated, blocks(X, y, weight))
    np.testing.assert_allclose(all_rows.w, some.w, rtol=1e-10)


def test_the_gap_is_the_distance_to_the_optimum():
    """Single precision rounds the coefficients; the certificate states what that costs, exactly."""
    random = np.random.default_rng(10)
    X, y = random.normal(size=(400, 5)).astype(np.float32), random.normal(size=400).astype(np.float32)
    solution, _ = solve(LeastSquares(), problem(), blocks(X, y))
    data = blocks(X.astype(float), y.astype(float))
    best, _ = solve(LeastSquares(), problem(), data)
    delta = np.append(solution.w - best.w, solution.b - best.b)
    z = np.column_stack([X.astype(float), np.ones(400)])
    distance = 0.5 * np.mean((z @ delta) ** 2)
    assert solution.certificate.gap == pytest.approx(distance, rel=1e-3)
    assert solution.certificate.gap > EPS**2


def test_the_number_of_blocks_does_not_matter_beyond_rounding():
    X, Y, weight = random_table(11, 500, 6)
    whole, _ = solve(LeastSquares(), problem(), blocks(X, Y, weight.astype(float)))
    parts, _ = solve(LeastSquares(), problem(), blocks(X, Y, weight.astype(float), 7))
    np.testing.assert_allclose(parts.w, whole.w, rtol=1e-11)


def test_overflow_and_nan_are_noticed():
    X, y = np.ones((10, 2)), np.arange(10.0)
    for bad in (np.nan, np.inf, 1e200):
        X[3, 1] = bad
        with pytest.raises(FloatingPointError), np.errstate(all="ignore"):
            solve(LeastSquares(), problem(), blocks(X, y))
