"""Probabilities of support vector machines agree with predictions and with rows that were held out."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from sixfold import SVC

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("class_weight", [None, {1: 20.0}])
@pytest.mark.parametrize("C", [0.01, 1.0, 1000.0])
def test_the_more_probable_of_two_classes_is_the_predicted_one(C, class_weight):
    X, y = make_classification(n_samples=200, weights=[0.8], flip_y=0.2, random_state=0)
    model = SVC(C=C, class_weight=class_weight, probability=True).fit(X, y)
    Z = np.vstack([X, 3 * RNG.normal(size=(1000, X.shape[1]))])
    p = model.predict_proba(Z)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(Z))
    np.testing.assert_array_equal(p[:, 1] > 0.5, model.decision_function(Z) > 0)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-15)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(Z)), p, rtol=1e-13)


def test_probabilities_are_calibrated_on_new_rows():
    X = RNG.normal(size=(3000, 2))
    truth = expit(3.0 * X[:, 0])
    y = RNG.random(3000) < truth
    p = SVC(C=0.1, probability=True).fit(X[:1000], y[:1000]).predict_proba(X[1000:])[:, 1]
    assert np.mean(np.abs(p - truth[1000:])) < 0.08


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_several_classes_have_probabilities_that_tell(multi_class):
    X, y = load_iris(return_X_y=True)
    train, test, known, unknown = train_test_split(X, y, random_state=0, stratify=y)
    model = SVC(probability=True, multi_class=multi_class).fit(train, known)
    p = model.predict_proba(test)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-13)
    assert log_loss(unknown, p) < 0.25
    assert np.mean(p.argmax(axis=1) == model.predict(test)) > 0.9


def test_the_seed_is_fixed_unless_it_is_given():
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:150, :5]
    y = y[:150]
    first, again, other = (
        SVC(probability=True, random_state=seed).fit(X, y).predict_proba(X) for seed in (None, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    state = SVC(probability=True, random_state=np.random.RandomState(1)).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(state, other)


def test_weights_of_rows_count_and_those_of_weight_0_do_not():
    X, y = make_classification(n_samples=120, flip_y=0.2, random_state=0)
    weight = np.ones(120)
    weight[::4] = 0.0
    kept = weight > 0
    some = SVC(gamma=0.05, probability=True).fit(X, y, weight).predict_proba(X)
    left = SVC(gamma=0.05, probability=True).fit(X[kept], y[kept]).predict_proba(X)
    np.testing.assert_allclose(some, left, atol=1e-3)


def test_the_unit_of_weights_does_not_change_probabilities():
    X, y = make_classification(n_samples=120, flip_y=0.2, random_state=0)
    plain = SVC(C=1.0, probability=True).fit(X, y).predict_proba(X)
    unit = 2.0**-20
    other = SVC(C=1.0 / unit, probability=True).fit(X, y, np.full(120, unit)).predict_proba(X)
    np.testing.assert_allclose(other, plain, rtol=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_a_class_with_one_row_is_no_hindrance(kernel):
    X = np.vstack([RNG.normal(size=(9, 2)), [[5.0, 5.0]]])
    y = np.array(["common"] * 9 + ["rare"])
    model = SVC(C=10.0, kernel=kernel, probability=True).fit(X if kernel == "rbf" else X @ X.T, y)
    p = model.predict_proba(X if kernel == "rbf" else X @ X.T)
    assert np.isfinite(p).all()
    np.testing.assert_array_equal(
        model.classes_[p.argmax(axis=1)], model.predict(X if kernel == "rbf" else X @ X.T)
    )
