"""Search in sparse rows by measures other than squares: some rows at a time are written out and scanned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.geometry.measure import Measure
from sixfold.solvers.neighbour_search import Neighbours, Surroundings, join, portions
from sixfold.solvers.scan_search import ScanSearch

Array = NDArray[Any]

NUMBERS = 1 << 22  # of a block that is written out: 32 MB


class SparseScan:
    """Sparse training rows that are scanned block by block.

    Parameters
    ----------
    X : CSR array of shape (rows, columns)
        Kept, not copied.
    measure : Measure
        Of any family.
    """

    name: ClassVar[str] = "scan of sparse rows"

    def __init__(self, X: Any, measure: Measure) -> None:
        self.X, self.measure = X, measure

    def nearest(self, queries: Any, k: int, budget: Budget) -> Neighbours:
        """Return the k nearest rows of each query."""
        parts = [Neighbours(np.empty((0, k)), np.empty((0, k), dtype=np.int64), 0)]
        for part in portions(queries.shape[0], self._many(), budget):
            asked = queries[part].toarray()
            near = Neighbours(np.empty((len(asked), 0)), np.empty((len(asked), 0), dtype=np.int64), 0)
            for start, block in self._blocks():
                near = _merged(near, block.nearest(asked, min(k, len(block.X)), budget), start, k)
            parts.append(near)
        return join(parts)

    def within(self, queries: Any, radius: float, budget: Budget) -> Surroundings:
        """Return the rows of each query whose distance is at most the radius."""
        counts, distances, rows, computed = [np.zeros(1, dtype=np.int64)], [np.empty(0)], [], 0
        rows.append(np.empty(0, dtype=np.int64))
        for part in portions(queries.shape[0], self._many(), budget):
            asked, query = queries[part].toarray(), np.empty(0, dtype=np.int64)
            there = [(query, np.empty(0), np.empty(0, dtype=np.int64))]
            for start, block in self._blocks():
                found = block.within(asked, radius, budget)
                owner = np.repeat(np.arange(len(asked)), np.diff(found.ends))
                there.append((owner, found.distances, found.rows + start))
                computed += found.computed
            query, far, number = (np.concatenate(column) for column in zip(*there, strict=True))
            order = np.lexsort((number, query))
            counts.append(np.bincount(query, minlength=len(asked)))
            distances.append(far[order])
            rows.append(number[order])
        ends = np.cumsum(np.concatenate(counts))
        return Surroundings(ends, np.concatenate(distances), np.concatenate(rows), computed)

    def _many(self) -> int:
        """Return how many rows are written out at a time."""
        return max(NUMBERS // max(self.X.shape[1], 1), 1)

    def _blocks(self) -> Iterator[tuple[int, ScanSearch]]:
        """Go through the rows, written out, each block with the number of its first row."""
        for start in range(0, self.X.shape[0], self._many()):
            yield start, ScanSearch(self.X[start : start + self._many()].toarray(), self.measure)


def _merged(near: Neighbours, more: Neighbours, start: int, k: int) -> Neighbours:
    """Return the k nearest of two answers, of which the second is of rows that come later."""
    distances = np.concatenate([near.distances, more.distances], axis=1)
    rows = np.concatenate([near.rows, more.rows + start], axis=1)
    # Stable: of equal distances those of earlier rows stand first in both.
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return Neighbours(
        np.take_along_axis(distances, order, axis=1),
        np.take_along_axis(rows, order, axis=1),
        near.computed + more.computed,
    )
