"""ID3: grow a tree from the constant model, each split the best there is at its node.

Of all columns and all thresholds (or categories) the split with the least weighted average entropy is taken,

    H(S_1, ..., S_k) = sum_j |S_j| / |S| H(S_j),      H(S) = - sum_c p_c log2 p_c,

and its parts are grown in the same way, until rows are of one class, equal in every column, or at a limit.
Ties go to the lowest column, then to the lowest threshold; averages within 1e-12 are ties. No split that any
engine chooses is worse than one that an exhaustive search would find.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.solvers.trees.tree import Tree

Array = NDArray[Any]

CRITERIA = ("entropy", "gini", "gain_ratio", "homogeneous")
TIE = 1e-12  # averages this close are equal


@dataclass(frozen=True)
class GrowthRules:
    """How a split is chosen, and when a node is not split.

    Attributes
    ----------
    criterion : {"entropy", "gini", "gain_ratio", "homogeneous"}
    binary : bool
        Whether categories are put into two groups instead of a branch each.
    unknown_best : bool
        Whether unknown values join the child that suits best instead of having a branch.
    max_depth : int or None
    min_samples_split : int
    min_samples_leaf, min_leaf_weight : int and float
        The fewest rows and the least total weight of at least two of the children of a split.
    min_impurity_decrease : float
        The least gain, times the share of the weight that the node has; in bits for entropies.
    max_columns : int or None
        How many columns are looked at in a node; None for all.
    seed : int
        Of the choice of columns.
    """

    criterion: str = "entropy"
    binary: bool = False
    unknown_best: bool = False
    max_depth: int | None = None
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_leaf_weight: float = 0.0
    min_impurity_decrease: float = 0.0
    max_columns: int | None = None
    seed: int = 0

    @property
    def limits(self) -> tuple[float, ...]:
        """Return when a node is not split, and which columns are drawn, as the native engines take it."""
        return (
            -1 if self.max_depth is None else self.max_depth,
            self.min_samples_split,
            self.min_samples_leaf,
            self.min_leaf_weight,
            self.min_impurity_decrease,
            self.max_columns or 0,
            self.seed,
        )


def grow(
    X: Array,
    kinds: NDArray[np.uint8],
    labels: NDArray[np.int32],
    classes: int,
    rules: GrowthRules,
    budget: Budget,
    weight: NDArray[np.float64] | None = None,
    rows: NDArray[np.int64] | None = None,
) -> Tree:
    """Return the tree that the rules grow; what the budget does not allow for is left unsplit.

    Parameters
    ----------
    X : ndarray of shape (rows, columns)
        Numbers and codes of categories; NaN is unknown.
    kinds : ndarray of uint8, shape (columns,)
        0 for numbers, 1 for categories.
    labels : ndarray of int32, shape (rows,)
        The class of each row, counted from 0.
    classes : int
        How many classes there are.
    rules : GrowthRules
    budget : Budget
    weight : ndarray of shape (rows,), optional
        How much each row counts.
    rows : ndarray of int64, optional
        The rows to grow from, in order; None for all that have weight.
    """
    choice = rules.criterion, rules.binary, rules.unknown_best
    given = labels, weight, counted(weight, rows), classes
    grown = core.grow_tree(X, kinds, *given, *choice, *rules.limits, budget.seconds_left, budget.flag)
    return finished(kinds, grown, budget)


def counted(weight: Array | None, rows: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
    """Return the rows to grow from: those given, or those that have weight; None for all."""
    return np.flatnonzero(weight) if rows is None and weight is not None and not weight.all() else rows


def finished(kinds: NDArray[np.uint8], grown: tuple[Any, ...], budget: Budget) -> Tree:
    """Return what an engine has grown as a tree; the budget notes why, if it was stopped."""
    *arrays, completed = grown
    if not completed:
        budget.exhausted()
    return Tree(kinds, *arrays)
