"""Linear models under scikit-learn's names: its meaning, its attributes and its errors."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
import sklearn.linear_model as sk
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

import sixfold
from sixfold.errors import RankWarning, SeparationWarning
from sixfold.patch import linear

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 4))
Y = X @ [1.0, -2.0, 0.5, 0.0] + RNG.normal(size=80)
LABELS = Y > 0
CLASSES = np.digitize(Y, [-1.0, 1.0])
TIGHT = {"tol": 1e-8, "max_iter": 10_000}


@pytest.mark.parametrize("labels", [LABELS, CLASSES, CLASSES.astype(str)], ids=["two", "three", "text"])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"C": 0.01},
        {"fit_intercept": False},
        {"class_weight": "balanced"},
        {"l1_ratio": 1, "solver": "saga"},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_coefficients_and_attributes_are_scikit_learns(labels, parameters, kind):
    weight = RNG.uniform(0.5, 2.0, size=80)
    ours = linear.LogisticRegression(**TIGHT, **parameters).fit(kind(X), labels, sample_weight=weight)
    theirs = sk.LogisticRegression(**TIGHT, **parameters).fit(kind(X), labels, sample_weight=weight)
    assert ours._ours is not None
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-4)
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    assert {name for name in vars(theirs) if name.endswith("_")} <= set(dir(ours))
    for name in ("coef_", "intercept_", "n_iter_"):
        one, other = getattr(ours, name), getattr(theirs, name)
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)


def test_least_squares_has_scikit_learns_attributes():
    ours, theirs = linear.LinearRegression().fit(X, Y), sk.LinearRegression().fit(X, Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_)
    assert ours.rank_ == theirs.rank_
    np.testing.assert_allclose(ours.singular_, theirs.singular_)
    with pytest.raises(AttributeError, match="direct fit without penalty"):
        linear.LinearRegression(positive=True).fit(X, Y).rank_  # noqa: B018


def test_dependent_columns_are_named_by_the_direct_class_alone():
    twice = np.column_stack([X, X[:, 0]])
    with pytest.warns(RankWarning):
        direct = sixfold.LinearRegression().fit(twice, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        patched = linear.LinearRegression().fit(twice, Y)
    np.testing.assert_allclose(direct.coef_, patched.coef_)


def test_separated_classes_without_a_penalty_are_a_warning_in_both():
    for model in (sixfold.LogisticRegression(C=np.inf), linear.LogisticRegression(C=np.inf)):
        with pytest.warns(SeparationWarning):
            assert model.fit(X, X[:, 0] > 0).score(X, X[:, 0] > 0) == 1.0


def test_liblinear_penalises_the_intercept_under_the_patch_alone():
    moved = X + 3.0
    patched = linear.LogisticRegression(solver="liblinear", tol=1e-8).fit(moved, LABELS)
    theirs = sk.LogisticRegression(solver="liblinear", tol=1e-8).fit(moved, LABELS)
    direct = sixfold.LogisticRegression(solver="liblinear").fit(moved, LABELS)
    assert patched._ours is None
    np.testing.assert_array_equal(patched.coef_, theirs.coef_)
    assert abs(direct.intercept_ - theirs.intercept_) > 0.1
    assert not hasattr(patched, "certificate_")


def test_a_limit_that_does_not_suffice_is_scikit_learns_fit_and_warning():
    raw = load_breast_cancer().data
    labels = load_breast_cancer().target
    with pytest.warns(ConvergenceWarning, match="lbfgs"):
        few = linear.LogisticRegression(max_iter=3).fit(raw, labels)
    assert few.n_iter_ == [3]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        enough = linear.LogisticRegression().fit(raw, labels)
    assert enough.certificate_.converged
    assert "StoppedEarly" not in str(enough.certificate_)


def test_errors_are_scikit_learns_own():
    with pytest.raises(sklearn.utils._param_validation.InvalidParameterError, match="'C' parameter"):
        linear.LogisticRegression(C=-1).fit(X, LABELS)
    with pytest.raises(ValueError, match="X has 2 features, but LogisticRegression is expecting 4"):
        linear.LogisticRegression().fit(X, LABELS).predict(X[:, :2])
    with pytest.raises(sklearn.exceptions.NotFittedError):
        linear.LogisticRegression().predict(X)
    with pytest.raises(ValueError, match="contains NaN"):
        linear.LinearRegression().fit(np.where(X > 2, np.nan, X), Y)


def test_coefficients_that_are_set_anew_answer():
    model = linear.LogisticRegression().fit(X, LABELS)
    before = model.predict(X)
    model.coef_ = -model.coef_
    model.intercept_ = -model.intercept_
    assert np.all(model.predict(X) == ~before)
    assert np.all(model.sparsify().predict(X) == ~before)


def test_a_fit_after_another_forgets_it():
    model = linear.LogisticRegression(solver="liblinear").fit(X, LABELS)
    model.set_params(solver="lbfgs").fit(X, LABELS)
    assert model.certificate_.converged
    model.set_params(solver="liblinear").fit(X, LABELS)
    assert not hasattr(model, "certificate_")
    np.testing.assert_array_equal(model.coef_, sk.LogisticRegression(solver="liblinear").fit(X, LABELS).coef_)


def test_a_warm_start_goes_on_from_the_last_coefficients():
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = linear.LogisticRegression(warm_start=True).fit(X, y)
    first = model.n_iter_[0]
    assert model.fit(X, y).n_iter_[0] < first


def test_names_of_columns_and_metadata():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = linear.LogisticRegression().fit(frame, LABELS)
    assert model.feature_names_in_.tolist() == list("abcd")
    assert not hasattr(model.fit(X, LABELS), "feature_names_in_")
    with sklearn.config_context(enable_metadata_routing=True):
        asked = linear.LogisticRegression().set_fit_request(sample_weight=True)
        assert asked.get_metadata_routing().fit.requests == {"sample_weight": True}


def test_the_certificate_is_verified_under_the_patch():
    model = linear.LogisticRegression().fit(X, CLASSES)
    assert model.certificate_.verify(X, CLASSES).converged
    assert "columns" in str(model.explain(X[0])) or "column" in str(model.explain(X[0]))
