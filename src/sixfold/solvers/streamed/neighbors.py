"""Exact nearest neighbours among rows that stay where they are: the k nearest of each block, merged.

The k nearest rows of all are among the k nearest of each block, and merging by (distance, row number) keeps
the order of ties. What travels are the queries, once to each worker, and k candidates a query with their
targets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.data.blocks import Block, Blocks
from sixfold.geometry.distances import make_distance
from sixfold.solvers.neighbors.choose import make_search

Array = NDArray[Any]

LEAF_SIZE = 30


@dataclass(frozen=True)
class Candidates:
    """The nearest rows of each query so far, the nearest first, with what they answer.

    Attributes
    ----------
    distances, rows : ndarray of shape (queries, some)
        At most k columns; equal distances by row number.
    targets : ndarray of shape (queries, some, targets)
    weights : ndarray of shape (queries, some)
    computed : int
        How many distances were computed.
    """

    distances: Array
    rows: Array
    targets: Array
    weights: Array
    computed: int


def nearest_in_block(
    block: Block, queries: Array, k: int, metric: Any, parameters: Mapping[str, Any]
) -> Candidates:
    """Return the k nearest rows of one block that have a weight above 0, or all of them if they are fewer."""
    kept = np.flatnonzero(block.counts)
    if kept.size == 0:
        none = np.empty((queries.shape[0], 0))
        targets = np.empty((queries.shape[0], 0, block.y.shape[1]))
        return Candidates(none, none.astype(np.int64), targets, none, 0)
    X = block.X if kept.size == block.y.shape[0] else np.ascontiguousarray(block.X[kept])
    # Made for one pass, so that nothing is worth preparing.
    search = make_search(X, make_distance(metric, X, **parameters), "brute", LEAF_SIZE, Budget())
    found = search.nearest(queries, min(k, kept.size), Budget())
    local = kept[found.rows]
    weights = np.ones(local.shape) if block.weight is None else block.weight[local]
    return Candidates(found.distances, local + block.start, block.y[local], weights, found.computed)


def merge(one: Candidates, other: Candidates, k: int) -> Candidates:
    """Return the k nearest of both."""
    distances = np.hstack([one.distances, other.distances])
    rows = np.hstack([one.rows, other.rows])
    order = np.lexsort((rows, distances), axis=1)[:, :k]
    places = np.arange(order.shape[0])[:, None], order
    return Candidates(
        distances[places],
        rows[places],
        np.concatenate([one.targets, other.targets], axis=1)[places],
        np.hstack([one.weights, other.weights])[places],
        one.computed + other.computed,
    )


def nearest_rows(
    blocks: Blocks, queries: Array, k: int, metric: Any, parameters: Mapping[str, Any]
) -> Candidates:
    """Return the k nearest of all rows: one pass."""
    search = partial(nearest_in_block, queries=queries, k=k, metric=metric, parameters=dict(parameters))
    return blocks.reduce(search, partial(merge, k=k))
