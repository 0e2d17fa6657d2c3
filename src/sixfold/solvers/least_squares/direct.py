"""Least squares without iteration: the normal equations, and what it takes to make their answer exact.

    minimise  sum_i q_i |y_i - b - w.x_i|^2 / 2 + l2 |w|^2 / 2

Of three methods, tall data take the first whose condition estimate says that the digits are there:

1. one pass for the moments, Cholesky of the scaled moment matrix (condition up to 20: nothing is lost);
2. the same factor, with residuals in double-double arithmetic fed back until the coefficients stand still
   (up to 1e3; where QR would be costly, for as long as the factor is certain);
3. Householder QR of the rows with column pivoting, and the same refinement.

Dependent columns are found by the third (:mod:`sixfold.risk.rank`), with how they follow from the others, and
of all best coefficients the shortest are returned. Wide data (more columns than rows) are solved in the row
space, see :mod:`sixfold.solvers.least_squares.row_space`.

*Certificate.* With slope g of the objective and A = R'R its second-moment matrix, the objective lies exactly
|R^-T g|^2 / 2 above its minimum; with a penalty the duality gap |g|^2 / (2 l2), which anyone can recompute,
is stated. g is known up to |e|, and R up to a share ``lost`` of itself, so that in exact arithmetic it is at
most

    (|R^-T g| + |R^-1| |e|)^2 / (2 (1 - lost)^2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.certificate import Certificate
from sixfold.data.blocks import Blocks
from sixfold.risk.problem import Problem
from sixfold.risk.rank import LAST_DIGITS, ColumnSpace, column_space, inverse_norm
from sixfold.solvers.base import Solution
from sixfold.solvers.least_squares.factors import cholesky_factor, factor_of_moments, penalised_factor
from sixfold.solvers.least_squares.moments import UNIT, Moments, block_moments
from sixfold.solvers.least_squares.row_space import solve_in_row_space
from sixfold.solvers.least_squares.slopes import SecondMoments, Slope
from sixfold.solvers.linalg import EPS
from sixfold.solvers.threads import single_threaded_blas

Array = NDArray[Any]

EXACT_CONDITION = 20.0  # cond^2 eps below 1e-13: Cholesky has every digit that counts
CHOLESKY_CONDITION = 1e3  # standard errors from Cholesky keep cond^2 eps = 1e-10
LARGE_QR = 1e8  # rows times squared columns from which QR costs a second or more
CERTAIN = 0.1  # of a factor that may be lost for it to be used
MAX_SPARSE_SIDE = 4000  # the smaller side of a sparse table up to which its dense moment matrix is formed
CANCELLED = 1e-6  # residual share from which subtracting it from the variance of y costs too many digits
CHEAP_REFINEMENT = 1 << 16  # entries of a table on which refinement costs less than a millisecond
SMALL_SHARE = 1e-2  # of the tolerance: a gap from the moments below this needs no pass over the rows
WORTH_MENTIONING = 1e4  # condition from which the certificate speaks of digits


@dataclass(frozen=True, kw_only=True)
class DirectSolution(Solution):
    """A solution with what its standard errors and singular values are computed from.

    Attributes
    ----------
    factor : ColumnSpace
        Of the second moments.
    moments : Moments
    square : ndarray of shape (targets,)
        The mean squared residual of each target.
    """

    factor: ColumnSpace
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
    second = SecondMoments.of(problem, moments)
    method, factor = _choose_factor(second, blocks)
    w = factor.solve(second.c)
    b = second.intercept(w)
    if blocks is None:
        w, b = _shortest(second, factor, w, b)
        return _solution(second, factor, w, b, second.slope_at(w, b), method, budget)
    if method == "Cholesky" and factor.condition <= EXACT_CONDITION:
        rounded, rounded_b = blocks.rounded(w), blocks.rounded(b)
        at = second.slope_at(rounded, rounded_b)
        if _moments_suffice(second, factor, at, budget.tol):
            return _solution(second, factor, rounded, rounded_b, at, method, budget)
    w, b, at = _refine(second, factor, w, b, blocks, budget)
    return _solution(second, factor, w, b, at, f"{method} with refinement", budget)


def _choose_factor(second: SecondMoments, blocks: Blocks | None) -> tuple[str, ColumnSpace]:
    """Return the first method that is accurate enough, and its factor."""
    factor = cholesky_factor(second)
    if factor is not None and factor.lost <= CERTAIN:
        dense = blocks is not None and not blocks.sparse
        cheap_qr = dense and second.moments.rows * second.d**2 <= LARGE_QR
        if not cheap_qr or factor.condition <= CHOLESKY_CONDITION:
            return "Cholesky", factor
    if blocks is None or (blocks.sparse and second.problem.l2 > 0):
        return "pivoted Cholesky", factor_of_moments(second)
    if second.problem.l2 > 0:
        return "QR", penalised_factor(blocks, second)
    return "QR", column_space(blocks, second.problem.fit_intercept)


def _moments_suffice(second: SecondMoments, factor: ColumnSpace, at: Slope, tol: float) -> bool:
    """Return whether a large table need not be read again: its moments have the digits that are asked for."""
    if second.moments.rows * second.d < CHEAP_REFINEMENT:
        return False
    some_left = float(at.square.sum()) >= CANCELLED * float(second.y2.sum())
    return some_left and _good_enough(second, factor, at, tol)


def _good_enough(second: SecondMoments, factor: ColumnSpace, at: Slope, tol: float) -> bool:
    """Return whether the gap, rounding included, is far below the tolerance."""
    gap = float((_gaps(second.problem, factor, at) + at.square_error).sum())
    return gap <= SMALL_SHARE * tol * 0.5 * float(second.y2.sum())


def _refine(
    second: SecondMoments, factor: ColumnSpace, w: Array, b: Array, blocks: Blocks, budget: Budget
) -> tuple[Array, Array, Slope]:
    """Return w, b and the slope there, after feeding back precise residuals until they stand still."""
    scale, before = factor.scale[:, None], np.inf
    for _ in range(12):
        at = second.slope_on(blocks, w, b, budget)
        step = factor.solve(at.slope)
        size = float(np.max(np.abs(step) * scale, initial=0.0))
        # A correction that no longer shrinks is made of rounding alone.
        if not size < 0.5 * before:
            step[:], size = 0.0, 0.0
        centred = second.problem.fit_intercept and size > 0
        moved, moved_b = w + step, b + (at.off - second.mean_x @ step if centred else 0.0)
        # Each correction shrinks the error as much as the first one was small: the next is below rounding.
        if size <= np.sqrt(EPS) * float(np.max(np.abs(moved) * scale, initial=0.0)):
            break
        w, b, before = moved, moved_b, size
    else:
        at = second.slope_on(blocks, w, b, budget)
    if factor.dependent.size:
        w, b = _shortest(second, factor, moved, moved_b)
        w, b = blocks.rounded(w), blocks.rounded(b)
        return w, b, second.slope_on(blocks, w, b, budget)
    moved, moved_b = blocks.rounded(moved), blocks.rounded(moved_b)
    found = second.moved(at, moved - w, moved_b - b, moved)
    if not _good_enough(second, factor, found, budget.tol):
        found = second.slope_on(blocks, moved, moved_b, budget)
    return moved, moved_b, found


def _shortest(second: SecondMoments, factor: ColumnSpace, w: Array, b: Array) -> tuple[Array, Array]:
    """Return the shortest w that predict the same, and their b."""
    shortest = factor.shortest(w)
    return shortest, b + (second.mean_x @ (w - shortest) if second.problem.fit_intercept else 0.0)


def _gaps(problem: Problem, factor: ColumnSpace, at: Slope) -> Array:
    """Return how far each target is above its minimum at most, the rounding of the slope included."""
    of_b = 0.5 * np.square(np.abs(at.off) + at.off_error)
    if problem.l2 > 0:
        return 0.5 * np.square(np.abs(at.slope) + at.slope_error).sum(axis=0) / problem.l2 + of_b
    if factor.lost > 0.5:
        return np.full(at.off.shape, np.inf)
    kept = factor.kept
    norm = inverse_norm(factor.R)
    error = np.linalg.norm(at.slope_error[kept] / factor.scale[kept, None], axis=0)
    # Dividing by R is rounded as well, by the sizes of both.
    left = np.linalg.norm(factor.half_solve(at.slope), axis=0) * (1.0 + kept.size * EPS * norm)
    return 0.5 * np.square((left + norm * error) / (1.0 - factor.lost)) + of_b


def _solution(
    second: SecondMoments, factor: ColumnSpace, w: Array, b: Array, at: Slope, how: str, budget: Budget
) -> DirectSolution:
    """Return the solution with its certificate."""
    problem, moments = second.problem, second.moments
    penalty = 0.5 * problem.l2 * np.square(w).sum(axis=0)
    rounding = 0.5 * at.square_error + (w.shape[0] + 8) * UNIT * penalty + 4 * UNIT * at.square
    objective = 0.5 * at.square + penalty + rounding
    gap = np.minimum(_gaps(problem, factor, at) + 2.0 * rounding, objective)
    at_zero = second.y2 + (second.mean_y**2 if problem.fit_intercept else 0.0)
    scale = 0.5 * float(second.y2.sum()) + 0.5e-30 * float(at_zero.sum())
    details, notes = _details(factor)
    inexact = factor.dependent[~factor.exact] if problem.l2 == 0 else np.arange(0)
    if inexact.size:
        notes = (*notes, LAST_DIGITS.format(", ".join(map(str, inexact[:10]))))
    certificate = Certificate(
        kind="least squares",
        objective=float(objective.sum()),
        gap=float(gap.sum()),
        scale=scale,
        tolerance=budget.tol,
        details=details,
        notes=notes,
        rounding=2.0 * float(rounding.sum()),
        unrestricted_bound=0.0 if inexact.size else None,
    )
    budget.record(certificate.objective, certificate.gap, scale)
    return DirectSolution(
        w, b, certificate, how, rank=factor.rank, factor=factor, moments=moments, square=at.square
    )


def _details(factor: ColumnSpace) -> tuple[dict[str, Any], tuple[str, ...]]:
    condition = factor.condition
    digits = float(np.clip(-np.log10(EPS * condition), 0.0, 15.9))
    notes = []
    if condition > WORTH_MENTIONING:
        notes.append(
            f"condition number {condition:.0e}: with data rounded to 16 digits, about {digits:.0f} "
            "digits of the coefficients can be trusted"
        )
    rank, columns = factor.rank, factor.scale.size
    if rank < columns:
        notes.append(f"rank {rank} of {columns}: the shortest of all best coefficients")
    return {"condition": condition, "digits": digits, "rank": rank}, tuple(notes)
