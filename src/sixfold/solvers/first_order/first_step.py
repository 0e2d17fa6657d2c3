"""A first step eta0 from the data: the best of a few, each tried on a thousand rows (Bottou, 2012).

    eta0 = argmin over guess * 4^k of the objective after a pass over the sample

searched downhill from a guess that changes the score of a typical row by as much as it is typically wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.data.blocks import Block, Blocks, MemoryBlocks
from sixfold.risk.problem import Problem

Array = NDArray[Any]

TRIAL_ROWS = 1000
TRIAL_FACTOR = 4.0
MOST_TRIALS = 30


def sample(blocks: Blocks, random: Any) -> MemoryBlocks:
    """Return some rows of the first block that has rows that count."""
    for block in blocks:
        rows = random.permutation(np.flatnonzero(block.counts))[:TRIAL_ROWS]
        if rows.size:
            weight = None if block.weight is None else block.weight[rows]
            return MemoryBlocks(block.X[rows], block.y[rows], weight)
    raise AssertionError("the weights of a problem never sum to zero")


def natural_step(
    problem: Problem, block: Block, spread: tuple[Array, Array] | None, typical_loss: float
) -> float:
    """Return the step that changes a typical row's score by as much as it is typically wrong."""
    X = block.X
    if spread is not None:
        squares = ((X - spread[0]) ** 2) @ spread[1]
    else:
        squares = np.asarray(X.multiply(X).sum(axis=1) if sp.issparse(X) else (X**2).sum(axis=1))
    length = float(np.mean(squares)) + problem.fit_intercept
    curvature = problem.loss.curvature_bound
    if not math.isfinite(curvature):
        # Kinked losses have slope 1 for an error of their own size; cubed losses 2 |r|, and |r|^3 / 3 = loss.
        curvature = (
            2.0 * (3.0 * typical_loss) ** (1 / 3) if problem.loss.smooth else 1.0 / (typical_loss or 1.0)
        )
    return 1.0 / (curvature * length or 1.0)


def best_step(trial: Callable[[float], float], guess: float, budget: Budget) -> float:
    """Return the step with the lowest trial among guess * 4^k, searched downhill from the guess."""
    best, value = guess, trial(guess)
    for factor in (TRIAL_FACTOR, 1.0 / TRIAL_FACTOR):
        for _ in range(MOST_TRIALS):
            reached = math.inf if budget.exhausted() else trial(best * factor)
            # Where everything overflows, smaller steps are the only hope.
            if not reached < value and not (math.isinf(value) and factor < 1.0):
                break
            best, value = best * factor, reached
        if best != guess:
            break
    return best
