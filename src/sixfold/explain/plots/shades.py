"""The colours of classes on the ground that axes have: fuller for markers, faint for whole regions.

Faint colours of one strength look alike to people who do not see red or green. So each colour of the palette
has a strength of its own in regions, found by search: the first seven differ by at least 9 in CIE Lab to
people with any colour vision, all eight by 5 (simulated as for the lines, see style.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sixfold.explain.palette import COLOURS, OTHERS, base_colour
from sixfold.explain.plots.style import Theme, ground_of

# The share of each colour of the palette in a region, on a light and on a dark ground.
ON_LIGHT = (0.42, 0.26, 0.10, 0.42, 0.30, 0.38, 0.14, 0.24)
ON_DARK = (0.23, 0.26, 0.35, 0.47, 0.47, 0.14, 0.32, 0.14)


def region(ax: Any, theme: Theme, look: int) -> str:
    """Return the colour of the region of a class, by the number of its colour."""
    shares = ON_DARK if theme.dark else ON_LIGHT
    share = 0.2 if look == OTHERS else shares[look % len(COLOURS)]
    return mix(ground_of(ax), base_colour(look), share)


def mix(back: str, colour: str, share: float) -> str:
    """Return a colour with a share of another in it."""
    from matplotlib.colors import to_hex, to_rgb

    return str(to_hex(share * np.array(to_rgb(colour)) + (1.0 - share) * np.array(to_rgb(back))))


def tint(ax: Any, theme: Theme, colour: str, share: float) -> str:
    """Return the ground with a share of a colour in it; a dark one takes a little more of it."""
    return mix(ground_of(ax), colour, min(1.0, 1.4 * share) if theme.dark else share)


def vivid(theme: Theme, colour: str) -> str:
    """Return a colour for markers: as it is, or with white in it on a dark ground."""
    return mix(colour, "#ffffff", 0.3) if theme.dark else colour


def outline(colour: str) -> str:
    """Return a darker shade of a colour, around markers: pale ones are seen, and neighbours apart."""
    return mix(colour, "#14171c", 0.5)
