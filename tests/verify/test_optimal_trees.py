"""What an optimal tree certifies is confirmed by a second search, and every false figure is found out.

The trees and frontiers of these tests come from the plainest search there is: all trees are tried.
"""

import dataclasses
import functools
import math
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sixfold.certificate import Certificate
from sixfold.errors import CertificateError
from sixfold.verify import tree_frontier
from sixfold.verify.optimal_trees import OptimalTreeClaim, recompute
from sixfold.verify.tree_frontier import Frontier
from sixfold.verify.tree_search import APART, EACH, ORDERED, TreeSearch, groupings, ranked_columns

# -- all trees of a table ------------------------------------------------------------------------------------


def search_columns(X, kinds, binary, unknown_best):
    """Return kind and meaning of the columns of ranks that the rules allow."""
    for source, is_category in enumerate(kinds):
        x = X[:, source]
        values, lost = np.unique(x[~np.isnan(x)]), bool(np.isnan(x).any())
        order, count = np.arange(values.size), values.size
        if not count:
            continue
        if not is_category and not lost:
            found = [(ORDERED, order, -1)]
        elif not is_category:
            found = [(ORDERED, order + 1, 0), (ORDERED, order, count)]
            found = found if unknown_best else [(APART, order + 1, 0)]
        elif not binary:
            found = [(EACH, order, count if lost else -1)]
            if lost and unknown_best:
                found = [(EACH, order, k) for k in range(count)] + [(ORDERED, 0 * order, 1)]
        else:
            joined = count + (lost and unknown_best)
            groups = [
                np.isin(np.arange(joined), some).astype(int)
                for size in range(1, joined)
                for some in combinations(range(1, joined), size)
            ]
            if lost and unknown_best:
                found = [(ORDERED, group[:-1], group[-1]) for group in groups]
            elif lost:
                found = [(APART, group + 1, 0) for group in groups] or [(APART, order + 1, 0)]
            else:
                found = [(ORDERED, group, -1) for group in groups]
        for kind, rank, unknown in found:
            yield kind, SimpleNamespace(source=source, values=values, rank=rank, unknown=unknown)


