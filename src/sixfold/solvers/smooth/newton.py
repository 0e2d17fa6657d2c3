"""Newton's method for smooth losses with no penalty or the squared one.

    step:  (sum_i q_i l''(s_i) z_i z_i' + l2 D) delta = -(sum_i q_i l'(s_i) z_i + l2 D theta),    z = (x, 1)

with theta = (w, b) and D the identity without its entry for b; for softmax the same with one block a pair of
classes. When to stop and how far to go along a step is told in :mod:`sixfold.solvers.smooth.descent`. Three
things make it fast on tall tables:

*A sample first.* Some thousand rows bring theta to within the noise of the sample for a fraction of the cost;
where there are enough, more of them take it one step further, and their curvature serves for the steps over
all rows for as long as it brings what it should: at 200,000 x 100 that of all rows is never formed.

*One pass* gives value, slope and curvature (:mod:`sixfold.solvers.smooth.objective`).

*The curvature is kept* while it serves: a step with that of an earlier point, and what the steps since have
shown of it (as L-BFGS does), needs value and slope only, 8 ms instead of 32 at 200,000 x 100 on one thread.
Whether it pays is seen from how much shorter the last
step became.

*Products first.* Where there are not many more rows than columns, a product with the curvature costs so much
less than the curvature and its factor that conjugate gradients find the first steps
(:mod:`sixfold.solvers.smooth.newton_cg`), for as long as each takes less time than the factor would: 3 ms
instead of 16 for 300 x 300.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget, BudgetExhausted
from sixfold.certificate import Certificate
from sixfold.data.blocks import Blocks, EveryNth
from sixfold.risk.problem import Problem
from sixfold.solvers.base import Solution
from sixfold.solvers.linalg import SymmetricFactor
from sixfold.solvers.smooth.descent import (
    CAUTION,
    MAX_HESSIAN_COLUMNS,
    MAX_SOFTMAX,
    SmoothProgress,
    SmoothSolver,
    gap_estimate,
    is_noise,
    line_search,
)
from sixfold.solvers.smooth.lbfgs import Memory
from sixfold.solvers.smooth.metrics import Metric
from sixfold.solvers.smooth.newton_cg import truncated_newton
from sixfold.solvers.smooth.objective import ObjectivePoint
from sixfold.solvers.smooth.small_fit import (
    certify_with_curvature,
    small_fit,
    suits_known_curvature,
    suits_small_fit,
)

Array = NDArray[Any]

SAMPLE_ROWS_A_COLUMN = 50  # for the first guess
CURVATURE_ROWS_A_COLUMN = 400  # whose curvature is within a tenth of that of all rows
FEWER_FOR_CURVATURE = 3  # times fewer rows than there are, or their curvature does not pay
SAMPLED_AT_LEAST = 8  # times fewer rows than there are, or there is no first guess
SAMPLED_AT_MOST = 100  # of 2,000,000 x 30, 20,000 rows save one of the 3 passes that 2,000 leave
CHEAPER = 30  # entries of theta a pass for value and slope costs a pass with curvature as much again
LONG_STEP = 1e-3  # of the scale: steps that promise more need the curvature at their end too
MOST_STEPS = 40  # two classes that a plane separates take 30 at C = 1e12
CHEAP_PASS = 1 << 23  # multiplications of a pass with curvature, about 0.3 ms
FEW_ROWS = 2  # times the columns: up to so many, products with the curvature come before the curvature
PRODUCTS_A_FACTOR = 1 / 6  # times the columns: those that take as long as the curvature and its factor


class Newton(SmoothSolver):
    """Newton's method with a line search."""

    name: ClassVar[str] = "newton"
    title: ClassVar[str] = "Newton"
    every_step: ClassVar[bool] = True

    def suits(self, problem: Problem, blocks: Blocks) -> bool:
        """Return whether the matrix of second derivatives is affordable."""
        if problem.loss.labels != "class":
            return blocks.n_columns <= MAX_HESSIAN_COLUMNS
        return problem.penalised and (blocks.n_columns + 1) * problem.n_scores(blocks) <= MAX_SOFTMAX

    def rescues(self, problem: Problem, blocks: Blocks) -> bool:
        """Return whether conjugate gradients came first, and ended short, where the matrix is affordable."""
        return problem.loss.labels == "sign" and blocks.sparse and self.suits(problem, blocks)

    def solve(
        self, problem: Problem, blocks: Blocks, budget: Budget, start: Solution | None = None
    ) -> Solution:
        """Minimise the problem, small tables by one native call."""
        if start is None and self.start is None and suits_small_fit(problem, blocks, budget):
            size = (blocks.n_columns + 1) * problem.n_scores(blocks) // blocks.n_targets
            found = small_fit(problem, blocks, budget, self.title, _sampled(blocks, size))
            if found is not None:
                return found
        if self.outside is None and suits_known_curvature(problem, blocks):
            return self._solve_with_likelihood(problem, blocks, budget, start)
        return super().solve(problem, blocks, budget, start)

    def _solve_with_likelihood(
        self, problem: Problem, blocks: Blocks, budget: Budget, start: Solution | None
    ) -> Solution:
        """Return the solution with a bound, and standard errors, from one more pass: 4 ms instead of 18."""
        likelihood = None

        def outside(w: Array, b: Array) -> Certificate | None:
            nonlocal likelihood
            found = certify_with_curvature(problem, w, b, blocks, budget)
            if found is None:
                return None
            certificate, likelihood = found
            return certificate

        solution = SmoothSolver.solve(self.certified_by(outside), problem, blocks, budget, start)
        return replace(solution, likelihood=likelihood)

    def descend(self, objective: Any, theta: Array, progress: SmoothProgress) -> tuple[Array, Array]:
        """Minimise one target, starting from the minimum of a sample where there are many rows."""
        blocks = objective.blocks
        every = _sampled(blocks, theta.size)
        if every > 1 and progress.caution == CAUTION[0]:
            limits = Budget(tol=1e-3, max_iter=20, time_limit=min(progress.budget.seconds_left, 1e9))
            limits.flag = progress.budget.flag
            sample = objective.of_rows(EveryNth(blocks, every), limits)
            if sample.blocks.weight_sum > 0:
                share = progress.scale / len(progress.gaps)
                theta, _ = _descend(sample, theta, SmoothProgress(limits, share, [share], [share], 0, 1.0))
                theta, factor = _wider_sample(objective, theta, limits)
                return _descend(objective, theta, progress, 1.01 * progress.values[progress.target], factor)
        if _products_pay(objective, theta.size):
            most = int(PRODUCTS_A_FACTOR * theta.size)
            theta, step, ended = truncated_newton(objective, theta, progress, most)
            if ended:
                return theta, step
        return _descend(objective, theta, progress)


