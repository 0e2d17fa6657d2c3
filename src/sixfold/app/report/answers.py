"""What a model says about some rows, asked once, and how sure one can be of its score there.

Wilson's interval of a share s of n rows, z = 1.96 (Journal of the American Statistical Association 22, 1927):

    (s + z^2 / 2n ± z sqrt(s (1 - s) / n + z^2 / 4n^2)) / (1 + z^2 / n)

Scores other than accuracy have the 2.5% and 97.5% quantiles of the score of 300 draws of the rows with
replacement (Efron, "Bootstrap methods", Annals of Statistics 7, 1979).
"""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring

from sixfold.explain.plots.probabilities import wilson

Array = NDArray[Any]

DRAWS = 300
LEAST_DRAWN = 10  # rows, fewer draws of which say nothing
RESPONSES = ("predict", "predict_proba", "decision_function")


class Answers:
    """A model's answers to some rows: an estimator that is asked by row number.

    Scorers and pictures take it for the model, and nothing is predicted twice. What the model cannot say
    (probabilities of an SVM, for instance) it cannot say either.

    Parameters
    ----------
    model : fitted estimator
    X : table
        The rows that it is asked about; the answers to row i are those of ``X[i]``.
    """

    def __init__(self, model: Any, X: Any) -> None:
        self.model = model
        self._tags: Any = None
        if hasattr(model, "classes_"):
            self.classes_ = model.classes_
        self.rows = np.arange(X.shape[0])
        for name in RESPONSES:
            if hasattr(model, name):
                setattr(self, name, _asked_once(name, getattr(model, name), X))

    @property
    def _estimator_type(self) -> str:
        return "classifier" if is_classifier(self.model) else "regressor"

    def __sklearn_tags__(self) -> Any:
        if self._tags is None:  # those of a pipeline take a millisecond
            self._tags = self.model.__sklearn_tags__()
        return self._tags

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any) -> Self:
        """Return the answers, which are there already; scorers ask for a method of this name."""
        return self


def _asked_once(name: str, ask_model: Any, X: Any) -> Any:
    said: list[Array] = []

    def ask(rows: Any) -> Array:
        if not said:
            said.append(np.asarray(ask_model(X)))
        return said[0][np.asarray(rows)]

    ask.__name__ = name  # by which scorers know it
    return ask


def scorer_of(model: Any, scoring: Any) -> Any:
    """Return the function of estimator, X and y of a score; None is accuracy, or R-squared for numbers."""
    if scoring is None:
        scoring = "accuracy" if is_classifier(model) else "r2"
    return check_scoring(model, scoring=scoring)


def score_interval(
    answers: Any, y: Array, scorer: Any, scoring: Any, seed: int
) -> tuple[float | None, float | None, str]:
    """Return a 95% interval of the score on these rows, and how it was found; None where there is none."""
    if y.size == 0:
        return None, None, ""
    if scoring in (None, "accuracy") and is_classifier(answers.model):
        share = float(np.mean(answers.predict(answers.rows) == y))
        low, high = wilson(np.array([share]), np.array([y.size]))
        return max(float(low[0]), 0.0), min(float(high[0]), 1.0), "Wilson"
    if y.size < LEAST_DRAWN:
        return None, None, ""
    random = np.random.default_rng(seed)
    scores = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of draws without a class
        for _ in range(DRAWS):
            rows = random.integers(0, y.size, y.size)
            try:
                scores.append(float(scorer(answers, rows, y[rows])))
            except ValueError:  # a draw of one class has no ROC curve, for instance
                continue
    finite = [score for score in scores if np.isfinite(score)]
    if len(finite) < DRAWS // 2:
        return None, None, ""
    low, high = np.quantile(finite, [0.025, 0.975])
    return float(low), float(high), "bootstrap"
