"""Exact nearest neighbours: what every search takes and gives.

A search answers, for each query q, which k of the training rows x are nearest,

    the rows by (distance(x, q), row number), the k smallest,

or which are within a radius. Whatever is ruled out by a bound on the way, the answer is the one that
computing every distance of :mod:`sixfold.geometry.distances` would give, ties included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.errors import TimeLimitReached
from sixfold.geometry.distances import Distance

Array = NDArray[Any]


@dataclass(frozen=True)
class Neighbors:
    """The k nearest rows of each query, the nearest first; equal distances by row number.

    Attributes
    ----------
    distances : ndarray of float64, shape (queries, k)
    rows : ndarray of int64, shape (queries, k)
    computed : int
        How many distances were computed; all others were ruled out by a bound.
    """

    distances: Array
    rows: Array
    computed: int


@dataclass(frozen=True)
class RadiusNeighbors:
    """All rows within the radius of each query, in the order of their numbers.

    Those of query i are at ``ends[i]:ends[i + 1]`` of the other two.

    Attributes
    ----------
    ends : ndarray of int64, shape (queries + 1,)
    distances : ndarray of float64
    rows : ndarray of int64
    computed : int
    """

    ends: Array
    distances: Array
    rows: Array
    computed: int

    def without(self, numbers: Array) -> RadiusNeighbors:
        """Return what is left without the row of each query that has its number."""
        other = self.rows != np.repeat(numbers, np.diff(self.ends))
        ends = np.concatenate([[0], np.cumsum(other)])[self.ends]
        return RadiusNeighbors(ends, self.distances[other], self.rows[other], self.computed)

    def sorted(self) -> RadiusNeighbors:
        """Return the rows of each query by (distance, row number)."""
        query = np.repeat(np.arange(self.ends.size - 1), np.diff(self.ends))
        order = np.lexsort((self.rows, self.distances, query))
        return replace(self, distances=self.distances[order], rows=self.rows[order])

    def by_count(self) -> Iterator[tuple[Array, Neighbors]]:
        """Give the places of queries that have equally many rows, and these rows, in the order they are in.

        >>> near = RadiusNeighbors(np.array([0, 1, 3, 4]), np.arange(4.0), np.arange(4), 4)
        >>> [(some.tolist(), found.rows.tolist()) for some, found in near.by_count()]
        [([0, 2], [[0], [3]]), ([1], [[1, 2]])]
        """
        counts = np.diff(self.ends)
        order = np.argsort(counts, kind="stable")
        for some in np.split(order, np.flatnonzero(np.diff(counts[order])) + 1) if order.size else ():
            places = self.ends[some, None] + np.arange(counts[some[0]])
            yield some, Neighbors(self.distances[places], self.rows[places], 0)


class Search(Protocol):
    """Training rows, made ready for one way to find the nearest of them by a measure.

    Queries are rows as the training rows were: an array of any type of numbers (sparse searches: a CSR
    array). Attributes are plain data, so that a search can be copied and pickled.
    """

    name: ClassVar[str]

    def nearest(self, queries: Any, k: int, budget: Budget) -> Neighbors:
        """Return the k nearest rows of each query; 1 <= k <= rows."""

    def within(self, queries: Any, radius: float, budget: Budget) -> RadiusNeighbors:
        """Return the rows of each query whose distance is at most the radius."""


@dataclass(frozen=True)
class DistanceSearch:
    """A search by a distance: queries become the rows that are measured, and measures the distances reported.

    Of some distances only the first bits count (cosine distances, of rows that were divided by their lengths,
    are known but for some rounding). Rows that are equal in these bits are equally far, and go by number.

    Attributes
    ----------
    loops : Search
        Searches the rows that the distance embeds.
    distance : Distance
    rows : int
        How many there are.
    """

    loops: Search
    distance: Distance
    rows: int

    def nearest(self, queries: Any, k: int, budget: Budget) -> Neighbors:
        """Return the k nearest rows of each query, by (reported distance, row number)."""
        embedded = self.distance.embed(queries, query=True)
        if self.distance.rounded:
            return self._nearest_rounded(embedded, k, budget)
        found = self.loops.nearest(embedded, k, budget)
        if self.distance.divisor == 1.0:
            return found
        return replace(found, distances=self.distance.reported(found.distances))

    def _nearest_rounded(self, queries: Any, k: int, budget: Budget) -> Neighbors:
        found = self.loops.nearest(queries, min(k + 1, self.rows), budget)
        distances, rows = _in_order(self.distance.reported(found.distances), found.rows)
        computed = found.computed
        if distances.shape[1] > k:
            # As far as the last that is taken: others may be too, and have lower numbers.
            for i in np.flatnonzero(distances[:, k] == distances[:, k - 1]):
                radius = self.distance.radius_bound(float(distances[i, k]))
                near = self.loops.within(queries[i : i + 1], radius, budget)
                far = self.distance.reported(near.distances)
                order = np.lexsort((near.rows, far))[: k + 1]
                distances[i], rows[i] = far[order], near.rows[order]
                computed += near.computed
        return Neighbors(distances[:, :k], rows[:, :k], computed)

    def within(self, queries: Any, radius: float, budget: Budget) -> RadiusNeighbors:
        """Return the rows of each query whose reported distance is at most the radius."""
        embedded = self.distance.embed(queries, query=True)
        found = self.loops.within(embedded, self.distance.radius_bound(radius), budget)
        distances = self.distance.reported(found.distances)
        inside = (distances <= radius) & np.isfinite(distances)  # what cannot be compared is within no radius
        ends = np.concatenate([[0], np.cumsum(inside)])[found.ends]
        return RadiusNeighbors(ends, distances[inside], found.rows[inside], found.computed)


def _in_order(distances: Array, rows: Array) -> tuple[Array, Array]:
    """Return both in the order of distances, equal ones by row number."""
    order = np.lexsort((rows, distances), axis=1)
    return np.take_along_axis(distances, order, axis=1), np.take_along_axis(rows, order, axis=1)


# -- some queries at a time ------------------------------------------------------------------------------


def require_time(budget: Budget, finished: bool = True) -> None:
    """Raise what ends a query that must not go on, or has not finished: part of an answer is no answer."""
    if budget.interrupted:
        raise KeyboardInterrupt
    if budget.exhausted():
        raise TimeLimitReached(
            f"The query was stopped by {budget.stopped_by} before it was answered. Allow more time, or pass "
            "fewer rows at once."
        )
    if not finished:
        raise KeyboardInterrupt  # a handler of someone else's ended the loop


def chunks(queries: int, size: int, budget: Budget) -> Iterator[slice]:
    """Go through the queries some at a time for as long as the budget lasts.

    >>> list(chunks(5, 2, Budget()))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    for start in range(0, queries, size):
        yield slice(start, min(start + size, queries))
        require_time(budget)


