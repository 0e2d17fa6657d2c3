"""The table of a node's splits: figures by hand, and the best of it is the split that is grown."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixfold.budget import Budget
from sixfold.data.examples import load_example
from sixfold.data.tree_table import check_tree_table
from sixfold.solvers.trees.exhaustive_splits import _final, _summed, split_table
from sixfold.solvers.trees.growth import CRITERIA, TIE, GrowthRules, TrainingRows, grow


class Learner:
    """What remembers the columns."""


@pytest.fixture(scope="module")
def strangers():
    example = load_example("strangers")
    table, _ = check_tree_table(Learner(), example.X, True)
    return table, np.ones(4, dtype=np.uint8), (example.y == "yes").astype(np.int32)


def gains(node, **rules):
    X, kinds, labels = node
    return {
        one.column: round(one.gain, 4) for one in split_table(X, kinds, labels, 2, None, GrowthRules(**rules))
    }


def test_the_gains_of_the_worked_example(strangers):
    assert gains(strangers) == {0: 0.4544, 1: 0.3476, 2: 0.2657, 3: 0.0157}


def test_the_gains_where_the_shadow_is_unknown(strangers):
    X, kinds, labels = strangers
    dark = np.isnan(X[:, 0])
    assert gains((X[dark], kinds, labels[dark])) == {1: 1.0, 2: 0.5, 3: 0.0}


def test_the_rows_in_homogeneous_sets_of_the_worked_example(strangers):
    X, kinds, labels = strangers
    table = split_table(X, kinds, labels, 2, None, GrowthRules("homogeneous"))
    assert [8 - one.score for one in table] == [4, 3, 2, 0]


def test_figures_of_a_split_of_numbers_by_hand():
    X, labels = np.array([[1.0], [2.0], [4.0], [8.0]]), np.array([0, 0, 1, 0])
    [entropy] = split_table(X, [0], labels, 2, None, GrowthRules())
    assert (entropy.threshold, entropy.score, entropy.average) == (3.0, 2.0, 0.5)
    assert entropy.gain == pytest.approx(2 - 0.75 * np.log2(3) - 0.5)
    [gini] = split_table(X, [0], labels, 2, None, GrowthRules("gini"))
    assert (gini.threshold, gini.average, gini.gain) == (3.0, 0.25, 0.125)
    [ratio] = split_table(X, [0], labels, 2, None, GrowthRules("gain_ratio"))
    assert ratio.score == pytest.approx(-4 * entropy.gain)  # two halves: one bit to tell them apart


def allowed(x, kind, *, weight=None, **rules):
    """Return whether rows of two classes in turn have a split by these values."""
    labels = np.arange(len(x)) % 2
    return bool(split_table(np.array(x)[:, None], [kind], labels, 2, weight, GrowthRules(**rules)))


@pytest.mark.parametrize("best", [False, True])
def test_two_parts_have_to_be_large_enough(best):
    rare = [0.0] * 3 + [1.0] * 3 + [2.0]
    assert allowed(rare, 1, min_samples_leaf=3)
    assert not allowed(rare, 1, min_samples_leaf=4)
    assert not allowed([0.0, 1.0, 1.0, 2.0], 1, min_samples_leaf=2)
    few_unknown = [1.0, 1.0, 2.0, 2.0, np.nan]
    assert allowed(few_unknown, 0, unknown_best=best, min_samples_leaf=2)
    assert allowed(few_unknown, 1, unknown_best=best, min_samples_leaf=2)
    assert allowed(few_unknown, 1, unknown_best=best, binary=True, min_samples_leaf=2)
    assert not allowed(few_unknown, 0, unknown_best=best, min_samples_leaf=3)
    assert not allowed([1.0, 2.0, 2.0], 0, min_samples_leaf=2)


def test_unknown_rows_that_join_a_part_make_it_larger():
    assert allowed([0.0, 1.0, 1.0, np.nan], 1, unknown_best=True, min_samples_leaf=2)
    assert not allowed([0.0, 1.0, 1.0, np.nan], 1, unknown_best=False, min_samples_leaf=2)


def test_a_part_is_large_enough_by_rows_and_weight():
    x = [0.0, 0.0, 1.0, 2.0]
    assert allowed(x, 1, weight=np.array([1.0, 1.0, 1.0, 9.0]), min_leaf_weight=2.0)
    # Two parts have the weight, one the rows: only one has both.
    assert not allowed(x, 1, weight=np.array([1.0, 1.0, 9.0, 9.0]), min_leaf_weight=2.0, min_samples_leaf=2)


def test_a_threshold_is_between_its_values_also_where_their_middle_is_not():
    low = 1.0
    X = np.array([[low], [np.nextafter(low, 2.0)]])
    [found] = split_table(X, [0], np.array([0, 1]), 2, None, GrowthRules())
    assert found.threshold == low


def grown_split(tree):
    """Return the root's split as the table describes one: column, threshold, groups, child of unknowns."""
    children = tree.children(0)
    codes = {child: [] for child in children}
    for code, child in tree.branches(0).items():
        codes[child].append(code)
    numbers = tree.kinds[tree.column[0]] == 0
    groups = () if numbers else tuple(tuple(codes[child]) for child in children)
    unknown = -1 if tree.unknown[0] < 0 else children.index(tree.unknown[0])
    return int(tree.column[0]), tree.threshold[0], groups, unknown


