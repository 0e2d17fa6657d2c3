"""A fingerprint is that of the values, however they are kept, and tells any other."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from sixfold.data.fingerprint import fingerprint, table_size

rng = np.random.default_rng(0)
X = rng.integers(-3, 4, size=(200, 5)).astype(np.float64) / 4  # exact in float32, with zeros
y = rng.integers(0, 3, size=200)
weight = rng.uniform(size=200)
KNOWN = fingerprint(X, y, weight)
order = rng.permutation(200)


@pytest.mark.parametrize(
    "same",
    [
        (np.asfortranarray(X), y, weight),
        (X.astype(np.float32), y.astype(float), weight),
        (X[order], y[order], weight[order]),
        (np.hstack([X, X])[:, :5], y, weight),
        (np.where(X == 0, -0.0, X), y, weight),
        (sp.csr_array(X), y, weight),
        (sp.csc_matrix(X), y, weight),
        (X.tolist(), y.tolist(), weight.tolist()),
        (pd.DataFrame(X), pd.Series(y), pd.Series(weight)),
        (pl.DataFrame(X), pl.Series(y), weight),
        (pl.DataFrame(X).lazy(), y, weight),
        (X.astype(object), y, weight),
        (X, y[:, None], weight),
    ],
)
def test_the_same_values_have_the_same(same):
    assert fingerprint(*same) == KNOWN


def test_duplicate_entries_of_a_sparse_table_are_added():
    whole = sp.csr_array((np.array([3.0, 1.0]), np.array([0, 1]), np.array([0, 2])), shape=(1, 2))
    parts = sp.csr_array((np.array([1.0, 2.0, 1.0]), np.array([0, 0, 1]), np.array([0, 3])), shape=(1, 2))
    assert fingerprint(parts, [1]) == fingerprint(whole, [1])
    assert parts.nnz == 3  # the caller's table is left alone


def test_any_other_value_has_another():
    seen = {KNOWN}
    for number in range(200):
        other = X.copy()
        other[number, number % 5] += 0.25
        seen.add(fingerprint(other, y, weight))
        seen.add(fingerprint(X, np.where(np.arange(200) == number, 3, y), weight))
        seen.add(fingerprint(X, y, np.where(np.arange(200) == number, 3.0, weight)))
    swapped = X[:, [1, 0, 2, 3, 4]]
    mixed = X.copy()
    mixed[:2, 0], mixed[:2, 1] = X[1::-1, 0], X[1::-1, 1]  # other rows from the same values
    for other in (
        (swapped, y, weight),
        (mixed, y, weight),
        (X[1:], y[1:], weight[1:]),
        (X, y),
        (y, X, weight),
    ):
        seen.add(fingerprint(*other))
    assert len(seen) == 1 + 3 * 200 + 5


def test_no_weights_are_those_of_one():
    assert fingerprint(X, y) == fingerprint(X, y, np.ones(200)) == fingerprint(X, y, 1.0)


def test_text_counts_by_its_characters():
    names = np.array(["ash", "birch", "oak"])[y]
    assert (
        fingerprint(X, names) == fingerprint(X, names.astype("U40")) == fingerprint(X, names.astype(object))
    )
    assert fingerprint(X, names) != fingerprint(X, np.where(names == "oak", "elm", names))
    frame = pd.DataFrame({"a": X[:, 0], "b": names, "c": pd.Categorical(names)})
    other = frame.assign(b=np.roll(names, 1))
    assert fingerprint(frame, y) == fingerprint(frame[::-1], y[::-1]) != fingerprint(other, y)


def test_values_of_a_mixed_column_count_as_what_they_are():
    column = np.array([["red"], [None], ["7"], [7], ["blue"]], dtype=object)
    parts = [int(fingerprint(column[[row]], [0]), 16) for row in range(5)]
    assert int(fingerprint(column, np.zeros(5)), 16) == sum(parts) % 2**64
    assert parts[2] != parts[3]


def test_missing_values_count():
    gaps = X.copy()
    gaps[0, 0] = np.nan
    assert fingerprint(gaps, y) == fingerprint(gaps.astype(np.float32), y) != fingerprint(X, y)


@pytest.mark.parametrize("rows", [[object()] * 3, [[1], [1, 2], [3]], np.array([1j, 2.0, 3.0])])
def test_other_rows_have_none(rows):
    assert fingerprint(rows, [1, 2, 3]) is None


def test_rows_are_hashed_in_parts():
    rng = np.random.default_rng(0)
    tall = rng.normal(size=(70_000, 2))
    target = np.zeros(70_000)
    assert (
        fingerprint(tall, target)
        == fingerprint(tall[::-1], target)
        == fingerprint(sp.csr_array(tall), target)
    )


@pytest.mark.parametrize(
    ("table", "size"),
    [
        (X, (200, 5, 8000)),
        (X.astype(np.float32), (200, 5, 4000)),
        (X.tolist(), (200, 5, 8000)),
        (pl.DataFrame(X).lazy(), (200, 5, 8000)),
        (sp.csr_array(np.eye(4)), (4, 4, 32)),
        (["ab", "c"], (2, 1, 16)),
        ([[1], [1, 2]], (2, 1, 16)),
        ([], (0, 1, 0)),
    ],
)
def test_the_size_of_a_table(table, size):
    assert table_size(table) == size


def test_what_only_numpy_can_read_has_the_size_and_the_fingerprint_of_its_array():
    class Readable:
        def __array__(self, dtype=None, copy=None):
            return np.arange(6.0).reshape(3, 2)

    assert table_size(Readable()) == table_size(np.arange(6.0).reshape(3, 2))
    assert fingerprint(Readable(), [0, 1, 2]) == fingerprint(np.arange(6.0).reshape(3, 2), [0, 1, 2])


def test_text_is_the_same_however_it_is_held():
    texts, y = np.array([["ab", "c"], ["d", "e"]]), [0, 1]
    wanted = fingerprint(texts, y)
    assert fingerprint(texts.astype("U9"), y) == wanted
    assert fingerprint(texts.astype(object), y) == wanted
    assert fingerprint(pd.DataFrame(texts, columns=["p", "q"]), y) == wanted
    assert fingerprint(pl.DataFrame(texts), y) == wanted
    assert fingerprint(np.array([["ac", "b"], ["d", "e"]]), y) != wanted  # a character in another column


def test_a_missing_value_has_no_sign():
    assert fingerprint([[np.nan], [1.0]], [0, 1]) == fingerprint([[-np.nan], [1.0]], [0, 1])


def test_weights_of_type_object_are_the_numbers_they_are():
    X, y, weight = np.eye(3), np.arange(3), np.array([0.5, 1.0, 2.0])
    assert fingerprint(X, y, weight.astype(object)) == fingerprint(X, y, weight)
