"""Distances that no search loop knows: they compute themselves, for every query and every row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.errors import InputError
from sixfold.geometry.distances.base import Distance, columns_of
from sixfold.geometry.distances.transforms import RoundedOnce

Array = NDArray[Any]


@dataclass(frozen=True)
class NanEuclidean(Distance):
    """sqrt(d / m * sum of (x_j - q_j)^2 over the m of d columns that both have); infinite where m = 0."""

    takes_missing = True

    def between(self, queries: Any, rows: Any) -> Array:
        """Return the distances; a column that one of the two lacks is left out."""
        total, shared = RoundedOnce(), np.zeros((queries.shape[0], rows.shape[0]))
        for q, x in zip(columns_of(queries), columns_of(rows), strict=True):
            difference = q[:, None] - x
            there = ~np.isnan(difference)
            shared += there
            total.add(np.where(there, difference * difference, 0.0))
        with np.errstate(divide="ignore"):
            return np.sqrt(np.where(shared > 0, total.value(), np.inf) * rows.shape[1] / shared)


@dataclass(frozen=True)
class Gower(Distance):
    """The mean over shared columns of |x_j - q_j| / range_j (numbers) or [x_j != q_j] (categories).

    After Gower (1971): columns in which x or q is missing are left out; infinite where none is shared. A
    range is that of the training rows; a column that is constant there counts as categories.
    """

    ranges: Array  # 0 for categories
    takes_missing = True
    takes_categories = True

    @classmethod
    def of(cls, X: Any, categorical: Any = None) -> Self:
        """Learn the ranges; ``categorical`` says which columns are categories, True or False for each."""
        kinds = np.zeros(X.shape[1], dtype=bool) if categorical is None else np.asarray(categorical)
        if kinds.shape != (X.shape[1],) or kinds.dtype != bool:
            raise InputError(
                f"categorical={categorical!r:.80} does not say which of the {X.shape[1]} columns are "
                "categories. Pass True or False for each."
            )
        rows = np.asarray(X, dtype=np.float64)
        there = ~np.isnan(rows)
        high = np.max(rows, axis=0, where=there, initial=-np.inf)
        low = np.min(rows, axis=0, where=there, initial=np.inf)
        return cls(np.where(kinds | ~there.any(axis=0), 0.0, high - low))

    def between(self, queries: Any, rows: Any) -> Array:
        """Return the distances."""
        total, shared = RoundedOnce(), np.zeros((queries.shape[0], rows.shape[0]))
        for q, x, span in zip(columns_of(queries), columns_of(rows), self.ranges, strict=True):
            difference = np.abs(q[:, None] - x)
            there = ~np.isnan(difference)
            shared += there
            part = difference / span if span > 0 else (difference != 0).astype(np.float64)
            total.add(np.where(there, part, 0.0))
        # Nothing in common: as far as can be.
        return np.where(shared > 0, total.value() / np.maximum(shared, 1.0), np.inf)


@dataclass(frozen=True)
class Precomputed(Distance):
    """Distances that are given: X[i, j] is that of query i from training row j.

    Entries that a sparse matrix does not have are not known, which is as far as can be; zeros that it does
    have are distances.
    """

    takes_sparse = True

    def work(self, columns: int) -> int:
        """Count the one that is looked up."""
        return 1

    def between(self, queries: Any, rows: Any) -> Array:
        """Return the queries, which are distances themselves."""
        if not sp.issparse(queries):
            return np.asarray(queries, dtype=np.float64)
        stored, known = queries.tocoo(), np.zeros(queries.shape, dtype=bool)
        known[stored.row, stored.col] = True
        return np.where(known, queries.toarray(), np.inf)


@dataclass(frozen=True)
class Called(Distance):
    """function(q, x): any callable that takes two rows and returns a number that is not negative."""

    function: Callable[..., Any]
    keywords: Mapping[str, Any] = field(default_factory=dict)

    def work(self, columns: int) -> int:
        """Count a call of Python as a hundred thousand terms: it may well be slow."""
        return 100_000 + columns

    def between(self, queries: Any, rows: Any) -> Array:
        """Return the distances, one call a pair."""
        result = np.empty((queries.shape[0], rows.shape[0]))
        for i, q in enumerate(queries):
            for j, x in enumerate(rows):
                result[i, j] = self._checked(self.function(q, x, **self.keywords), q, x)
        return result

    def _checked(self, value: Any, q: Array, x: Array) -> Any:
        try:
            good = float(value) >= 0
        except (TypeError, ValueError):
            good = False
        if not good:
            name = getattr(self.function, "__name__", repr(self.function))
            raise InputError(
                f"metric={name} returned {value!r:.50} for the query {q.tolist()!r:.80} and the training row "
                f"{x.tolist()!r:.80}. A distance is a number that is 0 or more: correct the function, or the "
                "rows it cannot compare."
            )
        return value


@dataclass(frozen=True)
class Paired(Distance):
    """A ``DistanceMetric`` of scikit-learn, or whatever else has a method pairwise(queries, rows)."""

    metric: Any

    def between(self, queries: Any, rows: Any) -> Array:
        """Return the distances."""
        pair = (np.ascontiguousarray(part, dtype=np.float64) for part in (queries, rows))
        found = np.asarray(self.metric.pairwise(*pair), dtype=np.float64)
        if found.shape != (queries.shape[0], rows.shape[0]) or not (found >= 0).all():
            raise InputError(
                f"metric={self.metric!r} returned an array of shape {found.shape} for {queries.shape[0]} "
                f"queries and {rows.shape[0]} rows, or numbers that are no distances. Return one that is 0 "
                "or more for each pair."
            )
        return found


@dataclass(frozen=True)
class Named(Distance):
    """A distance that scikit-learn or SciPy knows by name and no loop here."""

    name: str
    keywords: Mapping[str, Any] = field(default_factory=dict)

    def between(self, queries: Any, rows: Any) -> Array:
        """Return the distances."""
        from sklearn.metrics import pairwise_distances

        try:
            result = pairwise_distances(queries, rows, metric=self.name, **self.keywords)
        except (TypeError, ValueError) as error:
            raise InputError(f"metric={self.name!r} cannot compare these rows: {error}") from error
        bad = np.argwhere(np.isnan(result))
        if bad.size:
            i, j = bad[0].tolist()
            raise InputError(
                f"metric={self.name!r} is not defined for the query {queries[i].tolist()!r:.80} and the "
                f"training row {rows[j].tolist()!r:.80}. Leave out such rows, or use another metric."
            )
        return np.asarray(result, dtype=np.float64)
