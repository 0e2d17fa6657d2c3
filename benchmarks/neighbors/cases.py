"""Exact nearest neighbours against scikit-learn, its intelex, FAISS, SciPy and the bare product of matrices.

Making the index counts, except where the title says otherwise. Peers get their best: all threads, float32
where they like it better, the fastest of their exact algorithms and settings.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.linear.regression import fallback
from benchmarks.neighbors.tasks import (
    Array,
    Asked,
    fashion,
    fashion_crowd,
    points,
    share_wrong,
    text,
    uniform,
)
from benchmarks.runner import Case, Contender

L1_QUERIES = 1000  # scikit-learn takes a minute for them, and ten for all
PRODUCT_ROWS = 1000  # queries whose products with all rows are held at a time: 240 MB
QUERY_MEMORY = 200e6
IMAGE_BYTES = 60_000 * 784 * 4


class Job(NamedTuple):
    """A searcher with scikit-learn's ``fit`` and ``kneighbors``, and the data as it likes them."""

    searcher: Any
    task: Asked


class Answered(NamedTuple):
    """The neighbours, and who found them."""

    searcher: Any
    rows: Array | None


def search(job: Job, task: Asked) -> Answered:
    """Make the index and ask all queries."""
    searcher = job.searcher.fit(job.task.X, job.task.y)
    return Answered(searcher, searcher.kneighbors(job.task.Q)[1])


def ask(searcher: Any, task: Asked) -> Answered:
    """Ask all queries of an index that is there."""
    return Answered(searcher, searcher.kneighbors(task.Q)[1])


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


def sixfold(task: Asked) -> Job:
    from sixfold import KNeighborsClassifier

    return Job(KNeighborsClassifier(task.k, metric=task.metric), task)


def sklearn(algorithm: str, task: Asked) -> Job:
    from sklearn.neighbors import NearestNeighbors

    own = task.in_single_precision() if task.X.dtype == np.uint8 else task
    return Job(NearestNeighbors(n_neighbors=task.k, algorithm=algorithm, metric=task.metric, n_jobs=-1), own)


def sklearnex(algorithm: str, task: Asked) -> Job:
    from sklearnex.neighbors import NearestNeighbors

    own = task.in_single_precision() if task.X.dtype == np.uint8 else task
    return Job(NearestNeighbors(n_neighbors=task.k, algorithm=algorithm, metric=task.metric, n_jobs=-1), own)


def faiss_flat(task: Asked) -> Job:
    import faiss  # noqa: F401  # so that its absence is noted now

    return Job(Flat(task.k, task.metric == "manhattan"), task.in_single_precision())


def bare_product(task: Asked) -> Job:
    return Job(Product(), task.in_single_precision())


def fastest_tree(task: Asked) -> Job:
    """Return the tree with the settings that are fastest on these data, each tried once."""
    jobs = [Job(Tree(task.k, *how), task) for how in itertools.product((False, True), (False, True), (8, 16))]

    def seconds(job: Job) -> float:
        start = time.perf_counter()
        search(job, task)
        return time.perf_counter() - start

    return min(jobs, key=seconds)


def prebuilt(prepare: Callable[[Asked], Job], task: Asked) -> Any:
    job = prepare(task)
    return job.searcher.fit(job.task.X, job.task.y)


def algorithm_used(answered: Answered) -> str:
    return str(answered.searcher.algorithm_)


def tree_settings(answered: Answered) -> str:
    tree = answered.searcher
    return f"balanced_tree={tree.balanced}, compact_nodes={tree.compact}, leafsize={tree.leaf}"


def intelex_remark(answered: Answered) -> str:
    return fallback(answered.searcher)


def product_remark(answered: Answered) -> str:
    return "finds no neighbours"


def rows_of(answered: Answered) -> Array | None:
    return answered.rows


def contender(
    name: str, prepare: Callable[[Asked], Job], remark: Callable[[Answered], str] | None = None
) -> Contender:
    return Contender(name, prepare, search, rows_of, *([remark] if remark else []))


