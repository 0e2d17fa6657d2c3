"""Paths of L1-penalised logistic regression: minima that are those of the solver from scratch."""

import numpy as np
import pytest

from sixfold.budget import Budget, BudgetExhausted
from sixfold.data.blocks import MemoryBlocks
from sixfold.risk.losses import LOSSES
from sixfold.risk.penalties import make_penalty
from sixfold.risk.problem import Problem
from sixfold.solvers.l1 import score_path
from sixfold.solvers.l1.coordinate import CoordinateDescent
from sixfold.solvers.l1.score_path import ScorePath


def make_table(rows=300, columns=20, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns)) @ rng.standard_normal((columns, columns)) + 5.0
    return X, np.where(
        (X - 5.0) @ rng.standard_normal(columns) + 3.0 * rng.logistic(size=rows) > 0, 1.0, -1.0
    )


def make_problem(alpha, ratio=1.0, fit_intercept=True):
    return Problem(LOSSES["logistic"], make_penalty("elasticnet", ratio), alpha, fit_intercept)


@pytest.mark.parametrize("ratio", [1.0, 0.3])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("tol", [1e-5, 1e-10])
@pytest.mark.parametrize("weighted", [False, True])
def test_gaps_hold(ratio, fit_intercept, tol, weighted):
    X, y = make_table()
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float) if weighted else np.ones(len(y))
    blocks = MemoryBlocks(X, y[:, None], weight)
    path = ScorePath(make_problem(1.0, ratio, fit_intercept), X, y, weight / weight.sum())
    for alpha in np.geomspace(2.0, 1e-4, 12):
        problem = make_problem(alpha, ratio, fit_intercept)
        found = path.solve(problem, Budget(tol))
        assert found is not None
        scale = problem.constant_objective(blocks)
        assert found.scale == pytest.approx(scale)
        assert found.gap <= tol * scale
        model = found.w[:, None], np.array([found.b])
        assert problem.gap(*model, blocks) <= found.gap + 1e-12 * scale
        best = CoordinateDescent().solve(problem, blocks, Budget(1e-10)).certificate
        assert problem.objective(*model, blocks) - best.objective <= found.gap + 1e-9 * scale


def test_penalties_in_any_order():
    X, y = make_table()
    path = ScorePath(make_problem(1.0), X, y, np.full(len(y), 1.0 / len(y)))
    first, *_, last = (
        path.solve(make_problem(alpha), Budget(1e-9)).w for alpha in (0.01, 1.0, 1e-3, 0.3, 0.01)
    )
    np.testing.assert_allclose(first, last, atol=1e-3)


def test_what_suits():
    X = np.zeros((4, 2))
    assert ScorePath.suits(make_problem(1.0), X, 1)
    assert not ScorePath.suits(make_problem(1.0), X, 3)
    assert not ScorePath.suits(make_problem(1.0, ratio=0.0), X, 1)
    assert not ScorePath.suits(make_problem(1.0), X.astype(np.float32), 1)


def test_a_path_says_where_it_ends_short(monkeypatch):
    X, y = make_table()
    path = ScorePath(make_problem(1.0), X, y, np.full(len(y), 1.0 / len(y)))
    monkeypatch.setattr(score_path, "MOST_COORDINATES", 3)
    assert path.solve(make_problem(1e-4), Budget(1e-6)) is None


def test_time_is_up():
    X, y = make_table()
    path = ScorePath(make_problem(1.0), X, y, np.full(len(y), 1.0 / len(y)))
    with pytest.raises(BudgetExhausted):
        path.solve(make_problem(1e-4), Budget(1e-6, time_limit=1e-9))
