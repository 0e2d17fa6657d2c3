"""The picture of overfitting: polynomials of growing degree through the same rows, and what they cost.

For each degree d the estimator is fitted on P_1(t), ..., P_d(t), the polynomials of Legendre of the column
scaled to t in [-1, 1]: they span what the powers span, so that least squares gives the same curve, without
the loss of digits that powers bring. The error over training rows can only fall as d grows; that over
held-out rows falls, then rises.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.polynomial.legendre import legvander
from numpy.typing import NDArray

from sixfold.errors import InputError, check_number
from sixfold.explain.plots.style import SMALL, Theme, canvas, finish, legend, make_readable, plain

Array = NDArray[Any]
ACROSS = 5  # small pictures in a row


@dataclass(frozen=True)
class Fit:
    """One degree: the curve, and the root of the mean squared error of both sets of rows."""

    degree: int
    curve: Array
    training_error: float
    held_out_error: float


def draw_overfitting(
    estimator: Any,
    x: Any,
    y: Any,
    ax: Any,
    *,
    degrees: Sequence[int],
    held_out: float | tuple[Any, Any],
    names: tuple[str, str],
    dark: bool | None,
) -> Any:
    """Draw the picture; the parameters are those of :func:`sixfold.plot.overfitting`, which has a learner."""
    degrees = _check_degrees(degrees)
    training, test = _split(x, y, held_out)
    low, high = training[0].min(), training[0].max()
    different = len(np.unique(training[0]))
    if different <= degrees[-1]:
        raise InputError(
            f"A polynomial of degree {degrees[-1]} needs {degrees[-1] + 1} different values of x, and the "
            f"training rows have {different}. Pass more rows, or lower degrees."
        )
    grid = np.linspace(low, high, 300)
    fits = [_fit(estimator, degree, training, test, grid, (low, high)) for degree in degrees]
    best = min(fits, key=lambda fit: fit.held_out_error)
    rows = -(-len(fits) // ACROSS)
    ax, theme = canvas(ax, dark, height=3.0 + 1.6 * rows)
    ax.set_axis_off()
    share = 1.6 * rows / (3.0 + 1.6 * rows)  # of the height that the small pictures take
    for place, fit in enumerate(fits):
        across, down = place % ACROSS, place // ACROSS
        width, height = 1.0 / ACROSS, share / rows
        panel = ax.inset_axes(
            (across * width + 0.005, 1.0 - (down + 1) * height, width - 0.01, 0.78 * height)
        )
        _draw_fit(panel, theme, fit, grid, training, fit is best)
        if across == 0:
            panel.set_ylabel(plain(names[1]), fontsize=SMALL)
        if down == rows - 1 and across == min(ACROSS, len(fits) - down * ACROSS) // 2:
            panel.set_xlabel(plain(names[0]), fontsize=SMALL, labelpad=2)
        make_readable(panel, theme)
    _draw_errors(ax.inset_axes((0.0, 0.0, 1.0, 0.86 - share)), theme, fits, best, names[1])
    return ax


def _check_degrees(degrees: Sequence[int]) -> list[int]:
    degrees = list(degrees)
    if not degrees:
        raise InputError("degrees is empty: pass the degrees of the polynomials, for instance range(1, 11).")
    for degree in degrees:
        check_number("degrees", degree, at_least=1, whole=True)
    return sorted({int(degree) for degree in degrees})


def _split(x: Any, y: Any, held_out: Any) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Return the training rows and the others."""
    rows = _column(x, y)
    if isinstance(held_out, tuple):
        return rows, _column(*held_out)
    check_number("held_out", held_out, above=0.0)
    count = round(len(rows[0]) * float(held_out))
    if not 0 < count < len(rows[0]) - 1:
        raise InputError(
            f"held_out={held_out} of {len(rows[0])} rows leaves {max(0, len(rows[0]) - count)} to fit and "
            f"{count} to judge by. Pass a share between 0 and 1, of enough rows."
        )
    order = np.random.default_rng(0).permutation(len(rows[0]))
    kept, others = np.sort(order[count:]), np.sort(order[:count])
    return (rows[0][kept], rows[1][kept]), (rows[0][others], rows[1][others])


def _column(x: Any, y: Any) -> tuple[Array, Array]:
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if x.ndim == 2 and x.shape[1] == 1:
        x = x[:, 0]
    if x.ndim != 1 or y.shape != x.shape or not x.size:
        raise InputError(f"x has shape {x.shape} and y {y.shape}. Pass one column and one target a row.")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise InputError("x or y has unknown or infinite values. Leave those rows out.")
    return x, y


def _fit(
    estimator: Any,
    degree: int,
    training: tuple[Array, Array],
    test: tuple[Array, Array],
    grid: Array,
    ends: tuple[float, float],
) -> Fit:
    from sklearn.base import clone

    def powers(x: Array) -> Array:
        return legvander(2.0 * (x - ends[0]) / (ends[1] - ends[0]) - 1.0, degree)[:, 1:]

    model = clone(estimator).fit(powers(training[0]), training[1])
    errors = [
        float(np.sqrt(np.mean((np.ravel(model.predict(powers(x))) - y) ** 2))) for x, y in (training, test)
    ]
    return Fit(degree, np.ravel(model.predict(powers(grid))), *errors)


def _draw_fit(
    ax: Any,
    theme: Theme,
    fit: Fit,
    grid: Array,
    training: tuple[Array, Array],
    best: bool,
) -> None:
    ax.set_facecolor("none")
    ax.scatter(*training, s=10, color=theme.series[0], edgecolor="none", zorder=3)
    ax.plot(grid, fit.curve, color=theme.series[1], linewidth=1.6, zorder=2)
    room = 0.25 * (np.ptp(training[1]) or 1.0)
    ax.set(ylim=(training[1].min() - room, training[1].max() + room), xticks=[], yticks=[])
    ax.set_title(f"degree {fit.degree}", fontsize=SMALL, pad=3, fontweight="bold" if best else "normal")


def _draw_errors(ax: Any, theme: Theme, fits: list[Fit], best: Fit, target: str) -> None:
    ax.set_facecolor("none")
    degrees = [fit.degree for fit in fits]
    looks = (("training rows", 0, "o", "-"), ("held-out rows", 1, "s", "--"))
    curves = ([fit.training_error for fit in fits], [fit.held_out_error for fit in fits])
    for (label, colour, marker, dash), errors in zip(looks, curves, strict=True):
        ax.plot(degrees, errors, color=theme.series[colour], marker=marker, linestyle=dash, label=label, ms=5)
    ax.axvline(best.degree, color=theme.muted, linewidth=1.0, linestyle=":")
    ax.set_xticks(degrees)
    # Beyond a few times the least a curve only flattens the others.
    top = max(*curves[0], 4.0 * best.held_out_error)
    least = min(*curves[0], best.held_out_error)
    if max(curves[1]) > top:
        ax.set_ylim(max(0.0, least - 0.15 * (top - least)), top)
    legend(ax, theme, loc="best")
    finish(
        ax,
        theme,
        title=f"Least error on held-out rows: degree {best.degree}",
        xlabel="degree of the polynomial",
        ylabel=f"root mean squared\nerror of {plain(target)}",
        grid="y",
    )
