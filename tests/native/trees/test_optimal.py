"""The search for the best tree against brute force, and that neither threads nor bounds change it."""

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.optimal_trees import search_tree as brute_force
from sixfold._native import core

FLAG = np.zeros(1, dtype=np.int32)
COLUMN, RANK, COST, BOUND, COMPLETE, FRONTIER, HISTORY, UNIT = range(8)


def search(
    ranks,
    labels,
    depth,
    objective="error",
    *,
    kinds=None,
    weight=None,
    leaves=0,
    penalty=0.0,
    seconds=math.inf,
    threads=1,
    cutoff=math.inf,
    memory=1 << 20,
):
    ranks, labels = np.ascontiguousarray(ranks, np.int32), np.asarray(labels, np.int32)
    kinds = np.zeros(len(ranks), np.uint8) if kinds is None else np.asarray(kinds, np.uint8)
    given = ranks, kinds, labels, weight, int(labels.max()) + 1, objective, depth, leaves, penalty
    return core.search_tree(*given, seconds, FLAG, threads, cutoff, memory)


def ranks_of(X):
    return np.array([np.unique(column, return_inverse=True)[1] for column in X.T], np.int32)


def leaf_cost(counts, objective):
    total = counts.sum(axis=-1)
    if objective == "error":
        return total - counts.max(axis=-1)
    return x_ln_x(total) - x_ln_x(counts).sum(axis=-1)


def x_ln_x(x):
    return x * np.log(x, out=np.zeros_like(x, dtype=float), where=x > 0)


def least_cost(ranks, counts, depth, objective, penalty):
    """Return the least cost by trying every threshold; ``counts`` has the weight of each row by class."""
    total = counts.sum(axis=0)
    best = leaf_cost(total, objective) + penalty
    for rank in ranks if depth > 0 else []:
        if depth == 1:
            order = np.argsort(rank, kind="stable")
            ends = np.flatnonzero(np.diff(rank[order]))
            left = counts[order].cumsum(axis=0)[ends]
            sums = leaf_cost(left, objective) + leaf_cost(total - left, objective) + 2 * penalty
            best = min(best, sums.min(initial=np.inf))
            continue
        for t in np.unique(rank)[:-1]:
            left = rank <= t
            sides = [
                least_cost(ranks[:, rows], counts[rows], depth - 1, objective, penalty)
                for rows in (left, ~left)
            ]
            best = min(best, sum(sides))
    return best


def cost_of(found, ranks, kinds, counts, objective, penalty):
    """Return what the nodes of a found tree cost, and how many leaves and levels it has."""
    nodes = iter(zip(found[COLUMN], found[RANK], strict=True))

    def below(rows, depth):
        column, t = next(nodes)
        if column < 0:
            return leaf_cost(counts[rows].sum(axis=0), objective) + penalty, 1, depth
        rank = ranks[column]
        if kinds[column] == 2:
            parts = [rows & (rank == value) for value in np.unique(rank[rows])]
        else:
            known = rank >= kinds[column]
            parts = [rows & known & (rank <= t), rows & known & (rank > t), rows & ~known]
        deeper = [below(part, depth + 1) for part in parts if part.any()]
        assert len(deeper) > 1
        costs, leaves, depths = zip(*deeper, strict=True)
        return sum(costs), sum(leaves), max(depths)

    answer = below(np.ones(len(counts), bool), 0)
    assert next(nodes, None) is None
    return answer


@st.composite
def problems(draw):
    rows, columns, classes = draw(st.integers(1, 12)), draw(st.integers(1, 4)), draw(st.integers(1, 4))
    seed = np.random.default_rng(draw(st.integers(0, 2**32)))
    kinds = seed.integers(0, draw(st.sampled_from([1, 3])), columns)
    ranks = np.array([seed.integers(0, seed.integers(1, rows + 2), rows) for _ in kinds])
    labels = np.append(seed.integers(0, classes, rows - 1), classes - 1)
    weight = draw(st.sampled_from([None, seed.integers(1, 5, rows) / 4, seed.random(rows) + 0.1]))
    limits = {
        "weight": weight,
        "leaves": draw(st.sampled_from([0, 0, 2, 3, 4, 6])),
        "penalty": draw(st.sampled_from([0.0, 0.125, 0.3])),
    }
    return ranks, labels, kinds, draw(st.integers(0, 3)), draw(st.sampled_from(["error", "entropy"])), limits


