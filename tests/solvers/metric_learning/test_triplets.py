"""Targets are the nearest rows of a class, and lists of impostors leave none out that counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.triplets import targets_of, terms
from sixfold.budget import Budget, BudgetExhausted
from sixfold.solvers.metric_learning.lmnn import measure
from sixfold.solvers.metric_learning.triplets import (
    ActiveTriplets,
    find_targets,
    mean_target_square,
    padded,
    state_problem,
)


def labelled(seed, n=24, columns=3, classes=3):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, columns)) * rng.choice([1.0, 3.0], columns), rng.integers(0, 4))
    index = np.concatenate([np.repeat(np.arange(classes), 2), rng.integers(0, classes, n - 2 * classes)])
    return X, index, rng


def problem_of(X, index, weight=None, k=2, pull=0.4, trace_penalty=0.01):
    return state_problem(X, index, weight, k, pull, trace_penalty, Budget())


@given(seed=st.integers(0, 10_000), k=st.integers(1, 5))
def test_targets_are_the_nearest_rows_of_the_class_ties_by_number(seed, k):
    X, index, _ = labelled(seed)
    order = np.argsort(index, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(index))])
    found = find_targets(X[order], ends, k, Budget())
    expected = targets_of(X[order], index[order], np.ones(len(X)), k)
    assert [[j for j in row if j >= 0] for row in found.tolist()] == expected


@pytest.mark.parametrize("scale", [1e150, 1e-150, 1.0])
def test_targets_do_not_depend_on_the_scale_of_the_rows(scale):
    X, index, _ = labelled(5)
    order = np.argsort(index, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(index))])
    plain = find_targets(X[order], ends, 3, Budget())
    assert np.array_equal(find_targets(scale * X[order], ends, 3, Budget()), plain)


@given(seed=st.integers(0, 10_000), weighted=st.booleans())
def test_the_objective_is_that_of_all_triplets(seed, weighted):
    X, index, rng = labelled(seed)
    weight = rng.integers(0, 3, len(X)).astype(float) if weighted else None
    if weighted:
        weight[:6] = [1.0, 2.0, 1.5, 1.0, 3.0, 1.0]  # two rows of each class at least
    problem = problem_of(X, index, weight)
    L = rng.normal(size=(2, X.shape[1]))
    measured = measure(problem, L * problem.unit)
    expected = terms(X, index, weight, 2, 0.4, 0.01).value(L.T @ L)
    assert measured.objective == pytest.approx(expected, rel=1e-12)
    assert abs(measured.objective - expected) <= 2.0 * measured.rounding


def test_the_scale_of_rows_and_weights_changes_nothing():
    X, index, rng = labelled(8)
    weight = rng.uniform(0.1, 1.0, len(X))
    plain, other = problem_of(X, index, weight), problem_of(1024.0 * X, index, 8.0 * weight)
    assert np.array_equal(plain.rows, other.rows)
    assert np.allclose(plain.weight, other.weight, rtol=1e-15)
    assert plain.trace == pytest.approx(other.trace, rel=1e-14)


def test_constant_columns_are_all_zeros_and_columns_of_equal_targets_have_a_penalty():
    X = np.array([[1.0, 0.1], [1.0, 0.1], [2.0, 0.1], [2.0, 0.1]])
    problem = problem_of(X, np.array([0, 0, 1, 1]), k=1)
    assert not problem.rows[:, 1].any()
    assert problem.unit[1] == 1.0
    assert not mean_target_square(problem.rows, problem.targets, problem.weight).any()
    assert problem.trace == 0.01


@given(seed=st.integers(0, 10_000), step=st.floats(1e-4, 0.5))
def test_lists_that_cover_a_map_hold_all_of_its_triplets(seed, step):
    X, index, rng = labelled(seed, n=40)
    problem = problem_of(X, index)
    L = rng.normal(size=(8, X.shape[1]))
    active = ActiveTriplets(problem)
    active.search(problem.rows @ padded(L).T, 0.1, 0.2, Budget())
    Z = problem.rows @ padded(L + step * rng.normal(size=L.shape)).T
    covered, sums = active.cover(Z, 0.1), active.sums(Z, 0.1)
    active.search(Z, 0.1, 0.0, Budget())
    if covered:
        assert sums.hinge == pytest.approx(active.sums(Z, 0.1).hinge, rel=1e-12)


def test_a_small_step_is_covered_and_a_large_one_is_not():
    X, index, rng = labelled(1, n=40)
    problem = problem_of(X, index)
    L = rng.normal(size=(8, X.shape[1]))
    active = ActiveTriplets(problem)
    assert not active.cover(problem.rows @ L.T, 0.1)
    active.search(problem.rows @ L.T, 0.1, 0.2, Budget())
    assert active.cover(problem.rows @ (1.001 * L).T, 0.1)
    assert not active.cover(problem.rows @ (0.5 * L).T, 0.1)


def test_ctrl_c_ends_a_search():
    X, index, _ = labelled(1)
    problem, budget = problem_of(X, index), Budget(time_limit=1e-9)
    with pytest.raises(BudgetExhausted):
        ActiveTriplets(problem).search(problem.rows @ np.eye(8, 3).T, 0.1, 0.2, budget)
