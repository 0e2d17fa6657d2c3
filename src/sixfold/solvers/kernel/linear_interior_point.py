"""An interior point for the linear kernel, where pairs of rows get no further: it works with columns.

    minimise  l |w|^2 / 2 + sum_i u_i max(0, 1 - y_i (x_i.w + b)),       u = U / max U,   l = 1 / max U

A Gram matrix of columns of very different scales has lost what the narrow ones say, and with a large C so
have the scores that are sums of its entries. In w nothing is lost: with multipliers a of
y_i (x_i.w + b) + e_i - s_i = 1, e, s >= 0, the optimum has

    l w = sum_i a_i y_i x_i,    sum_i a_i y_i = 0,    a s = 0,    (u - a) e = 0,    0 <= a <= u

and Newton's method follows a s = (u - a) e = mu down to mu = 0 (Mehrotra's predictor and corrector; Ferris
and Munson 2002), in the coordinates theta of the singular vectors, X = Z S V', where |w|^2 is the sum of
theta^2 / S^2 and scales do not matter. A step solves one system, Z'WZ + l / S^2 with
W = 1 / (s / a + e / (u - a)).

On the way, rows that are near an end of [0, U] are put there, and the others on the margin: their differences
D have D w = differences of y, solved by a QR factorisation of D' and corrected in extended precision.
What a point is worth is measured on its multipliers in float64, with w = sum a y x and scores in extended
precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import qr, solve_triangular

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
MOST_IDLE = 10  # steps that do not halve the products, after which only rounding is left
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
    for alpha in chain([solution.alpha], _path(problem, budget)):
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
        if free.size >= 2:
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
        """Return the multipliers with which the free rows are on the margin; None where they are infeasible.

        With c = a y, that of one free row the negative sum of all others, the differences D of the other free
        rows from it have to meet D w = differences of y: D D' more = what is missing. It is solved by a QR
        factorisation of D', and corrected in extended precision.
        """
        y, first, others = self.problem.y, free[0], free[1:]
        c = (alpha * y).astype(EXTENDED)
        D = self.X[others] - self.X[first]
        R, order = qr(D.T.astype(np.float64), mode="r", pivoting=True, check_finite=False)
        size = np.abs(np.diagonal(R))
        rank = int(np.count_nonzero(size > SVD_ROUNDING * size[0]))
        # Rows whose differences follow from those of others are on the margin when these are.
        others, D, R = others[order[:rank]], D[order[:rank]], R[:rank, :rank]
        for _ in range(CORRECTIONS):
            c[first] -= c.sum()
            missing = np.asarray((y[others] - y[first]) - D @ (c @ self.X), dtype=np.float64)
            half = solve_triangular(R, missing, trans="T", check_finite=False)
            c[others] += solve_triangular(R, half, check_finite=False)
        c[first] -= c.sum()
        a = np.asarray(c * y, dtype=np.float64)
        return a if (a >= 0.0).all() and (a <= self.problem.upper).all() else None


def centred(problem: DualProblem) -> Array:
    """Return the rows as the kernel sees them."""
    X = np.asarray(problem.rows.table[problem.index], dtype=np.float64)
    return X if problem.rows.origin is None else X - problem.rows.origin


def _path(problem: DualProblem, budget: Budget) -> Iterator[Array]:
    """Go along the path, and give the multipliers after every step."""
    path, least, idle = _Path(problem), math.inf, 0
    for _ in range(MOST_STEPS):
        if budget.exhausted() or idle > MOST_IDLE or not path.advance():
            return
        halved = path.products < 0.5 * least
        least, idle = (path.products, 0) if halved else (least, idle + 1)
        yield snap(problem.y, problem.upper, feasible(problem.y, problem.upper, path.top * path.a))


class _Path:
    """A point on the way: theta with b as its last entry, s, e, a, and r = u - a with digits of its own."""

    def __init__(self, problem: DualProblem) -> None:
        """Begin with least squares, slacks kept off zero and multipliers in the middle."""
        self.y, self.top = problem.y, float(problem.upper.max())
        u, X = problem.upper / self.top, centred(problem)
        Z, lengths, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
        there = lengths > SVD_ROUNDING * lengths[0]
        self.Z = np.hstack([Z[:, there], np.ones((X.shape[0], 1))])
        self.shrink = np.append(1.0 / self.top / np.square(lengths[there]), 0.0)
        self.theta = self._solver(u)(self.Z.T @ (u * self.y))
        short = 1.0 - self.y * (self.Z @ self.theta)
        inside = 0.1 * max(float(u @ np.abs(short)) / float(u.sum()), 1e-6)
        self.e = np.maximum(short, 0.0) + inside
        self.s = self.e - short
        self.a, self.r, self.products = 0.5 * u, 0.5 * u, math.inf

    def advance(self) -> bool:
        """Take Mehrotra's step; return whether there was one."""
        a, r, s, e = self.a, self.r, self.s, self.e
        with np.errstate(all="ignore"):  # what comes of it is looked at
            weight = 1.0 / (s / a + e / r)
            unmet = 1.0 - self.y * (self.Z @ self.theta) - e + s
            slope = self.Z.T @ (a * self.y) - self.shrink * self.theta
            if not np.isfinite(weight).all():
                return False
            solve = self._solver(weight)

            def direction(by_a: Array, by_r: Array) -> tuple[Array, ...]:
                """Return the changes for which products change by these amounts."""
                q = unmet - by_r / r + by_a / a
                step = solve(slope + self.Z.T @ (weight * self.y * q))
                da = weight * (q - self.y * (self.Z @ step))
                return step, da, (by_a - s * da) / a, (by_r + e * da) / r

            mean = float(a @ s + r @ e) / (2 * a.size)
            _, da, ds, de = direction(-a * s, -r * e)
            primal, dual = _room((s, ds), (e, de)), _room((a, da), (r, -da))
            reached = (a + dual * da) @ (s + primal * ds) + (r - dual * da) @ (e + primal * de)
            aim = mean * (float(reached) / (2 * a.size) / mean) ** 3
            step, da, ds, de = direction(aim - a * s - da * ds, aim - r * e + da * de)
            primal, dual = STEP * _room((s, ds), (e, de)), STEP * _room((a, da), (r, -da))
        if not (np.isfinite(step).all() and min(primal, dual) > 0.0):
            return False
        self.theta, self.s, self.e = self.theta + primal * step, s + primal * ds, e + primal * de
        self.a, self.r = a + dual * da, r - dual * da
        self.products = float(self.a @ self.s + self.r @ self.e)
        return True

    def _solver(self, weight: Array) -> Callable[[Array], Array]:
        """Return right -> (Z'WZ + l / S^2)^-1 right."""
        return scaled_cholesky(self.Z.T @ (weight[:, None] * self.Z) + np.diag(self.shrink))


def _room(*pairs: tuple[Array, Array]) -> float:
    """Return the longest step up to 1 that leaves all values positive."""
    longest = 1.0
    for value, change in pairs:
        falling = change < 0.0
        longest = min(longest, float(np.min(-value[falling] / change[falling], initial=math.inf)))
    return longest
