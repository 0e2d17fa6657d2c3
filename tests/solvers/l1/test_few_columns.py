"""Newton steps on all of a few columns under absolute values: answers, certificates, limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.linear import penalised_classification
from sixfold.budget import Budget
from sixfold.solvers.l1 import few_columns
from sixfold.solvers.l1.coordinate import RESTS, CoordinateDescent
from sixfold.solvers.l1.few_columns import FewColumns
from solvers.problems import blocks, problem

LOSSES = ["logistic", "squared_hinge"]


def rows_and_signs(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 3.0
    y = np.where((X - 3.0) @ rng.standard_normal(d) + rng.logistic(size=n) > 0, 1.0, -1.0)
    return X, y


def minimum(stated, data, tol=1e-9):
    """Return w, b and the relative gap, as computed, of what these steps alone find; None if they do not."""
    steps = FewColumns(stated, data, Budget(tol))
    for rest in RESTS:
        reached = steps.run(rest)
        gap = stated.gap(*steps.model, data) / stated.constant_objective(data)
        if gap <= tol:
            break
    return (*steps.model, gap) if reached else None


@given(
    loss=st.sampled_from(LOSSES),
    n=st.integers(2, 14),
    d=st.integers(1, 10),
    seed=st.integers(0, 10_000),
    fraction=st.sampled_from([0.01, 0.1, 0.5, 1.1]),
    l1_ratio=st.sampled_from([1.0, 0.7, 0.0]),
    positive=st.booleans(),
    intercept=st.booleans(),
    grid=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_is_certified_and_not_above_the_oracle(
    loss, n, d, seed, fraction, l1_ratio, positive, intercept, grid
):
    rng = np.random.default_rng(seed)
    # Integers make ties, duplicate and constant columns.
    X = rng.integers(-2, 3, (n, d)).astype(float) if grid else rng.standard_normal((n, d))
    y, weight = rng.choice([-1.0, 1.0], n), rng.integers(0, 3, n).astype(float)
    y[:2], weight[:2] = [-1.0, 1.0], 1.0  # two labels count, so that there is a minimum
    alpha = fraction * np.abs(X.T @ (y - y.mean())).max() / (2.0 * n) + 1e-3
    stated = problem(loss, "elasticnet", alpha, l1_ratio=l1_ratio, positive=positive, fit_intercept=intercept)
    data = blocks(X, y, weight)
    certificate = CoordinateDescent().solve(stated, data, Budget(1e-9)).certificate
    assert certificate.converged
    w, b = penalised_classification(X, y, weight, loss, stated.l1, stated.l2, intercept, positive, steps=500)
    assert certificate.objective <= stated.objective(w, b, data) + 1e-9 * certificate.scale


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
@pytest.mark.parametrize("intercept", [True, False])
def test_steps_alone_reach_the_tolerance(loss, l1_ratio, intercept):
    X, y = rows_and_signs(300, 12)
    stated = problem(loss, "elasticnet", 0.01, l1_ratio=l1_ratio, fit_intercept=intercept)
    w, b, gap = minimum(stated, blocks(X, y))
    assert gap <= 1e-9
    assert intercept or b == 0.0
    single = minimum(stated, blocks(X.astype(np.float32), y))
    np.testing.assert_allclose(single[0], w, atol=1e-5)


def test_weights_are_copies_of_rows():
    X, y = rows_and_signs(80, 5)
    counts = np.random.default_rng(1).integers(0, 4, 80)
    stated = problem("logistic", "l1", 0.01)
    weighted = minimum(stated, blocks(X, y, counts.astype(float)), tol=1e-12)
    copied = minimum(stated, blocks(np.repeat(X, counts, axis=0), np.repeat(y, counts)), tol=1e-12)
    np.testing.assert_allclose(weighted[0], copied[0], atol=1e-7)
    np.testing.assert_allclose(weighted[1], copied[1], atol=1e-6)


def test_a_constant_column_gets_no_weight():
    X, y = rows_and_signs(200, 4)
    X[:, 2] = 1e6
    w, _, gap = minimum(problem("logistic", "l1", 1e-3), blocks(X, y))
    assert gap <= 1e-9
    assert w[2, 0] == 0.0
    assert np.count_nonzero(w) == 3


def test_a_step_that_is_too_long_is_halved():
    """Newton's first step on the squared hinge far from the minimum, and on nearly separated rows."""
    X, y = rows_and_signs(60, 6, seed=3)
    y[:] = np.where(X[:, 0] > 3.0, 1.0, -1.0)
    y[np.argmax(X[:, 0])] = -1.0
    for loss in LOSSES:
        assert minimum(problem(loss, "l1", 1e-5), blocks(1e3 * X, y), tol=1e-6)[2] <= 1e-6


def test_limits_keep_the_best_so_far():
    X, y = rows_and_signs(300, 12)
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


def test_where_steps_end_short_working_sets_go_on(monkeypatch):
    monkeypatch.setattr(few_columns, "MOST_STEPS", 2)
    X, y = rows_and_signs(300, 12)
    stated, data = problem("squared_hinge", "l1", 1e-3), blocks(X, y)
    assert minimum(stated, data) is None
    assert CoordinateDescent().solve(stated, data, Budget(1e-9)).certificate.converged
