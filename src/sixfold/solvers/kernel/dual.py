"""The dual of the support vector machine, and what can be said of a point of it from its scores.

    maximise   D(a) = sum_i a_i - 1/2 sum_ij a_i a_j y_i y_j K_ij      0 <= a_i <= U_i,  sum_i a_i y_i = 0
    score      s_i = sum_j a_j y_j K_ij,      v_i = y_i - s_i          (LIBSVM's -y_i G_i)

A row can go up if a_i y_i can grow (y = +1 and a < U, or y = -1 and a > 0) and down if it can shrink. The
point is optimal where an intercept b has v_i <= b for all rows that can go up and v_i >= b for all that can
go down:

    violation  m - M = max_{up} v_i - min_{down} v_i  <=  0
    gap        P - D = sum_i a_i max(0, y_i f_i - 1) + (U_i - a_i) max(0, 1 - y_i f_i),      f_i = s_i + b

where P = 1/2 sum_i a_i y_i s_i + sum_i U_i max(0, 1 - y_i f_i) is the primal objective. The sum has no
negative terms, so nothing cancels. It is P - D for every a with sum_i a_i y_i = 0, whether or not K is
positive semi-definite; if not, D is not concave, and the sum bounds nothing but is still 0 at a stationary
point.

The hard margin has U infinite. Its P is |w|^2 / 2 once w and b are stretched so that no row is inside the
margin,

    P = sum_i a_i y_i s_i / (2 min_i (y_i f_i)^2)  >=  (sum_i a_i)^2 / (2 sum_i a_i y_i s_i)

where the right side is D of a scaled as well as can be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sixfold.solvers.kernel.kernel_rows import KernelRows
    from sixfold.solvers.separation.separation import Proof

Array = NDArray[Any]

SNAP = 1e-12  # of its bound or the largest of all: a multiplier closer to a bound is on it but for rounding


class Box:
    """The feasible box of a machine, 0 <= a <= U, and what follows from it whatever the point.

    Parameters
    ----------
    y : ndarray of float64
        -1 or +1.
    upper : ndarray of float64
        U > 0; infinite for the hard margin.

    Attributes
    ----------
    positive : ndarray of bool
        Where y = +1.
    hard : bool
        Whether a multiplier has no bound.
    weights : tuple of float
        The sum of U over the rows of y = +1, and of y = -1.
    constant_objective : float
        The primal objective of the best constant model: every row of the lighter class costs 2 U.
    """

    def __init__(self, y: Array, upper: Array) -> None:
        self.y, self.upper = y, upper
        self.positive: Array = y > 0.0
        # Reductions of ufuncs, here and below: methods take twice as long on a hundred rows.
        self.hard = bool(np.maximum.reduce(upper, initial=0.0) == math.inf)
        one, other = np.add.reduce(upper[self.positive]), np.add.reduce(upper[~self.positive])
        self.weights = float(one), float(other)
        self.constant_objective = 2.0 * min(self.weights)


@dataclass(frozen=True)
class DualProblem:
    """One machine: two classes of rows.

    Attributes
    ----------
    rows : KernelRows
    index : ndarray of int64
        Which of the rows.
    y : ndarray of float64
        -1 or +1.
    upper : ndarray of float64
        U > 0; infinite for the hard margin. Rows of weight 0 are left out.
    """

    rows: KernelRows
    index: Array
    y: Array
    upper: Array

    @cached_property
    def box(self) -> Box:
        """Labels and bounds."""
        return Box(self.y, self.upper)


class Optimality(NamedTuple):
    """What a point is worth, and how far from being optimal it is.

    Attributes
    ----------
    highest, lowest : float
        m, the largest v_i of a row that can go up, and M, the smallest of one that can go down.
    intercept : float
        The mean of v_i over the free rows; without any the middle of m and M.
    gap : float
        P - D.
    scale : float
        P of the best constant model, against which the gap is judged; for the hard margin P itself.
    primal, dual : float
        P and D.
    square : float
        |w|^2 = sum_i a_i y_i s_i.
    """

    highest: float
    lowest: float
    intercept: float
    gap: float
    scale: float
    primal: float
    dual: float
    square: float

    @property
    def violation(self) -> float:
        """LIBSVM's m - M; nothing can be improved where no row can go up, or none down."""
        return max(self.highest - self.lowest, 0.0)


@dataclass(frozen=True)
class DualSolution:
    """What was found.

    Attributes
    ----------
    alpha : ndarray of float64
        Feasible whatever happened.
    scores : ndarray of float64
        s_i = sum_j a_j y_j K_ij of the rows, without the intercept.
    state : Optimality
        Of this point, over all rows.
    iterations : int
        Pairs that were optimised.
    definite : bool or None
        Whether the kernel is positive semi-definite, so that P - D bounds anything; False where a direction
        was met along which D curves upwards, None where it is not known.
    rounding : float
        How far a score may be off.
    overlap : Proof or None
        For the hard margin: why no surface separates the classes.
    """

    alpha: Array
    scores: Array
    state: Optimality
    iterations: int
    definite: bool | None
    rounding: float
    overlap: Proof | None = None

    @property
    def intercept(self) -> float:
        """What is added to scores."""
        return self.state.intercept

    @property
    def violation(self) -> float:
        """Of optimality."""
        return self.state.violation


