"""Proofs that no plane separates two classes in the space of a kernel, and none where one does."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from sixfold.budget import Budget
from sixfold.geometry.kernels import (
    RBF,
    Called,
    Polynomial,
    Precomputed,
    Sigmoid,
    linear,
    quadratic,
)
from sixfold.solvers.kernel import separability
from sixfold.solvers.kernel.dual import DualProblem
from sixfold.solvers.kernel.kernel_rows import KernelRows
from sixfold.solvers.kernel.separability import monomials, overlap

XOR = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
XOR_LABELS = np.array([-1.0, -1.0, 1.0, 1.0])


def problem_of(X, y, kernel, index=None):
    index = np.arange(X.shape[0]) if index is None else np.asarray(index)
    return DualProblem(KernelRows(X, kernel), index, y[index], np.full(index.size, np.inf))


def proof_of(X, y, kernel, index=None, alpha=None):
    problem = problem_of(X, y, kernel, index)
    proof = overlap(problem, np.zeros(problem.y.size) if alpha is None else alpha, Budget())
    if proof is not None:
        check(proof, problem, X, y, kernel)
    return proof


def check(proof, problem, X, y, kernel):
    """Weights are positive, half of them on either class, and the two mixtures are one point."""
    assert (proof.weights > 0).all()
    assert np.isin(proof.rows, problem.index).all()
    for side in (-1.0, 1.0):
        assert proof.weights[y[proof.rows] == side].sum() == pytest.approx(0.5, abs=1e-12)
    given_values = isinstance(kernel, Precomputed)
    K = X[np.ix_(proof.rows, proof.rows)] if given_values else kernel(X[proof.rows])
    signed = proof.weights * y[proof.rows]
    size = (proof.weights @ np.sqrt(np.diag(K))) ** 2
    assert abs(signed @ K @ signed) <= 1e-13 * size
    assert 0.0 <= proof.residual <= 1e-6


def test_rows_that_are_equal_and_labelled_differently_are_the_proof():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 3)), np.sign(rng.normal(size=500))
    X[17], y[17], y[402] = X[402], 1.0, -1.0
    proof = proof_of(X, y, RBF(1.0))
    assert proof.rows.tolist() == [17, 402]
    assert proof.weights.tolist() == [0.5, 0.5]
    X[17, 0] += 1e-3
    assert proof_of(X, y, RBF(1.0)) is None


@pytest.mark.parametrize("kernel", [linear, 2.0 * linear, Polynomial(1, 0.5, 1.0), Called(np.inner)])
@pytest.mark.parametrize("move", [0.0, -0.5, 1e3])
def test_exclusive_or_mixes_all_rows_in_the_plane(kernel, move):
    proof = proof_of(XOR + move, XOR_LABELS, kernel)
    assert proof.rows.tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(proof.weights, 0.25, rtol=1e-6)


@pytest.mark.parametrize("kernel", [quadratic, RBF(1.0), Polynomial(2, 1.0, 1.0), Polynomial(3, 0.1, 1.0)])
def test_exclusive_or_is_separated_by_products(kernel):
    assert proof_of(XOR, XOR_LABELS, kernel) is None
    assert proof_of(XOR - 0.5, XOR_LABELS, kernel) is None


def test_precomputed_values_are_rows_of_a_space_too():
    assert proof_of(linear(XOR), XOR_LABELS, Precomputed()).rows.size == 4
    assert proof_of(linear(XOR).astype(np.float32), XOR_LABELS, Precomputed()).rows.size == 4
    assert proof_of(quadratic(XOR), XOR_LABELS, Precomputed()) is None


def test_values_in_single_precision_are_known_to_single_precision():
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(60, 2)), np.sign(rng.normal(size=60))
    problem = problem_of(linear(X).astype(np.float32), y, Precomputed())
    assert overlap(problem, np.zeros(60), Budget()) is not None


def test_squares_that_cancel_are_no_proof_where_the_kernel_is_not_definite():
    values = np.array([[3.0, 2.0], [2.0, 1.0]])  # f = K(., x_0) is 3 for one row and 2 for the other
    assert proof_of(values, np.array([1.0, -1.0]), Precomputed()) is None


def test_equal_rows_are_a_proof_for_a_kernel_that_is_not_definite_too():
    X = np.array([[1.0], [2.0], [2.0], [3.0]])
    proof = proof_of(X, np.array([-1.0, -1.0, 1.0, 1.0]), Sigmoid(0.1, 0.0))
    assert proof.rows.tolist() == [1, 2]
    assert proof_of(X, np.array([-1.0, -1.0, 1.0, 1.0]), Sigmoid(0.1, -1.0)) is None


def test_a_proof_in_few_columns_has_few_rows():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 4))
    y = np.sign(X[:, 0] + 0.5 * rng.normal(size=3000))
    for kernel in (linear, linear + linear):
        assert proof_of(X, y, kernel).rows.size <= 6
    assert proof_of(X.astype(np.float32), y, linear).rows.size <= 6
    assert proof_of(sp.csr_array(X), y, linear).rows.size <= 6
    assert proof_of(X, y, quadratic).rows.size <= 12
    X[:, 0] += np.sign(X[:, 0]) * 0.01
    for kernel in (linear, linear + linear, Polynomial(3, 1.0, 1.0)):
        assert proof_of(X, np.sign(X[:, 0]), kernel) is None


def test_products_of_many_columns_go_through_the_gram_matrix():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 40))
    y = np.sign(rng.normal(size=60))
    kernel = Polynomial(3, 0.1, 1.0)
    assert proof_of(X, y, kernel) is None  # independent: any labels are separated
    X[3], y[3], y[50] = X[50], 1.0, -1.0
    assert proof_of(X, y, kernel).rows.tolist() == [3, 50]


@pytest.mark.parametrize("kernel", [linear, quadratic, Polynomial(2, 1.0, 1.0), Polynomial(3, 1e-12, 1.0)])
def test_columns_of_very_different_sizes_cost_no_digits(kernel):
    rng = np.random.default_rng(3)
    X, units = rng.normal(size=(400, 3)), np.array([1e6, 1e-6, 1.0])
    separable = X[:, 1] * X[:, 0] if kernel == quadratic else X[:, 1]
    y = np.sign(separable)
    X[:, 1] += np.sign(X[:, 1]) * 0.1
    X[:, 0] += np.sign(X[:, 0]) * 0.1
    assert proof_of(X * units, y, kernel) is None
    assert proof_of(sp.csr_array(X * units), y, kernel) is None
    assert proof_of(X * units, np.sign(separable + 0.5 * rng.normal(size=400)), kernel) is not None


def test_only_the_rows_of_the_problem_count_and_keep_their_numbers():
    X = np.vstack([XOR, XOR])
    y = np.concatenate([-np.ones(4), XOR_LABELS])
    for kernel in (linear, 2.0 * linear):
        assert proof_of(X, y, kernel, index=[7, 6, 5, 4]).rows.tolist() == [4, 5, 6, 7]
        assert proof_of(X, y, kernel, index=[4, 5, 6]) is None


def test_one_class_is_no_overlap():
    assert proof_of(XOR, np.ones(4), RBF(1.0)) is None


def test_a_proof_outside_the_first_rows_is_found(monkeypatch):
    monkeypatch.setattr(separability, "FIRST_ROWS", 10)
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 2))
    y = np.sign(X[:, 0])
    X[:, 0] += 0.05 * y
    kernel = 2.0 * linear
    assert proof_of(X, y, kernel) is None
    y[np.argmax(X[:, 0])] *= -1.0
    assert proof_of(X, y, kernel) is not None


def test_large_dual_variables_say_where_to_look(monkeypatch):
    monkeypatch.setattr(separability, "FIRST_ROWS", 4)
    monkeypatch.setattr(separability, "MOST_ROWS", 4)
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(50, 2)), np.sign(rng.normal(size=50))
    X[40], y[40], y[44] = X[44], 1.0, -1.0
    alpha = np.zeros(50)
    alpha[[40, 44]] = 1e12
    assert proof_of(X, y, RBF(1.0), alpha=alpha).rows.tolist() == [40, 44]


def test_a_margin_that_float64_cannot_see_is_none():
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(200, 1)), np.sign(rng.normal(size=200))
    proof = proof_of(X, y, RBF(0.01))
    assert 2 < proof.rows.size <= 30
    assert proof.residual < 2e-7


def test_no_time_is_no_answer():
    proof = overlap(problem_of(XOR, XOR_LABELS, 2.0 * linear), np.zeros(4), Budget(time_limit=0.0))
    assert proof is None


def separates(F, y):
    """Whether a linear program finds a plane with y (w.f + b) >= 1."""
    signed = y[:, None] * np.column_stack([F, np.ones(len(F))])
    found = linprog(np.zeros(signed.shape[1]), -signed, -np.ones(len(F)), bounds=(None, None))
    return found.status == 0


@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 14),
    st.integers(1, 3),
    st.sampled_from(["lin", "quad", "cubic"]),
)
@settings(deadline=None, max_examples=60)
def test_small_whole_numbers_agree_with_a_linear_program(seed, n, d, name):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, size=(n, d)).astype(np.float64)
    y = rng.choice([-1.0, 1.0], n)
    y[:2] = -1.0, 1.0
    kernel = {"lin": linear, "quad": quadratic, "cubic": Polynomial(3, 1.0, 1.0)}[name]
    explicit = {"lin": X, "quad": quadratic.feature_map(X), "cubic": monomials(X, 3, lower=True)}[name]
    expected = separates(explicit, y)
    for same in (kernel, 1.0 * kernel):  # coordinates, and the Gram matrix
        assert (proof_of(X, y, same) is None) == expected
