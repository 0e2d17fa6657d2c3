"""Dates and durations as numbers.

    days           since 1970-01-01, or the length of a duration, as a number with a fraction
    cyclic parts   sin and cos of 2 pi f, where f is the share of the day, week or year that is over: the end
                   of a cycle is next to its beginning
    plain parts    month 1..12, weekday 1..7 (Monday is 1), hour 0..24: for trees, which ask for the order

Parts are written where they vary and the dates go through more than one cycle. Times with a zone are those
of the clocks there.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.data.mixed_table import GOWER, Column
from sixfold.errors import InputError

Array = NDArray[Any]

DAY = 86_400_000.0  # milliseconds


def zone_of(column: Column) -> str:
    """Return the time zone of a column of dates, or nothing."""
    return (getattr(column.given.dtype, "time_zone", None) or "") if column.framed else ""


def days_of(column: Column, duration: bool, zone: str = "") -> Array:
    """Return dates or durations as float64 days, NaN where there is none.

    ``zone`` is that of the training table, whose clocks are meant.
    """
    given = column.given
    if column.framed:
        import narwhals.stable.v1 as nw

        if given.dtype == nw.Datetime and zone_of(column):
            given = given.dt.convert_time_zone(zone) if zone else given
            given = given.dt.replace_time_zone(None)
        given = np.asarray(given.to_numpy())
    if given.dtype.kind != ("m" if duration else "M"):
        given = _of_values(column, duration)
    unit, count = ("timedelta64[us]", 1000.0 * DAY) if duration else ("datetime64[ms]", DAY)
    exact = given.astype(unit)
    days = exact.astype(np.int64) / count
    days[np.isnat(exact)] = np.nan
    return days


def _of_values(column: Column, duration: bool) -> Array:
    """Return a column of Python's or pandas' dates, or of nothing at all, as NumPy's."""
    distinct = column.distinct
    found = np.full(len(distinct.values) + 1, "NaT", dtype="m8[us]" if duration else "M8[us]")
    strange = []
    for k, value in enumerate(distinct.values):
        if is_duration(value) if duration else is_date(value):
            found[k] = _without_zone(value)
        elif not GOWER.is_missing(value):
            strange.append(k)
    if strange:
        row, value = distinct.first(strange)
        held = "durations" if duration else "dates"
        raise InputError(
            f"{column.called} held {held} in the training table, but row {column.first_row + row} is "
            f"{value!r:.50}. Turn the column into {held} first, as it was there."
        )
    return found[distinct.codes]


def is_date(value: Any) -> bool:
    """Return whether this is a day, or a time of a day."""
    return isinstance(value, datetime.date | np.datetime64) and repr(value) != "NaT"


def is_duration(value: Any) -> bool:
    """Return whether this is a length of time."""
    return isinstance(value, datetime.timedelta | np.timedelta64) and repr(value) != "NaT"


def _without_zone(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, datetime.datetime) else value


# -- parts -------------------------------------------------------------------------------------------------


def _share_of_day(days: Array) -> Array:
    return np.round(days - np.floor(days), 9) % 1.0  # an hour is the same number on all days


def _weekday(days: Array) -> Array:
    return (np.floor(days) + 3.0) % 7.0  # 1970-01-01 was a Thursday


def _share_of_year(days: Array) -> Array:
    day = np.floor(days).astype("M8[D]")
    year = day.astype("M8[Y]")
    first, next_first = year.astype("M8[D]"), (year + 1).astype("M8[D]")
    return (day - first).astype(np.float64) / (next_first - first).astype(np.float64)


def _month(days: Array) -> Array:
    return np.floor(days).astype("M8[D]").astype("M8[M]").astype(np.int64) % 12 + 1.0


CYCLIC: dict[str, Callable[[Array], Array]] = {
    "time of day": _share_of_day,
    "weekday": lambda days: _weekday(days) / 7.0,
    "day of year": _share_of_year,
}
PLAIN: dict[str, Callable[[Array], Array]] = {
    "month": _month,
    "weekday": lambda days: _weekday(days) + 1.0,
    "hour": lambda days: np.round(24.0 * _share_of_day(days), 6),
}
CYCLE = {"time of day": 1.0, "hour": 1.0, "weekday": 7.0, "day of year": 366.0, "month": 366.0}  # days


@dataclass(frozen=True)
class Ranges:
    """From where to where days and their parts go, by name; nothing of no days."""

    ends: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def joined(self, other: Ranges) -> Ranges:
        """Return the ranges of these and of other days."""
        if not self.ends or not other.ends:
            return self if self.ends else other
        both = {name: (*one, *other.ends[name]) for name, one in self.ends.items()}
        return Ranges({name: (min(ends), max(ends)) for name, ends in both.items()})

    def varying(self) -> tuple[str, ...]:
        """Return the names of the parts that vary, of cycles that the days go through more than once.

        In less than a year its days say what season it is: one more column for it would say nothing new.
        """
        if not self.ends:
            return ()
        first, last = self.ends[""]
        return tuple(
            name
            for name, (low, high) in self.ends.items()
            if name and last - first > CYCLE[name] and low < high
        )


def ranges_of(days: Array, cyclic: bool) -> Ranges:
    """Return the ranges of days, NaN where there is none, and of their cyclic or plain parts."""
    known = days[np.isfinite(days)]
    if not known.size:
        return Ranges()
    values = {"": known} | {name: part(known) for name, part in (CYCLIC if cyclic else PLAIN).items()}
    return Ranges({name: (float(one.min()), float(one.max())) for name, one in values.items()})


def part_of(days: Array, name: str, cyclic: bool) -> tuple[Array, ...]:
    """Return sine and cosine of a cyclic part, 0 where there is no date; or a plain one, NaN there."""
    known = np.isfinite(days)
    share = (CYCLIC if cyclic else PLAIN)[name](np.where(known, days, 0.0))
    if not cyclic:
        return (np.where(known, share, np.nan),)
    angle = 2.0 * np.pi * share
    return np.where(known, np.sin(angle), 0.0), np.where(known, np.cos(angle), 0.0)
