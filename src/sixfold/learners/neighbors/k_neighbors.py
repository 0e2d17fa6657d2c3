"""k nearest neighbours: the answer is the majority, or the average, of the k nearest training rows.

    R_k(x) = the k training rows with the smallest distance to x, equal distances by row number
    class     the one with most votes in R_k(x)         number     the mean of y in R_k(x)

    fit       check the rows, store them, make a search ready (:mod:`sixfold.learners.neighbors.stored_rows`)
    predict   check the queries; of each chunk the nearest rows, their votes (or average), the labels

``predict(None)`` asks for the training rows themselves, none of which is its own neighbour, so leaving
one out costs one query.

*A loss for it* (Li and Yang, 2003). With rows of length 1, cosine similarity and labels 0 and 1, the vector

    w_x = sum over R_k(x) of y' x'

minimises -sum y' x'.w + |w|^2 / 2, and w_x.x is the similarity-weighted vote for class 1: near x, the model
is a linear one (:meth:`KNeighborsClassifier.local_coefficients`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from sixfold.budget import Budget
from sixfold.certificate import Certificate
from sixfold.data.checks import (
    check_target,
    check_weight,
    column_names,
    require_finite,
    require_order,
    require_y,
    row_index,
)
from sixfold.data.labels import LabelColumns, check_label_columns, class_weighted
from sixfold.data.mixed_table import ColumnKinds
from sixfold.data.one_row import one_row
from sixfold.errors import CertificateError, InputError, TimeLimitReached, check_number, check_option
from sixfold.explain.neighbors import NeighborsExplanation, explain_average, explain_vote
from sixfold.geometry.distances import Cosine, Precomputed, distance_kind
from sixfold.learners.base import Learner, describe
from sixfold.learners.neighbors.stored_rows import Queries, StoredRows, check_neighbor_rows
from sixfold.solvers.neighbors.choose import ALGORITHMS
from sixfold.solvers.neighbors.search import Neighbors
from sixfold.solvers.neighbors.votes import averages, count_votes, neighbor_weights, vote_shares, winners
from sixfold.solvers.threads import thread_limit
from sixfold.verify.neighbors import recompute
from sixfold.verify.recomputed import Recomputed

Array = NDArray[Any]
Answer = TypeVar("Answer")

CHUNK_QUERIES = 8192  # at a time: votes and copies of them stay small, whatever their number
RADIUS_CHUNK_QUERIES = 1024
CHUNK_VOTES = 1 << 22  # how many sums of votes are held at a time
OTHER_TARGETS = "The targets are not those of the fit."


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
    """A learner that answers from the nearest training rows."""

    _store: StoredRows
    _given_weight: Array | None
    _row_index: Array | None

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        weights: Any = "uniform",
        algorithm: str = "auto",
        leaf_size: int = 30,
        p: float = 2,
        metric: Any = "minkowski",
        metric_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.algorithm = algorithm
        self.leaf_size = leaf_size
        self.p = p
        self.metric = metric
        self.metric_params = metric_params
        self.n_jobs = n_jobs
        self.time_limit = time_limit

    # -- fit --------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Keep the rows and make the search ready.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            The columns to compare; for metric="precomputed" the distances of all rows from each other.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            The labels or numbers to predict.
        sample_weight : array of shape (n_samples,), default=None
            How much each row counts as a neighbour; rows of weight 0 are no neighbours.

        Returns
        -------
        NeighborsModel
            The model itself.
        """
        return self._run_fit(X, y, sample_weight)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Keep more rows, also of new classes; the search is made anew when it is next asked.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            As in :meth:`fit`.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            As in :meth:`fit`.
        sample_weight : array of shape (n_samples,), default=None
            As in :meth:`fit`.

        Returns
        -------
        NeighborsModel
            The model itself.
        """
        return self._add(X, y, sample_weight, self._check)

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
            data = check(X, y, sample_weight, reset=False)
            self._store = self._store.copy()  # a copy of the model keeps the rows it has
            self._store.add(data.rows, data.weight, data.kinds)
            self._set_training(data)
            self._subject = describe(self, X, y, sample_weight, self._subject)
        return self

    def _check_parameters(self) -> None:
        check_number("n_neighbors", self.n_neighbors, at_least=1, whole=True)
        check_number("leaf_size", self.leaf_size, at_least=1, whole=True)
        check_number("time_limit", self.time_limit, above=0, optional=True)
        check_option("algorithm", self.algorithm, ALGORITHMS)
        if not callable(self.weights):
            check_option("weights", self.weights, ("uniform", "distance", None))
        if self.metric_params is not None and not isinstance(self.metric_params, dict):
            raise InputError(f"metric_params={self.metric_params!r} is no dictionary of parameters.")

    def _metric(self) -> tuple[Any, dict[str, Any]]:
        """Return the metric and its parameters; p is that of "minkowski"."""
        given = dict(self.metric_params or {})
        if self.metric in ("minkowski", "p") and not callable(self.metric):
            given.setdefault("p", self.p)
        return self.metric, given

    def _check(self, X: Any, y: Any, sample_weight: Any, reset: bool = True) -> CheckedRows:
        require_y(self, y)
        require_order(self, X, y)
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

    @abstractmethod
    def _check_targets(self, y: Any, rows: Any, reset: bool) -> Any:
        """Return the targets of all rows: of those that are there unless ``reset``, and of these."""

    def _weighted(self, targets: Any, weight: Array | None) -> Array | None:
        """Return how much each row counts."""
        return weight

    def _state_problem(self, data: CheckedRows) -> StoredRows:
        store = StoredRows(*self._metric(), self.algorithm, self.leaf_size)
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
        self.effective_metric_, self.effective_metric_params_ = _effective_metric(*self._metric())
        self._set_training(data)

    def _warn(self, solution: StoredRows, data: CheckedRows, budget: Budget) -> None:
        if budget.interrupted:  # after the search was ready
            raise KeyboardInterrupt

    def _set_training(self, data: CheckedRows) -> None:
        self.n_samples_fit_ = self._store.count
        self._given_weight, self._row_index = data.given_weight, data.index
        self._set_targets(data.targets)

    @abstractmethod
    def _set_targets(self, targets: Any) -> None:
        """Set what is learnt from the targets."""

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

        def nearest(probes: Array, k: int) -> tuple[Array, Array]:
            with self._query_budget() as budget:
                found = store.nearest(Queries(store.rows[probes], k, probes), slice(None), budget)
            return found.distances, found.rows

        weights, k = (given, store.weight), int(self.n_neighbors)
        found = recompute(rows, store.rows, weights, k, nearest, store.metric, store.distance_parameters)
        self._require_same_targets(y)
        return found

    @abstractmethod
    def _require_same_targets(self, y: Any) -> None:
        """Raise a CertificateError unless these are the targets that the model has kept."""

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

    def _weights_of(self, found: Neighbors, start: int = 0) -> Array:
        """Return how much each neighbour counts; ``start`` is the number of the first query."""
        weight = self._store.weight
        return neighbor_weights(
            self.weights, found.distances, None if weight is None else weight[found.rows], start
        )

    @abstractmethod
    def predict(self, X: Any) -> Array:
        """Return what the neighbours of each row say together; None for the training rows."""

    def loo_predict(self) -> Array:
        """Return what is predicted for each training row from the others: leave-one-out for one query.

        Returns
        -------
        ndarray of shape (n_samples_fit_,) or (n_samples_fit_, n_outputs)
        """
        return self.predict(None)

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
        radius: float = 1.0,
        return_distance: bool = True,
        sort_results: bool = False,
    ) -> Any:
        """Return all training rows within a radius of each row.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_queries, n_features), default=None
            As in :meth:`kneighbors`.
        radius : float, default=1.0
            Rows at exactly this distance count.
        return_distance : bool, default=True
            Whether to return distances too.
        sort_results : bool, default=False
            Whether the nearest come first; by row number otherwise.

        Returns
        -------
        distances : ndarray of shape (n_queries,) of arrays
            Only with ``return_distance``.
        rows : ndarray of shape (n_queries,) of arrays
        """
        check_is_fitted(self)
        check_number("radius", radius, at_least=0)
        queries = self._store.check_queries(self, X)
        count = queries.rows.shape[0]
        distances, rows = np.empty(count, dtype=object), np.empty(count, dtype=object)
        with self._query_budget() as budget:
            for chunk in self._store.chunks(queries, RADIUS_CHUNK_QUERIES):
                found = self._store.within(queries, chunk, float(radius), budget)
                for i, number in enumerate(range(chunk.start, chunk.stop)):
                    piece = slice(found.ends[i], found.ends[i + 1])
                    d, r = found.distances[piece], found.rows[piece]
                    if X is None:
                        d, r = d[r != number], r[r != number]
                    order = np.argsort(d, kind="stable") if sort_results else slice(None)
                    distances[number], rows[number] = d[order], r[order]
        return (distances, rows) if return_distance else rows

    def radius_neighbors_graph(
        self, X: Any = None, radius: float = 1.0, mode: str = "connectivity", sort_results: bool = False
    ) -> Any:
        """Return a sparse matrix that joins each row with the training rows within a radius.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_queries, n_features), default=None
            As in :meth:`kneighbors`.
        radius : float, default=1.0
            Rows at exactly this distance count.
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
        tags.target_tags.multi_output = True
        return tags


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


