"""Certificates of exemplar machines: confirmed where they hold, refused where anything was changed."""

import copy
import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

from sixfold import ExemplarSVC
from sixfold.errors import CertificateError
from sixfold.verify import exemplars


def table(rows=50, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 4)) + 1.0
    return X, (X[:, 0] + 0.5 * rng.normal(size=rows) > 1.2).astype(int), rng.uniform(0.2, 2.0, size=rows)


X, Y, WEIGHT = table()
KINDS = {
    "dense": lambda X: X,
    "csr": sp.csr_array,
    "float32": lambda X: X.astype(np.float32),
    "far from zero": lambda X: X + np.array([2000.0, -1500.0, 1000.0, 0.0]),
    "large": lambda X: 1e30 * X,
    "small": lambda X: 1e-30 * X,
}
SETTINGS = {
    "plain": {},
    "dear": {"C": 1e3},
    "cheap": {"C": 1e-5},
    "tight": {"tol": 1e-12},
    "all": {"positive": "all"},
    "rbf": {"kernel": "rbf"},
    "polynomial": {"kernel": "poly", "coef0": 1.0, "degree": 2},
}


@pytest.mark.filterwarnings("ignore::sixfold.errors.StoppedEarly")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("setting", SETTINGS)
def test_what_is_certified_is_confirmed(kind, setting):
    if setting == "polynomial" and kind in ("large", "small", "far from zero"):
        return  # whose powers are no longer known to float64
    Z = KINDS[kind](X)
    model = ExemplarSVC(**SETTINGS[setting]).fit(Z, Y, WEIGHT)
    found = model.certificate_.verify(Z, Y, WEIGHT)
    assert found.objective == pytest.approx(model.certificate_.objective, rel=1e-6)


def test_blocks_of_machines_and_rows_change_nothing(monkeypatch):
    for kernel in ("linear", "rbf"):
        model = ExemplarSVC(kernel=kernel).fit(X, Y)
        whole = model.certificate_.verify(X, Y)
        with monkeypatch.context() as few:
            few.setattr(exemplars, "ENTRIES", 150)
            parts = model.certificate_.verify(X, Y)
        assert parts.objective == pytest.approx(whole.objective, rel=1e-12)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("fault", ["intercept", "coefficient", "gap", "objective", "scale", "exemplars"])
def test_faults_are_found(kernel, fault):
    model = copy.deepcopy(ExemplarSVC(kernel=kernel, C=0.1).fit(X, Y))
    certificate = model.certificate_
    if fault == "intercept":
        model.intercept_[1] += 1e-2
    elif fault == "coefficient":
        name = "coef_" if kernel == "linear" else "dual_coef_"
        getattr(model, name)[0, 0] += 0.05
    elif fault == "exemplars":
        model.exemplars_ = model.exemplars_[::-1] + 1
    elif fault == "gap":
        model.coef_ = model.coef_ * 1.01 if kernel == "linear" else None
        if kernel == "rbf":
            model.dual_coef_ = model.dual_coef_ * 1.01
    elif fault == "scale":
        certificate = dataclasses.replace(certificate, scale=2.0 * certificate.scale)
    else:
        certificate = dataclasses.replace(certificate, objective=0.99 * certificate.objective)
    with pytest.raises(CertificateError):
        certificate.bind(model).verify(X, Y)


def test_coefficients_that_are_no_dual_point_are_refused():
    model = ExemplarSVC(kernel="rbf", C=0.1).fit(X, Y)
    other = copy.deepcopy(model)
    other.dual_coef_ = np.abs(other.dual_coef_)
    with pytest.raises(CertificateError, match="not those of exemplars and negatives"):
        model.certificate_.bind(other).verify(X, Y)


@pytest.mark.parametrize("name", ["coef_", "intercept_", "dual_coef_", "support_", "support_vectors_"])
def test_attributes_of_other_shapes_are_refused(name):
    model = ExemplarSVC(kernel="linear" if name == "coef_" else "rbf").fit(X, Y)
    setattr(model, name, getattr(model, name)[:-1])
    with pytest.raises(CertificateError, match="are not those of"):
        model.certificate_.verify(X, Y)


def test_sparse_rows_far_from_zero_are_confirmed():
    rng = np.random.default_rng(0)
    rows, labels = (
        sp.csr_array(rng.normal(size=(80, 30)) + 10.0 ** rng.uniform(0, 4, 30)),
        rng.integers(0, 3, 80),
    )
    model = ExemplarSVC(kernel="rbf", gamma="auto").fit(rows, labels)
    assert model.certificate_.converged
    model.certificate_.verify(rows, labels)
