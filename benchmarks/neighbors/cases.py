"""Exact nearest neighbours against scikit-learn, its intelex, FAISS, SciPy and the bare product of matrices.

Making the index counts, except where it was made before. Peers get their best: all threads, float32 where
they like it better, the fastest of their exact algorithms and settings.

Accuracy is the share of queries whose answer is not the exact one: a hundred of them are checked by computing
every distance in double precision.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.datasets import IMAGE_BYTES
from benchmarks.neighbors.tasks import (
    Array,
    SearchTask,
    fashion,
    fashion_many_queries,
    points,
    share_wrong,
    text,
    uniform,
)
from benchmarks.peers import Job, Predicted, fallback
from benchmarks.runner import Case, Contender

L1_QUERIES = 1000  # scikit-learn takes a minute for them, and ten for all
PRODUCT_ROWS = 1000  # queries whose products with all rows are held at a time: 240 MB
QUERY_MEMORY = 200e6


def query(model: Any, task: SearchTask) -> Predicted:
    """Ask an index that is there for the neighbours of all queries."""
    return Predicted(model, model.kneighbors(task.Q)[1])


def build_and_query(job: Job, task: SearchTask) -> Predicted:
    """Make the index and ask it for the neighbours of all queries."""
    return query(build(job), job.task)


def build(job: Job) -> Any:
    return job.estimator.fit(job.task.X, job.task.y)


class Flat:
    """FAISS without compression or clusters: its exact search."""

    def __init__(self, k: int, l1: bool) -> None:
        self.k, self.l1 = k, l1

    def fit(self, X: Array, y: Array) -> Flat:
        """Copy the rows."""
        import faiss

        metric = faiss.METRIC_L1 if self.l1 else faiss.METRIC_L2
        self.index = faiss.IndexFlat(X.shape[1], metric) if self.l1 else faiss.IndexFlatL2(X.shape[1])
        self.index.add(X)
        return self

    def kneighbors(self, Q: Array) -> tuple[Array, Array]:
        """Return distances (FAISS: their squares) and rows."""
        return self.index.search(Q, self.k)


class Tree:
    """SciPy's tree of boxes."""

    def __init__(self, k: int, balanced: bool, compact: bool, leaf: int) -> None:
        self.k, self.balanced, self.compact, self.leaf = k, balanced, compact, leaf

    def fit(self, X: Array, y: Array) -> Tree:
        """Grow the tree."""
        from scipy.spatial import cKDTree

        self.tree = cKDTree(X, self.leaf, compact_nodes=self.compact, balanced_tree=self.balanced)
        return self

    def kneighbors(self, Q: Array) -> tuple[Array, Array]:
        """Return distances and rows."""
        return self.tree.query(Q, self.k, workers=-1)


class Product:
    """The product of all queries and rows that a distance matrix begins with, and nothing else."""

    def fit(self, X: Array, y: Array) -> Product:
        """Keep the rows."""
        self.X = X
        return self

    def kneighbors(self, Q: Array) -> tuple[None, None]:
        """Multiply, and throw it away."""
        out = np.empty((min(PRODUCT_ROWS, len(Q)), len(self.X)), dtype=np.float32)
        for first in range(0, len(Q), PRODUCT_ROWS):
            some = Q[first : first + PRODUCT_ROWS]
            np.matmul(some, self.X.T, out=out[: len(some)])
        return None, None


def sixfold(task: SearchTask) -> Job:
    from sixfold import KNeighborsClassifier

    return Job(KNeighborsClassifier(task.k, metric=task.metric), task)


def nearest(library: str, algorithm: str, task: SearchTask) -> Job:
    model = import_module(f"{library}.neighbors").NearestNeighbors(
        n_neighbors=task.k, algorithm=algorithm, metric=task.metric, n_jobs=-1
    )
    return Job(model, task.in_single_precision() if task.X.dtype == np.uint8 else task)


def faiss_flat(task: SearchTask) -> Job:
    import faiss  # noqa: F401  # so that its absence is noted now

    return Job(Flat(task.k, task.metric == "manhattan"), task.in_single_precision())


def bare_product(task: SearchTask) -> Job:
    return Job(Product(), task.in_single_precision())


