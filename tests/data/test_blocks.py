"""Blocks go through all rows once, in order, without copying them."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sixfold.data import blocks as module
from sixfold.data.blocks import Blocks, MemoryBlocks, squared_entries


def draw(rows=10, columns=3, kind=None):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns))
    if kind is not None:
        X[rng.random(X.shape) < 0.5] = 0.0
        X = kind(X)
    return X, rng.standard_normal((rows, 2)), rng.random(rows)


@given(rows=st.integers(0, 30), size=st.none() | st.integers(1, 40), sparse=st.booleans())
def test_blocks_cover_all_rows_once_in_order(rows, size, sparse):
    X, y, weight = draw(rows, kind=sp.csr_array if sparse else None)
    parts = list(MemoryBlocks(X, y, weight, rows_per_block=size))
    starts = np.cumsum([0] + [part.y.shape[0] for part in parts[:-1]])
    assert [part.start for part in parts] == starts.tolist()
    assert all(part.X.shape == (part.y.shape[0], 3) for part in parts)
    np.testing.assert_array_equal(np.concatenate([part.y for part in parts]), y)
    np.testing.assert_array_equal(np.concatenate([part.weight for part in parts]), weight)
    if sparse:
        together = sp.vstack([part.X for part in parts], format="csr")
        np.testing.assert_array_equal(together.toarray(), X.toarray())
    else:
        np.testing.assert_array_equal(np.concatenate([part.X for part in parts]), X)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("size", [None, 4])
def test_dense_blocks_are_views(order, size):
    X, y, weight = draw()
    X = np.asarray(X, order=order)
    for part in MemoryBlocks(X, y, weight, rows_per_block=size):
        assert np.shares_memory(part.X, X)
        assert np.shares_memory(part.y, y)
        assert np.shares_memory(part.weight, weight)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("size", [None, 4])
def test_sparse_blocks_are_views_of_the_same_kind(kind, size):
    X, y, _ = draw(kind=kind)
    for part in MemoryBlocks(X, y, rows_per_block=size):
        assert type(part.X) is kind
        assert np.shares_memory(part.X.data, X.data)
        assert np.shares_memory(part.X.indices, X.indices)
        rows = slice(part.start, part.start + part.X.shape[0])
        np.testing.assert_array_equal(part.X.toarray(), X[rows].toarray())
        assert part.X.has_sorted_indices


def test_sparse_blocks_keep_64_bit_indices():
    X, y, _ = draw(kind=sp.csr_array)
    X.indptr, X.indices = X.indptr.astype(np.int64), X.indices.astype(np.int64)
    for part in MemoryBlocks(X, y, rows_per_block=4):
        assert np.shares_memory(part.X.indices, X.indices)


def test_rows_without_weights_count_one_each():
    X, y, _ = draw(7)
    blocks = MemoryBlocks(X, y, rows_per_block=3)
    assert blocks.weight_sum == 7.0
    assert all(part.weight is None for part in blocks)


def test_shape_kind_and_weight_are_told():
    X, y, _ = draw(kind=sp.csr_array)
    blocks = MemoryBlocks(X.astype(np.float32), y, np.full(10, 0.1, dtype=np.float32))
    assert (blocks.n_rows, blocks.n_columns, blocks.n_targets) == (10, 3, 2)
    assert blocks.sparse
    assert blocks.dtype == np.float32
    # Ten times the float32 nearest to 0.1, added in float64.
    assert blocks.weight_sum == pytest.approx(10 * float(np.float32(0.1)), rel=1e-15)


@pytest.mark.parametrize("kind", [None, sp.csr_array])
def test_a_block_keeps_to_its_share_of_memory(monkeypatch, kind):
    monkeypatch.setattr(module, "BLOCK_BYTES", 1000)
    X, y, _ = draw(200, 5, kind)
    for part in MemoryBlocks(X, y):
        size = part.X.data.nbytes + part.X.indices.nbytes if kind else part.X.nbytes
        assert 500 <= size <= 1500 or part.start + part.X.shape[0] == 200


def test_a_row_larger_than_a_block_is_a_block(monkeypatch):
    monkeypatch.setattr(module, "BLOCK_BYTES", 8)
    X, y, _ = draw(3)
    assert len(list(MemoryBlocks(X, y))) == 3


@pytest.mark.parametrize("kind", [None, sp.csr_array])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_whole_is_what_the_blocks_are_parts_of(kind, weighted):
    X, y, weight = draw(10, kind=kind)
    weight = np.round(weight) if weighted else None
    blocks = MemoryBlocks(X, y, weight, rows_per_block=4)
    for whole in (blocks.whole(), Blocks.whole(blocks)):
        assert (whole.X != X).sum() == 0
        np.testing.assert_array_equal(whole.y, y)
        assert whole.rows == slice(0, 10)
        for part in blocks:
            np.testing.assert_array_equal(part.y, y[part.rows])
            np.testing.assert_array_equal(part.counts, whole.counts[part.rows])
    assert blocks.whole().counts.tolist() == (weight > 0 if weighted else np.ones(10, bool)).tolist()


def test_map_is_lazy_and_reduce_joins_in_row_order():
    X, y, _ = draw(5)
    blocks = MemoryBlocks(X, y, rows_per_block=2)
    seen = []
    mapped = blocks.map(lambda block: seen.append(block.start))
    assert seen == []
    next(mapped)
    assert seen == [0]
    joined = blocks.reduce(lambda block: [block.start], lambda a, b: [*a, b])
    assert joined == [0, [2], [4]]


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_array])
def test_squared_entries_are_those_of_the_table(kind):
    X = draw(kind=None)[0]
    X[np.abs(X) < 0.5] = 0.0
    found = squared_entries(kind(X))
    np.testing.assert_array_equal(found if kind is np.asarray else found.toarray(), np.square(X))


def test_an_entry_stored_in_two_parts_is_squared_as_their_sum():
    X = sp.csr_array((np.array([1.0, 2.0, 3.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    np.testing.assert_array_equal(squared_entries(X).toarray(), [[0.0, 9.0], [9.0, 0.0]])
