"""Passes over the rows that solvers of every family make: products, the objective, the spread of columns.

times(X, w)              X w                       in float64, without a float64 copy of a float32 table
transposed_times(X, u)   X' u
objective(...)           R(w, b), by a native loop where the rows are contiguous
constant_model(...)      w = 0 and the mean of real targets: where solvers start
column_spread(...)       the centre and 1 / variance of each column, from a sample of the rows
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.data.blocks import Block, Blocks, squared_entries
from sixfold.risk.problem import Problem, normalized_weights

Array = NDArray[Any]

CHUNK_BYTES = 1 << 20  # of float64, so that a converted chunk stays in the L2 cache
SPREAD_ROWS = 10_000  # rows from which the size of columns is estimated
# The position is the number that native loops know the loss by.
LOSS_CODES = (
    "squared",
    "absolute",
    "cubed",
    "logistic",
    "hinge",
    "squared_hinge",
    "perceptron",
    "softmax",
)


def times(X: Any, w: Array) -> Array:
    """Return X w in float64, without a float64 copy of X."""
    if X.dtype == np.float64 or sp.issparse(X):
        return np.asarray(X @ w)
    score = np.empty((X.shape[0], w.shape[1]))
    for rows in _chunks(X):
        np.matmul(X[rows].astype(np.float64), w, out=score[rows])
    return score


def transposed_times(X: Any, u: Array) -> Array:
    """Return X' u in float64, without a float64 copy of X."""
    if X.dtype == np.float64 or sp.issparse(X):
        return np.asarray(X.T @ u)
    total = np.zeros((X.shape[1], u.shape[1]))
    for rows in _chunks(X):
        total += X[rows].astype(np.float64).T @ u[rows]
    return total


def _chunks(X: Any) -> Iterator[slice]:
    step = max(CHUNK_BYTES // (8 * max(X.shape[1], 1)), 1)
    return (slice(start, start + step) for start in range(0, X.shape[0], step))


def objective(problem: Problem, w: Array, b: Array, blocks: Blocks, budget: Budget) -> float:
    """Return R(w, b); infinite where the model has overflowed."""
    total = problem.penalty_value(w)
    for block in budget.watch(blocks):
        total += _block_loss(problem, w, b, block, budget) / blocks.weight_sum
    return total if math.isfinite(total) else math.inf


def _block_loss(problem: Problem, w: Array, b: Array, block: Block, budget: Budget) -> float:
    """Return sum_i weight_i loss(w.x_i + b, y_i) over a block."""
    weight = block.float64_weight
    if isinstance(block.X, np.ndarray) and block.X.flags.c_contiguous:
        finished, total = core.empirical_loss(
            X=block.X,
            y=np.ascontiguousarray(block.y, dtype=np.float64),
            weight=weight,
            loss=LOSS_CODES.index(problem.loss.name),
            w=np.ascontiguousarray(w.T),
            b=b,
            seconds_left=budget.seconds_left,
            flag=budget.flag,
        )
        budget.check(finished)
        return float(total)
    with np.errstate(all="ignore"):
        value = problem.loss.value(times(block.X, w) + b, problem.targets(block))
        return float(value.sum() if weight is None else (weight @ value).sum())


def constant_model(problem: Problem, blocks: Blocks, scores: int | None = None) -> tuple[Array, Array]:
    """Return the start: no weights, and the mean of real targets as intercept."""
    scores = problem.n_scores(blocks) if scores is None else scores
    b = np.zeros(scores)
    if problem.fit_intercept and problem.loss.labels == "real":
        b = blocks.reduce(
            lambda block: normalized_weights(block, blocks) @ block.y.astype(np.float64), np.add
        )
    return np.zeros((blocks.n_columns, scores)), b


def column_spread(problem: Problem, blocks: Blocks) -> tuple[Array, Array]:
    """Return where to centre each column and the factor of its step, 1 / variance.

    Any centre and any positive factor leave the problem the same, so a sample of the rows is enough. Without
    intercept nothing can be centred, and the mean square stands for the variance. A constant column has
    factor 1.
    """
    every = max(blocks.n_rows // SPREAD_ROWS, 1)
    center, variance = _column_moments(problem, blocks, every)
    if every > 1 and np.any(variance == 0.0):
        center, variance = _column_moments(problem, blocks, 1)  # too rare for the sample
    return center, 1.0 / np.where(variance > 0.0, variance, 1.0)


def _column_moments(problem: Problem, blocks: Blocks, every: int) -> tuple[Array, Array]:
    def sums(block: Block) -> Array:
        X, q = block.X[::every], normalized_weights(block, blocks)[::every]
        return np.vstack([transposed_times(X, q[:, None])[:, 0], np.full(X.shape[1], q.sum())])

    total, mass = blocks.reduce(sums, np.add)
    center = total / np.where(mass > 0.0, mass, 1.0)
    if not problem.fit_intercept:
        center = np.zeros_like(center)

    def squares(block: Block) -> Array:
        X, q = block.X[::every], normalized_weights(block, blocks)[::every]
        if sp.issparse(X):
            # sum q (x - m)^2 = sum over entries q x (x - 2 m) + m^2 sum q
            entries = transposed_times(squared_entries(X), q[:, None])[:, 0]
            return np.asarray(entries - 2.0 * center * (X.T @ q) + center**2 * q.sum())
        deviations = (np.square(X[rows] - center) for rows in _chunks(X))
        return sum(
            (q[rows] @ part for rows, part in zip(_chunks(X), deviations, strict=True)),
            np.zeros(X.shape[1]),
        )

    variance = blocks.reduce(squares, np.add) / np.where(mass > 0.0, mass, 1.0)
    # Below this the column is constant but for rounding.
    return center, np.where(variance > (1e-13 * center) ** 2, variance, 0.0)
