"""The judge of exemplar machines, against objectives worked out here."""

import numpy as np
import pytest

from benchmarks.linear import exemplar_tasks, exemplars
from oracles import exemplars as oracle


@pytest.fixture(autouse=True)
def no_bounds_kept(monkeypatch):
    monkeypatch.setattr(exemplar_tasks, "_BOUNDS", {})


def test_excess_is_the_part_above_the_least_sum_of_objectives():
    task = exemplar_tasks.two_classes(quick=True)
    negatives, cost = task.negatives, np.full(150, exemplar_tasks.C)
    best = [oracle.fit_machine(x, exemplar_tasks.OWN, negatives, cost) for x in task.exemplars]
    w, b = np.array([one for one, _ in best]), np.array([one for _, one in best])
    assert exemplar_tasks.excess(task, (w, b)) == pytest.approx(0.0, abs=1e-8)
    values = [
        oracle.objective(w[k] + 0.01, b[k], x, exemplar_tasks.OWN, negatives, cost)
        for k, x in enumerate(task.exemplars)
    ]
    np.testing.assert_allclose(exemplar_tasks.objectives(task, w + 0.01, b), values)
    least = sum(
        oracle.objective(w[k], b[k], x, exemplar_tasks.OWN, negatives, cost)
        for k, x in enumerate(task.exemplars)
    )
    assert exemplar_tasks.excess(task, (w + 0.01, b)) == pytest.approx(sum(values) / least - 1.0, rel=1e-5)


def test_the_bound_is_below_every_objective():
    task = exemplar_tasks.unit_rows(quick=True)
    random = np.random.default_rng(0)
    for size in (0.01, 0.1, 1.0):
        w, b = (
            size * random.normal(size=task.exemplars.shape),
            random.uniform(-0.9, 1.0, size=len(task.exemplars)),
        )
        assert (exemplar_tasks.bounds(task, w, b) <= exemplar_tasks.objectives(task, w, b)).all()


def test_liblinear_is_asked_for_the_same_problem():
    task = exemplar_tasks.two_classes(quick=True)
    rows = np.vstack([task.exemplars[:1], task.negatives])
    found = exemplars.fit_some(exemplars.Settings(False, 1000.0, 1e-8), rows, task.exemplars)
    answer = np.array([w for w, _ in found]), np.array([b for _, b in found])
    assert 0.0 <= exemplar_tasks.excess(task, answer) < 1e-4
