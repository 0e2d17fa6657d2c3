"""Kernels that users bring along: a function of two tables, or the values themselves.

K(x, z) = K(z, x) is asked of both: of a function on a few rows, of a matrix of values for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.errors import InputError
from sixfold.geometry.kernels.base import Kernel, as_rows

Array = NDArray[Any]

ASKED_BOTH_WAYS = 8  # rows whose values are compared with those the other way round
ROUGHLY = 1e-5  # of the largest value: a function may compute in single precision
TILE = 512  # rows and columns of a matrix that are compared with their mirror image at a time, in the cache
# Of the largest value of a matrix: more is not from rounding.
ASYMMETRY = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-4}
CALLED_TOGETHER = 64  # rows a call of a function whose diagonal is wanted: it computes their pairs as well


@dataclass(frozen=True, repr=False)
class Called(Kernel):
    """function(X, Z): any callable that takes two tables and returns a number for each pair of rows."""

    function: Callable[[Any, Any], Any]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(
                f"Called({self.function!r:.50}) has nothing to call. Pass a function of two tables of rows."
            )

    def values(self, X: Any, Z: Any) -> Array:
        """Return what the function does, after a look at its shape."""
        try:
            found = self.function(X, Z)
        except (TypeError, ValueError, IndexError) as error:
            raise InputError(
                f"kernel={self.name} failed for tables of shapes {X.shape} and {Z.shape}: {error}. It is "
                "called with two tables (sparse ones where the data are) and has to return a number for each "
                "pair of their rows."
            ) from error
        values = np.asarray(found.toarray() if sp.issparse(found) else found)
        if values.dtype.kind not in "biuf":
            raise InputError(
                f"kernel={self.name} returned {found!r:.50} of type {type(found).__name__}, not real "
                "numbers. Return one for each row of the first table and each row of the second."
            )
        wanted = (X.shape[0], Z.shape[0])
        if values.shape != wanted:
            raise InputError(
                f"kernel={self.name} returned an array of shape {values.shape} for tables of shapes "
                f"{X.shape} and {Z.shape}. Return one of shape {wanted}: a number for each pair of rows."
            )
        return values.astype(np.float64)  # a copy: the function may keep its array

    @property
    def name(self) -> str:
        """What the function calls itself."""
        return getattr(self.function, "__name__", repr(self.function))

    def __repr__(self) -> str:
        return f"Called({self.name})"

    def diagonal(self, X: Any) -> Array:
        """Return K(x, x), the diagonal of small tables."""
        X = as_rows(X, "X")
        parts = [X[start : start + CALLED_TOGETHER] for start in range(0, X.shape[0], CALLED_TOGETHER)]
        return np.concatenate([np.zeros(0), *[np.diagonal(self(part)) for part in parts]])


@dataclass(frozen=True)
class Precomputed(Kernel):
    """Values that are given: X[i, j] is that of row i with training row j."""

    takes_values: ClassVar[bool] = True

    def require_columns(self, X: Any, Z: Any) -> None:
        """Raise an :class:`InputError` unless there is a value for each training row."""
        if X.shape[1] != Z.shape[0]:
            raise InputError(
                f"kernel='precomputed' has values of shape {X.shape} for {Z.shape[0]} training rows. Pass "
                "one column for each training row."
            )

    def values(self, X: Any, Z: Any) -> Array:
        """Return X, which holds the values."""
        return np.array(X.toarray() if sp.issparse(X) else X)

    def diagonal(self, X: Any) -> Array:
        """Return the diagonal of the square matrix of the training rows."""
        X = as_rows(X, "X")
        self.require_columns(X, X)
        return np.array(X.diagonal())


def require_symmetric(kernel: Kernel, X: Any) -> None:
    """Raise an :class:`InputError` if K(x, z) is not K(z, x) for some of the rows.

    >>> require_symmetric(Called(lambda X, Z: X @ Z.T + X[:, :1]), np.array([[1.0], [2.0]]))
    Traceback (most recent call last):
        ...
    sixfold.errors.InputError: kernel=Called(<lambda>) is 3 for rows 0 and 1, but 4 for rows 1 and 0. A \
kernel has K(x, z) = K(z, x): let the function return values that do not depend on which table a row is in.
    """
    if kernel.definite or kernel.form is not None or kernel.takes_values:
        return
    rows = np.unique(np.linspace(0, X.shape[0] - 1, ASKED_BOTH_WAYS).astype(int))
    some = X[rows]
    values = kernel(some, some)
    apart = np.abs(values - values.T)
    i, j = np.unravel_index(int(apart.argmax()), apart.shape)
    if apart[i, j] > ROUGHLY * np.abs(values).max():
        i, j = min(i, j), max(i, j)
        raise _depends_on_order(kernel, rows[i], rows[j], values[i, j], values[j, i])


def _depends_on_order(kernel: Kernel, row: int, other: int, there: float, back: float) -> InputError:
    return InputError(
        f"kernel={kernel!r} is {there:.6g} for rows {row} and {other}, but {back:.6g} for rows {other} and "
        f"{row}. A kernel has K(x, z) = K(z, x): let the function return values that do not depend on which "
        "table a row is in."
    )


def require_gram(K: Any, function: Kernel | None = None) -> None:
    """Raise an :class:`InputError` unless the matrix is dense, square, and symmetric within rounding.

    ``function`` is what has computed it, where the matrix was not given.

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
    if worst > (ASYMMETRY[K.dtype] if function is None else ROUGHLY) * float(np.abs(K).max()):
        row, column = min(row, column), max(row, column)
        if function is not None:
            raise _depends_on_order(function, row, column, K[row, column], K[column, row])
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
