"""How the tests of trees call the native loops."""

from typing import NamedTuple

import numpy as np

from sixfold._native import core

FLAG = np.zeros(1, dtype=np.int32)

SPLIT, PURE, EXHAUSTED, LIMIT, STOPPED = range(5)


class Grown(NamedTuple):
    """What core.grow_tree returns."""

    column: np.ndarray
    threshold: np.ndarray
    first: np.ndarray
    code: np.ndarray
    child: np.ndarray
    unknown: np.ndarray
    reason: np.ndarray
    rows: np.ndarray
    totals: np.ndarray
    completed: bool

    def branches(self, node):
        part = slice(self.first[node], self.first[node + 1])
        return dict(zip(self.code[part].tolist(), self.child[part].tolist(), strict=True))


def grow(
    X,
    labels,
    kinds=None,
    *,
    weight=None,
    rows=None,
    criterion="entropy",
    binary=False,
    unknown_best=False,
    max_depth=-1,
    min_samples_split=2,
    min_samples_leaf=1,
    min_leaf_weight=0.0,
    min_impurity_decrease=0.0,
    max_columns=0,
    seed=0,
    seconds_left=np.inf,
    classes=None,
):
    """Return the tree that core.grow_tree grows."""
    X = X if isinstance(X, np.ndarray) else np.array(X, dtype=float)
    labels = np.asarray(labels, dtype=np.int32)
    kinds = np.zeros(X.shape[1]) if kinds is None else kinds
    return Grown(
        *core.grow_tree(
            X,
            np.asarray(kinds, dtype=np.uint8),
            labels,
            weight,
            rows,
            int(labels.max()) + 1 if classes is None else classes,
            criterion,
            binary,
            unknown_best,
            max_depth,
            min_samples_split,
            min_samples_leaf,
            min_leaf_weight,
            min_impurity_decrease,
            max_columns,
            seed,
            seconds_left,
            FLAG,
        )
    )


def assert_same_tree(a, b):
    for name, left, right in zip(Grown._fields, a, b, strict=True):
        np.testing.assert_array_equal(left, right, err_msg=name)
