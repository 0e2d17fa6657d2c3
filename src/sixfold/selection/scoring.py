"""Scores of fitted models on held-out rows: scikit-learn's scorers, and a short way for the usual ones.

    accuracy   the share of equal labels           r2   1 - sum (y - f)^2 / sum (y - mean y)^2
    neg_mean_squared_error   - mean (y - f)^2      neg_root_mean_squared_error, neg_mean_absolute_error
    neg_log_loss   mean log p(y)

    balanced_accuracy   the mean over the classes of the share of their rows that is right

A scorer looks at its arguments for about half a millisecond, each time anew; a plan has an answer every ten
microseconds. For the scorers above, one target and no weights, the same numbers are computed directly.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    get_scorer_names,
    log_loss,
    mean_absolute_error,
    mean_squared_error,
    r2_score,
    root_mean_squared_error,
)
from sklearn.metrics._scorer import _BaseScorer, _MultimetricScorer, _PassthroughScorer, _Scorer
from sklearn.model_selection._validation import _score
from sklearn.pipeline import Pipeline

from sixfold.errors import InputError
from sixfold.selection.plans.base import Answered

Array = NDArray[Any]
Measure = Callable[[Array, Array], float]

MOST_OF_THE_ROWS = 0.8  # of one class: always to name that one would be right so often
WORDS = {"r2": "R-squared", "roc_auc": "ROC AUC", "f1": "F1"}


def check_scoring(scoring: Any, parameter: str = "scoring") -> None:
    """Raise an :class:`InputError` unless this is the name of a score, a function, or None."""
    names = get_scorer_names()
    if scoring is None or callable(scoring) or scoring in names:
        return
    near = get_close_matches(str(scoring), names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    raise InputError(
        f"{parameter}={scoring!r} is not the name of a score{hint} sklearn.metrics.get_scorer_names() lists "
        "them; a function of model, X and y will do as well."
    )


def default_scoring(y: Any, task: str) -> str:
    """Return the name of the score that suits a target.

    >>> default_scoring(["no"] * 9 + ["yes"], "classification")
    'balanced_accuracy'
    """
    if task == "regression":
        return "r2"
    counts = Counter(np.asarray(y).tolist())
    share = max(counts.values(), default=0) / max(1, counts.total())
    return "balanced_accuracy" if MOST_OF_THE_ROWS < share < 1.0 else "accuracy"


def metric_in_words(scoring: Any, task: str) -> str:
    """Return what a score is called; minus a loss where scikit-learn turns it round, for more to be better.

    >>> metric_in_words("neg_mean_absolute_error", "regression")
    'minus mean absolute error'
    """
    if scoring is None:
        scoring = "accuracy" if task == "classification" else "r2"
    if not isinstance(scoring, str):
        return str(getattr(scoring, "__name__", "score"))
    words, sign = unsigned_metric(scoring)
    return words if sign > 0 else f"minus {words}"


def unsigned_metric(scoring: str) -> tuple[str, int]:
    """Return what a score, or the loss that it is minus of, is called, and 1 or -1.

    >>> unsigned_metric("r2"), unsigned_metric("neg_mean_absolute_error")
    (('R-squared', 1), ('mean absolute error', -1))
    """
    name = scoring.removeprefix("neg_")
    return WORDS.get(name) or name.replace("_", " "), 1 if name == scoring else -1


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


class _OfPredictions:
    """What ``score`` of a classifier or a regressor computes, without asking for the learner itself."""

    def __init__(self, measure: Callable[..., float]) -> None:
        self.measure = measure

    def __call__(self, model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        return self.measure(y, model.predict(X), sample_weight=sample_weight)


class _LogLoss:
    """Mean of -log p(y) by the probabilities of a classifier, clipped as scikit-learn clips them."""

    def __init__(self, y: Any, sign: int) -> None:
        self.classes, self.index = np.unique(np.asarray(y), return_inverse=True)
        self.sign = sign

    def __call__(self, model: Any, X: Any) -> float | None:
        """Return the loss; None where the classes are not those of the held-out rows, all of them."""
        if len(self.classes) < 2 or not np.array_equal(model.classes_, self.classes):
            return None
        p = model.predict_proba(X)
        if type(p) is not np.ndarray or p.dtype != np.float64 or not np.isfinite(p).all():
            return None
        if p.shape[1] == 2:  # a scorer asks for that of the second class
            p = np.column_stack([1.0 - p[:, 1], p[:, 1]])
        eps = np.finfo(np.float64).eps
        chosen = np.clip(p[np.arange(p.shape[0]), self.index], eps, 1.0 - eps)
        return self.sign * float(np.average(-np.log(chosen)))


class _BalancedAccuracy:
    """Mean over the classes of the held-out rows of the share that is right."""

    def __init__(self, y: Any, sign: int) -> None:
        self.y = np.asarray(y)
        self.codes = np.unique(self.y, return_inverse=True)[1]
        self.counts, self.sign = np.bincount(self.codes), sign

    def __call__(self, model: Any, X: Any) -> float | None:
        """Return the score; None where the predictions are of another shape."""
        predicted = model.predict(X)
        if type(predicted) is not np.ndarray or predicted.shape != self.y.shape:
            return None
        right = np.bincount(self.codes[self.y == predicted], minlength=self.counts.size)
        return self.sign * float(np.mean(right / self.counts))


def _asks_only(scorer: Any, function: Any, method: str) -> bool:
    """Return whether this is scikit-learn's scorer of a measure, with nothing else to say to it."""
    plain = type(scorer) is _Scorer and scorer._score_func is function
    return plain and not scorer._kwargs and scorer._response_method == method


