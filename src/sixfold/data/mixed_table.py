"""Tables whose columns are of different kinds: numbers, and categories that become codes.

    numbers      as they are; what is missing is NaN
    categories   0, 1, 2, ... in the order of those in the training table; -1 for one it did not have

Their order is that of the column's type where it has one (pandas' ordered categories, Polars' Enum), else
they are sorted. A column of text, of booleans with text, or of a categorical type is of categories; so is one
the user names. What else counts as a category or as missing, a :class:`Reading` says.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.data.categorical import DistinctValues, distinct_values, is_nested
from sixfold.data.checks import check_table, collected, in_narwhals
from sixfold.errors import InputError

Array = NDArray[Any]

NUMBERS = (Real, Decimal, np.bool_)
BOOLEANS = (bool, np.bool_)
DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
MISSING = ("nan", "np.float64(nan)", "np.float32(nan)", "<NA>", "NaT", "None", "Decimal('NaN')")


@dataclass(frozen=True)
class ColumnKinds:
    """Which columns of a table hold categories.

    Attributes
    ----------
    categories : tuple of (tuple or None)
        The categories of each column; None for a column of numbers.
    by_values : tuple of int
        Columns that are of categories for their values alone: neither their type nor the user says so.
    """

    categories: tuple[tuple[Any, ...] | None, ...]
    by_values: tuple[int, ...] = ()

    @property
    def categorical(self) -> NDArray[np.bool_]:
        """Which columns are of categories."""
        return np.array([one is not None for one in self.categories], dtype=bool)


@dataclass(frozen=True)
class Reading:
    """How a learner reads columns.

    Attributes
    ----------
    parameter : str
        What the user calls the list of columns that are categories although they hold numbers.
    booleans : bool
        Whether yes and no in a frame, or among objects, are categories; else they are 1 and 0.
    unknown : tuple of str
        Words in a column of text that stand for a missing value, also with blanks around.
    """

    parameter: str
    booleans: bool = False
    unknown: tuple[str, ...] = ()

    def is_missing(self, value: Any) -> bool:
        """Return whether nothing is known in such a cell."""
        if isinstance(value, str):
            return value.strip() in self.unknown
        return value is None or repr(value) in MISSING


GOWER = Reading("metric_params={'categorical': ...}")


def check_mixed(
    estimator: Any,
    X: Any,
    known: ColumnKinds | None = None,
    categorical: Any = None,
    adding: bool = False,
    reading: Reading = GOWER,
) -> tuple[Array, ColumnKinds]:
    """Return a table as float64 with codes for categories, and the kinds of its columns.

    Parameters
    ----------
    estimator : object
        The learner, which remembers the names of the columns.
    X : array or table
    known : ColumnKinds, optional
        Those of the training table; None learns them from X.
    categorical : sequence of names or numbers, or True or False for each column, optional
        Columns that are categories although they hold numbers.
    adding : bool
        Whether categories that are not known get codes of their own, after the others.
    reading : Reading
        What the learner takes for a category, and for missing.
    """
    if sp.issparse(X):
        raise InputError("X is sparse, but categories are not. Pass a dense table, or use another metric.")
    columns, names = columns_of(collected(X))
    if not columns:
        check_table(estimator, X, reset=known is None)  # says what is wrong with it
    coded = np.zeros((len(columns[0]), len(columns)), order="F")
    check_table(estimator, _named_like(X, coded[:1]), reset=known is None)  # as many columns, of these names
    named = named_places(categorical, names, reading.parameter)
    kinds, by_values = [], []
    for j, given in enumerate(columns):
        column = Column(given, f"Column {names[j]!r} (number {j}, counted from 0)")
        if known is None:
            kind = _categories(column, j in named, reading)
            if kind is not None and j not in named and not column.distinct.declared:
                by_values.append(j)
        else:
            kind = known.categories[j]
            kind = _with_more(kind, column, reading) if adding else kind
        coded[:, j] = numbers_of(column, reading) if kind is None else _codes(column, kind, reading)
        kinds.append(kind)
    return coded, ColumnKinds(tuple(kinds), tuple(by_values))


def columns_of(X: Any) -> tuple[list[Any], list[str]]:
    """Return the columns of a table, arrays or narwhals' series, and what to call them."""
    import narwhals.stable.v1 as nw

    frame = in_narwhals(X)
    if isinstance(frame, nw.DataFrame):
        return list(frame.iter_columns()), list(frame.columns)
    try:
        values = np.asarray(X) if _is_plain(X) else np.asarray(X, dtype=object)
    except ValueError:  # rows of different lengths
        return [], []
    if values.ndim != 2 or values.dtype.kind == "c":
        return [], []
    return list(values.T), [f"x{j}" for j in range(values.shape[1])]


