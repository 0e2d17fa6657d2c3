"""A linear machine for each of many positive rows, against the negatives that all of them share.

    minimise  P_e(w, b) = |w|^2 / 2 + C_e max(0, 1 - w.x_e - b)^2 + sum_i c_i max(0, 1 + w.x_i + b)^2

over w and b, for every exemplar e; the sum goes over the negatives. For any (w, b), a_i = 2 c_i max(0, 1 +
w.x_i + b), A = sum_i a_i is the exemplar's own multiplier of a point of the dual, and so is t times that:

    min P_e  >=  2 A t - t^2 (sum_i a_i^2 / (4 c_i) + A^2 / (4 C_e) + |sum_i a_i (x_i - x_e)|^2 / 2)

whose best t has the bound A^2 over the bracket. The balance of both sides, which an intercept asks for, holds
exactly whatever the a_i are, and every number in the bound is known from a step of Newton's method anyway.

All machines take their steps at the same time, so that everything that reads the negatives is one matrix
product for all. The first step needs no other Hessian than the moments of the negatives, all of which are
inside the margin of w = 0, and one rank-one change an exemplar:

    H_e = diag(1, ..., 1, 0) + sum_{i active} 2 c_i z_i z_i' + 2 C_e z_e z_e',        z = (x, 1)

Later, H_e without its last term is nearly the same for all: with the share of the machines for which a row is
active in place of 0 or 1 it is factored once for all, the last term follows by Sherman and Morrison, and
conjugate gradients make up for what is left; their products need few digits. P along a step is quadratic
between kinks, so that the best length is found exactly from the scores at either end. Machines that are done
leave the others alone.

Rounding, of which a claim has to be rid: a score is off by (d + 4) u (|w| |x| + |b|), a sum of n terms by n u
times the sum of their sizes.

Sources: Malisiewicz, Gupta and Efros (2011), Ensemble of exemplar-SVMs for object detection and beyond;
Hariharan, Malik and Ramanan (2012), Discriminative decorrelation for clustering and classification, for
moments that exemplars share; Keerthi and DeCoste (2005), A modified finite Newton method.
"""

from __future__ import annotations

import itertools
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget, BudgetExhausted
from sixfold.solvers.margin.exemplars.rows import DenseNegatives, Solve, SparseNegatives, cholesky_solve

Array = NDArray[Any]
Negatives = DenseNegatives | SparseNegatives

BLOCK_SCORES = 1 << 23  # scores that are held at a time: 64 MB, thrice
FEWEST_MACHINES = 32  # of a block, however many rows there are: they share a factorisation
MOST_ROUNDS = 50  # of working sets, of which it takes 4 to 13
ROOM = 4  # rows of a working set at most, in columns,
MOST_OF_ALL = 0.25  # and as a part of all negatives,
LEAST_ROOM, MOST_ROOM = 256, 2048  # but not less than these, and no more
NEW_ROWS = 256  # that may come to a working set in a round
MOST_STALLED = 5  # rounds that do not halve the gap
LITTLE_WORK = 1 << 22  # machines x rows x columns: some milliseconds
LITTLE = 0.0  # of the tolerance, for little work: as near as rounding allows
SMALLEST = 1e-15  # relative gap that is looked for
MARGIN = 0.3  # of the tolerance: what a machine has to reach, so that the final check does not undo it
MOST_PRODUCTS = 100  # of conjugate gradients for one step
SAME = 0.1  # of the Hessian that is factored: what may change of it before it is factored anew
NEAR = 1e-9  # a relative gap from which on it may be rounding that nothing gets better
NO_PROGRESS = 3  # steps that do not halve such a gap
GIVE_UP = 100  # steps that do not halve any gap
SLOW = 10  # such steps from which on a machine has a Hessian of its own, in double precision,
MOST_OWN = 512  # of no more columns than this
REFINED = 3  # times that its solution is made better by what it misses
UNIT = 0.5 * float(np.finfo(np.float64).eps)


