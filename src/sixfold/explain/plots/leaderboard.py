"""Learners side by side: the score of each on every fold, the mean, and one standard deviation."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.errors import InputError
from sixfold.explain.axes import tick_names
from sixfold.explain.plots.search_results import score_label
from sixfold.explain.plots.style import canvas, finish, legend, number, plain, require

Array = NDArray[Any]

NEEDED = ("learner", "mean", "std")


def leaderboard(
    comparison: Any, ax: Any = None, *, metric: str | None = None, dark: bool | None = None
) -> Any:
    """Draw the scores of compared learners: each fold a point, the mean a mark with one standard deviation.

    Parameters
    ----------
    comparison : what ``compare`` returns, or a table
        With the columns ``learner``, ``mean``, ``std`` and ``split0_score``, ``split1_score``, ... .
        ``test_score`` is drawn as well where it is there.
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
    names = [str(name) for name in table["learner"]]
    mean, std = (np.asarray(table[column], dtype=float) for column in ("mean", "std"))
    folds = _folds(table)
    order = np.argsort(-np.where(np.isfinite(mean), mean, -np.inf), kind="stable")
    ax, theme = canvas(ax, dark, height=max(2.6, 0.45 * len(names) + 1.4))
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
    if "test_score" in table:
        test = np.asarray(table["test_score"], dtype=float)[order]
        if np.isfinite(test).any():
            (marks,) = ax.plot(
                test,
                places,
                linestyle="none",
                marker="D",
                markersize=7,
                markerfacecolor="none",
                markeredgewidth=1.8,
                color=theme.series[1],
                label="test rows, asked once",
                zorder=4,
            )
            marks.set_gid("test")
    ax.axvline(mean[order[0]], color=theme.muted, linestyle=":", linewidth=1.2, zorder=1)
    short = tick_names([names[index] for index in order])
    ax.set_yticks(
        places, [plain(f"{name}  {number(mean[k], 3)}") for name, k in zip(short, order, strict=True)]
    )
    ax.set_ylim(order.size - 0.4, -0.6)
    label, _ = score_label(metric or str(getattr(comparison, "metric", None) or "score"))
    count = f" of {folds.shape[1]} folds" if folds.size else ""
    finish(
        ax,
        theme,
        title="Learners compared, the best first",
        xlabel=f"{label} on held-out rows, mean{count} beside the name",
        grid="x",
    )
    legend(ax, theme, loc="best")
    return ax


def _read(comparison: Any) -> Any:
    """Return the table of a comparison as a mapping from columns to values."""
    for name in ("frame", "leaderboard"):
        if not _has_columns(comparison) and hasattr(comparison, name):
            comparison = getattr(comparison, name)
    if not _has_columns(comparison):
        found = list(comparison.columns) if hasattr(comparison, "columns") else type(comparison).__name__
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


def _folds(table: dict[str, list[Any]]) -> Array:
    found = sorted(
        (int(match.group(1)), column)
        for column in table
        if (match := re.fullmatch(r"split(\d+)_score", column))
    )
    return np.array([table[column] for _, column in found], dtype=float).T
