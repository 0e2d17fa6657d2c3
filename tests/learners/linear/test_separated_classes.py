"""Unpenalised classifiers of classes that are separated: the bound is that of the rows that overlap."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris

import pmlb
from sixfold import ERMClassifier, LogisticRegression
from sixfold.errors import RankWarning, SeparationWarning


def iris():
    return load_iris(return_X_y=True)


def quasi_separated(seed):
    """Return two classes that overlap only where the second column is 0, and a third."""
    rng = np.random.default_rng(seed)
    X = np.c_[rng.normal(size=90), np.repeat([0.0, 1.0, -1.0], 30), rng.normal(size=90)]
    y = np.where(X[:, 1] == 0, rng.integers(2, size=90), np.where(X[:, 1] > 0, 1, 0))
    y[80:] = 2
    X[80:, 2] += 20.0
    return X, y


@pytest.mark.parametrize("table", [iris, lambda: quasi_separated(0), lambda: quasi_separated(1)])
@pytest.mark.parametrize("loss", ["softmax", "logistic", "hinge", "squared_hinge"])
def test_a_class_that_is_separated_does_not_cost_the_bound_of_the_others(loss, table):
    X, y = table()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", RankWarning)
        model = ERMClassifier(loss, penalty=None).fit(X, y)
    assert model.certificate_.converged
    assert model.certificate_.verify(X, y).relative_gap < 1e-6
    assert model.certificate_.objective > 1e-3  # some classes do overlap


@pytest.mark.parametrize("loss", ["softmax", "logistic", "hinge", "squared_hinge"])
def test_a_changed_coefficient_is_still_refused(loss):
    X, y = iris()
    model = ERMClassifier(loss, penalty=None).fit(X, y)
    model.coef_[-1, 2] *= 1.01
    with pytest.raises(Exception, match="certificate"):
        model.certificate_.verify(X, y)


def pairs_in_doubt(near):
    """Return six classes of which two overlap; some columns are ``near`` to being the same."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(6), 60)
    X = 0.5 * rng.normal(size=(360, 8))
    X[:, 0] += 30.0 * np.maximum(y, 1)
    X[:, 6] = X[:, 5] + near * X[:, 6]
    return X, y


def ever_surer(seed):
    """Return two classes that overlap at the first rows; the others are the surer the further they are."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 6))
    X[:, 1] = np.r_[np.zeros(40), np.geomspace(1e-3, 1.0, 360)]
    y = np.where(X[:, 1] > 0, 1, rng.integers(2, size=400))
    return X, y


@pytest.mark.parametrize(
    "learner", [LogisticRegression(penalty=None), ERMClassifier("softmax", penalty=None)]
)
@pytest.mark.parametrize("table", [lambda: pairs_in_doubt(1.0), lambda: pairs_in_doubt(1e-5)])
def test_classes_in_doubt_of_different_rows_have_equations_of_their_own(learner, table):
    X, y = table()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", SeparationWarning)
        model = learner.fit(X, y)
    assert model.certificate_.converged
    assert model.certificate_.verify(X, y).relative_gap < 1e-6


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("loss", ["softmax", "logistic"])
def test_rows_that_are_ever_surer_are_let_go(loss, seed):
    X, y = ever_surer(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ERMClassifier(loss, penalty=None).fit(X, y)
    assert model.certificate_.converged
    assert model.certificate_.verify(X, y).relative_gap < 1e-6
    overlapping = ERMClassifier(loss, penalty=None).fit(np.delete(X[:40], 1, axis=1), y[:40])
    assert model.certificate_.objective == pytest.approx(0.1 * overlapping.certificate_.objective, abs=2e-6)


@pytest.mark.parametrize("preparation", ["raw", "standardised"])
@pytest.mark.parametrize("loss", ["likelihood", "logistic", "softmax"])
@pytest.mark.parametrize(
    "name",
    [
        name
        for name in ("fars", "krkopt", "mfeat_zernike", "segmentation", "soybean", "tokyo1")
        if name in pmlb.PATHS
    ],
)
def test_real_tables_without_penalty(name, loss, preparation):
    X, y = pmlb.load(name)
    some = np.union1d(np.arange(0, y.size, max(y.size // 1000, 1)), np.unique(y, return_index=True)[1])
    X, y = X[some], y[some]
    if preparation == "standardised":
        X = (X - X.mean(axis=0)) / np.where(np.ptp(X, axis=0) > 0, X.std(axis=0), 1.0)
    model = LogisticRegression(penalty=None) if loss == "likelihood" else ERMClassifier(loss, penalty=None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", RankWarning)
        warnings.simplefilter("ignore", SeparationWarning)
        model.fit(X, y)
    assert model.certificate_.converged
    # The check is rougher than the fit on one of these: 4e-5 are its own rounding.
    rough = (name, loss, preparation) == ("fars", "logistic", "raw")
    assert model.certificate_.verify(X, y).relative_gap < (1e-4 if rough else 1e-6)
