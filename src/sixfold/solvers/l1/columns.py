"""The columns of a table as coordinate-wise solvers use them: centred, weighted, hardly copied.

With q_i = weight_i / sum_k weight_k and m_j = sum_i q_i x_ij (zero without intercept) there are

    slopes(V)           sum_i V_ki q_i (x_ij - m_j)                      for every column j
    slopes_of(v)        sum_i v_i (x_ij - m_j)
    combine(w)          sum_j w_j (x_ij - m_j)                           for every row i
    gram_rows(ids, k)   sum_i q_i (x_ij - m_j) (x_il - m_l)              for j in ids[k:], l in ids
    take(ids)           some columns, for coordinate descent on the residuals

Dense tables are read where they are, in either memory order. A sparse table is turned once into
compressed columns (as large as itself); its centring stays implicit, since slopes of residuals
that sum to zero need none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget

Array = NDArray[Any]

# Columns squared at a time: temporaries stay small beside the table.
SQUARED_AT_ONCE = 64
# A variance below this part of the mean square is rounding: the column is constant.
CONSTANT_COLUMN = 1e-13


class Columns(ABC):
    """The columns of one table.

    Attributes
    ----------
    q : ndarray of shape (rows,)
        The normalized weights.
    mean : ndarray of shape (columns,)
        m above.
    """

    q: Array
    mean: Array

    @abstractmethod
    def start(self, V: Array, budget: Budget) -> Array:
        """Find the means and return the slopes of V; called once, before everything else."""

    @abstractmethod
    def slopes(self, V: Array, budget: Budget) -> Array:
        """Return sum_i V_ki q_i (x_ij - m_j), where the rows of V sum to zero under q."""

    @abstractmethod
    def slopes_of(self, v: Array, budget: Budget) -> Array:
        """Return sum_i v_i (x_ij - m_j), where v sums to zero if the columns are centred."""

    @abstractmethod
    def combine(self, w: Array, budget: Budget) -> Array:
        """Return sum_j w_j (x_ij - m_j)."""

    @abstractmethod
    def gram_rows(self, ids: Array, old: int, budget: Budget) -> Array:
        """Return the rows of ``ids[old:]`` of the Gram matrix of the columns ``ids``."""

    @abstractmethod
    def curvature(self) -> Array:
        """Return the variance of every column: sum_i q_i (x_ij - m_j)^2."""

    @abstractmethod
    def weighted(self, ids: Array, root: Array) -> Array:
        """Return root_i (x_ij - m_j) for the columns ``ids``, a float64 array of its own."""

    @abstractmethod
    def take(self, ids: Array) -> Residuals:
        """Return some columns, ready for coordinate descent on the residuals."""


class Residuals(ABC):
    """Some columns, on which coordinate descent keeps residuals up to date.

    Attributes
    ----------
    mean, curvature : ndarray of shape (columns,)
        What is taken off each column, and its variance about that.
    """

    mean: Array
    curvature: Array

    @abstractmethod
    def descend(self, v: Array, w: Array, rule: tuple[Any, ...], budget: Budget) -> bool:
        """Lower the objective in w, with residuals v times q at w; true if the budget did not end.

        The residuals sum to zero under q where the columns are centred.
        """

    @abstractmethod
    def slopes(self, v: Array) -> Array:
        """Return sum_i v_i (x_ij - m_j), where v sums to zero if the columns are centred."""


def make_columns(X: Any, weight: Array | None, centred: bool) -> Columns:
    """Return the columns of a dense or CSR table."""
    n = X.shape[0]
    q = (
        np.full(n, 1.0 / n)
        if weight is None
        else np.asarray(weight, np.float64) / weight.sum(dtype=np.float64)
    )
    return (SparseColumns if sp.issparse(X) else DenseColumns)(X, q, centred)


class DenseColumns(Columns):
    """Columns of an array of either memory order; one contiguous along no axis is copied."""

    def __init__(self, X: Array, q: Array, centred: bool) -> None:
        self.X = X if X.itemsize in X.strides else np.ascontiguousarray(X)
        self.q, self.centred = q, centred
        self.mean = np.zeros(X.shape[1])

    def start(self, V: Array, budget: Budget) -> Array:
        """Find the means and the slopes in one pass over the table."""
        if not self.centred:
            return self._correlate(V * self.q, budget)
        # Differences to a row of the table are exactly zero for a constant column.
        first = np.asarray(self.X[int(np.argmax(self.q > 0))], dtype=np.float64)
        found = self._correlate(np.vstack([V * self.q, self.q]), budget, first)
        self.mean = first + found[-1]
        return found[:-1]

    def slopes(self, V: Array, budget: Budget) -> Array:
        """Return sum_i V_ki q_i (x_ij - m_j)."""
        return self._correlate(V * self.q, budget, self.mean)

    def slopes_of(self, v: Array, budget: Budget) -> Array:
        """Return sum_i v_i (x_ij - m_j)."""
        return self._correlate(v[None], budget, self.mean)[0]

    def _correlate(self, V: Array, budget: Budget, shift: Array | None = None) -> Array:
        d = self.X.shape[1]
        out = np.empty((V.shape[0], d))
        shift = np.zeros(d) if shift is None else shift
        budget.check(core.correlations(self.X, None, shift, V, out, budget.seconds_left, budget.flag))
        return out

    def combine(self, w: Array, budget: Budget) -> Array:
        """Return sum_j w_j (x_ij - m_j), reading the columns with a weight only."""
        used = np.flatnonzero(w)
        out = np.empty(self.X.shape[0])
        budget.check(
            core.combination(self.X, used, self.mean[used], w[used], out, budget.seconds_left, budget.flag)
        )
        return out

    def gram_rows(self, ids: Array, old: int, budget: Budget) -> Array:
        """Return rows of the Gram matrix."""
        root, group = np.sqrt(self.q)[:, None], np.zeros(len(ids), dtype=np.int64)
        return weighted_gram_rows(self.X, root, group, ids, old, self.mean[ids], budget)

    def curvature(self) -> Array:
        """Return the variance of every column."""
        return _variances(self.X, self.q, self.mean)

    def weighted(self, ids: Array, root: Array) -> Array:
        """Return root_i (x_ij - m_j)."""
        chosen = self.X if len(ids) == self.X.shape[1] else self.X[:, ids]
        columns = np.subtract(chosen, self.mean[ids], dtype=np.float64)
        columns *= root[:, None]
        return columns

    def take(self, ids: Array) -> Residuals:
        """Return a copy of some columns; all columns of a table in column order are not copied."""
        whole = len(ids) == self.X.shape[1] and self.X.strides[0] == self.X.itemsize
        return DenseResiduals(self.X if whole else np.asfortranarray(self.X[:, ids]), self.q, self.mean[ids])


class DenseResiduals(Residuals):
    """Columns of an array in column order."""

    def __init__(self, X: Array, q: Array, mean: Array) -> None:
        self.X, self.q, self.mean = X, q, mean
        self.curvature = _variances(X, q, mean)

    def slopes(self, v: Array) -> Array:
        """Return sum_i v_i (x_ij - m_j)."""
        out = np.empty((1, len(self.mean)))
        core.correlations(self.X, None, self.mean, v[None], out, np.inf, np.zeros(1, dtype=np.int32))
        return out[0]

    def descend(self, v: Array, w: Array, rule: tuple[Any, ...], budget: Budget) -> bool:
        """Lower the objective in w."""
        finished: bool
        finished, _ = core.descend_columns(
            self.X, self.q, self.mean, self.curvature, v, w, *rule, budget.seconds_left, budget.flag
        )
        return finished


class SparseColumns(Columns):
    """Columns of a CSR table, as compressed columns."""

    def __init__(self, X: Any, q: Array, centred: bool) -> None:
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        self.X = sp.csc_array(X)
        self.q, self.centred = q, centred
        self.mean = np.zeros(X.shape[1])
        self.constant = np.zeros(X.shape[1], dtype=bool)

    def start(self, V: Array, budget: Budget) -> Array:
        """Find the means and the slopes."""
        if self.centred:
            self.mean = np.asarray(self.q @ self.X, dtype=np.float64)
            square = _mean_squares(self.X, self.q)
            self.constant = square - self.mean**2 <= CONSTANT_COLUMN * square
        return self.slopes(V, budget)

    def slopes(self, V: Array, budget: Budget) -> Array:
        """Return sum_i V_ki q_i x_ij: the rows of V sum to zero under q wherever m is not zero."""
        slopes = np.asarray((V * self.q) @ self.X, dtype=np.float64)
        slopes[:, self.constant] = 0.0
        return slopes

    def slopes_of(self, v: Array, budget: Budget) -> Array:
        """Return sum_i v_i x_ij."""
        slopes = np.asarray(v @ self.X, dtype=np.float64)
        slopes[self.constant] = 0.0
        return slopes

    def combine(self, w: Array, budget: Budget) -> Array:
        """Return sum_j w_j (x_ij - m_j)."""
        return np.asarray(self.X @ w - self.mean @ w, dtype=np.float64)

    def gram_rows(self, ids: Array, old: int, budget: Budget) -> Array:
        """Return rows of the Gram matrix."""
        chosen = self.X[:, ids]
        shared = sp.csc_array(chosen[:, old:].multiply(self.q[:, None]))
        gram = (shared.T @ chosen).toarray().astype(np.float64)
        return np.ascontiguousarray(gram - np.outer(self.mean[ids[old:]], self.mean[ids]))

    def curvature(self) -> Array:
        """Return the variance of every column."""
        return np.where(self.constant, 0.0, _mean_squares(self.X, self.q) - self.mean**2)

    def weighted(self, ids: Array, root: Array) -> Array:
        """Return root_i (x_ij - m_j), densely."""
        columns = np.asarray(self.X[:, ids].toarray(), dtype=np.float64)
        columns -= self.mean[ids]
        columns *= root[:, None]
        return columns

    def take(self, ids: Array) -> Residuals:
        """Return a copy of some columns."""
        return SparseResiduals(self.X[:, ids], self.q, self.mean[ids])


class SparseResiduals(Residuals):
    """Compressed columns."""

    def __init__(self, X: Any, q: Array, mean: Array) -> None:
        self.X, self.q, self.mean = X, q, mean
        self.curvature = _mean_squares(X, q) - mean**2

    def slopes(self, v: Array) -> Array:
        """Return sum_i v_i x_ij: v sums to zero wherever m is not."""
        return np.asarray(v @ self.X, dtype=np.float64)

    def descend(self, v: Array, w: Array, rule: tuple[Any, ...], budget: Budget) -> bool:
        """Lower the objective in w."""
        finished: bool
        finished, _, _ = core.descend_sparse_columns(
            self.X.data,
            self.X.indices,
            self.X.indptr,
            self.q,
            self.mean,
            self.curvature,
            v,
            0.0,
            w,
            *rule,
            budget.seconds_left,
            budget.flag,
        )
        return finished


def weighted_gram_rows(
    X: Array, root: Array, group: Array, ids: Array, old: int, shift: Array, budget: Budget
) -> Array:
    """Return sum_i a_ij a_il for j in ids[old:], l in ids, with a_ij = root[i, group_j] (x_ij - shift_j)."""
    out = np.empty((len(ids) - old, len(ids)))
    budget.check(core.gram_rows(X, root, group, ids, old, shift, out, budget.seconds_left, budget.flag))
    return out


def _variances(X: Array, q: Array, mean: Array) -> Array:
    parts = [slice(k, k + SQUARED_AT_ONCE) for k in range(0, X.shape[1], SQUARED_AT_ONCE)]
    return np.concatenate([q @ np.square(X[:, part] - mean[part]) for part in parts])


def _mean_squares(X: Any, q: Array) -> Array:
    squares = sp.csc_array((np.square(X.data, dtype=np.float64), X.indices, X.indptr), shape=X.shape)
    return np.asarray(q @ squares, dtype=np.float64)
