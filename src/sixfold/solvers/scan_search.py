"""The searches that go through all training rows: for every measure, and a faster one for bytes.

Each row's terms are added up in plain arithmetic, and it is given up as soon as their sum, rounding
considered, is too large for it to be among the nearest; the others are measured by definition. Nothing is
prepared, so this is the search for small data and for measures that no bound knows.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.geometry.measure import Measure
from sixfold.solvers.neighbour_search import Neighbours, Surroundings, portions, proceed

Array = NDArray[Any]

_PORTION = 1 << 21  # numbers that the queries of a portion, or the answers to them, hold: 16 MB
_SINGLE_COLUMNS = 1 << 19  # up to which sums of floats are worth something


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

    def __init__(self, X: Array, measure: Measure) -> None:
        self.X = X
        self.measure = measure

    def nearest(self, queries: Array, k: int, budget: Budget) -> Neighbours:
        """Return the k nearest rows of each query."""
        distances = np.empty((len(queries), k))
        rows = np.empty((len(queries), k), dtype=np.int64)
        computed = 0
        for part in portions(len(queries), self._portion(k), budget):
            exact, plain = self._prepared(queries[part])
            count = core.scan_nearest(
                self.X,
                exact,
                plain,
                distances[part],
                rows[part],
                *self.measure,
                budget.seconds_left,
                budget.flag,
            )
            if count < 0:
                proceed(budget)
            computed += count
        return Neighbours(distances, rows, computed)

    def within(self, queries: Array, radius: float, budget: Budget) -> Surroundings:
        """Return the rows of each query whose distance is at most the radius."""
        ends, distances, rows = [np.zeros(1, dtype=np.int64)], [np.empty(0)], [np.empty(0, dtype=np.int64)]
        computed = 0
        for part in portions(len(queries), self._portion(1), budget):
            exact, plain = self._prepared(queries[part])
            limits = (budget.seconds_left, budget.flag)
            count, *found = core.scan_within(self.X, exact, plain, radius, *self.measure, *limits)
            if count < 0:
                proceed(budget)
            ends.append(found[0][1:] + ends[-1][-1])
            distances.append(found[1])
            rows.append(found[2])
            computed += count
        return Surroundings(np.concatenate(ends), np.concatenate(distances), np.concatenate(rows), computed)

    def _portion(self, k: int) -> int:
        return max(1, _PORTION // max(self.X.shape[1], k))

    def _prepared(self, queries: Array) -> tuple[Array, Array]:
        """Return the queries as doubles, and as what plain sums are computed in."""
        exact = np.ascontiguousarray(queries, dtype=np.float64)
        if self.X.dtype == np.float64 or self.X.shape[1] > _SINGLE_COLUMNS:
            return exact, exact
        with np.errstate(over="ignore"):
            single = exact.astype(np.float32)
        # Where a query is no float, its differences could lose all their digits.
        return exact, single if np.array_equal(single, exact) else exact
