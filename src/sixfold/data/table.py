"""Tables whose columns are of different kinds: numbers, and categories that become codes.

    numbers      as they are; what is missing is NaN
    categories   0, 1, 2, ... by the order of the training table's categories; -1 for one it did not have

A column of text, of booleans with text, or of a categorical type is of categories; so is one the user names.
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


def check_mixed(
    estimator: Any, X: Any, known: ColumnKinds | None = None, categorical: Any = None, adding: bool = False
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
    """
    if sp.issparse(X):
        raise InputError("X is sparse, but categories are not. Pass a dense table, or use another metric.")
    columns, names = _columns_of(collected(X))
    if not columns:
        check_table(estimator, X, reset=known is None)  # says what is wrong with it
    coded = np.zeros((len(columns[0]), len(columns)))
    check_table(estimator, _named_like(X, coded), reset=known is None)  # as many columns, under their names
    named = _places(categorical, names, len(columns))
    kinds = (
        known
        if known is not None
        else ColumnKinds(tuple(_categories(column, j in named) for j, column in enumerate(columns)))
    )
    if adding:
        kinds = ColumnKinds(tuple(map(_with_more, kinds.categories, columns)))
    for j, (column, categories) in enumerate(zip(columns, kinds.categories, strict=True)):
        coded[:, j] = _numbers(column, names[j], j) if categories is None else _codes(column, categories)
    return coded, kinds


def _columns_of(X: Any) -> tuple[list[Array], list[str]]:
    """Return the columns of a table and what to call them."""
    import narwhals.stable.v1 as nw

    frame: Any = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return [np.asarray(column.to_numpy()) for column in frame.iter_columns()], list(frame.columns)
    try:
        values = np.asarray(X) if _is_plain(X) else np.asarray(X, dtype=object)
    except ValueError:  # rows of different lengths
        return [], []
    if values.ndim != 2 or values.dtype.kind == "c":
        return [], []
    return list(values.T), [f"x{j}" for j in range(values.shape[1])]


def _is_plain(X: Any) -> bool:
    """Return whether NumPy reads X without spelling numbers out as text."""
    return isinstance(X, np.ndarray) or np.asarray(X).dtype.kind not in "US"


def _places(categorical: Any, names: list[str], count: int) -> set[int]:
    """Return the numbers of the columns that the user names."""
    if np.shape(categorical) == (count,) and all(isinstance(one, bool | np.bool_) for one in categorical):
        return {j for j, one in enumerate(categorical) if one}
    places = set()
    for one in [] if categorical is None else categorical:
        if isinstance(one, str) and one in names:
            places.add(names.index(one))
        elif isinstance(one, int | np.integer) and -count <= one < count:
            places.add(int(one) % count)
        else:
            raise InputError(
                f"metric_params={{'categorical': ...}} names the column {one!r}, which the table does not "
                "have. Pass names, or numbers counted from 0."
            )
    return places


def _is_missing(value: Any) -> bool:
    return value is None or repr(value) in MISSING


def _categories(column: Array, named: bool) -> tuple[Any, ...] | None:
    """Return the categories of a column in order; None for numbers."""
    if column.dtype.kind in "biuf" and not named:
        return None
    try:
        present = {value for value in column.tolist() if not _is_missing(value)}
    except TypeError as error:
        raise InputError(
            f"A column of the table holds {error.args[0].removeprefix('unhashable type: ')}s, which are "
            "neither numbers nor categories. Give each of their entries a column of its own."
        ) from error
    if not named and present and all(isinstance(value, NUMBERS) for value in present):
        return None
    if column.dtype.kind in "Mm" or any(isinstance(value, DATES) for value in present):
        raise InputError(
            f"A column of the table holds dates or times, such as {next(iter(present), None)!r}, which are "
            "neither numbers nor categories. Turn them into numbers first, for instance days since a date."
        )
    return tuple(sorted(present, key=lambda value: (str(type(value)), value)))


def _with_more(categories: tuple[Any, ...] | None, column: Array) -> tuple[Any, ...] | None:
    """Return the categories, followed by those of the column that are new."""
    if categories is None:
        return None
    known = set(categories)
    return (*categories, *(one for one in _categories(column, named=True) or () if one not in known))


def _codes(column: Array, categories: tuple[Any, ...]) -> Array:
    place = {category: float(k) for k, category in enumerate(categories)}
    return np.array([np.nan if _is_missing(value) else place.get(value, -1.0) for value in column.tolist()])


def _numbers(column: Array, name: str, number: int) -> Array:
    if column.dtype.kind in "biuf":
        return column.astype(np.float64)
    for row, value in enumerate(column.tolist()):
        if not _is_missing(value) and not isinstance(value, NUMBERS):
            raise InputError(
                f"Column {name!r} (number {number}, counted from 0) held numbers in the training table, but "
                f"row {row} is {value!r:.50}. Pass a number, or nothing where it is missing."
            )
    return np.array([np.nan if _is_missing(value) else float(value) for value in column.tolist()])


def _named_like(X: Any, coded: Array) -> Any:
    """Return the codes under the names that X has, if it has any."""
    columns = getattr(X, "columns", None)
    if columns is None:
        return coded
    import narwhals.stable.v1 as nw

    frame: Any = nw.from_native(collected(X), eager_only=True)
    data = {name: coded[:, j] for j, name in enumerate(frame.columns)}
    return nw.from_dict(data, backend=nw.get_native_namespace(frame)).to_native()
