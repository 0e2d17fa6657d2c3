"""A tree drawn as SVG.

What is shortened is given in full when the pointer rests on it. Nothing but attributes is used, no style
sheet and no script, so that a drawing can stand in any page, light or dark.
"""

from __future__ import annotations

import os
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import numpy as np
from numpy.typing import NDArray

from sixfold.errors import InputError
from sixfold.explain.palette import OTHERS, paint, patterns, tint
from sixfold.explain.text import FONT_FAMILY
from sixfold.explain.trees.drawing import (
    BAR,
    BODY,
    HEADING,
    LABEL_ROOM,
    PADDING,
    ROW,
    SWATCH,
    Drawing,
    EdgeLabel,
    LegendEntry,
    NodeBox,
    lay_out,
)
from sixfold.explain.trees.layout import Rectangle
from sixfold.explain.trees.names import TreeNames
from sixfold.explain.trees.words import check_shown
from sixfold.plain_words import counted
from sixfold.solvers.trees.fitted_tree import FittedTree

NOTEBOOK_WIDTH = 1200.0  # pixels that have room beside code
NOTEBOOK_DEPTH, NOTEBOOK_BRANCHES = 6, 8
INK, FAINT, LINE, PAPER = "#1f2328", "#57606a", "#8c959f", "#ffffff"


class Picture(str):
    """The text of a drawing in SVG, which a notebook shows as the picture it is."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


def export_svg(
    tree: FittedTree,
    names: TreeNames,
    *,
    path: str | os.PathLike[str] | None = None,
    max_depth: int | None = 4,
    decimals: int | None = 3,
    max_branches: int | None = 12,
) -> Picture:
    """Return the tree as a drawing in SVG, see :meth:`~sixfold.DecisionTreeClassifier.export_svg`."""
    check_shown(max_depth, decimals, None, max_branches)
    if path is not None and Path(path).suffix.lower() != ".svg":
        raise InputError(f"path={str(path)!r} does not end in .svg, and a drawing is written as SVG alone.")
    drawing = lay_out(tree, names, max_depth=max_depth, decimals=decimals, max_branches=max_branches)
    svg = Picture("\n".join(_svg(tree, names, drawing)))
    if path is not None:
        _write(Path(path), svg)
    return svg


def tree_html(tree: FittedTree, names: TreeNames) -> str:
    """Return the tree as a notebook shows it: as many levels as have room, and how to see the others."""
    drawing = lay_out(tree, names, max_depth=2, max_branches=NOTEBOOK_BRANCHES)
    for depth in range(3, NOTEBOOK_DEPTH + 1):
        deeper = lay_out(tree, names, max_depth=depth, max_branches=NOTEBOOK_BRANCHES)
        if deeper.width > NOTEBOOK_WIDTH:
            break
        drawing = deeper
    shown = sum(node >= 0 for node in drawing.nodes)
    note = (
        f"<p>{shown:,} of {counted(tree.node_count, 'node')} are shown. For all of them use "
        "<code>export_svg(max_depth=None, max_branches=None)</code> or <code>export_text()</code>.</p>"
    )
    svg = "\n".join(_svg(tree, names, drawing))
    return f'<div style="overflow-x: auto">{svg}</div>{note if shown < tree.node_count else ""}'


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


def _svg(tree: FittedTree, names: TreeNames, drawing: Drawing) -> list[str]:
    width, height = _n(drawing.width), _n(drawing.height)
    title = f"Decision tree: {counted(tree.node_count, 'node')}, {counted(int(tree.rows[0]), 'row')}"
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
        *(_node_svg(box, drawing.colours) for box in drawing.nodes.values()),
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


def _node_svg(node: NodeBox, colours: dict[int, int]) -> str:
    box = node.box
    answers = node.ends and node.node >= 0
    fill = tint(colours[int(node.totals.argmax())]) if answers else PAPER
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
    return "".join([*parts, *_bar_svg(node.totals, box, colours), "</g>"])


def _bar_svg(totals: NDArray[np.float64], box: Rectangle, colours: dict[int, int]) -> list[str]:
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
