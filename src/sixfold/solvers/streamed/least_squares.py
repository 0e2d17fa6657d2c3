"""Least squares of rows that can only be reduced.

    moments (one pass, d x d)  ->  coefficients  ->  residuals in double-double (a pass or two, d numbers)

Without absolute values in the penalty that is the direct solution of memory with pivoted Cholesky in place of
QR, whose refinement brings back the digits. With them it is done on the moments alone: a table R of d rows
with R'R = A, the second moments, has the same objective but for a constant, and a solver of memory minimises
it. The slope there is then taken from the rows, and the problem solved again about this point,

    minimise   (w - w0)'A (w - w0) / 2 - g0.(w - w0) + penalty(w),      g0 = sum_i q_i r_i (x_i - mean) at w0,

until it stands still: what rounding of the moments has cost comes back, as in iterative refinement.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.certificate import Certificate
from sixfold.data.blocks import Blocks, MemoryBlocks
from sixfold.data.column_means import ColumnMeans
from sixfold.risk.problem import Problem
from sixfold.risk.rounding import UNDERFLOW, U
from sixfold.solvers.base import Solution
from sixfold.solvers.l1.coordinate import CoordinateDescent
from sixfold.solvers.least_squares.direct import solve_moments
from sixfold.solvers.least_squares.moments import Moments, block_moments
from sixfold.solvers.least_squares.slopes import SecondMoments, Slope, slope_on
from sixfold.solvers.linalg import SymmetricFactor

Array = NDArray[Any]

MOST_ROUNDS = 6  # of refinement on the rows
STILL = 1e-13  # of the largest coefficient in units of the columns: it stands still
FINEST = 1e-14  # relative gap that is asked of the solver on the moments
MAX_COLUMNS = 6000  # of which the d x d moments are formed and sent
DROPPED = 1e-14  # of the largest eigenvalue of the scaled moments: rounding


def least_squares_objection(problem: Problem, blocks: Blocks) -> str | None:
    """Return why the moments cannot be formed, or None."""
    if blocks.n_columns + blocks.n_targets > MAX_COLUMNS:
        return (
            f"least squares of rows on a cluster goes by the products of all pairs of columns, and these are "
            f"{blocks.n_columns}: choose at most {MAX_COLUMNS} of them first"
        )
    return None


def solve_least_squares(problem: Problem, blocks: Blocks, budget: Budget) -> Solution:
    """Minimise least squares with any penalty."""
    moments = blocks.reduce(partial(block_moments, flag=np.zeros_like(budget.flag)), Moments.__add__)
    if not problem.penalised and not problem.penalty.positive:
        return solve_moments(problem, moments, budget, blocks)
    if problem.penalty.quadratic:
        return solve_moments(problem, moments, budget, blocks)
    return _with_absolute_values(problem, moments, blocks, budget)


def _with_absolute_values(problem: Problem, moments: Moments, blocks: Blocks, budget: Budget) -> Solution:
    """Minimise with absolute values in the penalty, or with w >= 0, target after target."""
    second = SecondMoments.of(problem, moments)
    root, kept = root_of(second.A)
    scale = second.sizes
    w = np.zeros((second.d, moments.mean.size - second.d))
    linear, iterations = second.c.copy(), 0  # A w0 + g0, the linear term of the model
    for _ in range(MOST_ROUNDS):
        before = w
        w, steps = minimise_model(problem, root, kept, linear, budget)
        iterations += steps
        b = second.intercept(w)
        at = slope_on(problem, blocks, moments, w, (b, np.zeros_like(b)), budget)
        linear = second.A @ w + at.slope + problem.l2 * w
        moved = float((np.abs(w - before) * scale[:, None]).max(initial=0.0))
        size = float((np.abs(w) * scale[:, None]).max(initial=0.0))
        if moved <= STILL * size or budget.exhausted():
            break
    w = blocks.rounded(w)
    b = blocks.rounded(b + at.off if problem.fit_intercept else b)
    at = slope_on(problem, blocks, moments, w, (b, np.zeros_like(b)), budget)
    certificate = _certificate(problem, second, w, at, budget)
    budget.record(certificate.objective, certificate.gap, certificate.scale)
    means = ColumnMeans(moments.mean[: second.d].copy(), moments.rows, moments.weight)
    return Solution(w, b, certificate, "moments, then coordinate", max(iterations, 1), means=means)


def root_of(A: Array) -> tuple[Array, Array]:
    """Return R with R'R = A, and which of its rows count; from eigenvectors, since A may be singular."""
    size = np.sqrt(np.maximum(np.diag(A), 0.0))
    size = np.where(size > 0, size, 1.0)
    values, vectors = np.linalg.eigh(A / np.outer(size, size))
    kept = values > DROPPED * max(float(values[-1]), 1e-300)
    return np.sqrt(np.where(kept, values, 0.0))[:, None] * (vectors * size[:, None]).T, kept


