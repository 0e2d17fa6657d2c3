"""Whether a plane separates the classes, and the proof either way.

Each row is one point p, or several (see :mod:`sixfold.solvers.signed_points`), and a direction v = (w, b)
with p.v >= 0 for all of them puts every row on the right side, or on the boundary. By Gordan's theorem
exactly one of these holds:

    complete         p.v > 0 for every point and some v
    not complete     sum_i weight_i p_i = 0 for some weights >= 0 that sum to 1:
                     a convex combination of rows of one class lies in the hull of the other

The shortest point of the hull decides which (:mod:`sixfold.solvers.shortest_point`). It needs few of the
points; a pass over the data finds those that the direction so far puts furthest on the wrong side, until
there are none.

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
from scipy.linalg import qr

from sixfold.budget import Budget
from sixfold.data.blocks import Blocks
from sixfold.risk.problem import Problem
from sixfold.solvers.base import single_threaded_blas
from sixfold.solvers.descent import OutOfTimeError
from sixfold.solvers.shortest_point import Corral, shorten
from sixfold.solvers.signed_points import SignedPoints

Array = NDArray[Any]

BOUNDARY = 1e-10  # of a point's length: on the boundary
SPAN = 1e-11  # of the longest: what a pivot of a factorisation must exceed to add a dimension
PROOF = 1e-9  # of its terms: what a combination that is 0 may come to
SHORT_OF_WIDEST = 0.9  # any direction will do, not the one with the widest margin
MOST_NUMBERS = 1 << 25  # in the points at hand (256 MB); more dimensions than that are not decided


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
    points = SignedPoints(problem, blocks, budget, target)
    if start is not None:
        given = Separation("complete", *start, points.unit, np.zeros(0, dtype=np.intp))
        if check_separation(given, problem, blocks, target):
            return given
    try:
        found = _reduce(points)
    except OutOfTimeError:
        budget.exhausted()
        return _nothing("unknown", points)
    return found if check_separation(found, problem, blocks, target) else _nothing("unknown", points)


def _nothing(kind: str, points: SignedPoints, proof: Proof | None = None) -> Separation:
    w, b = points.model(np.zeros(points.dimensions))
    rows = np.flatnonzero(points.counts) if kind == "overlap" else np.zeros(0, dtype=np.intp)
    return Separation(kind, w, b, points.unit, rows, proof)


# -- from face to face -----------------------------------------------------------------------------------


@dataclass
class _Face:
    """What is left of the points beside a span that was projected out.

    Attributes
    ----------
    basis : ndarray of shape (dimensions, left), or None
        None where nothing was projected out.
    lengths : ndarray of shape (rows, 1 or classes)
        Of what is left; 0 where nothing is.
    """

    points: SignedPoints
    basis: Array | None
    lengths: Array

    @classmethod
    def of(cls, points: SignedPoints, whole: Array) -> _Face:
        """Return the face of all points: those of classes are orthogonal to one and the same model for all."""
        if points.classes == 1:
            return cls(points, None, whole)
        apart = np.linalg.qr(np.eye(points.classes)[:, 1:] - 1.0 / points.classes)[0]
        return cls(points, np.kron(np.eye(points.width), apart), whole)

    @property
    def dimensions(self) -> int:
        """How many coordinates are left."""
        return self.points.dimensions if self.basis is None else self.basis.shape[1]

    def take(self, numbers: Array) -> Array:
        """Return what is left of some points, each scaled to length 1, which changes no sign."""
        coordinates = self.points.take(numbers)
        if self.basis is not None:
            coordinates = coordinates @ self.basis
        length = np.linalg.norm(coordinates, axis=1, keepdims=True)
        return coordinates / np.where(length > 0, length, 1.0)

    def there(self) -> Array:
        """Return of which points something is left."""
        return self.points.there() & (self.lengths > 0)

    def whole(self, v: Array) -> Array:
        """Return a direction of this face, or several, in the coordinates of the points."""
        return v if self.basis is None else self.basis @ v

    def margins(self, v: Array) -> Array:
        """Return the margin of every point relative to its length; infinite where nothing is left."""
        margin = self.points.margins(self.whole(v))
        return np.divide(margin, self.lengths, out=np.full_like(margin, np.inf), where=self.there())


def _reduce(points: SignedPoints) -> Separation:
    """Project points out, face after face, until the rest is separated or nothing is left."""
    whole = points.lengths()
    face = _Face.of(points, whole)
    zeros = np.flatnonzero(points.there() & (whole == 0.0))[:1]  # a row of zeros is on every plane through 0
    proof = zeros, np.ones(zeros.size)
    for support in _pairs(points, whole):
        proof = _join(proof, support)
    if proof[0].size:
        face = _beside(face, proof[0], whole)
    while face.there().any():
        direction, support = _search(face)
        if direction is not None:
            return _separated(points, face.whole(direction), whole, proof)
        if support is None:
            return _nothing("unknown", points)
        proof = _extend(points, proof, support)
        face = _beside(face, support[0], whole)
    return _nothing("overlap", points, _state(points, *proof))


def _beside(face: _Face, support: Array, whole: Array) -> _Face:
    """Return the face of what is orthogonal to some points."""
    basis = _complement(face, support)
    left = face.points.lengths(basis) if basis.shape[1] else np.zeros((1, 1))
    return _Face(face.points, basis, np.where(left > BOUNDARY * whole, left, 0.0))


def _pairs(points: SignedPoints, whole: Array) -> Iterator[tuple[Array, Array]]:
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
        face = _Face(points, basis, np.where(compared, whole, 0.0))
        if not face.there().any():
            continue
        _, support = _search(face)
        patience += 1 if support is not None else -1
        if support is not None:
            group[group == group[b]] = group[a]
            yield support


def _join(one: tuple[Array, Array], two: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return the mean of two combinations."""
    numbers, place = np.unique(np.concatenate([one[0], two[0]]), return_inverse=True)
    weights = np.bincount(place, np.concatenate([one[1], two[1] / two[1].sum()]))
    return numbers, weights / weights.sum()


