"""The rows that a nearest-neighbour learner keeps: checked, with what the distance has learnt of them.

They own how queries are checked and answered: some thousand at a time, so that the memory this takes does not
grow with their number. Rows may be added at any time; the search is made ready when it is next asked, and
counts what it does. Rows of weight 0 are no neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.certificate import Certificate
from sixfold.data.checks import (
    check_table,
    column_names,
    require_computable,
    require_differences,
    require_finite,
)
from sixfold.data.mixed_table import ColumnKinds, check_mixed
from sixfold.errors import InputError
from sixfold.explain.last_step import last_step
from sixfold.geometry.distances import (
    DISTANCES,
    Distance,
    Learned,
    Mahalanobis,
    Minkowski,
    Precomputed,
    SquaredEuclidean,
    StandardisedEuclidean,
    distance_kind,
    make_distance,
)
from sixfold.solvers.neighbors.blocked import BlockedSearch
from sixfold.solvers.neighbors.choose import make_search
from sixfold.solvers.neighbors.search import DistanceSearch, Neighbors, RadiusNeighbors

Array = NDArray[Any]
Answer = TypeVar("Answer")

CHUNK_BYTES = 1 << 26  # of queries that are answered at a time
CHUNK_PAIRS, CHUNK_GROWTH = 1 << 23, 4  # of queries and rows within a radius; from one chunk to the next
CHUNK_NEIGHBORS = 1 << 20  # that are held at a time, each with its distance, weight and target
TAKING_MISSING = [name for name, (kind, _) in DISTANCES.items() if kind.takes_missing]
SUMS_OF_SQUARES = (SquaredEuclidean, StandardisedEuclidean, Mahalanobis, Learned)  # which may overflow


def check_neighbor_rows(
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
            f"Metric {_spelled(metric)} not valid for sparse input. Pass X.toarray(), or use one of "
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

    def names() -> list[str]:
        return column_names(estimator, rows.shape[1])

    if kind.takes_missing:
        if np.isinf(rows).any():
            require_finite(np.where(np.isnan(rows), 0.0, rows), "X", names)
        return
    try:
        squares = _squares(estimator, kind, metric)
        (require_computable if squares else require_finite)(rows, "X", names)
        if kind is Minkowski and not squares:
            require_differences(rows)
    except InputError as error:
        if "NaN" in str(error):
            known = " and ".join(f"metric={name!r}" for name in TAKING_MISSING)
            raise InputError(
                f"{error} {known} take missing values, which {_spelled(metric)} does not."
            ) from error
        raise


def _squares(estimator: Any, kind: type[Distance], metric: Any) -> bool:
    """Return whether differences are squared, or have a power that is no easier to add up."""
    if kind is Minkowski:
        exponent = DISTANCES[metric][1].get("p", estimator._metric()[1].get("p"))
        return exponent not in (1, np.inf)
    return kind in SUMS_OF_SQUARES


def _spelled(metric: Any) -> str:
    return getattr(metric, "__name__", repr(metric)) if callable(metric) else repr(metric)


@dataclass
class SearchStats:
    """How many queries were answered, of how many pairs of rows, and how many distances that took."""

    queries: int = 0
    pairs: int = 0
    computed: int = 0


@dataclass(frozen=True)
class Queries:
    """Rows whose neighbours are asked for.

    Attributes
    ----------
    rows : ndarray or CSR array
        Checked.
    k : int
        How many neighbours of each.
    numbers : ndarray of int64 or None
        Which training rows they are, if they are: none is its own neighbour.
    """

    rows: Any
    k: int = 0
    numbers: Array | None = None


class StoredRows:
    """Training rows, a distance and a search, which is made when first asked.

    Parameters
    ----------
    metric, parameters
        The distance and its parameters.
    algorithm, leaf_size
        Those of :func:`sixfold.solvers.neighbors.choose.make_search`.
    """

    def __init__(self, metric: Any, parameters: dict[str, Any], algorithm: str, leaf_size: int) -> None:
        self.metric, self.parameters = metric, parameters
        self.algorithm, self.leaf_size = algorithm, leaf_size
        self.stats = SearchStats()
        self.kinds: ColumnKinds | None = None
        self.weight: Array | None = None
        self._parts: list[Any] = []
        self._search: DistanceSearch | None = None

    # -- rows ----------------------------------------------------------------------------------------------

    def add(self, X: Any, weight: Array | None, kinds: ColumnKinds | None) -> None:
        """Keep more rows; ``weight`` and ``kinds`` are those of all rows, weights None where they are 1."""
        rows = self.like_stored(X) if self._parts else X
        self._parts.append(rows if sp.issparse(rows) else np.ascontiguousarray(rows))
        self.weight, self.kinds, self._search = weight, kinds, None

    def require_here(self) -> None:
        """Raise an :class:`InputError` where the rows are not in this process."""

    def like_stored(self, X: Any) -> Any:
        """Return rows sparse where the stored ones are, and dense where they are dense."""
        sparse = sp.issparse(self._parts[0])
        if sparse == sp.issparse(X):
            return X
        return sp.csr_array(X) if sparse else X.toarray()

    def copy(self) -> StoredRows:
        """Return the same rows, to which others may be added, with counts of their own."""
        other = copy(self)
        other._parts, other.stats = list(self._parts), replace(self.stats)
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

    @property
    def precomputed(self) -> bool:
        """Whether queries are distances."""
        return distance_kind(self.metric) is Precomputed

    # -- search --------------------------------------------------------------------------------------------

    @property
    def distance_parameters(self) -> dict[str, Any]:
        """Those given, and which columns are categories where there are some."""
        known = {} if self.kinds is None else {"categorical": self.kinds.categorical}
        return self.parameters | known

    def ready(self, budget: Budget | None = None) -> DistanceSearch:
        """Return the search, made ready where it was not yet."""
        if self._search is None:
            kept, distance = self._kept, make_distance(self.metric, self.rows, **self.distance_parameters)
            limits = Budget() if budget is None else budget
            self._search = make_search(self.rows, distance, self.algorithm, self.leaf_size, limits, kept)
        return self._search

    def check_queries(self, estimator: Any, X: Any, k: int = 0) -> Queries:
        """Return rows to find k neighbours of, checked; None asks for the training rows themselves."""
        if X is None:
            queries = Queries(self.rows, k, np.arange(self.count))
        else:
            queries = Queries(check_neighbor_rows(estimator, X, self.metric, False, self.kinds)[0], k)
        most = self.usable - (X is None)
        if k > most:
            others = " other than itself" if X is None else ""
            raise InputError(
                f"Expected n_neighbors <= n_samples_fit, but n_neighbors = {k}, n_samples_fit = "
                f"{self.usable}, n_samples = {queries.rows.shape[0]}: a row has at most {most} neighbours"
                f"{others}, which are training rows of positive weight. Ask for fewer neighbours, or fit on "
                "more rows."
            )
        return queries

    def chunks(self, queries: Queries, most: int) -> Iterator[slice]:
        """Go through the queries, at most so many at a time."""
        count, size = queries.rows.shape[0], self._chunk_size(queries, most)
        for start in range(0, count, size):
            yield slice(start, min(start + size, count))

    def _chunk_size(self, queries: Queries, most: int) -> int:
        rows = queries.rows
        row_bytes = 1024 if sp.issparse(rows) else max(rows.shape[1] * 8, 1)
        return max(min(most, CHUNK_BYTES // row_bytes, CHUNK_NEIGHBORS // max(queries.k, 1)), 1)

    def map_chunks(
        self, queries: Queries, answer: Callable[[slice, Neighbors], Answer], most: int, budget: Budget
    ) -> list[Answer]:
        """Return what ``answer`` makes of the neighbours of each chunk of the queries."""
        answers = []
        for chunk in self.chunks(queries, most):
            found = self.nearest(queries, chunk, budget)
            if self.precomputed and sp.issparse(queries.rows):
                _require_known(found, chunk.start)
            answers.append(answer(chunk, found))
        return answers

    def nearest(self, queries: Queries, chunk: slice, budget: Budget) -> Neighbors:
        """Return the nearest rows of a chunk of the queries, and count what was computed."""
        rows, own = queries.rows[chunk], queries.numbers is not None
        found = self.ready(budget).nearest(self._for_search(rows), queries.k + own, budget)
        found = replace(found, rows=self._numbered(found.rows, rows.shape[0], found.computed))
        return found if queries.numbers is None else without_self(found, queries.numbers[chunk])

    def map_chunks_within(
        self,
        queries: Queries,
        radius: float,
        answer: Callable[[slice, RadiusNeighbors], Answer],
        most: int,
        budget: Budget,
    ) -> list[Answer]:
        """Return what ``answer`` makes of the rows within the radius of each chunk of the queries.

        All rows may be within it, so the first chunks are small, and the next as large as what they find lets
        them.
        """
        answers, start, count = [], 0, queries.rows.shape[0]
        most = self._chunk_size(queries, most)
        size = max(min(most, CHUNK_PAIRS // max(self._most_within(queries, most, radius, budget), 1)), 1)
        while start < count:
            chunk = slice(start, min(start + size, count))
            found = self.within(queries, chunk, radius, budget)
            answers.append(answer(chunk, found))
            fitting = CHUNK_PAIRS * size // max(found.rows.size, 1)
            start, size = chunk.stop, max(min(most, CHUNK_GROWTH * size, fitting), 1)
        return answers

    def _most_within(self, queries: Queries, most: int, radius: float, budget: Budget) -> int:
        """Return about how many rows are within the radius of a query: all, as far as is known.

        A table in a file is read once for each chunk of queries, and first chunks of few would cost most of
        the time. So some of its rows are searched first.
        """
        loops = self.ready(budget).loops
        if not isinstance(loops, BlockedSearch):
            return self.count
        sample, count = loops.sampled()
        some = self._for_search(queries.rows[:most])
        found = replace(self.ready(), loops=sample, rows=count).within(some, radius, budget)
        # One more, which chance may have hidden; after the first chunk their number is known.
        return int(min(found.rows.size / some.shape[0] + 1.0, count) * self.count / count)

    def within(self, queries: Queries, chunk: slice, radius: float, budget: Budget) -> RadiusNeighbors:
        """Return the rows within the radius of a chunk of the queries, and count what was computed."""
        rows = queries.rows[chunk]
        found = self.ready(budget).within(self._for_search(rows), radius, budget)
        found = replace(found, rows=self._numbered(found.rows, rows.shape[0], found.computed))
        return found if queries.numbers is None else found.without(queries.numbers[chunk])

    def _for_search(self, queries: Any) -> Any:
        """Return queries as the search reads them: sparse as the rows are, distances of rows that count."""
        if self.precomputed:
            return queries if self._kept is None else queries[:, self._kept]
        return self.like_stored(queries)

    def _numbered(self, rows: Array, queries: int, computed: int) -> Array:
        """Return the numbers that rows have among all, and count what was computed."""
        self.stats.queries += queries
        self.stats.pairs += queries * self.usable
        self.stats.computed += computed
        kept = self._kept
        return rows if kept is None else kept[rows]

    @property
    def notes(self) -> tuple[str, ...]:
        """What is known of the distance, where that was learnt."""
        if not isinstance(self.metric, Learned) or isinstance(self.metric.transformer, np.ndarray):
            return ()
        learnt = last_step(self.metric.transformer)
        proof = f", {learnt.certificate_}" if hasattr(learnt, "certificate_") else ""
        return (f"in a distance that was learnt ({type(learnt).__name__}{proof})",)

    def certificate(self) -> Certificate:
        """Return the certificate of an exact search: what it finds is 0 farther than the nearest rows."""
        stats, claim = self.stats, "as if every distance were computed"
        notes = (f"{stats.computed:,} of {stats.pairs:,} were",) if stats.pairs else ()
        details = {
            "algorithm": self.ready().loops.name,
            "queries": stats.queries,
            "distances_computed": stats.computed,
            "distances_ruled_out": max(stats.pairs - stats.computed, 0),
        }
        return Certificate("exact search", 0.0, 0.0, 0.0, 0.0, details, claim, (*notes, *self.notes))


def without_self(found: Neighbors, numbers: Array) -> Neighbors:
    """Return one neighbour less for each query: itself where it is among them, the farthest where not."""
    own = found.rows == numbers[:, None]
    own[~own.any(axis=1), -1] = True
    shape = (found.rows.shape[0], found.rows.shape[1] - 1)
    return Neighbors(found.distances[~own].reshape(shape), found.rows[~own].reshape(shape), found.computed)


def _require_known(found: Neighbors, start: int) -> None:
    """Raise an :class:`InputError` where a sparse matrix of distances has too few; ``start`` is a number."""
    short = np.flatnonzero(np.isinf(found.distances[:, -1]))
    if short.size:
        known = int(np.isfinite(found.distances[short[0]]).sum())
        raise InputError(
            f"{found.rows.shape[1]} neighbors per samples are required, but some samples have only {known}: "
            f"of row {start + int(short[0])}, counted from 0, the sparse matrix has no more distances. Pass "
            "more of them, or ask for fewer neighbours."
        )
