"""Whether a plane separates the classes, and the proof either way.

Each row is one point p, or several (see :mod:`sixfold.solvers.separation.signed_points`), and a direction v =
(w, b) with p.v >= 0 for all of them puts every row on the right side, or on the boundary. By Gordan's theorem
exactly one of these holds:

    complete         p.v > 0 for every point and some v
    not complete     sum_i weight_i p_i = 0 for some weights >= 0 that sum to 1:
                     a convex combination of rows of one class lies in the hull of the other

The shortest point of the hull decides which (:mod:`sixfold.solvers.separation.hull_search`).

Without complete separation, v may still have p.v > 0 for some points and p.v = 0 for all others. Every point
with weight in a combination that is 0 has p.v = 0 for every such v, so these points, and all in their span,
are projected out and the question asked again of what is left of the others, which is of lower dimension:

    quasi-complete   what is left of them is separated completely
    overlap          nothing is left: the points with weight span all points, and no v does anything

In the first two cases the likelihood of an unpenalised model grows for ever along v; in the third it has a
maximum (Albert and Anderson, 1984).

*Rounding.* Lengths are in units of the columns. Complete separation is claimed if every margin p.v on the
original rows exceeds what rounding can do to it, (d + 4) eps (|w|.|x| + |b|), so the claim holds in exact
arithmetic. A combination counts as 0 below 4 (d + 20) eps of the length of its points, and a point as on the
boundary below 1e-10 of its length, since the boundary comes out of a factorisation, whose conditioning costs
digits: data closer to another case than this cannot be told from it. Hulls that overlap, or miss each other,
by 1e-6 or even 1e-9 of their size are far from both.

Sources: Albert and Anderson (1984), On the existence of maximum likelihood estimates in logistic regression
models; Lawson and Hanson (1974), Solving least squares problems; Borwein and Wolkowicz (1981), Facial
reduction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget, BudgetExhausted
from sixfold.data.blocks import Blocks
from sixfold.risk.problem import Problem
from sixfold.solvers.separation.hull_search import (
    BOUNDARY,
    Combination,
    ProjectedPoints,
    complement,
    find_direction,
    project_out,
)
from sixfold.solvers.separation.signed_points import SignedPoints

Array = NDArray[Any]

SEPARATED = ("complete", "quasi-complete")  # kinds in which no model is the most likely one
PROOF_RESIDUAL = 1e-9  # of its terms: what a combination that is 0 may come to


@dataclass(frozen=True)
class Proof:
    """A convex combination of points that is 0.

    Attributes
    ----------
    rows : ndarray of int
        The row of each point.
    others : ndarray of int or None
        With classes, the class that the row is compared with.
    weights : ndarray of float
        Positive, with sum 1. For labels -1 and +1 with an intercept the rows of either class have half of it,
        and twice their combination is one and the same point, which lies in both hulls.
    residual : float
        What the combination comes to, relative to its terms; the largest over the columns.
    """

    rows: Array
    others: Array | None
    weights: Array
    residual: float


@dataclass(frozen=True)
class Separation:
    """Whether a plane separates the classes.

    Attributes
    ----------
    kind : {"complete", "quasi-complete", "overlap", "unknown"}
        Unknown where the budget ended first, or rounding decides.
    w : ndarray of shape (columns, scores)
    b : ndarray of shape (scores,)
        The direction: no row is on its wrong side. Zero for overlap.
    unit : ndarray of shape (columns,)
        The spread of each column; |w_j| unit_j says how much column j does.
    boundary : ndarray of int
        Rows with margin 0 in some comparison; the others are on the right side of all of them.
    proof : Proof or None
        For quasi-complete separation, that it is not complete; for overlap, that there is none at all.
    """

    kind: str
    w: Array
    b: Array
    unit: Array
    boundary: Array
    proof: Proof | None = None


def separate(
    problem: Problem,
    blocks: Blocks,
    budget: Budget,
    target: int = 0,
    start: tuple[Array, Array] | None = None,
) -> Separation:
    """Return whether a plane separates the classes of one target, and the proof.

    Only the labels and the intercept of the problem count, not its loss or penalty. ``start`` is a model (w,
    b) that may separate them already, such as a solver's last, which then settles it in one pass.

    >>> from sixfold.data.blocks import MemoryBlocks
    >>> from sixfold.risk.losses import LOSSES
    >>> from sixfold.risk.penalties import make_penalty
    >>> problem = Problem(LOSSES["logistic"], make_penalty(None))
    >>> rows = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    >>> exclusive_or = MemoryBlocks(rows, np.array([[-1.0], [-1.0], [1.0], [1.0]]))
    >>> found = separate(problem, exclusive_or, Budget())
    >>> found.kind, found.proof.rows, found.proof.weights
    ('overlap', array([0, 1, 2, 3]), array([0.25, 0.25, 0.25, 0.25]))
    """
    given = None if start is None else separation_by(start, problem, blocks, budget, target)
    if given is not None:
        return given
    points = SignedPoints(problem, blocks, budget, target)
    try:
        found = _reduce(points)
    except BudgetExhausted:
        budget.exhausted()
        return _nothing("unknown", points)
    return found if found.kind == "unknown" or _holds(found, points) else _nothing("unknown", points)


def separation_by(
    model: tuple[Array, Array], problem: Problem, blocks: Blocks, budget: Budget, target: int = 0
) -> Separation | None:
    """Return that a model (w, b) separates the classes completely; None where it does not."""
    points = SignedPoints(problem, blocks, budget, target)
    given = Separation("complete", *model, points.unit, np.zeros(0, dtype=np.intp))
    return given if _holds(given, points) else None


def _nothing(kind: str, points: SignedPoints, proof: Proof | None = None) -> Separation:
    w, b = points.model(np.zeros(points.dimensions))
    rows = np.flatnonzero(points.counts) if kind == "overlap" else np.zeros(0, dtype=np.intp)
    return Separation(kind, w, b, points.unit, rows, proof)


# -- facial reduction ------------------------------------------------------------------------------------


def _reduce(points: SignedPoints) -> Separation:
    """Project points out, time after time, until the rest is separated or nothing is left."""
    whole = points.lengths()
    projected = ProjectedPoints.of(points, whole)
    # A row of zeros is on every plane through 0.
    zeros = np.flatnonzero(points.present() & (whole == 0.0))[:1]
    proof = zeros, np.ones(zeros.size)
    for pair in _pairs(points, whole):
        proof = _join(proof, pair)
    if proof[0].size:
        projected = project_out(projected, proof[0], whole)
    while projected.present().any():
        direction, support = find_direction(projected)
        if direction is not None:
            return _separated(points, projected.whole(direction), whole, proof)
        if support is None:
            return _nothing("unknown", points)
        proof = _extend(points, proof, support)
        projected = project_out(projected, support[0], whole)
    return _nothing("overlap", points, _state(points, *proof))


def _pairs(points: SignedPoints, whole: Array) -> Iterator[Combination]:
    """Yield combinations of two classes that are 0.

    A direction can only be the same for two classes that overlap, and pairs that link all classes settle the
    whole question. Two classes have as many dimensions as there are columns, all of them `classes` times as
    many: with 10 classes of 100 columns, this takes 2 s instead of 58.
    """
    group = np.arange(points.classes)
    patience = 4  # for classes that are apart
    for step, a in product(range(1, points.classes), range(points.classes)):
        b = a + step
        if points.classes == 2 or patience == 0 or b >= points.classes or group[a] == group[b]:
            continue
        sides = np.zeros(points.classes)
        sides[a], sides[b] = 1.0, -1.0
        compared = np.zeros((points.labels.size, points.classes), dtype=bool)
        compared[:, a], compared[:, b] = points.labels == b, points.labels == a
        basis = np.kron(np.eye(points.width), sides[:, None]) / np.sqrt(2.0)
        projected = ProjectedPoints(points, basis, np.where(compared, whole, 0.0))
        if not projected.present().any():
            continue
        _, support = find_direction(projected)
        patience += 1 if support is not None else -1
        if support is not None:
            group[group == group[b]] = group[a]
            yield support


def _join(one: Combination, two: Combination) -> Combination:
    """Return the mean of two combinations."""
    numbers, place = np.unique(np.concatenate([one[0], two[0]]), return_inverse=True)
    weights = np.bincount(place, np.concatenate([one[1], two[1] / two[1].sum()]))
    return numbers, weights / weights.sum()


def _separated(points: SignedPoints, v: Array, whole: Array, proof: Combination) -> Separation:
    v = v / np.linalg.norm(v)
    w, b = points.model(v)
    if proof[0].size == 0:
        return Separation("complete", w, b, points.unit, np.zeros(0, dtype=np.intp))
    on = (points.margins(v) <= BOUNDARY * whole).any(axis=1)
    return Separation("quasi-complete", w, b, points.unit, np.flatnonzero(on), _state(points, *proof))


def _extend(points: SignedPoints, proof: Combination, support: Combination) -> Combination:
    """Return a combination that is 0 and has weight on the points of both.

    The new one is 0 but for something in the span of the old points, which a combination of these with any
    signs makes up for; enough of the old combination, itself 0, makes all the weights positive.
    """
    old, kept = proof
    new, weights = support
    if old.size:
        makeup = np.linalg.lstsq(points.take(old).T, -(weights @ points.take(new)), rcond=None)[0]
        kept = makeup + kept * (1.0 + 2.0 * float(np.max(-makeup / kept, initial=0.0)))
        new, weights = np.concatenate([old, new]), np.concatenate([kept, weights])
    return _join((new[:0], weights[:0]), (new, weights))


def _state(points: SignedPoints, numbers: Array, weights: Array) -> Proof:
    order = np.argsort(numbers, kind="stable")
    numbers, weights = numbers[order], weights[order]
    others = None if points.classes == 1 else numbers % points.classes
    return Proof(points.row_of(numbers), others, weights, combination_residual(points, numbers, weights))


def combination_residual(points: SignedPoints, numbers: Array, weights: Array) -> float:
    """Return what the combination comes to relative to its terms, the largest over the coordinates."""
    terms = points.take(numbers)
    size = weights @ np.abs(terms)
    return float(np.max(np.abs(weights @ terms) / np.where(size > 0, size, 1.0), initial=0.0))


def margins_of(
    problem: Problem, blocks: Blocks, found: Separation, model: tuple[Array, Array], target: int = 0
) -> tuple[Array, Array]:
    """Return the margin of every point at a model, and what a step along the direction adds to it.

    That is 0 on the boundary, and where there is no point.
    """
    points = SignedPoints(problem, blocks, Budget(), target)
    margin, _ = points.original_margins(*model)
    gained, _ = points.original_margins(found.w, found.b)
    boundary = BOUNDARY * points.lengths() * points.length_of(found.w, found.b)
    return margin, np.where(np.isfinite(gained) & (gained > boundary), gained, 0.0)


# -- checks ----------------------------------------------------------------------------------------------


def check_separation(found: Separation, problem: Problem, blocks: Blocks, target: int = 0) -> bool:
    """Return whether the data bear out what a separation claims; an unknown one claims nothing."""
    return found.kind == "unknown" or _holds(found, SignedPoints(problem, blocks, Budget(), target))


def _holds(found: Separation, points: SignedPoints) -> bool:
    if found.kind != "complete" and not proves(points, found.proof, spanning=found.kind == "overlap"):
        return False
    if found.kind == "overlap":
        return True
    margin, rounding = points.original_margins(found.w, found.b)
    strict = margin > rounding
    if found.kind == "complete":
        return bool(strict.all())
    on = np.zeros(points.labels.size, dtype=bool)
    on[found.boundary] = True
    allowed = -2.0 * BOUNDARY * points.lengths() * points.length_of(found.w, found.b)
    return bool(
        strict[points.counts & ~on].all() and (margin >= allowed).all() and strict[points.present()].any()
    )


def proves(points: SignedPoints, proof: Proof | None, spanning: bool = False) -> bool:
    """Return whether a proof is a convex combination of points that is 0.

    Where it is to be ``spanning``, every other point must be in the span of those with weight.
    """
    if proof is None:
        return False
    numbers = proof.rows * points.classes + (0 if proof.others is None else proof.others)
    if numbers.size == 0:
        return not points.present().any()
    convex = bool((proof.weights > 0).all()) and abs(proof.weights.sum() - 1.0) <= 1e-12
    zero = combination_residual(points, numbers, proof.weights) <= PROOF_RESIDUAL
    there = points.present()
    return (
        convex and zero and bool(there.ravel()[numbers].all()) and (not spanning or _spans(points, numbers))
    )


def _spans(points: SignedPoints, numbers: Array) -> bool:
    """Return whether every point is in the span of these."""
    left = complement(ProjectedPoints.of(points, np.ones((1, 1))), numbers)
    if left.shape[1] == 0:
        return True
    within = points.lengths(left) <= 10.0 * BOUNDARY * points.lengths()
    return bool((within | ~points.present()).all())
