"""Least squares with more columns than rows, solved in the space of the rows.

With B = sqrt(q) (X - mean) and t = sqrt(q) (y - mean), the minimiser of |t - B w|^2 / 2 + l2 |w|^2 / 2 is

    w = B' a,    (K + l2 I) a = t,    K = B B'  (rows x rows)

and for l2 = 0 it is the shortest of the many w that fit best. K comes from one pass over the columns: with
any row subtracted first, K is centred afterwards by multiplying with I - 1 q' from both sides, so nothing is
copied. Residuals of the rows themselves are fed back once or twice, which wins back what K lost.

K takes rows^2 columns / 2 multiplications, a product with it 2 rows columns. With a penalty and far more
columns than rows conjugate gradients need few of them (:func:`may_descend`): of 1,000 x 10,000 nine, 26 ms
where K takes 170. They read B in single precision; what that leaves is seen in double precision and fed back.

*Certificate.* With sum_i sqrt(q_i) a_i = 0, u_i = -l2 a_i / sqrt(q_i) is a dual point, which the model keeps,
and with the residuals r

    R - min R  <=  |sqrt(q) r - l2 a|^2 / 2 + l2 |w - B' a|^2 / 2.

Without penalty rows that are independent are fitted exactly, and the objective, next to nothing, bounds its
own gap. Where rows repeat, the gap is that of the columns that are independent (:mod:`sixfold.risk.rank`).
"""

from __future__ import annotations

import math
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
from sixfold.data.column_means import ColumnMeans
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
# Of B: Cholesky loses its square times eps, and twelve digits are left without another pass over the rows.
EXACT_CONDITION = 100.0
RESOLVED = 1e-11  # the least singular value by the largest that plain units can tell from rounding
CORRECTIONS = 3
# Of conjugate gradients, where K is not formed: rows of K that cost as much as two steps, restarts from a
# residual in double precision, and what single precision can reach.
ROWS_A_STEP = 24
USUAL_GOAL = 1e-4  # of the length of t, before any step is made
RESTARTS = 6
SINGLE_GOAL = 1e-5
MOST_PANEL_VALUES = 1 << 28  # 1 GB
REST = 0.3  # of the tolerance: where steps end


