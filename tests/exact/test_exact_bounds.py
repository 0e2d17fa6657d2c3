"""In 60-digit arithmetic no objective is understated, no lower bound is above the optimum, and verify knows.

A few hundred of the random fits that ``python -m tests.exact 10000`` makes, and the cases that were once
wrong.
"""

import warnings

import numpy as np
import pytest

from sixfold import ERMRegressor, LinearRegression, LinearSVC, LogisticRegression
from sixfold.certificate import Certificate
from sixfold.errors import CertificateError, SixfoldWarning
from tests.exact.fits import check
from tests.exact.oracle import Exact


@pytest.mark.parametrize("first", range(2000, 2200, 20))
def test_random_fits(first):
    wrong = {}
    for seed in range(first, first + 20):
        found = check(seed)
        if found.wrong:
            wrong[f"{seed} {found.family} {found.traits}"] = found.wrong
    assert wrong == {}


# A multiple of a longer column, large numbers in sparse rows, slopes lost in the rounding of 2**30; and a
# bound that was false: of a row that is certain of the wrong class.
@pytest.mark.parametrize("seed", [5272, 7001, 20694, 25439])
def test_fits_that_were_wrong(seed):
    assert check(seed).wrong == []


def bounds_of(model, X, y):
    """Return what is claimed of the optimum, and the optimum itself."""
    claim = model._claim(X, y, None)
    exact = Exact(claim)
    theta = exact.theta(claim.w, claim.b)
    return model.certificate_, float(exact.objective(theta)), float(exact.lowest(theta))


def fitted(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SixfoldWarning)
        return model.fit(X, y)


@pytest.mark.parametrize("offset", [2.0**30, 2.0**40])
@pytest.mark.parametrize("learner", [LinearSVC, LogisticRegression])
def test_an_offset_costs_no_digits(learner, offset):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2)) + np.array([offset, 0.0])
    y = (X[:, 1] + rng.normal(size=30) > 0).astype(int)
    certificate, value, lowest = bounds_of(fitted(learner(), X, y), X, y)
    assert value <= certificate.objective
    assert certificate.lower_bound <= lowest
    assert certificate.rounding <= 1e-12 * certificate.scale


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("start", [1.7e9, 1.7e12])
def test_times_as_a_column_are_confirmed(start, seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([start + np.arange(25), rng.normal(size=25)])
    y = 0.1 * np.arange(25) + X[:, 1] + rng.normal(size=25)
    model = fitted(LinearRegression(), X, y)
    model.certificate_.verify(X, y)
    assert model.certificate_.converged


def last_bits():
    """Return two columns that differ in their last bits, which tell the classes apart, and labels."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=40), np.arange(40) % 2
    return np.column_stack([x, np.where(y == 1, np.nextafter(x, np.inf), x)]), y


@pytest.mark.parametrize("make", [LinearRegression, lambda: ERMRegressor(loss="absolute", penalty=None)])
def test_columns_that_differ_in_their_last_bits_are_not_claimed_to_be_equal(make):
    X, y = last_bits()
    certificate, _, lowest = bounds_of(fitted(make(), X, y), X, y)
    assert certificate.lower_bound <= lowest
    certificate.verify(X, y)
    if certificate.unrestricted_bound is not None:
        assert any("last digits" in note for note in certificate.notes)
        again = Certificate.from_json(certificate.to_json())
        assert again.lower_bound == certificate.lower_bound


def test_a_lower_bound_beyond_the_restriction_is_refused():
    X, y = last_bits()
    model = fitted(LinearRegression(), X, y)
    certificate = model.certificate_
    assert certificate.unrestricted_bound is not None
    claims = Certificate(**{**vars(certificate), "unrestricted_bound": None})
    with pytest.raises(CertificateError, match="last digits"):
        claims.verify(X, y)


def test_rounding_that_a_certificate_claims_for_itself_does_not_help_it():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    model = fitted(LinearRegression(penalty="l2", alpha=0.1), X, y)
    honest = model.certificate_
    lie = {
        "objective": 1.001 * honest.objective,
        "gap": 0.01 * honest.objective,
        "rounding": honest.objective,
    }
    with pytest.raises(CertificateError, match="objective"):
        Certificate(**{**vars(honest), **lie}).verify(X, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(15))
def test_hard_margins_are_confirmed_in_the_type_of_the_data(dtype, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 3)) * [0.1, 1.0, 10.0] + [0.0, 100.0, 1.0]
    score = (X - X.mean(axis=0)) @ [3.0, 0.3, 0.05]
    far = np.abs(score) > 0.1
    X, y = X[far].astype(dtype), (score[far] > 0).astype(int)
    model = fitted(LinearSVC(C=np.inf, loss="hinge"), X, y)
    model.certificate_.verify(X, y)
    margins = (2 * y - 1) * (
        X.astype(np.longdouble) @ model.coef_.ravel().astype(np.longdouble) + model.intercept_
    )
    assert margins.min() >= 1


def test_a_penalty_that_is_next_to_nothing_beside_its_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3)) * [1e8, 1.0, 1e-3]
    y = (X @ [1e-8, 1.0, 500.0] + rng.normal(size=30) > 0).astype(int)
    model = fitted(LogisticRegression(C=1e6), X, y)
    certificate, _, lowest = bounds_of(model, X, y)
    assert certificate.converged
    assert certificate.lower_bound <= lowest
    certificate.verify(X, y)
