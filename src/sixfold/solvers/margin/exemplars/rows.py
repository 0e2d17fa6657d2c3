"""The negatives that all exemplars share, as the solver multiplies with them.

    scores    S = W (X - m)' + b          machines x rows
    combine   V = A (X - m)               machines x columns

m is the mean of the negatives: what a far-away mean takes up would be lost in products, and b hardly depends
on w then. Sparse tables are not moved (m = 0). :meth:`rough` multiplies in single precision, with columns
scaled to a unit spread, where digits do not matter: Hessians of inexact steps, at twice the speed (20,000 x
500 for 200 machines: 18 ms instead of 40).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import lapack

Array = NDArray[Any]
Solve = Callable[[Array], Array]  # right-hand sides, one a row, to solutions

MOST_FACTORED = 4000  # columns of a matrix that is factored: about half a second
MOST_SPARSE_FACTORED = 2000  # of a sparse table, whose products no BLAS adds up
NO_ACTIVE = 1e-6  # of the cost of all rows: a curvature for the intercept where no row is active
FIRST_RIDGE = 1e-14  # of a matrix with a unit diagonal that rounding has left no positive pivot


class DenseNegatives:
    """Rows of an array, centred.

    Parameters
    ----------
    X : ndarray of shape (rows, columns)
    cost : ndarray of shape (rows,)
        What each row costs inside the margin; the weights of the mean.
    """

    def __init__(self, X: Array, cost: Array) -> None:
        self.cost = cost
        self.mean: Array = (cost @ X) / cost.sum() if X.shape[0] else np.zeros(X.shape[1])
        self.X = X - self.mean
        self.shape = X.shape
        # 1 / spread of each column: single precision would not hold the squares of columns in other units.
        squares = np.einsum("i,ij,ij->j", cost / cost.sum(), self.X, self.X)
        self._unit = np.where(squares > 0, 1.0 / np.sqrt(np.where(squares > 0, squares, 1.0)), 1.0)
        self._single = np.empty(self.X.shape, dtype=np.float32)
        np.multiply(self.X, self._unit, out=self._single, casting="same_kind")  # rounded after the product

    def centred(self, rows: Any) -> Array:
        """Return other rows as these are seen."""
        return np.asarray(rows, dtype=np.float64) - self.mean

    def lengths(self) -> Array:
        """Return |x - m| of each row."""
        return np.sqrt(np.einsum("ij,ij->i", self.X, self.X))

    def scores(self, w: Array, b: Array) -> Array:
        """Return the scores of all rows, of shape (machines, rows)."""
        found: Array = w @ self.X.T
        found += b[:, None]
        return found

    def combine(self, a: Array) -> Array:
        """Return sum_i a_i (x_i - m) for each row of a."""
        return np.asarray(a @ self.X)

    def rough_scores(self, w: Array, b: Array) -> Array:
        """Return scores in single precision."""
        found: Array = (w / self._unit).astype(np.float32) @ self._single.T
        found += b[:, None].astype(np.float32)
        return found

    def rough_combine(self, a: Array) -> Array:
        """Return combinations in single precision."""
        return np.asarray((a @ self._single) / self._unit)

    def preconditioner(self, curvature: Array) -> Solve:
        """Return the inverse of diag(1, ..., 1, 0) + sum_i curvature_i z_i z_i', z = (x - m, 1)."""
        if self.shape[1] > MOST_FACTORED:
            return diagonal_solve(1.0 + np.einsum("i,ij,ij->j", curvature, self.X, self.X), curvature.sum())
        return cholesky_solve(self.hessian(curvature))

    def hessian(self, curvature: Array) -> Array:
        """Return diag(1, ..., 1, 0) + sum_i curvature_i z_i z_i', with something for the intercept."""
        there = curvature > 0
        part, weight = (self.X, curvature) if there.all() else (self.X[there], curvature[there])
        scaled = part * np.sqrt(weight)[:, None]
        return bordered(scaled.T @ scaled, weight @ part, weight.sum(), self.cost)


