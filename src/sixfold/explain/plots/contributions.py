"""The way from the score of the mean row to that of one row, a bar for each column."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logit

from sixfold.explain.axes import LABEL_LETTERS, tick_names
from sixfold.explain.contribution_lines import Line, decimals, shown_share, signed, table_lines
from sixfold.explain.linear import LinearExplanation
from sixfold.explain.plots.style import SMALL, canvas, finish, ground_of, make_readable, number, plain
from sixfold.explain.text import cut_middle
from sixfold.explain.trees.words import class_word, word

SHARES = (
    0.001,
    0.01,
    0.05,
    0.1,
    0.2,
    0.3,
    0.4,
    0.5,
    0.6,
    0.7,
    0.8,
    0.9,
    0.95,
    0.99,
    0.999,
)  # marks of the axis of probabilities
ROOM = 0.12  # of the width, beside the bars, for what they add
LEAST_APART = 0.06  # of two marks on that axis, of its width


def contributions(one: LinearExplanation, ax: Any = None, *, dark: bool | None = None) -> Any:
    """Draw an explanation: each bar starts where the one above it ended.

    Parameters
    ----------
    one : LinearExplanation
    ax : matplotlib Axes, default=None
        Where to draw; None makes new ones.
    dark : bool, default=None
        Whether the ground is dark; None looks at the axes.

    Returns
    -------
    matplotlib Axes
    """
    start, *lines, end = table_lines(one)
    ax, theme = canvas(ax, dark, height=max(2.5, 0.32 * len(lines) + 1.9))
    parts = np.array([line.part for line in lines])
    ends = start.part + parts.cumsum()
    colours = [theme.series[int(part < 0)] for part in parts]
    ax.barh(range(parts.size), parts, left=ends - parts, color=colours, height=0.7, zorder=3)
    digits = decimals([line.part for line in (start, *lines, end)])
    # The place of an end of a bar says where the next one starts.
    ax.vlines(
        ends[:-1], np.arange(parts.size - 1) - 0.35, np.arange(1, parts.size) + 0.35, theme.muted, lw=0.8
    )
    for place, (part, after) in enumerate(zip(parts, ends, strict=True)):
        side = 1 if part >= 0 else -1
        ax.annotate(
            signed(part, digits), (after, place), (4 * side, 0), textcoords="offset points", va="center",
            ha="left" if side > 0 else "right", fontsize=SMALL, color=theme.ink, zorder=4,
            bbox={"facecolor": ground_of(ax), "edgecolor": "none", "pad": 1.0, "alpha": 0.8},
        )  # fmt: skip
    for line, style in ((start, ":"), (end, "-")):
        ax.axvline(line.part, color=theme.muted, linewidth=1.0, linestyle=style, zorder=2)
    ax.set_yticks(range(parts.size), [plain(name) for name in tick_names([_name(line) for line in lines])])
    ax.set_ylim(parts.size - 0.4, -0.6)
    low, high = min(start.part, *ends), max(start.part, *ends)
    room = ROOM * (high - low) or 1.0
    ax.set_xlim(low - room, high + room)
    if len(one.steps.sign) == 2 and one.odds:
        _probabilities(ax, theme)
    return finish(ax, theme, title=_title(one), xlabel=_axis(one, start, end), grid="x")


def _name(line: Line) -> str:
    if line.value is None:
        return word(line.name)
    value = number(line.value) if isinstance(line.value, float) else word(line.value)
    return f"{word(line.name)} = {value}"


def _title(one: LinearExplanation) -> str:
    if one.against is None:
        return f"answer: {one.answer:.6g}"
    likely = "" if one.probability is None else f", probability {shown_share(one.probability)}"
    return f"answer: {_class(one.answer)}{likely if one.of == one.answer else ''}"


def _class(label: Any) -> str:
    return cut_middle(class_word(label), lambda part: len(part) <= LABEL_LETTERS)


def _axis(one: LinearExplanation, start: Line, end: Line) -> str:
    of = "prediction" if one.against is None else f"score of {_class(one.of)}"
    against = "" if one.against is None or len(one.steps.sign) == 2 else f" against {_class(one.against)}"
    return f"{of}{against}: {number(start.part, 3)} for the {start.name}, {number(end.part, 3)} for this row"


def _probabilities(ax: Any, theme: Any) -> None:
    """Draw an axis of probabilities above one of log-odds."""
    low, high = ax.get_xlim()
    shown: list[float] = []
    for share in sorted(SHARES, key=lambda share: abs(share - 0.5)):  # the outer ones give way
        place = float(logit(share))
        apart = min((abs(place - float(logit(one))) for one in shown), default=high - low)
        if low <= place <= high and apart >= LEAST_APART * (high - low):
            shown.append(share)
    if len(shown) < 2:
        return
    above = ax.secondary_xaxis("top")
    above.set_xticks([float(logit(share)) for share in shown], [f"{share:.3g}" for share in shown])
    above.set_xlabel("probability")
    make_readable(above, theme)
