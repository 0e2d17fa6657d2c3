"""The problem every parametric learner solves, and the one place that states its scaling.

    R(w, b) = alpha * penalty(w) + sum_i q_i loss(w.x_i + b, y_i),  q_i = weight_i / sum_k weight_k

A learner translates its own parameters into this form. With several targets the objective is the
sum over targets.

How far a model is from the least R is bounded in :mod:`sixfold.risk.bounds`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.certificate import MACHINE_PRECISION, Certificate
from sixfold.data.blocks import Block, Blocks
from sixfold.risk.balance import BALANCE
from sixfold.risk.bounds import Bound, bound, bound_without_penalty, objective
from sixfold.risk.losses import Loss
from sixfold.risk.penalties import Penalty
from sixfold.risk.point import normalized_weights
from sixfold.risk.rank import LAST_DIGITS

__all__ = ["BALANCE", "EPS", "MOST_DOUBLED", "Problem", "normalized_weights", "scores"]

Array = NDArray[Any]

EPS = float(np.finfo(np.float64).eps)
MOST_DOUBLED = 1 << 24  # products that are formed in doubled precision, in a second or less
HOPELESS = 100.0  # times the gap that is asked for: more than rounding has brought about
MUCH_CLOSER = 0.1  # of a gap: what the tied one has to be
HARDLY_COUNTS = 0.5  # of the gap that is asked for: a penalty that may be left out of the bound
MOST_TIED = 1 << 29  # products behind the system that ties slopes to a penalty


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
        return objective(self, w, b, blocks)[0]

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
        if self.loss.labels == "sign":  # at zero both labels cost the same
            return blocks.n_targets * float(self.loss.value(np.zeros(1), np.ones(1))[0])
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
        """Return R(w, b) - min R or more, as computed: for solvers, which ask on the way.

        ``dual`` is a better candidate for u than the gradient, one row of scores a row: at a kink
        the gradient is any slope, and only the solver knows which one balances the others.
        """
        return bound(self, w, b, blocks, dual, rounding=False).gap

    def certify(
        self,
        kind: str,
        w: Array,
        b: Array,
        blocks: Blocks,
        tolerance: float,
        dual: Array | None = None,
        scale: float | None = None,
    ) -> Certificate:
        """Return the certificate of these parameters, from the data alone and with what rounding may do.

        ``scale`` is :meth:`constant_objective` where that is known.
        """
        return self.certify_with_dual(kind, w, b, blocks, tolerance, dual, scale)[0]

    def certify_with_dual(
        self,
        kind: str,
        w: Array,
        b: Array,
        blocks: Blocks,
        tolerance: float,
        dual: Array | None = None,
        scale: float | None = None,
        closer: bool = True,
    ) -> tuple[Certificate, Array | None]:
        """Return the certificate and a dual point to be kept beside it: None where any slopes will do.

        Where rounding is dear, slopes that are computed anew differ in their last bits and prove less.
        ``closer`` asks for all that can be done about rounding, which costs too much for a point that another
        solver is going to improve.
        """
        scale = self.constant_objective(blocks) if scale is None else scale
        found = bound(self, w, b, blocks, dual)
        enough = max(tolerance, MACHINE_PRECISION) * scale
        if closer and found.certain_gap > enough:
            other = self._closer_bound(found, enough, w, b, blocks, dual)
            found, dual = other, dual if other is found else other.u
        return self._certificate(kind, found, scale, tolerance), dual

    def _closer_bound(
        self, found: Bound, enough: float, w: Array, b: Array, blocks: Blocks, dual: Array | None
    ) -> Bound:
        """Return a bound with less rounding, or whose slopes balance the penalty exactly, where it helps."""
        entries = blocks.n_rows * blocks.n_columns * w.shape[1]
        if entries > MOST_DOUBLED:
            return found
        hardly_counts = self.penalised and self.penalty_value(w) <= HARDLY_COUNTS * enough
        for doubled in (False, True) if hardly_counts and not self.penalty.positive else ():
            if found.certain_gap > enough:
                other = bound_without_penalty(self, found, w, b, blocks, dual, doubled)
                found = min(found, other, key=lambda each: each.certain_gap)
        tied_to = w.size if self.penalty.quadratic else int(np.count_nonzero(w))
        # The slopes of classes sum to 0, which leaves open whose is short of what absolute values ask for.
        settled = self.penalty.quadratic or self.loss.labels != "class"
        tieable = self.penalised and settled and entries * tied_to <= MOST_TIED
        for tied, doubled in ((False, True), (True, False), (True, True)):
            # Beside absolute values the rounding of slopes is part of the gap as computed.
            hopeless = doubled and self.l1 == 0 and found.gap > HOPELESS * enough
            if found.certain_gap <= enough or (tied and not tieable) or hopeless:
                continue
            other = bound(self, w, b, blocks, dual, doubled=doubled, tied=tied)
            # Far from the optimum it is a matter of chance which slopes are tied.
            if not tied or other.certain_gap <= max(enough, MUCH_CLOSER * found.certain_gap):
                found = min(found, other, key=lambda each: each.certain_gap)
        return found

    def certify_zero(
        self, w: Array, b: Array, blocks: Blocks, scale: float, tolerance: float, notes: tuple[str, ...] = ()
    ) -> Certificate:
        """Return the certificate whose bound is zero, for lack of time or of rows: one pass, not many."""
        value, rounding = objective(self, w, b, blocks)
        total = value + rounding
        return Certificate("duality gap", total, total, scale, tolerance, notes=notes, rounding=rounding)

    def _certificate(self, kind: str, found: Bound, scale: float, tolerance: float) -> Certificate:
        gap, restricted = found.certain_gap, found.dependent.size > 0
        names = ", ".join(str(column) for column in found.dependent[:10])
        return Certificate(
            kind,
            found.upper,
            gap,
            scale,
            tolerance,
            notes=(LAST_DIGITS.format(names),) if restricted else (),
            rounding=gap - found.gap,
            unrestricted_bound=0.0 if restricted else None,
        )

    def targets(self, block: Block) -> Array:
        """Return y as the loss wants it: a column a score, or plain class numbers."""
        return block.y[:, 0] if self.loss.labels == "class" else block.y

    def penalty_value(self, w: Array) -> float:
        """Return alpha * penalty(w), infinite where a weight is negative and must not be."""
        if self.penalised:
            with np.errstate(all="ignore"):
                return self.alpha * self.penalty.value(w)
        return np.inf if self.penalty.positive and np.any(w < 0) else 0.0


# -- sums over the rows ----------------------------------------------------------------------


def scores(block: Block, w: Array, b: Array) -> Array:
    """Return w.x + b for the rows of a block, in float64."""
    return np.asarray(block.X @ w, dtype=np.float64) + b


def _float64(values: Array) -> Array:
    return np.asarray(values, dtype=np.float64)
