"""What a solver is, how one is chosen, and who goes on where it ends short of the tolerance.

A solver is a class with

    name       what the user writes in ``solver=``
    needs      the methods it asks of the loss (``gradient``, ``curvature``, ...)
    objection(problem)         why it cannot minimise this problem, or None
    solve(problem, blocks, budget) -> Solution

:mod:`sixfold.solvers.registry` lists them in the order in which ``solver="auto"`` would rather use them: the
first that has no objection to the problem and says it ``suits`` the data is taken. Where it ends without
having converged although the budget is not used up, those further down the list that :class:`Rescuer` makes
one of go on from its point, one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar, Protocol, runtime_checkable

from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.certificate import Certificate
from sixfold.data.blocks import Blocks
from sixfold.data.column_means import ColumnMeans
from sixfold.errors import IncompatibleError, check_option
from sixfold.risk.problem import Problem

Array = NDArray[Any]

BOUND_WORK = 1e9  # multiplications (about 0.2 s) that a bound may still cost when time is up
OUT_OF_TIME = "time was up, so no better bound than zero was computed"


@dataclass(frozen=True)
class Likelihood:
    """What is known at the minimum of the logistic loss without penalty, columns independent beyond doubt.

    Attributes
    ----------
    information : ndarray of shape (columns + 1, columns + 1)
        sum_i weight_i p_i (1 - p_i) z_i z_i', z = (x, 1); without the last row and column if no intercept.
    loss : float
        sum_i weight_i loss(s_i).
    weight, second : float
        The sum of the weights, and the share of the second class.
    largest : float
        The largest |s_i| of a row that counts.
    """

    information: Array
    loss: float
    weight: float
    second: float
    largest: float


@dataclass(frozen=True)
class Solution:
    """What a solver found.

    Attributes
    ----------
    w : ndarray of shape (columns, scores)
    b : ndarray of shape (scores,)
    certificate : Certificate
    solver : str
        What was used, in a word or two.
    n_iter : int
    dual : ndarray of shape (rows, scores) or None
        The dual point behind the certificate, where it is not the slopes of the loss at the model.
    rank : int or None
        The rank of the (centred) table, where a direct solver found it.
    last_move : float
        How far the last step moved the score of any row; infinite where that is not known.
    means : ColumnMeans or None
        Of the columns, where the solver knows them, or earlier batches count too.
    wrong : int or None
        Rows that count whose own class is not on top, where the solver has counted them.
    kinks : tuple of (rows, slopes), one a score
        The dual point at rows on a kink of the loss, where no dual point of all rows is kept.
    likelihood : Likelihood or None
        Where the solver knows that.
    """

    w: Array
    b: Array
    certificate: Certificate
    solver: str
    n_iter: int = 1
    dual: Array | None = None
    rank: int | None = None
    last_move: float = math.inf
    means: ColumnMeans | None = None
    wrong: int | None = None
    kinks: tuple[tuple[Array, Array], ...] = ()
    likelihood: Likelihood | None = None


class Solver(Protocol):
    """One way to minimise a problem."""

    name: ClassVar[str]
    needs: ClassVar[tuple[str, ...]]
    # A direct solver meets every value of X in its first pass and its result is not finite if one
    # of them is not, so checking X beforehand would only cost another pass.
    notices_nonfinite: ClassVar[bool]

    def objection(self, problem: Problem) -> str | None:
        """Return why this solver cannot minimise the problem, or None."""

    def suits(self, problem: Problem, blocks: Blocks) -> bool:
        """Return whether ``solver="auto"`` should take this solver for data of this shape."""

    def solve(self, problem: Problem, blocks: Blocks, budget: Budget) -> Solution:
        """Minimise the problem."""


@runtime_checkable
class Rescuer(Solver, Protocol):
    """A solver that can go on from where another one ended."""

    def rescues(self, problem: Problem, blocks: Blocks) -> bool:
        """Return whether it is worth while to go on with this solver: slow, perhaps, but certain."""

    def solve(
        self, problem: Problem, blocks: Blocks, budget: Budget, start: Solution | None = None
    ) -> Solution:
        """Minimise the problem, from the model and the dual point of ``start``."""


def too_late_to_bound(budget: Budget, work: float) -> bool:
    """Return whether time is up and a bound of so many multiplications would still take long.

    No objective is negative, so that it bounds its own gap: true, and free.
    """
    return (budget.interrupted or budget.seconds_left <= 0) and work > BOUND_WORK


def missing_methods(solver: Solver, problem: Problem) -> str | None:
    """Return a sentence naming the methods the loss lacks for this solver, or None."""
    missing = _missing(type(problem.loss), *solver.needs)
    if not missing:
        return None
    asked = " and ".join(missing)
    return f"it needs the {asked} of the loss, which {problem.loss.name!r} does not have"


@cache
def _missing(loss: type, *needs: str) -> list[str]:
    return [name for name in needs if not hasattr(loss, name)]


def choose(name: str, problem: Problem, blocks: Blocks, solvers: Iterable[Solver]) -> Solver:
    """Return the solver of that name, or for "auto" the first that suits: :func:`ladder` without the rest."""
    return ladder(name, problem, blocks, solvers)[0]


def climb(rungs: list[Solver], problem: Problem, blocks: Blocks, budget: Budget) -> Solution:
    """Return the solution of the first rung that converges, each going on from the one before.

    Where none does, that with the smallest gap is returned.
    """
    budget.another_follows = len(rungs) > 1
    best = rungs[0].solve(problem, blocks, budget)
    climbed = [best.solver]
    for rung in rungs[1:]:
        if best.certificate.converged or budget.exhausted():
            break
        assert isinstance(rung, Rescuer)
        budget.new_part()
        budget.another_follows = rung is not rungs[-1]
        found = rung.solve(problem, blocks, budget, best)
        climbed.append(found.solver)
        if not found.certificate.gap > best.certificate.gap:
            best = found
    if len(climbed) == 1:
        return best
    way = ", then ".join(climbed)
    certificate = replace(best.certificate, notes=(*best.certificate.notes, f"solved by {way}"))
    return replace(best, solver=way, certificate=certificate, n_iter=len(budget.history))


def ladder(name: str, problem: Problem, blocks: Blocks, solvers: Iterable[Solver]) -> list[Solver]:
    """Return the solver of that name, or for "auto" the first that suits, and those that may go on after it.

    Raises
    ------
    IncompatibleError
        If the solver cannot minimise this problem; names why, and what would work.
    """
    solvers = list(solvers)
    check_option("solver", name, ["auto", *(solver.name for solver in solvers)])
    if name == "auto":
        for k, solver in enumerate(solvers):
            if _objection(solver, problem) is None and solver.suits(problem, blocks):
                return [solver, *(one for one in solvers[k + 1 :] if _rescues(one, problem, blocks))]
    asked = f"loss={problem.loss.name!r} with penalty={problem.penalty.name!r}"
    asked += " and positive=True" * problem.penalty.positive
    if name != "auto":
        able = [solver for solver in solvers if _objection(solver, problem) is None]
        chosen = next(solver for solver in solvers if solver.name == name)
        objection = _objection(chosen, problem)
        if objection is None:
            return [chosen]
        works = [*(repr(solver.name) for solver in able), "or 'auto'"]
        advice = (
            f"What works: {', '.join(works)}." if able else "Choose another loss or penalty: no solver fits."
        )
        raise IncompatibleError(f"solver={name!r} does not fit {asked}: {objection}. {advice}")
    raise IncompatibleError(
        f"No solver minimises {asked} for data of this kind. Choose another loss or penalty."
    )


def _objection(solver: Solver, problem: Problem) -> str | None:
    return missing_methods(solver, problem) or solver.objection(problem)


def _rescues(solver: Solver, problem: Problem, blocks: Blocks) -> bool:
    return (
        hasattr(solver, "rescues") and _objection(solver, problem) is None and solver.rescues(problem, blocks)
    )
