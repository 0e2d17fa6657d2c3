"""The problem every parametric learner solves, and the one place that states its scaling.

    R(w, b) = alpha * penalty(w) + sum_i q_i loss(w.x_i + b, y_i),  q_i = weight_i / sum_k weight_k

A learner translates its own parameters into this form. With several targets the objective is the
sum over targets.

*A lower bound from any gradient.* For every u with sum_i q_i u_i = 0 (if there is an intercept)
and v with alpha v = -sum_i q_i u_i x_i, Fenchel's inequality gives

    R(w, b) - min R  <=  sum_i q_i FY_loss(s_i, u_i) + alpha FY_penalty(w, v)

where FY(s, u) = f(s) + f*(u) - s u >= 0. The terms vanish at the optimum for u_i = loss'(s_i), so
that gradient, moved into the set where the bound is finite, is the candidate: it is balanced over
the rows; without penalty, its projection on the columns is removed; then it is scaled until every
conjugate is finite.
"""

from __future__ import annotations

from collections.abc import Callable
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
EPS = float(np.finfo(np.float64).eps)
SUMMED_ROWS = 1 << 15  # rows whose losses are worked out at a time
NO_SLOPE = 1e-12  # of the sum of absolute values: what rounding leaves of a slope that was projected out


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
        return self.penalty_value(w) + self._risk(*self._rows(w, b, blocks))

    def constant_loss(self, score: Array, blocks: Blocks) -> float:
        """Return the weighted loss of giving every row these scores; X is not read."""

        def weighted_loss(block: Block) -> float:
            if self.loss.labels == "class":  # rows of one class have one loss
                y, count = self.targets(block).astype(np.intp), score.shape[0]
                each = self.loss.value(np.broadcast_to(score, (count, count)), np.arange(count))
                return float(np.bincount(y, normalized_weights(block, blocks), count) @ each)
            same = np.broadcast_to(score, (block.y.shape[0], score.shape[0]))
            return float(
                (normalized_weights(block, blocks) @ self.loss.value(same, self.targets(block))).sum()
            )

        return blocks.reduce(weighted_loss, float.__add__)

    def constant_objective(self, blocks: Blocks) -> float:
        """Return the objective of predicting the mean, or zero: the scale for gaps.

        The last term is what rounding leaves of a constant target.
        """
        origin = np.zeros(self.n_scores(blocks))
        at_zero = self.constant_loss(origin, blocks)
        if not self.fit_intercept or self.loss.labels != "real":
            return at_zero
        mean = blocks.reduce(lambda block: normalized_weights(block, blocks) @ _float64(block.y), np.add)
        return self.constant_loss(mean, blocks) + 1e-30 * at_zero

    def n_scores(self, blocks: Blocks) -> int:
        """Return how many scores a row has: one a target, or one a class."""
        if self.loss.labels != "class":
            return blocks.n_targets
        return 1 + blocks.reduce(lambda block: int(block.y.max()), max)

    def gap(self, w: Array, b: Array, blocks: Blocks, dual: Array | None = None) -> float:
        """Return an upper bound on R(w, b) - min R, by the inequality above.

        ``dual`` is a better candidate for u than the gradient, one row of scores a row: at a kink
        the gradient is any slope, and only the solver knows which one balances the others.
        """
        return self._objective_and_gap(w, b, blocks, dual)[1]

    def certify(
        self,
        kind: str,
        w: Array,
        b: Array,
        blocks: Blocks,
        tolerance: float,
        dual: Array | None = None,
    ) -> Certificate:
        """Return the certificate of these parameters, from the data alone."""
        objective, gap = self._objective_and_gap(w, b, blocks, dual)
        return Certificate(kind, objective, gap, self.constant_objective(blocks), tolerance)

    def _objective_and_gap(
        self, w: Array, b: Array, blocks: Blocks, dual: Array | None
    ) -> tuple[float, float]:
        score, y, q = self._rows(w, b, blocks)
        total = self.penalty_value(w) + self._risk(score, y, q)
        if not np.isfinite(total):
            return total, np.inf
        u = np.array(self.loss.gradient(score, y) if dual is None else dual, dtype=np.float64)
        if self.fit_intercept:
            u = BALANCE[self.loss.labels](u, y, q)
        if not self.penalised:
            u = self._without_projection(u, q, blocks)
            u = self._on_its_side(u, y)
        u[q == 0] = 0.0  # rows that do not count must not limit the others
        slope = _slope(u, q, blocks)
        t = self._penalty_fractions(slope, u, q, blocks) * self._loss_fractions(u, y)
        excess = _sum_rows(
            lambda rows: q[rows] @ self.loss.fenchel_young(score[rows], t * u[rows], y[rows]), q.size
        )
        return total, min(total, excess + self._penalty_excess(w, t * slope))

    def _rows(self, w: Array, b: Array, blocks: Blocks) -> tuple[Array, Array, Array]:
        """Return scores, targets and q of all rows, which are kept where the table is not."""
        q = _stack(blocks, lambda block: normalized_weights(block, blocks))
        return _all_scores(w, b, blocks), _stack(blocks, self.targets), q

    def _risk(self, score: Array, y: Array, q: Array) -> float:
        return _sum_rows(lambda rows: q[rows] @ self.loss.value(score[rows], y[rows]), q.size)

    def targets(self, block: Block) -> Array:
        """Return y as the loss wants it: a column a score, or plain class numbers."""
        return block.y[:, 0] if self.loss.labels == "class" else block.y

    def penalty_value(self, w: Array) -> float:
        """Return alpha * penalty(w), infinite where a weight is negative and must not be."""
        if self.penalised:
            with np.errstate(all="ignore"):
                return self.alpha * self.penalty.value(w)
        return np.inf if self.penalty.positive and np.any(w < 0) else 0.0

    def _penalty_excess(self, w: Array, slope: Array) -> float:
        if self.penalised:
            return self.alpha * self.penalty.fenchel_young(w, -slope / self.alpha)
        return float(np.maximum(w * slope, 0.0).sum()) if self.penalty.positive else 0.0

    def _forbidden(self, slope: Array) -> Array:
        """Return what a problem without penalty forbids: any slope, or one below 0 if w >= 0."""
        return np.minimum(slope, 0.0) if self.penalty.positive else slope

    def _without_projection(self, u: Array, q: Array, blocks: Blocks) -> Array:
        """Return u moved along the columns of X until its slope is one that is not forbidden."""
        mean = _mean_row(blocks) if self.fit_intercept else np.zeros(blocks.n_columns)
        solve = _gram_solver(mean, blocks)
        if solve is None:
            return u
        # One pass leaves eps times the condition number; the second and third remove that too.
        for _ in range(3):
            beta = solve(self._forbidden(_slope(u, q, blocks)))
            u = u - _all_scores(beta, -mean @ beta, blocks)
        return u

    def _on_its_side(self, u: Array, y: Array) -> Array:
        """Return u without the signs that rounding gave to slopes that must not have them."""
        if not hasattr(self.loss, "domain"):
            return u
        low, high = self.loss.domain(y)
        return np.where(((low == 0) & (u < 0)) | ((high == 0) & (u > 0)), 0.0, u)

    def _penalty_fractions(self, slope: Array, u: Array, q: Array, blocks: Blocks) -> Array:
        """Return for each score the largest t <= 1 with a finite penalty conjugate at t u."""
        if self.penalised:
            t = np.array([self.penalty.feasible_fraction(-g / self.alpha) for g in slope.T])
        else:
            # Rounding leaves a slope of the usual size also to rows that have none.
            size = _slope(np.maximum(np.abs(u), q @ np.abs(u)), q, blocks, absolute=True)
            t = (np.abs(self._forbidden(slope)) <= NO_SLOPE * size).all(axis=0).astype(float)
        # The scores of a row are one vector where they share a label.
        return np.full_like(t, t.min()) if self.loss.labels == "class" else t

    def _loss_fractions(self, u: Array, y: Array) -> Array:
        """Return for each score the largest t <= 1 with a finite loss conjugate at t u."""
        if not hasattr(self.loss, "domain"):
            return np.ones(u.shape[1])
        low, high = self.loss.domain(y)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            limit = np.where(u > 0, high / u, np.where(u < 0, low / u, np.inf))
        return limit.min(axis=0, initial=1.0)


