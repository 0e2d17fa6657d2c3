"""Sums of products as if in twice the precision, for checks where rounding alone would decide.

    a b = p + e exactly,  p = fl(a b);      a + b = s + t exactly,  s = fl(a + b)

so that errors can be summed as well (Dekker 1971; Ogita, Rump and Oishi 2005). What is left of them is about
1e-32 of the sum of absolute values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def products(a: Array, b: Array) -> tuple[Array, Array]:
    """Return p and e."""
    p = a * b
    a1 = _upper_half(a)
    b1 = _upper_half(b)
    a2, b2 = a - a1, b - b1
    return p, a2 * b2 - (((p - a1 * b1) - a2 * b1) - a1 * b2)


def _upper_half(a: Array) -> Array:
    c = a * (2.0**27 + 1.0)
    return c - (c - a)


def total(terms: Array, errors: Array) -> Array:
    """Return the sum of all terms and errors over the last axis, rounded once."""
    while terms.shape[-1] > 1:
        if terms.shape[-1] % 2:
            zero = np.zeros((*terms.shape[:-1], 1))
            terms, errors = np.concatenate([terms, zero], axis=-1), np.concatenate([errors, zero], axis=-1)
        a, b = terms[..., ::2], terms[..., 1::2]
        s = a + b
        back = s - b
        t = (a - back) + (b - (s - back))
        terms, errors = s, errors[..., ::2] + errors[..., 1::2] + t
    return (terms + errors)[..., 0]


def dots(rows: Array, vector: Array, *more: Array) -> Array:
    """Return rows @ vector plus the other columns of numbers, one a row."""
    p, e = products(rows, vector)
    extra = (
        np.stack(np.broadcast_arrays(*more, rows[:, 0])[:-1], axis=1)
        if more
        else np.zeros((rows.shape[0], 0))
    )
    return total(np.hstack([p, extra]), np.hstack([e, np.zeros_like(extra)]))
