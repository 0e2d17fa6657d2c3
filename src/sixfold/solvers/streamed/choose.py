"""Which solver minimises a problem by passes alone."""

from __future__ import annotations

from sixfold.budget import Budget
from sixfold.data.blocks import Blocks
from sixfold.errors import IncompatibleError
from sixfold.risk.problem import Problem
from sixfold.solvers.base import Solution
from sixfold.solvers.streamed.hinge import hinge_objection, solve_hinge
from sixfold.solvers.streamed.least_squares import least_squares_objection, solve_least_squares
from sixfold.solvers.streamed.proximal_newton import solve_proximal
from sixfold.solvers.streamed.smooth import smooth_objection, solve_smooth

MAX_COLUMNS = 2000  # of which a curvature is divided by in every step
SMOOTH = ("logistic", "squared_hinge", "softmax")


def solve_streamed(problem: Problem, blocks: Blocks, budget: Budget, scores: int) -> Solution:
    """Minimise a problem of rows that can only be reduced; ``scores`` are the classes, where there are some.

    Raises
    ------
    IncompatibleError
        If there is no such solver; names why, and what to use instead.
    """
    name = problem.loss.name
    if name == "squared":
        objection = least_squares_objection(problem, blocks)
    elif name == "hinge":
        objection = hinge_objection(problem)
    elif name in SMOOTH:
        objection = smooth_objection(problem, blocks, scores)
        kinks = problem.penalised and problem.l1 > 0 and not problem.penalty.positive
        if kinks and name != "softmax" and blocks.n_columns < MAX_COLUMNS:
            return solve_proximal(problem, blocks, budget)
    else:
        objection = (
            f"loss={name!r} needs the rows again and again in one process: use one of the losses 'squared', "
            f"'hinge', {', '.join(map(repr, SMOOTH))}, or fit a sample in memory"
        )
    if objection is not None:
        raise IncompatibleError(f"These rows are on a cluster, and {objection}.")
    if name == "squared":
        return solve_least_squares(problem, blocks, budget)
    if name == "hinge":
        return solve_hinge(problem, blocks, budget)
    return solve_smooth(problem, blocks, budget, scores)
