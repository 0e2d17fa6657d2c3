"""The central path of a piecewise linear loss: least absolute deviations and the hinge.

    minimise  sum_i q_i loss(z_i.theta, t_i) + l1 |w|_1 + l2 |w|^2 / 2,    z = (x, 1), theta = (w, b)

Both losses are dearer the further the residual r = t - z.theta is from 0, on one side or on both:

    q loss = max(high r, low r),   absolute: [low, high] = [-q, q],   hinge: [0, q] for t = 1, [-q, 0] for -1

An absolute value |w_j| is a row of its own (z = e_j, t = 0, q = l1), so there is one kind of term. With
residuals t - Z theta = p - m, p, m >= 0, and multipliers a for these equations, the optimum has

    Z'a = l2 D theta,    p (high - a) = 0,    m (a - low) = 0,    low <= a <= high,

D the identity without its entry for b, and Newton's method follows p (high - a) = m (a - low) = mu down to
mu = 0 (Mehrotra's predictor and corrector; Portnoy and Koenker 1997 for the absolute loss, Ferris and Munson
2002 for the hinge). Each step solves two systems with one matrix of d + 1 rows and columns,

    (Z'WZ + l2 D) step = right,    W = 1 / (p / (high - a) + m / (a - low)),

and reads X three times: for this matrix, for the predictor and for the corrector. Z'a needs no pass of its
own, since Z'da = l2 D step - (Z'a - l2 D theta) is what was solved for. At the end rows are sorted into those
at either end and those in between, which determines the optimum exactly
(:mod:`sixfold.solvers.margin.crossover`). u = -a / q is the dual point behind the duality gap.

Three things are looked after on the way. The products must not vanish before Z'a = l2 D theta is met, or
every step would end at a boundary: after a short step the next one keeps more of them. A step has one length
in theta and another in a, or the shorter for both where two would undo each other. And where the weights W
are as large as 1 / rounding, what their steps leave of Z'a - l2 D theta, whose square over 2 l2 is a part of
the gap, is removed at the end by steps with smaller weights. A path that still ends too far from the optimum
is followed again with systems from the root of their matrix (:mod:`sixfold.solvers.margin.root_factor`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import BudgetExhausted
from sixfold.solvers.linalg import SymmetricFactor, scaled_cholesky
from sixfold.solvers.margin.crossover import crossover
from sixfold.solvers.margin.progress import MarginProgress
from sixfold.solvers.margin.root_factor import root_solver
from sixfold.solvers.margin.small_path import hasten
from sixfold.solvers.margin.terms import Point, Terms

Array = NDArray[Any]
STEP = 0.9995  # how much of the way to the boundary a step may go
SHORT = 0.3  # a step after which the next one looks after what is unmet
SIMILAR = 0.9  # lengths of a step in theta and in a whose ratio is above this need no choice
CENTRING = 0.3  # the share of the products that it keeps then, at most
# Of the gap that is asked for: two more iterations, after which rows can be told apart. On 200,000 x 100, 8
# rounds of sorting rows did not settle after a gap of 2e-7, and two did after 8e-9.
CLOSER = 0.01
MOST_STALLED = 25  # iterations that halve neither gap nor products, after which rounding has the upper hand
MOST_TRIES = 4  # iterations after all products are small enough, for a gap that is not
ZERO = 0.5  # of l1: multipliers of coefficients that are 0 in the end
SMALL = 0.3  # of the tolerance: what it may cost to make them 0
START = 0.5  # least residual to begin with, of the hinge's 1 or of the mean residual
SOFTER = (1e8, 1e5, 1e2, 1.0)  # limits of the weights, in multipliers per residual
BALANCE_ROUNDS = 4


def minimise_target(
    terms: Terms, progress: MarginProgress, to_vertex: bool = True
) -> tuple[Array, Array, float]:
    """Return theta, the dual point of one target and their gap, rounding aside.

    Without ``to_vertex`` the path ends as soon as the gap is one that may be kept.
    """
    constant = terms.constant()
    if constant is not None:
        return np.append(np.zeros(terms.d), constant), np.zeros(terms.n), 0.0
    best = end_of_path(terms, progress, exact=False, to_vertex=to_vertex)
    tolerance = progress.tolerance(terms.target)
    for allowed in (tolerance, 0.0) if terms.penalties else (0.0,):
        if best.gap <= tolerance or not terms.few or progress.budget.exhausted():
            break
        best = replace(best, a=best.a.copy())
        terms.keep_off(best.theta, allowed)
        other = end_of_path(terms, progress, exact=True)
        other = replace(other, gap=other.gap + terms.left_out(other.theta))
        best = other if other.gap < best.gap else best
    if terms.penalties:
        with suppress(BudgetExhausted):  # which was noted
            best = _without_small(terms, best, tolerance)
    # In vectors that are there already: residuals are of no more use.
    u, q = terms.p[: terms.n], terms.m[: terms.n]
    np.negative(best.a[: terms.n], out=u)
    np.maximum(terms.high[: terms.n], np.negative(terms.low[: terms.n], out=q), out=q)
    u[q == 0] = 0.0
    return best.theta, np.divide(u, q, out=u, where=q > 0), best.gap


def _without_small(terms: Terms, point: Point, tolerance: float) -> Point:
    """Return the point with coefficients 0 whose multipliers are far from l1, if that is as good."""
    slack = terms.high[terms.n :] - np.abs(point.a[terms.n :])
    for small in (
        slack > np.abs(point.theta[:-1]) * terms.high[terms.n :] / terms.unit,
        slack > (1.0 - ZERO) * terms.high[terms.n :],
    ):
        theta = np.append(np.where(small, 0.0, point.theta[:-1]), point.theta[-1])
        found = terms.point(theta, point.a, terms.targets() - terms.scores(theta))
        if found.gap <= max(point.gap, SMALL * tolerance):
            return found
    return point


def end_of_path(terms: Terms, progress: MarginProgress, exact: bool, to_vertex: bool = True) -> Point:
    """Follow the path from its beginning; return the best point, or the optimum itself where it is found."""
    path = None
    try:
        path = _Path(terms, exact)
        hasten(path, progress, _goal(path, progress))
        point = _follow(path, progress, to_vertex)
        # Least absolute deviations need not be unique: the end of the path is, a vertex would be chance.
        sortable = to_vertex and terms.problem.loss.name != "absolute" and not terms.wide
        if point.gap <= progress.tolerance(terms.target) and sortable:
            point = crossover(terms, point, max(point.gap, CLOSER * _goal(path, progress)))
        return point
    except BudgetExhausted:
        progress.budget.exhausted()  # which notes why
        return (
            Point(np.zeros(terms.d + 1), terms.a, np.inf)
            if path is None
            else Point(path.best, terms.a, path.gap)
        )


def _follow(path: _Path, progress: MarginProgress, to_vertex: bool) -> Point:
    """Follow the path until the gap, or all products, are as good as zero; return the best point there.

    Without ``to_vertex`` until the gap is one that may be kept.
    """
    k, tolerance = path.terms.target, progress.tolerance(path.terms.target)
    least, smallest, stalled, tries = np.array([np.inf, np.inf]), np.inf, 0, 0
    for _ in progress.budget.iterations():
        path.advance()
        if path.gap > tolerance >= smallest:
            path.retreat()  # rounding has the last word, and the step before was good enough
            break
        progress.record(k, path.objective, path.gap)
        if progress.budget.exhausted() or not path.products > 0 or (path.gap <= tolerance and not to_vertex):
            break
        goal, state = _goal(path, progress), np.array([path.gap, path.products])
        halved = state <= 0.5 * least
        stalled = 0 if halved.any() else stalled + 1
        least, smallest = np.where(halved, state, least), min(smallest, path.gap)
        if state.min() <= CLOSER * goal or (stalled and path.gap <= goal):
            tries += 1
            point = path.refresh()
            if point.gap > goal:
                point = path.balanced(point, goal)
            if point.gap <= (tolerance if tries == MOST_TRIES else goal):
                return point
        if stalled >= MOST_STALLED or tries >= MOST_TRIES:
            break
    point = path.refresh()
    return point if point.gap <= tolerance else path.balanced(point, tolerance)


def _goal(path: _Path, progress: MarginProgress) -> float:
    """Return the gap to aim at: relative to the objective itself where that is small.

    Only then does a tiny penalty on separable data still choose the plane of the largest margin.
    """
    tolerance, budget = progress.tolerance(path.terms.target), progress.budget
    return min(tolerance, max(budget.tol * path.objective, 1e-22 * progress.scale))


class _Path:
    """A point on the way: theta here, p, m and a in the terms.

    ``exact`` systems are solved from the root of their matrix (:mod:`sixfold.solvers.margin.root_factor`).
    """

    def __init__(self, terms: Terms, exact: bool) -> None:
        """Begin with least squares, residuals kept off zero and multipliers in the middle."""
        q = 0.5 * (terms.high - terms.low)
        terms.weight[:] = q
        t = terms.targets()
        if terms.wide:
            theta = terms.few_rows()(terms.slope(q * t))
        else:
            matrix, right = terms.matrix()
            terms.factor = SymmetricFactor(matrix)
            theta = terms.factor.solve(right)
        residual = t - terms.scores(theta)
        means = [float(q @ np.abs(part)) / float(q.sum()) for part in (residual, t)]
        terms.unit = max(means[0], 1e-6 * means[1]) or 1.0
        inside = START * (1.0 if terms.one_sided else terms.unit) + 1e-12 * float(np.abs(residual).max())
        terms.p[:] = np.where(q > 0, np.maximum(residual, 0.0) + inside, 0.0)
        terms.m[:] = np.where(q > 0, terms.p - residual, 0.0)
        terms.a[:] = 0.5 * (terms.high + terms.low)
        self.terms, self.exact, self.length = terms, exact, 0.0
        self.theta, self.slope = theta, terms.slope(terms.a)
        self.ends = 2 * int(np.count_nonzero(q))
        self.best, self.least = theta, np.inf
        self.objective, self.gap, self.products = np.inf, np.inf, 0.0
        self._note(terms.take(0.0, 0.0))

    def advance(self) -> None:
        """Take Mehrotra's step."""
        terms, theta = self.terms, self.theta
        solve, right = self._system()
        found, sums = terms.predict(solve(right))
        primal, dual = 1.0 / found[0], 1.0 / max(found[1], 1.0)
        reached = self.products + primal * found[2] + dual * found[3] + primal * dual * found[4]
        share = (reached / self.products) ** 3
        if self.length < SHORT:
            # The products must not vanish before Z'a = l2 D theta is met: every step would end at a boundary.
            share = max(share, min(CENTRING, (self.gap - self.products) / self.products))
        aim = self.products / self.ends * share
        # The predictor's right-hand side lost digits to cancellation; this one is summed from small terms.
        slope = sums[0]
        step = solve(slope - terms.shrink * theta + sums[1] - aim * sums[2] - sums[3])
        if not np.isfinite(step).all():  # on the boundary to the last bit: nothing is left to gain
            self.products = 0.0
            return
        primal, dual = self._lengths(slope, step, *(STEP / np.maximum(terms.correct(step, aim), STEP)))
        self.before = theta, slope, primal, dual
        self.length = min(primal, dual)
        self.slope = slope + dual * (terms.shrink * (theta + step) - slope)
        self.theta = theta + primal * step
        self._note(terms.take(primal, dual))

    def _lengths(self, slope: Array, step: Array, primal: float, dual: float) -> tuple[float, float]:
        """Return both lengths, or the shorter of them for both where that leaves less of products and slope.

        With two lengths Z'a - l2 D theta becomes (1 - dual) of what it was + (dual - primal) l2 D step.
        """
        terms = self.terms
        shorter = min(primal, dual)
        if terms.problem.l2 == 0 or shorter > SIMILAR * max(primal, dual):
            return float(primal), float(dual)
        dp, dm, da = terms.spare
        sums = (
            dp @ (terms.high - terms.a) + dm @ (terms.a - terms.low),
            da @ (terms.m - terms.p),
            da @ (dm - dp),
        )
        unmet = slope - terms.shrink * self.theta

        def left(s: float, r: float) -> float:
            products = self.products + s * sums[0] + r * sums[1] + s * r * sums[2]
            rest = (1.0 - r) * unmet + (r - s) * terms.shrink * step
            return float(products + terms.price(rest, self.theta))

        if left(shorter, shorter) < left(primal, dual):
            return float(shorter), float(shorter)
        return float(primal), float(dual)

    def resume(
        self, theta: Array, slope: Array, length: float, objective: float, gap: float, products: float
    ) -> None:
        """Go on from where steps that were made elsewhere have led."""
        self.theta, self.slope, self.length = theta, slope, length
        self.objective, self.gap, self.products = objective, gap, products
        if objective < self.least:
            self.best, self.least = theta, objective

    def retreat(self) -> None:
        """Take the last step back."""
        self.theta, self.slope, primal, dual = self.before
        self._note(self.terms.take(-primal, -dual))

    def _system(self) -> tuple[Callable[[Array], Array], Array]:
        """Return right -> (Z'WZ + l2 D)^-1 right, and the predictor's right-hand side."""
        terms = self.terms
        if self.exact or terms.wide:
            solve = (
                root_solver(terms.all_rows, terms.weight, terms.shrink) if self.exact else terms.few_rows()
            )
            unmet = self.slope - terms.shrink * self.theta
            return solve, unmet + terms.slope(terms.weight * (terms.p - terms.m))
        matrix, right = terms.matrix()
        return self._solver(matrix), right + self.slope - matrix @ self.theta

    def _solver(self, matrix: Array) -> Callable[[Array], Array]:
        """Return right -> matrix^-1 right, without what dependent columns leave open."""
        solve, factor = scaled_cholesky(matrix), self.terms.factor
        if factor is None or factor.vectors is None:
            return solve
        scale, vectors = factor.scale, factor.vectors
        return lambda right: vectors @ (vectors.T @ (scale * solve(right))) / scale

    def refresh(self) -> Point:
        """Compute residuals and slope anew, without the rounding errors of all steps; return the point."""
        terms = self.terms
        residual = terms.targets() - terms.scores(self.theta)
        off = residual - (terms.p - terms.m)
        off[terms.weight == 0] = 0.0
        terms.p += np.maximum(off, 0.0)
        terms.m += np.maximum(-off, 0.0)
        self.slope = terms.slope(terms.a)
        self._note(terms.take(0.0, 0.0))
        return terms.point(self.theta, terms.a, residual)

    def balanced(self, point: Point, enough: float) -> Point:
        """Return a point nearby, or this one, that meets Z'a = l2 D theta.

        Where the weights are as large as 1 / rounding, their steps leave a with errors that are no longer
        small beside what this equation tolerates: |Z'a - l2 D theta|^2 / (2 l2) is a part of the gap. The
        Newton step for this equation alone, with weights that are not as large, changes little else.
        """
        terms, width, own = self.terms, self.terms.high - self.terms.low, self.terms.weight.copy()
        t, best = terms.targets(), point
        for softest in SOFTER:
            np.minimum(own, softest * width / terms.unit, out=terms.weight)
            solve = self._system()[0]
            theta, a = self.theta, terms.a.copy()
            for _ in range(BALANCE_ROUNDS):
                step = solve(terms.slope(a) - terms.shrink * theta)
                theta = theta + step
                a = np.clip(a - terms.weight * terms.scores(step), terms.low, terms.high)
                found = terms.point(theta, a, t - terms.scores(theta))
                best = found if found.gap < best.gap else best
            if best.gap <= enough:
                break
        terms.weight[:] = own
        return best

    def _note(self, state: tuple[float, float, float]) -> None:
        loss, slack, self.products = state
        self.objective, self.gap = self.terms.objective_and_gap(self.theta, self.slope, loss, slack)
        if self.objective < self.least:
            self.best, self.least = self.theta, self.objective
