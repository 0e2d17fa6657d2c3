"""The tasks of searching the best tree, and how a tree that was found is judged: by its errors.

ConTree's data sets lie beside the project. The bits are made: each is a mixture of eight hidden numbers and
noise, cut somewhere, so that many of them say nearly the same; the class is a rule of five bits, and wrong in
15% of the rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.runner import MissingDataError
from tests import contree

Array = NDArray[Any]

HIDDEN = 8
NOISE = 0.15
QUICK_ROWS = 60


class ShortTask(NamedTuple):
    """The data of a case: rows, classes numbered from 0, and how deep the tree may be."""

    X: Array
    y: Array
    depth: int


class Found(NamedTuple):
    """A fitted model, and whether the limit of time came before the proof that it is the best."""

    model: Any
    stopped: bool


def contree_set(name: str, depth: int, quick: bool) -> ShortTask:
    """Return one of ConTree's sets; every class that is there has a number, and there is no other."""
    if name not in contree.PATHS:
        raise MissingDataError(f"shared/data/contree/{name}.txt.gz is not beside the project")
    X, y = contree.load(name)
    if quick:
        some = np.linspace(0, len(y) - 1, QUICK_ROWS).astype(int)
        X, y = X[some], y[some]
    return ShortTask(X, np.unique(y, return_inverse=True)[1].astype(np.intc), depth)


def bits(rows: int, columns: int, depth: int, quick: bool) -> ShortTask:
    """Return correlated bits, as float64, and two classes."""
    if quick:
        rows, columns = 200, 8
    rng = np.random.default_rng(0)
    hidden = rng.standard_normal((rows, HIDDEN))
    mixed = hidden @ rng.standard_normal((HIDDEN, columns)) / np.sqrt(HIDDEN)
    mixed += 0.5 * rng.standard_normal((rows, columns))
    X = mixed > rng.normal(0, 0.7, columns)
    a, b, c, d, e = X[:, rng.choice(columns, 5, replace=False)].T
    y = (a & b) | ((c & ~d) ^ e)
    return ShortTask(X.astype(np.float64), (y ^ (rng.random(rows) < NOISE)).astype(np.intc), depth)


def mixture(rows: int, columns: int, depth: int, quick: bool) -> ShortTask:
    """Return a large table of numbers in two classes of several clusters each."""
    from sklearn.datasets import make_classification

    if quick:
        rows, columns = 300, 8
    X, y = make_classification(
        rows, columns, n_informative=5, n_redundant=3, n_clusters_per_class=4, flip_y=0.05, random_state=0
    )
    return ShortTask(X, y.astype(np.intc), depth)


def wrong_rows(task: ShortTask, found: Found) -> float:
    """Return how many rows a tree answers wrongly, counted from its answers."""
    return float(np.count_nonzero(found.model.predict(task.X) != task.y))


def relative_gap(task: ShortTask, found: Found) -> float:
    """Return which part of its cost another tree could save at most, as our certificate says."""
    certificate = found.model.certificate_
    return certificate.gap / certificate.objective if certificate.gap > 0 else 0.0
