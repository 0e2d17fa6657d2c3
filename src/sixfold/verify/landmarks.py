"""What the space of landmarks holds of a kernel, and SVMs in that space: recomputed from the data.

With the landmarks C, L L' = K(C, C) and phi(x) = L^-1 K(C, x), the trace error is

    sum_i q_i (K(x_i, x_i) - |phi(x_i)|^2) / sum_i q_i K(x_i, x_i)                       (q: weights)

A binary SVM has coefficients beta of the landmarks, so that w = L' beta, and multipliers a of the rows. With
f_i = K(x_i, C) beta + b

    P = beta' K(C, C) beta / 2 + sum_i U_i max(0, 1 - y_i f_i)
    D = sum_i a_i - |sum_i a_i y_i phi(x_i)|^2 / 2           0 <= a_i <= U_i,   sum_i a_i y_i = 0

    P - min P  <=  P - D  <=  gap

for the least P of all w in the space of the landmarks, whatever beta and a are. Objectives, bounds and scales
add up.

Plain NumPy in float64, some rows at a time; only the kernel function, which is the definition, is shared.

Source: Boyd and Vandenberghe (2004), Convex optimization, section 5.5.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from sixfold.certificate import Certificate
from sixfold.errors import CertificateError
from sixfold.geometry.kernels import Kernel, Precomputed
from sixfold.verify.kernel import entry_rounding
from sixfold.verify.recomputed import REASONS, Recomputed

Array = NDArray[Any]

ENTRIES = 1 << 22  # kernel values that are held at a time
EPS = float(np.finfo(np.float64).eps)
# By how much normalization_ may miss making the landmarks orthonormal, in the precision it is in.
ORTHONORMAL = {np.dtype(np.float32): 0.05, np.dtype(np.float64): 0.05}


@dataclass(frozen=True)
class TraceClaims:
    """The landmarks of a model, and the data it is said to be fitted on.

    ``vectors`` are not looked at where the kernel is precomputed; ``weight`` is that of each row.
    """

    vectors: Any
    index: Array
    kernel: Kernel
    X: Any
    weight: Array

    @property
    def given(self) -> bool:
        """Whether X holds kernel values in place of rows."""
        return isinstance(self.kernel, Precomputed)

    def between(self) -> Array:
        """Return K of the landmarks with each other."""
        if self.given:
            return np.asarray(self.X[self.index][:, self.index], dtype=np.float64)
        vectors = self.vectors.astype(np.float64)
        return self.kernel(vectors, vectors)

    def blocks(self, between: Array) -> Iterator[tuple[slice, Array]]:
        """Go through K of some rows with the landmarks; those of the landmarks themselves are known."""
        step = max(ENTRIES // max(self.index.size, self.X.shape[1], 1), 1)
        vectors = None if self.given else self.vectors.astype(np.float64)
        for start in range(0, self.X.shape[0], step):
            part = slice(start, start + step)
            rows = self.X[part].astype(np.float64)
            K = np.asarray(rows[:, self.index] if self.given else self.kernel(rows, vectors))
            there = (self.index >= start) & (self.index < start + rows.shape[0])
            K[self.index[there] - start] = between[there]
            yield part, K


@dataclass(frozen=True)
class SVMClaims:
    """Binary SVMs in the space of landmarks.

    Attributes
    ----------
    coefficients : ndarray of shape (SVMs, landmarks)
        beta of each.
    intercept : ndarray of shape (SVMs,)
    multipliers : ndarray of shape (SVMs, rows)
        a y of each.
    y : ndarray of shape (SVMs, rows)
        -1 or +1; 0 for rows of other classes.
    upper : ndarray of shape (rows,)
        C times the weight of each row.
    """

    coefficients: Array
    intercept: Array
    multipliers: Array
    y: Array
    upper: Array


def recompute_trace(claims: TraceClaims, normalization: Array, claimed: Certificate) -> Recomputed:
    """Return the certificate of landmarks.

    Raises
    ------
    CertificateError
        If the landmarks are not those rows, if they depend on each other, or if ``normalization`` is another.
    """
    _require_rows(claims)
    between = claims.between()
    factor = _factor(between)
    if normalization.shape != between.shape:
        raise CertificateError(
            f"normalization_ makes {normalization.shape[0]} features of {between.shape[0]} landmarks. "
            f"{REASONS}"
        )
    inner = normalization.astype(np.float64) @ between @ normalization.astype(np.float64).T
    apart = float(np.abs(inner - np.eye(inner.shape[0])).max(initial=0.0))
    if not apart <= ORTHONORMAL[normalization.dtype]:
        raise CertificateError(
            f"normalization_ does not make the landmarks orthonormal: a product is off by {apart:.3g}. "
            f"{REASONS}"
        )
    error, rounding = _trace_error(claims, between, factor)
    found = Certificate(
        "trace error",
        error,
        error,
        1.0,
        claimed.tolerance,
        claim=f"{error:.4g} of the kernel's trace is left out",
    )
    # The claim is an upper bound: its own rounding is on top of it.
    rounding += min(claimed.rounding, 1e-3)
    return Recomputed(found, rounding, claimed.gap + rounding, ("trace error",), overstated=claimed.rounding)


def recompute_landmark_svms(
    claims: TraceClaims, svms: SVMClaims, trace_held: float, claimed: Certificate
) -> Recomputed:
    """Return the certificate of binary SVMs in the space of landmarks.

    Raises
    ------
    CertificateError
        If the landmarks are not those rows, if their space holds less of the trace than claimed, if
        multipliers are none of a dual point, or if the gap is judged by another scale.
    """
    _require_rows(claims)
    _require_feasible(svms)
    between = claims.between()
    factor = _factor(between)
    signed, scores = svms.multipliers.T, np.empty(svms.y.T.shape)
    sums = np.zeros((claims.index.size, signed.shape[1]))
    for part, K in claims.blocks(between):
        scores[part] = K @ svms.coefficients.T + svms.intercept
        sums += K.T @ signed[part]
    error, rounding = _trace_error(claims, between, factor)
    allowed = rounding + 1e-3  # it is said in three digits
    for said in (trace_held, float(claimed.details.get("trace_held", trace_held))):
        if not abs((1.0 - error) - said) <= allowed:
            raise CertificateError(
                f"The certificate says that the space of the landmarks holds {100.0 * said:.4g}% of the "
                f"trace, but on these rows it holds {100.0 * (1.0 - error):.4g}%. {REASONS}"
            )
    normals = solve_triangular(factor, sums, lower=True)
    primal = dual = scale = rounding = 0.0
    entry = entry_rounding(claims.kernel, claims.X, claims.vectors) + EPS * (claims.index.size + 16)
    lengths = np.sqrt(np.abs(claims.kernel.diagonal(claims.X)))
    for k in range(signed.shape[1]):
        y, beta = svms.y[k], svms.coefficients[k]
        upper = np.where(y != 0.0, svms.upper, 0.0)
        inside = np.maximum(1.0 - y * scores[:, k], 0.0)
        total = float(np.abs(svms.multipliers[k]).sum())
        primal += 0.5 * float(beta @ between @ beta) + float(upper @ inside)
        dual += total - 0.5 * float(normals[:, k] @ normals[:, k])
        scale += 2.0 * min(float(upper[y > 0].sum()), float(upper[y < 0].sum()))
        # Scores are off by entry |phi(x)| size, and what D is made of as much for gamma in place of beta.
        gamma = solve_triangular(factor, normals[:, k], lower=True, trans=1)
        size, other = (float(np.abs(v) @ lengths[claims.index]) for v in (beta, gamma))
        score_errors = entry * (lengths * size + abs(float(svms.intercept[k])) + 1.0)
        near = 1.0 - y * scores[:, k] > -score_errors
        alpha = np.abs(svms.multipliers[k])
        rounding += float(np.where(near, upper, 0.0) @ score_errors) + 0.5 * entry * (size**2 + other**2)
        rounding += entry * (total + other * float(alpha @ lengths))
    rounding += 1e-12 * (abs(primal) + abs(dual))
    if not abs(scale - claimed.scale) <= 1e-9 * scale:
        raise CertificateError(
            f"The certificate is relative to {claimed.scale!r}, these data have {scale!r}. {REASONS}"
        )
    gap = max(primal - dual, 0.0)
    found = Certificate(
        "duality gap",
        primal,
        gap,
        scale,
        claimed.tolerance,
        {"dual_objective": dual, "trace_held": 1.0 - error},
    )
    allowance = rounding + min(claimed.rounding, claimed.tolerance * scale + claimed.gap)
    return Recomputed(found, allowance, claimed.gap + rounding, ("duality gap",))


def _trace_error(claims: TraceClaims, between: Array, factor: Array) -> tuple[float, float]:
    """Return the relative trace error, and how far it may be off."""
    own = np.maximum(claims.kernel.diagonal(claims.X), 0.0)
    left, moved = np.empty(own.size), np.empty(own.size)
    for part, K in claims.blocks(between):
        phi = solve_triangular(factor, K.T, lower=True)
        left[part] = np.maximum(own[part] - np.square(phi).sum(axis=0), 0.0)
        # K(x, C) K(C, C)^-1: what rounding makes of K(C, C) moves u by a square of it.
        combined = solve_triangular(factor, phi, lower=True, trans=1)
        sizes = np.abs(combined).sum(axis=0)
        moved[part] = sizes * (sizes + 2.0)
    trace = float(claims.weight @ own)
    if not trace > 0.0:
        return 0.0, EPS
    # Features are off by what a factor of this condition makes of rounding.
    pivots = np.diagonal(factor)
    spread = float(pivots.max(initial=1.0) / pivots.min(initial=pivots.max(initial=1.0)))
    rounding = 64.0 * EPS * (1.0 + spread) * max(factor.shape[0], 16)
    largest = float(own[claims.index].max(initial=0.0))
    entry = entry_rounding(claims.kernel, claims.X, claims.vectors)
    rounding += (16.0 * EPS + entry) * largest * float(claims.weight @ moved) / trace
    return float(claims.weight @ left) / trace, rounding


def _factor(between: Array) -> Array:
    try:
        return np.asarray(cholesky(between, lower=True))
    except np.linalg.LinAlgError:
        raise CertificateError(
            f"Some landmarks are combinations of others, so their features are not defined. {REASONS}"
        ) from None


def _require_rows(claims: TraceClaims) -> None:
    """Raise a CertificateError unless the landmarks are the rows they are said to be."""
    if claims.given or not claims.index.size:
        return
    rows = claims.X[claims.index]
    there = rows.shape == claims.vectors.shape
    apart = abs(rows.astype(np.float64) - claims.vectors.astype(np.float64)).max() if there else np.inf
    if not apart <= 1e-6 * (1.0 + abs(claims.vectors).max()):
        raise CertificateError(f"The landmarks are not the rows of X that they are said to be. {REASONS}")


def _require_feasible(svms: SVMClaims) -> None:
    alpha = svms.multipliers * svms.y
    outside = np.abs(np.where(svms.y == 0.0, svms.multipliers, 0.0)).max(initial=0.0)
    excess = max(
        float(np.maximum(alpha - svms.upper * (1.0 + 1e-10), -alpha).max(initial=0.0)), float(outside)
    )
    if excess > 0.0:
        raise CertificateError(f"A multiplier is beyond its bounds by {excess:.3g}. {REASONS}")
    left, total = np.abs(svms.multipliers.sum(axis=1)), np.abs(svms.multipliers).sum(axis=1)
    if not np.all(left <= 1e-9 * total):
        raise CertificateError(f"The multipliers add up to {float(left.max()):.3g} instead of 0. {REASONS}")
