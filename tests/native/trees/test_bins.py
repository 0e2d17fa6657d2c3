"""Columns in bins, bounds inside of them and sorted small nodes grow the tree of an exhaustive search.

Tables are shaped so that one part of the fast search after the other decides; the oracle tries every split.
"""

import numpy as np
import pytest

from oracles import trees as tree_oracle
from oracles.grown_trees import grow

SORTED = 1024  # rows of a node from which on its columns are in bins


def assert_oracles_tree(X, labels, classes, weight=None, **rules):
    kinds = np.zeros(X.shape[1], dtype=np.uint8)
    tree = grow(X, labels, kinds, weight=weight, classes=classes, **rules)
    if rules.get("max_depth") == -1:
        rules["max_depth"] = None
    nodes = tree_oracle.grow(X, kinds, labels, classes, weight, **rules)
    assert tree.column.tolist() == [node["column"] for node in nodes]
    np.testing.assert_array_equal(tree.threshold, [node["threshold"] for node in nodes])
    assert tree.reason.tolist() == [node["reason"] for node in nodes]
    assert tree.unknown.tolist() == [node["unknown"] for node in nodes]
    np.testing.assert_allclose(tree.totals, [node["totals"] for node in nodes], rtol=1e-12)


def labels_of(X, classes, rng, noise=0.3):
    """Classes that depend on the ranks of two columns, so that no scale matters, with some noise."""
    ranks = np.argsort(np.argsort(np.nan_to_num(X.astype(np.float64)), axis=0), axis=0) / len(X)
    score = ranks[:, 0] + ranks[:, -1] ** 2 + noise * rng.random(len(X))
    return np.minimum(np.argsort(np.argsort(score)) * classes // len(X), classes - 1).astype(np.int32)


def distinct(rng, n):
    return rng.normal(size=n)


def heavy(rng, n):
    return np.where(rng.random(n) < 0.7, 0.25, rng.normal(size=n))


def two_heavy_neighbours(rng, n):
    low = 1.0 + np.spacing(1.0) * rng.integers(0, 2, n)
    return np.where(rng.random(n) < 0.8, low, rng.normal(size=n))


def few(rng, n):
    return rng.integers(-2, 3, n) * 0.1


def three_hundred(rng, n):
    return rng.integers(0, 300, n).astype(np.float64)


def skewed(rng, n):
    return np.exp(40 * rng.normal(size=n))


def largest(rng, n):
    return rng.choice([-1.7e308, -1e308, 1e308, 1.7e308], n) * rng.choice([1.0, 0.5], n)


def subnormal(rng, n):
    return rng.integers(-600, 600, n) * 5e-324


def crowded(rng, n):
    return np.concatenate([[1e9, -1e9], 1 + 1e-9 * rng.normal(size=n - 2)])[:n]


COLUMNS = [distinct, heavy, two_heavy_neighbours, few, three_hundred, skewed, largest, subnormal, crowded]


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("weighted", [False, True])
def test_values_of_any_spread_are_split_exactly(column, weighted):
    rng = np.random.default_rng(0)
    n = SORTED + 188
    X = np.column_stack([column(rng, n), rng.normal(size=n), column(rng, n)])
    weight = rng.uniform(0.5, 2.0, n) if weighted else None
    assert_oracles_tree(X, labels_of(X, 3, rng), 3, weight, max_depth=5)


@pytest.mark.parametrize("n", [SORTED - 1, SORTED, SORTED + 1])
@pytest.mark.parametrize("criterion", ["entropy", "gini"])
def test_nodes_on_either_side_of_sorting_are_split_alike(n, criterion):
    rng = np.random.default_rng(n)
    X = np.round(rng.normal(size=(n, 3)), 2)
    assert_oracles_tree(X, labels_of(X, 2, rng), 2, criterion=criterion)


@pytest.mark.parametrize("classes", [1, 2, 3, 30, 300])
@pytest.mark.parametrize("criterion", ["entropy", "gini"])
def test_any_number_of_classes(classes, criterion):
    rng = np.random.default_rng(classes)
    X = rng.normal(size=(SORTED + 88, 2))
    assert_oracles_tree(X, labels_of(X, classes, rng), classes, criterion=criterion, max_depth=6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])
@pytest.mark.parametrize("order", ["C", "F"])
def test_any_type_and_layout(dtype, order):
    rng = np.random.default_rng(3)
    X = (60 * np.abs(rng.normal(size=(SORTED + 100, 3)))).astype(dtype, order=order)
    assert_oracles_tree(X, labels_of(X, 3, rng), 3, max_depth=6)


