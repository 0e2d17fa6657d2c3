"""Plain NumPy answers for the native loops and solvers: slow, short, written from the formulas."""

from __future__ import annotations

import numpy as np


def penalised_least_squares(  # noqa: PLR0917
    X, y, weight, l1, l2, intercept=True, positive=False, epochs=100_000
):
    """Cyclic coordinate descent, one target, until a whole pass moves nothing beyond rounding."""
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    q = weight / weight.sum()
    mean_x, mean_y = (q @ X, q @ y) if intercept else (np.zeros(X.shape[1]), 0.0)
    Z, r = X - mean_x, y - mean_y
    w = np.zeros(X.shape[1])
    curvature = q @ Z**2
    for _ in range(epochs):
        moved = 0.0
        for j in np.flatnonzero(curvature > 1e-20 * (q @ X**2)):
            target = (q * r) @ Z[:, j] + curvature[j] * w[j]
            size = max((target if positive else abs(target)) - l1, 0.0)
            new = np.copysign(size, target) / (curvature[j] + l2)
            r = r - (new - w[j]) * Z[:, j]
            moved = max(moved, curvature[j] * (new - w[j]) ** 2)
            w[j] = new
        if moved <= 1e-30 * max(q @ y**2, 1e-300):
            break
    return w, mean_y - mean_x @ w


def optimality_violation(X, y, weight, l1, l2, w, b, positive=False):  # noqa: PLR0917
    """How far the slope at w is from the subgradient of the penalty, largest over the columns."""
    q = weight / weight.sum()
    down = (q * (y - X @ w - b)) @ X - l2 * w
    at_zero = np.maximum((down if positive else np.abs(down)) - l1, 0.0)
    elsewhere = np.abs(down - l1 * np.sign(w))
    return np.where(w == 0.0, at_zero, elsewhere).max(initial=0.0)
