"""The report in a few sentences: what was predicted, how well, and beside what."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sixfold.app.fitting import FitResult
from sixfold.app.report.examination import Examination
from sixfold.app.report.words import Metric, number_text, percent, shortened
from sixfold.plain_words import counted


def headline_facts(result: FitResult, found: Examination) -> dict[str, Any]:
    """Return title, answer and reason in plain words."""
    target = result.schema.target
    name = target.name if target else "target"
    columns = counted(len(result.schema.features), "column")
    settings = ", ".join(f"{key} = {number_text(value)}" for key, value in result.chosen.parameters.items())
    reason = result.reason.strip().rstrip(".")
    return {
        "target": name,
        "columns": columns,
        "score": _score(result, found),
        "baseline": _baseline(result, found),
        "settings": settings,
        "reason": f"{reason[:1].upper()}{reason[1:]}." if reason else "",
    }


def _score(result: FitResult, found: Examination) -> str:
    """Return how good the model is, in a sentence."""
    metric, chosen = Metric(result.scoring, result.metric), result.chosen
    if found.answers is None or not math.isfinite(chosen.test):
        return (
            f"No rows were held out. In cross-validation it has {metric.words} {metric.shown(chosen.mean)} ± "
            f"{Metric('score').shown(chosen.std)}."
        )
    rows = counted(result.test.size, "row")
    if result.task == "classification":
        y = found.y_asked(result)
        said = np.asarray(found.answers.predict(found.answers.rows))
        share = float(np.mean(said == y))
        sampled = "about " if y.size < result.test.size else ""
        right = round(share * result.test.size)
        start = f"It is right about {sampled}{right:,} of {rows} it has not seen ({percent(share)})"
        if result.scoring in (None, "accuracy"):
            return f"{start}."
        return f"{start}; {metric.words} is {metric.shown(chosen.test)}."
    if result.scoring in (None, "r2") and chosen.test > 0:
        return (
            f"It explains {percent(chosen.test)} of the differences between {rows} it has not seen, and is "
            f"off by {number_text(_error(result, found))} on average."
        )
    return (
        f"On {rows} it has not seen, {metric.words} is {metric.shown(chosen.test)}, and it is off by "
        f"{number_text(_error(result, found))} on average."
    )


def _error(result: FitResult, found: Examination) -> float:
    """Return the mean absolute error."""
    said = np.asarray(found.answers.predict(found.answers.rows), dtype=float)
    return float(f"{np.abs(found.y_asked(result) - said).mean():.3g}")


def _baseline(result: FitResult, found: Examination) -> str:
    """Return what is had without any column, in a sentence."""
    if found.baseline is None:
        return ""
    metric = Metric(result.scoring, result.metric)
    train, test = result.y[result.train], result.y[result.test]
    if result.task == "classification":
        labels, counts = np.unique(train, return_counts=True)
        common = labels[counts.argmax()]
        if not test.size:
            return (
                f"Always saying '{shortened(common)}' has {metric.words} {metric.shown(found.baseline.mean)}."
            )
        right = int((test == common).sum())
        said = f"Always saying '{shortened(common)}' is right about {right:,} ({percent(right / test.size)})"
        if result.scoring in (None, "accuracy"):
            return f"{said}."
        return f"{said}, with {metric.words} {metric.shown(found.baseline.test)}."
    score = found.baseline.test if test.size else found.baseline.mean
    if not test.size:
        return f"Always saying the mean has {metric.words} {metric.shown(score)}."
    off = float(f"{np.abs(test - train.mean()).mean():.3g}")
    return f"Always saying the mean, {number_text(float(train.mean()))}, is off by {number_text(off)}."
