"""Axes to draw on, where matplotlib is installed, and what rows and bars are called beside them."""

from __future__ import annotations

import os
import sys
from typing import Any

from numpy.typing import NDArray

from sixfold.errors import InputError, MissingExtraError
from sixfold.explain.text import short_names

LABEL_LETTERS = 28  # of a name beside an axis: a third of a drawing of 7 inches
FILE_BACKENDS = ("agg", "cairo", "pdf", "pgf", "ps", "svg", "template")  # that draw into files alone
NOTEBOOK_BACKENDS = ("inline", "ipympl", "nbagg", "widget")  # that show a figure where its cell ends


def tick_names(names: list[str]) -> list[str]:
    """Return names as there is room for them beside an axis."""
    return short_names(names, lambda part: len(part) <= LABEL_LETTERS)


def named_rows(rows: NDArray[Any], index: NDArray[Any] | None) -> list[Any]:
    """Return what rows are called by the index of the fit's frame; their numbers where it has none."""
    return list(rows.tolist() if index is None else index[rows])


def axes_or_new(axes: Any, width: float, height: float) -> Any:
    """Return the axes that are given, or new ones of this size in inches for None.

    New ones belong to a figure that pyplot knows nothing of, so that none is left open; where figures are
    shown (in a notebook, or by a program that has imported pyplot and has windows) it is one of pyplot's.
    """
    matplotlib = require_matplotlib()
    if axes is not None:
        return _check_axes(axes)
    if _figures_are_shown(matplotlib):
        from matplotlib import pyplot

        return pyplot.figure(figsize=(width, height), layout="constrained").subplots()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)  # so that figure.canvas.draw() lays it out, as it does one of pyplot's
    return figure.subplots()


def require_matplotlib() -> Any:
    """Return matplotlib; a :class:`MissingExtraError` says what to install where it is not there."""
    try:
        import matplotlib
    except ImportError as error:
        raise MissingExtraError("Plots need matplotlib: pip install matplotlib.") from error
    return matplotlib


def _check_axes(axes: Any) -> Any:
    from matplotlib.axes import Axes

    if isinstance(axes, Axes):
        return axes
    kind = type(axes).__name__
    hint = " It is an array of several: pass one of them, for instance ax[0]." if kind == "ndarray" else ""
    raise InputError(
        f"ax is of type {kind}, but matplotlib Axes are needed, for instance those of "
        f"fig, ax = plt.subplots(), or None for new ones.{hint}"
    )


def _figures_are_shown(matplotlib: Any) -> bool:
    """Whether a figure of pyplot's would be seen without a further call, or by pyplot.show()."""
    if "matplotlib.pyplot" in sys.modules:
        return matplotlib.get_backend().lower() not in FILE_BACKENDS
    return any(name in os.environ.get("MPLBACKEND", "") for name in NOTEBOOK_BACKENDS)
