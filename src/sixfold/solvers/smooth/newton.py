"""Newton's method for smooth losses with no penalty or the squared one.

    step:  (sum_i q_i l''(s_i) z_i z_i' + l2 D) delta = -(sum_i q_i l'(s_i) z_i + l2 D theta),    z = (x, 1)

with theta = (w, b) and D the identity without its entry for b; for softmax the same with one block a pair of
classes. The step is shortened until the objective falls enough (Armijo), on the line between two points whose
scores are known, so a trial costs no pass over X. Three things make it fast on tall tables:

*A sample first.* Some thousand rows bring theta to within the noise of the sample for a fraction of the cost.

*One pass* gives value, slope and curvature (:mod:`sixfold.solvers.smooth.objective`).

*The curvature is kept* while it serves: a step with that of an earlier point needs value and slope only,
19 ms instead of 65 at 200,000 x 100 on one thread. Whether it pays is seen from how much shorter the last
step became.

*When to stop.* With a penalty the gap at the slope g is |g|^2 / (2 l2); without one, half the squared Newton
decrement g'H^-1 g estimates it. Where that is small enough, the duality gap is computed, and decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget, BudgetExhausted
from sixfold.certificate import Certificate
from sixfold.data.blocks import Block, Blocks
from sixfold.risk.problem import Problem
from sixfold.solvers.base import OUT_OF_TIME, Solution, too_late_to_bound
from sixfold.solvers.linalg import Factor
from sixfold.solvers.smooth.dual_point import balanced_slopes
from sixfold.solvers.smooth.objective import (
    LinearObjective,
    Point,
    centre_and_spread,
    check_places,
)
from sixfold.solvers.smooth.softmax_objective import SoftmaxObjective
from sixfold.solvers.threads import single_threaded_blas

Array = NDArray[Any]

EPS = float(np.finfo(np.float64).eps)
SUFFICIENT = 1e-4  # share of the predicted decrease that a step has to bring (Armijo)
MAX_COLUMNS = 4000  # beyond, a d x d matrix per iteration is no longer cheap
MAX_SOFTMAX = 300  # columns times classes, likewise; more without penalty, where others converge slowly
SAMPLE_ROWS = 50  # a column: how many rows the first guess is made from
SAMPLED = 8  # times fewer rows than there are, or there is no first guess
CHEAPER = 30  # entries of theta a pass for value and slope costs a pass with curvature as much again
IDLE = 30  # iterations that gain nothing are enough to see that rounding allows no more
IDLE_GAIN = 1e-14  # of the scale
MOVED = 1.0  # log(1 / p) of a typical row, over the caution
FAR = 1e-3  # of the scale: steps that promise more need the curvature at their end too
CHEAP = 1 << 17  # numbers in X, a pass over which takes about 0.1 ms
CAUTION = (4.0, 1e3, 1e6)  # times the estimated gap must be within the tolerance before it is computed


class Newton:
    """Newton's method with a line search."""

    name: ClassVar[str] = "newton"
    needs: ClassVar[tuple[str, ...]] = ("gradient", "curvature", "conjugate")
    notices_nonfinite: ClassVar[bool] = True
    one_target: ClassVar[bool] = False

    def __init__(self, start: Model | None = None) -> None:
        self.start = start

    def objection(self, problem: Problem) -> str | None:
        """Return why this solver cannot minimise the problem, or None."""
        return kinks(problem)

    def suits(self, problem: Problem, blocks: Blocks) -> bool:
        """Return whether the matrix of second derivatives is affordable."""
        if problem.loss.labels != "class":
            return blocks.n_columns <= MAX_COLUMNS
        size = (blocks.n_columns + 1) * problem.n_scores(blocks)
        return size <= (MAX_SOFTMAX if problem.penalised else 4 * MAX_SOFTMAX)

    def solve(self, problem: Problem, blocks: Blocks, budget: Budget) -> Solution:
        """Minimise the problem, one target after the other."""
        check_places(blocks)
        with single_threaded_blas(blocks.n_columns):
            return solve_targets(problem, blocks, budget, _from_sample, "Newton", self.start)