class AllTrees:
    """The best trees of parts of a table, found by trying all."""

    def __init__(self, X, kinds, labels, weight, objective, penalty, binary, unknown_best):
        self.X, self.kinds, self.labels, self.weight = X, kinds, labels, weight
        self.objective, self.penalty = objective, penalty
        self.classes = int(labels.max()) + 1
        self.columns, met = [], set()
        for kind, meaning in search_columns(X, kinds, binary, unknown_best):
            x = X[:, meaning.source]
            rank = dict(zip(meaning.values.tolist(), np.asarray(meaning.rank).tolist(), strict=True))
            ranks = np.array([meaning.unknown if np.isnan(one) else rank[one] for one in x])
            if ranks.min() < ranks.max() and (kind, *ranks) not in met:
                met.add((kind, *ranks))
                self.columns.append((kind, ranks, meaning))
        self.best = functools.cache(self._best)

    def leaf(self, rows):
        totals = np.bincount(self.labels[list(rows)], self.weight[list(rows)], self.classes)
        if self.objective == "error":
            return float(totals.sum() - totals.max())
        return sum(float(w * math.log(totals.sum() / w)) for w in totals if w > 0)

    def parts(self, rows, number, t):
        kind, ranks, _ = self.columns[number]
        if kind == EACH:
            side = {row: ranks[row] for row in rows}
        else:
            side = {row: 2 if kind == APART and ranks[row] == 0 else ranks[row] > t for row in rows}
        return [
            tuple(row for row in rows if side[row] == one) for one in sorted(set(map(int, side.values())))
        ]

    def questions(self, number):
        kind, ranks, _ = self.columns[number]
        return range(1) if kind == EACH else range(int(kind == APART), int(ranks.max()) + (kind == APART))

    def _best(self, rows, depth, leaves):
        """Return the least cost and the tree: None or (search column, t, subtrees)."""
        if not rows:
            return 0.0, None
        found = self.leaf(rows) + self.penalty, None
        for number in range(len(self.columns)) if depth and leaves > 1 else ():
            for t in self.questions(number):
                parts = self.parts(rows, number, t)
                if 2 <= len(parts) <= leaves:
                    cost, trees = self.shared(parts, depth - 1, leaves)
                    if cost < found[0] - 1e-12:
                        found = cost, (number, t, trees)
        return found

    def shared(self, parts, depth, leaves):
        if len(parts) == 1:
            cost, tree = self.best(parts[0], depth, leaves)
            return cost, [tree]
        found = math.inf, []
        for some in [leaves] if math.isinf(leaves) else range(1, leaves - len(parts) + 2):
            cost, tree = self.best(parts[0], depth, some)
            rest, others = self.shared(parts[1:], depth, leaves if math.isinf(leaves) else leaves - some)
            if cost + rest < found[0]:
                found = cost + rest, [tree, *others]
        return found

    def arrays(self, tree):
        """Return a tree as the arrays of a fitted one."""
        flat = SimpleNamespace(
            kinds=self.kinds, column=[], threshold=[], first=[0], unknown=[], rows=[], totals=[]
        )
        branches = {}

        def add(rows, tree):
            node = len(flat.column)
            flat.rows.append(len(rows))
            flat.totals.append(np.bincount(self.labels[list(rows)], self.weight[list(rows)], self.classes))
            flat.column.append(-1 if tree is None else self.columns[tree[0]][2].source)
            flat.threshold.append(-2.0)
            flat.unknown.append(-1)
            branches[node] = {}
            if tree is None:
                return node
            x, is_category = self.X[:, flat.column[node]], self.kinds[flat.column[node]]
            pairs = list(zip(self.parts(rows, *tree[:2]), tree[2], strict=True))
            pairs.sort(key=lambda pair: np.nanmin([*x[list(pair[0])], np.inf]))  # by the lowest value
            known = [[x[row] for row in part if not np.isnan(x[row])] for part, _ in pairs]
            sides = [values for values in known if values]
            if not is_category:
                flat.threshold[node] = max(sides[0]) if len(sides) > 1 else np.inf
            for part, below in pairs:
                child = add(part, below)
                for row in part:
                    if np.isnan(x[row]):
                        flat.unknown[node] = child
                    else:
                        code = x[row] if is_category else x[row] > flat.threshold[node]
                        branches[node][int(code)] = child
            return node

        add(tuple(range(len(self.labels))), tree)
        pairs = [sorted(branches[node].items()) for node in range(len(flat.column))]
        flat.first = np.cumsum([0, *map(len, pairs)])
        joined = np.array([pair for some in pairs for pair in some], dtype=np.int32).reshape(-1, 2)
        flat.code, flat.child = joined[:, 0], joined[:, 1]
        for name in ("column", "threshold", "unknown", "rows", "totals"):
            setattr(flat, name, np.array(getattr(flat, name)))
        return flat

    def shares(self, kind, leaves):
        """Return how many leaves the left part has, and that of unknown values."""
        if math.isinf(leaves):
            return [(0, 0)]
        if kind == ORDERED:
            return [(left, 0) for left in range(1, leaves)]
        return [(left, own) for own in range(1, leaves) for left in range(1, leaves - own + 1)]

    def frontier(self, random, depth, leaves):
        """Return items that cover everything: the questions of a column, or some of them in a row."""
        items = []
        rows = range(len(self.labels))
        for number, (kind, ranks, _) in enumerate(self.columns):
            if kind == EACH:
                parts = self.parts(tuple(rows), number, 0)
                cost = self.shared(parts, depth - 1, leaves)[0] if len(parts) <= leaves else 0.0
                items.append((number, 0, 0, 0, 0, cost, 0.0, 0.0))
                continue
            asked = list(self.questions(number))
            for of_left, of_unknown in self.shares(kind, leaves):
                ends = sorted({*random.choice(asked, random.integers(1, 4)).tolist(), *asked[-2:]})
                start = asked[0] - (random.random() < 0.5)  # before the first question there are no rows
                for low, high in zip([start, *(end + 1 for end in ends)], ends, strict=False):
                    left = tuple(row for row in rows if (kind == APART) <= ranks[row] <= low)
                    right = tuple(row for row in rows if ranks[row] > high)
                    unknown = tuple(row for row in rows if kind == APART and ranks[row] == 0)
                    of_right = leaves - of_left - of_unknown if of_left else leaves
                    if right and of_right < 1:
                        continue  # all leaves are those of the other two
                    items.append(
                        (
                            number, low, high, of_left, of_unknown,
                            self.best(left, depth - 1, of_left or leaves)[0] if left else self.penalty,
                            self.best(right, depth - 1, of_right)[0],
                            self.best(unknown, depth - 1, of_unknown or leaves)[0],
                        )
                    )  # fmt: skip
        kinds = np.array([kind for kind, _, _ in self.columns])
        arrays = [np.array(one) for one in zip(*items, strict=True)] if items else [np.zeros(0, int)] * 8
        return Frontier(tuple(meaning for _, _, meaning in self.columns), kinds, *arrays)


