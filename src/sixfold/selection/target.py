"""What is to be predicted: checked, and taken for classes or for numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.data.mixed_table import GOWER
from sixfold.errors import InputError, check_option
from sixfold.selection.parts import class_counts

Array = NDArray[Any]

FEW_VALUES = 20  # whole numbers with at most so many different ones are classes, unless said otherwise


def as_array(values: Any) -> Any:
    """Return a column of any library as an array; None stays None."""
    if values is None:
        return None
    return values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)


def check_table(X: Any, y: Array) -> None:
    """Raise an :class:`InputError` unless the table has columns, and as many rows as there are targets."""
    if len(X.shape) != 2:
        raise InputError(f"X has {len(X.shape)} dimensions: a table has rows and columns.")
    if X.shape[1] == 0:
        raise InputError("X has no columns: there is nothing to predict from.")
    if X.shape[0] != y.shape[0]:
        raise InputError(f"X has {X.shape[0]:,} rows and y {y.shape[0]:,}: each row needs its target.")


def check_target(y: Array) -> None:
    """Raise an :class:`InputError` unless this is one known value for each row."""
    if y.ndim != 1:
        raise InputError(f"y has {y.ndim} dimensions: compare takes one target for each row.")
    if y.size == 0:
        raise InputError("y is empty: there is no row to learn from.")
    if y.dtype.kind in "mM":
        raise InputError("y holds dates or times. Turn them into numbers first, for instance days.")
    if y.dtype.kind == "f":
        missing = np.flatnonzero(~np.isfinite(y))
    else:
        missing = np.flatnonzero([GOWER.is_missing(value) for value in y] if y.dtype == object else [])
    if missing.size:
        more = f" and {missing.size - 1} more" * (missing.size > 1)
        what = "not a finite number" if y.dtype.kind == "f" else "missing"
        raise InputError(f"y is {what} in row {missing[0]}{more} (counted from 0). Leave such rows out.")


def check_variety(y: Array, task: str, what: str) -> None:
    """Raise an :class:`InputError` where nothing can be learnt since all rows agree, or no two of them do."""
    if task == "regression":
        if (y == y[0]).all():
            raise InputError(f"{what} is {y[0]} in every row, so that there is nothing to predict.")
        return
    counts = class_counts(y)
    if len(counts) == 1:
        where = " The rows of the other classes are all in the test part: groups are kept together." * (
            what != "y"
        )
        raise InputError(
            f"{what} is {next(iter(counts))!r} in every row, so that there is nothing to predict.{where}"
        )
    if max(counts.values()) == 1:
        raise InputError(
            f"{what} is different in each of the {y.size:,} rows, so that no class can be learnt. Pass "
            "task='regression' if these are numbers to be predicted."
        )


def task_of(task: str, y: Array) -> str:
    """Return what is asked for: classes or numbers; "auto" goes by the values."""
    check_option("task", task, ("auto", "classification", "regression"))
    if task != "auto":
        return task
    if y.dtype.kind in "OUSb":
        return "classification"
    whole = y.dtype.kind in "iu" or bool((y == np.round(y)).all())
    return "classification" if whole and np.unique(y).size <= FEW_VALUES else "regression"
