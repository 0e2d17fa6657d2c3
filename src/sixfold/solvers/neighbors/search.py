"""Exact nearest neighbours: what every search takes and gives.

A search answers, for each query q, which k of the training rows x are nearest,

    the rows by (distance(x, q), row number), the k smallest,

or which are within a radius. Distances are those of :mod:`sixfold.geometry.distances.measure`, so whatever is
ruled out by a bound on the way, the answer is the one that computing every distance would give, ties
included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.errors import TimeLimitReached

Array = NDArray[Any]


@dataclass(frozen=True)
class Neighbours:
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
class Surroundings:
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


class Search(Protocol):
    """Training rows, made ready for one way to find the nearest of them.

    Queries are rows as the training rows were: an array of any type of numbers (sparse searches: a CSR
    array). Attributes are plain data, so that a search can be copied and pickled.
    """

    name: ClassVar[str]

    def nearest(self, queries: Any, k: int, budget: Budget) -> Neighbours:
        """Return the k nearest rows of each query; 1 <= k <= rows."""

    def within(self, queries: Any, radius: float, budget: Budget) -> Surroundings:
        """Return the rows of each query whose distance is at most the radius."""


def proceed(budget: Budget) -> None:
    """Raise what ends a query that must not go on: part of an answer is no answer."""
    if budget.interrupted:
        raise KeyboardInterrupt
    if budget.exhausted():
        raise TimeLimitReached(
            f"The query was stopped by {budget.stopped_by} before it was answered. Allow more time, or pass "
            "fewer rows at once."
        )


def portions(queries: int, largest: int, budget: Budget) -> Iterator[slice]:
    """Go through the queries some at a time for as long as the budget lasts.

    >>> list(portions(5, 2, Budget()))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    for start in range(0, queries, largest):
        yield slice(start, min(start + largest, queries))
        proceed(budget)


def answer(
    queries: int, k: int, largest: int, budget: Budget, ask: Callable[[slice, Array, Array], int]
) -> Neighbours:
    """Return the k nearest rows of that many queries.

    ``ask(part, distances, rows)`` fills in the answers of a portion and returns how many distances it has
    computed; less than 0 if it was stopped.
    """
    distances, rows = np.empty((queries, k)), np.empty((queries, k), dtype=np.int64)
    computed = 0
    for part in portions(queries, largest, budget):
        computed += _finished(ask(part, distances[part], rows[part]), budget)
    return Neighbours(distances, rows, computed)


def surround(
    queries: int, largest: int, budget: Budget, ask: Callable[[slice], tuple[int, Array, Array, Array]]
) -> Surroundings:
    """Return the rows around that many queries.

    ``ask(part)`` returns how many distances it has computed, less than 0 if it was stopped, and for each
    query of a portion the number of its rows, then all their distances and numbers.
    """
    found = [(0, np.zeros(1, dtype=np.int64), np.empty(0), np.empty(0, dtype=np.int64))]
    for part in portions(queries, largest, budget):
        found.append(ask(part))
        _finished(found[-1][0], budget)
    computed, counts, distances, rows = zip(*found, strict=True)
    return Surroundings(
        np.cumsum(np.concatenate(counts)), np.concatenate(distances), np.concatenate(rows), sum(computed)
    )


def _finished(computed: int, budget: Budget) -> int:
    if computed < 0:
        proceed(budget)
        raise KeyboardInterrupt  # a handler of someone else's ended the loop
    return computed
