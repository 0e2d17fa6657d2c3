"""All that a report says, as plain JSON: what a machine reads, and what the page is made of."""

from __future__ import annotations

import math
import platform
import shlex
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold import __version__
from sixfold.app.fitting import FitOptions, FitResult
from sixfold.app.report.cautions import Caution
from sixfold.app.report.data_facts import data_facts
from sixfold.app.report.examination import Examination, last_step
from sixfold.app.report.headline import headline_facts
from sixfold.app.report.importance import REPEATS
from sixfold.app.report.model_facts import model_facts
from sixfold.app.report.pictures import decision_scores
from sixfold.app.report.words import Metric
from sixfold.app.report.yardstick import NAME as YARDSTICK
from sixfold.app.training_record import data_fingerprint
from sixfold.certificate import plain_parameter
from sixfold.explain.certificate_words import in_plain_words
from sixfold.selection.leaderboard import Entry

Array = NDArray[Any]

FORMAT_VERSION = 1
MOST_LABELS = 200  # classes of a confusion matrix
PACKAGES = ("numpy", "scipy", "scikit-learn", "narwhals", "polars", "matplotlib")


def report_facts(result: FitResult, found: Examination, cautions: list[Caution]) -> dict[str, Any]:
    """Return everything that is known about a fit, without NaN or infinities."""
    metric = Metric(result.scoring, result.metric)
    facts = {
        "format": "sixfold report",
        "format_version": FORMAT_VERSION,
        "task": result.task,
        "metric": {
            "name": metric.words,
            "scoring": str(result.scoring),
            "less_is_better": metric.less_is_better,
        },
        "headline": headline_facts(result, found),
        "cautions": [
            {"kind": one.kind, "sentence": one.sentence, "columns": list(one.columns), "serious": one.serious}
            for one in cautions
        ],
        "data": data_facts(result),
        "split": _split(result),
        "chosen": _entry(result.chosen)
        | {
            "reason": result.reason,
            "interval": {"low": found.low, "high": found.high, "method": found.interval},
        },
        "baseline": None if found.baseline is None else _entry(found.baseline),
        "leaderboard": [_entry(one) for one in result.comparison.entries],
        "yardstick": {
            "name": YARDSTICK,
            "test": found.yardstick.score,
            "rows": found.yardstick.rows,
            "skipped": found.yardstick.skipped,
            "spread": result.chosen.std,
        },
        "model": model_facts(result, found),
        "answers": answers_facts(result, found),
        "importance": {
            "rows": found.importance_rows,
            "repeats": REPEATS,
            "columns": [{"column": one.column, "mean": one.mean, "std": one.std} for one in found.importance],
        },
        "alone": found.alone,
        "rows": _rows(found),
        "certificate": certificate_facts(result),
        "reproduce": reproduce_facts(result),
    }
    plain: dict[str, Any] = without_nan(facts)
    return plain


