"""The hinge with a squared penalty, of rows that can only be reduced: a problem of the rows near their kink.

    R(w, b) = sum_i q_i max(0, 1 - m_i) + l2 |w|^2 / 2,      m_i = y_i (w.x_i + b)

:mod:`sixfold.solvers.margin.margin_band` states the reduced problem and why it bounds R. From a model that a
sample gives:

1. One pass gathers the band |m - 1| < width, as wide as ``BAND_ROWS`` rows allow (they are all that ever
   leaves the workers), and sums the rows within the margin: a mean and a weight a label.
2. The interior point minimises this reduced problem.
3. One pass finds the objective of its model on all rows and how wide the next band may be; where the
   objective has grown, another finds the best point on the way there.

As models come closer the band needs fewer rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget, BudgetExhausted
from sixfold.certificate import Certificate
from sixfold.data.blocks import Block, Blocks
from sixfold.errors import InputError
from sixfold.risk.problem import Problem
from sixfold.risk.rounding import U, rounded_model
from sixfold.solvers.base import OUT_OF_TIME, Solution
from sixfold.solvers.margin.margin_band import WIDTHS, Band, mean_rounding, minimise_band
from sixfold.solvers.streamed.columns import ColumnSpread, column_spread
from sixfold.solvers.streamed.sums import add_each

Array = NDArray[Any]

BAND_ROWS = 200_000
BAND_ENTRIES = 1 << 23  # of X: 64 MB
SAMPLE_ROWS = 20_000
LENGTHS = 2.0 ** np.arange(0.0, -24.0, -1.0)  # of steps that are tried together
FINEST = 1e-13  # relative gap that is asked of the reduced problem
MOST_ROUNDS = 60
MORE_ROUNDS = 4  # when the tolerance is met
EXACT = 1e-12  # a gap that rounding accounts for
AT_KINK = 1e-6  # |m - 1| of rows whose multiplier the side does not tell
DECIDED = 1e-14  # of all weights: what multipliers that are taken for those of their side may be off together


# -- what a pass does on one block ---------------------------------------------------------------------------


def _pass(block: Block, theta: Array, centre: Array, target: int, width: float) -> tuple[Any, ...]:
    """Return m - 1 of each row, the sums within the margin, those in each bin, the losses, the wrong rows."""
    past, sums = np.empty(block.y.shape[0]), np.empty((2, theta.size + 1))
    counts, never = np.empty(core.DISTANCE_BINS, dtype=np.int64), np.zeros(1, dtype=np.int32)
    y = np.asarray(block.y[:, target], dtype=np.float64)
    rows = core.dense_rows(block.X, centre, 1.0)
    _, loss, wrong = core.margin_pass(
        rows, theta, y, block.float64_weight, width, past, sums, counts, math.inf, never
    )
    return past, sums, np.cumsum(counts), loss, wrong


def take_sample(block: Block, every: int, target: int) -> Band:
    """Return every so many-th row of all, as a band without anything within."""
    some = np.flatnonzero(
        (np.arange(block.start, block.start + block.y.shape[0]) % every == 0) & block.counts
    )
    weight = np.ones(some.size) if block.weight is None else np.asarray(block.weight[some], np.float64)
    d = block.X.shape[1]
    return Band(
        block.X[some], block.y[some, target], weight, some + block.start, np.zeros(2), np.zeros((2, d))
    )  # fmt: skip


def gather_band(block: Block, theta: Array, centre: Array, target: int, width: float) -> Band:
    """Return the band of one block."""
    past, sums, *_ = _pass(block, theta, centre, target, width)
    some = np.flatnonzero(np.abs(past) < width)
    weight = np.ones(some.size) if block.weight is None else np.asarray(block.weight[some], np.float64)
    return Band(
        block.X[some], block.y[some, target], weight, some + block.start, sums[:, -1], sums[:, :-2]
    )  # fmt: skip


def judge(block: Block, theta: Array, centre: Array, target: int) -> tuple[Any, ...]:
    """Return the sum of losses, and how many rows are in each band and on the wrong side."""
    _, _, counts, loss, wrong = _pass(block, theta, centre, target, math.inf)
    return loss, counts, wrong


def losses_between(block: Block, start: Array, end: Array, centre: Array, target: int) -> Array:
    """Return the sums of losses at start + length (end - start), for all ``LENGTHS``."""
    first, last = (_pass(block, theta, centre, target, math.inf)[0] for theta in (start, end))
    counts, q = block.counts, block.float64_weight
    first, move = first[counts], (last - first)[counts]
    q = np.ones(first.size) if q is None else q[counts]
    return np.array([q @ np.maximum(-first - length * move, 0.0) for length in LENGTHS])


# -- rounds --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """A model of one target, its objective, what none is below, and slopes of rows at their kink."""

    w: Array
    b: float
    value: float
    lower: float
    wrong: int
    rows: Array
    slopes: Array


class HingeRounds:
    """The rounds of one target."""

    def __init__(
        self, problem: Problem, blocks: Blocks, spread: ColumnSpread, target: int, budget: Budget
    ) -> None:
        self.problem, self.blocks, self.target, self.budget = problem, blocks, target, budget
        self.centre = spread.mean if problem.fit_intercept else np.zeros(blocks.n_columns)
        self.spread, self.lengths = spread, spread.lengths(self.centre)

    def _of(self, function: Any, **more: Any) -> Any:
        return partial(function, centre=self.centre, target=self.target, **more)

    def judged(self, w: Array, b: float) -> tuple[float, Array, int]:
        """Return the objective, the rows in each band, and how many are wrong."""
        value, counts, wrong = self.blocks.reduce(self._of(judge, theta=self._theta(w, b)), add_each)
        return value / self.blocks.weight_sum + self._penalty(w), counts, wrong

    def _theta(self, w: Array, b: float) -> Array:
        return np.append(w, b + self.centre @ w)

    def _penalty(self, w: Array) -> float:
        return 0.5 * self.problem.l2 * float(w @ w)

    def run(self, tell: Callable[[float, float], bool]) -> Found:
        """Return the minimiser; ``tell(value, gap)`` notes a round and says whether it is the last."""
        blocks = self.blocks
        every = max(blocks.n_rows // SAMPLE_ROWS, 1)
        sample = blocks.reduce(partial(take_sample, every=every, target=self.target), Band.__add__)
        w, b = np.zeros(blocks.n_columns), 0.0
        if sample.y.size and np.unique(sample.y).size == 2:
            w, b, _, _ = self._minimise(sample, 1e-6, float(sample.weight.sum()))
        value, counts, wrong = self.judged(w, b)
        none = np.zeros(0, dtype=np.int64), np.zeros(0)
        best = Found(w, b, value, 0.0, wrong, *none)
        most, more = min(BAND_ROWS, BAND_ENTRIES // max(w.size, 1)), MORE_ROUNDS
        for _ in range(MOST_ROUNDS):
            few = np.flatnonzero(counts <= most)
            if not few.size:
                raise InputError(
                    f"More than {most} rows lie at the margin all at once. Use loss='squared_hinge', which "
                    "has no kink there, or fit a sample."
                )
            width, theta = float(WIDTHS[few[-1]]), self._theta(best.w, best.b)
            band = blocks.reduce(self._of(gather_band, theta=theta, width=width), Band.__add__)
            w, b, lower, multipliers = self._minimise(band, FINEST, blocks.weight_sum)
            value, counts, wrong = self.judged(w, b)
            lower = max(lower, best.lower)
            if value > best.value and math.isfinite(width):
                w, b = self._shorter(best, w, b)
                value, counts, wrong = self.judged(w, b)
            stuck = not value < best.value and not lower > best.lower
            if value <= best.value * (1.0 + EXACT):  # the same model: with the slopes behind its bound
                near = _undecided(band, band.y * (band.X @ w + b), multipliers, blocks.weight_sum)
                best = Found(w, b, value, lower, wrong, band.numbers[near], multipliers[near])
            else:
                best = replace(best, lower=lower)
            gap = max(best.value - best.lower, 0.0)
            # The minimiser itself is a round or two away.
            more -= (done := tell(best.value, gap))
            if stuck or (done and (gap <= EXACT or more < 0 or self.budget.stopped_by is not None)):
                break
        return best

    def _shorter(self, best: Found, w: Array, b: float) -> tuple[Array, float]:
        """Return the best point on the way to a model."""
        start, end = self._theta(best.w, best.b), self._theta(w, b)
        found = self.blocks.reduce(self._of(losses_between, start=start, end=end), np.add)
        penalties = [self._penalty(best.w + t * (w - best.w)) for t in LENGTHS]
        t = float(LENGTHS[int(np.argmin(found / self.blocks.weight_sum + penalties))])
        return self.blocks.rounded(best.w + t * (w - best.w)), float(
            self.blocks.rounded(np.array([best.b + t * (b - best.b)]))[0]
        )

    def _minimise(self, band: Band, tol: float, weight_sum: float) -> tuple[Array, float, float, Array]:
        """Return the minimiser of the reduced problem, a bound on R, and the slopes of the band's rows."""
        found = minimise_band(self.problem, band, self.centre, weight_sum, tol, self.budget, True)
        w, b = rounded_model(self.blocks, found.theta[:-1, None], found.theta[-1:], self.centre)
        off = (self.spread.depth + 8) * U * self.lengths
        # Weights of rows are whole numbers where there are none, and their sums exact.
        share = 0.0 if self.spread.rows == self.spread.weight else 2.0 * self.spread.depth * U
        lower = found.certain
        if band.mass.any():
            lower -= mean_rounding(self.problem, found, off, share)
        return w[:, 0], float(b[0]), max(lower, 0.0), found.slopes