@dataclass
class Machines:
    """The machines that were found, one an exemplar.

    Attributes
    ----------
    w : ndarray of shape (machines, columns)
    b : ndarray of shape (machines,)
        The intercept for rows as they are given, not as they are seen by the solver.
    objective, gap, rounding : ndarray of shape (machines,)
        P, what it is above its minimum at most, and how much of that rounding may be.
    scale : ndarray of shape (machines,)
        P of the best constant.
    iterations : ndarray of shape (machines,)
    """

    w: Array
    b: Array
    objective: Array
    gap: Array
    rounding: Array
    scale: Array
    iterations: Array

    def figures(self) -> tuple[Array, Array, Array]:
        """Return objectives, gaps and scales."""
        return self.objective, self.gap, self.scale


def solve_exemplars(
    negatives: Negatives, exemplars: Any, cost: Array, tol: float, budget: Budget
) -> Machines:
    """Return the machine of each exemplar.

    Parameters
    ----------
    negatives : Negatives
    exemplars : ndarray or CSR array of shape (machines, columns)
    cost : ndarray of shape (machines,)
        C_e of each.
    tol : float
        Stop when the gap of every machine is below this part of its scale.
    budget : Budget
    """
    result = begin(cost, negatives)
    # Rounding is not far from the tolerance of few numbers, and what is left of the way costs nothing.
    work = cost.size * negatives.shape[0] * negatives.shape[1]
    goal = max(tol * (MARGIN if work > LITTLE_WORK else LITTLE), SMALLEST)
    lengths, parts = negatives.lengths(), blocks_of(cost.size, negatives.shape[0])
    for part in parts:
        budget.new_part()  # machines that take all iterations do not keep others from being begun
        if budget.exhausted():
            break
        numbers = np.arange(part.start, part.stop)
        x = negatives.centred(exemplars[part])
        left = hard_negative_rounds(negatives, x, cost, numbers, result, goal, budget)
        if left.size and not budget.exhausted():
            some = left - part.start
            _Block(negatives, x[some], cost[left], left, result, goal).solve(budget)
    for part in parts:
        _certify(negatives, negatives.centred(exemplars[part]), cost[part], lengths, part, result)
    return result


def hard_negative_rounds(
    negatives: Negatives,
    x: Array,
    cost: Array,
    numbers: Array,
    result: Machines,
    goal: float,
    budget: Budget,
) -> Array:
    """Fit machines to the few negatives that pull at each; return those for which they are not few.

    Parameters
    ----------
    negatives : Negatives
    x : ndarray of shape (machines, columns)
        Their exemplars, centred.
    cost : ndarray
        C_e of all exemplars.
    numbers : ndarray of int of shape (machines,)
        Which of them these are.
    result : Machines
    goal : float
        The relative gap that will do.
    budget : Budget
    """
    if not isinstance(negatives, DenseNegatives):
        return numbers
    work = _WorkingSets(negatives, x, cost[numbers], goal * result.scale[numbers])
    left, objective, best, stalled = [], result.objective, np.full(cost.size, np.inf), np.zeros(cost.size)
    try:
        for _ in range(MOST_ROUNDS):
            w, b = work.w.copy(), work.b.copy()
            work.advance(negatives, budget)
            better = work.objective < objective[numbers]
            some = numbers[better]
            result.w[some], result.b[some], objective[some] = w[better], b[better], work.objective[better]
            result.gap[numbers] = objective[numbers] - work.bound
            result.iterations[numbers] += 1
            budget.record(*(float(part.sum()) for part in result.figures()))
            stalled[numbers] = np.where(result.gap[numbers] <= 0.5 * best[numbers], 0, stalled[numbers] + 1)
            best[numbers] = np.minimum(best[numbers], result.gap[numbers])
            done, lost = work.done > 0, (work.counts < 0) | (stalled[numbers] >= MOST_STALLED)
            left.append(numbers[lost])
            numbers = numbers[~done & ~lost]
            work = work.only(~done & ~lost)
            if numbers.size == 0 or budget.exhausted():
                break
    except BudgetExhausted:
        pass
    return np.sort(np.concatenate([*left, numbers]))


