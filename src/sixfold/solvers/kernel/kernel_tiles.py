"""Kernels of the rows of a table A with the rows of a table B, tile by tile: what native loops do not know.

Sparse rows, functions, sums of kernels and precomputed values go through tiles of at most 64 MB, in float64.
Of sparse rows, a kernel is a function of their products (``core.kernel_apply``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.geometry.kernels.base import Form, Kernel
from sixfold.geometry.kernels.standard import squared_lengths

Array = NDArray[Any]
Tile = Callable[[Array], Array]  # the rows of A -> their kernel with the rows of B that were chosen

TILE_BYTES = 1 << 26
SQUARE = 256  # rows and columns that are transposed at a time


class Pairs(Protocol):
    """Computes kernels; ``rows`` are numbers of rows of A, ``others`` of B, None for all.

    A call that the budget ends raises a ``BudgetExhausted``.
    """

    def gram(self, rows: Array, out: Array, budget: Budget) -> None:
        """Fill ``out`` with K between the rows, exactly symmetric; A is B."""

    def block(
        self,
        rows: Array | None,
        others: Array | None,
        out: Array,
        budget: Budget,
        mirrored: Array | None = None,
    ) -> None:
        """Fill ``out`` with K of each row with each other, and ``mirrored`` with the same transposed."""

    def scores(
        self, rows: Array | None, others: Array | None, coefficients: Array, dtype: DTypeLike, budget: Budget
    ) -> Array:
        """Return sum_j K(row, other_j) coefficients_j; K is computed in ``dtype`` and not kept."""


class TiledPairs:
    """Whatever can compute a tile of the matrix: ``tile_of(others)`` returns what does for some rows of A."""

    def __init__(self, A: Any, B: Any, tile_of: Callable[[Array], Tile]) -> None:
        self._A, self._B, self._tile_of = A, B, tile_of

    def gram(self, rows: Array, out: Array, budget: Budget) -> None:
        """Fill ``out``; what is computed is above the diagonal, the rest is mirrored."""
        for part in _parts(rows.size, rows.size, budget):
            upper = self._tile_of(rows[part.start :])(rows[part])
            size = upper.shape[0]
            upper[:, :size] = np.where(np.tri(size, dtype=bool), upper[:, :size].T, upper[:, :size])
            out[part, part.start :] = upper
            _mirror(out[part, part.stop :], out[part.stop :, part])

    def block(
        self,
        rows: Array | None,
        others: Array | None,
        out: Array,
        budget: Budget,
        mirrored: Array | None = None,
    ) -> None:
        """Fill ``out`` and ``mirrored``."""
        for part, tile in self._tiles(rows, others, budget):
            out[part] = tile
            if mirrored is not None:
                _mirror(out[part], mirrored[:, part])

    def scores(
        self, rows: Array | None, others: Array | None, coefficients: Array, dtype: DTypeLike, budget: Budget
    ) -> Array:
        """Return the sums, in float64 whatever ``dtype`` is: tiles are."""
        out = np.empty((count_rows(self._A, rows), coefficients.shape[1]))
        for part, tile in self._tiles(rows, others, budget):
            np.matmul(tile, coefficients, out=out[part])
        return out

    def _tiles(
        self, rows: Array | None, others: Array | None, budget: Budget
    ) -> Iterator[tuple[slice, Array]]:
        index = np.arange(self._A.shape[0]) if rows is None else rows
        right = np.arange(self._B.shape[0]) if others is None else others
        tile = self._tile_of(right)
        for part in _parts(index.size, right.size, budget):
            yield part, tile(index[part])


def given_values(values: Any, others: Array) -> Tile:
    """Return the tile of precomputed values."""

    def tile(rows: Array) -> Array:
        found = values[rows][:, others]
        return np.asarray(found.toarray() if sp.issparse(found) else found, dtype=np.float64)

    return tile


def called_values(kernel: Kernel, A: Any, right: Any) -> Tile:
    """Return the tile of a kernel that computes itself."""
    return lambda rows: kernel(A[rows], right)


def sparse_values(form: Form, A: Any, right: Any) -> Tile:
    """Return the tile of a kernel of sparse rows: it is a function of their products."""
    right = right.astype(np.float64)
    turned, lengths = right.T.tocsr(), squared_lengths(right)

    def tile(rows: Array) -> Array:
        left = A[rows].astype(np.float64)
        products = np.ascontiguousarray((left @ turned).toarray())
        core.kernel_apply(*form, products=products, a_lengths=squared_lengths(left), b_lengths=lengths)
        return products

    return tile


def _mirror(block: Array, out: Array) -> None:
    """Write the block transposed, by squares: 40 million numbers at once took 280 ms, so 37."""
    for i in range(0, block.shape[0], SQUARE):
        for j in range(0, block.shape[1], SQUARE):
            out[j : j + SQUARE, i : i + SQUARE] = block[i : i + SQUARE, j : j + SQUARE].T


def count_rows(table: Any, rows: Array | None) -> int:
    """Return how many rows are meant, all of them by None."""
    return int(table.shape[0]) if rows is None else rows.size


def _parts(rows: int, columns: int, budget: Budget) -> Iterator[slice]:
    """Cut rows into tiles, for as long as the budget lasts."""
    step = max(TILE_BYTES // (8 * max(columns, 1)), 1)
    for start in range(0, rows, step):
        budget.check()
        yield slice(start, min(start + step, rows))
