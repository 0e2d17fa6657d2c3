"""Newton's method along a falling penalty, with exact systems and lengths: certain on tables of modest size.

    minimise  f(theta) + ridge |theta|^2 / 2      for ridge = 1e-2, 1e-4, ... and at last 0

in centred columns of mean square 1. From one ridge to the next a minimum moves by little that matters, so
that two or three steps lead from one to the other, however weak the penalty of the problem itself is. Going
there at once, the rows that shape the minimum are not those that have a curvature on the way: with fewer
rows inside the margin of the squared hinge than columns, or rows that are all but certain, steps are cut to
1e-5 of their length.

*The corner of the squared hinge* is smoothed as well, by less and less: with m = 1 - y s what a row is
short of the margin, its slope t = max(m, 0) is replaced by the t > 0 with t (t - m) = smoothing, as in an
interior point method for the dual. So all rows near the margin count, not only those inside: 20 steps a
target whatever C, where the corner takes hundreds as soon as fewer rows than columns are inside. The dual
point is one of the true loss all the same, and its gap is about the smoothing.

*Systems* are solved as least-squares problems on the rows (:mod:`sixfold.solvers.smooth.reweighted`), which
also gives the dual point. *Lengths* are roots of the slope along the step.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget, BudgetExhausted
from sixfold.data.blocks import Blocks
from sixfold.risk.problem import Problem
from sixfold.solvers.base import Solution
from sixfold.solvers.linalg import EPS
from sixfold.solvers.smooth.descent import objection_to_kinks, root_of_slope
from sixfold.solvers.smooth.objective import check_places, inner
from sixfold.solvers.smooth.reweighted import MAX_FACTORED, Reweighted, targets_of
from sixfold.solvers.smooth.scaled_rows import ScaledRows
from sixfold.solvers.threads import single_threaded_blas
from sixfold.solvers.wide_tables import RowCoordinates

Array = NDArray[Any]

FIRST_RIDGE, NEXT_RIDGE = 1e-2, 1e-2  # the next is so many times the last
FIRST_SMOOTHING, NEXT_SMOOTHING = 0.1, 0.1
SHARE = 0.25  # of the tolerance: what the gap has to be within in scaled columns
STAGE_DONE = 0.1  # of what ridge and smoothing add to the objective: the decrement at which the next come
SHORT = 0.5  # a step of less than this length has not arrived
MOST_IDLE_STEPS = 30  # that bring neither half the gap nor a twentieth of what the tolerance allows


class RefinedNewton:
    """Newton's method along a falling penalty."""

    name: ClassVar[str] = "refined-newton"
    title: ClassVar[str] = "refined Newton"
    needs: ClassVar[tuple[str, ...]] = ("gradient", "curvature", "conjugate")
    notices_nonfinite: ClassVar[bool] = True

    def objection(self, problem: Problem) -> str | None:
        """Return why this solver cannot minimise the problem, or None."""
        return objection_to_kinks(problem)

    def suits(self, problem: Problem, blocks: Blocks) -> bool:
        """Return whether there are several classes and no penalty: otherwise others are faster to the end."""
        return problem.loss.labels == "class" and not problem.penalised and self.rescues(problem, blocks)

    def rescues(self, problem: Problem, blocks: Blocks) -> bool:
        """Return whether the matrix of second derivatives can be factored."""
        scores = problem.n_scores(blocks) if problem.loss.labels == "class" else 1
        return (blocks.n_columns + 1) * scores <= MAX_FACTORED

    def solve(
        self, problem: Problem, blocks: Blocks, budget: Budget, start: Solution | None = None
    ) -> Solution:
        """Minimise the problem, one target after the other.

        ``start`` is not used: from the constant model on, the path is known to be short.
        """
        check_places(blocks)
        wide = RowCoordinates.of(problem, blocks, budget)
        if wide is not None:
            return wide.solve(self, start)
        rows, scale, scores = (
            ScaledRows(problem, blocks),
            problem.constant_objective(blocks),
            problem.n_scores(blocks),
        )
        theta, dual = np.zeros((blocks.n_columns + 1, scores)), np.zeros((blocks.n_rows, scores))
        parts, value, gap, last_move = targets_of(problem, scores), 0.0, 0.0, 0.0
        with single_threaded_blas(theta.shape[0]):
            for part in parts:
                budget.new_part()
                target = Reweighted(problem, rows, blocks, budget, part.start)
                path = _Path(target, budget, scale, len(parts), value, gap)
                if not budget.exhausted():
                    path.follow()
                theta[:, part], dual[:, part] = path.theta, path.dual
                value, gap, last_move = path.value, path.gap, max(path.last_move, last_move)
            w, b = rows.model(theta)
            certificate = problem.certify("duality gap", w, b, blocks, budget.tol, dual)
        return Solution(w, b, certificate, self.title, len(budget.history), dual, last_move=last_move)


