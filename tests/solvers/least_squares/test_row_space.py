"""Wide tables are solved in the space of their rows, and the certificate says which solution was chosen."""

import numpy as np
import pytest

from oracles.linear import least_squares
from sixfold import LinearRegression, Ridge
from sixfold.budget import Budget
from sixfold.errors import InputError
from sixfold.solvers.least_squares.conjugate_gradient import ConjugateGradient
from sixfold.solvers.least_squares.direct import LeastSquares
from solvers.problems import blocks, problem, solve


def test_more_columns_than_rows_says_which_solution_was_chosen():
    random = np.random.default_rng(8)
    X, y = random.normal(size=(5, 30)), random.normal(size=5)
    solution, _ = solve(LeastSquares(), problem(), blocks(X, y))
    assert "30 columns but only 5 rows" in str(solution.certificate)
    assert "the shortest were chosen" in str(solution.certificate)
    assert solution.certificate.objective < 1e-25


def test_repeated_rows_with_different_targets_in_a_wide_table():
    random = np.random.default_rng(9)
    X = np.repeat(random.normal(size=(3, 20)), 2, axis=0)
    y = random.normal(size=6)
    solution, _ = solve(LeastSquares(), problem(), blocks(X, y))
    w, _ = least_squares(X, y[:, None])
    assert solution.solver == "singular values"
    np.testing.assert_allclose(solution.w, w, atol=1e-12)
    assert solution.certificate.gap == solution.certificate.rounding < 1e-13


def mirrored(X):
    return X[::-1, ::-1]


@pytest.mark.parametrize(
    ("change", "fit_intercept"), [(np.float32, True), (np.asfortranarray, True), (mirrored, False)]
)
def test_conjugate_gradients_of_a_wide_table_are_as_near_as_they_say(change, fit_intercept):
    random = np.random.default_rng(10)
    X = change(random.normal(size=(500, 6000)))
    y = X[:, 0] + random.normal(size=500)
    exact = Ridge(solver="direct", fit_intercept=fit_intercept).fit(X, y).predict(X)
    size = np.std(y) if fit_intercept else np.sqrt(np.mean(y**2))
    for tol in (1e-3, 1e-4, 1e-6):
        model = Ridge(tol=tol, fit_intercept=fit_intercept).fit(X, y)
        assert model.solver_ == "conjugate gradients in the row space"
        assert model.certificate_.converged
        away = model.predict(X).astype(np.float64) - exact
        assert np.sqrt(np.mean(away**2)) <= 1.01 * (tol + 1e-6) * size
    model.certificate_.verify(X, y)


def test_conjugate_gradients_keep_the_digits_of_columns_far_from_zero():
    random = np.random.default_rng(10)
    X = random.normal(size=(500, 6000)) + 1e6
    y = X[:, 0] + random.normal(size=500)
    model = Ridge().fit(X, y)
    assert model.solver_ == "conjugate gradients in the row space"
    assert model.certificate_.verify(X, y).converged


def test_a_factor_takes_over_where_conjugate_gradients_crawl():
    random = np.random.default_rng(11)
    X = random.normal(size=(280, 2000)) * np.logspace(0, 8, 2000)
    y = random.normal(size=280)
    model = Ridge().fit(X, y)
    assert model.solver_ == "conjugate gradients in the row space, then Cholesky in the row space"
    assert model.certificate_.optimal_to_rounding
    direct = Ridge(solver="direct").fit(X, y)
    np.testing.assert_array_equal(model.coef_, direct.coef_)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_what_conjugate_gradients_hand_on_is_the_constant_model_and_a_true_bound(dtype, fit_intercept):
    random = np.random.default_rng(14)
    X = (random.normal(size=(280, 2000)) * np.logspace(0, 8, 2000)).astype(dtype)
    y = (random.normal(size=280) + 700.0).astype(dtype)
    budget = Budget(1e-8)
    budget.another_follows = True
    ridge = problem(penalty="l2", alpha=0.1, fit_intercept=fit_intercept)
    found = ConjugateGradient().solve(ridge, blocks(X, y), budget)
    np.testing.assert_allclose(found.b, y.astype(np.float64).mean() if fit_intercept else 0.0, rtol=1e-7)
    assert not found.w.any()
    objective = 0.5 * np.square(y.astype(np.longdouble) - found.b).mean()
    assert objective <= found.certificate.objective <= (1 + 1e-11) * objective
    assert found.certificate.gap == found.certificate.objective
    assert not found.certificate.converged


def test_a_factor_of_rows_alike_in_size_keeps_twelve_digits():
    random = np.random.default_rng(15)
    X = random.normal(size=(200, 900)) + random.normal(size=(200, 1))
    y = X[:, 0] + random.normal(size=200)
    model = LinearRegression(penalty="l2", alpha=0.01, solver="direct").fit(X, y)
    assert model.solver_ == "Cholesky in the row space"
    centred = X - X.mean(axis=0)
    a = np.linalg.solve(centred @ centred.T / 200 + 0.01 * np.eye(200), y - y.mean())
    w = centred.T @ a / 200
    np.testing.assert_allclose(model.coef_, w, rtol=0, atol=1e-12 * np.linalg.norm(w))
    assert model.certificate_.optimal_to_rounding


@pytest.mark.parametrize("scales", [0, 3])
def test_few_columns_with_a_penalty_are_factored_whatever_the_number_of_rows(scales):
    random = np.random.default_rng(13)
    X, y = random.normal(size=(40, 60)) * np.logspace(0, scales, 60), random.normal(size=40)
    model = LinearRegression(penalty="l2", alpha=0.1).fit(X, y)
    assert model.solver_ in ("Cholesky", "Cholesky with refinement")
    assert model.rank_ == 39
    centred, q = X - X.mean(axis=0), 1.0 / 40
    a = np.linalg.solve(q * centred @ centred.T + 0.1 * np.eye(40), y - y.mean())
    np.testing.assert_allclose(X @ model.coef_ + model.intercept_, y - 0.1 * a, atol=1e-8)
    assert model.certificate_.verify(X, y).converged


def test_a_wide_table_is_checked_for_values_that_are_not_finite():
    X = np.random.default_rng(12).normal(size=(280, 2000))
    X[3, 7] = np.nan
    with pytest.raises(InputError, match="Input X contains NaN: in row 3 of column 'x7'"):
        Ridge().fit(X, X[:, 0])
