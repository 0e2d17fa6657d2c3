"""The colours of classes on the ground that axes have: fuller for markers, faint for whole regions."""

from __future__ import annotations

from typing import Any

import numpy as np

from sixfold.explain.plots.style import Theme


def ground(ax: Any) -> str:
    """Return what is behind the axes: their own colour over that of the figure over white."""
    from matplotlib.colors import to_hex, to_rgba

    colour = np.ones(3)
    for layer in (ax.figure.get_facecolor(), ax.get_facecolor()):
        *own, cover = to_rgba(layer)
        colour = cover * np.array(own) + (1.0 - cover) * colour
    return str(to_hex(colour))


def tint(ax: Any, theme: Theme, colour: str, share: float = 0.25) -> str:
    """Return the ground with a share of a colour in it; a dark one takes a little more of it."""
    from matplotlib.colors import to_hex, to_rgb

    share = min(1.0, 1.4 * share) if theme.dark else share
    return str(to_hex(share * np.array(to_rgb(colour)) + (1.0 - share) * np.array(to_rgb(ground(ax)))))


def vivid(theme: Theme, colour: str) -> str:
    """Return a colour for markers: as it is, or with white in it on a dark ground."""
    from matplotlib.colors import to_hex, to_rgb

    return str(to_hex(0.7 * np.array(to_rgb(colour)) + 0.3)) if theme.dark else colour


def outline(colour: str) -> str:
    """Return a darker shade of a colour, around markers: pale ones are seen, and neighbours apart."""
    from matplotlib.colors import to_hex, to_rgb

    return str(to_hex(0.5 * np.array(to_rgb(colour)) + 0.5 * np.array(to_rgb("#14171c"))))