# -- balance: with an intercept the candidate has sum_i q_i u_i = 0 ---------------------------


def _remove_mean(u: Array, y: Array, q: Array) -> Array:
    return u - q @ u


def _even_sides(u: Array, y: Array, q: Array) -> Array:
    """Scale the positive or the negative entries down, so that each stays between 0 and itself."""
    up, down = np.maximum(u, 0.0), np.maximum(-u, 0.0)
    sums = q @ up, q @ down
    least = np.minimum(*sums)
    share_up, share_down = (np.divide(least, x, out=np.zeros_like(x), where=x > 0) for x in sums)
    return up * share_up - down * share_down


def _move_probability(u: Array, y: Array, q: Array) -> Array:
    """Take p = u + onehot(y) from the classes that have too much to those that have too little."""
    one_hot = np.asarray(y, dtype=np.intp)[:, None] == np.arange(u.shape[1])
    p = u + one_hot
    have, want = q @ p, q @ one_hot
    kept = np.where(have > want, want / np.where(have > 0, have, 1.0), 1.0)
    missing = want - have * kept
    if missing.sum() <= 0:
        return u
    freed = (p * (1.0 - kept)).sum(axis=1, keepdims=True)
    return p * kept + freed * (missing / missing.sum()) - one_hot


BALANCE: dict[str, Callable[[Array, Array, Array], Array]] = {
    "real": _remove_mean,
    "sign": _even_sides,
    "class": _move_probability,
}


