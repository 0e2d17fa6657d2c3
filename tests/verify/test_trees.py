"""What a tree certifies is confirmed from the data, and a changed tree or other data are found out."""

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.metrics import log_loss

from sixfold import DecisionTreeClassifier, LogisticRegression
from sixfold.errors import CertificateError, StoppedEarly
from sixfold.solvers.trees.growth import CRITERIA

X, y = load_iris(return_X_y=True)


def mixed(random, rows, levels=4):
    """Return a table of numbers, categories and gaps, with many ties and rows that are equal."""
    frame = pd.DataFrame(
        {
            "a": random.integers(0, levels, rows).astype(float),
            "b": random.choice(list("xyz?"), rows),
            "c": random.normal(size=rows).round(1),
        }
    )
    frame.loc[random.random(rows) < 0.1, "c"] = np.nan
    return frame, random.choice(["oak", "ash", "elm"], rows)


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    criterion=st.sampled_from(CRITERIA),
    categories=st.sampled_from(["multiway", "binary"]),
    unknown=st.sampled_from(["branch", "best"]),
    weighted=st.booleans(),
    limits=st.sampled_from(
        [
            {},
            {"max_depth": 2},
            {"min_samples_leaf": 3},
            {"min_weight_fraction_leaf": 0.1},
            {"max_leaf_nodes": 4},
            {"ccp_alpha": 0.05},
            {"prune": "reduced_error"},
            {"prune": "cost_complexity"},
            {"max_features": 1},
            {"class_weight": "balanced"},
            {"min_impurity_decrease": 0.02},
        ]
    ),
)
@pytest.mark.filterwarnings("ignore:max_leaf_nodes=4 leaves the constant model")
def test_every_tree_is_confirmed(seed, criterion, categories, unknown, weighted, limits):
    random = np.random.default_rng(seed)
    table, labels = mixed(random, int(random.integers(2, 40)))
    weight = random.choice([0.0, 0.5, 1.0, 2.5], len(labels)) if weighted else None
    if weight is not None and not weight.any():
        return
    counting = labels if weight is None else labels[weight > 0]
    if "prune" in limits and np.unique(counting, return_counts=True)[1].max() < 3:  # none can be held out
        return
    model = DecisionTreeClassifier(
        criterion=criterion, categories=categories, unknown=unknown, random_state=3, **limits
    ).fit(table, labels, weight)
    certificate = model.certificate_
    found = certificate.verify(table, labels, weight)
    assert found.objective == pytest.approx(certificate.objective, abs=1e-12)
    # The rows of a leaf at a limit may be all equal, which growth does not ask and the checker does.
    assert found.gap == pytest.approx(certificate.gap, abs=1e-12) or (limits and found.gap < certificate.gap)
    assert found.scale == pytest.approx(certificate.scale, abs=1e-12)
    assert certificate.converged


def test_the_objective_is_the_log_loss_of_the_training_rows():
    model = DecisionTreeClassifier(max_depth=2).fit(X, y)
    expected = log_loss(y, model.predict_proba(X))
    assert model.certificate_.objective == pytest.approx(expected, rel=1e-9)
    assert model.log_likelihood_ == pytest.approx(-expected, rel=1e-9)
    assert model.certificate_.scale == pytest.approx(math.log(3))


def test_a_full_tree_of_rows_that_differ_has_no_better_one():
    model = DecisionTreeClassifier().fit(X, y)
    assert model.certificate_.gap == model.certificate_.objective == 0.0
    assert str(model.certificate_) == (
        "greedy tree: every split is the best of its node; no tree fits these rows better"
    )


def test_rows_that_are_equal_cost_every_tree_their_entropy():
    table, labels = [[1, "a"], [1, "a"], [1, "a"], [2, "a"]], [0, 0, 1, 1]
    model = DecisionTreeClassifier().fit(table, labels)
    lost = 3 / 4 * -(2 / 3 * math.log(2 / 3) + 1 / 3 * math.log(1 / 3))
    assert model.certificate_.objective == pytest.approx(lost)
    assert model.certificate_.gap == 0.0
    assert "no tree fits these rows better" in str(model.certificate_)


