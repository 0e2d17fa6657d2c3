"""Why a linear model answers as it does: what each column adds against its mean.

    score(x) = score(mean) + sum_j c_j,     c_j = w_j (x_j - mean_j)

exactly, so that nothing is left over. Between two classes the score is the difference of theirs; where it is
the logarithm of their odds (logistic regression, softmax), exp(c_j) is the factor by which a column moves the
odds. The probability moves by no such parts: it is told along the way from the mean row to x, the largest
contribution first.

A difference below ``ROUNDING`` of the mean is what adding up a constant column leaves, and counts as none.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit

from sixfold.errors import InputError, check_number
from sixfold.explain.contribution_lines import text_lines
from sixfold.explain.trees.words import plain
from sixfold.risk.losses import softmax

Array = NDArray[Any]

ROUNDING = 1e-12


@dataclass(frozen=True)
class LinearExplanation:
    """An answer and what each column adds to its score, as plain data; the largest contribution is first.

    Attributes
    ----------
    answer : object
        What the model predicts.
    of, against : object
        The score that is explained: of a class against another one, or of a target by its number; None where
        there is but one target.
    score, start : float
        Of this row, and of the row that it is compared with: ``score = start + sum(contributions)``.
    background : str
        What that row is, in words.
    columns : list of str
    index : list of int
        The numbers of the columns.
    values, means : list
        Of this row, and of the one that it is compared with; None where there is no one number.
    coefficients : list of float or None
        The weight w_j of each column in this score.
    contributions : list of float
        What each column adds.
    odds : list of float
        The factor by which each contribution moves the odds of ``of`` against ``against``; empty where the
        score is not their logarithm.
    probability, start_probability : float or None
        Of the class ``of``; None where the model has no probabilities.
    probabilities : list of float
        After each column in turn: the way from ``start_probability`` to ``probability``.
    """

    answer: Any
    of: Any
    against: Any
    score: float
    start: float
    background: str
    columns: list[str]
    index: list[int]
    values: list[Any]
    means: list[Any]
    coefficients: list[float | None]
    contributions: list[float]
    odds: list[float]
    probability: float | None
    start_probability: float | None
    probabilities: list[float]
    steps: Steps = dataclasses.field(repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as a dictionary that JSON can hold."""
        whole = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        del whole["steps"]
        return {
            name: [plain(one) for one in value] if isinstance(value, list) else plain(value)
            for name, value in whole.items()
        }

    def by_column(
        self,
        sources: Sequence[int],
        names: Sequence[str],
        values: Sequence[Any],
        means: Sequence[Any] | None = None,
    ) -> LinearExplanation:
        """Return the explanation by the columns of a table that the model's own columns were made of.

        Parameters
        ----------
        sources : sequence of int
            For each column of the model, which column of the table it was made of.
        names : sequence of str
            What the columns of the table are called.
        values : sequence
            What the row has there.
        means : sequence, default=None
            The means of these columns, None for those that have none.

        Returns
        -------
        LinearExplanation
            What the columns made of one add is added up.
        """
        table = np.zeros((len(names), self.steps.parts.shape[1]))
        given = np.asarray(sources)[self.index]
        np.add.at(table, given, self.steps.parts)
        shown = [None] * len(names) if means is None else list(means)
        steps = dataclasses.replace(self.steps, parts=table)
        return _arranged(self, steps, list(map(str, names)), list(values), shown, [None] * len(names))

    def __str__(self) -> str:
        """Return the contributions as a table of at most 80 letters a line."""
        return "\n".join(text_lines(self))

    def plot(self, axes: Any = None, dark: bool | None = None) -> Any:
        """Draw the way from the score of the mean row to that of this one, a bar for each column.

        Parameters
        ----------
        axes : matplotlib axes, default=None
            Where to draw; None makes new ones.
        dark : bool, default=None
            Whether the ground is dark; None looks at the axes.

        Returns
        -------
        matplotlib axes
        """
        from sixfold.explain.plots.contributions import contributions

        return contributions(self, axes, dark=dark)


class LinearExplanations(list[LinearExplanation]):
    """One explanation a target."""

    def to_dict(self) -> list[dict[str, Any]]:
        """Return them as a list of dictionaries."""
        return [one.to_dict() for one in self]

    def __str__(self) -> str:
        """Return the tables one below the other."""
        return "\n\n".join(map(str, self))

    __repr__ = __str__


# -- from a model --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A row of numbers and what its columns are called."""

    names: list[str]
    values: Array


@dataclass(frozen=True)
class Background:
    """The row to compare with, and what it is in words."""

    values: Array
    words: str