class _Path:
    """The way of one target, and the best point on it.

    ``value`` and ``gap`` are those of all targets so far.
    """

    def __init__(
        self, target: Reweighted, budget: Budget, scale: float, targets: int, value: float, gap: float
    ) -> None:
        self.target, self.budget, self.scale = target, budget, scale
        self.enough = SHARE * budget.tol * scale / targets
        scores = target.objective.classes if target.classes else 1
        self.theta = np.zeros((target.penalty.shape[0], scores))
        self.dual = np.zeros((target.y.size, scores))
        self.before = value, gap
        self.value, self.gap = value + scale / targets, gap + scale / targets
        self.last_move = math.inf
        self._best = math.inf

    def follow(self) -> None:
        """Go on until the gap is small enough, or nothing is gained any more."""
        target, theta, ridge, lowest, idle = self.target, self.theta, FIRST_RIDGE, math.inf, 0
        score, nothing = target.rows.times(theta), max(self.enough, EPS * self.scale)
        if target.problem.loss.name == "squared_hinge":
            target.smoothing = FIRST_SMOOTHING
        try:
            while True:
                step = target.step(theta, score, ridge)
                value, gap = target.value(theta, score), math.inf
                if (
                    ridge == 0.0 or target.problem.l2 > 0
                ):  # else nothing but the ridge balances the dual point
                    gap = target.gap(theta, score, step.dual)
                idle = 0 if gap < 0.5 * self._best or value < lowest - 0.05 * self.enough else idle + 1
                lowest = min(value, lowest)
                self._keep(theta, step.dual, value, gap)
                self.budget.record(self.value, self.gap, self.scale)
                moves = target.rows.times(step.delta)
                self.last_move = float(np.abs(moves[target.rows.q > 0]).max())
                if self.budget.exhausted() or self._best <= self.enough or idle >= MOST_IDLE_STEPS:
                    return
                length = self._length(theta, score, step.delta, moves, ridge)
                theta = theta + length * step.delta
                score = target.rows.times(theta)
                added = ridge * inner(theta, theta)
                if length > SHORT and step.decrement <= STAGE_DONE * max(added, target.smoothing, nothing):
                    ridge *= NEXT_RIDGE if NEXT_RIDGE * added > nothing else 0.0
                    target.smoothing *= NEXT_SMOOTHING if target.smoothing > nothing else 0.0
        except BudgetExhausted:
            return

    def _keep(self, theta: Array, dual: Array, value: float, gap: float) -> None:
        """Keep the point with the smallest gap; no objective is negative, so that the value is one too."""
        if value < gap:
            dual, gap = np.zeros_like(dual), value  # the dual point whose bound is 0
        if gap < self._best:
            self._best, self.theta, self.dual = gap, theta, dual
            self.value, self.gap = self.before[0] + value, self.before[1] + gap

    def _length(self, theta: Array, score: Array, delta: Array, moves: Array, ridge: float) -> float:
        """Return where the slope along the step is 0."""
        penalty = self.target.penalty + ridge
        penalty[-1] = 0.0
        constant, linear = inner(penalty * theta, delta), inner(penalty * delta, delta)
        return root_of_slope(*self.target.line(score, moves, lambda length: constant + length * linear))
