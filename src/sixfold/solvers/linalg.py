"""Symmetric positive semidefinite systems in any units: scaled to a unit diagonal, then Cholesky.

    A x = r,     A = S U S with S^2 = diag(A):     x = S^-1 U^-1 S^-1 r

Where A is singular to working precision, :class:`Factor` takes the shortest solution in scaled columns from
the eigenvectors of U (second-order steps), and :func:`scaled_cholesky` adds a ridge to U (interior points,
whose systems are never exactly singular).
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


class Factor:
    """The curvature, ready to be divided by: columns scaled to one length, then Cholesky.

    Where columns depend on each other, eigenvectors give the shortest step (in scaled columns). Entries of
    theta that must not move (``objective.fixed``) do not.
    """

    def __init__(self, matrix: Array, objective: Any) -> None:
        self.size, self.free = matrix.shape[0], np.flatnonzero(~objective.fixed(matrix))
        part = matrix[np.ix_(self.free, self.free)] if self.free.size < self.size else matrix
        self.scale, self.factor, self.inverse = factored(part)

    def solve(self, right: Array) -> Array:
        """Return the matrix's inverse, or pseudo-inverse, times every column of right."""
        columns = right.reshape(self.size, -1)
        result = np.zeros(columns.shape)
        result[self.free] = divide(columns[self.free], self.scale, self.factor, self.inverse)
        return result.reshape(right.shape)

    def step(self, slope: Array) -> tuple[Array, float]:
        """Return Newton's step and by how much the objective falls along it at first."""
        delta = self.solve(-slope)
        return delta, -float(np.vdot(slope, delta))


def factored(matrix: Array) -> tuple[Array, Array | None, tuple[Array, Array] | None]:
    """Return scale, Cholesky's factor or None, and the eigenvectors and values there are instead."""
    size = matrix.shape[0]
    if not np.isfinite(matrix).all():
        raise FloatingPointError("the second derivatives are not finite")
    scale = np.sqrt(np.diag(matrix))
    scale[scale == 0] = 1.0
    scaled = matrix / np.outer(scale, scale)
    if size == 0:
        return scale, None, (np.zeros((0, 0)), np.zeros(0))
    factor, info = lapack.dpotrf(scaled, lower=1)
    norm = float(np.abs(scaled).sum(axis=0).max())
    if info == 0 and lapack.dpocon(factor, norm, uplo="L")[0] > size * EPS:
        return scale, factor, None
    values, vectors = np.linalg.eigh(scaled)
    kept = values > 4.0 * size * EPS * values[-1]
    return scale, None, (vectors[:, kept], values[kept])


def divide(right: Array, scale: Array, factor: Array | None, inverse: tuple[Array, Array] | None) -> Array:
    """Return the matrix's inverse, or pseudo-inverse, times every column of right."""
    scaled = right / scale[:, None]
    if inverse is not None:
        vectors, values = inverse
        scaled = vectors @ ((vectors.T @ scaled) / values[:, None])
    elif factor is not None:
        scaled = lapack.dpotrs(factor, scaled, lower=1)[0]
    return np.asarray(scaled / scale[:, None])


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
