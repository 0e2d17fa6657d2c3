"""Steps that are made in one native call are those of the interior point, one by one."""

import numpy as np
import pytest

from sixfold.budget import Budget
from sixfold.solvers.margin import small_path
from sixfold.solvers.margin.central_path import _Path
from sixfold.solvers.margin.interior_point import InteriorPoint
from sixfold.solvers.margin.progress import MarginProgress
from sixfold.solvers.margin.small_path import hasten
from sixfold.solvers.margin.terms import Terms
from solvers.problems import blocks, problem


def table(n=60, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) + rng.uniform(-3, 3, d)
    y = np.where(X[:, :1] - X[:, 0].mean() + rng.logistic(size=(n, 1)) > 0, 1.0, -1.0)
    return X, y, rng.uniform(0.0, 2.0, n) * (np.arange(n) % 9 > 0)


def begun(stated, data, max_iter):
    budget = Budget(1e-6, max_iter)
    return _Path(Terms(stated, data, 0, budget), False), MarginProgress(stated, data, budget)


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_steps_at_once_are_steps_one_by_one(loss, fit_intercept, dtype, steps):
    X, y, weight = table()
    stated = problem(loss, penalty="l2", alpha=0.02, fit_intercept=fit_intercept)
    data = blocks(X.astype(dtype), y.astype(dtype), weight)
    path, progress = begun(stated, data, steps)
    hasten(path, progress, 0.0)
    other, _ = begun(stated, data, steps)
    records = []
    for _ in range(steps):
        other.advance()
        records.append((other.objective, other.gap))
    np.testing.assert_allclose(path.theta, other.theta, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(path.slope, other.slope, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(path.terms.vectors, other.terms.vectors, rtol=1e-5, atol=1e-9)
    for name in ("objective", "gap", "products", "length"):
        assert getattr(path, name) == pytest.approx(getattr(other, name), rel=1e-6)
    made = [(record.objective, record.gap) for record in progress.budget.history]
    np.testing.assert_allclose(made, records, rtol=1e-6)


def test_steps_end_with_a_gap_that_is_good_enough():
    X, y, weight = table()
    path, progress = begun(problem("hinge", penalty="l2", alpha=0.02), blocks(X, y, weight), 30)
    hasten(path, progress, 1e-3)
    assert min(path.gap, path.products) <= 1e-3
    made = progress.budget.history
    assert all(record.gap > 1e-3 for record in made[:-1])
    assert 0 < len(made) < 30


@pytest.mark.parametrize(
    ("options", "callbacks"), [({"penalty": "l1"}, ()), ({"penalty": None}, ()), ({}, [lambda record: None])]
)
def test_others_are_left_to_steps_one_by_one(options, callbacks):
    X, y, weight = table()
    stated = problem("hinge", **({"penalty": "l2", "alpha": 0.02} | options))
    budget = Budget(1e-6, 10, callbacks=callbacks)
    data = blocks(X, y, weight)
    path, progress = _Path(Terms(stated, data, 0, budget), False), MarginProgress(stated, data, budget)
    hasten(path, progress, 0.0)
    assert budget.history == []


@pytest.mark.parametrize("n", [8, 100])
@pytest.mark.parametrize("alpha", [1e-6, 1e-2, 10.0])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_optimum_is_that_of_steps_one_by_one(n, alpha, scale, monkeypatch):
    X, y, weight = table(n, 4, n)
    stated, data = problem("hinge", penalty="l2", alpha=alpha), blocks(scale * X, y, weight)
    found = InteriorPoint().solve(stated, data, Budget(1e-6, 100))
    monkeypatch.setattr(small_path, "MOST_PRODUCTS", 0)
    other = InteriorPoint().solve(stated, data, Budget(1e-6, 100))
    assert found.certificate.converged == other.certificate.converged
    allowed = max(found.certificate.gap, other.certificate.gap) + 1e-15
    assert abs(found.certificate.objective - other.certificate.objective) <= allowed