class SparseNegatives:
    """Rows of a CSR table, which are not moved.

    Parameters
    ----------
    X : CSR array of shape (rows, columns)
    cost : ndarray of shape (rows,)
    """

    def __init__(self, X: Any, cost: Array) -> None:
        self.cost = cost
        self.mean = np.zeros(X.shape[1])
        self._X = sp.csr_array(X).astype(np.float64)
        self._T = self._X.T.tocsr()
        self._single, self._single_T = self._X.astype(np.float32), self._T.astype(np.float32)
        self.shape = X.shape

    def centred(self, rows: Any) -> Array:
        """Return other rows as dense ones."""
        return rows.toarray().astype(np.float64)

    def lengths(self) -> Array:
        """Return |x| of each row."""
        return np.sqrt(np.asarray(self._X.multiply(self._X).sum(axis=1)).ravel())

    def scores(self, w: Array, b: Array) -> Array:
        """Return the scores of all rows, of shape (machines, rows)."""
        found = np.ascontiguousarray((self._X @ np.ascontiguousarray(w.T)).T)
        found += b[:, None]
        return found

    def combine(self, a: Array) -> Array:
        """Return sum_i a_i x_i for each row of a."""
        return np.ascontiguousarray((self._T @ np.ascontiguousarray(a.T)).T)

    def rough_scores(self, w: Array, b: Array) -> Array:
        """Return scores in single precision."""
        found = self._single @ np.ascontiguousarray(w.T, dtype=np.float32)
        found += b.astype(np.float32)
        return np.ascontiguousarray(found.T)

    def rough_combine(self, a: Array) -> Array:
        """Return combinations in single precision."""
        return np.ascontiguousarray((self._single_T @ np.ascontiguousarray(a.T)).T, dtype=np.float64)

    def preconditioner(self, curvature: Array) -> Solve:
        """Return the inverse of the Hessian where it is small, and of its diagonal else."""
        if self.shape[1] <= MOST_SPARSE_FACTORED:
            return cholesky_solve(self.hessian(curvature))
        squares = self._T.multiply(self._T) @ curvature
        return diagonal_solve(1.0 + squares, curvature.sum() + NO_ACTIVE * self.cost.sum())

    def hessian(self, curvature: Array) -> Array:
        """Return diag(1, ..., 1, 0) + sum_i curvature_i z_i z_i', with something for the intercept."""
        products = (self._T.multiply(curvature[None]).tocsr() @ self._X).toarray()
        return bordered(products, self._T @ curvature, curvature.sum(), self.cost)


def bordered(products: Array, sums: Array, total: float, cost: Array) -> Array:
    """Return the identity plus the products, with a row and a column for the intercept."""
    d = sums.size
    matrix = np.empty((d + 1, d + 1))
    matrix[:d, :d] = products
    matrix.flat[: d * (d + 1) : d + 2] += 1.0
    matrix[d, :d] = matrix[:d, d] = sums
    matrix[d, d] = total + NO_ACTIVE * cost.sum()
    return matrix


def cholesky_solve(matrix: Array) -> Solve:
    """Return right-hand sides, one a row, -> their solutions; units do not matter.

    >>> cholesky_solve(np.array([[4.0, 0.0], [0.0, 1e-20]]))(np.array([[8.0, 1e-20]]))
    array([[2., 1.]])
    """
    scale = 1.0 / np.sqrt(np.diag(matrix))
    ridge = 0.0
    while True:
        scaled = matrix * scale * scale[:, None]
        scaled.flat[:: scale.size + 1] += ridge
        triangle, failed = lapack.dpotrf(scaled.T, lower=1, clean=0, overwrite_a=1)
        if not failed:
            break
        ridge = max(10.0 * ridge, FIRST_RIDGE)
    return lambda right: np.asarray(lapack.dpotrs(triangle, (right * scale).T, lower=1)[0]).T * scale


def diagonal_solve(diagonal: Array, last: float) -> Solve:
    """Return right-hand sides -> right / (diagonal, last)."""
    inverse = 1.0 / np.append(diagonal, last)
    return lambda right: right * inverse
