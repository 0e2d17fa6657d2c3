"""Tables whose columns are of different kinds: numbers, and categories that become codes.

    numbers      as they are; what is missing is NaN
    categories   0, 1, 2, ... by the order of the training table's categories; -1 for one it did not have

A column of text, of booleans with text, or of a categorical type is of categories; so is one the user names.
What else counts as a category or as missing, a :class:`Reading` says.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.data.checks import check_table, collected
from sixfold.errors import InputError

Array = NDArray[Any]

NUMBERS = (Real, np.bool_)
BOOLEANS = (bool, np.bool_)
DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
MISSING = ("nan", "np.float64(nan)", "np.float32(nan)", "<NA>", "NaT", "None")


@dataclass(frozen=True)
class ColumnKinds:
    """The categories of each column of a table; None for a column of numbers."""

    categories: tuple[tuple[Any, ...] | None, ...]

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
        Words in a column of text that stand for a missing value.
    """

    parameter: str
    booleans: bool = False
    unknown: tuple[str, ...] = ()

    def is_missing(self, value: Any) -> bool:
        """Return whether nothing is known in such a cell."""
        if isinstance(value, str):
            return value in self.unknown
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
        Whether categories that are not known get codes of their own, behind the others.
    reading : Reading
        What the learner takes for a category, and for missing.
    """
    if sp.issparse(X):
        raise InputError("X is sparse, but categories are not. Pass a dense table, or use another metric.")
    columns, names = _columns_of(collected(X))
    if not columns:
        check_table(estimator, X, reset=known is None)  # says what is wrong with it
    coded = np.zeros((len(columns[0]), len(columns)), order="F")
    check_table(estimator, _named_like(X, coded[:1]), reset=known is None)  # as many columns, of these names
    named = _places(categorical, names, reading.parameter)
    kinds = []
    for j, column in enumerate(columns):
        values = _values_of(column)
        called = f"Column {names[j]!r} (number {j}, counted from 0)"
        if known is None:
            kind = _categories(values, j in named, values is not column, reading, called)
        else:
            kind = known.categories[j]
            kind = _with_more(kind, values, reading, called) if adding else kind
        coded[:, j] = _numbers(values, called, reading) if kind is None else _codes(values, kind, reading)
        kinds.append(kind)
    return coded, ColumnKinds(tuple(kinds))


def _columns_of(X: Any) -> tuple[list[Any], list[str]]:
    """Return the columns of a table, arrays or narwhals' series, and what to call them."""
    import narwhals.stable.v1 as nw

    frame: Any = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return list(frame.iter_columns()), list(frame.columns)
    try:
        values = np.asarray(X) if _is_plain(X) else np.asarray(X, dtype=object)
    except ValueError:  # rows of different lengths
        return [], []
    if values.ndim != 2 or values.dtype.kind == "c":
        return [], []
    return list(values.T), [f"x{j}" for j in range(values.shape[1])]


def _values_of(column: Any) -> Array:
    """Return one column as an array; of a frame's columns one is in memory at a time."""
    if isinstance(column, np.ndarray):
        return column
    import narwhals.stable.v1 as nw

    return np.asarray((column.cast(nw.Float64) if column.dtype == nw.Decimal else column).to_numpy())


def _is_plain(X: Any) -> bool:
    """Return whether NumPy reads X without spelling numbers out as text."""
    return isinstance(X, np.ndarray) or np.asarray(X).dtype.kind not in "US"


def _places(categorical: Any, names: list[str], parameter: str) -> set[int]:
    """Return the numbers of the columns that the user names."""
    count = len(names)
    listed = [] if categorical is None else [categorical] if isinstance(categorical, str) else categorical
    if np.shape(listed) == (count,) and all(isinstance(one, BOOLEANS) for one in listed):
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


def _distinct(column: Array, reading: Reading, called: str) -> set[Any]:
    """Return the values of a column that are there."""
    if column.dtype.kind in "biuf":
        return set(np.unique(column[column == column]).tolist())  # noqa: PLR0124 - NaN differs from itself
    try:
        return {value for value in set(column.tolist()) if not reading.is_missing(value)}
    except TypeError as error:
        raise InputError(
            f"{called} holds {error.args[0].removeprefix('unhashable type: ')}s, which are neither numbers "
            "nor categories. Give each of their entries a column of its own."
        ) from error


def _categories(
    column: Array, named: bool, framed: bool, reading: Reading, called: str
) -> tuple[Any, ...] | None:
    """Return the categories of a column in order; None for numbers."""
    kind = column.dtype.kind
    if kind in "biuf" and not named and not (kind == "b" and framed and reading.booleans):
        return None
    present = _distinct(column, reading, called)
    if kind in "Mm" or any(isinstance(value, DATES) for value in present):
        raise InputError(
            f"{called} holds dates or times, such as {next(iter(present), None)!r}, which are neither "
            "numbers nor categories. Turn them into numbers first, for instance days since a date."
        )
    if not named and present and all(isinstance(value, NUMBERS) for value in present):
        answers = all(isinstance(value, BOOLEANS) for value in present)
        if not (answers and reading.booleans):
            return None
    if len(set(map(type, present))) == 1:
        return tuple(sorted(present))
    return tuple(sorted(present, key=lambda value: (str(type(value)), value)))


def _with_more(
    categories: tuple[Any, ...] | None, column: Array, reading: Reading, called: str
) -> tuple[Any, ...] | None:
    """Return the categories, followed by those of the column that are new."""
    if categories is None:
        return None
    known, found = set(categories), _categories(column, True, False, reading, called)
    return (*categories, *(one for one in found or () if one not in known))


def _codes(column: Array, categories: tuple[Any, ...], reading: Reading) -> Array:
    """Return codes; each different value is looked up once (1,000,000 strings: 0.1 s)."""
    place = {category: float(k) for k, category in enumerate(categories)}

    def code(value: Any) -> float:
        return np.nan if reading.is_missing(value) else place.get(value, -1.0)

    if column.dtype.kind in "biuf":
        values, inverse = np.unique(column, return_inverse=True)
        return np.array([code(value) for value in values.tolist()])[inverse]
    listed = column.tolist()
    codes = {value: code(value) for value in set(listed)}  # a NaN is found as the object that it is
    return np.fromiter(map(codes.__getitem__, listed), dtype=np.float64, count=len(listed))


def _numbers(column: Array, called: str, reading: Reading) -> Array:
    if column.dtype.kind in "biuf":
        return column.astype(np.float64)
    listed = column.tolist()
    for row, value in enumerate(listed):
        if not isinstance(value, NUMBERS) and not reading.is_missing(value):
            raise InputError(
                f"{called} held numbers in the training table, but row {row} is {value!r:.50}. Pass a "
                "number, or nothing where it is missing."
            )
    return np.array([float(value) if isinstance(value, NUMBERS) else np.nan for value in listed])


def _named_like(X: Any, coded: Array) -> Any:
    """Return the codes under the names that X has, if it has any."""
    columns = getattr(X, "columns", None)
    if columns is None:
        return coded
    import narwhals.stable.v1 as nw

    frame: Any = nw.from_native(collected(X), eager_only=True)
    data = {name: coded[:, j] for j, name in enumerate(frame.columns)}
    return nw.from_dict(data, backend=nw.get_native_namespace(frame)).to_native()
