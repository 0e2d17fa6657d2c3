"""The native moments against plain NumPy, for every layout and shape that meets an edge of the kernel."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.linear import gram_of_shifted_rows
from sixfold._native import core

FLAG = np.zeros(1, dtype=np.int32)


def native_gram(X, Y, weight, shift, row_shift):
    width = X.shape[1] + Y.shape[1] + 1
    gram = np.full((width, width), np.nan)
    assert core.moments(X, Y, weight, shift, row_shift, gram, np.inf, FLAG)
    return gram


# One row, one column; a panel less one, full and plus one for each instruction set; several groups and
# chunks.
@pytest.mark.parametrize("rows", [1, 95, 96, 97, 9000])
@pytest.mark.parametrize("columns", [1, 5, 6, 11, 12, 23, 24, 25, 47, 250])
def test_gram_equals_numpy_at_every_edge_of_the_kernel(rows, columns):
    random = np.random.default_rng(rows * 1000 + columns)
    X = random.normal(size=(rows, columns)) + 3.0
    Y = random.normal(size=(rows, 2))
    shift = random.normal(size=columns + 2)
    expected = gram_of_shifted_rows(X, Y, None, shift, None)
    np.testing.assert_allclose(native_gram(X, Y, None, shift, None), expected, rtol=1e-11, atol=1e-10 * rows)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.integers(1, 300),
    columns=st.integers(1, 60),
    targets=st.integers(0, 3),
    dtype=st.sampled_from([np.float32, np.float64]),
    order=st.sampled_from("CF"),
    weighted=st.booleans(),
    shifted=st.booleans(),
    step=st.integers(1, 2),
    seed=st.integers(0, 2**32 - 1),
)
def test_gram_equals_numpy_for_any_layout(
    rows, columns, targets, dtype, order, weighted, shifted, step, seed
):
    random = np.random.default_rng(seed)
    X = np.asarray(random.normal(size=(rows, columns * step)), dtype=dtype, order=order)[:, ::step]
    Y = random.normal(size=(rows, targets)).astype(dtype)
    weight = random.integers(0, 3, rows).astype(float) if weighted else None
    row_shift = random.normal(size=rows) if shifted else None
    shift = random.normal(size=columns + targets)
    expected = gram_of_shifted_rows(X, Y, weight, shift, row_shift)
    gram = native_gram(X, Y, weight, shift, row_shift)
    np.testing.assert_allclose(gram, expected, rtol=1e-11, atol=1e-10 * rows)
    np.testing.assert_array_equal(gram, gram.T)


def test_the_number_of_threads_does_not_change_a_bit():
    random = np.random.default_rng(0)
    X, Y = random.normal(size=(20000, 60)), random.normal(size=(20000, 1))
    shift = np.zeros(61)
    results = []
    for threads in (1, 2, 3):
        before = core.limit_threads(threads)
        results.append(native_gram(X, Y, None, shift, None))
        core.limit_threads(before)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_no_time_left_stops_the_pass():
    X, Y = np.ones((400000, 60)), np.ones((400000, 1))
    gram = np.empty((62, 62))
    assert not core.moments(X, Y, None, np.zeros(61), None, gram, 0.0, FLAG)


@pytest.mark.parametrize(
    "change",
    [
        {"Y": np.zeros((4, 1))},
        {"weight": np.ones(4)},
        {"shift": np.zeros(3)},
        {"row_shift": np.ones(6)},
        {"gram": np.zeros((3, 3))},
    ],
)
def test_sizes_that_do_not_fit_are_refused_at_the_border(change):
    arguments = {
        "X": np.zeros((5, 3)),
        "Y": np.zeros((5, 1)),
        "weight": None,
        "shift": np.zeros(4),
        "row_shift": None,
        "gram": np.zeros((5, 5)),
        "seconds_left": np.inf,
        "flag": FLAG,
    }
    assert core.moments(**arguments)
    with pytest.raises(ValueError, match="native loop"):
        core.moments(**(arguments | change))
