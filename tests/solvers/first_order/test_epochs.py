"""Epochs: when passes end, what makes steps smaller, and that the end is never taken back."""

import math

import numpy as np
import pytest

from sixfold.budget import Budget
from sixfold.data.blocks import MemoryBlocks
from sixfold.risk.losses import LOSSES
from sixfold.risk.penalties import make_penalty
from sixfold.risk.problem import Problem
from sixfold.solvers.first_order.epochs import Epochs
from sixfold.solvers.first_order.sgd_updates import SGDState, StepRule
from sixfold.solvers.first_order.stochastic import EpochOrder, Passes

X = np.array([[1.0], [2.0], [-1.0]])
Y = np.array([[2.0], [4.0], [-2.0]])


def epochs(values=None, **options):
    """Return passes over three rows, judged by the values that are given, one a pass."""
    given = iter(values or ())
    score = (lambda w, b: -next(given)) if values else None
    passes = Passes(
        Problem(LOSSES["squared"], make_penalty(None)), MemoryBlocks(X, Y), Budget(), EpochOrder(None, False)
    )
    state = SGDState.at(np.zeros((1, 1)), np.zeros(1))
    return Epochs(passes, state, StepRule("constant", 0.1), score=score, **options)


def ends_after(run, most=50):
    for passes in range(1, most + 1):
        run.advance()
        if run.finished:
            return passes
    return None


@pytest.mark.parametrize(
    ("values", "patience", "end"),
    [
        ([5.0, 4.0, 3.9, 3.9, 3.9], 2, 4),  # 3.9 is less than tol below 4
        ([5.0, 4.0, 4.2, 3.0, 3.1, 3.2], 2, 6),  # one gain begins the count anew
        ([5.0, 5.5], 1, 2),
        ([math.inf, 4.0, 4.0], 1, 3),
    ],
)
def test_so_many_passes_without_a_gain_are_the_end(values, patience, end):
    assert ends_after(epochs(values, tol=0.2, patience=patience)) == end


def test_without_a_tolerance_there_is_no_end():
    assert ends_after(epochs([1.0] * 50, tol=None, patience=1)) is None


def test_the_adaptive_step_is_divided_by_five_until_it_is_small():
    run = epochs([1.0] * 50, tol=0.1, patience=2, smallest_step=0.01)
    # 0.1 and 0.02 are above 0.01: after a first pass, two idle ones for each of three steps.
    assert ends_after(run) == 7
    assert run.rule.eta0 == pytest.approx(0.1 / 25)


def test_the_objective_is_that_of_the_last_iterate_and_nothing_moves_after_the_end():
    run = epochs(tol=1e-3, patience=3)
    ends_after(run)
    w, b = run.state.w[0, 0], run.state.c[0]
    assert run.objective == pytest.approx(0.5 * np.mean((X[:, 0] * w + b - Y[:, 0]) ** 2))
    run.advance()
    assert (run.state.w[0, 0], run.state.c[0]) == (w, b)
