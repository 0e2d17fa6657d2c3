"""A fitted decision tree: its flat arrays, the way of a row through it, and what is certain about it.

Nodes are numbered depth first. At a split the value of one column is looked up among the node's branches:

    numbers      branch 0 where x <= threshold, else branch 1
    categories   the branch of the category's code
    unknown      the node's branch for unknown values

A value without a branch, a category or an unknown that the node did not meet when the tree was grown, stops
there: the node's own class totals answer. So a row always ends at some node, and that node's totals are what
the tree knows about it.

A tree in which every node has two children, left for x <= threshold and right otherwise, has scikit-learn's
arrays as well, so that what reads ``model.tree_`` there reads it here; for its sake ``threshold`` is -2 in a
leaf, which is no threshold: ask ``is_leaf``.

What a certificate says: the objective is the average negative log-likelihood of the training rows in nats,
which is the average entropy of the leaves,

    - 1/W sum_i w_i ln p(y_i | leaf of x_i)  =  1/W sum_leaves W_leaf H(leaf).

Rows that are equal in every column end together in every tree. So the entropy of leaves whose rows are all
equal, or of one class, is lost in every tree, and what the others have is the most that any tree could gain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.certificate import Certificate
from sixfold.errors import InputError
from sixfold.solvers.trees.impurity import impurity

Array = NDArray[Any]

NO_NODE = -1
NO_COLUMN, LEAF_THRESHOLD = -2, -2.0  # what scikit-learn has in a leaf
KIND = "greedy tree"
LOOKAHEAD_KIND = "lookahead tree"
SPLITS = {  # what is claimed of them
    KIND: "every split is the best of its node",
    LOOKAHEAD_KIND: "every split begins the best tree of two levels at its node",
}
ENTROPY_ROUNDING = 1e-12  # of an average entropy


class Reason(IntEnum):
    """Why a node was not split."""

    SPLIT = 0
    PURE = 1
    EXHAUSTED = 2  # its rows are equal in every column
    LIMIT = 3  # depth, rows, gain or the size of leaves
    STOPPED = 4  # by the time limit or Ctrl-C
    PRUNED = 5


@dataclass(frozen=True, eq=False)  # arrays have no one answer to whether they are equal
class FittedTree:
    """A tree of any number of branches a node.

    Attributes
    ----------
    kinds : ndarray of uint8, shape (columns,)
        0 for numbers, 1 for categories.
    column : ndarray of int32, shape (nodes,)
        The column a node asks for, -1 in a leaf.
    threshold : ndarray of float64, shape (nodes,)
        Where numbers are split: infinity sends all known values to branch 0. NaN for categories, -2 in a
        leaf.
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
    criterion : str
        What impurities are: entropies, Gini indices, or 1 for what is not of one class.
    unit : float
        What a bit is in the unit of the impurities: 1, or ln 2 for nats.
    limits : dict
        The parameters that ended its growth, as they were given; those that could end none are not here.
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
    criterion: str = "entropy"
    unit: float = 1.0
    limits: dict[str, Any] = field(default_factory=dict, repr=False)

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

    def apply(self, X: Any) -> NDArray[np.int32]:
        """Return the node at which each row ends."""
        nodes = self.column, self.threshold, self.first, self.code, self.child, self.unknown
        if sp.issparse(X):
            return core.apply_sparse_tree(*sparse_parts(X.tocsr()), self.kinds, *nodes)
        return core.apply_tree(X, self.kinds, *nodes)

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

    def cut(self, split: NDArray[np.bool_], reason: Reason = Reason.PRUNED) -> FittedTree:
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
            threshold=np.where(kept, self.threshold[old], LEAF_THRESHOLD),
            first=np.concatenate([[0], np.cumsum(sizes)]),
            code=self.code[taken],
            child=new[self.child[taken]],
            unknown=np.where(kept, new[self.unknown[old]], np.int32(NO_NODE)),
            reason=np.where(kept | self.is_leaf[old], self.reason[old], np.uint8(reason)),
            rows=self.rows[old],
            totals=self.totals[old],
        )

    def in_units(self, exponent: int, unit: float) -> FittedTree:
        """Return the tree with totals of weights times 2 ** exponent, and impurities in another unit."""
        if exponent == 0 and unit == self.unit:
            return self
        return replace(self, totals=np.ldexp(self.totals, exponent), unit=unit)

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

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the share of each class in the node at which each row ends."""
        return self.shares[self.apply(X)]

    def decision_path(self, X: Any) -> Any:
        """Return which nodes each row goes through, as a CSR matrix."""
        return self.paths_to(self.apply(X))

    def paths_to(self, nodes: Array) -> Any:
        """Return which nodes are on the way to each of these, as a CSR matrix: 1 for a node on the way."""
        ends = np.cumsum(self.depth[nodes] + 1)
        way = np.empty(int(ends[-1]) if ends.size else 0, dtype=np.int64)
        place, current = ends - 1, nodes
        while place.size:
            way[place] = current
            current = self.parent[current]
            inside = current != NO_NODE
            place, current = place[inside] - 1, current[inside]
        passed = np.ones(way.size, dtype=np.int64)
        return sp.csr_matrix((passed, way, np.concatenate([[0], ends])), (len(nodes), self.node_count))

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


def sparse_parts(X: Any) -> tuple[Array, Array, Array]:
    """Return values, indices (sorted, each once) and starts; those of X itself where they will do."""
    if max(X.shape) > np.iinfo(np.int32).max:
        raise ValueError(
            f"Sparse tables may have at most 2,147,483,647 rows or columns, not {max(X.shape):,}."
        )
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    values = X.data if X.dtype == np.float32 else X.data.astype(np.float64, copy=False)
    return values, X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False)


# -- what is certain ---------------------------------------------------------------------------------------


def lost_nats(totals: Array) -> Array:
    """Return W_t H(t) in nats for each node.

    >>> lost_nats(np.array([[4.0, 0.0], [1.0, 1.0]])) / np.log(2.0)
    array([0., 2.])
    """
    return _x_ln_x(totals.sum(axis=-1)) - _x_ln_x(totals).sum(axis=-1)


def _x_ln_x(x: Array) -> Array:
    return x * np.log(x, out=np.zeros_like(x), where=x > 0)


def lost_of_all(tree: FittedTree) -> float:
    """Return the average entropy, in nats, that this tree knows to be lost in every tree."""
    return float(lost_nats(tree.totals / tree.totals[0].sum())[_is_final(tree)].sum())


def _is_final(tree: FittedTree) -> NDArray[np.bool_]:
    """Return which leaves no tree could split, or need not."""
    return (tree.reason == Reason.PURE) | (tree.reason == Reason.EXHAUSTED)


def certify(
    tree: FittedTree, left_out: int, tried: list[str], rounded: bool, stopped: bool, kind: str = KIND
) -> Certificate:
    """Return what a grown tree proves about its own fit.

    Parameters
    ----------
    tree : FittedTree
    left_out : int
        How many rows it was not grown from.
    tried : list of str
        Among what its splits are the best, where that is not all there is.
    rounded : bool
        Whether different whole numbers of a column are one as float64.
    stopped : bool
        Whether growth was cut short.
    kind : {"greedy tree", "lookahead tree"}
    """
    leaf, final = tree.is_leaf, _is_final(tree)
    lost = lost_nats(tree.totals / tree.totals[0].sum())
    objective, gap = float(lost[leaf].sum()), float(lost[leaf & ~final].sum())
    notes = cut_notes(tree, left_out)
    if stopped:
        unsplit = int((tree.reason == Reason.STOPPED).sum())
        notes.append(f"growth was stopped with {unsplit} node{'s' * (unsplit != 1)} left to split")
    return Certificate(
        kind,
        objective,
        gap,
        float(lost[0]),
        0.0 if stopped else np.inf,
        {"nodes": tree.node_count, "leaves": tree.leaf_count},
        claim_of(objective, gap, float(lost[0]), tried, rounded, kind),
        tuple(notes),
        ENTROPY_ROUNDING,
    )


def cut_notes(tree: FittedTree, left_out: int) -> list[str]:
    """Say how many rows were held out, and how many nodes were pruned."""
    notes = []
    if left_out:
        notes.append(f"{_counted(left_out, 'row')} held out")
    if pruned := int((tree.reason[tree.is_leaf] == Reason.PRUNED).sum()):
        notes.append(f"{_counted(pruned, 'node')} pruned to {'a leaf' if pruned == 1 else 'leaves'}")
    return notes


def average_entropy(tree: FittedTree) -> float:
    """Return the average entropy of the leaves in nats, which is minus the average log-likelihood."""
    return float(lost_nats(tree.totals / tree.totals[0].sum())[tree.is_leaf].sum())


def _counted(count: int, noun: str) -> str:
    return f"1 {noun} was" if count == 1 else f"{count} {noun}s were"


def claim_of(
    objective: float, gap: float, scale: float, tried: list[str], rounded: bool, kind: str = KIND
) -> str:
    """Say in words what is claimed: how much of the uncertainty about the class is gone, and could be.

    The uncertainty is the entropy, in parts of that of the classes before any question is asked.
    """
    best = SPLITS[kind] + (f" among {' and '.join(tried)}" if tried else "")
    if gap == 0:
        fit = "no tree fits these rows better"
    else:
        done, could = 100.0 * (1.0 - objective / scale), 1.0 - (objective - gap) / scale
        most = min(math.ceil(1e3 * could - 1e-6) / 10, 100.0)  # a bound is rounded up
        fit = f"{done:.1f}% of the uncertainty about the class is gone, and no tree takes more than {most:g}%"
    return f"{best}; {fit}" + ", as float64 holds the numbers" * rounded
