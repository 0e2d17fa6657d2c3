"""Exact search by sums of squares in many columns: lower bounds on distances, a product of features each.

With a centre c, a power of two s and z = s (x - c), two ways to bound distances from below:

    projected bounds   |z - w|^2 >= |V'z - V'w|^2 + (|z - VV'z| - |w - VV'w|)^2,  V'V = I
    fused products     |z - w|^2  = |z|^2 - 2 z.w + |w|^2, in single precision

The first holds for any orthonormal V; leading principal directions make it tight where columns are
correlated, as pixels are. It is taken with 30 directions, then with 126 for the rows that are left. The
second costs a product of all columns and rules out all but a few rows whatever the data. The distances of
rows that are left are computed in full. The margins that make bounds of rounded numbers, and their proof, are
in native/neighbors/projected/lower_bounds.hpp.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.linalg.blas import sgemm

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.geometry.distances.base import Measure
from sixfold.solvers.neighbors.search import Neighbors, RadiusNeighbors, collect_nearest, collect_within
from sixfold.solvers.threads import single_threaded_blas

Array = NDArray[Any]

PANEL, DIRECTIONS, COARSE_WIDTH, FINE_WIDTH = core.BOUND_SHAPE
SAMPLE = 2048  # rows that centre, scale and directions are taken from
PILOT = 48  # rows that are searched for to see what the bounds rule out
LEAST_WORKSPACE, WORKSPACE = 1 << 20, 1 << 26  # bytes for the features and heaps of the queries of a chunk


def dense_search(X: Array, measure: Measure) -> ProjectedSearch | ProductSearch:
    """Return the search by bounds that is the faster for these rows.

    Parameters
    ----------
    X : ndarray of shape (rows, columns)
        C-contiguous, of float64, float32 or uint8; kept, not copied.
    measure : Measure
        Of the family "squares".
    """
    projection = dense_projection(X, measure)
    return ProductSearch(X, measure) if projection is None else ProjectedSearch(X, measure, projection)


def dense_projection(X: Array, measure: Measure) -> Projection | None:
    """Return what to project these rows on, or None where bounds from their products are the faster."""
    if X.shape[1] > 2 * COARSE_WIDTH and len(X) >= 4 * SAMPLE and _spread(X) < 2 * COARSE_WIDTH:
        # The nearest rows of a sample are farther than those of all rows: fewer are ruled out than will be.
        pilot = ProjectedSearch(np.ascontiguousarray(_sample(X, 4 * SAMPLE)), measure)
        if pilot.pays():
            return pilot.projection
    return None


class _Frame(NamedTuple):
    """How rows are centred and scaled before they are rounded to single precision; any values are right."""

    centre: Array
    scale: float


class Projection(NamedTuple):
    """Orthonormal directions as floats, a bound on |V'V - I|, and the residual up to which it is noise."""

    directions: Array
    skew: float
    quiet: float


class _Features(NamedTuple):
    """What a query is compared by; see native/neighbors/projected/lower_bounds.hpp."""

    coarse: Array
    coarse_base: Array
    fine: Array | None = None
    fine_base: Array | None = None


