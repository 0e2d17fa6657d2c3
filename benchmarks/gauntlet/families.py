"""The synthetic tables, one for each way in which everyday data are hard.

A family is a function of a generator that returns the columns, or columns and weights, and what their answers
are like: how many classes, of which shares, with how much noise. Answers come from a linear model of the
standardised columns; a class whose share is next to nothing has a single row.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks.gauntlet.settings import CLASSES, NUMBERS
from benchmarks.gauntlet.tables import Array, Table

BOTH = (CLASSES, NUMBERS)
EVER_RARER = tuple(2.0**-k for k in range(13))


class Family(NamedTuple):
    """Columns, and what their answers are like."""

    columns: Callable[[np.random.Generator], Any]
    shares: tuple[float, ...] = (1.0, 1.0, 1.0)
    noise: float = 1.0
    tasks: tuple[str, ...] = BOTH


def normal(n: int, d: int, scale: Any = 1.0, offset: float = 0.0) -> Callable[[np.random.Generator], Array]:
    return lambda rng: rng.normal(size=(n, d)) * scale + offset


def collinear(rng: np.random.Generator, distance: float) -> Array:
    X = rng.normal(size=(500, 6))
    X[:, 5] = X[:, 0] + X[:, 1] + distance * rng.normal(size=500)
    return X


def last_bit_copy(rng: np.random.Generator) -> Array:
    X = rng.normal(size=(300, 5))
    X[:, 4] = np.where(rng.random(300) < 0.5, X[:, 0], np.nextafter(X[:, 0], np.inf))
    return X


def constant_column(rng: np.random.Generator) -> Array:
    n = 2_500
    return np.c_[np.arange(n) % 7, np.ones(n), rng.normal(size=n), np.full(n, 0.1)]


def clock(rng: np.random.Generator, unit: float) -> Array:
    return np.c_[(1.7e9 + np.arange(200)) * unit, rng.normal(size=200)]


def weighted(rng: np.random.Generator, scale: float = 1.0) -> tuple[Array, Array]:
    return rng.normal(size=(400, 5)) * [1, 1, 1, 1, scale], 10.0 ** rng.uniform(-6, 6, 400)


def dummies(rng: np.random.Generator) -> Array:
    levels = rng.integers(4, size=(600, 2))
    return np.c_[np.eye(4)[levels[:, 0]], np.eye(4)[levels[:, 1]], rng.normal(size=600)]


def duplicates(rng: np.random.Generator) -> Array:
    X = rng.integers(3, size=(60, 4)).astype(float)
    return np.repeat(np.c_[X, X[:, 0]], 10, axis=0)


def log_of_traffic(rng: np.random.Generator) -> Array:
    # Counts of all sizes, a sum of two, rates, one minus a rate, dummies, and columns that are always 0.
    counts = np.floor(10 ** rng.uniform(0, [1, 2, 3, 6, 8], size=(1_000, 5)) - 1)
    rates = rng.random((1_000, 6)).round(2)
    kinds = np.eye(3)[rng.integers(3, size=1_000)]
    return np.c_[counts, counts[:, 0] + counts[:, 1], rates, 1 - rates[:, 0], kinds, np.zeros((1_000, 2))]


def words(rng: np.random.Generator) -> Any:
    return sp.random_array((400, 600), density=0.02, rng=rng, format="csr")


def texts(rng: np.random.Generator, n: int, d: int, counts: bool = False) -> Any:
    """Return 60 words a text, common ones and ever rarer ones: counts, or by rarity and of length 1."""
    share = 1.0 / np.arange(1, d + 1)
    drawn = rng.choice(d, size=60 * n, p=share / share.sum())
    X = sp.csr_array((np.ones(60 * n), (np.repeat(np.arange(n), 60), drawn)), shape=(n, d))
    X.sum_duplicates()
    if not counts:
        X.data *= np.log((n + 1.0) / (1.0 + np.bincount(X.indices, minlength=d)))[X.indices] + 1.0
        X.data /= np.repeat(np.sqrt(np.asarray(X.power(2).sum(axis=1))), np.diff(X.indptr))
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


def one_hot(rng: np.random.Generator, n: int, levels: tuple[int, ...]) -> Any:
    starts = np.cumsum((0, *levels[:-1]))
    places = (np.stack([rng.integers(count, size=n) for count in levels], axis=1) + starts).astype(np.int32)
    rows = np.arange(0, places.size + 1, len(levels), dtype=np.int32)
    return sp.csr_array((np.ones(places.size), places.ravel(), rows), shape=(n, sum(levels)))


TWO = (1.0, 1.0)
FAMILIES = {
    "30 classes": Family(normal(900, 10), shares=(1.0,) * 30, tasks=(CLASSES,)),
    "ever rarer classes": Family(normal(1_000, 8), shares=EVER_RARER, tasks=(CLASSES,)),
    "ever rarer classes, log of traffic": Family(log_of_traffic, shares=EVER_RARER),
    "99 to 1": Family(normal(1_000, 20), shares=(0.99, 0.01), tasks=(CLASSES,)),
    "one row of a class": Family(normal(300, 5), shares=(1.0, 1e-9), tasks=(CLASSES,)),
    "one row of each of 40 classes": Family(normal(40, 5), shares=(1.0,) * 40, tasks=(CLASSES,)),
    "collinear to 1e-8": Family(lambda rng: collinear(rng, 1e-8), TWO),
    "collinear to 1e-14": Family(lambda rng: collinear(rng, 1e-14), TWO),
    "collinear to 1e-8, three classes": Family(lambda rng: collinear(rng, 1e-8), tasks=(CLASSES,)),
    "last-bit copy": Family(last_bit_copy, TWO),
    "constant columns": Family(constant_column, TWO),
    "dummy trap": Family(dummies),
    "duplicates": Family(duplicates),
    "Unix seconds": Family(lambda rng: clock(rng, 1.0), TWO),
    "Unix milliseconds": Family(lambda rng: clock(rng, 1e3), TWO),
    "offset 2**30": Family(normal(300, 4, offset=2.0**30)),
    "offset 2**40": Family(normal(300, 4, offset=2.0**40)),
    "scales 1 to 1e12, n = d": Family(normal(100, 100, np.logspace(0, 12, 100)), TWO),
    "scales 1e-6 to 1e6": Family(normal(800, 25, np.logspace(-6, 6, 25))),
    "scales 1e-6 to 1e6, n = d": Family(normal(300, 300, np.logspace(-6, 6, 300))),
    "scales 1e-50 to 1e50": Family(normal(200, 20, np.logspace(-50, 50, 20))),
    "scales 1e-50 to 1e50, n < d": Family(normal(20, 30, np.logspace(-50, 50, 30)), TWO),
    "weights over 12 decades": Family(weighted),
    "weights over 12 decades, scale 1e12": Family(lambda rng: weighted(rng, 1e12)),
    "n = d": Family(normal(200, 200), TWO),
    "wide": Family(normal(300, 2_000), TWO),
    "wide, four classes": Family(normal(300, 2_000), (1.0,) * 4, tasks=(CLASSES,)),
    "separable": Family(normal(400, 5), TWO, noise=0.0),
    "separable, three classes": Family(normal(400, 5), noise=0.0, tasks=(CLASSES,)),
    "single precision": Family(lambda rng: normal(500, 10)(rng).astype(np.float32)),
    "single precision, offset": Family(lambda rng: normal(500, 5, offset=1e4)(rng).astype(np.float32)),
    "sparse": Family(words),
    "texts": Family(lambda rng: texts(rng, 1_000, 5_000)),
    "word counts": Family(lambda rng: texts(rng, 3_000, 500, counts=True), TWO),
    "categories as columns": Family(lambda rng: one_hot(rng, 2_000, (100, 200, 200)), TWO),
    "categories as columns, n < d": Family(lambda rng: one_hot(rng, 1_000, (500, 500, 1_000)), TWO),
    "one row": Family(normal(1, 2), tasks=(NUMBERS,)),
    "two rows": Family(normal(2, 1), TWO),
    "three rows": Family(normal(3, 2)),
    "five rows": Family(normal(5, 2), TWO),
    "one column": Family(normal(500, 1), TWO),
    "only zeros": Family(lambda rng: np.zeros((50, 2)), TWO),
}


def make(name: str, task: str) -> Table:
    """Return the table of a family: the same one every time."""
    family = FAMILIES[name]
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    made = family.columns(rng)
    X, weight = made if isinstance(made, tuple) else (made, None)
    Z = np.asarray(X.todense() if sp.issparse(X) else X, dtype=np.float64)
    Z = (Z - Z.mean(axis=0)) / np.where(np.ptp(Z, axis=0) > 0, Z.std(axis=0), 1.0)
    n, k = len(Z), len(family.shares) if task == CLASSES else 1
    signal = Z @ rng.normal(size=(Z.shape[1], k)) / np.sqrt(Z.shape[1]) * 2
    if task == NUMBERS:
        return Table(X, signal[:, 0] + family.noise * rng.normal(size=n), weight)
    y = (signal + family.noise * rng.gumbel(size=(n, k)) + np.log(family.shares)).argmax(axis=1)
    for absent in np.setdiff1d(np.arange(k), y):
        y[np.flatnonzero(y == np.bincount(y).argmax())[0]] = absent  # a row of the largest class
    return Table(X, y, weight)
