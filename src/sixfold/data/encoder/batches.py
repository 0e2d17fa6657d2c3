"""What is learnt of the columns of a table that comes in batches of rows, in one pass.

    number, date, duration   spread.py; what grows with the rows is on disk
    category                 how many rows each value has: memory grows with the number of values
    boolean                  whether there are gaps

A batch in which all of a column is missing says nothing of its kind. Other batches have to agree on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.data.categorical import declared_values
from sixfold.data.encoder.date_parts import Ranges, days_of, is_date, is_duration, ranges_of, zone_of
from sixfold.data.encoder.encoded_column import (
    EncodedColumn,
    counted_categories,
    encoded_boolean,
    encoded_categories,
    encoded_date,
    encoded_number,
    kind_by_type,
    kind_by_values,
    read_numbers,
    text_of,
)
from sixfold.data.encoder.kept_table import kept_date
from sixfold.data.encoder.median import NumberStore
from sixfold.data.encoder.spread import RunningSpread
from sixfold.data.mixed_table import BOOLEANS, GOWER, NUMBERS, Column, columns_of
from sixfold.errors import InputError

Array = NDArray[Any]

DATED = ("date", "duration")
PLURAL = {
    "number": "numbers",
    "boolean": "True and False",
    "category": "categories",
    "date": "dates",
    "duration": "durations",
}
FITS: dict[str, Callable[[Any], bool]] = {
    "number": lambda value: isinstance(value, NUMBERS),
    "boolean": lambda value: isinstance(value, BOOLEANS),
    "category": lambda value: (
        not isinstance(value, NUMBERS) and not is_date(value) and not is_duration(value)
    ),
    "date": is_date,
    "duration": is_duration,
}


@dataclass(frozen=True)
class Ways:
    """How columns are written: the parameters of the encoder."""

    keep: bool
    scale: bool
    indicator: bool
    most: int
    frequency: int


class RunningColumn:
    """What is known of a column from its batches so far.

    Parameters
    ----------
    name : str or int
    called : str
        What to call it in messages.
    ways : Ways
    store : NumberStore

    Attributes
    ----------
    kind : str or None
        None as long as all values are missing.
    """

    def __init__(self, name: Any, called: str, ways: Ways, store: NumberStore) -> None:
        self.name, self.called, self._ways = name, called, ways
        self.kind: str | None = None
        self._float32: set[bool] = set()
        self._declared: str | None = None
        self._missing = 0
        self._spread = RunningSpread(store)
        self._zone = ""
        self._ranges = Ranges()
        self._counts: dict[str, int] = {}
        self._order: dict[str, None] | None = {}

    @property
    def known_kind(self) -> str:
        """The kind by the values, else by the type, else that of a column without values."""
        return self.kind or self._declared or "number"

    @property
    def float32(self) -> bool:
        """Whether the numbers of all batches that have any are of this type."""
        return self._float32 == {True}

    def add(self, given: Any, first_row: int) -> None:
        """Take the values of a batch, an array or narwhals' series, whose first row has this number."""
        column = Column(given, self.called, first_row)
        declared = kind_by_type(column)
        if not len(given) or _is_empty(column):
            self._declared = self._declared or declared
            self._missing += len(given)
            if declared is not None and len(given):
                self._float32.add(_is_float32(column))
            return
        kind = declared or kind_by_values(column)
        if self.kind is None:
            self.kind = kind
            self._zone = zone_of(column) if kind in DATED else ""
        elif kind != self.kind:
            self._refuse(column)
        self._float32.add(_is_float32(column))
        if kind in DATED:
            self._add_dates(column)
        elif self._ways.keep:
            return
        elif kind == "number":
            self._spread.add(read_numbers(column).astype(np.float64, copy=False))
        elif kind == "boolean":
            self._missing += int(np.isnan(read_numbers(column)).sum())
        else:
            self._add_categories(column)

    def _refuse(self, column: Column) -> None:
        distinct, kind = column.distinct, str(self.kind)
        present = [
            k
            for k, value in enumerate(distinct.values)
            if not GOWER.is_missing(value) and "NaT" not in repr(value)
        ]
        strange = [k for k in present if not FITS[kind](distinct.values[k])]
        row, value = distinct.first(strange or present)
        raise InputError(
            f"{self.called} holds {PLURAL[kind]} before row {column.first_row}, but row "
            f"{column.first_row + row} is {value!r:.50}. Give the column one type in all batches."
        )

    def _add_dates(self, column: Column) -> None:
        days = days_of(column, self.kind == "duration", self._zone)
        if self.kind == "date":
            self._ranges = self._ranges.joined(ranges_of(days, cyclic=not self._ways.keep))
        if not self._ways.keep:
            self._spread.add(days)

    def _add_categories(self, column: Column) -> None:
        rows, missing = counted_categories(column.distinct)
        self._missing += missing
        for text, count in rows.items():
            self._counts[text] = self._counts.get(text, 0) + count
        if not column.distinct.ordered:
            self._order = None
        elif self._order is not None:
            self._order |= dict.fromkeys(map(text_of, declared_values(column.given)))

    def encoded(self) -> EncodedColumn:
        """Return how the column is written."""
        ways, kind = self._ways, self.known_kind
        if ways.keep:
            return (
                kept_date(self.name, kind, self._ranges, self._zone)
                if kind in DATED
                else (EncodedColumn(self.name, kind, ("",)))
            )
        if kind == "boolean":
            return encoded_boolean(self.name, self._missing > 0, ways.indicator)
        if kind == "category":
            order = sorted(self._counts) if self._order is None else [*self._order]
            return encoded_categories(
                self.name, self._counts, self._missing, order, ways.most, ways.frequency
            )
        self._spread.gaps += self._missing
        spread = self._spread.spread()
        if kind == "number":
            return encoded_number(self.name, spread, ways.scale, ways.indicator)
        return encoded_date(self.name, kind, spread, self._ranges, self._zone, ways.scale, ways.indicator)


