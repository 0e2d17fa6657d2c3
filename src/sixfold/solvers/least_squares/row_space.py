"""Least squares with more columns than rows, solved in the space of the rows.

With B = sqrt(q) (X - mean) and t = sqrt(q) (y - mean), the minimiser of |t - B w|^2 / 2 + l2 |w|^2 / 2 is

    w = B' a,    (K + l2 I) a = t,    K = B B'  (rows x rows)

and for l2 = 0 it is the shortest of the many w that fit best. K comes from one pass over the columns: with
any row subtracted first, K is centred afterwards by multiplying with I - 1 q' from both sides, so nothing is
copied. Residuals of the rows themselves are fed back once or twice, which wins back what K lost.

*Certificate.* With sum_i sqrt(q_i) a_i = 0, u_i = -l2 a_i / sqrt(q_i) is a dual point, which the model keeps,
and with the residuals r

    R - min R  <=  |sqrt(q) r - l2 a|^2 / 2 + l2 |w - B' a|^2 / 2.

Without penalty rows that are independent are fitted exactly, and the objective, next to nothing, bounds its
own gap. Where rows repeat, the gap is that of the columns that are independent (:mod:`sixfold.risk.rank`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.certificate import Certificate
from sixfold.data.blocks import Block, Blocks
from sixfold.risk.problem import Problem, normalized_weights
from sixfold.risk.rank import ColumnSpace, column_space
from sixfold.risk.rounding import UNDERFLOW
from sixfold.solvers.base import Solution
from sixfold.solvers.least_squares.certified import gaps, restriction
from sixfold.solvers.least_squares.moments import UNIT, Means
from sixfold.solvers.least_squares.slopes import slope_on
from sixfold.solvers.linalg import EPS
from sixfold.solvers.threads import single_threaded_blas

Array = NDArray[Any]

# Of K, the square of that of X: six digits, and one step of refinement for the rest.
ROW_CHOLESKY_CONDITION = 1e10
RESOLVED = 1e-11  # the least singular value by the largest that plain units can tell from rounding
CORRECTIONS = 3
COLUMNS = 1 << 16  # entries of X that are centred at a time, in the L2 cache


@dataclass(frozen=True)
class RowSpace:
    """A wide problem seen from its rows: products K, targets t and how to come back to w and b."""

    problem: Problem
    block: Block
    blocks: Blocks
    q: Array
    mean: Array
    mean_y: Array
    K: Array
    target: Array

    @classmethod
    def of(cls, problem: Problem, blocks: Blocks, budget: Budget) -> RowSpace:
        """Return the problem as seen from its rows."""
        block = blocks.whole()
        q, Y = normalized_weights(block, blocks), np.asarray(block.y, dtype=np.float64)
        mean, mean_y = np.zeros(blocks.n_columns), np.zeros(Y.shape[1])
        K = _row_products(block, problem.fit_intercept, budget)
        if problem.fit_intercept:
            mean = np.asarray(q @ block.X, dtype=np.float64)
            mean_y = Y[0] + q @ (Y - Y[0])
            Kq = K @ q
            K = K - Kq[:, None] - Kq[None, :] + q @ Kq
        root_q = np.sqrt(q)[:, None]
        K, target = root_q * K * root_q.T, root_q * (Y - mean_y)
        if not (np.isfinite(K).all() and np.isfinite(target).all()):
            raise FloatingPointError("the products of the rows are not finite")
        return cls(problem, block, blocks, q, mean, mean_y, K, target)

    @property
    def root_q(self) -> Array:
        """sqrt(q) as a column."""
        return np.sqrt(self.q)[:, None]

    @property
    def rank_limit(self) -> int:
        """The most independent rows there can be."""
        return int(np.count_nonzero(self.q)) - int(self.problem.fit_intercept)

    def weights(self, a: Array) -> Array:
        """Return w = B'a."""
        v = self.root_q * a
        if not isinstance(self.block.X, np.ndarray):
            return np.asarray(self.block.X.T @ v - np.outer(self.mean, v.sum(axis=0)), dtype=np.float64)
        w = np.empty((self.mean.size, a.shape[1]))
        for some, X in self._centred():
            w[some] = X.T @ v
        return w

    def scores(self, w: Array) -> Array:
        """Return (x - mean).w for every row."""
        if not isinstance(self.block.X, np.ndarray):
            return np.asarray(self.block.X @ w, dtype=np.float64) - self.mean @ w
        total = np.zeros((self.q.size, w.shape[1]))
        for some, X in self._centred():
            total += X @ w[some]
        return total

    def _centred(self) -> Any:
        """Go through the columns of X - mean, some at a time and all in the same room.

        New room for each made a fit of 300 x 2,000 take a quarter longer: new pages are filled with zeros.
        """
        n, d = self.block.X.shape
        step = max(COLUMNS // max(n, 1), 1)
        for first in range(0, d, step):
            some = slice(first, first + step)
            part = self.block.X[:, some]
            room = self._room[: part.size].reshape(part.shape)
            yield some, np.subtract(part, self.mean[some], out=room)

    @cached_property
    def _room(self) -> Array:
        return np.empty(max(COLUMNS, self.block.X.shape[0]))

    def intercept(self, w: Array) -> Array:
        """Return the best b for these w."""
        return self.fit(w)[0]

    def fit(self, w: Array) -> tuple[Array, Array]:
        """Return the best b for these w, as the data's type holds it, and sqrt(q) (y - b - w.x)."""
        residual = np.asarray(self.block.y, dtype=np.float64) - self.mean_y - self.scores(w)
        if not self.problem.fit_intercept:
            return np.zeros(w.shape[1]), np.asarray(self.root_q * residual)
        # y - b - w.x = (y - mean_y) - w.(x - mean) + (mean_y - w.mean - b)
        at_mean = self.mean_y.astype(np.longdouble) - self.mean.astype(np.longdouble) @ w
        b = self.blocks.rounded((at_mean + self.q @ residual).astype(np.float64))
        return b, np.asarray(self.root_q * (residual + (at_mean - b).astype(np.float64)))

    def means(self) -> Means:
        """Return what bounds the rounding of sums over the rows."""
        Y = np.asarray(self.block.y, dtype=np.float64)
        squares = np.zeros(self.mean.size)
        if isinstance(self.block.X, np.ndarray):
            for some, X in self._centred():
                squares[some] = self.q @ np.square(X, out=X)
        else:
            squares = np.asarray(self.q @ self.block.X.multiply(self.block.X), dtype=np.float64)
        size = np.sqrt(np.concatenate([squares, self.q @ np.square(Y - self.mean_y)]))
        return Means(
            rows=self.q.size,
            n_columns=self.mean.size,
            weight=self.blocks.weight_sum,
            mean=np.concatenate([self.mean, self.mean_y]),
            size=size,
            rounding=(self.q.size + 16.0) * UNIT,
        )


def solve_in_row_space(problem: Problem, blocks: Blocks, budget: Budget) -> Solution:
    """Return the solution of a wide problem, the shortest one if there are many."""
    rows = RowSpace.of(problem, blocks, budget)
    with single_threaded_blas(blocks.n_rows):
        factor, condition = _cholesky(rows)
        if factor is None:
            return _by_singular_values(rows, budget)
        a = _balanced(rows, lapack.dpotrs(factor, rows.target, lower=1)[0])
        w = rows.weights(a)
        for _ in range(CORRECTIONS):
            left = rows.fit(w)[1] - problem.l2 * a
            change = _balanced(rows, lapack.dpotrs(factor, left, lower=1)[0])
            moved = float(np.linalg.norm(change)) / max(float(np.linalg.norm(a)), 1e-300)
            if not moved > EPS:
                break
            a = a + change
            w = rows.weights(a)
            if moved <= np.sqrt(EPS):  # each shrinks as much as the first was small: the next is rounding
                break
        how = "Cholesky in the row space"
        if problem.l2 > 0:
            return _penalised(rows, w, a, how, condition, budget)
        return _interpolated(rows, w, how, condition, budget)


def _balanced(rows: RowSpace, a: Array) -> Array:
    """Return a with sum_i sqrt(q_i) a_i = 0 where there is an intercept."""
    return a - rows.root_q * (rows.root_q.T @ a) if rows.problem.fit_intercept else a


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


def _cholesky(rows: RowSpace) -> tuple[Array | None, float]:
    """Return the factor of K + l2 I and the condition of B; None where too few digits would be left.

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
    return factor, float(np.sqrt(condition))


def _by_singular_values(rows: RowSpace, budget: Budget) -> Solution:
    """Return the solution from the singular values of the centred rows: for rows that (nearly) repeat.

    Where columns are so different in size that rounding of the largest hides the others, they are scaled to
    one length first, and the coefficients are the shortest of the scaled columns.
    """
    l2 = rows.problem.l2
    X = rows.block.X
    X = np.asarray(X if isinstance(X, np.ndarray) else X.toarray(), dtype=np.float64)
    B = rows.root_q * (X - rows.mean)
    space = column_space(rows.blocks, rows.problem.fit_intercept) if l2 == 0 else None
    rank = min(B.shape) if space is None else space.rank
    unit = np.ones(B.shape[1])
    U, singular, V = np.linalg.svd(B, full_matrices=False)
    if space is not None and rank and singular[rank - 1] <= RESOLVED * singular[0]:
        unit = space.scale
        U, singular, V = np.linalg.svd(B / unit, full_matrices=False)
    U, singular, V = U[:, :rank], singular[:rank, None], V[:rank]
    condition = float(singular[0, 0] / singular[-1, 0]) if singular.size else 1.0
    w, a = np.zeros((X.shape[1], rows.target.shape[1])), np.zeros_like(rows.target)
    for _ in range(CORRECTIONS):
        left = rows.fit(w)[1] - l2 * a
        along = U.T @ left
        if l2 > 0:
            a = _balanced(rows, a + U @ (along / (singular**2 + l2)))
            w = rows.weights(a)
        else:
            w = w + (V.T @ (along / singular)) / unit[:, None]
    if l2 > 0:
        return _penalised(rows, w, a, "singular values", condition, budget)
    assert space is not None
    if space.rank == rows.rank_limit:
        return _interpolated(rows, w, "singular values", condition, budget, space)
    return _repeated(rows, w, space, condition, budget)


@dataclass(frozen=True)
class _Evaluated:
    """A model as the data's type holds it, sqrt(q) r, and what rounding may have done to it, one a target."""

    w: Array
    b: Array
    residual: Array
    residual_error: Array
    penalty: Array

    @classmethod
    def of(cls, rows: RowSpace, w: Array) -> _Evaluated:
        w = rows.blocks.rounded(w)
        b, residual = rows.fit(w)
        means = rows.means()
        n, d = rows.q.size, w.shape[0]
        size, size_y = np.split(means.size, [d])
        terms = size_y + size @ np.abs(w)
        # With an intercept the mean need not be known: what it is off by is part of b.
        of_means = np.abs(means.mean[:d]) @ np.abs(w) + np.abs(rows.mean_y) + np.abs(b)
        error = (d + n + 16) * UNIT * terms
        if rows.problem.fit_intercept:
            error += (d + 8) * float(np.finfo(np.longdouble).eps) * of_means
        if not isinstance(rows.block.X, np.ndarray):
            error += (d + 8) * UNIT * of_means
        return cls(w, b, residual, error, 0.5 * rows.problem.l2 * np.square(w).sum(axis=0))

    def certificate(
        self, rows: RowSpace, above: Array | None, budget: Budget, details: Any, notes: Any, restricted: Any
    ) -> Certificate:
        """Return the certificate; without a gap of their own, the objectives bound it."""
        n, norm = rows.q.size, np.linalg.norm(self.residual, axis=0)
        value = 0.5 * norm**2 + self.penalty
        rounding = (norm + self.residual_error) * self.residual_error
        rounding += (2 * n + 16) * UNIT * norm**2 + (self.w.shape[0] + 8) * UNIT * self.penalty
        rounding += UNDERFLOW * (self.residual.any(axis=0) | self.w.any(axis=0))
        objective = value + rounding
        gap = objective if above is None else np.minimum(above + 2.0 * rounding, objective)
        Y = np.asarray(rows.block.y, dtype=np.float64)
        scale = 0.5 * float(np.square(rows.target).sum()) + 0.5e-30 * float((rows.q @ Y**2).sum())
        certificate = Certificate(
            kind="least squares",
            objective=float(objective.sum()),
            gap=float(gap.sum()),
            scale=scale,
            tolerance=budget.tol,
            details=details,
            notes=(*notes, *restricted),
            rounding=2.0 * float(rounding.sum()),
            unrestricted_bound=0.0 if restricted else None,
        )
        if not certificate.converged:  # Of a model that reaches every target, the rows may tell more.
            known = rows.problem.certify_zero(self.w, self.b, rows.blocks, scale, budget.tol)
            if known.gap < certificate.gap:
                certificate = replace(
                    certificate, objective=known.objective, gap=known.gap, rounding=known.rounding
                )
        budget.record(certificate.objective, certificate.gap, scale)
        return certificate


def _penalised(rows: RowSpace, w: Array, a: Array, how: str, condition: float, budget: Budget) -> Solution:
    at, l2, n = _Evaluated.of(rows, w), rows.problem.l2, rows.q.size
    size = np.linalg.norm(a, axis=0)
    # a is balanced but for rounding, and B'a is rounded as well.
    error = at.residual_error + (n + 8) * UNIT * l2 * size
    moved = np.linalg.norm(at.w - w, axis=0) + (2 * n + 8) * UNIT * np.sqrt(np.trace(rows.K)) * size
    left = np.linalg.norm(at.residual - l2 * a, axis=0) + error
    above = 0.5 * np.square(left) + 0.5 * l2 * np.square(moved)
    details = {"condition": condition, "rank": rows.rank_limit}
    certificate = at.certificate(rows, above, budget, details, (), ())
    counted = rows.q[:, None] > 0
    dual = np.divide(-l2 * a, rows.root_q, out=np.zeros_like(a), where=counted)
    return Solution(at.w, at.b, certificate, how, dual=dual, rank=rows.rank_limit)


def _interpolated(
    rows: RowSpace, w: Array, how: str, condition: float, budget: Budget, space: ColumnSpace | None = None
) -> Solution:
    at, rank = _Evaluated.of(rows, w), rows.rank_limit
    certificate = at.certificate(rows, None, budget, {"condition": condition, "rank": rank}, _many(rows), ())
    return Solution(at.w, at.b, certificate, how, rank=rank)


def _repeated(rows: RowSpace, w: Array, space: ColumnSpace, condition: float, budget: Budget) -> Solution:
    at = _Evaluated.of(rows, w)
    slope = slope_on(rows.problem, rows.blocks, rows.means(), at.w, (at.b, np.zeros_like(at.b)), budget)
    details = {"condition": condition, "rank": space.rank}
    certificate = at.certificate(
        rows, gaps(space, at.w, slope), budget, details, _many(rows), restriction(space)
    )
    return Solution(at.w, at.b, certificate, "singular values", rank=space.rank)


def _many(rows: RowSpace) -> tuple[str, ...]:
    n = rows.q.size
    many = f"{rows.mean.size} columns but only {n} row{'s' * (n != 1)}, so many coefficients fit equally well"
    return (f"{many}: the shortest were chosen",)
