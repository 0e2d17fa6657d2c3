"""From a raw column to values, by its schema: the same ones from text as from typed columns.

    number             Float64; infinite numbers and missing words are None
    category, boolean  String, without blanks around it
    date               Datetime("ms"), in UTC where there are zones

A value that does not fit is an :class:`InputError` with its row, counted from 1 without the header.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sixfold.data.columns.missing_words import EVERYWHERE, without_missing
from sixfold.data.columns.text_dates import fitting_formats, hours, hours_of, read_dates
from sixfold.data.columns.text_numbers import missing_words, number_text, read_numbers
from sixfold.errors import InputError


def values_of(column: Any, kind: str, reading: Mapping[str, Any], first_row: int = 0) -> Any:
    """Return a raw Polars series as values of a kind.

    >>> import polars as pl
    >>> values_of(pl.Series("price", ["$5", "n/a"]), "number", {}).to_list()
    [5.0, None]
    """
    import polars as pl

    if column.dtype in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    if column.dtype.is_nested() or column.dtype in (pl.Binary, pl.Object):
        raise InputError(
            f"Column {column.name!r} holds {column.dtype}, where single values are needed ({kind}): give one "
            "for each row."
        )
    if kind == "number":
        return _numbers(column, reading, first_row)
    if kind == "date":
        return _dates(column, reading, first_row)
    return _categories(column, reading)


def _numbers(column: Any, reading: Mapping[str, Any], first_row: int) -> Any:
    import polars as pl

    if column.dtype == pl.String:
        if "time" in reading:
            text = without_missing(column, missing_words(reading))
            numbers = hours(text, reading["time"])
            wrong = (numbers.is_null() & text.is_not_null()).arg_true()
            _check_fit(column, wrong, "a time of day", first_row)
            return numbers
        numbers, wrong = read_numbers(column, reading)
        _check_fit(column, wrong, "a number", first_row)
        return numbers
    if column.dtype == pl.Time:
        return hours_of(column)
    if column.dtype == pl.Duration:
        return column.dt.total_microseconds().cast(pl.Float64) / 1e6
    if column.dtype.is_temporal():
        _check_fit(column, column.is_not_null().arg_true(), "a number", first_row)
    numbers = column.cast(pl.Float64)
    return numbers if numbers.is_finite().all() else numbers.set(~numbers.is_finite(), None)


def _dates(column: Any, reading: Mapping[str, Any], first_row: int) -> Any:
    import polars as pl

    form = reading.get("format")
    if column.dtype.is_integer() and form == "%Y%m%d":
        column = column.cast(pl.String)
    if column.dtype == pl.String:
        if form is None:  # the model was fitted on a file with types
            values = without_missing(column, missing_words(reading)).drop_nulls().unique()
            form = (fitting_formats(values) or ["%Y-%m-%d"])[0]
        dates, wrong = read_dates(column, form, missing_words(reading))
        _check_fit(column, wrong, f"a date like {example_date(form)}", first_row)
        return dates
    if column.dtype == pl.Date or isinstance(column.dtype, pl.Datetime):
        if getattr(column.dtype, "time_zone", None):
            column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return column.cast(pl.Datetime("ms"))
    _check_fit(column, column.is_not_null().arg_true(), "a date", first_row)
    return pl.Series(column.name, [None] * column.len(), pl.Datetime("ms"))


def _categories(column: Any, reading: Mapping[str, Any]) -> Any:
    import polars as pl

    if column.dtype == pl.Boolean:
        true, false = reading.get("true", "true"), reading.get("false", "false")
        words = pl.when(pl.lit(column)).then(pl.lit(true)).when(~pl.lit(column)).then(pl.lit(false))
        return pl.select(words.otherwise(None).alias(column.name)).to_series()
    if column.dtype.is_numeric():
        return labels_of_numbers(column)
    if reading.get("numbers"):
        labels = labels_of_numbers(_numbers(column, reading, 0))
        # Whole numbers beyond 2^53 are not the same as Float64.
        whole = column.cast(pl.Int64, strict=False) if column.dtype == pl.String else None
        return labels if whole is None else labels_of_numbers(whole).zip_with(whole.is_not_null(), labels)
    text = column.cast(pl.String) if column.dtype != pl.String else column
    given = text.unique()
    clean = _clean_categories(given, reading)
    changed = given.ne_missing(clean)
    if not changed.any():
        return text
    return text.replace(given.filter(changed), clean.filter(changed))


def _clean_categories(text: Any, reading: Mapping[str, Any]) -> Any:
    """Return text without blanks around it, None for missing words, one spelling of true and false."""
    words = EVERYWHERE.union(word.lower() for word in reading.get("missing", ()))
    text = without_missing(text, words.difference(word.lower() for word in reading.get("kept", ())))
    if "true" in reading:
        lower = text.str.to_lowercase()
        for word in (reading["true"], reading["false"]):
            text = text.set((lower == word.lower()).fill_null(False), word)
    return text


def labels_of_numbers(numbers: Any) -> Any:
    """Return numbers as text: 3 for 3.0."""
    import polars as pl

    distinct = numbers.drop_nulls().unique()
    distinct = (
        distinct if distinct.dtype.is_integer() else distinct.filter(distinct.cast(pl.Float64).is_finite())
    )
    texts = [number_text(one) for one in distinct.to_list()]
    return numbers.replace_strict(distinct, texts, default=None, return_dtype=pl.String)


def _check_fit(column: Any, wrong: Any, wanted: str, first_row: int) -> None:
    """Raise an :class:`InputError` that names the first row whose value could not be read."""
    if not wrong.len():
        return
    row = int(wrong[0])
    more = f", nor are {wrong.len() - 1:,} more" if wrong.len() > 1 else ""
    raise InputError(
        f"Column {column.name!r}, row {first_row + row + 1:,}: {str(column[row]).strip()[:60]!r} is not "
        f"{wanted}{more}. Correct it, or leave the field empty if the value is missing."
    )


def example_date(form: str) -> str:
    """Return a date in a format, for messages.

    >>> example_date("%d.%m.%Y")
    '31.12.2024'
    """
    import datetime

    return datetime.datetime(2024, 12, 31, 13, 5).strftime(form.replace("%.f", "").replace("%#z", "+00:00"))
