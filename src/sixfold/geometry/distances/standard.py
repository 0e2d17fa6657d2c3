"""Distances between rows, by name: :data:`DISTANCES` is the one table of them.

A distance says how search loops are to find it: which *measure* of which rows it is (cosine distance is half
the squared Euclidean distance of rows divided by their lengths), or, where no loop knows it, how to compute
it for two sets of rows (``between``). What it needs to know of the training rows, such as a covariance or the
range of a column, it learns in ``of``.

>>> import numpy as np
>>> between(np.array([[0.0, 3.0]]), np.array([[4.0, 0.0], [0.0, 0.0]]))
array([[5., 3.]])
>>> between(np.array([[0.0, 3.0]]), np.array([[4.0, 0.0], [0.0, 0.0]]), "manhattan")
array([[7., 3.]])
"""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.errors import InputError, check_number, check_option
from sixfold.geometry.distances.base import EUCLIDEAN, Distance, Measure
from sixfold.geometry.distances.learned import Learned
from sixfold.geometry.distances.pairwise import Called, Gower, Named, NanEuclidean, Paired, Precomputed
from sixfold.geometry.distances.transforms import (
    check_covariance,
    check_variances,
    offsets,
    require_powers,
    root_of_covariance,
    root_of_precision,
    scaled,
    to_unit_length,
    variances_of,
)

Array = NDArray[Any]


@dataclass(frozen=True)
class Minkowski(Distance):
    """(sum_j w_j |x_j - q_j|^p)^(1/p); p = 1 is Manhattan, 2 Euclidean, infinity Chebyshev."""

    p: float = 2.0
    w: Array | None = None
    centre: Array | None = None  # of rows that are multiplied; sparse ones stay where they are
    takes_sparse = True

    @classmethod
    def of(cls, X: Any, p: float = 2.0, w: Any = None) -> Self:
        """Check the exponent and the weights of the columns."""
        check_number("p", p, above=0)
        if w is None:
            return cls(float(p))
        weights = check_variances("w", w, X.shape[1], least=0.0)
        return cls(float(p), weights, None if sp.issparse(X) else offsets(X))

    @property
    def measure(self) -> Measure:
        """The family that the exponent is one of."""
        if self.p == 1:
            return Measure("absolute", 1.0)
        if self.p == 2:
            return EUCLIDEAN
        return Measure("largest", 1.0) if np.isinf(self.p) else Measure("power", self.p, root=True)

    def embed(self, rows: Any, query: bool = False) -> Any:
        """Return w_j^(1/p) x_j; of the largest difference, a weight only says which columns count."""
        if self.measure.family == "power":
            require_powers(rows, self.p)
        if self.w is None:
            return rows
        factor = (self.w > 0).astype(np.float64) if np.isinf(self.p) else self.w ** (1.0 / self.p)
        return scaled(rows, factor, self.centre)


@dataclass(frozen=True)
class SquaredEuclidean(Distance):
    """sum_j (x_j - q_j)^2."""

    takes_sparse = True

    @property
    def measure(self) -> Measure:
        """Squares, without the root."""
        return Measure("squares")


@dataclass(frozen=True)
class Cosine(Distance):
    """1 - x.q / (|x| |q|): the negative cosine similarity, moved to begin at 0.

    For rows u, v of length 1 it is |u - v|^2 / 2, which keeps its digits where rows point the same way. A row
    of zeros points nowhere: its similarity is 0, with any row, so its distance is 1. Two more columns, one
    for such training rows and one for such queries, see to that.
    """

    divisor = 2.0
    rounded = True  # as lengths are: rows that have nothing in common are all at distance 1
    takes_sparse = True

    @property
    def measure(self) -> Measure:
        """Squares of rows of length 1."""
        return Measure("squares")

    def embed(self, rows: Any, query: bool = False) -> Any:
        """Return rows of length 1 in float64, and the two columns."""
        return to_unit_length(rows, query)


@dataclass(frozen=True)
class StandardisedEuclidean(Distance):
    """sqrt(sum_j (x_j - q_j)^2 / V_j), V_j the variance of column j."""

    centre: Array
    factor: Array

    @classmethod
    def of(cls, X: Any, V: Any = None) -> Self:
        """Learn the variances; columns that do not vary count as they are."""
        if V is None:
            V = variances_of(X)
            V = np.where(V > 0, V, 1.0)
        variances = check_variances("V", V, X.shape[1])
        return cls(offsets(X), 1.0 / np.sqrt(variances))

    @property
    def measure(self) -> Measure:
        """Euclidean, of standardised rows."""
        return EUCLIDEAN

    def embed(self, rows: Any, query: bool = False) -> Any:
        """Return (x - centre) / sqrt(V): a large offset must not use up the digits."""
        return scaled(rows, self.factor, self.centre)


@dataclass(frozen=True)
class Mahalanobis(Distance):
    """sqrt((x - q)' V^-1 (x - q)), V the covariance of the columns.

    A covariance that is singular is shrunk towards a multiple of the identity, as much as Ledoit and Wolf
    (2004) recommend; one can pass V, or its inverse VI.
    """

    centre: Array
    root: Array

    @classmethod
    def of(cls, X: Any, V: Any = None, VI: Any = None) -> Self:
        """Learn the covariance, or check the one given."""
        if VI is not None:
            root = root_of_precision(check_covariance("VI", VI, X.shape[1]))
        else:
            root = root_of_covariance(X, None if V is None else check_covariance("V", V, X.shape[1]))
        return cls(offsets(X), root)

    @property
    def measure(self) -> Measure:
        """Euclidean, of rows whose columns are uncorrelated."""
        return EUCLIDEAN

    def embed(self, rows: Any, query: bool = False) -> Any:
        """Return R'(x - centre) with R R' = V^-1."""
        # einsum adds up in one order whatever the number of rows: a row has the same image in any company.
        return np.einsum("ij,jk->ik", rows - self.centre, self.root, optimize=False)