def make_claim(random, X, kinds, labels, weight, objective, depth, leaves, penalty, binary, unknown_best):
    """Return a claim that is true, and its certificate."""
    whole = float(weight.sum())
    trees = AllTrees(X, kinds, labels, weight, objective, penalty * whole, binary, unknown_best)
    rows, limit = tuple(range(len(labels))), leaves or math.inf
    cost, tree = trees.best(rows, depth, limit)
    frontier = (
        trees.frontier(random, depth, limit) if depth and limit > 1 else Frontier((), *[np.zeros(0, int)] * 9)
    )
    sums = frontier.left + frontier.right + frontier.unknown
    bound = min([cost, trees.leaf(rows) + trees.penalty, *sums.tolist()])
    claim = OptimalTreeClaim(
        trees.arrays(tree),
        X,
        kinds,
        labels,
        weight,
        objective,
        depth,
        leaves,
        penalty,
        binary,
        unknown_best,
        frontier,
    )
    scale = trees.leaf(rows) / whole + penalty
    return claim, Certificate("optimal tree", cost / whole, (cost - bound) / whole, scale, 0.0)


def confirm(claim, certificate):
    return recompute(claim, certificate).compare(certificate)


def random_claim(
    seed, objective="error", depth=2, leaves=None, penalty=0.0, binary=False, unknown_best=False, rows=9
):
    random = np.random.default_rng(seed)
    count = int(random.integers(2, rows + 1))
    kinds = random.permutation([0, 1, 0])[: random.integers(1, 4)].astype(np.uint8)
    X = random.integers(0, 4, (count, kinds.size)).astype(float)
    X[random.random(X.shape) < random.choice([0.0, 0.2])] = np.nan
    labels = random.integers(0, random.integers(2, 4), count)
    weight = random.choice([0.5, 1.0, 2.25, 0.1], count) if random.random() < 0.5 else np.ones(count)
    return make_claim(
        random, X, kinds, labels, weight, objective, depth, leaves, penalty, binary, unknown_best
    )


