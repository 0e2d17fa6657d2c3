"""What is certain about a greedy tree.

The objective is the average negative log-likelihood of the training rows in nats, which is the average
entropy of the leaves:

    - 1/W sum_i w_i ln p(y_i | leaf of x_i)  =  1/W sum_leaves W_leaf H(leaf)

Rows that are equal in every column end together in every tree. So the entropy of leaves whose rows are all
equal, or of one class, is lost in every tree, and what the others have is the most that any tree could gain.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.certificate import Certificate
from sixfold.solvers.trees.training import GrowthRecord
from sixfold.solvers.trees.tree import Reason, Tree

Array = NDArray[Any]

KIND = "greedy tree"
ROUNDING = 1e-12


def lost_nats(totals: Array) -> Array:
    """Return W_t H(t) in nats for each node.

    >>> lost_nats(np.array([[4.0, 0.0], [1.0, 1.0]])) / np.log(2.0)
    array([0., 2.])
    """
    return _x_ln_x(totals.sum(axis=-1)) - _x_ln_x(totals).sum(axis=-1)


def _x_ln_x(x: Array) -> Array:
    return x * np.log(x, out=np.zeros_like(x), where=x > 0)


def lost_of_all(tree: Tree) -> float:
    """Return the average entropy, in nats, that this tree knows to be lost in every tree."""
    final = (tree.reason == Reason.PURE) | (tree.reason == Reason.EXHAUSTED)
    return float(lost_nats(tree.totals / tree.totals[0].sum())[final].sum())


def certify(tree: Tree, grown: GrowthRecord) -> Certificate:
    """Return what a grown tree proves about its own fit."""
    leaf, stopped = tree.is_leaf, grown.stopped
    final = (tree.reason == Reason.PURE) | (tree.reason == Reason.EXHAUSTED)
    lost = lost_nats(tree.totals / tree.totals[0].sum())
    objective, gap = float(lost[leaf].sum()), float(lost[leaf & ~final].sum())
    notes = []
    if grown.left_out:
        notes.append(f"{_things(grown.left_out, 'row')} held out")
    if pruned := int((tree.reason[leaf] == Reason.PRUNED).sum()):
        notes.append(f"{_things(pruned, 'node')} pruned to {'a leaf' if pruned == 1 else 'leaves'}")
    if stopped:
        unsplit = int((tree.reason == Reason.STOPPED).sum())
        notes.append(f"growth was stopped with {unsplit} node{'s' * (unsplit != 1)} left to split")
    details = {
        "nodes": tree.node_count,
        "leaves": tree.leaf_count,
    }
    return Certificate(
        KIND,
        objective,
        gap,
        float(lost[0]),
        0.0 if stopped else np.inf,
        details,
        claim_of(gap, grown),
        tuple(notes),
        ROUNDING,
    )


def _things(count: int, noun: str) -> str:
    return f"1 {noun} was" if count == 1 else f"{count} {noun}s were"


def claim_of(gap: float, grown: GrowthRecord) -> str:
    """Say in words what is claimed."""
    tried = ["the columns drawn"] * (grown.rules.max_columns is not None)
    tried += ["the groupings tried"] * (not grown.all_groupings)
    best = "every split is the best of its node" + (f" among {' and '.join(tried)}" if tried else "")
    if gap == 0:
        return f"{best}; no tree fits these rows better"
    return f"{best}; at most {gap:.3g} nats above the best fit of these rows"
