"""Searches for the best tree: what is asked of the native loop, and what becomes of its answer."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import optimal_trees
from sixfold.budget import Budget
from sixfold.solvers.trees import growth, optimal
from sixfold.solvers.trees.fitted_tree import Reason
from sixfold.solvers.trees.growth import OBJECTIVES, GrowthRules, TrainingRows
from sixfold.solvers.trees.optimal import SearchRules
from sixfold.solvers.trees.search_columns import BRANCH_EACH, ORDERED, WITH_UNKNOWN
from solvers.trees.searched_tables import best_tree, cost_of, leaf_totals, questions_of, training_rows


@pytest.fixture(autouse=True, scope="module")
def brute_force():
    """Let brute force answer for the native loop."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optimal.core, "search_tree", optimal_trees.search_tree, raising=False)
        yield


def rows_of(X, labels, weight=None):
    X = np.array(X, dtype=float).reshape(len(labels), -1)
    labels = np.array(labels, dtype=np.int32)
    return TrainingRows.of(X, np.zeros(X.shape[1], np.uint8), labels, int(labels.max()) + 1, weight)


def xor(levels, times=1):
    """Return the parity of some yes-or-no columns: no question but the last of a tree gains anything."""
    X = np.array(np.meshgrid(*[[0.0, 1.0]] * levels)).reshape(levels, -1).T.repeat(times, axis=0)
    return rows_of(X, X.sum(axis=1) % 2)


search_rules = st.builds(
    SearchRules,
    objective=st.sampled_from(OBJECTIVES),
    max_depth=st.integers(0, 3),
    max_leaf_nodes=st.sampled_from([None, None, 2, 3]),
    leaf_penalty=st.sampled_from([0.0, 0.05]),
    binary=st.booleans(),
    unknown_best=st.booleans(),
)


# -- the oracle itself ---------------------------------------------------------------------------------


def every_cost(ranks, kinds, labels, depth):
    """Return the errors and leaves of every tree, one by one and nothing kept."""
    costs = [(len(labels) - np.bincount(labels).max(), 1)]
    for r, kind in zip(ranks, kinds, strict=True) if depth > 0 else []:
        for t in range(r.max() + 1):
            side = {ORDERED: r > t, WITH_UNKNOWN: np.where(r > 0, r > t, 2), BRANCH_EACH: r}[int(kind)]
            parts = [side == one for one in np.unique(side)]
            if len(parts) < 2:
                continue
            below = [every_cost(ranks[:, part], kinds, labels[part], depth - 1) for part in parts]
            costs += [tuple(map(sum, zip(*some, strict=True))) for some in product(*below)]
    return list(set(costs))


@pytest.mark.parametrize("seed", range(60))
def test_brute_force_is_the_least_of_all_trees(seed):
    rng = np.random.default_rng(seed)
    n, kinds = 7, rng.integers(0, 3, 3)
    ranks = np.array(
        [np.unique(rng.integers(0, 4, n), return_inverse=True)[1] for _ in kinds], dtype=np.int32
    )
    labels = rng.integers(0, 3, n)
    every = every_cost(ranks, kinds, labels, 2)
    for leaves, penalty in ((0, 0.0), (0, 0.4), (2, 0.0), (3, 0.0), (3, 0.4)):
        found = optimal_trees.search_tree(ranks, kinds, labels, None, 3, "error", 2, leaves, penalty)
        cost, count = min((cost + penalty * n, n) for cost, n in every if not leaves or n <= leaves)
        assert found[2] == pytest.approx(cost)
        assert (found[0] < 0).sum() == count


def test_brute_force_takes_the_first_of_equal_trees():
    same = np.array([[0, 1, 2, 3], [0, 1, 2, 3]])
    column, rank, *_ = optimal_trees.search_tree(same, [0, 0], [0, 1, 0, 1], None, 2, "error", 1, 0, 0.0)
    assert (column.tolist(), rank.tolist()) == ([0, -1, -1], [0, -1, -1])
    column, *_ = optimal_trees.search_tree(same, [0, 0], [0, 0, 0, 1], None, 2, "error", 3, 0, 0.0)
    assert column.tolist() == [0, -1, -1]  # no more leaves than it takes


# -- the best tree -------------------------------------------------------------------------------------


@settings(max_examples=200)
@given(training_rows(), search_rules)
def test_costs_are_averages(rows, rules):
    result = optimal.search(rows, rules, Budget())
    cost = cost_of(leaf_totals(result.tree, rows), rules.objective) / rows.weight_sum
    assert result.objective == pytest.approx(cost + rules.leaf_penalty * result.tree.leaf_count, abs=1e-12)
    assert result.lower_bound == result.objective
    assert result.complete
    assert result.tree.max_depth <= rules.max_depth
    assert result.tree.leaf_count <= (rules.max_leaf_nodes or rows.count)


