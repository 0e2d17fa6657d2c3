"""A table as a decision tree reads it: numbers, codes of categories, and NaN for what is unknown.

    arrays of numbers    float64, float32 and bytes as they are, others as float64; yes and no are 1 and 0
    frames, objects      text, yes and no, and categorical types are categories, everything else is numbers
    sparse matrices      numbers; what is not stored is 0
    unknown              None, NaN, NaT, NA, and "?" among text or objects

Infinity is refused: no threshold lies beyond it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning

from sixfold.data.checks import check_table, collected, column_names, in_narwhals, require_finite
from sixfold.data.mixed_table import Column, ColumnKinds, Reading, check_mixed, columns_of
from sixfold.errors import InputError, MemorisedColumn, warn

Array = NDArray[Any]

TREE_READING = Reading("categorical_features", booleans=True, unknown=("?",))
NATIVE_DTYPES = (np.float64, np.float32, np.uint8)  # what the native loops read
MANY_CATEGORIES, FEW_ROWS = 20, 5  # more categories than that, with fewer rows for each, identify rows
LARGEST_EXACT = 2.0**53  # up to here float64 holds every whole number


def check_tree_table(
    estimator: Any,
    X: Any,
    reset: bool,
    known: ColumnKinds | None = None,
    categorical: Any = None,
) -> tuple[Any, ColumnKinds | None]:
    """Return a table of numbers and codes, and the kinds of its columns, None where all are of numbers.

    Parameters
    ----------
    estimator : object
        The learner, which remembers the names of the columns.
    X : array, table or sparse matrix
        Dense numbers are not copied; a sparse matrix becomes CSR.
    reset : bool
        Whether this is the training table, from which the learner gets to know its columns.
    known : ColumnKinds, optional
        Those of the training table, where it is not this one and some of its columns are categories.
    categorical : None, "from_dtype", or sequence of names, numbers, or True or False for each column
        Columns that are categories although they hold numbers.
    """
    if isinstance(categorical, str) and categorical == "from_dtype":
        categorical = None
    if sp.issparse(X) and (known is not None or categorical is not None):
        raise InputError("X is sparse, but categories are not. Pass a dense table.")
    X = X if isinstance(X, np.ndarray) else collected(X)
    if known is None and categorical is None and _is_of_numbers(X):
        table = _numbers(estimator, X, reset)
        kinds = None
    else:
        if known is None and not reset:
            known = ColumnKinds((None,) * estimator.n_features_in_)
        table, kinds = check_mixed(estimator, X, known, categorical, reading=TREE_READING)
        kinds = kinds if kinds.categorical.any() else None
    if table.dtype != np.uint8:
        require_finite(table, "X", lambda: column_names(estimator, table.shape[1]), gaps=True)
    if reset:
        _warn_of_merged(X, table, kinds)
        if kinds is not None:
            names = column_names(estimator, table.shape[1])
            _warn_of_numbers_as_text(kinds, names)
            _warn_of_memorised(kinds, names, table.shape[0])
    return table, kinds


def _numbers(estimator: Any, X: Any, reset: bool) -> Any:
    plain = type(X) is np.ndarray and X.ndim == 2 and X.dtype in NATIVE_DTYPES and X.size
    if plain and not hasattr(estimator, "feature_names_in_"):
        # What scikit-learn checks takes as long as growing a tree on a small table.
        if reset:
            estimator.n_features_in_ = X.shape[1]
            return X
        if estimator.n_features_in_ == X.shape[1]:
            return X
    return check_table(estimator, X, reset, also=(np.uint8,))


def _is_of_numbers(X: Any) -> bool:
    """Return whether every column is of numbers, or X is no table at all, which a check will say."""
    if isinstance(X, np.ndarray):
        return X.dtype.kind in "biufc"
    if sp.issparse(X):
        return True
    import narwhals.stable.v1 as nw

    frame = in_narwhals(X)
    if isinstance(frame, nw.DataFrame):
        return all(dtype.is_numeric() and dtype != nw.Decimal for dtype in frame.schema.values())
    try:
        return np.asarray(X).dtype.kind in "biufc"
    except ValueError:  # rows of different lengths
        return True


def _warn_of_merged(X: Any, table: Any, kinds: ColumnKinds | None) -> None:
    """Warn of different whole numbers that are one as float64."""
    for called, (one, other) in merged_numbers(X, table, kinds):
        text = (
            f"{called} holds whole numbers so large that float64 takes different ones, such as {one} and "
            f"{other}, for one. Name the column in categorical_features if they are no quantities, else "
            "subtract a constant first."
        )
        warn(text, DataConversionWarning)


def merged_numbers(X: Any, table: Any, kinds: ColumnKinds | None) -> Iterator[tuple[str, tuple[int, int]]]:
    """Go through the columns that hold different whole numbers that are one as float64, with two of them."""
    if sp.issparse(X) or _is_of_floats(X):
        return
    large = (table >= LARGEST_EXACT).any(axis=0) | (table <= -LARGEST_EXACT).any(axis=0)
    if kinds is not None:
        large &= ~kinds.categorical
    if not large.any():
        return
    columns, names = columns_of(X)
    for j in np.flatnonzero(large):
        column = Column(columns[j], f"Column {names[j]!r} (number {j}, counted from 0)")
        pair = column.merged()
        if pair is not None:
            yield column.called, pair


def _is_of_floats(X: Any) -> bool:
    if isinstance(X, np.ndarray):
        return X.dtype.kind == "f" or X.dtype == np.uint8
    import narwhals.stable.v1 as nw

    frame = in_narwhals(X)
    floats = (nw.Float32, nw.Float64)
    return isinstance(frame, nw.DataFrame) and all(dtype in floats for dtype in frame.schema.values())


def _warn_of_numbers_as_text(kinds: ColumnKinds, names: list[str]) -> None:
    """Warn of columns whose categories can all be read as numbers, where nobody has asked for categories."""
    found = [(j, kinds.categories[j] or ()) for j in kinds.by_values]
    found = [(j, categories) for j, categories in found if _are_numbers_as_text(categories)]
    if not found:
        return
    j, categories = found[0]
    more = f", like {len(found) - 1} more," if len(found) > 1 else ""
    text = (
        f"Column {names[j]!r} (number {j}, counted from 0){more} holds numbers written as text, such as "
        f"{categories[0]!r}, and is taken as categories. Turn it into numbers first, and what is none, such "
        "as '?', into unknown values: pandas.to_numeric(column, errors='coerce') does so, or in Polars "
        "column.cast(polars.Float64, strict=False). If they are no quantities, name it in "
        "categorical_features."
    )
    warn(text, DataConversionWarning)


def _are_numbers_as_text(categories: tuple[Any, ...]) -> bool:
    if not categories or not all(isinstance(one, str) for one in categories):
        return False
    try:
        list(map(float, categories))  # ends at the first that is none
    except ValueError:
        return False
    return True


def _warn_of_memorised(kinds: ColumnKinds, names: list[str], rows: int) -> None:
    """Warn of columns of many categories that have few rows each, on average."""
    for number, categories in enumerate(kinds.categories):
        count = 0 if categories is None else len(categories)
        if count > MANY_CATEGORIES and FEW_ROWS * count > rows:
            text = (
                f"Column {names[number]!r} (number {number}, counted from 0) has {count} categories in "
                f"{rows} rows: a tree that splits by it memorises these rows and knows nothing about others. "
                "Drop the column, group its values, or turn it into numbers if it is a quantity; "
                "categories='binary' helps only in part."
            )
            warn(MemorisedColumn(text))
