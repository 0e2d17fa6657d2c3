"""A linear model and the data it is said to be fitted on.

R(w, b) = sum_j (l1 |w_j| + l2 w_j^2 / 2) + sum_i q_i f(s_i, y_i),    s = w.x + b,  q = weight / their sum
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

EPS = float(np.finfo(np.float64).eps)
U = EPS / 2


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

    @property
    def numbers(self) -> bool:
        """Whether y are numbers, and not classes."""
        return self.loss in ("squared", "absolute", "cubed")


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
