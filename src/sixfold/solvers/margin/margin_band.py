"""The hinge with a squared penalty, solved on the rows near their kink.

    R(w, b) = sum_i q_i max(0, 1 - m_i) + l2 |w|^2 / 2,      m_i = y_i (w.x_i + b)

Beyond the margin, m > 1, a row has no loss; within it, m < 1, its loss is linear, and the rows of one label
are like one row, their mean, with the weight of all. Only rows near the kink count one by one. So, from a
model that a sample gives:

1. A pass (native/linear/margin/margin_pass.hpp) finds all m_i, R, how many rows have |m - 1| below each of
   ``WIDTHS``, and the sums of the rows within the margin.
2. Those with |m - 1| < width, the band, and the means of the others within the margin are a reduced problem,
   which the interior point minimises.
3. The next pass is at its minimiser.

*The bound.* A mean row has at most the mean loss of its rows (the hinge is convex), and rows that were left
out had at least none. So the reduced objective is never above R, wherever rows have moved to, and what no
model of the reduced problem is below, no model is below at all. Where no row outside of the band has changed
sides both are equal at the model, which then is the minimiser of R. The multiplier of a mean row is that of
all its rows, which makes the reduced dual point one of all rows.

*How many rows.* A model of n random rows has margins that are off by s with s^2 = (d + 1) P / (n f^2), where
P is the share of rows within the margin and f the density of margins at 1. So 2 k s f = 2 k sqrt((d + 1) P /
n) of all rows are within k s, whatever f is. The sample is followed by one that is up to ``GROWTH`` times as
large, of which only the band counts again, and so on to all rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget, BudgetExhausted
from sixfold.data.blocks import Block, Blocks, mapping_of, rows_of
from sixfold.risk.problem import Problem, normalized_weights
from sixfold.risk.rounding import Rows, U, piece_rows, rounded_model, two_product
from sixfold.solvers.least_squares.moments import rough_mean
from sixfold.solvers.margin.central_path import minimise_target
from sixfold.solvers.margin.progress import MarginProgress
from sixfold.solvers.margin.terms import Terms
from sixfold.solvers.threads import single_threaded_blas

Array = NDArray[Any]
Precision = type[np.float32] | type[np.float64]

LEAST_BIN = (1023 - 40) * 2  # as native/linear/margin/margin_pass.cpp counts |m - 1|
WIDTHS = np.append(
    ((LEAST_BIN + np.arange(core.DISTANCE_BINS - 1, dtype=np.uint64)) << np.uint64(51)).view(np.float64),
    math.inf,
)
LABELS = np.array([-1.0, 1.0])

SAMPLE_ROWS = 5_000  # of the first sample, or
SAMPLE_ROWS_A_COLUMN = 150
GROWTH = 13  # of samples, of which there are two at least
LARGEST_SAMPLE = 400_000  # rows: more are as dear to gather, from a file above all, as to weigh one by one
DEVIATIONS = 2.5  # k: of 1,000,000 x 30 rows 46,000 count then, with 3 it is 57,000 and one round as well
ROWS_A_COLUMN = 50  # of a band at least: d + 1 of them are at their kink in the end
TRUSTED = 0.5  # of what a band promises to take off the objective may be missing
RARE = 0.25  # of a sample: rows that the rarer label has there, if there are as many
LOOSE = 0.05  # of (d + 1) / n, by which the objective of a sample is off: what is asked of its minimum
CLOSER = (
    0.01  # of the tolerance: what is asked of the reduced problem of all rows, so that its vertex is found
)
# Tolerance from which the first band is held in single precision: 200,000 x 100 take 15% of X beside it and
# not 23%. Where that does not do, the next band has half the rows, in double precision.
SINGLE = 1e-7
ENOUGH = 0.9  # of the tolerance is a gap that ends the rounds: rounding has the rest
NARROWER = 0.5  # bands, round after round
MOST = 0.4  # of all rows: beyond, the interior point itself is as fast
FEWEST_ROWS = 50_000  # where rounds that lead nowhere cost a sixth of the path
LEAST_GROWTH = 4  # from the first sample to all rows: 200,000 x 100 take a third of the time
LOST = 1e-12  # of the weight within the margin: what is left of it when the band is subtracted and nothing is
CHUNK = 1 << 16  # rows whose distances are looked at together, in the L2 cache


class ChosenRows:
    """Rows of a table that are gathered when they are needed, to where they are needed."""

    def __init__(self, parts: list[Block], numbers: Array) -> None:
        self.parts, self.numbers = parts, numbers

    def pieces(self) -> Iterator[tuple[slice, Callable[[], Array]]]:
        """Go through the rows, as many at a time as are certified together: which, and these when asked."""
        for part in self.parts:
            first, end = np.searchsorted(self.numbers, [part.rows.start, part.rows.stop])
            step = piece_rows(part.X.shape[1])
            for at in range(first, end, step):
                some = slice(at, min(at + step, end))
                yield some, partial(_gathered, part, self.numbers[some])

    def chunks(self) -> Iterator[tuple[slice, Array]]:
        """Go through the rows, a few at a time: which of the chosen ones, and these."""
        return ((some, gather()) for some, gather in self.pieces())


def _gathered(part: Block, numbers: Array) -> Array:
    return np.asarray(rows_of(part.X, numbers - part.start), dtype=np.float64)


class GatheredBlock(Block):
    """Some of these rows about the centre, gathered when they are read: not for their labels alone."""

    gather: Callable[[], Array]
    centre: Array

    def __init__(
        self, gather: Callable[[], Array], centre: Array, y: Array, weight: Array, start: int
    ) -> None:
        vars(self).update(gather=gather, centre=centre, y=y, weight=weight, start=start)

    @cached_property
    def X(self) -> Array:  # noqa: N802
        """The rows."""
        return np.asarray(self.gather() - self.centre)


@dataclass(frozen=True)
class Band:
    """The rows near their kink, and the means of those within the margin.

    Attributes
    ----------
    X : ndarray or ChosenRows
        The rows in the band.
    y, weight, numbers : ndarray
        Theirs; ``numbers`` are those among all rows.
    mass : ndarray of shape (2,)
        The weights of rows of label -1 and +1 within the margin.
    sums : ndarray of shape (2, columns)
        Their sums, about the centre.
    """

    X: Any
    y: Array
    weight: Array
    numbers: Array
    mass: Array
    sums: Array

    def chunks(self) -> Iterator[tuple[slice, Array]]:
        """Go through its rows, a few at a time if they are not gathered yet."""
        return self.X.chunks() if isinstance(self.X, ChosenRows) else iter([(slice(self.y.size), self.X)])

    def __add__(self, other: Band) -> Band:
        """Return the same of both sets of rows."""
        rows = ("X", "y", "weight", "numbers")
        both = {name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in rows}
        return Band(**both, mass=self.mass + other.mass, sums=self.sums + other.sums)


class ReducedRows(Blocks):
    """The rows of a band about the centre, and the means of the others within the margin.

    Rows are held in some precision, if it has room for them, or gathered anew in float64 by each pass that
    reads them. Means are in float64: each counts for many rows, while the rounding of single ones evens out.
    """

    def __init__(self, band: Band, centre: Array, held: Precision | None) -> None:
        there, n = band.mass > 0, band.y.size
        self.band, self.centre = band, centre
        self.n_rows, self.n_columns, self.n_targets = n + int(np.count_nonzero(there)), centre.size, 1
        self.weight_sum = float(band.weight.sum() + band.mass.sum())
        self.dtype, self.sparse = np.dtype(np.float64), False
        means = band.sums[there] / band.mass[there, None]
        self.means = Block(means, LABELS[there][:, None], band.mass[there], n)
        self.held: Array | None = None
        if held is not None:
            self.held = self._hold(held)
            if held is np.float32 and not np.isfinite(self.held.sum(dtype=np.float64)):
                self.held = self._hold(np.float64)

    def _hold(self, precision: Precision) -> Array:
        held = np.empty((self.band.y.size, self.centre.size), dtype=precision)
        with np.errstate(over="ignore" if precision is np.float32 else None):
            for some, rows in self.band.chunks():
                np.subtract(rows, self.centre, out=held[some], casting="same_kind")
        return held

    def __iter__(self) -> Iterator[Block]:
        """Go through the rows of the band, then through the means."""
        y, weight = self.band.y[:, None], self.band.weight
        if self.held is not None:
            yield Block(self.held, y.astype(self.held.dtype), weight, 0)
        else:
            for some, gather in self.band.X.pieces():
                yield GatheredBlock(gather, self.centre, y[some], weight[some], some.start)
        if self.means.y.size:
            yield self.means


@dataclass(frozen=True)
class Reduced:
    """The minimiser of a reduced problem, what no model is below, and the slopes of its rows.

    ``theta`` is (w, c) with scores w.(x - centre) + c, ``means`` are the slopes of both mean rows, ``inside``
    is the share of the weight that is within the margin. What no model of the reduced problem is below is
    ``lower`` but for rounding, and ``certain`` with it; that a model is above it by ``gap`` limits how far it
    is from the minimiser.
    """

    theta: Array
    lower: float
    slopes: Array
    means: Array
    inside: float
    certain: float = 0.0
    gap: float = math.inf


def minimise_band(
    problem: Problem,
    band: Band,
    centre: Array,
    weight_sum: float,
    tol: float,
    budget: Budget,
    bounded: bool,
    held: Precision = np.float64,
) -> Reduced:
    """Return the minimiser of the reduced problem, to ``tol`` of the objective of zero on all rows.

    ``bounded`` asks for its vertex, and for a bound that holds with rounding: of a sample neither is wanted.
    Rows are ``held`` in some precision while the minimiser is looked for; the bound is that of the rows in
    float64.
    """
    blocks = ReducedRows(band, centre, held)
    share = blocks.weight_sum / weight_sum
    reduced = replace(problem, alpha=problem.alpha / share)
    inner = Budget(tol / share, 1000, budget.seconds_left if budget.time_limit is not None else None)
    inner.flag = budget.flag
    with single_threaded_blas(min(blocks.n_rows, blocks.n_columns)):
        terms = Terms(reduced, blocks, 0, inner)
        theta, slopes, gap = minimise_target(terms, MarginProgress(reduced, blocks, inner), bounded)
    y, weight = terms.targets(), terms.high - terms.low
    losses = np.maximum(1.0 - y * terms.scores(theta), 0.0)
    value = share * (float(weight @ losses) + 0.5 * reduced.l2 * float(theta[:-1] @ theta[:-1]))
    inside = share * float(weight @ np.abs(slopes))
    theta = np.append(theta[:-1], theta[-1] - terms.shift @ theta[:-1])
    del terms  # whose nine vectors need not be there while the bound is worked out
    budget.check()
    means = np.zeros(2)
    means[band.mass > 0] = slopes[band.y.size :]
    found = Reduced(theta, max(value - share * gap, 0.0), slopes[: band.y.size], means, inside)
    if not bounded:
        return found
    if held is not np.float64:
        blocks = ReducedRows(band, centre, None)
    certificate, _ = reduced.certify_with_dual(
        "duality gap", theta[:-1, None], theta[-1:], blocks, tol, slopes[:, None], 1.0, closer=False
    )
    lower, rounding = share * certificate.lower_bound, share * certificate.rounding
    return replace(found, lower=lower + rounding, certain=lower, gap=share * certificate.gap)


def mean_rounding(problem: Problem, found: Reduced, off: Array, share: float) -> float:
    """Return by how much the rounding of mean rows may have raised the bound on the reduced problem.

    With sums of these rows off by ``off`` and their weights by a ``share``, losses at w are off by off.|w|
    and that share at most. The reduced objective has a curvature of l2 at least, so that its minimiser is
    within sqrt(2 gap / l2) of the model, and a w that is farther from it by r gains |off| r and pays
    l2 r^2 / 2: no more than |off|^2 / (2 l2) is to be had.
    """
    size = float(np.linalg.norm(off))
    near = float(off @ np.abs(found.theta[:-1])) + size * math.sqrt(2.0 * found.gap / problem.l2)
    return near + size**2 / (2.0 * problem.l2) + share * found.certain + 64 * U * (1.0 + found.certain)


class SignedTable:
    """Rows of one target, a model's distances m - 1 of them, and the bands near it.

    Attributes
    ----------
    past : ndarray of shape (rows,)
        m - 1, NaN where a row does not count.
    counts : ndarray
        How many rows are nearer to their kink than each of ``WIDTHS``.
    counted : int
        How many rows have a weight above 0.
    effective : float
        As many rows of one weight say as much.
    mass_rounding : float
        By what share the weights of the last band's mean rows may be off.
    """

    def __init__(
        self, problem: Problem, parts: list[Block], target: int, centre: Array, budget: Budget
    ) -> None:
        self.problem, self.parts, self.centre, self.budget = problem, parts, centre, budget
        self.y = [np.asarray(part.y[:, target], dtype=np.float64) for part in parts]
        self.weight = [part.float64_weight for part in parts]
        constant = float(problem.fit_intercept)
        self.rows = [core.dense_rows(part.X, centre, constant) for part in parts]
        self.n = parts[-1].rows.stop
        each = list(zip(self.y, self.weight, strict=True))
        self.counted = sum(y.size if q is None else int(np.count_nonzero(q)) for y, q in each)
        self.weight_sum = total = math.fsum(y.size if q is None else float(q.sum()) for y, q in each)
        self.effective = 1.0 / math.fsum(
            y.size / total**2 if q is None else float(np.square(q / total).sum()) for y, q in each
        )
        self.past = np.empty(self.n)
        # Additions that an entry of a sum over the rows goes through at most.
        self.depth = 512 + max(y.size for y in self.y) / 1024 + len(parts)

    def judge(self, theta: Array) -> float:
        """Return R of a model, with what a band near it needs."""
        d, loss = self.centre.size, 0.0
        self.sums, some = np.zeros((2, d + 2)), np.empty((2, d + 2))
        counts, few = np.zeros((2, core.DISTANCE_BINS), dtype=np.int64)
        for part, rows, y, weight in zip(self.parts, self.rows, self.y, self.weight, strict=True):
            finished, more, _ = core.margin_pass(
                rows, theta, y, weight, 0.0, self.past[part.rows], some, few,
                self.budget.seconds_left, self.budget.flag,
            )  # fmt: skip
            self.budget.check(finished)
            loss, counts = loss + more, counts + few
            self.sums += some
        self.counts = np.cumsum(counts)
        return loss / self.weight_sum + 0.5 * self.problem.l2 * float(theta[:-1] @ theta[:-1])

    def band(self, rows: float) -> Band | None:
        """Return a band of about so many rows, or None if it would have too many."""
        k = min(int(np.searchsorted(self.counts, rows)), WIDTHS.size - 1)
        near = self._nearer(WIDTHS[k])
        distances, wanted = np.abs(self.past[near]), min(math.ceil(rows), near.size)
        width = float(np.partition(distances, wanted - 1)[wanted - 1]) if wanted else 0.0
        chosen = distances < width
        if 2 * np.count_nonzero(chosen) < wanted:  # rows in one place
            chosen[:], width = True, WIDTHS[k]
        numbers = near[chosen]
        if numbers.size > MOST * self.counted:
            return None
        self.width = width
        X, (y, q) = ChosenRows(self.parts, numbers), self._gather(numbers)
        mass, sums, before = self.sums[:, -1].copy(), self.sums[:, :-2].copy(), self.sums[:, -1]
        within = self.past[numbers] <= 0.0
        own = np.where(within & (y == LABELS[:, None]), q, 0.0)
        mass -= own.sum(axis=1)
        for some, part in X.chunks():
            sums -= own[:, some] @ (part - self.centre)
        mass[mass <= LOST * before] = 0.0
        # Weights of rows are whole numbers where there are none, and their sums exact.
        plain = all(weight is None for weight in self.weight)
        lost = before[mass > 0] / mass[mass > 0]
        self.mass_rounding = 0.0 if plain else 2.0 * self.depth * U * float(lost.max(initial=0.0))
        return Band(X, y, q, numbers, mass, sums)

    def _nearer(self, width: float) -> Array:
        """Return the rows whose distance is below a width."""
        chunks = range(0, self.n, CHUNK)
        found = [np.flatnonzero(np.abs(self.past[at : at + CHUNK]) < width) + at for at in chunks]
        return np.concatenate(found)

    def _gather(self, numbers: Array) -> tuple[Array, Array]:
        """Return labels and weights of some rows."""
        labels, weights = [], []
        for part, y, weight in zip(self.parts, self.y, self.weight, strict=True):
            begin, end = np.searchsorted(numbers, [part.rows.start, part.rows.stop])
            some = numbers[begin:end] - part.start
            labels.append(y[some])
            weights.append(np.ones(some.size) if weight is None else weight[some])
        return np.concatenate(labels), np.concatenate(weights)

    def whole(self) -> Band:
        """Return all rows as a band."""
        numbers = np.arange(self.n)
        y, q = self._gather(numbers)
        X = ChosenRows(self.parts, numbers)
        return Band(X, y, q, numbers, np.zeros(2), np.zeros((2, self.centre.size)))

    def sample(self, size: int) -> list[Block]:
        """Return about so many rows, evenly spaced among those of their label, and copied if need be."""
        found: list[Block] = []
        for part, y, weight in zip(self.parts, self.y, self.weight, strict=True):
            counted = None if weight is None else np.flatnonzero(weight)
            labels = y if counted is None else y[counted]
            rarer = 1.0 if 2 * np.count_nonzero(labels > 0) < labels.size else -1.0
            own, every = labels == rarer, max(self.counted // size, 1)
            few = int(np.count_nonzero(own))
            # Of a label that is rare more rows are taken, with less weight.
            closer = max(min(every, int(few / (RARE * size * labels.size / self.counted + 1.0))), 1)
            some = np.arange(every // 2, labels.size, every)
            step = np.full(some.size, float(every))
            if closer < every:
                rare = np.flatnonzero(own)[closer // 2 :: closer]
                common = some[~own[some]]
                some, step = (
                    np.append(common, rare),
                    np.append(step[: common.size], np.full(rare.size, closer)),
                )
                order = np.argsort(some, kind="stable")
                some, step = some[order], step[order]
            rows = some if counted is None else counted[some]
            # A third of 200,000 x 100 rows, which are read twice, stay where they are.
            even = counted is None and closer == every and mapping_of(part.X) is None
            X = part.X[every // 2 :: every] if even else rows_of(part.X, rows)
            q = step if weight is None else step * weight[rows]
            found.append(Block(X, y[rows, None], q, found[-1].rows.stop if found else 0))
        return found

    def write_slopes(self, found: Reduced, band: Band, out: Array) -> None:
        """Write the dual point of all rows that that of a band near the judged model is."""
        for part, y in zip(self.parts, self.y, strict=True):
            for at in range(0, y.size, CHUNK):
                labels = y[at : at + CHUNK]
                some = slice(part.start + at, part.start + at + labels.size)
                mean = np.where(labels > 0, found.means[1], found.means[0])
                out[some] = np.where(self.past[some] <= -self.width, mean, 0.0)
        out[band.numbers] = found.slopes


def has_narrow_band(problem: Problem, blocks: Blocks) -> bool:
    """Return whether the rows of a hinge are so many that few of them are near their kink."""
    many = max(FEWEST_ROWS, LEAST_GROWTH * SAMPLE_ROWS_A_COLUMN * blocks.n_columns)
    stated = problem.loss.name == "hinge" and problem.penalty.quadratic and problem.l2 > 0
    return stated and not blocks.sparse and blocks.n_rows >= many


class BandRounds:
    """The rounds of one target.

    Attributes
    ----------
    w, b : ndarray and float
        The best model so far, as the type of the data holds it.
    """

    def __init__(self, problem: Problem, blocks: Blocks, target: int, progress: MarginProgress) -> None:
        centre = rough_mean(blocks) if problem.fit_intercept else np.zeros(blocks.n_columns)
        self.table = SignedTable(problem, list(blocks), target, centre, progress.budget)
        self.blocks, self.progress, self.target = blocks, progress, target
        self.w, self.b, self.theta = np.zeros(centre.size), 0.0, np.zeros(centre.size + 1)
        self.value, self.lower = math.inf, 0.0
        self._bound: tuple[Reduced, float] | None = None

    def minimise(self, dual: Array) -> bool:
        """Find the minimiser and its dual point; return False if all rows have to be weighed one by one."""
        try:
            return self._minimise(dual)
        except BudgetExhausted:
            self.progress.budget.exhausted()  # which notes why
            return True

    def _minimise(self, dual: Array) -> bool:
        table, progress, budget = self.table, self.progress, self.progress.budget
        start = self._start()
        if start is None:
            return False
        theta, wanted = start
        tolerance = progress.tolerance(self.target)
        held: Precision = np.float32 if budget.tol >= SINGLE else np.float64
        for _ in budget.iterations():
            w, b, theta = self._as_kept(theta)
            value = table.judge(theta)
            if value < self.value:
                self.w, self.b, self.theta, self.value = w, b, theta, value
            else:  # too narrow a band to go by
                wanted /= NARROWER**3
                table.judge(self.theta)
            progress.record(self.target, self.value, max(self.value - self.lower, 0.0))
            if self.value - self.lower <= ENOUGH * tolerance or budget.exhausted():
                return True
            band = table.band(wanted)
            if band is None:
                return False
            found = minimise_band(
                table.problem, band, table.centre, table.weight_sum, CLOSER * tolerance, budget, True, held
            )
            held = np.float64
            if found.lower > self.lower:
                self.lower, self._bound = found.lower, (found, table.mass_rounding)
                table.write_slopes(found, band, dual)
            theta, wanted = found.theta, NARROWER * wanted
        return True

    def _as_kept(self, theta: Array) -> tuple[Array, float, Array]:
        """Return w and b as the type of the data holds them, and (w, c) of these."""
        centre = self.table.centre
        w, b = rounded_model(self.blocks, theta[:-1, None], theta[-1:], centre)
        high, low = two_product(centre, w[:, 0])
        return w[:, 0], float(b[0]), np.append(w[:, 0], math.fsum((b[0], *high, *low)))

    @property
    def bounded(self) -> bool:
        """Whether there is anything that no model is below."""
        return self._bound is not None

    def lengths(self) -> Array:
        """Return the root mean squares of the columns about the centre, or more."""
        q = np.concatenate([normalized_weights(block, self.blocks) for block in self.blocks])
        rows = Rows(self.blocks, q)
        return rows.lengths + np.abs(rows.centre - self.table.centre)

    def certain(self, lengths: Array) -> tuple[float, float, float]:
        """Return the objective at most, the gap at most, and the part of rounding in it."""
        assert self._bound is not None
        table, (found, share) = self.table, self._bound
        size = float(lengths @ np.abs(self.w)) + abs(self.theta[-1]) + 1.0
        up = (self.w.size + 16) * U * size + (table.depth + 64) * U * self.value
        off = 2.0 * (table.depth + 8) * U * lengths
        lower = found.certain - mean_rounding(table.problem, found, off, share)
        gap = min(max(self.value - lower, 0.0) + 2.0 * up, self.value + up)
        return self.value + up, gap, min(max(gap - max(self.value - self.lower, 0.0), 0.0), gap)

    def _start(self) -> tuple[Array, float] | None:
        """Return a model from samples, and how many of all rows are near enough to it to change sides."""
        table, budget = self.table, self.progress.budget
        d, found, before = table.centre.size, None, 0.0
        first = max(SAMPLE_ROWS, SAMPLE_ROWS_A_COLUMN * d)
        if table.counted < LEAST_GROWTH * first:
            return None
        most = min(table.counted / first, GROWTH * max(LARGEST_SAMPLE / first, 1.0))
        samples = max(math.ceil(math.log(most) / math.log(GROWTH)), 2)
        for k in range(samples):
            blocks = table.sample(int(first * most ** (k / samples)))
            some = SignedTable(table.problem, blocks, 0, table.centre, budget)
            band: Band | None
            if found is None:
                band = some.whole()
            else:
                value = some.judge(found.theta)
                band = some.band(_rows_off(some.counted, d, before, found.inside))
            if band is None:
                return None
            noise, tol = (d + 1) / some.counted, budget.tol
            other = minimise_band(
                table.problem, band, table.centre, some.weight_sum, max(tol, LOOSE * noise), budget, False,
                np.float32,
            )  # fmt: skip
            # Where many rows are in one place, or nothing tells labels apart, others cross the kink as well.
            if found is not None:
                lost = some.judge(other.theta) - other.lower
                if lost > TRUSTED * (value - other.lower) + noise:
                    return None
            found, before = other, some.effective
        assert found is not None
        return found.theta, _rows_off(table.counted, d, before, found.inside)


def _rows_off(rows: int, d: int, before: float, inside: float) -> float:
    """Return how many of so many rows may be on the wrong side of a model that fewer rows gave."""
    return max(2.0 * DEVIATIONS * rows * math.sqrt((d + 1) * inside / before), ROWS_A_COLUMN * (d + 1.0))
