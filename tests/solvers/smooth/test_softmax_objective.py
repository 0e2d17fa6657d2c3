"""The objective of the softmax: its gap from two passes is that of the problem."""

import numpy as np
import pytest
import scipy.sparse as sp

from sixfold.budget import Budget
from sixfold.solvers.smooth.lbfgs import LBFGS
from sixfold.solvers.smooth.softmax_objective import SoftmaxObjective
from solvers.problems import blocks, problem, solve


@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray, sp.csr_array])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_softmax_gap_of_two_passes_is_that_of_the_problem(layout, fit_intercept, weighted):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(203, 5)), rng.integers(0, 4, size=203)
    weight = rng.integers(0, 3, size=203).astype(float) if weighted else None
    p = problem("softmax", "l2", alpha=0.5, fit_intercept=fit_intercept)
    data = blocks(layout(X), y, weight)
    objective = SoftmaxObjective(p, data, Budget(), np.zeros(5), 1.0)
    w = solve(LBFGS(), p, data)[0].w + 0.01 * rng.normal(size=(5, 4))  # near enough for a gap below R
    b = 0.01 * rng.normal(size=4) * fit_intercept
    value, gap = objective.objective_and_gap(w, b)
    assert value == pytest.approx(p.objective(w, b, data), rel=1e-14)
    assert gap == pytest.approx(p.gap(w, b, data), rel=1e-11)
    assert gap < value
