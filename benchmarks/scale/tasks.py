"""What is fitted at scale, and the judge: a problem's objective in one pass over the file, in float64.

    alpha |w|^2 / 2 + mean_i loss(w.x_i + b, y_i)

Whoever found w and b is judged by the same problem: sixfold's, with C = 1 and so alpha = 1 / rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.scale.made_table import AMOUNT, COLUMNS, LABEL

Array = NDArray[Any]


@dataclass(frozen=True)
class Task:
    """A linear problem: what is predicted, the loss of scores, and whether |w|^2 is penalised."""

    target: str
    loss: Callable[[Array, Array], Array]
    penalised: bool

    def alpha(self, rows: int) -> float:
        """Return the strength of the penalty."""
        return 1.0 / rows if self.penalised else 0.0


def logistic_loss(score: Array, y: Array) -> Array:
    return np.logaddexp(0.0, -y * score)


def hinge_loss(score: Array, y: Array) -> Array:
    return np.maximum(1.0 - y * score, 0.0)


def squared_loss(score: Array, y: Array) -> Array:
    return 0.5 * np.square(score - y)


LINEAR = {
    "logistic": Task(LABEL, logistic_loss, True),
    "least squares": Task(AMOUNT, squared_loss, False),
    "hinge": Task(LABEL, hinge_loss, True),
}
OTHERS = ("tree", "neighbours")
NAMES = (*LINEAR, *OTHERS)


def pieces(path: Path, target: str, rows: int = 65_536) -> Iterator[tuple[Array, Array]]:
    """Go through the columns and the target of a file; labels are -1 and 1."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(rows, columns=[*COLUMNS, target]):
            X = np.column_stack([batch.column(name).to_numpy() for name in COLUMNS])
            y = batch.column(target).to_numpy()
            yield X, np.where(y > 0, 1.0, -1.0) if target == LABEL else y


def objective(path: Path, task: Task, w: Array, b: float) -> float:
    """Return the objective of a linear model on all rows of the file."""
    total, count = 0.0, 0
    for X, y in pieces(path, task.target):
        total += float(task.loss(X @ w + b, y).sum())
        count += y.size
    return 0.5 * task.alpha(count) * float(w @ w) + total / count
