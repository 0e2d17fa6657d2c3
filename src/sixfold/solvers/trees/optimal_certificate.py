"""What is certain about a tree that was searched for among all trees of a depth.

    objective      the share of the weight that is wrong, or the average entropy of the leaves in nats, and
                   leaf_penalty for each leaf
    lower bound    what no tree of this depth and number of leaves costs less than, by the search
    scale          the objective of a single leaf

"Within 3.1% of the best" means that objective <= 1.031 best: the gap in parts of the lower bound. A tree that
is cut once it is found is compared with the same trees as before.
"""

from __future__ import annotations

import math

import numpy as np

from sixfold.certificate import Certificate
from sixfold.solvers.trees.fitted_tree import FittedTree, cut_notes, lost_nats
from sixfold.solvers.trees.optimal import SearchRecord

KIND = "optimal tree"
ROUNDING = 1e-12  # of an average over the rows


def certify_optimal(
    tree: FittedTree, search: SearchRecord, left_out: int, rounded: bool, stopped: bool
) -> Certificate:
    """Return what a search proves about its tree.

    Parameters
    ----------
    tree : FittedTree
        As found, or cut.
    search : SearchRecord
    left_out : int
        How many rows it was not made from.
    rounded : bool
        Whether different whole numbers of a column are one as float64.
    stopped : bool
        Whether the search was cut short.
    """
    whole, classes = float(tree.totals[0].sum()), tree.totals.shape[1]
    if search.objective == "error":
        costs = (tree.totals.sum(axis=1) - tree.totals.max(axis=1)) / whole
    else:
        costs = lost_nats(tree.totals / whole)
    leaves = tree.leaf_count
    fit, penalty = float(costs[tree.is_leaf].sum()), search.leaf_penalty
    objective, scale = fit + penalty * leaves, float(costs[0]) + penalty
    rounding = leaves * (classes + 1) * search.unit + search.weight_rounding
    rounding += ROUNDING * (1 + scale) * (search.unit > 0.0)
    gap = objective - search.lower_bound
    gap = 0.0 if gap <= max(rounding, 1e-15) else gap
    notes = cut_notes(tree, left_out) + ["the search was stopped"] * stopped
    return Certificate(
        KIND,
        objective,
        gap,
        scale,
        0.0 if stopped else np.inf,
        {"nodes": tree.node_count, "leaves": leaves},
        _claim(search, objective, gap, fit, float(costs[0])) + ", as float64 holds the numbers" * rounded,
        tuple(notes),
        rounding,
    )


def _claim(search: SearchRecord, objective: float, gap: float, fit: float, constant: float) -> str:
    """Say how close to the best tree this one is."""
    among = f"depth {search.max_depth}"
    if search.max_leaf_nodes is not None:
        among += f" with at most {search.max_leaf_nodes} leaves"
    if not search.all_groupings:
        among += " among the groupings tried"
    if gap == 0.0:
        counted = ", leaves counted" * (search.leaf_penalty > 0)
        return f"the best tree of {among}: no other {_fit_words(search, fit, constant)}{counted}"
    bound = objective - gap
    if bound <= 0.0:
        return f"no bound is known of the trees of {among}"
    most = math.ceil(1e3 * gap / bound - 1e-6) / 10  # a bound is rounded up
    return f"within {most:g}% of the best tree of {among}"


def _fit_words(search: SearchRecord, fit: float, constant: float) -> str:
    """Say what no other tree has: fewer errors, or less uncertainty about the class."""
    if search.objective == "error":
        return f"has fewer errors ({100 * fit:.1f}% of the {'weight' if search.weighted else 'rows'})"
    gone = 1.0 - fit / constant if constant > 0 else 1.0
    return f"takes more of the uncertainty about the class ({100 * gone:.1f}%)"
