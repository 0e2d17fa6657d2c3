"""From a mixed table to numbers: what linear models, kernels and distances ask for.

    numbers      (x - mean) / standard deviation; missing ones by the median, with a column that says so
    categories   a column of 0 and 1 for each; rare and unseen ones share a column, missing is one of its own
    dates        days, and sine and cosine of the time of day, of the week, of the year
    sparse       x / standard deviation, which leaves zeros zero

Trees and Gower's distance read numbers and categories as they are; ``categories="keep"`` turns only dates
into numbers for them. Everything is learnt in ``fit``, and the output is written block of rows by block of
rows into one array.
"""

from __future__ import annotations

import difflib
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.sparsefuncs import mean_variance_axis, min_max_axis
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from sixfold.data.checks import (
    OVERFLOW,
    check_names,
    check_table,
    collected,
    column_names,
    in_narwhals,
    require_finite,
)
from sixfold.data.encoder.batches import RunningTable, Ways, called, each_batch, require_dense
from sixfold.data.encoder.date_parts import Ranges, days_of, ranges_of, zone_of
from sixfold.data.encoder.encoded_column import (
    EncodedColumn,
    counted_categories,
    encoded_boolean,
    encoded_categories,
    encoded_date,
    encoded_number,
    kind_of,
    read_numbers,
    write,
)
from sixfold.data.encoder.kept_table import kept_column, kept_table
from sixfold.data.encoder.median import NumberStore
from sixfold.data.encoder.spread import describe
from sixfold.data.mixed_table import Column, columns_of, named_places
from sixfold.errors import InputError, check_flag, check_number, check_option

Array = NDArray[Any]

