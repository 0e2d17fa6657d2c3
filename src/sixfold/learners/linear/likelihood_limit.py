"""The model that the likelihood tends to where the classes are separated.

Without a penalty the likelihood has no maximum then: along a separating direction (u, c) the probabilities of
all rows but those on the boundary grow to 1. What is returned is

    (w, b) + t (u, c)

with (w, b) fitted to the rows on the boundary, and t so large that every other row is certain in float64.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.data.blocks import Block, Blocks, MemoryBlocks
from sixfold.data.checks import TrainingData
from sixfold.risk.problem import Problem, scores
from sixfold.solvers.base import Solution
from sixfold.solvers.separation.separation import Separation
from sixfold.solvers.smooth.newton import Newton
from sixfold.solvers.smooth.reweighted import balanced_slopes

Array = NDArray[Any]

ROWS_AT_ONCE = 4096  # rows compared before the next ones are
CERTAIN_LEAD = 40.0  # of the score, which leaves exp(-40) = 4e-18 for the other classes


def separates(problem: Problem, solution: Solution, blocks: Blocks) -> bool:
    """Return whether every row that counts has its own class on top; ends at the first that has not."""
    for block in blocks:
        for start in range(0, block.y.shape[0], ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            weight = None if block.weight is None else block.weight[rows]
            part = Block(block.X[rows], block.y[rows], weight, start)
            lead = _lead(problem, solution.w, solution.b, part)
            if (lead[slice(None) if weight is None else weight > 0] <= 0.0).any():
                return False
    return True


def _lead(problem: Problem, w: Array, b: Array, block: Block) -> Array:
    """Return by how much the score of a row's own class leads."""
    score = scores(block, w, b)
    if problem.loss.labels == "sign":
        return np.asarray((block.y * score).min(axis=1))
    own = np.asarray(block.y, dtype=np.intp)
    lead = np.take_along_axis(score, own, axis=1) - score
    np.put_along_axis(lead, own, np.inf, axis=1)
    return np.asarray(lead.min(axis=1))


def with_note(solution: Solution, note: str) -> Solution:
    """Return the solution with a note in its certificate."""
    certificate = solution.certificate
    return replace(solution, certificate=replace(certificate, notes=(*certificate.notes, note)))


def limit_model(
    found: Separation, solution: Solution, problem: Problem, data: TrainingData, tolerance: float
) -> Solution:
    """Return the model that the likelihood drives to: certain of every row that the direction separates.

    Rows on the boundary have the scores of a fit to them alone. The others are moved along the direction
    until they are certain to double precision; no slope is left of them, so the boundary's dual point bounds
    the whole. With several classes it comes from Newton's equations at the limit, since a row may be on the
    boundary between some of them only.
    """
    blocks = data.blocks()
    on_boundary = np.zeros(blocks.n_rows, dtype=bool)
    on_boundary[found.boundary] = True
    w, b, dual = solution.w, solution.b, None
    if problem.loss.labels == "sign":
        dual = np.zeros((blocks.n_rows, 1))
        if on_boundary.any():
            weight = None if data.weight is None else data.weight[on_boundary]
            rows = MemoryBlocks(data.X[on_boundary], data.y[on_boundary], weight)
            fitted = Newton().solve(problem, rows, Budget(tol=tolerance, max_iter=1000))
            w, b = fitted.w, fitted.b
            score = np.asarray(rows.X @ w, dtype=np.float64) + b
            dual[on_boundary] = problem.loss.gradient(score, rows.y)
    length = 0.0
    for block in blocks:
        apart = ~on_boundary[block.start : block.start + block.y.shape[0]]
        if block.weight is not None:
            apart &= block.weight > 0
        gained = _lead(problem, found.w, found.b, block)[apart]
        missing = CERTAIN_LEAD - _lead(problem, w, b, block)[apart]
        length = max(length, float(np.max(missing / np.maximum(gained, 1e-300), initial=0.0)))
    w, b = (
        part.astype(blocks.dtype).astype(np.float64) for part in (w + length * found.w, b + length * found.b)
    )
    if on_boundary.any():
        if problem.loss.labels == "class":
            dual = balanced_slopes(problem, blocks, Budget(), w, b)
        certificate = problem.certify("duality gap", w, b, blocks, tolerance, dual)
    else:  # every row is certain, so that there is nothing to be gained by a better bound than 0
        dual = np.zeros((blocks.n_rows, w.shape[1]))
        certificate = problem.certify_zero(w, b, blocks, problem.constant_objective(blocks), tolerance)
    notes = (f"{found.kind} separation: the limit of coefficients that grow without end",)
    return replace(solution, w=w, b=b, certificate=replace(certificate, notes=notes), dual=dual)
