"""Tables as arrays: what users pass in as X becomes a float array or a CSR array.

Arrays, nested lists, pandas, Polars and Arrow tables (through narwhals) and SciPy sparse matrices will do;
float32 stays float32, integers and booleans become float64. Text, dates and ragged rows are refused with a
sentence that names the column or row and says what to do.
"""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import _check_feature_names, _check_n_features, _get_feature_names, check_array

from sixfold.errors import InputError

Array = NDArray[Any]


def check_table(estimator: Any, X: Any, reset: bool, also: tuple[Any, ...] = ()) -> Any:
    """Return X as a float array or CSR array, and set or compare what the estimator knows of its columns.

    Types in ``also`` stay what they are.
    """
    try:
        X = collected(X)
        # Looking for names takes as long as a small fit; arrays have none, and none were there before.
        if not isinstance(X, np.ndarray) or hasattr(estimator, "feature_names_in_"):
            _check_names(estimator, X, reset)
        array = X if _is_ready(X) else _checked(estimator, X, also)
        _check_n_features(estimator, array, reset=reset)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(_with_advice(str(error))) from error
    except OverflowError as error:
        raise InputError(
            "X holds a whole number that is too large for float64. Divide its column."
        ) from error
    return array


def _is_ready(X: Any) -> bool:
    """Return whether X is what ``_checked`` would return as it is; asking that takes 90 microseconds."""
    return type(X) is np.ndarray and X.dtype in (np.float64, np.float32) and X.ndim == 2 and X.size > 0


def _checked(estimator: Any, X: Any, also: tuple[Any, ...]) -> Any:
    """Return X as a float array or CSR array with a row and a column at least."""
    return check_array(
        _require_two_axes(to_array(X)),
        accept_sparse="csr",
        dtype=[np.float64, np.float32, *also],
        ensure_all_finite=False,
        ensure_min_samples=1,
        estimator=estimator,
        input_name="X",
    )


def _check_names(estimator: Any, X: Any, reset: bool) -> None:
    """Set or compare the names of the columns."""
    try:
        _check_feature_names(estimator, _with_names(X), reset=reset)
    except TypeError as error:
        kinds = sorted({type(name).__name__ for name in X.columns})
        raise InputError(
            f"The names of the columns are of several types: {', '.join(kinds)}. Make text of all, for "
            "instance X.columns = X.columns.astype(str)."
        ) from error


class _Names:
    """The names of columns, as scikit-learn up to 1.8 asks for them."""

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def __dataframe__(self) -> _Names:
        return self

    def column_names(self) -> list[str]:
        return self.names


def _with_names(X: Any) -> Any:
    """Return X, or its names where the installed scikit-learn does not see them (Polars, up to 1.8)."""
    names = getattr(X, "columns", None)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return X
    return X if _get_feature_names(X) is not None else _Names(names)


def _require_two_axes(X: Any) -> Any:
    """Refuse what is no table, and complex numbers, without printing the data as scikit-learn does."""
    # SciPy's dok_matrix is a dictionary as well.
    if X is None or (isinstance(X, str | bytes | dict | Number) and not sp.issparse(X)):
        raise InputError(f"X is {X!r:.50}, of type {type(X).__name__}. Pass a table: rows of numbers.")
    shape, dtype = getattr(X, "shape", None), getattr(X, "dtype", None)
    if shape is not None and len(shape) < 2:
        raise InputError(
            f"Expected 2D array, got {len(shape)}D array instead: X has shape {tuple(shape)}. Reshape your "
            "data: X.reshape(-1, 1) if it is one column, X.reshape(1, -1) if it is one row."
        )
    if dtype is not None and getattr(dtype, "kind", "f") == "c":
        raise InputError("Complex data not supported: X holds complex numbers. Pass real ones.")
    return X


def collected(values: Any) -> Any:
    """Return a lazy table as one in memory, everything else as it is."""
    if isinstance(values, np.ndarray | list | tuple) or not hasattr(values, "collect"):
        return values
    import narwhals.stable.v1 as nw

    frame: Any = nw.from_native(values, pass_through=True)
    return frame.collect().to_native() if isinstance(frame, nw.LazyFrame) else values


