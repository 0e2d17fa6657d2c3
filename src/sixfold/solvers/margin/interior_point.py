"""An interior-point method for piecewise linear losses: least absolute deviations and the hinge.

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

Columns are taken relative to a rough mean m where there is an intercept, which then stands for b + m.w: a
large mean would otherwise use up the digits of the matrix.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget, BudgetExhausted
from sixfold.data.blocks import Block, Blocks
from sixfold.risk.problem import BALANCE, Problem, normalized_weights
from sixfold.solvers.base import Solution
from sixfold.solvers.least_squares.moments import rough_mean, weighted_gram
from sixfold.solvers.linalg import SymmetricFactor, scaled_cholesky
from sixfold.solvers.margin.crossover import crossover
from sixfold.solvers.margin.progress import MarginProgress
from sixfold.solvers.margin.root_factor import root_solver
from sixfold.solvers.threads import single_threaded_blas
from sixfold.solvers.wide_tables import MAX_ROWS, RowCoordinates

Array = NDArray[Any]
STEP = 0.9995  # how much of the way to the boundary a step may go
SHORT = 0.3  # a step after which the next one looks after what is unmet
SIMILAR = 0.9  # lengths of a step in theta and in a whose ratio is above this need no choice
CENTRING = 0.3  # the share of the products that it keeps then, at most
MAX_SYSTEM_COLUMNS = 4000  # beyond, a d x d system per iteration is no longer cheap
FEW_COLUMNS = 1000  # a system of which takes less than 50 ms, whatever the rows are like
# Of the gap that is asked for: two more iterations, after which rows can be told apart. On 200,000 x 100, 8
# rounds of sorting rows did not settle after a gap of 2e-7, and two did after 8e-9.
CLOSER = 0.01
MOST_STALLED = 25  # iterations that halve neither gap nor products, after which rounding has the upper hand
MOST_TRIES = 4  # iterations after all products are small enough, for a gap that is not
START = 0.5  # least residual to begin with, of the hinge's 1 or of the mean residual
SOFTER = (1e8, 1e5, 1e2, 1.0)  # limits of the weights, in multipliers per residual
BALANCE_ROUNDS = 4
NO_SLOPE = 1e-14  # of the length of a column times all multipliers: what rounding leaves of a slope of 0
MOST_NUMBERS = 1 << 22  # in a table whose root is factorised in every iteration
PIECEWISE_LINEAR = ("absolute", "hinge")


@dataclass(frozen=True)
class Point:
    """Parameters, multipliers, and a bound of how far the former are from the optimum."""

    theta: Array
    a: Array
    gap: float


class InteriorPoint:
    """Primal-dual interior point for piecewise linear losses; several targets one after the other."""

    name: ClassVar[str] = "interior_point"
    needs: ClassVar[tuple[str, ...]] = ("gradient", "conjugate", "domain")
    notices_nonfinite: ClassVar[bool] = False

    def objection(self, problem: Problem) -> str | None:
        """Return why this solver cannot minimise the problem, or None."""
        if problem.loss.name not in PIECEWISE_LINEAR:
            return "it is made for the absolute loss and the hinge"
        return "it cannot keep the coefficients positive" if problem.penalty.positive else None

    def suits(self, problem: Problem, blocks: Blocks) -> bool:
        """Return whether a system per iteration is affordable, and rows are dear enough to save."""
        if problem.loss.name == "hinge" and blocks.sparse:
            return blocks.n_columns <= FEW_COLUMNS
        return self.rescues(problem, blocks)

    def rescues(self, problem: Problem, blocks: Blocks) -> bool:
        """Return whether a system per iteration is affordable."""
        wide = problem.penalty.quadratic and not blocks.sparse and blocks.n_rows <= MAX_ROWS
        return blocks.n_columns <= MAX_SYSTEM_COLUMNS or wide

    def solve(
        self, problem: Problem, blocks: Blocks, budget: Budget, start: Solution | None = None
    ) -> Solution:
        """Minimise the problem; a path begins in the middle, wherever another solver ended."""
        wide = RowCoordinates.of(problem, blocks, budget)
        if wide is None:
            return self._solve_targets(problem, blocks, budget)
        found = wide.solve(self, None)
        if found.certificate.converged or budget.exhausted() or blocks.n_columns > MAX_SYSTEM_COLUMNS:
            return found
        # Products of rows have the square of their condition number, which the rows themselves do not.
        other = self._solve_targets(problem, blocks, budget)
        return other if other.certificate.gap < found.certificate.gap else found

    def _solve_targets(self, problem: Problem, blocks: Blocks, budget: Budget) -> Solution:
        w, b = np.zeros((blocks.n_columns, blocks.n_targets)), np.zeros(blocks.n_targets)
        dual = np.zeros((blocks.n_rows, blocks.n_targets))
        progress = MarginProgress(problem, blocks, budget)
        with single_threaded_blas(blocks.n_columns):
            for k in range(blocks.n_targets):
                budget.new_part()
                if budget.exhausted():
                    break
                terms = Terms(problem, blocks, k, budget)
                theta, dual[:, k] = _minimise(terms, progress)
                w[:, k], b[k] = terms.parameters(theta)
                del terms
        b = blocks.rounded(b)
        certificate = problem.certify("duality gap", w, b, blocks, budget.tol, dual)
        return Solution(w, b, certificate, "interior point", len(budget.history), dual)


class Terms:
    """The terms of one target: one for every row that counts, one for every |w_j| that is penalised."""

    def __init__(self, problem: Problem, blocks: Blocks, target: int, budget: Budget) -> None:
        self.problem, self.blocks, self.target, self.budget = problem, blocks, target, budget
        self.n, self.d = blocks.n_rows, blocks.n_columns
        self.penalties = self.d if problem.l1 > 0 else 0
        self.shrink = np.append(np.full(self.d, problem.l2), 0.0)  # l2 D
        centred = problem.fit_intercept and not blocks.sparse
        self.shift = _centre(blocks) if centred else np.zeros(self.d)
        self.parts = [(block.start, self._rows(block.X)) for block in blocks]
        if self.penalties:
            one = sp.eye_array(self.d, format="csr")
            self.parts.append((self.n, core.sparse_rows(one.data, one.indices, one.indptr, self.d, 0.0)))
        # p, m, a, low, high, weight and the steps of p, m and a, as the native sweeps know them
        self.vectors = np.zeros((9, self.n + self.penalties))
        self.p, self.m, self.a, self.low, self.high, self.weight, *self.spare = self.vectors
        self.one_sided = one_sided = problem.loss.labels == "sign"
        for block in blocks:
            rows, q, y = block.rows, normalized_weights(block, blocks), block.y[:, target]
            self.high[rows] = np.where(y > 0, q, 0.0) if one_sided else q
            self.low[rows] = np.where(y > 0, 0.0, -q) if one_sided else -q
        self.high[self.n :], self.low[self.n :] = problem.l1, -problem.l1
        self.unit = 1.0  # a typical residual
        self.factor: SymmetricFactor | None = None  # of Z'QZ + l2 D

    def parameters(self, theta: Array) -> tuple[Array, float]:
        """Return w and b as the user knows them; b makes up for what rounding does to w."""
        w = self.blocks.rounded(theta[:-1])
        return w, math.fsum((theta[-1], *(-self.shift * w)))

    def targets(self) -> Array:
        """Return t."""
        columns = [np.asarray(block.y[:, self.target], dtype=np.float64) for block in self.blocks]
        return np.concatenate([*columns, np.zeros(self.penalties)])

    def constant(self) -> float | None:
        """Return the one value of a target that has no other: b fits it to the last bit, no path does."""
        t = self.targets()[: self.n][self.high[: self.n] > self.low[: self.n]]
        alike = self.problem.fit_intercept and t.size > 0 and (t == t[0]).all()
        return float(t[0]) if alike else None

    def scores(self, theta: Array) -> Array:
        """Return Z theta."""
        result = np.empty(self.n + self.penalties)
        ends = [start for start, _ in self.parts[1:]] + [result.size]
        for (start, rows), end in zip(self.parts, ends, strict=True):
            self.budget.check(core.row_scores(rows, theta, result[start:end], *self._limits()))
        return result

    def slope(self, a: Array) -> Array:
        """Return Z'a; its entry for b is zero without intercept."""
        result, part = np.zeros(self.d + 1), np.empty(self.d + 1)
        ends = [start for start, _ in self.parts[1:]] + [a.size]
        for (start, rows), end in zip(self.parts, ends, strict=True):
            self.budget.check(core.row_slope(rows, a[start:end], part, *self._limits()))
            result += part
        return result

    def matrix(self) -> tuple[Array, Array]:
        """Return Z'WZ + l2 D and Z'W t."""
        matrix, right = np.diag(self.shrink), np.zeros(self.d + 1)
        for block in self.blocks:
            more = self._moments(block, self.weight[block.rows])
            matrix += more[0]
            right += more[1]
        if not self.problem.fit_intercept:  # b stays 0
            matrix[-1], matrix[:, -1], right[-1] = 0.0, 0.0, 0.0
        diagonal = np.arange(self.penalties)
        matrix[diagonal, diagonal] += self.weight[self.n :]
        empty = np.flatnonzero(matrix.diagonal() == 0)
        matrix[empty, empty] = 1.0
        return matrix, right

    def predict(self, step: Array) -> tuple[Array, Array]:
        """Make the predicted step; return what it says of its length and the sums of the corrector."""
        sums, some = np.zeros((4, self.d + 1)), np.empty((4, self.d + 1))
        found = np.zeros(5)
        for start, rows in self.parts:
            finished, *part = core.predict_step(rows, step, self.vectors, start, some, *self._limits())
            self.budget.check(finished)
            sums += some
            found[:2] = np.maximum(found[:2], part[:2])
            found[2:] += part[2:]
        return found, sums

    def correct(self, step: Array, aim: float) -> Array:
        """Make the corrected step; return the reciprocals of its longest lengths."""
        largest = np.zeros(2)
        for start, rows in self.parts:
            finished, *part = core.correct_step(rows, step, aim, self.vectors, start, *self._limits())
            self.budget.check(finished)
            largest = np.maximum(largest, part)
        return largest

    def take(self, primal: float, dual: float) -> tuple[float, float, float]:
        """Take the step; return the loss, its distance from what a certifies, and the sum of products."""
        state: tuple[float, float, float] = core.take_step(primal, dual, self.vectors)
        return state

    def objective_and_gap(self, theta: Array, slope: Array, loss: float, slack: float) -> tuple[float, float]:
        """Return the objective and its distance from the bound that a certifies, slope = Z'a.

        An imbalance of a in b has to be made up for, at the price of what it would gain by moving b.
        """
        objective = loss + 0.5 * self.problem.l2 * float(theta[:-1] @ theta[:-1])
        return objective, slack + self.price(slope - self.shrink * theta, theta)

    def price(self, unmet: Array, theta: Array) -> float:
        """Return what unmet = Z'a - l2 D theta adds to the gap."""
        price = float(np.abs(unmet[-1])) * (abs(theta[-1]) + self.unit)
        if self.problem.l2 > 0:
            return price + 0.5 * float(unmet[:-1] @ unmet[:-1]) / self.problem.l2
        return price + float(np.abs(unmet[:-1]) @ np.abs(theta[:-1]))

    def point(self, theta: Array, a: Array, residual: Array) -> Point:
        """Return theta and a with the gap that they will be certified with; residual = t - Z theta.

        :meth:`~sixfold.risk.problem.Problem.certify` makes up for an imbalance in b by shrinking one side,
        which moves the slopes of all columns.
        """
        even = a
        if self.problem.fit_intercept and self.one_sided:
            even = a.copy()
            even[: self.n] = BALANCE["sign"](a[: self.n, None], a[: self.n, None], np.ones(self.n))[:, 0]
        cost = np.maximum(self.high * residual, self.low * residual)
        slack, slope = float((cost - even * residual).sum()), self.slope(even)
        objective, gap = self.objective_and_gap(theta, slope, float(cost.sum()), slack)
        if self.problem.l2 == 0:
            unmet = slope - self.shrink * theta
            gap = max(slack - float(unmet @ theta), 0.0)
            gap = objective - self._share(slope, even) * max(objective - gap, 0.0)
        return Point(theta, a, gap)

    def _share(self, slope: Array, a: Array) -> float:
        """Return how much of a can be certified where no squared penalty puts a price on its slope."""
        if self.penalties:  # no slope of the rows may be above l1
            steepest = float(np.abs(slope[:-1] - a[self.n :]).max(initial=0.0))
            return min(self.problem.l1 / steepest, 1.0) if steepest > 0 else 1.0
        return float((np.abs(self.seen(slope)) <= NO_SLOPE * self.lengths * np.abs(a).sum()).all())

    @property
    def lengths(self) -> Array:
        """The lengths of the columns."""
        return np.ones(self.d + 1) if self.factor is None else self.factor.scale

    def seen(self, slope: Array) -> Array:
        """Return a slope without its part along combinations of columns that are 0 but for rounding."""
        if self.factor is None or self.factor.vectors is None:
            return slope
        vectors, scale = self.factor.vectors, self.factor.scale
        return np.asarray(scale * (vectors @ (vectors.T @ (slope / scale))))

    @property
    def few(self) -> bool:
        """Whether all rows of Z may be held at once, and an orthogonal factorisation is affordable."""
        return (self.n + self.penalties) * (self.d + 1) <= MOST_NUMBERS

    @cached_property
    def all_rows(self) -> Array:
        """Z."""
        return self.gather(np.arange(self.n + self.penalties))

    def gather(self, chosen: NDArray[np.intp]) -> Array:
        """Return the chosen rows of Z, in order."""
        result = np.zeros((chosen.size, self.d + 1))
        for block in self.blocks:
            begin, end = np.searchsorted(chosen, [block.rows.start, block.rows.stop])
            part = block.X[chosen[begin:end] - block.start]
            result[begin:end, :-1] = (part.toarray() if self.blocks.sparse else part) - self.shift
            result[begin:end, -1] = self.problem.fit_intercept
        begin = int(np.searchsorted(chosen, self.n))
        result[np.arange(begin, chosen.size), chosen[begin:] - self.n] = 1.0
        return result

    def _rows(self, X: Any) -> Any:
        constant = float(self.problem.fit_intercept)
        if not self.blocks.sparse:
            return core.dense_rows(X, self.shift, constant)
        starts = X.indptr.astype(X.indices.dtype, copy=False)
        return core.sparse_rows(X.data, X.indices, starts, self.d, constant)

    def _moments(self, block: Block, weight: Array) -> tuple[Array, Array]:
        """Return sum_i weight_i z_i z_i' and sum_i weight_i z_i t_i over the rows of a block."""
        y = block.y[:, self.target : self.target + 1]
        if self.blocks.sparse:
            gram, right = weighted_gram(block, weight, self.budget.flag), np.empty(self.d + 1)
            self.budget.check(core.row_slope(self._rows(block.X), weight * y[:, 0], right, *self._limits()))
            return gram, right
        gram = np.empty((self.d + 2, self.d + 2))
        about = np.append(self.shift, 0.0)
        self.budget.check(core.moments(block.X, y, weight, about, None, gram, *self._limits()))
        z = np.append(np.arange(self.d), self.d + 1)
        return gram[np.ix_(z, z)], gram[z, self.d]

    def _limits(self) -> tuple[float, NDArray[np.int32]]:
        return self.budget.seconds_left, self.budget.flag