def test_the_gap_is_what_leaves_that_could_be_split_have_lost():
    model = DecisionTreeClassifier(max_depth=1).fit(X, y)  # 50 rows of one class, 100 of two
    assert model.certificate_.gap == pytest.approx(2 / 3 * math.log(2))
    assert "57.9% of the uncertainty about the class is gone, and no tree takes more than 100%" in str(
        model.certificate_
    )


def test_pruning_and_columns_drawn_are_said():
    model = DecisionTreeClassifier(ccp_alpha=0.1).fit(X, y)
    assert str(model.certificate_).endswith("; 2 nodes were pruned to leaves")
    assert str(model.pruned(ccp_alpha=2.0).certificate_).endswith("; 1 node was pruned to a leaf")
    drawn = DecisionTreeClassifier(max_features=1, random_state=0).fit(X, y)
    assert "the best of its node among the columns drawn" in str(drawn.certificate_)


@pytest.mark.parametrize(
    ("categories", "classes", "limits", "all_tried"),
    [
        (9, 3, {"categories": "binary"}, False),
        (8, 3, {"categories": "binary"}, True),
        (8, 3, {"categories": "binary", "min_samples_leaf": 5}, True),
        (9, 3, {"categories": "multiway"}, True),
        (40, 2, {"categories": "binary"}, True),
        (40, 2, {"categories": "binary", "min_samples_leaf": 2}, False),
        (40, 2, {"categories": "binary", "min_weight_fraction_leaf": 0.1}, False),
        (2, 2, {"categories": "binary", "min_samples_leaf": 2}, True),
    ],
)
def test_where_not_every_grouping_was_tried_the_claim_says_so(categories, classes, limits, all_tried):
    random = np.random.default_rng(0)
    codes = np.arange(400) % categories
    labels = random.integers(0, classes, 400)
    model = DecisionTreeClassifier(categorical_features=[0], max_depth=1, **limits).fit(
        codes[:, None], labels
    )
    words = "every split is the best of its node" + ("" if all_tried else " among the groupings tried")
    assert f"{words};" in str(model.certificate_)
    assert f"{words};" in str(model.certificate_.verify(codes[:, None], labels))


CHANGES = {
    "criterion": "gini",
    "max_depth": 1,
    "min_samples_leaf": 40,
    "min_weight_fraction_leaf": 0.4,
    "max_features": 1,
    "random_state": 5,
    "class_weight": {0: 3.0},
    "base": "e",
    "categories": "binary",
    "unknown": "best",
    "prune": "none",
    "validation_fraction": 0.5,
}


def test_parameters_set_after_the_fit_change_nothing():
    model = DecisionTreeClassifier(
        prune="reduced_error", validation_fraction=0.2, class_weight={0: 2.0}, random_state=0
    ).fit(X, y)
    text, certificate, dot = model.export_text(), str(model.certificate_), model.export_graphviz()
    weights = model.class_weight
    model.set_params(**CHANGES)
    weights[0] = 7.0
    assert (model.export_text(), str(model.certificate_), model.export_graphviz()) == (text, certificate, dot)
    assert model.to_dict()["unit"] == "bits"
    assert model.explain(X[0]).unit == "bits"
    model.certificate_.verify(X, y)


def test_rows_held_out_are_said_and_found_by_position():
    model = DecisionTreeClassifier(prune="reduced_error", random_state=0).fit(X, y)
    assert "; 36 rows were held out" in str(model.certificate_)
    assert model.tree_.rows[0] == 150 - 36
    assert str(model.certificate_.verify(X, y)) == str(model.certificate_)
    other = np.random.default_rng(0).permutation(150)
    with pytest.raises(CertificateError, match="found by their positions: pass all rows in the order"):
        model.certificate_.verify(X[other], y[other])
    changed = dataclasses.replace(model.tree_, rows=model.tree_.rows + 1)
    model.tree_ = changed
    with pytest.raises(CertificateError, match=r"Node 0 says .* found by their positions"):
        model.certificate_.verify(X, y)


