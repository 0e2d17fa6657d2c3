"""Cholesky's factorisation of a matrix whose rows and columns come in any units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

Array = NDArray[Any]
FIRST_RIDGE = 1e-14


def scaled_cholesky(matrix: Array) -> Callable[[Array], Array]:
    """Return right -> matrix^-1 right for a positive semidefinite matrix.

    Rows and columns are scaled to a unit diagonal first. Where rounding has left no positive pivot, the
    least power of ten times 1e-14 that brings one back is added to that diagonal.

    >>> scaled_cholesky(np.array([[4.0, 0.0], [0.0, 1e-20]]))(np.array([8.0, 1e-20]))
    array([2., 1.])
    """
    scale = np.sqrt(np.diag(matrix))
    scale = np.where(scale > 0, scale, 1.0)
    scaled, ridge = matrix / np.outer(scale, scale), 0.0
    if not np.isfinite(scaled).all():
        return lambda right: np.full_like(right, np.nan)
    while True:
        triangle, failed = lapack.dpotrf(scaled + ridge * np.eye(scale.size), lower=0, clean=0)
        if not failed:
            return lambda right: np.asarray(lapack.dpotrs(triangle, right / scale)[0]) / scale
        ridge = max(10.0 * ridge, FIRST_RIDGE)
