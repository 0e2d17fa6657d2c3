"""L1-penalised least squares on a few columns whose Gram matrix is at hand.

    minimise over w    w'G w / 2 - c.w + l1 |w|_1 + l2 |w|^2 / 2        (optionally w >= 0)

Two steps alternate. *Coordinate descent* finds out which weights are not zero, at a cost of k
operations a change. *A Newton step* on the nonzero weights S with their signs s then lands on the
minimum of their face at once:

    (G_SS + l2) step = slope_S - l1 s - l2 w_S,        slope = c - G w

Weights whose sign would turn are set to zero if that lowers the objective, otherwise the step ends
at the first of them (feature-sign search, Lee et al. 2006). Where G_SS is singular, as with
duplicate columns, some combinations of columns are zero: following them downhill first makes
weights zero until the rest are independent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, lapack

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.solvers.l1.columns import Columns
from sixfold.solvers.threads import single_threaded_blas

Array = NDArray[Any]

# A step with this many columns takes about 0.15 s, which is as long as Ctrl-C should wait.
MOST_FACTORED = 2000
# Newton steps in a row, each on fewer columns, before coordinate descent has its turn again.
MOST_FACES = 10
# Squared pivots below this part of the largest are rounding: the column depends on the others.
DEPENDENT = 1e-12
# Combinations followed at a time: they cost as much as the factorisation of a thousand columns.
MOST_DEPENDENT = 64


@dataclass(frozen=True)
class Shrinkage:
    """What each coordinate is shrunk by."""

    l1: float
    l2: float
    positive: bool

    def penalty(self, w: Array) -> float:
        """Return l1 |w|_1 + l2 |w|^2 / 2."""
        total = self.l1 * float(np.add.reduce(np.abs(w)))  # .sum() takes a microsecond more, 40 times a fit
        return total + 0.5 * self.l2 * float(w @ w) if self.l2 else total


class WorkingGram:
    """Some columns and their Gram matrix, grown as columns are added."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.ids = np.empty(0, dtype=np.int64)
        self.gram = np.empty((0, 0))

    def add(self, fresh: Array, budget: Budget) -> None:
        """Add columns that are not yet in the set."""
        if len(fresh) == 0:
            return
        old = len(self.ids)
        ids = np.concatenate([self.ids, fresh])
        rows = self.columns.gram_rows(ids, old, budget)
        gram = np.empty((len(ids), len(ids)))
        gram[:old, :old] = self.gram
        gram[old:] = rows
        gram[:old, old:] = rows[:, :old].T
        self.ids, self.gram = ids, gram

    def keep(self, chosen: Array) -> None:
        """Drop all columns but these positions."""
        self.ids = self.ids[chosen]
        self.gram = np.ascontiguousarray(self.gram[np.ix_(chosen, chosen)])


def descend(
    gram: Array, w: Array, slope: Array, rule: Shrinkage, *, epochs: int, goal: float, budget: Budget
) -> bool:
    """Run coordinate descent in place; true if nothing moved by more than the goal in the end.

    Raises
    ------
    BudgetExhausted
        If the budget ended; w is then better than before, and slope fits it.
    """
    finished, used = core.descend_gram(
        gram, slope, w, rule.l1, rule.l2, rule.positive, epochs, goal, budget.seconds_left, budget.flag
    )
    budget.check(finished)
    return bool(used < epochs)


def polish(
    gram: Array, w: Array, slope: Array, rule: Shrinkage, budget: Budget, most: int = MOST_FACES
) -> None:
    """Take Newton steps on the nonzero weights until no sign turns, so many at most, in place.

    The objective never grows. Raises :class:`BudgetExhausted` as ``descend`` does.
    """
    for _ in range(most):
        budget.check()
        support = np.flatnonzero(w)
        if not 0 < len(support) <= MOST_FACTORED:
            return
        before = w[support]
        with single_threaded_blas(len(support)):
            after, again = _step_on_face(gram[np.ix_(support, support)], before, slope[support], rule)
        slope -= (after - before) @ gram[support]
        w[support] = after
        if not again:
            return


