"""The ridge path gives for every penalty what the direct solver gives for it alone."""

import numpy as np
import pytest

from sixfold.budget import Budget
from sixfold.solvers.least_squares.direct import LeastSquares
from sixfold.solvers.least_squares.ridge_path import ridge_path
from solvers.problems import blocks, problem, solve


@pytest.mark.parametrize("shape", [(60, 8), (8, 60)])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_one_factorisation_serves_every_penalty(shape, fit_intercept):
    random = np.random.default_rng(7)
    X, Y = random.normal(size=shape) + 1.0, random.normal(size=(shape[0], 2))
    data, penalties = blocks(X, Y), [1e-3, 0.1, 5.0]
    stated = problem(penalty="l2", alpha=1.0, fit_intercept=fit_intercept)
    path = list(ridge_path(stated, data, penalties, Budget()))
    for l2, (w, b) in zip(penalties, path, strict=True):
        one, _ = solve(LeastSquares(), problem(penalty="l2", alpha=l2, fit_intercept=fit_intercept), data)
        np.testing.assert_allclose(w, one.w, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(b, one.b, rtol=1e-9, atol=1e-12)
