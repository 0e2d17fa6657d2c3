"""Exact nearest neighbours of rows of few columns, with a k-d tree (Bentley 1975).

Rows are halved at the median of the column in which they spread widest, again and again, until a few dozen
are left. A box around a group of rows is at least

    sum_j max(l_j - q_j, q_j - u_j, 0)^2        (or the sum of sizes, or powers, or the largest)

away from a query q, so a whole group is left out when that is more than the k-th distance so far; how much
more, for rounding, is worked out in native/kd_tree_search.cpp. What is left is measured by definition. Up to
about ten columns few groups have to be looked at; in many columns nearly all boxes are near, and a plain scan
is faster.
"""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.geometry.measure import Measure
from sixfold.solvers.neighbour_search import Neighbours, Surroundings, portions, proceed

Array = NDArray[Any]

# Queries a native call: their copies as float64 and their order stay below 40 MB for fifteen columns.
PORTION = 1 << 18


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
            _end(budget)

    @property
    def _arrays(self) -> tuple[Array, Array, Array, Array]:
        return self.leaves, self.boxes, self.points, self.numbers

    def nearest(self, queries: Array, k: int, budget: Budget) -> Neighbours:
        """Return the k nearest rows of each query; 1 <= k <= rows."""
        distances = np.empty((len(queries), k))
        rows = np.empty((len(queries), k), dtype=np.int64)
        computed = 0
        for part in portions(len(queries), PORTION, budget):
            part_computed = core.kd_nearest(
                *self._arrays,
                np.ascontiguousarray(queries[part], dtype=np.float64),
                distances[part],
                rows[part],
                *self.measure,
                budget.seconds_left,
                budget.flag,
            )
            if part_computed < 0:
                _end(budget)
            computed += part_computed
        return Neighbours(distances, rows, computed)

    def within(self, queries: Array, radius: float, budget: Budget) -> Surroundings:
        """Return the rows of each query whose distance is at most the radius."""
        ends, distances, rows = [np.zeros(1, dtype=np.int64)], [np.empty(0)], [np.empty(0, dtype=np.int64)]
        computed = 0
        for part in portions(len(queries), PORTION, budget):
            found = core.kd_within(
                *self._arrays,
                np.ascontiguousarray(queries[part], dtype=np.float64),
                radius,
                *self.measure,
                budget.seconds_left,
                budget.flag,
            )
            if found[0] < 0:
                _end(budget)
            computed += found[0]
            ends.append(ends[-1][-1] + found[1][1:])
            distances.append(found[2])
            rows.append(found[3])
        return Surroundings(np.concatenate(ends), np.concatenate(distances), np.concatenate(rows), computed)


def _end(budget: Budget) -> NoReturn:
    """Raise what made a native loop stop: a limit of the budget, or Ctrl-C under someone else's handler."""
    proceed(budget)
    raise KeyboardInterrupt
