"""How far a classifier's probabilities hold, and what moving its threshold does.

Calibration: rows are put into bins by the probability p they were given; in each bin the share that belongs
to the class should be p. Bars are Wilson's 95% intervals of that share (Journal of the American Statistical
Association 22, 1927), so that a bin of three rows is not taken for more than it is.

Threshold: with TP, FP, FN and TN counted among the rows whose score is at least t or below it,

    precision = TP / (TP + FP),  recall = TP / (TP + FN),  F1 = 2 TP / (2 TP + FP + FN),
    accuracy = (TP + TN) / n.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.errors import InputError, check_number, check_option
from sixfold.explain.last_step import last_step
from sixfold.explain.plots.style import (
    MARKERS,
    SMALL,
    canvas,
    finish,
    legend,
    number,
    plain,
    require,
    series_colour,
)

Array = NDArray[Any]

NORMAL_95 = 1.959964  # quantile of the normal distribution
MOST_CLASSES = 6


def calibration(
    model: Any,
    X: Any,
    y: Any,
    ax: Any = None,
    *,
    bins: int = 10,
    strategy: str = "uniform",
    dark: bool | None = None,
) -> Any:
    """Draw the share of rows that belong to a class over the probability that the model gave them.

    Below the curve are the numbers of rows in each bin. With more than two classes there is a curve for each,
    against all others.

    Parameters
    ----------
    model : fitted classifier
        With ``predict_proba``.
    X, y : table and classes
        Rows that the model has not learnt from: it is sure of those it has.
    ax : matplotlib Axes, default=None
        Where to draw; None makes new ones.
    bins : int, default=10
        How many.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width, or with equal numbers of rows (``sklearn.calibration.calibration_curve``).
    dark : bool, default=None
        Whether the ground is dark; None looks at the axes.

    Returns
    -------
    matplotlib Axes
    """
    from sklearn.calibration import calibration_curve

    check_number("bins", bins, at_least=2, whole=True)
    check_option("strategy", strategy, ["uniform", "quantile"])
    classes, y = _classes(model, y)
    if not hasattr(model, "predict_proba"):
        raise InputError(
            f"{type(model).__name__} has no predict_proba, and calibration is that of probabilities. "
            "SVC(probability=True) has them; threshold(model, X, y) needs none."
        )
    probabilities = np.asarray(model.predict_proba(X), dtype=float)
    _same_rows(probabilities, y)
    shown = [1] if classes.size == 2 else list(range(min(classes.size, MOST_CLASSES)))
    ax, theme = canvas(ax, dark)
    ax.plot([0, 1], [0, 1], color=theme.muted, linestyle="--", linewidth=1.2, label="as promised", zorder=2)
    for index, column in enumerate(shown):
        given, hits = np.clip(probabilities[:, column], 0.0, 1.0), y == classes[column]
        share, mean = calibration_curve(hits, given, n_bins=int(bins), strategy=strategy)
        counts = _bin_counts(given, int(bins), strategy)
        low, high = wilson(share, counts)
        colour = series_colour(theme, index)
        bars = ax.errorbar(
            mean,
            share,
            yerr=np.maximum([share - low, high - share], 0.0),
            color=colour,
            marker=MARKERS[index % len(MARKERS)],
            markersize=6,
            linewidth=1.8,
            elinewidth=1.0,
            capsize=3,
            label=plain(f"class {classes[column]}, with 95% intervals"),
            zorder=3,
        )
        bars.lines[0].set_gid("calibration")
        if len(shown) == 1:
            _draw_counts(ax, mean, counts, theme)
    brier = float(((probabilities - (y[:, None] == classes)) ** 2).sum(axis=1).mean())
    if classes.size == 2:
        brier /= 2  # of one class, as it is defined for two
    left_out = f", first {MOST_CLASSES} of {classes.size} classes" if classes.size > MOST_CLASSES else ""
    finish(
        ax,
        theme,
        title=f"Calibration of {_called(model)}: {y.size:,} rows, Brier score {number(brier, 3)}{left_out}",
        xlabel="probability that the model gives the class",
        ylabel="share of rows that belong to it",
        grid="y",
    )
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.2 if len(shown) == 1 else -0.03, 1.03))
    ax.set_yticks(np.linspace(0.0, 1.0, 6))
    legend(ax, theme, loc="upper left")
    return ax


def _draw_counts(ax: Any, places: Array, counts: Array, theme: Any) -> None:
    """Write the rows of each bin under the curve, with bars as high as there are many."""
    ax.bar(
        places,
        0.09 * counts / counts.max(),
        bottom=-0.19,
        width=0.05,
        color=theme.muted,
        alpha=0.6,
        linewidth=0,
        zorder=2,
    )
    for place, count in zip(places, counts, strict=True):
        text = ax.text(
            place,
            -0.18 + 0.09 * count / counts.max(),
            f"{count:,}",
            fontsize=SMALL - 0.5,
            color=theme.muted,
            ha="center",
            va="bottom",
        )
        text.set_gid("count")
    ax.text(0.5, -0.02, "rows in each bin", fontsize=SMALL - 0.5, color=theme.muted, ha="center", va="top")


def _bin_counts(given: Array, bins: int, strategy: str) -> Array:
    """Return the rows of each bin that has any, with the edges that scikit-learn uses."""
    if strategy == "quantile":
        edges = np.percentile(given, np.linspace(0.0, 1.0, bins + 1) * 100)
    else:
        edges = np.linspace(0.0, 1.0, bins + 1)
    counts = np.bincount(np.searchsorted(edges[1:-1], given), minlength=bins)
    return counts[counts > 0]


def wilson(share: Array, counts: Array) -> tuple[Array, Array]:
    """Return Wilson's 95% interval of a share of so many rows.

    >>> low, high = wilson(np.array([0.5]), np.array([10]))
    >>> low.round(3), high.round(3)
    (array([0.237]), array([0.763]))
    """
    square = NORMAL_95**2 / counts
    middle = (share + square / 2) / (1 + square)
    half = NORMAL_95 / (1 + square) * np.sqrt(share * (1 - share) / counts + square / (4 * counts))
    return middle - half, middle + half


MEASURES = ("precision", "recall", "F1", "accuracy")


def threshold(
    model: Any,
    X: Any,
    y: Any,
    ax: Any = None,
    *,
    best: str = "F1",
    positive: Any = None,
    dark: bool | None = None,
) -> Any:
    """Draw precision, recall, F1 and accuracy of a classifier of two classes over its decision threshold.

    Parameters
    ----------
    model : fitted classifier of two classes
        With ``predict_proba`` or ``decision_function``.
    X, y : table and classes
        Rows that the model has not learnt from.
    ax : matplotlib Axes, default=None
        Where to draw; None makes new ones.
    best : {"F1", "accuracy", "precision", "recall"}, default="F1"
        The threshold at which this is highest is marked, the lowest of equal ones.
    positive : class, default=None
        The class that counts as positive; None takes the last.
    dark : bool, default=None
        Whether the ground is dark; None looks at the axes.

    Returns
    -------
    matplotlib Axes
    """
    check_option("best", best, list(MEASURES))
    classes, y = _classes(model, y)
    if classes.size != 2:
        raise InputError(
            f"{type(model).__name__} knows {classes.size} classes, but a threshold tells two apart. Fit one "
            "class against the others, or draw calibration(model, X, y)."
        )
    second = 1
    if positive is not None:
        found = np.flatnonzero(classes == positive)
        require(found.size == 1, f"positive={positive!r} is none of the classes {classes.tolist()}.")
        second = int(found[0])
    scores, usual, scale = _scores(model, X, second)
    _same_rows(scores, y)
    hits = y == classes[second]
    require(
        bool(hits.any() and not hits.all()),
        f"All {y.size} rows of y have one class. Rows of both are needed to compare.",
    )
    at, measured = threshold_measures(scores, hits)
    ax, theme = canvas(ax, dark)
    for index, name in enumerate(MEASURES):
        (line,) = ax.plot(
            at,
            measured[name],
            color=series_colour(theme, index),
            linestyle=("-", "--", "-", "-.")[index],
            drawstyle="steps-pre",  # up to a score, the rows at or above are those at or above the score
            linewidth=2.4 if name == best else 1.6,
            label=name,
            zorder=3,
        )
        line.set_gid(name)
    top = int(np.nanargmax(measured[best]))
    (mark,) = ax.plot(
        [at[top]],
        [measured[best][top]],
        marker="o",
        markersize=13,
        markerfacecolor="none",
        markeredgecolor=theme.mark,
        markeredgewidth=2,
        linestyle="none",
        label=f"highest {best}: {number(measured[best][top], 3)} at {number(at[top], 3)}",
        zorder=5,
    )
    mark.set_gid("best")
    ax.axvline(
        usual,
        color=theme.muted,
        linestyle=":",
        linewidth=1.4,
        label=f"predict uses {number(usual)}",
        zorder=1,
    )
    finish(
        ax,
        theme,
        title=f"{_called(model)}: class {classes[second]} over the threshold",
        xlabel=f"threshold on the {scale} of class {classes[second]}",
        ylabel="share of rows",
        grid="y",
    )
    ax.set_ylim(-0.03, 1.05)
    legend(ax, theme, loc="best")
    return ax


def threshold_measures(scores: Array, hits: Array) -> tuple[Array, dict[str, Array]]:
    """Return every score as a threshold, ascending, and the measures where rows at or above it are positive.

    Precision has no value where no row is above; at every score one is.
    """
    order = np.argsort(scores, kind="stable")
    ordered, hit = scores[order], hits[order].astype(float)
    at, first = np.unique(ordered, return_index=True)
    true_positive = hit[::-1].cumsum()[::-1][first]
    positive = (scores.size - first).astype(float)
    total = hit.sum()
    true_negative = first - (total - true_positive)
    return at, {
        "precision": true_positive / positive,
        "recall": true_positive / total,
        "F1": 2 * true_positive / (positive + total),
        "accuracy": (true_positive + true_negative) / scores.size,
    }


def _scores(model: Any, X: Any, second: int) -> tuple[Array, float, str]:
    """Return a score for each row, the threshold that predict uses, and what it is."""
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X), dtype=float)[:, second], 0.5, "probability"
    if hasattr(model, "decision_function"):
        decisions = np.asarray(model.decision_function(X), dtype=float)
        return decisions if second == 1 else -decisions, 0.0, "decision function"
    raise InputError(
        f"{type(model).__name__} has neither predict_proba nor decision_function, so there is nothing to put "
        "a threshold on."
    )


def _classes(model: Any, y: Any) -> tuple[Array, Array]:
    classes = getattr(model, "classes_", None)
    if classes is None:
        raise InputError(
            f"{type(model).__name__} has no classes_: a fitted classifier is needed. Call fit first."
        )
    y = np.asarray(y)
    require(y.ndim == 1, f"y has shape {y.shape}: one class for each row is needed.")
    unknown = np.setdiff1d(y, classes)
    require(
        unknown.size == 0,
        f"y has the class {unknown[:1].tolist()}, but the model knows {np.asarray(classes)[:6].tolist()}.",
    )
    return np.asarray(classes), y


def _same_rows(scores: Array, y: Array) -> None:
    require(len(scores) == y.size, f"X has {len(scores)} rows, but y has {y.size} entries.")


def _called(model: Any) -> str:
    return type(last_step(model)).__name__
