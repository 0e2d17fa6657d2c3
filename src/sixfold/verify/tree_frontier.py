"""The check of what a search for the best tree has kept: no tree costs less than its lower bound.

    lower bound    the least of left + right + unknown over the items

An item speaks of all trees that begin with a question "rank <= t" about a column of ranks, low <= t <= high.
It says that trees for the rows of rank <= low, one question less deep, cost at least ``left``; for the rows
of rank > high, ``right``; for those that are unknown, ``unknown``. Fewer rows never cost more, so all trees
of the item cost at least the sum. What is checked:

    every question that the rules allow is one of the items', with every way to share the leaves
    every item     has a sum that is not below the lower bound
    every bound    of an item, by another search (:mod:`sixfold.verify.tree_search`), in an order drawn by lot
                   until ``WORK`` is done; the certificate says how many these are

Of shallow trees a search keeps no items: then the lower bound itself is recomputed, for all rows.

The columns of ranks are not trusted: all questions are derived from the table, and those of the items are
compared with them by the parts into which they divide its rows. A set of rows is known by the sum of 64-bit
random numbers, one a row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sixfold.errors import CertificateError
from sixfold.verify.tree_arrays import REASONS, ROUNDING, cells
from sixfold.verify.tree_search import (
    APART,
    EACH,
    ORDERED,
    RankedColumn,
    TreeSearch,
    WorkLimitError,
    ranked_columns,
    share_leaves,
)

if TYPE_CHECKING:
    from sixfold.verify.optimal_trees import OptimalTreeClaim

Array = NDArray[Any]

WORK = 8.0e8  # visits of a row, for each column and class: some 10 seconds
FIRST_SHARE = 1 / 32  # of the work that a bound may take before all others have had their turn
COARSEST = 1e-11  # unit of costs, in parts of the weight of all rows
SEED = 17  # of the order of the bounds and of the numbers by which sets of rows are told apart


@dataclass(frozen=True)
class Frontier:
    """What a search knows of the trees that it has not looked at, as one array entry an item.

    ``columns`` say what ranks are: each has ``source``, a column of the table, ``values``, those that are
    known, in order, ``rank``, of each of them, and ``unknown``, the rank of the others, -1 where there are
    none. ``kinds`` are ORDERED, APART or EACH. An item of kind EACH has the bound of the whole sum in
    ``left``. Where leaves are limited, the left part has ``left_leaves`` of them at most, that of unknown
    values ``unknown_leaves``, and the right one the others; 0 for any number.
    """

    columns: tuple[Any, ...]
    kinds: Array
    column: Array
    low: Array
    high: Array
    left_leaves: Array
    unknown_leaves: Array
    left: Array
    right: Array
    unknown: Array


class _Bound(NamedTuple):
    """What an item says of some rows: no tree for them costs less."""

    cost: float
    item: int
    side: str  # of the question: "left", "right", "unknown", or "all" for a question of kind EACH
    mark: int  # of the rows, 0 where there are none
    leaves: float  # so many at most has the tree
    trivial: float  # what it costs in any case


class FrontierCheck:
    """The items of a frontier against the table."""

    def __init__(self, claim: OptimalTreeClaim) -> None:
        self.claim, self.frontier = claim, claim.frontier
        classes, whole = claim.tree.totals.shape[1], float(claim.weight.sum())
        rules = claim.kinds, claim.labels, claim.weight, claim.binary, claim.unknown_best
        self.allowed = ranked_columns(claim.X, *rules)
        if not 0 <= claim.unit <= COARSEST * whole * (1 + claim.leaf_penalty):
            raise CertificateError(
                f"Costs are said to be whole numbers of {claim.unit!r}, too much of the total weight of "
                f"{whole!r} for bounds to say anything. {REASONS}"
            )
        self.rounded = (classes + 1) * claim.unit  # what rounding has done to the cost of a leaf
        self.weights_rounded = _changed_by_weights(claim, classes)
        self.allowance = ROUNDING * whole * (1 + claim.leaf_penalty) + self.weights_rounded
        self.penalty = claim.leaf_penalty * whole
        objective = claim.labels, claim.weight, classes, claim.objective, self.penalty + self.rounded
        self.search = TreeSearch(self.allowed, *objective)
        self.leaves: float = claim.max_leaf_nodes or math.inf
        random = np.random.default_rng(SEED)
        self.marks = random.integers(0, 2**64, claim.labels.size, dtype=np.uint64)
        self._whole: float | None = None  # the lower bound, where there are no items
        self._require_shapes()
        self.columns = [self._ranked(column) for column in range(len(self.frontier.columns))]
        self.sums = [self._marks_up_to(column.ranks) for column in self.columns]

    def _require_shapes(self) -> None:
        f = self.frontier
        arrays = (f.column, f.low, f.high, f.left_leaves, f.unknown_leaves, f.left, f.right, f.unknown)
        if {np.shape(one) for one in arrays} != {(len(f.column),)} or len(f.kinds) != len(f.columns):
            raise CertificateError(f"The arrays of the frontier do not fit together. {REASONS}")
        is_column = (f.column >= 0) & (f.column < len(f.columns))
        is_number = np.isfinite(f.left) & np.isfinite(f.right) & np.isfinite(f.unknown)
        is_size = (f.left_leaves >= 0) & (f.unknown_leaves >= 0)
        if not (is_column & is_number & is_size & (f.low <= f.high) & (f.low >= -1)).all():
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
        if self.claim.max_depth == 0 or self.leaves < 2:
            return math.inf
        if bound <= 2 * self.search.penalty + self.allowance:  # two leaves are there in any case
            return max(bound, 2 * self.penalty)
        sums = np.asarray(f.left + f.right + f.unknown, dtype=np.float64)
        if not sums.size:
            self._whole = bound
            return bound
        if not (sums >= bound - self.allowance).all():
            item = int(np.argmin(sums))
            raise CertificateError(
                f"The certificate claims that no tree costs less than {bound!r}, but of item {item} it "
                f"is only known that its trees cost {float(sums[item])!r}. {REASONS}"
            )
        covered = np.concatenate([np.empty(0, np.uint64), *map(self._covered, range(len(self.columns)))])
        for column in self.allowed:
            if column.kind == EACH and column.ranks.max() >= self.leaves:  # more children than leaves
                continue
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
        if column.kind == ORDERED:
            return asked[self._is_shared(about, asked.size, ("left", "right"))]
        # Rank 0 is no left side, and the last question is whether a value is known.
        inner = self._is_shared(about, asked.size, ("left", "right", "unknown"))
        inner[[0, -1]] = False
        inner[-1] = self._is_shared(about, asked.size, ("left", "unknown"))[-1]
        return asked[inner]

    def _is_shared(self, about: Array, questions: int, sides: tuple[str, ...]) -> Array:
        """Return for every t whether items speak of it, whichever way the leaves are shared by the sides."""
        f, most = self.frontier, self.search.most_leaves(self.claim.max_depth - 1)
        rest = np.where(f.left_leaves == 0, self.leaves, self.leaves - f.left_leaves - f.unknown_leaves)
        found = np.ones(questions, dtype=bool)
        for shared in share_leaves(self.leaves, len(sides), most):
            needed = dict(zip(sides, np.minimum(shared, most), strict=True))
            items = about & ((f.left_leaves == 0) | (f.left_leaves >= needed["left"]))
            items &= (f.unknown_leaves == 0) | (f.unknown_leaves >= needed.get("unknown", 0))
            items &= rest >= needed.get("right", 0)
            count = np.zeros(questions + 1, dtype=np.int64)  # of the items that speak of t
            np.add.at(count, np.clip(f.low[items], 0, questions), 1)
            np.add.at(count, np.clip(f.high[items] + 1, 0, questions), -1)
            found &= np.cumsum(count)[:-1] > 0
        return found

    def require_items(self) -> str:
        """Say how many bounds were recomputed; raise if one of them is none."""
        if self._whole is not None:
            return self._require_whole(self._whole)
        if not len(self.frontier.column):
            return "the lower bound holds for every tree"
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

    def _require_whole(self, bound: float) -> str:
        """Say whether the lower bound was recomputed; raise if a tree costs less."""
        self.search.limit = self.search.visits + WORK
        cap = bound - self.allowance / 2
        try:
            cost = self.search.least(self.search.everything, self.claim.max_depth, self.leaves, cap)
        except WorkLimitError:
            return "the lower bound was not recomputed, which would take long"
        if cost < bound - self.allowance:
            raise CertificateError(
                f"The certificate claims that no tree costs less than {bound!r}, but one costs {cost!r} at "
                f"most. {REASONS}"
            )
        return "the lower bound was recomputed"

    def _bounds(self, item: int) -> list[_Bound]:
        """Return what an item says of its left part, its right part, and that of unknown values."""
        f = self.frontier
        column, up_to = self.columns[f.column[item]], self.sums[f.column[item]]
        kind, penalty = column.kind, self.search.penalty
        if kind == EACH:
            mark = int(self._questions(column, up_to)[0])
            sides = [("all", mark, self.leaves, 2 * penalty), ("right", 0, 0, 0.0), ("unknown", 0, 0, 0.0)]
        else:
            low, high = (min(int(t), len(up_to) - 1) for t in (f.low[item], f.high[item]))
            unknown = int(up_to[0]) if kind == APART else 0
            below = (int(up_to[low]) - unknown) % 2**64 if low >= 0 else 0
            above = (int(up_to[-1]) - (int(up_to[high]) if high >= 0 else 0)) % 2**64
            left_leaves, own_leaves = int(f.left_leaves[item]), int(f.unknown_leaves[item])
            rest = self.leaves - max(left_leaves, 1)
            # Both sides have rows at every t, but the right one of kind APART at the last.
            sides = [
                ("left", below, left_leaves or self.leaves - 1, penalty),
                (
                    "right",
                    above,
                    rest - (own_leaves or unknown != 0),
                    penalty * (above != 0 or kind == ORDERED),
                ),
                ("unknown", unknown, own_leaves or rest - (above != 0), penalty * (unknown != 0)),
            ]
        costs = float(f.left[item]), float(f.right[item]), float(f.unknown[item])
        return [_Bound(cost, item, *side) for cost, side in zip(costs, sides, strict=True)]

    def _is_recomputed(self, bound: _Bound, share: float) -> bool:
        """Return whether this share of the work was enough; raise if a tree costs less than it is said to."""
        search, depth, cap = self.search, self.claim.max_depth, bound.cost - self.allowance / 2
        if search.visits >= WORK:
            return False
        search.limit = min(WORK, search.visits + share * WORK)
        column = self.columns[self.frontier.column[bound.item]]
        ranks, low, high = column.ranks, self.frontier.low[bound.item], self.frontier.high[bound.item]
        try:
            if bound.side == "all":
                cost = search.least_of_each(search.everything, ranks, depth, bound.leaves, cap)
            else:
                inside = {
                    "left": (ranks <= low) & (ranks >= int(column.kind == APART)),
                    "right": ranks > high,
                    "unknown": ranks == 0,
                }
                part = search.part(search.everything, np.flatnonzero(inside[bound.side]))
                cost = search.least(part, depth - 1, bound.leaves, cap)
        except WorkLimitError:
            return False
        if cost < bound.cost - self.allowance:  # the sum of what is left of a cap may be rounded
            raise CertificateError(
                f"Item {bound.item} of the frontier says that no tree for its part {bound.side!r} costs less "
                f"than {bound.cost!r}, but one costs {cost!r} at most. {REASONS}"
            )
        return True


def _changed_by_weights(claim: OptimalTreeClaim, classes: int) -> float:
    """Return how much the cost of a tree changes at most when weights become whole numbers of the unit.

    Errors change by no more than the weights do. Of entropies W ln W - sum_c w_c ln w_c the derivative by the
    weight of a row is ln(W / w_c), which is ln(classes) + ln(largest / smallest weight) on average at most.
    """
    if claim.unit == 0:
        return 0.0
    unit = math.ldexp(1.0, round(math.log2(claim.unit)))
    moves = np.abs(claim.weight - unit * np.rint(claim.weight / unit))
    if claim.objective == "error":
        return float(moves.sum())
    spread = math.log(classes) + math.log(float(claim.weight.max()) / float(claim.weight.min()))
    return float(moves.max()) * moves.size * spread


def _mix(x: Array) -> Array:
    """Return numbers below 2^64 that look random (Steele, Lea and Flood, 2014)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))
