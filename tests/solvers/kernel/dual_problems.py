"""Duals of kernel SVMs that tests solve, and what must hold of a solution."""

import numpy as np
import pytest

from oracles.kernel import dual_gradient, intercept, violation
from sixfold.geometry.kernels import RBF
from sixfold.solvers.kernel.dual import DualProblem
from sixfold.solvers.kernel.kernel_rows import KernelRows

PLENTY = 1 << 27


def make_problem(n=60, d=3, C=1.0, seed=0, kernel=None, dtype=np.float64, flip=0.1):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)).astype(dtype)
    y = np.where(X[:, 0] + 0.3 * random.normal(size=n) > 0, 1.0, -1.0)
    y[random.random(n) < flip] *= -1.0
    y[:2] = 1.0, -1.0
    kernel = RBF(0.5) if kernel is None else kernel
    return DualProblem(KernelRows(X, kernel), np.arange(n), y, np.broadcast_to(C, n).astype(float)), kernel(X)


def check(problem, gram, solution, tol=1e-3):
    """Assert that all that is said of the solution is so."""
    y, upper, alpha = problem.y, problem.upper, solution.alpha
    assert (alpha >= 0).all()
    assert (alpha <= upper).all()
    assert abs(alpha @ y) <= 1e-12 * max(alpha.sum(), 1e-300)
    gradient = dual_gradient(gram, y, alpha)
    size = np.abs(gram).max() * max(alpha.sum(), 1.0)
    np.testing.assert_allclose(
        solution.scores, y * (gradient + 1.0), rtol=0, atol=solution.rounding + 1e-13 * size
    )
    slip = 2.0 * solution.rounding + 1e-12 * size
    assert solution.violation == pytest.approx(max(violation(y, upper, alpha, gradient), 0.0), abs=slip)
    assert solution.violation <= tol
    if np.isfinite(tol):
        assert solution.intercept == pytest.approx(intercept(y, upper, alpha, gradient), abs=slip)
    else:  # unfinished: no intercept is cheaper, and what was gained is kept
        scores = y * (gradient + 1.0)
        cost = [upper @ np.maximum(1.0 - y * (scores + b), 0.0) for b in [solution.intercept, *(y - scores)]]
        assert cost[0] <= min(cost) + slip * upper.sum()
        dual = alpha.sum() - 0.5 * (alpha * y) @ scores
        assert dual > 0.0 or not solution.iterations
