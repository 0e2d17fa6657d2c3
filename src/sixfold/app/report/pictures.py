"""The pictures of a report, as SVG: leaderboard, cross-validation, the model, and what it gets right."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.app.fitting import FitResult
from sixfold.app.report.examination import Examination, encoded_names
from sixfold.app.report.small_curve import small_curve
from sixfold.app.report.svg import draw_svg
from sixfold.app.report.words import Metric, shortened
from sixfold.explain.last_step import last_step
from sixfold.explain.plots.search_results import read_search
from sixfold.explain.plots.style import canvas, finish, legend, plain
from sixfold.selection.leaderboard import BASELINE, Entry

Array = NDArray[Any]

WIDE, TALL = 4.9, 3.2  # inches of a picture that fills a column
MOST_COEFFICIENTS = 20
TREE_DEPTH, TREE_BRANCHES = 3, 6
SMALLEST = 0.75  # of its size that a tree is drawn in, on narrow pages
ROWS_A_BIN = 20  # of a calibration curve, on average
MOST_POINTS = 3_000  # rows in a picture of residuals


def draw_pictures(result: FitResult, found: Examination) -> tuple[dict[str, str], dict[str, str]]:
    """Return the pictures by name, and of those that could not be drawn, why.

    A picture that fails takes nothing else with it: the page says which is missing.
    """
    wanted: dict[str, Any] = {"leaderboard": lambda: draw_leaderboard(result)}
    if _has_curve(result.chosen):
        wanted["validation"] = lambda: draw_validation(result)
    for number, entry in enumerate(other_searches(result)):
        wanted[f"validation-{number}"] = lambda entry=entry: draw_small(entry)
    last = last_step(result.chosen.model)
    if hasattr(last, "_named_tree"):
        wanted["tree"] = lambda: draw_tree(last)
    elif getattr(last, "coef_", None) is not None and getattr(last, "kernel", "linear") == "linear":
        wanted["coefficients"] = lambda: draw_coefficients(result)
    if found.answers is not None:
        y = found.y_asked(result)
        wanted |= _answers_wanted(result, found, y)
    drawn, failed = {}, {}
    for name, draw in wanted.items():
        try:
            drawn[name] = draw()
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {error}"
    return drawn, failed


def _answers_wanted(result: FitResult, found: Examination, y: Array) -> dict[str, Any]:
    """Return the pictures of answers to test rows that make sense for this model."""
    if result.task == "regression":
        return {"residuals": lambda: draw_residuals(found, y)}
    wanted: dict[str, Any] = {}
    classes = np.asarray(result.chosen.model.classes_)
    if hasattr(found.answers, "predict_proba"):
        wanted["calibration"] = lambda: draw_calibration(found, y)
    two = classes.size == 2 and np.unique(y).size == 2
    if two and (hasattr(found.answers, "predict_proba") or hasattr(found.answers, "decision_function")):
        wanted["roc"] = lambda: draw_roc(found, y)
        wanted["threshold"] = lambda: draw_threshold(found, y)
    return wanted


# -- the comparison ------------------------------------------------------------------------------------------


def draw_leaderboard(result: FitResult) -> str:
    """Draw every learner's folds, mean and test score."""
    from sixfold.explain.plots.leaderboard import leaderboard

    count = sum(not one.left_out for one in result.comparison.entries)

    def draw(ax: Any) -> None:
        metric = Metric(result.scoring, result.metric)
        table = result.comparison.to_dict()
        del table["p_value"]  # the table beside it has them
        leaderboard(table, ax, metric=("neg_" if metric.sign < 0 else "") + metric.words)
        _make_room(ax, metric.sign * np.array(table["mean"]), metric.sign * np.array(table["test"]))
        ax.set_xlabel(f"{metric.words} on held-out rows{', less is better' * metric.less_is_better}")

    title = (
        f"{result.metric} of {count} learners: each fold, the mean with its standard deviation, the test rows"
    )
    return draw_svg(draw, "leaderboard", title, width=WIDE, height=0.36 * count + 1.5)


def _make_room(ax: Any, mean: Array, test: Array) -> None:
    """Widen the axis for test scores of the learners that are on it."""
    low, high = ax.get_xlim()
    inside = test[(mean >= low) & (mean <= high) & np.isfinite(test)]
    if inside.size:
        room = 0.04 * (high - low)
        ax.set_xlim(min(low, inside.min() - room), max(high, inside.max() + room))


def stripped_search(entry: Entry) -> Any:
    """Return a search as pictures read it, its parameters without the name of the pipeline's step."""
    search = entry.search
    results = dict(search.cv_results_)
    results["params"] = [
        {name.rsplit("__", 1)[-1]: value for name, value in setting.items()} for setting in results["params"]
    ]
    return SimpleNamespace(
        cv_results_=results,
        best_index_=search.best_index_,
        scoring=search.scoring,
        refit=search.refit,
        estimator=search.estimator,
        rule=getattr(search, "rule", "best"),
    )


def _has_curve(entry: Entry) -> bool:
    """Whether more than one candidate was tried and at least two have a score."""
    results = getattr(entry.search, "cv_results_", None)
    if results is None or entry.left_out or not results["params"] or not results["params"][0]:
        return False
    return int(np.isfinite(np.asarray(results["mean_test_score"], dtype=float)).sum()) >= 2


def other_searches(result: FitResult) -> list[Entry]:
    """Return the learners that were not chosen and have a curve."""
    return [
        one
        for one in result.comparison.entries
        if one.name not in (result.chosen.name, BASELINE) and _has_curve(one)
    ]


