"""Sums over the rows about their mean m, plain or in twice the precision, and how far they are off.

s = (x - m).w + (b + m.w)    off by  (d + 8) U (|x - m|.|w| + |b + m.w|),    the last bracket exactly
sum_i G_i (x_i - m)          off by  (n + 16) U |G / q| |x - m|,             |v| = sqrt(sum_i q_i v_i^2)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.verify.doubled import dots, products, total
from sixfold.verify.linear.claim import U

Array = NDArray[Any]

ENTRIES = 1 << 22  # of X that are copied at a time


class Sums:
    """Sums over the rows about their mean m, plain or in twice the precision, and how far they are off."""

    def __init__(self, X: Any, q: Array, doubled: bool, replaced: Iterable[int] = ()) -> None:
        self.replaced = np.array(list(replaced), dtype=int)  # columns, by what others leave of them
        self.X, self.q, self.doubled = X, q, doubled
        self.sparse = sp.issparse(X)
        n, d = X.shape
        self.mean = np.zeros(d)
        if not self.sparse:
            self.mean = X[0] + sum((q[part] @ (X[part] - X[0]) for part in row_parts(X)), np.zeros(d))
        squares = np.zeros(d)
        for part, Z in self.parts():
            squares += np.asarray(Z.multiply(Z).T @ q[part]) if self.sparse else q[part] @ Z**2
        self.lengths = np.sqrt(squares) * (1.0 + 1e-9)
        self.depth = (n + 16) * U

    def weighted_lengths(self, weights: Array) -> Array:
        """Return sqrt(sum_i weights_ik (x_ij - m_j)^2)."""
        squares = np.zeros((self.mean.size, weights.shape[1]))
        for part, Z in self.parts():
            squares += np.asarray((Z.multiply(Z) if self.sparse else Z**2).T @ weights[part])
        return np.sqrt(squares) * (1.0 + 1e-9)

    def parts(self) -> Iterator[tuple[slice, Any]]:
        """Go through x - m."""
        return (
            (part, self.X[part] if self.sparse else self.X[part] - self.mean) for part in row_parts(self.X)
        )

    def _dense(self) -> Iterator[tuple[slice, Array]]:
        for part in row_parts(self.X, ENTRIES >> 6):
            yield part, self.X[part].toarray() if self.sparse else self.X[part]

    def scores(self, w: Array, b: Array, origin: Array) -> tuple[Array, Array]:
        """Return w.x + b - origin, and how far each may be off."""
        (n, d), scores = self.X.shape, w.shape[1]
        c = np.array([_exactly(self.mean, w[:, k], b[k], -origin[k]) for k in range(scores)])
        score, size = np.empty((n, scores)), np.empty((n, scores))
        for part, Z in self.parts():
            score[part] = np.asarray(Z @ w) + c
            size[part] = np.asarray(abs(Z) @ np.abs(w)) + np.abs(c)
        if not self.doubled:
            return score, (d + 8) * U * size
        for part, X in self._dense():
            for k in range(scores):
                score[part, k] = dots(X, w[:, k], np.array(b[k]), np.array(-origin[k]))
        offset = np.abs(self.mean) @ np.abs(w) + np.abs(b) + np.abs(origin)
        return score, 2 * U * np.abs(score) + 64 * d * U**2 * (size + offset)

    def slopes(self, G: Array, balanced: bool) -> tuple[Array, Array]:
        """Return sum_i G_i (x_i - m), or of x_i where G need not be balanced, and sum_i G_i."""
        ones = np.array([math.fsum(column) for column in G.T])
        slope = np.zeros((self.X.shape[1], G.shape[1]))
        if not self.doubled:
            for part, Z in self.parts():
                slope += np.asarray(Z.T @ G[part])
            return (slope if balanced else slope + np.outer(self.mean, ones)), ones
        about = self.mean if balanced else 0.0 * self.mean
        for k in range(G.shape[1]):
            for j in range(slope.shape[0]):
                x = self.X[:, [j]].toarray()[:, 0] if self.sparse else self.X[:, j]
                p, e = products(x, G[:, k])
                m, f = products(np.broadcast_to(-about[j], x.shape), G[:, k])
                slope[j, k] = total(np.concatenate([p, m]), np.concatenate([e, f]))
        return slope, ones

    def slope_errors(self, G: Array, slope: Array, balanced: bool) -> tuple[Array, Array]:
        """Return how far both may be off."""
        size = np.sqrt((G**2 / self.q[:, None]).sum(axis=0))
        ones = 2 * U * np.abs(np.array([math.fsum(column) for column in G.T]))
        if self.doubled:
            far = np.outer(self.lengths + np.abs(self.mean), size)
            return 4 * U * np.abs(slope) + 64 * self.q.size * U**2 * far, ones
        error = self.depth * np.outer(self.lengths, size)
        return (error if balanced else error + np.outer(np.abs(self.mean), ones)), ones


def _exactly(x: Array, w: Array, *more: float) -> float:
    """Return x.w plus some numbers, rounded once."""
    if not x.any():
        return float(math.fsum(more))
    if not (np.isfinite(w).all() and np.isfinite(more).all()):
        return float(x @ w + sum(more))
    exact = sum((Fraction(float(a)) * Fraction(float(b)) for a, b in zip(x, w, strict=True)), Fraction(0))
    exact += sum((Fraction(float(a)) for a in more), Fraction(0))
    try:
        return float(exact)
    except OverflowError:
        return math.inf


def row_parts(X: Any, entries: int = ENTRIES) -> Iterator[slice]:
    """Go through the rows, so many at a time as may be copied."""
    stored = X.nnz if sp.issparse(X) else X.size
    step = max(entries * X.shape[0] // max(stored, 1), 1)
    return (slice(start, start + step) for start in range(0, X.shape[0], step))
