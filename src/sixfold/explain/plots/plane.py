"""A plane through the space of a table's columns, on which a classifier can be asked everywhere.

Either two columns are the axes and the others stay at their medians (text: at its most frequent value), or
the two principal directions are. For these every column is standardised, z = (x - mean) / deviation, and the
directions are the first two right singular vectors V of Z; a point (s, t) of the plane is the row

    x = mean + deviation * (s V_1 + t V_2),

so that the model is asked in the space that it was fitted on. Rows are drawn where they fall when they are
projected onto the plane; they lie off it by what the other directions hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.errors import InputError, check_option

Array = NDArray[Any]
MOST_NUMBERS = 50_000_000  # of a sparse table that is made dense: 400 MB


@dataclass(frozen=True)
class Plane:
    """A plane, the rows on it, and the way back.

    Attributes
    ----------
    rows : ndarray of shape (rows, 2)
        Where each row falls.
    labels : tuple of str
        What its two axes are.
    table : Table
    pair : tuple of int, or None
        The columns that are the axes; None where directions are.
    base : ndarray of shape (columns,)
        The row at the origin of directions; else what the other columns are held at.
    directions : ndarray of shape (2, columns)
        Empty where two columns are the axes.
    """

    rows: Array
    labels: tuple[str, str]
    table: Table
    pair: tuple[int, int] | None
    base: Array
    directions: Array

    @property
    def exact(self) -> bool:
        """Whether the rows lie on the plane, not only their projections."""
        return self.pair is not None and len(self.table.columns) == 2

    def rows_at(self, points: Array) -> Any:
        """Return the rows that points of the plane stand for, as the kind of table that was given."""
        if self.pair is None:
            return self.table.rebuild(list((self.base + points @ self.directions).T))
        columns = [np.full(len(points), value) for value in self.base]
        for place, j in enumerate(self.pair):
            columns[j] = points[:, place]
        return self.table.rebuild(columns)


@dataclass(frozen=True)
class Table:
    """The columns of a table, and how to make a table of that kind of others."""

    columns: list[Array]
    names: list[str]
    frame: Any  # of narwhals, for a data frame; None for an array
    dtype: Any

    def rebuild(self, columns: list[Array]) -> Any:
        """Return a table with these columns."""
        if self.frame is None:
            return np.column_stack(columns).astype(self.dtype)
        names = self.frame.columns
        made = {name: values.tolist() for name, values in zip(names, columns, strict=True)}
        return nw.from_dict(made, backend=self.frame.implementation).to_native()

    def numbers(self) -> Array:
        """Return the columns as float64; refuse text."""
        text = [name for name, values in zip(self.names, self.columns, strict=True) if not _numeric(values)]
        if text:
            raise InputError(
                f"Column {text[0]!r} is not numeric, so there are no principal directions. Name two numeric "
                "columns to draw, columns=(first, second); the others are held at their middle values."
            )
        return np.column_stack(self.columns).astype(np.float64)


def read_table(X: Any, model: Any) -> Table:
    """Return the columns of X with their names: the frame's, the model's, or x0, x1, ..."""
    if sp.issparse(X):
        if X.shape[0] * X.shape[1] > MOST_NUMBERS:
            raise InputError(f"X is sparse with shape {X.shape}: too large to draw. Pass some of its rows.")
        X = X.toarray()
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        columns = [frame[name].to_numpy() for name in frame.columns]
        return Table(columns, [str(name) for name in frame.columns], frame, None)
    X = np.asarray(X)
    if X.ndim != 2:
        raise InputError(f"X has shape {X.shape}. Pass a table: rows and at least two columns.")
    known = getattr(model, "feature_names_in_", None)
    names = [f"x{j}" for j in range(X.shape[1])] if known is None else [str(name) for name in known]
    if len(names) != X.shape[1]:
        raise InputError(f"X has {X.shape[1]} columns, and the model was fitted on {len(names)}. Pass those.")
    return Table(
        [_own_kind(column) for column in X.T], names, None, X.dtype if X.dtype.kind in "fO" else float
    )


def choose_plane(table: Table, columns: Sequence[Any] | None) -> Plane:
    """Return the plane of two columns that are named, of the two that there are, or of two directions."""
    count = len(table.columns)
    if count < 2:
        raise InputError(f"X has {count} column{'s' * (count != 1)}; a plane needs two.")
    if columns is None and count > 2:
        return _principal(table)
    pair = (0, 1) if columns is None else _pair(table, columns)
    for j in pair:
        if not _numeric(table.columns[j]):
            raise InputError(
                f"Column {table.names[j]!r} is not numeric: a plane needs two columns of numbers."
            )
    base = np.array([_middle(values) for values in table.columns], dtype=object)
    rows = np.column_stack([table.columns[j].astype(np.float64) for j in pair])
    return Plane(rows, (table.names[pair[0]], table.names[pair[1]]), table, pair, base, np.empty((0, count)))


def _pair(table: Table, columns: Sequence[Any]) -> tuple[int, int]:
    if isinstance(columns, str) or len(columns) != 2:
        raise InputError(f"columns={columns!r}: name two columns, for instance columns=(0, 1).")
    found = []
    for column in columns:
        if isinstance(column, str):
            check_option("columns", column, table.names)
            found.append(table.names.index(column))
        elif not -len(table.names) <= column < len(table.names):
            raise InputError(f"columns={columns!r}: X has {len(table.names)} columns, the first is 0.")
        else:
            found.append(int(column) % len(table.names))
    if found[0] == found[1]:
        raise InputError(f"columns={columns!r} names one column twice: a plane needs two.")
    return found[0], found[1]


def _principal(table: Table) -> Plane:
    X = table.numbers()
    if not np.isfinite(X).all():  # unknown values do not pull a row anywhere
        X = np.where(np.isfinite(X), X, [_middle(column) for column in X.T])
    size = np.maximum(np.abs(X).max(axis=0), np.finfo(np.float64).tiny)  # squares of these must not overflow
    mean, deviation = (X / size).mean(axis=0), (X / size).std(axis=0)
    deviation[deviation == 0.0] = 1.0
    Z = (X / size - mean) / deviation
    _, sizes, V = np.linalg.svd(Z, full_matrices=False)
    if len(sizes) < 2 or sizes[1] <= 1e-9 * sizes[0]:
        raise InputError(
            "The rows lie on a line or in a point, which has no two directions. Name two columns."
        )
    # The sign of a direction is free: its largest part is positive, the same on every machine.
    V = V[:2] * np.sign(V[np.arange(2), np.abs(V[:2]).argmax(axis=1)])[:, None]
    share = sizes**2 / (sizes**2).sum()
    labels = [
        f"{which} principal direction of {len(mean)} columns ({part:.0%} of variance)"
        for which, part in zip(("first", "second"), share, strict=False)
    ]
    return Plane(Z @ V.T, (labels[0], labels[1]), table, None, mean * size, V * (deviation * size))


def _own_kind(column: Array) -> Array:
    """Return a column of objects as numbers, if that is what they are."""
    if column.dtype.kind != "O":
        return column
    try:
        return column.astype(np.float64)
    except (TypeError, ValueError):
        return column


def _numeric(values: Array) -> bool:
    return values.dtype.kind in "biuf"


def _middle(values: Array) -> Any:
    """Return the median of numbers, the most frequent value of text."""
    if _numeric(values):
        known = values[np.isfinite(values.astype(np.float64))]
        return float(np.median(known)) if known.size else 0.0
    found, often = np.unique(values[[value is not None for value in values]].astype(str), return_counts=True)
    return str(found[often.argmax()])