def _centre(blocks: Blocks) -> Array:
    """Return a rough mean of each column, and exactly the value of one that has no other.

    What rounding would leave of a constant column is no column to fit anything to.
    """
    first, mean = np.asarray(next(iter(blocks)).X[0], dtype=np.float64), rough_mean(blocks)
    alike = np.flatnonzero(np.abs(first - mean) <= 1e-6 * np.abs(first))
    for block in blocks:
        alike = alike[(block.X[:, alike] == first[alike]).all(axis=0)]
    mean[alike] = first[alike]
    return mean


def _minimise(terms: Terms, progress: MarginProgress) -> tuple[Array, Array]:
    """Return theta and the dual point of one target."""
    constant = terms.constant()
    if constant is not None:
        return np.append(np.zeros(terms.d), constant), np.zeros(terms.n)
    best = _end_of_path(terms, progress, exact=False)
    if best.gap > progress.tolerance(terms.target) and terms.few and not progress.budget.exhausted():
        best = replace(best, a=best.a.copy())
        other = _end_of_path(terms, progress, exact=True)
        best = other if other.gap < best.gap else best
    # In vectors that are there already: residuals are of no more use.
    u, q = terms.p[: terms.n], terms.m[: terms.n]
    np.negative(best.a[: terms.n], out=u)
    np.maximum(terms.high[: terms.n], np.negative(terms.low[: terms.n], out=q), out=q)
    u[q == 0] = 0.0
    return best.theta, np.divide(u, q, out=u, where=q > 0)


