"""Training rows that a model keeps, as the table they came from had them.

Nearest neighbours and support vectors are kept as the learner reads them: numbers on one scale, a column for
each category, days since 1970. What a :class:`~sixfold.TableEncoder` has written is turned back here, as far
as it can be: the names of rare categories that share a column are not kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

MISSING, OTHER, DAYS = " is missing", " is other", ": days"
EPOCH = datetime(1970, 1, 1)
DIGITS = 12  # that survive being put on another scale and back


def decoded(
    encoder: Any,
    rows: Array,
    categories: Sequence[Any] | None = None,
    known: Mapping[str, Sequence[str]] | None = None,
) -> list[dict[str, Any]]:
    """Return rows that an encoder has written, by the columns of the table it read.

    Parameters
    ----------
    encoder : TableEncoder
    rows : ndarray of shape (rows, columns that the encoder writes)
    categories : sequence, default=None
        For each column the categories that its numbers stand for, None for a column of numbers.
    known : dict, default=None
        All categories of a column, which say what the one of two is that is written as 0.

    Returns
    -------
    list of dict
        Column to value; None where it is missing.
    """
    places = np.cumsum([0, *(len(one.outputs) for one in encoder.columns_)])
    found = []
    for row in rows:
        values = {}
        for column, first, last in zip(encoder.columns_, places[:-1], places[1:], strict=True):
            if last > first:
                names = (known or {}).get(str(column.name), ())
                coding = None if categories is None else categories[first]
                values[str(column.name)] = _value(column, row[first:last], coding, names)
        found.append(values)
    return found


def coded(names: Sequence[str], rows: Array, categories: Sequence[Any] | None = None) -> list[dict[str, Any]]:
    """Return rows that no encoder has written."""
    known = [None] * len(names) if categories is None else categories
    return [
        {name: _plain(value, one) for name, value, one in zip(names, row, known, strict=True)} for row in rows
    ]


def _value(column: Any, given: Array, categories: Sequence[Any] | None, names: Sequence[str]) -> Any:
    parts = dict(zip(column.outputs, given.tolist(), strict=True))
    if parts.get(MISSING) == 1.0:
        return None
    if column.kind == "category" and "" not in parts:
        return _category(column, parts, names)
    number: Any = parts.get("", parts.get(DAYS, 0.0))
    if categories is not None or column.kind == "category":
        return _plain(number, categories)
    if np.isnan(number):
        return None
    number = column.fill if column.scale == 0.0 else column.center + column.scale * number
    if column.kind == "date":
        return EPOCH + timedelta(seconds=round(86400.0 * number))
    return _rounded(number)


def _category(column: Any, parts: dict[str, float], names: Sequence[str]) -> str:
    for output, value in parts.items():
        if value == 1.0:
            return "other" if output == OTHER else output.removeprefix("=")
    unnamed = [name for name in names if name not in column.categories]
    if len(unnamed) == 1:
        return unnamed[0]
    return f"not {column.categories[0]}" if len(column.categories) == 1 else "other"


def _plain(number: float, categories: Sequence[Any] | None) -> Any:
    if np.isnan(number):
        return None
    if categories is None:
        return _rounded(float(number))
    code = int(number)
    return str(categories[code]) if 0 <= code < len(categories) else None


def _rounded(number: float) -> float:
    return float(f"{number:.{DIGITS}g}")
