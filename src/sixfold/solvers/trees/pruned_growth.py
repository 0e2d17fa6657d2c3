"""From checked rows to a tree: grown, and cut as the parameters ask.

search                    each split by itself, by looking ahead, or all of them together
max_leaf_nodes            the most rewarding splits first, until there are so many leaves; a search for the
                          best tree looks among those that have no more
ccp_alpha                 the smallest tree with the least impurity + alpha * leaves
prune="reduced_error"     grown without the held-out rows; a node is a leaf where they are no worse off
prune="cost_complexity"   without an alpha: that of the tree with the fewest errors on the held-out rows,
                          then grown from all rows and cut by it

Few leaves need few levels: a tree of at most L leaves is grown to about log2 L levels first. Where a leaf
that is kept could be split further, the least gain of its L - 1 splits is the least gain of another growth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.data.stratified_split import held_out
from sixfold.errors import InputError
from sixfold.solvers.trees.fitted_tree import FittedTree, Reason
from sixfold.solvers.trees.growth import GrowthRules, TrainingRows, TreeParameters, grow
from sixfold.solvers.trees.optimal import SearchRecord, SearchRules, lookahead, search, warn_of_depth
from sixfold.solvers.trees.pruning import (
    SAME_ERRORS,
    by_alpha,
    ccp_path,
    most_rewarding,
    node_gains,
    prune_ccp,
    prune_reduced_error,
)

Array = NDArray[Any]

SAME_GAINS = 1e-11  # gains that are equal differ by less


@dataclass(frozen=True)
class Growth:
    """A tree, what is known of the search for it, the alpha it was cut by, and the rows that were held out.

    There is a record of a search for the best tree alone, and there need be no rows that were held out.
    """

    tree: FittedTree
    search: SearchRecord | None = None
    alpha: float = 0.0
    left_out: NDArray[np.bool_] | None = None


def grow_and_prune(rows: TrainingRows, parameters: TreeParameters, seed: int, budget: Budget) -> Growth:
    """Return the tree that the parameters describe; one that was stopped is cut as far as it got."""
    if parameters.search == "optimal" and budget.time_limit is None:
        warn_of_depth(rows, SearchRules.of(parameters, rows), budget)
    if not parameters.holds_out:
        return Growth(*_grown(rows, parameters, seed, parameters.alpha, budget), parameters.alpha)
    prune, fraction = parameters.prune, float(parameters.validation_fraction)
    apart = held_out(rows.labels, rows.counting, fraction, seed)
    if not apart.any() and np.ptp(rows.labels[rows.counting]) > 0:  # one class is a leaf in any case
        raise InputError(
            f"prune={prune!r} needs rows that are held out, but validation_fraction={fraction:g} of the rows "
            "of each class is none. Give more rows or a larger validation_fraction, or leave prune at 'none' "
            "and limit the tree by max_depth or ccp_alpha."
        )
    tree, search = _grown(rows.without(apart), parameters, seed, parameters.alpha, budget)
    X, labels = rows.X[apart], rows.labels[apart]
    weight = None if rows.weight is None else rows.weight[apart]
    if prune == "reduced_error":
        return Growth(prune_reduced_error(tree, X, labels, weight), search, parameters.alpha, apart)
    alpha = best_alpha(tree, X, labels, weight)
    if budget.exhausted():  # there is no time for another growth
        return Growth(prune_ccp(tree, alpha), search, alpha, apart)
    return Growth(*_grown(rows, parameters, seed, alpha, budget), alpha)


def _grown(
    rows: TrainingRows, parameters: TreeParameters, seed: int, alpha: float, budget: Budget
) -> tuple[FittedTree, SearchRecord | None]:
    """Return the tree of these rows, of which limits are shares, with so many leaves, cut by alpha."""
    rules, leaves = parameters.rules(rows, seed), parameters.max_leaf_nodes
    record = None
    if parameters.search == "optimal":
        wanted = SearchRules.of(parameters, rows)
        found = search(rows, wanted, budget, criterion=rules.criterion)
        tree, record = found.tree, found.record(rows, wanted)
    elif parameters.search == "lookahead":
        tree = lookahead(rows, SearchRules.of(parameters, rows), rules.max_depth, budget, rules.criterion)
        tree = tree if leaves is None else most_rewarding(tree, leaves)
    elif leaves is None:
        tree = grow(rows, rules, budget)
    else:
        tree = _grown_to_leaves(rows, rules, min(leaves, rows.count), budget)
    return prune_ccp(tree, alpha), record


# -- a tree of few leaves ------------------------------------------------------------------------------------


def _grown_to_leaves(rows: TrainingRows, rules: GrowthRules, leaves: int, budget: Budget) -> FittedTree:
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
        return most_rewarding(grow(rows, whole, budget), leaves)
    kept = most_rewarding(grow(rows, replace(rules, max_depth=first), budget), leaves)
    undecided = kept.is_leaf & (kept.depth == first) & (kept.reason == Reason.LIMIT)
    gain = _least_gain(kept, rules, leaves)
    while undecided.any():
        tree = grow(rows, replace(whole, min_impurity_decrease=gain), budget)
        if (tree.reason == Reason.STOPPED).any():  # the growth before was not
            return replace(kept, reason=np.where(undecided, np.uint8(Reason.STOPPED), kept.reason))
        further = most_rewarding(tree, leaves)
        if further.leaf_count == leaves or gain == rules.min_impurity_decrease:
            return further
        gain = rules.min_impurity_decrease  # a node with too many branches was left out for a lesser one
    return kept


def _least_gain(kept: FittedTree, rules: GrowthRules, leaves: int) -> float:
    """Return a gain that all splits to be made have; that of the rules where no other is known."""
    if kept.leaf_count < leaves:
        return rules.min_impurity_decrease
    gains = (node_gains(kept) * kept.weight)[~kept.is_leaf] / kept.totals[0].sum()
    return max(float(gains.min()) - SAME_GAINS, rules.min_impurity_decrease)


# -- the cost of a leaf --------------------------------------------------------------------------------------


def best_alpha(tree: FittedTree, X: Any, labels: NDArray[np.int32], weight: Array | None) -> float:
    """Return the largest alpha whose tree makes the fewest errors on rows that the tree was not grown from.

    Alphas between those at which the tree changes stand for it: their geometric mean, as Breiman, Friedman,
    Olshen and Stone (1984, chapter 3) take it, since another growth changes a little earlier or later.
    """
    path = ccp_path(tree)
    starts = np.unique(path.ccp_alphas)
    alphas = np.sqrt(starts * np.append(starts[1:], starts[-1]))
    answer = tree.totals.argmax(axis=1)
    ended = tree.apply(X)
    errors = [
        float(np.average(answer[nodes] != labels, weights=weight)) if labels.size else 0.0
        for nodes in by_alpha(tree, ended, path, alphas)
    ]
    least = min(errors)
    return float(alphas[max(k for k, error in enumerate(errors) if error <= least + SAME_ERRORS)])
