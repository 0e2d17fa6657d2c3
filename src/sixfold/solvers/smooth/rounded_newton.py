"""Newton's method for penalties with absolute values, where coordinate descent ends short.

    minimise    sum_i q_i loss(z_i.theta, y_i) + sum_j (l2_j theta_j^2 / 2 + h_j(theta_j))

With a barrier of factor 1/t for |theta_j| <= v_j, whose best v_j is known (Koh, Kim and Boyd 2007),

    h(theta) = min_v  l1 v - log(v^2 - theta^2) / t,      s = sqrt(1 + (t l1 theta)^2)
    h'(theta) = t l1^2 theta / (1 + s),                   h''(theta) = t l1^2 / (s (1 + s))

takes the place of l1 |theta|. It is within 2 / t of it, its slopes are between -l1 and l1, and t grows as the
gap falls. Steps are those of :mod:`sixfold.solvers.smooth.reweighted`, on scaled rows: neither the units of
columns nor next to no penalty cost digits, and the dual point that a step leaves has slopes -h' - l2 theta.
Coefficients whose slope is far from l1 are 0 in the end.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget, BudgetExhausted
from sixfold.data.blocks import Blocks
from sixfold.risk.problem import BALANCE, Problem
from sixfold.solvers.base import Solution
from sixfold.solvers.smooth.descent import root_of_slope
from sixfold.solvers.smooth.objective import inner
from sixfold.solvers.smooth.reweighted import EXACT, MAX_FACTORED, MAX_ROWS, Reweighted, targets_of
from sixfold.solvers.smooth.scaled_rows import ScaledRows
from sixfold.solvers.threads import single_threaded_blas

Array = NDArray[Any]

MOST_IDLE = 10  # full steps without a smaller gap, after which only rounding is left
GROWTH = 10.0
FAR = 0.5  # steps shorter than that are far from the path
ROUGH = 1e-10  # of the squared decrement, far from the path
KEPT_OFF = 0.9  # of l1 at most
# Parts of the gap that is asked for, and steps towards them: where the first does not tell which coefficients
# are 0, or rounding adds too much to it, some more.
STAGES = ((0.1, 150), (1e-3, 15))
ZERO = 0.5  # of l1: coefficients of smaller slopes


class RoundedNewton:
    """Newton's method on rounded absolute values."""

    name: ClassVar[str] = "rounded-newton"
    title: ClassVar[str] = "Newton on rounded absolute values"
    needs: ClassVar[tuple[str, ...]] = ("gradient", "curvature", "conjugate")
    notices_nonfinite: ClassVar[bool] = False

    def objection(self, problem: Problem) -> str | None:
        """Return why this solver cannot minimise the problem, or None."""
        if not problem.loss.smooth:
            return "the loss has kinks, where it has no curvature"
        if problem.l1 == 0 or problem.penalty.positive:
            return "it minimises penalties with absolute values, without w >= 0"
        return None

    def suits(self, problem: Problem, blocks: Blocks) -> bool:
        """Return False: coordinate descent is faster where it gets there."""
        return False

    def rescues(self, problem: Problem, blocks: Blocks) -> bool:
        """Return whether the matrix of second derivatives, or one of the rows, can be factored."""
        scores = problem.n_scores(blocks) if problem.loss.labels == "class" else 1
        few = (blocks.n_columns + 1) * scores <= MAX_FACTORED
        return few or blocks.n_rows * scores**2 <= MAX_ROWS

    def solve(
        self, problem: Problem, blocks: Blocks, budget: Budget, start: Solution | None = None
    ) -> Solution:
        """Minimise the problem, one target after the other, from 0 where h is smoothest."""
        rows, scores = ScaledRows(problem, blocks), problem.n_scores(blocks)
        scale = problem.constant_objective(blocks)
        parts = targets_of(problem, scores)
        with single_threaded_blas(min(blocks.n_columns, blocks.n_rows) + 1):
            paths = [
                _Path(Reweighted(problem, rows, blocks, budget, part.start), budget, scale, len(parts))
                for part in parts
            ]
            for share, steps in STAGES:
                for path in paths:
                    budget.new_part()
                    path.follow(share, steps)
                found = self._solution(rows, paths, sparse=True)
                if found.certificate.converged or budget.exhausted():
                    break
            other = found if found.certificate.converged else self._solution(rows, paths, sparse=False)
        return min(found, other, key=lambda one: one.certificate.gap)

    def _solution(self, rows: ScaledRows, paths: list[_Path], sparse: bool) -> Solution:
        """Return the ends of the paths, certified."""
        problem, blocks, budget, scale = paths[0].target.problem, rows.blocks, paths[0].budget, paths[0].scale
        theta, dual = (
            [path.sparse() if sparse else path.theta for path in paths],
            [path.dual for path in paths],
        )
        w, b = rows.model(np.hstack(theta))
        u = np.hstack(dual)
        certificate, kept = problem.certify_with_dual("duality gap", w, b, blocks, budget.tol, u, scale)
        return Solution(w, b, certificate, self.title, len(budget.history), kept)


def rounded_slopes(w: Array, l1: Any, t: float) -> tuple[Array, Array]:
    """Return h' and h''."""
    s = np.hypot(1.0, t * l1 * w)
    return t * l1**2 * w / (1.0 + s), t * l1**2 / (s * (1.0 + s))


