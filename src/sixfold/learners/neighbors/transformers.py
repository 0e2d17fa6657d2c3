"""Neighbours as a table for what comes after: a sparse matrix with a column for each training row.

    T[i, j] = distance(x_i, row j)  or  1     where row j is a neighbour of x_i, no entry elsewhere

It is what ``metric="precomputed"`` reads, so that one search serves many models (and scikit-learn's, such as
t-SNE and spectral clustering).
"""

from __future__ import annotations

from typing import Any

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sixfold.errors import check_option
from sixfold.learners.neighbors.model import RadiusModel
from sixfold.learners.neighbors.nearest_neighbors import NeighborsSearch

MODES = ("distance", "connectivity")


class NeighborsTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, NeighborsSearch):
    """What both transformers share: entries that are distances or 1, and a column for each training row."""

    mode: str

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_option("mode", self.mode, MODES)

    @property
    def _n_features_out(self) -> int:
        return self.n_samples_fit_

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Keep the rows, and return the matrix of their own neighbours, among which each has itself.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            As in :meth:`fit`.
        y : object, default=None
            Ignored.

        Returns
        -------
        csr_matrix of shape (n_samples, n_samples)
        """
        return self.fit(X).transform(X)


class KNeighborsTransformer(NeighborsTransformer):
    """Turn rows into a sparse matrix of their nearest training rows.

    Same parameters as scikit-learn's class. The search is exact whatever the algorithm, and equal distances
    are ordered by row number.

    Parameters
    ----------
    mode : {"distance", "connectivity"}, default="distance"
        Whether entries are distances or 1. With distances each row has one neighbour more than
        ``n_neighbors``, as a training row is the nearest to itself.
    n_neighbors : int, default=5
        How many neighbours each row has.
    algorithm : {"auto", "ball_tree", "kd_tree", "brute"}, default="auto"
        How neighbours are found; the answers are the same. "ball_tree" means "auto"; "brute"
        makes neither trees nor projections.
    leaf_size : int, default=30
        Rows in a leaf of a tree.
    metric : str, Learned or callable, default="minkowski"
        A distance of :mod:`sixfold.geometry.distances`, "precomputed", ``distances.Learned(transformer)``,
        which is learnt from the labels, or a function of two rows.
        "nan_euclidean" and "gower" take missing values, "gower" takes columns of text as well.
    p : float, default=2
        The exponent of metric="minkowski": 1 is Manhattan, 2 Euclidean.
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
        That the search is exact, and how many distances it has computed so far; ``verify(X)`` checks it.

    Examples
    --------
    >>> from sixfold import KNeighborsTransformer
    >>> KNeighborsTransformer(n_neighbors=1).fit([[0.0], [1.0], [3.0]]).transform([[0.25]]).toarray()
    array([[0.25, 0.75, 0.  ]])
    """

    def __init__(
        self,
        *,
        mode: str = "distance",
        n_neighbors: int = 5,
        algorithm: str = "auto",
        leaf_size: int = 30,
        metric: Any = "minkowski",
        p: float = 2,
        metric_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        time_limit: float | None = None,
    ) -> None:
        super().__init__(
            algorithm=algorithm,
            leaf_size=leaf_size,
            metric=metric,
            p=p,
            metric_params=metric_params,
            n_jobs=n_jobs,
            time_limit=time_limit,
        )
        self.mode = mode
        self.n_neighbors = n_neighbors

    def transform(self, X: Any) -> Any:
        """Return the matrix of the nearest training rows of each row.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_queries, n_features)
            The rows to find neighbours of.

        Returns
        -------
        csr_matrix of shape (n_queries, n_samples_fit_)
        """
        check_is_fitted(self)
        return self.kneighbors_graph(X, int(self.n_neighbors) + (self.mode == "distance"), self.mode)


class RadiusNeighborsTransformer(RadiusModel, NeighborsTransformer):
    """Turn rows into a sparse matrix of the training rows within a radius.

    Same parameters as scikit-learn's class. The search is exact whatever the algorithm, and rows at exactly
    the radius count.

    Parameters
    ----------
    mode : {"distance", "connectivity"}, default="distance"
        Whether entries are distances or 1.
    radius : float, default=1.0
        How far neighbours are at most.
    algorithm : {"auto", "ball_tree", "kd_tree", "brute"}, default="auto"
        How neighbours are found; the answers are the same. "ball_tree" means "auto"; "brute"
        makes neither trees nor projections.
    leaf_size : int, default=30
        Rows in a leaf of a tree.
    metric : str, Learned or callable, default="minkowski"
        A distance of :mod:`sixfold.geometry.distances`, "precomputed", ``distances.Learned(transformer)``,
        which is learnt from the labels, or a function of two rows.
        "nan_euclidean" and "gower" take missing values, "gower" takes columns of text as well.
    p : float, default=2
        The exponent of metric="minkowski": 1 is Manhattan, 2 Euclidean.
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
        That the search is exact, and how many distances it has computed so far; ``verify(X)`` checks it.

    Examples
    --------
    >>> from sixfold import RadiusNeighborsTransformer
    >>> RadiusNeighborsTransformer(radius=0.5).fit([[0.0], [1.0], [3.0]]).transform([[0.25]]).toarray()
    array([[0.25, 0.  , 0.  ]])
    """

    def __init__(
        self,
        *,
        mode: str = "distance",
        radius: float = 1.0,
        algorithm: str = "auto",
        leaf_size: int = 30,
        metric: Any = "minkowski",
        p: float = 2,
        metric_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        time_limit: float | None = None,
    ) -> None:
        super().__init__(
            algorithm=algorithm,
            leaf_size=leaf_size,
            metric=metric,
            p=p,
            metric_params=metric_params,
            n_jobs=n_jobs,
            time_limit=time_limit,
        )
        self.mode = mode
        self.radius = radius

    def transform(self, X: Any) -> Any:
        """Return the matrix of the training rows within the radius of each row, the nearest first.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_queries, n_features)
            The rows to find neighbours of.

        Returns
        -------
        csr_matrix of shape (n_queries, n_samples_fit_)
        """
        check_is_fitted(self)
        return self.radius_neighbors_graph(X, mode=self.mode, sort_results=True)