@settings(max_examples=600)
@given(problems(), st.integers(1, 2))
def test_the_best_tree_of_tiny_tables(problem, threads):
    ranks, labels, kinds, depth, objective, limits = problem
    found = search(ranks, labels, depth, objective, kinds=kinds, threads=threads, **limits)
    weight = limits["weight"]
    exponent = round(-math.log2(found[UNIT]))
    # Sums of rounded weights and their x ln x are rounded in other ways by brute force.
    scale = exponent if exponent > 0 and (weight is None or objective == "error") else None
    ranks, labels = ranks.astype(np.int32), labels.astype(np.int32)
    given = ranks, kinds.astype(np.uint8), labels, weight, int(labels.max()) + 1, objective, depth
    least = brute_force(*given, limits["leaves"], limits["penalty"], scale=scale)[COST]
    assert found[COST] == (least if scale is not None else pytest.approx(least, rel=1e-11, abs=1e-11))
    assert found[COMPLETE]
    assert found[BOUND] == found[COST]
    counts = np.eye(labels.max() + 1)[labels] * (1 if weight is None else weight[:, None])
    cost, leaves, levels = cost_of(found, ranks, kinds, counts, objective, limits["penalty"])
    assert cost == pytest.approx(found[COST], rel=1e-11, abs=1e-11)
    assert levels <= depth
    assert leaves <= (limits["leaves"] or leaves)


@pytest.mark.parametrize("objective", ["error", "entropy"])
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize(("rows", "depth"), [(150, 2), (700, 2), (36, 3)])
@pytest.mark.parametrize("case", ["distinct", "ties", "weights", "penalty"])
def test_the_best_tree_where_bins_hold_many_values(objective, classes, rows, depth, case):
    """Tables large enough that thresholds inside bins have to be looked at."""
    random = np.random.default_rng([rows, depth, classes])
    X = random.normal(size=(rows, 2))
    X = np.round(X * 4) if case == "ties" else X
    z = X[:, 0] * X[:, 1] + 0.3 * random.normal(size=rows)
    labels = np.searchsorted(np.quantile(z, np.arange(1, classes) / classes), z)
    weight = random.integers(1, 4, rows) / 2 if case == "weights" else None
    penalty = 2.5 if case == "penalty" else 0.0
    ranks = ranks_of(X)
    found = search(ranks, labels, depth, objective, weight=weight, penalty=penalty)
    counts = np.eye(classes)[labels] * (1 if weight is None else weight[:, None])
    assert found[COST] == pytest.approx(least_cost(ranks, counts, depth, objective, penalty), rel=1e-11)
    cost, *_ = cost_of(found, ranks, np.zeros(2, int), counts, objective, penalty)
    assert cost == pytest.approx(found[COST], rel=1e-11)


@pytest.mark.parametrize("objective", ["error", "entropy"])
@pytest.mark.parametrize("depth", [2, 3, 4])
def test_two_valued_columns_are_searched_as_others_are(objective, depth):
    """A column that is not needed and has three values keeps the search from counting bits."""
    random = np.random.default_rng(depth)
    bits = random.integers(0, 2, (7, 300))
    labels = (bits[0] & bits[1]) ^ bits[2] ^ (random.random(300) < 0.15)
    fast = search(bits, labels, depth, objective)
    slow = search(np.vstack([bits, np.arange(300) % 3]), labels, depth, objective)
    three = np.vstack([bits, (np.arange(300) % 3 > 0), (np.arange(300) % 3 > 1)])
    assert search(three, labels, depth, objective)[COST] == slow[COST]
    assert slow[COST] <= fast[COST]
    forgetful = search(bits, labels, depth, objective, memory=0)
    assert forgetful[COST] == fast[COST]


def noisy(rows=400, columns=5, classes=2, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, columns))
    z = X[:, 0] * X[:, 1] + X[:, 2] + random.normal(size=rows)
    return ranks_of(X), np.searchsorted(np.quantile(z, np.arange(1, classes) / classes), z)


@pytest.mark.parametrize("objective", ["error", "entropy"])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_number_of_threads_does_not_change_anything(objective, classes):
    ranks, labels = noisy(classes=classes)
    one, two = (search(ranks, labels, 3, objective, threads=threads) for threads in (1, 2))
    for place in (COLUMN, RANK, COST, BOUND):
        np.testing.assert_array_equal(one[place], two[place])
    for mine, other in zip(one[FRONTIER], two[FRONTIER], strict=True):
        np.testing.assert_array_equal(mine, other)


