"""Cross-validation drawn: the score over one parameter, and over two.

The curve is that of the lecture: each fold a point, the mean a line, bars of one standard deviation up and
down, the choice marked. With ``rule="1se"`` both candidates are marked, that with the best mean and the
simplest one within one standard error, std / sqrt(folds), of it (Breiman, Friedman, Olshen and Stone,
*Classification and Regression Trees*, 1984, section 3.4.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.errors import InputError, check_option
from sixfold.explain.plots.search_results import (
    SearchResults,
    ValueAxis,
    key,
    parameter_label,
    read_search,
    setting_text,
    value_text,
)
from sixfold.explain.plots.style import (
    MARKERS,
    Theme,
    canvas,
    finish,
    label_ends,
    legend,
    number,
    plain,
    require,
    series_colour,
)

Array = NDArray[Any]

MOST_LINES = 6  # as many as there are colours


def validation_curve(
    search: Any,
    parameter: str | None = None,
    metric: str | None = None,
    ax: Any = None,
    *,
    others: str = "auto",
    dark: bool | None = None,
) -> Any:
    """Draw the scores of a search over one parameter: each fold a point, the mean a line, the choice marked.

    Parameters
    ----------
    search : fitted search
        ``GridSearchCV``, ``RandomizedSearchCV``, or anything with their ``cv_results_``.
    parameter : str, default=None
        The parameter along the axis; None takes the one with the most values.
    metric : str, default=None
        Which of several metrics; None takes the one that has decided.
    ax : matplotlib Axes, default=None
        Where to draw; None makes new ones.
    others : {"auto", "lines", "best"}, default="auto"
        What becomes of the other parameters: a line for each of their settings, or for each value of
        ``parameter`` the best over them; "auto" draws lines where there are at most six.
    dark : bool, default=None
        Whether the ground is dark; None looks at the axes.

    Returns
    -------
    matplotlib Axes
    """
    check_option("others", others, ["auto", "lines", "best"])
    results = read_search(search, metric)
    if parameter is None:
        parameter = results.main_parameter()
    results.check_parameter("parameter", parameter)
    require(
        bool(np.isfinite(results.mean).any()),
        "Every fit of the search has failed, so there is nothing to draw. Look at what fit has warned of.",
    )
    lines = _lines(results, parameter, others)
    axis = ValueAxis.of(results.values(parameter))
    ax, theme = canvas(ax, dark)
    axis.apply(ax, "x")
    chosen = results.chosen if results.chosen is not None else results.best
    ends = []
    for index, (name, candidates) in enumerate(lines):
        colour = series_colour(theme, index)
        main = len(lines) == 1 or chosen in candidates
        places = np.array([axis.place(results.settings[one][parameter]) for one in candidates])
        _draw_line(ax, results, candidates, places, colour, index, main, len(lines) > 1)
        if main and results.train_mean is not None:
            _draw_train(ax, results, candidates, places, theme)
        finished = [k for k, one in enumerate(candidates) if np.isfinite(results.mean[one])]
        if finished and len(lines) > 1:
            last = finished[-1]
            ends.append((places[last], results.mean[candidates[last]], name, colour))
    _mark_choice(ax, results, parameter, axis, theme)
    better = ", less is better" if results.less_is_better else ""
    best_over = len(lines) == 1 and _others(results, parameter)
    over = f", best over {', '.join(best_over)}" if best_over else ""
    finish(
        ax,
        theme,
        title=f"{results.n_splits}-fold cross-validation{over}",
        xlabel=parameter_label(parameter),
        ylabel=f"{results.label} on held-out rows{better}",
        grid="y",
    )
    label_ends(ax, theme, ends)
    legend(ax, theme, loc="best")
    return ax


def _others(results: SearchResults, parameter: str) -> list[str]:
    """Return the other parameters that have more than one value."""
    return [name for name in results.parameters if name != parameter and len(results.values(name)) > 1]


def _lines(results: SearchResults, parameter: str, others: str) -> list[tuple[str, list[int]]]:
    """Return a name and the candidates, by ascending value, of each line."""
    names = _others(results, parameter)
    order = {key(value): place for place, value in enumerate(results.values(parameter))}
    groups: dict[Any, list[int]] = {}
    for index, setting in enumerate(results.settings):
        if parameter in setting:
            rest = tuple((name, key(setting[name])) for name in names if name in setting)
            groups.setdefault(rest, []).append(index)

    def place(index: int) -> int:
        return order[key(results.settings[index][parameter])]

    if others == "lines" and len(groups) > MOST_LINES:
        raise InputError(
            f"others='lines' would draw {len(groups)} lines, one for each setting of {', '.join(names)}, and "
            f"there are colours for {MOST_LINES}. Pass others='best', or draw heat_map(search, x, y)."
        )
    if len(groups) > 1 and (others == "best" or (others == "auto" and len(groups) > MOST_LINES)):
        by_value: dict[int, list[int]] = {}
        for index in (index for group in groups.values() for index in group):
            by_value.setdefault(place(index), []).append(index)
        best = [results.better(by_value[value]) for value in sorted(by_value)]
        return [("", [index for index in best if index is not None])]
    found = []
    for group in groups.values():
        setting = results.settings[group[0]]
        text = setting_text({name: setting[name] for name in names if name in setting})
        found.append((text, sorted(group, key=place)))
    return found


def _draw_line(
    ax: Any,
    results: SearchResults,
    candidates: Sequence[int],
    places: Array,
    colour: str,
    index: int,
    main: bool,
    several: bool,
) -> None:
    """Draw the mean, and of the main line the folds and the bars too: those of six would hide each other."""
    mean, std = results.mean[candidates], results.std[candidates]
    marker = MARKERS[index % len(MARKERS)]
    if not main:
        (line,) = ax.plot(places, mean, color=colour, marker=marker, markersize=4, linewidth=1.5, zorder=3)
        line.set_gid("mean")
        return
    folds = results.folds[candidates]
    of_choice = ", of the choice's line" if several else ""
    points = ax.scatter(
        np.repeat(places, folds.shape[1]),
        folds.ravel(),
        s=14,
        color=colour,
        alpha=0.45,
        linewidths=0,
        zorder=2,
        label=f"one fold{of_choice}",
    )
    points.set_gid("folds")
    bars = ax.errorbar(
        places,
        mean,
        yerr=std,
        color=colour,
        marker=marker,
        markersize=4,
        linewidth=2,
        elinewidth=1.2,
        capsize=3,
        zorder=4,
        label=f"mean ± one standard deviation{of_choice}",
    )
    bars.lines[0].set_gid("mean")


def _draw_train(
    ax: Any, results: SearchResults, candidates: Sequence[int], places: Array, theme: Theme
) -> None:
    assert results.train_mean is not None
    assert results.train_std is not None
    mean, std = results.train_mean[candidates], results.train_std[candidates]
    (line,) = ax.plot(
        places,
        mean,
        color=theme.muted,
        linestyle="--",
        linewidth=1.6,
        zorder=3,
        label="mean on rows learnt from",
    )
    line.set_gid("train")
    ax.fill_between(places, mean - std, mean + std, color=theme.muted, alpha=0.15, linewidth=0, zorder=1)


def _mark_choice(ax: Any, results: SearchResults, parameter: str, axis: ValueAxis, theme: Theme) -> None:
    """Draw a ring round the choice; with one standard error, a square round the best too."""
    chosen, best = results.chosen, results.best
    if chosen is None or best is None or parameter not in results.settings[chosen]:
        return

    def mark(index: int, marker: str, label: str, gid: str) -> None:
        setting = results.settings[index]
        (ring,) = ax.plot(
            [axis.place(setting[parameter])],
            [results.mean[index]],
            marker=marker,
            markersize=13,
            markerfacecolor="none",
            markeredgecolor=theme.mark,
            markeredgewidth=2,
            linestyle="none",
            zorder=5,
            label=plain(f"{label}: {_short_setting(setting)}, {number(results.mean[index], 3)}"),
        )
        ring.set_gid(gid)

    if results.one_standard_error:
        mark(best, "s", "best mean", "best")
        line = ax.axhline(
            results.threshold,
            color=theme.muted,
            linestyle=":",
            linewidth=1.4,
            zorder=1,
            label="best mean less one standard error",
        )
        line.set_gid("one standard error")
        mark(
            chosen, "o", "chosen, the simplest above it" * (not results.less_is_better) or "chosen", "chosen"
        )
    else:
        mark(chosen, "o", "chosen", "chosen")


def _short_setting(setting: dict[str, Any]) -> str:
    text = setting_text(setting)
    if len(text) <= 40:
        return text
    short = ", ".join(f"{name.rsplit('__', 1)[-1]} = {value_text(value)}" for name, value in setting.items())
    return short if len(short) <= 60 else f"{short[:59]}…"