@settings(max_examples=200)
@given(training_rows(), search_rules)
def test_the_frontier_covers_every_question(rows, rules):
    result = optimal.search(rows, rules, Budget())
    one = result.frontier
    asked = {
        (k, t)
        for k, low, high in zip(one.column, one.low, one.high, strict=True)
        for t in range(low, high + 1)
    }
    every = set(questions_of(result.columns.ranks, result.columns.kinds)) if rules.max_depth > 0 else set()
    assert asked <= every
    if rules.max_leaf_nodes is None:  # a question may have more branches than leaves are allowed
        assert asked == every
    totals = np.bincount(rows.labels, rows.weight, rows.classes)[None]
    leaf = cost_of(totals, rules.objective) / rows.weight_sum + rules.leaf_penalty
    sums = one.left + one.right + one.unknown
    bound = min(leaf, sums.min(initial=np.inf))
    assert bound <= result.objective + 1e-12
    if rules.max_leaf_nodes is None:
        assert bound == pytest.approx(result.objective, abs=1e-12)


def test_two_questions_where_one_gains_nothing():
    rows = xor(2, times=3)
    assert optimal.search(rows, SearchRules("error", 1), Budget()).objective == 0.5
    for objective in OBJECTIVES:
        result = optimal.search(rows, SearchRules(objective, 2), Budget())
        assert result.objective == 0.0
        assert result.tree.column.tolist() == [0, 1, -1, -1, 1, -1, -1]
        assert result.tree.threshold[[0, 1, 4]].tolist() == [0.5] * 3


def test_a_leaf_has_to_be_worth_its_penalty():
    rows = xor(2)
    for penalty, leaves in ((0.16, 4), (0.17, 1)):  # 0.5 in all, for three leaves more
        tree = optimal.search(rows, SearchRules("error", 2, leaf_penalty=penalty), Budget()).tree
        assert tree.leaf_count == leaves


def test_depth_nought_is_a_leaf():
    result = optimal.search(rows_of([1, 2, 3], [0, 1, 1]), SearchRules("error", 0), Budget())
    assert result.tree.node_count == 1
    assert result.objective == pytest.approx(1 / 3)
    assert result.frontier.column.size == 0


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_one_row(objective):
    result = optimal.search(rows_of([1], [0]), SearchRules(objective, 3, leaf_penalty=0.25), Budget())
    assert result.tree.reason.tolist() == [Reason.PURE]
    assert result.objective == 0.25


def test_weights_count_in_any_unit():
    rows = xor(3)
    weight = np.arange(1.0, 9.0)
    rules = SearchRules("entropy", 2, leaf_penalty=0.01)
    results = [
        optimal.search(rows_of(rows.X, rows.labels, weight * unit), rules, Budget())
        for unit in (1.0, 2.0**40)
    ]
    assert results[0].objective == results[1].objective
    np.testing.assert_array_equal(results[0].tree.column, results[1].tree.column)


def answer(monkeypatch, **changes):
    """Let the native loop give another answer; return what it was asked for."""
    asked = []
    names = "column", "rank", "cost", "bound", "complete", "frontier", "history", "unit"

    def search_tree(*given):
        asked.append(given)
        found = dict(zip(names, optimal_trees.search_tree(*given), strict=True))
        return tuple((found | changes).values())

    monkeypatch.setattr(optimal.core, "search_tree", search_tree)
    return asked


def test_what_the_native_loop_is_asked_for(monkeypatch):
    asked = answer(monkeypatch)
    weight = np.array([2.0, 0.0, 2.0, 2.0])
    rows = rows_of([1, 2, 3, 4], [0, 1, 1, 0], weight)
    rules = SearchRules("entropy", 50, 3, 0.125, memory=1000)
    budget = Budget(time_limit=100.0)
    optimal.search(rows, rules, budget, cutoff=0.5)
    [(ranks, kinds, labels, weight, classes, objective, depth, leaves, penalty, *limits)] = asked
    assert (ranks.dtype, kinds.dtype, labels.dtype, weight.dtype) == (
        np.int32,
        np.uint8,
        np.int32,
        np.float64,
    )
    assert (ranks.tolist(), kinds.tolist(), labels.tolist()) == ([[0, 1, 2]], [0], [0, 1, 0])
    assert (classes, objective, depth, leaves) == (2, "entropy", 3, 3)  # no tree of three rows is deeper
    seconds, flag, threads, cutoff, memory = limits
    assert penalty == 0.125 * weight.sum()
    assert 90.0 < seconds <= 100.0
    assert flag is budget.flag
    assert (threads, cutoff, memory) == (0, 0.5 * weight.sum(), 1000)


