"""Support vector machines of few rows by the products of these: the optimum of others, and a true bound."""

import numpy as np
import pytest

from sixfold import LinearSVC
from sixfold.data.blocks import MemoryBlocks
from sixfold.solvers.margin.gram_descent import solve_by_products, suits_products
from sixfold.solvers.margin.interior_point import InteriorPoint
from sixfold.solvers.smooth.newton import Newton
from solvers.problems import problem, solve


class Products:
    """The solver alone, without those that go on."""

    def solve(self, stated, blocks, budget):
        return solve_by_products(stated, blocks, budget)


def table(rows=60, columns=50, targets=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    score = X[:, :5] @ rng.normal(size=(5, targets)) + rng.logistic(size=(rows, targets))
    return X + 3.0, np.where(score > 0, 1.0, -1.0)


CASES = ["plain", "float32", "weights", "units", "wide", "small alpha", "large alpha"]


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("intercept", [True, False])
def test_the_optimum_is_that_of_other_solvers(loss, case, intercept):
    X, y = table(columns=300 if case == "wide" else 50, targets=3)
    alpha = {"small alpha": 1e-7, "large alpha": 30.0}.get(case, 0.01)
    weight = np.arange(60.0) % 3 if case == "weights" else None
    if case == "float32":
        X, y = X.astype(np.float32), y.astype(np.float32)
    elif case == "units":
        X = X * np.where(np.arange(X.shape[1]) % 2, 1.0, 3.0)
    stated = problem(loss, "l2", alpha, fit_intercept=intercept)
    blocks = MemoryBlocks(X, y, weight)
    found, budget = solve(Products(), stated, blocks, tol=1e-6)
    other = InteriorPoint() if loss == "hinge" else Newton()
    known, _ = solve(other, stated, blocks, tol=1e-7)
    one = found.certificate
    assert one.converged
    assert one.lower_bound <= known.certificate.objective
    assert known.certificate.lower_bound <= one.objective
    assert found.n_iter == len(budget.history) == 3
    if loss == "hinge":  # rows beyond the margin, or short of it, have multipliers at their ends exactly
        between = np.count_nonzero((found.dual != 0) & (np.abs(found.dual) != 1))
        assert between <= 3 * (X.shape[1] + 1)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("seed", range(15))
def test_no_model_is_below_the_bound(loss, seed):
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(2, 80), rng.integers(2, 120)
    X = rng.normal(size=(rows, columns)) * 10.0 ** rng.uniform(-3, 3, columns)
    X[rng.random(rows) < 0.3] = X[0]  # rows that are alike
    y = (np.arange(rows) + seed) % rng.integers(2, 5) == 0
    y[:2] = True, False
    model = LinearSVC(loss=loss, C=10.0 ** rng.uniform(-4, 5), fit_intercept=bool(seed % 2)).fit(X, y)
    model.certificate_.verify(X, y)


def test_two_rows_have_the_plane_between_them():
    # x = -1 and x = 1 about 3: w = 1 and b = -3, and both multipliers are 1 / 2 (C = 10 is no limit).
    X = np.array([[2.0, 0.0], [4.0, 0.0]])
    model = LinearSVC(loss="hinge", C=10.0).fit(X, [0, 1])
    assert model.solver_ == "dual coordinate descent on products"
    np.testing.assert_allclose(model.coef_, [[1.0, 0.0]], atol=1e-12)
    np.testing.assert_allclose(model.intercept_, [-3.0], atol=1e-12)


def test_rows_of_weight_0_have_no_multiplier():
    X, y = table(columns=60)
    weight = np.arange(60.0) % 3
    blocks, counted = MemoryBlocks(X, y, weight), weight > 0
    for loss in ("hinge", "squared_hinge"):
        stated = problem(loss, "l2", 0.01)
        found, _ = solve(Products(), stated, blocks)
        few, _ = solve(Products(), stated, MemoryBlocks(X[counted], y[counted], weight[counted]))
        assert not found.dual[~counted].any()
        np.testing.assert_allclose(found.w, few.w, atol=1e-7)


def test_one_class_and_few_iterations_are_left_to_others():
    X, y = table(rows=20)
    stated = problem("hinge", "l2", 0.01)
    assert solve(Products(), stated, MemoryBlocks(X, np.ones_like(y)))[0] is None
    assert solve(Products(), stated, MemoryBlocks(X, y), max_iter=3)[0] is None


def test_shapes_that_products_suit():
    hinge, squared = problem("hinge", "l2", 0.01), problem("squared_hinge", "l2", 0.01)
    for rows, columns, few, worth in ((60, 40, True, False), (60, 39, False, False), (120, 100, True, True)):
        blocks = MemoryBlocks(*table(rows, columns), None)
        assert suits_products(hinge, blocks) is few
        assert suits_products(squared, blocks) is worth
    assert not suits_products(problem("hinge", "l1", 0.01), blocks)
