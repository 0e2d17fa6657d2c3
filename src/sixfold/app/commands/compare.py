"""``sixfold compare``: two models on the same rows, which is better, and whether that could be chance.

Rows that one of them was trained on would flatter it. Where DATA is the table of a fit, which its fingerprint
tells, its split is repeated and only rows that neither model has seen are used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.app.commands.paired_errors import (
    mcnemar_p_value,
    paired_t_p_value,
    sign_flip_p_value,
    wilcoxon_p_value,
)
from sixfold.app.commands.running_score import RunningScore, known_values, row_losses
from sixfold.app.commands.saved_model import SavedModel, metric_in_words, open_model, shown_score
from sixfold.app.commands.where_models_differ import parts_that_differ
from sixfold.app.plain_text import figure, labelled, listed, paragraph, print_json, table, visible
from sixfold.app.training_record import data_fingerprint, rows_of, split_rows
from sixfold.data.files.tables import Table, read_table
from sixfold.errors import InputError, UsageError
from sixfold.plain_words import counted

Array = NDArray[Any]

CHANCE = 0.05  # a difference that chance alone gives as often as this, or oftener, proves nothing
MOST = 5  # rows and pairs of labels that are shown
CLASSIFICATION = ("accuracy", "balanced_accuracy", "neg_log_loss")
REGRESSION = ("r2", "neg_mean_absolute_error", "neg_root_mean_squared_error")


def run(first: str, second: str, data: str, *, as_json: bool = False) -> int:
    """Compare two models on the rows of a file, and return the exit code."""
    models = open_model(first), open_model(second)
    _check_same_question(*models)
    rows = _fair_rows(models, read_table(data), data)
    answers = [_Answers(saved, typed) for saved, typed in zip(models, rows.typed, strict=True)]
    found = {
        "first": first,
        "second": second,
        "data": data,
        "task": models[0].task,
        "target": models[0].target,
        "rows": len(rows.y),
        "about_rows": rows.about,
        "scores": _scores(models, answers, rows.y),
        "agreement": _agreement(models, answers, rows),
        "tests": _tests(models, answers, rows.y),
        "where": [one.to_dict() for one in parts_that_differ(rows.typed[0], _differences(models, answers))],
    }
    found["verdict"] = _verdict(found, models)
    if as_json:
        print_json(found)
    else:
        _tell(found, models)
    return 0


@dataclass(frozen=True)
class Rows:
    """The rows that are compared on.

    Attributes
    ----------
    typed : list of polars.DataFrame
        As each model reads them.
    y : ndarray
    numbers : ndarray
        Their numbers in the file, from 1.
    about : str
        How they were chosen; empty where all are used.
    """

    typed: list[Any]
    y: Array
    numbers: Array
    about: str


class _Answers:
    """What one model says."""

    def __init__(self, saved: SavedModel, typed: Any) -> None:
        predicted, self.chances = saved.answers(typed)
        self.predicted = predicted.astype(np.float64 if saved.task == "regression" else str)


def _check_same_question(one: SavedModel, other: SavedModel) -> None:
    for what, mine, theirs in (("target", one.target, other.target), ("task", one.task, other.task)):
        if mine != theirs:
            raise UsageError(
                f"{one.name} and {other.name} do not answer the same question: the {what} of the first is "
                f"{mine!r}, that of the second {theirs!r}."
            )


def _fair_rows(models: tuple[SavedModel, SavedModel], data: Table, source: str) -> Rows:
    """Return the rows with a known target that neither model has been trained on, where that is known."""
    target = models[0].target
    if target not in data.frame.columns:
        raise InputError(
            f"{source} has no column {target!r}, which both models predict: without the right answers they "
            "cannot be compared."
        )
    known = [rows_of(saved.facts, data) for saved in models]
    y = known[0].y
    if not len(y):
        raise InputError(f"{source} has no row with a value in {target!r}: there is nothing to compare on.")
    numbers = np.flatnonzero(known_values(models[0].schema.target_values(data.frame)))
    keep, trained = np.ones(len(y), dtype=bool), []
    for saved, rows in zip(models, known, strict=True):
        told = (saved.facts.get("data") or {}).get("fingerprint")
        if told and told == data_fingerprint(rows.X, rows.y, rows.weight):
            trained.append(saved.name)
            saved.require_split()
            keep &= _held_out(saved, rows)
    if not trained:
        return Rows([one.X for one in known], y, numbers, "")
    who = " and ".join(dict.fromkeys(trained))
    if not keep.any():
        about = (
            f"Careful: {source} is the table that {who} learnt from, and no row is new to both models. "
            "All rows are used, which flatters whoever has seen them."
        )
        return Rows([one.X for one in known], y, numbers, about)
    about = (
        f"{source} is the table that {who} learnt from: only the {counted(int(keep.sum()), 'row')} that were "
        f"held out are used, of {len(y):,}."
    )
    return Rows([one.X.filter(keep) for one in known], y[keep], numbers[keep], about)


def _held_out(saved: SavedModel, rows: Any) -> NDArray[np.bool_]:
    """Return which rows of its own table a model was not trained on."""
    held_out = np.zeros(len(rows.y), dtype=bool)
    held_out[split_rows(saved.facts, rows)[1]] = True
    return held_out


def _scores(models: tuple[SavedModel, SavedModel], answers: list[_Answers], y: Array) -> list[dict[str, Any]]:
    """Return the scores side by side, first by the metric of the first model."""
    usual = REGRESSION if models[0].task == "regression" else CLASSIFICATION
    found = []
    for scoring in dict.fromkeys([RunningScore(models[0]).scoring, *usual]):
        values = []
        for saved, given in zip(models, answers, strict=True):
            score = RunningScore(saved, scoring)
            if score.scoring != scoring:  # it has no probabilities
                values.append(math.nan)
                continue
            score.add(y, given.predicted, given.chances)
            values.append(score.value())
        if not all(map(math.isnan, values)):
            found.append({"metric": scoring, "first": values[0], "second": values[1]})
    return found


def _differences(models: tuple[SavedModel, SavedModel], answers: list[_Answers]) -> Array:
    """Return how far apart the two answers to each row are: in units of the target, or 1 for other labels."""
    one, other = answers
    if models[0].task == "regression":
        return np.abs(one.predicted - other.predicted)
    return (one.predicted != other.predicted).astype(np.float64)


def _agreement(models: tuple[SavedModel, SavedModel], answers: list[_Answers], rows: Rows) -> dict[str, Any]:
    """Return how often they agree, and the rows where they are farthest apart."""
    difference = _differences(models, answers)
    one, other = answers
    if models[0].task == "regression":
        found: dict[str, Any] = {
            "mean_difference": float(difference.mean()),
            "largest_difference": float(difference.max()),
        }
        order = np.argsort(-difference, kind="stable")
    else:
        differ = difference > 0
        found = {"same": int((~differ).sum()), "different": int(differ.sum())}
        found["pairs"] = _pairs(one.predicted[differ], other.predicted[differ], rows.y[differ])
        order = _by_confidence(models, answers, differ)
    order = order[difference[order] > 0][:MOST]
    found["rows"] = [
        {
            "row": int(rows.numbers[k]) + 1,
            "target": rows.y[k],
            "first": one.predicted[k],
            "second": other.predicted[k],
        }
        for k in order
    ]
    return found


def _by_confidence(models: tuple[SavedModel, SavedModel], answers: list[_Answers], differ: Array) -> Array:
    """Return rows in the order in which the models contradict each other, the surest answers first."""
    sure = np.zeros(differ.size)
    for given in answers:
        if given.chances is not None:
            sure += given.chances.max(axis=1)
    rows = np.flatnonzero(differ)
    return rows[np.argsort(-sure[rows], kind="stable")]


def _pairs(one: Array, other: Array, y: Array) -> list[dict[str, Any]]:
    """Return which labels stand against each other, how often, and who is right."""
    pairs, inverse = np.unique(np.column_stack([one, other]), axis=0, return_inverse=True)
    found = []
    for number, (mine, theirs) in enumerate(pairs.tolist()):
        right = y[inverse.ravel() == number]
        found.append(
            {
                "first": mine,
                "second": theirs,
                "rows": len(right),
                "first_right": int((right == mine).sum()),
                "second_right": int((right == theirs).sum()),
            }
        )
    return sorted(found, key=lambda one: -one["rows"])


def _tests(models: tuple[SavedModel, SavedModel], answers: list[_Answers], y: Array) -> list[dict[str, Any]]:
    """Return the paired tests."""
    one, other = answers
    if models[0].task == "regression":
        wrong = [np.abs(y - given.predicted) for given in answers]
        return [
            {"test": "paired t-test of squared errors", "p": paired_t_p_value(wrong[0] ** 2, wrong[1] ** 2)},
            {"test": "paired t-test of absolute errors", "p": paired_t_p_value(*wrong)},
            {"test": "Wilcoxon test of absolute errors", "p": wilcoxon_p_value(*wrong)},
        ]
    right = [given.predicted == y for given in answers]
    only = int((right[0] & ~right[1]).sum()), int((right[1] & ~right[0]).sum())
    found: list[dict[str, Any]] = [
        {
            "test": "McNemar's exact test of right answers",
            "p": mcnemar_p_value(*only),
            "only_first_right": only[0],
            "only_second_right": only[1],
        }
    ]
    labels, index, counts = np.unique(y, return_inverse=True, return_counts=True)
    recall = (right[0].astype(np.float64) - right[1]) / (counts[index] * labels.size)
    found.append({"test": "sign-flip test of recalls", "p": sign_flip_p_value(recall)})
    if one.chances is not None and other.chances is not None:
        losses = [
            row_losses(y, given.chances, saved.classes)
            for given, saved in zip(answers, models, strict=True)
            if given.chances is not None
        ]
        found.append({"test": "paired t-test of log losses", "p": paired_t_p_value(*losses)})
    return found


def _deciding_test(found: dict[str, Any]) -> dict[str, Any]:
    """Return the test that goes with the metric: of labels, of probabilities, of squares or of distances."""
    tests, metric = found["tests"], found["scores"][0]["metric"]
    if found["task"] == "regression":
        return tests[1] if "absolute" in metric else tests[0]
    if metric == "balanced_accuracy":
        return tests[1]
    return tests[2] if metric == "neg_log_loss" and len(tests) > 2 else tests[0]


def _verdict(found: dict[str, Any], models: tuple[SavedModel, SavedModel]) -> str:
    """Return who is better and whether that could be chance, in a sentence or two."""
    score, test = found["scores"][0], _deciding_test(found)
    names = _names(models)
    mine, theirs = score["first"], score["second"]
    metric = metric_in_words(score["metric"])
    if math.isnan(mine) or math.isnan(theirs):
        return f"There is no {metric} of both models on these rows."
    p = test["p"]
    if mine == theirs:
        return f"Neither is better: both have the same {metric} on {counted(found['rows'], 'row')}."
    better, worse = names if mine > theirs else names[::-1]
    high, low = (figure(shown_score(score["metric"], one)) for one in sorted((mine, theirs), reverse=True))
    said = f"{better} is better than {worse} here: {metric} {high} against {low}. "
    if math.isnan(p):
        return said + "There are too few rows to tell that from chance."
    how_often = f"in {p:.0%} of such comparisons" if p >= 0.01 else "in fewer than 1% of such comparisons"
    reason = (
        f"Were both equally good, a difference as large would turn up {how_often} "
        f"({test['test']}, p = {_p_value(p)})"
    )
    return f"{said}{reason}: {'it may well be chance' if p >= CHANCE else 'that is hardly chance'}."


def _names(models: tuple[SavedModel, SavedModel]) -> list[str]:
    one, other = (saved.name for saved in models)
    return [one, other] if one != other else [str(saved.path) for saved in models]


def _tell(found: dict[str, Any], models: tuple[SavedModel, SavedModel]) -> None:
    """Print it all for people."""
    names = _names(models)
    print(labelled("first", f"{visible(names[0])}: {visible(models[0].facts.get('learner', ''))}"))
    print(labelled("second", f"{visible(names[1])}: {visible(models[1].facts.get('learner', ''))}"))
    print(
        labelled("rows", f"{found['rows']:,} of {visible(found['data'])} with a value in {found['target']!r}")
    )
    if found["about_rows"]:
        print(paragraph(visible(found["about_rows"]), " " * 14))
    print()
    scores = [
        (
            metric_in_words(one["metric"]),
            *(figure(shown_score(one["metric"], one[name])) for name in ("first", "second")),
        )
        for one in found["scores"]
    ]
    print(table(("", "first", "second"), scores, right=[1, 2]))
    print()
    print("\n".join(_agreement_lines(found)))
    for number, test in enumerate(found["tests"]):
        print(labelled("tests" if number == 0 else "", f"{test['test']}: p = {_p_value(test['p'])}"))
    print()
    print(paragraph(found["verdict"]))


def _agreement_lines(found: dict[str, Any]) -> list[str]:
    agreement, rows = found["agreement"], found["rows"]
    regression = found["task"] == "regression"
    if regression:
        mean, largest = (figure(agreement[f"{name}_difference"]) for name in ("mean", "largest"))
        lines = [labelled("agreement", f"the predictions differ by {mean} on average, by {largest} at most")]
    else:
        share = agreement["same"] / rows
        lines = [
            labelled(
                "agreement",
                f"the same label in {agreement['same']:,} of {counted(rows, 'row')} ({share:.1%})",
            )
        ]
        for one in agreement["pairs"][:MOST]:
            said = (
                f"{visible(one['first'])!r} against {visible(one['second'])!r}: "
                f"{counted(one['rows'], 'row')}, the first is right in {one['first_right']:,}, the second in "
                f"{one['second_right']:,}"
            )
            lines.append(labelled("", said))
    for one in found["where"]:
        inside, outside = (
            figure(one[name]) if regression else f"{one[name]:.0%} of rows" for name in ("inside", "outside")
        )
        what = "differ by" if regression else "disagree in"
        said = f"they {what} {inside} where {visible(one['column'])} is {one['values']}, elsewhere {outside}"
        lines.append(labelled("", said))
    if agreement["rows"]:
        shown = [
            f"row {one['row']} ({_plain(one['first'])} / {_plain(one['second'])})"
            for one in agreement["rows"]
        ]
        lines.append(labelled("farthest", listed(shown, MOST)))
    return lines


def _p_value(p: float) -> str:
    if math.isnan(p):
        return "unknown"
    return f"{p:.3f}" if p >= 0.001 else f"{p:.1g}"


def _plain(value: Any) -> str:
    return figure(float(value)) if isinstance(value, float) else visible(value)
