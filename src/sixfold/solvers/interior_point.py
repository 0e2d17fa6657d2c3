"""An interior-point method for the absolute loss: least absolute deviations.

    minimise  sum_i q_i |y_i - z_i.theta| + l1 |w|_1 + l2 |w|^2 / 2,    z = (x, 1), theta = (w, b)

An absolute value |w_j| is a row of its own (z = e_j, y = 0, q = l1), so there is one kind of term. Written with
residuals y - Z theta = p - n, p, n >= 0, and multipliers a for these equations, the optimum has

    Z'a = l2 D theta,    p (q - a) = 0,    n (q + a) = 0,    -q <= a <= q,

and Newton's method follows p (q - a) = n (q + a) = mu down to mu = 0 (Mehrotra's predictor and corrector). Each
step solves one (d + 1) x (d + 1) system Z' diag(1 / (p/(q-a) + n/(q+a))) Z + l2 D. (Portnoy and Koenker 1997 use
the same idea for quantile regression.) u = -a / q is the dual point behind the duality gap.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.data.blocks import Blocks
from sixfold.risk.problem import Problem, shares
from sixfold.solvers.base import Solution, single_threaded_blas
from sixfold.solvers.moments import weighted_gram
from sixfold.solvers.newton import solve_scaled

Array = NDArray[Any]
STEP = 0.9995  # how much of the way to the boundary a step may go
MAX_COLUMNS = 4000


class InteriorPoint:
    """Primal-dual interior point for piecewise linear losses, one column of scores."""

    name = "interior_point"
    needs = ("gradient", "conjugate", "domain")
    notices_nonfinite = False

    def objection(self, problem: Problem) -> str | None:
        """Return why this solver cannot minimise the problem, or None."""
        if problem.loss.name != "absolute":
            return "it is made for the absolute loss"
        return "it cannot keep the coefficients positive" if problem.penalty.positive else None

    def suits(self, problem: Problem, blocks: Blocks) -> bool:
        """Return whether a d x d system per iteration is affordable."""
        return blocks.n_columns <= MAX_COLUMNS

    def solve(self, problem: Problem, blocks: Blocks, budget: Budget) -> Solution:
        """Minimise the problem."""
        terms = _Terms(problem, blocks)
        with single_threaded_blas(blocks.n_columns):
            theta, a = _follow_path(terms, budget, problem.constant_objective(blocks))
        theta = theta.astype(blocks.dtype).astype(np.float64)
        w, b = theta[:-1, None], theta[-1:]
        dual = np.zeros((blocks.n_rows, 1))
        dual[terms.counted, 0] = (-a / terms.q)[: terms.counted.sum()]
        certificate = problem.certify("duality gap", w, b, blocks, budget.tol, dual)
        return Solution(w, b, certificate, "interior point", len(budget.history), {"dual": dual})


class _Terms:
    """The absolute values that are summed: one for every row that counts, one for every penalised w_j."""

    def __init__(self, problem: Problem, blocks: Blocks) -> None:
        self.problem, self.blocks, self.d = problem, blocks, blocks.n_columns
        q = np.concatenate([shares(block, blocks) for block in blocks])
        y = np.concatenate([np.asarray(block.y[:, 0], dtype=np.float64) for block in blocks])
        self.counted = q > 0
        self.penalties = self.d if problem.l1 > 0 else 0
        self.q = np.concatenate([q[self.counted], np.full(self.penalties, problem.l1)])
        self.y = np.concatenate([y[self.counted], np.zeros(self.penalties)])
        self.shrink = np.append(np.full(self.d, problem.l2), 0.0)  # l2 D

    def apply(self, theta: Array) -> Array:
        """Return Z theta."""
        rows = np.concatenate([np.asarray(block.X @ theta[:-1]) + theta[-1] for block in self.blocks])
        return np.concatenate([rows[self.counted], theta[: self.penalties]])

    def transpose(self, a: Array) -> Array:
        """Return Z'a; its entry for b is zero without intercept."""
        rows = self._by_row(a)
        result = np.zeros(self.d + 1)
        for block in self.blocks:
            part = rows[block.start : block.start + block.y.shape[0]]
            result[:-1] += block.X.T @ part
        result[-1] = rows.sum() if self.problem.fit_intercept else 0.0
        result[: self.penalties] += a[rows.size - (~self.counted).sum() :]
        return result

    def gram(self, weight: Array, flag: NDArray[np.int32]) -> Array:
        """Return Z' diag(weight) Z + l2 D."""
        rows = self._by_row(weight)
        result = np.diag(self.shrink)
        for block in self.blocks:
            result += weighted_gram(block, rows[block.start : block.start + block.y.shape[0]], flag)
        diagonal = np.arange(self.penalties)
        result[diagonal, diagonal] += weight[self.counted.sum() :]
        return result

    def _by_row(self, values: Array) -> Array:
        rows = np.zeros(self.counted.size)
        rows[self.counted] = values[: self.counted.sum()]
        return rows


