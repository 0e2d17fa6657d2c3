"""Triangular factors of a second-moment matrix, behind every direct least-squares solution.

For the moment matrix A = mean x x' + l2 I of columns scaled to A_jj = 1 (``scale`` remembers the lengths),

    A = R' R,    R upper triangular

from Cholesky's factorisation of A, which loses twice the digits of the condition number of X, or from
Householder QR of the rows themselves, which loses them once. Without penalty the latter is
:func:`sixfold.risk.rank.column_space`, which finds dependent columns; with one there are none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, qr

from sixfold.data.blocks import Block, Blocks
from sixfold.risk.rank import ColumnSpace, cholesky_loss, independent_columns, qr_loss
from sixfold.solvers.least_squares.slopes import SecondMoments

Array = NDArray[Any]

# Of the scaled columns, what is left of one that only moments are known of: half the digits.
MOMENTS_PIVOT = 1e-13


def cholesky_factor(second: SecondMoments) -> ColumnSpace | None:
    """Return the factor of A + l2 I by Cholesky; None where it is not clearly positive definite."""
    A, l2 = second.A, second.problem.l2
    scale = np.sqrt(np.maximum(A.diagonal(), 0.0) + l2)
    if not (scale > 0).all():
        return None
    scaled = A / (scale[:, None] * scale)
    if l2 > 0:
        scaled.flat[:: scale.size + 1] += l2 / scale**2
    R, failed = lapack.dpotrf(scaled, lower=0, clean=1)
    if failed:
        return None
    off = second.moments.rounding * float(np.square(second.sizes / scale).sum())
    return independent_columns(R, scale, cholesky_loss(R, off))


def penalised_factor(blocks: Blocks, second: SecondMoments) -> ColumnSpace:
    """Return the factor of A + l2 I by QR of the rows (x - mean) sqrt(q) and of sqrt(l2) I.

    Far from zero the mean is rounded by as much as nearly dependent columns differ, so what is left of it
    in the centred rows is taken off as well.
    """
    d, l2 = blocks.n_columns, second.problem.l2
    centred = second.problem.fit_intercept
    mean = second.mean_x if centred else np.zeros(d)
    scale = np.sqrt(np.maximum(np.diag(second.A), 0.0) + l2)
    rest = sum((q[:, 0] @ Z for Z, q in _centred(blocks, mean)), np.zeros(d)) * centred
    R: Array = np.diag(np.sqrt(l2) / scale)
    for Z, q in _centred(blocks, mean):
        part = (Z - rest) / scale * np.sqrt(q)
        R = qr(np.vstack([R, part]), mode="r", overwrite_a=True, check_finite=False)[0][:d]
    return independent_columns(R, scale, qr_loss(R, blocks.n_rows))


def _centred(blocks: Blocks, mean: Array) -> Iterator[tuple[Array, Array]]:
    """Go through x - mean and the column of weights q, piece by piece."""
    for block in blocks:
        for rows in _pieces(block, mean.size):
            Z = np.asarray(block.X[rows], dtype=np.float64) - mean
            weight = np.ones(len(Z)) if block.weight is None else np.asarray(block.weight[rows], np.float64)
            yield Z, weight[:, None] / blocks.weight_sum


def factor_of_moments(second: SecondMoments) -> ColumnSpace:
    """Return the factor of A + l2 I where the rows are gone: dependence is seen with half the digits."""
    size = second.sizes
    length = np.sqrt(np.maximum(np.diag(second.A), 0.0) + second.problem.l2)
    constant = length <= np.sqrt(4.0 * second.moments.rounding) * size
    scale = np.where(constant, np.where(size > 0, size, 1.0), length)
    A = second.A / np.outer(scale, scale)
    A.flat[:: scale.size + 1] += second.problem.l2 / scale**2
    some = np.flatnonzero(~constant)
    R, order, rank, _ = lapack.dpstrf(A[np.ix_(some, some)], lower=0, tol=scale.size * MOMENTS_PIVOT)
    R, order = np.triu(R), some[order - 1]
    kept, dependent = order[:rank], np.concatenate([order[rank:], np.flatnonzero(constant)])
    C = np.zeros((rank, dependent.size))
    if rank:
        C[:, : some.size - rank] = lapack.dtrtrs(R[:rank, :rank], R[:rank, rank:])[0]
        C[np.abs(C) < 1e-6 * np.abs(C).max(axis=0, initial=0.0)] = 0.0
    combination = C * scale[dependent] / scale[kept][:, None]
    in_order = np.argsort(dependent)
    off = second.moments.rounding * float(np.square(size / scale)[kept].sum())
    triangle = R[:rank, :rank]
    return ColumnSpace(
        scale, kept, triangle, dependent[in_order], combination[:, in_order],
        np.zeros(dependent.size, dtype=bool), cholesky_loss(triangle, off),
    )  # fmt: skip


def _pieces(block: Block, d: int) -> list[slice]:
    step = max(4096, 4 * d)
    return [slice(first, first + step) for first in range(0, block.X.shape[0], step)]
