"""All questions that a tree may ask, and a plain search for the least cost of a tree.

    cost of a tree       sum over its leaves of  leaf cost + penalty
    leaf cost            W - max_c w_c  (errors),   W ln W - sum_c w_c ln w_c  (entropy, in nats)
    least(S, 0)          the cost of S as one leaf
    least(S, d)          the least of that and of  sum_k least(S_k, d - 1)  over all questions that part S
                         into S_1, S_2, ...

Where S is part of T, least(S, d) <= least(T, d): a tree of T, with what has no rows of S left out, is one of
S, and no leaf costs more. So all thresholds from a to b of a column cost at least

    least(S left of a, d - 1) + least(S right of b, d - 1),

and only intervals where that is less than the best tree so far are halved. The search is meant to be read:
what is quicker about it than trying everything is this bound, and that all thresholds are tried at once where
the children are leaves.

A column of ranks (0, 1, ...) stands for questions of one of three kinds:

    ORDERED   rank <= t, for every t that leaves rows on both sides
    APART     the same for the rows whose rank is not 0, the others (unknown) in a child of their own; and
              whether the rank is 0
    EACH      one question: a child for each rank that has rows
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[Any]

ORDERED, APART, EACH = range(3)
ALL_GROUPINGS = 8  # so many categories are put into two groups in every way
TIE = 1e-12  # shares this close are equal
BLOCK = 2**15  # numbers that are worked on at once
CALL = 3000  # visits of a row take as long as a call does whatever the rows


# -- the questions -------------------------------------------------------------------------------------------


class RankedColumn(NamedTuple):
    """Questions about one column of the table."""

    source: int
    kind: int
    ranks: Array  # of the rows


def ranked_columns(
    X: Any, kinds: Array, labels: Array, weight: Array, binary: bool, unknown_best: bool
) -> list[RankedColumn]:
    """Return all questions that the rules allow; of those that ask the same some are left out.

    Parameters
    ----------
    X : ndarray or sparse array
        Numbers and codes of categories, NaN for what is unknown.
    kinds : ndarray
        Of columns: 0 for numbers, 1 for categories.
    labels, weight : ndarray
    binary : bool
        Whether categories are put into two groups instead of a child each.
    unknown_best : bool
        Whether unknown values join others instead of having a child of their own.
    """
    table = X.tocsc() if sp.issparse(X) else X
    found: dict[tuple[int, bytes], RankedColumn] = {}
    for source in range(X.shape[1]):
        cells = table[:, [source]]
        x = np.asarray(cells.toarray() if sp.issparse(cells) else cells, dtype=np.float64).ravel()
        known = ~np.isnan(x)
        value, rank = np.unique(x, return_inverse=True, equal_nan=True)  # NaN is the last
        count, is_best = int(value.size) - (not known.all()), unknown_best and not known.all()
        if not kinds[source]:
            ranked = _of_numbers(rank, known, unknown_best)
        elif not binary:
            ranked = _of_branches(rank, known, count, is_best)
        else:
            totals = np.zeros((value.size, int(labels.max()) + 1))
            np.add.at(totals, (rank, labels), weight)
            ranked = _of_groups(rank, known, totals[: count + is_best], is_best)
        for kind, rank_of_row in ranked:
            ranks = rank_of_row.astype(np.int32)
            if ranks.min() != ranks.max():
                found.setdefault((kind, ranks.tobytes()), RankedColumn(source, kind, ranks))
    return list(found.values())


def _of_numbers(rank: Array, known: Array, unknown_best: bool) -> Iterator[tuple[int, Array]]:
    first = np.where(known, rank + 1, 0)
    if known.all():
        yield ORDERED, rank
    elif unknown_best:
        yield ORDERED, rank
        yield ORDERED, first
    else:
        yield APART, first


def _of_branches(rank: Array, known: Array, count: int, is_best: bool) -> Iterator[tuple[int, Array]]:
    if not is_best:
        yield EACH, rank
        return
    yield ORDERED, known.astype(rank.dtype)
    for joined in range(count):
        yield EACH, np.where(known, rank, joined)


def _of_groups(rank: Array, known: Array, totals: Array, is_best: bool) -> Iterator[tuple[int, Array]]:
    apart = not (is_best or known.all())
    if apart:
        yield ORDERED, known.astype(rank.dtype)
    for group in groupings(totals):
        side = np.append(group, 0)[rank]
        yield (APART, np.where(known, side + 1, 0)) if apart else (ORDERED, side)


def groupings(totals: Array) -> Iterator[Array]:
    """Give ranks of categories, whose questions put them into two groups.

    A few are grouped in every way. Of many, each is put against the others, and for each class they are
    ranked by its share; equal shares have one rank. The rows of ``totals`` are the weights of the classes in
    each category.
    """
    count = len(totals)
    if count <= ALL_GROUPINGS:
        yield from np.arange(2, 2**count, 2)[:, None] >> np.arange(count) & 1  # the first stays left
        return
    yield from np.eye(count, dtype=np.int64)
    for share in (totals / totals.sum(axis=1, keepdims=True)).T:
        order = np.argsort(share)
        rank = np.zeros(count, dtype=np.int64)
        rank[order[1:]] = np.cumsum(np.diff(share[order]) > TIE)
        yield rank


# -- the search ----------------------------------------------------------------------------------------------


class WorkLimitError(Exception):
    """The search has visited as many rows as it may."""


@dataclass(frozen=True)
class Part:
    """Some rows: their numbers, and again in the order of each column that is not of kind EACH."""

    rows: Array
    order: Array  # shape (columns, rows)
    totals: Array  # of classes

    def cuts(self, place: int, ranks: Array) -> Array:
        """Return after how many rows of a column's order the rank changes."""
        met = ranks[self.order[place]]
        found: Array = np.flatnonzero(met[1:] != met[:-1]) + 1
        return found