def without_nan(value: Any) -> Any:
    """Return plain data: numbers of NumPy as Python's, what is not finite as None."""
    if isinstance(value, dict):
        return {str(key): without_nan(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(part) for part in value]
    if hasattr(value, "tolist"):
        return without_nan(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _split(result: FitResult) -> dict[str, Any]:
    fitted = getattr(result.chosen, "fitted_rows", 0) or result.train.size
    sample = getattr(result.comparison, "sample_rows", None)
    return {
        "train_rows": result.train.size,
        "test_rows": result.test.size,
        "test_fraction": result.options.test_fraction,
        "folds": result.comparison.folds,
        "seed": result.options.seed,
        "tuned_on_rows": result.train.size if sample is None else sample,
        "fitted_to_rows": fitted,
    }


def _entry(one: Entry) -> dict[str, Any]:
    return {
        "learner": one.name,
        "mean": one.mean,
        "std": one.std,
        "scores": one.scores.tolist(),
        "test": one.test,
        "p_value": one.p_value,
        "parameters": plain_parameter(one.parameters),
        "certificate": one.certificate,
        "notes": list(one.notes),
        "left_out": one.left_out,
        "search_seconds": one.search_seconds,
        "fit_seconds": one.fit_seconds,
        "predict_seconds": one.predict_seconds,
    }


def _rows(found: Examination) -> dict[str, Any]:
    return {
        "copies": found.copies.rows,
        "test_copies": int(found.copies.test_rows.sum()),
        "score_without_copies": found.without_copies,
        "contradicting": found.copies.contradicting,
        "best_accuracy": found.copies.best_accuracy,
        "sorted_by": found.sorted_by or None,
        "drift": [vars(one) for one in found.drift],
        "drift_with_order": [vars(one) for one in found.order_drift],
        "dependent": found.dependence.equations,
        "same_categories": found.dependence.copies,
        "correlated": found.dependence.correlated,
        "separated_classes": [] if found.separation is None else found.separation.classes,
    }


# -- answers to the test rows --------------------------------------------------------------------------------


def answers_facts(result: FitResult, found: Examination) -> dict[str, Any] | None:
    """Return what the model got right and wrong among the test rows; None where there are none."""
    if found.answers is None:
        return None
    y, said = found.y_asked(result), np.asarray(found.answers.predict(found.answers.rows))
    facts: dict[str, Any] = {"rows": y.size, "of_rows": result.test.size}
    if result.task == "regression":
        left = y - said
        return facts | {
            "root_mean_square_error": float(np.sqrt(np.mean(left**2))),
            "mean_absolute_error": float(np.abs(left).mean()),
            "median_absolute_error": float(np.median(np.abs(left))),
            "mean_error": float(left.mean()),
            "within": dict(zip(("50%", "90%"), np.quantile(np.abs(left), [0.5, 0.9]).tolist(), strict=True)),
        }
    from sklearn.metrics import confusion_matrix

    labels = np.unique(np.concatenate([np.unique(y), np.asarray(result.chosen.model.classes_)]))
    counts = confusion_matrix(y, said, labels=labels)
    right, there, given = np.diag(counts), counts.sum(axis=1), counts.sum(axis=0)
    facts |= {
        "right": int(right.sum()),
        "by_class": [
            {
                "label": str(labels[k]),
                "rows": there[k],
                "found": right[k],
                "recall": right[k] / there[k] if there[k] else None,
                "precision": right[k] / given[k] if given[k] else None,
            }
            for k in range(labels.size)
        ],
        "most_confused": _most_confused(labels, counts),
    }
    if labels.size <= MOST_LABELS:
        facts["confusion"] = {"labels": [str(label) for label in labels], "counts": counts.tolist()}
    return facts | _probabilities(found, y, labels)


def _most_confused(labels: Array, counts: Array) -> list[dict[str, Any]]:
    wrong = counts.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:10]
    pairs = [divmod(int(place), labels.size) for place in order]
    return [
        {"truth": str(labels[i]), "answer": str(labels[j]), "rows": int(wrong[i, j])}
        for i, j in pairs
        if wrong[i, j]
    ]


def _probabilities(found: Examination, y: Array, labels: Array) -> dict[str, Any]:
    from sklearn.metrics import roc_auc_score

    answers, facts = found.answers, {}
    classes = np.asarray(answers.classes_)
    if hasattr(answers, "predict_proba"):
        given = np.asarray(answers.predict_proba(answers.rows), dtype=float)
        squares = ((given - (y[:, None] == classes)) ** 2).sum(axis=1).mean()
        facts["brier_score"] = float(squares) / (2.0 if classes.size == 2 else 1.0)
    scored = hasattr(answers, "predict_proba") or hasattr(answers, "decision_function")
    if classes.size == 2 and scored and np.unique(y).size == 2:
        facts["roc_area"] = float(roc_auc_score(y == classes[1], decision_scores(answers)))
    return facts


# -- proof and reproduction ----------------------------------------------------------------------------------


def certificate_facts(result: FitResult) -> dict[str, Any]:
    """Return what the fit proves, in words and figures, and how it can be checked."""
    certificate = getattr(last_step(result.chosen.model), "certificate_", None)
    check = f"sixfold verify {shlex.quote(file_name(result) + '.sixfold')} {shlex.quote(result.options.data)}"
    if certificate is None:
        return {"plain": in_plain_words(None), "text": "", "check": check, "figures": {}, "legend": ""}
    figures = certificate.to_dict()
    return {
        "plain": in_plain_words(certificate),
        "text": str(certificate),
        "legend": certificate.legend,
        "check": check,
        "figures": {
            name: figures[name]
            for name in ("kind", "objective", "lower_bound", "gap", "relative_gap", "tolerance", "converged")
        },
    }


def file_name(result: FitResult) -> str:
    """Return what the files of a fit are called, without ending."""
    return str(getattr(result, "name", result.table.name))


def reproduce_facts(result: FitResult) -> dict[str, Any]:
    """Return what it takes to get the same model again, and to use it."""
    name = file_name(result)
    installed = {"sixfold": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            installed[package] = version(package)
        except PackageNotFoundError:
            continue
    target = result.schema.target
    return {
        "command": command_line(result.options),
        "seed": result.options.seed,
        "rule": result.options.rule,
        "fingerprint": data_fingerprint(result.X, result.y, result.weight),
        "parameters": plain_parameter(last_step(result.chosen.model).get_params(deep=False)),
        "versions": installed,
        "python": [
            "import polars as pl, sixfold",
            f"model = sixfold.load({f'{name}.sixfold'!r})",
            f"# a frame with the columns above, without {target.name if target else 'target'!r}",
            "model.predict(frame)",
        ],
        "predict": f"sixfold predict {shlex.quote(name + '.sixfold')} NEW.csv -o predictions.csv",
    }


def command_line(options: FitOptions) -> str:
    """Return the command that asks for the same, options as they are by default left out.

    >>> command_line(FitOptions("my data.csv", "price", seed=3, ids=("id",)))
    "sixfold fit 'my data.csv' --target price --seed 3 --id id"
    """
    usual = FitOptions(options.data)
    said = ["sixfold", "fit", options.data]
    single = (
        "target",
        "task",
        "metric",
        "rule",
        "folds",
        "seed",
        "test_fraction",
        "time_limit",
        "weights",
        "groups",
    )
    for field in single:
        value = getattr(options, field)
        if value != getattr(usual, field):
            said += [f"--{field.replace('_', '-')}", f"{value:g}" if isinstance(value, float) else str(value)]
    if options.learners != usual.learners:
        said += [part for name in options.learners for part in ("--learner", name)]
    said += [part for name in options.ids for part in ("--id", name)]
    return shlex.join(said)
