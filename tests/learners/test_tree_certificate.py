"""What a tree certifies is confirmed from the data, and a changed tree or other data are found out."""

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.metrics import log_loss

from sixfold import DecisionTreeClassifier
from sixfold.errors import CertificateError, StoppedEarly
from sixfold.solvers.tree_growth import CRITERIA

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
    assert found.gap == pytest.approx(certificate.gap, abs=1e-12)
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
    assert "at most 0.462 nats above the best fit of these rows" in str(model.certificate_)


def test_pruning_and_columns_drawn_are_said():
    model = DecisionTreeClassifier(ccp_alpha=0.1).fit(X, y)
    assert str(model.certificate_).endswith("nodes were pruned to leaves")
    drawn = DecisionTreeClassifier(max_features=1, random_state=0).fit(X, y)
    assert "the best of its node among the columns drawn" in str(drawn.certificate_)


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
    model.set_params(min_samples_leaf=30)
    with pytest.raises(CertificateError, match="The split of node"):
        model.certificate_.verify(X, y)


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


def test_other_data_are_found_out():
    model = DecisionTreeClassifier().fit(X, y)
    other_label, other_cell = y.copy(), X.copy()
    other_label[7] = 2
    other_cell[7] = X[100]
    for data in ((X, other_label), (other_cell, y), (X[1:], y[1:]), (X, y, np.arange(1.0, 151.0))):
        with pytest.raises(CertificateError):
            model.certificate_.verify(*data)
