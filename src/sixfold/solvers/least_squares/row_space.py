"""Least squares with more columns than rows, solved in the space of the rows.

With B = sqrt(q) (X - mean) and t = sqrt(q) (y - mean), the minimiser of |t - B w|^2 / 2 + l2 |w|^2 / 2 is

    w = B' a,    (K + l2 I) a = t,    K = B B'  (rows x rows)

and for l2 = 0 it is the shortest of the many w that fit best. K comes from one pass over the columns: with
any row subtracted first, K is centred afterwards by multiplying with I - 1 q' from both sides, so nothing is
copied.

*Certificate.* With e = t - (K + l2 I) a what the solution leaves of the equations, the duality gap at the
residuals is e'K e / (2 l2); for l2 = 0 it is half the square of the residual's projection on the columns, or
the objective itself if that is smaller.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.certificate import Certificate
from sixfold.data.blocks import Block, Blocks
from sixfold.risk.problem import Problem, normalized_weights
from sixfold.solvers.base import Solution
from sixfold.solvers.linalg import EPS
from sixfold.solvers.threads import single_threaded_blas

Array = NDArray[Any]

# Of K, the square of that of X: six digits, and one step of refinement for the rest.
ROW_CHOLESKY_CONDITION = 1e10


@dataclass(frozen=True)
class RowSpace:
    """A wide problem seen from its rows: products K, targets t and how to come back to w and b."""

    problem: Problem
    block: Block
    dtype: Any
    q: Array
    K: Array
    target: Array
    mean_y: Array

    @classmethod
    def of(cls, problem: Problem, blocks: Blocks, budget: Budget) -> RowSpace:
        """Return the problem as seen from its rows."""
        block = blocks.whole()
        q, Y = normalized_weights(block, blocks), np.asarray(block.y, dtype=np.float64)
        mean_y = q @ Y if problem.fit_intercept else np.zeros(Y.shape[1])
        root_q = np.sqrt(q)[:, None]
        K = _row_products(block, problem.fit_intercept, budget)
        if problem.fit_intercept:
            Kq = K @ q
            K = K - Kq[:, None] - Kq[None, :] + q @ Kq
        K, target = root_q * K * root_q.T, root_q * (Y - mean_y)
        if not (np.isfinite(K).all() and np.isfinite(target).all()):
            raise FloatingPointError("the products of the rows are not finite")
        return cls(problem, block, blocks.dtype, q, K, target, mean_y)

    @property
    def root_q(self) -> Array:
        """sqrt(q) as a column."""
        return np.sqrt(self.q)[:, None]

    def weights(self, a: Array) -> Array:
        """Return w = B'a; centring drops out, since a is orthogonal to sqrt(q)."""
        return np.asarray(self.block.X.T @ (self.root_q * a), dtype=np.float64)

    def intercept(self, w: Array) -> Array:
        """Return the best b for these w."""
        return self.fit(w)[0]

    def fit(self, w: Array) -> tuple[Array, Array]:
        """Return the best b for these w, as the data's type holds it, and sqrt(q) (y - b - w.x)."""
        scores = np.asarray(self.block.X @ w, dtype=np.float64)
        b = self.mean_y - self.q @ scores if self.problem.fit_intercept else np.zeros(w.shape[1])
        b = b.astype(self.dtype).astype(np.float64)
        return b, np.asarray(self.root_q * (np.asarray(self.block.y, dtype=np.float64) - scores - b))

    def ridge_gap(self, left: Array) -> float:
        """Return e'K e / (2 l2), the duality gap where e is left of the equations for a."""
        return float(np.sum(left * (self.K @ left))) / (2.0 * self.problem.l2)


def solve_in_row_space(problem: Problem, blocks: Blocks, budget: Budget) -> Solution:
    """Return the solution of a wide problem, the shortest one if there are many."""
    rows = RowSpace.of(problem, blocks, budget)
    with single_threaded_blas(blocks.n_rows):
        a, condition = _cholesky(rows, rows.target)
        if a is None:
            return _by_singular_values(rows, blocks, budget)
        w = rows.weights(a)
        if problem.l2 > 0:
            gap = rows.ridge_gap(rows.target - rows.K @ a - problem.l2 * a)
            return _certified(rows, blocks, w, "Cholesky in the row space", condition, gap, budget)
        # What the rounding of K left of the residual is solved for once more.
        again, _ = _cholesky(rows, rows.fit(w)[1])
        w = w if again is None else w + rows.weights(again)
        return _certified(rows, blocks, w, "Cholesky in the row space", condition, None, budget)


