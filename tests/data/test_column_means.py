"""Means of columns: of all rows, of rows drawn from a large table, and of batches."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from sixfold.data.column_means import MOST_AVERAGED, column_means, spread_rows


@pytest.mark.parametrize("rows", [1, 7, MOST_AVERAGED])
@pytest.mark.parametrize("sparse", [False, True])
def test_few_rows_all_count(rows, sparse):
    X = np.random.default_rng(rows).standard_normal((rows, 5))
    found = column_means(sp.csr_array(X) if sparse else X)
    np.testing.assert_allclose(found.mean, X.mean(axis=0), rtol=1e-12, atol=1e-15)
    assert (found.rows, found.weight) == (rows, rows)


def test_float32_is_averaged_in_float64():
    X = np.full((3000, 4), 1e6 + 0.25, dtype=np.float32)
    found = column_means(X).mean
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, 1e6 + 0.25, rtol=1e-12)


def test_weights_count():
    X = np.array([[1.0], [5.0], [100.0]])
    found = column_means(X, np.array([3.0, 1.0, 0.0]))
    assert (found.mean[0], found.rows, found.weight) == (2.0, 2, 4.0)


def test_a_large_table_is_drawn_from():
    X = np.random.default_rng(0).standard_normal((50_000, 3))
    found = column_means(X)
    assert (found.rows, found.weight) == (MOST_AVERAGED, 50_000)
    assert np.abs(found.mean - X.mean(axis=0)).max() < 4.0 / np.sqrt(MOST_AVERAGED)


def test_rows_without_weight_are_not_drawn():
    X = np.arange(50_000.0)[:, None]
    weight = np.zeros(50_000)
    weight[[0, 30_000]] = 1.0
    assert column_means(X, weight).mean[0] == 15_000.0


@pytest.mark.parametrize("sparse", [False, True])
def test_of_many_rows_with_weight_some_are_drawn(sparse):
    random = np.random.default_rng(0)
    X, weight = random.standard_normal((30_000, 2)) + 5.0, random.integers(0, 3, 30_000).astype(float)
    found = column_means(sp.csr_array(X) if sparse else X, weight)
    assert (found.rows, found.weight) == (MOST_AVERAGED, weight.sum())
    assert np.abs(found.mean - np.average(X, axis=0, weights=weight)).max() < 0.1


@pytest.mark.parametrize("period", [7, 12, 24, 25, 168])
def test_columns_that_repeat_are_drawn_evenly(period):
    X = (np.arange(period * MOST_AVERAGED) % period)[:, None].astype(np.float64)
    found = column_means(X).mean[0]
    assert abs(found - 0.5 * (period - 1)) < 0.02 * period


@pytest.mark.parametrize("rows", [MOST_AVERAGED, MOST_AVERAGED + 1, 10_001, 1_000_000])
def test_drawn_rows_are_in_order_and_in_the_table(rows):
    drawn = spread_rows(rows, MOST_AVERAGED)
    assert drawn.size == MOST_AVERAGED
    assert (np.diff(drawn) >= 0).all()
    assert drawn.min() >= 0
    assert drawn.max() < rows


def test_means_of_batches_add_up():
    random = np.random.default_rng(0)
    X, weight = random.standard_normal((60, 3)), random.random(60)
    both = column_means(X[:20], weight[:20]).with_rows_of(column_means(X[20:], weight[20:]))
    whole = column_means(X, weight)
    np.testing.assert_allclose(both.mean, whole.mean, rtol=1e-12)
    assert both.rows == whole.rows == 60
    assert both.weight == pytest.approx(whole.weight)