@dataclass
class Column:
    """One column of a table, an array or narwhals' series, and what to call it.

    Of a frame's columns one is in memory at a time. Where the rows are some of a longer table, messages count
    them from ``first_row``.
    """

    given: Any
    called: str
    first_row: int = 0

    @property
    def framed(self) -> bool:
        """Whether the column is one of a frame."""
        return not isinstance(self.given, np.ndarray)

    @cached_property
    def numbers(self) -> Array | None:
        """The column as numbers or booleans, if it is stored as such."""
        if self.framed:
            import narwhals.stable.v1 as nw

            if not (self.given.dtype.is_numeric() or self.given.dtype == nw.Boolean):
                return None
            column = self.given.cast(nw.Float64) if self.given.dtype == nw.Decimal else self.given
            values = np.asarray(column.to_numpy())
        else:
            values = self.given
        return values if values.dtype.kind in "biuf" else None

    @cached_property
    def distinct(self) -> DistinctValues:
        """The different values of the column."""
        try:
            if self.framed and is_nested(self.given):
                raise TypeError(f"'{str(self.given.dtype).split('(')[0].lower()}'")
            return distinct_values(self.given if self.numbers is None else self.numbers)
        except TypeError as error:
            raise InputError(
                f"{self.called} holds {error.args[0].removeprefix('unhashable type: ')}s, which are neither "
                "numbers nor categories. Give each of their entries a column of its own."
            ) from error

    def merged(self) -> tuple[int, int] | None:
        """Return two different whole numbers of the column that are one as float64, if there are any."""
        if self.numbers is None:
            found = sorted(value for value in self.distinct.values if isinstance(value, int | np.integer))
            whole = np.array(found, dtype=object)
        else:
            whole = np.unique(self.numbers) if self.numbers.dtype.kind in "iu" else np.empty(0)
        same = np.flatnonzero(np.diff(whole.astype(np.float64)) == 0)
        return (int(whole[same[0]]), int(whole[same[0] + 1])) if same.size else None


def _is_plain(X: Any) -> bool:
    """Return whether NumPy reads X without spelling numbers out as text."""
    return isinstance(X, np.ndarray) or np.asarray(X).dtype.kind not in "US"


def named_places(categorical: Any, names: list[str], parameter: str) -> set[int]:
    """Return the numbers of the columns that the user names, or numbers, in a parameter."""
    count = len(names)
    try:
        listed = (
            []
            if categorical is None
            else [categorical]
            if isinstance(categorical, str)
            else list(categorical)
        )
    except TypeError as error:
        raise InputError(
            f"{parameter} is {categorical!r:.50}, which is no list of columns. Pass a list of names, of "
            "numbers counted from 0, or of True or False for each column."
        ) from error
    if len(listed) == count and all(isinstance(one, BOOLEANS) for one in listed):
        return {j for j, one in enumerate(listed) if one}
    places = set()
    for one in listed:
        if isinstance(one, str) and one in names:
            places.add(names.index(one))
        elif isinstance(one, int | np.integer) and not isinstance(one, bool) and -count <= one < count:
            places.add(int(one) % count)
        else:
            raise InputError(
                f"{parameter} names the column {one!r}, which the table does not have. Pass names, numbers "
                "counted from 0, or True or False for each column."
            )
    return places


