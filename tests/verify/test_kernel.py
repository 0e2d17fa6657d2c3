"""Certificates of support vector machines: confirmed from the data and by an oracle, told from others."""

import copy
import dataclasses
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris, make_classification

from oracles import kernel as oracle
from sixfold import SVC
from sixfold.errors import CertificateError, NotSeparable, StoppedEarly
from sixfold.geometry.kernels import RBF
from sixfold.verify import kernel

OTHER_DATA = "the data are not those of the fit"


def table(classes=2, rows=61, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3)) * [0.5, 1.0, 2.0] + 1.0
    scores = X @ rng.normal(size=(3, classes)) + rng.gumbel(size=(rows, classes))
    weight = rng.uniform(0.2, 3.0, size=rows)
    weight[::9] = 0.0
    return X, np.array(["ash", "birch", "oak"])[scores.argmax(axis=1)], weight


def products(A, B):
    found = A @ B.T
    return (found.toarray() if sp.issparse(found) else found) + 1.0


SETTINGS = {
    "rbf": {},
    "linear": {"kernel": "linear"},
    "polynomial": {"kernel": "poly", "coef0": 1.0, "C": 0.3},
    "sigmoid": {"kernel": "sigmoid", "coef0": 0.5},
    "tight": {"tol": 1e-10},
    "large cost": {"C": 1e4, "tol": 1e-2},
    "small cost": {"C": 1e-6},
    "rest": {"multi_class": "ovr"},
    "balanced": {"class_weight": "balanced"},
    "function": {"kernel": products},
}

KINDS = {
    "dense": lambda X: X,
    "csr": sp.csr_array,
    "float32": lambda X: X.astype(np.float32),
    "far from zero": lambda X: X + np.array([2000.0, -1500.0, 1000.0]),
    "large": lambda X: 1e40 * X,
    "small": lambda X: 1e-40 * X,
}


UNSCALED = ("far from zero", "large", "small")  # other kernels than "rbf" have values of very different sizes
FITS = [
    (kind, name)
    for kind in KINDS
    for name in SETTINGS
    if kind not in UNSCALED or "kernel" not in SETTINGS[name]
]


@pytest.mark.parametrize(("kind", "name"), FITS)
@pytest.mark.parametrize("classes", [2, 3])
def test_a_fit_is_confirmed_from_the_data(kind, name, classes):
    X, y, weight = table(classes)
    X = KINDS[kind](X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoppedEarly)  # float32 and tol=1e-10
        model = SVC(**SETTINGS[name]).fit(X, y, weight)
    found = model.certificate_.verify(X, y, weight)
    assert found.objective == pytest.approx(model.certificate_.objective, rel=1e-5)
    assert found.scale == pytest.approx(model.certificate_.scale)
    assert model.certificate_.gap >= 0


@pytest.mark.parametrize("parameters", [{}, {"multi_class": "ovr"}], ids=["pairs", "rest"])
@pytest.mark.parametrize("classes", [2, 3])
def test_no_changed_attribute_passes(parameters, classes):
    X, y, weight = table(classes)
    model = SVC(**parameters, tol=1e-6).fit(X, y, weight)
    model.certificate_.verify(X, y, weight)
    changes = [("dual_coef_", (0, 3)), ("dual_coef_", (0, -1)), ("support_vectors_", (2, 1))]
    changes += [("intercept_", (number,)) for number in range(model.intercept_.size)]
    for name, place in changes:
        other, values = copy.copy(model), getattr(model, name).copy()
        values[place] += 1e-3
        setattr(other, name, values)
        with pytest.raises(CertificateError, match=OTHER_DATA):
            other.certificate_.verify(X, y, weight)
    other = copy.copy(model)
    other.dual_coef_ = 1.001 * model.dual_coef_
    with pytest.raises(CertificateError, match=OTHER_DATA):
        other.certificate_.verify(X, y, weight)
    other = copy.copy(model)
    other.support_ = np.roll(model.support_, 1)
    with pytest.raises(CertificateError, match=OTHER_DATA):
        other.certificate_.verify(X, y, weight)


