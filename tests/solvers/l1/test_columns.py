"""Products with columns: native loops against NumPy, in every layout, any threads."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from sixfold._native import core
from sixfold.budget import Budget, BudgetExhausted
from sixfold.solvers.l1 import working_set
from sixfold.solvers.l1.columns import make_columns

LAYOUTS = ["C", "F", "sparse"]


def table(n, d, layout, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.integers(-4, 5, (n, d)) * (rng.random((n, d)) < 0.5)).astype(dtype)
    weight = rng.random(n) + 0.1
    laid_out = sp.csr_array(X) if layout == "sparse" else np.asarray(X, order=layout)
    return X.astype(float), laid_out, weight


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (7, 5), (1030, 523), (40_000, 3)])
def test_products_equal_numpy(layout, dtype, shape):
    n, d = shape
    X, laid_out, weight = table(n, d, layout, dtype)
    share = weight / weight.sum()
    columns = make_columns(laid_out, weight, centred=True)
    V = np.random.default_rng(1).standard_normal((2, n))
    V -= (V @ share)[:, None]
    Z = X - share @ X
    budget = Budget()
    np.testing.assert_allclose(columns.start(V, budget), (V * share) @ Z, atol=1e-10)
    np.testing.assert_allclose(columns.mean, share @ X, atol=1e-12)
    np.testing.assert_allclose(columns.slopes(V, budget), (V * share) @ Z, atol=1e-10)
    w = np.where(np.arange(d) % 2 == 0, np.linspace(-1.0, 1.0, d) + 0.1, 0.0)
    np.testing.assert_allclose(columns.combine(w, budget), Z @ w, atol=1e-9)
    ids = np.random.default_rng(2).permutation(d).astype(np.int64)
    for old in {0, d // 2, d - 1}:
        expected = (Z[:, ids[old:]] * share[:, None]).T @ Z[:, ids]
        np.testing.assert_allclose(columns.gram_rows(ids, old, budget), expected, atol=1e-9)
    np.testing.assert_allclose(columns.curvature(), share @ Z**2, atol=1e-9)


def test_a_gram_matrix_of_many_columns_equals_numpy():
    X, laid_out, _ = table(600, 700, "C")
    columns = make_columns(laid_out, None, centred=False)
    gram = columns.gram_rows(np.arange(700), 0, Budget())
    np.testing.assert_allclose(gram, X.T @ X / 600, atol=1e-10)
    np.testing.assert_array_equal(gram, gram.T)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("copied", [0.0, 1.0])
def test_products_of_working_columns_equal_numpy(monkeypatch, layout, copied):
    monkeypatch.setattr(working_set, "COPIED", copied)
    X, laid_out, weight = table(600, 300, layout)
    rng, budget = np.random.default_rng(5), Budget()
    columns = make_columns(laid_out, weight, centred=True)
    columns.start(np.zeros((1, 600)), budget)
    working = working_set.make_working_columns(columns)
    working.grow(np.array([7, 3, 250]))
    working.grow(rng.permutation(300)[:280])
    Z = X - working.table_mean
    V = rng.standard_normal((2, 600))
    np.testing.assert_allclose(working.slopes(V, budget), V @ Z[:, working.ids], atol=1e-9)
    w, ids = rng.standard_normal(3), np.array([250, 3, 7])
    np.testing.assert_allclose(working.combine(ids, w, budget), Z[:, ids] @ w, atol=1e-9)
    # Several groups with roots of their own, and the column of ones.
    ids = np.concatenate([[-1, -1], rng.permutation(working.ids), working.ids[:40]])
    group, root = rng.integers(0, 3, len(ids)), rng.random((600, 3))
    A = root[:, group] * np.column_stack([Z, np.ones(600)])[:, ids]
    for old in (0, 200):
        rows = working.gram_rows(root, group, ids, old, budget)
        np.testing.assert_allclose(rows, A[:, old:].T @ A, atol=1e-8)


def test_a_large_mean_costs_no_digits():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((200, 3))
    V = rng.standard_normal((1, 200))
    V -= V.mean()
    columns = make_columns(X + 2.0**30, None, centred=True)
    columns.start(V, Budget())
    # Adding 2^30 rounds X to multiples of 2^-22; no more than that is lost.
    rounded = (X + 2.0**30) - 2.0**30
    expected = V @ (rounded - rounded.mean(axis=0)) / 200
    np.testing.assert_allclose(columns.slopes(V, Budget()), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("layout", ["C", "F"])
def test_any_number_of_threads_gives_the_same_bits(layout):
    _, laid_out, weight = table(33_000, 130, layout)
    V = np.random.default_rng(4).standard_normal((2, 33_000))
    w = np.linspace(-1.0, 1.0, 130)
    found = []
    for threads in (1, 2, 3):
        with threadpool_limits(threads, user_api="openmp"):
            assert core.threads() == threads
            columns = make_columns(laid_out, weight, centred=True)
            slopes = columns.start(V, Budget())
            gram = columns.gram_rows(np.arange(130), 40, Budget())
            found.append((slopes, columns.mean, columns.combine(w, Budget()), gram))
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


def test_a_budget_that_has_ended_interrupts_every_loop():
    _, laid_out, _ = table(50, 4, "C")
    columns = make_columns(laid_out, None, centred=True)
    ended = Budget(time_limit=0.0)
    for call in (
        lambda: columns.slopes(np.zeros((1, 50)), ended),
        lambda: columns.combine(np.ones(4), ended),
        lambda: columns.gram_rows(np.arange(4), 0, ended),
    ):
        with pytest.raises(BudgetExhausted):
            call()


def test_native_loops_check_their_arguments():
    X, flag = np.ones((5, 3)), np.zeros(1, dtype=np.int32)
    with pytest.raises(ValueError, match="one entry a row"):
        core.correlations(X, None, np.zeros(3), np.ones((1, 4)), np.empty((1, 3)), np.inf, flag)
    strided, chosen = np.ones((10, 6))[::2, ::2], np.array([3])
    with pytest.raises(ValueError, match="contiguous along an axis"):
        core.correlations(strided, None, np.zeros(3), np.ones((1, 5)), np.empty((1, 3)), np.inf, flag)
    with pytest.raises(ValueError, match="chosen columns must be contiguous"):
        core.correlations(X, np.array([0]), np.zeros(1), np.ones((1, 5)), np.empty((1, 1)), np.inf, flag)
    one, group = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64)
    with pytest.raises(ValueError, match="a group does not exist"):
        core.gram_rows(X, np.ones((5, 1)), group, one, 0, np.zeros(1), np.empty((1, 1)), np.inf, flag)
    with pytest.raises(ValueError, match="does not exist"):
        core.combination(X, chosen, np.zeros(1), np.ones(1), np.empty(5), np.inf, flag)
    with pytest.raises(ValueError, match="must be square"):
        core.descend_gram(X, np.zeros(3), np.zeros(3), 0.0, 0.0, False, 1, 0.0, np.inf, flag)
