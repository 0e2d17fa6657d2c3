"""The few columns that a solver works on while all others wait, next to each other in memory.

Columns are named by their numbers in the table; -1 is a column of ones, for the intercept. With
a_ij = root[i, group_j] (x_ij - m_j) there are

    slopes(V)                         sum_i V_ki (x_ij - m_j)      for every column j of the set
    combine(ids, w)                   sum_j w_j (x_ij - m_j)       for every row i
    gram_rows(root, group, ids, k)    sum_i a_ij a_il              for j in ids[k:], l in ids
    residuals(ids, weight)            for coordinate descent on residuals weighted by row

A dense table in column order is read where it is. Of one in row order the columns are copied as the set
grows, until the set is more than an eighth of it: from then on it is read where it is, too. m is zero for
a sparse table, whose zeros must stay zeros.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.solvers.l1.columns import (
    Columns,
    DenseColumns,
    DenseResiduals,
    Residuals,
    SparseColumns,
    SparseResiduals,
    weighted_gram_rows,
)

Array = NDArray[Any]

# The largest part of a dense table that is copied.
COPIED = 0.125
# Columns up to which a Gram matrix is cheaper than the passes over residuals that it saves. Of a sparse table
# it is so while there are few entries a row, or few columns, or where the passes turn out to be many.
MOST_GRAM = 2048
MOST_ENTRIES = 24.0
SMALL_GRAM = 128
# Entries of a Gram matrix for each of the table's: where columns have few entries, a pass over residuals is
# less than an update of the Gram's slopes. 2,000 x 2,000 with 20 entries a column: 20 ms instead of 40.
MOST_FILLED = 8


class WorkingColumns(ABC):
    """Some columns of a table.

    Attributes
    ----------
    ids : ndarray of int64
        Their numbers in the table, in the order in which they were added.
    place : ndarray of int64
        Where in ``ids`` each column of the table is; -1 where it is not.
    """

    def __init__(self, n_columns: int) -> None:
        self.ids = np.empty(0, dtype=np.int64)
        # The last entry is for column -1.
        self.place = np.full(n_columns + 1, -1, dtype=np.int64)

    def grow(self, ids: Array) -> None:
        """Add those of these columns that are not in the set."""
        fresh = np.unique(ids[self.place[ids] < 0])
        if len(fresh) > 0:
            self.place[fresh] = len(self.ids) + np.arange(len(fresh))
            self.ids = np.concatenate([self.ids, fresh])
            self._fetch(fresh)

    @property
    @abstractmethod
    def table_mean(self) -> Array:
        """Return m of every column of the table."""

    @abstractmethod
    def _fetch(self, fresh: Array) -> None:
        """Get hold of columns that were added to ``ids``."""

    @abstractmethod
    def slopes(self, V: Array, budget: Budget) -> Array:
        """Return sum_i V_ki (x_ij - m_j), column ``ids[j]`` of the table at j."""

    @abstractmethod
    def combine(self, ids: Array, w: Array, budget: Budget) -> Array:
        """Return sum_j w_j (x_ij - m_j)."""

    @abstractmethod
    def gram_rows(self, root: Array, group: Array, ids: Array, old: int, budget: Budget) -> Array:
        """Return the rows of ``ids[old:]`` of the Gram matrix of ``ids``."""

    @abstractmethod
    def gram_pays(self, ids: Array, slow: bool) -> bool:
        """Return whether a Gram matrix is cheaper than passes over residuals, which may have been slow."""

    @abstractmethod
    def residuals(self, ids: Array, weight: Array, centred: bool) -> Residuals:
        """Return some of the columns, for rows whose weights add up to one."""


def make_working_columns(columns: Columns) -> WorkingColumns:
    """Return an empty set of columns of this table."""
    if isinstance(columns, SparseColumns):
        return _SparseWorkingColumns(columns)
    assert isinstance(columns, DenseColumns)
    return _DenseWorkingColumns(columns)


class _DenseWorkingColumns(WorkingColumns):
    """Columns read where they are if each is contiguous; else a copy, unless the set is large."""

    def __init__(self, columns: DenseColumns) -> None:
        super().__init__(columns.X.shape[1])
        self.table = columns
        self.by_rows = columns.X.strides[1] == columns.X.itemsize
        self.X = columns.X[:, :0] if self.by_rows else columns.X

    @property
    def table_mean(self) -> Array:
        return self.table.mean

    @property
    def _whole(self) -> bool:
        return self.X is self.table.X

    def _fetch(self, fresh: Array) -> None:
        if self._whole:
            return
        if len(self.ids) > COPIED * len(self.table.mean):
            self.X = self.table.X
        else:
            # Columns are rows of the transpose, and are copied one after the other.
            self.X = np.concatenate([self.X.T, self.table.X.T[fresh]]).T

    def _at(self, ids: Array) -> Array:
        """Return where these columns are in what is read."""
        return ids if self._whole else self.place[ids]

    def slopes(self, V: Array, budget: Budget) -> Array:
        limits = (budget.seconds_left, budget.flag)
        mean = self.table.mean
        if self._whole and self.by_rows:
            out = np.empty((V.shape[0], len(mean)))
            budget.check(core.correlations(self.X, None, mean, V, out, *limits))
            return out[:, self.ids]
        out = np.empty((V.shape[0], len(self.ids)))
        budget.check(core.correlations(self.X, self._at(self.ids), mean[self.ids], V, out, *limits))
        return out

    def combine(self, ids: Array, w: Array, budget: Budget) -> Array:
        out = np.empty(self.X.shape[0])
        mean, limits = self.table.mean[ids], (budget.seconds_left, budget.flag)
        budget.check(core.combination(self.X, self._at(ids), mean, w, out, *limits))
        return out

    def gram_rows(self, root: Array, group: Array, ids: Array, old: int, budget: Budget) -> Array:
        shift = np.where(ids < 0, 0.0, self.table.mean[ids])
        return weighted_gram_rows(self.X, root, group, self._at(ids), old, shift, budget)

    def gram_pays(self, ids: Array, slow: bool) -> bool:
        return len(ids) <= MOST_GRAM

    def residuals(self, ids: Array, weight: Array, centred: bool) -> Residuals:
        X = np.asfortranarray(self.X[:, self._at(ids)])
        mean = self.table.mean[ids]
        if centred:
            mean = mean + self.slopes(weight[None], Budget())[0, self.place[ids]]
        return DenseResiduals(X, weight, mean)


class _SparseWorkingColumns(WorkingColumns):
    def __init__(self, columns: SparseColumns) -> None:
        super().__init__(columns.X.shape[1])
        self.table = columns.X
        self.ones = sp.csc_array(np.ones((columns.X.shape[0], 1), dtype=columns.X.dtype))
        self.X = sp.csc_array(columns.X[:, :0])
        self._no_mean = np.zeros(columns.X.shape[1])

    @property
    def table_mean(self) -> Array:
        return self._no_mean

    def _fetch(self, fresh: Array) -> None:
        self.X = sp.csc_array(sp.hstack([self.X, self.table[:, fresh]], format="csc"))

    def slopes(self, V: Array, budget: Budget) -> Array:
        return np.asarray(V @ self.X, dtype=np.float64)

    def combine(self, ids: Array, w: Array, budget: Budget) -> Array:
        weights = np.zeros(self.X.shape[1])
        np.add.at(weights, self.place[ids], w)
        return np.asarray(self.X @ weights, dtype=np.float64)

    def gram_rows(self, root: Array, group: Array, ids: Array, old: int, budget: Budget) -> Array:
        X = sp.hstack([self.X, self.ones], format="csc")[:, self.place[ids]]
        a = sp.csc_array(X, dtype=np.float64)
        a.data *= root[a.indices, np.repeat(group, np.diff(a.indptr))]
        return np.ascontiguousarray((a[:, old:].T @ a).toarray())

    def gram_pays(self, ids: Array, slow: bool) -> bool:
        if slow or len(ids) <= SMALL_GRAM:
            return len(ids) <= MOST_GRAM
        entries = np.diff(self.table.indptr)[ids].sum()
        few = entries <= MOST_ENTRIES * self.table.shape[0] and len(ids) ** 2 <= MOST_FILLED * entries
        return bool(few) and len(ids) <= MOST_GRAM

    def residuals(self, ids: Array, weight: Array, centred: bool) -> Residuals:
        X = self.X[:, self.place[ids]]
        mean = np.asarray(weight @ X, dtype=np.float64) if centred else np.zeros(len(ids))
        return SparseResiduals(X, weight, mean)