class _WorkingSets:
    """Machines, and for each the negatives that have multipliers."""

    def __init__(self, negatives: DenseNegatives, x: Array, cost: Array, goals: Array) -> None:
        count, d = x.shape
        room = max(min(ROOM * d, MOST_ROOM, int(MOST_OF_ALL * negatives.shape[0])), LEAST_ROOM)
        self.x, self.cost, self.goals = x, cost, goals
        # The first negatives are those that are most like the exemplar, as the mean sees them.
        length = np.sqrt(squares(x))
        self.w, self.b = x / np.where(length > 0, length, 1.0)[:, None], np.zeros(count)
        self.rows = np.zeros((count, room), dtype=np.int32)
        self.multipliers = np.zeros((count, room))
        self.counts, self.done = np.zeros(count, dtype=np.int32), np.zeros(count, dtype=np.uint8)
        self.objective, self.bound = np.zeros(count), np.zeros(count)

    def advance(self, negatives: DenseNegatives, budget: Budget) -> None:
        """Measure the machines on all negatives, and replace those that are not done."""
        scores = negatives.scores(self.w, self.b)
        budget.check()
        budget.check(
            core.hard_negative_round(
                negatives.X, negatives.cost, self.x, self.cost, scores, self.goals, NEW_ROWS,
                self.rows, self.multipliers, self.counts, self.w, self.b,
                self.objective, self.bound, self.done, budget.seconds_left, budget.flag,
            )
        )  # fmt: skip

    def only(self, kept: Array) -> _WorkingSets:
        """Return some of them."""
        if kept.all():
            return self
        some = copy(self)
        some.__dict__.update({name: value[kept] for name, value in self.__dict__.items()})
        return some


def begin(cost: Array, negatives: Negatives) -> Machines:
    """Return machines that have learnt nothing but the best constant, (C_e - Q) / (C_e + Q)."""
    total = float(negatives.cost.sum())
    scale = 4.0 / (1.0 / cost + 1.0 / total)
    return Machines(
        np.zeros((cost.size, negatives.shape[1])),
        (cost - total) / (cost + total),
        scale.copy(),
        scale.copy(),
        np.zeros(cost.size),
        scale,
        np.zeros(cost.size, dtype=np.int32),
    )


