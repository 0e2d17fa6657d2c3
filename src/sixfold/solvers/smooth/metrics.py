"""Metrics that slopes are divided by: a matrix M > 0, in which a slope g has the squared length g'M^-1 g.

The diagonal of the curvature of an objective does not depend on the units of the columns, and is there for
any number of them.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sixfold.solvers.smooth.objective import ObjectivePoint, inner

Array = NDArray[Any]


class Metric(Protocol):
    """A symmetric positive matrix that slopes are divided by."""

    def solve(self, right: Array) -> Array:
        """Return its inverse times right."""


class DiagonalMetric:
    """The diagonal of the curvature, as a metric."""

    def __init__(self, objective: Any, squares: Array, curvature: float) -> None:
        diagonal = curvature * squares + objective.l2
        diagonal[-1] -= objective.l2
        fixed = objective.constant(squares[:, None])[:, 0] | (diagonal <= 0.0)
        self.inverse = np.where(fixed, 0.0, 1.0 / np.where(fixed, 1.0, diagonal))[:, None]

    def solve(self, right: Array) -> Array:
        """Return its inverse times right."""
        return self.inverse * right


def squared_length(point: ObjectivePoint, metric: Metric) -> float:
    """Return the square of the slope's length in a metric."""
    return inner(point.slope, metric.solve(point.slope))
