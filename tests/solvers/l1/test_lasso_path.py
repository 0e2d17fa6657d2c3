"""Paths of L1-penalised least squares: gaps that hold, minima that are those of the solver from scratch."""

import numpy as np
import pytest

from sixfold.budget import Budget, BudgetExhausted
from sixfold.data.blocks import MemoryBlocks
from sixfold.risk.losses import LOSSES
from sixfold.risk.penalties import make_penalty
from sixfold.risk.problem import Problem
from sixfold.solvers.l1 import lasso_path
from sixfold.solvers.l1.coordinate import CoordinateDescent
from sixfold.solvers.l1.lasso_path import LassoPath, RoughColumns


def make_table(rows=300, columns=1000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns)) + rng.standard_normal(columns)
    return X, X[:, :20] @ rng.standard_normal(20) + 2.0 * rng.standard_normal(rows)


def make_problem(alpha, ratio=1.0, positive=False, fit_intercept=True):
    return Problem(LOSSES["squared"], make_penalty("elasticnet", ratio, positive), alpha, fit_intercept)


def walk(X, y, weight=None, tol=1e-4, steps=30, least=1e-2, **options):
    q = np.full(len(y), 1.0 / len(y)) if weight is None else weight / weight.sum()
    centre = options.get("fit_intercept", True)
    top = np.abs((X - centre * (q @ X)).T @ (q * (y - centre * (q @ y)))).max()
    path = None
    for alpha in np.geomspace(top, least * top, steps):
        problem = make_problem(alpha, **options)
        path = path or LassoPath(problem, X, y, weight, Budget(tol))
        yield problem, path.solve(problem, Budget(tol)), path


@pytest.mark.parametrize("ratio", [1.0, 0.5])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("tol", [1e-4, 1e-9])
def test_gaps_hold(ratio, positive, fit_intercept, tol):
    X, y = make_table()
    blocks = MemoryBlocks(X, y[:, None])
    options = {"ratio": ratio, "positive": positive, "fit_intercept": fit_intercept}
    for problem, found, path in walk(X, y, tol=tol, steps=8, **options):
        assert (path.rough is None) == (tol < 1e-5)
        assert found is not None
        model = found.w[:, None], np.array([found.b])
        scale = problem.constant_objective(blocks)
        assert found.scale == pytest.approx(scale)
        assert found.gap <= tol * scale
        # The bound from all columns in double precision is not above what was said, but for rounding.
        assert problem.gap(*model, blocks) <= found.gap + 1e-13 * scale
        best = CoordinateDescent().solve(problem, blocks, Budget(1e-10)).certificate
        assert problem.objective(*model, blocks) - best.objective <= found.gap + 1e-9 * scale


def test_weights_of_rows_count_and_rows_without_do_not():
    X, y = make_table(200, 1500)
    weight = np.random.default_rng(1).integers(0, 3, 200).astype(float)
    y[weight == 0.0] = 1e6
    blocks = MemoryBlocks(X, y[:, None], weight)
    for problem, found, _ in walk(X, y, weight, steps=6):
        assert problem.gap(found.w[:, None], np.array([found.b]), blocks) <= 1e-4 * found.scale


def test_columns_of_any_size():
    X, y = make_table()
    sizes = 10.0 ** np.random.default_rng(2).integers(-60, 60, X.shape[1])
    first = [found.w for _, found, _ in walk(X, y, steps=1)]
    assert not first[0].any()
    for problem, found, _ in walk(X * sizes, y, steps=5):
        gap = problem.gap(found.w[:, None], np.array([found.b]), MemoryBlocks(X * sizes, y[:, None]))
        assert gap <= 1e-4 * found.scale


def test_single_precision_is_off_by_no_more_than_it_says():
    X, y = make_table()
    path = LassoPath(make_problem(1.0), X, y, None, Budget(1e-4))
    rough = RoughColumns(path.columns, path.root)
    for seed in range(20):
        r = np.random.default_rng(seed).standard_normal(len(y)) * path.root
        slope, off = rough.slopes(r - path.root * (path.root @ r))
        exact = path.columns.slopes_of(path.root * (r - path.root * (path.root @ r)), Budget())
        assert (np.abs(slope - exact) <= 0.2 * off).all()
    nothing, off = rough.slopes(np.zeros(len(y)))
    assert not nothing.any()
    assert not off.any()


def test_a_path_says_where_it_ends_short(monkeypatch):
    X, y = make_table()
    monkeypatch.setattr(lasso_path, "MOST_COLUMNS", 30)
    found = [one for _, one, _ in walk(X, y, steps=10)]
    assert found[0] is not None
    assert found[-1] is None


def test_time_is_up():
    X, y = make_table()
    path = LassoPath(make_problem(1.0), X, y, None, Budget(1e-4))
    with pytest.raises(BudgetExhausted):
        path.solve(make_problem(0.01), Budget(1e-4, time_limit=1e-9))
