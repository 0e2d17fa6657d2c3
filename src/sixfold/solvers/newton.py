"""Newton's method for smooth losses with no penalty or the squared one.

    step:  (sum_i q_i l''(s_i) z_i z_i' + l2 D) delta = -(sum_i q_i l'(s_i) z_i + l2 D theta),    z = (x, 1)

with theta = (w, b) and D the identity without its entry for b. The step is halved until the objective falls
enough (Armijo); scores along a step cost nothing, so a trial is one sum over the rows. Half the squared
Newton decrement estimates the gap; where it is small enough, the duality gap is computed and decides.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.data.blocks import Blocks
from sixfold.risk.problem import Problem, scores, shares
from sixfold.solvers.base import Solution, single_threaded_blas
from sixfold.solvers.moments import weighted_gram

Array = NDArray[Any]

SUFFICIENT = 1e-4  # share of the predicted decrease that a step has to bring (Armijo)
MAX_COLUMNS = 4000  # beyond, a d x d matrix per iteration is no longer cheap


class Newton:
    """Newton's method with a line search, for one column of scores."""

    name: ClassVar[str] = "newton"
    needs: ClassVar[tuple[str, ...]] = ("gradient", "curvature", "conjugate", "domain")
    notices_nonfinite: ClassVar[bool] = False
    one_target: ClassVar[bool] = True

    def objection(self, problem: Problem) -> str | None:
        """Return why this solver cannot minimise the problem, or None."""
        if not problem.loss.smooth:
            return "the loss has kinks, where it has no curvature"
        if not problem.penalty.quadratic:
            return "the penalty has kinks, where it has no curvature"
        return None

    def suits(self, problem: Problem, blocks: Blocks) -> bool:
        """Return whether the matrix of second derivatives is affordable."""
        return blocks.n_columns <= MAX_COLUMNS

    def solve(self, problem: Problem, blocks: Blocks, budget: Budget) -> Solution:
        """Minimise the problem."""
        with single_threaded_blas(blocks.n_columns):
            theta = _minimise(problem, blocks, budget)
        theta = theta.astype(blocks.dtype).astype(np.float64)
        w, b = theta[:-1, None], theta[-1:]
        certificate = problem.certify("duality gap", w, b, blocks, budget.tol)
        return Solution(w, b, certificate, "Newton", len(budget.history))


def _minimise(problem: Problem, blocks: Blocks, budget: Budget) -> Array:
    """Return theta = (w, b)."""
    scale = problem.constant_objective(blocks)
    theta = np.zeros(blocks.n_columns + 1)
    if problem.fit_intercept and problem.loss.labels == "real":
        theta[-1] = sum(
            shares(block, blocks) @ np.asarray(block.y[:, 0], dtype=np.float64) for block in blocks
        )
    score = [scores(block, theta[:-1], theta[-1]) for block in blocks]
    value = _objective(problem, blocks, theta, score)
    for _ in budget.iterations():
        slope, curvature = _derivatives(problem, blocks, theta, score, budget)
        delta = solve_scaled(curvature, -slope, problem.fit_intercept)
        along = [scores(block, delta[:-1], delta[-1]) for block in blocks]
        decrease = -float(slope @ delta)
        length, trial = 1.0, np.inf
        while length > 1e-10:
            moved = [s + length * ds for s, ds in zip(score, along, strict=True)]
            trial = _objective(problem, blocks, theta + length * delta, moved)
            if trial <= value - SUFFICIENT * length * decrease:
                break
            length *= 0.5
        stuck = not trial < value
        if not stuck:
            theta, score, value = theta + length * delta, moved, trial
        gap = 0.5 * decrease
        if gap <= budget.tol * scale or stuck:
            gap = problem.gap(theta[:-1, None], theta[-1:], blocks)
        if budget.record(value, gap, scale) or stuck:
            break
    return theta


def _objective(problem: Problem, blocks: Blocks, theta: Array, score: list[Array]) -> float:
    risk = 0.0
    for block, s in zip(blocks, score, strict=True):
        risk += float(shares(block, blocks) @ problem.loss.value(s, block.y[:, 0]))
    return risk + 0.5 * problem.l2 * float(theta[:-1] @ theta[:-1])


def _derivatives(
    problem: Problem, blocks: Blocks, theta: Array, score: list[Array], budget: Budget
) -> tuple[Array, Array]:
    """Return the slope and the matrix of second derivatives in theta."""
    d = blocks.n_columns
    slope, curvature = np.zeros(d + 1), np.zeros((d + 1, d + 1))
    for block, s in zip(blocks, score, strict=True):
        q = shares(block, blocks)
        residual = q * problem.loss.gradient(s, block.y[:, 0])
        slope[:d] += block.X.T @ residual
        slope[d] += residual.sum()
        curvature += weighted_gram(block, q * problem.loss.curvature(s, block.y[:, 0]), budget.flag)
    slope[:d] += problem.l2 * theta[:d]
    curvature.flat[: d * (d + 2) : d + 2] += problem.l2
    return slope, curvature


def solve_scaled(matrix: Array, right: Array, intercept: bool) -> Array:
    """Return matrix^-1 right, the shortest where columns depend; b stays put without intercept."""
    size = right.size if intercept else right.size - 1
    scale = np.sqrt(np.diag(matrix)[:size])
    scale[scale == 0] = 1.0
    scaled = matrix[:size, :size] / np.outer(scale, scale)
    result = np.zeros_like(right)
    try:
        factor = np.linalg.cholesky(scaled)
        half = np.linalg.solve(factor, right[:size] / scale)
        result[:size] = np.linalg.solve(factor.T, half) / scale
    except np.linalg.LinAlgError:
        result[:size] = np.linalg.lstsq(scaled, right[:size] / scale, rcond=1e-12)[0] / scale
    return result
