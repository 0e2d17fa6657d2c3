"""Whether a matrix can be the kernel values of rows with each other: square, and the same both ways."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.errors import InputError

Array = NDArray[Any]

TILE = 512  # rows and columns that are compared with their mirror image at a time: both stay in the cache
ROUNDING = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-4}  # of the largest value


def require_gram(K: Any) -> None:
    """Raise an :class:`InputError` unless the matrix is dense, square, and symmetric within rounding.

    >>> require_gram(np.array([[1.0, 0.2], [0.1, 1.0]]))
    Traceback (most recent call last):
        ...
    sixfold.errors.InputError: kernel='precomputed' needs a symmetric matrix, but X[0, 1] = 0.2 and \
X[1, 0] = 0.1. Pass K(x_i, x_j) for all rows, for instance (X + X.T) / 2 if both are meant to be the same.
    """
    if sp.issparse(K):
        raise InputError(
            "Sparse precomputed kernels are not supported: most kernel values are not 0. Pass X.toarray()."
        )
    if K.shape[0] != K.shape[1]:
        raise InputError(
            f"Precomputed matrix must be a square matrix. Input is a {K.shape[0]}x{K.shape[1]} matrix. Pass "
            "the kernel values of all rows with each other."
        )
    worst, row, column = max(_differences(K), key=lambda found: found[0])
    if worst > ROUNDING[K.dtype] * float(np.abs(K).max()):
        row, column = min(row, column), max(row, column)
        raise InputError(
            f"kernel='precomputed' needs a symmetric matrix, but X[{row}, {column}] = {K[row, column]:.6g} "
            f"and X[{column}, {row}] = {K[column, row]:.6g}. Pass K(x_i, x_j) for all rows, for instance "
            "(X + X.T) / 2 if both are meant to be the same."
        )


def _differences(K: Array) -> list[tuple[float, int, int]]:
    """Return the largest difference between each tile and its mirror image, and where it is."""
    found = []
    for top in range(0, K.shape[0], TILE):
        for left in range(0, top + 1, TILE):
            tile = K[top : top + TILE, left : left + TILE]
            mirrored = K[left : left + TILE, top : top + TILE].T
            apart = np.abs(tile - mirrored)
            place = np.unravel_index(int(apart.argmax()), apart.shape)
            found.append((float(apart[place]), top + int(place[0]), left + int(place[1])))
    return found
