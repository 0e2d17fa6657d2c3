"""The steps of an interior point on small tables in one native call, instead of several calls a step.

:mod:`sixfold.solvers.margin.central_path` states the method. On 100 x 4 rows a step takes 55 microseconds
of calls and arrays around 2 of arithmetic; native/linear/margin/small_path.cpp makes them until the gap, or
all products, are as good as zero. The last steps, and all that is done about rounding, are left to the path.

Of the hinge with a squared penalty the beginning and the way to the vertex (:mod:`.crossover`) are made there
as well, so that a target is one call: 60 microseconds instead of 700. Where that does not find the vertex, as
of rows or columns that depend on each other, the path is followed from its beginning as if nothing had been
tried.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.certificate import Certificate
from sixfold.data.blocks import Blocks
from sixfold.risk.multiplier_bound import certify_multipliers
from sixfold.risk.problem import Problem, normalized_weights
from sixfold.risk.rounding import rounded_model
from sixfold.solvers.least_squares.moments import rough_mean
from sixfold.solvers.margin.progress import MarginProgress

if TYPE_CHECKING:
    from sixfold.solvers.margin.central_path import _Path

Array = NDArray[Any]

# Rows times columns squared: beyond, a step is arithmetic, which BLAS does faster than simple loops (1,000 x
# 100 rows: 8.1 milliseconds a fit instead of 6.1).
MOST_PRODUCTS = 1 << 20
MOST_STEPS = 30


def hasten(path: _Path, progress: MarginProgress, enough: float) -> None:
    """Take steps until the gap, or the sum of the products, is at most ``enough``; none if it is no use."""
    terms, budget = path.terms, progress.budget
    most = int(min(MOST_STEPS, budget.iterations_left))
    if (
        path.exact
        or terms.penalties
        or not terms.problem.l2 > 0.0
        or terms.blocks.sparse
        or budget.callbacks
        or terms.n * (terms.d + 1) ** 2 > MOST_PRODUCTS
        or (terms.factor is not None and terms.factor.vectors is not None)
    ):
        return
    theta, slope, records = path.theta.copy(), path.slope.copy(), np.empty((most, 2))
    made, *state = core.follow_small_path(
        terms.all_rows,
        terms.targets(),
        terms.problem.l2,
        terms.vectors,
        enough,
        records,
        theta,
        slope,
        terms.unit,
        float(path.ends),
        path.length,
        path.objective,
        path.gap,
        path.products,
        budget.seconds_left,
        budget.flag,
    )
    path.resume(theta, slope, *state)
    progress.record_all(terms.target, records[:made].tolist())


class SmallHinges:
    """The targets of a hinge problem on a small dense table; see :meth:`of`."""

    def __init__(self, problem: Problem, blocks: Blocks, budget: Budget) -> None:
        block, d = blocks.whole(), blocks.n_columns
        self.problem, self.blocks, self.budget = problem, blocks, budget
        self.q = normalized_weights(block, blocks)
        self.y = np.asarray(block.y, dtype=np.float64)
        self.shift = rough_mean(blocks) if problem.fit_intercept else np.zeros(d)
        self.Z = np.empty((blocks.n_rows, d + 1))
        np.subtract(block.X, self.shift, out=self.Z[:, :-1], dtype=np.float64)
        self.Z[:, -1] = problem.fit_intercept

    @classmethod
    def of(cls, problem: Problem, blocks: Blocks, budget: Budget) -> Self | None:
        """Return the targets where they can be fitted in one native call each."""
        suits = problem.loss.name == "hinge" and problem.penalty.quadratic and problem.l2 > 0.0
        if not suits or blocks.sparse or blocks.streamed or budget.callbacks or not budget.tol > 0:
            return None
        few = blocks.n_rows * (blocks.n_columns + 1) ** 2 <= MOST_PRODUCTS
        enough = budget.max_iter is None or budget.max_iter >= MOST_STEPS
        return cls(problem, blocks, budget) if few and enough else None

    def minimise(self, k: int, dual: Array, progress: MarginProgress) -> tuple[Array, float] | None:
        """Return w and b of a target and set its dual point; None where another path has to be followed."""
        t, budget = np.ascontiguousarray(self.y[:, k]), self.budget
        up = t > 0
        if self.problem.fit_intercept and not 0.0 < float(self.q @ up) < 1.0 - 1e-12:
            return None  # there is but one class
        vectors = np.zeros((9, t.size))  # p, m, a, low, high, weight and the steps of p, m and a
        vectors[3], vectors[4] = np.where(up, 0.0, -self.q), np.where(up, self.q, 0.0)
        theta, records = np.empty(self.Z.shape[1]), np.empty((MOST_STEPS, 2))
        found, made = core.small_hinge(
            self.Z,
            t,
            self.problem.l2,
            vectors,
            progress.tolerance(k),
            budget.tol,
            1e-22 * progress.scale,
            records,
            theta,
            budget.seconds_left,
            budget.flag,
        )
        if not found:
            return None
        progress.record_all(k, records[:made].tolist())
        np.divide(-vectors[2], self.q, out=dual, where=self.q > 0)
        w, b = rounded_model(self.blocks, theta[:-1, None], theta[-1:], self.shift)
        return w[:, 0], float(b[0])

    def certify(self, w: Array, b: Array, dual: Array, scale: float) -> Certificate | None:
        """Return the certificate of all targets; None where it would not show convergence."""
        return certify_multipliers(
            self.problem, self.Z[:, :-1], self.shift, self.y, self.q, w, b, dual, self.budget.tol, scale
        )
