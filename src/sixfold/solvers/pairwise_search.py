"""The search for distances that no loop knows: all of them are computed, some queries at a time."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.geometry.distances import Distance
from sixfold.solvers.neighbour_search import Neighbours, Surroundings, join, portions

Array = NDArray[Any]

ENTRIES = 1 << 20  # of a matrix of distances: 8 MB, of which a formula may need several
WORK = 1 << 24  # terms between two looks at the clock: about 0.1 s


class PairwiseSearch:
    """Training rows and a distance that computes itself.

    >>> from sixfold.geometry.distances import make_distance
    >>> X = np.array([[0.0], [np.nan], [2.0]])
    >>> search = PairwiseSearch(X, make_distance("nan_euclidean", X))
    >>> search.nearest(np.array([[0.5]]), 2, Budget()).rows
    array([[0, 2]])
    """

    name: ClassVar[str] = "pairwise"

    def __init__(self, X: Any, distance: Distance) -> None:
        self.X, self.distance = X, distance

    def _at_once(self) -> int:
        """Return how many queries to answer at a time."""
        n, columns = self.X.shape
        return max(min(ENTRIES // n, WORK // (n * max(self.distance.work(columns), 1))), 1)

    def nearest(self, queries: Any, k: int, budget: Budget) -> Neighbours:
        """Return the k nearest rows of each query."""
        parts = [Neighbours(np.empty((0, k)), np.empty((0, k), dtype=np.int64), 0)]
        for part in portions(queries.shape[0], self._at_once(), budget):
            distances = self.distance.between(queries[part], self.X)
            rows = np.array([_first(row, k) for row in distances], dtype=np.int64)
            parts.append(Neighbours(np.take_along_axis(distances, rows, axis=1), rows, distances.size))
        return join(parts)

    def within(self, queries: Any, radius: float, budget: Budget) -> Surroundings:
        """Return the rows of each query whose distance is at most the radius."""
        n, counts = self.X.shape[0], [np.zeros(1, dtype=np.int64)]
        distances, rows = [np.empty(0)], [np.empty(0, dtype=np.int64)]
        for part in portions(queries.shape[0], self._at_once(), budget):
            found = self.distance.between(queries[part], self.X)
            near = found <= radius
            counts.append(near.sum(axis=1))
            distances.append(found[near])
            rows.append(np.nonzero(near)[1])
        ends = np.cumsum(np.concatenate(counts))
        return Surroundings(ends, np.concatenate(distances), np.concatenate(rows), queries.shape[0] * n)


def _first(distances: Array, k: int) -> Array:
    """Return the places of the k smallest, equal ones by place."""
    if k < distances.size:
        limit = np.partition(distances, k - 1)[k - 1]
        places = np.flatnonzero(distances <= limit)
    else:
        places = np.arange(distances.size)
    return places[np.argsort(distances[places], kind="stable")[:k]]
