"""Compare learners: each tuned on a grid that suits the table, all on the same folds, and a test at the end.

    rows = training rows + test rows, which are looked at once, by the tuned models
    each learner    the best candidate of its grid by cross-validation on the training rows, fitted to all
    leaderboard     by mean score, with a corrected paired t-test of each against the first

Learners that did not finish all folds when time was up stand below those that did, and are not tested.
The mean score of a tuned model is somewhat too good, since it was chosen for it; the test score is not.
"""

from __future__ import annotations

import math
import re
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import get_scorer_names
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    check_cv,
    train_test_split,
)
from sklearn.utils import indexable
from sklearn.utils._indexing import _safe_indexing

from sixfold.data.checks import check_weight
from sixfold.data.mixed_table import GOWER
from sixfold.errors import InputError, TimeLimitReached, check_number, check_option
from sixfold.selection.contenders import Contender, contenders
from sixfold.selection.folds import make_splits
from sixfold.selection.grid_search import GridSearchCV
from sixfold.selection.leaderboard import BASELINE, Comparison, Entry
from sixfold.selection.paired_test import corrected_p_value
from sixfold.selection.plans.groups import weight_parameter
from sixfold.selection.rules import RULES

Array = NDArray[Any]

FOLDS = 5
FEW_VALUES = 20  # whole numbers with at most so many different ones are classes, unless said otherwise


def compare(
    X: Any,
    y: Any,
    learners: Any = "all",
    *,
    task: str = "auto",
    scoring: Any = None,
    cv: Any = FOLDS,
    test_size: float = 0.2,
    rule: str = "best",
    sample_weight: Any = None,
    groups: Any = None,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    random_state: Any = 0,
    verbose: int = 0,
) -> Comparison:
    """Tune every learner that suits the task, and rank them.

    Columns of numbers are standardised (trees take them as they are), columns of text become one column for
    each category, unknown values are filled in by the median, dates become numbers of days. Text with few
    rows for each value, such as names, is left out and named below the table: fewer than five for trees,
    fewer than two for the others. A baseline that ignores the columns takes part.

    Parameters
    ----------
    X : array, table or sparse matrix of shape (n_samples, n_features)
        The columns to predict from: numbers, or in a table text and categories too.
    y : array of shape (n_samples,)
        Labels or numbers to predict.
    learners : "all", str or sequence of str, default="all"
        Which: "logistic regression", "logistic regression (l1)", "perceptron", "linear SVM", "SVM (rbf)",
        "tree", "nearest neighbours"; for numbers "ridge regression", "lasso", "absolute loss", "nearest
        neighbours".
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" takes text, booleans and up to 20 different whole numbers for classes.
    scoring : str or callable, default=None
        By what models are ranked; None is accuracy, or R-squared for numbers.
    cv : int, splitter or iterable, default=5
        The folds of the training rows; a number is lowered to the rows of the rarest class.
    test_size : float, default=0.2
        The share of rows that is held out for the test at the end; 0 for none.
    rule : {"best", "1se"}, default="best"
        How a candidate is chosen from its grid; see :class:`GridSearchCV`.
    sample_weight : array of shape (n_samples,), default=None
        How much each row counts in the fits.
    groups : array of shape (n_samples,), default=None
        Rows of one group stay together, in the test rows and in the folds where ``cv`` is a number or a
        splitter that keeps groups.
    n_jobs : int, default=None
        As in :class:`GridSearchCV`.
    time_limit : float, default=None
        Most seconds, shared among the learners; those that did not finish all folds are marked and ranked
        below those that did, those that finished none are left out, and said to be.
    random_state : int, RandomState or None, default=0
        Draws the test rows and the folds.
    verbose : int, default=0
        Whether to show what is being done.

    Returns
    -------
    Comparison
        The leaderboard: prints as a table, ``to_frame()``, ``plot()``, and the tuned models.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sixfold import compare
    >>> X, y = load_iris(return_X_y=True)
    >>> result = compare(X, y, ["tree", "nearest neighbours"])
    >>> result.best.name, round(result.best.test, 2)
    ('nearest neighbours', 1.0)
    """
    _check(test_size, time_limit, scoring, rule)
    X, y, groups = indexable(X if hasattr(X, "shape") else np.asarray(X), _array(y), _array(groups))
    _check_target(y)
    task = _task(task, y)
    weight = check_weight(sample_weight, len(y))
    train, test = _parts(y, groups, test_size, task, random_state)
    X_train, y_train = _safe_indexing(X, train), y[train]
    folds = _folds(cv, X_train, y_train, None if groups is None else groups[train], task, random_state)
    share = sum(held.size for _, held in folds) / max(1, sum(kept.size for kept, _ in folds))
    end = math.inf if time_limit is None else time.perf_counter() + time_limit
    entries: list[Entry] = []
    who = contenders(task, X_train, y_train, learners)
    held = None if test is None else (_safe_indexing(X, test), y[test])
    for number, one in enumerate(who):
        left = end - time.perf_counter()
        if left <= 0 and number:
            entries.append(Entry(one.name, left_out=f"time_limit={time_limit:g} s was over"))
            continue
        if verbose:
            print(f"{one.name} ({number + 1} of {len(who)}) ...", flush=True)
        limit = None if math.isinf(left) or not number else left / (len(who) - number)
        trial = _Trial(one, folds, scoring, rule, n_jobs, limit)
        entries.append(trial.run(X_train, y_train, None if weight is None else weight[train], held))
    tested = 0 if test is None else test.size
    ranked = _ranked(entries, share, len(folds))
    return Comparison(ranked, task, _name_of(scoring, task), train.size, tested, len(folds))


