"""The searches that go through all training rows: for every measure, one for bytes, and one for sparse rows.

:class:`ScanSearch` adds up each row's terms in plain arithmetic and gives the row up as soon as their sum,
rounding considered, is too large for it to be among the nearest; the others are measured by definition
(``native/neighbors/scan/scan_search.hpp`` has the proof). Nothing is prepared, so this is the search for
small data and for measures that no bound knows. :class:`ByteSearch` knows one for Manhattan distances of
bytes. :class:`SparseScan` writes sparse rows out, some at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.geometry.distances.base import Measure
from sixfold.solvers.neighbors.search import Neighbors, RadiusNeighbors, collect_nearest, collect_within

Array = NDArray[Any]

CHUNK_NUMBERS = 1 << 21  # that the queries of a chunk, or the answers to them, hold: 16 MB
CORRELATED_COLUMNS = 2048  # up to which all correlations are computed: 16 MB
SINGLE_PRECISION_COLUMNS = 1 << 19  # up to which sums of floats are worth something
BLOCK_NUMBERS = 1 << 22  # of sparse rows that are written out at a time: 32 MB
DISTANCES_AT_ONCE = 1 << 20  # in a matrix of 8 MB


@dataclass(frozen=True)
class ScanSearch:
    """All rows, one after the other; ``computed`` counts those whose terms were all added up.

    Parameters
    ----------
    X : ndarray of float64, float32 or uint8, C-contiguous, shape (rows, columns)
    measure : Measure

    Examples
    --------
    >>> search = ScanSearch(np.array([[0.0, 0.0], [3.0, 4.0], [1.0, 0.0]]), Measure("absolute"))
    >>> search.nearest(np.array([[1.0, 1.0]]), 2, Budget()).rows
    array([[2, 0]])
    """

    name: ClassVar[str] = "scan"

    X: Array
    measure: Measure

    def nearest(self, queries: Array, k: int, budget: Budget) -> Neighbors:
        """Return the k nearest rows of each query."""

        def search(chunk: slice, distances: Array, rows: Array) -> int:
            pair = self._prepared(queries[chunk])
            return core.scan_nearest(self.X, *pair, distances, rows, *self.measure, *_limits(budget))

        return collect_nearest(len(queries), k, _chunk_size(self.X, k), budget, search)

    def within(self, queries: Array, radius: float, budget: Budget) -> RadiusNeighbors:
        """Return the rows of each query whose distance is at most the radius."""

        def search(chunk: slice) -> tuple[int, Array, Array, Array]:
            pair = self._prepared(queries[chunk])
            return _counted(core.scan_within(self.X, *pair, radius, *self.measure, *_limits(budget)))

        return collect_within(len(queries), _chunk_size(self.X, 1), budget, search)

    def _prepared(self, queries: Array) -> tuple[Array, Array]:
        """Return the queries as doubles, and as what plain sums are computed in."""
        exact = np.ascontiguousarray(queries, dtype=np.float64)
        if self.X.dtype == np.float64 or self.X.shape[1] > SINGLE_PRECISION_COLUMNS:
            return exact, exact
        with np.errstate(over="ignore"):
            single = exact.astype(np.float32)
        # Where a query is no float, its differences could lose all their digits.
        return exact, single if np.array_equal(single, exact) else exact


class ByteSearch:
    """Manhattan distances of rows of bytes, most of them ruled out by sums over groups of columns.

    For any groups G of columns, sum_j |x_j - q_j| >= sum_G |sum_(j in G) x_j - sum_(j in G) q_j|. Columns
    that move together are grouped, so that differences within a group seldom cancel; one byte a group is
    kept. ``computed`` counts the distances that were not ruled out.

    Parameters
    ----------
    X : ndarray of uint8, C-contiguous, shape (rows, columns)
    measure : Measure
        Of the family "absolute".
    """

    name: ClassVar[str] = "byte sums"

    def __init__(self, X: Array, measure: Measure) -> None:
        rows, columns = X.shape
        groups = 8 * -(-columns // 128)  # of 16 columns or fewer, in eights, as the processor adds them up
        self.X = X
        self.measure = measure
        self.group_size = -(-columns // groups)
        self.order = _correlated_groups(X, self.group_size)
        self.tiles = np.empty((-(-rows // 32) * 32, groups), dtype=np.uint8)
        core.byte_group_sums(X, self.order, self.group_size, self.tiles)

    def nearest(self, queries: Array, k: int, budget: Budget) -> Neighbors:
        """Return the k nearest rows of each query."""
        whole = _as_bytes(queries)
        if whole is None:
            return ScanSearch(self.X, self.measure).nearest(queries, k, budget)

        def search(chunk: slice, distances: Array, rows: Array) -> int:
            return core.byte_nearest(*self._index, whole[chunk], distances, rows, *_limits(budget))

        return collect_nearest(len(queries), k, _chunk_size(self.X, k), budget, search)

    def within(self, queries: Array, radius: float, budget: Budget) -> RadiusNeighbors:
        """Return the rows of each query whose distance is at most the radius."""
        whole = _as_bytes(queries)
        if whole is None:
            return ScanSearch(self.X, self.measure).within(queries, radius, budget)

        def search(chunk: slice) -> tuple[int, Array, Array, Array]:
            return _counted(core.byte_within(*self._index, whole[chunk], radius, *_limits(budget)))

        return collect_within(len(queries), _chunk_size(self.X, 1), budget, search)

    @property
    def _index(self) -> tuple[Any, ...]:
        return self.X, self.tiles, self.order, self.group_size


@dataclass(frozen=True)
class SparseScan:
    """Sparse training rows that are written out and scanned block by block.

    Sums of absolute differences come from scikit-learn's loop over what is there, and only rows whose sum is
    among the least, rounding considered, are written out: of 5,000 rows of 50,000 columns 1% of the time.

    Parameters
    ----------
    X : CSR array of shape (rows, columns)
        Kept, not copied.
    measure : Measure
        Of any family.
    """

    name: ClassVar[str] = "scan of sparse rows"

    X: Any
    measure: Measure

    def nearest(self, queries: Any, k: int, budget: Budget) -> Neighbors:
        """Return the k nearest rows of each query."""
        if self.measure.family == "absolute":
            return self._nearest_sums(queries, k, budget)

        def search(chunk: slice, distances: Array, rows: Array) -> int:
            dense, computed = queries[chunk].toarray(), 0
            far: Array = np.empty((len(dense), 0))
            numbers: Array = np.empty((len(dense), 0), dtype=np.int64)
            for start, block in self._blocks():
                found = block.nearest(dense, min(k, len(block.X)), budget)
                far = np.concatenate([far, found.distances], axis=1)
                numbers = np.concatenate([numbers, found.rows + start], axis=1)
                # Stable: of equal distances those of earlier rows stand first.
                order = np.argsort(far, axis=1, kind="stable")[:, :k]
                far, numbers = (np.take_along_axis(part, order, axis=1) for part in (far, numbers))
                computed += found.computed
            distances[:], rows[:] = far, numbers
            return computed

        return collect_nearest(queries.shape[0], k, self._block_rows(), budget, search)

    def _nearest_sums(self, queries: Any, k: int, budget: Budget) -> Neighbors:
        """Return the k nearest by sums of absolute differences, whose first guesses are right to 1e-9."""
        from sklearn.metrics.pairwise import manhattan_distances

        def search(chunk: slice, distances: Array, rows: Array) -> int:
            some, computed = queries[chunk], 0
            for i, sums in enumerate(manhattan_distances(some, self.X)):
                near = np.flatnonzero(sums <= np.partition(sums, k - 1)[k - 1] * (1.0 + 1e-9))
                block = ScanSearch(self.X[near].toarray(), self.measure)
                found = block.nearest(some[i : i + 1].toarray(), k, budget)
                distances[i], rows[i] = found.distances[0], near[found.rows[0]]
                computed += near.size
            return computed

        return collect_nearest(
            queries.shape[0], k, max(DISTANCES_AT_ONCE // self.X.shape[0], 1), budget, search
        )

    def within(self, queries: Any, radius: float, budget: Budget) -> RadiusNeighbors:
        """Return the rows of each query whose distance is at most the radius."""

        def search(chunk: slice) -> tuple[int, Array, Array, Array]:
            dense, computed, parts = queries[chunk].toarray(), 0, []
            for start, block in self._blocks():
                found = block.within(dense, radius, budget)
                query = np.repeat(np.arange(len(dense)), np.diff(found.ends))
                parts.append((query, found.distances, found.rows + start))
                computed += found.computed
            query, distances, rows = (np.concatenate(column) for column in zip(*parts, strict=True))
            order = np.lexsort((rows, query))
            return computed, np.bincount(query, minlength=len(dense)), distances[order], rows[order]

        return collect_within(queries.shape[0], self._block_rows(), budget, search)

    def _block_rows(self) -> int:
        """Return how many rows are written out at a time."""
        return max(BLOCK_NUMBERS // max(self.X.shape[1], 1), 1)

    def _blocks(self) -> Iterator[tuple[int, ScanSearch]]:
        """Go through the rows, written out, each block with the number of its first row."""
        for start in range(0, self.X.shape[0], self._block_rows()):
            yield start, ScanSearch(self.X[start : start + self._block_rows()].toarray(), self.measure)


def _chunk_size(X: Array, k: int) -> int:
    return max(1, CHUNK_NUMBERS // max(X.shape[1], k))


def _limits(budget: Budget) -> tuple[Any, ...]:
    return budget.seconds_left, budget.flag


def _counted(found: tuple[int, Array, Array, Array]) -> tuple[int, Array, Array, Array]:
    """Return what a loop has found with the number of rows of each query instead of their ends."""
    computed, ends, distances, rows = found
    return computed, np.diff(ends), distances, rows


def _as_bytes(queries: Array) -> Array | None:
    """Return the queries as bytes, or None if they are none."""
    if queries.dtype == np.uint8:
        return np.ascontiguousarray(queries)
    if queries.size and (queries.min() < 0 or queries.max() > 255):
        return None
    whole = queries.astype(np.uint8)
    return whole if np.array_equal(whole, queries) else None


def _correlated_groups(X: Array, size: int) -> Array:
    """Return the columns in an order in which each ``size`` neighbours are highly correlated.

    Greedily: a group begins with the column that varies most, and takes the one with the largest sum of
    correlations with those in it until it is full. On 60,000 images of 784 pixels this left 2.3% of the
    distances to be computed where groups of neighbouring columns left 5%.
    """
    columns = X.shape[1]
    if columns > CORRELATED_COLUMNS:
        return np.arange(columns)
    some = X[:: max(1, len(X) // 500)].astype(np.float32)
    some -= some.mean(axis=0)
    deviation = np.sqrt(np.einsum("ij,ij->j", some, some))
    some /= np.maximum(deviation, np.float32(1e-6))
    correlations = some.T @ some
    order = np.empty(columns, dtype=np.int64)
    free = np.zeros(columns, dtype=np.float32)  # minus infinity where a column is taken
    for place in range(columns):
        if place % size == 0:
            total = free + deviation
        chosen = int(np.argmax(total))
        order[place] = chosen
        if place % size == 0:
            total = free.copy()
        free[chosen] = total[chosen] = -np.inf
        total += correlations[chosen]
    return order
