"""A model file as the commands use it: the model, the columns it reads, and what is known of its fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.data.columns.schema import TableSchema
from sixfold.errors import InputError
from sixfold.explain.last_step import last_step
from sixfold.learners.neighbors.k_neighbors import KNeighborsClassifier

Array = NDArray[Any]


@dataclass(frozen=True)
class SavedModel:
    """What ``sixfold fit`` wrote.

    Attributes
    ----------
    path : Path
    model : estimator
        A pipeline that is fitted on typed frames.
    facts : dict
        What is known of its fit.
    schema : TableSchema
    """

    path: Path
    model: Any
    facts: Mapping[str, Any]
    schema: TableSchema

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.path.name

    @property
    def task(self) -> str:
        """Return "classification" or "regression"."""
        return "regression" if self.facts.get("task") == "regression" else "classification"

    @property
    def target(self) -> str:
        """The column that is predicted."""
        return str(self.facts.get("target", "" if self.schema.target is None else self.schema.target.name))

    @property
    def scoring(self) -> str:
        """The metric of the fit, as scikit-learn calls it."""
        usual = "r2" if self.task == "regression" else "accuracy"
        return str(self.facts.get("scoring") or usual)

    def require_split(self) -> None:
        """Raise an :class:`InputError` unless the file says how the rows of the fit were split."""
        split = self.facts.get("split")
        wanted: dict[str, Any] = {"seed": int, "test_size": (int, float), "fitted_rows": int}
        if not isinstance(split, Mapping) or not all(
            isinstance(split.get(name), kind) for name, kind in wanted.items()
        ):
            raise InputError(
                f"{self.name} does not say how the rows of its fit were split into training and test rows. "
                "Use a model file that `sixfold fit` has written."
            )

    @cached_property
    def fitted(self) -> Any:
        """The model itself, where a search stands around it."""
        return getattr(self.model, "best_estimator_", self.model)

    @property
    def learner(self) -> Any:
        """The last step of the pipeline."""
        return last_step(self.fitted)

    @cached_property
    def _before(self) -> Any:
        """The steps before the learner, or None."""
        many = hasattr(self.fitted, "steps") and len(self.fitted.steps) > 1
        return self.fitted[:-1] if many else None

    @property
    def classes(self) -> list[str]:
        """The labels, as text; none for a regression."""
        return [str(one) for one in self.fitted.classes_] if self.task == "classification" else []

    @property
    def gives_probabilities(self) -> bool:
        """Whether it knows how probable each class is."""
        return self.task == "classification" and hasattr(self.learner, "predict_proba")

    def inputs(self, typed: Any) -> Any:
        """Return the table that the learner sees."""
        return typed if self._before is None else self._before.transform(typed)

    def answers(self, typed: Any, probabilities: bool = True) -> tuple[Array, Array | None]:
        """Return labels (or numbers) and probabilities (or None) of the rows of a typed frame.

        The columns are encoded once for both, and neighbours are searched once: the largest share of their
        votes is that of the label.
        """
        inputs = self.inputs(typed)
        chances = None
        if probabilities and self.gives_probabilities:
            chances = np.asarray(self.learner.predict_proba(inputs), dtype=np.float64)
            if isinstance(self.learner, KNeighborsClassifier):
                return np.asarray(self.learner.classes_)[chances.argmax(axis=1)], chances
        return np.asarray(self.learner.predict(inputs)), chances


def open_model(path: str | Path) -> SavedModel:
    """Return the model in a file that ``sixfold fit`` wrote.

    Raises
    ------
    ModelFileError
        If it is no model file, or a damaged one.
    InputError
        If it says nothing of the columns of a table.
    """
    from sixfold.app.model_file import read_model

    file = read_model(path)
    schema = file.facts.get("schema")
    if schema is None:
        raise InputError(
            f"{str(path)!r} holds a model, but not the columns of a table that it reads: it was written by "
            "sixfold.save, not by `sixfold fit`. Use it from Python: sixfold.load(path).predict(X)."
        )
    return SavedModel(Path(path), file.model, file.facts, TableSchema.from_dict(schema))


def metric_in_words(scoring: str, task: str = "") -> str:
    """Return what a score, or the loss that it is minus of, is called by people.

    >>> metric_in_words("r2"), metric_in_words("neg_mean_absolute_error")
    ('R-squared', 'mean absolute error')
    """
    from sixfold.selection.scoring import metric_in_words as words

    return words(scoring, task).removeprefix("minus ")


def shown_score(scoring: str, value: float) -> float:
    """Return the figure that goes with the words: of a loss, which counts as negative, the loss itself.

    >>> shown_score("neg_log_loss", -0.25)
    0.25
    """
    return -value if scoring.startswith("neg_") else value