def _check(test_size: Any, time_limit: Any, scoring: Any, rule: Any) -> None:
    check_number("test_size", test_size, at_least=0, finite=True)
    if test_size >= 1:
        raise InputError(
            f"test_size={test_size!r} leaves no row to learn from: a share below 1 is needed, such as 0.2."
        )
    check_number("time_limit", time_limit, above=0, optional=True)
    check_option("rule", rule, RULES)
    if scoring is None or callable(scoring) or scoring in get_scorer_names():
        return
    near = get_close_matches(str(scoring), get_scorer_names(), n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    raise InputError(
        f"scoring={scoring!r} is not the name of a score{hint} sklearn.metrics.get_scorer_names() lists "
        "them; a function of model, X and y will do as well."
    )


def _array(values: Any) -> Any:
    if values is None:
        return None
    return values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)


def _check_target(y: Array) -> None:
    if y.ndim != 1:
        raise InputError(f"y has {y.ndim} dimensions: compare takes one target for each row.")
    if y.dtype.kind in "mM":
        raise InputError("y holds dates or times. Turn them into numbers first, for instance days.")
    if y.dtype.kind == "f":
        missing = np.flatnonzero(~np.isfinite(y))
    else:
        missing = np.flatnonzero([GOWER.is_missing(value) for value in y] if y.dtype == object else [])
    if missing.size:
        more = f" and {missing.size - 1} more" * (missing.size > 1)
        what = "not a finite number" if y.dtype.kind == "f" else "missing"
        raise InputError(f"y is {what} in row {missing[0]}{more} (counted from 0). Leave such rows out.")


def _task(task: str, y: Array) -> str:
    check_option("task", task, ("auto", "classification", "regression"))
    if task != "auto":
        return task
    if y.dtype.kind in "OUSb":
        return "classification"
    whole = y.dtype.kind in "iu" or bool((y == np.round(y)).all())
    return "classification" if whole and np.unique(y).size <= FEW_VALUES else "regression"


def _parts(y: Array, groups: Any, test_size: float, task: str, seed: Any) -> tuple[Array, Array | None]:
    """Return the training rows and the test rows, if there are to be some."""
    rows = np.arange(y.shape[0])
    if test_size == 0:
        return rows, None
    if groups is not None:
        _group_count(groups)
        splitter = GroupShuffleSplit(1, test_size=test_size, random_state=seed)
        train, test = next(splitter.split(rows, y, groups))
        return train, test
    counts = np.unique(y.astype(str), return_counts=True)[1]
    wanted = max(test_size * y.size, 1) >= counts.size  # a test row of each class
    by_class = y if task == "classification" and counts.min() >= 2 and wanted else None
    train, test = train_test_split(rows, test_size=test_size, random_state=seed, stratify=by_class)
    return np.sort(train), np.sort(test)


def _folds(cv: Any, X: Any, y: Array, groups: Any, task: str, seed: Any) -> list[tuple[Array, Array]]:
    """Return the folds that all learners share."""
    if isinstance(cv, int | np.integer):
        check_number("cv", cv, at_least=2, whole=True)
        rarest = int(np.unique(y.astype(str), return_counts=True)[1].min())
        by_class = task == "classification" and rarest >= 2
        if groups is None:
            kind, most = (StratifiedKFold, rarest) if by_class else (KFold, y.size)
        else:
            kind, most = StratifiedGroupKFold if by_class else GroupKFold, _group_count(groups)
            most = min(most, rarest) if by_class else most
        cv = kind(min(cv, most), shuffle=True, random_state=seed)
    splitter = check_cv(cv, y, classifier=task == "classification")
    return make_splits(splitter, X, y, {} if groups is None else {"groups": groups})


