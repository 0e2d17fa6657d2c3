"""Regions and markers of classes, on light and dark grounds."""

import itertools

import numpy as np
import pytest

from explain.plots.test_style import VISION, lab
from sixfold.explain.palette import COLOURS, OTHERS
from sixfold.explain.plots.shades import outline, region, vivid
from sixfold.explain.plots.style import canvas, contrast


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("vision", VISION)
def test_no_two_regions_look_alike_to_anyone(dark, vision):
    ax, theme = canvas(None, dark)
    seen = [lab(region(ax, theme, look), vision) for look in range(len(COLOURS))]
    distances = {
        (one, other): np.linalg.norm(seen[one] - seen[other])
        for one, other in itertools.combinations(range(len(COLOURS)), 2)
    }
    assert min(distances.values()) >= 5
    assert min(distance for pair, distance in distances.items() if max(pair) < 7) >= 9


@pytest.mark.parametrize("dark", [False, True])
def test_borders_and_markers_are_seen_on_their_regions(dark):
    ax, theme = canvas(None, dark)
    for look, colour in enumerate(COLOURS):
        ground = region(ax, theme, look)
        assert contrast(theme.ink, ground) >= 4.5
        marker = vivid(theme, colour)
        assert max(contrast(marker, ground), contrast(outline(colour), ground)) >= 3.0
    assert contrast(theme.ink, region(ax, theme, OTHERS)) >= 4.5
