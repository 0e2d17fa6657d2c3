"""Stochastic passes for one target until they no longer improve the model: scikit-learn's rule of stopping.

    stop when  value_t > min_{s < t} value_s - tol  for ``patience`` passes in a row

where value_t is the objective of the last iterate after pass t, or minus its score on rows that are held
out. The adaptive schedule then makes a constant step five times smaller and goes on, until it is tiny.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.solvers.first_order.sgd_updates import SGDState, StepRule
from sixfold.solvers.first_order.stochastic import Passes
from sixfold.solvers.passes import objective

Array = NDArray[Any]

STEP_DIVISOR = 5.0  # of the adaptive schedule


@dataclass
class Epochs:
    """Passes over the rows of one target.

    Attributes
    ----------
    passes : Passes
    state : SGDState
    rule : StepRule
    tol : float or None
        The least gain that counts; None never stops.
    patience : int
        Passes without gain after which to stop.
    smallest_step : float
        A step above this is made smaller in place of stopping; infinite for steps that are not.
    score : callable or None
        Says how good a model (w, b) is; None judges by the objective.
    objective : float
        That after the last pass.
    finished : bool
    """

    passes: Passes
    state: SGDState
    rule: StepRule
    tol: float | None
    patience: int
    smallest_step: float = math.inf
    score: Callable[[Array, Array], float] | None = None
    objective: float = math.inf
    finished: bool = False
    _best: float = math.inf
    _idle: int = 0

    def advance(self) -> None:
        """Make one pass, unless it is finished; what the budget left of a pass counts as well."""
        if self.finished:
            return
        self.passes.make(self.state, self.rule)
        w, b = self.state.w, self.state.c
        self.objective = objective(self.passes.problem, w, b, self.passes.blocks, Budget())
        value = self.objective if self.score is None else -self.score(w, b)
        self._idle = self._idle + 1 if self.tol is not None and value > self._best - self.tol else 0
        self._best = min(self._best, value)
        if self._idle < self.patience:
            return
        if self.rule.eta0 > self.smallest_step:
            self.rule, self._idle = replace(self.rule, eta0=self.rule.eta0 / STEP_DIVISOR), 0
        else:
            self.finished = True
