"""Steps along the whole gradient: proximal, with momentum, or with a decaying step for losses with kinks.

In a metric with centre m and factors f_j (see :mod:`sixfold.solvers.first_order.sgd_updates`; c = b + w.m),
one step is

    w <- prox_{eta alpha f}(w - eta f (sum_i q_i g_i x_i - m sum_i q_i g_i)),     c <- c - eta sum_i q_i g_i

where g_i = loss'(s_i, y_i). Scores s = X w + b are kept along with w: they are linear, so momentum needs no
product with X of its own, and a step costs one product with X and one with its transpose.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.data.blocks import Blocks
from sixfold.risk.problem import Problem, normalized_weights
from sixfold.solvers.first_order.sgd_updates import StepRule
from sixfold.solvers.first_order.stopping import (
    EXPLODED,
    Progress,
    column_spread,
    penalty_value,
    targets,
    times,
    transposed_times,
)

Array = NDArray[Any]

POWER_ROUNDS = 6
SMOOTH_PATIENCE = 200  # passes without gain after which a smooth problem is given up
KINKED_PATIENCE = 150  # the same where the loss has kinks
HALVING_PATIENCE = 15  # passes without a better model after which the step is halved


@dataclass(frozen=True)
class Point:
    """A model in the centred metric, with its scores and its loss (without penalty)."""

    w: Array
    c: Array
    scores: list[Array]
    loss: float

    def beyond(self, previous: Point, beta: float, gradient: FullGradient) -> Point:
        """Return the point that lies beta times the last step beyond this one."""
        if beta == 0.0:
            return self
        pairs = zip(self.scores, previous.scores, strict=True)
        scores = [s + beta * (s - p) for s, p in pairs]
        w, c = self.w + beta * (self.w - previous.w), self.c + beta * (self.c - previous.c)
        return Point(w, c, scores, gradient.loss(scores))


class FullGradient:
    """Loss, gradient and proximal steps of a problem over row blocks."""

    def __init__(self, problem: Problem, blocks: Blocks, budget: Budget, standardize: bool) -> None:
        self.problem, self.blocks, self.budget = problem, blocks, budget
        self.center, self.factor = np.zeros(blocks.n_columns), np.ones(blocks.n_columns)
        if standardize:
            self.center, self.factor = column_spread(problem, blocks)

    def point(self, w: Array, c: Array) -> Point:
        """Return the point with these parameters."""
        b = c - self.center @ w
        scores = [times(block.X, w) + b for block in self.budget.watch(self.blocks)]
        return Point(w, c, scores, self.loss(scores))

    def at(self, w: Array, b: Array) -> Point:
        """Return the point of a model with intercept b."""
        return self.point(w, b + self.center @ w)

    def model(self, point: Point) -> tuple[Array, Array]:
        """Return w and the intercept of a point."""
        return point.w, point.c - self.center @ point.w

    def loss(self, scores: list[Array]) -> float:
        """Return sum_i q_i loss(s_i, y_i)."""
        total = 0.0
        with np.errstate(all="ignore"):
            for block, score in zip(self.blocks, scores, strict=True):
                value = self.problem.loss.value(score, targets(self.problem, block))
                total += float((normalized_weights(block, self.blocks) @ value).sum())
        return total if math.isfinite(total) else math.inf

    def value(self, point: Point) -> float:
        """Return the objective of a point."""
        return point.loss + penalty_value(self.problem, point.w)

    def slope(self, point: Point) -> tuple[Array, Array]:
        """Return the gradient of the loss in w and c."""
        slope_w, slope_c = np.zeros_like(point.w), np.zeros_like(point.c)
        pairs = zip(self.budget.watch(self.blocks), point.scores, strict=True)
        for block, score in pairs:
            u = self.problem.loss.gradient(score, targets(self.problem, block))
            u = normalized_weights(block, self.blocks)[:, None] * u
            slope_w += transposed_times(block.X, u)
            slope_c += u.sum(axis=0)
        slope_w -= np.outer(self.center, slope_c)
        return slope_w, slope_c if self.problem.fit_intercept else np.zeros_like(slope_c)

    def step(self, point: Point, slope: tuple[Array, Array], eta: float) -> Point:
        """Return the point one proximal step further."""
        steps: Any = eta * self.factor[:, None]
        w = point.w - steps * slope[0]
        if self.problem.penalised or self.problem.penalty.positive:
            w = self.problem.penalty.prox(w, steps * self.problem.alpha)
        return self.point(w, point.c - eta * slope[1])

    def promises(self, start: Point, slope: tuple[Array, Array], end: Point, eta: float) -> bool:
        """Return whether the loss at the end is below the parabola of curvature 1 / eta at the start."""
        dw, dc = end.w - start.w, end.c - start.c
        linear = float((slope[0] * dw).sum() + slope[1] @ dc)
        square = float((dw**2 / self.factor[:, None]).sum() + dc @ dc)
        if square == 0.0:  # halving the step any further would not end where rounding hides the parabola
            return True
        rounding = 1e-12 * abs(start.loss)
        return end.loss <= start.loss + linear + square / (2.0 * eta) + rounding

    def largest_moment(self) -> float:
        """Return about the largest eigenvalue of sum_i q_i z_i z_i', z = (sqrt(f) (x - m), 1)."""
        root = np.sqrt(self.factor)[:, None]
        w, c = np.ones((self.blocks.n_columns, 1)), np.ones(1) * self.problem.fit_intercept
        largest = 0.0
        for _ in range(POWER_ROUNDS):
            size = math.sqrt(float((w**2).sum() + c @ c))
            if size == 0.0:
                break
            w, c = root * w / size, c / size
            image_w, image_c = np.zeros_like(w), np.zeros(1)
            for block in self.budget.watch(self.blocks):
                score = times(block.X, w) + (c - self.center @ w)
                u = normalized_weights(block, self.blocks)[:, None] * score
                image_w += transposed_times(block.X, u)
                image_c += u.sum(axis=0)
            w = root * (image_w - np.outer(self.center, image_c))
            c = image_c * self.problem.fit_intercept
            largest = math.sqrt(float((w**2).sum() + c @ c))
        return largest


