"""Trees from sparse tables: the tree of :mod:`~sixfold.solvers.trees.growth`, without writing zeros out.

What is not stored is 0, like zeros that are, and a stored NaN is unknown. At a node with class totals w_c the
rows that are 0 in a column have

    w_c(zeros) = w_c - sum of the stored rows of class c,

so that a column costs what it has stored among the rows of the node. All open nodes of a level are searched
in one pass: each column's entries, sorted by value once, stand in groups, one for each open node, and follow
their rows to the children (as in SPRINT: Shafer, Agrawal and Mehta 1996). A level costs time in proportion to
the entries of its open nodes, and lists take 20 bytes an entry. The loops are
``native/trees/sparse/sparse_tree.cpp``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.solvers.trees.growth import GrowthRules, counted, finished
from sixfold.solvers.trees.tree import Tree

Array = NDArray[Any]


def grow_sparse(
    X: Any,
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
    X : SciPy sparse array or matrix of shape (rows, columns)
        Numbers. In CSC format, sorted, it is not copied.
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
    given = labels, weight, counted(weight, rows), classes
    grown = core.grow_sparse_tree(
        *_parts(X.tocsc()),
        X.shape[0],
        *given,
        rules.criterion,
        rules.unknown_best,
        *rules.limits,
        budget.seconds_left,
        budget.flag,
    )
    return finished(np.zeros(X.shape[1], dtype=np.uint8), grown, budget)


def apply_sparse(tree: Tree, X: Any) -> NDArray[np.int32]:
    """Return the node at which each row of a sparse table ends.

    Parameters
    ----------
    tree : Tree
        Whose columns are all numbers.
    X : SciPy sparse array or matrix of shape (rows, columns)
        In CSR format, sorted, it is not copied.
    """
    return core.apply_sparse_tree(
        *_parts(X.tocsr()),
        tree.kinds,
        tree.column,
        tree.threshold,
        tree.first,
        tree.code,
        tree.child,
        tree.unknown,
    )


def _parts(X: Any) -> tuple[Array, Array, Array]:
    """Return values, indices (sorted, each once) and starts; those of X itself where they will do."""
    if max(X.shape) > np.iinfo(np.int32).max:
        raise ValueError(
            f"Sparse tables may have at most 2,147,483,647 rows or columns, not {max(X.shape):,}."
        )
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    values = X.data if X.dtype == np.float32 else X.data.astype(np.float64, copy=False)
    return values, X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False)