def _categories(column: Column, named: bool, reading: Reading) -> tuple[Any, ...] | None:
    """Return the categories of a column in order; None for numbers."""
    if column.numbers is not None and not named:
        answers = column.numbers.dtype.kind == "b"
        if not (answers and column.framed and reading.booleans):
            return None
    distinct = column.distinct
    present = [value for value in distinct.values if not reading.is_missing(value)]
    if any(_is_date(value) for value in present):
        raise InputError(
            f"{column.called} holds dates or times, such as {present[0]!r}, which are neither "
            "numbers nor categories. Turn them into numbers first, for instance days since a date."
        )
    wanted = named or distinct.declared
    if not wanted and present and all(isinstance(value, NUMBERS) for value in present):
        answers = all(isinstance(value, BOOLEANS) for value in present)
        if not (answers and reading.booleans):
            return None
    try:
        return tuple(present if distinct.ordered else sorted(present, key=_type_and_value))
    except TypeError as error:
        raise InputError(
            f"{column.called} holds values such as {present[0]!r:.50}, which have no order. Turn them into "
            "text first."
        ) from error


def _type_and_value(value: Any) -> tuple[str, Any]:
    return str(type(value)), value


def _is_date(value: Any) -> bool:
    return isinstance(value, DATES) or type(value).__name__ == "Period"  # pandas', which may not be there


def _with_more(
    categories: tuple[Any, ...] | None, column: Column, reading: Reading
) -> tuple[Any, ...] | None:
    """Return the categories, followed by those of the column that are new."""
    if categories is None:
        return None
    known, found = set(categories), _categories(column, True, reading)
    return (*categories, *(one for one in found or () if one not in known))


def _codes(column: Column, categories: tuple[Any, ...], reading: Reading) -> Array:
    """Return the code of each row; each different value is looked up once."""
    distinct, place = column.distinct, {category: float(k) for k, category in enumerate(categories)}
    codes = np.full(len(distinct.values) + 1, np.nan)  # the last is that of -1: nothing
    strange, sort = [], _sort_of_all(categories)
    for k, value in enumerate(distinct.values):
        if not reading.is_missing(value):
            codes[k] = place.get(value, -1.0)
            if sort and _sort_of(value) not in (sort, ""):
                strange.append(k)
    if strange:
        row, value = distinct.first(strange)
        if all(isinstance(one, BOOLEANS) for one in categories):
            sort = "True and False"
        raise InputError(
            f"{column.called} held {sort} in the training table, such as {categories[0]!r:.50}, but row "
            f"{row} is {value!r:.50}. Turn the column into {sort} first, as it was there."
        )
    return codes[distinct.codes]


def _sort_of(value: Any) -> str:
    return "text" if isinstance(value, str) else "numbers" if isinstance(value, NUMBERS) else ""


def _sort_of_all(categories: tuple[Any, ...]) -> str:
    """Return what all categories are; nothing where they are of several sorts."""
    sorts = set(map(_sort_of, categories))
    return sorts.pop() if len(sorts) == 1 else ""


def numbers_of(column: Column, reading: Reading) -> Array:
    """Return a column as float64, NaN where it is missing; refuse what is no number."""
    if column.numbers is not None:
        return column.numbers.astype(np.float64)
    distinct = column.distinct
    numbers = np.full(len(distinct.values) + 1, np.nan)  # the last is that of -1: nothing
    strange = []
    for k, value in enumerate(distinct.values):
        if isinstance(value, NUMBERS):
            numbers[k] = _as_float(value)
        elif not reading.is_missing(value):
            strange.append(k)
    if strange:
        row, value = distinct.first(strange)
        raise InputError(
            f"{column.called} held numbers in the training table, but row {column.first_row + row} is "
            f"{value!r:.50}. Pass a "
            "number, or nothing where it is missing."
        )
    return numbers[distinct.codes]


def _as_float(value: Any) -> float:
    """Return a number as float64; infinity where it is too large."""
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def _named_like(X: Any, coded: Array) -> Any:
    """Return the codes under the names that X has, if it has any."""
    columns = getattr(X, "columns", None)
    if columns is None:
        return coded
    import narwhals.stable.v1 as nw

    frame = in_narwhals(collected(X))
    data = {name: coded[:, j] for j, name in enumerate(frame.columns)}
    return nw.from_dict(data, backend=nw.get_native_namespace(frame)).to_native()