def fastest_tree(task: SearchTask) -> Job:
    """Return the tree with the settings that are fastest on these data, each tried once."""
    jobs = [Job(Tree(task.k, *how), task) for how in itertools.product((False, True), (False, True), (8, 16))]

    def seconds(job: Job) -> float:
        start = time.perf_counter()
        build_and_query(job, task)
        return time.perf_counter() - start

    return min(jobs, key=seconds)


def prebuilt(prepare: Callable[[SearchTask], Job], task: SearchTask) -> Any:
    return build(prepare(task))


def algorithm_used(predicted: Predicted) -> str:
    return str(predicted.model.algorithm_)


def tree_settings(predicted: Predicted) -> str:
    tree = predicted.model
    return f"balanced_tree={tree.balanced}, compact_nodes={tree.compact}, leafsize={tree.leaf}"


def rows_of(predicted: Predicted) -> Array | None:
    return predicted.values


def with_index(contender: Contender) -> Contender:
    """Return the contender with an index that was made before."""
    return replace(contender, prepare=partial(prebuilt, contender.prepare), run=query)


contender = partial(Contender, run=build_and_query, answer=rows_of)
SIXFOLD = contender("sixfold", sixfold, remark=algorithm_used)
SKLEARN = contender("scikit-learn", partial(nearest, "sklearn", "brute"))
FAISS = contender("FAISS", faiss_flat)


def sklearnex(algorithm: str) -> Contender:
    prepare = partial(nearest, "sklearnex", algorithm)
    return contender("scikit-learn-intelex", prepare, remark=lambda predicted: fallback(predicted.model))


BRUTE = (SIXFOLD, sklearnex("brute"), SKLEARN, FAISS)

case = partial(Case, error=share_wrong, accuracy=0.0, with_memory=False)

CASES = (
    case(
        "images",
        "5 neighbours, Fashion-MNIST float32, 10,000 queries",
        partial(fashion, np.float32, 10_000, "euclidean"),
        (*BRUTE, contender("bare sgemm", bare_product, remark=lambda predicted: "finds no neighbours")),
        bars={"scikit-learn-intelex": 5, "scikit-learn": 5, "FAISS": 5, "bare sgemm": 1},
    ),
    case(
        "images_uint8",
        "5 neighbours, Fashion-MNIST uint8 (peers float32), 10,000 queries",
        partial(fashion, np.uint8, 10_000, "euclidean"),
        BRUTE,
        bars={"scikit-learn-intelex": 4, "scikit-learn": 4, "FAISS": 4},
        long=True,
    ),
    case(
        "images_manhattan",
        f"5 neighbours, Manhattan, Fashion-MNIST uint8 (peers float32), {L1_QUERIES} queries",
        partial(fashion, np.uint8, L1_QUERIES, "manhattan"),
        (SIXFOLD, SKLEARN, FAISS),
        bars={"scikit-learn": 150, "FAISS": 25},
        long=True,
    ),
    case(
        "uniform",
        "5 neighbours, uniform 50,000 x 100 float32, 5,000 queries",
        uniform,
        BRUTE,
        bars={"scikit-learn-intelex": 1.6, "scikit-learn": 1.6, "FAISS": 1.6},
    ),
    case(
        "points",
        "10 neighbours, 1,000,000 x 3, 100,000 queries",
        points,
        (
            SIXFOLD,
            contender("cKDTree", fastest_tree, remark=tree_settings),
            contender("scikit-learn", partial(nearest, "sklearn", "kd_tree")),
            sklearnex("kd_tree"),
        ),
        bars={"cKDTree": 1, "scikit-learn": 1, "scikit-learn-intelex": 1},
        long=True,
    ),
    case(
        "text",
        "5 neighbours, cosine, sparse 20,000 x 50,000, 5,000 queries",
        text,
        (SIXFOLD, SKLEARN),
        bars={"scikit-learn": 2},
    ),
    case(
        "one_query",
        "5 neighbours, Fashion-MNIST float32, one query, index made before",
        partial(fashion, np.float32, 1, "euclidean"),
        tuple(map(with_index, BRUTE)),
        bars={"scikit-learn-intelex": 2, "scikit-learn": 2, "FAISS": 2},
    ),
    case(
        "query_memory",
        "less than 200 MB: Fashion-MNIST float32, 20,000 queries, index made before",
        fashion_many_queries,
        (with_index(SIXFOLD),),
        memory_bar=QUERY_MEMORY / IMAGE_BYTES,
        with_memory=True,
        long=True,
    ),
)
