"""The real tables: those that come with scikit-learn, and the Penn benchmarks that lie beside the project.

Each is taken as it comes and standardised; of more rows than asked for, a stratified sample.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets

from benchmarks.gauntlet.settings import CLASSES, NUMBERS
from tests import pmlb

Array = NDArray[Any]


class Table(NamedTuple):
    """What is fitted: rows, answers, and weights where there are any."""

    X: Any
    y: Array
    weight: Array | None = None


BUNDLED = {
    "iris": (CLASSES, datasets.load_iris),
    "wine": (CLASSES, datasets.load_wine),
    "breast_cancer": (CLASSES, datasets.load_breast_cancer),
    "digits": (CLASSES, datasets.load_digits),
    "diabetes": (NUMBERS, datasets.load_diabetes),
    "linnerud": (NUMBERS, datasets.load_linnerud),
}
TASKS = {name: task for name, (task, _) in BUNDLED.items()}
TASKS |= {name: CLASSES if name in pmlb.CLASSIFICATION else NUMBERS for name in pmlb.PATHS}
PREPARATIONS: dict[str, Callable[[Array], Array]] = {
    "raw": lambda X: X,
    "standardised": lambda X: (X - X.mean(axis=0)) / np.where(np.ptp(X, axis=0) > 0, X.std(axis=0), 1.0),
}


def load(name: str, preparation: str, rows: int) -> Table:
    """Return a real table, without the rows in which something is not known."""
    if name in BUNDLED:
        X, y = BUNDLED[name][1](return_X_y=True)
        y = y[:, 0] if y.ndim == 2 else y
    else:
        X, y = pmlb.load(name)
        known = ~np.isnan(X).any(axis=1)
        X, y = X[known], y[known]
    some = sample(y, rows, TASKS[name] == CLASSES)
    return Table(PREPARATIONS[preparation](X[some]), y[some])


def sample(y: Array, rows: int, classes: bool) -> Array:
    """Return about so many places, evenly spread over the sorted answers, and one of each class at least."""
    if y.size <= rows:
        return np.arange(y.size)
    order = np.lexsort((np.random.default_rng(0).permutation(y.size), y))
    some = order[np.linspace(0, y.size - 1, rows).astype(int)]
    return np.union1d(some, np.unique(y, return_index=True)[1]) if classes else np.sort(some)
