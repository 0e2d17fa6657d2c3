"""The check of a greedy tree: every split is the best of its node, and how much better a tree could fit.

Of a lookahead tree objective and gap are checked in the same way, but not its splits.

    objective   - 1/W sum_i w_i ln p(y_i | leaf of x_i)
    gap         1/W sum of W_t H(t) over leaves t that are mixed and whose rows differ in some column
    splits      |S(split made) - least S of all splits the rules allow at the node| <= 2e-12 W_node

Rows that are equal in every column end together in every tree, so what other leaves have lost is the most
that any tree could gain. With the weight w_kc of each class in the children k of a split, W_k = sum_c w_kc
and f(x) = x log2 x, the scores S are

    entropy       sum_k f(W_k) - sum_kc f(w_kc)
    gini          sum_k (W_k - sum_c w_kc^2 / W_k)
    gain_ratio    - W gain / info,  info = (f(W) - sum_k f(W_k)) / W,  of each column's split with the most
                  gain, of columns with at least the average gain
    homogeneous   the weight of the children that are mixed

The rows are routed anew, and all candidates of a node are written out: thresholds between values that differ;
categories a child each, or in two groups (all groups for up to eight categories and more than two classes,
else prefixes in the order of the shares of a class); unknown values as a child, or together with any other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.certificate import Certificate
from sixfold.errors import CertificateError
from sixfold.verify.recomputed import Recomputed
from sixfold.verify.tree_arrays import (
    REASONS,
    ROUNDING,
    GivenTree,
    Reached,
    cells,
    children_of,
    gathered,
    require_sound,
    require_totals,
)

Array = NDArray[Any]

SPLITS = {
    "greedy tree": "every split is the best of its node",
    "lookahead tree": "every split begins the best tree of two levels at its node",
}
TIE = 1e-12  # average impurities this close are equal
# Numbers of rows that are compared at a time; of a node, up to which its rows are copied; of all nodes whose
# splits are tried again, about two minutes.
COMPARED_NUMBERS, GATHERED_NUMBERS, CHECKED_NUMBERS = 1 << 16, 1 << 24, 1 << 29
ALL_GROUPINGS = 8  # so many categories are grouped in every way where there are more than two classes


@dataclass(frozen=True)
class TreeClaim(GivenTree):
    """A tree, the rows it has grown from, and the rules of its splits."""

    criterion: str
    binary: bool  # categories in two groups
    unknown_best: bool  # unknown values join a child
    min_samples_leaf: int
    min_leaf_weight: float
    max_columns: int | None  # so many columns are drawn at a node; None for all
    seed: int
    rounded: bool  # different whole numbers of a column are one as float64
    kind: str = "greedy tree"  # or "lookahead tree", of whose splits nothing is checked


def recompute(claim: TreeClaim, claimed: Certificate, hint: str = "") -> Recomputed:
    """Return the certificate from the tree's arrays and the rows.

    Raises a :class:`CertificateError` where the arrays are no tree, or where a node could be split better.
    """
    tree, labels, weight = claim.tree, claim.labels, claim.weight
    require_sound(claim)
    whole = float(weight.sum())
    reached = Reached(claim)
    shares = tree.totals / tree.totals.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        objective = 0.0 - float((weight * np.log(shares[reached.ends, labels])).sum() / whole)  # never -0
    gap, notes = claimed.gap, claimed.notes
    if abs(objective - claimed.objective) <= 2 * ROUNDING:
        gap = 0.0
        for node in range(len(reached)):
            rows = reached[node]
            totals = require_totals(claim, node, rows)
            if tree.column[node] < 0 and (totals > 0).sum() > 1 and not _all_equal(claim.X, rows):
                gap += _lost(totals) / whole
        if claim.kind == "greedy tree":
            notes = (*notes, *_require_best_splits(claim, reached))
    scale = _lost(np.bincount(labels, weight, tree.totals.shape[1])) / whole
    found = replace(claimed, objective=objective, gap=gap, scale=scale, details={}, notes=notes)
    found = replace(
        found, claim=f"{_require_words(claim, claimed, found)}; {_distance(found, claim.rounded)}"
    )
    largest = scale + 2 * ROUNDING
    return Recomputed(found, 2 * ROUNDING, claimed.gap + ROUNDING, (claim.kind,), hint, largest)


def _require_words(claim: TreeClaim, claimed: Certificate, found: Certificate) -> str:
    """Return among what every split is said to be the best; raise where it is less, or other words are said.

    In the order of their shares of one of two classes the best groups of categories are neighbours (Breiman
    et al. 1984, section 9.4), unless a leaf can be too small for them. Categories of rows that do not count
    may have made it say less than it could.
    """
    grouped = np.flatnonzero(claim.kinds) if claim.binary else np.empty(0, dtype=np.int64)
    every = np.arange(claim.labels.size)
    values = [np.unique(cells(claim.X, every, column)) for column in grouped.tolist()]
    most = max((np.count_nonzero(~np.isnan(value)) for value in values), default=0)
    small = claim.min_samples_leaf > 1 or claim.min_leaf_weight > 0
    overlooked = most > (ALL_GROUPINGS if claim.tree.totals.shape[1] > 2 else 2 if small else np.inf)
    if claim.kind == "lookahead tree":  # the best two levels need not have the best split on top
        kept = [value.size - (np.isnan(value[-1:]).any() and not claim.unknown_best) for value in values]
        overlooked = max(kept, default=0) > ALL_GROUPINGS
    drawn = ["the columns drawn"] * (claim.max_columns is not None)
    known = [[*drawn, "the groupings tried"]] * bool(grouped.size) + [drawn] * (not overlooked)
    words = [SPLITS[claim.kind] + " among " * bool(t) + " and ".join(t) for t in known]
    said, _, distance = claimed.claim.partition("; ")
    fits = [_distance(one, claim.rounded) for one in (found, claimed)]
    if said not in words or distance not in fits:
        raise CertificateError(
            f"The certificate claims {claimed.claim!r}, but of this tree no more is known than "
            f"{f'{words[-1]}; {fits[0]}'!r}. {REASONS}"
        )
    return said


def _distance(certificate: Certificate, rounded: bool) -> str:
    """Say how much of the entropy of the classes is gone, and which share of it could be."""
    end = ", as float64 holds the numbers" if rounded else ""
    if certificate.gap == 0:
        return f"no tree fits these rows better{end}"
    if not math.isfinite(certificate.objective):  # a row has a class that its leaf has not
        return "no bound is known"
    left, best = certificate.objective / certificate.scale, certificate.lower_bound / certificate.scale
    done, most = 100.0 * (1.0 - left), min(math.ceil(1e3 * (1.0 - best) - 1e-6) / 10, 100.0)
    return (
        f"{done:.1f}% of the uncertainty about the class is gone, and no tree takes more than {most:g}%{end}"
    )


def _lost(totals: Array) -> float:
    """Return W H in nats."""
    held = totals[totals > 0]
    return float(held.sum() * np.log(held.sum()) - held @ np.log(held))


def _all_equal(X: Any, rows: Array) -> bool:
    """Return whether some rows are equal; where they are not, the first few will mostly say so."""
    step = max(COMPARED_NUMBERS // max(X.shape[1], 1), 1)
    first = X[rows[:1]].toarray() if sp.issparse(X) else X[rows[:1]]
    for start in range(0, rows.size, step):
        some = X[rows[start : start + step]]
        values = some.toarray() if sp.issparse(X) else some
        if not ((values == first) | (np.isnan(values) & np.isnan(first))).all():
            return False
    return True


# -- every split that a node could have ----------------------------------------------------------------------


class ColumnBest(NamedTuple):
    """The splits of a column with the most gain: the average impurity of their children, their scores."""

    average: float
    least: float
    most: float


def _require_best_splits(claim: TreeClaim, reached: Reached) -> list[str]:
    """Raise unless every split is the best of its node; return what has to be said where these are too many.

    Nodes with fewer rows come first, so that as many as possible are looked at.
    """
    split = np.flatnonzero(claim.tree.column >= 0)
    split = split[np.argsort(claim.tree.rows[split], kind="stable")]
    numbers = np.cumsum(claim.tree.rows[split]) * claim.X.shape[1]
    checked = split[: max(int(np.searchsorted(numbers, CHECKED_NUMBERS, side="right")), 1)]
    for node in np.sort(checked).tolist():
        _require_best(claim, node, reached)
    if checked.size == split.size:
        return []
    return [f"the splits of {checked.size} of {split.size} nodes were searched for again"]


def _require_best(claim: TreeClaim, node: int, reached: Reached) -> None:
    tree, rows = claim.tree, reached[node]
    sides = [reached[child] for child in children_of(tree, node)]
    totals, counts = (
        np.array([np.bincount(claim.labels[r], held[r], tree.totals.shape[1]) for r in sides])[None]
        for held in (claim.weight, np.ones_like(claim.weight))
    )
    made = float(_scores(totals, counts, claim.criterion)[1][0])
    if not sp.issparse(claim.X) and rows.size * claim.X.shape[1] <= GATHERED_NUMBERS:
        # Read once, wherever in the table or its file they are.
        here = replace(claim, X=gathered(claim.X, rows), labels=claim.labels[rows], weight=claim.weight[rows])
        found = _best_of_columns(here, np.arange(rows.size), _path(tree, node, claim.seed))
    else:
        found = _best_of_columns(claim, rows, _path(tree, node, claim.seed))
    weight = float(claim.weight[rows].sum())
    # A gain is rounded by some 1e-16 log n, and gain_ratio divides it by as little as the lightest row.
    allowance = 2 * TIE * weight
    if claim.criterion == "gain_ratio":
        allowance += 1e-15 * weight**2 / float(claim.weight[rows].min())
    least = min((one.least for one in found.values()), default=np.inf)
    most = min((one.most for one in found.values()), default=-np.inf)
    # A split that looks better than the best is none of those that are allowed.
    if not least - allowance <= made <= most + allowance:
        best = next((column for column, one in found.items() if one.least == least), None)
        known = "no split is allowed" if best is None else f"that of column {best} has {least!r}"
        raise CertificateError(
            f"The split of node {node} by column {int(tree.column[node])} has the score {made!r}, but "
            f"{known}. {REASONS}"
        )


def _best_of_columns(claim: TreeClaim, rows: Array, path: int) -> dict[int, ColumnBest]:
    """Return what is compared: the best of each column that is looked at and has an allowed split."""
    found: dict[int, ColumnBest] = {}
    columns = claim.X.shape[1]
    drawn = columns if claim.max_columns is None else claim.max_columns
    for place, column in enumerate(range(columns) if drawn == columns else _shuffled(path, columns)):
        if found and place >= drawn:  # more are looked at only where none of those drawn has a split
            break
        best = _best_of_column(claim, rows, column)
        if best is not None:
            found[column] = best
    if claim.criterion == "gain_ratio" and found:
        most = sum(one.average for one in found.values()) / len(found) + TIE
        found = {column: one for column, one in found.items() if one.average <= most}
    return found


def _best_of_column(claim: TreeClaim, rows: Array, column: int) -> ColumnBest | None:
    weight = claim.weight[rows]
    x, total = cells(claim.X, rows, column), float(weight.sum())
    ranks, scores = [np.empty(0)], [np.empty(0)]
    for totals, counts, may_be_small in _candidates(claim, x, column, claim.labels[rows], weight):
        large = counts.sum(axis=2) >= claim.min_samples_leaf
        large &= totals.sum(axis=2) >= claim.min_leaf_weight - TIE * total
        allowed = large[:, : large.shape[1] - may_be_small].sum(axis=1) >= 2
        rank, score = _scores(totals[allowed], counts[allowed], claim.criterion)
        ranks.append(rank)
        scores.append(score)
    rank, score = np.concatenate(ranks), np.concatenate(scores)
    if not rank.size:
        return None
    tied = score[rank <= rank.min() + TIE * total]
    return ColumnBest(float(rank.min()) / total, float(tied.min()), float(tied.max()))


def _scores(totals: Array, counts: Array, criterion: str) -> tuple[Array, Array]:
    """Return W times the average impurity of the children of each candidate, and its score S.

    The axes are candidate, child, class; counts are rows.
    """
    held = totals.sum(axis=2)
    if criterion == "gini":
        rank = (held - np.square(totals).sum(axis=2) / held).sum(axis=1)
    elif criterion == "homogeneous":
        rank = np.where((counts > 0).sum(axis=2) > 1, held, 0.0).sum(axis=1)
    else:
        rank = _f(held).sum(axis=1) - _f(totals).sum(axis=(1, 2))
    if criterion != "gain_ratio":
        return rank, rank
    node = totals.sum(axis=1)
    weight = node.sum(axis=1)
    gain, info = _f(weight) - _f(node).sum(axis=1) - rank, _f(weight) - _f(held).sum(axis=1)
    return rank, -weight * gain / info


def _f(x: Array) -> Array:
    return x * np.log2(x, out=np.zeros_like(x), where=x > 0)


def _candidates(
    claim: TreeClaim, x: Array, column: int, labels: Array, weight: Array
) -> Iterator[tuple[Array, Array, int]]:
    """Give class totals and rows of the children of candidates, and how many last children may be small."""
    classes, known = claim.tree.totals.shape[1], ~np.isnan(x)
    value, place = np.unique(x[known], return_inverse=True)
    cell = np.full(x.size, value.size)  # the values in order, then what is unknown
    cell[known] = place
    sums = [
        np.bincount(cell * classes + labels, held, (value.size + 1) * classes).reshape(-1, classes)
        for held in (weight, np.ones_like(weight))
    ]
    lost = [one[-1] for one in sums]
    both = zip(*(_partitions(claim, column, one[:-1], sums[0][:-1]) for one in sums), strict=True)
    for totals, counts in both:
        sides = (totals, counts)
        if known.all():
            yield totals, counts, 0
        elif claim.unknown_best:
            for child in range(totals.shape[1]):
                here = np.eye(totals.shape[1])[child][:, None]
                one, other = (side + here * more for side, more in zip(sides, lost, strict=True))
                yield one, other, 0
        else:
            one, other = (
                np.concatenate([side, np.broadcast_to(more, (len(side), 1, classes))], axis=1)
                for side, more in zip(sides, lost, strict=True)
            )
            yield one, other, 1
    if value.size and not known.all():
        one, other = (np.stack([part[:-1].sum(axis=0), part[-1]])[None] for part in sums)
        yield one, other, 0


def _partitions(claim: TreeClaim, column: int, sums: Array, totals: Array) -> Iterator[Array]:
    """Give the sums over the children of candidates; ``sums`` has a row a value, ``totals`` its weights."""
    count, classes = sums.shape
    if count < 2:
        return
    if claim.kinds[column] and not claim.binary:
        yield sums[None]
    elif claim.kinds[column] and classes > 2 and count <= ALL_GROUPINGS:
        right = np.arange(2, 2**count, 2)[:, None] >> np.arange(count) & 1  # the first value stays left
        yield np.stack([(1 - right) @ sums, right @ sums], axis=1)
    elif claim.kinds[column]:
        shares = totals / totals.sum(axis=1, keepdims=True)
        for label in range(classes) if classes > 2 else [classes - 1]:
            yield _prefixes(sums[np.argsort(shares[:, label], kind="stable")])
    else:
        yield _prefixes(sums)


def _prefixes(sums: Array) -> Array:
    # Both sums run from their own end, so that a class that is not there has exactly 0.
    return np.stack([sums.cumsum(axis=0)[:-1], sums[::-1].cumsum(axis=0)[::-1][1:]], axis=1)


# -- columns drawn at random ---------------------------------------------------------------------------------


def _mix(x: int) -> int:
    """Return a number below 2^64 that looks random (Steele, Lea and Flood, 2014)."""
    low = (1 << 64) - 1
    x = (x + 0x9E3779B97F4A7C15) & low
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & low
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & low
    return x ^ (x >> 31)


def _path(tree: Any, node: int, seed: int) -> int:
    """Return the number that the seed and the way from the root to a node decide."""
    path, at = _mix(seed), 0
    while at != node:
        children = children_of(tree, at)
        slot = max(k for k, child in enumerate(children) if child <= node)  # nodes below follow depth first
        path, at = _mix((path + slot + 1) & ((1 << 64) - 1)), children[slot]
    return path


def _shuffled(path: int, columns: int) -> list[int]:
    """Return the columns in the order in which a node looks at them (Fisher and Yates)."""
    order = list(range(columns))
    for place in range(columns):
        path = _mix(path)
        other = place + path % (columns - place)
        order[place], order[other] = order[other], order[place]
    return order
