"""A decision tree from a file is one: every node but the root has one parent, which comes before it.

Nodes are numbered depth first, so the nodes below node i are i + 1 to last[i]. That holds if and only if each
node is inside as many of these stretches as it has nodes above it and itself: a stretch holds all nodes that
are below its node, and no other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.app.model_file.attributes import Attributes

Array = NDArray[Any]


def check_tree(a: Attributes) -> None:
    """Check the arrays of a tree."""
    kinds = a.array("kinds", "u", (None,))
    a.require_indices(kinds, 2, "kinds")
    column = a.indices("column", kinds.size, least=-1)
    nodes = column.size
    a.require(nodes >= 1, "column", "is of a tree without nodes")
    first = a.indices("first", 1 << 62, (nodes + 1,))
    code = a.indices("code", 1 << 31)
    child = a.indices("child", nodes, code.shape, least=1)
    unknown = a.indices("unknown", nodes, (nodes,), least=-1)
    threshold = a.array("threshold", "f", (nodes,), finite=False)
    a.indices("reason", 6, (nodes,))
    a.indices("rows", 1 << 62, (nodes,))
    totals = a.array("totals", "f", (nodes, None))
    types = {
        "kinds": "uint8", "column": "int32", "threshold": "float64", "first": "int64", "code": "int32",
        "child": "int32", "unknown": "int32", "reason": "uint8", "rows": "int64", "totals": "float64",
    }  # fmt: skip
    for name, wanted in types.items():
        found = a.values[name]
        a.require(found.dtype == wanted and found.flags.c_contiguous, name, f"is no array of {wanted}")
    positive = totals.shape[1] >= 1 and (totals >= 0).all()
    with np.errstate(over="ignore"):
        sums = totals.sum(axis=1) if positive else totals
    a.require(
        positive and np.isfinite(sums).all() and (sums > 0).all(), "totals", "are no weights of classes"
    )
    steps = np.diff(first)
    a.require(first[0] == 0 and (steps >= 0).all() and first[-1] == code.size, "first", "is in no order")
    leaf = column < 0
    a.require(not (leaf & ((steps > 0) | (unknown >= 0))).any(), "first", "gives leaves branches")
    a.require(not (~leaf & (steps == 0) & (unknown < 0)).any(), "first", "gives nodes no branches")
    owner = np.repeat(np.arange(nodes), steps)
    _check_branches(a, kinds, column, threshold, owner)
    _check_parents(a, owner, child, unknown)
    _check_words(a)


def _check_branches(a: Attributes, kinds: Array, column: Array, threshold: Array, owner: Array) -> None:
    """Check that codes are in order in each node, 0 and 1 for numbers, whose thresholds are numbers."""
    code = a.values["code"]
    rising = (np.diff(code) > 0) | (np.diff(owner) > 0)
    a.require(rising.all(), "code", "is not in ascending order within a node")
    inner = column >= 0
    numbers = inner.copy()
    numbers[inner] = kinds[column[inner]] == 0
    a.require(not (numbers[owner] & (code > 1)).any(), "code", "has more than two branches for numbers")
    known = ~np.isnan(threshold) & (threshold > -np.inf)
    a.require(known[numbers].all(), "threshold", "is no number where numbers are split")


def _check_parents(a: Attributes, owner: Array, child: Array, unknown: Array) -> None:
    """Check that every node but the root has one parent, before it, and that the order is depth first."""
    nodes = unknown.size
    asked = np.flatnonzero(unknown >= 0)
    above = np.concatenate([owner, asked])
    below = np.concatenate([child, unknown[asked]])
    a.require((below > above).all(), "child", "leads to a node that does not come after its own")
    parent = np.full(nodes, -1, dtype=np.int64)
    parent[below] = above
    a.require((parent[below] == above).all(), "child", "has two parents")
    a.require((parent[1:] >= 0).all(), "child", "leaves nodes without a parent")
    parents, last, depth = parent.tolist(), list(range(nodes)), [1] * nodes
    for node in range(nodes - 1, 0, -1):
        last[parents[node]] = max(last[parents[node]], last[node])
    for node in range(1, nodes):
        depth[node] += depth[parents[node]]
    steps = np.ones(nodes + 1, dtype=np.int64)
    steps[-1] = 0
    np.subtract.at(steps, np.array(last) + 1, 1)
    a.require(np.array_equal(np.cumsum(steps[:-1]), depth), "child", "is not in the order of depth first")


def _check_words(a: Attributes) -> None:
    a.text("criterion", ("entropy", "gini", "gain_ratio", "homogeneous"))
    unit, limits = a.number("unit"), a.take("limits", dict)
    a.require(unit > 0, "unit", "is not above 0")
    plain = (str, int, float, type(None), bool)
    a.require(all(type(name) is str for name in limits), "limits", "have names that are no text")
    a.require(all(type(value) in plain for value in limits.values()), "limits", "are no numbers")
