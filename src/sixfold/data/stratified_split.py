"""Rows that are held out: the same share of every class, chosen by a seed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def held_out(labels: Array, counts: Array, fraction: float, seed: int) -> NDArray[np.bool_]:
    """Return which rows are held out.

    Of the m rows of a class round(fraction * m) are, but never all of them, so that none is unknown.

    Parameters
    ----------
    labels : ndarray of int, shape (rows,)
        The class of each row.
    counts : ndarray of bool, shape (rows,)
        Which rows count; the others are not held out, nor do they make a class larger.
    fraction : float
    seed : int

    Examples
    --------
    >>> held_out(np.array([0, 0, 0, 0, 1, 1]), np.ones(6, dtype=bool), 0.5, seed=1).sum()
    np.int64(3)
    """
    random = np.random.default_rng(seed)
    order = random.permutation(np.flatnonzero(counts))
    chosen = np.zeros(labels.size, dtype=bool)
    order = order[np.argsort(labels[order], kind="stable")]  # class by class
    _, first, sizes = np.unique(labels[order], return_index=True, return_counts=True)
    most = np.minimum(np.round(fraction * sizes), sizes - 1)
    place = np.arange(order.size) - np.repeat(first, sizes)  # within the class
    chosen[order[place < np.repeat(most, sizes)]] = True
    return chosen
