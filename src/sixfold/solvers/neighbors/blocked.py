"""Exact search of rows in a file: they are read once from front to back, some at a time, past all queries.

    nearest of all rows    the k least by (distance, row number) of the nearest of each block
    within a radius        those of each block, one block after the other

A block is searched as if it were all rows, by a search that is made for it and given up after it: what is in
memory at a time is a block, what its search makes of it, and the answers so far. Which search, the number of
queries decides:

few queries                       a scan, which prepares nothing
many, and few columns             a k-d tree of the block
others                            as for rows in memory, bounds from products or projections

A distance does not depend on the rows that stand beside it, so the answer is that of all rows at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.data.blocks import let_go, mapping_of, rows_of
from sixfold.geometry.distances import Distance, Learned, Precomputed
from sixfold.solvers.neighbors.kd_tree import KdTree
from sixfold.solvers.neighbors.pairwise import PairwiseSearch
from sixfold.solvers.neighbors.projected import SAMPLE, ProductSearch, ProjectedSearch, dense_projection
from sixfold.solvers.neighbors.scan import ByteSearch, ScanSearch
from sixfold.solvers.neighbors.search import Neighbors, RadiusNeighbors, Search, require_time

Array = NDArray[Any]

STREAMED_BYTES = 1 << 29  # of a table in a file, beyond which no copy of it is made in memory
BLOCK_BYTES = 1 << 27  # of rows at a time
# Of 550,000 x 30 rows a scan answers 8 queries in the time that packing them for products takes; of
# 3,000,000 x 5 a tree is built in the time that products take for 2,000 queries.
FEW_QUERIES, MANY_QUERIES = 8, 1 << 11
SAMPLED_RUNS, RUN = 64, 256  # rows that stand for all; of pages that come from a file, few are read


def is_streamed(X: Any) -> bool:
    """Return whether rows are searched in the file they are mapped from."""
    return isinstance(X, np.ndarray) and X.nbytes > STREAMED_BYTES and mapping_of(X) is not None


class BlockedSearch:
    """Rows of a table that is read block by block.

    Parameters
    ----------
    X : ndarray of shape (rows, columns)
        As they were given, C-contiguous; kept, not copied.
    distance : Distance
        Any but that of precomputed distances.
    kept : ndarray of int64 or None
        The rows that may be neighbours, in order; the search numbers these. None for all.
    tree : bool
        Whether k-d trees suit the columns and the measure.
    leaf_size : int
        Rows in a leaf of a tree.
    block_bytes : int

    Examples
    --------
    >>> from sixfold.geometry.distances import make_distance
    >>> X = np.array([[0.0], [2.0], [9.0], [1.0], [1.0]])
    >>> search = BlockedSearch(X, make_distance("euclidean", X), block_bytes=16)
    >>> search.nearest(np.array([[1.5]]), 3, Budget()).rows
    array([[1, 3, 4]])
    """

    name: ClassVar[str] = "blocks of rows"

    def __init__(
        self,
        X: Array,
        distance: Distance,
        kept: Array | None = None,
        tree: bool = False,
        leaf_size: int = 32,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        if isinstance(distance, Precomputed):
            raise TypeError("precomputed distances are those of queries, not of rows")
        self.X, self.distance, self.kept = X, distance, kept
        self.tree, self.leaf_size = tree, leaf_size
        self.rows_per_block = max(block_bytes // max(X.shape[1] * X.itemsize, 1), 1)
        measure = distance.measure
        if isinstance(distance, Learned) or (measure is not None and measure.family == "power"):
            for _, rows in self._blocks():  # where numbers are too large for the distance, fits say so
                distance.embed(rows)
        self.projection = None
        if measure is not None and measure.family == "squares" and len(X):
            some = rows_of(X, np.arange(0, len(X), max(1, len(X) // (8 * SAMPLE))))
            self.projection = dense_projection(np.ascontiguousarray(distance.embed(some)), measure)

    def _blocks(self) -> Iterator[tuple[int, Array]]:
        """Give the rows that may be neighbours, some at a time, with the number of the first."""
        mapping, n = mapping_of(self.X), len(self.X) if self.kept is None else self.kept.size
        for start in range(0, n, self.rows_per_block):
            some = slice(start, min(start + self.rows_per_block, n))
            if self.kept is None:
                yield start, self.X[some]
                read = some
            else:
                yield start, self.X[self.kept[some]]
                read = slice(int(self.kept[start]), int(self.kept[some.stop - 1]) + 1)
            if mapping is not None:
                let_go(mapping, self.X, read)

    def sampled(self) -> tuple[Search, int]:
        """Return a search of some rows that lie all over the table, and how many there are."""
        n = len(self.X) if self.kept is None else self.kept.size
        begins = np.unique(np.linspace(0, max(n - RUN, 0), SAMPLED_RUNS).astype(np.int64))
        some = np.unique((begins[:, None] + np.arange(min(RUN, n))).ravel())
        return self._search(rows_of(self.X, some if self.kept is None else self.kept[some]), 1), some.size

    def _search(self, rows: Array, queries: int) -> Search:
        """Return the search of one block that suits this many queries."""
        measure = self.distance.measure
        if measure is None:
            return PairwiseSearch(rows, self.distance)
        rows = np.ascontiguousarray(self.distance.embed(rows))
        if self.tree and queries >= MANY_QUERIES:
            return KdTree(rows, measure, self.leaf_size)
        if queries >= FEW_QUERIES and measure.family == "squares":
            if self.projection is not None:
                return ProjectedSearch(rows, measure, self.projection)
            return ProductSearch(rows, measure)
        if queries >= FEW_QUERIES and measure.family == "absolute" and rows.dtype == np.uint8:
            return ByteSearch(rows, measure)
        return ScanSearch(rows, measure)

    def nearest(self, queries: Array, k: int, budget: Budget) -> Neighbors:
        """Return the k nearest rows of each query; 1 <= k <= rows."""
        far: Array = np.empty((len(queries), 0))
        numbers: Array = np.empty((len(queries), 0), dtype=np.int64)
        computed = 0
        for start, rows in self._blocks():
            found = self._search(rows, len(queries)).nearest(queries, min(k, len(rows)), budget)
            far = np.concatenate([far, found.distances], axis=1)
            numbers = np.concatenate([numbers, found.rows + start], axis=1)
            # Stable: of equal distances those of earlier rows stand first.
            order = np.argsort(far, axis=1, kind="stable")[:, :k]
            far, numbers = (np.take_along_axis(part, order, axis=1) for part in (far, numbers))
            computed += found.computed
            require_time(budget)
        return Neighbors(far, numbers, computed)

    def within(self, queries: Array, radius: float, budget: Budget) -> RadiusNeighbors:
        """Return the rows of each query whose distance is at most the radius."""
        parts, computed = [], 0
        for start, rows in self._blocks():
            found = self._search(rows, len(queries)).within(queries, radius, budget)
            parts.append((np.diff(found.ends), found.distances, found.rows + start))
            computed += found.computed
            require_time(budget)
        return _one_after_the_other(parts, len(queries), computed)


def _one_after_the_other(
    parts: list[tuple[Array, Array, Array]], queries: int, computed: int
) -> RadiusNeighbors:
    """Return what the blocks have found: how many rows of each query, their distances and numbers."""
    counts = np.array([part[0] for part in parts], dtype=np.int64).reshape(len(parts), queries)
    ends = np.concatenate([[0], np.cumsum(counts.sum(axis=0))])
    distances, rows = np.empty(ends[-1]), np.empty(ends[-1], dtype=np.int64)
    begin = ends[:-1].copy()  # of what the next block has found
    for of_query, far, numbers in parts:
        first = np.cumsum(of_query) - of_query
        place = np.arange(far.size) + np.repeat(begin - first, of_query)
        distances[place], rows[place] = far, numbers
        begin += of_query
    return RadiusNeighbors(ends, distances, rows, computed)
