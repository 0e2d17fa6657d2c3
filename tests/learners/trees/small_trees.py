"""Trees made by hand, from nested calls: leaf(totals), split(column, ...)."""

from dataclasses import dataclass, field

import numpy as np

from sixfold.explain.trees.names import TreeNames
from sixfold.solvers.trees.fitted_tree import FittedTree, Reason


@dataclass
class Node:
    totals: list
    reason: int
    column: int = -1
    threshold: float = np.nan
    branches: dict = field(default_factory=dict)  # code: Node; one Node may have several codes
    unknown: "Node | None" = None
    rows: int | None = None


def leaf(*totals, reason=None, rows=None):
    pure = np.count_nonzero(totals) == 1
    return Node(
        list(totals), (Reason.PURE if pure else Reason.LIMIT) if reason is None else reason, rows=rows
    )


def split(column, branches, unknown=None, threshold=np.nan):
    """A node with the totals of its children; branches by code, or a pair of nodes for numbers."""
    if isinstance(branches, tuple):
        branches = dict(enumerate(branches))
    children = _distinct([*branches.values(), *([] if unknown is None else [unknown])])
    totals = np.sum([child.totals for child in children], axis=0).tolist()
    rows = None if all(c.rows is None for c in children) else sum(_rows(c) for c in children)
    return Node(totals, Reason.SPLIT, column, threshold, branches, unknown, rows)


def _rows(node):
    return int(sum(node.totals)) if node.rows is None else node.rows


def _distinct(nodes):
    return list({id(node): node for node in nodes}.values())


def build(root, kinds):
    """Return the nested nodes as a tree, numbered depth first."""
    order, number = [], {}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        number[id(node)] = len(order)
        order.append(node)
        below = [*node.branches.values(), *([] if node.unknown is None else [node.unknown])]
        waiting += _distinct(below)[::-1]
    codes = [sorted(node.branches) for node in order]
    return FittedTree(
        kinds=np.array(kinds, dtype=np.uint8),
        column=np.array([node.column for node in order], dtype=np.int32),
        threshold=np.array([node.threshold for node in order], dtype=np.float64),
        first=np.concatenate([[0], np.cumsum([len(some) for some in codes])]).astype(np.int64),
        code=np.array([code for some in codes for code in some], dtype=np.int32),
        child=np.array(
            [number[id(node.branches[c])] for node, some in zip(order, codes, strict=True) for c in some],
            dtype=np.int32,
        ),
        unknown=np.array(
            [-1 if node.unknown is None else number[id(node.unknown)] for node in order], dtype=np.int32
        ),
        reason=np.array([node.reason for node in order], dtype=np.uint8),
        rows=np.array([_rows(node) for node in order], dtype=np.int64),
        totals=np.array([node.totals for node in order], dtype=np.float64),
    )


def route(tree, row):
    """Return the node where a row ends, by the definition."""
    node = 0
    while (column := tree.column[node]) >= 0:
        value = row[column]
        if np.isnan(value):
            after = int(tree.unknown[node])
        else:
            code = int(value) if tree.kinds[column] else int(value > tree.threshold[node])
            after = tree.branches(node).get(code, -1)
        if after < 0:
            return node
        node = after
    return node


VAMPIRES = TreeNames(
    ("shadow", "garlic", "complexion", "accent"),
    (("no", "yes"), ("no", "yes"), ("average", "pale", "ruddy"), ("heavy", "none", "odd")),
    ("no", "yes"),
)


def vampires():
    """The worked example: eight people, some of whom were met in the dark."""
    garlic = split(1, {0: leaf(0, 2), 1: leaf(2, 0)})
    return build(split(0, {0: leaf(0, 1), 1: leaf(3, 0)}, unknown=garlic), [1, 1, 1, 1])


IRIS = TreeNames(("length", "width"), (None, None), ("setosa", "versicolor", "virginica"))


def iris():
    """Numbers asked for twice on a path, and mixed leaves."""
    broad = split(0, (leaf(0, 2, 4), leaf(0, 0, 43)), threshold=4.85)
    narrow = split(1, (leaf(0, 47, 1), leaf(0, 1, 2)), threshold=1.35)
    return build(split(1, (leaf(50, 0, 0), split(1, (narrow, broad), threshold=1.75)), threshold=0.8), [0, 0])


COLOURS = TreeNames(("colour", "size"), (("red", "green", "blue", "white", "black"), None), ("cheap", "dear"))


def colours():
    """Groups of categories, unknown values with the better side, known against unknown."""
    left = split(0, {0: leaf(4, 1), 2: (rest := leaf(1, 3)), 3: rest})
    right = split(1, {0: leaf(0, 6)}, unknown=leaf(1, 2), threshold=np.inf)
    return build(split(0, {0: left, 1: right, 2: left, 3: left, 4: right}, unknown=left), [1, 0])


def one_leaf():
    return build(leaf(5, 3), [1, 1, 1, 1])
