"""Conjugate gradients for least squares on sparse or wide tables: only products with X are needed.

    minimise  sum_i q_i |y_i - b - w.x_i|^2 / 2 + l2 |w|^2 / 2

CGLS (Hestenes and Stiefel 1952; Björck 1996, 7.4) on the centred rows sqrt(q) (x - mean), which are never
formed, with every column scaled to length 1. Started at zero it ends at the shortest solution in scaled
columns. One target after the other.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.certificate import Certificate
from sixfold.data.blocks import Block, Blocks
from sixfold.data.column_means import ColumnMeans
from sixfold.risk.problem import Problem, normalized_weights
from sixfold.solvers.base import Solution
from sixfold.solvers.least_squares.certified import duality_gaps, objectives
from sixfold.solvers.least_squares.moments import UNIT, Means
from sixfold.solvers.least_squares.row_space import descend_in_row_space, may_descend
from sixfold.solvers.least_squares.slopes import slope_on

Array = NDArray[Any]

MAX_SPARSE_SIDE = 4000  # the smaller side of a sparse table up to which its dense moment matrix is formed
REFRESHED = 50  # iterations after which slopes are taken from the residuals again, not from those before
# Where a factor can take over, so many iterations are tried.
MOST_STEPS = 100
# The direct solution of a sparse table is asked for where it costs less than this many products, 10 ms, or
# less than so many iterations: of 2,000 x 2,000 with 40,000 entries it takes 110 ms, and 41 iterations 4.
CHEAP = 3e8


class ConjugateGradient:
    """Conjugate gradients on the normal equations, without forming them."""

    name: ClassVar[str] = "cg"
    needs: ClassVar[tuple[str, ...]] = ("gradient",)
    notices_nonfinite: ClassVar[bool] = True

    def objection(self, problem: Problem) -> str | None:
        """Return why this solver cannot minimise the problem, or None."""
        if problem.loss.name != "squared":
            return "conjugate gradients exist for the squared loss only"
        if not problem.penalty.quadratic:
            return "the penalty is not a square"
        return None

    def suits(self, problem: Problem, blocks: Blocks) -> bool:
        """Return whether the system of the table costs more than iterations would."""
        side = min(blocks.n_rows, blocks.n_columns)
        if not blocks.sparse:
            return may_descend(problem, blocks)
        if side > MAX_SPARSE_SIDE or blocks.streamed:
            return side > MAX_SPARSE_SIDE
        products = side**3 / 3.0
        passes = 4.0 * MOST_STEPS * blocks.n_targets * blocks.whole().X.nnz
        return problem.l2 > 0 and products > max(CHEAP, 2.0 * passes)

    def solve(self, problem: Problem, blocks: Blocks, budget: Budget) -> Solution:
        """Minimise the problem, one target after the other."""
        if budget.another_follows and may_descend(problem, blocks):
            return descend_in_row_space(problem, blocks, budget)
        rows = _CentredRows(problem, blocks)
        w = np.column_stack([_descend(problem, rows, k, budget) for k in range(blocks.n_targets)])
        w = blocks.rounded(w)
        b = blocks.rounded(rows.mean_y - rows.mean @ w)
        certificate = _certify(problem, rows, w, b, budget)
        means = ColumnMeans(rows.means.mean[: w.shape[0]], rows.means.rows, rows.means.weight)
        return Solution(w, b, certificate, "conjugate gradients", len(budget.history), means=means)


def _certify(problem: Problem, rows: _CentredRows, w: Array, b: Array, budget: Budget) -> Certificate:
    """Return the certificate; with a penalty the slope tells enough, in a tenth of the passes."""
    if problem.l2 > 0:
        at = slope_on(problem, rows.blocks, rows.means, w, (b, np.zeros_like(b)), budget)
        objective, rounding, scale = objectives(problem, w, at, rows.y2, rows.mean_y)
        gap = np.minimum(duality_gaps(problem, at) + 2.0 * rounding, objective)
        known = Certificate(
            "least squares", float(objective.sum()), float(gap.sum()), scale, budget.tol,
            rounding=2.0 * float(rounding.sum()),
        )  # fmt: skip
        if known.converged:
            return known
    return problem.certify("least squares", w, b, rows.blocks, budget.tol)


class _CentredRows:
    """B = sqrt(q) (X - mean) / scale, as products only."""

    def __init__(self, problem: Problem, blocks: Blocks) -> None:
        self.blocks = blocks
        d = blocks.n_columns
        sums = blocks.reduce(partial(_sums, total=blocks.weight_sum), np.add)
        if not np.isfinite(sums).all():
            raise FloatingPointError("the squares of the columns are not finite")
        mean, square, rows = sums[0], sums[1], int(sums[2, 0])
        self.means = Means(
            rows=rows,
            n_columns=d,
            weight=blocks.weight_sum,
            mean=mean,
            size=np.sqrt(square),  # about zero, which is more than about the mean
            rounding=(blocks.n_rows + 16.0) * UNIT,
        )
        centre = mean if problem.fit_intercept else np.zeros_like(mean)
        self.mean, self.mean_y = centre[:d], centre[d:]
        self.y2 = np.array([self.square(self.target(k)) for k in range(blocks.n_targets)])
        length = np.sqrt(np.maximum(square[:d] - self.mean**2, 0.0) + problem.l2)
        self.scale = np.where(length > 0, length, 1.0)

    def target(self, k: int) -> list[Array]:
        return [np.asarray(block.y[:, k], dtype=np.float64) - self.mean_y[k] for block in self.blocks]

    def apply(self, w: Array) -> list[Array]:
        """Return (X - mean) w."""
        return [np.asarray(block.X @ w) - self.mean @ w for block in self.blocks]

    def transpose(self, rows: list[Array]) -> Array:
        """Return (X - mean)' diag(q) rows."""
        result = np.zeros(self.mean.size)
        for block, part in zip(self.blocks, rows, strict=True):
            weighted = normalized_weights(block, self.blocks) * part
            result += block.X.T @ weighted - self.mean * weighted.sum()
        return result

    def normal(self, w: Array, budget: Budget) -> tuple[Array, float]:
        """Return (X - mean)' diag(q) (X - mean) w and w times that, in one pass over a sparse table."""
        blocks = self.blocks
        if not blocks.sparse or blocks.streamed:
            along = self.apply(w)
            return self.transpose(along), self.square(along)
        shift, result = float(self.mean @ w), np.zeros(w.size)
        total = square = 0.0
        for block in blocks:
            X, part = block.X, np.empty(w.size)
            finished, sum_of, square_of = core.normal_product(
                X.data, X.indices, X.indptr, block.float64_weight, shift, w, part, np.inf, budget.flag
            )
            if not finished:
                raise KeyboardInterrupt
            result, total, square = result + part, total + sum_of, square + square_of
        return (result - self.mean * total) / blocks.weight_sum, square / blocks.weight_sum

    def square(self, rows: list[Array]) -> float:
        """Return sum_i q_i rows_i^2."""
        return sum(
            float(normalized_weights(block, self.blocks) @ part**2)
            for block, part in zip(self.blocks, rows, strict=True)
        )


