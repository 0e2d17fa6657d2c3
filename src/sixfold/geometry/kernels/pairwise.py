"""Kernels that scikit-learn computes: by names for which there are no loops here, and functions of rows.

cosine          x.z / (|x| |z|)
laplacian       exp(-gamma sum_j |x_j - z_j|)
chi2            exp(-gamma sum_j (x_j - z_j)^2 / (x_j + z_j))
additive_chi2   -sum_j (x_j - z_j)^2 / (x_j + z_j)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.errors import InputError
from sixfold.geometry.kernels.base import Kernel, as_rows

Array = NDArray[Any]

PAIRWISE = ("cosine", "laplacian", "chi2", "additive_chi2")
CALLED_TOGETHER = 64  # rows whose diagonal is wanted: their pairs are computed as well


@dataclass(frozen=True, repr=False)
class Pairwise(Kernel):
    """A kernel by its name in scikit-learn, or a function of two rows and further arguments.

    >>> Pairwise("laplacian", (("gamma", 0.5),))(np.array([[0.0], [2.0]])).round(3)
    array([[1.   , 0.368],
           [0.368, 1.   ]])
    """

    function: str | Callable[..., float]
    arguments: tuple[tuple[str, Any], ...] = ()

    @property
    def definite(self) -> bool | None:
        """True of those that are dot products."""
        return True if self.function in ("cosine", "laplacian", "chi2") else None

    def values(self, X: Any, Z: Any) -> Array:
        """Return what scikit-learn computes."""
        from sklearn.metrics.pairwise import pairwise_kernels

        try:
            found = pairwise_kernels(X, Z, metric=self.function, filter_params=True, **dict(self.arguments))
        except (TypeError, ValueError, IndexError) as error:
            raise InputError(
                f"kernel={self.name} failed for tables of shapes {X.shape} and {Z.shape}: {error}. It has to "
                "return a number for two rows."
            ) from error
        return np.asarray(found, dtype=np.float64)

    def diagonal(self, X: Any) -> Array:
        """Return K(x, x)."""
        X = as_rows(X, "X")
        parts = [X[start : start + CALLED_TOGETHER] for start in range(0, X.shape[0], CALLED_TOGETHER)]
        return np.concatenate([np.zeros(0), *[np.diagonal(self(part)) for part in parts]])

    @property
    def name(self) -> str:
        """What it is called."""
        named = isinstance(self.function, str)
        return str(self.function) if named else getattr(self.function, "__name__", repr(self.function))

    def __repr__(self) -> str:
        given = "".join(f", {name}={value!r:.30}" for name, value in self.arguments)
        return f"Pairwise({self.name!r}{given})"