@dataclass(frozen=True)
class ScoreTable:
    """w (columns x scores), b, and how scores become probabilities: "softmax", "one against the rest", ""."""

    w: Array
    b: Array
    chances: str = ""


@dataclass(frozen=True)
class Steps:
    """What each column adds to every score: the way of all scores, of which a probability is made.

    ``sign`` times the scores is the score that is explained; ``label`` is the number of its class.
    """

    start: Array
    parts: Array
    sign: Array
    label: int
    chances: str

    def probabilities(self, order: Array) -> list[float]:
        """Return the probability at the start, and after each column in this order."""
        if not self.chances:
            return []
        scores = self.start + np.vstack([np.zeros_like(self.start), self.parts[order].cumsum(axis=0)])
        logs = log_expit(scores) if self.chances == "one against the rest" else scores
        found: list[float] = softmax(logs)[:, self.label].tolist()
        return found


def explain_class(
    row: Row, scores: ScoreTable, start: Background, answer: Any, of: Any, classes: Array
) -> LinearExplanation:
    """Return why a row has the score of a class, against the best of the others."""
    labels = classes.tolist()
    label = _class_number(answer if of is None else of, classes)
    found = scores.b + row.values @ scores.w
    second = max((k for k in range(len(labels)) if k != label), key=lambda k: (found[k], -k))
    sign = np.zeros(len(labels))
    sign[label], sign[second] = 1.0, -1.0
    answer = labels[_class_number(answer, classes)]
    return _explained(row, scores, start, sign, answer=answer, of=labels[label], against=labels[second])


def explain_targets(
    row: Row, scores: ScoreTable, start: Background, answers: Array, of: Any, several: bool
) -> LinearExplanation | LinearExplanations:
    """Return why a row has its prediction; all of them where there are several targets and of is None."""
    count = scores.b.size
    if of is not None:
        check_number("of", of, at_least=0, whole=True)
        if of >= count:
            raise InputError(f"of={of} is out of range: the targets are 0 to {count - 1}. Choose one.")
    found = LinearExplanations()
    for target in range(count) if of is None else [int(of)]:
        sign = (np.arange(count) == target).astype(np.float64)
        name = target if several else None
        found.append(
            _explained(row, scores, start, sign, answer=float(answers[target]), of=name, against=None)
        )
    return found if several and of is None else found[0]


def _class_number(of: Any, classes: Array) -> int:
    there = [k for k, label in enumerate(classes.tolist()) if label == of]
    if not there:
        named = ", ".join(map(repr, classes.tolist()[:20]))
        raise InputError(f"of={of!r} is none of the classes: {named}. Pass one of them.")
    return there[0]


def _explained(
    row: Row, scores: ScoreTable, start: Background, sign: Array, **said: Any
) -> LinearExplanation:
    away = row.values - start.values
    away[np.abs(away) <= ROUNDING * np.abs(start.values)] = 0.0
    steps = Steps(
        start=scores.b + start.values @ scores.w,
        parts=away[:, None] * scores.w,
        sign=sign,
        label=int(sign.argmax()),
        chances=scores.chances,
    )
    blank = LinearExplanation(
        **said,
        score=float((scores.b + row.values @ scores.w) @ sign),
        start=float(steps.start @ sign),
        background=start.words,
        columns=[], index=[], values=[], means=[], coefficients=[], contributions=[], odds=[],
        probability=None, start_probability=None, probabilities=[], steps=steps,
    )  # fmt: skip
    coefficients = (scores.w @ sign).tolist()
    return _arranged(blank, steps, row.names, row.values.tolist(), start.values.tolist(), coefficients)


def _arranged(
    said: LinearExplanation,
    steps: Steps,
    names: list[str],
    values: list[Any],
    means: list[Any],
    coefficients: list[Any],
) -> LinearExplanation:
    """Return an explanation with its columns in order, the largest contribution first."""
    parts = steps.parts @ steps.sign
    order = np.argsort(-np.abs(parts), kind="stable")
    way = steps.probabilities(order)
    two_sided = steps.chances == "softmax"
    with np.errstate(over="ignore"):
        odds = np.exp(parts[order]).tolist() if two_sided else []
    return dataclasses.replace(
        said,
        columns=[names[j] for j in order],
        values=[values[j] for j in order],
        means=[means[j] for j in order],
        coefficients=[coefficients[j] for j in order],
        index=order.tolist(),
        contributions=parts[order].tolist(),
        odds=odds,
        start_probability=way[0] if way else None,
        probability=way[-1] if way else None,
        probabilities=way[1:],
        steps=dataclasses.replace(steps, parts=steps.parts[order]),
    )
