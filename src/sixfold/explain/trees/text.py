"""A tree as text: indented, as if/then rules, as plain data, and in the language of Graphviz.

::

    8 rows, entropy 0.954
    ├─ shadow = no → yes 100%, 1 row
    ├─ shadow = yes → no 100%, 3 rows
    └─ shadow unknown: 4 rows, entropy 1
       ├─ garlic = no → yes 100%, 2 rows
       └─ garlic = yes → no 100%, 2 rows

Every function walks the nodes in their order, parents first, so that a tree as deep as it has rows is no
matter. Shares are of the weight; rows are counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from sixfold.explain.trees.names import TreeNames
from sixfold.explain.trees.words import (
    MEASURES,
    REASONS,
    branch_conditions,
    branch_words,
    by_weight,
    category_values,
    check_shown,
    class_word,
    column_decimals,
    condition_words,
    cut_nodes,
    end_words,
    leaf_conditions,
    more_branches,
    number,
    plain,
    share_words,
    shown_branches,
    word,
)
from sixfold.plain_words import counted
from sixfold.solvers.trees.fitted_tree import FittedTree, Reason


def export_text(
    tree: FittedTree,
    names: TreeNames,
    *,
    max_depth: int | None = None,
    decimals: int | None = 3,
    max_categories: int | None = 8,
    max_branches: int | None = 30,
) -> str:
    """Return the tree as indented lines, see :meth:`~sixfold.DecisionTreeClassifier.export_text`."""
    check_shown(max_depth, decimals, max_categories, max_branches)
    writer = _NodeWords(tree, names, decimals)
    cut = cut_nodes(tree, max_depth)
    lines: list[str] = []
    starts, indents = {0: ""}, {0: ""}  # how the line of a node starts, and those below it
    rests: dict[int, list[str]] = {}  # lines of branches that are not shown, by the node they come before
    for node, leaf in enumerate(tree.is_leaf.tolist()):
        lines += reversed(rests.pop(node, []))  # the innermost first
        if node not in starts:  # below a node that is cut, or not shown
            continue
        lines.append(starts.pop(node) + writer.line(node, cut.get(node)))
        if leaf or node in cut:
            continue
        branches, hidden = shown_branches(tree, node, max_branches)
        last_child = max(branches)
        for child, condition in branches.items():
            last = child == last_child and not hidden
            test = condition_words(condition, names, writer.decimals, max_categories)
            ends = tree.column[child] < 0 or child in cut
            starts[child] = f"{indents[node]}{'└─ ' if last else '├─ '}{test}{' → ' if ends else ': '}"
            indents[child] = indents[node] + ("   " if last else "│  ")
        if hidden:
            after = rests.setdefault(int(tree.last[node]) + 1, [])
            after.append(f"{indents[node]}└─ {writer.rest(hidden)}")
    lines += reversed(rests.pop(tree.node_count, []))
    return "\n".join(lines)


class _NodeWords:
    """What a line says of a node."""

    def __init__(self, tree: FittedTree, names: TreeNames, decimals: int | None) -> None:
        self.tree, self.names, self.digits = tree, names, decimals
        self.decimals = column_decimals(tree, decimals)
        self.measure, self.weighted = MEASURES[tree.unit_name], by_weight(tree)

    def line(self, node: int, below: int | None) -> str:
        """Return the rows of a node, and the answer of a leaf or of a node with so many left out below."""
        if self.tree.column[node] >= 0 and below is None:
            return self.rows(node)
        return ", ".join([self.answer(node), self.rows(node), *self.notes(node, below)])

    def notes(self, node: int, below: int | None) -> list[str]:
        """Return what there is to say of a node where the text ends and the tree does, or should, not."""
        if below is not None:
            return [f"... {counted(below, 'node')} below"]
        return [REASONS[Reason.STOPPED]] if self.tree.reason[node] == Reason.STOPPED else []

    def rest(self, hidden: Iterable[int]) -> str:
        """Return how many branches are not shown, and the rows that take them."""
        children = list(hidden)
        return f"... {more_branches(len(children))}, {counted(int(self.tree.rows[children].sum()), 'row')}"

    def answer(self, node: int) -> str:
        """Return the class of the greatest share, and the share."""
        answer = self.tree.answer[node]
        share = share_words(self.tree.shares[node, answer], self.weighted)
        return f"{class_word(self.names.classes[answer])} {share}"

    def rows(self, node: int) -> str:
        """Return the number of rows, and the impurity where there is any."""
        text = counted(int(self.tree.rows[node]), "row")
        impurity = self.tree.impurity[node]
        return text if impurity == 0 else f"{text}, {self.measure} {number(impurity, self.digits)}"


def export_rules(
    tree: FittedTree,
    names: TreeNames,
    *,
    decimals: int | None = 3,
    max_categories: int | None = None,
) -> str:
    """Return one if/then sentence a leaf, in the order of the leaves, each on a line.

    All that a path asks of a column is one condition. A row that meets no rule, because a value was not seen
    on its way, has the answer of the node where it stops. For the parameters see
    :meth:`~sixfold.DecisionTreeClassifier.export_rules`.
    """
    check_shown(None, decimals, max_categories)
    writer = _NodeWords(tree, names, decimals)
    lines = []
    for node, path in leaf_conditions(tree):
        conditions = []
        for condition in path:
            text = condition_words(condition, names, writer.decimals, max_categories)
            conditions.append(f"({text})" if condition.known and condition.unknown else text)
        start = f"if {' and '.join(conditions)} then" if conditions else "always"
        lines.append(f"{start} {writer.answer(node)} ({writer.rows(node)})")
    return "\n".join(lines)


def to_dict(tree: FittedTree, names: TreeNames) -> dict[str, Any]:
    """Return the tree as nested plain data that JSON can hold, with nothing rounded or shortened.

    Parameters
    ----------
    tree : FittedTree
    names : TreeNames

    Returns
    -------
    dict
        ``columns``, ``classes``, ``unit`` and ``root``. A node has ``node`` (its number), ``rows``,
        ``counts`` (the weight of each class), ``impurity``, ``answer``, ``reason`` (why it was not split, in
        words), ``column``, ``test``, ``threshold`` and ``branches``; a branch has ``test``, ``values`` (its
        categories; None for numbers), ``unknown`` (whether unknown values take it) and ``child``, the node
        it leads to.
    """
    exact = column_decimals(tree, None)
    nodes: list[dict[str, Any]] = [{} for _ in range(tree.node_count)]
    for node, data in enumerate(nodes):
        split = bool(tree.column[node] >= 0)
        column = names.columns[tree.column[node]] if split else None
        branches = branch_conditions(tree, node) if split else {}
        threshold = float(tree.threshold[node]) if split else math.nan
        data |= {
            "node": node,
            "rows": int(tree.rows[node]),
            "counts": tree.totals[node].tolist(),
            "impurity": float(tree.impurity[node]),
            "answer": plain(names.classes[tree.answer[node]]),
            "reason": end_words(tree, node),
            "column": None if column is None else str(column),
            "test": next((condition_words(one, names, exact) for one in branches.values()), None),
            "threshold": threshold if math.isfinite(threshold) else None,
            "branches": [
                {
                    "test": condition_words(condition, names, exact),
                    "values": None
                    if condition.codes is None
                    else [plain(value) for value in category_values(condition, names)],
                    "unknown": condition.unknown,
                    "child": nodes[child],
                }
                for child, condition in branches.items()
            ],
        }
    return {
        "columns": [str(column) for column in names.columns],
        "classes": [plain(label) for label in names.classes],
        "unit": tree.unit_name,
        "root": nodes[0],
    }


def export_graphviz(
    tree: FittedTree,
    names: TreeNames,
    *,
    max_depth: int | None = None,
    decimals: int | None = 3,
    max_categories: int | None = 4,
    max_branches: int | None = 12,
) -> str:
    """Return the tree in DOT, see :meth:`~sixfold.DecisionTreeClassifier.export_graphviz`."""
    check_shown(max_depth, decimals, max_categories, max_branches)
    writer = _NodeWords(tree, names, decimals)
    cut = cut_nodes(tree, max_depth)
    lines = [
        "digraph tree {",
        '  graph [ordering="out"];',
        '  node [shape="box", style="rounded", fontname="Helvetica"];',
        '  edge [fontname="Helvetica"];',
    ]
    shown = {0}
    for node, leaf in enumerate(tree.is_leaf.tolist()):
        if node not in shown:  # below a node that is cut, or not shown
            continue
        said = [writer.rows(node), writer.answer(node)]
        if leaf or node in cut:
            said = [*said[::-1], *writer.notes(node, cut.get(node))]
        else:
            said = [word(names.columns[tree.column[node]]), *said]
        label = "\\n".join(map(_dot, said))
        lines.append(f'  {node} [label="{label}"];')
        if leaf or node in cut:
            continue
        branches, hidden = shown_branches(tree, node, max_branches)
        for child, condition in branches.items():
            label = _dot(branch_words(condition, names, writer.decimals, max_categories))
            lines.append(f'  {node} -> {child} [label="{label}"];')
            shown.add(child)
        if hidden:
            lines.append(f'  rest{node} [label="{writer.rest(hidden)}", style="rounded,dashed"];')
            lines.append(f"  {node} -> rest{node};")
    return "\n".join([*lines, "}"])


def _dot(text: str) -> str:
    """Return text as it stands between the quotes of a DOT string, where & starts an entity of HTML."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
