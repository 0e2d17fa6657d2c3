"""Newton's method for dense tables of few columns: one native call from start to end.

A step of 100 x 4 takes 0.3 us, and a call from Python to a loop of it 10 to 50. So the whole descent is one
loop (native/linear/smooth/newton_fit.cpp), whose last pass leaves the sums behind the objective and the bound
at the model as it is kept (:mod:`sixfold.risk.slope_bound`). Where there are many rows it begins at the
minimum of a sample. There is a squared penalty, or none and the logistic loss: then the curvature at the
model is kept as well, which balances the slopes in the bound, shows that no column depends on others, and is
what standard errors are made of.

It does what :class:`sixfold.solvers.smooth.newton.Newton` does, without asking anybody on the way but
callbacks. Whatever does not come to its end there, a line along which nothing falls, a matrix without factor,
a bound that does not show convergence, is left to that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget, Record
from sixfold.certificate import Certificate
from sixfold.data.blocks import Blocks, EveryNth
from sixfold.data.column_means import ColumnMeans
from sixfold.risk.problem import Problem
from sixfold.risk.slope_bound import SlopeSums, certify_slopes
from sixfold.solvers.base import OUT_OF_TIME, Likelihood, Solution
from sixfold.solvers.least_squares.moments import rough_mean
from sixfold.solvers.passes import LOSS_CODES
from sixfold.solvers.smooth.descent import hurried
from sixfold.solvers.smooth.slope_sums import LOSSES, SUMS

Array = NDArray[Any]

DONE, STOPPED = 0, 1  # how a descent ends; else it is stuck
MOST_STEPS = 50  # of one target; fewer that are asked for are counted in Python
MOST_VALUES = 1 << 24  # of the table, 1.5 million rows of ten columns
# From so many columns on, passes over packed rows, of which few need the curvature, take less time where
# there are more products: 25 instead of 28 ms at 100,000 x 30, two classes, 3.9 instead of 4.5 at 2,000 x 100
MANY_COLUMNS, FEW_PRODUCTS = 24, 12_000_000
MOST_UNKNOWNS = 300  # of one system: beyond, LAPACK factors it faster
MOST_PRODUCTS = 1 << 30  # of columns a step, 20 ms on one thread: nothing stops a pass
SAMPLE_TOL = 1e-3  # of the first guess
SETTLED = 1e-3  # change of any score in the last step, of a descent that runs off to infinity about 1

Report = Callable[[int, float, float], bool]


def suits_small_fit(problem: Problem, blocks: Blocks, budget: Budget) -> bool:
    """Return whether the native descent may take the place of the one in Python."""
    losses = LOSSES if problem.l2 > 0 else ("logistic",)
    if problem.loss.name not in losses or not problem.penalty.quadratic:
        return False
    if blocks.sparse or blocks.streamed or budget.tol <= 0 or budget.exhausted():
        return False
    if blocks.n_rows < blocks.n_columns:  # fewer unknowns in coordinates of the rows
        return False
    width = unknowns = blocks.n_columns + 1
    if blocks.n_rows * width > MOST_VALUES or width > MOST_UNKNOWNS:
        return False
    pairs = blocks.n_targets
    if problem.loss.labels == "class":
        classes = problem.n_scores(blocks)
        unknowns, pairs = classes * width, classes * (classes - 1) // 2
    elif width > MANY_COLUMNS and blocks.n_rows * width**2 > FEW_PRODUCTS:
        return False
    enough_steps = budget.max_iter is None or budget.max_iter >= MOST_STEPS
    return enough_steps and unknowns <= MOST_UNKNOWNS and blocks.n_rows * width**2 * pairs <= MOST_PRODUCTS


def small_fit(
    problem: Problem, blocks: Blocks, budget: Budget, title: str, every: int = 1
) -> Solution | None:
    """Return the minimum and its certificate; None where the descent has not come to its end.

    It begins at the minimum of each ``every``-th row, where that is not all.
    """
    scores = problem.n_scores(blocks)
    descent = _Descent(problem, scores, blocks.n_columns)
    scale = descent.scale
    if every > 1:
        sample = EveryNth(blocks, every)
        if sample.weight_sum > 0:
            end, _ = descent.run(sample, SAMPLE_TOL * scale, budget, None)
            descent.started = end == DONE
    history = _History(budget, descent.targets, scale)
    before = budget.seconds
    end, steps = descent.run(blocks, budget.tol * scale, budget, history.report if budget.callbacks else None)
    w, b, certificate, dual, likelihood = descent.w, descent.b, None, None, None
    if end == DONE:
        sums = descent.sums()
        certificate = certify_slopes(problem, w, sums, budget.tol, scale)
        if certificate is None and problem.l2 == 0 and descent.move <= SETTLED:  # rounded to single precision
            found = problem.certify_with_dual("duality gap", w, b, blocks, budget.tol, scale=scale)
            certificate, dual = found if found[0].converged else (None, None)
        if certificate is not None and problem.l2 == 0 and descent.scores == 1:
            likelihood = descent.likelihood(sums, blocks)
    elif end == STOPPED and (budget.exhausted() or budget.stopped_by is not None):
        if hurried(budget, blocks, w):
            certificate = problem.certify_zero(w, b, blocks, scale, budget.tol, (OUT_OF_TIME,))
        else:
            certificate = problem.certify("duality gap", w, b, blocks, budget.tol, scale=scale)
    if certificate is None:
        return None
    history.add(steps, before)
    rows = blocks.n_rows if descent.weight is None else int(np.count_nonzero(descent.weight))
    means = ColumnMeans(descent.means, rows, blocks.weight_sum)
    wrong = descent.wrong if descent.targets == 1 else None
    last_move = descent.move if end == DONE else math.inf
    return Solution(
        w, b, certificate, title, len(budget.history), dual, None, last_move, means, wrong, (), likelihood
    )


def suits_known_curvature(problem: Problem, blocks: Blocks) -> bool:
    """Return whether the bound without a penalty may come from the curvature of one pass."""
    if problem.l2 > 0 or problem.loss.name != "logistic" or not problem.penalty.quadratic:
        return False
    if blocks.sparse or blocks.streamed or blocks.n_targets > 1 or blocks.n_rows < blocks.n_columns:
        return False
    width = blocks.n_columns + 1
    few = blocks.n_rows * width <= MOST_VALUES and width <= MOST_UNKNOWNS
    return few and blocks.n_rows * width**2 <= MOST_PRODUCTS


def certify_with_curvature(
    problem: Problem, w: Array, b: Array, blocks: Blocks, budget: Budget
) -> tuple[Certificate, Likelihood | None] | None:
    """Return the certificate of a model without a penalty, and what standard errors are made of.

    None where sums over the rows do not show convergence.
    """
    descent = _Descent(problem, 1, blocks.n_columns)
    descent.w[:], descent.b[:] = w, b
    descent.means[:] = rough_mean(blocks)
    end, _ = descent.run(blocks, budget.tol * descent.scale, budget, None, most_steps=0)
    if end != DONE:
        return None
    sums = descent.sums()
    certificate = certify_slopes(problem, w, sums, budget.tol, descent.scale)
    return None if certificate is None else (certificate, descent.likelihood(sums, blocks))


class _Descent:
    """The native descent and what it leaves: a model and the sums behind its objective and bound."""

    def __init__(self, problem: Problem, scores: int, columns: int) -> None:
        self.problem, self.scores, self.started = problem, scores, False
        classes = problem.loss.labels == "class"
        self.targets = 1 if classes else scores
        at_zero = math.log(2.0) if problem.loss.name == "logistic" else 0.5
        self.scale = math.log(scores) if classes else scores * at_zero
        self.w, self.slope = np.empty((columns, scores)), np.empty((columns, scores))
        self.b, self.means = np.empty(scores), np.empty(columns)
        self.lengths, self.reach = np.empty(columns), np.empty(columns)
        order = columns + problem.fit_intercept
        self.curvature = np.zeros((scores, order, order)) if problem.l2 == 0 else None
        self.of_scores = np.empty((scores, SUMS))
        self.weight: Array | None = None
        self.depth, self.wrong, self.log_chance, self.largest, self.move = 0, 0, 0.0, 0.0, 0.0

    def run(
        self,
        blocks: Blocks,
        enough: float,
        budget: Budget,
        report: Report | None,
        most_steps: int = MOST_STEPS,
    ) -> tuple[int, list[tuple[int, float, float, float]]]:
        """Go to where the gap is estimated to be ``enough``; return how it ends, and the steps.

        With no steps at all only the sums at the model as it is are found, about the means as they are.
        """
        block, problem = blocks.whole(), self.problem
        self.weight = block.float64_weight
        end, steps, self.depth, self.wrong, self.log_chance, self.largest, self.move = core.newton_fit(
            block.X,
            block.y,
            self.weight,
            blocks.weight_sum,
            LOSS_CODES.index(problem.loss.name),
            problem.l2,
            problem.fit_intercept,
            enough / self.targets,
            self.scale / self.targets,
            most_steps,
            self.w,
            self.b,
            self.means,
            self.slope,
            self.lengths,
            self.reach,
            self.of_scores,
            self.curvature,
            self.started,
            report,
            budget.seconds_left,
            budget.flag,
        )
        return end, steps

    def sums(self) -> SlopeSums:
        """Return the sums at the model."""
        known = self.depth, self.log_chance, self.lengths, self.slope
        sums = SlopeSums(*known, *self.of_scores.T)
        sums.reach, sums.curvature = self.reach, self.curvature
        return sums

    def likelihood(self, sums: SlopeSums, blocks: Blocks) -> Likelihood | None:
        """Return what standard errors are made of; None where columns might depend on others."""
        d, intercept = self.lengths.size, self.problem.fit_intercept
        centre = self.means if intercept else np.zeros(d)
        if self.curvature is None or not sums.independent(centre, float(np.finfo(blocks.dtype).eps)):
            return None
        # H is of z = (x - m, 1), and (x, 1) = A z.
        A = np.eye(d + intercept)
        A[:d, d:] = centre[:, None]
        upper = np.triu(self.curvature[0])
        H = upper + np.triu(upper, 1).T
        total, second = blocks.weight_sum, float(sums.mass[0])
        return Likelihood(total * (A @ H @ A.T), total * float(sums.loss[0]), total, second, self.largest)


class _History:
    """Records of all targets together, as each comes down."""

    def __init__(self, budget: Budget, targets: int, scale: float) -> None:
        self.budget, self.scale, self.newest = budget, scale, -1
        self.values = [scale / targets] * targets
        self.gaps = list(self.values)

    def report(self, target: int, value: float, gap: float) -> bool:
        """Tell the callbacks of a step, and return whether the work has to end."""
        if target != self.newest:
            self.budget.new_part()
            self.newest = target
        self.values[target], self.gaps[target] = value, gap
        self.budget.record(math.fsum(self.values), math.fsum(self.gaps), self.scale)
        return self.budget.stopped_by is not None

    def add(self, steps: list[tuple[int, float, float, float]], before: float) -> None:
        """Note steps that nobody asked to hear of, in seconds after ``before``."""
        history = self.budget.history
        for target, seconds, value, gap in steps:
            self.values[target], self.gaps[target] = value, gap
            of_all = math.fsum(self.values), math.fsum(self.gaps)
            history.append(Record(len(history) + 1, before + seconds, *of_all))