def _end_of_path(terms: Terms, progress: MarginProgress, exact: bool) -> Point:
    """Follow the path from its beginning; return the best point, or the optimum itself where it is found."""
    path = None
    try:
        path = _Path(terms, exact)
        point = _follow(path, progress)
        # Least absolute deviations need not be unique: the end of the path is, a vertex would be chance.
        if point.gap <= progress.tolerance(terms.target) and terms.problem.loss.name != "absolute":
            point = crossover(terms, point, max(point.gap, _goal(path, progress)))
        return point
    except BudgetExhausted:
        progress.budget.exhausted()  # which notes why
        return (
            Point(np.zeros(terms.d + 1), terms.a, np.inf)
            if path is None
            else Point(path.best, terms.a, path.gap)
        )


def _follow(path: _Path, progress: MarginProgress) -> Point:
    """Follow the path until the gap, or all products, are as good as zero; return the best point there."""
    k, tolerance = path.terms.target, progress.tolerance(path.terms.target)
    least, smallest, stalled, tries = np.array([np.inf, np.inf]), np.inf, 0, 0
    for _ in progress.budget.iterations():
        path.advance()
        if path.gap > tolerance >= smallest:
            path.retreat()  # rounding has the last word, and the step before was good enough
            break
        progress.record(k, path.objective, path.gap)
        if progress.budget.exhausted() or not path.products > 0:
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
        matrix, right = terms.matrix()
        self.factor = terms.factor = SymmetricFactor(matrix)
        theta = self.factor.solve(right)
        t = terms.targets()
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

    def retreat(self) -> None:
        """Take the last step back."""
        self.theta, self.slope, primal, dual = self.before
        self._note(self.terms.take(-primal, -dual))

    def _system(self) -> tuple[Callable[[Array], Array], Array]:
        """Return right -> (Z'WZ + l2 D)^-1 right, and the predictor's right-hand side."""
        terms = self.terms
        if self.exact:
            solve = root_solver(terms.all_rows, terms.weight, terms.shrink)
            unmet = self.slope - terms.shrink * self.theta
            return solve, unmet + terms.slope(terms.weight * (terms.p - terms.m))
        matrix, right = terms.matrix()
        return self._solver(matrix), right + self.slope - matrix @ self.theta

    def _solver(self, matrix: Array) -> Callable[[Array], Array]:
        """Return right -> matrix^-1 right, without what dependent columns leave open."""
        solve, scale, vectors = scaled_cholesky(matrix), self.factor.scale, self.factor.vectors
        if vectors is None:
            return solve
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
