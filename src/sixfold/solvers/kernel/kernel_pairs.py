"""Kernels of the rows of a table A with the rows of a table B: as a matrix, or multiplied by coefficients.

Dense rows and a kernel that native loops know: products, kernel and coefficients are one pass over tiles
(native/kernel/kernel_products.hpp). Rows are gathered, centred and converted to the precision that is asked
for while they are packed for it, so no table is ever copied. Everything else, sparse rows, functions, sums of
kernels and precomputed values, goes through tiles of at most 64 MB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from sixfold._native import core
from sixfold.budget import Budget, BudgetExhausted
from sixfold.geometry.kernels import Precomputed
from sixfold.geometry.kernels.base import Form, Kernel, squared_lengths

Array = NDArray[Any]
Tile = Callable[[Array], Array]  # the rows of A -> their kernel with the rows of B that were chosen

TILE_BYTES = 1 << 26
SQUARE = 256  # rows and columns that are transposed at a time


class Pairs(Protocol):
    """Computes kernels; ``rows`` are numbers of rows of A, ``others`` of B, None for all.

    A call that the budget ends raises a :class:`BudgetExhausted`.
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


def make_pairs(A: Any, B: Any, kernel: Kernel, centre: Array | None) -> Pairs:
    """Return the fastest way to compute this kernel of these tables.

    Parameters
    ----------
    A, B : ndarray or CSR, of the same dtype
    kernel : Kernel
    centre : ndarray of shape (columns,) or None
        Is subtracted from dense rows, for kernels that see only differences.
    """
    if isinstance(kernel, Precomputed):
        return TiledPairs(A, B, lambda others: _given_values(A, others))
    if kernel.form is None:
        return TiledPairs(A, B, lambda others: _called_values(kernel, A, B[others]))
    form = kernel.form
    if sp.issparse(A) or sp.issparse(B):
        return TiledPairs(A, B, lambda others: _sparse_values(form, sp.csr_array(A), sp.csr_array(B[others])))
    return LoopPairs(A, B, form, centre)


class LoopPairs:
    """Dense rows, and a kernel that native loops know."""

    def __init__(self, A: Array, B: Array, form: Form, centre: Array | None) -> None:
        self._A, self._B, self._form, self._centre = A, B, form, centre

    def gram(self, rows: Array, out: Array, budget: Budget) -> None:
        """Fill ``out``; half of the entries are computed and the others mirrored."""
        self._block(rows, rows, True, out, budget, None)

    def block(
        self,
        rows: Array | None,
        others: Array | None,
        out: Array,
        budget: Budget,
        mirrored: Array | None = None,
    ) -> None:
        """Fill ``out``, and ``mirrored`` from tiles that are still in the cache."""
        self._block(rows, others, False, out, budget, mirrored)

    def _block(
        self,
        rows: Array | None,
        others: Array | None,
        same: bool,
        out: Array,
        budget: Budget,
        mirrored: Array | None,
    ) -> None:
        if not core.kernel_block(
            *self._form,
            A=self._A,
            a_index=rows,
            B=self._B,
            b_index=others,
            centre=self._centre,
            same=same,
            out=out,
            mirrored=mirrored,
            seconds_left=budget.seconds_left,
            flag=budget.flag,
        ):
            raise BudgetExhausted

    def scores(
        self, rows: Array | None, others: Array | None, coefficients: Array, dtype: DTypeLike, budget: Budget
    ) -> Array:
        """Return the sums; K is not stored."""
        out = np.empty((_count(self._A, rows), coefficients.shape[1]))
        if not core.kernel_scores(
            *self._form,
            A=self._A,
            a_index=rows,
            B=self._B,
            b_index=others,
            centre=self._centre,
            coefficients=np.ascontiguousarray(coefficients, dtype=np.float64),
            single=np.dtype(dtype) == np.float32,
            out=out,
            seconds_left=budget.seconds_left,
            flag=budget.flag,
        ):
            raise BudgetExhausted
        return out


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
        out = np.empty((_count(self._A, rows), coefficients.shape[1]))
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


def _given_values(values: Any, others: Array) -> Tile:
    """Return the tile of precomputed values."""

    def tile(rows: Array) -> Array:
        found = values[rows][:, others]
        return np.asarray(found.toarray() if sp.issparse(found) else found, dtype=np.float64)

    return tile


def _called_values(kernel: Kernel, A: Any, right: Any) -> Tile:
    """Return the tile of a kernel that computes itself."""
    return lambda rows: kernel(A[rows], right)


def _sparse_values(form: Form, A: Any, right: Any) -> Tile:
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


def _count(table: Any, rows: Array | None) -> int:
    return int(table.shape[0]) if rows is None else rows.size


def _parts(rows: int, columns: int, budget: Budget) -> Iterator[slice]:
    """Cut rows into tiles, for as long as the budget lasts."""
    step = max(TILE_BYTES // (8 * max(columns, 1)), 1)
    for start in range(0, rows, step):
        budget.check()
        yield slice(start, min(start + step, rows))