def smooth_step(gradient: FullGradient, point: Point) -> float:
    """Return 1 / L for a smooth loss; where curvature has no bound, that at the point itself."""
    loss = gradient.problem.loss
    bound = loss.curvature_bound
    if not math.isfinite(bound):
        bound = sum(
            float((normalized_weights(block, gradient.blocks) @ loss.curvature(score, block.y)).max())
            for block, score in zip(gradient.blocks, point.scores, strict=True)
        )
    curvature = bound * gradient.largest_moment()
    return 1.0 / curvature if curvature > 0.0 else 1.0


def descend_smooth(gradient: FullGradient, progress: Progress, eta0: float | None, momentum: bool) -> float:
    """Minimise a smooth loss by proximal steps; return the last step size.

    A given ``eta0`` is kept; else the step is halved until the parabola holds.
    """
    point = previous = gradient.at(progress.w, progress.b)
    value = start = gradient.value(point)
    eta = eta0 or smooth_step(gradient, point)
    grows = not math.isfinite(gradient.problem.loss.curvature_bound)
    pace = 1.0
    while not gradient.budget.exhausted():
        following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * pace**2))
        beta = (pace - 1.0) / following if momentum else 0.0
        ahead = point.beyond(previous, beta, gradient)
        slope = gradient.slope(ahead)
        end = gradient.step(ahead, slope, eta)
        while eta0 is None and not gradient.promises(ahead, slope, end, eta):
            eta *= 0.5
            end = gradient.step(ahead, slope, eta)
        reached = gradient.value(end)
        if beta > 0.0 and reached > value:
            pace, previous = 1.0, point  # the momentum has carried it past: begin anew from here
            continue
        still = np.array_equal(end.w, point.w) and np.array_equal(end.c, point.c)
        pace, previous, point, value = following, point, end, reached
        if progress.record(*gradient.model(point), value):
            break
        if diverged(progress, value, start, eta):
            break
        if still or progress.stalled(SMOOTH_PATIENCE):
            progress.stop("lack of progress", "further steps no longer lower the objective")
            break
        eta = 1.25 * eta if grows and eta0 is None else eta
    return eta


def descend_by_schedule(gradient: FullGradient, progress: Progress, rule: StepRule) -> None:
    """Minimise any loss by (sub)gradient steps whose size follows a schedule; the best model is kept."""
    point = gradient.at(progress.w, progress.b)
    start = gradient.value(point)
    updates = 0
    while not gradient.budget.exhausted():
        eta = rule.step_size(updates)
        point = gradient.step(point, gradient.slope(point), eta)
        updates += 1
        value = gradient.value(point)
        if progress.record(*gradient.model(point), value) or diverged(progress, value, start, rule.eta0):
            break
        if progress.stalled(KINKED_PATIENCE):
            progress.stop("lack of progress", "further steps no longer lower the objective")
            break


def descend_by_halving(gradient: FullGradient, progress: Progress, eta0: float) -> None:
    """Minimise a loss with kinks by subgradient steps, halved whenever they bring nothing better.

    After each halving the best model is taken up again. A piecewise linear objective grows in proportion to
    the distance from its minimum, and there this converges geometrically, where 1 / sqrt(t) does not.
    """
    point = best = gradient.at(progress.w, progress.b)
    start = lowest = gradient.value(point)
    eta, idle = eta0, 0
    while not gradient.budget.exhausted():
        point = gradient.step(point, gradient.slope(point), eta)
        value = gradient.value(point)
        if progress.record(*gradient.model(point), value) or diverged(progress, value, start, eta):
            break
        if progress.stalled(KINKED_PATIENCE):
            progress.stop("lack of progress", "further steps no longer lower the objective")
            break
        idle += 1
        if value < lowest:
            best, lowest, idle = point, value, 0
        if idle == HALVING_PATIENCE:
            point, eta, idle = best, 0.5 * eta, 0


def diverged(progress: Progress, value: float, start: float, eta: float) -> bool:
    """Note it and return True where the objective has left all bounds."""
    if value <= EXPLODED * max(start, progress.scale):
        return False
    progress.stop(
        "divergence",
        f"the objective grew without bound: the step eta0={eta:.3g} is too large, try {eta / 10:.1g} "
        "or leave it None",
    )
    return True
