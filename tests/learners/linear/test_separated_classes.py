"""Unpenalised classifiers of classes that are separated: the bound is that of the rows that overlap."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris

from sixfold import ERMClassifier
from sixfold.errors import RankWarning


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