def in_narwhals(values: Any) -> Any:
    """Return a table of pandas, Polars or Arrow as narwhals' frame, everything else as it is."""
    import narwhals.stable.v1 as nw

    try:
        return nw.from_native(values, eager_only=True, pass_through=True)
    except ValueError as error:  # two columns of one name
        raise InputError(_with_advice(str(error))) from error


def to_array(values: Any) -> Any:
    """Return tables of pandas, Polars and Arrow as arrays, after refusing columns that are not numbers."""
    if isinstance(values, list | tuple):
        values = np.asarray(values)
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.result_type(values, np.float32)), np.nan)  # masked: missing
    if isinstance(values, np.ndarray):
        return values if values.dtype.kind not in "USOMm" or values.ndim != 2 else _refuse_text(values)
    if sp.issparse(values):
        return values
    import narwhals.stable.v1 as nw

    frame: Any = nw.from_native(values, allow_series=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        gaps = []  # columns of yes and no with gaps, which pandas would turn into objects
        for number, column in enumerate(frame.iter_columns()):
            if column.dtype == nw.Boolean:
                gaps += [column.cast(nw.Float64)] if column.null_count() else []
            elif not column.dtype.is_numeric():
                _refuse_column(column.name, number, column.to_numpy())
        frame = frame.with_columns(*gaps) if gaps else frame
    return frame.to_numpy() if isinstance(frame, nw.DataFrame | nw.Series) else values


def _refuse_text(values: Array) -> Array:
    """Refuse dates, and text that is no number, naming the first such column."""
    for number, column in enumerate(values.T):
        dates = column.dtype.kind in "Mm"
        if dates or any(isinstance(value, str | bytes) and not _is_number(value) for value in column):
            _refuse_column(f"x{number}", number, column)
    return values


def _refuse_column(name: Any, number: int, column: Array) -> None:
    """Raise unless every value of the column can be read as a number."""
    for row, value in enumerate(column):
        if value is None or _is_number(value):
            continue
        where = f"column {name!r} (number {number}, counted from 0) holds {_spelt(value)} in row {row}"
        if isinstance(value, str | bytes):
            raise InputError(
                f"could not convert string to float: {where}. Turn categories into numbers first, for "
                "instance one column of 0 and 1 for each."
            )
        raise InputError(
            f"{where}, which is no number. Turn it into one first, for instance days since a date."
        )


def _spelt(value: Any) -> str:
    """Return text in quotes, also where NumPy would add its type."""
    return repr(str(value)) if isinstance(value, str) else f"{value} of type {type(value).__name__}"


def _is_number(value: Any) -> bool:
    if isinstance(value, np.datetime64 | np.timedelta64):
        return False
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def to_float(values: Array, name: str) -> Array:
    """Return one-dimensional or two-dimensional values as floats; float32 stays float32."""
    if values.dtype.kind == "c":
        raise InputError(f"Complex data not supported: {name} holds complex numbers. Pass real ones.")
    if values.dtype.kind == "f" and values.dtype.itemsize in (4, 8):
        return values
    if values.dtype.kind in "USOMm":
        for place, value in np.ndenumerate(values):
            if value is not None and not _is_number(value):
                raise InputError(
                    f"{name} must hold numbers, but row {place[0]}, counted from 0, is {_spelt(value)}. "
                    "Turn it into numbers first."
                )
    return values.astype(np.float64)


def _with_advice(message: str) -> str:
    """Return scikit-learn's message, and what to do about it where it does not say so."""
    for start, advice in (
        ("Found array with 0 sample", "The table is empty: pass at least one row."),
        ("Found array with 0 feature", "The table has no columns: pass at least one."),
        ("The feature names should match", "Pass the columns of the fit, in that order."),
        ("X has ", "Pass the columns of the fit, in that order."),
        ("Expected unique column names", "Give every column a name of its own."),
        ("Found array with dim", "Pass a table: one row of numbers for each sample."),
        ("setting an array element", "The rows are not all of one length: pass as many values in each."),
    ):
        if message.startswith(start):
            return f"{message.rstrip()}\n{advice}" if "\n" in message else f"{message.rstrip('.')}. {advice}"
    return message