def _group_count(groups: Array) -> int:
    count = int(np.unique(groups.astype(str)).size)
    if count < 2:
        raise InputError(f"The rows to be split are all of the group {groups[0]}: two groups are needed.")
    return count


def _name_of(scoring: Any, task: str) -> str:
    if scoring is None:
        return "accuracy" if task == "classification" else "R-squared"
    return scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "score")


class _Trial:
    """One learner: its search, its final fit, its test."""

    def __init__(
        self, one: Contender, folds: Any, scoring: Any, rule: str, n_jobs: int | None, limit: float | None
    ) -> None:
        self.one = one
        rule = "best" if one.name in (BASELINE, "perceptron") else rule  # nothing is simpler among these
        options = {"scoring": scoring, "cv": folds, "rule": rule, "n_jobs": n_jobs, "time_limit": limit}
        self.search = GridSearchCV(one.model, one.grid or {}, **options)

    def run(self, X: Any, y: Array, weight: Array | None, held: Any) -> Entry:
        """Return its line of the leaderboard."""
        one = self.one
        if one.left_out:
            return Entry(one.name, left_out=one.left_out)
        given = {} if weight is None else {weight_parameter(one.model): weight}
        with _noted() as notes:
            start = time.perf_counter()
            search, test, seconds = self.search, math.nan, math.nan
            try:
                search.fit(X, y, **given)
                spent, start = time.perf_counter() - start, time.perf_counter()
                results, chosen = search.cv_results_, search.best_index_
                scores = np.array([results[f"split{k}_test_score"][chosen] for k in range(search.n_splits_)])
                if held is not None:
                    test = float(search.scorer_(search.best_estimator_, *held))
                    seconds = time.perf_counter() - start
                elif np.isnan(scores).all():
                    search.scorer_(search.best_estimator_, X, y)  # says why
            except TimeLimitReached:
                return Entry(one.name, left_out="its share of the time was over before a fold was done")
            except Exception as error:  # of one learner: the others go on
                return Entry(one.name, left_out=_reason(error))
        return Entry(
            one.name,
            float(scores.mean()),
            float(scores.std()),
            scores,
            test,
            spent,
            search.refit_time_,
            seconds,
            {name.partition("__")[2] or name: value for name, value in search.best_params_.items()},
            _certificate(search.best_estimator_),
            (*one.notes, *notes),
            search,
        )


def _reason(error: Exception) -> str:
    """Return what an error says, without what the search puts before it."""
    said = (str(error).strip() or type(error).__name__).splitlines()[0]
    if isinstance(error, AttributeError) and "predict_proba" in said:
        return "it gives no probabilities, which this score needs"
    return re.sub(r"^All the \d+ fits failed\. The first was .*?\}: ([\w.]+: )?", "", said)


def _certificate(model: Any) -> str:
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    found = getattr(last, "certificate_", None)
    return "" if found is None else str(found)


@contextmanager
def _noted() -> Iterator[list[str]]:
    """Give the warnings of what is done here when it is done; of those that differ in numbers, the last."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    notes.extend({re.sub(r"\d+", "", str(one.message)): str(one.message) for one in caught}.values())


def _ranked(entries: list[Entry], test_share: float, folds: int) -> list[Entry]:
    """Return the entries by mean score, each with its p-value against the best.

    Those that finished fewer folds than another learner come later; the baseline, which always finishes,
    does not put them back.
    """
    there = [one for one in entries if not one.left_out]
    if not there:
        raise InputError(f"No learner could be fitted and scored. {entries[0].name}: {entries[0].left_out}")
    most = max((one.scores.size for one in there if one.name != BASELINE), default=folds)
    there.sort(key=lambda one: (one.scores.size < most, math.isnan(one.mean), -one.mean))
    first = there[0]
    compared = [
        one
        if one is first or min(one.scores.size, first.scores.size) < folds
        else replace(one, p_value=corrected_p_value(first.scores, one.scores, test_share))
        for one in there
    ]
    return [*compared, *(one for one in entries if one.left_out)]