class RunningTable:
    """What is known of all columns from the batches so far.

    Parameters
    ----------
    names : list of (str or int)
    named : bool
        Whether the table has names for its columns.
    out : set of int
        Columns that are left out.
    ways : Ways
    store : NumberStore

    Attributes
    ----------
    rows : int
    """

    def __init__(self, names: list[Any], named: bool, out: set[int], ways: Ways, store: NumberStore) -> None:
        self.rows = 0
        self._names, self._named = names, named
        self._columns = {
            j: RunningColumn(name, called(name, j), ways, store)
            for j, name in enumerate(names)
            if j not in out
        }

    def add(self, X: Any) -> None:
        """Take the rows of a batch."""
        given = self._in_order(X)
        for j, column in self._columns.items():
            column.add(given[j], self.rows)
        self.rows += len(given[0])

    def _in_order(self, X: Any) -> list[Any]:
        """Return the columns of a batch in the order of the first one."""
        require_dense(X)
        found, own = columns_of(X)
        here = f"The batch that begins with row {self.rows}"
        if hasattr(X, "columns") != self._named:
            one, other = ("no names", "have some") if self._named else ("names", "have none")
            raise InputError(f"{here} has {one} for its columns, but those before it {other}.")
        if not self._named and len(found) != len(self._names):
            raise InputError(f"{here} has {len(found)} columns, but those before it have {len(self._names)}.")
        there = dict(zip(own, found, strict=True))
        absent = [name for name in self._names if name not in there]
        if absent:
            raise InputError(f"{here} has no column {absent[0]!r}, which those before it have.")
        more = [name for name in own if name not in self._names]
        if more:
            raise InputError(f"{here} has a column {more[0]!r}, which those before it do not have.")
        return [there[name] for name in self._names]

    def columns(self) -> tuple[EncodedColumn, ...]:
        """Return how all columns are written."""
        return tuple(
            self._columns[j].encoded() if j in self._columns else EncodedColumn(name, "left out")
            for j, name in enumerate(self._names)
        )

    @property
    def float32(self) -> bool:
        """Whether all numbers are."""
        numbers = [one.float32 for one in self._columns.values() if one.known_kind == "number"]
        return bool(numbers) and all(numbers)


def called(name: Any, number: int) -> str:
    """Return what to call a column in messages."""
    return f"Column {name!r} (number {number}, counted from 0)"


def each_batch(batches: Any) -> Iterator[Any]:
    """Go through the batches; refuse a table, whose columns would be taken for them."""
    kind = type(batches).__name__
    if hasattr(batches, "columns") or hasattr(batches, "shape") or isinstance(batches, str):
        raise InputError(
            f"batches is of type {kind}: one table, or none. Pass an iterable of tables, or call fit."
        )
    try:
        return iter(batches)
    except TypeError as error:
        raise InputError(
            f"batches is of type {kind}, which gives no batches. Pass an iterable of tables."
        ) from error


def require_dense(X: Any) -> None:
    """Raise an :class:`InputError` for a sparse matrix."""
    if sp.issparse(X):
        raise InputError("A batch is a sparse matrix, which fit and transform take as one. Pass dense ones.")


def _is_empty(column: Column) -> bool:
    """Return whether all values are missing."""
    numbers = column.numbers
    if numbers is not None:
        return numbers.dtype.kind == "f" and bool(np.isnan(numbers[0])) and bool(np.isnan(numbers).all())
    if column.framed and column.given.null_count() == len(column.given):
        return True
    if column.framed and kind_by_type(column) is not None:
        return False
    return all(map(GOWER.is_missing, column.distinct.values))


def _is_float32(column: Column) -> bool:
    if column.framed:
        import narwhals.stable.v1 as nw

        return bool(column.given.dtype == nw.Float32)
    return bool(column.given.dtype == np.float32)
