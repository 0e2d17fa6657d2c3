"""Learners side by side: their scores on every fold, and how far each is from one of them.

Differences are taken fold by fold, d_i = score of the learner - score of the other, and their mean has the
interval of Nadeau and Bengio (Machine Learning 52, 2003), which knows that folds share training rows:

    mean(d) ± t sqrt((1 / K + 1 / (K - 1)) var(d)),   t the 97.5% quantile of Student's with K - 1 degrees,

where 1 / (K - 1) is held-out rows over training rows in K folds.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.errors import InputError, check_option
from sixfold.explain.axes import tick_names
from sixfold.explain.plots.search_results import score_label
from sixfold.explain.plots.style import (
    SMALL,
    Theme,
    canvas,
    finish,
    legend,
    number,
    plain,
    require,
    theme_outside,
)

Array = NDArray[Any]

NEEDED = ("learner", "mean", "std")
FAR = 2.5  # times as long as without it, an axis hides more than it shows
TEST = ("test", "test_score")  # what the column of scores on test rows may be called


def leaderboard(
    comparison: Any, ax: Any = None, *, metric: str | None = None, dark: bool | None = None
) -> Any:
    """Draw the scores of compared learners: each fold a point, the mean a mark with one standard deviation.

    Parameters
    ----------
    comparison : what ``compare`` returns, or a table
        With the columns ``learner``, ``mean``, ``std`` and ``split0_score``, ``split1_score``, ... .
        ``test`` and ``p_value`` are shown as well where they are there.
    ax : matplotlib Axes, default=None
        Where to draw; None makes new ones.
    metric : str, default=None
        What the scores are called; None asks the comparison.
    dark : bool, default=None
        Whether the ground is dark; None looks at the axes.

    Returns
    -------
    matplotlib Axes
    """
    table = _read(comparison)
    label, sign = _metric(comparison, metric)
    mean, std = sign * _numbers(table, "mean"), _numbers(table, "std")
    folds = sign * _folds(table)
    order = np.argsort(-np.where(np.isfinite(mean), sign * mean, -np.inf), kind="stable")
    ax, theme = canvas(ax, dark, height=max(2.6, 0.45 * order.size + 1.4))
    places = np.arange(order.size)
    if folds.size:
        points = ax.scatter(
            folds[order].ravel(),
            np.repeat(places + 0.2, folds.shape[1]),  # below the bar, which would hide them
            s=22,
            color=theme.series[0],
            alpha=theme.point_alpha,
            linewidths=0,
            label="one fold",
            zorder=2,
        )
        points.set_gid("folds")
    bars = ax.errorbar(
        mean[order],
        places,
        xerr=std[order],
        color=theme.series[0],
        linestyle="none",
        marker="o",
        markersize=8,
        elinewidth=1.6,
        capsize=4,
        label="mean ± one standard deviation",
        zorder=3,
    )
    bars.lines[0].set_gid("mean")
    test = next((sign * _numbers(table, name)[order] for name in TEST if name in table), np.empty(0))
    if np.isfinite(test).any():
        (marks,) = ax.plot(
            test,
            places,
            linestyle="none",
            marker="D",
            markersize=8,
            markerfacecolor="none",
            markeredgewidth=1.8,
            color=theme.series[1],
            label="test rows, asked once",
            zorder=4,
        )
        marks.set_gid("test")
    ax.axvline(mean[order[0]], color=theme.muted, linestyle=":", linewidth=1.2, zorder=1)
    short = tick_names([str(table["learner"][k]) for k in order])
    ax.set_yticks(
        places, [plain(f"{name}  {_three_digits(mean[k])}") for name, k in zip(short, order, strict=True)]
    )
    ax.set_ylim(order.size - 0.4, -0.6)
    count = f" of {folds.shape[1]} folds" if folds.size else ""
    better = ", less is better" if sign < 0 else ""
    finish(
        ax,
        theme,
        title="Learners compared, the best first",
        xlabel=f"{label} on held-out rows{better}; beside the name, the mean{count}",
        grid="x",
    )
    ends = np.column_stack([mean - std, mean + std, *([folds] if folds.size else [])])[order]
    _leave_far_ones_out(ax, ends, mean[order], theme)
    if "p_value" in table:
        _write_p_values(ax, _numbers(table, "p_value")[order], theme_outside(ax, theme).muted)
    legend(ax, theme, below=True)
    return ax


def _write_p_values(ax: Any, values: Array, colour: str) -> None:
    """Write at the right how likely such a distance to the best is among equals, where there is room."""
    if ax.figure.figure.get_layout_engine() is None:
        return
    texts = [
        "" if math.isnan(value) else f"p = {value:.2g}" if value >= 0.001 else "p < 0.001" for value in values
    ]
    for place, text in enumerate(texts):
        ax.annotate(
            text or ("the best" if place == 0 else ""),
            xy=(1.01, place),
            xycoords=("axes fraction", "data"),
            fontsize=SMALL,
            color=colour,
            verticalalignment="center",
            annotation_clip=False,
        )


def paired(
    comparison: Any,
    to: str | None = None,
    ax: Any = None,
    *,
    metric: str | None = None,
    dark: bool | None = None,
) -> Any:
    """Draw by how much learners are better or worse than one of them on the same folds.

    Parameters
    ----------
    comparison : what ``compare`` returns, or a table
        As in :func:`leaderboard`; scores on at least two folds are needed.
    to : str, default=None
        The learner that others are compared with; None takes the best.
    ax : matplotlib Axes, default=None
        Where to draw; None makes new ones.
    metric : str, default=None
        What the scores are called; None asks the comparison.
    dark : bool, default=None
        Whether the ground is dark; None looks at the axes.

    Returns
    -------
    matplotlib Axes
    """
    table = _read(comparison)
    label, sign = _metric(comparison, metric)
    names, mean, folds = (
        [str(name) for name in table["learner"]],
        _numbers(table, "mean"),
        sign * _folds(table),
    )
    require(
        folds.ndim == 2 and folds.shape[1] >= 2,
        "Pairs need scores on at least two folds: columns split0_score, split1_score and so on.",
    )
    require(len(names) >= 2, f"The table has {names} alone, and a pair needs two learners.")
    order = np.argsort(-np.where(np.isfinite(mean), mean, -np.inf), kind="stable")
    if to is None:
        to = names[order[0]]
    check_option("to", to, names)
    others = [k for k in order if names[k] != to]
    difference = folds[others] - folds[names.index(to)]
    middle, half = corrected_interval(difference)
    ax, theme = canvas(ax, dark, height=max(2.4, 0.45 * len(others) + 1.4))
    places = np.arange(len(others))
    points = ax.scatter(
        difference.ravel(),
        np.repeat(places + 0.2, difference.shape[1]),
        s=22,
        color=theme.series[0],
        alpha=theme.point_alpha,
        linewidths=0,
        label="one fold",
        zorder=2,
    )
    points.set_gid("folds")
    bars = ax.errorbar(
        middle,
        places,
        xerr=half,
        color=theme.series[0],
        linestyle="none",
        marker="o",
        markersize=8,
        elinewidth=1.6,
        capsize=4,
        label="mean with 95% interval, corrected for shared rows",
        zorder=3,
    )
    bars.lines[0].set_gid("mean")
    ax.axvline(0.0, color=theme.ink, linewidth=1.0, zorder=1)
    ax.set_yticks(places, [plain(name) for name in tick_names([names[k] for k in others])])
    ax.set_ylim(len(others) - 0.4, -0.6)
    finish(
        ax,
        theme,
        title=f"Fold by fold against {to}",
        xlabel=f"difference in {label}; {'right' if sign < 0 else 'left'} of 0 is worse than {to}",
        grid="x",
    )
    ends = np.column_stack([middle - half, middle + half, difference, np.zeros(len(others))])
    _leave_far_ones_out(ax, ends, middle, theme)
    legend(ax, theme, below=True)
    return ax


def _three_digits(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 10 else number(value)


def _leave_far_ones_out(ax: Any, ends: Array, middle: Array, theme: Theme) -> None:
    """Set limits by which learners can be told apart; one far away, as a baseline is, has an arrow instead.

    Learners come in their order; one that would make the axis two and a half times as long is left out.
    """
    low, high = np.nanmin(ends[0]), np.nanmax(ends[0])
    for place, own in enumerate(ends):
        if not np.isfinite(own).any():
            continue
        wider = min(low, np.nanmin(own)), max(high, np.nanmax(own))
        if place < 2 or wider[1] - wider[0] <= FAR * (high - low):
            low, high = wider
    room = 0.06 * (high - low) or 0.05
    ax.set_xlim(low - room, high + room)
    for place, value in enumerate(middle):
        if low - room <= value <= high + room or not np.isfinite(value):
            continue
        left = bool(value < low)
        text = ax.annotate(
            f"{'←  ' * left}{_three_digits(value)}{'  →' * (not left)}",
            xy=(0.01 if left else 0.99, place),
            xycoords=("axes fraction", "data"),
            fontsize=SMALL,
            color=theme.ink,
            horizontalalignment="left" if left else "right",
            verticalalignment="center",
        )
        text.set_gid("far")


def corrected_interval(difference: Array) -> tuple[Array, Array]:
    """Return the means of differences (pairs, folds), and half of their corrected 95% intervals."""
    from scipy.stats import t as student

    folds = difference.shape[1]
    variance = difference.var(axis=1, ddof=1)
    quantile = student.ppf(0.975, folds - 1)
    return difference.mean(axis=1), quantile * np.sqrt((1.0 / folds + 1.0 / (folds - 1)) * variance)


def _metric(comparison: Any, metric: str | None) -> tuple[str, float]:
    """Return what the scores are called, and -1 where they are losses whose sign was turned."""
    label, less = score_label(metric or str(getattr(comparison, "metric", None) or "score"))
    return label, -1.0 if less else 1.0


def _read(comparison: Any) -> dict[str, list[Any]]:
    """Return the table of a comparison as a mapping from columns to values."""
    if not _has_columns(comparison) and not hasattr(comparison, "columns") and hasattr(comparison, "to_dict"):
        comparison = comparison.to_dict()
    if not _has_columns(comparison):
        found = (
            f"one with {list(comparison.columns)}"
            if hasattr(comparison, "columns")
            else type(comparison).__name__
        )
        raise InputError(
            f"A table with the columns {', '.join(NEEDED)} is needed, as compare(X, y) returns it, and this "
            f"is {found}."
        )
    columns = comparison.columns if hasattr(comparison, "columns") else comparison.keys()
    table = {str(column): list(comparison[column]) for column in columns}
    require(bool(table["learner"]), "The table has no rows, so there is no learner to draw.")
    return table


def _has_columns(table: Any) -> bool:
    columns = getattr(table, "columns", table if isinstance(table, dict) else ())
    return all(name in list(columns) for name in NEEDED)


def _numbers(table: dict[str, list[Any]], column: str) -> Array:
    return np.array([math.nan if value is None else value for value in table[column]], dtype=float)


def _folds(table: dict[str, list[Any]]) -> Array:
    found = sorted(
        (int(match.group(1)), column)
        for column in table
        if (match := re.fullmatch(r"split(\d+)_score", column))
    )
    return np.array([_numbers(table, column) for _, column in found]).T
