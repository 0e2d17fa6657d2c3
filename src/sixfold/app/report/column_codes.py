"""A mixed table as numbers, column by column: what yardsticks and checks of single columns read.

numbers      as they are, missing is NaN
dates        milliseconds since 1970
categories   0 for the most frequent, 1 for the next; beyond 254 they share one code
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

MOST_CATEGORIES = 254  # HistGradientBoosting takes 255


@dataclass(frozen=True)
class ColumnCodes:
    """A table as float64.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_columns)
        Missing is NaN.
    names : list of str
    is_category : ndarray of bool
    """

    values: Array
    names: list[str]
    is_category: Array


def column_codes(X: Any) -> ColumnCodes:
    """Return a typed Polars frame as numbers."""
    kinds = [kind_of(column) for column in X.iter_columns()]
    values = np.empty((X.height, X.width))
    for j, (column, kind) in enumerate(zip(X.iter_columns(), kinds, strict=True)):
        values[:, j] = _codes(column) if kind == "category" else as_numbers(column)
    return ColumnCodes(values, list(X.columns), np.array([kind == "category" for kind in kinds], dtype=bool))


def kind_of(column: Any) -> str:
    """Return "number", "date" or "category"."""
    return "number" if column.dtype.is_numeric() else "date" if column.dtype.is_temporal() else "category"


def as_numbers(column: Any) -> Array:
    """Return a column of numbers or dates as float64; what is missing or infinite is NaN."""
    import polars as pl

    if column.dtype.is_temporal():
        column = column.cast(pl.Datetime("ms")).dt.timestamp("ms")
    values = column.cast(pl.Float64).to_numpy().copy()
    values[~np.isfinite(values)] = np.nan
    return values


def _codes(column: Any) -> Array:
    import polars as pl

    text = column.cast(pl.String)
    counts = text.drop_nulls().value_counts(name="rows").sort(["rows", text.name], descending=[True, False])
    ordered = counts[text.name].to_list()
    code = {value: float(min(place, MOST_CATEGORIES)) for place, value in enumerate(ordered)}
    return text.replace_strict(code, default=None, return_dtype=pl.Float64).to_numpy().astype(np.float64)
