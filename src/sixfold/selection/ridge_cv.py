"""Ridge regression that chooses its penalty: scikit-learn's RidgeCV, on one factorisation.

    minimise  sum_i s_i (y_i - b - w.x_i)^2 + alpha |w|^2         with the best alpha of a list

``alpha`` is that of :class:`sixfold.Ridge`. Which is best is found by

*leaving out one row after the other* (cv=None): the error of each row under the fit to all others has a
closed form,

    e_i = (y_i - f(x_i)) / (1 - h_i),     score(alpha) = - (1 / n) sum_i s_i e_i^2

(:mod:`sixfold.solvers.least_squares.leave_one_out`), and with the mean of all h_i in place of each it is
generalised cross-validation (Golub, Heath and Wahba 1979), which ``gcv_values_`` states too;

*folds* (cv=5, or any splitter): all penalties from one factorisation a fold, which share the moments of the
rows (:mod:`sixfold.selection.plans.least_squares`).

The model that is kept is fitted by :class:`sixfold.Ridge`, with its certificate.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from inspect import signature
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.validation import check_is_fitted

from sixfold.certificate import Certificate
from sixfold.data.checks import TrainingData, check_rows, check_training
from sixfold.errors import InputError, check_flag, check_option
from sixfold.learners.linear.explained import ExplainedScores
from sixfold.learners.linear.ridge import Ridge
from sixfold.selection.folds import make_splits
from sixfold.selection.plans.least_squares import SharedRows, answered
from sixfold.selection.scoring import HeldOutScore
from sixfold.solvers.least_squares.leave_one_out import LeaveOneOut, leave_one_out

Array = NDArray[Any]

MODES = (None, "auto", "svd", "eigen")
KEPT_PREDICTIONS = 1 << 24  # that are kept at a time for a scorer


class RidgeCV(ExplainedScores, MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Fit a ridge regression whose penalty is chosen by cross-validation.

    Minimises ``sum_i weight_i (y_i - b - w.x_i)**2 + alpha * |w|**2`` for the best alpha of a list. A drop-in
    for scikit-learn's ``RidgeCV``, with the same ``alpha``. All penalties are evaluated with one
    factorisation (of each fold), and what is kept has a certificate.

    Parameters
    ----------
    alphas : array of shape (n_alphas,) or float, default=(0.1, 1.0, 10.0)
        The penalties to try, above 0; with ``cv`` also 0.
    fit_intercept : bool, default=True
        Whether to fit b. It is never penalised.
    scoring : str or callable, default=None
        A scorer of scikit-learn. None for the mean squared error where rows are left out one by one, and for
        R-squared otherwise.
    cv : int, splitter or iterable of (train, test), default=None
        How to split; None for leaving out one row after the other.
    gcv_mode : {None, "auto", "svd", "eigen"}, default=None
        Which factorisation leaving out uses: "svd" that of the table, "eigen" that of its products, None and
        "auto" the latter unless it would lose digits. A sparse table always has the latter.
    store_cv_results : bool, default=False
        Whether to keep ``cv_results_``; with cv=None only.
    alpha_per_target : bool, default=False
        Whether every target has a penalty of its own; with cv=None only.

    Attributes
    ----------
    alpha_ : float, or ndarray of shape (n_targets,)
        The best penalty, one for each target if that was asked for.
    best_score_ : float, or ndarray of shape (n_targets,)
        Its score.
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        The weights w.
    intercept_ : float or ndarray of shape (n_targets,)
        The intercept b.
    feature_means_ : ndarray of shape (n_features,)
        The means of the columns, with which :meth:`explain` compares.
    mean_rows_ : int
        How many rows they were taken from: 4,096 at most, unless the solver knows those of all.
    certificate_ : Certificate
        How far from the least possible objective the fit is at most; ``certificate_.verify(X, y)``
        recomputes it.
    cv_results_ : ndarray of shape (n_samples, n_alphas) or (n_samples, n_targets, n_alphas)
        Where asked for: weight times squared error of every row that is left out; with ``scoring``, what is
        predicted for it.
    gcv_values_ : ndarray of shape (n_alphas,) or (n_targets, n_alphas)
        The values of generalised cross-validation (cv=None): the smaller, the better.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of str
        The names of the columns, if they had any.

    Examples
    --------
    >>> import numpy as np
    >>> from sixfold import RidgeCV
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 1.0], [4.0, 0.0], [5.0, 1.0]])
    >>> y = np.array([0.1, 0.9, 2.2, 2.8, 4.1, 4.9])
    >>> model = RidgeCV(alphas=[0.01, 1.0, 100.0]).fit(X, y)
    >>> model.alpha_, model.coef_.round(3)
    (0.01, array([0.977, 0.   ]))
    >>> print(model.certificate_)
    least squares: optimal to machine precision
    """

    alpha_: Any
    best_score_: Any
    coef_: Array
    intercept_: Any
    gcv_values_: Array
    cv_results_: Array
    _model: Ridge  # of all rows
    _scores: Array  # of the penalties

    def __init__(
        self,
        alphas: Any = (0.1, 1.0, 10.0),
        *,
        fit_intercept: bool = True,
        scoring: Any = None,
        cv: Any = None,
        gcv_mode: str | None = None,
        store_cv_results: bool = False,
        alpha_per_target: bool = False,
    ) -> None:
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.scoring = scoring
        self.cv = cv
        self.gcv_mode = gcv_mode
        self.store_cv_results = store_cv_results
        self.alpha_per_target = alpha_per_target

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Choose the penalty and fit the model.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            The columns to predict from.
        y : array of shape (n_samples,) or (n_samples, n_targets)
            The numbers to predict.
        sample_weight : array of shape (n_samples,), default=None
            How much each row counts, in fits and in the scores of scorers that take weights.
        **params : dict
            What scorer and splitter take, where metadata routing is enabled.

        Returns
        -------
        RidgeCV
            The fitted model itself.
        """
        _raise_for_params(params, self, "fit")
        alphas = self._checked_alphas()
        for name in ("fit_intercept", "store_cv_results", "alpha_per_target"):
            check_flag(name, getattr(self, name))
        check_option("gcv_mode", self.gcv_mode, MODES)
        if self.cv is not None:
            for name in ("store_cv_results", "alpha_per_target"):
                if getattr(self, name):
                    raise InputError(
                        f"cv!=None and {name}=True are incompatible: it needs every row to be left out once. "
                        f"Use cv=None, or {name}=False."
                    )
        data = check_training(self, X, y, sample_weight)
        data.require_finite()
        data.require_computable()
        for name in ("cv_results_", "gcv_values_"):
            self.__dict__.pop(name, None)
        if self.cv is None:
            self._leave_out(data, alphas, params)
        else:
            self._split(data, X, y, alphas, params)
        self._fit_best(data)
        return self

    def predict(self, X: Any) -> Array:
        """Return w.x + b for each row.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        check_is_fitted(self, "coef_")
        X = check_rows(self, X)
        return np.asarray(X @ self.coef_.T + self.intercept_)

    @property
    def certificate_(self) -> Certificate:
        """How far from the least possible objective the fit is at most; of all targets together."""
        check_is_fitted(self, "coef_")
        return self._model.certificate_

    # -- parameters ------------------------------------------------------------------------------------------

    def _checked_alphas(self) -> Array:
        """Return the penalties as numbers."""
        given = self.alphas
        one = isinstance(given, Real) or np.ndim(given) == 0
        values = [given] if one else list(given)
        if not values:
            raise InputError("alphas is empty. Pass one penalty at least, for instance alphas=[0.1, 1, 10].")
        for place, alpha in enumerate(values):
            name = "alphas" if len(values) == 1 else f"alphas[{place}]"
            if not isinstance(alpha, Real) or isinstance(alpha, bool):
                raise TypeError(
                    f"{name} must be an instance of float, not {type(alpha).__name__}: {alpha!r:.50}."
                )
            bound, value = ">" if self.cv is None else ">=", float(alpha)
            if not ((value > 0 if self.cv is None else value >= 0) and value < np.inf):
                zero = " (0 needs cv)" if value == 0 else ""
                raise InputError(
                    f"{name} == {alpha}, must be {bound} 0.0 and finite{zero}. Pass penalties, such as 0.1."
                )
        return np.array([float(alpha) for alpha in values])

    def _scorer(self) -> Any:
        """Return the scorer that the parameters ask for."""
        if _routing_enabled() and self.scoring is None:
            return check_scoring(
                self, scoring="neg_mean_squared_error" if self.cv is None else "r2"
            ).set_score_request(sample_weight=True)
        return check_scoring(self, scoring=self.scoring, allow_none=True)

    def get_metadata_routing(self) -> MetadataRouter:
        """Return which parameters of ``fit`` go to the scorer and to the splitter.

        Returns
        -------
        MetadataRouter
        """
        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(scorer=self._scorer(), method_mapping=MethodMapping().add(caller="fit", callee="score"))
        return router.add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))

    def _routed(self, params: dict[str, Any], sample_weight: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what the scorer and the splitter take."""
        if _routing_enabled():
            weight = {} if sample_weight is None else {"sample_weight": sample_weight}
            routed = process_routing(self, "fit", **params, **weight)
            return routed.scorer.score, routed.splitter.split
        weighs = sample_weight is not None and _takes_weights(self._scorer())
        return ({"sample_weight": sample_weight} if weighs else {}), {}

    # -- one row after the other -----------------------------------------------------------------------------

    def _leave_out(self, data: TrainingData, alphas: Array, params: dict[str, Any]) -> None:
        """Set the best penalty by leaving out each row in turn."""
        n, n_targets = data.y.shape
        counted = n if data.weight is None else int(np.count_nonzero(data.weight))
        if counted < 2:
            raise InputError(
                "Found array with 1 sample that counts, while a minimum of 2 is required by RidgeCV: leaving "
                "it out leaves nothing to learn from. Pass more rows."
            )
        weight = np.ones(n) if data.weight is None else data.weight
        total = float(weight.sum())
        how = None if self.gcv_mode == "auto" else self.gcv_mode
        least = float(alphas.min()) / total
        rows = leave_one_out(data.X, data.y, data.weight, least, bool(self.fit_intercept), how)
        keep = np.empty((n, n_targets, alphas.size)) if self.store_cv_results else None
        if self.scoring is None:
            scores = self._squared_errors(rows, alphas / total, weight, keep)
        else:
            of_scorer, _ = self._routed(params, data.weight)
            scores = self._scored(rows, alphas / total, data, of_scorer, weight, keep)
        if not self.alpha_per_target:
            scores = scores.mean(axis=0, keepdims=True) if self.scoring is None else scores[:1]
        scores = self._scores = np.where(np.isnan(scores), -np.inf, scores)
        best = scores.argmax(axis=1)
        if self.alpha_per_target and n_targets > 1:
            self.alpha_, self.best_score_ = alphas[best], scores[np.arange(n_targets), best]
        else:
            self.alpha_, self.best_score_ = float(alphas[best[0]]), float(scores[0, best[0]])
        if keep is not None:
            keep = keep[:, 0] if data.single_target else keep
            self.cv_results_ = keep.astype(data.X.dtype, copy=False)
        if data.single_target:
            self.gcv_values_ = self.gcv_values_[0]

    def _squared_errors(self, rows: LeaveOneOut, l2: Array, weight: Array, keep: Array | None) -> Array:
        """Return minus the mean squared error of each target and penalty."""
        sums = _Sums(rows.n_targets, l2.size)
        for some, errors, kept in rows.errors(l2):
            squares = np.square(errors) * weight[some, None, None]
            if keep is not None:
                keep[some] = squares
            sums.add(squares, kept)
        self.gcv_values_ = sums.gcv(rows.n_rows)
        return np.asarray(-sums.squares / rows.n_rows)

    def _scored(
        self, rows: LeaveOneOut, l2: Array, data: TrainingData, parameters: dict[str, Any], weight: Array,
        keep: Array | None,
    ) -> Array:  # fmt: skip
        """Return what the scorer makes of the predictions of each target and penalty."""
        Y = np.asarray(data.y, dtype=np.float64)
        scorer = self._scorer()
        found, gcv = [], []
        step = max(KEPT_PREDICTIONS // Y.size, 1)
        for first in range(0, l2.size, step):
            penalties = l2[first : first + step]
            predicted, sums = np.empty((penalties.size, *Y.shape)), _Sums(rows.n_targets, penalties.size)
            for some, errors, kept in rows.errors(penalties):
                predicted[:, some] = (Y[some, :, None] - errors).transpose(2, 0, 1)
                sums.add(np.square(errors) * weight[some, None, None], kept)
            if keep is not None:
                keep[:, :, first : first + step] = predicted.transpose(1, 2, 0)
            gcv.append(sums.gcv(rows.n_rows))
            for one in predicted:
                if self.alpha_per_target:
                    pairs = list(zip(one.T, Y.T, strict=True))
                else:
                    pairs = [(one[:, 0], Y[:, 0]) if data.single_target else (one, Y)]
                found.append([scorer(_Predicted(), answers, y, **parameters) for answers, y in pairs])
        self.gcv_values_ = np.concatenate(gcv, axis=1)
        return np.asarray(found, dtype=np.float64).T

    # -- folds -----------------------------------------------------------------------------------------------

    def _split(self, data: TrainingData, X: Any, y: Any, alphas: Array, params: dict[str, Any]) -> None:
        """Set the best penalty by folds."""
        X, y = indexable(X, y)
        of_scorer, of_splitter = self._routed(params, data.weight)
        splits = make_splits(check_cv(self.cv), X, y, of_splitter)
        shared, scorer = SharedRows(data, splits), self._scorer()
        scores = np.empty((len(splits), alphas.size))
        for number, (train, test) in enumerate(splits):
            X_test, y_test = _safe_indexing(X, test), _safe_indexing(y, test)
            given = {name: _safe_indexing(value, test) for name, value in of_scorer.items()}
            score = HeldOutScore(scorer, Ridge(), X_test, y_test, given, "raise")
            for place, model in self._models(shared, number, train, test, alphas, X_test):
                scores[number, place] = score(model)
        mean = scores.mean(axis=0)
        self._scores = np.where(np.isnan(mean), -np.inf, mean)
        best = int(np.argmax(self._scores))
        self.alpha_, self.best_score_ = float(alphas[best]), float(mean[best])

    def _models(
        self, shared: SharedRows, number: int, train: Array, test: Array, alphas: Array, X_test: Any
    ) -> Sequence[tuple[int, Any]]:
        """Return a model of each penalty on one fold."""
        data = shared.data
        weight = None if data.weight is None else data.weight[train]
        total = float(train.size if weight is None else weight.sum())
        single = data.single_target

        def fit(alpha: float) -> Ridge:
            model = self._ridge(float(alpha))
            return model.fit(data.X[train], data.y[train, 0] if single else data.y[train], weight)

        positive = np.flatnonzero(alphas > 0)
        factored = shared.fold(number, train, test, bool(self.fit_intercept)) if positive.size else None
        models: list[tuple[int, Any]] = []
        if factored is not None:
            found = factored.models(alphas[positive] / total)
            answers = zip(positive, factored.predict(found), factored.accurate(found), strict=True)
            models = [
                (int(place), answered(partial(fit, alphas[place]), X_test, answer))
                for place, answer, good in answers
                if good
            ]
        have = {place for place, _ in models}
        return models + [(place, fit(alphas[place])) for place in range(alphas.size) if place not in have]

    # -- the model that is kept ------------------------------------------------------------------------------

    def _ridge(self, alpha: Any) -> Ridge:
        return Ridge(alpha, fit_intercept=bool(self.fit_intercept))

    def _at_strength(self, alpha: float, rows: int) -> Ridge:
        """Return the learner with a penalty, for a drawing of the path."""
        return self._ridge(alpha)

    def plot(self, X: Any = None, y: Any = None, **options: Any) -> Any:
        """Draw the coefficients, over the penalty with X and y; without, the errors, if they were kept.

        Parameters
        ----------
        X, y : table and targets, default=None
            Those of the fit.
        **options
            As in the method of other learners: ``kind``, ``ax``, ``dark``, and those of the figure.

        Returns
        -------
        matplotlib Axes
        """
        from sixfold.explain.plots.choose import plot_model

        check_is_fitted(self)
        return plot_model(self, X, y, **options)

    def _fit_best(self, data: TrainingData) -> None:
        """Fit the model of the best penalty, or of the best one of each target."""
        y = data.y[:, 0] if data.single_target else data.y
        self._model = model = self._ridge(self.alpha_).fit(data.X, y, data.weight)
        self.coef_, self.intercept_ = model.coef_, model.intercept_
        self.feature_means_, self.mean_rows_ = model.feature_means_, model.mean_rows_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class _Sums:
    """Sums over the rows, of each target and penalty."""

    def __init__(self, n_targets: int, n_penalties: int) -> None:
        self.squares = np.zeros((n_targets, n_penalties))  # of rows that are left out
        self.residuals = np.zeros((n_targets, n_penalties))  # squares of those that are not
        self.kept = np.zeros(n_penalties)

    def add(self, squares: Array, kept: Array) -> None:
        """Add some rows: weighted squares, and 1 - h."""
        self.squares += squares.sum(axis=0)
        self.residuals += np.einsum("ntm,nm,nm->tm", squares, kept, kept)
        self.kept += kept.sum(axis=0)

    def gcv(self, n_rows: int) -> Array:
        """Return the values of generalised cross-validation."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.residuals / n_rows / np.square(self.kept / n_rows))


class _Predicted(RegressorMixin, BaseEstimator):
    """What scorers take for a model where predictions are in the place of the table."""

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Array) -> Array:
        """Return what was predicted."""
        return X


def _takes_weights(scorer: Any) -> bool:
    """Return whether a scorer knows what to do with weights."""
    if hasattr(scorer, "_accept_sample_weight"):
        return bool(scorer._accept_sample_weight())
    return "sample_weight" in signature(scorer).parameters
