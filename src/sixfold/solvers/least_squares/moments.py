"""Means and second moments of a table: all that least squares needs to know of tall data.

With z_i = (x_i, y_i) and weights w_i:

    weight = sum_i w_i     mean = sum_i w_i z_i / weight     scatter = sum_i w_i (z_i - mean)(z_i - mean)'

Moments of two sets of rows add up to those of both (Chan, Golub and LeVeque 1983), which is what makes
blocks, ``partial_fit`` and cross-validation folds cheap:

    scatter = scatter_a + scatter_b + (weight_a weight_b / weight) (mean_b - mean_a)(mean_b - mean_a)'

Entry ij of the scatter is off by at most ``rounding`` weight size_i size_j, and entry j of the mean by
``rounding`` size_j + 2 u |mean_j|, where size_j^2 is the mean square of column j about the point that was
subtracted before it was squared: a rough mean, or zero for sparse tables, whose digits cancel.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.data.blocks import Block, Blocks
from sixfold.solvers.linalg import EPS

Array = NDArray[Any]

# Rows whose mean is subtracted before anything is squared: enough to come within a tenth of a standard
# deviation of the true mean, and few enough to cost nothing.
SHIFT_ROWS = 128
MOST_AVERAGED = 2048
COUNTED_AT_ONCE = 512  # of them: a copy of all would be an eighth of 20,000 x 100

LEFT = 0.25  # of a sum: what has to be left of it where some of its terms are taken away

UNIT = 0.5 * EPS  # the rounding of one operation
# As native/linear/least_squares/moments.cpp sums: blocks of rows, chunks of blocks, and the chunks.
BLOCK_ROWS, CHUNK_ROWS, MOST_CHUNKS, PARTIAL_ENTRIES = 96, 4096, 16, 1 << 22


@dataclass(frozen=True, kw_only=True)
class Means:
    """Weight and mean of some rows; ``n_columns`` of the entries of z are x, the others y.

    ``rows`` counts the rows whose weight is not zero; ``size`` and ``rounding`` bound what rounding did.
    """

    rows: int
    n_columns: int
    weight: float
    mean: Array
    size: Array
    rounding: float

    def sizes(self, centred: bool) -> Array:
        """Return the sizes that bound the rounding of second moments, about the mean or about zero."""
        return self.size if centred else np.hypot(self.size, self.mean)

    def mean_rounding(self) -> Array:
        """Return how far the means may be off."""
        return self.rounding * self.size + 2.0 * UNIT * np.abs(self.mean)


@dataclass(frozen=True, kw_only=True)
class Moments(Means):
    """Weight, mean and scatter of some rows."""

    scatter: Array

    def __add__(self, other: Moments) -> Moments:
        """Return the moments of both sets of rows."""
        weight = self.weight + other.weight
        if weight == 0:
            return self
        apart, share = other.mean - self.mean, other.weight / weight
        size = (1.0 - share) * self.size**2 + share * other.size**2 + share * (1.0 - share) * apart**2
        return Moments(
            rows=self.rows + other.rows,
            n_columns=self.n_columns,
            weight=weight,
            mean=self.mean + share * apart,
            scatter=self.scatter
            + other.scatter
            + (self.weight * other.weight / weight) * np.outer(apart, apart),
            size=np.sqrt(size),
            rounding=max(self.rounding, other.rounding) + 8.0 * UNIT,
        )

    def without(self, other: Moments) -> Moments | None:
        """Return the moments of these rows without some of them; None where that would lose digits.

        What is left of the weight and of the square of every column has to be ``LEFT`` of what there was:
        then subtracting costs two bits at most, and ``size`` says so.
        """
        weight = self.weight - other.weight
        if not weight >= LEFT * self.weight:
            return None
        apart = other.mean - self.mean
        scatter = self.scatter - other.scatter
        scatter -= (self.weight * other.weight / weight) * np.outer(apart, apart)
        if not (scatter.diagonal() >= LEFT * self.scatter.diagonal()).all():
            return None
        size = (self.weight * self.size**2 + other.weight * (other.size**2 + apart**2)) / weight
        return Moments(
            rows=self.rows - other.rows,
            n_columns=self.n_columns,
            weight=weight,
            mean=self.mean - (other.weight / weight) * apart,
            scatter=scatter,
            size=np.sqrt(size),
            rounding=2.0 * max(self.rounding, other.rounding) + 8.0 * UNIT,
        )

    def second(self, centred: bool) -> tuple[Array, Array, Array]:
        """Return mean x x', mean x y' and mean y^2, about the mean or about zero."""
        full = self.scatter / self.weight
        if not centred:
            full = full + np.outer(self.mean, self.mean)
        d = self.n_columns
        return full[:d, :d], full[:d, d:], full.diagonal()[d:]


def rough_mean(blocks: Blocks) -> Array:
    """Return the weighted mean of the columns of a dense table, of some rows where there are many.

    Of few rows all count, so that a row of weight 2 is the same as two rows. Columns are counted from their
    first entry, so that the mean of a constant one is exact.
    """
    every = max(blocks.n_rows // MOST_AVERAGED, 1)
    first = np.asarray(next(iter(blocks)).X[0], dtype=np.float64)
    total, mass = np.zeros(blocks.n_columns), 0.0
    for block in blocks:
        X = block.X[::every]
        weight = np.ones(X.shape[0]) if block.weight is None else block.weight[::every].astype(np.float64)
        for at in range(0, X.shape[0], COUNTED_AT_ONCE):
            some = slice(at, at + COUNTED_AT_ONCE)
            total += weight[some] @ (X[some] - first)
        mass += float(weight.sum())
    mean = first + total / mass if mass > 0 else total
    if every == 1:
        blocks.mean = mean
    return mean


def block_moments(block: Block, flag: NDArray[np.int32]) -> Moments:
    """Return the moments of one block.

    Raises
    ------
    KeyboardInterrupt
        If Ctrl-C was pressed: half a sum is of no use.
    """
    if not isinstance(block.X, np.ndarray):
        return _sparse_moments(block)
    X, Y = block.X, block.y
    p = X.shape[1] + Y.shape[1] + 1
    some = slice(None, None, max(X.shape[0] // SHIFT_ROWS, 1))
    sums = [np.add.reduce(part[some], axis=0, dtype=np.float64) for part in (X, Y)]
    shift = np.concatenate(sums) / max(len(range(X.shape[0])[some]), 1)
    gram = np.empty((p, p))
    weight = block.float64_weight
    if not core.moments(X, Y, weight, shift, None, gram, np.inf, flag):
        raise KeyboardInterrupt
    total = gram[-1, -1]
    offset = gram[-1, :-1] / total if total != 0 else np.zeros(p - 1)
    return Moments(
        rows=X.shape[0] if weight is None else int(np.count_nonzero(weight)),
        n_columns=X.shape[1],
        weight=float(total),
        mean=shift + offset,
        scatter=gram[:-1, :-1] - (total * offset[:, None]) * offset,
        size=np.sqrt(gram.diagonal()[:-1] / total) if total != 0 else np.zeros(p - 1),
        rounding=moment_rounding(X.shape[0], p),
    )


@lru_cache(64)
def moment_rounding(n_rows: int, width: int) -> float:
    """Return the relative rounding of the longest chain of sums that an entry of the scatter goes through."""
    chunks = max(min(n_rows // CHUNK_ROWS, PARTIAL_ENTRIES // width**2, MOST_CHUNKS), 1)
    return (min(n_rows, BLOCK_ROWS) + n_rows / (chunks * BLOCK_ROWS) + chunks + 16.0) * UNIT


def _sparse_moments(block: Block) -> Moments:
    X, Y = block.X.astype(np.float64), np.asarray(block.y, dtype=np.float64)
    weight = np.ones(X.shape[0]) if block.weight is None else np.asarray(block.weight, dtype=np.float64)
    total, d = float(weight.sum()), X.shape[1]
    weighted = X.multiply(weight[:, None]).tocsr()
    mean = np.concatenate([np.asarray(weight @ X).ravel(), weight @ Y]) / max(total, 1e-300)
    scatter = np.empty((mean.size, mean.size))
    scatter[:d, :d] = (weighted.T @ X).toarray()
    scatter[:d, d:] = weighted.T @ Y
    scatter[d:, :d] = scatter[:d, d:].T
    scatter[d:, d:] = Y.T @ (weight[:, None] * Y)
    return Moments(
        rows=int(np.count_nonzero(weight)),
        n_columns=d,
        weight=total,
        mean=mean,
        scatter=scatter - total * np.outer(mean, mean),
        size=np.sqrt(np.maximum(np.diag(scatter), 0.0) / max(total, 1e-300)),
        rounding=(X.shape[0] + 16.0) * UNIT,
    )


def weighted_gram(block: Block, weight: Array, flag: NDArray[np.int32]) -> Array:
    """Return sum_i weight_i z_i z_i' with z = (x, 1), the matrix of every second-order step."""
    X = block.X
    d = X.shape[1]
    gram = np.empty((d + 1, d + 1))
    weight = np.ascontiguousarray(weight, dtype=np.float64)
    if isinstance(X, np.ndarray):
        if not core.moments(
            X, np.empty((X.shape[0], 0), X.dtype), weight, np.zeros(d), None, gram, np.inf, flag
        ):
            raise KeyboardInterrupt
        return gram
    gram[:d, :d] = (X.T @ X.multiply(weight[:, None]).tocsr()).toarray()
    gram[:d, d] = gram[d, :d] = X.T @ weight
    gram[d, d] = weight.sum()
    return gram
