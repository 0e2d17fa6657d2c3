"""A table as a decision tree reads it: numbers, codes of categories, and NaN for what is unknown.

    arrays of numbers    float64, float32 and bytes as they are, others as float64; yes and no are 1 and 0
    frames, objects      text, yes and no, and categorical types are categories, everything else is numbers
    sparse matrices      numbers; what is not stored is 0
    unknown              None, NaN, NaT, NA, and "?" in a column of text

Infinity is refused: no threshold lies beyond it.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.data.checks import check_table, collected, column_names, require_finite
from sixfold.data.table import ColumnKinds, Reading, check_mixed
from sixfold.errors import InputError, MemorisedColumn

Array = NDArray[Any]

TREE = Reading("categorical_features", booleans=True, unknown=("?",))
KEPT = (np.float64, np.float32, np.uint8)  # what the native loops read
MANY = 1000  # categories; with so many, and fewer than two rows for each, a column identifies rows


def check_tree_table(
    estimator: Any, X: Any, reset: bool, known: ColumnKinds | None = None, categorical: Any = None
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
    X = collected(X)
    if known is None and categorical is None and _is_of_numbers(X):
        table = _numbers(estimator, X, reset)
        kinds = None
    else:
        if known is None and not reset:
            known = ColumnKinds((None,) * estimator.n_features_in_)
        table, kinds = check_mixed(estimator, X, known, categorical, reading=TREE)
        kinds = kinds if kinds.categorical.any() else None
    if table.dtype != np.uint8:
        require_finite(table, "X", lambda: column_names(estimator, table.shape[1]), gaps=True)
    return table, kinds


def _numbers(estimator: Any, X: Any, reset: bool) -> Any:
    plain = type(X) is np.ndarray and X.ndim == 2 and X.dtype in KEPT and X.size
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

    frame: Any = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return all(dtype.is_numeric() and dtype != nw.Decimal for dtype in frame.schema.values())
    try:
        return np.asarray(X).dtype.kind in "biufc"
    except ValueError:  # rows of different lengths
        return True


def warn_of_memorised(kinds: ColumnKinds, names: list[str], rows: int, stacklevel: int) -> None:
    """Warn of columns whose categories have hardly more than a row each."""
    for number, categories in enumerate(kinds.categories):
        count = 0 if categories is None else len(categories)
        if count >= MANY and 2 * count > rows:
            text = (
                f"Column {names[number]!r} (number {number}, counted from 0) has {count} categories in "
                f"{rows} rows: a tree that splits by it memorises these rows and knows nothing about others. "
                "Drop the column, group its categories, or turn it into numbers if it is a quantity."
            )
            warnings.warn(MemorisedColumn(text), stacklevel=stacklevel + 1)
