"""What classifiers and regressors of neighbours share, however their neighbours are chosen.

    class     the one with most votes of the neighbours      number     the mean of their targets

Subclasses say which rows are the neighbours of a query; here are the targets, what each neighbour counts, and
why one row gets its answer.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from sixfold.data.checks import check_target, column_names, require_finite, require_order, require_y
from sixfold.data.labels import LabelColumns, check_label_columns, class_weighted
from sixfold.data.one_row import one_row
from sixfold.errors import CertificateError, InputError, check_option
from sixfold.explain.neighbors import NeighborsExplanation, explain_average, explain_vote
from sixfold.learners.neighbors.model import CheckedRows, NeighborsModel
from sixfold.solvers.neighbors.search import Neighbors
from sixfold.solvers.neighbors.votes import (
    Decision,
    averages,
    count_votes,
    neighbor_weights,
    vote_shares,
    winners,
)

Array = NDArray[Any]
Numbers = Sequence[int] | Array | None

CHUNK_VOTES = 1 << 22  # how many sums of votes are held at a time
OTHER_TARGETS = "The targets are not those of the fit."


class NeighborsPredictor(NeighborsModel):
    """A learner that answers from the training rows that are near."""

    weights: Any

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
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
        NeighborsPredictor
            The model itself.
        """
        return self._run_fit(X, y, sample_weight)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Keep more rows; the search is made anew when it is next asked.

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
        NeighborsPredictor
            The model itself.
        """
        return self._add(X, y, sample_weight, self._check)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not callable(self.weights):
            check_option("weights", self.weights, ("uniform", "distance", None))

    def _check(self, X: Any, y: Any, sample_weight: Any, reset: bool = True) -> CheckedRows:
        require_y(self, y)
        require_order(self, X, y)
        return super()._check(X, y, sample_weight, reset)

    def _weights_of(self, found: Neighbors, numbers: Numbers = None) -> Array:
        """Return how much each neighbour counts; ``numbers`` are those of the queries."""
        weight = self._store.weight
        row_weight = None if weight is None else weight[found.rows]
        return neighbor_weights(self.weights, found.distances, row_weight, numbers)

    def _count_neighbors(self, row: Any) -> int:
        """Return how many neighbours answer for one row."""
        return int(self.n_neighbors)

    def _neighbors_of(self, row: Any, k: int) -> Neighbors:
        [found] = self._map_chunks(self._check_queries(row, k), lambda chunk, found: found)
        return found

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class NeighborsClassifier(ClassifierMixin, NeighborsPredictor):
    """Neighbours that vote."""

    class_weight: Any
    _labels: LabelColumns
    # How votes are decided and shared: the drop-ins for scikit-learn's classes have its rule for ties here.
    _winners: Decision = staticmethod(winners)
    _shares: Decision = staticmethod(vote_shares)

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
        NeighborsClassifier
            The model itself.
        """

        def check(X: Any, y: Any, sample_weight: Any, reset: bool = True) -> CheckedRows:
            data = self._check(X, y, sample_weight, reset)
            return data if classes is None else replace(data, targets=data.targets.with_classes(classes))

        return self._add(X, y, sample_weight, check)

    def _check_targets(self, y: Any, rows: Any, reset: bool) -> LabelColumns:
        labels = check_label_columns(self, y, rows)
        return labels if reset else self._labels.joined(labels)

    def _labels_of(self, targets: LabelColumns) -> Array:
        columns = [classes[index] for classes, index in zip(targets.classes, targets.index.T, strict=True)]
        return columns[0] if targets.single else np.column_stack(columns)

    def _weighted(self, targets: LabelColumns, weight: Array | None) -> Array | None:
        return class_weighted(self.class_weight, targets, weight)

    def _set_targets(self, targets: LabelColumns) -> None:
        self._labels = targets
        self.classes_ = targets.classes[0] if targets.single else targets.classes
        self.outputs_2d_ = not targets.single

    def _votes(self, found: Neighbors, numbers: Numbers, decide: Decision) -> list[Array]:
        """Return, for each column of labels, what ``decide`` makes of votes, labels and distances."""
        weights = self._weights_of(found, numbers)
        answers = []
        for classes, index in zip(self._labels.classes, self._labels.index.T, strict=True):
            labels = index[found.rows]
            answers.append(decide(count_votes(labels, weights, len(classes)), labels, found.distances))
        return answers

    @property
    def _most_queries(self) -> int:
        """How many queries are answered at a time, as far as votes go."""
        return CHUNK_VOTES // max(map(len, self._labels.classes))

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
        row = one_row(x, column_names(self, self.n_features_in_))
        k = self._count_neighbors(row)
        found = self._neighbors_of(row, max(min(3 * k, self._store.usable), k))
        labels = self._labels.index[:, 0][found.rows[0]]
        classes = self._labels.classes[0]
        return explain_vote(found, labels, self._weights_of, classes, k, self._row_index, self._winners)

    def _require_same_targets(self, y: Any) -> None:
        given = check_label_columns(self, y, self._store.rows, self._labels.classes)
        if not np.array_equal(given.index, self._labels.index):
            raise CertificateError(OTHER_TARGETS)


class NeighborsRegressor(RegressorMixin, NeighborsPredictor):
    """Neighbours whose targets are averaged."""

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

    def _labels_of(self, targets: tuple[Array, bool]) -> Array:
        return targets[0][:, 0] if targets[1] else targets[0]

    def _set_targets(self, targets: tuple[Array, bool]) -> None:
        self._targets, self._single = targets

    def _averages(self, found: Neighbors, numbers: Numbers) -> Array:
        return averages(self._targets[found.rows], self._weights_of(found, numbers))

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
        found = self._neighbors_of(row, self._count_neighbors(row))
        targets = self._targets[found.rows[0], 0]
        return explain_average(found, targets, self._weights_of(found)[0], self._row_index)

    def _require_same_targets(self, y: Any) -> None:
        require_y(self, y)
        targets, _ = check_target(y, self._store.rows, np.float64)
        if not np.array_equal(targets, self._targets):
            raise CertificateError(OTHER_TARGETS)
