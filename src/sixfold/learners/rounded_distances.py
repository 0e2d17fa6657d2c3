"""Neighbours by distances of which only the first bits count: rows that are equally far stay so.

A distance of rows that were divided by their lengths, as cosine distance is, is known but for some rounding.
Its first 40 bits are reported, and rows that are equal in them are ordered by number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.geometry.distances import Distance
from sixfold.solvers.neighbour_search import Neighbours, Search

Array = NDArray[Any]


def nearest_rounded(
    search: Search, distance: Distance, queries: Any, k: int, rows: int, budget: Budget
) -> Neighbours:
    """Return the k nearest of the rows by (reported distance, row number)."""
    found = search.nearest(queries, min(k + 1, rows), budget)
    distances, numbers = _by_distance_and_row(distance.reported(found.distances), found.rows)
    computed = found.computed
    if distances.shape[1] > k:
        # As far as the last that is taken: others may be too, and have lower numbers.
        for i in np.flatnonzero(distances[:, k] == distances[:, k - 1]):
            around = search.within(queries[i : i + 1], distance.reach(float(distances[i, k])), budget)
            far = distance.reported(around.distances)
            order = np.lexsort((around.rows, far))[: k + 1]
            distances[i], numbers[i] = far[order], around.rows[order]
            computed += around.computed
    return Neighbours(distances[:, :k], numbers[:, :k], computed)


def _by_distance_and_row(distances: Array, rows: Array) -> tuple[Array, Array]:
    """Return both in the order of distances, equal ones by row number."""
    order = np.argsort(rows, axis=1)
    distances, rows = (np.take_along_axis(part, order, axis=1) for part in (distances, rows))
    order = np.argsort(distances, axis=1, kind="stable")
    return np.take_along_axis(distances, order, axis=1), np.take_along_axis(rows, order, axis=1)


def without_self(found: Neighbours, numbers: Array) -> Neighbours:
    """Return one neighbour less for each query: itself where it is among them, the farthest where not."""
    own = found.rows == numbers[:, None]
    own[~own.any(axis=1), -1] = True
    shape = (found.rows.shape[0], found.rows.shape[1] - 1)
    return Neighbours(found.distances[~own].reshape(shape), found.rows[~own].reshape(shape), found.computed)
