"""Estimators and searches that choose by cross-validation, under scikit-learn's names.

    RidgeCV, LassoCV, ElasticNetCV, LogisticRegressionCV    fitted by ours; the folds are scikit-learn's
    GridSearchCV, RandomizedSearchCV                        candidates that are drop-ins share their work

A search states every candidate as a learner of ours (``DropIn._shared_learner``). Those parameters in which
the learners differ are what the candidates are to the plans (:mod:`sixfold.selection.plans`); the results
name scikit-learn's. What is chosen is then fitted to all rows as any drop-in is. Anything else - models that
are not ours, functions as scorers, a fit that fails, ``verbose`` - is scikit-learn's own search.
"""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
import sklearn.linear_model as sk
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn import get_config, model_selection
from sklearn.base import clone, is_classifier
from sklearn.metrics._scorer import _BaseScorer, _MultimetricScorer, _PassthroughScorer
from sklearn.model_selection import ParameterGrid, ParameterSampler, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state, indexable
from sklearn.utils.validation import _check_method_params, _num_samples

from sixfold.patch.drop_in import DropIn, HandedBack, require
from sixfold.patch.linear import NAMES_DEPRECATED, SOLVERS, LinearDropIn, gap_of, iterations
from sixfold.selection.folds import row_numbers
from sixfold.selection.lasso_cv import ALPHAS
from sixfold.selection.lasso_cv import ElasticNetCV as OurElasticNetCV
from sixfold.selection.lasso_cv import LassoCV as OurLassoCV
from sixfold.selection.logistic_cv import LogisticRegressionCV as OurLogisticRegressionCV
from sixfold.selection.plans.groups import weight_parameter, with_setting
from sixfold.selection.plans.registry import plan_of
from sixfold.selection.progress import progress
from sixfold.selection.ridge_cv import RidgeCV as OurRidgeCV
from sixfold.selection.search import Evaluation, Search
from sixfold.selection.search_certificate import SearchCertificate

Array = NDArray[Any]

# From scikit-learn 1.7 on alphas says it.
N_ALPHAS_DEPRECATED = signature(sk.LassoCV).parameters["alphas"].default is not None
TIE_TOLERANCE = 1e-10  # of a score: nearer ones may be in another order where they are summed in another one
# With scikit-learn's tol two neighbours on a path may change places: of 40 random tables 37 have the alpha of
# exact fits in scikit-learn, 38 in ours with its tol, 40 with a tenth of it.
TOL_FACTOR = 0.1
# Rows for each column up to which paths of lasso and elastic net are ours. Of taller tables scikit-learn's,
# over the products of columns, is faster: 442 x 10 by 2.2, 2,000 x 1,000 by 1.7; of 500 x 5,000 ours, by 2.4.
MOST_ROWS_A_COLUMN = 1.0
CHANGING_DEFAULTS = {
    "l1_ratios": "l1_ratios was left out: scikit-learn 1.10 will take (0.0,), which is the penalty of today. "
    "State it.",
    "scoring": "scoring was left out: scikit-learn 1.11 will choose by 'neg_log_loss', today it is the "
    "accuracy. State the one that you mean.",
    "use_legacy_attributes": "use_legacy_attributes was left out: from scikit-learn 1.10 on fitted "
    "attributes have a simpler form. State True for that of today, or False for the new one.",
}


