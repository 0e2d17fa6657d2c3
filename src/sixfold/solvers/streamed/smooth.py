"""Newton's method for smooth losses of rows that can only be reduced, with no penalty or the squared one.

    (sum_i q_i l''(s_i) z_i z_i' + l2 D) delta = -(sum_i q_i l'(s_i) z_i + l2 D theta),    z = (x - shift, 1)

as in :mod:`sixfold.solvers.smooth.newton`: one pass brings value, slope and curvature, so that an iteration
is a pass. No scores are kept. Where a whole step does not lower the objective enough, one more pass tries
``LENGTHS`` at once: each block knows the scores at both ends, between which every length is an addition.

A sample of some thousand rows, which one pass brings here, gives the point to start from. Passes are dear on
a cluster and digits are cheap, since each Newton step near the minimum doubles them: the tolerance met, steps
go on while they do, and the last one is taken without a look at where it leads.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget, BudgetExhausted
from sixfold.certificate import Certificate
from sixfold.data.blocks import Block, Blocks, MemoryBlocks
from sixfold.risk.losses import LOSSES, softmax
from sixfold.risk.problem import Problem
from sixfold.solvers.base import Solution
from sixfold.solvers.least_squares.moments import weighted_gram
from sixfold.solvers.linalg import EPS, SymmetricFactor
from sixfold.solvers.passes import LOSS_CODES
from sixfold.solvers.smooth.descent import CAUTION, MAX_HESSIAN_COLUMNS, MOVED, SUFFICIENT
from sixfold.solvers.streamed.certificates import certify
from sixfold.solvers.streamed.columns import ColumnSpread, column_spread, pieces
from sixfold.solvers.streamed.sums import add_each
from sixfold.solvers.threads import single_threaded_blas

Array = NDArray[Any]

MAX_SOFTMAX = 2000  # entries of theta: their curvature has 32 MB
SAMPLE_ROWS_A_COLUMN, LEAST_SAMPLE = 50, 2000  # for the first guess
SAMPLE_ENTRIES = 1 << 22  # of X that come here for it: 32 MB
SAMPLED_AT_LEAST = 8  # times fewer rows than there are, or there is no first guess
CLASS_ROWS = 1 << 14  # that are copied at a time for the curvature of classes
LENGTHS = 2.0 ** np.arange(2.0, -21.0, -0.5)  # of a step, of which one pass finds the best
MOST_STEPS = 100
FINEST = 1e-26  # of the scale: a decrease that brings no digit of theta
FREE, FEWER = 1e-12, 1e-3  # of the scale, and of the decrease before: a step that leaves the root of rounding
DOUBLES = 0.25  # of the decrease before: less than that doubles digits


# -- what a pass does on one block ---------------------------------------------------------------------------


def newton_sums(block: Block, name: str, theta: Array, shift: Array, target: int) -> tuple[Any, ...]:
    """Return the sums of losses, of their slopes and of their curvature at one score."""
    size = theta.shape[0]
    slope, gram = np.empty(size), np.empty((size, size))
    y = np.ascontiguousarray(block.y[:, target], dtype=np.float64)
    _, value = core.newton_sweep(
        block.X, y, block.float64_weight, LOSS_CODES.index(name), np.ascontiguousarray(theta[:, 0]), shift,
        None, slope, gram, math.inf, _unset(),
    )  # fmt: skip
    return float(value), slope[:, None], gram


def softmax_sums(block: Block, name: str, theta: Array, shift: Array, target: int) -> tuple[Any, ...]:
    """Return the same sums of classes; the curvature has one block a pair of classes."""
    size, classes = theta.shape
    w, b = np.ascontiguousarray(theta[:-1]), theta[-1] - shift @ theta[:-1]
    slope = np.empty((size, classes))
    y = np.ascontiguousarray(block.y[:, 0], dtype=np.float64)
    _, value, *_ = core.softmax_sweep(
        block.X, y=y, weight=block.float64_weight, w=w, b=b, slope=slope, seconds_left=math.inf, flag=_unset()
    )
    slope[:-1] -= shift[:, None] * slope[-1]
    matrix = np.zeros((size, classes, size, classes))
    for first in range(0, block.X.shape[0], CLASS_ROWS):
        rows = slice(first, first + CLASS_ROWS)
        Z = np.asarray(block.X[rows], dtype=np.float64) - shift
        p = softmax(Z @ theta[:-1] + theta[-1])
        q = np.ones(Z.shape[0]) if block.weight is None else np.asarray(block.weight[rows], np.float64)
        part = Block(np.ascontiguousarray(Z), p, None, 0)
        for k in range(classes):
            for other in range(k):
                gram = weighted_gram(part, q * p[:, k] * p[:, other], _unset())
                matrix[:, k, :, other] -= gram
                matrix[:, other, :, k] -= gram
                matrix[:, k, :, k] += gram
                matrix[:, other, :, other] += gram
    return float(value), slope, matrix


def values_along(
    block: Block, name: str, start: Array, end: Array, shift: Array, target: int, lengths: Array
) -> Array:
    """Return the sums of losses at start + length (end - start) for each length."""
    total = np.zeros(lengths.size)
    loss = LOSSES[name]
    for rows in pieces(block):
        Z = np.asarray(block.X[rows], dtype=np.float64) - shift
        q = np.ones(Z.shape[0]) if block.weight is None else np.asarray(block.weight[rows], np.float64)
        first, last = Z @ start[:-1] + start[-1], Z @ end[:-1] + end[-1]
        y = (
            block.y[rows, 0]
            if loss.labels == "class"
            else np.asarray(block.y[rows, target], np.float64)[:, None]
        )
        for k, length in enumerate(lengths):
            value = loss.value(first + length * (last - first), y)
            total[k] += q @ (value if value.ndim == 1 else value[:, 0])
    return total


def take_rows(block: Block, every: int) -> tuple[Array, Array, Array]:
    """Return every so many-th row of all: table, targets and weights."""
    some = np.flatnonzero(np.arange(block.start, block.start + block.y.shape[0]) % every == 0)
    weight = np.ones(some.size) if block.weight is None else np.asarray(block.weight[some], np.float64)
    return block.X[some], block.y[some], weight


def join_rows(one: tuple[Array, ...], other: tuple[Array, ...]) -> tuple[Array, ...]:
    """Return the rows of both."""
    return tuple(np.concatenate(pair) for pair in zip(one, other, strict=True))


def _unset() -> NDArray[np.int32]:
    return np.zeros(1, dtype=np.int32)


# -- the descent ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """What one pass has found at theta."""

    theta: Array
    value: float
    slope: Array
    matrix: Array


class StreamedObjective:
    """The objective of one target, or of all classes, about the mean row."""

    def __init__(
        self, problem: Problem, blocks: Blocks, spread: ColumnSpread, target: int, scores: int
    ) -> None:
        self.problem, self.blocks, self.target, self.scores = problem, blocks, target, scores
        self.d, self.l2 = blocks.n_columns, problem.l2
        self.shift = spread.mean if problem.fit_intercept else np.zeros(self.d)
        self.lengths = np.append(spread.lengths(self.shift), 1.0)[:, None]
        self.classes = problem.loss.labels == "class"
        self.sums = partial(
            softmax_sums if self.classes else newton_sums,
            name=problem.loss.name, shift=self.shift, target=target,
        )  # fmt: skip

    def start(self) -> Array:
        """Return the model without weights."""
        return np.zeros((self.d + 1, self.scores))

    def at(self, theta: Array) -> Place:
        """Return value, slope and curvature: one pass."""
        value, slope, matrix = self.blocks.reduce(partial(self.sums, theta=theta), add_each)
        total = self.blocks.weight_sum
        value, slope, matrix = value / total, slope / total, matrix / total
        slope[:-1] += self.l2 * theta[:-1]
        if not self.problem.fit_intercept:
            slope[-1] = 0.0
        if self.classes:
            matrix = self._whole_curvature(matrix)
        else:
            matrix.flat[: self.d * (self.d + 2) : self.d + 2] += self.l2
        if not (math.isfinite(value) and np.isfinite(slope).all() and np.isfinite(matrix).all()):
            raise FloatingPointError("the objective is not finite")
        return Place(theta, value + self._penalty(theta), slope, matrix)

    def _whole_curvature(self, matrix: Array) -> Array:
        """Return the curvature of classes with an inverse; one number added to all changes no score."""
        size, classes = self.d + 1, self.scores
        every = np.arange(classes)
        for j in range(size):
            matrix[j, :, j, :] += matrix[j, every, j, every].mean() / classes
        matrix = matrix.reshape(size * classes, size * classes)
        matrix.flat[:: matrix.shape[0] + 1] += np.append(
            np.full(self.d * classes, self.l2), np.zeros(classes)
        )
        return matrix

    def _penalty(self, theta: Array) -> float:
        return 0.5 * self.l2 * float(np.vdot(theta[:-1], theta[:-1]))

    def factor(self, matrix: Array) -> SymmetricFactor:
        """Return a curvature, ready to be divided by; entries of theta that must not move do not."""
        diagonal = np.diag(matrix).reshape(self.d + 1, -1)
        fixed = np.zeros(diagonal.shape, dtype=bool)
        fixed[-1] = not self.problem.fit_intercept
        if self.l2 == 0:  # of a constant column the shift leaves rounding errors
            fixed[:-1] = diagonal[:-1] <= np.square(16.0 * EPS * self.shift)[:, None] * diagonal[-1]
        with single_threaded_blas(matrix.shape[0]):
            return SymmetricFactor(matrix, fixed.ravel())

    def best_length(self, place: Place, delta: Array) -> float:
        """Return the length of a step whose value is least, of some: one pass."""
        found = self.blocks.reduce(
            partial(
                values_along, name=self.problem.loss.name, start=place.theta, end=place.theta + delta,
                shift=self.shift, target=self.target, lengths=LENGTHS,
            ),
            np.add,
        ) / self.blocks.weight_sum  # fmt: skip
        values = [
            value + self._penalty(place.theta + t * delta) for value, t in zip(found, LENGTHS, strict=True)
        ]
        return float(LENGTHS[int(np.nanargmin(values))])

    def model(self, theta: Array) -> tuple[Array, Array]:
        """Return w and b, as the type of the data holds them."""
        w = self.blocks.rounded(theta[:-1])
        b = theta[-1] - self.shift @ w if self.problem.fit_intercept else np.zeros(theta.shape[1])
        return w, self.blocks.rounded(b)

    def gap(self, place: Place, decrease: float) -> float:
        """Return the gap at the slope where there is a penalty, else half the squared Newton decrement."""
        if self.l2 == 0:
            return 0.5 * decrease
        size = float(np.linalg.norm(place.slope[:-1]) + self.lengths.max() * np.linalg.norm(place.slope[-1]))
        gap = max(0.5 * size**2 / self.l2, 0.5 * decrease)
        if (
            self.classes
        ):  # probability that is moved to a class of probability p costs log(1 / p) times as much
            gap += MOVED * float(np.abs(place.slope[-1]).sum())
        return gap


def replace_blocks(objective: StreamedObjective, blocks: Blocks) -> StreamedObjective:
    """Return the same objective of other rows."""
    other = copy(objective)
    other.blocks = blocks
    return other


def smooth_objection(problem: Problem, blocks: Blocks, scores: int) -> str | None:
    """Return why Newton's method cannot minimise this problem by passes, or None."""
    if not problem.penalty.quadratic:
        return (
            f"penalty={problem.penalty.name!r} with this loss needs the rows again and again in one "
            "process: use "
            "penalty='l2', or fit a sample in memory"
        )
    size = (blocks.n_columns + 1) * (scores if problem.loss.labels == "class" else 1)
    most = MAX_SOFTMAX if problem.loss.labels == "class" else MAX_HESSIAN_COLUMNS
    if size > most:
        return (
            f"the second derivatives of {size} coefficients, all pairs of them, are too many to send: "
            "choose fewer "
            f"columns, so that there are {most} at most"
        )
    return None


