"""Least squares for many squared penalties from one factorisation.

With the eigenvectors V and eigenvalues e of the second-moment matrix A (or, for wide tables, of the row
products K),

    w(l2) = V ((V'c) / (e + l2))        or        w(l2) = B' V ((V't) / (e + l2)),

so every further penalty costs a product, not a factorisation. This is what tuning a ridge regression uses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.data.blocks import Blocks
from sixfold.risk.problem import Problem
from sixfold.solvers.least_squares.moments import Moments, block_moments
from sixfold.solvers.least_squares.row_space import RowSpace

Array = NDArray[Any]


def ridge_path(
    problem: Problem, blocks: Blocks, penalties: Sequence[float], budget: Budget
) -> Iterator[tuple[Array, Array]]:
    """Return w and b for each l2 > 0 in turn; ``problem`` says whether there is an intercept."""
    if blocks.n_columns >= blocks.n_rows:
        rows = RowSpace.of(problem, blocks, budget)
        values, vectors = np.linalg.eigh(rows.K)
        rotated = vectors.T @ rows.target
        for l2 in penalties:
            w = rows.weights(vectors @ (rotated / (values[:, None] + l2)))
            yield w, rows.intercept(w)
        return
    moments = blocks.reduce(lambda block: block_moments(block, budget.flag), Moments.__add__)
    A, c, _ = moments.second(problem.fit_intercept)
    values, vectors = np.linalg.eigh(A)
    rotated = vectors.T @ c
    mean_x, mean_y = moments.mean[: moments.n_columns], moments.mean[moments.n_columns :]
    for l2 in penalties:
        w = vectors @ (rotated / (values[:, None] + l2))
        yield w, (mean_y - mean_x @ w if problem.fit_intercept else np.zeros_like(mean_y))
