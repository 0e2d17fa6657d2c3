"""Soft neighbours in plain NumPy: the n x n matrix of probabilities, and the slope by its definition."""

import numpy as np


def probabilities(Z, weight=None):
    """Return p_ij, the share of row i's own copies on the diagonal."""
    q = np.ones(len(Z)) if weight is None else np.asarray(weight, dtype=float)
    D = np.square(Z[:, None, :] - Z[None, :, :]).sum(axis=2)
    with np.errstate(divide="ignore"):
        scores = np.log(np.broadcast_to(q, D.shape)).copy() - D
        np.fill_diagonal(scores, np.log(np.maximum(q - 1.0, 0.0)))
    top = scores.max(axis=1, keepdims=True)
    p = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
    total = p.sum(axis=1, keepdims=True)
    return np.divide(p, total, out=np.zeros_like(p), where=total > 0)


def right(Z, y, weight=None):
    """Return p_i: with which probability row i picks a row of its class."""
    p = probabilities(Z, weight)
    return (p * (y[:, None] == y[None, :])).sum(axis=1)


def loss(L, X, y, weight=None):
    """Return 1 - sum_i q_i p_i / sum_i q_i."""
    q = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=float)
    return 1.0 - q @ right(X @ L.T, y, weight) / q.sum()


def pulls(Z, y, weight=None):
    """Return sum_j (a_ij + a_ji) (z_j - z_i)."""
    q = np.ones(len(Z)) if weight is None else np.asarray(weight, dtype=float)
    p, same = probabilities(Z, weight), y[:, None] == y[None, :]
    a = q[:, None] * p * (same - (p * same).sum(axis=1, keepdims=True))
    both = a + a.T
    return both @ Z - both.sum(axis=1, keepdims=True) * Z


def slope(L, X, y, weight=None):
    """Return the gradient of the loss."""
    q = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=float)
    return -2.0 / q.sum() * pulls(X @ L.T, y, weight).T @ X
