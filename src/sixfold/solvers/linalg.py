"""Symmetric positive semidefinite systems in any units: scaled to a unit diagonal, then Cholesky.

    A x = r,     A = S U S with S^2 = diag(A):     x = S^-1 U^-1 S^-1 r

Where A is singular to working precision, :class:`SymmetricFactor` takes the shortest solution in scaled
columns from the eigenvectors of U (second-order steps), and :func:`scaled_cholesky` adds a ridge to U
(interior points, whose systems are never exactly singular).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

Array = NDArray[Any]

FIRST_RIDGE = 1e-14
EPS = float(np.finfo(np.float64).eps)


class SymmetricFactor:
    """A positive semidefinite matrix, ready to be divided by: scaled to a unit diagonal, then Cholesky.

    Parameters
    ----------
    matrix : ndarray of shape (size, size)
    fixed : ndarray of bool, or None
        Entries that are zero in every solution; their rows and columns do not count.

    Attributes
    ----------
    scale : ndarray
        S above, of the entries that are not fixed.
    vectors : ndarray or None
        Where columns depend on each other: the eigenvectors of U that are not lost in rounding.

    >>> SymmetricFactor(np.array([[4.0, 4.0], [4.0, 4.0]])).solve(np.array([8.0, 8.0])).round(12)
    array([1., 1.])
    """

    def __init__(self, matrix: Array, fixed: Array | None = None) -> None:
        self.size = matrix.shape[0]
        self.free = np.arange(self.size) if fixed is None else np.flatnonzero(~fixed)
        part = matrix[np.ix_(self.free, self.free)] if self.free.size < self.size else matrix
        if not np.isfinite(part).all():
            raise FloatingPointError("the second derivatives are not finite")
        self.scale = np.sqrt(part.diagonal())
        self.scale[self.scale == 0] = 1.0
        self.vectors: Array | None = None
        self._values = self._triangle = np.zeros(0)
        size = self.free.size
        if size == 0:
            return
        scaled = self._scaled(part)
        norm = float(lapack.dlange("1", scaled))
        # In Fortran's order, so that it is overwritten: with 300 columns copies cost as much as the factor.
        triangle, failed = lapack.dpotrf(scaled, lower=1, clean=0, overwrite_a=1)
        if not failed and lapack.dpocon(triangle, norm, uplo="L")[0] > size * EPS:
            self._triangle = triangle
            return
        values, vectors = np.linalg.eigh(self._scaled(part))
        kept = values > 4.0 * size * EPS * values[-1]
        self.vectors, self._values = vectors[:, kept], values[kept]

    def _scaled(self, part: Array) -> Array:
        """Return the matrix with a unit diagonal, transposed: it is symmetric."""
        scaled: Array = part / self.scale
        scaled /= self.scale[:, None]
        return scaled.T

    def solve(self, right: Array) -> Array:
        """Return the matrix's inverse, or pseudo-inverse, times every column of right."""
        columns = right.reshape(self.size, -1)
        result = np.zeros(columns.shape)
        scaled = columns[self.free] / self.scale[:, None]
        if self.vectors is not None:
            scaled = self.vectors @ ((self.vectors.T @ scaled) / self._values[:, None])
        elif scaled.size:
            scaled = lapack.dpotrs(self._triangle, scaled, lower=1)[0]
        result[self.free] = scaled / self.scale[:, None]
        return result.reshape(right.shape)


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
