"""Nearest neighbours under scikit-learn's names.

Ours finds the neighbours; scikit-learn's rules make an answer of them:

    neighbours     exact, whatever ``algorithm`` says, and equal distances by row number
    class          most votes, ties to the first class; the shares of the votes as they are
    number, graph  by scikit-learn's own methods, which ask for the neighbours (but for the numbers of a
                   radius, which it averages query by query)

Left to scikit-learn are distances that we do not have, weights by a function (which sees all distances at
once there), sparse graphs of distances (which are read, not searched), trees in place of rows, and p < 1.
What a query reads of the parameters may be set after the fit, as there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.neighbors as sk
from sklearn.neighbors import VALID_METRICS, VALID_METRICS_SPARSE, BallTree, KDTree
from sklearn.neighbors._base import NeighborsBase

import sixfold
from sixfold.errors import SixfoldWarning, silenced
from sixfold.patch.drop_in import DropIn, require
from sixfold.solvers.neighbors.votes import first_winners, plain_shares

TREES = {"kd_tree": KDTree, "ball_tree": BallTree}
PLAIN_NAMES = {1: "manhattan", 2: "euclidean", np.inf: "chebyshev"}  # of minkowski, by its exponent
ARGUMENTS = {"radius_neighbors": ("X", "radius", "return_distance", "sort_results")}  # in their order
NEEDED = {"seuclidean": {"V"}, "mahalanobis": {"V", "VI"}}  # of which scikit-learn needs one


class NeighborsDropIn(DropIn):
    """A drop-in whose neighbours our search finds.

    The rows that scikit-learn's methods read are ours; the tree they may ask for is made when they do.

    Attributes
    ----------
    _query_parameters : tuple of str
        Those that ours has too, and that may be set after the fit.
    """

    _answers: tuple[str, ...] = ("kneighbors",)
    _extras = (*DropIn._extras, "algorithm_", "loo_predict", "transfer")
    _query_parameters: tuple[str, ...]

    def _shared_parameters(self) -> dict[str, Any]:
        names = ("algorithm", "leaf_size", "p", "metric", "metric_params", *self._query_parameters)
        return {name: getattr(self, name) for name in names}

    def _learn(self, X: Any, y: Any = None) -> Any:  # type: ignore[override]  # rows have no weights there
        require(not isinstance(X, KDTree | BallTree | NeighborsBase), "X is a search that is ready")
        require(not _is_text(X), "rows are text")
        require("p" not in (self.metric_params or {}), "p is among the parameters of the metric")
        self._check_algorithm_metric()
        model = self._learner().fit(X, y)
        self._require_same_search(model)
        return model

    def _require_same_search(self, model: Any) -> None:
        """Leave to scikit-learn what it refuses, or does with a warning."""
        given, metric = self.metric_params or {}, self.metric
        if metric == "minkowski":
            require(self.p >= 1, "p < 1 is no distance")
        if metric in NEEDED and not callable(metric):
            require(not NEEDED[metric].isdisjoint(given), f"{metric} has no {' or '.join(NEEDED[metric])}")
        if sp.issparse(model._store.rows):
            require(metric != "precomputed", "a sparse graph of distances is read, not searched")
            require(self.algorithm in ("auto", "brute"), f"{self.algorithm} takes no sparse rows")
            plain, _ = self._plainest_metric()
            require(plain in VALID_METRICS_SPARSE["brute"], f"{plain} takes no sparse rows")
        if self.algorithm == "kd_tree":
            require(given.get("w") is None, "kd_tree has no weights of columns")

    def _set_fitted(self, model: Any) -> None:
        self._fit_X, self.n_samples_fit_ = model._store.rows, model.n_samples_fit_
        self.effective_metric_, self.effective_metric_params_ = self._plainest_metric()
        self._fit_method = self._their_search()

    def _plainest_metric(self) -> tuple[Any, dict[str, Any]]:
        """Return the metric by the name that scikit-learn gives it, and its parameters."""
        metric, parameters = self.metric, dict(self.metric_params or {})
        if metric != "minkowski":
            return metric, parameters
        weight = parameters.pop("w", None)
        if weight is None and self.p in PLAIN_NAMES:
            return PLAIN_NAMES[self.p], parameters
        return metric, parameters | {"p": self.p, "w": weight}

    def _their_search(self) -> str:
        """Return which search scikit-learn would have made."""
        (rows, columns), metric, k = self._fit_X.shape, self.effective_metric_, self.n_neighbors
        if sp.issparse(self._fit_X):
            return "brute"
        if self.algorithm != "auto":
            return self.algorithm
        if metric == "precomputed" or columns > 15 or (k is not None and k >= rows // 2):
            return "brute"
        if metric in VALID_METRICS["kd_tree"] and self.effective_metric_params_.get("w") is None:
            return "kd_tree"
        return "ball_tree" if callable(metric) or metric in VALID_METRICS["ball_tree"] else "brute"

    def _forget(self) -> None:
        super()._forget()
        self.__dict__.pop("_tree", None)

    def __getattr__(self, name: str) -> Any:
        if name == "_tree" and self._ours is not None:
            tree = TREES.get(self._fit_method)
            metric, parameters = self.effective_metric_, self.effective_metric_params_
            self._tree = tree and tree(self._fit_X, self.leaf_size, metric=metric, **parameters)
            return self._tree
        self._tell_parameters()
        return super().__getattr__(name)

    def _tell_parameters(self) -> None:
        """Tell our learner the parameters of queries, which may have been set since."""
        if self._ours is not None:
            for name in self._query_parameters:
                setattr(self._ours, name, getattr(self, name))

    def _answer(self, name: str, *args: Any, **kwargs: Any) -> Any:
        given = dict(zip(ARGUMENTS.get(name, ("X",)), args, strict=False)) | kwargs
        require(not _is_text(given.get("X")), "rows are text")
        if sp.issparse(given.get("X")):
            require(self._fit_method == "brute", f"{self._fit_method} takes no sparse rows")
            require(self.metric != "precomputed", "a sparse graph of distances is read, not searched")
        if given.get("sort_results"):
            require(given.get("return_distance", True), "what is sorted by distance has distances")
        if name in ("predict", "predict_proba"):
            require(not callable(self.weights), "weights by a function see all distances at once")
            require(self._asks_ours(), "the search is the user's own")
        self._tell_parameters()
        found = super()._answer(name, *args, **kwargs)
        if self.metric == "nan_euclidean" and name == "kneighbors" and isinstance(found, tuple):
            require(np.isfinite(found[0]).all(), "rows that share no column have the distance NaN")
        return found

    def _asks_ours(self) -> bool:
        """Return whether the search is as here, and no method of a user's subclass."""
        own = next(one for one in type(self).__mro__ if one.__module__ == __name__)
        return all(getattr(type(self), name) is getattr(own, name) for name in own._answers)  # type: ignore[attr-defined]


