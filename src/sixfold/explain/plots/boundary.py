"""The decision regions of a classifier in a plane, and what its rows have to do with them.

Colours are the classes that ``predict`` names on a grid of points; nothing else is asked of the model. Where
there are scores f(x) whose largest (or whose sign) is that answer, the border is drawn as their level line;
for a support vector machine f = -1 and f = +1 are the margins as well, and the rows that it rests on have
rings. For the plane through many columns see :mod:`sixfold.explain.plots.plane`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from scipy.spatial import KDTree

from sixfold.errors import InputError, check_flag, check_number
from sixfold.explain.last_step import last_step
from sixfold.explain.palette import COLOURS, OTHERS, base_colour, class_colours
from sixfold.explain.plots.plane import Plane, choose_plane, read_table
from sixfold.explain.plots.shades import outline, region, tint, vivid
from sixfold.explain.plots.style import SMALL, Theme, canvas, finish, ground_of, plain

Array = NDArray[Any]
MARKERS = "osD^vPX*"
SIZES = {"P": 1.4, "X": 1.5, "*": 2.2}  # where a marker of the same size looks smaller
MOST_ROWS = 2000  # that are drawn; more would hide the regions
MOST_NAMES = 12  # of classes in the legend


@dataclass(frozen=True)
class Answers:
    """What the model says: the class of each row and of each point of the grid, by number."""

    classes: Array
    of_rows: Array
    of_grid: Array  # (resolution, resolution)
    score: Array | None  # (resolution, resolution), or with one entry a class; None if there is none
    across: Array
    up: Array


def decision_boundary(
    model: Any,
    X: Any,
    y: Any,
    ax: Any = None,
    columns: Sequence[Any] | None = None,
    *,
    normal: bool = False,
    legend: bool = True,
    resolution: int = 240,
    dark: bool | None = None,
) -> Any:
    """Draw the regions that a classifier gives each class, and the rows in them.

    Rows have the colour and the marker of their own class; crosses are on those that the model gets wrong.
    For a support vector machine rings are around the support vectors and, with two classes, dashed lines are
    where the decision function is -1 and +1.

    Parameters
    ----------
    model : fitted classifier
        Ours, scikit-learn's, a pipeline: whatever has ``predict``.
    X : table of shape (rows, columns)
        With two columns these are the axes. With more, the axes are the two principal directions of the
        standardised columns, and the model is asked at the points of the plane that they span through the
        mean; rows lie off that plane, so that a row can be right in a region of another colour.
    y : array of shape (rows,)
        The classes of the rows.
    ax : matplotlib Axes, default=None
        Where to draw; None for a new figure.
    columns : pair of names or numbers, default=None
        Two columns to be the axes instead; the others are held at their medians.
    normal : bool, default=False
        Whether to draw the direction in which the decision function of two classes grows, as an arrow at the
        border: w for a linear model. The axes then have equal units, in which it stands upright on it.
    legend : bool, default=True
        Whether to say beside the axes what is what; for one of several pictures, False.
    resolution : int, default=240
        How many points the grid has along each axis.
    dark : bool, default=None
        Whether the ground is dark; None to see by the colour of the axes.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from sixfold import LinearSVC
    >>> X, y = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [3.0, 3.0], [4.0, 3.0]], [0, 0, 0, 1, 1]
    >>> ax = decision_boundary(LinearSVC(loss="hinge").fit(X, y), X, y)
    >>> ax.get_title()
    'LinearSVC: 5 of 5 rows right'
    """
    _check_classifier(model)
    check_number("resolution", resolution, at_least=2, whole=True)
    check_flag("normal", normal)
    check_flag("legend", legend)
    plane = choose_plane(read_table(X, model), columns)
    y = np.asarray(y)
    if y.shape != (len(plane.rows),):
        raise InputError(f"y has shape {y.shape} and X has {len(plane.rows)} rows. Pass one class a row.")
    if len(y) == 0:
        raise InputError("X has no rows, so there is nothing to draw.")
    answers = _ask(model, X, y, plane, int(resolution))
    own = np.searchsorted(answers.classes, y)
    ax, theme = canvas(ax, dark, height=5.2)
    looks = class_colours(np.bincount(own, minlength=len(answers.classes)).astype(np.float64))
    _draw_regions(ax, theme, answers, looks)
    lines = _draw_borders(ax, theme, answers, _has_margin(model))
    _draw_rows(ax, theme, plane.rows, own, answers, looks, _support_rows(model, X, len(y)))
    if normal:
        _draw_normal(ax, theme, plane.rows[np.isfinite(plane.rows).all(axis=1)], answers)
    right = int((answers.of_rows == own).sum())
    ax.set(xlim=answers.across[[0, -1]], ylim=answers.up[[0, -1]])
    if legend:
        _draw_legend(ax, theme, answers.classes, looks, lines)
    xlabel, ylabel = plane.labels
    if plane.pair is not None and not plane.exact:
        xlabel += "\n(regions: the other columns at their medians)"
    title = f"{_name(model)}: {right:,} of {len(y):,} rows right"
    return finish(ax, theme, title=title, xlabel=xlabel, ylabel=ylabel)


def _check_classifier(model: Any) -> None:
    from sklearn.base import is_regressor

    if not hasattr(model, "predict"):
        raise InputError(f"model is of type {type(model).__name__}, which has no predict. Pass a classifier.")
    if hasattr(model, "__sklearn_tags__") and is_regressor(model):
        raise InputError(
            f"A {_name(model)} predicts numbers, and a boundary lies between classes. Pass a classifier; "
            "sixfold.plot.residuals shows what a regressor leaves."
        )


def _last(model: Any) -> Any:
    """Return the step of a pipeline, or the model of a search, that decides; else the model itself."""
    return last_step(getattr(model, "best_estimator_", model))


def _name(model: Any) -> str:
    return type(_last(model)).__name__


def _ask(model: Any, X: Any, y: Array, plane: Plane, resolution: int) -> Answers:
    known = np.isfinite(plane.rows).all(axis=1)
    if not known.any():
        raise InputError("No row has a value in both columns, so there is nothing to draw.")
    low, high = plane.rows[known].min(axis=0), plane.rows[known].max(axis=0)
    room = np.where(high > low, 0.06 * (high - low), 1.0)
    across, up = (np.linspace(a, b, resolution) for a, b in zip(low - room, high + room, strict=True))
    grid = plane.rows_at(np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2))
    of_rows, of_grid = np.asarray(model.predict(X)), np.asarray(model.predict(grid))
    if of_rows.shape != y.shape:
        raise InputError(f"predict gives an array of shape {of_rows.shape} where one class a row is needed.")
    classes = _all_classes(y, of_rows, of_grid, np.asarray(getattr(model, "classes_", of_rows)))
    numbers = np.searchsorted(classes, of_grid.astype(classes.dtype)).reshape(resolution, resolution)
    score = _scores(model, grid, classes, numbers)
    return Answers(
        classes, np.searchsorted(classes, of_rows.astype(classes.dtype)), numbers, score, across, up
    )


def _all_classes(y: Array, *named: Array) -> Array:
    """Return every class that y or the model names, sorted, as y holds them."""
    try:
        return np.unique(np.concatenate([np.unique(part).astype(y.dtype) for part in (y, *named)]))
    except (TypeError, ValueError) as error:
        words = f"y holds {y.dtype} and the model names {named[0].dtype}: pass y as in fit."
        raise InputError(words) from error


def _scores(model: Any, grid: Any, classes: Array, numbers: Array) -> Array | None:
    """Return the scores of which the answers on the grid are the largest, if the model has such."""
    own = getattr(model, "classes_", None)
    if own is None or len(own) != len(classes):
        return None
    for method in ("decision_function", "predict_proba"):
        if not hasattr(model, method):
            continue
        score = np.asarray(getattr(model, method)(grid), dtype=np.float64)
        if method == "predict_proba" and len(classes) == 2:
            score = score[:, 1] - 0.5
        if score.ndim == 1 and len(classes) == 2:
            agrees = (score > 0.0) == (numbers.ravel() == 1)
        elif score.ndim == 2 and score.shape[1] == len(classes):
            agrees = score.argmax(axis=1) == numbers.ravel()
        else:
            continue
        if agrees.mean() > 0.999 and _continuous(score, numbers):  # on the border itself rounding decides
            return score.reshape(*numbers.shape, *score.shape[1:])
    return None


def _continuous(score: Array, numbers: Array) -> bool:
    """Return whether the two largest scores meet at the borders, and do not jump there as votes do."""
    score = score.reshape(*numbers.shape, -1)
    if score.shape[2] == 1:
        lead = np.abs(score[..., 0])
    else:
        top = np.partition(score, -2, axis=-1)
        lead = top[..., -1] - top[..., -2]
    border = (numbers[:, 1:] != numbers[:, :-1]).nonzero()
    if border[0].size == 0:
        return True
    # From one point of a grid to the next a slope makes a small part of what it makes over the whole.
    return bool(np.median(np.minimum(lead[:, 1:], lead[:, :-1])[border]) < 0.05 * lead.max())


def _draw_regions(ax: Any, theme: Theme, answers: Answers, looks: dict[int, int]) -> None:
    """Fill the regions: the image for colours, and stripes for classes that share a colour with another."""
    from matplotlib.colors import to_rgb

    tints = np.array([to_rgb(region(ax, theme, looks[label])) for label in looks])
    step_x, step_y = (np.diff(axis[:2])[0] / 2 for axis in (answers.across, answers.up))
    extent = (
        answers.across[0] - step_x,
        answers.across[-1] + step_x,
        answers.up[0] - step_y,
        answers.up[-1] + step_y,
    )
    aspect = ax.get_aspect()
    ax.imshow(
        tints[answers.of_grid],
        extent=extent,
        origin="lower",
        aspect=aspect,
        interpolation="nearest",
        zorder=0,
    )
    for label, look in looks.items():
        inside = answers.of_grid == label
        if len(COLOURS) <= look < OTHERS and inside.any():
            filled = ax.contourf(
                answers.across,
                answers.up,
                inside,
                levels=[0.5, 1.5],
                colors="none",
                hatches=["///" if look < 2 * len(COLOURS) else ".."],
                zorder=0.5,
            )
            filled.set(edgecolor=tint(ax, theme, base_colour(look), 0.6), linewidth=0.0)


def _draw_borders(ax: Any, theme: Theme, answers: Answers, margins: bool) -> list[Any]:
    """Draw where one region ends, and the margins; return what the legend says of them."""
    from matplotlib.lines import Line2D

    ink, score = theme.ink, answers.score
    style = {"colors": ink, "zorder": 2}
    if score is not None and score.ndim == 2:
        levels = [0.0]
        if margins:
            levels = [-1.0, 0.0, 1.0]
        within = [level for level in levels if score.min() < level < score.max()]
        dashes = ["solid" if level == 0.0 else "dashed" for level in within]
        if within:
            ax.contour(
                answers.across, answers.up, score, levels=within, linestyles=dashes, linewidths=1.2, **style
            )
        if margins and any(within):
            return [
                Line2D([], [], color=ink, linewidth=1.2, label="decision = 0"),
                Line2D([], [], color=ink, linewidth=1.2, linestyle="--", label="margin: -1 and +1"),
            ]
        return []
    for label in range(len(answers.classes) if answers.of_grid.min() < answers.of_grid.max() else 0):
        if score is None:  # steps of the grid are no steps of the border
            height, level = gaussian_filter((answers.of_grid == label).astype(np.float64), 1.2), 0.5
        else:
            height, level = score[..., label] - np.delete(score, label, axis=-1).max(axis=-1), 0.0
        if height.min() < level < height.max():
            ax.contour(answers.across, answers.up, height, levels=[level], linewidths=0.9, **style)
    return []


def _has_margin(model: Any) -> bool:
    """Return whether decisions of -1 and +1 mean something: the hinge is what was minimised."""
    last = _last(model)
    return hasattr(last, "support_") or getattr(last, "loss", None) in ("hinge", "squared_hinge")


def _support_rows(model: Any, X: Any, count: int) -> Array:
    """Return the numbers of the support vectors among the rows of X, if these are the rows of the fit."""
    none = np.empty(0, dtype=np.intp)
    last = _last(model)
    rows = getattr(last, "support_", None)
    if isinstance(rows, list) and rows:  # those of each plane, where there are several
        rows = np.unique(np.concatenate(rows))
    if not isinstance(rows, np.ndarray) or rows.ndim != 1 or rows.dtype.kind not in "iu" or rows.size == 0:
        return none
    vectors = getattr(last, "support_vectors_", None)
    if np.max(rows) >= count or vectors is None:
        return none if np.max(rows) >= count else np.asarray(rows)
    model = getattr(model, "best_estimator_", model)
    seen = model[:-1].transform(X) if hasattr(model, "steps") and len(model.steps) > 1 else X
    seen, vectors = (part.toarray() if sp.issparse(part) else np.asarray(part) for part in (seen, vectors))
    same = seen[rows].shape == vectors.shape and np.allclose(
        seen[rows].astype(float), vectors.astype(float), rtol=1e-5
    )
    return np.asarray(rows) if same else none


def _marker(label: int) -> str:
    """Return the marker of a class: where a colour comes again, with another marker."""
    return MARKERS[(label + 3 * (label // len(COLOURS))) % len(MARKERS)]


def _draw_rows(
    ax: Any, theme: Theme, rows: Array, own: Array, answers: Answers, looks: dict[int, int], support: Array
) -> None:
    from matplotlib.patheffects import withStroke

    shown = np.arange(len(rows))
    if len(rows) > MOST_ROWS:  # evenly spread over the table: the same ones every time
        shown = np.unique(np.linspace(0, len(rows) - 1, MOST_ROWS).astype(np.intp))
    size = 30.0 if len(shown) <= 300 else 16.0
    ink = theme.ink
    for label in range(len(answers.classes)):
        part = shown[own[shown] == label]
        ax.scatter(
            *rows[part].T,
            s=size * SIZES.get(_marker(label), 1.0) * np.where(own[part] == answers.of_rows[part], 1.0, 2.0),
            color=vivid(theme, base_colour(looks[label])),
            marker=_marker(label),
            edgecolor=outline(base_colour(looks[label])),
            linewidth=0.6,
            zorder=3,
        )
    rings, wrong = np.intersect1d(support, shown), shown[own[shown] != answers.of_rows[shown]]
    if support.size:
        said = f"support vectors ({support.size:,})"
        ax.scatter(
            *rows[rings].T, s=3.2 * size, facecolor="none", edgecolor=ink, linewidth=0.9, zorder=4, label=said
        )
    if (own != answers.of_rows).any():
        said = f"wrong ({int((own != answers.of_rows).sum()):,})"
        crosses = ax.scatter(
            *rows[wrong].T, s=0.7 * size, color=ink, marker="x", linewidth=1.3, zorder=5, label=said
        )
        crosses.set_path_effects([withStroke(linewidth=2.4, foreground=ground_of(ax))])


def _draw_normal(ax: Any, theme: Theme, rows: Array, answers: Answers) -> None:
    """Draw an arrow up the decision function, from where the border is farthest from any row."""
    from matplotlib.patheffects import withStroke

    if answers.score is None or answers.score.ndim != 2:
        raise InputError(
            "normal=True needs a model of two classes with a decision function or probabilities."
        )
    slope_y, slope_x = np.gradient(answers.score, answers.up, answers.across)
    grid = np.stack(np.meshgrid(answers.across, answers.up), axis=-1)
    span = grid[-1, -1] - grid[0, 0]
    inside = (np.abs(grid - grid.mean(axis=(0, 1))) < 0.27 * span).all(axis=-1)
    size = np.abs(answers.score)
    border = inside & (size <= np.quantile(size[inside], 2.0 / len(answers.up)))
    room = np.where(border, KDTree(rows / span).query(grid / span)[0], -1.0)
    row, column = np.unravel_index(room.argmax(), room.shape)
    w = np.array([slope_x[row, column], slope_y[row, column]])
    length = float(np.hypot(*w))
    if length == 0.0:
        return
    start = np.array([answers.across[column], answers.up[row]])
    reach = 0.2 * min(np.ptp(answers.across), np.ptp(answers.up))
    ink = theme.ink
    arrow = {"arrowstyle": "-|>", "color": ink, "linewidth": 1.6, "shrinkA": 0.0, "shrinkB": 0.0}
    ax.annotate("", start + reach * w / length, start, arrowprops=arrow, zorder=6)
    halo = [withStroke(linewidth=3.0, foreground=ground_of(ax))]
    text = ax.text(*(start + 1.2 * reach * w / length), "w", ha="center", va="center", color=ink, zorder=6)
    text.set(style="italic", path_effects=halo)
    ax.set_aspect("equal")


def _draw_legend(ax: Any, theme: Theme, classes: Array, looks: dict[int, int], lines: list[Any]) -> None:
    from matplotlib.lines import Line2D

    entries = [
        Line2D(
            [],
            [],
            linestyle="",
            marker=_marker(label),
            color=vivid(theme, base_colour(looks[label])),
            markeredgecolor=outline(base_colour(looks[label])),
            markeredgewidth=0.6,
            markersize=6.5 * SIZES.get(_marker(label), 1.0) ** 0.5,
            label=plain(classes[label]),
        )
        for label in range(min(len(classes), MOST_NAMES))
    ]
    if len(classes) > MOST_NAMES:
        entries.append(Line2D([], [], linestyle="", label=f"… {len(classes) - MOST_NAMES} more classes"))
    handles, _ = ax.get_legend_handles_labels()
    # Beside the axes where a layout makes room for it.
    beside = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "frameon": False}
    within = {"loc": "best", "facecolor": ground_of(ax), "edgecolor": theme.faint, "framealpha": 0.9}
    options = within if ax.figure.figure.get_layout_engine() is None else beside
    made = ax.legend(handles=[*entries, *handles, *lines], fontsize=SMALL, labelcolor=theme.ink, **options)
    made.set_zorder(6)
