"""From the columns of a table to numbers on one scale: what linear models, kernels and distances ask for.

numbers      unknown values by the median, then mean 0 and variance 1
dates        as numbers of days, for trees too
categories   a column of 0 and 1 for each, at most 50 of a column; unknown values are a category
text         with few rows for each value, such as names of customers, is left out
sparse       scaled, not centred
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sixfold.data.checks import in_narwhals
from sixfold.data.mixed_table import Column, columns_of
from sixfold.data.tree_table import MANY_CATEGORIES

MOST_CATEGORIES = 50
DAY = 86_400_000.0  # milliseconds


class PlainColumns(TransformerMixin, BaseEstimator):
    """Leave columns out, and turn dates into days and pandas' NA among text into None.

    Parameters
    ----------
    without : tuple of str or int
        The columns of a frame by their names, those of an array by their numbers.
    """

    def __init__(self, without: tuple[Any, ...] = ()) -> None:
        self.without = without

    def fit(self, X: Any, y: Any = None) -> Self:
        """Return the transformer, which has nothing to learn.

        Parameters
        ----------
        X : array or table
        y : ignored
        """
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def transform(self, X: Any) -> Any:
        """Return the table, of the library it is from.

        Parameters
        ----------
        X : array or table
        """
        if not hasattr(X, "columns"):
            return np.delete(np.asarray(X), list(self.without), axis=1)
        frame = in_narwhals(X).drop(list(self.without))
        changed = [_plain(column) for column in frame.iter_columns() if _is_date(column) or _has_na(column)]
        return frame.with_columns(*changed).to_native()


def _is_date(column: Any) -> bool:
    import narwhals.stable.v1 as nw

    return column.dtype in (nw.Datetime, nw.Date, nw.Duration)


def _has_na(column: Any) -> bool:
    """Return whether this is text, or yes and no, with pandas' NA, which has no order."""
    import narwhals.stable.v1 as nw

    kind = column.dtype in (nw.String, nw.Boolean)
    return bool(kind and column.implementation.is_pandas() and column.is_null().any())


def _plain(column: Any) -> Any:
    import narwhals.stable.v1 as nw

    if not _is_date(column):
        native = column.to_native()
        return nw.from_native(native.astype(object).where(native.notna(), None), series_only=True)
    since = column.dt.total_milliseconds() if column.dtype == nw.Duration else column.dt.timestamp("ms")
    return (since.cast(nw.Float64) / DAY).alias(column.name)


def date_columns(X: Any) -> list[str]:
    """Return the names of the columns whose type is one of dates, times or durations."""
    if not hasattr(X, "columns"):
        return []
    return [column.name for column in in_narwhals(X).iter_columns() if _is_date(column)]


def scarce_columns(X: Any, rows_each: int) -> list[tuple[Any, str]]:
    """Return the columns of text with more than 20 values and fewer rows for each, by name or number."""
    if sp.issparse(X) or (not hasattr(X, "columns") and X.dtype.kind not in "OUS"):
        return []
    framed, found = hasattr(X, "columns"), []
    numeric = numeric_columns(X)
    for j, (column, name) in enumerate(zip(*columns_of(X), strict=True)):
        if numeric[j] or (framed and _is_date(column)):
            continue
        count = len(Column(column, f"Column {name!r}").distinct.values)
        if count > MANY_CATEGORIES and rows_each * count > X.shape[0]:
            found.append((name if framed else j, name))
    return found


def encoder(X: Any) -> Any:
    """Return the transformer that suits a table."""
    if sp.issparse(X):
        return StandardScaler(with_mean=False)
    numeric = numeric_columns(X)
    unknown = _has_unknown(X, numeric)
    scale = make_pipeline(SimpleImputer(strategy="median"), StandardScaler()) if unknown else StandardScaler()
    if numeric.all():
        return scale
    one_hot = OneHotEncoder(
        handle_unknown="infrequent_if_exist", max_categories=MOST_CATEGORIES, sparse_output=False
    )
    numbers, categories = np.flatnonzero(numeric).tolist(), np.flatnonzero(~numeric).tolist()
    return ColumnTransformer([("numbers", scale, numbers), ("categories", one_hot, categories)])


def numeric_columns(X: Any) -> Any:
    """Return for each column whether it holds numbers."""
    if hasattr(X, "columns"):
        return np.array([column.dtype.is_numeric() for column in in_narwhals(X).iter_columns()])
    X = np.asarray(X)
    if X.dtype != object:
        return np.full(X.shape[1], X.dtype.kind in "biuf")
    return np.array([_are_numbers(column) for column in X.T])


def _are_numbers(column: Any) -> bool:
    try:
        np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return not any(isinstance(value, str) for value in column)


def _has_unknown(X: Any, numeric: Any) -> bool:
    if hasattr(X, "columns"):
        columns = [column for column, one in zip(in_narwhals(X).iter_columns(), numeric, strict=True) if one]
        return any(bool(np.isnan(column.to_numpy().astype(np.float64)).any()) for column in columns)
    return bool(np.isnan(np.asarray(np.asarray(X)[:, numeric], dtype=np.float64)).any())
