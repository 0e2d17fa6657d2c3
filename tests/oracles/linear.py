"""Plain NumPy versions of every native loop and solver: slow, short, and obviously right."""

import math

import numpy as np

# -- least squares -------------------------------------------------------------------------------------


def gram_of_shifted_rows(X, Y, weight, shift, row_shift):
    """Return sum_i weight_i z_i z_i' with z = (x - shift - row_shift, y - shift, 1)."""
    X, Y = X.astype(np.float64), Y.astype(np.float64)
    d = X.shape[1]
    x = X - shift[:d] - (0.0 if row_shift is None else row_shift[:, None])
    z = np.column_stack([x, Y - shift[d:], np.ones(X.shape[0])])
    return z.T @ (z if weight is None else weight[:, None] * z)


def least_squares(X, Y, weight=None, l2=0.0, fit_intercept=True):
    """Return the shortest w and b that minimise mean weighted |y - b - w.x|^2 / 2 + l2 |w|^2 / 2, by SVD."""
    X, Y = np.asarray(X, dtype=np.float64), np.asarray(Y, dtype=np.float64)
    q = np.full(X.shape[0], 1.0) if weight is None else np.asarray(weight, dtype=np.float64)
    q = q / q.sum()
    mean_x = q @ X if fit_intercept else np.zeros(X.shape[1])
    mean_y = q @ Y if fit_intercept else np.zeros(Y.shape[1])
    rows = np.sqrt(q)[:, None] * (X - mean_x)
    U, s, V = np.linalg.svd(rows, full_matrices=False)
    kept = s > 1e-12 * s.max(initial=0.0)
    target = np.sqrt(q)[:, None] * (Y - mean_y)
    w = V[kept].T @ (s[kept, None] * (U[:, kept].T @ target) / (s[kept, None] ** 2 + l2))
    return w, mean_y - mean_x @ w


# -- stochastic gradient descent ---------------------------------------------------------------


def loss_slope(name, s, y):
    """The derivative of a loss in the scores of one row; y is a number a score, or a class."""
    if name == "softmax":
        p = np.exp(s - np.logaddexp.reduce(s))
        p[int(y[0])] -= 1.0
        return p
    return {
        "squared": s - y,
        "absolute": np.sign(s - y),
        "cubed": np.sign(s - y) * (s - y) ** 2,
        "logistic": -y * np.exp(-np.logaddexp(0.0, y * s)),
        "hinge": -y * (y * s < 1.0),
        "squared_hinge": -y * np.clip(1.0 - y * s, 0.0, None),
        "perceptron": -y * (y * s < 0.0),
    }[name]


def descend_rows(
    X,
    y,
    order,
    w,
    b,
    *,
    loss,
    schedule,
    eta0,
    rate=0.0,
    l1=0.0,
    l2=0.0,
    positive=False,
    fit_intercept=True,
    batch_size=1,
    average_from=None,
    weight=None,
    center=0.0,
    factor=1.0,
):
    """Visit the rows in this order, one batch an update; return w, c, their averages, updates."""
    Z = np.asarray(X, dtype=float) - center
    factor = np.broadcast_to(factor, Z.shape[1])[:, None]
    w, c, t = w.copy(), b + center * np.ones(Z.shape[1]) @ w, 0
    sums = [np.zeros_like(w), np.zeros_like(c)]
    for first in range(0, len(order), batch_size):
        rows = order[first : first + batch_size]
        eta = {
            "constant": eta0,
            "decay": eta0 / (1.0 + rate * t),
            "invscaling": eta0 / (t + 1.0) ** rate,
        }[schedule]
        slope_w, slope_c = np.zeros_like(w), np.zeros_like(c)
        for i in rows:
            g = loss_slope(loss, Z[i] @ w + c, y[i]) * (1.0 if weight is None else weight[i])
            slope_w += np.outer(Z[i], g) / len(rows)
            slope_c += g / len(rows)
        w = w * np.maximum(0.0, 1.0 - eta * l2 * factor) - eta * factor * slope_w
        w = np.sign(w) * np.maximum(np.abs(w) - eta * l1 * factor, 0.0)
        if positive:
            w = np.maximum(w, 0.0)
        if fit_intercept:
            c = c - eta * slope_c
        t += 1
        if average_from is not None and t > average_from:
            sums[0] += w
            sums[1] += c
    count = 0 if average_from is None else max(t - average_from, 0)
    return w, c, sums[0] / max(count, 1), sums[1] / max(count, 1), t


