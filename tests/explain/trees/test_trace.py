"""The trace shows what decides at every node, and nothing that did not."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification

from sixfold import DecisionTreeClassifier
from sixfold.budget import Budget
from sixfold.learners import base
from sixfold.solvers.trees import routing

X, Y = make_classification(300, 6, n_informative=4, n_classes=3, flip_y=0.2, random_state=0)
WEIGHT = np.random.default_rng(0).uniform(0.5, 2.0, 300)


def chosen(node):
    [one] = [split for split in node.splits if split.chosen]
    return one


@pytest.mark.parametrize("base", [2, "e"])
def test_the_ratio_is_shown_where_it_decides(base):
    colour = np.array([0.0, 0, 1, 1, 2, 2, 3, 3])
    size = np.array([0.0, 0, 0, 0, 1, 1, 1, 0])
    useless = np.array([0.0, 1, 0, 1, 0, 1, 0, 1])  # so that the gain of size is above the average
    labels = [0, 0, 0, 0, 1, 1, 1, 1]
    model = DecisionTreeClassifier(
        criterion="gain_ratio", trace=True, categorical_features=[0, 1, 2], base=base
    ).fit(np.column_stack([colour, size, useless]), labels)
    root = model.trace_[0]
    # 1 bit of gain by four equal parts of 2 bits; 0.549 by parts of 5 and 3 rows, which tell 0.954 bits
    assert [round(one.ratio, 4) for one in root.splits] == [0.5, 0.575, 0.0]
    assert chosen(root).column == "x1"
    assert "ratio" in str(model.trace_)
    assert "0.5750  <- chosen" in str(model.trace_)
    assert model.trace_.to_dict()["nodes"][0]["splits"][0]["ratio"] == pytest.approx(0.5)


@pytest.mark.parametrize("criterion", ["entropy", "gini", "gain_ratio", "homogeneous"])
def test_figures_are_plain_numbers(criterion):
    table = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X.round())
    model = DecisionTreeClassifier(
        criterion=criterion, trace=True, max_depth=2, base="e", categorical_features=[0]
    ).fit(table, Y, WEIGHT)
    splits = [one for node in model.trace_ for one in node.to_dict()["splits"]]
    found = {type(value) for one in splits for value in one.values()}
    assert splits
    assert found <= {str, float, bool, type(None)}


def test_no_ratio_is_shown_elsewhere():
    trace = DecisionTreeClassifier(trace=True).fit(X, Y).trace_
    assert trace[0].splits[0].ratio is None
    assert "ratio" not in str(trace)


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_only_columns_that_were_drawn_are_shown(weight):
    model = DecisionTreeClassifier(max_features=2, random_state=3, trace=True).fit(X, Y, weight)
    split = [node for node in model.trace_ if node.splits]
    assert len(split) == (~model.tree_.is_leaf).sum()
    for node in split:
        assert 1 <= len(node.splits) <= 2
        assert chosen(node).average <= min(one.average for one in node.splits) + 1e-9
    assert len({one.column for node in split for one in node.splits}) == 6


@pytest.mark.parametrize("limit", [{"max_depth": 2}, {"ccp_alpha": 0.02}, {"max_leaf_nodes": 5}], ids=str)
def test_the_trace_of_a_pruned_tree_is_what_stays(limit):
    whole = DecisionTreeClassifier(trace=True).fit(X, Y)
    small = whole.pruned(**limit)
    alone = DecisionTreeClassifier(trace=True, **limit).fit(X, Y)
    assert 1 < len(small.trace_) == small.tree_.node_count < whole.tree_.node_count
    for ours, other in zip(small.trace_, alone.trace_, strict=True):
        assert (ours.node, ours.where, ours.rows, ours.end) == (
            other.node,
            other.where,
            other.rows,
            other.end,
        )
        assert ours.splits == other.splits or ours.end
    assert len(whole.trace_) == whole.tree_.node_count


def test_a_tree_without_a_trace_is_pruned_without():
    with pytest.raises(AttributeError, match="There is no trace_"):
        DecisionTreeClassifier().fit(X, Y).pruned(max_depth=1).trace_  # noqa: B018


def stopping_after(looks, how):
    """Return a budget that is used up when the trace has looked at so many nodes."""

    class Short(Budget):
        asked = 0

        def exhausted(self):
            self.asked += 1
            if self.asked > looks and how == "Ctrl-C":
                self.flag[0] = 1
            return super().exhausted() or self.asked > looks

    return Short


def test_time_that_is_over_ends_the_trace(monkeypatch):
    monkeypatch.setattr(base, "Budget", stopping_after(2, "time"))
    model = DecisionTreeClassifier(trace=True, time_limit=60.0).fit(*load_iris(return_X_y=True))
    assert sum(bool(node.splits) for node in model.trace_) == 2
    assert str(model.trace_).count("other splits were not looked at: the time was over") > 2
    assert model.certificate_.converged  # the growth was not stopped


def test_ctrl_c_ends_the_trace(monkeypatch):
    monkeypatch.setattr(base, "Budget", stopping_after(2, "Ctrl-C"))
    model = DecisionTreeClassifier(trace=True)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*load_iris(return_X_y=True))
    assert sum(bool(node.splits) for node in model.trace_) == 2
    assert model.certificate_.converged


def test_rows_of_a_node_are_found_without_a_look_at_all_rows(monkeypatch):
    asked = []
    of = routing.NodeRows.of
    monkeypatch.setattr(routing.NodeRows, "of", lambda self, node: asked.append(node) or of(self, node))
    model = DecisionTreeClassifier(trace=True).fit(X, Y)
    assert asked == np.flatnonzero(~model.tree_.is_leaf).tolist()


def test_totals_of_classes_that_are_numbers():
    numbers = DecisionTreeClassifier(trace=True).fit([[1.0], [2.0], [3.0]], [0, 1, 1])
    assert "3 rows (1 of class 0, 2 of class 1)" in str(numbers.trace_)
    names = DecisionTreeClassifier(trace=True).fit([[1.0], [2.0], [3.0]], ["a", "b", "b"])
    assert "3 rows (1 a, 2 b)" in str(names.trace_)
