"""Lasso and elastic net whose penalty is chosen by cross-validation.

    minimise    |X w + b - y|^2 / (2 n) + alpha (rho |w|_1 + (1 - rho) |w|^2 / 2)

for every alpha of a path on every fold, as :class:`~sixfold.selection.plans.l1_path.LassoPlan` walks it. What
is chosen is the alpha (and rho) with the least mean over the folds of the mean squared error of the held-out
rows; of equal ones the largest alpha. The model of all rows is then fitted with it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping

from sixfold.budget import Budget
from sixfold.data.checks import TrainingData, check_training
from sixfold.errors import InputError, check_flag, check_number, check_option
from sixfold.learners.linear.lasso import ElasticNet
from sixfold.learners.linear.model import LinearRegressor
from sixfold.selection.built_in_cv import adopt, on_threads, route, with_progress
from sixfold.selection.folds import make_splits
from sixfold.selection.plans.base import Answered, Fold, Table
from sixfold.selection.plans.l1_path import LassoPlan
from sixfold.solvers.l1.columns import make_columns

Array = NDArray[Any]

ALPHAS = 100
NO_PENALTY = float(np.finfo(np.float64).resolution)  # alphas where no column has a slope
COARSE_STEP = 8  # of the path that leads to the model of all rows


class _LassoPathCV(LinearRegressor):
    """What LassoCV and ElasticNetCV share."""

    penalty = "elasticnet"
    eps: float
    alphas: Any
    n_alphas: int | None
    cv: Any
    positive: bool
    precompute: Any
    selection: str

    @abstractmethod
    def _ratios(self) -> list[float]:
        """Return the mixtures to try."""

    def _loss_name(self) -> str:
        return "squared"

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Self:
        """Choose the penalty by cross-validation, and fit the model of all rows with it.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            The columns to predict from.
        y : array of shape (n_samples,)
            The numbers to predict.
        sample_weight : array of shape (n_samples,), default=None
            How much each row counts, in the fits and in the mean squared error of its fold.
        **params : dict
            Parameters of the splitter, such as ``groups``, where scikit-learn's metadata routing is enabled.

        Returns
        -------
        LassoCV or ElasticNetCV
            The fitted model itself.
        """
        splitting, _ = route(self, "fit", sample_weight, params)
        with self._unchanged_on_failure():
            self._check_own_parameters()
            data = self._check(X, y, sample_weight)
            data.require_computable()
            ratios = self._ratios()
            grids = self._grids(data, ratios)
            splits = make_splits(check_cv(self.cv), X, y, splitting)
            errors = self._errors(data, ratios, grids, splits)
            mean = errors.mean(axis=2)
            ratio, alpha = np.unravel_index(int(mean.argmin()), mean.shape)
            self.mse_path_ = np.squeeze(errors)
            self.alphas_ = grids[0] if len(ratios) == 1 or self._given else grids
            best = self._model_of_all(X, y, sample_weight, ratios[ratio], grids[ratio][: alpha + 1])
            adopt(self, best)
            self.alpha_ = float(grids[ratio][alpha])
            self._set_ratio(ratios[ratio])
        return self

    def _set_ratio(self, ratio: float) -> None:
        """Set what was chosen beside alpha."""

    def _check_own_parameters(self) -> None:
        check_number("eps", self.eps, above=0)
        check_number("tol", self.tol, at_least=0)
        check_number("max_iter", self.max_iter, at_least=1, whole=True)
        for name in ("fit_intercept", "positive", "copy_X"):
            check_flag(name, getattr(self, name))
        check_option("selection", self.selection, ("cyclic", "random"))
        if isinstance(self.alphas, str):
            raise InputError(f"alphas={self.alphas!r} is text. Pass how many alphas to try, or which.")
        if isinstance(self._count, Integral):
            check_number("alphas", self._count, at_least=1, whole=True)
            return
        for k, value in enumerate(np.ravel(np.asarray(self.alphas, dtype=object))):
            check_number(f"alphas[{k}]", value, at_least=0, finite=True)
        if np.ndim(self.alphas) != 1 or len(self.alphas) == 0:
            raise InputError(
                f"alphas has shape {np.shape(self.alphas)}. Pass how many alphas to try, or a list of them."
            )

    @property
    def _count(self) -> Any:
        """How many alphas to try where they are not given."""
        if self.alphas is None:
            return ALPHAS if self.n_alphas is None else self.n_alphas
        if isinstance(self.alphas, Integral) and self.n_alphas is not None:
            return self.n_alphas
        return self.alphas

    @property
    def _given(self) -> bool:
        return not isinstance(self._count, Integral)

    def _check(self, X: Any, y: Any, sample_weight: Any, reset: bool = True) -> TrainingData:
        return check_training(self, X, y, sample_weight, reset=reset, one_target=True)

    def _grids(self, data: TrainingData, ratios: Sequence[float]) -> Array:
        """Return the alphas of each mixture, from that at which the first weight leaves zero downwards."""
        if self._given:
            return np.tile(np.sort(np.asarray(self.alphas, dtype=np.float64))[::-1], (len(ratios), 1))
        if min(ratios) == 0.0:
            raise InputError(
                "Automatic alpha grid generation is not supported for l1_ratio=0. Please supply a grid by "
                "providing your estimator with the appropriate `alphas=` argument. (With no absolute values "
                "in the penalty no alpha makes all weights zero.) Or use RidgeCV."
            )
        columns = make_columns(data.X, data.weight, bool(self.fit_intercept))
        y = np.asarray(data.y[:, 0], dtype=np.float64)
        if self.fit_intercept:
            y = y - (y[0] + columns.q @ (y - y[0]))
        slope = columns.start(y[None], Budget())[0]
        top = max(float((slope if self.positive else np.abs(slope)).max(initial=0.0)), 0.0)
        return np.array(
            [
                np.geomspace(top / ratio, top / ratio * self.eps, self._count)
                if top / ratio > NO_PENALTY
                else np.full(self._count, NO_PENALTY)
                for ratio in ratios
            ]
        )

    # -- fits ---------------------------------------------------------------------------------------------

    def _plain_model(self, ratio: float) -> ElasticNet:
        """Return the learner of one mixture."""
        return ElasticNet(
            l1_ratio=float(ratio),
            fit_intercept=self.fit_intercept,
            positive=self.positive,
            tol=self.tol,
            max_iter=self.max_iter,
        )

    def _at_strength(self, alpha: float, rows: int) -> ElasticNet:
        """Return the learner with a penalty and the chosen mixture, for a drawing of the path."""
        return self._plain_model(float(getattr(self, "l1_ratio_", 1.0))).set_params(alpha=alpha)

    def _errors(
        self, data: TrainingData, ratios: Sequence[float], grids: Array, splits: list[tuple[Array, Array]]
    ) -> Array:
        """Return the mean squared errors by mixture, alpha and fold."""
        y, weight = data.y[:, 0], data.weight

        def of_fold(number: int) -> Array:
            train, test = splits[number]
            w_train = None if weight is None else weight[train]
            w_test = None if weight is None else weight[test]
            fold = Fold(number, train, test, data.X[train], y[train], data.X[test], y[test], w_train)
            found = np.empty(grids.shape)
            for k, (ratio, alphas) in enumerate(zip(ratios, grids, strict=True)):
                grid = [{"alpha": float(alpha)} for alpha in alphas]
                plan = LassoPlan(self._plain_model(ratio), grid, Table(None, None, None, splits))
                for one in plan.fit(fold):
                    off = np.square(one.model.predict(fold.X_test) - fold.y_test, dtype=np.float64)
                    found[k, one.setting] = np.average(off, weights=w_test)
            return found

        work = with_progress(self, of_fold, len(splits))
        return np.stack(on_threads(work, range(len(splits)), self.n_jobs), axis=2)

    def _model_of_all(self, X: Any, y: Any, sample_weight: Any, ratio: float, alphas: Array) -> Any:
        """Return the learner fitted to all rows with the last of the alphas, by way of some of the others."""
        grid = [{"alpha": float(alpha)} for alpha in (*alphas[:-1:COARSE_STEP], alphas[-1])]
        y = np.ravel(y) if getattr(y, "ndim", 1) == 2 else y
        rows = np.arange(0)
        fold = Fold(0, rows, rows, X, y, X[:1] if isinstance(X, np.ndarray) else X, y, sample_weight)
        plan = LassoPlan(self._plain_model(ratio), grid, Table(X, y, sample_weight, []))
        *_, last = plan.fit(fold)
        return last.model.model if isinstance(last.model, Answered) else last.model

    def get_metadata_routing(self) -> MetadataRouter:
        """Return who gets which parameter of ``fit``.

        Returns
        -------
        MetadataRouter
        """
        mapping = MethodMapping().add(caller="fit", callee="split")
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(splitter=check_cv(self.cv), method_mapping=mapping)


class LassoCV(_LassoPathCV):
    """Linear regression with an L1 penalty that is chosen by cross-validation.

    Minimises ``|y - X w - b|**2 / (2 n) + alpha * |w|_1``. A drop-in for scikit-learn's class: the same
    parameters, attributes and meanings; every fit is certified to ``tol``.

    Parameters
    ----------
    eps : float, default=1e-3
        The least alpha of a path, as a part of the largest.
    alphas : int or array, default=100
        How many alphas to try on a path from where the first weight leaves zero, or which.
    fit_intercept : bool, default=True
        Whether to fit b. It is never penalised.
    precompute : default="auto"
        Accepted for scikit-learn's sake: products of columns are computed where they are needed.
    max_iter : int, default=1000
        Most iterations of a fit.
    tol : float, default=1e-4
        The gap to the optimum that is allowed, as a part of the mean square of y (about its mean if there is
        an intercept), as in scikit-learn.
    copy_X : bool, default=True
        Accepted for scikit-learn's sake: X is never changed.
    cv : int, splitter or iterable, default=None
        The folds; None for five.
    verbose : bool or int, default=False
        Whether to print progress: the first and the last fold, and one in half a second between.
    n_jobs : int, default=None
        How many folds are worked on at the same time, on threads; None or -1 for as many as there are
        cores.
    positive : bool, default=False
        Whether to keep all coefficients at 0 or above.
    random_state, selection
        Accepted for scikit-learn's sake: columns are visited in one order.
    n_alphas : int, default=None
        How many alphas to try, for code written for scikit-learn before 1.9.

    Attributes
    ----------
    alpha_ : float
        The penalty that was chosen.
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    alphas_ : ndarray of shape (n_alphas,)
        The penalties that were tried, the largest first.
    mse_path_ : ndarray of shape (n_alphas, n_folds)
        The mean squared error of the held-out rows.
    dual_gap_ : float
        The certified gap of the model of all rows.
    n_iter_ : int
        The iterations that it took.
    feature_means_ : ndarray of shape (n_features,)
        The means of the columns, with which :meth:`explain` compares.
    mean_rows_ : int
        How many rows they were taken from: 4,096 at most, unless the solver knows those of all.
    certificate_ : Certificate
        How far from the optimum the model of all rows is at most; ``verify(X, y)`` recomputes it.
    n_features_in_, feature_names_in_
        The number of columns, and their names if they had any.

    Examples
    --------
    >>> import numpy as np
    >>> from sixfold.selection.lasso_cv import LassoCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 10))
    >>> y = 2.0 * X[:, 0] - X[:, 3] + 0.1 * rng.standard_normal(60)
    >>> model = LassoCV(cv=5).fit(X, y)
    >>> np.flatnonzero(np.abs(model.coef_) > 0.5)
    array([0, 3])
    """

    def __init__(
        self,
        *,
        eps: float = 1e-3,
        alphas: Any = ALPHAS,
        fit_intercept: bool = True,
        precompute: Any = "auto",
        max_iter: int = 1000,
        tol: float = 1e-4,
        copy_X: bool = True,
        cv: Any = None,
        verbose: Any = False,
        n_jobs: int | None = None,
        positive: bool = False,
        random_state: Any = None,
        selection: str = "cyclic",
        n_alphas: int | None = None,
    ) -> None:
        self.eps = eps
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.max_iter = max_iter
        self.tol = tol
        self.copy_X = copy_X
        self.cv = cv
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.positive = positive
        self.random_state = random_state
        self.selection = selection
        self.n_alphas = n_alphas

    def _ratios(self) -> list[float]:
        return [1.0]


class ElasticNetCV(_LassoPathCV):
    """Linear regression with an elastic-net penalty that is chosen by cross-validation.

    Minimises ``|y - X w - b|**2 / (2 n) + alpha * (l1_ratio * |w|_1 + (1 - l1_ratio) * |w|**2 / 2)``. A
    drop-in for scikit-learn's class: the same parameters, attributes and meanings; every fit is certified to
    ``tol``.

    Parameters
    ----------
    l1_ratio : float or list of floats, default=0.5
        The share of the absolute values in the penalty; of several the best is chosen.
    eps : float, default=1e-3
        The least alpha of a path, as a part of the largest.
    alphas : int or array, default=100
        How many alphas to try on a path from where the first weight leaves zero, or which.
    fit_intercept : bool, default=True
        Whether to fit b. It is never penalised.
    precompute : default="auto"
        Accepted for scikit-learn's sake: products of columns are computed where they are needed.
    max_iter : int, default=1000
        Most iterations of a fit.
    tol : float, default=1e-4
        The gap to the optimum that is allowed, as a part of the mean square of y (about its mean if there is
        an intercept), as in scikit-learn.
    cv : int, splitter or iterable, default=None
        The folds; None for five.
    copy_X : bool, default=True
        Accepted for scikit-learn's sake: X is never changed.
    verbose : bool or int, default=0
        Whether to print progress: the first and the last fold, and one in half a second between.
    n_jobs : int, default=None
        How many folds are worked on at the same time, on threads; None or -1 for as many as there are
        cores.
    positive : bool, default=False
        Whether to keep all coefficients at 0 or above.
    random_state, selection
        Accepted for scikit-learn's sake: columns are visited in one order.
    n_alphas : int, default=None
        How many alphas to try, for code written for scikit-learn before 1.9.

    Attributes
    ----------
    alpha_, l1_ratio_ : float
        The penalty that was chosen.
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    alphas_ : ndarray of shape (n_alphas,) or (n_l1_ratio, n_alphas)
        The penalties that were tried, the largest first.
    mse_path_ : ndarray of shape (n_alphas, n_folds) or (n_l1_ratio, n_alphas, n_folds)
        The mean squared error of the held-out rows.
    dual_gap_ : float
        The certified gap of the model of all rows.
    n_iter_ : int
        The iterations that it took.
    feature_means_ : ndarray of shape (n_features,)
        The means of the columns, with which :meth:`explain` compares.
    mean_rows_ : int
        How many rows they were taken from: 4,096 at most, unless the solver knows those of all.
    certificate_ : Certificate
        How far from the optimum the model of all rows is at most; ``verify(X, y)`` recomputes it.
    n_features_in_, feature_names_in_
        The number of columns, and their names if they had any.

    Examples
    --------
    >>> import numpy as np
    >>> from sixfold.selection.lasso_cv import ElasticNetCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 10))
    >>> y = 2.0 * X[:, 0] - X[:, 3] + 0.1 * rng.standard_normal(60)
    >>> ElasticNetCV(l1_ratio=[0.1, 0.9], cv=5).fit(X, y).l1_ratio_
    0.9
    """

    def __init__(
        self,
        *,
        l1_ratio: Any = 0.5,
        eps: float = 1e-3,
        alphas: Any = ALPHAS,
        fit_intercept: bool = True,
        precompute: Any = "auto",
        max_iter: int = 1000,
        tol: float = 1e-4,
        cv: Any = None,
        copy_X: bool = True,
        verbose: Any = 0,
        n_jobs: int | None = None,
        positive: bool = False,
        random_state: Any = None,
        selection: str = "cyclic",
        n_alphas: int | None = None,
    ) -> None:
        self.l1_ratio = l1_ratio
        self.eps = eps
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.max_iter = max_iter
        self.tol = tol
        self.cv = cv
        self.copy_X = copy_X
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.positive = positive
        self.random_state = random_state
        self.selection = selection
        self.n_alphas = n_alphas

    def _ratios(self) -> list[float]:
        given = [self.l1_ratio] if isinstance(self.l1_ratio, Real) else list(self.l1_ratio)
        if not given or not all(isinstance(one, Real) and 0.0 <= float(one) <= 1.0 for one in given):
            raise InputError(
                f"l1_ratio={self.l1_ratio!r} is out of range. Pass a number from 0 to 1, or a list of such."
            )
        return [float(ratio) for ratio in given]

    def _set_ratio(self, ratio: float) -> None:
        self.l1_ratio_ = ratio
