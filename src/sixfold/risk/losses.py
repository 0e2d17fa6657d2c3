"""Losses: how wrong a score s = w.x + b is for a target y.

=============  ==========================  ==========================  =================
name           value                       gradient in s               labels y
=============  ==========================  ==========================  =================
squared        (s - y)^2 / 2               s - y                       real
absolute       |s - y|                     sign(s - y)                 real
cubed          |s - y|^3 / 3               (s - y) |s - y|             real
logistic       log(1 + exp(-y s))          -y / (1 + exp(y s))         -1, +1
hinge          max(0, 1 - y s)             -y where y s < 1            -1, +1
squared hinge  max(0, 1 - y s)^2 / 2       -y max(0, 1 - y s)          -1, +1
perceptron     max(0, -y s)                -y where y s < 0            -1, +1
softmax        log(sum_c exp(s_c)) - s_y   softmax(s)_c - [c = y]      0 ... classes - 1
zero one       1 where y s <= 0            (none: reporting only)      -1, +1
=============  ==========================  ==========================  =================

The powers carry 1/p so that the gradient of the squared loss is the plain residual, which makes
the stochastic update w <- w + eta (y - s) x of the textbooks exact.

*At a kink* the gradient is 0: absolute at s = y, hinge at y s = 1, perceptron at y s = 0.

The conjugate is l*(u) = sup_s (u s - l(s)), infinite outside ``domain``; it turns a gradient into
a lower bound on the whole problem (see :mod:`sixfold.risk.problem`). ``prox(v, t)`` is argmin_s
l(s) + (s - v)^2 / (2 t).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Loss(ABC):
    """One loss. All methods take and return arrays, one entry a row.

    A loss on classes (softmax) takes one row of scores a row, and its class index as y.

    Only ``value`` is there for every loss. The others are there where the mathematics has them;
    solvers name the ones they need, and a pairing that lacks one is refused with its name.

    Attributes
    ----------
    name : str
        Its name in :data:`LOSSES`.
    labels : {"real", "sign", "class"}
        What the targets are.
    smooth : bool
        Whether the gradient is continuous.
    curvature_bound : float
        The largest curvature; infinite where there is none.
    gradient(score, y)
        The derivative in the score; a subgradient at a kink, by the convention above.
    curvature(score, y)
        The second derivative in the score (zero on the pieces of a piecewise linear loss).
    conjugate(u, y)
        sup_s (u s - value(s, y)), infinite outside the domain.
    domain(y)
        The ends of the interval of u on which the conjugate is finite.
    prox(v, step, y)
        argmin_s value(s, y) + (s - v)^2 / (2 step).
    """

    name: ClassVar[str]
    labels: ClassVar[Literal["real", "sign", "class"]]
    smooth: ClassVar[bool] = True
    curvature_bound: ClassVar[float] = np.inf

    gradient: Callable[[Array, Array], Array]
    curvature: Callable[[Array, Array], Array]
    conjugate: Callable[[Array, Array], Array]
    domain: Callable[[Array], tuple[Array, Array]]
    prox: Callable[[Array, float, Array], Array]

    @abstractmethod
    def value(self, score: Array, y: Array) -> Array:
        """Return the loss of each row."""

    def fenchel_young(self, score: Array, u: Array, y: Array) -> Array:
        """Return value(s) + conjugate(u) - s u >= 0, which is zero for the gradient u at s."""
        return np.maximum(self.value(score, y) + self.conjugate(u, y) - score * u, 0.0)


def _hair(u: Array) -> float:
    # How far beyond the ends of a domain rounding may put a point that belongs inside.
    return 4096.0 * float(np.finfo(u.dtype).eps)


def _outside(u: Array, low: Array | float, high: Array | float) -> NDArray[np.bool_]:
    hair = _hair(u)
    return (u < low - hair) | (u > high + hair)


# -- real targets: |r|^p / p of the residual r = s - y ----------------------------------------


class _PowerLoss(Loss):
    """|r|^p / p; its conjugate is u y + |u|^q / q with 1/p + 1/q = 1."""

    labels = "real"

    def domain(self, y: Array) -> tuple[Array, Array]:
        return np.full(y.shape, -np.inf), np.full(y.shape, np.inf)

    def fenchel_young(self, score: Array, u: Array, y: Array) -> Array:
        # Only the residual counts; with large targets u y and u s would cancel.
        return super().fenchel_young(score - y, u, np.zeros_like(y))


class SquaredLoss(_PowerLoss):
    """Half the squared residual: the loss of linear regression."""

    name = "squared"
    curvature_bound = 1.0

    def value(self, score: Array, y: Array) -> Array:
        return 0.5 * (score - y) ** 2

    def gradient(self, score: Array, y: Array) -> Array:
        return score - y

    def curvature(self, score: Array, y: Array) -> Array:
        return np.ones_like(score)

    def conjugate(self, u: Array, y: Array) -> Array:
        return u * y + 0.5 * u**2

    def fenchel_young(self, score: Array, u: Array, y: Array) -> Array:
        return 0.5 * (score - y - u) ** 2  # the same number without its cancellation

    def prox(self, v: Array, step: float, y: Array) -> Array:
        return (v + step * y) / (1.0 + step)


class AbsoluteLoss(_PowerLoss):
    """The absolute residual: its minimiser passes through the median, whatever the outliers."""

    name = "absolute"
    smooth = False

    def value(self, score: Array, y: Array) -> Array:
        return np.abs(score - y)

    def gradient(self, score: Array, y: Array) -> Array:
        return np.sign(score - y)

    def curvature(self, score: Array, y: Array) -> Array:
        return np.zeros_like(score)

    def conjugate(self, u: Array, y: Array) -> Array:
        return np.where(_outside(u, *self.domain(y)), np.inf, u * y)

    def domain(self, y: Array) -> tuple[Array, Array]:
        return np.full(y.shape, -1.0), np.full(y.shape, 1.0)

    def prox(self, v: Array, step: float, y: Array) -> Array:
        return v - np.clip(v - y, -step, step)


class CubedLoss(_PowerLoss):
    """A third of the cubed absolute residual: large errors cost more than with the square."""

    name = "cubed"

    def value(self, score: Array, y: Array) -> Array:
        return np.abs(score - y) ** 3 / 3.0

    def gradient(self, score: Array, y: Array) -> Array:
        residual = score - y
        return residual * np.abs(residual)

    def curvature(self, score: Array, y: Array) -> Array:
        return 2.0 * np.abs(score - y)

    def conjugate(self, u: Array, y: Array) -> Array:
        return u * y + np.abs(u) ** 1.5 / 1.5

    def prox(self, v: Array, step: float, y: Array) -> Array:
        # The root of step * r |r| + r = v - y, written without cancellation.
        target = v - y
        return y + 2.0 * target / (1.0 + np.sqrt(1.0 + 4.0 * step * np.abs(target)))


# -- labels -1 and +1: functions of the margin y s --------------------------------------------


class _MarginLoss(Loss):
    """A loss that depends on the margin m = y s only: phi(m)."""

    labels = "sign"
    lowest_slope: ClassVar[float] = -1.0  # phi' runs from here up to 0

    def domain(self, y: Array) -> tuple[Array, Array]:
        return np.where(y > 0, self.lowest_slope, 0.0), np.where(y > 0, 0.0, -self.lowest_slope)


class LogisticLoss(_MarginLoss):
    """The negative log-likelihood of logistic regression."""

    name = "logistic"
    curvature_bound = 0.25

    def value(self, score: Array, y: Array) -> Array:
        return np.logaddexp(0.0, -y * score)

    def gradient(self, score: Array, y: Array) -> Array:
        return -y * _sigmoid(-y * score)

    def curvature(self, score: Array, y: Array) -> Array:
        return _sigmoid(score) * _sigmoid(-score)

    def conjugate(self, u: Array, y: Array) -> Array:
        share = -u * y
        outside, share = _outside(share, 0.0, 1.0), np.clip(share, 0.0, 1.0)
        return np.where(outside, np.inf, _times_log(share) + _times_log(1.0 - share))

    def prox(self, v: Array, step: float, y: Array) -> Array:
        # In the margin m the condition is m - step sigmoid(-m) = y v, whose left-hand side is
        # convex below 0 and concave above: Newton's steps from 0 never overshoot, and even
        # step = 1e8 takes but 22 of them.
        rounding = 2.0 * np.finfo(v.dtype).eps
        target, margin = y * v, np.zeros_like(v)
        for _ in range(100):
            pull = step * _sigmoid(-margin)
            slope = 1.0 + pull * _sigmoid(margin)
            excess = margin - pull - target
            margin = margin - excess / slope
            size = np.abs(margin) * slope + pull + np.abs(target)
            if np.all(np.abs(excess) <= rounding * size):
                break
        return y * margin


class HingeLoss(_MarginLoss):
    """Zero beyond the margin 1, linear before it: the loss of support vector machines."""

    name = "hinge"
    smooth = False

    def value(self, score: Array, y: Array) -> Array:
        return np.maximum(0.0, 1.0 - y * score)

    def gradient(self, score: Array, y: Array) -> Array:
        return np.where(y * score < 1.0, -y, 0.0 * y)

    def curvature(self, score: Array, y: Array) -> Array:
        return np.zeros_like(score)

    def conjugate(self, u: Array, y: Array) -> Array:
        return np.where(_outside(u, *self.domain(y)), np.inf, u * y)

    def prox(self, v: Array, step: float, y: Array) -> Array:
        return v + y * np.clip(1.0 - y * v, 0.0, step)


class SquaredHingeLoss(_MarginLoss):
    """Half the square of the hinge: smooth, and large violations cost more."""

    name = "squared_hinge"
    curvature_bound = 1.0
    lowest_slope = -np.inf

    def value(self, score: Array, y: Array) -> Array:
        return 0.5 * np.maximum(0.0, 1.0 - y * score) ** 2

    def gradient(self, score: Array, y: Array) -> Array:
        return -y * np.maximum(0.0, 1.0 - y * score)

    def curvature(self, score: Array, y: Array) -> Array:
        return (y * score < 1.0).astype(score.dtype)

    def conjugate(self, u: Array, y: Array) -> Array:
        return np.where(_outside(u, *self.domain(y)), np.inf, u * y + 0.5 * u**2)

    def prox(self, v: Array, step: float, y: Array) -> Array:
        return v + y * step / (1.0 + step) * np.maximum(0.0, 1.0 - y * v)


class PerceptronLoss(_MarginLoss):
    """How far on the wrong side: stochastic steps on it are the perceptron's."""

    name = "perceptron"
    smooth = False

    def value(self, score: Array, y: Array) -> Array:
        return np.maximum(0.0, -y * score)

    def gradient(self, score: Array, y: Array) -> Array:
        return np.where(y * score < 0.0, -y, 0.0 * y)

    def curvature(self, score: Array, y: Array) -> Array:
        return np.zeros_like(score)

    def conjugate(self, u: Array, y: Array) -> Array:
        return np.where(_outside(u, *self.domain(y)), np.inf, 0.0 * u)

    def prox(self, v: Array, step: float, y: Array) -> Array:
        return v + y * np.clip(-y * v, 0.0, step)


