"""The search for distances that no loop knows: all of them are computed, some queries at a time."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.geometry.distances import Distance
from sixfold.solvers.neighbors.search import Neighbours, Surroundings, answer, proceed, surround

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

    def _distances(self, queries: Any, budget: Budget) -> Array:
        """Return all distances; some rows at a time where those of a single query take long."""
        n, columns = self.X.shape
        block = max(WORK // max(self.distance.work(columns), 1), 1)
        if block >= n:
            return self.distance.between(queries, self.X)
        parts = []
        for start in range(0, n, block):
            proceed(budget)
            parts.append(self.distance.between(queries, self.X[start : start + block]))
        return np.concatenate(parts, axis=1)

    def nearest(self, queries: Any, k: int, budget: Budget) -> Neighbours:
        """Return the k nearest rows of each query."""

        def ask(part: slice, distances: Array, rows: Array) -> int:
            found = self._distances(queries[part], budget)
            rows[:] = [_first(row, k) for row in found]
            distances[:] = np.take_along_axis(found, rows, axis=1)
            return found.size

        return answer(queries.shape[0], k, self._at_once(), budget, ask)

    def within(self, queries: Any, radius: float, budget: Budget) -> Surroundings:
        """Return the rows of each query whose distance is at most the radius."""

        def ask(part: slice) -> tuple[int, Array, Array, Array]:
            found = self._distances(queries[part], budget)
            near = found <= radius
            return found.size, near.sum(axis=1), found[near], np.nonzero(near)[1]

        return surround(queries.shape[0], self._at_once(), budget, ask)


def _first(distances: Array, k: int) -> Array:
    """Return the places of the k smallest, equal ones by place."""
    if k < distances.size:
        limit = np.partition(distances, k - 1)[k - 1]
        places = np.flatnonzero(distances <= limit)
    else:
        places = np.arange(distances.size)
    return places[np.argsort(distances[places], kind="stable")[:k]]
