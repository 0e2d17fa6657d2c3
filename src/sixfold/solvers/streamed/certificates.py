"""The duality gap of a model of rows that can only be reduced: two passes, d numbers each.

    R(w, b) - min R  <=  sum_i q_i FY_loss(s_i, u_i) + FY_penalty(w, -sum_i q_i u_i x_i),    sum_i q_i u_i = 0

for u in the domain of the loss: the bound of :mod:`sixfold.risk.bounds`, whose sums are all there is to it.

1. The first pass sums the losses and the slopes u = loss'(s): how much of them is positive and negative (of
   classes: how much probability each has too much).
2. The second scales the larger side down (takes that probability to the other classes), which balances u for
   the intercept, and sums FY, the slopes of the columns, and what their rounding is bounded by.

Scores and slopes are summed about the mean row, as in memory; how far rounding may be off is bounded by the
same inequalities, with one addition more for each block (:mod:`sixfold.risk.candidate`).

*Without a penalty* every slope has to be 0, and at the end of Newton's method it nearly is. What is left, e,
is removed by moving u_i by a_i z_i.beta, H beta = -e, with H = sum_i q_i a_i z_i z_i' and
a_i = |u_i| (1 - |u_i|) (logistic) or |u_i|; with tau the largest share of u_i that this takes, u divided by
1 + tau is in the domain, and costs 2 tau sum_i q_i f(s_i) at most. One pass sums H, one more finds tau.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from sixfold.certificate import Certificate
from sixfold.data.blocks import Block, Blocks
from sixfold.risk.losses import LOSSES, log_softmax
from sixfold.risk.problem import Problem
from sixfold.risk.rounding import UNDERFLOW, U, pairwise, sum_rounding
from sixfold.solvers.base import OUT_OF_TIME
from sixfold.solvers.streamed.columns import LONGEST_PIECE, ColumnSpread, pieces
from sixfold.solvers.streamed.sums import add_each

Array = NDArray[Any]

TINY = 1e-280  # slopes below it lose digits when they are multiplied
LARGEST_MOVE = 0.5  # of every slope: beyond that no bound is claimed
OTHER_ORDER = 1e-3  # of the excess: whoever balances classes in another order ends elsewhere
LOST = 64.0 * U  # times the order: what a factor of d x d sums may be off, columns of length 1


# -- passes --------------------------------------------------------------------------------------------------


def _scored(block: Block, rows: slice, w: Array, c: Array, centre: Array) -> tuple[Array, Array, Array]:
    """Return rows about the centre, their weights and their scores."""
    Z = np.asarray(block.X[rows], dtype=np.float64) - centre
    q = np.ones(Z.shape[0]) if block.weight is None else np.asarray(block.weight[rows], dtype=np.float64)
    return Z, q, Z @ w + c


def _slopes(name: str, score: Array, y: Array, q: Array) -> Array:
    """Return the slopes of the loss, 0 where a row does not count."""
    u = np.asarray(LOSSES[name].gradient(score, y))
    return np.where((q[:, None] > 0) & (np.abs(u) > TINY), u, 0.0)


def _targets(name: str, block: Block, rows: slice) -> Array:
    return block.y[rows, 0] if LOSSES[name].labels == "class" else np.asarray(block.y[rows], dtype=np.float64)


def losses_and_sides(block: Block, name: str, w: Array, c: Array, centre: Array) -> tuple[Any, ...]:
    """Return the sums of the first pass: losses, slopes, their squares, those of scores, the wrong rows.

    Of slopes the positive and the negative ones; of classes the excess of probability and probability itself.
    """
    total: tuple[Any, ...] | None = None
    for rows in pieces(block):
        _, q, score = _scored(block, rows, w, c, centre)
        y = _targets(name, block, rows)
        value = LOSSES[name].value(score, y)
        u = _slopes(name, score, y, q)
        column = q[:, None]
        if LOSSES[name].labels == "class":
            own = np.arange(q.size), np.asarray(y, dtype=np.intp)
            p = u.copy()
            p[own] += 1.0
            sides = pairwise(column * u), pairwise(column * p)
            lead = score[own] - np.where(np.eye(w.shape[1], dtype=bool)[own[1]], -np.inf, score).max(axis=1)
            value = value[:, None]
        else:
            sides = pairwise(column * np.maximum(u, 0.0)), pairwise(column * np.maximum(-u, 0.0))
            lead = (y * score).min(axis=1)
        part = (
            pairwise(column * value),
            *sides,
            pairwise(column * u**2),
            pairwise(column * score**2),
            int(np.count_nonzero((lead <= 0.0) & (q > 0))),
        )
        total = part if total is None else add_each(total, part)
    assert total is not None
    return total


def balanced_sums(
    block: Block, name: str, w: Array, c: Array, centre: Array, kept: Array, share: Array
) -> tuple[Any, ...]:
    """Return the sums of the second pass at balanced slopes.

    FY, the slopes of the columns and in all, and sums of |u|, u^2 and |s u|. Of numbers that are not classes,
    ``kept`` and ``share`` are what positive and negative slopes are multiplied by.
    """
    total: tuple[Any, ...] | None = None
    for rows in pieces(block):
        Z, q, score = _scored(block, rows, w, c, centre)
        y = _targets(name, block, rows)
        u = _slopes(name, score, y, q)
        column = q[:, None]
        extra: tuple[Any, ...] = ()
        if LOSSES[name].labels == "class":
            own = np.arange(q.size), np.asarray(y, dtype=np.intp)
            p = u.copy()
            p[own] += 1.0
            taken = p * (1.0 - kept)
            u = u - taken + taken.sum(axis=1, keepdims=True) * share
            u[own] = 0.0
            u[own] = -u.sum(axis=1)
            p = np.maximum(u, 0.0)
            p[own] = np.maximum(1.0 + u[own], 0.0)
            ratio = np.log(np.where(p > 0, p, 1.0)) - np.where(p > 0, log_softmax(score), 0.0)
            H = np.diag(q @ p) - p.T @ (column * p)
            extra = (H, pairwise(column * (p * ratio**2).sum(axis=1, keepdims=True)))
            extra = (*extra, np.square(Z).T @ (column * np.abs(u)))
            young = LOSSES[name].fenchel_young(score, u, y)[:, None]
        else:
            u = np.maximum(u, 0.0) * kept - np.maximum(-u, 0.0) * share
            young = LOSSES[name].fenchel_young(score, u, y)
        part = (
            pairwise(column * young),
            Z.T @ (column * u),
            pairwise(column * u),
            pairwise(column * np.abs(u)),
            pairwise(column * u**2),
            pairwise(column * np.abs(score * u)),
            *extra,
        )
        total = part if total is None else add_each(total, part)
    assert total is not None
    return total


def room_sums(block: Block, name: str, w: Array, c: Array, centre: Array, kept: Array, share: Array) -> Array:
    """Return sum_i weight_i a_i z_i z_i', z = (1, x - centre), of one score."""
    total = np.zeros((w.shape[0] + 1, w.shape[0] + 1))
    for rows in pieces(block):
        Z, q, score = _scored(block, rows, w, c, centre)
        u = _slopes(name, score, _targets(name, block, rows), q)
        u = np.maximum(u, 0.0) * kept - np.maximum(-u, 0.0) * share
        z = np.column_stack([np.ones(q.size), Z]) * np.sqrt(q[:, None] * _room(name, u))
        total += z.T @ z
    return total