def collect_nearest(
    queries: int, k: int, size: int, budget: Budget, search: Callable[[slice, Array, Array], int]
) -> Neighbors:
    """Return the k nearest rows of that many queries.

    ``search(chunk, distances, rows)`` fills in the answers of a chunk of at most ``size`` queries and returns
    how many distances it has computed; less than 0 if it was stopped.
    """
    distances, rows = np.empty((queries, k)), np.empty((queries, k), dtype=np.int64)
    total = 0
    for chunk in chunks(queries, size, budget):
        computed = search(chunk, distances[chunk], rows[chunk])
        if computed < 0:
            require_time(budget, finished=False)
        total += computed
    return Neighbors(distances, rows, total)


def collect_within(
    queries: int, size: int, budget: Budget, search: Callable[[slice], tuple[int, Array, Array, Array]]
) -> RadiusNeighbors:
    """Return the rows within the radius of that many queries.

    ``search(chunk)`` returns how many distances it has computed, less than 0 if it was stopped, and for each
    query of a chunk of at most ``size`` queries the number of its rows, then all their distances and numbers.
    """
    found = [(0, np.zeros(1, dtype=np.int64), np.empty(0), np.empty(0, dtype=np.int64))]
    for chunk in chunks(queries, size, budget):
        found.append(search(chunk))
        if found[-1][0] < 0:
            require_time(budget, finished=False)
    computed, counts, distances, rows = zip(*found, strict=True)
    return RadiusNeighbors(
        np.cumsum(np.concatenate(counts)), np.concatenate(distances), np.concatenate(rows), sum(computed)
    )
