"""Axes to draw on, where matplotlib is installed."""

from __future__ import annotations

from typing import Any

from sixfold.errors import MissingExtraError


def axes_or_new(axes: Any, width: float, height: float) -> Any:
    """Return the axes that are given, or new ones of this size in inches for None."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingExtraError("Plots need matplotlib: pip install matplotlib.") from error
    return plt.subplots(figsize=(width, height), layout="constrained")[1] if axes is None else axes
