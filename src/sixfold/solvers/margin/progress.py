"""What the targets of a margin problem have reached, fitted one after the other, and what gap each may keep.

tolerance of target k = tol * scale * (objective of k at zero weights) / (that of all targets)
"""

from __future__ import annotations

import numpy as np

from sixfold.budget import Budget
from sixfold.data.blocks import Blocks
from sixfold.risk.problem import Problem, normalized_weights


class MarginProgress:
    """The objectives and gaps of all targets: those not begun are at zero weights.

    Attributes
    ----------
    scale : float
        The objective of the constant model, all targets together.
    """

    def __init__(self, problem: Problem, blocks: Blocks, budget: Budget) -> None:
        self.budget = budget
        self.objective = np.zeros(blocks.n_targets)
        for block in blocks:
            y, q = np.asarray(block.y, dtype=np.float64), normalized_weights(block, blocks)
            self.objective += q @ problem.loss.value(np.zeros_like(y), y)
        self.gap = self.objective.copy()
        real = problem.fit_intercept and problem.loss.labels == "real"
        self.scale = problem.constant_objective(blocks) if real else float(self.objective.sum())
        self._share = self.objective / max(float(self.objective.sum()), 1e-300)

    def tolerance(self, target: int) -> float:
        """Return the gap that this target may keep: its part of what all may keep together."""
        return float(self.budget.tol * self.scale * self._share[target])

    def record(self, target: int, objective: float, gap: float) -> None:
        """Note an iteration of this target."""
        self.record_all(target, [[objective, gap]])

    def record_all(self, target: int, steps: list[list[float]]) -> None:
        """Note iterations of this target, objective and gap of each, one after the other."""
        if not steps:
            return
        # Sums over the targets at every step took a tenth of a fit of 100 x 4.
        self.objective[target] = self.gap[target] = 0.0
        objectives, gaps = float(self.objective.sum()), float(self.gap.sum())
        for objective, gap in steps:
            self.budget.record(objectives + objective, gaps + gap, self.scale)
        self.objective[target], self.gap[target] = steps[-1]
