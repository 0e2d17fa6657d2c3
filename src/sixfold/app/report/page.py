"""The report as one HTML page, and as the same facts for machines beside it.

The page is made by a template that escapes everything that comes from the data; pictures alone are inserted
as they are, and they have been through an XML writer.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sixfold.app.fitting import FitResult
from sixfold.app.report.cautions import Caution, find_cautions
from sixfold.app.report.data_facts import kinds_in_words
from sixfold.app.report.examination import examine
from sixfold.app.report.facts import file_name, report_facts
from sixfold.app.report.pictures import draw_pictures, other_searches
from sixfold.app.report.svg import style_sheet_variables
from sixfold.app.report.words import Metric, counted, number_text, percent, score_text, shortened
from sixfold.errors import MissingExtraError
from sixfold.explain.palette import COLOURS, tint

MOST_LINES = 15  # of a confusion matrix
MOST_BARS = 20  # of importances


@dataclass(frozen=True)
class Report:
    """A report.

    Attributes
    ----------
    facts : dict
        For machines, without NaN.
    html : str
        For people.
    cautions : list of Caution
    """

    facts: dict[str, Any]
    html: str
    cautions: list[Caution]


def make_report(result: FitResult, cautions: Sequence[Caution] | None = None) -> Report:
    """Return the report of a fit.

    Parameters
    ----------
    result : FitResult
    cautions : sequence of Caution, default=None
        What to be careful about, where that is known already; None looks for it.
    """
    found = examine(result)
    careful = find_cautions(result, found) if cautions is None else list(cautions)
    facts = report_facts(result, found, careful)
    pictures, failed = draw_pictures(result, found)
    facts["not_drawn"] = failed
    return Report(facts, render(facts, pictures, result), careful)


def write_report(
    result: FitResult, folder: str | Path, cautions: Sequence[Caution] | None = None
) -> tuple[Path, Path]:
    """Write NAME.report.html and NAME.report.json, each to a temporary name first; return their paths."""
    report = make_report(result, cautions)
    name = file_name(result)
    page, machine = Path(folder) / f"{name}.report.html", Path(folder) / f"{name}.report.json"
    text = json.dumps(report.facts, allow_nan=False, ensure_ascii=False, indent=1)
    for path, content in ((page, report.html), (machine, text + "\n")):
        unfinished = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            unfinished.write_text(content, encoding="utf-8", errors="replace", newline="\n")
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    return page, machine


def render(facts: dict[str, Any], pictures: dict[str, str], result: FitResult) -> str:
    """Return the page."""
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        raise MissingExtraError("The report needs Jinja2: pip install 'sixfold[app]'.") from error
    here = Path(__file__).parent
    environment = Environment(
        loader=FileSystemLoader(here), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters |= {
        "percent": percent,
        "figure": lambda value: (
            _minus(number_text(value)) if isinstance(value, float) else number_text(value)
        ),
        "score": score_text,
        "seconds": _seconds,
        "signed": _signed,
        "p_value": _p_value,
        "shortened": shortened,
        "count_of": counted,
    }
    metric = Metric(result.scoring, result.metric)
    page: str = environment.get_template("page.html").render(
        **facts,
        css=Markup(style_sheet((here / "page.css").read_text(encoding="utf-8"))),
        pictures={name: Markup(svg) for name, svg in pictures.items()},
        failed=facts["not_drawn"],
        others=[one.name for one in other_searches(result)],
        kinds=kinds_in_words(facts["data"]["kinds"]),
        shown=lambda score: _minus(metric.shown(score)),
        spread=score_text,
        interval=_interval(facts, metric),
        matrix=_matrix(facts),
        importance_bars=_bars(facts),
        importance_note=_importance_note(facts),
        best_alone=_best_alone(facts),
        bar=lambda height, whole: max(whole * height, 0.04 * whole if height > 0 else 0.0),
        json_name=f"{file_name(result)}.report.json",
    )
    return page


def style_sheet(source: str) -> str:
    """Return the style sheet with the colours of the pictures, light and dark."""
    light, dark = style_sheet_variables()
    tints = "\n".join(
        f'.tree svg [fill="{tint(k)}"] {{ fill: color-mix(in srgb, {colour} 18%, var(--surface)); }}'
        for k, colour in enumerate(COLOURS)
    )
    for name, value in (("LIGHT_VARIABLES", light), ("DARK_VARIABLES", dark), ("TREE_TINTS", tints)):
        source = source.replace(name, value)
    return source


def _interval(facts: dict[str, Any], metric: Metric) -> str:
    low, high = facts["chosen"]["interval"]["low"], facts["chosen"]["interval"]["high"]
    if low is None or high is None:
        return ""
    ends = sorted((metric.sign * low, metric.sign * high))
    return " to ".join(score_text(end) for end in ends)


def _matrix(facts: dict[str, Any]) -> dict[str, Any] | None:
    """Return the confusion matrix as a table is drawn: darker where more of a line's rows are."""
    confusion = (facts["answers"] or {}).get("confusion")
    if confusion is None or len(confusion["labels"]) > MOST_LINES:
        return None
    lines = []
    for i, (label, counts) in enumerate(zip(confusion["labels"], confusion["counts"], strict=True)):
        total = max(sum(counts), 1)
        cells = [
            {
                "count": count,
                "colour": "line0" if i == j else "line1",
                "strength": _strength(count / total, i == j),
            }
            for j, count in enumerate(counts)
        ]
        lines.append({"label": label, "cells": cells})
    return {"labels": confusion["labels"], "lines": lines}