@settings(max_examples=300, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    objective=st.sampled_from(["error", "entropy"]),
    depth=st.integers(0, 3),
    leaves=st.sampled_from([None, None, 1, 2, 3, 4, 5]),
    penalty=st.sampled_from([0.0, 0.01, 0.2]),
    binary=st.booleans(),
    unknown_best=st.booleans(),
)
def test_every_true_claim_is_confirmed(seed, objective, depth, leaves, penalty, binary, unknown_best):
    claim, certificate = random_claim(seed, objective, depth, leaves, penalty, binary, unknown_best)
    found = confirm(claim, certificate)
    assert found.objective == pytest.approx(certificate.objective, abs=1e-12)
    assert found.gap <= certificate.gap + 1e-11
    *_, note = found.notes
    if len(claim.frontier.column):
        done, of, total, *_ = note.split()
        assert (done, of) == (total, "of")
    else:
        assert note in ("the lower bound was recomputed", "the lower bound holds for every tree")


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    objective=st.sampled_from(["error", "entropy"]),
    depth=st.integers(0, 3),
    leaves=st.sampled_from([math.inf, 2, 3, 4, 5, 6]),
    penalty=st.sampled_from([0.0, 0.3]),
    binary=st.booleans(),
    unknown_best=st.booleans(),
    cap=st.sampled_from([math.inf, 0.9, 1.0, 1.1]),
)
def test_the_search_finds_what_trying_all_trees_finds(
    seed, objective, depth, leaves, penalty, binary, unknown_best, cap
):
    claim, _ = random_claim(seed, depth=0)
    given = claim.X, claim.kinds, claim.labels, claim.weight
    trees = AllTrees(*given, objective, penalty, binary, unknown_best)
    search = TreeSearch(
        ranked_columns(*given, binary, unknown_best), *given[2:], trees.classes, objective, penalty
    )
    best = trees.best(tuple(range(len(claim.labels))), depth, leaves)[0]
    found = search.least(search.everything, depth, leaves, cap * best if best else cap)
    assert found == pytest.approx(min(cap, 1.0) * best, abs=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_sums_that_are_rounded_contradict_no_bound(seed):
    claim, certificate = random_claim(seed, "entropy", 2, None, 0.01, False, bool(seed % 2), rows=40)
    confirm(claim, certificate)


# -- what is false is found out ------------------------------------------------------------------------------


def noisy(objective="error", depth=2, leaves=None, penalty=0.01, rows=30):
    """Return a claim of numbers and noise, whose bound is above 0."""
    random = np.random.default_rng(5)
    X, labels = random.normal(size=(rows, 2)).round(2), random.integers(0, 2, rows)
    given = np.zeros(2, np.uint8), labels, np.ones(rows), objective, depth, leaves, penalty, False, False
    return make_claim(random, X, *given)


def changed(claim, **arrays):
    """Return the claim with other arrays of the frontier."""
    return dataclasses.replace(claim, frontier=dataclasses.replace(claim.frontier, **arrays))


def changed_tree(claim, **arrays):
    return dataclasses.replace(claim, tree=SimpleNamespace(**vars(claim.tree) | arrays))


def kept(frontier, items):
    """Return the arrays of some items."""
    names = ("column", "low", "high", "left_leaves", "unknown_leaves", "left", "right", "unknown")
    return {name: getattr(frontier, name)[items] for name in names}


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    objective=st.sampled_from(["error", "entropy"]),
    depth=st.integers(1, 3),
    leaves=st.sampled_from([None, 3, 4]),
    penalty=st.sampled_from([0.0, 0.2]),
    binary=st.booleans(),
    unknown_best=st.booleans(),
    part=st.sampled_from(["left", "right", "unknown"]),
    which=st.integers(0, 10**6),
)
def test_one_bound_that_is_too_large_is_found(
    seed, objective, depth, leaves, penalty, binary, unknown_best, part, which
):
    claim, certificate = random_claim(seed, objective, depth, leaves, penalty, binary, unknown_best)
    frontier = claim.frontier
    if not frontier.column.size:
        return
    item = which % frontier.column.size
    if leaves and frontier.kinds[frontier.column[item]] == EACH:  # too few leaves cost anything
        return
    raised = np.array(getattr(frontier, part), dtype=float)
    raised[item] += 1e-6
    with pytest.raises(CertificateError, match=f"Item .* part '({part}|all)'|Item {item} "):
        confirm(changed(claim, **{part: raised}), certificate)


@pytest.mark.parametrize("objective", ["error", "entropy"])
@pytest.mark.parametrize("leaves", [None, 3])
def test_a_raised_bound_is_found(objective, leaves):
    claim, certificate = noisy(objective, leaves=leaves)
    confirm(claim, certificate)
    assert certificate.gap > 0.0
    with pytest.raises(CertificateError, match=r"no tree costs less than .* of item \d+ it is only known"):
        confirm(claim, dataclasses.replace(certificate, gap=certificate.gap - 1e-9))


@pytest.mark.parametrize("leaves", [None, 3])
def test_every_missing_item_is_found(leaves):
    claim, certificate = noisy(leaves=leaves)
    for item in range(claim.frontier.column.size):
        others = np.arange(claim.frontier.column.size) != item
        with pytest.raises(CertificateError, match=r"of \d+ questions about column \d are in no item"):
            confirm(changed(claim, **kept(claim.frontier, others)), certificate)


