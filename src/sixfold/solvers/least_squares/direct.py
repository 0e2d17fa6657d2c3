"""Least squares without iteration: the normal equations, and what it takes to make their answer exact.

    minimise  sum_i q_i |y_i - b - w.x_i|^2 / 2 + l2 |w|^2 / 2

Of three methods, tall data take the first whose condition estimate says that the digits are there:

1. one pass for the moments, Cholesky of the scaled moment matrix (condition up to 20: nothing is lost);
2. the same factor, with residuals in double-double arithmetic fed back until the coefficients stand still
   (up to 1e3, or to 1e6 where QR would be costly);
3. Householder QR of the rows with column pivoting, and the same refinement.

Dependent columns are found by the third, with how they follow from the others, and of all best
coefficients the shortest are returned. Wide data (more columns than rows) are solved in the row space, see
:mod:`sixfold.solvers.least_squares.row_space`.

*Certificate.* With slope g of the objective and A = R'R its second-moment matrix, the objective lies exactly
|R^-T g|^2 / 2 above its minimum; with a penalty the duality gap |g|^2 / (2 l2), which anyone can recompute,
is stated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.certificate import Certificate
from sixfold.data.blocks import Block, Blocks
from sixfold.risk.problem import Problem
from sixfold.solvers.base import Solution
from sixfold.solvers.least_squares.factors import TriangularFactor, cholesky_factor, pivoted_factor, qr_factor
from sixfold.solvers.least_squares.moments import Moments, block_moments
from sixfold.solvers.least_squares.row_space import solve_in_row_space
from sixfold.solvers.linalg import EPS
from sixfold.solvers.threads import single_threaded_blas

Array = NDArray[Any]

EXACT_CONDITION = 20.0  # cond^2 eps below 1e-13: Cholesky has every digit that counts
CHOLESKY_CONDITION = 1e3  # standard errors from Cholesky keep cond^2 eps = 1e-10
CHOLESKY_CONDITION_LARGE = 1e6  # refinement still converges; 8 times cheaper than QR at 20,000 x 50
LARGE_QR = 1e8  # rows times squared columns from which QR costs a second or more
MAX_SPARSE_SIDE = 4000  # the smaller side of a sparse table up to which its dense moment matrix is formed
CANCELLED = 1e-4  # residual share from which subtracting it from the variance of y costs too many digits
CHEAP_REFINEMENT = 1 << 16  # entries of a table on which refinement costs less than a millisecond
WORTH_MENTIONING = 1e4  # condition from which the certificate speaks of digits


@dataclass(frozen=True, kw_only=True)
class DirectSolution(Solution):
    """A solution with what its standard errors and singular values are computed from.

    Attributes
    ----------
    factor : TriangularFactor
        Of the second moments.
    moments : Moments
    square : ndarray of shape (targets,)
        The mean squared residual of each target.
    """

    factor: TriangularFactor
    moments: Moments
    square: Array


class LeastSquares:
    """Direct solution of least squares with no penalty or the squared one."""

    name: ClassVar[str] = "direct"
    needs: ClassVar[tuple[str, ...]] = ("gradient",)
    notices_nonfinite: ClassVar[bool] = True

    def objection(self, problem: Problem) -> str | None:
        """Return why this solver cannot minimise the problem, or None."""
        if problem.loss.name != "squared":
            return "the direct solution exists for the squared loss only"
        if problem.penalty.positive:
            return "it cannot keep the coefficients positive"
        if problem.l1 > 0:
            return "a penalty with absolute values has no direct solution"
        return None

    def suits(self, problem: Problem, blocks: Blocks) -> bool:
        """Return whether a dense matrix of the smaller side is affordable."""
        return not blocks.sparse or min(blocks.n_rows, blocks.n_columns) <= MAX_SPARSE_SIDE

    def solve(self, problem: Problem, blocks: Blocks, budget: Budget) -> Solution:
        """Minimise the problem."""
        if blocks.n_columns >= blocks.n_rows:
            return solve_in_row_space(problem, blocks, budget)
        moments = blocks.reduce(lambda block: block_moments(block, budget.flag), Moments.__add__)
        with single_threaded_blas(blocks.n_columns):
            return solve_moments(problem, moments, budget, blocks)


def solve_moments(
    problem: Problem, moments: Moments, budget: Budget, blocks: Blocks | None = None
) -> DirectSolution:
    """Return the solution from the moments; with the rows at hand too, to full accuracy."""
    A, c, y2 = moments.second(problem.fit_intercept)
    if not all(np.isfinite(part).all() for part in (A, c, y2)):
        raise FloatingPointError("the moments are not finite")
    mean = moments.mean[: moments.n_columns] if problem.fit_intercept else np.zeros(moments.n_columns)
    scale = _column_scale(A, moments, problem)
    method, factor, refine = _choose_factor(A, scale, mean, problem, moments, blocks)
    fit = _Fit(problem, moments, factor, A, c, y2)
    w = factor.solve(c)
    b = fit.intercept(w)
    left = float(np.sum(y2 - np.sum(w * c, axis=0)))
    if left < CANCELLED * float(y2.sum()) or moments.rows * moments.n_columns < CHEAP_REFINEMENT:
        refine = True
    rows = blocks if refine else None
    if rows is not None:
        w, b = _refine(fit, w, b, rows, budget)
    shortest = factor.shortest(w)
    b = b + (fit.mean_x @ (w - shortest) if problem.fit_intercept else 0.0)
    w, b = (shortest, b) if blocks is None else (blocks.rounded(shortest), blocks.rounded(b))
    return _solution(fit, w, b, f"{method} with refinement" if rows else method, budget, rows)


@dataclass(frozen=True)
class _Fit:
    """One problem with its moments and their factor, as the steps of the solution pass it on."""

    problem: Problem
    moments: Moments
    factor: TriangularFactor
    A: Array
    c: Array
    y2: Array

    @property
    def mean_x(self) -> Array:
        return self.moments.mean[: self.moments.n_columns]

    @property
    def mean_y(self) -> Array:
        return self.moments.mean[self.moments.n_columns :]

    def intercept(self, w: Array) -> Array:
        if not self.problem.fit_intercept:
            return np.zeros(w.shape[1])
        return self.mean_y - self.mean_x @ w


def _column_scale(A: Array, moments: Moments, problem: Problem) -> Array:
    """Return the length of each column, its plain size where only rounding is left after centring."""
    length = np.sqrt(np.maximum(np.diag(A), 0.0))
    size = np.sqrt(length**2 + moments.mean[: moments.n_columns] ** 2) if problem.fit_intercept else length
    constant = length <= 8 * EPS * size
    return np.where(constant, np.where(size > 0, size, 1.0), length)


def _choose_factor(
    A: Array, scale: Array, mean: Array, problem: Problem, moments: Moments, blocks: Blocks | None
) -> tuple[str, TriangularFactor, bool]:
    """Return the first method that is accurate enough, its factor, and whether to refine the solution."""
    d = scale.size
    penalised = A + problem.l2 * np.eye(d) if problem.l2 > 0 else A
    # A column that rounding alone keeps from being constant must not be scaled up to length 1.
    factor = cholesky_factor(penalised) if np.all(1.1 * np.diag(penalised) > scale**2) else None
    condition = np.inf if factor is None else factor.condition
    if factor is not None and condition <= EXACT_CONDITION:
        return "Cholesky", factor, False
    rows_at_hand = blocks is not None and not blocks.sparse
    cheap_qr = rows_at_hand and moments.rows * d * d <= LARGE_QR
    if factor is not None and condition <= (CHOLESKY_CONDITION if cheap_qr else CHOLESKY_CONDITION_LARGE):
        return "Cholesky", factor, True
    if blocks is not None and rows_at_hand:
        return "QR", qr_factor(blocks, mean, scale, problem.l2), True
    return "eigenvalues", _eigen_factor(penalised, scale, moments.rows), True


def _eigen_factor(A: Array, scale: Array, n_rows: int) -> TriangularFactor:
    """Return the factor where only the moments are at hand: half the digits, and dependence is seen later."""
    values, vectors = np.linalg.eigh(A / np.outer(scale, scale))
    kept = values > 1e-13 * scale.size * values[-1:]
    triangle = np.zeros_like(A)
    triangle[: kept.sum()] = np.sqrt(values[kept])[:, None] * vectors[:, kept].T
    return pivoted_factor(triangle, scale, n_rows)


def _refine(fit: _Fit, w: Array, b: Array, blocks: Blocks, budget: Budget) -> tuple[Array, Array]:
    """Return w and b after feeding back extra-precise residuals until they stand still."""
    before = np.inf
    for _ in range(12):
        slope, mean_residual, _ = residual_slope(fit, w, b, blocks, budget)
        step = fit.factor.solve(slope)
        scale = fit.factor.scale[:, None]
        size = float(np.max(np.abs(step) * scale, initial=0.0))
        # A correction that no longer shrinks is made of rounding alone.
        if not size < 0.5 * before:
            break
        w = w + step
        b = b + mean_residual - (fit.mean_x @ step if fit.problem.fit_intercept else 0.0)
        before = size
        # Each correction shrinks the error as much as the first one was small: the next is below rounding.
        if size <= np.sqrt(EPS) * float(np.max(np.abs(w) * scale, initial=0.0)):
            break
    return w, b


def residual_slope(
    fit: _Fit, w: Array, b: Array, blocks: Blocks, budget: Budget
) -> tuple[Array, Array, Array]:
    """Return minus the slope in w (after the best b), the mean residual, and the mean squared residual."""

    def slope_of(block: Block) -> Array:
        return np.stack([_block_slope(block, k, w[:, k], b[k], budget) for k in range(w.shape[1])], axis=1)

    sums = blocks.reduce(slope_of, np.add) / fit.moments.weight
    slope, mean_residual, square = sums[:-2], sums[-2], sums[-1]
    if fit.problem.fit_intercept:
        slope = slope - np.outer(fit.mean_x, mean_residual)
    else:
        mean_residual = np.zeros_like(mean_residual)
    return slope - fit.problem.l2 * w, mean_residual, square


def _block_slope(block: Block, target: int, w: Array, b: float, budget: Budget) -> Array:
    """Return sum weight r (x, 1, r) of one block for one target."""
    d = w.size
    out = np.empty(d + 2)
    weight = block.float64_weight
    if isinstance(block.X, np.ndarray):
        slope = out[:-1]
        done, out[-1] = core.residual_slope(
            block.X, block.y, target, weight, np.ascontiguousarray(w), float(b), slope, np.inf, budget.flag
        )
        if not done:
            raise KeyboardInterrupt
        return out
    residual = np.asarray(block.y[:, target], dtype=np.float64) - b - block.X @ w
    weighted = residual if weight is None else weight * residual
    out[:d], out[d], out[d + 1] = block.X.T @ weighted, weighted.sum(), weighted @ residual
    return out


def _solution(
    fit: _Fit, w: Array, b: Array, how: str, budget: Budget, blocks: Blocks | None
) -> DirectSolution:
    """Certify the parameters, by another pass over the rows if they were refined, else from the moments."""
    problem, moments = fit.problem, fit.moments
    if blocks is not None:
        slope, off, square = residual_slope(fit, w, b, blocks, budget)
    else:
        slope = fit.c - fit.A @ w - problem.l2 * w
        off = fit.intercept(w) - b
        square = fit.y2 - 2 * np.sum(w * fit.c, axis=0) + np.sum(w * (fit.A @ w), axis=0) + off**2
        square = np.maximum(square, 0.0)
    penalty = 0.5 * problem.l2 * float(np.square(w).sum())
    objective = 0.5 * float(square.sum()) + penalty
    left = slope / np.sqrt(problem.l2) if problem.l2 > 0 else fit.factor.half_solve(slope)
    gap = 0.5 * float(np.square(left).sum()) + 0.5 * float(np.square(off).sum())
    at_zero = fit.y2 + (moments.mean[moments.n_columns :] ** 2 if problem.fit_intercept else 0.0)
    scale = 0.5 * float(fit.y2.sum()) + 0.5e-30 * float(at_zero.sum())
    details, notes = _details(fit, fit.factor.condition)
    certificate = Certificate(
        kind="least squares",
        objective=objective,
        gap=min(gap, objective),
        scale=scale,
        tolerance=budget.tol,
        details=details,
        notes=notes,
        rounding=_moment_rounding(fit, w) if blocks is None else 0.0,
    )
    budget.record(objective, certificate.gap, scale)
    return DirectSolution(
        w, b, certificate, how, rank=fit.factor.rank, factor=fit.factor, moments=moments, square=square
    )


def _moment_rounding(fit: _Fit, w: Array) -> float:
    """Return how far the objective may be off that was put together from y2 - 2 w.c + w'A w.

    The sums over n rows behind an entry of A are rounded by sqrt(n) eps of the lengths of its two columns.
    """
    length = np.sqrt(np.maximum(np.diag(fit.A), 0.0))
    size = np.square(np.sqrt(fit.y2) + length @ np.abs(w)).sum()
    return float((8.0 + np.sqrt(fit.moments.rows) + length.size) * EPS * size)


def _details(fit: _Fit, condition: float) -> tuple[dict[str, Any], tuple[str, ...]]:
    digits = float(np.clip(-np.log10(EPS * condition), 0.0, 15.9))
    notes = []
    if condition > WORTH_MENTIONING:
        notes.append(
            f"condition number {condition:.0e}: with data rounded to 16 digits, about {digits:.0f} "
            "digits of the coefficients can be trusted"
        )
    rank, columns = fit.factor.rank, fit.factor.scale.size
    if rank < columns:
        notes.append(f"rank {rank} of {columns}: the shortest of all best coefficients")
    return {"condition": condition, "digits": digits, "rank": rank}, tuple(notes)