# -- classes: one score a class ---------------------------------------------------------------


class SoftmaxLoss(Loss):
    """Cross-entropy of the softmax: scores have one column a class, y is the class index.

    The largest score is subtracted before exponentiating, so nothing overflows. ``conjugate``
    takes the whole vector u = p - onehot(y) and returns the negative entropy of p, infinite unless
    p is a distribution; ``fenchel_young`` is then the Kullback-Leibler divergence of p from
    softmax(s).
    """

    name = "softmax"
    labels = "class"
    curvature_bound = 0.5

    def value(self, score: Array, y: Array) -> Array:
        rest, top = _log_sum(score)
        return (rest + (top - np.take_along_axis(score, _index(y), axis=1)))[:, 0]

    def gradient(self, score: Array, y: Array) -> Array:
        # p_y - 1 is minus the sum of the others, which keeps its digits when p_y is nearly 1.
        u, index = softmax(score), _index(y)
        np.put_along_axis(u, index, 0.0, axis=1)
        np.put_along_axis(u, index, -u.sum(axis=1, keepdims=True), axis=1)
        return u

    def curvature(self, score: Array, y: Array) -> Array:
        """Return the diagonal p (1 - p) of the Hessian in the scores."""
        p = softmax(score)
        return p * (1.0 - p)

    def conjugate(self, u: Array, y: Array) -> Array:
        p = _add_one(u, y)
        wrong = (p < -_hair(u)).any(axis=1) | (np.abs(p.sum(axis=1) - 1.0) > _hair(u))
        return np.where(wrong, np.inf, _times_log(np.maximum(p, 0.0)).sum(axis=1))

    def fenchel_young(self, score: Array, u: Array, y: Array) -> Array:
        p = np.maximum(_add_one(u, y), 0.0)
        log_q = log_softmax(score)
        # sum_c p log(p / q) - p + q, of which no term is negative
        terms = p * (np.log(np.where(p > 0, p, 1.0)) - log_q) - p + np.exp(log_q)
        divergence = np.maximum(terms, 0.0).sum(axis=1)
        return np.where(np.isinf(self.conjugate(u, y)), np.inf, divergence)


