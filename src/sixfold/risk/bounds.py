"""How far a model is from the best one at most, in exact arithmetic.

For every u in the domain of the loss with sum_i q_i u_i z_i = 0, where z are the columns without penalty (the
ones of the intercept, and all of X where nothing is penalised), Fenchel's inequality gives

    R(w, b) - min R  <=  sum_i q_i FY_loss(s_i, u_i) + FY_penalty(w, -sum_i q_i u_i x_i)

where FY(s, u) = f(s) + f*(u) - s u >= 0. The terms vanish at the optimum for u_i = loss'(s_i), so that
gradient, or what a solver knows better, is the candidate. In floating point it is balanced but for
rounding, and every sum is off by some of it. What holds in exact arithmetic is bounded in two parts: how far
the objective is above the computed one (:mod:`sixfold.risk.point`), and how far the bound is below
(:mod:`sixfold.risk.candidate`).

Columns that depend on others need no condition of their own where they do so exactly. Where they differ in
their last bits (:mod:`sixfold.risk.rank`), the bound is one on models that treat them as dependent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sixfold.data.blocks import Blocks
from sixfold.risk.candidate import Candidate
from sixfold.risk.penalties import Penalty
from sixfold.risk.point import Point
from sixfold.risk.rounding import U

if TYPE_CHECKING:
    from sixfold.risk.problem import Problem

Array = NDArray[Any]

# Of the excess: whoever balances classes in another order, or other rows or columns, ends elsewhere.
OTHER_ORDER, ELSEWHERE = 1e-3, 0.02


@dataclass(frozen=True)
class Bound:
    """What is known of each target (of all classes together), as computed and what rounding may have done.

    Attributes
    ----------
    objective, excess : ndarray
        R and R - (a lower bound), as computed.
    up, down : ndarray
        How far R may be above the computed one, and the lower bound below.
    dependent : ndarray of int
        Columns that count as dependent though they differ in their last bits.
    u : ndarray or None
        The dual point behind the bound.
    """

    objective: Array
    excess: Array
    up: Array
    down: Array
    dependent: Array
    u: Array | None = None

    @property
    def gap(self) -> float:
        """The gap as computed; no loss is negative, so that zero bounds every objective."""
        return float(np.minimum(self.objective, self.excess).sum())

    @cached_property
    def upper(self) -> float:
        """What the objective is at most."""
        return float((self.objective + self.up).sum())

    @cached_property
    def certain_gap(self) -> float:
        """The distance from there to what no model is below."""
        gaps = np.minimum(self.objective + self.up, self.excess + self.up + self.down)
        # Whoever subtracts it from that rounds again.
        return min(float(gaps.sum()) + 8.0 * U * self.upper, self.upper)


def objective(problem: Problem, w: Array, b: Array, blocks: Blocks) -> tuple[float, float]:
    """Return R(w, b) as computed, and by how much more it may be."""
    point = Point(problem, w, b, blocks, doubled=False)
    return float((point.loss + point.penalty).sum()), float(point.rounding().sum())


def bound(
    problem: Problem,
    w: Array,
    b: Array,
    blocks: Blocks,
    dual: Array | None = None,
    rounding: bool = True,
    doubled: bool = False,
    tied: bool = False,
    within: float = math.inf,
) -> Bound:
    """Return the bound at a model; without ``rounding`` only what is computed.

    ``doubled`` asks for sums in doubled precision. ``tied`` asks for slopes that balance the penalty
    exactly: where it is next to nothing, what rounding leaves of them would cost |E|^2 / (2 l2), or u would
    have to be shorter by |E| / l1. It is one on models whose coefficients are ``within`` so much.
    """
    point = Point(problem, w, b, blocks, doubled)
    total = point.loss + point.penalty
    none = np.arange(0)
    if not np.isfinite(total).all():
        bad = np.full_like(total, np.inf)
        nothing = np.zeros_like(total)
        return Bound(np.where(np.isfinite(total), total, np.inf), bad, nothing, nothing, none)
    candidate = Candidate(point, dual, rounding, tied or not problem.penalised, within)
    excess, down = candidate.excess(rounding)
    if rounding and (point.classes or candidate.fell or tied):
        down = down + (ELSEWHERE if candidate.fell or tied else OTHER_ORDER) * excess
    up = point.rounding() if rounding else np.zeros_like(total)
    dependent = none if problem.penalised or math.isfinite(within) else candidate.dependent
    return Bound(total, excess, up, down, dependent, candidate.u)


def bound_without_penalty(
    problem: Problem, known: Bound, w: Array, b: Array, blocks: Blocks, dual: Array | None, doubled: bool
) -> Bound:
    """Return the bound that leaves the penalty out, given another at the same model.

    No penalty is negative, so that no model has less than the least loss alone: true always, and close
    where the model's is next to nothing, which no slope could balance but for rounding. The best model has at
    most the objective as its penalty. So columns that differ from others in their last digits only cannot
    make much of these.
    """
    alone = replace(problem, penalty=Penalty(None, None), alpha=0.0)
    most = known.upper / problem.l1 if problem.l1 > 0 else math.inf
    within = min(most, math.sqrt(2.0 * known.upper / problem.l2) if problem.l2 > 0 else math.inf)
    free = bound(alone, w, b, blocks, dual, doubled=doubled, within=within * (1.0 + 1e-9))
    parts = [w] if known.objective.size == 1 else [w[:, [k]] for k in range(known.objective.size)]
    penalty = np.array([problem.penalty_value(part) for part in parts]) * (1.0 + (w.shape[0] + 8) * U)
    excess = free.excess + penalty
    down = free.down + ELSEWHERE * excess
    return replace(free, objective=known.objective, up=known.up, excess=excess, down=down)
