"""The search itself: which training rows are near, without anything to predict.

R_k(x) = the k training rows with the smallest distance to x, equal distances by row number
R_r(x) = the training rows with distance(x', x) <= r
"""

from __future__ import annotations

from typing import Any, Self

from sixfold.certificate import Certificate
from sixfold.learners.neighbors.model import NeighborsModel


class NeighborsSearch(NeighborsModel):
    """Rows that are kept without targets."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Keep the rows and make the search ready.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            The columns to compare; for metric="precomputed" the distances of all rows from each other.
        y : object, default=None
            Ignored; here so that pipelines can pass it.

        Returns
        -------
        NeighborsSearch
            The model itself.
        """
        return self._run_fit(X, None)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Keep more rows; the search is made anew when it is next asked.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            As in :meth:`fit`.
        y : object, default=None
            Ignored.

        Returns
        -------
        NeighborsSearch
            The model itself.
        """
        return self._add(X, None, None, self._check)

    def _verify(self, claimed: Certificate, X: Any, y: Any, sample_weight: Any) -> Certificate:
        return super()._verify(claimed, X, None, None)


class NearestNeighbors(NeighborsSearch):
    """Find the training rows that are nearest to each row, or within a radius.

    Same parameters as scikit-learn's class. The search is exact whatever the algorithm, equal distances are
    ordered by row number, and rows at exactly the radius count.

    Parameters
    ----------
    n_neighbors : int, default=5
        How many neighbours :meth:`kneighbors` finds where it is not told.
    radius : float, default=1.0
        How far the rows are at most that :meth:`radius_neighbors` finds where it is not told.
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
    >>> from sixfold import NearestNeighbors
    >>> search = NearestNeighbors(n_neighbors=2).fit([[0.0], [1.0], [2.0], [9.0]])
    >>> search.kneighbors([[0.25]])
    (array([[0.25, 0.75]]), array([[0, 1]]))
    >>> search.radius_neighbors([[1.0]], radius=1.0, return_distance=False)[0].tolist()
    [0, 1, 2]
    """

    def __init__(
        self,
        *,
        n_neighbors: int = 5,
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
            p=p,
            metric=metric,
            metric_params=metric_params,
            n_jobs=n_jobs,
            time_limit=time_limit,
        )
        self.n_neighbors = n_neighbors
        self.radius = radius
