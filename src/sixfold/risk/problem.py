"""The problem every parametric learner solves, and the one place that states its scaling.

    R(w, b) = alpha * penalty(w) + sum_i q_i loss(w.x_i + b, y_i),  q_i = weight_i / sum_k weight_k

A learner translates its own parameters into this form. With several targets the objective is the
sum over targets.

*A lower bound from any gradient.* For every u with sum_i q_i u_i = 0 (if there is an intercept)
and v with alpha v = -sum_i q_i u_i x_i, Fenchel's inequality gives

    R(w, b) - min R  <=  sum_i q_i FY_loss(s_i, u_i) + alpha FY_penalty(w, v)

where FY(s, u) = f(s) + f*(u) - s u >= 0. The terms vanish at the optimum for u_i = loss'(s_i), so
that gradient, moved into the set where the bound is finite, is the candidate: its mean is removed;
without penalty, its projection on the columns is removed; then it is scaled until every conjugate
is finite.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.certificate import Certificate
from sixfold.data.blocks import Block, Blocks
from sixfold.risk.losses import Loss
from sixfold.risk.penalties import Penalty

Array = NDArray[Any]

# Columns of a sparse table up to which its d x d Gram matrix is formed to project on its columns.
MAX_SPARSE_GRAM = 4000


@dataclass(frozen=True)
class Problem:
    """A loss, a penalty and the weight between them."""

    loss: Loss
    penalty: Penalty
    alpha: float = 0.0
    fit_intercept: bool = True

    @property
    def penalised(self) -> bool:
        """Whether the penalty counts at all."""
        return self.alpha > 0 and self.penalty.l1_ratio is not None

    @property
    def l1(self) -> float:
        """The factor of the absolute values, alpha included."""
        return self.alpha * self.penalty.l1

    @property
    def l2(self) -> float:
        """The factor of half the squares, alpha included."""
        return self.alpha * self.penalty.l2

    def objective(self, w: Array, b: Array, blocks: Blocks) -> float:
        """Return R(w, b); w has shape (columns, scores), b has shape (scores,)."""

        def weighted_loss(block: Block) -> float:
            value = self.loss.value(scores(block, w, b), block.y)
            return float((_shares(block, blocks) @ value).sum())

        return self._penalty_value(w) + blocks.reduce(weighted_loss, float.__add__)

    def constant_objective(self, blocks: Blocks) -> float:
        """Return the objective of predicting the mean, or zero: the scale for gaps.

        The last term is what rounding leaves of a constant target.
        """
        zero = np.zeros((blocks.n_columns, blocks.n_targets))
        origin = np.zeros(blocks.n_targets)
        at_zero = self.objective(zero, origin, blocks)
        if not self.fit_intercept or self.loss.labels != "real":
            return at_zero
        mean = blocks.reduce(lambda block: _shares(block, blocks) @ _float64(block.y), np.add)
        return self.objective(zero, mean, blocks) + 1e-30 * at_zero

    def gap(self, w: Array, b: Array, blocks: Blocks) -> float:
        """Return an upper bound on R(w, b) - min R, by the inequality above."""
        total = self.objective(w, b, blocks)
        if not np.isfinite(total):
            return np.inf
        rows = [(block, scores(block, w, b), _shares(block, blocks)) for block in blocks]
        u = [_float64(self.loss.gradient(score, block.y)) for block, score, _ in rows]
        if self.fit_intercept:
            mean = sum(q @ part for (_, _, q), part in zip(rows, u, strict=True))
            u = [part - mean for part in u]
        slope = sum(
            _transposed(block.X) @ (q[:, None] * part)
            for (block, _, q), part in zip(rows, u, strict=True)
        )
        if not self.penalised:
            # What the constraint alpha v = -slope forbids: all of it, or the part below zero under
            # w >= 0.
            forbidden = np.minimum(slope, 0.0) if self.penalty.positive else slope
            beta = _solve_gram(forbidden, blocks, self.fit_intercept)
            if beta is None:
                return total  # losses and penalties are never negative
            mean_x = _mean_row(blocks) if self.fit_intercept else np.zeros(blocks.n_columns)
            u = [
                part - (block.X @ beta - mean_x @ beta)
                for (block, _, _), part in zip(rows, u, strict=True)
            ]
            slope = slope - forbidden
        fractions = self._feasible_fractions(u, slope, rows)
        excess = 0.0
        for (block, score, q), part in zip(rows, u, strict=True):
            excess += float((q @ self.loss.fenchel_young(score, part * fractions, block.y)).sum())
        return min(total, excess + self._penalty_excess(w, slope * fractions))

    def certify(
        self, kind: str, w: Array, b: Array, blocks: Blocks, tolerance: float
    ) -> Certificate:
        """Return the certificate of these parameters, from the data alone."""
        return Certificate(
            kind=kind,
            objective=self.objective(w, b, blocks),
            gap=self.gap(w, b, blocks),
            scale=self.constant_objective(blocks),
            tolerance=tolerance,
        )

    def _penalty_value(self, w: Array) -> float:
        if self.penalised:
            return self.alpha * self.penalty.value(w)
        return np.inf if self.penalty.positive and np.any(w < 0) else 0.0

    def _penalty_excess(self, w: Array, slope: Array) -> float:
        if self.penalised:
            return self.alpha * self.penalty.fenchel_young(w, -slope / self.alpha)
        return float(np.abs(w * slope).sum()) if self.penalty.positive else 0.0

    def _feasible_fractions(self, u: list[Array], slope: Array, rows: list[Any]) -> Array:
        """Return for each score the largest t <= 1 for which every conjugate at t u is finite."""
        fractions = np.ones(slope.shape[1])
        if self.penalised:
            fractions = np.array(
                [self.penalty.feasible_fraction(-g / self.alpha) for g in slope.T]
            )
        if not hasattr(self.loss, "domain"):
            return fractions
        for part, (block, _, _) in zip(u, rows, strict=True):
            low, high = self.loss.domain(_float64(block.y))
            with np.errstate(divide="ignore", invalid="ignore"):
                limit = np.where(part > 0, high / part, np.where(part < 0, low / part, np.inf))
            fractions = np.minimum(fractions, limit.min(axis=0, initial=1.0))
        return fractions


def scores(block: Block, w: Array, b: Array) -> Array:
    """Return w.x + b for the rows of a block, in float64."""
    return np.asarray(block.X @ w, dtype=np.float64) + b


def _float64(values: Array) -> Array:
    return np.asarray(values, dtype=np.float64)


def _transposed(X: Any) -> Any:
    return X.T


def _shares(block: Block, blocks: Blocks) -> Array:
    if block.weight is None:
        return np.full(block.y.shape[0], 1.0 / blocks.weight_sum)
    return _float64(block.weight) / blocks.weight_sum


def _mean_row(blocks: Blocks) -> Array:
    return blocks.reduce(lambda block: np.asarray(_shares(block, blocks) @ block.X), np.add)


def _solve_gram(slope: Array, blocks: Blocks, centred: bool) -> Array | None:
    """Return the least beta with (sum_i q_i x_i x_i') beta = slope, x centred.

    None where d x d is out of reach.
    """
    mean = _mean_row(blocks) if centred else np.zeros(blocks.n_columns)
    if blocks.sparse:
        if blocks.n_columns > MAX_SPARSE_GRAM:
            return None
        gram = blocks.reduce(
            lambda block: (
                block.X.T @ block.X.multiply(_shares(block, blocks)[:, None])
            ).toarray(),
            np.add,
        ) - np.outer(mean, mean)
        values, vectors = np.linalg.eigh(gram)
        kept = values > values[-1:] * 1e-13 * max(gram.shape[0], 1)
        v = vectors[:, kept]
        return v @ ((v.T @ slope) / values[kept, None])

    def triangle(block: Block) -> Array:
        rows = np.sqrt(_shares(block, blocks))[:, None] * (_float64(block.X) - mean)
        return np.asarray(np.linalg.qr(rows, mode="r"))

    root = blocks.reduce(
        triangle, lambda a, b: np.asarray(np.linalg.qr(np.vstack([a, b]), mode="r"))
    )
    norms = np.linalg.norm(root, axis=0)
    norms[norms == 0] = 1.0
    _, singular, rotation = np.linalg.svd(root / norms, full_matrices=False)
    kept = singular > singular[:1] * np.finfo(float).eps * max(blocks.n_rows, blocks.n_columns)
    v = rotation[kept].T
    return v @ ((v.T @ (slope / norms[:, None])) / singular[kept, None] ** 2) / norms[:, None]