@pytest.mark.parametrize("parameters", [{}, {"C": np.inf, "gamma": 1.0}], ids=["soft", "hard"])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_violation_that_is_larger_than_claimed_is_told(parameters, classes):
    X, y, _ = table(classes)
    model = SVC(**parameters).fit(X, y)
    found = model.certificate_.verify(X, y)
    violation = model.certificate_.details["violation"]
    assert violation > 1e-5
    assert found.details["violation"] == pytest.approx(violation, rel=1e-6)
    model._violation = 0.99 * violation
    with pytest.raises(CertificateError, match="no two rows violate optimality by more than"):
        model.certificate_.verify(X, y)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_a_model_changed_on_rows_far_from_zero_is_told(offset):
    X, y = load_iris(return_X_y=True)
    X, y = X[50:] + offset, y[50:]
    model = SVC(gamma=0.5).fit(X, y)
    model.certificate_.verify(X, y)
    other = copy.copy(model)
    other.dual_coef_ = 0.999 * model.dual_coef_
    with pytest.raises(CertificateError, match=OTHER_DATA):
        other.certificate_.verify(X, y)


def test_coefficients_of_no_dual_point_are_told():
    X, y, weight = table()
    model = SVC().fit(X, y, weight)
    upper = weight[model.support_]
    size = np.abs(model.dual_coef_[0])
    free = np.flatnonzero((size > 1e-3 * upper) & (size < 0.9 * upper))[0]
    inside, beyond, other_side = (model.dual_coef_.copy() for _ in range(3))
    inside[0, free] *= 0.99
    beyond *= 1.5
    other_side[0, free] *= -1.0
    for coefficients, sentence in (
        (inside, "The dual coefficients add up to"),
        (beyond, "A dual coefficient is beyond its bounds by"),
        (other_side, "A dual coefficient is beyond its bounds by"),
    ):
        other = copy.copy(model)
        other.dual_coef_ = coefficients
        with pytest.raises(CertificateError, match=sentence):
            other.certificate_.verify(X, y, weight)
    changed, silent = y.copy(), weight.copy()
    changed[model.support_[0]] = next(label for label in model.classes_ if label != y[model.support_[0]])
    silent[model.support_[0]] = 0.0
    with pytest.raises(CertificateError, match="The support vectors have other labels"):
        model.certificate_.verify(X, changed, weight)
    with pytest.raises(CertificateError, match="A support vector has weight 0"):
        model.certificate_.verify(X, y, silent)


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_single_precision_does_not_hide_a_changed_model(C):
    X, y = make_classification(n_samples=5000, n_features=20, n_informative=10, random_state=0)
    model = SVC(C=C).fit(X, y)
    assert model.certificate_.details["rounding"] > 1e-9  # scores in float32
    model.certificate_.verify(X, y)
    for factor in (0.999, 1.001):
        other = copy.copy(model)
        other.dual_coef_ = factor * model.dual_coef_
        with pytest.raises(CertificateError, match=OTHER_DATA):
            other.certificate_.verify(X, y)
    one_label = y.copy()
    one_label[np.setdiff1d(np.arange(5000), model.support_)[0]] ^= 1
    with pytest.raises(CertificateError, match=OTHER_DATA):
        model.certificate_.verify(X, one_label)


@pytest.mark.parametrize("classes", [2, 3])
def test_other_data_do_not_pass(classes):
    X, y, weight = table(classes)
    model = SVC().fit(X, y, weight)
    row = model.support_[np.abs(model.dual_coef_).max(axis=0).argmax()]  # its loss counts
    one_cell, one_label, one_weight = X.copy(), y.copy(), weight.copy()
    one_cell[row, 0] *= 1.01
    one_label[row] = next(label for label in model.classes_ if label != y[row])
    one_weight[row] *= 1.01
    fewer = np.arange(y.size) != row
    others = [(one_cell, y, weight), (X, one_label, weight), (X, y, one_weight), (X, y)]
    for other in [*others, (X[fewer], y[fewer], weight[fewer])]:
        with pytest.raises(CertificateError, match=OTHER_DATA):
            model.certificate_.verify(*other)


