"""The coefficients of linear models: of one as bars, and of many over the strength of their penalty.

A path is drawn over alpha, or over C = 1 / (n alpha), on a logarithmic axis that always has the weaker
penalty at the right, where most coefficients are largest and have their names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sixfold.errors import InputError, check_number
from sixfold.explain.axes import tick_names
from sixfold.explain.last_step import last_step
from sixfold.explain.plots.search_results import parameter_label
from sixfold.explain.plots.style import (
    MARKERS,
    canvas,
    finish,
    is_number,
    label_ends,
    legend,
    number,
    plain,
    require,
    series_colour,
)

Array = NDArray[Any]

STRENGTHS = np.logspace(-4.0, 4.0, 41)  # where none are given
PROBLEM = (  # parameters that say what is solved and how well
    *("class_weight", "fit_intercept", "intercept_scaling", "max_iter", "penalty", "positive"),
    *("random_state", "solver", "tol"),
)
FEW = 10  # strengths that a model has tried make no curve: RidgeCV has three unless it is told others


# -- one model -----------------------------------------------------------------------------------------------


def coefficients(
    model: Any,
    ax: Any = None,
    *,
    names: Sequence[str] | None = None,
    target: int | None = None,
    most: int = 20,
    dark: bool | None = None,
) -> Any:
    """Draw the coefficients of a linear model as bars, the largest first; of several classes, as points.

    They are those of the columns as they were given: a column in metres has a thousand times the coefficient
    it has in millimetres, so that sizes compare only where columns have one scale.

    Parameters
    ----------
    model : fitted linear model, or a pipeline that ends with one
        Whatever has ``coef_``.
    ax : matplotlib Axes, default=None
        Where to draw; None makes new ones.
    names : sequence of str, default=None
        Of the columns; None takes those of the fit.
    target : int, default=None
        Which row of ``coef_``, where there are several classes or targets; None draws up to six, and of more
        the Euclidean length over all of them.
    most : int, default=20
        How many columns are shown, those with the largest coefficients.
    dark : bool, default=None
        Whether the ground is dark; None looks at the axes.

    Returns
    -------
    matplotlib Axes
    """
    check_number("most", most, at_least=1, whole=True)
    last = last_step(model)
    table, of_target = _one_table(last, target)  # (targets, columns)
    called = column_names(last, table.shape[1], names)
    order = np.argsort(-np.abs(table).max(axis=0), kind="stable")[: int(most)]
    ax, theme = canvas(ax, dark, height=max(2.5, 0.28 * order.size + 1.4))
    places = np.arange(order.size)
    if table.shape[0] == 1:
        values = table[0, order]
        colours = [theme.series[int(value < 0)] for value in values]
        ax.barh(places, values, color=colours, height=0.7, zorder=3)
    else:
        targets = target_names(last, table.shape[0])
        for index, name in enumerate(targets):
            ax.plot(
                table[index, order],
                places + (index / max(len(targets) - 1, 1) - 0.5) * 0.5,
                linestyle="none",
                marker=MARKERS[index % len(MARKERS)],
                color=series_colour(theme, index),
                markersize=6,
                label=plain(name),
                zorder=3,
            )
    ax.axvline(0.0, color=theme.ink, linewidth=0.8, zorder=2)
    ax.set_yticks(places, [plain(name) for name in tick_names([called[column] for column in order])])
    ax.set_ylim(order.size - 0.4, -0.6)
    left_out = table.shape[1] - order.size
    rest = f", {order.size} largest of {table.shape[1]}" if left_out else ""
    finish(
        ax,
        theme,
        title=f"{type(last).__name__}: coefficients{rest}",
        xlabel=of_target or f"adds to the {_what_is_added(last)} for each unit of the column",
        grid="x",
    )
    if table.shape[0] > 1:
        legend(ax, theme)
    return ax


def _one_table(model: Any, target: int | None) -> tuple[Array, str]:
    """Return the coefficients to draw, (targets, columns), and what they are if not those of all targets."""
    table = _coefficients_of(model)
    names = target_names(model, table.shape[0])
    if target is not None:
        check_target(target, table.shape[0])
        return table[[target]], f"coefficient of {names[target]}" if len(names) > 1 else ""
    if len(names) > len(MARKERS):
        kind = "classes" if names[0].startswith("class") else "targets"
        return np.linalg.norm(table, axis=0)[None], f"Euclidean length over {len(names)} {kind}"
    return table, ""


def check_target(target: Any, count: int) -> None:
    """Raise an :class:`InputError` unless there is a row of ``coef_`` with this number."""
    check_number("target", target, at_least=0, whole=True)
    require(target < count, f"target={target} is out of range: there are {count}, from 0 to {count - 1}.")


def _what_is_added(model: Any) -> str:
    from sklearn.base import is_classifier

    if not is_classifier(model):
        return "prediction"
    classes: Any = getattr(model, "classes_", ())
    score = "log-odds" if "Logistic" in type(model).__name__ else "score"
    return f"{score} of class {classes[1]}" if len(classes) == 2 else score


def _coefficients_of(model: Any) -> Array:
    found = getattr(model, "coef_", None)
    if found is None:
        raise InputError(
            f"{type(model).__name__} has no coef_: a fitted linear model is needed. Call fit first, or draw "
            "another figure."
        )
    found = found.toarray() if hasattr(found, "toarray") else np.asarray(found, dtype=float)
    return np.atleast_2d(found)


def column_names(model: Any, count: int, names: Sequence[str] | None = None) -> list[str]:
    """Return what columns are called: as given, as in the fit, or by their numbers."""
    if names is None:
        names = getattr(model, "feature_names_in_", None)
    if names is None:
        return [f"column {index}" for index in range(count)]
    called = [str(name) for name in names]
    require(len(called) == count, f"names has {len(called)} entries, but there are {count} columns.")
    return called


def target_names(model: Any, count: int) -> list[str]:
    """Return what the rows of ``coef_`` speak of: classes, or targets by their numbers."""
    classes = getattr(model, "classes_", None)
    if classes is not None and len(classes) == count:
        return [f"class {label}" for label in classes]
    return [f"target {index}" for index in range(count)]


# -- a path --------------------------------------------------------------------------------------------------


class Path(NamedTuple):
    """Coefficients (strengths, targets, columns) over strengths, and what else is known of them."""

    parameter: str
    strengths: Array
    coefs: Array
    names: list[str]
    targets: list[str]
    chosen: float | None
    note: str


def regularisation_path(
    model: Any = None,
    X: Any = None,
    y: Any = None,
    strengths: Any = None,
    ax: Any = None,
    *,
    coefs: Any = None,
    names: Sequence[str] | None = None,
    parameter: str | None = None,
    target: int | None = None,
    chosen: float | None = None,
    most: int = 10,
    dark: bool | None = None,
) -> Any:
    """Draw the coefficients of a linear model over the strength of its penalty.

    Three ways to call it: ``regularisation_path(strengths=alphas, coefs=coefs)`` draws what is there;
    ``regularisation_path(model, X, y, strengths)`` fits a copy of the model for each strength; a fitted
    ``LassoCV``, ``ElasticNetCV``, ``RidgeCV`` or ``LogisticRegressionCV`` with X and y is drawn over its own
    strengths, and its choice is marked.

    Parameters
    ----------
    model : estimator, default=None
        With ``coef_`` and a parameter ``alpha`` or ``C``; the last step of a pipeline may be one.
    X, y : table and targets, default=None
        To fit copies of the model.
    strengths : array of shape (n,), default=None
        The values of the parameter; None takes those of a fitted model that has some, else 1e-4 to 1e4.
    ax : matplotlib Axes, default=None
        Where to draw; None makes new ones.
    coefs : array of shape (n, columns), default=None
        The coefficients for each strength; the transpose, as scikit-learn's ``lasso_path`` returns it, is
        taken for what it is where n is not the number of columns.
    names : sequence of str, default=None
        Of the columns; None takes those of the fit.
    parameter : str, default=None
        Which parameter the strength is; None finds ``alpha`` or ``C``.
    target : int, default=None
        Which row of ``coef_``, where there are several classes or targets; None draws the Euclidean length
        over all of them.
    chosen : float, default=None
        The strength to mark; None takes that of a fitted model.
    most : int, default=10
        How many columns have colour and name, those with the largest coefficients.
    dark : bool, default=None
        Whether the ground is dark; None looks at the axes.

    Returns
    -------
    matplotlib Axes
    """
    check_number("most", most, at_least=0, whole=True)
    if coefs is not None:
        path = _given_path(strengths, coefs, names, parameter)
    else:
        path = _fitted_path(model, X, y, strengths, names, parameter)
    if chosen is not None:
        check_number("chosen", chosen, above=0, finite=True)
        path = path._replace(chosen=float(chosen))
    values, of_target = _one_target(path, target)
    ax, theme = canvas(ax, dark)
    positive = path.strengths[path.strengths > 0]
    if positive.size < path.strengths.size:
        ax.set_xscale("symlog", linthresh=positive.min())  # 0 is one decade beyond the least
    else:
        ax.set_xscale("log")
    inverse = path.parameter.rsplit("__", 1)[-1] == "C"
    weakest = int(np.argmax(path.strengths) if inverse else np.argmin(path.strengths))
    sizes = np.abs(values[weakest])
    if not sizes.any():
        sizes = np.abs(values).max(axis=0)
    named = np.argsort(-sizes, kind="stable")[: int(most)]
    named = named[sizes[named] > 0]
    rank = {int(column): place for place, column in enumerate(named)}
    order = np.argsort(path.strengths)
    ends = []
    for column in [*(set(range(values.shape[1])) - set(rank)), *reversed(rank)]:
        place = rank.get(column)
        colour = theme.muted if place is None else series_colour(theme, place)
        (line,) = ax.plot(
            path.strengths[order],
            values[order, column],
            color=colour,
            alpha=0.5 if place is None else 1.0,
            linewidth=0.8 if place is None else 1.8,
            linestyle=("-", "--", "-.")[0 if place is None else (place // len(theme.series)) % 3],
            zorder=2 if place is None else 3,
        )
        line.set_gid("coefficient")
        if place is not None:
            ends.append((path.strengths[weakest], values[weakest, column], path.names[column], line))
    ax.axhline(0.0, color=theme.ink, linewidth=0.8, zorder=1)
    ax.set_xlim(*_limits(path.strengths, inverse))
    if path.chosen is not None:
        mark = ax.axvline(
            path.chosen,
            color=theme.mark,
            linestyle=":",
            linewidth=1.6,
            zorder=4,
            label=f"chosen: {path.parameter} = {number(path.chosen, 3)}",
        )
        mark.set_gid("chosen")
    weaker = "weaker penalty to the right"
    finish(
        ax,
        theme,
        title=f"Coefficients over the penalty{path.note}",
        xlabel=f"{parameter_label(path.parameter)} ({weaker})",
        ylabel=f"coefficient{of_target}",
        grid="y",
    )
    ends.sort(key=lambda end: -abs(end[1]))
    short = tick_names([name for _, _, name, _ in ends])
    label_ends(ax, theme, [(x, y, name, line) for (x, y, _, line), name in zip(ends, short, strict=True)])
    legend(ax, theme, loc="upper left" if len(ax.texts) else "best")
    return ax


def _limits(strengths: Array, inverse: bool) -> tuple[float, float]:
    low, high = float(strengths.min()), float(strengths.max())
    return (low, high) if inverse else (high, low)


def _one_target(path: Path, target: int | None) -> tuple[Array, str]:
    """Return coefficients (strengths, columns) of a target, and what to call them."""
    count = path.coefs.shape[1]
    if target is not None:
        check_target(target, count)
        return path.coefs[:, target], f" of {path.targets[target]}" if count > 1 else ""
    if count == 1:
        return path.coefs[:, 0], ""
    return np.linalg.norm(path.coefs, axis=1), f"s of a column: Euclidean length over {count} {_kind(path)}"


def _kind(path: Path) -> str:
    return "classes" if path.targets[0].startswith("class") else "targets"


def _given_path(strengths: Any, coefs: Any, names: Sequence[str] | None, parameter: str | None) -> Path:
    require(strengths is not None, "coefs is given without strengths. Pass the penalty of each of its rows.")
    at = check_strengths(strengths)
    table = np.asarray(coefs, dtype=float)
    if table.ndim == 2 and table.shape[0] != at.size and table.shape[1] == at.size:
        table = table.T
    if table.ndim == 2:
        table = table[:, None, :]
    if table.ndim != 3 or table.shape[0] != at.size:
        raise InputError(
            f"coefs has shape {np.shape(coefs)}, but there are {at.size} strengths: pass an array of shape "
            "(strengths, columns)."
        )
    called = column_names(None, table.shape[2], names)
    targets = target_names(None, table.shape[1])
    return Path(parameter or "alpha", at, table, called, targets, None, "")


def check_strengths(strengths: Any) -> Array:
    """Return strengths as an array; raise an :class:`InputError` for what is no list of penalties."""
    given = list(np.ravel(np.asarray(strengths, dtype=object)))
    wrong = [value for value in given if not is_number(value) or value < 0]
    require(not wrong, f"strengths has {wrong[:1]}: finite numbers that are at least 0 are needed.")
    require(len(given) >= 2, f"strengths has {len(given)} values, but a path needs at least 2.")
    return np.array(given, dtype=float)


def _fitted_path(
    model: Any, X: Any, y: Any, strengths: Any, names: Sequence[str] | None, parameter: str | None
) -> Path:
    if model is None:
        raise InputError(
            "There is nothing to draw. Pass strengths= and coefs=, or a model with X and y, for instance "
            "regularisation_path(LogisticRegression(penalty='l1'), X, y)."
        )
    own, chosen, parameter = _known_strengths(model, parameter)
    stored = _stored_path(model) if X is None and strengths is None else None
    if stored is not None and own is not None:
        called = column_names(model, stored.shape[2], names)
        return Path(
            parameter, own, stored, called, target_names(model, stored.shape[1]), chosen, ", mean over folds"
        )
    if X is None or y is None:
        raise InputError(
            f"{type(model).__name__} keeps one set of coefficients, so a path needs X and y to fit copies "
            "of it: regularisation_path(model, X, y)."
        )
    if own is not None and own.size < FEW and own.min() > 0:
        own = np.geomspace(own.min() / 10, own.max() * 10, STRENGTHS.size)
    at = check_strengths(strengths if strengths is not None else STRENGTHS if own is None else own)
    fits = [_at(model, parameter, strength, len(y)).fit(X, y) for strength in at.tolist()]
    last = [last_step(fit) for fit in fits]
    table = np.array([_coefficients_of(fit) for fit in last])
    called = column_names(last[0], table.shape[2], names)
    return Path(parameter, at, table, called, target_names(last[0], table.shape[1]), chosen, "")


def _known_strengths(model: Any, parameter: str | None) -> tuple[Array | None, float | None, str]:
    """Return the strengths a fitted model has tried, the one it chose, and what the parameter is called."""
    for name, tried, choice in (
        ("alpha", "alphas_", "alpha_"),
        ("alpha", "alphas", "alpha_"),
        ("C", "Cs_", "C_"),
    ):
        found, best = getattr(model, tried, None), getattr(model, choice, None)
        if best is None or found is None:
            continue
        if np.ndim(found) == 2:  # a row for each l1_ratio
            found = found[int(np.argmin(np.abs(np.ravel(model.l1_ratio) - model.l1_ratio_)))]
        single = np.unique(np.asarray(best, dtype=float))
        return (
            np.asarray(found, dtype=float),
            float(single[0]) if single.size == 1 else None,
            parameter or name,
        )
    if parameter is None:
        known = model.get_params() if hasattr(model, "get_params") else {}
        last = f"{model.steps[-1][0]}__" if hasattr(model, "steps") else ""
        parameter = next((last + name for name in ("alpha", "C") if last + name in known), None)
        if parameter is None:
            raise InputError(
                f"{type(model).__name__} has neither alpha nor C. Say with parameter= which parameter is the "
                "strength of the penalty."
            )
        if known.get(f"{last}penalty", "l2") is None:
            raise InputError(
                f"{type(last_step(model)).__name__} has penalty=None, so that {parameter} has no effect. "
                "Use penalty='l2' or 'l1'."
            )
    return None, None, parameter


def _stored_path(model: Any) -> Array | None:
    """Return the coefficients that LogisticRegressionCV keeps, as their mean over the folds."""
    kept = getattr(model, "coefs_paths_", None)
    if not isinstance(kept, dict):
        return None
    columns = model.coef_.shape[1]
    paths = [np.asarray(path) for path in kept.values()]
    if any(path.ndim != 3 for path in paths):  # over l1_ratio too
        return None
    return np.stack([path.mean(axis=0)[:, :columns] for path in paths], axis=1)


def _at(model: Any, parameter: str, strength: float, rows: int) -> Any:
    """Return an unfitted model with the strength, in place of one that chooses it by cross-validation.

    A class of ours says itself what that is (``_at_strength``); of scikit-learn's it is the class whose name
    is without "CV", with the parameters of the problem.
    """
    from sklearn import linear_model
    from sklearn.base import clone

    if hasattr(model, "_at_strength"):
        return model._at_strength(strength, rows)
    name = type(model).__name__
    if parameter in (model.get_params() if hasattr(model, "get_params") else {}):
        return clone(model).set_params(**{parameter: strength})
    plain_class = getattr(linear_model, name.removesuffix("CV"), None) if name.endswith("CV") else None
    if plain_class is None:
        raise InputError(f"{name} has no parameter {parameter!r}, so that no copies of it can be fitted.")
    own, wanted = model.get_params(), plain_class().get_params()
    shared = {name: own[name] for name in PROBLEM if name in own and name in wanted}
    if getattr(model, "l1_ratio_", None) is not None and "l1_ratio" in wanted:
        shared["l1_ratio"] = float(np.ravel(model.l1_ratio_)[0])
    return plain_class(**(shared | {parameter: strength}))
