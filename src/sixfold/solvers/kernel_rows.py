"""The rows of a table seen through a kernel: Gram matrices, blocks of them, and scores K c that store none.

The rbf kernel sees only differences of rows, so dense rows are centred for it: |x|^2 + |z|^2 - 2 x.z would
lose the digits that a far-away mean takes up.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from sixfold.budget import Budget
from sixfold.geometry.kernel import Kernel, squared_lengths
from sixfold.solvers.kernel_pairs import Pairs, make_pairs

Array = NDArray[Any]

# The rounding of entries is measured between rows of either kind, each with each. With heavy tails, errors of
# polynomials were up to 10^8 times those between spread rows alone.
SPREAD_ROWS = 40
LONGEST_ROWS = 24
# The largest of 10^10 normal errors is 1.7 times that of the 2,000 that are looked at.
UNSEEN = 2.0


class KernelRows:
    """Training rows seen through a kernel.

    In all calls ``rows`` and ``others`` are numbers of rows, None for all. A call that the budget ends raises
    an ``OutOfTimeError`` (solvers/descent.py).

    Parameters
    ----------
    X : ndarray of shape (n, columns), float32 or float64, or CSR
        Is not copied, unless its rows are not contiguous. For precomputed values, the square matrix of them.
    kernel : Kernel

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

    def __init__(self, X: Any, kernel: Kernel) -> None:
        self.kernel = kernel
        self._X = _table(X)
        self.n_rows: int = self._X.shape[0]
        self.dtype: np.dtype[Any] = self._X.dtype
        centred = kernel.form is not None and kernel.form.kind == "rbf" and not sp.issparse(X) and self.n_rows
        self._centre = self._X.mean(axis=0, dtype=np.float64) if centred else None
        self._pairs: Pairs = make_pairs(self._X, self._X, kernel, self._centre)
        self._measured: tuple[float, float] | None = None

    @property
    def table(self) -> Any:
        """The table, as it was given."""
        return self._X

    def gram(self, rows: Any, dtype: DTypeLike, budget: Budget, out: Array | None = None) -> Array:
        """Return K between the rows, exactly symmetric; ``out`` may be a corner of a larger matrix."""
        index = np.ascontiguousarray(np.arange(self.n_rows) if rows is None else rows, dtype=np.int64)
        out = np.empty((index.size, index.size), dtype) if out is None else out
        self._pairs.gram(index, out, budget)
        return out

    def block(
        self, rows: Any, others: Any, dtype: DTypeLike, budget: Budget, out: Array | None = None
    ) -> Array:
        """Return K of each of the rows with each of the others, in ``out`` where that is given."""
        index, right = _index(rows), _index(others)
        if out is None:
            shape = tuple(self.n_rows if part is None else part.size for part in (index, right))
            out = np.empty(shape, dtype)
        self._pairs.block(index, right, out, budget)
        return out

    def scores(self, rows: Any, others: Any, coefficients: Array, dtype: DTypeLike, budget: Budget) -> Array:
        """Return sum_j K(row, other_j) coefficients_j in float64; K is computed in ``dtype``, not stored."""
        return self._pairs.scores(_index(rows), _index(others), coefficients, dtype, budget)

    def diagonal(self) -> Array:
        """Return K of each row with itself, in float64."""
        return self.kernel.diagonal(self._X)

    def entry_error(self, dtype: DTypeLike) -> float:
        """Return about how far an entry computed in that precision is off; infinite where it overflows.

        Twice the largest difference between single and double precision on a fixed sample of pairs; that of
        double precision is as many times smaller as its unit is.
        """
        if self._measured is None:
            self._measured = self._measure()
        largest, apart = self._measured
        unit = float(np.finfo(dtype).eps)
        # The sample may happen to be exact; a rounded entry is not better than this.
        least = 0.5 * unit * largest
        if math.isinf(apart):
            return math.inf if np.dtype(dtype) == np.float32 else least
        return max(UNSEEN * apart * unit / float(np.finfo(np.float32).eps), least)

    def _measure(self) -> tuple[float, float]:
        """Return the largest entry of a sample, and how far one is off in float32; inf where they overflow."""
        sample = self._sample()
        exact = self.gram(sample, np.float64, Budget())
        largest = float(np.abs(exact).max(initial=0.0))
        if not self._fits_single(largest):
            return largest, math.inf
        return largest, float(np.abs(self.gram(sample, np.float32, Budget()) - exact).max(initial=0.0))

    def _sample(self) -> Array:
        """Return rows from all over the table, and the longest ones: products of these are rounded most."""
        spread = np.linspace(0, self.n_rows - 1, SPREAD_ROWS).astype(np.int64)
        if self.n_rows <= LONGEST_ROWS:
            return np.unique(spread)
        if self.kernel.form is None:
            lengths = np.abs(self.diagonal())
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                lengths = squared_lengths(self._X)
                if self._centre is not None:  # but for a constant
                    lengths = lengths - 2.0 * (self._X @ self._centre.astype(self.dtype))
        longest = np.argpartition(lengths, -LONGEST_ROWS)[-LONGEST_ROWS:]
        return np.union1d(spread, longest)

    def _fits_single(self, largest: float) -> bool:
        """Return whether neither entries nor squared lengths of rows overflow in single precision."""
        values = self._X.data if sp.issparse(self._X) else self._X
        size = float(np.abs(values).max(initial=0.0)) if values.size else 0.0
        limit = float(np.finfo(np.float32).max)
        return largest < limit and 4.0 * self._X.shape[1] * size * size < limit

    def against(self, Z: Any) -> CrossRows:
        """Return new rows Z, to be scored against these; for precomputed values, K of Z with all of these."""
        new = _table(Z).astype(self.dtype, copy=False)
        return CrossRows(make_pairs(new, self._X, self.kernel, self._centre))


class CrossRows:
    """New rows that are compared with training rows; see :meth:`KernelRows.against`."""

    def __init__(self, pairs: Pairs) -> None:
        self._pairs = pairs

    def scores(self, others: Any, coefficients: Array, dtype: DTypeLike, budget: Budget) -> Array:
        """Return sum_j K(z, x_j) coefficients_j for each new row z; the others are training rows x_j."""
        return self._pairs.scores(None, _index(others), coefficients, dtype, budget)


def _table(X: Any) -> Any:
    return sp.csr_array(X) if sp.issparse(X) else np.ascontiguousarray(X)


def _index(rows: Any) -> Array | None:
    return None if rows is None else np.ascontiguousarray(rows, dtype=np.int64)
