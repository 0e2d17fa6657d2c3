"""The different good trees: those that cost little more than the best one, and ask other columns.

A tree is good where its cost, penalties included, is at most

    limit = least cost + epsilon,

and two trees are different where they ask different sets of columns. With T(E) the best tree that asks no
column of a set E, the good trees are looked for by leaving columns out:

    E = {}, then E + {j} for each column j that T(E) asks, as long as T(E) is good; the best T(E) first

Whatever good tree there is, one of those found asks no other columns than it does, and costs no more: as long
as T(E) asks a column j that the tree does not ask, the tree is one of those without E + {j}, so that
T(E + {j}) costs no more than it does. And a column is asked by every good tree exactly where T({j}) is not
good. (This is how Reiter, A theory of diagnosis from first principles, 1987, lists minimal diagnoses.)

A tree that costs least without E does so without E + {j} as well, unless it asks j; and where no tree without
E is good, none without E + {j} is. So many T(E) need no search.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.solvers.trees.fitted_tree import FittedTree, Reason, lost_nats
from sixfold.solvers.trees.growth import TrainingRows
from sixfold.solvers.trees.optimal import SearchRules, search
from sixfold.solvers.trees.search_columns import search_columns

Array = NDArray[Any]

ROUNDING = 1e-12  # of an average over the rows


@dataclass(frozen=True, eq=False)
class GoodTree:
    """The best tree without some columns.

    Attributes
    ----------
    tree : FittedTree
    objective : float
        What it costs, as an average over the rows, penalties included.
    left_out : frozenset of int
        The columns that it had to do without.
    """

    tree: FittedTree
    objective: float
    left_out: frozenset[int] = frozenset()

    @cached_property
    def asked(self) -> frozenset[int]:
        """The columns that it asks."""
        return frozenset(self.tree.column[~self.tree.is_leaf].tolist())


@dataclass(frozen=True, eq=False)
class GoodTrees:
    """What an enumeration has found.

    Attributes
    ----------
    trees : list of GoodTree
        The best first.
    required : list of int
        Columns of which it is proven that every good tree asks them.
    complete : bool
        Whether every good tree asks all columns of one of these, and is no better.
    searches : int
        How many searches it took.
    """

    trees: list[GoodTree]
    required: list[int]
    complete: bool
    searches: int


def objective_of(tree: FittedTree, objective: str, leaf_penalty: float) -> float:
    """Return what a tree costs, as an average over the rows, penalties included."""
    totals = tree.totals[tree.is_leaf] / tree.totals[0].sum()
    costs = totals.sum(axis=1) - totals.max(axis=1) if objective == "error" else lost_nats(totals)
    return float(costs.sum()) + leaf_penalty * tree.leaf_count


def good_trees(
    rows: TrainingRows,
    rules: SearchRules,
    epsilon: float,
    limit: int,
    budget: Budget,
    best: FittedTree | None = None,
    rounding: float = ROUNDING,
    criterion: str = "entropy",
) -> GoodTrees:
    """Return the different good trees, the best ones where there are more than ``limit``.

    Parameters
    ----------
    rows : TrainingRows
    rules : SearchRules
        Which tree is the best, and among which.
    epsilon : float
        How much more than the best one a good tree costs at most.
    limit : int
        Most trees.
    budget : Budget
        Of all searches together. Its callbacks are called for every tree that is found.
    best : FittedTree or None
        The best tree, where it is known.
    rounding : float
        What the cost of a tree may differ by inside a search; so much above the limit is good as well.
    criterion : str
        What the impurities of the trees are.
    """
    return _Enumeration(rows, rules, epsilon + rounding, limit, budget, criterion).run(best)


class _Stopped(Exception):  # noqa: N818 - no error: what was found is kept
    """The budget has ended a search."""


class _Enumeration:
    """The trees T(E) that are known, and those that are good and not looked at."""

    def __init__(
        self,
        rows: TrainingRows,
        rules: SearchRules,
        epsilon: float,
        limit: int,
        budget: Budget,
        criterion: str,
    ) -> None:
        self._rows, self._rules, self._epsilon = rows, rules, epsilon
        self._limit, self._budget, self._criterion = limit, budget, criterion
        self._known: dict[frozenset[int], GoodTree | None] = {}
        self._most = np.inf  # what a good tree costs at most, rounding included
        self._searches = 0

    def run(self, best: FittedTree | None) -> GoodTrees:
        trees, required = list[GoodTree](), list[int]()
        try:
            first = self._first(best)
            self._most = first.objective + self._epsilon
            self._add(trees, first)
            for column in sorted(first.asked):
                if self._best_without(frozenset([column])) is None:
                    required.append(column)
            waiting = [_entry(first.objective, frozenset())]
            if len(trees) < self._limit:
                self._enumerate(waiting, trees)
        except _Stopped:
            return GoodTrees(trees, required, False, self._searches)
        return GoodTrees(trees, required, not waiting or not first.asked, self._searches)

    def _enumerate(self, waiting: list[tuple[Any, ...]], trees: list[GoodTree]) -> None:
        """Look at the sets of columns that wait, the least cost first, until the trees are enough.

        A set waits with the cost of the tree before, which is no more than that of its own, and then, once
        that is known, with its own.
        """
        met, looked_at = {tree.asked for tree in trees}, set[frozenset[int]]()
        while waiting:
            cost, _, _, left_out = heapq.heappop(waiting)
            if left_out in looked_at:
                continue
            found = self._best_without(left_out)
            if found is None:
                continue
            if found.objective > cost:
                heapq.heappush(waiting, _entry(found.objective, left_out))
                continue
            looked_at.add(left_out)
            if found.asked not in met:
                met.add(found.asked)
                self._add(trees, found)
            for column in found.asked:
                heapq.heappush(waiting, _entry(found.objective, left_out | {column}))
            if len(trees) >= self._limit:
                return

    def _add(self, trees: list[GoodTree], tree: GoodTree) -> None:
        trees.append(tree)
        self._budget.record(tree.objective, tree.objective - trees[0].objective, 1.0)
        if self._budget.stopped_by is not None:
            raise _Stopped

    def _first(self, best: FittedTree | None) -> GoodTree:
        """Return the best tree of all."""
        if best is not None:
            found: GoodTree | None = GoodTree(best, self._cost(best))
            self._known[frozenset()] = found
        else:
            found = self._best_without(frozenset())
        if found is None:
            raise _Stopped
        return found

    def _best_without(self, left_out: frozenset[int]) -> GoodTree | None:
        """Return the best tree without some columns, None where it is not good."""
        if left_out not in self._known:
            self._known[left_out] = self._looked_up(left_out)
        return self._known[left_out]

    def _looked_up(self, left_out: frozenset[int]) -> GoodTree | None:
        for fewer, tree in self._known.items():
            if fewer <= left_out and (tree is None or not tree.asked & left_out):
                return tree
        return self._search(left_out)

    def _search(self, left_out: frozenset[int]) -> GoodTree | None:
        if self._budget.exhausted():
            raise _Stopped
        self._searches += 1
        rows, rules = self._rows, self._rules
        found = search(rows, rules, self._budget, self._most, self._criterion, left_out)
        cost = self._cost(found.tree)
        if not found.complete and found.lower_bound <= self._most:
            raise _Stopped
        if cost > self._most:
            return None
        return GoodTree(self._with_reasons(found.tree) if left_out else found.tree, cost, left_out)

    def _cost(self, tree: FittedTree) -> float:
        return objective_of(tree, self._rules.objective, self._rules.leaf_penalty)

    def _with_reasons(self, tree: FittedTree) -> FittedTree:
        """Return the tree whose leaves are not said to be equal in every column where some were left out."""
        reason = tree.reason.copy()
        ended = tree.apply(self._rows.X)[self._rows.counting]
        for leaf in np.flatnonzero(reason == Reason.EXHAUSTED).tolist():
            if not self._all_columns.are_equal(np.flatnonzero(ended == leaf)):
                reason[leaf] = Reason.LIMIT
        return replace(tree, reason=reason)

    @cached_property
    def _all_columns(self) -> Any:
        return search_columns(self._rows, self._rules.binary, self._rules.unknown_best)


def _entry(cost: float, left_out: frozenset[int]) -> tuple[Any, ...]:
    """Return what orders sets of columns: by cost, then by how many they are, then by number."""
    return cost, len(left_out), sorted(left_out), left_out
