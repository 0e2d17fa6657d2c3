"""The chosen model in figures, by what it is: a tree, coefficients, neighbours or support vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.app.fitting import FitResult
from sixfold.app.report.examination import Examination, encoded_names
from sixfold.app.report.words import shortened
from sixfold.explain.last_step import last_step

Array = NDArray[Any]

MOST_COEFFICIENTS = 200
MOST_NEIGHBOURS = 5
MOST_VALUES = 8  # columns of an example row


def model_facts(result: FitResult, found: Examination) -> dict[str, Any]:
    """Return what there is to say about the chosen model beyond its scores."""
    model = result.chosen.model
    last = last_step(model)
    facts: dict[str, Any] = {"class": type(last).__name__, "example": None}
    if hasattr(last, "_named_tree"):
        return facts | _tree(last)
    if hasattr(last, "n_samples_fit_"):
        return facts | _neighbours(result, found, last)
    if hasattr(last, "n_support_") and getattr(last, "kernel", "") != "linear":
        return facts | _support(result, found, last)
    if getattr(last, "coef_", None) is not None:
        return facts | _coefficients(result, last)
    return facts | {"kind": "other"}


def _tree(last: Any) -> dict[str, Any]:
    return {
        "kind": "tree",
        "nodes": int(last.tree_.node_count),
        "leaves": int(last.get_n_leaves()),
        "depth": int(last.get_depth()),
    }


def _coefficients(result: FitResult, last: Any) -> dict[str, Any]:
    table = np.atleast_2d(last.coef_.toarray() if hasattr(last.coef_, "toarray") else np.asarray(last.coef_))
    names = encoded_names(result.chosen.model)
    if names is None:
        names = list(result.X.columns) if result.X.width == table.shape[1] else []
    names = names or [f"column {place}" for place in range(table.shape[1])]
    classes = [str(label) for label in getattr(last, "classes_", ())]
    rows = classes if len(classes) == table.shape[0] else classes[1:2] or ["prediction"]
    order = np.argsort(-np.abs(table).max(axis=0), kind="stable")
    return {
        "kind": "linear",
        "of": rows,
        "coefficients": [
            {"column": names[j], "values": table[:, j].tolist()} for j in order[:MOST_COEFFICIENTS]
        ],
        "count": int(table.shape[1]),
        "not_zero": int((np.abs(table).max(axis=0) > 0).sum()),
        "intercept": np.atleast_1d(np.asarray(last.intercept_, dtype=float)).tolist(),
    }


def _neighbours(result: FitResult, found: Examination, last: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "kind": "neighbours",
        "neighbours": int(last.n_neighbors),
        "weights": str(last.weights),
        "metric": str(last.metric if isinstance(last.metric, str) else type(last.metric).__name__),
        "rows": int(last.n_samples_fit_),
    }
    explanation = _explained(result, found, last)
    if explanation is None:
        return facts
    shown = list(
        zip(explanation.rows, explanation.distances, explanation.weights, explanation.targets, strict=True)
    )[:MOST_NEIGHBOURS]
    return facts | {
        "example": _example(result, found, explanation.answer)
        | {
            "neighbours": [
                {
                    "row": _file_row(result, row),
                    "distance": float(distance),
                    "weight": float(weight),
                    "target": _plain(target),
                    "values": _values(result, found, _training_row(result, row)),
                }
                for row, distance, weight, target in shown
            ],
            "votes": {str(label): float(share) for label, share in explanation.votes.items() if share > 0},
        }
    }


def _support(result: FitResult, found: Examination, last: Any) -> dict[str, Any]:
    counts = np.asarray(last.n_support_).ravel().tolist()
    labels = [str(label) for label in last.classes_]
    rows = int(last.shape_fit_[0]) if hasattr(last, "shape_fit_") else int(result.train.size)
    facts: dict[str, Any] = {
        "kind": "support vectors",
        "kernel": str(last.kernel),
        "support": dict(zip(labels, counts, strict=False)),
        "support_vectors": len(last.support_),
        "rows": rows,
        "share": len(last.support_) / max(rows, 1),
    }
    explanation = _explained(result, found, last)
    if explanation is None:
        return facts
    shown = list(
        zip(explanation.rows, explanation.labels, explanation.contributions, explanation.shares, strict=True)
    )[:MOST_NEIGHBOURS]
    return facts | {
        "example": _example(result, found, explanation.answer)
        | {
            "runner_up": _plain(explanation.runner_up),
            "decision": float(explanation.decision),
            "support": [
                {
                    "row": _file_row(result, row),
                    "target": _plain(label),
                    "adds": float(part),
                    "share": float(share),
                    "values": _values(result, found, _training_row(result, row)),
                }
                for row, label, part, share in shown
            ],
        }
    }


def _explained(result: FitResult, found: Examination, last: Any) -> Any:
    """Return the learner's own explanation of the first test row; None where it has none to give."""
    if found.asked.size == 0 or not hasattr(last, "explain"):
        return None
    model = result.chosen.model
    row = result.X[found.asked[:1]]
    try:
        return last.explain(model[:-1].transform(row) if hasattr(model, "steps") else row)
    except (ValueError, TypeError, AttributeError):
        return None


def _example(result: FitResult, found: Examination, answer: Any) -> dict[str, Any]:
    row = int(found.asked[0])
    return {
        "row": row + 1,
        "answer": _plain(answer),
        "truth": _plain(result.y[row]),
        "columns": _columns(result, found),
        "values": _values(result, found, row),
    }


def _columns(result: FitResult, found: Examination) -> list[str]:
    """Return the columns of an example row: the most important ones."""
    ranked = [one.column for one in found.importance] or list(result.X.columns)
    return ranked[:MOST_VALUES]


def _values(result: FitResult, found: Examination, row: int | None) -> list[Any]:
    if row is None:
        return []
    return [_plain(result.X[name][row]) for name in _columns(result, found)]


def _training_row(result: FitResult, place: int) -> int | None:
    """Return the row of the table that a learner calls by its place; None where it has seen a sample only."""
    fitted = getattr(result.chosen, "fitted_rows", 0) or result.train.size
    return int(result.train[place]) if fitted == result.train.size and 0 <= place < fitted else None


def _file_row(result: FitResult, place: int) -> int | None:
    row = _training_row(result, place)
    return None if row is None else row + 1


def _plain(value: Any) -> Any:
    if hasattr(value, "isoformat"):
        return value.isoformat(sep=" ")[:16].removesuffix(" 00:00")
    value = value.item() if hasattr(value, "item") else value
    return value if isinstance(value, bool | int | float | None) else shortened(value)
