"""Rows seen through a kernel: however they are stored, matrices and scores are those of the kernel."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from sixfold.budget import Budget, BudgetExhausted
from sixfold.geometry.kernels import RBF, Called, Polynomial, Precomputed, Sigmoid, linear, quadratic
from sixfold.solvers.kernel import kernel_tiles
from sixfold.solvers.kernel.kernel_rows import KernelRows

KERNELS = [
    linear,
    quadratic,
    Polynomial(3, 0.2, 1.0),
    RBF(0.3),
    Sigmoid(0.05, -0.2),
    0.5 * linear + RBF(0.1) * quadratic,
    Called(lambda X, Z: np.asarray((X @ Z.T).todense() if sp.issparse(X) else X @ Z.T) + 1.0),
]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=[*map(str, KERNELS[:-1]), "called"])
every_storage = pytest.mark.parametrize("store", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
every_type = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@pytest.fixture(name="X")
def table():
    values = np.random.default_rng(0).normal(size=(53, 5)).astype(np.float32).astype(np.float64)
    values[values < -0.5] = 0.0
    return values


@pytest.fixture(params=["one tile", "many tiles"])
def tiles(request, monkeypatch):
    if request.param == "many tiles":
        monkeypatch.setattr(kernel_tiles, "TILE_BYTES", 8 * 53 * 4)


def close(found, exact, dtype):
    unit = 2.0**-24 if dtype == np.float32 else 2.0**-53
    np.testing.assert_allclose(found, exact, rtol=0, atol=60 * unit * np.abs(exact).max())


@every_kernel
@every_storage
@every_type
@pytest.mark.parametrize("stored", [np.float32, np.float64])
@pytest.mark.usefixtures("tiles")
def test_matrices_and_scores_are_those_of_the_kernel(X, kernel, store, dtype, stored):
    random = np.random.default_rng(1)
    rows, others = random.permutation(53)[:21], random.permutation(53)[:34]
    coefficients, exact = random.normal(size=(34, 3)), kernel(X)
    seen = KernelRows(store(X.astype(stored)), kernel)
    assert (seen.n_rows, seen.dtype) == (53, stored)
    gram = seen.gram(rows, dtype, Budget())
    assert gram.dtype == dtype
    np.testing.assert_array_equal(gram, gram.T)
    close(gram, exact[np.ix_(rows, rows)], dtype)
    close(seen.block(rows, others, dtype, Budget()), exact[np.ix_(rows, others)], dtype)
    close(
        seen.scores(rows, others, coefficients, dtype, Budget()),
        exact[np.ix_(rows, others)] @ coefficients,
        dtype,
    )
    close(seen.scores(None, others, coefficients, dtype, Budget()), exact[:, others] @ coefficients, dtype)
    close(seen.diagonal(), np.diagonal(exact), np.float64)
    Z = random.normal(size=(7, 5)).astype(np.float32).astype(np.float64)
    new = seen.against(store(Z)).scores(others, coefficients, dtype, Budget())
    close(new, kernel(Z, X[others]) @ coefficients, dtype)


@every_storage
@every_type
@pytest.mark.usefixtures("tiles")
def test_precomputed_values_are_looked_up(X, store, dtype):
    values = RBF(0.3)(X)
    seen = KernelRows(store(values), Precomputed())
    rows, others = np.array([3, 50, 4]), np.array([9, 3, 3, 0])
    close(seen.gram(rows, dtype, Budget()), values[np.ix_(rows, rows)], dtype)
    close(seen.block(rows, others, dtype, Budget()), values[np.ix_(rows, others)], dtype)
    found = seen.against(store(values[:6])).scores(others, np.ones((4, 1)), dtype, Budget())
    close(found[:, 0], values[:6][:, others].sum(axis=1), dtype)


@every_storage
def test_a_gram_matrix_may_be_the_corner_of_a_larger_one(X, store):
    seen, large = KernelRows(store(X), RBF(0.3)), np.zeros((30, 40))
    found = seen.gram(np.arange(10), np.float64, Budget(), out=large[:10, :10])
    assert np.shares_memory(found, large)
    seen.block(np.arange(10), np.arange(10, 30), np.float64, Budget(), out=large[:10, 10:30])
    close(large[:10, :30], RBF(0.3)(X)[:10, :30], np.float64)
    assert not large[10:].any()
    assert not large[:, 30:].any()


@every_kernel
@every_storage
@every_type
@pytest.mark.usefixtures("tiles")
def test_a_block_may_be_written_to_both_corners_of_a_larger_matrix(X, kernel, store, dtype):
    seen, large = KernelRows(store(X), kernel), np.full((30, 40), 7.0, dtype)
    rows, others = np.arange(10, 28), np.arange(9)
    block = seen.block(rows, others, dtype, Budget(), out=large[9:27, :9], mirrored=large[:9, 9:27])
    np.testing.assert_array_equal(block, seen.block(rows, others, dtype, Budget()))
    np.testing.assert_array_equal(large[:9, 9:27], block.T)
    large[9:27, :9], large[:9, 9:27] = 7.0, 7.0
    assert (large == 7.0).all()


def test_a_function_that_is_not_quite_symmetric_makes_a_symmetric_gram_matrix(X):
    seen = KernelRows(X, Called(lambda A, B: A @ B.T + 1e-3 * A[:, :1]))
    gram = seen.gram(None, np.float64, Budget())
    np.testing.assert_array_equal(gram, gram.T)


@every_type
def test_a_far_away_mean_takes_no_digits_of_distances(dtype):
    X = np.random.default_rng(2).normal(size=(40, 6)) + 1e4
    exact = np.exp(-0.2 * np.square(X[:, None] - X).sum(axis=2))
    seen = KernelRows(X, RBF(0.2))
    close(seen.gram(None, dtype, Budget()), exact, dtype)
    close(seen.against(X[:3]).scores(None, np.eye(40), dtype, Budget()), exact[:3], dtype)


@every_type
@pytest.mark.parametrize("stored", [np.float32, np.float64])
def test_a_far_away_mean_takes_no_digits_of_products_where_it_is_of_no_account(dtype, stored):
    X = (np.random.default_rng(2).normal(size=(90, 6)) + 1e4).astype(stored)
    seen = KernelRows(X, linear, centred=True)
    np.testing.assert_allclose(seen.origin, X.mean(axis=0, dtype=np.float64))
    exact = (X - seen.origin) @ (X - seen.origin).T
    close(seen.gram(None, dtype, Budget()), exact, dtype)
    close(seen.diagonal(), np.diag(exact), np.float64)
    assert seen.entry_error(dtype) <= 60 * np.finfo(dtype).eps * np.abs(exact).max()


@pytest.mark.parametrize(
    ("rows", "kernel"), [(1e4, RBF(1.0)), (1e4, quadratic), (30.0, linear), (0.0, linear)]
)
def test_kernel_values_are_those_of_the_rows_where_the_mean_is_near_or_counts(rows, kernel):
    X = np.random.default_rng(2).normal(size=(20, 3)) + rows
    seen = KernelRows(X, kernel, centred=True)
    assert seen.origin is None
    close(seen.gram(None, np.float64, Budget()), kernel(X), np.float64)


@every_kernel
@every_storage
def test_the_error_of_entries_is_about_what_is_measured_on_all_of_them(X, kernel, store):
    seen, exact = KernelRows(store(X), kernel), kernel(X)
    off = np.abs(seen.gram(None, np.float32, Budget()) - exact).max()
    error = seen.entry_error(np.float32)
    assert off <= error <= 8 * max(off, 2.0**-24 * np.abs(exact).max())
    assert seen.entry_error(np.float64) == pytest.approx(error * 2.0**-29)


@pytest.mark.parametrize("columns", [2, 13])
@pytest.mark.parametrize("tail", [0.0, 0.5, 1.5])
@every_kernel
def test_the_error_of_entries_is_not_above_what_is_said_where_few_rows_are_long(kernel, tail, columns):
    for seed in range(3):
        random = np.random.default_rng(seed)
        X = random.normal(size=(400, columns)) * np.exp(tail * random.normal(size=(400, 1)))
        seen = KernelRows(X, kernel)
        off = np.abs(seen.gram(None, np.float32, Budget()) - kernel(X)).max()
        # The rbf kernel is rounded most between long rows that are near each other, of which few are seen.
        assert off <= seen.entry_error(np.float32) * (8.0 if isinstance(kernel, RBF) else 1.0)


def test_what_overflows_in_single_precision_has_no_digits_there():
    X = np.random.default_rng(3).normal(size=(20, 3)) * 1e25
    assert KernelRows(X, RBF(1e-50)).entry_error(np.float32) == math.inf
    assert KernelRows(X, RBF(1e-50)).entry_error(np.float64) < 1e-15
    assert KernelRows(X, linear).entry_error(np.float32) == math.inf


@every_kernel
@every_storage
def test_a_call_without_time_raises(X, kernel, store):
    seen, late = KernelRows(store(X), kernel), Budget(time_limit=0.0)
    with pytest.raises(BudgetExhausted):
        seen.gram(None, np.float64, late)
    with pytest.raises(BudgetExhausted):
        seen.block(None, None, np.float64, late)
    with pytest.raises(BudgetExhausted):
        seen.scores(None, None, np.ones((53, 1)), np.float64, late)


def test_rows_in_columns_order_are_taken_too(X):
    seen = KernelRows(np.asfortranarray(X), RBF(0.3))
    close(seen.gram(None, np.float64, Budget()), RBF(0.3)(X), np.float64)


def test_the_table_is_not_copied(X):
    assert np.shares_memory(KernelRows(X, RBF(0.3))._X, X)


def test_rows_far_from_the_others_are_not_rounded_away():
    random = np.random.default_rng(0)
    X = random.normal(size=(3000, 20))
    X[[101, 1502]] = 0.0
    X[[101, 1502], 0] = 3e4, 3e4 + 1.0  # |x|^2 is known to about 50 in float32, and |x - z|^2 is 1
    rows = KernelRows(X, RBF(0.5))
    found = rows.block([101], [1502], np.float32, Budget())[0, 0]
    assert abs(found - np.exp(-0.5)) <= rows.entry_error(np.float32)
    assert rows.entry_error(np.float64) < 1e-6


def test_new_rows_whose_squares_overflow_in_single_precision_are_compared_in_double():
    X = np.array([[0.0, 1.0], [1e25, 0.0]])
    rows = KernelRows(X, RBF(1e-50))
    Z = np.array([[1e25, 1e24], [3.0, 4.0]])
    one = rows.against(Z).scores([0, 1], np.eye(2), np.float32, Budget())
    np.testing.assert_allclose(one, RBF(1e-50)(Z, X), rtol=1e-12)
