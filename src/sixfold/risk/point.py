"""A model: its scores, its losses and its penalty, and how far its objective may be above the computed one.

With |s^ - s| <= delta (:mod:`sixfold.risk.rounding`), where |v| = sqrt(sum_i q_i v_i^2),

    R  <=  R^  +  |loss'| delta + curvature delta^2 / 2  +  rounding of sums

of terms that are never negative, which are pairwise. No slope of a loss with kinks is above 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sixfold.data.blocks import Block, Blocks
from sixfold.risk.rounding import UNDERFLOW, Rows, U, pairwise, sum_rounding

if TYPE_CHECKING:
    from sixfold.risk.problem import Problem

Array = NDArray[Any]

SUMMED_ROWS = 1 << 15  # rows whose losses are worked out at a time


class Point:
    """The scores of a model about a centre, its losses and its penalty."""

    def __init__(self, problem: Problem, w: Array, b: Array, blocks: Blocks, doubled: bool) -> None:
        self.problem, self.w, self.b, self.blocks = problem, w, b, blocks
        self.classes = problem.loss.labels == "class"
        self.q = _stack(blocks, lambda block: normalized_weights(block, blocks))
        y = _stack(blocks, problem.targets)
        self.origin = np.zeros(b.size)
        self.y_size = np.zeros(b.size)
        if problem.loss.labels == "real":
            y = np.asarray(y, dtype=np.float64)
            counted = y if self.q.min() > 0 else y[self.q > 0]
            low, high = counted.min(axis=0), counted.max(axis=0)
            if np.any(np.abs(low + high) > high - low):
                self.origin = 0.5 * low + 0.5 * high
                y = y - self.origin
                self.y_size = self.norm(y)
        self.y = y
        self.rows = Rows(blocks, self.q, doubled)
        self.score = self.rows.scores(w, b, self.origin)
        self.loss = self.sums(lambda rows: problem.loss.value(self.score[rows], self.y[rows]))
        self.penalty = np.array([problem.penalty_value(part) for part in self.parts(w)])
        self._delta: Array | None = None
        self._slopes: Array | None = None

    def parts(self, of_scores: Array) -> list[Array]:
        """Return what belongs to each problem of its own: a score, or those of all classes."""
        if self.classes or of_scores.shape[1] == 1:
            return [of_scores]
        return [of_scores[:, k : k + 1] for k in range(of_scores.shape[1])]

    def together(self, by_score: Array) -> Array:
        """Return the sums over the scores of each problem."""
        return by_score.sum(keepdims=True) if self.classes else by_score

    def sums(self, value: Callable[[slice], Array]) -> Array:
        """Return sum_i q_i value_i for each column of values."""
        n = self.q.size
        found = []
        for start in range(0, n, SUMMED_ROWS):
            rows = slice(start, start + SUMMED_ROWS)
            terms = value(rows)
            found.append(pairwise(self.q[rows, None] * (terms[:, None] if terms.ndim == 1 else terms)))
        return found[0] if len(found) == 1 else np.array([math.fsum(column) for column in np.array(found).T])

    def norm(self, values: Array) -> Array:
        """Return sqrt(sum_i q_i values_i^2) of each column, rounded up."""
        return np.sqrt(self.q @ (values * values)) * (1.0 + (values.shape[0] + 4) * U)

    def slopes(self) -> Array:
        """Return loss'(s)."""
        if self._slopes is None:
            self._slopes = np.asarray(self.problem.loss.gradient(self.score, self.y))
        return self._slopes

    def delta(self) -> Array:
        """Return how far the scores of each column are off, as a root mean square."""
        if self._delta is None:
            size = self.norm(self.score)
            if self.problem.loss.labels == "real":
                size = size + self.norm(self.score - self.y) + self.y_size
            self._delta = self.rows.score_rounding(self.w, self.b, self.origin) + 2.0 * U * size
        return self._delta

    def rounding(self) -> Array:
        """Return how far the objective may be above the computed one."""
        loss, delta = self.problem.loss, self.delta()
        if loss.smooth:
            bend = loss.curvature_bound
            if not math.isfinite(
                bend
            ):  # of the cube: at the largest residual, and beyond by as much as it is off
                least = float(self.q[self.q > 0].min(initial=1.0))
                bend = 2.0 * (
                    float(np.abs(self.score - self.y).max(initial=0.0)) + delta.max() / np.sqrt(least)
                )
            moved = self.norm(self.slopes()) * delta + 0.5 * bend * delta**2
        else:
            moved = delta  # no slope is above 1
        size = self.loss * (sum_rounding(self.q.size) + 8.0 * U) + self.penalty * (self.w.shape[0] + 8) * U
        return self.together(moved) * (1.0 + 1e-9) + size + self._underflow()

    def _underflow(self) -> Array:
        """Return what losses and penalties next to nothing may have lost altogether."""
        some = self.w.any(axis=0)
        if self.problem.loss.labels == "real":
            some = some | (self.score != self.y).any(axis=0)
        return np.where(some.any(keepdims=True) if self.classes else some, UNDERFLOW, 0.0)


def normalized_weights(block: Block, blocks: Blocks) -> Array:
    """Return q for the rows of a block."""
    if block.weight is None:
        return np.full(block.y.shape[0], 1.0 / blocks.weight_sum)
    return np.asarray(block.weight, dtype=np.float64) / blocks.weight_sum


def _stack(blocks: Blocks, function: Callable[[Block], Array]) -> Array:
    parts = list(blocks.map(function))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