class _Interval(NamedTuple):
    """Cuts from a to b of a column, and bounds on the cost of what is left of a and right of b."""

    bound: float
    number: int  # so that intervals have an order
    place: int  # of the column
    cuts: Array
    unknown: int  # so many rows are in a child of their own
    unknown_cost: float
    leaves: tuple[float, ...]  # of left, right
    a: int
    b: int
    left: float
    right: float


class TreeSearch:
    """The least cost of trees for parts of the rows.

    Parameters
    ----------
    columns : sequence of RankedColumn
    labels, weight : ndarray
    classes : int
    objective : {"error", "entropy"}
    penalty : float
        The cost of a leaf, in the unit of the weights.
    """

    def __init__(
        self,
        columns: Sequence[RankedColumn],
        labels: Array,
        weight: Array,
        classes: int,
        objective: str,
        penalty: float,
    ) -> None:
        count = labels.size
        ordered = [column for column in columns if column.kind != EACH]
        self._each = [column.ranks for column in columns if column.kind == EACH]
        self.penalty, self._entropy = penalty, objective == "entropy"
        self._ranks = np.array([column.ranks for column in ordered], np.int32).reshape(-1, count)
        self._apart = np.array([column.kind == APART for column in ordered], bool)
        self._mass = np.where(labels == np.arange(classes)[:, None], weight, 0.0)
        self._labels, self._weight = labels, weight
        self._branching = max([2 + bool(self._apart.any()), *(int(r.max()) + 1 for r in self._each)])
        self.visits, self.limit = 0.0, math.inf
        self.everything = Part(
            np.arange(count), np.argsort(self._ranks, axis=1, kind="stable"), self._mass.sum(axis=1)
        )

    def most_leaves(self, depth: int) -> int:
        """Return how many leaves a tree of this depth has at most."""
        return int(self._branching**depth)

    def part(self, whole: Part, rows: Array) -> Part:
        """Return some of the rows of a part."""
        self._visit(whole.order.size)
        inside = np.zeros(self._labels.size, dtype=bool)
        inside[rows] = True
        order = whole.order[inside[whole.order]].reshape(len(whole.order), rows.size)
        return Part(rows, order, self._mass[:, rows].sum(axis=1))

    def leaf(self, totals: Array) -> Array:
        """Return the cost of leaves without their penalty; the first axis of the totals is the class."""
        weight = totals.sum(axis=0)
        if self._entropy:
            cost: Array = _f(weight) - _f(totals).sum(axis=0)
            return cost
        return np.asarray(weight - totals.max(axis=0))

    def least(self, part: Part, depth: int, leaves: float, cap: float) -> float:
        """Return the least cost of a tree of this depth and number of leaves, or the cap if that is less."""
        if not part.rows.size or cap <= self.penalty:
            return min(cap, self.penalty * bool(part.rows.size))
        best = min(cap, float(self.leaf(part.totals)) + self.penalty)
        if depth == 0 or leaves < 2 or best <= 2 * self.penalty:
            return best
        if leaves >= self.most_leaves(depth):
            leaves = math.inf
        for ranks in self._each:
            best = self.least_of_each(part, ranks, depth, leaves, best)
        if depth == 1:
            return min(best, self._least_of_cuts(part, leaves))
        return self._halve(part, depth, leaves, best)

    def least_of_each(self, part: Part, ranks: Array, depth: int, leaves: float, cap: float) -> float:
        """Return the least cost of trees that begin with a child for each rank, or the cap."""
        self._visit(part.rows.size)
        met = ranks[part.rows]
        children = [part.rows[met == one] for one in np.unique(met)]
        others = len(children) - 1
        if not 1 <= others < leaves:
            return cap
        numbers = [leaves] if math.isinf(leaves) else range(1, int(leaves) - others + 1)
        costs = {0.0: 0.0}  # by the leaves that the children so far have
        for rows in children:
            child, room = self.part(part, rows), cap - min(costs.values()) - others * self.penalty
            longer: dict[float, float] = {}
            for number in numbers:
                cost = self.least(child, depth - 1, number, room)
                for used in [used for used in costs if used + number <= leaves]:
                    total = costs[used] + cost
                    longer[used + number] = min(longer.get(used + number, math.inf), total)
            costs, others = longer, others - 1
            if min(costs.values()) + others * self.penalty >= cap:
                return cap
        return min(costs.values())

    def _least_of_cuts(self, part: Part, leaves: float) -> float:
        """Return the least cost of one question with two children, or three with unknown values."""
        least, size = math.inf, part.rows.size
        step = max(1, BLOCK // (size * len(self._mass)))
        for start in range(0, len(self._ranks), step):
            columns = slice(start, start + step)
            order, apart = part.order[columns], self._apart[columns]
            self._visit(order.size * len(self._mass))
            ranks = np.take_along_axis(self._ranks[columns], order, axis=1)
            changes = np.zeros(order.shape, dtype=bool)
            np.not_equal(ranks[:, 1:], ranks[:, :-1], out=changes[:, :-1])
            cut = np.flatnonzero(changes)
            column = np.repeat(np.arange(len(order)), changes.sum(axis=1))
            sums = np.cumsum(self._mass.take(order, axis=1), axis=2)
            lost = (ranks == 0).sum(axis=1) * apart  # rows that are unknown
            unknown = np.where(lost > 0, sums[:, np.arange(len(order)), lost - 1], 0.0)
            up_to = sums.reshape(len(sums), -1).take(cut, axis=1)
            left = np.maximum(up_to - unknown.take(column, axis=1), 0.0) if lost.any() else up_to
            right = np.maximum(part.totals[:, None] - up_to, 0.0)
            children = 1 + (lost > 0)[column] + (cut - column * size >= lost[column])
            cost = self.leaf(left) + self.leaf(right) + self.leaf(unknown)[column] + self.penalty * children
            least = min(least, float(cost[children <= leaves].min(initial=math.inf)))
        return least

    def _halve(self, part: Part, depth: int, leaves: float, cap: float) -> float:
        """Return the least cost over all cuts of all columns, or the cap."""
        best, heap = cap, [one for one in self._intervals(part, depth, leaves, cap) if one.bound < cap]
        heapq.heapify(heap)
        number = len(heap) + 1
        while heap and heap[0].bound < best:
            at = heapq.heappop(heap)
            middle, order = (at.a + at.b) // 2, part.order[at.place]
            cut, room = int(at.cuts[middle]), best - at.unknown_cost
            sides = (self.part(part, rows) for rows in (order[at.unknown : cut], order[cut:]))
            left = self.least(next(sides), depth - 1, at.leaves[0], room - at.right)
            right = self.least(next(sides), depth - 1, at.leaves[1], room - at.left)
            best = min(best, left + right + at.unknown_cost)
            for half in (
                at._replace(b=middle - 1, right=max(right, at.right)),
                at._replace(a=middle + 1, left=max(left, at.left)),
            ):
                bound = half.left + half.right + half.unknown_cost
                if half.a <= half.b and bound < best:
                    number += 1
                    heapq.heappush(heap, half._replace(bound=bound, number=number))
        return best

    def _intervals(self, part: Part, depth: int, leaves: float, cap: float) -> Iterator[_Interval]:
        """Give all cuts of each column, once for every way to share the leaves."""
        number, most = 0, self.most_leaves(depth - 1)
        for place, ranks in enumerate(self._ranks):
            self._visit(part.rows.size)
            cuts, order = part.cuts(place, ranks), part.order[place]
            lost = int((ranks[part.rows] == 0).sum()) if self._apart[place] else 0
            unknown = self.part(part, order[:lost]) if lost else None
            # Known or unknown is one question; the others have rows on the left as well.
            for some, sides in ((cuts[cuts <= lost], 1), (cuts[cuts > lost], 2)):
                for shared in share_leaves(leaves, sides + (lost > 0), most) if some.size else ():
                    cost = self.least(unknown, depth - 1, shared[-1], cap) if unknown else 0.0
                    number, first = number + 1, (sides - 1) * self.penalty
                    bound, last = first + self.penalty + cost, some.size - 1
                    given = shared[:2] if sides == 2 else (0.0, *shared[:1])
                    yield _Interval(
                        bound, number, place, some, lost, cost, given, 0, last, first, self.penalty
                    )

    def _visit(self, rows: float) -> None:
        self.visits += rows + CALL
        if self.visits > self.limit:
            raise WorkLimitError


def share_leaves(leaves: float, children: int, most: int) -> Iterator[tuple[float, ...]]:
    """Give every way to share all leaves among children that can use ``most`` at most."""
    if leaves >= children * most:
        yield (math.inf,) * children
    elif children == 1:
        yield (leaves,)
    else:
        first = range(max(1, int(leaves) - (children - 1) * most), min(most, int(leaves) - children + 1) + 1)
        for one in first:
            for others in share_leaves(leaves - one, children - 1, most):
                yield (one, *others)


def _f(x: Array) -> Array:
    return np.asarray(x * np.log(x, out=np.zeros_like(x), where=x > 0))
