"""The search for distances that no loop knows: all of them are computed, some queries at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.geometry.distances import Distance
from sixfold.solvers.neighbors.search import (
    Neighbors,
    RadiusNeighbors,
    collect_nearest,
    collect_within,
    require_time,
)

Array = NDArray[Any]

DISTANCES_AT_ONCE = 1 << 20  # in a matrix of 8 MB, of which a formula may need several
TERMS_BETWEEN_LOOKS = 1 << 24  # at the clock: about 0.1 s


@dataclass(frozen=True)
class PairwiseSearch:
    """Training rows and a distance that computes itself.

    >>> from sixfold.geometry.distances import make_distance
    >>> X = np.array([[0.0], [np.nan], [2.0]])
    >>> search = PairwiseSearch(X, make_distance("nan_euclidean", X))
    >>> search.nearest(np.array([[0.5]]), 2, Budget()).rows
    array([[0, 2]])
    """

    name: ClassVar[str] = "pairwise"

    X: Any
    distance: Distance

    def _chunk_size(self) -> int:
        """Return how many queries to answer at a time."""
        n, columns = self.X.shape
        return max(
            min(DISTANCES_AT_ONCE // n, TERMS_BETWEEN_LOOKS // (n * max(self.distance.work(columns), 1))), 1
        )

    def _distances(self, queries: Any, budget: Budget) -> Array:
        """Return all distances; some rows at a time where those of a single query take long."""
        n, columns = self.X.shape
        block = max(TERMS_BETWEEN_LOOKS // max(self.distance.work(columns), 1), 1)
        if block >= n:
            return self.distance.between(queries, self.X)
        parts = []
        for start in range(0, n, block):
            require_time(budget)
            parts.append(self.distance.between(queries, self.X[start : start + block]))
        return np.concatenate(parts, axis=1)

    def nearest(self, queries: Any, k: int, budget: Budget) -> Neighbors:
        """Return the k nearest rows of each query."""

        def search(chunk: slice, distances: Array, rows: Array) -> int:
            found = self._distances(queries[chunk], budget)
            rows[:] = [_first(row, k) for row in found]
            distances[:] = np.take_along_axis(found, rows, axis=1)
            return found.size

        return collect_nearest(queries.shape[0], k, self._chunk_size(), budget, search)

    def within(self, queries: Any, radius: float, budget: Budget) -> RadiusNeighbors:
        """Return the rows of each query whose distance is at most the radius."""

        def search(chunk: slice) -> tuple[int, Array, Array, Array]:
            found = self._distances(queries[chunk], budget)
            near = found <= radius
            return found.size, near.sum(axis=1), found[near], np.nonzero(near)[1]

        return collect_within(queries.shape[0], self._chunk_size(), budget, search)


def _first(distances: Array, k: int) -> Array:
    """Return the places of the k smallest, equal ones by place."""
    if k < distances.size:
        limit = np.partition(distances, k - 1)[k - 1]
        places = np.flatnonzero(distances <= limit)
    else:
        places = np.arange(distances.size)
    return places[np.argsort(distances[places], kind="stable")[:k]]
