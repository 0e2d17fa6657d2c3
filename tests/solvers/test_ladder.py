"""Where a solver ends short of the tolerance under "auto", the next that can go on does."""

import dataclasses
import math

import numpy as np
import pytest

from sixfold.budget import Budget
from sixfold.certificate import Certificate
from sixfold.data.blocks import MemoryBlocks
from sixfold.errors import IncompatibleError
from sixfold.risk.losses import LOSSES
from sixfold.risk.penalties import make_penalty
from sixfold.risk.problem import Problem
from sixfold.solvers.base import Solution, choose, climb, ladder

BLOCKS = MemoryBlocks(np.ones((2, 1)), np.array([[-1.0], [1.0]]))
PROBLEM = Problem(LOSSES["hinge"], make_penalty("l2"), 1.0)


@dataclasses.dataclass
class Scripted:
    """A solver that ends with a given gap."""

    name: str
    gap: float
    iterations: int = 1
    suited: bool = True
    needs: tuple[str, ...] = ()
    notices_nonfinite: bool = False

    def objection(self, problem):
        return None

    def suits(self, problem, blocks):
        return self.suited

    def solve(self, problem, blocks, budget, start=None):
        self.start = start
        for _ in range(self.iterations):
            if budget.exhausted():
                break
            budget.record(1.0, self.gap, 1.0)
        certificate = Certificate("duality gap", 1.0, self.gap, 1.0, budget.tol)
        return Solution(np.zeros((1, 1)), np.zeros(1), certificate, self.name, 1)


@dataclasses.dataclass
class Rescuing(Scripted):
    """One that also goes on from where another has ended."""

    able: bool = True

    def rescues(self, problem, blocks):
        return self.able


def solve(*solvers, **limits):
    budget = Budget(1e-6, **limits)
    return climb(ladder("auto", PROBLEM, BLOCKS, solvers), PROBLEM, BLOCKS, budget), budget


def test_a_solver_that_converges_is_the_only_one():
    first, second = Scripted("first", 1e-9), Rescuing("second", 0.0)
    solution, _ = solve(first, second)
    assert solution.solver == "first"
    assert solution.certificate.notes == ()
    assert not hasattr(second, "start")


def test_the_next_goes_on_from_where_the_first_ended_and_the_certificate_says_so():
    first, second = Scripted("first", 0.1), Rescuing("second", 1e-9)
    solution, budget = solve(first, second)
    assert solution.certificate.converged
    assert second.start.solver == "first"
    assert solution.solver == "first, then second"
    assert solution.certificate.notes == ("solved by first, then second",)
    assert solution.n_iter == len(budget.history) == 2


def test_only_those_further_down_that_can_go_on_here_are_asked():
    before, first, other, unable, last = (
        Rescuing("before", 0.0, suited=False),
        Scripted("first", 0.1),
        Scripted("other", 0.0),
        Rescuing("unable", 0.0, able=False),
        Rescuing("last", 1e-9, suited=False),
    )
    solvers = [before, first, other, unable, last]
    assert ladder("auto", PROBLEM, BLOCKS, solvers) == [first, last]
    assert choose("auto", PROBLEM, BLOCKS, solvers) is first


def test_a_solver_asked_for_by_name_stays_alone():
    first, second = Scripted("first", 0.1), Rescuing("second", 1e-9)
    assert ladder("first", PROBLEM, BLOCKS, [first, second]) == [first]


def test_the_best_is_kept_where_nobody_converges():
    solution, _ = solve(Scripted("first", 0.1), Rescuing("second", 0.01), Rescuing("third", 0.5))
    assert solution.certificate.gap == 0.01
    assert solution.solver == "first, then second, then third"


def test_a_gap_that_is_not_a_number_does_not_hide_a_better_one():
    solution, _ = solve(Scripted("first", math.inf), Rescuing("second", 0.01))
    assert solution.certificate.gap == 0.01


@pytest.mark.parametrize("limits", [{"max_iter": 3}, {"callbacks": [lambda record: True]}])
def test_the_users_limits_end_the_climb(limits):
    second = Rescuing("second", 0.0)
    solution, budget = solve(Scripted("first", 0.1, iterations=5), second, **limits)
    assert solution.solver == "first"
    assert budget.stopped_by is not None


def test_every_part_of_the_work_has_its_own_iterations():
    budget = Budget(max_iter=2)
    for _ in range(3):
        budget.new_part()
        assert sum(budget.record(1.0, 1.0, 1.0) for _ in budget.iterations()) == 1
        assert budget.stopped_by == "max_iter=2"
    assert len(budget.history) == 6
    budget.new_part()
    assert budget.stopped_by is None
    assert budget.shortened_by == "max_iter=2"


def test_no_solver_is_a_sentence():
    with pytest.raises(IncompatibleError, match="No solver minimises"):
        ladder("auto", PROBLEM, BLOCKS, [Scripted("one", 0.0, suited=False)])