class ZeroOneLoss(Loss):
    """One for every mistake. For reporting: nothing can be minimised by its gradient."""

    name = "zero_one"
    labels = "sign"
    smooth = False

    def value(self, score: Array, y: Array) -> Array:
        return (y * score <= 0.0).astype(score.dtype)


def softmax(score: Array) -> Array:
    """Return exp(score) with rows divided by their sums, safe for any size of score."""
    p = np.exp(score - score.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return p


def log_softmax(score: Array) -> Array:
    """Return the logarithm of softmax(score), finite for any finite score."""
    rest, top = _log_sum(score)
    return (score - top) - rest


def _sigmoid(s: Array) -> Array:
    small = np.exp(-np.abs(s))
    return np.where(s >= 0, 1.0, small) / (1.0 + small)


def _times_log(p: Array) -> Array:
    return p * np.log(np.where(p > 0, p, 1.0))


def _index(y: Array) -> NDArray[np.intp]:
    return np.asarray(y, dtype=np.intp)[:, None]


def _add_one(u: Array, y: Array) -> Array:
    p, index = u.copy(), _index(y)
    np.put_along_axis(p, index, np.take_along_axis(p, index, axis=1) + 1.0, axis=1)
    return p


def _log_sum(score: Array) -> tuple[Array, Array]:
    """Return (log of the sum of exp(score) over the top one, top score), as columns."""
    index = score.argmax(axis=1)[:, None]
    top = np.take_along_axis(score, index, axis=1)
    others = np.exp(score - top)
    np.put_along_axis(others, index, 0.0, axis=1)
    return np.log1p(others.sum(axis=1, keepdims=True)), top


LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        SquaredLoss(),
        AbsoluteLoss(),
        CubedLoss(),
        LogisticLoss(),
        HingeLoss(),
        SquaredHingeLoss(),
        PerceptronLoss(),
        SoftmaxLoss(),
        ZeroOneLoss(),
    )
}
