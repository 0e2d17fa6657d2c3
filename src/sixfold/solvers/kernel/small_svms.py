"""The binary SVMs of several small classes at once: one Gram matrix, one native call.

What :mod:`sixfold.solvers.kernel.decomposition` does with few rows, problem by problem, here stands in flat
arrays, one problem after the other, and goes through one native loop, from the Gram matrix to the figures of
the certificate. The formulas are those of :mod:`sixfold.solvers.kernel.dual`. A problem takes 85 microseconds
there apart from its kernel values and pairs, and 1 here. Where one is not optimal at the first go, all are
left to it, from where they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.certificate import Certificate
from sixfold.solvers.kernel.decomposition import (
    BEFORE_ROUNDING,
    PAIRS_BEFORE_FREE_STEP,
)
from sixfold.solvers.kernel.dual import ALIKE, DualSolution, Optimality
from sixfold.solvers.kernel.kernel_rows import KernelRows

Array = NDArray[Any]


@dataclass(frozen=True)
class FlatProblems:
    """Dual problems one after the other.

    Attributes
    ----------
    start : ndarray of int64 of shape (problems + 1,)
        Where the entries of each begin, and the end of the last.
    index : ndarray of int64
        Which of the rows.
    y : ndarray of float64
        -1 or +1; every problem has both.
    upper : ndarray of float64
        U > 0, finite.
    order : ndarray of int64
        All rows of the problems, those of a class next to each other.
    """

    start: Array
    index: Array
    y: Array
    upper: Array
    order: Array

    @classmethod
    def of(cls, members: Sequence[Array], sides: Sequence[tuple[Array, Array]], upper: Array) -> FlatProblems:
        """Return the problems with these positive and negative rows.

        Parameters
        ----------
        members : sequence of ndarray of int
            The rows of each class.
        sides : sequence of tuple of ndarray of int
            The rows of either side, for each problem.
        upper : ndarray of float
            C times the weight of each row.
        """
        parts = [part for pair in sides for part in pair]
        sizes = [part.size for part in parts]
        index = np.concatenate(parts)
        start = np.array(list(accumulate(sizes, initial=0))[::2])
        y = np.repeat([1.0, -1.0] * len(sides), sizes)
        return cls(start, index, y, upper[index], np.concatenate(members))

    @property
    def entries(self) -> int:
        """How many values their Gram matrices have together."""
        sizes = self.start[1:] - self.start[:-1]
        return int(sizes @ sizes)


@dataclass(frozen=True)
class FlatSolutions:
    """Their solutions.

    Attributes
    ----------
    problems : FlatProblems
    optimal : bool
        Whether all of them are; otherwise only ``alpha`` and ``iterations`` say anything.
    alpha, scores : ndarray of float64
        An entry a row of each problem.
    states : ndarray of shape (8, problems)
        The fields of :class:`~sixfold.solvers.kernel.dual.Optimality`.
    iterations : ndarray of int64
    rounding : ndarray of float64
        How far a score may be off, for each problem.
    lost : ndarray of float64
        How far rounding may have moved the objective of each.
    """

    problems: FlatProblems
    optimal: bool
    alpha: Array
    scores: Array
    states: Array
    iterations: Array
    rounding: Array
    lost: Array

    @property
    def violations(self) -> Array:
        """The violation m - M of each problem."""
        return np.maximum(self.states[0] - self.states[1], 0.0)

    @property
    def squares(self) -> Array:
        """|w|^2 of each problem."""
        return self.states[7]

    @property
    def intercepts(self) -> Array:
        """B of each problem."""
        return self.states[2]

    def starts(self) -> list[Array]:
        """Return the multipliers of each problem."""
        return np.split(self.alpha, self.problems.start[1:-1])

    def solution(self, number: int) -> DualSolution:
        """Return one of them."""
        some = slice(self.problems.start[number], self.problems.start[number + 1])
        state = Optimality(*self.states[:, number].tolist())
        made, rounding = int(self.iterations[number]), float(self.rounding[number])
        return DualSolution(self.alpha[some], self.scores[some], state, made, True, rounding)

    @cached_property
    def sums(self) -> list[list[float]]:
        """The objective, gap and scale of the first, of the first two, ..., of all together."""
        each = np.stack([self.states[5], self.states[3] + self.lost, self.states[4]], axis=1)
        sums: list[list[float]] = np.add.accumulate(each).tolist()
        return sums

    def certificate(self, tol: float) -> Certificate:
        """Return what is known of all of them together."""
        objective, gap, scale = self.sums[-1]
        details: dict[str, Any] = {
            "violation": float(self.violations.max()),
            "dual_objective": float(self.states[6].sum()),
            "rounding": float(self.rounding.max()),
            "machines": self.iterations.size,
        }
        lost = float(self.lost.sum())
        return Certificate("duality gap", objective, gap, scale, tol, details, rounding=lost)


def suit(rows: KernelRows, problems: FlatProblems, memory: int) -> bool:
    """Return whether the problems can be solved together: definite kernel, finite bounds, memory enough."""
    fits = 8 * rows.n_rows**2 <= memory
    return bool(rows.kernel.definite and fits and np.isfinite(problems.upper).all())


def solve_small_svms(rows: KernelRows, problems: FlatProblems, tol: float, budget: Budget) -> FlatSolutions:
    """Return the solutions, or how far they came where one of them is not optimal, for whatever reason.

    Parameters
    ----------
    rows : KernelRows
    problems : FlatProblems
        For which :func:`suit` is true.
    tol : float
        As for :func:`~sixfold.solvers.kernel.decomposition.solve_dual`.
    budget : Budget
        Its time limit and Ctrl-C end the work.
    """
    place = np.empty(rows.n_rows, dtype=np.int64)
    place[problems.order] = np.arange(problems.order.size)
    row = place[problems.index]
    count = problems.start.size - 1
    alpha, scores, iterations = np.empty(row.size), np.empty(row.size), np.zeros(count, dtype=np.int64)
    states, rounding, lost = np.empty((len(Optimality._fields), count)), np.empty(count), np.empty(count)
    optimal = core.small_svms(
        rows.gram(problems.order, np.float64, budget),
        problems.start,
        row,
        problems.y,
        problems.upper,
        alpha,
        scores,
        iterations,
        states,
        rounding,
        lost,
        single=math.isfinite(rows.entry_error(np.float32)),
        error=rows.entry_error(np.float64),
        violation=tol,
        gap=BEFORE_ROUNDING * tol,
        alike=ALIKE * tol,
        most_iterations=PAIRS_BEFORE_FREE_STEP,
        seconds_left=budget.seconds_left,
        flag=budget.flag,
    )
    return FlatSolutions(problems, optimal, alpha, scores, states, iterations, rounding, lost)
