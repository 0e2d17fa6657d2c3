"""How far a model is from the best one at most, in exact arithmetic.

For every u in the domain of the loss with sum_i q_i u_i z_i = 0, where z are the columns without penalty (the
ones of the intercept, and all of X where nothing is penalised), Fenchel's inequality gives

    R(w, b) - min R  <=  sum_i q_i FY_loss(s_i, u_i) + FY_penalty(w, -sum_i q_i u_i x_i)

where FY(s, u) = f(s) + f*(u) - s u >= 0. The terms vanish at the optimum for u_i = loss'(s_i), so that
gradient, or what a solver knows better, is the candidate. In floating point it is balanced but for
rounding, and every sum is off by some of it. What holds in exact arithmetic is bounded in four steps:

1. *Scores.* With |s^ - s| <= delta (:mod:`sixfold.risk.rounding`), the objective at the model is at most
   |loss'| delta + curvature delta^2 / 2 above the computed one, and the bound at most |u| delta below.
2. *Balance.* Let G_i be the computed q_i u_i, e = sum_i G_i z_i, and a_i >= 0 how far u_i may move. With
   H = sum_i q_i a_i z_i z_i' = R'R, moving every u_i by a_i z_i.beta, H beta = -e, makes it 0 exactly, and

       |z_i.beta|  <=  tau = max_i |R^-T z_i| |R^-T e|.

   For the squared loss a_i = 1, and the move costs what |R^-T e| adds to |s - y - u|. For others a_i <=
   |u_i|: afterwards u is divided by 1 + tau, so that every u_i has become shorter by a factor between (1 -
   tau) / (1 + tau) and 1, and since FY(s, .) is convex and FY(s, 0) = f(s) this costs at most 2 tau sum_i
   q_i f(s_i). Classes have a_i = diag(p) - p p', and stay in the domain for tau <= 1/2. With m_ik how far
   p_ik moves relative to itself, sum_k p_k m_k = 0, and FY grows by sum_k p_k m_k log(p_k / softmax(s)_k) +
   p_k (1 + m_k) log(1 + m_k) at most, which is |R^-T e| sqrt(sum_i q_i sum_k p_ik log(p_ik /
   softmax(s_i)_k)^2) + |R^-T e|^2 in all. No u_ik moves by more than sqrt(|u_ik| sum_l p_il m_il^2), and so
   slopes by |R^-T e| sqrt(sum_i q_i |u_ik| z_ij^2).
3. *Penalty.* With slopes off by E_j, FY_penalty grows by |w - z| |E| + |E|^2 / (2 l2), z where its
   conjugate is attained; for absolute values alone u is made shorter until |v_j| + E_j <= l1.
   Where that is too much, u is moved as in the second step to where slopes are what the penalty asks for.
4. *Sums* of terms that are never negative are pairwise.

Columns that depend on others need no condition of their own where they do so exactly. Where they differ in
their last bits (:mod:`sixfold.risk.rank`), the bound is one on models that treat them as dependent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sixfold.data.blocks import Block, Blocks, MemoryBlocks
from sixfold.risk.losses import log_softmax
from sixfold.risk.rank import ColumnSpace, column_space
from sixfold.risk.rounding import UNDERFLOW, Rows, U, pairwise, sum_rounding

if TYPE_CHECKING:
    from sixfold.risk.problem import Problem

Array = NDArray[Any]

SUMMED_ROWS = 1 << 15  # rows whose losses are worked out at a time
MAX_SPARSE_COLUMNS = 4000  # of a sparse table up to which the d x d matrix of its products is formed
MAX_CLASS_SYSTEM = 1000  # unknowns of the system that moves the probabilities of several classes
MOVES, MOST_MOVES = 3, 8  # each leaves of the slope eps times the condition number
FARTHEST = 3.0  # that the logarithm of a probability moves at once
FAR_PROBABILITY = 0.1  # of one
DIGITS = 1e-9  # of the products of columns, below which their factor comes from the rows themselves
LOST = 64.0 * U  # times the order: what a factor of the rows may be off, columns of length 1
CERTAIN = 1e-14  # probabilities below it are 0 where they would have to balance those of other rows
# Slopes below one of these are 0 where classes are separated: their rows have next to no loss, and rows that
# are nearly certain would have to balance those that are not.
NEARLY_CERTAIN = (1e-8, 1e-6, 1e-10, 1e-7, 1e-5)
# Of the excess: whoever balances classes in another order, or other rows of them, ends at another dual point.
OTHER_ORDER, ELSEWHERE = 1e-3, 0.02
TINY = 1e-280  # slopes below it lose digits when they are multiplied
FAR_MOVE = 2.0  # of the room for a move by the slope that is left: from there on it is measured again
APART = 1e-3  # of columns of length 1, what others leave of them
STILL = 1e-11  # of a direction of length 1: far less than probabilities above CERTAIN move
NEAR = 4.0  # times the rounding of a slope: from there on absolute values may forbid it
NEARLY_BOUND = 0.1  # of l1: what a slope may be short of it
LARGEST_MOVE = 0.5  # of every slope: beyond that no bound is claimed


@dataclass(frozen=True)
class Bound:
    """What is known of each target (of all classes together), as computed and what rounding may have done.

    Attributes
    ----------
    objective, excess : ndarray
        R and R - (a lower bound), as computed.
    up, down : ndarray
        How far R may be above the computed one, and the lower bound below.
    dependent : ndarray of int
        Columns that count as dependent though they differ in their last bits.
    """

    objective: Array
    excess: Array
    up: Array
    down: Array
    dependent: Array

    @property
    def gap(self) -> float:
        """The gap as computed; no loss is negative, so that zero bounds every objective."""
        return float(np.minimum(self.objective, self.excess).sum())

    @cached_property
    def upper(self) -> float:
        """What the objective is at most."""
        return float((self.objective + self.up).sum())

    @cached_property
    def certain_gap(self) -> float:
        """The distance from there to what no model is below."""
        gaps = np.minimum(self.objective + self.up, self.excess + self.up + self.down)
        # Whoever subtracts it from that rounds again.
        return min(float(gaps.sum()) + 8.0 * U * self.upper, self.upper)


def objective(problem: Problem, w: Array, b: Array, blocks: Blocks) -> tuple[float, float]:
    """Return R(w, b) as computed, and by how much more it may be."""
    point = _Point(problem, w, b, blocks, doubled=False)
    return float((point.loss + point.penalty).sum()), float(point.rounding().sum())


def bound(
    problem: Problem,
    w: Array,
    b: Array,
    blocks: Blocks,
    dual: Array | None = None,
    rounding: bool = True,
    doubled: bool = False,
    tied: bool = False,
    certain: float | None = None,
) -> Bound:
    """Return the bound at a model; without ``rounding`` only what is computed.

    ``doubled`` asks for sums in doubled precision. ``tied`` asks for slopes that balance the penalty
    exactly: where it is next to nothing, what rounding leaves of them would cost |E|^2 / (2 l2), or u would
    have to be shorter by |E| / l1. Slopes up to ``certain`` count as 0.
    """
    point = _Point(problem, w, b, blocks, doubled)
    total = point.loss + point.penalty
    none = np.arange(0)
    if not np.isfinite(total).all():
        bad = np.full_like(total, np.inf)
        nothing = np.zeros_like(total)
        return Bound(np.where(np.isfinite(total), total, np.inf), bad, nothing, nothing, none)
    candidate = _Candidate(point, dual, rounding, tied or not problem.penalised, certain)
    excess, down = candidate.excess(rounding)
    if point.classes and rounding:
        down = down + OTHER_ORDER * excess
    up = point.rounding() if rounding else np.zeros_like(total)
    return Bound(total, excess, up, down, none if problem.penalised else candidate.dependent)


def bound_of_separated(
    problem: Problem, w: Array, b: Array, blocks: Blocks, dual: Array | None, doubled: bool, enough: float
) -> Bound:
    """Return the bound of an unpenalised model of classes some of which are, or may be, separated.

    Every target has rows of its own that are certain, and with them columns of its own that count. No more is
    tried than it takes for a gap of ``enough``.
    """
    whole, parts = blocks.whole(), [slice(None)]
    if problem.loss.labels == "sign":
        parts = [slice(k, k + 1) for k in range(w.shape[1])]
    found = []
    for part in parts:
        one = MemoryBlocks(whole.X, whole.y[:, part], whole.weight)
        mine, best = None if dual is None else dual[:, part], None
        for certain in (None, *NEARLY_CERTAIN) if len(parts) > 1 else NEARLY_CERTAIN:
            other = bound(problem, w[:, part], b[part], one, mine, doubled=doubled, certain=certain)
            best = other if best is None or other.certain_gap < best.certain_gap else best
            if best.certain_gap <= 0.9 * enough / len(parts):
                break
        assert best is not None
        found.append(replace(best, down=best.down + ELSEWHERE * best.excess))
    objective, excess, up, down, dependent = (
        np.concatenate([getattr(each, field.name) for each in found]) for field in fields(Bound)
    )
    return Bound(objective, excess, up, down, np.unique(dependent))


class _Point:
    """The scores of a model about a centre, its losses and its penalty."""

    def __init__(self, problem: Problem, w: Array, b: Array, blocks: Blocks, doubled: bool) -> None:
        self.problem, self.w, self.b, self.blocks = problem, w, b, blocks
        self.classes = problem.loss.labels == "class"
        self.q = _stack(blocks, lambda block: normalized_weights(block, blocks))
        y = _stack(blocks, problem.targets)
        self.origin = np.zeros(b.size)
        self.y_size = np.zeros(b.size)
        if problem.loss.labels == "real":
            y = np.asarray(y, dtype=np.float64)
            counted = y if self.q.min() > 0 else y[self.q > 0]
            low, high = counted.min(axis=0), counted.max(axis=0)
            if np.any(np.abs(low + high) > high - low):
                self.origin = 0.5 * low + 0.5 * high
                y = y - self.origin
                self.y_size = self.norm(y)
        self.y = y
        self.rows = Rows(blocks, self.q, doubled)
        self.score = self.rows.scores(w, b, self.origin)
        self.loss = self.sums(lambda rows: problem.loss.value(self.score[rows], self.y[rows]))
        self.penalty = np.array([problem.penalty_value(part) for part in self.parts(w)])
        self._delta: Array | None = None
        self._slopes: Array | None = None

    def parts(self, of_scores: Array) -> list[Array]:
        """Return what belongs to each problem of its own: a score, or those of all classes."""
        if self.classes or of_scores.shape[1] == 1:
            return [of_scores]
        return [of_scores[:, k : k + 1] for k in range(of_scores.shape[1])]

    def together(self, by_score: Array) -> Array:
        """Return the sums over the scores of each problem."""
        return by_score.sum(keepdims=True) if self.classes else by_score

    def sums(self, value: Callable[[slice], Array]) -> Array:
        """Return sum_i q_i value_i for each column of values."""
        n = self.q.size
        found = []
        for start in range(0, n, SUMMED_ROWS):
            rows = slice(start, start + SUMMED_ROWS)
            terms = value(rows)
            found.append(pairwise(self.q[rows, None] * (terms[:, None] if terms.ndim == 1 else terms)))
        return found[0] if len(found) == 1 else np.array([math.fsum(column) for column in np.array(found).T])

    def norm(self, values: Array) -> Array:
        """Return sqrt(sum_i q_i values_i^2) of each column, rounded up."""
        return np.sqrt(self.q @ (values * values)) * (1.0 + (values.shape[0] + 4) * U)

    def slopes(self) -> Array:
        """Return loss'(s)."""
        if self._slopes is None:
            self._slopes = np.asarray(self.problem.loss.gradient(self.score, self.y))
        return self._slopes

    def delta(self) -> Array:
        """Return how far the scores of each column are off, as a root mean square."""
        if self._delta is None:
            size = self.norm(self.score)
            if self.problem.loss.labels == "real":
                size = size + self.norm(self.score - self.y) + self.y_size
            self._delta = self.rows.score_rounding(self.w, self.b, self.origin) + 2.0 * U * size
        return self._delta

    def rounding(self) -> Array:
        """Return how far the objective may be above the computed one."""
        loss, delta = self.problem.loss, self.delta()
        if loss.smooth:
            bend = loss.curvature_bound
            if not math.isfinite(
                bend
            ):  # of the cube: at the largest residual, and beyond by as much as it is off
                least = float(self.q[self.q > 0].min(initial=1.0))
                bend = 2.0 * (
                    float(np.abs(self.score - self.y).max(initial=0.0)) + delta.max() / np.sqrt(least)
                )
            moved = self.norm(self.slopes()) * delta + 0.5 * bend * delta**2
        else:
            moved = delta  # no slope is above 1
        size = self.loss * (sum_rounding(self.q.size) + 8.0 * U) + self.penalty * (self.w.shape[0] + 8) * U
        return self.together(moved) * (1.0 + 1e-9) + size + self._underflow()

    def _underflow(self) -> Array:
        """Return what losses and penalties next to nothing may have lost altogether."""
        some = self.w.any(axis=0)
        if self.problem.loss.labels == "real":
            some = some | (self.score != self.y).any(axis=0)
        return np.where(some.any(keepdims=True) if self.classes else some, UNDERFLOW, 0.0)