def _sampled(blocks: Blocks, unknowns: int) -> int:
    """Return how many rows one of the sample stands for; 1 where there are too few rows for one."""
    sampled = max(SAMPLE_ROWS_A_COLUMN * unknowns, 2000, blocks.n_rows // SAMPLED_AT_MOST)
    every = blocks.n_rows // sampled
    return every if every >= SAMPLED_AT_LEAST else 1


def _wider_sample(objective: Any, theta: Array, limits: Budget) -> tuple[Array, SymmetricFactor | None]:
    """Return where one step of Newton's method over many of the rows leads, and their curvature there.

    None where there are not enough rows for it to pay.
    """
    every = objective.blocks.n_rows // (CURVATURE_ROWS_A_COLUMN * theta.size)
    if every < FEWER_FOR_CURVATURE or not objective.l2 > 0:
        return theta, None
    copied = objective.blocks.streamed  # else two passes over a quarter of X would need as much memory
    sample = objective.of_rows(EveryNth(objective.blocks, every, copied), limits)
    if not sample.blocks.weight_sum > 0:
        return theta, None
    try:
        point = sample.at(theta, curvature=True)
        theta = theta + _newton_step(sample.factor(point.matrix), point.slope)[0]
        return theta, sample.factor(sample.at(theta, curvature=True).matrix)
    except BudgetExhausted:
        return theta, None


def _products_pay(objective: Any, size: int) -> bool:
    """Return whether products with the curvature are far cheaper than the curvature, and serve.

    They do not for the squared hinge: it consists of quadratics, to whose minima only exact steps lead.
    """
    rows = objective.blocks.n_rows
    few = rows <= FEW_ROWS * size and rows * size**2 > CHEAP_PASS
    return few and objective.l2 > 0 and objective.problem.loss.name == "logistic"


def _descend(
    objective: Any,
    theta: Array,
    progress: SmoothProgress,
    most: float = math.inf,
    factor: SymmetricFactor | None = None,
) -> tuple[Array, Array]:
    """Return the minimiser of one target from theta on, and the step that would come next.

    Where theta has a value above ``most``, the constant model is the better start. ``factor`` is that of a
    curvature to begin with, about that at theta.
    """
    point, step, steps = None, np.zeros_like(theta), 0
    try:
        point = objective.first(theta, curvature=factor is None)
        if not point.value <= most:
            point = objective.at(objective.start(), curvature=True)
        before = math.inf
        if factor is None or point.matrix is not None:
            factor = objective.factor(point.matrix)
        memory = Memory(factor)
        while True:
            step, decrease = _newton_step(memory, point.slope)
            gap = gap_estimate(objective, point, decrease)
            done = progress.record(point.value, gap)
            if (done and not _doubles_digits(objective, decrease, before, progress)) or not decrease > 0:
                if gap <= progress.enough and progress.budget.stopped_by is None:
                    point = _with_last_step(objective, point, step)
                break
            steps += 1
            if steps > MOST_STEPS and progress.budget.another_follows:
                progress.crawls = True
                break
            old = point.matrix is None
            if old and math.isfinite(before) and not _serves(decrease / before, progress.excess, theta.size):
                memory, old = Memory(objective.factor(objective.curvature(point))), False
                step, decrease = _newton_step(memory, point.slope)
            far = point.matrix is not None and decrease > LONG_STEP * progress.scale
            end = line_search(objective, point, step, decrease, far)
            if end is None and old:  # that of a sample may know nothing of a column
                memory = Memory(objective.factor(objective.curvature(point)))
                step, decrease = _newton_step(memory, point.slope)
                end = line_search(objective, point, step, decrease, False)
            if end is None or (
                is_noise(decrease, point) and not _newton_step(memory, end.slope)[1] < 0.5 * decrease
            ):
                break
            memory.add(end.theta - point.theta, end.slope - point.slope)
            point, before = end, decrease
            if point.matrix is not None:
                memory = Memory(objective.factor(point.matrix))
    except BudgetExhausted:
        pass
    return theta if point is None else point.theta, step


def _with_last_step(objective: Any, point: ObjectivePoint, step: Array) -> ObjectivePoint:
    """Return the point after a step that no curvature will be asked for.

    Where the gap is known to be small it costs nothing to take it; but that of a squared hinge may bring rows
    into the margin whose curvature it does not know of, and a slope whose gap is 100 times the tolerance.
    """
    if objective.problem.loss.name != "squared_hinge":
        return replace(point, theta=point.theta + step)
    end: ObjectivePoint = objective.at(point.theta + step)
    return end if gap_estimate(objective, end, 0.0) < gap_estimate(objective, point, 0.0) else point


def _doubles_digits(objective: Any, decrease: float, before: float, progress: SmoothProgress) -> bool:
    """Return whether another step is worth its pass though the tolerance is met.

    On small tables it always is. Without a penalty the coefficients themselves are what is asked for, and
    near the minimum a step or two bring all their digits. On the way to infinity, where there is no minimum,
    decreases fall by e only.
    """
    small = 1e-26 * progress.scale < decrease <= 0.25 * before
    blocks = objective.blocks
    cheap = blocks.n_rows * blocks.n_columns**2 * len(progress.gaps) <= CHEAP_PASS
    wanted = (objective.l2 == 0 or cheap) and progress.budget.stopped_by is None
    return wanted and small and math.isfinite(before)


def _serves(contraction: float, excess: float, size: int) -> bool:
    """Return whether steps with an old curvature come to the end sooner than one with the new would.

    ``contraction`` is that of the last step's decrease, of which the next, now that the curvature is older,
    may have up to four times as much; ``excess`` is by what the gap has to shrink.
    """
    contraction *= 4.0
    return contraction < 0.1 and math.log(max(excess, 1.0)) <= -math.log(contraction) * size / CHEAPER


def _newton_step(metric: Metric, slope: Array) -> tuple[Array, float]:
    """Return Newton's step and by how much the objective falls along it at first."""
    delta = metric.solve(-slope)
    return delta, -float(np.vdot(slope, delta))