def best_split(table, total, rules):
    """Return the split that the rules take, of those of all columns of a node with this weight."""
    if rules.criterion == "gain_ratio" and table:
        average = sum(one.gain for one in table) / len(table)
        table = [one for one in table if one.gain >= average - TIE]
    least = min((one.score for one in table), default=np.inf)
    return next((one for one in table if one.score <= least + TIE * total), None)


def split_score(totals, rules):
    """Return the score of a split from the class totals of its children."""
    candidates = _summed(totals[None], np.ones((1, len(totals))), rules, totals.sum())
    return float(_final(candidates, totals.sum(axis=0), rules.criterion)[0])


tables = st.integers(0, 2**32 - 1).map(np.random.default_rng)


@settings(max_examples=300, deadline=None)
@given(
    random=tables,
    classes=st.integers(2, 4),
    criterion=st.sampled_from(CRITERIA),
    binary=st.booleans(),
    best=st.booleans(),
    weighted=st.booleans(),
    least=st.integers(1, 3),
)
def test_the_first_of_the_best_is_the_split_that_is_grown(
    random, classes, criterion, binary, best, weighted, least
):
    rows = int(random.integers(2, 30))
    X = random.integers(0, random.integers(2, 12), size=(rows, 3)).astype(float)
    X[random.random(X.shape) < random.choice([0.0, 0.2])] = np.nan
    kinds = random.integers(0, 2, size=3).astype(np.uint8)
    labels = random.integers(0, classes, size=rows).astype(np.int32)
    weight = random.uniform(0.1, 3.0, size=rows) if weighted else None
    rules = GrowthRules(criterion, binary, best, max_depth=1, min_samples_leaf=least)
    tree = grow(TrainingRows(X, kinds, labels, classes, weight), rules, Budget())
    if len(set(labels.tolist())) == 1:
        return
    table = split_table(X, kinds, labels, classes, weight, rules)
    if tree.node_count == 1:
        assert not table
        return
    total = rows if weight is None else weight.sum()
    first = best_split(table, total, rules)
    column, threshold, groups, unknown = grown_split(tree)
    assert column == first.column
    np.testing.assert_equal(first.threshold, threshold)
    assert [group for group in first.groups if group] == [group for group in groups if group]
    assert first.unknown == unknown
    made = split_score(np.stack([tree.totals[child] for child in tree.children(0)]), rules)
    assert made == pytest.approx(first.score, rel=1e-9, abs=1e-9)
