"""The tables of the landscape: correlated columns with means; labels and numbers that no plane gets right.

    x = z (I + E / sqrt(d)) + m,     s_k = x.w_k / sqrt(d),     label = argmax_k (s_k + noise)
    number = s_0 + 0.3 noise

Columns beyond the hundredth are noise that is nearly independent. A sparse table has one entry in a hundred.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[Any]

MIXED = 100  # columns that are correlated
DENSITY = 0.01


class Shape(NamedTuple):
    """The size of a table."""

    rows: int
    columns: int
    sparse: bool = False

    @property
    def name(self) -> str:
        """What the table of results calls it."""
        return f"{self.rows:,} x {self.columns:,}" + ", sparse" * self.sparse

    @property
    def values(self) -> int:
        """How many numbers are stored."""
        return int(self.rows * self.columns * (DENSITY if self.sparse else 1))


SHAPES = (
    Shape(100, 4),
    Shape(1_000, 10),
    Shape(10_000, 10),
    Shape(100_000, 10),
    Shape(1_000_000, 10),
    Shape(1_000_000, 2),
    Shape(100_000, 50),
    Shape(100, 100),
    Shape(1_000, 100),
    Shape(10_000, 100),
    Shape(300, 2_000),
    Shape(1_000, 10_000),
    Shape(2_000, 2_000, sparse=True),
    Shape(20_000, 10_000, sparse=True),
)


class Table(NamedTuple):
    """Rows, their targets (numbers where there are no classes), and rows to predict."""

    X: Any
    y: Array
    queries: Any


@lru_cache(maxsize=2)
def make(shape: Shape, classes: int) -> Table:
    """Return the table of a shape, always the same; 0 classes stand for numbers."""
    n, d = shape.rows, shape.columns
    extra = min(1_000, n)
    random = np.random.default_rng([n, d, classes, shape.sparse])
    if shape.sparse:
        X: Any = sp.random(n + extra, d, DENSITY, "csr", random_state=random, data_rvs=random.standard_normal)
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    else:
        mixed = min(d, MIXED)
        X = random.standard_normal((n + extra, d))
        mixing = np.eye(mixed) + random.standard_normal((mixed, mixed)) / np.sqrt(mixed)
        X[:, :mixed] = X[:, :mixed] @ mixing + random.uniform(-1, 1, mixed)
    scores = np.asarray(X @ random.standard_normal((d, max(classes, 1))))
    scores /= scores.std(axis=0)
    if classes:
        y = np.argmax(1.5 * scores + random.gumbel(size=scores.shape), axis=1)
        if classes == 2:
            y = (1.5 * (scores[:, 0] - scores[:, 0].mean()) + random.logistic(size=n + extra) > 0).astype(int)
    else:
        y = scores[:, 0] + 0.3 * random.standard_normal(n + extra)
    return Table(X[:n], np.ascontiguousarray(y[:n]), X[n:])
