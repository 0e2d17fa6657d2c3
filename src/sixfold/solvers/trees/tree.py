"""A decision tree as flat arrays, and the way of a row through it.

Nodes are numbered depth first. At a split the value of one column is looked up among the node's branches:

    numbers      branch 0 where x <= threshold, else branch 1
    categories   the branch of the category's code
    unknown      the node's branch for unknown values

A value without a branch, a category or an unknown that the node did not meet when the tree was grown, stops
there: the node's own class totals answer. So a row always ends at some node, and that node's totals are what
the tree knows about it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold._native import core

Array = NDArray[Any]

NO_NODE = -1


class Reason(IntEnum):
    """Why a node was not split."""

    SPLIT = 0
    PURE = 1
    EXHAUSTED = 2  # its rows are equal in every column
    LIMIT = 3  # depth, rows, gain or the size of leaves
    STOPPED = 4  # by the time limit or Ctrl-C
    PRUNED = 5


@dataclass(frozen=True, eq=False)  # arrays have no one answer to whether they are equal
class Tree:
    """A tree of any number of branches a node.

    Attributes
    ----------
    kinds : ndarray of uint8, shape (columns,)
        0 for numbers, 1 for categories.
    column : ndarray of int32, shape (nodes,)
        The column a node asks for, -1 in a leaf.
    threshold : ndarray of float64, shape (nodes,)
        Where numbers are split; NaN elsewhere. Infinity sends all known values to branch 0.
    first : ndarray of int64, shape (nodes + 1,)
        Node i has the branches first[i] to first[i + 1].
    code, child : ndarray of int32, shape (branches,)
        What a branch is for (0 and 1 for numbers, the category otherwise, in order) and where it leads;
        several categories may lead to one child.
    unknown : ndarray of int32, shape (nodes,)
        Where unknown values go, -1 where the node has met none.
    reason : ndarray of uint8, shape (nodes,)
        See :class:`Reason`.
    rows : ndarray of int64, shape (nodes,)
        How many training rows reached the node.
    totals : ndarray of float64, shape (nodes, classes)
        The weight of each class among them.
    """

    kinds: NDArray[np.uint8] = field(repr=False)
    column: NDArray[np.int32]
    threshold: NDArray[np.float64]
    first: NDArray[np.int64]
    code: NDArray[np.int32]
    child: NDArray[np.int32]
    unknown: NDArray[np.int32]
    reason: NDArray[np.uint8]
    rows: NDArray[np.int64]
    totals: NDArray[np.float64]

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle holds: the arrays, not what was worked out from them."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @property
    def node_count(self) -> int:
        """Return the number of nodes."""
        return self.column.size

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Return which nodes are not split."""
        return self.column < 0

    @property
    def leaf_count(self) -> int:
        """Return the number of leaves."""
        return int(self.is_leaf.sum())

    @property
    def weight(self) -> NDArray[np.float64]:
        """Return the total weight of the rows that reached each node."""
        return self.totals.sum(axis=1)

    def branches(self, node: int) -> dict[int, int]:
        """Return where each code of a node leads, unknown values apart."""
        part = slice(self.first[node], self.first[node + 1])
        return dict(zip(self.code[part].tolist(), self.child[part].tolist(), strict=True))

    def children(self, node: int) -> list[int]:
        """Return the children of a node in order, each once."""
        reached = set(self.branches(node).values())
        if self.unknown[node] >= 0:
            reached.add(int(self.unknown[node]))
        return sorted(reached)

    @cached_property
    def parent(self) -> NDArray[np.int32]:
        """Return the node above each node, -1 above the root."""
        above = np.full(self.node_count, NO_NODE, dtype=np.int32)
        above[self.child] = np.repeat(np.arange(self.node_count, dtype=np.int32), np.diff(self.first))
        asked = np.flatnonzero(self.unknown >= 0)
        above[self.unknown[asked]] = asked
        return above

    @cached_property
    def depth(self) -> NDArray[np.int32]:
        """Return how many splits lie above each node."""
        step = np.ones(self.node_count, dtype=np.int32)
        step[0] = 0
        return self.from_root(step, np.add)

    @cached_property
    def last(self) -> NDArray[np.int32]:
        """Return the last node below each node, itself for a leaf: node i has i to last[i] under it."""
        end = np.arange(self.node_count, dtype=np.int32)
        np.maximum.at(end, self.parent[1:], end[1:])  # the last child
        while (end[end] != end).any():
            end = end[end]
        return end

    def from_root(self, own: Array, combine: np.ufunc) -> Array:
        """Return for each node the values of all nodes from the root to it, combined.

        Every round doubles how far up a node looks: log2(depth) rounds over all nodes at once, 10 ms for
        100,000 nodes.
        """
        result, above = own.copy(), self.parent.copy()
        while (looking := np.flatnonzero(above != NO_NODE)).size:
            further = above[looking]
            result[looking] = combine(result[looking], result[further])
            above[looking] = above[further]
        return result

    def apply(self, X: Array) -> NDArray[np.int32]:
        """Return the node at which each row ends."""
        if sp.issparse(X):
            from sixfold.solvers.trees.sparse_growth import apply_sparse

            return apply_sparse(self, X)
        return core.apply_tree(
            X, self.kinds, self.column, self.threshold, self.first, self.code, self.child, self.unknown
        )

    def path_to(self, node: int) -> list[int]:
        """Return the nodes from the root to this one."""
        way = [node]
        while (above := int(self.parent[way[-1]])) != NO_NODE:
            way.append(above)
        return way[::-1]

    def staying(self, split: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which nodes are left where only these nodes are split."""
        reached = np.ones(self.node_count, dtype=bool)
        reached[1:] = split[self.parent[1:]]
        return self.from_root(reached, np.logical_and)

    def cut(self, split: NDArray[np.bool_], reason: Reason = Reason.PRUNED) -> Tree:
        """Return the tree in which only these nodes are split, and what lies below the others is gone.

        Parameters
        ----------
        split : ndarray of bool, shape (nodes,)
            Which nodes stay split; leaves do not count. A node below one that is not split goes with it.
        reason : Reason
            Why a node that was split is not any more.
        """
        split = split & ~self.is_leaf
        stays = self.staying(split)
        old = np.flatnonzero(stays)
        new = np.full(self.node_count + 1, NO_NODE, dtype=np.int32)  # the last entry is for -1
        new[old] = np.arange(old.size)
        kept = split[old]
        sizes = np.where(kept, np.diff(self.first)[old], 0)
        taken = np.repeat(stays & split, np.diff(self.first))
        return replace(
            self,
            column=np.where(kept, self.column[old], np.int32(NO_NODE)),
            threshold=np.where(kept, self.threshold[old], np.nan),
            first=np.concatenate([[0], np.cumsum(sizes)]),
            code=self.code[taken],
            child=new[self.child[taken]],
            unknown=np.where(kept, new[self.unknown[old]], np.int32(NO_NODE)),
            reason=np.where(kept | self.is_leaf[old], self.reason[old], np.uint8(reason)),
            rows=self.rows[old],
            totals=self.totals[old],
        )
