"""A yardstick: scikit-learn's gradient boosting of trees, which no single learner here tries to be.

It is fitted with its default parameters to the same training rows, categories as such, and scored once on the
same test rows. The chosen model is behind it where

    score of gradient boosting - score of the model > standard deviation of the model over the folds:

with five folds and a fifth of the rows held out, a fold has as many rows as the test part, so that much may
be chance.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from sixfold.app.report.answers import scorer_of
from sixfold.app.report.column_checks import some_rows
from sixfold.app.report.column_codes import ColumnCodes

Array = NDArray[Any]

NAME = "gradient boosting (scikit-learn's HistGradientBoosting)"
MOST_ROWS = 20_000  # of training
SECONDS_AN_ENTRY = 2e-6  # of a training table, for each class: 100 rounds of boosting
LEAST_SECONDS = 0.1
SHARE_OF_TIME = 0.05  # of a time limit
MOST_CLASSES = 100  # as many trees are grown in each of the rounds


@dataclass(frozen=True)
class Yardstick:
    """What gradient boosting scores.

    Attributes
    ----------
    score : float or None
        On the test rows; None where it was not fitted.
    rows : int
        That it was fitted to.
    skipped : str
        Why it was not fitted; "" where it was.
    """

    score: float | None
    rows: int = 0
    skipped: str = ""


@dataclass(frozen=True)
class SampledRows:
    """Rows as numbers, and which of them are for training and for the test.

    Attributes
    ----------
    codes : ColumnCodes
    y : ndarray
    train, test : ndarray of int
        Places in ``codes`` and ``y``.
    weight : ndarray or None
    """

    codes: ColumnCodes
    y: Array
    train: Array
    test: Array
    weight: Array | None = None


def measure_yardstick(
    given: SampledRows, *, task: str, scoring: Any, time_limit: float | None, seed: int
) -> Yardstick:
    """Return the score of gradient boosting on the test rows, or why there is none."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    values, y, test = given.codes.values, given.y, given.test
    rows = some_rows(given.train, MOST_ROWS, seed)
    classes = np.unique(y[rows]).size if task == "classification" else 1
    seconds = LEAST_SECONDS + SECONDS_AN_ENTRY * rows.size * values.shape[1] * max(classes - 1, 1)
    used = np.logical_not(np.isnan(values[rows]).all(axis=0))
    skipped = _reason_to_skip(test.size, classes, seconds, time_limit, bool(used.any()))
    if skipped:
        return Yardstick(None, 0, skipped)
    model_class = (
        HistGradientBoostingClassifier if task == "classification" else HistGradientBoostingRegressor
    )
    model = model_class(categorical_features=given.codes.is_category[used], random_state=seed)
    weight = None if given.weight is None else given.weight[rows]
    # One thread: on few rows several wait for each other most of the time, and sums are always the same.
    with warnings.catch_warnings(), threadpool_limits(1, user_api="openmp"):
        warnings.simplefilter("ignore")
        try:
            model.fit(values[rows][:, used], y[rows], weight)
            score = float(scorer_of(model, scoring)(model, values[test][:, used], y[test]))
        except ValueError as error:
            return Yardstick(None, 0, str(error).splitlines()[0])
    return Yardstick(score if np.isfinite(score) else None, int(rows.size))


def _reason_to_skip(
    test_rows: int, classes: int, seconds: float, time_limit: float | None, has_values: bool
) -> str:
    if test_rows == 0:
        return "no rows were held out to score it on"
    if classes > MOST_CLASSES:
        return f"{classes:,} classes would take it {classes:,} trees a round"
    if time_limit is not None and seconds > SHARE_OF_TIME * time_limit:
        return f"it would take about {seconds:.1f} s of a time limit of {time_limit:g} s"
    return "" if has_values else "no column has a value in the training rows"
