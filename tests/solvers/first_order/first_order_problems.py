"""What the tests of first-order solvers share: a table that is badly scaled, and how to solve."""

import numpy as np
import pytest

from sixfold.budget import Budget
from sixfold.solvers.first_order.gradient_descent import GradientDescent
from sixfold.solvers.first_order.options import FirstOrderOptions
from sixfold.solvers.first_order.stochastic import MiniBatch, StochasticGradient

SOLVERS = (GradientDescent, StochasticGradient, MiniBatch)
SIZES = np.array([1.0, 100.0, 0.01, 1.0])
OFFSETS = np.array([1e4, 0.0, 0.0, -50.0])


def regression(n=300, seed=0, dtype=np.float64):
    """Columns of very different size and offset, with noise of size 1."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, 4))
    y = Z @ [2.0, -3.0, 1.0, 0.5] + 700.0 + rng.standard_normal(n)
    return (Z * SIZES + OFFSETS).astype(dtype), y[:, None].astype(dtype)


def solve(solver, task, blocks, *, tol=1e-6, max_iter=None, **options):
    budget = Budget(tol=tol, max_iter=max_iter)
    solution = solver(FirstOrderOptions(**options)).solve(task, blocks, budget)
    assert solution.n_iter == len(budget.history)
    assert solution.certificate.objective == pytest.approx(
        task.objective(solution.w, solution.b, blocks), rel=1e-12
    )
    return solution
