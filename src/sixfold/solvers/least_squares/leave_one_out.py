"""What ridge regression predicts for each row when it is fitted to all others, without fitting again.

    minimise  sum_i s_i |y_i - b - w.x_i|^2 + alpha |w|^2         for every alpha of a list

With q = s / sum s, l2 = alpha / sum s, z = x - mean, A = sum_i q_i z_i z_i' and the fit f to all rows, the
error of the fit to all rows but i at row i is

    e_i = (y_i - f(x_i)) / (1 - h_i),      h_i = q_i (1 + z_i' (A + l2 I)^-1 z_i)

(Allen 1974; without intercept the 1 is not there, and z = x). alpha stays what it is when a row is left out.
From the eigenvectors of A the sums of all penalties are two matrix products. Wide tables use those of the
products of the rows, K = V diag(e) V', where with (K + l2 I) a = t

    e_i = l2 a_i / (sqrt(q_i) (1 - h_i)),      1 - h_i = sum_k V_ik^2 l2 / (e_k + l2),

the eigenvector sqrt(q) of the intercept left out. Generalised cross-validation (Golub, Heath and Wahba 1979)
puts the mean of the h_i in the place of each:  GCV = (1 / n) sum_i s_i r_i^2 / (1 - sum_i h_i / n)^2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import svd

from sixfold.data.blocks import Block
from sixfold.solvers.least_squares.moments import block_moments
from sixfold.solvers.least_squares.ridge_path import ColumnPath, RowPath, row_products

Array = NDArray[Any]

BLOCK_ENTRIES = 1 << 16  # of what is computed of some rows, in the L2 cache
UNCERTAIN = 1e-7  # of the least eigenvalue, penalty included: more rounding than this calls for an SVD


class Errors(NamedTuple):
    """Some rows, each left out in turn.

    Attributes
    ----------
    rows : slice
    errors : ndarray of shape (rows, targets, penalties)
        y minus what the fit to all other rows predicts.
    kept : ndarray of shape (rows, penalties)
        1 - h: the share of its own error that a row keeps when it is part of the fit.
    """

    rows: slice
    errors: Array
    kept: Array


class LeaveOneOut(ABC):
    """The rows of a table, factored such that each can be left out."""

    def __init__(self, n_rows: int, n_targets: int) -> None:
        self.n_rows, self.n_targets = n_rows, n_targets

    def errors(self, l2: Array) -> Iterator[Errors]:
        """Yield the errors of some rows after the other for all penalties."""
        width = max(l2.size * self.n_targets, self.width)
        step = min(max(BLOCK_ENTRIES // width, 32), self.n_rows)
        for first in range(0, self.n_rows, step):
            rows = slice(first, min(first + step, self.n_rows))
            yield Errors(rows, *self._errors(rows, l2))

    @property
    @abstractmethod
    def width(self) -> int:
        """How many numbers are computed of each row."""

    @abstractmethod
    def _errors(self, rows: slice, l2: Array) -> tuple[Array, Array]:
        """Return the errors of some rows and what they keep."""


def leave_one_out(
    X: Any,
    Y: Array,
    weight: Array | None,
    least_l2: float,
    fit_intercept: bool,
    how: str | None = None,
) -> LeaveOneOut:
    """Return the table, factored.

    ``least_l2`` is the least penalty that will be asked for. A tall table is factored by its singular values
    (``how`` is "svd"), by the eigenvalues of its products ("eigen"), or by the latter unless they would lose
    digits (None). Sparse and wide tables always are by the latter.
    """
    n, d = X.shape
    q = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
    given, Y = Y, np.asarray(Y, dtype=np.float64)
    if d >= n:
        centred = fit_intercept and not sp.issparse(X)
        products = row_products(X, np.asarray(q @ X, dtype=np.float64) if centred else None)
        return _WideRows(RowPath(products, Y, q, d, fit_intercept), products, Y, q)
    path = ColumnPath(block_moments(Block(X, given, weight, 0), np.zeros(1, dtype=np.int32)), fit_intercept)
    rotation = path.e, path.V, path.V.T @ path.c
    uncertain = how is None and path.uncertainty(least_l2) > UNCERTAIN
    if not sp.issparse(X) and (how == "svd" or uncertain):
        root = np.sqrt(q)[:, None]
        U, s, Vt = svd(root * (X - path.mean_x), full_matrices=False, check_finite=False)
        rotation = s**2, Vt.T, s[:, None] * (U.T @ (root * (Y - path.mean_y)))
    return _TallRows(path, rotation, X, Y, q)


class _TallRows(LeaveOneOut):
    def __init__(
        self, path: ColumnPath, rotation: tuple[Array, Array, Array], X: Any, Y: Array, q: Array
    ) -> None:
        super().__init__(*Y.shape)
        self.e, self.V, self.c = rotation
        self.X, self.Y, self.q = X, Y - path.mean_y, q
        self.mean, self.intercept = path.mean_x, float(path.fit_intercept)

    @property
    def width(self) -> int:
        return self.mean.size

    def _errors(self, rows: slice, l2: Array) -> tuple[Array, Array]:
        inverse = 1.0 / (self.e[:, None] + l2)
        X = self.X[rows]
        Z = X @ self.V - self.mean @ self.V if sp.issparse(X) else (X - self.mean) @ self.V
        coefficients = self.c[:, :, None] * inverse[:, None, :]
        errors = (Z @ coefficients.reshape(self.e.size, -1)).reshape(-1, self.n_targets, l2.size)
        np.subtract(self.Y[rows, :, None], errors, out=errors)
        kept = np.square(Z, out=Z) @ inverse
        kept += self.intercept
        kept *= -self.q[rows, None]
        kept += 1.0
        errors /= kept[:, None, :]
        return errors, kept


class _WideRows(LeaveOneOut):
    def __init__(self, path: RowPath, products: Array, Y: Array, q: Array) -> None:
        super().__init__(*Y.shape)
        self.path, self.products, self.q = path, products, q
        self.Y = Y - path.mean_y
        self.c = path.V.T @ path.target

    @property
    def width(self) -> int:
        return self.n_rows

    def _errors(self, rows: slice, l2: Array) -> tuple[Array, Array]:
        V, root = self.path.V, self.path.root[rows]
        inverse = 1.0 / (np.maximum(self.path.e, 0.0)[:, None] + l2)
        rotated = (self.c[:, :, None] * inverse[:, None, :]).reshape(V.shape[1], -1)
        some = V[rows]
        kept = np.square(some) @ (l2 * inverse)
        counts = root > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            errors = (some @ rotated).reshape(-1, self.n_targets, l2.size) * l2
            errors /= root[:, None, None] * kept[:, None, :]
        if not counts.all():  # rows without weight have no part in the fit, and keep all of their errors
            none = ~counts
            shares = self.path.root[:, None] * (V @ rotated)
            scores = (self.products[rows][none] - self.path.at_mean) @ shares
            errors[none] = self.Y[rows][none][:, :, None] - scores.reshape(-1, self.n_targets, l2.size)
            kept[none] = 1.0
        return errors, kept
