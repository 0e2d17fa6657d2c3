"""Large margin nearest neighbours: bound <= optimum of a semidefinite solver <= objective, and all close."""

import cvxpy as cp
import numpy as np
import pytest

from oracles.triplets import terms
from sixfold.budget import Budget
from sixfold.solvers.metric_learning import lmnn
from sixfold.solvers.metric_learning.triplets import ActiveTriplets, padded, state_problem


def small(seed):
    """A problem of a few hundred triplets, with what its parameters are."""
    rng = np.random.default_rng(seed)
    n, columns, classes = int(rng.integers(8, 20)), int(rng.integers(1, 5)), int(rng.integers(2, 4))
    X = rng.normal(size=(n, columns)) * 10.0 ** rng.integers(-2, 3, columns)
    index = np.concatenate([np.repeat(np.arange(classes), 2), rng.integers(0, classes, n - 2 * classes)])
    X[:, 0] += index * np.abs(X[:, 0]).max() * rng.choice([0.0, 0.3])
    weight = rng.uniform(0.2, 3.0, n) if seed % 2 else None
    return X, index, weight, int(rng.integers(1, 4)), float(rng.choice([0.1, 0.5, 0.9])), 1e-3


def minimise(X, index, weight, k, pull, trace_penalty, tol=1e-6, components=None, start=None, most=3000):
    budget = Budget(tol, most)
    problem = state_problem(X, index, weight, k, pull, trace_penalty, budget)
    if start is None:
        start = np.eye(components or X.shape[1], X.shape[1])
    return problem, lmnn.minimise(problem, start, budget), budget


def optimum_of(oracle, unit):
    """Return min F by an interior-point method for semidefinite programs, in columns of similar size."""
    scale = np.outer(unit, unit)
    M = cp.Variable(scale.shape, PSD=True)
    A = (oracle.A / scale).reshape(len(oracle.A), -1)
    hinges = cp.pos(1 + A @ cp.vec(M, order="C"))
    problem = cp.Problem(cp.Minimize(cp.sum(cp.multiply(oracle.B / scale, M)) + oracle.u @ hinges))
    problem.solve(solver=cp.CLARABEL)
    assert problem.status == "optimal"
    return problem.value


@pytest.mark.parametrize("seed", range(24))
def test_the_bound_is_below_what_a_semidefinite_solver_finds_and_the_objective_close_above(seed):
    given = small(seed)
    problem, found, _ = minimise(*given)
    objective = lmnn.measure(problem, found.L).objective
    oracle = terms(*given)
    optimum = optimum_of(oracle, problem.unit)
    L = found.L / problem.unit
    assert objective == pytest.approx(oracle.value(L.T @ L), rel=1e-9)
    accuracy = 1e-6 * optimum  # of the semidefinite solver
    assert found.bound <= optimum + accuracy
    assert optimum <= objective + accuracy
    assert objective - found.bound <= 2e-6 * objective


@pytest.mark.parametrize("seed", range(6))
def test_multipliers_are_a_point_of_the_dual_problem(seed):
    given = small(seed)
    problem, found, _ = minimise(*given)
    oracle = terms(*given)
    place = {tuple(t): number for number, t in enumerate(oracle.triplets.tolist())}
    numbers = [place[tuple(t)] for t in problem.numbers[found.triplets].tolist()]
    assert len(set(numbers)) == len(numbers)
    assert (found.multipliers >= 0).all()
    assert (found.multipliers <= oracle.u[numbers] * (1 + 1e-12)).all()
    scale = np.outer(problem.unit, problem.unit)
    S = (oracle.B + np.tensordot(found.multipliers, oracle.A[numbers], axes=1)) / scale
    assert np.linalg.eigvalsh(S)[0] >= -1e-12
    assert found.bound == pytest.approx(found.multipliers.sum())


