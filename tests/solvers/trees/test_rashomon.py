"""The good trees that ask different columns, against brute force over all sets of columns."""

from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import optimal_trees
from sixfold.budget import Budget
from sixfold.solvers.trees.growth import TrainingRows
from sixfold.solvers.trees.optimal import SearchRules, search
from sixfold.solvers.trees.rashomon import good_trees, objective_of
from sixfold.solvers.trees.search_columns import search_columns
from solvers.trees.searched_tables import counting, training_rows

NEAR = 1e-9


def subsets(columns):
    return chain.from_iterable(combinations(range(columns), k) for k in range(columns + 1))


def least_costs(rows, rules):
    """Return the least average cost of the trees that ask some columns alone, for every set of them."""
    _, labels, weight = counting(rows)
    weight = None if rows.weight is None else weight
    found = {}
    for some in subsets(rows.kinds.size):
        without = set(range(rows.kinds.size)) - set(some)
        columns = search_columns(rows, rules.binary, rules.unknown_best, without)
        given = columns.ranks, columns.kinds, labels, weight, rows.classes, rules.objective
        limits = rules.max_depth, rules.max_leaf_nodes or 0, rules.leaf_penalty * rows.weight_sum
        found[frozenset(some)] = optimal_trees.search_tree(*given, *limits)[2] / rows.weight_sum
    return found


def check(rows, rules, epsilon, found):
    costs = least_costs(rows, rules)
    everything = frozenset(range(rows.kinds.size))
    most = costs[everything] + epsilon + NEAR
    assert len({one.asked for one in found.trees}) == len(found.trees)
    objectives = [one.objective for one in found.trees]
    np.testing.assert_array_less(np.array(objectives[:-1]), np.array(objectives[1:]) + NEAR)
    for one in found.trees:
        assert one.objective <= most
        assert one.objective == pytest.approx(costs[everything - one.left_out], abs=NEAR)
        assert one.objective == pytest.approx(
            objective_of(one.tree, rules.objective, rules.leaf_penalty), abs=NEAR
        )
        assert not one.asked & one.left_out
    assert found.required == [j for j in sorted(everything) if costs[everything - {j}] > most]
    if found.complete:
        for some, cost in costs.items():
            if cost <= most:
                assert any(one.asked <= some and one.objective <= cost + NEAR for one in found.trees)
        assert found.required == sorted(frozenset.intersection(*(one.asked for one in found.trees)))


@settings(max_examples=250, deadline=None)
@given(
    training_rows(most_columns=4),
    st.builds(
        SearchRules,
        objective=st.sampled_from(["error", "entropy"]),
        max_depth=st.integers(0, 3),
        max_leaf_nodes=st.sampled_from([None, None, 2, 3]),
        leaf_penalty=st.sampled_from([0.0, 0.03]),
        binary=st.booleans(),
        unknown_best=st.booleans(),
    ),
    st.sampled_from([0.0, 0.05, 0.2, 10.0]),
    st.sampled_from([1, 2, 100]),
    st.booleans(),
)
def test_brute_force(rows, rules, epsilon, limit, known):
    best = search(rows, rules, Budget()).tree if known else None
    found = good_trees(rows, rules, epsilon, limit, Budget(), best, 1e-10)
    assert 1 <= len(found.trees) <= limit
    assert found.complete or len(found.trees) == limit
    check(rows, rules, epsilon, found)


@pytest.mark.parametrize("objective", ["error", "entropy"])
@pytest.mark.parametrize("seed", range(3))
def test_more_columns(objective, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, size=(14, 6)).astype(float)
    labels = ((X[:, 0] + X[:, 1] + rng.integers(0, 2, 14)) > 1).astype(np.int32)
    rows = TrainingRows.of(X, np.zeros(6, np.uint8), labels, 2, None)
    rules = SearchRules(objective=objective, max_depth=2)
    for epsilon in (0.0, 0.08, 0.2):
        found = good_trees(rows, rules, epsilon, 1000, Budget())
        assert found.complete
        check(rows, rules, epsilon, found)


def test_a_column_that_says_the_same_takes_the_place_of_another():
    X = np.repeat([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]], 3, axis=0)
    X[:, 2] = [0, 1, 0, 1, 0, 1]
    rows = TrainingRows.of(X, np.zeros(3, np.uint8), np.repeat([0, 1], 3).astype(np.int32), 2, None)
    found = good_trees(rows, SearchRules(max_depth=1), 0.0, 10, Budget())
    assert [one.asked for one in found.trees] == [{0}, {1}]
    assert found.required == []
    assert found.searches == 3  # of all columns, without the first, without both


def test_leaves_are_not_said_to_be_equal_in_columns_that_were_left_out():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 1.0], [3.0, 1.0]])
    rows = TrainingRows.of(X, np.zeros(2, np.uint8), np.array([0, 1, 1, 1], np.int32), 2, None)
    found = good_trees(rows, SearchRules("entropy", 1), 0.5, 10, Budget())
    other = next(one.tree for one in found.trees if one.asked == {1})
    assert other.reason.tolist() == [0, 3, 1]


def test_no_time():
    rows = TrainingRows.of(np.eye(4), np.zeros(4, np.uint8), np.array([0, 1, 0, 1], np.int32), 2, None)
    found = good_trees(rows, SearchRules(max_depth=2), 0.1, 10, Budget(time_limit=1e-9))
    assert not found.complete
    assert found.trees == []
    assert found.required == []
