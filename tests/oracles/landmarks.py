"""Landmarks in plain NumPy: Cholesky with given pivots, the trace error, and SVMs in a space of features."""

from __future__ import annotations

import numpy as np


def rbf(X, Z, gamma):
    return np.exp(-gamma * np.square(X[:, None] - Z[None]).sum(axis=2))


def pivoted_cholesky(K, pivots):
    """Return F with F F' = K_C K_CC^-1 K_C', one pivot after the other, and what is left of the diagonal."""
    F, left = np.zeros((K.shape[0], len(pivots))), K.diagonal().copy()
    for k, pivot in enumerate(pivots):
        column = K[:, pivot] - F[:, :k] @ F[pivot, :k]
        F[:, k] = column / np.sqrt(column[pivot])
        left -= F[:, k] ** 2
    return F, left


def trace_error(K, pivots, weight=None):
    """Return tr(D (K - K_C K_CC^+ K_C')) / tr(D K) from the full matrix."""
    weight = np.ones(K.shape[0]) if weight is None else weight
    held = K[:, pivots] @ np.linalg.pinv(K[np.ix_(pivots, pivots)], hermitian=True) @ K[pivots]
    return float(weight @ (K - held).diagonal() / (weight @ K.diagonal()))


def hinge_objective(w, b, features, y, upper):
    slack = np.maximum(1.0 - y * (features @ w + b), 0.0)
    return 0.5 * float(w @ w) + float(upper @ slack)
