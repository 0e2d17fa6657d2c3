"""Scores of fitted models on held-out rows: scikit-learn's scorers, and a short way for the usual ones.

    accuracy   the share of equal labels           r2   1 - sum (y - f)^2 / sum (y - mean y)^2
    neg_mean_squared_error   - mean (y - f)^2      neg_root_mean_squared_error, neg_mean_absolute_error

A scorer looks at its arguments for about half a millisecond, each time anew; a plan has an answer every ten
microseconds. For the scorers above, plain arrays and no weights, the same numbers are computed directly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import (
    accuracy_score,
    mean_absolute_error,
    mean_squared_error,
    r2_score,
    root_mean_squared_error,
)
from sklearn.metrics._scorer import _MultimetricScorer, _PassthroughScorer, _Scorer
from sklearn.model_selection._validation import _score
from sklearn.pipeline import Pipeline

Array = NDArray[Any]
Measure = Callable[[Array, Array], float]


def _accuracy(y: Array, predicted: Array) -> float:
    return int(np.count_nonzero(y == predicted)) / y.shape[0]


def _r2(y: Array, predicted: Array) -> float:
    # Summed as scikit-learn sums: over the rows of one column.
    y, predicted = y[:, None], predicted[:, None]
    left = float(((y - predicted) ** 2).sum(axis=0)[0])
    all_of_it = float(((y - np.average(y, axis=0)) ** 2).sum(axis=0)[0])
    if all_of_it == 0.0:
        return float(left == 0.0)
    return 1.0 - left / all_of_it


def _mean_squared(y: Array, predicted: Array) -> float:
    return float(np.average((y - predicted) ** 2))


def _mean_absolute(y: Array, predicted: Array) -> float:
    return float(np.average(np.abs(y - predicted)))


_SHORT: dict[Any, Measure] = {
    accuracy_score: _accuracy,
    r2_score: _r2,
    mean_squared_error: _mean_squared,
    mean_absolute_error: _mean_absolute,
    root_mean_squared_error: lambda y, predicted: float(np.sqrt(_mean_squared(y, predicted))),
}


class HeldOutScore:
    """Scores models on one table of held-out rows.

    Parameters
    ----------
    scorer : callable
        As scikit-learn's ``check_scoring`` returns it, or the one for several metrics.
    model : estimator
        One of those that will be scored, unfitted.
    X, y
        The held-out rows.
    parameters : dict
        What else the scorer takes, such as weights.
    error_score : float or "raise"
        What to do where a scorer fails.
    """

    def __init__(
        self, scorer: Any, model: Any, X: Any, y: Any, parameters: dict[str, Any], error_score: Any
    ) -> None:
        self.scorer, self.X, self.y = scorer, X, y
        self.parameters, self.error_score = parameters, error_score
        self._short = None if parameters else _short_way(scorer, model, y)

    def __call__(self, model: Any) -> Any:
        """Return the score of a fitted model, or a dictionary of them; raise where that fails."""
        if self._short is not None:
            predicted = model.predict(self.X)
            if type(predicted) is np.ndarray and predicted.shape == self.y.shape:
                return self._short(self.y, predicted)
        # Of several metrics, those that fail get their error_score; one alone is the caller's affair.
        several = isinstance(self.scorer, _MultimetricScorer)
        error_score = self.error_score if several else "raise"
        return _score(model, self.X, self.y, self.scorer, self.parameters, error_score)


def _short_way(scorer: Any, model: Any, y: Any) -> Measure | None:
    """Return the same measure without looking at every argument, where there is one."""
    if type(y) is not np.ndarray or y.ndim != 1 or y.shape[0] < 2 or isinstance(scorer, _MultimetricScorer):
        return None
    measure: Measure | None = None
    sign = 1
    if type(scorer) is _PassthroughScorer:
        last = model.steps[-1][1] if isinstance(model, Pipeline) else model
        own = {ClassifierMixin.score: _accuracy, RegressorMixin.score: _r2}
        measure = own.get(getattr(type(last), "score", None))
    elif type(scorer) is _Scorer and not scorer._kwargs and scorer._response_method == "predict":
        measure, sign = _SHORT.get(scorer._score_func), scorer._sign
    if measure is None or (measure is _accuracy) != (y.dtype.kind not in "fc"):
        return None
    return measure if sign == 1 else lambda y, predicted: sign * measure(y, predicted)