def kinks(problem: Problem) -> str | None:
    """Return why a problem has no curvature, or None."""
    if not problem.loss.smooth:
        return "the loss has kinks, where it has no curvature"
    if not problem.penalty.quadratic:
        return "the penalty has kinks, where it has no curvature"
    return None


# -- targets and certificate ----------------------------------------------------------------------------


@dataclass
class Progress:
    """What all targets have reached together; each may use its share of the tolerance."""

    budget: Budget
    scale: float
    values: list[float]
    gaps: list[float]
    target: int = 0
    caution: float = CAUTION[0]
    _best: float = math.inf
    _idle: int = 0  # iterations since the value last fell by what counts

    @property
    def excess(self) -> float:
        """How many times the gap at which it is done the target's gap is."""
        enough = self.budget.tol * self.scale / len(self.gaps)
        return self.gaps[self.target] / enough if enough > 0 else math.inf

    def record(self, value: float, gap: float) -> bool:
        """Note one iteration and its estimated gap; true when the target is done or the budget used up."""
        # No objective is negative, so the value itself bounds the gap.
        self.values[self.target], self.gaps[self.target] = value, min(self.caution * gap, value)
        stop = self.budget.record(math.fsum(self.values), math.fsum(self.gaps), self.scale)
        self._idle += 1
        if not value > self._best - max(1e-3 * self.budget.tol, IDLE_GAIN) * self.scale:
            self._best, self._idle = value, 0
        return stop or self.excess <= 1.0 or self._idle >= IDLE

    def begin(self, target: int) -> None:
        """Turn to another target."""
        self.target, self._best, self._idle = target, math.inf, 0


Descent = Callable[[Any, Array, Progress], tuple[Array, Array]]
Model = tuple[Array, Array]  # w of shape (columns, scores) and b of shape (scores,)


def solve_targets(
    problem: Problem, blocks: Blocks, budget: Budget, descend: Descent, how: str, start: Model | None = None
) -> Solution:
    """Minimise target after target with ``descend(objective, theta, progress) -> (theta, next step)``.

    Where the duality gap turns out larger than estimated, the descent goes on from where it was. ``start`` is
    a model to begin at.
    """
    shift, spread = centre_and_spread(problem, blocks)
    objectives: list[Any]
    if problem.loss.labels == "class":
        objectives = [SoftmaxObjective(problem, blocks, budget, shift, spread)]
    else:
        objectives = [
            LinearObjective(problem, blocks, budget, shift, spread, k) for k in range(blocks.n_targets)
        ]
    if not math.isfinite(spread):
        raise FloatingPointError("the squares of some columns overflow")
    scale = problem.constant_objective(blocks)
    thetas = [objective.start() for objective in objectives]
    if start is not None:
        whole = np.vstack([start[0], start[1] + shift @ start[0]])
        thetas = [np.ascontiguousarray(part) for part in np.split(whole, len(objectives), axis=1)]
    steps = [np.zeros_like(theta) for theta in thetas]
    values = [scale / len(thetas)] * len(thetas)
    for caution in CAUTION:
        progress = Progress(budget, scale, list(values), [max(scale, 1e-300)] * len(thetas), 0, caution)
        for k, objective in enumerate(objectives):
            progress.begin(k)
            if not budget.exhausted():
                thetas[k], steps[k] = descend(objective, thetas[k], progress)
        values = progress.values
        models = [objective.model(theta) for objective, theta in zip(objectives, thetas, strict=True)]
        w, b = np.column_stack([w for w, _ in models]), np.concatenate([b for _, b in models])
        certificate, details = _certify(progress, objectives, w, b)
        if certificate.converged or budget.exhausted():
            break
    if problem.l2 == 0 and not _hurried(budget, blocks, w):
        # Small at a minimum; about 1 or more where theta runs off to infinity, since there is none.
        moves = [objective.largest_move(step) for objective, step in zip(objectives, steps, strict=True)]
        details["last_move"] = max(moves)
    return Solution(w, b, certificate, how, len(budget.history), details)


