"""An exact step over the free multipliers of a kernel SVM: what pairs of rows take millions of steps for.

In b_i = y_i a_i the dual is

    minimise  1/2 b'K b - y'b        b_i between 0 and y_i U_i,  sum_i b_i = const,

and with the rows at a bound held where they are, its minimum over the others solves the bordered system

    K d + shift = F,   sum d = 0     with the slopes F = y - K b = -y G of the free rows.

The step goes to the minimum or to the first bound on the way. A row that reaches its bound is held from then
on, by one more row of the border instead of a new factorisation: with A = K + ridge and the columns E of ones
and of the rows held, d = A^-1 (F - E c), where E'A^-1 E c = E'A^-1 F (a Schur-complement active set, Gill,
Murray, Saunders and Wright 1990). Where K is singular the small ridge makes d long where the objective is
straight, and the step ends at a bound. Every step is downhill by an exact line search, so that the objective
cannot get worse.

A step takes a factorisation of the Gram matrix of the free rows: :class:`FreeSteps` makes one only where it
fits in memory, and where it pays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from sixfold.solvers.linalg import scaled_cholesky

Array = NDArray[Any]

MOST_FREE = 4000  # a factorisation takes 21 Gflop
WORK_MATRICES = 3  # of the free rows: the Gram, its factor, and what the rows held bring with them
# Nanoseconds, measured on one core. Clocks would not give the same result twice.
PAIR_NS = 1.0  # each row
FACTORISATION_NS = 1.0 / 60.0  # each cubed free row
HELD_ROW_NS = 2.4  # each squared free row
HELD_ROW_CALL_NS = 5e4  # whatever the size
WAIT_FACTOR = 2.0  # times as many pairs before the next step if one did not pay
# Rows that may be held: with 12, unscaled columns did not converge; beyond a few, each costs a tenth of the
# factorisation of 700 rows, and pairs of rows do better; few rows can all be held.
FEWEST_HELD = 50
HELD_ROWS_BUDGET = 5e7  # divided by the square of the number of rows
MINIMA_IN_A_ROW = 3  # the ridge leaves a little to do, with a Gram of floats more
EQUAL_SLOPES = 1e-14  # of the slopes: what differs by less is rounding
BALANCED_SUM = 1e-9  # of sum |d|: a direction whose sum is further from 0 is rounding
BLOCK = 256  # rows of the Gram that are float64 at a time


def free_step(gram: Array, y: Array, upper: Array, alpha: Array, gradient: Array) -> bool:
    """Move the free rows to their minimum or as far as bounds let them; alpha and gradient in place.

    Parameters
    ----------
    gram : array of shape (m, m), float32 or float64
    y : array of -1.0 and 1.0
    upper : array of the largest multipliers, which may be infinite
    alpha : array of feasible multipliers
    gradient : array, y_i s_i - 1 for every row

    Returns
    -------
    bool
        Whether anything moved: the objective is better then.
    """
    free = np.flatnonzero((alpha > 0) & (alpha < upper))
    if not 2 <= free.size <= MOST_FREE or gram[free, free].min() < 0:  # not even the diagonal is definite
        return False
    slope = -(y * gradient)[free]
    K = np.empty((free.size, free.size))
    for k in range(0, free.size, BLOCK):
        K[k : k + BLOCK] = gram[free[k : k + BLOCK, None], free]
    ridge = free.size * float(np.finfo(gram.dtype).eps)
    new = bounded_minimum(K, ridge, y[free], upper[free], alpha[free], slope)
    change = y[free] * (new - alpha[free])
    away = product(gram, free, change)
    if not change @ (2.0 * slope - away[free]) > 0:  # twice what the objective gains
        return False
    alpha[free] = new
    gradient += y * away
    return True


class FreeSteps:
    """Free steps between stretches of pairs, where they fit in memory and pay.

    A step is due when pairs have taken as long as it will take, so that steps that gain nothing cost half of
    the time at most. After one that gained less in its time than the pairs did, the next has to wait longer.

    Parameters
    ----------
    memory : int
        Bytes, for the Gram matrix of the active rows and for the work of a step.
    """

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self.patience = 1.0

    def begin(self, alpha: Array, gradient: Array) -> None:
        """Note where pairs start from."""
        self._start = alpha.copy(), gradient.copy()
        self._spent = 0.0

    def step(self, gram: Array, y: Array, upper: Array, alpha: Array, gradient: Array, pairs: int) -> bool:
        """Make a step after so many more pairs if it is due, and return whether anything moved."""
        self._spent += PAIR_NS * y.size * pairs
        free = int(np.count_nonzero((alpha > 0) & (alpha < upper)))
        longest = nanoseconds(free, most_to_hold(free))
        if self._spent < self.patience * longest or 8 * WORK_MATRICES * free**2 > self.memory - gram.nbytes:
            return False
        by_pairs = gain(*self._start, alpha, gradient) / self._spent
        self.begin(alpha, gradient)
        moved = free_step(gram, y, upper, alpha, gradient)
        held = free - int(np.count_nonzero((alpha > 0) & (alpha < upper)))
        pays = gain(*self._start, alpha, gradient) > by_pairs * nanoseconds(free, held + MINIMA_IN_A_ROW)
        self.patience = 1.0 if pays else WAIT_FACTOR * self.patience
        self.begin(alpha, gradient)
        return moved


def nanoseconds(free: int, held: int) -> float:
    """Return how long a step takes, about, in which so many of the free rows meet a bound."""
    return FACTORISATION_NS * free**3 + held * (HELD_ROW_NS * free**2 + HELD_ROW_CALL_NS)


def gain(alpha: Array, gradient: Array, new: Array, new_gradient: Array) -> float:
    """Return by how much D is larger at the new point: it is a parabola on the way."""
    return -0.5 * float((new - alpha) @ (gradient + new_gradient))


def product(gram: Array, rows: Array, change: Array) -> Array:
    """Return the sum of change_i times row i of the Gram, in float64, without a copy of all the rows."""
    total = np.zeros(gram.shape[1])
    for k in range(0, rows.size, BLOCK):
        block = slice(k, k + BLOCK)
        total += change[block] @ np.asarray(gram[rows[block]], dtype=np.float64)
    return total


def most_to_hold(free: int) -> int:
    """Return how many of the free rows may be held."""
    return min(max(free - 1, 0), max(FEWEST_HELD, int(HELD_ROWS_BUDGET / max(free, 1) ** 2)))


def bounded_minimum(K: Array, ridge: float, y: Array, upper: Array, alpha: Array, slope: Array) -> Array:
    """Return the multipliers at the minimum, those that met a bound on the way held there."""
    most_held = most_to_hold(y.size)
    system = BorderedSystem(K, ridge, slope, most_held)
    low, high = np.where(y > 0, 0.0, -upper), np.where(y > 0, upper, 0.0)
    b, slope, minima = y * alpha, slope.copy(), 0
    while minima < MINIMA_IN_A_ROW and len(system.held) < most_held:
        d, uneven = system.direction(), slope - np.delete(slope, system.held).mean()
        downhill, away = float(d @ uneven), K @ d
        if not downhill > 0 or np.abs(uneven[d != 0]).max() <= EQUAL_SLOPES * np.abs(slope).max():
            break
        room = steps_to_bounds(b, d, low, high)
        first, curvature = int(np.argmin(room)), float(d @ away)
        best = downhill / curvature if curvature > 0 else np.inf
        step = min(best, room[first])
        if not np.isfinite(step):  # no minimum: a hard margin on rows that overlap
            break
        b, slope = np.clip(b + step * d, low, high), slope - step * away
        if best <= room[first]:
            minima += 1
            system.restart(slope)
        else:
            b[first] = high[first] if d[first] > 0 else low[first]
            system.hold(first, step * d)
    balance(b, float((b - y * alpha).sum()), low, high)
    return np.abs(b)


def steps_to_bounds(b: Array, d: Array, low: Array, high: Array) -> Array:
    """Return how many times each row can make the step d before it meets a bound."""
    room = np.full(b.size, np.inf)
    moves = d != 0.0
    with np.errstate(over="ignore"):  # a step next to nothing
        room[moves] = (np.where(d > 0, high, low) - b)[moves] / d[moves]
    return room


def balance(b: Array, excess: float, low: Array, high: Array) -> None:
    """Take what rounding has added to sum b from the row that is furthest from its bounds."""
    k = int(np.argmax(np.minimum(b - low, high - b)))
    b[k] = np.clip(b[k] - excess, low[k], high[k])


class BorderedSystem:
    """Directions d = A^-1 (F - E c) that keep sum d = 0 and d_k = 0 for the rows held."""

    def __init__(self, K: Array, ridge: float, slope: Array, most_held: int) -> None:
        self.solve = scaled_cholesky(K, ridge)
        self.held: list[int] = []
        self.solved = np.empty((most_held + 1, slope.size))  # E'A^-1
        self.solved[0] = self.solve(np.ones(slope.size))
        self.restart(slope)

    def restart(self, slope: Array) -> None:
        """Begin again from these slopes."""
        self.newton = self.solve(slope)  # A^-1 F

    def hold(self, k: int, moved: Array) -> None:
        """Keep row k where it is from now on; b has moved, and A^-1 F with it, but for the ridge."""
        unit = np.zeros(moved.size)
        unit[k] = 1.0
        self.held.append(k)
        self.solved[len(self.held)] = self.solve(unit)
        self.newton = self.newton - moved

    def direction(self) -> Array:
        """Return the step to the minimum of what is left; zeros if there is none."""
        solved, d = self.solved[: len(self.held) + 1], self.newton
        across = np.column_stack([solved.sum(axis=1), solved[:, self.held]])
        factor, pivots, singular = lapack.dgetrf(across)
        if singular:  # rounding has left no direction
            return np.zeros_like(d)
        for _ in range(2):  # once more for the digits: steps along which the objective is straight are long
            d = d - lapack.dgetrs(factor, pivots, np.append(d.sum(), d[self.held]))[0] @ solved
        d[self.held] = 0.0
        return d if abs(d.sum()) <= BALANCED_SUM * np.abs(d).sum() else np.zeros_like(d)
