"""How wide a kernel is: gamma from sigma, or from the spread of the rows as scikit-learn has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from sixfold.errors import InputError, check_number

CHUNK_NUMBERS = 1 << 17  # of rows whose spread is added up at a time: they stay in the L2 cache


def gamma_of(sigma: float) -> float:
    """Return 1 / (2 sigma^2)."""
    check_number("sigma", sigma, above=0, finite=True)
    square = 2.0 * float(sigma) * float(sigma)
    gamma = 1.0 / square if square > 0.0 else np.inf
    if not 0.0 < gamma < np.inf:
        raise InputError(
            f"sigma={sigma!r} makes gamma = 1 / (2 sigma^2) = {gamma!r}, beyond what float64 holds. Measure "
            "the columns in other units."
        )
    return gamma


def gamma_for(gamma: float | str, X: Any) -> float:
    """Return the number that gamma stands for: 1 / (columns variance) is "scale", 1 / columns is "auto".

    Equal numbers, which have no variance, have gamma 1.
    """
    if not isinstance(gamma, str):
        return float(gamma)
    spread = variance(X) if gamma == "scale" else 1.0
    vanished = spread == 0.0 and X.min() < X.max()  # squares of numbers below 1e-162 are 0
    without = np.inf if vanished else 1.0
    number = 1.0 / (X.shape[1] * spread) if spread > 0.0 else without
    if not 0.0 < number < np.inf:
        raise InputError(
            f"The variance of X is {spread!r} in float64, so gamma='scale' is {number!r}, beyond what it "
            "holds. Divide the columns by their spread."
        )
    return number


def variance(X: Any) -> float:
    """Return the variance of all numbers of a table, zeros that a sparse one does not store included.

    Deviations are taken from one of the numbers first, so that equal numbers have variance 0, and in blocks:
    a table in float32 is never there in float64.

    >>> variance(np.full((3, 2), 0.1)), variance(np.array([[1.0, 3.0]]))
    (0.0, 1.0)
    """
    if sp.issparse(X):
        X = sp.csr_array(X)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        stored, shift = X.data[None, :], 0.0
    else:
        stored = np.asarray(X)
        shift = float(stored.flat[0])
    count = X.shape[0] * X.shape[1]
    step = max(CHUNK_NUMBERS // max(stored.shape[1], 1), 1)
    chunks = [stored[start : start + step] for start in range(0, stored.shape[0], step)]
    moved = sum(float(np.sum(chunk.astype(np.float64) - shift)) for chunk in chunks) / count
    with np.errstate(over="ignore"):
        squares = sum(float(np.square(chunk.astype(np.float64) - shift - moved).sum()) for chunk in chunks)
    return (squares + (count - stored.size) * moved * moved) / count
