"""Search columns ask all that a tree may ask, and a tree of their questions is one like any other."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sixfold.budget import Budget
from sixfold.solvers.trees import growth
from sixfold.solvers.trees.fitted_tree import Reason
from sixfold.solvers.trees.growth import GrowthRules, TrainingRows
from sixfold.solvers.trees.search_columns import (
    BRANCH_EACH,
    ORDERED,
    WITH_UNKNOWN,
    NodeColumns,
    column_reader,
    fitted_tree,
    search_columns,
    threshold_between,
)
from solvers.trees.searched_tables import (
    best_tree,
    cost_of,
    counting,
    leaf_totals,
    questions_of,
    training_rows,
    written_out,
)

NAN = np.nan
objectives = st.sampled_from(["error", "entropy"])


def rows_of(X, labels, kinds=None, weight=None, classes=None):
    X = X if sp.issparse(X) else np.array(X, dtype=float).reshape(len(labels), -1)
    kinds = np.zeros(X.shape[1]) if kinds is None else kinds
    labels = np.array(labels, dtype=np.int32)
    classes = int(labels.max()) + 1 if classes is None else classes
    return TrainingRows.of(X, np.array(kinds, np.uint8), labels, classes, weight)


# -- a tree that was found is fitted ---------------------------------------------------------------------


@settings(max_examples=300)
@given(
    training_rows(), st.booleans(), st.booleans(), objectives, st.integers(0, 3), st.sampled_from([0.0, 0.3])
)
def test_rows_end_where_the_search_has_them(rows, binary, unknown_best, objective, depth, penalty):
    columns, tree, cost = best_tree(rows, binary, unknown_best, objective, depth, penalty=penalty)
    assert columns.all_groupings
    assert cost_of(leaf_totals(tree, rows), objective, penalty) == pytest.approx(cost, abs=1e-9)
    assert_sound(tree, rows)
    assert tree.max_depth <= depth


def assert_sound(tree, rows):
    """Check that the arrays say what is so of the rows."""
    chosen, labels, weight = counting(rows)
    through = tree.decision_path(rows.X).toarray()[chosen]
    assert tree.is_leaf[tree.apply(rows.X)[chosen]].all()
    np.testing.assert_array_equal(tree.rows, through.sum(axis=0))
    totals = [[weight[(labels == c) & (on == 1)].sum() for c in range(rows.classes)] for on in through.T]
    np.testing.assert_array_equal(tree.totals, totals)
    assert tree.first[0] == 0
    assert tree.first[-1] == tree.code.size == tree.child.size
    X = written_out(rows)[chosen]
    for node, on in enumerate(through.T == 1):
        codes = tree.code[tree.first[node] : tree.first[node + 1]]
        assert (np.diff(codes) > 0).all()
        assert all(tree.parent[child] == node for child in tree.children(node))
        assert tree.reason[node] == reason_of(tree.is_leaf[node], X[on], labels[on])
    assert tree.children(0)[:1] == [1] * (tree.node_count > 1)
    assert (tree.last[tree.parent[1:]] >= np.arange(1, tree.node_count)).all()  # depth first


def reason_of(is_leaf, X, labels):
    if not is_leaf:
        return Reason.SPLIT
    if len(set(labels.tolist())) == 1:
        return Reason.PURE
    same = (X[0] == X) | (np.isnan(X) & np.isnan(X[0]))
    return Reason.EXHAUSTED if same.all() else Reason.LIMIT


@settings(max_examples=100)
@given(training_rows(), st.booleans(), st.booleans(), objectives, st.integers(2, 4))
def test_limited_leaves(rows, binary, unknown_best, objective, leaves):
    _, tree, cost = best_tree(rows, binary, unknown_best, objective, 3, leaves)
    assert tree.leaf_count <= leaves
    assert cost_of(leaf_totals(tree, rows), objective) == pytest.approx(cost, abs=1e-9)


@settings(max_examples=100)
@given(training_rows(), st.booleans(), st.booleans(), objectives)
def test_whole_numbers_are_as_good_as_floats(rows, binary, unknown_best, objective):
    _, _, whole = best_tree(rows, binary, unknown_best, objective, 2, penalty=0.125, scale=30)
    _, _, cost = best_tree(rows, binary, unknown_best, objective, 2, penalty=0.125)
    assert whole == pytest.approx(cost, abs=1e-6)
    assert whole * 2.0**30 == round(whole * 2.0**30)


# -- what a grown tree asks can be asked -----------------------------------------------------------------


@settings(max_examples=400)
@given(training_rows(12), st.booleans(), st.booleans(), st.sampled_from(["entropy", "gini", "homogeneous"]))
def test_a_grown_tree_is_the_same_out_of_its_questions(rows, binary, unknown_best, criterion):
    rules = GrowthRules(criterion, binary and not sp.issparse(rows.X), unknown_best)
    grown = growth.grow(rows, rules, Budget())
    columns = search_columns(rows, rules.binary, unknown_best)
    column, rank = asked_by(grown, rows, columns)
    tree = fitted_tree(columns, column, rank, rows, criterion)
    assert tree.criterion == grown.criterion
    for name in (
        "kinds",
        "column",
        "threshold",
        "first",
        "code",
        "child",
        "unknown",
        "reason",
        "rows",
        "totals",
    ):
        ours, theirs = getattr(tree, name), getattr(grown, name)
        np.testing.assert_array_equal(ours, theirs, err_msg=name)
        assert ours.dtype == theirs.dtype, name


def asked_by(tree, rows, columns):
    """Return the search column and t of each node of a tree, in the order of the search."""
    through = tree.decision_path(rows.X).toarray()[counting(rows)[0]]
    column, rank, waiting = [], [], [0]
    while waiting:
        node = waiting.pop()
        if tree.is_leaf[node]:
            column.append(-1)
            rank.append(-1)
            continue
        child_of = {tuple(np.flatnonzero(through[:, child])): child for child in tree.children(node)}
        asked, t, parts = same_question(
            tree.column[node], np.flatnonzero(through[:, node]), child_of, columns
        )
        column.append(asked)
        rank.append(t)
        waiting += [child_of[part] for part in reversed(parts)]
    return column, rank


def same_question(source, rows, child_of, columns):
    for column, meaning in enumerate(columns.meaning):
        for t in range(columns.ranks[column].max() + 1) if meaning.source == source else []:
            parts = [tuple(part) for part in columns.parts(column, t, rows)]
            if set(parts) == set(child_of):
                return column, t, parts
    raise AssertionError("no search column asks this")


@settings(max_examples=100)
@given(training_rows(), st.booleans(), st.integers(0, 3))
def test_no_grown_tree_is_better(rows, unknown_best, depth):
    grown = growth.grow(rows, GrowthRules(unknown_best=unknown_best, max_depth=depth), Budget())
    for objective in ("error", "entropy"):
        _, _, cost = best_tree(rows, False, unknown_best, objective, depth)
        assert cost <= cost_of(leaf_totals(grown, rows), objective) + 1e-9


# -- what the columns are ----------------------------------------------------------------------------------


@settings(max_examples=200)
@given(training_rows(12), st.booleans(), st.booleans())
def test_ranks_mean_what_they_say(rows, binary, unknown_best):
    columns = search_columns(rows, binary, unknown_best)
    assert columns.ranks.shape == (len(columns.kinds), rows.count) == (len(columns.meaning), rows.count)
    assert columns.ranks.dtype == np.int32
    assert columns.ranks.flags.c_contiguous
    read = column_reader(rows)
    for ranks, kind, meaning in zip(columns.ranks, columns.kinds, columns.meaning, strict=True):
        x = read(meaning.source)
        np.testing.assert_array_equal(x, written_out(rows)[counting(rows)[0], meaning.source])
        np.testing.assert_array_equal(ranks, meaning.ranks_of(x))
        np.testing.assert_array_equal(np.unique(ranks), np.arange(ranks.max() + 1))  # no gaps
        assert ranks.max() > 0
        assert kind != WITH_UNKNOWN or meaning.unknown == 0
        assert (meaning.unknown >= 0) == np.isnan(x).any()


def described(columns):
    return [(int(kind), ranks.tolist()) for kind, ranks in zip(columns.kinds, columns.ranks, strict=True)]


@pytest.mark.parametrize(
    ("x", "kind", "binary", "unknown_best", "expected"),
    [
        pytest.param([3, 1, 3, 2], 0, False, False, [(ORDERED, [2, 0, 2, 1])], id="numbers"),
        pytest.param([3, 1, NAN, 3], 0, False, False, [(WITH_UNKNOWN, [2, 1, 0, 2])], id="unknown branch"),
        pytest.param(
            [3, 1, NAN, 3],
            0,
            False,
            True,
            [(ORDERED, [2, 1, 0, 2]), (ORDERED, [1, 0, 2, 1])],
            id="unknown joins",
        ),
        pytest.param([5, NAN, 5], 0, False, True, [(ORDERED, [1, 0, 1])], id="known or unknown"),
        pytest.param([5, NAN, 5], 0, False, False, [(WITH_UNKNOWN, [1, 0, 1])], id="known, unknown branch"),
        pytest.param([4, 4, 4], 0, False, False, [], id="constant"),
        pytest.param([NAN, NAN], 0, False, True, [], id="all unknown"),
        pytest.param([NAN, NAN], 1, True, False, [], id="all unknown categories"),
        pytest.param([7, 0, 3, 0], 1, False, False, [(BRANCH_EACH, [2, 0, 1, 0])], id="a branch each"),
        pytest.param([7, 0, 7], 1, False, False, [(ORDERED, [1, 0, 1])], id="two branches"),
        pytest.param([7, NAN, 3], 1, False, False, [(BRANCH_EACH, [1, 2, 0])], id="unknown is one more"),
        pytest.param(
            [7, NAN, 3],
            1,
            False,
            True,
            [(ORDERED, [1, 0, 0]), (ORDERED, [1, 1, 0]), (ORDERED, [0, 1, 0])],
            id="unknown joins a branch",
        ),
        pytest.param(
            [0, 1, 2],
            1,
            True,
            False,
            [(ORDERED, [0, 1, 0]), (ORDERED, [0, 0, 1]), (ORDERED, [0, 1, 1])],
            id="groups",
        ),
        pytest.param([4, NAN, 9], 1, True, False, [(WITH_UNKNOWN, [1, 0, 2])], id="groups, unknown branch"),
        pytest.param([4, NAN, 4], 1, True, False, [(WITH_UNKNOWN, [1, 0, 1])], id="one group"),
        pytest.param(
            [4, NAN, 9],
            1,
            True,
            True,
            [(ORDERED, [0, 0, 1]), (ORDERED, [0, 1, 0]), (ORDERED, [0, 1, 1])],
            id="groups, unknown joins",
        ),
    ],
)
def test_columns_of_each_kind(x, kind, binary, unknown_best, expected):
    rows = rows_of(x, np.arange(len(x)) % 2, [kind])
    assert described(search_columns(rows, binary, unknown_best)) == expected


def test_columns_that_ask_nothing_new_are_left_out():
    x = np.array([3.0, 1.0, 2.0, 2.0])
    rows = rows_of(
        np.column_stack([x, 10 * x, -x, x**2, x == 1, x, x == 1]), [0, 1, 0, 1], [0, 0, 0, 0, 0, 1, 1]
    )
    columns = search_columns(rows, False, False)
    assert [(one.source, int(kind)) for one, kind in zip(columns.meaning, columns.kinds, strict=True)] == [
        (0, ORDERED),
        (4, ORDERED),
        (5, BRANCH_EACH),
    ]


def test_unknown_has_its_place_when_columns_are_compared():
    x = np.array([[NAN, 1, 2, 1], [2, 1, NAN, 1], [NAN, 2, 1, 2]]).T
    columns = search_columns(rows_of(x, [0, 1, 0, 1]), False, False)
    assert [one.source for one in columns.meaning] == [0, 1]


@pytest.mark.parametrize("values", range(2, 9))
def test_all_groupings_of_few_values(values):
    columns = search_columns(rows_of(np.arange(values), np.zeros(values), [1], classes=2), True, False)
    assert len(columns.kinds) == 2 ** (values - 1) - 1
    assert columns.all_groupings


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("unknown_best", [False, True])
def test_some_groupings_of_many_values(classes, unknown_best):
    rng = np.random.default_rng(classes)
    x, labels = np.tile(np.arange(9.0), 12), rng.integers(0, classes, 108)
    x[::10] = NAN
    rows = rows_of(x, labels, [1], rng.uniform(0.5, 2.0, 108))
    columns = search_columns(rows, True, unknown_best)
    assert not columns.all_groupings
    values = np.where(np.isnan(x), 9, x)
    groups = {frozenset(map(frozenset, groups_of(columns, k, values))) for k in range(len(columns.kinds))}
    assert len(groups) == len(columns.kinds)  # none twice
    every = frozenset(range(10 if unknown_best else 9))
    assert {frozenset([frozenset([one]), every - {one}]) for one in every} <= groups
    for wanted in range(classes):
        share = {
            one: rows.weight[(values == one) & (labels == wanted)].sum() / rows.weight[values == one].sum()
            for one in every
        }
        order = sorted(every, key=share.get)
        for size in range(1, len(order)):
            assert frozenset([frozenset(order[:size]), frozenset(order[size:])]) in groups


def groups_of(columns, k, values):
    ranks = columns.ranks[k]
    kinds = [1, 2] if columns.kinds[k] == WITH_UNKNOWN else [0, 1]
    return [set(values[ranks == rank].astype(int).tolist()) for rank in kinds]


def test_eight_values_and_unknown_are_nine_where_it_joins():
    rows = rows_of([*range(8), NAN], np.zeros(9), [1], classes=2)
    assert search_columns(rows, True, False).all_groupings
    assert not search_columns(rows, True, True).all_groupings


def test_rows_that_do_not_count_have_no_ranks():
    rows = rows_of([5, 1, NAN, 3], [0, 1, 1, 0], weight=np.array([1.0, 2.0, 0.0, 1.0]))
    columns = search_columns(rows, False, False)
    assert described(columns) == [(ORDERED, [2, 0, 1])]


def test_sparse_columns_are_those_of_the_table_written_out():
    rng = np.random.default_rng(1)
    X = rng.integers(-2, 3, (40, 6)) * (rng.random((40, 6)) < 0.4)
    X = np.where(rng.random((40, 6)) < 0.05, NAN, X)
    labels = rng.integers(0, 2, 40)
    twice = sp.csr_array(X)
    stored = sp.csr_array(
        (np.repeat(twice.data / 2, 2), np.repeat(twice.indices, 2), twice.indptr * 2), twice.shape
    )  # every value is a sum of two halves
    for unknown_best in (False, True):
        dense = search_columns(rows_of(X, labels), False, unknown_best)
        for table in (twice, stored):
            assert described(search_columns(rows_of(table, labels), False, unknown_best)) == described(dense)


# -- the tree ------------------------------------------------------------------------------------------------


def ends(tree, X):
    return tree.apply(np.array(X, dtype=float).reshape(len(X), -1)).tolist()


def test_thresholds_lie_between_values_of_the_node():
    # The value 2 goes left at the root, so that below it on the right 1 and 9 are neighbours.
    rows = rows_of([[0, 2], [0, 2], [1, 1], [1, 9]], [0, 0, 1, 2])
    columns = search_columns(rows, False, False)
    tree = fitted_tree(columns, [0, -1, 1, -1, -1], [0, -1, 0, -1, -1], rows)
    assert tree.threshold.tolist() == [0.5, -2.0, 5.0, -2.0, -2.0]
    assert tree.column.tolist() == [0, -1, 1, -1, -1]
    assert tree.reason.tolist() == [Reason.SPLIT, Reason.PURE, Reason.SPLIT, Reason.PURE, Reason.PURE]
    assert ends(tree, [[NAN, 0], [1, NAN], [0.5, 0], [0.6, 5.1]]) == [0, 2, 1, 4]


def test_values_that_a_node_has_not_met_end_there():
    rows = rows_of([0, 1, 4, 4], [0, 1, 2, 2], [1])
    columns = search_columns(rows, False, False)
    tree = fitted_tree(columns, [0, -1, -1, -1], [0, -1, -1, -1], rows)
    assert tree.branches(0) == {0: 1, 1: 2, 4: 3}
    assert ends(tree, [0, 1, 4, 2, 99, -1, 0.5, NAN]) == [1, 2, 3, 0, 0, 0, 0, 0]


def test_known_comes_before_unknown():
    rows = rows_of([NAN, 1, 2, NAN], [0, 1, 1, 0])
    for unknown_best, t in ((True, 0), (False, 2)):
        columns = search_columns(rows, False, unknown_best)
        tree = fitted_tree(columns, [0, -1, -1], [t, -1, -1], rows)
        assert tree.threshold[0] == np.inf
        assert tree.branches(0) == ({0: 1, 1: 2} if unknown_best else {0: 1})
        assert tree.unknown[0] == 2
        assert tree.totals.tolist() == [[2, 2], [0, 2], [2, 0]]


def test_unknown_has_the_last_branch():
    rows = rows_of([NAN, 1, 2, NAN], [0, 1, 2, 0])
    tree = fitted_tree(search_columns(rows, False, False), [0, -1, -1, -1], [1, -1, -1, -1], rows)
    assert tree.threshold[0] == 1.5
    assert tree.children(0) == [1, 2, 3]
    assert ends(tree, [1.5, 1.6, NAN]) == [1, 2, 3]


def test_unknown_counts_as_a_category():
    rows = rows_of([0, 1, 2, NAN], [0, 1, 2, 1], [1])
    columns = search_columns(rows, False, True)
    tree = fitted_tree(columns, [1, -1, -1, -1], [0, -1, -1, -1], rows)
    assert tree.branches(0) == {0: 1, 1: 2, 2: 3}
    assert tree.unknown[0] == 2


def test_leaves_that_the_budget_left_unsplit():
    rows = rows_of([0, 0, 1, 2, 3, 3], [0, 1, 0, 1, 1, 1])
    columns = search_columns(rows, False, False)
    tree = fitted_tree(columns, [0, 0, -1, -1, -1], [2, 0, -1, -1, -1], rows, stopped=[True] * 5)
    reasons = [Reason.SPLIT, Reason.SPLIT, Reason.EXHAUSTED, Reason.STOPPED, Reason.PURE]
    assert tree.reason.tolist() == reasons


def test_questions_without_a_node_for_each_child_are_refused():
    rows = rows_of([0, 1, 2], [0, 1, 0])
    columns = search_columns(rows, False, False)
    with pytest.raises(ValueError, match="2 nodes were given, but 1 children have none"):
        fitted_tree(columns, [0, -1], [0, -1], rows)
    with pytest.raises(ValueError, match="4 nodes were given, but all children have one after 3"):
        fitted_tree(columns, [0, -1, -1, -1], [0, -1, -1, -1], rows)


def test_many_categories():
    count = 5000
    rows = rows_of(np.arange(count)[::-1], np.arange(count) % 2, [1])
    columns = search_columns(rows, False, False)
    tree = fitted_tree(columns, [0] + [-1] * count, [0] + [-1] * count, rows)
    assert tree.apply(rows.X).tolist() == list(range(count, 0, -1))
    assert (tree.reason[1:] == Reason.PURE).all()


@given(*[st.floats(allow_nan=False, allow_infinity=False)] * 2)
def test_thresholds_separate(a, b):
    low, high = sorted((a, b))
    if low < high:
        assert low <= threshold_between(low, high) < high


# -- the columns of a node -----------------------------------------------------------------------------------


@settings(max_examples=200)
@given(training_rows(12), st.booleans(), st.booleans(), st.data())
def test_a_node_asks_the_same(rows, binary, unknown_best, data):
    columns = search_columns(rows, binary, unknown_best)
    chosen = np.flatnonzero(data.draw(st.lists(st.booleans(), min_size=rows.count, max_size=rows.count)))
    if not chosen.size:
        return
    node = NodeColumns.of(columns, chosen)
    assert set(node.column) == {
        k for k, ranks in enumerate(columns.ranks) if (ranks[chosen] != ranks[chosen[0]]).any()
    }
    for k, t in questions_of(node.ranks, node.kinds):
        ranks = node.ranks[k]
        sides = {ORDERED: ranks > t, WITH_UNKNOWN: np.where(ranks > 0, ranks > t, 2), BRANCH_EACH: ranks}
        side = sides[int(node.kinds[k])]
        parts = [chosen[side == one].tolist() for one in np.unique(side)]
        assert len(parts) > 1
        [question] = node.questions([k], [t])
        assert [part.tolist() for part in columns.parts(*question, chosen)] == parts
