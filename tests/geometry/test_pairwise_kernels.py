"""Kernels that scikit-learn computes, by name or of two rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import pairwise_kernels

from sixfold.errors import InputError
from sixfold.geometry.kernels.pairwise import PAIRWISE, Pairwise

X = np.abs(np.random.default_rng(0).normal(size=(70, 3)))


@pytest.mark.parametrize("name", PAIRWISE)
def test_values_and_diagonal_are_scikit_learns(name):
    kernel, K = Pairwise(name), pairwise_kernels(X, metric=name)
    np.testing.assert_allclose(kernel(X), K)
    np.testing.assert_allclose(kernel(X, X[:4]), K[:, :4])
    np.testing.assert_allclose(kernel.diagonal(X), K.diagonal())


def test_arguments_go_to_the_function_and_into_the_words():
    kernel = Pairwise(lambda x, z, width: np.exp(-width * abs(x - z).sum()), (("width", 0.5),))
    np.testing.assert_allclose(kernel(X), Pairwise("laplacian", (("gamma", 0.5),))(X))
    assert repr(kernel) == "Pairwise('<lambda>', width=0.5)"
    assert kernel.definite is None
    assert Pairwise("laplacian").definite


def test_sparse_rows():
    np.testing.assert_allclose(Pairwise("cosine")(sp.csr_array(X)), Pairwise("cosine")(X))


def test_what_fails_is_said_in_a_sentence():
    with pytest.raises(InputError, match="kernel=<lambda> failed for tables of shapes"):
        Pairwise(lambda x: 1.0)(X)
    with pytest.raises(InputError, match="kernel=chi2 failed"):
        Pairwise("chi2")(-X)
