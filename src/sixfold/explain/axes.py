"""Axes to draw on, where matplotlib is installed, and what rows and bars are called beside them."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from sixfold.errors import MissingExtraError
from sixfold.explain.text import short_names

LABEL_LETTERS = 28  # of a name beside an axis: a third of a drawing of 7 inches


def tick_names(names: list[str]) -> list[str]:
    """Return names as there is room for them beside an axis."""
    return short_names(names, lambda part: len(part) <= LABEL_LETTERS)


def named_rows(rows: NDArray[Any], index: NDArray[Any] | None) -> list[Any]:
    """Return what rows are called by the index of the fit's frame; their numbers where it has none."""
    return list(rows.tolist() if index is None else index[rows])


def axes_or_new(axes: Any, width: float, height: float) -> Any:
    """Return the axes that are given, or new ones of this size in inches for None."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingExtraError("Plots need matplotlib: pip install matplotlib.") from error
    return plt.subplots(figsize=(width, height), layout="constrained")[1] if axes is None else axes
