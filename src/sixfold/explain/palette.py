"""Colours that people with any colour vision tell apart, one a class, for drawings.

The eight are those of Okabe and Ito, "Color universal design" (2008), with grey in place of black. Classes
beyond the eighth have the same colours with stripes, then with dots; beyond the 24th they share a light grey.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#7f7f7f")
TEXTURES = (
    "",
    '<rect width="3" height="6" fill="#fff" fill-opacity="0.7"/>',
    '<circle cx="3" cy="3" r="1.7" fill="#fff" fill-opacity="0.85"/>',
)
OTHERS = len(COLOURS) * len(TEXTURES)
LIGHT = "#c8ccd1"


def class_colours(totals: NDArray[np.float64]) -> dict[int, int]:
    """Return the number of the colour of each class; if there are too many, the rarest share ``OTHERS``."""
    labels = range(totals.size)
    if totals.size <= OTHERS:
        return {label: label for label in labels}
    common = sorted(np.argsort(-totals, kind="stable")[:OTHERS].tolist())
    return dict.fromkeys(labels, OTHERS) | {label: colour for colour, label in enumerate(common)}


def base_colour(colour: int) -> str:
    """Return a colour without its texture."""
    return LIGHT if colour == OTHERS else COLOURS[colour % len(COLOURS)]


def paint(colour: int) -> str:
    """Return a colour as SVG fills with it."""
    if colour < len(COLOURS) or colour == OTHERS:
        return base_colour(colour)
    return f"url(#{_name(colour)})"


def matplotlib_fill(colour: int) -> dict[str, str]:
    """Return a colour as bars of matplotlib take it."""
    texture = ("", "///", "..", "")[colour // len(COLOURS)]
    return {"facecolor": base_colour(colour), "hatch": texture, "edgecolor": "#ffffff"}


def tint(colour: int) -> str:
    """Return a light shade of a colour, on which dark text is easy to read."""
    parts = bytes.fromhex(base_colour(colour)[1:])
    return "#" + bytes(round(0.85 * 255 + 0.15 * part) for part in parts).hex()


def patterns(colours: Iterable[int]) -> list[str]:
    """Return the definitions that the fills with a texture need in an SVG."""
    textured = [colour for colour in sorted(colours) if len(COLOURS) <= colour < OTHERS]
    if not textured:
        return []
    # The same name means the same pattern in every drawing, so several can stand in one page.
    return [
        "<defs>",
        *(
            f'<pattern id="{_name(colour)}" width="6" height="6" patternUnits="userSpaceOnUse" '
            f'patternTransform="rotate(45)"><rect width="6" height="6" fill="{base_colour(colour)}"/>'
            f"{TEXTURES[colour // len(COLOURS)]}</pattern>"
            for colour in textured
        ),
        "</defs>",
    ]


def _name(colour: int) -> str:
    return f"sixfold-class-{colour}"
