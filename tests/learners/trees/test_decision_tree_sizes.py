"""Smaller trees: cut from a larger one, and pruned by rows that were held out."""

import numpy as np
import pytest

from learners.trees.compared_trees import X, Y, same
from sixfold import DecisionTreeClassifier
from sixfold.errors import InputError
from sixfold.solvers.trees.fitted_tree import Reason


@pytest.mark.parametrize(
    "limit", [{"max_depth": 0}, {"max_depth": 3}, {"max_leaf_nodes": 6}, {"ccp_alpha": 0.03}], ids=str
)
def test_a_tree_is_cut_from_a_larger_one_as_it_would_grow(limit):
    cut = DecisionTreeClassifier().fit(X, Y).pruned(**limit)
    same(cut, DecisionTreeClassifier(**limit).fit(X, Y))
    assert cut.get_params() == DecisionTreeClassifier(**limit).get_params()
    cut.certificate_.verify(X, Y)


@pytest.mark.parametrize(
    "limit",
    [{"max_depth": np.int64(3)}, {"max_leaf_nodes": np.int32(6)}, {"ccp_alpha": np.float64(0.03)}],
    ids=str,
)
def test_limits_of_a_cut_are_plain_numbers(limit):
    [(name, value)] = limit.items()
    cut = DecisionTreeClassifier().fit(X, Y).pruned(**limit)
    assert type(cut.get_params()[name]) is type(value.item())
    assert f"{name}={value.item()!r}" in repr(cut)


def test_cutting_leaves_the_tree_itself_alone():
    model = DecisionTreeClassifier().fit(X, Y)
    before = model.get_n_leaves()
    assert model.pruned(max_depth=1).get_n_leaves() == 2
    assert model.get_n_leaves() == before


@pytest.mark.parametrize(
    ("grown", "asked"),
    [
        ({"ccp_alpha": 0.05}, {"ccp_alpha": 0.01}),
        ({"max_depth": 3}, {"max_depth": 4}),
        ({"max_leaf_nodes": 6}, {"max_leaf_nodes": 7}),
        ({"prune": "cost_complexity", "random_state": 0}, {"ccp_alpha": 0.0}),
    ],
    ids=str,
)
def test_a_larger_tree_is_not_inside_a_smaller_one(grown, asked):
    model = DecisionTreeClassifier(**grown).fit(X, Y)
    model.set_params(max_depth=None, ccp_alpha=0.0, max_leaf_nodes=None)  # changes no tree
    with pytest.raises(InputError, match=r"which was grown with .*\. A larger tree needs a new fit"):
        model.pruned(**asked)
    [name] = asked
    smaller = DecisionTreeClassifier().fit(X, Y).pruned(**{name: 0.06 if name == "ccp_alpha" else 3})
    with pytest.raises(InputError, match="A larger tree needs a new fit"):
        smaller.pruned(**asked)
    assert smaller.pruned(**{name: 0.06 if name == "ccp_alpha" else 3}).get_n_leaves() > 1


@pytest.mark.parametrize("prune", ["reduced_error", "cost_complexity"])
def test_pruning_helps_where_labels_are_noisy(prune):
    random = np.random.default_rng(0)
    table = random.normal(size=(1200, 6))
    labels = (table[:, 0] > 0) ^ (random.random(1200) < 0.25)
    train, test = slice(0, 600), slice(600, None)
    full = DecisionTreeClassifier().fit(table[train], labels[train])
    cut = DecisionTreeClassifier(prune=prune, random_state=0).fit(table[train], labels[train])
    assert cut.get_n_leaves() < full.get_n_leaves() / 4
    assert cut.score(table[test], labels[test]) > full.score(table[test], labels[test]) + 0.05
    assert Reason.PRUNED in cut.tree_.reason
    cut.certificate_.verify(table[train], labels[train])


def test_reduced_error_holds_rows_of_every_class_out():
    model = DecisionTreeClassifier(prune="reduced_error", validation_fraction=0.4, random_state=0).fit(X, Y)
    counts = np.bincount(Y)
    np.testing.assert_array_equal(model.tree_.totals[0], counts - np.round(0.4 * counts))
    again = DecisionTreeClassifier(prune="reduced_error", validation_fraction=0.4, random_state=0).fit(X, Y)
    same(model, again)
    other = DecisionTreeClassifier(prune="reduced_error", validation_fraction=0.4, random_state=1).fit(X, Y)
    assert other.tree_.node_count != model.tree_.node_count


def test_the_alpha_that_was_chosen_makes_the_tree():
    model = DecisionTreeClassifier(prune="cost_complexity", random_state=0).fit(X, Y)
    assert model.ccp_alpha_ > 0
    same(model, DecisionTreeClassifier(ccp_alpha=model.ccp_alpha_).fit(X, Y))
    given = DecisionTreeClassifier(prune="cost_complexity", ccp_alpha=0.05).fit(X, Y)
    assert given.ccp_alpha_ == 0.05
    same(given, DecisionTreeClassifier(ccp_alpha=0.05).fit(X, Y))
