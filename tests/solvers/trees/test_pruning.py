"""Smaller trees inside a grown one are those that growing or pruning step by step would give."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.tree import DecisionTreeClassifier

from oracles import trees as tree_oracle
from sixfold.solvers.trees.fitted_tree import FittedTree, Reason
from sixfold.solvers.trees.impurity import impurity
from sixfold.solvers.trees.pruning import (
    by_alpha,
    by_depth,
    ccp_path,
    cut_depth,
    importances,
    keep_leaves,
    node_gains,
    prune_ccp,
    prune_reduced_error,
)

CRITERIA = ["entropy", "gini", "gain_ratio", "homogeneous"]


def oracles_tree(seed, rows=60, criterion="entropy", weighted=False, **rules):
    """Return a table of numbers, categories and unknowns, and its tree."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, (rows, 4)).astype(np.float64)
    X[rng.random(X.shape) < 0.1] = np.nan
    kinds = np.array([0, 1, 0, 1], dtype=np.uint8)
    labels = rng.integers(0, 3, rows).astype(np.int32)
    weight = rng.uniform(0.5, 2.0, rows) if weighted else None
    nodes = tree_oracle.grow(X, kinds, labels, 3, weight, criterion=criterion, **rules)
    return X, labels, nodes, FittedTree(kinds, **tree_oracle.flat(nodes), criterion=criterion)


def from_sklearn(theirs, criterion):
    """Return scikit-learn's tree as one of ours."""
    split = theirs.feature >= 0
    return FittedTree(
        kinds=np.zeros(theirs.n_features, dtype=np.uint8),
        column=np.where(split, theirs.feature, -1).astype(np.int32),
        threshold=theirs.threshold,
        first=np.concatenate([[0], np.cumsum(2 * split)]),
        code=np.tile([0, 1], split.sum()).astype(np.int32),
        child=np.column_stack([theirs.children_left, theirs.children_right])[split].ravel().astype(np.int32),
        unknown=np.full(theirs.node_count, -1, dtype=np.int32),
        reason=np.where(split, 0, Reason.LIMIT).astype(np.uint8),
        rows=theirs.n_node_samples,
        totals=theirs.value[:, 0] * theirs.weighted_n_node_samples[:, None],
        criterion=criterion,
    )


def assert_same_tree(tree, other):
    for name in ["column", "threshold", "first", "code", "child", "unknown", "rows", "totals"]:
        np.testing.assert_array_equal(getattr(tree, name), getattr(other, name), err_msg=name)


many_trees = pytest.mark.parametrize("seed", range(6))
tables = [load_iris, load_breast_cancer]
every_table = pytest.mark.parametrize("load", tables, ids=lambda load: load.__name__)
peers_criterion = pytest.mark.parametrize("criterion", ["entropy", "gini"])


# -- impurity ------------------------------------------------------------------------------------------


def test_impurities_of_known_shares():
    totals = np.array([[1.0, 1.0, 2.0], [0.0, 5.0, 0.0], [9.0, 5.0, 0.0]])
    np.testing.assert_allclose(impurity(totals, "entropy"), [1.5, 0.0, 0.9402859586706311], rtol=1e-15)
    np.testing.assert_allclose(impurity(totals, "gini"), [0.625, 0.0, 90 / 196], rtol=1e-15)
    np.testing.assert_array_equal(impurity(totals, "gain_ratio"), impurity(totals, "entropy"))
    np.testing.assert_array_equal(impurity(totals, "homogeneous"), [1.0, 0.0, 1.0])


@pytest.mark.parametrize("criterion", CRITERIA)
def test_impurity_of_a_pure_node_is_zero_to_the_bit(criterion):
    totals = np.diag(np.random.default_rng(0).uniform(0.1, 3.0, 7))
    mixed = impurity(totals, criterion)
    assert (mixed == 0.0).all()
    assert not np.signbit(mixed).any()


# -- depth, ways and cuts ------------------------------------------------------------------------------


@many_trees
def test_depth_and_last_node_below_by_walking(seed):
    *_, tree = oracles_tree(seed)
    for node in range(tree.node_count):
        assert tree.depth[node] == len(tree.path_to(node)) - 1
        under = [other for other in range(tree.node_count) if node in tree.path_to(other)]
        assert under == list(range(node, tree.last[node] + 1))


