"""Cholesky's factorisation of a matrix whose rows and columns come in any units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

Array = NDArray[Any]
FIRST_RIDGE = 1e-14


def scaled_cholesky(matrix: Array, ridge: float = 0.0) -> Callable[[Array], Array]:
    """Return right -> matrix^-1 right for a positive semidefinite matrix, in the memory of one more matrix.

    Rows and columns are scaled to a unit diagonal first, and the ridge is added to it. Where rounding has
    left no positive pivot, it is ten times as large as before, 1e-14 at first, until it brings one back.

    >>> scaled_cholesky(np.array([[4.0, 0.0], [0.0, 1e-20]]))(np.array([8.0, 1e-20]))
    array([2., 1.])
    """
    scale = np.sqrt(np.diag(matrix))
    scale = np.where(scale > 0, scale, 1.0)
    while True:
        scaled = matrix / scale
        scaled /= scale[:, None]
        if not np.isfinite(scaled).all():
            return lambda right: np.full_like(right, np.nan)
        scaled.flat[:: scale.size + 1] += ridge
        # Transposed it is in Fortran's order, and is overwritten.
        triangle, failed = lapack.dpotrf(scaled.T, lower=1, clean=0, overwrite_a=1)
        if not failed:
            return lambda right: np.asarray(lapack.dpotrs(triangle, right / scale, lower=1)[0]) / scale
        ridge = max(10.0 * ridge, FIRST_RIDGE)