def draw_validation(result: FitResult) -> str:
    """Draw the search of the chosen learner over its main parameter."""
    from sixfold.explain.plots.validation import validation_curve

    search = stripped_search(result.chosen)
    many = len(read_search(search).parameters) > 1

    def draw(ax: Any) -> None:
        validation_curve(search, ax=ax)
        ax.set_ylabel(plain(Metric(result.scoring, result.metric).words))

    title = f"{result.chosen.name}: the score on held-out rows over the values that were tried"
    return draw_svg(draw, "validation", title, width=WIDE, height=TALL + 0.5 * many)


def draw_small(entry: Entry) -> str:
    """Draw the search of another learner: the best mean over its main parameter, the choice marked."""
    results = read_search(stripped_search(entry))
    title = f"{entry.name}: mean score and standard deviation over {results.main_parameter()}"
    return small_curve(results, title)


# -- the model -----------------------------------------------------------------------------------------------


def draw_tree(tree: Any) -> str:
    """Draw the upper levels of a tree; the page's style sheet gives its colours their dark values.

    It may become a little smaller to fit the page, and is scrolled beyond that.
    """
    svg = str(tree.export_svg(max_depth=TREE_DEPTH, max_branches=TREE_BRANCHES))
    width = float(re.search(r'width="([\d.]+)"', svg)[1])  # type: ignore[index]
    fitted = f'style="width:{width:.0f}px;max-width:100%;min-width:{SMALLEST * width:.0f}px;height:auto" '
    return svg.replace("<svg ", f"<svg {fitted}", 1)


def draw_coefficients(result: FitResult) -> str:
    """Draw the largest coefficients of a linear model, by the columns that it sees."""
    from sixfold.explain.plots.coefficients import coefficients

    last = last_step(result.chosen.model)
    table = np.atleast_2d(last.coef_.toarray() if hasattr(last.coef_, "toarray") else last.coef_)
    names = encoded_names(result.chosen.model)
    if names is None and table.shape[1] == result.X.width:
        names = list(result.X.columns)
    shown = min(table.shape[1], MOST_COEFFICIENTS)
    several = 1 < table.shape[0] <= 6

    def draw(ax: Any) -> None:
        coefficients(last, ax, names=names, most=MOST_COEFFICIENTS)
        ax.set_xlabel(ax.get_xlabel().removesuffix(" for each unit of the column"))

    title = f"The {shown} largest coefficients of {result.chosen.name}"
    return draw_svg(draw, "coefficients", title, width=WIDE, height=(0.3 if several else 0.24) * shown + 1.1)


# -- what it gets right --------------------------------------------------------------------------------------


def draw_residuals(found: Examination, y: Array) -> str:
    """Draw what is left of the test rows' targets over the predictions."""
    from sixfold.explain.plots.residuals import residuals

    assert found.answers is not None
    rows = found.answers.rows
    if rows.size > MOST_POINTS:
        rows = rows[np.linspace(0, rows.size - 1, MOST_POINTS).astype(int)]

    def draw(ax: Any) -> None:
        residuals(found.answers, rows, y[rows], ax)

    title = "Residuals of the test rows over the predictions, with their running median"
    return draw_svg(draw, "residuals", title, width=WIDE, height=TALL + 0.2)


def draw_calibration(found: Examination, y: Array) -> str:
    """Draw the share of test rows of a class over the probability they were given."""
    from sixfold.explain.plots.probabilities import calibration

    assert found.answers is not None
    answers = found.answers

    def draw(ax: Any) -> None:
        bins = int(np.clip(y.size // ROWS_A_BIN, 4, 10))
        calibration(answers, answers.rows, y, ax, bins=bins)

    return draw_svg(draw, "calibration", "Calibration on the test rows", width=WIDE, height=TALL)


def draw_roc(found: Examination, y: Array) -> str:
    """Draw the share of the second class that is found over the share of the first that is taken for it."""
    from sklearn.metrics import roc_auc_score, roc_curve

    assert found.answers is not None
    scores, classes = decision_scores(found.answers), np.asarray(found.answers.classes_)
    hits = y == classes[1]
    false, true, _ = roc_curve(hits, scores)
    area = roc_auc_score(hits, scores)

    def draw(ax: Any) -> None:
        _, theme = canvas(ax)
        positive, negative = (plain(shortened(classes[k], 30)) for k in (1, 0))
        ax.plot([0, 1], [0, 1], color=theme.muted, linestyle="--", linewidth=1.2, label="by chance")
        ax.plot(false, true, color=theme.series[0], linewidth=2.0, label=f"the model, area {area:.3f}")
        ax.fill_between(false, true, color=theme.series[0], alpha=0.1, linewidth=0)
        finish(
            ax,
            theme,
            xlabel=f"share of '{negative}' taken for '{positive}'",
            ylabel=f"share of '{positive}' found",
            grid="both",
        )
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        legend(ax, theme)

    return draw_svg(draw, "roc", f"ROC curve on the test rows, area {area:.3f}", width=WIDE, height=TALL)


def decision_scores(answers: Any) -> Array:
    """Return how much a model of two classes is for the second one, row by row."""
    if hasattr(answers, "predict_proba"):
        return np.asarray(answers.predict_proba(answers.rows))[:, 1]
    return np.asarray(answers.decision_function(answers.rows))


def draw_threshold(found: Examination, y: Array) -> str:
    """Draw precision, recall and more over the decision threshold."""
    from sixfold.explain.plots.probabilities import threshold

    assert found.answers is not None
    answers = found.answers

    def draw(ax: Any) -> None:
        threshold(answers, answers.rows, y, ax)

    title = "Precision, recall, F1 and accuracy on the test rows over the decision threshold"
    return draw_svg(draw, "threshold", title, width=WIDE, height=TALL)
