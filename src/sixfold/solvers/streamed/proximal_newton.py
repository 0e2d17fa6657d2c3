"""Smooth losses of two classes with absolute values in the penalty, of rows that can only be reduced.

    minimise over v   g.v + v'Hv / 2 + l1 |w + v|_1 + l2 |w + v|^2 / 2

at the slope g and the curvature H of the loss, the intercept eliminated (Lee, Sun, Saunders 2014). One pass
brings g and H, a solver of memory finds v on them (:mod:`sixfold.solvers.streamed.least_squares`), and where
the whole step does not lower the objective one more pass finds a length. Near the minimum, once its signs are
found, this is Newton's method.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget, BudgetExhausted
from sixfold.certificate import Certificate
from sixfold.data.blocks import Blocks
from sixfold.risk.losses import LOSSES
from sixfold.risk.problem import Problem
from sixfold.solvers.base import Solution
from sixfold.solvers.streamed.certificates import certify
from sixfold.solvers.streamed.columns import column_spread
from sixfold.solvers.streamed.least_squares import minimise_model, root_of
from sixfold.solvers.streamed.smooth import LENGTHS, StreamedObjective, values_along

Array = NDArray[Any]

MOST_STEPS = 100
STILL = 1e-13  # of the largest coefficient in units of the columns
SETTLED = 1e-9  # the same, from which on a step has nothing left to bring once the tolerance is met


def solve_proximal(problem: Problem, blocks: Blocks, budget: Budget) -> Solution:
    """Minimise a smooth loss of signs with absolute values in the penalty, target after target."""
    spread = column_spread(blocks)
    at_zero = float(problem.loss.value(np.zeros((1, 1)), np.ones((1, 1)))[0, 0])
    scale = at_zero * blocks.n_targets
    values, models = [at_zero] * blocks.n_targets, []
    patience = blocks.watch
    for target in range(blocks.n_targets):
        objective = StreamedObjective(replace(problem, alpha=0.0), blocks, spread, target, 1)
        budget.new_part()
        theta = objective.start()
        if not budget.exhausted():
            blocks.watch = budget.check
            theta = _descend(problem, objective, theta, budget, values, scale)
            blocks.watch = patience
        models.append(objective.model(theta))
    w, b = np.column_stack([w for w, _ in models]), np.concatenate([b for _, b in models])
    hurried = budget.interrupted or budget.seconds_left <= 0
    blocks.watch = None
    certificate: Certificate
    certificate, wrong = certify(problem, blocks, w, b, spread, scale, budget.tol, hurried)
    return Solution(
        w, b, certificate, "proximal Newton", max(len(budget.history), 1), means=spread.means(), wrong=wrong
    )


def _descend(
    problem: Problem,
    objective: StreamedObjective,
    theta: Array,
    budget: Budget,
    values: list[float],
    scale: float,
) -> Array:
    """Return the minimiser of one target from theta on."""
    d, sizes = objective.d, objective.lengths[:-1, 0]
    try:
        place = objective.at(theta)
        value = place.value + problem.penalty_value(theta[:-1])
        for _ in range(MOST_STEPS):
            step, decrease = _step(problem, objective, place.theta, place.slope, place.matrix, budget)
            values[objective.target] = value
            moved = float((np.abs(step[:-1, 0]) * sizes).max(initial=0.0))
            size = float((np.abs(place.theta[:-1, 0]) * sizes).max(initial=0.0))
            gap = min(decrease, value)
            stop = budget.record(math.fsum(values), gap * len(values), scale)
            still = moved <= STILL * max(size, moved * 1e-3) or not decrease > 0
            if budget.stopped_by is not None or still or (stop and moved <= SETTLED * size):
                return np.asarray(place.theta + step if still and decrease >= 0 and d else place.theta)
            after = objective.at(place.theta + step)
            then = after.value + problem.penalty_value(after.theta[:-1])
            noise = decrease <= 1e-13 * scale
            if not noise and not then <= value - 1e-4 * decrease:
                after = objective.at(place.theta + _length(problem, objective, place.theta, step) * step)
                then = after.value + problem.penalty_value(after.theta[:-1])
                if not then < value:
                    return place.theta
            place, value = after, then
    except BudgetExhausted:
        budget.exhausted()
        return theta if "place" not in locals() else place.theta
    return place.theta


def _step(
    problem: Problem, objective: StreamedObjective, theta: Array, slope: Array, matrix: Array, budget: Budget
) -> tuple[Array, float]:
    """Return the step to the minimum of the model, and by how much that falls, of all but curvature."""
    d = objective.d
    H, g, w = matrix[:d, :d], slope[:d, 0], theta[:d, 0]
    cross, last, slope_b = matrix[:d, d], float(matrix[d, d]), float(slope[d, 0])
    free = problem.fit_intercept and last > 0
    if free:
        H, g = H - np.outer(cross, cross) / last, g - cross * (slope_b / last)
    root, kept = root_of(H)
    linear = H @ w - g
    squares = replace(problem, loss=LOSSES["squared"])
    new, _ = minimise_model(squares, root, kept, linear[:, None], budget)
    v = new[:, 0] - w
    b = -(slope_b + float(cross @ v)) / last if free else 0.0
    step = np.append(v, b)[:, None]
    fall = -(float(slope[:, 0] @ step[:, 0]) + problem.penalty_value(new) - problem.penalty_value(theta[:-1]))
    return step, fall


def _length(problem: Problem, objective: StreamedObjective, theta: Array, step: Array) -> float:
    found = objective.blocks.reduce(
        partial(
            values_along,
            name=problem.loss.name,
            start=theta,
            end=theta + step,
            shift=objective.shift,
            target=objective.target,
            lengths=LENGTHS,
        ),
        np.add,
    )
    totals = [
        value / objective.blocks.weight_sum + problem.penalty_value((theta + t * step)[:-1])
        for value, t in zip(found, LENGTHS, strict=True)
    ]
    return float(LENGTHS[int(np.nanargmin(totals))])
