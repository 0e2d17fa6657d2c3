"""Features in place of kernel values, lengths of rows, and products of spaced rows: as NumPy has them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixfold._native import core

FLAG = np.zeros(1, dtype=np.int32)
ROUNDING = {np.float32: 1e-5, np.float64: 1e-13}


def triangle_rows(values, triangle, seconds=np.inf, flag=FLAG):
    lengths = np.empty(values.shape[0])
    done = core.triangle_rows(values, triangle, lengths, seconds, flag)
    return done, lengths


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 200), st.integers(1, 160), st.integers(0, 9), st.sampled_from([np.float32, np.float64]))
def test_rows_times_a_triangle_are_written_over_them(rows, rank, spare, dtype):
    random = np.random.default_rng(rows + 1000 * rank)
    table = random.normal(size=(rows, rank + spare)).astype(dtype)
    triangle = np.tril(random.normal(size=(rank, rank))).astype(dtype)
    before = table.copy()
    done, lengths = triangle_rows(table[:, :rank], triangle)
    wanted = before[:, :rank].astype(np.float64) @ triangle.astype(np.float64).T
    size = np.abs(before[:, :rank]).astype(np.float64) @ np.abs(triangle).T + 1.0
    assert done
    assert np.all(np.abs(table[:, :rank] - wanted) <= ROUNDING[dtype] * size)
    assert np.array_equal(table[:, rank:], before[:, rank:])
    np.testing.assert_allclose(lengths, np.square(table[:, :rank].astype(np.float64)).sum(axis=1), rtol=1e-12)


def test_what_is_above_the_diagonal_of_the_triangle_is_nothing():
    triangle = np.tril(np.ones((60, 60)))
    rows = np.random.default_rng(0).normal(size=(30, 60))
    other = rows.copy()
    triangle_rows(rows, triangle)
    triangle_rows(other, np.tril(np.ones((60, 60))) + 0.0)
    assert np.array_equal(rows, other)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_results_do_not_depend_on_the_number_of_threads(dtype):
    random = np.random.default_rng(0)
    rows, triangle = random.normal(size=(900, 300)).astype(dtype), np.tril(random.normal(size=(300, 300)))
    found = []
    for threads in (1, 2, 3):
        before = core.limit_threads(threads)
        copy = rows.copy()
        _, lengths = triangle_rows(copy, triangle.astype(dtype))
        core.limit_threads(before)
        found.append((copy.tobytes(), lengths.tobytes()))
    assert len(set(found)) == 1


def test_ctrl_c_and_the_clock_end_it():
    rows, triangle = np.ones((4000, 300)), np.eye(300)
    assert not triangle_rows(rows, triangle, 0.0)[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_of_spaced_rows_may_overwrite_columns_of_their_own_table(dtype):
    random = np.random.default_rng(1)
    table = random.normal(size=(250, 90)).astype(dtype)
    factors = random.normal(size=(20, 60)).astype(dtype)
    wanted = table[:, :60].astype(np.float64) @ factors.T.astype(np.float64)
    rest = table[:, 60:].copy()
    assert core.multiply_rows(table[:, :60], factors, table[:, 40:60], np.inf, FLAG)
    np.testing.assert_allclose(
        table[:, 40:60], wanted, rtol=1e-4 if dtype == np.float32 else 1e-12, atol=1e-4
    )
    assert np.array_equal(table[:, 60:], rest)


def test_lengths_of_spaced_rows():
    table = np.random.default_rng(2).normal(size=(1000, 50)).astype(np.float32)
    lengths = np.empty(1000)
    core.row_lengths(table[:, 3:40], lengths)
    np.testing.assert_allclose(lengths, np.square(table[:, 3:40].astype(np.float64)).sum(axis=1), rtol=1e-12)


def test_sizes_that_do_not_fit_are_refused():
    rows = np.ones((4, 3))
    for triangle, lengths in ((np.eye(2), np.empty(4)), (np.eye(3), np.empty(5))):
        with pytest.raises(ValueError, match="must have"):
            core.triangle_rows(rows, triangle, lengths, np.inf, FLAG)
    with pytest.raises(ValueError, match="same columns"):
        core.multiply_rows(rows, np.ones((2, 4)), np.empty((4, 2)), np.inf, FLAG)
    with pytest.raises(ValueError, match="contiguous"):
        core.row_lengths(rows.T, np.empty(3))
