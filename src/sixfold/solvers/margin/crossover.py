"""From a point near the optimum of a piecewise linear loss to the optimum itself.

Where an interior point has come close (:mod:`sixfold.solvers.margin.central_path` states the problem), most
multipliers are as good as at one end of [low, high]. With those put there and the others F free, the optimum
solves linear equations,

    l2 D theta = Z'a,        z_i.theta = t_i for i in F,

by the method of multipliers: theta minimises l2 |w|^2 / 2 - a.(Z theta - t) + sum_F W (z.theta - t)^2 / 2 and
a_F gains W (t - Z theta). With the weights W that the interior point ends with, a few rounds
reach machine precision, also where rows of F depend on each other. Rows that turn out to be on the wrong side
change sets, and the equations are solved again. If the sets do not settle, the interior point is kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.solvers.linalg import scaled_cholesky
from sixfold.solvers.margin.terms import Point, Terms

Array = NDArray[Any]
SORTING_ROUNDS = 8
MOST_FREE_ROWS = 4  # times d + 1, which there are at the optimum; more only where rows depend on each other
# Times the weights W, one after the other: rounding leaves W 1e-16 of Z'a = l2 D theta, and the part of the
# gap that the intercept adds is as large. heart_scale ends at 3e-10 after 1e-4 and at 8e-14 after 1e-8.
SOFTER = (1.0, 1e-4, 1e-8)
STIFF = 1e2  # times the penalty: a round with weights that are less than that gains less than two digits
AT_END = 1e-9  # of the range of a multiplier, or of the mean residual: what counts as being at the end


def crossover(terms: Terms, point: Point, enough: float) -> Point:
    """Return a point with rows at their ends exactly there, if its gap is small enough."""
    low, high, counts = terms.low, terms.high, terms.high > terms.low
    t, a, residual = terms.spare  # vectors as long as the table are not taken lightly
    t[:], a[:] = terms.targets(), terms.a
    at_high, at_low = _ends(terms)
    for _ in range(SORTING_ROUNDS):
        free = np.flatnonzero(counts & ~at_high & ~at_low)
        if free.size == 0 or free.size > MOST_FREE_ROWS * (terms.d + 1):
            break
        np.copyto(a, high, where=at_high)
        np.copyto(a, low, where=at_low)
        found = _meet(terms, free, t[free], a)
        np.subtract(t, terms.scores(found), out=residual)
        margin = AT_END * (high[free] - low[free])
        over, under = free[a[free] > high[free] + margin], free[a[free] < low[free] - margin]
        wrong = at_high & (residual < -AT_END * terms.unit)
        wrong |= at_low & (residual > AT_END * terms.unit)
        np.clip(a, low, high, out=a)
        if not (over.size or under.size or wrong.any()):
            vertex = terms.point(found, a, residual)
            if vertex.gap <= enough:
                return vertex
            break
        at_high[wrong], at_low[wrong] = False, False
        at_high[over], at_low[under] = True, True
    return point


def _ends(terms: Terms) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which multipliers belong at the high end and which at the low end."""
    width = (terms.high - terms.low) / terms.unit
    at_high = terms.p * width > terms.high - terms.a
    at_low = terms.m * width > terms.a - terms.low
    return at_high & (terms.p >= terms.m), at_low & (terms.m > terms.p)


def _meet(terms: Terms, free: NDArray[np.intp], t: Array, a: Array) -> Array:
    """Return the theta that meets the equations above, and let a meet them."""
    mine = a[free]
    a[free] = 0.0
    fixed = terms.slope(a)
    Z, stiffest = terms.gather(free), terms.weight[free]
    theta = np.zeros(fixed.size)
    root = np.sqrt(stiffest)[:, None] * Z
    stiff = root.T @ root
    # The stiffer the weights, the larger what they make of rounding: soft ones have the last word.
    for softer in SOFTER:
        if softer < 1.0 and softer * stiff.diagonal().max() < STIFF * terms.shrink.max():
            break
        weight = softer * stiffest
        matrix = softer * stiff + np.diag(terms.shrink)
        if not terms.problem.fit_intercept:
            matrix[-1, -1] = 1.0
        solve, least = scaled_cholesky(matrix), np.inf
        for _ in range(20):
            pull = mine + weight * (t - Z @ theta)
            theta = theta + solve(fixed + Z.T @ pull - terms.shrink * theta)
            missed = t - Z @ theta
            mine = mine + weight * missed
            worst = float(np.abs(missed).max())
            if not worst < 0.5 * least:
                break
            least = worst
        if worst > AT_END * terms.unit:  # more equations than unknowns: the multipliers say which have to go
            break
    a[free] = mine
    return theta
