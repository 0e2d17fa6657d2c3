"""The judge of learnt distances on an objective that is known, and a peer that is not there."""

import sys

import numpy as np
import pytest

from benchmarks.metric_learning import lmnn
from oracles.triplets import terms


def test_the_judge_adds_up_all_triplets():
    task = lmnn.made(2000, 30, 3, quick=True)
    rng = np.random.default_rng(0)
    L = 0.2 * rng.normal(size=(4, 30))
    # Ours is a mean over pairs, theirs a sum.
    expected = terms(task.X[:40], task.y[:40], None, lmnn.NEIGHBORS, 0.5, 1e-12).value(L.T @ L) * 40 * 3
    few = lmnn.LearningTask(task.X[:40], task.y[:40])
    assert lmnn.log_objective(few, L) == pytest.approx(np.log(expected), abs=1e-8)


def test_sixfold_is_judged_by_its_map():
    task = lmnn.made(2000, 30, 3, quick=True)
    model = lmnn.fit(lmnn.sixfold(task), task)
    found = lmnn.log_objective(task, lmnn.components(model))
    parts = model.certificate_.details
    assert found == pytest.approx(np.log((parts["pull"] + parts["push"]) * 120 * 3), abs=1e-9)
    assert "certified gap" in lmnn.gap(model)


def test_a_python_without_metric_learn_is_said_to_be_missing(monkeypatch):
    lmnn.python_of_metric_learn.cache_clear()
    monkeypatch.setenv("SIXFOLD_METRIC_LEARN", sys.executable)
    with pytest.raises(ImportError, match="metric-learn does not start"):
        lmnn.metric_learn(lmnn.made(2000, 30, 3, quick=True))
    lmnn.python_of_metric_learn.cache_clear()


PEER = """
import pickle, sys
pickle.dump("ready", sys.stdout.buffer), sys.stdout.flush()
while True:
    try:
        X, y, options = pickle.load(sys.stdin.buffer)
    except EOFError:
        break
    pickle.dump((len(X), options), sys.stdout.buffer), sys.stdout.flush()
"""


def test_rows_go_to_the_other_process_and_its_answer_comes_back(monkeypatch):
    monkeypatch.setattr(lmnn, "PEER", PEER)
    peer = lmnn.MetricLearn(sys.executable, {"learn_rate": 0.1})
    assert peer.fit(np.zeros((7, 2)), np.zeros(7)) == (7, {"learn_rate": 0.1})
    assert peer.fit(np.zeros((3, 2)), np.zeros(3)) == (3, {"learn_rate": 0.1})
