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
from sixfold.verify.linear.check import MAX_DOUBLED
from sixfold.verify.linear.claim import EPS, LinearClaim, U, counted_rows
from sixfold.verify.linear.sums import Sums
from sixfold.verify.recomputed import Recomputed

Array = NDArray[Any]


def recompute(claim: LinearClaim, claimed: Certificate) -> Recomputed:
    """Return |w|^2 / 2 and how far it is from its minimum; infinitely far if a row is inside the margin."""
    claim, q = counted_rows(claim)
    X, y, w, b = claim.X, claim.y, claim.w, claim.b
    dual = np.zeros_like(y) if claim.dual is None else claim.dual
    sums = Sums(X, q, doubled=X.shape[0] * X.shape[1] * w.shape[1] <= MAX_DOUBLED)
    score, off = sums.scores(w, b, np.zeros_like(b))
    allowed = bool((y * score >= 1.0 - off - 2 * U).all())
    a = np.maximum(-dual * y, 0.0)
    if claim.fit_intercept:  # both sides weigh as much as the heavier one
        sides = np.where(y > 0, a, 0.0).sum(axis=0), np.where(y < 0, a, 0.0).sum(axis=0)
        up, down = (np.maximum(*sides) / np.where(side > 0, side, np.inf) for side in sides)
        a = a * np.where(y > 0, up, down)
    slope, left = sums.slopes(a * y, claim.fit_intercept)
    error, left_error = sums.slope_errors(a * y, slope, claim.fit_intercept)
    total = a.sum(axis=0)
    # What is left of sum_i a_i y_i may be taken off one side, which moves the slope by as large a share.
    share = (np.abs(left) + left_error) / np.where(total > 0, total, 1.0) * 4.0 * claim.fit_intercept
    sizes = np.zeros_like(w)
    for part, Z in sums.parts():
        sizes += np.asarray(abs(Z).T @ a[part])
    length = np.linalg.norm(slope, axis=0)
    objective = 0.5 * float(np.square(w).sum())
    lower = 0.5 * np.square(np.divide(total, length, out=np.zeros_like(total), where=length > 0))
    gap = max(objective - float(lower.sum()), 0.0) if allowed else np.inf
    # The bound moves by twice what its numerator and the length of the slope do.
    moved = np.linalg.norm(error + share * sizes, axis=0) / np.where(length > 0, length, 1.0)
    rounding = 1e-13 * objective + 4.0 * float(lower @ (moved + share + (X.shape[0] + 8) * U))
    found = Certificate(claimed.kind, objective, gap, objective, claimed.tolerance)
    allowance = (X.shape[1] + 16.0) * EPS * objective
    # The scale is the objective, too.
    largest = objective + allowance + 1e-13 * objective
    return Recomputed(found, allowance, claimed.gap + rounding, ("duality gap",), "", largest)