@pytest.mark.parametrize("unknown_best", [False, True])
@pytest.mark.parametrize("criterion", ["entropy", "gini"])
@pytest.mark.parametrize("weighted", [False, True])
def test_unknown_values_in_either_way(unknown_best, criterion, weighted):
    rng = np.random.default_rng(4)
    X = np.round(rng.normal(size=(SORTED + 100, 3)), 1)
    labels = labels_of(X, 3, rng)
    X[rng.random(X.shape) < [0.02, 0.3, 0.9]] = np.nan
    weight = rng.uniform(0.5, 2.0, len(X)) if weighted else None
    rules = {"unknown_best": unknown_best, "criterion": criterion, "max_depth": 5}
    assert_oracles_tree(X, labels, 3, weight, **rules)
    assert_oracles_tree(X, labels, 3, weight, **rules, min_samples_leaf=20)


@pytest.mark.parametrize("limits", [{"min_samples_leaf": 40}, {"min_leaf_weight": 33.3}])
@pytest.mark.parametrize("weighted", [False, True])
def test_leaves_are_as_large_as_they_have_to_be(limits, weighted):
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.normal(size=1200), heavy(rng, 1200)])
    weight = rng.uniform(0.1, 3.0, 1200) if weighted else None
    assert_oracles_tree(X, labels_of(X, 2, rng), 2, weight, **limits)


def test_weights_of_sixteen_orders_of_magnitude():
    rng = np.random.default_rng(6)
    X = np.round(rng.normal(size=(1200, 2)), 1)
    labels = labels_of(X, 4, rng)
    weight = 10.0 ** rng.uniform(-8, 8, 1200)
    for criterion in ("entropy", "gini"):
        assert_oracles_tree(X, labels, 4, weight, criterion=criterion, max_depth=1)


