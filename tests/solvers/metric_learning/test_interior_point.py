"""The interior point: the minimum of a semidefinite solver, by both forms of its system."""

import cvxpy as cp
import numpy as np
import pytest

from sixfold.budget import Budget, BudgetExhausted
from sixfold.solvers.metric_learning import interior_point


def made(seed, n=12, columns=3, count=40):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, columns)) * rng.uniform(0.5, 4.0, columns)
    triplets = np.array([rng.choice(n, 3, replace=False) for _ in range(count)])
    triplets = np.unique(triplets, axis=0)
    return X, triplets, rng.uniform(0.01, 0.5, len(triplets))


def matrices(X, triplets):
    near, far = X[triplets[:, 0]] - X[triplets[:, 1]], X[triplets[:, 0]] - X[triplets[:, 2]]
    return np.einsum("ti,tj->tij", near, near) - np.einsum("ti,tj->tij", far, far)


def nothing():
    return np.empty((0, 3), dtype=int), np.empty(0)


@pytest.mark.parametrize("seed", range(12))
def test_it_finds_what_a_semidefinite_solver_finds(seed):
    X, triplets, prices = made(seed)
    hinges = interior_point.TripletHinges(X, triplets, prices, *nothing())
    found = interior_point.minimise(hinges, np.eye(3), prices / 2, 1e-7, Budget())
    A = matrices(X, triplets)
    M = cp.Variable((3, 3), PSD=True)
    terms = cp.pos(1 + A.reshape(len(A), -1) @ cp.vec(M, order="C"))
    problem = cp.Problem(cp.Minimize(cp.trace(M) + prices @ terms))
    problem.solve(solver=cp.CLARABEL)
    value = np.trace(found.M) + prices @ np.maximum(1 + np.tensordot(A, found.M), 0)
    assert value == pytest.approx(problem.value, rel=1e-6)
    assert found.multipliers.sum() == pytest.approx(problem.value, rel=1e-6)
    assert ((found.multipliers > 0) & (found.multipliers < prices)).all()
    S = np.eye(3) + np.tensordot(found.multipliers, A, axes=1)
    assert np.linalg.eigvalsh(S)[0] > -1e-12
    assert np.linalg.eigvalsh(found.M)[0] > -1e-12


@pytest.mark.parametrize("in_columns", [False, True])
def test_the_system_is_that_of_its_definition(in_columns):
    X, triplets, prices = made(5)
    hinges = interior_point.TripletHinges(X, triplets, prices, triplets[:4], prices[:4])
    hinges.in_columns = in_columns
    rng = np.random.default_rng(0)
    M, S_inverse = (B @ B.T for B in rng.normal(size=(2, 3, 5)))
    A = matrices(X, triplets)
    A = np.concatenate([A, np.tensordot(prices[:4] / prices[:4].sum(), A[:4], axes=1)[None]])
    H = np.array([[np.sum(one * (M @ other @ S_inverse)) for other in A] for one in A])
    diagonal, right = rng.uniform(0.5, 2.0, len(A)), rng.normal(size=len(A))
    expected = np.linalg.solve(0.5 * (H + H.T) + np.diag(diagonal), right)
    np.testing.assert_allclose(hinges.factor(M, S_inverse, diagonal)(right), expected, rtol=1e-8)
    np.testing.assert_allclose(hinges.margins(M), 1 + np.tensordot(A, M))
    np.testing.assert_allclose(hinges.combine(right), np.tensordot(right, A, axes=1), atol=1e-12)


def test_time_that_is_up_ends_it():
    X, triplets, prices = made(0)
    hinges = interior_point.TripletHinges(X, triplets, prices, *nothing())
    with Budget(time_limit=0.0) as budget, pytest.raises(BudgetExhausted):
        interior_point.minimise(hinges, np.eye(3), prices / 2, 1e-7, budget)
