"""A grown tree with what is asked of it: shares, impurities, and scikit-learn's names for its arrays.

The arrays of :class:`~sixfold.solvers.trees.tree.Tree` say everything about a tree with any number of
branches. One in which every node has two children, left for x <= threshold and right otherwise, has
scikit-learn's arrays as well, so that what reads ``model.tree_`` there reads it here; for its sake
``threshold`` is -2 in a leaf, which is no threshold: ask ``is_leaf``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.errors import InputError
from sixfold.solvers.trees.impurity import impurity
from sixfold.solvers.trees.tree import NO_NODE, Tree

Array = NDArray[Any]

NO_COLUMN = -2  # what scikit-learn has in a leaf


@dataclass(frozen=True, eq=False)
class FittedTree(Tree):
    """A tree that a classifier has grown.

    Attributes
    ----------
    criterion : str
        What impurities are: entropies, Gini indices, or 1 for what is not of one class.
    unit : float
        What a bit is in the unit of the impurities: 1, or ln 2 for nats.
    """

    criterion: str = "entropy"
    unit: float = 1.0

    @classmethod
    def of(cls, tree: Tree, criterion: str, unit: float) -> FittedTree:
        """Return a grown tree as one that knows its criterion."""
        arrays = {one.name: getattr(tree, one.name) for one in fields(Tree)}
        arrays["threshold"] = np.where(tree.is_leaf, float(NO_COLUMN), tree.threshold)
        return cls(**arrays, criterion=criterion, unit=unit)

    @property
    def unit_name(self) -> str:
        """Return what impurities are in: "bits" or "nats", else the criterion itself."""
        if self.criterion in ("gini", "homogeneous"):
            return self.criterion
        return "bits" if self.unit == 1.0 else "nats"

    # -- what rows get ---------------------------------------------------------------------------------------

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """Return the share of each class in the weight of each node."""
        return self.totals / self.weight[:, None]

    @cached_property
    def answer(self) -> NDArray[np.intp]:
        """Return the class with the largest total in each node, the first of equal ones."""
        return self.totals.argmax(axis=1)

    @cached_property
    def impurity(self) -> NDArray[np.float64]:
        """Return the impurity of each node."""
        return self.unit * impurity(self.totals, self.criterion)

    def ways_to(self, nodes: Array) -> tuple[Array, Array]:
        """Return the nodes on the way to each of these, one way after the other, and where each begins."""
        ends = np.cumsum(self.depth[nodes] + 1)
        way = np.empty(int(ends[-1]) if ends.size else 0, dtype=np.int64)
        place, current = ends - 1, nodes
        while place.size:
            way[place] = current
            current = self.parent[current]
            inside = current != NO_NODE
            place, current = place[inside] - 1, current[inside]
        return way, np.concatenate([[0], ends])

    # -- scikit-learn's names --------------------------------------------------------------------------------

    @property
    def n_leaves(self) -> int:
        """Return the number of leaves."""
        return self.leaf_count

    @property
    def capacity(self) -> int:
        """Return how many nodes there is room for: as many as there are."""
        return self.node_count

    @property
    def max_depth(self) -> int:
        """Return the largest number of splits above a node."""
        return int(self.depth.max())

    @property
    def n_features(self) -> int:
        """Return the number of columns."""
        return self.kinds.size

    @property
    def n_classes(self) -> Array:
        """Return the number of classes, for each of the outputs of which there is one."""
        return np.array([self.totals.shape[1]])

    @property
    def max_n_classes(self) -> int:
        """Return the number of classes."""
        return self.totals.shape[1]

    @property
    def n_outputs(self) -> int:
        """Return 1: rows have one label."""
        return 1

    @property
    def feature(self) -> Array:
        """Return the column that a node asks for, -2 in a leaf."""
        return np.where(self.is_leaf, NO_COLUMN, self.column).astype(np.int64)

    @property
    def n_node_samples(self) -> Array:
        """Return how many training rows reached each node."""
        return self.rows

    @property
    def weighted_n_node_samples(self) -> Array:
        """Return their total weight."""
        return self.weight

    @property
    def value(self) -> Array:
        """Return the share of each class in each node, of shape (nodes, 1, classes)."""
        return self.shares[:, None, :]

    @property
    def children_left(self) -> Array:
        """Return the child for x <= threshold, -1 in a leaf."""
        return self._side(0)

    @property
    def children_right(self) -> Array:
        """Return the child for x > threshold, -1 in a leaf."""
        return self._side(1)

    @property
    def missing_go_to_left(self) -> Array:
        """Return where unknown values go left."""
        return ((self.unknown >= 0) & (self.unknown == self.children_left)).astype(np.uint8)

    def _side(self, branch: int) -> Array:
        inner = np.flatnonzero(~self.is_leaf)
        two = np.diff(self.first)[inner] == 2
        if not (two & (self.kinds[self.column[inner]] == 0)).all() or not self._unknown_within(inner):
            raise InputError(
                "Some nodes of this tree have other branches than left for x <= threshold and right for the "
                "rest: categories, or unknown values. children_left and children_right are for trees of "
                "numbers without; see tree_.children(node) and tree_.branches(node)."
            )
        children = np.full(self.node_count, NO_NODE, dtype=np.int64)
        children[inner] = self.child[self.first[inner] + branch]
        return children

    def _unknown_within(self, inner: Array) -> bool:
        """Return whether unknown values have no child of their own."""
        own = self.unknown[inner]
        start = self.first[inner]
        return bool(((own < 0) | (own == self.child[start]) | (own == self.child[start + 1])).all())