def _strength(share: float, right: bool) -> float:
    """Return how much of its colour a cell has, in per cent; few mistakes are to be seen too."""
    return round(45.0 * (share if right else share**0.5), 1)


def _bars(facts: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the bars of importances in per cent of the width, on one scale that has 0 and every spread."""
    columns = _used(facts)[:MOST_BARS]
    if not columns:
        return []
    mean, std = (np.array([one[name] or 0.0 for one in columns]) for name in ("mean", "std"))
    low, high = min(0.0, float((mean - std).min())), max(0.0, float((mean + std).max()))
    width = (high - low) or 1.0
    digits = int(np.clip(2 - np.floor(np.log10(max(abs(low), abs(high)))), 0, 8))

    def place(value: float) -> float:
        return round(100.0 * (value - low) / width, 2)

    return [
        {
            "column": one["column"],
            "left": place(min(0.0, m)),
            "width": round(place(max(0.0, m)) - place(min(0.0, m)), 2),
            "zero": place(0.0),
            "low": place(m - s),
            "spread": round(place(m + s) - place(m - s), 2),
            "text": f"{m:,.{digits}f} ± {s:,.{digits}f}",
        }
        for one, m, s in zip(columns, mean.tolist(), std.tolist(), strict=True)
    ]


def _used(facts: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in facts["importance"]["columns"] if one["mean"] or one["std"]]


def _importance_note(facts: dict[str, Any]) -> str:
    """Return what is said of the columns that have no bar."""
    used, total = len(_used(facts)), len(facts["importance"]["columns"])
    said = []
    if used > MOST_BARS:
        said.append(f"These are the first {MOST_BARS} of {used:,} columns.")
    if total > used:
        none = counted(total - used, "column")
        said.append(f"Shuffling {'the other ' * (used > 0)}{none} changes nothing.")
    return " ".join(said)


def _best_alone(facts: dict[str, Any]) -> list[tuple[str, float]]:
    return sorted(facts["alone"].items(), key=lambda pair: -pair[1])[:3]


def _seconds(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value * 1e3:.0f} ms" if value < 1 else f"{value:.1f} s"


def _p_value(value: float | None) -> str:
    return "" if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"


def _signed(value: float | None) -> str:
    if value is None:
        return ""
    return "0" if value == 0 else _minus(f"{value:+.3g}")


def _minus(text: str) -> str:
    """Return a number with the sign that is as wide as a plus."""
    return text.replace("-", "\N{MINUS SIGN}") if "e" not in text else text
