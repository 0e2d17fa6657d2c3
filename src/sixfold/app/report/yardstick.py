"""A yardstick: scikit-learn's gradient boosting of trees, which no single learner here tries to be.

It is fitted with its default parameters to the same training rows, categories as such, and scored once on the
same test rows. The chosen model is behind it where

    score of gradient boosting - score of the model > spread,    the model's standard deviation over the folds:

with five folds and a fifth of the rows held out, a fold has as many rows as the test part, so that much may be
chance.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from sixfold.app.report.answers import scorer_of
from sixfold.app.report.column_codes import ColumnCodes

Array = NDArray[Any]

NAME = "gradient boosting (scikit-learn's HistGradientBoosting)"
MOST_ROWS = 20_000  # of training
SECONDS_AN_ENTRY = 3e-6  # of a training table, for each class: 100 rounds of boosting on two cores
LEAST_SECONDS = 0.5
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


def measure_yardstick(
    codes: ColumnCodes,
    y: Array,
    train: Array,
    test: Array,
    *,
    task: str,
    scoring: Any,
    weight: Array | None,
    time_limit: float | None,
    seed: int,
) -> Yardstick:
    """Return the score of gradient boosting on the test rows, or why there is none."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    if test.size == 0:
        return Yardstick(None, 0, "no rows were held out to score it on")
    classes = np.unique(y[train]).size if task == "classification" else 1
    if classes > MOST_CLASSES:
        return Yardstick(None, 0, f"{classes:,} classes would take it {classes:,} trees a round")
    rows = _some(train, seed)
    seconds = LEAST_SECONDS + SECONDS_AN_ENTRY * rows.size * codes.values.shape[1] * max(classes - 1, 1)
    if time_limit is not None and seconds > SHARE_OF_TIME * time_limit:
        return Yardstick(None, 0, f"it would take about {seconds:.0f} s of a time limit of {time_limit:g} s")
    used = _not_all_missing(codes.values[rows])
    if not used.any():
        return Yardstick(None, 0, "no column has a value in the training rows")
    model_class = (
        HistGradientBoostingClassifier if task == "classification" else HistGradientBoostingRegressor
    )
    model = model_class(categorical_features=codes.is_category[used], random_state=seed)
    # One thread: on few rows several wait for each other most of the time, and sums are always the same.
    with warnings.catch_warnings(), threadpool_limits(1, user_api="openmp"):
        warnings.simplefilter("ignore")
        try:
            model.fit(codes.values[rows][:, used], y[rows], None if weight is None else weight[rows])
            score = float(scorer_of(model, scoring)(model, codes.values[test][:, used], y[test]))
        except ValueError as error:
            return Yardstick(None, 0, str(error).splitlines()[0])
    return Yardstick(score if np.isfinite(score) else None, int(rows.size))


def _some(train: Array, seed: int) -> Array:
    if train.size <= MOST_ROWS:
        return train
    return np.sort(np.random.default_rng(seed).choice(train, MOST_ROWS, replace=False))


def _not_all_missing(values: Array) -> Array:
    return ~np.isnan(values).all(axis=0)