def test_the_slope_is_that_of_finite_differences():
    X, index, weight, k, pull, trace_penalty = small(3)
    problem = state_problem(X, index, weight, k, pull, trace_penalty, Budget())
    descent = lmnn.Descent(problem, np.eye(X.shape[1]), Budget())
    rng = np.random.default_rng(0)
    L = descent.L + 0.1 * rng.normal(size=descent.L.shape)
    descent.active.search(descent.mapped(L), 0.1, 0.5, Budget())
    point, step = descent.at(L), 1e-6
    for _ in range(5):
        D = rng.normal(size=L.shape)
        up, down = descent.at(L + step * D).value, descent.at(L - step * D).value
        assert (up - down) / (2 * step) == pytest.approx(float((point.slope * D).sum()), rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_where_it_starts_does_not_decide_where_it_ends(seed):
    given = small(seed)
    d = given[0].shape[1]
    rng = np.random.default_rng(seed)
    starts = [
        np.eye(d),
        1e-8 * rng.normal(size=(d, d)),
        1e8 * np.diag(10.0 ** np.arange(d)),
        np.zeros((d, d)),
    ]
    objectives = []
    for start in starts:
        problem, found, _ = minimise(*given, start=start)
        objectives.append(lmnn.measure(problem, found.L).objective)
    assert np.allclose(objectives, objectives[0], rtol=3e-6)


def test_more_columns_than_rows():
    rng = np.random.default_rng(0)
    X, index = rng.normal(size=(12, 30)), np.arange(12) % 2
    problem, found, _ = minimise(X, index, None, 2, 0.5, 0.1, tol=1e-4)
    objective = lmnn.measure(problem, found.L).objective
    assert found.L.shape == (30, 30)
    assert objective - found.bound <= 1.1e-4 * objective


def test_a_low_rank_has_the_bound_of_all_ranks():
    X, index, weight, k, pull, trace_penalty = small(5)
    problem, full, _ = minimise(X, index, weight, k, pull, trace_penalty)
    _, low, _ = minimise(X, index, weight, k, pull, trace_penalty, tol=1e-4, components=1)
    best, objective = (lmnn.measure(problem, found.L).objective for found in (full, low))
    assert low.L.shape == (1, X.shape[1])
    assert 0.98 * full.bound <= low.bound <= best <= objective


def test_rows_that_are_the_same_in_different_classes():
    X = np.repeat(np.arange(6.0)[:, None], 2, axis=0)
    index = np.tile([0, 1], 6)
    given = X, index, None, 1, 0.5, 1e-3
    problem, found, _ = minimise(*given)
    objective = lmnn.measure(problem, found.L).objective
    assert objective == pytest.approx(optimum_of(terms(*given), problem.unit), rel=1e-5)
    assert objective - found.bound <= 2e-6 * objective


def test_the_map_leads_to_uncorrelated_columns_the_most_spread_first():
    problem, found, _ = minimise(*small(1))
    Z = problem.rows @ found.L.T
    scatter = Z.T @ Z
    assert np.allclose(scatter, np.diag(np.diag(scatter)), atol=1e-9 * scatter.max())
    assert (np.diff(np.diag(scatter)) <= 1e-9 * scatter.max()).all()


def test_a_stopped_search_keeps_a_bound_and_a_map():
    given = small(7)
    problem, found, budget = minimise(*given, tol=0.0, most=3)
    assert budget.stopped_by == "max_iter=3"
    objective = lmnn.measure(problem, found.L).objective
    assert 0 <= found.bound <= objective
    assert found.multipliers.sum() == pytest.approx(found.bound)


def test_no_triplet_is_left_out_at_the_end():
    """With lists from the start alone the search would run away from rows that nobody watches."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 40))
    index = (X[:, 0] > 0).astype(int)
    problem, found, budget = minimise(X, index, None, 3, 0.5, 1e-3, tol=1e-3)
    active, Z = ActiveTriplets(problem), problem.rows @ padded(found.L).T
    active.search(Z, 0.0, 50.0, Budget())  # all rows there are
    assert active.sums(Z, 0.0).hinge == pytest.approx(
        lmnn.measure(problem, found.L).push, rel=1e-10, abs=1e-12
    )
    assert budget.history[-1].gap <= 1e-3 * budget.history[-1].objective
