"""A decision tree on axes of matplotlib: the same boxes, tests and bars as its drawing in SVG.

What is drawn and where is decided by :mod:`sixfold.explain.trees.drawing`; one of its units is a 96th of an
inch on axes of our own, and what fits into the axes that are given.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sixfold.errors import InputError
from sixfold.explain.last_step import last_step
from sixfold.explain.palette import OTHERS, base_colour, matplotlib_fill
from sixfold.explain.plots.shades import tint
from sixfold.explain.plots.style import Theme, canvas, ground_of
from sixfold.explain.trees.drawing import (
    BAR,
    BODY,
    HEADING,
    LABEL_ROOM,
    PADDING,
    ROW,
    SWATCH,
    Drawing,
    NodeBox,
    lay_out,
)
from sixfold.explain.trees.words import check_shown

UNIT = 1.0 / 96.0  # inches
LARGEST = 0.85  # points a unit: letters of a little more than 10 points


def tree(
    model: Any,
    ax: Any = None,
    *,
    max_depth: int | None = 3,
    decimals: int | None = 3,
    max_branches: int | None = 6,
    dark: bool | None = None,
) -> Any:
    """Draw a fitted decision tree: what each node asks, the rows that come there, and their classes as bars.

    Parameters
    ----------
    model : DecisionTreeClassifier, or a pipeline that ends with one
    ax : matplotlib Axes, default=None
        Where to draw; None for a new figure, as large as the tree needs.
    max_depth : int, default=3
        How many tests deep the drawing goes; a node where it ends says how many are below. None for all.
    decimals : int, default=3
        Of thresholds and impurities; None for every digit.
    max_branches : int, default=6
        How many branches of a node are drawn, those with the most rows; others are counted. None for all.
    dark : bool, default=None
        Whether the ground is dark; None to see by the colour of the axes.

    Returns
    -------
    matplotlib Axes
        From (0, 0), top left, in units of which an inch of a new figure has 96.

    Examples
    --------
    >>> from sixfold import DecisionTreeClassifier
    >>> ax = tree(DecisionTreeClassifier().fit([[1.0], [2.0], [3.0]], ["low", "low", "high"]))
    >>> [text.get_text() for text in ax.texts if text.get_fontweight() == "bold"]
    ['x0', 'low', 'high']
    """
    model = last_step(model)
    if not hasattr(model, "_named_tree"):
        raise InputError(
            f"A {type(model).__name__} is no decision tree of sixfold. Pass a fitted DecisionTreeClassifier; "
            "sklearn.tree.plot_tree draws scikit-learn's own."
        )
    check_shown(max_depth, decimals, None, max_branches)
    drawing = lay_out(*model._named_tree(), max_depth=max_depth, decimals=decimals, max_branches=max_branches)
    ax, theme = canvas(ax, dark, drawing.width * UNIT, drawing.height * UNIT)
    ax.set(xlim=(0.0, drawing.width), ylim=(drawing.height, 0.0), aspect="equal")
    ax.set_axis_off()
    points = _points_a_unit(ax, drawing)
    if points > LARGEST:  # a small tree stays small in the middle of large axes
        room = points / LARGEST
        ax.set_xlim(drawing.width * (1.0 - room) / 2, drawing.width * (1.0 + room) / 2)
        ax.set_ylim(drawing.height * (1.0 + room) / 2, drawing.height * (1.0 - room) / 2)
        points = LARGEST
    _draw_legend(ax, theme, drawing, points)
    _draw_edges(ax, theme, drawing, points)
    for node in drawing.nodes.values():
        _draw_node(ax, theme, node, drawing, points)
    return ax


def _points_a_unit(ax: Any, drawing: Drawing) -> float:
    """Return how many points of a font one unit of the drawing is, on axes as large as they are now."""
    ax.figure.figure.draw_without_rendering()  # axes get their size when they are first drawn
    place = ax.get_window_extent()
    pixels = min(place.width / drawing.width, place.height / drawing.height)
    return float(pixels * 72.0 / ax.figure.figure.dpi)


def _write(ax: Any, x: float, y: float, text: str, size: float, **style: Any) -> None:
    ax.text(x, y, text, fontsize=size, va="center", parse_math=False, **style)


def _draw_legend(ax: Any, theme: Theme, drawing: Drawing, points: float) -> None:
    from matplotlib.patches import Rectangle

    for entry in drawing.legend:
        colour = OTHERS if entry.label < 0 else drawing.colours[entry.label]
        box = entry.box
        ax.add_patch(Rectangle((box.left, box.top), SWATCH, SWATCH, **_fill(colour)))
        x, y = box.left + SWATCH + 6.0, box.top + SWATCH / 2
        _write(ax, x, y, entry.text, BODY * points, color=theme.ink)


def _draw_edges(ax: Any, theme: Theme, drawing: Drawing, points: float) -> None:
    """Draw each way down from its parent, along above the labels, and down to the child."""
    for edge in drawing.edges:
        parent, child = drawing.nodes[edge.parent].box, drawing.nodes[edge.child].box
        across = edge.box.top - LABEL_ROOM
        dash = (0, (4, 3)) if edge.unknown else "-"
        style = {
            "color": theme.muted,
            "linewidth": 1.0,
            "linestyle": dash,
            "solid_joinstyle": "round",
            "zorder": 1,
        }
        x = [parent.centre, parent.centre, child.centre, child.centre]
        ax.plot(x, [parent.bottom, across, across, edge.box.top], **style)
        ax.plot([child.centre, child.centre], [edge.box.bottom, child.top], **style)
        slant = "italic" if edge.unknown else "normal"
        y = (edge.box.top + edge.box.bottom) / 2
        _write(
            ax, edge.box.centre, y, edge.text, BODY * points, ha="center", color=theme.ink, fontstyle=slant
        )


def _draw_node(ax: Any, theme: Theme, node: NodeBox, drawing: Drawing, points: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    box = node.box
    fill = ground_of(ax)
    if node.ends and node.node >= 0:
        fill = tint(ax, theme, base_colour(drawing.colours[int(node.totals.argmax())]), 0.15)
    ax.add_patch(
        FancyBboxPatch(
            (box.left, box.top),
            box.width,
            box.height,
            boxstyle="round,pad=0,rounding_size=5",
            facecolor=fill,
            edgecolor=theme.muted,
            linewidth=0.9,
            linestyle=(0, (4, 3)) if node.unfinished else "-",
            gid=f"node {node.node}",
        )
    )
    y = box.top + PADDING + 7.0
    _write(ax, box.centre, y, node.heading, HEADING * points, ha="center", color=theme.ink, fontweight="bold")
    for place, line in enumerate(node.lines, start=1):
        y = box.top + PADDING + 6.0 + ROW * place
        _write(ax, box.centre, y, line, BODY * points, ha="center", color=theme.muted)
    _draw_bar(ax, node, drawing.colours)


def _draw_bar(ax: Any, node: NodeBox, colours: dict[int, int]) -> None:
    """Draw the shares of the classes beside each other, those without a colour of their own last."""
    from matplotlib.patches import Rectangle

    shares = np.zeros(OTHERS + 1)
    np.add.at(shares, [colours[label] for label in range(node.totals.size)], node.totals / node.totals.sum())
    left, whole = node.box.left + PADDING, node.box.width - 2 * PADDING
    top = node.box.bottom - PADDING - BAR + 3.0
    for colour in np.flatnonzero(shares).tolist():
        width = whole * float(shares[colour])
        ax.add_patch(Rectangle((left, top), width, BAR, **_fill(colour)))
        left += width


def _fill(colour: int) -> dict[str, Any]:
    return {"linewidth": 0.0, **matplotlib_fill(colour)}
