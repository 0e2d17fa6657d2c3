"""A feasible point of the dual and the scores of its rows, kept up to date as the point moves.

    s_i = sum_j a_j y_j K_ij      moves by      sum_j y_j change_j K_ij

Only rows j that changed cost anything, and K is never stored. A row so far from the margin that a move
cannot bring it there need not follow: it falls behind, and catches up with all moves at once when it
matters.

*Precision.* An entry of K computed in float32 is off by e, as measured on a sample of them, so a change
brings an error of about e |change| to a score: errors of different entries have different signs. While that
is a small part of the tolerance, scores move in float32, and where the Gram matrix of the active rows gives
their new scores, those are taken. Otherwise they move in float64.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.solvers.kernel.dual import DualProblem, dot

Array = NDArray[Any]

FINE = 0.3  # of the tolerance: what scores in float32 may be off by
TYPICAL_ROWS = 200  # that tell by how much scores move
FAR = 4.0  # times that: rows this far away do not follow


class DualScores:
    """The point alpha and its scores.

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
        self.behind = np.zeros(n, dtype=bool)
        self._groups: list[tuple[Array, Array]] = []  # rows that are behind, and the alpha of their scores

    @property
    def complete(self) -> bool:
        """Whether no row is behind."""
        return not self._groups

    @property
    def rounding(self) -> float:
        """How far a score may be off."""
        return math.sqrt(self.variance)

    def unseen(self, alpha: Array) -> float:
        """Return what scores of this alpha are rounded by at best: nobody can see a violation below that."""
        return math.sqrt(self._error(np.float64, alpha))

    def fine_in_single(self, alpha: Array) -> bool:
        """Return whether scores in float32 are good enough."""
        return self.single and math.sqrt(self._error(np.float32, alpha)) <= FINE * self.tol

    def begin(self, alpha: Array, budget: Budget) -> None:
        """Start at another point than 0."""
        dtype = np.float32 if self.fine_in_single(alpha) else np.float64
        self._compute(alpha, dtype, budget)

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
        follow = ~self.behind
        follow[active] = False
        others = np.flatnonzero(follow)
        away = others[:0]
        if others.size > 10 * TYPICAL_ROWS:
            near = distance[others] < FAR * self._typical(others, change, dtype, budget)
            others, away = others[near], others[~near]
        scores[others] += self._change(others, change, dtype, budget)
        if single:
            scores[active] = expected
        else:
            scores[active] += self._change(active, change, dtype, budget)
            drift = float(np.max(np.abs(scores[active] - expected), initial=0.0))
        if away.size:
            self._groups.append((away, self.alpha))
            self.behind[away] = True
        self.alpha, self.scores = alpha, scores
        self.variance += self._error(dtype, change)
        return drift

    def missing(self) -> int:
        """Return how many kernel values it takes to catch up."""
        return sum(rows.size * int(np.count_nonzero(self.alpha != base)) for rows, base in self._groups)

    def catch_up(self, budget: Budget) -> None:
        """Bring the scores of rows that are behind up to date."""
        dtype = np.float32 if self.fine_in_single(self.alpha) else np.float64
        while self._groups:
            rows, base = self._groups[-1]
            self.scores[rows] += self._change(rows, self.alpha - base, dtype, budget)
            self.behind[rows] = False
            self._groups.pop()

    def go_back(self, settled: tuple[Array, Array, float]) -> None:
        """Go back to a point at which nobody was behind."""
        self.alpha, self.scores, self.variance = settled
        self.behind[:] = False
        self._groups.clear()

    def _typical(self, rows: Array, change: Array, dtype: type, budget: Budget) -> float:
        """Return by how much scores of these rows move, as a mean over a few of them."""
        few = rows[:: max(rows.size // TYPICAL_ROWS, 1)]
        moved = self._change(few, change, dtype, budget)
        return math.sqrt(float(np.mean(moved**2))) if few.size else 0.0

    def _compute(self, alpha: Array, dtype: type, budget: Budget) -> None:
        self.scores = self._change(np.arange(alpha.size), alpha, dtype, budget)
        self.alpha, self.variance = alpha, self._error(dtype, alpha)
        self.behind[:] = False
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
