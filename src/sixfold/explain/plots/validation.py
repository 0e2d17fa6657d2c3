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
MOST_FOLDS = 30  # of so many, points hide the mean; left-out single rows are right or wrong and show nothing


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

    Bars are one standard deviation of the folds. Of more than 30 folds, as in leave-one-out, there are no
    points, and bars are one standard error of the mean.

    Parameters
    ----------
    search : fitted search
        ``GridSearchCV``, ``RandomizedSearchCV``, or anything with their ``cv_results_``; ``LassoCV``,
        ``ElasticNetCV`` and ``LogisticRegressionCV`` too, and a ``RidgeCV`` that has stored its errors.
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
    assert chosen is not None  # as one mean is finite
    mark_at = (
        axis.place(results.settings[chosen][parameter]) if parameter in results.settings[chosen] else None
    )
    ends = []
    for index, (name, candidates) in enumerate(lines):
        main = len(lines) == 1 or chosen in candidates
        places = np.array([axis.place(results.settings[one][parameter]) for one in candidates])
        look = {
            "color": series_colour(theme, index),
            "marker": MARKERS[index % len(MARKERS)],
            "markersize": 4,
        }
        if not axis.ordered:  # beside each other, as no line tells them apart
            places += 0.12 * (index - (len(lines) - 1) / 2)
            look |= {"linestyle": "none", "markersize": 7}
        line = _draw_line(ax, results, candidates, places, theme, look, name if main else None)
        if main and results.train_mean is not None:
            _draw_train(ax, results, candidates, places, theme, axis.ordered)
        if chosen in candidates:
            mark_at = places[candidates.index(chosen)]
        finished = [k for k, one in enumerate(candidates) if np.isfinite(results.mean[one])]
        if finished and len(lines) > 1 and axis.ordered:
            ends.append((places[finished[-1]], results.mean[candidates[finished[-1]]], name, line))
        elif not main:
            line.set_label(plain(name))
    if mark_at is not None:
        _mark_choice(ax, results, chosen, mark_at, parameter, axis, theme)
    better = ", less is better" if results.less_is_better else ""
    best_over = len(lines) == 1 and _others(results, parameter)
    over = f", best over {', '.join(best_over)}" if best_over else ""
    having = sum(parameter in setting for setting in results.settings)
    of_all = f"\nthe {having} of {len(results.settings)} settings that have {parameter}"
    some = of_all if having < len(results.settings) else ""
    finish(
        ax,
        theme,
        title=f"{_kind_of_validation(results.n_splits)}{over}{some}",
        xlabel=parameter_label(parameter),
        ylabel=f"{results.label} on held-out rows{better}",
        grid="y",
    )
    label_ends(ax, theme, ends)
    legend(ax, theme, below=True)
    return ax


def _kind_of_validation(splits: int) -> str:
    return "Validation on one part of the rows" if splits == 1 else f"{splits}-fold cross-validation"


def _others(results: SearchResults, parameter: str) -> list[str]:
    """Return the other parameters that differ between the settings of one; not to be there differs too."""
    settings = [setting for setting in results.settings if parameter in setting]
    return [
        name
        for name in results.parameters
        if name != parameter and len({key(setting.get(name, key)) for setting in settings}) > 1
    ]


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
        # A search by halving tries a setting again on more rows: the last try counts, or the chosen one.
        once = {place(index): index for index in sorted(group, key=lambda index: index == results.chosen)}
        setting = results.settings[group[0]]
        text = setting_text({name: setting[name] for name in names if name in setting})
        found.append((text, [once[value] for value in sorted(once)]))
    return found


def _draw_line(
    ax: Any,
    results: SearchResults,
    candidates: Sequence[int],
    places: Array,
    theme: Theme,
    look: dict[str, Any],
    name: str | None,
) -> Any:
    """Draw the mean and, of the line with a name, folds and bars too: those of six would hide each other."""
    mean, bars_of, half = results.mean[candidates], "standard deviation", results.std[candidates]
    if name is None:
        (line,) = ax.plot(places, mean, **({"linewidth": 1.5} | look), zorder=3)
        line.set_gid("mean")
        return line
    folds = results.folds[candidates]
    of_line = f"{name}: " if name else ""
    if results.n_splits > MOST_FOLDS:
        bars_of, half = "standard error", half / np.sqrt(results.n_splits)
    else:
        points = ax.scatter(
            np.repeat(places, folds.shape[1]),
            folds.ravel(),
            s=14,
            color=look["color"],
            alpha=theme.point_alpha,
            linewidths=0,
            zorder=2,
            label=plain(f"{of_line}one fold"),
        )
        points.set_gid("folds")
    bars = ax.errorbar(
        places,
        mean,
        yerr=half,
        **({"linewidth": 2} | look),
        elinewidth=1.2,
        capsize=3,
        zorder=4,
        label=plain(f"{of_line}mean ± one {bars_of}"),
    )
    bars.lines[0].set_gid("mean")
    return bars.lines[0]


def _draw_train(
    ax: Any, results: SearchResults, candidates: Sequence[int], places: Array, theme: Theme, joined: bool
) -> None:
    assert results.train_mean is not None
    assert results.train_std is not None
    mean, std = results.train_mean[candidates], results.train_std[candidates]
    look: dict[str, Any] = (
        {"linestyle": "--", "linewidth": 1.6} if joined else {"linestyle": "none", "marker": "_"}
    )
    (line,) = ax.plot(places, mean, color=theme.muted, **look, zorder=3, label="mean on rows learnt from")
    line.set_gid("train")
    if joined:
        ax.fill_between(places, mean - std, mean + std, color=theme.muted, alpha=0.15, linewidth=0, zorder=1)


def _mark_choice(
    ax: Any, results: SearchResults, chosen: int, place: float, parameter: str, axis: ValueAxis, theme: Theme
) -> None:
    """Draw a ring round the choice; with one standard error, a square round the best too."""

    def mark(index: int, at: float, marker: str, label: str, gid: str) -> None:
        (ring,) = ax.plot(
            [at],
            [results.mean[index]],
            marker=marker,
            markersize=13,
            markerfacecolor="none",
            markeredgecolor=theme.mark,
            markeredgewidth=2,
            linestyle="none",
            zorder=5,
            label=plain(
                f"{label}: {_short_setting(results.settings[index])}, {number(results.mean[index], 3)}"
            ),
        )
        ring.set_gid(gid)

    best = results.best
    if not results.one_standard_error or best is None:
        mark(chosen, place, "o", "chosen", "chosen")
        return
    if parameter in results.settings[best]:
        mark(best, axis.place(results.settings[best][parameter]), "s", "best mean", "best")
    line = ax.axhline(
        results.threshold,
        color=theme.muted,
        linestyle=":",
        linewidth=1.4,
        zorder=1,
        label=f"best mean {'plus' if results.less_is_better else 'less'} one standard error",
    )
    line.set_gid("one standard error")
    mark(chosen, place, "o", "chosen, the simplest within it", "chosen")


def _short_setting(setting: dict[str, Any]) -> str:
    text = setting_text(setting)
    if len(text) <= 40:
        return text
    short = ", ".join(f"{name.rsplit('__', 1)[-1]} = {value_text(value)}" for name, value in setting.items())
    return short if len(short) <= 60 else f"{short[:59]}…"
