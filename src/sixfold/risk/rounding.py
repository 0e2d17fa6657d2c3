"""Passes over the rows about a centre, each with a bound on its rounding.

With the unit roundoff U = 2^-53, shares q that sum to 1 and |v| = sqrt(sum_i q_i v_i^2), for any centre m:

    scores   s = (x - m).w + c,  c = b + m.w - y0,     |s^ - s|  <=  (d + 8) U (sum_j |x_j - m_j| |w_j| + |c|)
    slopes   g_j = sum_i G_i (x_ij - m_j),             |g^ - g|  <=  (depth + 8) U |G / q| |x_j - m_j|
    sums     of n terms of which none is negative:     pairwise, (40 + log2 n) U of the sum

by the triangle inequality and that of Cauchy and Schwarz, whatever the order within a product. The first
two do not grow with the offset of a column, only with its spread: c is put together in doubled precision.
Where that is not enough, because coefficients are large and cancel, the same sums are formed in doubled
precision altogether (the products by Dekker 1971, the sums by Ogita, Rump and Oishi 2005), at twenty times
the work.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.data.blocks import Block, Blocks, squared_entries

Array = NDArray[Any]

U = 2.0**-53  # half the distance from 1 to the next double
UNDERFLOW = 2.0**-1040  # what 2^30 products next to nothing are off together, each by 2^-1075 and a few times
SAMPLE = 64  # rows that a centre is taken from
FAR = 4.0  # times its spread: from there on an offset is taken off
PIECE = 1 << 17  # entries of X in float64 that are worked on at a time, in the L2 cache
SHORTEST_PIECE, LONGEST_PIECE = 32, 4096  # rows of it, so that few roundings add up
MANY = 64  # columns, from which it is worth while to look for those that do not count
FEW = 0.25  # of all columns: up to so many are copied for a product
DOUBLED_PIECE = 1 << 14
MOST_DIGITS = 32  # by which a last digit is changed, for the sake of the intercept
SPLITTER = 134217729.0  # 2^27 + 1


class Rows:
    """The rows of a table about a centre.

    Attributes
    ----------
    centre : ndarray of shape (columns,)
        m above; 0 where a column is not far from 0, and in sparse tables.
    lengths : ndarray of shape (columns,)
        |x_j - m_j|, or more.
    """

    def __init__(self, blocks: Blocks, q: Array, doubled: bool = False) -> None:
        self.blocks, self.q, self.doubled = blocks, q, doubled
        self.centre = np.zeros(blocks.n_columns) if blocks.sparse else _centre(blocks)
        self.moved = bool(self.centre.any())
        rows = blocks.n_rows
        step = piece_rows(blocks.n_columns)
        # Additions that an entry of a sum over the rows goes through.
        self.depth = rows if blocks.sparse else min(step, rows) + rows // step
        self._step = step
        self._lengths: Array | None = None
        self._buffer = np.empty((0, blocks.n_columns))

    @property
    def lengths(self) -> Array:
        """The root mean square of each column about the centre, rounded up."""
        if self._lengths is None:
            squares = np.zeros(self.blocks.n_columns)
            for block in self.blocks:
                for rows, Z in self.pieces(block):
                    squares += self._squares(rows, Z)
            self._lengths = self._root(squares)
        return self._lengths

    def _squares(self, rows: slice, Z: Any) -> Array:
        if self.blocks.sparse:
            return np.asarray(squared_entries(Z).T @ self.q[rows])
        if self._buffer.shape[0] < Z.shape[0]:
            self._buffer = np.empty_like(Z)
        squares = self._buffer[: Z.shape[0]]
        return np.asarray(self.q[rows] @ np.multiply(Z, Z, out=squares))

    def weighted_lengths(self, weights: Array) -> Array:
        """Return sqrt(sum_i weights_ik (x_ij - m_j)^2) for all columns j and k, rounded up."""
        total = np.zeros((self.blocks.n_columns, weights.shape[1]))
        for block in self.blocks:
            for rows, Z in self.pieces(block):
                total += np.asarray(squared_entries(Z).T @ weights[rows])
        return self._root(total)

    def _root(self, squares: Array) -> Array:
        return np.asarray(np.sqrt(squares) * (1.0 + (self.depth + 8) * U))

    def scores(self, w: Array, b: Array, origin: Array) -> Array:
        """Return w.x + b - origin for all rows."""
        if self.doubled:
            return self._doubled_scores(w, b - 0.0, origin)
        c = self.constant(w, b, origin)
        if w.shape[0] >= MANY and not self.blocks.sparse:
            used = np.flatnonzero(w.any(axis=1))
            if used.size < FEW * w.shape[0]:
                return self._scores_of_few(w[used], used, c)
        parts = []
        for block in self.blocks:
            if not self.moved and (self.blocks.sparse or block.X.dtype == np.float64):
                parts.append(np.asarray(block.X @ w) + c)
            else:
                parts += [np.asarray(Z @ w) + c for _, Z in self.pieces(block)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _scores_of_few(self, w: Array, used: Array, c: Array) -> Array:
        """Return the scores where most columns do not count."""
        parts = [(block.X[:, used] - self.centre[used]) @ w for block in self.blocks]
        return np.concatenate(parts) + c

    def score_rounding(self, w: Array, b: Array, origin: Array) -> Array:
        """Return what rounding may have done to the scores of each column of w, as a root mean square."""
        size = self.lengths @ np.abs(w) + np.abs(self.constant(w, b, origin))
        d = w.shape[0]
        if not self.doubled:
            return (d + 8) * U * size
        # The last rounding, of the score itself, and what is left of the others.
        plain = self.lengths @ np.abs(w) + np.abs(self.centre) @ np.abs(w) + np.abs(b) + np.abs(origin)
        return 64.0 * d * U * U * plain

    def constant(self, w: Array, b: Array, origin: Array) -> Array:
        """Return c = b + m.w - origin, as if in doubled precision."""
        if not self.moved:
            return b - origin
        high, low = two_product(self.centre[:, None], w)
        high, low = np.vstack([high, b, -origin]), np.vstack([low, np.zeros((2, b.size))])
        return np.add(*sum_doubled(high, low))

    def slope(self, mass: Array, measured: bool = False) -> tuple[Array, Array]:
        """Return sum_i mass_i (x_i - m) and sum_i mass_i; mass has shape (rows, scores).

        Where lengths will be ``measured`` they are, in the same pass.
        """
        if self.doubled:
            return self._doubled_slope(mass)
        total = np.zeros((self.blocks.n_columns, mass.shape[1]))
        if not measured or self._lengths is not None:
            for block in self.blocks:
                for rows, Z in self.pieces(block):
                    total += np.asarray(Z.T @ mass[rows])
            return total, pairwise(mass)
        squares = np.zeros(self.blocks.n_columns)
        for block in self.blocks:
            for rows, Z in self.pieces(block):
                total += np.asarray(Z.T @ mass[rows])
                squares += self._squares(rows, Z)
        self._lengths = self._root(squares)
        return total, pairwise(mass)

    def slope_rounding(self, mass: Array, slope: Array, size: Array) -> tuple[Array, Array]:
        """Return what rounding may have done to both of these sums; ``size`` is |mass / q|, or more."""
        sums = size  # by Cauchy and Schwarz
        n = mass.shape[0]
        if self.doubled:
            plain = np.outer(self.lengths + np.abs(self.centre), size)
            return 4.0 * U * np.abs(slope) + 64.0 * n * U * U * plain, 64.0 * n * U * U * sums
        return (self.depth + 8) * U * np.outer(self.lengths, size), sum_rounding(n) * sums

    def pieces(self, block: Block) -> Iterator[tuple[slice, Any]]:
        """Go through x - m, in float64 and a cacheful at a time."""
        if self.blocks.sparse:
            yield block.rows, block.X
            return
        for first in range(0, block.X.shape[0], self._step):
            part = block.X[first : first + self._step]
            rows = slice(block.start + first, block.start + first + part.shape[0])
            if self.moved:
                yield rows, part - self.centre
            else:
                yield rows, np.asarray(part, dtype=np.float64)

    def _doubled_pieces(self) -> Iterator[tuple[slice, Array]]:
        for block in self.blocks:
            step = max(DOUBLED_PIECE // max(block.X.shape[1], 1), 1)
            for first in range(0, block.X.shape[0], step):
                part = block.X[first : first + step]
                part = part.toarray() if self.blocks.sparse else part
                start = block.start + first
                yield slice(start, start + part.shape[0]), np.asarray(part, dtype=np.float64)

    def _doubled_scores(self, w: Array, b: Array, origin: Array) -> Array:
        parts = []
        for _, X in self._doubled_pieces():
            columns = []
            for k in range(w.shape[1]):
                high, low = two_product(np.ascontiguousarray(X.T), w[:, k : k + 1])
                ends = np.broadcast_to([[b[k]], [-origin[k]]], (2, X.shape[0]))
                high, low = np.vstack([high, ends]), np.vstack([low, np.zeros((2, X.shape[0]))])
                columns.append(np.add(*sum_doubled(high, low)))
            parts.append(np.column_stack(columns))
        return np.concatenate(parts)

    def _doubled_slope(self, mass: Array) -> tuple[Array, Array]:
        high = np.zeros((self.blocks.n_columns, mass.shape[1]))
        low = np.zeros_like(high)
        for rows, X in self._doubled_pieces():
            for k in range(mass.shape[1]):
                part, rest = sum_doubled(*two_product(X, mass[rows, k : k + 1]))
                high[:, k], error = two_sum(high[:, k], part)
                low[:, k] += rest + error
        total, left = sum_doubled(mass, np.zeros_like(mass))
        away, lost = two_product(-self.centre[:, None], total)
        high, error = two_sum(high, away)
        return high + (low + error + lost - self.centre[:, None] * left), total + left


def piece_rows(columns: int) -> int:
    """Return how many rows of a dense table are worked on at a time."""
    return min(max(PIECE // max(columns, 1), SHORTEST_PIECE), LONGEST_PIECE)


def _centre(blocks: Blocks) -> Array:
    """Return the middle of some rows for columns far from 0, exactly their value where that is constant."""
    block = next(iter(blocks))
    every = max(block.X.shape[0] // SAMPLE, 1)
    X = some = block.X[::every]
    if block.weight is not None:
        some = X[block.weight[::every] > 0]
    some = some if some.shape[0] else X
    low, high = some.min(axis=0), some.max(axis=0)
    middle = 0.5 * low.astype(np.float64) + 0.5 * high
    far = np.abs(middle) > FAR * (high - low)
    return np.where(far, middle, 0.0) if far.any() else np.zeros(X.shape[1])


def pairwise(terms: Array) -> Array:
    """Return the sum over the rows of every column, by pairwise summation."""
    if terms.shape[1] == 1:
        return np.add.reduce(terms.ravel(), keepdims=True)
    return np.add.reduce(np.ascontiguousarray(terms.T), axis=1)


def sum_rounding(n: int) -> float:
    """Return what pairwise summation of n terms may lose, of the sum of their absolute values.

    NumPy adds 128 terms in 8 lanes and then pairs; shares of the weights, products and values add a few.
    """
    return (40.0 + math.log2(max(n, 2))) * U


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a + b as a rounded sum and what rounding left of it, exactly."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a b as a rounded product and what rounding left of it, exactly."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = _split(a), _split(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _split(a: Array) -> tuple[Array, Array]:
    far = SPLITTER * a
    high = far - (far - a)
    return high, a - high


def sum_doubled(high: Array, low: Array) -> tuple[Array, Array]:
    """Return the sum over the first axis of high + low, as the same two parts."""
    while high.shape[0] > 1:
        half = high.shape[0] // 2
        total, error = two_sum(high[:half], high[half : 2 * half])
        rest = low[:half] + low[half : 2 * half] + error
        if high.shape[0] % 2:
            total, rest = np.concatenate([total, high[-1:]]), np.concatenate([rest, low[-1:]])
        high, low = total, rest
    return two_sum(high[0], low[0])


def rounded_model(blocks: Blocks, w: Array, c: Array, centre: Array) -> tuple[Array, Array]:
    """Return w and b = c - centre.w as the type of the data holds them, last digits of w chosen to suit b.

    Where columns are far from 0, b is far larger than the scores, and its rounding moves all of them: by
    1e-4 at an offset of 2^40. A last digit more or less of a coefficient moves them by centre_j times that,
    and changes little else.
    """
    w, b = blocks.rounded(w), np.zeros(c.size)
    for k, column in enumerate(w.T):
        b[k] = blocks.rounded(np.array(_constant_left(c[k], 0.0, centre, column)))
        digits = np.where(column, np.spacing(np.abs(column).astype(blocks.dtype)), 0.0).astype(np.float64)
        steps, left = digits * centre, _constant_left(c[k], b[k], centre, column)
        for j in np.argsort(-np.abs(steps), kind="stable"):
            if 0.5 * abs(steps[j]) < abs(left) < MOST_DIGITS * abs(steps[j]):
                column[j] = blocks.rounded(column[j] + round(left / steps[j]) * digits[j])
                left = _constant_left(c[k], b[k], centre, column)
    return w, b


def _constant_left(c: float, b: float, centre: Array, w: Array) -> float:
    """Return c - b - centre.w, rounded once."""
    high, low = two_product(centre, w)
    return math.fsum((c, -b, *-high, *-low))
