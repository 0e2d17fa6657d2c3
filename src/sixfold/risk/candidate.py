"""A dual point, moved to where its bound is finite in exact arithmetic, and the bound it gives.

    R(w, b) - min R  <=  sum_i q_i FY_loss(s_i, u_i) + FY_penalty(w, -sum_i q_i u_i x_i)

where sum_i q_i u_i z_i = 0, z the columns without penalty; see :mod:`sixfold.risk.bounds`.

1. *Scores* off by delta lower the bound by |u| delta at most.
2. *Balance.* :mod:`sixfold.risk.balance` moves u_i by a_i z_i.beta, no more than tau of what it may. For the
   squared loss the move costs what |R^-T e| adds to |s - y - u|. For others u is divided by 1 + tau
   afterwards, so that every u_i has become shorter by a factor between (1 - tau) / (1 + tau) and 1, and since
   FY(s, .) is convex and FY(s, 0) = f(s) this costs at most 2 tau sum_i q_i f(s_i). Classes stay in the
   domain for tau <= 1/2. With m_ik how far p_ik moves relative to itself, sum_k p_k m_k = 0, and FY grows by
   sum_k p_k m_k log(p_k / softmax(s)_k) + p_k (1 + m_k) log(1 + m_k) at most, which is |R^-T e| sqrt(sum_i
   q_i sum_k p_ik log(p_ik / softmax(s_i)_k)^2) + |R^-T e|^2 in all. No u_ik moves by more than sqrt(|u_ik|
   sum_l p_il m_il^2), and so slopes by |R^-T e| sqrt(sum_i q_i |u_ik| z_ij^2).
3. *Penalty.* With slopes off by E_j, FY_penalty grows by |w - z| |E| + |E|^2 / (2 l2), z where its
   conjugate is attained; for absolute values alone u is made shorter until |v_j| + E_j <= l1.
   Where that is too much, u is moved as in the second step to where slopes are what the penalty asks for.
4. *Sums* of terms that are never negative are pairwise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.data.blocks import MemoryBlocks
from sixfold.risk.balance import BALANCE, CERTAIN, Balance, exactly_whole, whole
from sixfold.risk.losses import log_softmax
from sixfold.risk.point import Point
from sixfold.risk.rank import ColumnSpace, column_space
from sixfold.risk.rounding import U, sum_rounding

Array = NDArray[Any]

MAX_SPARSE_COLUMNS = 4000  # of a sparse table up to which the d x d matrix of its products is formed
MAX_CLASS_SYSTEM = 1000  # unknowns of the system that moves the probabilities of several classes
MOVES, MOST_MOVES = 3, 12  # each leaves of the slope eps times the condition number
FAR_PROBABILITY = 0.1  # of one
FALLING, NEARLY_CERTAIN = 0.5, 1e-4  # of slopes of at most 1e-4 a move leaves less than half
TINY = 1e-280  # slopes below it lose digits when they are multiplied
NEAR = 4.0  # times the rounding of a slope: from there on absolute values may forbid it
NEARLY_BOUND = 0.1  # of l1: what a slope may be short of it
WORTH_TYING = 1e-20  # of the objective of zero: what slopes may cost that are left as they are
LARGEST_MOVE = 0.5  # of every slope: beyond that no bound is claimed


class Candidate:
    """A dual point u, as the masses G = q u, moved to where its bound is finite.

    Models with coefficients up to ``within`` are those to compare with.
    """

    def __init__(
        self, point: Point, dual: Array | None, measured: bool, tied: bool, within: float = math.inf
    ) -> None:
        self.point, problem, self.within = point, point.problem, within
        self.problem, self.q, self.y = problem, point.q, point.y
        loss = problem.loss
        u = point.slopes() if dual is None else np.asarray(dual, dtype=np.float64)
        # Rows that do not count must not limit the others, nor those whose slope is next to nothing.
        small = CERTAIN if tied and point.classes else TINY
        counted = (self.q[:, None] > 0) & (np.abs(u) > small)
        if not counted.all():
            u = np.where(counted, u, 0.0)
        if point.classes and tied:
            u = whole(u, (np.arange(self.q.size), np.asarray(self.y, dtype=np.intp)))
        self.low: Array | None = None
        self.high: Array | None = None
        # Slopes of a loss are in its domain, and most ways to balance them leave them there.
        limited = loss.labels != "real" or loss.name == "absolute"
        if limited and hasattr(loss, "domain") and (tied or dual is not None or loss.name == "absolute"):
            self.low, self.high = loss.domain(self.y)
            u = u if dual is None else np.clip(u, self.low, self.high)
        # Probability that goes from class to class would also go to rows that are certain.
        if problem.fit_intercept and not (point.classes and tied):
            u = BALANCE[loss.labels](u, self.y, self.q)
            if self.q.min() == 0.0:
                u = np.where(self.q[:, None] > 0, u, 0.0)
        self.u = u
        self.dependent = np.arange(0)
        self.impossible = self.mixed = self.fell = False
        self.free: list[Balance] = []
        if loss.labels == "real":
            self._shorten()
        self.tied = tied
        self.fixed = np.zeros(point.w.shape, dtype=bool)  # slopes that the penalty prescribes
        if tied:
            self._leave_columns()
        self.mass = self.q[:, None] * self.u
        if point.classes:
            self.mass = exactly_whole(self.mass, self.y)
            self.u = self.mass / np.where(self.q > 0, self.q, 1.0)[:, None]
        self.slope, self.total = self._slopes(self.mass, measured)

    def _slopes(self, mass: Array, measured: bool = False) -> tuple[Array, Array]:
        slope, total = self.point.rows.slope(mass, measured)
        if not self.problem.fit_intercept:  # nothing balances, so that the centre counts
            slope = slope + self.point.rows.centre[:, None] * total
        return slope, total

    def _unmet(self, slope: Array) -> Array:
        """Return what is wrong with the slopes: any without penalty, or those below 0 if w >= 0."""
        if self.problem.penalised:
            return slope - self._aim(slope)
        return np.minimum(slope, 0.0) if self.problem.penalty.positive else slope

    def _aim(self, slope: Array) -> Array:
        """Return the slopes that balance the penalty; those of classes sum to 0, as slopes do."""
        w, l1 = self.point.w, self.problem.l1
        aim = -self.problem.l2 * (w - w.mean(axis=1, keepdims=True) if self.point.classes else w)
        if self.problem.penalty.quadratic:
            return aim
        within = np.clip(slope, -l1, np.inf if self.problem.penalty.positive else l1)
        return np.where(self.fixed, aim - l1 * np.sign(w), within)

    def _bound_columns(self) -> Array:
        """Return the columns whose slopes have to be what the penalty prescribes.

        Slopes that miss it by E cost E^2 / (2 l2), or make u shorter by E / l1. Columns that cost next to
        nothing may keep theirs, unless u moves too far for that when the others are mended: by E / |x| of the
        worst. Of the longest no more can be balanced than there are rows.
        """
        point, problem = self.point, self.problem
        if not problem.penalised:
            return np.arange(point.w.shape[0])
        mass = self.q[:, None] * self.u
        slope, _ = self._slopes(mass)
        norm, lengths = point.norm(self.u), point.rows.lengths
        if not problem.fit_intercept:
            lengths = np.hypot(lengths, point.rows.centre)
        error, _ = point.rows.slope_rounding(mass, slope, norm)
        error = NEAR * (error + NEAR * U * np.outer(lengths, norm))  # u itself is rounded
        w, l1, l2 = point.w, problem.l1, problem.l2
        size = -slope if problem.penalty.positive else np.abs(slope)
        if not problem.penalty.quadratic:
            # A coefficient that is all but 0 has any slope between -l1 and l1, and may keep it.
            missed = np.abs(slope + l2 * w + l1 * np.sign(w))
            self.fixed = (w != 0) & (missed <= np.maximum(error, NEARLY_BOUND * l1))
        missed = np.abs(slope - self._aim(slope)) + error
        zero = point.sums(lambda rows: problem.loss.value(np.zeros_like(point.score[rows]), self.y[rows]))
        worth, move = float(zero.max(initial=0.0)), 0.0
        while True:
            moved = np.outer(lengths, np.full(w.shape[1], NEAR * move))
            off = missed + moved
            if not problem.penalty.quadratic:
                off = np.where(~self.fixed & (size + error + moved <= l1), 0.0, off)
            cost = (off**2 / (2.0 * l2) if l2 > 0 else off / l1 * worth).max(axis=1, initial=0.0)
            columns = np.flatnonzero((cost > WORTH_TYING * worth) & (lengths > 0))
            farther = float((missed[columns].max(axis=1) / lengths[columns]).max(initial=0.0))
            if farther <= move:
                break
            move = farther
        most = int(np.count_nonzero(self.u.any(axis=1))) - problem.fit_intercept
        # Of columns that are multiples of each other the longest decides: no slope of the others is larger.
        return columns[np.argsort(-lengths[columns], kind="stable")[: max(most, 0)]]

    def _leave_columns(self) -> None:
        """Move u along the columns until its slope is none that is forbidden, but for rounding."""
        point, blocks = self.point, self.point.blocks
        if blocks.sparse and blocks.n_columns > MAX_SPARSE_COLUMNS:
            self.impossible = True
            return
        columns = self._bound_columns()
        space = self._space(columns)
        kept = columns[space.kept]
        self.dependent = columns[space.dependent[~space.exact]]
        self.follow = _Follow(kept, columns[space.dependent[space.exact]], space.combination[:, space.exact])
        # With w >= 0 a column may follow from others with a minus: its slope is then only found to be 0.
        self.mixed = (
            not self.problem.penalised
            and self.problem.penalty.positive
            and bool(np.any(space.combination < 0))
        )
        if point.classes and (self.u.shape[1] - 1) * (space.rank + 1) > MAX_CLASS_SYSTEM:
            self.impossible = True
            return
        known = self._rows_with_slope()
        self.free = self._balances(np.sort(kept), known)
        moves = 0
        for _ in range(MOST_MOVES):
            slope, total = self._slopes(self.q[:, None] * self.u)
            slope = self._unmet(slope)
            moved = [
                balance.moved(u, part, one)
                for balance, u, part, one in zip(
                    self.free, point.parts(self.u), point.parts(slope), point.parts(total[None]), strict=True
                )
            ]
            before, self.u = self.u, np.concatenate(moved, axis=1)
            # Probabilities that have moved far leave the equations behind.
            far = point.classes and np.any(np.abs(self.u - before) > FAR_PROBABILITY * np.abs(before))
            if self._let_fall(before) or far:
                self.free = self._balances(self.free[0].kept, known)
                continue
            moves += 1
            if moves == MOVES:
                break
        self._shorten()
        self.free = [balance.renewed(u) for balance, u in zip(self.free, point.parts(self.u), strict=True)]
        for balance in self.free:
            self.dependent = np.union1d(self.dependent, balance.dependent)

    def _balances(self, kept: Array, known: Array) -> list[Balance]:
        parts = zip(self.point.parts(self.u), self._labels(), strict=True)
        return [Balance(self.point, u, y, kept, known) for u, y in parts]

    def _let_fall(self, before: Array) -> bool:
        """Set slopes to 0 that are on their way there, and return whether there are any.

        Where classes are separated the slopes of rows that are certain have nothing to balance them but each
        other. Newton's steps would make them shorter by a factor e for ever.
        """
        if self.problem.penalised or self.problem.loss.labels == "real":
            return False
        size = np.abs(before)
        falls = (self.u * np.sign(before) < FALLING * size) & (size < NEARLY_CERTAIN)
        self.u[falls] = 0.0
        if self.point.classes:
            self.u = whole(self.u, (np.arange(self.q.size), np.asarray(self.y, dtype=np.intp)))
        self.fell |= bool(falls.any())
        return bool(falls.any())

    def _shorten(self) -> None:
        """Make u shorter until it is in the domain, all of it alike; a slope of the wrong sign is 0."""
        if self.point.classes:
            self.u = whole(
                np.maximum(self.u, 0.0), (np.arange(self.q.size), np.asarray(self.y, dtype=np.intp))
            )
            self.u /= np.maximum(-self.u.min(axis=1, keepdims=True), 1.0)
        if self.low is None or self.high is None:
            return
        u = np.where(((self.low == 0) & (self.u < 0)) | ((self.high == 0) & (self.u > 0)), 0.0, self.u)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            limit = np.where(u > 0, self.high / u, np.where(u < 0, self.low / u, np.inf))
        self.u = np.clip(limit.min(axis=0, initial=1.0) * u, self.low, self.high)

    def _labels(self) -> list[Array]:
        return [self.y] if self.point.classes else self.point.parts(self.y)

    def _rows_with_slope(self) -> Array:
        """Return the rows that limit where u may go: all, or those that have a slope."""
        some = np.asarray((self.u != 0).any(axis=1) & (self.q > 0))
        return some if self.problem.loss.labels != "real" and some.any() else self.q > 0

    def _space(self, columns: Array) -> ColumnSpace:
        """Return some columns of these rows."""
        blocks, some = self.point.blocks, self._rows_with_slope()
        fewer, all_columns = not some[self.q > 0].all(), np.array_equal(columns, np.arange(blocks.n_columns))
        if fewer or not all_columns:
            some = np.flatnonzero(some) if fewer else np.arange(blocks.n_rows)
            whole = blocks.whole()
            weight = None if whole.weight is None else whole.weight[some]
            X = whole.X[some] if all_columns else whole.X[some][:, columns]
            blocks = MemoryBlocks(X, whole.y[some], weight)
        return column_space(blocks, self.problem.fit_intercept)

    def _bounds_nothing(self) -> bool:
        """Return whether slopes are left that no model may have."""
        if self.impossible or not self.mixed:
            return self.impossible
        most, _ = self.point.rows.slope_rounding(self.mass, self.slope, self.point.norm(self.u))
        return bool((self.slope < -4.0 * most).any())

    def excess(self, rounding: bool) -> tuple[Array, Array]:
        """Return R minus the lower bound as computed, and how far that may be too low."""
        point, problem, loss = self.point, self.problem, self.problem.loss
        nothing, parts = np.zeros_like(point.loss), point.parts
        if self._bounds_nothing():
            return point.loss + point.penalty, nothing
        slope, error = self.slope, np.zeros_like(self.slope)
        costs = [(0.0, 0.0)] * nothing.size
        if not rounding and self.tied:
            costs = self._balance_costs(error, 0.0 * self.total)
        if rounding:
            size = point.norm(self.u) * (1.0 + 1e-9)
            error, total_error = point.rows.slope_rounding(self.mass, slope, size)
            if not problem.fit_intercept:
                error = error + np.outer(np.abs(point.rows.centre), total_error)
            costs = self._balance_costs(error, total_error)
            # By how much u has moved, and then been made shorter, as a root mean square.
            moves, lengths = np.array(costs).T
            size_moved = size + (1.0 if loss.name == "absolute" else 0.0)
            # Without an intercept nothing balances the moves, so that the centre counts.
            reach, mass = point.rows.lengths, self.q[:, None] * np.abs(self.u)
            far = np.zeros_like(reach) if problem.fit_intercept else np.abs(point.rows.centre)
            if point.classes:
                moved = point.rows.weighted_lengths(mass) + np.outer(far, np.sqrt(mass.sum(axis=0)))
                moved = min(lengths[0], 1.0) * moved
            elif loss.name == "squared":
                moved = np.outer(reach + far, lengths)
            else:
                moved = np.outer(reach + far, 2.0 * np.minimum(moves, LARGEST_MOVE) * size_moved)
            error = error + moved
            error = error * (1.0 + 1e-6) + 8.0 * U * np.abs(slope)
        slope, error = self._tied_slopes(slope, error)
        t, u = np.ones(1), self.u
        if problem.penalised and problem.penalty.l2 == 0:
            t = self._penalty_fractions(slope, error)
            t = np.full_like(t, t.min()) if point.classes else t
            u = t * u
        young = point.sums(lambda rows: loss.fenchel_young(point.score[rows], u[rows], self.y[rows]))
        penalty = np.array(
            [self._penalty_excess(*part) for part in zip(parts(point.w), parts(t * slope), strict=True)]
        )
        if not rounding:
            return young + penalty + self._move_cost(young, costs), nothing
        more = np.array(
            [
                self._penalty_rounding(*part)
                for part in zip(*map(parts, (point.w, t * slope, error)), strict=True)
            ]
        )
        if self.dependent.size and not problem.penalised:  # they are tied to nothing
            others = self.within if math.isfinite(self.within) else 0.0
            left = (np.abs(point.w) + others) * (np.abs(slope) + error)
            more = more + point.together(left[self.dependent].sum(axis=0))
        return young + penalty, self._rounding(u, t * size, young, costs) + more + 16.0 * U * (
            young + penalty
        )

    def _tied_slopes(self, slope: Array, error: Array) -> tuple[Array, Array]:
        """Return the slopes where those of kept columns are what was aimed at.

        Those of columns that depend on them follow; the others are as they are.
        """
        if not (self.tied and self.problem.penalised):
            return slope, error
        error, slope, aim, follow = error.copy(), slope.copy(), self._aim(self.slope), self.follow
        slope[follow.kept] = aim[follow.kept]
        slope[follow.others] = follow.combination.T @ aim[follow.kept]
        size = np.abs(aim) + self.problem.l2 * np.abs(self.point.w)
        error[follow.kept] = 16.0 * U * size[follow.kept]
        error[follow.others] = (
            16.0 * U * (size[follow.others] + np.abs(follow.combination).T @ size[follow.kept])
        )
        return slope, error

    def _balance_costs(self, error: Array, total_error: Array) -> list[tuple[float, float]]:
        """Return for each problem by how much u may move to be in balance, and the length of that move."""
        point, problem = self.point, self.problem
        balances = self.free
        if not self.tied:
            if not problem.fit_intercept:
                return [(0.0, 0.0)] * point.loss.size
            if not point.classes:
                return self._even_costs(total_error)
            balances = self._balances(np.arange(0), self.q > 0)
        slope, error = self._unmet(self.slope), error + 4.0 * U * problem.l2 * np.abs(point.w)
        if self.tied and problem.penalty.positive and not problem.penalised:
            slope, error = self._unmet(self.slope - error), 0.0 * error
        together = zip(
            balances,
            *map(point.parts, (self.u, slope, error, self.total[None], total_error[None])),
            strict=True,
        )
        return [balance.cost(*part) for balance, *part in together]

    def _even_costs(self, total_error: Array) -> list[tuple[float, float]]:
        """Return the same where only the intercept asks for balance: H is the sum of q a."""
        left = np.abs(self.total) + total_error
        if self.problem.loss.labels == "real" and self.problem.loss.name != "cubed":
            return [(float(one), float(one)) for one in left]
        sizes = np.abs(self.mass).sum(axis=0) * (1.0 - 1e-9)
        return [
            (float(one / size), 0.0) if size > 0 else (0.0, 0.0)
            for one, size in zip(left, sizes, strict=True)
        ]

    def _rounding(self, u: Array, size: Array, young: Array, costs: list[tuple[float, float]]) -> Array:
        """Return how far the lower bound may be below the computed one, but for the penalty's part.

        ``size`` is the norm of u, or more.
        """
        point, name = self.point, self.problem.loss.name
        loss, n = point.loss, self.q.size
        down = point.together(size * point.delta()) + (sum_rounding(n) + 8.0 * U) * (loss + young)
        down += point.penalty * (point.w.shape[0] + 8) * U
        # u itself is off by the rounding of q u, as if it had to be moved by that.
        if name == "squared":
            return down + self._move_cost(
                young,
                [(tau, one + off) for (tau, one), off in zip(costs, 8.0 * U * size, strict=True)],
            )
        terms = 2.0 * loss + young
        if point.classes:
            down += self._move_cost(young, costs)
            terms = terms + 4.0 * u.shape[1] + loss + 1.0 + math.log(u.shape[1])
        else:
            down += self._move_cost(young, [(tau + 8.0 * U, one) for tau, one in costs])
            if self.tied:  # u was made shorter, and with it its slopes
                shorter = np.minimum([tau for tau, _ in costs], LARGEST_MOVE)
                down += (2.0 * shorter if self.problem.l1 > 0 else 4.0 * shorter**2) * point.penalty
            residual = point.score - self.y if self.problem.loss.labels == "real" else point.score
            terms = terms + 2.0 * (self.q @ np.abs(residual * u))
        if self.problem.loss.labels == "sign":
            terms = terms + 2.0 * (self.q @ np.abs(u)) + 2.0 * (name == "logistic")
        return down + 16.0 * U * terms

    def _move_cost(self, young: Array, costs: list[tuple[float, float]]) -> Array:
        """Return what it costs to bring u into balance exactly."""
        moves, lengths = np.array(costs).T
        if self.problem.loss.name == "squared":
            return np.asarray(np.sqrt(2.0 * young) * lengths + 0.5 * lengths**2)
        sizes = self.point.loss
        if self.point.classes:
            cost = (1.0 + 1e-6) * (self._log_ratio() * lengths + lengths**2)
            return np.where(moves <= LARGEST_MOVE, cost, np.inf)
        return np.where(moves <= LARGEST_MOVE, 2.0 * np.minimum(moves, LARGEST_MOVE) * sizes, np.inf)

    def _log_ratio(self) -> float:
        """Return sqrt(sum_i q_i sum_k p_ik log(p_ik / softmax(s_i)_k)^2), p the probabilities of u."""
        p = np.maximum(self.u, 0.0)
        own = np.arange(p.shape[0]), np.asarray(self.y, dtype=np.intp)
        p[own] = np.maximum(1.0 + self.u[own], 0.0)
        ratio = np.log(np.where(p > 0, p, 1.0)) - np.where(p > 0, log_softmax(self.point.score), 0.0)
        return math.sqrt(float(self.q @ (p * ratio**2).sum(axis=1))) * (1.0 + 1e-6) + 1e-9

    def _penalty_fractions(self, slope: Array, error: Array) -> Array:
        """Return for each score the largest t <= 1 with a finite penalty conjugate at t u."""
        penalty, alpha = self.problem.penalty, self.problem.alpha
        if slope.size == 0:
            return np.ones(slope.shape[1])
        v = -slope if penalty.positive else np.abs(slope)
        largest = (v + error).max(axis=0) / (alpha * penalty.l1)
        return 1.0 / np.maximum(largest, 1.0)

    def _penalty_excess(self, w: Array, slope: Array) -> float:
        problem = self.problem
        if problem.penalised:
            return problem.alpha * problem.penalty.fenchel_young(w, -slope / problem.alpha)
        return float(np.maximum(w * slope, 0.0).sum()) if problem.penalty.positive else 0.0

    def _penalty_rounding(self, w: Array, slope: Array, error: Array) -> float:
        """Return by how much the penalty's part grows at most where the slopes are off by so much."""
        problem = self.problem
        penalty, alpha = problem.penalty, problem.alpha
        if not problem.penalised:
            return float((np.abs(w) * error).sum()) if penalty.positive else 0.0
        error = error + 4.0 * U * (np.abs(slope) + alpha * np.abs(w))
        if penalty.l2 == 0:
            return float((np.abs(w) * error).sum()) + 8.0 * U * problem.penalty_value(w)
        v = -slope / alpha
        z = np.copysign(penalty.excess(v), v) / penalty.l2
        away = float((np.abs(w - z) * error).sum())
        return (
            away
            + float(np.square(error).sum()) / (2.0 * alpha * penalty.l2)
            + 8.0 * U * problem.l1 * float(np.abs(w).sum())
        )


@dataclass(frozen=True)
class _Follow:
    """Columns whose slopes are what was aimed at, and others that are combinations of them."""

    kept: Array
    others: Array
    combination: Array