@pytest.mark.parametrize(
    "learner",
    [DecisionTreeClassifier(), DecisionTreeClassifier(max_depth=2), LogisticRegression()],
    ids=str,
)
def test_weights_that_were_left_out_are_asked_for(learner):
    weight = 1.0 + np.arange(150) % 3
    certificate = learner.fit(X, y, sample_weight=weight).certificate_
    certificate.verify(X, y, weight)
    with pytest.raises(CertificateError, match="pass the sample_weight of the fit"):
        certificate.verify(X, y)


def test_a_stopped_tree_has_not_converged():
    with pytest.warns(StoppedEarly, match="Stopped by a callback after 3 nodes") as caught:
        model = DecisionTreeClassifier(callbacks=[lambda record: record.iteration == 1]).fit(X, y)
    assert not model.certificate_.converged
    assert "growth was stopped with 1 node left to split" in str(caught[0].message)
    model.certificate_.verify(X, y)


# -- what is not confirmed -------------------------------------------------------------------------------


def test_a_tree_with_a_worse_split_is_found_out():
    data = load_breast_cancer()
    hidden = data.data.copy()
    hidden[:, 22] = 0.0  # the column that the tree would split by
    model = DecisionTreeClassifier(max_depth=2).fit(data.data, data.target)
    assert model.tree_.column[0] == 22
    model.tree_ = DecisionTreeClassifier(max_depth=2).fit(hidden, data.target).tree_
    with pytest.raises(CertificateError, match=r"The split of node 0 by column .* that of column 22 has"):
        model.certificate_.verify(data.data, data.target)


def test_a_split_that_the_limits_forbid_is_found_out():
    model = DecisionTreeClassifier().fit(X, y)
    rules = dataclasses.replace(model._grown.rules, min_samples_leaf=30)
    model._grown = dataclasses.replace(model._grown, rules=rules)
    with pytest.raises(CertificateError, match="The split of node"):
        model.certificate_.verify(X, y)


@pytest.mark.parametrize("table", [X, sp.csr_array(X)], ids=["dense", "sparse"])
def test_columns_drawn_are_drawn_again(table):
    model = DecisionTreeClassifier(max_features=2, max_depth=3, random_state=0).fit(table, y)
    model.certificate_.verify(table, y)
    assert "among the columns drawn" in str(model.certificate_.verify(table, y))
    other = DecisionTreeClassifier(max_features=2, max_depth=3, random_state=2).fit(table, y)
    assert (model.tree_.column[2], other.tree_.column[2]) == (3, 0)
    other._grown = model._grown  # as if it were of the same draw
    with pytest.raises(CertificateError, match="The split of node 2 by column 0"):
        other.certificate_.verify(table, y)


@pytest.mark.parametrize("categories", ["multiway", "binary"])
@pytest.mark.parametrize("unknown", ["branch", "best"])
def test_columns_are_drawn_on_until_one_has_a_split(categories, unknown):
    random = np.random.default_rng(5)
    frame, labels = mixed(random, 300, levels=20)
    for name in "defg":
        frame[name] = 1.0  # nothing to split by
    for seed in range(5):
        model = DecisionTreeClassifier(
            max_features=2, random_state=seed, categories=categories, unknown=unknown
        ).fit(frame, labels)
        model.certificate_.verify(frame, labels)


