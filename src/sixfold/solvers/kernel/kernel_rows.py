"""The rows of a table seen through a kernel: Gram matrices, blocks of them, and scores K c that store none.

The rbf kernel sees only differences of rows, so dense rows are centred for it: |x|^2 + |z|^2 - 2 x.z would
lose the digits that a far-away mean takes up. The dual of an SVM with the linear kernel sees only these,
too: with sum_j c_j = 0, scores of rows from which an origin o is subtracted are

    sum_j c_j (x - o).(x_j - o)  =  sum_j c_j x.x_j  -  o.w,      w = sum_j c_j x_j

the scores but for a constant, which the intercept takes up. That is done only where the mean is so far away
that it costs digits: small whole numbers have exact products, on whose ties the path of a solver depends.

Dense rows and a kernel that native loops know: products, kernel and coefficients are one pass over tiles
(native/kernel/kernel_products.hpp). Rows are gathered, centred and converted to the precision that is asked
for while they are packed for it, so no table is ever copied. Everything else is in
:mod:`sixfold.solvers.kernel.kernel_tiles`.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.geometry.kernels import Precomputed
from sixfold.geometry.kernels.base import Form, Kernel
from sixfold.geometry.kernels.standard import squared_lengths
from sixfold.solvers.kernel.kernel_tiles import (
    Pairs,
    TiledPairs,
    called_values,
    count_rows,
    given_values,
    sparse_values,
)
from sixfold.solvers.kernel.stored_products import CrossProducts, StoredProducts

Array = NDArray[Any]

ROUNDING_SAMPLE_ROWS = 64  # between which the rounding of entries is measured, each with each
# Of these, the longest: with heavy tails, errors of polynomials were up to 10^8 times those between others.
LONGEST_ROWS = 24
# The largest of 10^10 normal errors is 1.7 times that of the 2,000 that are looked at.
NOT_SAMPLED = 2.0
# A spread of 1/100 of the mean, squared: products of rows have four digits in common, all of no account.
SMALL_SPREAD = 1e-4
DIAGONAL_ROWS = 4096  # that are centred at a time
MOST_DENSIFIED = 1 << 22  # numbers: a sparse table that is no larger is faster dense, with the same model
LARGEST_SINGLE = float(np.finfo(np.float32).max)
SINGLE_UNIT, DOUBLE_UNIT = (float(np.finfo(dtype).eps) for dtype in (np.float32, np.float64))


def densify_if_small(X: Any) -> Any:
    """Return a sparse table that is small as a dense one, every other as it is."""
    return X.toarray() if sp.issparse(X) and X.shape[0] * X.shape[1] <= MOST_DENSIFIED else X


class KernelRows:
    """Training rows seen through a kernel.

    In all calls ``rows`` and ``others`` are numbers of rows, None for all. A call that the budget ends raises
    a ``BudgetExhausted``.

    Parameters
    ----------
    X : ndarray of shape (n, columns), float32 or float64, or CSR
        Is not copied, unless its rows are not contiguous. For precomputed values, the square matrix of them.
    kernel : Kernel
    centred : bool, default=False
        Whether coefficients will sum to 0, and constants in scores do not matter: then dense rows whose mean
        is far away are centred for the linear kernel, too.

    Attributes
    ----------
    origin : ndarray of shape (columns,) or None
        What the linear kernel subtracts from rows; None where kernel values are those of the rows themselves.

    Examples
    --------
    >>> from sixfold.geometry.kernels import linear
    >>> rows = KernelRows(np.array([[1.0, 2.0], [3.0, 4.0], [0.0, 1.0]]), linear)
    >>> rows.gram([0, 1], np.float64, Budget())
    array([[ 5., 11.],
           [11., 25.]])
    >>> rows.scores(None, [1], np.array([[2.0]]), np.float64, Budget())
    array([[22.],
           [50.],
           [ 8.]])
    """

    def __init__(self, X: Any, kernel: Kernel, centred: bool = False) -> None:
        self.kernel = kernel
        self._X = _table(X)
        self.n_rows: int = self._X.shape[0]
        self.dtype: np.dtype[Any] = self._X.dtype
        kind = None if kernel.form is None else kernel.form.kind
        self._is_rbf = kind == "rbf"
        moved = False
        if self.n_rows and not sp.issparse(X):
            moved = self._is_rbf or (kind == "linear" and centred and far_away(self._X))
        self._centre: Array | None = _means(self._X) if moved else None
        self.origin = None if self._is_rbf else self._centre
        self._pairs: Pairs = make_pairs(self._X, self._X, kernel, self._centre)

    @property
    def table(self) -> Any:
        """The table, as it was given."""
        return self._X

    def store_products(self, order: Array, dtype: DTypeLike, budget: Budget) -> StoredProducts | None:
        """Return the products of all rows, of which kernels of other parameters are made; None if of no use.

        Parameters
        ----------
        order : ndarray of int
            All rows, those of a class next to each other.
        dtype : dtype
            Of the Gram matrices that will be asked for.
        budget : Budget
        """
        if not isinstance(self._pairs, NativePairs):
            return None
        return StoredProducts(self._X, order, self._centre, dtype, budget)

    def use_products(self, products: StoredProducts) -> None:
        """Make Gram matrices of these products, which are those of the same rows."""
        if isinstance(self._pairs, NativePairs):
            self._pairs.stored = products

    def cross_products(self, Z: Any, budget: Budget) -> CrossProducts | None:
        """Return the products of new rows with these; None if of no use."""
        if not isinstance(self._pairs, NativePairs) or sp.issparse(Z):
            return None
        return CrossProducts(_table(Z).astype(self.dtype, copy=False), self._X, self._centre, budget)

    def gram(self, rows: Any, dtype: DTypeLike, budget: Budget, out: Array | None = None) -> Array:
        """Return K between the rows, exactly symmetric; ``out`` may be a corner of a larger matrix."""
        index = np.ascontiguousarray(np.arange(self.n_rows) if rows is None else rows, dtype=np.int64)
        out = np.empty((index.size, index.size), dtype) if out is None else out
        self._pairs.gram(index, out, budget)
        return out

    def block(
        self,
        rows: Any,
        others: Any,
        dtype: DTypeLike,
        budget: Budget,
        out: Array | None = None,
        mirrored: Array | None = None,
    ) -> Array:
        """Return K of each of the rows with each of the others, in ``out`` where that is given.

        Where ``mirrored`` is given it gets the same transposed: the opposite corner of a Gram matrix.
        """
        index, right = _index(rows), _index(others)
        if out is None:
            shape = tuple(self.n_rows if part is None else part.size for part in (index, right))
            out = np.empty(shape, dtype)
        self._pairs.block(index, right, out, budget, mirrored)
        return out

    def scores(self, rows: Any, others: Any, coefficients: Array, dtype: DTypeLike, budget: Budget) -> Array:
        """Return sum_j K(row, other_j) coefficients_j in float64; K is computed in ``dtype``, not stored."""
        return self._pairs.scores(_index(rows), _index(others), coefficients, dtype, budget)

    def diagonal(self) -> Array:
        """Return K of each row with itself, in float64."""
        if self.origin is None:
            return self.kernel.diagonal(self._X)
        return self._squared_lengths()

    def _squared_lengths(self) -> Array:
        """Return those of the rows about their centre."""
        if self._centre is None:
            return squared_lengths(self._X)
        parts = range(0, self.n_rows, DIAGONAL_ROWS)
        return np.concatenate(
            [squared_lengths(self._X[start : start + DIAGONAL_ROWS] - self._centre) for start in parts]
        )

    def entry_error(self, dtype: DTypeLike) -> float:
        """Return about how far an entry computed in that precision is off; infinite where it overflows.

        Twice the largest difference between single and double precision on a fixed sample of pairs; that of
        double precision is as many times smaller as its unit is. For the rbf kernel the largest difference
        alone is several times what the errors in a sum of many amount to; but rows so close that K is nearly
        1 may be missing in the sample: |x - z|^2 of the longest is off by a unit of their squared length.
        """
        single, double = self._entry_errors
        return single if np.dtype(dtype) == np.float32 else double

    @cached_property
    def _entry_errors(self) -> tuple[float, float]:
        """How far an entry is off in float32, and in float64."""
        largest, apart = self._measure()
        # The sample may happen to be exact; a rounded entry is not better than this.
        least, least_double = 0.5 * SINGLE_UNIT * largest, 0.5 * DOUBLE_UNIT * largest
        if math.isinf(apart):
            return math.inf, least_double
        error = apart if self._is_rbf else NOT_SAMPLED * apart
        return max(error, least), max(error * DOUBLE_UNIT / SINGLE_UNIT, least_double)

    def _measure(self) -> tuple[float, float]:
        """Return the largest entry of a sample, and the error of one in float32; inf where it overflows."""
        sample = self._sample()
        if isinstance(self._pairs, NativePairs) and self._pairs.stored is None:
            largest, apart, number, longest = self._pairs.rounding(sample)
            if not (largest < LARGEST_SINGLE and _squares_fit_single(number, self._X.shape[1])):
                return largest, math.inf
            return largest, max(apart, self._error_of_close_rows(longest))
        budget = Budget()
        exact = self.gram(sample, np.float64, budget)
        largest = _largest(exact)
        if not (largest < LARGEST_SINGLE and _fits_single(self._X)):
            return largest, math.inf
        apart = _largest(self.gram(sample, np.float32, budget) - exact)
        longest = float(self._squared_lengths().max(initial=0.0)) if self._is_rbf else 0.0
        return largest, max(apart, self._error_of_close_rows(longest))

    def _error_of_close_rows(self, longest: float) -> float:
        """Return how far the rbf kernel of rows of that squared length is off where they are close."""
        form = self.kernel.form
        return 0.0 if form is None or not self._is_rbf else 0.5 * SINGLE_UNIT * form.gamma * longest

    def _sample(self) -> Array:
        """Return rows from all over the table, and the longest ones: products of these are rounded most."""
        if self.n_rows <= ROUNDING_SAMPLE_ROWS:
            return np.arange(self.n_rows)
        longest = 0 if self._is_rbf else LONGEST_ROWS
        count = ROUNDING_SAMPLE_ROWS - longest
        spread = (np.arange(count) * ((self.n_rows - 1) / (count - 1))).astype(np.int64)
        spread[-1] = self.n_rows - 1
        if longest == 0:
            return spread
        own_values = self.kernel.form is None or self.origin is not None
        with np.errstate(over="ignore"):
            lengths = np.abs(self.diagonal()) if own_values else squared_lengths(self._X)
        return np.union1d(spread, np.argpartition(lengths, -longest)[-longest:])

    def against(self, Z: Any) -> CrossRows:
        """Return new rows Z, to be scored against these; for precomputed values, K of Z with all of these."""
        new = _table(Z).astype(self.dtype, copy=False)
        return CrossRows(new, make_pairs(new, self._X, self.kernel, self._centre))


class CrossRows:
    """New rows that are compared with training rows; see :meth:`KernelRows.against`."""

    def __init__(self, new: Any, pairs: Pairs) -> None:
        self._new, self._pairs = new, pairs

    @cached_property
    def _fits_single(self) -> bool:
        return _fits_single(self._new)

    def scores(self, others: Any, coefficients: Array, dtype: DTypeLike, budget: Budget) -> Array:
        """Return sum_j K(z, x_j) coefficients_j for each new row z; the others are training rows x_j.

        In float64 whatever ``dtype`` says, where the squares of a new row would overflow in float32.
        """
        if np.dtype(dtype) == np.float32 and not self._fits_single:
            dtype = np.float64
        return self._pairs.scores(None, _index(others), coefficients, dtype, budget)

    def block(self, others: Array, out: Array, budget: Budget) -> None:
        """Fill ``out`` with K(z, x_j) for each new row z and each of the others, in its precision."""
        if out.dtype == np.float32 and not self._fits_single:
            exact = np.empty(out.shape)
            self._pairs.block(None, _index(others), exact, budget)
            out[...] = exact
            return
        self._pairs.block(None, _index(others), out, budget)


def make_pairs(A: Any, B: Any, kernel: Kernel, centre: Array | None) -> Pairs:
    """Return the fastest way to compute this kernel of these tables.

    Parameters
    ----------
    A, B : ndarray or CSR, of the same dtype
    kernel : Kernel
    centre : ndarray of shape (columns,) or None
        Is subtracted from dense rows, for kernels that see only differences.
    """
    if isinstance(kernel, Precomputed):
        return TiledPairs(A, B, lambda others: given_values(A, others))
    if kernel.form is None:
        return TiledPairs(A, B, lambda others: called_values(kernel, A, B[others]))
    form = kernel.form
    if sp.issparse(A) or sp.issparse(B):
        return TiledPairs(A, B, lambda others: sparse_values(form, sp.csr_array(A), sp.csr_array(B[others])))
    return NativePairs(A, B, form, centre)


class NativePairs:
    """Dense rows, and a kernel that native loops know."""

    def __init__(self, A: Array, B: Array, form: Form, centre: Array | None) -> None:
        self._A, self._B, self._form, self._centre = A, B, form, centre
        self.stored: StoredProducts | None = None

    def gram(self, rows: Array, out: Array, budget: Budget) -> None:
        """Fill ``out``; half of the entries are computed and the others mirrored."""
        if self.stored is not None and self.stored.fill(self._form, rows, rows, out):
            return
        self._block(rows, rows, True, out, budget, None)

    def block(
        self,
        rows: Array | None,
        others: Array | None,
        out: Array,
        budget: Budget,
        mirrored: Array | None = None,
    ) -> None:
        """Fill ``out``, and ``mirrored`` from tiles that are still in the cache."""
        if (
            self.stored is not None
            and rows is not None
            and others is not None
            and self.stored.fill(self._form, rows, others, out)
        ):
            if mirrored is not None:
                mirrored[...] = out.T
            return
        self._block(rows, others, False, out, budget, mirrored)

    def _block(
        self,
        rows: Array | None,
        others: Array | None,
        same: bool,
        out: Array,
        budget: Budget,
        mirrored: Array | None,
    ) -> None:
        finished = core.kernel_block(
            *self._form,
            A=self._A,
            a_index=rows,
            B=self._B,
            b_index=others,
            centre=self._centre,
            same=same,
            out=out,
            mirrored=mirrored,
            seconds_left=budget.seconds_left,
            flag=budget.flag,
        )
        budget.check(finished)

    def rounding(self, sample: Array) -> tuple[float, float, float, float]:
        """Return what tells how values of A's rows with each other are rounded (``core.kernel_rounding``)."""
        found: tuple[float, float, float, float] = core.kernel_rounding(
            *self._form, self._A, sample, self._centre
        )
        return found

    def scores(
        self, rows: Array | None, others: Array | None, coefficients: Array, dtype: DTypeLike, budget: Budget
    ) -> Array:
        """Return the sums; K is not stored."""
        out = np.empty((count_rows(self._A, rows), coefficients.shape[1]))
        finished = core.kernel_scores(
            *self._form,
            A=self._A,
            a_index=rows,
            B=self._B,
            b_index=others,
            centre=self._centre,
            coefficients=np.ascontiguousarray(coefficients, dtype=np.float64),
            single=np.dtype(dtype) == np.float32,
            out=out,
            seconds_left=budget.seconds_left,
            flag=budget.flag,
        )
        budget.check(finished)
        return out


def _fits_single(X: Any) -> bool:
    """Return whether squared lengths of rows do not overflow in single precision."""
    return _squares_fit_single(_largest(X.data if sp.issparse(X) else X), X.shape[1])


def _squares_fit_single(number: float, columns: int) -> bool:
    """Return whether those of rows of such numbers do."""
    return 4.0 * columns * number * number < LARGEST_SINGLE


def _largest(values: Array) -> float:
    """Return the largest size of a value."""
    return max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))


def far_away(X: Array) -> bool:
    """Return whether the spread of rows about their mean is little beside the mean, in squared length."""
    mean = _means(X)
    with np.errstate(over="ignore"):
        whole = float(squared_lengths(X).mean(dtype=np.float64))
    return whole - float(mean @ mean) < SMALL_SPREAD * whole


def _means(X: Array) -> Array:
    """Return those of columns; the method takes twice as long on a hundred rows."""
    means: Array = np.add.reduce(X, axis=0, dtype=np.float64) / X.shape[0]
    return means


def _table(X: Any) -> Any:
    return sp.csr_array(X) if sp.issparse(X) else np.ascontiguousarray(X)


def _index(rows: Any) -> Array | None:
    return None if rows is None else np.ascontiguousarray(rows, dtype=np.int64)
