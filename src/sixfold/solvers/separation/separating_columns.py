"""Which columns separate the classes all by themselves.

Column j does, for one class against the others, where no row of that class is below (or none above) any
other row, and not all rows are equal: the least value on one side is at least the greatest on the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.data.blocks import Block, Blocks
from sixfold.risk.problem import Problem
from sixfold.solvers.separation.separation import Separation

Array = NDArray[Any]


@dataclass(frozen=True)
class SeparatingColumn:
    """A column that separates one class from the others, but for rows that are equal to the threshold.

    Attributes
    ----------
    column : int
    side : int
        The class; 1 for labels -1 and +1.
    above : bool
        Whether the class is above the threshold; the others are below, or the other way round.
    threshold : float
    strict : bool
        Whether no row is equal to the threshold.
    """

    column: int
    side: int
    above: bool
    threshold: float
    strict: bool


def separating_columns(problem: Problem, blocks: Blocks, target: int = 0) -> list[SeparatingColumn]:
    """Return the columns that separate a class from the others by themselves, the strict ones first.

    >>> from sixfold.data.blocks import MemoryBlocks
    >>> from sixfold.risk.losses import LOSSES
    >>> from sixfold.risk.penalties import make_penalty
    >>> problem = Problem(LOSSES["logistic"], make_penalty(None))
    >>> rows = MemoryBlocks(np.array([[0.0, 5.0], [1.0, 2.0], [0.5, 1.0]]), np.array([[-1.0], [1.0], [1.0]]))
    >>> [(found.column, found.above, found.threshold) for found in separating_columns(problem, rows)]
    [(0, True, 0.25), (1, False, 3.5)]
    """
    classes = problem.loss.labels == "class"
    sides = range(problem.n_scores(blocks)) if classes else (1,)
    found = [
        separator
        for side in sides
        for separator in _separators(side, _ranges(blocks, 0 if classes else target, side))
    ]
    return sorted(found, key=lambda separator: not separator.strict)


def _ranges(blocks: Blocks, target: int, side: int) -> Array:
    """Return least and greatest of each column, for the class and for the others."""

    def ends(block: Block) -> Array:
        inside = block.y[:, target] == side
        return np.array([_ends(block.X, rows & block.counts) for rows in (inside, ~inside)])

    def join(one: Array, two: Array) -> Array:
        return np.stack([np.minimum(one[:, 0], two[:, 0]), np.maximum(one[:, 1], two[:, 1])], axis=1)

    return blocks.reduce(ends, join)


def _ends(X: Any, rows: Array) -> Array:
    if not rows.any():
        return np.array([np.full(X.shape[1], np.inf), np.full(X.shape[1], -np.inf)])
    if sp.issparse(X):
        kept = X[rows]
        return np.array([end.toarray().ravel() for end in (kept.min(axis=0), kept.max(axis=0))], dtype=float)
    # `where` reads the table in place; X[rows] would copy it.
    where = np.broadcast_to(rows[:, None], X.shape)
    return np.array([X.min(axis=0, where=where, initial=np.inf), X.max(axis=0, where=where, initial=-np.inf)])


def _separators(side: int, ranges: Array) -> list[SeparatingColumn]:
    (low, high), (other_low, other_high) = ranges
    found = []
    for above, least, greatest, varied in (
        (True, low, other_high, high > other_low),
        (False, other_low, high, other_high > low),
    ):
        there = np.isfinite(least) & np.isfinite(greatest) & (least >= greatest) & varied
        for column in np.flatnonzero(there):
            middle = float(greatest[column] + (least[column] - greatest[column]) / 2.0)
            strict = bool(least[column] > greatest[column])
            found.append(SeparatingColumn(int(column), side, above, middle, strict))
    return found


def important_columns(found: Separation) -> Array:
    """Return the columns that a direction rests on, those that do most first.

    >>> from sixfold.solvers.separation.separation import Separation
    >>> w, unit = np.array([[1.0], [0.0], [3.0]]), np.array([9.0, 1.0, 1.0])
    >>> important_columns(Separation("complete", w, np.zeros(1), unit, np.zeros(0)))
    array([0, 2])
    """
    size = np.abs(found.w).max(axis=1) * found.unit
    largest = size.max(initial=0.0)
    # Equal but for rounding, which is another on every processor: then by column.
    order = np.argsort(-(size / (largest or 1.0)).round(9), kind="stable")
    return order[size[order] > 0.01 * largest]
