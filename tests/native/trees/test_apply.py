"""The way of rows through a tree: where they end, and where values without a branch stop."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.grown_trees import grow
from sixfold._native import core


def apply(tree, X, kinds):
    kinds = np.asarray(kinds, dtype=np.uint8)
    return core.apply_tree(
        X, kinds, tree.column, tree.threshold, tree.first, tree.code, tree.child, tree.unknown
    )


def way(tree, row, kinds):
    """Return the end of one row, step by step."""
    node = 0
    while tree.column[node] >= 0:
        value = row[tree.column[node]]
        if np.isnan(value):
            after = int(tree.unknown[node])
        elif kinds[tree.column[node]]:
            after = tree.branches(node).get(value, -1)
        else:
            after = tree.branches(node).get(0 if value <= tree.threshold[node] else 1, -1)
        if after < 0:
            break
        node = after
    return node


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    dtype=st.sampled_from([np.float64, np.float32, np.uint8]),
    order=st.sampled_from("CF"),
    categories=st.booleans(),
    unknown=st.sampled_from(["none", "branch", "best"]),
)
def test_rows_end_where_their_values_lead(seed, dtype, order, categories, unknown):
    random = np.random.default_rng(seed)
    rows, columns = int(random.integers(1, 80)), int(random.integers(1, 5))
    kinds = random.integers(0, 2, columns) if categories else np.zeros(columns)
    X = random.integers(0, 8, (rows, columns)).astype(float)
    if unknown != "none":
        X[random.random(X.shape) < 0.2] = np.nan
    tree = grow(X, random.integers(0, 3, rows), kinds, unknown_best=unknown == "best", classes=3)
    # Values that the tree has not seen, unknown ones where it has none.
    queries = random.integers(0, 10, (150, columns)).astype(dtype)
    if dtype is not np.uint8:
        queries[random.random(queries.shape) < 0.2] = np.nan
        queries[random.random(queries.shape) < 0.1] = -1
        queries[random.random(queries.shape) < 0.1] += 0.5
    expected = [way(tree, row, kinds) for row in queries.astype(float)]
    ends = apply(tree, np.asarray(queries, order=order), kinds)
    assert ends.dtype == np.int32
    np.testing.assert_array_equal(ends, expected)
    assert apply(tree, queries[:1], kinds) == expected[0]
    np.testing.assert_array_equal(apply(tree, queries[::-3, :], kinds), expected[::-3])
    assert apply(tree, queries[:0], kinds).size == 0


@pytest.mark.parametrize("kind", [0, 1])
def test_training_rows_end_in_the_leaves_that_counted_them(kind):
    random = np.random.default_rng(0)
    X = random.integers(0, 40, (40_000, 3)).astype(float)  # enough for two threads
    X[random.random(X.shape) < 0.1] = np.nan
    labels = random.integers(0, 3, 40_000)
    tree = grow(X, labels, [kind] * 3, max_depth=9)
    ends = apply(tree, X, [kind] * 3)
    leaf = tree.column < 0
    np.testing.assert_array_equal(np.bincount(ends, minlength=leaf.size), np.where(leaf, tree.rows, 0))


def test_large_and_fractional_codes_have_no_branch():
    tree = grow([[0], [1], [2]], [0, 1, 0], [1])
    queries = np.array([[2.0], [3.0], [1.5], [-1.0], [1e300], [np.inf], [-np.inf], [np.nan], [2.0**32 + 1]])
    assert apply(tree, queries, [1]).tolist() == [3, 0, 0, 0, 0, 0, 0, 0, 0]


def test_unknown_numbers_stop_where_none_were_met():
    tree = grow([[0], [1]], [0, 1])
    assert apply(tree, np.array([[np.nan], [0.5], [0.6]]), [0]).tolist() == [0, 1, 2]


def test_a_number_is_compared_in_double_precision():
    tree = grow([[0.1], [0.1 + 1e-12]], [0, 1])
    assert apply(tree, np.array([[0.1]], dtype=np.float32), [0]).tolist() == [2]  # 0.10000000149


@pytest.mark.parametrize(
    "change",
    [
        {"column": [1, -1, -1]},
        {"column": [-2, -1, -1]},
        {"child": [1, 3]},
        {"child": [0, 1]},
        {"child": [1, -1]},
        {"unknown": [3, -1, -1]},
        {"unknown": [-1, 1, -1]},
        {"unknown": [-2, -1, -1]},
        {"first": [0, 2, 3, 2]},
        {"first": [0, 3, 2, 2]},
        {"first": [-1, 2, 2, 2]},
        {"first": [0, 2, 2]},
        {"threshold": [0.5]},
        {"code": [0]},
    ],
)
def test_a_tree_that_leads_out_of_its_arrays_is_refused(change):
    tree = grow([[0], [1]], [0, 1])
    broken = {name: np.array(value, dtype=getattr(tree, name).dtype) for name, value in change.items()}
    with pytest.raises(ValueError, match="tree"):
        apply(tree._replace(**broken), np.array([[0.0], [1.0], [np.nan]]), [0])


def test_a_broken_tree_is_refused_by_the_single_row_that_meets_it():
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 2))
    tree = grow(X, random.integers(0, 2, 200))
    child = np.zeros_like(tree.child)
    with pytest.raises(ValueError, match="tree"):
        apply(tree._replace(child=child), X[:1], [0, 0])
