"""The claims of a perceptron: what share of rows its planes have on the wrong side, and why none has less.

    wrong = sum_i q_i [y_i (w.x_i + b) <= 0],      margin = min_i y_i (w.x_i + b) / |(w, b)|

A proof that no plane separates is a convex combination of rows with

    sum_i c_i y_i (x_i, 1) = 0,   c_i > 0        so that   sum_i c_i y_i (w.x_i + b) = 0

for all w and b: one of its rows is wrong, and no plane has less than min_i q_i. Without intercept there is no
1. The classes of several planes are added up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.certificate import Certificate
from sixfold.errors import CertificateError
from sixfold.verify.recomputed import Recomputed

Array = NDArray[Any]

EPS = float(np.finfo(np.float64).eps)
ZERO = 1e-9  # of the sum of its absolute terms, column by column: what a combination that is 0 may come to
CHANGED = "The model was changed after the fit, or the data are not those of the fit."


@dataclass(frozen=True)
class SeparationClaim:
    """Planes, and the rows that prove that there are none."""

    X: Any  # ndarray or CSR array of shape (rows, columns), float64
    y: Array  # -1 and +1, of shape (rows, planes)
    weights: Array | None  # None where every row counts 1
    w: Array  # (columns, planes)
    b: Array  # (planes,)
    fit_intercept: bool
    proofs: list[tuple[Array, Array] | None]  # rows and c, one a plane


def recompute(claim: SeparationClaim, claimed: Certificate) -> Recomputed:
    """Return the share of wrong rows and the bound on it; raise where a proof or a margin does not hold."""
    X, y, w, b = claim.X, claim.y, claim.w, claim.b
    n, planes = y.shape
    q = np.full(n, 1.0 / n) if claim.weights is None else claim.weights / claim.weights.sum()
    bounds = [_bound(claim, q, plane) for plane in range(planes)]
    squares = X.multiply(X).sum(axis=1) if sp.issparse(X) else np.einsum("ij,ij->i", X, X)
    longest = np.sqrt(np.max(np.asarray(squares).ravel()[q > 0]) + claim.fit_intercept)
    length = np.sqrt(np.square(w).sum(axis=0) + b**2)
    signed = y * (np.asarray(X @ w) + b)
    margin = signed[q > 0].min(axis=0) / np.where(length > 0, length, 1.0)
    if not np.allclose(margin, claimed.details["margin"], rtol=1e-9, atol=1e-12 * longest):
        raise CertificateError(
            f"The certificate says the margin is {claimed.details['margin']}, but on these data it is "
            f"{margin.tolist()}. {CHANGED}"
        )
    wrong = float((q @ (signed <= 0.0)).sum())
    # Rows on the plane but for rounding may be on either side.
    doubtful = float((q @ (np.abs(signed) <= (X.shape[1] + 2) * EPS * longest * length)).sum())
    doubtful += (8.0 + np.sqrt(n)) * EPS * wrong
    found = Certificate(claimed.kind, wrong, wrong - sum(bounds), float(planes), claimed.tolerance)
    kinds: tuple[str, ...] = ("not separable",)
    if all(proof is None for proof in claim.proofs):
        # Without a row on the wrong side; where rounding may decide, either is right.
        separating = ("separating plane",) * bool(wrong <= doubtful)
        kinds = separating + ("unfinished plane",) * bool(wrong > 0.0 or doubtful > 0.0)
    return Recomputed(found, doubtful, claimed.gap + doubtful, kinds, scale_allowance=found.scale)


def _bound(claim: SeparationClaim, q: Array, plane: int) -> float:
    """Return what share of the rows is wrong at least, for all that is proved."""
    proof = claim.proofs[plane]
    if proof is None:
        return 0.0
    rows, c = proof
    if rows.size and rows.min() >= 0 and rows.max() < q.size and (q[rows] > 0).all() and (c > 0).all():
        x = claim.X[rows].toarray() if sp.issparse(claim.X) else claim.X[rows]
        signs = claim.y[rows, plane]
        # Where the signs balance each other, x may count from anywhere; from the mean no digits cancel.
        x = x - np.asarray(q @ claim.X) if claim.fit_intercept else x
        terms = (c * signs)[:, None] * np.column_stack([x, np.ones((rows.size, int(claim.fit_intercept)))])
        if (np.abs(terms.sum(axis=0)) <= ZERO * np.abs(terms).sum(axis=0)).all():
            return float(q[rows].min())
    raise CertificateError(
        "The rows of the proof do not span a point that lies in the hulls of both classes. The proof was "
        "changed after the fit, or the data are not those of the fit."
    )