def _sums(block: Block, total: float) -> Array:
    """Return the means of (x, y) and of their squares, and the number of rows that count."""
    weight = block.weight
    q = np.full(block.y.shape[0], 1.0 / total) if weight is None else np.asarray(weight, np.float64) / total
    y = np.asarray(block.y, dtype=np.float64)
    mean, square = np.concatenate([q @ block.X, q @ y]), np.concatenate([q @ _squared(block.X), q @ y**2])
    return np.stack([mean, square, np.full(mean.size, np.count_nonzero(q))])


def _squared(X: Any) -> Any:
    """Return the squares of all entries; X.multiply(X) takes five times as long."""
    if isinstance(X, np.ndarray):
        return X**2
    return sp.csr_array((np.square(X.data), X.indices, X.indptr), shape=X.shape)


def _descend(problem: Problem, rows: _CentredRows, target: int, budget: Budget) -> Array:
    """Return w for one target."""
    budget.new_part()
    l2, scale = problem.l2, rows.scale
    first_residual = rows.target(target)
    value = worst = 0.5 * rows.square(first_residual)
    w = np.zeros(scale.size)
    raw = rows.transpose(first_residual)
    slope = raw / scale
    direction, size = slope, float(slope @ slope)
    first = size
    for iteration in budget.iterations():
        if size <= 1e-30 * first:
            break
        step = direction / scale
        image, curvature = rows.normal(step, budget)
        curvature += l2 * float(step @ step)
        if not curvature > 1e-300:  # what is left of the slope is rounding
            break
        length = size / curvature
        w = w + length * step
        if iteration % REFRESHED == 0:
            residual = [r - part for r, part in zip(first_residual, rows.apply(w), strict=True)]
            reached = 0.5 * rows.square(residual) + 0.5 * l2 * float(w @ w)
            if not reached <= (1.0 + 1e-12) * worst:  # the sums have drifted away
                break
            raw, value = rows.transpose(residual) - l2 * w, reached
        else:
            raw = raw - length * (image + l2 * step)
            value = max(value - 0.5 * length * size, 0.0)
        slope = raw / scale
        previous, size = size, float(slope @ slope)
        direction = slope + (size / previous) * direction
        # With a penalty, |slope|^2 / (2 l2) bounds the gap; without, the slope itself has to be tiny.
        gap = 0.5 * float(raw @ raw) / l2 if l2 > 0 else worst * np.sqrt(size / first)
        if budget.record(value, gap, worst):
            break
        if budget.another_follows and iteration >= MOST_STEPS:
            break
    return w
