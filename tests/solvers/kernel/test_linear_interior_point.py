"""The interior point that takes over where pairs of rows of a linear kernel get no further."""

import warnings

import numpy as np
import pytest

from sixfold import SVC
from sixfold.budget import Budget
from sixfold.errors import StoppedEarly
from sixfold.geometry.kernels import linear
from sixfold.solvers.kernel.dual import DualProblem, DualSolution, certify, optimality_at_zero
from sixfold.solvers.kernel.kernel_rows import KernelRows
from sixfold.solvers.kernel.linear_interior_point import refine, suits


def rows_of_many_scales(seed, n=200, duplicates=False):
    """Return columns of scales 1e-2 to 1e4, and labels that depend on all of them."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 7))
    y = np.where(X.sum(axis=1) + random.normal(size=n) > 0.0, 1.0, -1.0)
    X = X * 10.0 ** np.arange(-2.0, 5.0)
    return (np.repeat(X[: n // 2], 2, axis=0), np.repeat(y[: n // 2], 2)) if duplicates else (X, y)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3, 1e5])
@pytest.mark.parametrize("duplicates", [False, True])
def test_from_nothing_it_reaches_the_optimum(C, duplicates):
    X, y = rows_of_many_scales(1, duplicates=duplicates)
    problem = DualProblem(KernelRows(X, linear, centred=True), np.arange(y.size), y, np.full(y.size, C))
    zero = DualSolution(0.0 * y, 0.0 * y, optimality_at_zero(problem.box), 0, True, 0.0)
    assert suits(problem)
    found = refine(problem, zero, 1e-3, Budget())
    assert certify(problem, found, 1e-3).relative_gap < 1e-4
    assert ((found.alpha >= 0.0) & (found.alpha <= C)).all()
    assert abs(found.alpha @ y) <= 1e-12 * found.alpha.sum()


@pytest.mark.parametrize("C", [1e3, 1e5])
def test_raw_columns_and_a_large_c_end_certified(C):
    X, y = rows_of_many_scales(0, n=300)
    with warnings.catch_warnings():
        warnings.simplefilter("error", StoppedEarly)
        model = SVC(kernel="linear", C=C).fit(X, y)
    model.certificate_.verify(X, y)
    assert model.certificate_.converged
    assert model.fit_status_ == 0
    assert model.score(X, y) > 0.8


def test_max_iter_is_kept_to():
    X, y = rows_of_many_scales(0)
    with pytest.warns(StoppedEarly, match="max_iter=20"):
        model = SVC(kernel="linear", C=1e5, max_iter=20).fit(X, y)
    assert model.n_iter_.max() <= 20