def blocks_of(count: int, rows: int) -> list[slice]:
    """Return runs of machines, nearly equal, whose scores of so many rows are held at a time."""
    most = max(BLOCK_SCORES // max(rows, 1), FEWEST_MACHINES)
    ends = np.linspace(0, count, -(-count // most) + 1).astype(int).tolist()
    return [slice(first, last) for first, last in itertools.pairwise(ends)]


class _Block:
    """Machines that take their steps together; those that are done leave the others alone."""

    def __init__(
        self,
        negatives: Negatives,
        x: Array,
        cost: Array,
        numbers: Array,
        result: Machines,
        goal: float,
    ) -> None:
        self.negatives, self.result, self.goal = negatives, result, goal
        self.x, self.cost, self.numbers = x, cost, numbers
        self.w, self.b = result.w[numbers], result.b[numbers]
        self.scores = negatives.scores(self.w, self.b)
        self.best, self.stalled = np.full(cost.size, np.inf), np.zeros(cost.size, dtype=int)
        self.factor: tuple[Solve, Array] | None = None

    def solve(self, budget: Budget) -> None:
        """Step until all are done, or the budget is."""
        try:
            point = self._measure(budget)
            for _ in budget.iterations():
                self._step(point, budget)
                point = self._measure(budget)
                # Each machine is to be within the tolerance, not only their sum.
                budget.record(*(float(part.sum()) for part in self.result.figures()))
                point = self._without_done(point)
                if self.numbers.size == 0 or budget.stopped_by is not None:
                    break
        except BudgetExhausted:
            pass
        self._store()

    def _measure(self, budget: Budget) -> _Point:
        """Return the gradients at the machines; their objectives and gaps are noted."""
        count, n = self.scores.shape
        slopes, active = np.empty((count, n)), np.empty((count, n), dtype=np.uint8)
        share, sums = np.empty(n, dtype=np.int32), np.empty((count, 3))
        limits = budget.seconds_left, budget.flag
        budget.check(
            core.exemplar_slopes(self.scores, self.negatives.cost, slopes, active, share, sums, *limits)
        )
        pull = self.negatives.combine(slopes)
        budget.check()
        loss, total = sums[:, 0], sums[:, 1]
        own = self.b + np.einsum("ij,ij->i", self.w, self.x)
        inside = np.maximum(1.0 - own, 0.0)
        objective = 0.5 * squares(self.w) + self.cost * inside**2 + loss
        bound = _bound(total, loss, self.cost, 0.5 * squares(pull - total[:, None] * self.x))
        self.result.objective[self.numbers] = objective
        self.result.gap[self.numbers] = objective - bound
        a = 2.0 * self.cost * inside
        gradient = np.column_stack([self.w + pull - a[:, None] * self.x, total - a])
        stiff = np.where(inside > 0, 2.0 * self.cost, 0.0)
        return _Point(gradient, own, stiff, active, share)

    def _without_done(self, point: _Point) -> _Point:
        """Let machines go that are within the tolerance, or as near to it as rounding lets them come."""
        gap, scale = self.result.gap[self.numbers], self.result.scale[self.numbers]
        self.stalled = np.where(gap <= 0.5 * self.best, 0, self.stalled + 1)
        self.best = np.minimum(self.best, gap)
        near = gap <= NEAR * scale
        stays = (gap > self.goal * scale) & ~(near & (self.stalled >= NO_PROGRESS))
        stays &= self.stalled < GIVE_UP
        if stays.all():
            return point
        self._store()
        left = np.flatnonzero(stays)
        self.x, self.cost, self.numbers = self.x[left], self.cost[left], self.numbers[left]
        self.w, self.b, self.scores = self.w[left], self.b[left], self.scores[left]
        self.best, self.stalled = self.best[left], self.stalled[left]
        active = point.active[left]
        share = active.sum(axis=0, dtype=np.int32)
        return _Point(point.gradient[left], point.own[left], point.stiff[left], active, share)

    def _store(self) -> None:
        self.result.w[self.numbers], self.result.b[self.numbers] = self.w, self.b

    def _step(self, point: _Point, budget: Budget) -> None:
        """Take one step of Newton's method, as far as P falls along it."""
        move = self._direction(point, budget)
        moves = self.negatives.scores(move[:, :-1], move[:, -1])
        lines = np.empty((self.cost.size, 5))
        lines[:, 0] = np.einsum("ij,ij->i", self.w, move[:, :-1])
        lines[:, 1] = squares(move[:, :-1])
        lines[:, 2], lines[:, 3] = self.cost, point.own
        lines[:, 4] = move[:, -1] + np.einsum("ij,ij->i", move[:, :-1], self.x)
        steps = np.zeros(self.cost.size)
        limits = budget.seconds_left, budget.flag
        budget.check(core.exemplar_steps(self.scores, moves, self.negatives.cost, lines, steps, *limits))
        self.w += steps[:, None] * move[:, :-1]
        self.b += steps * move[:, -1]
        self.result.iterations[self.numbers] += 1

    def _direction(self, point: _Point, budget: Budget) -> Array:
        """Return -H^-1 gradient, by conjugate gradients for all machines at once."""
        x = np.column_stack([self.x, np.ones(self.cost.size)])
        divide = _with_own(self._shared(point), x, point.stiff)
        residual = -point.gradient
        move, product = np.zeros_like(residual), np.zeros_like(residual)
        z = divide(residual)
        energy = np.einsum("ij,ij->i", residual, z)
        relative = self.result.gap[self.numbers] / self.result.objective[self.numbers]
        goal = energy * np.clip(relative, 1e-6, 1e-2)
        direction = z.copy()
        for _ in range(MOST_PRODUCTS):
            busy = np.flatnonzero(energy > goal)
            if busy.size == 0:
                break
            product[busy] = self._hessian(direction[busy], busy, x[busy], point, budget)
            curvature = np.einsum("ij,ij->i", direction[busy], product[busy])
            safe = curvature > 0
            factor = np.where(safe, energy[busy] / np.where(safe, curvature, 1.0), 0.0)[:, None]
            move[busy] += factor * direction[busy]
            residual[busy] -= factor * product[busy]
            energy[busy[~safe]] = 0.0
            z = divide(residual)
            after = np.einsum("ij,ij->i", residual, z)
            ratio = np.divide(after, energy, where=energy > 0, out=np.zeros_like(after))
            direction = z + ratio[:, None] * direction
            energy = np.where(energy > 0, after, 0.0)
        self._solve_slow(move, x, point, budget)
        return move

    def _solve_slow(self, move: Array, x: Array, point: _Point, budget: Budget) -> None:
        """Replace directions of machines that come to no end: single precision may be too little for them.

        Columns in very different units, or nearly the same, are what it takes.
        """
        if move.shape[1] - 1 > MOST_OWN:
            return
        for machine in np.flatnonzero(self.stalled >= SLOW):
            budget.check()
            curvature = 2.0 * self.negatives.cost * point.active[machine]
            matrix = self.negatives.hessian(curvature)
            if curvature.any():
                matrix[-1, -1] = curvature.sum()  # and nothing but that: the intercept may be hardly held
            matrix += point.stiff[machine] * np.outer(x[machine], x[machine])
            solve = cholesky_solve(matrix)
            left, found, before = -point.gradient[machine], np.zeros(move.shape[1]), np.inf
            for _ in range(1 + REFINED):
                found_next = found + solve(left[None])[0]
                left = -point.gradient[machine] - matrix @ found_next
                size = float(np.abs(left / np.sqrt(matrix.diagonal())).max())
                if not size < before:
                    break
                found, before = found_next, size
            if float(found @ point.gradient[machine]) < 0.0:
                move[machine] = found

    def _shared(self, point: _Point) -> Solve:
        """Return the inverse of what the Hessians have in common, factored anew where it has changed."""
        mean = 2.0 * self.negatives.cost * (point.share / self.cost.size)
        if self.factor is None or np.abs(mean - self.factor[1]).sum() > SAME * self.factor[1].sum():
            self.factor = self.negatives.preconditioner(mean), mean
        return self.factor[0]

    def _hessian(self, v: Array, busy: Array, x: Array, point: _Point, budget: Budget) -> Array:
        """Return H v of some machines, the negatives' part in single precision."""
        scores = self.negatives.rough_scores(v[:, :-1], v[:, -1])
        active = point.active if busy.size == self.cost.size else point.active[busy]
        limits = budget.seconds_left, budget.flag
        budget.check(core.mask_products(scores, self.negatives.cost, active, *limits))
        result = np.empty_like(v)
        result[:, :-1] = v[:, :-1] + self.negatives.rough_combine(scores)
        result[:, -1] = scores.sum(axis=1, dtype=np.float64)
        result += (point.stiff[busy] * np.einsum("ij,ij->i", v, x))[:, None] * x
        return result


class _Point(NamedTuple):
    """What is known of some machines where they are."""

    gradient: Array  # in w, and last in b
    own: Array  # the score of the exemplar
    stiff: Array  # the curvature of its loss
    active: Array  # which negatives are inside the margin
    share: Array  # for how many machines each negative is


def _with_own(shared: Solve, x: Array, stiff: Array) -> Solve:
    """Return the inverse of what is shared plus stiff_e x_e x_e', by Sherman and Morrison."""
    y = shared(x)
    factor = stiff / (1.0 + stiff * np.einsum("ij,ij->i", x, y))

    def solve(right: Array) -> Array:
        z = shared(right)
        z -= (factor * np.einsum("ij,ij->i", x, z))[:, None] * y
        return z

    return solve


def _bound(total: Array, loss: Array, cost: Array, half: Array) -> Array:
    """Return the best bound along the ray of a: total^2 / (sum a_i^2 / 4 c_i + total^2 / 4 C_e + half)."""
    bracket = loss + total * (total / (4.0 * cost)) + half
    return np.divide(total * total, bracket, where=bracket > 0, out=np.zeros_like(total))


def squares(rows: Array) -> Array:
    """Return |row|^2 of each row."""
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


def _certify(
    negatives: Negatives, x: Array, cost: Array, lengths: Array, part: slice, result: Machines
) -> None:
    """Note objectives and gaps of the machines as they will be known, with all that rounding may have done.

    The intercept is that for rows as they were given from here on.
    """
    n, d = negatives.shape
    w, b, c = result.w[part], result.b[part], negatives.cost
    scores = negatives.scores(w, b)
    inside = np.maximum(1.0 + scores, 0.0)
    slopes = np.multiply(2.0 * c, inside)
    total = slopes.sum(axis=1)
    loss = 0.5 * np.einsum("ij,ij->i", slopes, inside)
    own = b + np.einsum("ij,ij->i", w, x)
    inside_own = np.maximum(1.0 - own, 0.0)
    length = np.sqrt(squares(w))
    objective = 0.5 * length**2 + cost * inside_own**2 + loss
    pull = negatives.combine(slopes) - total[:, None] * x

    shift = np.abs(w) @ np.abs(negatives.mean)
    result.b[part] = b - w @ negatives.mean
    # A score is off by per_length |x| + fixed.
    per_length = (d + 5) * UNIT * length
    fixed = (d + 5) * UNIT * (np.abs(b) + shift) + UNIT * np.abs(result.b[part])
    far = slopes @ lengths
    own_off = per_length * np.sqrt(squares(x)) + fixed
    moved = per_length * far + fixed * total + 2.0 * cost * inside_own * own_off + cost * own_off**2
    moved += c @ lengths**2 * per_length**2 + 2.0 * (c @ lengths) * per_length * fixed + c.sum() * fixed**2
    up = moved + (n + d + 16) * UNIT * objective
    wide = np.sqrt(squares(pull)) + (n + d + 8) * UNIT * (far + total * np.sqrt(squares(x)))
    few = 1.0 - (4 * n + d + 64) * UNIT
    bound = few * _bound(total, loss, cost, 0.5 * wide**2)
    plain = _bound(total, loss, cost, 0.5 * squares(pull))
    result.objective[part] = objective + up
    result.gap[part] = np.maximum(objective + up - bound, 0.0)
    result.rounding[part] = up + np.maximum(plain - bound, 0.0)
    _make_constant(result, cost, float(c.sum()), part, (4 * n + d + 64) * UNIT)


def _make_constant(result: Machines, cost: Array, total: float, part: slice, few: float) -> None:
    """Replace machines of which rounding has left less than of the best constant by that one."""
    scale = result.scale[part]
    lost = part.start + np.flatnonzero(~(result.gap[part] <= scale))
    some = lost - part.start
    result.w[lost], result.b[lost] = 0.0, (cost[some] - total) / (cost[some] + total)
    result.rounding[lost] = few * scale[some]
    result.objective[lost] = result.gap[lost] = (1.0 + few) * scale[some]


def calibrate(scores: Array, weight: Array, own: Array, least: float, budget: Budget) -> Array:
    """Return slope and offset of the sigmoid of each machine, of shape (machines, 2).

    Parameters
    ----------
    scores : ndarray of shape (machines, rows)
    weight : ndarray of shape (rows,)
    own : ndarray of bool of shape (rows,)
        The rows that the machines should find.
    least : float
        Only scores above this count.
    budget : Budget
    """
    parameters = np.zeros((scores.shape[0], 2))
    limits = budget.seconds_left, budget.flag
    budget.check(
        core.fit_sigmoids(
            np.ascontiguousarray(scores), weight, own.astype(np.uint8), least, parameters, *limits
        )
    )
    return parameters
