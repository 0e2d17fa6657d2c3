"""Figures of matplotlib as SVG inside a page: colours that follow the page, text as text, no id twice.

matplotlib writes colours as numbers. Each colour of the light theme becomes a variable of the style sheet
with that colour as its value, and the dark style sheet gives it that of the dark theme, so that one drawing
serves both. Everything goes through an XML parser and writer: what a column is called cannot end an element.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from io import BytesIO
from typing import Any
from xml.etree import ElementTree

import numpy as np

from sixfold.explain.axes import require_matplotlib
from sixfold.explain.plots.style import DARK, LIGHT, Theme, text_colour
from sixfold.explain.text import text_width

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
NUMBER = re.compile(r"-?\d+\.\d{3,}")
COLOUR = re.compile(r"#[0-9a-f]{6}")
REFERENCE = re.compile(r"url\(#([^)]+)\)")
PIXELS = 108.0  # an inch at most: letters of 9 points are 13.5 pixels high
FONTS: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9.0,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
}


def theme_variables(theme: Theme) -> dict[str, str]:
    """Return the colours of a theme by the names that the style sheet gives them."""
    named = {"surface": theme.surface, "ink": theme.ink, "muted": theme.muted, "faint": theme.faint}
    named |= {f"line{k}": colour for k, colour in enumerate(theme.series)}
    return named | {f"label{k}": text_colour(colour, theme) for k, colour in enumerate(theme.series)}


def style_sheet_variables() -> tuple[str, str]:
    """Return the declarations of all colours for light and for dark pages."""

    def declared(theme: Theme) -> str:
        return "".join(f"--{name}:{colour};" for name, colour in theme_variables(theme).items())

    return declared(LIGHT), declared(DARK)


def draw_svg(draw: Callable[[Any], Any], name: str, title: str, *, width: float, height: float) -> str:
    """Return what ``draw(ax)`` draws, as an SVG element.

    Parameters
    ----------
    draw : callable
        Of matplotlib axes.
    name : str
        Of the picture on the page; all ids begin with it.
    title : str
        What is seen, in words, for those who do not see it.
    width, height : float
        In inches.
    """
    matplotlib = require_matplotlib()
    from matplotlib.figure import Figure

    ink = LIGHT.ink
    settings = FONTS | {
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), ink),
        "axes.edgecolor": LIGHT.muted,
        "axes.linewidth": 0.8,
        "axes.titleweight": "normal",
        "axes.formatter.use_mathtext": False,
    }
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(width, height), layout="constrained", facecolor=LIGHT.surface)
        ax = figure.subplots()
        ax.set_facecolor(LIGHT.surface)
        draw(ax)
        ax.set_title("")  # the page has captions
        _move_legend(ax)
        _write_plain_powers(figure)
        figure.patch.set_visible(False)
        for one in figure.axes:
            one.patch.set_visible(False)
        written = BytesIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(written, format="svg", metadata=nothing)
    return _inline(written.getvalue(), name, title, width)


def _move_legend(ax: Any) -> None:
    """Move the legend below the axes, into as many columns as have room there."""
    if (old := ax.get_legend()) is None:
        return
    known = {label: handle for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    labels = [text.get_text() for text in old.get_texts() if text.get_text() in known]
    old.remove()
    figure = ax.figure
    room, size = 72.0 * figure.get_size_inches()[0], FONTS["xtick.labelsize"]
    widths = [text_width(label, size) + 5.0 * size for label in labels]
    columns = next(
        (count for count in range(min(4, len(labels)), 1, -1) if _fits(widths, count, room)),
        1,
    )
    figure.legend(
        [known[label] for label in labels],
        labels,
        loc="outside lower center",
        ncols=columns,
        fontsize=size,
        frameon=False,
        columnspacing=1.4,
        handletextpad=0.6,
        borderpad=0.1,
        labelspacing=0.35,
    )


def _fits(widths: list[float], columns: int, room: float) -> bool:
    """Whether labels fit beside each other; matplotlib fills the columns evenly, the first ones first."""
    return sum(float(part.max()) for part in np.array_split(widths, columns)) < room


def _write_plain_powers(figure: Any) -> None:
    """Write 0.01 and 1000 on logarithmic axes in place of powers, whose digits stand where fonts differ."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    plain = FuncFormatter(lambda value, place: f"{value:g}")
    ticks = int(1.6 * figure.get_size_inches()[0])
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            if axis.get_scale() == "log":
                axis.set_major_locator(LogLocator(numticks=ticks))
                axis.set_minor_locator(NullLocator())
                axis.set_major_formatter(plain)
                axis.set_minor_formatter(NullFormatter())


def _inline(written: bytes, name: str, title: str, width: float) -> str:
    ElementTree.register_namespace("", SVG)
    root = ElementTree.fromstring(written)
    for parent in root.iter():
        for child in list(parent):
            if child.tag.rsplit("}", 1)[-1] in ("metadata", "style", "title"):
                parent.remove(child)
    used = _used_ids(root)
    variables = {colour: f"var(--{key})" for key, colour in reversed(theme_variables(LIGHT).items())}
    variables["#000000"] = "var(--ink)"
    for element in root.iter():
        _clean(element, name, used, variables)
    for key in ("width", "height", "version"):
        root.attrib.pop(key, None)
    heading = ElementTree.Element(f"{{{SVG}}}title")
    heading.text = printable(title)
    root.insert(0, heading)
    root.set("style", f"max-width:{width * PIXELS:.0f}px")
    root.set("role", "img")
    root.set("aria-label", printable(title))
    return ElementTree.tostring(root, encoding="unicode")


def printable(text: str) -> str:
    r"""Return a text without the control characters that XML does not have.

    >>> printable("a\x00b")
    'ab'
    """
    return "".join(letter for letter in text if letter >= " " or letter in "\t\n")


def _used_ids(root: Any) -> set[str]:
    """Return the ids that something refers to; all others are in nobody's way and go."""
    used = set()
    for element in root.iter():
        for key, value in element.attrib.items():
            used.update(REFERENCE.findall(value))
            if key.endswith("href"):
                used.add(value.removeprefix("#"))
    return used


def _clean(element: Any, name: str, used: set[str], variables: dict[str, str]) -> None:
    for key, value in list(element.attrib.items()):
        if key == "id":
            del element.attrib[key]
            if value in used:
                element.set("id", f"{name}-{value}")
        elif key == f"{{{XLINK}}}href":
            del element.attrib[key]
            element.set("href", f"#{name}-{value.removeprefix('#')}" if value.startswith("#") else value)
        elif key == "style":
            own = REFERENCE.sub(lambda found: f"url(#{name}-{found[1]})", value)
            element.set(key, COLOUR.sub(lambda found: variables.get(found[0], found[0]), own))
        elif key == "clip-path":
            element.set(key, REFERENCE.sub(lambda found: f"url(#{name}-{found[1]})", value))
        elif key != f"{{{XLINK}}}href":
            element.set(key, NUMBER.sub(lambda found: f"{float(found[0]):.2f}", value))
