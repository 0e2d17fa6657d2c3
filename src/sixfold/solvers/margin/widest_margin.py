"""The plane with the widest margin: the linear support vector machine without slack.

    minimise |w|^2 / 2    subject to    y_i (w.x_i + b) >= 1

Its dual is the pair of nearest points of the two hulls. With g = sum_{y=1} l_i x_i - sum_{y=-1} l_i x_i and
the weights l of either class summing to 1,

    w = 2 g / |g|^2,     margin = 1 / |w| <= |g| / 2

where the bound holds for any such weights, so it certifies the margin of any plane. g is the shortest point
of the hull of all differences x_i - x_j between the classes
(:mod:`sixfold.solvers.separation.min_norm_point`): the best difference takes the outermost row of either
class, so a pass over the rows prices n_+ n_- differences. Where g = 0 the weights are the proof that no plane
separates the classes. Without intercept, y_i x_i stands for the differences, and the margin is at most |g|.

Distances are those of the original columns, so columns are not scaled. Where their sizes differ by more than
rounding leaves room for, separating at all may need the small ones: then
:mod:`sixfold.solvers.separation.separation`, which does scale, supplies a plane, and ``bound`` is infinite.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget, BudgetExhausted
from sixfold.data.blocks import Blocks
from sixfold.risk.problem import Problem
from sixfold.solvers.linalg import EPS
from sixfold.solvers.separation.hull_search import MOST_NUMBERS
from sixfold.solvers.separation.min_norm_point import Corral, shorten
from sixfold.solvers.separation.separation import Proof, combination_residual, proves, separate
from sixfold.solvers.separation.signed_points import SignedPoints

Array = NDArray[Any]

SHORT_OF_WIDEST = 1e-10  # how far a margin may stay below the widest, relative to it


@dataclass(frozen=True)
class WidestMargin:
    """The widest margin of one target, or the proof that there is none.

    Attributes
    ----------
    kind : {"separable", "not separable", "unknown"}
    w : ndarray of shape (columns, 1)
    b : ndarray of shape (1,)
        The plane, with a least y (w.x + b) of 1; zero unless separable.
    margin : float
        The distance of the nearest row, 1 / |w|.
    bound : float
        No plane has a wider margin than this.
    rows : ndarray of int
        The rows that the plane rests on.
    weights : ndarray of float
        Their dual variables a_i > 0: w = sum_i a_i y_i x_i, and sum_i a_i y_i = 0 with an intercept.
    proof : Proof or None
        Where not separable.
    """

    kind: str
    w: Array
    b: Array
    margin: float = 0.0
    bound: float = np.inf
    rows: Array = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    weights: Array = field(default_factory=lambda: np.zeros(0))
    proof: Proof | None = None


def widest_margin(problem: Problem, blocks: Blocks, budget: Budget, target: int = 0) -> WidestMargin:
    """Return the separating plane whose nearest row is as far away as can be.

    >>> from sixfold.data.blocks import MemoryBlocks
    >>> from sixfold.risk.losses import LOSSES
    >>> from sixfold.risk.penalties import make_penalty
    >>> problem = Problem(LOSSES["hinge"], make_penalty(None))
    >>> rows = MemoryBlocks(np.array([[0.0], [1.0], [3.0], [7.0]]), np.array([[-1.0], [-1.0], [1.0], [1.0]]))
    >>> found = widest_margin(problem, rows, Budget())
    >>> found.w[0, 0], found.b[0], found.margin, found.rows
    (np.float64(1.0), np.float64(-2.0), 1.0, array([1, 2]))
    """
    points = SignedPoints(problem, blocks, budget, target, spread=False)
    try:
        sides = np.unique(points.labels[points.counts])
        if points.intercept and sides.size == 1:
            return _one_class(points, sides)
        found = _nearest(points)
        if found is not None and check_widest_margin(found, problem, blocks, target):
            return found
        return _by_separation(problem, blocks, budget, target)
    except BudgetExhausted:
        budget.exhausted()
        return _nothing(points)


def _nothing(points: SignedPoints) -> WidestMargin:
    return WidestMargin("unknown", *points.model(np.zeros(points.dimensions)))


def _one_class(points: SignedPoints, side: Array) -> WidestMargin:
    """Return the plane at no finite distance, w = 0, which has all rows of one class on the right side."""
    w = np.zeros((points.blocks.n_columns, 1))
    return WidestMargin("separable", w, side.astype(np.float64), margin=np.inf)


def _by_separation(problem: Problem, blocks: Blocks, budget: Budget, target: int) -> WidestMargin:
    """Return what can be said where the nearest points are lost in rounding: any plane, and no bound."""
    points = SignedPoints(problem, blocks, budget, target, spread=False)
    found = separate(problem, blocks, budget, target)
    if found.kind in ("overlap", "quasi-complete"):
        return WidestMargin("not separable", 0.0 * found.w, 0.0 * found.b, bound=0.0, proof=found.proof)
    if found.kind == "unknown":
        return _nothing(points)
    return _scaled(points, found.w, found.b)


def _scaled(points: SignedPoints, w: Array, b: Array, **rest: Any) -> WidestMargin:
    """Return the plane scaled to a least y (w.x + b) of 1."""
    least = float(points.original_margins(w, b)[0].min())
    if not least > 0.0:
        return _nothing(points)
    w, b = w / least, b / least
    length = float(np.linalg.norm(w))
    return WidestMargin("separable", w, b, 1.0 / length if length else np.inf, **rest)


# -- the nearest points of the hulls -----------------------------------------------------------------------


def _nearest(points: SignedPoints) -> WidestMargin | None:
    """Return the plane between the nearest points, or the proof that they meet; None if rounding decides."""
    d = points.blocks.n_columns
    batch = 3 * d + 20
    if batch * d > MOST_NUMBERS:
        return None
    outermost = _OutermostRows(points)
    corral = Corral(d)
    rows = np.concatenate([_evenly(rows, batch) for rows in outermost.sides])
    least = -np.inf
    while outermost.add(rows):
        zero = shorten(corral, outermost.price, SHORT_OF_WIDEST, points.out_of_time)
        if points.out_of_time():
            raise BudgetExhausted
        if zero:
            return _not_separable(points, *outermost.row_weights(corral))
        r = corral.residual()
        margins = points.margins(np.append(-r[:-1], np.zeros(int(points.intercept))))[:, 0] / r[-1]
        rows, least = outermost.nearest_rows(margins, batch)
        if least >= 1.0 - SHORT_OF_WIDEST:
            break
    return _plane(points, corral, *outermost.row_weights(corral)) if least > 0.0 else None


def _evenly(numbers: Array, count: int) -> Array:
    return numbers[:: max(numbers.size // count, 1)][: 2 * count]


def _not_separable(points: SignedPoints, rows: Array, weights: Array) -> WidestMargin:
    proof = Proof(rows, None, weights, combination_residual(points, rows, weights))
    w, b = points.model(np.zeros(points.dimensions))
    return WidestMargin("not separable", w, b, bound=0.0, proof=proof)


def _plane(points: SignedPoints, corral: Corral, rows: Array, weights: Array) -> WidestMargin:
    """Return the plane through the middle between the nearest points."""
    r = corral.residual()
    v = -r[:-1] / r[-1]
    if points.intercept:
        score = points.rows(rows)[:, :-1] @ v
        plus = points.labels[rows] > 0
        v = np.append(v, -(score[plus].min() + score[~plus].max()) / 2.0)
    w, b = points.model(v)
    share = 2.0 if points.intercept else 1.0
    # g in the units of the columns; with an intercept the weights of either class sum to 1/2.
    g = points.unit[0] * share * (weights @ points.take(rows)[:, : points.blocks.n_columns])
    length = float(np.linalg.norm(g))
    weights = weights * (share / length) ** 2
    return _scaled(points, w, b, bound=length / share, rows=rows, weights=weights)


class _OutermostRows:
    """Rows that were once among the outermost of their class, and the differences between the classes.

    Without intercept all rows are on one side, as y x, and there are no differences.
    """

    def __init__(self, points: SignedPoints) -> None:
        self.points = points
        label = np.where(points.counts, points.labels if points.intercept else 1.0, 0.0)
        self.sides = [np.flatnonzero(label == side) for side in ((1.0, -1.0) if points.intercept else (1.0,))]
        self.known = np.zeros(points.labels.size, dtype=bool)
        self.numbers = [side[:0] for side in self.sides]
        self.coordinates = [np.zeros((0, points.blocks.n_columns)) for _ in self.sides]

    def add(self, rows: Array) -> bool:
        """Take up more rows; false if all of them were there."""
        rows = rows[~self.known[rows]]
        self.known[rows] = True
        for k in range(len(self.sides)):
            here = rows if len(self.sides) == 1 else rows[self.points.labels[rows] == 1.0 - 2.0 * k]
            signed = self.points.take(here)[:, : self.points.blocks.n_columns]
            self.numbers[k] = np.concatenate([self.numbers[k], here])
            self.coordinates[k] = np.vstack([self.coordinates[k], signed])
        return rows.size > 0

    def price(self, r: Array) -> tuple[tuple[int, ...], Array, float]:
        """Return the difference with the largest (p, 1).r, as :func:`shorten` asks for it."""
        gains = [coordinates @ r[:-1] for coordinates in self.coordinates]
        best = [int(np.argmax(gain)) for gain in gains]
        label = tuple(int(numbers[k]) for numbers, k in zip(self.numbers, best, strict=True))
        point = sum(coordinates[k] for coordinates, k in zip(self.coordinates, best, strict=True))
        return label, np.asarray(point), float(sum(g[k] for g, k in zip(gains, best, strict=True)) + r[-1])

    def nearest_rows(self, margins: Array, batch: int) -> tuple[Array, float]:
        """Return the rows nearest to the other class, and the least p.g / t over the differences."""
        nearest = [
            side[np.argpartition(margins[side], min(batch, side.size - 1))[:batch]] for side in self.sides
        ]
        return np.concatenate(nearest), float(sum(margins[side].min() for side in self.sides))

    def row_weights(self, corral: Corral) -> tuple[Array, Array]:
        """Return the rows in the differences of the corral, and their weights, which sum to 1."""
        rows = np.array(corral.labels, dtype=np.intp)
        weights = np.repeat(corral.combination() / rows.shape[1], rows.shape[1])
        rows, place = np.unique(rows.ravel(), return_inverse=True)
        return rows, np.bincount(place.ravel(), weights)


# -- the check -------------------------------------------------------------------------------------------


def check_widest_margin(found: WidestMargin, problem: Problem, blocks: Blocks, target: int = 0) -> bool:
    """Return whether the data bear out the plane and its bound, or the proof that there is none."""
    if found.kind == "unknown":
        return True
    points = SignedPoints(problem, blocks, Budget(), target)
    if found.kind == "not separable":
        return proves(points, found.proof)
    margin, rounding = points.original_margins(found.w, found.b)
    held = 1e-9 + 4.0 * EPS * float(np.abs(found.b).max())  # where columns are far from 0, b holds no more
    if not bool((margin >= 1.0 - held - rounding).all()) or not (margin > rounding).all():
        return False
    return found.margin <= found.bound * (1.0 + 1e-9) and _bounds(points, found)


def _bounds(points: SignedPoints, found: WidestMargin) -> bool:
    """Return whether the weights imply the bound: |g| / 2, or |g| without intercept, up to rounding."""
    if found.bound == np.inf:
        return True
    signed = points.take(found.rows)[:, : points.blocks.n_columns] * points.unit
    y, a = points.labels[found.rows], found.weights
    even = not points.intercept or abs(a @ y) <= 1e-9 * a.sum()
    bound = float(np.linalg.norm(a @ signed)) / a.sum()
    slack = 1e-9 * float(a @ np.linalg.norm(signed, axis=1)) / a.sum()
    return bool((a > 0).all()) and even and abs(bound - found.bound) <= 1e-9 * found.bound + slack