def _is_text(X: Any) -> bool:
    """Return whether rows are text, in which scikit-learn reads no numbers."""
    rows = np.asarray(X) if isinstance(X, list | tuple) else X
    return getattr(getattr(rows, "dtype", None), "kind", "") in ("U", "S")


class NeighborsClassifier(NeighborsDropIn):
    """A drop-in whose neighbours vote."""

    classes_: Any
    outputs_2d_: bool

    def _settled(self, model: Any) -> Any:
        """Return our classifier with scikit-learn's rule for ties."""
        model._winners, model._shares = first_winners, plain_shares
        return model

    def _set_fitted(self, model: Any) -> None:
        super()._set_fitted(model)
        self.classes_, self.outputs_2d_ = model.classes_, model.outputs_2d_
        self._y = model._labels.index if self.outputs_2d_ else model._labels.index[:, 0]


class NeighborsRegressor(NeighborsDropIn):
    """A drop-in whose neighbours' targets are averaged."""

    def _learn(self, X: Any, y: Any = None) -> Any:  # type: ignore[override]
        model, targets = super()._learn(X, y), np.asarray(y)
        require(targets.dtype.kind in "biuf", f"targets are of type {targets.dtype}")
        self._y = targets
        return model


class KNeighborsClassifier(NeighborsClassifier, sk.KNeighborsClassifier):
    """scikit-learn's KNeighborsClassifier, whose neighbours ours finds."""

    _answers = ("kneighbors", "predict", "predict_proba")
    _query_parameters = ("n_neighbors", "weights", "n_jobs")

    def _learner(self) -> Any:
        return self._settled(sixfold.KNeighborsClassifier(**self._shared_parameters()))


