"""What a model file says of its making, and the way back: the rows that a model was fitted to.

The record holds no dates and no seconds, so that the same fit twice is the same file.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold import __version__
from sixfold.app.fitting import FitResult
from sixfold.app.saved_model.unseen_categories import categories_of
from sixfold.app.stored_rows import KnownRows, known_rows
from sixfold.certificate import plain_parameter
from sixfold.data.columns.schema import TableSchema
from sixfold.data.files.tables import Table
from sixfold.data.fingerprint import fingerprint
from sixfold.explain.certificate_words import in_plain_words
from sixfold.explain.last_step import last_step
from sixfold.selection.parts import draw_sample, split_off_test

Array = NDArray[Any]

PORTION = 1 << 16  # rows whose fingerprint is taken at a time


def training_record(result: FitResult, cautions: list[str]) -> dict[str, Any]:
    """Return the facts that go into the model file."""
    options, chosen, comparison = result.options, result.chosen, result.comparison
    baseline = next((one for one in comparison.entries if one.name == "baseline"), None)
    return {
        "task": result.task,
        "target": result.schema.target.name if result.schema.target else "",
        "metric": result.metric,
        "scoring": result.scoring,
        "rule": options.rule,
        "learner": chosen.name,
        "parameters": plain_parameter(chosen.parameters),
        "choice": result.reason,
        "schema": result.schema.to_dict(),
        "categories": categories_of(result.X, result.train),
        "data": {
            "name": result.table.name,
            "rows": len(result.y),
            "columns": len(result.schema.columns),
            "fingerprint": data_fingerprint(result.X, result.y, result.weight),
        },
        "split": {
            "seed": options.seed,
            "test_size": options.test_fraction,
            "train_rows": int(result.train.size),
            "test_rows": int(result.test.size),
            "folds": comparison.folds,
            "fitted_rows": chosen.fitted_rows,
        },
        "scores": {
            "cv_mean": _number(chosen.mean),
            "cv_std": _number(chosen.std),
            "test": _number(chosen.test),
            "baseline": _number(baseline.test if baseline else math.nan),
        },
        "leaderboard": comparison.to_facts(),
        "certificate": certificate_facts(result.model),
        "cautions": cautions,
        "stopped": result.stopped,
        "versions": {"sixfold": __version__, "python": platform.python_version(), "numpy": np.__version__},
    }


def certificate_facts(model: Any) -> dict[str, Any] | None:
    """Return the certificate of the last step of a pipeline as plain data, without its date."""
    certificate = getattr(last_step(model), "certificate_", None)
    if certificate is None:
        return None
    facts = certificate.to_dict()
    facts.pop("subject", None)
    return {**facts, "text": str(certificate), "plain": in_plain_words(certificate)}


def training_rows(facts: Mapping[str, Any], rows: KnownRows) -> Array:
    """Return the numbers of the rows that a model was fitted to, drawn as at the fit."""
    split = facts["split"]
    train, _ = split_rows(facts, rows)
    return draw_sample(train, rows.y, rows.groups, split["fitted_rows"], facts["task"], split["seed"])


def split_rows(facts: Mapping[str, Any], rows: KnownRows) -> tuple[Array, Array]:
    """Return the numbers of the training rows and of the test rows, as at the fit."""
    split = facts["split"]
    return split_off_test(rows.y, rows.groups, split["test_size"], facts["task"], split["seed"])


def rows_of(facts: Mapping[str, Any], table: Table) -> KnownRows:
    """Return the rows of a table as the fit saw them, training and test rows together."""
    schema = TableSchema.from_dict(facts["schema"])
    schema.check_columns(table.frame)
    return known_rows(schema, table.frame)


def data_fingerprint(X: Any, y: Array, weight: Array | None = None) -> str:
    """Return the fingerprint of a typed frame with its target, in portions, dates as numbers."""
    import polars as pl
    import polars.selectors as cs

    total = 0
    for start in range(0, max(len(y), 1), PORTION):
        part = X.slice(start, PORTION).with_columns(cs.datetime().cast(pl.Int64))
        rows = slice(start, start + PORTION)
        total += int(fingerprint(part, y[rows], None if weight is None else weight[rows]) or "0", 16)
    return f"{total % 2**64:016x}"


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
