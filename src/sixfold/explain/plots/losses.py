"""Losses side by side: as functions of the margin m = y s of a class, or of the residual s - y of a number.

Every curve is the ``value`` of :mod:`sixfold.risk.losses`, the code that fits minimise. A margin is positive
on the right side of the plane; a surrogate is judged by how it stands in for the zero-one loss, the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from sixfold.errors import InputError, check_option
from sixfold.explain.plots.style import canvas, finish, legend
from sixfold.risk.losses import LOSSES

OF_MARGIN = {
    "zero_one": "1 where m ≤ 0",
    "perceptron": "max(0, -m)",
    "hinge": "max(0, 1 - m)",
    "squared_hinge": "max(0, 1 - m)² / 2",
    "logistic": "log(1 + exp(-m))",
    "squared": "(1 - m)² / 2",
}
OF_RESIDUAL = {"absolute": "|r|", "squared": "r² / 2", "cubed": "|r|³ / 3"}
# A colour of the theme and a dash each, so that a print in grey keeps them apart.
LOOKS: dict[str, tuple[int | str, Any]] = {
    "zero_one": ("ink", "-"),
    "perceptron": (2, (0, (1, 1.2))),
    "hinge": (1, "-"),
    "squared_hinge": ("muted", "-"),
    "logistic": (0, (0, (6, 1.5, 1, 1.5))),
    "squared": (3, (0, (3, 1.2))),
    "absolute": (1, "-"),
    "cubed": (0, (0, (6, 1.5, 1, 1.5))),
}
# The squared hinge is the squared loss up to 1: the one is drawn wide, and the other's dashes over it.
WIDTHS = {"zero_one": 1.4, "squared_hinge": 5.0}


def losses(
    ax: Any = None,
    names: Sequence[str] | None = None,
    *,
    of: Literal["margin", "residual"] | None = None,
    dark: bool | None = None,
) -> Any:
    """Draw losses side by side.

    Parameters
    ----------
    ax : matplotlib Axes, default=None
        Where to draw; None for a new figure.
    names : sequence of str, default=None
        Which losses; None for all that have a curve. Of the margin: "zero_one", "perceptron", "hinge",
        "squared_hinge", "logistic", "squared". Of the residual: "absolute", "squared", "cubed".
    of : {"margin", "residual"}, default=None
        What is on the horizontal axis. None for the residual if "absolute" or "cubed" is asked for, else the
        margin.
    dark : bool, default=None
        Whether the ground is dark; None to see by the colour of the axes.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> ax = losses(names=["hinge", "logistic"])
    >>> [line.get_label() for line in ax.lines[:2]]
    ['hinge: max(0, 1 - m)', 'logistic: log(1 + exp(-m))']
    """
    check_option("of", of, [None, "margin", "residual"])
    if isinstance(names, str):
        names = [names]
    if names is not None and len(names) == 0:
        raise InputError("names is empty: pass the losses to draw, or None for all of them.")
    for name in names or ():
        check_option("names", name, dict.fromkeys([*OF_MARGIN, *OF_RESIDUAL]))
    if of is None:
        of = "residual" if set(names or ()) & {"absolute", "cubed"} else "margin"
    formulas = OF_MARGIN if of == "margin" else OF_RESIDUAL
    names = list(formulas if names is None else names)
    odd = [name for name in names if name not in formulas]
    if odd:
        raise InputError(
            f"The loss {odd[0]!r} is no function of the {of}, which is on the axis. Draw these apart: of the "
            f"margin {', '.join(OF_MARGIN)}; of the residual {', '.join(OF_RESIDUAL)}."
        )
    ax, theme = canvas(ax, dark, height=4.5)
    x, target = (np.linspace(-2.0, 3.0, 501), 1.0) if of == "margin" else (np.linspace(-2.2, 2.2, 441), 0.0)
    for name in names:
        colour, dash = LOOKS[name]
        ax.plot(
            x,
            LOSSES[name].value(x, np.full_like(x, target)),
            color=theme.series[colour] if isinstance(colour, int) else getattr(theme, colour),
            linestyle=dash,
            linewidth=WIDTHS.get(name, 2.0),
            alpha=0.45 if name == "squared_hinge" else 1.0,
            drawstyle="steps-post" if name == "zero_one" else "default",
            label=f"{name.replace('_', ' ')}: {formulas[name]}",
        )
    ax.axvline(0.0, color=theme.muted, linewidth=0.8, linestyle=":", zorder=0)
    ax.set(xlim=(x[0], x[-1]), ylim=(-0.1, 3.5))
    if of == "margin":
        words, title = "margin m = y (w·x + b): left of 0 wrong, right of 0 right", "What a margin costs"
    else:
        words, title = "residual r = prediction - target", "What a residual costs"
    legend(ax, theme, loc="upper right" if of == "margin" else "upper center")
    return finish(ax, theme, title=title, xlabel=words, ylabel="loss")
