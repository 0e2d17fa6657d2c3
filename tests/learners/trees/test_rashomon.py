"""The different good trees, through the public class."""

import json
import signal
import threading

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import NotFittedError

from sixfold import DecisionTreeClassifier
from sixfold.errors import InputError, StoppedEarly


def best(**options):
    return DecisionTreeClassifier(search="optimal", **options)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True, as_frame=True)


@pytest.mark.parametrize("objective", ["error", "entropy"])
def test_iris(iris, objective):
    X, y = iris
    model = best(objective=objective, max_depth=2).fit(X, y)
    found = model.rashomon(X, y, epsilon=0.1)
    assert found.complete
    assert found.stopped_by is None
    assert len(found) == len(found.models) == len(list(found)) > 1
    assert found.objectives[0] == pytest.approx(model.certificate_.objective)
    assert max(found.objectives) <= found.objectives[0] + 0.1
    assert found.left_out[0] == ()
    for one, objective_, asked, left_out in zip(
        found.models, found.objectives, found.asked, found.left_out, strict=True
    ):
        used = X.columns[np.unique(one.tree_.column[~one.tree_.is_leaf])]
        assert tuple(used) == asked
        assert not set(asked) & set(left_out)
        rest = best(objective=objective, max_depth=2).fit(X.drop(columns=list(left_out)), y)
        assert objective_ == pytest.approx(rest.certificate_.objective)
        certificate = one.certificate_
        assert certificate.objective == pytest.approx(objective_)
        assert certificate.lower_bound == pytest.approx(found.objectives[0])
        certificate.verify(X, y)
        if objective == "error":
            assert one.score(X, y) == pytest.approx(1 - objective_)
    assert "within" in found.models[-1].certificate_.claim
    assert found.columns == {name: sum(name in asked for asked in found.asked) for name in X.columns}
    for name in X.columns:
        rest = best(objective=objective, max_depth=2).fit(X.drop(columns=name), y)
        is_good = rest.certificate_.objective <= found.objectives[0] + 0.1
        assert (name not in found.required) == is_good


def test_the_printed_table(iris):
    X, y = iris
    model = best(objective="error", max_depth=2).fit(X, y)
    few = model.rashomon(X, y, epsilon=0.0)
    assert few.required
    assert f"Every good tree asks: {', '.join(few.required)}." in str(few)
    lines = str(model.rashomon(X, y, epsilon=0.5, limit=2)).splitlines()
    assert lines[0] == "2 good trees, at most 0.5 worse than the best one"
    assert lines[1].split() == ["objective", "leaves", "columns", "asked"]
    assert lines[-1] == "There may be more: the search was stopped by limit=2."
    many = model.rashomon(X, y, epsilon=1.0)
    assert many.asked[-1] == ()
    assert "none" in str(many)
    assert repr(many) == str(many)
    said = json.loads(json.dumps(many.to_dict()))
    assert [one["asked"] for one in said["trees"]] == [list(asked) for asked in many.asked]
    assert said["complete"] is True
    assert said["trees"][0]["tree"]["root"]


def test_a_long_table_is_cut():
    X = np.random.default_rng(0).integers(0, 2, (60, 8)).astype(float)
    found = best(objective="error", max_depth=2).fit(X, X[:, 0]).rashomon(X, X[:, 0], epsilon=0.45)
    assert len(found) > 20
    assert f"... and {len(found) - 20} more" in str(found)


def test_weights_penalties_categories_and_unknown_values():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 80)
    X = pd.DataFrame(
        {
            "n": y + rng.normal(size=80),
            "c": np.array(list("abc"))[np.where(rng.random(80) < 0.7, y, 0)],
            "m": np.where(rng.random(80) < 0.2, np.nan, y + rng.normal(size=80)),
        }
    )
    weight = rng.random(80) * 1000
    for options in ({"unknown": "best", "categories": "binary"}, {"base": "e", "max_leaf_nodes": 4}):
        model = best(max_depth=2, leaf_penalty=0.01, class_weight="balanced", **options).fit(X, y, weight)
        found = model.rashomon(X, y, epsilon=0.6, sample_weight=weight)
        assert found.complete
        assert len(found) > 1
        for one, objective in zip(found.models, found.objectives, strict=True):
            assert one.certificate_.objective == pytest.approx(objective)
            one.certificate_.verify(X, y, weight)
        with pytest.raises(InputError, match="not the rows of the fit"):
            model.rashomon(X, y)