def test_a_hard_margin_is_confirmed_and_a_changed_one_is_not():
    X, y, _ = table()
    model = SVC(C=np.inf).fit(X, y)
    found = model.certificate_.verify(X, y)
    assert found.objective == pytest.approx(model.certificate_.objective)
    assert model.certificate_.converged
    other = copy.copy(model)
    other.intercept_ = model.intercept_ + 1e-2
    with pytest.raises(CertificateError, match=OTHER_DATA):
        other.certificate_.verify(X, y)
    other.intercept_ = model.intercept_ + 1e3
    with pytest.raises(CertificateError, match="Rows are on the wrong side of the hard margin"):
        other.certificate_.verify(X, y)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_hard_margin_that_was_stopped_promises_nothing_and_that_is_confirmed(classes):
    X, y, _ = table(classes)
    with pytest.warns(StoppedEarly, match="no bound known"):
        model = SVC(C=np.inf, gamma=1.0, max_iter=2).fit(X, y)
    for certificate in (model.certificate_, model.certificate_.verify(X, y)):
        assert certificate.gap == np.inf
        assert certificate.lower_bound == -np.inf


# -- against an oracle -----------------------------------------------------------------------------------


@st.composite
def problems(draw):
    """Return tables with duplicates, unscaled columns and weights, labels, and a cost from 1e-6 to 1e6."""
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    rows, columns = draw(st.integers(4, 14)), draw(st.integers(1, 3))
    X = rng.integers(-2, 3, size=(rows, columns)) + draw(st.sampled_from([0.0, 0.1])) * rng.normal(
        size=(rows, columns)
    )
    X = X * 10.0 ** rng.integers(-2, 3, size=columns) if draw(st.booleans()) else X
    y = rng.integers(0, 2, size=rows)
    y[:2] = [0, 1]
    weight = rng.integers(0, 3, size=rows).astype(float)
    weight[:2] = 1.0
    return X, y, weight, 10.0 ** draw(st.integers(-6, 6))


@settings(max_examples=60)
@given(problems(), st.sampled_from(["rbf", "linear", "poly"]))
def test_objectives_are_those_of_a_quadratic_programme(problem, kernel):
    X, y, weight, C = problem
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoppedEarly)
        model = SVC(C=C, kernel=kernel, coef0=1.0, tol=1e-6, max_iter=200_000).fit(X, y, weight)
    certificate = model.certificate_.verify(X, y, weight)
    there = weight > 0
    signs, upper = np.where(y[there] == 1, 1.0, -1.0), C * weight[there]
    gram = model.kernel_(X[there])
    alpha = oracle.quadratic_program(gram, signs, upper)
    best = oracle.dual_value(gram, signs, alpha)
    rounding = 1e-6 * certificate.scale + 1e-7 * best + certificate.rounding
    assert certificate.lower_bound <= best + rounding
    assert best <= certificate.objective + rounding
    if model.certificate_.converged:
        assert certificate.objective - best <= 1e-6 * certificate.scale + rounding


@settings(max_examples=40)
@given(problems())
def test_hard_margins_are_those_of_a_quadratic_programme(problem):
    X, y, weight, _ = problem
    there = weight > 0
    points, owners = np.unique(X[there], axis=0), np.unique(np.column_stack([X, y])[there], axis=0)
    if points.shape[0] < owners.shape[0]:
        with pytest.raises(NotSeparable):  # one point of two classes
            SVC(C=np.inf, gamma=1.0).fit(X, y, weight)
        return
    known_to_few_digits = np.linalg.eigvalsh(RBF(1.0)(points))[0] < 1e-6
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoppedEarly)  # rounding is part of the gap, and counts at 1e-6
        try:
            model = SVC(C=np.inf, gamma=1.0, tol=1e-6).fit(X, y, weight)
        except NotSeparable:  # rows so near each other that float64 cannot see them apart
            assert known_to_few_digits
            return
    model.certificate_.verify(X, y, weight)
    if not known_to_few_digits:
        signs = np.where(y[there] == 1, 1.0, -1.0)
        gram = model.kernel_(X[there])
        alpha = oracle.quadratic_program(gram, signs, np.full(signs.size, np.inf))
        best = oracle.dual_value(gram, signs, alpha)
        assert model.certificate_.relative_gap <= 1e-5
        assert model.certificate_.objective == pytest.approx(best, rel=1e-5)
        assert model.margin_ == pytest.approx(1 / np.sqrt(2 * best), rel=1e-4)


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.sampled_from([0.01, 1.0, 100.0]))
def test_a_kernel_that_is_none_ends_at_a_stationary_point_and_says_so(seed, C):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(12, 12))
    gram = A + A.T
    y = np.arange(12) % 2
    model = SVC(kernel="precomputed", C=C, tol=1e-6).fit(gram, y)
    assert model.certificate_.kind == "kkt"
    recomputed = model._recompute(model.certificate_, gram, y, None)
    found = recomputed.compare(model.certificate_)
    signs = np.where(y == 1, 1.0, -1.0)
    alpha = np.zeros(12)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    gradient = oracle.dual_gradient(gram, signs, alpha)
    assert oracle.violation(signs, np.full(12, C), alpha, gradient) <= 1e-6 + 1e-9 * np.abs(gradient).max()
    assert found.gap <= 1e-6 * found.scale + recomputed.gap_allowance - model.certificate_.gap


