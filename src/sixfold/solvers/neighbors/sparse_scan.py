"""Search in sparse rows by measures other than squares: some rows at a time are written out and scanned.

Sums of absolute differences come from scikit-learn's loop over what is there, and only rows whose sum is
among the least, rounding considered, are written out: of 5,000 rows of 50,000 columns 1% of the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.geometry.distances.measure import Measure
from sixfold.solvers.neighbors.scan import ScanSearch
from sixfold.solvers.neighbors.search import Neighbours, Surroundings, answer, surround

Array = NDArray[Any]

NUMBERS = 1 << 22  # of a block that is written out: 32 MB
ENTRIES = 1 << 20  # of a matrix of distances: 8 MB


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
        if self.measure.family == "absolute":
            return self._nearest_sums(queries, k, budget)

        def ask(part: slice, distances: Array, rows: Array) -> int:
            asked, computed = queries[part].toarray(), 0
            far: Array = np.empty((len(asked), 0))
            numbers: Array = np.empty((len(asked), 0), dtype=np.int64)
            for start, block in self._blocks():
                found = block.nearest(asked, min(k, len(block.X)), budget)
                far = np.concatenate([far, found.distances], axis=1)
                numbers = np.concatenate([numbers, found.rows + start], axis=1)
                # Stable: of equal distances those of earlier rows stand first.
                order = np.argsort(far, axis=1, kind="stable")[:, :k]
                far, numbers = (np.take_along_axis(part, order, axis=1) for part in (far, numbers))
                computed += found.computed
            distances[:], rows[:] = far, numbers
            return computed

        return answer(queries.shape[0], k, self._many(), budget, ask)

    def _nearest_sums(self, queries: Any, k: int, budget: Budget) -> Neighbours:
        """Return the k nearest by sums of absolute differences, whose first guesses are right to 1e-9."""
        from sklearn.metrics.pairwise import manhattan_distances

        def ask(part: slice, distances: Array, rows: Array) -> int:
            some, computed = queries[part], 0
            for i, sums in enumerate(manhattan_distances(some, self.X)):
                near = np.flatnonzero(sums <= np.partition(sums, k - 1)[k - 1] * (1.0 + 1e-9))
                block = ScanSearch(self.X[near].toarray(), self.measure)
                found = block.nearest(some[i : i + 1].toarray(), k, budget)
                distances[i], rows[i] = found.distances[0], near[found.rows[0]]
                computed += near.size
            return computed

        return answer(queries.shape[0], k, max(ENTRIES // self.X.shape[0], 1), budget, ask)

    def within(self, queries: Any, radius: float, budget: Budget) -> Surroundings:
        """Return the rows of each query whose distance is at most the radius."""

        def ask(part: slice) -> tuple[int, Array, Array, Array]:
            asked, computed, there = queries[part].toarray(), 0, []
            for start, block in self._blocks():
                found = block.within(asked, radius, budget)
                query = np.repeat(np.arange(len(asked)), np.diff(found.ends))
                there.append((query, found.distances, found.rows + start))
                computed += found.computed
            query, distances, rows = (np.concatenate(column) for column in zip(*there, strict=True))
            order = np.lexsort((rows, query))
            return computed, np.bincount(query, minlength=len(asked)), distances[order], rows[order]

        return surround(queries.shape[0], self._many(), budget, ask)

    def _many(self) -> int:
        """Return how many rows are written out at a time."""
        return max(NUMBERS // max(self.X.shape[1], 1), 1)

    def _blocks(self) -> Iterator[tuple[int, ScanSearch]]:
        """Go through the rows, written out, each block with the number of its first row."""
        for start in range(0, self.X.shape[0], self._many()):
            yield start, ScanSearch(self.X[start : start + self._many()].toarray(), self.measure)
