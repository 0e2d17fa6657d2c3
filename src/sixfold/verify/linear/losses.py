"""Losses f, their slopes and conjugates f*, with what a row adds to the bound: f(s) + f*(u) - s u >= 0.

Of one score a target f is a function of z = s - y for numbers, and of z = y s for -1 and +1; classes have
f = log sum_c exp(s_c) - s_y, whose u is p - onehot(y).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp, xlogy

from sixfold.verify.linear.balance import ClassSystem, ScoreSystem, System
from sixfold.verify.linear.claim import LinearClaim
from sixfold.verify.linear.sums import Sums

Array = NDArray[Any]


class _Loss(NamedTuple):
    """f as a function of z = s - y for numbers, z = y s for -1 and +1."""

    value: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    conjugate: Callable[[Array], Array]
    domain: tuple[float, float]  # of the conjugate


def _hinge(z: Array) -> Array:
    return np.maximum(1.0 - z, 0.0)


LINE = (-np.inf, np.inf)
REAL = {
    "squared": _Loss(lambda z: z**2 / 2, lambda z: z, lambda a: a**2 / 2, LINE),
    "absolute": _Loss(np.abs, np.sign, np.zeros_like, (-1.0, 1.0)),
    "cubed": _Loss(lambda z: abs(z) ** 3 / 3, lambda z: z * abs(z), lambda a: abs(a) ** 1.5 / 1.5, LINE),
}
SIGN = {
    "logistic": _Loss(
        lambda z: np.logaddexp(0.0, -z),
        lambda z: -expit(-z),
        lambda a: xlogy(-a, -a) + xlogy(1.0 + a, 1.0 + a),
        (-1.0, 0.0),
    ),
    "hinge": _Loss(_hinge, lambda z: -1.0 * (z < 1.0), lambda a: a, (-1.0, 0.0)),
    "squared_hinge": _Loss(
        lambda z: _hinge(z) ** 2 / 2, lambda z: -_hinge(z), lambda a: a + a**2 / 2, (-np.inf, 0.0)
    ),
    "perceptron": _Loss(lambda z: _hinge(1.0 + z), lambda z: -1.0 * (z < 0.0), np.zeros_like, (-1.0, 0.0)),
}


class OneScore:
    """The losses of all rows, one score a target."""

    def __init__(self, name: str, y: Array) -> None:
        self.name, self.y, self.scores, self.real = name, y, y.shape[1], name in REAL
        self.loss = (REAL if self.real else SIGN)[name]
        self.sign = np.ones_like(y) if self.real else y
        low, high = self.loss.domain
        self.low, self.high = np.where(self.sign > 0, low, -high), np.where(self.sign > 0, high, -low)

    def _z(self, score: Array) -> Array:
        return score - self.y if self.real else self.y * score

    def value(self, score: Array) -> Array:
        """Return f(s) of every row."""
        return self.loss.value(self._z(score))

    def slope(self, score: Array) -> Array:
        """Return f'(s)."""
        return self.sign * self.loss.slope(self._z(score))

    def excess(self, score: Array, u: Array) -> Array:
        """Return f(s) + f*(u) - s u."""
        z, a = self._z(score), self.sign * u
        if self.name == "squared":
            return (z - a) ** 2 / 2
        return np.maximum(self.loss.value(z) + self.loss.conjugate(a) - z * a, 0.0)

    def together(self, values: Array) -> Array:
        """Return what belongs to each problem of its own: here a score is one."""
        return values

    def masses(self, G: Array) -> Array:
        """Return what slopes are sums of; the exact dual point is this divided by q."""
        return G

    def split(self, of_scores: Array) -> list[Array]:
        """Return the scores of each problem of its own."""
        return np.split(of_scores, self.scores, axis=1)

    def joined(self, parts: list[Array]) -> Array:
        """Return the scores of all problems side by side."""
        return np.concatenate(parts, axis=1)

    def inside(self, u: Array) -> Array:
        """Return u without slopes of the wrong sign, and made shorter until none is too large."""
        u = np.where(((self.low == 0) & (u < 0)) | ((self.high == 0) & (u > 0)), 0.0, u)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ends = np.where(u > 0, self.high / u, np.where(u < 0, self.low / u, np.inf))
        return np.clip(ends.min(axis=0, initial=1.0) * u, self.low, self.high)

    def without(self, u: Array, some: Array) -> Array:
        """Return u with some slopes 0."""
        return np.where(some, 0.0, u)

    def systems(self, u: Array, sums: Sums, kept: Array, claim: LinearClaim) -> Sequence[System]:
        """Return for each score the equations that u must satisfy exactly."""
        return [ScoreSystem(sums, kept, claim, column) for column in u.T]

    def balanced(self, u: Array, q: Array) -> Array:
        """Return u with sum_i q_i u_i = 0: without its mean, or with the heavier side made as light."""
        if self.real:
            return u - q @ u
        sums = q @ np.maximum(u, 0.0), q @ np.maximum(-u, 0.0)
        up, down = (np.minimum(*sums) / np.where(side > 0, side, 1.0) for side in sums)
        return u * np.where(u > 0, up, down)


