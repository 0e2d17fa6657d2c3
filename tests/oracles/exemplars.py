"""Exemplar machines one by one, in plain NumPy: Newton's method with the whole Hessian, halved steps.

P(w, b) = |w|^2 / 2 + C_e max(0, 1 - w.x_e - b)^2 + sum_i c_i max(0, 1 + w.x_i + b)^2
"""

import numpy as np


def objective(w, b, x, own_cost, negatives, cost):
    inside = np.maximum(1.0 + negatives @ w + b, 0.0)
    return 0.5 * w @ w + own_cost * max(1.0 - w @ x - b, 0.0) ** 2 + cost @ inside**2


def gap(w, b, x, own_cost, negatives, cost):
    """Return how far P is above the bound of the multipliers that the scores stand for."""
    a = 2.0 * cost * np.maximum(1.0 + negatives @ w + b, 0.0)
    total, pull = a.sum(), a @ (negatives - x)
    bracket = (a**2 / (4.0 * cost)).sum() + total**2 / (4.0 * own_cost) + 0.5 * pull @ pull
    return objective(w, b, x, own_cost, negatives, cost) - total**2 / bracket


def fit_machine(x, own_cost, negatives, cost, steps=200):
    """Return w and b of one machine."""
    rows = np.vstack([negatives, x])
    rows = np.column_stack([rows, np.ones(len(rows))])
    signs = np.append(-np.ones(len(negatives)), 1.0)
    price, d = np.append(cost, own_cost), len(x)
    ridge = np.append(np.ones(d), 0.0)

    def value(v):
        return 0.5 * v[:d] @ v[:d] + price @ np.maximum(1.0 - signs * (rows @ v), 0.0) ** 2

    v = np.zeros(d + 1)
    for _ in range(steps):
        inside = np.maximum(1.0 - signs * (rows @ v), 0.0)
        slope = ridge * v - rows.T @ (2.0 * price * signs * inside)
        active = rows[inside > 0]
        hessian = np.diag(ridge) + active.T @ (2.0 * price[inside > 0, None] * active)
        step = -np.linalg.lstsq(hessian, slope, rcond=None)[0]
        t = 1.0
        while t > 1e-12 and value(v + t * step) > value(v) + 1e-4 * t * (slope @ step):
            t *= 0.5
        if t <= 1e-12:
            break
        v = v + t * step
    return v[:d], v[d]


def fit_machines(X, y, positive, C, positive_weight, weight=None):
    """Return the rows that are exemplars, w and b of each."""
    weight = np.ones(len(X)) if weight is None else weight
    exemplars = np.flatnonzero(np.isin(y, positive) & (weight > 0))
    found = []
    for row in exemplars:
        others = (y != y[row]) & (weight > 0)
        found.append(fit_machine(X[row], C * positive_weight, X[others], C * weight[others]))
    return exemplars, np.array([w for w, _ in found]), np.array([b for _, b in found])