def _separated(points: SignedPoints, v: Array, whole: Array, proof: tuple[Array, Array]) -> Separation:
    v = v / np.linalg.norm(v)
    w, b = points.model(v)
    if proof[0].size == 0:
        return Separation("complete", w, b, points.unit, np.zeros(0, dtype=np.intp))
    on = (points.margins(v) <= BOUNDARY * whole).any(axis=1)
    return Separation("quasi-complete", w, b, points.unit, np.flatnonzero(on), _state(points, *proof))


def _complement(face: _Face, support: Array) -> Array:
    """Return a basis of what is orthogonal to the supporting points and to all that went before."""
    with single_threaded_blas(face.dimensions):
        q, r, _ = qr(face.take(support).T, pivoting=True)
    pivots = np.abs(np.diagonal(r))
    rank = int((pivots > SPAN * pivots.max(initial=0.0)).sum())
    return face.whole(q[:, rank:])


def _extend(
    points: SignedPoints, proof: tuple[Array, Array], support: tuple[Array, Array]
) -> tuple[Array, Array]:
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


# -- one face --------------------------------------------------------------------------------------------


def _search(face: _Face) -> tuple[Array | None, tuple[Array, Array] | None]:
    """Search for a direction with every point on its right side.

    Returns
    -------
    direction : ndarray or None
    support : tuple of ndarray, or None
        Where there is no direction: points, and the weights with which what is left of them adds up to 0.
        None as well where rounding or sheer size hides the answer.
    """
    there = np.flatnonzero(face.there())
    batch = min(3 * face.dimensions + 20, there.size)
    if batch * face.dimensions > MOST_NUMBERS:
        return None, None
    corral = Corral(face.dimensions)
    at_hand = _AtHand(face)
    v = _least_squares(face, there)
    while True:
        margins = face.margins(v).ravel()
        worst = np.argpartition(margins, min(batch, margins.size - 1))[:batch]
        if margins[worst].min() > face.points.rounding:
            return v, None
        if not at_hand.add(worst[np.isfinite(margins[worst])]):
            return None, None
        zero = shorten(corral, at_hand.price, SHORT_OF_WIDEST, face.points.out_of_time)
        if face.points.out_of_time():
            raise OutOfTimeError
        if zero:
            return None, _support(face, corral)
        v = -corral.residual()[:-1]
        v /= np.linalg.norm(v)


