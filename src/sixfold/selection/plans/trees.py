"""Decision trees: all depths, leaf counts, epsilons and pruning strengths from one growth a fold.

A split does not depend on what is split elsewhere, so the tree of a tighter limit is that of a looser one,
without what lies below some of its splits. A node t, with the nodes p on the way to it, is in the tree with

    max_depth d                if depth(t) <= d
    min_samples_split s        if rows(p) >= s for all p
    min_impurity_decrease e    if gain(p) >= e for all p, the gain times the share of the weight at p
    max_leaf_nodes L           if all p are among the L - 1 most rewarding splits of the tree so far
    ccp_alpha a                if alpha(p) > a for all p, the alphas being those of the tree so far

in the order in which a fit applies them: limits of the growth, then leaves, then cost. Each is a number of
the node that is compared with a number of the setting, so that all settings of a fold are one comparison. A
row that ends at a node of the grown tree ends, in a smaller one, at the last node on its way that is there.
Nodes are numbered depth first: of those that are there it is the last one that comes no later.

Of trees that are searched for as a whole (``search="optimal"``) none is inside another. Those of all leaf
penalties share searches (:mod:`sixfold.selection.plans.optimal_trees`), each depth and number of leaves on
its own.

Source of cost complexity: Breiman, Friedman, Olshen and Stone, Classification and Regression Trees, 1984.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sixfold.errors import InputError
from sixfold.learners.trees.decision_tree import DecisionTreeClassifier
from sixfold.selection.plans.base import Answered, Fitted, Fold, Plan, Setting, Table
from sixfold.selection.plans.optimal_trees import PenaltyPlan
from sixfold.solvers.trees.fitted_tree import FittedTree, Reason
from sixfold.solvers.trees.growth import TIE, GrowthRules, TrainingRows, TreeParameters
from sixfold.solvers.trees.pruning import (
    best_first,
    keep_leaves,
    node_gains,
    prune_ccp,
    warn_if_constant,
    weakest_links,
)

Array = NDArray[Any]

MOST_ENTRIES = 1 << 22  # nodes of the settings that are compared at a time
# What a gain may differ by from that of the native loops, which add up weights in another order.
GAIN_ROUNDING, WEIGHT_ROUNDING = 1e-13, 1e-15


class Limits(NamedTuple):
    """When a node is not split."""

    depth: int
    rows: int
    gain: float


class Request(NamedTuple):
    """One setting, as numbers of a fold: limits of the growth, leaves at most (0 for no limit), alpha."""

    setting: int
    parameters: TreeParameters
    rules: GrowthRules
    limits: Limits
    leaves: int
    alpha: float


class TreePlan(Plan):
    """Grow the largest tree that any setting asks for, and find those of all settings in it."""

    parameters: ClassVar = (
        "max_depth", "max_leaf_nodes", "min_impurity_decrease", "ccp_alpha", "min_samples_split",
        "leaf_penalty",
    )  # fmt: skip
    simpler: ClassVar = {
        "max_leaf_nodes": -1, "max_depth": -1, "ccp_alpha": 1, "leaf_penalty": 1,
        "min_impurity_decrease": 1, "min_samples_split": 1,
    }  # fmt: skip

    def __init__(self, model: Any, settings: Sequence[Setting], table: Table) -> None:
        super().__init__(model, settings, table)
        usual = model._parameters()
        self._asked: list[tuple[int, TreeParameters]] = []
        for number, setting in enumerate(settings):
            asked = replace(usual, **setting)
            try:
                asked.check()
            except InputError:  # a fit of its own says so
                continue
            self._asked.append((number, asked))

    @classmethod
    def objection(cls, model: Any) -> str | None:
        """Return why trees have to be grown one by one: rows held out, chance, or what each one tells."""
        if model.search not in ("greedy", "optimal"):
            return f"search={model.search!r} shares nothing between trees, and a smaller one is not inside"
        if model.prune != "none":
            return f"prune={model.prune!r} holds rows out, and a setting decides which tree they judge"
        if model.max_features is not None and model.random_state is None:
            return "max_features draws other columns in each fit unless random_state is given"
        if model.time_limit is not None:
            return "time_limit is for each tree"
        if model.callbacks or model.verbose or model.trace or hasattr(model, "_skl_callbacks"):
            return "callbacks, verbose and trace tell of the growth of each tree"
        return None

    def parts(self) -> list[tuple[list[int], Plan]]:
        """Return this plan; for trees that are searched for a plan for each depth and number of leaves."""
        if self.model.search != "optimal":
            return super().parts()
        sizes: dict[str, list[int]] = {}
        for number, setting in enumerate(self.settings):
            size = repr(sorted((name, value) for name, value in setting.items() if name != "leaf_penalty"))
            sizes.setdefault(size, []).append(number)
        penalty = {number: float(asked.leaf_penalty) for number, asked in self._asked}
        plans: list[tuple[list[int], Plan]] = []
        for numbers in sizes.values():
            some = [self.settings[number] for number in numbers]
            penalties = [penalty.get(number) for number in numbers]
            plans.append((numbers, PenaltyPlan(self.model, some, self.table, penalties)))
        return plans

    def fit(self, fold: Fold) -> Iterator[Fitted]:
        """Yield a model for every setting whose parameters make sense."""
        yield from self._fit(fold, self._asked)

    def _fit(self, fold: Fold, asked: list[tuple[int, TreeParameters]]) -> Iterator[Fitted]:
        if not asked:
            return
        model, rows = self._grown(fold, [parameters for _, parameters in asked])
        requests, doubtful = [], []
        nested = NestedTrees(model.tree_, rows, model._grown.rules.min_impurity_decrease)
        for number, parameters in asked:
            request = _request(number, parameters, rows, model._grown.rules.seed)
            if nested.decides(request.limits.gain):
                requests.append(request)
            else:
                doubtful.append((number, parameters))
        ended = model._node_of(fold.X_test)
        step = max(MOST_ENTRIES // max(nested.tree.node_count, ended.size), 1)
        known = {"classes_": model.classes_, "n_features_in_": model.n_features_in_}
        grown = 1
        for start in range(0, len(requests), step):
            some = requests[start : start + step]
            nodes = nested.answering(some)[:, ended]
            labels = model.classes_[model.tree_.answer[nodes]]
            for request, at, label in zip(some, nodes, labels, strict=True):
                answers = {
                    "predict": label,
                    "predict_proba": partial(_shares, model.tree_, at),
                    "predict_log_proba": partial(_log_shares, model.tree_, at),
                }
                make = partial(_cut, model, nested, request)
                answered = Answered(make, fold.X_test, answers, known, unfitted=self.model)
                yield Fitted(request.setting, answered, solved=grown)
                grown = 0
        for gain in {parameters.min_impurity_decrease for _, parameters in doubtful}:
            yield from self._fit(fold, [one for one in doubtful if one[1].min_impurity_decrease == gain])

    def _grown(self, fold: Fold, asked: list[TreeParameters]) -> tuple[DecisionTreeClassifier, TrainingRows]:
        """Return the learner with the largest tree that is asked for, and the rows it was grown from."""
        # No node of a tree with so many leaves is deeper than that.
        depths = [
            min((limit for limit in (one.max_depth, one.max_leaf_nodes) if limit is not None), default=None)
            for one in asked
        ]
        deepest = None if None in depths else max(depth for depth in depths if depth is not None)
        taken: list[TrainingRows] = []

        def check(*given: Any) -> TrainingRows:
            rows: TrainingRows = model._check(*given)
            taken.append(rows)
            return rows

        model = copy.copy(self.model)
        model.random_state = copy.deepcopy(model.random_state)  # which every clone has anew
        model.max_leaf_nodes, model.ccp_alpha, model.max_depth = None, 0.0, deepest
        model.min_impurity_decrease = min(one.min_impurity_decrease for one in asked)
        fewest = [one.min_samples_split for one in asked]
        alike = len({isinstance(one, Integral) for one in fewest}) == 1  # else some are shares
        model.min_samples_split = min(fewest) if alike else 2
        model._run_fit(fold.X_train, fold.y_train, fold.sample_weight, check=check)
        return model, taken[0]


def _request(number: int, parameters: TreeParameters, rows: TrainingRows, seed: int) -> Request:
    rules = parameters.rules(rows, seed)
    depth = rows.count if rules.max_depth is None else rules.max_depth
    limits = Limits(depth, rules.min_samples_split, rules.min_impurity_decrease)
    leaves = 0 if parameters.max_leaf_nodes is None else min(int(parameters.max_leaf_nodes), rows.count)
    return Request(number, parameters, rules, limits, leaves, parameters.alpha)


def _shares(tree: FittedTree, nodes: Array) -> Array:
    return tree.shares[nodes]


def _log_shares(tree: FittedTree, nodes: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(tree.shares[nodes])


def _cut(model: DecisionTreeClassifier, nested: NestedTrees, request: Request) -> DecisionTreeClassifier:
    """Return the learner of one setting."""
    given = {name: getattr(request.parameters, name) for name in TreePlan.parameters}
    tree = nested.cut(request).in_units(nested.exponent, model.tree_.unit)
    made = model._with_tree(replace(tree, limits=request.parameters.limits), given)
    made._grown = replace(made._grown, rules=request.rules)
    made._size["max_depth"] = request.rules.max_depth
    return made


# -- smaller trees inside a grown one ------------------------------------------------------------------------


class NestedTrees:
    """The trees of tighter limits inside a grown one.

    Parameters
    ----------
    tree : FittedTree
        Grown without a limit on leaves, and not pruned.
    rows : TrainingRows
        What it has grown from.
    least_gain : float
        That all its splits have, in bits.
    """

    def __init__(self, tree: FittedTree, rows: TrainingRows, least_gain: float) -> None:
        self.exponent, self.least_gain = rows.weight_exponent, least_gain
        self.tree = tree.in_units(-self.exponent, 1.0)  # as fits prune: alphas and gains are in bits
        self.numbers = np.arange(tree.node_count, dtype=np.int32)
        self.rounding = GAIN_ROUNDING + (0.0 if rows.weight is None else WEIGHT_ROUNDING * rows.count)

    @cached_property
    def gains(self) -> Array:
        """The gain of each split, times the share of the weight that its node has; infinite at leaves."""
        tree = self.tree
        return np.where(tree.is_leaf, np.inf, node_gains(tree) * tree.weight / tree.totals[0].sum())

    @cached_property
    def least_gain_above(self) -> Array:
        """The least gain of the splits above each node."""
        return self._above(self.tree.from_root(self.gains, np.minimum), np.inf)

    @cached_property
    def rows_above(self) -> Array:
        """The rows of the node above each node."""
        return self._above(self.tree.rows, np.iinfo(np.int64).max)

    @cached_property
    def is_binary(self) -> bool:
        """Whether every split has two children."""
        counts = np.bincount(self.tree.parent[1:], minlength=self.tree.node_count)
        return bool((counts[~self.tree.is_leaf] == 2).all())

    def _above(self, values: Array, at_root: float) -> Array:
        """Return for each node the value of the one above it."""
        above = values[self.tree.parent]
        above[0] = at_root
        return above

    def decides(self, gain: float) -> bool:
        """Return whether no gain is so close to this limit that rounding tells on which side it is."""
        if gain <= self.least_gain:
            return True
        return not bool((np.abs(self.gains - (gain - TIE)) <= self.rounding).any())

    def answering(self, requests: Sequence[Request]) -> Array:
        """Return the node of each tree that answers for each node of the grown one.

        Returns
        -------
        ndarray of int32, shape (requests, nodes)
        """
        return np.maximum.accumulate(np.where(self.staying(requests), self.numbers, np.int32(0)), axis=1)

    def staying(self, requests: Sequence[Request]) -> Array:
        """Return which nodes each tree has, of shape (requests, nodes)."""
        stays = self._within([request.limits for request in requests])
        groups: dict[Limits, list[int]] = {}
        for place, request in enumerate(requests):
            if request.leaves or request.alpha > 0.0:
                groups.setdefault(request.limits, []).append(place)
        for places in groups.values():
            within = stays[places[0]].copy()
            ranks = self._ranks(within, max(requests[place].leaves for place in places))
            by_leaves: dict[int, list[int]] = {}
            for place in places:
                by_leaves.setdefault(requests[place].leaves, []).append(place)
            for leaves, some in by_leaves.items():
                kept = within & ranks(leaves) if leaves else within
                stays[some] = kept
                alphas = np.array([requests[place].alpha for place in some])
                if alphas.any():
                    links = self._least_link_above(kept)
                    stays[some] &= (links > alphas[:, None]) | (alphas[:, None] == 0.0)
        return stays

    def _within(self, limits: Sequence[Limits]) -> Array:
        """Return which nodes growth reaches."""
        depth, rows, gain = (np.array(part)[:, None] for part in zip(*limits, strict=True))
        stays: Array = self.tree.depth <= depth
        if (rows > 2).any():
            stays &= self.rows_above >= rows
        if (gain > self.least_gain).any():
            stays &= (self.least_gain_above >= gain - TIE) | (gain <= self.least_gain)
        return stays

    def _ranks(self, within: Array, most: int) -> Callable[[int], Array]:
        """Return what tells which nodes of these stay in a tree of so many leaves."""
        if not most:
            return lambda leaves: within
        tree, old = self.tree.cut(self._splits(within), Reason.LIMIT), np.flatnonzero(within)

        def reached(order: list[int], splits: int) -> Array:
            rank = np.full(self.numbers.size, self.numbers.size)
            rank[old[order]] = np.arange(len(order))
            return self._above(rank, -1) < splits

        if self.is_binary:
            order = best_first(tree, most)
            return lambda leaves: reached(order, leaves - 1)

        def by_leaves(leaves: int) -> Array:
            order = best_first(tree, leaves)
            if not order:
                warn_if_constant(tree, leaves)
            return reached(order, len(order))

        return by_leaves

    def _least_link_above(self, kept: Array) -> Array:
        """Return the least alpha that prunes one of the nodes above each node."""
        links = np.full(self.numbers.size, np.inf)
        links[kept] = weakest_links(self.tree.cut(self._splits(kept)))[0]
        return self._above(self.tree.from_root(links, np.minimum), np.inf)

    def _splits(self, stays: Array) -> Array:
        """Return which nodes are split in a tree that has these nodes."""
        split = np.zeros(stays.size, dtype=bool)
        split[self.tree.parent[1:][stays[1:]]] = True
        return split

    def cut(self, request: Request) -> FittedTree:
        """Return the tree of one setting, by the steps of a fit."""
        tree = self.tree.cut(self._splits(self._within([request.limits])[0]), Reason.LIMIT)
        if request.leaves:
            tree = keep_leaves(tree, request.leaves)
        return prune_ccp(tree, request.alpha)
