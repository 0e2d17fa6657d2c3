"""Kernels against scikit-learn, their formulas, and the laws of adding and multiplying them."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.metrics import pairwise
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

import sixfold
from sixfold.errors import InputError
from sixfold.geometry.kernels import (
    KERNELS,
    RBF,
    Called,
    Form,
    Linear,
    Polynomial,
    Precomputed,
    Quadratic,
    Sigmoid,
    linear,
    make_kernel,
    quadratic,
)
from sixfold.geometry.kernels.standard import variance

TABLES = arrays(
    np.float64, st.tuples(st.integers(1, 6), st.just(3)), elements=st.floats(-4, 4, allow_subnormal=False)
)
PARTS = st.sampled_from([linear, quadratic, RBF(0.3), Polynomial(3, 0.5, 1.0), RBF(sigma=2.0)])


def tables():
    rng = np.random.default_rng(0)
    return rng.normal(size=(7, 4)), rng.normal(size=(5, 4))


def test_the_package_has_them():
    assert sixfold.kernels.linear is linear


# -- values ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "peer", "keywords"),
    [
        (linear, pairwise.linear_kernel, {}),
        (quadratic, pairwise.polynomial_kernel, {"degree": 2, "gamma": 1.0, "coef0": 0.0}),
        (Polynomial(3, 0.7, 1.5), pairwise.polynomial_kernel, {"degree": 3, "gamma": 0.7, "coef0": 1.5}),
        (RBF(0.3), pairwise.rbf_kernel, {"gamma": 0.3}),
        (RBF(sigma=0.5), pairwise.rbf_kernel, {"gamma": 2.0}),
        (Sigmoid(0.2, -1.0), pairwise.sigmoid_kernel, {"gamma": 0.2, "coef0": -1.0}),
        (Called(pairwise.laplacian_kernel), pairwise.laplacian_kernel, {}),
    ],
)
@pytest.mark.parametrize("kind", [np.array, sp.csr_matrix, sp.csc_array, np.ndarray.tolist, np.float32])
def test_values_are_those_of_scikit_learn(kernel, peer, keywords, kind):
    X, Z = tables()
    X[np.abs(X) < 0.4] = 0.0
    given_rows = kind(X)
    rows = np.asarray(given_rows, dtype=np.float64) if kind is np.float32 else X
    for found, expected in [
        (kernel(given_rows, Z), peer(rows, Z, **keywords)),
        (kernel(Z, given_rows), peer(Z, rows, **keywords)),
        (kernel(given_rows), peer(rows, **keywords)),
        (kernel.diagonal(given_rows) if kind is not np.ndarray.tolist else np.diag(kernel(X)), None),
    ]:
        wanted = np.diag(peer(rows, **keywords)) if expected is None else expected
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
        assert found.dtype == np.float64


def test_a_polynomial_of_degree_zero_is_one():
    assert (Polynomial(0)(np.zeros((2, 1))) == 1.0).all()


def test_rows_far_from_zero_keep_their_distances():
    X = 1e8 + np.arange(4.0)[:, None]
    np.testing.assert_allclose(RBF(0.5)(X), np.exp(-0.5 * (np.arange(4.0)[:, None] - np.arange(4)) ** 2))
    assert (np.diag(RBF(7.0)(X)) == 1.0).all()


@given(TABLES)
def test_the_quadratic_kernel_is_a_dot_product_of_all_products(X):
    expected = (X @ X.T) ** 2
    mapped = quadratic.feature_map(X)
    assert mapped.shape == (X.shape[0], 6)
    size = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert (np.abs(mapped @ mapped.T - expected) <= 1e-14 * size + 1e-300).all()
    np.testing.assert_array_equal(quadratic.feature_map(sp.csr_array(X)).toarray(), mapped)


def test_the_feature_map_of_two_columns_is_that_of_the_text():
    q, p = 3.0, 5.0
    np.testing.assert_allclose(quadratic.feature_map([[q, p]]), [[q * q, np.sqrt(2) * q * p, p * p]])
    assert quadratic.feature_names(["q", "p"]) == ["q^2", "sqrt(2) q p", "p^2"]


def test_a_precomputed_kernel_hands_back_its_values():
    values = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(Precomputed()(values, np.eye(3)), values)
    np.testing.assert_array_equal(Precomputed()(sp.csr_array(values), np.eye(3)), values)
    np.testing.assert_array_equal(Precomputed().diagonal(np.diag([1.0, 2.0])), [1.0, 2.0])


def test_a_function_gets_the_rows_as_they_are_and_may_return_a_sparse_matrix():
    S = sp.csr_array(np.eye(3))
    seen = []

    def kernel(X, Z):
        seen.append((X, Z))
        return X @ Z.T

    np.testing.assert_array_equal(Called(kernel)(S), np.eye(3))
    assert sp.issparse(seen[0][0])


def test_the_diagonal_of_a_function_is_found_in_parts():
    X = np.random.default_rng(0).normal(size=(150, 2))
    np.testing.assert_allclose(Called(pairwise.linear_kernel).diagonal(X), (X * X).sum(axis=1))


# -- adding and multiplying ------------------------------------------------------------------------------


@given(TABLES, PARTS, PARTS, st.floats(0, 10))
@settings(deadline=None)
def test_sums_products_and_multiples_are_those_of_the_values(X, one, two, c):
    K1, K2 = one(X), two(X)
    np.testing.assert_allclose((one + two)(X), K1 + K2, rtol=1e-13)
    np.testing.assert_allclose((one * two)(X), K1 * K2, rtol=1e-13)
    np.testing.assert_allclose((c * one)(X), c * K1, rtol=1e-13)
    np.testing.assert_allclose((one * c)(X), c * K1, rtol=1e-13)
    mixed = c * (one + two) * one
    np.testing.assert_allclose(mixed.diagonal(X), np.diag(mixed(X)), rtol=1e-12, atol=1e-12)


@given(TABLES, PARTS, PARTS, st.floats(0, 10))
@settings(deadline=None)
def test_what_is_said_to_be_definite_is(X, one, two, c):
    for kernel in (one + two, one * two, c * one):
        assert kernel.definite is True
        K = kernel(X)
        assert np.linalg.eigvalsh(K).min() >= -1e-10 * max(np.trace(K), 1e-300)


@pytest.mark.parametrize("kernel", [Polynomial(2, 1.0, -1.0), Polynomial(3, 1.0, -1.0), Sigmoid(1.0, -1.0)])
def test_what_is_said_to_be_indefinite_has_a_negative_eigenvalue_somewhere(kernel):
    assert kernel.definite is False
    X = np.linspace(-1, 1, 9)[:, None]
    assert np.linalg.eigvalsh(kernel(X)).min() < -1e-3


def test_compositions_say_what_is_known_of_them():
    assert (linear + Sigmoid()).definite is None
    assert (quadratic * Sigmoid()).definite is None
    assert (2.0 * Sigmoid()).definite is False
    assert (-1.0 * linear).definite is False
    assert (-1.0 * Sigmoid()).definite is None
    assert (0.0 * Sigmoid()).definite is True
    assert Called(max).definite is None
    assert Precomputed().definite is None
    assert Polynomial(0, 1.0, -1.0).definite is True
    assert (linear + linear).form is None


def test_numbers_of_numpy_multiply():
    assert np.float64(2.0) * linear == 2.0 * linear
    assert np.int64(2) * linear == linear * 2


@pytest.mark.parametrize("other", [1.0, "x", None])
def test_only_kernels_are_added(other):
    with pytest.raises(TypeError):
        linear + other


# -- as objects ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel",
    [
        linear,
        quadratic,
        Polynomial(2, 0.5, 1.0),
        RBF(0.3),
        RBF(sigma=2.0),
        Sigmoid(0.5, 1.0),
        Precomputed(),
        linear + 2.0 * RBF(1.0) * (quadratic + linear),
        -1.5 * (linear * quadratic),
    ],
)
def test_kernels_are_copied_pickled_hashed_and_read_back(kernel):
    names = {
        kind.__name__: kind for kind in (Linear, Quadratic, Polynomial, RBF, Sigmoid, Precomputed, Called)
    }
    for same in (pickle.loads(pickle.dumps(kernel)), copy.deepcopy(kernel), eval(repr(kernel), names)):
        assert same == kernel
        assert hash(same) == hash(kernel)
        assert repr(same) == repr(kernel)


def test_scikit_learn_clones_estimators_that_hold_one():
    kernel = RBF(sigma=2.0) + linear
    assert clone(SVC(kernel=kernel)).kernel == kernel
    assert clone(KNeighborsClassifier(metric=kernel)).metric == kernel


def test_different_kernels_are_not_equal():
    assert RBF(0.3) != RBF(0.4)
    assert linear != quadratic
    assert linear + quadratic != linear * quadratic
    assert RBF(sigma=2.0) == RBF(gamma=0.125)


def test_forms_are_what_native_loops_compute():
    assert linear.form == Form("linear", 1.0, 0.0, 1)
    assert quadratic.form == Form("polynomial", 1.0, 0.0, 2)
    assert Polynomial(4, 0.5, 2).form == Form("polynomial", 0.5, 2.0, 4)
    assert RBF(sigma=0.5).form == Form("rbf", 2.0)
    assert Sigmoid(0.5, -1.0).form == Form("sigmoid", 0.5, -1.0)
    assert Precomputed().form is None
    assert Called(max).form is None


# -- from the parameters of an estimator -----------------------------------------------------------------


def test_names_stand_for_kernels():
    X, _ = tables()
    found = [make_kernel(name, X, gamma=0.5, degree=2, coef0=1.0) for name in KERNELS]
    both = Polynomial(2, 0.5, 1.0)
    assert found == [linear, both, both, quadratic, RBF(0.5), Sigmoid(0.5, 1.0), Precomputed()]
    assert make_kernel("rbf", X, sigma=2.0) == RBF(sigma=2.0)
    assert make_kernel(RBF(3.0), X, gamma=0.5) == RBF(3.0)
    assert make_kernel(linear, X) is linear
    assert make_kernel(pairwise.linear_kernel, X) == Called(pairwise.linear_kernel)


@pytest.mark.parametrize("gamma", ["scale", "auto"])
@pytest.mark.parametrize("kind", [np.array, sp.csr_array])
def test_scale_and_auto_are_those_of_scikit_learn(gamma, kind):
    X = np.random.default_rng(0).normal(3.0, 2.0, size=(60, 5)) * (np.arange(5) > 1)
    peer = SVC(gamma=gamma).fit(X, np.arange(60) % 2)
    assert make_kernel("rbf", kind(X), gamma=gamma).gamma == pytest.approx(peer._gamma, rel=1e-12)


def test_the_variance_is_that_of_all_numbers_in_float64():
    X = (1e4 + np.random.default_rng(0).normal(size=(50_000, 3))).astype(np.float32)
    assert variance(X) == pytest.approx(X.astype(np.float64).var(), rel=1e-9)
    stored = sp.csr_array((np.array([1.0, 2.0, 0.0]), np.array([0, 0, 1]), np.array([0, 3])), shape=(1, 2))
    assert variance(stored) == np.var([3.0, 0.0])
    assert not stored.has_canonical_format


@pytest.mark.parametrize("X", [np.full((30, 3), 0.1), np.zeros((30, 3)), sp.csr_array((30, 3))])
def test_numbers_that_are_all_alike_have_gamma_one(X):
    assert make_kernel("rbf", X).gamma == 1.0


# -- errors ----------------------------------------------------------------------------------------------

ROWS = np.arange(12.0).reshape(4, 3)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"gamma": 0}, "gamma=0 is out of range: a finite number above 0"),
        ({"gamma": -1.0}, "gamma=-1.0 is out of range"),
        ({"gamma": np.nan}, "gamma=nan is out of range"),
        ({"gamma": np.inf}, "gamma=inf is out of range"),
        ({"gamma": "scal"}, "did you mean 'scale'.*'scale', 'auto', a number above 0"),
        ({"gamma": None}, "gamma=None is not an option.*a number above 0"),
        ({"sigma": 0.0}, "sigma=0.0 is out of range: a finite number above 0"),
        ({"sigma": -2}, "sigma=-2 is out of range"),
        ({"sigma": "wide"}, "sigma='wide' is of type str"),
        ({"sigma": 1e-200}, "beyond what float64 holds"),
        ({"gamma": 1.0, "sigma": 1.0}, "gamma=1.0 and sigma=1.0 both say.*Pass one of them"),
        ({"degree": -1}, "degree=-1 is out of range: a whole number that is at least 0"),
        ({"degree": 2.5}, "degree=2.5 is of type float: a whole number"),
        ({"coef0": np.inf}, "coef0=inf is out of range: a finite number"),
        ({"coef0": np.nan}, "coef0=nan is out of range"),
        ({"kernel": "rfb"}, "did you mean 'rbf'.*'linear', 'poly', .*'precomputed', a kernel of sixfold"),
        ({"kernel": 3}, "kernel=3 is not an option"),
        ({"kernel": "linear", "sigma": 1.0}, "sigma=1.0 is the width of kernel='rbf'.*Leave sigma out"),
    ],
)
def test_parameters_that_cannot_be_are_refused(parameters, message):
    kernel = parameters.pop("kernel", "rbf")
    with pytest.raises(InputError, match=message):
        make_kernel(kernel, ROWS, **parameters)


@pytest.mark.parametrize("size", [1e-200, 1e-170, 1e-155, 1e200])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_a_scale_beyond_float64_is_refused(size, kind):
    with pytest.raises(InputError, match=r"gamma='scale' is .*Divide the columns"):
        make_kernel("rbf", kind(ROWS * size))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (RBF, "Pass sigma, or gamma"),
        (lambda: RBF(gamma=1.0, sigma=1.0), "Pass one of them"),
        (lambda: RBF(gamma="scale"), "gamma='scale' is of type str"),
        (lambda: Polynomial(degree=1.5), "degree=1.5"),
        (lambda: Polynomial(gamma=0.0), "gamma=0.0"),
        (lambda: Sigmoid(coef0=np.inf), "coef0=inf"),
        (lambda: Called(3), "nothing to call"),
        (lambda: np.nan * linear, "factor=nan is out of range"),
        (lambda: linear + Precomputed(), "takes kernel values in place of rows"),
        (lambda: Precomputed() * linear, "takes kernel values in place of rows"),
    ],
)
def test_kernels_that_cannot_be_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            lambda X, Z: np.ones((2, 2)),
            r"shape \(2, 2\) for tables of shapes \(4, 3\) and \(4, 3\).*\(4, 4\)",
        ),
        (lambda X, Z: np.ones(4), r"shape \(4,\)"),
        (lambda X, Z: "text", "returned 'text' of type str, not real numbers"),
        (lambda X, Z: None, "not real numbers"),
        (lambda X, Z: np.full((4, 4), 1j), "not real numbers"),
        (lambda X, Z: np.full((4, 4), np.nan), "is nan for row 0 and row 0"),
        (lambda X, Z: np.where(np.eye(4) > 0, np.inf, 0.0), "is inf for row 0 and row 0"),
    ],
)
def test_what_a_function_must_not_return_is_refused(function, message):
    with pytest.raises(InputError, match=message):
        make_kernel(function, ROWS)(ROWS)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: linear([[1.0, np.nan]]), "contains NaN: in row 0"),
        (lambda: linear(ROWS, np.ones((2, 2))), r"\(4, 3\) and Z has shape \(2, 2\).*same columns"),
        (lambda: linear([1.0, 2.0]), r"shape \(2,\)"),
        (lambda: linear([["a"]]), "could not convert string to float"),
        (lambda: quadratic(ROWS * 1e160), "is inf for row 0 and row 0.*Divide the columns"),
        (lambda: Polynomial(300).diagonal(ROWS), "is inf for row 1"),
        (lambda: Precomputed()(np.ones((2, 3)), np.eye(2)), r"shape \(2, 3\) for 2 training rows"),
        (lambda: Precomputed().diagonal(np.ones((2, 3))), r"shape \(2, 3\) for 2 training rows"),
    ],
)
def test_rows_that_cannot_be_compared_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
