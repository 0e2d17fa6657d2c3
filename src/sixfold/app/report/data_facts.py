"""What is known of the table: columns, kinds, gaps, and how the target is distributed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.app.fitting import FitResult
from sixfold.app.report.column_codes import as_numbers, kind_of
from sixfold.app.report.words import counted, number_text, percent, shortened

Array = NDArray[Any]

BINS = 16  # of a small histogram
MOST_CLASSES = 12  # bars of a target; others are counted together
MOST_SHOWN = 3  # categories that are named
MOST_SAMPLED = 200_000  # rows that a summary of a column is made from


def data_facts(result: FitResult) -> dict[str, Any]:
    """Return the data section of a report."""
    table, schema = result.table, result.schema
    rows, X = int(result.y.size), result.X
    dropped = int(getattr(result, "dropped", 0))
    cells = sum(column.null_count() for column in X.iter_columns())
    return {
        "name": table.name,
        "source": table.source,
        "format": table.format,
        "encoding": table.encoding if table.format in ("csv", "tsv") else None,
        "about": table.about,
        "bytes": int(table.bytes),
        "reading": list(table.notes),
        "rows": rows,
        "rows_without_target": dropped,
        "columns": len(schema.columns),
        "missing_values": int(cells),
        "missing_share": cells / max(rows * X.width, 1),
        "kinds": _kinds(schema.features),
        "target": target_facts(result),
        "features": [_feature(one, X[one.name], rows) for one in schema.features],
        "set_aside": [
            {"name": one.name, "kind": one.kind, "reason": one.reason or "as asked"}
            for one in schema.set_aside
        ],
        "weights": next((one.name for one in schema.columns if one.role == "weight"), None),
        "groups": next((one.name for one in schema.columns if one.role == "group"), None),
    }


def _kinds(features: Any) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in features:
        found[one.kind] = found.get(one.kind, 0) + 1
    return found


def kinds_in_words(kinds: dict[str, int]) -> str:
    """Return how many columns there are of each kind.

    >>> kinds_in_words({"number": 2, "category": 1})
    '2 numbers and 1 category'
    """
    single = {"boolean": "yes-or-no column"}
    plural = {"number": "numbers", "category": "categories", "boolean": "yes-or-no columns", "date": "dates"}
    said = [
        f"{count:,} {single.get(kind, kind) if count == 1 else plural.get(kind, kind)}"
        for kind, count in kinds.items()
    ]
    return " and ".join(filter(None, [", ".join(said[:-1]), said[-1]])) if said else "none"


def _feature(schema: Any, column: Any, rows: int) -> dict[str, Any]:
    missing = int(column.null_count())
    return {
        "name": schema.name,
        "kind": schema.kind,
        "note": schema.reason,
        "missing": missing,
        "missing_share": missing / max(rows, 1),
        **_summary(column),
    }


def _summary(column: Any) -> dict[str, Any]:
    """Return in a few words what a column holds, and its distribution as heights from 0 to 1."""
    if column.len() > MOST_SAMPLED:
        column = column.gather_every(column.len() // MOST_SAMPLED + 1)
    if kind_of(column) == "category":
        counts = (
            column.drop_nulls()
            .value_counts(name="rows")
            .sort(["rows", column.name], descending=[True, False])
        )
        total = int(counts["rows"].sum()) or 1
        pairs = list(zip(counts[column.name].to_list(), counts["rows"].to_list(), strict=True))
        said = [f"{shortened(value, 24)} {percent(count / total)}" for value, count in pairs[:MOST_SHOWN]]
        more = f", {len(pairs) - MOST_SHOWN:,} more" if len(pairs) > MOST_SHOWN else ""
        heights = [count / pairs[0][1] for _, count in pairs[:BINS]]
        return {"distinct": len(pairs), "summary": ", ".join(said) + more, "distribution": heights}
    values = as_numbers(column)
    values = values[~np.isnan(values)]
    if not values.size:
        return {"distinct": 0, "summary": "no values", "distribution": []}
    low, middle, high = np.quantile(values, [0.0, 0.5, 1.0], method="lower").tolist()
    if kind_of(column) == "date":
        first, last = (str(one)[:10] for one in (column.min(), column.max()))
        words = f"{first} to {last}"
    else:
        words = f"{number_text(low)} to {number_text(high)}, median {number_text(middle)}"
    return {
        "distinct": int(np.unique(values).size),
        "summary": words,
        "distribution": histogram(values)[0],
    }


def histogram(values: Array, bins: int = BINS) -> tuple[list[float], list[int]]:
    """Return the heights of a histogram, the highest 1, and its counts; a value by itself has one bar."""
    low, high = float(values.min()), float(values.max())
    if not np.isfinite(high - low) or high == low:
        return [1.0], [int(values.size)]
    counts, _ = np.histogram((values - low) / (high - low), bins=bins, range=(0.0, 1.0))
    return (counts / counts.max()).tolist(), counts.tolist()


def target_facts(result: FitResult) -> dict[str, Any]:
    """Return the target: its classes with their rows, or its quantiles and histogram."""
    schema, y = result.schema.target, result.y
    facts: dict[str, Any] = {
        "name": schema.name if schema else "target",
        "note": schema.reason if schema else "",
    }
    if result.task == "classification":
        labels, counts = np.unique(y, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        classes = [
            {"label": str(labels[k]), "rows": int(counts[k]), "share": counts[k] / y.size} for k in order
        ]
        return facts | {"classes": classes, "words": counted(labels.size, "class", "classes")}
    quantiles = dict(
        zip(
            ("min", "lower quartile", "median", "upper quartile", "max"),
            np.quantile(y, [0.0, 0.25, 0.5, 0.75, 1.0]).tolist(),
            strict=True,
        )
    )
    heights, counts_of = histogram(y, 24)
    return facts | {
        "classes": None,
        "quantiles": quantiles,
        "mean": float(y.mean()),
        "std": float(y.std()),
        "histogram": {"counts": counts_of, "heights": heights},
        "words": f"numbers from {number_text(quantiles['min'])} to {number_text(quantiles['max'])}",
    }
