"""The rows that a nearest-neighbour learner keeps: checked, with what the distance has learnt of them.

Rows may be added at any time; the search is made ready when it is next asked, and counts what it does.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.certificate import Certificate
from sixfold.data.arrays import check_table
from sixfold.data.checks import check_weight, column_names, require_computable, require_finite
from sixfold.data.mixed_table import ColumnKinds, check_mixed
from sixfold.errors import CertificateError, InputError
from sixfold.geometry.distances import (
    DISTANCES,
    Distance,
    Gower,
    Mahalanobis,
    Minkowski,
    Precomputed,
    SquaredEuclidean,
    StandardisedEuclidean,
    distance_kind,
    make_distance,
)
from sixfold.solvers.neighbors.choose import make_search
from sixfold.solvers.neighbors.distance_search import DistanceSearch
from sixfold.solvers.neighbors.search import Neighbours, Surroundings
from sixfold.verify.recomputed import Recomputed

Array = NDArray[Any]

TAKE_MISSING = [name for name, (kind, _) in DISTANCES.items() if kind.takes_missing]
PROBED_NUMBERS = 2e8  # how many differences a check of the certificate computes, about a second
MOST_PROBES = 100
ROUNDING = 1e-12  # by which rows that were made anew may differ
SQUARED = (Minkowski, SquaredEuclidean, StandardisedEuclidean, Mahalanobis)  # whose terms may overflow


def check_neighbour_rows(
    estimator: Any, X: Any, metric: Any, reset: bool, kinds: ColumnKinds | None = None, adding: bool = False
) -> tuple[Any, ColumnKinds | None]:
    """Return rows as the metric reads them: numbers, bytes, a CSR array, or numbers and codes of categories.

    With them the kinds of the columns of a table with categories: those given, to which categories that are
    new are added with ``adding``, or with ``reset`` those of X.
    """
    kind = distance_kind(metric)
    if kind.takes_categories:
        named = (estimator.metric_params or {}).get("categorical")
        rows, kinds = check_mixed(estimator, X, None if reset else kinds, named, adding)
    else:
        rows, kinds = _read(estimator, X, kind, metric, reset), None
    _require_usable(estimator, rows, kind, metric)
    return rows, kinds


def _read(estimator: Any, X: Any, kind: type[Distance], metric: Any, reset: bool) -> Any:
    # Bytes stay bytes where loops know them.
    kept = (np.uint8,) if kind is Minkowski else ()
    if kind is Precomputed and getattr(X, "format", None) in ("bsr", "dok"):
        raise InputError(
            f"X is a sparse matrix of format {X.format!r}, not supported due to its handling of explicit "
            "zeros: a distance of 0 and one that is not known look the same. Pass a matrix made as CSR."
        )
    try:
        rows = check_table(estimator, X, reset, kept)
    except InputError as error:
        if "could not convert string" in str(error):
            raise InputError(f"{error} metric='gower' takes columns of numbers and of categories.") from error
        raise
    if sp.issparse(rows) and not kind.takes_sparse:
        able = [name for name, (one, _) in DISTANCES.items() if one.takes_sparse and one is not Precomputed]
        raise InputError(
            f"Metric {_spelt(metric)} not valid for sparse input. Pass X.toarray(), or use one of "
            f"{', '.join(able)}."
        )
    if sp.issparse(rows) and not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    if kind is Precomputed:
        _require_distances(rows, reset)
    return rows


def _require_distances(rows: Any, square: bool) -> None:
    if square and rows.shape[0] != rows.shape[1]:
        raise InputError(
            f"Precomputed metric requires shape (n_queries, n_indexed) with a square matrix for fit, but X "
            f"has shape {rows.shape}. Pass the distance of every training row from every other."
        )
    if rows.size and rows.min() < 0:
        i, j = (int(place[0]) for place in (rows < 0).nonzero())
        raise InputError(
            f"Negative values in data passed to precomputed distance matrix: {rows[i, j]} in row {i}, column "
            f"{j}. Distances are 0 or more."
        )


def _require_usable(estimator: Any, rows: Any, kind: type[Distance], metric: Any) -> None:
    if rows.dtype == np.uint8:
        return
    names = column_names(estimator, rows.shape[1])
    if kind.takes_missing:
        if np.isinf(rows).any():
            require_finite(np.where(np.isnan(rows), 0.0, rows), "X", lambda: names)
        return
    try:
        require = require_computable if kind in SQUARED else require_finite
        require(rows, "X", lambda: names)
    except InputError as error:
        if "NaN" in str(error):
            known = " and ".join(f"metric={name!r}" for name in TAKE_MISSING)
            raise InputError(
                f"{error} {known} take missing values, which {_spelt(metric)} does not."
            ) from error
        raise


def _spelt(metric: Any) -> str:
    return getattr(metric, "__name__", repr(metric)) if callable(metric) else repr(metric)


def _like(rows: Any, others: Any) -> Any:
    """Return others sparse where rows are, and dense where they are dense."""
    if sp.issparse(rows) == sp.issparse(others):
        return others
    return sp.csr_array(others) if sp.issparse(rows) else others.toarray()


@dataclass
class Tally:
    """How much was asked and how much was computed."""

    queries: int = 0
    pairs: int = 0
    computed: int = 0


class StoredRows:
    """Training rows, a distance and a search, which is made when first asked.

    Parameters
    ----------
    metric, parameters
        The distance and its parameters.
    algorithm, leaf_size
        Those of :func:`sixfold.solvers.neighbors.choose.make_search`.
    """

    def __init__(
        self,
        metric: Any,
        parameters: dict[str, Any],
        algorithm: str,
        leaf_size: int,
    ) -> None:
        self.metric, self.parameters = metric, parameters
        self.algorithm, self.leaf_size = algorithm, leaf_size
        self.tally = Tally()
        self.kinds: ColumnKinds | None = None
        self.weight: Array | None = None
        self._parts: list[Any] = []
        self._forget()

    def _forget(self) -> None:
        self._search: DistanceSearch | None = None

    def add(self, X: Any, weight: Array | None, kinds: ColumnKinds | None) -> None:
        """Keep more rows; ``weight`` and ``kinds`` are those of all rows, weights None where they are 1."""
        rows = _like(self._parts[0], X) if self._parts else X
        self._parts.append(rows if sp.issparse(rows) else np.ascontiguousarray(rows))
        self.weight, self.kinds = weight, kinds
        self._forget()

    def copy(self) -> StoredRows:
        """Return the same rows, to which others may be added."""
        other = copy(self)
        other._parts, other.tally = list(self._parts), replace(self.tally)
        return other

    @property
    def rows(self) -> Any:
        """All rows, those of weight 0 too."""
        if len(self._parts) > 1:
            sparse = sp.issparse(self._parts[0])
            self._parts = [sp.csr_array(sp.vstack(self._parts)) if sparse else np.concatenate(self._parts)]
        return self._parts[0]

    @property
    def count(self) -> int:
        """How many rows there are."""
        return sum(part.shape[0] for part in self._parts)

    @property
    def usable(self) -> int:
        """How many rows may be neighbours."""
        return self.count if self.weight is None else int(np.count_nonzero(self.weight))

    @property
    def _kept(self) -> Array | None:
        """The numbers of the rows that may be neighbours; None for all."""
        return None if self.weight is None or self.weight.all() else np.flatnonzero(self.weight)

    def ready(self, budget: Budget | None = None) -> DistanceSearch:
        """Return the search, made ready where it was not yet."""
        if self._search is None:
            kept, distance = self._kept, self._distance_for(self.rows)
            rows = self.rows if kept is None else self.rows[kept]
            limits = Budget() if budget is None else budget
            self._search = make_search(rows, distance, self.algorithm, self.leaf_size, limits)
        return self._search

    def _distance_for(self, X: Any) -> Distance:
        parameters = dict(self.parameters)
        if distance_kind(self.metric) is Gower and self.kinds is not None:
            parameters["categorical"] = self.kinds.categorical
        return make_distance(self.metric, X, **parameters)

    def nearest(self, queries: Any, k: int, budget: Budget, count: bool = True) -> Neighbours:
        """Return the k nearest rows of checked queries, and count what was computed."""
        found = self.ready(budget).nearest(self._asked(queries), k, budget)
        rows = self._numbered(found.rows, queries.shape[0], found.computed if count else None)
        return replace(found, rows=rows)

    def within(self, queries: Any, radius: float, budget: Budget) -> Surroundings:
        """Return the rows within the radius of checked queries, and count what was computed."""
        found = self.ready(budget).within(self._asked(queries), radius, budget)
        return replace(found, rows=self._numbered(found.rows, queries.shape[0], found.computed))

    def _asked(self, queries: Any) -> Any:
        """Return queries as the search reads them: sparse as the rows are, distances of rows that count."""
        if self.precomputed:
            return queries if self._kept is None else queries[:, self._kept]
        return _like(self.rows, queries)

    @property
    def precomputed(self) -> bool:
        """Whether queries are distances."""
        return distance_kind(self.metric) is Precomputed

    def _numbered(self, rows: Array, queries: int, computed: int | None) -> Array:
        """Return the numbers that rows have among all, and count what was computed."""
        if computed is not None:
            self.tally.queries += queries
            self.tally.pairs += queries * self.usable
            self.tally.computed += computed
        kept = self._kept
        return rows if kept is None else kept[rows]

    # -- certificate ---------------------------------------------------------------------------------------

    def probes(self) -> Array:
        """Return the numbers of some rows, spread evenly, for which a certificate is checked."""
        columns = 1 if self.precomputed else self.rows.shape[1]
        most = np.clip(PROBED_NUMBERS / (self.count * columns), 1, min(MOST_PROBES, self.usable))
        kept = np.arange(self.count) if self._kept is None else self._kept
        return kept[np.linspace(0, kept.size - 1, int(most)).astype(np.int64)]

    def certificate(self) -> Certificate:
        """Return the certificate of an exact search: what it finds is 0 farther than the nearest rows."""
        tally, claim = self.tally, "as if every distance were computed"
        notes = (f"{tally.computed:,} of {tally.pairs:,} were",) if tally.pairs else ()
        details = {
            "algorithm": self.ready().name,
            "queries": tally.queries,
            "distances_computed": tally.computed,
            "distances_ruled_out": max(tally.pairs - tally.computed, 0),
        }
        return Certificate("exact search", 0.0, 0.0, 0.0, 0.0, details, claim, notes)

    def recomputed(self, X: Any, k: int, sample_weight: Any, budget: Budget) -> Recomputed:
        """Return how much farther the search finds neighbours than computing every distance, in NumPy, does.

        On average, of some rows, each of which is not its own neighbour.
        """
        if X.shape[0] != self.count:
            raise CertificateError(f"The model keeps {self.count} rows, but X has {X.shape[0]}.")
        self._require_same_rows(X)
        weight = check_weight(sample_weight, X.shape[0])
        there = np.ones(self.count, dtype=bool) if weight is None else weight > 0
        if not np.array_equal(there, np.ones(self.count) if self.weight is None else self.weight > 0):
            raise CertificateError("Other rows have weight 0 than those of the fit.")
        rows, k = self.probes(), min(k, self.usable - 1)
        excess = scale = 0.0
        if k > 0:
            found = self.nearest(self.rows[rows], k + 1, budget, count=False)
            distances = self._distance_for(X).between(X[rows], X)
            distances[:, ~there] = np.inf
            distances[np.arange(rows.size), rows] = np.inf
            least = np.sort(distances, axis=1)[:, :k]
            known = np.isfinite(least)  # rows may have nothing that can be compared
            far = without_self(found, rows).distances[known]
            excess = float(np.abs(far - least[known]).sum() / least.size)
            scale = float(least[known].sum() / least.size)
        return Recomputed(Certificate("exact search", excess, 0.0, scale, 0.0), 1e-11 * scale, 0.0)

    def _require_same_rows(self, X: Any) -> None:
        """Raise a CertificateError unless these are the rows that are kept, but for rounding."""
        X = _like(self.rows, X)
        if sp.issparse(X):
            off = abs(self.rows - X)
            off.data[off.data <= ROUNDING * abs(self.rows).max()] = 0.0
            changed = np.unique(off.nonzero()[0])
        else:
            same = np.isclose(X, self.rows, rtol=ROUNDING, atol=0.0, equal_nan=True)
            changed = np.flatnonzero(~same.all(axis=1))
        if changed.size:
            raise CertificateError(
                f"{changed.size} of {self.count} rows of X are not what the model keeps, the first of them "
                f"row {changed[0]}, counted from 0."
            )


def without_self(found: Neighbours, numbers: Array) -> Neighbours:
    """Return one neighbour less for each query: itself where it is among them, the farthest where not."""
    own = found.rows == numbers[:, None]
    own[~own.any(axis=1), -1] = True
    shape = (found.rows.shape[0], found.rows.shape[1] - 1)
    return Neighbours(found.distances[~own].reshape(shape), found.rows[~own].reshape(shape), found.computed)
