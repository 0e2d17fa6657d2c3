"""Systems of a few rows and a diagonal: the matrix that is factored has as many rows as there are.

    (K'K + D) x = r,      K of n rows and many more columns, D diagonal

With columns A and the others, B, a block of n rows for the latter is eliminated (Woodbury's identity):

    M = I + K_B D_B^-1 K_B',        (K_A' M^-1 K_A + D_A) x_A = r_A - K_A' M^-1 K_B D_B^-1 r_B
    M z = K_B D_B^-1 r_B + K_A x_A,                       x_B = D_B^-1 (r_B - K_B' z)

The difference in the last line cancels as many digits as |K_j|^2 / D_j has, so that A takes the columns where
this is large: those whose absolute values an interior point lets go, no more than rows in the end. What is
lost beside it is found again by refinement.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import lapack

from sixfold.solvers.linalg import scaled_cholesky

Array = NDArray[Any]

LARGE = 1e6  # |K_j|^2 / D_j, beside which D_j is too small to be divided by
# The same of columns not in A. Beyond, D_j counts as that much: a step along combinations of columns without
# scores is shorter than it could be, but none is lost in rounding.
LOST = 1e13


def few_rows_solver(K: Any, diagonal: Array, refinements: int = 3) -> Callable[[Array], Array]:
    """Return r -> (K'K + D)^-1 r.

    Parameters
    ----------
    K : ndarray or sparse array of shape (rows, columns)
    diagonal : ndarray of shape (columns,)
        D, above 0 but for a few columns.
    refinements : int
        Fewer where the solution is a direction of conjugate gradients, which refine it themselves.

    >>> few_rows_solver(np.array([[1.0, 2.0, 0.0]]), np.array([0.0, 1.0, 4.0]))(np.array([1.0, 2.0, 4.0]))
    array([1., 0., 1.])
    """
    n, squares = K.shape[0], np.asarray((K.multiply(K) if sp.issparse(K) else np.square(K)).sum(axis=0))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.nan_to_num(squares / diagonal, posinf=np.inf)
    own = ratio > LARGE
    if np.count_nonzero(own) > n + 1:
        own = np.zeros(own.size, dtype=bool)
        own[np.argpartition(-ratio, n)[: n + 1]] = True
    mine, others = np.flatnonzero(own), np.flatnonzero(~own)
    lifted = np.maximum(diagonal[others], squares[others] / LOST)
    inverse = np.divide(1.0, lifted, out=np.zeros(others.size), where=lifted > 0)
    K_A, K_B = _dense(K[:, mine]), K[:, others]
    weighted = K_B * inverse if isinstance(K_B, np.ndarray) else K_B @ sp.diags_array(inverse)
    M = _dense(weighted @ K_B.T)
    M.flat[:: n + 1] += 1.0
    triangle, failed = lapack.dpotrf(M.T, lower=1, clean=0, overwrite_a=1)
    if failed or not np.isfinite(M).all():
        return lambda right: np.full_like(right, np.nan)
    half = lapack.dtrtrs(triangle, K_A, lower=1)[0]
    schur = half.T @ half
    schur.flat[:: mine.size + 1] += diagonal[mine]
    solve_A = scaled_cholesky(schur) if mine.size else np.copy

    def divided(right: Array) -> Array:
        moved = K_B @ (inverse * right[others])
        x = np.empty_like(right)
        x[mine] = solve_A(right[mine] - K_A.T @ lapack.dpotrs(triangle, moved, lower=1)[0])
        z = lapack.dpotrs(triangle, moved + K_A @ x[mine], lower=1)[0]
        x[others] = inverse * (right[others] - K_B.T @ z)
        return x

    def solve(right: Array) -> Array:
        x = divided(right)
        for _ in range(refinements):
            x = x + divided(right - K.T @ (K @ x) - diagonal * x)
        return x

    return solve


def _dense(values: Any) -> Array:
    return np.asarray(values.toarray() if sp.issparse(values) else values, dtype=np.float64)
