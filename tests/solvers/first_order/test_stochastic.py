"""Stochastic updates come close with default settings; seeds, averages and orders of rows."""

import numpy as np
import pytest
import scipy.sparse as sp

from sixfold.budget import Budget
from sixfold.data.blocks import MemoryBlocks
from sixfold.solvers.first_order.gradient_descent import GradientDescent
from sixfold.solvers.first_order.stochastic import EpochOrder, MiniBatch, StochasticGradient
from solvers.first_order.first_order_problems import regression, solve
from solvers.problems import problem


@pytest.mark.parametrize("solver", [StochasticGradient, MiniBatch])
@pytest.mark.parametrize("penalty", [None, "l2", "l1", "elasticnet"])
def test_default_settings_come_close_on_unscaled_columns(solver, penalty):
    X, y = regression(n=1000)
    task, blocks = problem(penalty=penalty, alpha=0.05 if penalty else 0.0), MemoryBlocks(X, y)
    best = solve(GradientDescent, task, blocks, tol=1e-10)
    solution = solve(solver, task, blocks, max_iter=30)
    excess = solution.certificate.objective - best.certificate.objective
    assert 0.0 <= excess <= 1e-3 * solution.certificate.scale
    assert solution.certificate.gap >= excess


def test_sgd_over_sparse_rows_comes_close():
    rng = np.random.default_rng(4)
    X = sp.random_array((2000, 50), density=0.1, rng=rng, format="csr")
    y = X @ rng.standard_normal((50, 1)) + 0.1 * rng.standard_normal((2000, 1))
    task, blocks = problem(penalty="l1", alpha=1e-3), MemoryBlocks(X, y)
    best = solve(GradientDescent, task, blocks, tol=1e-9)
    solution = solve(StochasticGradient, task, blocks, max_iter=30)
    scale = solution.certificate.scale
    assert solution.certificate.objective - best.certificate.objective <= 3e-3 * scale


@pytest.mark.parametrize("solver", [StochasticGradient, MiniBatch])
def test_the_seed_decides_the_result(solver):
    X, y = regression()
    blocks = MemoryBlocks(X, y)
    w = [solve(solver, problem(), blocks, max_iter=3, random_state=seed).w for seed in (1, 1, 2)]
    np.testing.assert_array_equal(w[0], w[1])
    assert np.any(w[0] != w[2])
    generator = np.random.default_rng(1)
    again = solve(solver, problem(), blocks, max_iter=3, random_state=generator).w
    np.testing.assert_array_equal(w[0], again)


def test_averaging_calms_a_constant_step():
    X, y = regression(n=1000)
    task, blocks = problem(), MemoryBlocks(X, y)
    options = {"learning_rate": "constant", "eta0": 0.05, "max_iter": 20}
    excess = [
        solve(StochasticGradient, task, blocks, average=average, **options).certificate.gap
        for average in (False, 2000)
    ]
    assert excess[1] < 0.1 * excess[0]


def test_the_passes_are_on_record_with_their_objective():
    X, y = regression()
    budget = Budget(tol=0.0, max_iter=4)
    task, blocks = problem(penalty="l2", alpha=0.1), MemoryBlocks(X, y)
    solution = StochasticGradient().solve(task, blocks, budget)
    objectives = [record.objective for record in budget.history]
    assert len(objectives) == 4
    assert solution.certificate.objective == pytest.approx(min(objectives), rel=1e-11)
    assert all(record.gap >= 0 for record in budget.history)


def test_orders_come_from_one_sequence_whether_drawn_at_once_or_ahead():
    sizes = [200_000, 200_000, 3, 200_000, 150_000]
    for kind in (np.random.default_rng, np.random.RandomState):
        with EpochOrder(kind(0), shuffle=True) as orders:
            taken = [orders.take(rows) for rows in sizes]
        with EpochOrder(kind(0), shuffle=True) as orders:
            again = [orders.take(rows) for rows in sizes]
        for one, two, rows in zip(taken, again, sizes, strict=True):
            np.testing.assert_array_equal(one, two)
            np.testing.assert_array_equal(np.sort(one), np.arange(rows))
        assert not np.array_equal(taken[0], taken[1])


def test_every_order_is_as_likely_as_any_other():
    with EpochOrder(np.random.default_rng(0), shuffle=True) as orders:
        drawn = np.concatenate([orders.take_several(4, 12_000), [orders.take(4) for _ in range(12_000)]])
    _, counts = np.unique(drawn, axis=0, return_counts=True)
    # Chi-square with 23 degrees of freedom: below 50 in 999 of 1,000 cases.
    assert counts.size == 24
    assert np.square(counts - 1000.0).sum() / 1000.0 < 50.0


def test_orders_that_are_not_shuffled_are_as_the_rows_come():
    with EpochOrder(np.random.default_rng(0), shuffle=False) as orders:
        np.testing.assert_array_equal(orders.take(4), [0, 1, 2, 3])
        np.testing.assert_array_equal(orders.take_several(2, 3), [[0, 1]] * 3)