BLOCK = 1 << 19  # numbers that are written before the next rows are read: they stay in the cache
WAYS = ("one-hot", "keep")


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn a table of numbers, categories and dates into numbers on one scale.

    Takes tables of pandas, Polars and Arrow, arrays, and SciPy's sparse matrices. Columns of a table are
    found by their names, in any order; others are ignored. Values may be missing (None, NaN, NA) anywhere.

    Parameters
    ----------
    categories : {"one-hot", "keep"}, default="one-hot"
        "one-hot" writes a column of 0 and 1 for each category. "keep" leaves categories and numbers as they
        are and returns a table of the same library, for trees and Gower's distance: dates become days,
        month, weekday and hour, and the other parameters but ``leave_out`` have no part in it.
    scale : bool, default=True
        Whether numbers and days get mean 0 and variance 1; constant ones become 0.
    missing_indicator : bool, default=True
        Whether a column of numbers or dates that has gaps in the training rows gets a second one that says
        where. The gaps themselves are filled with the median.
    max_categories : int, default=50
        The most columns for the categories of a column; the less frequent ones share the last.
    min_frequency : int, default=2
        Categories with fewer training rows share a column, " is other", with those that were not seen.
    leave_out : sequence of str or int, default=()
        Columns that are not used: names, or numbers counted from 0.

    Attributes
    ----------
    columns_ : tuple of EncodedColumn
        What was learnt of each column of the training table, in its order.
    sources_ : ndarray of int
        For each column of the output the number of the column it comes from.
    dtype_ : str
        "float32" where all numbers of the training table are, else "float64".
    named_ : bool
        Whether the training table had names for its columns.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Weights of rows have no part: mean and deviation are but a choice of units. Without rare categories in the
    training rows there is no column for others, and an unseen one is 0 throughout, as is a missing one that
    was never missing before. Two categories make one column.

    Examples
    --------
    >>> import numpy as np
    >>> from sixfold import TableEncoder
    >>> table = np.array([[30, "Rome"], [None, "Oslo"], [50, "Rome"], [40, "Nice"]] * 2, dtype=object)
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.get_feature_names_out().tolist()
    ['x0', 'x0 is missing', 'x1=Nice', 'x1=Oslo', 'x1=Rome']
    >>> encoder.transform(table[:2]).round(2).tolist()
    [[-1.41, 0.0, 0.0, 0.0, 1.0], [0.0, 1.0, 0.0, 1.0, 0.0]]
    >>> encoder.source_of("x1=Oslo")
    ('x1', '=Oslo')
    """

    def __init__(
        self,
        *,
        categories: str = "one-hot",
        scale: bool = True,
        missing_indicator: bool = True,
        max_categories: int = 50,
        min_frequency: int = 2,
        leave_out: Any = (),
    ) -> None:
        self.categories = categories
        self.scale = scale
        self.missing_indicator = missing_indicator
        self.max_categories = max_categories
        self.min_frequency = min_frequency
        self.leave_out = leave_out

    # -- what is learnt ------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn medians, means, deviations and categories.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
        y : ignored
        """
        self._check_parameters()
        X = _given(X)
        if sp.issparse(X):
            self._fit_sparse(X)
            return self._ready()
        columns = self._checked(X)
        out = named_places(self.leave_out, list(columns), "leave_out")
        used = {name: one for j, (name, one) in enumerate(columns.items()) if j not in out}
        one_hot = self.categories == "one-hot"
        learnt = self._learn(used) if one_hot else map(kept_column, used, used.values())
        known = dict(zip(used, learnt, strict=True))
        self.columns_ = tuple(known.get(name, EncodedColumn(name, "left out")) for name in columns)
        numbers = [used[name] for name, one in known.items() if one.kind == "number"]
        self.dtype_ = "float32" if _all_float32(numbers) else "float64"
        return self._ready()

    def fit_batches(self, batches: Iterable[Any], *, folder: Any = None) -> Self:
        """Learn the same of a table that comes in batches of rows, in one pass.

        The encoder is that of :meth:`fit` on all rows, number by number. What a median takes is kept in a
        temporary file, 8 bytes for each number, date and duration; of a column of categories every value is
        kept in memory, once.

        Parameters
        ----------
        batches : iterable of arrays or tables
            With the same columns, those of tables in any order. Any of them may have no rows, and columns
            that are all missing, whatever their type.
        folder : str or path, default=None
            Where the temporary file is; None takes the system's place for such.

        Examples
        --------
        >>> import pandas as pd
        >>> from sixfold import TableEncoder
        >>> table = pd.DataFrame({"age": [30, 41, None, 52], "city": ["Oslo", "Rome", "Rome", "Oslo"]})
        >>> encoder = TableEncoder().fit_batches(table[row : row + 1] for row in range(4))
        >>> encoder.columns_ == TableEncoder().fit(table).columns_
        True
        """
        self._check_parameters()
        ways = Ways(
            self.categories == "keep",
            self.scale,
            self.missing_indicator,
            self.max_categories,
            self.min_frequency,
        )
        running: RunningTable | None = None
        with closing(NumberStore(folder)) as store:
            for batch in each_batch(batches):
                X = _given(batch)
                if running is None:
                    columns, names = columns_of(X)
                    if not columns:
                        check_table(self, _shape_alone(X), reset=True)  # says what is wrong
                    check_names(self, X, reset=True)
                    self.n_features_in_, self.named_ = len(columns), hasattr(X, "columns")
                    out = named_places(self.leave_out, names, "leave_out")
                    running = RunningTable(names, self.named_, out, ways, store)
                running.add(X)
            if running is None or running.rows == 0:
                raise InputError(
                    "The batches have no rows: there is nothing to learn. Pass one with rows at least."
                )
            self.columns_ = running.columns()
        self.dtype_ = "float32" if running.float32 else "float64"
        return self._ready()

    def _ready(self) -> Self:
        """Finish a fit."""
        if not any(one.outputs for one in self.columns_):
            raise InputError(f"leave_out={self.leave_out!r:.100} leaves no column. Name fewer.")
        counts = [len(one.outputs) for one in self.columns_]
        self.sources_ = np.repeat(np.arange(len(counts)), counts)
        return self

    def _check_parameters(self) -> None:
        check_option("categories", self.categories, WAYS)
        check_flag("scale", self.scale)
        check_flag("missing_indicator", self.missing_indicator)
        check_number("max_categories", self.max_categories, at_least=2, whole=True)
        check_number("min_frequency", self.min_frequency, at_least=1, whole=True)

    def _checked(self, X: Any) -> dict[Any, Column]:
        """Return the columns of the training table by their names."""
        columns, names = columns_of(X)
        if not columns or not len(columns[0]):
            check_table(self, _shape_alone(X), reset=True)  # says what is wrong
        check_names(self, X, reset=True)
        self.n_features_in_, self.named_ = len(columns), hasattr(X, "columns")
        return {
            name: Column(given, called(name, j))
            for j, (name, given) in enumerate(zip(names, columns, strict=True))
        }

    def _learn(self, columns: dict[Any, Column]) -> Iterator[EncodedColumn]:
        """Yield how columns are written as numbers."""
        kinds = {name: kind_of(column) for name, column in columns.items()}
        numbers = [columns[name] for name, kind in kinds.items() if kind == "number"]
        spreads = describe(read_numbers(Column(one.given, one.called)) for one in numbers)  # none is kept
        options = (self.scale, self.missing_indicator)
        for name, column in columns.items():
            if kinds[name] == "number":
                yield encoded_number(name, next(spreads), *options)
            elif kinds[name] == "boolean":
                gaps = bool(np.isnan(read_numbers(column)).any())
                yield encoded_boolean(name, gaps, self.missing_indicator)
            elif kinds[name] == "category":
                rows, missing = counted_categories(column.distinct)
                order = list(rows) if column.distinct.ordered else sorted(rows)
                limits = (self.max_categories, self.min_frequency)
                yield encoded_categories(name, rows, missing, order, *limits)
            else:
                zone = zone_of(column)
                days = days_of(column, kinds[name] == "duration", zone)
                ranges = ranges_of(days, cyclic=True) if kinds[name] == "date" else Ranges()
                yield encoded_date(name, kinds[name], next(describe([days])), ranges, zone, *options)

    def _fit_sparse(self, X: Any) -> None:
        X = check_table(self, X, reset=True)
        names = column_names(self, X.shape[1])
        require_finite(X, "X", lambda: names)
        scale = np.ones(X.shape[1])
        if self.scale and self.categories == "one-hot":
            with np.errstate(over="ignore", invalid="ignore"):
                scale = np.sqrt(mean_variance_axis(X, axis=0)[1].astype(np.float64))
            low, high = min_max_axis(X, axis=0)
            scale[low == high] = 0.0
            if not np.isfinite(scale).all():
                raise InputError(OVERFLOW)
        out = named_places(self.leave_out, names, "leave_out")
        self.columns_ = tuple(
            EncodedColumn(name, "left out")
            if j in out
            else EncodedColumn(name, "number", ("",), scale=float(scale[j]))
            for j, name in enumerate(names)
        )
        self.named_, self.dtype_ = False, str(X.dtype)

    # -- what is written -----------------------------------------------------------------------------------

    def transform(self, X: Any) -> Any:
        """Return the numbers of each row: an array, a CSR array for a sparse matrix, or the table kept.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
        """
        check_is_fitted(self, "columns_")
        X = _given(X)
        if sp.issparse(X):
            X = check_table(self, X, reset=False)
            if all(one.center == 0.0 and one.outputs in ((), ("",)) for one in self.columns_):
                return self._scaled(X)
            X = X.toarray()
        columns = self._asked(X)
        if not _rows_of(columns):
            raise InputError("X has 0 rows: there is nothing to transform. Pass at least one row.")
        return self._written(X, columns, None)

    def transform_batch(self, X: Any, *, first_row: int = 0, out: Array | None = None) -> Any:
        """Return the numbers of some rows of a longer table, of which there may be none.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
        first_row : int, default=0
            The number of its first row: messages count from there.
        out : ndarray of shape (n_samples, n_features_out), default=None
            Of floats, to be written to and returned.
        """
        check_is_fitted(self, "columns_")
        X = _given(X)
        require_dense(X)
        columns = self._asked(X, first_row, none=True)
        if out is not None:
            shape = (_rows_of(columns), self.sources_.size)
            if self.categories != "one-hot":
                raise InputError("out is for numbers, but with categories='keep' a table is returned.")
            if not isinstance(out, np.ndarray) or out.shape != shape or out.dtype.kind != "f":
                raise InputError(f"out is no array of floats of shape {shape}. Pass one, or None.")
        return self._written(X, columns, out)

    def _asked(self, X: Any, first_row: int = 0, none: bool = False) -> list[Column | None]:
        """Return the columns of a table in the order of the training table, None for one that is left out.

        With ``none`` it may have no rows.
        """
        if self.named_ and hasattr(X, "columns"):
            there = {one.name: one for one in in_narwhals(X).iter_columns()}
            absent = [one.name for one in self.columns_ if one.outputs and one.name not in there]
            if absent:
                known = {one.name for one in self.columns_}
                raise InputError(_absent_columns(absent, [name for name in there if name not in known]))
            given = [there[one.name] if one.outputs else None for one in self.columns_]
        else:
            found, _ = columns_of(X)
            if len(found) != self.n_features_in_ or not (len(found[0]) or none):
                check_table(self, _shape_alone(X), reset=False)  # says what is wrong
            check_names(self, X, reset=False)
            given = [
                column if one.outputs else None for one, column in zip(self.columns_, found, strict=True)
            ]
        return [
            None if one is None else Column(one, called(self.columns_[j].name, j), first_row)
            for j, one in enumerate(given)
        ]

    def _written(self, X: Any, columns: list[Column | None], out: Array | None) -> Any:
        """Return what becomes of the columns of a table."""
        if self.categories == "keep":
            return kept_table(X, self.columns_, columns, self._names())
        if out is not None and out.dtype == self.dtype_:
            self._write_rows(columns, out)
            return out
        result = np.empty((_rows_of(columns), self.sources_.size), dtype=self.dtype_)
        self._write_rows(columns, result)
        if out is None:
            return result
        out[...] = result  # the same numbers, whatever holds them
        return out

    def _write_rows(self, columns: list[Column | None], out: Array) -> None:
        """Write the numbers; of the columns' values a block of rows is read at a time."""
        used = [
            (encoded, one, _in_memory(one))
            for encoded, one in zip(self.columns_, columns, strict=True)
            if one is not None
        ]
        rows = max(1024, BLOCK // out.shape[1])
        for start in range(0, len(out), rows):
            part, place = slice(start, start + rows), 0
            for encoded, whole, values in used:
                width = len(encoded.outputs)
                given = whole.given if len(out) <= rows else values[part]
                block = Column(given, whole.called, whole.first_row + start)
                write(encoded, block, out[part, place : place + width])
                place += width

    def _scaled(self, X: Any) -> Any:
        """Return a sparse matrix with its columns divided."""
        require_finite(X, "X", lambda: column_names(self, X.shape[1]))
        used = np.array([bool(one.outputs) for one in self.columns_])
        X = X if used.all() else X[:, np.flatnonzero(used)]
        scale = np.array([one.scale for one in self.columns_])[used]
        if (scale == 1.0).all():
            return X
        factor = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale != 0)
        result = X.copy()
        result.data = (X.data * factor[X.indices]).astype(X.dtype, copy=False)
        return result

    # -- names ---------------------------------------------------------------------------------------------

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the columns of the output, no two of them the same.

        Parameters
        ----------
        input_features : sequence of str, optional
            What to call the columns of an array; a table has names already.
        """
        check_is_fitted(self, "columns_")
        given = None if input_features is None else _check_feature_names_in(self, input_features)
        return np.array(self._names(given), dtype=object)

    def source_of(self, name: str) -> tuple[Any, str]:
        """Return the column that a column of the output comes from, and which part of it that is.

        The part is empty for a number, "=Paris" for a category, " is missing", " is other", ": days", ...

        Parameters
        ----------
        name : str
            One of :meth:`get_feature_names_out`.
        """
        check_is_fitted(self, "columns_")
        for own, source, part in zip(self._names(), self.sources_, self._parts(), strict=True):
            if own == name:
                return self.columns_[source].name, part
        near = difflib.get_close_matches(str(name), self._names(), n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise InputError(f"{name!r} is none of the columns of the output.{hint}")

    def _parts(self) -> list[str]:
        return [output for one in self.columns_ for output in one.outputs]

    def _names(self, given: Any = None) -> list[str]:
        """Return names that are made of the column and the part; those that would be equal have quotes."""
        columns = [str(one.name) for one in self.columns_] if given is None else list(map(str, given))
        own = [columns[source] for source in self.sources_]
        parts = self._parts()
        names = [column + part for column, part in zip(own, parts, strict=True)]
        count = Counter(names)
        twice = [repr(column) + part for column, part in zip(own, parts, strict=True)]
        names = [name if count[name] == 1 else quoted for name, quoted in zip(names, twice, strict=True)]
        return _numbered(names)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "sources_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _given(X: Any) -> Any:
    """Return a table in memory; what is masked is missing."""
    if isinstance(X, np.ma.MaskedArray):
        return X.filled(None) if X.dtype == object else np.ma.filled(X.astype(np.float64), np.nan)
    pa = sys.modules.get("pyarrow")
    if pa is not None and isinstance(X, pa.RecordBatch):  # of which narwhals knows nothing
        return pa.Table.from_batches([X])
    return collected(X)


def _rows_of(columns: list[Column | None]) -> int:
    return next(len(one.given) for one in columns if one is not None)


def _in_memory(column: Column) -> Any:
    """Return a column as an array where it is one already, which is quicker to take rows from."""
    if column.framed and column.given.dtype.is_float() and not column.given.null_count():
        values = column.given.to_numpy()
        if isinstance(values, np.ndarray) and not values.flags.owndata:
            return values
    return column.given


def _shape_alone(X: Any) -> Any:
    """Return X, or for a table an array of its shape, since text is not what is wrong with it."""
    return np.empty(X.shape) if hasattr(X, "columns") else X


def _all_float32(columns: list[Column]) -> bool:
    import narwhals.stable.v1 as nw

    float32 = [one.given.dtype == (nw.Float32 if one.framed else np.float32) for one in columns]
    return bool(float32) and all(float32)


def _absent_columns(absent: list[Any], others: list[Any]) -> str:
    """Return the sentence for columns that a table does not have, with the nearest it has."""
    shown = ", ".join(map(repr, absent[:5])) + f" and {len(absent) - 5} more" * (len(absent) > 5)
    near = difflib.get_close_matches(str(absent[0]), list(map(str, others)), n=1, cutoff=0.5)
    hint = f" Is {near[0]!r} meant to be {absent[0]!r}?" if near else ""
    plural = "s" * (len(absent) > 1)
    return (
        f"The table has no column{plural} {shown}, which the training table had.{hint} Pass all columns of "
        "the fit, in any order."
    )


def _numbered(names: list[str]) -> list[str]:
    """Return the names with a number behind those that were there before."""
    taken: set[str] = set()
    result = []
    for name in names:
        new, number = name, 1
        while new in taken or (new != name and new in names):
            number += 1
            new = f"{name} ({number})"
        taken.add(new)
        result.append(new)
    return result
