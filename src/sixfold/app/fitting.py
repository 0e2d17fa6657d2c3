"""From a file to a tuned model, told once.

    read -> infer the columns and the task -> hold out a test part -> tune every learner -> choose

What comes out, a :class:`FitResult`, is all that the model file and the report are made of.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.data.column_schema import TableSchema, infer_schema, infer_task
from sixfold.data.table_files import Table, read_table
from sixfold.errors import InputError
from sixfold.selection.comparison import compare
from sixfold.selection.leaderboard import Comparison, Entry

Array = NDArray[Any]


@dataclass(frozen=True)
class FitOptions:
    """What was asked for.

    Attributes
    ----------
    data : str
        A file, or ``example:NAME``.
    target : str or None
        None where the example knows its own.
    task, metric, learners, folds, seed, time_limit, test_fraction, rule
        As in :func:`sixfold.compare`; ``metric`` is its ``scoring``.
    weights, groups : str or None
        Columns.
    ids : tuple of str
        Columns to be set aside.
    output : Path
        The folder for the files that are written.
    """

    data: str
    target: str | None = None
    task: str = "auto"
    learners: tuple[str, ...] = ("all",)
    metric: str | None = None
    folds: int = 5
    seed: int = 0
    time_limit: float | None = None
    test_fraction: float = 0.2
    rule: str = "1se"
    weights: str | None = None
    groups: str | None = None
    ids: tuple[str, ...] = ()
    output: Path = Path()


@dataclass(frozen=True)
class FitResult:
    """What one run found.

    Attributes
    ----------
    options : FitOptions
    table : Table
        As read, without rows whose target is missing.
    schema : TableSchema
    X : polars.DataFrame
        The features of all rows, typed.
    y : ndarray
        Labels as text, or numbers.
    train, test : ndarray
        Row numbers.
    weight, groups : ndarray or None
        Of all rows.
    task, scoring, metric : str
        ``metric`` is ``scoring`` in words.
    comparison : Comparison
    chosen : Entry
    reason : str
        Why it was chosen, one sentence.
    stopped : str
        "" or what ended the work early.
    """

    options: FitOptions
    table: Table
    schema: TableSchema
    X: Any
    y: Array
    train: Array
    test: Array
    weight: Array | None
    groups: Array | None
    task: str
    scoring: str
    metric: str
    comparison: Comparison
    chosen: Entry
    reason: str
    stopped: str = ""


def run_fit(options: FitOptions, watcher: Any = None) -> FitResult:
    """Return the tuned model and all there is to say about it."""
    table = read_table(options.data)
    target = options.target or table.target
    if target is None:
        raise InputError("Which column is to be predicted? Name it: --target NAME.")
    schema = infer_schema(
        table.frame,
        target,
        task=options.task,
        weights=options.weights,
        groups=options.groups,
        ids=options.ids,
    )
    task = infer_task(schema)
    X, y = schema.typed(table.frame), schema.target_values(table.frame)
    y = y if task == "regression" else y.astype(str)
    comparison = compare(
        X,
        y,
        list(options.learners),
        task=task,
        rule=options.rule,
        cv=options.folds,
        random_state=options.seed,
    )
    rows = np.arange(len(y))
    scoring = "r2" if task == "regression" else "accuracy"
    split = rows[: comparison.train_rows], rows[comparison.train_rows :]
    return FitResult(
        options,
        table,
        schema,
        X,
        y,
        *split,
        None,
        None,
        task,
        scoring,
        comparison.metric,
        comparison,
        comparison.best,
        "the best mean score",
    )
