"""What the smooth solvers share: one target after the other, when to stop, and how far to go along a step.

    R(w, b) - min R  <=  |g|^2 / (2 l2)                       with a penalty, at the slope g of the objective
                     ~   g'H^-1 g / 2                         without one: half the squared Newton decrement

estimates the gap; where the estimate is small enough, the duality gap is computed, and decides.

*Line search.* A step is shortened until the objective falls enough (Armijo), on the line between two points
whose scores are known, so a trial costs no pass over X. Where a step promises less than the rounding of the
value shows, the slope has to tell.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget, BudgetExhausted, Record
from sixfold.certificate import Certificate
from sixfold.data.blocks import Blocks
from sixfold.risk.problem import Problem
from sixfold.solvers.base import OUT_OF_TIME, Solution, too_late_to_bound
from sixfold.solvers.linalg import EPS
from sixfold.solvers.smooth.objective import LinearObjective, ObjectivePoint, centre_and_spread, check_places
from sixfold.solvers.smooth.reweighted import balanced_slopes
from sixfold.solvers.smooth.slope_sums import certify_by_sums
from sixfold.solvers.smooth.softmax_objective import SoftmaxObjective
from sixfold.solvers.threads import single_threaded_blas
from sixfold.solvers.wide_tables import RowCoordinates

Array = NDArray[Any]
Model = tuple[Array, Array]  # w of shape (columns, scores) and b of shape (scores,)
Outside = Callable[[Array, Array], Certificate | None]

SUFFICIENT = 1e-4  # share of the predicted decrease that a step has to bring (Armijo)
MAX_HESSIAN_COLUMNS = 4000  # beyond, a d x d matrix per iteration is no longer cheap
MAX_SOFTMAX = 300  # columns times classes beyond which a matrix of second derivatives is no longer cheap
MOST_IDLE_ITERATIONS = 30  # that gain nothing are enough to see that rounding allows no more
IDLE_GAIN = 1e-14  # of the scale
MOVED = 1.0  # log(1 / p) of a typical row, over the caution
FLAT = 0.1  # of the slope at the start of a line: what may be left of it at the end
LONGEST = 1e3  # times a step
MOST_LENGTHS = 60  # that are tried
CAUTION = (4.0, 1e3, 1e6)  # times the estimated gap must be within the tolerance before it is computed


class SmoothSolver(ABC):
    """A solver that goes downhill in value and slope, from the constant model or from ``start``."""

    name: ClassVar[str]
    title: ClassVar[str]  # what a solution says was used
    needs: ClassVar[tuple[str, ...]] = ("gradient", "curvature", "conjugate")
    notices_nonfinite: ClassVar[bool] = True
    factors: ClassVar[bool] = True  # matrices as large as the columns, by LAPACK
    every_step: ClassVar[bool] = False  # is such a factor

    def __init__(self, start: Model | None = None) -> None:
        self.start = start
        self.outside: Outside | None = None  # who certifies a model first

    def certified_by(self, outside: Outside) -> SmoothSolver:
        """Return the solver that asks ``outside`` for a certificate, and works it out where that fails."""
        other = copy(self)
        other.outside = outside
        return other

    def certificate_by_sums(
        self, problem: Problem, w: Array, b: Array, blocks: Blocks, centre: Array, tol: float
    ) -> Certificate | None:
        """Return the certificate of a model; None where sums over the rows do not show convergence."""
        scale = problem.constant_objective(blocks)
        return certify_by_sums(problem, w, b, blocks, centre, tol, scale)

    def objection(self, problem: Problem) -> str | None:
        """Return why this solver cannot minimise the problem, or None."""
        return objection_to_kinks(problem)

    def solve(
        self, problem: Problem, blocks: Blocks, budget: Budget, start: Solution | None = None
    ) -> Solution:
        """Minimise the problem, one target after the other, from ``start`` on."""
        check_places(blocks)
        wide = RowCoordinates.of(problem, blocks, budget, self.every_step, single=True)
        if wide is not None:
            if start is None and self.start is not None:
                unknown = problem.certify_zero(*self.start, blocks, 1.0, budget.tol)
                start = Solution(*self.start, unknown, self.title)
            plain = copy(self)
            plain.start = None  # it has as many columns as the table
            return wide.solve(plain, start)
        begin = self.start if start is None else (start.w, start.b)
        with single_threaded_blas(blocks.n_columns) if self.factors else nullcontext():
            return solve_targets(self, problem, blocks, budget, begin)

    @abstractmethod
    def descend(self, objective: Any, theta: Array, progress: SmoothProgress) -> tuple[Array, Array]:
        """Return the minimiser of one target from theta on, and the step that would come next."""


def objection_to_kinks(problem: Problem) -> str | None:
    """Return why no smooth solver can minimise the problem, or None."""
    if not problem.loss.smooth:
        return "the loss has kinks, where it has no curvature"
    if not problem.penalty.quadratic:
        return "the penalty has kinks, where it has no curvature"
    return None


@dataclass
class SmoothProgress:
    """What all targets have reached together; each may use its share of the tolerance."""

    budget: Budget
    scale: float
    values: list[float]
    gaps: list[float]
    target: int = 0
    caution: float = CAUTION[0]
    crawls: bool = False  # a target was left to the next solver
    _best: float = math.inf
    _idle: int = 0  # iterations since the value last fell by what counts

    @property
    def enough(self) -> float:
        """The gap at which a target is done."""
        return self.budget.tol * self.scale / len(self.gaps)

    @property
    def excess(self) -> float:
        """How many times that the target's gap is."""
        return self.gaps[self.target] / self.enough if self.enough > 0 else math.inf

    def record(self, value: float, gap: float) -> bool:
        """Note one iteration and its estimated gap; true when the target is done or the budget used up."""
        stop = self.budget.record(*self._of_all(value, gap), self.scale)
        self._idle += 1
        if not value > self._best - max(1e-3 * self.budget.tol, IDLE_GAIN) * self.scale:
            self._best, self._idle = value, 0
        return stop or self.excess <= 1.0 or self._idle >= MOST_IDLE_ITERATIONS

    def note(self, value: float, gap: float, seconds: float) -> None:
        """Note an iteration that was over after so many seconds, and of which nobody asked to hear."""
        history = self.budget.history
        history.append(Record(len(history) + 1, seconds, *self._of_all(value, gap)))

    def _of_all(self, value: float, gap: float) -> tuple[float, float]:
        """Return value and gap of all targets, with what is now known of this one."""
        # No objective is negative, so the value itself bounds the gap.
        self.values[self.target], self.gaps[self.target] = value, min(self.caution * gap, value)
        return math.fsum(self.values), math.fsum(self.gaps)

    def begin(self, target: int) -> None:
        """Turn to another target."""
        self.target, self._best, self._idle = target, math.inf, 0


