"""``python -m benchmarks.scale.dask_peer FILE TASK cold|held [SOLVER]``, in dask-ml's own environment.

dask-ml on threads, of which the machine's cores decide. "cold" counts reading the file into memory and
fitting, "held" the fit alone. It has no support vector machine of its own.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # tasks share the cores already; read when NumPy is imported
import numpy as np

from benchmarks.scale.made_table import AMOUNT, COLUMNS, LABEL, forget

GROUPS = 4  # row groups of a chunk, 126 MB
WARM_UP_ROWS = 100_000
TOLERANCE = 1e-3  # of a coefficient in its last step of Newton's, which then is a thousandth of that off


def learner(task: str, solver: str) -> Any:
    from dask_ml.linear_model import LinearRegression, LogisticRegression

    family = LogisticRegression if task == "logistic" else LinearRegression
    options = {"abstol": 1e-6, "reltol": 1e-5} if solver == "admm" else {}
    return family(solver=solver, tol=TOLERANCE if solver == "newton" else 1e-9, solver_kwargs=options)


def collections(path: Path, target: str) -> tuple[Any, Any]:
    """Return columns and target as arrays of Dask, a chunk for some row groups."""
    import dask
    import dask.array as da
    import pyarrow.parquet as pq

    found = pq.read_metadata(path)
    X, y = [], []
    for first in range(0, found.num_row_groups, GROUPS):
        groups = list(range(first, min(first + GROUPS, found.num_row_groups)))
        count = sum(found.row_group(group).num_rows for group in groups)
        part = dask.delayed(read_groups, nout=2)(path, groups, target)
        X.append(da.from_delayed(part[0], (count, len(COLUMNS)), "f8"))
        y.append(da.from_delayed(part[1], (count,), "f8"))
    return da.concatenate(X), da.concatenate(y)


def read_groups(path: Path, groups: list[int], target: str) -> tuple[Any, Any]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        table = file.read_row_groups(groups, columns=[*COLUMNS, target], use_threads=False)
    X = np.column_stack([table.column(name).to_numpy() for name in COLUMNS])
    return X, table.column(target).to_numpy().astype("f8")


def fitted(path: Path, task: str, solver: str, mode: str) -> tuple[float, float, Any]:
    """Return the seconds that count, those of the processor, and the model."""
    import dask

    start, busy = time.perf_counter(), time.process_time()
    X, y = dask.persist(*collections(path, AMOUNT if task == "least squares" else LABEL))
    if mode == "held":
        start, busy = time.perf_counter(), time.process_time()
    model = learner(task, solver).fit(X, y)
    return time.perf_counter() - start, time.process_time() - busy, model


def main(path: Path, task: str, mode: str, solver: str = "newton") -> dict[str, Any]:
    import dask

    warnings.simplefilter("ignore")
    dask.config.set(scheduler="threads")
    fitted(path.with_name(f"{WARM_UP_ROWS}.parquet"), task, solver, mode)
    forget(path)
    seconds, busy, model = fitted(path, task, solver, mode)
    found = {"seconds": seconds, "busy": busy, "coef": model.coef_.tolist()}
    return {**found, "intercept": float(model.intercept_)}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), *sys.argv[2:])))