class Softmax:
    """log sum_c exp(s_c) - s_y; u = p - onehot(y), and the excess is the divergence of p from softmax(s)."""

    name, real = "softmax", False

    def __init__(self, y: Array, scores: int) -> None:
        self.y, self.scores = y, scores
        self.own = y[:, None] == np.arange(self.scores)
        self.low, self.high = -1.0 * self.own, 1.0 * ~self.own

    def value(self, score: Array) -> Array:
        """Return f(s) of every row."""
        rivals = logsumexp(np.where(self.own, -np.inf, score), axis=1)
        return np.logaddexp(0.0, rivals - score[self.own])[:, None]

    def _log(self, score: Array) -> Array:
        """Return the logarithms of softmax(score)."""
        return (score - score[self.own][:, None]) - self.value(score)

    def slope(self, score: Array) -> Array:
        """Return f'(s)."""
        others = np.where(self.own, 0.0, np.exp(self._log(score)))
        return others - self.own * others.sum(axis=1, keepdims=True)

    def excess(self, score: Array, u: Array) -> Array:
        """Return f(s) + f*(u) - s u."""
        p, log = np.maximum(u + self.own, 0.0), self._log(score)
        return np.maximum(xlogy(p, p) - p * log - p + np.exp(log), 0.0)

    def log_ratio(self, score: Array, u: Array, q: Array) -> float:
        """Return sqrt(sum_i q_i sum_c p_ic log(p_ic / softmax(s_i)_c)^2), rounded up."""
        p = np.maximum(u + self.own, 0.0)
        ratio = np.log(np.where(p > 0, p, 1.0)) - np.where(p > 0, self._log(score), 0.0)
        return math.sqrt(float(q @ (p * ratio**2).sum(axis=1))) * (1 + 1e-6) + 1e-9

    def together(self, values: Array) -> Array:
        """Return what belongs to each problem of its own: here all scores are one."""
        return values.sum(keepdims=True)

    def masses(self, G: Array) -> Array:
        """Return them in units of which a double holds every sum, so that those of a row sum to 0 exactly."""
        top = np.abs(G).max(axis=1, keepdims=True)
        unit = 2.0 ** (np.ceil(np.log2(np.where(top > 0, top, 1.0))) - 46)
        others = np.where(self.own, 0.0, np.round(G / unit))
        return (others - self.own * others.sum(axis=1, keepdims=True)) * unit

    def split(self, of_scores: Array) -> list[Array]:
        """Return the scores of each problem of its own."""
        return [of_scores]

    def joined(self, parts: list[Array]) -> Array:
        """Return the scores of all problems side by side."""
        return parts[0]

    def balanced(self, u: Array, q: Array) -> Array:
        """Return u that gives every class as much as it has rows: what is too much goes where it lacks."""
        p, more = u + self.own, q @ u
        share = np.maximum(more, 0.0) / np.where(more > 0, q @ p, 1.0)
        lack = np.maximum(-more, 0.0)
        taken = p * share
        return u - taken + (np.outer(taken.sum(axis=1), lack / lack.sum()) if lack.any() else 0.0)

    def inside(self, u: Array) -> Array:
        """Return u with p = u + own >= 0, and minus the sum of the others for the class itself."""
        others = np.where(self.own, 0.0, np.maximum(u, 0.0))
        others /= np.maximum(others.sum(axis=1, keepdims=True), 1.0)
        return others - self.own * others.sum(axis=1, keepdims=True)

    def without(self, u: Array, some: Array) -> Array:
        """Return u with some slopes 0, and those of the classes themselves to match."""
        others = np.where(self.own | some, 0.0, u)
        return others - self.own * others.sum(axis=1, keepdims=True)

    def systems(self, u: Array, sums: Sums, kept: Array, claim: LinearClaim) -> Sequence[System]:
        """Return the equations that u must satisfy exactly, of all scores together."""
        return [ClassSystem(sums, kept, claim, u, self.own)]


def constant_model(rows: OneScore | Softmax, q: Array, fit_intercept: bool) -> tuple[float, float]:
    """Return the loss of predicting the mean of numbers, and zero; 1e-30 is for a constant target."""

    def loss(constant: Array) -> float:
        return float((q @ rows.value(np.broadcast_to(constant, (q.size, rows.scores)))).sum())

    at_zero = loss(np.zeros(rows.scores))
    return (loss(q @ rows.y) + 1e-30 * at_zero if rows.real and fit_intercept else at_zero), at_zero
