"""The claim of a linear model: no w, b have an objective that is lower by more than the gap.

    R(w, b) = sum_j (l1 |w_j| + l2 w_j^2 / 2) + sum_i q_i f(s_i, y_i),    s = w.x + b,  q = weight / their sum

Fenchel's inequality f(s) + f*(u) >= s u bounds the minimum for every u with sum_i q_i u_i = 0 (which the
intercept asks for): with v = -sum_i q_i u_i x_i,

    R(w, b) - min R  <=  sum_i q_i (f(s_i) + f*(u_i) - s_i u_i)  +  (pen(w) + pen*(v) - w.v)

whatever u is. A candidate (the model's dual point, or the slopes of the loss) is moved to where both
conjugates are finite: into the domain of f*, to sum 0, off the columns of X where there is no penalty (v =
0), and is made shorter until |v_j| <= l1 where there are absolute values only. Each bracket is a sum of terms
that are never negative, so that no digits cancel. Several targets are added up.

*Rounding.* Scores are summed about the mean row m, s = (x - m).w + (b + m.w), the last bracket exactly.
They are off by at most delta_i = (d + 8) U (|x - m|.|w| + |b + m.w|), U = 2^-53, and slopes by sums of such
terms. What is left of sum_i q_i u_i z_i, z = (1, x - m), is removed by moving u_i by a_i z_i.beta, where
sum_i q_i a_i z_i z_i' beta is what is left: possible without leaving the domain if a_i <= |u_i| and
|z_i.beta| <= tau < 1, and u divided by 1 + tau afterwards; this costs 2 tau sum_i q_i f(s_i) at most, since
the excess is convex in u and f(s) at u = 0. Classes have a_i = diag(p_i) - p_i p_i', and moves of mean
square length^2 cost length rho + length^2 at most, with rho^2 = sum_i q_i sum_c p_ic log(p_ic /
softmax(s_i)_c)^2. Where the rounding of doubles would decide, all sums are formed in twice their precision
(:mod:`sixfold.verify.doubled`).

*Dependent columns.* Without penalty a column counts as a combination of others where the best one leaves no
more of it than the rounding of its entries, DEPENDENT eps (|x_j| + sum_k |C_k| |x_k|). Where it leaves more
than nothing, the gap speaks of models that do not tell these columns apart, and no other bound than 0 is
found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit, logsumexp, xlogy

from sixfold.certificate import Certificate
from sixfold.verify.doubled import dots, products, total
from sixfold.verify.recomputed import Recomputed

Array = NDArray[Any]

EPS = float(np.finfo(np.float64).eps)
U = EPS / 2
UNDERFLOW = 2.0**-1040  # what 2^30 products next to nothing are off together
ENTRIES = 1 << 22  # of X that are copied at a time
MAX_SPARSE_COLUMNS = 4000  # of a sparse table up to which the d x d matrix of its products is formed
MAX_DOUBLED = 1 << 27  # products that are formed in twice the precision
DEPENDENT = 4.0  # roundings of its entries that a column may differ by from a combination of others
NOTHING = 1e-18  # of a column: no two columns of doubles agree so far by chance
CERTAIN = 1e-14  # probabilities below it are 0 where they would have to balance those of other rows
NEARLY_CERTAIN = (1e-8, 1e-6, 1e-10, 1e-7, 1e-5)  # the same where classes are separated: one of these serves
APART = 1e-3  # of columns of length 1, what others leave of them
STILL = 1e-11  # of a direction of length 1: far less than probabilities above CERTAIN move
MOVES, MOST_MOVES = 3, 8  # each leaves eps times the condition number of what is out of balance
FAR_MOVE = 0.1  # of a probability
FARTHEST = 3.0  # that the logarithm of a probability moves at once
NEARLY_L1 = 0.1  # of l1: what the slope of a coefficient may be short of it and still count as l1
CLEAR = 1e-9  # of a column, left by QR: more than rounding leaves
MOST_NOISE = 1e-12  # of the scale: rounding that is too small to matter


@dataclass(frozen=True)
class LinearClaim:
    """A model and the data it is said to be fitted on."""

    X: Any  # ndarray or CSR array of shape (rows, columns), float64
    y: Array  # numbers, or -1 and +1, of shape (rows, scores); classes 0, 1, ... of shape (rows,)
    weights: Array | None  # None where every row counts 1
    w: Array  # (columns, scores)
    b: Array  # (scores,)
    loss: str  # a name of REAL or SIGN, or "softmax"
    l1: float  # the factor of the absolute values of w
    l2: float  # the factor of half their squares
    positive: bool  # whether only w >= 0 are compared with
    fit_intercept: bool  # whether b is free
    dual: Array | None  # a candidate for u, of shape (rows, scores)
    eps: float = EPS  # of the type that X and w are held in


def recompute(claim: LinearClaim, claimed: Certificate) -> Recomputed:
    """Return objective and gap of the claim, and what rounding may have done to them."""
    with np.errstate(over="ignore", invalid="ignore"):
        return _recompute(*counted_rows(claim), claimed)


def _recompute(claim: LinearClaim, q: Array, claimed: Certificate) -> Recomputed:
    found = _Check(claim, q)
    small = claim.X.shape[0] * claim.X.shape[1] * claim.w.shape[1] <= MAX_DOUBLED
    # The slopes of classes sum to 0, which leaves open whose is short of l1.
    tied = claim.l1 + claim.l2 > 0 and not (claim.loss == "softmax" and (claim.l1 > 0 or claim.positive))
    for doubled, exactly in ((True, False), (False, True), (True, True)):
        if small and not found.decides(claimed) and (tied or not exactly):
            other = _Check(claim, q, doubled, exactly)
            found = min(found, other, key=lambda check: check.gap + check.up + check.down)
    for doubled in (False, True) if found.free and claim.loss not in REAL and small else ():
        if not found.decides(claimed):
            found.replace_by_targets(doubled, claimed.gap)
    scale, at_zero = found.scale, found.at_zero
    certificate = Certificate(
        claimed.kind,
        found.objective + found.up,
        found.gap + found.up + found.down,
        scale,
        claimed.tolerance,
        rounding=found.up + found.down,
        unrestricted_bound=0.0 if found.restricted else None,
    )
    # A batch, of which no bound but zero is claimed, is judged by the model that predicts zero.
    largest = (scale if claimed.gap < claimed.objective else max(scale, at_zero)) + 1e-13 * at_zero
    plain = claim.loss == "squared" and claim.l1 == 0 and not claim.positive
    return Recomputed(
        certificate,
        2.0 * found.up + 1e-30 * at_zero,
        # A millionth of the gap itself misleads nobody.
        claimed.gap * (1.0 + 1e-6) + 2.0 * (found.up + found.down),
        ("duality gap", *["least squares"] * plain),
        scale_allowance=largest,
        # The computed one may be above the true one already.
        overstated=min(2.0 * claimed.rounding, found.largest_rounding()),
    )


def counted_rows(claim: LinearClaim) -> tuple[LinearClaim, Array]:
    """Return the claim without the rows of weight 0, and q."""
    if claim.weights is None:
        return claim, np.full(claim.y.shape[0], 1.0 / claim.y.shape[0])
    q = claim.weights / claim.weights.sum()
    if (q > 0).all():
        return claim, q
    some = np.flatnonzero(q > 0)
    dual = None if claim.dual is None else claim.dual[some]
    return replace(claim, X=claim.X[some], y=claim.y[some], dual=dual), q[some]


# -- losses ------------------------------------------------------------------------------------------------


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


class _OneScore:
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
        return self.loss.value(self._z(score))

    def slope(self, score: Array) -> Array:
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
        return np.concatenate(parts, axis=1)

    def inside(self, u: Array) -> Array:
        """Return u without slopes of the wrong sign, and made shorter until none is too large."""
        u = np.where(((self.low == 0) & (u < 0)) | ((self.high == 0) & (u > 0)), 0.0, u)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ends = np.where(u > 0, self.high / u, np.where(u < 0, self.low / u, np.inf))
        return np.clip(ends.min(axis=0, initial=1.0) * u, self.low, self.high)

    def systems(self, u: Array, q: Array, sums: Sums, kept: Array, ones: bool) -> list[_System]:
        """Return for each score the equations that u must satisfy exactly."""
        z = _exact_columns(sums, kept, ones)
        size = np.abs(u)
        a = (
            np.ones_like(u)
            if self.name in ("squared", "absolute")
            else size * (1.0 - size)
            if self.name == "logistic"
            else size
        )
        return [_ready(_System(z, q, column, self.name), kept, ones) for column in a.T]

    def balanced(self, u: Array, q: Array) -> Array:
        """Return u with sum_i q_i u_i = 0: without its mean, or with the heavier side made as light."""
        if self.real:
            return u - q @ u
        sums = q @ np.maximum(u, 0.0), q @ np.maximum(-u, 0.0)
        up, down = (np.minimum(*sums) / np.where(side > 0, side, 1.0) for side in sums)
        return u * np.where(u > 0, up, down)


class _Softmax:
    """log sum_c exp(s_c) - s_y; u = p - onehot(y), and the excess is the divergence of p from softmax(s)."""

    name, real = "softmax", False

    def __init__(self, y: Array, scores: int) -> None:
        self.y, self.scores = y, scores
        self.own = y[:, None] == np.arange(self.scores)
        self.low, self.high = -1.0 * self.own, 1.0 * ~self.own

    def value(self, score: Array) -> Array:
        rivals = logsumexp(np.where(self.own, -np.inf, score), axis=1)
        return np.logaddexp(0.0, rivals - score[self.own])[:, None]

    def _log(self, score: Array) -> Array:
        """Return the logarithms of softmax(score)."""
        return (score - score[self.own][:, None]) - self.value(score)

    def slope(self, score: Array) -> Array:
        others = np.where(self.own, 0.0, np.exp(self._log(score)))
        return others - self.own * others.sum(axis=1, keepdims=True)

    def excess(self, score: Array, u: Array) -> Array:
        p, log = np.maximum(u + self.own, 0.0), self._log(score)
        return np.maximum(xlogy(p, p) - p * log - p + np.exp(log), 0.0)

    def log_ratio(self, score: Array, u: Array, q: Array) -> float:
        """Return sqrt(sum_i q_i sum_c p_ic log(p_ic / softmax(s_i)_c)^2), rounded up."""
        p = np.maximum(u + self.own, 0.0)
        ratio = np.log(np.where(p > 0, p, 1.0)) - np.where(p > 0, self._log(score), 0.0)
        return math.sqrt(float(q @ (p * ratio**2).sum(axis=1))) * (1 + 1e-6) + 1e-9

    def together(self, values: Array) -> Array:
        return values.sum(keepdims=True)

    def masses(self, G: Array) -> Array:
        """Return them in units of which a double holds every sum, so that those of a row sum to 0 exactly."""
        top = np.abs(G).max(axis=1, keepdims=True)
        unit = 2.0 ** (np.ceil(np.log2(np.where(top > 0, top, 1.0))) - 46)
        others = np.where(self.own, 0.0, np.round(G / unit))
        return (others - self.own * others.sum(axis=1, keepdims=True)) * unit

    def split(self, of_scores: Array) -> list[Array]:
        return [of_scores]

    def joined(self, parts: list[Array]) -> Array:
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

    def systems(self, u: Array, q: Array, sums: Sums, kept: Array, ones: bool) -> list[_System]:
        z = _exact_columns(sums, kept, ones)
        return [_ready(_ClassSystem(z, q, u, self.own), kept, ones)]


def _exact_columns(sums: Sums, kept: Array, ones: bool) -> Array:
    """Return z: the ones of the intercept, and the columns without penalty about their mean."""
    n = sums.q.size
    if kept.size == 0:
        return np.ones((n, int(ones)))
    X = sums.X[:, kept].toarray() if sums.sparse else sums.X[:, kept]
    return np.hstack([np.ones((n, 1)), X - sums.mean[kept]]) if ones else X


def _ready(system: _System, kept: Array, ones: bool) -> _System:
    system.kept, system.ones = kept, ones
    return system


def _constant_model(rows: _OneScore | _Softmax, q: Array, fit_intercept: bool) -> tuple[float, float]:
    """Return the loss of predicting the mean of numbers, and zero; 1e-30 is for a constant target."""

    def loss(constant: Array) -> float:
        return float((q @ rows.value(np.broadcast_to(constant, (q.size, rows.scores)))).sum())

    at_zero = loss(np.zeros(rows.scores))
    return (loss(q @ rows.y) + 1e-30 * at_zero if rows.real and fit_intercept else at_zero), at_zero


# -- penalties ---------------------------------------------------------------------------------------------


def _penalty(claim: LinearClaim) -> Array:
    """Return the penalty of each column of w."""
    penalty = claim.l1 * np.abs(claim.w).sum(axis=0)
    if claim.l2 > 0:  # squares may be too large for a double
        penalty += claim.l2 / 2 * np.square(claim.w).sum(axis=0)
    return np.where((claim.w < 0).any(axis=0), np.inf, penalty) if claim.positive else penalty


def _excess_over_l1(claim: LinearClaim, v: Array) -> Array:
    """Return by how much each v_j exceeds l1; with w >= 0 it may be as negative as it likes."""
    return np.maximum((v if claim.positive else np.abs(v)) - claim.l1, 0.0)


def _penalty_excess(claim: LinearClaim, v: Array) -> Array:
    """Return pen(w) + pen*(v) - w.v; w = z is where w.v - pen(w) is largest."""
    w, l1, l2 = claim.w, claim.l1, claim.l2
    slack = l1 * np.abs(w) - w * np.clip(v, -np.inf if claim.positive else -l1, l1)
    excess = np.maximum(slack, 0.0).sum(axis=0)
    if l2 > 0:
        z = np.copysign(_excess_over_l1(claim, v), v) / l2
        excess += l2 / 2 * np.square(w - z).sum(axis=0)
    return np.asarray(excess)


def _penalty_rounding(claim: LinearClaim, v: Array, error: Array) -> Array:
    """Return by how much that grows at most where v is off by so much."""
    w, l1, l2 = np.abs(claim.w), claim.l1, claim.l2
    if l2 == 0:
        return np.asarray((w * error).sum(axis=0) + 8 * U * l1 * w.sum(axis=0))
    z = np.copysign(_excess_over_l1(claim, v), v) / l2
    return np.asarray(
        (np.abs(claim.w - z) * error).sum(axis=0)
        + np.square(error).sum(axis=0) / (2 * l2)
        + 8 * U * l1 * w.sum(axis=0)
    )


# -- the check ---------------------------------------------------------------------------------------------


class _Check:
    """Objective and gap as computed, and by how much the one may be higher and the bound lower (up, down)."""

    def __init__(
        self,
        claim: LinearClaim,
        q: Array,
        doubled: bool = False,
        tied: bool = False,
        certain: float | None = None,
    ) -> None:
        self.claim, self.q, self.doubled, self.certain = claim, q, doubled, certain
        self.free = claim.l1 == claim.l2 == 0.0
        self.fixed = np.zeros(claim.w.shape, dtype=bool)  # slopes that the penalty prescribes
        self.tied = tied or self.free  # whether slopes have to be exactly what the penalty asks for
        softmax = claim.loss == "softmax"
        real = claim.loss in REAL
        # Numbers count from their mean, as rows do.
        origin = claim.y[0] + q @ (claim.y - claim.y[0]) if real else np.zeros(claim.b.size)
        y = claim.y - origin if real else claim.y
        self.rows = rows = _Softmax(y, claim.b.size) if softmax else _OneScore(claim.loss, y)
        self.sums = Sums(claim.X, q, doubled)
        self.score, self.delta = self.sums.scores(claim.w, claim.b, origin)
        if real:
            self.delta = self.delta + 2 * U * (np.abs(self.score - y) + np.abs(y))
        self.scale, self.at_zero = _constant_model(
            _Softmax(y, claim.b.size) if softmax else _OneScore(claim.loss, claim.y), q, claim.fit_intercept
        )
        loss = rows.together(q @ rows.value(self.score))
        self.by_score = loss + rows.together(_penalty(claim))
        self.objective, self.gap, self.down, self.restricted = float(self.by_score.sum()), np.inf, 0.0, False
        slope = np.maximum(*(np.abs(rows.slope(self.score + side * self.delta)) for side in (-1.0, 1.0)))
        self.slope = slope
        n, d = claim.X.shape
        few = (32.0 + np.sqrt(n) + d) * EPS  # of sums of terms that are never negative
        self.up = 0.0
        if np.isfinite(self.objective):
            self.up = float((q @ (slope * self.delta)).sum() + few * self.objective)
            if claim.w.any() or (real and (self.score != y).any()):
                self.up += UNDERFLOW
            excess, down = self._excess(loss, few)
            # No loss is negative, so that 0 is a bound of every score.
            better = excess + down < self.by_score
            self.gap = float(np.where(better, excess, self.by_score).sum())
            self.down = float(np.where(better, down, 0.0).sum())

    def replace_by_targets(self, doubled: bool, enough: float) -> None:
        """Take the best bound of each target: rows that are certain of one class are not of another.

        No more is tried than it takes for a gap of ``enough``.
        """
        claim, several = self.claim, self.claim.loss != "softmax"
        columns = [slice(k, k + 1) for k in range(claim.b.size)] if several else [slice(None)]
        gap, up, down, restricted = 0.0, 0.0, 0.0, False
        for one in columns:
            mine = replace(
                claim,
                y=claim.y[:, one] if several else claim.y,
                w=claim.w[:, one],
                b=claim.b[one],
                dual=None if claim.dual is None else claim.dual[:, one],
            )
            best = _Check(mine, self.q, doubled) if several else self
            for certain in NEARLY_CERTAIN:
                if best.gap + best.up + best.down <= enough / len(columns):
                    break
                other = _Check(mine, self.q, doubled, certain=certain)
                best = min(best, other, key=lambda check: check.gap + check.up + check.down)
            gap, up, down = gap + best.gap, up + best.up, down + best.down
            restricted |= best.restricted
        if gap + up + down < self.gap + self.up + self.down:
            self.gap, self.up, self.down, self.restricted = gap, up, down, restricted

    def decides(self, claimed: Certificate) -> bool:
        """Return whether rounding is too small to change the verdict."""
        noise = self.up + self.down
        return noise <= max(0.5 * claimed.gap, MOST_NOISE * self.scale) and self.gap <= max(
            claimed.gap, noise
        )

    def largest_rounding(self) -> float:
        """Return how far the objective may be off at most, by whatever order of sums and without a centre.

        Least squares may be put together from moments, y'y - 2 w.X'y + w.X'X w.
        """
        claim, q, (n, d) = self.claim, self.q, self.claim.X.shape
        squares, lengths, moments = np.zeros(claim.b.size), np.zeros(d), 0.0
        mean_x, mean_y = (q @ claim.X, q @ claim.y) if claim.fit_intercept else (np.zeros(d), 0.0)
        w = np.abs(claim.w)
        for part in row_parts(claim.X):
            X = claim.X[part]
            size = np.asarray(abs(X) @ w) + np.abs(claim.b)
            size += np.abs(claim.y[part]) if self.rows.real else 0.0
            squares += q[part] @ size**2
            lengths += q[part] @ (X.multiply(X) if sp.issparse(X) else X * X)
            if claim.loss == "squared":
                spread = abs(X) @ w + np.abs(mean_x) @ w if sp.issparse(X) else np.abs(X - mean_x) @ w
                far = (q[part] @ (np.abs(claim.y[part] - mean_y) + spread) ** 2).sum()
                moments += 16.0 * (64 + n + d) * U * float(far)
        # Of sparse columns the sum of lengths is far above the lengths of the sums, and may be claimed.
        delta = 4.0 * (d + 8) * U * (np.sqrt(squares) + np.sqrt(lengths) @ w)
        steepest = 1.0 if claim.loss in ("absolute", "hinge", "perceptron") else np.sqrt(q @ self.slope**2)
        first = 4.0 * n * U * self.objective + float((steepest * delta + delta**2).sum())
        return first + moments

    def _excess(self, loss: Array, few: float) -> tuple[Array, Array]:
        """Return the excess of each score (of all classes together), and how far it may be too low."""
        claim, rows, q = self.claim, self.rows, self.q
        u = rows.slope(self.score) if claim.dual is None else np.clip(claim.dual, rows.low, rows.high)
        small = CERTAIN if self.tied and rows.name == "softmax" else 1e-280
        u = np.where(np.abs(u) > (small if self.certain is None else self.certain), u, 0.0)
        # Probability that goes from class to class would also go to rows that are certain.
        if claim.fit_intercept and not (self.certain is not None and rows.name == "softmax"):
            u = rows.balanced(u, q)
        u = rows.inside(u)
        kept = _Kept(np.arange(0), np.zeros((0, 0)), np.arange(0), np.arange(0), True, {})
        if self.tied:
            large = sp.issparse(claim.X) and claim.X.shape[1] > MAX_SPARSE_COLUMNS
            kept = kept if large else _independent_of(claim, q, u, self._prescribed(u))
            self.restricted = self.free and kept.doubtful.size > 0
            if large:
                return self.by_score, 0.0 * self.by_score
            if self.free and not claim.positive and kept.left:
                self._orthogonalise(kept.left)
            u = self._balanced_exactly(u, kept.columns)
        slope, error, tau, length = self._slopes(u, kept.columns)
        # With w >= 0 a column may follow from others with a minus: its slope is then only found to be 0.
        if claim.positive and self.free and not kept.positive and (slope < -4.0 * error).any():
            return self.by_score, 0.0 * self.by_score
        if self.tied and not self.free:
            slope, error = self._as_aimed(slope, error, kept)
        shorter = np.ones(u.shape[1])
        if claim.l1 > 0.0 and claim.l2 == 0.0:
            largest = ((-slope if claim.positive else np.abs(slope)) + error).max(axis=0, initial=0.0)
            shorter = claim.l1 / np.maximum(largest, claim.l1)
            shorter = np.full_like(shorter, shorter.min()) if rows.name == "softmax" else shorter
        u = shorter * u
        penalty, more = self._penalty(shorter * slope, error, kept)
        young = rows.together(q @ rows.excess(self.score, u))
        sums = loss + young + rows.together(_penalty(claim))
        down = rows.together(q @ (np.abs(u) * self.delta) + more) + (few + 32 * U) * sums
        return young + rows.together(penalty), down + self._moves(u, loss, young, tau, length)

    def _orthogonalise(self, left: dict[int, Array]) -> None:
        """Put what combinations of others leave of a column in its place: both span the same with the others.

        A slope along the column is then as well known as u is, however little is left of it.
        """
        X = self.claim.X.toarray() if sp.issparse(self.claim.X) else self.claim.X.copy()
        for column, values in left.items():
            X[:, column] = values
        self.sums = Sums(X, self.q, self.doubled)

    def _unmet(self, slope: Array) -> Array:
        """Return what is wrong with slopes that have to be 0, or to balance the penalty."""
        if self.free:
            return np.minimum(slope, 0.0) if self.claim.positive else slope
        return slope - self._aim(slope)

    def _aim(self, slope: Array) -> Array:
        """Return the slopes that balance the penalty; those of classes sum to 0, as all slopes do."""
        w, l1, softmax = self.claim.w, self.claim.l1, self.rows.name == "softmax"
        aim = -self.claim.l2 * (w - w.mean(axis=1, keepdims=True) if softmax else w)
        if self._squares_only:
            return aim
        allowed = np.maximum(slope, -l1) if self.claim.positive else np.clip(slope, -l1, l1)
        return np.where(self.fixed, aim - l1 * np.sign(w), allowed)

    @property
    def _squares_only(self) -> bool:
        return self.claim.l1 == 0.0 and not self.claim.positive

    def _prescribed(self, u: Array) -> Array:
        """Return the columns whose slopes the penalty prescribes, or may after they have been rounded."""
        claim = self.claim
        if self.free or self._squares_only:
            return np.arange(claim.X.shape[1])
        G = self.q[:, None] * u
        slope, _ = self.sums.slopes(G, claim.fit_intercept)
        error, _ = self.sums.slope_errors(G, slope, claim.fit_intercept)
        error = error + 4 * U * np.outer(self.sums.lengths, np.sqrt(self.q @ u**2))  # u itself is rounded
        off = np.abs(slope + claim.l2 * claim.w + claim.l1 * np.sign(claim.w))
        self.fixed = (claim.w != 0) & (off <= np.maximum(4.0 * error, NEARLY_L1 * claim.l1))
        size = -slope if claim.positive else np.abs(slope)
        return np.flatnonzero((self.fixed | (size + 4.0 * error > claim.l1)).any(axis=1))

    def _balanced_exactly(self, u: Array, kept: Array) -> Array:
        """Return u after the moves that leave nothing wrong but for rounding."""
        rows, q, ones = self.rows, self.q, self.claim.fit_intercept
        systems = rows.systems(u, q, self.sums, kept, ones)
        moves = 0
        for _ in range(MOST_MOVES):
            slope, total = self.sums.slopes(q[:, None] * u, ones)
            parts = zip(systems, *map(rows.split, (u, self._unmet(slope), total[None])), strict=True)
            before, u = u, rows.joined([system.moved(*part) for system, *part in parts])
            # Probabilities that have moved far leave the equations behind.
            if rows.name == "softmax" and np.any(np.abs(u - before) > FAR_MOVE * np.abs(before)):
                systems = rows.systems(u, q, self.sums, kept, ones)
                continue
            moves += 1
            if moves == MOVES:
                break
        return rows.inside(u)

    def _slopes(self, u: Array, kept: Array) -> tuple[Array, Array, Array, Array]:
        """Return sum_i q_i u_i x_i, how far it is off, and tau and the length of the move that balances u."""
        claim, rows, q, sums = self.claim, self.rows, self.q, self.sums
        G, balanced = rows.masses(q[:, None] * u), claim.fit_intercept
        slope, total = sums.slopes(G, balanced)
        error, error_total = sums.slope_errors(G, slope, balanced)
        rms = np.sqrt(q @ u**2)
        unmet, off = self._unmet(slope), error + 4 * U * claim.l2 * np.abs(claim.w)
        off = off + 8 * U * np.outer(sums.lengths, rms)  # columns may have been rounded
        if self.free and claim.positive:
            unmet, off = self._unmet(slope - error), 0.0 * error
        systems = rows.systems(u, q, sums, kept, balanced)
        parts = zip(systems, *map(rows.split, (u, unmet, off, total[None], error_total[None])), strict=True)
        tau, length = np.array([system.cost(*part) for system, *part in parts]).T
        # By how much slopes have moved with u, and then been made shorter.
        moved = 2.0 * np.minimum(tau, 0.5) * (rms + 1.0 * (rows.name == "absolute"))
        moved = np.outer(sums.lengths, length if rows.name == "squared" else moved)
        if rows.name == "softmax":  # no u moves by more than sqrt(|u| sum_c p_c m_c^2)
            moved = min(float(length[0]), 1.0) * sums.weighted_lengths(q[:, None] * np.abs(u))
        error = error + moved + 8 * U * (np.abs(slope) + claim.l2 * np.abs(claim.w))
        return slope, error, tau, length

    def _as_aimed(self, slope: Array, error: Array, kept: _Kept) -> tuple[Array, Array]:
        """Return the slopes and errors where nothing is left of kept columns, nor of those that follow."""
        aim, size = self._aim(slope), self.claim.l2 * np.abs(self.claim.w)
        size, slope, error = size + np.abs(aim), slope.copy(), error.copy()
        slope[kept.columns] = aim[kept.columns]
        slope[kept.dependent] = kept.combination.T @ aim[kept.columns]
        error[kept.columns] = 32 * U * size[kept.columns]
        followed = np.abs(kept.combination).T @ size[kept.columns]
        error[kept.dependent] = 32 * U * (size[kept.dependent] + followed)
        return slope, error

    def _penalty(self, slope: Array, error: Array, kept: _Kept) -> tuple[Array, Array]:
        """Return the penalty's part for each score, and how much larger it may be."""
        claim, w = self.claim, np.abs(self.claim.w)
        if self.free:
            more = (w * (np.abs(slope) + error))[kept.doubtful].sum(axis=0)
            if not claim.positive:
                return np.zeros(w.shape[1]), more
            return np.maximum(claim.w * slope, 0.0).sum(axis=0), more + (w * error).sum(axis=0)
        return _penalty_excess(claim, -slope), _penalty_rounding(claim, -slope, error)

    def _moves(self, u: Array, loss: Array, young: Array, tau: Array, length: Array) -> Array:
        """Return what balancing u exactly costs, and the rounding of the excess."""
        rows, q = self.rows, self.q
        if rows.name == "squared":
            length = length + 8 * U * np.sqrt(q @ u**2)
            return np.asarray(np.sqrt(2 * young) * length + length**2 / 2)
        known, terms = tau < 0.5, 2.0 * loss + young
        if isinstance(rows, _Softmax):
            # p (1 + m), sum_k p_k m_k = 0: Cauchy and Schwarz for p m log(p / softmax(s)); log(1 + m) <= m.
            terms = terms + loss + 1.0 + math.log(rows.scores) + 4.0 * rows.scores
            cost = (1 + 1e-6) * (rows.log_ratio(self.score, u, q) * length + length**2)
            return np.where(known, cost + 16 * U * terms, np.inf)
        terms = terms + 2.0 * (q @ np.abs((self.score - rows.y if rows.real else self.score) * u))
        terms = terms if rows.real else terms + 2.0 * (q @ np.abs(u)) + 2.0
        share = np.where(known, tau, 0.0)
        # u was made shorter, and with it slopes that have to be what the penalty asks for.
        shorter = 2.0 * share if self.claim.l1 > 0 else 4.0 * share**2
        cost = (2.0 * share + 16 * U) * loss + shorter * rows.together(_penalty(self.claim))
        return np.where(known, cost + 16 * U * terms, np.inf)


