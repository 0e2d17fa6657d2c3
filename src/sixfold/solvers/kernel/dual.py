"""The dual of the binary SVM: a point of it with its scores, how far from optimal it is, its certificate.

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
point: the certificate is of kind "kkt" then. The gap is judged against the best constant model,
2 min(sum_{y=+1} U, sum_{y=-1} U).

The hard margin has U infinite. Its P, against which it is judged, is |w|^2 / 2 once w and b are stretched so
that no row is inside the margin,

    P = sum_i a_i y_i s_i / (2 min_i (y_i f_i)^2)  >=  (sum_i a_i)^2 / (2 sum_i a_i y_i s_i)

where the right side is D of a scaled as well as can be. What rounding may have done to the objective is part
of the certified gap: where kernel values are so large that nothing is left of P, nothing is claimed.

Source: Fan, Chen and Lin (2005), Working set selection using second order information for training support
vector machines, section 2; Boyd and Vandenberghe (2004), Convex optimization, section 5.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.certificate import Certificate

if TYPE_CHECKING:
    from sixfold.solvers.kernel.kernel_rows import KernelRows
    from sixfold.solvers.separation.separation import Proof

Array = NDArray[Any]

SINGLE_PRECISION_ERROR = 0.3  # of the tolerance: what scores in float32 may be off by
TYPICAL_ROWS = 200  # that tell by how much scores move
STALE_DISTANCE = 4.0  # times that: rows this far away do not follow
BOUND_ROUNDING = 1e-12  # of its bound or the largest of all: a multiplier this close to a bound is on it
ALIKE = 0.01  # of the tolerance: what rounding may do if it has one sign everywhere


class DualBox:
    """The feasible box 0 <= a <= U, and what follows from it whatever the point.

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
    """The dual problem of one binary SVM: two classes of rows.

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
    def box(self) -> DualBox:
        """Labels and bounds."""
        return DualBox(self.y, self.upper)


# -- how far from optimal a point is ------------------------------------------------------------------------


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
    """A feasible point of the dual, and what is known of it.

    Attributes
    ----------
    alpha : ndarray of float64
        Feasible, also where the budget ended the work.
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
        """b, which is added to scores."""
        return self.state.intercept

    @property
    def violation(self) -> float:
        """The violation m - M over all rows."""
        return self.state.violation


def optimality(box: DualBox, alpha: Array, scores: Array, intercept: float | None = None) -> Optimality:
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


def optimality_at_zero(box: DualBox) -> Optimality:
    """Return how far from being optimal a = 0 is: what :func:`optimality` says, which takes longer."""
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


# -- the certificate --------------------------------------------------------------------------------------


def certify(problem: DualProblem, solution: DualSolution, tol: float) -> Certificate:
    """Return what is known of one binary SVM."""
    state = solution.state
    scale = state.scale if math.isfinite(state.scale) else 1.0  # no plane separates the classes yet
    if problem.box.hard:
        rounding = _hard_rounding(problem, solution)
    else:
        rounding = _soft_rounding(problem, solution, ALIKE * tol * scale)
    return make_certificate([solution], state.primal, state.gap + rounding, scale, tol, rounding)


def make_certificate(
    solutions: list[DualSolution], objective: float, gap: float, scale: float, tol: float, rounding: float
) -> Certificate:
    """Return the certificate of one binary SVM, or of several whose objectives, gaps and scales add up."""
    details: dict[str, Any] = {
        "violation": max(solution.violation for solution in solutions),
        "dual_objective": sum(solution.state.dual for solution in solutions),
        "rounding": max(solution.rounding for solution in solutions),
        "machines": len(solutions),
    }
    known = {solution.definite for solution in solutions}
    if known == {True}:
        return Certificate("duality gap", objective, gap, scale, tol, details, rounding=rounding)
    relative = gap / scale if scale > 0 else gap
    kernel = "is not" if False in known else "is not known to be"
    claim = f"stationary within {relative:.1g}; the kernel {kernel} positive semi-definite"
    return Certificate("kkt", objective, gap, scale, tol, details, claim, rounding=rounding)


def _soft_rounding(problem: DualProblem, solution: DualSolution, small: float) -> float:
    """Return how far rounding may have moved the objective.

    Errors of rows have different signs: of 20,000 rows with C=100 the sum of their sizes is 28, and the
    objective is off by 0.004. But those of rows that are alike are, so what all of them could do together
    counts as far as it is ``small``.
    """
    y, upper, alpha, scores = problem.y, problem.upper, solution.alpha, solution.scores
    short = 1.0 - y * (scores + solution.intercept)
    # A row outside the margin by less than the rounding may be inside.
    touched = upper * (short > -solution.rounding) + 0.5 * alpha
    error = 2.0 * solution.rounding * math.sqrt(touched.dot(touched))
    together = solution.rounding * float(touched.sum())
    return max(error, min(together, small)) + 1e-13 * abs(solution.state.primal)


