"""The mean and the spread of every column in one pass, joined as moments are (Chan, Golub and LeVeque 1983).

A mean is counted from the first row of its block, so that the mean of a constant column is exactly its value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.data.blocks import Block, Blocks
from sixfold.data.column_means import ColumnMeans

Array = NDArray[Any]

PIECE = 1 << 17  # entries of X that are worked on at a time, in the L2 cache
LONGEST_PIECE = 1024  # rows of it, so that few roundings add up


@dataclass(frozen=True)
class ColumnSpread:
    """Rows that count, the sum of their weights, and mean and squares about it of every column.

    ``longest`` is the number of rows of the longest block, and ``blocks`` that of blocks.
    """

    rows: int
    weight: float
    mean: Array
    squares: Array
    longest: int = 0
    blocks: int = 0

    def __add__(self, other: ColumnSpread) -> ColumnSpread:
        """Return the same of both sets of rows."""
        weight = self.weight + other.weight
        longest, blocks = max(self.longest, other.longest), self.blocks + other.blocks
        if weight == 0.0:
            return replace(self, longest=longest, blocks=blocks)
        apart, share = other.mean - self.mean, other.weight / weight
        return ColumnSpread(
            self.rows + other.rows,
            weight,
            self.mean + share * apart,
            self.squares + other.squares + self.weight * share * apart**2,
            longest,
            blocks,
        )

    @property
    def depth(self) -> float:
        """Additions that an entry of a sum over the rows goes through at most: in a piece, a block, all."""
        return LONGEST_PIECE + self.longest / self.piece + self.blocks + 2.0

    @property
    def piece(self) -> int:
        """How many rows are worked on at a time."""
        return _step(self.mean.size)

    def means(self) -> ColumnMeans:
        """Return the means, as explanations read them."""
        return ColumnMeans(self.mean.copy(), self.rows, self.weight)

    def lengths(self, centre: Array) -> Array:
        """Return the root mean square of each column about a centre."""
        return np.sqrt(self.squares / self.weight + (self.mean - centre) ** 2)


def pieces(block: Block) -> list[slice]:
    """Return the rows of a block, a cacheful at a time."""
    step = _step(block.X.shape[1])
    return [slice(first, first + step) for first in range(0, block.X.shape[0], step)]


def _step(columns: int) -> int:
    return min(max(PIECE // max(columns, 1), 32), LONGEST_PIECE)


def block_spread(block: Block) -> ColumnSpread:
    """Return mean and squares of one block."""
    first = np.asarray(block.X[0], dtype=np.float64)
    found: ColumnSpread | None = None
    for rows in pieces(block):
        Z = block.X[rows] - first
        q = np.ones(Z.shape[0]) if block.weight is None else np.asarray(block.weight[rows], dtype=np.float64)
        weight = float(q.sum())
        mean = q @ Z / weight if weight > 0 else np.zeros(Z.shape[1])
        squares = q @ np.square(Z - mean)
        part = ColumnSpread(int(np.count_nonzero(q)), weight, mean, squares)
        found = part if found is None else found + part
    assert found is not None
    return ColumnSpread(found.rows, found.weight, first + found.mean, found.squares, block.y.shape[0], 1)


def column_spread(blocks: Blocks) -> ColumnSpread:
    """Return mean and squares of all rows: one pass."""
    return blocks.reduce(block_spread, ColumnSpread.__add__)