def _certify(
    progress: Progress, objectives: list[Any], w: Array, b: Array
) -> tuple[Certificate, dict[str, Any]]:
    """Return the certificate, and the dual point behind it where it is not the slopes of the loss."""
    problem, blocks, budget = objectives[0].problem, objectives[0].blocks, progress.budget
    if _hurried(budget, blocks, w):
        # No objective is negative, so the gap is at most the objective: true, and one pass instead of many.
        value = problem.objective(w, b, blocks)
        notes = (OUT_OF_TIME,)
        return Certificate("duality gap", value, value, progress.scale, budget.tol, notes=notes), {}
    if isinstance(objectives[0], SoftmaxObjective) and problem.l2 > 0:
        value, gap = objectives[0].objective_and_gap(w, b)
        certificate = Certificate("duality gap", value, gap, progress.scale, budget.tol)
    else:
        certificate = problem.certify("duality gap", w, b, blocks, budget.tol)
    if certificate.converged or budget.exhausted():
        return certificate, {}
    # With 10 classes and 100 columns a dual point costs as much as 60 steps, so more of those come first.
    if problem.loss.labels == "class" and w.size > MAX_SOFTMAX and progress.caution != CAUTION[-1]:
        return certificate, {}
    try:
        dual = balanced_slopes(problem, blocks, objectives, w, b)
    except BudgetExhausted:
        return certificate, {}
    if dual is None:
        return certificate, {}
    better = problem.certify("duality gap", w, b, blocks, budget.tol, dual)
    return (better, {"dual": dual}) if better.gap < certificate.gap else (certificate, {})


def _hurried(budget: Budget, blocks: Blocks, w: Array) -> bool:
    """Return whether time is up and a bound would still take long."""
    width = min(blocks.n_columns, 100) if blocks.sparse else blocks.n_columns
    work = 8.0 * blocks.n_rows * width * w.shape[1]
    return too_late_to_bound(budget, work)


# -- one target ------------------------------------------------------------------------------------------


def _from_sample(objective: Any, theta: Array, progress: Progress) -> tuple[Array, Array]:
    """Minimise one target, starting from the minimum of a sample where there are many rows."""
    blocks = objective.blocks
    every = blocks.n_rows // max(SAMPLE_ROWS * theta.size, 2000)
    if every >= SAMPLED and progress.caution == CAUTION[0]:
        limits = Budget(tol=1e-3, max_iter=20, time_limit=min(progress.budget.seconds_left, 1e9))
        limits.flag = progress.budget.flag
        sample = objective.of_rows(EveryNth(blocks, every), limits)
        if sample.blocks.weight_sum > 0:
            share = progress.scale / len(progress.gaps)
            theta, _ = _descend(sample, theta, Progress(limits, share, [share], [share], 0, 1.0))
            return _descend(objective, theta, progress, 1.01 * progress.values[progress.target])
    return _descend(objective, theta, progress)


class EveryNth(Blocks):
    """Every so many-th row of a table, copied, so that they lie next to each other: one block a block."""

    def __init__(self, blocks: Blocks, every: int) -> None:
        self.parts: list[Block] = []
        start = 0
        for block in blocks:
            rows = slice(None, None, every)
            weight = None if block.weight is None else block.weight[rows]
            self.parts.append(Block(block.X[rows].copy(), block.y[rows], weight, start))
            start += self.parts[-1].y.shape[0]
        self.n_rows, self.n_columns, self.n_targets = start, blocks.n_columns, blocks.n_targets
        self.weight_sum = float(
            sum(part.y.shape[0] if part.weight is None else part.weight.sum() for part in self.parts)
        )
        self.dtype, self.sparse = blocks.dtype, blocks.sparse

    def __iter__(self) -> Iterator[Block]:
        """Go through the blocks in row order."""
        return iter(self.parts)


