"""Targets that are fitted by themselves, because each has a penalty or a tolerance of its own.

    minimise  sum_k R_k(w_k, b_k)        over groups k of targets, one problem after the other

The certificate is that of the sum, and is checked group by group.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.certificate import Certificate, join_certificates
from sixfold.data.checks import TrainingData
from sixfold.learners.linear.model import LinearModel, LinearRegressor
from sixfold.risk.problem import Problem
from sixfold.solvers.base import Solution
from sixfold.solvers.l1.proximal_newton import PathMemory
from sixfold.solvers.smooth.descent import Model
from sixfold.solvers.threads import thread_limit
from sixfold.verify.recomputed import Recomputed, join_recomputed

if TYPE_CHECKING:
    from sixfold.verify.linear import LinearClaim

Array = NDArray[Any]


@dataclass(frozen=True)
class SeparateSolutions(Solution):
    """The solutions of several groups of targets as one; ``parts`` are those of each."""

    parts: tuple[Solution, ...] = ()


class SeparateTargets(LinearModel):
    """A linear model that minimises one problem for each group of its targets."""

    @abstractmethod
    def _groups(self, n_targets: int) -> list[Array]:
        """Return the numbers of the targets that are fitted together."""

    def _solve(
        self,
        problem: Problem,
        data: TrainingData,
        budget: Budget,
        start: Model | None = None,
        memory: PathMemory | None = None,
    ) -> Solution:
        groups = self._groups(data.y.shape[1])
        if len(groups) == 1:
            return super()._solve(_of_group(problem, groups[0]), data, budget, start, memory)
        found: list[Solution] = []
        for group in groups:
            budget.new_part()
            before, own = len(budget.history), replace(data, y=np.ascontiguousarray(data.y[:, group]))
            near = None if start is None else (start[0][:, group], start[1][group])
            part = super()._solve(_of_group(problem, group), own, budget, near)
            found.append(replace(part, n_iter=max(len(budget.history) - before, 1)))
        return _joined(found, groups)

    def _recompute(self, claimed: Certificate, X: Any, y: Any, sample_weight: Any) -> Recomputed:
        from sixfold.verify.linear import recompute

        claim = self._claim(X, y, sample_weight)
        groups = self._groups(claim.b.size)
        share = replace(claimed, gap=claimed.gap / len(groups), rounding=claimed.rounding / len(groups))
        with thread_limit(self.n_jobs, values=math.prod(claim.X.shape)):
            return join_recomputed([recompute(_claim_of_group(claim, group), share) for group in groups])


class SeparateRegressor(SeparateTargets, LinearRegressor):
    """A linear model of numbers, whose attributes have the shapes that scikit-learn's penalised ones have."""

    def _set_fitted(self, solution: Solution, data: TrainingData, budget: Budget) -> None:
        super()._set_fitted(solution, data, budget)
        if data.y.shape[1] == 1:  # one target has one row of coefficients, whichever way it was given
            self.coef_ = self.coef_.ravel()
        if not self.fit_intercept:
            self.intercept_ = 0.0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _of_group(problem: Problem, group: Array) -> Problem:
    """Return the problem of targets that share a penalty."""
    shared = _shared(problem.alpha, group)
    return problem if type(problem.alpha) is float else replace(problem, alpha=shared)


def _claim_of_group(claim: LinearClaim, group: Array) -> LinearClaim:
    return replace(
        claim,
        y=claim.y[:, group],
        w=claim.w[:, group],
        b=claim.b[group],
        l1=_shared(claim.l1, group),
        l2=_shared(claim.l2, group),
        dual=None if claim.dual is None else claim.dual[:, group],
    )


def _shared(value: Any, group: Array) -> float:
    """Return the number that all targets have, or that each of the group has."""
    return float(value if np.ndim(value) == 0 else value[group[0]])


def _joined(found: list[Solution], groups: list[Array]) -> SeparateSolutions:
    """Return the solutions of all groups, with the targets in their order."""
    order = np.argsort(np.concatenate(groups))
    duals = [part.dual for part in found if part.dual is not None]
    return SeparateSolutions(
        np.hstack([part.w for part in found])[:, order],
        np.concatenate([part.b for part in found])[order],
        join_certificates([part.certificate for part in found]),
        ", ".join(dict.fromkeys(part.solver for part in found)),
        sum(part.n_iter for part in found),
        np.hstack(duals)[:, order] if len(duals) == len(found) else None,
        parts=tuple(found),
    )
