"""Partitions of Dask as row blocks: passes, folds, and rows that stay where they are."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

from sixfold.data.blocks import MemoryBlocks
from sixfold.data.dask_blocks import (
    DaskBlocks,
    Rows,
    Workers,
    check_collections,
    find_bad,
    is_collection,
    make_rows,
)
from sixfold.errors import InputError

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")


class Learner:
    """What is told the names of columns."""


@pytest.fixture(autouse=True)
def here():
    with dask.config.set(scheduler="synchronous"):
        yield


def blocks_of(lengths, columns=2):
    X = np.arange(float(sum(lengths) * columns)).reshape(-1, columns)
    y = X[:, :1].copy()
    parts, start = [], 0
    for length in lengths:
        rows = slice(start, start + length)
        parts.append(dask.delayed(Rows)(X[rows], y[rows], None))
        start += length
    return DaskBlocks(Workers(), parts, lengths, columns, 1, float(start), X.dtype), MemoryBlocks(X, y)


def row_numbers(block):
    return [(block.start, block.y.shape[0])]


def joined(one, other, seen=None):
    return one + other


def bracket(one, other):
    return f"({one}{other})"


def name(block):
    return str(block.start)


def appended(block, state):
    return [*state, block.start]


def test_a_pass_goes_through_all_blocks_in_row_order():
    blocks, _ = blocks_of([3, 1, 5])
    assert blocks.reduce(row_numbers, joined) == [(0, 3), (3, 1), (4, 5)]
    assert (blocks.n_rows, blocks.n_columns, blocks.streamed) == (9, 2, True)


@pytest.mark.parametrize("count", [1, 2, 8, 9, 70])
def test_the_tree_has_one_shape(count):
    blocks, _ = blocks_of([1] * count)
    found = blocks.reduce(name, bracket)
    assert found == blocks.reduce(name, bracket)
    assert found.replace("(", "").replace(")", "") == "".join(map(str, range(count)))


def test_a_fold_hands_the_state_on():
    blocks, memory = blocks_of([3, 1, 5])
    assert blocks.fold(appended, []) == [0, 3, 4]
    assert memory.fold(appended, []) == [0]


def test_functions_may_hold_arrays():
    blocks, memory = blocks_of([2, 2])
    shift = np.array([1.0, 2.0])
    found = blocks.reduce(partial(moved_sum, shift=shift), np.add)
    np.testing.assert_array_equal(found, memory.reduce(partial(moved_sum, shift=shift), np.add))


def moved_sum(block, shift):
    return (block.X - shift).sum(axis=0)


def test_rows_do_not_leave_their_place():
    blocks, _ = blocks_of([2])
    with pytest.raises(InputError, match="are on a cluster"):
        blocks.whole()


def test_what_is_watched_ends_a_pass():
    blocks, _ = blocks_of([2])

    def stop():
        raise RuntimeError("enough")

    blocks.watch = stop
    with pytest.raises(RuntimeError, match="enough"):
        blocks.reduce(name, bracket)


def test_collections_are_told_from_arrays():
    assert is_collection(da.zeros(3))
    assert is_collection(dd.from_pandas(pd.DataFrame({"a": [1]}), npartitions=1))
    assert not any(map(is_collection, (np.zeros(3), pd.DataFrame({"a": [1]}), [1], None)))


def test_partitions_become_arrays():
    frame = pd.DataFrame({"a": pd.array([1, 2, None], dtype="Int64"), "b": [True, False, True]})
    rows = make_rows(frame, pd.Series([1, 2, 3]), 2, list(frame.columns), np.float64, False)
    np.testing.assert_array_equal(rows.X, [[1, 1], [2, 0], [np.nan, 1]])
    assert rows.X.flags.c_contiguous
    assert rows.y.shape == (3, 1)
    np.testing.assert_array_equal(rows.weight, [2.0, 2.0, 2.0])
    bad = find_bad(rows)
    assert (bad.name, bad.row, bad.column) == ("X", 2, 0)
    with pytest.raises(InputError, match="X has 3 rows here, and y has 2"):
        make_rows(frame, [1, 2], None, list(frame.columns), np.float64, False)


def test_names_types_and_targets_are_found_without_values():
    frame = dd.from_pandas(pd.DataFrame({"a": np.zeros(4, np.float32), "y": range(4)}), npartitions=2)
    learner = Learner()
    table = check_collections(learner, frame[["a"]], frame["y"], None, False)
    assert (table.n_columns, table.dtype, table.y_columns) == (1, np.float32, 0)
    assert learner.feature_names_in_.tolist() == ["a"]
    assert learner.n_features_in_ == 1