@dataclass(frozen=True)
class Hamming(Distance):
    """The share of columns in which x and q differ."""

    columns: int

    def __post_init__(self) -> None:
        """Divide what the loops count by the number of columns."""
        object.__setattr__(self, "divisor", float(self.columns))

    @classmethod
    def of(cls, X: Any) -> Self:
        """Count the columns."""
        return cls(X.shape[1])

    @property
    def measure(self) -> Measure:
        """The number of columns that differ."""
        return Measure("count")


DISTANCES: dict[str, tuple[type[Distance], dict[str, Any]]] = {
    "euclidean": (Minkowski, {"p": 2.0}),
    "l2": (Minkowski, {"p": 2.0}),
    "sqeuclidean": (SquaredEuclidean, {}),
    "manhattan": (Minkowski, {"p": 1.0}),
    "cityblock": (Minkowski, {"p": 1.0}),
    "l1": (Minkowski, {"p": 1.0}),
    "chebyshev": (Minkowski, {"p": np.inf}),
    "infinity": (Minkowski, {"p": np.inf}),
    "minkowski": (Minkowski, {}),
    "p": (Minkowski, {}),
    "cosine": (Cosine, {}),
    "seuclidean": (StandardisedEuclidean, {}),
    "mahalanobis": (Mahalanobis, {}),
    "hamming": (Hamming, {}),
    "nan_euclidean": (NanEuclidean, {}),
    "gower": (Gower, {}),
    "precomputed": (Precomputed, {}),
}
# Looked up once: a signature takes 15 us, as much as the rest of a small distance.
PARAMETERS = {kind: list(signature(kind.of).parameters) for kind, _ in DISTANCES.values()}
# Those that scikit-learn's brute force has too; of them only its own formulas are used.
OTHERS = (
    "braycurtis",
    "canberra",
    "correlation",
    "dice",
    "haversine",
    "jaccard",
    "rogerstanimoto",
    "russellrao",
    "sokalsneath",
    "yule",
)


def distance_kind(metric: Any) -> type[Distance]:
    """Return the class of the distance of that name, that is learnt, or that calls the function."""
    if isinstance(metric, Learned):
        return Learned
    if metric is Learned:
        raise InputError(
            "metric=Learned is the class. Say what learns the distance, for instance "
            "metric=distances.Learned(NeighborhoodComponentsAnalysis())."
        )
    if hasattr(metric, "fit") and hasattr(metric, "transform"):
        raise InputError(f"metric={metric!r:.80} is a transformer: pass metric=distances.Learned(...) of it.")
    if callable(metric):
        return Called
    if hasattr(metric, "pairwise"):
        return Paired
    check_option(
        "metric", metric, [*DISTANCES, *OTHERS], also="distances.Learned(...), a function of two rows"
    )
    return DISTANCES[metric][0] if metric in DISTANCES else Named


def make_distance(metric: Any, X: Any, **parameters: Any) -> Distance:
    """Return the distance of that name, or that calls the function, for training rows like X."""
    kind = distance_kind(metric)
    if kind is Called:
        return Called(metric, parameters)
    if kind is Named:
        return Named(metric, parameters)
    if kind is Learned and not parameters:
        return metric.of_rows(X)
    if kind is Paired and not parameters:
        return Paired(metric)
    if kind in (Paired, Learned):
        raise InputError(f"metric={metric!r} has its parameters already. Leave out metric_params.")
    fixed = DISTANCES[metric][1]
    known = [name for name in PARAMETERS[kind] if name != "X" and name not in fixed]
    unknown = [name for name in parameters if name not in known]
    if unknown:
        raise InputError(
            f"metric={metric!r} has no parameter {unknown[0]!r}; "
            + (f"it has {' and '.join(map(repr, known))}." if known else "it has none.")
        )
    return kind.of(X, **fixed, **parameters)


def between(queries: Any, rows: Any, metric: Any = "euclidean", **parameters: Any) -> Array:
    """Return the distance of each query (a row of the result) from each row (a column), in float64.

    Parameters
    ----------
    queries, rows : array of shape (n, columns)
    metric : str, Learned or callable, default="euclidean"
        A name in :data:`DISTANCES` or :data:`OTHERS`, a learnt distance, or a function of two rows.
    **parameters
        Those of the distance: p and w of "minkowski", V or VI of "mahalanobis", ...

    Returns
    -------
    ndarray of shape (len(queries), len(rows))
    """
    queries, rows = (part if sp.issparse(part) else np.asarray(part) for part in (queries, rows))
    if queries.ndim != 2 or rows.ndim != 2 or queries.shape[1] != rows.shape[1]:
        raise InputError(
            f"queries have shape {queries.shape} and rows have shape {rows.shape}. Pass two tables with the "
            "same columns."
        )
    return make_distance(metric, rows, **parameters).between(queries, rows)
