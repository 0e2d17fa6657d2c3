"""The tasks of growing trees, and the share of nodes whose split is worse than an exhaustive search's.

A tree is judged at some of its splits, evenly spread. The rows of such a node are found by walking down the
path, every column is sorted, and the average entropy of every threshold there is is computed in double
precision: a split whose own average is larger than the least of them is an error.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import image_labels, images

Array = NDArray[Any]

JUDGED = 30
ENTROPY_ROUNDING = 1e-9  # of an average entropy in bits


class TreeTask(NamedTuple):
    """The data of a case: rows, labels, weights, and how deep the tree may be."""

    X: Array
    y: Array
    depth: int | None = None
    weight: Array | None = None

    def in_single_precision(self) -> TreeTask:
        """Return the same rows as float32, into which scikit-learn turns whatever it gets."""
        return self._replace(X=self.X.astype(np.float32))


class Splits(NamedTuple):
    """A binary tree: the column and threshold of each node (-1 in a leaf), and its children."""

    column: Array
    threshold: Array
    left: Array
    right: Array


def informative(
    rows: int, columns: int, useful: int, classes: int, depth: int | None, quick: bool
) -> TreeTask:
    """Return a table some of whose columns tell the classes apart."""
    from sklearn.datasets import make_classification

    if quick:
        rows, columns, useful = 600, 8, 5
    X, y = make_classification(
        rows, columns, n_informative=useful, n_classes=classes, n_redundant=0, random_state=0
    )
    return TreeTask(X, y, depth)


def weighted(rows: int, columns: int, useful: int, depth: int | None, quick: bool) -> TreeTask:
    """Return such a table whose rows count differently."""
    task = informative(rows, columns, useful, 2, depth, quick)
    return task._replace(weight=np.random.default_rng(0).uniform(0.5, 2.0, len(task.X)))


def fashion(depth: int, quick: bool) -> TreeTask:
    """Return the 60,000 images as bytes."""
    rows = 300 if quick else 60_000
    return TreeTask(images("train", rows, np.uint8), image_labels("train", rows), depth)


def rows_to_predict(quick: bool) -> TreeTask:
    """Return 200,000 rows to predict for, in single precision; trees are grown on the first tenth."""
    return informative(200_000, 100, 30, 2, None, quick).in_single_precision()


def iris(quick: bool) -> TreeTask:
    """Return a small table."""
    from sklearn.datasets import load_iris

    return TreeTask(*load_iris(return_X_y=True))


def share_worse(task: TreeTask, splits: Splits) -> float:
    """Return the share of the judged nodes that have a better split than their own."""
    nodes = np.flatnonzero(splits.column >= 0)
    judged = nodes[np.unique(np.linspace(0, nodes.size - 1, JUDGED).astype(int))] if nodes.size else nodes
    weight = np.ones(len(task.X)) if task.weight is None else task.weight
    above = parents(splits)
    worse = 0
    for node in judged.tolist():
        rows = rows_reaching(splits, above, node, task.X)
        own = task.X[rows, splits.column[node]] <= splits.threshold[node]
        chosen = _averages(np.argsort(~own, kind="stable"), ~own, task.y[rows], weight[rows])
        best = min(_best(task.X[rows, j], task.y[rows], weight[rows]) for j in range(task.X.shape[1]))
        worse += not (chosen.size and chosen.min() <= best + ENTROPY_ROUNDING)
    return worse / max(judged.size, 1)


def parents(splits: Splits) -> Array:
    """Return the node above each node, -1 above the root."""
    above = np.full(splits.column.size, -1)
    inner = np.flatnonzero(splits.column >= 0)
    above[splits.left[inner]] = inner
    above[splits.right[inner]] = inner
    return above


def rows_reaching(splits: Splits, above: Array, node: int, X: Array) -> Array:
    """Return the rows that reach a node."""
    rows = np.arange(len(X))
    way = [node]
    while above[way[-1]] >= 0:
        way.append(above[way[-1]])
    for here, below in zip(way[:0:-1], way[-2::-1], strict=True):
        left = X[rows, splits.column[here]] <= splits.threshold[here]
        rows = rows[left if below == splits.left[here] else ~left]
    return rows


def _best(values: Array, labels: Array, weight: Array) -> float:
    """Return the least average entropy of all thresholds of a column, in bits."""
    return float(_averages(np.argsort(values, kind="stable"), values, labels, weight).min(initial=np.inf))


def _averages(order: Array, values: Array, labels: Array, weight: Array) -> Array:
    """Return the average entropy for each place where the values, taken in this order, change."""
    values, labels, weight = values[order], labels[order], weight[order]
    ends = np.flatnonzero(values[1:] != values[:-1])
    children = np.zeros(ends.size)
    below, total = np.zeros(ends.size), 0.0
    for label in np.unique(labels):
        sums = np.cumsum(np.where(labels == label, weight, 0.0))
        left = sums[ends]
        children -= _xlogx(left) + _xlogx(sums[-1] - left)
        below += left
        total += sums[-1]
    return (children + _xlogx(below) + _xlogx(total - below)) / total


def _xlogx(x: Array) -> Array:
    return x * np.log2(np.where(x > 0, x, 1.0))


def share_misrouted(task: TreeTask, splits: Splits, ends: Array) -> float:
    """Return the share of the first rows that were said to end at another node than they do."""
    some = slice(0, 2000)
    node = np.zeros(len(task.X[some]), dtype=np.intp)
    while (inner := splits.column[node] >= 0).any():
        rows = np.flatnonzero(inner)
        here = node[rows]
        left = task.X[some][rows, splits.column[here]] <= splits.threshold[here]
        node[rows] = np.where(left, splits.left[here], splits.right[here])
    return float(np.mean(node != ends[some]))
