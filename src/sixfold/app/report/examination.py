"""Everything that is found out about a fit beyond the fit itself, once, for the cautions and the page.

test rows asked once -> score with interval -> importance, gradient boosting, columns alone, drift, copies
"""

from __future__ import annotations

import math
import warnings
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.app.fitting import FitResult
from sixfold.app.report.answers import Answers, score_interval, scorer_of
from sixfold.app.report.column_checks import (
    Dependence,
    find_dependence,
    perfect_score,
    scores_alone,
    some_rows,
)
from sixfold.app.report.column_codes import ColumnCodes, column_codes
from sixfold.app.report.importance import Importance, permutation_importance
from sixfold.app.report.row_checks import Copies, Drift, drift_with_order, find_copies, find_drift
from sixfold.app.report.yardstick import SampledRows, Yardstick, measure_yardstick
from sixfold.errors import PerfectSeparation
from sixfold.selection.leaderboard import BASELINE, Entry

Array = NDArray[Any]

MOST_SHOWN_ROWS = 20_000  # test rows that are asked
MOST_CODED = 40_000  # training rows whose columns are looked at one by one
MOST_COMPARED = 2e9  # entries of training rows that are compared with test rows
MOST_SEPARATED = 3e5  # entries of a table that are searched for a separating plane


@dataclass(frozen=True)
class Separation:
    """Whether planes separate classes in the training rows.

    Attributes
    ----------
    classes : list of str
        Those that a plane separates from all others.
    columns : list of str
        By which, where that is known.
    every : bool
        Whether all classes are.
    """

    classes: list[str]
    columns: list[str]
    every: bool


@dataclass(frozen=True)
class Examination:
    """What was found.

    Attributes
    ----------
    codes : ColumnCodes
        The columns as numbers, of all rows or of a sample.
    answers : Answers or None
        Of the chosen model, about the rows ``asked``; None where there are no test rows.
    asked : ndarray of int
        Numbers of the test rows that were asked: all, or up to 20,000 of them.
    score : float
        On these rows; NaN where there are none.
    low, high : float or None
        Its 95% interval, and ``interval``, how it was found.
    baseline : Entry or None
    importance : list of Importance
    importance_rows : int
    yardstick : Yardstick
    alone : dict of str to float
        The score of each column alone.
    perfect : float
        The highest score there is.
    drift, order_drift : list of Drift
        Between training and test part, and between the beginning and the end of the file.
    sorted_by : str
        "target" where the rows are sorted by it.
    copies : Copies
    without_copies : float or None
        The score on the test rows that are copies of no training row.
    dependence : Dependence
    separation : Separation or None
    """

    codes: ColumnCodes
    answers: Any
    asked: Array
    score: float
    low: float | None
    high: float | None
    interval: str
    baseline: Entry | None
    importance: list[Importance]
    importance_rows: int
    yardstick: Yardstick
    alone: dict[str, float]
    perfect: float
    drift: list[Drift]
    order_drift: list[Drift]
    sorted_by: str
    copies: Copies
    without_copies: float | None
    dependence: Dependence
    separation: Separation | None

    def y_asked(self, result: FitResult) -> Array:
        """Return the targets of the rows that were asked."""
        return result.y[self.asked]


_LAST: list[tuple[weakref.ref[FitResult], Examination]] = []


def examine(result: FitResult) -> Examination:
    """Return what there is to know about a fit; that of the last one is remembered."""
    if not (_LAST and _LAST[0][0]() is result):
        _LAST[:] = [(weakref.ref(result), _examine(result))]
    return _LAST[0][1]


def _examine(result: FitResult) -> Examination:
    seed, model, scoring = result.options.seed, result.chosen.model, result.scoring
    scorer = scorer_of(model, scoring)
    asked = some_rows(result.test, _most_asked(model, result), seed)
    y_asked, X_asked = result.y[asked], result.X[asked]
    sample = _sample(result, asked)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a test part without a class has been said to have none
        answers = Answers(model, X_asked) if asked.size else None
        score = float(scorer(answers, answers.rows, y_asked)) if answers is not None else math.nan
        low, high, interval = (None, None, "")
        if answers is not None:
            low, high, interval = score_interval(answers, y_asked, scorer, scoring, seed)
        importance, importance_rows = (
            permutation_importance(model, X_asked, y_asked, scorer, seed) if asked.size else ([], 0)
        )
        yardstick = measure_yardstick(
            sample, task=result.task, scoring=scoring, time_limit=result.options.time_limit, seed=seed
        )
    order_drift, sorted_by = drift_with_order(sample.codes, sample.y, result.task, seed)
    copies = find_copies(result.X, result.y, result.train, asked, result.task)
    return Examination(
        codes=sample.codes,
        answers=answers,
        asked=asked,
        score=score,
        low=low,
        high=high,
        interval=interval,
        baseline=next((one for one in result.comparison.entries if one.name == BASELINE), None),
        importance=importance,
        importance_rows=importance_rows,
        yardstick=yardstick,
        alone=scores_alone(
            sample.codes, sample.y, sample.train, task=result.task, scoring=scoring, seed=seed
        ),
        perfect=perfect_score(scoring),
        drift=find_drift(sample.codes, sample.train, sample.test, seed),
        order_drift=order_drift,
        sorted_by=sorted_by,
        copies=copies,
        without_copies=_score_without(answers, y_asked, scorer, copies),
        dependence=find_dependence(sample.codes, sample.train, seed),
        separation=find_separation(result),
    )