class Sums:
    """Sums over the rows about their mean m, plain or in twice the precision, and how far they are off."""

    def __init__(self, X: Any, q: Array, doubled: bool) -> None:
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


class _System:
    """sum_i q_i a_i z_i z_i' = R'R of one score, z = (1, x - m) of columns that u must be orthogonal to."""

    def __init__(self, z: Array, q: Array, a: Array, name: str) -> None:
        self.z, self.a, self.name = z, a, name
        order = z.shape[1]
        weighted = np.sqrt(q * a)[:, None] * z
        self.scale = np.linalg.norm(weighted, axis=0)
        self.scale[self.scale == 0] = 1.0
        self.R = np.asarray(np.linalg.qr(weighted / self.scale, mode="r"))
        full = self.R.shape[0] == order > 0
        self.least = float(np.linalg.svd(self.R, compute_uv=False)[-1]) if full else 0.0
        self.trust = 1.0 - 128 * U * order / self.least if self.least > 0 else 0.0

    def moved(self, u: Array, slope: Array, one: Array) -> Array:
        """Return u after the move that would bring it into balance."""
        if not self.trust > 0:
            return u
        e = self._picked(slope, one) / self.scale
        beta = la.solve_triangular(self.R, la.solve_triangular(self.R, e, trans=1)) / self.scale
        return u - self.a[:, None] * (self.z @ beta)[:, None]

    def _picked(self, slope: Array, one: Array) -> Array:
        return np.concatenate([one[0], slope[self.kept, 0]]) if self.ones else slope[self.kept, 0]

    kept: Array
    ones: bool

    def cost(self, u: Array, slope: Array, error: Array, one: Array, error_one: Array) -> tuple[float, float]:
        """Return tau, and the length of the move."""
        e, off = self._picked(slope, one) / self.scale, self._picked(error, error_one) / self.scale
        if not e.any() and not off.any():
            return 0.0, 0.0
        if not self.trust > 0:
            return math.inf, math.inf
        half = np.linalg.norm(la.solve_triangular(self.R, e, trans=1)) * (1 + 128 * U / self.least)
        length = float(half + np.linalg.norm(off) / self.least) / self.trust
        if self.name == "squared":
            return length, length
        whitened = la.solve_triangular(self.R, (self.z / self.scale).T, trans=1)
        ratio = (
            self.a
            if self.name == "absolute"
            else np.divide(self.a, np.abs(u[:, 0]), out=np.where(self.a > 0, np.inf, 0.0), where=u[:, 0] != 0)
        )
        largest = float((np.linalg.norm(whitened, axis=0) * ratio).max(initial=0.0))
        return largest * length * (1 + 1e-6) / self.trust, length


