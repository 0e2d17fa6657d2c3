"""What a streamed tree asks of a block of rows, and how the answers of blocks are joined.

Rows find their node by going through the tree there is. Each pass is a function of a block; what it returns
is small, or as large as :mod:`sixfold.solvers.streamed.tree` allows for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sixfold.data.blocks import Block
from sixfold.solvers.trees.fitted_tree import FittedTree

Array = NDArray[Any]

SKETCHED = 64  # values of a block that stand for those of a bin


@dataclass(frozen=True)
class Rows:
    """How blocks are read: the way to the nodes there are, the classes, and the unit of weights."""

    tree: FittedTree
    classes: int
    exponent: int

    def of(self, block: Block) -> tuple[Array, Array, Array | None]:
        """Return table, labels and weights of the rows that count."""
        if block.weight is None:
            return block.X, block.y[:, 0].astype(np.intp), None
        kept = np.flatnonzero(block.weight)
        weight = np.ldexp(block.weight[kept], -self.exponent)
        return np.ascontiguousarray(block.X[kept]), block.y[kept, 0].astype(np.intp), weight

    def by_node(self, X: Array, nodes: Array) -> Iterator[Array]:
        """Yield which rows are at each of these nodes, in their order."""
        at = self.tree.apply(X)
        order = np.argsort(at, kind="stable")
        ends = at[order]
        first, last = np.searchsorted(ends, nodes), np.searchsorted(ends, nodes, side="right")
        for begin, end in zip(first.tolist(), last.tolist(), strict=True):
            yield order[begin:end]

    def sums(self, places: Array, weight: Array | None, size: int) -> tuple[Array, Array]:
        """Return weights and rows at each of ``size`` places of classes."""
        counts = np.bincount(places, minlength=size).astype(np.int64)
        weights = counts.astype(np.float64) if weight is None else np.bincount(places, weight, size)
        return weights.reshape(-1, self.classes), counts.reshape(-1, self.classes)


class Bins(NamedTuple):
    """Ranges low < x <= high of columns at nodes, those of a node together, by column and value."""

    node: Array
    column: Array
    low: Array
    high: Array

    def take(self, places: Array) -> Bins:
        """Return some of them."""
        return Bins(*(each[places] for each in self))


def members(rows: Rows, X: Array, bins: Bins) -> Iterator[tuple[Array, Array, Array, range]]:
    """Yield for each node and column the rows in some bin, their values, their bins, and all bins there."""
    if not bins.node.size:
        return
    nodes, starts = np.unique(bins.node, return_index=True)
    ends = np.append(starts[1:], bins.node.size)
    for here, begin, end in zip(rows.by_node(X, nodes), starts.tolist(), ends.tolist(), strict=True):
        if not here.size:
            continue
        columns, firsts = np.unique(bins.column[begin:end], return_index=True)
        lasts = np.append(firsts[1:], end - begin)
        for column, first, last in zip(columns.tolist(), firsts + begin, lasts + begin, strict=True):
            values = X[here, column].astype(np.float64)
            low, high = bins.low[first:last], bins.high[first:last]
            place = np.searchsorted(low, values) - 1
            inside = np.flatnonzero((place >= 0) & (values <= high[place]))
            yield here[inside], values[inside], place[inside] + first, range(first, last)


# -- passes --------------------------------------------------------------------------------------------------


class Beginning(NamedTuple):
    """What is known of all rows, and a sample of them."""

    weights: Array
    counts: Array
    largest: float
    sample: Array

    def join(self, other: Beginning) -> Beginning:
        """Return what is known of both."""
        sample = np.concatenate([self.sample, other.sample])
        largest = max(self.largest, other.largest)
        return Beginning(self.weights + other.weights, self.counts + other.counts, largest, sample)


def begin(block: Block, step: int, classes: int) -> Beginning:
    """Return what is known of one block, and one row in ``step``."""
    labels = block.y[:, 0].astype(np.intp)
    counting = slice(None) if block.weight is None else block.weight > 0
    counts = np.bincount(labels[counting], minlength=classes)
    weights = counts * 1.0 if block.weight is None else np.bincount(labels, block.weight, classes)
    sample = np.ascontiguousarray(block.X[-block.start % step :: step])
    largest = 1.0 if block.weight is None else float(block.weight.max(initial=0.0))
    return Beginning(weights, counts, largest, sample)


Counts = tuple[Array, Array]


def count(block: Block, rows: Rows, bins: Bins, edges: list[Array]) -> Counts:
    """Return weights and rows of each class between the edges of each bin."""
    X, labels, weight = rows.of(block)
    starts = np.concatenate([[0], np.cumsum([each.size + 1 for each in edges])])
    weights = np.zeros((starts[-1], rows.classes))
    counts = np.zeros((starts[-1], rows.classes), dtype=np.int64)
    for here, values, bin_of, together in members(rows, X, bins):
        for k in together:
            own = slice(None) if len(together) == 1 else bin_of == k
            part = here[own]
            places = np.searchsorted(edges[k], values[own]) * rows.classes + labels[part]
            size = (edges[k].size + 1) * rows.classes
            added = rows.sums(places, None if weight is None else weight[part], size)
            weights[starts[k] : starts[k + 1]] += added[0]
            counts[starts[k] : starts[k + 1]] += added[1]
    return weights, counts


def add(one: Counts, other: Counts) -> Counts:
    """Return the sums of both."""
    return one[0] + other[0], one[1] + other[1]


class Values(NamedTuple):
    """Different values in bins, with the weight and the rows of one class; by bin, value and class."""

    number: Array
    value: Array
    label: Array
    weight: Array
    rows: Array

    def merged(self) -> Values:
        """Return each value of a class in a bin once."""
        if not self.number.size:
            return self
        order = np.lexsort((self.label, self.value, self.number))
        number, value, label, weight, rows = (each[order] for each in self)
        new = np.ones(number.size, dtype=bool)
        new[1:] = (np.diff(number) != 0) | (np.diff(value) != 0) | (np.diff(label) != 0)
        at = np.flatnonzero(new)
        return Values(
            number[at], value[at], label[at], np.add.reduceat(weight, at), np.add.reduceat(rows, at)
        )

    def join(self, other: Values) -> Values:
        """Return the values of both."""
        return Values(*map(np.concatenate, zip(self, other, strict=True))).merged()


def fetch(block: Block, rows: Rows, bins: Bins) -> Values:
    """Return the different values in each bin."""
    X, labels, weight = rows.of(block)
    none = np.empty(0, dtype=np.int64)
    parts = [Values(none, np.empty(0), none, np.empty(0), none)]
    for here, values, bin_of, _ in members(rows, X, bins):
        own = np.ones(here.size) if weight is None else weight[here]
        parts.append(Values(bin_of, values, labels[here], own, np.ones(here.size, dtype=np.int64)).merged())
    return Values(*map(np.concatenate, zip(*parts, strict=True)))


class Sketch(NamedTuple):
    """Some of the values in bins, the first and the last among them, and how many rows each stands for."""

    number: Array
    value: Array
    mass: Array

    def thinned(self, most: int) -> Sketch:
        """Return at most so many values of each bin."""
        if not self.number.size:
            return self
        order = np.lexsort((self.value, self.number))
        number, value, mass = (each[order] for each in self)
        numbers, starts = np.unique(number, return_index=True)
        parts = [(np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))]
        for k, own in zip(numbers.tolist(), np.split(np.arange(number.size), starts[1:]), strict=True):
            upto = np.cumsum(mass[own])
            taken = np.arange(own.size)
            if own.size > most:
                wanted = np.searchsorted(upto, np.linspace(0.0, upto[-1], most)).clip(0, own.size - 1)
                taken = np.union1d(wanted, own.size - 1)
            held = np.diff(upto[taken], prepend=0.0)
            parts.append((np.full(held.size, k), value[own[taken]], held))
        return Sketch(*map(np.concatenate, zip(*parts, strict=True)))

    def join(self, other: Sketch) -> Sketch:
        """Return some of the values of both."""
        return Sketch(*map(np.concatenate, zip(self, other, strict=True))).thinned(16 * SKETCHED)


def sketch(block: Block, rows: Rows, bins: Bins) -> Sketch:
    """Return some of the values in each bin."""
    X, _, _ = rows.of(block)
    parts = [Sketch(np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))]
    for _, values, bin_of, _ in members(rows, X, bins):
        parts.append(Sketch(bin_of, values, np.ones(values.size)).thinned(SKETCHED))
    return Sketch(*map(np.concatenate, zip(*parts, strict=True)))


class Sides(NamedTuple):
    """The neighbours of each threshold, and the classes of the rows on the left and on the right."""

    low: Array
    high: Array
    weights: Array
    counts: Array

    def join(self, other: Sides) -> Sides:
        """Return those of the rows of both."""
        low, high = np.maximum(self.low, other.low), np.minimum(self.high, other.high)
        return Sides(low, high, self.weights + other.weights, self.counts + other.counts)


def divide(block: Block, rows: Rows, nodes: Array, columns: Array, edges: Array) -> Sides:
    """Return what is on both sides of an edge of a column at each of these nodes."""
    X, labels, weight = rows.of(block)
    low, high = np.full(nodes.size, -np.inf), np.full(nodes.size, np.inf)
    weights = np.zeros((nodes.size, 2, rows.classes))
    counts = np.zeros((nodes.size, 2, rows.classes), dtype=np.int64)
    for k, here in enumerate(rows.by_node(X, nodes)):
        values = X[here, columns[k]].astype(np.float64)
        right = values > edges[k]
        low[k] = values[~right].max(initial=-np.inf)
        high[k] = values[right].min(initial=np.inf)
        places = right * rows.classes + labels[here]
        own = None if weight is None else weight[here]
        weights[k], counts[k] = rows.sums(places, own, 2 * rows.classes)
    return Sides(low, high, weights, counts)


class Gathered(NamedTuple):
    """Rows of nodes, in their order."""

    X: Array
    labels: Array
    weight: Array
    at: Array

    def join(self, other: Gathered) -> Gathered:
        """Return the rows of both."""
        return Gathered(*map(np.concatenate, zip(self, other, strict=True)))


def gather(block: Block, rows: Rows, nodes: Array) -> Gathered:
    """Return the rows at some nodes."""
    X, labels, weight = rows.of(block)
    at = rows.tree.apply(X)
    kept = np.flatnonzero(np.isin(at, nodes))
    own = np.ones(kept.size) if weight is None else weight[kept]
    return Gathered(X[kept], labels[kept].astype(np.int32), own, at[kept])