@dataclass(frozen=True)
class RowSpace:
    """A wide problem seen from its rows: targets t, products K, and how to come back to w and b.

    ``panels`` are the centred columns in single precision, where they were asked for.
    """

    problem: Problem
    block: Block
    blocks: Blocks
    q: Array
    mean: Array
    square: Array
    mean_y: Array
    target: Array
    budget: Budget
    panels: Array | None = None

    @classmethod
    def of(cls, problem: Problem, blocks: Blocks, budget: Budget, in_panels: bool = False) -> RowSpace:
        """Return the problem as seen from its rows."""
        block, d = blocks.whole(), blocks.n_columns
        q, Y = normalized_weights(block, blocks), np.asarray(block.y, dtype=np.float64)
        mean, square, mean_y, panels = np.zeros(d), np.zeros(d), np.zeros(Y.shape[1]), None
        if isinstance(block.X, np.ndarray):
            panels = np.empty(core.panel_entries(*block.X.shape), np.float32) if in_panels else None
            if not core.centre_rows(block.X, q, problem.fit_intercept, mean, square, panels, budget.flag):
                raise KeyboardInterrupt
        else:
            mean = np.asarray(q @ block.X, dtype=np.float64) if problem.fit_intercept else mean
            square = np.asarray(q @ block.X.multiply(block.X), dtype=np.float64)
        if problem.fit_intercept:
            mean_y = Y[0] + q @ (Y - Y[0])
        target = np.sqrt(q)[:, None] * (Y - mean_y)
        if not (np.isfinite(square).all() and np.isfinite(target).all()):
            raise FloatingPointError("the squares of the columns are not finite")
        return cls(problem, block, blocks, q, mean, square, mean_y, target, budget, panels)

    def system(self) -> Array:
        """Return K + l2 I, K = B B'; centred, with a share of its average eigenvalue along sqrt(q).

        Centring takes that direction out of K. The target has no part in it, so that the share makes the
        matrix definite and leaves a as it is.
        """
        products = _row_products(self.block, self.problem.fit_intercept, self.budget)
        n, Kq, rest = len(products), np.zeros(len(products)), 0.0
        if self.problem.fit_intercept:
            Kq = products @ self.q
            rest = float(self.q @ Kq)
            trace = float(self.q @ (np.diagonal(products) - 2.0 * Kq + rest))
            rest += trace / max(n - 1, 1)
        # One matrix that is changed in place: each new one of 1,000 rows would take 3 ms.
        K = products - Kq[:, None]
        K -= Kq - rest
        K *= self.root_q
        K *= self.root_q.T
        if not np.isfinite(K).all():
            raise FloatingPointError("the products of the rows are not finite")
        K.flat[:: n + 1] += self.problem.l2
        return K

    @cached_property
    def root_q(self) -> Array:
        """sqrt(q) as a column."""
        return np.sqrt(self.q)[:, None]

    @cached_property
    def scale(self) -> float:
        """The objective of the constant model, and what rounding leaves of that of a constant target."""
        Y = np.asarray(self.block.y, dtype=np.float64)
        return 0.5 * float(np.square(self.target).sum()) + 0.5e-30 * float((self.q @ Y**2).sum())

    @property
    def rank_limit(self) -> int:
        """The most independent rows there can be."""
        return int(np.count_nonzero(self.q)) - int(self.problem.fit_intercept)

    def model(self, a: Array) -> tuple[Array, Array]:
        """Return w = B'a and (x - mean).w for every row."""
        v = self.root_q * a
        if isinstance(self.block.X, np.ndarray):
            return self._products(np.ascontiguousarray(v.T), np.empty((a.shape[1], self.mean.size)))
        w = np.asarray(self.block.X.T @ v - np.outer(self.mean, v.sum(axis=0)), dtype=np.float64)
        return w, self.scores(w)

    def scores(self, w: Array) -> Array:
        """Return (x - mean).w for every row."""
        if isinstance(self.block.X, np.ndarray):
            return self._products(None, np.array(w.T, dtype=np.float64, order="C"))[1]
        return np.asarray(self.block.X @ w, dtype=np.float64) - self.mean @ w

    def _products(self, v: Array | None, w: Array) -> tuple[Array, Array]:
        scores = np.empty((w.shape[0], self.q.size))
        if not core.centred_products(self.block.X, self.mean, v, w, scores, self.budget.flag):
            raise KeyboardInterrupt
        return w.T, scores.T

    def fit(self, w: Array, scores: Array) -> tuple[Array, Array]:
        """Return the best b for these w, as the data's type holds it, and sqrt(q) (y - b - w.x)."""
        residual = np.asarray(self.block.y, dtype=np.float64) - self.mean_y - scores
        if not self.problem.fit_intercept:
            return np.zeros(w.shape[1]), np.asarray(self.root_q * residual)
        # y - b - w.x = (y - mean_y) - w.(x - mean) + (mean_y - w.mean - b)
        at_mean = self.mean_y.astype(np.longdouble) - self.mean.astype(np.longdouble) @ w
        b = self.blocks.rounded((at_mean + self.q @ residual).astype(np.float64))
        return b, np.asarray(self.root_q * (residual + (at_mean - b).astype(np.float64)))

    def means(self) -> Means:
        """Return what bounds the rounding of sums over the rows."""
        Y = np.asarray(self.block.y, dtype=np.float64)
        size = np.sqrt(np.concatenate([self.square, self.q @ np.square(Y - self.mean_y)]))
        return Means(
            rows=self.q.size,
            n_columns=self.mean.size,
            weight=self.blocks.weight_sum,
            mean=np.concatenate([self.mean, self.mean_y]),
            size=size,
            rounding=(self.q.size + 16.0) * UNIT,
        )


@dataclass(frozen=True, kw_only=True)
class RowSolution(Solution):
    """A solution by conjugate gradients, and the rows as they were read, for a factor that goes on."""

    rows: RowSpace


