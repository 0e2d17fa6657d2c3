"""Callbacks: ours, and scikit-learn's own where it has them."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from sixfold import (
    ERMClassifier,
    ERMRegressor,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    Perceptron,
)
from sixfold.errors import InputError

X = np.random.default_rng(0).normal(size=(50, 3))
Y = X @ [1.0, 2.0, 3.0] + 1.0


def test_every_iteration_is_reported():
    seen = []
    model = ERMRegressor(solver="gd", callbacks=[seen.append]).fit(X, Y)
    assert [record.iteration for record in seen] == list(range(1, model.n_iter_ + 1))
    assert seen == model.history_


def test_a_scikit_learn_callback_is_notified_of_every_iteration_and_can_stop():
    pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has no callbacks")

    class Counter:
        def __init__(self):
            self.begun, self.ended, self.set_up, self.torn_down = 0, 0, 0, 0

        def setup(self, estimator, context):
            self.set_up += 1

        def teardown(self, estimator, context):
            self.torn_down += 1

        def on_fit_task_begin(self, estimator, context):
            self.begun += 1

        def on_fit_task_end(self, estimator, context):
            self.ended += 1
            return context.task_name == "iteration" and context.task_id == 2

    counter = Counter()
    model = ERMRegressor(solver="gd", tol=0.0).set_callbacks(counter)
    with pytest.warns(match="Stopped by a callback after 3 iterations"):
        model.fit(X, Y)
    assert (counter.set_up, counter.torn_down) == (1, 1)
    assert (counter.begun, counter.ended) == (4, 4)  # the fit itself and three iterations


def test_what_cannot_be_called_is_refused():
    with pytest.raises(InputError, match="no sequence of callables"):
        ERMRegressor(callbacks=["print"]).fit(X, Y)


ITERATING = [
    (ERMRegressor, Y, {"solver": "gd", "loss": "absolute", "max_iter": 30}),
    (LinearRegression, Y, {"solver": "gd"}),
    (ERMClassifier, Y > 1.0, {"solver": "gd"}),
    (LogisticRegression, Y > 1.0, {"solver": "gd", "C": 10.0}),
    (LinearSVC, Y > 1.0, {"solver": "sgd"}),
    (Perceptron, Y > 1.0, {}),
]


def printed_iterations(capsys):
    return [int(number) for number in re.findall(r"iteration (\d+), ", capsys.readouterr().out)]


@pytest.mark.filterwarnings("ignore::sixfold.errors.StoppedEarly")
@pytest.mark.parametrize(
    ("learner", "y", "parameters"), ITERATING, ids=[row[0].__name__ for row in ITERATING]
)
def test_verbose_prints_the_first_and_the_last_iteration(learner, y, parameters, capsys):
    learner(**parameters).fit(X, y)
    assert capsys.readouterr().out == ""
    model = learner(**parameters, verbose=1).fit(X, y)
    printed = printed_iterations(capsys)
    assert len(model.history_) > 1
    assert printed[0] == 1
    assert printed[-1] == len(model.history_)


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0.5, [1, 2, 3, 4, 5, 6]), (0.2, [1, 4, 6]), (0.0, [1, 6])]
)
def test_progress_is_printed_every_half_second(seconds, expected, capsys, monkeypatch):
    model = ERMRegressor(verbose=1)

    def clock():
        return model.iteration * seconds

    monkeypatch.setattr("sixfold.learners.base.time", SimpleNamespace(perf_counter=clock))
    with model._progress() as (show,):
        for iteration in range(1, 7):
            model.iteration = iteration
            show(SimpleNamespace(iteration=iteration, seconds=0.0, objective=1.0, gap=0.5))
    assert printed_iterations(capsys) == expected


def test_callbacks_that_are_no_sequence_are_refused():
    with pytest.raises(InputError, match="callbacks=5 is no sequence of callables"):
        LogisticRegression(callbacks=5).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