class _Candidate:
    """A dual point u, as the masses G = q u, moved to where its bound is finite."""

    def __init__(
        self, point: _Point, dual: Array | None, measured: bool, tied: bool, certain: float | None = None
    ) -> None:
        self.point, problem = point, point.problem
        self.problem, self.q, self.y = problem, point.q, point.y
        loss = problem.loss
        u = point.slopes() if dual is None else np.asarray(dual, dtype=np.float64)
        # Rows that do not count must not limit the others, nor those whose slope is next to nothing.
        small = (CERTAIN if tied and point.classes else TINY) if certain is None else certain
        counted = (self.q[:, None] > 0) & (np.abs(u) > small)
        if not counted.all():
            u = np.where(counted, u, 0.0)
        if point.classes and certain is not None:
            u = _whole(u, (np.arange(self.q.size), np.asarray(self.y, dtype=np.intp)))
        self.low: Array | None = None
        self.high: Array | None = None
        # Slopes of a loss are in its domain, and most ways to balance them leave them there.
        limited = loss.labels != "real" or loss.name == "absolute"
        if limited and hasattr(loss, "domain") and (tied or dual is not None or loss.name == "absolute"):
            self.low, self.high = loss.domain(self.y)
            u = u if dual is None else np.clip(u, self.low, self.high)
        # Probability that goes from class to class would also go to rows that are certain.
        if problem.fit_intercept and not (point.classes and certain is not None):
            u = BALANCE[loss.labels](u, self.y, self.q)
            if self.q.min() == 0.0:
                u = np.where(self.q[:, None] > 0, u, 0.0)
        self.u = u
        self.dependent = np.arange(0)
        self.impossible = self.mixed = False
        self.free: list[_Balance] = []
        if loss.labels == "real":
            self._shorten()
        self.tied = tied
        self.fixed = np.zeros(point.w.shape, dtype=bool)  # slopes that the penalty prescribes
        if tied:
            self._leave_columns()
        self.mass = self.q[:, None] * self.u
        if point.classes:
            self.mass = _exactly_whole(self.mass, self.y)
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
        """Return the columns whose slopes the penalty prescribes, or would if rounding added to them."""
        if not self.problem.penalised or self.problem.penalty.quadratic:
            return np.arange(self.point.w.shape[0])
        mass = self.q[:, None] * self.u
        slope, _ = self._slopes(mass)
        norm = self.point.norm(self.u)
        error, _ = self.point.rows.slope_rounding(mass, slope, norm)
        error += NEAR * U * np.outer(self.point.rows.lengths, norm)  # u itself is rounded
        w, l1 = self.point.w, self.problem.l1
        off = np.abs(slope + self.problem.l2 * w + l1 * np.sign(w))
        # A coefficient that is all but 0 has any slope between -l1 and l1, and may keep it.
        self.fixed = (w != 0) & (off <= np.maximum(NEAR * error, NEARLY_BOUND * l1))
        size = -slope if self.problem.penalty.positive else np.abs(slope)
        return np.flatnonzero((self.fixed | (size + NEAR * error > l1)).any(axis=1))

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
        self.free = [
            _Balance(point, u, y, np.sort(kept))
            for u, y in zip(point.parts(self.u), self._labels(), strict=True)
        ]
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
            if point.classes and np.any(np.abs(self.u - before) > FAR_PROBABILITY * np.abs(before)):
                self.free = [_Balance(point, self.u, self.y, self.free[0].kept)]
                continue
            moves += 1
            if moves == MOVES:
                break
        self._shorten()
        self.free = [balance.renewed(u) for balance, u in zip(self.free, point.parts(self.u), strict=True)]

    def _shorten(self) -> None:
        """Make u shorter until it is in the domain, all of it alike; a slope of the wrong sign is 0."""
        if self.point.classes:
            self.u = _whole(
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

    def _space(self, columns: Array) -> ColumnSpace:
        """Return some columns of the rows that have a slope: the others do not limit where u may go."""
        blocks, some = self.point.blocks, (self.u != 0).any(axis=1)
        fewer = self.problem.loss.labels != "real" and not some[self.q > 0].all() and some.any()
        if fewer or columns.size < blocks.n_columns:
            some = np.flatnonzero(some) if fewer else np.arange(blocks.n_rows)
            whole = blocks.whole()
            weight = None if whole.weight is None else whole.weight[some]
            X = whole.X[some] if columns.size == blocks.n_columns else whole.X[some][:, columns]
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
            if point.classes:
                moved = min(lengths[0], 1.0) * point.rows.weighted_lengths(self.q[:, None] * np.abs(self.u))
            elif loss.name == "squared":
                moved = np.outer(point.rows.lengths, lengths)
            else:
                moved = np.outer(point.rows.lengths, 2.0 * np.minimum(moves, LARGEST_MOVE) * size_moved)
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
            left = np.abs(point.w) * (np.abs(slope) + error)
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
            balances = [_Balance(point, self.u, self.y, np.arange(0))]
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


class _Balance:
    """The system H beta = -e by which a dual point is brought into balance; see the second step above.

    z = (1, x_kept - m), without the 1 where there is no intercept.
    """

    def __init__(self, point: _Point, u: Array, y: Array, kept: Array) -> None:
        self.point, self.kept, self.y = point, kept, y
        self.ones = int(point.problem.fit_intercept)
        self.width = kept.size + self.ones
        self.share, self.p = self._room(u)
        self.blocks_of_z = max(u.shape[1] - 1, 1)
        order = self.width * self.blocks_of_z
        self.scale, self.least, self.trust = np.ones(order), 1.0, 1.0
        if order:
            self._factor(order)

    def _room(self, u: Array) -> tuple[Array, Array | None]:
        """Return sqrt(q a); for classes sqrt(q) and p."""
        if self.point.classes:
            return np.sqrt(self.point.q), self._probabilities(u)
        return np.sqrt(self.point.q * self._most(u)[:, 0]), None

    def _probabilities(self, u: Array) -> Array:
        own = self.y.astype(np.intp)
        p = np.maximum(u, 0.0)
        rows = np.arange(p.shape[0])
        p[rows, own] = 0.0
        p[rows, own] = np.maximum(1.0 - p.sum(axis=1), 0.0)
        return p

    def _most(self, u: Array) -> Array:
        """Return a."""
        name = self.point.problem.loss.name
        if name in ("squared", "absolute"):
            return np.ones_like(u)
        size = np.abs(u)
        return size * (1.0 - size) if name == "logistic" else size

    def _pieces(self) -> Iterator[tuple[slice, Array]]:
        """Go through z in pieces of rows."""
        for block in self.point.blocks:
            for rows, Z in self.point.rows._pieces(block):
                part = Z.toarray() if self.point.blocks.sparse else Z
                part = part if self.kept.size == part.shape[1] else part[:, self.kept]
                if not self.ones and self.point.rows.moved:  # nothing balances, so that the centre counts
                    part = part + self.point.rows.centre[self.kept]
                yield rows, np.column_stack([np.ones(part.shape[0]), part]) if self.ones else part

    def _weighted(self, rows: slice, z: Array) -> Array:
        """Return the rows whose squares sum to H: of classes, sqrt(diag(p)) (1 - p') for each."""
        if self.p is None:
            return self.share[rows, None] * z
        p = self.p[rows]
        root = np.sqrt(p)[:, :, None] * (np.eye(p.shape[1]) - p[:, None, :])
        stacked = self.share[rows, None, None, None] * root[:, :, :-1, None] * z[:, None, None, :]
        return stacked.reshape(-1, self.width * self.blocks_of_z)

    def _products(self, order: int) -> Array:
        """Return H."""
        H = np.zeros((self.blocks_of_z, self.width, self.blocks_of_z, self.width))
        for rows, z in self._pieces():
            if self.p is None:
                part = self.share[rows, None] * z
                H[0, :, 0] += part.T @ part
                continue
            p, q = self.p[rows], np.square(self.share[rows])
            for k in range(self.blocks_of_z):
                for other in range(k + 1):
                    both = p[:, k] * ((k == other) - p[:, other])
                    H[k, :, other] += z.T @ ((q * both)[:, None] * z)
        for k in range(self.blocks_of_z):
            H[:k, :, k] = H[k, :, :k].transpose(1, 2, 0)
        return H.reshape(order, order)

    def _factor(self, order: int) -> None:
        H = self._products(order)
        self.scale = np.sqrt(H.diagonal())
        self.scale[self.scale == 0] = 1.0
        H /= np.outer(self.scale, self.scale)
        values, vectors = np.linalg.eigh(H)
        lost = LOST * order
        if values[0] > DIGITS:
            roots = np.sqrt(values)
            lost = (self.point.rows.depth + 8) * order * U / float(roots[0])
        else:
            R: Array = np.zeros((0, order))
            for rows, z in self._pieces():
                R = np.asarray(np.linalg.qr(np.vstack([R, self._weighted(rows, z) / self.scale]), mode="r"))
            _, roots, vectors = np.linalg.svd(R)
            roots, vectors = np.append(roots, np.zeros(order - roots.size)), vectors.T
        # Where classes are certain of some rows, nothing moves in some directions, and nothing is left there.
        kept = roots > (STILL if self.p is not None and roots.min() <= STILL and self._apart() else 0.0)
        self.null = vectors[:, ~kept]
        self.inverse = vectors[:, kept] / roots[kept]
        stands_still = self.p is not None and bool((~kept).any())
        self.least = float(roots[kept].min(initial=1.0)) if kept.all() or stands_still else 0.0
        # These are the roots of a table that is off by this much.
        self.trust = 1.0 - lost / self.least if self.least > 0 else 0.0

    def _apart(self) -> bool:
        """Return whether columns are far from depending on each other: only classes can stand still then."""
        total: Array = np.zeros((self.width, self.width))
        uncertain = self.share if self.p is None else self.share * (self.p.max(axis=1) < 1.0)
        for rows, z in self._pieces():
            part = uncertain[rows, None] * z
            total += part.T @ part
        length = np.sqrt(total.diagonal())
        return bool(
            length.size
            and length.all()
            and np.linalg.eigvalsh(total / np.outer(length, length))[0] > APART**2
        )

    def _equations(self, slope: Array, total: Array) -> Array:
        """Return e / scale."""
        e = np.vstack([total, slope[self.kept]]) if self.ones else slope[self.kept]
        return e[:, : self.blocks_of_z].T.ravel() / self.scale

    def moved(self, u: Array, slope: Array, total: Array) -> Array:
        """Return u after the move that would balance it."""
        if not self.scale.size or not self.trust > 0:
            return u
        e = self._equations(slope, total)
        beta = -(self.inverse @ (self.inverse.T @ e)) / self.scale
        beta = beta.reshape(self.blocks_of_z, self.width).T
        moves = np.concatenate([z @ beta for _, z in self._pieces()])
        if self.p is None:
            return u + self._most(u) * moves
        p = self._probabilities(u)
        # As logarithms move, none becomes negative, and where they end does not depend on the way.
        p *= np.exp(np.clip(np.column_stack([moves, np.zeros(moves.shape[0])]), -FARTHEST, FARTHEST))
        p /= p.sum(axis=1, keepdims=True)
        p[p < CERTAIN] = 0.0
        return _whole(p, (np.arange(p.shape[0]), self.y.astype(np.intp)))

    def cost(
        self, u: Array, slope: Array, error: Array, total: Array, total_error: Array
    ) -> tuple[float, float]:
        """Return tau, by which every slope may move to be in balance exactly, and |R^-T e|."""
        e, off = self._equations(slope, total), self._equations(error, total_error)
        if not e.any() and not off.any():
            return 0.0, 0.0
        if not self.trust > 0:
            return math.inf, math.inf
        inverse = self.inverse
        length = float(
            np.linalg.norm(inverse.T @ e) * (1.0 + LOST / self.least) + np.linalg.norm(off) / self.least
        )
        length += float(np.linalg.norm(self.null.T @ e)) / STILL
        length /= self.trust
        if self.point.problem.loss.name == "squared":
            return length, length
        largest = 0.0
        ratio = self._ratio(u)
        inverse = inverse / self.scale[:, None]
        for rows, z in self._pieces():
            for k in range(self.blocks_of_z):
                part = z @ inverse[k * self.width : (k + 1) * self.width]
                sizes = np.sqrt(np.einsum("ij,ij->i", part, part)) * ratio[rows]
                largest = max(largest, float(sizes.max(initial=0.0)))
        return largest * length * (1.0 + 1e-6) / self.trust, length

    def _ratio(self, u: Array) -> Array:
        """Return how large a move is of the slope it moves, for a beta of 1; without slope none moves."""
        if self.p is not None:
            return 2.0 * (self.share > 0)
        if self.point.problem.loss.name == "absolute":
            return np.ones(u.shape[0])
        size = np.abs(u[:, 0])
        room = np.square(self.share) / np.where(self.point.q > 0, self.point.q, 1.0)
        return np.divide(room, size, out=np.where(room > 0, np.inf, 0.0), where=size > 0)

    def renewed(self, u: Array) -> _Balance:
        """Return the system at u where that was moved far from where the room was measured."""
        if self.p is None and self._ratio(u).max(initial=0.0) > FAR_MOVE:
            return _Balance(self.point, u, self.y, self.kept)
        return self


# -- balance: with an intercept the candidate has sum_i q_i u_i = 0, but for rounding ----------------------


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
    own = np.arange(u.shape[0]), np.asarray(y, dtype=np.intp)
    p = u.copy()
    p[own] += 1.0
    excess = q @ u
    surplus, missing = np.maximum(excess, 0.0), np.maximum(-excess, 0.0)
    if missing.sum() <= 0:
        return u
    taken = p * (surplus / np.where(surplus > 0, q @ p, 1.0))
    u = u - taken + taken.sum(axis=1, keepdims=True) * (missing / missing.sum())
    return _whole(u, own)


def _whole(u: Array, own: tuple[Array, Array]) -> Array:
    """Return slopes of classes that sum to 0, to the digits of the smallest of them."""
    u[own] = 0.0
    u[own] = -u.sum(axis=1)
    return u


def _exactly_whole(mass: Array, y: Array) -> Array:
    """Return the masses of classes rounded to where those of every row sum to 0 without rounding."""
    own = np.arange(mass.shape[0]), np.asarray(y, dtype=np.intp)
    largest = np.abs(mass).max(axis=1, keepdims=True)
    bits = 51 - mass.shape[1].bit_length()
    unit = np.exp2(np.frexp(largest)[1].astype(float) - bits)
    return _whole(np.rint(mass / unit), own) * unit


BALANCE: dict[str, Callable[[Array, Array, Array], Array]] = {
    "real": _remove_mean,
    "sign": _even_sides,
    "class": _move_probability,
}


def normalized_weights(block: Block, blocks: Blocks) -> Array:
    """Return q for the rows of a block."""
    if block.weight is None:
        return np.full(block.y.shape[0], 1.0 / blocks.weight_sum)
    return np.asarray(block.weight, dtype=np.float64) / blocks.weight_sum


def _stack(blocks: Blocks, function: Callable[[Block], Array]) -> Array:
    parts = list(blocks.map(function))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