def _sample(result: FitResult, asked: Array) -> SampledRows:
    """Return rows as numbers: training rows up to 40,000, and the test rows that were asked."""
    train = some_rows(result.train, MOST_CODED, result.options.seed)
    rows = np.sort(np.concatenate([train, asked]))
    return SampledRows(
        column_codes(result.X[rows]),
        result.y[rows],
        np.searchsorted(rows, train),
        np.searchsorted(rows, asked),
        None if result.weight is None else result.weight[rows],
    )


def last_step(model: Any) -> Any:
    """Return the learner of a pipeline, or the model itself."""
    return model.steps[-1][1] if hasattr(model, "steps") else model


def encoded_names(model: Any) -> list[str] | None:
    """Return what the columns are called that the learner of a pipeline sees; None where none are known."""
    last = last_step(model)
    if last is not model:
        try:
            names = model[:-1].get_feature_names_out()
        except (AttributeError, ValueError, TypeError):
            names = getattr(last, "feature_names_in_", None)
    else:
        names = getattr(last, "feature_names_in_", None)
    if names is None or len(names) != getattr(last, "n_features_in_", len(names)):
        return None
    return [str(name) for name in names]


def _most_asked(model: Any, result: FitResult) -> int:
    """Return how many test rows are asked: fewer where each is compared with many training rows."""
    last = last_step(model)
    stored = getattr(last, "n_samples_fit_", None) or len(getattr(last, "support_", ())) or 1
    width = getattr(last, "n_features_in_", result.X.width) or 1
    return int(min(MOST_SHOWN_ROWS, max(500, MOST_COMPARED / (float(stored) * width))))


def _score_without(answers: Answers | None, y: Array, scorer: Any, copies: Copies) -> float | None:
    """Return the score on test rows that are no copies, where there are copies and enough others."""
    others = np.flatnonzero(~copies.test_rows)
    if answers is None or others.size == y.size or others.size < 5:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            score = float(scorer(answers, others, y[others]))
        except ValueError:
            return None
    return score if math.isfinite(score) else None


# -- separation ----------------------------------------------------------------------------------------------


def find_separation(result: FitResult) -> Separation | None:
    """Return which classes planes separate in the training rows, from what the learners have proven."""
    if result.task != "classification":
        return None
    found = _told_by_perceptron(result)
    if found is None or not (found.classes or found.every):
        return found
    return Separation(found.classes, _separating_columns(result) if found.every else [], found.every)


def _told_by_perceptron(result: FitResult) -> Separation | None:
    """Return what the perceptron's certificate proves: a positive margin is that of a separating plane."""
    for entry in result.comparison.entries:
        last = last_step(entry.model)
        certificate = getattr(last, "certificate_", None)
        if entry.name != "perceptron" or certificate is None:
            continue
        margins = np.atleast_1d(np.asarray(certificate.details.get("margin", ()), dtype=float))
        apart = margins > 0
        if not apart.any():
            return Separation([], [], False)
        classes = [str(label) for label in last.classes_]
        separated = [label for label, is_apart in zip(classes, apart, strict=False) if is_apart]
        if margins.size == 1 or apart.all():
            return Separation(classes, [], True)
        return Separation(separated, [], False)
    return None


def _separating_columns(result: FitResult) -> list[str]:
    """Return by which columns the classes are separated; none where the table is too large to ask."""
    from sixfold.learners.linear.logistic_regression import LogisticRegression

    model = result.comparison["perceptron"].model
    if not hasattr(model, "steps"):
        return []
    if result.train.size * last_step(model).n_features_in_ > MOST_SEPARATED:
        return []
    encoded = model[:-1].transform(result.X[result.train])
    probe = LogisticRegression(penalty=None, on_separation="raise")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            probe.fit(encoded, result.y[result.train])
        except PerfectSeparation as found:
            names = encoded_names(model)
            return _called(found.columns, names)
        except ValueError:
            return []
    return []


def _called(columns: tuple[str, ...], names: list[str] | None) -> list[str]:
    """Return the names of encoded columns, which an array calls x0, x1 and so on."""
    if names is None:
        return []
    known = {f"x{place}": name for place, name in enumerate(names)}
    return [known.get(column, column) for column in columns]
