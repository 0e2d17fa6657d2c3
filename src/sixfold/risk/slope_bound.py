"""The bound of :mod:`sixfold.risk.bounds` from sums that a solver has: 20 microseconds instead of 170.

With a squared penalty and the slopes u_i = loss'(s_i) as they are, no term of the loss is left of

    R(w, b) - min R  <=  |l2 w + sum_i q_i u_i (x_i - m)|^2 / (2 l2)  +  balance  +  rounding

and with slopes u_i = r_i - onehot(y_i) of probabilities r that were moved, their divergence from p besides.

*Balance.* With e_k = |sum_i q_i u_ik|, which an intercept asks to be 0, the slopes of the heavier side of a
score are made shorter by tau = e / (their sum), at least half of sum_i q_i |u_i|. Since FY(s, .) is convex
and FY(s, 0) = loss(s), that costs tau times the loss at most. Of classes, those with too much probability
hand on the share tau_k = e_k / sum_i q_i p_ik of it, in every row, to those that have too little: the
divergence grows by e_k (2 + log(1 / p)) at most, p the least probability there is; where p was moved to r
before, by e_k (1 + log(1 / p) + log(1 / r)), since f(x) = x log(x / p) is convex. Either way no slope
moves by more than tau on average, so that the sums move by tau |x_j - m_j|.

*Rounding.* What the loops compute of one row is right to ``TERM`` U relative to it (the exponential to 3 U,
log(1 + e) to 6 U, and what is done with them to as much again), and a sum of ``depth`` additions to depth U.
With delta how far scores are off, |v| = sqrt(sum_i q_i v_i^2), the objective is above the computed one by
|u| delta + curvature delta^2 / 2 at most, and the bound below it by |u'| delta, u' the moved slopes.

*Without a penalty* (logistic loss) slopes have to balance the columns too. With H = sum_i q_i loss''(s_i)
z_i z_i' = R'R, z = (x - m, 1) and e = sum_i q_i u_i z_i, moving every u_i by loss''(s_i) t_i, t_i = z_i.beta,
H beta = -e, makes e 0 exactly (:mod:`sixfold.risk.balance`). With p = |u| and loss'' = p (1 - p), the slope
that comes of it lies between 0 and 1 where |t| <= 1, as is so where

    tau = max_i |R^-T z_i| |R^-T e|

is no more, for which the largest |z_ij| of each column suffice. What a slope a in place of p costs, the
divergence a log(a / p) + (1 - a) log((1 - a) / (1 - p)), is (a - p)^2 / (p (1 - p)) = loss'' t^2 at most, and
sum_i q_i loss''(s_i) t_i^2 = |R^-T e|^2: next to nothing where the sums are.
Since loss'' <= 1/4 the matrix 4 H also says how far columns are from depending on each other.

Where Newton's method has come to its end this is next to nothing. Where it is not, or weights are rounded
to single precision, the slopes are mended first, as :class:`sixfold.risk.candidate.Candidate` does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from sixfold.certificate import Certificate
from sixfold.risk.problem import Problem
from sixfold.risk.rank import CHOLESKY_LOSS, independent_by_norm, loss_of_products
from sixfold.risk.rounding import UNDERFLOW, U

Array = NDArray[Any]

TERM = 16  # roundings in a loss, its slope or a probability, and its share of the weights
ONE = np.ones(1)
LARGEST_MOVE = 0.5  # of slopes: beyond that no bound is claimed


@dataclass
class SlopeSums:
    """Sums over the rows at a model (w, b), q_i the share of a row's weight; one entry a score.

    Attributes
    ----------
    depth : int
        Additions that a term goes through.
    log_chance : float
        The largest log(1 / p) of any row and class; where p was moved to r, that and log(1 / r), added.
    lengths : ndarray of shape (columns,)
        sum_i q_i (x_ij - m_j)^2.
    slope : ndarray of shape (columns, scores)
        sum_i q_i u_ik (x_ij - m_j).
    loss, score_squares, slope_squares, total, size, products, mass : ndarray of shape (scores,)
        sum_i q_i times the loss (of all classes, in the first entry), s_i^2, u_i^2, u_i, |u_i|, |s_i u_i| and
        p_i (of one score, whether y_i is +1).
    centred : ndarray of shape (scores,)
        b + m.w.
    reach : ndarray of shape (columns,) or None
        The largest |x_ij - m_j| of a row that counts, where that is known.
    curvature : ndarray of shape (scores, order, order) or None
        The upper triangles of H, with a last row and column for the intercept if there is one; where there is
        no penalty.
    squares : float
        sum_i q_i |u_i|^2 over all scores at most, before and after slopes were moved; where that is known
        better than from slope_squares, which also stand for how u_i is rounded.
    young : float
        sum_i q_i (loss(s_i) + loss*(u_i) - s_i u_i) where u_i is another slope than that of the loss: of
        classes, the divergence of the r that their probabilities p were moved to.
    """

    depth: int
    log_chance: float
    lengths: Array
    slope: Array
    loss: Array
    score_squares: Array
    slope_squares: Array
    total: Array
    size: Array
    products: Array
    mass: Array
    centred: Array
    reach: Array | None = None
    curvature: Array | None = None
    squares: float = math.inf
    young: float = 0.0

    @cached_property
    def factors(self) -> list[_Factor]:
        """The curvature of each score, factored."""
        return [_Factor(H, self.depth) for H in self.curvature] if self.curvature is not None else []

    def independent(self, means: Array, eps: float) -> bool:
        """Return whether no column can be one that rounding of the entries, by eps, makes dependent.

        This is :func:`sixfold.risk.rank.beyond_doubt`, by one of the curvatures.
        """
        squares = np.square(means) / np.where(self.lengths > 0.0, self.lengths, 1.0)
        sizes = np.where(self.lengths > 0.0, np.sqrt(1.0 + squares), np.inf)
        return any(
            independent_by_norm(each.norm_of_columns(self.lengths), sizes, eps) for each in self.factors
        )


def _norm(values: Array) -> float:
    return math.sqrt(float(np.vdot(values, values)))


class _Factor:
    """H = D R'R D with D^2 its diagonal: D, R^-1 and its norm, and what is lost of R as in ColumnSpace."""

    def __init__(self, H: Array, depth: int) -> None:
        order = H.shape[0]
        self.unit, self.norm, self.lost = np.sqrt(H.diagonal()), math.inf, math.inf
        if not (self.unit > 0.0).all():
            return
        R, failed = lapack.dpotrf(H / np.multiply.outer(self.unit, self.unit), lower=0, clean=1)
        if failed:
            return
        self.inverse, failed = lapack.dtrtri(R, lower=0)
        if not failed:
            self.norm = _norm(self.inverse)
            # Entries have the roundings of a row's curvature, of the products and of D besides.
            self.lost = loss_of_products(order, self.norm, order * (depth + TERM + 8) * U)

    def balancing(self, e: Array, error: Array, reach: Array) -> tuple[float, float]:
        """Return |R^-T e| and tau where e is off by so much."""
        if not self.lost <= CHOLESKY_LOSS:
            return math.inf, math.inf
        sizes = np.abs(self.inverse)
        length = _norm((e / self.unit) @ self.inverse) + _norm((error / self.unit) @ sizes)
        farthest = _norm((reach / self.unit) @ sizes) / (1.0 - self.lost) * (1.0 + 1e-9)
        length *= (1.0 + 1e-9) / (1.0 - self.lost)
        return length, farthest * length

    def norm_of_columns(self, lengths: Array) -> float:
        """Return the norm of R^-1, R that of all rows' columns scaled to length 1, or more: R'R >= 4 H."""
        if not self.lost <= CHOLESKY_LOSS:
            return math.inf
        left = np.square(self.inverse).sum(axis=1)[: lengths.size] / np.square(self.unit[: lengths.size])
        return 0.5 * math.sqrt(float(lengths @ left)) / (1.0 - self.lost) * (1.0 + 1e-9)


