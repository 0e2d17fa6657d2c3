"""Which rows reach each node of a tree, and by what a node could be split: in NumPy, from the arrays alone.

The check of a certificate and the trace of a tree are made of these; no engine that grows trees uses them.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.solvers.trees.drawn_columns import drawn_columns, node_paths
from sixfold.solvers.trees.exhaustive_splits import ColumnSplit, split_table
from sixfold.solvers.trees.fitted_tree import FittedTree
from sixfold.solvers.trees.growth import GrowthRules

Array = NDArray[Any]


def route(tree: FittedTree, X: Any) -> NDArray[np.int64]:
    """Return the node at which each row ends, level by level."""
    nodes = np.zeros(X.shape[0], dtype=np.int64)
    moving = np.arange(X.shape[0]) if tree.column[0] >= 0 else np.arange(0)
    while moving.size:
        after = _next_nodes(tree, X, nodes, moving)
        going = after >= 0
        nodes[moving[going]] = after[going]
        moving = moving[going & (tree.column[after] >= 0)]
    return nodes


def _next_nodes(tree: FittedTree, X: Any, nodes: Array, moving: Array) -> Array:
    """Return where rows go from their nodes, -1 where there is no branch."""
    here = nodes[moving]
    column = tree.column[here]
    cells = sp.csr_matrix(X)[moving, column] if sp.issparse(X) else X[moving, column]
    x = np.asarray(cells, dtype=np.float64).ravel()
    unknown = np.isnan(x)
    numbers = tree.kinds[column] == 0
    code = np.where(numbers, x > tree.threshold[here], np.where(unknown, 0.0, x)).astype(np.int64)
    # The branches of a node are in order of their codes, so all branches are in order of (node, code).
    width = max(int(tree.code.max(initial=0)), int(code.max(initial=0))) + 2
    owner = np.repeat(np.arange(tree.node_count), np.diff(tree.first))
    keys = owner * width + tree.code
    wanted = here * width + np.where(code < 0, width - 1, code)
    place = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    found = np.where(keys[place] == wanted, tree.child[place], -1)
    return np.where(unknown, tree.unknown[here], found)


class NodeRows:
    """The rows that reach each node, made from where they end."""

    def __init__(self, tree: FittedTree, X: Any, labels: Array, weight: Array, nodes: Array) -> None:
        self.tree, self.X, self.labels, self.weight = tree, X, labels, weight
        self.order = np.argsort(nodes, kind="stable")  # depth first: a subtree is one stretch
        self.ends = nodes[self.order]
        count, classes = tree.totals.shape
        counted = np.bincount(nodes * classes + labels, weight, minlength=count * classes)
        self.totals = counted.reshape(count, classes)  # the weight of each class in each node
        self.rows = np.bincount(nodes, minlength=count)
        for depth in range(int(tree.depth.max()), 0, -1):
            level = np.flatnonzero(tree.depth == depth)
            np.add.at(self.totals, tree.parent[level], self.totals[level])
            np.add.at(self.rows, tree.parent[level], self.rows[level])

    def of(self, node: int) -> Array:
        """Return the rows of a node, those of all nodes below it included."""
        first, after = np.searchsorted(self.ends, [node, self.tree.last[node] + 1])
        return self.order[first:after]


class SplitTables:
    """The best split of each column that a node has looked at."""

    def __init__(self, nodes: NodeRows, rules: GrowthRules) -> None:
        self.nodes, self.rules = nodes, rules
        self.paths = [] if rules.max_columns is None else node_paths(nodes.tree, rules.seed)

    def of(self, node: int) -> list[ColumnSplit]:
        """Return the table of all columns, or of those drawn and of more until one has a split."""
        if self.rules.max_columns is None:
            return self._by(node, None)
        drawn = drawn_columns(self.paths[node], self.nodes.X.shape[1])
        table = self._by(node, list(islice(drawn, self.rules.max_columns)))
        return table or next(filter(None, (self._by(node, [column]) for column in drawn)), [])

    def _by(self, node: int, columns: list[int] | None) -> list[ColumnSplit]:
        nodes, rows = self.nodes, self.nodes.of(node)
        X, labels, weight = nodes.X[rows], nodes.labels[rows], nodes.weight[rows]
        kinds, classes = nodes.tree.kinds, nodes.tree.totals.shape[1]
        return split_table(X, kinds, labels, classes, weight, self.rules, columns)
