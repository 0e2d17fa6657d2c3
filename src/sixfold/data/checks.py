"""The one place that validates what users pass in.

Tables become arrays (:mod:`sixfold.data.arrays`); targets and weights have to fit them, and values have to be
finite where they are computed with. What cannot be used is refused with a sentence that names the column, row
or parameter and says what to do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning

from sixfold.data.arrays import check_table, collected, to_array, to_float
from sixfold.data.blocks import MemoryBlocks
from sixfold.errors import InputError, warn

Array = NDArray[Any]

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
        """Return the rows as blocks."""
        return MemoryBlocks(self.X, self.y, self.weight)

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
