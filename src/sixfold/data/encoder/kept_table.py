"""A table for learners that read numbers and categories as they are: only dates change.

    dates       days, and month, weekday and hour as plain numbers where they vary
    durations   days

pandas' NA among text or booleans becomes None.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sixfold.data.checks import in_narwhals
from sixfold.data.encoder.date_parts import Ranges, days_of, part_of, ranges_of, zone_of
from sixfold.data.encoder.encoded_column import DAYS, EncodedColumn, kind_of
from sixfold.data.mixed_table import Column

DATES = ("date", "duration")


def kept_column(name: Any, column: Column) -> EncodedColumn:
    """Return how a column is kept: only dates change."""
    kind = kind_of(column)
    if kind not in DATES:
        return EncodedColumn(name, kind, ("",))
    zone = zone_of(column)
    ranges = ranges_of(days_of(column, False, zone), cyclic=False) if kind == "date" else Ranges()
    return kept_date(name, kind, ranges, zone)


def kept_date(name: Any, kind: str, ranges: Ranges, zone: str) -> EncodedColumn:
    """Return how a column of dates or durations is kept."""
    return EncodedColumn(name, kind, (DAYS, *(f": {part}" for part in ranges.varying())), zone=zone)


def kept_table(
    X: Any, learnt: Sequence[EncodedColumn], columns: Sequence[Column | None], outputs: Sequence[str]
) -> Any:
    """Return the table, of the library it is from.

    Parameters
    ----------
    X : array or table
    learnt : sequence of EncodedColumn
    columns : sequence of Column or None
        Those of X in the same order, None for one that is left out.
    outputs : sequence of str
        The names of the columns of the result.
    """
    names = iter(outputs)
    both = [(one, column) for one, column in zip(learnt, columns, strict=True) if column is not None]
    whole = len(both) == len(learnt) and not any(one.kind in DATES for one, _ in both)
    if isinstance(X, np.ndarray) and whole:
        return X
    kept, changed = {}, {}
    for encoded, column in both:
        if encoded.kind in DATES:
            days = days_of(column, encoded.kind == "duration", encoded.zone)
            for output in encoded.outputs:
                part = output.removeprefix(": ")
                value = days if output == DAYS else part_of(days, part, cyclic=False)[0]
                name = next(names)
                kept[name] = changed[name] = value
        else:
            name = next(names)
            kept[name] = _plain(column)
            if kept[name] is not column.given or name != encoded.name:
                changed[name] = kept[name]
    if not hasattr(X, "columns"):
        return np.column_stack(list(kept.values()))
    same = not changed and list(in_narwhals(X).columns) == list(kept)
    return X if same else _frame(X, list(kept), changed)


def _plain(column: Column) -> Any:
    """Return a column as it is, but for pandas' NA among text or booleans, which has no order."""
    if not column.framed or not column.given.implementation.is_pandas():
        return column.given
    import narwhals.stable.v1 as nw

    if column.given.dtype not in (nw.String, nw.Boolean) or not column.given.is_null().any():
        return column.given
    native = column.given.to_native()
    return nw.from_native(native.astype(object).where(native.notna(), None), series_only=True)


def _frame(X: Any, names: list[str], changed: dict[str, Any]) -> Any:
    """Return the columns of these names, some of which are not those of X."""
    import narwhals.stable.v1 as nw

    frame = in_narwhals(X)
    if not all(isinstance(name, str) for name in frame.columns):
        frame = frame.rename({name: str(name) for name in frame.columns})
    made = [
        nw.new_series(name, one, backend=frame.implementation)
        if isinstance(one, np.ndarray)
        else one.alias(name)
        for name, one in changed.items()
    ]
    return frame.with_columns(*made).select(names).to_native()
