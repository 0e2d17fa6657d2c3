"""The columns in which a search for the best tree looks, and the way back to a fitted tree.

The search knows whole numbers only. Each of its columns gives every row a rank, and is of one of three kinds:

    ORDERED        questions "rank <= t", t = 0, 1, ...: left or right
    WITH_UNKNOWN   rank 0 is unknown; questions "rank <= t", t = 1, 2, ...: left or right of those that are
                   known, and unknown; the last t has all known values on the left: "is it known?"
    BRANCH_EACH    one question, with a branch for every rank

A column of numbers or categories becomes as many of them as it takes to ask all that a tree may ask:

    numbers                 the ranks of their values
      unknown has a branch  the same, with unknown
      unknown joins         twice, unknown as the lowest rank and as the highest
    categories, a branch each
                            their codes; unknown is one more, or joins: a column for each category that it
                            counts as, and one for known or unknown
    categories, two groups  a column of two ranks for each grouping of the k values: all 2^(k - 1) - 1 of
                            them for k <= 8, else the values with the least share of a class on one side, for
                            every class and every number of them, and each value on its own

Only rows that count have ranks, from 0 on without gaps. Columns that ask nothing are left out, and so are
those that ask what an earlier one does: equal but for the order of their ranks from low to high or high to
low (of a branch each: in any order). A branch each of two ranks is an ordered column.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.solvers.trees.fitted_tree import LEAF_THRESHOLD, NO_NODE, FittedTree, Reason, sparse_parts
from sixfold.solvers.trees.growth import TrainingRows

Array = NDArray[Any]

ORDERED, WITH_UNKNOWN, BRANCH_EACH = range(3)
MOST_GROUPED = 8  # values of which all groupings in two are tried
NO_RANK = -1


# -- what the search is given --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SearchColumn:
    """What one search column stands for.

    Attributes
    ----------
    source : int
        The column of the table.
    values : ndarray of float64
        Its values, unknown apart: numbers or codes of categories, each once, from low to high.
    rank : ndarray of int32
        The rank of each of them.
    unknown : int
        The rank of unknown values, -1 where the column has none.
    """

    source: int
    values: NDArray[np.float64]
    rank: NDArray[np.int32]
    unknown: int = NO_RANK

    def ranks_of(self, x: Array) -> NDArray[np.int32]:
        """Return the rank of each of these values of the source, all of which the column has met."""
        known = ~np.isnan(x)
        ranks = np.full(x.size, self.unknown, dtype=np.int32)
        ranks[known] = self.rank[np.searchsorted(self.values, x[known])]
        return ranks


@dataclass(frozen=True, eq=False)
class SearchColumns:
    """All questions that a tree may ask about some rows.

    Attributes
    ----------
    ranks : ndarray of int32, shape (search columns, rows)
        Of the rows that count, in their order.
    kinds : ndarray of uint8, shape (search columns,)
        ORDERED, WITH_UNKNOWN or BRANCH_EACH.
    meaning : tuple of SearchColumn
    all_groupings : bool
        Whether every grouping of categories is among them.
    """

    ranks: NDArray[np.int32]
    kinds: NDArray[np.uint8]
    meaning: tuple[SearchColumn, ...]
    all_groupings: bool = True

    def side(self, column: int, t: int, rows: Array) -> NDArray[np.int32]:
        """Return the side of a question on which each of these rows is.

        Sides are 0, 1, ... in the order in which the search lists children: left, right and unknown, or the
        ranks. A side may have no rows, and then is no child.
        """
        ranks, kind = self.ranks[column, rows], self.kinds[column]
        if kind == BRANCH_EACH:
            return ranks
        side = (ranks > t).astype(np.int32)
        if kind == WITH_UNKNOWN:
            side[ranks == 0] = 2
        return side

    def parts(self, column: int, t: int, rows: Array) -> list[Array]:
        """Return the rows of each child of a question, those with rows only."""
        return _by_side(rows, self.side(column, t, rows))[1]

    def are_equal(self, rows: Array) -> bool:
        """Return whether no question tells these rows apart."""
        return all((ranks[rows] == ranks[rows[0]]).all() for ranks in self.ranks)


def _by_side(rows: Array, side: Array) -> tuple[list[int], list[Array]]:
    """Return the sides that have rows, in order, and the rows of each."""
    order = np.argsort(side, kind="stable")
    sides, first = np.unique(side[order], return_index=True)
    return sides.tolist(), np.split(rows[order], first[1:])


def search_columns(
    rows: TrainingRows, binary: bool, unknown_best: bool, left_out: Collection[int] = ()
) -> SearchColumns:
    """Return the search columns of the rows that count.

    Parameters
    ----------
    rows : TrainingRows
    binary : bool
        Whether categories are put into two groups instead of a branch each.
    unknown_best : bool
        Whether unknown values join another branch instead of having their own.
    left_out : collection of int
        Columns of the table that no question is about.
    """
    kept, all_groupings = _DistinctColumns(rows.count), True
    column_of = column_reader(rows)
    for source, kind in enumerate(rows.kinds):
        if source in left_out:
            continue
        x = column_of(source)
        known = ~np.isnan(x)
        values, place = np.unique(x[known], return_inverse=True)
        table = _SourceColumn(source, values, place.astype(np.int32), known)
        if kind == 0:
            ranked = _of_numbers(table, unknown_best)
        elif binary:
            grouped = values.size + int(unknown_best and not table.all_known)
            all_groupings &= grouped <= MOST_GROUPED
            ranked = _of_groups(table, rows, unknown_best)
        else:
            ranked = _of_categories(table, unknown_best)
        for one in ranked:
            kept.add(*one)
    return kept.finish(all_groupings)


def column_reader(rows: TrainingRows) -> Callable[[int], NDArray[np.float64]]:
    """Return what reads a column of the table: its values in the rows that count, in their order."""
    chosen = slice(None) if rows.rows is None else rows.rows
    if not sp.issparse(rows.X):
        return lambda column: np.asarray(rows.X[:, column][chosen], dtype=np.float64)
    values, place, start = sparse_parts(rows.X.tocsc())

    def read(column: int) -> NDArray[np.float64]:
        part = slice(start[column], start[column + 1])
        x = np.zeros(rows.labels.size)
        x[place[part]] = values[part]
        return x[chosen]

    return read


@dataclass(frozen=True, eq=False)
class _SourceColumn:
    """A column of the table: its values, where each known row has which of them, and which rows are known."""

    source: int
    values: NDArray[np.float64]
    place: NDArray[np.int32]
    known: NDArray[np.bool_]

    @property
    def all_known(self) -> bool:
        return bool(self.known.all())

    def ranked(self, kind: int, rank: Array, unknown: int) -> _Ranked:
        """Return the search column in which values and unknown have these ranks."""
        rank = rank.astype(np.int32)
        if self.all_known:
            return kind, rank[self.place], SearchColumn(self.source, self.values, rank)
        ranks = np.full(self.known.size, unknown, dtype=np.int32)
        ranks[self.known] = rank[self.place]
        return kind, ranks, SearchColumn(self.source, self.values, rank, unknown)


_Ranked = tuple[int, NDArray[np.int32], SearchColumn]


def _of_numbers(column: _SourceColumn, unknown_best: bool) -> Iterator[_Ranked]:
    order = np.arange(column.values.size)
    if column.all_known:
        yield column.ranked(ORDERED, order, NO_RANK)
    elif unknown_best:
        yield column.ranked(ORDERED, order + 1, 0)
        yield column.ranked(ORDERED, order, order.size)
    else:
        yield column.ranked(WITH_UNKNOWN, order + 1, 0)


def _of_categories(column: _SourceColumn, unknown_best: bool) -> Iterator[_Ranked]:
    order = np.arange(column.values.size)
    if column.all_known or not unknown_best:
        yield column.ranked(BRANCH_EACH, order, order.size)
        return
    for joined in order:
        yield column.ranked(BRANCH_EACH, order, int(joined))
    yield column.ranked(ORDERED, np.zeros_like(order), 1)


def _of_groups(column: _SourceColumn, rows: TrainingRows, unknown_best: bool) -> Iterator[_Ranked]:
    """Yield a column for each grouping; unknown is one value more where it joins."""
    count = column.values.size
    if column.all_known:
        for second in _groupings(column, rows, count):
            yield column.ranked(ORDERED, second, NO_RANK)
    elif unknown_best:
        for second in _groupings(column, rows, count + 1):
            yield column.ranked(ORDERED, second[:-1], int(second[-1]))
    else:
        if count == 1:
            yield column.ranked(WITH_UNKNOWN, np.ones(1), 0)
        for second in _groupings(column, rows, count):
            yield column.ranked(WITH_UNKNOWN, second + 1, 0)


def _groupings(column: _SourceColumn, rows: TrainingRows, count: int) -> Iterator[NDArray[np.int32]]:
    """Yield which of ``count`` values are in the second group: 0 or 1 for each."""
    if count <= MOST_GROUPED:
        for mask in range(1, 2 ** max(count - 1, 0)):
            yield (mask << 1 >> np.arange(count)) & 1
        return
    for wanted in range(1, 2) if rows.classes == 2 else range(rows.classes):
        order = np.argsort(_shares(column, rows, count, wanted), kind="stable")
        for size in range(1, count):
            yield np.isin(np.arange(count), order[size:]).astype(np.int32)
    for value in range(count):
        yield (np.arange(count) == value).astype(np.int32)


def _shares(column: _SourceColumn, rows: TrainingRows, count: int, wanted: int) -> NDArray[np.float64]:
    """Return the share of one class among the rows of each value, unknown last where it is one of them."""
    labels, weight = labels_and_weight(rows)
    value = np.full(column.known.size, column.values.size)
    value[column.known] = column.place
    inside = value < count
    value, labels = value[inside], labels[inside]
    weight = None if weight is None else weight[inside]
    whole = np.bincount(value, weight, count)
    of_class = labels == wanted
    return np.bincount(value[of_class], None if weight is None else weight[of_class], count) / whole


def labels_and_weight(rows: TrainingRows) -> tuple[NDArray[np.int32], NDArray[np.float64] | None]:
    """Return labels and weights of the rows that count."""
    chosen = slice(None) if rows.rows is None else rows.rows
    return rows.labels[chosen], None if rows.weight is None else rows.weight[chosen]


class _DistinctColumns:
    """Search columns, without those that ask nothing or nothing new."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._ranks: list[NDArray[np.int32]] = []
        self._kinds: list[int] = []
        self._meaning: list[SearchColumn] = []
        self._met: dict[bytes, list[int]] = {}

    def add(self, kind: int, ranks: NDArray[np.int32], meaning: SearchColumn) -> None:
        most = int(ranks.max())
        if int(ranks.min()) == most:
            return
        if kind == BRANCH_EACH and most == 1:
            kind = ORDERED
        usual = _usual(kind, ranks)
        alike = self._met.setdefault(hashlib.blake2b(usual.tobytes(), digest_size=16).digest(), [])
        if any(self._kinds[k] == kind and (usual == _usual(kind, self._ranks[k])).all() for k in alike):
            return
        alike.append(len(self._ranks))
        self._ranks.append(ranks)
        self._kinds.append(kind)
        self._meaning.append(meaning)

    def finish(self, all_groupings: bool) -> SearchColumns:
        ranks = np.array(self._ranks, dtype=np.int32).reshape(len(self._ranks), self._rows)
        return SearchColumns(ranks, np.array(self._kinds, np.uint8), tuple(self._meaning), all_groupings)


