"""Large margins among the few triplets that may decide: M and its multipliers by an interior point.

    least over M, semi-definite     tr M + sum_t u_t [1 + <A_t, M>]_+,      A_t = p p' - q q',
                                    p = x_i - x_j,  q = x_i - x_l

    S = I + sum_t a_t A_t,   s_t = r_t - 1 - <A_t, M>,   r_t = what hinge t costs at least
    M S = mu I,   a_t s_t = mu,   (u_t - a_t) r_t = mu,          mu -> 0

The three conditions are solved for the changes of a alone,

    (H + diag(s/a + r/(u - a))) da = right-hand side,       H_st = <A_s, M A_t S^-1>,

a system as large as there are triplets; H is a product, element by element, of the inner products of all p
and q in M and in S^-1. Where there are more triplets than numbers in M, it is solved in these: H = A N A', A
with a row for each A_t and N the map U -> M U S^-1, made symmetric. Triplets that are far inside their hinge
have a = u: they are one hinge together, so that the system stays small. The multipliers are a point of the
dual problem of all triplets, whatever is left out here.

Where smoothed hinges take a thousand steps (few rows, many columns, classes that come apart) this takes ten.

Source: Helmberg, Rendl, Vanderbei and Wolkowicz (1996), An interior-point method for semidefinite
programming, with the predictor of Mehrotra (1992).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.budget import Budget

Array = NDArray[Any]

MOST_STEPS = 40
INSIDE = 0.05  # of its range: how far a multiplier begins from the ends
LEAST_EIGENVALUE = 0.1  # of S at the start
SPREAD = 0.1  # of the mean eigenvalue of M: added to all of them at the start
DISTANCE = 0.15  # of the typical margin: what a slack begins with
SHORTENED = 0.95  # of the way to the end of what is allowed
LEAST_CENTRING = 1e-4
CORRECTIONS = 1  # of a solved system by its residual: near the end its numbers span 20 decades


class TripletHinges:
    """Hinges of single triplets, and one that stands for a group of them: the last, if there is one.

    ``sum u [m]_+`` of a group is at least ``U [sum u m / U]_+`` with U the sum of u.
    """

    def __init__(self, X: Array, triplets: Array, prices: Array, grouped: Array, group_prices: Array) -> None:
        self._single = _Differences(X, triplets)
        self.prices = prices
        self.in_columns = len(triplets) > 2 * numbers_in(X.shape[1])
        self._group: Array | None = None
        if grouped.size:
            total = group_prices.sum()
            self._group = _Differences(X, grouped).combine(group_prices / total)
            self.prices = np.append(prices, total)

    def margins(self, M: Array) -> Array:
        """Return 1 + <A_t, M>."""
        found = 1.0 + self._single.products(M)
        return found if self._group is None else np.append(found, 1.0 + (self._group * M).sum())

    def combine(self, a: Array) -> Array:
        """Return sum_t a_t A_t."""
        if self._group is None:
            return self._single.combine(a)
        return self._single.combine(a[:-1]) + a[-1] * self._group

    def factor(self, M: Array, S_inverse: Array, diagonal: Array) -> Callable[[Array], Array]:
        """Return what solves the system of H and a diagonal."""
        if self.in_columns:
            rough = self._factor_in_columns(M, S_inverse, diagonal)
        else:
            H = _symmetric(self._curvature(M, S_inverse))
            H[np.diag_indices_from(H)] += diagonal
            root = sl.cho_factor(H, lower=True, overwrite_a=True)

            def rough(right: Array) -> Array:
                found: Array = sl.cho_solve(root, right)
                return found

        def solve(right: Array) -> Array:
            found = rough(right)
            for _ in range(CORRECTIONS):
                product = self.margins(_symmetric(M @ self.combine(found) @ S_inverse)) - 1.0
                found = found + rough(right - product - diagonal * found)
            return found

        return solve

    def _factor_in_columns(self, M: Array, S_inverse: Array, diagonal: Array) -> Callable[[Array], Array]:
        A = self._single.entries()
        if self._group is not None:
            A = np.vstack([A, _entries(self._group[None])])
        root = sl.cholesky(_moved(M, S_inverse), lower=True)
        A = A @ root
        inner = (A.T / diagonal) @ A
        inner[np.diag_indices_from(inner)] += 1.0
        factor = sl.cho_factor(inner, lower=True, overwrite_a=True)
        return lambda right: (right - A @ sl.cho_solve(factor, A.T @ (right / diagonal))) / diagonal

    def _curvature(self, M: Array, S_inverse: Array) -> Array:
        """Return <A_s, M A_t S^-1> of all pairs of hinges."""
        H = self._single.curvature(M, S_inverse)
        if self._group is None:
            return H
        middle = _symmetric(M @ self._group @ S_inverse)
        beside = self._single.products(middle)[:, None]
        return np.block([[H, beside], [beside.T, np.array([[(self._group * middle).sum()]])]])


class _Differences:
    """Differences x_i - x_j and x_i - x_l, each once, and which two of them are a triplet's."""

    def __init__(self, X: Array, triplets: Array) -> None:
        rows, targets, impostors = triplets.T
        n, count = X.shape[0], rows.size
        near, of_near = np.unique(rows * n + targets, return_inverse=True)
        far, of_far = np.unique(rows * n + impostors, return_inverse=True)
        pairs = np.concatenate([near, far])
        self._D = X[pairs // n] - X[pairs % n]
        numbers = np.arange(count)
        self._of_triplets = sp.csr_array(
            (
                np.repeat([1.0, -1.0], count),
                (np.concatenate([numbers, numbers]), np.concatenate([of_near, of_far + near.size])),
            ),
            shape=(count, pairs.size),
        )

    def products(self, M: Array) -> Array:
        found: Array = self._of_triplets @ np.einsum("ij,ij->i", self._D @ M, self._D)
        return found

    def combine(self, a: Array) -> Array:
        return (self._D.T * (self._of_triplets.T @ a)) @ self._D

    def curvature(self, M: Array, S_inverse: Array) -> Array:
        by_pairs = (self._D @ M @ self._D.T) * (self._D @ S_inverse @ self._D.T)
        return np.asarray(self._of_triplets @ by_pairs @ self._of_triplets.T)

    def entries(self) -> Array:
        """Return a row for each A_t, such that dot products of rows are those of the matrices."""
        of_pairs = np.empty((len(self._D), numbers_in(self._D.shape[1])))
        for first in range(0, len(self._D), 1024):  # the matrices are twice as large as what is kept
            some = self._D[first : first + 1024]
            of_pairs[first : first + 1024] = _entries(some[:, :, None] * some[:, None, :])
        found: Array = self._of_triplets @ of_pairs
        return found


def numbers_in(columns: int) -> int:
    """Return how many numbers a symmetric matrix has."""
    return columns * (columns + 1) // 2


def _entries(matrices: Array) -> Array:
    """Return the lower triangles of symmetric matrices, those beside the diagonal times the root of 2."""
    i, j = np.tril_indices(matrices.shape[1])
    result: Array = matrices[:, i, j] * np.where(i == j, 1.0, np.sqrt(2.0))
    return result


def _moved(M: Array, S_inverse: Array) -> Array:
    """Return N, which takes the entries of U to those of M U S^-1, made symmetric."""
    i, j = np.tril_indices(M.shape[0])
    both = M[np.ix_(i, i)] * S_inverse[np.ix_(j, j)] + M[np.ix_(i, j)] * S_inverse[np.ix_(j, i)]
    both += M[np.ix_(j, i)] * S_inverse[np.ix_(i, j)] + M[np.ix_(j, j)] * S_inverse[np.ix_(i, i)]
    scale = np.where(i == j, np.sqrt(0.5), 1.0)
    return _symmetric(0.5 * both * np.outer(scale, scale))


class Optimum(NamedTuple):
    """M, and a multiplier of each hinge: S is positive semi-definite but for rounding."""

    M: Array
    multipliers: Array


class _Step(NamedTuple):
    """Changes of multipliers, S, M, and of what hinges have left on either side of their kink."""

    a: Array
    S: Array
    M: Array
    s: Array
    r: Array


def minimise(hinges: TripletHinges, M: Array, a: Array, tol: float, budget: Budget) -> Optimum:
    """Return the best M to within ``tol``; begin near M and the multipliers ``a``, which may be rough."""
    u, identity = hinges.prices, np.eye(M.shape[0])
    a = np.clip(a, INSIDE * u, (1.0 - INSIDE) * u)
    least = float(np.linalg.eigvalsh(hinges.combine(a))[0])
    a = a * min(1.0, (1.0 - LEAST_EIGENVALUE) / -least if least < 0 else 1.0)
    S = identity + hinges.combine(a)
    M = M + SPREAD * np.trace(M) / M.shape[0] * identity
    m = hinges.margins(M)
    r = np.maximum(m, 0.0) + DISTANCE * np.maximum(np.abs(m), 0.1)
    s = r - m
    best = math.inf, M
    for _ in range(MOST_STEPS):
        budget.check()
        dual = float(a.sum())
        primal = float(np.trace(M) + u @ np.maximum(hinges.margins(M), 0.0))
        best = min(best, (primal, M), key=lambda found: found[0])
        if best[0] - dual <= tol * best[0]:
            break
        try:
            step, shorter, longer = _newton_step(hinges, M, S, a, s, r)
        except np.linalg.LinAlgError:
            break  # as near as rounding lets it come
        M, s, r = M + shorter * step.M, s + shorter * step.s, r + shorter * step.r
        a = a + longer * step.a
        S = identity + hinges.combine(a)
    return Optimum(best[1], a)


def _newton_step(
    hinges: TripletHinges, M: Array, S: Array, a: Array, s: Array, r: Array
) -> tuple[_Step, float, float]:
    """Return a step towards less of mu, and how much of it the primal and the dual side can take."""
    b = hinges.prices - a
    root_M, root_S = sl.cholesky(M, lower=True), sl.cholesky(S, lower=True)
    S_inverse = sl.cho_solve((root_S, True), np.eye(S.shape[0]))
    solve = hinges.factor(M, S_inverse, s / a + r / b)
    count = M.shape[0] + 2 * a.size
    mu = float((M * S).sum() + a @ s + b @ r) / count

    off = r - s - hinges.margins(M)  # by rounding

    def towards(target: float, of_M: Array | float, of_s: Array | float, of_r: Array | float) -> _Step:
        """Return the changes for mu = ``target``, less the products of changes that were left out."""
        P = target * S_inverse - M - of_M
        right = (target - of_s) / a - s - (target - of_r) / b + r + hinges.margins(P) - 1.0 - off
        da = solve(right)
        dS = hinges.combine(da)
        ds = (target - of_s) / a - s - s / a * da
        dr = (target - of_r) / b - r + r / b * da
        return _Step(da, dS, _symmetric(P - M @ dS @ S_inverse), ds, dr)

    def lengths(step: _Step, part: float) -> tuple[float, float]:
        primal = min(_to_the_cone(root_M, step.M), _to_zero(s, step.s), _to_zero(r, step.r))
        dual = min(_to_the_cone(root_S, step.S), _to_zero(a, step.a), _to_zero(b, -step.a))
        return min(1.0, part * primal), min(1.0, part * dual)

    straight = towards(0.0, 0.0, 0.0, 0.0)
    x, y = lengths(straight, 1.0)
    left = float(((M + x * straight.M) * (S + y * straight.S)).sum())
    left += float((a + y * straight.a) @ (s + x * straight.s) + (b - y * straight.a) @ (r + x * straight.r))
    centring = max(min(left / (count * mu), 1.0) ** 3, LEAST_CENTRING)
    bend = _symmetric(straight.M @ straight.S @ S_inverse)
    step = towards(centring * mu, bend, straight.a * straight.s, -straight.a * straight.r)
    return step, *lengths(step, SHORTENED)


def _symmetric(A: Array) -> Array:
    result: Array = 0.5 * (A + A.T)
    return result


def _to_the_cone(root: Array, change: Array) -> float:
    """Return how much of a change keeps a matrix, of which the Cholesky factor is given, semi-definite."""
    half = sl.solve_triangular(root, change, lower=True)
    least = float(np.linalg.eigvalsh(_symmetric(sl.solve_triangular(root, half.T, lower=True)))[0])
    return np.inf if least >= 0 else -1.0 / least


def _to_zero(v: Array, change: Array) -> float:
    """Return how much of a change keeps all numbers above 0."""
    down = change < 0
    return float((v[down] / -change[down]).min()) if down.any() else np.inf