def largest_share(
    block: Block, name: str, w: Array, c: Array, centre: Array, kept: Array, share: Array, inverse: Array
) -> float:
    """Return the largest a_i |R^-T z_i| / |u_i| of one score, of rows that count."""
    largest = 0.0
    for rows in pieces(block):
        Z, q, score = _scored(block, rows, w, c, centre)
        u = _slopes(name, score, _targets(name, block, rows), q)
        u = np.maximum(u, 0.0) * kept - np.maximum(-u, 0.0) * share
        size = np.abs(u[:, 0])
        ratio = np.where(size > 0, _room(name, u)[:, 0] / np.where(size > 0, size, 1.0), 0.0)
        z = np.column_stack([np.ones(q.size), Z]) @ inverse
        largest = max(largest, float((np.sqrt(np.einsum("ij,ij->i", z, z)) * ratio).max(initial=0.0)))
    return largest


def _room(name: str, u: Array) -> Array:
    size = np.abs(u)
    return size * np.maximum(1.0 - size, 0.0) if name == "logistic" else size


# -- the bound -----------------------------------------------------------------------------------------------


class StreamedBound:
    """Objective and gap of a model with signs or classes as targets, and what rounding may have done.

    Attributes
    ----------
    upper, gap, rounding : float
        What the objective is at most, its distance to what no model is below, and the part of rounding in it.
    wrong : int
        Rows that count whose own class is not on top.
    """

    def __init__(
        self, problem: Problem, blocks: Blocks, w: Array, b: Array, spread: ColumnSpread, bounded: bool = True
    ) -> None:
        self.problem, self.blocks, self.w, self.b = problem, blocks, w, b
        self.centre = spread.mean if problem.fit_intercept else np.zeros(blocks.n_columns)
        self.lengths = spread.lengths(self.centre) * (1.0 + (spread.depth + 64) * U)
        self.c = b + self.centre @ w
        self.name, self.classes = problem.loss.name, problem.loss.labels == "class"
        first = blocks.reduce(self._pass(losses_and_sides), add_each)
        total = blocks.weight_sum
        loss, one, other, squares, scores, self.wrong = first
        self.loss, self.squares = loss / total, np.sqrt(squares / total)
        self.delta = self._delta(np.sqrt(scores / total))
        parts = [w] if self.classes else [w[:, k : k + 1] for k in range(w.shape[1])]
        self.penalty = np.array([problem.penalty_value(part) for part in parts])
        # Of sums that are pairwise in pieces.
        self.few = sum_rounding(LONGEST_PIECE) + (spread.depth - LONGEST_PIECE) * U
        self.depth = spread.depth
        up = self._up()
        objective = self.loss + self.penalty
        down, excess = np.zeros_like(objective), objective
        if bounded and np.isfinite(objective).all():
            excess, down = self._excess(one / total, other / total)
        gaps = np.minimum(objective + up, excess + up + down)
        self.upper = float((objective + up).sum())
        self.gap = min(float(gaps.sum()) + 8.0 * U * self.upper, self.upper)
        computed = float(np.minimum(objective, excess).sum())
        self.rounding = max(self.gap - computed, 0.0)

    def _pass(self, function: Any, **more: Any) -> Any:
        return partial(function, name=self.name, w=self.w, c=self.c, centre=self.centre, **more)

    def _delta(self, scores: Array) -> Array:
        """Return how far the scores of each column of w are off, as a root mean square."""
        size = self.lengths @ np.abs(self.w) + np.abs(self.b) + np.abs(self.centre) @ np.abs(self.w)
        return (self.w.shape[0] + 8) * U * size + 2.0 * U * scores

    def _together(self, by_score: Array) -> Array:
        return by_score.sum(keepdims=True) if self.classes else by_score

    def _up(self) -> Array:
        loss = self.problem.loss
        moved = self.squares * self.delta + 0.5 * loss.curvature_bound * self.delta**2
        if not loss.smooth:
            moved = self.delta
        size = self.loss * (self.few + 8.0 * U) + self.penalty * (self.w.shape[0] + 8) * U
        return self._together(moved) * (1.0 + 1e-9) + size + UNDERFLOW * self.w.any()

    def _shares(self, one: Array, other: Array) -> tuple[Array, Array]:
        """Return what balances the slopes: kept and share."""
        ones = np.ones(self.w.shape[1])
        if not self.problem.fit_intercept:
            return ones, np.zeros_like(ones) if self.classes else ones
        if self.classes:
            surplus, missing = np.maximum(one, 0.0), np.maximum(-one, 0.0)
            if missing.sum() <= 0:
                return ones, np.zeros_like(ones)
            return 1.0 - surplus / np.where(surplus > 0, other, 1.0), missing / missing.sum()
        least = np.minimum(one, other)
        up, down = (np.divide(least, x, out=np.zeros_like(x), where=x > 0) for x in (one, other))
        return up, down

    def _excess(self, one: Array, other: Array) -> tuple[Array, Array]:
        """Return R minus the lower bound as computed, and how far that may be too low."""
        problem, total, w = self.problem, self.blocks.weight_sum, self.w
        kept, share = self._shares(one, other)
        found = self.blocks.reduce(self._pass(balanced_sums, kept=kept, share=share), add_each)
        young, slope, left, size, squares, products = (part / total for part in found[:6])
        norm = np.sqrt(squares) * (1.0 + 1e-9)
        error = (self.depth + 8) * U * np.outer(self.lengths, norm)
        left_error = self.few * norm
        if not problem.fit_intercept:
            left, left_error = np.zeros_like(left), np.zeros_like(left_error)
        tau = (np.abs(left) + left_error) / np.where(size > 0, size, 1.0) * (1.0 + 1e-6)
        length = np.zeros(1)
        if self.classes:
            length = self._length_of_classes(left, left_error, found[6] / total)
            # No u moves by more than sqrt(|u| sum_c p_c m_c^2).
            error = error + min(float(length[0]), 1.0) * np.sqrt(found[8] / total)
        elif not problem.penalised:
            tau = self._balanced_tau(slope, error, left, left_error, kept, share)
            slope, error = np.zeros_like(slope), np.zeros_like(error)
        else:
            error = error + np.outer(self.lengths, 2.0 * np.minimum(tau, LARGEST_MOVE) * norm)
        error = error * (1.0 + 1e-6) + 8.0 * U * np.abs(slope)
        t = np.ones(slope.shape[1])
        if problem.penalised and problem.penalty.l2 == 0:
            t = self._fractions(slope, error)
            found = self.blocks.reduce(self._pass(balanced_sums, kept=t * kept, share=t * share), add_each)
            young, _, _, size, _, products = (part / total for part in found[:6])
            slope, error = t * slope, error * (1.0 + 8.0 * U)
        penalty, more = np.zeros(self.penalty.size), np.zeros(self.penalty.size)
        if problem.penalised:
            parts = [slice(None)] if self.classes else [slice(k, k + 1) for k in range(w.shape[1])]
            for k, part in enumerate(parts):
                penalty[k], more[k] = self._penalty(w[:, part], slope[:, part], error[:, part])
        down = self._together(t * norm * self.delta) + (self.few + 8.0 * U) * (self.loss + young)
        down = down + self.penalty * (w.shape[0] + 8) * U + more
        terms = 2.0 * self.loss + young
        if self.classes:
            log_ratio = math.sqrt(max(float(found[7][0]) / total, 0.0)) * (1.0 + 1e-6) + 1e-9
            cost = (1.0 + 1e-6) * (log_ratio * length + length**2)
            down = down + np.where(length < LARGEST_MOVE, cost, np.inf)
            terms = terms + 4.0 * w.shape[1] + self.loss + 1.0 + math.log(w.shape[1])
        else:
            cost = 2.0 * np.minimum(tau + 8.0 * U, LARGEST_MOVE) * self.loss
            down = down + np.where(tau <= LARGEST_MOVE, cost, np.inf)
            terms = terms + 2.0 * products + 2.0 * size + 2.0
        excess = young + penalty
        down = down + 16.0 * U * (terms + excess)
        return excess, down + (OTHER_ORDER * excess if self.classes else 0.0)

    def _fractions(self, slope: Array, error: Array) -> Array:
        """Return for each score by what to shorten u, so that absolute values allow its slopes."""
        error = error + 4.0 * U * np.abs(slope)
        largest = (np.abs(slope) + error).max(axis=0, initial=0.0) * (1.0 + 16.0 * U)
        return np.asarray(self.problem.l1 / np.maximum(largest, self.problem.l1))

    def _length_of_classes(self, left: Array, left_error: Array, H: Array) -> Array:
        """Return the root mean square of the moves that balance the classes exactly."""
        if not left.any() and not left_error.any():
            return np.zeros(1)
        free = np.delete(np.arange(H.shape[0]), int(np.argmax(np.diag(H))))
        values, vectors = np.linalg.eigh(H[np.ix_(free, free)])
        least = float(values[0]) - 64.0 * U * float(values[-1])
        if not least > 0:
            return np.full(1, math.inf)
        e = vectors.T @ left[free] / np.sqrt(values)
        return np.array(
            [(np.linalg.norm(e) + np.linalg.norm(left_error[free]) / math.sqrt(least)) * (1 + 1e-6)]
        )

    def _balanced_tau(
        self, slope: Array, error: Array, left: Array, left_error: Array, kept: Array, share: Array
    ) -> Array:
        """Return for each score what share of a slope has to move for all columns to be balanced."""
        taus = np.zeros(slope.shape[1])
        ones = int(self.problem.fit_intercept)
        for k in range(slope.shape[1]):
            mine: dict[str, Any] = {"kept": kept[k : k + 1], "share": share[k : k + 1]}
            one = partial(
                room_sums,
                name=self.name,
                w=self.w[:, k : k + 1],
                c=self.c[k : k + 1],
                centre=self.centre,
                **mine,
            )
            H = (
                self.blocks.reduce(_of_target(one, k), np.add)[1 - ones :, 1 - ones :]
                / self.blocks.weight_sum
            )
            e = np.concatenate([left[k : k + 1], slope[:, k]])[1 - ones :]
            off = np.concatenate([left_error[k : k + 1], error[:, k]])[1 - ones :]
            scale = np.sqrt(H.diagonal())
            used = scale > 0
            H, scale = H[np.ix_(used, used)] / np.outer(scale[used], scale[used]), scale[used]
            R, failed = lapack.dpotrf(H, lower=0, clean=1)
            inverse, singular = lapack.dtrtri(R, lower=0) if not failed else (R, 1)
            lost = (self.depth + 8) * scale.size * U * float(np.linalg.norm(inverse)) ** 2
            if failed or singular or not lost < 0.5 or off[~used].any():
                taus[k] = math.inf
                continue
            length = np.linalg.norm(inverse.T @ (e[used] / scale))
            length += np.linalg.norm(inverse) * np.linalg.norm(off[used] / scale)
            whole = np.zeros((self.w.shape[0] + 1, scale.size))
            whole[1 - ones :][used] = inverse / scale[:, None]
            most = partial(
                largest_share, name=self.name, w=self.w[:, k : k + 1], c=self.c[k : k + 1],
                centre=self.centre, inverse=whole, **mine,
            )  # fmt: skip
            largest = self.blocks.reduce(_of_target(most, k), max)
            taus[k] = largest * float(length) * (1.0 + 1e-6) / (1.0 - lost) ** 2
        return taus

    def _penalty(self, w: Array, slope: Array, error: Array) -> tuple[float, float]:
        """Return the penalty's part of the excess, and by how much it grows at most (squares in it)."""
        penalty, alpha = self.problem.penalty, self.problem.alpha
        error = error + 4.0 * U * (np.abs(slope) + alpha * np.abs(w))
        excess = alpha * penalty.fenchel_young(w, -slope / alpha)
        v = -slope / alpha
        if penalty.l2 == 0:
            return excess, float((np.abs(w) * error).sum()) + 8.0 * U * alpha * penalty.value(w)
        z = np.copysign(penalty.excess(v), v) / penalty.l2
        away = float((np.abs(w - z) * error).sum())
        return excess, away + float(np.square(error).sum()) / (2.0 * alpha * penalty.l2)

    def certificate(self, scale: float, tolerance: float, notes: tuple[str, ...] = ()) -> Certificate:
        """Return the certificate of this bound."""
        return Certificate(
            "duality gap", self.upper, self.gap, scale, tolerance, notes=notes, rounding=self.rounding
        )


def _of_target(function: Any, target: int) -> Any:
    """Return the function of a block that has one of its targets alone."""
    return partial(_with_target, function=function, target=target)


def _with_target(block: Block, function: Any, target: int) -> Any:
    return function(Block(block.X, block.y[:, target : target + 1], block.weight, block.start))


def certify(
    problem: Problem,
    blocks: Blocks,
    w: Array,
    b: Array,
    spread: ColumnSpread,
    scale: float,
    tolerance: float,
    hurried: bool = False,
) -> tuple[Certificate, int]:
    """Return the certificate, and how many rows are wrong; ``hurried``: in one pass, with 0 as the bound."""
    found = StreamedBound(problem, blocks, w, b, spread, bounded=not hurried)
    notes = (OUT_OF_TIME,) if hurried else ()
    return found.certificate(scale, tolerance, notes), found.wrong
