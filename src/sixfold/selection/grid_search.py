"""GridSearchCV and RandomizedSearchCV: scikit-learn's searches, with the work candidates share done once.

    check the candidates and the folds -> evaluate all of them (:mod:`sixfold.selection.search`)
    -> ``cv_results_`` -> choose by ``rule`` -> fit the choice to all rows -> nested assessment, if asked for

Constructor, attributes and results are scikit-learn's, whose classes these are; scorers, splitters and the
layout of the results are its own code. Models that are not ours are handed over to it.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import model_selection
from sklearn.base import clone, is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics._scorer import _MultimetricScorer
from sklearn.model_selection import ParameterGrid, ParameterSampler, check_cv
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import indexable
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _check_method_params

from sixfold.errors import (
    InputError,
    SixfoldWarning,
    StoppedEarly,
    TimeLimitReached,
    check_number,
    check_option,
    warn,
)
from sixfold.selection.candidates import check_grid, check_names
from sixfold.selection.folds import make_splits
from sixfold.selection.plans.groups import limited_time, weight_parameter, with_setting
from sixfold.selection.plans.registry import plan_of
from sixfold.selection.progress import progress
from sixfold.selection.rules import RULES, require_order, simplest_within_one_error
from sixfold.selection.search import CTRL_C, Evaluation, Outcome, Search
from sixfold.selection.search_certificate import SearchCertificate

Array = NDArray[Any]

# In a table: with fewer, fits are mostly Python, and threads wait for each other. All learners on 455 x 30
# values take 0.58 s one after the other and 0.84 s on two threads; kernel machines on 3,000 x 30 take 1.7 and
# 1.0.
FEW_VALUES = 1 << 15


class SharedWorkSearch(BaseSearchCV):
    """What both searches add to scikit-learn's: stands before its class among the bases."""

    rule: str
    time_limit: float | None
    nested: Any
    certificate_: SearchCertificate

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Try all candidates by cross-validation and fit the best one to all rows.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            The columns to predict from.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            What to predict.
        **params
            ``groups`` for the splitter, ``sample_weight`` for ``fit``, and what else scikit-learn's class
            takes; entries with as many rows as X are split with it.

        Returns
        -------
        GridSearchCV or RandomizedSearchCV
            The search itself, fitted.
        """
        self._check_search()
        if self._hands_over(y, params):
            super().fit(X, y, **params)
            asked = len(self.cv_results_["params"]) * self.n_splits_
            self.certificate_ = SearchCertificate(asked, asked, without_claim=asked)
            search = None
        else:
            search = self._fit_shared(X, y, params)
        if self.nested is not None and (search is None or search.stopped_by is None):
            self._assess(X, y, params)
        if search is not None and search.stopped_by == CTRL_C:
            raise KeyboardInterrupt
        return self

    # -- before --------------------------------------------------------------------------------------------

    def _check_search(self) -> None:
        self._validate_params()
        check_option("rule", self.rule, RULES)
        check_number("time_limit", self.time_limit, above=0, optional=True)
        name, space = self._space()
        check_grid(name, space)
        check_names(self.estimator, _names(space))
        if self.rule == "1se":
            if callable(self.refit):
                raise InputError("rule='1se' and a function as refit both choose. Leave one of them out.")
            require_order(self.estimator, _names(space))
        if self.nested is not None:
            self._check_nested(isinstance(self.scoring, list | tuple | set | dict))

    def _check_nested(self, several_metrics: bool) -> None:
        if several_metrics and not isinstance(self.refit, str):
            raise InputError(
                f"nested={self.nested!r} scores what each search chooses, and refit={self.refit!r} does not "
                "say which of several metrics that is by. Name one of them as refit."
            )
        if not hasattr(self.cv, "split") and isinstance(self.cv, Iterable):
            raise InputError(
                "cv holds row numbers of all rows, and with nested each search has other rows to split. Pass "
                "a number of folds or a splitter as cv; row numbers may be passed as nested."
            )

    def _hands_over(self, y: Any, params: dict[str, Any]) -> bool:
        """Return whether this is a search that scikit-learn knows more about."""
        if y is None or hasattr(self, "_skl_callbacks"):
            return True
        if set(params) - {"groups", weight_parameter(self.estimator)}:
            return True
        return plan_of(self.estimator) is None and self.time_limit is None

    # -- the search ----------------------------------------------------------------------------------------

    def _fit_shared(self, X: Any, y: Any, params: dict[str, Any]) -> Search:
        scorers, metric = self._get_scorers()
        X, y = indexable(X, y)
        params = _check_method_params(X, params=params)
        routed = self._get_routed_params_for_fit(params)
        cv = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        self._checked_cv_orig = cv
        search = Search(
            clone(self.estimator),
            list(self._candidates()),
            X,
            y,
            make_splits(cv, X, y, routed.splitter.split),
            Evaluation(
                scorers,
                self.error_score,
                self.return_train_score,
                routed.estimator.fit,
                routed.scorer.score,
                self.refit if isinstance(self.refit, str) else None,
            ),
        )
        with progress(search.asked, self.verbose > 0) as show:
            search.run(self._jobs(scorers, X), self.time_limit, show)
        results = self._results(search)
        metrics = search.metrics()
        self.multimetric_ = metrics is not None
        if callable(self.scoring) and self.multimetric_:
            self._check_refit_for_multimetric(metrics)
            metric = self.refit
        self._choose(results, metric)
        self.scorer_ = scorers._scorers if isinstance(scorers, _MultimetricScorer) else scorers
        self.cv_results_ = results
        self.certificate_ = search.certificate()
        if self.refit:  # the last: Ctrl-C may end it
            self._fit_best(X, y, routed.estimator.fit)
        if search.stopped_by not in (None, CTRL_C):
            done = len(search.outcomes)
            text = (
                f"Stopped by {search.stopped_by} after {done} of {search.asked} fits; the best of what was "
                f"finished was chosen ({self.n_splits_} of {len(search.splits)} folds). Allow more time, or "
                "try fewer candidates."
            )
            warn(StoppedEarly(text))
        return search

    def _jobs(self, scorer: Any, X: Any) -> int | None:
        """Return on how many threads to work; a function of the user's is not called by several at a time."""
        if self.n_jobs is None and math.prod(np.shape(X)) < FEW_VALUES:
            return 1
        several = scorer._scorers.values() if isinstance(scorer, _MultimetricScorer) else [scorer]
        known = all(type(one).__module__.startswith("sklearn.") for one in several)
        return self.n_jobs if known or self.n_jobs is not None else 1

    def _results(self, search: Search) -> dict[str, Any]:
        """Return ``cv_results_`` of the folds that at least one candidate has finished."""
        folds = _finished_folds(search)
        self.n_splits_ = len(folds)
        none = Outcome(search.evaluation.every(np.nan), search.evaluation.every(np.nan))
        places = [(candidate, fold) for candidate in range(len(search.candidates)) for fold in folds]
        self._report_failures(search)
        metrics = search.metrics()
        out = [search.outcomes.get(place, none).to_sklearn(metrics) for place in places]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "One or more of the t", UserWarning)  # said better
            results: dict[str, Any] = self._format_results(search.candidates, len(folds), out)
        self._report_scores(search)
        return results

    def _report_failures(self, search: Search) -> None:
        """Warn of fits that failed, by fold and candidate; raise where all of them did."""
        failed = {place: one.error for place, one in search.outcomes.items() if one.error is not None}
        if not failed:
            return
        (candidate, fold), trace = next(iter(failed.items()))
        reason = trace.strip().splitlines()[-1]
        count, total = len(failed), len(search.outcomes)
        first = f"The first was fold {fold} with {search.candidates[candidate]}: {reason}"
        if count == total:
            raise InputError(
                f"All the {total} fits failed. {first}\nUse error_score='raise' to see where it comes from."
            )
        folds = sorted({fold for _, fold in failed})
        said = ", ".join(map(str, folds[:10])) + ", ..." * (len(folds) > 10)
        warn(
            f"{count} fits failed out of a total of {total}, in fold{'s' * (len(folds) > 1)} {said} (counted "
            f"from 0); their scores are set to {self.error_score}. {first}\nUse error_score='raise' to see "
            "where it comes from.",
            FitFailedWarning,
        )

    def _report_scores(self, search: Search) -> None:
        """Warn of scores that failed or are not finite although the fit was done, by fold and candidate."""
        failed = {place: one.score_error for place, one in search.outcomes.items() if one.score_error}
        if failed:
            (candidate, fold), trace = next(iter(failed.items()))
            warn(
                f"Scoring failed for {len(failed)} of {len(search.outcomes)} fits; their scores are set to "
                f"{self.error_score}. The first was fold {fold} (counted from 0) with "
                f"{search.candidates[candidate]}: {trace.strip().splitlines()[-1]}\nUse error_score='raise' "
                "to see where it comes from.",
                SixfoldWarning,
            )
        for which in ("test", "train") if self.return_train_score else ("test",):
            for (candidate, fold), one in search.outcomes.items():
                scores = one.test_scores if which == "test" else one.train_scores
                scores = scores if isinstance(scores, dict) else {"score": scores}
                bad = [name for name, value in scores.items() if not np.isfinite(value)]
                if bad and one.error is None and one.score_error is None:
                    warn(
                        f"One or more of the {which} scores are non-finite: the {bad[0]} of "
                        f"{search.candidates[candidate]} on fold {fold} (counted from 0) is "
                        f"{scores[bad[0]]}. Candidates whose mean is not a number are ranked last: use a "
                        "scorer that is defined on every fold, or larger folds.",
                        SixfoldWarning,
                    )
                    break

    def _choose(self, results: dict[str, Any], metric: Any) -> None:
        """Set which candidate is the best."""
        if not self.refit and self.multimetric_:
            return
        if self.rule == "1se":
            self.best_index_ = simplest_within_one_error(self.estimator, results, metric, self.n_splits_)
        else:
            self.best_index_ = self._select_best_index(self.refit, metric, results)
        if not callable(self.refit):
            self.best_score_ = results[f"mean_test_{metric}"][self.best_index_]
        self.best_params_ = results["params"][self.best_index_]

    def _fit_best(self, X: Any, y: Any, parameters: dict[str, Any], time_limit: float | None = None) -> None:
        start = time.time()
        model = with_setting(self.estimator, self.best_params_)
        with limited_time(model, time_limit):
            self.best_estimator_ = model.fit(X, y, **parameters)
        self.refit_time_ = time.time() - start
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_

    # -- nested --------------------------------------------------------------------------------------------

    def _assess(self, X: Any, y: Any, params: dict[str, Any]) -> None:
        """Search anew on the training rows of each outer fold and score its choice on the others."""
        self._check_nested(self.multimetric_)
        X, y = indexable(X, y)
        routed = self._get_routed_params_for_fit(params)
        cv = check_cv(self.nested, y, classifier=is_classifier(self.estimator))
        grouping = {name: value for name, value in params.items() if name == "groups"}
        inner = clone(self).set_params(nested=None, refit=self.refit or True, verbose=0)
        scores, chosen = [], []
        for train, test in make_splits(cv, X, y, grouping):
            own = _check_method_params(X, params=params, indices=train)
            inner.fit(*_safe_split(self.estimator, X, y, train), **own)
            given = _check_method_params(X, params=routed.scorer.score, indices=test)
            scores.append(inner.score(*_safe_split(self.estimator, X, y, test, train), **given))
            chosen.append(inner.best_params_)
        self.nested_scores_, self.nested_params_ = np.array(scores), chosen

    def plot(self, **options: Any) -> Any:
        """Draw the scores over the parameters; see :mod:`sixfold.plot`.

        Parameters
        ----------
        **options
            Those of :func:`sixfold.plot.validation_curve` or :func:`sixfold.plot.heat_map`.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from sixfold.explain.plots.choose import plot_search

        return plot_search(self, **options)


def _finished_folds(search: Search) -> list[int]:
    """Return the folds that are done for the candidate with the most of them."""
    done: dict[int, list[int]] = {}
    for candidate, fold in search.outcomes:
        done.setdefault(candidate, []).append(fold)
    if not done:
        if search.stopped_by == CTRL_C:
            raise KeyboardInterrupt
        raise TimeLimitReached(
            f"The search was stopped by {search.stopped_by} before the first fit was done. Allow more time."
        )
    most: list[int] = max(done.values(), key=len)
    return sorted(most)


class GridSearchCV(SharedWorkSearch, model_selection.GridSearchCV):
    """Try every combination of parameter values by cross-validation.

    A drop-in for scikit-learn's class that does the work candidates share once: all k from one search for
    neighbours, all penalties from one factorisation, all depths from one tree, and so on; pipelines that end
    with one of our learners keep the gain. Scores, ranks and choice are those of separate fits. Models that
    are not ours are handed over to scikit-learn.

    Parameters
    ----------
    estimator : estimator
        A learner, or a pipeline.
    param_grid : dict or list of dicts
        Parameter names and the values to try; of a list, each dictionary is a grid of its own.
    scoring : str, callable, list, tuple or dict, default=None
        As in scikit-learn; None is the estimator's own score.
    n_jobs : int, default=None
        How many folds and groups of candidates are worked on at the same time, on threads; None or -1 for as
        many as there are cores, but None for one where ``scoring`` is a function or the table is small.
    refit : bool, str or callable, default=True
        Whether to fit the best candidate to all rows; with several metrics, by which of them it is the best.
    cv : int, splitter or iterable, default=None
        The folds; None for five.
    verbose : int, default=0
        Whether to show a bar with the best score so far and the time left.
    pre_dispatch : int or str, default="2*n_jobs"
        For models that are handed over.
    error_score : "raise" or float, default=nan
        The score of a fit that fails; it is reported with its fold, and the others go on.
    return_train_score : bool, default=False
        Whether to score the training rows, too.
    rule : {"best", "1se"}, default="best"
        The candidate with the best mean score, or the simplest within one standard error of it: more
        neighbours, a stronger penalty, a smaller tree, a smaller C and gamma.
    time_limit : float, default=None
        Most seconds of the search; what is finished then is compared, and the best of it fitted. With
        ``nested``, each of its searches has as many of its own.
    nested : int, splitter or iterable, default=None
        Outer folds for an honest assessment: on each, the whole search is made anew on the training rows and
        its choice scored on the held-out ones, into ``nested_scores_`` and ``nested_params_``.

    Attributes
    ----------
    cv_results_ : dict of arrays
    best_estimator_, best_score_, best_params_, best_index_
    scorer_, n_splits_, refit_time_, multimetric_, classes_, n_features_in_, feature_names_in_
        As in scikit-learn.
    certificate_ : SearchCertificate
        How many fits were asked for, how many problems were solved for them, the largest gap among them, and
        how many fits failed, or could not share work.
    nested_scores_ : ndarray of shape (n_outer_folds,)
        With ``nested``: the score of the whole search on each outer fold.
    nested_params_ : list of dicts
        With ``nested``: what was chosen there.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sixfold import GridSearchCV, KNeighborsClassifier
    >>> search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": range(1, 31)})
    >>> search.fit(*load_iris(return_X_y=True)).best_params_
    {'n_neighbors': 10}
    >>> print(search.certificate_)
    search: 150 fits from 5 solved problems; all are optimal
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: Any = "2*n_jobs",
        error_score: Any = np.nan,
        return_train_score: bool = False,
        rule: str = "best",
        time_limit: float | None = None,
        nested: Any = None,
    ) -> None:
        super().__init__(
            estimator,
            param_grid,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.rule = rule
        self.time_limit = time_limit
        self.nested = nested

    def _space(self) -> tuple[str, Any]:
        return "param_grid", self.param_grid

    def _candidates(self) -> list[dict[str, Any]]:
        return list(ParameterGrid(self.param_grid))


class RandomizedSearchCV(SharedWorkSearch, model_selection.RandomizedSearchCV):
    """Try some parameter settings, drawn at random, by cross-validation.

    scikit-learn's class with the work that candidates share done once; see :class:`GridSearchCV`.

    Parameters
    ----------
    estimator : estimator
        A learner, or a pipeline.
    param_distributions : dict or list of dicts
        Parameter names and lists of values, or distributions of :mod:`scipy.stats`.
    n_iter : int, default=10
        How many settings are drawn.
    scoring, n_jobs, refit, cv, verbose, pre_dispatch
        As in :class:`GridSearchCV`.
    random_state : int, RandomState or None, default=None
        The seed of the drawing.
    error_score, return_train_score, rule, time_limit, nested
        As in :class:`GridSearchCV`.

    Attributes
    ----------
    cv_results_, best_estimator_, best_score_, best_params_, best_index_, certificate_
        As in :class:`GridSearchCV`.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from sklearn.datasets import load_iris
    >>> from sixfold import RandomizedSearchCV, SVC
    >>> space = {"C": loguniform(1e-2, 1e3), "gamma": loguniform(1e-3, 1e1)}
    >>> search = RandomizedSearchCV(SVC(), space, n_iter=20, random_state=0)
    >>> print(f"{search.fit(*load_iris(return_X_y=True)).best_score_:.2f}")
    0.99
    """

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        n_iter: int = 10,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: Any = "2*n_jobs",
        random_state: Any = None,
        error_score: Any = np.nan,
        return_train_score: bool = False,
        rule: str = "best",
        time_limit: float | None = None,
        nested: Any = None,
    ) -> None:
        super().__init__(
            estimator,
            param_distributions,
            n_iter=n_iter,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            random_state=random_state,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.rule = rule
        self.time_limit = time_limit
        self.nested = nested

    def _space(self) -> tuple[str, Any]:
        return "param_distributions", self.param_distributions

    def _candidates(self) -> list[dict[str, Any]]:
        return list(ParameterSampler(self.param_distributions, self.n_iter, random_state=self.random_state))


def _names(space: Any) -> dict[str, None]:
    """Return the names in a grid, or in several, in their order."""
    grids: Iterable[Any] = [space] if hasattr(space, "keys") else space
    return dict.fromkeys(name for grid in grids for name in grid)
