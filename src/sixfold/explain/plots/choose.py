"""The figure that fits a model or a search, for their method ``plot``.

search          two parameters with three values or more each, tried together -> heat map; else ->
                cross-validation curve
tree            the tree
linear          a classifier with two columns of X and y -> decision boundary; a penalty that was chosen by
                cross-validation -> coefficients over it with X and y, the cross-validation curve without, if
                its scores were kept; else -> coefficients as bars
kNN, SVC        decision boundary of a classifier, residuals of a regressor: both need X and y
other           its history, if it has more than one record; so for what only transforms
"""

from __future__ import annotations

import importlib
from typing import Any

from sixfold.errors import InputError, check_option
from sixfold.explain.last_step import last_step
from sixfold.explain.plots.style import canvas, is_number

HOMES = {
    "boundary": ("boundary", "decision_boundary"),
    "calibration": ("probabilities", "calibration"),
    "coefficients": ("coefficients", "coefficients"),
    "history": ("history", "history"),
    "path": ("coefficients", "regularisation_path"),
    "residuals": ("residuals", "residuals"),
    "threshold": ("probabilities", "threshold"),
    "tree": ("tree", "tree"),
    "validation": ("validation", "validation_curve"),
}
NEED_ROWS = ("boundary", "calibration", "path", "residuals", "threshold")


def plot_search(search: Any, *, ax: Any = None, **options: Any) -> Any:
    """Draw the figure that fits a fitted search; ``options`` are those of that figure.

    Parameters
    ----------
    search : fitted search
    ax : matplotlib Axes, default=None
        Where to draw; None makes new ones.
    **options
        Of :func:`~sixfold.plot.validation_curve` (``parameter``, ``metric``, ``others``, ``dark``) or of
        :func:`~sixfold.plot.heat_map` (``x``, ``y``, ``metric``, ``dark``): naming one of theirs chooses.

    Returns
    -------
    matplotlib Axes
    """
    from sixfold.explain.plots.heat_map import heat_map
    from sixfold.explain.plots.search_results import read_search
    from sixfold.explain.plots.validation import validation_curve

    if "parameter" in options or "others" in options:
        return validation_curve(search, ax=ax, **options)
    if "x" in options or "y" in options:
        return heat_map(search, ax=ax, **options)
    results = read_search(search, options.get("metric"))
    wide = [
        name
        for name in results.parameters
        if len(values := results.values(name)) >= 3 and all(map(is_number, values))
    ]
    together = len(wide) == 2 and any(set(wide) <= set(setting) for setting in results.settings)
    return (heat_map if together else validation_curve)(search, ax=ax, **options)


def plot_model(
    model: Any, X: Any = None, y: Any = None, *, kind: str | None = None, ax: Any = None, **options: Any
) -> Any:
    """Draw the figure that fits a fitted model, or the ``kind`` that is asked for.

    Parameters
    ----------
    model : fitted learner
    X, y : table and targets, default=None
        Rows to draw, for figures that show some.
    kind : str, default=None
        The figure: "boundary", "calibration", "coefficients", "history", "path", "residuals", "threshold",
        "tree" or "validation"; None chooses.
    ax : matplotlib Axes, default=None
        Where to draw; None makes new ones.
    **options
        Of the figure.

    Returns
    -------
    matplotlib Axes
    """
    if kind is None:
        kind = _fitting_kind(model, X, y)
    check_option("kind", kind, list(HOMES))
    if kind in NEED_ROWS and (X is None or y is None):
        raise InputError(
            f"The figure {kind!r} of a {type(model).__name__} shows rows: pass them, "
            f"model.plot(X, y{'' if kind == 'boundary' else f', kind={kind!r}'})."
        )
    return _draw(kind, model, X, y, ax, options)


def _draw(kind: str, model: Any, X: Any, y: Any, ax: Any, options: dict[str, Any]) -> Any:
    module, name = HOMES[kind]
    draw = getattr(importlib.import_module(f"sixfold.explain.plots.{module}"), name)
    if kind in ("boundary", "tree"):  # they look at the axes alone
        dark = options.pop("dark", None)
        if ax is None and dark is not None:
            ax, _ = canvas(None, dark)
    rows = (X, y) if kind in NEED_ROWS else ()
    return draw(model, *rows, ax=ax, **options)


def _fitting_kind(model: Any, X: Any, y: Any) -> str:
    from sklearn.base import is_classifier

    from sixfold.explain.plots.search_results import has_scores

    classifier, last = is_classifier(model), last_step(model)
    rows = X is not None and y is not None
    if not hasattr(last, "predict"):
        if len(getattr(last, "history_", ())) > 1:
            return "history"
        raise InputError(
            f"{type(last).__name__} predicts nothing and has no history, so there is no figure of it. Draw a "
            "model that predicts."
        )
    if hasattr(last, "tree_"):
        return "tree"
    if classifier and rows and getattr(model, "n_features_in_", 0) == 2:
        return "boundary"
    if hasattr(last, "coef_"):
        chosen = hasattr(last, "alpha_") or hasattr(last, "C_")  # by cross-validation
        return "path" if chosen and rows else "validation" if has_scores(last) else "coefficients"
    if not classifier:
        return "residuals"
    return "history" if not rows and len(getattr(last, "history_", ())) > 1 else "boundary"
