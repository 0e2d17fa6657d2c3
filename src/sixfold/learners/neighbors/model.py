"""What every model of neighbours is made of: rows that are stored, a search, and questions to it.

    fit       check the rows, store them, make a search ready (:mod:`sixfold.learners.neighbors.stored_rows`)
    ask       check the queries; of each chunk the nearest rows, or those within a radius

Queries that are None ask for the training rows themselves, none of which is its own neighbour.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from sixfold.budget import Budget
from sixfold.certificate import Certificate
from sixfold.data.checks import (
    check_weight,
    row_index,
)
from sixfold.data.mixed_table import ColumnKinds
from sixfold.errors import InputError, TimeLimitReached, check_number, check_option
from sixfold.explain.last_step import last_step
from sixfold.geometry.distances import Learned, Precomputed, distance_kind
from sixfold.learners.base import Learner, Step, describe
from sixfold.learners.neighbors.stored_rows import Queries, StoredRows, check_neighbor_rows
from sixfold.solvers.neighbors.choose import ALGORITHMS
from sixfold.solvers.neighbors.search import Neighbors, RadiusNeighbors
from sixfold.solvers.threads import thread_limit
from sixfold.verify.neighbors import recompute
from sixfold.verify.recomputed import Recomputed

Array = NDArray[Any]
Answer = TypeVar("Answer")

CHUNK_QUERIES = 8192  # at a time: votes and copies of them stay small, whatever their number


@dataclass(frozen=True)
class CheckedRows:
    """Rows as the metric reads them, their targets and weights; of all rows so far where some are added."""

    rows: Any
    kinds: ColumnKinds | None
    targets: Any
    given_weight: Array | None
    weight: Array | None  # with that of classes
    index: Array | None  # what the rows are called, where a frame names them


class NeighborsModel(Learner):
    """Rows that are kept, and what can be asked of the search for the nearest of them."""

    _store: StoredRows
    _given_weight: Array | None
    _row_index: Array | None

    # How many neighbours, and how near, where it is no parameter and none are asked for.
    n_neighbors: int = 5
    radius: float = 1.0

    def __init__(
        self,
        *,
        algorithm: str = "auto",
        leaf_size: int = 30,
        p: float = 2,
        metric: Any = "minkowski",
        metric_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.algorithm = algorithm
        self.leaf_size = leaf_size
        self.p = p
        self.metric = metric
        self.metric_params = metric_params
        self.n_jobs = n_jobs
        self.time_limit = time_limit

    # -- fit --------------------------------------------------------------------------------------------

    def _add(self, X: Any, y: Any, sample_weight: Any, check: Callable[..., CheckedRows]) -> Self:
        if distance_kind(self.metric) is Precomputed:
            raise InputError(
                "partial_fit adds rows, whose distances from the others metric='precomputed' does not know. "
                "Fit on the distances of all rows."
            )
        if not self.__sklearn_is_fitted__():
            return self._run_fit(X, y, sample_weight, check)
        with self._unchanged_on_failure():
            self._check_parameters()
            self._store.require_here()
            data = check(X, y, sample_weight, reset=False)
            self._store = self._store.copy()  # a copy of the model keeps the rows it has
            self._store.add(data.rows, data.weight, data.kinds)
            self._set_training(data)
            self._subject = describe(self, X, y, sample_weight, self._subject)
        return self

    def _fit_on_cluster(self, X: Any, y: Any, sample_weight: Any, solve: Step) -> Self:
        from sixfold.learners.neighbors.on_cluster import fit_on_cluster

        return fit_on_cluster(self, X, y, sample_weight)

    def _check_parameters(self) -> None:
        check_number("n_neighbors", self.n_neighbors, at_least=1, whole=True)
        check_number("radius", self.radius, at_least=0)
        check_number("leaf_size", self.leaf_size, at_least=1, whole=True)
        check_number("time_limit", self.time_limit, above=0, optional=True)
        check_option("algorithm", self.algorithm, ALGORITHMS)
        if self.metric_params is not None and not isinstance(self.metric_params, dict):
            raise InputError(f"metric_params={self.metric_params!r} is no dictionary of parameters.")

    def _metric(self) -> tuple[Any, dict[str, Any]]:
        """Return the metric and its parameters; p is that of "minkowski"."""
        given = dict(self.metric_params or {})
        if self.metric in ("minkowski", "p") and not callable(self.metric):
            given.setdefault("p", self.p)
        return self.metric, given

    def _check(self, X: Any, y: Any, sample_weight: Any, reset: bool = True) -> CheckedRows:
        metric, known = (self.metric, None) if reset else (self._store.metric, self._store.kinds)
        rows, kinds = check_neighbor_rows(self, X, metric, reset, known, adding=not reset)
        targets = self._check_targets(y, rows, reset)
        weight, index = check_weight(sample_weight, rows.shape[0]), row_index(X)
        if not reset:
            before, here = self.n_samples_fit_, rows.shape[0]
            weight = _joined(self._given_weight, weight, np.ones(before), np.ones(here))
            numbers = np.arange(before + here).astype(object)
            index = _joined(self._row_index, index, numbers[:before], numbers[before:])
        return CheckedRows(rows, kinds, targets, weight, self._weighted(targets, weight), index)

    def _check_targets(self, y: Any, rows: Any, reset: bool) -> Any:
        """Return the targets of all rows, of those that are there unless ``reset`` and of these; or none."""

    def _require_classes_for(self, metric: Learned) -> None:
        """Raise an :class:`InputError` where a distance is to be learnt from classes, and there are none."""
        tags = None if metric.fitted else get_tags(last_step(metric.transformer))
        wanted = tags is not None and tags.target_tags.required and tags.estimator_type != "regressor"
        if wanted and not is_classifier(self):
            raise InputError(
                f"metric={metric!r} is learnt from classes, and {type(self).__name__} has none. Fit its "
                "transformer to labels first, and pass Learned the fitted one."
            )

    def _labels_of(self, targets: Any) -> Array | None:
        """Return the targets as they were given, for a distance that is learnt from them; None without."""
        return None

    def _weighted(self, targets: Any, weight: Array | None) -> Array | None:
        """Return how much each row counts."""
        return weight

    def _state_problem(self, data: CheckedRows) -> StoredRows:
        metric, parameters = self._metric()
        if isinstance(metric, Learned):
            self._require_classes_for(metric)
            labels = self._labels_of(data.targets)
            metric = metric.learnt(data.rows, labels, data.given_weight, self.time_limit)
        store = StoredRows(metric, parameters, self.algorithm, self.leaf_size)
        store.add(data.rows, data.weight, data.kinds)
        return store

    def _solve(self, problem: StoredRows, data: CheckedRows, budget: Budget) -> StoredRows:
        try:
            problem.ready(budget)
        except TimeLimitReached as error:
            raise TimeLimitReached(
                f"The fit was stopped by {budget.stopped_by} before the search was ready. Allow more time, "
                "or use algorithm='brute', which has nothing to prepare."
            ) from error
        return problem

    def _set_fitted(self, solution: StoredRows, data: CheckedRows, budget: Budget) -> None:
        self._store = solution
        learnt = isinstance(solution.metric, Learned)
        metric = (solution.metric, solution.parameters) if learnt else self._metric()
        self.effective_metric_, self.effective_metric_params_ = _effective_metric(*metric)
        self._set_training(data)

    def _warn(self, solution: StoredRows, data: CheckedRows, budget: Budget) -> None:
        if budget.interrupted:  # after the search was ready
            raise KeyboardInterrupt

    def _set_training(self, data: CheckedRows) -> None:
        self.n_samples_fit_ = self._store.count
        self._given_weight, self._row_index = data.given_weight, data.index
        self._set_targets(data.targets)

    def _set_targets(self, targets: Any) -> None:
        """Set what is learnt from the targets, where there are some."""

    @property
    def algorithm_(self) -> str:
        """What finds the neighbours."""
        check_is_fitted(self)
        return self._store.ready().loops.name

    # -- certificate ---------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return "_store" in self.__dict__

    def _certify(self) -> Certificate:
        return self._store.certificate()

    def _relative_to(self) -> str:
        return "the average distance of the nearest rows"

    def _recompute(self, claimed: Certificate, X: Any, y: Any, sample_weight: Any) -> Recomputed:
        store = self._store.copy()  # what is asked here does not count
        rows = store.like_stored(store.check_queries(self, X).rows)
        given = check_weight(sample_weight, rows.shape[0])

        def ask(probes: Array, k: int) -> Iterator[tuple[Array, Array]]:
            with self._query_budget() as budget:
                return self._answers_to_check(store, Queries(store.rows[probes], k, probes), budget)

        weights, (k, radius) = (given, store.weight), self._claims()
        parameters = store.distance_parameters
        found = recompute(rows, store.rows, weights, k, ask, store.metric, parameters, radius)
        self._require_same_targets(y)
        return replace(found, certificate=replace(found.certificate, claim=claimed.claim, notes=store.notes))

    def _claims(self) -> tuple[int, float]:
        """Return how many neighbours are found, and how far they are at most."""
        return int(self.n_neighbors), np.inf

    def _answers_to_check(
        self, store: StoredRows, queries: Queries, budget: Budget
    ) -> Iterator[tuple[Array, Array]]:
        """Give distances and numbers of the neighbours of each query, the nearest first."""
        found = store.nearest(queries, slice(None), budget)
        return zip(found.distances, found.rows, strict=True)

    def _require_same_targets(self, y: Any) -> None:
        """Raise a CertificateError unless these are the targets that the model has kept, if it has."""

    # -- queries -------------------------------------------------------------------------------------------

    @contextmanager
    def _query_budget(self) -> Iterator[Budget]:
        with Budget(time_limit=self.time_limit) as budget, thread_limit(self.n_jobs):
            yield budget
        if budget.interrupted:
            raise KeyboardInterrupt

    def _check_queries(self, X: Any, n_neighbors: int | None = None) -> Queries:
        check_is_fitted(self)
        k = self.n_neighbors if n_neighbors is None else n_neighbors
        check_number("n_neighbors", k, at_least=1, whole=True)
        return self._store.check_queries(self, X, int(k))

    def _map_chunks(
        self, queries: Queries, answer: Callable[[slice, Neighbors], Answer], most: int = CHUNK_QUERIES
    ) -> list[Answer]:
        """Return what ``answer`` makes of the neighbours of each chunk of at most so many queries."""
        with self._query_budget() as budget:
            return self._store.map_chunks(queries, answer, most, budget)

    def kneighbors(self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True) -> Any:
        """Return the nearest training rows of each row, the nearest first.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_queries, n_features), default=None
            The rows to find neighbours of; None for the training rows, which are not their own neighbours.
        n_neighbors : int, default=None
            How many; None for the model's own.
        return_distance : bool, default=True
            Whether to return distances too.

        Returns
        -------
        distances : ndarray of shape (n_queries, n_neighbors)
            Only with ``return_distance``.
        rows : ndarray of shape (n_queries, n_neighbors)
            Numbers of training rows; equal distances are ordered by them.
        """
        queries = self._check_queries(X, n_neighbors)
        shape = queries.rows.shape[0], queries.k
        distances, rows = np.empty(shape), np.empty(shape, dtype=np.int64)

        def keep(chunk: slice, found: Neighbors) -> None:
            distances[chunk], rows[chunk] = found.distances, found.rows

        self._map_chunks(queries, keep)
        return (distances, rows) if return_distance else rows

    def kneighbors_graph(
        self, X: Any = None, n_neighbors: int | None = None, mode: str = "connectivity"
    ) -> Any:
        """Return a sparse matrix that joins each row with its nearest training rows.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_queries, n_features), default=None
            As in :meth:`kneighbors`.
        n_neighbors : int, default=None
            How many; None for the model's own.
        mode : {"connectivity", "distance"}, default="connectivity"
            Whether entries are 1 or distances.

        Returns
        -------
        csr_matrix of shape (n_queries, n_samples_fit_)
        """
        check_option("mode", mode, ("connectivity", "distance"))
        distances, rows = self.kneighbors(X, n_neighbors)
        ends = np.arange(rows.shape[0] + 1) * rows.shape[1]
        values = distances.ravel() if mode == "distance" else np.ones(rows.size)
        return sp.csr_matrix((values, rows.ravel(), ends), shape=(rows.shape[0], self.n_samples_fit_))

    def radius_neighbors(
        self,
        X: Any = None,
        radius: float | None = None,
        return_distance: bool = True,
        sort_results: bool = False,
    ) -> Any:
        """Return all training rows within a radius of each row.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_queries, n_features), default=None
            As in :meth:`kneighbors`.
        radius : float, default=None
            Rows at exactly this distance count; None for the model's own, 1 where it has none.
        return_distance : bool, default=True
            Whether to return distances too.
        sort_results : bool, default=False
            Whether the nearest come first, equal distances by row number; all by row number otherwise.

        Returns
        -------
        distances : ndarray of shape (n_queries,) of arrays
            Only with ``return_distance``.
        rows : ndarray of shape (n_queries,) of arrays
        """
        queries, radius = self._check_radius_queries(X, radius)
        count = queries.rows.shape[0]
        distances, rows = np.empty(count, dtype=object), np.empty(count, dtype=object)

        def keep(chunk: slice, found: RadiusNeighbors) -> None:
            found = found.sorted() if sort_results else found
            for i, number in enumerate(range(chunk.start, chunk.stop)):
                piece = slice(found.ends[i], found.ends[i + 1])
                distances[number], rows[number] = found.distances[piece], found.rows[piece]

        self._map_chunks_within(queries, radius, keep)
        return (distances, rows) if return_distance else rows

    def _check_radius_queries(self, X: Any, radius: float | None = None) -> tuple[Queries, float]:
        check_is_fitted(self)
        radius = self.radius if radius is None else radius
        check_number("radius", radius, at_least=0)
        return self._store.check_queries(self, X), float(radius)

    def _map_chunks_within(
        self,
        queries: Queries,
        radius: float,
        answer: Callable[[slice, RadiusNeighbors], Answer],
        most: int = CHUNK_QUERIES,
    ) -> list[Answer]:
        """Return what ``answer`` makes of the rows within the radius of each chunk of the queries."""
        with self._query_budget() as budget:
            return self._store.map_chunks_within(queries, radius, answer, most, budget)

    def radius_neighbors_graph(
        self,
        X: Any = None,
        radius: float | None = None,
        mode: str = "connectivity",
        sort_results: bool = False,
    ) -> Any:
        """Return a sparse matrix that joins each row with the training rows within a radius.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_queries, n_features), default=None
            As in :meth:`kneighbors`.
        radius : float, default=None
            As in :meth:`radius_neighbors`.
        mode : {"connectivity", "distance"}, default="connectivity"
            Whether entries are 1 or distances.
        sort_results : bool, default=False
            Whether the entries of a row are ordered by distance.

        Returns
        -------
        csr_matrix of shape (n_queries, n_samples_fit_)
        """
        check_option("mode", mode, ("connectivity", "distance"))
        distances, rows = self.radius_neighbors(X, radius, sort_results=sort_results)
        ends = np.cumsum([0, *(part.size for part in rows)])
        columns = np.concatenate([np.empty(0, dtype=np.int64), *rows])
        values = np.concatenate([np.empty(0), *distances]) if mode == "distance" else np.ones(columns.size)
        return sp.csr_matrix((values, columns, ends), shape=(rows.size, self.n_samples_fit_))

    def transfer(self, X: Any, payload: Any, n_neighbors: int = 1) -> Any:
        """Return what belongs to the nearest training rows: captions, masks, records, anything.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_queries, n_features)
            The rows to find neighbours of.
        payload : array, table, list or tuple
            One entry for each training row, in their order.
        n_neighbors : int, default=1
            Of how many neighbours; more than 1 adds an axis (a list of lists for a list).

        Returns
        -------
        array, table or list
            The payload of the nearest row of each query.
        """
        rows = self.kneighbors(X, n_neighbors, return_distance=False)
        return pick_payload(payload, rows, self.n_samples_fit_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            kind = distance_kind(self.metric)
        except InputError:  # which a fit will say
            return tags
        tags.input_tags.sparse = kind.takes_sparse
        tags.input_tags.allow_nan = kind.takes_missing
        tags.input_tags.pairwise = kind is Precomputed
        tags.input_tags.positive_only = kind is Precomputed
        return tags


class RadiusModel(NeighborsModel):
    """A model whose neighbours are the rows within its radius: what its certificate speaks of."""

    def _claims(self) -> tuple[int, float]:
        return self._store.usable, min(float(self.radius), sys.float_info.max)

    def _answers_to_check(
        self, store: StoredRows, queries: Queries, budget: Budget
    ) -> Iterator[tuple[Array, Array]]:
        found = store.within(queries, slice(None), float(self.radius), budget).sorted()
        parts = (np.split(part, found.ends[1:-1]) for part in (found.distances, found.rows))
        return zip(*parts, strict=True)

    def _relative_to(self) -> str:
        return "the average distance of the rows within the radius"


def _effective_metric(metric: Any, parameters: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the metric by its plainest name, as scikit-learn does."""
    if metric not in ("minkowski", "p") or callable(metric) or parameters.get("w") is not None:
        return metric, parameters
    rest = {name: value for name, value in parameters.items() if name != "p"}
    plain = {1: "manhattan", 2: "euclidean", np.inf: "chebyshev"}.get(parameters["p"])
    return (metric, parameters) if plain is None else (plain, rest)


