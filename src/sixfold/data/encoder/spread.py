"""Median, mean and deviation of columns of numbers: the same, bit by bit, for a column and for its pieces.

Of CHUNK known numbers after another, without the gaps between them, are found

    s_k = sum_i x_i,    m_k = s_k / n_k,    q_k = sum_i (x_i - m_k)^2

and of those of all chunks, with the median in place of the g gaps,

    mean       (sum_k s_k + g median) / (n + g)
    variance   (sum_k q_k + n_k (m_k - mean)^2 + g (median - mean)^2) / (n + g)

where sums over chunks are rounded once. Where a column is cut makes no difference to its chunks.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sixfold.data.encoder.median import NumberStore, RunningMedian

Array = NDArray[Any]

CHUNK = 1 << 14
TOGETHER = 1 << 16  # numbers that are described in one go: calls would take longer than the work
HUGE, TINY, UNIT = 1e150, 1e-150, 2.0**600  # squares of numbers beyond are infinite or 0


@dataclass(frozen=True)
class Spread:
    """The median of a column of numbers, mean and deviation with it in all gaps, and if there were any."""

    fill: float
    center: float
    scale: float
    gaps: bool


class Chunks(NamedTuple):
    """Some chunks of as many numbers: the sums are those of the numbers times ``unit``."""

    low: Array
    high: Array
    unit: Array
    total: Array
    squares: Array


def describe(columns: Iterable[Array]) -> Iterator[Spread]:
    """Yield the spread of columns of numbers, NaN where one is missing; small ones are looked at together."""
    waiting: list[Array] = []
    for column in columns:
        waiting.append(column)
        if len(waiting) * column.size >= TOGETHER:
            yield from _describe(waiting)
            waiting = []
    if waiting:
        yield from _describe(waiting)


def _describe(columns: list[Array]) -> Iterator[Spread]:
    """Yield the spread of columns of one length."""
    rows: Array = np.array(columns, dtype=np.float64)
    gaps: Array = np.isnan(rows)
    whole: Array = np.array(~gaps.any(axis=1))
    if rows.shape[1] > CHUNK:
        whole[:] = False
    together = _without_gaps(rows if whole.all() else rows[whole]) if whole.any() else iter(())
    for row, missing, easy in zip(rows, gaps, whole, strict=True):
        yield (
            next(together)
            if easy
            else _spread_of(row[~missing] if missing.any() else row, int(missing.sum()))
        )


def _without_gaps(rows: Array) -> Iterator[Spread]:
    """Yield the spread of rows of at most a chunk each."""
    found = _moments(rows)
    with np.errstate(under="ignore"):
        unit = _unit(np.maximum(-found.low, found.high))
        fill = np.median(rows * unit[:, None] if (unit != 1.0).any() else rows, axis=1) + 0.0
        constant = found.low == found.high
        center = np.where(constant, fill, found.total / rows.shape[1])
        scale = np.where(constant, 0.0, np.sqrt(found.squares / rows.shape[1]))
        for one in zip(
            (fill / unit).tolist(), (center / unit).tolist(), (scale / unit).tolist(), strict=True
        ):
            yield Spread(*one, False)


def _spread_of(known: Array, gaps: int) -> Spread:
    """Return the spread of a column from its numbers and how many are missing."""
    if not known.size:
        return Spread(0.0, 0.0, 0.0, bool(gaps))
    places = [(known.size - 1) // 2, known.size // 2]
    lower, upper = np.partition(known, places)[places].tolist()
    parts = [_moments(known[None, start : start + CHUNK]) for start in range(0, known.size, CHUNK)]
    return _joined(Chunks(*map(np.concatenate, zip(*parts, strict=True))), known.size, (lower, upper), gaps)


def _unit(largest: Array) -> Array:
    return np.where(largest > HUGE, 1.0 / UNIT, np.where((largest < TINY) & (largest > 0), UNIT, 1.0))


def _moments(rows: Array) -> Chunks:
    low, high = rows.min(axis=1), rows.max(axis=1)
    unit = _unit(np.maximum(-low, high))
    if (unit != 1.0).any():
        rows = rows * unit[:, None]
    total = rows.sum(axis=1)
    away = rows - (total / rows.shape[1])[:, None]
    # Not by einsum, whose order of summing depends on how many rows there are.
    return Chunks(low, high, unit, total, np.multiply(away, away, out=away).sum(axis=1))


def _joined(parts: Chunks, known: int, middle: tuple[float, float], gaps: int) -> Spread:
    """Return the spread of a column from those of its chunks, of which only the last may be smaller."""
    low, high, units, totals, squares = parts
    number = np.full(low.size, float(CHUNK))
    number[-1] = known - CHUNK * (low.size - 1)
    unit = float(_unit(np.maximum(-low.min(), high.max())))
    with np.errstate(under="ignore"):
        fill = (middle[0] * unit + middle[1] * unit) / 2.0 + 0.0
        if low.min() == high.max():
            return Spread(fill / unit, fill / unit, 0.0, gaps > 0)
        shrink = unit / units
        totals = totals * shrink
        rows = float(known + gaps)
        center = (math.fsum(totals.tolist()) + gaps * fill) / rows
        about = squares * shrink * shrink + number * (totals / number - center) ** 2
        scale = math.sqrt((math.fsum(about.tolist()) + gaps * (fill - center) ** 2) / rows)
        return Spread(fill / unit, center / unit, scale / unit, gaps > 0)


class RunningSpread:
    """The spread of numbers that come in pieces.

    Parameters
    ----------
    store : NumberStore
        For what the median takes.

    Attributes
    ----------
    gaps : int
        So far.
    """

    def __init__(self, store: NumberStore) -> None:
        self.gaps = 0
        self._median = RunningMedian(store)
        self._parts = array("d")  # 40 bytes for a chunk of 128 KB are all that grows with the rows
        self._chunk, self._filled = np.empty(0), 0

    def add(self, numbers: Array) -> None:
        """Take float64 numbers, NaN where one is missing."""
        missing = np.isnan(numbers)
        if missing.any():
            numbers = numbers[~missing]
            self.gaps += missing.size - numbers.size
        start = 0
        while start < numbers.size:
            if self._filled == 0 and numbers.size - start >= CHUNK:
                self._take(numbers[start : start + CHUNK])
                start += CHUNK
                continue
            if not self._chunk.size:
                self._chunk = np.empty(CHUNK)
            taken = numbers[start : start + CHUNK - self._filled]
            self._chunk[self._filled : self._filled + taken.size] = taken
            self._filled += taken.size
            start += taken.size
            if self._filled == CHUNK:
                self._take(self._chunk)
                self._filled = 0

    def _take(self, chunk: Array) -> None:
        self._parts.extend(float(one[0]) for one in _moments(chunk[None]))
        self._median.add(chunk)

    def spread(self) -> Spread:
        """Return the spread of all; nothing can be added afterwards."""
        if self._filled:
            self._take(self._chunk[: self._filled])
        if not self._median.count:
            return Spread(0.0, 0.0, 0.0, self.gaps > 0)
        parts = Chunks(*np.array(self._parts).reshape(-1, len(Chunks._fields)).T)
        middle = self._median.middle(float(parts.low.min()), float(parts.high.max()))
        return _joined(parts, self._median.count, middle, self.gaps)
