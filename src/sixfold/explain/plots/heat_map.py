"""The scores of a search over two parameters: cells of a grid, or points where there is none.

Colours are those of cividis, which grow lighter evenly and look alike to people with any colour vision
(Nuñez, Anderton and Renslow, PLOS ONE 13, 2018).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.errors import InputError
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
    SMALL,
    canvas,
    finish,
    luminance,
    make_readable,
    plain,
    require,
    slant_if_crowded,
)
from sixfold.explain.text import text_width

Array = NDArray[Any]

COLOURS = "cividis"


def heat_map(
    search: Any,
    x: str | None = None,
    y: str | None = None,
    metric: str | None = None,
    ax: Any = None,
    *,
    dark: bool | None = None,
) -> Any:
    """Draw the mean scores of a search over two parameters as colours, the choice framed.

    Where there are further parameters, a cell shows the best over them, and the title says so. A search at
    random has no grid; its settings are points.

    Parameters
    ----------
    search : fitted search
        ``GridSearchCV``, ``RandomizedSearchCV``, or anything with their ``cv_results_``.
    x, y : str, default=None
        The parameters along the axes; None takes those with the most values.
    metric : str, default=None
        Which of several metrics; None takes the one that has decided.
    ax : matplotlib Axes, default=None
        Where to draw; None makes new ones. The colour bar takes its room from them.
    dark : bool, default=None
        Whether the ground is dark; None looks at the axes.

    Returns
    -------
    matplotlib Axes
    """
    results = read_search(search, metric)
    x, y = _two_parameters(results, x, y)
    require(
        bool(np.isfinite(results.mean).any()),
        "Every fit of the search has failed, so there is nothing to draw. Look at what fit has warned of.",
    )
    across, up = results.values(x), results.values(y)
    cells = _cells(results, x, y)
    require(
        bool(cells),
        f"No setting with a score has both {x} and {y}. Pass two parameters that were tried together, or "
        f"draw validation_curve(search, {x!r}).",
    )
    ax, theme = canvas(ax, dark)
    grid = len(cells) >= 0.5 * len(across) * len(up)
    if grid:
        image = _draw_cells(ax, results, cells, across, up)
        frame_choice = _frame_cell
    else:
        image = _draw_points(ax, results, cells, ValueAxis.of(across), ValueAxis.of(up), theme.muted, x, y)
        frame_choice = _ring_point
    bar = ax.figure.colorbar(image, ax=ax, pad=0.02)
    less = ", less is better" if results.less_is_better else ""
    bar.set_label(f"{results.label}, mean of {results.n_splits} folds{less}")
    bar.outline.set_visible(False)
    make_readable(bar.ax, theme)
    chosen, said = results.chosen, ""
    if chosen is not None:
        setting = results.settings[chosen]
        if {x, y} <= set(setting):
            frame_choice(ax, results, chosen, x, y, across, up)
            said = f"\n{'framed' if grid else 'with a ring'}, the choice: {setting_text(setting)}"
        else:
            said = f"\nthe choice is none of these: {setting_text(setting)}"
    others = [name for name in results.parameters if name not in (x, y) and len(results.values(name)) > 1]
    over = f" (each the best over {', '.join(others)})" if others else ""
    return finish(
        ax,
        theme,
        title=f"Cross-validation over two parameters{over}{said}",
        xlabel=parameter_label(x),
        ylabel=parameter_label(y),
    )


def _two_parameters(results: SearchResults, x: str | None, y: str | None) -> tuple[str, str]:
    for argument, name in (("x", x), ("y", y)):
        if name is not None:
            results.check_parameter(argument, name)
    varied = sorted(results.parameters, key=lambda name: -len(results.values(name)))
    rest = [name for name in varied if name not in (x, y)]
    if len(rest) < (x is None) + (y is None):
        has = f"{', '.join(results.parameters)} alone" if results.parameters else "nothing"
        raise InputError(
            f"The search has varied {has}, and a heat map needs two parameters. Draw "
            "validation_curve(search), or search over two."
        )
    if x is None:
        x = rest.pop(0)
    if y is None:
        y = rest.pop(0)
    if x == y:
        raise InputError(f"x and y are both {x!r}. Pass two parameters.")
    return x, y


def _cells(results: SearchResults, x: str, y: str) -> dict[tuple[Any, Any], int]:
    """Return the best candidate of each pair of values; pairs of which every fit has failed are left out."""
    candidates: dict[tuple[Any, Any], list[int]] = {}
    for index, setting in enumerate(results.settings):
        if x in setting and y in setting:
            candidates.setdefault((key(setting[x]), key(setting[y])), []).append(index)
    best = {pair: results.better(group) for pair, group in candidates.items()}
    return {pair: index for pair, index in best.items() if index is not None}


def _draw_cells(
    ax: Any, results: SearchResults, cells: dict[tuple[Any, Any], int], across: list[Any], up: list[Any]
) -> Any:
    table = np.full((len(up), len(across)), np.nan)
    column = {key(value): place for place, value in enumerate(across)}
    row = {key(value): place for place, value in enumerate(up)}
    for (first, second), index in cells.items():
        table[row[second], column[first]] = results.mean[index]
    colours = f"{COLOURS}_r" if results.less_is_better else COLOURS  # lighter is better
    image = ax.imshow(np.ma.masked_invalid(table), cmap=colours, origin="lower", aspect="auto")
    for axis, values in ((ax.xaxis, across), (ax.yaxis, up)):
        every = -(-len(values) // 20)
        axis.set_ticks(range(0, len(values), every), [plain(value_text(value)) for value in values[::every]])
    slant_if_crowded(ax)
    _write_values(ax, image, table)
    return image


def _write_values(ax: Any, image: Any, table: Array) -> None:
    """Write each mean into its cell, where all have room for as many digits as tell them apart."""
    known = table[np.isfinite(table)]
    spread = float(np.ptp(known))
    digits = 3 if spread == 0 else int(np.clip(2 - np.floor(np.log10(spread)), 0, 4))
    texts = {(i, j): f"{table[i, j]:.{digits}f}" for i, j in np.argwhere(np.isfinite(table))}
    # Three quarters of the figure, as labels and the colour bar leave it.
    width, height = 72.0 * ax.figure.figure.get_size_inches() * 0.75 * ax.get_position().size / (0.775, 0.77)
    longest = max(text_width(text, SMALL) for text in texts.values())
    if longest > 0.9 * width / table.shape[1] or height / table.shape[0] < 1.3 * SMALL:
        return
    for (i, j), text in texts.items():
        bright = luminance(image.cmap(image.norm(table[i, j]))) > 0.18
        ax.text(
            j, i, text, fontsize=SMALL, color="#000000" if bright else "#ffffff", ha="center", va="center"
        )


def _draw_points(
    ax: Any,
    results: SearchResults,
    cells: dict[tuple[Any, Any], int],
    across: ValueAxis,
    up: ValueAxis,
    edge: str,
    x: str,
    y: str,
) -> Any:
    across.apply(ax, "x")
    up.apply(ax, "y")
    indices = list(cells.values())
    return ax.scatter(
        [across.place(results.settings[index][x]) for index in indices],
        [up.place(results.settings[index][y]) for index in indices],
        c=results.mean[indices],
        cmap=f"{COLOURS}_r" if results.less_is_better else COLOURS,
        s=70,
        edgecolors=edge,
        linewidths=0.6,
        zorder=3,
    )


def _frame_cell(
    ax: Any, results: SearchResults, chosen: int, x: str, y: str, across: list[Any], up: list[Any]
) -> None:
    from matplotlib.patches import Rectangle

    setting = results.settings[chosen]
    column = [key(value) for value in across].index(key(setting[x]))
    row = [key(value) for value in up].index(key(setting[y]))
    for colour, width in (("#000000", 4.5), ("#ffffff", 2.0)):  # white on black is seen on every colour
        frame = Rectangle(
            (column - 0.5, row - 0.5),
            1,
            1,
            fill=False,
            edgecolor=colour,
            linewidth=width,
            zorder=4,
            clip_on=False,
        )
        frame.set_gid("chosen")
        ax.add_patch(frame)


def _ring_point(
    ax: Any, results: SearchResults, chosen: int, x: str, y: str, across: list[Any], up: list[Any]
) -> None:
    setting = results.settings[chosen]
    place = (ValueAxis.of(across).place(setting[x]), ValueAxis.of(up).place(setting[y]))
    for colour, width in (("#000000", 4.5), ("#ffffff", 2.0)):
        (ring,) = ax.plot(
            *[[part] for part in place],
            marker="o",
            markersize=14,
            markerfacecolor="none",
            markeredgecolor=colour,
            markeredgewidth=width,
            linestyle="none",
            zorder=4,
        )
        ring.set_gid("chosen")
