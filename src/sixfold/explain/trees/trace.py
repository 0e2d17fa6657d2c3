"""The trace of a tree: for every node the splits it could have had, as one works them out by hand.

    gain of a column  =  entropy of the node  -  weighted average of the entropies of its children

for the best split by each column, of which the one with the least average was made; or, for gain_ratio, that
with the largest ratio of its gain to what the sizes of its parts tell. Of columns drawn at random, only those
are shown that the node has looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.explain.trees.names import TreeNames
from sixfold.explain.trees.words import (
    MEASURES,
    class_word,
    column_decimals,
    condition_words,
    end_words,
    number,
    path_conditions,
    word,
)
from sixfold.plain_words import counted
from sixfold.solvers.trees.exhaustive_splits import ColumnSplit
from sixfold.solvers.trees.fitted_tree import FittedTree
from sixfold.solvers.trees.growth import GrowthRules, TrainingRows
from sixfold.solvers.trees.routing import NodeRows, SplitTables

Array = NDArray[Any]

MOST_CATEGORIES = 6  # of a group that are spelt out


@dataclass(frozen=True)
class TracedSplit:
    """The best split of a node by one column.

    Attributes
    ----------
    column : str
    split : str
        How it divides the rows: at a threshold, or which categories go together.
    average : float
        The average impurity of the parts, weighted.
    gain : float
        The impurity of the node minus this average.
    chosen : bool
        Whether the node was split so.
    ratio : float or None
        The gain relative to how finely the split divides; only where that decides.
    """

    column: str
    split: str
    average: float
    gain: float
    chosen: bool
    ratio: float | None = None


@dataclass(frozen=True)
class TracedNode:
    """A node and the splits it could have had.

    Attributes
    ----------
    node : int
    where : str
        What the rows of the node have in common; empty for the root.
    rows : int
    totals : dict
        The weight of each class.
    impurity : float
    splits : tuple of TracedSplit
        One for each column that divides the rows and was looked at; none where no split was looked for, or
        where time was over.
    end : str
        Why the node was not split; empty where it was.
    """

    node: int
    where: str
    rows: int
    totals: dict[str, float]
    impurity: float
    splits: tuple[TracedSplit, ...]
    end: str

    def to_dict(self) -> dict[str, Any]:
        """Return the node as plain data."""
        return asdict(self)


@dataclass(frozen=True)
class Trace:
    """Every node of a tree with the splits it could have had; print it, or go through its nodes.

    Attributes
    ----------
    nodes : tuple of TracedNode
    measure : str
        What impurities are called.
    """

    nodes: tuple[TracedNode, ...]
    measure: str

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[TracedNode]:
        return iter(self.nodes)

    def __getitem__(self, number: int) -> TracedNode:
        return self.nodes[number]

    def to_dict(self) -> dict[str, Any]:
        """Return the trace as plain data."""
        return {"measure": self.measure, "nodes": [node.to_dict() for node in self.nodes]}

    def __str__(self) -> str:
        """Return a small table for every node."""
        return "\n\n".join(self._shown(node) for node in self.nodes)

    def _shown(self, node: TracedNode) -> str:
        classes = ", ".join(_total(total, name) for name, total in node.totals.items() if total > 0)
        lines = [
            f"Node {node.node}: {node.where or 'all rows'}",
            f"  {counted(node.rows, 'row')} ({classes}), {self.measure} {node.impurity:.4f}",
        ]
        if node.end:
            lines.append(f"  leaf: {node.end}")
        if not (node.splits or node.end):
            lines.append("  other splits were not looked at: the time was over")
        if node.splits:
            heads = ["column", "split", "average", "gain", *["ratio"] * (node.splits[0].ratio is not None)]
            table = [(*heads, "")]
            for one in node.splits:
                figures = (one.average, one.gain, one.ratio)
                shown = [f"{figure:.4f}" for figure in figures if figure is not None]
                table.append((one.column, one.split, *shown, "<- chosen" if one.chosen else ""))
            widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
            for row in table:
                cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
                lines.append(f"  {'  '.join(cells)}".rstrip())
        return "\n".join(lines)

    def inside(self, whole: FittedTree, tree: FittedTree) -> Trace:
        """Return the trace of a smaller tree inside the whole one, of which this is the trace.

        What a node could have been split by is shown for those, too, that are split no more.
        """
        nodes, place = [], 0
        for node, leaf in enumerate(tree.is_leaf.tolist()):
            end = end_words(tree, node) if leaf else ""
            nodes.append(replace(self.nodes[place], node=node, end=end))
            place = int(whole.last[place]) + 1 if leaf else place + 1  # both are numbered depth first
        return Trace(tuple(nodes), self.measure)


def _total(total: float, name: str) -> str:
    shown = class_word(name)
    return f"{number(total)} {name}" if shown == name else f"{number(total)} of {shown}"


def trace(
    tree: FittedTree, rows: TrainingRows, rules: GrowthRules, names: TreeNames, budget: Budget
) -> Trace:
    """Return the trace of a tree that was grown from these rows.

    Parameters
    ----------
    tree : FittedTree
    rows : TrainingRows
    rules : GrowthRules
    names : TreeNames
    budget : Budget
        When it is used up, the nodes that are left have no splits.
    """
    counting = np.flatnonzero(rows.counting)
    X, labels = rows.X[counting], rows.labels[counting]
    weight = np.ones(counting.size) if rows.weight is None else rows.weight[counting]
    tables = SplitTables(NodeRows(tree, X, labels, weight), rules)
    totals = np.ldexp(tree.weight, -rows.weight_exponent)
    traced, decimals = [], column_decimals(tree)
    for node in range(tree.node_count):
        splits: tuple[TracedSplit, ...] = ()
        if tree.column[node] >= 0 and not budget.exhausted():
            total = float(totals[node]) if rules.criterion == "gain_ratio" else None
            chosen = int(tree.column[node])
            splits = tuple(
                _traced(one, names, tree.unit, chosen, total, decimals[one.column]) for one in tables.of(node)
            )
        conditions = path_conditions(tree, node)
        traced.append(
            TracedNode(
                node,
                " and ".join(condition_words(one, names, decimals, MOST_CATEGORIES) for one in conditions),
                int(tree.rows[node]),
                {word(name): float(w) for name, w in zip(names.classes, tree.totals[node], strict=True)},
                float(tree.impurity[node]),
                splits,
                "" if tree.column[node] >= 0 else end_words(tree, node),
            )
        )
    measure = MEASURES[tree.unit_name]
    if measure == "entropy":
        measure = f"entropy in {tree.unit_name}"
    return Trace(tuple(traced), measure)


def _traced(
    split: ColumnSplit, names: TreeNames, unit: float, chosen: int, total: float | None, decimals: int | None
) -> TracedSplit:
    return TracedSplit(
        word(names.columns[split.column]),
        _divided(split, names, decimals),
        float(unit * split.average),
        float(unit * split.gain),
        bool(split.column == chosen),
        None if total is None else float(0.0 - split.score / total),
    )


def _divided(split: ColumnSplit, names: TreeNames, decimals: int | None) -> str:
    """Return how a split divides the values of its column."""
    if np.isinf(split.threshold):
        return "known | unknown"
    categories = names.categories[split.column]
    if categories is None:
        parts = [f"<= {number(split.threshold, decimals)}", f"> {number(split.threshold, decimals)}"]
    else:
        parts = [_group([word(categories[code]) for code in group]) for group in split.groups if group]
    if split.unknown >= len(parts):
        parts.append("unknown")
    elif split.unknown >= 0:
        parts[split.unknown] += " or unknown"
    most = parts if len(parts) <= MOST_CATEGORIES else [*parts[:MOST_CATEGORIES], "..."]
    return " | ".join(most)


def _group(values: list[str]) -> str:
    return ", ".join(values if len(values) <= MOST_CATEGORIES else [*values[:MOST_CATEGORIES], "..."])
