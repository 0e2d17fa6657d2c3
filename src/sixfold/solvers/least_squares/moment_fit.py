"""Least squares of few columns from their moments, in one native call from the rows to a certificate.

    minimise  sum_i q_i (w.x_i + b - y_i)^2 / 2 + l1 |w|_1 + l2 |w|^2 / 2        (optionally w >= 0)

All that this asks of tall data are means and second moments (:mod:`sixfold.solvers.least_squares.moments`).
With absolute values it is minimised on the moments by coordinate descent and Newton steps on the signs found,
else by Cholesky's factorisation. What the moments say of the rounded model, and how far that may be off, is
what :meth:`sixfold.solvers.least_squares.slopes.SecondMoments.slope_at` says. Calls from Python took ten
times as long as the arithmetic: the solver of a lasso of 100 x 4 took 0.40 ms, and takes 0.02.

Where moments are not accurate enough for the tolerance, or no end was found, nothing is returned but them,
and the solvers that read the rows again go on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.certificate import Certificate
from sixfold.data.blocks import Blocks
from sixfold.data.column_means import ColumnMeans
from sixfold.risk.problem import Problem
from sixfold.risk.rounding import UNDERFLOW
from sixfold.solvers.base import Solution
from sixfold.solvers.least_squares.moments import UNIT, Moments, moment_rounding

Array = NDArray[np.float64]

MOST_COLUMNS = 128
FEWEST_ITERATIONS = 50  # fewer that are asked for are counted by those who count them
SMALL_SHARE = 1e-2  # of the tolerance: what rounding may be
FIGURES = 6
REST = 0.3  # of the tolerance: where steps end
DONE, STOPPED, NOT_FINITE, NO_FACTOR = range(4)
NO_MATRIX = np.empty((0, 0))


@dataclass(frozen=True)
class MomentFit:
    """What the native call leaves: a model, its figures, and the moments.

    Attributes
    ----------
    w, b : ndarray of shape (columns, targets) and (targets,)
    figures : ndarray of shape (targets, 6)
        mean y^2, mean y, mean r^2 and what that may be off by, the penalty, and the gap.
    scale, R : ndarray
        The factor of the second moments of scaled columns, where there are no absolute values.
    inverse_norm, lost : float
        |R^-1| (Frobenius), and how far R is off at most.
    """

    end: int
    moments: Moments
    w: Array
    b: Array
    figures: Array
    scale: Array
    R: Array
    inverse_norm: float
    lost: float


def moment_fit(problem: Problem, blocks: Blocks, budget: Budget) -> MomentFit:
    """Return what one native call makes of all rows.

    Raises
    ------
    FloatingPointError
        If the moments are not finite.
    """
    block, d, k = blocks.whole(), blocks.n_columns, blocks.n_targets
    p, weight = d + k, block.float64_weight
    factored = problem.l1 == 0.0 and not problem.penalty.positive
    room, R = (
        np.empty(p * (p + 2) + d * (k + 1) + k * (FIGURES + 1)),
        np.empty((d, d)) if factored else NO_MATRIX,
    )
    rounding = moment_rounding(blocks.n_rows, p + 1)
    end, total, inverse_norm, lost = core.moment_fit(
        block.X, block.y, weight, problem.l1, problem.l2, problem.penalty.positive, problem.fit_intercept,
        rounding, REST * budget.tol, room, R, budget.seconds_left, budget.flag,
    )  # fmt: skip
    if end == NOT_FINITE:
        raise FloatingPointError("the moments are not finite")
    scatter, w = 2 * p, 2 * p + p * p
    b, figures = w + d * k, w + (d + 1) * k
    scale = figures + FIGURES * k
    moments = Moments(
        rows=blocks.n_rows if weight is None else int(np.count_nonzero(weight)),
        n_columns=d,
        weight=total,
        mean=room[:p],
        scatter=room[scatter:w].reshape(p, p),
        size=room[p:scatter],
        rounding=rounding,
    )
    return MomentFit(
        end, moments, room[w:b].reshape(d, k), room[b:figures], room[figures:scale].reshape(k, FIGURES),
        room[scale:], R, inverse_norm, lost,
    )  # fmt: skip


def certify(
    problem: Problem, fit: MomentFit, kind: str, budget: Budget, share: float = 1.0, **told: Any
) -> Certificate | None:
    """Return the certificate that the moments allow for; None where the gap is above ``share`` of ``tol``."""
    objectives = gaps = roundings = scale = 0.0
    d = fit.moments.n_columns
    for y2, mean_y, square, error, penalty, above in fit.figures.tolist():
        at_zero = y2 + mean_y * mean_y if problem.fit_intercept else y2
        rounding = 0.5 * error + (d + 8) * UNIT * penalty + 4 * UNIT * square + UNDERFLOW * (at_zero > 0)
        objective = 0.5 * square + penalty + rounding
        objectives, roundings = objectives + objective, roundings + 2.0 * rounding
        gaps += min(above + 2.0 * rounding, objective)
        scale += 0.5 * y2 + 0.5e-30 * at_zero
    if not (gaps <= share * budget.tol * scale and roundings <= SMALL_SHARE * budget.tol * scale):
        return None
    budget.record(objectives, gaps, scale)
    return Certificate(kind, objectives, gaps, scale, budget.tol, rounding=roundings, **told)


def fit_with_kinks(problem: Problem, blocks: Blocks, budget: Budget) -> Solution | None:
    """Return the minimum where absolute values or signs count; None where others have to look at the rows."""
    counted = budget.max_iter is not None and budget.max_iter < FEWEST_ITERATIONS
    if blocks.sparse or blocks.n_columns > MOST_COLUMNS or not problem.penalised:
        return None
    if blocks.streamed or budget.callbacks or counted or budget.exhausted():
        return None
    fit = moment_fit(problem, blocks, budget)
    certificate = certify(problem, fit, "duality gap", budget) if fit.end == DONE else None
    if certificate is None:
        return None
    known = fit.moments
    means = ColumnMeans(known.mean[: known.n_columns].copy(), known.rows, known.weight)
    return Solution(fit.w, fit.b, certificate, "coordinate descent", 1, means=means)
