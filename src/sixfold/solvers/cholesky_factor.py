"""Linear systems of second-order steps: columns scaled to one length, then Cholesky or eigenvectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

Array = NDArray[Any]

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
