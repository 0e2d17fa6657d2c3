"""Fits that take long, are stopped, or fail: what is told of them, and what they leave."""

import numpy as np
import pandas as pd
import pytest

from learners.trees.compared_trees import X, Y
from sixfold import DecisionTreeClassifier
from sixfold.budget import Budget
from sixfold.errors import InputError, StoppedEarly
from sixfold.learners import base
from sixfold.solvers.trees.fitted_tree import Reason


def test_the_history_is_that_of_the_trees_cut_at_each_level():
    model = DecisionTreeClassifier().fit(X, Y)
    assert [record.iteration for record in model.history_] == list(range(model.get_depth() + 1))
    for record in model.history_:
        shallow = DecisionTreeClassifier(max_depth=record.iteration).fit(X, Y)
        assert record.objective == pytest.approx(-shallow.log_likelihood_, abs=1e-12)


def test_callbacks_hear_of_every_level_and_may_stop_there():
    heard = []
    model = DecisionTreeClassifier(callbacks=[heard.append]).fit(X, Y)
    assert heard == model.history_
    with pytest.warns(StoppedEarly, match="Stopped by a callback"):
        stopped = DecisionTreeClassifier(callbacks=[lambda record: record.iteration == 3]).fit(X, Y)
    np.testing.assert_array_equal(
        stopped.predict(X), DecisionTreeClassifier(max_depth=3).fit(X, Y).predict(X)
    )
    assert Reason.STOPPED in stopped.tree_.reason


def test_verbose_prints_a_line_for_each_level(capsys):
    model = DecisionTreeClassifier(verbose=1).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0] for line in lines] == [
        f"DecisionTreeClassifier: level {record.iteration}" for record in model.history_
    ]
    assert f"objective {model.history_[0].objective:.8g}" in lines[0]
    model.cost_complexity_pruning_path(X, Y)
    DecisionTreeClassifier().fit(X, Y)
    assert capsys.readouterr().out == ""


class Late(Budget):
    """A budget whose time is over."""

    seconds_left = -1.0


class Interrupted(Budget):
    """A budget in which Ctrl-C is pressed at once."""

    def __enter__(self):
        super().__enter__()
        self.flag[0] = 1
        return self


def test_time_that_is_over_leaves_the_tree_grown_so_far(monkeypatch):
    monkeypatch.setattr(base, "Budget", Late)
    with pytest.warns(
        StoppedEarly, match=r"Stopped by time_limit=1 s after 1 node; .* Let it grow on"
    ) as one:
        model = DecisionTreeClassifier(time_limit=1.0).fit(X, Y)
    assert one[0].filename == __file__
    assert model.tree_.reason.tolist() == [Reason.STOPPED]
    assert model.predict(X).shape == (400,)
    assert not model.certificate_.converged


def test_ctrl_c_leaves_a_model_that_answers(monkeypatch):
    monkeypatch.setattr(base, "Budget", Interrupted)
    model = DecisionTreeClassifier()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert model.predict_proba(X).shape == (400, 3)
    model.certificate_.verify(X, Y)


@pytest.mark.parametrize(
    ("parameters", "table", "labels", "weight"),
    [
        ({}, pd.DataFrame({"a": list("wxyx")}), [0, 1, None, 1], None),
        ({}, pd.DataFrame({"b": [1.0, 2.0], "c": [1.0, 2.0]}), [0, 1], [-1.0, 1.0]),
        ({}, np.array([[np.inf], [1.0]]), [0, 1], None),
        ({"callbacks": [lambda record: 1 / 0]}, pd.DataFrame({"b": list("vw")}), list("no"), None),
    ],
    ids=["labels", "weights", "infinity", "callback"],
)
def test_a_fit_that_fails_leaves_the_model_as_it_was(parameters, table, labels, weight):
    before, answers = pd.DataFrame({"a": list("xyxy")}), [0, 1, 0, 1]
    model = DecisionTreeClassifier(max_features=1.0).fit(before, answers).set_params(**parameters)
    state = dict(vars(model))
    with pytest.raises((InputError, ZeroDivisionError)):
        model.fit(table, labels, weight)
    assert vars(model) == state
    assert model.predict(before).tolist() == answers
    model.certificate_.verify(before, answers)


def test_a_model_whose_first_fit_fails_is_not_fitted():
    model = DecisionTreeClassifier()
    with pytest.raises(InputError):
        model.fit(pd.DataFrame({"a": list("xy")}), None)
    assert not any(name.endswith("_") for name in vars(model))


def test_a_tree_that_was_stopped_is_kept_although_its_warning_is_an_error():
    model = DecisionTreeClassifier(callbacks=[lambda record: record.iteration == 1])
    with pytest.raises(StoppedEarly):
        model.fit(X, Y)
    assert model.get_depth() == 1
