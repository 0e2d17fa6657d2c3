"""``sixfold explain MODEL DATA --row N``: one answer, and why it is that one.

    a tree                the tests that the row met
    nearest neighbours    the training rows that vote, with their values
    a kernel SVM          the support vectors with the largest shares, with their values
    a linear model        what each column adds against its mean
    the baseline          that it ignores the columns

in the columns of the table, whatever the learner made of them. Rows are counted from 1, the header is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor

from sixfold.app.plain_text import WIDTH, paragraph, print_json, shortened, table, visible
from sixfold.app.saved_model.model import SavedModel, open_model
from sixfold.app.saved_model.training_values import coded, decoded
from sixfold.app.saved_model.unseen_categories import UnseenCategories, known_categories
from sixfold.data.files.tables import table_batches
from sixfold.errors import InputError, UsageError
from sixfold.explain.contribution_lines import shown_share
from sixfold.explain.linear import LinearExplanation
from sixfold.plain_words import counted, width_of

BATCH = 100_000  # rows that are read at a time
MOST_CLASSES = 5  # whose probabilities are told
MOST_ROWS = 5  # training rows that are shown beside the row: as many have room in 80 columns
MOST_COLUMNS = 40  # whose values are shown
WIDEST = 16  # letters of a value
HELD = "\ue000"  # stands for a blank at which no line ends


@dataclass(frozen=True)
class Explained:
    """A row, its answer, and why.

    Attributes
    ----------
    row : int
        Counted from 1.
    values : dict
        Column to value, None where it is missing.
    answer : object
    probabilities : dict
        Class to probability; empty where the model has none.
    actual : object
        What the table says; None where it does not.
    kind : str
        "linear", "tree", "neighbours", "support vectors" or "baseline".
    explanation : object
        As the learner gives it, by the columns of the table.
    alike : list of dict
        The values of the training rows it speaks of.
    unseen : list of str
        Columns with a category that the training rows did not have, as ``city = Bern``.
    """

    row: int
    values: dict[str, Any]
    answer: Any
    probabilities: dict[str, float]
    actual: Any
    kind: str
    explanation: Any
    alike: list[dict[str, Any]]
    unseen: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        plain = {
            "row": self.row,
            "values": _json(self.values),
            "answer": self.answer,
            "probabilities": self.probabilities,
            "actual": self.actual,
            "kind": self.kind,
            "explanation": self.explanation.to_dict(),
            "unseen": self.unseen,
        }
        if self.alike:
            plain["training_rows"] = [_json(one) for one in self.alike]
        return plain


@dataclass(frozen=True)
class SameForAll:
    """Why the baseline answers as it does."""

    task: str

    def __str__(self) -> str:
        told = "the mean" if self.task == "regression" else "the most frequent class"
        return f"This is the baseline: it ignores the columns, and answers {told} of the training rows."

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {"text": str(self)}


def run(model: str, data: str, row: int = 1, *, as_json: bool = False) -> int:
    """Print why a model answers as it does for one row of a table; return the exit code."""
    saved = open_model(model)
    found = explain_row(saved, data, row)
    if as_json:
        print_json({"model": saved.name, "data": data, "target": saved.target, **found.to_dict()})
    else:
        print("\n".join(map(_within, "\n".join(_told(saved, data, found)).splitlines())))
    return 0


def explain_row(saved: SavedModel, data: str, row: int) -> Explained:
    """Return why a model answers as it does for one row of a table, counted from 1."""
    raw = _raw_row(saved, data, row)
    typed = saved.schema.typed(raw, row - 1)
    baseline = isinstance(saved.learner, DummyClassifier | DummyRegressor)
    if not baseline and not hasattr(saved.learner, "explain"):
        raise InputError(
            f"{saved.name} holds a {type(saved.learner).__name__}, which cannot explain one answer. "
            "`sixfold show` tells what it is."
        )
    answers, chances = saved.answers(typed)
    answer = float(answers[0]) if saved.task == "regression" else str(answers[0])
    shares = {} if chances is None else dict(zip(saved.classes, chances[0].tolist(), strict=True))
    values = typed.row(0, named=True)
    explanation: Any = SameForAll(saved.task) if baseline else saved.learner.explain(saved.inputs(typed))
    kind, alike = "tree", []
    if baseline:
        kind = "baseline"
    elif isinstance(explanation, LinearExplanation):
        kind, explanation = "linear", _by_table(saved, explanation, values)
    elif hasattr(explanation, "distances"):
        kind, alike = "neighbours", _neighbours(saved, explanation.rows)
    elif hasattr(explanation, "kernel"):
        kind, alike = "support vectors", _support_vectors(saved, explanation.rows)
    actual, unseen = _actual(saved, raw, row), _unseen(saved, typed)
    return Explained(row, values, answer, shares, actual, kind, explanation, alike, unseen)


# -- the row -------------------------------------------------------------------------------------------------


def _raw_row(saved: SavedModel, data: str, row: int) -> Any:
    """Return one row as the file has it; the rows behind it are not read."""
    if row < 1:
        raise UsageError(f"--row {row} is no row: they are counted from 1, and the header is none.")
    before = 0
    for raw in table_batches(data, saved.schema, BATCH):
        if not before:
            saved.schema.check_columns(raw)
        if row <= before + raw.height:
            return raw.slice(row - 1 - before, 1)
        before += raw.height
    raise UsageError(
        f"--row {row} is beyond the table: {data} has {counted(before, 'row')}, counted from 1, and the "
        "header is none."
    )


def _actual(saved: SavedModel, raw: Any, row: int) -> Any:
    """Return what the table says of the target, None where it does not."""
    if saved.target not in raw.columns:
        return None
    try:
        value = saved.schema.target_values(raw, row - 1)[0]
    except InputError:  # an explanation does not depend on it
        return None
    if saved.task == "classification":
        return None if value is None else str(value)
    return None if np.isnan(value) else float(value)


def _unseen(saved: SavedModel, typed: Any) -> list[str]:
    found = UnseenCategories(saved)
    found.count(typed)
    return [f"{visible(name)} = {visible(value)}" for name, (_, [value]) in found.by_column.items()]


# -- in the columns of the table -----------------------------------------------------------------------------


def _encoder(saved: SavedModel) -> Any:
    """Return what made numbers of the table, None where nothing did or more than that was done."""
    steps = [step for _, step in getattr(saved.fitted, "steps", [])[:-1]]
    known = len(steps) == 1 and hasattr(steps[0], "sources_") and hasattr(steps[0], "columns_")
    return steps[0] if known else None


def _by_table(saved: SavedModel, one: LinearExplanation, values: Mapping[str, Any]) -> LinearExplanation:
    encoder = _encoder(saved)
    if encoder is None or len(encoder.sources_) != len(one.columns):
        return one
    used = [j for j, column in enumerate(encoder.columns_) if column.outputs]
    columns = [encoder.columns_[j] for j in used]
    sources = np.searchsorted(used, encoder.sources_)
    own = np.empty(len(one.columns))
    own[one.index] = one.means
    first = np.searchsorted(encoder.sources_, used)
    means = [
        float(column.center + column.scale * own[place]) if column.kind == "number" else None
        for column, place in zip(columns, first, strict=True)
    ]
    names = [str(column.name) for column in columns]
    shown = [_worded(values.get(name)) for name in names]
    return one.by_column(sources.tolist(), names, shown, means)


def _neighbours(saved: SavedModel, rows: Sequence[int]) -> list[dict[str, Any]]:
    store = saved.learner._store
    kinds = None if store.kinds is None else store.kinds.categories
    return _values(saved, store.rows[list(rows)], kinds)


def _support_vectors(saved: SavedModel, rows: Sequence[int]) -> list[dict[str, Any]]:
    place = {int(row): k for k, row in enumerate(saved.learner.support_)}
    shown = [place[row] for row in rows[:MOST_ROWS]]
    return _values(saved, saved.learner.support_vectors_[shown], None)


def _values(saved: SavedModel, rows: Any, kinds: Any) -> list[dict[str, Any]]:
    dense = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)
    encoder = _encoder(saved)
    if encoder is not None:
        return decoded(encoder, dense, kinds, _two_categories(saved) | known_categories(saved))
    names = getattr(saved.learner, "feature_names_in_", [f"x{j}" for j in range(dense.shape[1])])
    return coded(list(map(str, names)), dense, kinds)


def _two_categories(saved: SavedModel) -> dict[str, list[str]]:
    """Return the categories of columns that have two, as the schema remembers them."""
    found = {}
    for one in saved.schema.features:
        spelled = [one.reading[word] for word in ("true", "false") if word in one.reading]
        if one.distinct == len(one.examples) == 2:
            found[one.name] = list(map(str, spelled if len(spelled) == 2 else one.examples))
    return found


# -- in words ------------------------------------------------------------------------------------------------


def _told(saved: SavedModel, data: str, found: Explained) -> list[str]:
    answer = f"{visible(saved.target)}: {_cell(found.answer)}"
    if found.probabilities:
        shares = sorted(found.probabilities.items(), key=lambda pair: -pair[1])[:MOST_CLASSES]
        answer += f" ({', '.join(f'{visible(name)} {shown_share(share)}' for name, share in shares)})"
    if found.actual is not None:
        answer += f"; the table says {_cell(found.actual)}"
    lines = [
        paragraph(f"{saved.name}: row {found.row} of {data}, not counting the header", "  ", ""),
        *([] if found.alike else [_values_of(found)]),  # they stand beside those of other rows
        *(paragraph(f"{one}, which the model has not met", "    ", "  ") for one in found.unseen),
        "",
        paragraph(answer, "  ", ""),
        "",
    ]
    if found.kind == "neighbours":
        return [*lines, *_neighbour_lines(found)]
    if found.kind == "support vectors":
        return [*lines, *_support_lines(found)]
    return [*lines, str(found.explanation)]


def _values_of(found: Explained) -> str:
    pairs = [f"{visible(name)} = {_cell(value)}" for name, value in found.values.items()]
    more = _more_columns(len(pairs))
    text = ", ".join(one.replace(" ", HELD) for one in pairs[:MOST_COLUMNS])
    return paragraph(" ".join([text, *more]), "  ").replace(HELD, " ")


def _more_columns(count: int) -> list[str]:
    """Return what is said of the columns that are not shown, if there are any."""
    more = count - MOST_COLUMNS
    return [f"and {counted(more, 'more column')} (--json has all)"] if more > 0 else []


def _neighbour_lines(found: Explained) -> list[str]:
    """Return neighbours side by side, and what they say together."""
    one, shown = found.explanation, min(len(found.alike), MOST_ROWS)
    top = [
        ["distance", *(f"{value:.4g}" for value in one.distances[:shown])],
        ["counts", *(f"{value:.3g}" for value in one.weights[:shown])],
        ["says", *map(_cell, one.targets[:shown])],
    ]
    more = len(one.rows) - shown
    last = [f"and {counted(more, 'more neighbour')}"] if more > 0 else []
    if one.distances[0] == 0.0:
        last.append("the first of them is the same in every column: perhaps it is this row")
    return [*_side_by_side(found, "nearest training rows", top), *last, "", *_without_rows(one)]


def _support_lines(found: Explained) -> list[str]:
    """Return support vectors side by side, and what they decide together."""
    one, shown = found.explanation, min(len(found.alike), MOST_ROWS)
    top = [
        ["kernel", *(f"{value:.4g}" for value in one.kernel[:shown])],
        ["adds", *(f"{value:+.4g}" for value in one.contributions[:shown])],
        ["share", *(f"{value:.1%}" for value in one.shares[:shown])],
        ["is", *map(_cell, one.labels[:shown])],
    ]
    more, rest = len(one.rows) - shown, []
    if more > 0:
        added, share = sum(one.contributions[shown:]), sum(one.shares[shown:])
        rest = [f"{counted(more, 'more support vector')} add {added:+.4g} ({share:.1%} of all)"]
    answer, *others = _without_rows(one)
    others = [line.strip() for line in others if "more support vectors add" not in line]
    return [answer, "", *_side_by_side(found, "weightiest support vectors", top), "", *rest, *others]


def _without_rows(explanation: Any) -> list[str]:
    """Return the text of an explanation but for its rows, which are numbered within the training part."""
    return [line for line in str(explanation).splitlines() if not line.startswith("  row ")]


def _side_by_side(found: Explained, what: str, top: list[list[str]]) -> list[str]:
    """Return the row and the training rows it is like, column by column."""
    rows = found.alike[:MOST_ROWS]
    header = ["", "this row", *(str(k + 1) for k in range(len(rows)))]
    body = [[first, "", *others] for first, *others in top]
    for name, value in found.values.items():
        if any(name in row for row in rows):
            body.append([name, _cell(value), *(_cell(row.get(name)) for row in rows)])
    shown = body[: len(top) + MOST_COLUMNS]
    more = _more_columns(len(body) - len(top))
    return [f"the {what}, column by column", table(header, shown, range(1, len(header))), *more]


def _within(line: str) -> str:
    """Return a line, or several where it has no room in the terminal."""
    if width_of(line) <= WIDTH:
        return line
    start = line[: len(line) - len(line.lstrip())]
    return paragraph(line, f"{start}    ", start)


def _worded(value: Any) -> Any:
    """Return a value as an explanation shows it."""
    if value is None:
        return "missing"
    return _date(value) if isinstance(value, datetime) else value


def _cell(value: Any) -> str:
    shown = _worded(value)
    if isinstance(shown, float):
        return f"{shown:.6g}"
    return shown if isinstance(value, datetime) else shortened(visible(shown), WIDEST)


def _date(value: datetime) -> str:
    return value.isoformat(sep=" ").removesuffix(":00").removesuffix(" 00:00")


def _json(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _date(value) if isinstance(value, datetime) else value for name, value in values.items()}
