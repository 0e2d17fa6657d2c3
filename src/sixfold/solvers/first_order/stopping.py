"""When gradient descent and its stochastic relatives stop, and what is certified of the best model.

Every pass over the data is one record of the budget, with the exact objective R(w, b) after it. A bound on
min R costs several passes (without penalty a factorisation), so it is computed only

- after a pass that gained less than tol * scale: before that the tolerance is certainly not met, and
- at most once in as many passes as it costs, and in a tenth of those made.

The gap on record is that of the best model so far: its objective minus the best lower bound so far, the
first of which is 0, as no loss or penalty is negative. The best model of all passes is what is returned, and
its certificate is computed from it and the data alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.certificate import Certificate
from sixfold.data.blocks import Blocks
from sixfold.risk.problem import Problem
from sixfold.solvers.base import OUT_OF_TIME, too_late_to_bound
from sixfold.solvers.passes import objective

Array = NDArray[Any]

EXPLODED = 100.0  # times the objective at the start: what has grown so far does not come back


@dataclass
class FirstOrderProgress:
    """The best model so far, the best lower bound, and the word on whether to go on."""

    problem: Problem
    blocks: Blocks
    budget: Budget
    scale: float  # objective of the constant model
    w: Array
    b: Array
    objective: float
    lower: float = 0.0
    bounds: bool = True  # whether lower bounds are wanted at all
    notes: list[str] = field(default_factory=list)
    _gap: float | None = None  # of the best model, where it was computed
    _previous: float = math.inf
    _checked: int = 0  # the pass after which a bound was last computed
    _milestone: float = math.inf
    _milestone_pass: int = 0

    @classmethod
    def begin(
        cls, problem: Problem, blocks: Blocks, budget: Budget, w: Array, b: Array
    ) -> FirstOrderProgress:
        """Return the progress of a solver that starts at the constant model, w = 0."""
        at_start = at_zero = problem.constant_loss(b, blocks)
        if b.any():
            at_zero = problem.constant_loss(0.0 * b, blocks)
        # The last term is what rounding leaves of a constant target.
        return cls(problem, blocks, budget, at_start + 1e-30 * at_zero, w, b, at_start)

    @property
    def passes(self) -> int:
        """How many passes are on record."""
        return len(self.budget.history)

    def record(self, w: Array, b: Array, value: float) -> bool:
        """Note the model after one pass; true when the solver should stop."""
        if value < self.objective:
            self.w, self.b, self.objective, self._gap = w, b, value, None
        if self.objective < self._milestone - 0.1 * self.budget.tol * self.scale:
            self._milestone, self._milestone_pass = self.objective, self.passes + 1
        gained = self._previous - value
        self._previous = value
        since = self.passes + 1 - self._checked
        due = since >= max(self._bound_passes(), self.passes // 10)
        # On the way a bound serves to stop, which none does for a tolerance of 0; the certificate has one.
        wanted = self.bounds and self.budget.tol > 0.0
        if wanted and due and gained <= self.budget.tol * self.scale:
            self._checked = self.passes + 1
            self.lower = max(self.lower, self.objective - self.best_gap())
        gap = max(self.objective - self.lower, 0.0)
        return self.budget.record(value, gap, self.scale)

    def best_gap(self) -> float:
        """Return a bound on what the best model so far can be improved by."""
        if self._gap is None:
            with np.errstate(all="ignore"):
                self._gap = min(self.objective, self.problem.gap(self.w, self.b, self.blocks))
        return self._gap

    def stalled(self, passes: int) -> bool:
        """Return whether the last so many passes gained less than a tenth of the tolerance."""
        return self.passes - self._milestone_pass >= passes

    def stop(self, why: str, note: str) -> None:
        """End the work for a reason of the solver's own."""
        self.budget.stopped_by = self.budget.stopped_by or why
        self.notes.append(note)

    def certificate(self, **details: Any) -> Certificate:
        """Return what is known of the best model.

        When time is up and the bound would take long, the gap is the objective itself: true, as nothing is
        negative, and free.
        """
        self._round()
        if too_late_to_bound(self.budget, self._bound_work()):
            self.notes.append(OUT_OF_TIME)
            return self.problem.certify_zero(
                self.w, self.b, self.blocks, self.scale, self.budget.tol, tuple(self.notes)
            )
        with np.errstate(all="ignore"):
            found = self.problem.certify("duality gap", self.w, self.b, self.blocks, self.budget.tol)
        return replace(found, details=details, notes=(*found.notes, *self.notes))

    def _round(self) -> None:
        """Turn the best model into what its learner keeps, in the precision of the data."""
        if self.blocks.dtype != np.float64:
            self.w, self.b = self.blocks.rounded(self.w), self.blocks.rounded(self.b)
            self.objective = objective(self.problem, self.w, self.b, self.blocks, Budget())
            self._gap = None

    def _bound_passes(self) -> float:
        dense = not self.problem.penalised and not self.blocks.sparse
        return 5 + (self.blocks.n_columns // 10 if dense else 0)

    def _bound_work(self) -> float:
        width = self.blocks.n_columns
        rows = self.blocks.n_rows * (min(width, 100) if self.blocks.sparse else width)
        return float(rows * (8 if self.problem.penalised else max(width, 8)))


def diverged(progress: FirstOrderProgress, value: float, start: float, eta: float) -> bool:
    """Note it and return True where the objective has left all bounds."""
    if value <= EXPLODED * max(start, progress.scale):
        return False
    progress.stop(
        "divergence",
        f"the objective grew without bound: the step eta0={eta:.3g} is too large, try {eta / 10:.1g} "
        "or leave it None",
    )
    return True