def certify_slopes(
    problem: Problem, w: Array, sums: SlopeSums, tolerance: float, scale: float
) -> Certificate | None:
    """Return the certificate of a model; None where it would not show convergence.

    There is a squared penalty, or none and the loss is the logistic one. Of the hinge, whose kinks have any
    slope, ``young`` is known.
    """
    d, scores = w.shape
    classes = problem.loss.labels == "class"
    # Of the own class the slope is minus the sum of the others, and all are made shorter by as much again, so
    # that no probability is below 0.
    term = (TERM + scores) * U
    off = sums.depth * U + 2.0 * term
    lengths, u = np.sqrt(sums.lengths), np.sqrt(sums.slope_squares)
    loss = float(sums.loss.sum())
    delta = (d + 8) * U * (lengths @ np.abs(w) + np.abs(sums.centred)) + 4.0 * U * np.sqrt(sums.score_squares)
    moves = (_balance_columns if problem.l2 == 0.0 else _balance_rows)(problem, sums, off)
    if moves is None:
        return None
    balance, moved = moves
    penalty, excess = 0.5 * problem.l2 * float(np.vdot(w, w)), 0.0
    if problem.l2 > 0.0:
        of_slope, of_penalty = np.abs(sums.slope), problem.l2 * np.abs(w)
        error = np.multiply.outer(lengths, off * u + moved) + 8.0 * U * (of_slope + of_penalty)
        miss = np.abs(sums.slope + problem.l2 * w)
        excess = float(np.square(miss + error).sum()) / (2.0 * problem.l2)
    ones = (
        4.0 * (scores + 1.0) + sums.log_chance
        if classes
        else 2.0 * (scores + float((sums.size + sums.products).sum()))
    )
    rounding = off * loss + (d * scores + 8) * U * penalty + UNDERFLOW
    # Whatever it is of each score, by Cauchy and Schwarz.
    steep = min(float(u @ delta), math.sqrt(sums.squares) * _norm(delta))
    if problem.loss.smooth:
        up = steep + 0.5 * problem.loss.curvature_bound * float(delta @ delta) + rounding
    else:  # no slope is above 1
        up = float(delta.sum()) + rounding
    down = steep + float(moved @ delta) + term * (3.0 * loss + ones) + rounding
    # The factor is for what rounding does to this.
    gap = (excess + sums.young + balance + up + down) * (1.0 + 1e-9)
    objective = loss + penalty + up
    gap = min(gap + 8.0 * U * objective, objective)
    found = Certificate("duality gap", objective, gap, scale, tolerance, rounding=(up + down) * (1.0 + 1e-9))
    return found if found.converged else None