def solve_smooth(problem: Problem, blocks: Blocks, budget: Budget, scores: int) -> Solution:
    """Minimise a smooth loss of signs or classes, target after target."""
    spread = column_spread(blocks)
    count = 1 if problem.loss.labels == "class" else blocks.n_targets
    width = scores if problem.loss.labels == "class" else 1
    at_zero = math.log(scores) if problem.loss.labels == "class" else float(
        problem.loss.value(np.zeros((1, 1)), np.ones((1, 1)))[0, 0]
    )  # fmt: skip
    scale = at_zero * count
    objectives = [StreamedObjective(problem, blocks, spread, target, width) for target in range(count)]
    thetas = [objective.start() for objective in objectives]
    steps = [np.zeros_like(theta) for theta in thetas]
    blocks.watch, watch = budget.check, blocks.watch
    try:
        thetas = _guesses(objectives, blocks, budget, at_zero)
    except BudgetExhausted:
        budget.exhausted()
    blocks.watch = watch
    found: Certificate | None = None
    wrong = None
    for caution in CAUTION:
        progress = _Progress(budget, scale, caution / CAUTION[0], [at_zero] * count, [at_zero] * count)
        for target, objective in enumerate(objectives):
            budget.new_part()
            if not budget.exhausted():
                blocks.watch = budget.check
                thetas[target], steps[target] = _descend(objective, thetas[target], progress)
        models = [objective.model(theta) for objective, theta in zip(objectives, thetas, strict=True)]
        w, b = np.column_stack([w for w, _ in models]), np.concatenate([b for _, b in models])
        hurried = budget.interrupted or budget.seconds_left <= 0
        blocks.watch = None  # a stopped solve has a certificate too
        found, wrong = certify(problem, blocks, w, b, spread, scale, budget.tol, hurried)
        if found.converged or budget.exhausted():
            break
    assert found is not None
    moves = [
        float(np.sqrt(np.square(objective.lengths * step).sum()))
        for objective, step in zip(objectives, steps, strict=True)
    ]
    return Solution(
        w, b, found, "Newton", len(budget.history), last_move=max(moves), means=spread.means(), wrong=wrong
    )


