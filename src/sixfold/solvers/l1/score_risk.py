"""The risk as a function of the scores of all rows: value, slopes, second derivatives, and a bound.

    risk(s) = sum_i q_i loss(s_i, y_i)

for scores that share a label: one target, or all classes of a softmax; scores have shape (rows, scores).
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.risk.losses import softmax
from sixfold.risk.problem import BALANCE, Problem
from sixfold.solvers.l1.quadratic_model import Curvature

Array = NDArray[Any]


class ScoreRisk:
    """The risk of one group of scores.

    Attributes
    ----------
    q : ndarray of shape (rows,)
        The normalized weight of each row.
    scale : float
        The risk of the constant model, against which gaps are judged: the mean of numbers, else zero.
    """

    def __init__(self, problem: Problem, y: Array, q: Array, n_scores: int) -> None:
        self.problem, self.loss, self.y, self.q = problem, problem.loss, y, q
        self.n_scores = n_scores
        constant = q @ y if problem.fit_intercept and self.loss.labels == "real" else np.zeros(n_scores)
        self.scale = self.value(np.broadcast_to(constant, (len(q), n_scores)))

    def under(self, problem: Problem) -> ScoreRisk:
        """Return the same risk beside another penalty."""
        other = copy(self)
        other.problem = problem
        return other

    def value(self, score: Array) -> float:
        """Return the risk."""
        return float((self.q @ self.loss.value(score, self.y)).sum())

    def slopes(self, score: Array) -> Array:
        """Return loss'(s_i)."""
        return np.asarray(self.loss.gradient(score, self.y))

    def along(self, u: Array, direction: Array) -> float:
        """Return the slope of the risk in a direction, from the slopes u of the rows."""
        return float((self.q @ (u * direction)).sum())

    def curvature(self, score: Array, damping: float) -> Curvature:
        """Return the second derivatives, damped (see :mod:`sixfold.solvers.l1.quadratic_model`)."""
        weight, bound = self.q[:, None], self.loss.curvature_bound
        if self.loss.labels != "class":
            own = self.loss.curvature(score, self.y)
            if not np.isfinite(bound):  # here, then
                bound = float(own.max(initial=0.0)) or 1.0
            return Curvature(weight * ((1.0 - damping) * own + damping * bound), None)
        p = softmax(score)
        own = (1.0 - damping) * p + damping * bound
        return Curvature(weight * own, np.sqrt(weight * (1.0 - damping)) * p)

    def balanced_slopes(self, score: Array) -> Array:
        """Return the slopes moved to where ``bound`` holds: balanced, and zero on rows that do not count."""
        u = self.slopes(score)
        if self.problem.fit_intercept:
            u = BALANCE[self.loss.labels](u, self.y, self.q)
        u[self.q == 0.0] = 0.0
        return u

    def bound(self, score: Array, u: Array, w: Array, slope: Array) -> float:
        """Return a bound on what weights can still gain, from their slopes downhill -sum_i q_i u_i x_i.

        With t the largest fraction in [0, 1] at which the penalty's conjugate is finite, it is

            sum_i q_i FY_loss(s_i, t u_i) + alpha FY_penalty(w, t slope / alpha).
        """
        alpha, penalty = self.problem.alpha, self.problem.penalty
        v = slope / alpha
        t = penalty.feasible_fraction(v)
        excess = float((self.q @ self.loss.fenchel_young(score, t * u, self.y)).sum())
        return excess + alpha * penalty.fenchel_young(w, t * v)

    def best_shift(self, score: Array, enough: float = 0.0) -> Array:
        """Return what to add to the scores of all rows to lower the risk most, by Newton steps.

        They end where the slope that is left times a shift of 1 is no more than ``enough``, or is rounding.
        With one class only the shift would grow for ever: it ends where that gains nothing.
        """
        shift, least = np.zeros(self.n_scores), 1e-28 * self.scale
        if enough > 0.0:
            least = max(least, 4.0 * enough**2 / self.scale)
        for _ in range(100):
            moved = score + shift
            slope = self.q @ self.slopes(moved)
            curvature = self.curvature(moved, 0.0)
            if self.n_scores == 1:
                total = float(curvature.own.sum())
                step = -slope / total if total > 0.0 else np.zeros(1)
            else:
                # The scores of a softmax may all move by the same amount: the inverse is a pseudo-inverse.
                step = -np.linalg.pinv(curvature.total(), rcond=1e-12, hermitian=True) @ slope
            promised = -float(slope @ step)
            if promised <= least:
                break
            if promised > 1e-6 * self.scale:  # else Newton's step is as good as exact
                value = self.value(moved)
                while promised > 1e-12 * self.scale and self.value(moved + step) > value:
                    step, promised = 0.5 * step, 0.5 * promised
            shift = shift + step
        return shift