def _balance_rows(problem: Problem, sums: SlopeSums, off: float) -> tuple[float, Array] | None:
    """Return what it costs to balance the intercept and how far slopes move; None where that is too far."""
    scores, u = sums.total.size, np.sqrt(sums.slope_squares)
    if not problem.fit_intercept:
        return 0.0, np.zeros(scores)
    classes = problem.loss.labels == "class"
    left = np.abs(sums.total) + off * u
    whole = sums.mass if classes else 0.5 * sums.size
    if not (left <= LARGEST_MOVE * whole).all():
        return None
    tau = np.divide(left, whole, out=np.zeros(scores), where=whole > 0)
    if classes:
        return float(left.sum()) * (4.0 + sums.log_chance), np.full(scores, tau.max())
    return float(tau @ sums.loss), tau * u


def _balance_columns(problem: Problem, sums: SlopeSums, off: float) -> tuple[float, Array] | None:
    """Return the same of columns without penalty, and the intercept."""
    e, lengths, reach = sums.slope, np.sqrt(sums.lengths), sums.reach
    if reach is None:
        return None
    if problem.fit_intercept:
        e = np.concatenate([e, sums.total[None]])
        lengths, reach = np.concatenate([lengths, ONE]), np.concatenate([reach, ONE])
    u = np.sqrt(sums.slope_squares)
    found = [factor.balancing(e[:, k], off * u[k] * lengths, reach) for k, factor in enumerate(sums.factors)]
    if not found or not all(tau <= LARGEST_MOVE for _, tau in found):
        return None
    return sum(length**2 for length, _ in found), np.array([tau for _, tau in found]) * u
