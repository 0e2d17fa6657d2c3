"""An interior point for the linear kernel, where pairs of rows get no further: it works with columns.

    minimise  l |w|^2 / 2 + sum_i u_i max(0, 1 - y_i (x_i.w + b)),       u = U / max U,   l = 1 / max U

A Gram matrix of columns of very different scales has lost what the narrow ones say, and with a large C
so have the scores that are sums of its entries. In w nothing is lost: with multipliers a of
y_i (x_i.w + b) + e_i - s_i = 1, e, s >= 0, the optimum has

    l w = sum_i a_i y_i x_i,    sum_i a_i y_i = 0,    a s = 0,    (u - a) e = 0,    0 <= a <= u

in the coordinates of the singular vectors, X = Z S V', where |w|^2 = sum_k theta_k^2 / S_k^2, so that scales of
columns do not matter. Newton's method follows a s = (u - a) e = mu down to mu = 0 (Mehrotra's predictor and corrector; Ferris
and Munson 2002). A step solves one system of d + 1 equations, Z'WZ + l / S^2 with W = 1 / (s / a + e / (u - a)). What
a point is worth is measured on a itself, w = sum a y x and the scores in extended precision: that is the
model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from sixfold.budget import Budget
from sixfold.solvers.kernel.dual import (
    DualProblem,
    DualSolution,
    Optimality,
    certify,
    cheapest_intercept,
    feasible,
    optimality,
    snap,
)
from sixfold.solvers.linalg import scaled_cholesky

Array = NDArray[Any]

MOST_WORK = 1e9  # products a step: rows times squared columns
MOST_STEPS = 100
STEP = 0.9995  # how much of the way to the boundary a step may go
SVD_ROUNDING = 1e-15  # of the largest singular value: directions of which no digit is known
ENOUGH = 0.5  # of the gap allowed
SHARES_AT_END = (1e-2, 1e-4, 1e-6, 1e-8)  # of U: multipliers so near an end may belong there
CORRECTIONS = 8  # in extended precision, of multipliers that leave rows on the margin
EXTENDED = np.longdouble
EXTENDED_EPS = float(np.finfo(EXTENDED).eps)


def suits(problem: DualProblem) -> bool:
    """Return whether the kernel is linear, the rows are dense, and a step is affordable."""
    form, X = problem.rows.kernel.form, problem.rows.table
    work = problem.y.size * X.shape[1] ** 2
    return form is not None and form.kind == "linear" and not sp.issparse(X) and work <= MOST_WORK


def refine(problem: DualProblem, solution: DualSolution, tol: float, budget: Budget) -> DualSolution:
    """Return the best of the solution and of where an interior point gets, by their certified gaps."""
    exact, best, least = ExactScores(problem), solution, certify(problem, solution, tol).gap
    for alpha in _path(problem, budget):
        before = least
        for found in (exact.solution(alpha, solution), *_vertices(problem, exact, alpha, solution)):
            gap = certify(problem, found, tol).gap
            best, least = (found, gap) if gap < least else (best, least)
        if before <= ENOUGH * tol * solution.state.scale and least > 0.5 * before:
            break  # good enough, and no longer much better
    return best


def _vertices(
    problem: DualProblem, exact: ExactScores, alpha: Array, before: DualSolution
) -> Iterator[DualSolution]:
    """Go through the points at which rows near an end of [0, U] are there, and the others on the margin."""
    for share in SHARES_AT_END:
        low, high = alpha <= share * problem.upper, alpha >= (1.0 - share) * problem.upper
        free = np.flatnonzero(~(low | high))
        if 2 <= free.size <= exact.X.shape[1] + 1:
            found = exact.on_margin(np.where(high, problem.upper, np.where(low, 0.0, alpha)), free)
            if found is not None:
                yield exact.solution(found, before)


class ExactScores:
    """Scores of a point of the dual in extended precision."""

    def __init__(self, problem: DualProblem) -> None:
        self.problem = problem
        self.X = centred(problem).astype(EXTENDED)
        self.lengths = np.sqrt(np.asarray(np.square(self.X).sum(axis=1), dtype=np.float64))

    def solution(self, alpha: Array, before: DualSolution) -> DualSolution:
        """Return the point with what it is worth, and the intercept that suits it."""
        box = self.problem.box
        signed = alpha * box.y
        w = signed.astype(EXTENDED) @ self.X
        scores = np.asarray(self.X @ w, dtype=np.float64)
        state: Optimality = optimality(box, alpha, scores)
        if state.gap > 0.0:
            other = optimality(box, alpha, scores, cheapest_intercept(box.y, box.upper, scores))
            state = other if other.gap < 0.5 * state.gap else state
        summed = float(np.linalg.norm(alpha * self.lengths))  # errors of products have different signs
        rounding = 2.0 * EXTENDED_EPS * summed * float(self.lengths.max(initial=0.0))
        rounding += np.finfo(np.float64).eps * float(np.abs(scores).max(initial=0.0))
        return replace(before, alpha=alpha, scores=scores, state=state, rounding=rounding)

    def on_margin(self, alpha: Array, free: Array) -> Array | None:
        """Return the multipliers with which the free rows are on the margin; None where those are not feasible.

        With c = a y, that of one free row the negative sum of all others, the differences D of the other free
        rows from it have to meet D w = differences of y: D D' more = what is missing. It is solved by a QR
        factorisation of D', and corrected in extended precision.
        """
        y, first, others = self.problem.y, free[0], free[1:]
        c = (alpha * y).astype(EXTENDED)
        D = self.X[others] - self.X[first]
        R = np.linalg.qr(D.T.astype(np.float64), mode="r")
        size = np.abs(np.diagonal(R))
        if R.shape[0] < others.size or not size.min() > SVD_ROUNDING * size.max():
            return None
        for _ in range(CORRECTIONS):
            c[first] -= c.sum()
            missing = (y[others] - y[first]) - D @ (c @ self.X)
            c[others] += solve_triangular(
                R,
                solve_triangular(R, missing.astype(np.float64), trans="T", check_finite=False),
                check_finite=False,
            )
        c[first] -= c.sum()
        a = np.asarray(c * y, dtype=np.float64)
        return a if (a >= 0.0).all() and (a <= self.problem.upper).all() else None


def centred(problem: DualProblem) -> Array:
    """Return the rows as the kernel sees them."""
    X = np.asarray(problem.rows.table[problem.index], dtype=np.float64)
    return X if problem.rows.origin is None else X - problem.rows.origin


def _path(problem: DualProblem, budget: Budget) -> Iterator[Array]:
    """Go along the path, and give the multipliers after every step."""
    y, top = problem.y, float(problem.upper.max())
    u, penalty = problem.upper / top, 1.0 / top
    X = centred(problem)
    n = X.shape[0]
    U, lengths, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    there = lengths > SVD_ROUNDING * lengths[0]
    Z = np.hstack([U[:, there], np.ones((n, 1))])
    shrink = np.append(penalty / np.square(lengths[there]), 0.0)
    theta = scaled_cholesky(Z.T @ (u[:, None] * Z) + np.diag(shrink))(Z.T @ (u * y))
    short = 1.0 - y * (Z @ theta)
    inside = 0.1 * max(float(u @ np.abs(short)) / float(u.sum()), 1e-6)
    e = np.maximum(short, 0.0) + inside
    s = e - short
    a, r = 0.5 * u, 0.5 * u  # r = u - a, with its own digits
    for _ in range(MOST_STEPS):
        if budget.exhausted():
            return
        unmet = 1.0 - y * (Z @ theta) - e + s
        slope = Z.T @ (a * y) - shrink * theta
        weight = 1.0 / (s / a + e / r)
        solve = scaled_cholesky(Z.T @ (weight[:, None] * Z) + np.diag(shrink))

        def direction(by_a: Array, by_r: Array) -> tuple[Array, ...]:
            """Return the step for a s + ... = by_a and (u - a) e + ... = by_r."""
            q = unmet - by_r / r + by_a / a  # noqa: B023 - it is called before the next round
            step = solve(slope + Z.T @ (weight * y * q))  # noqa: B023
            da = weight * (q - y * (Z @ step))  # noqa: B023
            return step, da, (by_a - s * da) / a, (by_r + e * da) / r  # noqa: B023

        mu = float(a @ s + r @ e) / (2 * n)
        step, da, ds, de = direction(-a * s, -r * e)
        primal, dual = _room((s, ds), (e, de)), _room((a, da), (r, -da))
        reached = float((a + dual * da) @ (s + primal * ds) + (r - dual * da) @ (e + primal * de)) / (2 * n)
        aim = mu * (reached / mu) ** 3
        step, da, ds, de = direction(aim - a * s - da * ds, aim - r * e + da * de)
        primal, dual = (min(STEP * room, 1.0) for room in (_room((s, ds), (e, de)), _room((a, da), (r, -da))))
        if not (np.isfinite(step).all() and primal > 0.0 and dual > 0.0):
            return
        theta, s, e = theta + primal * step, s + primal * ds, e + primal * de
        a, r = a + dual * da, r - dual * da
        yield snap(y, problem.upper, feasible(y, problem.upper, top * a))
        if mu < 1e-30:
            return


def _room(*pairs: tuple[Array, Array]) -> float:
    """Return the longest step up to 1 that leaves all values positive."""
    longest = 1.0
    for value, change in pairs:
        falling = change < 0.0
        longest = min(longest, float(np.min(-value[falling] / change[falling], initial=math.inf)))
    return longest
