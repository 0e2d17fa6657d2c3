"""Few triplets solved exactly: tables on which rounded hinges alone crawl are certified all the same."""

import numpy as np
import pytest
from sklearn.datasets import make_classification

from oracles.triplets import terms
from sixfold.budget import Budget
from sixfold.solvers.metric_learning import lmnn, working_set
from sixfold.solvers.metric_learning.triplets import state_problem


def minimise(X, index, tol=1e-4):
    budget = Budget(tol, 1000)
    problem = state_problem(X, index, None, 3, 0.5, 1e-5, budget)
    found = lmnn.minimise(problem, np.eye(X.shape[1]), budget)
    measured = lmnn.measure(problem, found.L)
    return (measured.objective - found.bound) / measured.objective, budget


def collapsing():
    """Classes of two points each, which end at one point, so that every triplet is at its kink."""
    X = np.repeat([[1.0, 3], [2, 1], [3, 3], [4, 1]], 4, axis=0)
    return X * X.std(axis=0), np.repeat([0, 1, 0, 1], 4)


def coarse():
    """Columns of few values: thousands of triplets that are equal."""
    X = np.random.default_rng(0).integers(0, 3, (300, 5)).astype(float)
    return X, (X[:, 0] == X[:, 1]).astype(int)


CRAWLING = {
    "wide": lambda: make_classification(60, 100, n_informative=5, n_classes=3, random_state=1),
    "many columns": lambda: make_classification(120, 30, n_informative=10, n_classes=3, random_state=0),
    "collapsing": collapsing,
    "coarse": coarse,
}


@pytest.mark.parametrize("name", CRAWLING)
def test_tables_on_which_rounded_hinges_crawl_are_certified(name):
    gap, budget = minimise(*CRAWLING[name]())
    assert gap <= 1e-4
    assert budget.stopped_by is None


def test_a_tolerance_that_rounded_hinges_do_not_reach_is_met():
    gap, _ = minimise(*make_classification(80, 12, n_informative=6, n_classes=3, random_state=2), tol=1e-7)
    assert gap <= 1e-7


@pytest.mark.parametrize("seed", range(4))
def test_its_bound_is_one_of_all_triplets(seed):
    """Multipliers that were left out are 0, those of a group are shares of its one."""
    X, y = make_classification(
        40, 4, n_informative=4, n_redundant=0, n_classes=2, flip_y=0.2, random_state=seed
    )
    problem = state_problem(X, y, None, 3, 0.5, 1e-3, Budget())
    descent = lmnn.Descent(problem, np.eye(4), Budget(1e-9, 60))
    descent.run()
    found = working_set.refine(
        problem, descent.white.rows, descent.L, descent.smoothing, descent.objective, Budget(1e-6)
    )
    assert found.objective - found.bound <= 1e-6 * found.objective
    assert found.objective <= descent.objective
    oracle = terms(X, y, None, 3, 0.5, 1e-3)
    place = {tuple(t): number for number, t in enumerate(oracle.triplets.tolist())}
    numbers = [place[tuple(t)] for t in problem.numbers[found.triplets].tolist()]
    assert len(set(numbers)) == len(numbers)
    assert (found.multipliers >= 0).all()
    assert (found.multipliers <= oracle.u[numbers] * (1 + 1e-12)).all()
    scale = np.outer(problem.unit, problem.unit)
    S = (oracle.B + np.tensordot(found.multipliers, oracle.A[numbers], axes=1)) / scale
    assert np.linalg.eigvalsh(S)[0] >= -1e-12
    L = descent.white.leave(found.L) / problem.unit
    assert oracle.value(L.T @ L) == pytest.approx(found.objective, rel=1e-9)


def test_more_triplets_than_a_step_can_take_are_left_to_rounded_hinges(monkeypatch):
    X, y = make_classification(120, 30, n_informative=10, n_classes=3, random_state=0)
    monkeypatch.setattr(working_set, "MOST_FREE", 0)
    monkeypatch.setattr(working_set, "MOST_PRODUCTS", 0)
    problem = state_problem(X, y, None, 3, 0.5, 1e-5, Budget())
    descent = lmnn.Descent(problem, np.eye(30), Budget(1e-2, 15))
    descent.run()
    given = descent.L, descent.smoothing, descent.objective
    assert working_set.refine(problem, descent.white.rows, *given, Budget(1e-6)) is None


@pytest.mark.parametrize("seed", range(20))
def test_the_best_multiple_is_that_of_a_search(seed):
    rng = np.random.default_rng(seed)
    margins, prices = rng.uniform(0, [1.5, 0.2][seed % 2], 9), rng.uniform(0, 2, 9)
    trace = rng.uniform(0.1, 5)

    def value(c):
        return c * trace + (prices * np.maximum(1 + np.multiply.outer(c, margins - 1), 0)).sum(axis=-1)

    best = working_set._best_multiple(trace, margins, prices)
    assert best >= 1
    assert value(best) <= value(np.geomspace(1, 100, 20000)).min() * (1 + 1e-12)
