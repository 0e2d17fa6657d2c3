"""Text for a terminal of 80 columns: paragraphs, tables and labelled lines.

What comes from files (names of columns, labels) is shown without control characters, so that it can neither
break a table nor speak to the terminal. Wide characters of East Asian scripts count as two columns.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from sixfold.plain_words import width_of

WIDTH = 80
LABEL = 14  # columns for the label of a labelled line
GAP = "  "
LEAST = 12  # columns that are left of a column that gives way


def visible(value: Any) -> str:
    r"""Return text without line breaks and other control characters.

    >>> visible("a\nb\x1b[31m")
    'a\\nb\\x1b[31m'
    """
    text = str(value)
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def shortened(text: str, width: int) -> str:
    """Return the text, or as much of it as fits before an ellipsis.

    >>> shortened("temperature", 6)
    'tempe…'
    """
    if width_of(text) <= width:
        return text
    while text and width_of(text) > width - 1:
        text = text[:-1]
    return text.rstrip() + "…"


def paragraph(text: str, indent: str = "", first: str | None = None, width: int = WIDTH) -> str:
    """Return text in lines of at most ``width`` columns; ``first`` stands before the first of them.

    >>> print(paragraph("one two three", "  ", "- ", width=9))
    - one two
      three
    """
    lines, line, room = [], first if first is not None else indent, False
    for word in (piece for whole in text.split() for piece in _pieces(whole, width - width_of(indent))):
        if room and width_of(line) + 1 + width_of(word) > width:
            lines.append(line)
            line, room = indent, False
        line += (" " if room else "") + word
        room = True
    return "\n".join([*lines, line.rstrip()])


def _pieces(word: str, width: int) -> Iterable[str]:
    """Return a word, cut where it is longer than a line."""
    while width_of(word) > width:
        cut = next(k for k in range(len(word), 0, -1) if width_of(word[:k]) <= width)
        yield word[:cut]
        word = word[cut:]
    yield word


def labelled(label: str, text: str) -> str:
    """Return a line such as ``target        churned``, continued below the text where it is long."""
    return paragraph(text, " " * LABEL, label.ljust(LABEL))


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[Any]],
    right: Iterable[int] = (),
    shorten: int | None = None,
) -> str:
    """Return rows under a header, within 80 columns: the widest columns are shortened where need be.

    ``right`` are the numbers of the columns that are set to the right, ``shorten`` is the one that gives way
    first.

    >>> print(table(["name", "rows"], [["iris", 150], ["wine", 1780]], right=[1]))
    name  rows
    ----  ----
    iris   150
    wine  1780
    """
    cells = [[visible(one) for one in row] for row in [header, *rows]]
    widths = [max(map(width_of, column)) for column in zip(*cells, strict=True)]
    excess = sum(widths) + len(GAP) * (len(widths) - 1) - WIDTH
    if shorten is not None and excess > 0:
        given = min(excess, max(widths[shorten] - LEAST, 0))
        widths[shorten] -= given
        excess -= given
    for _ in range(excess):
        widths[widths.index(max(widths))] -= 1
    right = set(right)
    lines = []
    for row in [cells[0], ["-" * width for width in widths], *cells[1:]]:
        line = []
        for number, (cell, width) in enumerate(zip(row, widths, strict=True)):
            shown = shortened(cell, width)
            space = " " * (width - width_of(shown))
            line.append(space + shown if number in right else shown + space)
        lines.append(GAP.join(line).rstrip())
    return "\n".join(lines)


def figure(value: Any, digits: int = 3) -> str:
    """Return a score for people: three decimals, or five digits where it is large.

    >>> figure(0.95312), figure(-123456.789), figure(None), figure(1e-9)
    ('0.953', '-1.2346e+05', 'unknown', '1e-09')
    """
    if not isinstance(value, int | float) or isinstance(value, bool) or math.isnan(value):
        return "unknown"
    if value != 0 and not 10.0**-digits <= abs(value) < 1000:
        return f"{value:.5g}"
    return f"{value:.{digits}f}"


def listed(names: Iterable[Any], most: int = 5) -> str:
    """Return names in a row, the first few of them.

    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    shown = [shortened(visible(one), 40) for one in names]
    more = len(shown) - most
    if more <= 0:
        return ", ".join(shown)
    return f"{', '.join(shown[:most])} and {more:,} more"


def print_json(plain: Any) -> None:
    """Print plain data as JSON; what is not a finite number is null."""
    print(json.dumps(_finite(plain), indent=2, ensure_ascii=False, allow_nan=False))


def say(text: str) -> None:
    """Print to the stream for remarks, stderr."""
    print(text, file=sys.stderr, flush=True)


def _finite(value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
