"""What one column of a raw table holds, from all of its values.

    empty        no value at all
    constant     one value in every row
    boolean      yes and no, true and false, in text or as such
    number       numbers, also as people write them; times of day (hours); durations (seconds)
    date         dates, with or without time
    identifier   a different text in each row, or whole numbers that count the rows
    text         sentences; texts that hardly ever repeat; lists and records
    category     any other text

The distinct texts of a column are looked at once, with their counts; a sample only decides what to try.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sixfold.data.columns.kind import ROWS_TO_COUNT, Customs, Kind, looks_like_id, without_variation
from sixfold.data.columns.text_dates import fitting_formats
from sixfold.data.columns.text_kinds import text_kind
from sixfold.data.columns.text_numbers import number_text
from sixfold.plain_words import counted

STANDS_FOR_MISSING = (-99.0, -999.0, -9999.0, -99999.0, 9999.0, 99999.0, 999999.0)


def column_kind(column: Any, customs: Customs = Customs()) -> Kind:  # noqa: B008 - it is frozen
    """Return what a Polars series holds.

    >>> import polars as pl
    >>> column_kind(pl.Series("price", ["$1,200", "$75", "N/A"])).reading
    {'thousands': ',', 'currency': '$', 'missing': ['N/A']}
    """
    import polars as pl

    kind = column.dtype
    if kind.is_nested() or kind in (pl.Binary, pl.Object):
        what = {"List": "lists", "Array": "lists", "Struct": "records", "Binary": "bytes"}
        held = what.get(str(kind.base_type()), "objects")
        return Kind("text", f"holds {held}, not single values", False, column.null_count())
    if kind in (pl.Categorical, pl.Enum):
        column, kind = column.cast(pl.String), pl.String
    if column.null_count() == column.len():
        return Kind("empty", "has no values", False, column.len())
    if kind == pl.String:
        found = text_kind(column, customs)
        return found if isinstance(found, Kind) else _plain_numbers(*found)
    if kind == pl.Boolean:
        examples = tuple(
            "true" if one else "false" for one in column.drop_nulls().unique(maintain_order=True)
        )
        found = Kind("boolean", "", True, column.null_count(), len(examples), examples)
        return without_variation(replace(found, reading={"true": "true", "false": "false"}))
    if kind.is_temporal():
        return _dated_kind(column)
    return _number_kind(column)


def _dated_kind(column: Any) -> Kind:
    import polars as pl

    examples = tuple(str(one) for one in column.drop_nulls().head(3).to_list())
    found = Kind("date", "", True, column.null_count(), column.drop_nulls().n_unique(), examples)
    if column.dtype == pl.Time:
        found = replace(
            found, kind="number", reason="a time of day, in hours", reading={"time": "%H:%M:%S%.f"}
        )
    if column.dtype == pl.Duration:
        found = replace(found, kind="number", reason="a duration, in seconds")
    return without_variation(found)


def _number_kind(column: Any) -> Kind:
    import polars as pl

    whole = column.dtype.is_integer()
    values = column if whole else column.cast(pl.Float64)
    if not whole:
        infinite = int(values.is_infinite().sum())
        values = values.set(~values.is_finite(), None)
        if values.null_count() == values.len():
            return Kind("empty", "has no values", False, column.len())
    missing = values.null_count()
    distinct = values.n_unique() - (missing > 0)
    examples = tuple(
        number_text(one) for one in values.head(1000).drop_nulls().unique(maintain_order=True).head(3)
    )
    examples = examples or (number_text(values.drop_nulls()[0]),)
    found = Kind("number", "", True, missing, distinct, examples)
    if whole and distinct == column.len():
        reason = _counts_rows(column)
        if reason:
            return replace(found, kind="identifier", reason=reason, used=False)
        if distinct > 1 and _eight_digit_dates(column):
            return replace(found, kind="date", reading={"format": "%Y%m%d"})
    elif whole and distinct > 1 and _eight_digit_dates(column):
        return replace(found, kind="date", reading={"format": "%Y%m%d"})
    if not whole and infinite:
        found = replace(found, reason=f"{counted(infinite, 'infinite value')} counted as missing")
    return without_variation(found if found.reason else replace(found, reason=_stand_in(values)))


def _stand_in(values: Any) -> str:
    """Return a remark on a number far from all others that may stand for missing, or ""."""
    for extreme in (values.min(), values.max()):
        if float(extreme) in STANDS_FOR_MISSING:
            rest = values.filter(values != extreme)
            count = values.len() - values.null_count() - rest.drop_nulls().len()
            if (
                rest.drop_nulls().len()
                and count >= 2
                and 5 * max(abs(rest.max()), abs(rest.min())) < abs(extreme)
            ):
                where = f"{extreme:g} in {counted(count, 'row')}"
                return f"{where} is far from the others: if it means missing, leave it empty"
    return ""


def _counts_rows(column: Any) -> str:
    """Return why whole numbers, all different, are identifiers, or ""."""
    if column.len() < ROWS_TO_COUNT:
        return ""
    steps = column.diff().drop_nulls()
    if (steps == 1).all():
        return f"counts the rows: {column[0]}, {column[1]}, {column[2]}, ..."
    if looks_like_id(column.name):
        return "its name says identifier, and every value is different"
    return ""


def _eight_digit_dates(column: Any) -> bool:
    import polars as pl

    if not 19000101 <= column.min() <= column.max() <= 21001231:  # in particular a number, not a null
        return False
    return "%Y%m%d" in fitting_formats(column.drop_nulls().unique().cast(pl.String))


def _plain_numbers(column: Any, numbers: Any, found: Kind) -> Kind:
    """Return the kind of plain numbers in text: that of the numbers, as a file with types would have them."""
    import polars as pl

    whole = column.str.strip_chars().cast(pl.Int64, strict=False)
    number = _number_kind(whole if whole.null_count() == numbers.null_count() else numbers)
    return replace(number, reason=found.reason or number.reason, reading={**number.reading, **found.reading})