class PathDropIn(LinearDropIn):
    """A drop-in with ``fit(X, y, sample_weight)`` that chooses a penalty by cross-validation."""

    cv: Any

    def _learn(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        routed = get_config()["enable_metadata_routing"]
        require(sample_weight is None or not routed, "metadata is routed")
        require(not getattr(self, "verbose", False), "verbose prints what scikit-learn's solvers do")
        model = self._learner()
        with drawn_again_on_failure(getattr(self.cv, "random_state", None)):
            model.cv = self._folds(X, y)
            return model.fit(X, y, sample_weight=sample_weight)

    def _folds(self, X: Any, y: Any) -> list[tuple[Array, Array]] | None:
        """Return the rows of every fold."""
        return make_splits(checked_cv(self, self.cv, y), X, y)


def checked_cv(model: Any, cv: Any, y: Any) -> Any:
    """Return the splitter that scikit-learn makes for a model."""
    require(not isinstance(cv, Iterator), "whoever goes through cv takes it away from scikit-learn")
    return check_cv(cv, y, classifier=is_classifier(model))


@contextmanager
def drawn_again_on_failure(*sources: Any) -> Iterator[None]:
    """Set generators, NumPy's own among them, back where ours fails: scikit-learn then draws the same."""
    generators = [check_random_state(None)]
    generators += [one for one in sources if isinstance(one, np.random.RandomState)]
    before = [one.get_state() for one in generators]
    try:
        yield
    except Exception:
        for one, state in zip(generators, before, strict=True):
            one.set_state(state)
        raise


def make_splits(cv: Any, X: Any, y: Any, **parameters: Any) -> list[tuple[Array, Array]]:
    """Return the rows of every fold, with scikit-learn's warnings."""
    count = _num_samples(X)
    splits = [
        (row_numbers(train, count), row_numbers(test, count)) for train, test in cv.split(X, y, **parameters)
    ]
    require(len(splits) == cv.get_n_splits(X, y, **parameters) > 0, "cv makes other folds than it says")
    return splits


class RidgeCV(PathDropIn, sk.RidgeCV):
    """scikit-learn's RidgeCV, fitted by ours."""

    def _learner(self) -> Any:
        require(
            getattr(self, "store_cv_values", "deprecated") == "deprecated", "store_cv_values is deprecated"
        )
        return OurRidgeCV(
            alphas=self.alphas,
            fit_intercept=self.fit_intercept,
            scoring=self.scoring,
            gcv_mode=self.gcv_mode,
            store_cv_results=bool(self.store_cv_results),
            alpha_per_target=self.alpha_per_target,
        )

    def _learn(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        require(self.gcv_mode != "svd" or not hasattr(X, "tocsr"), "gcv_mode='svd' of a sparse table warns")
        model = super()._learn(X, y, sample_weight)
        scores = np.sort(np.atleast_2d(model._scores), axis=1)
        require(bool(np.isfinite(scores).all()), "some scores are not finite")
        near = scores[:, 1:] >= scores[:, -1:] - TIE_TOLERANCE * np.abs(scores[:, -1:])
        require(near.sum() <= len(scores), "two penalties are the best but for rounding")
        return model

    def _folds(self, X: Any, y: Any) -> list[tuple[Array, Array]] | None:
        return None if self.cv is None else super()._folds(X, y)  # None leaves out one row after the other

    def _set_fitted(self, model: Any) -> None:
        super()._set_fitted(model)
        self.alpha_, self.best_score_ = model.alpha_, np.float64(model.best_score_)
        if self.cv is not None:  # the element that a search has set
            alphas = np.ravel(self.alphas)
            self.alpha_ = alphas[np.flatnonzero(alphas == model.alpha_)[0]]
        elif self.store_cv_results:
            self.cv_results_ = model.cv_results_


class L1PathDropIn(PathDropIn):
    """What LassoCV and ElasticNetCV share."""

    alphas: Any
    precompute: Any

    def _stated(self) -> dict[str, Any]:
        """Return the parameters of ours that both have."""
        require(isinstance(self.precompute, bool | str), "products of columns are given")
        alphas, n_alphas = self.alphas, getattr(self, "n_alphas", "deprecated")  # until scikit-learn 1.9
        if N_ALPHAS_DEPRECATED:
            require(alphas is not None and n_alphas == "deprecated", "alphas says how many there are")
        names = ("eps", "fit_intercept", "positive", "max_iter", "selection")
        return {name: getattr(self, name) for name in names} | {
            "alphas": ALPHAS if isinstance(alphas, str) else alphas,  # "warn" is the default of 1.7
            "n_alphas": None if n_alphas == "deprecated" else n_alphas,
            "n_jobs": effective_n_jobs(self.n_jobs),
            "tol": TOL_FACTOR * self.tol,
        }

    def _learn(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        self._validate_params()  # of which ours takes some for scikit-learn's sake only
        require(np.ndim(y) == 1, "y is no list of numbers")
        rows, columns = np.shape(X)
        require(rows <= MOST_ROWS_A_COLUMN * columns, "scikit-learn's path of a tall table is faster")
        return super()._learn(X, y, sample_weight)

    def _set_fitted(self, model: Any) -> None:
        super()._set_fitted(model)
        self.alpha_, self.dual_gap_ = np.float64(model.alpha_), model.coef_.dtype.type(model.dual_gap_)
        self.alphas_, self.mse_path_, self.n_iter_ = model.alphas_, model.mse_path_, model.n_iter_


class LassoCV(L1PathDropIn, sk.LassoCV):
    """scikit-learn's LassoCV, fitted by ours."""

    def _learner(self) -> Any:
        return OurLassoCV(**self._stated())


class ElasticNetCV(L1PathDropIn, sk.ElasticNetCV):
    """scikit-learn's ElasticNetCV, fitted by ours."""

    def _learner(self) -> Any:
        return OurElasticNetCV(l1_ratio=self.l1_ratio, **self._stated())

    def _set_fitted(self, model: Any) -> None:
        super()._set_fitted(model)
        self.l1_ratio_ = np.float64(model.l1_ratio_)


class LogisticRegressionCV(PathDropIn, sk.LogisticRegressionCV):
    """scikit-learn's LogisticRegressionCV, fitted by ours.

    liblinear penalises the intercept, and so is left to scikit-learn where there is one.
    """

    _answers = ("predict", "predict_proba", "predict_log_proba", "decision_function")

    def _learner(self) -> Any:
        require(not self.dual, "dual=True is liblinear's")
        multi_class = getattr(self, "multi_class", "deprecated")  # until scikit-learn 1.8
        require(multi_class in ("deprecated", "auto", "multinomial"), f"multi_class={multi_class!r}")
        if self.solver == "liblinear":
            require(not self.fit_intercept, "liblinear penalises the intercept")
        ratios, penalty = self._left_out("l1_ratios", None), self._stated_penalty()
        require(self.solver in SOLVERS.get(penalty, ()), f"solver={self.solver!r} has no {penalty} penalty")
        return OurLogisticRegressionCV(
            Cs=self.Cs,
            l1_ratios=ratios,
            fit_intercept=self.fit_intercept,
            penalty=penalty if ratios is None else "auto",
            scoring=self._left_out("scoring", None),
            tol=gap_of(self.tol),
            max_iter=iterations(self.max_iter),
            class_weight=self.class_weight,
            n_jobs=effective_n_jobs(self.n_jobs),
            refit=self.refit,
            use_legacy_attributes=self._left_out("use_legacy_attributes", True),
        )

    def _left_out(self, name: str, default: Any) -> Any:
        """Return a parameter, or the default that scikit-learn still has where it is to be stated."""
        value = getattr(self, name, default)
        return default if isinstance(value, str) and value == "warn" else value

    def _stated_penalty(self) -> str:
        """Return the penalty, which its own parameter named until scikit-learn 1.8."""
        ratios = self._left_out("l1_ratios", None)
        if self.penalty != "deprecated":
            require(not NAMES_DEPRECATED, "the parameter penalty is deprecated")
            require(ratios is None or self.penalty == "elasticnet", "l1_ratios are of the elastic net")
            return str(self.penalty)
        require(self.l1_ratios is not None, "l1_ratios=None is deprecated")
        every = {None} if ratios is None else set(ratios)
        return "l2" if every <= {None, 0} else "l1" if every == {1} else "elasticnet"

    def _learn(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        self._validate_params()
        if getattr(X, "dtype", None) == np.float32:
            X = X.astype(np.float64)  # as scikit-learn does
        model = super()._learn(X, y, sample_weight)
        require(model.coef_.dtype == np.float64, "the columns are not of float64")
        require(self.solver != "liblinear" or model.classes_.size == 2, "liblinear takes two classes")
        for name, text in CHANGING_DEFAULTS.items():
            if getattr(self, name, None) is not None and self._left_out(name, None) is None:
                warnings.warn(text, FutureWarning, stacklevel=4)
        return model

    def _set_fitted(self, model: Any) -> None:
        super()._set_fitted(model)
        for name in ("classes_", "Cs_", "l1_ratios_", "C_", "l1_ratio_", "n_iter_"):
            setattr(self, name, getattr(model, name))
        if not isinstance(self.l1_ratios, str | None):
            self.l1_ratios_ = np.asarray(self.l1_ratios)
        if not self.refit and self._stated_penalty() != "elasticnet":
            self.l1_ratio_ = model.l1_ratio_ * 0.0
        for name in ("scores_", "coefs_paths_"):
            found = getattr(model, name)
            if isinstance(found, dict):
                found = dict(zip(self.classes_[-len(found) :], found.values(), strict=True))
            setattr(self, name, found)


# -- searches ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SearchResult:
    """What a search has found: the fitted attributes of scikit-learn's class, and the certificate."""

    attributes: dict[str, Any]
    certificate_: SearchCertificate


class SearchDropIn(DropIn):
    """A search whose candidates share work; its answers are those of ``best_estimator_``."""

    _answers = ()
    _extras = ("certificate_",)

    def _learner(self) -> Any:
        raise HandedBack("a search is no learner")

    @abstractmethod
    def _candidates(self) -> list[dict[str, Any]]:
        """Return the settings to try."""

    def _set_fitted(self, model: SearchResult) -> None:
        vars(self).update(model.attributes)

    def _learn(self, X: Any, y: Any = None, **params: Any) -> SearchResult:  # type: ignore[override]
        with drawn_again_on_failure(getattr(self.cv, "random_state", None)):
            return self._search(X, y, **params)

    def _search(self, X: Any, y: Any = None, **params: Any) -> SearchResult:
        require(y is not None, "there is no y")
        require(not self.verbose, "verbose prints each fit")
        require(params.keys() <= {"groups", weight_parameter(self.estimator)}, "fit has other parameters")
        learner_of(self.estimator)
        scorers, metric = self._get_scorers()
        several = isinstance(scorers, _MultimetricScorer)
        for scorer in scorers._scorers.values() if several else [scorers]:
            require(isinstance(scorer, _BaseScorer | _PassthroughScorer), "a function scores whole models")
        X, y = indexable(X, y)
        params = _check_method_params(X, params=params)
        routed = self._get_routed_params_for_fit(params)
        cv = checked_cv(self.estimator, self.cv, y)
        splits = make_splits(cv, X, y, **routed.splitter.split)
        candidates = self._candidates()
        model, settings = stated(self.estimator, candidates)
        evaluation = Evaluation(
            _MultimetricScorer(scorers=scorers._scorers, raise_exc=True) if several else scorers,
            "raise",
            self.return_train_score,
            routed.estimator.fit,
            routed.scorer.score,
        )
        search = Search(model, settings, X, y, splits, evaluation)
        with progress(search.asked, shown=False) as show:
            search.run(effective_n_jobs(self.n_jobs), None, show)
        if search.stopped_by is not None:
            raise KeyboardInterrupt
        out = [one.to_sklearn(None) for one in search.outcomes.values()]  # candidate by candidate
        results = self._format_results(candidates, len(splits), out)
        found = {"_checked_cv_orig": cv, "n_splits_": len(splits), "multimetric_": several}
        if self.refit or not several:
            best = self._select_best_index(self.refit, metric, results)
            found |= {"best_index_": best, "best_params_": results["params"][best]}
            if not callable(self.refit):
                found["best_score_"] = results[f"mean_test_{metric}"][best]
        if self.refit:
            start = time.time()
            chosen = with_setting(self.estimator, found["best_params_"])
            found["best_estimator_"] = chosen.fit(X, y, **routed.estimator.fit)
            found["refit_time_"] = time.time() - start
            if hasattr(chosen, "feature_names_in_"):
                found["feature_names_in_"] = chosen.feature_names_in_
        found |= {"scorer_": scorers._scorers if several else scorers, "cv_results_": results}
        return SearchResult(found, search.certificate())


class GridSearchCV(SearchDropIn, model_selection.GridSearchCV):
    """scikit-learn's GridSearchCV, with the work that candidates share done once."""

    def _candidates(self) -> list[dict[str, Any]]:
        return list(ParameterGrid(self.param_grid))


class RandomizedSearchCV(SearchDropIn, model_selection.RandomizedSearchCV):
    """scikit-learn's RandomizedSearchCV, with the work that candidates share done once."""

    def _candidates(self) -> list[dict[str, Any]]:
        return list(ParameterSampler(self.param_distributions, self.n_iter, random_state=self.random_state))

    def _learn(self, X: Any, y: Any = None, **params: Any) -> SearchResult:  # type: ignore[override]
        with drawn_again_on_failure(self.random_state):
            return super()._learn(X, y, **params)


def learner_of(model: Any) -> Any:
    """Return our learner for a model, or for the last step of a pipeline, that has a plan."""
    if type(model) is Pipeline:
        require(not model.verbose, "verbose prints each step")
        model = model.steps[-1][1]
    if isinstance(model, DropIn):
        require(type(model).__module__.startswith(f"{__package__}."), "a subclass may do otherwise")
        model = model._shared_learner()
    require(plan_of(model) is not None, f"{type(model).__name__} shares no work")
    return model


def stated(model: Any, candidates: list[dict[str, Any]]) -> tuple[Any, list[dict[str, Any]]]:
    """Return a model with our learner as it is, or as its last step, and what candidates are to it.

    >>> from sixfold.patch.linear import LogisticRegression
    >>> model, settings = stated(LogisticRegression(), [{"C": 1.0}, {"C": 2.0}])
    >>> type(model).__module__, [setting["C"] for setting in settings]
    ('sixfold.learners.linear.logistic_regression', [1.0, 2.0])
    """
    model = clone(model)
    name = model.steps[-1][0] if isinstance(model, Pipeline) else ""
    last, prefix = (model.steps[-1][1], f"{name}__") if name else (model, "")
    learners, others = [], []
    for candidate in candidates:
        own = {key.removeprefix(prefix): value for key, value in candidate.items() if key.startswith(prefix)}
        other = {key: value for key, value in candidate.items() if not key.startswith(prefix)}
        require(not any("__" in key for key in own), "parameters of parts of a learner are tried")
        require(not other.keys() & {name, "steps"}, "models are tried against each other")
        learners.append(learner_of(copy(last).set_params(**own)))
        others.append(other)
    first, *_ = learners
    require({type(one) for one in learners} == {type(first)}, "candidates are different learners")
    parameters = [one.get_params(deep=False) for one in learners]
    differing = [
        key for key, value in parameters[0].items() if any(one[key] is not value for one in parameters)
    ]
    settings = [
        other | {prefix + key: one[key] for key in differing}
        for other, one in zip(others, parameters, strict=True)
    ]
    return (model.set_params(**{name: first}) if name else first), settings
