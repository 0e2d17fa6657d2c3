"""Truncated Newton: Newton's step by conjugate gradients, for large sparse and for wide tables.

    (Z' diag(q l''(s)) Z + l2 D) delta = -slope

is solved by preconditioned conjugate gradients as far as the step is worth it (Dembo, Eisenstat and Steihaug
1982): a product with the matrix is one pass over the rows, X'(h * (X v)), and the matrix is never formed. The
preconditioner is its diagonal, which also makes the result independent of the units of the columns. Steps are
shortened as in :mod:`sixfold.solvers.smooth.descent`. Sparse rows are cheap to multiply with, however few
their columns: 3,000 x 1,000 with 3% of entries takes 30 ms where factors take 300. Where so many products
were needed that ten factors would have cost less, the next solver goes on.

With a penalty, and rows that are in memory, the descent is one native call, for one score and for classes
(native/linear/smooth/truncated_newton.cpp): at 300 x 2,000 it takes 0.6 ms, and with Python between the
passes 2.
"""

from __future__ import annotations

import math
import operator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import BudgetExhausted
from sixfold.data.blocks import Blocks
from sixfold.risk.problem import Problem
from sixfold.solvers.passes import LOSS_CODES
from sixfold.solvers.smooth.descent import (
    CAUTION,
    MAX_HESSIAN_COLUMNS,
    SmoothProgress,
    SmoothSolver,
    gap_estimate,
    is_noise,
    line_search,
)
from sixfold.solvers.smooth.metrics import DiagonalMetric, Metric, squared_length
from sixfold.solvers.smooth.objective import (
    LinearObjective,
    ObjectivePoint,
    SmoothObjective,
    inner,
    parts_of,
)

Array = NDArray[Any]

LOOSEST = 0.1  # share of the slope that may be left of the equations after conjugate gradients
MAX_PRODUCTS = 500  # a step
SPARSE_COST = 10  # times that of a dense table, what a multiplication costs
STEPS = 10  # that Newton's method takes, about
MOST_STEPS = 50  # of a native descent; fewer that are asked for are counted in Python
STUCK = 2  # how a native descent may end
FEW_PRODUCTS, MANY_PRODUCTS = 100, 1000  # of a fit that goes well, and of one that need not go badly


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
        """Return whether there are too many columns for a matrix, or too few entries for it to pay."""
        if blocks.n_columns > MAX_HESSIAN_COLUMNS:
            return True
        return blocks.sparse and problem.l2 > 0 and _products_of_steps(blocks) > FEW_PRODUCTS

    def rescues(self, problem: Problem, blocks: Blocks) -> bool:
        """Return whether it would have been the choice."""
        return self.suits(problem, blocks)

    def descend(self, objective: Any, theta: Array, progress: SmoothProgress) -> tuple[Array, Array]:
        """Return the minimiser of one target from theta on, and the last step."""
        in_all = math.inf
        if progress.budget.another_follows:
            in_all = max(_products_of_steps(objective.blocks), MANY_PRODUCTS)
        theta, step, ended = truncated_newton(objective, theta, progress, in_all=in_all)
        progress.crawls |= not ended and progress.budget.another_follows
        return theta, step


def _products_of_steps(blocks: Blocks) -> float:
    """Return how many products with the curvature cost as much as Newton's method with its factors."""
    entries = blocks.reduce(lambda block: block.X.nnz if blocks.sparse else block.X.size, operator.add)
    a_product = 4.0 * (SPARSE_COST if blocks.sparse else 1) * max(entries, 1)
    return STEPS * blocks.n_columns**3 / (3.0 * a_product)


def truncated_newton(
    objective: LinearObjective,
    theta: Array,
    progress: SmoothProgress,
    most: int = MAX_PRODUCTS,
    in_all: float = math.inf,
) -> tuple[Array, Array, bool]:
    """Return the minimiser of one target from theta on, the last step, and whether this was the end.

    It is not where a step would take more than ``most`` products, or all of them more than ``in_all``, or
    where the objective falls no more.
    """
    if suits_native_descent(objective, progress):
        return native_descent(objective, theta, progress, int(min(in_all, STEPS * most)))
    point, step, ended, products = None, np.zeros_like(theta), False, 0
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
            delta, solved, taken = newton_step(objective, point, h, metric, progress.excess, most)
            products += taken
            decrease = -inner(point.slope, delta)
            if objective.l2 == 0 and progress.record(point.value, 0.5 * decrease):
                ended = True
                break
            if not decrease > 0 or not (solved or most == MAX_PRODUCTS) or products > in_all:
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


def suits_native_descent(objective: SmoothObjective, progress: SmoothProgress) -> bool:
    """Return whether the whole descent may be one native call: there is a penalty, and one block of rows."""
    budget = progress.budget
    enough_steps = budget.max_iter is None or budget.max_iter >= MOST_STEPS
    able = objective.l2 > 0 and progress.enough > 0 and enough_steps and budget.stopped_by is None
    return able and not objective.blocks.streamed and len(objective.weight) == 1


def native_descent(
    objective: Any, theta: Array, progress: SmoothProgress, products: int
) -> tuple[Array, Array, bool]:
    """Return what :func:`truncated_newton` does, of one score or one a class, from one native call."""
    budget, caution = progress.budget, progress.caution
    theta, step, begun = np.array(theta), np.zeros_like(theta), budget.seconds
    block = objective.blocks.whole()

    def report(target: int, value: float, gap: float) -> bool:
        return progress.record(value, gap / CAUTION[0]) and budget.stopped_by is not None

    end, steps = core.truncated_newton(
        *parts_of(block.X),
        y=objective.y[0],
        weight=objective.weight[0],
        weight_sum=objective.blocks.weight_sum,
        loss=LOSS_CODES.index(objective.problem.loss.name),
        l2=objective.l2,
        shift=objective.shift,
        intercept=objective.problem.fit_intercept,
        spread=objective.spread,
        enough=progress.enough * CAUTION[0] / caution,
        most_steps=MOST_STEPS,
        most_products=products,
        theta=theta,
        step=step,
        report=report if budget.callbacks else None,
        seconds_left=budget.seconds_left,
        flag=budget.flag,
    )
    for _, seconds, value, gap in steps:
        progress.note(value, gap / CAUTION[0], begun + seconds)
    if theta.shape[1] > 1:  # the same number added to the weights of all classes changes no score
        theta -= theta.mean(axis=1, keepdims=True)
    return theta, step, end != STUCK


def newton_step(
    objective: LinearObjective, point: ObjectivePoint, h: Array, metric: Metric, excess: float, most: int
) -> tuple[Array, bool, int]:
    """Return Newton's step to the accuracy that pays, whether that was reached, and the products it took.

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
    products = 0
    while products < most:
        products += 1
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
    return (delta if np.any(delta) else metric.solve(-point.slope)), size <= goal, products
