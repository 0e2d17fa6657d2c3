"""Trees worked out by hand, and that neither threads nor the layout of the table change them."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.grown_trees import EXHAUSTED, LIMIT, PURE, SPLIT, STOPPED, assert_same_tree, grow
from sixfold._native import core

UNKNOWN = np.nan
CRITERIA = ["entropy", "gini", "gain_ratio", "homogeneous"]


def entropy(*totals):
    p = np.array(totals) / sum(totals)
    return float(-(p * np.log2(p)).sum())


# Eight people: casts a shadow (no, yes), eats garlic (no, yes), complexion (pale, ruddy, average), accent
# (none, heavy, odd); is a vampire (no, yes).
PEOPLE = [
    [UNKNOWN, 1, 0, 0],
    [1, 1, 1, 0],
    [UNKNOWN, 0, 1, 0],
    [0, 0, 2, 1],
    [UNKNOWN, 0, 2, 2],
    [1, 0, 0, 1],
    [1, 0, 2, 1],
    [UNKNOWN, 1, 1, 2],
]
VAMPIRE = [0, 0, 1, 1, 1, 0, 0, 0]


def test_the_eight_people_are_asked_for_their_shadow_and_then_for_garlic():
    tree = grow(PEOPLE, VAMPIRE, [1, 1, 1, 1])
    assert tree.column.tolist() == [0, -1, -1, 1, -1, -1]
    assert tree.branches(0) == {0: 1, 1: 2}
    assert tree.unknown.tolist() == [3, -1, -1, -1, -1, -1]
    assert tree.branches(3) == {0: 4, 1: 5}
    assert tree.totals.tolist() == [[5, 3], [0, 1], [3, 0], [2, 2], [0, 2], [2, 0]]
    assert tree.rows.tolist() == [8, 1, 3, 4, 2, 2]
    assert tree.reason.tolist() == [SPLIT, PURE, PURE, SPLIT, PURE, PURE]
    assert np.isnan(tree.threshold).all()


@pytest.mark.parametrize(("least", "nodes"), [(0.4544, 6), (0.4545, 1)])
def test_the_shadow_gains_0_4544_bits(least, nodes):
    # The second split gains 1 bit at half of the people: 0.5.
    tree = grow(PEOPLE, VAMPIRE, [1, 1, 1, 1], min_impurity_decrease=least)
    assert tree.column.size == nodes


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_split_without_gain_is_made_since_xor_needs_it(criterion):
    tree = grow([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0], criterion=criterion)
    assert tree.column.tolist() == [0, 1, -1, -1, 1, -1, -1]
    assert tree.threshold[[0, 1, 4]].tolist() == [0.5, 0.5, 0.5]
    assert tree.branches(0) == {0: 1, 1: 4}


def test_of_equal_splits_the_first_column_and_then_the_first_threshold_is_taken():
    labels = [0, 1, 1, 0]
    x = np.array([1.0, 2.0, 3.0, 4.0])  # thresholds 1.5 and 3.5 are equal
    tree = grow(np.column_stack([np.ones(4), -x, x]), labels)
    assert (tree.column[0], tree.threshold[0]) == (1, -3.5)


def test_rounding_does_not_decide_ties():
    # The rows mirror each other, so thresholds 2.5 and 4.5 are equal; sums of these weights from either end
    # are not.
    weight = np.array([0.4, 0.7, 0.7, 0.9, 0.9, 0.7, 0.7, 0.4])
    tree = grow(np.arange(8.0)[:, None], [0, 1, 1, 0, 0, 1, 1, 0], weight=weight)
    assert tree.threshold[0] == 2.5


@pytest.mark.parametrize(
    ("low", "high", "threshold"),
    [
        (1.0, 4.0, 2.5),
        (1.0, np.nextafter(1.0, 2.0), 1.0),
        (-1e308, 1.7e308, 0.35e308),
        (1.7e308, np.nextafter(1.7e308, np.inf), 1.7e308),
        (0.0, 5e-324, 0.0),
        (-5e-324, 0.0, -5e-324),
    ],
)
def test_thresholds_lie_between_neighbours_or_on_the_lower_one(low, high, threshold):
    tree = grow([[low], [high]], [0, 1])
    assert tree.threshold[0] == pytest.approx(threshold, rel=1e-15, abs=0)
    assert low <= tree.threshold[0] < high


@pytest.mark.parametrize("at", [3, 700, 1500, 2980])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_of_every_sign_and_size_are_put_in_order(at, dtype):
    random = np.random.default_rng(at)
    x = (random.normal(size=3000) * 10.0 ** random.integers(-30, 30, 3000)).astype(dtype)
    x[::500] = 0.0
    x[1::500] = -0.0
    values = np.unique(x).astype(float)
    tree = grow(x[:, None], x > values[at])
    assert tree.column.tolist() == [0, -1, -1]
    assert tree.threshold[0] == float(Fraction(values[at]) / 2 + Fraction(values[at + 1]) / 2)


def test_zeros_of_either_sign_are_one_value():
    assert grow([[0.0], [-0.0]], [0, 1]).reason.tolist() == [EXHAUSTED]
    assert grow([[0.0], [-0.0]] * 500, [0, 1] * 500).reason.tolist() == [EXHAUSTED]


def test_unknown_numbers_have_a_branch():
    tree = grow([[1], [2], [UNKNOWN], [UNKNOWN]], [0, 1, 2, 2])
    assert tree.branches(0) == {0: 1, 1: 2}
    assert tree.unknown.tolist() == [3, -1, -1, -1]
    assert tree.totals[3].tolist() == [0, 0, 2]


@pytest.mark.parametrize(("label", "child"), [(0, 1), (1, 2)])
def test_unknown_numbers_join_the_child_that_suits_best(label, child):
    tree = grow([[1], [2], [UNKNOWN]], [0, 1, label], unknown_best=True)
    assert tree.unknown.tolist() == [child, -1, -1]
    assert tree.branches(0) == {0: 1, 1: 2}


@pytest.mark.parametrize(("best", "branches"), [(False, {0: 1}), (True, {0: 1, 1: 2})])
def test_known_and_unknown_is_the_last_split_of_numbers(best, branches):
    tree = grow([[1], [2], [UNKNOWN], [UNKNOWN]], [0, 0, 1, 1], unknown_best=best, min_samples_leaf=2)
    assert tree.threshold[0] == np.inf
    assert tree.branches(0) == branches
    assert tree.unknown.tolist() == [2, -1, -1]


@pytest.mark.parametrize("best", [False, True])
def test_known_and_unknown_is_the_last_split_of_categories(best):
    tree = grow([[3], [7], [UNKNOWN], [UNKNOWN]], [0, 0, 1, 1], [1], unknown_best=best, min_samples_leaf=2)
    assert np.isnan(tree.threshold[0])
    assert tree.branches(0) == {3: 1, 7: 1}
    assert tree.unknown.tolist() == [2, -1, -1]


def test_unknown_categories_join_the_category_that_suits_best():
    tree = grow([[0], [4], [9], [UNKNOWN]], [0, 1, 2, 1], [1], unknown_best=True)
    assert tree.branches(0) == {0: 1, 4: 2, 9: 3}
    assert tree.unknown[0] == 2


def test_two_groups_of_categories_by_the_share_of_the_second_class():
    # Shares of class 1: category 2 none, 5 all, 8 none: {2, 8} | {5}.
    tree = grow([[5], [2], [8], [5], [8]], [1, 0, 0, 1, 0], [1], binary=True)
    assert tree.branches(0) == {2: 1, 5: 2, 8: 1}


@pytest.mark.parametrize("categories", [4, 12])
def test_two_groups_of_categories_with_three_classes(categories):
    # Categories alternate between class 0 and the others, which the next split tells apart by the number.
    codes = np.arange(categories)
    labels = np.where(codes % 2 == 0, 0, 1 + codes // 2 % 2)
    tree = grow(codes[:, None].astype(float), labels, [1], binary=True, max_depth=1)
    left = {code for code, child in tree.branches(0).items() if child == 1}
    assert left == set(range(0, categories, 2))


def test_each_criterion_measures_what_it_says():
    # A category of its own for each row tells the classes apart, the number is wrong about one row of eight,
    # and parity says nothing.
    codes = [0, 1, 2, 3, 4, 5, 6, 7]
    number = [0, 0, 0, 1, 1, 1, 1, 1]
    parity = [0, 1, 0, 1, 0, 1, 0, 1]
    X, labels = np.column_stack([codes, number, parity]).astype(float), [0, 0, 0, 0, 1, 1, 1, 1]
    # One child a row: gain 1 of info 3. The number: gain 0.5488 of info 0.9544. The average gain is 0.5163.
    assert (1 - 5 / 8 * entropy(1, 4)) / entropy(3, 5) > 1 / 3
    chosen = {criterion: grow(X, labels, [1, 0, 0], criterion=criterion).column[0] for criterion in CRITERIA}
    assert chosen == {"entropy": 0, "gini": 0, "gain_ratio": 1, "homogeneous": 0}


# By the first column one row of eight is told apart: gain 0.1379 of info 0.5436, a ratio of 0.2537. The
# second is right about six rows: gain 0.1887 of info 1. The last says nothing.
PEELS = [1.0, 0, 0, 0, 0, 0, 0, 0]
HALVES = [0.0, 0, 0, 1, 0, 1, 1, 1]
PARITY = [0.0, 1, 0, 1, 0, 1, 0, 1]
OF_TWO_CLASSES = [0, 0, 0, 0, 1, 1, 1, 1]


def test_the_gain_ratio_compares_only_columns_with_at_least_the_average_gain():
    assert 1 - 7 / 8 * entropy(3, 4) == pytest.approx(0.1379, abs=5e-5)
    assert 0.1379 / entropy(1, 7) == pytest.approx(0.2537, abs=5e-5)
    assert 1 - entropy(3, 1) == pytest.approx(0.1887, abs=5e-5)
    two, three = np.column_stack([PEELS, HALVES]), np.column_stack([PEELS, HALVES, PARITY])
    # 0.1379 is below the average of 0.1633, and above that of three columns, 0.1089.
    assert grow(two, OF_TWO_CLASSES, criterion="gain_ratio").column[0] == 1
    assert grow(three, OF_TWO_CLASSES, criterion="gain_ratio").column[0] == 0


def test_the_average_gain_is_that_of_the_columns_looked_at():
    # The first column wins against the last alone, the second against each: two of three pairs.
    X = np.column_stack([PEELS, HALVES, PARITY])
    rules = {"criterion": "gain_ratio", "max_columns": 2, "max_depth": 1}
    roots = [grow(X, OF_TWO_CLASSES, seed=seed, **rules).column[0] for seed in range(90)]
    assert 50 <= roots.count(1) <= 70
    assert roots.count(0) == 90 - roots.count(1)


def test_the_gain_ratio_of_a_column_is_that_of_its_threshold_with_the_most_gain():
    # At 0.5 and at 6.5 one row is told apart, see above, and at 3.5 six rows are on the right side.
    x, labels = np.arange(8.0)[:, None], [0, 1, 0, 0, 1, 1, 0, 1]
    assert grow(x, labels, criterion="gain_ratio").threshold[0] == 3.5


def test_entropy_and_gini_and_homogeneous_sets_disagree():
    x = np.arange(10.0)[:, None]
    labels = [0, 1, 0, 0, 0, 0, 1, 1, 1, 0]
    # Rows of one class that a threshold cuts off: 0.5 and 8.5 one each; the average entropy is least at 5.5.
    assert grow(x, labels, criterion="homogeneous", max_depth=1).threshold[0] == 0.5
    assert grow(x, labels, criterion="entropy", max_depth=1).threshold[0] == 5.5
    assert grow(x, labels, criterion="gini", max_depth=1).threshold[0] == 5.5


def test_limits_say_why_a_node_is_a_leaf():
    x, labels = np.arange(4.0)[:, None], [0, 1, 0, 1]
    assert grow(x, labels, max_depth=0).reason.tolist() == [LIMIT]
    assert grow(x, labels, min_samples_split=5).reason.tolist() == [LIMIT]
    assert grow(x, labels, min_samples_leaf=3).reason.tolist() == [LIMIT]
    assert grow(x, labels, min_leaf_weight=2.5).reason.tolist() == [LIMIT]
    assert grow(x, labels, min_impurity_decrease=0.5).reason.tolist() == [LIMIT]
    assert grow(x, labels, min_samples_leaf=2).threshold[0] == 1.5
    assert grow(np.ones((4, 2)), labels, min_samples_leaf=3).reason.tolist() == [EXHAUSTED]


def test_a_leaf_may_weigh_exactly_its_least_weight():
    weight = np.full(19, 0.1)  # nine of them: more than what is left over from the sum of all and of ten
    tree = grow(np.arange(19.0)[:, None], [0] * 10 + [1] * 9, weight=weight, min_leaf_weight=0.9)
    assert tree.threshold[0] == 9.5


@pytest.mark.parametrize("classes", [1, 3])
def test_one_row_and_one_class_are_a_leaf(classes):
    tree = grow([[1.0, 2.0]], [0], classes=classes)
    assert tree.reason.tolist() == [PURE]
    assert tree.totals.tolist() == [[1.0] + [0.0] * (classes - 1)]
    assert grow(np.arange(6.0).reshape(3, 2), [0, 0, 0], classes=classes).reason.tolist() == [PURE]


def test_rows_that_are_not_taken_do_not_count():
    x, labels = np.arange(6.0)[:, None], np.array([0, 1, 0, 1, 1, 1])
    weight = np.array([1.0, 0.0, 2.0, 1.0, 0.0, 1.0])
    tree = grow(x, labels, weight=weight, rows=np.flatnonzero(weight))
    assert tree.threshold[0] == 2.5
    assert tree.rows.tolist() == [4, 2, 2]
    assert tree.totals.tolist() == [[3, 2], [3, 0], [0, 2]]


def test_columns_that_are_looked_at_follow_from_the_seed():
    random = np.random.default_rng(0)
    X, labels = random.normal(size=(60, 10)), random.integers(0, 2, 60)
    trees = [grow(X, labels, max_columns=1, seed=seed) for seed in (1, 1, 2)]
    assert_same_tree(trees[0], trees[1])
    assert trees[0].column.tolist() != trees[2].column.tolist()
    assert_same_tree(grow(X, labels, max_columns=10), grow(X, labels))
    # Columns without a split are passed over.
    X[:, 1:] = 0.0
    assert set(grow(X, labels, max_columns=1).reason) == {SPLIT, PURE}


def test_a_growth_without_time_is_one_leaf_and_says_so():
    tree = grow(np.arange(4.0)[:, None], [0, 1, 0, 1], seconds_left=-1.0)
    assert not tree.completed
    assert tree.reason.tolist() == [STOPPED]
    assert tree.totals.tolist() == [[2, 2]]
    assert grow(np.arange(4.0)[:, None], [0, 0, 0, 0], seconds_left=-1.0).reason.tolist() == [PURE]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_growth_that_is_stopped_halfway_is_a_valid_tree(threads):
    random = np.random.default_rng(0)
    X, labels = random.normal(size=(30_000, 20)), random.integers(0, 2, 30_000)
    before = core.limit_threads(threads)
    tree = grow(X, labels, seconds_left=0.005)
    core.limit_threads(before)
    assert not tree.completed
    leaf = tree.column < 0
    assert STOPPED in tree.reason[leaf]
    assert tree.rows[leaf].sum() == 30_000
    np.testing.assert_array_equal(tree.totals[leaf].sum(axis=0), np.bincount(labels))


@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    criterion=st.sampled_from(CRITERIA),
    binary=st.booleans(),
    unknown_best=st.booleans(),
    max_columns=st.sampled_from([0, 3]),
)
def test_the_number_of_threads_does_not_matter(seed, criterion, binary, unknown_best, max_columns):
    random = np.random.default_rng(seed)
    X = random.integers(0, 30, (18_000, 30)).astype(float)  # enough for large nodes and for subtrees
    X[random.random(X.shape) < 0.02] = np.nan
    kinds = random.random(30) < 0.3
    labels = (np.nan_to_num(X[:, :3]).sum(axis=1) + random.normal(size=18_000) * 9 > 45).astype(int)
    weight = random.random(18_000) + 0.1
    trees = []
    for threads in (1, 2, 3):
        before = core.limit_threads(threads)
        trees.append(
            grow(
                X,
                labels,
                kinds,
                weight=weight,
                criterion=criterion,
                binary=binary,
                unknown_best=unknown_best,
                max_columns=max_columns,
                max_depth=7,
            )
        )
        core.limit_threads(before)
    assert_same_tree(trees[0], trees[1])
    assert_same_tree(trees[0], trees[2])


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    dtype=st.sampled_from([np.float64, np.float32, np.uint8]),
    layout=st.sampled_from(["C", "F", "reversed", "every second", "transposed"]),
    binary=st.booleans(),
)
def test_neither_type_nor_layout_of_the_table_matters(seed, dtype, layout, binary):
    random = np.random.default_rng(seed)
    rows, columns = int(random.integers(1, 60)), int(random.integers(1, 5))
    X = random.integers(0, 8, (rows, columns)).astype(float)
    labels, kinds = random.integers(0, 3, rows), random.integers(0, 2, columns)
    as_type = X.astype(dtype)
    view = {
        "C": np.ascontiguousarray(as_type),
        "F": np.asfortranarray(as_type),
        "reversed": np.ascontiguousarray(as_type[::-1, ::-1])[::-1, ::-1],
        "every second": np.repeat(np.repeat(as_type, 2, axis=0), 2, axis=1)[::2, ::2],
        "transposed": np.ascontiguousarray(as_type.T).T,
    }[layout]
    expected = grow(X, labels, kinds, binary=binary, classes=3)
    assert_same_tree(grow(view, labels, kinds, binary=binary, classes=3), expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": [0, 2]}, "labels"),
        ({"labels": [0, -1]}, "labels"),
        ({"labels": [0, 1, 1]}, "labels"),
        ({"rows": np.array([0, 2])}, "rows"),
        ({"rows": np.array([], dtype=np.int64)}, "row"),
        ({"weight": np.array([1.0, 0.0])}, "weights"),
        ({"kinds": [0, 0]}, "kinds"),
        ({"X": np.array([[0.5], [1.0]]), "kinds": [1]}, "categories"),
        ({"X": np.array([[-1.0], [1.0]]), "kinds": [1]}, "categories"),
        ({"X": np.array([[1e9], [1.0]]), "kinds": [1]}, "categories"),
        ({"criterion": "error"}, "criterion"),
    ],
)
def test_what_would_lead_out_of_an_array_is_refused(change, message):
    given = {"X": np.array([[0.0], [1.0]]), "labels": [0, 1], "kinds": [0], "classes": 2} | change
    with pytest.raises(ValueError, match=message):
        grow(**given)
