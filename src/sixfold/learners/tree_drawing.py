"""A tree drawn as SVG: boxes with class bars, joined by lines that carry the tests.

A box says which column is asked for, or the class of a leaf; how many rows came there; and, as a bar, the
share of each class. What is shortened is given in full when the pointer rests on it. Nothing but attributes
is used, no style sheet and no script, so that a drawing can stand in any page, light or dark.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import numpy as np
from numpy.typing import NDArray

from sixfold.errors import InputError
from sixfold.learners.class_colours import OTHERS, class_colours, paint, patterns, tint
from sixfold.learners.fitted_tree import FittedTree
from sixfold.learners.text_width import FONT_FAMILY, fit_text, text_width
from sixfold.learners.tree_layout import Box, tidy_centres
from sixfold.learners.tree_names import TreeNames
from sixfold.learners.tree_words import (
    MEASURES,
    REASONS,
    Condition,
    branch_conditions,
    branch_words,
    column_decimals,
    condition_words,
    count,
    cut_nodes,
    number,
    percent,
    word,
)
from sixfold.solvers.tree import Reason, Tree

INK, FAINT, LINE, PAPER = "#1f2328", "#57606a", "#8c959f", "#ffffff"
HEADING, BODY = 12.0, 11.0  # font sizes
ROW = 15.0  # from one line of text to the next
PADDING, BAR, MARGIN = 9.0, 9.0, 16.0
MOST_TEXT, MOST_LABEL, LEAST_BOX = 220.0, 160.0, 76.0  # widths
STEM, LABEL_ROOM, LABEL = 16.0, 8.0, 15.0  # heights between two rows of boxes
LEGEND_ROW, SWATCH, LEAST_WIDTH = 22.0, 12.0, 320.0


def export_svg(
    tree: FittedTree,
    names: TreeNames,
    *,
    path: str | os.PathLike[str] | None = None,
    max_depth: int | None = 4,
    decimals: int | None = 3,
) -> str:
    """Return the tree as a drawing in SVG.

    Parameters
    ----------
    tree : FittedTree
    names : TreeNames
    path : str or path, default=None
        Where to write the drawing as well; a file that is there is replaced by the whole new one.
    max_depth : int, default=4
        How many tests deep the drawing goes; a node at which it ends says how many are below. None for all.
    decimals : int, default=3
        Of thresholds and impurities; None for every digit. Thresholds that would look the same
        have more.

    Returns
    -------
    str
    """
    drawing = lay_out(tree, names, max_depth=max_depth, decimals=decimals)
    svg = "\n".join(_svg(tree, names, drawing))
    if path is not None:
        _write(Path(path), svg)
    return svg


def _write(path: Path, text: str) -> None:
    """Write a file under another name and rename it, so that no half of it is ever there."""
    if not path.parent.is_dir():
        raise InputError(f"There is no folder {str(path.parent)!r} to write {path.name!r} to. Make it first.")
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_text(text, encoding="utf-8", newline="\n")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


# -- what is drawn, and where ------------------------------------------------------------------------------


@dataclass(frozen=True)
class NodeBox:
    """A node with its place, the lines it shows, and what it says in full."""

    node: int
    box: Box
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
    box: Box
    text: str
    whole: str
    unknown: bool  # only unknown values go this way


@dataclass(frozen=True)
class LegendEntry:
    """The name of a class beside its colour; class -1 stands for all that have no colour of their own."""

    label: int
    box: Box
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
    tree: FittedTree, names: TreeNames, *, max_depth: int | None = 4, decimals: int | None = 3
) -> Drawing:
    """Return what is drawn, and where; see :func:`export_svg` for the parameters."""
    boxes, digits = _boxes(tree, names, max_depth, decimals), column_decimals(tree, decimals)
    edges = [
        edge for node, box in boxes.items() if not box.ends for edge in _labels(tree, names, node, digits)
    ]
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
    tops = _tops(tree, boxes, MARGIN + legend_height)
    for (node, box), centre in zip(boxes.items(), centres, strict=True):
        place = replace(box.box, left=left + centre - box.box.width / 2, top=tops[tree.depth[node]])
        boxes[node] = replace(box, box=place)
    height = max(box.box.bottom for box in boxes.values()) + MARGIN
    return Drawing(width, height, boxes, [_placed(edge, boxes) for edge in edges], legend, colours)


def _boxes(
    tree: FittedTree, names: TreeNames, max_depth: int | None, decimals: int | None
) -> dict[int, NodeBox]:
    """Return the boxes of the nodes that are shown, as large as they need be, not yet in their places."""
    cut = cut_nodes(tree, max_depth)
    boxes = {}
    for node in range(tree.node_count):
        if max_depth is not None and tree.depth[node] > max_depth:
            continue
        answer, below = int(tree.answer[node]), cut.get(node)
        ends = bool(tree.column[node] < 0 or below is not None)
        stopped = bool(tree.reason[node] == Reason.STOPPED)
        heading = word(names.classes[answer] if ends else names.columns[tree.column[node]])
        rows = count(int(tree.rows[node]), "row")
        impurity = f"{MEASURES[tree.unit_name]} {number(float(tree.impurity[node]), decimals)}"
        lines = [f"{percent(tree.shares[node, answer])}, {rows}" if ends else f"{rows}, {impurity}"]
        if below is not None:
            lines.append(f"… {count(below, 'node')} below")
        if stopped:
            lines.append(REASONS[Reason.STOPPED])
        whole = [f"node {node}: {heading}", f"{rows}, {impurity}", *_all_shares(tree, names, node)]
        whole += [REASONS[Reason(tree.reason[node])]] if tree.column[node] < 0 else []
        shown = fit_text(heading, MOST_TEXT, HEADING, bold=True)
        boxes[node] = NodeBox(
            node=node,
            box=_box_around(shown, lines),
            heading=shown,
            lines=tuple(lines),
            whole="\n".join(whole),
            ends=ends,
            unfinished=below is not None or stopped,
        )
    return boxes


def _all_shares(tree: FittedTree, names: TreeNames, node: int) -> list[str]:
    shares, present = tree.shares[node], np.flatnonzero(tree.totals[node])
    return [
        f"{percent(shares[label])} {word(names.classes[label])}: {number(tree.totals[node, label])}"
        for label in present[np.argsort(-shares[present], kind="stable")].tolist()
    ]


def _box_around(heading: str, lines: list[str]) -> Box:
    text = max(text_width(heading, HEADING, bold=True), *(text_width(line, BODY) for line in lines))
    height = 2 * PADDING + ROW * (1 + len(lines)) + BAR
    return Box(0.0, 0.0, max(text + 2 * PADDING, LEAST_BOX), height)


def _labels(tree: Tree, names: TreeNames, node: int, decimals: Sequence[int | None]) -> list[EdgeLabel]:
    """Return the labels of the lines that leave a node, not yet in their places."""
    labels = []
    for child, condition in branch_conditions(tree, node).items():
        text = _label(condition, names, decimals)
        size = Box(0.0, 0.0, text_width(text, BODY) + 6.0, LABEL)
        whole = condition_words(condition, names, decimals)
        labels.append(EdgeLabel(node, child, size, text, whole, not condition.known))
    return labels


def _label(condition: Condition, names: TreeNames, decimals: Sequence[int | None]) -> str:
    """Return a test as there is room for it: of many categories the first, and how many more there are."""
    known = replace(condition, unknown=False)
    # With its comma the shortest name is 15 wide, and there is room for ten of them.
    for most in (None, *range(10, 0, -1)):
        text = branch_words(known, names, decimals, most)
        if text_width(text, BODY) <= MOST_LABEL:
            break
    return fit_text(text, MOST_LABEL, BODY) + (" or unknown" if condition.unknown and condition.known else "")


def _tops(tree: Tree, boxes: dict[int, NodeBox], top: float) -> list[float]:
    """Return where each row of boxes begins."""
    heights: dict[int, float] = {}
    for node, box in boxes.items():
        depth = int(tree.depth[node])
        heights[depth] = max(heights.get(depth, 0.0), box.box.height)
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
    whole = [(label, word(names.classes[label])) for label in sorted(labels)]
    if len(labels) < len(colours):
        others = len(colours) - len(labels)
        whole.append((-1, f"{others} other {'class' if others == 1 else 'classes'}"))
    entries, left, top = [], MARGIN, MARGIN
    for label, name in whole:
        text = fit_text(name, MOST_TEXT, BODY)
        size = SWATCH + 6.0 + text_width(text, BODY)
        if left > MARGIN and left + size > width - MARGIN:
            left, top = MARGIN, top + LEGEND_ROW
        entries.append(LegendEntry(label, Box(left, top, size, SWATCH), text, name))
        left += size + 16.0
    return entries, top + LEGEND_ROW + 4.0 - MARGIN


# -- SVG ---------------------------------------------------------------------------------------------------


def _svg(tree: Tree, names: TreeNames, drawing: Drawing) -> list[str]:
    width, height = _n(drawing.width), _n(drawing.height)
    title = f"Decision tree: {count(tree.node_count, 'node')}, {count(int(tree.rows[0]), 'row')}"
    used = set(drawing.colours.values())
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" font-family={quoteattr(FONT_FAMILY)} '
        f'font-size="{_n(BODY)}" fill="{INK}">',
        f"<title>{title}</title>",
        *patterns(used),
        f'<rect width="{width}" height="{height}" rx="6" fill="{PAPER}"/>',
        *(_legend_svg(entry, drawing.colours) for entry in drawing.legend),
        f'<g fill="none" stroke="{LINE}" stroke-width="1.2">',
        *_edges_svg(drawing),
        "</g>",
        '<g text-anchor="middle">',
        *(_label_svg(edge) for edge in drawing.edges),
        "</g>",
        *(_node_svg(tree, box, drawing.colours) for box in drawing.nodes.values()),
        "</svg>",
    ]


def _legend_svg(entry: LegendEntry, colours: dict[int, int]) -> str:
    box = entry.box
    fill = paint(OTHERS if entry.label < 0 else colours[entry.label])
    return (
        f"<g><title>{escape(entry.whole)}</title>"
        f'<rect x="{_n(box.left)}" y="{_n(box.top)}" width="{_n(SWATCH)}" height="{_n(SWATCH)}" rx="2" '
        f'fill="{fill}"/><text x="{_n(box.left + SWATCH + 6.0)}" y="{_n(box.top + 10.0)}">'
        f"{escape(entry.text)}</text></g>"
    )


def _edges_svg(drawing: Drawing) -> list[str]:
    """Draw the lines from each parent as one path, so that they are no darker where they run together."""
    ways: dict[tuple[int, bool], str] = {}
    for edge in drawing.edges:
        key = edge.parent, edge.unknown
        ways[key] = ways.get(key, "") + _way(edge, drawing.nodes)
    dashes = {False: "", True: ' stroke-dasharray="4 3"'}
    return [f'<path d="{way}"{dashes[unknown]}/>' for (_, unknown), way in ways.items()]


def _way(edge: EdgeLabel, nodes: dict[int, NodeBox]) -> str:
    """Go down from the parent, along above the labels, and down to the child, with a break at its label."""
    parent, child = nodes[edge.parent].box, nodes[edge.child].box
    across = edge.box.top - LABEL_ROOM
    step = child.centre - parent.centre
    bend = min(6.0, abs(step) / 2)
    side = bend if step > 0 else -bend
    way = f"M{_n(parent.centre)} {_n(parent.bottom)}"
    if bend > 0.05:  # else it goes straight down
        way += (
            f"V{_n(across - bend)}q0 {_n(bend)} {_n(side)} {_n(bend)}H{_n(child.centre - side)}"
            f"q{_n(side)} 0 {_n(side)} {_n(bend)}"
        )
    return f"{way}V{_n(edge.box.top)}M{_n(child.centre)} {_n(edge.box.bottom)}V{_n(child.top)}"


def _label_svg(edge: EdgeLabel) -> str:
    style = ' font-style="italic"' if edge.unknown else ""
    return (
        f'<text x="{_n(edge.box.centre)}" y="{_n(edge.box.top + 11.0)}"{style}>{escape(edge.text)}'
        f"<title>{escape(edge.whole)}</title></text>"
    )


def _node_svg(tree: Tree, node: NodeBox, colours: dict[int, int]) -> str:
    box = node.box
    colour = colours[int(tree.totals[node.node].argmax())]
    fill = tint(colour) if node.ends else PAPER
    dashes = ' stroke-dasharray="4 3"' if node.unfinished else ""
    parts = [
        f"<g><title>{escape(node.whole)}</title>",
        f'<rect x="{_n(box.left)}" y="{_n(box.top)}" width="{_n(box.width)}" height="{_n(box.height)}" '
        f'rx="5" fill="{fill}" stroke="{LINE}"{dashes}/>',
        f'<text x="{_n(box.centre)}" y="{_n(box.top + PADDING + 11.0)}" text-anchor="middle" '
        f'font-size="{_n(HEADING)}" font-weight="bold">{escape(node.heading)}</text>',
    ]
    for place, line in enumerate(node.lines, start=1):
        parts.append(
            f'<text x="{_n(box.centre)}" y="{_n(box.top + PADDING + 10.0 + ROW * place)}" '
            f'text-anchor="middle" fill="{FAINT}">{escape(line)}</text>'
        )
    return "".join([*parts, *_bar_svg(tree.totals[node.node], box, colours), "</g>"])


def _bar_svg(totals: NDArray[np.float64], box: Box, colours: dict[int, int]) -> list[str]:
    """Draw the shares of the classes beside each other, those without a colour of their own last."""
    shares: dict[int, float] = {}
    for label in sorted(colours, key=lambda label: (colours[label] == OTHERS, label)):
        shares[colours[label]] = shares.get(colours[label], 0.0) + totals[label] / totals.sum()
    left, top, whole = box.left + PADDING, box.bottom - PADDING - BAR + 3.0, box.width - 2 * PADDING
    parts = []
    for colour, share in shares.items():
        if share > 0:
            parts.append(
                f'<rect x="{_n(left)}" y="{_n(top)}" width="{_n(whole * share)}" height="{_n(BAR)}" '
                f'fill="{paint(colour)}"/>'
            )
        left += whole * share
    return parts


def _n(length: float) -> str:
    """Return a length to a hundredth."""
    return f"{length:.2f}".rstrip("0").rstrip(".")
