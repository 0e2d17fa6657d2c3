"""L1-penalised least squares on a few columns whose Gram matrix is at hand.

    minimise over w    w'G w / 2 - c.w + l1 |w|_1 + l2 |w|^2 / 2        (optionally w >= 0)

Two steps alternate. *Coordinate descent* finds out which weights are not zero, at a cost of k operations a change.
*A Newton step* on the nonzero weights S with their signs s then lands on the minimum of their face at once:

    (G_SS + l2) step = slope_S - l1 s - l2 w_S,        slope = c - G w

Weights whose sign would turn are set to zero if that lowers the objective, otherwise the step ends at the first of
them (feature-sign search, Lee et al. 2006). Where G_SS is singular, as with duplicate columns, a pivoted Cholesky
factorisation picks independent columns and only these move.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, lapack

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.solvers.columns import Columns, Interrupted

Array = NDArray[Any]

# A factorisation of this many columns takes about 0.1 s, which is as long as Ctrl-C should wait.
MOST_FACTORED = 3000
# Squared pivots below this part of the largest are rounding: the column depends on the others.
DEPENDENT = 1e-12


@dataclass(frozen=True)
class Rule:
    """What each coordinate is shrunk by."""

    l1: float
    l2: float
    positive: bool

    def penalty(self, w: Array) -> float:
        """Return l1 |w|_1 + l2 |w|^2 / 2."""
        return float(self.l1 * np.abs(w).sum() + 0.5 * self.l2 * (w @ w))


class WorkingSet:
    """Some columns and their Gram matrix, grown as columns are added."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.ids = np.empty(0, dtype=np.int64)
        self.gram = np.empty((0, 0))

    def add(self, fresh: Array, budget: Budget) -> None:
        """Add columns that are not yet in the set."""
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
    gram: Array, w: Array, slope: Array, rule: Rule, epochs: int, goal: float, budget: Budget
) -> None:
    """Run coordinate descent in place until nothing moves by more than the goal, or for so many epochs.

    Raises
    ------
    Interrupted
        If the budget ended; w is then better than before, and slope fits it.
    """
    finished, _ = core.descend_gram(
        gram, slope, w, rule.l1, rule.l2, rule.positive, epochs, goal, budget.seconds_left, budget.flag
    )
    if not finished:
        raise Interrupted


def polish(gram: Array, w: Array, slope: Array, rule: Rule) -> None:
    """Take one Newton step on the nonzero weights, in place; the objective never grows."""
    support = np.flatnonzero(w)
    if not 0 < len(support) <= MOST_FACTORED:
        return
    before, down = w[support], slope[support]
    sign = np.sign(before)
    face = gram[np.ix_(support, support)]
    newton = _solve(face, rule.l2, down - rule.l1 * sign - rule.l2 * before)
    after = before + newton
    turned = after * sign <= 0.0
    if turned.any():
        after[turned] = 0.0
        step = after - before
        change = 0.5 * step @ (face @ step) - step @ down + rule.penalty(after) - rule.penalty(before)
        if change >= 0.0:
            length = np.min(-before[turned] / newton[turned])
            after = before + length * newton
            after[after * sign <= 0.0] = 0.0
    slope -= (after - before) @ gram[support]
    w[support] = after


def _solve(A: Array, ridge: float, right: Array) -> Array:
    """Return a solution of (A + ridge) x = right for positive semi-definite A, in independent columns only."""
    scale = np.sqrt(np.diagonal(A) + ridge)
    A = A / (scale[:, None] * scale)
    A.flat[:: len(right) + 1] = 1.0
    right = right / scale
    factor, failed = lapack.dpotrf(A, lower=1, clean=0)
    if failed == 0 and np.square(np.diagonal(factor)).min() > DEPENDENT:
        return np.asarray(cho_solve((factor, True), right, check_finite=False) / scale)
    factor, pivots, rank, _ = lapack.dpstrf(A, lower=1, tol=DEPENDENT)
    chosen = pivots[:rank] - 1
    x = np.zeros_like(right)
    x[chosen] = cho_solve((factor[:rank, :rank], True), right[chosen], check_finite=False)
    return np.asarray(x / scale)
