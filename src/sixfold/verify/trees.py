"""What is certain about a greedy tree, and how it is checked.

The objective is the average negative log-likelihood of the training rows in nats, which is the average
entropy of the leaves:

    - 1/W sum_i w_i ln p(y_i | leaf of x_i)  =  1/W sum_leaves W_leaf H(leaf)

Rows that are equal in every column end together in every tree. So the entropy of leaves whose rows are all
equal, or of one class, is lost in every tree, and what the others have is the most that any tree could gain.
The check routes the rows anew and tries every split of every column at every node, all in NumPy. Where growth
does not try all groupings of the categories of a column, or all columns, the claim says so, and so many are
what the check tries.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.certificate import Certificate
from sixfold.errors import CertificateError
from sixfold.solvers.trees.certificate import ROUNDING, certify, claim_of, lost_nats
from sixfold.solvers.trees.exhaustive_splits import best_split, split_score
from sixfold.solvers.trees.growth import TIE, GrowthRules
from sixfold.solvers.trees.routing import NodeRows, SplitTables, route
from sixfold.solvers.trees.training import GrowthRecord, TrainingRows
from sixfold.solvers.trees.tree import NO_NODE, Tree
from sixfold.verify.recomputed import Recomputed

Array = NDArray[Any]

_REASONS = (
    "Either the data are not those of the fit, or the tree was changed. If there were weights, "
    "pass the sample_weight of the fit."
)


def recompute(
    claimed: Certificate, tree: Tree, rows: TrainingRows, grown: GrowthRecord, hint: str = ""
) -> Recomputed:
    """Return the certificate of a tree from its arrays and the rows alone, those that it was grown from.

    Raises a :class:`CertificateError` where the arrays are no tree, or a node has a better split than the one
    that was made; not where the objective is another than expected, which the caller finds out.
    """
    _require_sound(tree, rows)
    expected = certify(tree, grown)
    # A new tree: what was worked out from arrays that have changed since is not used.
    tree = replace(tree, totals=np.ldexp(tree.totals, -rows.weight_exponent))
    counting = np.flatnonzero(rows.counting)
    weight = np.ones(counting.size) if rows.weight is None else rows.weight[counting]
    X, labels = rows.X[counting], rows.labels[counting]
    whole = float(weight.sum())
    nodes = route(tree, X)
    shares = tree.totals / tree.totals.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        objective = 0.0 - float((weight * np.log(shares[nodes, labels])).sum() / whole)  # never -0
    classes = np.bincount(labels, weights=weight, minlength=rows.classes)
    scale = float(lost_nats(classes) / whole)
    gap = expected.gap
    if abs(objective - expected.objective) <= 2 * ROUNDING:
        members = NodeRows(tree, X, labels, weight, nodes)
        _require_same_totals(members)
        _require_best_splits(members, grown.rules)
        gap = _gap(members) / whole
    found = replace(
        expected, objective=objective, gap=gap, scale=scale, claim=claim_of(gap, grown), details={}
    )
    return Recomputed(found, 2 * ROUNDING, claimed.gap + ROUNDING, hint)


def _require_sound(tree: Tree, rows: TrainingRows) -> None:
    """Raise unless the arrays are a tree whose nodes are numbered depth first, of columns that there are."""
    count, leaf = tree.node_count, tree.is_leaf
    columns = rows.X.shape[1]
    lengths = {len(one) for one in (tree.threshold, tree.unknown, tree.reason, tree.rows, tree.totals)}
    if (
        lengths != {count}
        or tree.totals.shape != (count, rows.classes)
        or tree.first.shape != (count + 1,)
        or tree.first[0] != 0
        or tree.first[-1] != tree.child.size
        or tree.code.size != tree.child.size
        or not np.array_equal(np.diff(tree.first) > 0, ~leaf)
    ):
        raise CertificateError(f"The arrays of the tree do not fit together. {_REASONS}")
    if ((tree.column < -1) | (tree.column >= columns)).any() or not np.array_equal(tree.kinds, rows.kinds):
        raise CertificateError(
            f"The tree asks for columns that the {columns} of the data are not. {_REASONS}"
        )
    own = np.flatnonzero(tree.unknown != NO_NODE)
    owner = np.concatenate([np.repeat(np.arange(count), np.diff(tree.first)), own])
    child = np.concatenate([tree.child, tree.unknown[own]])
    # Several branches may lead to one child, but only those of one node.
    ways = np.unique(np.stack([child, owner]), axis=1)
    forward = (child > owner).all() and (child < count).all() and not leaf[own].any()
    if not forward or not np.array_equal(ways[0], np.arange(1, count)) or not _depth_first(ways[1].tolist()):
        raise CertificateError(f"Not every node of the tree is reached once, depth first. {_REASONS}")


def _depth_first(parents: list[int]) -> bool:
    """Return whether all that lies below a node follows it; the parents are those of nodes 1, 2, ..."""
    size, last = [1] * (len(parents) + 1), list(range(len(parents) + 1))
    for node in range(len(parents), 0, -1):
        above = parents[node - 1]
        size[above] += size[node]
        last[above] = max(last[above], last[node])
    return all(end - node + 1 == below for node, (end, below) in enumerate(zip(last, size, strict=True)))


def _gap(members: NodeRows) -> float:
    """Return the entropy, times weight, of leaves that a tree could still split."""
    lost = np.where(members.tree.is_leaf, lost_nats(members.totals), 0.0)
    mixed = np.flatnonzero(lost > 0.0).tolist()
    return float(sum(lost[node] for node in mixed if not _all_equal(members.X[members.of(node)])))


def _all_equal(X: Any) -> bool:
    values = X.toarray() if sp.issparse(X) else X
    first = values[:1]
    return bool(((values == first) | (np.isnan(values) & np.isnan(first))).all())


def _require_same_totals(members: NodeRows) -> None:
    tree = members.tree
    off = np.abs(members.totals - tree.totals).max(axis=1) > ROUNDING * tree.weight
    others = np.flatnonzero(off | (members.rows != tree.rows))
    if others.size:
        node = int(others[0])
        raise CertificateError(
            f"Node {node} says that it has {int(tree.rows[node])} rows and the class totals "
            f"{tree.totals[node].tolist()}, but {int(members.rows[node])} rows reach it, with "
            f"{members.totals[node].tolist()}. {_REASONS}"
        )


def _require_best_splits(members: NodeRows, rules: GrowthRules) -> None:
    tree = members.tree
    tables = SplitTables(members, rules)
    for node in np.flatnonzero(~tree.is_leaf).tolist():
        rows = members.of(node)
        made = split_score(members.totals[tree.children(node)], rules)
        table = tables.of(node)
        total = members.weight[rows].sum()
        best = best_split(table, total, rules)
        # A gain is rounded by some 1e-16 log n, and gain_ratio divides it by as little as the lightest row.
        rounding = 1e-15 * total / members.weight[rows].min() if rules.criterion == "gain_ratio" else 0.0
        # One that looks better than the best of the table is none of those that are allowed.
        if best is None or abs(made - best.score) > (2 * TIE + rounding) * total:
            known = (
                "no split is allowed" if best is None else f"that of column {best.column} has {best.score!r}"
            )
            raise CertificateError(
                f"The split of node {node} by column {int(tree.column[node])} has the score {made!r}, but "
                f"{known}. {_REASONS}"
            )
