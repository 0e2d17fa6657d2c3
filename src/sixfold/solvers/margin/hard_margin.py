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
from sixfold.risk.problem import EPS, Problem, scores
from sixfold.solvers.base import Solution
from sixfold.solvers.margin.widest_margin import widest_margin

Array = NDArray[Any]


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
    for _ in range(2):
        w, b = blocks.rounded(w), blocks.rounded(b)
        least = least_margin(w, b, blocks)
        grow = np.where((least > 0) & (least < 1), (1.0 + EPS) / least, 1.0)
        w, b = w * grow, b * grow
    return blocks.rounded(w), blocks.rounded(b)


def least_margin(w: Array, b: Array, blocks: Blocks) -> Array:
    """Return the least y (w.x + b) of each column of labels over the rows that count."""
    least = np.full(b.size, np.inf)
    for block in blocks:
        signed = (block.y * scores(block, w, b))[block.counts]
        least = np.minimum(least, signed.min(axis=0, initial=np.inf))
    return least


def certify_margin(
    problem: Problem, w: Array, b: Array, blocks: Blocks, tolerance: float, dual: Array
) -> Certificate:
    """Return how far |w|^2 / 2 is from its minimum at most; infinitely far if a row is inside the margin."""
    objective = 0.5 * float(np.square(w).sum())
    size = np.sqrt(np.square(w).sum(axis=0)) * _longest_row(blocks) + np.abs(b)
    rounding = (blocks.n_columns + 4) * max(EPS, float(np.finfo(blocks.dtype).eps)) * (size + 1.0)
    outside = bool((least_margin(w, b, blocks) >= 1.0 - rounding).all())
    y = np.concatenate([block.y for block in blocks])
    a = np.maximum(-dual * y, 0.0)
    if problem.fit_intercept:  # scaled so that both sides weigh the same
        up, down = np.where(y > 0, a, 0.0), np.where(y < 0, a, 0.0)
        heavy = np.maximum(up.sum(axis=0), down.sum(axis=0))
        a = up * _ratio(heavy, up.sum(axis=0)) + down * _ratio(heavy, down.sum(axis=0))
    slope = sum(np.asarray(block.X.T @ (a * y)[block.rows]) for block in blocks)
    lower = float(np.sum(_ratio(0.5 * a.sum(axis=0) ** 2, np.square(slope).sum(axis=0))))
    gap = max(objective - lower, 0.0) if outside and np.isfinite(lower) else np.inf
    return Certificate("duality gap", objective, gap, objective, tolerance, rounding=8 * EPS * objective)


def _ratio(one: Array, other: Array) -> Array:
    return np.divide(one, other, out=np.zeros_like(one, dtype=np.float64), where=other > 0)


def _longest_row(blocks: Blocks) -> float:
    """Return the length of the longest row, or more."""

    def longest(block: Any) -> float:
        X = block.X
        squares = np.einsum("ij,ij->i", X, X) if isinstance(X, np.ndarray) else X.multiply(X).sum(axis=1)
        return float(np.sqrt(np.max(np.asarray(squares), initial=0.0)))

    return blocks.reduce(longest, max)