def solve_in_row_space(
    problem: Problem, blocks: Blocks, budget: Budget, start: Solution | None = None
) -> Solution:
    """Return the solution of a wide problem, the shortest one if there are many."""
    rows = start.rows if isinstance(start, RowSolution) else RowSpace.of(problem, blocks, budget)
    with single_threaded_blas(blocks.n_rows):
        factor, condition = _cholesky(rows)
        if factor is None:
            return _by_singular_values(rows, budget)
        a = _balanced(rows, lapack.dpotrs(factor, rows.target, lower=1)[0])
        w, scores = rows.model(a)
        # Without penalty the residuals themselves are what the model can be told from the best one by.
        exact = condition <= EXACT_CONDITION and problem.l2 > 0
        for _ in range(0 if exact else CORRECTIONS):
            left = rows.fit(w, scores)[1] - problem.l2 * a
            change = _balanced(rows, lapack.dpotrs(factor, left, lower=1)[0])
            moved = float(np.linalg.norm(change)) / max(float(np.linalg.norm(a)), 1e-300)
            if not moved > EPS:
                break
            a = a + change
            w, scores = rows.model(a)
            if moved <= np.sqrt(EPS):  # each shrinks as much as the first was small: the next is rounding
                break
        how = "Cholesky in the row space"
        if problem.l2 > 0:
            return _penalised(_Evaluated.of(rows, w, scores), rows, w, a, how, budget, condition=condition)
        return _interpolated(_Evaluated.of(rows, w, scores), rows, how, condition, budget)


def descend_in_row_space(problem: Problem, blocks: Blocks, budget: Budget) -> Solution:
    """Return the solution of a wide problem with a penalty by conjugate gradients, K never formed.

    Each target is followed until its own part of the gap, |t - (K + l2 I) a|^2 / 2, is within the tolerance.
    Where one would take longer than K takes, which three steps tell, the rows are handed on.
    """
    rows = RowSpace.of(problem, blocks, budget, in_panels=True)
    n, d, most = blocks.n_rows, blocks.n_columns, most_steps(blocks)
    a, left, steps, reached = np.zeros_like(rows.target), rows.target, 0, True
    goal = REST * budget.tol * np.square(rows.target).sum() / max(rows.target.shape[1], 1)
    root_q = np.ascontiguousarray(rows.root_q[:, 0])
    for _ in range(RESTARTS):
        sizes = np.square(left).sum(axis=0)
        for k in np.flatnonzero(sizes > goal):
            rest, change = left[:, k].copy(), np.empty(n)
            wanted = max(math.sqrt(goal / sizes[k]), SINGLE_GOAL)
            taken, reached, stopped = core.descend_rows(
                rows.panels, d, root_q, problem.fit_intercept, problem.l2, wanted, most, rest, change,
                budget.flag,
            )  # fmt: skip
            if stopped:
                raise KeyboardInterrupt
            a[:, k] += change
            steps += taken
            if not reached:
                break
        if not reached and not budget.exhausted():
            return _handed_on(rows, budget, steps)
        a = _balanced(rows, a)
        w, scores = rows.model(a)
        at = _Evaluated.of(rows, w, scores)
        left = at.residual - problem.l2 * a
        if not reached or not (np.square(left).sum(axis=0) > goal).any():
            break
    found = _penalised(at, rows, w, a, "conjugate gradients in the row space", budget, steps)
    return RowSolution(**vars(found), rows=rows)


def _handed_on(rows: RowSpace, budget: Budget, steps: int) -> RowSolution:
    """Return the constant model for a factor to go on from: a better one would be certified for nothing.

    No objective is negative, so that it bounds its own gap.
    """
    targets = rows.target.shape[1]
    at = _Evaluated.of(rows, np.zeros((rows.mean.size, targets)), np.zeros((rows.q.size, targets)))
    objective, rounding = (float(part.sum()) for part in at.objective())
    certificate = Certificate(
        "least squares", objective, objective, rows.scale, budget.tol, rounding=2.0 * rounding
    )
    how = "conjugate gradients in the row space"
    return RowSolution(at.w, at.b, certificate, how, steps, rows=rows)


def may_descend(problem: Problem, blocks: Blocks) -> bool:
    """Return whether conjugate gradients in the row space may cost less than K."""
    n, d = blocks.n_rows, blocks.n_columns
    if blocks.sparse or blocks.streamed or not (problem.l2 > 0 and 0 < n < d and n * d <= MOST_PANEL_VALUES):
        return False
    # Of columns that are independent and alike, a step leaves sqrt(n / d) of what there was.
    return 2.0 * math.log(USUAL_GOAL) / math.log(n / d) <= most_steps(blocks)


