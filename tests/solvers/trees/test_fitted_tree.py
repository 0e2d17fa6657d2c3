"""A fitted tree: its units, what it is equal to, and what a pickle of it holds."""

import math
import pickle

import numpy as np
import pytest
from sklearn.datasets import load_iris

from sixfold import DecisionTreeClassifier

X, y = load_iris(return_X_y=True)


def leaves(node):
    """Return the leaves below a node of ``to_dict``."""
    if not node["branches"]:
        return [node]
    return [leaf for branch in node["branches"] for leaf in leaves(branch["child"])]


def test_only_who_asks_by_the_names_of_scikit_learn_hears_of_thresholds_in_leaves():
    model = DecisionTreeClassifier(max_depth=2).fit(X, y)
    root = model.to_dict()["root"]
    assert root["threshold"] == model.tree_.threshold[0] == pytest.approx(2.45)
    assert [leaf["threshold"] for leaf in leaves(root)] == [None] * 3
    assert np.array_equal(model.tree_.threshold == -2.0, model.tree_.is_leaf)
    assert np.array_equal(model.tree_.feature == -2, model.tree_.is_leaf)
    cut = model.pruned(max_depth=0)
    assert cut.to_dict()["root"]["threshold"] is None


@pytest.mark.parametrize(
    ("parameters", "name", "unit"),
    [
        ({}, "bits", 1.0),
        ({"base": "e"}, "nats", math.log(2.0)),
        ({"base": math.e, "criterion": "log_loss"}, "nats", math.log(2.0)),
        ({"base": "e", "criterion": "gain_ratio"}, "nats", math.log(2.0)),
        ({"base": "e", "criterion": "gini"}, "gini", 1.0),
        ({"criterion": "homogeneous"}, "homogeneous", 1.0),
    ],
)
def test_units(parameters, name, unit):
    tree = DecisionTreeClassifier(max_depth=1, **parameters).fit(X, y).tree_
    assert (tree.unit_name, tree.unit) == (name, unit)


def test_a_tree_is_equal_to_itself_alone():
    one, other = (DecisionTreeClassifier().fit(X, y).tree_ for _ in range(2))
    assert one == one  # noqa: PLR0124
    assert one != other
    assert len({one, other}) == 2


def test_a_pickle_holds_no_more_than_the_arrays():
    model = DecisionTreeClassifier().fit(X, y)
    before = len(pickle.dumps(model))
    model.predict_proba(X)
    model.decision_path(X)
    text = model.export_text()
    assert {"shares", "depth", "parent"} <= set(vars(model.tree_))  # kept for the next time
    after = pickle.dumps(model)
    assert len(after) == before
    assert pickle.loads(after).export_text() == text
