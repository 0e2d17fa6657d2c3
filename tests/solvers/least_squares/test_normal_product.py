"""Products of the normal equations of sparse tables, and who solves these."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from sixfold import Ridge
from sixfold._native import core
from sixfold.budget import Budget
from sixfold.solvers.least_squares import conjugate_gradient
from sixfold.solvers.least_squares.conjugate_gradient import ConjugateGradient, _CentredRows
from solvers.problems import blocks, problem, solve


def sparse_rows(n, d, density=0.2, seed=0):
    X = sp.random_array((n, d), density=density, format="csr", random_state=np.random.default_rng(seed))
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, np.random.default_rng(seed + 1).standard_normal(n)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("rows_per_block", [None, 7])
def test_equal_those_of_numpy(dtype, index, weighted, intercept, rows_per_block):
    X, y = sparse_rows(30, 11)
    X = X.astype(dtype)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    weight = np.random.default_rng(2).integers(0, 3, 30).astype(float) if weighted else None
    rows = _CentredRows(
        problem("squared", "l2", 1.0, fit_intercept=intercept), blocks(X, y, weight, rows_per_block)
    )
    w = np.random.default_rng(3).standard_normal(11)
    product, curvature = rows.normal(w, Budget())
    q = (np.ones(30) if weight is None else weight) / (30 if weight is None else weight.sum())
    B = X.toarray().astype(np.float64)
    B -= intercept * (q @ B)
    np.testing.assert_allclose(product, B.T @ (q * (B @ w)), rtol=1e-12, atol=1e-15)
    assert curvature == pytest.approx(q @ (B @ w) ** 2, rel=1e-12)


def test_arguments_are_checked_and_a_stop_is_noticed():
    X, _ = sparse_rows(5, 3)
    flag = np.zeros(1, dtype=np.int32)
    parts = (X.data, X.indices, X.indptr, None, 0.0)
    with pytest.raises(ValueError, match="entry a column"):
        core.normal_product(*parts, np.ones(3), np.empty(4), np.inf, flag)
    with pytest.raises(ValueError, match="beyond the entries"):
        core.normal_product(
            X.data[:1], X.indices[:1], X.indptr, None, 0.0, np.ones(3), np.empty(3), np.inf, flag
        )
    assert core.normal_product(*parts, np.ones(3), np.empty(3), 0.0, flag)[0] is False


@pytest.mark.parametrize("refreshed", [1, 7, 1000])
def test_iterations_agree_with_the_direct_solution(monkeypatch, refreshed):
    """However often slopes are taken from the residuals anew."""
    monkeypatch.setattr(conjugate_gradient, "REFRESHED", refreshed)
    X, y = sparse_rows(300, 80)
    X = X @ sp.diags_array(np.logspace(0, 3, 80))
    stated = problem("squared", "l2", 1e-4)
    data = blocks(sp.csr_array(X), y)
    found, budget = solve(ConjugateGradient(), stated, data, tol=1e-14)
    assert len(budget.history) > 30
    assert found.certificate.converged
    exact = Ridge(1e-4 * 300, solver="direct").fit(X.toarray(), y)
    np.testing.assert_allclose(X @ found.w[:, 0] + found.b[0], exact.predict(X.toarray()), atol=1e-6)


def test_a_large_sparse_ridge_iterates_and_a_hard_one_is_factored():
    X, y = sparse_rows(1100, 1100, density=0.005)
    easy = Ridge().fit(X, y)
    assert easy.solver_ == "conjugate gradients"
    assert easy.certificate_.verify(X, y).converged
    hard = Ridge(1e-9).fit(X, y)
    assert hard.solver_.startswith("conjugate gradients, then ")
    assert hard.certificate_.verify(X, y).converged
    assert Ridge(solver="cholesky").fit(X, y).solver_ == "Cholesky in the row space"
    assert Ridge().fit(X[:200, :50], y[:200]).solver_ == "Cholesky"