def pick_payload(payload: Any, rows: NDArray[Any], count: int) -> Any:
    """Return the payload of the rows (queries x neighbours): arrays and tables as such, others as lists.

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
        raise InputError(f"payload is of type {kind}. Pass a sequence, one entry a training row.") from error
    if length != count:
        raise InputError(f"payload has {length} entries for {count} training rows. Pass one for each.")
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


class KNeighborsClassifier(ClassifierMixin, NeighborsModel):
    """Give each row the label that most of its nearest training rows have.

    Same parameters as scikit-learn's class. The search is exact whatever the algorithm, equal distances are
    ordered by row number, and a tied vote goes to the class with the smaller total distance, then to the
    first class.

    Parameters
    ----------
    n_neighbors : int, default=5
        How many neighbours vote.
    weights : {"uniform", "distance"} or callable, default="uniform"
        What a vote counts: 1, one over the distance, or what a function makes of an array of distances.
    algorithm : {"auto", "ball_tree", "kd_tree", "brute"}, default="auto"
        How neighbours are found; the answers are the same. "ball_tree" means "auto"; "brute"
        makes neither trees nor projections.
    leaf_size : int, default=30
        Rows in a leaf of a tree.
    p : float, default=2
        The exponent of metric="minkowski": 1 is Manhattan, 2 Euclidean.
    metric : str or callable, default="minkowski"
        A distance of :mod:`sixfold.geometry.distances`, "precomputed", or a function of two rows.
        "nan_euclidean" and "gower" take missing values, "gower" takes columns of text as well.
    metric_params : dict, default=None
        What the distance needs: ``{"w": ...}``, ``{"VI": ...}``, ``{"categorical": [...]}``.
    n_jobs : int, default=None
        Threads for the native loops; None or -1 for all.
    class_weight : dict, "balanced" or None, default=None
        How much the votes of each class count.
    time_limit : float, default=None
        Most seconds that a fit or a query may take; beyond, :class:`TimeLimitReached` is raised.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,), or a list of them for several columns of labels
    n_samples_fit_ : int
        How many training rows are kept.
    effective_metric_, effective_metric_params_
        The distance by its plainest name, and its parameters.
    outputs_2d_ : bool
        Whether y had several columns.
    algorithm_ : str
        What finds the neighbours.
    certificate_ : Certificate
        That the search is exact, and how many distances it has computed so far.

    Examples
    --------
    >>> from sixfold import KNeighborsClassifier
    >>> model = KNeighborsClassifier(n_neighbors=3).fit([[0.0], [1.0], [2.0], [9.0]], ["a", "a", "b", "b"])
    >>> model.predict([[0.4], [7.0]])
    array(['a', 'b'], dtype='<U1')
    >>> model.kneighbors([[0.4]])
    (array([[0.4, 0.6, 1.6]]), array([[0, 1, 2]]))
    """

    _labels: LabelColumns

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        weights: Any = "uniform",
        algorithm: str = "auto",
        leaf_size: int = 30,
        p: float = 2,
        metric: Any = "minkowski",
        metric_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        class_weight: Any = None,
        time_limit: float | None = None,
    ) -> None:
        super().__init__(
            n_neighbors,
            weights=weights,
            algorithm=algorithm,
            leaf_size=leaf_size,
            p=p,
            metric=metric,
            metric_params=metric_params,
            n_jobs=n_jobs,
            time_limit=time_limit,
        )
        self.class_weight = class_weight

    def partial_fit(  # type: ignore[override]  # classes are where scikit-learn has them
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Keep more rows, also of new classes; the search is made anew when it is next asked.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            As in :meth:`fit`.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            As in :meth:`fit`.
        classes : array of shape (n_classes,), default=None
            Classes that may have no rows yet; those of y need not be among them.
        sample_weight : array of shape (n_samples,), default=None
            As in :meth:`fit`.

        Returns
        -------
        KNeighborsClassifier
            The model itself.
        """

        def check(X: Any, y: Any, sample_weight: Any, reset: bool = True) -> CheckedRows:
            data = self._check(X, y, sample_weight, reset)
            return data if classes is None else replace(data, targets=data.targets.with_classes(classes))

        return self._add(X, y, sample_weight, check)

    def _check_targets(self, y: Any, rows: Any, reset: bool) -> LabelColumns:
        labels = check_label_columns(self, y, rows)
        return labels if reset else self._labels.joined(labels)

    def _weighted(self, targets: LabelColumns, weight: Array | None) -> Array | None:
        return class_weighted(self.class_weight, targets, weight)

    def _set_targets(self, targets: LabelColumns) -> None:
        self._labels = targets
        self.classes_ = targets.classes[0] if targets.single else targets.classes
        self.outputs_2d_ = not targets.single

    def _map_votes(self, X: Any, decide: Callable[[Array, Array, Array], Array]) -> list[Array]:
        """Return, for each column of labels, what ``decide`` makes of votes, labels and distances."""

        def vote(chunk: slice, found: Neighbors) -> list[Array]:
            weights = self._weights_of(found, chunk.start)
            answers = []
            for classes, index in zip(self._labels.classes, self._labels.index.T, strict=True):
                labels = index[found.rows]
                answers.append(decide(count_votes(labels, weights, len(classes)), labels, found.distances))
            return answers

        queries = self._check_queries(X)
        most = min(CHUNK_QUERIES, CHUNK_VOTES // max(map(len, self._labels.classes)))
        parts = self._map_chunks(queries, vote, most)
        return [np.concatenate(column) for column in zip(*parts, strict=True)]

    def predict(self, X: Any) -> Array:
        """Return the label that most neighbours of each row have.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_queries, n_features), or None
            None predicts the training rows, each from the others.

        Returns
        -------
        ndarray of shape (n_queries,) or (n_queries, n_outputs)
        """
        chosen = self._map_votes(X, winners)
        answers = [classes[index] for classes, index in zip(self._labels.classes, chosen, strict=True)]
        return answers[0] if self._labels.single else np.column_stack(answers)

    def predict_proba(self, X: Any) -> Any:
        """Return the share of the votes of each class.

        Where a vote is tied, the share of the class that :meth:`predict` returns is one rounding unit larger,
        so that the largest share is always its own.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_queries, n_features), or None
            As in :meth:`predict`.

        Returns
        -------
        ndarray of shape (n_queries, n_classes), or a list of them for several columns of labels
        """
        shares = self._map_votes(X, vote_shares)
        return shares[0] if self._labels.single else shares

    def local_coefficients(self, X: Any) -> Any:
        """Return the linear model that the neighbours of each row stand for (cosine distance, two classes).

        w_x is the sum of the neighbours of the second class, as rows of length 1: w_x.x / |x| is their
        similarity-weighted vote.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_queries, n_features)
            The rows.

        Returns
        -------
        ndarray or CSR array of shape (n_queries, n_features)
        """
        check_is_fitted(self)
        if distance_kind(self._store.metric) is not Cosine:
            raise InputError(
                f"local_coefficients speak of cosine similarity, and metric={self.metric!r}. Fit with "
                "metric='cosine'."
            )
        if not self._labels.single or len(self._labels.classes[0]) != 2:
            raise InputError("local_coefficients speak of two classes: fit on one column with two labels.")
        rows = self.kneighbors(X, return_distance=False)
        positive = (self._labels.index[:, 0][rows] == 1).astype(np.float64)
        ends = np.arange(rows.shape[0] + 1) * rows.shape[1]
        chosen = sp.csr_array((positive.ravel(), rows.ravel(), ends), (rows.shape[0], self.n_samples_fit_))
        return chosen @ self._store.ready().distance.embed(self._store.rows)[:, :-2]

    def explain(self, x: Any) -> NeighborsExplanation:
        """Return why one row gets its label: its neighbours, their votes, and what would change it.

        Parameters
        ----------
        x : array of shape (n_features,), or a table with one row

        Returns
        -------
        NeighborsExplanation
        """
        check_is_fitted(self)
        if not self._labels.single:
            raise InputError("explain speaks of one column of labels: fit on one.")
        k = int(self.n_neighbors)
        row = one_row(x, column_names(self, self.n_features_in_))
        queries = self._check_queries(row, max(min(3 * k, self._store.usable), k))
        [found] = self._map_chunks(queries, lambda chunk, found: found)
        labels = self._labels.index[:, 0][found.rows[0]]
        return explain_vote(found, labels, self._weights_of, self._labels.classes[0], k, self._row_index)

    def _require_same_targets(self, y: Any) -> None:
        given = check_label_columns(self, y, self._store.rows, self._labels.classes)
        if not np.array_equal(given.index, self._labels.index):
            raise CertificateError(OTHER_TARGETS)


class KNeighborsRegressor(RegressorMixin, NeighborsModel):
    """Give each row the average of the targets of its nearest training rows.

    Same parameters as scikit-learn's class. The search is exact whatever the algorithm, and equal distances
    are ordered by row number.

    Parameters
    ----------
    n_neighbors : int, default=5
        How many neighbours are averaged.
    weights : {"uniform", "distance"} or callable, default="uniform"
        What a neighbour counts: 1, one over the distance, or what a function makes of an array of distances.
    algorithm : {"auto", "ball_tree", "kd_tree", "brute"}, default="auto"
        How neighbours are found; the answers are the same. "ball_tree" means "auto"; "brute"
        makes neither trees nor projections.
    leaf_size : int, default=30
        Rows in a leaf of a tree.
    p : float, default=2
        The exponent of metric="minkowski": 1 is Manhattan, 2 Euclidean.
    metric : str or callable, default="minkowski"
        A distance of :mod:`sixfold.geometry.distances`, "precomputed", or a function of two rows.
        "nan_euclidean" and "gower" take missing values, "gower" takes columns of text as well.
    metric_params : dict, default=None
        What the distance needs: ``{"w": ...}``, ``{"VI": ...}``, ``{"categorical": [...]}``.
    n_jobs : int, default=None
        Threads for the native loops; None or -1 for all.
    time_limit : float, default=None
        Most seconds that a fit or a query may take; beyond, :class:`TimeLimitReached` is raised.

    Attributes
    ----------
    n_samples_fit_ : int
        How many training rows are kept.
    effective_metric_, effective_metric_params_
        The distance by its plainest name, and its parameters.
    algorithm_ : str
        What finds the neighbours.
    certificate_ : Certificate
        That the search is exact, and how many distances it has computed so far.

    Examples
    --------
    >>> from sixfold import KNeighborsRegressor
    >>> model = KNeighborsRegressor(n_neighbors=2).fit([[0.0], [1.0], [2.0], [9.0]], [0.0, 1.0, 2.0, 9.0])
    >>> model.predict([[0.4], [7.0]])
    array([0.5, 5.5])
    """

    _targets: Array
    _single: bool

    def _check_targets(self, y: Any, rows: Any, reset: bool) -> tuple[Array, bool]:
        targets, single = check_target(y, rows, np.float64)
        require_finite(targets, "y")
        if reset:
            return targets, single
        if targets.shape[1] != self._targets.shape[1]:
            raise InputError(
                f"y has {targets.shape[1]} columns, but the rows before had {self._targets.shape[1]}."
            )
        return np.concatenate([self._targets, targets]), self._single

    def _set_targets(self, targets: tuple[Array, bool]) -> None:
        self._targets, self._single = targets

    def predict(self, X: Any) -> Array:
        """Return the average target of the neighbours of each row.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_queries, n_features), or None
            None predicts the training rows, each from the others.

        Returns
        -------
        ndarray of shape (n_queries,) or (n_queries, n_targets)
        """

        def average(chunk: slice, found: Neighbors) -> Array:
            return averages(self._targets[found.rows], self._weights_of(found, chunk.start))

        queries = self._check_queries(X)
        result = np.concatenate(self._map_chunks(queries, average, CHUNK_QUERIES // self._targets.shape[1]))
        return result[:, 0] if self._single else result

    def explain(self, x: Any) -> NeighborsExplanation:
        """Return why one row gets its number: its neighbours, and how much each of them matters.

        Parameters
        ----------
        x : array of shape (n_features,), or a table with one row

        Returns
        -------
        NeighborsExplanation
        """
        check_is_fitted(self)
        if not self._single:
            raise InputError("explain speaks of one target: fit on one column.")
        row = one_row(x, column_names(self, self.n_features_in_))
        [found] = self._map_chunks(self._check_queries(row), lambda chunk, found: found)
        targets = self._targets[found.rows[0], 0]
        return explain_average(found, targets, self._weights_of(found)[0], self._row_index)

    def _require_same_targets(self, y: Any) -> None:
        targets, _ = check_target(y, self._store.rows, np.float64)
        if not np.array_equal(targets, self._targets):
            raise CertificateError(OTHER_TARGETS)
