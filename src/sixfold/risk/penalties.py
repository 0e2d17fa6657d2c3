"""Penalties on the weights w (never on the intercept).

With rho = ``l1_ratio`` there is one formula, of which the others are special cases:

    penalty(w)   = rho |w|_1 + (1 - rho) |w|^2 / 2
    prox_t(v)    = sign(v) max(0, |v| - t rho) / (1 + t (1 - rho))
    conjugate(v) = sum_j max(0, |v_j| - rho)^2 / (2 (1 - rho))
                   for rho = 1: 0 where all |v_j| <= 1, else infinite

========== =====  ================
name       rho    penalty
========== =====  ================
l2         0      |w|^2 / 2
l1         1      |w|_1
elasticnet given  the formula
none       --     0
========== =====  ================

``positive=True`` adds the constraint w >= 0: negative entries then cost nothing in the conjugate,
and the prox clips at zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.errors import InputError, check_option

Array = NDArray[Any]


@dataclass(frozen=True)
class Penalty:
    """rho |w|_1 + (1 - rho) |w|^2 / 2, or nothing where ``l1_ratio`` is None."""

    name: str | None
    l1_ratio: float | None
    positive: bool = False

    @property
    def l1(self) -> float:
        """The factor of the absolute values."""
        return self.l1_ratio or 0.0

    @property
    def l2(self) -> float:
        """The factor of half the squares."""
        return 0.0 if self.l1_ratio is None else 1.0 - self.l1_ratio

    @property
    def quadratic(self) -> bool:
        """Whether it is quadratic and without constraint, so that a linear system solves it."""
        return self.l1 == 0 and not self.positive

    def value(self, w: Array) -> float:
        """Return the penalty of the weights."""
        if self.positive and np.any(w < 0):
            return np.inf
        return float(self.l1 * np.abs(w).sum() + 0.5 * self.l2 * np.square(w).sum())

    def subgradient(self, w: Array) -> Array:
        """Return rho sign(w) + (1 - rho) w, with sign(0) = 0."""
        return self.l1 * np.sign(w) + self.l2 * w

    def prox(self, v: Array, step: float) -> Array:
        """Return argmin_w penalty(w) + |w - v|^2 / (2 step)."""
        shrunk = np.maximum((v if self.positive else np.abs(v)) - step * self.l1, 0.0)
        if not self.positive:
            shrunk = np.copysign(shrunk, v)
        return shrunk / (1.0 + step * self.l2)

    def conjugate(self, v: Array) -> float:
        """Return sup_w (v.w - penalty(w)), infinite outside the domain."""
        excess = self.excess(v)
        if self.l2 > 0:
            return float(np.square(excess).sum() / (2.0 * self.l2))
        return 0.0 if np.all(excess <= 1e-12 * max(self.l1, 1e-300)) else np.inf

    def fenchel_young(self, w: Array, v: Array) -> float:
        """Return value(w) + conjugate(v) - w.v: never negative, zero where v is a slope at w.

        With z the maximiser behind the conjugate this is

            (1 - rho)/2 |w - z|^2  +  rho |w|_1 - w.(v - (1 - rho) z),

        two terms that are never negative, so nothing cancels. Infinite where the conjugate is.
        """
        if self.l2 == 0:
            slack = self.l1 * np.abs(w) - w * v
            return np.inf if self.conjugate(v) == np.inf else float(np.maximum(slack, 0.0).sum())
        z = np.copysign(self.excess(v), v) / self.l2
        apart = float(np.square(w - z).sum())
        if apart == np.inf:
            return np.inf
        slack = self.l1 * np.abs(w) - w * (v - self.l2 * z)
        return 0.5 * self.l2 * apart + float(np.maximum(slack, 0.0).sum())

    def excess(self, v: Array) -> Array:
        """Return by how much each entry of v exceeds the slope of the absolute values."""
        return np.maximum((v if self.positive else np.abs(v)) - self.l1, 0.0)

    def feasible_fraction(self, v: Array) -> float:
        """Return the largest t in [0, 1] for which the conjugate at t v is finite."""
        if self.l2 > 0 or v.size == 0:
            return 1.0
        largest = float(np.max(v if self.positive else np.abs(v)))
        if largest <= self.l1:
            return 1.0
        return self.l1 / largest


PENALTIES = (None, "l2", "l1", "elasticnet")


def make_penalty(name: str | None, l1_ratio: float = 0.5, positive: bool = False) -> Penalty:
    """Return the penalty of that name; ``l1_ratio`` counts for "elasticnet" only.

    >>> make_penalty("elasticnet", 0.5).value(np.array([1.0, -2.0]))
    2.75
    """
    check_option("penalty", name, PENALTIES)
    if name == "elasticnet":
        if not (isinstance(l1_ratio, Real) and 0.0 <= l1_ratio <= 1.0):
            raise InputError(
                f"l1_ratio={l1_ratio!r} is outside 0 to 1. 0 is the l2 penalty, 1 the l1 penalty."
            )
        return Penalty(name, float(l1_ratio), positive)
    return Penalty(name, {None: None, "l2": 0.0, "l1": 1.0}[name], positive)