# -- sums over the rows ----------------------------------------------------------------------


def scores(block: Block, w: Array, b: Array) -> Array:
    """Return w.x + b for the rows of a block, in float64."""
    return np.asarray(block.X @ w, dtype=np.float64) + b


def _float64(values: Array) -> Array:
    return np.asarray(values, dtype=np.float64)


def normalized_weights(block: Block, blocks: Blocks) -> Array:
    """Return q for the rows of a block."""
    if block.weight is None:
        return np.full(block.y.shape[0], 1.0 / blocks.weight_sum)
    return _float64(block.weight) / blocks.weight_sum


def _stack(blocks: Blocks, function: Callable[[Block], Array]) -> Array:
    parts = list(blocks.map(function))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _sum_rows(part: Callable[[slice], Array], n_rows: int) -> float:
    """Return the sum of part(rows) over all rows, a cacheful at a time."""
    starts = range(0, n_rows, SUMMED_ROWS)
    return float(sum(part(slice(start, start + SUMMED_ROWS)).sum() for start in starts))


def _all_scores(w: Array, b: Array, blocks: Blocks) -> Array:
    return _stack(blocks, lambda block: scores(block, w, b))


def _slope(u: Array, q: Array, blocks: Blocks, absolute: bool = False) -> Array:
    """Return sum_i q_i x_i u_i, of shape (columns, scores); of |x_i| where absolute."""

    def part(block: Block) -> Array:
        X = abs(block.X) if absolute else block.X
        return np.asarray(X.T @ (q[block.rows, None] * u[block.rows]))

    return blocks.reduce(part, np.add)


def _mean_row(blocks: Blocks) -> Array:
    return blocks.reduce(lambda block: np.asarray(normalized_weights(block, blocks) @ block.X), np.add)


def _gram_solver(mean: Array, blocks: Blocks) -> Callable[[Array], Array] | None:
    """Return slope -> the least beta with (sum_i q_i (x_i - mean) (x_i - mean)') beta = slope.

    None where d x d is out of reach. Columns are scaled to one length first, so that their units
    do not decide the rank.
    """
    if blocks.sparse and blocks.n_columns > MAX_SPARSE_GRAM:
        return None
    if blocks.sparse:
        gram = _sparse_gram(blocks) - np.outer(mean, mean)
        lengths = _lengths(np.sqrt(np.maximum(gram.diagonal(), 0.0)), mean)
        values, vectors = np.linalg.eigh(gram / np.outer(lengths, lengths))
        kept = values > values[-1:] * 1e-13 * gram.shape[0]
    else:
        root = _root(mean, blocks)
        lengths = _lengths(np.linalg.norm(root, axis=0), mean)
        _, singular, rotation = np.linalg.svd(root / lengths, full_matrices=False)
        kept = singular > singular[:1] * EPS * max(blocks.n_rows, root.shape[1])
        values, vectors = singular**2, rotation.T
    v, values, lengths = vectors[:, kept], values[kept, None], lengths[:, None]
    return lambda slope: v @ ((v.T @ (slope / lengths)) / values) / lengths


def _lengths(norms: Array, mean: Array) -> Array:
    # A constant column leaves rounding noise when centred, which must not be scaled up to length 1.
    lengths = np.where(norms <= 8 * EPS * np.abs(mean), np.abs(mean), norms)
    return np.where(lengths > 0, lengths, 1.0)


def _sparse_gram(blocks: Blocks) -> Array:
    def part(block: Block) -> Array:
        weighted = block.X.multiply(normalized_weights(block, blocks)[:, None]).tocsr()
        return np.asarray((block.X.T @ weighted).toarray(), dtype=np.float64)

    return blocks.reduce(part, np.add)


def _root(mean: Array, blocks: Blocks) -> Array:
    """Return the triangle R with R'R = sum_i q_i (x_i - mean) (x_i - mean)'."""

    def triangle(block: Block) -> Array:
        rows = np.sqrt(normalized_weights(block, blocks))[:, None] * (_float64(block.X) - mean)
        return np.asarray(np.linalg.qr(rows, mode="r"))

    def join(first: Array, second: Array) -> Array:
        return np.asarray(np.linalg.qr(np.vstack([first, second]), mode="r"))

    return blocks.reduce(triangle, join)
