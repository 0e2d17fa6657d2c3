"""What a kernel is: K(x, z) = phi(x).phi(z), a dot product of rows in a space that need not be written down.

A sum of kernels puts their spaces side by side, a product takes all products of a coordinate of one with a
coordinate of the other, and a positive multiple stretches the space, so all three are kernels again (Schur,
1911, for the product).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.data.checks import require_finite, to_array, to_float
from sixfold.errors import InputError, check_number

Array = NDArray[Any]


class Form(NamedTuple):
    """A kernel that native loops know.

    ::

        linear       x.z
        polynomial   (gamma x.z + coef0)^degree
        rbf          exp(-gamma |x - z|^2)
        sigmoid      tanh(gamma x.z + coef0)
    """

    kind: Literal["linear", "polynomial", "rbf", "sigmoid"]
    gamma: float = 1.0
    coef0: float = 0.0
    degree: int = 1


@dataclass(frozen=True)
class Kernel(ABC):
    """A similarity of two rows that is their dot product in some space.

    A subclass computes ``values`` and ``diagonal``, and has a ``form`` where native loops know it.
    """

    __array_ufunc__: ClassVar[None] = None  # NumPy's numbers leave it to __rmul__ to multiply a kernel
    takes_values: ClassVar[bool] = False  # its own values in place of rows

    @property
    def form(self) -> Form | None:
        """What native loops compute; None where only a call knows."""
        return None

    @property
    def definite(self) -> bool | None:
        """Whether every Gram matrix is positive semi-definite; None if unknown, False if some are not."""
        return None

    def __call__(self, X: Any, Z: Any = None) -> Array:
        """Return K(x, z) for each row of X (a row of the result) and of Z (a column), in float64.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, columns)
        Z : array or sparse matrix of shape (m, columns), default=None
            None stands for X.

        Returns
        -------
        ndarray of shape (n, m)
        """
        left = as_rows(X, "X")
        right = left if Z is None else as_rows(Z, "Z")
        self.require_columns(left, right)
        # A value that is too large is reported below, with its rows.
        with np.errstate(over="ignore", invalid="ignore"):
            values = self.values(left, right)
        return self.require_values(values)

    @abstractmethod
    def values(self, X: Any, Z: Any) -> Array:
        """Return K(x, z) for checked rows; Z is X for the rows of one table."""

    @abstractmethod
    def diagonal(self, X: Any) -> Array:
        """Return K(x, x) for each row of X, in float64."""

    def require_columns(self, X: Any, Z: Any) -> None:
        """Raise an :class:`InputError` unless the two tables have the same columns."""
        if X.shape[1] != Z.shape[1]:
            raise InputError(
                f"X has shape {X.shape} and Z has shape {Z.shape}. Pass two tables with the same columns."
            )

    def require_values(self, values: Array) -> Array:
        """Return kernel values, after refusing those that are not finite."""
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(values.sum()):
                return values
        bad = np.argwhere(~np.isfinite(values))
        if bad.size:
            places = " and ".join(f"row {row}" for row in bad[0])
            raise InputError(
                f"{self!r} is {values[tuple(bad[0])]} for {places}, counted from 0. Divide the columns by "
                "their spread, or choose a kernel whose values stay within float64."
            )
        return values

    def __add__(self, other: Any) -> Kernel:
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Any) -> Kernel:
        if isinstance(other, Kernel):
            return Product(self, other)
        return Scaled(float(other), self) if isinstance(other, Real) else NotImplemented

    def __rmul__(self, other: Any) -> Kernel:
        return Scaled(float(other), self) if isinstance(other, Real) else NotImplemented


@dataclass(frozen=True, repr=False)
class Composed(Kernel):
    """One of two kernels, which is positive semi-definite if both are."""

    first: Kernel
    second: Kernel

    def __post_init__(self) -> None:
        require_rows_of_numbers(self.first, self.second)

    @property
    def definite(self) -> bool | None:
        """True if both parts are."""
        return True if self.first.definite and self.second.definite else None


@dataclass(frozen=True, repr=False)
class Sum(Composed):
    """K1(x, z) + K2(x, z): the two spaces side by side."""

    def values(self, X: Any, Z: Any) -> Array:
        """Return the sums."""
        return self.first.values(X, Z) + self.second.values(X, Z)

    def diagonal(self, X: Any) -> Array:
        """Return the sums for each row with itself."""
        return self.first.diagonal(X) + self.second.diagonal(X)

    def __repr__(self) -> str:
        return f"{self.first!r} + {self.second!r}"


@dataclass(frozen=True, repr=False)
class Product(Composed):
    """K1(x, z) K2(x, z): all products of a coordinate of one space with a coordinate of the other."""

    def values(self, X: Any, Z: Any) -> Array:
        """Return the products."""
        return self.first.values(X, Z) * self.second.values(X, Z)

    def diagonal(self, X: Any) -> Array:
        """Return the products for each row with itself."""
        return self.first.diagonal(X) * self.second.diagonal(X)

    def __repr__(self) -> str:
        return f"{_factor(self.first)} * {_factor(self.second)}"


@dataclass(frozen=True, repr=False)
class Scaled(Kernel):
    """c K(x, z)."""

    factor: float
    kernel: Kernel

    def __post_init__(self) -> None:
        check_number("factor", self.factor, finite=True)
        object.__setattr__(self, "factor", float(self.factor))

    @property
    def definite(self) -> bool | None:
        """What the kernel is, for c > 0; a definite one becomes an indefinite one for c < 0."""
        if self.factor < 0:
            return False if self.kernel.definite else None
        return self.kernel.definite if self.factor else True

    def values(self, X: Any, Z: Any) -> Array:
        """Return the multiples."""
        return self.factor * self.kernel.values(X, Z)

    def diagonal(self, X: Any) -> Array:
        """Return the multiples for each row with itself."""
        return self.factor * self.kernel.diagonal(X)

    def __repr__(self) -> str:
        return f"{self.factor!r} * {_factor(self.kernel)}"


def _factor(kernel: Kernel) -> str:
    return f"({kernel!r})" if isinstance(kernel, Sum | Product | Scaled) else repr(kernel)


def require_rows_of_numbers(*kernels: Kernel) -> None:
    """Raise an :class:`InputError` where a kernel takes its own values in place of rows."""
    for kernel in kernels:
        if kernel.takes_values:
            raise InputError(
                f"{kernel!r} takes kernel values in place of rows, which no other kernel can read. Add or "
                "multiply the matrices instead, and pass the result as X."
            )


# -- rows ------------------------------------------------------------------------------------------------


def as_rows(X: Any, name: str) -> Any:
    """Return a table of finite numbers as a float64 array, or as a CSR array where it is sparse."""
    if sp.issparse(X):
        rows = sp.csr_array(X).astype(np.float64, copy=False)
    else:
        rows = np.asarray(to_array(X))
        if rows.ndim != 2:
            raise InputError(
                f"{name} has shape {rows.shape}. Pass a table, one row of numbers for each sample: "
                f"{name}.reshape(1, -1) if it is one row."
            )
        rows = to_float(rows, name).astype(np.float64, copy=False)
    require_finite(rows, name)
    return rows