def with_index(
    name: str, prepare: Callable[[Asked], Job], remark: Callable[[Answered], str] | None = None
) -> Contender:
    return Contender(name, partial(prebuilt, prepare), ask, rows_of, *([remark] if remark else []))


OURS = contender("sixfold", sixfold, algorithm_used)
BRUTE = (
    contender("scikit-learn-intelex", partial(sklearnex, "brute"), intelex_remark),
    contender("scikit-learn", partial(sklearn, "brute")),
    contender("FAISS", faiss_flat),
)


def case(
    name: str, title: str, data: Callable[[bool], Asked], *peers: Contender, bars: dict[str, float]
) -> Case:
    return Case(name, title, data, (OURS, *peers), share_wrong, 0.0, bars, with_memory=False)


CASES = (
    case(
        "images",
        "5 neighbours, Fashion-MNIST float32, 10,000 queries",
        partial(fashion, np.float32, 10_000, "euclidean"),
        *BRUTE,
        contender("bare sgemm", bare_product, product_remark),
        bars={"scikit-learn-intelex": 4, "scikit-learn": 4, "FAISS": 4, "bare sgemm": 1},
    ),
    case(
        "images_uint8",
        "5 neighbours, Fashion-MNIST uint8 (peers float32), 10,000 queries",
        partial(fashion, np.uint8, 10_000, "euclidean"),
        *BRUTE,
        bars={"scikit-learn-intelex": 4, "scikit-learn": 4, "FAISS": 4},
    ),
    case(
        "images_manhattan",
        f"5 neighbours, Manhattan, Fashion-MNIST uint8 (peers float32), {L1_QUERIES} queries",
        partial(fashion, np.uint8, L1_QUERIES, "manhattan"),
        contender("scikit-learn", partial(sklearn, "brute")),
        contender("FAISS", faiss_flat),
        bars={"scikit-learn": 150, "FAISS": 25},
    ),
    case(
        "uniform",
        "5 neighbours, uniform 50,000 x 100 float32, 5,000 queries",
        uniform,
        *BRUTE,
        bars={"scikit-learn-intelex": 1.3, "scikit-learn": 1.3, "FAISS": 1.3},
    ),
    case(
        "points",
        "10 neighbours, 1,000,000 x 3, 100,000 queries",
        points,
        contender("cKDTree", fastest_tree, tree_settings),
        contender("scikit-learn", partial(sklearn, "kd_tree")),
        contender("scikit-learn-intelex", partial(sklearnex, "kd_tree"), intelex_remark),
        bars={"cKDTree": 1, "scikit-learn": 1, "scikit-learn-intelex": 1},
    ),
    case(
        "text",
        "5 neighbours, cosine, sparse 20,000 x 50,000, 5,000 queries",
        text,
        contender("scikit-learn", partial(sklearn, "brute")),
        bars={"scikit-learn": 2},
    ),
    Case(
        name="one_query",
        title="5 neighbours, Fashion-MNIST float32, one query, index made before",
        data=partial(fashion, np.float32, 1, "euclidean"),
        contenders=(
            with_index("sixfold", sixfold, algorithm_used),
            with_index("scikit-learn-intelex", partial(sklearnex, "brute"), intelex_remark),
            with_index("scikit-learn", partial(sklearn, "brute")),
            with_index("FAISS", faiss_flat),
        ),
        error=share_wrong,
        accuracy=0.0,
        bars={"scikit-learn-intelex": 2, "scikit-learn": 2, "FAISS": 2},
        with_memory=False,
    ),
    Case(
        name="query_memory",
        title="less than 200 MB: Fashion-MNIST float32, 20,000 queries, index made before",
        data=fashion_crowd,
        contenders=(with_index("sixfold", sixfold, algorithm_used),),
        error=share_wrong,
        accuracy=0.0,
        memory_bar=QUERY_MEMORY / IMAGE_BYTES,
    ),
)