def _least_squares(face: _Face, there: Array) -> Array:
    """Return the direction whose margins are nearest to 1, over some of the points.

    It separates what is wide apart, and the points it has on the wrong side are the first to look at.
    """
    some = face.take(there[:: max(there.size // (5 * face.dimensions + 500), 1)])
    gram = some.T @ some
    gram.flat[:: face.dimensions + 1] += 1e-8 * some.shape[0]
    with single_threaded_blas(face.dimensions):
        v = np.linalg.solve(gram, some.sum(axis=0))
    return np.asarray(v / (np.linalg.norm(v) or 1.0))


def _support(face: _Face, corral: Corral) -> tuple[Array, Array]:
    """Return the points of a combination that is 0, and their weights before they were scaled to length 1.

    A weight that rounding could have made is none: points that do have one are found again in the next face.
    """
    numbers, weights = np.array(corral.labels, dtype=np.intp), corral.combination()
    numbers, weights = numbers[weights > corral.zero], weights[weights > corral.zero]
    lengths = np.broadcast_to(face.lengths, (face.points.labels.size, face.points.classes))
    return numbers, weights / lengths.ravel()[numbers]


class _AtHand:
    """The points that were once among the worst, with their coordinates."""

    def __init__(self, face: _Face) -> None:
        self.face = face
        self.numbers = np.zeros(0, dtype=np.intp)
        self.coordinates = np.zeros((0, face.dimensions))

    def add(self, numbers: Array) -> bool:
        """Take up more points; false if all of them were there."""
        fresh = numbers[~np.isin(numbers, self.numbers)]
        if fresh.size == 0:
            return False
        if self.coordinates.size > MOST_NUMBERS:  # those in the corral are kept there
            self.numbers, self.coordinates = self.numbers[:0], self.coordinates[:0]
        self.numbers = np.concatenate([self.numbers, fresh])
        self.coordinates = np.vstack([self.coordinates, self.face.take(fresh)])
        return True

    def price(self, r: Array) -> tuple[int, Array, float]:
        """Return the point with the largest (p, 1).r, as :func:`shorten` asks for it."""
        gains = self.coordinates @ r[:-1] + r[-1]
        best = int(np.argmax(gains))
        return int(self.numbers[best]), self.coordinates[best], float(gains[best])


# -- checks ----------------------------------------------------------------------------------------------


def check_separation(found: Separation, problem: Problem, blocks: Blocks, target: int = 0) -> bool:
    """Return whether the data bear out what a separation claims; an unknown one claims nothing."""
    if found.kind == "unknown":
        return True
    points = SignedPoints(problem, blocks, Budget(), target)
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
        strict[points.counts & ~on].all() and (margin >= allowed).all() and strict[points.there()].any()
    )


def proves(points: SignedPoints, proof: Proof | None, spanning: bool = False) -> bool:
    """Return whether a proof is a convex combination of points that is 0.

    Where it is to be ``spanning``, every other point must be in the span of those with weight.
    """
    if proof is None:
        return False
    numbers = proof.rows * points.classes + (0 if proof.others is None else proof.others)
    if numbers.size == 0:
        return not points.there().any()
    convex = bool((proof.weights > 0).all()) and abs(proof.weights.sum() - 1.0) <= 1e-12
    zero = combination_residual(points, numbers, proof.weights) <= PROOF
    there = points.there()
    return (
        convex and zero and bool(there.ravel()[numbers].all()) and (not spanning or _spans(points, numbers))
    )


def _spans(points: SignedPoints, numbers: Array) -> bool:
    """Return whether every point is in the span of these."""
    beside = _complement(_Face.of(points, np.ones((1, 1))), numbers)
    if beside.shape[1] == 0:
        return True
    within = points.lengths(beside) <= 10.0 * BOUNDARY * points.lengths()
    return bool((within | ~points.there()).all())
