"""Triangular factors of a second-moment matrix, behind every direct least-squares solution.

For the moment matrix A = mean x x' + l2 I of columns scaled to A_jj = 1 (``scale`` remembers the lengths),

    A = R' R,    R upper triangular

from Cholesky's factorisation of A, which loses twice the digits of the condition number of X, or from
Householder QR of the rows themselves, which loses them once. Columns that depend on others have no pivot of
their own: ``kept`` lists the independent ones and ``combination`` says how the others follow from them, x_dep
= x_kept C.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from sixfold.data.blocks import Block, Blocks
from sixfold.solvers.linalg import EPS

Array = NDArray[Any]


@dataclass(frozen=True)
class TriangularFactor:
    """The triangular factor of the independent columns, all scaled to length 1."""

    R: Array
    scale: Array
    kept: NDArray[np.intp]
    dependent: NDArray[np.intp]
    combination: Array  # in original units: x_dependent = x_kept @ combination

    @property
    def rank(self) -> int:
        """The number of independent columns."""
        return self.kept.size

    @property
    def condition(self) -> float:
        """An estimate of the condition number of the independent columns, scaled to length 1."""
        if self.rank == 0:
            return 1.0
        reciprocal, _ = lapack.dtrcon(self.R, norm="1", uplo="U", diag="N")
        return float(1.0 / max(reciprocal, 1e-300))

    def half_solve(self, slope: Array) -> Array:
        """Return R^-T times the slope of the independent columns: half its square is the gap."""
        return _triangular(self.R, slope[self.kept] / self.scale[self.kept, None], transposed=True)

    def solve(self, slope: Array) -> Array:
        """Return A^-1 times the slope, zero on dependent columns."""
        result = np.zeros(slope.shape)
        half = self.half_solve(slope)
        result[self.kept] = _triangular(self.R, half) / self.scale[self.kept, None]
        return result

    def shortest(self, w: Array) -> Array:
        """Return the shortest of all coefficients that predict the same as these."""
        if self.dependent.size == 0:
            return w
        null = np.zeros((w.shape[0], self.dependent.size))
        null[self.kept] = self.combination
        null[self.dependent, np.arange(self.dependent.size)] = -1.0
        shorter: Array = w - null @ np.linalg.lstsq(null, w, rcond=None)[0]
        return shorter

    def inverse_diagonal(self) -> Array:
        """Return the diagonal of A^-1; not a number on dependent columns."""
        result = np.full(self.scale.size, np.nan)
        inverse = _triangular(self.R, np.eye(self.rank))
        result[self.kept] = np.square(inverse / self.scale[self.kept, None]).sum(axis=1)
        return result

    def singular_values(self) -> Array:
        """Return the square roots of the eigenvalues of A, largest first, zero for what depends."""
        unscaled = np.zeros((self.rank, self.scale.size))
        unscaled[:, self.kept] = self.R * self.scale[self.kept]
        unscaled[:, self.dependent] = unscaled[:, self.kept] @ self.combination
        values = np.zeros(self.scale.size)
        if self.rank:
            values[: self.rank] = np.linalg.svd(unscaled, compute_uv=False)[: self.rank]
        return values


def _triangular(R: Array, right: Array, transposed: bool = False) -> Array:
    """Return R^-1 right or R^-T right, without the 60 microseconds that SciPy's own wrapper adds."""
    return np.asarray(lapack.dtrtrs(R, right, trans=int(transposed))[0]) if R.size else right


def cholesky_factor(A: Array) -> TriangularFactor | None:
    """Return the factor of a moment matrix by Cholesky; None where it is not clearly positive definite."""
    scale = np.sqrt(np.diag(A))
    if not np.all(scale > 0):
        return None
    R, info = lapack.dpotrf(A / np.outer(scale, scale), lower=0, clean=1)
    if info != 0:
        return None
    d = scale.size
    return TriangularFactor(R, scale, np.arange(d), np.arange(0), np.zeros((d, 0)))


def qr_factor(blocks: Blocks, mean: Array, scale: Array, l2: float) -> TriangularFactor:
    """Return the factor by Householder QR of the rows (x - mean) sqrt(q), a few thousand rows at a time.

    Pivoting then orders the columns; the rank is the number of pivots above rounding.
    """
    d = blocks.n_columns
    scale = np.where(scale > 0, scale, 1.0)
    pieces = (piece for block in blocks for piece in _pieces(block, blocks, mean, scale))
    triangle = np.diag(np.sqrt(l2) / scale)
    for piece in pieces:
        triangle = _triangle(np.vstack([triangle, piece]))
    triangle = np.vstack([triangle, np.zeros((max(d - triangle.shape[0], 0), d))])[:d]
    return pivoted_factor(triangle, scale, blocks.n_rows)


def pivoted_factor(triangle: Array, scale: Array, n_rows: int) -> TriangularFactor:
    """Return the factor with its independent columns found by QR with column pivoting."""
    from scipy.linalg import qr

    d = scale.size
    R, order = qr(triangle, mode="r", pivoting=True, check_finite=False)
    pivots = np.abs(np.diag(R))
    rank = int(np.count_nonzero(pivots > max(n_rows, d) * EPS * max(1.0, pivots.max(initial=0.0))))
    if rank == d:
        # Back in the order of the columns, so that the answer does not hang on the pivoting.
        return TriangularFactor(_triangle(triangle), scale, np.arange(d), np.arange(0), np.zeros((d, 0)))
    kept, dependent = np.sort(order[:rank]), np.sort(order[rank:])
    square = _triangle(triangle[:, kept])[:rank] if rank else np.zeros((0, 0))
    return TriangularFactor(square, scale, kept, dependent, _combination(triangle, kept, dependent, scale))


def _combination(triangle: Array, kept: Array, dependent: Array, scale: Array) -> Array:
    """Return C with x_dependent = x_kept C, entries at rounding level set to zero."""
    if kept.size == 0:
        return np.zeros((0, dependent.size))
    C = np.linalg.lstsq(triangle[:, kept], triangle[:, dependent], rcond=None)[0]
    C[np.abs(C) < 1e-9 * np.abs(C).max(axis=0, initial=0.0)] = 0.0
    result: Array = C * scale[dependent] / scale[kept][:, None]
    return result


def _triangle(rows: Array) -> Array:
    from scipy.linalg import qr

    return np.asarray(qr(rows, mode="r", overwrite_a=True, check_finite=False)[0])[: rows.shape[1]]


def _pieces(block: Block, blocks: Blocks, mean: Array, scale: Array) -> Iterator[Array]:
    at_once = max(4096, 4 * mean.size)
    root_q = None if block.weight is None else np.sqrt(block.weight / blocks.weight_sum)
    for first in range(0, block.X.shape[0], at_once):
        rows = slice(first, first + at_once)
        piece = (np.asarray(block.X[rows], dtype=np.float64) - mean) / scale
        piece *= 1.0 / np.sqrt(blocks.weight_sum) if root_q is None else root_q[rows, None]
        yield piece
