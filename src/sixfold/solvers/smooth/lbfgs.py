"""L-BFGS with the curvature at the start as its first metric, for several classes and for many columns.

    direction = -(H_0, updated by the last changes of theta and of the slope) slope        (Nocedal 1980)

Plain L-BFGS begins with a multiple of the identity and has to learn the scales and correlations of the
columns from its steps. Here H_0 is the inverse of the curvature at theta = 0, where all classes are equally
likely:

    softmax     H_0^-1 = Z'QZ / K + l2 D     for each of the K classes
    one score   H_0^-1 = l''(0) Z'QZ + l2 D

one Cholesky factor of d x d for all classes: 33 iterations on 20,000 x 100 with 10 classes, where
scikit-learn's takes 145. As the classes come apart the curvature shrinks, most where rows are sure, so the
metric is made anew whenever the value is a quarter: 50 iterations instead of 281 on nearly separable classes.

Where there are not many more rows than columns, and for sparse tables, truncated Newton comes first
(:mod:`sixfold.solvers.smooth.newton_cg`), and what it leaves is for L-BFGS: 1.0 ms instead of 6.5 at 100 x
100 with 10 classes, 10 instead of 15 at a sparse 2,000 x 2,000.
Beyond some thousand columns, and for sparse tables, it is the diagonal of that matrix. The model does not
depend on the units of the columns either way.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import BudgetExhausted
from sixfold.data.blocks import Blocks
from sixfold.risk.problem import Problem
from sixfold.solvers.smooth.descent import (
    CAUTION,
    SmoothProgress,
    SmoothSolver,
    gap_estimate,
    is_noise,
    line_search,
)
from sixfold.solvers.smooth.metrics import DiagonalMetric, Metric, squared_length
from sixfold.solvers.smooth.newton_cg import native_descent, suits_native_descent
from sixfold.solvers.smooth.objective import ObjectivePoint, inner
from sixfold.solvers.smooth.reweighted import MAX_FACTORED
from sixfold.solvers.smooth.softmax_objective import SoftmaxObjective

Array = NDArray[Any]

MEMORY = 20  # changes that are remembered: two vectors as long as theta each
# Of the value at which the metric was made: then it is made anew. Sooner, it is too short for rows that are
# not sure yet: on a sparse 2,000 x 2,000 table with 4 classes steps are cut, and 49 passes come of 19.
RENEWED = 0.25
GAP_CHECKED = (
    0.7  # of the gap that is small enough: a slope that alone makes up so much has its gap worked out
)
WATCHED = 20  # iterations from which the pace is taken
PASS_OVERHEAD = 1.5e6  # multiplications that Python takes the time of
NEWTON_STEPS = 15  # that another method takes
FEW_ROWS = 2  # times the columns, of a table that products with the curvature come first for
MOST_PRODUCTS = 1000  # of those, of which fits that go well take 100
MAX_METRIC_COLUMNS = 2000  # beyond, factoring a d x d metric is no longer cheap


class LBFGS(SmoothSolver):
    """Limited-memory BFGS."""

    name: ClassVar[str] = "lbfgs"
    title: ClassVar[str] = "L-BFGS"

    def objection(self, problem: Problem) -> str | None:
        """Return why this solver cannot minimise the problem, or None."""
        if problem.loss.labels == "real":
            return "it is made for the losses of classification"
        return super().objection(problem)

    def suits(self, problem: Problem, blocks: Blocks) -> bool:
        """Return whether there are several classes, and a penalty unless they are too many for others."""
        many = (blocks.n_columns + 1) * problem.n_scores(blocks) > MAX_FACTORED
        return problem.loss.labels == "class" and (problem.penalised or many)

    def descend(self, objective: Any, theta: Array, progress: SmoothProgress) -> tuple[Array, Array]:
        """Return the minimiser of one target from theta on, and the step that would come next."""
        if _products_pay(objective) and suits_native_descent(objective, progress):
            theta, step, ended = native_descent(objective, theta, progress, MOST_PRODUCTS)
            if ended:
                return theta, step
        point, step, check = None, np.zeros_like(theta), GapCheck(objective, progress)
        pace = _Pace(objective, theta.size)
        try:
            point = objective.first(theta)
            memory, value = Memory(first_metric(objective, theta)), point.value
            while True:
                step = memory.solve(-point.slope)
                decrease = -inner(point.slope, step)
                if progress.record(point.value, check.gap(point, decrease)) or not decrease > 0:
                    break
                if progress.budget.another_follows and pace.crawls(progress.excess):
                    progress.crawls = True
                    break
                end = line_search(objective, point, step, decrease, False)
                if end is None or (
                    is_noise(decrease, point)
                    and not squared_length(end, memory.metric) < 0.9 * squared_length(point, memory.metric)
                ):
                    break
                memory.add(end.theta - point.theta, end.slope - point.slope)
                point = end
                if point.value < RENEWED * value:
                    memory.metric, value = first_metric(objective, point.theta), point.value
        except BudgetExhausted:
            pass
        return theta if point is None else point.theta, step


def _products_pay(objective: Any) -> bool:
    """Return whether products with the curvature lead to the minimum sooner than a metric of all classes.

    They do where no metric is factored, and where factoring it costs as much as passes over the rows.
    """
    if objective.blocks.sparse or objective.d > MAX_METRIC_COLUMNS:
        return True
    return bool(objective.blocks.n_rows <= FEW_ROWS * objective.d)


def first_metric(objective: Any, theta: Array) -> Metric:
    """Return the curvature at theta as one matrix for all scores, or its diagonal where that is too large."""
    if objective.d > MAX_METRIC_COLUMNS or (objective.blocks.sparse and objective.d > 200):
        h = objective.mean_curvature(theta)
        return DiagonalMetric(objective, objective.column_squares(), float(h.mean()))
    return objective.factor(objective.metric(objective.mean_curvature(theta)))


class Memory:
    """The last changes of theta and of the slope, and the metric they make up."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.changes: deque[tuple[Array, Array, float]] = deque(maxlen=MEMORY)

    def add(self, moved: Array, bent: Array) -> None:
        """Remember that the slope changed by ``bent`` where theta ``moved``."""
        product = inner(moved, bent)
        if product > 1e-14 * math.sqrt(inner(moved, moved) * inner(bent, bent)):
            self.changes.append((moved, bent, product))

    def solve(self, right: Array) -> Array:
        """Return the metric's inverse times right, by the two loops of Nocedal (1980)."""
        result, coefficients = right.copy(), []
        for moved, bent, product in reversed(self.changes):
            coefficient = inner(moved, result) / product
            coefficients.append(coefficient)
            result -= coefficient * bent
        result = self.metric.solve(result)
        for (moved, bent, product), coefficient in zip(self.changes, reversed(coefficients), strict=True):
            result += (coefficient - inner(bent, result) / product) * moved
        return result


