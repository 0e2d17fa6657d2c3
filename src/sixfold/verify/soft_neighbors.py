"""The claim of neighbourhood components: the loss of a map L, and how steep it is there.

    loss(L) = 1 - sum_i q_i p_i / sum_i q_i <= objective,      |slope| |L| <= gap

    p_ij = q_j exp(-|L x_i - L x_j|^2) / (sum over k != i of q_k exp(-|L x_i - L x_k|^2) + max(q_i - 1, 0))
    p_i  = sum of p_ij over the rows j of the class of i, and of the copies of row i itself
    slope = -2 / sum_i q_i  sum_ij (a_ij + a_ji) (L x_j - L x_i) x_i'
    a_ij = q_i p_ij ([same class] - p_i)

with both lengths those of all entries as one vector. No bound is claimed: the loss is not convex. Everything
is computed by its definition for a block of rows at a time, each with all others. Where each exponent is off
by at most e, p_i is off by (exp(2 e) - 1) p_i (1 - p_i).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from sixfold.certificate import Certificate
from sixfold.errors import CertificateError
from sixfold.verify.recomputed import REASONS, Recomputed

Array = NDArray[Any]

KIND = "stationary point"
U = 2.0**-53
BLOCK_NUMBERS = 1 << 21  # distances that are held at a time
LEFT_OUT = 1e-12  # of the weights of a row's neighbours, at most
TOO_FAR_OFF = 1e-6  # of an exponent: from there on distances are sums of squared differences


def recompute(X: Array, index: Array, q: Array, components: Array, claimed: Certificate) -> Recomputed:
    """Return loss and slope of the components on these rows."""
    if components.ndim != 2 or components.shape[1] != X.shape[1] or not np.isfinite(components).all():
        raise CertificateError(
            f"components_ is no matrix of finite numbers with {X.shape[1]} columns, but of shape "
            f"{components.shape}. {REASONS}"
        )
    counted = q > 0
    X, index, q = X[counted].astype(np.float64), index[counted], q[counted]
    L, total = components.astype(np.float64), float(q.sum())
    unit = 2.0 ** np.floor(np.log2(max(float(np.abs(X).max()), np.finfo(float).tiny)))
    X, L = X / unit, L * unit
    X = X - (q @ X) / total
    Z = X @ L.T
    off = _exponents_off(X, L, Z)
    by_differences = bool((off > TOO_FAR_OFF).any())
    pulls, right, ahead = _pulls(Z, index, q, by_differences)
    slope = 2.0 / total * _length(pulls.T @ X) * _length(L)
    loss = 1.0 - float(q @ right) / total
    each = _probabilities_off(right, ahead, off) + 2.0 * (X.shape[0] + 30.0) * U
    rounding = min(float(q @ each) / total + 4.0 * U, 1.0)
    found = Certificate(KIND, loss, slope, 1.0, claimed.tolerance, {}, claimed.claim, rounding=rounding)
    # A fit that ended before the first loss was known claims 1. Others add their rounding to a loss that may
    # be off by it, which is larger from sums of products than from the differences that are looked at here.
    above = 2.0 * claimed.rounding if np.isfinite(claimed.gap) else 1.0
    steep = _steepness(X, L, Z, q, right, off)
    return Recomputed(
        found,
        rounding + min(claimed.rounding, rounding + 1e-9),
        claimed.gap * (1.0 + 1e-9) + steep,
        (KIND,),
        "",
        1.0,
        overstated=above,
    )


def _length(values: Array) -> float:
    """Return the length of all entries as one vector, whose squares may overflow."""
    largest = float(np.abs(values).max(initial=0.0))
    return largest * float(np.linalg.norm(values / largest)) if largest > 0 else 0.0


def _exponents_off(X: Array, L: Array, Z: Array) -> Array:
    """Return by how much the squared distances of each row may be off at most."""
    image = (X.shape[1] + 4.0) * U * _length(L) * np.sqrt(np.square(X).sum(axis=1))
    farthest = np.sqrt(np.square(Z).sum(axis=1))
    farthest = farthest + farthest.max()
    off: Array = (2.0 * L.shape[0] + 20.0) * U * np.square(farthest) + 4.0 * farthest * (image + image.max())
    return off


def _probabilities_off(right: Array, ahead: Array, off: Array) -> Array:
    """Return by how much each p_i may be off at most.

    ``ahead`` is by how much the best exponent of a row's class is above that of the others: as the sums are
    of at most n terms, the logarithm of the odds differs from it by at most log n.
    """
    several = np.log(right.size)
    least, most = expit(ahead - several - 2.0 * off), expit(ahead + several + 2.0 * off)
    with np.errstate(over="ignore", invalid="ignore"):
        by_odds = np.expm1(2.0 * off) * right * (1.0 - right)
    by_odds = np.where(off < 1.0, by_odds, 1.0)
    result: Array = np.minimum(by_odds, np.maximum(right - least, most - right))
    return result


def _steepness(X: Array, L: Array, Z: Array, q: Array, right: Array, off: Array) -> float:
    """Return by how much the slope, times the length of L, may be off at most.

    It is made of a_ij, of which those of row i add up to 2 q_i p_i (1 - p_i). They are off as p_ij is, and as
    sums and what a solver leaves out of them are.
    """
    sizes = 4.0 * np.sqrt(np.square(Z).sum(axis=1).max() * np.square(X).sum(axis=1).max())
    with np.errstate(over="ignore", invalid="ignore"):
        each = np.expm1(2.0 * off.max()) * right * (1.0 - right) + 4.0 * (sum(X.shape) + 30.0) * U + LEFT_OUT
        result = 8.0 * float(q @ each) / float(q.sum()) * sizes * _length(L)
    return float(result) if off.max() < 1.0 else np.inf


def _pulls(Z: Array, index: Array, q: Array, by_differences: bool) -> tuple[Array, Array, Array]:
    """Return sum_j (a_ij + a_ji) (z_j - z_i), p_i and by how much the class is ahead, of each row."""
    count = Z.shape[0]
    pulls, right, ahead = np.zeros_like(Z), np.zeros(count), np.zeros(count)
    log_q, lengths = np.log(q), np.square(Z).sum(axis=1)
    with np.errstate(divide="ignore"):
        log_copies = np.log(np.maximum(q - 1.0, 0.0))
    size = max(BLOCK_NUMBERS // count, 1)
    for first in range(0, count, size):
        here = np.arange(first, min(first + size, count))
        if by_differences:
            D = sum(np.square(column[here, None] - column) for column in Z.T)
        else:
            D = np.maximum(lengths[here, None] + lengths - 2.0 * (Z[here] @ Z.T), 0.0)
        scores = log_q - D
        scores[np.arange(here.size), here] = log_copies[here]
        top = scores.max(axis=1, keepdims=True)
        p = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
        sums = p.sum(axis=1, keepdims=True)
        p = np.divide(p, sums, out=np.zeros_like(p), where=sums > 0)
        same = index[here, None] == index
        right[here] = (p * same).sum(axis=1)
        if by_differences:
            own, other = (np.where(part, scores, -np.inf).max(axis=1) for part in (same, ~same))
            known = own > -np.inf
            ahead[here] = np.where(known, own, 0.0) - np.where(known, other, np.inf)
        a = q[here, None] * p * (same - right[here, None])
        pulls[here] += a @ Z - a.sum(axis=1, keepdims=True) * Z[here]
        pulls += a.T @ Z[here] - a.sum(axis=0)[:, None] * Z
    return pulls, right, ahead