def fitted_as_if_definite(K, y, **parameters):
    """Return a model of kernel values whose certificate claims a bound, whatever the solver found."""
    model = SVC(kernel="precomputed", **parameters).fit(K, y)
    model._certificate = dataclasses.replace(model._certificate, kind="duality gap", claim="")
    return model


@pytest.mark.parametrize("parameters", [{}, {"multi_class": "ovr"}], ids=["pairs", "rest"])
@pytest.mark.parametrize("classes", [2, 3])
def test_no_bound_is_confirmed_where_a_matrix_is_indefinite(parameters, classes):
    # All pairs of rows have positive curvature, 2 - 2 K_ij > 0; only eigenvalues tell.
    rng = np.random.default_rng(0)
    K = rng.uniform(-0.45, 0.45, size=(30, 30))
    K = K + K.T
    np.fill_diagonal(K, 1.0)
    y = np.arange(30) % classes
    model = fitted_as_if_definite(K, y, C=10.0, **parameters)
    with pytest.raises(CertificateError, match="the kernel is not positive semi-definite"):
        model.certificate_.verify(K, y)


def test_a_bound_needs_only_differences_to_be_definite():
    # -|x - z|^2 is indefinite, but b'K b = 2 |sum b x|^2 where sum b = 0: the linear kernel's SVM.
    X, y, _ = table()
    K = -np.square(X[:, None] - X).sum(axis=2)
    assert np.linalg.eigvalsh(K)[0] < -1.0
    model = fitted_as_if_definite(K, y, tol=1e-6)
    assert model.certificate_.verify(K, y).kind == "duality gap"
    linear = SVC(C=2.0, kernel="linear", tol=1e-6).fit(X, y).certificate_
    assert 2.0 * model.certificate_.objective == pytest.approx(linear.objective, rel=1e-5)


def test_a_bound_on_more_rows_than_are_looked_at_is_not_confirmed(monkeypatch):
    X, y, _ = table()
    model = fitted_as_if_definite(X @ X.T, y)
    assert model.certificate_.verify(X @ X.T, y).kind == "duality gap"
    monkeypatch.setattr(kernel, "CHECKED_ROWS", y.size - 1)
    assert model.certificate_.verify(X @ X.T, y).kind == "kkt"


def test_a_confirmed_stationary_point_is_not_called_an_optimum():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(40, 3)), np.arange(40) % 2
    found = SVC(kernel="sigmoid").fit(X, y).certificate_.verify(X, y)
    assert "stationary within" in str(found)
    assert "optimum" not in str(found)


def test_a_column_that_drowns_the_others_is_named():
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"age": random.normal(40, 10, 60), "income": random.normal(5e4, 2e4, 60)})
    y = frame["age"] > 40
    said = "column 'income' is spread 2e+03 times as wide as most"
    assert said in str(SVC().fit(frame, y).certificate_)
    assert "spread" not in str(SVC().fit((frame - frame.mean()) / frame.std(), y).certificate_)