class _Pace:
    """Whether so many more iterations are to be expected that a second-order method would end sooner.

    Costs are counted in multiplications: a pass, with what Python adds to it, and the steps of Newton's
    method along a falling penalty, whose products of matrices run at several times the speed of a pass.
    """

    def __init__(self, objective: Any, size: int) -> None:
        product = objective.blocks.n_rows * size
        a_pass = 4.0 * product + PASS_OVERHEAD
        newton = product * size / 8.0 + size**3 / 12.0 + 40.0 * product
        self.affordable = NEWTON_STEPS * newton / a_pass if size <= MAX_FACTORED else math.inf
        self._excess: list[float] = []

    def crawls(self, excess: float) -> bool:
        """Note by how much the gap is too large, and return whether what is left takes too long."""
        self._excess.append(min([excess, *self._excess[-1:]]))
        seen = len(self._excess)
        if seen <= 2 * WATCHED or seen % 10:
            return False
        gained = math.log(self._excess[-WATCHED] / self._excess[-1])
        left = WATCHED * math.log(max(self._excess[-1], 1.0)) / max(gained, 1e-9)
        return left > self.affordable


class GapCheck:
    """The gap of a softmax worked out as soon as it may be small enough, which is two passes.

    The estimate allows for probability that is moved between classes, and is 30 times too large where the
    intercepts are nearly balanced: 19 iterations instead of 23 on 20,000 x 100 with 10 classes.
    """

    def __init__(self, objective: Any, progress: SmoothProgress) -> None:
        self.objective, self.progress = objective, progress
        # Later rounds only come about where the gap of the rounded model is larger than was seen here.
        first = progress.caution == CAUTION[0]
        able = isinstance(objective, SoftmaxObjective) and objective.l2 > 0 and first
        self.bar = GAP_CHECKED * progress.budget.tol * progress.scale if able else 0.0

    def gap(self, point: ObjectivePoint, decrease: float) -> float:
        """Return the gap over the caution if it was worked out, else its estimate."""
        objective, caution = self.objective, self.progress.caution
        estimate = gap_estimate(objective, point, decrease)
        if self.bar == 0.0 or 0.5 * float(np.square(point.slope[:-1]).sum()) / objective.l2 > self.bar:
            return estimate
        self.bar *= 0.1  # a check that fails must not be made at every point from there on
        known = objective.objective_and_gap(*objective.model(point.theta), to_the_end=False)[1]
        return min(estimate, float(known) / caution)
