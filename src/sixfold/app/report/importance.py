"""Permutation importance: how much worse a model gets on test rows when one column is shuffled.

    importance_j = score(X, y) - mean over repeats of score(X with column j shuffled, y)

(Breiman, "Random forests", Machine Learning 45, 2001, section 10; for any model, Fisher, Rudin and Dominici,
2019). Columns are those of the table, before anything is encoded. Two columns that say the same share the
importance, or have none: each is there when the other is shuffled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.app.report.answers import Answers
from sixfold.explain.last_step import last_step

Array = NDArray[Any]

MOST_ROWS, REPEATS = 2_000, 5
LEAST_ROWS = 100
MOST_WORK = 2e9  # entries of training rows that are compared with rows to be predicted: a second or two
MOST_AT_ONCE = 20_000  # rows in one table to be predicted


@dataclass(frozen=True)
class Importance:
    """What one column is worth.

    Attributes
    ----------
    column : str
    mean, std : float
        Of what is lost of the score, over the repeats.
    """

    column: str
    mean: float
    std: float


def permutation_importance(
    model: Any, X: Any, y: Array, scorer: Any, seed: int
) -> tuple[list[Importance], int]:
    """Return the importance of every column, the largest first, and how many rows were used.

    None, of 0 rows, where even few rows would take a model too long that compares each with very many.
    """
    random = np.random.default_rng(seed)
    rows = rows_for(model, X.width, y.size)
    if rows == 0:
        return [], 0
    if rows < y.size:
        some = np.sort(random.choice(y.size, rows, replace=False))
        X, y = X[some], y[some]
    whole = Answers(model, X)
    score = float(scorer(whole, whole.rows, y))
    orders = [random.permutation(y.size) for _ in range(REPEATS)]
    lost = score - _shuffled_scores(model, X, y, scorer, orders)
    found = [
        Importance(name, float(own.mean()), float(own.std(ddof=1)))
        for name, own in zip(X.columns, lost, strict=True)
    ]
    found.sort(key=lambda one: -one.mean)
    return found, int(y.size)


def rows_for(model: Any, columns: int, rows: int) -> int:
    """Return how many rows are predicted for each column: fewer where each is compared with many others."""
    last = last_step(model)
    stored = getattr(last, "n_samples_fit_", None) or len(getattr(last, "support_", ())) or 1
    width = getattr(last, "n_features_in_", columns)
    affordable = MOST_WORK / (float(stored) * width * columns * REPEATS)
    return int(min(rows, MOST_ROWS, max(LEAST_ROWS, affordable))) if affordable > LEAST_ROWS / 10 else 0


def _shuffled_scores(model: Any, X: Any, y: Array, scorer: Any, orders: list[Array]) -> Array:
    """Return the score of each order of each column; several are predicted in one call.

    A call takes time for each column of the table, however few its rows are: for 300 columns and 10 rows, one
    call for each of them takes nine tenths of it.
    """
    import polars as pl

    together = max(1, MOST_AT_ONCE // y.size)
    shuffled = [(name, order) for name in X.columns for order in orders]
    scores: list[float] = []
    for first in range(0, len(shuffled), together):
        some = shuffled[first : first + together]
        tables = [X.with_columns(X[name].gather(order).alias(name)) for name, order in some]
        answers = Answers(model, pl.concat(tables))
        scores += [
            float(scorer(answers, answers.rows[k * y.size : (k + 1) * y.size], y)) for k in range(len(some))
        ]
    return np.array(scores).reshape(X.width, len(orders))