def solve_targets(
    solver: SmoothSolver, problem: Problem, blocks: Blocks, budget: Budget, start: Model | None
) -> Solution:
    """Minimise target after target, each with ``max_iter`` iterations of its own.

    Where the duality gap turns out larger than estimated, the descent goes on from where it was.
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
        w, b = start
        whole = np.vstack([w, b + shift @ w])
        thetas = [np.ascontiguousarray(part) for part in np.split(whole, len(objectives), axis=1)]
    steps = [np.zeros_like(theta) for theta in thetas]
    values = [scale / len(thetas)] * len(thetas)
    for caution in CAUTION:
        progress = SmoothProgress(budget, scale, list(values), [max(scale, 1e-300)] * len(thetas), 0, caution)
        for k, objective in enumerate(objectives):
            progress.begin(k)
            budget.new_part()
            if not budget.exhausted():
                thetas[k], steps[k] = solver.descend(objective, thetas[k], progress)
        values = progress.values
        models = [objective.model(theta) for objective, theta in zip(objectives, thetas, strict=True)]
        w, b = np.column_stack([w for w, _ in models]), np.concatenate([b for _, b in models])
        outside = _certified_outside(solver, progress, blocks, w, b)
        certificate, dual = _certify(progress, objectives, w, b) if outside is None else (outside, None)
        if certificate.converged or budget.exhausted() or progress.crawls:
            break
    last_move = math.inf
    if problem.l2 == 0 and not hurried(budget, blocks, w):
        # Small at a minimum; about 1 or more where theta runs off to infinity, since there is none.
        moves = [objective.largest_move(step) for objective, step in zip(objectives, steps, strict=True)]
        last_move = max(moves)
    return Solution(w, b, certificate, solver.title, len(budget.history), dual, last_move=last_move)


def _certified_outside(
    solver: SmoothSolver, progress: SmoothProgress, blocks: Blocks, w: Array, b: Array
) -> Certificate | None:
    """Return the certificate of those who asked for one of their own, where that is good enough."""
    if solver.outside is None or progress.crawls or hurried(progress.budget, blocks, w):
        return None
    certificate = solver.outside(w, b)
    return certificate if certificate is not None and certificate.converged else None


def _certify(
    progress: SmoothProgress, objectives: list[Any], w: Array, b: Array
) -> tuple[Certificate, Array | None]:
    """Return the certificate, and the dual point behind it where it is not the slopes of the loss."""
    problem, blocks, budget = objectives[0].problem, objectives[0].blocks, progress.budget
    if hurried(budget, blocks, w):
        # No objective is negative, so the gap is at most the objective: true, and one pass instead of many.
        return problem.certify_zero(w, b, blocks, progress.scale, budget.tol, (OUT_OF_TIME,)), None
    classes = objectives[0] if problem.loss.labels == "class" else None
    lean = certify_by_sums(problem, w, b, blocks, objectives[0].shift, budget.tol, progress.scale, classes)
    if lean is not None:
        return lean, None
    certificate, slopes = problem.certify_with_dual(
        "duality gap", w, b, blocks, budget.tol, scale=progress.scale, closer=not progress.crawls
    )
    # With 10 classes and 100 columns a dual point costs as much as 60 steps, so more of those come first.
    later = problem.loss.labels == "class" and w.size > MAX_SOFTMAX and progress.caution != CAUTION[-1]
    if certificate.converged or budget.exhausted() or progress.crawls or later:
        return certificate, slopes
    try:
        dual = balanced_slopes(problem, blocks, budget, w, b)
    except BudgetExhausted:
        return certificate, slopes
    if dual is None:
        return certificate, slopes
    better = problem.certify("duality gap", w, b, blocks, budget.tol, dual, progress.scale)
    return (better, dual) if better.gap < certificate.gap else (certificate, slopes)


def hurried(budget: Budget, blocks: Blocks, w: Array) -> bool:
    """Return whether time is up and a bound would still take long."""
    width = min(blocks.n_columns, 100) if blocks.sparse else blocks.n_columns
    work = 8.0 * blocks.n_rows * width * w.shape[1]
    return too_late_to_bound(budget, work)


def gap_estimate(objective: Any, point: ObjectivePoint, decrease: float) -> float:
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


def is_noise(decrease: float, point: ObjectivePoint) -> bool:
    """Return whether a step promises less than the rounding of the value shows: the slope has to tell."""
    return decrease <= 64.0 * EPS * abs(point.value)


def line_search(
    objective: Any, point: ObjectivePoint, delta: Array, decrease: float, curvature: bool
) -> ObjectivePoint | None:
    """Return the point after a step of length 1, or where the slope along it is 0; None if nothing falls."""
    end: ObjectivePoint = objective.at(point.theta + delta, curvature)
    if end.value <= point.value - SUFFICIENT * decrease or is_noise(decrease, point):
        return end
    length = root_of_slope(lambda length: objective.slope_along(point, end, length), 0.0, -decrease)
    # As slopes along it are worked out, so that a point that is known already is found again.
    shorter: ObjectivePoint = objective.at(point.theta + length * (end.theta - point.theta), curvature)
    return shorter if shorter.value < point.value else None


def root_of_slope(
    slope: Callable[[float], float], noise: float, first: float | None = None, longest: float = LONGEST
) -> float:
    """Return the length at which an increasing slope, negative at 0, is nearly 0, as secants find it.

    >>> root_of_slope(lambda length: length - 0.25, 0.0)
    0.25
    """
    below = slope(0.0) if first is None else first
    if not below < 0.0:
        return 1.0
    low, high, above, length, flat = 0.0, math.inf, math.inf, 1.0, max(FLAT * -below, noise)
    for _ in range(MOST_LENGTHS):
        now = slope(length)
        if abs(now) <= flat:
            break
        if now < 0.0:
            low, below = length, now
        else:
            high, above = length, now
        if math.isinf(high):
            if 2.0 * low > longest:
                break
            length = 2.0 * low
            continue
        width, secant = high - low, (high - low) * below / (below - above) if math.isfinite(above) else 0.0
        length = low + min(max(secant, 0.1 * width), 0.9 * width)
    return length
