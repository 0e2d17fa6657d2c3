"""The checker of landmarks finds what is changed: in the model, in the claims, in the data."""

from dataclasses import replace

import numpy as np
import pytest

from sixfold import SVC, Nystroem
from sixfold.certificate import Certificate
from sixfold.errors import CertificateError
from tests.oracles.landmarks import rbf, trace_error

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(120, 3))
Y = (X @ RANDOM.normal(size=(3, 3))).argmax(axis=1)


def nystroem(**parameters):
    return Nystroem(gamma=0.4, n_components=20, **parameters).fit(X)


def svc(**parameters):
    return SVC(gamma=0.4, C=3.0, rank=20, **parameters).fit(X, Y)


def test_the_trace_error_is_that_of_the_full_matrix():
    model = nystroem()
    checked = model.certificate_.verify(X)
    expected = trace_error(rbf(X, X, 0.4), model.component_indices_)
    assert checked.objective == pytest.approx(expected, abs=1e-10)
    assert model.certificate_.objective == pytest.approx(expected, abs=1e-10)


def test_honest_fits_are_confirmed():
    nystroem(tol=0.2).certificate_.verify(X)
    assert svc().certificate_.verify(X, Y).gap <= svc().certificate_.gap + 1e-6
    svc(multi_class="ovr").certificate_.verify(X, Y)
    weight = RANDOM.uniform(0.0, 2.0, size=120)
    weight[:20] = 0.0
    model = SVC(gamma=0.4, rank=20, class_weight="balanced").fit(X, Y, weight)
    model.certificate_.verify(X, Y, weight)
    with pytest.raises(CertificateError):
        model.certificate_.verify(X, Y)


def change_normalization(model):
    model.normalization_ = model.normalization_ * 1.1


def change_landmark(model):
    model.components_ = model.components_ + 0.01


def swap_indices(model):
    model.component_indices_ = np.roll(model.component_indices_, 1)


def repeat_a_landmark(model):
    model.components_, index = model.components_.copy(), model.component_indices_.copy()
    model.components_[1], index[1] = model.components_[0], index[0]
    model.component_indices_ = index


def understate(model):
    error = 0.9 * model._certificate.objective
    model._certificate = replace(model._certificate, objective=error, gap=error)


@pytest.mark.parametrize(
    "fault", [change_normalization, change_landmark, swap_indices, repeat_a_landmark, understate]
)
def test_a_changed_transformer_is_caught(fault):
    model = nystroem()
    fault(model)
    with pytest.raises(CertificateError):
        model.certificate_.verify(X)


def test_other_rows_are_caught():
    with pytest.raises(CertificateError):
        nystroem().certificate_.verify(X[::-1])
    with pytest.raises(CertificateError, match=r"X has 5 rows"):
        nystroem().certificate_.verify(X[:5])
    with pytest.raises(CertificateError, match=r"fitted on 120 rows, not on 50"):
        svc().certificate_.verify(X[:50], Y[:50])
    with pytest.raises(CertificateError):
        svc().certificate_.verify(X, (Y + 1) % 3)


def change_coefficients(model):
    model.dual_coef_ = 1.05 * model.dual_coef_


def change_intercept(model):
    model.intercept_ = model.intercept_ + 0.5


def change_multipliers(model):
    model.multipliers_ = 0.9 * model.multipliers_


def unbalance(model):
    model.multipliers_ = model.multipliers_.copy()
    model.multipliers_.data[0] *= 0.5


def exceed_bounds(model):
    model.multipliers_ = 1.2 * model.multipliers_


def understate_gap(model):
    model._certificate = replace(model._certificate, gap=0.0, rounding=0.0)


def overstate_scale(model):
    model._certificate = replace(model._certificate, scale=2.0 * model._certificate.scale)


def overstate_trace(model):
    model.trace_held_ = model.trace_held_ + 0.01


@pytest.mark.parametrize(
    "fault",
    [
        change_coefficients,
        change_intercept,
        change_multipliers,
        unbalance,
        exceed_bounds,
        understate_gap,
        overstate_scale,
        overstate_trace,
    ],
)
def test_a_changed_classifier_is_caught(fault):
    model = svc(tol=1e-5)
    fault(model)
    with pytest.raises(CertificateError):
        model.certificate_.verify(X, Y)


def test_fewer_features_than_landmarks_are_found():
    model = nystroem()
    model.normalization_ = model.normalization_[:-1]
    with pytest.raises(CertificateError, match="makes 19 features of 20 landmarks"):
        model.certificate_.verify(X)


def test_a_share_of_the_trace_that_only_the_certificate_has_is_found():
    model = svc()
    told = replace(model.certificate_, details={**model.certificate_.details, "trace_held": 1.0})
    with pytest.raises(CertificateError, match="holds 100% of the trace"):
        told.verify(X, Y)


def test_a_certificate_that_was_handed_on_takes_no_notice_of_y():
    model = Nystroem(gamma=0.4, n_components=20).fit(X, Y)
    handed = Certificate.from_json(model.certificate_.to_json()).bind(model)
    assert handed.verify(X, Y).objective == model.certificate_.verify(X).objective
