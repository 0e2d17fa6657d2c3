"""Gradient descent over all rows: proximal, with momentum, or with a decaying step for losses with kinks.

    w <- prox(w - eta sum_i q_i loss'(s_i, y_i) x_i)      one step a pass over the data

*The step.* For a smooth loss it is 1 / L, where L = curvature_bound * (largest eigenvalue of the second
moments of the columns) comes from a few rounds of power iteration and is doubled whenever the loss rises
above the parabola it promises; for the cubed loss, whose curvature has no bound, that test alone finds L, and
L may also fall. ``accelerate`` adds Nesterov's momentum, built up anew whenever the objective rises
(O'Donoghue and Candes, 2015). For a loss with kinks the step is halved, and the best model taken up again,
whenever some passes bring nothing better.

*The metric.* In one with centre m and factors f_j (see :mod:`sixfold.solvers.first_order.sgd_updates`; c = b
+ w.m), one step is

    w <- prox_{eta alpha f}(w - eta f (sum_i q_i g_i x_i - m sum_i q_i g_i)),     c <- c - eta sum_i q_i g_i

where g_i = loss'(s_i, y_i). Scores s = X w + b are kept along with w: they are linear, so momentum needs no
product with X of its own, and a step costs one product with X and one with its transpose.

Sources: Beck and Teboulle (2009), A fast iterative shrinkage-thresholding algorithm for linear inverse
problems; O'Donoghue and Candes (2015), Adaptive restart for accelerated gradient schemes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget, BudgetExhausted
from sixfold.data.blocks import Blocks
from sixfold.risk.problem import Problem, normalized_weights
from sixfold.solvers.base import Solution
from sixfold.solvers.first_order.first_step import best_step, sample
from sixfold.solvers.first_order.options import FirstOrderSolver
from sixfold.solvers.first_order.sgd_updates import StepRule
from sixfold.solvers.first_order.stopping import FirstOrderProgress, diverged
from sixfold.solvers.passes import column_spread, constant_model, times, transposed_times

Array = NDArray[Any]

POWER_ROUNDS = 6
TRIAL_PASSES = 50  # over a sample, for each first step that is tried
SMOOTH_PATIENCE = 200  # passes without gain after which a smooth problem is given up
KINKED_PATIENCE = 150  # the same where the loss has kinks
HALVING_PATIENCE = 15  # passes without a better model after which the step is halved


class GradientDescent(FirstOrderSolver):
    """Gradient descent with the whole gradient, accelerated unless told otherwise.

    >>> from sixfold.data.blocks import MemoryBlocks
    >>> from sixfold.risk.losses import LOSSES
    >>> from sixfold.risk.penalties import make_penalty
    >>> blocks = MemoryBlocks(np.array([[1.0], [2.0], [3.0]]), np.array([[3.0], [5.0], [7.0]]))
    >>> problem = Problem(LOSSES["squared"], make_penalty(None))
    >>> solution = GradientDescent().solve(problem, blocks, Budget(tol=1e-12))
    >>> solution.w.round(6), solution.b.round(6)
    (array([[2.]]), array([1.]))
    """

    name: ClassVar[str] = "gd"

    def solve(self, problem: Problem, blocks: Blocks, budget: Budget) -> Solution:
        """Minimise the problem."""
        options = self.options
        progress = FirstOrderProgress.begin(problem, blocks, budget, *constant_model(problem, blocks))
        smooth = problem.loss.smooth
        details: dict[str, Any] = {}
        try:
            gradient = FullGradient(problem, blocks, budget, options.standardize)
            if smooth and options.learning_rate in ("auto", "constant"):
                details = {"accelerated": options.accelerate}
                details["eta0"] = descend_smooth(gradient, progress, options.eta0, options.accelerate)
            elif options.learning_rate == "auto":
                details["eta0"] = options.eta0 or self._first_step(gradient, progress)
                descend_by_halving(gradient, progress, details["eta0"])
            else:
                details["eta0"] = options.eta0 or self._first_step(gradient, progress)
                descend_by_schedule(gradient, progress, self._rule(details["eta0"]))
        except BudgetExhausted:
            budget.exhausted()
        return self._solution(progress, **details)

    def _rule(self, eta0: float) -> StepRule:
        schedule = self.options.learning_rate
        decay = 0.1 if self.options.decay is None else self.options.decay
        return StepRule(schedule, eta0, decay if schedule == "decay" else self.options.power_t)

    def _first_step(self, gradient: FullGradient, progress: FirstOrderProgress) -> float:
        if gradient.problem.loss.smooth:
            return smooth_step(gradient, gradient.at(progress.w, progress.b))
        problem, options = gradient.problem, self.options
        rows = sample(gradient.blocks, options.generator())
        start = constant_model(problem, rows, progress.b.shape[0])

        def trial(eta0: float) -> float:
            budget = Budget(tol=0.0, max_iter=TRIAL_PASSES)
            small = FirstOrderProgress.begin(problem, rows, budget, *start)
            small.bounds = False
            trial_gradient = FullGradient(problem, rows, budget, options.standardize)
            descend_by_halving(trial_gradient, small, eta0)
            return small.objective

        return best_step(trial, progress.scale or 1.0, gradient.budget)


@dataclass(frozen=True)
class DescentPoint:
    """A model in the centred metric, with its scores and its loss (without penalty)."""

    w: Array
    c: Array
    scores: list[Array]
    loss: float

    def beyond(self, previous: DescentPoint, beta: float, gradient: FullGradient) -> DescentPoint:
        """Return the point that lies beta times the last step beyond this one."""
        if beta == 0.0:
            return self
        pairs = zip(self.scores, previous.scores, strict=True)
        scores = [s + beta * (s - p) for s, p in pairs]
        w, c = self.w + beta * (self.w - previous.w), self.c + beta * (self.c - previous.c)
        return DescentPoint(w, c, scores, gradient.loss(scores))


class FullGradient:
    """Loss, gradient and proximal steps of a problem over row blocks."""

    def __init__(self, problem: Problem, blocks: Blocks, budget: Budget, standardize: bool) -> None:
        self.problem, self.blocks, self.budget = problem, blocks, budget
        self.center, self.factor = np.zeros(blocks.n_columns), np.ones(blocks.n_columns)
        if standardize:
            self.center, self.factor = column_spread(problem, blocks)

    def point(self, w: Array, c: Array) -> DescentPoint:
        """Return the point with these parameters."""
        b = c - self.center @ w
        scores = [times(block.X, w) + b for block in self.budget.watch(self.blocks)]
        return DescentPoint(w, c, scores, self.loss(scores))

    def at(self, w: Array, b: Array) -> DescentPoint:
        """Return the point of a model with intercept b."""
        return self.point(w, b + self.center @ w)

    def model(self, point: DescentPoint) -> tuple[Array, Array]:
        """Return w and the intercept of a point."""
        return point.w, point.c - self.center @ point.w

    def loss(self, scores: list[Array]) -> float:
        """Return sum_i q_i loss(s_i, y_i)."""
        total = 0.0
        with np.errstate(all="ignore"):
            for block, score in zip(self.blocks, scores, strict=True):
                value = self.problem.loss.value(score, self.problem.targets(block))
                total += float((normalized_weights(block, self.blocks) @ value).sum())
        return total if math.isfinite(total) else math.inf

    def value(self, point: DescentPoint) -> float:
        """Return the objective of a point."""
        return point.loss + self.problem.penalty_value(point.w)

    def slope(self, point: DescentPoint) -> tuple[Array, Array]:
        """Return the gradient of the loss in w and c."""
        slope_w, slope_c = np.zeros_like(point.w), np.zeros_like(point.c)
        pairs = zip(self.budget.watch(self.blocks), point.scores, strict=True)
        for block, score in pairs:
            u = self.problem.loss.gradient(score, self.problem.targets(block))
            u = normalized_weights(block, self.blocks)[:, None] * u
            slope_w += transposed_times(block.X, u)
            slope_c += u.sum(axis=0)
        slope_w -= np.outer(self.center, slope_c)
        return slope_w, slope_c if self.problem.fit_intercept else np.zeros_like(slope_c)

    def step(self, point: DescentPoint, slope: tuple[Array, Array], eta: float) -> DescentPoint:
        """Return the point one proximal step further."""
        steps: Any = eta * self.factor[:, None]
        w = point.w - steps * slope[0]
        if self.problem.penalised or self.problem.penalty.positive:
            w = self.problem.penalty.prox(w, steps * self.problem.alpha)
        return self.point(w, point.c - eta * slope[1])

    def promises(
        self, start: DescentPoint, slope: tuple[Array, Array], end: DescentPoint, eta: float
    ) -> bool:
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


def smooth_step(gradient: FullGradient, point: DescentPoint) -> float:
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


def descend_smooth(
    gradient: FullGradient, progress: FirstOrderProgress, eta0: float | None, momentum: bool
) -> float:
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


def descend_by_schedule(gradient: FullGradient, progress: FirstOrderProgress, rule: StepRule) -> None:
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


def descend_by_halving(gradient: FullGradient, progress: FirstOrderProgress, eta0: float) -> None:
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
