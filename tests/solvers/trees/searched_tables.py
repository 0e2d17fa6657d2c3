"""Tiny tables of every kind for tests of searches, and their best trees by brute force."""

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

from oracles import optimal_trees
from sixfold.solvers.trees.growth import TrainingRows
from sixfold.solvers.trees.search_columns import (
    BRANCH_EACH,
    ORDERED,
    WITH_UNKNOWN,
    fitted_tree,
    search_columns,
)

number = st.one_of(
    st.integers(-2, 2).map(float),
    st.sampled_from([0.0, -0.0, 0.5, 1.0 + 2**-23, 1e30, -3e38, 3e38, 1e-45, np.nan, np.nan]),
    st.floats(allow_infinity=False, width=32),
)
code = st.one_of(st.integers(0, 4).map(float), st.just(np.nan))


@st.composite
def training_rows(draw, most_rows=9, most_columns=3):
    """Draw rows of numbers and categories, dense or sparse, of which some may not count."""
    n, d = draw(st.integers(1, most_rows)), draw(st.integers(1, most_columns))
    storage = draw(st.sampled_from(["float64", "float32", "sparse", "uint8"]))
    kinds = draw(st.lists(st.integers(0, 0 if storage == "sparse" else 1), min_size=d, max_size=d))
    columns = [draw(st.lists(code if kind else number, min_size=n, max_size=n)) for kind in kinds]
    if d > 1 and draw(st.booleans()):
        columns[-1], kinds[-1] = columns[0], kinds[0]  # two columns say the same
    X = np.array(columns).T
    if draw(st.booleans()):
        X = X[draw(st.lists(st.integers(0, n - 1), min_size=n, max_size=n))]  # some rows several times
    classes = draw(st.integers(1, 3))
    labels = draw(st.lists(st.integers(0, classes - 1), min_size=n, max_size=n))
    weight = draw(st.none() | st.lists(st.sampled_from([0.0, 0.25, 1.0, 3.0]), min_size=n, max_size=n))
    if weight is not None:
        weight[0] = weight[0] or 1.0
        weight = np.array(weight)
    kinds, labels = np.array(kinds, dtype=np.uint8), np.array(labels, dtype=np.int32)
    return TrainingRows.of(stored(X, storage), kinds, labels, classes, weight)


def stored(X, storage):
    if storage == "sparse":
        return sp.csr_array(X.astype(np.float32) if X.shape[0] % 2 else X)
    if storage == "uint8":
        return np.nan_to_num(np.abs(X), nan=7.0, posinf=200.0).clip(0, 200).astype(np.uint8)
    return X.astype(storage)


def written_out(rows):
    """Return the whole table as float64."""
    X = rows.X.toarray() if sp.issparse(rows.X) else rows.X
    return np.asarray(X, dtype=np.float64)


def counting(rows):
    """Return which rows count, and their labels and weights."""
    chosen = np.arange(rows.labels.size) if rows.rows is None else rows.rows
    weight = np.ones(rows.labels.size) if rows.weight is None else rows.weight
    return chosen, rows.labels[chosen], weight[chosen]


def best_tree(rows, binary, unknown_best, objective, depth, leaves=0, penalty=0.0, scale=None):
    """Return search columns, fitted tree and cost of the best tree."""
    columns = search_columns(rows, binary, unknown_best)
    _, labels, weight = counting(rows)
    weight = None if rows.weight is None else weight
    given = columns.ranks, columns.kinds, labels, weight, rows.classes
    found = optimal_trees.search_tree(*given, objective, depth, leaves, penalty, scale=scale)
    column, rank, cost = found[:3]
    return columns, fitted_tree(columns, column, rank, rows), cost


def cost_of(totals, objective, penalty=0.0):
    """Return the cost of leaves with these class totals."""
    if objective == "error":
        each = totals.sum(axis=1) - totals.max(axis=1)
    else:
        share = totals / totals.sum(axis=1, keepdims=True)
        each = -(totals * np.log(np.where(share > 0, share, 1.0))).sum(axis=1)
    return each.sum() + penalty * len(totals)


def leaf_totals(tree, rows):
    """Return the class totals of the leaves at which the rows that count end, from the rows alone."""
    chosen, labels, weight = counting(rows)
    end = tree.apply(rows.X)[chosen]
    totals = np.zeros((tree.node_count, rows.classes))
    np.add.at(totals, (end, labels), weight)
    return totals[np.unique(end)]


def questions_of(ranks, kinds):
    """Yield the number of the search column and t of every question."""
    for k, (r, kind) in enumerate(zip(ranks, kinds, strict=True)):
        first = 1 if kind == WITH_UNKNOWN else 0
        end = {ORDERED: r.max(), WITH_UNKNOWN: r.max() + 1, BRANCH_EACH: 1}[int(kind)]
        yield from ((k, t) for t in range(first, end))
