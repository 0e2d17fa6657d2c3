"""The claim of a linear model: no w, b have an objective that is lower by more than the gap.

    R(w, b) = sum_j (l1 |w_j| + l2 w_j^2 / 2) + sum_i q_i f(s_i, y_i),    s = w.x + b,  q = weight / their sum

Fenchel's inequality f(s) + f*(u) >= s u bounds the minimum for every u with sum_i q_i u_i = 0 (which the
intercept asks for): with v = -sum_i q_i u_i x_i,

    R(w, b) - min R  <=  sum_i q_i (f(s_i) + f*(u_i) - s_i u_i)  +  (pen(w) + pen*(v) - w.v)

whatever u is. A candidate (the model's dual point, or the slopes of the loss) is moved to where both
conjugates are finite: into the domain of f*, to sum 0, off the columns of X where there is no penalty (v =
0), and is made shorter until |v_j| <= l1 where there are absolute values only. Each bracket is a sum of terms
that are never negative, so that no digits cancel. Several targets are added up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit, logsumexp, xlogy

from sixfold.certificate import Certificate
from sixfold.verify.recomputed import Recomputed

Array = NDArray[Any]

EPS = float(np.finfo(np.float64).eps)
ENTRIES = 1 << 22  # of X that are copied at a time
NO_SLOPE = 1e-12  # of the sum of absolute values: what rounding leaves of a slope that was projected out
MAX_SPARSE_COLUMNS = 4000  # of a sparse table up to which the d x d matrix of its products is formed


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


def recompute(claim: LinearClaim, claimed: Certificate) -> Recomputed:
    """Return objective and gap of the claim, and what rounding may have done to them."""
    claim, q = counted_rows(claim)
    rows = _Softmax(claim.y, claim.b.size) if claim.loss == "softmax" else _OneScore(claim.loss, claim.y)
    score = np.asarray(claim.X @ claim.w) + claim.b
    by_score = rows.together(q @ rows.value(score)) + rows.together(_penalty(claim))
    objective, gap, condition = float(by_score.sum()), np.inf, 1.0
    if np.isfinite(objective):
        u, v, condition = _feasible(claim, rows, q, score)
        excess = rows.together(q @ rows.excess(score, u)) + rows.together(_penalty_excess(claim, v))
        gap = float(np.minimum(by_score, excess).sum())  # no loss is negative
    scale, at_zero = _constant_model(rows, q, claim.fit_intercept)
    found = Certificate(claimed.kind, objective, gap, scale, claimed.tolerance)
    slack, largest_gap = _allowances(claim, rows, q, score, objective, condition, claimed)
    slack += 100 * EPS * objective + 1e-30 * at_zero  # exp and log have their own rounding, and may underflow
    # A batch, of which no bound but zero is claimed, is judged by the model that predicts zero.
    largest = (scale if claimed.gap < claimed.objective else max(scale, at_zero)) + 1e-13 * at_zero
    plain = claim.loss == "squared" and claim.l1 == 0 and not claim.positive
    kinds = ("duality gap", *["least squares"] * plain)
    return Recomputed(found, slack, largest_gap, kinds, scale_allowance=largest)


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

    def together(self, values: Array) -> Array:
        return values.sum(keepdims=True)

    def balanced(self, u: Array, q: Array) -> Array:
        """Return u that gives every class as much as it has rows: what is too much goes where it lacks."""
        p = u + self.own
        have, want = q @ p, q @ self.own
        kept, lack = np.minimum(want / np.where(have > 0, have, 1.0), 1.0), np.maximum(want - have, 0.0)
        moved = np.outer(p @ (1.0 - kept), lack / lack.sum()) if lack.any() else 0.0
        return p * kept + moved - self.own


def _constant_model(rows: _OneScore | _Softmax, q: Array, fit_intercept: bool) -> tuple[float, float]:
    """Return the loss of predicting the mean of numbers, and zero; 1e-30 is for a constant target."""

    def loss(constant: Array) -> float:
        return float((q @ rows.value(np.broadcast_to(constant, (q.size, rows.scores)))).sum())

    at_zero = loss(np.zeros(rows.scores))
    return (loss(q @ rows.y) + 1e-30 * at_zero if rows.real and fit_intercept else at_zero), at_zero


# -- penalties ---------------------------------------------------------------------------------------------


def _penalty(claim: LinearClaim) -> Array:
    """Return the penalty of each column of w."""
    penalty = claim.l1 * np.abs(claim.w).sum(axis=0) + claim.l2 / 2 * np.square(claim.w).sum(axis=0)
    return np.where((claim.w < 0).any(axis=0), np.inf, penalty) if claim.positive else penalty


def _excess_over_l1(claim: LinearClaim, v: Array) -> Array:
    """Return by how much each v_j exceeds l1; with w >= 0 it may be as negative as it likes."""
    return np.maximum((v if claim.positive else np.abs(v)) - claim.l1, 0.0)


def _penalty_excess(claim: LinearClaim, v: Array) -> Array:
    """Return pen(w) + pen*(v) - w.v; w = z is where w.v - pen(w) is largest."""
    w, l1, l2 = claim.w, claim.l1, claim.l2
    z = np.copysign(_excess_over_l1(claim, v), v) / l2 if l2 > 0 else np.zeros_like(w)
    slack = l1 * np.abs(w) - w * np.clip(v, -np.inf if claim.positive else -l1, l1)
    return np.asarray(l2 / 2 * np.square(w - z).sum(axis=0) + np.maximum(slack, 0.0).sum(axis=0))


# -- a feasible candidate ----------------------------------------------------------------------------------


def _feasible(
    claim: LinearClaim, rows: _OneScore | _Softmax, q: Array, score: Array
) -> tuple[Array, Array, float]:
    """Return u, v, and the condition number of the columns where u had to be projected off them."""
    X, free, condition = claim.X, claim.l1 == claim.l2 == 0.0, 1.0
    u = rows.slope(score) if claim.dual is None else np.clip(claim.dual, rows.low, rows.high)
    if claim.fit_intercept:
        u = rows.balanced(u, q)
    if free:
        u, condition = _projected(claim, u, q)
        # Rounding gives a sign to slopes that are 0.
        u = np.where(((rows.low == 0) & (u < 0)) | ((rows.high == 0) & (u > 0)), 0.0, u)
    v = -np.asarray(X.T @ (q[:, None] * u))
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.where(u > 0, rows.high / u, np.where(u < 0, rows.low / u, np.inf))
        shorter = ends.min(axis=0, initial=1.0)
        if free:
            # Rounding leaves a slope of the usual size also to rows that have none.
            sizes = q[:, None] * np.maximum(np.abs(u), q @ np.abs(u))
            noise = np.zeros_like(v)
            for part in row_parts(X):
                noise += NO_SLOPE * np.asarray(abs(X[part]).T @ sizes[part])
            if rows.name == "softmax":  # the slopes of a row are rounded by the size of the largest
                noise = noise.max(axis=1, keepdims=True)
            shorter = np.where((_excess_over_l1(claim, v) <= noise).all(axis=0), shorter, 0.0)
            v = np.minimum(v, 0.0) if claim.positive else np.zeros_like(v)
        elif claim.l2 == 0.0:
            largest = (_excess_over_l1(claim, v) + claim.l1).max(axis=0, initial=0.0)
            shorter = np.minimum(shorter, claim.l1 / largest)
    if rows.name == "softmax":  # the scores of a row are one vector
        shorter = np.full_like(shorter, shorter.min())
    return np.clip(shorter * u, rows.low, rows.high), shorter * v, condition


def _projected(claim: LinearClaim, u: Array, q: Array) -> tuple[Array, float]:
    """Return u moved along the columns until sum_i q_i u_i x_i is 0, or not negative if w >= 0."""
    X = claim.X
    if sp.issparse(X) and X.shape[1] > MAX_SPARSE_COLUMNS:
        return u, 1.0
    mean = np.asarray(q @ X) if claim.fit_intercept else np.zeros(X.shape[1])
    lengths, vectors, singular = _principal_axes(X, q, mean)
    # One pass leaves eps times the condition number; the second and third remove that too.
    for _ in range(3):
        slope = np.asarray(X.T @ (q[:, None] * u))
        slope = np.minimum(slope, 0.0) if claim.positive else slope
        beta = vectors @ ((vectors.T @ (slope / lengths)) / singular[:, None] ** 2) / lengths
        u = u - (np.asarray(X @ beta) - mean @ beta)
    return u, float(singular[0] / singular[-1]) if singular.size else 1.0


def _principal_axes(X: Any, q: Array, mean: Array) -> tuple[Array, Array, Array]:
    """Return lengths L, V and S with sum_i q_i (x_i - mean) (x_i - mean)' = L V S^2 V' L.

    Columns have one length first, so that their units do not decide the rank.
    """
    if sp.issparse(X):
        gram = np.asarray((X.T @ X.multiply(q[:, None]).tocsr()).toarray()) - np.outer(mean, mean)
        lengths = _lengths(np.sqrt(np.maximum(gram.diagonal(), 0.0)), mean, X.shape[0])
        values, vectors = np.linalg.eigh(gram / lengths / lengths.T)
        kept = values > np.maximum(values[-1:], 1.0) * 1e-13 * mean.size
        return lengths, vectors[:, kept][:, ::-1], np.sqrt(values[kept])[::-1]
    R: Array = np.zeros((0, mean.size))
    for part in row_parts(X):
        R = np.asarray(np.linalg.qr(np.vstack([R, np.sqrt(q[part, None]) * (X[part] - mean)]), mode="r"))
    lengths = _lengths(np.linalg.norm(R, axis=0), mean, X.shape[0])
    _, singular, rotation = np.linalg.svd(R / lengths.T, full_matrices=False)
    kept = singular > np.maximum(singular[:1], 1.0) * EPS * max(X.shape)
    return lengths, rotation[kept].T, singular[kept]


def _lengths(norms: Array, mean: Array, n: int) -> Array:
    # A constant column leaves the rounding of its mean when centred, which must not be scaled up to length 1.
    lengths = np.where(norms <= (8 + np.sqrt(n)) * EPS * np.abs(mean), np.abs(mean), norms)
    return np.where(lengths > 0, lengths, 1.0)[:, None]


def row_parts(X: Any) -> Iterator[slice]:
    """Go through the rows, so many at a time as may be copied."""
    stored = X.nnz if sp.issparse(X) else X.size
    step = max(ENTRIES * X.shape[0] // max(stored, 1), 1)
    return (slice(start, start + step) for start in range(0, X.shape[0], step))


# -- rounding ----------------------------------------------------------------------------------------------


def _allowances(
    claim: LinearClaim,
    rows: _OneScore | _Softmax,
    q: Array,
    score: Array,
    objective: float,
    condition: float,
    claimed: Certificate,
) -> tuple[float, float]:
    """Return by how much the objective may differ, and the largest gap that does not contradict the claim.

    A score of d columns is off by up to delta = (d + 2) eps (|w|.|x| + |b|), on both sides together and
    whatever the order of the sum; a convex loss then moves by at most delta times its steepest slope within
    delta. A sum over n rows adds sqrt(n) eps of its terms: rounding errors of long sums do not all point one
    way (Higham and Mary 2019). From there:

    objective   sum_i q_i slope_i delta_i, and the sums; for least squares, the solver may say that it put it
                together from moments, y'y - 2 w.X'y + w.X'X w, and is allowed what that costs at most
    slope of w  E_j = sum_i q_i |x_ij| (delta_i + sums |u_i|)
    gap         a term that is a square moves by its root: |E| / sqrt(l2) of the penalty's; for least squares
                without kink or constraint that of sum_i q_i delta_i^2, and without penalty that of the
                residuals, eps times the condition number. Others move by the objective's and by |w|.E; with
                absolute values u is made shorter until |v_j| <= l1, by a factor that moves by max E_j / l1.
                A millionth of the gap itself misleads nobody.
    """
    (n, d), w, squared = claim.X.shape, np.abs(claim.w), rows.name == "squared"
    sums = (8.0 + np.sqrt(n)) * EPS
    delta, error, moments = np.empty_like(score), np.zeros_like(w), 0.0
    mean_x, mean_y = (q @ claim.X, q @ claim.y) if claim.fit_intercept else (np.zeros(d), 0.0)
    for part in row_parts(claim.X):
        X = claim.X[part]
        delta[part] = (d + 2) * EPS * (np.asarray(abs(X) @ w) + np.abs(claim.b))
        if squared and claimed.rounding > 0:
            spread = abs(X) @ w + np.abs(mean_x) @ w if sp.issparse(X) else np.abs(X - mean_x) @ w
            moments += (sums + d * EPS) * float(
                (q[part] @ (np.abs(claim.y[part] - mean_y) + spread) ** 2).sum()
            )
    slope = np.maximum(*(np.abs(rows.slope(score + side * delta)) for side in (-1.0, 1.0)))
    for part in row_parts(claim.X):
        error += np.asarray(abs(claim.X[part]).T @ (q[part, None] * (delta + sums * slope)[part]))
    first = float((q @ (slope * delta)).sum() + sums * objective)
    gap, root = 1e-6 * claimed.gap, 2.0 * np.linalg.norm(error) / np.sqrt(claim.l2) if claim.l2 > 0 else 0.0
    if squared and claim.l1 == 0 and not claim.positive:
        root += 2.0 * np.sqrt((q @ delta**2).sum()) + 1e-15 * condition * np.sqrt(objective)
    else:
        gap += first + (w * error).sum()
        gap += min(error.max(initial=0.0) / claim.l1, 1.0) * 2.0 * objective if claim.l1 > 0 else 0.0
    gap += (np.sqrt(claimed.gap) + root) ** 2
    return first + min(claimed.rounding, moments), float(gap)
