"""One native call from the rows to the figures of a certificate: those of NumPy, and never too little."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixfold import ElasticNet, Lasso, LinearRegression, Ridge
from sixfold.budget import Budget
from sixfold.solvers.l1.coordinate import CoordinateDescent
from sixfold.solvers.least_squares import direct
from sixfold.solvers.least_squares.direct import solve_moments
from sixfold.solvers.least_squares.moment_fit import DONE, STOPPED, certify, fit_with_kinks, moment_fit
from sixfold.solvers.least_squares.moments import block_moments
from sixfold.solvers.least_squares.slopes import SecondMoments
from solvers.problems import blocks, problem

PENALTIES = [(None, 0.0, 0.5), ("l2", 0.1, 0.5), ("l1", 0.1, 0.5), ("elasticnet", 0.1, 0.3)]


def rows(n, d, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ (np.eye(d) + rng.standard_normal((d, d)) / d) + rng.uniform(-2, 2, d)
    return X.astype(dtype), (X @ rng.standard_normal(d) + rng.standard_normal(n)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("name", "alpha", "l1_ratio"), PENALTIES)
def test_figures_are_those_of_numpy(name, alpha, l1_ratio, intercept, dtype):
    X, y = rows(300, 7, dtype=dtype)
    weight = np.random.default_rng(1).integers(0, 3, 300).astype(float)
    data = blocks(X, np.column_stack([y, y[::-1]]), weight)
    stated = problem("squared", name, alpha, l1_ratio=l1_ratio, fit_intercept=intercept)
    fit = moment_fit(stated, data, Budget(1e-12))
    assert fit.end == DONE
    known = block_moments(data.whole(), Budget().flag)
    assert fit.moments.rounding == known.rounding
    assert fit.moments.rows == known.rows == np.sum(weight > 0)
    np.testing.assert_allclose(fit.moments.mean, known.mean, rtol=1e-13)
    np.testing.assert_allclose(fit.moments.scatter, known.scatter, rtol=1e-11, atol=1e-11)
    second = SecondMoments.of(stated, known)
    at = second.slope_at(fit.w, fit.b)
    np.testing.assert_allclose(fit.figures[:, 0], second.y2, rtol=1e-13)
    np.testing.assert_allclose(fit.figures[:, 2], at.square, rtol=1e-12)
    np.testing.assert_allclose(fit.figures[:, 3], at.square_error, rtol=1e-3, atol=1e-30)
    penalty = [stated.penalty_value(w) for w in fit.w.T]
    np.testing.assert_allclose(fit.figures[:, 4], penalty, rtol=1e-14)
    np.testing.assert_array_equal(fit.w, fit.w.astype(dtype))
    if stated.l1 == 0:
        found = solve_moments(stated, known, Budget(), None)
        np.testing.assert_allclose(fit.w, found.w, rtol=1e-10 if dtype == np.float64 else 1e-6)
        np.testing.assert_allclose(fit.R, found.factor.R, rtol=1e-10, atol=1e-12)
        assert fit.inverse_norm == pytest.approx(found.factor.inverse_norm, rel=1e-10)
        assert fit.lost == pytest.approx(found.factor.lost, rel=1e-10)


@given(
    n=st.integers(1, 14),
    d=st.integers(1, 10),
    seed=st.integers(0, 10_000),
    fraction=st.sampled_from([1e-6, 0.01, 0.1, 0.5, 1.1]),
    l1_ratio=st.sampled_from([1.0, 0.7, 0.0]),
    positive=st.booleans(),
    intercept=st.booleans(),
    grid=st.booleans(),
    scale=st.sampled_from([1e-120, 1e-6, 1.0, 1e6, 1e120]),
    dtype=st.sampled_from([np.float64, np.float32]),
    tol=st.sampled_from([1e-2, 1e-6, 1e-10]),
)
@settings(max_examples=300, deadline=None)
def test_no_gap_is_understated(n, d, seed, fraction, l1_ratio, positive, intercept, grid, scale, dtype, tol):
    rng = np.random.default_rng(seed)
    # Integers make ties, duplicate and constant columns, and constant targets.
    scale = 1.0 if dtype == np.float32 else scale
    X = (rng.integers(-2, 3, (n, d)) if grid else rng.standard_normal((n, d)) + 5.0) * scale
    X, y = X.astype(dtype), rng.integers(-2, 3, n).astype(dtype)
    weight = rng.integers(0, 3, n).astype(float)
    weight[0] = 1.0
    alpha = (
        fraction * np.abs(X.T @ (y - y.mean())).max() / n / (1.0 if l1_ratio else 1 / scale) + 1e-9 * scale
    )
    stated = problem("squared", "elasticnet", float(alpha), l1_ratio=l1_ratio, positive=positive,
                     fit_intercept=intercept)  # fmt: skip
    data = blocks(X, y, weight)
    found = fit_with_kinks(stated, data, Budget(tol)) if stated.l1 > 0 or positive else None
    if found is None:
        return
    certificate = found.certificate
    assert certificate.converged
    assert np.array_equal(found.w, found.w.astype(dtype))
    best = CoordinateDescent().solve(stated, data, Budget(1e-13)).certificate
    assert certificate.objective - certificate.gap <= best.objective
    exact = stated.objective(found.w, found.b, data)
    assert abs(certificate.objective - exact) <= certificate.rounding + 1e-15 * exact


@pytest.mark.parametrize("shape", [(100, 4), (30, 30), (20, 60), (1000, 10), (400, 100)])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
@pytest.mark.parametrize("positive", [False, True])
def test_working_sets_find_the_same(shape, l1_ratio, positive):
    X, y = rows(*shape)
    stated = problem("squared", "elasticnet", 0.05, l1_ratio=l1_ratio, positive=positive)
    at_once = fit_with_kinks(stated, blocks(X, y), Budget(1e-7))
    assert at_once is not None
    by_sets = CoordinateDescent().solve(stated, blocks(X, y), Budget(1e-13))
    np.testing.assert_allclose(at_once.w, by_sets.w, atol=1e-5 * np.abs(by_sets.w).max())
    np.testing.assert_array_equal(at_once.w == 0, by_sets.w == 0)


def test_constant_and_duplicate_columns():
    X, y = rows(60, 3)
    X = np.column_stack([X, X[:, 1], np.full(60, 0.1), np.zeros(60)])
    model = Lasso(0.01).fit(X, y)
    assert model.coef_[4] == model.coef_[5] == 0.0
    assert model.certificate_.verify(X, y).converged
    np.testing.assert_allclose(model.predict(X), Lasso(0.01).fit(X[:, :3], y).predict(X[:, :3]), rtol=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        Lasso(1e-3),
        ElasticNet(1e-3),
        Ridge(),
        Ridge(1e-8),
        LinearRegression(),
        Lasso(1e-9),
        Lasso(1e-3, positive=True),
    ],
)
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e7])
def test_the_checker_confirms_it(model, offset):
    X, y = rows(500, 8)
    X = X + offset
    model.fit(X, y)
    assert model.certificate_.verify(X, y).converged


def test_moments_that_say_too_little_are_left_to_the_rows():
    X, y = rows(2000, 5)
    X = X @ np.diag([1.0, 1.0, 1.0, 1.0, 0.0]) + X[:, [0]] * [0, 0, 0, 0, 1.0] + 1e-9 * X
    stated = problem("squared", None, 0.0)
    fit = moment_fit(stated, blocks(X, y), Budget(1e-6))
    assert fit.end != DONE or fit.inverse_norm > direct.EXACT_NORM
    found = direct.LeastSquares().solve(stated, blocks(X, y), Budget(1e-6))
    assert found.solver == "QR with refinement"
    assert found.certificate.converged
    tight = problem("squared", "l1", 1e-3)
    fit = moment_fit(tight, blocks(*rows(2000, 5)), Budget(1e-15))
    assert certify(tight, fit, "duality gap", Budget(1e-15)) is None


def test_what_is_not_finite_or_stopped_is_said():
    X, y = rows(50, 3)
    stated = problem("squared", "l1", 0.1)
    X[3, 1] = np.nan
    with pytest.raises(FloatingPointError, match="not finite"):
        moment_fit(stated, blocks(X, y), Budget())
    assert fit_with_kinks(stated, blocks(*rows(50, 3)), Budget(time_limit=0.0)) is None
    late = Budget(time_limit=0.0)
    assert moment_fit(stated, blocks(*rows(50, 3)), late).end == STOPPED
