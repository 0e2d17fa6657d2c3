"""SVC fits that end before their tolerance, with what was reached; and claims about the fitted problem."""

import warnings

import pytest
from sklearn.datasets import load_breast_cancer, make_classification

from sixfold import SVC
from sixfold.errors import CertificateError, InputError, StoppedEarly


@pytest.mark.parametrize(
    "parameters", [{"C": 1e4, "max_iter": 50}, {"C": 1e6, "kernel": "linear", "max_iter": 300}]
)
def test_fit_ended_by_max_iter_keeps_the_dual_point_it_has(parameters):
    X, y = load_breast_cancer(return_X_y=True)
    with pytest.warns(StoppedEarly, match="max_iter"):
        model = SVC(**parameters).fit(X, y)
    assert (model.n_support_ > 0).all()
    assert model.certificate_.details["dual_objective"] > 0
    model.certificate_.verify(X, y)


def test_more_iterations_never_lower_the_dual_objective():
    X, y = load_breast_cancer(return_X_y=True)
    reached = []
    for most in (10, 50, 200, 1000):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StoppedEarly)
            reached.append(SVC(C=1e4, max_iter=most).fit(X, y).certificate_.details["dual_objective"])
    assert reached == sorted(reached)


def test_intercept_changed_by_a_thousandth_is_refused_also_next_to_the_tolerance():
    # The violation is just below tol, and the loss is flat in b: only what b is tells.
    X, y = make_classification(60, 3, n_informative=3, n_redundant=0, flip_y=0.1, random_state=2)
    for kernel in ("linear", "rbf"):
        for C in (0.01, 1.0, 100.0):
            model = SVC(kernel=kernel, C=C).fit(X, y)
            certificate, b = model.certificate_, model.intercept_
            certificate.verify(X, y)
            for factor in (1.001, 0.999):
                model.intercept_ = b * factor
                with pytest.raises(CertificateError):
                    certificate.verify(X, y)


def test_verify_judges_the_fitted_problem_whatever_set_params_says_of_the_next():
    X, y = make_classification(80, 4, random_state=0)
    model = SVC().fit(X, y)
    model.set_params(C=50.0, kernel="linear", class_weight="balanced", tol=1e-9)
    model.certificate_.verify(X, y)
    with pytest.raises(CertificateError):
        SVC(C=50.0).fit(X, y).certificate_.bind(model).verify(X, y)


def test_cost_beyond_float64_is_refused_with_a_sentence_and_none_below_overflows():
    X, y = make_classification(80, 4, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(InputError, match=r"C=1e\+308.*C=inf"):
            SVC(C=1e308).fit(X, y)
        SVC(C=1e140).fit(X, y)
