"""A quadratic model of a smooth loss in the weights of a few columns, intercepts eliminated.

Near the scores s_i of a row the loss is modelled by its slopes and by the second derivatives

    H_i = diag(own_i) - shared_i shared_i'

one number own_i where a row has one score; for the softmax own = p and shared = p, the probabilities. A
coordinate is a pair of a column and a score, and the model of a change v in the coordinates and c in the
intercepts is

    (v, c)' G (v, c) / 2 - (slope, slope_b).(v, c),      G = sum_i (x_i, 1)' H_i (x_i, 1)

Its minimum in c is taken once for all v (a Schur complement), which leaves the problem of
:mod:`sixfold.solvers.l1.active_set` in v alone. G is kept while it is good enough, and grows with the set:
slopes are exact at every step, so an old G costs steps and never the answer.

*Damping.* Second derivatives are mixed with their upper bound, (1 - damping) H_i + damping bound. At
damping 1 the model lies above the loss and its minimum always lowers the objective; at 0 a step is
Newton's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.solvers.l1.columns import CONSTANT_COLUMN
from sixfold.solvers.l1.working_set import WorkingColumns

Array = NDArray[Any]


@dataclass(frozen=True)
class Curvature:
    """The second derivatives of q_i times the loss of every row: diag(own) - shared shared'."""

    own: Array
    shared: Array | None

    def total(self) -> Array:
        """Return the second derivatives in the intercepts."""
        total = np.diag(self.own.sum(axis=0))
        return total if self.shared is None else total - self.shared.T @ self.shared

    def of_score(self, k: int) -> Array:
        """Return the second derivative in score k alone."""
        return self.own[:, k] if self.shared is None else self.own[:, k] - self.shared[:, k] ** 2


class QuadraticModel:
    """G of a growing list of coordinates, and its minimum over the intercepts.

    Attributes
    ----------
    column, score : ndarray of int64
        The coordinates after the intercepts, in the order in which they were added.
    gram : ndarray
        G after elimination, of the coordinates alone.
    """

    def __init__(self, working: WorkingColumns, n_scores: int, fit_intercept: bool) -> None:
        self.working = working
        self.free = n_scores if fit_intercept else 0
        self.n_scores = n_scores
        self._column = np.full(self.free, -1, dtype=np.int64)
        self._score = np.arange(self.free)
        self._whole = np.empty((0, 0))  # G, intercepts first
        self._curvature: Curvature | None = None
        self.gram = np.empty((0, 0))

    @property
    def column(self) -> Array:
        """The column of each coordinate."""
        return self._column[self.free :]

    @property
    def score(self) -> Array:
        """The score of each coordinate."""
        return self._score[self.free :]

    def restrict(self, chosen: Array) -> None:
        """Drop all coordinates but these positions."""
        kept = np.concatenate([np.arange(self.free), self.free + chosen])
        self._column, self._score = self._column[kept], self._score[kept]
        kept = kept[kept < len(self._whole)]
        self._whole = self._whole[np.ix_(kept, kept)]

    def extend(self, column: Array, score: Array) -> None:
        """Add coordinates; G follows when it is next asked for."""
        self._column = np.concatenate([self._column, column])
        self._score = np.concatenate([self._score, score])

    def forget(self) -> None:
        """Drop G, and the second derivatives it was made of."""
        self._curvature = None
        self._whole = self.gram = np.empty((0, 0))

    @property
    def empty(self) -> bool:
        """Whether second derivatives have to be given next."""
        return self._curvature is None

    def renew(self, curvature: Curvature) -> None:
        """Take other second derivatives from now on."""
        self.forget()
        self._curvature = curvature

    def complete(self, budget: Budget) -> None:
        """Compute what G lacks, and eliminate the intercepts."""
        old = len(self._whole)
        if old == len(self._column) and len(self.gram) == old - self.free:
            return
        if old < len(self._column):
            rows = self._new_rows(old, budget)
            whole = np.empty((len(self._column), len(self._column)))
            whole[:old, :old] = self._whole
            whole[old:] = rows
            whole[:old, old:] = rows[:, :old].T
            self._whole = whole
        self._eliminate()

    def _new_rows(self, old: int, budget: Budget) -> Array:
        assert self._curvature is not None
        own, shared = np.sqrt(self._curvature.own), self._curvature.shared
        if shared is None:
            return self.working.gram_rows(own, self._score, self._column, old, budget)
        rows = -self.working.gram_rows(shared, self._score, self._column, old, budget)
        for k in range(self.n_scores):
            of_k = np.flatnonzero(self._score == k)
            before = int(np.searchsorted(of_k, old))
            part = self.working.gram_rows(own, self._score[of_k], self._column[of_k], before, budget)
            rows[np.ix_(of_k[before:] - old, of_k)] += part
        return rows

    def _eliminate(self) -> None:
        f = self.free
        if f == 0:
            self.gram = self._whole
            return
        # The scores of a softmax may all move by the same amount: the inverse is a pseudo-inverse.
        self._inverse = np.linalg.pinv(self._whole[:f, :f], rcond=1e-12, hermitian=True)
        self._cross = self._whole[f:, :f]
        self._pull = self._cross @ self._inverse
        gram = self._whole[f:, f:] - self._pull @ self._cross.T
        gone = np.flatnonzero(gram.diagonal() <= CONSTANT_COLUMN * self._whole.diagonal()[f:])
        gram[gone] = 0.0
        gram[:, gone] = 0.0
        self.gram = gram

    def reduced_slope(self, slope: Array, slope_b: Array) -> Array:
        """Return the slope in the coordinates with the intercepts at their best."""
        return slope - self._pull @ slope_b if self.free else slope.copy()

    def intercept_step(self, slope_b: Array, step: Array) -> Array:
        """Return the best change of the intercepts for a change of the coordinates."""
        if self.free == 0:
            return np.zeros(self.n_scores)
        return np.asarray(self._inverse @ slope_b - step @ self._pull)
