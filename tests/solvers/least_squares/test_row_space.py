"""Wide tables are solved in the space of their rows, and the certificate says which solution was chosen."""

import numpy as np

from oracles.linear import least_squares
from sixfold.solvers.least_squares.direct import LeastSquares
from solvers.problems import blocks, problem, solve


def test_more_columns_than_rows_says_which_solution_was_chosen():
    random = np.random.default_rng(8)
    X, y = random.normal(size=(5, 30)), random.normal(size=5)
    solution, _ = solve(LeastSquares(), problem(), blocks(X, y))
    assert "30 columns but only 5 rows" in str(solution.certificate)
    assert "the shortest were chosen" in str(solution.certificate)
    assert solution.certificate.objective < 1e-25


def test_repeated_rows_with_different_targets_in_a_wide_table():
    random = np.random.default_rng(9)
    X = np.repeat(random.normal(size=(3, 20)), 2, axis=0)
    y = random.normal(size=6)
    solution, _ = solve(LeastSquares(), problem(), blocks(X, y))
    w, _ = least_squares(X, y[:, None])
    assert solution.solver == "singular values"
    np.testing.assert_allclose(solution.w, w, atol=1e-12)
    assert solution.certificate.gap == solution.certificate.rounding < 1e-13