def _row_products(block: Block, centred: bool, budget: Budget) -> Array:
    """Return the products of all pairs of rows, the first row subtracted from all where centring follows."""
    X = block.X
    if not isinstance(X, np.ndarray):
        return np.asarray((X @ X.T).toarray(), dtype=np.float64)
    n, d = X.shape
    gram = np.empty((n + 1, n + 1))
    origin = np.asarray(X[0] if centred else np.zeros(d), dtype=np.float64)
    empty = np.empty((d, 0), X.dtype)
    if not core.moments(X.T, empty, None, np.zeros(n), origin, gram, np.inf, budget.flag):
        raise KeyboardInterrupt
    return gram[:n, :n]


def _cholesky(rows: RowSpace, target: Array) -> tuple[Array | None, float]:
    """Return a with (K + l2 I) a = target and the condition of B; None where too few digits would be left.

    Centring takes the direction sqrt(q) out of K. The target has no part in it, so giving it the average
    eigenvalue makes the matrix definite and leaves a as it is.
    """
    size = rows.K.shape[0]
    matrix = rows.K.copy()
    if rows.problem.fit_intercept:
        matrix += np.trace(matrix) / max(size - 1, 1) * (rows.root_q * rows.root_q.T)
    matrix.flat[:: size + 1] += rows.problem.l2
    norm = float(np.abs(matrix).sum(axis=0).max(initial=0.0))
    factor, info = lapack.dpotrf(matrix, lower=1, overwrite_a=1)
    if info != 0 or norm == 0:
        return None, np.inf
    reciprocal, _ = lapack.dpocon(factor, norm, uplo="L")
    condition = float(1.0 / max(reciprocal, 1e-300))
    if condition > ROW_CHOLESKY_CONDITION:
        return None, condition
    a, _ = lapack.dpotrs(factor, target, lower=1)
    return a, float(np.sqrt(condition))


def _by_singular_values(rows: RowSpace, blocks: Blocks, budget: Budget) -> Solution:
    """Return the solution from the singular values of the centred rows: for rows that nearly repeat."""
    X = rows.block.X
    X = np.asarray(X if isinstance(X, np.ndarray) else X.toarray(), dtype=np.float64)
    B = rows.root_q * (X - rows.q @ X if rows.problem.fit_intercept else X)
    U, singular, V = np.linalg.svd(B, full_matrices=False)
    noise = max(B.shape) * EPS * max(singular.max(initial=0.0), EPS * float(np.abs(X).max(initial=0.0)))
    kept = singular > noise
    U, singular, V = U[:, kept], singular[kept, None], V[kept]
    l2 = rows.problem.l2
    w = V.T @ (singular * (U.T @ rows.target) / (singular**2 + l2))
    left = rows.target - B @ w
    if l2 == 0:
        gap = 0.5 * float(np.square(U.T @ left).sum())
    else:
        gap = rows.ridge_gap(U @ (U.T @ left - l2 * (V @ w) / singular))
    condition = float(singular[0, 0] / singular[-1, 0]) if singular.size else 1.0
    rank = int(kept.sum())
    return _certified(rows, blocks, w, "singular values", condition, gap, budget, rank)


def _certified(
    rows: RowSpace,
    blocks: Blocks,
    w: Array,
    how: str,
    condition: float,
    gap: float | None,
    budget: Budget,
    rank: int | None = None,
) -> Solution:
    """Return the solution with its certificate; without a gap of its own, the objective bounds it."""
    problem = rows.problem
    w = w.astype(rows.dtype).astype(np.float64)
    b, residual = rows.fit(w)
    square = np.square(residual).sum(axis=0)
    objective = 0.5 * float(square.sum()) + 0.5 * problem.l2 * float(np.square(w).sum())
    at_zero = float((rows.q @ np.asarray(rows.block.y, dtype=np.float64) ** 2).sum())
    scale = 0.5 * float(np.square(rows.target).sum()) + 0.5e-30 * at_zero
    if rows.dtype != np.float64:
        gap = problem.gap(w, b, blocks)  # the coefficients were rounded after they were solved for
    rank = blocks.n_rows - int(problem.fit_intercept) if rank is None else rank
    many = (
        f"{blocks.n_columns} columns but only {blocks.n_rows} row{'s' * (blocks.n_rows != 1)}, so many "
        "coefficients fit equally well: the shortest were chosen"
    )
    notes = (many,) if problem.l2 == 0 else ()
    details = {"condition": condition, "rank": rank}
    gap = objective if gap is None else min(gap, objective)
    certificate = Certificate("least squares", objective, gap, scale, budget.tol, details, notes=notes)
    budget.record(objective, certificate.gap, scale)
    return Solution(w, b, certificate, how, rank=rank)
