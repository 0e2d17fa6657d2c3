"""The judge of learnt components on maps whose answer is known, and the contenders on tiny data."""

import numpy as np
import pytest

from benchmarks.metric_learning.nca import CASES, ComponentsTask, iterations, wrong_picks
from benchmarks.runner import run_case
from oracles import soft_neighbors as oracle


def test_the_judge_is_the_plain_loss(monkeypatch):
    monkeypatch.setattr("benchmarks.metric_learning.nca.BLOCK", 7)
    rng = np.random.default_rng(0)
    task = ComponentsTask(rng.standard_normal((40, 3)), rng.integers(0, 3, 40))
    L = rng.standard_normal((2, 3))
    assert wrong_picks(task, L) == pytest.approx(oracle.loss(L, task.X, task.y), abs=1e-12)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_contenders_learn_from_the_same_start_to_the_same_end(case):
    task = case.data(True)
    for contender in case.contenders:
        model = contender.run(contender.prepare(task), task)
        assert contender.answer(model).shape[1] == task.X.shape[1]
        assert "iterations" in iterations(model)


def test_a_case_is_measured():
    rows = run_case(next(case for case in CASES if case.name == "nca_iris"), quick=True)
    assert [row.contender for row in rows] == ["sixfold", "scikit-learn"]
    assert rows[1].ratio > 0
