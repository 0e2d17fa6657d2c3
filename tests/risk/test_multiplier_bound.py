"""The certificate from sums over the rows: true for any multipliers, and that of the careful one."""

import numpy as np
import pytest
import scipy.sparse as sp

from sixfold.risk.multiplier_bound import certify_multipliers
from sixfold.solvers.margin.dual_coordinate import DualCoordinate
from solvers.problems import blocks, solve
from solvers.problems import problem as stated_problem


def found_at(loss, tol, intercept=False):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 60)) * (rng.random((40, 60)) < 0.5)
    y = np.where(X[:, 0] + rng.normal(size=40) > 0, 1.0, -1.0)
    stated = stated_problem(loss, "l2", 0.05, fit_intercept=intercept)
    found, _ = solve(DualCoordinate(), stated, blocks(sp.csr_array(X), y), tol=tol)
    return stated, X, y[:, None], found


def certify(stated, X, y, w, b, dual, tol=1.0):
    q = np.full(len(y), 1.0 / len(y))
    return certify_multipliers(stated, X, np.zeros(X.shape[1]), y, q, w, b, dual, tol, 1.0)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("intercept", [True, False])
def test_any_model_and_multipliers_have_a_bound_that_the_optimum_keeps(loss, intercept):
    stated, X, y, exact = found_at(loss, 1e-10, intercept)
    optimum = exact.certificate.objective
    rng = np.random.default_rng(1)
    for far in (0.0, 1e-6, 1e-3, 0.03):
        w = exact.w + far * rng.normal(size=exact.w.shape)
        dual = exact.dual * rng.uniform(1.0 - far, 1.0, size=exact.dual.shape)
        one = certify(stated, X, y, w, exact.b, dual)
        assert one.lower_bound <= optimum <= one.objective + 1e-12
        careful = stated.certify("duality gap", w, exact.b, blocks(X, y[:, 0]), 1.0, dual, 1.0)
        assert abs(one.objective - careful.objective) <= 1e-12
        assert one.gap >= careful.gap - 1e-9
        assert far > 0.0 or one.gap <= 1e-8


def test_sparse_rows_have_the_certificate_of_dense_ones():
    stated, X, y, found = found_at("hinge", 1e-8)
    dense = certify(stated, X, y, found.w, found.b, found.dual)
    sparse = certify(stated, sp.csr_array(X), y, found.w, found.b, found.dual)
    assert abs(dense.gap - sparse.gap) <= 1e-13
    assert abs(dense.objective - sparse.objective) <= 1e-13


def test_no_certificate_where_it_would_not_show_convergence():
    stated, X, y, found = found_at("hinge", 1e-8)
    assert certify(stated, X, y, found.w, found.b, 0.5 * found.dual, tol=1e-6) is None
    assert certify(stated, X, y, found.w, found.b, found.dual, tol=1e-6).converged
