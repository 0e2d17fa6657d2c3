"""Errors of rows that are left out are those of fits to all other rows."""

import numpy as np
import pytest
import scipy.sparse as sp

from sixfold.solvers.least_squares import leave_one_out as module
from sixfold.solvers.least_squares.leave_one_out import leave_one_out

ALPHAS = np.array([1e-3, 0.5, 20.0])


def error_of_fit_to_others(X, Y, weight, alpha, fit_intercept, i):
    """Return the error at row i and the share 1 - h of it that the fit to all rows leaves."""
    n, d = X.shape

    def score(counts):
        q = weight * counts
        Z = np.column_stack([X, np.ones(n)]) if fit_intercept else X
        penalty = alpha * np.diag([1.0] * d + [0.0] * int(fit_intercept))
        beta = np.linalg.solve(Z.T @ (q[:, None] * Z) + penalty, Z.T @ (q[:, None] * Y))
        return Z[i] @ beta

    without = Y[i] - score(np.arange(n) != i)
    return without, (Y[i] - score(np.ones(n))) / without


@pytest.mark.parametrize("shape", [(12, 3), (7, 15)])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weights", ["none", "some", "zeros"])
@pytest.mark.parametrize("how", [None, "svd", "eigen"])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_closed_form(shape, fit_intercept, weights, how, sparse):
    random = np.random.default_rng(2)
    X, Y = random.normal(size=shape) + 1.0, random.normal(size=(shape[0], 2)) + 5.0
    weight = None if weights == "none" else random.uniform(0.5, 2.0, size=shape[0])
    if weights == "zeros":
        weight[[1, 4]] = 0.0
    counts = np.ones(shape[0]) if weight is None else weight
    l2 = ALPHAS / counts.sum()
    rows = leave_one_out(sp.csr_array(X) if sparse else X, Y, weight, l2[0], fit_intercept, how)
    seen = 0
    for some, errors, kept in rows.errors(l2):
        for i in range(*some.indices(shape[0])):
            for place, alpha in enumerate(ALPHAS):
                error, share = error_of_fit_to_others(X, Y, counts, alpha, fit_intercept, i)
                np.testing.assert_allclose(errors[i - some.start, :, place], error, rtol=1e-8)
                np.testing.assert_allclose(kept[i - some.start, place], share, rtol=1e-8)
            seen += 1
    assert seen == shape[0]


def test_rows_come_some_at_a_time(monkeypatch):
    monkeypatch.setattr(module, "BLOCK_ENTRIES", 100)
    random = np.random.default_rng(2)
    X, Y = random.normal(size=(100, 4)), random.normal(size=(100, 1))
    parts = [some for some, _, _ in leave_one_out(X, Y, None, 1e-3, True).errors(ALPHAS)]
    assert [(part.start, part.stop) for part in parts] == [(0, 32), (32, 64), (64, 96), (96, 100)]


@pytest.mark.parametrize(
    ("how", "collinear", "expected"),
    [(None, False, 0), (None, True, 1), ("svd", False, 1), ("eigen", True, 0)],
)
def test_singular_values_are_taken_where_eigenvalues_lose_digits(monkeypatch, how, collinear, expected):
    calls, before = [], module.svd
    monkeypatch.setattr(module, "svd", lambda *given, **options: calls.append(1) or before(*given, **options))
    random = np.random.default_rng(2)
    X, Y = random.normal(size=(30, 4)), random.normal(size=(30, 1))
    if collinear:
        X[:, 1] = X[:, 0] + 1e-9 * X[:, 2]
    leave_one_out(X, Y, None, 1e-9, True, how)
    assert len(calls) == expected
