"""The one place that validates what users pass in.

Arrays, nested lists, pandas, Polars and Arrow tables (through narwhals) and SciPy sparse matrices become
float arrays or CSR arrays; float32 stays float32, integers and booleans become float64. Targets and weights
have to fit them, and values have to be finite where they are computed with. What cannot be used (text, dates,
ragged rows, ...) is refused with a sentence that names the column, row or parameter and says what to do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Number
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import _check_feature_names, _check_n_features, _get_feature_names, check_array

from sixfold.data.blocks import MemoryBlocks
from sixfold.errors import InputError, warn

Array = NDArray[Any]

LARGEST = float(np.finfo(np.float64).max)
MOST_NAMED = 10  # columns that are named before "and n more"
OVERFLOW = (
    "The values are so large that their squares, or whatever is computed from them, overflow. Divide the "
    "columns, or a numeric y, by a power of ten first."
)


@dataclass(frozen=True)
class TrainingData:
    """A checked training table.

    Attributes
    ----------
    X : ndarray or CSR array of shape (rows, columns)
    y : ndarray of shape (rows, targets)
    weight : ndarray of shape (rows,) or None
    single_target : bool
        Whether y was given as one column without a second axis.
    estimator : object
        The learner, which knows the names of the columns.
    """

    X: Any
    y: Array
    weight: Array | None
    single_target: bool
    estimator: Any

    @property
    def names(self) -> list[str]:
        """What to call the columns when speaking of them."""
        return column_names(self.estimator, self.X.shape[1])

    def blocks(self) -> MemoryBlocks:
        """Return the rows as blocks, the same ones every time: what is known of them is found again."""
        known = vars(self)  # a cached_property takes a lock for each of five calls
        if "_blocks" not in known:
            known["_blocks"] = MemoryBlocks(self.X, self.y, self.weight)
        found: MemoryBlocks = known["_blocks"]
        return found

    def float64(self) -> TrainingData:
        """Return the same table in float64."""
        return replace(self, X=self.X.astype(np.float64, copy=False), y=self.y.astype(np.float64, copy=False))

    def require_finite(self) -> None:
        """Raise an :class:`InputError` that says where the first NaN or infinity is."""
        require_finite(self.X, "X", lambda: self.names)
        require_finite(self.y, "y")

    def require_computable(self) -> None:
        """Raise an :class:`InputError` where a value is not finite, or its square is not."""
        for values in (self.X, self.y):
            if not np.isfinite(_sum_of_squares(values)):
                self.refuse_overflow()

    def refuse_overflow(self) -> NoReturn:
        """Raise an :class:`InputError` that says which value is not finite, or that all are too large."""
        self.require_finite()
        raise InputError(OVERFLOW)


def check_training(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    reset: bool = True,
    one_target: bool = False,
) -> TrainingData:
    """Return the table in the form solvers read; NaN and infinity are looked for separately.

    With ``one_target``, y has to be one column.

    Sets ``n_features_in_`` and ``feature_names_in_`` on the estimator, or compares with them if not
    ``reset``.
    """
    require_y(estimator, y)
    require_order(estimator, X, y)
    X = check_table(estimator, X, reset)
    y, single = check_target(y, X, X.dtype)
    if one_target and not single:
        if y.shape[1] > 1:
            raise InputError(
                f"y has {y.shape[1]} columns, but {type(estimator).__name__} predicts one. Fit one model for "
                "each column."
            )
        warn(
            "A column-vector y was passed when a 1d array was expected. Pass y.ravel() to silence this.",
            DataConversionWarning,
        )
        single = True
    weight = check_weight(sample_weight, X.shape[0])
    return TrainingData(X, y, weight, single, estimator)


def require_y(estimator: Any, y: Any) -> None:
    """Raise an :class:`InputError` if there is nothing to learn."""
    if y is None:
        raise InputError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None. Pass the "
            "values to learn."
        )


def require_order(estimator: Any, X: Any, y: Any) -> None:
    """Raise an :class:`InputError` if X is a column of targets and y the table: ``fit(y, X)``."""
    axes = [len(getattr(part, "shape", (None, None))) for part in (X, y)]
    if axes == [1, 2] and y.shape[1] > 1 and X.shape[0] == y.shape[0]:
        raise InputError(
            f"X has shape {tuple(X.shape)} and y has shape {tuple(y.shape)}: they are swapped. Call "
            f"{type(estimator).__name__}.fit(X, y), the table first."
        )


def require_rows(y: Array, X: Any) -> None:
    """Raise an :class:`InputError` unless there is one target a row."""
    if y.shape[0] != X.shape[0]:
        raise InputError(
            f"Found input variables with inconsistent numbers of samples: X has {X.shape[0]} rows, "
            f"y has {y.shape[0]}. Pass one target a row."
        )


def check_rows(estimator: Any, X: Any) -> Any:
    """Return rows to predict for, with the columns the estimator was fitted on, all finite."""
    X = check_table(estimator, X, reset=False)
    require_finite(X, "X", lambda: column_names(estimator, X.shape[1]))
    return X


def column_names(estimator: Any, count: int) -> list[str]:
    """Return the names of the columns the estimator was fitted on; x0, x1, ... where it knows none."""
    names = getattr(estimator, "feature_names_in_", None)
    return [f"x{j}" for j in range(count)] if names is None else [str(name) for name in names]


def check_weight(sample_weight: Any, n_rows: int) -> Array | None:
    """Return the weights as float64, one a row; None where all are 1."""
    if sample_weight is None:
        return None
    weight = np.asarray(to_array(sample_weight))
    if weight.ndim == 0:
        if not _is_number(weight.item()):
            raise InputError(
                f"sample_weight={sample_weight!r:.50} is of type {type(sample_weight).__name__}. Pass one "
                "weight a row, or a number for all."
            )
        weight = np.full(n_rows, float(weight))
    if weight.ndim != 1:
        raise InputError(
            f"Sample weights must be 1D array or scalar, got {weight.ndim} dimensions. Pass one weight a row."
        )
    weight = to_float(weight, "sample_weight").astype(np.float64)
    if weight.shape[0] != n_rows:
        raise InputError(
            f"sample_weight.shape == {weight.shape}, expected {(n_rows,)}! There are {weight.shape[0]} "
            f"weights for {n_rows} rows. Pass one weight a row."
        )
    require_finite(weight, "sample_weight")
    if np.any(weight < 0):
        row = int(np.argmax(weight < 0))
        raise InputError(
            f"Negative values in data passed to `sample_weight`: the first is {weight[row]:g} at row {row}. "
            "Weights say how much a row counts, so they must be 0 or more."
        )
    if not np.any(weight > 0):
        raise InputError(
            "Every entry of sample_weight is zero, so no row counts. Give some rows a positive weight."
        )
    return weight


def require_finite(
    values: Any, name: str, columns: Callable[[], list[str]] | None = None, gaps: bool = False
) -> None:
    """Raise an :class:`InputError` that says where the first NaN or infinity is, if there is one.

    ``columns`` returns the names of the columns; it is called only when one has to be named. With ``gaps``,
    NaN stands for a missing value and will do.
    """
    stored = values.data if sp.issparse(values) else values
    # The sum is not finite if any entry is not; it is three times faster than looking at each.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.sum(stored)):
            return
    bad = np.isinf(stored) if gaps else ~np.isfinite(stored)
    if not bad.any():
        return
    if sp.issparse(values):
        coo, place = values.tocoo(), int(np.flatnonzero(bad)[0])
        position: tuple[int, ...] = (int(coo.row[place]), int(coo.col[place]))
        value = stored[place]
    else:
        position = tuple(int(k) for k in np.argwhere(bad)[0])
        value = stored[position]
    what = "NaN" if np.isnan(value) else f"infinity or a value too large for {stored.dtype}"
    where = f"row {position[0]}"
    if columns is not None:
        where += f" of column {columns()[position[1]]!r} (number {position[1]})"
    count = int(bad.sum())
    several = f"{count} such values, the first in" if count > 1 else "in"
    advice = (
        "Put NaN where a value is unknown, or drop such rows."
        if gaps
        else "Fill in or drop such rows first; they cannot be computed with."
    )
    raise InputError(f"Input {name} contains {what}: {several} {where}, counted from 0. {advice}")


def require_computable(values: Any, name: str, columns: Callable[[], list[str]]) -> None:
    """Raise an :class:`InputError` where a value is not finite, or its square is not."""
    if not np.isfinite(_sum_of_squares(values)):
        require_finite(values, name, columns)
        raise InputError(OVERFLOW)


def require_differences(values: Any) -> None:
    """Raise an :class:`InputError` where the differences of two rows cannot be added up."""
    stored = values.data if sp.issparse(values) else values
    largest = max(float(stored.max(initial=0.0)), -float(stored.min(initial=0.0)))
    if not largest < LARGEST / (2.0 * max(values.shape[1], 1)):
        raise InputError(OVERFLOW)


def row_index(X: Any) -> Array | None:
    """Return what the rows of a frame are called; None where they have no names but their numbers."""
    index = getattr(X, "index", None)
    if index is None or callable(index) or len(index) != len(X):
        return None
    plain = getattr(index, "dtype", None) is not None and index.dtype.kind in "iu"
    if plain and np.array_equal(index, np.arange(len(index))):
        return None
    names = np.empty(len(index), dtype=object)
    names[:] = list(index)
    return names


def _sum_of_squares(values: Any) -> float:
    """Return a number that is finite only if every entry and its square are."""
    stored = values.data if sp.issparse(values) else values
    axes = "ij"[: stored.ndim]
    with np.errstate(over="ignore", invalid="ignore"):
        # Without BLAS: its threads would keep a core busy for 25 ms more, while those of the fit want it.
        total = float(np.einsum(f"{axes},{axes}->", stored, stored))
        # The squares of float32 may overflow there, but are far from the limits of float64.
        if stored.dtype != np.float64 and not np.isfinite(total):
            total = float(np.sum(stored, dtype=np.float64))
    return total


def check_target(y: Any, X: Any, dtype: Any) -> tuple[Array, bool]:
    """Return numbers to predict, one row a row of X, and whether they were given without a second axis."""
    if sp.issparse(y):
        raise InputError("y is sparse, but targets are kept dense. Pass y.toarray().")
    values = np.asarray(to_array(collected(y)))
    if values.ndim not in (1, 2) or (values.ndim == 2 and values.shape[1] == 0):
        raise InputError(
            f"y has shape {values.shape}. Pass one value a row, or one row of values a row for "
            "several targets."
        )
    require_rows(values, X)
    values = to_float(values, "y").astype(dtype, copy=False)
    single = values.ndim == 1
    return (values[:, None] if single else values), single


# -- tables as arrays ------------------------------------------------------------------------------------


def check_table(estimator: Any, X: Any, reset: bool, also: tuple[Any, ...] = ()) -> Any:
    """Return X as a float array or CSR array, and set or compare what the estimator knows of its columns.

    Types in ``also`` stay what they are.
    """
    try:
        X = collected(X)
        # Looking for names takes as long as a small fit; arrays have none, and none were there before.
        nameless = type(X) is np.ndarray or sp.issparse(X)
        if not nameless or hasattr(estimator, "feature_names_in_"):
            check_names(estimator, X, reset)
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
    plain = type(X) is np.ndarray or (sp.issparse(X) and X.format == "csr")
    return plain and X.dtype in (np.float64, np.float32) and X.ndim == 2 and min(X.shape) > 0


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


def check_names(estimator: Any, X: Any, reset: bool) -> None:
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
    X = X.header() if hasattr(X, "header") else X  # rows of a scan
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
        gaps, others = [], []  # columns of yes and no with gaps, which pandas would turn into objects
        for number, column in enumerate(frame.iter_columns()):
            if column.dtype == nw.Boolean:
                gaps += [column.cast(nw.Float64)] if column.null_count() else []
            elif not column.dtype.is_numeric():
                others.append((column.name, number, column.to_numpy()))
        _refuse_columns(others)
        frame = frame.with_columns(*gaps) if gaps else frame
    return frame.to_numpy() if isinstance(frame, nw.DataFrame | nw.Series) else values


def _refuse_text(values: Array) -> Array:
    """Refuse dates, and text that is no number, naming such columns."""
    columns = [(f"x{number}", number, column) for number, column in enumerate(values.T)]
    _refuse_columns([one for one in columns if one[2].dtype.kind in "Mm" or _has_text(one[2])])
    return values


def _has_text(column: Array) -> bool:
    return any(isinstance(value, str | bytes) and not _is_number(value) for value in column)


def _refuse_columns(columns: list[tuple[Any, int, Array]]) -> None:
    """Raise unless every value of the columns (name, number, values) can be read as a number."""
    found = [(name, number, *_not_a_number(column)) for name, number, column in columns]
    found = [one for one in found if one[2] is not None]
    if not found:
        return
    name, number, row, value = found[0]
    where = f"column {name!r} (number {number}, counted from 0) holds {_spelt(value)} in row {row}"
    if len(found) > 1:
        shown = ", ".join(repr(one[0]) for one in found[1:MOST_NAMED])
        more = len(found) - MOST_NAMED
        where += f"; so {'does' if len(found) == 2 else 'do'} {shown}{f' and {more} more' * (more > 0)}"
    if isinstance(value, str | bytes):
        raise InputError(
            f"could not convert string to float: {where}. Turn categories into numbers first, for "
            "instance one column of 0 and 1 for each."
        )
    raise InputError(f"{where}, which is no number. Turn it into one first, for instance days since a date.")


def _not_a_number(column: Array) -> tuple[int | None, Any]:
    """Return the row and the value of the first entry that cannot be read as a number; None without any."""
    if column.dtype.kind in "Mm":
        return 0, column[0]
    for row, value in enumerate(column):
        if value is not None and not _is_number(value):
            return row, value
    return None, None


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