@many_trees
@pytest.mark.parametrize("binary", [False, True])
def test_a_tree_cut_at_a_depth_is_the_tree_grown_to_it(seed, binary):
    *_, tree = oracles_tree(seed, binary=binary)
    for depth in range(tree.depth.max() + 2):
        grown = oracles_tree(seed, binary=binary, max_depth=depth)[-1]
        found = cut_depth(tree, depth)
        assert_same_tree(found, grown)
        assert found.kinds is tree.kinds
        newly = found.is_leaf & np.isin(found.reason, [Reason.PURE, Reason.EXHAUSTED], invert=True)
        assert (found.reason[newly] == Reason.LIMIT).all()


def test_a_chain_of_fifty_thousand_splits():
    # the left child of every split is a leaf: 50,000 levels
    splits = 50_000
    column = np.append(np.tile([0, -1], splits), -1).astype(np.int32)
    child = np.column_stack([np.arange(1, 2 * splits, 2), np.arange(2, 2 * splits + 1, 2)])
    tree = FittedTree(
        kinds=np.zeros(1, dtype=np.uint8),
        column=column,
        threshold=np.where(column >= 0, 0.0, -2.0),
        first=np.concatenate([[0], np.cumsum(2 * (column >= 0))]),
        code=np.tile([0, 1], splits).astype(np.int32),
        child=child.ravel().astype(np.int32),
        unknown=np.full(column.size, -1, dtype=np.int32),
        reason=(column < 0).astype(np.uint8),
        rows=np.ones(column.size, dtype=np.int64),
        totals=np.ones((column.size, 2)),
    )
    assert tree.depth.max() == splits
    assert (tree.last[column >= 0] == 2 * splits).all()
    assert cut_depth(tree, 1000).node_count == 2001


# -- gains ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", CRITERIA)
def test_gains_by_definition(criterion):
    _, _, nodes, tree = oracles_tree(0, criterion=criterion, weighted=True)
    gains = node_gains(tree)
    for node, gain in enumerate(gains):
        expected = 0.0
        if not tree.is_leaf[node]:
            parts = [nodes[child]["totals"] for child in tree.children(node)]
            shares = [part.sum() / nodes[node]["totals"].sum() for part in parts]
            average = sum(s * tree_oracle.impurity(p, criterion) for s, p in zip(shares, parts, strict=True))
            expected = tree_oracle.impurity(nodes[node]["totals"], criterion) - average
        assert gain == pytest.approx(expected, abs=1e-12)


@every_table
@peers_criterion
def test_importances_are_scikit_learns(load, criterion):
    X, y = load(return_X_y=True)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    model = DecisionTreeClassifier(criterion=criterion, random_state=0).fit(X, y, weight)
    found = importances(from_sklearn(model.tree_, criterion))
    np.testing.assert_allclose(found, model.feature_importances_, atol=1e-12)


def test_importances_of_a_tree_without_a_split_are_zero():
    tree = cut_depth(oracles_tree(0)[-1], 0)
    np.testing.assert_array_equal(importances(tree), np.zeros(4))


# -- leaves --------------------------------------------------------------------------------------------


@peers_criterion
@pytest.mark.parametrize("leaves", [1, 2, 5, 11, 20])
def test_most_rewarding_leaves_are_scikit_learns_max_leaf_nodes(criterion, leaves):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 4)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] ** 2 + rng.normal(size=400) > 1).astype(int) + (X[:, 2] > 0.8)
    rules = {"criterion": criterion, "min_samples_leaf": 6, "random_state": 0}
    weight = rng.uniform(0.5, 2.0, 400)  # so that no two splits are equal
    tree = from_sklearn(DecisionTreeClassifier(**rules).fit(X, y, weight).tree_, criterion)
    found = keep_leaves(tree, leaves)
    if leaves == 1:
        assert found.node_count == 1
        return
    theirs = DecisionTreeClassifier(max_leaf_nodes=leaves, **rules).fit(X, y, weight).tree_
    assert found.leaf_count == theirs.n_leaves
    assert sorted(found.rows) == sorted(theirs.n_node_samples)
    splits = theirs.feature >= 0
    assert sorted(found.threshold[~found.is_leaf]) == sorted(theirs.threshold[splits])


def first_splits(tree, leaves, gains):
    """Return which nodes are split, by looking through the frontier at every step."""
    split, frontier, count = np.zeros(tree.node_count, dtype=bool), {0}, 1
    decrease = gains * tree.weight
    while True:
        fitting = [
            node
            for node in sorted(frontier)
            if not tree.is_leaf[node] and count - 1 + len(tree.children(node)) <= leaves
        ]
        if not fitting:
            return split
        best = max(decrease[node] for node in fitting)
        node = next(node for node in fitting if decrease[node] >= best - 1e-9)
        split[node] = True
        count += len(tree.children(node)) - 1
        frontier = frontier - {node} | set(tree.children(node))


