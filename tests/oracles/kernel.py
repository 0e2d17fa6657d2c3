"""The dual of the kernel SVM in plain NumPy: slow, short, and obviously right.

With y = -1 or +1, K the kernel's matrix and U_i the largest multiplier of row i,

    maximise   D(a) = sum_i a_i - 1/2 sum_ij a_i a_j y_i y_j K_ij      0 <= a_i <= U_i,  sum_i a_i y_i = 0
    gradient   G_i = y_i sum_j a_j y_j K_ij - 1                        (of -D)
    violation  max over I_up of -y_i G_i, less the min over I_low of it
    primal     P = 1/2 |w|^2 + sum_i U_i max(0, 1 - y_i f_i)

`smo` follows LIBSVM (Fan, Chen and Lin 2005) step by step, without shrinking; `quadratic_program` solves the
same problem by an interior-point method (Mehrotra 1992), which has nothing in common with it.
"""

from typing import NamedTuple

import numpy as np

TAU = 1e-12  # the curvature of a pair where there is none


class Minimum(NamedTuple):
    alpha: np.ndarray
    gradient: np.ndarray
    violation: float
    iterations: int
    path: list  # the pairs (i, j), in order


# -- the formulas --------------------------------------------------------------------------------------


def dual_gradient(gram, y, alpha):
    """Return G, the gradient of -D."""
    return y * (np.asarray(gram, dtype=np.float64) @ (alpha * y)) - 1.0


def dual_value(gram, y, alpha):
    """Return D(alpha)."""
    return float(alpha.sum() - 0.5 * (alpha * y) @ np.asarray(gram, dtype=np.float64) @ (alpha * y))


def may_rise(y, upper, alpha):
    """Which rows are in I_up: y_i a_i may grow."""
    return np.where(y > 0, alpha < upper, alpha > 0)


def may_fall(y, upper, alpha):
    """Which rows are in I_low: y_i a_i may shrink."""
    return np.where(y > 0, alpha > 0, alpha < upper)


def ends(y, upper, alpha, gradient):
    """Return m = max over I_up and M = min over I_low of -y_i G_i."""
    slope = -y * gradient
    highest = slope[may_rise(y, upper, alpha)].max(initial=-np.inf)
    return highest, slope[may_fall(y, upper, alpha)].min(initial=np.inf)


def violation(y, upper, alpha, gradient):
    """Return m - M, which is 0 or less at the optimum."""
    highest, lowest = ends(y, upper, alpha, gradient)
    return float(highest - lowest)


def intercept(y, upper, alpha, gradient):
    """Return b (LIBSVM's -rho): the mean of -y_i G_i over free rows, else the middle of m and M."""
    free = (alpha > 0) & (alpha < upper)
    if free.any():
        return float(np.mean(-y[free] * gradient[free]))
    return float(np.mean(ends(y, upper, alpha, gradient)))


def primal_value(gram, y, upper, alpha, b):
    """Return P(w, b) with w = sum_i a_i y_i phi(x_i); U must be finite."""
    scores = np.asarray(gram, dtype=np.float64) @ (alpha * y)
    return float(0.5 * (alpha * y) @ scores + upper @ np.maximum(0.0, 1.0 - y * (scores + b)))


# -- LIBSVM's loop -------------------------------------------------------------------------------------


def smo(gram, y, upper, tolerance=1e-3, most_iterations=10**7, start=None):
    """Return where sequential minimal optimisation ends, from a = 0 unless a start is given."""
    gram = np.asarray(gram, dtype=np.float64)
    alpha = np.zeros(y.size) if start is None else np.array(start, dtype=np.float64)
    gradient = np.full(y.size, -1.0) if start is None else dual_gradient(gram, y, alpha)
    path = []
    while violation(y, upper, alpha, gradient) > tolerance and len(path) < most_iterations:
        i, j = chosen_pair(gram, y, upper, alpha, gradient)
        new = moved(gram, y, upper, alpha, gradient, i, j)
        change = new - alpha[[i, j]]
        if not change.any():  # nothing left but rounding
            break
        alpha[[i, j]] = new
        gradient += y * (y[i] * gram[i] * change[0] + y[j] * gram[j] * change[1])
        path.append((i, j))
    return Minimum(alpha, gradient, violation(y, upper, alpha, gradient), len(path), path)


def last_of_largest(values):
    return int(np.flatnonzero(values == values.max())[-1])


def chosen_pair(gram, y, upper, alpha, gradient):
    """Return i, the largest violator, and j, the partner that promises the most; the last of equals."""
    slope, rows = -y * gradient, np.arange(y.size)
    i = last_of_largest(np.where(may_rise(y, upper, alpha), slope, -np.inf))
    difference = slope[i] - slope
    curvature = gram[i, i] + np.diag(gram) - 2.0 * gram[i]
    promise = difference**2 / np.where(curvature > 0, curvature, TAU)
    partners = rows[may_fall(y, upper, alpha) & (difference > 0)]
    return i, int(partners[last_of_largest(promise[partners])])


