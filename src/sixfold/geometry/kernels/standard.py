"""Kernels by name: dot products of rows in spaces that are never written down.

A kernel is called with one or two tables and returns its value for every pair of rows. Kernels are added,
multiplied with each other and with numbers.

>>> import numpy as np
>>> X = np.array([[1.0, 2.0], [3.0, 4.0]])
>>> linear(X)
array([[ 5., 11.],
       [11., 25.]])
>>> RBF(sigma=2.0)(X, X[:1])
array([[1.        ],
       [0.36787944]])
>>> mixed = 0.5 * linear + quadratic
>>> mixed
0.5 * Linear() + Quadratic()
>>> mixed(X[:1], X[1:])
array([[126.5]])
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.errors import InputError, check_number, check_option
from sixfold.geometry.kernels.base import (
    Form,
    Kernel,
    as_rows,
)
from sixfold.geometry.kernels.custom import Called, Precomputed, require_symmetric

Array = NDArray[Any]

CHUNK_NUMBERS = 1 << 17  # of rows whose spread is added up at a time: they stay in the L2 cache


@dataclass(frozen=True)
class OfProduct(Kernel):
    """A function of the dot product x.z alone."""

    @abstractmethod
    def of_product(self, products: Array) -> Array:
        """Return K for dot products."""

    def values(self, X: Any, Z: Any) -> Array:
        """Return K(x, z)."""
        return self.of_product(dot_products(X, Z))

    def diagonal(self, X: Any) -> Array:
        """Return K(x, x)."""
        with np.errstate(over="ignore", invalid="ignore"):
            values = self.of_product(squared_lengths(as_rows(X, "X")))
        return self.require_values(values)


@dataclass(frozen=True)
class Linear(OfProduct):
    """x.z: the space of the rows themselves."""

    @property
    def form(self) -> Form:
        """x.z."""
        return Form("linear")

    @property
    def definite(self) -> bool:
        """It is a dot product."""
        return True

    def of_product(self, products: Array) -> Array:
        """Return the dot products."""
        return products


@dataclass(frozen=True)
class Quadratic(OfProduct):
    """(x.z)^2: the space of all products of two columns.

    >>> import numpy as np
    >>> x, z = np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]])
    >>> quadratic(x, z).item(), (quadratic.feature_map(x) @ quadratic.feature_map(z).T).item().__round__(9)
    (121.0, 121.0)
    """

    @property
    def form(self) -> Form:
        """The polynomial of degree 2 without constant."""
        return Form("polynomial", 1.0, 0.0, 2)

    @property
    def definite(self) -> bool:
        """It is a dot product."""
        return True

    def of_product(self, products: Array) -> Array:
        """Return the squares."""
        return products * products

    def feature_map(self, X: Any) -> Any:
        """Return phi(x), for which phi(x).phi(z) = (x.z)^2: for two columns (x_0^2, sqrt(2) x_0 x_1, x_1^2).

        In general x_i x_j for all i <= j, those with i < j times sqrt(2), because each is there twice in

            (x.z)^2 = sum_i sum_j (x_i x_j) (z_i z_j)

        Parameters
        ----------
        X : array or sparse matrix of shape (n, columns)

        Returns
        -------
        ndarray or CSR array of shape (n, columns (columns + 1) / 2)
        """
        X = as_rows(X, "X")
        columns = X.shape[1]
        if sp.issparse(X):
            by_column = X.tocsc()
            parts = [by_column[:, [i]].multiply(by_column[:, i:]) for i in range(columns)]
            return sp.csr_array(sp.hstack(parts) * _how_often(columns))
        first, second = np.triu_indices(columns)
        return X[:, first] * X[:, second] * _how_often(columns)

    def feature_names(self, names: Sequence[str]) -> list[str]:
        """Return the names of the columns of ``feature_map``.

        >>> quadratic.feature_names(["q", "p"])
        ['q^2', 'sqrt(2) q p', 'p^2']
        """
        return [
            f"{first}^2" if i == j else f"sqrt(2) {first} {names[j]}"
            for i, first in enumerate(names)
            for j in range(i, len(names))
        ]


def _how_often(columns: int) -> Array:
    first, second = np.triu_indices(columns)
    return np.where(first == second, 1.0, np.sqrt(2.0))


@dataclass(frozen=True)
class Polynomial(OfProduct):
    """(gamma x.z + coef0)^degree: all products of up to ``degree`` columns; just so many where coef0 = 0."""

    degree: int = 3
    gamma: float = 1.0
    coef0: float = 0.0

    def __post_init__(self) -> None:
        check_number("degree", self.degree, at_least=0, whole=True)
        check_number("gamma", self.gamma, above=0, finite=True)
        _check_constant(self.coef0)

    @property
    def form(self) -> Form:
        """The polynomial."""
        return Form("polynomial", float(self.gamma), float(self.coef0), int(self.degree))

    @property
    def definite(self) -> bool:
        """Whether no coefficient of the polynomial in x.z is negative (Schoenberg, 1942)."""
        return self.coef0 >= 0 or self.degree == 0

    def of_product(self, products: Array) -> Array:
        """Return the powers."""
        return (self.gamma * products + self.coef0) ** int(self.degree)


@dataclass(frozen=True, repr=False)
class RBF(Kernel):
    """exp(-gamma |x - z|^2), gamma = 1 / (2 sigma^2): 1 for equal rows, near 0 for those many sigma apart.

    Either gamma or sigma is given. Rows that all differ have linearly independent images in its space, so any
    labels of them can be separated there.

    >>> RBF(sigma=2.0).gamma, RBF(sigma=2.0) == RBF(gamma=0.125)
    (0.125, True)
    """

    gamma: float | None = None
    sigma: float | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.gamma is not None and self.sigma is not None:
            raise InputError(
                f"gamma={self.gamma!r} and sigma={self.sigma!r} both say how wide the kernel is: gamma is "
                "1 / (2 sigma^2). Pass one of them."
            )
        if self.gamma is None and self.sigma is None:
            raise InputError(
                "RBF() does not say how wide the kernel is. Pass sigma, or gamma = 1 / (2 sigma^2)."
            )
        if self.sigma is not None:
            object.__setattr__(self, "gamma", gamma_of(self.sigma))
        check_number("gamma", self.gamma, above=0, finite=True)

    @property
    def form(self) -> Form:
        """The exponential."""
        return Form("rbf", float(self.gamma or 0.0))

    @property
    def definite(self) -> bool:
        """It is a mixture of waves, each of them a dot product (Bochner)."""
        return True

    def values(self, X: Any, Z: Any) -> Array:
        """Return the exponentials; |x - z|^2 from lengths of rows about the mean, where rounding is least."""
        if not sp.issparse(X) and not sp.issparse(Z) and Z.shape[0]:
            same, centre = X is Z, Z.mean(axis=0)
            X = X - centre
            Z = X if same else Z - centre
        squares = dot_products(X, Z)
        squares *= -2.0
        squares += squared_lengths(X)[:, None]
        squares += squared_lengths(Z)
        np.maximum(squares, 0.0, out=squares)
        if X is Z:
            np.fill_diagonal(squares, 0.0)
        squares *= -self.form.gamma
        return np.exp(squares, out=squares)

    def diagonal(self, X: Any) -> Array:
        """Return ones."""
        return np.ones(X.shape[0])

    def __repr__(self) -> str:
        return f"RBF(gamma={self.gamma!r})" if self.sigma is None else f"RBF(sigma={self.sigma!r})"


@dataclass(frozen=True)
class Sigmoid(OfProduct):
    """tanh(gamma x.z + coef0), after the neurons of a network; no dot product in general."""

    gamma: float = 1.0
    coef0: float = 0.0

    def __post_init__(self) -> None:
        check_number("gamma", self.gamma, above=0, finite=True)
        _check_constant(self.coef0)

    @property
    def form(self) -> Form:
        """The hyperbolic tangent."""
        return Form("sigmoid", float(self.gamma), float(self.coef0))

    @property
    def definite(self) -> bool:
        """Its series in x.z has negative terms."""
        return False

    def of_product(self, products: Array) -> Array:
        """Return the hyperbolic tangents."""
        return np.tanh(self.gamma * products + self.coef0)


linear = Linear()
quadratic = Quadratic()

KERNELS = ("linear", "poly", "polynomial", "quadratic", "rbf", "sigmoid", "precomputed")


def make_kernel(
    kernel: Any,
    X: Any,
    *,
    gamma: float | str = "scale",
    sigma: float | None = None,
    degree: int = 3,
    coef0: float = 0.0,
) -> Kernel:
    """Return the kernel of that name for training rows like X.

    Parameters
    ----------
    kernel : str, Kernel or callable
        A name in :data:`KERNELS`, a kernel, which stays what it is, or a function of two tables.
    X : array or sparse matrix of shape (n, columns)
        Dense, or CSR.
    gamma : float, "scale" or "auto", default="scale"
        Of "poly", "rbf" and "sigmoid"; "scale" is 1 / (columns * variance of all numbers in X), "auto" is
        1 / columns.
    sigma : float, default=None
        Of "rbf", in place of gamma: gamma = 1 / (2 sigma^2).
    degree : int, default=3
        Of "poly".
    coef0 : float, default=0.0
        Of "poly" and "sigmoid".

    Examples
    --------
    >>> make_kernel("rbf", np.array([[0.0, 1.0], [2.0, 3.0]]))
    RBF(gamma=0.4)
    >>> make_kernel("rbf", np.array([[0.0, 1.0]]), sigma=0.5)
    RBF(sigma=0.5)
    """
    _check_named(kernel, gamma, degree, coef0)
    if sigma is not None:
        return _of_width(kernel, gamma, sigma)
    if isinstance(kernel, Kernel) or callable(kernel):
        found = kernel if isinstance(kernel, Kernel) else Called(kernel)
        require_symmetric(found, X)
        return found
    simple = {"linear": linear, "quadratic": quadratic, "precomputed": Precomputed()}
    if kernel in simple:
        return simple[kernel]
    number = gamma_for(gamma, X)
    if kernel == "rbf":
        return RBF(number)
    return (
        Sigmoid(number, float(coef0))
        if kernel == "sigmoid"
        else Polynomial(int(degree), number, float(coef0))
    )


def _check_named(kernel: Any, gamma: Any, degree: Any, coef0: Any) -> None:
    """Raise an :class:`InputError` unless the parameters of :func:`make_kernel` are what it says."""
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        raise InputError(
            f"kernel={kernel.__name__} is a kind of kernel, not one of them. Call it with its parameters, "
            "for instance kernel=RBF(sigma=1.0), or pass a name."
        )
    if not isinstance(kernel, Kernel) and not callable(kernel):
        check_option("kernel", kernel, KERNELS, "a kernel of sixfold.kernels or a function of two tables")
    if isinstance(gamma, Real):
        check_number("gamma", gamma, above=0, finite=True)
    else:
        check_option("gamma", gamma, ["scale", "auto"], "a number above 0")
    check_number("degree", degree, at_least=0, whole=True)
    _check_constant(coef0)


def _of_width(kernel: Any, gamma: float | str, sigma: float) -> Kernel:
    """Return the kernel of width sigma, which only one has."""
    if not isinstance(kernel, str) or kernel != "rbf":
        raise InputError(
            f"sigma={sigma!r} is the width of kernel='rbf', but kernel={kernel!r}. Leave sigma out."
        )
    return RBF(None if isinstance(gamma, str) else gamma, sigma)


def _check_constant(coef0: Any) -> None:
    check_number("coef0", coef0, finite=True)


# -- how wide a kernel is: gamma from sigma, or from the spread of the rows as scikit-learn has it ---------


def gamma_of(sigma: float) -> float:
    """Return 1 / (2 sigma^2)."""
    check_number("sigma", sigma, above=0, finite=True)
    square = 2.0 * float(sigma) * float(sigma)
    gamma = 1.0 / square if square > 0.0 else np.inf
    if not 0.0 < gamma < np.inf:
        raise InputError(
            f"sigma={sigma!r} makes gamma = 1 / (2 sigma^2) = {gamma!r}, beyond what float64 holds. Measure "
            "the columns in other units."
        )
    return gamma


def gamma_for(gamma: float | str, X: Any) -> float:
    """Return the number that gamma stands for: 1 / (columns variance) is "scale", 1 / columns is "auto".

    Equal numbers, which have no variance, have gamma 1.
    """
    if not isinstance(gamma, str):
        return float(gamma)
    spread = variance(X) if gamma == "scale" else 1.0
    vanished = spread == 0.0 and X.min() < X.max()  # squares of numbers below 1e-162 are 0
    without = np.inf if vanished else 1.0
    number = 1.0 / (X.shape[1] * spread) if spread > 0.0 else without
    if not 0.0 < number < np.inf:
        raise InputError(
            f"The variance of X is {spread!r} in float64, so gamma='scale' is {number!r}, beyond what it "
            "holds. Divide the columns by their spread."
        )
    return number


def variance(X: Any) -> float:
    """Return the variance of all numbers of a table, zeros that a sparse one does not store included.

    Deviations are taken from one of the numbers first, so that equal numbers have variance 0, and in blocks:
    a table in float32 is never there in float64.

    >>> variance(np.full((3, 2), 0.1)), variance(np.array([[1.0, 3.0]]))
    (0.0, 1.0)
    """
    if sp.issparse(X):
        X = sp.csr_array(X)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        stored, shift = X.data[None, :], 0.0
    else:
        stored = np.asarray(X)
        shift = float(stored.flat[0])
    count = X.shape[0] * X.shape[1]
    step = max(CHUNK_NUMBERS // max(stored.shape[1], 1), 1)
    chunks = [stored[start : start + step] for start in range(0, stored.shape[0], step)]
    moved = sum(float((chunk.astype(np.float64) - shift).sum()) for chunk in chunks) / count
    with np.errstate(over="ignore"):
        squares = sum(float(np.square(chunk.astype(np.float64) - shift - moved).sum()) for chunk in chunks)
    return (squares + (count - stored.size) * moved * moved) / count


# -- products of rows --------------------------------------------------------------------------------------


def dot_products(X: Any, Z: Any) -> Array:
    """Return x.z for each row of X and of Z."""
    products = X @ Z.T
    return np.asarray(products.toarray() if sp.issparse(products) else products)


def squared_lengths(X: Any) -> Array:
    """Return x.x for each row."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X)
