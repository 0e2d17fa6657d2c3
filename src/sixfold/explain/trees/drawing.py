"""What is drawn of a tree, and where: boxes with class bars, joined by lines that carry the tests.

A box says which column is asked for, or the class of a leaf; how many rows came there; and, as a bar, the
share of each class. Of many branches those with the most rows are drawn, and one box stands for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sixfold.explain.palette import OTHERS, class_colours
from sixfold.explain.text import fit_text, short_names, text_width
from sixfold.explain.trees.layout import Rectangle, tidy_centres
from sixfold.explain.trees.names import TreeNames
from sixfold.explain.trees.words import (
    MEASURES,
    REASONS,
    Condition,
    branch_words,
    by_weight,
    class_word,
    column_decimals,
    condition_words,
    cut_nodes,
    end_words,
    more_branches,
    number,
    percent,
    share_words,
    shown_branches,
    word,
)
from sixfold.plain_words import counted
from sixfold.solvers.trees.fitted_tree import FittedTree, Reason

HEADING, BODY = 12.0, 11.0  # font sizes
ROW = 15.0  # from one line of text to the next
PADDING, BAR, MARGIN = 9.0, 9.0, 16.0
MOST_TEXT, MOST_LABEL, LEAST_BOX = 220.0, 160.0, 76.0  # widths
STEM, LABEL_ROOM, LABEL = 16.0, 8.0, 15.0  # heights between two rows of boxes
LEGEND_ROW, SWATCH, LEAST_WIDTH = 22.0, 12.0, 320.0


@dataclass(frozen=True)
class NodeBox:
    """A node with its place, the lines it shows, and what it says in full."""

    node: int  # -1 - n for the branches of node n that are not drawn
    depth: int
    totals: NDArray[np.float64]  # the weight of each class
    box: Rectangle
    heading: str
    lines: tuple[str, ...]
    whole: str
    ends: bool  # a leaf, or a node below which nothing is shown
    unfinished: bool  # the tree goes on, or should


@dataclass(frozen=True)
class EdgeLabel:
    """The test on the way to a node: its place, what it shows, and what it says in full."""

    parent: int
    child: int
    box: Rectangle
    text: str
    whole: str
    unknown: bool  # only unknown values go this way


@dataclass(frozen=True)
class LegendEntry:
    """The name of a class beside its colour; class -1 stands for all that have no colour of their own."""

    label: int
    box: Rectangle
    text: str
    whole: str


@dataclass(frozen=True)
class Drawing:
    """Everything that is drawn."""

    width: float
    height: float
    nodes: dict[int, NodeBox]
    edges: list[EdgeLabel]
    legend: list[LegendEntry]
    colours: dict[int, int]  # class: number of its colour


def lay_out(
    tree: FittedTree,
    names: TreeNames,
    *,
    max_depth: int | None = 4,
    decimals: int | None = 3,
    max_branches: int | None = 12,
) -> Drawing:
    """Return what is drawn, and where; as :meth:`~sixfold.DecisionTreeClassifier.export_svg`."""
    cut, digits = cut_nodes(tree, max_depth), column_decimals(tree, decimals)
    boxes, edges, shown, weighted = {}, [], {0}, by_weight(tree)
    headings = _headings(tree, names)
    for node in range(tree.node_count):
        if node not in shown:
            continue
        boxes[node] = box = _node_box(tree, names, node, cut.get(node), decimals, weighted, headings)
        if box.ends:
            continue
        branches, hidden = shown_branches(tree, node, max_branches)
        shown |= branches.keys()
        edges += _labels(names, node, branches, digits)
        if hidden:
            boxes[-1 - node] = _rest_box(tree, names, node, list(hidden))
            edges.append(_sized(node, -1 - node, "others", "the other branches", False))
    order = {node: place for place, node in enumerate(boxes)}
    children: list[list[int]] = [[] for _ in boxes]
    slots = [box.box.width for box in boxes.values()]
    for edge in edges:
        children[order[edge.parent]].append(order[edge.child])
        slots[order[edge.child]] = max(slots[order[edge.child]], edge.box.width)
    centres = tidy_centres(children, slots)
    breadth = max(centre + slot / 2 for centre, slot in zip(centres, slots, strict=True))
    colours = class_colours(tree.totals[0])
    width = max(breadth, LEAST_WIDTH) + 2 * MARGIN
    legend, legend_height = _legend(names, colours, width)
    left = (width - breadth) / 2
    tops = _tops(boxes, MARGIN + legend_height)
    for (node, box), centre in zip(boxes.items(), centres, strict=True):
        place = replace(box.box, left=left + centre - box.box.width / 2, top=tops[box.depth])
        boxes[node] = replace(box, box=place)
    height = max(box.box.bottom for box in boxes.values()) + MARGIN
    return Drawing(width, height, boxes, [_placed(edge, boxes) for edge in edges], legend, colours)


def _headings(tree: FittedTree, names: TreeNames) -> dict[str, str]:
    """Return the classes and the columns that are asked for, as there is room for them, no two alike."""
    asked = np.unique(tree.column[tree.column >= 0]).tolist()
    for_all = [class_word(label) for label in names.classes] + [
        word(names.columns[column]) for column in asked
    ]
    whole = list(dict.fromkeys(for_all))
    short = short_names(whole, lambda part: text_width(part, HEADING, bold=True) <= MOST_TEXT)
    return dict(zip(whole, short, strict=True))


def _node_box(
    tree: FittedTree,
    names: TreeNames,
    node: int,
    below: int | None,
    decimals: int | None,
    weighted: bool,
    headings: dict[str, str],
) -> NodeBox:
    """Return the box of a node, with so many left out below, as large as it need be, not yet in its place."""
    answer = int(tree.answer[node])
    ends = bool(tree.column[node] < 0 or below is not None)
    stopped = bool(tree.reason[node] == Reason.STOPPED)
    heading = class_word(names.classes[answer]) if ends else word(names.columns[tree.column[node]])
    rows = counted(int(tree.rows[node]), "row")
    impurity = f"{MEASURES[tree.unit_name]} {number(float(tree.impurity[node]), decimals)}"
    share = share_words(tree.shares[node, answer], weighted)
    lines = [f"{share}, {rows}" if ends else f"{rows}, {impurity}"]
    if below is not None:
        lines.append(f"… {counted(below, 'node')} below")
    if stopped:
        lines.append(REASONS[Reason.STOPPED])
    whole = [f"node {node}: {heading}", f"{rows}, {impurity}", *_all_shares(names, tree.totals[node])]
    whole += [end_words(tree, node)] if tree.column[node] < 0 else []
    shown = headings[heading]
    return NodeBox(
        node=node,
        depth=int(tree.depth[node]),
        totals=tree.totals[node],
        box=_box_around(shown, lines),
        heading=shown,
        lines=tuple(lines),
        whole="\n".join(whole),
        ends=ends,
        unfinished=below is not None or stopped,
    )


def _rest_box(tree: FittedTree, names: TreeNames, node: int, children: list[int]) -> NodeBox:
    """Return the box that stands for the branches of a node that are not drawn."""
    heading, totals = f"… {more_branches(len(children))}", tree.totals[children].sum(axis=0)
    rows = counted(int(tree.rows[children].sum()), "row")
    return NodeBox(
        node=-1 - node,
        depth=int(tree.depth[node]) + 1,
        totals=totals,
        box=_box_around(heading, [rows]),
        heading=heading,
        lines=(rows,),
        whole="\n".join([heading, rows, *_all_shares(names, totals)]),
        ends=True,
        unfinished=True,
    )


def _all_shares(names: TreeNames, totals: NDArray[np.float64]) -> list[str]:
    shares, present = totals / totals.sum(), np.flatnonzero(totals)
    return [
        f"{percent(shares[label])} {class_word(names.classes[label])}: {number(totals[label])}"
        for label in present[np.argsort(-shares[present], kind="stable")].tolist()
    ]


def _box_around(heading: str, lines: list[str]) -> Rectangle:
    text = max(text_width(heading, HEADING, bold=True), *(text_width(line, BODY) for line in lines))
    height = 2 * PADDING + ROW * (1 + len(lines)) + BAR
    return Rectangle(0.0, 0.0, max(text + 2 * PADDING, LEAST_BOX), height)


def _labels(
    names: TreeNames, node: int, branches: dict[int, Condition], decimals: Sequence[int | None]
) -> list[EdgeLabel]:
    """Return the labels of the lines that leave a node, not yet in their places."""
    labels = []
    for child, condition in branches.items():
        text, whole = _label(condition, names, decimals), condition_words(condition, names, decimals)
        labels.append(_sized(node, child, text, whole, not condition.known))
    return labels


def _sized(parent: int, child: int, text: str, whole: str, unknown: bool) -> EdgeLabel:
    size = Rectangle(0.0, 0.0, text_width(text, BODY) + 6.0, LABEL)
    return EdgeLabel(parent, child, size, text, whole, unknown)


def _label(condition: Condition, names: TreeNames, decimals: Sequence[int | None]) -> str:
    """Return a test as there is room for it: of many categories the first, and how many more there are."""
    known = replace(condition, unknown=False)
    # With its comma the shortest name is 15 wide, and there is room for ten of them.
    for most in (None, *range(10, 0, -1)):
        text = branch_words(known, names, decimals, most)
        if text_width(text, BODY) <= MOST_LABEL:
            break
    return fit_text(text, MOST_LABEL, BODY) + (" or unknown" if condition.unknown and condition.known else "")


def _tops(boxes: dict[int, NodeBox], top: float) -> list[float]:
    """Return where each row of boxes begins."""
    heights: dict[int, float] = {}
    for box in boxes.values():
        heights[box.depth] = max(heights.get(box.depth, 0.0), box.box.height)
    tops = [top]
    for depth in range(len(heights) - 1):
        tops.append(tops[-1] + heights[depth] + STEM + LABEL + 2 * LABEL_ROOM)
    return tops


def _placed(edge: EdgeLabel, boxes: dict[int, NodeBox]) -> EdgeLabel:
    child = boxes[edge.child].box
    left, top = child.centre - edge.box.width / 2, child.top - LABEL_ROOM - LABEL
    return replace(edge, box=replace(edge.box, left=left, top=top))


def _legend(names: TreeNames, colours: dict[int, int], width: float) -> tuple[list[LegendEntry], float]:
    """Return the classes beside their colours, in lines as long as the drawing is wide; and their height."""
    labels = [label for label, colour in colours.items() if colour != OTHERS]
    whole = [(label, class_word(names.classes[label])) for label in sorted(labels)]
    if len(labels) < len(colours):
        others = len(colours) - len(labels)
        whole.append((-1, f"{others} other {'class' if others == 1 else 'classes'}"))
    entries, left, top = [], MARGIN, MARGIN
    shown = short_names([name for _, name in whole], lambda part: text_width(part, BODY) <= MOST_TEXT)
    for (label, name), text in zip(whole, shown, strict=True):
        size = SWATCH + 6.0 + text_width(text, BODY)
        if left > MARGIN and left + size > width - MARGIN:
            left, top = MARGIN, top + LEGEND_ROW
        entries.append(LegendEntry(label, Rectangle(left, top, size, SWATCH), text, name))
        left += size + 16.0
    return entries, top + LEGEND_ROW + 4.0 - MARGIN
