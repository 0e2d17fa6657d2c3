"""The certificate of a model from one native pass over the rows, or for several classes from two.

What the sums bound is told by :mod:`sixfold.risk.slope_bound`. Of 200,000 x 100 rows they take 9 ms on one
thread, where arrays with an entry a row take 130.
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
from sixfold.solvers.smooth.softmax_objective import SoftmaxObjective

Array = NDArray[Any]

SUMS = 8  # of a score, in the order of SlopeSums
LOSSES = ("logistic", "squared_hinge", "softmax")
FAR = 4.0  # times its spread: columns further from 0 have many digits in common
WEIGHTS = 40  # roundings in a sum of weights, added up in pairs
# Of the objective: where classes are told apart and scores are large, bounds of the sums say far more of
# rounding than there is of it, and the objective would be overstated. Of usual fits of one score it is 1e-13.
ROUGH, ROUGH_OF_CLASSES = 1e-10, 5e-12  # of slopes known in sum alone: 1e-11 is not always confirmed
ROUNDED = 1e-12  # more than slopes of at most 1 are
MOST_COLUMNS = 1000  # of classes: for scores of more columns the bounds are that rough


def certify_by_sums(
    problem: Problem,
    w: Array,
    b: Array,
    blocks: Blocks,
    centre: Array,
    tolerance: float,
    scale: float,
    objective: SoftmaxObjective | None = None,
) -> Certificate | None:
    """Return the certificate of a model; None where it has none by its slopes, or would not converge.

    Columns are counted from the centre; an objective of classes may know the sums at the model already.
    """
    if problem.loss.name not in LOSSES or not problem.l2 > 0 or not problem.penalty.quadratic:
        return None
    if blocks.sparse or blocks.streamed or not tolerance > 0:  # whose last digits others look for
        return None
    if problem.loss.labels == "class":
        if w.shape[0] > MOST_COLUMNS:
            return None
        sums = class_sums_at(
            objective or SoftmaxObjective(problem, blocks, Budget(), 0.0 * centre, 0.0), w, b
        )
    else:
        sums = sums_at(problem, w, b, blocks, centre)
    found = None if sums is None else certify_slopes(problem, w, sums, tolerance, scale)
    rough = ROUGH_OF_CLASSES if problem.loss.labels == "class" else ROUGH
    return found if found is not None and found.rounding <= rough * found.objective else None


def sums_at(problem: Problem, w: Array, b: Array, blocks: Blocks, centre: Array) -> SlopeSums | None:
    """Return the sums at a model with a score a target, columns counted from the centre; None on overflow."""
    d, scores = w.shape
    shift = np.array(centre if problem.fit_intercept else np.zeros(d), dtype=np.float64)
    total, slopes, lengths = np.zeros((scores, SUMS)), np.zeros((d, scores)), np.zeros(d)
    slope, length, sums = np.empty(d), np.empty(d), np.empty(SUMS)
    code, never = LOSS_CODES.index(problem.loss.name), Budget().flag
    depth, parts = 0, 0
    for block in blocks:
        parts += 1
        for k in range(scores):
            _, of_block = core.slope_sums(
                block.X,
                np.ascontiguousarray(block.y[:, k], dtype=np.float64),
                block.float64_weight,
                blocks.weight_sum,
                code,
                np.array(w[:, k], dtype=np.float64),
                float(b[k]),
                shift,
                slope,
                length,
                sums,
                math.inf,
                never,
            )
            total[k, :-1] += sums[:-1]
            total[k, -1] = sums[-1]  # the constant of the scores, which is no sum
            slopes[:, k] += slope
            depth = max(depth, of_block)
        lengths += length
    return SlopeSums(depth + parts, 0.0, lengths, slopes, *total.T) if np.isfinite(lengths).all() else None


def class_sums_at(objective: SoftmaxObjective, w: Array, b: Array) -> SlopeSums | None:
    """Return the sums of a model of all classes with its probabilities in balance.

    They are counted from 0: where slopes are balanced, a shift of the columns changes nothing but rounding.
    None where that is much, as a column is far from 0, or where they overflow. Scores and slopes enter
    through rounding alone, so that bounds of their sums will do.
    """
    blocks = objective.blocks
    total, sums = blocks.weight_sum, objective.class_sums(w, b)
    lengths = np.zeros(objective.d)  # their squares, as everywhere in these sums
    squares, never = np.empty(objective.d + 1), Budget().flag
    for block, weight in zip(blocks, objective.weight, strict=True):
        core.column_squares(block.X, weight, np.zeros(objective.d), squares, math.inf, never)
        lengths += squares[:-1] / total
    if not (math.isfinite(sums.loss) and np.isfinite(lengths).all()):
        return None
    if np.any(lengths > FAR**2 * np.maximum(lengths - np.square(objective.shift), 0.0)):
        return None
    slope, rows = sums.slope / total, sums.rows / total
    mass = rows + slope[-1]
    loss = np.zeros(b.size)
    loss[0] = sums.loss / total
    score_squares = np.square(np.sqrt(lengths) @ np.abs(w) + np.abs(b))  # by the triangle inequality
    size = np.maximum(mass, sums.mass / total) + rows  # |u| is at most r where not the own class, and 1 there
    products = np.sqrt(score_squares * size)
    # What rows hand on, and other classes get: of any row no more than the largest share of a class.
    more = np.maximum(sums.mass - sums.rows, 0.0) * objective.problem.fit_intercept
    largest = float((more / np.where(more > 0.0, sums.mass, 1.0)).max())
    length = math.sqrt(sums.squares / total) + 2.0 * math.sqrt(largest * more.sum() / total) + ROUNDED
    return SlopeSums(
        sums.depth + WEIGHTS,
        2.0 * sums.log_chance,
        lengths,
        slope[:-1],
        loss,
        score_squares,
        size,
        slope[-1],
        size,
        products,
        mass,
        np.array(b, dtype=np.float64),
        squares=length**2,
        young=sums.divergence / total,
    )
