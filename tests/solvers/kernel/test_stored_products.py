"""Kernels made of stored products are those computed from the rows."""

import numpy as np
import pytest

from sixfold.budget import Budget
from sixfold.geometry.kernels import RBF, Polynomial, Sigmoid
from sixfold.solvers.kernel.kernel_rows import KernelRows
from sixfold.solvers.kernel.stored_products import AT_A_TIME, CrossProducts, StoredProducts

RNG = np.random.default_rng(0)
KERNELS = [RBF(0.2), RBF(30.0), Polynomial(3, 0.1, 1.0), Sigmoid(0.1, -0.5)]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("given", [np.float32, np.float64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gram_matrices_are_the_same_bit_by_bit(kernel, given, dtype):
    X = (RNG.normal(size=(90, 7)) + 3.0).astype(given)
    X[40] = X[3]
    order = RNG.permutation(90)
    rows, other = KernelRows(X, kernel), KernelRows(X, kernel)
    other.use_products(rows.store_products(order, dtype, Budget()))
    asked = np.concatenate([order[50:], order[10:20], order[:5]])
    np.testing.assert_array_equal(other.gram(asked, dtype, Budget()), rows.gram(asked, dtype, Budget()))
    mirrored = np.empty((40, 15), dtype)
    block = other.block(order[20:35], order[50:], dtype, Budget(), mirrored=mirrored)
    np.testing.assert_array_equal(block, rows.block(order[20:35], order[50:], dtype, Budget()))
    np.testing.assert_array_equal(mirrored, block.T)


def test_a_corner_of_a_larger_matrix_is_filled_and_nothing_else():
    X = RNG.normal(size=(AT_A_TIME + 5, 3))
    rows = KernelRows(X, RBF(0.5))
    stored = rows.store_products(np.arange(len(X)), np.float64, Budget())
    room = np.full((len(X) + 2, len(X) + 3), 7.0)
    assert stored.fill(RBF(0.5).form, np.arange(len(X)), np.arange(len(X)), room[: len(X), : len(X)])
    np.testing.assert_array_equal(room[: len(X), : len(X)], rows.gram(None, np.float64, Budget()))
    assert (room[len(X) :] == 7.0).all()
    assert (room[:, len(X) :] == 7.0).all()


def test_other_precision_and_scattered_rows_are_computed_anew():
    X = RNG.normal(size=(60, 3))
    stored = StoredProducts(X, np.arange(60), None, np.float64, Budget())
    some = np.arange(0, 60, 3)
    assert not stored.fill(RBF(1.0).form, some, some, np.empty((20, 20)))
    assert not stored.fill(RBF(1.0).form, np.arange(60), np.arange(60), np.empty((60, 60), np.float32))
    kept, anew = KernelRows(X, RBF(1.0)), KernelRows(X, RBF(1.0))
    kept.use_products(stored)
    np.testing.assert_array_equal(
        kept.gram(some, np.float32, Budget()), anew.gram(some, np.float32, Budget())
    )


@pytest.mark.parametrize("kernel", KERNELS)
def test_scores_of_new_rows(kernel):
    X, Z = RNG.normal(size=(40, 5)) + 100.0, RNG.normal(size=(13, 5)) + 100.0
    rows = KernelRows(X, kernel)
    factors = RNG.normal(size=(40, 3))
    crossed = rows.cross_products(Z, Budget())
    assert isinstance(crossed, CrossProducts)
    expected = kernel(Z, X) @ factors
    np.testing.assert_allclose(crossed.scores(kernel.form, factors), expected, rtol=1e-8, atol=1e-8)


def test_functions_have_no_products():
    rows = KernelRows(np.eye(3), RBF(1.0) + RBF(2.0))
    assert rows.store_products(np.arange(3), np.float64, Budget()) is None
    assert rows.cross_products(np.eye(3), Budget()) is None