@pytest.mark.parametrize("n", [SORTED // 2, SORTED + 476])
@pytest.mark.parametrize("criterion", ["entropy", "gini"])
def test_ties_go_to_the_first_column_and_the_first_threshold(n, criterion):
    rng = np.random.default_rng(7)
    x = rng.normal(size=n)
    order, end = np.argsort(x), n // 4
    labels = np.zeros(n, dtype=np.int32)
    labels[order[:end]] = labels[order[-end:]] = 1  # two thresholds are equally good
    X = np.column_stack([rng.normal(size=n), -x, x, x])
    tree = grow(X, labels, max_depth=1, criterion=criterion)
    assert tree.column[0] == 1
    assert tree.threshold[0] == pytest.approx(-(x[order[-end - 1]] + x[order[-end]]) / 2, rel=1e-15)
    assert_oracles_tree(X, labels, 2, max_depth=2, criterion=criterion)


@pytest.mark.parametrize("children", ["two", "three"])
def test_a_node_s_rows_keep_their_order_where_it_is_split(children):
    """Rows are grouped by class, which histograms of their children rely on, down to the sorted nodes."""
    rng = np.random.default_rng(8)
    X = np.column_stack([np.exp(4 * rng.normal(size=4 * SORTED)), 1e6 + rng.normal(size=4 * SORTED)])
    labels = labels_of(X, 7, rng)
    if children == "three":
        X[rng.random(X.shape) < 0.1] = np.nan
    assert_oracles_tree(X, labels, 7, max_depth=3)


def test_rows_that_are_equal_in_a_bin_that_is_not_are_exhausted():
    x = np.concatenate([np.full(600, 0.5), np.linspace(0.0, 1.0, 3000)])
    labels = np.concatenate([np.arange(600) % 2, np.full(3000, 2)]).astype(np.int32)
    tree = grow(x[:, None], labels)
    mixed = np.flatnonzero((tree.totals[:, :2].min(axis=1) == 300) & (tree.column < 0))
    assert mixed.size == 1
    assert tree.rows[mixed[0]] in (600, 601)
    assert_oracles_tree(x[::3, None], labels[::3].copy(), 3)


def scores(sizes, children, criterion):
    """Return what each of some splits is worth: weights of the two children, and of the classes in each."""
    if criterion == "gini":
        return sizes.sum(axis=1) - (np.square(children) / np.maximum(sizes, 1e-300)[:, :, None]).sum((1, 2))
    return tree_oracle.f(sizes).sum(axis=1) - tree_oracle.f(children).sum(axis=(1, 2))


def best_split(X, labels, weight, criterion):
    """Return column and threshold of the first split within a tie of the least entropy, by sorting."""
    one_hot = np.eye(labels.max() + 1)[labels] * weight[:, None]
    total, found = one_hot.sum(axis=0), []
    for column in X.T:
        order = np.argsort(column, kind="stable")
        left = np.cumsum(one_hot[order], axis=0)[:-1]
        children = np.stack([left, np.maximum(total - left, 0.0)], axis=1)
        score = scores(children.sum(axis=2), children, criterion)
        found.append(np.where(column[order][1:] > column[order][:-1], score, np.inf))
    close = np.array(found) <= np.min(found) + 1e-12 * total.sum()
    column, at = np.argwhere(close)[0]
    values = np.sort(X[:, column])
    return column, values[at] / 2 + values[at + 1] / 2


def assert_best_splits(X, labels, weight, criterion, max_depth):
    tree = grow(X, labels, weight=weight, criterion=criterion, max_depth=max_depth)
    weight = np.ones(len(X)) if weight is None else weight
    rows_of = {0: np.arange(len(X))}
    for node in np.flatnonzero(tree.column >= 0):
        rows = rows_of.pop(node)
        column, threshold = best_split(X[rows], labels[rows], weight[rows], criterion)
        assert (tree.column[node], tree.threshold[node]) == (column, threshold)
        left = X[rows, column] <= threshold
        for code, child in tree.branches(node).items():
            rows_of[child] = rows[left == (code == 0)]
    assert tree.column[0] >= 0


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_histograms_left_over_by_a_sibling_find_the_best_split(classes, weighted):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(20_000, 6))
    labels = labels_of(X, classes, rng)
    weight = rng.uniform(0.5, 2.0, len(X)) if weighted else None
    assert_best_splits(X, labels, weight, "entropy", max_depth=4)


@pytest.mark.parametrize("classes", [2, 12])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("order", ["C", "F"])
def test_bytes_find_the_best_split(classes, weighted, order):
    rng = np.random.default_rng(11)
    X = np.asarray(rng.integers(0, 256, (12_000, 70)) * (rng.random(70) < 0.6), dtype=np.uint8, order=order)
    X[:, 1] = X[:, 0] // 2 + rng.integers(0, 9, 12_000).astype(np.uint8)
    labels = labels_of(X, classes, rng)
    weight = rng.uniform(0.5, 2.0, len(X)) if weighted else None
    assert_best_splits(X, labels, weight, "entropy", max_depth=4)


@pytest.mark.parametrize("criterion", ["entropy", "gini"])
@pytest.mark.parametrize("weighted", [False, True])
def test_bins_of_hundreds_of_rows_are_searched_like_small_ones(criterion, weighted):
    rng = np.random.default_rng(9)
    n = 60_000
    X = np.column_stack([distinct(rng, n), skewed(rng, n), crowded(rng, n), heavy(rng, n), largest(rng, n)])
    X[:, 4] *= rng.random(n)
    # Labels change inside of bins: at ranks that no sample tells.
    ranks = X.argsort(axis=0).argsort(axis=0)
    labels = (ranks[:, 0] > 41_234).astype(np.int32) + (ranks[:, 1] % 20_011 > 12_345)
    labels = np.where(rng.random(n) < 0.3, rng.integers(0, 3, n), labels).astype(np.int32)
    weight = rng.uniform(0.5, 2.0, n) if weighted else None
    assert_best_splits(X, labels, weight, criterion, max_depth=4)


def test_rows_that_do_not_count_and_three_children_keep_codes_and_rows_together():
    rng = np.random.default_rng(10)
    X = np.round(rng.normal(size=(2400, 3)), 2)
    labels = labels_of(X, 3, rng)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 1] = rng.integers(0, 4, 2400)
    kinds = np.array([0, 1, 0], dtype=np.uint8)
    rows = np.flatnonzero(rng.random(2400) < 0.7)
    tree = grow(X, labels, kinds, rows=rows, max_depth=3)
    same = grow(X[rows], labels[rows], kinds, max_depth=3)
    nodes = tree_oracle.grow(X[rows], kinds, labels[rows], 3, None, max_depth=3)
    for grown in (tree, same):
        assert grown.column.tolist() == [node["column"] for node in nodes]
        np.testing.assert_array_equal(grown.threshold, [node["threshold"] for node in nodes])
        np.testing.assert_array_equal(grown.totals, [node["totals"] for node in nodes])


@pytest.mark.parametrize("order", ["C", "F"])
def test_drawn_columns_of_bytes_and_of_numbers_grow_the_same_tree(order):
    rng = np.random.default_rng(12)
    X = np.asarray(rng.integers(0, 90, (5000, 80)), dtype=np.uint8, order=order)
    labels = labels_of(X, 3, rng)
    rows = np.flatnonzero(rng.random(5000) < 0.8)
    for columns in (33, 79, 0):
        rules = {"max_depth": 5, "max_columns": columns, "seed": 4, "rows": rows}
        bytes_, numbers = grow(X, labels, **rules), grow(X.astype(np.float64), labels, **rules)
        for mine, same in zip(bytes_, numbers, strict=True):
            np.testing.assert_array_equal(mine, same)
