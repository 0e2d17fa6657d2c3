"""What a comparison found: a line for each learner, as a table to print, a frame, and a picture."""

from __future__ import annotations

import importlib
import math
import re
import textwrap
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.errors import MissingExtraError
from sixfold.plain_words import counted

Array = NDArray[Any]

WIDTH, LINES = 80, 2  # of what is printed, and for what was chosen and proved
LONGEST_METRIC = 13  # as long as a mean with its deviation
BASELINE = "baseline"


@dataclass(frozen=True)
class Entry:
    """One learner of a comparison.

    Attributes
    ----------
    name : str
    mean, std : float
        Of the scores of the chosen candidate on the folds.
    scores : ndarray of shape (n_folds,)
        Of the folds that were finished, fewer than there are where time was up.
    test : float
        The score on the test rows, looked at once; NaN where there are none.
    search_seconds, fit_seconds, predict_seconds : float
        Of the whole search, of the final fit, and of scoring the test rows.
    parameters : dict
        What was chosen.
    certificate : str
        What the final fit proves.
    notes : tuple of str
        What the fits warned of, and what became of columns that the learner cannot read.
    search : GridSearchCV or None
        With the fitted model, ``search.best_estimator_``.
    p_value : float
        How probable a difference from the best learner at least as large as this one would be, were both
        equally good; NaN for that one, and where a learner did not finish all folds.
    left_out : str
        Why it did not take part; empty where it did.
    fitted_rows : int
        How many rows the model is fitted to.
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
    fitted_rows: int = 0

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
    folds : int
        How many there are; learners that finished fewer when time was up stand below those that did not.
    sample_rows, test_sample_rows : int or None
        On how many of the training rows learners were tuned, and on how many of the test rows their models
        were tested; None for all of them.
    """

    entries: list[Entry]
    task: str
    metric: str
    train_rows: int
    test_rows: int
    folds: int
    sample_rows: int | None = None
    test_sample_rows: int | None = None

    @property
    def best(self) -> Entry:
        """The learner with the best mean score, of those that finished the most folds."""
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
        names = ("mean", "std", "test", "p_value", "search_seconds", "fit_seconds", "predict_seconds")
        columns: dict[str, list[Any]] = {"learner": [one.name for one in there]}
        columns |= {name: [getattr(one, name) for one in there] for name in names}
        columns["folds"] = [one.scores.size for one in there]
        for fold in range(self.folds):
            columns[f"split{fold}_score"] = [
                float(one.scores[fold]) if fold < one.scores.size else math.nan for one in there
            ]
        columns["parameters"] = [dict(one.parameters) for one in there]
        columns["certificate"] = [one.certificate for one in there]
        columns["notes"] = ["\n".join(one.notes) for one in there]
        return columns

    def to_facts(self, seconds: bool = False) -> list[dict[str, Any]]:
        """Return a line for each learner as plain data that JSON can hold; what is not known is None.

        Parameters
        ----------
        seconds : bool, default=False
            Whether to add how long everything took, which is another time in every run.
        """
        return [_facts(one, seconds) for one in self.entries]

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
        rows = counted(self.train_rows, "training row")
        rows += f", {counted(self.test_rows, 'test row')} looked at once" if self.test_rows else ""
        about = f"{self.metric} on {self.folds} folds, mean ± standard deviation; {rows}"
        meaning = []
        if self._has_p_values:
            meaning.append("p: how probable such a difference from the first is, were both equally good")
        if self._partial:
            meaning.append("folds: how many were done when time was up; learners with more come first")
        if self.sample_rows is not None:
            about += f"; tuned on a sample of {counted(self.sample_rows, 'training row')}"
            some = self.test_sample_rows
            about += "" if some is None else f", tested on one of {counted(some, 'test row')}"
            whole = [one.name for one in self._there if one.fitted_rows == self.train_rows]
            about += f"; then {', '.join(whole)} on all of them" * bool(whole)
        parts = (textwrap.wrap(about, WIDTH), self.table_lines(), meaning, self._details(), self._notes())
        return "\n\n".join("\n".join(part) for part in parts if part)

    def table_lines(self) -> list[str]:
        """Return the lines of the table; where it is too wide, without the seconds it can do without."""
        there = self._there
        metric = self.metric if len(self.metric) <= LONGEST_METRIC else "score"
        columns = {"learner": [one.name for one in there]}
        columns[metric] = [f"{score_text(one.mean)} ± {score_text(one.std)}" for one in there]
        if self.test_rows:
            columns["test"] = [score_text(one.test) for one in there]
        if self._has_p_values:
            columns["p"] = ["" if math.isnan(one.p_value) else f"{one.p_value:.3f}" for one in there]
        if self._partial:
            columns["folds"] = [f"{one.scores.size} of {self.folds}" for one in there]
        for name in ("search", "fit", *["predict"] * (self.test_rows > 0)):
            columns[name] = [_seconds(getattr(one, f"{name}_seconds")) for one in there]
        widths = {name: max(map(len, [name, *values])) for name, values in columns.items()}
        for name in ("predict", "fit"):
            if sum(widths.values()) + 2 * (len(widths) - 1) > WIDTH:
                widths.pop(name, None)
        lines = [list(widths), ["-" * width for width in widths.values()]]
        lines += map(list, zip(*(columns[name] for name in widths), strict=True))
        return ["  ".join(map(str.ljust, line, widths.values())).rstrip() for line in lines]

    def _details(self) -> list[str]:
        """Return what was chosen for each learner and what its fit proves, or why it was left out."""
        said = []
        for one in self.entries:
            chosen = ", ".join(f"{name}={_plain(value)}" for name, value in one.parameters.items())
            left_out = f"left out: {one.left_out}" if one.left_out else ""
            about = "; ".join(filter(None, (chosen, one.certificate, left_out)))
            if about:
                said += _paragraph(f"{one.name}: {about}", LINES + 2 * bool(left_out))
        return said

    def _notes(self) -> list[str]:
        """Return what the learners warned of: the first sentence of each note, and who it is of."""
        whose: dict[str, list[str]] = {}
        for one in self.entries:
            for note in one.notes:
                whose.setdefault(_first_sentence(note), []).append(one.name)
        learners = sum(one.name != BASELINE and not one.left_out for one in self.entries)
        said = []
        for note, names in whose.items():
            whom = "" if len(names) >= max(2, learners) else f" on {', '.join(names)}"
            said += _paragraph(f"note{whom}: {note}", LINES + 1)
        return said

    @property
    def _has_p_values(self) -> bool:
        return not all(math.isnan(one.p_value) for one in self.entries)

    @property
    def _partial(self) -> bool:
        return any(one.scores.size < self.folds for one in self._there)

    @property
    def _there(self) -> list[Entry]:
        return [one for one in self.entries if not one.left_out]


