"""Moves of u after which sum_i q_i u_i z_i is exactly what it has to be, and how far they go.

With e what is left of that sum, u_i moves by a_i z_i.beta, sum_i q_i a_i z_i z_i' beta = e. It stays in the
domain if a_i <= |u_i| and |z_i.beta| <= tau < 1; with sum_i q_i a_i z_i z_i' = R'R

    tau  <=  max_i |R^-T z_i| |R^-T e|,    length = |R^-T e| the root mean square of the moves.

Classes have a_i = diag(p_i) - p_i p_i': a move of p_c is p_c (z.beta_c - their mean). Where no row is in
doubt between some classes and the others, either have equations of their own, and slopes that sum to 0.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from sixfold.verify.linear.claim import LinearClaim, U
from sixfold.verify.linear.dependence import independent_of
from sixfold.verify.linear.sums import Sums

Array = NDArray[Any]

CERTAIN = 1e-14  # probabilities below it are 0 where they would have to balance those of other rows
APART = 1e-3  # of columns of length 1, what others leave of them
STILL = 1e-11  # of a direction of length 1: far less than probabilities above CERTAIN move
FARTHEST = 3.0  # that the logarithm of a probability moves at once


class System(ABC):
    """The equations of some scores: columns of z = (1, x - m) that u must be orthogonal to."""

    def __init__(self, sums: Sums, kept: Array, claim: LinearClaim) -> None:
        self.kept, self.ones = kept, claim.fit_intercept
        self.scores = np.arange(1)  # those with equations
        self.doubtful = np.arange(0)  # columns that follow from others, but for their last bits
        X = sums.X[:, kept].toarray() if sums.sparse else sums.X[:, kept]
        self.z = np.hstack([np.ones((sums.q.size, 1)), X - sums.mean[kept]]) if self.ones else X
        self.used = np.ones((1, self.z.shape[1]), dtype=bool)  # which equations each of these scores has
        self.free = claim.l1 == claim.l2 == 0.0 and not claim.numbers

    def _factor(self, root: Array, still: float, apart: bool) -> None:
        """Set the inverse of R, root = QR; in directions up to ``still`` nothing moves.

        Whether nothing is left there either is only known where columns are ``apart``.
        """
        self.scale = np.linalg.norm(root, axis=0)
        self.scale[self.scale == 0] = 1.0
        if not self.scale.size:
            self.trust = 0.0  # of a move there is none of
            return
        R = np.linalg.qr(root / self.scale, mode="r")
        _, roots, vectors = la.svd(R, lapack_driver="gesvd")  # the faster driver does not always converge
        roots = np.append(roots, np.zeros(vectors.shape[0] - roots.size))
        moving = roots > still
        self.inverse, self.null = vectors[moving].T / roots[moving], vectors[~moving]
        self.least = float(roots[moving].min(initial=1.0)) if apart or moving.all() else 0.0
        self.trust = 1.0 - 128 * U * roots.size / self.least if self.least > 0 else 0.0

    def moved(self, u: Array, slope: Array, one: Array) -> Array:
        """Return u after the move that would bring it into balance."""
        if not self.scale.size:
            return u
        e = self._picked(slope, one)
        moves = np.zeros_like(u)
        beta = self._by_score(self.inverse @ (self.inverse.T @ e[:, None]))[:, :, 0]
        moves[:, self.scores] = self.z @ beta.T
        return self._after(u, moves)

    def _by_score(self, solved: Array) -> Array:
        """Return what was solved for in units of the columns, 0 for equations that are not used."""
        whole = np.zeros((*self.used.shape, solved.shape[1]))
        whole[self.used] = solved / self.scale[:, None]
        return whole

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
        sizes = (
            np.linalg.norm(self.z @ part, axis=1) * self._ratio(u) for part in self._by_score(self.inverse)
        )
        largest = max((float(size.max(initial=0.0)) for size in sizes), default=0.0)
        return largest * length * (1 + 1e-6) / self.trust, length

    def _picked(self, slope: Array, one: Array) -> Array:
        """Return what is left, score by score, in units of the scale."""
        e = np.vstack([one, slope[self.kept]]) if self.ones else slope[self.kept]
        return np.asarray(e[:, self.scores].T[self.used] / self.scale)

    def _choose(self, claim: LinearClaim, sums: Sums, rows: Array) -> None:
        """Set which equations are used: those of columns that count in the rows with a slope of a score."""
        for place, mine in enumerate(rows.T if self.free else ()):
            here = np.flatnonzero(mine)
            columns = self._independent(claim, sums.q, here, sums.replaced) if here.size else self.kept
            self.used[place, int(self.ones) :] = np.isin(self.kept, columns)

    def _independent(self, claim: LinearClaim, q: Array, rows: Array, replaced: Array) -> Array:
        """Return the columns that count in these rows; of those that were replaced, as few as can be."""
        columns = np.arange(0)
        for more in (np.setdiff1d(self.kept, replaced), *np.intersect1d(self.kept, replaced)):
            found = independent_of(claim, q, rows, np.append(columns, more))
            if found.columns.size > columns.size:
                columns = found.columns if not columns.size else np.append(columns, more)
            self.doubtful = np.union1d(self.doubtful, found.doubtful)
        return columns

    @abstractmethod
    def _after(self, u: Array, moves: Array) -> Array:
        """Return u after moves by z.beta of each row and score."""

    @abstractmethod
    def _ratio(self, u: Array) -> Array | float:
        """Return how large a move is of what it moves, where z.beta is 1."""


class ScoreSystem(System):
    """The equations of one score."""

    def __init__(self, sums: Sums, kept: Array, claim: LinearClaim, u: Array) -> None:
        super().__init__(sums, kept, claim)
        size = np.abs(u)
        self.name, self.a = claim.loss, size
        if self.name in ("squared", "absolute"):
            self.a = np.ones_like(u)
        elif self.name == "logistic":
            self.a = size * np.maximum(1.0 - size, 0.0)
        self._choose(claim, sums, (u != 0)[:, None])
        root = np.sqrt(sums.q * self.a)[:, None] * self.z[:, self.used[0]]
        self._factor(root, 128 * U * root.shape[1], False)

    def _after(self, u: Array, moves: Array) -> Array:
        return u - self.a[:, None] * moves

    def _ratio(self, u: Array) -> Array | float:
        if self.name in ("squared", "absolute"):
            return 1.0
        size = np.abs(u[:, 0])
        return np.divide(self.a, size, out=np.where(self.a > 0, np.inf, 0.0), where=size > 0)


class ClassSystem(System):
    """The equations of classes; of each group one class, whose slope follows, has none.

    Where classes are certain of some rows nothing moves in some directions, and nothing is left there unless
    they are certain of the wrong one.
    """

    def __init__(self, sums: Sums, kept: Array, claim: LinearClaim, u: Array, own: Array) -> None:
        super().__init__(sums, kept, claim)
        self.own, q, p = own, sums.q, np.maximum(u + own, 0.0)
        doubt = (p > 0) & (np.count_nonzero(p, axis=1) > 1)[:, None]
        # What a penalty asks of the slopes sums to 0 over all classes only.
        group = _groups(u != 0) if self.free else np.zeros(p.shape[1], dtype=int)
        first = {one: int(np.argmax(np.where(group == one, q @ (p * (1.0 - p)), -1.0))) for one in group}
        self.scores = np.array([c for c in range(p.shape[1]) if first[group[c]] != c], dtype=int)
        self.used = np.ones((self.scores.size, self.z.shape[1]), dtype=bool)
        self._choose(claim, sums, u[:, self.scores] != 0)
        row, c = np.nonzero(doubt)
        root = (np.arange(p.shape[1]) == c[:, None]) - p[row]
        root *= np.sqrt(q[row] * p[row, c])[:, None]
        root = (root[:, self.scores, None] * self.z[row, None, :])[:, self.used]
        self._factor(root, STILL, self._apart(doubt, q))

    def _apart(self, doubt: Array, q: Array) -> bool:
        """Return whether columns are far from depending on each other: only classes can stand still then."""
        for c, used in zip(self.scores, self.used, strict=True):
            mine = np.sqrt(q * doubt[:, c])[:, None] * self.z[:, used]
            lengths = np.linalg.norm(mine, axis=0)
            if not lengths.any():  # nothing is in doubt
                continue
            if not lengths.all() or np.linalg.svd(mine / lengths, compute_uv=False)[-1] <= APART:
                return False
        return True

    def _after(self, u: Array, moves: Array) -> Array:
        p = np.where(self.own, 1.0 + u, u) * np.exp(-np.clip(moves, -FARTHEST, FARTHEST))
        p /= p.sum(axis=1, keepdims=True)
        others = np.where(self.own | (p < CERTAIN), 0.0, p)
        return others - self.own * others.sum(axis=1, keepdims=True)

    def _ratio(self, u: Array) -> Array | float:
        return 2.0


def _groups(steep: Array) -> Array:
    """Return a number for each class, the same for those that rows with slopes of both link."""
    linked = steep.T.astype(float) @ steep > 0
    group = np.arange(linked.shape[0])
    for _ in group:
        group = np.array([group[mine].min(initial=one) for one, mine in zip(group, linked, strict=True)])
    return group