def examine(box: Box, alpha: Array, scores: Array, intercept: float | None = None) -> Optimality:
    """Return how far the point is from being optimal, with LIBSVM's intercept if no other is given."""
    y = box.y
    above, below = alpha > 0.0, alpha < box.upper
    v = y - scores
    up, down = np.where(box.positive, below, above), np.where(box.positive, above, below)
    highest = float(np.maximum.reduce(v, where=up, initial=-math.inf))
    lowest = float(np.minimum.reduce(v, where=down, initial=math.inf))
    if intercept is None:
        intercept = _intercept(v[above & below], highest, lowest)
    square, total = dot(alpha * y, scores), float(np.add.reduce(alpha))
    dual, margins = total - 0.5 * square, y * (scores + intercept)
    if box.hard:
        gap, primal = _hard_gap(margins, square, total)
        return Optimality(highest, lowest, intercept, gap, primal, primal, dual, square)
    slack = 1.0 - margins
    inside = np.maximum(slack, 0.0)
    gap = dot(alpha, inside - slack) + dot(box.upper - alpha, inside)
    primal = 0.5 * square + dot(box.upper, inside)
    return Optimality(highest, lowest, intercept, gap, box.constant_objective, primal, dual, square)


def examine_zero(box: Box) -> Optimality:
    """Return how far from being optimal a = 0 is: what ``examine`` says, which takes longer."""
    one, other = box.weights
    highest, lowest = 1.0 if one else -math.inf, -1.0 if other else math.inf
    intercept = _intercept(box.y[:0], highest, lowest)
    if box.hard:
        return Optimality(highest, lowest, intercept, math.inf, math.inf, math.inf, 0.0, 0.0)
    primal = one * (1.0 - intercept) + other * (1.0 + intercept)
    return Optimality(highest, lowest, intercept, primal, box.constant_objective, primal, 0.0, 0.0)


def cheapest_intercept(y: Array, upper: Array, scores: Array) -> float:
    """Return the b with which sum_i U_i max(0, 1 - y_i f_i) is least.

    Rows of y = +1 cost less and less until b = v_i, those of y = -1 more and more from there: the slope is
    -sum_{y=+1} U, plus the U of all rows with v_i < b.
    """
    v = y - scores
    order = np.argsort(v, kind="stable")
    slope = np.cumsum(upper[order]) - upper[y > 0.0].sum()
    return float(v[order[np.searchsorted(slope, 0.0)]])


def _intercept(free: Array, highest: float, lowest: float) -> float:
    if free.size:
        return float(np.add.reduce(free)) / free.size
    if math.isinf(highest) or math.isinf(lowest):  # one class only: its rows end on the margin
        return highest if math.isfinite(highest) else lowest if math.isfinite(lowest) else 0.0
    return 0.5 * (highest + lowest)


def _hard_gap(margins: Array, square: float, total: float) -> tuple[float, float]:
    """Return P - D and P from y f, |w|^2 and sum a; both infinite while a row is on the wrong side."""
    least = float(np.min(margins, initial=math.inf))
    if not (square > 0.0 and least > 0.0):
        return math.inf, math.inf
    primal = 0.5 * square / least**2
    return max(primal - 0.5 * total**2 / square, 0.0), primal


def dot(one: Array, other: Array) -> float:
    """Return one.other; long vectors without BLAS, whose second thread takes longer to wake than they do."""
    return float(one.dot(other) if one.size < 10_000 else np.einsum("i,i->", one, other))


def feasible(y: Array, upper: Array, start: Array) -> Array:
    """Return the start within its bounds, the heavier class scaled down so that sum_i a_i y_i = 0."""
    alpha = np.clip(start, 0.0, upper)
    positive = y > 0.0
    up, down = float(alpha[positive].sum()), float(alpha[~positive].sum())
    if abs(up - down) > SNAP * up:  # less is rounding, and rows at their bound had better stay there
        alpha[positive == (up > down)] *= min(up, down) / max(up, down)
    return alpha


def snap(y: Array, upper: Array, alpha: Array, rest: float = 0.0) -> Array:
    """Return alpha with values beside a bound put on it; the free row with most room balances the classes.

    Not only for what this moves: millions of steps leave a sum_i a_i y_i that is rounding, but not 0.
    ``rest`` is the sum over rows that are not here.
    """
    beside = SNAP * np.minimum(upper, np.maximum.reduce(alpha, initial=0.0))
    snapped = np.where(alpha <= beside, 0.0, np.where(upper - alpha <= beside, upper, alpha))
    room = np.minimum(snapped, upper - snapped)
    row = int(room.argmax())
    moved = -y[row] * (dot(y, snapped) + rest)
    if abs(moved) >= room[row]:
        return alpha  # nobody can make up for it
    snapped[row] += moved
    return snapped
