"""What nearest-neighbour learners share: they keep the rows, and ask which of them are nearest.

    fit      check the rows, learn what the distance needs (a covariance, ranges), make a search ready
    query    the k nearest training rows of each row, exactly (:mod:`sixfold.learners.neighbors.queries`)
    answer   what they say together (:mod:`sixfold.solvers.neighbors.votes`)

Rows of weight 0 are no neighbours. ``kneighbors()`` without rows asks for the training rows themselves, each
of which is not its own neighbour, so leaving one out costs one query.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sixfold.certificate import Certificate
from sixfold.data.checks import check_weight, require_y
from sixfold.data.mixed_table import ColumnKinds
from sixfold.errors import InputError, check_number, check_option
from sixfold.geometry.distances import Precomputed, distance_kind
from sixfold.learners.neighbors.queries import NeighbourQueries
from sixfold.learners.neighbors.stored_rows import StoredRows, check_neighbour_rows
from sixfold.solvers.neighbors.choose import ALGORITHMS
from sixfold.solvers.neighbors.search import Neighbours
from sixfold.solvers.neighbors.votes import neighbour_weights
from sixfold.verify.recomputed import Recomputed

Array = NDArray[Any]


class NeighbourModel(NeighbourQueries, BaseEstimator, ABC):
    """A learner that answers from the nearest training rows."""

    n_neighbors: int
    weights: Any
    algorithm: str
    leaf_size: int
    p: float
    metric: Any
    metric_params: dict[str, Any] | None
    n_jobs: int | None
    time_limit: float | None

    _given_weight: Array | None

    # -- keeping rows --------------------------------------------------------------------------------------

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
        NeighbourModel
            The model itself.
        """
        return self._learn(X, y, sample_weight, reset=True)

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
        NeighbourModel
            The model itself.
        """
        if distance_kind(self.metric) is Precomputed:
            raise InputError(
                "partial_fit adds rows, whose distances from the others metric='precomputed' does not know. "
                "Fit on the distances of all rows."
            )
        return self._learn(X, y, sample_weight, reset="_store" not in self.__dict__)

    def _learn(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> Self:
        self._check_parameters()
        require_y(self, y)
        metric, known = (self.metric, None) if reset else (self._store.metric, self._store.kinds)
        rows, kinds = check_neighbour_rows(self, X, metric, reset, known, adding=not reset)
        targets = self._check_targets(y, rows, reset)
        given = check_weight(sample_weight, rows.shape[0])
        if not reset:
            given = _joined(self._given_weight, self.n_samples_fit_, given, rows.shape[0])
        self._store_rows(rows, self._weighted(targets, given), kinds, reset)
        self._given_weight = given
        self._keep_targets(targets)
        return self

    @abstractmethod
    def _check_targets(self, y: Any, rows: Any, reset: bool) -> Any:
        """Return the targets of all rows: of those that are there unless ``reset``, and of these."""

    def _weighted(self, targets: Any, weight: Array | None) -> Array | None:
        """Return how much each row counts."""
        return weight

    @abstractmethod
    def _keep_targets(self, targets: Any) -> None:
        """Set what is learnt from the targets."""

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

    def _store_rows(self, X: Any, weight: Array | None, kinds: ColumnKinds | None, reset: bool) -> None:
        """Keep checked rows, after those that are there unless ``reset``; the weights are those of all."""
        if reset:
            metric, parameters = self._metric()
            store = StoredRows(metric, parameters, self.algorithm, self.leaf_size)
            store.add(X, weight, kinds)
            with self._budget() as budget:
                store.ready(budget)
            self._store = store
            self.effective_metric_, self.effective_metric_params_ = _effective(metric, parameters)
        else:
            self._store = self._store.copy()  # a copy of the model keeps the rows it has
            self._store.add(X, weight, kinds)
        self.n_samples_fit_ = self._store.count

    @property
    def algorithm_(self) -> str:
        """What finds the neighbours."""
        check_is_fitted(self, "n_samples_fit_")
        return self._store.ready().name

    # -- certificate ---------------------------------------------------------------------------------------

    @property
    def certificate_(self) -> Certificate:
        """That the search is exact, and how many distances it has computed so far."""
        if "_store" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no certificate_ before it is fitted.")
        return self._store.certificate().bind(self)

    def _recompute(self, claimed: Certificate, X: Any, y: Any, sample_weight: Any) -> Recomputed:
        """Return the certificate of a search that computes every distance, in NumPy."""
        check_is_fitted(self, "n_samples_fit_")
        rows = self._check_queries(X)
        with self._budget() as budget:
            found = self._store.recomputed(rows, int(self.n_neighbors), sample_weight, budget)
        self._require_same_targets(y)
        return found

    def _verify(self, claimed: Certificate, X: Any, y: Any, sample_weight: Any) -> Certificate:
        return self._recompute(claimed, X, y, sample_weight).compare(claimed)

    @abstractmethod
    def _require_same_targets(self, y: Any) -> None:
        """Raise a CertificateError unless these are the targets that the model has kept."""

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

    def _weights_of(self, found: Neighbours, start: int = 0) -> Array:
        """Return how much each neighbour counts; ``start`` is the number of the first query."""
        weight = self._store.weight
        return neighbour_weights(
            self.weights, found.distances, None if weight is None else weight[found.rows], start
        )

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


def _effective(metric: Any, parameters: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the metric by its plainest name, as scikit-learn does."""
    if metric not in ("minkowski", "p") or callable(metric) or parameters.get("w") is not None:
        return metric, parameters
    rest = {name: value for name, value in parameters.items() if name != "p"}
    plain = {1: "manhattan", 2: "euclidean", np.inf: "chebyshev"}.get(parameters["p"])
    return (metric, parameters) if plain is None else (plain, rest)


def _joined(old: Array | None, n_old: int, new: Array | None, n_new: int) -> Array | None:
    """Return weights followed by more; None is 1 for each row."""
    if old is None and new is None:
        return None
    return np.concatenate([np.ones(n_old) if old is None else old, np.ones(n_new) if new is None else new])
