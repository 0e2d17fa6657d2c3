"""Which rows reach each node of a tree, and by what a node could be split: what the trace of a tree shows."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.solvers.trees.drawn_columns import drawn_columns, node_paths
from sixfold.solvers.trees.exhaustive_splits import ColumnSplit, split_table
from sixfold.solvers.trees.fitted_tree import FittedTree
from sixfold.solvers.trees.growth import GrowthRules

Array = NDArray[Any]


class NodeRows:
    """The rows that reach each node."""

    def __init__(self, tree: FittedTree, X: Any, labels: Array, weight: Array) -> None:
        self.tree, self.X, self.labels, self.weight = tree, X, labels, weight
        nodes = tree.apply(X)
        self.order = np.argsort(nodes, kind="stable")  # depth first: a subtree is one stretch
        self.ends = nodes[self.order]

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
