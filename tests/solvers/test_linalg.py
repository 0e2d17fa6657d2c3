"""Symmetric systems are solved in any units, by the shortest solution where columns depend on each other."""

import numpy as np
import pytest

from sixfold.solvers.linalg import SymmetricFactor, scaled_cholesky


def semidefinite(rank):
    rng = np.random.default_rng(rank)
    root = rng.standard_normal((rank, 6))
    return root.T @ root, rng.standard_normal((6, 2))


@pytest.mark.parametrize("rank", [3, 6])
def test_a_factor_divides_like_the_pseudo_inverse_in_scaled_columns(rank):
    matrix, right = semidefinite(rank)
    right = matrix @ right
    scale = np.sqrt(np.diag(matrix))[:, None]
    expected = np.linalg.pinv(matrix / (scale * scale.T), rcond=1e-10) @ (right / scale) / scale
    factor = SymmetricFactor(matrix)
    assert (factor.vectors is None) == (rank == 6)
    np.testing.assert_allclose(factor.solve(right), expected, rtol=1e-9)
    np.testing.assert_allclose(factor.solve(right[:, 0]), expected[:, 0], rtol=1e-9)


def test_fixed_entries_stay_zero_and_do_not_count():
    matrix, right = semidefinite(6)
    fixed = np.arange(6) % 3 == 0
    found = SymmetricFactor(matrix, fixed).solve(right)
    free = np.flatnonzero(~fixed)
    assert not found[fixed].any()
    np.testing.assert_allclose(
        found[free], np.linalg.solve(matrix[np.ix_(free, free)], right[free]), rtol=1e-9
    )
    assert not SymmetricFactor(matrix, np.ones(6, bool)).solve(right).any()


def test_units_do_not_matter():
    matrix, right = semidefinite(6)
    unit = 10.0 ** np.arange(-60, 60, 20)[:, None]
    for solve in (lambda m: SymmetricFactor(m).solve, scaled_cholesky):
        found = unit[:, 0] * solve(matrix * unit * unit.T)(right[:, 0] * unit[:, 0])
        np.testing.assert_allclose(found, solve(matrix)(right[:, 0]), rtol=1e-9)


def test_values_that_are_not_finite_are_noticed():
    with pytest.raises(FloatingPointError, match="not finite"):
        SymmetricFactor(np.array([[np.nan]]))