def minimise_model(
    problem: Problem, root: Array, kept: Array, linear: Array, budget: Budget
) -> tuple[Array, int]:
    """Return the minimiser of w'A w / 2 - linear.w + penalty, by a table that has these moments."""
    d = root.shape[0]
    rows = root[kept] if kept.any() else root[:1]
    # R't = linear has a solution: linear is in the span of the rows but for rounding.
    t = np.linalg.lstsq(rows.T, linear, rcond=None)[0]
    n = rows.shape[0]
    table = MemoryBlocks(np.ascontiguousarray(math.sqrt(n) * rows), np.ascontiguousarray(math.sqrt(n) * t))
    inner = Budget(FINEST, None, max(budget.seconds_left, 1e-3) if budget.time_limit else None)
    found = CoordinateDescent().solve(replace(problem, fit_intercept=False), table, inner)
    w = found.w.reshape(d, -1)
    A = root.T @ root
    for k in range(w.shape[1]):
        w[:, k] = _on_signs(problem, A, linear[:, k], w[:, k])
    return w, found.n_iter


def _on_signs(problem: Problem, A: Array, linear: Array, w: Array) -> Array:
    """Return the minimiser among weights with these signs, a linear system, where it has them.

    A gap leaves its root in the weights; a system leaves what rounding does.
    """
    used = np.flatnonzero(w)
    if not used.size:
        return w
    matrix = A[np.ix_(used, used)].copy()
    matrix.flat[:: used.size + 1] += problem.l2
    new = w.copy()
    new[used] = SymmetricFactor(matrix).solve(linear[used] - problem.l1 * np.sign(w[used]))
    return new if (np.sign(new) == np.sign(w)).all() else w


def _certificate(problem: Problem, second: SecondMoments, w: Array, at: Slope, budget: Budget) -> Certificate:
    """Return the duality gap at the residuals, shortened to where the penalty's conjugate is finite."""
    penalty, alpha, l1, l2 = problem.penalty, problem.alpha, problem.l1, problem.l2
    d = w.shape[0]
    slope = at.slope + l2 * w  # sum_i q_i r_i (x_i - mean): minus that of the loss
    error = at.slope_error + 4 * U * l2 * np.abs(w)
    at_zero = second.y2 + (second.mean_y**2 if problem.fit_intercept else 0.0)
    scale = 0.5 * float(second.y2.sum()) + 0.5e-30 * float(at_zero.sum())
    objective, gap, rounding = 0.0, 0.0, 0.0
    for k in range(w.shape[1]):
        v, e, column = slope[:, k], error[:, k], w[:, k]
        square = float(at.square[k])
        value = alpha * penalty.value(column)
        up = 0.5 * float(at.square_error[k]) + (d + 8) * U * value + 4 * U * square
        up += UNDERFLOW * float(at_zero[k] > 0)
        t = 1.0
        if l2 == 0 and problem.penalised:
            size = (v if penalty.positive else np.abs(v)) + e
            t = min(1.0, l1 / max(float(size.max(initial=0.0)), 1e-300))
        young = 0.5 * (1.0 - t) ** 2 * square
        if problem.penalised:
            excess = alpha * penalty.fenchel_young(column, t * v / alpha * (1.0 - 4 * U))
            if l2 > 0:
                z = np.copysign(penalty.excess(v / alpha), v) / penalty.l2
                more = float((np.abs(column - z) * e).sum()) + float(np.square(e).sum()) / (2 * l2)
            else:
                more = float((np.abs(column) * e).sum())
        else:  # w >= 0 alone: slopes that would make a weight larger are out of the domain
            excess, more = float(np.abs(column * v).sum()), float((np.abs(column) * e).sum())
            if (v - e > 0).any():
                excess = math.inf
        off = abs(float(at.off[k])) + float(at.off_error[k])
        of_b = 0.5 * off**2 + off * (1.0 - t) * math.sqrt(square)
        more += of_b + 16 * U * (square + value + young)
        total = 0.5 * square + value + up
        objective += total
        # No loss is negative, so that zero is a bound too.
        gap += min(young + excess + more + 2.0 * up, total)
        rounding += min(more + 2.0 * up, total)
    return Certificate("duality gap", objective, gap, scale, budget.tol, rounding=rounding)
