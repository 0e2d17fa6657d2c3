"""Where learnt distances begin: as scikit-learn's decompositions, with weights."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from sixfold.solvers.metric_learning import starts

X, Y = load_iris(return_X_y=True)
EQUAL = np.full(len(Y), 1 / len(Y))


def up_to_sign(found, expected):
    signs = np.sign((found * expected).sum(axis=1, keepdims=True))
    return found * signs, expected


def test_principal_directions_are_those_of_scikit_learn():
    found = starts.principal_directions(X, EQUAL, 3)
    assert np.allclose(*up_to_sign(found, PCA(3).fit(X).components_), atol=1e-9)


def test_discriminants_are_those_of_scikit_learn():
    found = starts.discriminants(X, Y, EQUAL, 3, 2)
    expected = LinearDiscriminantAnalysis(n_components=2).fit(X, Y).scalings_.T[:2]
    assert np.allclose(*up_to_sign(found, expected), rtol=1e-7)


def test_whitened_classes_spread_by_one_in_every_direction():
    root = starts.class_whitening(X, Y, EQUAL, 3, 4)
    assert np.allclose(root, root.T)
    inside = X - np.array([X[label == Y].mean(axis=0) for label in range(3)])[Y]
    assert np.allclose(np.cov((inside @ root.T).T, bias=True), np.eye(4), atol=1e-9)


@pytest.mark.parametrize("start", [starts.discriminants, starts.class_whitening])
@pytest.mark.parametrize("components", [2, 4])
def test_a_weight_of_two_is_a_row_twice(start, components):
    weight = np.random.default_rng(0).integers(0, 3, len(Y))
    weighted = start(X, Y, weight / weight.sum(), 3, components)
    repeated = np.repeat(np.arange(len(Y)), weight)
    equal = np.full(repeated.size, 1 / repeated.size)
    again = start(X[repeated], Y[repeated], equal, 3, components)
    kept = 2 if start is starts.discriminants else components  # three classes differ in two directions
    assert np.allclose(*up_to_sign(weighted[:kept], again[:kept]), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("constant", [1.0, 7.0, 0.1, 1e8 / 3])
def test_a_constant_column_is_not_stretched_beyond_all_bounds(constant):
    """The mean of equal numbers differs from them by rounding, which is no spread."""
    table = np.column_stack([X, np.full(len(Y), constant)])
    found = starts.class_whitening(table, Y, EQUAL, 3, 5)
    assert np.abs(found).max() < 1e3
    weight = np.random.default_rng(0).uniform(size=len(Y))
    assert np.abs(starts.whitening(table, Y, weight / weight.sum(), 3)).max() < 1e3
