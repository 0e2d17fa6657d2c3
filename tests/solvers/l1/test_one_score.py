"""One score on sparse, wide and small tables in one call: answers, certificates, limits, and its end."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.linear import penalised_classification
from sixfold.budget import Budget
from sixfold.solvers.l1.coordinate import RESTS, CoordinateDescent
from sixfold.solvers.l1.one_score import FEW_VALUES, OneScore
from solvers.problems import blocks, problem

LOSSES = ["logistic", "squared_hinge"]


def wide(n=60, d=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 0.3
    y = np.where((X[:, :8] - 0.3) @ rng.standard_normal(8) + rng.logistic(size=n) > 0, 1.0, -1.0)
    return X, y


def sparse(n=300, d=200, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random(n, d, 0.05, "csr", random_state=rng, data_rvs=rng.standard_normal)
    y = np.where(X @ rng.standard_normal(d) + rng.logistic(size=n) > 0, 1.0, -1.0)
    return X, y


def minimum(stated, data, tol=1e-9):
    """Return w, b and the relative gap, as computed, of what the loop alone finds; None if it gives up."""
    steps = OneScore(stated, data, Budget(tol))
    for rest in RESTS:
        if not steps.run(rest):
            return None
        gap = stated.gap(*steps.model, data) / stated.constant_objective(data)
        if gap <= tol:
            break
    return (*steps.model, gap)


@given(
    loss=st.sampled_from(LOSSES),
    n=st.integers(2, 12),
    more=st.integers(0, 10),
    seed=st.integers(0, 10_000),
    fraction=st.sampled_from([0.01, 0.1, 0.5, 1.1]),
    l1_ratio=st.sampled_from([1.0, 0.7]),
    positive=st.booleans(),
    intercept=st.booleans(),
    kind=st.sampled_from(["dense", "in columns", "sparse"]),
    grid=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_is_certified_and_not_above_the_oracle(
    loss, n, more, seed, fraction, l1_ratio, positive, intercept, kind, grid
):
    rng = np.random.default_rng(seed)
    d = n + more
    # Integers make ties, duplicate and constant columns, and zeros.
    X = rng.integers(-2, 3, (n, d)).astype(float) if grid else rng.standard_normal((n, d))
    y, weight = rng.choice([-1.0, 1.0], n), rng.integers(0, 3, n).astype(float)
    y[:2], weight[:2] = [-1.0, 1.0], 1.0  # two labels count, so that there is a minimum
    alpha = fraction * np.abs(X.T @ (y - y.mean())).max() / (2.0 * n) + 1e-3
    stated = problem(loss, "elasticnet", alpha, l1_ratio=l1_ratio, positive=positive, fit_intercept=intercept)
    table = {"dense": X, "in columns": np.asfortranarray(X), "sparse": sp.csr_array(X)}[kind]
    data = blocks(table, y, weight)
    assert OneScore.suits(stated, table, 1)
    certificate = CoordinateDescent().solve(stated, data, Budget(1e-9)).certificate
    assert certificate.converged
    w, b = penalised_classification(X, y, weight, loss, stated.l1, stated.l2, intercept, positive, steps=500)
    assert certificate.objective <= stated.objective(w, b, data) + 1e-9 * certificate.scale


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("table", [wide, sparse])
def test_the_loop_alone_reaches_the_tolerance(loss, l1_ratio, intercept, table):
    X, y = table()
    alpha = 0.1 if (table, loss) == (wide, "squared_hinge") else 0.02
    stated = problem(loss, "elasticnet", alpha, l1_ratio=l1_ratio, fit_intercept=intercept)
    w, b, gap = minimum(stated, blocks(X, y))
    assert gap <= 1e-9
    assert 0 < np.count_nonzero(w) < w.size
    assert intercept or b == 0.0
    single = minimum(stated, blocks(X.astype(np.float32), y))
    np.testing.assert_allclose(single[0], w, atol=1e-4)


def small(n=200, d=8, seed=0):
    return wide(n, d, seed)


@pytest.mark.parametrize("table", [wide, sparse, small])
def test_weights_are_copies_of_rows(table):
    X, y = table()
    counts = np.random.default_rng(1).integers(0, 3, len(y))
    stated = problem("logistic", "l1", 0.02)
    copies = np.repeat(np.arange(len(y)), counts)
    weighted = minimum(stated, blocks(X, y, counts.astype(float)), tol=1e-12)
    copied = minimum(stated, blocks(X[copies], y[copies]), tol=1e-12)
    np.testing.assert_allclose(weighted[0], copied[0], atol=1e-7)
    np.testing.assert_allclose(weighted[1], copied[1], atol=1e-6)


def test_sparse_and_dense_columns_have_the_same_minimum():
    X, y = sparse(60, 200)
    stated = problem("logistic", "l1", 0.005)
    of_sparse = minimum(stated, blocks(X, y), tol=1e-12)
    of_dense = minimum(stated, blocks(X.toarray(), y), tol=1e-12)
    np.testing.assert_allclose(of_sparse[0], of_dense[0], atol=1e-7)


def test_a_constant_column_gets_no_weight():
    X, y = wide()
    X[:, 2] = 1e6
    w, _, gap = minimum(problem("logistic", "l1", 0.01), blocks(X, y))
    assert gap <= 1e-9
    assert w[2, 0] == 0.0


def test_limits_keep_the_best_so_far():
    X, y = sparse()
    stated, data = problem("logistic", "l1", 1e-3), blocks(X, y)
    budget = Budget(1e-12, max_iter=2)
    found = CoordinateDescent().solve(stated, data, budget)
    assert found.n_iter == len(budget.history) == 2
    assert budget.stopped_by == "max_iter=2"
    assert not found.certificate.converged
    assert found.certificate.objective < found.certificate.scale
    assert found.certificate.objective == pytest.approx(budget.history[-1].objective, rel=1e-11)
    told = Budget(1e-12, callbacks=[lambda record: record.iteration == 3])
    assert CoordinateDescent().solve(stated, data, told).n_iter == 3
    nothing = CoordinateDescent().solve(stated, data, Budget(1e-12, time_limit=0.0))
    assert not nothing.w.any()


def test_columns_that_depend_on_each_other_are_left_to_others():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 10)) @ rng.standard_normal((10, 600))
    y = np.where(X[:, 0] + rng.logistic(size=200) > 0, 1.0, -1.0)
    stated, data = problem("logistic", "l1", 1e-4), blocks(X, y)
    assert minimum(stated, data) is None
    assert CoordinateDescent().solve(stated, data, Budget(1e-6)).certificate.converged


def test_tables_with_many_rows_or_scores_are_left_to_others():
    stated, X = problem("logistic", "l1", 0.1), np.ones((40, 50))
    assert OneScore.suits(stated, X, 1)
    assert OneScore.suits(stated, np.ones((FEW_VALUES // 10, 10)), 1)
    assert not OneScore.suits(stated, np.ones((FEW_VALUES // 10 + 1, 10)), 1)
    assert OneScore.suits(stated, sp.csr_array(X.T), 1)
    assert not OneScore.suits(stated, X.T, 1)
    assert not OneScore.suits(stated, X, 3)
    assert not OneScore.suits(problem("softmax", "l1", 0.1), X, 1)
    assert not OneScore.suits(problem("logistic"), X, 1)
