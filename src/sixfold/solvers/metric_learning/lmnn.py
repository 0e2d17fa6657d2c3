"""Large margin nearest neighbours: convex in M = L'L, minimised over L, with a bound from its dual.

    F(M) = <B, M> + sum_t u_t [1 + <A_t, M>]_+,       M positive semi-definite,
    A_t = C_ij - C_il,    C_ij = (x_i - x_j)(x_i - x_j)',    B = pull P + trace I,    u_t = (1 - pull) q_i

    sum_t a_t <= min F   for any 0 <= a_t <= u_t with  S = B + sum_t a_t A_t  positive semi-definite,

since F(M) >= <B, M> + sum_t a_t (1 + <A_t, M>) = sum_t a_t + <S, M>.

Rows are mapped by B^(-1/2) first, after which <B, M> is |L|^2: whatever the columns are, the problem is as
well conditioned as its hinges are. These are rounded over a width g, and L-BFGS minimises over L, which has
no other local minima where it has as many rows as columns. The slopes a_t of the rounded hinges are the dual
point; where S has a negative eigenvalue, they are scaled down until it has none. What rounding costs of the
gap,

    sum_t u_t [m_t]_+ - a_t m_t,

falls with the square of g, so that g is chosen by the tolerance. Where many steps were not enough, the few
triplets that are near their kinks are solved exactly (working_set.py).

Sources: Weinberger and Saul (2009) for the problem; Nesterov (2005), Smooth minimization of non-smooth
functions; Burer and Monteiro (2005) for minimising over L.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget, BudgetExhausted
from sixfold.solvers.metric_learning.lbfgs import two_loops
from sixfold.solvers.metric_learning.triplets import (
    SLACK,
    ActiveTriplets,
    HingeSums,
    TripletProblem,
    feasible_share,
    padded,
)
from sixfold.solvers.metric_learning.working_set import Refined, better, refine

Array = NDArray[Any]

MEMORY = 10  # changes of L and of the slope that L-BFGS remembers
CHECKED = 10  # steps between two looks at the gap
PATIENCE = 150  # steps before few triplets are solved exactly, then twice as many
FIRST_SMOOTHING = 0.1
LEAST_SMOOTHING = 1e-7
LESS = 0.1  # times the width before, at least
SMOOTHED = 0.25  # of the gap that is asked for: what rounded hinges may cost of it
LEAST_SPREAD = 1e-3  # of the largest singular value of the start: from L without full rank nothing leads away
SAMPLED = 1 << 17  # pairs that the size of the start is chosen by
SUFFICIENT = 1e-4  # of the decrease that the slope promises
EPS = float(np.finfo(np.float64).eps)
# Of low rank, up to so many columns: the bound is that of all maps, to so much of it or after so many steps.
BOUNDED_COLUMNS, ROUGH, ROUGH_STEPS = 100, 1e-2, 200
PRICED = 10.0  # times the multipliers that are expected: what a hinge has to cost
NOISE = 8.0 * EPS  # of the objective
STALLED = 0.01  # of the tolerance: steps that gain less, from one look at the gap to the next


@dataclass(frozen=True)
class LMNNSolution:
    """What was found, in the columns of the problem.

    Attributes
    ----------
    L : ndarray of shape (components, columns)
    triplets : ndarray of int64, shape (count, 3)
        Row, target and impostor of each triplet with a multiplier, by their numbers in the problem.
    multipliers : ndarray of shape (count,)
        A point of the dual problem.
    bound : float
        No M is below this.
    """

    L: Array
    triplets: Array
    multipliers: Array
    bound: float


class WhiteRows:
    """The rows in coordinates in which <B, M> is the trace of M.

    There are no more columns than rows: what is learnt lies in the space of the rows.
    """

    def __init__(self, problem: TripletProblem) -> None:
        X, basis = problem.rows, None
        if X.shape[1] > X.shape[0]:
            basis, _ = np.linalg.qr(X.T)
            X = X @ basis
        P = problem.pulled() if basis is None else basis.T @ problem.pulled() @ basis
        values, vectors = np.linalg.eigh(problem.pull * P)
        root = np.sqrt(np.maximum(values, 0.0) + problem.trace)
        if basis is not None:
            vectors = basis @ vectors
        self._in, self._out = vectors / root, vectors * root
        self.rows = np.ascontiguousarray(problem.rows @ self._in)

    def enter(self, L: Array) -> Array:
        """Return the map in these coordinates."""
        return L @ self._out

    def leave(self, L: Array) -> Array:
        """Return the map in the coordinates of the problem."""
        return L @ self._in.T


class Point(NamedTuple):
    """The rounded objective at L."""

    L: Array
    Z: Array
    value: float
    slope: Array
    sums: HingeSums

    @property
    def objective(self) -> float:
        """F, of the triplets in the lists."""
        return float(np.square(self.L).sum()) + self.sums.hinge

    @property
    def linear(self) -> float:
        """What the multipliers make of the objective: their sum, where L is a minimum."""
        return float(np.square(self.L).sum()) + self.sums.linear


class Descent:
    """Minimises the rounded objective, looks at the gap now and then, and rounds less where that decides."""

    def __init__(self, problem: TripletProblem, start: Array, budget: Budget) -> None:
        self.problem, self.budget = problem, budget
        self.white = WhiteRows(problem)
        L = _spread(self.white.enter(start))
        self.L = L * math.sqrt(_best_multiple(problem, self.white.rows, L))
        self.full = L.shape[0] >= self.white.rows.shape[1]
        self.active = ActiveTriplets(problem)
        self.smoothing = FIRST_SMOOTHING
        self.bound, self.best = 0.0, (self.L, FIRST_SMOOTHING, 1.0)  # all terms are at least 0
        self.objective = self.gap = math.inf
        self.multiple = 1.0
        self.raised = False
        self.refined: Refined | None = None
        self.next_refinement = PATIENCE
        self.memory: deque[tuple[Array, Array, float]] = deque(maxlen=MEMORY)

    # -- the objective ---------------------------------------------------------------------------------------

    def mapped(self, L: Array) -> Array:
        """Return the rows under the map."""
        return self.white.rows @ padded(L).T

    def at(self, L: Array) -> Point:
        """Return the rounded objective at L, of the triplets in the lists."""
        Z = self.mapped(L)
        sums = self.active.sums(Z, self.smoothing)
        Y = self.active.products(Z)[:, : L.shape[0]]
        value = float(np.square(L).sum()) + sums.smooth
        return Point(L, Z, value, 2.0 * (L + Y.T @ self.white.rows), sums)

    def certain(self, point: Point) -> Point:
        """Return the same point, the last that was evaluated, with every triplet that counts."""
        if self.active.cover(point.Z, self.smoothing, self.active.farthest):
            return point
        self.active.search(point.Z, self.smoothing, SLACK, self.budget)
        return self.at(point.L)

    def map(self) -> Array:
        """Return the best map in white columns."""
        if self.refined is not None and self.refined.objective < self.objective:
            return self.refined.L
        return math.sqrt(self.multiple) * self.L

    # -- the bound -------------------------------------------------------------------------------------------

    def look(self, point: Point) -> None:
        """Work out the bound of the slopes at a point that was evaluated last."""
        bound = point.sums.slopes * self.feasible_share()
        if bound > self.bound:
            self.bound, self.best = bound, (point.L, self.smoothing, self.active.share)
        self.objective, self.multiple = self.exact(point)
        self.gap = self.least - self.bound

    @property
    def least(self) -> float:
        """The least objective that was seen at a look."""
        return min(self.objective, self.refined.objective) if self.refined else self.objective

    def exact(self, point: Point) -> tuple[float, float]:
        """Return F at the best of some multiples of M, and that multiple.

        Where hinges cost less than they should, they are a little above 0 at the minimum, which a slightly
        larger M puts right. Larger ones have no other triplets.
        """
        share = self.active.share
        if share == 1.0:
            return point.objective, 1.0
        trace = float(np.square(point.L).sum())
        multiples = [1.0, *(1.0 + self.smoothing * np.ldexp(1.0, np.arange(-4, 6)))]
        values = [c * trace + self.active.sums(math.sqrt(c) * point.Z, 0.0).hinge / share for c in multiples]
        return min(zip(values, multiples, strict=True))

    def feasible_share(self) -> float:
        """Return s <= 1 with I + s Q positive semi-definite, Q = sum_t a_t A_t of the last slopes."""
        columns = self.white.rows.shape[1]
        X = self.white.rows @ padded(np.eye(columns)).T
        return feasible_share(self.white.rows.T @ self.active.products(X)[:, :columns])

    # -- the steps -------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Go on until the gap is small enough, or nothing more is gained, or a limit is reached."""
        budget = self.budget
        try:
            point = self.first()
            before = math.inf
            for iteration in budget.iterations():
                end = self.step(point)
                point = self.certain(self.at(point.L)) if end is None else end
                self.L = point.L
                looked = end is None or iteration == 1 or iteration % CHECKED == 0
                if looked:
                    self.look(point)
                    refined = self.refine(point) if self.refines(iteration, end is None) else None
                    if refined is not None:
                        point = end = refined
                        before = math.inf
                objective = point.objective if self.active.share == 1.0 else self.objective
                objective = min(objective, self.least)
                if budget.record(objective, self.gap, objective):
                    break
                if looked:
                    gained, before = before - point.value, point.value
                    if self.reprice(end is None or gained <= 1e-3 * self.gap):
                        point, before = self.first(), math.inf
                    elif self.round_less(point, end is None):
                        point, before = self.at(point.L), math.inf
                    elif not self.goes_on(end is None, gained):
                        break
        except BudgetExhausted:
            budget.exhausted()

    def first(self) -> Point:
        """Return where to begin, and choose how much to round: what it costs falls with the square."""
        self.active.search(self.mapped(self.L), self.smoothing, SLACK, self.budget)
        point = self.at(self.L)
        for _ in range(3):
            allowed = SMOOTHED * self.budget.tol * point.objective
            lost = point.objective - point.linear
            if lost <= 1.5 * allowed or self.smoothing <= LEAST_SMOOTHING:
                break
            self.smoothing = max(self.smoothing * math.sqrt(allowed / lost), LEAST_SMOOTHING)
            point = self.at(self.L)
        return point

    def step(self, point: Point) -> Point | None:
        """Return a point below this one; None where none is found."""
        while True:
            direction = self.direction(point)
            promised = float((point.slope * direction).sum())
            length = 1.0
            while promised < 0 and length > 1e-10:
                self.budget.check()
                end = self.at(point.L + length * direction)
                enough = point.value + SUFFICIENT * length * promised
                if end.value <= enough:
                    end = self.certain(end)
                if end.value <= enough or _decreases(point, end, direction):
                    self.remember(end.L - point.L, end.slope - point.slope)
                    return end
                length *= 0.5
            if not self.memory:
                return None
            self.memory.clear()

    def direction(self, point: Point) -> Array:
        """Return the direction of L-BFGS, minus the slope times a guess of the curvature."""
        if not self.memory:
            size = np.linalg.norm(point.slope)
            return -point.slope * (min(0.1 * np.linalg.norm(point.L) / size, 0.5) if size > 0 else 0.0)
        return two_loops(point.slope.ravel(), self.memory).reshape(point.slope.shape)

    def remember(self, moved: Array, bent: Array) -> None:
        """Keep a change of L and of the slope, where the objective is convex along it."""
        product = float((moved * bent).sum())
        if product > 1e-12 * float(np.linalg.norm(moved) * np.linalg.norm(bent)):
            self.memory.append((moved.ravel(), bent.ravel(), product))

    def round_less(self, point: Point, stuck: bool) -> bool:
        """Round hinges less where that is most of the gap, or nothing else helps; return whether it is so."""
        allowed, lost = SMOOTHED * self.budget.tol * self.objective, self.objective - point.linear
        if self.smoothing <= LEAST_SMOOTHING or lost <= allowed:
            return False
        if lost <= (0.1 if stuck else 0.5) * self.gap:
            return False
        self.smoothing = max(self.smoothing * max(math.sqrt(allowed / lost), LESS), LEAST_SMOOTHING)
        return True

    def refines(self, iteration: int, stuck: bool) -> bool:
        """Return whether to solve few triplets exactly: after many steps, or where none leads down."""
        if not self.full or self.gap <= self.budget.tol * self.least:
            return False
        if not (stuck or iteration >= self.next_refinement):
            return False
        self.next_refinement = 2 * iteration
        return True

    def refine(self, point: Point) -> Point | None:
        """Solve few triplets exactly; return where to go on, if that is a better map."""
        found = refine(self.problem, self.white.rows, point.L, self.smoothing, self.objective, self.budget)
        if found is None:
            return None
        self.refined = found if self.refined is None else better(self.refined, found)
        self.bound = max(self.bound, found.bound)
        self.gap = self.least - self.bound
        if found.objective >= self.objective:
            return None
        self.L = np.zeros_like(point.L)
        self.L[: found.L.shape[0]] = found.L
        self.memory.clear()
        self.objective, self.multiple = found.objective, 1.0
        return self.first()

    def reprice(self, stalled: bool) -> bool:
        """Let hinges cost less than they do where multipliers are far below it; return whether it was done.

        Where classes are apart whatever it costs, hinges are constraints: the answer is the same for every
        price above the largest multiplier, but near to that steps are longer. A bound stays a bound.
        """
        share, columns = self.active.share, self.white.rows.shape[1]
        prices = (1.0 - self.problem.pull) * float(self.problem.weight.mean())
        wanted = PRICED * self.objective / (columns * prices)
        if share < 1.0 and stalled:
            self.raised = True
            self.active.lower_price(min(10.0 * share, 1.0))
        elif wanted < 0.1 * share and not self.raised:
            self.active.lower_price(wanted)
        else:
            return False
        self.memory.clear()
        self.smoothing = FIRST_SMOOTHING
        return True

    def goes_on(self, stuck: bool, gained: float) -> bool:
        """Return whether more steps may help: of a low rank the gap cannot tell."""
        return not stuck and (self.full or gained > STALLED * self.budget.tol * self.objective)