def test_one_class():
    found = best().fit([[1.0], [2.0]], ["a", "a"]).rashomon([[1.0], [2.0]], ["a", "a"])
    assert len(found) == 1
    assert found.complete
    assert found.asked == [()]
    assert found.required == ()


def test_parameters_that_were_changed_since_are_not_those_of_the_fit(iris):
    X, y = iris
    model = best(objective="error", max_depth=2).fit(X, y)
    found = model.rashomon(X, y)
    model.set_params(objective="entropy", max_depth=1, search="greedy")
    assert model.rashomon(X, y).objectives == found.objectives


# -- limits --------------------------------------------------------------------------------------------------


def test_callbacks_hear_of_every_tree_and_may_stop(iris, capsys):
    X, y = iris
    model = best(max_depth=2).fit(X, y)
    records = []
    found = model.set_params(callbacks=[records.append], verbose=1).rashomon(X, y, epsilon=0.1)
    assert [one.objective for one in records] == found.objectives
    assert [one.gap for one in records] == pytest.approx(np.subtract(found.objectives, found.objectives[0]))
    assert len(capsys.readouterr().out.splitlines()) == len(found)
    stopped = model.set_params(callbacks=[lambda record: record.iteration == 2], verbose=0)
    stopped = stopped.rashomon(X, y, epsilon=0.1)
    assert len(stopped) == 2
    assert not stopped.complete
    assert stopped.stopped_by == "a callback"


@pytest.fixture(scope="module")
def large():
    return make_classification(2000, 15, n_informative=8, flip_y=0.2, random_state=0)


def test_a_time_limit(large):
    X, y = large
    model = best(max_depth=2, objective="error").fit(X, y)
    with pytest.warns(StoppedEarly, match=r"Stopped by time_limit=1e-09 s after 1 good tree"):
        found = model.set_params(time_limit=1e-9).rashomon(X, y)
    assert len(found) == 1
    assert not found.complete
    assert found.stopped_by == "time_limit=1e-09 s"
    assert "No column is known to be in all." in str(found)
    with pytest.warns(StoppedEarly):
        stopped = best(max_depth=4, objective="error", time_limit=0.05).fit(X, y)
    with pytest.warns(StoppedEarly):
        found = stopped.rashomon(X, y)
    assert len(found) == 1
    assert found.objectives == [stopped.certificate_.objective]
    assert not found.complete


def test_ctrl_c(large):
    X, y = large
    model = best(max_depth=2, objective="error").fit(X, y)
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.warns(StoppedEarly, match="Stopped by Ctrl-C"):
        found = model.rashomon(X, y, epsilon=0.3, limit=10**6)
    timer.join()
    assert found.stopped_by == "Ctrl-C"
    assert len(found) > 1


# -- bad input -----------------------------------------------------------------------------------------------


def test_what_makes_no_sense_is_refused(iris):
    X, y = iris
    with pytest.raises(NotFittedError):
        best().rashomon(X, y)
    for search in ("greedy", "lookahead"):
        with pytest.raises(InputError, match=f"search='{search}'.*Fit with search='optimal'"):
            DecisionTreeClassifier(search=search).fit(X, y).rashomon(X, y)
    model = best(max_depth=2, objective="error").fit(X, y)
    for options in ({"epsilon": -0.1}, {"epsilon": np.nan}, {"epsilon": "a"}, {"limit": 0}, {"limit": 1.5}):
        with pytest.raises(InputError, match=next(iter(options))):
            model.rashomon(X, y, **options)
    with pytest.raises(InputError, match="not the rows of the fit"):
        model.rashomon(X, y[::-1])
    with pytest.raises(InputError, match="not the rows of the fit"):
        model.rashomon(X[:100], y[:100])
    with pytest.raises(InputError, match="not the rows of the fit"):
        model.rashomon(X, y, sample_weight=np.arange(150.0))
    with pytest.raises(ValueError, match="feature"):
        model.rashomon(X.iloc[:, :2], y)
    with pytest.raises(InputError, match="was pruned"):
        model.pruned(max_depth=1).rashomon(X, y)
    with pytest.raises(InputError, match="one of a RashomonSet"):
        model.rashomon(X, y, epsilon=0.3).models[-1].rashomon(X, y)
    with pytest.raises(InputError, match="was pruned"):
        best(prune="reduced_error", random_state=0).fit(X, y).rashomon(X, y)