def _usual(kind: int, ranks: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the ranks turned round or renamed, so that columns which ask the same have the same."""
    if kind == BRANCH_EACH:
        _, first, place = np.unique(ranks, return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first)).astype(np.int32)[place]
    turned = ranks.max() - ranks
    if kind == WITH_UNKNOWN:
        turned = np.where(ranks == 0, 0, turned + 1).astype(np.int32)
    differ = np.flatnonzero(ranks != turned)
    return turned if differ.size and turned[differ[0]] < ranks[differ[0]] else ranks


# -- the way back --------------------------------------------------------------------------------------------


def fitted_tree(
    columns: SearchColumns,
    column: Array,
    rank: Array,
    rows: TrainingRows,
    criterion: str = "entropy",
    stopped: Array | None = None,
) -> FittedTree:
    """Return the tree that asks these questions, as if it had been grown.

    Parameters
    ----------
    columns : SearchColumns
        Of the rows.
    column, rank : ndarray of int32, shape (nodes,)
        The search column that a node asks, -1 in a leaf, and t. A node is followed by the subtrees of its
        children with rows, in the order of their sides.
    rows : TrainingRows
    criterion : str
        What the impurities of the tree are.
    stopped : ndarray of bool, shape (nodes,), or None
        Which leaves the budget left unsplit; None for none.
    """
    builder = _TreeBuilder(columns, rows)
    waiting: list[tuple[int, int, Array]] = [(NO_NODE, 0, np.arange(rows.count))]
    for number in range(len(column)):
        if not waiting:
            raise ValueError(f"{len(column)} nodes were given, but all children have one after {number}.")
        parent, slot, here = waiting.pop()
        cut_short = stopped is not None and bool(stopped[number])
        children = builder.add(parent, slot, here, int(column[number]), int(rank[number]), cut_short)
        waiting += [(number, slot, part) for slot, part in reversed(children)]
    if waiting:
        raise ValueError(f"{len(column)} nodes were given, but {len(waiting)} children have none.")
    return builder.finish(criterion)


@dataclass(frozen=True, eq=False)
class _Split:
    """A question about a column of the table.

    Branches, by code, and unknown have the slot of a child, as in ``native/trees/nodes.hpp``; ``slots`` has
    the slot of each side of the question.
    """

    source: int
    threshold: float
    branches: dict[int, int]
    unknown: int
    slots: dict[int, int]


class _TreeBuilder:
    """The nodes of a tree, in the order in which the search lists them."""

    def __init__(self, columns: SearchColumns, rows: TrainingRows) -> None:
        self._columns, self._kinds, self._classes = columns, rows.kinds, rows.classes
        self._labels, self._weight = labels_and_weight(rows)
        self._read, self._values = column_reader(rows), dict[int, Array]()
        self._splits: list[_Split | None] = []
        self._children: list[list[int]] = []  # by slot
        self._reason: list[Reason] = []
        self._rows: list[int] = []
        self._totals: list[Array] = []

    def add(
        self, parent: int, slot: int, rows: Array, column: int, t: int, cut_short: bool
    ) -> list[tuple[int, Array]]:
        """Add the next node; return slot and rows of each of its children, in the order of their sides."""
        number = len(self._rows)
        weight = None if self._weight is None else self._weight[rows]
        self._totals.append(np.bincount(self._labels[rows], weight, self._classes).astype(np.float64))
        self._rows.append(rows.size)
        if parent != NO_NODE:
            self._children[parent][slot] = number
        if column < 0:
            self._splits.append(None)
            self._children.append([])
            self._reason.append(self._why_leaf(rows, cut_short))
            return []
        side = self._columns.side(column, t, rows)
        split = self._split(column, side, rows)
        self._splits.append(split)
        self._children.append([NO_NODE] * len(split.slots))
        self._reason.append(Reason.SPLIT)
        return [(split.slots[one], part) for one, part in zip(*_by_side(rows, side), strict=True)]

    def _why_leaf(self, rows: Array, cut_short: bool) -> Reason:
        if (self._labels[rows] == self._labels[rows[0]]).all():
            return Reason.PURE
        if self._columns.are_equal(rows):
            return Reason.EXHAUSTED
        return Reason.STOPPED if cut_short else Reason.LIMIT

    def _split(self, column: int, side: Array, rows: Array) -> _Split:
        source = self._columns.meaning[column].source
        if source not in self._values:
            self._values[source] = self._read(source)
        x = self._values[source][rows]
        known = ~np.isnan(x)
        values, first = np.unique(x[known], return_index=True)
        side_of_value = side[known][first].tolist()
        side_of_unknown = side[~known][:1].tolist()
        # By the lowest value, and a side of unknown values alone comes last.
        sides = dict.fromkeys(side_of_value + side_of_unknown)
        slots = {one: slot for slot, one in enumerate(sides)}
        unknown = slots[side_of_unknown[0]] if side_of_unknown else NO_NODE
        if self._kinds[source] != 0:
            codes = zip(values.astype(np.int64).tolist(), side_of_value, strict=True)
            return _Split(source, math.nan, {code: slots[one] for code, one in codes}, unknown, slots)
        left = side_of_value.count(side_of_value[0])
        if left < values.size:
            threshold = threshold_between(values[left - 1], values[left])
            return _Split(source, threshold, {0: 0, 1: 1}, unknown, slots)
        # Known or unknown: there is a branch for x > threshold where unknown has none of its own.
        has_right = self._columns.kinds[column] == ORDERED
        return _Split(source, math.inf, {0: 0, 1: 1} if has_right else {0: 0}, unknown, slots)

    def finish(self, criterion: str) -> FittedTree:
        """Return the tree, numbered depth first by slots."""
        order, stack = list[int](), [0]
        while stack:
            order.append(stack.pop())
            stack += reversed(self._children[order[-1]])
        number = np.empty(len(order), dtype=np.int32)
        number[order] = np.arange(len(order))
        splits = [self._splits[old] for old in order]
        branches = [
            (code, number[self._children[old][slot]])
            for old, split in zip(order, splits, strict=True)
            if split is not None
            for code, slot in split.branches.items()
        ]
        unknown = [
            NO_NODE if split is None or split.unknown < 0 else number[self._children[old][split.unknown]]
            for old, split in zip(order, splits, strict=True)
        ]
        sizes = [0 if split is None else len(split.branches) for split in splits]
        pairs = np.array(branches, dtype=np.int32).reshape(len(branches), 2)
        return FittedTree(
            kinds=self._kinds,
            column=np.array([NO_NODE if one is None else one.source for one in splits], dtype=np.int32),
            threshold=np.array([LEAF_THRESHOLD if one is None else one.threshold for one in splits]),
            first=np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]),
            code=pairs[:, 0].copy(),
            child=pairs[:, 1].copy(),
            unknown=np.array(unknown, dtype=np.int32),
            reason=np.array([self._reason[old] for old in order], dtype=np.uint8),
            rows=np.array(self._rows, dtype=np.int64)[order],
            totals=np.array(self._totals)[order],
            criterion=criterion,
        )


def threshold_between(low: float, high: float) -> float:
    """Return the number halfway, rounded once; where none lies in between, the lower one.

    >>> threshold_between(1.0, 2.0)
    1.5
    """
    largest = np.finfo(np.float64).max / 2
    small = abs(low) <= largest and abs(high) <= largest
    middle = float((low + high) / 2 if small else low / 2 + high / 2)
    return middle if low <= middle < high else float(low)


# -- the questions of a node ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class NodeColumns:
    """Search columns of some of the rows, those left out that tell none of them apart.

    Attributes
    ----------
    ranks, kinds : ndarray
        As in :class:`SearchColumns`, ranks from 0 on without gaps again.
    column : ndarray of int32
        Which search column each of them is.
    old_ranks : list of ndarray
        What each of its ranks is there.
    """

    ranks: NDArray[np.int32]
    kinds: NDArray[np.uint8]
    column: NDArray[np.int32]
    old_ranks: list[NDArray[np.int32]]

    @classmethod
    def of(cls, columns: SearchColumns, rows: Array) -> NodeColumns:
        """Return the columns of these rows."""
        ranks, kinds, kept, old_ranks = [], [], [], []
        for k, (all_ranks, kind) in enumerate(zip(columns.ranks, columns.kinds, strict=True)):
            here = all_ranks[rows]
            low, high = int(here.min()), int(here.max())
            if low == high:
                continue
            if high - low <= 4 * rows.size:
                met = np.bincount(here - low) > 0
                old = (np.flatnonzero(met) + low).astype(np.int32)
                new = (np.cumsum(met) - 1)[here - low]
            else:
                old, new = np.unique(here, return_inverse=True)
            # Where nothing is unknown there is no branch for it, and two branches are left and right.
            plain = (kind == WITH_UNKNOWN and low > 0) or (kind == BRANCH_EACH and old.size == 2)
            ranks.append(new.astype(np.int32))
            kinds.append(ORDERED if plain else int(kind))
            kept.append(k)
            old_ranks.append(old)
        table = np.array(ranks, dtype=np.int32).reshape(len(ranks), rows.size)
        return cls(table, np.array(kinds, np.uint8), np.array(kept, np.int32), old_ranks)

    def questions(self, column: Array, rank: Array) -> list[tuple[int, int]]:
        """Return search column and t of each node of a tree of these columns, -1 and -1 in a leaf."""
        return [
            (NO_NODE, NO_RANK) if k < 0 else (int(self.column[k]), int(self.old_ranks[k][t]))
            for k, t in zip(column, rank, strict=True)
        ]