def _step_on_face(A: Array, w: Array, slope: Array, rule: Shrinkage) -> tuple[Array, bool]:
    """Return better weights of the same signs, and whether another step is worth while.

    A is the Gram matrix of these columns. Where only the first weight to turn could be made zero,
    many steps would be needed, and coordinate descent is the faster way on.
    """
    sign = np.sign(w)
    down = slope - rule.l1 * sign - rule.l2 * w
    A.flat[:: len(w) + 1] += rule.l2
    newton, null = solve_semidefinite(A, down)
    if null.shape[1] > 0:
        return _leave_dependence(A, w, down, null), True
    after = w + newton
    turned = after * sign <= 0.0
    if turned.any():
        after[turned] = 0.0
        step = after - w
        # With the signs fixed the objective is down.step - step'A step / 2 lower, zeros included.
        if 0.5 * step @ (A @ step) - step @ down >= 0.0:
            return _first_turn(w, newton, 1.0)[0], False
    return after, bool(turned.any())


def _leave_dependence(A: Array, w: Array, down: Array, null: Array) -> Array:
    """Return better weights, of which those of too many columns for their rank have become zero.

    Along a combination of columns that is zero the objective is linear until a sign turns: each
    is followed to there, downhill, and the others are cleared of the column whose weight became
    zero. A combination that is only nearly zero is followed to its minimum at most.
    """
    images = A @ null
    for k in range(null.shape[1]):
        z, image = null[:, k], images[:, k]
        gain = down @ z
        if gain < 0.0 or (gain == 0.0 and not np.any(z * w < 0.0)):
            z, image, gain = -z, -image, -gain
        bend = z @ image
        length = gain / bend if bend > 0.0 and gain > 0.0 else np.inf
        after, length = _first_turn(w, z, length)
        down = down - length * image
        ended = np.flatnonzero((after == 0.0) & (w != 0.0))
        w = after
        if len(ended) > 0:
            share = null[ended[0], k + 1 :] / z[ended[0]]
            null[:, k + 1 :] -= np.outer(z, share)
            images[:, k + 1 :] -= np.outer(image, share)
    return w


def _first_turn(w: Array, step: Array, length: float) -> tuple[Array, float]:
    """Return w + length * step, or with less of it so that the first weight to turn is zero."""
    turning = np.flatnonzero(step * w < 0.0)
    ratios = -w[turning] / step[turning]
    nearest = np.min(ratios, initial=np.inf)
    if nearest > length:
        return np.asarray(w + length * step), length
    if nearest == np.inf:  # no slope, no sign to turn: nothing to win
        return w, 0.0
    after = w + nearest * step
    after[turning[ratios == nearest]] = 0.0
    return np.asarray(after), float(nearest)


def solve_semidefinite(A: Array, right: Array) -> tuple[Array, Array]:
    """Return x with A x = right, and some combinations z with A z = 0, for A >= 0."""
    scale = np.sqrt(np.diagonal(A))
    scale[scale == 0.0] = 1.0
    A = A / (scale[:, None] * scale)
    factor, failed = lapack.dpotrf(A, lower=1, clean=0)
    if failed == 0 and np.square(np.diagonal(factor)).min() > DEPENDENT:
        x = lapack.dpotrs(factor, right / scale, lower=1)[0]  # SciPy's wrapper would take as long again
        return np.asarray(x / scale), np.empty((len(right), 0))
    factor, pivots, rank, _ = lapack.dpstrf(A, lower=1, tol=DEPENDENT)
    chosen, rest = pivots[:rank] - 1, pivots[rank : rank + MOST_DEPENDENT] - 1
    null = np.zeros((len(right), len(rest)))
    null[rest, np.arange(len(rest))] = 1.0
    null[chosen] = -cho_solve((factor[:rank, :rank], True), A[np.ix_(chosen, rest)], check_finite=False)
    x = np.zeros_like(right)
    x[chosen] = cho_solve((factor[:rank, :rank], True), (right / scale)[chosen], check_finite=False)
    return np.asarray(x / scale), null / scale[:, None]
