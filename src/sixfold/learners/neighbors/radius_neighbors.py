"""Neighbours within a radius: the answer is the majority, or the average, of all training rows that are near.

    R_r(x) = the training rows with distance(x', x) <= r
    class     the one with most votes in R_r(x)         number     the mean of y in R_r(x)

A row may have no neighbours at all. Queries that have equally many are answered together, as the k nearest
are, in a matrix of queries and neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from sixfold.data.labels import LabelColumns
from sixfold.errors import InputError, SixfoldWarning, warn
from sixfold.learners.neighbors.model import CHUNK_QUERIES, RadiusModel
from sixfold.learners.neighbors.predictors import (
    NeighborsClassifier,
    NeighborsPredictor,
    NeighborsRegressor,
)
from sixfold.learners.neighbors.stored_rows import Queries
from sixfold.solvers.neighbors.search import Neighbors, RadiusNeighbors
from sixfold.solvers.neighbors.votes import Decision

Array = NDArray[Any]

NAMED_ROWS = 10  # that have no neighbours, in a sentence about them


class RadiusPredictor(RadiusModel, NeighborsPredictor):
    """What the two learners share: who the neighbours of each row are."""

    def _map_groups(
        self, queries: Queries, answer: Callable[[Array, Neighbors], None], most: int = CHUNK_QUERIES
    ) -> None:
        """Call ``answer`` with numbers of queries that have equally many neighbours, and these."""

        def visit(chunk: slice, found: RadiusNeighbors) -> None:
            for some, near in found.by_count():
                answer(chunk.start + some, near)

        self._map_chunks_within(queries, float(self.radius), visit, min(most, CHUNK_QUERIES))

    def _count_neighbors(self, row: Any) -> int:
        count = int(self.radius_neighbors(row, return_distance=False)[0].size)
        if not count:
            raise InputError(
                f"No training row is within radius={self.radius:g} of this row, so no neighbours explain "
                "what is predicted for it. Use a larger radius."
            )
        return count


class RadiusNeighborsClassifier(RadiusPredictor, NeighborsClassifier):
    """Give each row the label that most training rows within a radius have.

    Same parameters as scikit-learn's class. The search is exact whatever the algorithm, rows at exactly the
    radius count, and a tied vote goes to the class with the smaller total distance, then to the first class.

    Parameters
    ----------
    radius : float, default=1.0
        How far the rows that vote are at most.
    weights : {"uniform", "distance"} or callable, default="uniform"
        What a vote counts: 1, one over the distance, or what a function makes of an array of distances, of
        queries that have equally many neighbours, these by row number.
    algorithm : {"auto", "ball_tree", "kd_tree", "brute"}, default="auto"
        How neighbours are found; the answers are the same. "ball_tree" means "auto"; "brute"
        makes neither trees nor projections.
    leaf_size : int, default=30
        Rows in a leaf of a tree.
    p : float, default=2
        The exponent of metric="minkowski": 1 is Manhattan, 2 Euclidean.
    metric : str, Learned or callable, default="minkowski"
        A distance of :mod:`sixfold.geometry.distances`, "precomputed", ``distances.Learned(transformer)``,
        which is learnt from the labels, or a function of two rows.
        "nan_euclidean" and "gower" take missing values, "gower" takes columns of text as well.
    outlier_label : label, "most_frequent", a list of labels or None, default=None
        What rows without neighbours get: a label (for several columns one for all, or a list of one each),
        that of most training rows, or an :class:`InputError`.
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
    outlier_label_ : list or None
        What rows without neighbours get, for each column of labels.
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
    >>> from sixfold import RadiusNeighborsClassifier
    >>> model = RadiusNeighborsClassifier(radius=1.0, outlier_label="none")
    >>> model.fit([[0.0], [1.0], [2.0], [9.0]], ["a", "a", "b", "b"]).predict([[0.4], [8.0], [5.0]])
    array(['a', 'b', 'none'], dtype='<U4')
    >>> model.radius_neighbors([[1.0]], return_distance=False)[0].tolist()
    [0, 1, 2]
    """

    def __init__(
        self,
        radius: float = 1.0,
        *,
        weights: Any = "uniform",
        algorithm: str = "auto",
        leaf_size: int = 30,
        p: float = 2,
        metric: Any = "minkowski",
        outlier_label: Any = None,
        metric_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        class_weight: Any = None,
        time_limit: float | None = None,
    ) -> None:
        super().__init__(
            algorithm=algorithm,
            leaf_size=leaf_size,
            p=p,
            metric=metric,
            metric_params=metric_params,
            n_jobs=n_jobs,
            time_limit=time_limit,
        )
        self.radius = radius
        self.weights = weights
        self.outlier_label = outlier_label
        self.class_weight = class_weight

    def _set_targets(self, targets: LabelColumns) -> None:
        super()._set_targets(targets)
        self.outlier_label_ = self._outlier_labels(targets)

    def _outlier_labels(self, targets: LabelColumns) -> list[Any] | None:
        """Return what rows without neighbours get, for each column of labels; None for an error."""
        given = self.outlier_label
        if given is None:
            return None
        columns = list(zip(targets.classes, targets.index.T, strict=True))
        if isinstance(given, str) and given == "most_frequent":
            return [classes[np.bincount(index, self._given_weight).argmax()] for classes, index in columns]
        several = isinstance(given, list | tuple | np.ndarray) and np.ndim(given) == 1
        labels = list(given) if several else [given] * len(columns)
        if len(labels) != len(columns):
            raise InputError(
                f"The length of outlier_label={given!r} is inconsistent with the output: y has "
                f"{len(columns)} columns of labels. Pass one label for each, or one for all."
            )
        for (classes, _), label in zip(columns, labels, strict=True):
            require_alike(label, classes)
        return labels

    def _map_votes(
        self, X: Any, decide: Decision, widths: list[tuple[int, ...]]
    ) -> tuple[list[Array], Array]:
        """Return what ``decide`` makes of the votes, for each column of labels, and who has no neighbours."""
        queries, _ = self._check_radius_queries(X)
        count = queries.rows.shape[0]
        answers, alone = [np.zeros((count, *width)) for width in widths], np.zeros(count, dtype=bool)

        def vote(numbers: Array, found: Neighbors) -> None:
            if found.rows.shape[1] == 0:
                self._require_outlier_label(numbers)
                alone[numbers] = True
                return
            for answer, part in zip(answers, self._votes(found, numbers, decide), strict=True):
                answer[numbers] = part

        self._map_groups(queries, vote, self._most_queries)
        return answers, alone

    def _require_outlier_label(self, numbers: Array) -> None:
        if self.outlier_label_ is None:
            rows = f"{numbers[:NAMED_ROWS].tolist()}{' and others' * (numbers.size > NAMED_ROWS)}"
            raise InputError(
                f"No neighbors found for test samples {rows}, counted from 0: no training row is within "
                f"radius={self.radius:g}. Use a larger radius, give outlier_label a label for such rows, or "
                "leave them out."
            )

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
        check_is_fitted(self)
        chosen, alone = self._map_votes(X, self._winners, [()] * len(self._labels.classes))
        answers = []
        for column, (classes, index) in enumerate(zip(self._labels.classes, chosen, strict=True)):
            labels, places = classes, index.astype(np.intp)
            if self.outlier_label_ is not None:
                labels = _with_label(classes, self.outlier_label_[column])
                places[alone] = len(classes)
            answers.append(labels[places])
        return answers[0] if self._labels.single else np.column_stack(answers)

    def predict_proba(self, X: Any) -> Any:
        """Return the share of the votes of each class.

        Where a vote is tied, the share of the class that :meth:`predict` returns is one rounding unit larger,
        so that the largest share is always its own. A row without neighbours has the share 1 of its
        ``outlier_label_``, and only shares of 0 where that is no class of the fit, with a warning.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_queries, n_features), or None
            As in :meth:`predict`.

        Returns
        -------
        ndarray of shape (n_queries, n_classes), or a list of them for several columns of labels
        """
        check_is_fitted(self)
        classes = self._labels.classes
        shares, alone = self._map_votes(X, self._shares, [(len(one),) for one in classes])
        if alone.any():
            for one, share, label in zip(classes, shares, self.outlier_label_ or (), strict=True):
                place = np.flatnonzero(one == label)
                share[np.ix_(alone, place)] = 1.0
                if not place.size:
                    warn(
                        f"Outlier label {label!r} is not in training classes. All class probabilities of "
                        "outliers will be assigned with 0: of the rows that have no neighbours.",
                        SixfoldWarning,
                    )
        return shares[0] if self._labels.single else shares


def _with_label(classes: Array, label: Any) -> Array:
    """Return the classes and a label more, of their type; text may be longer than theirs."""
    kind = None if classes.dtype.kind == "U" else classes.dtype
    return np.append(classes, np.array([label], dtype=kind))


def require_alike(label: Any, classes: Array) -> None:
    """Raise an :class:`InputError` unless the label is one, and of the type of the classes."""
    if np.ndim(label) > 0:
        raise InputError(
            f"The outlier_label of classes {classes} is supposed to be a scalar, got {label!r}. Pass one "
            "label."
        )
    kind, given = classes.dtype.kind, np.asarray(label).dtype.kind
    joined = np.append(classes, label).dtype.kind
    if kind != "O" and (joined != kind or (given == "U") != (kind == "U")):
        raise InputError(
            f"The dtype of outlier_label {label!r} is inconsistent with classes {classes} in y. Pass a label "
            "of their type."
        )


class RadiusNeighborsRegressor(RadiusPredictor, NeighborsRegressor):
    """Give each row the average of the targets of the training rows within a radius.

    Same parameters as scikit-learn's class. The search is exact whatever the algorithm, and rows at exactly
    the radius count. A row without neighbours gets NaN, with a warning.

    Parameters
    ----------
    radius : float, default=1.0
        How far the rows that are averaged are at most.
    weights : {"uniform", "distance"} or callable, default="uniform"
        What a neighbour counts: 1, one over the distance, or what a function makes of an array of distances,
        of queries that have equally many neighbours, these by row number.
    algorithm : {"auto", "ball_tree", "kd_tree", "brute"}, default="auto"
        How neighbours are found; the answers are the same. "ball_tree" means "auto"; "brute"
        makes neither trees nor projections.
    leaf_size : int, default=30
        Rows in a leaf of a tree.
    p : float, default=2
        The exponent of metric="minkowski": 1 is Manhattan, 2 Euclidean.
    metric : str, Learned or callable, default="minkowski"
        A distance of :mod:`sixfold.geometry.distances`, "precomputed", ``distances.Learned(transformer)``,
        which is learnt from the labels, or a function of two rows.
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
    >>> from sixfold import RadiusNeighborsRegressor
    >>> model = RadiusNeighborsRegressor(radius=1.5).fit([[0.0], [1.0], [2.0], [9.0]], [0.0, 1.0, 2.0, 9.0])
    >>> model.predict([[0.4], [8.0]])
    array([0.5, 9. ])
    """

    def __init__(
        self,
        radius: float = 1.0,
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
        super().__init__(
            algorithm=algorithm,
            leaf_size=leaf_size,
            p=p,
            metric=metric,
            metric_params=metric_params,
            n_jobs=n_jobs,
            time_limit=time_limit,
        )
        self.radius = radius
        self.weights = weights

    def predict(self, X: Any) -> Array:
        """Return the average target of the neighbours of each row; NaN where there are none.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_queries, n_features), or None
            None predicts the training rows, each from the others.

        Returns
        -------
        ndarray of shape (n_queries,) or (n_queries, n_targets)
        """
        queries, _ = self._check_radius_queries(X)
        columns = self._targets.shape[1]
        result, alone = np.full((queries.rows.shape[0], columns), np.nan), []

        def average(numbers: Array, found: Neighbors) -> None:
            if found.rows.shape[1]:
                result[numbers] = self._averages(found, numbers)
            else:
                alone.extend(numbers.tolist())

        self._map_groups(queries, average, CHUNK_QUERIES // columns)
        if alone:
            rows = f"{alone[:NAMED_ROWS]}{' and others' * (len(alone) > NAMED_ROWS)}"
            warn(
                "One or more samples have no neighbors within specified radius; predicting NaN. Rows "
                f"{rows}, counted from 0, are farther than radius={self.radius:g} from every training row.",
                SixfoldWarning,
            )
        return result[:, 0] if self._single else result
