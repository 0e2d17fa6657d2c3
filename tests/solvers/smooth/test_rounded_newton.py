"""Newton on rounded absolute values: nearly separable classes, and a penalty that hardly counts."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits

from benchmarks.gauntlet import families
from sixfold import ERMClassifier, LinearSVC, LogisticRegression
from sixfold.solvers.smooth.rounded_newton import rounded_slopes


def check(model, X, y):
    model.fit(X, y)
    assert model.certificate_.converged
    model.certificate_.verify(X, y)
    return model


def test_the_rounded_absolute_value_is_the_least_over_its_bounds():
    l1, t, w = 0.3, 7.0, np.linspace(-2.0, 2.0, 9)
    u = (1.0 + np.sqrt(1.0 + (t * l1 * w) ** 2)) / (t * l1)

    def barrier(w, u):
        return l1 * u - np.log(u**2 - w**2) / t

    for other in (0.999 * u, 1.001 * u):
        inside = other > np.abs(w)
        assert (barrier(w, other) > barrier(w, u))[inside].all()
    first, second = rounded_slopes(w, l1, t)
    step = 1e-6
    np.testing.assert_allclose(first, (barrier(w + step, u) - barrier(w - step, u)) / (2 * step), atol=1e-8)
    changed = rounded_slopes(w + step, l1, t)[0] - rounded_slopes(w - step, l1, t)[0]
    np.testing.assert_allclose(second, changed / (2 * step), rtol=1e-6)
    assert (np.abs(first) < l1).all()


@pytest.mark.parametrize("C", [1e2, 1e4, 1e6])
def test_squared_hinge_with_l1_and_a_large_c_is_certified(C):
    X, y = load_breast_cancer(return_X_y=True)
    model = check(LinearSVC(penalty="l1", C=C), X[:150], y[:150])
    assert np.count_nonzero(model.coef_) < X.shape[1]


def test_many_classes_of_a_few_rows_are_certified():
    X, y = load_digits(n_class=4, return_X_y=True)
    for model in (
        LinearSVC(penalty="l1", C=100.0),
        LogisticRegression(penalty="l1", C=1e4),
        LogisticRegression(penalty="elasticnet", l1_ratio=0.5, C=1e4),
    ):
        check(model, X[:80], y[:80])


def test_columns_that_differ_on_rows_without_curvature_only_still_move():
    # Under the weights of the rows that are not yet right a column may be constant though it has a slope.
    rng = np.random.default_rng(3)
    X = np.column_stack([np.repeat([0.0, 1.0], 30), np.r_[np.zeros(59), 1.0], rng.normal(size=60)])
    y = np.r_[np.zeros(30), np.ones(30)]
    check(LogisticRegression(penalty="l1", C=1e6), X, y)


@pytest.mark.parametrize(
    ("penalty", "C"),
    [("elasticnet", 100.0), ("l1", 1.0)],
    ids=["next to no penalty", "slopes of large columns"],
)
def test_rare_classes_of_a_log_are_certified_within_iterations(penalty, C):
    # Coordinate descent took 25 s and more: it hands on. A dual point off its probabilities has other slopes
    # than the step says, and slopes of columns in the millions are rounded by more than they may be off.
    X, y, _ = families.make("ever rarer classes, log of traffic", "classes")
    model = check(LogisticRegression(penalty=penalty, C=C, l1_ratio=0.5 if penalty != "l1" else None), X, y)
    assert "then Newton on rounded absolute values" in model.solver_
    assert model.n_iter_ <= 150


def test_columns_that_nearly_depend_on_others_leave_no_slope():
    # The normal equations have lost the directions in which penalties of 1e-8 are all that bends.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4)).round(3)
    X = np.column_stack([X, (X[:, :3].sum(axis=1) / 3).round(6), 2 * X[:, 0] - X[:, 1] - X[:, 2]])
    y = (X[:, :4] @ rng.normal(size=(4, 5)) + 0.1 * rng.gumbel(size=(400, 5))).argmax(axis=1)
    check(ERMClassifier(loss="softmax", penalty="l1", alpha=1e-8), X, y)


def test_the_corner_of_the_squared_hinge_is_rounded():
    X, y, _ = families.make("scales 1e-6 to 1e6, n = d", "classes")
    model = check(LinearSVC(penalty="l1", C=1e4), X, y)
    assert model.n_iter_ <= 300  # 450 without, and a gap of 1e-4
