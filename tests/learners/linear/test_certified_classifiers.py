"""Logistic regression and squared-hinge SVMs are certified whatever C, scales, classes and shape.

Each test is a fit that once ended short of its tolerance, or took a minute.
"""

import time

import numpy as np
import pytest
from scipy.special import expit
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.preprocessing import StandardScaler

import pmlb
from sixfold import LinearSVC, LogisticRegression
from sixfold.errors import SeparationWarning


def certified(model, X, y, sample_weight=None):
    """Fit, and have the certificate checked; a warning would be an error."""
    model.fit(X, y, sample_weight)
    assert model.certificate_.converged
    model.certificate_.verify(X, y, sample_weight)
    return model


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_squared_hinge_on_digits_as_they_come(C):
    X, y = load_digits(return_X_y=True)
    certified(LinearSVC(C=C), X[:600], y[:600])


@pytest.mark.parametrize("C", [1e4, 1e8, 1e12])
@pytest.mark.parametrize("load", [load_wine, load_breast_cancer], ids=["wine", "breast cancer"])
def test_squared_hinge_with_next_to_no_penalty(load, C):
    X, y = load(return_X_y=True)
    certified(LinearSVC(C=C), X, y)
    certified(LinearSVC(C=C), StandardScaler().fit_transform(X), y)


@pytest.mark.parametrize(
    ("seed", "C"), [(6, 1e10), (44, 1e10), (50, 1e10), (10, 1e12), (12, 1e12), (36, 1e12), (37, 1e12)]
)
def test_classes_that_are_apart_in_standard_units(seed, C):
    rng = np.random.default_rng(seed)  # one in six seeds ended short before
    X = StandardScaler().fit_transform(rng.normal(size=(100, 60)))
    certified(LogisticRegression(C=C), X, rng.integers(0, 2, 100))


@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6])
def test_twelve_decades_of_scales(C):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 100)) * 10.0 ** np.linspace(0, 12, 100)
    certified(LogisticRegression(C=C), X, rng.integers(0, 2, 100))


def test_as_many_columns_as_rows_in_twelve_decades_and_three_classes():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 150)) * 10.0 ** np.linspace(-6, 6, 150)
    certified(LogisticRegression(), X, rng.integers(0, 3, 150))


def test_weights_of_twelve_decades_beside_a_column_of_1e12():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 5))
    X[:, 0] *= 1e12
    certified(LogisticRegression(), X, rng.integers(0, 2, 200), 10.0 ** rng.uniform(-6, 6, 200))


def test_unpenalised_columns_that_are_collinear_to_eight_digits():
    rng = np.random.default_rng(3)
    X, hidden = rng.normal(size=(300, 3)), rng.normal(size=300)
    y = (rng.random(300) < expit(hidden)).astype(int)
    apart = certified(LogisticRegression(C=np.inf), np.column_stack([X, hidden]), y)
    near = certified(LogisticRegression(C=np.inf), np.column_stack([X, X[:, 0] + 1e-8 * hidden]), y)
    assert near.certificate_.objective == pytest.approx(apart.certificate_.objective, rel=1e-5)


def test_many_rare_classes_and_collinear_columns():
    """The cause of kddcup's: 13 classes, most of them rare, 462 parameters."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 30))
    X[:, 15:] = X[:, :15] + 1e-4 * X[:, 15:]
    share = 0.5 ** np.arange(13)
    y = (X[:, :13] * 2 + np.log(share) + rng.gumbel(size=(400, 13))).argmax(axis=1)
    model = certified(LogisticRegression(C=1e4), X, y)
    assert model.n_iter_[0] < 400


HARD = (
    "dermatology",
    "fars",
    "letter",
    "mfeat_zernike",
    "movement_libras",
    "segmentation",
    "sonar",
    "soybean",
)


@pytest.mark.parametrize("name", [name for name in HARD if name in pmlb.PATHS])
@pytest.mark.parametrize("C", [1.0, 1e6])
def test_large_c_on_real_tables(name, C):
    X, y = pmlb.load(name)
    some = np.random.default_rng(0).permutation(y.size)[:400]
    certified(LogisticRegression(C=C), X[some], y[some])
    certified(LinearSVC(C=C), X[some], y[some])


def wide(classes):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 2000))
    return X, (X[:, :classes] + rng.gumbel(size=(300, classes))).argmax(axis=1)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("learner", [LogisticRegression, LinearSVC])
def test_wide_tables_are_solved_by_products_of_their_rows(learner, classes):
    X, y = wide(classes)
    began = time.process_time()
    model = learner().fit(X, y)
    assert time.process_time() - began < 0.6  # about 0.03 s; it was 0.7 to 5
    assert model.certificate_.converged
    assert ("products" if learner is LinearSVC else "row space") in model.solver_
    model.certificate_.verify(X, y)


@pytest.mark.parametrize("classes", [2, 4])
def test_a_wide_table_without_penalty_is_separated_at_once(classes):
    X, y = wide(classes)
    model = LogisticRegression(C=np.inf, on_separation="warn")
    began = time.process_time()
    with pytest.warns(SeparationWarning):
        model.fit(X, y)
    assert time.process_time() - began < 0.6  # about 0.03 s; it was a minute
    assert model.certificate_.converged
    assert model.score(X, y) == 1.0