@pytest.mark.parametrize("change", ["threshold", "totals", "rows", "reason"])
def test_a_changed_array_is_found_out(change):
    model = DecisionTreeClassifier(max_depth=2).fit(X, y)
    tree = model.tree_
    values = getattr(tree, change).copy()
    if change == "threshold":
        values[0] += 2.0
    elif change == "reason":
        values[:] = np.where(tree.is_leaf, 2, 0)  # as if all rows of every leaf were equal
    else:
        values[-1] += 1
    model.tree_ = dataclasses.replace(tree, **{change: values})
    with pytest.raises(CertificateError):
        model.certificate_.verify(X, y)


def test_a_gap_that_is_wrong_by_a_factor_of_two_is_found_out():
    model = DecisionTreeClassifier(max_depth=2).fit(X, y)
    certificate = model.certificate_
    dataclasses.replace(certificate, gap=1.01 * certificate.gap).verify(X, y)
    with pytest.raises(CertificateError, match="a gap of at most"):
        dataclasses.replace(certificate, gap=certificate.gap / 1.5).verify(X, y)


DAMAGES = {
    "a child that points back": {"child": lambda tree: np.where(tree.child == 1, 0, tree.child)},
    "a child of two nodes": {"child": lambda tree: np.where(tree.child == 2, 1, tree.child)},
    "a child that is not there": {"child": lambda tree: np.where(tree.child == 2, 99, tree.child)},
    "an unknown child of a leaf": {"unknown": lambda tree: np.where(tree.is_leaf, 2, tree.unknown)},
    "a column that is not there": {"column": lambda tree: np.where(tree.is_leaf, -1, 99)},
    "a leaf with branches": {"column": lambda tree: np.full_like(tree.column, -1)},
    "a split without branches": {"column": lambda tree: np.abs(tree.column)},
    "other kinds": {"kinds": lambda tree: 1 - tree.kinds},
    "branches that are lost": {"child": lambda tree: tree.child[:-1]},
    "nodes that are lost": {"totals": lambda tree: tree.totals[:-1]},
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_tree_is_found_out(damage):
    model = DecisionTreeClassifier(max_depth=2).fit(X, y)
    certificate = model.certificate_
    changes = {name: change(model.tree_) for name, change in DAMAGES[damage].items()}
    model.tree_ = dataclasses.replace(model.tree_, **changes)
    with pytest.raises(CertificateError, match=r"tree was changed\."):
        certificate.verify(X, y)


def test_nodes_that_are_not_numbered_depth_first_are_found_out():
    numbers, labels = [[0], [1], [2], [3]], [0, 1, 2, 3]
    model = DecisionTreeClassifier().fit(numbers, labels)
    tree = model.tree_
    assert tree.child.tolist() == [1, 4, 2, 3, 5, 6]
    order = np.array([0, 1, 4, 2, 3, 5, 6])  # both children of the root, then theirs
    place = np.argsort(order)
    arrays = {
        name: getattr(tree, name)[order]
        for name in ("column", "threshold", "unknown", "reason", "rows", "totals")
    }
    branches = [tree.branches(node) for node in order]
    model.tree_ = dataclasses.replace(
        tree,
        **arrays,
        first=np.cumsum([0, *map(len, branches)]),
        child=np.array([place[child] for some in branches for child in some.values()], dtype=np.int32),
    )
    assert np.array_equal(model.predict(numbers), labels)
    with pytest.raises(CertificateError, match="depth first"):
        model.certificate_.verify(numbers, labels)


def test_an_array_changed_in_place_is_found_out():
    model = DecisionTreeClassifier(max_depth=2).fit(X, y)
    certificate = model.certificate_
    certificate.verify(X, y)
    model.tree_.child[0] = 0
    with pytest.raises(CertificateError, match="reached once"):
        certificate.verify(X, y)


def test_other_data_are_found_out():
    model = DecisionTreeClassifier().fit(X, y)
    other_label, other_cell = y.copy(), X.copy()
    other_label[7] = 2
    other_cell[7] = X[100]
    for data in ((X, other_label), (other_cell, y), (X[1:], y[1:]), (X, y, np.arange(1.0, 151.0))):
        with pytest.raises(CertificateError):
            model.certificate_.verify(*data)
