"""The support vector machine without slack, one class after the other.

    minimise  |w|^2 / 2    subject to  y_i (w.x_i + b) >= 1

is what the hinge loss with alpha -> 0 tends to where a plane separates the classes, and has no answer where
none does. The plane and its bound come from :mod:`sixfold.solvers.margin.widest_margin`. From dual variables
a_i >= 0 (with sum_i a_i y_i = 0 if there is an intercept), scaled as well as can be,

    |w|^2 / 2  >=  (sum_i a_i)^2 / (2 |sum_i a_i y_i x_i|^2)     for every w that is allowed

which is the lower bound of the certificate.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.certificate import Certificate
from sixfold.data.blocks import Blocks
from sixfold.risk.problem import MOST_DOUBLED, Problem
from sixfold.risk.rounding import Rows, U
from sixfold.solvers.base import Solution
from sixfold.solvers.margin.widest_margin import widest_margin

Array = NDArray[Any]

LENGTHENINGS = 8  # of a plane, each by twice as many roundings as the one before


class Overlap(Exception):  # noqa: N818 - an answer, which the learner puts into words
    """No plane separates a column of labels, and a proof says so."""

    def __init__(self, target: int, proof: Any) -> None:
        super().__init__(target, proof)
        self.target, self.proof = target, proof


class HardMargin:
    """The widest margin for labels -1 and +1; several columns of labels are separate problems."""

    name: ClassVar[str] = "hard_margin"
    needs: ClassVar[tuple[str, ...]] = ()
    notices_nonfinite: ClassVar[bool] = False

    def objection(self, problem: Problem) -> str | None:
        """Return why this solver cannot minimise the problem, or None."""
        return None if problem.loss.labels == "sign" else "it needs labels -1 and +1"

    def suits(self, problem: Problem, blocks: Blocks) -> bool:
        """Return True: there is no other way."""
        return True

    def solve(self, problem: Problem, blocks: Blocks, budget: Budget) -> Solution:
        """Find the planes; raise :class:`Overlap` where there is none."""
        targets = blocks.n_targets
        w, b = np.zeros((blocks.n_columns, targets)), np.zeros(targets)
        a = np.zeros((blocks.n_rows, targets))
        unknown: list[int] = []
        for target in range(targets):
            found = widest_margin(problem, blocks, budget, target)
            if found.kind == "not separable":
                raise Overlap(target, found.proof)
            if found.kind == "unknown":
                unknown.append(target)
                continue
            w[:, target], b[target] = found.w[:, 0], found.b[0]
            a[found.rows, target] = found.weights
        w, b = _allowed(w, b, blocks)
        dual = -a * np.concatenate([block.y for block in blocks])
        certificate = certify_margin(problem, w, b, blocks, budget.tol, dual)
        budget.record(certificate.objective, certificate.gap, certificate.scale)
        if unknown:
            budget.stopped_by = budget.stopped_by or "rounding: the margin is too small to be found"
        return Solution(w, b, certificate, "hard margin", len(budget.history), dual)


def _allowed(w: Array, b: Array, blocks: Blocks) -> tuple[Array, Array]:
    """Return the planes rounded to the data's type, and long enough that no row is inside the margin."""
    step = float(np.finfo(blocks.dtype).eps)
    for attempt in range(LENGTHENINGS):
        w, b = blocks.rounded(w), blocks.rounded(b)
        least = least_margin(w, b, blocks)
        short = (least > 0) & (least < 1.0 + 2.0 * U)  # a score may have been rounded up
        if not short.any():
            break
        # The rounding of w and b takes some of it back.
        grow = np.where(short, (1.0 + 2.0**attempt * step + 4.0 * U) / np.where(short, least, 1.0), 1.0)
        w, b = w * grow, b * grow
    return blocks.rounded(w), blocks.rounded(b)


def _rows(blocks: Blocks) -> Rows:
    """Return the rows, whose sums are formed in doubled precision unless there are very many."""
    q = np.concatenate([block.counts / blocks.n_rows for block in blocks])
    return Rows(blocks, q, doubled=blocks.n_rows * blocks.n_columns <= MOST_DOUBLED)


def least_margin(w: Array, b: Array, blocks: Blocks) -> Array:
    """Return the least y (w.x + b) of each column of labels over the rows that count."""
    rows = _rows(blocks)
    y = np.concatenate([block.y for block in blocks])
    signed = y * rows.scores(w, b, np.zeros_like(b))
    return np.asarray(signed[rows.q > 0].min(axis=0, initial=np.inf))


def certify_margin(
    problem: Problem, w: Array, b: Array, blocks: Blocks, tolerance: float, dual: Array
) -> Certificate:
    """Return how far |w|^2 / 2 is from its minimum at most; infinitely far if a row is inside the margin.

    What rounding leaves of sum_i a_i y_i is taken from its heavier side, which moves the slope by as large a
    share of sum_i a_i |x_i - m|.
    """
    rows, y = _rows(blocks), np.concatenate([block.y for block in blocks])
    size = 0.5 * float(np.square(w).sum())
    objective = size * (1.0 + (blocks.n_columns + 4) * U)
    # A score is rounded once where the sum is formed in doubled precision, else as often as it has terms.
    off = rows.score_rounding(w, b, np.zeros_like(b)) * np.sqrt(blocks.n_rows) + 2.0 * U
    outside = bool((least_margin(w, b, blocks) >= 1.0 - off).all())
    a = np.where(rows.q[:, None] > 0, np.maximum(-dual * y, 0.0), 0.0)
    up, down = (np.where(side, a, 0.0) for side in (y > 0, y < 0))
    if problem.fit_intercept:  # scaled so that both sides weigh the same
        heavy = np.maximum(up.sum(axis=0), down.sum(axis=0))
        up, down = up * _ratio(heavy, up.sum(axis=0)), down * _ratio(heavy, down.sum(axis=0))
    mass = up - down
    total, (slope, left) = up.sum(axis=0) + down.sum(axis=0), rows.slope(mass)
    spread = np.sqrt(np.square(mass).sum(axis=0) * blocks.n_rows) * (1.0 + 1e-9)
    error, left_error = rows.slope_rounding(mass, slope, spread)
    share = np.zeros_like(total)
    if problem.fit_intercept:
        share = _ratio(np.abs(left) + left_error, np.minimum(up.sum(axis=0), down.sum(axis=0)))
        error = error + np.outer(rows.lengths, share * spread)
    else:
        slope = slope + np.outer(rows.centre, left)
        error = error + np.outer(np.abs(rows.centre), left_error)
    length = np.linalg.norm(slope, axis=0) * (1.0 + (blocks.n_columns + 4) * U) + np.linalg.norm(
        error, axis=0
    )
    total = total * np.maximum(1.0 - share - (blocks.n_rows + 8) * U, 0.0)
    lower = float(np.sum(_ratio(0.5 * total**2, length**2)))
    known = outside and np.isfinite(lower)
    plain = float(np.sum(_ratio(0.5 * (up + down).sum(axis=0) ** 2, np.square(slope).sum(axis=0))))
    gap = max(objective - lower, 0.0) if known else np.inf
    rounding = objective - size + max(plain - lower, 0.0) if known else 0.0
    return Certificate("duality gap", objective, gap, objective, tolerance, rounding=min(rounding, gap))


def _ratio(one: Array, other: Array) -> Array:
    return np.divide(one, other, out=np.zeros_like(one, dtype=np.float64), where=other > 0)
