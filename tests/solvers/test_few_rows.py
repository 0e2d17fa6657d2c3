"""Systems of a few rows and a diagonal, and fits of absolute values in the penalty on wide tables."""

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks.gauntlet import families
from sixfold import ERMClassifier, ERMRegressor, LinearSVC, LogisticRegression
from sixfold.solvers.few_rows import few_rows_solver


def solved(K, diagonal, right):
    """Return the solution from the whole matrix, in units that make its diagonal 1."""
    K = K.toarray() if sp.issparse(K) else K
    matrix = K.T @ K + np.diag(diagonal)
    unit = 1.0 / np.sqrt(np.diag(matrix))
    return unit * np.linalg.solve(unit[:, None] * matrix * unit, unit * right)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("light", [0, 1, 8, 25])
def test_the_solution_is_that_of_the_whole_matrix(sparse, light):
    # With a light diagonal on more columns than rows the matrix itself would be singular to the last bit.
    rng = np.random.default_rng(light)
    K = rng.normal(size=(10, 40)) * (rng.random((10, 40)) < 0.5)
    diagonal, right = 10.0 ** rng.uniform(-2, 2, 40), rng.normal(size=40)
    diagonal[:light] *= 1e-18 if light < 10 else 1e-6
    if light:
        diagonal[-1] = 0.0
    found = few_rows_solver(sp.csc_array(K) if sparse else K, diagonal)(right)
    np.testing.assert_allclose(found, solved(K, diagonal, right), rtol=1e-6, atol=1e-6 * np.abs(found).max())


def test_columns_of_next_to_no_penalty_leave_the_rows_met():
    rng = np.random.default_rng(0)
    K, target = rng.normal(size=(10, 40)), rng.normal(size=10)
    x = few_rows_solver(K, np.full(40, 1e-20))(K.T @ target)
    np.testing.assert_allclose(K @ x, target, rtol=1e-6)


def texts(rows=120, columns=500):
    """Return counts of words, most of them rare, three classes and numbers."""
    rng = np.random.default_rng(0)
    X = families.texts(rng, rows, columns)
    signal = X @ rng.normal(size=(columns, 3))
    return (
        X,
        (signal + 0.1 * rng.gumbel(size=signal.shape)).argmax(axis=1),
        signal[:, 0] + rng.normal(size=rows),
    )


MODELS = [
    ERMClassifier("hinge", penalty="l1", alpha=1e-3),
    ERMClassifier("hinge", penalty="elasticnet", l1_ratio=0.5, alpha=1e-3),
    ERMClassifier("softmax", penalty="l1", alpha=1e-3, solver="rounded-newton"),
    LogisticRegression(penalty="l1", C=1e2, solver="rounded-newton"),
    LogisticRegression(
        penalty="elasticnet", l1_ratio=0.5, C=1e2, solver="rounded-newton", fit_intercept=False
    ),
    LinearSVC(penalty="l1", C=1e6),
    LinearSVC(penalty="l1", C=1e8, solver="rounded-newton"),
    LogisticRegression(penalty="l1", C=1e8, solver="rounded-newton"),
    ERMRegressor("absolute", penalty="l1", alpha=1e-3),
    ERMRegressor("absolute", penalty="elasticnet", l1_ratio=0.5, alpha=1e-8, fit_intercept=False),
]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_more_columns_than_rows_are_certified(model, dense, weighted):
    X, y, numbers = texts()
    X = X.toarray() if dense else X
    y = numbers if isinstance(model, ERMRegressor) else y
    weight = np.random.default_rng(1).uniform(0.0, 3.0, len(y)).round() if weighted else None
    model.fit(X, y, sample_weight=weight)
    assert model.certificate_.converged
    model.certificate_.verify(X, y, sample_weight=weight)


@pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
@pytest.mark.parametrize("loss", ["logistic", "softmax", "squared_hinge"])
def test_newton_on_rows_finds_what_coordinate_descent_finds(loss, penalty):
    X, y, _ = texts()
    ratio = 0.5 if penalty == "elasticnet" else None
    first, second = (
        ERMClassifier(loss, penalty=penalty, l1_ratio=ratio, alpha=1e-2, solver=solver, tol=1e-9).fit(X, y)
        for solver in ("coordinate", "rounded-newton")
    )
    assert second.certificate_.objective == pytest.approx(first.certificate_.objective, rel=1e-8)
    np.testing.assert_allclose(second.decision_function(X), first.decision_function(X), atol=1e-3)


def test_an_interior_point_on_rows_leaves_coefficients_at_zero():
    X, y, numbers = texts()
    regression = ERMRegressor("absolute", penalty="l1", alpha=1e-3).fit(X, numbers)
    classes = ERMClassifier("hinge", penalty="l1", alpha=1e-3).fit(X, y)
    for model in (regression, classes):
        assert model.solver_ == "interior point"
        assert 0 < np.count_nonzero(model.coef_, axis=-1).max() <= len(y)


def test_few_rows_of_very_many_columns_are_certified():
    # More columns than a system may have: 100 million numbers would be in the matrix of all of them.
    X, y, numbers = texts(100, 10_000)
    for model, target in (
        (ERMClassifier("hinge", penalty="l1", alpha=1e-4), y > 0),
        (LinearSVC(penalty="l1", C=1e6), y > 0),
        (ERMRegressor("absolute", penalty="elasticnet", l1_ratio=0.5, alpha=1e-4), numbers),
    ):
        model.fit(X, target)
        assert model.certificate_.converged
        model.certificate_.verify(X, target)
