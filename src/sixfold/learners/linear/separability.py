"""Whether planes separate the classes, with which margin, and the proof where no plane does.

The objective is the share of rows on the wrong side (the zero-one loss; a row on the plane counts as wrong),
added over the classes where each has a plane of its own. The bound on it is

    0                       where a plane separates, or nothing is known
    the least q_i           over the rows of a proof that the classes overlap: one of these rows must be wrong

and the margin of a plane, positive only if it separates, is

    least y_i (w.x_i + b) / |(w, b)|
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.certificate import Certificate
from sixfold.data.blocks import Block, Blocks, EveryNth, squared_entries
from sixfold.risk.losses import LOSSES
from sixfold.risk.penalties import make_penalty
from sixfold.risk.problem import Problem, normalized_weights, scores
from sixfold.solvers.separation.balanced_weights import settle
from sixfold.solvers.separation.separation import Proof, Separation, separate
from sixfold.solvers.threads import single_threaded_blas

Array = NDArray[Any]

SAMPLE_ROWS_PER_COLUMN = 20  # as many usually overlap if all do
SAMPLE_GROWTH = 4  # times the rows, where those of a sample do not


@dataclass(frozen=True)
class MarginReport:
    """On which side of its plane each row is, for every class that has one.

    Attributes
    ----------
    wrong : ndarray of shape (scores,)
        The weighted share of rows on the wrong side, or on the plane.
    margin : ndarray of shape (scores,)
        The least signed distance y (w.x + b) / |(w, b)|.
    radius : float
        The length of the longest row, with the 1 of the intercept.
    """

    wrong: Array
    margin: Array
    radius: float


def measure_margins(w: Array, b: Array, blocks: Blocks, fit_intercept: bool) -> MarginReport:
    """Return where the rows that count are."""
    length = np.sqrt(np.square(w).sum(axis=0) + np.square(b))
    length = np.where(length > 0, length, 1.0)
    wrong, margin = np.zeros(b.size), np.full(b.size, np.inf)
    radius = np.sqrt(blocks.reduce(_longest_row_squared, max) + fit_intercept)
    for block in blocks:
        q, signed = normalized_weights(block, blocks), block.y * scores(block, w, b)
        wrong += q @ (signed <= 0.0)
        margin = np.minimum(margin, signed[q > 0].min(axis=0, initial=np.inf))
    return MarginReport(wrong, margin / length, float(radius))


def _longest_row_squared(block: Block) -> float:
    """Return the squared length of the longest row that counts."""
    X = block.X
    if isinstance(X, np.ndarray):
        squares = np.einsum("ij,ij->i", X, X, dtype=np.float64)
    else:
        squares = squared_entries(X) @ np.ones(X.shape[1])
    counted = slice(None) if block.weight is None else block.weight > 0
    return float(np.max(squares[counted], initial=0.0))


def certify_planes(
    report: MarginReport,
    blocks: Blocks,
    fit_intercept: bool,
    budget: Budget,
    tolerance: float,
    known: dict[int, Separation] | None = None,
) -> tuple[Certificate, list[Proof | None]]:
    """Return what holds of planes with these margins, and the proofs that no plane separates.

    Proofs are looked for where a plane has rows on its wrong side, unless it is ``known`` already whether any
    separates; None looks for none.
    """
    found: list[Separation | None] = [None] * report.wrong.size
    if known is not None and not budget.interrupted and budget.seconds_left > 0:
        problem, wrong = zero_one(fit_intercept), np.flatnonzero(report.wrong).tolist()
        settle_soon(problem, blocks, budget, wrong, known)
        for k in wrong:
            found[k] = separation_of(problem, blocks, budget, k, known)
    proofs = [None if one is None or one.kind == "complete" else one.proof for one in found]
    return planes_certificate(report, found, _bounds(proofs, blocks), tolerance), proofs


def planes_certificate(
    report: MarginReport, found: list[Separation | None], least: Array, tolerance: float
) -> Certificate:
    """Return what holds of planes: ``least`` is what share of the rows is wrong at least, for each."""
    proofs = [None if one is None or one.kind == "complete" else one.proof for one in found]
    gap = float(np.sum(report.wrong - least))
    proved = any(proof is not None for proof in proofs)
    kind = "not separable" if proved else "unfinished plane" if report.wrong.any() else "separating plane"
    details, notes = {"margin": report.margin.tolist()}, tuple(_notes(report, found))
    return Certificate(
        kind, float(report.wrong.sum()), gap, float(report.wrong.size), tolerance, details, notes=notes
    )


def separation_of(
    problem: Problem,
    blocks: Blocks,
    budget: Budget,
    target: int,
    known: dict[int, Separation] | None = None,
) -> Separation:
    """Return whether a plane separates a class; what is found out of these rows is added to ``known``."""
    known = {} if known is None else known
    if target not in known:
        found = _find_separation(problem, blocks, budget, target)
        if found.kind == "unknown":  # for want of time
            return found
        known[target] = found
    return known[target]


def settle_soon(
    problem: Problem, blocks: Blocks, budget: Budget, targets: Iterable[int], known: dict[int, Separation]
) -> None:
    """Add to ``known`` whether a plane separates classes that are not there, where that is soon found out."""
    every = _sample_step(blocks)
    left = [target for target in targets if target not in known]
    while left:
        some = blocks if every == 1 else EveryNth(blocks, every)
        for target, found in settle(problem, some, budget, left).items():
            if every == 1:
                known[target] = found
            elif found.proof is not None:
                known[target] = _of_all_rows(found, found.proof, blocks, every)
        if every == 1:
            return
        left = [target for target in left if target not in known]
        every = max(every // SAMPLE_GROWTH, 1)


def _find_separation(problem: Problem, blocks: Blocks, budget: Budget, target: int) -> Separation:
    """Return whether a plane separates a class; rows of a sample that overlap prove it for all."""
    every = _sample_step(blocks)
    if every > 1:
        with single_threaded_blas(blocks.n_columns):
            found = separate(problem, EveryNth(blocks, every), budget, target)
        if found.kind in ("overlap", "quasi-complete") and found.proof is not None:
            return _of_all_rows(found, found.proof, blocks, every)
    return separate(problem, blocks, budget, target)


def _sample_step(blocks: Blocks) -> int:
    """Return every how many-th row is enough to begin with."""
    every = blocks.n_rows // (SAMPLE_ROWS_PER_COLUMN * (blocks.n_columns + 2))
    return every if every >= SAMPLE_GROWTH else 1


def _of_all_rows(found: Separation, proof: Proof, blocks: Blocks, every: int) -> Separation:
    """Return what every so many-th row proves, with the numbers that these have among all."""
    numbers = np.concatenate(
        [np.arange(block.start, block.start + block.y.shape[0], every) for block in blocks]
    )
    return replace(found, proof=replace(proof, rows=numbers[proof.rows]))


def zero_one(fit_intercept: bool) -> Problem:
    """Return the problem of having as few rows as can be on the wrong side."""
    return Problem(LOSSES["zero_one"], make_penalty(None), 0.0, fit_intercept)


def _bounds(proofs: list[Proof | None], blocks: Blocks) -> Array:
    """Return for each class what share of the rows is wrong at least."""
    q = np.concatenate([normalized_weights(block, blocks) for block in blocks])
    return np.array([0.0 if proof is None else float(q[proof.rows].min()) for proof in proofs])


def _notes(report: MarginReport, found: list[Separation | None]) -> list[str]:
    """Say in words what was found, for each class where there are several."""
    notes = []
    for k, one in enumerate(found):
        if report.wrong[k] == 0.0:
            bound = (report.radius / report.margin[k]) ** 2
            text = f"margin {report.margin[k]:.3g}, at most {bound:.3g} mistakes from a zero start"
        elif one is None or one.kind == "unknown":
            text = "whether a plane separates the classes is not known"
        elif one.kind == "complete":
            text = "a plane separates the classes, but these epochs did not find it"
        else:
            count = one.proof.rows.size if one.proof is not None else 0
            text = f"no plane separates the classes: {count} rows span a point in the hulls of both"
        notes.append(text if len(found) == 1 else f"class {k}: {text}")
    return notes
