"""The tasks of nearest-neighbour search, and the share of queries that are answered wrongly.

An answer is a number of rows for each query. For a hundred queries, evenly spread, the distances of these
rows are computed anew in double precision, term by term, and compared with the k smallest distances there
are: another row at the same distance is as good, one that is farther is an error.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.datasets import documents, images

Array = NDArray[Any]

JUDGED = 100
CHUNK_DISTANCES = 10_000_000  # distances that are held at a time
# Distances computed by one formula from two sides agree to this, and no closer.
SAME_DISTANCE = 1e-12

_SMALLEST: dict[str, Array] = {}  # the smallest distances that were worked out, by task


class SearchTask(NamedTuple):
    """The data of a case: training rows, queries, how many neighbours, by which distance."""

    name: str
    X: Any
    Q: Any
    k: int = 5
    metric: str = "euclidean"

    @property
    def y(self) -> Array:
        """Labels, which a classifier wants and no search needs."""
        return np.arange(self.X.shape[0]) % 2

    def in_single_precision(self) -> SearchTask:
        """Return the same rows as float32, which suits most peers best."""
        return self._replace(X=self.X.astype(np.float32), Q=self.Q.astype(np.float32))


def fashion(dtype: type, queries: int, metric: str, quick: bool) -> SearchTask:
    """Return 60,000 images to search in, and test images to search for."""
    rows, queries = (300, min(queries, 20)) if quick else (60_000, queries)
    X, Q = images("train", rows, dtype), images("t10k", queries, dtype)
    return SearchTask(f"images {metric} {rows} {queries}", X, Q, metric=metric)


def fashion_many_queries(quick: bool) -> SearchTask:
    """Return the 60,000 images, of which 20,000 are the queries as well."""
    rows = 300 if quick else 60_000
    X = images("train", rows, np.float32)
    return SearchTask(f"many queries {rows}", X, X[: rows // 3])


def uniform(quick: bool) -> SearchTask:
    """Return 50,000 x 100 uniform numbers, in which nothing is near anything, and 5,000 queries."""
    n, m, d = (300, 20, 10) if quick else (50_000, 5_000, 100)
    rng = np.random.default_rng(0)
    X, Q = (rng.random((rows, d), dtype=np.float32) for rows in (n, m))
    return SearchTask(f"uniform {n}", X, Q)


def points(quick: bool) -> SearchTask:
    """Return 1,000,000 uniform points in space and 100,000 queries."""
    n, m = (300, 20) if quick else (1_000_000, 100_000)
    rng = np.random.default_rng(0)
    return SearchTask(f"points {n}", rng.random((n, 3)), rng.random((m, 3)), k=10)


def text(quick: bool) -> SearchTask:
    """Return 20,000 documents over 50,000 words, as rows of length 1, and 5,000 more to ask for."""
    n, m, d, words = (300, 20, 500, 20) if quick else (20_000, 5_000, 50_000, 80)
    both = documents(n + m, d, words, np.random.default_rng(0))
    return SearchTask(f"text {n}", both[:n], both[n:], metric="cosine")


def share_wrong(task: SearchTask, rows: Array | None) -> float:
    """Return the share of the judged queries with a neighbour that is farther than it need be."""
    if rows is None:
        return math.nan
    judged = _judged(task)
    if task.name not in _SMALLEST:
        _SMALLEST[task.name] = _smallest(task, judged)
    found = np.array([np.sort(_distances(task, query, rows[query])) for query in judged])
    # A row that was named twice is no neighbour twice.
    repeated = np.array([len(set(rows[query])) < task.k for query in judged])
    farther = found > _SMALLEST[task.name] * (1.0 + SAME_DISTANCE) + SAME_DISTANCE * (task.metric == "cosine")
    return float(np.mean(farther.any(axis=1) | repeated))


def _judged(task: SearchTask) -> list[int]:
    queries = task.Q.shape[0]
    return [queries * i // min(JUDGED, queries) for i in range(min(JUDGED, queries))]


def _smallest(task: SearchTask, judged: list[int]) -> Array:
    """Return the k smallest distances: of rows near the k-th by a quick formula, then term by term."""
    found = []
    step = max(CHUNK_DISTANCES // task.X.shape[0], 1)
    for first in range(0, len(judged), step):
        queries = judged[first : first + step]
        for query, quick in zip(queries, _quick_distances(task, queries), strict=True):
            bar = np.partition(quick, task.k - 1)[task.k - 1] + 1e-9 * np.abs(quick).max()
            found.append(np.sort(_distances(task, query, np.flatnonzero(quick <= bar)))[: task.k])
    return np.array(found)


def _quick_distances(task: SearchTask, queries: list[int]) -> Array:
    """Return for each query what has the order of the distances up to rounding in double precision."""
    Q = _dense(task.Q, queries)
    if task.metric == "cosine":
        return -(task.X @ Q.T).T  # of rows of length 1
    from scipy.spatial.distance import cdist

    parts = []
    for part in np.array_split(task.X, max(len(task.X) // 10_000, 1)):
        X = part.astype(np.float64)
        if task.metric == "manhattan":
            parts.append(cdist(Q, X, "cityblock"))
        else:
            parts.append(np.square(X).sum(axis=1) - 2.0 * (Q @ X.T))
    return np.concatenate(parts, axis=1)


def _distances(task: SearchTask, query: int, rows: Array) -> Array:
    """Return the distances of the query to these rows; squared where that leaves their order."""
    X, q = _dense(task.X, rows), _dense(task.Q, [query])
    if task.metric == "manhattan":
        return np.abs(X - q).sum(axis=1)
    if task.metric == "cosine":
        X, q = (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300) for rows in (X, q))
    return np.square(X - q).sum(axis=1)


def _dense(table: Any, rows: Any) -> Array:
    some = table[rows]
    return (some.toarray() if sp.issparse(some) else some).astype(np.float64)
