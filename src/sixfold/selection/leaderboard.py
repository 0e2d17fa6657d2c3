"""What a comparison found: a line for each learner, as a table to print, a frame, and a picture."""

from __future__ import annotations

import importlib
import math
import textwrap
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.errors import MissingExtraError

Array = NDArray[Any]

WIDTH = 80


@dataclass(frozen=True)
class Entry:
    """One learner of a comparison.

    Attributes
    ----------
    name : str
    mean, std : float
        Of the scores of the chosen candidate on the folds.
    scores : ndarray of shape (n_folds,)
    test : float
        The score on the test rows, looked at once; NaN where there are none.
    search_seconds, fit_seconds, predict_seconds : float
        Of the whole search, of the final fit, and of scoring the test rows.
    parameters : dict
        What was chosen.
    certificate : str
        What the final fit proves.
    notes : tuple of str
        What the fits warned of.
    search : GridSearchCV or None
        With the fitted model, ``search.best_estimator_``.
    p_value : float
        Of being as good as the best learner; NaN for that one.
    left_out : str
        Why it did not take part; empty where it did.
    """

    name: str
    mean: float = math.nan
    std: float = math.nan
    scores: Array = field(default_factory=lambda: np.empty(0))
    test: float = math.nan
    search_seconds: float = math.nan
    fit_seconds: float = math.nan
    predict_seconds: float = math.nan
    parameters: dict[str, Any] = field(default_factory=dict)
    certificate: str = ""
    notes: tuple[str, ...] = ()
    search: Any = None
    p_value: float = math.nan
    left_out: str = ""

    @property
    def model(self) -> Any:
        """The tuned model, fitted to the training rows."""
        return None if self.search is None else self.search.best_estimator_


@dataclass(frozen=True)
class Comparison:
    """A leaderboard, the best learner first.

    Attributes
    ----------
    entries : list of Entry
    task : {"classification", "regression"}
    metric : str
    train_rows, test_rows : int
    """

    entries: list[Entry]
    task: str
    metric: str
    train_rows: int
    test_rows: int

    @property
    def best(self) -> Entry:
        """The learner with the best mean score."""
        return self.entries[0]

    def __getitem__(self, name: str) -> Entry:
        """Return the entry of a learner."""
        for one in self.entries:
            if one.name == name:
                return one
        raise KeyError(f"{name!r} is none of {', '.join(one.name for one in self.entries)}")

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns of the leaderboard as lists."""
        there = self._there
        folds = max((one.scores.size for one in there), default=0)
        names = ("mean", "std", "test", "p_value", "search_seconds", "fit_seconds", "predict_seconds")
        columns: dict[str, list[Any]] = {"learner": [one.name for one in there]}
        columns |= {name: [getattr(one, name) for one in there] for name in names}
        for fold in range(folds):
            columns[f"split{fold}_score"] = [
                float(one.scores[fold]) if fold < one.scores.size else math.nan for one in there
            ]
        columns["parameters"] = [dict(one.parameters) for one in there]
        columns["certificate"] = [one.certificate for one in there]
        return columns

    def to_frame(self) -> Any:
        """Return the leaderboard as a frame of pandas or, if only that is installed, of Polars."""
        for name in ("pandas", "polars"):
            with suppress(ImportError):
                return importlib.import_module(name).DataFrame(self.to_dict())
        raise MissingExtraError("A frame needs pandas or Polars: pip install pandas. Or use to_dict().")

    def plot(self, **options: Any) -> Any:
        """Draw the scores of all learners, fold by fold; see :func:`sixfold.plot.leaderboard`.

        Parameters
        ----------
        **options
            Those of :func:`sixfold.plot.leaderboard`.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from sixfold.explain.plots.leaderboard import leaderboard

        return leaderboard(self, **options)

    def __str__(self) -> str:
        rows = f"{self.train_rows:,} training rows"
        rows += f", {self.test_rows:,} test rows looked at once" if self.test_rows else ""
        about = f"{self.metric} on {self.best.scores.size} folds, mean ± standard deviation; {rows}"
        meaning = "p: how probable such a difference from the first is, were both equally good"
        parts = (textwrap.wrap(about, WIDTH), self._table(), [meaning], self._details())
        return "\n\n".join("\n".join(part) for part in parts)

    def _table(self) -> list[str]:
        tested = self.test_rows > 0
        lines = [["learner", self.metric, *["test"] * tested, "p", "search", "fit", *["predict"] * tested]]
        for one in self._there:
            test, predict = [_score(one.test)] * tested, [_seconds(one.predict_seconds)] * tested
            p_value = "" if math.isnan(one.p_value) else f"{one.p_value:.3f}"
            times = [_seconds(one.search_seconds), _seconds(one.fit_seconds), *predict]
            lines.append([one.name, f"{_score(one.mean)} ± {one.std:.3f}", *test, p_value, *times])
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        lines.insert(1, ["-" * width for width in widths])
        return ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]

    def _details(self) -> list[str]:
        """Return what was chosen for each learner and what its fit proves, or why it was left out."""
        said = []
        for one in self.entries:
            chosen = ", ".join(f"{name}={_plain(value)}" for name, value in one.parameters.items())
            warned = f"{len(one.notes)} warnings (see its notes)" if one.notes else ""
            left_out = f"left out: {one.left_out}" if one.left_out else ""
            about = "; ".join(filter(None, (chosen, one.certificate, warned, left_out)))
            if about:
                said += textwrap.wrap(f"{one.name}: {about}", WIDTH, subsequent_indent="    ")
        return said

    @property
    def _there(self) -> list[Entry]:
        return [one for one in self.entries if not one.left_out]


def _score(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 1e4 else f"{value:.4g}"


def _seconds(value: float) -> str:
    if math.isnan(value):
        return ""
    return f"{value * 1e3:.0f} ms" if value < 1 else f"{value:.1f} s"


def _plain(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