class _ClassSystem(_System):
    """The same for classes, a_i = diag(p_i) - p_i p_i': a move of p_c is p_c (z.beta_c - their mean).

    Where classes are certain of some rows nothing moves in some directions, and nothing is left there.
    """

    def __init__(self, z: Array, q: Array, u: Array, own: Array) -> None:
        n, width, classes = *z.shape, u.shape[1]
        p = np.maximum(u + own, 0.0)
        self.z, self.p, self.own, self.width, self.name = z, p, own, width, "softmax"
        root = np.sqrt(q)[:, None, None] * np.sqrt(p)[:, :, None] * (np.eye(classes) - p[:, None, :])
        rows = (root[:, :, :-1, None] * z[:, None, None, :]).reshape(n * classes, (classes - 1) * width)
        self.scale = np.linalg.norm(rows, axis=0)
        self.scale[self.scale == 0] = 1.0
        triangle = np.linalg.qr(rows / self.scale, mode="r")
        _, roots, vectors = np.linalg.svd(triangle)
        roots = np.append(roots, np.zeros(vectors.shape[0] - roots.size))
        # Only where columns are far from depending on each other is it the classes that stand still.
        some = np.sqrt(q * (p.max(axis=1) < 1.0))[:, None] * z
        lengths = np.linalg.norm(some, axis=0)
        ends = np.linalg.svd(some / np.where(lengths > 0, lengths, 1.0), compute_uv=False)
        apart = bool(lengths.all()) and ends.min(initial=1.0) > APART
        moving = roots > (STILL if apart else 0.0)
        self.inverse, self.still = vectors[moving].T / roots[moving], vectors[~moving]
        self.least = float(roots[moving].min(initial=1.0)) if apart or moving.all() else 0.0
        self.trust = 1.0 - 128 * U * roots.size / self.least if self.least > 0 else 0.0

    def _picked(self, slope: Array, one: Array) -> Array:
        e = np.vstack([one, slope[self.kept]]) if self.ones else slope[self.kept]
        return e[:, :-1].T.ravel()

    def moved(self, u: Array, slope: Array, one: Array) -> Array:
        """Return u after the move that would bring it into balance."""
        if not self.trust > 0:
            return u
        e = self._picked(slope, one) / self.scale
        beta = (self.inverse @ (self.inverse.T @ e)) / self.scale
        moves = np.column_stack([self.z @ beta.reshape(-1, self.width).T, np.zeros(u.shape[0])])
        p = np.where(self.own, 1.0 + u, u) * np.exp(-np.clip(moves, -FARTHEST, FARTHEST))
        p /= p.sum(axis=1, keepdims=True)
        others = np.where(self.own | (p < CERTAIN), 0.0, p)
        return others - self.own * others.sum(axis=1, keepdims=True)

    def cost(self, u: Array, slope: Array, error: Array, one: Array, error_one: Array) -> tuple[float, float]:
        """Return tau, and the length of the move."""
        e, off = self._picked(slope, one) / self.scale, self._picked(error, error_one) / self.scale
        if not e.any() and not off.any():
            return 0.0, 0.0
        if not self.trust > 0:
            return math.inf, math.inf
        inverse = self.inverse / self.scale[:, None]
        half = np.linalg.norm(self.inverse.T @ e) * (1 + 128 * U / self.least)
        half += np.linalg.norm(off) / self.least + np.linalg.norm(self.still @ e) / STILL
        length = float(half) / self.trust
        parts = np.split(inverse, self.p.shape[1] - 1)
        sizes = (np.linalg.norm(self.z @ part, axis=1).max() for part in parts)
        return 2.0 * float(max(sizes, default=0.0)) * length * (1 + 1e-6) / self.trust, length


