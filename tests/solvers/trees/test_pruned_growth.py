"""Trees of few leaves, grown as far as needed, and what pruning needs before it can prune."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixfold import DecisionTreeClassifier
from sixfold.budget import Budget
from sixfold.errors import InputError, SixfoldWarning
from sixfold.solvers.trees import pruned_growth
from sixfold.solvers.trees.fitted_tree import Reason
from sixfold.solvers.trees.growth import TrainingRows, TreeParameters, grow
from sixfold.solvers.trees.pruned_growth import grow_and_prune
from sixfold.solvers.trees.pruning import keep_leaves

ARRAYS = ("column", "threshold", "first", "code", "child", "unknown", "reason", "rows", "totals")
NOTHING = Budget(0.0, None, None, [])


def table(seed, rows=5000, categories=0, noise=0.3):
    """Return numbers, or some columns of categories, whose label is a rule with noise."""
    random = np.random.default_rng(seed)
    X = random.integers(0, 30, (rows, 4)).astype(float)
    kinds = np.zeros(4, np.uint8)
    if categories:
        kinds[:2] = 1
        X[:, :2] = random.integers(0, categories, (rows, 2))
    rule = (X[:, 0] > 3).astype(int) + (X[:, 2] + X[:, 3] > 20) * (X[:, 1] % 2 == 0)
    labels = np.where(random.random(rows) < noise, random.integers(0, 3, rows), rule).astype(np.int32)
    return TrainingRows(X, kinds, labels, 3, None)


def few(rows, leaves, budget=NOTHING, **parameters):
    """Return the tree of so many leaves."""
    return grow_and_prune(rows, TreeParameters(max_leaf_nodes=leaves, **parameters), 0, budget).tree


def whole(rows, **parameters):
    return grow(rows, TreeParameters(**parameters).rules(rows, 0), NOTHING)


def few_of_all(rows, leaves, **parameters):
    """Return the most rewarding splits of the whole tree."""
    return keep_leaves(whole(rows, **parameters), leaves)


def same(tree, other):
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(tree, name), getattr(other, name), name)


@pytest.mark.parametrize("criterion", ["entropy", "gini", "gain_ratio", "homogeneous"])
@pytest.mark.parametrize("max_depth", [None, 1, 2, 4])
@pytest.mark.parametrize("leaves", [2, 3, 5, 8, 40])
def test_a_tree_of_few_leaves_is_that_of_the_whole_tree(criterion, max_depth, leaves):
    rows, limits = table(0), {"criterion": criterion, "max_depth": max_depth}
    same(few(rows, leaves, **limits), few_of_all(rows, leaves, **limits))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    leaves=st.integers(2, 9),
    categories=st.sampled_from([0, 2, 3, 4]),
    binary=st.booleans(),
    noise=st.sampled_from([0.0, 0.5, 1.0]),
    least=st.sampled_from([0.0, 1e-3]),
    leaf=st.sampled_from([1, 30]),
)
@pytest.mark.filterwarnings("ignore:max_leaf_nodes")
def test_also_with_categories_limits_and_nothing_but_noise(
    seed, leaves, categories, binary, noise, least, leaf
):
    rows = table(seed, 5000, categories, noise)
    limits = {"min_impurity_decrease": least, "min_samples_leaf": leaf}
    limits["categories"] = "binary" if binary else "multiway"
    same(few(rows, leaves, **limits), few_of_all(rows, leaves, **limits))


@pytest.mark.parametrize(("seed", "leaves"), [(32, 8), (230, 8), (242, 7)])
def test_a_lesser_split_is_made_where_a_better_one_has_too_many_branches(seed, leaves):
    rows = table(seed, 4200, 3, 1.0)
    same(few(rows, leaves), few_of_all(rows, leaves))


def chain(rows=8192):
    """Return rows of which each split takes off one end, so that few leaves are deep."""
    X = np.arange(rows, dtype=float)[:, None]
    labels = (np.minimum(np.arange(rows) // 600, 9) % 2).astype(np.int32)
    return TrainingRows(X, np.zeros(1, np.uint8), labels, 2, None)


def test_a_deep_tree_of_few_leaves_is_grown_to_its_depth():
    tree = few(chain(), 8)
    same(tree, few_of_all(chain(), 8))
    assert tree.depth.max() > 4


def test_few_leaves_do_not_grow_the_whole_tree(monkeypatch):
    grown = []
    monkeypatch.setattr(pruned_growth, "grow", lambda *given: grown.append(grow(*given)) or grown[-1])
    rows = table(0, noise=1.0)
    few(rows, 8)
    grown.append(whole(rows))
    assert sum(tree.node_count for tree in grown[:-1]) < grown[-1].node_count / 10


def test_a_second_growth_that_is_stopped_leaves_the_first():
    class Late(Budget):
        growths = 0

        @property
        def seconds_left(self):
            Late.growths += 1
            return 100.0 if Late.growths == 1 else -1.0

    tree = few(chain(), 8, Late(0.0, None, 1.0, []))
    assert tree.node_count > 1
    assert (tree.reason[tree.is_leaf & (tree.depth == 4)] == Reason.STOPPED).any()


# -- the constant model in silence -----------------------------------------------------------------------


def colours(rows=60):
    colour = np.array(["red", "green", "blue", "white", "black", "grey"])[np.arange(rows) % 6]
    return colour[:, None].tolist(), (np.arange(rows) % 6 < 3).astype(int)


def test_more_branches_than_leaves_are_warned_of():
    X, y = colours()
    with pytest.warns(SixfoldWarning, match=r"=4 .* has 6 branches\. Set categories='binary'") as one:
        model = DecisionTreeClassifier(max_leaf_nodes=4).fit(X, y)
    assert one[0].filename == __file__
    assert model.tree_.node_count == 1
    assert DecisionTreeClassifier(max_leaf_nodes=4, categories="binary").fit(X, y).score(X, y) == 1.0
    with pytest.warns(SixfoldWarning, match="max_leaf_nodes=4 leaves the constant model") as one:
        DecisionTreeClassifier().fit(X, y).pruned(max_leaf_nodes=4)
    assert one[0].filename == __file__


def test_a_constant_model_for_another_reason_is_not_warned_of():
    X, y = colours()
    DecisionTreeClassifier(max_leaf_nodes=4, max_depth=0).fit(X, y)
    DecisionTreeClassifier(max_leaf_nodes=4).fit(X, np.ones(60, int))


# -- nothing held out ------------------------------------------------------------------------------------


@pytest.mark.parametrize("prune", ["reduced_error", "cost_complexity"])
def test_pruning_without_rows_to_prune_by_is_refused(prune):
    X, y = np.arange(20.0)[:, None], np.arange(20) % 4
    with pytest.raises(InputError, match=rf"prune='{prune}' needs rows .* a larger validation_fr"):
        DecisionTreeClassifier(prune=prune, validation_fraction=0.05).fit(X, y)
    with pytest.raises(InputError, match="Give more rows"):
        DecisionTreeClassifier(prune=prune).fit(X[:4], y[:4])
    DecisionTreeClassifier(prune="cost_complexity", ccp_alpha=0.1).fit(X[:4], y[:4])  # needs none


def test_a_split_of_too_many_branches_is_left_out_and_fewer_leaves_result():
    size = np.repeat([0.0, 1.0], 6)
    colour = np.tile([0.0, 1.0, 2.0], 4)
    table, labels = np.column_stack([size, colour]), np.where(size == 0, 0, 1 + (colour == 2))
    model = DecisionTreeClassifier(max_leaf_nodes=3, categorical_features=[1]).fit(table, labels)
    assert model.get_n_leaves() == 2
    assert DecisionTreeClassifier(categorical_features=[1]).fit(table, labels).get_n_leaves() == 4
    binary = DecisionTreeClassifier(max_leaf_nodes=3, categorical_features=[1], categories="binary")
    assert binary.fit(table, labels).get_n_leaves() == 3
