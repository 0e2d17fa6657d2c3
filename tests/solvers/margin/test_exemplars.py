"""Both ways to many machines: working sets of hard negatives, and steps of Newton's method for all."""

import numpy as np
import pytest
import scipy.sparse as sp

from oracles import exemplars as oracle
from sixfold.budget import Budget
from sixfold.solvers.margin.exemplars import machines as exemplars
from sixfold.solvers.margin.exemplars.rows import DenseNegatives, SparseNegatives


def problem(rows=300, columns=12, machines=7, seed=0, C=0.1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)) * np.linspace(0.3, 3.0, columns) + 2.0
    return X, rng.normal(size=(machines, columns)) + 2.5, rng.uniform(0.5, 1.5, size=rows) * C, 20.0 * C


def solve(X, E, cost, own, tol=1e-9, **limits):
    kind = SparseNegatives if sp.issparse(X) else DenseNegatives
    with Budget(tol, **limits) as budget:
        found = exemplars.solve_exemplars(kind(X, cost), E, np.full(E.shape[0], own), tol, budget)
    return found, budget


def no_working_sets(negatives, x, cost, numbers, *others):
    return numbers


@pytest.mark.parametrize("C", [1e-6, 1e-2, 1.0, 1e4])
@pytest.mark.parametrize("way", ["working sets", "newton", "sparse", "little room", "small blocks"])
def test_all_ways_lead_to_the_machines_of_the_oracle(way, C, monkeypatch):
    X, E, cost, own = problem(C=C)
    if way == "newton":
        monkeypatch.setattr(exemplars, "hard_negative_rounds", no_working_sets)
    elif way == "sparse":
        X = sp.csr_array(X)
    elif way == "little room":
        for name in ("LEAST_ROOM", "MOST_ROOM", "NEW_ROWS"):
            monkeypatch.setattr(exemplars, name, 12)
    elif way == "small blocks":
        monkeypatch.setattr(exemplars, "BLOCK_SCORES", 600)
        monkeypatch.setattr(exemplars, "FEWEST_MACHINES", 1)
    found, _ = solve(X, sp.csr_array(E) if way == "sparse" else E, cost, own)
    rows = X.toarray() if way == "sparse" else X
    for place, x in enumerate(E):
        w, b = oracle.fit_machine(x, own, rows, cost)
        best = oracle.objective(w, b, x, own, rows, cost)
        here = oracle.objective(found.w[place], found.b[place], x, own, rows, cost)
        assert best * (1.0 - 1e-9) <= here <= found.objective[place] * (1.0 + 1e-12)
        assert found.objective[place] - found.gap[place] <= best * (1.0 + 1e-12)
        assert found.gap[place] <= 1e-9 * found.scale[place]
        np.testing.assert_allclose(found.w[place], w, atol=1e-4 * np.abs(w).max())


def test_the_gap_holds_for_any_machine_on_the_way():
    X, E, cost, own = problem()
    for steps in (1, 2, 3):
        found, budget = solve(X, E, cost, own, max_iter=steps)
        assert budget.shortened_by == f"max_iter={steps}" or found.gap.max() < 1e-9
        for place, x in enumerate(E):
            w, b = oracle.fit_machine(x, own, X, cost)
            best = oracle.objective(w, b, x, own, X, cost)
            assert (
                found.objective[place] - found.gap[place]
                <= best * (1.0 + 1e-12)
                <= found.objective[place] * (1.0 + 1e-9)
            )


def test_the_scale_is_the_best_constant():
    X, E, cost, own = problem()
    found, _ = solve(X, E, cost, own)
    b = np.linspace(-1, 1, 20001)
    values = own * (1 - b) ** 2 + cost.sum() * (1 + b) ** 2
    np.testing.assert_allclose(found.scale, values.min(), rtol=1e-6)


def test_machines_do_not_depend_on_each_other():
    X, E, cost, own = problem(machines=9)
    together, _ = solve(X, E, cost, own, tol=1e-12)
    for place in (0, 8):
        alone, _ = solve(X, E[[place]], cost, own, tol=1e-12)
        np.testing.assert_allclose(alone.w[0], together.w[place], atol=1e-7)


def test_far_means_and_other_units_cost_no_digits(monkeypatch):
    X, E, cost, own = problem()
    near, _ = solve(X, E, cost, own)
    far, _ = solve(X + 1e5, E + 1e5, cost, own)
    np.testing.assert_allclose(far.w, near.w, atol=1e-6)
    units = 10.0 ** np.linspace(-3, 3, X.shape[1])
    monkeypatch.setattr(exemplars, "hard_negative_rounds", no_working_sets)
    found, _ = solve(X * units, E * units, cost, own)
    assert (found.gap <= 1e-9 * found.scale).all()


def test_blocks_are_nearly_equal_and_hold_all_machines():
    parts = exemplars.blocks_of(1000, 1 << 17)
    sizes = [part.stop - part.start for part in parts]
    assert sum(sizes) == 1000
    assert max(sizes) - min(sizes) <= 1
    assert max(sizes) <= 64
