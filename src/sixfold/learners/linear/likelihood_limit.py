"""The model that the likelihood tends to where the classes are separated.

Without a penalty the likelihood has no maximum then: along a separating direction (u, c) the probabilities of
all rows but those on the boundary grow to 1. What is returned is

    (w, b) + t (u, c)

with (w, b) as fitted, and t so large that every comparison of a row's class with another that (u, c) decides
is certain in float64. What counts of (w, b) then is how it fits the comparisons on the boundary.
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
from sixfold.solvers.separation.separation import SEPARATED, Separation, margins_of, separate
from sixfold.solvers.smooth.reweighted import balanced_slopes, targets_of

Array = NDArray[Any]

ROWS_AT_ONCE = 1024  # rows compared before the next ones are
CERTAIN_LEAD = 40.0  # of the score, which leaves exp(-40) = 4e-18 for the other classes


def separates(problem: Problem, solution: Solution, blocks: Blocks) -> bool:
    """Return whether every row that counts has its own class on top; ends at the first that has not."""
    for block in blocks:
        for part in MemoryBlocks(block.X, block.y, block.weight, ROWS_AT_ONCE):
            lead = _lead(problem, solution.w, solution.b, part)
            if (lead[part.counts] <= 0.0).any():
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


def with_limit(solution: Solution, problem: Problem, data: TrainingData, budget: Budget) -> Solution:
    """Return the limit in place of a solution that is on its way to infinity and has no bound there."""
    endless = problem.loss.name in ("logistic", "softmax") and not problem.penalised
    if not endless or solution.certificate.converged or budget.exhausted():
        return solution
    blocks = data.blocks()
    found = [
        separate(problem, blocks, budget, part.start, (solution.w[:, part], solution.b[part]))
        for part in targets_of(problem, solution.b.size)
    ]
    if not any(one.kind in SEPARATED for one in found):
        return solution
    limit = limit_model(found, solution, problem, data, budget.tol)
    return limit if limit.certificate.gap < solution.certificate.gap else solution


def limit_model(
    found: list[Separation], solution: Solution, problem: Problem, data: TrainingData, tolerance: float
) -> Solution:
    """Return the model that the likelihood drives to: certain of all that the directions separate.

    There is one for each target. No slope is left of what it separates, so that Newton's equations at the
    limit are those of the comparisons on the boundary alone, and the dual point that they leave bounds the
    whole.
    """
    blocks, parts = data.blocks(), targets_of(problem, solution.b.size)
    w, b, apart = solution.w.copy(), solution.b.copy(), np.zeros((blocks.n_rows, solution.b.size), dtype=bool)
    for one, part in zip(found, parts, strict=True):
        margin, gained = margins_of(problem, blocks, one, (w[:, part], b[part]), part.start)
        sure = apart[:, part] = gained > 0
        length = float(np.max((CERTAIN_LEAD - margin[sure]) / gained[sure], initial=0.0))
        w[:, part] += length * one.w
        b[part] += length * one.b
    w, b = blocks.rounded(w), blocks.rounded(b)
    dual: Array | None
    if all(one.kind == "complete" for one in found):
        # Every row is certain, so that there is nothing to be gained by a better bound than 0.
        dual = np.zeros((blocks.n_rows, b.size))
        certificate = problem.certify_zero(w, b, blocks, problem.constant_objective(blocks), tolerance)
    else:
        dual = balanced_slopes(problem, blocks, Budget(), w, b)
        if dual is not None:
            dual = _on_boundary(dual, apart, problem, blocks)
        certificate = problem.certify("duality gap", w, b, blocks, tolerance, dual)
    kinds = sorted({one.kind for one in found if one.kind in SEPARATED})
    notes = (f"{' and '.join(kinds)} separation: the limit of coefficients that grow without end",)
    return replace(solution, w=w, b=b, certificate=replace(certificate, notes=notes), dual=dual)


def _on_boundary(dual: Array, apart: Array, problem: Problem, blocks: Blocks) -> Array:
    """Return a dual point without what rounding has left of it where rows are certain."""
    dual = np.where(apart, 0.0, dual)
    if problem.loss.labels == "class":
        own = np.concatenate([problem.targets(block) for block in blocks]).astype(np.intp)[:, None]
        np.put_along_axis(dual, own, 0.0, axis=1)
        np.put_along_axis(dual, own, -dual.sum(axis=1, keepdims=True), axis=1)
    return dual
