"""Truncated Newton: Newton's step by conjugate gradients, for large sparse and for wide tables.

    (Z' diag(q l''(s)) Z + l2 D) delta = -slope

is solved by preconditioned conjugate gradients as far as the step is worth it (Dembo, Eisenstat and Steihaug
1982): a product with the matrix is one pass over the rows, X'(h * (X v)), and the matrix is never formed. The
preconditioner is its diagonal, which also makes the result independent of the units of the columns. Steps are
shortened as in :mod:`sixfold.solvers.smooth.descent`.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import BudgetExhausted
from sixfold.data.blocks import Blocks
from sixfold.risk.problem import Problem
from sixfold.solvers.smooth.descent import SmoothProgress, SmoothSolver, gap_estimate, is_noise, line_search
from sixfold.solvers.smooth.metrics import DiagonalMetric, Metric, squared_length
from sixfold.solvers.smooth.objective import LinearObjective, ObjectivePoint, inner

Array = NDArray[Any]

LOOSEST = 0.1  # share of the slope that may be left of the equations after conjugate gradients
MAX_PRODUCTS = 500  # a step


class NewtonCG(SmoothSolver):
    """Newton's method with steps from conjugate gradients."""

    name: ClassVar[str] = "newton-cg"
    title: ClassVar[str] = "Newton-CG"
    factors: ClassVar[bool] = False

    def objection(self, problem: Problem) -> str | None:
        """Return why this solver cannot minimise the problem, or None."""
        if problem.loss.labels != "sign":
            return "it is made for losses of labels -1 and +1"
        return super().objection(problem)

    def suits(self, problem: Problem, blocks: Blocks) -> bool:
        """Return True: it needs no more than a few vectors, and is asked after Newton."""
        return True

    def descend(self, objective: Any, theta: Array, progress: SmoothProgress) -> tuple[Array, Array]:
        """Return the minimiser of one target from theta on, and the last step."""
        return truncated_newton(objective, theta, progress)[:2]


def truncated_newton(
    objective: LinearObjective, theta: Array, progress: SmoothProgress, most: int = MAX_PRODUCTS
) -> tuple[Array, Array, bool]:
    """Return the minimiser of one target from theta on, the last step, and whether this was the end.

    It is not where a step would take more than ``most`` products, or where the objective falls no more.
    """
    point, step, ended = None, np.zeros_like(theta), False
    try:
        point = objective.first(theta)
        squares = objective.column_squares()
        while True:
            h = objective.row_curvature(point)
            metric = DiagonalMetric(objective, squares, float(h.sum()) / objective.blocks.weight_sum)
            # With a penalty the slope says how much is left to gain; without one, only the step does.
            if objective.l2 > 0 and progress.record(
                point.value, gap_estimate(objective, point, squared_length(point, metric))
            ):
                ended = True
                break
            delta, solved = newton_step(objective, point, h, metric, progress.excess, most)
            decrease = -inner(point.slope, delta)
            if objective.l2 == 0 and progress.record(point.value, 0.5 * decrease):
                ended = True
                break
            if not decrease > 0 or not (solved or most == MAX_PRODUCTS):
                break
            end = line_search(objective, point, delta, decrease, False)
            if end is None or (
                is_noise(decrease, point)
                and not squared_length(end, metric) < 0.5 * squared_length(point, metric)
            ):
                break
            point, step = end, end.theta - point.theta
    except BudgetExhausted:
        ended = True
    return theta if point is None else point.theta, step, ended


def newton_step(
    objective: LinearObjective, point: ObjectivePoint, h: Array, metric: Metric, excess: float, most: int
) -> tuple[Array, bool]:
    """Return Newton's step to the accuracy that pays, and whether ``most`` products were enough for that.

    The step ends where the slope that the quadratic model leaves is a tenth of what it was, or, close to the
    end, what makes the gap as small as it has to be: the gap goes with the square of the slope.
    """
    left = -point.slope
    delta = np.zeros_like(left)
    towards = metric.solve(left)
    direction, size = towards, inner(left, towards)
    goal = size * max(
        min(LOOSEST**2, math.sqrt(size / max(abs(point.value), 1e-300))), 0.5 / max(excess, 1.0)
    )
    for _ in range(most):
        product = objective.product(h, direction)
        bend = inner(direction, product)
        if not bend > 0:
            break
        length = size / bend
        delta += length * direction
        left -= length * product
        towards = metric.solve(left)
        before, size = size, inner(left, towards)
        if size <= goal:
            break
        direction = towards + (size / before) * direction
    return (delta if np.any(delta) else metric.solve(-point.slope)), size <= goal