def _descend(objective: Any, theta: Array, progress: Progress, most: float = math.inf) -> tuple[Array, Array]:
    """Return the minimiser of one target from theta on, and the step that would come next.

    Where theta has a value above ``most``, the constant model is the better start.
    """
    point, step = None, np.zeros_like(theta)
    try:
        point = objective.first(theta, curvature=True)
        if not point.value <= most:
            point = objective.at(objective.start(), curvature=True)
        factor, before = Factor(point.matrix, objective), math.inf
        while True:
            step, decrease = factor.step(point.slope)
            gap = gap_estimate(objective, point, decrease)
            done = progress.record(point.value, gap)
            if (done and not _doubles_digits(objective, decrease, before, progress)) or not decrease > 0:
                if decrease <= FAR * progress.scale and progress.budget.stopped_by is None:
                    point = replace(
                        point, theta=point.theta + step
                    )  # near the end it costs nothing to take it
                break
            if point.matrix is None and not _serves(decrease / before, progress.excess, theta.size):
                factor = Factor(objective.curvature(point), objective)
                step, decrease = factor.step(point.slope)
            far = point.matrix is not None and decrease > FAR * progress.scale
            end = advance(objective, point, step, decrease, far)
            if end is None or (is_noise(decrease, point) and not factor.step(end.slope)[1] < 0.5 * decrease):
                break
            point, before = end, decrease
            if point.matrix is not None:
                factor = Factor(point.matrix, objective)
    except BudgetExhausted:
        pass
    return theta if point is None else point.theta, step


def _doubles_digits(objective: Any, decrease: float, before: float, progress: Progress) -> bool:
    """Return whether another step is worth its pass though the tolerance is met.

    On small tables it always is. Without a penalty the coefficients themselves are what is asked for, and
    near the minimum a step or two bring all their digits. On the way to infinity, where there is no minimum,
    decreases fall by e only.
    """
    small = 1e-26 * progress.scale < decrease <= 0.25 * before
    cheap = objective.blocks.n_rows * objective.blocks.n_columns * len(progress.gaps) <= CHEAP
    wanted = (objective.l2 == 0 or cheap) and progress.budget.stopped_by is None
    return wanted and small and math.isfinite(before)


def _serves(contraction: float, excess: float, size: int) -> bool:
    """Return whether steps with an old curvature come to the end sooner than one with the new would.

    ``contraction`` is that of the last step's decrease, of which the next, now that the curvature is older,
    may have up to four times as much; ``excess`` is by what the gap has to shrink.
    """
    contraction *= 4.0
    return contraction < 0.1 and math.log(max(excess, 1.0)) <= -math.log(contraction) * size / CHEAPER


def gap_estimate(objective: Any, point: Point, decrease: float) -> float:
    """Return the gap at the slope where there is a penalty, else half the squared Newton decrement."""
    if objective.l2 == 0:
        return 0.5 * decrease
    # Balancing the rows takes the intercept's slope away, and gives up to so much to the columns.
    size = float(np.linalg.norm(point.slope[:-1]) + objective.spread * np.linalg.norm(point.slope[-1]))
    gap = max(0.5 * size**2 / objective.l2, 0.5 * decrease)
    if point.slope.shape[1] > 1:
        # Probability that is moved to a class of probability p costs log(1 / p) times as much.
        gap += MOVED * float(np.abs(point.slope[-1]).sum())
    return gap


def is_noise(decrease: float, point: Point) -> bool:
    """Return whether a step promises less than the rounding of the value shows: the slope has to tell."""
    return decrease <= 64.0 * EPS * abs(point.value)


def advance(objective: Any, point: Point, delta: Array, decrease: float, curvature: bool) -> Point | None:
    """Return the point after the longest step of length 1, ... that descends enough; None where none does."""
    end: Point = objective.at(point.theta + delta, curvature)
    if end.value <= point.value - SUFFICIENT * decrease or is_noise(decrease, point):
        return end
    length, value = 1.0, end.value
    while length > 1e-12:
        # the minimum of the parabola through what is known, within reason
        bend = value - point.value + decrease * length
        best = 0.5 * decrease * length**2 / bend if np.isfinite(bend) and bend > 0 else 0.0
        length = min(max(best, 0.1 * length), 0.5 * length)
        value = objective.along(point, end, length)
        if value <= point.value - SUFFICIENT * length * decrease:
            shorter: Point = objective.at(point.theta + length * delta, curvature)
            return shorter
    return None
