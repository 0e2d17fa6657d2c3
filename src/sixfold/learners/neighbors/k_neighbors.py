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

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from sixfold.errors import InputError
from sixfold.geometry.distances import Cosine, distance_kind
from sixfold.learners.neighbors.model import CHUNK_QUERIES
from sixfold.learners.neighbors.predictors import NeighborsClassifier, NeighborsRegressor
from sixfold.solvers.neighbors.search import Neighbors
from sixfold.solvers.neighbors.votes import Decision

Array = NDArray[Any]


class KNeighborsClassifier(NeighborsClassifier):
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
    metric : str, Learned or callable, default="minkowski"
        A distance of :mod:`sixfold.geometry.distances`, "precomputed", ``distances.Learned(transformer)``,
        which is learnt from the labels, or a function of two rows.
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
            algorithm=algorithm,
            leaf_size=leaf_size,
            p=p,
            metric=metric,
            metric_params=metric_params,
            n_jobs=n_jobs,
            time_limit=time_limit,
        )
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.class_weight = class_weight

    def _map_votes(self, X: Any, decide: Decision) -> list[Array]:
        """Return, for each column of labels, what ``decide`` makes of votes, labels and distances."""

        def vote(chunk: slice, found: Neighbors) -> list[Array]:
            return self._votes(found, range(chunk.start, chunk.stop), decide)

        parts = self._map_chunks(self._check_queries(X), vote, min(CHUNK_QUERIES, self._most_queries))
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
        chosen = self._map_votes(X, self._winners)
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
        shares = self._map_votes(X, self._shares)
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


class KNeighborsRegressor(NeighborsRegressor):
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
    >>> from sixfold import KNeighborsRegressor
    >>> model = KNeighborsRegressor(n_neighbors=2).fit([[0.0], [1.0], [2.0], [9.0]], [0.0, 1.0, 2.0, 9.0])
    >>> model.predict([[0.4], [7.0]])
    array([0.5, 5.5])
    """

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
        super().__init__(
            algorithm=algorithm,
            leaf_size=leaf_size,
            p=p,
            metric=metric,
            metric_params=metric_params,
            n_jobs=n_jobs,
            time_limit=time_limit,
        )
        self.n_neighbors = n_neighbors
        self.weights = weights

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
            return self._averages(found, range(chunk.start, chunk.stop))

        queries = self._check_queries(X)
        result = np.concatenate(self._map_chunks(queries, average, CHUNK_QUERIES // self._targets.shape[1]))
        return result[:, 0] if self._single else result
