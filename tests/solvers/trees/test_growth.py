"""The tree that is grown is the tree of an exhaustive search, node by node."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

from oracles import trees as tree_oracle
from sixfold.budget import Budget
from sixfold.solvers.trees import growth
from sixfold.solvers.trees.fitted_tree import Reason
from sixfold.solvers.trees.growth import CRITERIA, GrowthRules, TrainingRows

every_criterion = pytest.mark.parametrize("criterion", CRITERIA)


def grow(X, kinds, labels, classes, rules, budget, weight=None):
    """Return the tree of the rows that have weight."""
    rows = None if weight is None else np.flatnonzero(weight)
    return growth.grow(TrainingRows(X, kinds, labels, classes, weight, rows), rules, budget)


def assert_same_nodes(tree, nodes):
    """Compare a tree with the nodes of the oracle; figures of weights may differ by rounding."""
    assert tree.column.tolist() == [node["column"] for node in nodes]
    assert [tree.branches(i) for i in range(tree.node_count)] == [node["branches"] for node in nodes]
    assert tree.unknown.tolist() == [node["unknown"] for node in nodes]
    assert tree.reason.tolist() == [node["reason"] for node in nodes]
    assert tree.rows.tolist() == [node["rows"] for node in nodes]
    thresholds = [node["threshold"] if node["branches"] else -2.0 for node in nodes]
    np.testing.assert_array_equal(tree.threshold, thresholds)
    np.testing.assert_allclose(tree.totals, [node["totals"] for node in nodes], rtol=1e-12)
    assert_arrays_are_sound(tree)


def assert_arrays_are_sound(tree):
    assert tree.first[0] == 0
    assert tree.first[-1] == tree.code.size == tree.child.size
    for node in range(tree.node_count):
        codes = tree.code[tree.first[node] : tree.first[node + 1]]
        assert (np.diff(codes) > 0).all()
        assert all(tree.parent[child] == node for child in tree.children(node))


def assert_oracles_tree(X, kinds, labels, classes, weight=None, **rules):
    kinds, labels = np.asarray(kinds, dtype=np.uint8), np.asarray(labels, dtype=np.int32)
    tree = grow(X, kinds, labels, classes, GrowthRules(**rules), Budget(), weight)
    assert_same_nodes(tree, tree_oracle.grow(X, kinds, labels, classes, weight, **rules))


# -- random tables of every kind -----------------------------------------------------------------------

SCALES = [1.0, 1e-3, 1e300, 1e-300, 5e-324, 2.0**-1074 * 3, 1e8]


def number_column(rng, n):
    kind = rng.integers(6)
    if kind == 0:
        return np.full(n, rng.normal())  # constant
    if kind == 1:
        return rng.normal(size=n)  # no ties
    if kind == 2:
        return np.round(rng.normal(size=n), 1) + 0.0
    if kind == 3:
        return 1e8 + rng.integers(0, 4, n) * 1e-8  # neighbouring doubles
    return rng.integers(-3, 4, n) * rng.choice(SCALES)


def category_column(rng, n):
    if rng.random() < 0.1:
        return rng.integers(0, n, n).astype(np.float64) * 7  # many, with gaps
    return rng.integers(0, rng.integers(1, 12), n).astype(np.float64)


def random_table(rng):
    """Return X, kinds, labels, classes and weight of a table of up to 30 rows and 4 columns."""
    n, d = rng.integers(1, 31), rng.integers(1, 5)
    kinds = (rng.random(d) < rng.choice([0.0, 0.5, 1.0])).astype(np.uint8)
    X = np.column_stack([category_column(rng, n) if kind else number_column(rng, n) for kind in kinds])
    if rng.random() < 0.3:
        X = X[rng.integers(0, n, n)]  # some rows several times
    if rng.random() < 0.2:
        X[:, -1], kinds[-1] = X[:, 0], kinds[0]  # two columns say the same
    if rng.random() < 0.5:
        X[rng.random(X.shape) < rng.choice([0.1, 0.5, 1.0], p=[0.6, 0.3, 0.1])] = np.nan
    classes = int(rng.choice([1, 2, 3, 5, 12], p=[0.04, 0.4, 0.4, 0.1, 0.06]))
    labels = rng.integers(0, classes, n).astype(np.int32)
    return random_storage(rng, X, kinds), kinds, labels, classes, random_weight(rng, n)


def random_storage(rng, X, kinds):
    """Return X as float64, float32 or uint8, by rows, by columns or every other row of another array."""
    kind = rng.integers(5)
    if kind == 0:
        with np.errstate(over="ignore", under="ignore"):
            single = X.astype(np.float32)
        X = np.where(np.isinf(single), np.float32(3e38), single)
    elif kind == 1 and not np.isnan(X).any():
        X = (np.abs(X) % 200).astype(np.uint8)
    layout = rng.integers(3)
    if layout == 0:
        return np.asfortranarray(X)
    return np.repeat(X, 2, axis=0)[::2] if layout == 1 else np.ascontiguousarray(X)


def random_weight(rng, n):
    kind = rng.integers(4)
    if kind == 0:
        return rng.uniform(0.1, 2.0, n)
    if kind == 1:
        return rng.integers(1, 4, n).astype(np.float64)
    if kind == 2:
        weight = rng.integers(0, 3, n).astype(np.float64)
        weight[rng.integers(n)] = 1.0  # one row at least counts
        return weight
    return None


def random_rules(rng):
    rules = {
        "criterion": str(rng.choice(CRITERIA)),
        "binary": bool(rng.integers(2)),
        "unknown_best": bool(rng.integers(2)),
    }
    limits = {
        "max_depth": int(rng.integers(0, 4)),
        "min_samples_split": int(rng.integers(2, 12)),
        "min_samples_leaf": int(rng.integers(1, 6)),
        "min_leaf_weight": float(rng.uniform(0, 4)),  # no sum of weights is this number but for rounding
        "min_impurity_decrease": float(rng.choice([1e-3, 0.02, 0.05, 0.2])),
    }
    few = rng.choice([0.0, 0.15, 0.5], p=[0.4, 0.4, 0.2])
    return rules | {name: value for name, value in limits.items() if rng.random() < few}


@pytest.mark.parametrize("seed", range(20))
def test_two_thousand_random_tables(seed):
    rng = np.random.default_rng(seed)
    for _ in range(100):
        X, kinds, labels, classes, weight = random_table(rng)
        assert_oracles_tree(X, kinds, labels, classes, weight, **random_rules(rng))


value = st.one_of(
    st.integers(-2, 2).map(float),
    st.floats(allow_infinity=False, width=32),
    st.sampled_from([0.0, -0.0, 5e-324, 1e-323, 1.5e-323, 2e-323, 1e308, 1.7e308, -1.7e308, np.nan]),
    st.sampled_from([1.0, 1.0 + 2**-52, 1.0 + 2**-51]),
)


@st.composite
def tables(draw):
    n, d = draw(st.integers(1, 10)), draw(st.integers(1, 3))
    kinds = draw(st.lists(st.integers(0, 1), min_size=d, max_size=d))
    code = st.one_of(st.integers(0, 4).map(float), st.just(np.nan))
    columns = [draw(st.lists(code if kind else value, min_size=n, max_size=n)) for kind in kinds]
    classes = draw(st.integers(1, 4))
    labels = draw(st.lists(st.integers(0, classes - 1), min_size=n, max_size=n))
    weight = draw(st.none() | st.lists(st.sampled_from([0.0, 0.25, 1.0, 1.0, 3.0]), min_size=n, max_size=n))
    if weight is not None:
        weight[0] = weight[0] or 1.0
    return np.array(columns).T, kinds, labels, classes, None if weight is None else np.array(weight)


rules = st.fixed_dictionaries(
    {"criterion": st.sampled_from(CRITERIA), "binary": st.booleans(), "unknown_best": st.booleans()},
    optional={
        "max_depth": st.integers(0, 3),
        "min_samples_split": st.integers(2, 6),
        "min_samples_leaf": st.integers(1, 4),
        "min_leaf_weight": st.sampled_from([0.25, 0.5, 1.0, 1.1, 3.0]),
        "min_impurity_decrease": st.sampled_from([0.01, 0.05, 0.3]),
    },
)


@settings(max_examples=300)
@given(tables(), rules)
def test_odd_tables(table, rules):
    assert_oracles_tree(*table, **rules)


# -- larger tables -------------------------------------------------------------------------------------


@every_criterion
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("distinct", [3, 40, 10**6])
def test_tables_of_some_hundred_rows(criterion, classes, distinct):
    rng = np.random.default_rng(distinct)
    X = rng.integers(0, distinct, (300, 3)) / 7
    labels = (
        (X[:, 0] * 3 + X[:, 1] + rng.normal(size=300) * distinct / 7).argsort().argsort() * classes // 300
    )
    rules = {"criterion": criterion, "max_depth": 6}
    assert_oracles_tree(X, [0, 0, 0], labels, classes, **rules)
    assert_oracles_tree(X, [0, 0, 0], labels, classes, rng.uniform(0.5, 2, 300), **rules)


def large_columns(rng, n):
    """Return columns on which bins of values go wrong most easily."""
    return {
        "normal": rng.normal(size=(n, 2)),
        "heavy tails": rng.standard_cauchy((n, 2)) ** 3,
        "few values and many": np.column_stack([rng.integers(0, 3, n), rng.random(n)]),
        "mostly one value": np.where(rng.random((n, 2)) < 0.9, 0.0, rng.normal(size=(n, 2))),
        "unknown": np.where(rng.random((n, 2)) < 0.2, np.nan, rng.normal(size=(n, 2))),
        "single precision": rng.normal(size=(n, 2)).astype(np.float32),
        "bytes": rng.integers(0, 256, (n, 2)).astype(np.uint8),
        "categories": rng.integers(0, 9, (n, 2)).astype(np.float64),
    }


@pytest.mark.parametrize("kind", large_columns(np.random.default_rng(0), 1))
@pytest.mark.parametrize("weighted", [False, True])
def test_tables_of_some_thousand_rows(kind, weighted):
    rng = np.random.default_rng(7)
    n = 2000
    X = np.asfortranarray(large_columns(rng, n)[kind])
    known = np.nan_to_num(X.astype(np.float64))
    labels = (known.argsort(axis=0).argsort(axis=0).sum(axis=1) + rng.normal(size=n) * n / 3 > n).astype(int)
    labels += rng.random(n) < 0.2
    kinds = [int(kind == "categories")] * 2
    weight = rng.uniform(0.1, 3.0, n) if weighted else None
    for criterion in ["entropy", "gini", "gain_ratio"]:
        assert_oracles_tree(X, kinds, labels, 3, weight, criterion=criterion, binary=True, max_depth=2)


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("classes", [2, 4])
def test_many_categories(binary, classes):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 25, (200, 3)).astype(np.float64)
    X[rng.random(X.shape) < 0.1] = np.nan
    labels = rng.integers(0, classes, 200)
    for unknown_best in [False, True]:
        rules = {"binary": binary, "unknown_best": unknown_best, "max_depth": 4}
        assert_oracles_tree(X, [1, 1, 0], labels, classes, **rules)


# -- what the specification says in words --------------------------------------------------------------


def test_equal_splits_go_to_the_lowest_column_and_threshold():
    x = np.array([0.0, 1.0, 2.0, 3.0])
    tree = grow(
        np.column_stack([x, x]),
        np.zeros(2, dtype=np.uint8),
        np.array([0, 1, 0, 1], dtype=np.int32),
        2,
        GrowthRules(),
        Budget(),
    )
    assert tree.column[0] == 0
    assert tree.threshold[0] == 0.5  # 2.5 is as good


def test_a_split_without_gain_is_made():
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    labels = np.array([0, 1, 1, 0], dtype=np.int32)
    tree = grow(X, np.zeros(2, dtype=np.uint8), labels, 2, GrowthRules(), Budget())
    assert tree.leaf_count == 4
    np.testing.assert_array_equal(tree.totals[tree.is_leaf].max(axis=1), 1.0)


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("unknown_best", [False, True])
def test_one_column_a_node_is_its_best_split_and_another_seed_asks_for_others(binary, unknown_best):
    rng = np.random.default_rng(1)
    X = rng.integers(0, 6, (80, 5)).astype(np.float64)
    X[rng.random(X.shape) < 0.1] = np.nan
    kinds = np.array([0, 1, 0, 1, 0], dtype=np.uint8)
    labels = rng.integers(0, 3, 80).astype(np.int32)
    choice = {"binary": binary, "unknown_best": unknown_best}
    asked = []
    for seed in range(3):
        tree = grow(X, kinds, labels, 3, GrowthRules(max_columns=1, seed=seed, **choice), Budget())
        columns = [[column] if column >= 0 else range(5) for column in tree.column]
        assert_same_nodes(tree, tree_oracle.grow(X, kinds, labels, 3, columns=columns, **choice))
        asked.append(tree.column.tolist())
        assert set(tree.column) == {-1, 0, 1, 2, 3, 4}
    assert asked[0] != asked[1] != asked[2]


@every_criterion
def test_all_columns_by_name_are_all_columns(criterion):
    rng = np.random.default_rng(2)
    X, labels = rng.normal(size=(60, 3)), rng.integers(0, 2, 60).astype(np.int32)
    kinds = np.zeros(3, dtype=np.uint8)
    tree = grow(X, kinds, labels, 2, GrowthRules(criterion, max_columns=3, seed=5), Budget())
    assert_same_nodes(tree, tree_oracle.grow(X, kinds, labels, 2, criterion=criterion))


# -- the oracle itself ---------------------------------------------------------------------------------


def average_of_children(nodes, node, criterion):
    below = [nodes[child]["totals"] for child in nodes[node]["branches"].values()]
    sizes = [totals.sum() for totals in below]
    return np.average([tree_oracle.impurity(totals, criterion) for totals in below], weights=sizes)


@pytest.mark.parametrize("criterion", ["entropy", "gini"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_no_split_of_scikit_learn_differs_from_the_oracles_but_for_ties(criterion, weighted, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 3)).astype(np.float32).astype(np.float64)
    labels = (X[:, 0] + X[:, 1] ** 2 + rng.normal(size=200) > 1).astype(int) + (X[:, 2] > 1)
    weight = rng.uniform(0.5, 2.0, 200) if weighted else None
    limits = {"max_depth": 6, "min_samples_leaf": 4, "min_samples_split": 9}
    nodes = tree_oracle.grow(X, np.zeros(3), labels, 3, weight, criterion=criterion, **limits)
    theirs = DecisionTreeClassifier(criterion=criterion, **limits).fit(X, labels, weight).tree_
    compared, pairs = 0, [(0, 0)]
    while pairs:
        ours, other = pairs.pop()
        impurity = tree_oracle.impurity(nodes[ours]["totals"], criterion)
        assert theirs.impurity[other] == pytest.approx(impurity, abs=1e-9)
        if nodes[ours]["reason"] == Reason.PURE:
            continue  # theirs may go on: with weights the rounding of its 0 can exceed what it allows for
        assert (nodes[ours]["column"] < 0) == (theirs.feature[other] < 0)
        if nodes[ours]["column"] < 0:
            continue
        compared += 1
        left, right = theirs.children_left[other], theirs.children_right[other]
        parts = theirs.weighted_n_node_samples[[left, right]]
        average = np.average(theirs.impurity[[left, right]], weights=parts)
        assert average == pytest.approx(average_of_children(nodes, ours, criterion), abs=1e-9)
        same_place = theirs.threshold[other] == pytest.approx(nodes[ours]["threshold"], rel=1e-6)
        if theirs.feature[other] == nodes[ours]["column"] and same_place:  # else a tie
            pairs += zip(nodes[ours]["branches"].values(), (left, right), strict=True)
    assert compared >= 8


def test_oracle_on_a_table_worked_out_by_hand():
    # column 0 splits 5 rows of (3, 2) into {0: (2, 0), 1: (1, 1), unknown: (0, 1)}: 2/5 bits on average
    X = np.array([[0.0], [0.0], [1.0], [1.0], [np.nan]])
    labels = np.array([0, 0, 0, 1, 1])
    nodes = tree_oracle.grow(X, [1], labels, 2)
    assert [node["reason"] for node in nodes] == [0, 1, 2, 1]
    assert nodes[0]["branches"] == {0: 1, 1: 2}
    assert nodes[0]["unknown"] == 3
    # joined to category 1 the unknown row leaves 3/5 H(1/3) = 0.551 bits, to category 0 more
    nodes = tree_oracle.grow(X, [1], labels, 2, unknown_best=True)
    assert nodes[0]["unknown"] == nodes[0]["branches"][1] == 2
    assert [node["totals"].tolist() for node in nodes[:3]] == [[3, 2], [2, 0], [1, 2]]
