"""Moves of u after which sum_i q_i u_i z_i is exactly what it has to be, and how far they go.

With e what is left of that sum, u_i moves by a_i z_i.beta, sum_i q_i a_i z_i z_i' beta = e. It stays in the
domain if a_i <= |u_i| and |z_i.beta| <= tau < 1; with sum_i q_i a_i z_i z_i' = R'R

    tau  <=  max_i |R^-T z_i| |R^-T e|,    length = |R^-T e| the root mean square of the moves.

Classes have a_i = diag(p_i) - p_i p_i': a move of p_c is p_c (z.beta_c - their mean).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.verify.linear.claim import U
from sixfold.verify.linear.sums import Sums

Array = NDArray[Any]

CERTAIN = 1e-14  # probabilities below it are 0 where they would have to balance those of other rows
APART = 1e-3  # of columns of length 1, what others leave of them
STILL = 1e-11  # of a direction of length 1: far less than probabilities above CERTAIN move
FARTHEST = 3.0  # that the logarithm of a probability moves at once


class System:
    """The equations of some scores: columns of z = (1, x - m) that u must be orthogonal to."""

    def __init__(self, sums: Sums, kept: Array, ones: bool) -> None:
        self.kept, self.ones = kept, ones
        X = sums.X[:, kept].toarray() if sums.sparse else sums.X[:, kept]
        self.z = np.hstack([np.ones((sums.q.size, 1)), X - sums.mean[kept]]) if ones else X

    def _factor(self, root: Array, still: float) -> None:
        """Set the inverse of R, root = QR; in directions up to ``still`` nothing moves."""
        self.scale = np.linalg.norm(root, axis=0)
        self.scale[self.scale == 0] = 1.0
        if not self.scale.size:
            self.trust = 0.0  # of a move there is none of
            return
        _, roots, vectors = np.linalg.svd(np.linalg.qr(root / self.scale, mode="r"))
        roots = np.append(roots, np.zeros(vectors.shape[0] - roots.size))
        moving = roots > still
        self.inverse, self.null = vectors[moving].T / roots[moving], vectors[~moving]
        self.least = float(roots[moving].min(initial=1.0)) if still > 0 or moving.all() else 0.0
        self.trust = 1.0 - 128 * U * roots.size / self.least if self.least > 0 else 0.0

    def moved(self, u: Array, slope: Array, one: Array) -> Array:
        """Return u after the move that would bring it into balance."""
        if not self.trust > 0:
            return u
        e = self._picked(slope, one)
        beta = (self.inverse @ (self.inverse.T @ e)) / self.scale
        return self._after(u, self.z @ beta.reshape(-1, self.z.shape[1]).T)

    def cost(self, u: Array, slope: Array, error: Array, one: Array, error_one: Array) -> tuple[float, float]:
        """Return tau, and the length of the move."""
        e, off = self._picked(slope, one), self._picked(error, error_one)
        if not e.any() and not off.any():
            return 0.0, 0.0
        if not self.trust > 0:
            return math.inf, math.inf
        left = np.linalg.norm(self.inverse.T @ e) * (1 + 128 * U / self.least)
        left += np.linalg.norm(off) / self.least + np.linalg.norm(self.null @ e) / STILL
        length = float(left) / self.trust
        parts = np.split(self.inverse / self.scale[:, None], self.scale.size // self.z.shape[1])
        sizes = (np.linalg.norm(self.z @ part, axis=1) * self._ratio(u) for part in parts)
        largest = max((float(size.max(initial=0.0)) for size in sizes), default=0.0)
        return largest * length * (1 + 1e-6) / self.trust, length

    def _picked(self, slope: Array, one: Array) -> Array:
        """Return what is left, score by score, in units of the scale."""
        e = np.vstack([one, slope[self.kept]]) if self.ones else slope[self.kept]
        return e.T.ravel()[: self.scale.size] / self.scale

    def _after(self, u: Array, moves: Array) -> Array:
        raise NotImplementedError

    def _ratio(self, u: Array) -> Array | float:
        """Return how large a move is of what it moves, where z.beta is 1."""
        raise NotImplementedError


class ScoreSystem(System):
    """The equations of one score."""

    def __init__(self, sums: Sums, kept: Array, ones: bool, u: Array, name: str) -> None:
        super().__init__(sums, kept, ones)
        size = np.abs(u)
        self.name, self.a = name, size
        if name in ("squared", "absolute"):
            self.a = np.ones_like(u)
        elif name == "logistic":
            self.a = size * (1.0 - size)
        self._factor(np.sqrt(sums.q * self.a)[:, None] * self.z, 0.0)

    def _after(self, u: Array, moves: Array) -> Array:
        return u - self.a[:, None] * moves

    def _ratio(self, u: Array) -> Array | float:
        if self.name in ("squared", "absolute"):
            return 1.0
        size = np.abs(u[:, 0])
        return np.divide(self.a, size, out=np.where(self.a > 0, np.inf, 0.0), where=size > 0)


class ClassSystem(System):
    """The equations of all classes but the last, whose slope follows.

    Where classes are certain of some rows nothing moves in some directions, and nothing is left there.
    """

    def __init__(self, sums: Sums, kept: Array, ones: bool, u: Array, own: Array) -> None:
        super().__init__(sums, kept, ones)
        q, z, classes = sums.q, self.z, u.shape[1]
        p = np.maximum(u + own, 0.0)
        self.own = own
        root = np.sqrt(q)[:, None, None] * np.sqrt(p)[:, :, None] * (np.eye(classes) - p[:, None, :])
        root = (root[:, :, :-1, None] * z[:, None, None, :]).reshape(q.size * classes, -1)
        # Only where columns are far from depending on each other is it the classes that stand still.
        some = np.sqrt(q * (p.max(axis=1) < 1.0))[:, None] * z
        lengths = np.linalg.norm(some, axis=0)
        ends = np.linalg.svd(some / np.where(lengths > 0, lengths, 1.0), compute_uv=False)
        apart = bool(lengths.all()) and ends.min(initial=1.0) > APART
        self._factor(root, STILL if apart else 0.0)

    def _after(self, u: Array, moves: Array) -> Array:
        moves = np.column_stack([moves, np.zeros(u.shape[0])])
        p = np.where(self.own, 1.0 + u, u) * np.exp(-np.clip(moves, -FARTHEST, FARTHEST))
        p /= p.sum(axis=1, keepdims=True)
        others = np.where(self.own | (p < CERTAIN), 0.0, p)
        return others - self.own * others.sum(axis=1, keepdims=True)

    def _ratio(self, u: Array) -> Array | float:
        return 2.0
