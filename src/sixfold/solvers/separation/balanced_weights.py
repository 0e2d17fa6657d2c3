"""Proofs that classes overlap, from weights that all rows have: quick where they overlap by far.

    c_i > 0 for every row,    sum_i c_i y_i (x_i, 1) = 0

The search of :mod:`sixfold.solvers.separation.hull_search` ends with the few rows that a proof needs, which
takes as many steps as there are columns, each of them a call. Weights of all rows take a few factorisations
of a matrix of the columns (native/linear/separation/balanced_weights.cpp): 12 milliseconds instead of 110 for
ten classes of 1,000 x 100 rows, 0.16 instead of 7 for those of 100 x 4. With every row in the proof nothing
is left to project out.

A direction with every row on its right side may come out as well. Sides that hardly touch are left to that
search.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.data.blocks import Blocks
from sixfold.risk.problem import Problem
from sixfold.solvers.separation.separation import PROOF_RESIDUAL, Proof, Separation, check_separation

Array = NDArray[Any]

WEIGHTS, DIRECTION = 1, 2  # what the native loop answers
MOST_NUMBERS = 1 << 22  # in the rows that are looked at: a factor takes some ten milliseconds
MOST_COLUMNS = 300  # likewise
MOST_FACTORS = 20  # of hulls that hardly touch; those of the settings above took 1 to 5 where they overlap


def settle(problem: Problem, blocks: Blocks, budget: Budget, targets: Iterable[int]) -> dict[int, Separation]:
    """Return for each target whether a plane separates the classes; what is not found out is left out.

    >>> from sixfold.data.blocks import MemoryBlocks
    >>> from sixfold.risk.losses import LOSSES
    >>> from sixfold.risk.penalties import make_penalty
    >>> problem = Problem(LOSSES["logistic"], make_penalty(None))
    >>> line = MemoryBlocks(np.arange(4.0)[:, None], np.array([[1.0], [-1.0], [-1.0], [1.0]]))
    >>> settle(problem, line, Budget(), [0])[0].proof.weights
    array([0.25, 0.25, 0.25, 0.25])
    """
    d = blocks.n_columns
    if blocks.sparse or blocks.streamed or d > MOST_COLUMNS or blocks.n_rows * (d + 1) > MOST_NUMBERS:
        return {}
    block = blocks.whole()
    numbers = np.flatnonzero(block.counts)
    Z = np.ones((numbers.size, d + problem.fit_intercept))
    x = Z[:, :d]
    x[:] = block.X if block.weight is None else block.X[numbers]
    center = x.mean(axis=0) if problem.fit_intercept else np.zeros(d)
    x -= center
    unit = np.abs(x).max(axis=0, initial=0.0)
    unit[unit == 0.0] = 1.0
    x /= unit
    sizes, v, found = np.abs(Z), np.empty(Z.shape[1]), {}
    for target in targets:
        y = block.y[numbers, target].astype(np.float64)
        c = _even(y)
        if c is None:
            continue
        answer = core.balance_weights(Z, y, MOST_FACTORS, c, v, budget.seconds_left, budget.flag)
        if answer == DIRECTION:
            w = (v[:d] / unit)[:, None]
            b = (v[d:] - center @ w) if problem.fit_intercept else np.zeros(1)
            one = Separation("complete", w, b, unit, np.zeros(0, dtype=np.intp))
            if check_separation(one, problem, blocks, target):
                found[target] = one
        if answer != WEIGHTS:
            continue
        whole = c @ sizes
        residual = np.abs((c * y) @ Z) / np.where(whole > 0.0, whole, 1.0)
        proof = Proof(numbers, None, c, float(residual.max(initial=0.0)))
        if proof.residual <= PROOF_RESIDUAL / 10.0:
            found[target] = Separation("overlap", np.zeros((d, 1)), np.zeros(1), unit, numbers, proof)
    return found


def _even(y: Array) -> Array | None:
    """Return weights of which either side has half; None where there is one side only."""
    above = y > 0.0
    count = int(np.count_nonzero(above))
    if count in (0, y.size):
        return None
    return np.where(above, 0.5 / count, 0.5 / (y.size - count))