class KNeighborsRegressor(NeighborsRegressor, sk.KNeighborsRegressor):
    """scikit-learn's KNeighborsRegressor, whose neighbours ours finds; its own method averages them."""

    _query_parameters = ("n_neighbors", "weights", "n_jobs")

    def _learner(self) -> Any:
        return sixfold.KNeighborsRegressor(**self._shared_parameters())


class RadiusNeighborsClassifier(NeighborsClassifier, sk.RadiusNeighborsClassifier):
    """scikit-learn's RadiusNeighborsClassifier, whose neighbours ours finds.

    Queries of which one has no neighbours are left to scikit-learn's own methods.
    """

    _answers = ("radius_neighbors", "predict", "predict_proba")
    _query_parameters = ("radius", "weights", "n_jobs")

    def _learner(self) -> Any:
        parameters = self._shared_parameters()
        return self._settled(
            sixfold.RadiusNeighborsClassifier(outlier_label=self.outlier_label, **parameters)
        )

    def _learn(self, X: Any, y: Any = None) -> Any:  # type: ignore[override]
        model = super()._learn(X, y)
        classes = model.classes_ if model.outputs_2d_ else [model.classes_]
        for some, label in zip(classes, model.outlier_label_ or (), strict=False):
            require(np.append(some, label).dtype == some.dtype, "the outlier label is of another type")
        return model

    def _set_fitted(self, model: Any) -> None:
        super()._set_fitted(model)
        self.outlier_label_, model.outlier_label_ = model.outlier_label_, None


class RadiusNeighborsRegressor(NeighborsRegressor, sk.RadiusNeighborsRegressor):
    """scikit-learn's RadiusNeighborsRegressor, whose neighbours ours finds.

    Queries of which one has no neighbours are left to scikit-learn's own methods.
    """

    _answers = ("radius_neighbors", "predict")
    _query_parameters = ("radius", "weights", "n_jobs")

    def _learner(self) -> Any:
        return sixfold.RadiusNeighborsRegressor(**self._shared_parameters())

    def _answer(self, name: str, *args: Any, **kwargs: Any) -> Any:
        if name != "predict":
            return super()._answer(name, *args, **kwargs)
        require(
            self._y.dtype.kind != "f" or self._y.dtype == np.float64, "targets are averaged in their type"
        )
        with silenced(SixfoldWarning):
            found = super()._answer(name, *args, **kwargs)
        require(not np.isnan(found).any(), "a row has no neighbours")
        return found


class NearestNeighbors(NeighborsDropIn, sk.NearestNeighbors):
    """scikit-learn's NearestNeighbors, which ours finds."""

    _answers = ("kneighbors", "radius_neighbors")
    _query_parameters = ("n_neighbors", "radius", "n_jobs")

    def _learner(self) -> Any:
        return sixfold.NearestNeighbors(**self._shared_parameters())


class NeighborsTransformer(NeighborsDropIn):
    """A drop-in that makes a graph of the neighbours, by scikit-learn's own method."""

    def _learner(self) -> Any:
        return sixfold.NearestNeighbors(**self._shared_parameters())

    def _set_fitted(self, model: Any) -> None:
        super()._set_fitted(model)
        self._n_features_out = self.n_samples_fit_


class KNeighborsTransformer(NeighborsTransformer, sk.KNeighborsTransformer):
    """scikit-learn's KNeighborsTransformer, whose neighbours ours finds."""

    _query_parameters = ("n_neighbors", "n_jobs")


class RadiusNeighborsTransformer(NeighborsTransformer, sk.RadiusNeighborsTransformer):
    """scikit-learn's RadiusNeighborsTransformer, whose neighbours ours finds."""

    _answers = ("radius_neighbors",)
    _query_parameters = ("radius", "n_jobs")
