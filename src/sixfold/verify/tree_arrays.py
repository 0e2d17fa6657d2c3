"""The arrays of a tree are one, and the rows are where it says.

The nodes are numbered depth first: ``column`` (-1 in a leaf), ``threshold``, the branches ``first``,
``code``, ``child``, where unknown values go (``unknown``), and what each node has met: ``rows`` and the
weight of each class, ``totals``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.data.blocks import let_go, mapping_of
from sixfold.errors import CertificateError

Array = NDArray[Any]

ROUNDING = 1e-12  # of the objective, an average over the rows
ROW_NUMBERS = 1 << 23  # of rows that are gone through at a time
REASONS = (
    "Either the data are not those of the fit, or the tree was changed. If there were weights, "
    "pass the sample_weight of the fit."
)


@dataclass(frozen=True)
class GivenTree:
    """A tree and the rows it was made from."""

    tree: Any  # flat arrays: column, threshold, first, code, child, unknown, rows, totals
    X: Any  # the rows that count, numbers and codes of categories, NaN for what is unknown
    kinds: Array  # of columns: 0 for numbers, 1 for categories
    labels: Array
    weight: Array


def require_sound(claim: GivenTree) -> None:
    """Raise unless the arrays are a tree whose nodes are numbered depth first, of columns that there are."""
    tree, columns = claim.tree, claim.X.shape[1]
    count, leaf = tree.column.size, tree.column < 0
    if (
        {len(one) for one in (tree.threshold, tree.unknown, tree.rows, tree.totals)} != {count}
        or claim.labels.max(initial=0) >= tree.totals.shape[1]
        or tree.first.shape != (count + 1,)
        or tree.first[0] != 0
        or not tree.first[-1] == tree.child.size == tree.code.size
        or not np.array_equal(np.diff(tree.first) > 0, ~leaf)
    ):
        raise CertificateError(f"The arrays of the tree do not fit together. {REASONS}")
    if ((tree.column < -1) | (tree.column >= columns)).any() or not np.array_equal(tree.kinds, claim.kinds):
        raise CertificateError(f"The tree asks for columns that the {columns} of the data are not. {REASONS}")
    ways = np.concatenate([tree.child, tree.unknown[tree.unknown != -1]])
    visited: list[int] = []
    stack = [0]
    if not (leaf & (tree.unknown != -1)).any() and ((ways > 0) & (ways < count)).all():
        while stack and len(visited) < count:
            visited.append(stack.pop())
            stack += reversed(children_of(tree, visited[-1]))
    if stack or visited != list(range(count)):
        raise CertificateError(f"Not every node of the tree is reached once, depth first. {REASONS}")


def children_of(tree: Any, node: int) -> list[int]:
    """Return the children of a node in order, each once."""
    branches = tree.child[tree.first[node] : tree.first[node + 1]]
    return sorted({*branches.tolist(), *([int(tree.unknown[node])] if tree.unknown[node] != -1 else [])})


def route(claim: GivenTree) -> Iterator[Array]:
    """Give the rows that reach each node."""
    tree = claim.tree
    waiting = {0: np.arange(claim.labels.size)}
    for node in range(tree.column.size):
        rows = waiting.pop(node)
        yield rows
        if tree.column[node] < 0:
            continue
        x = cells(claim.X, rows, int(tree.column[node]))
        code = np.where(np.isnan(x), -1.0, x if claim.kinds[tree.column[node]] else x > tree.threshold[node])
        for child in children_of(tree, node):
            part = slice(tree.first[node], tree.first[node + 1])
            goes = np.isin(code, tree.code[part][tree.child[part] == child])
            waiting[child] = rows[goes | (np.isnan(x) & (tree.unknown[node] == child))]


class Reached:
    """The rows that reach each node of a sound tree, found some rows of the table at a time.

    They are kept in the order of the nodes where they end, in which those of any node are neighbours.

    Attributes
    ----------
    ends : ndarray of int16 or int32, shape (rows,)
        The node where each row ends.
    """

    def __init__(self, claim: GivenTree) -> None:
        tree, count = claim.tree, claim.labels.size
        nodes = tree.column.size
        self.ends = np.empty(count, dtype=np.int16 if nodes < 1 << 15 else np.int32)
        for some in row_blocks(claim.X):
            part = replace(claim, X=claim.X[some], labels=claim.labels[some], weight=claim.weight[some])
            ends = self.ends[some]
            for node, rows in enumerate(route(part)):
                ends[rows] = node
        self._order = np.argsort(self.ends, kind="stable")
        self._first = np.concatenate([[0], np.cumsum(np.bincount(self.ends, minlength=nodes))])
        self._last = list(range(nodes))
        for node in reversed(range(nodes)):
            self._last[node] = max([node, *(self._last[child] for child in children_of(tree, node))])

    def __len__(self) -> int:
        """Return how many nodes there are."""
        return len(self._last)

    def __getitem__(self, node: int) -> Array:
        """Return the rows that reach a node, in their order."""
        if node >= len(self):
            raise IndexError(node)
        return np.sort(self._order[self._first[node] : self._first[self._last[node] + 1]])


def row_blocks(X: Any) -> Iterator[slice]:
    """Go through the rows of a table, some at a time; pages of those that were read go back to their file."""
    step, mapping = max(ROW_NUMBERS // max(X.shape[1], 1), 1), mapping_of(X)
    for start in range(0, X.shape[0], step):
        some = slice(start, min(start + step, X.shape[0]))
        yield some
        if mapping is not None:
            let_go(mapping, X, some)


def _by_block(X: Array, rows: Array) -> Iterator[Array]:
    """Give those of some rows, in order, that are in each block of a table in a file."""
    for some in row_blocks(X):
        first, last = np.searchsorted(rows, [some.start, some.stop])
        if first < last:
            yield rows[first:last]


def gathered(X: Array, rows: Array) -> Array:
    """Return these rows, in order; of a table in a file few pages are held at a time."""
    if mapping_of(X) is None:
        return X[rows]
    parts = [X[some] for some in _by_block(X, rows)]
    return np.concatenate(parts) if parts else X[:0]


def cells(X: Any, rows: Array, column: int) -> Array:
    """Return what these rows have in a column."""
    if not sp.issparse(X) and mapping_of(X) is not None:
        parts = [X[some, column] for some in _by_block(X, rows)]
        return np.concatenate([np.empty(0), *parts]).astype(np.float64, copy=False)
    found = X[rows, [column]]
    return np.asarray(found.toarray() if sp.issparse(found) else found, dtype=np.float64).ravel()


def require_totals(claim: GivenTree, node: int, rows: Array) -> Array:
    """Return the class totals of a node; raise unless they are those that it says it has."""
    said, count = claim.tree.totals[node], int(claim.tree.rows[node])
    totals: Array = np.bincount(claim.labels[rows], claim.weight[rows], minlength=said.size)
    if rows.size != count or np.abs(totals - said).max() > ROUNDING * said.sum():
        raise CertificateError(
            f"Node {node} says that it has {count} rows and the class totals {said.tolist()}, but "
            f"{rows.size} rows reach it, with {totals.tolist()}. {REASONS}"
        )
    return totals
