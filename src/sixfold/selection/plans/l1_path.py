"""Least squares with absolute values in the penalty: all of a path of alphas on one fold.

    minimise    |X w + b - y|^2 / (2 n) + alpha (rho |w|_1 + (1 - rho) |w|^2 / 2)

The path of one mixture rho is walked from the largest alpha to the smallest (see
:mod:`sixfold.solvers.l1.lasso_path`); the Gram matrix of the columns worked on is shared by all of it. A
model is its answers for the held-out rows, and the gap that one pass over the columns proves; the learner
with its certificate is made of it where one is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import BudgetExhausted
from sixfold.learners.linear.separate_targets import SeparateTargets
from sixfold.risk.problem import Problem
from sixfold.selection.plans.base import Fold
from sixfold.selection.plans.linear import PenaltyPlan, Walk
from sixfold.solvers.l1.lasso_path import LassoPath
from sixfold.solvers.l1.score_path import PathMinimum

Array = NDArray[Any]

WALKED_BY = ("auto", "coordinate")  # solvers
FEW = 4  # times so many weights are less than there are columns


class LassoPlan(PenaltyPlan):
    """All alphas of Lasso, ElasticNet, or LinearRegression with one of their penalties, on one fold."""

    parameters: ClassVar[tuple[str, ...]] = ("alpha", "l1_ratio")
    simpler: ClassVar[Mapping[str, int]] = {"alpha": 1, "l1_ratio": 1}

    def _walk(self, fold: Fold, checked: Any) -> Walk:
        return LassoWalk(fold, checked)


class LassoWalk(Walk):
    """The models of one fold, one alpha after the other; targets by themselves."""

    def __init__(self, fold: Fold, checked: Any) -> None:
        super().__init__(fold, checked)
        self.paths: list[LassoPath] = []
        self.kind: Any = None  # the penalty that the paths are of
        self.given_up: Any = None  # one whose path has ended short
        self._columns: Array | None = None  # of the held-out rows

    def fit(self, model: Any) -> tuple[Any, float]:
        """Return the answers of the fitted model and the relative gap, or the model itself."""
        found = self.minima(model)
        if found is None:
            self.fit_learner(model, partial(model._solve))
            return model, model._certificate.relative_gap
        w, b = np.column_stack([one.w for one in found]), np.array([one.b for one in found])
        rounds, scale = sum(one.rounds for one in found), sum(one.scale for one in found)
        sketch = self.sketch(model, (w, b, rounds))
        answers = {"predict": self._scores(sketch.coef_) + sketch.intercept_}
        gap = sum(one.gap for one in found) / scale if scale > 0 else 0.0
        return self.answered(sketch, model, answers, (w, b, rounds)), gap

    def _scores(self, coef: Array) -> Array:
        """Return w.x for the held-out rows, from the columns with a weight where these are few."""
        if coef.ndim > 1 or not isinstance(self.rows, np.ndarray):
            return np.asarray(self.rows @ coef.T)
        if self._columns is None:
            self._columns = np.ascontiguousarray(self.rows.T)
        used = np.flatnonzero(coef)
        if FEW * len(used) > coef.size:
            return np.asarray(self.rows @ coef)
        return np.asarray(coef[used] @ self._columns[used])

    def minima(self, model: Any) -> list[PathMinimum] | None:
        """Return the minimum of every target; None where a path is not the way, or did not get there."""
        problem: Problem = model._state_problem(self.data)
        if model.solver not in WALKED_BY or problem.l1 == 0 or problem.loss.name != "squared":
            return None
        if isinstance(model, SeparateTargets) and self.data.y.shape[1] > 1:  # which have a gap each
            return None
        found: list[PathMinimum | None] = []
        kind = (problem.penalty, problem.fit_intercept)
        if kind == self.given_up:
            return None
        with suppress(BudgetExhausted), self.budget(model) as budget:
            if self.kind != kind:
                self.data.require_computable()
                self.paths = [
                    LassoPath(problem, self.data.X, y, self.data.weight, budget) for y in self.data.y.T
                ]
                self.kind = kind
            found = [path.solve(problem, budget) for path in self.paths]
        minima = [one for one in found if one is not None]
        if len(minima) == self.data.y.shape[1]:
            return minima
        self.kind, self.given_up = None, kind
        return None