def _joined(old: Array | None, new: Array | None, usual: Array, usual_new: Array) -> Array | None:
    """Return what is known of the rows before and of these; None is what is usual."""
    if old is None and new is None:
        return None
    return np.concatenate([usual if old is None else old, usual_new if new is None else new])


def pick_payload(payload: Any, rows: NDArray[Any], count: int, name: str = "payload") -> Any:
    """Return the payload of the rows (queries x neighbours): arrays and tables as such, others as lists.

    ``name`` is what the parameter is called that has it.

    >>> pick_payload(["cat", "dog", "fish"], np.array([[2], [0]]), 3)
    ['fish', 'cat']
    >>> pick_payload(np.eye(3), np.array([[2, 0]]), 3)
    array([[[0., 0., 1.],
            [1., 0., 0.]]])
    """
    try:
        length = len(payload)
    except TypeError as error:
        kind = type(payload).__name__
        raise InputError(f"{name} is of type {kind}. Pass a sequence, one entry a training row.") from error
    if length != count:
        raise InputError(f"{name} has {length} entries for {count} training rows. Pass one for each.")
    first = rows[:, 0] if rows.shape[1] == 1 else None
    if isinstance(payload, np.ndarray):
        return payload[rows if first is None else first]
    if hasattr(payload, "columns") or hasattr(payload, "to_numpy"):
        return _from_table(payload, rows if first is None else first)
    if first is not None:
        return [payload[row] for row in first.tolist()]
    return [[payload[row] for row in some] for some in rows.tolist()]


def _from_table(payload: Any, rows: NDArray[Any]) -> Any:
    """Return rows of a table or column; a list of them where there are several neighbours."""
    import narwhals.stable.v1 as nw

    table: Any = nw.from_native(payload, eager_only=True, allow_series=True)
    if rows.ndim == 1:
        return table[rows.tolist()].to_native()
    return [table[some].to_native() for some in rows.tolist()]