def _hard_rounding(problem: DualProblem, solution: DualSolution) -> float:
    y, alpha, scores, state = problem.y, solution.alpha, solution.scores, solution.state
    if math.isinf(state.gap):
        return 0.0
    least = float(np.min(y * (scores + state.intercept)))
    relative = solution.rounding * (2.0 / least + float(alpha.sum()) / state.square)
    return (relative + 1e-13) * state.primal


# -- points ----------------------------------------------------------------------------------------------


class DualScores:
    """A feasible point alpha and the scores of its rows, kept up to date as the point moves.

    ::

        s_i = sum_j a_j y_j K_ij      moves by      sum_j y_j change_j K_ij

    Only rows j that changed cost anything, and K is never stored. A row so far from the margin that a move
    cannot bring it there need not follow: its score is stale until it matters, and is then updated by all
    moves at once.

    *Precision.* An entry of K computed in float32 is off by e, as measured on a sample of them, so a change
    brings an error of about e |change| to a score: errors of different entries have different signs. While
    that is a small part of the tolerance, scores move in float32, and where the Gram matrix of the active
    rows gives their new scores, those are taken. Otherwise they move in float64.

    Parameters
    ----------
    problem : DualProblem
    tol : float
        The violation that scores must be able to tell from 0.
    single : bool
        Whether float32 is good enough where its errors are small. It is not where numbers overflow.
    """

    def __init__(self, problem: DualProblem, tol: float, single: bool) -> None:
        self.problem = problem
        self.tol = tol
        self.single = single and math.isfinite(self.problem.rows.entry_error(np.float32))
        n = problem.y.size
        self.alpha: Array = np.zeros(n)
        self.scores: Array = np.zeros(n)
        self.variance = 0.0
        self.stale = np.zeros(n, dtype=bool)
        self._groups: list[tuple[Array, Array]] = []  # stale rows, and the alpha of their scores

    @property
    def complete(self) -> bool:
        """Whether no score is stale."""
        return not self._groups

    @property
    def rounding(self) -> float:
        """How far a score may be off."""
        return math.sqrt(self.variance)

    def noise_floor(self, alpha: Array) -> float:
        """Return what scores of this alpha are rounded by at best: a violation below that is not seen."""
        return math.sqrt(self._error(np.float64, alpha))

    def fine_in_single(self, alpha: Array) -> bool:
        """Return whether scores in float32 are good enough."""
        return self.single and math.sqrt(self._error(np.float32, alpha)) <= SINGLE_PRECISION_ERROR * self.tol

    def begin(self, alpha: Array, budget: Budget) -> None:
        """Start at another point than 0."""
        dtype = np.float32 if self.fine_in_single(alpha) else np.float64
        self._compute(alpha, dtype, budget)

    def resume(self, solution: DualSolution) -> None:
        """Start at a point whose scores are known."""
        self.alpha, self.scores = solution.alpha, solution.scores.copy()  # which stale ones change in place
        self.variance = solution.rounding**2

    def move_all(self, alpha: Array, order: Array, gram: Array) -> None:
        """Go to another alpha where the Gram matrix of all rows, in that order, is known in float64."""
        self.scores = np.empty(alpha.size)
        self.scores[order] = gram @ (alpha * self.problem.y)[order]
        self.alpha, self.variance = alpha, self._error(np.float64, alpha)

    def move(self, alpha: Array, active: Array, expected: Array, distance: Array, budget: Budget) -> float:
        """Go to another alpha, and bring along the scores of rows that are not too far away to matter.

        Parameters
        ----------
        alpha : ndarray
        active : ndarray of int
            The rows that may have changed.
        expected : ndarray
            Their scores, if their Gram matrix were exact.
        distance : ndarray
            By how much the score of a row may move before it matters.
        budget : Budget

        Returns
        -------
        float
            How far the expected scores are from exact ones, as far as that is known.
        """
        change = alpha - self.alpha
        scores, drift = self.scores.copy(), 0.0
        single = self.fine_in_single(alpha)
        dtype = np.float32 if single else np.float64
        follow = ~self.stale
        follow[active] = False
        others = np.flatnonzero(follow)
        away = others[:0]
        if others.size > 10 * TYPICAL_ROWS:
            near = distance[others] < STALE_DISTANCE * self._typical(others, change, dtype, budget)
            others, away = others[near], others[~near]
        scores[others] += self._change(others, change, dtype, budget)
        if single:
            scores[active] = expected
        else:
            scores[active] += self._change(active, change, dtype, budget)
            drift = float(np.max(np.abs(scores[active] - expected), initial=0.0))
        if away.size:
            self._groups.append((away, self.alpha))
            self.stale[away] = True
        self.alpha, self.scores = alpha, scores
        self.variance += self._error(dtype, change)
        return drift

    def stale_values(self) -> int:
        """Return how many kernel values it takes to update stale scores."""
        return sum(rows.size * int(np.count_nonzero(self.alpha != base)) for rows, base in self._groups)

    def update_stale(self, budget: Budget) -> None:
        """Bring stale scores up to date."""
        dtype = np.float32 if self.fine_in_single(self.alpha) else np.float64
        while self._groups:
            rows, base = self._groups[-1]
            self.scores[rows] += self._change(rows, self.alpha - base, dtype, budget)
            self.stale[rows] = False
            self._groups.pop()

    def restore(self, complete: tuple[Array, Array, float]) -> None:
        """Go back to a point at which no score was stale."""
        self.alpha, self.scores, self.variance = complete
        self.stale[:] = False
        self._groups.clear()

    def _typical(self, rows: Array, change: Array, dtype: type, budget: Budget) -> float:
        """Return by how much scores of these rows move, as a mean over a few of them."""
        few = rows[:: max(rows.size // TYPICAL_ROWS, 1)]
        moved = self._change(few, change, dtype, budget)
        return math.sqrt(float(np.mean(moved**2))) if few.size else 0.0

    def _compute(self, alpha: Array, dtype: type, budget: Budget) -> None:
        self.scores = self._change(np.arange(alpha.size), alpha, dtype, budget)
        self.alpha, self.variance = alpha, self._error(dtype, alpha)
        self.stale[:] = False
        self._groups.clear()

    def _change(self, rows: Array, change: Array, dtype: type, budget: Budget) -> Array:
        """Return sum_j y_j change_j K_ij of these rows."""
        changed = np.flatnonzero(change)
        if not (rows.size and changed.size):
            return np.zeros(rows.size)
        index = self.problem.index
        coefficients = (self.problem.y * change)[changed, None]
        return self.problem.rows.scores(index[rows], index[changed], coefficients, dtype, budget)[:, 0]

    def _error(self, dtype: type, change: Array) -> float:
        """Return the variance of the error that such a change brings to a score."""
        entry = self.problem.rows.entry_error(dtype) * math.sqrt(dot(change, change))
        addition = self.problem.rows.entry_error(np.float64) * float(np.add.reduce(np.abs(change)))
        return entry**2 + addition**2


def dot(one: Array, other: Array) -> float:
    """Return one.other; long vectors without BLAS, whose second thread takes longer to wake than they do."""
    return float(one.dot(other) if one.size < 10_000 else np.einsum("i,i->", one, other))


def feasible(y: Array, upper: Array, start: Array) -> Array:
    """Return the start within its bounds, the heavier class scaled down so that sum_i a_i y_i = 0."""
    alpha = np.clip(start, 0.0, upper)
    positive = y > 0.0
    up, down = float(alpha[positive].sum()), float(alpha[~positive].sum())
    if abs(up - down) > BOUND_ROUNDING * up:  # less is rounding; rows at their bound had better stay there
        alpha[positive == (up > down)] *= min(up, down) / max(up, down)
    return alpha


def snap(y: Array, upper: Array, alpha: Array, rest: float = 0.0) -> Array:
    """Return alpha with values beside a bound put on it; the free row with most room balances the classes.

    Not only for what this moves: millions of steps leave a sum_i a_i y_i that is rounding, but not 0.
    ``rest`` is the sum over rows that are not here.
    """
    beside = BOUND_ROUNDING * np.minimum(upper, np.maximum.reduce(alpha, initial=0.0))
    snapped = np.where(alpha <= beside, 0.0, np.where(upper - alpha <= beside, upper, alpha))
    room = np.minimum(snapped, upper - snapped)
    row = int(room.argmax())
    moved = -y[row] * (dot(y, snapped) + rest)
    if abs(moved) >= room[row]:
        return alpha  # no row can make up for it
    snapped[row] += moved
    return snapped
