"""A search by a distance: queries become the rows that are measured, and what the loops measure is reported.

Of some distances only the first bits count (cosine distances, of rows that were divided by their lengths, are
known but for some rounding). Rows that are equal in these bits are equally far, and go by their numbers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.geometry.distances import Distance
from sixfold.solvers.neighbors.search import Neighbours, Search, Surroundings

Array = NDArray[Any]


class DistanceSearch:
    """Training rows that are ready to be searched by a distance.

    Parameters
    ----------
    loops : Search
        Searches the rows that the distance embeds.
    distance : Distance
    rows : int
        How many there are.
    """

    def __init__(self, loops: Search, distance: Distance, rows: int) -> None:
        self.loops, self.distance, self.rows = loops, distance, rows

    @property
    def name(self) -> str:
        """What finds the rows."""
        return self.loops.name

    def nearest(self, queries: Any, k: int, budget: Budget) -> Neighbours:
        """Return the k nearest rows of each query, by (reported distance, row number)."""
        asked = self.distance.embed(queries, query=True)
        if self.distance.rounded:
            return self._nearest_rounded(asked, k, budget)
        found = self.loops.nearest(asked, k, budget)
        return replace(found, distances=self.distance.reported(found.distances))

    def _nearest_rounded(self, asked: Any, k: int, budget: Budget) -> Neighbours:
        found = self.loops.nearest(asked, min(k + 1, self.rows), budget)
        distances, rows = _in_order(self.distance.reported(found.distances), found.rows)
        computed = found.computed
        if distances.shape[1] > k:
            # As far as the last that is taken: others may be too, and have lower numbers.
            for i in np.flatnonzero(distances[:, k] == distances[:, k - 1]):
                reach = self.distance.reach(float(distances[i, k]))
                around = self.loops.within(asked[i : i + 1], reach, budget)
                far = self.distance.reported(around.distances)
                order = np.lexsort((around.rows, far))[: k + 1]
                distances[i], rows[i] = far[order], around.rows[order]
                computed += around.computed
        return Neighbours(distances[:, :k], rows[:, :k], computed)

    def within(self, queries: Any, radius: float, budget: Budget) -> Surroundings:
        """Return the rows of each query whose reported distance is at most the radius."""
        asked = self.distance.embed(queries, query=True)
        found = self.loops.within(asked, self.distance.reach(radius), budget)
        distances = self.distance.reported(found.distances)
        inside = (distances <= radius) & np.isfinite(distances)  # what cannot be compared is within no radius
        ends = np.concatenate([[0], np.cumsum(inside)])[found.ends]
        return Surroundings(ends, distances[inside], found.rows[inside], found.computed)


def _in_order(distances: Array, rows: Array) -> tuple[Array, Array]:
    """Return both in the order of distances, equal ones by row number."""
    order = np.argsort(rows, axis=1)
    distances, rows = (np.take_along_axis(part, order, axis=1) for part in (distances, rows))
    order = np.argsort(distances, axis=1, kind="stable")
    return np.take_along_axis(distances, order, axis=1), np.take_along_axis(rows, order, axis=1)
