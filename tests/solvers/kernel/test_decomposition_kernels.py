"""Kernels that are not positive semi-definite, and hard margins: what is claimed of a solution."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.kernel import dual_value, quadratic_program
from sixfold.budget import Budget
from sixfold.geometry.kernels import RBF, Polynomial, Precomputed, Sigmoid, linear
from sixfold.solvers.kernel import decomposition
from sixfold.solvers.kernel.decomposition import solve_dual
from sixfold.solvers.kernel.dual import DualProblem, certify
from sixfold.solvers.kernel.kernel_rows import KernelRows
from solvers.kernel.dual_problems import PLENTY, check, make_problem


def test_indefinite_kernel_is_noticed_and_ends_at_a_stationary_point():
    problem, gram = make_problem(60, C=10.0, kernel=Sigmoid(2.0, -1.0))
    solution = solve_dual(problem, 1e-3, PLENTY, Budget())
    assert solution.definite is False
    check(problem, gram, solution)
    certificate = certify(problem, solution, 1e-3)
    assert certificate.kind == "kkt"
    assert "is not positive semi-definite" in str(certificate)


def precomputed(gram, C=10.0):
    n = gram.shape[0]
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    return DualProblem(KernelRows(gram, Precomputed()), np.arange(n), y, np.full(n, C))


@pytest.mark.parametrize("hard", [False, True])
def test_matrix_whose_pairs_all_curve_downwards_is_no_bound_if_other_directions_do_not(hard):
    # A unit diagonal beside values below 1/2: no pair is told, yet the least eigenvalue is about -1.
    random = np.random.default_rng(0)
    part = random.uniform(-0.45, 0.45, (30, 30))
    gram = (part + part.T) / 2
    np.fill_diagonal(gram, 1.0)
    centring = np.eye(30) - 1 / 30
    assert np.linalg.eigvalsh(centring @ gram @ centring)[0] < -0.3
    problem = precomputed(gram, np.inf if hard else 10.0)
    certificate = certify(problem, solve_dual(problem, 1e-3, PLENTY, Budget()), 1e-3)
    assert certificate.kind == "kkt"
    assert "is not positive semi-definite" in str(certificate)


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(2, 60),
    rank=st.integers(1, 8),
    seed=st.integers(0, 10**6),
    size=st.sampled_from([1e-100, 1.0, 1e8, 1e100]),
    constant=st.sampled_from([0.0, -3.0, 1e3]),
)
def test_matrix_of_dot_products_bounds_the_optimum_whatever_constant_is_added(n, rank, seed, size, constant):
    Z = np.random.default_rng(seed).normal(size=(n, rank))
    gram = size * (Z @ Z.T + constant)
    problem = precomputed(gram, 1.0 / size)
    solution = solve_dual(problem, 1e-3, PLENTY, Budget())
    assert solution.definite is True
    assert certify(problem, solution, 1e-3).kind == "duality gap"


def test_one_negative_direction_among_many_is_found():
    random = np.random.default_rng(0)
    columns = random.normal(size=(50, 49))
    vectors, _ = np.linalg.qr(columns - columns.mean(axis=0))
    for least, definite in ((-1e-3, False), (0.0, True)):
        gram = (vectors * np.append(least, np.ones(48))) @ vectors.T
        solution = solve_dual(precomputed((gram + gram.T) / 2, 1e-3), 1e-3, PLENTY, Budget())
        assert solution.definite is definite


def test_what_is_not_looked_at_is_not_known(in_rounds):
    problem, gram = make_problem(200)
    problem = DualProblem(KernelRows(gram, Precomputed()), problem.index, problem.y, problem.upper)
    solution = solve_dual(problem, 1e-3, PLENTY, Budget())
    assert solution.definite is None
    certificate = certify(problem, solution, 1e-3)
    assert certificate.kind == "kkt"
    assert certificate.converged
    assert "is not known to be positive semi-definite" in str(certificate)


def test_kernels_that_are_dot_products_by_construction_are_not_looked_at(monkeypatch):
    monkeypatch.setattr(decomposition, "definite_when_balanced", lambda gram: pytest.fail("looked at"))
    for kernel in (linear, RBF(1.0), Polynomial(3, 1.0, 1.0)):
        problem, _ = make_problem(60, kernel=kernel)
        solution = solve_dual(problem, 1e-3, PLENTY, Budget())
        assert solution.definite is True
        assert certify(problem, solution, 1e-3).kind == "duality gap"


@settings(max_examples=25, deadline=None)
@given(n=st.integers(2, 20), seed=st.integers(0, 10**6), apart=st.sampled_from([0.3, 3.0, 100.0]))
def test_hard_margin_is_the_widest(n, seed, apart):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 2))
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    X[:, 0] = np.abs(X[:, 0]) * y + apart * y
    problem = DualProblem(KernelRows(X, linear), np.arange(n), y, np.full(n, np.inf))
    solution = solve_dual(problem, 1e-6, PLENTY, Budget())
    gram = X @ X.T
    best = dual_value(gram, y, quadratic_program(gram, y, problem.upper))  # |w|^2 / 2
    certificate = certify(problem, solution, 1e-6)
    assert solution.overlap is None
    assert certificate.converged
    assert certificate.objective == pytest.approx(best, rel=1e-5)
    assert certificate.lower_bound <= best * (1 + 1e-9)


@pytest.mark.parametrize("kernel", [linear, RBF(0.5)])
def test_hard_margin_of_classes_that_overlap_has_a_proof(kernel):
    X = np.array([[0.0], [1.0], [2.0], [1.0], [4.0]])
    y = np.array([1.0, -1.0, 1.0, 1.0, -1.0])
    problem = DualProblem(KernelRows(X, kernel), np.arange(5), y, np.full(5, np.inf))
    solution = solve_dual(problem, 1e-3, PLENTY, Budget())
    assert solution.overlap is not None
    weights = np.zeros(5)
    weights[solution.overlap.rows] = solution.overlap.weights
    signed = weights * y
    assert signed.sum() == pytest.approx(0.0, abs=1e-12)
    assert signed @ kernel(X) @ signed == pytest.approx(0.0, abs=1e-12)
