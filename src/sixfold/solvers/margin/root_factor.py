"""The systems of an interior point from the root of their matrix, where the matrix has lost the digits.

    (Z'WZ + S) x = r,     [sqrt(W) Z; sqrt(S)] = Q R P',     x = P R^-1 R'^-1 P' r

Z'WZ has the square of the root's condition number, which the weights W of the last iterations bring to 1e20
and more. Householder's factorisation of a root whose rows are sorted by their size, with columns exchanged,
is accurate to the last bits of every row, however different their sizes are (Cox and Higham 1998).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, solve_triangular

from sixfold.solvers.linalg import EPS

Array = NDArray[Any]


def root_solver(Z: Array, weight: Array, shrink: Array) -> Callable[[Array], Array]:
    """Return r -> (Z'WZ + S)^-1 r; what dependent columns leave open is 0.

    Parameters
    ----------
    Z : ndarray of shape (rows, columns)
    weight, shrink : ndarray
        The diagonals of W and S.

    >>> root_solver(np.array([[1e-9, 0.0], [1.0, 1.0]]), np.ones(2), np.zeros(2))(np.array([1e-18, 0.0]))
    array([ 1., -1.])
    """
    root = np.vstack([np.sqrt(weight)[:, None] * Z, np.diag(np.sqrt(shrink))])
    scale = np.sqrt(np.square(root).sum(axis=0))
    scale[scale == 0] = 1.0
    root /= scale
    if not np.isfinite(root).all():
        return lambda right: np.full_like(right, np.nan)
    root = root[np.argsort(-np.abs(root).max(axis=1), kind="stable")]
    triangle, order = qr(root, mode="r", pivoting=True, overwrite_a=True, check_finite=False)
    diagonal = np.abs(np.diag(triangle))
    rank = int(np.count_nonzero(diagonal > EPS * max(root.shape) * diagonal[:1]))
    triangle, kept = triangle[:rank, :rank], order[:rank]

    def solve(right: Array) -> Array:
        result = np.zeros(right.shape)
        half = solve_triangular(triangle, (right / scale)[kept], trans="T", check_finite=False)
        result[kept] = solve_triangular(triangle, half, check_finite=False)
        return result / scale

    return solve
