"""Rows and columns that move inside a square are those that plain indexing would put there."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sixfold._native import core

every_type = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def numbered(rows, columns, dtype):
    """All entries different, so that every one that is out of place is seen."""
    return np.arange(rows * columns, dtype=dtype).reshape(rows, columns)


def holes_and_movers(stays):
    kept = int(stays.sum())
    return kept, np.flatnonzero(~stays[:kept]), kept + np.flatnonzero(stays[kept:])


def filled(square, kept, holes, movers):
    """The definition: entry (i, j) is what was at (from(i), from(j))."""
    source = np.arange(kept)
    source[holes] = movers
    return square[np.ix_(source, source)]


def widened(room, rows, stride, wider):
    """Rows copied to a second matrix."""
    out = np.zeros((rows, wider), room.dtype)
    for i in range(rows):
        out[i, :rows] = room[i * stride : i * stride + rows]
    return out[:, :rows]


@every_type
@given(stays=st.lists(st.booleans(), max_size=60), beyond=st.integers(0, 20))
def test_the_last_rows_take_the_places_of_those_that_go(dtype, stays, beyond):
    stays = np.array(stays, dtype=bool)
    size = stays.size
    kept, holes, movers = holes_and_movers(stays)
    large = numbered(size + 2, size + beyond, dtype)
    before = large.copy()
    core.fill_holes(large[1 : size + 1, :size], kept, holes, movers)
    np.testing.assert_array_equal(
        large[1 : kept + 1, :kept], filled(before[1 : size + 1, :size], kept, holes, movers)
    )
    large[1 : kept + 1, :kept] = before[1 : kept + 1, :kept]
    np.testing.assert_array_equal(large, before)


@every_type
@given(rows=st.integers(0, 60), spare=st.integers(0, 9), more=st.integers(0, 200))
def test_rows_come_to_be_further_apart(dtype, rows, spare, more):
    stride = rows + spare
    wider = stride + more
    room = numbered(1, max(rows * wider, 1) + 5, dtype)[0]
    before = room.copy()
    core.widen_rows(room, rows, stride, wider)
    moved = room[: rows * wider].reshape(rows, wider)[:, :rows]
    np.testing.assert_array_equal(moved, widened(before, rows, stride, wider))
    np.testing.assert_array_equal(room[max(rows * wider, 1) :], before[max(rows * wider, 1) :])


@every_type
@pytest.mark.parametrize("wider", [2905, 3300, 9000])
def test_threads_move_large_squares_to_the_same_places(dtype, wider):
    rows, random = 2901, np.random.default_rng(0)
    room = np.zeros(rows * wider, dtype)
    square = room[: rows * rows].reshape(rows, rows)
    square[:] = random.random((rows, rows), dtype)
    before = square.copy()
    core.widen_rows(room, rows, rows, wider)
    moved = room.reshape(rows, wider)[:, :rows]
    np.testing.assert_array_equal(moved, before)
    kept, holes, movers = holes_and_movers(random.random(rows) < 0.8)
    core.fill_holes(moved, kept, holes, movers)
    np.testing.assert_array_equal(moved[:kept, :kept], filled(before, kept, holes, movers))


def test_moves_out_of_the_square_are_refused():
    square, none = np.zeros((4, 4)), np.zeros(0, np.int64)
    one = np.array([0])
    with pytest.raises(ValueError, match="square"):
        core.fill_holes(square[:3], 2, none, none)
    with pytest.raises(ValueError, match="contiguous"):
        core.fill_holes(square.T, 2, none, none)
    with pytest.raises(ValueError, match="than there are"):
        core.fill_holes(square, 5, none, none)
    with pytest.raises(ValueError, match="mover for each"):
        core.fill_holes(square, 2, one, none)
    with pytest.raises(ValueError, match="among the rows"):
        core.fill_holes(square, 2, np.array([2]), np.array([3]))
    with pytest.raises(ValueError, match="increasing"):
        core.fill_holes(square, 2, np.array([1, 0]), np.array([2, 3]))
    with pytest.raises(ValueError, match="after these"):
        core.fill_holes(square, 2, one, np.array([1]))
    with pytest.raises(ValueError, match="after these"):
        core.fill_holes(square, 2, one, np.array([4]))
    with pytest.raises(ValueError, match="further apart"):
        core.widen_rows(np.zeros(16), 4, 4, 3)
    with pytest.raises(ValueError, match="further apart"):
        core.widen_rows(np.zeros(16), 4, 3, 4)
    with pytest.raises(ValueError, match="room for all"):
        core.widen_rows(np.zeros(18), 4, 4, 5)
