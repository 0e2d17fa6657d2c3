"""The interior point of L1 problems: nearly separable classes, and a penalty that hardly counts."""

import numpy as np
import pytest
from sixfold.solvers.l1.interior import _Rounded
from sklearn.datasets import load_breast_cancer, load_digits

from sixfold import LinearSVC, LogisticRegression


def test_the_rounded_absolute_value_is_the_least_over_its_bounds():
    l1, t, w = 0.3, 7.0, np.linspace(-2.0, 2.0, 9)
    u = (1.0 + np.sqrt(1.0 + (t * l1 * w) ** 2)) / (t * l1)

    def barrier(w, u):
        return l1 * u - np.log(u**2 - w**2) / t

    for other in (0.999 * u, 1.001 * u):
        inside = other > np.abs(w)
        assert (barrier(w, other) > barrier(w, u))[inside].all()
    first, second = _Rounded(l1, t).derivatives(w)
    step = 1e-6
    np.testing.assert_allclose(first, (barrier(w + step, u) - barrier(w - step, u)) / (2 * step), atol=1e-8)
    changed = _Rounded(l1, t).derivatives(w + step)[0] - _Rounded(l1, t).derivatives(w - step)[0]
    np.testing.assert_allclose(second, changed / (2 * step), rtol=1e-6)
    assert (np.abs(first) < l1).all()


@pytest.mark.parametrize("C", [1e2, 1e4, 1e6])
def test_squared_hinge_with_l1_and_a_large_c_is_certified(C):
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:150], y[:150]
    model = LinearSVC(penalty="l1", C=C, max_iter=10).fit(X, y)
    assert model.certificate_.converged  # within 1.2e-6 after 23 iterations before, at C = 1e6
    model.certificate_.verify(X, y)
    assert np.count_nonzero(model.coef_) < X.shape[1]


def test_many_classes_of_a_few_rows_are_certified():
    X, y = load_digits(n_class=4, return_X_y=True)
    X, y = X[:80], y[:80]
    for model in (
        LinearSVC(penalty="l1", C=100.0, max_iter=20),
        LogisticRegression(penalty="l1", C=1e4, max_iter=20),
        LogisticRegression(penalty="elasticnet", l1_ratio=0.5, C=1e4, max_iter=20),
    ):
        model.fit(X, y)
        assert model.certificate_.converged
        model.certificate_.verify(X, y)


def test_columns_that_differ_on_rows_without_curvature_only_still_move():
    # Under the weights of the rows that are not yet right a column may be constant though it has a slope.
    rng = np.random.default_rng(3)
    X = np.column_stack([np.repeat([0.0, 1.0], 30), np.r_[np.zeros(59), 1.0], rng.normal(size=60)])
    y = np.r_[np.zeros(30), np.ones(30)]
    model = LogisticRegression(penalty="l1", C=1e6).fit(X, y)
    assert model.certificate_.converged
    model.certificate_.verify(X, y)
