"""The check of a tree that is said to be the best, or so close to it.

    objective      cost / W,   cost = sum over leaves of (leaf cost + penalty),   penalty = W leaf_penalty
    lower bound    min(the cost of a single leaf, least of left + right + unknown over the items) / W

The items are what the search has kept. One speaks of all trees that begin with a question "rank <= t" about a
column of ranks, low <= t <= high, and says that every tree for the rows of rank <= low, one question less
deep, costs at least ``left``; for those of rank > high, ``right``; for those that are unknown, ``unknown``.
That these trees cost at least the sum follows, for fewer rows never cost more. What is checked:

    the tree       is one, of this size, asks what the rules allow, and has the rows and the cost it says
    every question that the rules allow is among those of the items, or could not be below the bound
    every item     has a sum that is not below the lower bound
    every bound    of an item, by a search of its own (:mod:`sixfold.verify.tree_search`), in an order drawn
                   by lot until ``WORK`` is done; the certificate says how many that were

The columns of ranks are not trusted: all questions are derived from the table, and those of the items are
compared with them by the parts into which they divide its rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

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
from sixfold.verify.tree_search import (
    ALL_GROUPINGS,
    APART,
    EACH,
    ORDERED,
    RankedColumn,
    TreeSearch,
    WorkLimitError,
    ranked_columns,
)

Array = NDArray[Any]

KIND = "optimal tree"
WORK = 2.0e9  # visits of a row, for each column and class: some 25 seconds
FIRST_SHARE = 1 / 32  # of the work that a bound may take before all others have had their turn
SEED = 17  # of the order of the bounds and of the numbers by which sets of rows are told apart


@dataclass(frozen=True)
class Frontier:
    """What a search knows of the trees that it has not looked at, as one array entry an item.

    ``columns`` say what ranks are: each has ``source``, a column of the table, ``values``, those that are
    known, in order, ``rank``, of each of them, and ``unknown``, the rank of the others, -1 where there are
    none. ``kinds`` are ORDERED, APART or EACH. An item of kind EACH has the bound of the whole sum in
    ``left``. Where leaves are limited, the left part has ``left_leaves`` of them; 0 for any number.
    """

    columns: tuple[Any, ...]
    kinds: Array
    column: Array
    low: Array
    high: Array
    left_leaves: Array
    left: Array
    right: Array
    unknown: Array


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
    frontier: Any  # see Frontier
    unit: float = 0.0  # costs of leaves were rounded to whole numbers of it, for each class and their sum


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
    checker = _FrontierCheck(claim)
    leaves, whole = totals[claim.tree.column < 0], float(claim.weight.sum())
    objective = float(checker.search.leaf(leaves.T).sum()) / whole + claim.leaf_penalty * len(leaves)
    scale = float(checker.search.leaf(totals[0])) / whole + claim.leaf_penalty
    rounded = (len(leaves) * checker.rounded + ROUNDING * whole * (1 + scale)) / whole
    gap, notes = claimed.gap, claimed.notes
    if abs(objective - claimed.objective) <= rounded:  # else comparing them tells
        _require_words(claim, claimed)
        bound = min(checker.require_bound(claimed.lower_bound * whole) / whole, scale, objective)
        gap = objective - bound
        notes = (*notes, checker.require_items())
    found = replace(claimed, objective=objective, gap=gap, scale=scale, details={}, notes=notes)
    return Recomputed(found, rounded, claimed.gap + 2 * rounded, (KIND,), hint, scale + rounded)


def _require_words(claim: OptimalTreeClaim, claimed: Certificate) -> None:
    """Raise if it is said in other words than these what is claimed."""
    size = f"depth {claim.max_depth}"
    if claim.max_leaf_nodes is not None:
        size += f" with at most {claim.max_leaf_nodes} leaves"
    every = np.arange(claim.labels.size)
    grouped = np.flatnonzero(claim.kinds) if claim.binary else np.empty(0, dtype=np.int64)
    values = [np.unique(cells(claim.X, every, column)) for column in grouped.tolist()]
    if any(
        value.size - (np.isnan(value).any() and not claim.unknown_best) > ALL_GROUPINGS for value in values
    ):
        size += ", among the groupings tried"
    if claimed.optimal_to_rounding:
        words = f"no tree of {size} is better"
    elif claimed.lower_bound > 0:
        most = math.ceil(1e3 * claimed.gap / claimed.lower_bound - 1e-6) / 10
        words = f"within {most:g}% of the best tree of {size}"
    else:
        words = f"no bound is known of the trees of {size}"
    if claimed.claim not in ("", words):
        raise CertificateError(
            f"The certificate claims {claimed.claim!r}, but its figures say {words!r}. {REASONS}"
        )


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


# -- the bound -----------------------------------------------------------------------------------------------


class _Bound(NamedTuple):
    """What an item says of some rows: no tree for them costs less."""

    cost: float
    item: int
    side: str  # of the question: "left", "right", "unknown", or "all" for a question of kind EACH
    mark: int  # of the rows, 0 where there are none
    leaves: float  # so many at most has the tree
    trivial: float  # what it costs in any case


class _FrontierCheck:
    """The items of a frontier against the table."""

    def __init__(self, claim: OptimalTreeClaim) -> None:
        self.claim, self.frontier = claim, claim.frontier
        classes, whole = claim.tree.totals.shape[1], float(claim.weight.sum())
        rules = claim.kinds, claim.labels, claim.weight, claim.binary, claim.unknown_best
        self.allowed = ranked_columns(claim.X, *rules)
        self.rounded = (classes + 1) * claim.unit  # what rounding has done to the cost of a leaf
        self.allowance = ROUNDING * whole
        self.penalty = claim.leaf_penalty * whole
        objective = claim.labels, claim.weight, classes, claim.objective, self.penalty + self.rounded
        self.search = TreeSearch(self.allowed, *objective)
        self.leaves: float = claim.max_leaf_nodes or math.inf
        random = np.random.default_rng(SEED)
        self.marks = random.integers(0, 2**64, claim.labels.size, dtype=np.uint64)
        self._require_shapes()
        self.columns = [self._ranked(column) for column in range(len(self.frontier.columns))]
        self.sums = [self._marks_up_to(column.ranks) for column in self.columns]

    def _require_shapes(self) -> None:
        f = self.frontier
        arrays = (f.column, f.low, f.high, f.left_leaves, f.left, f.right, f.unknown)
        if {np.shape(one) for one in arrays} != {(len(f.column),)} or len(f.kinds) != len(f.columns):
            raise CertificateError(f"The arrays of the frontier do not fit together. {REASONS}")
        is_column = (f.column >= 0) & (f.column < len(f.columns))
        is_number = np.isfinite(f.left) & np.isfinite(f.right) & np.isfinite(f.unknown)
        if not (is_column & is_number & (f.low <= f.high) & (f.low >= -1) & (f.left_leaves >= 0)).all():
            raise CertificateError(f"Items of the frontier are about no question that there is. {REASONS}")

    def _ranked(self, number: int) -> RankedColumn:
        """Return the ranks of the rows in a column of the frontier."""
        told, kind = self.frontier.columns[number], int(self.frontier.kinds[number])
        source, values, rank = int(told.source), np.asarray(told.values), np.asarray(told.rank)
        fits = 0 <= source < self.claim.X.shape[1] and kind in (ORDERED, APART, EACH)
        fits = fits and values.size == rank.size > 0 and bool((np.diff(values) > 0).all())
        if fits:
            x = cells(self.claim.X, np.arange(self.claim.labels.size), source)
            known = ~np.isnan(x)
            place = np.minimum(np.searchsorted(values, x), values.size - 1)
            ranks = np.where(known, rank[place], told.unknown)
            fits = bool((values[place] == x)[known].all()) and ranks.min() >= 0
            fits = fits and (kind != APART or bool(((ranks == 0) == ~known).all()))
        if not fits:
            raise CertificateError(
                f"Column {number} of the frontier does not give every row a rank by the values of column "
                f"{source} of the data. {REASONS}"
            )
        return RankedColumn(source, kind, ranks)

    # Sets of rows are told apart by the sum of random numbers of their rows, modulo 2^64.

    def _marks_up_to(self, ranks: Array) -> Array:
        """Return the sum of the rows of rank <= t for every t."""
        sums = np.zeros(int(ranks.max()) + 1, dtype=np.uint64)
        np.add.at(sums, ranks, self.marks)
        return np.cumsum(sums, dtype=np.uint64)

    def _questions(self, column: RankedColumn, up_to: Array) -> Array:
        """Return a number for each question: t = 0, 1, ... but the last of kind ORDERED, the one of EACH."""
        if column.kind == EACH:
            parts = np.diff(up_to, prepend=np.uint64(0))[:, None]
        elif column.kind == ORDERED:
            parts = np.array([up_to[:-1], up_to[-1] - up_to[:-1]])
        else:  # the first is known or unknown, and so is the last
            parts = np.array([up_to - up_to[0], up_to[-1] - up_to, np.full_like(up_to, up_to[0])])
        return np.asarray(np.where(parts == 0, np.uint64(0), _mix(parts)).sum(axis=0, dtype=np.uint64))

    def require_bound(self, bound: float) -> float:
        """Return what no tree with a question costs less than; raise unless the items say as much."""
        f = self.frontier
        least = 2 * self.search.penalty  # of what is no item's
        if bound <= least + self.allowance or self.claim.max_depth == 0 or self.leaves < 2:
            return max(bound, least) if self.claim.max_depth and self.leaves >= 2 else math.inf
        sums = np.asarray(f.left + f.right + f.unknown, dtype=np.float64)
        if not (sums >= bound - self.allowance).all():
            item = int(np.argmin(sums))
            raise CertificateError(
                f"The certificate claims that no tree costs less than {bound!r}, but of item {item} it "
                f"is only known that its trees cost {float(sums[item])!r}. {REASONS}"
            )
        covered = np.concatenate([np.empty(0, np.uint64), *map(self._covered, range(len(self.columns)))])
        for column in self.allowed:
            asked = self._questions(column, self._marks_up_to(column.ranks))
            missing = np.flatnonzero(~np.isin(asked, covered))
            if missing.size:
                raise CertificateError(
                    f"The certificate claims that no tree costs less than {bound!r}, but {missing.size} of "
                    f"{asked.size} questions about column {column.source} are in no item of the frontier. "
                    f"{REASONS}"
                )
        return float(sums.min(initial=math.inf))

    def _covered(self, number: int) -> Array:
        """Return the questions of a column of which the items speak, with every way to share the leaves."""
        f, column = self.frontier, self.columns[number]
        asked = self._questions(column, self.sums[number])
        about = f.column == number
        if column.kind == EACH:
            return asked[: int(about.any())]
        first = int(column.kind == APART)  # rank 0 is no side of a question
        is_covered = np.ones(asked.size, dtype=bool)
        most, others = self.search.most_leaves(self.claim.max_depth - 1), 1 + first
        limited = not math.isinf(self.leaves)
        for leaves in range(1, min(most, int(self.leaves) - 1) + 1) if limited else range(1):
            # Items of trees whose left part has so many leaves or more, and the others what can be left.
            rest = min(self.leaves - leaves, others * most) if limited else 0
            enough = (f.left_leaves >= leaves) & (self.leaves - f.left_leaves >= rest)
            items = about & ((f.left_leaves == 0) | enough)
            depth = np.zeros(asked.size + 1, dtype=np.int64)  # how many items speak of t
            np.add.at(depth, np.clip(f.low[items], first, asked.size), 1)
            np.add.at(depth, np.clip(f.high[items] + 1, first, asked.size), -1)
            is_covered &= np.cumsum(depth)[:-1] > 0
        return asked[is_covered]

    def require_items(self) -> str:
        """Say how many bounds were recomputed; raise if one of them is none."""
        said: dict[tuple[int, float], _Bound] = {}  # the largest bound of each set of rows
        for item in range(len(self.frontier.column) if self.claim.max_depth else 0):
            for bound in self._bounds(item):
                if not bound.mark and bound.cost > bound.trivial + self.allowance:
                    raise CertificateError(
                        f"Item {item} of the frontier says that its part {bound.side!r} costs "
                        f"{bound.cost!r}, but no rows are sure to be there. {REASONS}"
                    )
                if bound.mark:
                    key = bound.mark, bound.leaves
                    said[key] = max(said.get(key, bound), bound)
        left = [bound for bound in said.values() if bound.cost > bound.trivial + self.allowance]
        left = [left[place] for place in np.random.default_rng(SEED).permutation(len(left))]
        for share in (FIRST_SHARE, 1.0):
            left = [bound for bound in left if not self._is_recomputed(bound, share)]
        return f"{len(said) - len(left)} of {len(said)} bounds of the search were recomputed"

    def _bounds(self, item: int) -> list[_Bound]:
        f = self.frontier
        kind, up_to = self.columns[f.column[item]].kind, self.sums[f.column[item]].tolist()
        costs, penalty = (
            (float(f.left[item]), float(f.right[item]), float(f.unknown[item])),
            self.search.penalty,
        )
        if kind == EACH:
            mark = int(self._questions(self.columns[f.column[item]], self.sums[f.column[item]])[0])
            sides = [("all", mark, self.leaves, 2 * penalty), ("right", 0, 0, 0.0), ("unknown", 0, 0, 0.0)]
        else:
            low, high = (min(int(t), len(up_to) - 1) for t in (f.low[item], f.high[item]))
            unknown = up_to[0] if kind == APART else 0
            below = (up_to[low] - unknown) % 2**64 if low >= 0 else 0
            above = (up_to[-1] - up_to[high]) % 2**64 if high >= 0 else up_to[-1]
            given = int(f.left_leaves[item]) or self.leaves - 1
            rest = self.leaves - max(int(f.left_leaves[item]), 1)
            # Both sides have rows at every t, but the right one of kind APART at the last.
            sides = [
                ("left", below, given, penalty),
                ("right", above, rest - (unknown != 0), penalty if above or kind == ORDERED else 0.0),
                ("unknown", unknown, rest - (above != 0), penalty if unknown else 0.0),
            ]
        return [_Bound(cost, item, *side) for cost, side in zip(costs, sides, strict=True)]

    def _is_recomputed(self, bound: _Bound, share: float) -> bool:
        """Return whether this share of the work was enough; raise if a tree costs less than it is said to."""
        f, search = self.frontier, self.search
        column, depth, cap = (
            self.columns[f.column[bound.item]],
            self.claim.max_depth,
            bound.cost - self.allowance,
        )
        low, high, is_apart = f.low[bound.item], f.high[bound.item], column.kind == APART
        search.limit = min(WORK, search.visits + share * WORK)
        try:
            if bound.side == "all":
                cost = search.least_of_each(search.everything, column.ranks, depth, bound.leaves, cap)
            else:
                inside = {
                    "left": (column.ranks <= low) & (column.ranks >= is_apart),
                    "right": column.ranks > high,
                    "unknown": column.ranks == 0,
                }
                part = search.part(search.everything, np.flatnonzero(inside[bound.side]))
                cost = search.least(part, depth - 1, bound.leaves, cap)
        except WorkLimitError:
            return False
        if cost < cap:
            raise CertificateError(
                f"Item {bound.item} of the frontier says that no tree for its part {bound.side!r} costs less "
                f"than {bound.cost!r}, but one costs {cost!r} at most. {REASONS}"
            )
        return True


def _mix(x: Array) -> Array:
    """Return numbers below 2^64 that look random (Steele, Lea and Flood, 2014)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))
