"""Smaller trees inside a grown one: by depth, by leaves, by cost complexity, by errors on other rows.

Since a split does not depend on what is split elsewhere, one growth holds the trees of all limits. With the
risk of a node R(t) = impurity * weight / weight of the root, and T_t what grows from t,

    cost complexity    t becomes a leaf at alpha(t) = (R(t) - R(T_t)) / (leaves of T_t - 1), weakest first
    reduced error      t becomes a leaf where that makes no more errors on rows that the tree has not seen
    best first         of all nodes that could be split, that one is with the largest R(t) - sum_k R(t_k)

Sources: Breiman, Friedman, Olshen and Stone, Classification and Regression Trees, 1984, chapter 3 (cost
complexity); Quinlan, Simplifying decision trees, International Journal of Man-Machine Studies 27, 1987.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Record
from sixfold.errors import SixfoldWarning, warn
from sixfold.solvers.trees.fitted_tree import NO_NODE, FittedTree, Reason, lost_nats, lost_of_all
from sixfold.solvers.trees.impurity import impurity

Array = NDArray[Any]

SAME_ERRORS = 1e-12  # shares of the weight that errors have, this close, are equal


# -- what a split is worth ---------------------------------------------------------------------------------


def node_gains(tree: FittedTree) -> NDArray[np.float64]:
    """Return how far each split lowers the impurity of its node on average; 0 at leaves."""
    weight = tree.weight
    mixed = impurity(tree.totals, tree.criterion)
    below = np.bincount(tree.parent[1:], weights=(weight * mixed)[1:], minlength=tree.node_count)
    return np.where(tree.is_leaf, 0.0, mixed - below / weight)


def importances(tree: FittedTree) -> NDArray[np.float64]:
    """Return the part of all gain, weighted by the rows that have it, that is due to each column."""
    split = ~tree.is_leaf
    decrease = (tree.weight * node_gains(tree))[split]
    gained = np.zeros(tree.kinds.size)
    np.add.at(gained, tree.column[split], np.maximum(decrease, 0.0))
    return gained / (gained.sum() or 1.0)


# -- by depth and by leaves ----------------------------------------------------------------------------------


def cut_depth(tree: FittedTree, depth: int) -> FittedTree:
    """Return the tree that growth to this depth gives."""
    return tree.cut(tree.depth < depth, Reason.LIMIT)


def keep_leaves(tree: FittedTree, max_leaf_nodes: int) -> FittedTree:
    """Return the tree that splits the most rewarding node first, while the leaves are no more than this."""
    split = np.zeros(tree.node_count, dtype=bool)
    split[best_first(tree, max_leaf_nodes)] = True
    return tree.cut(split, Reason.LIMIT)


def best_first(tree: FittedTree, max_leaf_nodes: int) -> list[int]:
    """Return the nodes that are split, the most rewarding first, while the leaves are no more than this.

    A node whose children would be too many is left out, and the next one tried. Of equal ones the node with
    the lowest number comes first. Where all splits have two children, those for fewer leaves are the first of
    those for more.
    """
    decrease = np.round(node_gains(tree) * tree.weight / tree.totals[0].sum(), 12).tolist()
    children, start = _children(tree)
    split: list[int] = []
    frontier, leaves = [(-decrease[0], 0)], 1
    while frontier and leaves < max_leaf_nodes:
        node = heapq.heappop(frontier)[1]
        below = children[start[node] : start[node + 1]]
        if below and leaves + len(below) - 1 <= max_leaf_nodes:
            split.append(node)
            leaves += len(below) - 1
            for child in below:
                heapq.heappush(frontier, (-decrease[child], child))
    return split


def most_rewarding(tree: FittedTree, leaves: int) -> FittedTree:
    """Return the tree of so many leaves; warn where the first split alone has more branches than that."""
    kept = keep_leaves(tree, leaves)
    if kept.node_count == 1:
        warn_if_constant(tree, leaves)
    return kept


def warn_if_constant(tree: FittedTree, leaves: int) -> None:
    """Warn of a limit on the leaves that does not even allow for the first split, where there is one."""
    branches = len(tree.children(0))
    if branches > leaves:
        text = (
            f"max_leaf_nodes={leaves} leaves the constant model: the first split has {branches} "
            "branches. Set categories='binary' and unknown='best' for splits in two, or allow more leaves."
        )
        warn(SixfoldWarning(text))


def _children(tree: FittedTree) -> tuple[list[int], list[int]]:
    """Return the children of all nodes in one list, and where those of each node start."""
    parent = tree.parent[1:]
    counts = np.bincount(parent, minlength=tree.node_count)
    start = np.concatenate([[0], np.cumsum(counts)])
    return (np.argsort(parent, kind="stable") + 1).tolist(), start.tolist()


# -- by cost complexity --------------------------------------------------------------------------------------


class CostPath(NamedTuple):
    """The nested trees of all alphas: entry i + 1 is entry i with one more node made a leaf.

    Attributes
    ----------
    ccp_alphas : ndarray of float64
        From which alpha on each tree is the best; 0 for the whole tree.
    impurities : ndarray of float64
        R(T), the impurity of the leaves of each tree, weighted.
    nodes : ndarray of int64
        The node that becomes a leaf; -1 for the whole tree.
    leaves : ndarray of int64
        How many leaves each tree has.
    """

    ccp_alphas: NDArray[np.float64]
    impurities: NDArray[np.float64]
    nodes: NDArray[np.int64]
    leaves: NDArray[np.int64]

    @property
    def distinct(self) -> CostPath:
        """Return the path without trees that no alpha leaves, since more nodes go at the same alpha."""
        later = np.append(self.ccp_alphas[1:], np.inf)
        stays = (self.ccp_alphas < later) & (self.ccp_alphas > 0.0)
        stays[0] = True  # nothing goes at 0
        return CostPath(self.ccp_alphas[stays], self.impurities[stays], self.nodes[stays], self.leaves[stays])

    def in_unit(self, unit: float) -> CostPath:
        """Return the path in another unit than bits, its alphas no smaller when they come back in bits."""
        given = unit * self.ccp_alphas
        alphas = np.where(given / unit < self.ccp_alphas, np.nextafter(given, np.inf), given)
        return self._replace(ccp_alphas=alphas, impurities=unit * self.impurities)


def ccp_path(tree: FittedTree) -> CostPath:
    """Return all trees of cost complexity pruning, from the whole tree to its root alone."""
    alpha, lost, fewer = weakest_links(tree)
    above = tree.from_root(alpha, np.minimum)[tree.parent]
    above[0] = np.inf
    seen = np.flatnonzero(alpha < above)  # the others go with a node above them
    seen = seen[np.argsort(alpha[seen], kind="stable")]
    whole = (impurity(tree.totals, tree.criterion) * tree.weight)[tree.is_leaf].sum() / tree.totals[0].sum()
    return CostPath(
        np.concatenate([[0.0], alpha[seen]]),
        whole + np.concatenate([[0.0], np.cumsum(lost[seen])]),
        np.concatenate([[NO_NODE], seen]),
        tree.leaf_count - np.concatenate([[0], np.cumsum(fewer[seen])]),
    )


def prune_ccp(tree: FittedTree, alpha: float) -> FittedTree:
    """Return the smallest tree with the least R(T) + alpha * leaves; the tree itself for alpha = 0."""
    return tree.cut(weakest_links(tree)[0] > alpha) if alpha > 0.0 else tree


def weakest_links(tree: FittedTree) -> tuple[Array, Array, Array]:
    """Return the alpha from which on each node is a leaf, infinity at leaves.

    And, when it becomes one, the risk that this adds and the leaves that the tree loses.

    From the last node to the first, with the links below a node in a heap, the greatest on top: with all of
    them collapsed the node's own link is a fraction of known numbers. A link that is not below it would
    collapse later than the node itself: it is undone, taken out for good, and the fraction formed again. So
    a link is put into a heap and taken out once, and heaps are merged into the larger one: O(n log^2 n) for
    all alphas, 0.2 s for 100,000 nodes.
    """
    risk = (impurity(tree.totals, tree.criterion) * tree.weight / tree.totals[0].sum()).tolist()
    children, start = _children(tree)
    alpha = np.full(tree.node_count, np.inf)
    lost = np.zeros(tree.node_count)
    fewer = np.zeros(tree.node_count, dtype=np.int64)
    heaps: dict[int, list[tuple[float, int]]] = {}
    for node in np.flatnonzero(~tree.is_leaf)[::-1].tolist():
        below = children[start[node] : start[node + 1]]
        links = _merged([heaps.pop(child) for child in below if child in heaps])
        under, leaves = sum(risk[child] for child in below), len(below)
        link = max((risk[node] - under) / (leaves - 1), 0.0)
        while links and -links[0][0] >= link:
            later = heapq.heappop(links)[1]
            under, leaves = under - float(lost[later]), leaves + int(fewer[later])
            link = max((risk[node] - under) / (leaves - 1), 0.0)
        alpha[node], lost[node], fewer[node] = link, risk[node] - under, leaves - 1
        heapq.heappush(links, (-link, node))
        heaps[node] = links
    return alpha, lost, fewer


def _merged(heaps: list[list[tuple[float, int]]]) -> list[tuple[float, int]]:
    if not heaps:
        return []
    *smaller, largest = sorted(heaps, key=len)
    for heap in smaller:
        for link in heap:
            heapq.heappush(largest, link)
    return largest


# -- by errors on other rows ---------------------------------------------------------------------------------


def prune_reduced_error(
    tree: FittedTree, X: Array, labels: NDArray[np.int32], weight: NDArray[np.float64] | None = None
) -> FittedTree:
    """Return the tree whose nodes, from the leaves upwards, are leaves where that makes no more errors.

    Parameters
    ----------
    tree : FittedTree
    X : ndarray of shape (rows, columns)
        Rows that the tree was not grown from; a node that none of them reaches becomes a leaf.
    labels : ndarray of int32, shape (rows,)
        The class of each row, counted from 0.
    weight : ndarray of shape (rows,), optional
        How much an error at each row counts.
    """
    count = tree.node_count
    ended = tree.apply(X)
    weight = np.ones(ended.size) if weight is None else weight
    answer = tree.totals.argmax(axis=1)
    here = np.bincount(ended, weights=weight * (answer[ended] != labels), minlength=count)
    reached = np.zeros((count, tree.totals.shape[1]))  # the weight of each class, later with what is below
    np.add.at(reached, (ended, labels), weight)
    split = ~tree.is_leaf
    allowed = SAME_ERRORS * weight.sum()
    for level in _levels(tree):  # of each node all that is below is done
        as_leaf = reached[level].sum(axis=1) - reached[level, answer[level]]
        split[level] &= as_leaf > here[level] + allowed
        here[level] = np.where(split[level] | tree.is_leaf[level], here[level], as_leaf)
        if level[0] != 0:
            np.add.at(here, tree.parent[level], here[level])
            np.add.at(reached, tree.parent[level], reached[level])
    return tree.cut(split)


def _levels(tree: FittedTree) -> list[NDArray[np.int64]]:
    """Return the nodes of each depth, the deepest first."""
    order = np.argsort(tree.depth, kind="stable")
    ends = np.cumsum(np.bincount(tree.depth))
    return np.split(order, ends[:-1])[::-1]


# -- all nested trees at once, for a tuner -------------------------------------------------------------------


def levels(tree: FittedTree, seconds: float) -> list[Record]:
    """Return one record a level, from the constant model on, as if the tree were cut there.

    The gap is the distance to the least objective that any tree could have, as far as this one knows.
    """
    lost = lost_nats(tree.totals / tree.totals[0].sum())
    here = np.bincount(tree.depth, weights=lost)
    objectives = here + _ended_above(tree, lost)
    bound = lost_of_all(tree)
    return [
        Record(level, seconds, float(objective), max(float(objective) - bound, 0.0))
        for level, objective in enumerate(objectives)
    ]


def leaves_by_depth(tree: FittedTree) -> NDArray[np.int64]:
    """Return how many leaves the tree of each depth has."""
    return np.bincount(tree.depth) + _ended_above(tree, np.ones(tree.node_count)).astype(np.int64)


def _ended_above(tree: FittedTree, values: Array) -> Array:
    """Return the sum of the values of all leaves above each level."""
    ended = np.bincount(tree.depth, weights=np.where(tree.is_leaf, values, 0.0))
    return np.concatenate([[0.0], np.cumsum(ended)[:-1]])


def by_depth(tree: FittedTree, ended: NDArray[np.int32], depths: Array) -> Iterator[NDArray[np.int32]]:
    """Yield the node that answers each row, in the tree of each depth.

    Parameters
    ----------
    tree : FittedTree
    ended : ndarray of int32, shape (rows,)
        Where the rows end in the whole tree: ``tree.apply(X)``.
    depths : array of int, shape (trees,)
    """
    nodes = np.arange(tree.node_count, dtype=np.int32)
    for depth in depths:
        level = nodes[tree.depth == depth]  # a deeper node is below the last of these before it
        above = np.append(level, NO_NODE)[np.searchsorted(level, nodes, side="right") - 1]
        yield np.where(tree.depth > depth, above, nodes)[ended]


def by_alpha(
    tree: FittedTree, ended: NDArray[np.int32], path: CostPath, alphas: Array
) -> Iterator[NDArray[np.int32]]:
    """Yield the node that answers each row, in the tree of each alpha.

    Parameters
    ----------
    tree : FittedTree
    ended : ndarray of int32, shape (rows,)
        Where the rows end in the whole tree: ``tree.apply(X)``.
    path : CostPath
        Of this tree.
    alphas : array of shape (trees,)
        In ascending order; any of ``path.ccp_alphas`` or between them.
    """
    answering = np.arange(tree.node_count, dtype=np.int32)
    done = 1
    for alpha in alphas:
        end = int(np.searchsorted(path.ccp_alphas, alpha, side="right")) if alpha > 0.0 else 1
        for node in path.nodes[done:end].tolist():
            answering[node : tree.last[node] + 1] = node
        done = max(done, end)
        yield answering[ended]
