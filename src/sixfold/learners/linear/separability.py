"""What a plane can say of itself: that it separates the classes, by how much, or why no plane does.

The objective is the share of rows on the wrong side (the zero-one loss; a row on the plane counts as wrong),
added over the classes where each has a plane of its own. The bound on it is

    0                       where a plane separates, or nothing is known
    the least q_i           over the rows of a proof that the classes overlap: one of these rows must be wrong

and the margin of a plane, positive only if it separates, is

    least y_i (w.x_i + b) / |(w, b)|
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.certificate import Certificate
from sixfold.data.blocks import Block, Blocks, EveryNth, MemoryBlocks
from sixfold.data.checks import TrainingData
from sixfold.errors import CertificateError
from sixfold.risk.losses import LOSSES
from sixfold.risk.penalties import make_penalty
from sixfold.risk.problem import EPS, Problem, normalized_weights, scores
from sixfold.solvers.base import Solution
from sixfold.solvers.separation.separation import Proof, Separation, proves, separate
from sixfold.solvers.separation.signed_points import SignedPoints
from sixfold.solvers.smooth.newton import Newton
from sixfold.solvers.threads import single_threaded_blas
from sixfold.verify.recomputed import Recomputed

Array = NDArray[Any]

SOME_ROWS = 4096  # rows looked at before the next ones are
SAMPLE_ROWS = 20  # a column: as many usually overlap if all do
CERTAIN = 40.0  # a lead of the score that leaves exp(-40) = 4e-18 for the other classes


@dataclass(frozen=True)
class Sides:
    """On which side of its plane each row is, for every class that has one.

    Attributes
    ----------
    wrong : ndarray of shape (scores,)
        The weighted share of rows on the wrong side, or on the plane.
    close : ndarray of shape (scores,)
        The share of rows so near that rounding decides.
    margin : ndarray of shape (scores,)
        The least signed distance y (w.x + b) / |(w, b)|.
    reach : float
        The length of the longest row, with the 1 of the intercept.
    """

    wrong: Array
    close: Array
    margin: Array
    reach: float


def look(w: Array, b: Array, blocks: Blocks, fit_intercept: bool) -> Sides:
    """Return where the rows that count are."""
    length = np.sqrt(np.square(w).sum(axis=0) + np.square(b))
    length = np.where(length > 0, length, 1.0)
    wrong, margin = np.zeros(b.size), np.full(b.size, np.inf)
    near = np.zeros(b.size)  # the share of rows with a score of 0 but for rounding
    reach = np.sqrt(blocks.reduce(_longest, max) + fit_intercept)
    doubt = (blocks.n_columns + 2) * EPS * reach * length
    for block in blocks:
        q, signed = normalized_weights(block, blocks), block.y * scores(block, w, b)
        wrong += q @ (signed <= 0.0)
        near += q @ (np.abs(signed) <= doubt)
        margin = np.minimum(margin, signed[q > 0].min(axis=0, initial=np.inf))
    return Sides(wrong, near, margin / length, float(reach))


def _longest(block: Block) -> float:
    """Return the squared length of the longest row that counts."""
    X = block.X
    dense = isinstance(X, np.ndarray)
    squares = np.einsum("ij,ij->i", X, X, dtype=np.float64) if dense else X.multiply(X).sum(axis=1)
    counted = slice(None) if block.weight is None else block.weight > 0
    return float(np.max(np.asarray(squares).ravel()[counted], initial=0.0))


def examine(
    w: Array,
    b: Array,
    blocks: Blocks,
    fit_intercept: bool,
    budget: Budget,
    tolerance: float,
    search: bool = True,
) -> tuple[Certificate, list[Proof | None]]:
    """Return what holds of the planes (w, b), and the proofs that no plane separates.

    Proofs are looked for, if at all, where a plane has rows on its wrong side.
    """
    problem = zero_one(fit_intercept)
    sides = look(w, b, blocks, fit_intercept)
    hurried = budget.interrupted or budget.seconds_left <= 0 or not search
    found = [
        None if hurried or sides.wrong[k] == 0.0 else separation_of(problem, blocks, budget, k)
        for k in range(b.size)
    ]
    proofs = [None if one is None or one.kind == "complete" else one.proof for one in found]
    gap = float(np.sum(sides.wrong - _bounds(proofs, blocks)))
    kind = "separating plane" if all(proof is None for proof in proofs) else "not separable"
    details, notes = {"margin": sides.margin.tolist()}, tuple(_notes(sides, found))
    return Certificate(
        kind, float(sides.wrong.sum()), gap, float(b.size), tolerance, details, notes=notes
    ), proofs


def separation_of(problem: Problem, blocks: Blocks, budget: Budget, target: int) -> Separation:
    """Return whether a plane separates a class; rows of a sample that overlap prove it for all."""
    every = blocks.n_rows // (SAMPLE_ROWS * (blocks.n_columns + 2))
    if every >= 4:
        with single_threaded_blas(blocks.n_columns):
            found = separate(problem, EveryNth(blocks, every), budget, target)
        if found.kind in ("overlap", "quasi-complete") and found.proof is not None:
            numbers = np.concatenate(
                [np.arange(block.start, block.start + block.y.shape[0], every) for block in blocks]
            )
            return replace(found, proof=replace(found.proof, rows=numbers[found.proof.rows]))
    return separate(problem, blocks, budget, target)


def confirm(
    certificate: Certificate,
    w: Array,
    b: Array,
    blocks: Blocks,
    fit_intercept: bool,
    proofs: list[Proof | None],
) -> Recomputed:
    """Return the certificate recomputed from the data; a claim that does not hold is a CertificateError."""
    sides = look(w, b, blocks, fit_intercept)
    for k, proof in enumerate(proofs):
        if proof is not None and not _holds(proof, blocks, fit_intercept, k):
            raise CertificateError(
                "The rows of the proof do not span a point that lies in the hulls of both classes. "
                "The proof was "
                "changed after the fit, or the data are not those of the fit."
            )
    if not np.allclose(sides.margin, certificate.details["margin"], rtol=1e-9, atol=1e-12 * sides.reach):
        raise CertificateError(
            f"The certificate says the margin is {certificate.details['margin']}, but on these data it is "
            f"{sides.margin.tolist()}. The model was changed after the fit, or the data are not those "
            "of the fit."
        )
    gap = float(np.sum(sides.wrong - _bounds(proofs, blocks)))
    rounding = float(sides.close.sum())
    found = Certificate(
        certificate.kind, float(sides.wrong.sum()), gap, certificate.scale, certificate.tolerance
    )
    return Recomputed(found, rounding, certificate.gap + rounding)


def zero_one(fit_intercept: bool) -> Problem:
    """Return the problem of having as few rows as can be on the wrong side."""
    return Problem(LOSSES["zero_one"], make_penalty(None), 0.0, fit_intercept)


def _holds(proof: Proof, blocks: Blocks, fit_intercept: bool, target: int) -> bool:
    inside = proof.rows.size > 0 and proof.rows.max() < blocks.n_rows
    return bool(inside and proves(SignedPoints(zero_one(fit_intercept), blocks, Budget(), target), proof))


def _bounds(proofs: list[Proof | None], blocks: Blocks) -> Array:
    """Return for each class what share of the rows is wrong at least."""
    q = np.concatenate([normalized_weights(block, blocks) for block in blocks])
    return np.array([0.0 if proof is None else float(q[proof.rows].min()) for proof in proofs])


def _notes(sides: Sides, found: list[Separation | None]) -> list[str]:
    """Say in words what was found, for each class where there are several."""
    notes = []
    for k, one in enumerate(found):
        if sides.wrong[k] == 0.0:
            bound = (sides.reach / sides.margin[k]) ** 2
            text = f"margin {sides.margin[k]:.3g}, at most {bound:.3g} mistakes from a zero start"
        elif one is None or one.kind == "unknown":
            text = "whether a plane separates the classes is not known"
        elif one.kind == "complete":
            text = "a plane separates the classes, but these epochs did not find it"
        else:
            count = one.proof.rows.size if one.proof is not None else 0
            text = f"no plane separates the classes: {count} rows span a point in the hulls of both"
        notes.append(text if len(found) == 1 else f"class {k}: {text}")
    return notes


# -- probabilities ---------------------------------------------------------------------------------------


def separates(problem: Problem, solution: Solution, blocks: Blocks) -> bool:
    """Return whether every row that counts has its own class on top; ends at the first that has not."""
    for block in blocks:
        for start in range(0, block.y.shape[0], SOME_ROWS):
            rows = slice(start, start + SOME_ROWS)
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


def noted(solution: Solution, note: str) -> Solution:
    """Return the solution with a note in its certificate."""
    certificate = solution.certificate
    return replace(solution, certificate=replace(certificate, notes=(*certificate.notes, note)))


def limit_model(
    found: Separation, solution: Solution, problem: Problem, data: TrainingData, tolerance: float
) -> Solution:
    """Return the model that the likelihood drives to: certain of every row that the direction separates.

    Rows on the boundary have the scores of a fit to them alone. The others are moved along the direction
    until they are certain to double precision; no slope is left of them, so the boundary's dual point bounds
    the whole.
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
        missing = CERTAIN - _lead(problem, w, b, block)[apart]
        length = max(length, float(np.max(missing / np.maximum(gained, 1e-300), initial=0.0)))
    w, b = (
        part.astype(blocks.dtype).astype(np.float64) for part in (w + length * found.w, b + length * found.b)
    )
    certificate = problem.certify("duality gap", w, b, blocks, tolerance, dual)
    notes = (f"{found.kind} separation: the limit of coefficients that grow without end",)
    details = {} if dual is None else {"dual": dual}
    return replace(solution, w=w, b=b, certificate=replace(certificate, notes=notes), details=details)
