"""A decision tree of rows that stay where they are: the tree of :mod:`sixfold.solvers.trees.growth`.

Level by level. What is known of a node and a column is how the classes add up at some edges:

    edges      taken from a sample of the rows, a value that many rows have between two of its own
    counts     one pass: rows and weights of each class between the edges, for all open nodes of a level
    bounds     what no threshold between two edges can be below
    refine     where that is not above the best threshold that is known, ties included: one pass brings the
               different values between these edges with their classes, or where there are too many, edges
               between them
    split      one pass: the neighbouring values that the threshold lies between, and the classes on each side

S of a split, the sum of f(W_k) - sum_c f(w_kc) or of W_k - sum_c w_kc^2 / W_k over its two children, is
concave in what the classes weigh on the left. Between two edges these weights lie in a box, so that S is at
least the least of its corners; with many classes, which make many corners, at least what the rows left of
both edges and those right of both have by themselves, since what is added to a child never lowers its part.

So every split is the best of its node with the ties of the native loops: first the lowest column, then the
lowest threshold. Rows find their node by going through the tree there is; nothing is kept for a row. The rows
of small nodes are brought here, a batch at a time, and grown in memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget, BudgetExhausted
from sixfold.data.blocks import Blocks
from sixfold.solvers.streamed.tree_passes import (
    Beginning,
    Bins,
    Gathered,
    Rows,
    Sides,
    Sketch,
    Values,
    add,
    count,
    divide,
    fetch,
    gather,
    sketch,
)  # fmt: skip
from sixfold.solvers.trees.fitted_tree import LEAF_THRESHOLD, NO_NODE, FittedTree, Reason
from sixfold.solvers.trees.growth import TIE, GrowthRules, TrainingRows, grow

Array = NDArray[Any]

SAMPLED = 20_000  # rows that edges are taken from
FEW_ROWS = 1 << 16  # of a node that is grown here
BATCH = 1 << 24  # values of such nodes that are brought here together
BINS = 256  # values of a column that become edges
CELLS = 1 << 22  # classes of bins that are counted in one pass
FETCHED = 1 << 22  # classes of values that are brought here in one pass
MOST_ROWS = 200_000  # between two edges, of which the values are brought here
SUBDIVIDED = 256  # bins in one pass
MARGIN = 1e-11  # of averages: far above what rounding makes of bounds
CORNERS = 6  # classes up to which the corners of a box are looked at


# -- how good splits are -------------------------------------------------------------------------------------


def x_log2_x(x: Array) -> Array:
    """Return x log2 x, 0 for 0."""
    return x * np.log2(x, out=np.zeros_like(x), where=x > 0.0)


def parts(weights: Array, criterion: str) -> Array:
    """Return what children with these weights of classes add to S."""
    whole = weights.sum(axis=-1)
    if criterion == "entropy":
        return x_log2_x(whole) - x_log2_x(weights).sum(axis=-1)
    squares = np.square(weights).sum(axis=-1)
    return whole - np.divide(squares, whole, out=np.zeros_like(whole), where=whole > 0.0)


def threshold_between(low: float, high: float) -> float:
    """Return the number halfway, rounded once; the lower one where there is none in between."""
    tiny, huge = 2 * np.finfo(np.float64).tiny, np.finfo(np.float64).max / 2
    if abs(low) <= huge and abs(high) <= huge:
        middle = (low + high) / 2
    elif abs(low) < tiny:
        middle = low + high / 2
    elif abs(high) < tiny:
        middle = low / 2 + high
    else:
        middle = low / 2 + high / 2
    return middle if low <= middle < high else low


def cuts(values: Array, mass: Array, most: int) -> Array:
    """Return edges at some of the values; one that many rows have is alone between two of them."""
    different, place = np.unique(values, return_inverse=True)
    held = np.bincount(place.reshape(-1), mass)
    upto = np.cumsum(held)
    if different.size <= most:
        taken = np.arange(different.size)
        alone = taken
    else:
        wanted = np.linspace(0.0, upto[-1], most + 2)[1:-1]
        alone = np.flatnonzero(held >= upto[-1] / most)
        taken = np.union1d(np.searchsorted(upto, wanted).clip(0, different.size - 1), alone)
    return np.union1d(different[taken], np.nextafter(different[alone], -np.inf))


# -- growth --------------------------------------------------------------------------------------------------


@dataclass
class Node:
    """A node while the tree grows."""

    depth: int
    weights: Array
    counts: Array
    reason: Reason | None = None
    column: int = NO_NODE
    threshold: float = LEAF_THRESHOLD
    children: tuple[int, ...] = ()
    below: FittedTree | None = None  # grown in memory

    @property
    def rows(self) -> int:
        """How many rows are there."""
        return int(self.counts.sum())


class Found:
    """The thresholds of a node that may be the best: of each column the edges, and S there."""

    def __init__(self, node: Node, rules: GrowthRules) -> None:
        self.node, self.rules = node, rules
        self.weight = float(node.weights.sum())
        self.tie = TIE * self.weight
        self.least = np.inf
        self.any = False  # whether limits are met or not
        self.offers: dict[int, list[tuple[Array, Array]]] = {}

    def offer(self, column: int, edges: Array, weights: Array, counts: Array) -> None:
        """Look at thresholds with these weights and rows of classes on the left."""
        whole, rules = self.node, self.rules
        left, right = counts.sum(axis=1), (whole.counts - counts).sum(axis=1)
        inside = (left > 0) & (right > 0)
        if not inside.any():
            return
        self.any = True
        other = self.others(weights, counts)
        light = rules.min_leaf_weight - self.tie
        valid = inside & (left >= rules.min_samples_leaf) & (right >= rules.min_samples_leaf)
        valid &= (weights.sum(axis=1) >= light) & (other.sum(axis=1) >= light)
        places = np.flatnonzero(valid)
        if not places.size:
            return
        score = parts(weights[places], rules.criterion) + parts(other[places], rules.criterion)
        self.least = min(self.least, float(score.min()))
        kept = score <= self.least + self.tie
        if kept.any():
            self.offers.setdefault(column, []).append((edges[places[kept]], score[kept]))

    @property
    def limit(self) -> float:
        """What S of the chosen split is not above, whatever rounding makes of bounds."""
        return self.least + self.tie + MARGIN * self.weight

    def may_hold(self, left: Any, rows: Any, bound: Any) -> Any:
        """Return whether a threshold between edges, with so many rows before and between, may be as good."""
        near = np.asarray(bound <= self.limit)
        if not self.any:  # whether there is any threshold is not known either
            return near
        fewest = self.rules.min_samples_leaf
        return near & (left + rows > fewest) & (self.node.rows - left > fewest)

    def others(self, weights: Array, counts: Array) -> Array:
        """Return the weights on the right: a class without rows weighs nothing, none less than nothing."""
        rest = np.maximum(self.node.weights - weights, 0.0)
        return np.where(self.node.counts == counts, 0.0, rest)

    def chosen(self) -> tuple[int, float, float]:
        """Return column, edge and S: the lowest column with a best split, the lowest threshold of these."""
        limit = self.least + self.tie
        for column in sorted(self.offers):
            edges, score = map(np.concatenate, zip(*self.offers[column], strict=True))
            good = np.flatnonzero(score <= limit)
            if good.size:
                first = good[np.argmin(edges[good])]
                return column, float(edges[first]), float(score[first])
        raise AssertionError("the best split of a node was not found again")


class Range(NamedTuple):
    """What may hold a better threshold: a bin of a node, with what is left of it and in it."""

    place: int  # of the node among those that are split
    column: int
    low: float
    high: float
    before: tuple[Array, Array]
    own: tuple[Array, Array]
    bound: float

    @property
    def rows(self) -> int:
        """How many rows are in it."""
        return int(self.own[1].sum())


class StreamedGrowth:
    """The growth of one tree."""

    def __init__(self, blocks: Blocks, beginning: Beginning, exponent: int, rules: GrowthRules) -> None:
        self.blocks, self.rules, self.exponent = blocks, rules, exponent
        self.sample, self.classes = beginning.sample, beginning.counts.size
        self.nodes = [Node(0, np.ldexp(beginning.weights, -exponent), beginning.counts)]
        self.whole_weight = float(self.nodes[0].weights.sum())
        columns = blocks.n_columns
        self.bins = min(BINS, max(16, CELLS // (2 * columns * self.classes)))

    def grow(self, budget: Budget) -> FittedTree:
        """Return the tree; what the budget does not allow for is left unsplit."""
        self.blocks.watch = budget.check
        try:
            small, level = [], [0]
            while level:
                level = [number for number in level if self._is_open(number)]
                small += [number for number in level if self.nodes[number].rows <= FEW_ROWS]
                large = [number for number in level if self.nodes[number].rows > FEW_ROWS]
                level = [child for some in self._batches(large) for child in self._split(some)]
            self._grow_here(small, budget)
        except BudgetExhausted:
            budget.exhausted()  # notes why
        finally:
            self.blocks.watch = None
        return self._finished()

    def _is_open(self, number: int) -> bool:
        node, rules = self.nodes[number], self.rules
        if np.count_nonzero(node.counts) == 1:
            node.reason = Reason.PURE
        elif node.depth == rules.max_depth or node.rows < rules.min_samples_split:
            node.reason = Reason.LIMIT
        return node.reason is None

    def _batches(self, numbers: list[int]) -> Iterator[list[int]]:
        """Yield nodes that are counted in one pass."""
        most = max(1, CELLS // (2 * self.bins * self.blocks.n_columns * self.classes))
        for first in range(0, len(numbers), most):
            yield numbers[first : first + most]

    def _rows(self) -> Rows:
        return Rows(self._way(), self.classes, self.exponent)

    def _way(self) -> FittedTree:
        """Return the nodes there are as a tree that rows go through."""
        nodes = self.nodes
        sizes = [len(node.children) for node in nodes]
        none = np.zeros(0)
        return FittedTree(
            kinds=np.zeros(self.blocks.n_columns, dtype=np.uint8),
            column=np.array([node.column for node in nodes], dtype=np.int32),
            threshold=np.array([node.threshold for node in nodes]),
            first=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            code=np.array([code for size in sizes for code in range(size)], dtype=np.int32),
            child=np.array([child for node in nodes for child in node.children], dtype=np.int32),
            unknown=np.full(len(nodes), NO_NODE, dtype=np.int32),
            reason=none.astype(np.uint8),
            rows=none.astype(np.int64),
            totals=none.reshape(0, self.classes),
        )

    # -- one level -------------------------------------------------------------------------------------------

    def _split(self, numbers: list[int]) -> list[int]:
        """Split these nodes where they can be; return the children."""
        rows = self._rows()
        found = [Found(self.nodes[number], self.rules) for number in numbers]
        open_ = self._first_ranges(rows, numbers, found)
        while open_ := self._promising(open_, found):
            open_ = self._refined(rows, numbers, found, open_)
        asked = []
        for number, each in zip(numbers, found, strict=True):
            node = self.nodes[number]
            if each.least == np.inf:
                node.reason = Reason.LIMIT if each.any else Reason.EXHAUSTED
                continue
            column, edge, score = each.chosen()
            gain = (float(parts(node.weights, self.rules.criterion)) - score) / each.weight
            if each.weight / self.whole_weight * gain >= self.rules.min_impurity_decrease - TIE:
                asked.append((number, column, edge))
            else:
                node.reason = Reason.LIMIT
        return self._divided(rows, asked)

    def _divided(self, rows: Rows, asked: list[tuple[int, int, float]]) -> list[int]:
        """Make the children of nodes that are split at these edges of these columns."""
        if not asked:
            return []
        numbers, columns, edges = (np.array(each) for each in zip(*asked, strict=True))
        ask = partial(divide, rows=rows, nodes=numbers, columns=columns, edges=edges)
        sides = self.blocks.reduce(ask, Sides.join)
        children: list[int] = []
        for k, (number, column, _) in enumerate(asked):
            node = self.nodes[number]
            node.reason, node.column = Reason.SPLIT, column
            node.threshold = threshold_between(float(sides.low[k]), float(sides.high[k]))
            node.children = (len(self.nodes), len(self.nodes) + 1)
            children += node.children
            for side in range(2):
                self.nodes.append(Node(node.depth + 1, sides.weights[k, side], sides.counts[k, side]))
        return children

    def _first_ranges(self, rows: Rows, numbers: list[int], found: list[Found]) -> list[Range]:
        """Count all rows of these nodes between the edges that the sample has in each column."""
        columns = self.blocks.n_columns
        edges = []
        for here in rows.by_node(self.sample, np.array(numbers)):
            some = self.sample[here].astype(np.float64)
            edges += [cuts(some[:, j], np.ones(here.size), self.bins) for j in range(columns)]
        whole = []
        for place, each in enumerate(found):
            none = np.zeros(self.classes), np.zeros(self.classes, dtype=np.int64)
            own = each.node.weights, each.node.counts
            whole += [Range(place, j, -np.inf, np.inf, none, own, -np.inf) for j in range(columns)]
        return self._counted(rows, numbers, found, whole, edges)

    def _counted(
        self, rows: Rows, numbers: list[int], found: list[Found], ranges: list[Range], edges: list[Array]
    ) -> list[Range]:
        """Count rows between edges in ranges, offer thresholds at the edges; return the ranges between."""
        ask = partial(count, rows=rows, bins=self._bins(numbers, ranges), edges=edges)
        weights, counts = self.blocks.reduce(ask, add)
        known = []
        start = 0
        for old, inside in zip(ranges, edges, strict=True):
            size = inside.size + 1
            own = weights[start : start + size], counts[start : start + size]
            left = old.before[0] + np.cumsum(own[0], axis=0), old.before[1] + np.cumsum(own[1], axis=0)
            found[old.place].offer(old.column, inside, left[0][:-1], left[1][:-1])
            before = tuple(np.concatenate([old.before[k][None], left[k][:-1]]) for k in range(2))
            known.append((before, own))
            start += size
        result: list[Range] = []
        for old, inside, (before, own) in zip(ranges, edges, known, strict=True):
            limits = np.concatenate([[old.low], inside, [old.high]])
            # Of one row, or of one number, there is nothing in between.
            held = own[1].sum(axis=1)
            places = np.flatnonzero((held > 1) & (np.nextafter(limits[:-1], np.inf) < limits[1:]))
            bounds = self._bounds(found[old.place], before[0][places], own[0][places])
            kept = found[old.place].may_hold(before[1][places].sum(axis=1), held[places], bounds)
            for k, bound in zip(places[kept].tolist(), bounds[kept].tolist(), strict=True):
                sums = (before[0][k], before[1][k]), (own[0][k], own[1][k])
                result.append(
                    Range(old.place, old.column, float(limits[k]), float(limits[k + 1]), *sums, bound)
                )
        return result

    def _bounds(self, found: Found, before: Array, own: Array) -> Array:
        """Return what S is not below between two edges, whatever is on which side."""
        criterion, whole = self.rules.criterion, found.node.weights
        least = parts(before, criterion) + parts(np.maximum(whole - before - own, 0.0), criterion)
        if self.classes > CORNERS:
            return least
        near = np.flatnonzero(least <= found.limit)
        corner = np.full(near.size, np.inf)
        for sides in product((0.0, 1.0), repeat=self.classes):
            left = before[near] + own[near] * np.array(sides)
            right = np.maximum(whole - left, 0.0)
            np.minimum(corner, parts(left, criterion) + parts(right, criterion), out=corner)
        least[near] = np.maximum(least[near], corner)
        return least

    def _promising(self, ranges: list[Range], found: list[Found]) -> list[Range]:
        """Return the ranges that may hold a threshold as good as the best, the most promising first."""
        kept = [
            each
            for each in ranges
            if found[each.place].may_hold(each.before[1].sum(), each.rows, each.bound).all()
        ]
        return sorted(kept, key=lambda each: each.bound / found[each.place].weight)

    def _bins(self, numbers: list[int], ranges: list[Range]) -> Bins:
        return Bins(
            np.array([numbers[each.place] for each in ranges]),
            np.array([each.column for each in ranges]),
            np.array([each.low for each in ranges]),
            np.array([each.high for each in ranges]),
        )

    def _refined(
        self, rows: Rows, numbers: list[int], found: list[Found], ranges: list[Range]
    ) -> list[Range]:
        """Look into the most promising ranges; return those that are still to be looked into."""
        large = ranges[0].rows > MOST_ROWS
        taken: list[int] = []
        size = 0
        most = SUBDIVIDED if large else max(MOST_ROWS, FETCHED // self.classes)
        for k, each in enumerate(ranges):
            if (each.rows > MOST_ROWS) != large:
                continue
            if taken and size + (1 if large else each.rows) > most:
                break
            taken.append(k)
            size += 1 if large else each.rows
        some = sorted((ranges[k] for k in taken), key=lambda each: (each.place, each.column, each.low))
        left = set(range(len(ranges))).difference(taken)
        rest = [ranges[k] for k in sorted(left)]
        if large:
            return rest + self._subdivided(rows, numbers, found, some)
        self._fetched(rows, numbers, found, some)
        return rest

    def _subdivided(
        self, rows: Rows, numbers: list[int], found: list[Found], ranges: list[Range]
    ) -> list[Range]:
        """Put edges into ranges with many rows."""
        seen = self.blocks.reduce(partial(sketch, rows=rows, bins=self._bins(numbers, ranges)), Sketch.join)
        kept, edges = [], []
        for k, each in enumerate(ranges):
            own = seen.number == k
            values = seen.value[own]
            if values.min() < values.max():
                inside = cuts(values, seen.mass[own], self.bins)
                kept.append(each)
                edges.append(inside[(inside > each.low) & (inside < each.high)])
        return self._counted(rows, numbers, found, kept, edges) if kept else []

    def _fetched(self, rows: Rows, numbers: list[int], found: list[Found], ranges: list[Range]) -> None:
        """Offer all thresholds inside these ranges."""
        values = self.blocks.reduce(partial(fetch, rows=rows, bins=self._bins(numbers, ranges)), Values.join)
        ends = np.searchsorted(values.number, np.arange(len(ranges) + 1))
        for k, each in enumerate(ranges):
            own = slice(ends[k], ends[k + 1])
            different, place = np.unique(values.value[own], return_inverse=True)
            at = place.reshape(-1), values.label[own]
            weights = np.zeros((different.size, self.classes))
            counts = np.zeros((different.size, self.classes), dtype=np.int64)
            weights[at], counts[at] = values.weight[own], values.rows[own]
            left = np.cumsum(weights, axis=0) + each.before[0], np.cumsum(counts, axis=0) + each.before[1]
            # The last value is at the edge, which was offered.
            found[each.place].offer(each.column, different[:-1], left[0][:-1], left[1][:-1])

    # -- small nodes -----------------------------------------------------------------------------------------

    def _grow_here(self, small: list[int], budget: Budget) -> None:
        """Bring the rows of small nodes here, a batch at a time, and grow what is below them."""
        most = max(FEW_ROWS, BATCH // self.blocks.n_columns)
        batch: list[int] = []
        for number in small:
            if batch and sum(self.nodes[k].rows for k in batch) + self.nodes[number].rows > most:
                self._grow_batch(batch, budget)
                batch = []
            batch.append(number)
        if batch:
            self._grow_batch(batch, budget)

    def _grow_batch(self, numbers: list[int], budget: Budget) -> None:
        given = self.blocks.reduce(partial(gather, rows=self._rows(), nodes=np.array(numbers)), Gathered.join)
        kinds = np.zeros(self.blocks.n_columns, dtype=np.uint8)
        weighted = bool((given.weight != 1.0).any())
        for number in numbers:
            node, own = self.nodes[number], np.flatnonzero(given.at == number)
            weight = given.weight[own] if weighted else None
            X = np.ascontiguousarray(given.X[own])
            rows = TrainingRows(X, kinds, given.labels[own], self.classes, weight)
            node.below = grow(rows, self._rules_below(node), budget)

    def _rules_below(self, node: Node) -> GrowthRules:
        """Return the rules of a tree whose root this node is."""
        rules = self.rules
        share = self.whole_weight / float(node.weights.sum())
        return replace(
            rules,
            max_depth=None if rules.max_depth is None else rules.max_depth - node.depth,
            # The native loops count gains in the weight of their root, and TIE as well.
            min_impurity_decrease=(rules.min_impurity_decrease - TIE) * share + TIE,
        )

    # -- the tree --------------------------------------------------------------------------------------------

    def _finished(self) -> FittedTree:
        """Return the tree with its nodes depth first."""
        columns: dict[str, list[Any]] = {"column": [], "threshold": [], "reason": [], "rows": []}
        totals: list[Array] = []
        pairs: dict[int, list[int]] = {}
        stack: list[tuple[int, int]] = [(0, NO_NODE)]
        while stack:
            number, above = stack.pop()
            node, at = self.nodes[number], len(totals)
            if above != NO_NODE:
                pairs[above].append(at)
            if node.below is not None:
                tree = node.below
                for name in columns:
                    columns[name] += getattr(tree, name).tolist()
                totals += list(tree.totals)
                for k in np.flatnonzero(~tree.is_leaf).tolist():
                    first = int(tree.first[k])
                    pairs[at + k] = (tree.child[first : first + 2] + at).tolist()
                continue
            reason = Reason.STOPPED if node.reason is None and self._is_open(number) else node.reason
            assert reason is not None
            columns["column"].append(node.column)
            columns["threshold"].append(node.threshold)
            columns["reason"].append(int(reason))
            columns["rows"].append(node.rows)
            totals.append(node.weights)
            if node.children:
                pairs[at] = []
                stack += [(child, at) for child in reversed(node.children)]
        split = np.zeros(len(totals), dtype=bool)
        split[list(pairs)] = True
        child = [each for at in sorted(pairs) for each in pairs[at]]
        return FittedTree(
            kinds=np.zeros(self.blocks.n_columns, dtype=np.uint8),
            column=np.array(columns["column"], dtype=np.int32),
            threshold=np.array(columns["threshold"], dtype=np.float64),
            first=np.concatenate([[0], np.cumsum(2 * split)]).astype(np.int64),
            code=np.tile(np.array([0, 1], dtype=np.int32), len(pairs)),
            child=np.array(child, dtype=np.int32),
            unknown=np.full(len(totals), NO_NODE, dtype=np.int32),
            reason=np.array(columns["reason"], dtype=np.uint8),
            rows=np.array(columns["rows"], dtype=np.int64),
            totals=np.array(totals, dtype=np.float64).reshape(len(totals), self.classes),
            criterion=self.rules.criterion,
        )


def sampled_every(rows: int) -> int:
    """Return how many rows there are to each one of the sample."""
    return max(1, -(-rows // SAMPLED))


def unit_of(beginning: Beginning) -> int:
    """Return the exponent of the power of two next to the mean of the weights above 0, as in memory."""
    exponent = int(np.frexp(beginning.largest)[1])
    total = float(np.ldexp(beginning.weights, -exponent).sum())
    return exponent + round(math.log2(total / int(beginning.counts.sum())))
