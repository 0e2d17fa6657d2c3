"""The claim of a hard margin: w is allowed, and no other allowed w is shorter by more than the gap says.

    y_i (w.x_i + b) >= 1  for all rows,     |w|^2 / 2  -  (sum_i a_i)^2 / (2 |sum_i a_i y_i x_i|^2)  <=  gap

for any a_i >= 0, with sum_i a_i y_i = 0 if there is an intercept: an allowed w has sum_i a_i <= sum_i a_i y_i
(w.x_i + b) = w.(sum_i a_i y_i x_i) <= |w| |sum_i a_i y_i x_i|. Several columns of labels are added up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.certificate import Certificate
from sixfold.verify.linear import EPS, LinearClaim, counted_rows, row_parts
from sixfold.verify.recomputed import Recomputed

Array = NDArray[Any]


def recompute(claim: LinearClaim, claimed: Certificate) -> Recomputed:
    """Return |w|^2 / 2 and how far it is from its minimum; infinitely far if a row is inside the margin."""
    claim, _ = counted_rows(claim)
    X, y, w, b = claim.X, claim.y, claim.w, claim.b
    (n, d), dual = X.shape, np.zeros_like(y) if claim.dual is None else claim.dual
    margin = y * (np.asarray(X @ w) + b)
    a = np.maximum(-dual * y, 0.0)
    if claim.fit_intercept:  # both sides weigh as much as the heavier one
        sides = np.where(y > 0, a, 0.0).sum(axis=0), np.where(y < 0, a, 0.0).sum(axis=0)
        up, down = (np.maximum(*sides) / np.where(side > 0, side, np.inf) for side in sides)
        a = a * np.where(y > 0, up, down)
    slope, size = np.zeros_like(w), np.zeros_like(w)
    allowed = True
    for part in row_parts(X):
        absolute = abs(X[part])
        rounding = (d + 4) * EPS * (np.asarray(absolute @ np.abs(w)) + np.abs(b) + 1.0)
        allowed &= bool((margin[part] >= 1.0 - rounding).all())
        slope += np.asarray(X[part].T @ (a * y)[part])
        size += np.asarray(absolute.T @ a[part])
    length = np.linalg.norm(slope, axis=0)
    objective, total = 0.5 * float(np.square(w).sum()), a.sum(axis=0)
    lower = 0.5 * np.square(np.divide(total, length, out=np.zeros_like(total), where=length > 0))
    gap = max(objective - float(lower.sum()), 0.0) if allowed else np.inf
    # The slope is off by the rounding of its sums, on either side, and the bound by twice that of its length.
    off = (8.0 + np.sqrt(n)) * EPS * np.linalg.norm(size, axis=0) / np.where(length > 0, length, 1.0)
    rounding = 1e-13 * objective + 4.0 * float(lower @ off)
    found = Certificate(claimed.kind, objective, gap, objective, claimed.tolerance)
    largest = (1 + 1e-13) * objective
    return Recomputed(found, 16.0 * EPS * objective, claimed.gap + rounding, ("duality gap",), "", largest)
