"""A linear model of rows on a cluster: the problem of a fit in memory, minimised by passes alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from sixfold.budget import Budget, BudgetExhausted
from sixfold.errors import IncompatibleError, InputError
from sixfold.learners.distributed import (
    LEARNERS,
    DistributedData,
    check_on_cluster,
    fit_table,
    refuse_cluster,
)
from sixfold.learners.linear.likelihood_limit import with_note
from sixfold.learners.linear.logistic_regression import SEPARATED_NOTE
from sixfold.risk.problem import Problem
from sixfold.solvers.base import Solution
from sixfold.solvers.least_squares.factors import cholesky_factor, factor_of_moments
from sixfold.solvers.least_squares.moments import Moments, block_moments
from sixfold.solvers.least_squares.slopes import SecondMoments
from sixfold.solvers.streamed.choose import solve_streamed

Model = TypeVar("Model")

NO_SUMMARY = "The rows were on a cluster, where what a summary is made of is not kept"
SOLVERS = ("auto", "direct", "newton", "coordinate")
MOST_NAMED = 10  # columns
SETTLED_MOVE = 1e-3  # the change of a typical score in the last step, below which iterates have come to rest
NO_REST = (
    "Newton's method comes to no rest: without a penalty the classes may be separated, so that the "
    "likelihood has "
    "no maximum. Add a penalty (a finite C), or fit a sample in memory, which names the columns that do it."
)


def fit_on_cluster(model: Model, X: Any, y: Any, sample_weight: Any, **starts: Any) -> Model:
    """Fit a model to rows on a cluster; its attributes are those of a fit in memory.

    Raises
    ------
    InputError
        If the learner needs all rows in one process, or they cannot be used as given.
    ClusterError
        If the scheduler or the client is lost; the model is as it was.
    """
    learner: Any = model
    with learner._unchanged_on_failure():
        _require_able(learner)
        learner._check_parameters()
        data = check_on_cluster(learner, X, y, sample_weight, lambda: learner._loss().labels)
        online = hasattr(learner, "_solve_on_cluster")
        solve = partial(_watched, learner._solve_on_cluster, **starts) if online else partial(_solve, learner)
        found = fit_table(learner, data, solve)
    learner._warn(*found)
    return model


def _watched(
    solve: Callable[..., Solution], problem: Problem, data: DistributedData, budget: Budget, **starts: Any
) -> Solution:
    """Return the solution of a solver whose passes Ctrl-C ends.

    What comes before the first model is computed to its end, whatever the time limit: a stopped fit leaves a
    model. Passes that make it better are ended by the limit; solvers see to that.
    """
    blocks = data.blocks()

    def watch() -> None:
        if budget.interrupted:
            raise BudgetExhausted

    blocks.watch = watch
    try:
        return solve(problem, data, budget, **starts)
    except BudgetExhausted:
        raise KeyboardInterrupt from None
    finally:
        blocks.watch = None


def _require_able(model: Any) -> None:
    """Raise an :class:`InputError` unless this learner fits rows that can only be reduced."""
    kinds = {kind.__name__ for kind in type(model).__mro__}
    if not kinds.intersection(LEARNERS):
        refuse_cluster(model)
    if getattr(model, "positive", False) and getattr(model, "penalty", None) is None:
        raise InputError(
            "positive=True without a penalty needs all rows in one process, and these are on a cluster. Use "
            "penalty='l2' with a small alpha, or fit a sample."
        )
    if getattr(model, "warm_start", False):
        raise InputError("warm_start=True starts from a model in memory; on a cluster leave it False.")
    if type(model).__name__ == "LinearSVC" and np.inf == model.C:
        raise InputError("C=inf asks for a hard margin, which needs all rows in one process. Use a finite C.")


def _solve(model: Any, problem: Problem, data: DistributedData, budget: Budget) -> Solution:
    """Return the solution of a linear model."""
    if model._solver_name() not in SOLVERS:
        raise IncompatibleError(
            f"solver={model.solver!r} needs all rows in one process, and these are on a cluster. Use "
            "solver='auto'."
        )
    if np.ndim(problem.alpha):
        raise InputError("One alpha a target needs a fit a target on a cluster. Pass one number.")
    if data.y.shape[1] > 1 and problem.l1 > 0:
        raise InputError(
            f"y has {data.y.shape[1]} columns, and with absolute values in the penalty each is a problem of "
            "its "
            "own: on a cluster fit one model for each."
        )
    problem = replace(problem, alpha=float(problem.alpha))

    def solve(problem: Problem, data: DistributedData, budget: Budget) -> Solution:
        scores = model.classes_.size if problem.loss.labels == "class" else 1
        return solve_streamed(problem, data.blocks(), budget, scores)

    solution = _watched(solve, problem, data, budget)
    if problem.loss.labels == "real" or problem.loss.name == "squared":
        return model._postprocess(solution, problem, data, budget)
    for name in ("_likelihood", "_no_summary", "support_"):
        model.__dict__.pop(name, None)
    if not problem.penalised:
        _require_minimum(problem, solution, data, budget)
        if hasattr(model, "summary"):
            model._no_summary = NO_SUMMARY
    elif solution.wrong == 0 and problem.loss.name in ("logistic", "softmax"):
        solution = with_note(solution, SEPARATED_NOTE)
    if type(model).__name__ == "LinearSVC":
        with np.errstate(divide="ignore"):
            margin = 1.0 / np.linalg.norm(solution.w, axis=0)
        model.margin_ = float(margin[0]) if margin.size == 1 else margin
    return solution


def _require_minimum(problem: Problem, solution: Solution, data: DistributedData, budget: Budget) -> None:
    """Raise an :class:`InputError` where a loss without penalty has no minimum, or several."""
    blocks = data.blocks()
    if budget.stopped_by is not None:
        return
    moments = blocks.reduce(partial(block_moments, flag=np.zeros_like(budget.flag)), Moments.__add__)
    second = SecondMoments.of(problem, moments)
    factor = cholesky_factor(second)
    if factor is None or not factor.lost <= 0.1:
        factor = factor_of_moments(second)
    if factor.dependent.size:
        names = ", ".join(repr(data.names[column]) for column in factor.dependent[:MOST_NAMED])
        raise InputError(
            f"Columns follow from others ({names}), so that without a penalty there are several best "
            "models. Leave "
            "them out, or add a penalty (a finite C)."
        )
    if solution.wrong == 0 or solution.last_move > SETTLED_MOVE or not solution.certificate.converged:
        raise InputError(NO_REST)