@pytest.mark.parametrize("own", [1, 2])
def test_every_way_to_share_the_leaves_is_needed(own):
    random = np.random.default_rng(5)
    X, labels = random.normal(size=(20, 2)).round(1), random.integers(0, 2, 20)
    X[:4, 0] = np.nan
    given = np.zeros(2, np.uint8), labels, np.ones(20), "error", 2, 4, 0.01, False, False
    claim, certificate = make_claim(random, X, *given)
    confirm(claim, certificate)
    others = claim.frontier.unknown_leaves != own
    with pytest.raises(CertificateError, match="questions about column 0 are in no item"):
        confirm(changed(claim, **kept(claim.frontier, others)), certificate)


def test_a_question_with_more_children_than_leaves_needs_no_item():
    random = np.random.default_rng(1)
    X = np.column_stack([random.integers(0, 3, 20), random.integers(0, 4, 20)]).astype(float)
    given = (
        np.array([1, 0], np.uint8),
        random.integers(0, 2, 20),
        np.ones(20),
        "error",
        2,
        2,
        0.01,
        False,
        False,
    )
    claim, certificate = make_claim(random, X, *given)
    others = claim.frontier.kinds[claim.frontier.column] != EACH
    confirm(changed(claim, **kept(claim.frontier, others)), certificate)


def test_a_narrower_item_leaves_a_question_out():
    claim, certificate = noisy()
    for item in np.flatnonzero(claim.frontier.low < claim.frontier.high).tolist():
        high = claim.frontier.high.copy()
        high[item] -= 1
        with pytest.raises(CertificateError, match=r"1 of .* in no item"):
            confirm(changed(claim, high=high), certificate)


def test_columns_that_the_search_did_not_have_are_missed():
    claim, certificate = noisy()
    items = claim.frontier.column == 0
    less = dataclasses.replace(
        claim.frontier,
        columns=claim.frontier.columns[:1],
        kinds=claim.frontier.kinds[:1],
        **kept(claim.frontier, items),
    )
    with pytest.raises(CertificateError, match="questions about column 1 are in no item"):
        confirm(dataclasses.replace(claim, frontier=less), certificate)


def test_a_column_equal_to_an_earlier_one_need_not_be_there():
    claim, certificate = noisy()
    twice = dataclasses.replace(
        claim,
        X=np.column_stack([claim.X, -2.0 * claim.X[:, 0]]),  # asks the same, the other way round
        kinds=np.zeros(3, np.uint8),
        tree=SimpleNamespace(**vars(claim.tree) | {"kinds": np.zeros(3, np.uint8)}),
    )
    confirm(twice, certificate)


def test_a_changed_objective_is_found():
    claim, certificate = noisy()
    for change in (1e-9, -1e-9):
        with pytest.raises(CertificateError, match="says the objective is"):
            confirm(claim, dataclasses.replace(certificate, objective=certificate.objective + change))


def test_changed_leaves_and_thresholds_are_found():
    claim, certificate = noisy()
    leaf = int(np.flatnonzero(claim.tree.column < 0)[0])
    totals = claim.tree.totals.copy()
    totals[leaf, 0] += 1
    with pytest.raises(CertificateError, match=f"Node {leaf} says that it has"):
        confirm(changed_tree(claim, totals=totals), certificate)
    threshold = claim.tree.threshold.copy()
    threshold[0] += 0.5
    with pytest.raises(CertificateError, match="Node 1 says that it has"):
        confirm(changed_tree(claim, threshold=threshold), certificate)


def test_trees_that_are_too_large_are_found():
    claim, certificate = noisy()
    with pytest.raises(CertificateError, match=r"has 2 questions above a leaf, but .* at most 1"):
        confirm(dataclasses.replace(claim, max_depth=1), certificate)
    with pytest.raises(CertificateError, match=r"has \d leaves, but .* at most 2"):
        confirm(dataclasses.replace(claim, max_leaf_nodes=2), certificate)


def test_questions_that_the_rules_do_not_allow_are_found():
    random = np.random.default_rng(0)
    X, labels = np.array([[0.0], [1.0], [2.0], [np.nan]] * 3), np.array([0, 1, 2, 3] * 3)
    rules = np.ones(1, np.uint8), labels, np.ones(12), "error", 1, None, 0.0
    claim, certificate = make_claim(random, X, *rules, False, False)
    confirm(claim, certificate)
    with pytest.raises(CertificateError, match="Node 0 parts its 12 rows by column 0 into children of"):
        confirm(dataclasses.replace(claim, binary=True), certificate)
    joined, certificate = make_claim(random, X, *rules, True, True)
    confirm(joined, certificate)
    with pytest.raises(CertificateError, match="that the rules of this tree do not allow"):
        confirm(dataclasses.replace(joined, binary=False, unknown_best=False), certificate)


