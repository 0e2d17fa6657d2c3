"""Short names for the problems that solver tests state."""

import numpy as np

from sixfold.budget import Budget
from sixfold.data.blocks import MemoryBlocks
from sixfold.risk.losses import LOSSES
from sixfold.risk.penalties import make_penalty
from sixfold.risk.problem import Problem


def problem(loss="squared", penalty=None, alpha=0.0, *, l1_ratio=0.5, positive=False, fit_intercept=True):
    return Problem(LOSSES[loss], make_penalty(penalty, l1_ratio, positive), alpha, fit_intercept)


def blocks(X, y, weight=None, rows_per_block=None):
    y = np.asarray(y)
    return MemoryBlocks(X, y[:, None] if y.ndim == 1 else y, weight, rows_per_block)


def solve(solver, stated, data, tol=1e-6, max_iter=1000, **limits):
    """Return the solution and the budget it was found in."""
    with Budget(tol, max_iter, **limits) as budget:
        return solver.solve(stated, data, budget), budget
