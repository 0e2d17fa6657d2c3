"""``python -m benchmarks.scale.ours FILE TASK [held]``: one fit to a scan of a file.

What counts are the seconds from opening the file, which is not in memory, to the fitted model, with imports
done; the tree has depth 8, and the neighbours of 1,000 points that are not in the table are found and counted
as well. "held" counts the fit to an array that is in memory instead.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scale.counted import native_loops
from benchmarks.scale.made_table import AMOUNT, COLUMNS, LABEL, forget, queries
from benchmarks.scale.tasks import pieces

MEMORY_LIMIT = 1.4e9  # bytes; the peak has to stay below 1.5e9
DEPTH = 8
WARM_UP_ROWS = 100_000


def fitted(path: Path, task: str) -> Any:
    """Return what was fitted to a scan of the file; neighbours answer as well."""
    import sixfold

    table = sixfold.scan(path, target=target(task), columns=list(COLUMNS), memory_limit=MEMORY_LIMIT)
    model = learner(task).fit(table)
    if task == "neighbours":
        model.kneighbors(queries())
    return model


def target(task: str) -> str:
    return AMOUNT if task == "least squares" else LABEL


def learner(task: str) -> Any:
    """Return the learner of a task, with a certified gap of 1e-6 where it is iterative."""
    import sixfold

    if task == "logistic":
        return sixfold.LogisticRegression(tol=1e-6)
    if task == "least squares":
        return sixfold.LinearRegression()
    if task == "hinge":
        return sixfold.LinearSVC(loss="hinge", tol=1e-6)
    if task == "neighbours":
        return sixfold.KNeighborsClassifier()
    return sixfold.DecisionTreeClassifier(max_depth=DEPTH)


def rows_of(path: Path) -> int:
    """Return how many rows a file has."""
    import pyarrow.parquet as pq

    return pq.read_metadata(path).num_rows


def held(path: Path, task: str) -> dict[str, Any]:
    """Fit to rows in memory."""
    X = np.empty((rows_of(path), len(COLUMNS)))
    y = np.empty(len(X))
    start = 0
    for rows, values in pieces(path, target(task)):
        X[start : start + len(rows)], y[start : start + len(rows)] = rows, values
        start += len(rows)
    learner(task).fit(X[:1000], y[:1000])
    start, busy = time.perf_counter(), time.process_time()
    model = learner(task).fit(X, y)
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    return {"seconds": seconds, "busy": busy, **linear(model)}


def main(path: Path, task: str) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    warm = path.with_name(f"{WARM_UP_ROWS}.parquet")
    learner("logistic").fit([[0.0], [1.0], [2.0]], [0, 1, 1])  # what is imported at the first fit
    if task != "neighbours":
        fitted(warm, task)
    forget(path)
    with native_loops(len(COLUMNS)) as count:
        start, busy = time.perf_counter(), time.process_time()
        model = fitted(path, task)
        seconds, busy = time.perf_counter() - start, time.process_time() - busy
    certificate = getattr(model, "certificate_", None)
    return {
        "seconds": seconds,
        "busy": busy,  # both cores: what other processes take away does not count
        "passes": count.bytes / (8 * len(COLUMNS) * rows_of(path)),  # what native loops were handed
        "solver": getattr(model, "solver_", None),
        "iterations": getattr(model, "n_iter_", None),
        "certificate": certificate and str(certificate),
        "gap": certificate and certificate.relative_gap,
        "converged": certificate and bool(certificate.converged),
        **linear(model),
    }


def linear(model: Any) -> dict[str, Any]:
    """Return coefficients and intercept, where there are some."""
    if not hasattr(model, "coef_"):
        return {}
    return {"coef": model.coef_.ravel().tolist(), "intercept": float(np.ravel(model.intercept_)[0])}


if __name__ == "__main__":
    asked = held if sys.argv[3:] == ["held"] else main
    print(json.dumps(asked(Path(sys.argv[1]), sys.argv[2]), default=lambda value: value.tolist()))
