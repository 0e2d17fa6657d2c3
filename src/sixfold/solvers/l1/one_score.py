"""One score under absolute values on sparse, wide or small tables: one native call from start to end.

    minimise    R(w, b) = sum_i q_i loss(w.x_i + b, y_i) + l1 |w|_1 + l2 |w|^2 / 2        (optionally w >= 0)

for losses of labels -1 and +1 that have a curvature, by Newton steps on working sets of columns, whose models
are minimised by coordinate descent and conjugate gradients (native/linear/l1/proximal_newton.cpp). It is what
:mod:`sixfold.solvers.l1.proximal_newton` does, without a call from Python in between: a sparse table of 2,000
x 2,000 with 20 entries a row took 16 ms, of which 2 were arithmetic. Where columns nearly depend on others
that crawls, and matrices of second derivatives have to help: it ends early then.

The native loop ends where the gap is estimated to be small enough. Where the bound of
:mod:`sixfold.risk.bounds` turns out to be above, it goes on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.data.blocks import Blocks
from sixfold.risk.problem import Problem, normalized_weights
from sixfold.solvers.l1.columns import SparseColumns
from sixfold.solvers.passes import LOSS_CODES

Array = NDArray[Any]

DONE = 0  # how the native loop ends where it is done
MOST_COPIED = 1 << 22  # numbers of a table in row order, of which there is a copy in column order
MOST_ROWS = 2048  # of a dense table: twice as many columns are kept, scaled, in 64 MB
# Beyond, a dense table with few columns takes passes over rows (solvers/l1/few_columns.py), on all threads.
FEW_COLUMNS, FEW_VALUES = 32, 1 << 15
SHIFT_ROWS = 128  # that a rough mean of each column is taken from


class OneScore:
    """One minimisation, which can be resumed."""

    def __init__(self, problem: Problem, blocks: Blocks, budget: Budget) -> None:
        self.problem, self.budget = problem, budget
        whole = blocks.whole()
        X = whole.X
        self.y = np.ascontiguousarray(whole.y[:, 0], dtype=np.float64)
        self.q = normalized_weights(whole, blocks)
        self.scale = problem.constant_objective(blocks)
        self.w, self.c, self.shift = np.zeros(X.shape[1]), 0.0, np.zeros(X.shape[1])
        self._table: tuple[Array, ...]
        if sp.issparse(X):
            columns = SparseColumns(X, self.q, problem.fit_intercept).X
            self._table = columns.data, columns.indices, columns.indptr
            self._search = core.sparse_proximal_newton
            return
        if problem.fit_intercept:
            rough = X[:: max(X.shape[0] // SHIFT_ROWS, 1)]
            self.shift = np.add.reduce(rough, axis=0, dtype=np.float64) / len(rough)
        self._table = np.asfortranarray(X), self.shift
        self._search = core.proximal_newton

    @staticmethod
    def suits(problem: Problem, X: Any, n_scores: int) -> bool:
        """Return whether the problem is one of these."""
        loss = problem.loss
        if not (n_scores == 1 and loss.labels == "sign" and loss.smooth and problem.penalised):
            return False
        if sp.issparse(X):
            return True
        rows, columns = X.shape
        small = columns <= FEW_COLUMNS and X.size <= FEW_VALUES
        wide = rows <= min(MOST_ROWS, columns) and (X.strides[0] == X.itemsize or X.size <= MOST_COPIED)
        return bool(small or wide)

    @property
    def model(self) -> tuple[Array, Array]:
        """Return w of shape (columns, 1) and b of shape (1,)."""
        return self.w[:, None], np.array([self.c - self.shift @ self.w])

    def run(self, rest: float) -> bool:
        """Go on until ``rest`` of the tolerance is left; true if it got there."""
        problem, budget = self.problem, self.budget
        end, self.c = self._search(
            *self._table,
            self.y,
            self.q,
            LOSS_CODES.index(problem.loss.name),
            problem.l1,
            problem.l2,
            problem.penalty.positive,
            problem.fit_intercept,
            rest * budget.tol * self.scale,
            self.w,
            self.c,
            self._report,
            budget.seconds_left,
            budget.flag,
        )
        return bool(end == DONE)

    def _report(self, objective: float, gap: float) -> bool:
        """Note a pass over all columns, and return whether the work has to end."""
        self.budget.record(objective, gap, self.scale)
        return self.budget.exhausted()