def test_a_search_that_was_stopped(monkeypatch):
    history = np.array([0.25, 0.5]), np.array([2.0, 1.0]), np.array([0.0, 0.5])
    answer(monkeypatch, complete=False, bound=0.5, cost=1.0, history=history)
    budget = Budget()
    budget.flag[0] = 1
    budget._start -= 100.0
    result = optimal.search(xor(2), SearchRules("error", 2), budget)
    assert not result.complete
    assert budget.stopped_by == "Ctrl-C"
    assert (result.objective, result.lower_bound) == (0.25, 0.125)
    assert [(one.iteration, one.objective, one.gap) for one in result.history] == [
        (1, 0.5, 0.5),
        (2, 0.25, 0.125),
    ]
    assert result.history[0].seconds == pytest.approx(result.history[1].seconds - 0.25)
    assert result.history[0].seconds > 0.25 + 100.0  # since the budget began, not the search


def test_nothing_below_the_cutoff():
    result = optimal.search(xor(2), SearchRules("error", 1), Budget(), cutoff=0.5)
    assert result.tree.node_count == 1
    assert result.complete


# -- a look ahead --------------------------------------------------------------------------------------


@settings(max_examples=100)
@given(training_rows(), search_rules)
def test_a_look_ahead_of_the_whole_depth_is_a_search(rows, rules):
    depth = min(rules.max_depth, optimal.LOOKAHEAD)
    tree = optimal.lookahead(rows, rules, depth, Budget())
    penalty = rules.leaf_penalty * rows.weight_sum
    given = rows, rules.binary, rules.unknown_best, rules.objective, depth
    _, _, cost = best_tree(*given, penalty=penalty)
    assert cost_of(leaf_totals(tree, rows), rules.objective, penalty) == pytest.approx(cost, abs=1e-9)


@settings(max_examples=100)
@given(training_rows(), search_rules, st.sampled_from([None, 3, 4]))
def test_every_question_is_the_first_of_the_best_tree_of_its_node(rows, rules, max_depth):
    tree = optimal.lookahead(rows, rules, max_depth, Budget())
    through = tree.decision_path(rows.X).toarray().T == 1
    penalty = rules.leaf_penalty * rows.weight_sum

    def least(node, depth):
        here = rows.without(~through[node])
        given = rules.binary, rules.unknown_best, rules.objective, depth
        return best_tree(here, *given, penalty=penalty)[2]

    for node in range(tree.node_count):
        levels = min(math.inf if max_depth is None else max_depth - tree.depth[node], optimal.LOOKAHEAD)
        leaf = cost_of(tree.totals[[node]], rules.objective, penalty)
        if tree.is_leaf[node]:
            assert least(node, levels) == pytest.approx(leaf, abs=1e-9)
        else:
            assert least(node, levels) < leaf
            below = sum(least(child, levels - 1) for child in tree.children(node))
            assert below == pytest.approx(least(node, levels), abs=1e-9)


def test_a_look_ahead_sees_what_greedy_growth_does_not():
    rng = np.random.default_rng(0)
    X = np.round(rng.random((14, 3)), 2)
    labels = (X[:, 1] > 0.5) ^ (X[:, 2] > 0.5)
    rows = rows_of(X, labels)
    found = optimal.lookahead(rows, SearchRules("error"), None, Budget())
    assert (found.max_depth, found.leaf_count) == (2, 4)
    assert growth.grow(rows, GrowthRules(), Budget()).leaf_count > 4


def test_a_look_ahead_goes_on_below():
    # Six pairs of neighbours of the same class, in turn.
    rows = rows_of(np.arange(12), np.arange(12) // 2 % 2)
    tree = optimal.lookahead(rows, SearchRules("entropy"), None, Budget())
    assert (tree.reason[tree.is_leaf] == Reason.PURE).all()
    assert tree.leaf_count == 6
    assert tree.max_depth > optimal.LOOKAHEAD
    limited = optimal.lookahead(rows, SearchRules("entropy"), 1, Budget())
    assert limited.max_depth == 1


def test_a_look_ahead_without_time():
    budget = Budget(time_limit=0.0)
    tree = optimal.lookahead(xor(2), SearchRules("error"), None, budget)
    assert tree.reason.tolist() == [Reason.STOPPED]
    assert budget.stopped_by is not None


def test_a_look_ahead_that_is_stopped_keeps_what_it_found(monkeypatch):
    budget = Budget()

    def interrupt(*given):
        budget.flag[0] = 1
        return (*optimal_trees.search_tree(*given)[:4], False, None, None)

    monkeypatch.setattr(optimal.core, "search_tree", interrupt)
    tree = optimal.lookahead(xor(3), SearchRules("entropy", leaf_penalty=-0.01), None, budget)
    assert budget.stopped_by == "Ctrl-C"
    assert tree.max_depth == optimal.LOOKAHEAD
    assert (tree.reason[tree.is_leaf] == Reason.STOPPED).all()


def test_a_look_ahead_at_one_class_or_equal_rows():
    for labels, reason in (([0, 0, 0], Reason.PURE), ([0, 1, 0], Reason.EXHAUSTED)):
        tree = optimal.lookahead(rows_of([1, 1, 1], labels), SearchRules(), None, Budget())
        assert tree.reason.tolist() == [reason]