@many_trees
@pytest.mark.parametrize("binary", [False, True])
def test_leaves_of_multiway_trees_are_never_more_than_asked_for(seed, binary):
    *_, tree = oracles_tree(seed, binary=binary)
    gains = node_gains(tree)
    for leaves in range(1, tree.leaf_count + 2):
        found = keep_leaves(tree, leaves)
        assert found.leaf_count <= leaves
        assert_same_tree(found, tree.cut(first_splits(tree, leaves, gains)))
    assert found.node_count == tree.node_count


# -- cost complexity -----------------------------------------------------------------------------------


def weakest_first(tree, criterion):
    """Return alpha, risk and leaves of every tree, making one weakest node after another a leaf."""
    alpha, steps = 0.0, []
    while True:
        risk = tree.weight / tree.weight[0] * impurity(tree.totals, criterion)
        under, leaves = np.where(tree.is_leaf, risk, 0.0), tree.is_leaf.astype(int)
        for node in range(tree.node_count - 1, 0, -1):
            under[tree.parent[node]] += under[node]
            leaves[tree.parent[node]] += leaves[node]
        steps.append((alpha, under[0], leaves[0]))
        if tree.node_count == 1:
            return np.array(steps).T
        links = (risk - under) / np.where(tree.is_leaf, np.nan, leaves - 1.0)
        weakest = np.flatnonzero(links <= np.nanmin(links) + 1e-13)[0]
        alpha = max(links[weakest], alpha)
        tree = tree.cut(np.arange(tree.node_count) != weakest)


@many_trees
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("binary", [False, True])
def test_trees_of_all_alphas_are_those_of_pruning_step_by_step(seed, criterion, binary):
    *_, tree = oracles_tree(seed, criterion=criterion, binary=binary, weighted=seed % 2)
    alphas, risks, leaves = weakest_first(tree, criterion)
    path = ccp_path(tree)
    assert (np.diff(path.ccp_alphas) >= 0.0).all()
    for alpha in np.concatenate([alphas * (1 + 1e-9), alphas * (1 - 1e-9), [2.0]]):
        if alpha > 1e-12:  # at 0 the tree stays as it is
            step = np.searchsorted(alphas, alpha, side="right") - 1
            assert prune_ccp(tree, alpha).leaf_count == leaves[step]
            entry = np.searchsorted(path.ccp_alphas, alpha, side="right") - 1
            assert path.impurities[entry] == pytest.approx(risks[step], abs=1e-12)
    assert prune_ccp(tree, 0.0) is tree


@every_table
@peers_criterion
@pytest.mark.parametrize("weighted", [False, True])
def test_cost_complexity_path_is_scikit_learns(load, criterion, weighted):
    X, y = load(return_X_y=True)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y)) if weighted else None
    model = DecisionTreeClassifier(criterion=criterion, random_state=0)
    theirs = model.cost_complexity_pruning_path(X, y, weight)
    tree = from_sklearn(model.fit(X, y, weight).tree_, criterion)
    path = ccp_path(tree)
    np.testing.assert_allclose(path.ccp_alphas, theirs.ccp_alphas, atol=1e-14)
    np.testing.assert_allclose(path.impurities, theirs.impurities, atol=1e-14)
    for alpha in [0.0, 1e-4, 0.01, 0.03, 0.1, 1.0]:
        pruned = model.set_params(ccp_alpha=alpha).fit(X, y, weight).tree_
        assert_same_tree(prune_ccp(tree, alpha), from_sklearn(pruned, criterion))


def test_a_root_alone_has_one_tree():
    path = ccp_path(cut_depth(oracles_tree(0)[-1], 0))
    assert path.ccp_alphas.tolist() == [0.0]
    assert path.nodes.tolist() == [-1]


# -- reduced error -------------------------------------------------------------------------------------


