"""Kernels that users bring along: a function of two tables, or the values themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.errors import InputError
from sixfold.geometry.kernel import Kernel, as_rows

Array = NDArray[Any]

CALLED_TOGETHER = 64  # rows a call of a function whose diagonal is wanted: it computes their pairs as well


@dataclass(frozen=True)
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
        found = self.function(X, Z)
        values = np.asarray(found.toarray() if sp.issparse(found) else found)
        if values.dtype.kind not in "biuf":
            raise InputError(
                f"kernel={self._name} returned {found!r:.50} of type {type(found).__name__}, not real "
                "numbers. Return one for each row of the first table and each row of the second."
            )
        wanted = (X.shape[0], Z.shape[0])
        if values.shape != wanted:
            raise InputError(
                f"kernel={self._name} returned an array of shape {values.shape} for tables of shapes "
                f"{X.shape} and {Z.shape}. Return one of shape {wanted}: a number for each pair of rows."
            )
        return values.astype(np.float64)  # a copy: the function may keep its array

    @property
    def _name(self) -> str:
        return getattr(self.function, "__name__", repr(self.function))

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
