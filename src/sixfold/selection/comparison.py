"""Compare learners: each tuned on a grid that suits the table, all on the same folds, and a test at the end.

    rows = training rows + test rows, which are looked at once, by the tuned models
    each learner    the best candidate of its grid by cross-validation on the training rows, fitted to all
    leaderboard     by mean score, with a corrected paired t-test of each against the first

The mean score of a tuned model is somewhat too good, since it was chosen for it; the test score is not.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold, check_cv, train_test_split
from sklearn.utils import indexable
from sklearn.utils._indexing import _safe_indexing

from sixfold.data.checks import check_weight
from sixfold.errors import InputError, check_number, check_option
from sixfold.selection.contenders import BASELINE, Contender, contenders
from sixfold.selection.folds import make_splits
from sixfold.selection.grid_search import GridSearchCV
from sixfold.selection.leaderboard import Comparison, Entry
from sixfold.selection.paired_test import corrected_p_value
from sixfold.selection.plans.groups import weight_parameter

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
    each category, unknown values are filled in by the median. A baseline that ignores the columns takes part.

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
        Rows of one group stay together where ``cv`` keeps groups; the test rows are then whole groups.
    n_jobs : int, default=None
        As in :class:`GridSearchCV`.
    time_limit : float, default=None
        Most seconds; learners that are left when time is up are left out, and said to be.
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
    _check(test_size, time_limit)
    X, y, groups = indexable(X if hasattr(X, "shape") else np.asarray(X), y, groups)
    y = _target(y)
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
        limit = None if math.isinf(left) else max(left / (len(who) - number), 1e-3)
        trial = _Trial(one, folds, scoring, rule, n_jobs, limit)
        entries.append(trial.run(X_train, y_train, None if weight is None else weight[train], held))
    tested = 0 if test is None else test.size
    return Comparison(_ranked(entries, share), task, _name_of(scoring, task), train.size, tested)


def _check(test_size: Any, time_limit: Any) -> None:
    check_number("test_size", test_size, at_least=0, finite=True)
    if test_size >= 1:
        raise InputError(
            f"test_size={test_size!r} leaves no row to learn from: a share below 1 is needed, such as 0.2."
        )
    check_number("time_limit", time_limit, above=0, optional=True)


def _target(y: Any) -> Array:
    y = y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y)
    if y.ndim != 1:
        raise InputError(f"y has {y.ndim} dimensions: compare takes one target for each row.")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise InputError(
            f"y is not a finite number in row {int(np.flatnonzero(~np.isfinite(y))[0])}. Leave it out."
        )
    return y


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
        from sklearn.model_selection import GroupShuffleSplit

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
        if task == "classification" and rarest >= 2:
            cv = StratifiedKFold(min(cv, rarest), shuffle=True, random_state=seed)
        else:
            cv = KFold(min(cv, y.size), shuffle=True, random_state=seed)
    splitter = check_cv(cv, y, classifier=task == "classification")
    return make_splits(splitter, X, y, {} if groups is None else {"groups": groups})


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
            try:
                self.search.fit(X, y, **given)
            except (ValueError, TimeoutError) as error:
                return Entry(one.name, left_out=str(error).strip().splitlines()[0])
            spent, search = time.perf_counter() - start, self.search
            test, seconds = math.nan, math.nan
            if held is not None:
                start = time.perf_counter()
                test = float(search.scorer_(search.best_estimator_, *held))
                seconds = time.perf_counter() - start
        results, chosen = search.cv_results_, search.best_index_
        scores = np.array([results[f"split{fold}_test_score"][chosen] for fold in range(search.n_splits_)])
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
            tuple(notes),
            search,
        )


def _certificate(model: Any) -> str:
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    found = getattr(last, "certificate_", None)
    return "" if found is None else str(found)


@contextmanager
def _noted() -> Iterator[list[str]]:
    """Give the warnings of what is done here, each once, when it is done."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    notes.extend(dict.fromkeys(str(one.message) for one in caught))


def _ranked(entries: list[Entry], test_share: float) -> list[Entry]:
    """Return the entries by mean score, each with its p-value against the best."""
    there = [one for one in entries if not one.left_out]
    there.sort(key=lambda one: -one.mean if not math.isnan(one.mean) else math.inf)
    first = there[0]
    compared = [
        one
        if one is first or one.scores.size != first.scores.size
        else replace(one, p_value=corrected_p_value(first.scores, one.scores, test_share))
        for one in there
    ]
    return [*compared, *(one for one in entries if one.left_out)]