def _undecided(band: Band, margins: Array, slopes: Array, weight_sum: float) -> NDArray[np.bool_]:
    """Return the rows of a band whose slopes are not those of their side, as exactly as rounding has them.

    A path of the interior point that ends at its tolerance leaves multipliers that are not quite at a bound.
    """
    off = band.weight * np.abs(slopes - np.where(margins < 1.0, -band.y, 0.0))
    order = np.argsort(off, kind="stable")
    undecided = np.abs(margins - 1.0) <= AT_KINK
    undecided[order[np.cumsum(off[order]) > DECIDED * weight_sum]] = True
    return undecided


def hinge_objection(problem: Problem) -> str | None:
    """Return why the hinge cannot be minimised in rounds, or None."""
    if not problem.penalty.quadratic or not problem.l2 > 0:
        return "the hinge needs penalty='l2' with a finite C (alpha above 0) there"
    return None


def solve_hinge(problem: Problem, blocks: Blocks, budget: Budget) -> Solution:
    """Minimise the hinge, target after target."""
    spread = column_spread(blocks)
    count = blocks.n_targets
    values, gaps, found = [1.0] * count, [1.0] * count, []
    for target in range(count):
        rounds = HingeRounds(problem, blocks, spread, target, budget)
        budget.new_part()

        def tell(value: float, gap: float, target: int = target) -> bool:
            values[target], gaps[target] = value, gap
            stop = budget.record(math.fsum(values), math.fsum(gaps), float(count))
            return stop or gap <= budget.tol

        blocks.watch = budget.check
        none = np.zeros(0, dtype=np.int64), np.zeros(0)
        part = Found(np.zeros(blocks.n_columns), 0.0, 1.0, 0.0, 0, *none)
        if not budget.exhausted():
            try:
                part = rounds.run(tell)
            except BudgetExhausted:
                budget.exhausted()
        found.append(part)
    blocks.watch = None
    w = np.column_stack([part.w for part in found])
    b = np.array([part.b for part in found])
    certificate = _certificate(problem, blocks, spread, found, budget)
    return Solution(
        w, b, certificate, "rows near the margin", max(len(budget.history), 1), means=spread.means(),
        wrong=sum(part.wrong for part in found),
        kinks=tuple((part.rows, part.slopes) for part in found),
    )  # fmt: skip


def _certificate(
    problem: Problem, blocks: Blocks, spread: ColumnSpread, found: list[Found], budget: Budget
) -> Certificate:
    """Return the certificate of all targets, with what rounding may do to the sums of losses."""
    centre = spread.mean if problem.fit_intercept else np.zeros(blocks.n_columns)
    lengths, d = spread.lengths(centre), blocks.n_columns
    objective, gap, rounding = 0.0, 0.0, 0.0
    for part in found:
        size = float((lengths + np.abs(centre)) @ np.abs(part.w)) + abs(part.b) + 1.0
        up = (d + 16) * U * size + (spread.depth + 64) * U * part.value
        objective += part.value + up
        gap += min(max(part.value - part.lower, 0.0) + 2.0 * up, part.value + up)
        rounding += 2.0 * up
    hurried = (
        (OUT_OF_TIME,) if budget.stopped_by is not None and not any(part.lower for part in found) else ()
    )
    return Certificate(
        "duality gap",
        objective,
        gap,
        float(len(found)),
        budget.tol,
        notes=hurried,
        rounding=min(rounding, gap),
    )