def most_steps(blocks: Blocks) -> int:
    """Return after how many steps for each target conjugate gradients have cost half of what K costs."""
    return blocks.n_rows // (ROWS_A_STEP * blocks.n_targets)


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
    """Return the factor of K + l2 I and the condition of B; None where too few digits would be left."""
    matrix = rows.system().T
    norm = float(lapack.dlange("1", matrix))
    factor, info = lapack.dpotrf(matrix, lower=1, clean=0, overwrite_a=1)
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
        left = rows.fit(w, rows.scores(w))[1] - l2 * a
        along = U.T @ left
        if l2 > 0:
            a = _balanced(rows, a + U @ (along / (singular**2 + l2)))
            w = rows.model(a)[0]
        else:
            w = w + (V.T @ (along / singular)) / unit[:, None]
    if l2 > 0:
        return _penalised(_Evaluated.of(rows, w), rows, w, a, "singular values", budget, condition=condition)
    assert space is not None
    if space.rank == rows.rank_limit:
        return _interpolated(_Evaluated.of(rows, w), rows, "singular values", condition, budget)
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
    def of(cls, rows: RowSpace, w: Array, scores: Array | None = None) -> _Evaluated:
        rounded = rows.blocks.rounded(w)
        if scores is None or not np.array_equal(rounded, w):
            scores = rows.scores(rounded)
        w = rounded
        b, residual = rows.fit(w, scores)
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

    def objective(self) -> tuple[Array, Array]:
        """Return the objective of each target, what rounding may have taken from it included, and that."""
        n, norm = self.residual.shape[0], np.linalg.norm(self.residual, axis=0)
        rounding = (norm + self.residual_error) * self.residual_error
        rounding += (2 * n + 16) * UNIT * norm**2 + (self.w.shape[0] + 8) * UNIT * self.penalty
        rounding += UNDERFLOW * (self.residual.any(axis=0) | self.w.any(axis=0))
        return 0.5 * norm**2 + self.penalty + rounding, rounding

    def certificate(
        self, rows: RowSpace, above: Array | None, budget: Budget, details: Any, notes: Any, restricted: Any
    ) -> Certificate:
        """Return the certificate; without a gap of their own, the objectives bound it."""
        objective, rounding = self.objective()
        gap = objective if above is None else np.minimum(above + 2.0 * rounding, objective)
        certificate = Certificate(
            kind="least squares",
            objective=float(objective.sum()),
            gap=float(gap.sum()),
            scale=rows.scale,
            tolerance=budget.tol,
            details=details,
            notes=(*notes, *restricted),
            rounding=2.0 * float(rounding.sum()),
            unrestricted_bound=0.0 if restricted else None,
        )
        if not certificate.converged:  # Of a model that reaches every target, the rows may tell more.
            known = rows.problem.certify_zero(self.w, self.b, rows.blocks, rows.scale, budget.tol)
            if known.gap < certificate.gap:
                certificate = replace(
                    certificate, objective=known.objective, gap=known.gap, rounding=known.rounding
                )
        budget.record(certificate.objective, certificate.gap, rows.scale)
        return certificate


def _penalised(
    at: _Evaluated, rows: RowSpace, w: Array, a: Array, how: str, budget: Budget, steps: int = 1, **known: Any
) -> Solution:
    l2, n = rows.problem.l2, rows.q.size
    size = np.linalg.norm(a, axis=0)
    # a is balanced but for rounding, and B'a is rounded as well.
    error = at.residual_error + (n + 8) * UNIT * l2 * size
    moved = np.linalg.norm(at.w - w, axis=0) + (2 * n + 16) * UNIT * np.sqrt(rows.square.sum()) * size
    left = np.linalg.norm(at.residual - l2 * a, axis=0) + error
    above = 0.5 * np.square(left) + 0.5 * l2 * np.square(moved)
    certificate = at.certificate(rows, above, budget, {**known, "rank": rows.rank_limit}, (), ())
    counted = rows.q[:, None] > 0
    dual = np.divide(-l2 * a, rows.root_q, out=np.zeros_like(a), where=counted)
    means = ColumnMeans(rows.mean, int(np.count_nonzero(counted)), rows.blocks.weight_sum)
    return Solution(
        at.w, at.b, certificate, how, steps, dual=dual, rank=rows.rank_limit,
        means=means if rows.problem.fit_intercept else None,
    )  # fmt: skip


def _interpolated(at: _Evaluated, rows: RowSpace, how: str, condition: float, budget: Budget) -> Solution:
    rank = rows.rank_limit
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