def _guesses(
    objectives: list[StreamedObjective], blocks: Blocks, budget: Budget, at_zero: float
) -> list[Array]:
    """Return the minimisers of a sample, whose rows come here in one pass, where there are many more rows."""
    starts = [objective.start() for objective in objectives]
    wanted = max(SAMPLE_ROWS_A_COLUMN * starts[0].size, LEAST_SAMPLE)
    every = blocks.n_rows // max(min(wanted, SAMPLE_ENTRIES // max(blocks.n_columns, 1)), 1)
    if every < SAMPLED_AT_LEAST:
        return starts
    X, y, weight = blocks.reduce(partial(take_rows, every=every), join_rows)
    if not weight.sum() > 0:
        return starts
    sample = MemoryBlocks(X, y, weight)
    guesses = []
    for objective, start in zip(objectives, starts, strict=True):
        inner = Budget(1e-3, 20, min(budget.seconds_left, 1e9))
        inner.flag = budget.flag
        of_sample = replace_blocks(objective, sample)
        progress = _Progress(inner, at_zero, 1.0, [at_zero], [at_zero], (0,))
        guesses.append(_descend(of_sample, start, progress)[0])
    return guesses


@dataclass
class _Progress:
    """What all targets have reached together; gaps are estimated and taken ``caution`` times."""

    budget: Budget
    scale: float
    caution: float
    values: list[float]
    gaps: list[float]
    places: tuple[int, ...] | None = None  # of the targets, where there is one for all

    def record(self, target: int, value: float, gap: float) -> bool:
        """Note one iteration; true when the target is done or the budget used up."""
        target = target if self.places is None else self.places[0]
        self.values[target], self.gaps[target] = value, min(self.caution * gap, value)
        stop = self.budget.record(math.fsum(self.values), math.fsum(self.gaps), self.scale)
        return stop or self.gaps[target] <= self.budget.tol * self.scale / len(self.gaps)


