"""Least squares without iteration: the normal equations, and what it takes to make their answer exact.

    minimise  sum_i q_i |y_i - b - w.x_i|^2 / 2 + l2 |w|^2 / 2

With R the factor of the moments of columns scaled to length 1, of three methods tall data take the first of
which |R^-1| (Frobenius) says that the digits are there:

1. one pass for the moments, and Cholesky of them (up to 100: twelve digits);
2. the same factor, with residuals in double-double arithmetic fed back until the coefficients stand still
   (up to 1e3; with a penalty, or where QR would be costly, for as long as the factor is certain);
3. Householder QR of the rows with column pivoting, and the same refinement.

What Cholesky loses grows with |R^-1|^2. The condition number in sums of absolute values is larger than that
by up to the number of columns: of 10,000 rows with 100 columns it was 3,082 where |R^-1| is 62 and standard
errors are right to 12 digits.

Dependent columns are found by the third (:mod:`sixfold.risk.rank`), with how they follow from the others, and
of all best coefficients the shortest are returned. Wide data (more columns than rows) are solved in the row
space, see :mod:`sixfold.solvers.least_squares.row_space`.

*Certificate.* With slope g of the objective and A = R'R its second-moment matrix, the objective lies exactly
|R^-T g|^2 / 2 above its minimum; with a penalty the duality gap |g|^2 / (2 l2), which anyone can recompute,
is stated. What rounding adds to both is worked out in :mod:`sixfold.solvers.least_squares.certified`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.certificate import Certificate
from sixfold.data.blocks import Blocks
from sixfold.risk.problem import Problem
from sixfold.risk.rank import ColumnSpace, beyond_doubt, column_space, independent_columns
from sixfold.solvers.base import Solution
from sixfold.solvers.least_squares.certified import (
    duality_gaps,
    gaps,
    objectives,
    restriction,
    unrounded_slopes,
)
from sixfold.solvers.least_squares.conjugate_gradient import MAX_SPARSE_SIDE
from sixfold.solvers.least_squares.factors import cholesky_factor, factor_of_moments, penalised_factor
from sixfold.solvers.least_squares.moment_fit import DONE, STOPPED, certify, moment_fit
from sixfold.solvers.least_squares.moments import Moments, block_moments
from sixfold.solvers.least_squares.row_space import may_descend, solve_in_row_space
from sixfold.solvers.least_squares.slopes import SecondMoments, Slope, slope_on
from sixfold.solvers.linalg import EPS
from sixfold.solvers.threads import single_threaded_blas

Array = NDArray[Any]

# Of R^-1: Cholesky loses its square times eps, 2e-12 of the coefficients at most. A pass in doubled precision
# for the last digits took half of a fit of 10,000 x 10.
EXACT_NORM = 100.0
CHOLESKY_NORM = 1e3  # standard errors from Cholesky are off by |R^-1|^2 eps = 1e-10
LARGE_QR = 1e8  # rows times squared columns from which QR costs a second or more
# One native call: of more columns LAPACK's factor is as fast, and of so many rows a pass is all that counts.
MOST_FACTORED, MOST_VALUES = 128, 1 << 24
CERTAIN = 0.1  # of a factor that may be lost for it to be used
CANCELLED = 1e-6  # residual share from which subtracting it from the variance of y costs too many digits
SMALL_SHARE = 1e-2  # of the tolerance: a gap from the moments below this needs no pass over the rows
DUAL_ROUNDED = 1e-3  # of a gap
LAST_DIGIT_STEPS = 1 << 12  # of one coefficient, that are tried to make up for the rounding of the intercept
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

    def rescues(self, problem: Problem, blocks: Blocks) -> bool:
        """Return whether it is to go on where conjugate gradients end short."""
        return (blocks.sparse and self.suits(problem, blocks)) or may_descend(problem, blocks)

    def solve(
        self, problem: Problem, blocks: Blocks, budget: Budget, start: Solution | None = None
    ) -> Solution:
        """Minimise the problem; of ``start`` a factor can use what was read of the rows."""
        n, d = blocks.n_rows, blocks.n_columns
        small = d <= MOST_FACTORED and n * d <= MOST_VALUES and not (blocks.sparse or blocks.streamed)
        # With a penalty few columns are factored in one native call, whatever the number of rows.
        if d >= n and not (small and problem.l2 > 0):
            return solve_in_row_space(problem, blocks, budget, start)
        if small:
            return _solve_at_once(problem, blocks, budget)
        moments = blocks.reduce(partial(block_moments, flag=budget.flag), Moments.__add__)
        with single_threaded_blas(blocks.n_columns):
            return solve_moments(problem, moments, budget, blocks)


def _solve_at_once(problem: Problem, blocks: Blocks, budget: Budget) -> DirectSolution:
    """Return the solution by one native call where Cholesky keeps every digit; else that of its moments."""
    fit = moment_fit(problem, blocks, budget)
    if fit.end == STOPPED:
        raise KeyboardInterrupt
    moments, penalised = fit.moments, problem.l2 > 0
    if fit.end == DONE and fit.lost <= CERTAIN and fit.inverse_norm <= EXACT_NORM:
        factor = independent_columns(fit.R, fit.scale, fit.lost, fit.inverse_norm)
        plain = np.hypot(moments.size, moments.mean)[: moments.n_columns]
        square, y2 = fit.figures[:, 2], fit.figures[:, 0]
        some_left = float(square.sum()) >= CANCELLED * float(y2.sum())
        if some_left and (penalised or beyond_doubt(factor, plain, float(np.finfo(blocks.dtype).eps))):
            details, notes = _details(factor, _rank(problem, factor, moments))
            certificate = certify(
                problem, fit, "least squares", budget, SMALL_SHARE, details=details, notes=notes
            )
            if certificate is not None:
                return DirectSolution(
                    fit.w, fit.b, certificate, "Cholesky", rank=details["rank"], factor=factor,
                    moments=moments, square=square,
                )  # fmt: skip
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
        at = second.slope_at(w, b)
        return _solution(second, factor, w, b, at, _gaps(problem, factor, w, at), method, budget, blocks)
    if method == "Cholesky" and factor.inverse_norm <= EXACT_NORM:
        rounded, rounded_b = blocks.rounded(w), blocks.rounded(b)
        at = second.slope_at(rounded, rounded_b)
        above = _gaps(problem, factor, rounded, at)
        some_left = float(at.square.sum()) >= CANCELLED * float(second.y2.sum())
        if some_left and _good_enough(second, above, at, budget.tol):
            return _solution(second, factor, rounded, rounded_b, at, above, method, budget, blocks)
    w, b, at, above = _refine(second, factor, w, b, blocks, budget)
    return _solution(second, factor, w, b, at, above, f"{method} with refinement", budget, blocks)


def _choose_factor(second: SecondMoments, blocks: Blocks | None) -> tuple[str, ColumnSpace]:
    """Return the first method that is accurate enough, and its factor."""
    factor, penalised = cholesky_factor(second), second.problem.l2 > 0
    if factor is not None and factor.lost <= CERTAIN:
        plain = np.hypot(second.moments.size, second.moments.mean)[: second.d]
        eps = EPS if blocks is None else float(np.finfo(blocks.dtype).eps)
        costly_qr = (
            blocks is None or blocks.streamed or blocks.sparse or second.moments.rows * second.d**2 > LARGE_QR
        )
        # A penalty leaves no standard errors to be asked for, and coefficients are refined.
        accurate = penalised or costly_qr or factor.inverse_norm <= CHOLESKY_NORM
        if accurate and (penalised or beyond_doubt(factor, plain, eps)):
            return "Cholesky", factor
    if blocks is None or blocks.streamed or (blocks.sparse and penalised):
        return "pivoted Cholesky", factor_of_moments(second)
    if penalised:
        return "QR", penalised_factor(blocks, second)
    return "QR", column_space(blocks, second.problem.fit_intercept)


def _good_enough(second: SecondMoments, above: Array, at: Slope, tol: float) -> bool:
    """Return whether the gap, rounding included, is far below the tolerance."""
    gap = float((above + at.square_error).sum())
    return gap <= SMALL_SHARE * tol * 0.5 * float(second.y2.sum())


def _refine(
    second: SecondMoments, factor: ColumnSpace, w: Array, b: Array, blocks: Blocks, budget: Budget
) -> tuple[Array, Array, Slope, Array]:
    """Return w, b, the slope and the gaps there, after feeding back residuals until they stand still."""
    problem, scale, before = second.problem, factor.scale[:, None], np.inf
    rest = np.zeros_like(b)  # of the intercept, beyond its last digit
    for _ in range(12):
        at = slope_on(problem, blocks, second.moments, w, (b, rest), budget)
        from_w, from_b, from_rest = w, b, rest
        step = factor.solve(at.slope)
        size = float((np.abs(step) * scale).max(initial=0.0))
        # A correction that no longer shrinks is made of rounding alone.
        if not size < 0.5 * before:
            break
        change = at.off - second.mean_x @ step if problem.fit_intercept else 0.0
        w, (b, rest), before = w + step, _two_parts(b, rest + change), size
        # Each correction shrinks the error as much as the first one was small: the next is below rounding.
        if size <= np.sqrt(EPS) * float((np.abs(w) * scale).max(initial=0.0)):
            break
    moved, moved_b = (blocks.rounded(part) for part in _shortest(second, factor, w, b))
    at = second.moved(at, moved - from_w, (moved_b - from_b) - from_rest, moved)
    above = _gaps(problem, factor, moved, at)
    if factor.dependent.size or not _good_enough(second, above, at, budget.tol):
        # About the best intercept, so that its rounding does not hide the slope.
        parts = _two_parts(moved_b, at.off)
        at = slope_on(problem, blocks, second.moments, moved, parts, budget)
        at = second.moved(at, np.zeros_like(moved), (moved_b - parts[0]) - parts[1], moved)
        above = _gaps(problem, factor, moved, at)
    if problem.fit_intercept and not _good_enough(second, above, at, budget.tol):
        w, b = moved, moved_b
        moved, moved_b = _rounded_together(second, blocks, w, b, at.off)
        at = second.moved(at, moved - w, moved_b - b, moved)
        above = _gaps(problem, factor, moved, at)
    return moved, moved_b, at, above


def _two_parts(b: Array, more: Array) -> tuple[Array, Array]:
    """Return b + more as a double and what it lacks."""
    total = b + more
    return total, more - (total - b)


def _rounded_together(
    second: SecondMoments, blocks: Blocks, w: Array, b: Array, off: Array
) -> tuple[Array, Array]:
    """Return w and b, some last digits of w chosen such that b, as it is rounded, balances the residuals.

    Where a column is far from zero, w.mean and b are far larger than what they leave, and rounding either
    moves all residuals. Steps of the last digit of its coefficient hardly change the fit otherwise.
    """
    w, b = w.copy(), b.copy()
    j = int(np.argmax(np.abs(second.mean_x) / np.maximum(second.sizes, 1e-300)))
    digit = np.abs(np.spacing(w[j].astype(blocks.dtype)).astype(np.float64))
    steps = np.arange(-LAST_DIGIT_STEPS, LAST_DIGIT_STEPS + 1.0)
    steps = steps[np.argsort(np.abs(steps), kind="stable")]
    for k in range(w.shape[1]):
        tried = blocks.rounded(w[j, k] + steps * digit[k])
        wanted = off[k] - second.mean_x[j] * (tried - w[j, k])
        with_b = blocks.rounded(b[k] + wanted)
        left = np.square(wanted - (with_b - b[k])) + second.A[j, j] * np.square(tried - w[j, k])
        best = int(np.argmin(left))
        w[j, k], b[k] = tried[best], with_b[best]
    return w, b


def _gaps(problem: Problem, factor: ColumnSpace, w: Array, at: Slope) -> Array:
    return duality_gaps(problem, at) if problem.l2 > 0 else gaps(factor, w, at)


def _shortest(second: SecondMoments, factor: ColumnSpace, w: Array, b: Array) -> tuple[Array, Array]:
    """Return the shortest w that predict the same, and their b."""
    shortest = factor.shortest(w)
    return shortest, b + (second.mean_x @ (w - shortest) if second.problem.fit_intercept else 0.0)


def _solution(
    second: SecondMoments, factor: ColumnSpace, w: Array, b: Array, at: Slope, above: Array, how: str,
    budget: Budget, blocks: Blocks | None,
) -> DirectSolution:  # fmt: skip
    """Return the solution with its certificate."""
    problem, moments = second.problem, second.moments
    objective, rounding, scale = objectives(problem, w, at, second.y2, second.mean_y)
    dual = None
    short = problem.l2 > 0 and not float(above.sum()) <= budget.tol * scale
    if short and blocks is not None and not blocks.streamed:
        # The residuals are no good dual point where the coefficients are rounded, those before rounding are;
        # they are rounded themselves, which the bound they show has to allow for.
        above = (1.0 + DUAL_ROUNDED) * gaps(factor, w, at, penalised=True)
        dual = unrounded_slopes(second, blocks, w + factor.solve(at.slope))
    gap = np.minimum(above + 2.0 * rounding, objective)
    details, notes = _details(factor, _rank(problem, factor, moments))
    restricted = restriction(factor) if problem.l2 == 0 else ()
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
    budget.record(certificate.objective, certificate.gap, scale)
    return DirectSolution(
        w,
        b,
        certificate,
        how,
        dual=dual,
        rank=details["rank"],
        factor=factor,
        moments=moments,
        square=at.square,
    )


def _rank(problem: Problem, factor: ColumnSpace, moments: Moments) -> int:
    """Return the rank of the table: what the rows allow, though a penalty makes the factor definite."""
    return min(factor.rank, max(moments.rows - int(problem.fit_intercept), 0))


def _details(factor: ColumnSpace, rank: int) -> tuple[dict[str, Any], tuple[str, ...]]:
    condition = factor.condition
    digits = min(max(-math.log10(EPS * condition), 0.0), 15.9)
    notes = []
    if condition > WORTH_MENTIONING:
        notes.append(
            f"condition number {condition:.0e}: with data rounded to 16 digits, about {digits:.0f} "
            "digits of the coefficients can be trusted"
        )
    columns = factor.scale.size
    if factor.rank < columns:
        notes.append(f"rank {factor.rank} of {columns}: the shortest of all best coefficients")
    return {"condition": condition, "digits": digits, "rank": rank}, tuple(notes)
