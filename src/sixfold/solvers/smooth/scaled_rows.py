"""The rows of a table in units of their own: every column centred and of mean square 1.

    z_ij = (x_ij - mean_j) / scale_j,      scale_j^2 = sum_i q_i (x_ij - mean_j)^2

Without intercept, and where it would fill a sparse table, nothing is subtracted. A model (w, b) has the
same scores as theta = (scale w, b + mean.w) has here, and an l2 penalty on w is one of l2 / scale_j^2 on
theta_j. So units and offsets cost no digits on the way, and only the rounding of w and b themselves is
left.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.data.blocks import Blocks
from sixfold.risk.problem import Problem, normalized_weights
from sixfold.risk.rounding import rounded_model
from sixfold.solvers.linalg import EPS

Array = NDArray[Any]

KEPT_NUMBERS = 1 << 24  # of scaled rows (128 MB); beyond, they are worked out again in every pass
PASS_NUMBERS = 1 << 17  # that are worked out at a time, and stay in the L2 cache


class ScaledRows:
    """All rows of the blocks, centred and scaled.

    Attributes
    ----------
    mean, scale : ndarray of shape (columns,)
    q : ndarray of shape (rows,)
        The weights, of sum 1.
    """

    def __init__(self, problem: Problem, blocks: Blocks) -> None:
        self.blocks, self.fit_intercept = blocks, problem.fit_intercept
        self.q = np.concatenate([normalized_weights(block, blocks) for block in blocks])
        self.mean = np.zeros(blocks.n_columns)
        self.scale = np.ones(blocks.n_columns)
        if problem.fit_intercept and not blocks.sparse:
            for _ in range(2):  # the second time what rounding has left of large means
                self.mean = self.mean + sum(part.T @ self.q[rows] for rows, part in self._parts())
        squares = sum(_squares(part).T @ self.q[rows] for rows, part in self._parts())
        lengths = np.sqrt(np.asarray(squares, dtype=np.float64).ravel())
        if not np.isfinite(lengths).all():
            raise FloatingPointError("the squares of some columns overflow")
        # Of a constant column rounding leaves something that must not be scaled up to 1.
        self.constant = lengths <= 4.0 * EPS * np.abs(self.mean)
        self.scale = np.where(self.constant, 1.0, lengths)

    def _parts(self) -> Iterator[tuple[slice, Any]]:
        step = max(PASS_NUMBERS // max(self.blocks.n_columns, 1), 1)
        for block in self.blocks:
            if self.blocks.sparse:
                yield block.rows, block.X.astype(np.float64) @ sp.diags_array(1.0 / self.scale)
                continue
            for start in range(0, block.X.shape[0], step):
                rows = block.X[start : start + step]
                first = block.start + start
                yield slice(first, first + rows.shape[0]), (rows - self.mean) / self.scale

    @cached_property
    def _kept(self) -> list[tuple[slice, Any]]:
        return list(self._parts())

    def parts(self) -> Iterator[tuple[slice, Any]]:
        """Go through the scaled rows, and where they are among all rows."""
        small = self.blocks.sparse or self.blocks.n_rows * self.blocks.n_columns <= KEPT_NUMBERS
        return iter(self._kept) if small else self._parts()

    def with_ones(self) -> Any:
        """Return all of (z, 1)."""
        parts = [part for _, part in self.parts()]
        one = np.ones((self.q.size, 1))
        if self.blocks.sparse:
            return sp.hstack([sp.vstack(parts), one], format="csr")
        return np.hstack([np.concatenate(parts), one])

    def times(self, theta: Array) -> Array:
        """Return z.theta for every row; the last row of theta is the constant."""
        score = np.empty((self.q.size, theta.shape[1]))
        for rows, part in self.parts():
            score[rows] = part @ theta[:-1]
        return score + theta[-1]

    def transposed_times(self, u: Array) -> Array:
        """Return sum_i u_i (z_i, 1); the last row is 0 without intercept."""
        total = np.zeros((self.mean.size + 1, u.shape[1]))
        for rows, part in self.parts():
            total[:-1] += part.T @ u[rows]
        total[:-1][self.constant] = 0.0
        if self.fit_intercept:
            total[-1] = u.sum(axis=0)
        return total

    def theta(self, w: Array, b: Array) -> Array:
        """Return a model in these units."""
        return np.vstack([w * self.scale[:, None], b + self.mean @ w])

    def model(self, theta: Array) -> tuple[Array, Array]:
        """Return w and b as the type of the data holds them, in float64."""
        w = theta[:-1] / self.scale[:, None]
        if not self.fit_intercept:
            return self.blocks.rounded(w), np.zeros(theta.shape[1])
        return rounded_model(self.blocks, w, theta[-1], self.mean)


def _squares(part: Any) -> Any:
    return part.multiply(part) if sp.issparse(part) else np.square(part)