def test_frontiers_that_are_none_are_found():
    claim, certificate = noisy()
    left = claim.frontier.left.copy()
    left[0] = np.nan
    with pytest.raises(CertificateError, match="about no question that there is"):
        confirm(changed(claim, left=left), certificate)
    with pytest.raises(CertificateError, match="about no question that there is"):
        confirm(changed(claim, column=claim.frontier.column + 1), certificate)
    with pytest.raises(CertificateError, match="do not fit together"):
        confirm(changed(claim, right=left[1:]), certificate)
    short = SimpleNamespace(**vars(claim.frontier.columns[0]) | {"source": 1})
    with pytest.raises(CertificateError, match="does not give every row a rank by the values of column 1"):
        confirm(changed(claim, columns=(short, *claim.frontier.columns[1:])), certificate)


def test_other_kinds_and_words_are_found():
    claim, certificate = noisy()
    with pytest.raises(CertificateError, match="of kind 'greedy tree'"):
        confirm(claim, dataclasses.replace(certificate, kind="greedy tree"))
    with pytest.raises(CertificateError, match=r"its figures say 'within .*% of the best tree of depth 2'"):
        confirm(claim, dataclasses.replace(certificate, claim="no tree of depth 2 is better"))
    most = math.ceil(1e3 * certificate.gap / certificate.lower_bound) / 10
    words = f"within {most:g}% of the best tree of depth 2"
    assert confirm(claim, dataclasses.replace(certificate, claim=words)).claim == words


# -- what else it says ---------------------------------------------------------------------------------------


def test_it_says_how_many_bounds_were_recomputed(monkeypatch):
    claim, certificate = noisy(depth=3, rows=20)
    found = str(confirm(claim, certificate))
    *_, done, _, total, _, _, _, _, _, _ = found.split()
    assert done == total
    monkeypatch.setattr(tree_frontier, "WORK", 3e5)
    *_, some, _, total, _, _, _, _, _, _ = str(confirm(claim, certificate)).split()
    assert 0 < int(some) < int(total)


def test_sparse_tables_are_the_same():
    random = np.random.default_rng(3)
    X = random.integers(0, 3, (12, 3)).astype(float)
    X[0, 0] = np.nan
    given = (
        np.zeros(3, np.uint8),
        random.integers(0, 2, 12),
        np.ones(12),
        "entropy",
        2,
        None,
        0.01,
        False,
        False,
    )
    claim, certificate = make_claim(random, X, *given)
    found = confirm(dataclasses.replace(claim, X=sp.csr_array(X)), certificate)
    assert found == confirm(claim, certificate)


def test_costs_in_whole_units_are_allowed_for(monkeypatch):
    claim, certificate = noisy("entropy")
    unit = 2.0**-10
    frontier = claim.frontier
    rounded = {name: np.ceil(getattr(frontier, name) / unit) * unit for name in ("left", "right")}
    with pytest.raises(CertificateError, match=r"its part .* costs"):
        confirm(changed(claim, **rounded), certificate)
    coarse = dataclasses.replace(changed(claim, **rounded), unit=unit)
    with pytest.raises(CertificateError, match="whole numbers of"):
        confirm(coarse, certificate)
    monkeypatch.setattr(tree_frontier, "COARSEST", 1.0)
    confirm(coarse, certificate)


def test_many_categories_are_grouped_by_their_shares():
    random = np.random.default_rng(2)
    totals = random.integers(1, 20, (9, 3)).astype(float)
    ranks = list(groupings(totals))
    assert len(ranks) == 9 + 3
    for group, share in zip(ranks[9:], (totals / totals.sum(axis=1, keepdims=True)).T, strict=True):
        assert (np.sign(group[:, None] - group) == np.sign(share[:, None] - share)).all()
    assert len(list(groupings(totals[:8]))) == 2**7 - 1
