"""An interior-point method for the absolute loss: least absolute deviations.

    minimise  sum_i q_i |y_i - z_i.theta| + l1 |w|_1 + l2 |w|^2 / 2,    z = (x, 1), theta = (w, b)

An absolute value |w_j| is a row of its own (z = e_j, y = 0, q = l1), so there is one kind of term. Written
with residuals y - Z theta = p - n, p, n >= 0, and multipliers a for these equations, the optimum has

    Z'a = l2 D theta,    p (q - a) = 0,    n (q + a) = 0,    -q <= a <= q,

and Newton's method follows p (q - a) = n (q + a) = mu down to mu = 0 (Mehrotra's predictor and corrector).
Each step solves one (d + 1) x (d + 1) system Z' diag(1 / (p/(q-a) + n/(q+a))) Z + l2 D. (Portnoy and Koenker
1997 use the same idea for quantile regression.) u = -a / q is the dual point behind the duality gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

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

    name: ClassVar[str] = "interior_point"
    needs: ClassVar[tuple[str, ...]] = ("gradient", "conjugate", "domain")
    notices_nonfinite: ClassVar[bool] = False
    one_target: ClassVar[bool] = True

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


@dataclass
class _Point:
    """A point inside: theta, residuals p - n and multipliers a."""

    theta: Array
    p: Array
    n: Array
    a: Array


class _Newton:
    """Newton's equations at a point, factored once for the predictor and the corrector."""

    def __init__(self, terms: _Terms, at: _Point, flag: NDArray[np.int32]) -> None:
        self.terms, self.at = terms, at
        self.up, self.down = terms.q - at.a, terms.q + at.a
        self.unmet = terms.transpose(at.a) - terms.shrink * at.theta
        self.weight = 1.0 / (at.p / self.up + at.n / self.down)
        self.gram = terms.gram(self.weight, flag)

    def step(self, push_p: Array, push_n: Array) -> _Point:
        """Return the step that adds so much to p (q - a) and n (q + a), to first order."""
        change = push_p / self.up - push_n / self.down
        right = self.unmet - self.terms.transpose(self.weight * change)
        theta = solve_scaled(self.gram, right, self.terms.problem.fit_intercept)
        a = -self.weight * (self.terms.apply(theta) + change)
        p = (push_p + self.at.p * a) / self.up
        return _Point(theta, p, (push_n - self.at.n * a) / self.down, a)

    def lengths(self, step: _Point) -> tuple[float, float]:
        """Return how far p, n and how far a can go along a step."""
        primal = _longest(self.at.p, step.p, self.at.n, step.n)
        return primal, _longest(self.up, -step.a, self.down, step.a)

    def products(self, step: _Point, primal: float, dual: float) -> float:
        """Return the sum of all p (q - a) and n (q + a) after a step."""
        up, down = self.up - dual * step.a, self.down + dual * step.a
        return float((self.at.p + primal * step.p) @ up + (self.at.n + primal * step.n) @ down)


def _follow_path(terms: _Terms, budget: Budget, scale: float) -> tuple[Array, Array]:
    """Return theta and the multipliers a."""
    at, size = _start(terms, budget), 2 * terms.q.size
    for _ in budget.iterations():
        newton = _Newton(terms, at, budget.flag)
        mu = float(at.p @ newton.up + at.n @ newton.down) / size
        predicted = newton.step(-at.p * newton.up, -at.n * newton.down)
        reached = newton.products(predicted, *newton.lengths(predicted)) / size
        aim = mu * (reached / mu) ** 3
        step = newton.step(
            aim - at.p * newton.up + predicted.p * predicted.a,
            aim - at.n * newton.down - predicted.n * predicted.a,
        )
        if not np.isfinite(step.theta).all():  # on the boundary to the last bit: nothing is left to gain
            break
        primal, dual = (STEP * length for length in newton.lengths(step))
        gap = newton.products(step, primal, dual)
        gap += (1 - dual) * float(np.abs(at.theta) @ np.abs(newton.unmet))
        at = _Point(
            at.theta + primal * step.theta,
            at.p + primal * step.p,
            at.n + primal * step.n,
            at.a + dual * step.a,
        )
        left = np.abs(terms.y - terms.apply(at.theta))
        value = float(terms.q @ left + 0.5 * terms.shrink @ at.theta**2)
        if budget.record(value, gap, scale) or mu <= 1e-18 * scale:
            break
    return at.theta, at.a


def _start(terms: _Terms, budget: Budget) -> _Point:
    """Return least squares, with residuals kept off zero."""
    q, gram = terms.q, terms.gram(terms.q, budget.flag)
    theta = solve_scaled(gram, terms.transpose(q * terms.y), terms.problem.fit_intercept)
    residual = terms.y - terms.apply(theta)
    inside = 0.1 * float(q @ np.abs(residual)) / q.sum() + 1e-12 * np.abs(terms.y).max(initial=1e-300)
    p = np.maximum(residual, 0.0) + inside
    return _Point(theta, p, p - residual, np.zeros_like(p))


def _longest(x: Array, dx: Array, z: Array, dz: Array) -> float:
    """Return the longest step, at most 1 / STEP, that keeps both vectors positive."""
    longest = 1.0 / STEP
    for value, change in ((x, dx), (z, dz)):
        shrinking = change < 0
        if shrinking.any():
            longest = min(longest, float(np.min(-value[shrinking] / change[shrinking])))
    return longest
