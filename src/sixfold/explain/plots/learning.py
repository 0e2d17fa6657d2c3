"""Scores over the number of rows that are learnt from: on those rows, and on rows that are held out.

Where both have met, more rows of the same kind will not help; where they are apart, they may.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sixfold.errors import InputError
from sixfold.explain.last_step import last_step
from sixfold.explain.plots.search_results import default_score, score_label
from sixfold.explain.plots.style import canvas, finish, label_ends, legend, plain

SIZES = np.linspace(0.1, 1.0, 8)  # shares of the rows there are to learn from


def learning_curve(
    estimator: Any,
    X: Any,
    y: Any,
    sizes: Any = None,
    cv: Any = None,
    ax: Any = None,
    *,
    scoring: Any = None,
    groups: Any = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
    dark: bool | None = None,
) -> Any:
    """Draw scores over the number of rows learnt from, with each fold a point and bands of one deviation.

    Parameters
    ----------
    estimator : estimator
        Copies of it are fitted (``sklearn.model_selection.learning_curve``).
    X, y : table and targets
    sizes : array, default=None
        Numbers of rows, or shares of those there are to learn from; None takes eight, from a tenth to all.
    cv : int or splitter, default=None
        As in ``GridSearchCV``; None is five folds.
    ax : matplotlib Axes, default=None
        Where to draw; None makes new ones.
    scoring : str or callable, default=None
        As in ``GridSearchCV``.
    groups : array, default=None
        For splitters that keep groups together.
    random_state : int, default=0
        Of the order of the rows, of which the first are taken.
    n_jobs : int, default=None
        How many fits run at a time.
    dark : bool, default=None
        Whether the ground is dark; None looks at the axes.

    Returns
    -------
    matplotlib Axes
    """
    from sklearn import model_selection

    if not hasattr(estimator, "fit"):
        raise InputError(f"{type(estimator).__name__} has no fit: an estimator is needed, fitted or not.")
    counts, train, held_out = model_selection.learning_curve(
        estimator,
        X,
        y,
        train_sizes=SIZES if sizes is None else np.asarray(sizes),
        cv=cv,
        scoring=scoring,
        groups=groups,
        shuffle=True,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    name = scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "score")
    label, less = score_label(default_score(estimator) if scoring is None else name)
    sign = -1.0 if less else 1.0
    ax, theme = canvas(ax, dark)
    ends = []
    for scores, text, colour, marker in (
        (sign * train, "rows learnt from", theme.series[1], "s"),
        (sign * held_out, "held-out rows", theme.series[0], "o"),
    ):
        mean, std = scores.mean(axis=1), scores.std(axis=1)
        ax.fill_between(counts, mean - std, mean + std, color=colour, alpha=0.15, linewidth=0, zorder=1)
        points = ax.scatter(
            np.repeat(counts, scores.shape[1]),
            scores.ravel(),
            s=12,
            color=colour,
            alpha=theme.point_alpha,
            linewidths=0,
            zorder=2,
        )
        points.set_gid("folds")
        (line,) = ax.plot(counts, mean, color=colour, marker=marker, markersize=5, linewidth=2, zorder=3)
        line.set_gid("mean")
        ends.append((counts[-1], mean[-1], text, line))
    ax.margins(x=0.02)
    better = ", less is better" if less else ""
    folds = f"mean of {train.shape[1]} folds ± one standard deviation"
    finish(
        ax,
        theme,
        title=f"Learning curve of {_called(estimator)}: {folds}",
        xlabel="number of rows learnt from",
        ylabel=f"{label}{better}",
        grid="y",
    )
    label_ends(ax, theme, ends)
    legend(ax, theme)
    return ax


def _called(estimator: Any) -> str:
    return plain(type(last_step(estimator)).__name__)