def pruned_by_hand(tree, ended, labels, weight, node=0):
    """Return the least errors of a subtree and its nodes that stay split, by definition."""
    inside = (ended >= node) & (ended <= tree.last[node])
    wrong = weight * (labels != tree.totals[node].argmax())
    as_leaf = wrong[inside].sum()
    if tree.is_leaf[node]:
        return as_leaf, []
    below = [pruned_by_hand(tree, ended, labels, weight, child) for child in tree.children(node)]
    as_split = wrong[ended == node].sum() + sum(errors for errors, _ in below)
    if as_leaf <= as_split + 1e-9:
        return as_leaf, []
    return as_split, [node] + [split for _, nodes in below for split in nodes]


@many_trees
@pytest.mark.parametrize("weighted", [False, True])
def test_reduced_error_by_definition(seed, weighted):
    *_, nodes, tree = oracles_tree(seed)
    rng = np.random.default_rng(seed + 100)
    X = rng.integers(0, 6, (50, 4)).astype(np.float64)  # 5 is a category that the tree has not met
    X[rng.random(X.shape) < 0.1] = np.nan
    ended = np.array([tree_oracle.end(nodes, row, tree.kinds) for row in X])
    answers = tree.totals.argmax(axis=1)[ended]
    labels = np.where(rng.random(50) < 0.4, rng.integers(0, 3, 50), answers).astype(np.int32)
    weight = rng.uniform(0.5, 2.0, 50) if weighted else None
    found = prune_reduced_error(tree, X, labels, weight)
    _, split = pruned_by_hand(tree, ended, labels, np.ones(50) if weight is None else weight)
    assert 1 < found.node_count < tree.node_count
    assert_same_tree(found, tree.cut(np.isin(np.arange(tree.node_count), split)))
    assert Reason.PRUNED in found.reason


# -- all trees for a tuner -----------------------------------------------------------------------------


@many_trees
def test_answers_of_every_depth_are_those_of_the_tree_cut_there(seed):
    X, _, _, tree = oracles_tree(seed)
    X[::3] += 1.0  # other rows than those of the tree
    depths = range(tree.depth.max() + 3)
    for depth, nodes in zip(depths, by_depth(tree, tree.apply(X), depths), strict=True):
        small = cut_depth(tree, depth)
        np.testing.assert_array_equal(tree.totals[nodes], small.totals[small.apply(X)])
        np.testing.assert_array_equal(tree.depth[nodes], small.depth[small.apply(X)])


@many_trees
def test_the_distinct_trees_of_the_path_are_those_of_their_alphas(seed):
    tree = replace(oracles_tree(seed)[-1], criterion="gini")
    path = ccp_path(tree).distinct
    assert (np.diff(path.ccp_alphas) > 0).all()
    for alpha, leaves, risk in zip(path.ccp_alphas, path.leaves, path.impurities, strict=True):
        small = prune_ccp(tree, alpha)
        assert small.leaf_count == leaves
        weighted = (impurity(small.totals, "gini") * small.weight)[small.is_leaf].sum() / small.weight[0]
        assert weighted == pytest.approx(risk, abs=1e-12)


@many_trees
def test_answers_of_every_alpha_are_those_of_the_tree_pruned_with_it(seed):
    X, _, _, tree = oracles_tree(seed)
    X[::3] += 1.0
    tree = replace(tree, criterion="gini")
    path = ccp_path(tree)
    alphas = np.unique(np.concatenate([path.ccp_alphas, [1e-6, 0.01, 1.0]]))
    for alpha, nodes in zip(alphas, by_alpha(tree, tree.apply(X), path, alphas), strict=True):
        small = prune_ccp(tree, alpha)
        np.testing.assert_array_equal(tree.totals[nodes], small.totals[small.apply(X)])
        np.testing.assert_array_equal(tree.depth[nodes], small.depth[small.apply(X)])


def test_a_split_without_gain_stays_at_alpha_zero_and_goes_at_any_other():
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    kinds = np.zeros(2, dtype=np.uint8)
    nodes = tree_oracle.grow(X, kinds, np.array([0, 1, 1, 0]), 2, max_depth=1)
    tree = FittedTree(kinds, **tree_oracle.flat(nodes))
    path = ccp_path(tree)
    assert path.ccp_alphas.tolist() == [0.0, 0.0]
    assert path.leaves.tolist() == [2, 1]
    assert path.distinct.leaves.tolist() == [2]
    answers = by_alpha(tree, tree.apply(X), path, [0.0, 1e-300])
    assert [nodes.tolist() for nodes in answers] == [[1, 1, 2, 2], [0, 0, 0, 0]]
    assert prune_ccp(tree, 0.0).leaf_count == 2
    assert prune_ccp(tree, 1e-300).leaf_count == 1