# -- coordinate descent ----------------------------------------------------------------------------------


def penalised_least_squares(X, y, weight, l1, l2, intercept=True, positive=False, epochs=100_000):
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


def optimality_violation(X, y, weight, l1, l2, w, b, positive=False):
    """How far the slope at w is from the subgradient of the penalty, largest over the columns."""
    q = weight / weight.sum()
    down = (q * (y - X @ w - b)) @ X - l2 * w
    at_zero = np.maximum((down if positive else np.abs(down)) - l1, 0.0)
    elsewhere = np.abs(down - l1 * np.sign(w))
    return np.where(w == 0.0, at_zero, elsewhere).max(initial=0.0)


# -- proximal gradient -----------------------------------------------------------------------------------


def penalised_classification(X, y, weight, loss, l1, l2, intercept=True, positive=False, steps=20_000):
    """Proximal gradient steps for logistic, squared hinge (y of -1, +1) or softmax (y of 0, 1, ...)."""
    X = np.asarray(X, dtype=float)
    q = weight / weight.sum()
    scale = np.sqrt(q @ X**2)
    scale[scale == 0.0] = 1.0
    Z = np.column_stack(
        [X / scale, np.ones(len(X))]
    )  # columns of one length, so that one step length serves all
    classes = int(y.max()) + 1 if loss == "softmax" else 1
    bound = {"logistic": 0.25, "squared_hinge": 1.0, "softmax": 0.5}[loss]
    step = 1.0 / (bound * np.linalg.norm(np.sqrt(q)[:, None] * Z, 2) ** 2 + l2 / (scale**2).min())
    l1, l2 = l1 / scale[:, None], l2 / scale[:, None] ** 2
    theta = np.zeros((Z.shape[1], classes))
    ahead, momentum = theta, 1.0
    targets = np.asarray(y, dtype=float).reshape(len(y), 1)
    for _ in range(steps):
        s = Z @ ahead
        slope = _class_slopes(s, targets) if loss == "softmax" else loss_slope(loss, s, targets)
        moved = ahead - step * (Z.T @ (q[:, None] * slope))
        if not intercept:
            moved[-1] = 0.0
        w = moved[:-1] - step * l2 * ahead[:-1]
        shrunk = np.maximum((w if positive else np.abs(w)) - step * l1, 0.0)
        moved[:-1] = shrunk if positive else np.sign(w) * shrunk
        following = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        if np.sum((ahead - moved) * (moved - theta)) > 0.0:  # restart where momentum points uphill
            following = 1.0
            ahead = moved
        else:
            ahead = moved + (momentum - 1.0) / following * (moved - theta)
        theta, momentum = moved, following
    return theta[:-1] / scale[:, None], theta[-1]


def _class_slopes(s, y):
    p = np.exp(s - np.logaddexp.reduce(s, axis=1, keepdims=True))
    return p - (y == np.arange(s.shape[1]))


# -- nearest neighbours --------------------------------------------------------------------------------


def distance(x, q, family, p=2.0, root=False):
    """Return the distance between two rows: terms rounded to doubles, their sum rounded once."""
    difference = np.abs(np.asarray(x, dtype=np.float64) - np.asarray(q, dtype=np.float64))
    if family == "largest":
        return float(difference.max(initial=0.0))
    terms = {
        "squares": difference * difference,
        "absolute": difference,
        "power": difference**p,
        "count": (difference != 0).astype(np.float64),
    }
    total = math.fsum(terms[family])
    if not root:
        return total
    return math.sqrt(total) if family == "squares" else total ** (1.0 / p)


def nearest(X, Q, k, family, p=2.0, root=False):
    """Return distances and rows of the k nearest rows of each query, equal distances by row number."""
    found = [sorted((distance(x, q, family, p, root), row) for row, x in enumerate(X))[:k] for q in Q]
    pairs = np.array(found, dtype=np.float64).reshape(len(Q), k, 2)
    return pairs[:, :, 0], pairs[:, :, 1].astype(np.int64)


def within(X, Q, radius, family, p=2.0, root=False):
    """Return, for each query, the rows whose distance is at most the radius, by row number."""
    return [[row for row, x in enumerate(X) if distance(x, q, family, p, root) <= radius] for q in Q]