def _descend(objective: StreamedObjective, theta: Array, progress: _Progress) -> tuple[Array, Array]:
    """Return the minimiser of one target, and the step that would come next."""
    step, before, steps = np.zeros_like(theta), math.inf, 0
    budget, scale = progress.budget, progress.scale
    place: Place | None = None
    try:
        place = objective.at(theta)
        while True:
            step = objective.factor(place.matrix).solve(-place.slope)
            decrease = -float(np.vdot(place.slope, step))
            stop = progress.record(objective.target, place.value, objective.gap(place, decrease))
            at_end = stop and budget.stopped_by is None
            if at_end and 0.0 < decrease <= min(FREE * scale, FEWER * before):
                place = replace(place, theta=place.theta + step)
                break
            digits = FINEST * scale < decrease <= DOUBLES * before and budget.stopped_by is None
            if (stop and not digits) or not decrease > FINEST * scale or steps >= MOST_STEPS:
                break
            noise = decrease <= 64.0 * EPS * abs(place.value)
            if noise and not decrease <= DOUBLES * before:
                break
            end = objective.at(place.theta + step)
            if not noise and not end.value <= place.value - SUFFICIENT * decrease:
                end = objective.at(place.theta + objective.best_length(place, step) * step)
                if not end.value < place.value:
                    break
            place, before, steps = end, decrease, steps + 1
    except BudgetExhausted:
        budget.exhausted()
    return theta if place is None else place.theta, step
