"""The solver of neighbourhood components: its slope, its path, its rounding, and what stops it."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from sklearn.datasets import load_iris, make_classification

from oracles import soft_neighbors as oracle
from sixfold.budget import Budget
from sixfold.solvers.metric_learning import nca

IRIS, SPECIES = load_iris(return_X_y=True)


def learn(X, y, start, weight=None, max_iter=50, tol=1e-5, dtype=np.float64, heard=None, **limits):
    with Budget(tol, max_iter, **limits) as budget:
        return nca.learn(X, y, weight, start, budget, dtype, heard), budget


def table(rows=400, columns=8, classes=4, seed=0):
    return make_classification(
        rows, columns, n_informative=5, n_redundant=1, n_classes=classes, random_state=seed
    )


@pytest.mark.parametrize("components", [1, 3, 8])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rows", [60, 300])
def test_the_slope_is_that_of_finite_differences(components, weighted, rows):
    X, y = table(rows)
    rng = np.random.default_rng(components)
    q = rng.uniform(0.2, 2.5, rows) if weighted else np.ones(rows)
    objective = nca.Objective(nca.Rows.of(X, y, q))
    unit = objective.rows.unit
    L = 0.3 * rng.standard_normal((components, X.shape[1]))
    value, slope = objective((L * unit).ravel())
    assert value == pytest.approx(oracle.loss(L, X, y, q if weighted else None), abs=1e-13)
    expected = approx_fprime(L.ravel(), lambda x: oracle.loss(x.reshape(L.shape), X, y, q), 1e-7)
    assert np.allclose(slope * unit, expected, atol=2e-6)
    assert np.allclose(slope * unit, oracle.slope(L, X, y, q).ravel(), atol=1e-13)


@pytest.mark.parametrize("components", [2, 4])
def test_the_path_is_that_of_scipy_on_the_plain_loss(components):
    start = np.eye(components, 4)
    total = len(SPECIES)

    def whole(x):  # scikit-learn's scaling, by which SciPy's first step is chosen
        L = x.reshape(start.shape)
        return total * oracle.loss(L, IRIS, SPECIES), total * oracle.slope(L, IRIS, SPECIES).ravel()

    theirs = []
    minimize(whole, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 8, "ftol": 0, "gtol": 0},
             callback=lambda x: theirs.append(x.copy()))  # fmt: skip
    ours = []
    learn(IRIS, SPECIES, start, max_iter=8, tol=0.0, heard=lambda L, _: ours.append(L.ravel()))
    assert len(ours) == len(theirs) == 8
    for mine, other in zip(ours, theirs, strict=True):
        assert np.allclose(mine, other, rtol=1e-5, atol=1e-6)


def test_near_and_dense_lead_to_the_same_map(monkeypatch):
    X, y = table(600)
    found, _ = learn(X, y, 3.0 * np.eye(8), max_iter=8)
    monkeypatch.setattr(nca, "FEWEST_ROWS", 1 << 30)
    dense, _ = learn(X, y, 3.0 * np.eye(8), max_iter=8)
    assert np.allclose(found.components, dense.components, atol=1e-7)


def test_the_loop_over_near_rows_gives_way_to_tiles_and_comes_back():
    X, y = table(600)
    objective = nca.Objective(nca.Rows.of(X, y, np.ones(600)))
    ways = []
    for factor in (100.0, 0.01, 0.01, 100.0, 100.0):
        objective((factor * objective.rows.unit * np.eye(8)).ravel())
        ways.append(objective.near)
    assert ways == [True, False, False, True, True]


def test_fewer_rows_than_columns_are_learnt_in_coordinates_of_the_rows():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 90)), rng.integers(0, 3, 30)
    start = 0.3 * np.eye(90)
    heard = []
    found, _ = learn(X, y, start, max_iter=6, tol=0.0, heard=lambda L, _: heard.append(L))
    plain = []

    def whole(x):
        L = x.reshape(start.shape)
        return 30 * oracle.loss(L, X, y), 30 * oracle.slope(L, X, y).ravel()

    minimize(whole, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 6, "ftol": 0, "gtol": 0},
             callback=lambda x: plain.append(x.copy()))  # fmt: skip
    for mine, other in zip(heard, plain, strict=True):
        assert np.allclose(mine.ravel(), other, atol=1e-6)
    assert found.loss == pytest.approx(oracle.loss(found.components, X, y), abs=1e-12)


def test_where_nothing_can_be_gained_the_start_is_kept_to_the_last_bit():
    start = np.random.default_rng(0).standard_normal((3, 4))
    alone, _ = learn(IRIS, np.zeros(150, dtype=int), start)
    assert np.array_equal(alone.components, start)
    assert alone.loss <= alone.rounding
    assert alone.slope == 0
    each, _ = learn(IRIS[:5], np.arange(5), start)  # rows alone in their classes
    assert np.array_equal(each.components, start)
    assert each.loss == 1.0


@pytest.mark.parametrize("scale", [1e-150, 1e-5, 1.0, 1e3, 1e5, 1e8, 1e150])
def test_the_loss_is_that_of_its_definition_in_any_unit(scale):
    X, y = table(120)
    found, _ = learn(X * scale, y, np.eye(8), max_iter=3)
    assert np.isfinite(found.components).all()
    expected = oracle.loss(found.components, X * scale, y)
    assert abs(found.loss - expected) <= 2 * found.rounding + 1e-12
    assert found.rounding < 1e-6


def test_rows_too_large_after_the_map_are_refused():
    from sixfold.errors import InputError

    with pytest.raises(InputError, match="squared distances overflow"):
        learn(IRIS, SPECIES, 1e200 * np.eye(4))


def test_rounding_is_a_bound_where_probabilities_depend_on_the_last_digits():
    """Rows at nearly equal distances, far from the others: only the digits that are left decide."""
    rng = np.random.default_rng(0)
    X = 1e7 * rng.standard_normal((40, 3))
    X = np.vstack([X, X + rng.normal(size=X.shape), X - rng.normal(size=X.shape)])
    y = rng.integers(0, 2, len(X))
    found, _ = learn(X, y, np.eye(3), max_iter=1)
    exact = oracle.loss(found.components.astype(np.longdouble), X.astype(np.longdouble), y)
    assert abs(found.loss - exact) <= 2 * found.rounding
    assert 0 < found.rounding < 1


def test_ends_with_the_third_small_gain_in_a_row():
    _, budget = learn(IRIS, SPECIES, np.eye(4), tol=1e-3, max_iter=200)
    means = [1 - record.objective for record in budget.history]
    gains = [(after - before) / after for before, after in itertools.pairwise(means)]
    assert all(gain <= 1e-3 for gain in gains[-3:])
    assert not any(all(gain <= 1e-3 for gain in gains[i : i + 3]) for i in range(len(gains) - 3))


def test_a_fit_that_had_no_time_keeps_the_start():
    found, budget = learn(*table(4000), np.eye(8), time_limit=1e-9)
    assert np.array_equal(found.components, np.eye(8))
    assert found.loss == 1.0
    assert found.slope == math.inf
    assert "time_limit" in budget.stopped_by


def test_rows_of_no_weight_are_left_out():
    X, y = table(100)
    weight = np.ones(100)
    weight[::3] = 0.0
    kept = weight > 0
    first, _ = learn(X, y, np.eye(8), weight)
    second, _ = learn(X[kept], y[kept], np.eye(8))
    assert np.allclose(first.components, second.components)
