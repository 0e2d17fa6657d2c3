"""Exact nearest neighbours of rows of few columns, with a k-d tree (Bentley 1975).

Rows are halved at the median of the column in which they spread widest, again and again, until a few dozen
are left. A box around a group of rows is at least

    sum_j max(l_j - q_j, q_j - u_j, 0)^2        (or the sum of sizes, or powers, or the largest)

away from a query q, so a whole group is left out when that is more than the k-th distance so far; how much
more, for rounding, is worked out in native/neighbors/kd_tree/kd_tree_search.cpp. What is left is measured by
definition. Up to about ten columns few groups have to be looked at; in many columns nearly all boxes are
near, and a plain scan is faster.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.geometry.distances.base import Measure
from sixfold.solvers.neighbors.search import (
    Neighbors,
    RadiusNeighbors,
    collect_nearest,
    collect_within,
    require_time,
)

Array = NDArray[Any]

# Their copies as float64 and their order stay below 40 MB for fifteen columns.
QUERIES_PER_CALL = 1 << 18


class KdTree:
    """Dense rows in a balanced tree of boxes.

    Parameters
    ----------
    X : ndarray of shape (rows, columns)
        C-contiguous, float64 or float32, finite.
    measure : Measure
        Any but "count".
    leaf_size : int
        Rows at which a group is not halved any more.
    budget : Budget or None
        What building may take; None for no limit.

    Attributes
    ----------
    leaves : ndarray of shape (leaves, columns, rows a leaf)
    boxes : ndarray of shape (nodes, 2, columns, 8)
        Lower and upper ends of the children of each node.
    points : ndarray of uint8, shape (nodes,)
        A bit for each child whose rows are all equal.
    numbers : ndarray of int64, shape (rows,)
        Row numbers in the order of the leaves.
    """

    name: ClassVar[str] = "kd_tree"

    def __init__(self, X: Array, measure: Measure, leaf_size: int = 32, budget: Budget | None = None) -> None:
        budget = Budget() if budget is None else budget
        rows, columns = X.shape
        leaves, capacity, nodes = core.kd_tree_shape(rows, leaf_size)
        self.measure = measure
        self.leaves = np.empty((leaves, columns, capacity), dtype=X.dtype)
        self.boxes = np.zeros((nodes, 2, columns, 8))
        self.points = np.empty(nodes, dtype=np.uint8)
        self.numbers = np.empty(rows, dtype=np.int64)
        if not core.build_kd_tree(X, *self._arrays, budget.seconds_left, budget.flag):
            require_time(budget, finished=False)

    @property
    def _arrays(self) -> tuple[Array, Array, Array, Array]:
        return self.leaves, self.boxes, self.points, self.numbers

    def nearest(self, queries: Array, k: int, budget: Budget) -> Neighbors:
        """Return the k nearest rows of each query; 1 <= k <= rows."""

        def search(chunk: slice, distances: Array, rows: Array) -> int:
            return core.kd_nearest(*self._arguments(queries[chunk]), distances, rows, *self._limits(budget))

        return collect_nearest(len(queries), k, QUERIES_PER_CALL, budget, search)

    def within(self, queries: Array, radius: float, budget: Budget) -> RadiusNeighbors:
        """Return the rows of each query whose distance is at most the radius."""

        def search(chunk: slice) -> tuple[int, Array, Array, Array]:
            computed, ends, *found = core.kd_within(
                *self._arguments(queries[chunk]), radius, *self._limits(budget)
            )
            return computed, np.diff(ends), *found

        return collect_within(len(queries), QUERIES_PER_CALL, budget, search)

    def _arguments(self, queries: Array) -> tuple[Any, ...]:
        return *self._arrays, np.ascontiguousarray(queries, dtype=np.float64)

    def _limits(self, budget: Budget) -> tuple[Any, ...]:
        return *self.measure, budget.seconds_left, budget.flag
