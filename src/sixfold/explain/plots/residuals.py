"""Residuals of a regression, y minus prediction, over the predictions.

Around a straight line at 0 with one width they are noise; a bend says that something is missing from the
model, a funnel that the noise depends on the size. The line is the median of neighbouring rows, which a few
outliers do not move.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.errors import InputError, check_flag
from sixfold.explain.last_step import last_step
from sixfold.explain.plots.style import canvas, finish, legend, make_readable, number, require

Array = NDArray[Any]

LEAST_ROWS = 10  # of a median


def residuals(
    model: Any, X: Any, y: Any, ax: Any = None, *, distribution: bool = True, dark: bool | None = None
) -> Any:
    """Draw the residuals of a regression over its predictions, with their running median.

    Parameters
    ----------
    model : fitted regressor
        Whatever has ``predict``.
    X, y : table and targets
        Several targets are drawn in one figure, each in its own unit.
    ax : matplotlib Axes, default=None
        Where to draw; None makes new ones.
    distribution : bool, default=True
        Whether to draw at the right how many residuals have which size.
    dark : bool, default=None
        Whether the ground is dark; None looks at the axes.

    Returns
    -------
    matplotlib Axes
    """
    from sklearn.base import is_classifier

    check_flag("distribution", distribution)
    if not hasattr(model, "predict"):
        raise InputError(f"{type(model).__name__} has no predict: a fitted regressor is needed.")
    if is_classifier(model):
        raise InputError(
            f"{type(model).__name__} is a classifier, and residuals are differences of numbers. Draw "
            "calibration(model, X, y) or threshold(model, X, y)."
        )
    predicted, truth = np.asarray(model.predict(X), dtype=float).ravel(), np.asarray(y, dtype=float).ravel()
    require(
        predicted.size == truth.size, f"X gives {predicted.size} predictions, but y has {truth.size} entries."
    )
    require(truth.size > 0, "There are no rows to draw.")
    left = truth - predicted
    ax, theme = canvas(ax, dark)
    points = ax.scatter(
        predicted,
        left,
        s=16 if truth.size < 2000 else 5,
        color=theme.series[0],
        alpha=0.55 if truth.size < 2000 else 0.25,
        linewidths=0,
        label="one row",
        zorder=2,
        rasterized=truth.size > 5000,
    )
    points.set_gid("residuals")
    ax.axhline(0.0, color=theme.ink, linewidth=1.0, zorder=3)
    at, middle = running_median(predicted, left)
    if at.size:
        (line,) = ax.plot(
            at, middle, color=theme.series[1], linewidth=2.4, label="median of neighbouring rows", zorder=4
        )
        line.set_gid("median")
    name = type(last_step(model)).__name__
    error, share = float(np.sqrt(np.mean(left**2))), _explained(truth, left)
    explained = "" if np.isnan(share) else f", R² {number(share, 3)}"
    finish(
        ax,
        theme,
        title=f"{name}: root mean square error {number(error, 3)}{explained}",
        xlabel="prediction, in units of y",
        ylabel="residual: y minus prediction",
        grid="y",
    )
    legend(ax, theme, loc="best")
    if distribution and truth.size >= LEAST_ROWS:
        _draw_distribution(ax, left, theme)
    return ax


def _explained(truth: Array, left: Array) -> float:
    total = float(((truth - truth.mean()) ** 2).sum())
    return 1.0 - float((left**2).sum()) / total if total > 0 else float("nan")


def running_median(x: Array, y: Array) -> tuple[Array, Array]:
    """Return the medians of x and y in up to 15 groups of neighbouring rows, each with ten rows or more."""
    groups = min(15, x.size // LEAST_ROWS)
    if groups < 3 or np.ptp(x) == 0:
        return np.empty(0), np.empty(0)
    order = np.argsort(x, kind="stable")
    parts = np.array_split(order, groups)
    return np.array([np.median(x[part]) for part in parts]), np.array([np.median(y[part]) for part in parts])


def _draw_distribution(ax: Any, left: Array, theme: Any) -> None:
    """Draw a histogram at the right edge, beside the axes, on the same residuals."""
    from matplotlib.ticker import MaxNLocator

    side = ax.inset_axes((1.015, 0.0, 0.16, 1.0), sharey=ax)
    side.set_facecolor("none")
    side.hist(
        left,
        bins=min(40, max(8, round(2 * left.size ** (1 / 3)))),
        orientation="horizontal",
        color=theme.series[0],
        alpha=0.6,
        linewidth=0,
    )
    side.axhline(0.0, color=theme.ink, linewidth=1.0)
    side.tick_params(axis="y", left=False, labelleft=False)
    for edge in ("top", "right", "left"):
        side.spines[edge].set_visible(False)
    side.set_xlabel("rows")
    side.xaxis.set_major_locator(MaxNLocator(2, integer=True, prune="lower"))
    make_readable(side, theme)
