"""Data that several families are measured on: Fashion-MNIST, and documents as sparse rows."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.runner import MissingDataError

Array = NDArray[Any]

FASHION = Path("/usr/share/datasets/fashion-mnist")
PIXELS = 28 * 28
IMAGE_BYTES = 60_000 * PIXELS * 4  # of the training images in single precision


def images(name: str, rows: int, dtype: type) -> Array:
    """Return the first Fashion-MNIST images of the file ("train" or "t10k"), one a row."""
    return _read(f"{name}-images-idx3-ubyte.gz", 16, rows * PIXELS).reshape(rows, PIXELS).astype(dtype)


def image_labels(name: str, rows: int) -> Array:
    """Return what the first images show."""
    return _read(f"{name}-labels-idx1-ubyte.gz", 8, rows)


def _read(name: str, head: int, count: int) -> Array:
    path = FASHION / name
    if not path.exists():
        raise MissingDataError(f"{path} is not there; Debian's package dataset-fashion-mnist has it")
    with gzip.open(path) as file:
        file.read(head)  # the format, and the sizes that are known
        return np.frombuffer(file.read(count), dtype=np.uint8)


def documents(n: int, d: int, words: int, rng: np.random.Generator) -> Any:
    """Return documents of about so many words, as rows of length 1 in which rare words weigh more."""
    counts = rng.poisson(words, n).clip(1)
    # The k-th most frequent word has a frequency of about 1 / k.
    columns = np.minimum(np.exp(rng.uniform(0, np.log(d), counts.sum())).astype(np.int64), d - 1)
    rows = np.repeat(np.arange(n), counts)
    X = sp.csr_array((np.ones(rows.size), (rows, columns)), shape=(n, d))
    X.sum_duplicates()
    idf = np.log(n / np.maximum(np.bincount(X.indices, minlength=d), 1.0))
    X.data = (1.0 + np.log(X.data)) * idf[X.indices]
    X = sp.csr_array(sp.diags_array(1.0 / np.sqrt(X.multiply(X).sum(axis=1))) @ X)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X
