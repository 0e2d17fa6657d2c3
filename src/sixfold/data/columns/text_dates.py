"""Dates and times as people write them, and the format that fits a whole column.

    2024-01-31   31.01.2024   1/31/24   31 Jan 2024   2024-01-31T23:59:00.5+01:00   1/31/2024 11:59 PM   23:59

Whether 1/2/2024 is in January or February is decided by all values: a 13 or more shows the place of the day.
Where none does, other columns of the table decide, then custom (``.`` and ``-``: day first; ``/``: month
first, unless the table has decimal commas). Times with a zone become UTC. A time of day is a number, in
hours.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from sixfold.data.columns.missing_words import without_missing

TIMES = ("%H:%M", "%H:%M:%S%.f", "%I:%M %p", "%I:%M:%S %p", "%I:%M%p", "%I:%M:%S%p")
GAPS = (" ", "T", ", ")
ZONES = ("", "%#z", " %#z")
COMPACT = ("%Y%m%d", "%Y%m%dT%H%M%S", "%Y%m%dT%H%M%S%#z")
LOOKS_LIKE_DATE = (
    r"^(?:[0-9]{1,2}[-./ ]+(?:[0-9]{1,2}|[A-Za-z]{3,9})[-./, ]+[0-9]{2,4}"
    r"|[0-9]{4}[-./][0-9]{1,2}(?:[-./ T,]|$)|[A-Za-z]{3,9}\.?,? [0-9]|[0-9]{8}(?:T|$))"
)
CLOCK = (
    r"^(.*?)( |T|, )([0-9]{1,2}:[0-9]{2})(:[0-9]{2}(?:\.[0-9]+)?)?( ?[AaPp][Mm])?"
    r"( ?)(Z|[-+][0-9]{2}:?[0-9]{2})?$"
)
LOOKS_LIKE_TIME = r"^[0-9]{1,2}:[0-9]{2}"


def date_series(text: Any, form: str) -> Any:
    """Return a series of text as Datetime("ms"), in UTC if it has zones; None where the format does not fit.

    >>> import polars as pl
    >>> date_series(pl.Series(["31.01.2024", "1.13.2024"]), "%d.%m.%Y").to_list()
    [datetime.datetime(2024, 1, 31, 0, 0), None]
    """
    import polars as pl

    if "%z" in form or "%#z" in form:
        zoned = text.str.strptime(pl.Datetime("ms", "UTC"), form, strict=False)
        return zoned.dt.replace_time_zone(None)
    dates = text.str.strptime(pl.Datetime("ms"), form, strict=False)
    if "%Y" in form:  # which reads "24" as the year 24
        dates = dates.set(dates.dt.year() < 1000, None)
    return dates


def read_dates(text: Any, form: str, words: frozenset[str]) -> tuple[Any, Any]:
    """Return a series of text as dates, and the rows that hold neither dates nor missing words."""
    dates = date_series(text, form)
    left = (dates.is_null() & text.is_not_null()).arg_true()
    if left.len():
        rest = without_missing(text.gather(left), words)
        dates = dates.scatter(left, date_series(rest, form))
        left = left.filter(dates.gather(left).is_null() & rest.is_not_null())
    return dates, left


def hours(text: Any, form: str) -> Any:
    """Return a series of times of day as hours, None where the format does not fit.

    >>> import polars as pl
    >>> hours(pl.Series(["2:30 PM"]), "%I:%M %p").to_list()
    [14.5]
    """
    import polars as pl

    return hours_of(text.str.strptime(pl.Time, form, strict=False))


def hours_of(times: Any) -> Any:
    """Return a series of Time as hours."""
    import polars as pl

    return times.cast(pl.Int64).cast(pl.Float64) / 3.6e12


@cache
def day_formats() -> tuple[str, ...]:
    """Return the formats of dates without times, with the day first before those with the month first."""
    days = ["%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d"]
    for mark in ".-/":
        for year in "Yy":
            days += [f"%d{mark}%m{mark}%{year}", f"%m{mark}%d{mark}%{year}"]
    days += [
        "%d %B %Y",
        "%d. %B %Y",
        "%d-%B-%Y",
        "%d-%B-%y",
        "%d/%B/%Y",
        "%B %d, %Y",
        "%B %d %Y",
        "%a, %d %B %Y",
    ]
    return (*days, "%Y-%m", "%Y/%m")


@cache
def date_formats() -> frozenset[str]:
    """Return all formats of dates."""
    clocks = ["", *(gap + time + zone for gap in GAPS for time in TIMES for zone in ZONES)]
    return frozenset([day + clock for day in day_formats() for clock in clocks] + list(COMPACT))


def _clock_format(value: str) -> str:
    """Return the format of what follows the date.

    >>> _clock_format("1.2.2024 13:05:00Z"), _clock_format("Jan 2, 2024")
    (' %H:%M:%S%.f%#z', '')
    """
    found = re.match(CLOCK, value)
    if found is None:
        return ""
    _, gap, _, seconds, half, blank, zone = found.groups()
    hour = "%I" if half else "%H"
    clock = f"{hour}:%M" + ((":%S" if half else ":%S%.f") if seconds else "")
    clock += (" %p" if half.startswith(" ") else "%p") if half else ""
    return gap + clock + (f"{blank}%#z" if zone else "")


def fitting_formats(values: Any) -> list[str]:
    """Return the formats that fit all of these distinct texts: two where day and month cannot be told apart.

    >>> import polars as pl
    >>> fitting_formats(pl.Series(["1/2/2024", "3/4/2024"]))
    ['%d/%m/%Y', '%m/%d/%Y']
    """
    few = values.gather_every(max(1, values.len() // 50))
    if not few.len() or not few.str.contains(LOOKS_LIKE_DATE).all():
        return []
    clock = _clock_format(few[0])
    formats = [day + clock for day in day_formats()] + list(COMPACT)
    for part in (few.head(1), few, values):
        formats = [form for form in formats if date_series(part, form).null_count() == 0]
    if "%Y%m%d" in formats:  # eight digits may be any number
        years = date_series(values, "%Y%m%d").dt.year()
        if not ((years >= 1900) & (years <= 2100)).all():
            formats.remove("%Y%m%d")
    return formats


def time_format(values: Any) -> str | None:
    """Return the format of these distinct times of day; None where some of them are none."""
    import polars as pl

    if not values.len() or not values.str.contains(LOOKS_LIKE_TIME).all():
        return None
    for form in TIMES:
        if values.str.strptime(pl.Time, form, strict=False).null_count() == 0:
            return form
    return None


def date_reading(values: Any, day_first: bool | None, commas: bool) -> tuple[dict[str, Any], str] | None:
    """Return how these distinct texts are to be read as dates, and a remark; None where they are no dates.

    Parameters
    ----------
    values : polars.Series
    day_first : bool or None
        What other columns of the table show; None if nothing.
    commas : bool
        Whether the table has decimal commas.
    """
    formats = fitting_formats(values)
    if not formats:
        return None
    if not order_is_open(formats):
        return {"format": formats[0]}, ""
    first = (formats[0][2] in ".-" or commas) if day_first is None else day_first
    chosen = next(form for form in formats if form.startswith("%d") == first)
    order = "day" if first else "month"
    return {
        "format": chosen
    }, f"no value shows whether the day or the month comes first; read with the {order} first"


def order_is_open(formats: list[str]) -> bool:
    """Return whether both the day and the month may come first.

    >>> order_is_open(["%d/%m/%Y", "%m/%d/%Y"]), order_is_open(["%d/%m/%Y"])
    (True, False)
    """
    numeric = [form for form in formats if "%m" in form and "%d" in form]
    return {form[:2] for form in numeric} >= {"%d", "%m"}