def _decreases(point: Point, end: Point, direction: Array) -> bool:
    """Return whether slopes say that a step leads down, where values differ by rounding alone.

    The slope along the step has to shrink (Hager and Zhang 2005, A new conjugate gradient method, section 4).
    """
    before, after = (float((one.slope * direction).sum()) for one in (point, end))
    return end.value <= point.value * (1.0 + NOISE) and 0.8 * before <= after <= -0.8 * before


def _spread(L: Array) -> Array:
    """Return the map with no singular value far below the largest."""
    left, values, right = np.linalg.svd(L, full_matrices=False)
    if not values.size or not values[0] > 0:
        return np.eye(*L.shape)
    return (left * np.maximum(values / values[0], LEAST_SPREAD)) @ right


def _best_multiple(problem: TripletProblem, X: Array, L: Array) -> float:
    """Return c for which F(c L'L) is least, of some rows and the farthest target of each: convex in c."""
    n = X.shape[0]
    some = np.linspace(0, n - 1, min(n, max(SAMPLED // n, 16))).astype(np.int64)
    Z = X @ L.T
    last = problem.targets[some, (problem.targets[some] >= 0).sum(axis=1) - 1]
    near = np.square(Z[some] - Z[last]).sum(axis=1)
    lengths = np.square(Z).sum(axis=1)
    margins = near[:, None] - (lengths[some, None] + lengths - 2.0 * Z[some] @ Z.T)
    label = np.searchsorted(problem.class_ends, np.arange(n), side="right")
    others = label[some, None] != label
    weight = problem.weight[some] * (problem.targets[some] >= 0).sum(axis=1)
    weight *= (1.0 - problem.pull) / (weight.sum() if weight.sum() > 0 else 1.0)
    m, w = margins[others], np.broadcast_to(weight[:, None], others.shape)[others]
    typical = float(np.abs(m).mean())
    if not typical > 0:
        return 1.0
    m /= typical
    trace = float(np.square(L).sum()) / typical
    low, high = -30.0, 30.0  # of log c
    for _ in range(30):
        middle = 0.5 * (low + high)
        rises = trace + float(w @ np.where(1.0 + math.exp(middle) * m > 0, m, 0.0)) >= 0
        low, high = (low, middle) if rises else (middle, high)
    multiple = math.exp(high) / typical
    return 1.0 if 0.5 < multiple < 2.0 else multiple  # a start that goes on from the last fit is left alone


# -- the solution ------------------------------------------------------------------------------------------


def minimise(problem: TripletProblem, start: Array, budget: Budget) -> LMNNSolution:
    """Return a map with as many rows as ``start``, and a point of the dual problem."""
    descent = Descent(problem, start, budget)
    descent.run()
    L = uncorrelated(problem, descent.white.leave(descent.map()))
    if not descent.full and problem.rows.shape[1] <= BOUNDED_COLUMNS:
        # Slopes where the rank is limited say little about maps of any rank: these are asked for themselves.
        descent = Descent(problem, np.eye(problem.rows.shape[1]), _little_of(budget))
        descent.run()
    return LMNNSolution(L, *_dual_point(descent))


def uncorrelated(problem: TripletProblem, L: Array) -> Array:
    """Return the same distance as a map to uncorrelated columns, the most spread one first."""
    Z = problem.rows @ L.T
    _, turned = np.linalg.eigh(Z.T @ Z)
    L = turned[:, ::-1].T @ L
    largest = np.take_along_axis(L, np.abs(L).argmax(axis=1)[:, None], axis=1)
    result: Array = np.where(largest < 0, -L, L)
    return result


def _little_of(budget: Budget) -> Budget:
    """Return a budget for a rough bound, which a limit or Ctrl-C ends as well."""
    little = Budget(ROUGH, ROUGH_STEPS, None if budget.time_limit is None else max(budget.seconds_left, 0.0))
    little.flag = budget.flag
    return little


def _dual_point(descent: Descent) -> tuple[Array, Array, float]:
    """Return triplets, multipliers and bound of the best slopes: the last may not have been looked at."""
    last = descent.L, descent.smoothing, descent.active.share
    points = [descent.best] if descent.best[0] is descent.L else [descent.best, last]
    found = [_multipliers(descent, *point) for point in points]
    if descent.refined is not None:
        found.append((descent.refined.triplets, descent.refined.multipliers, descent.refined.bound))
    return max(found, key=lambda proof: proof[2])


def _multipliers(descent: Descent, L: Array, smoothing: float, price: float) -> tuple[Array, Array, float]:
    problem, active, Z = descent.problem, descent.active, descent.mapped(L)
    active.lower_price(price)
    if not active.cover(Z, smoothing):
        active.search(Z, smoothing, 0.0, Budget())  # whatever the time: it is the end
    active.sums(Z, smoothing)
    share = descent.feasible_share()
    triplets, slopes = active.listed(Z, smoothing)
    multipliers = price * (1.0 - problem.pull) * problem.weight[triplets[:, 0]] * slopes * share
    return triplets, multipliers, math.fsum(multipliers)


class Measured(NamedTuple):
    """The objective of a map: its parts, and by how much rounding may have changed their sum."""

    pull: float
    push: float
    trace: float
    rounding: float

    @property
    def objective(self) -> float:
        """An upper bound of F."""
        return self.pull + self.push + self.trace + self.rounding


def measure(problem: TripletProblem, L: Array) -> Measured:
    """Return F of a map in the columns of the problem, of all triplets."""
    Z = problem.rows @ padded(L).T
    active = ActiveTriplets(problem)
    active.search(Z, 0.0, 0.0, Budget())
    sums = active.sums(Z, 0.0)
    near = np.stack([np.square(Z - Z[np.maximum(j, 0)]).sum(axis=1) for j in problem.targets.T], axis=1)
    near = np.where(problem.targets >= 0, near, 0.0)
    pull = problem.pull * float(problem.weight @ near.sum(axis=1))
    trace = problem.trace * float(np.square(L).sum())
    # A row of Z is off by |L| |x| d u, a square distance by twice its root times that, and by its own sum.
    off = (L.shape[1] + 4) * EPS * np.linalg.norm(L) * np.linalg.norm(problem.rows, axis=1)
    reach = 1.0 + near.max(axis=1)
    each = 4.0 * np.sqrt(reach) * (off + off.max()) + (Z.shape[1] + 8) * EPS * reach
    open_hinges, _ = active.listed(Z, 2.0 * float(each.max()))
    hinges = np.bincount(open_hinges[:, 0], minlength=Z.shape[0]) + (problem.targets >= 0).sum(axis=1)
    rounding = 2.0 * float(problem.weight @ (each * hinges)) + 64.0 * EPS * (pull + sums.hinge + trace)
    return Measured(pull, sums.hinge, trace, rounding)
