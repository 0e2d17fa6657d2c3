"""The score of predictions that come some rows at a time, the same as of all rows at once.

    of labels           a count for each pair (label, predicted label), which are the weights of those pairs
    of probabilities    log loss is a sum over the rows; else labels and probabilities are kept
    of numbers          numbers and predictions are kept, 16 bytes a row

Every metric is scikit-learn's own. Rows without a value in the target do not count.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer, get_scorer_names

from sixfold.app.saved_model.model import SavedModel
from sixfold.data.columns.schema import known_values

Array = NDArray[Any]

SMALLEST = float(np.finfo(np.float64).eps)  # a probability below this counts as this


class RunningScore:
    """The metric of a model's fit, on rows that come in pieces.

    Attributes
    ----------
    scoring : str
        The metric; accuracy or R-squared where that of the fit asks for what is not there.
    rows, without_target : int
    """

    def __init__(self, saved: SavedModel, scoring: str | None = None) -> None:
        self.task, self.classes = saved.task, saved.classes
        usual = "accuracy" if self.task == "classification" else "r2"
        wanted = scoring or saved.scoring
        self.scoring = wanted if wanted in get_scorer_names() else usual
        response = getattr(get_scorer(self.scoring), "_response_method", "predict")
        self.of_labels = response == "predict"
        if not self.of_labels and not saved.gives_probabilities:
            self.scoring, self.of_labels = usual, True
        self.rows = self.without_target = 0
        self._pairs: Counter[tuple[str, str]] = Counter()
        self._loss = 0.0
        self._kept: list[tuple[Array, Array]] = []

    @property
    def needs_probabilities(self) -> bool:
        """Whether :meth:`add` has to be given probabilities."""
        return not self.of_labels

    def add(self, y: Array, predicted: Array, chances: Array | None = None) -> None:
        """Count some rows."""
        known = known_values(y)
        self.without_target += int(known.size - known.sum())
        if not known.all():
            y, predicted = y[known], predicted[known]
            chances = None if chances is None else chances[known]
        self.rows += y.shape[0]
        if not y.shape[0]:
            return
        if self.task == "regression":
            self._kept.append((y.astype(np.float64), predicted.astype(np.float64)))
        elif self.of_labels:
            self._pairs.update(_pairs(y, predicted))
        elif self.scoring == "neg_log_loss":
            assert chances is not None
            self._loss += float(row_losses(y, chances, self.classes).sum())
        else:
            assert chances is not None
            self._kept.append((y.astype(str), chances))

    def value(self) -> float:
        """Return the score of all rows so far; NaN where there is none."""
        if not self.rows:
            return math.nan
        if self.scoring == "neg_log_loss":
            return -self._loss / self.rows
        weight = None
        if self._pairs:
            y, predicted = (np.array(one) for one in zip(*self._pairs, strict=True))
            weight, chances = np.array(list(self._pairs.values()), dtype=np.float64), None
        else:
            y, predicted = (np.concatenate(one) for one in zip(*self._kept, strict=True))
            chances = predicted if self.task == "classification" else None
        known = (KnownLabels if self.task == "classification" else KnownNumbers)(
            self.classes, predicted, chances
        )
        rows = np.zeros((y.shape[0], 1))
        given = {} if weight is None else {"sample_weight": weight}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of one row, or of labels that are not there
                return float(get_scorer(self.scoring)(known, rows, y, **given))
        except (ValueError, TypeError):
            return math.nan


class _Known(BaseEstimator):  # type: ignore[misc]
    """Answers that are there already, where a model is asked for."""

    def __init__(self, classes: Any = (), answers: Any = (), chances: Any = None) -> None:
        self.classes, self.answers, self.chances = classes, answers, chances

    def fit(self, X: Any, y: Any) -> _Known:
        """Learn nothing."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> Array:
        """Return the answers."""
        return np.asarray(self.answers)


class KnownLabels(ClassifierMixin, _Known):  # type: ignore[misc]
    """Labels or probabilities."""

    @property
    def classes_(self) -> Array:
        """All labels."""
        return np.array(self.classes)

    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities."""
        return np.asarray(self.chances)


class KnownNumbers(RegressorMixin, _Known):  # type: ignore[misc]
    """Numbers."""


def row_losses(y: Array, chances: Array, classes: list[str]) -> Array:
    """Return -log p of the label of each row; a label that the model does not know has no probability."""
    index = {label: number for number, label in enumerate(classes)}
    column = np.array([index.get(str(one), -1) for one in y], dtype=np.intp)
    p = np.where(column < 0, 0.0, chances[np.arange(column.size), column])
    return -np.log(np.clip(p, SMALLEST, 1.0 - SMALLEST))


def _pairs(y: Array, predicted: Array) -> dict[tuple[str, str], int]:
    """Return how often each pair of labels is there."""
    import polars as pl

    frame = pl.DataFrame(
        {"y": y.tolist(), "predicted": predicted.tolist()}, schema_overrides={"y": pl.String}
    )
    counts = frame.group_by("y", "predicted", maintain_order=True).len()
    return {(str(one), str(other)): count for one, other, count in counts.iter_rows()}
