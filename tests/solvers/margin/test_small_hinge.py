"""Small hinge fits by one native call a target are those of the path in Python, and their bound is true."""

import numpy as np
import pytest

from sixfold import LinearSVC
from sixfold.data.blocks import MemoryBlocks
from sixfold.solvers.margin import interior_point
from sixfold.solvers.margin.interior_point import InteriorPoint
from sixfold.solvers.margin.small_path import SmallHinges
from solvers.problems import problem, solve


def table(rows=150, columns=4, targets=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    score = X @ rng.normal(size=(columns, targets)) + rng.logistic(size=(rows, targets))
    return X + 3.0, np.where(score > 0, 1.0, -1.0)


@pytest.fixture
def calls(monkeypatch):
    """Note what the native call returns."""
    found = []

    class Counted(SmallHinges):
        def minimise(self, *args):
            found.append(super().minimise(*args))
            return found[-1]

    monkeypatch.setattr(interior_point, "SmallHinges", Counted)
    return found


def by_path(monkeypatch, *args, **options):
    with monkeypatch.context() as patch:
        patch.setattr(SmallHinges, "of", lambda *args: None)
        return solve(*args, **options)[0]


CASES = ["plain", "float32", "weights", "units", "far from zero", "tall", "small alpha", "large alpha"]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("intercept", [True, False])
def test_the_same_vertex_as_by_the_path(case, intercept, calls, monkeypatch):
    X, y = table(600 if case == "tall" else 150, targets=3)
    alpha = {"small alpha": 1e-7, "large alpha": 30.0}.get(case, 0.01)
    weight = np.arange(150.0) % 3 if case == "weights" else None
    if case == "float32":
        X, y = X.astype(np.float32), y.astype(np.float32)
    elif case == "units":
        X = X * [1.0, 1e-3, 1e2, 1.0]
    elif case == "far from zero":
        X = X + np.array([0.0, 1e3, -1e4, 0.0])
    stated = problem("hinge", "l2", alpha, fit_intercept=intercept)
    blocks = MemoryBlocks(X, y, weight)
    found, budget = solve(InteriorPoint(), stated, blocks, tol=1e-6)
    assert len(calls) == 3
    # With a penalty that ends every multiplier at an end there is no vertex, and far columns ask for care.
    direct = case != "large alpha" and (intercept or case != "far from zero")
    assert not direct or all(one is not None for one in calls)
    known = by_path(monkeypatch, InteriorPoint(), stated, blocks, tol=1e-6)
    digits = 1e-4 if case == "float32" else 1e-6
    np.testing.assert_allclose(X @ found.w + found.b, X @ known.w + known.b, rtol=digits, atol=digits)
    np.testing.assert_allclose(found.dual, known.dual, atol=1e-5)
    # Rows that are beyond the margin, or short of it, have multipliers at their ends exactly.
    between = np.count_nonzero((found.dual != 0) & (np.abs(found.dual) != 1))
    assert not direct or between <= 3 * (X.shape[1] + 1)
    one, other = found.certificate, known.certificate
    assert one.converged
    assert one.lower_bound <= other.objective
    assert other.lower_bound <= one.objective
    assert one.scale == other.scale
    assert len(budget.history) == found.n_iter > 3


@pytest.mark.parametrize("seed", range(30))
def test_no_model_is_below_the_bound(seed):
    rng = np.random.default_rng(seed)
    X, y = table(40, 3, 2, seed)
    weight = rng.integers(0, 3, size=40) + (np.arange(40) < 20).astype(float)
    stated = problem("hinge", "l2", 10.0 ** rng.integers(-3, 1), fit_intercept=bool(seed % 3))
    blocks = MemoryBlocks(X, y, weight)
    best, budget = solve(InteriorPoint(), stated, blocks, tol=1e-9)
    small = SmallHinges.of(stated, blocks, budget)
    budget.tol = 10.0
    for size in (0.0, 1e-8, 1e-3, 0.1):
        w = best.w + size * rng.normal(size=best.w.shape)
        b = best.b + size * rng.normal(size=best.b.shape) * stated.fit_intercept
        dual = np.clip(best.dual + size * rng.normal(size=best.dual.shape), -1.0, 1.0)
        found = small.certify(w, b, dual, 1.0)
        if found is None:
            assert size == 0.1
            continue
        assert found.objective >= stated.objective(w, b, blocks)
        assert found.lower_bound <= best.certificate.objective
        assert found.gap <= 1e4 * size + 1e-9


def test_what_has_no_vertex_that_is_found_is_left_to_the_path(calls):
    X, y = table()
    X = np.repeat(np.round(X), 2, axis=0)  # rows that depend on each other
    X = np.column_stack([X, X[:, 0]])
    found = LinearSVC(loss="hinge", C=1e3).fit(X, np.repeat(y[:, 0], 2))
    assert calls == [None]
    assert found.certificate_.converged
    found.certificate_.verify(X, np.repeat(y[:, 0], 2))


def test_one_class_among_rows_that_count(calls):
    X, y = table()
    found = solve(InteriorPoint(), problem("hinge", "l2", 0.1), MemoryBlocks(X, y, (y[:, 0] > 0) * 1.0))[0]
    assert calls == [None]
    assert found.certificate.converged
    assert not found.w.any()
