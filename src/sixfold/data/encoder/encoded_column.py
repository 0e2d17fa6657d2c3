"""What becomes of one column of a table: what is learnt of it, and the numbers that are written for it.

    number     (x - mean) / standard deviation; what is missing by the median, and 1 in a column that says so
    boolean    1 and 0
    date       its days as a number, and sine and cosine of the parts of the calendar that vary
    duration   its days as a number
    category   1 in the column of its value and 0 in the others; rare ones share a column

A constant column of numbers is 0 throughout, also for rows with another value: what that means was not to be
learnt. What is written is known by suffixes: the names are "age", "age is missing", "city=Paris", "city is
other", "signup: days", "signup: weekday (sin)".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.data.categorical import DistinctValues
from sixfold.data.encoder.date_parts import Ranges, days_of, is_date, is_duration, part_of
from sixfold.data.encoder.spread import HUGE, UNIT, Spread
from sixfold.data.mixed_table import BOOLEANS, DATES, GOWER, NUMBERS, Column, numbers_of
from sixfold.errors import InputError

Array = NDArray[Any]

MISSING, OTHER, DAYS = " is missing", " is other", ": days"


@dataclass(frozen=True)
class EncodedColumn:
    """What was learnt of a column in the training rows.

    Attributes
    ----------
    name : str or int
        Of the column; x0, x1, ... in an array.
    kind : {"number", "boolean", "category", "date", "duration", "left out"}
    outputs : tuple of str
        What is written, by the suffixes to the name of the column.
    fill, center, scale : float
        Of numbers and days: a missing value is taken for ``fill``, and (x - center) / scale is written;
        0 where ``scale`` is 0, which stands for a constant column.
    zone : str
        The time zone of dates, if they have one.
    """

    name: Any
    kind: str
    outputs: tuple[str, ...] = ()
    fill: float = 0.0
    center: float = 0.0
    scale: float = 1.0
    zone: str = ""

    @property
    def categories(self) -> tuple[str, ...]:
        """The values that have a column of their own, as text."""
        return tuple(one[1:] for one in self.outputs if one.startswith("="))


# -- kinds -------------------------------------------------------------------------------------------------


def kind_of(column: Column) -> str:
    """Return what a column holds: by its type, or where that does not say, by its values."""
    return kind_by_type(column) or kind_by_values(column)


def kind_by_type(column: Column) -> str | None:
    """Return what a column holds, None where its type does not say."""
    if column.framed:
        import narwhals.stable.v1 as nw

        dtype = column.given.dtype
        kinds = {nw.Boolean: "boolean", nw.Datetime: "date", nw.Date: "date", nw.Duration: "duration"}
        kinds |= dict.fromkeys((nw.String, nw.Categorical, nw.Enum), "category")
        return "number" if dtype.is_numeric() else next((kinds[one] for one in kinds if dtype == one), None)
    kinds_of_arrays = {"b": "boolean", "M": "date", "m": "duration", "U": "category", "S": "category"}
    return kinds_of_arrays.get(column.given.dtype.kind) or ("number" if column.numbers is not None else None)


def kind_by_values(column: Column) -> str:
    """Return what the values of a column are; without any, a number."""
    present = [value for value in column.distinct.values if not GOWER.is_missing(value)]
    for kind, of_kind in (
        ("boolean", lambda value: isinstance(value, BOOLEANS)),
        ("number", lambda value: isinstance(value, NUMBERS)),
        ("date", is_date),
        ("duration", is_duration),
    ):
        if present and all(map(of_kind, present)):
            return kind
    if not present:
        return "number"  # which is the same for all rows
    strange = [value for value in present if isinstance(value, (*DATES, complex)) or _is_period(value)]
    if strange:
        raise InputError(
            f"{column.called} holds {strange[0]!r:.50} of type {type(strange[0]).__name__}, among others: "
            "neither numbers nor categories. Turn the column into dates, durations or text first."
        )
    return "category"


def _is_period(value: Any) -> bool:
    return type(value).__name__ == "Period"  # pandas', which may not be there


# -- what is learnt ----------------------------------------------------------------------------------------


def encoded_number(name: Any, spread: Spread, scale: bool, indicator: bool) -> EncodedColumn:
    """Return how a column of numbers is written."""
    outputs = ("", MISSING) if indicator and spread.gaps else ("",)
    center, divisor = (spread.center, spread.scale) if scale else (0.0, 1.0)
    return EncodedColumn(name, "number", outputs, spread.fill, center, divisor)


def encoded_boolean(name: Any, gaps: bool, indicator: bool) -> EncodedColumn:
    """Return how a column of yes and no is written."""
    return EncodedColumn(name, "boolean", ("", MISSING) if gaps and indicator else ("",))


def encoded_date(
    name: Any, kind: str, spread: Spread, ranges: Ranges, zone: str, scale: bool, indicator: bool
) -> EncodedColumn:
    """Return how a column of dates or durations is written, by the spread and the ranges of its days."""
    number = encoded_number(name, spread, scale, indicator)
    cyclic = [f": {part} ({wave})" for part in ranges.varying() for wave in ("sin", "cos")]
    return replace(number, kind=kind, outputs=(DAYS, *cyclic, *number.outputs[1:]), zone=zone)


def counted_categories(distinct: DistinctValues) -> tuple[dict[str, int], int]:
    """Return how many rows each category has, and in how many it is missing."""
    counts = np.bincount(distinct.codes.astype(np.intp) + 1, minlength=len(distinct.values) + 1)
    rows: dict[str, int] = {}
    missing = int(counts[0])
    for value, count in zip(distinct.values, counts[1:].tolist(), strict=True):
        if GOWER.is_missing(value):
            missing += count
        else:
            rows[text_of(value)] = rows.get(text_of(value), 0) + count
    return rows, missing


def encoded_categories(
    name: Any, rows: Mapping[str, int], missing: int, order: Iterable[str], most: int, frequency: int
) -> EncodedColumn:
    """Return how a column of categories is written.

    Parameters
    ----------
    name : str or int
    rows : mapping of str to int
        How many each category has.
    missing : int
        How many have none.
    order : iterable of str
        That of the columns; categories without rows have no part in it.
    most, frequency : int
        The most columns, and the fewest rows for one.
    """
    own = [one for one in order if rows.get(one, 0) >= frequency]
    if len(own) + (len(own) < len(rows)) > most:
        frequent = sorted(own, key=lambda one: -rows[one])[: most - 1]  # of equally many the first
        own = [one for one in own if one in set(frequent)]
    other = len(own) < len(rows)
    if not missing and len(own) + other == 2:
        own, other = own[-1:], False  # one column tells them apart
    outputs = [f"={one}" for one in own] + [OTHER] * other + [MISSING] * bool(missing)
    return EncodedColumn(name, "category", tuple(outputs))


def text_of(value: Any) -> str:
    """Return a category as text: 1, 1.0 and "1" are the same.

    >>> text_of(2.0), text_of(True), text_of("Paris")
    ('2', 'True', 'Paris')
    """
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return str(int(value) if isinstance(value, float | np.floating) and float(value).is_integer() else value)


# -- what is written ---------------------------------------------------------------------------------------


def read_numbers(column: Column) -> Array:
    """Return the numbers of a column, NaN where one is missing; text and infinity are refused."""
    numbers = _as_numbers(column)
    if numbers.dtype.kind == "f" and np.isinf(numbers).any():
        row = int(np.argmax(np.isinf(numbers)))
        raise InputError(
            f"{column.called} holds {numbers[row]} in row {column.first_row + row}: infinity or a value too "
            f"large for {numbers.dtype}. Put NaN where a value is unknown, or drop such rows."
        )
    return numbers


def _as_numbers(column: Column) -> Array:
    if column.numbers is not None:
        return column.numbers
    if column.framed:
        import narwhals.stable.v1 as nw

        if column.given.dtype == nw.Boolean:  # with gaps, where NumPy would get an object for each row
            return np.asarray(column.given.cast(nw.Float64).to_numpy(), dtype=np.float64)
    return numbers_of(column, GOWER)


def write(encoded: EncodedColumn, column: Column, out: Array) -> None:
    """Write the numbers for a column into ``out``, which has a column for each of its outputs."""
    if encoded.kind == "category":
        _write_category(encoded, column, out)
    elif encoded.kind == "boolean":
        values = read_numbers(column).astype(np.float64)
        _write_gaps(encoded, values, out)
        out[:, 0] = np.where(np.isnan(values), 0.0, values)
    elif encoded.kind == "number":
        _write_number(encoded, _as_numbers(column).astype(np.float64, copy=False), column, out)
    else:
        days = days_of(column, encoded.kind == "duration", encoded.zone)
        parts = [one[2 : -len(" (sin)")] for one in encoded.outputs if one.endswith(" (sin)")]
        for k, part in enumerate(parts):
            out[:, 2 * k + 1], out[:, 2 * k + 2] = part_of(days, part, cyclic=True)
        _write_number(encoded, days, column, out)


def _write_number(encoded: EncodedColumn, values: Array, column: Column, out: Array) -> None:
    """Write (x - center) / scale, and if x is missing; numbers without gaps are gone through thrice."""
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(values.sum())
    if finite:
        if encoded.outputs[-1] == MISSING:
            out[:, -1] = 0.0
    elif encoded.kind == "number":
        read_numbers(column)  # refuses infinity
    gaps = None if finite else _write_gaps(encoded, values, out)
    if encoded.scale == 0.0:
        out[:, 0] = 0.0
        return
    if gaps is not None:
        values = np.where(gaps, encoded.fill, values)
    unit = 1.0 / UNIT if max(abs(encoded.center), encoded.scale) > HUGE else 1.0
    try:
        with np.errstate(over="raise"):
            if unit != 1.0:
                values = values * unit
            if encoded.center != 0.0:
                values = values - encoded.center * unit
            np.divide(values, encoded.scale * unit, out=out[:, 0])
    except FloatingPointError as error:
        far = np.abs(read_numbers(column).astype(np.float64))
        raise InputError(
            f"{column.called} holds a number in row {column.first_row + int(np.nanargmax(far))} that is too "
            f"far from those of the training table to be computed with: {np.nanmax(far):g}. Correct it, or "
            "put NaN there."
        ) from error


def _write_gaps(encoded: EncodedColumn, values: Array, out: Array) -> Array | None:
    """Write 1 where a value is missing, if there is a column for it; return where, None for nowhere."""
    gaps = np.isnan(values)
    if encoded.outputs[-1] == MISSING:
        out[:, -1] = gaps
    return gaps if gaps.any() else None


def _write_category(encoded: EncodedColumn, column: Column, out: Array) -> None:
    distinct = column.distinct
    place = {output: j for j, output in enumerate(encoded.outputs)}
    other = place.get(OTHER, -1)
    missing = place.get(MISSING, other)
    places = np.full(len(distinct.values) + 1, missing)  # the last is that of -1: nothing
    for k, value in enumerate(distinct.values):
        places[k] = missing if GOWER.is_missing(value) else place.get(f"={text_of(value)}", other)
    found = places[distinct.codes]
    out[:] = 0.0
    rows = np.flatnonzero(found >= 0)
    out[rows, found[rows]] = 1.0