class _Kept(NamedTuple):
    """Columns that do not depend on each other, and those that follow from them."""

    columns: Array
    combination: Array  # of the kept columns, for each dependent one
    dependent: Array  # exactly
    doubtful: Array  # but for their last bits
    positive: bool  # whether no combination has a negative coefficient
    left: dict[int, Array]  # of kept columns that others nearly explain: what these leave of them


def _independent_of(claim: LinearClaim, q: Array, u: Array, columns: Array) -> _Kept:
    """Return which of these columns do not depend on others of them."""
    if columns.size == claim.X.shape[1]:
        return _independent(claim, q, u)
    kept = _independent(replace(claim, X=claim.X[:, columns], w=claim.w[columns]), q, u)
    return kept._replace(
        columns=columns[kept.columns],
        dependent=columns[kept.dependent],
        doubtful=columns[kept.doubtful],
        left={int(columns[j]): values for j, values in kept.left.items()},
    )


def _independent(claim: LinearClaim, q: Array, u: Array) -> _Kept:  # noqa: PLR0915 - one rule, told in order
    """Return the columns by the rule above, of the rows that have a slope: no others limit where u may go."""
    X, some = claim.X, np.ones(q.size, dtype=bool)
    if claim.loss not in REAL and (u != 0).any():
        some = (u != 0).any(axis=1)
        X, q = X[np.flatnonzero(some)], q[some] / q[some].sum()
    X = X.toarray() if sp.issparse(X) else X
    n, d = X.shape
    mean = X[0] + q @ (X - X[0]) if claim.fit_intercept else np.zeros(d)
    Z = X - mean
    # A row that hardly counts may still tell two columns apart: the rule has to hold for equal weights too.
    shares = [q, np.full(n, 1.0 / n)]
    sizes = [np.sqrt(share @ X**2) for share in shares]
    lengths = [np.sqrt(share @ Z**2) for share in shares]
    rounded = DEPENDENT * claim.eps
    constant = np.all([length <= rounded * size for length, size in zip(lengths, sizes, strict=True)], axis=0)
    moving = np.array([bool(Z[:, j].any()) for j in range(d)], dtype=bool)
    doubtful, positive = [int(j) for j in np.flatnonzero(constant & moving)], True
    exact = {int(j): np.zeros(0) for j in np.flatnonzero(constant & ~moving)}
    columns = np.flatnonzero(~constant)
    scaled = np.sqrt(q)[:, None] * Z[:, columns]
    scaled /= np.linalg.norm(scaled, axis=0) * (1.0 + 1e-9 * np.arange(columns.size))
    R, order = la.qr(scaled, mode="r", pivoting=True) if columns.size else (np.zeros((0, 0)), columns)
    most = n - int(claim.fit_intercept)
    # Columns far from 0 may owe more than that to the rounding of their entries.
    apart = (lengths[0][columns] > 0).all()
    far = np.max(sizes[0][columns] / lengths[0][columns], initial=1.0) if apart else np.inf
    clear = max(CLEAR, 1e3 * claim.eps) + 16.0 * (1.0 + columns.size) * rounded * far
    clear = min(int(np.count_nonzero(np.abs(np.diag(R)) > clear)), most)
    kept = [int(j) for j in columns[order[:clear]]]
    nearly: dict[int, Array] = {}
    rest = [int(j) for j in columns[order[clear:]]]
    while rest and len(kept) < most:
        column = rest.pop(0)
        C, left = _combination(X, q, mean, np.array(kept, dtype=int), column, claim.fit_intercept)
        bounds = [size[column] + np.abs(C) @ size[kept] for size in sizes]
        lefts = [np.sqrt(share @ left**2) for share in shares]
        if any(one > rounded * size for one, size in zip(lefts, bounds, strict=True)):
            kept.append(column)
            nearly[column] = np.zeros(claim.X.shape[0])
            nearly[column][some] = left
            continue
        positive &= bool((C >= -1e-9).all())
        spread = [length[column] + np.abs(C) @ length[kept] for length in lengths]
        if all(one <= NOTHING * size for one, size in zip(lefts, spread, strict=True)):
            exact[column] = C
        else:
            doubtful.append(column)
    if rest:  # As many columns as rows have directions: the others follow from them, whatever they are.
        follow = _combinations(np.sqrt(q)[:, None] * Z[:, kept], np.sqrt(q)[:, None] * Z[:, rest])
        positive &= bool((follow >= -1e-9).all())
        exact.update(zip(rest, follow.T, strict=True))
    combination = np.zeros((len(kept), len(exact)))
    for place, C in enumerate(exact.values()):
        combination[: C.size, place] = C
    at = np.argsort(kept)
    return _Kept(
        np.array(kept, dtype=int)[at],
        combination[at],
        np.array(list(exact), dtype=int),
        np.array(doubtful, dtype=int),
        positive,
        nearly,
    )


