"""The table of a :class:`~sixfold.explain.linear.LinearExplanation`: its lines, as data and as text.

where it starts, the largest contributions one by one, all others together, where it ends
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sixfold.explain.text import cut_middle
from sixfold.explain.trees.words import class_word, word
from sixfold.plain_words import width_of

if TYPE_CHECKING:
    from sixfold.explain.linear import LinearExplanation

MOST_SHOWN = 10  # columns that are printed or drawn
WIDTH = 80  # letters of a line
WIDEST_VALUE = 16  # as a date with its time of day
NOTHING = 1e-9  # of a value: a mean that is told as 0


@dataclass(frozen=True)
class Line:
    """One line of the table: a column, several of them together, the start or the end.

    ``kind`` is "start", "column", "others" or "end"; ``part`` is what is added, or the whole score.
    """

    kind: str
    name: str
    value: Any
    mean: Any
    part: float
    odds: float | None
    probability: float | None


def table_lines(one: LinearExplanation, most: int = MOST_SHOWN) -> list[Line]:
    """Return what is printed and drawn: the start, the largest contributions, the others, and the end."""
    count = sum(part != 0.0 for part in one.contributions)
    shown = count if count <= most + 1 else most
    shown = min(max(shown, 1), len(one.columns))
    log_odds = bool(one.odds)
    lines = [
        Line("start", one.background, None, None, one.start, _exp(one.start, log_odds), one.start_probability)
    ]
    for k in range(shown):
        after = one.probabilities[k] if one.probabilities else None
        factor = one.odds[k] if one.odds else None
        part = one.contributions[k]
        lines.append(Line("column", one.columns[k], one.values[k], one.means[k], part, factor, after))
    if rest := len(one.columns) - shown:
        part = math.fsum(one.contributions[shown:])
        name = f"{rest:,} other column{'s' * (rest != 1)}"
        lines.append(Line("others", name, None, None, part, _exp(part, log_odds), one.probability))
    end = "score" if one.against is not None else "prediction"
    return [*lines, Line("end", end, None, None, one.score, _exp(one.score, log_odds), one.probability)]


def _exp(part: float, wanted: bool) -> float | None:
    if not wanted:
        return None
    return math.exp(part) if part < 709.0 else math.inf


def text_lines(one: LinearExplanation) -> list[str]:
    """Return the table of an explanation, a line each."""
    lines = table_lines(one)
    digits = decimals([line.part for line in lines])
    means = any(line.mean is not None for line in lines)
    cells = [["", "value", *["mean"] * means, "adds", *["odds"] * bool(one.odds)]]
    cells[0] += ["probability"] * (one.probability is not None)
    for line in lines:
        part = signed(line.part, digits, line.kind in ("start", "end"))
        row = [word(line.name), _value(line.value), *[_value(_near(line.mean, line.value))] * means, part]
        if line.odds is not None:
            row.append(("" if line.kind in ("start", "end") else "x ") + f"{line.odds:.3g}")
        if line.probability is not None:
            row.append(shown_share(line.probability))
        cells.append(row)
    if all(line.value is None for line in lines if line.kind == "column"):
        cells = [[row[0], *row[2:]] for row in cells]
    return [*headline(one), *_table(cells)]


def headline(one: LinearExplanation) -> list[str]:
    """Return the answer, and what is explained."""
    if one.against is None:
        target = "" if one.of is None else f" of target {one.of}"
        return [f"answer{target}: {one.answer:.6g}", f"what each column adds to the prediction{target}"]
    likely = "" if one.probability is None else f", probability {shown_share(one.probability)}"
    answer = f"answer: {class_word(one.answer)}"
    if one.of == one.answer:
        answer, likely = answer + likely, ""
    said = f"what each column adds to the score of {class_word(one.of)} against {class_word(one.against)}"
    return [_cut(answer, WIDTH), _cut(said + likely, WIDTH)]


def _table(cells: list[list[str]]) -> list[str]:
    widths = [max(map(width_of, column)) for column in zip(*cells, strict=True)]
    widths[0] = min(widths[0], WIDTH - 2 - sum(width + 2 for width in widths[1:]))
    lines = []
    for first, *others in cells:
        name = _cut(first, widths[0])
        parts = [name + " " * (widths[0] - width_of(name))]
        parts += [
            " " * (width - width_of(text)) + text for text, width in zip(others, widths[1:], strict=True)
        ]
        lines.append(("  " + "  ".join(parts)).rstrip())
    return lines


def decimals(parts: Sequence[float]) -> int:
    """Return with how many decimals numbers are told of which the largest has four digits."""
    largest = max((abs(part) for part in parts if math.isfinite(part)), default=0.0)
    return 3 if largest == 0 else 3 - math.floor(math.log10(largest))


def signed(part: float, digits: int, whole: bool = False) -> str:
    """Return a number that is added, with its sign; ``whole`` ones have a sign where they are negative."""
    sign = "" if whole else "+"
    if not -3 <= digits <= 9:
        return f"{part:{sign}.4g}"
    return f"{round(part, digits) + 0.0:{sign}.{max(digits, 0)}f}"


def shown_share(share: float) -> str:
    """Return a probability in percent; only what is certain reads 100% or 0%."""
    if 0.9995 <= share < 1.0:
        return ">99.9%"
    if 0.0 < share < 0.0005:
        return "<0.1%"
    return f"{share:.1%}"


def _near(mean: Any, value: Any) -> Any:
    """Return a mean, as 0 where that is all that rounding has left of a column about 0."""
    numbers = isinstance(mean, float) and isinstance(value, float)
    return 0.0 if numbers and abs(mean) < NOTHING * abs(value) else mean


def _value(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        whole = 1e4 <= abs(value) < 1e7 or (value == round(value) and abs(value) < 1e7)
        return f"{value:.0f}" if whole else f"{value:.4g}"
    return _cut(word(value), WIDEST_VALUE)


def _cut(text: str, width: int) -> str:
    return cut_middle(text, lambda part: width_of(part) <= width)
