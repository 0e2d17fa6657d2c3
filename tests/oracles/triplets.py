"""Large margin nearest neighbours in plain NumPy, one triplet after the other: slow, and obviously right.

    F(M) = rho sum_ij q_i d_ij^2 + (1 - rho) sum_ijl q_i max(0, 1 + d_ij^2 - d_il^2) + lambda sum_c v_c M_cc

with d_ij^2 = (x_i - x_j)' M (x_i - x_j), j the k nearest rows of the class of i, l all rows of others, and q
the weights of rows i, divided by their sum over all pairs (i, j).
"""

from typing import NamedTuple

import numpy as np


class Terms(NamedTuple):
    """F(M) = <B, M> + sum_t u_t max(0, 1 + <A_t, M>)."""

    B: np.ndarray
    A: np.ndarray  # triplets x columns x columns
    u: np.ndarray
    triplets: np.ndarray

    def value(self, M):
        margins = 1.0 + np.tensordot(self.A, M, axes=2)
        return float((self.B * M).sum() + self.u @ np.maximum(margins, 0.0))


def targets_of(X, index, weight, k):
    """The k nearest rows of the same class, equal distances by row number."""
    targets = []
    for i in range(len(X)):
        same = [j for j in range(len(X)) if j != i and index[j] == index[i] and weight[j] > 0]
        far = [np.square(X[i] - X[j]).sum() for j in same]
        targets.append([same[p] for p in np.lexsort((same, far))][:k] if weight[i] > 0 else [])
    return targets


def terms(X, index, weight, k, rho, trace_penalty):
    weight = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=float)
    targets = targets_of(X, index, weight, k)
    total = sum(weight[i] * len(near) for i, near in enumerate(targets))
    spread = np.average(np.square(X - np.average(X, axis=0, weights=weight)), axis=0, weights=weight)
    P = np.zeros((X.shape[1], X.shape[1]))
    A, u, triplets = [], [], []
    for i, near in enumerate(targets):
        for j in near:
            C = np.outer(X[i] - X[j], X[i] - X[j])
            P += weight[i] / total * C
            for other in range(len(X)):
                if index[other] != index[i] and weight[other] > 0:
                    A.append(C - np.outer(X[i] - X[other], X[i] - X[other]))
                    u.append((1.0 - rho) * weight[i] / total)
                    triplets.append((i, j, other))
    mean = np.mean(np.diag(P) / np.where(spread > 0, spread, 1.0))
    trace = trace_penalty * (mean if mean > 0 else 1.0)
    B = rho * P + trace * np.diag(np.where(spread > 0, spread, 1.0))
    return Terms(B, np.array(A), np.array(u), np.array(triplets))


def rounded_hinge(m, width):
    above = m + 0.5 * width
    return np.where(above <= 0, 0.0, np.where(above < width, above**2 / (2.0 * width), m))


def slope(m, width):
    return np.clip(m / width + 0.5, 0.0, 1.0)
