"""Least squares with more columns than rows, solved in the space of the rows.

With B = sqrt(q) (X - mean) and t = sqrt(q) (y - mean), the minimiser of |t - B w|^2 / 2 + l2 |w|^2 / 2 is

    w = B' a,    (K + l2 I) a = t,    K = B B'  (rows x rows)

and for l2 = 0 it is the shortest of the many w that fit best. K comes from one pass over the columns: with any row
subtracted first, K is centred afterwards by multiplying with I - 1 q' from both sides, so nothing is copied.

*Certificate.* u = -l2 a / sqrt(q) is dual feasible for w = B'a, so the gap is |t - (K + l2 I) a|^2 / 2; for
l2 = 0 the bound is what projecting the residual on the columns leaves, or the objective itself if that is smaller.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.certificate import Certificate
from sixfold.data.blocks import Block, Blocks
from sixfold.errors import IncompatibleError
from sixfold.risk.problem import Problem
from sixfold.solvers.base import Solution
from sixfold.solvers.roots import EPS

Array = NDArray[Any]

CHOLESKY_CONDITION = 1e10  # of K, the square of that of X: five digits are left to the refinement


def solve_in_row_space(problem: Problem, blocks: Blocks, budget: Budget) -> Solution:
    """Return the solution of a wide problem, the shortest one if there are many."""
    block = _whole(blocks)
    q = np.full(blocks.n_rows, 1.0) if block.weight is None else np.asarray(block.weight, dtype=np.float64)
    q = q / blocks.weight_sum
    K = _row_products(block, problem.fit_intercept, budget)
    Y = np.asarray(block.y, dtype=np.float64)
    mean_y = q @ Y if problem.fit_intercept else np.zeros(Y.shape[1])
    if problem.fit_intercept:
        Kq = K @ q
        K = K - Kq[:, None] - Kq[None, :] + q @ Kq
    root_q = np.sqrt(q)
    K = root_q[:, None] * K * root_q
    target = root_q[:, None] * (Y - mean_y)
    if not (np.isfinite(K).all() and np.isfinite(target).all()):
        raise FloatingPointError("the products of the rows are not finite")
    a, how, condition = _solve_rows(K, target, problem.l2, root_q if problem.fit_intercept else None)
    if a is None:
        return _by_singular_values(problem, block, blocks, q, mean_y, budget)
    w = np.asarray(block.X.T @ (root_q[:, None] * a), dtype=np.float64)
    if problem.l2 == 0:
        # One step of refinement: what the rounding of K left of the residual is solved for again.
        left = root_q[:, None] * (Y - mean_y - _centred_scores(block, w, q, problem.fit_intercept)[0])
        more, _, _ = _solve_rows(K, left, 0.0, root_q if problem.fit_intercept else None)
        w = w if more is None else w + np.asarray(block.X.T @ (root_q[:, None] * more))
        gap_rows = None
    else:
        gap_rows = target - K @ a - problem.l2 * a
    return _certified(problem, block, blocks, q, mean_y, w, how, condition, gap_rows, budget)


def _whole(blocks: Blocks) -> Block:
    """Return all rows as one block: a wide table has few of them."""
    parts = list(blocks)
    if len(parts) == 1:
        return parts[0]
    if blocks.sparse:
        import scipy.sparse as sp

        X: Any = sp.vstack([part.X for part in parts], format="csr")
    else:
        X = np.concatenate([part.X for part in parts])
    weights = [part.weight for part in parts if part.weight is not None]
    weight = np.concatenate(weights) if weights else None
    return Block(X, np.concatenate([part.y for part in parts]), weight, 0)


def _row_products(block: Block, centred: bool, budget: Budget) -> Array:
    """Return the products of all pairs of rows, the first row subtracted from all where centring follows."""
    X = block.X
    if not isinstance(X, np.ndarray):
        return np.asarray((X @ X.T).toarray(), dtype=np.float64)
    n, d = X.shape
    gram = np.empty((n + 1, n + 1))
    origin = np.asarray(X[0] if centred else np.zeros(d), dtype=np.float64)
    finished = core.moments(X.T, np.empty((d, 0), X.dtype), None, np.zeros(n), origin, gram, np.inf, budget.flag)
    if not finished:
        raise KeyboardInterrupt
    return gram[:n, :n]


def _solve_rows(K: Array, target: Array, l2: float, null: Array | None) -> tuple[Array | None, str, float]:
    """Return a with (K + l2 I) a = target by Cholesky, or None where too few digits would be left.

    ``null`` is the direction sqrt(q) that centring takes out of K. The target has no part in it, so giving it
    the average eigenvalue makes the matrix definite and leaves a as it is.
    """
    size = K.shape[0]
    matrix = K.copy()
    if null is not None:
        matrix += np.trace(K) / max(size - 1, 1) * np.outer(null, null)
    matrix.flat[:: size + 1] += l2
    norm = float(np.abs(matrix).sum(axis=0).max(initial=0.0))
    factor, info = lapack.dpotrf(matrix, lower=1, overwrite_a=1)
    if info != 0 or norm == 0:
        return None, "", np.inf
    reciprocal, _ = lapack.dpocon(factor, norm, uplo="L")
    condition = float(1.0 / max(reciprocal, 1e-300))
    if condition > CHOLESKY_CONDITION:
        return None, "", condition
    a, _ = lapack.dpotrs(factor, target, lower=1)
    return a, "Cholesky in the row space", float(np.sqrt(condition))


def _centred_scores(block: Block, w: Array, q: Array, centred: bool) -> tuple[Array, Array]:
    """Return X w less its mean, and the mean."""
    scores = np.asarray(block.X @ w, dtype=np.float64)
    mean = q @ scores if centred else np.zeros(w.shape[1])
    return scores - mean, mean


def _by_singular_values(
    problem: Problem, block: Block, blocks: Blocks, q: Array, mean_y: Array, budget: Budget
) -> Solution:
    """Return the solution from the singular values of the centred rows: for rows that nearly repeat."""
    X = block.X.toarray() if not isinstance(block.X, np.ndarray) else block.X
    X = np.asarray(X, dtype=np.float64)
    root_q = np.sqrt(q)[:, None]
    rows = root_q * (X - q @ X if problem.fit_intercept else X)
    target = root_q * (np.asarray(block.y, dtype=np.float64) - mean_y)
    U, singular, V = np.linalg.svd(rows, full_matrices=False)
    kept = singular > max(rows.shape) * EPS * max(singular.max(initial=0.0), EPS * np.abs(X).max(initial=0.0))
    U, singular, V = U[:, kept], singular[kept], V[kept]
    w = V.T @ ((singular[:, None] * (U.T @ target)) / (singular[:, None] ** 2 + problem.l2))
    condition = float(singular[0] / singular[-1]) if singular.size else 1.0
    left = target - rows @ w
    gap_rows = U @ (U.T @ left) if problem.l2 == 0 else left - problem.l2 * (U @ ((V @ w) / singular[:, None]))
    return _certified(
        problem, block, blocks, q, mean_y, w, "singular values", condition, gap_rows, budget, int(kept.sum())
    )


def _certified(
    problem: Problem,
    block: Block,
    blocks: Blocks,
    q: Array,
    mean_y: Array,
    w: Array,
    how: str,
    condition: float,
    gap_rows: Array | None,
    budget: Budget,
    rank: int | None = None,
) -> Solution:
    w = w.astype(blocks.dtype).astype(np.float64)
    centred, mean_score = _centred_scores(block, w, q, problem.fit_intercept)
    b = (mean_y - mean_score).astype(blocks.dtype).astype(np.float64)
    Y = np.asarray(block.y, dtype=np.float64)
    residual = Y - centred - mean_score - b
    objective = 0.5 * float((q @ residual**2).sum()) + 0.5 * problem.l2 * float(np.square(w).sum())
    scale = 0.5 * float((q @ (Y - mean_y) ** 2).sum()) + 0.5e-30 * float((q @ Y**2).sum())
    gap = objective if gap_rows is None else 0.5 * float(np.square(gap_rows).sum())
    if blocks.dtype != np.float64:
        gap = problem.gap(w, b, blocks)  # the coefficients were rounded after they were solved for
    rank = blocks.n_rows - problem.fit_intercept if rank is None else rank
    notes = []
    if problem.l2 == 0:
        notes.append(
            f"{blocks.n_columns} columns but only {blocks.n_rows} rows, so many coefficients fit equally well: "
            "the shortest were chosen"
        )
    certificate = Certificate(
        kind="least squares",
        objective=objective,
        gap=min(gap, objective),
        scale=scale,
        tolerance=budget.tol,
        details={"condition": condition, "rank": rank, "notes": notes},
    )
    budget.record(objective, certificate.gap, scale)
    details = {"rank": rank, "square": float((q @ residual**2).sum())}
    return Solution(w, b, certificate, how, 1, details)
