"""The one place that validates what users pass in.

Arrays, nested lists, pandas, Polars and Arrow tables (through narwhals) and SciPy sparse matrices become a
float array or a CSR array; float32 stays float32, integers and booleans become float64. What cannot be used
is refused with a sentence that names the column, row or parameter and says what to do.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_array

from sixfold.data.blocks import MemoryBlocks
from sixfold.errors import InputError

Array = NDArray[Any]


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
    names : list of str
        What to call the columns when speaking of them.
    """

    X: Any
    y: Array
    weight: Array | None
    single_target: bool
    names: list[str]

    def blocks(self) -> MemoryBlocks:
        """Return the rows as blocks."""
        return MemoryBlocks(self.X, self.y, self.weight)

    def float64(self) -> TrainingData:
        """Return the same table in float64."""
        return replace(self, X=self.X.astype(np.float64, copy=False), y=self.y.astype(np.float64, copy=False))

    def require_finite(self) -> None:
        """Raise an :class:`InputError` that says where the first NaN or infinity is."""
        require_finite(self.X, "X", lambda: self.names)
        require_finite(self.y, "y")


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
    if y is None:
        raise InputError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None. Pass the "
            "values to learn."
        )
    X = _check_table(estimator, X, reset)
    y, single = _check_target(y, X)
    if one_target and not single:
        if y.shape[1] > 1:
            raise InputError(
                f"y has {y.shape[1]} columns, but {type(estimator).__name__} predicts one. Fit one "
                "model a column."
            )
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Pass y.ravel() to silence this.",
            DataConversionWarning,
            stacklevel=4,
        )
        single = True
    weight = check_weight(sample_weight, X.shape[0])
    return TrainingData(X, y, weight, single, column_names(estimator, X.shape[1]))


def check_rows(estimator: Any, X: Any) -> Any:
    """Return rows to predict for, with the columns the estimator was fitted on, all finite."""
    X = _check_table(estimator, X, reset=False)
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
    weight = np.asarray(_to_array(sample_weight))
    if weight.ndim == 0:
        weight = np.full(n_rows, float(weight))
    if weight.ndim != 1:
        raise InputError(
            f"Sample weights must be 1D array or scalar, got {weight.ndim} dimensions. Pass one weight a row."
        )
    weight = _to_float(weight, "sample_weight").astype(np.float64)
    if weight.shape[0] != n_rows:
        raise InputError(
            f"sample_weight.shape == {weight.shape}, expected {(n_rows,)}! There are "
            f"{weight.shape[0]} weights for "
            f"{n_rows} rows. Pass one weight a row."
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


def require_finite(values: Any, name: str, columns: Callable[[], list[str]] | None = None) -> None:
    """Raise an :class:`InputError` that says where the first NaN or infinity is, if there is one.

    ``columns`` returns the names of the columns; it is called only when one has to be named.
    """
    stored = values.data if sp.issparse(values) else values
    # The sum is not finite if any entry is not; it is three times faster than looking at each.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.sum(stored, dtype=np.float64)):
            return
    bad = ~np.isfinite(stored)
    if not bad.any():
        return
    if sp.issparse(values):
        coo, place = values.tocoo(), int(np.flatnonzero(bad)[0])
        position: tuple[int, ...] = (int(coo.row[place]), int(coo.col[place]))
        value = stored[place]
    else:
        position = tuple(int(k) for k in np.argwhere(bad)[0])
        value = stored[position]
    what = "NaN" if np.isnan(value) else "infinity or a value too large"
    where = f"row {position[0]}"
    if columns is not None:
        where += f" of column {columns()[position[1]]!r} (number {position[1]})"
    count = int(bad.sum())
    several = f"{count} such values, the first in" if count > 1 else "in"
    raise InputError(
        f"Input {name} contains {what}: {several} {where}, counted from 0. Fill in or drop such rows first; "
        "they cannot be computed with."
    )


# -- tables ------------------------------------------------------------------------------------------


def _check_table(estimator: Any, X: Any, reset: bool) -> Any:
    try:
        _check_feature_names(estimator, X, reset=reset)
        array = check_array(
            _to_array(X),
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            ensure_min_samples=1,
            estimator=estimator,
            input_name="X",
        )
        _check_n_features(estimator, array, reset=reset)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(_with_advice(str(error))) from error
    return array


def _check_target(y: Any, X: Any) -> tuple[Array, bool]:
    values = np.asarray(_to_array(y))
    if values.ndim not in (1, 2) or (values.ndim == 2 and values.shape[1] == 0):
        raise InputError(
            f"y has shape {values.shape}. Pass one value a row, or one row of values a row for "
            "several targets."
        )
    if values.shape[0] != X.shape[0]:
        raise InputError(
            f"Found input variables with inconsistent numbers of samples: X has {X.shape[0]} rows, "
            f"y has {values.shape[0]}. Pass one target a row."
        )
    values = _to_float(values, "y").astype(X.dtype, copy=False)
    single = values.ndim == 1
    return (values[:, None] if single else values), single


def _to_array(values: Any) -> Any:
    """Return tables of pandas, Polars and Arrow as arrays, after refusing columns that are not numbers."""
    if isinstance(values, np.ndarray):
        return values if values.dtype.kind not in "USO" or values.ndim != 2 else _refuse_text(values)
    if isinstance(values, list | tuple) or sp.issparse(values):
        return values
    import narwhals.stable.v1 as nw

    frame: Any = nw.from_native(values, allow_series=True, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    if not isinstance(frame, nw.DataFrame | nw.Series):
        return values
    if isinstance(frame, nw.DataFrame):
        for number, column in enumerate(frame.iter_columns()):
            if not (column.dtype.is_numeric() or column.dtype == nw.Boolean):
                _refuse_column(column.name, number, column.to_numpy())
    return frame.to_numpy()


def _refuse_text(values: Array) -> Array:
    """Refuse a text array or an object array with text in it, naming the first such column."""
    for number, column in enumerate(values.T):
        if any(isinstance(value, str | bytes) and not _is_number(value) for value in column):
            _refuse_column(f"x{number}", number, column)
    return values


def _refuse_column(name: Any, number: int, column: Array) -> None:
    """Raise unless every value of the column can be read as a number."""
    for row, value in enumerate(column):
        if value is not None and not _is_number(value):
            raise InputError(
                f"could not convert string to float: column {name!r} (number {number}, counted from 0) holds "
                f"{value!r} in row {row}. Turn categories into numbers first, for instance one column "
                "of 0 and 1 "
                "for each."
            )


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    except TypeError:  # not text: scikit-learn's own message says what it is
        return True
    return True


def _to_float(values: Array, name: str) -> Array:
    """Return one-dimensional or two-dimensional values as floats; float32 stays float32."""
    if values.dtype.kind == "c":
        raise InputError(f"Complex data not supported: {name} holds complex numbers. Pass real ones.")
    if values.dtype.kind == "f" and values.dtype.itemsize in (4, 8):
        return values
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must hold numbers, but {error}. Turn it into numbers first.") from error


def _with_advice(message: str) -> str:
    """Return scikit-learn's message, and what to do about it where it does not say so."""
    for start, advice in (
        ("Found array with 0 sample", "The table is empty: pass at least one row."),
        ("Found array with 0 feature", "The table has no columns: pass at least one."),
        ("The feature names should match", "Pass the columns of the fit, in that order."),
        ("X has ", "Pass the columns of the fit, in that order."),
    ):
        if message.startswith(start):
            return f"{message.rstrip()}\n{advice}" if "\n" in message else f"{message.rstrip('.')}. {advice}"
    return message