def _follow_path(terms: _Terms, budget: Budget, scale: float) -> tuple[Array, Array]:
    """Return theta and the multipliers a."""
    q, intercept = terms.q, terms.problem.fit_intercept
    theta = solve_scaled(terms.gram(q, budget.flag), terms.transpose(q * terms.y), intercept)
    residual = terms.y - terms.apply(theta)
    inside = 0.1 * float(q @ np.abs(residual)) / q.sum() + 1e-12 * np.abs(terms.y).max(initial=1e-300)
    p = np.maximum(residual, 0.0) + inside
    n = p - residual
    a = np.zeros_like(p)
    for _ in budget.iterations():
        up, down = q - a, q + a
        unmet = terms.transpose(a) - terms.shrink * theta
        weight = 1.0 / (p / up + n / down)
        gram = terms.gram(weight, budget.flag)

        def newton(push_p: Array, push_n: Array) -> tuple[Array, Array, Array, Array]:
            # push: what p (q - a) and n (q + a) are to gain.
            change = push_p / up - push_n / down
            d_theta = solve_scaled(gram, unmet - terms.transpose(weight * change), intercept)
            d_a = -weight * (terms.apply(d_theta) + change)
            return d_theta, d_a, (push_p + p * d_a) / up, (push_n - n * d_a) / down

        _, d_a, d_p, d_n = newton(-p * up, -n * down)
        mu = float(p @ up + n @ down) / (2 * q.size)
        primal, dual = _longest(p, d_p, n, d_n), _longest(up, -d_a, down, d_a)
        after = (p + primal * d_p) @ (up - dual * d_a) + (n + primal * d_n) @ (down + dual * d_a)
        aim = mu * (float(after) / (2 * q.size * mu)) ** 3
        d_theta, d_a, d_p, d_n = newton(aim - p * up + d_p * d_a, aim - n * down - d_n * d_a)
        primal, dual = STEP * _longest(p, d_p, n, d_n), STEP * _longest(up, -d_a, down, d_a)
        theta, p, n, a = (
            theta + primal * d_theta,
            p + primal * d_p,
            n + primal * d_n,
            a + dual * d_a,
        )
        value = float(q @ np.abs(terms.y - terms.apply(theta)) + 0.5 * terms.shrink @ theta**2)
        gap = float(p @ (q - a) + n @ (q + a)) + float(np.abs(theta) @ np.abs(unmet)) * (1 - dual)
        if budget.record(value, gap, scale) or mu <= 1e-18 * scale:
            break
    return theta, a


def _longest(x: Array, dx: Array, z: Array, dz: Array) -> float:
    """Return the longest step, at most 1 / STEP, that keeps both vectors positive."""
    longest = 1.0 / STEP
    for value, change in ((x, dx), (z, dz)):
        shrinking = change < 0
        if shrinking.any():
            longest = min(longest, float(np.min(-value[shrinking] / change[shrinking])))
    return longest