def _facts(one: Entry, seconds: bool) -> dict[str, Any]:
    names = ("mean", "std", "scores", "test", "p_value", "parameters", "certificate", "notes", "fitted_rows")
    facts = {"learner": one.name, **{name: plain_fact(getattr(one, name)) for name in names}}
    facts["left_out"] = one.left_out
    if seconds:
        facts["seconds"] = {
            name: plain_fact(getattr(one, f"{name}_seconds")) for name in ("search", "fit", "predict")
        }
    return facts


def plain_fact(value: Any) -> Any:
    """Return a value as JSON can hold it: numbers that are not finite are None, objects their names.

    >>> plain_fact({"C": np.float64(0.5), "scores": np.array([1.0, np.nan])})
    {'C': 0.5, 'scores': [1.0, None]}
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, dict):
        return {str(name): plain_fact(one) for name, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain_fact(one) for one in value]
    return getattr(value, "__name__", None) or str(value)


def _paragraph(text: str, lines: int) -> list[str]:
    """Return text in lines, at most so many, the later ones indented."""
    return textwrap.wrap(text, WIDTH, subsequent_indent="    ", max_lines=lines, placeholder=" ...")


def _first_sentence(text: str) -> str:
    """Return the first sentence, without long brackets: those of certificates, which are said already."""
    first = re.split(r"(?<=[.])\s+(?=[A-Z])|\n", text.strip(), maxsplit=1)[0]
    return re.sub(r" \([^()]{40,}\)", "", first)


def score_text(value: float) -> str:
    """Return a score with three decimals, or five digits where it is large."""
    return f"{value:.3f}" if abs(value) < 100 or math.isnan(value) else f"{value:.5g}"


def _seconds(value: float) -> str:
    if math.isnan(value):
        return ""
    return f"{value * 1e3:.0f} ms" if value < 1 else f"{value:.1f} s"


def _plain(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
