"""The tasks of linear regression, and how far an answer is from the best.

Every task is to minimise, over weights w and intercept b,

    R(w, b) = |y - X w - b|^2 / (2 n) + alpha penalty(w),

and an answer is judged by a bound on R - min R that is worked out here from the data alone,
relative to the constant model |y - mean(y)|^2 / (2 n); no contender is the reference. With r the
centred residuals:

    no penalty   R - min R = g' H^-1 g / 2,  g = X'r / n,  H = X'X / n, X centred
    l2           R - min R <= |g|^2 / (2 alpha),  g = X'r / n - alpha w
    l1           R - min R <= duality gap at the dual point s r, s = min(1, alpha n / |X'r|_inf)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Answer = tuple[Array, float]


class RegressionTask(NamedTuple):
    """The data of a case; ``truth`` holds the exact weights where they are known."""

    X: Array
    y: Array
    alpha: float = 0.0
    truth: Array | None = None


def tall(n: int, d: int, quick: bool) -> RegressionTask:
    """Return well-conditioned columns with means of their own, and a noisy target."""
    n, d = (min(n, 500), min(d, 20)) if quick else (n, d)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    X += rng.uniform(-2, 2, d)
    return RegressionTask(X, X @ rng.standard_normal(d) + rng.standard_normal(n) + 3.0)


def sparse_truth(quick: bool) -> RegressionTask:
    """Return 1,000 x 10,000, of which 100 columns matter; alpha is lambda_max / 100."""
    n, d = (50, 200) if quick else (1_000, 10_000)
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.standard_normal((n, d)))
    relevant = d // 100
    y = X[:, :relevant] @ rng.standard_normal(relevant) + rng.standard_normal(n)
    return RegressionTask(X, y, alpha=float(np.abs(X.T @ (y - y.mean())).max()) / n / 100)


def wide(quick: bool) -> RegressionTask:
    """Return 500 x 20,000; alpha is scikit-learn's alpha=100 divided by n."""
    n, d = (30, 200) if quick else (500, 20_000)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return RegressionTask(
        X, X @ rng.standard_normal(d) / math.sqrt(d) + rng.standard_normal(n), alpha=100 / n
    )


def ill_conditioned(quick: bool) -> RegressionTask:
    """Return a table of condition 1e8 and a target whose exact weights are known.

    The entries are multiples of 2^-36 and the weights small integers, so X w is exact in float64.
    """
    n, d = (500, 10) if quick else (20_000, 50)
    rng = np.random.default_rng(0)
    left = np.linalg.qr(rng.standard_normal((n, d)))[0]
    right = np.linalg.qr(rng.standard_normal((d, d)))[0]
    X = np.sqrt(n) * (left * np.logspace(0, -8, d)) @ right
    X = np.ldexp(np.rint(np.ldexp(X, 36)), -36)
    truth = rng.choice([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0], d)
    return RegressionTask(X, X @ truth, truth=truth)


# sin(k^2) is as good as random, and costs a fresh process no import.
SMALL_TABLE = "np.sin(np.arange(1.0, 501.0) ** 2).reshape(100, 5)"
SMALL_TARGET = "X @ np.arange(5.0) + np.cos(np.arange(100.0) ** 2)"


def fresh(quick: bool) -> RegressionTask:
    """Return the 100 x 5 table that the fresh processes make for themselves."""
    X = eval(SMALL_TABLE, {"np": np})
    return RegressionTask(X, eval(SMALL_TARGET, {"np": np, "X": X}))


def _centred_residuals(task: RegressionTask, answer: Answer) -> tuple[Array, float, float]:
    """Return r, what a wrong intercept adds to R, and the scale |y - mean(y)|^2 / (2 n)."""
    w, b = answer
    residuals = task.y - task.X @ w - b
    mean = float(residuals.mean())
    return residuals - mean, mean**2 / 2, float(np.var(task.y)) / 2


def least_squares_excess(task: RegressionTask, answer: Answer) -> float:
    """Return (R - min R) / scale without a penalty."""
    X, n = task.X, len(task.y)
    r, from_intercept, scale = _centred_residuals(task, answer)
    means = X.mean(axis=0)
    g = X.T @ r / n
    excess = g @ np.linalg.solve(X.T @ X / n - np.outer(means, means), g) / 2
    return float(excess + from_intercept) / scale


def ridge_excess(task: RegressionTask, answer: Answer) -> float:
    """Return a bound on (R - min R) / scale with alpha |w|^2 / 2."""
    r, from_intercept, scale = _centred_residuals(task, answer)
    g = task.X.T @ r / len(r) - task.alpha * answer[0]
    return float(g @ g / (2 * task.alpha) + from_intercept) / scale


def lasso_gap(task: RegressionTask, answer: Answer) -> float:
    """Return a bound on (R - min R) / scale with alpha |w|_1."""
    n = len(task.y)
    r, from_intercept, scale = _centred_residuals(task, answer)
    steepest = float(np.abs(task.X.T @ r).max())
    dual_point = r * min(1.0, task.alpha * n / steepest) if steepest > 0 else r
    y = task.y - task.y.mean()
    primal = r @ r / (2 * n) + task.alpha * np.abs(answer[0]).sum()
    dual = dual_point @ (2 * y - dual_point) / (2 * n)
    return float(primal - dual + from_intercept) / scale


def worst_weight(task: RegressionTask, answer: Answer) -> float:
    """Return the relative error of the worst weight."""
    return float(np.abs((answer[0] - task.truth) / task.truth).max())
