"""The certificate of a model from one native pass over the rows, where its slopes need no mending.

The sums are those that a descent over a small table leaves behind (:mod:`sixfold.solvers.smooth.small_fit`),
and what they bound is told by :mod:`sixfold.risk.slope_bound`. Of 20,000,000 x 30 rows that takes half a
second, where arrays with an entry a row take four.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.certificate import Certificate
from sixfold.data.blocks import Blocks
from sixfold.risk.problem import Problem
from sixfold.risk.slope_bound import SlopeSums, certify_slopes
from sixfold.solvers.passes import LOSS_CODES

Array = NDArray[Any]

SUMS = 8  # of a score, in the order of SlopeSums
LOSSES = ("logistic", "squared_hinge", "softmax")
MOST_COLUMNS, MOST_COEFFICIENTS = 200, 1000  # for each thread the loops keep room for products of columns
DONE = 0


def certify_by_sums(
    problem: Problem, w: Array, b: Array, blocks: Blocks, centre: Array, tolerance: float, scale: float
) -> Certificate | None:
    """Return the certificate of a model; None where it has none by its slopes, or would not converge."""
    several = problem.loss.labels == "class"
    if problem.loss.name not in LOSSES or not problem.l2 > 0 or not problem.penalty.quadratic:
        return None
    many = w.shape[0] > MOST_COLUMNS or (several and w.size > MOST_COEFFICIENTS)
    if blocks.sparse or blocks.streamed or many or not tolerance > 0:  # whose last digits others look for
        return None
    sums = sums_at(problem, w, b, blocks, centre)
    return None if sums is None else certify_slopes(problem, w, sums, tolerance, scale)


def sums_at(problem: Problem, w: Array, b: Array, blocks: Blocks, centre: Array) -> SlopeSums | None:
    """Return the sums over all rows at a model, columns counted from the centre; None where they overflow."""
    d, scores = w.shape
    means = np.array(centre, dtype=np.float64)
    total, slopes, lengths, reach = np.zeros((scores, SUMS)), np.zeros((d, scores)), np.zeros(d), np.empty(d)
    slope, length, sums = np.empty((d, scores)), np.empty(d), np.empty((scores, SUMS))
    depth, parts, log_chance = 0, 0, 0.0
    never = Budget().flag
    for block in blocks:
        given = np.array(w, dtype=np.float64, order="C"), np.array(b, dtype=np.float64)
        end, _, of_block, _, chance, _, _ = core.newton_fit(
            block.X,
            np.asarray(block.y, dtype=block.X.dtype),
            block.float64_weight,
            blocks.weight_sum,
            LOSS_CODES.index(problem.loss.name),
            problem.l2,
            problem.fit_intercept,
            0.0,
            1.0,
            0,
            *given,
            means,
            slope,
            length,
            reach,
            sums,
            None,
            True,
            None,
            math.inf,
            never,
        )
        if end != DONE:
            return None
        total += sums
        slopes += slope
        lengths += length
        depth, log_chance, parts = max(depth, of_block), max(log_chance, chance), parts + 1
    total[:, -1] = sums[:, -1]  # the constant of the scores, which is no sum
    return SlopeSums(depth + parts, log_chance, lengths, slopes, *total.T)