class _Path:
    """The way of one target from 0, and the best point on it."""

    def __init__(self, target: Reweighted, budget: Budget, scale: float, targets: int) -> None:
        self.target, self.budget, self.scale = target, budget, scale
        self.tolerance = budget.tol * scale / targets
        scores, unit = (target.objective.classes if target.classes else 1), target.rows.scale[:, None]
        self.l1, self.l2 = target.problem.l1 / unit, target.problem.l2 / np.square(unit)
        self.here = self.theta = np.zeros((unit.size + 1, scores))
        self.dual = np.zeros((target.y.size, scores))
        self.zero = np.ones((unit.size, scores), dtype=bool)
        self.t, self.gap, self.inside = 2.0 * self.zero.size / scale, math.inf, 1.0

    def sparse(self) -> Array:
        """Return the best point without coefficients that are 0 in the end, as far as slopes tell."""
        theta = self.theta.copy()
        theta[:-1][self.zero] = 0.0
        return theta

    def _derivatives(self, theta: Array, t: float) -> tuple[Array, Array]:
        """Return those of the penalty, first and second, with those of the constants 0."""
        w, none = theta[:-1], np.zeros((1, theta.shape[1]))
        first, second = rounded_slopes(w, self.inside * self.l1, t)
        return np.vstack([self.l2 * w + first, none]), np.vstack([self.l2 + second, none])

    def follow(self, share: float, steps: int) -> None:
        """Go on until the gap is this part of the tolerance, or nothing is gained any more."""
        with suppress(BudgetExhausted):  # which the caller notes
            self._follow(share * self.tolerance, steps)

    def _follow(self, enough: float, steps: int) -> None:
        target, theta, idle, unsettled, far = self.target, self.here, 0, True, True
        size, score = self.zero.size, target.rows.times(theta)
        for _ in range(steps):
            self.budget.check()
            # A penalty that hardly counts may count for less: slopes then keep off their limits, and that
            # they are rounded costs nothing.
            penalty = float((self.l1 * np.abs(theta[:-1])).sum())
            self.inside = 1.0 - min(KEPT_OFF, 0.5 * STAGES[0][0] * self.tolerance / max(penalty, 1e-300))
            if target.problem.loss.name == "squared_hinge":
                target.smoothing = size / self.t
            first, second = self._derivatives(theta, self.t)
            target.penalty = second
            pull = np.divide(first, second, out=np.zeros_like(first), where=second > 0)
            step = target.step(pull, score, rest=ROUGH if far else EXACT, exact=idle > 0)
            dual = self._balanced(step.dual)
            gap = self._gap(theta, score, dual)
            idle = 0 if gap < 0.9 * self.gap or unsettled else idle + 1
            if gap < self.gap:
                self.theta, self.dual, self.gap = theta, dual, gap
                self.zero = np.abs(first[:-1] - self.l2 * theta[:-1]) < ZERO * self.inside * self.l1
            self.budget.record(self._value(theta, score), min(self.gap, self.scale), self.scale)
            if self.gap <= enough or idle > MOST_IDLE or self.budget.exhausted():
                return
            along = target.rows.times(step.delta)
            length = self._length(theta, step.delta, score, along)
            if length == 0.0:
                return
            self.here = theta = theta + length * step.delta
            score = score + length * along
            before, far = self.t, length < FAR
            if not far:  # on its path an interior point leaves a gap of 2 / t a coordinate
                self.t = max(before, GROWTH * min(2.0 * size / max(gap, 1e-300), before))
            unsettled = length < 1.0 or self.t > before

    def _balanced(self, u: Array) -> Array:
        """Return the dual point as a bound takes it: the intercept has no slope."""
        target = self.target
        if not target.problem.fit_intercept:
            return u
        y = target.y if target.classes else target.y[:, None]
        return BALANCE[target.problem.loss.labels](u, y, target.rows.q)

    def _value(self, theta: Array, score: Array) -> float:
        loss = float(self.target.rows.q @ self.target._of_scores(self.target.problem.loss.value, score))
        w = theta[:-1]
        return loss + float((self.l1 * np.abs(w)).sum() + 0.5 * (self.l2 * w**2).sum())

    def _gap(self, theta: Array, score: Array, u: Array) -> float:
        """Return the gap at a dual point, made shorter where its slopes are too large."""
        target, w = self.target, theta[:-1]
        slope, shorter = -target.rows.transposed_times(target.rows.q[:, None] * u)[:-1], 1.0
        if not self.l2.any():
            shorter = 1.0 / max(float((np.abs(slope) / self.l1).max(initial=0.0)), 1.0)
        u, slope = shorter * u, shorter * slope
        loss = target.problem.loss
        terms = (
            loss.fenchel_young(score, u, target.y)
            if target.classes
            else loss.fenchel_young(score[:, 0], u[:, 0], target.y)
        )
        over = np.copysign(np.maximum(np.abs(slope) - self.l1, 0.0), slope)
        slack = self.l1 * np.abs(w) - w * (slope - over)
        squares = np.divide((over - self.l2 * w) ** 2, self.l2, out=np.zeros_like(w), where=self.l2 > 0)
        return float(target.rows.q @ terms + np.maximum(slack, 0.0).sum() + 0.5 * squares.sum())

    def _length(self, theta: Array, delta: Array, score: Array, along: Array) -> float:
        """Return how far along the step the slope of the rounded objective is nearly 0; 0 if nowhere."""
        if not np.isfinite(along).all():
            return 0.0
        slope, noise = self.target.line(
            score, along, lambda length: inner(self._derivatives(theta + length * delta, self.t)[0], delta)
        )
        first = slope(0.0)
        return root_of_slope(slope, noise, first) if first < 0.0 else 0.0