def moved(gram, y, upper, alpha, gradient, i, j):
    """Return the best a_i and a_j with y_i a_i + y_j a_j as it is, inside the box."""
    curvature = gram[i, i] + gram[j, j] - 2.0 * gram[i, j]
    step = (y[j] * gradient[j] - y[i] * gradient[i]) / (curvature if curvature > 0 else TAU)
    room = [upper[i] - alpha[i] if y[i] > 0 else alpha[i], alpha[j] if y[j] > 0 else upper[j] - alpha[j]]
    if step < min(room):
        return np.clip(alpha[[i, j]] + step * np.array([y[i], -y[j]]), 0.0, upper[[i, j]])
    first = int(room[1] < room[0])  # the row that reaches its bound, exactly
    bound = [upper[i] if y[i] > 0 else 0.0, 0.0 if y[j] > 0 else upper[j]]
    new = np.clip(alpha[[i, j]] + room[first] * np.array([y[i], -y[j]]), 0.0, upper[[i, j]])
    new[first] = bound[first]
    return new


# -- an independent optimum ----------------------------------------------------------------------------


def quadratic_program(gram, y, upper):
    """Return the multipliers that maximise D, by an interior-point method; K must be positive semi-definite.

    With U finite for all rows or for none. The steps keep 0 < a < U. Raises if the gap that is left is more
    than 1e-8 of the objective: then rows overlap and U is infinite, or an entry of K is not finite.
    """
    gram, rows = np.asarray(gram, dtype=np.float64), y.size
    if np.unique(y).size < 2:
        return np.zeros(rows)  # the only feasible point
    scale = np.abs(np.diag(gram)).max() or 1.0  # K / scale and scale * a: the same problem
    gram, boxed = gram / scale, bool(np.isfinite(upper).all())
    upper = upper * scale if boxed else np.full(rows, np.inf)
    Q = gram * np.outer(y, y)
    a = np.minimum(upper / 2.0, 1.0)
    left = upper - a  # kept apart: small numbers keep their digits
    b, z, w = 0.0, np.ones(rows), np.full(rows, float(boxed))
    for _ in range(100):
        count, total = rows * (1 + boxed), a @ z + (left @ w if boxed else 0.0)
        gap = gap_of(gram, y, upper, a, b, boxed)
        if gap <= 1e-11 * max(a.sum(), 1e-300) and abs(y @ a) <= 1e-12 * a.sum():
            break
        if not np.isfinite(a).all():
            break
        try:
            step = newton_step(Q, y, a, left, b, z, w, 0.0, None, boxed)
            length = longest(a, left, z, w, step, boxed)
            after = (a + length * step[0]) @ (z + length * step[2])
            after += (left - length * step[0]) @ (w + length * step[3]) if boxed else 0.0
            step = newton_step(Q, y, a, left, b, z, w, (after / total) ** 3 * total / count, step, boxed)
        except np.linalg.LinAlgError:  # rounding is all that is left
            break
        length = 0.995 * longest(a, left, z, w, step, boxed)
        a, b = a + length * step[0], b + length * step[1]
        left, z, w = left - length * step[0], z + length * step[2], w + length * step[3]
    assert gap <= 1e-8 * a.sum(), f"the oracle ended with a gap of {gap / a.sum():.1e} of sum a"
    return np.minimum(a, upper) / scale


def gap_of(gram, y, upper, a, b, boxed):
    """Return P - D.

    Without bounds P is |w|^2 / 2 once w and the intercept midway between the classes are stretched until no
    row is inside the margin; infinite while a row is on the wrong side.
    """
    scores = gram @ (a * y)
    if boxed:
        short = 1.0 - y * (scores + b)
        return float(a @ -short + upper @ np.maximum(short, 0.0))
    square, margin = (a * y) @ scores, 0.5 * (scores[y > 0].min() - scores[y < 0].max())
    return float(0.5 * square / margin**2 + 0.5 * square - a.sum()) if margin > 0 else np.inf


def newton_step(Q, y, a, left, b, z, w, target, first, boxed):
    """Return the changes of a, b, z, w towards a z = left w = target; `first` is the predictor's step."""
    curved = first[0] * first[2] if first is not None else 0.0
    from_zero = (target - a * z - curved) / a
    from_upper = (
        (target - left * w + (first[0] * first[3] if first is not None else 0.0)) / left if boxed else 0.0
    )
    residual = Q @ a - 1.0 + b * y - z + w
    matrix = np.block([[Q + np.diag(z / a + w / left), y[:, None]], [y[None, :], np.zeros((1, 1))]])
    size = 1.0 / np.sqrt(np.append(np.diag(matrix)[:-1], 1.0))  # a diagonal of ones: bounds are far apart
    right = np.append(-residual + from_zero - from_upper, -(y @ a))
    both = size * np.linalg.solve(size[:, None] * matrix * size, size * right)
    da, db = both[:-1], both[-1]
    return da, db, from_zero - z / a * da, from_upper + w / left * da if boxed else np.zeros(y.size)


def longest(a, left, z, w, step, boxed):
    """Return the longest step, 1 at most, that keeps everything positive."""
    pairs = [(a, step[0]), (z, step[2]), *([(left, -step[0]), (w, step[3])] if boxed else [])]
    return min(1.0, *(float(np.min(-v[d < 0] / d[d < 0], initial=np.inf)) for v, d in pairs))
