"""The check of a tree that is said to be the best, or so close to it.

    objective      cost / W,   cost = sum over leaves of (leaf cost + penalty),   penalty = W leaf_penalty
    lower bound    min(the cost of a single leaf, least of left + right + unknown over the items) / W

The items are those of the frontier that the search has kept (:mod:`sixfold.verify.tree_frontier`). Here the
tree is checked: that it is one, of this size, that it asks what the rules allow, and that it has the rows and
the objective that it says it has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.certificate import Certificate
from sixfold.errors import CertificateError
from sixfold.verify.recomputed import Recomputed
from sixfold.verify.tree_arrays import (
    REASONS,
    ROUNDING,
    GivenTree,
    cells,
    children_of,
    require_sound,
    require_totals,
    route,
)
from sixfold.verify.tree_frontier import FrontierCheck
from sixfold.verify.tree_search import ALL_GROUPINGS

Array = NDArray[Any]

KIND = "optimal tree"
WORDS_ROUNDING = 1e-9  # of a share that is shown, in parts of that of a single leaf


@dataclass(frozen=True)
class OptimalTreeClaim(GivenTree):
    """A tree, the rows it was made from, and among which trees it is the best.

    Costs of the frontier are in the unit of ``weight``, not averages.
    """

    objective: str  # "error" or "entropy"
    max_depth: int
    max_leaf_nodes: int | None
    leaf_penalty: float  # in the unit of the average objective
    binary: bool  # categories in two groups
    unknown_best: bool  # unknown values join a child
    frontier: Any  # see tree_frontier.Frontier
    unit: float = 0.0  # costs of leaves were rounded to whole numbers of it, for each class and their sum
    rounded: bool = False  # different whole numbers of a column are one as float64


def recompute(claim: OptimalTreeClaim, claimed: Certificate, hint: str = "") -> Recomputed:
    """Return the certificate from the tree, the rows and the frontier.

    Raises a :class:`CertificateError` where the tree is not what it says, or where a bound is not one.
    """
    require_sound(claim)
    reached = list(route(claim))
    totals = np.array([require_totals(claim, node, rows) for node, rows in enumerate(reached)])
    _require_size(claim)
    for node in np.flatnonzero(claim.tree.column >= 0).tolist():
        _require_allowed(claim, node, reached)
    checker = FrontierCheck(claim)
    leaves, whole = totals[claim.tree.column < 0], float(claim.weight.sum())
    fit, constant = (float(np.sum(checker.search.leaf(one))) / whole for one in (leaves.T, totals[0]))
    objective, scale = fit + claim.leaf_penalty * len(leaves), constant + claim.leaf_penalty
    rounded = (len(leaves) * checker.rounded + ROUNDING * whole * (1 + scale)) / whole
    gap, notes = claimed.gap, claimed.notes
    if abs(objective - claimed.objective) <= rounded:  # else comparing them tells
        _require_words(claim, claimed, fit, constant)
        # The bound of the search is that of its rounded costs, and of rounded weights.
        said = claimed.lower_bound * whole - len(leaves) * checker.rounded
        bound = min(checker.require_bound(said) / whole, scale, objective)
        gap = objective - bound
        notes = (*notes, checker.require_items())
    found = replace(claimed, objective=objective, gap=gap, scale=scale, details={}, notes=notes)
    most = claimed.gap + 2 * rounded + checker.weights_rounded / whole
    return Recomputed(found, rounded, most, (KIND,), hint, scale + rounded)


def _require_words(claim: OptimalTreeClaim, claimed: Certificate, fit: float, constant: float) -> None:
    """Raise if it is said in other words than these what is claimed.

    Where a share lies between two that are shown, rounding decides, and both are right.
    """
    size, end = f"depth {claim.max_depth}", ""
    if claim.max_leaf_nodes is not None:
        size += f" with at most {claim.max_leaf_nodes} leaves"
    for column in np.flatnonzero(claim.kinds).tolist() if claim.binary else ():
        value = np.unique(cells(claim.X, np.arange(claim.labels.size), column))
        if value.size - (np.isnan(value[-1]) and not claim.unknown_best) > ALL_GROUPINGS:
            end = " among the groupings tried"
    if claimed.gap == 0:
        shares = (fit, fit - WORDS_ROUNDING * constant, fit + WORDS_ROUNDING * constant)
        known = [
            f"the best tree of {size}{end}: no other {_fit_words(claim, one, constant)}" for one in shares
        ]
    elif claimed.lower_bound > 0:
        most = math.ceil(1e3 * claimed.gap / claimed.lower_bound - 1e-6) / 10
        known = [f"within {most:g}% of the best tree of {size}{end}"]
    else:
        known = [f"no bound is known of the trees of {size}{end}"]
    known = [words + ", as float64 holds the numbers" * claim.rounded for words in known]
    if claimed.claim not in ("", *known):
        raise CertificateError(
            f"The certificate claims {claimed.claim!r}, but its figures say {known[0]!r}. {REASONS}"
        )


def _fit_words(claim: OptimalTreeClaim, fit: float, constant: float) -> str:
    """Say what no other tree has: fewer errors, or less entropy in parts of that of a single leaf."""
    counted = ", leaves counted" * (claim.leaf_penalty > 0)
    if claim.objective == "error":
        of = "weight" if np.ptp(claim.weight) > 0 else "rows"
        return f"has fewer errors ({100 * fit:.1f}% of the {of}){counted}"
    gone = 1.0 - fit / constant if constant > 0 else 1.0
    return f"takes more of the uncertainty about the class ({100 * gone:.1f}%){counted}"


# -- the tree ------------------------------------------------------------------------------------------------


def _require_size(claim: OptimalTreeClaim) -> None:
    """Raise if the tree is deeper or larger than it may be."""
    depth, leaves = [0] * claim.tree.column.size, int((claim.tree.column < 0).sum())
    for node, deep in enumerate(depth):
        for child in children_of(claim.tree, node):
            depth[child] = deep + 1
    if max(depth) > claim.max_depth:
        raise CertificateError(
            f"The tree has {max(depth)} questions above a leaf, but it is said to be the best of those with "
            f"at most {claim.max_depth}. {REASONS}"
        )
    if leaves > (claim.max_leaf_nodes or leaves):
        raise CertificateError(
            f"The tree has {leaves} leaves, but it is said to be the best of those with at most "
            f"{claim.max_leaf_nodes}. {REASONS}"
        )


def _require_allowed(claim: OptimalTreeClaim, node: int, reached: list[Array]) -> None:
    """Raise unless the rules allow the question of a node, and all its rows go to children."""
    tree, children = claim.tree, children_of(claim.tree, node)
    code = tree.code[tree.first[node] : tree.first[node + 1]].tolist()
    ways = tree.child[tree.first[node] : tree.first[node + 1]].tolist()
    unknown, is_number = int(tree.unknown[node]), not claim.kinds[tree.column[node]]
    if is_number or claim.binary:  # two sides, and what is unknown on one of them or apart
        fits = len(set(ways)) <= 2 and (not is_number or set(code) <= {0, 1})
        fits &= len(children) <= 2 + (not claim.unknown_best)
    else:  # a child each, or known and unknown
        fits = len(set(ways)) == len(ways) or (claim.unknown_best and len(set(ways)) == 1)
    fits &= len(set(code)) == len(code) and (claim.unknown_best or unknown not in ways)
    sizes = [reached[child].size for child in children]
    if not fits or len(children) < 2 or 0 in sizes or sum(sizes) != reached[node].size:
        raise CertificateError(
            f"Node {node} parts its {reached[node].size} rows by column {int(tree.column[node])} into "
            f"children of {sizes} rows in a way that the rules of this tree do not allow. {REASONS}"
        )
