"""Fits, predictions and checks of tables in files: arrays mapped from a file, and a limit of memory.

fit      read all rows once -> fit as to an array, large arrays in files
predict  read some rows -> predict as for an array -> keep or write the answers
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if

from sixfold.data.dask_blocks import is_collection
from sixfold.data.scan.table import Scan, ScannedRows
from sixfold.errors import InputError
from sixfold.solvers.memory import bounded_memory

Array = NDArray[Any]

ANSWERS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform")
BETWEEN_LINES = 0.5  # seconds


@contextmanager
def read_rows(model: Any, table: Scan, y: Any = None, sample_weight: Any = None) -> Iterator[ScannedRows]:
    """Give the rows of a scan as arrays; inside, large arrays are in files if the rows are."""
    _require_no_others(y, sample_weight)
    rows = table.read(_told(model) if getattr(model, "verbose", 0) else None)
    if rows.gap is not None and not model.__sklearn_tags__().input_tags.allow_nan:
        rows.gap.refuse()
    if not rows.mapped:
        yield rows
        return
    with bounded_memory(table.memory_limit, table.scratch, rows.X):
        yield rows


def _require_no_others(y: Any, sample_weight: Any) -> None:
    for name, parameter, given in (("y", "target", y), ("sample_weight", "weight", sample_weight)):
        if given is not None:
            raise InputError(
                f"{name} was passed beside a scan, whose rows come from files. Name the column instead: "
                f"scan(path, {parameter}=...)."
            )


def rows_on_workers(table: Scan, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Return the rows of a scan as data frames whose partitions the workers of its client read."""
    from sixfold.data.dask_blocks import frame_in_pieces
    from sixfold.data.scan.pieces import TARGET, WEIGHT, PieceReader, pieces_of

    _require_no_others(y, sample_weight)
    reader = PieceReader(table)
    frame = frame_in_pieces(reader, pieces_of(table))
    return (
        frame[reader.names],
        None if table.target is None else frame[TARGET],
        None if table.weight is None else frame[WEIGHT],
    )


def _told(model: Any) -> Callable[[int, int | None], None]:
    """Return what prints how far reading has come."""
    begun = printed = time.perf_counter()

    def tell(rows: int, of: int | None) -> None:
        nonlocal printed
        now = time.perf_counter()
        if now - printed < BETWEEN_LINES and rows != of:
            return
        printed = now
        left = "" if not of else f" of {of:,}, {(of - rows) * (now - begun) / rows:.1f} s left"
        print(f"{type(model).__name__}: read {rows:,} rows{left}", flush=True)

    return tell


# -- predictions ---------------------------------------------------------------------------------------------


def take_scans(learner: type) -> None:
    """Let the methods of a class that answer for rows take a scan, and ``out``, a file for the answers."""
    for name in ANSWERS:
        method: Any = learner.__dict__.get(name)
        if hasattr(method, "fn") and hasattr(method, "check"):  # scikit-learn's available_if
            setattr(learner, name, available_if(method.check)(_in_portions(method.fn)))
        elif callable(method):
            setattr(learner, name, _in_portions(method))
    anyhow: Any = learner
    score = getattr(learner, "score", None)
    if callable(score) and not hasattr(score, "takes_scans"):  # a property says that there is none
        anyhow.score = _with_targets(score)


def _in_portions(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def answer(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        if is_collection(X):
            from sixfold.learners.distributed import answer_on_cluster

            return answer_on_cluster(self, method.__name__, X, args, options)
        if not isinstance(X, Scan):
            return method(self, X, *args, **options)
        out = options.pop("out", None)
        answers = (method(self, part.X, *args, **options) for part in X.portions())
        if out is not None:
            return write_answers(self, method.__name__, answers, os.fspath(out))
        return np.concatenate(list(answers))

    return answer


def _with_targets(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def score(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        if is_collection(X):
            from sixfold.learners.distributed import score_on_cluster

            return score_on_cluster(self, X, *args, **options)
        if isinstance(X, Scan) and (args[0] if args else options.get("y")) is None:
            y, weight = X.targets()
            if y is None:
                raise InputError("The scan has no target to compare with. Name it: scan(path, target=...).")
            options.pop("y", None)
            args = (y, *args[1:])
            if weight is not None and len(args) < 2 and options.get("sample_weight") is None:
                options["sample_weight"] = weight
        return method(self, X, *args, **options)

    score.takes_scans = True  # type: ignore[attr-defined]
    return score


def write_answers(model: Any, method: str, answers: Iterator[Any], out: str) -> str:
    """Write answers to a Parquet, Arrow or CSV file, which is there only when it is complete."""
    from sixfold.data.scan.files import ENDINGS, arrow

    pa = arrow()
    kind = ENDINGS.get(os.path.splitext(out)[1].lower())
    if kind is None:
        raise InputError(f"out={out!r} ends in none of {', '.join(sorted(ENDINGS))}. Name a file that does.")
    unfinished, writer = f"{out}.unfinished", None
    try:
        for answer in answers:
            names = _answer_names(model, method, np.asarray(answer))
            columns = np.asarray(answer).reshape(len(answer), -1).T
            table = pa.table([pa.array(np.ascontiguousarray(column)) for column in columns], names=names)
            writer = writer or _writer(pa, kind, unfinished, table.schema)
            writer.write_table(table)
        if writer is not None:
            writer.close()
        os.replace(unfinished, out)
    except BaseException:
        if writer is not None:
            writer.close()
        if os.path.exists(unfinished):
            os.remove(unfinished)
        raise
    return out


def _writer(pa: Any, kind: str, path: str, schema: Any) -> Any:
    if kind == "parquet":
        import pyarrow.parquet

        return pyarrow.parquet.ParquetWriter(path, schema)
    return pa.csv.CSVWriter(path, schema) if kind == "csv" else pa.ipc.new_file(path, schema)


def _answer_names(model: Any, method: str, answer: Array) -> list[str]:
    """Return what the columns of answers are called."""
    columns = answer.reshape(len(answer), -1).shape[1]
    if columns == 1:
        return [method]
    if method == "transform":
        return [str(name) for name in model.get_feature_names_out()]
    classes = getattr(model, "classes_", None)
    last = range(columns) if classes is None or len(classes) != columns else classes.tolist()
    return [f"{method}_{name}" for name in last]
