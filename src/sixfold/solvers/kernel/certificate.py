"""How far a kernel machine is from the best one at most.

With finite C the certificate is the duality gap P - D of :mod:`sixfold.solvers.kernel.dual`, judged against
the best constant model, 2 min(sum_{y=+1} U, sum_{y=-1} U). Where the kernel is not known to be positive
semi-definite the same sum says how far the point is from stationary ("kkt"), and bounds nothing.

The hard margin (U infinite) is judged against P itself. What rounding may have done to the objective is part
of the gap: where kernel values are so large that nothing is left of P, nothing is claimed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from sixfold.certificate import Certificate
from sixfold.solvers.kernel.dual import DualProblem, DualSolution

if TYPE_CHECKING:
    from sixfold.solvers.kernel.one_vs_one import Machine


def certify(problem: DualProblem, solution: DualSolution, tol: float) -> Certificate:
    """Return what is known of one machine."""
    state = solution.state
    rounding = (_hard_rounding if problem.box.hard else _soft_rounding)(problem, solution)
    details: dict[str, Any] = {
        "violation": state.violation,
        "dual_objective": state.dual,
        "rounding": solution.rounding,
        "machines": 1,
    }
    scale = state.scale if math.isfinite(state.scale) else 1.0  # no plane separates the classes yet
    return _certificate([solution], state.primal, state.gap + rounding, scale, tol, details, rounding)


def certify_all(machines: Iterable[Machine], tol: float) -> Certificate:
    """Return what is known of all machines together: their objectives, gaps and scales add up."""
    machines = list(machines)
    parts = [machine.certificate for machine in machines]
    if len(parts) == 1:
        return parts[0]
    details: dict[str, Any] = {
        "violation": max(part.details["violation"] for part in parts),
        "dual_objective": sum(part.details["dual_objective"] for part in parts),
        "rounding": max(part.details["rounding"] for part in parts),
        "machines": len(parts),
    }
    objective, gap, scale, rounding = (
        sum(getattr(part, name) for part in parts) for name in ("objective", "gap", "scale", "rounding")
    )
    solutions = [machine.solution for machine in machines]
    return _certificate(solutions, objective, gap, scale, tol, details, rounding)


def _certificate(
    solutions: list[DualSolution],
    objective: float,
    gap: float,
    scale: float,
    tol: float,
    details: dict[str, Any],
    rounding: float,
) -> Certificate:
    known = {solution.definite for solution in solutions}
    if known == {True}:
        return Certificate("duality gap", objective, gap, scale, tol, details, rounding=rounding)
    relative = gap / scale if scale > 0 else gap
    kernel = "is not" if False in known else "is not known to be"
    claim = f"stationary within {relative:.1g}; the kernel {kernel} positive semi-definite"
    return Certificate("kkt", objective, gap, scale, tol, details, claim, rounding=rounding)


def _soft_rounding(problem: DualProblem, solution: DualSolution) -> float:
    """Return how far rounding may have moved the objective."""
    y, upper, alpha, scores = problem.y, problem.upper, solution.alpha, solution.scores
    short = 1.0 - y * (scores + solution.intercept)
    # A row outside the margin by less than the rounding may be inside. Errors of rows have different signs:
    # of 20,000 rows with C=100 the sum of their sizes is 28, and the objective is off by 0.004.
    touched = upper * (short > -solution.rounding) + 0.5 * alpha
    error = 2.0 * solution.rounding * math.sqrt(touched.dot(touched))
    return error + 1e-13 * abs(solution.state.primal)


def _hard_rounding(problem: DualProblem, solution: DualSolution) -> float:
    y, alpha, scores, state = problem.y, solution.alpha, solution.scores, solution.state
    if math.isinf(state.gap):
        return 0.0
    least = float(np.min(y * (scores + state.intercept)))
    relative = solution.rounding * (2.0 / least + float(alpha.sum()) / state.square)
    return (relative + 1e-13) * state.primal
