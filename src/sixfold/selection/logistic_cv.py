"""Logistic regression whose penalty is chosen by cross-validation.

    minimise    C sum_i -log P(y_i | x_i) + (1 - rho) |w|^2 / 2 + rho |w|_1

for every C (and rho) on every fold, as :class:`~sixfold.selection.plans.linear.PathPlan` walks them. What is
chosen has the largest sum of scores of the held-out rows; of equal ones the smallest C. The model of all rows
is then fitted with it, or (``refit=False``) the models of the best C of each fold are averaged.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import get_scorer, make_scorer
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import UNUSED, MetadataRouter, MethodMapping

from sixfold.certificate import Certificate
from sixfold.data.checks import check_weight
from sixfold.data.column_means import column_means
from sixfold.errors import InputError, check_flag, check_number, check_option
from sixfold.learners.linear.logistic_regression import LogisticRegression
from sixfold.selection.built_in_cv import adopt, on_threads, route, with_progress
from sixfold.selection.folds import make_splits
from sixfold.selection.plans.base import Fold, Table
from sixfold.selection.plans.linear import PathPlan

Array = NDArray[Any]

PENALTIES = ("auto", "deprecated", None, "l2", "l1", "elasticnet")
CERTAIN_SCORE = 40.0  # which leaves exp(-40) = 4e-18 for the other class
RANGE = (-4.0, 4.0)  # powers of ten between which a number of Cs lies


class LogisticRegressionCV(LogisticRegression):
    """Logistic regression with a penalty that is chosen by cross-validation.

    Minimises ``C * sum_i -log P(y_i | x_i) + penalty(w)`` for every C; two classes share one score, more than
    two are fitted together (softmax). A drop-in for scikit-learn's class: the same parameters, attributes and
    meanings; every fit is certified to ``tol``.

    Parameters
    ----------
    Cs : int or list of floats, default=10
        How many Cs to try between 1e-4 and 1e4, or which. A small C means a strong penalty.
    l1_ratios : list of floats, default=None
        The shares of absolute values in the penalty to try: 0 is "l2", 1 is "l1". None leaves it to
        ``penalty``.
    fit_intercept : bool, default=True
        Whether to fit b. It is never penalised.
    cv : int, splitter or iterable, default=None
        The folds; None for five, stratified by class.
    dual : bool, default=False
        Accepted for scikit-learn's sake.
    penalty : {"auto", "l2", "l1", "elasticnet"}, default="auto"
        "auto" lets ``l1_ratios`` say it, and is "l2" without them.
    scoring : str or callable, default=None
        What to rank by; None for the accuracy.
    solver : str, default="auto"
        As in :class:`LogisticRegression`.
    tol : float, default=1e-6
        Stop when the certified gap is below ``tol`` times the loss of guessing, log(number of classes).
    max_iter : int, default=1000
        Most iterations of a fit.
    class_weight : dict, "balanced" or None, default=None
        How much the rows of each class count; "balanced" gives all classes the same total over all rows.
    n_jobs : int, default=None
        How many folds are worked on at the same time, on threads; None or -1 for as many as there are
        cores, but None for one where ``scoring`` is a function.
    verbose : int, default=0
        Whether to print progress: the first and the last fold, and one in half a second between.
    refit : bool, default=True
        Whether to fit all rows with the best penalty; else the coefficients of the best C of each fold are
        averaged, and there is no certificate.
    intercept_scaling : float, default=1.0
        Accepted for scikit-learn's sake.
    random_state : int or None, default=None
        Accepted for scikit-learn's sake.
    use_legacy_attributes : bool, default=True
        Whether the attributes below have the form of scikit-learn before 1.10.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    Cs_, l1_ratios_ : ndarray
        What was tried.
    C_, l1_ratio_ : ndarray of shape (1,) or (n_classes,); float in the new form
        What was chosen, once for every class.
    scores_ : dict of ndarray of shape (n_folds, n_cs) or (n_folds, n_cs, n_l1_ratios)
        The scores of the held-out rows, the same for every class. In the new form one array of shape
        (n_folds, n_l1_ratios, n_cs).
    coefs_paths_ : dict of ndarray of shape (n_folds, n_cs, n_dof) or (n_folds, n_cs, n_l1_ratios, n_dof)
        Coefficients, and intercepts if there are any, by class. In the new form one array of shape (n_folds,
        n_l1_ratios, n_cs, n_classes, n_dof).
    n_iter_ : ndarray of shape (1, n_folds, n_cs) or (1, n_folds, n_cs, n_l1_ratios)
        Iterations of each fit. In the new form of shape (n_folds, n_l1_ratios, n_cs).
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
    >>> from sklearn.datasets import load_iris
    >>> from sixfold.selection.logistic_cv import LogisticRegressionCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegressionCV(Cs=[0.01, 1.0], cv=3).fit(X, y)
    >>> model.C_
    array([1., 1., 1.])
    >>> model.certificate_.converged
    True
    """

    __metadata_request__score: ClassVar[dict[str, Any]] = {"sample_weight": UNUSED}  # it is the scorer's

    C_: Any
    l1_ratio_: Any
    scores_: Any
    coefs_paths_: Any

    def __init__(
        self,
        *,
        Cs: Any = 10,
        l1_ratios: Any = None,
        fit_intercept: bool = True,
        cv: Any = None,
        dual: bool = False,
        penalty: str | None = "auto",
        scoring: Any = None,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        class_weight: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        refit: bool = True,
        intercept_scaling: float = 1.0,
        random_state: Any = None,
        use_legacy_attributes: bool = True,
    ) -> None:
        self.Cs = Cs
        self.l1_ratios = l1_ratios
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.dual = dual
        self.penalty = penalty
        self.scoring = scoring
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.refit = refit
        self.intercept_scaling = intercept_scaling
        self.random_state = random_state
        self.use_legacy_attributes = use_legacy_attributes

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Self:
        """Choose the penalty by cross-validation, and fit the model of all rows with it.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            The columns to predict from.
        y : array of shape (n_samples,)
            The label of each row: text, whole numbers or booleans.
        sample_weight : array of shape (n_samples,), default=None
            How much each row counts, in the fits and in the scores.
        **params : dict
            Parameters of the splitter and the scorer, where scikit-learn's metadata routing is enabled.

        Returns
        -------
        LogisticRegressionCV
            The fitted model itself.
        """
        splitting, scoring = route(self, "fit", sample_weight, params)
        with self._unchanged_on_failure():
            Cs, ratios = self._check_own_parameters()
            checked = self._plain_model(None)
            data = checked._check(X, y, sample_weight)
            data.require_computable()
            self.classes_ = checked.classes_
            codes = data.y[:, 0] if self.classes_.size > 2 else data.y[:, 0] > 0
            labels = self.classes_[codes.astype(np.intp)]
            weight = check_weight(sample_weight, len(labels))
            model = self._plain_model(self._class_weights(labels, weight))
            splits = make_splits(check_cv(self.cv, labels, classifier=True), X, labels, splitting)
            work = _FoldScores(model, Cs, ratios, data.X, labels, self.classes_, splits, self._get_scorer())
            if "sample_weight" in scoring:
                scoring = {**scoring, "sample_weight": weight}
            alone = self.n_jobs is None and callable(self.scoring)  # which several threads must not call
            jobs = 1 if alone else self.n_jobs
            of_fold = with_progress(self, lambda k: work.of_fold(k, weight, scoring), len(splits))
            found = on_threads(of_fold, range(len(splits)), jobs)
            scores, paths, n_iter = (np.stack(part) for part in zip(*found, strict=True))
            self._choose(model, X, y, sample_weight, (Cs, ratios), scores, paths)
            self._set_paths(Cs, ratios, scores, paths, n_iter)
        return self

    # -- parameters -----------------------------------------------------------------------------------------

    def _check_own_parameters(self) -> tuple[Array, list[float]]:
        """Return the Cs and the mixtures to try."""
        for name in ("fit_intercept", "refit", "use_legacy_attributes"):
            check_flag(name, getattr(self, name))
        check_option("penalty", self.penalty, PENALTIES)
        if isinstance(self.Cs, str):
            raise InputError(f"Cs={self.Cs!r} is text. Pass how many Cs to try, or which.")
        if isinstance(self.Cs, Integral):
            check_number("Cs", self.Cs, at_least=1, whole=True)
            Cs = np.logspace(*RANGE, int(self.Cs))
        else:
            for k, C in enumerate(self.Cs):
                check_number(f"Cs[{k}]", C, above=0)
            Cs = np.asarray(self.Cs, dtype=np.float64)
            if Cs.ndim != 1 or Cs.size == 0:
                raise InputError(f"Cs has shape {Cs.shape}. Pass how many Cs to try, or a list of them.")
        if self.penalty is None:
            Cs = np.full_like(Cs, np.inf)
        return Cs, self._ratios()

    def _ratios(self) -> list[float]:
        if self.l1_ratios is None:
            if self.penalty == "elasticnet":
                raise InputError(
                    "l1_ratios must be an array-like of numbers between 0 and 1 for penalty='elasticnet'; "
                    "got (l1_ratios=None). Pass for instance [0.1, 0.5, 0.9]."
                )
            return [1.0 if self.penalty == "l1" else 0.0]
        given: list[Any] = [None]
        if isinstance(self.l1_ratios, Sequence | np.ndarray):
            given = list(self.l1_ratios)
        if not given or not all(isinstance(one, Real) and 0.0 <= float(one) <= 1.0 for one in given):
            raise InputError(
                "l1_ratios must be an array-like of numbers between 0 and 1; got "
                f"(l1_ratios={self.l1_ratios!r}). Pass for instance [0.1, 0.5, 0.9]."
            )
        fixed = {"l1": 1.0, "l2": 0.0}.get(str(self.penalty))
        if fixed is not None and any(one != fixed for one in given):
            raise InputError(
                f"l1_ratios={given} are of penalty='elasticnet', but penalty={self.penalty!r} was given. "
                "Leave one of them at its default."
            )
        return [float(one) for one in given]

    def _plain_model(self, class_weight: Any) -> LogisticRegression:
        return LogisticRegression(
            fit_intercept=self.fit_intercept,
            solver=self.solver,
            tol=self.tol,
            max_iter=self.max_iter,
            class_weight=class_weight,
            random_state=0 if self.random_state is None else self.random_state,
        )

    def _at_strength(self, C: float, rows: int) -> LogisticRegression:
        """Return the learner with a penalty and the chosen mixture, for a drawing of the path."""
        return self._plain_model(self.class_weight).set_params(C=C, l1_ratio=self._best[1])

    def _class_weights(self, y: Array, weight: Array | None) -> Any:
        """Return the weights of classes, those of "balanced" as all rows tell them."""
        if self.class_weight is None:
            return None
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            count = np.ones(len(y)) if weight is None else weight
            totals = np.array([count[y == one].sum() for one in self.classes_])
            values = totals.sum() / (len(totals) * totals)
            return dict(zip(self.classes_.tolist(), values.tolist(), strict=True))
        if isinstance(self.class_weight, dict) and not set(self.class_weight) <= set(self.classes_.tolist()):
            raise InputError(
                "The given class_weight dict must have the class labels as keys; "
                f"classes={self.classes_.tolist()} but key={list(self.class_weight)}. Remove the others."
            )
        return self.class_weight

    def _get_scorer(self) -> Any:
        return get_scorer("accuracy" if self.scoring is None else self.scoring)

    # -- what was found -----------------------------------------------------------------------------

    def _choose(
        self,
        model: LogisticRegression,
        X: Any,
        y: Any,
        sample_weight: Any,
        tried: tuple[Array, list[float]],
        scores: Array,
        paths: Array,
    ) -> None:
        """Set the penalty with the best scores, and the coefficients: of all rows, or the means of folds."""
        Cs, ratios = tried
        if not self.refit:
            # Of folds x Cs x ratios the best place of each fold.
            best = [np.unravel_index(int(one.argmax()), one.shape) for one in scores]
            w = np.mean([paths[k, C, ratio] for k, (C, ratio) in enumerate(best)], axis=0)
            self._best = (
                float(np.mean([Cs[C] for C, _ in best])),
                float(np.mean([ratios[ratio] for _, ratio in best])),
            )
            self.coef_ = w[:, :-1].copy()
            self.intercept_ = w[:, -1].copy()
            self.__dict__.pop("_certificate", None)
            self._set_checked(X, y, sample_weight)
            return
        total = scores.sum(axis=0)
        C, ratio = np.unravel_index(int(total.argmax()), total.shape)
        adopt(self, model.set_params(C=float(Cs[C]), l1_ratio=ratios[ratio]).fit(X, y, sample_weight))
        self._best = float(Cs[C]), ratios[ratio]

    def _set_checked(self, X: Any, y: Any, sample_weight: Any) -> None:
        checked = self._plain_model(None)
        data = checked._check(X, y, sample_weight)
        self._set_means(column_means(data.X, data.weight))
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(checked, name):
                setattr(self, name, getattr(checked, name))

    def _set_paths(self, Cs: Array, ratios: list[float], scores: Array, paths: Array, n_iter: Array) -> None:
        """Set the attributes that tell what was tried, in the old form or the new."""
        self.Cs_ = Cs
        C, ratio = self._best
        if not self.fit_intercept:
            paths = paths[..., :-1]
        if not self.use_legacy_attributes:
            self.l1_ratios_ = np.asarray(ratios)
            self.C_, self.l1_ratio_ = C, ratio
            self.scores_, self.n_iter_ = np.swapaxes(scores, 1, 2), np.swapaxes(n_iter, 1, 2)
            self.coefs_paths_ = np.swapaxes(paths, 1, 2)
            return
        single = self.l1_ratios is None
        self.l1_ratios_ = np.asarray([None] if single else ratios)
        count = paths.shape[3]
        self.C_ = np.full(count, C)
        self.l1_ratio_ = np.full(count, None if single and self.refit else ratio)
        names = self.classes_.tolist() if count > 1 else [self.classes_[-1]]
        by_class = np.moveaxis(paths, 3, 0)
        if single:
            scores, n_iter, by_class = scores[:, :, 0], n_iter[:, :, 0], by_class[:, :, :, 0]
        self.scores_ = {name: scores.copy() for name in names}
        self.coefs_paths_ = dict(zip(names, by_class, strict=True))
        self.n_iter_ = n_iter[None]

    @property
    def certificate_(self) -> Certificate:
        """How far from the best possible fit the model of all rows is at most."""
        if hasattr(self, "coef_") and "_certificate" not in self.__dict__:
            raise AttributeError(
                "LogisticRegressionCV has no certificate_ with refit=False: a mean of models is the optimum "
                "of none. Use refit=True."
            )
        return super().certificate_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")

    def score(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> float:
        """Return the score of predictions by ``scoring``.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), default=None
        **params : dict
            Parameters of the scorer, where scikit-learn's metadata routing is enabled.

        Returns
        -------
        float
        """
        given = params if sample_weight is None else {**params, "sample_weight": sample_weight}
        _, scoring = route(self, "score", given.pop("sample_weight", None), given)
        return float(self._get_scorer()(self, X, y, **scoring))

    def get_metadata_routing(self) -> MetadataRouter:
        """Return who gets which parameter of ``fit`` and ``score``.

        Returns
        -------
        MetadataRouter
        """
        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        mapping = MethodMapping().add(caller="score", callee="score").add(caller="fit", callee="score")
        return router.add(scorer=self._get_scorer(), method_mapping=mapping)


class _FoldScores:
    """The scores and coefficients of every C and mixture on a fold."""

    def __init__(
        self,
        model: LogisticRegression,
        Cs: Array,
        ratios: list[float],
        X: Any,
        y: Array,
        classes: Array,
        splits: list[tuple[Array, Array]],
        scorer: Any,
    ) -> None:
        self.X, self.y, self.classes, self.splits = X, y, classes, splits
        self.shape = (len(Cs), len(ratios))
        self.model, self.Cs, self.ratios = model, Cs, ratios
        self.scorer = with_labels(scorer, classes)

    def of_fold(
        self, number: int, weight: Array | None, parameters: dict[str, Any]
    ) -> tuple[Array, Array, Array]:
        """Return scores, coefficients with intercepts, and iterations, by C and mixture."""
        train, test = self.splits[number]
        n = self.X.shape[0]
        own = {
            name: np.asarray(value)[test] if np.shape(value)[:1] == (n,) else value
            for name, value in parameters.items()
        }
        w_train = None if weight is None else weight[train]
        fold = Fold(number, train, test, self.X[train], self.y[train], self.X[test], self.y[test], w_train)
        present = np.flatnonzero(np.isin(self.classes, fold.y_train))
        count = 1 if self.classes.size == 2 else self.classes.size
        scores, n_iter = np.empty(self.shape), np.ones(self.shape, dtype=np.int32)
        paths = np.zeros((*self.shape, count, self.X.shape[1] + 1))
        for place, model in self._models(fold, present):
            if model is None:
                self._certain_of(present[0], paths[place])
            else:
                self._enter(model, present, paths[place])
                n_iter[place] = model.n_iter_[0]
            whole = len(present) == self.classes.size
            judged = model if whole else self._of_all_classes(paths[place])
            scores[place] = self.scorer(judged, fold.X_test, fold.y_test, **own)
        return scores, paths, n_iter

    def _models(self, fold: Fold, present: Array) -> Iterator[tuple[tuple[int, ...], Any]]:
        """Yield the model of every C and mixture; None where the fold has one class only."""
        places = list(np.ndindex(self.shape))
        if len(present) == 1:
            yield from ((place, None) for place in places)
            return
        grid = [{"C": float(self.Cs[i]), "l1_ratio": self.ratios[j]} for i, j in places]
        if len(present) == 2 < self.classes.size:
            grid = [of_two_scores(**setting) for setting in grid]
        plan = PathPlan(self.model, grid, Table(self.X, self.y, None, self.splits))
        for one in plan.fit(fold):
            yield places[one.setting], one.model

    def _enter(self, model: Any, present: Array, path: Array) -> None:
        """Write coefficients and intercepts to the rows of their classes; what a fold lacks it rules out."""
        if len(present) < self.classes.size:
            path[:, -1] = -np.inf
        if len(present) == 2 < self.classes.size:  # one score is the difference of two
            path[present, :-1] = np.vstack([-0.5 * model.coef_, 0.5 * model.coef_])
            path[present, -1] = 0.5 * model.intercept_[0] * np.array([-1.0, 1.0])
            return
        rows = present if self.classes.size > 2 else np.arange(1)
        path[rows, :-1], path[rows, -1] = model.coef_, model.intercept_

    def _certain_of(self, only: int, path: Array) -> None:
        """Write the model that rules out all classes but one."""
        if self.classes.size == 2:
            path[0, -1] = CERTAIN_SCORE if only == 1 else -CERTAIN_SCORE
        else:
            path[:, -1] = -np.inf
            path[only, -1] = 0.0

    def _of_all_classes(self, path: Array) -> LogisticRegression:
        model = LogisticRegression()
        model.classes_, model.n_features_in_ = self.classes, self.X.shape[1]
        model.coef_, model.intercept_ = path[:, :-1], path[:, -1]
        return model


def of_two_scores(C: float, l1_ratio: float) -> dict[str, float]:
    """Return the penalty of one score that is that of two, each half of it, of opposite sign.

    (1 - rho) (|w / 2|^2 + |w / 2|^2) / 2 + rho (|w / 2| + |w / 2|) = s ((1 - r) |w|^2 / 2 + r |w|) for
    s = rho + (1 - rho) / 2 and r = rho / s.

    >>> of_two_scores(1.0, 0.0), of_two_scores(1.0, 1.0)
    ({'C': 2.0, 'l1_ratio': 0.0}, {'C': 1.0, 'l1_ratio': 1.0})
    """
    s = l1_ratio + 0.5 * (1.0 - l1_ratio)
    return {"C": C / s, "l1_ratio": l1_ratio / s}


def with_labels(scorer: Any, classes: Array) -> Any:
    """Return a scorer that knows all classes, where its metric asks for them: a fold may lack one."""
    metric = getattr(scorer, "_score_func", None)
    if metric is None or "labels" not in inspect.signature(metric).parameters:
        return scorer
    options = {"labels": classes, **getattr(scorer, "_kwargs", {})}
    if classes.size == 2 and "pos_label" in inspect.signature(metric).parameters:
        options.setdefault("pos_label", classes[-1])
    return make_scorer(
        metric,
        greater_is_better=scorer._sign == 1,
        response_method=scorer._response_method,
        **options,
    )