def _combinations(kept: Array, rest: Array) -> Array:
    """Return C with rest = kept C, where that exists."""
    scale = np.linalg.norm(kept, axis=0)
    Q, R = np.linalg.qr(kept / scale)
    C = la.solve_triangular(R, Q.T @ rest)
    C += la.solve_triangular(R, Q.T @ (rest - kept / scale @ C))
    return np.asarray(C / scale[:, None])


def _combination(
    X: Array, q: Array, mean: Array, kept: Array, column: int, centred: bool
) -> tuple[Array, Array]:
    """Return the best combination of the kept columns (and a constant), and what it leaves of the column."""
    ones = np.ones((X.shape[0], int(centred)))
    basis = np.hstack([X[:, kept], ones])
    weighted = np.sqrt(q)[:, None] * np.hstack([X[:, kept] - mean[kept], ones])
    scale = np.linalg.norm(weighted, axis=0)
    scale[scale == 0] = 1.0
    Q, R = np.linalg.qr(weighted / scale)
    C, low = np.zeros(basis.shape[1]), np.zeros(basis.shape[1])
    left = X[:, column].copy()
    for _ in range(6):
        step = la.solve_triangular(R, Q.T @ (np.sqrt(q) * left)) / scale
        if centred:  # coefficients of x - m become those of x
            step[-1] -= mean[kept] @ step[:-1]
        # C + low has the digits of both.
        total_low = low + step
        C, low = C + total_low, total_low - ((C + total_low) - C)
        p, e = products(basis, -C)
        p2, e2 = products(basis, -low)
        left = total(np.hstack([X[:, [column]], p, p2]), np.hstack([0.0 * X[:, [column]], e, e2]))
    return C[: kept.size], left


def row_parts(X: Any, entries: int = ENTRIES) -> Iterator[slice]:
    """Go through the rows, so many at a time as may be copied."""
    stored = X.nnz if sp.issparse(X) else X.size
    step = max(entries * X.shape[0] // max(stored, 1), 1)
    return (slice(start, start + step) for start in range(0, X.shape[0], step))