class HeldOutScore:
    """Scores models on one table of held-out rows.

    Parameters
    ----------
    scorer : callable
        As scikit-learn's ``check_scoring`` returns it, or the one for several metrics.
    model : estimator or None
        One of those that will be scored, unfitted; None where they may be of several classes.
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
        if type(scorer) is _PassthroughScorer:
            measure = _own_measure(model)
            scorer = scorer if measure is None else _OfPredictions(measure)
        self.scorer, self.X, self.y = scorer, X, y
        self.parameters, self.error_score = parameters, error_score
        self.several = isinstance(scorer, _MultimetricScorer)
        # A function may look at whatever it likes; scikit-learn's scorers ask for predictions and classes.
        each = scorer._scorers.values() if self.several else [scorer]
        self._for_learner = not all(isinstance(one, _BaseScorer | _OfPredictions) for one in each)
        self._short = None if parameters else _short_way(scorer)
        self._plain = None if self._short is None else _plain_targets(y, self._short)
        self._of_classes = None if parameters else _of_classes(scorer, y)

    def __call__(self, model: Any) -> Any:
        """Return the score of a fitted model, or a dictionary of them; raise where that fails."""
        if self._short is not None and self._plain is not None:
            predicted = model.predict(self.X)
            if type(predicted) is np.ndarray and predicted.shape == self._plain.shape:
                measure, sign = self._short
                if measure is _accuracy or predicted.dtype == np.float64:
                    return sign * measure(self._plain, predicted)
        if self._of_classes is not None and (score := self._of_classes(model, self.X)) is not None:
            return score
        if self._for_learner and isinstance(model, Answered):
            model = model.model
        # Of several metrics, those that fail get their error_score; one alone is the caller's affair.
        error_score = self.error_score if self.several else "raise"
        return _score(model, self.X, self.y, self.scorer, self.parameters, error_score)


def _of_classes(scorer: Any, y: Any) -> _LogLoss | _BalancedAccuracy | None:
    """Return the short way for a score of classes, where there is one."""
    if _asks_only(scorer, log_loss, "predict_proba"):
        return _LogLoss(y, scorer._sign)
    y = np.asarray(y)
    if _asks_only(scorer, balanced_accuracy_score, "predict") and y.ndim == 1 and y.dtype.kind in "biuUO":
        return _BalancedAccuracy(y, scorer._sign)
    return None


def _own_measure(model: Any) -> Callable[..., float] | None:
    """Return what the ``score`` of this model computes, where that is scikit-learn's usual one."""
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    own = {ClassifierMixin.score: accuracy_score, RegressorMixin.score: r2_score}
    return own.get(inspect.unwrap(getattr(type(last), "score", _own_measure)))  # ours take scans as well


def _short_way(scorer: Any) -> tuple[Measure, int] | None:
    """Return the same measure without looking at every argument, where there is one, and its sign."""
    if type(scorer) is _OfPredictions:
        function, sign = scorer.measure, 1
    elif type(scorer) is _Scorer and not scorer._kwargs and scorer._response_method == "predict":
        function, sign = scorer._score_func, scorer._sign
    else:
        return None
    return (_SHORT[function], sign) if function in _SHORT else None


def _plain_targets(y: Any, way: tuple[Measure, int]) -> Array | None:
    """Return the targets as an array of the kind that the measure is for; None where they are of another."""
    y = np.asarray(y)
    measure = way[0]
    if y.ndim != 1 or y.shape[0] < (2 if measure is _r2 else 1):
        return None
    if measure is not _accuracy:
        return y if y.dtype == np.float64 else None
    if y.dtype.kind == "f":  # as labels only if they are whole numbers
        return y if bool((y == np.rint(y)).all()) else None
    return y if y.dtype.kind in "biuUO" else None
