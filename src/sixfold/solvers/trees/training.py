"""From checked rows to a tree: grown, and cut as the parameters ask.

max_leaf_nodes            the most rewarding splits first, until there are so many leaves
ccp_alpha                 the smallest tree with the least impurity + alpha * leaves
prune="reduced_error"     grown without the held-out rows; a node is a leaf where they are no worse off
prune="cost_complexity"   without an alpha: that of the tree with the fewest errors on the held-out rows,
                          then grown from all rows and cut by it

Few leaves need few levels: a tree of at most L leaves is grown to about log2 L levels first. Where a leaf
that is kept could be split further, the least gain of its L - 1 splits is the least gain of another growth.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.data.stratified_split import held_out
from sixfold.errors import InputError, SixfoldWarning, warn
from sixfold.solvers.trees.growth import GrowthRules, grow
from sixfold.solvers.trees.pruning import (
    by_alpha,
    ccp_path,
    keep_leaves,
    node_gains,
    prune_ccp,
    prune_reduced_error,
)
from sixfold.solvers.trees.tree import Reason, Tree

Array = NDArray[Any]


@dataclass(frozen=True)
class TrainingRows:
    """What a tree grows from.

    Attributes
    ----------
    X : ndarray or CSR array of shape (rows, columns)
    kinds : ndarray of uint8, shape (columns,)
        0 for numbers, 1 for categories.
    labels : ndarray of int32, shape (rows,)
    classes : int
    weight : ndarray of float64, shape (rows,), or None
        How much each row counts, in units of 2 ** weight_exponent.
    rows : ndarray of int64, or None
        Which rows count; None for all.
    weight_exponent : int
    """

    X: Any
    kinds: NDArray[np.uint8]
    labels: NDArray[np.int32]
    classes: int
    weight: NDArray[np.float64] | None
    rows: NDArray[np.int64] | None = None
    weight_exponent: int = 0

    @classmethod
    def of(cls, X: Any, kinds: Array, labels: Array, classes: int, weight: Array | None) -> TrainingRows:
        """Return rows of which those with weight count."""
        if weight is None:
            return cls(X, kinds, labels, classes, None)
        exponent = _mean_exponent(weight)
        weight = np.ldexp(weight, -exponent)
        rows = None if weight.all() else np.flatnonzero(weight)
        return cls(X, kinds, labels, classes, weight, rows, exponent)

    @property
    def counting(self) -> NDArray[np.bool_]:
        """Return which rows count."""
        counts = np.zeros(self.labels.size, dtype=bool)
        counts[slice(None) if self.rows is None else self.rows] = True
        return counts

    @property
    def count(self) -> int:
        """Return how many rows count."""
        return self.labels.size if self.rows is None else self.rows.size

    @property
    def weight_sum(self) -> float:
        """Return their total weight."""
        if self.weight is None:
            return float(self.count)
        return float((self.weight if self.rows is None else self.weight[self.rows]).sum())

    def without(self, left_out: NDArray[np.bool_]) -> TrainingRows:
        """Return the same rows of which these do not count."""
        return replace(self, rows=np.flatnonzero(self.counting & ~left_out))

    def as_given(self, tree: Tree) -> Tree:
        """Return a tree that was grown from these rows, with totals of the weights as they were given."""
        return replace(tree, totals=np.ldexp(tree.totals, self.weight_exponent))

    def grown(self, rules: GrowthRules, budget: Budget) -> Tree:
        """Return the tree that the rules grow from these rows."""
        if sp.issparse(self.X):
            from sixfold.solvers.trees.sparse_growth import grow_sparse

            table = self.X.tocsc()
            return grow_sparse(table, self.labels, self.classes, rules, budget, self.weight, self.rows)
        return grow(self.X, self.kinds, self.labels, self.classes, rules, budget, self.weight, self.rows)


def _mean_exponent(weight: Array) -> int:
    """Return the exponent of the power of two that is next to the mean of the weights above 0.

    The criteria have squares and logarithms of weights: divided by that power, which is exact, these neither
    overflow nor vanish.
    """
    exponent = int(np.frexp(weight.max())[1])
    mean = np.ldexp(weight, -exponent).sum() / np.count_nonzero(weight)
    return exponent + round(math.log2(mean))


@dataclass(frozen=True)
class Cuts:
    """How a grown tree is cut; alphas are in bits.

    Attributes
    ----------
    max_leaf_nodes : int or None
    alpha : float
    prune : {"none", "reduced_error", "cost_complexity"}
    fraction : float
        The share of the rows that is held out, where pruning needs some.
    """

    max_leaf_nodes: int | None
    alpha: float
    prune: str
    fraction: float

    @property
    def needs_rows(self) -> bool:
        """Return whether rows have to be held out."""
        return self.prune == "reduced_error" or (self.prune == "cost_complexity" and self.alpha == 0.0)


@dataclass(frozen=True)
class GrowthRecord:
    """All that a tree was grown by, whatever the parameters of its model say later.

    Attributes
    ----------
    rules : GrowthRules
    fraction : float
        The share of the rows that was held out, where any were.
    left_out : int
        How many rows the tree was not grown from.
    class_weight : dict, "balanced" or None
    all_groupings : bool
        Whether no grouping of categories is better than those that were tried.
    stopped : bool
        Whether growth was cut short.
    seconds : float
        What growing took.
    """

    rules: GrowthRules
    fraction: float
    left_out: int
    class_weight: Any
    all_groupings: bool
    stopped: bool
    seconds: float

    def grown_from(self, rows: TrainingRows) -> TrainingRows:
        """Return the rows without those that were held out, which their positions tell."""
        if not self.left_out:
            return rows
        return rows.without(held_out(rows.labels, rows.counting, self.fraction, self.rules.seed))


@dataclass(frozen=True)
class Growth:
    """A tree, the alpha it was cut by, and the rows it was not grown from, if there are any."""

    tree: Tree
    alpha: float
    left_out: NDArray[np.bool_] | None = None


def grow_and_cut(
    rows: TrainingRows, rules_for: Callable[[TrainingRows], GrowthRules], cuts: Cuts, budget: Budget
) -> Growth:
    """Return the tree that rules and cuts describe; one that was stopped is cut as far as it got.

    Limits that are shares are of the rows that a tree grows from, so these have their own rules.
    """
    rules = rules_for(rows)
    if not cuts.needs_rows:
        return Growth(_grown_and_cut(rows, rules, cuts, cuts.alpha, budget), cuts.alpha)
    apart = held_out(rows.labels, rows.counting, cuts.fraction, rules.seed)
    if not apart.any() and np.ptp(rows.labels[rows.counting]) > 0:  # one class is a leaf in any case
        raise InputError(
            f"prune={cuts.prune!r} needs rows that are held out, but validation_fraction={cuts.fraction:g} "
            "of the rows of each class is none. Give more rows or a larger validation_fraction, or leave "
            "prune at 'none' and limit the tree by max_depth or ccp_alpha."
        )
    others = rows.without(apart)
    tree = _grown_and_cut(others, rules_for(others), cuts, cuts.alpha, budget)
    X, labels = rows.X[apart], rows.labels[apart]
    weight = None if rows.weight is None else rows.weight[apart]
    if cuts.prune == "reduced_error":
        return Growth(prune_reduced_error(tree, X, labels, weight), cuts.alpha, apart)
    alpha = best_alpha(tree, rules.criterion, X, labels, weight)
    if budget.exhausted():  # there is no time for another growth
        return Growth(prune_ccp(tree, alpha, rules.criterion), alpha, apart)
    return Growth(_grown_and_cut(rows, rules, cuts, alpha, budget), alpha)


def _grown_and_cut(rows: TrainingRows, rules: GrowthRules, cuts: Cuts, alpha: float, budget: Budget) -> Tree:
    if cuts.max_leaf_nodes is None:
        tree = rows.grown(rules, budget)
    else:
        tree = _grown_to_leaves(rows, rules, min(cuts.max_leaf_nodes, rows.count), budget)
    return prune_ccp(tree, alpha, rules.criterion)


# -- a tree of few leaves ------------------------------------------------------------------------------------


def _grown_to_leaves(rows: TrainingRows, rules: GrowthRules, leaves: int, budget: Budget) -> Tree:
    """Return the whole tree, cut to so many leaves, without growing most of what is cut away.

    Nodes are split in the order of their gains. So a growth without splits below some gain ends in the same
    tree, once it has all the leaves: the splits that it lacks would have come later. None of them is deeper
    than L - 1 splits, and one level more tells why their leaves end. 8 leaves of 200,000 rows and 20 columns
    take 0.4 of the time of the whole tree where all is noise, 0.2 where it is not; for 32 it does not pay.
    """
    deepest = leaves if rules.max_depth is None else min(leaves, rules.max_depth)
    whole = replace(rules, max_depth=deepest)
    first = math.ceil(math.log2(leaves)) + 1
    if first >= deepest or 3 * first >= math.log2(rows.count):  # that is most of the whole tree
        return _most_rewarding(rows.grown(whole, budget), rules, leaves)
    kept = _most_rewarding(rows.grown(replace(rules, max_depth=first), budget), rules, leaves)
    undecided = kept.is_leaf & (kept.depth == first) & (kept.reason == Reason.LIMIT)
    gain = _least_gain(kept, rules, leaves)
    while undecided.any():
        tree = rows.grown(replace(whole, min_impurity_decrease=gain), budget)
        if (tree.reason == Reason.STOPPED).any():  # the growth before was not
            return replace(kept, reason=np.where(undecided, np.uint8(Reason.STOPPED), kept.reason))
        further = _most_rewarding(tree, rules, leaves)
        if further.leaf_count == leaves or gain == rules.min_impurity_decrease:
            return further
        gain = rules.min_impurity_decrease  # a node with too many branches was left out for a lesser one
    return kept


def _most_rewarding(tree: Tree, rules: GrowthRules, leaves: int) -> Tree:
    kept = keep_leaves(tree, leaves, node_gains(tree, rules.criterion))
    warn_if_constant(tree, kept, leaves)
    return kept


def _least_gain(kept: Tree, rules: GrowthRules, leaves: int) -> float:
    """Return a gain that all splits to be made have; that of the rules where no other is known."""
    if kept.leaf_count < leaves:
        return rules.min_impurity_decrease
    gains = (node_gains(kept, rules.criterion) * kept.weight)[~kept.is_leaf] / kept.totals[0].sum()
    return max(float(gains.min()) - 1e-11, rules.min_impurity_decrease)  # equal ones differ by less


def warn_if_constant(tree: Tree, kept: Tree, leaves: int) -> None:
    """Warn where the first split alone has more branches than there may be leaves."""
    if kept.node_count > 1 or tree.node_count == 1:
        return
    text = (
        f"max_leaf_nodes={leaves} leaves the constant model: the first split has {len(tree.children(0))} "
        "branches. Set categories='binary' and unknown='best' for splits in two, or allow more leaves."
    )
    warn(SixfoldWarning(text))


# -- the cost of a leaf --------------------------------------------------------------------------------------


def best_alpha(tree: Tree, criterion: str, X: Any, labels: NDArray[np.int32], weight: Array | None) -> float:
    """Return the largest alpha whose tree makes the fewest errors on rows that the tree was not grown from.

    Alphas between those at which the tree changes stand for it: their geometric mean, as Breiman, Friedman,
    Olshen and Stone (1984, chapter 3) take it, since another growth changes a little earlier or later.
    """
    path = ccp_path(tree, criterion)
    starts = np.unique(path.ccp_alphas)
    alphas = np.sqrt(starts * np.append(starts[1:], starts[-1]))
    answer = tree.totals.argmax(axis=1)
    ended = tree.apply(X)
    errors = [
        float(np.average(answer[nodes] != labels, weights=weight)) if labels.size else 0.0
        for nodes in by_alpha(tree, ended, path, alphas)
    ]
    least = min(errors)
    return float(alphas[max(k for k, error in enumerate(errors) if error <= least + 1e-12)])


def cut_at(tree: Tree, depth: int) -> Tree:
    """Return the tree that was stopped at this depth."""
    return tree.cut(tree.depth < depth, Reason.STOPPED)