class _BoundedSearch(ABC):
    """Queries answered by bounds; subclasses have the features."""

    name: ClassVar[str]

    def __init__(self, X: Array, measure: Measure) -> None:
        self.X = X
        self.measure = measure
        self.frame = _frame(_sample(X, SAMPLE))
        self.coarse: Array
        self.fine: Array | None = None

    @abstractmethod
    def _features(self, queries: Array) -> _Features:
        """Return what these queries are compared by."""

    def nearest(self, queries: Array, k: int, budget: Budget) -> Neighbors:
        """Return the k nearest rows of each query; 1 <= k <= rows."""
        queries = self._as_rows(queries)

        def search(chunk: slice, distances: Array, rows: Array) -> int:
            finished, _, computed = self._nearest(queries[chunk], distances, rows, budget)
            return computed if finished else -1

        return collect_nearest(len(queries), k, self._chunk_size(k), budget, search)

    def _nearest(
        self, queries: Array, distances: Array, rows: Array, budget: Budget
    ) -> tuple[bool, int, int]:
        """Fill in the answer; return whether it is whole, and how many rows passed one bound and both."""
        return core.nearest_by_bounds(
            *self._tables(queries), distances, rows, budget.seconds_left, budget.flag
        )

    def within(self, queries: Array, radius: float, budget: Budget) -> RadiusNeighbors:
        """Return the rows of each query whose distance is at most the radius."""
        queries = self._as_rows(queries)
        most = max(24, 2 * WORKSPACE // (32 * len(self.X)))  # an answer may be all rows, and is held twice

        def search(chunk: slice) -> tuple[int, Array, Array, Array]:
            finished, *found, computed = core.within_by_bounds(
                *self._tables(queries[chunk]), radius, budget.seconds_left, budget.flag
            )
            return computed if finished else -1, *found

        return collect_within(len(queries), min(most, self._chunk_size(1)), budget, search)

    def _as_rows(self, queries: Array) -> Array:
        dtype = self.X.dtype if queries.dtype == self.X.dtype else np.float64
        return np.ascontiguousarray(queries, dtype=dtype)

    def _chunk_size(self, k: int) -> int:
        """Return how many queries to answer at once: heaps of k a thread, features and their packed copy."""
        width = self.coarse.shape[1] * 2 + (0 if self.fine is None else FINE_WIDTH)
        # Little beside few rows: new pages took a quarter of the time of 300 queries among 300 x 2,000.
        room = min(WORKSPACE, max(self.X.nbytes // 4, LEAST_WORKSPACE))
        return max(1, min(room // (4 * width), WORKSPACE // (16 * (k + 2) * core.threads() + 4 * width)))

    def _tables(self, queries: Array) -> tuple[Any, ...]:
        features = self._features(queries)
        return (self.X, queries, self.coarse, self.fine, *features, self.frame.scale, self.measure.root)


class ProjectedSearch(_BoundedSearch):
    """Rows that lie near a plane of few directions: bounds from their projections.

    Parameters
    ----------
    X : ndarray of shape (rows, columns)
        C-contiguous, of float64, float32 or uint8; kept, not copied.
    measure : Measure
        Of the family "squares".
    projection : Projection or None
        What to project on; None for the leading principal directions. Any is right.
    """

    name: ClassVar[str] = "projected bounds"

    def __init__(self, X: Array, measure: Measure, projection: Projection | None = None) -> None:
        super().__init__(X, measure)
        self.projection = projection or _principal(_sample(X, SAMPLE), self.frame)
        self.coarse = _aligned((-(-len(X) // PANEL), COARSE_WIDTH, PANEL))
        self.fine = _aligned((len(X), FINE_WIDTH))
        core.project_rows(X, *self.frame, *self.projection, self.coarse, self.fine)

    def _features(self, queries: Array) -> _Features:
        count = len(queries)
        features = _Features(
            np.empty((count, COARSE_WIDTH), dtype=np.float32),
            np.empty(count),
            np.empty((count, FINE_WIDTH), dtype=np.float32),
            np.empty(count),
        )
        core.project_queries(queries, *self.frame, *self.projection, *features)
        return features

    def pays(self) -> bool:
        """Return whether a query costs less than products of all columns would, by a search for some rows.

        About what they take on one core with AVX-512, in nanoseconds: 0.015 a coordinate of a product, 25 a
        fine bound, 50 + 0.15 a column a distance in full.
        """
        rows, columns = self.X.shape
        queries = np.ascontiguousarray(self.X[:: max(1, rows // PILOT)][:PILOT])
        k = min(6, rows)  # a row itself and five others
        answer = np.empty((len(queries), k)), np.empty((len(queries), k), dtype=np.int64)
        _, coarse, fine = self._nearest(queries, *answer, Budget())
        pairs = len(queries) * rows
        spent = 0.015 * COARSE_WIDTH + (25.0 * coarse + (50.0 + 0.15 * columns) * fine) / pairs
        return spent < 0.015 * (columns + 1)


class ProductSearch(_BoundedSearch):
    """Rows of any kind: bounds from products of whole rows in single precision.

    Parameters
    ----------
    X : ndarray of shape (rows, columns)
        C-contiguous, of float64, float32 or uint8; kept, and packed once more in single precision.
    measure : Measure
        Of the family "squares".
    """

    name: ClassVar[str] = "fused products"

    def __init__(self, X: Array, measure: Measure) -> None:
        super().__init__(X, measure)
        self.coarse = _aligned((-(-len(X) // PANEL), X.shape[1] + 1, PANEL))
        core.pack_rows(X, *self.frame, self.coarse)

    def _features(self, queries: Array) -> _Features:
        coarse, base = np.empty((len(queries), self.X.shape[1] + 1), dtype=np.float32), np.empty(len(queries))
        core.pack_queries(queries, *self.frame, coarse, base)
        return _Features(coarse, base)


def _sample(X: Array, most: int) -> Array:
    return X[:: -(-len(X) // most)]


def _spread(X: Array) -> float:
    """Return over how many directions the rows spread, (sum of variances)^2 / sum of their squares.

    Rows that spread evenly over many have no directions worth projecting on; to try took a fifth of the time
    of 5,000 queries among 50,000 x 100 uniform numbers.
    """
    sample = _sample(X, 512)
    frame = _frame(sample)
    rows = ((sample - frame.centre) * frame.scale).astype(np.float32)
    inner = rows @ rows.T  # its eigenvalues are those of the covariance, and there are fewer rows to multiply
    squares = float(np.vdot(inner, inner))
    return float(np.trace(inner)) ** 2 / squares if squares > 0 else 0.0


def _frame(sample: Array) -> _Frame:
    """Return the mean and the power of two that brings the sample to about 1."""
    with np.errstate(over="ignore", invalid="ignore"):
        centre = sample.mean(axis=0, dtype=np.float64)
        centre[~np.isfinite(centre)] = 0.0
        # Extremes of columns, without the differences of all entries: a third of the time of a small fit.
        above, below = sample.max(axis=0) - centre, centre - sample.min(axis=0)
        largest = float(max(above.max(initial=0.0), below.max(initial=0.0)))
    exponent = math.frexp(largest)[1] if math.isfinite(largest) else 1000
    return _Frame(centre, 2.0 ** -min(max(exponent, -1000), 1000))


def _principal(sample: Array, frame: _Frame) -> Projection:
    """Return the leading principal directions.

    Subspace iteration on a sample (Halko, Martinsson and Tropp 2011, algorithm 4.4): any V is right, and two
    rounds rule out as many rows as exact directions do.
    """
    Z = ((sample - frame.centre) * frame.scale).astype(np.float32).T  # a column a row of the sample
    columns = len(Z)
    basis = np.random.default_rng(0).standard_normal((DIRECTIONS + 8, columns), dtype=np.float32).T
    with single_threaded_blas(columns):
        for _ in range(2):
            basis = _orthonormal(sgemm(1.0, Z, sgemm(1.0, Z, basis, trans_a=True)))
        scores = sgemm(1.0, Z, basis, trans_a=True)
        turn = linalg.eigh(sgemm(1.0, scores, scores, trans_a=True), check_finite=False)[1][:, ::-1]
        exact = _orthonormal(basis.astype(np.float64) @ turn[:, :DIRECTIONS]).astype(np.float32)
    V = np.zeros((columns, FINE_WIDTH), dtype=np.float32)  # with fewer columns, directions of zeros
    V[:, : exact.shape[1]] = exact
    exact = exact.astype(np.float64)
    skew = float(np.linalg.norm(exact.T @ exact - np.eye(exact.shape[1])))
    skew = skew * (1.0 + 1e-6) + 1e-14 * columns  # products of columns of length 1 are right to d u
    length = math.sqrt(float(np.mean(np.einsum("ij,ij->j", Z, Z))))
    return Projection(V, skew, max(length / 16.0, 2.0**-50))


def _orthonormal(columns: Array) -> Array:
    return linalg.qr(columns, mode="economic", overwrite_a=True, check_finite=False)[0]


def _aligned(shape: tuple[int, ...]) -> Array:
    """Return an array of floats that begins with a cache line, as panels are fastest read."""
    size = math.prod(shape)
    room = np.empty(size + 16, dtype=np.float32)
    start = -room.ctypes.data % 64 // 4
    return room[start : start + size].reshape(shape)
