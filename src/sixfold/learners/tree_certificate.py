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
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.certificate import Certificate
from sixfold.errors import CertificateError
from sixfold.learners.tree_growing import GrowthRecord, TrainingRows
from sixfold.solvers.drawn_columns import drawn_columns, node_paths
from sixfold.solvers.split_table import ColumnSplit, best_split, split_score, split_table
from sixfold.solvers.tree import NO_NODE, Reason, Tree
from sixfold.solvers.tree_growth import TIE, GrowthRules

Array = NDArray[Any]

KIND = "greedy tree"
ROUNDING = 1e-12
_REASONS = "Either the data are not those of the fit, or the tree was changed."


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
        "claim": _claim(gap, grown),
        "nodes": tree.node_count,
        "leaves": tree.leaf_count,
        "objective_rounding": ROUNDING,
        "notes": notes,
    }
    return Certificate(KIND, objective, gap, float(lost[0]), 0.0 if stopped else np.inf, details)


def _things(count: int, noun: str) -> str:
    return f"1 {noun} was" if count == 1 else f"{count} {noun}s were"


def _claim(gap: float, grown: GrowthRecord) -> str:
    tried = ["the columns drawn"] * (grown.rules.max_columns is not None)
    tried += ["the groupings tried"] * (not grown.all_groupings)
    best = "every split is the best of its node" + (f" among {' and '.join(tried)}" if tried else "")
    if gap == 0:
        return f"{best}; no tree fits these rows better"
    return f"{best}; at most {gap:.3g} nats above the best fit of these rows"


# -- the check ---------------------------------------------------------------------------------------------


def recompute(tree: Tree, rows: TrainingRows, grown: GrowthRecord) -> Certificate:
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
        members = _Members(tree, X, labels, weight, nodes)
        _require_same_totals(members)
        _require_best_splits(members, grown.rules)
        gap = members.gap() / whole
    rounding = {"objective_rounding": ROUNDING, "gap_rounding": ROUNDING, "gap_is_linear": True}
    details = {"claim": _claim(gap, grown), **rounding}
    return Certificate(KIND, objective, gap, scale, expected.tolerance, details)


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


def route(tree: Tree, X: Any) -> NDArray[np.int64]:
    """Return the node at which each row ends, level by level."""
    nodes = np.zeros(X.shape[0], dtype=np.int64)
    moving = np.arange(X.shape[0]) if tree.column[0] >= 0 else np.arange(0)
    while moving.size:
        after = _next_nodes(tree, X, nodes, moving)
        going = after >= 0
        nodes[moving[going]] = after[going]
        moving = moving[going & (tree.column[after] >= 0)]
    return nodes


def _next_nodes(tree: Tree, X: Any, nodes: Array, moving: Array) -> Array:
    """Return where rows go from their nodes, -1 where there is no branch."""
    here = nodes[moving]
    column = tree.column[here]
    cells = sp.csr_matrix(X)[moving, column] if sp.issparse(X) else X[moving, column]
    x = np.asarray(cells, dtype=np.float64).ravel()
    unknown = np.isnan(x)
    numbers = tree.kinds[column] == 0
    code = np.where(numbers, x > tree.threshold[here], np.where(unknown, 0.0, x)).astype(np.int64)
    # The branches of a node are in order of their codes, so all branches are in order of (node, code).
    width = max(int(tree.code.max(initial=0)), int(code.max(initial=0))) + 2
    owner = np.repeat(np.arange(tree.node_count), np.diff(tree.first))
    keys = owner * width + tree.code
    wanted = here * width + np.where(code < 0, width - 1, code)
    place = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    found = np.where(keys[place] == wanted, tree.child[place], -1)
    return np.where(unknown, tree.unknown[here], found)


class _Members:
    """The rows that reach each node, made from where they end."""

    def __init__(self, tree: Tree, X: Any, labels: Array, weight: Array, nodes: Array) -> None:
        self.tree, self.X, self.labels, self.weight = tree, X, labels, weight
        self.order = np.argsort(nodes, kind="stable")  # depth first: a subtree is one stretch
        self.ends = nodes[self.order]
        count, classes = tree.totals.shape
        counted = np.bincount(nodes * classes + labels, weight, minlength=count * classes)
        self.totals = counted.reshape(count, classes)  # the weight of each class in each node
        self.rows = np.bincount(nodes, minlength=count)
        for depth in range(int(tree.depth.max()), 0, -1):
            level = np.flatnonzero(tree.depth == depth)
            np.add.at(self.totals, tree.parent[level], self.totals[level])
            np.add.at(self.rows, tree.parent[level], self.rows[level])

    def of(self, node: int) -> Array:
        """Return the rows of a node, those of all nodes below it included."""
        first, after = np.searchsorted(self.ends, [node, self.tree.last[node] + 1])
        return self.order[first:after]

    def gap(self) -> float:
        """Return the entropy, times weight, of leaves that a tree could still split."""
        lost = np.where(self.tree.is_leaf, lost_nats(self.totals), 0.0)
        mixed = np.flatnonzero(lost > 0.0)
        return float(sum(lost[node] for node in mixed.tolist() if not _all_equal(self.X[self.of(node)])))


def _all_equal(X: Any) -> bool:
    values = X.toarray() if sp.issparse(X) else X
    first = values[:1]
    return bool(((values == first) | (np.isnan(values) & np.isnan(first))).all())


def _require_same_totals(members: _Members) -> None:
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


class _SplitTables:
    """The best split of each column that a node has looked at."""

    def __init__(self, members: _Members, rules: GrowthRules) -> None:
        self.members, self.rules = members, rules
        self.paths = [] if rules.max_columns is None else node_paths(members.tree, rules.seed)

    def of(self, node: int) -> list[ColumnSplit]:
        """Return the table of all columns, or of those drawn and of more until one has a split."""
        if self.rules.max_columns is None:
            return self._by(node, None)
        drawn = drawn_columns(self.paths[node], self.members.X.shape[1])
        table = self._by(node, list(islice(drawn, self.rules.max_columns)))
        return table or next(filter(None, (self._by(node, [column]) for column in drawn)), [])

    def _by(self, node: int, columns: list[int] | None) -> list[ColumnSplit]:
        members, rows = self.members, self.members.of(node)
        X, labels, weight = members.X[rows], members.labels[rows], members.weight[rows]
        kinds, classes = members.tree.kinds, members.tree.totals.shape[1]
        return split_table(X, kinds, labels, classes, weight, self.rules, columns)


def _require_best_splits(members: _Members, rules: GrowthRules) -> None:
    tree = members.tree
    tables = _SplitTables(members, rules)
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
