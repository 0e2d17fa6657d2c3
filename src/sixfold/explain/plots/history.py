"""How a fit went: the objective and its certified gap, iteration by iteration.

The gap of an iteration bounds how far its objective is above the optimum. It falls by orders of magnitude, so
its axis is logarithmic; the fit ends where it is below the tolerance, a multiple of the scale that the
certificate names. What rounding may have added is part of every gap.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.errors import InputError, check_option
from sixfold.explain.last_step import last_step
from sixfold.explain.plots.style import (
    Theme,
    canvas,
    finish,
    legend,
    make_readable,
    number,
    text_colour,
    theme_outside,
)

Array = NDArray[Any]

SLOPE = "stationary point"  # a kind of certificate that has no bound
STEPS = {"iteration": "iteration", "seconds": "seconds since the fit began"}


def history(
    model: Any, ax: Any = None, *, by: str = "iteration", show: str = "both", dark: bool | None = None
) -> Any:
    """Draw objective and certified gap over the iterations of a fit.

    Parameters
    ----------
    model : fitted learner
        Whatever has ``history_``, a list of records with iteration, seconds, objective and gap.
    ax : matplotlib Axes, default=None
        Where to draw; None makes new ones.
    by : {"iteration", "seconds"}, default="iteration"
        What is along the axis.
    show : {"both", "objective", "gap"}, default="both"
        With both, the gap is on the left axis and the objective on a second one at the right. Where the gap
        is the objective itself, as 0 is the only bound there is, it is drawn once.
    dark : bool, default=None
        Whether the ground is dark; None looks at the axes.

    Returns
    -------
    matplotlib Axes
        The left ones.
    """
    check_option("by", by, list(STEPS))
    check_option("show", show, ["both", "objective", "gap"])
    model = last_step(model)
    records = getattr(model, "history_", None)
    if not records:
        said = "is empty" if records is not None else "is missing"
        raise InputError(
            f"history_ of {type(model).__name__} {said}: a fitted model that iterates is needed, for "
            "instance LogisticRegression().fit(X, y)."
        )
    place = np.array([getattr(record, by) for record in records], dtype=float)
    objective = np.array([record.objective for record in records], dtype=float)
    gap = np.array([record.gap for record in records], dtype=float)
    certificate = getattr(model, "certificate_", None)
    rounding = float(getattr(certificate, "rounding", 0.0) or 0.0)
    known = np.isfinite(gap) & ~((gap == objective) & (gap[-1] == objective[-1]))
    if show == "both" and not known.any():
        show = "objective"
    if show == "gap" and not np.isfinite(gap).any():
        raise InputError(f"No iteration of {type(model).__name__} has a gap. Pass show='objective'.")
    ax, theme = canvas(ax, dark)
    if show in ("both", "gap"):
        _draw_gap(
            ax, theme, place, np.where(np.isfinite(gap), np.maximum(gap, rounding), np.nan), certificate
        )
    right = ax
    if show == "both":
        right = ax.twinx()
    if show in ("both", "objective"):
        _draw_objective(right, theme, place, objective, second=show == "both")
    if by == "iteration":
        from matplotlib.ticker import FixedLocator, MaxNLocator

        ax.xaxis.set_major_locator(
            FixedLocator(place.tolist()) if place.size == 1 else MaxNLocator(integer=True)
        )
    step = getattr(model, "_step", "iteration")
    steps = step if len(records) == 1 else f"{step}s"
    finish(
        ax,
        theme,
        title=f"{type(model).__name__}: {len(records)} {steps}{_ending(certificate)}",
        xlabel=step if by == "iteration" else STEPS[by],
        ylabel=_gap_label(certificate) if show != "objective" else "objective",
        grid="y",
    )
    if show == "both":
        _second_axis(ax, right, theme)
    legend(ax, theme, below=True)
    return ax


def _gap_label(certificate: Any) -> str:
    """Say what the gaps of the records are: of a problem that is not convex, slopes."""
    if certificate is not None and certificate.kind == SLOPE:
        return "slope of the objective, relative to the model's size"
    return "certified gap to the optimum, at most"


def _ending(certificate: Any) -> str:
    if certificate is None or not np.isfinite(certificate.gap) or not np.isfinite(certificate.tolerance):
        return ""
    if certificate.kind == SLOPE:
        return f", slope {number(certificate.gap, 2)}"
    return f", relative gap {number(certificate.relative_gap, 2)}"


def _draw_gap(ax: Any, theme: Theme, place: Array, gap: Array, certificate: Any) -> None:
    positive = gap > 0
    ax.set_yscale("log")
    (line,) = ax.plot(
        place[positive],
        gap[positive],
        color=theme.series[0],
        marker="o",
        markersize=4,
        linewidth=2,
        zorder=3,
    )
    line.set_gid("gap")
    if certificate is not None and 0 < certificate.tolerance * certificate.scale < np.inf:
        wanted = ax.axhline(
            certificate.tolerance * certificate.scale,
            color=theme.muted,
            linestyle="--",
            linewidth=1.3,
            zorder=2,
            label=f"tolerance {number(certificate.tolerance)} of the scale {number(certificate.scale, 3)}",
        )
        wanted.set_gid("tolerance")


def _draw_objective(ax: Any, theme: Theme, place: Any, objective: Any, second: bool) -> None:
    (line,) = ax.plot(
        place,
        objective,
        color=theme.series[1] if second else theme.series[0],
        marker="s" if second else "o",
        markersize=4,
        linewidth=1.8,
        linestyle="-.",
        zorder=3,
    )
    line.set_gid("objective")
    if not second:
        line.set_linestyle("-")


def _second_axis(ax: Any, right: Any, theme: Theme) -> None:
    """Label each axis in the colour of its line and with its marker."""
    make_readable(right, theme)
    for side in ("top", "left", "bottom"):
        right.spines[side].set_visible(False)
    right.set_ylabel("■ objective")
    ax.set_ylabel(f"● {ax.get_ylabel()}")
    right.margins(y=0.15)  # so that its end is not on that of the gap
    for axis, colour in ((ax.yaxis, theme.series[0]), (right.yaxis, theme.series[1])):
        shade = text_colour(colour, theme_outside(ax, theme))
        axis.label.set_color(shade)
        axis.set_tick_params(which="both", colors=shade)