def test_the_frontier_holds_every_question_once_and_bounds_it():
    ranks, labels = noisy(rows=120, columns=3)
    found = search(ranks, labels, 3, "error")
    column, low, high, *_, left, right, unknown = found[FRONTIER]
    for k, rank in enumerate(ranks):
        asked = np.concatenate(
            [np.arange(a, b + 1) for a, b in zip(low[column == k], high[column == k], strict=True)]
        )
        assert sorted(asked.tolist()) == list(range(rank.max()))
    assert (left + right + unknown).min() == found[BOUND]
    counts = np.eye(2)[labels]
    for item in np.random.default_rng(0).choice(column.size, 20, replace=False):
        rank = ranks[column[item]]
        for rows, bound in ((rank <= low[item], left[item]), (rank > high[item], right[item])):
            assert least_cost(ranks[:, rows], counts[rows], 2, "error", 0.0) >= bound


@pytest.mark.parametrize("depth", [3, 4])
def test_a_search_that_is_stopped_has_a_tree_and_a_bound(depth):
    ranks, labels = noisy(rows=3000, columns=8)
    begun = time.perf_counter()
    found = search(ranks, labels, depth, seconds=0.3)
    assert time.perf_counter() - begun < 5  # the clock is looked at
    best = search(ranks, labels, 3)
    assert not found[COMPLETE] or depth == 3
    assert 0 <= found[BOUND] <= found[COST]
    if depth == 3:
        assert found[BOUND] <= best[COST] <= found[COST]
    seconds, cost, bound = found[HISTORY]
    assert (np.diff(seconds) >= 0).all()
    assert (np.diff(cost) <= 0).all()
    assert (np.diff(bound) >= 0).all()
    assert (cost[-1], bound[-1]) == (found[COST], found[BOUND])


def test_only_trees_below_the_cutoff_are_looked_for():
    ranks, labels = noisy(rows=200, columns=3)
    least = search(ranks, labels, 3)[COST]
    assert search(ranks, labels, 3, cutoff=least + 1)[COST] == least
    none = search(ranks, labels, 3, cutoff=least)
    assert none[COLUMN].tolist() == [-1]
    assert none[COMPLETE]
    assert none[BOUND] == least


@pytest.mark.parametrize("seed", [27, *range(11)])
def test_weights_of_many_decades(seed):
    """Their sums are rounded: a part may cost a unit less than its bound, and a tree is what it costs."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(100, 2))
    labels = (X[:, 0] + X[:, 1] * random.normal() + random.normal(size=100) > 0).astype(int)
    weight = 10.0 ** random.uniform(-6, 6, 100)
    found = search(ranks_of(X), labels, 2, "entropy", weight=weight)
    counts = np.eye(2)[labels] * weight[:, None]
    cost, *_ = cost_of(found, ranks_of(X), np.zeros(2, int), counts, "entropy", 0.0)
    assert cost == pytest.approx(found[COST], abs=50 * found[UNIT] + 1e-9 * found[COST])


@pytest.mark.parametrize("kind", [1, 2])
def test_more_leaves_than_a_tree_can_have_are_no_limit(kind):
    random = np.random.default_rng(kind)
    ranks = random.integers(0, 4, (3, 60))
    labels = random.integers(0, 2, 60)
    free = search(ranks, labels, 2, kinds=[kind] * 3)
    for leaves in (16, 10**5):
        found = search(ranks, labels, 2, kinds=[kind] * 3, leaves=leaves)
        for place in (COLUMN, RANK, COST, BOUND):
            np.testing.assert_array_equal(found[place], free[place])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kinds": [3]}, "a kind is 0, 1 or 2"),
        ({"kinds": [0, 0]}, "one entry a column"),
        ({"weight": np.array([1.0, 0.0, 1.0])}, "positive and finite"),
        ({"penalty": -1.0}, "a penalty"),
        ({"objective": "gini"}, "error or entropy"),
        ({"depth": -1}, "may not be negative"),
        ({"ranks": [[0, 1, -1]]}, "ranks must be"),
        ({"cutoff": -1.0}, "a cutoff may not be negative"),
    ],
)
def test_what_cannot_be_searched(change, message):
    given = {"ranks": [[0, 1, 2]], "labels": [0, 1, 0], "depth": 2} | change
    with pytest.raises(ValueError, match=message):
        search(**given)


def test_tables_without_questions():
    assert search(np.zeros((0, 3), np.int32), [0, 1, 1], 3)[COST] == 1
    assert search([[5]], [0], 4, "entropy")[COST] == 0
    assert search([[2, 2, 2]], [0, 1, 1], 3, kinds=[2])[COLUMN].tolist() == [-1]
