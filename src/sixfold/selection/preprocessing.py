"""From the columns of a table to numbers on one scale: what linear models, kernels and distances ask for.

numbers      unknown values by the median, then mean 0 and variance 1
categories   a column of 0 and 1 for each, at most 50 of a column; unknown values are a category
sparse       scaled, not centred
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

MOST_CATEGORIES = 50


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
    names = np.asarray(X.columns) if hasattr(X, "columns") else np.arange(X.shape[1])
    numbers, categories = names[numeric].tolist(), names[~numeric].tolist()
    return ColumnTransformer([("numbers", scale, numbers), ("categories", one_hot, categories)])


def numeric_columns(X: Any) -> Any:
    """Return for each column whether it holds numbers."""
    if hasattr(X, "columns"):
        import narwhals.stable.v1 as nw

        frame = nw.from_native(X, eager_only=True)
        return np.array([frame[name].dtype.is_numeric() for name in frame.columns])
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
        import narwhals.stable.v1 as nw

        frame = nw.from_native(X, eager_only=True)
        names = [name for name, one in zip(frame.columns, numeric, strict=True) if one]
        return any(bool(np.isnan(frame[name].to_numpy().astype(np.float64)).any()) for name in names)
    return bool(np.isnan(np.asarray(np.asarray(X)[:, numeric], dtype=np.float64)).any())
