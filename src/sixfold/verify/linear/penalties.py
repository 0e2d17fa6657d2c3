"""The penalty's part of the bound: pen(w) + pen*(v) - w.v >= 0, pen(w) = sum_j (l1 |w_j| + l2 w_j^2 / 2).

With z where w.v - pen(w) is largest, z_j = sign(v_j) (|v_j| - l1)+ / l2, it is

    sum_j (l1 |w_j| - w_j clip(v_j, -l1, l1))  +  l2 |w - z|^2 / 2

and v off by E adds |w - z|.E + |E|^2 / (2 l2) at most. Without squares it is finite for |v_j| <= l1 alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.verify.linear.claim import LinearClaim, U

Array = NDArray[Any]


def penalty_of(claim: LinearClaim) -> Array:
    """Return the penalty of each column of w."""
    penalty = claim.l1 * np.abs(claim.w).sum(axis=0)
    if claim.l2 > 0:  # squares may be too large for a double
        penalty += claim.l2 / 2 * np.square(claim.w).sum(axis=0)
    return np.where((claim.w < 0).any(axis=0), np.inf, penalty) if claim.positive else penalty


def _excess_over_l1(claim: LinearClaim, v: Array) -> Array:
    """Return by how much each v_j exceeds l1; with w >= 0 it may be as negative as it likes."""
    return np.maximum((v if claim.positive else np.abs(v)) - claim.l1, 0.0)


def penalty_excess(claim: LinearClaim, v: Array) -> Array:
    """Return pen(w) + pen*(v) - w.v; w = z is where w.v - pen(w) is largest."""
    w, l1, l2 = claim.w, claim.l1, claim.l2
    slack = l1 * np.abs(w) - w * np.clip(v, -np.inf if claim.positive else -l1, l1)
    excess = np.maximum(slack, 0.0).sum(axis=0)
    if l2 > 0:
        z = np.copysign(_excess_over_l1(claim, v), v) / l2
        excess += l2 / 2 * np.square(w - z).sum(axis=0)
    return np.asarray(excess)


def penalty_rounding(claim: LinearClaim, v: Array, error: Array) -> Array:
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
