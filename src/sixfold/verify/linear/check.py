"""The claim of a linear model: no w, b have an objective that is lower by more than the gap.

    R(w, b) = sum_j (l1 |w_j| + l2 w_j^2 / 2) + sum_i q_i f(s_i, y_i),    s = w.x + b,  q = weight / their sum

Fenchel's inequality f(s) + f*(u) >= s u bounds the minimum for every u with sum_i q_i u_i = 0 (which the
intercept asks for): with v = -sum_i q_i u_i x_i,

    R(w, b) - min R  <=  sum_i q_i (f(s_i) + f*(u_i) - s_i u_i)  +  (pen(w) + pen*(v) - w.v)

whatever u is. A candidate (the model's dual point, or the slopes of the loss) is moved to where both
conjugates are finite: into the domain of f*, to sum 0, off the columns of X where there is no penalty (v =
0), and is made shorter until |v_j| <= l1 where there are absolute values only. Each bracket is a sum of terms
that are never negative, so that no digits cancel. Several targets are added up.

*Rounding.* Scores are summed about the mean row m, s = (x - m).w + (b + m.w), the last bracket exactly.
They are off by at most delta_i = (d + 8) U (|x - m|.|w| + |b + m.w|), U = 2^-53, and slopes by sums of such
terms. What is left of sum_i q_i u_i z_i, z = (1, x - m), is removed by moving u_i by a_i z_i.beta, where
sum_i q_i a_i z_i z_i' beta is what is left: possible without leaving the domain if a_i <= |u_i| and
|z_i.beta| <= tau < 1, and u divided by 1 + tau afterwards; this costs 2 tau sum_i q_i f(s_i) at most, since
the excess is convex in u and f(s) at u = 0. Classes have a_i = diag(p_i) - p_i p_i', and moves of mean
square length^2 cost length rho + length^2 at most, with rho^2 = sum_i q_i sum_c p_ic log(p_ic /
softmax(s_i)_c)^2. Where the rounding of doubles would decide, all sums are formed in twice their precision
(:mod:`sixfold.verify.doubled`).

Columns may depend on others but for their last bits (:mod:`sixfold.verify.linear.dependence`): the gap then
speaks of models that do not tell these columns apart, and no other bound than 0 is found.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.certificate import Certificate
from sixfold.verify.linear.balance import CERTAIN
from sixfold.verify.linear.claim import EPS, LinearClaim, U, counted_rows
from sixfold.verify.linear.dependence import Kept, independent_of
from sixfold.verify.linear.losses import OneScore, Softmax, constant_model
from sixfold.verify.linear.penalties import penalty_excess, penalty_of, penalty_rounding
from sixfold.verify.linear.sums import Sums, row_parts
from sixfold.verify.recomputed import Recomputed

Array = NDArray[Any]

UNDERFLOW = 2.0**-1040  # what 2^30 products next to nothing are off together
MAX_SPARSE_COLUMNS = 4000  # of a sparse table up to which the d x d matrix of its products is formed
MAX_DOUBLED = 1 << 27  # products that are formed in twice the precision
MOVES, MOST_MOVES = 3, 12  # each leaves eps times the condition number of what is out of balance
FAR_MOVE = 0.1  # of a probability
FALLING, NEARLY_CERTAIN = 0.5, 1e-4  # of slopes of at most 1e-4 a move leaves less than half
NEARLY_L1 = 0.1  # of l1: what the slope of a coefficient may be short of it and still count as l1
MUCH_CLOSER = 0.1  # of a gap: what one of tied slopes has to be
WORTHLESS = 1e-20  # of the scale: costs that need no mending
UNNOTICED = 1e-7  # of the gap that is claimed: nor do these, all columns together
MOST_NOISE = 1e-12  # of the scale: rounding that is too small to matter


def recompute(claim: LinearClaim, claimed: Certificate) -> Recomputed:
    """Return objective and gap of the claim, and what rounding may have done to them."""
    with np.errstate(over="ignore", invalid="ignore"):
        return _recompute(*counted_rows(claim), claimed)


def _recompute(claim: LinearClaim, q: Array, claimed: Certificate) -> Recomputed:
    found = Check(claim, q)
    small = claim.X.shape[0] * claim.X.shape[1] * claim.w.shape[1] <= MAX_DOUBLED
    # The slopes of classes sum to 0, which leaves open whose is short of l1.
    tied = claim.l1 + claim.l2 > 0 and not (claim.loss == "softmax" and (claim.l1 > 0 or claim.positive))
    tied |= found.free and claim.loss == "logistic" and claim.fit_intercept
    unnoticed = UNNOTICED * claimed.gap / claim.X.shape[1]
    tries = [(claim, True, False, math.inf), (claim, False, True, math.inf), (claim, True, True, math.inf)]
    if claim.loss == "squared" and claim.l1 + claim.l2 > 0:
        tries.append((claim, True, True, unnoticed))
        if claim.dual is not None:  # it is rounded, too, and may be farther from the residuals than need be
            tries.append((replace(claim, dual=None), True, True, unnoticed))
    for one, doubled, exactly, most in tries:
        if (small or not doubled) and not found.decides(claimed) and (tied or not exactly):
            other = Check(one, q, doubled, exactly, unnoticed=most)
            # Far from the optimum it is a matter of chance which slopes are tied; not so of a dual point.
            enough = max(claimed.tolerance * found.scale, MUCH_CLOSER * found.total)
            enough = max(enough, claimed.gap) if other.strict and claim.dual is not None else enough
            if not exactly or other.moved_only or other.total <= enough:
                found = min(found, other, key=lambda check: check.total)
    # No penalty is negative, so that the least loss alone is a bound too, and one without its slopes. That of
    # the best model is at most the objective, which limits its coefficients.
    penalty = float(penalty_of(claim).sum()) * (1.0 + (claim.w.shape[0] + 8) * U)
    for doubled in (False, True) if small and not claim.positive and 0.0 < penalty <= claimed.gap else ():
        if not found.decides(claimed):
            most = found.objective + found.up
            within = min(
                most / claim.l1 if claim.l1 > 0 else math.inf,
                math.sqrt(2 * most / claim.l2) if claim.l2 > 0 else math.inf,
            )
            other = Check(replace(claim, l1=0.0, l2=0.0), q, doubled, within=within * (1.0 + 1e-9))
            other.objective, other.gap = other.objective + penalty, other.gap + penalty
            found = min(found, other, key=lambda check: check.total)
    scale, at_zero = found.scale, found.at_zero
    certificate = Certificate(
        claimed.kind,
        found.objective + found.up,
        found.total,
        scale,
        claimed.tolerance,
        rounding=found.up + found.down,
        unrestricted_bound=0.0 if found.restricted else None,
    )
    # A batch, of which no bound but zero is claimed, is judged by the model that predicts zero.
    largest = scale if claimed.gap < claimed.objective else max(scale, at_zero)
    largest += (1e-13 + q.size * U) * at_zero  # of a sum over the rows, most of whose terms may be equal
    plain = claim.loss == "squared" and claim.l1 == 0 and not claim.positive
    return Recomputed(
        certificate,
        2.0 * found.up + 1e-30 * at_zero,
        # A millionth of the gap itself misleads nobody.
        claimed.gap * (1.0 + 1e-6) + 2.0 * (found.up + found.down),
        ("duality gap", *["least squares"] * plain),
        scale_allowance=largest,
        # The computed one may be above the true one already.
        overstated=min(2.0 * claimed.rounding, found.largest_rounding()),
    )


class Check:
    """Objective and gap as computed, and by how much the one may be higher and the bound lower (up, down)."""

    def __init__(
        self,
        claim: LinearClaim,
        q: Array,
        doubled: bool = False,
        tied: bool = False,
        within: float = math.inf,
        unnoticed: float = math.inf,
    ) -> None:
        self.claim, self.q, self.doubled = claim, q, doubled
        self.unnoticed = unnoticed  # what the slope of a column may cost without being mended
        # Tie all that counts beside the claim: the slopes of every coefficient that is not 0, on all rows.
        self.strict = math.isfinite(unnoticed)
        self.within = within  # the largest coefficient of models to compare with
        self.free = claim.l1 == claim.l2 == 0.0
        self.fixed = np.zeros(claim.w.shape, dtype=bool)  # slopes that the penalty prescribes
        self.tied = tied or self.free  # whether slopes have to be exactly what the penalty asks for
        self.moved_only = tied and self.free  # and the intercept's, which no slope is made shorter for
        softmax = claim.loss == "softmax"
        real = claim.numbers
        # Numbers count from their mean, as rows do.
        origin = claim.y[0] + q @ (claim.y - claim.y[0]) if real else np.zeros(claim.b.size)
        y = claim.y - origin if real else claim.y
        self.rows = rows = Softmax(y, claim.b.size) if softmax else OneScore(claim.loss, y)
        self.sums = Sums(claim.X, q, doubled)
        self.score, self.delta = self.sums.scores(claim.w, claim.b, origin)
        if real:
            self.delta = self.delta + 2 * U * (np.abs(self.score - y) + np.abs(y))
        self.scale, self.at_zero = constant_model(
            Softmax(y, claim.b.size) if softmax else OneScore(claim.loss, claim.y), q, claim.fit_intercept
        )
        loss = rows.together(q @ rows.value(self.score))
        self.by_score = loss + rows.together(penalty_of(claim))
        self.objective, self.gap, self.down, self.restricted = float(self.by_score.sum()), np.inf, 0.0, False
        slope = np.maximum(*(np.abs(rows.slope(self.score + side * self.delta)) for side in (-1.0, 1.0)))
        self.slope = slope
        n, d = claim.X.shape
        few = (32.0 + np.sqrt(n) + d) * EPS  # of sums of terms that are never negative
        self.up = 0.0
        if np.isfinite(self.objective):
            self.up = float((q @ (slope * self.delta)).sum() + few * self.objective)
            if claim.w.any() or (real and (self.score != y).any()):
                self.up += UNDERFLOW
            excess, down = self._excess(loss, few)
            # No loss is negative, so that 0 is a bound of every score.
            better = excess + down < self.by_score
            self.gap = float(np.where(better, excess, self.by_score).sum())
            self.down = float(np.where(better, down, 0.0).sum())

    @property
    def total(self) -> float:
        """The gap with all that rounding may have done."""
        return self.gap + self.up + self.down

    def decides(self, claimed: Certificate) -> bool:
        """Return whether rounding is too small to change the verdict."""
        noise = self.up + self.down
        return noise <= max(0.5 * claimed.gap, MOST_NOISE * self.scale) and self.gap <= max(
            claimed.gap, noise
        )

    def largest_rounding(self) -> float:
        """Return how far the objective may be off at most, by whatever order of sums and without a centre.

        Least squares may be put together from moments, y'y - 2 w.X'y + w.X'X w.
        """
        claim, q, (n, d) = self.claim, self.q, self.claim.X.shape
        squares, lengths, moments = np.zeros(claim.b.size), np.zeros(d), 0.0
        mean_x, mean_y = (q @ claim.X, q @ claim.y) if claim.fit_intercept else (np.zeros(d), 0.0)
        w = np.abs(claim.w)
        for part in row_parts(claim.X):
            X = claim.X[part]
            size = np.asarray(abs(X) @ w) + np.abs(claim.b)
            size += np.abs(claim.y[part]) if self.rows.real else 0.0
            squares += q[part] @ size**2
            lengths += q[part] @ (X.multiply(X) if sp.issparse(X) else X * X)
            if claim.loss == "squared":
                spread = abs(X) @ w + np.abs(mean_x) @ w if sp.issparse(X) else np.abs(X - mean_x) @ w
                far = (q[part] @ (np.abs(claim.y[part] - mean_y) + spread) ** 2).sum()
                moments += 16.0 * (64 + n + d) * U * float(far)
        # Of sparse columns the sum of lengths is far above the lengths of the sums, and may be claimed.
        delta = 8.0 * (d + 8) * U * (np.sqrt(squares) + np.sqrt(lengths) @ w)
        steepest = 1.0 if claim.loss in ("absolute", "hinge", "perceptron") else np.sqrt(q @ self.slope**2)
        first = 4.0 * n * U * self.objective + float((steepest * delta + delta**2).sum())
        return first + moments

    def _excess(self, loss: Array, few: float) -> tuple[Array, Array]:
        """Return the excess of each score (of all classes together), and how far it may be too low."""
        claim, rows, q = self.claim, self.rows, self.q
        u = rows.slope(self.score) if claim.dual is None else np.clip(claim.dual, rows.low, rows.high)
        small = CERTAIN if self.tied and rows.name == "softmax" else 1e-280
        u = np.where(np.abs(u) > small, u, 0.0)
        # Probability that goes from class to class would also go to rows that are certain.
        # Slopes that are made shorter cost as much as that is; near a minimum exact moves cost its square.
        if claim.fit_intercept and not (self.tied and rows.name == "softmax") and not self.moved_only:
            u = rows.balanced(u, q)
        u = rows.inside(u)
        kept = Kept(np.arange(0), np.zeros((0, 0)), np.arange(0), np.arange(0), True, {})
        if self.tied:
            large = sp.issparse(claim.X) and claim.X.shape[1] > MAX_SPARSE_COLUMNS
            if large:
                return self.by_score, 0.0 * self.by_score
            # Rows without a slope do not limit where u may go.
            some = (u != 0).any(axis=1) if not rows.real and u.any() else q > 0
            # With a penalty no model is left out, so that the last bits of a double tell columns apart.
            told = replace(claim, eps=EPS) if self.strict else claim
            kept = independent_of(told, q, np.flatnonzero(some), self._prescribed(u))
            if self.free and not claim.positive and kept.left:
                self._orthogonalise(kept.left)
            u = self._balanced_exactly(u, kept.columns)
        slope, error, tau, length, doubtful = self._slopes(u, kept.columns)
        kept = kept._replace(doubtful=np.union1d(kept.doubtful, doubtful))
        self.restricted = self.free and kept.doubtful.size > 0 and math.isinf(self.within)
        # With w >= 0 a column may follow from others with a minus: its slope is then only found to be 0.
        if claim.positive and self.free and not kept.positive and (slope < -4.0 * error).any():
            return self.by_score, 0.0 * self.by_score
        if self.tied and not self.free:
            slope, error = self._as_aimed(slope, error, kept)
        shorter = np.ones(u.shape[1])
        if claim.l1 > 0.0 and claim.l2 == 0.0:
            largest = ((-slope if claim.positive else np.abs(slope)) + error).max(axis=0, initial=0.0)
            shorter = claim.l1 / np.maximum(largest, claim.l1)
            shorter = np.full_like(shorter, shorter.min()) if rows.name == "softmax" else shorter
        u = shorter * u
        penalty, more = self._penalty(shorter * slope, error, kept)
        young = rows.together(q @ rows.excess(self.score, u))
        sums = loss + young + rows.together(penalty_of(claim))
        down = rows.together(q @ (np.abs(u) * self.delta) + more) + (few + 32 * U) * sums
        return young + rows.together(penalty), down + self._moves(u, loss, young, tau, length)

    def _orthogonalise(self, left: dict[int, Array]) -> None:
        """Put what combinations of others leave of a column in its place: both span the same with the others.

        A slope along the column is then as well known as u is, however little is left of it.
        """
        X = self.claim.X.toarray() if sp.issparse(self.claim.X) else self.claim.X.copy()
        for column, values in left.items():
            X[:, column] = values
        self.sums = Sums(X, self.q, self.doubled, left)

    def _unmet(self, slope: Array) -> Array:
        """Return what is wrong with slopes that have to be 0, or to balance the penalty."""
        if self.free:
            return np.minimum(slope, 0.0) if self.claim.positive else slope
        return slope - self._aim(slope)

    def _aim(self, slope: Array) -> Array:
        """Return the slopes that balance the penalty; those of classes sum to 0, as all slopes do."""
        w, l1, softmax = self.claim.w, self.claim.l1, self.rows.name == "softmax"
        aim = -self.claim.l2 * (w - w.mean(axis=1, keepdims=True) if softmax else w)
        if self._squares_only:
            return aim
        allowed = np.maximum(slope, -l1) if self.claim.positive else np.clip(slope, -l1, l1)
        return np.where(self.fixed, aim - l1 * np.sign(w), allowed)

    @property
    def _squares_only(self) -> bool:
        return self.claim.l1 == 0.0 and not self.claim.positive

    def _prescribed(self, u: Array) -> Array:
        """Return the columns whose slopes must be what the penalty prescribes, or other bounds are worthless.

        A slope that misses it by E costs E^2 / (2 l2), or the share E / l1 of everything. To mend it u moves
        by E / |x|, which longer columns do not bear unless they are mended, too. The longest come first
        where there are more than rows to balance them.
        """
        claim, q, sums = self.claim, self.q, self.sums
        lengths = sums.lengths if claim.fit_intercept else np.hypot(sums.lengths, sums.mean)
        if self.free:
            return np.arange(claim.X.shape[1])
        G, rms = q[:, None] * u, np.sqrt(q @ u**2)
        slope, _ = self.sums.slopes(G, claim.fit_intercept)
        error, _ = self.sums.slope_errors(G, slope, claim.fit_intercept)
        error = 4.0 * (error + 4 * U * np.outer(lengths, rms))  # u itself is rounded
        if not self._squares_only:
            missed = np.abs(slope + claim.l2 * claim.w + claim.l1 * np.sign(claim.w))
            self.fixed = claim.w != 0
            if not self.strict:
                self.fixed &= missed <= np.maximum(error, NEARLY_L1 * claim.l1)
        missed = np.abs(self._unmet(slope)) + error
        size, chosen, move = (-slope if claim.positive else np.abs(slope)) + error, np.arange(0), 0.0
        for _ in range(lengths.size + 1):
            shift = 4.0 * move * lengths[:, None]
            inner = ~self.fixed & (self.strict | (size + shift <= claim.l1)) & (not self._squares_only)
            miss = np.where(inner, 0.0, missed + shift).max(axis=1, initial=0.0)
            cost = miss**2 / (2 * claim.l2) if claim.l2 > 0 else miss / claim.l1 * self.scale
            chosen = np.flatnonzero((cost > min(WORTHLESS * self.scale, self.unnoticed)) & (lengths > 0))
            worst = float((missed[chosen].max(axis=1) / lengths[chosen]).max(initial=0.0))
            if worst <= move:
                break
            move = worst
        movable = q.size if self.strict else int(np.count_nonzero(u.any(axis=1)))
        room = movable - claim.fit_intercept
        # Of columns that are multiples of each other the longest decides: no slope of the others is larger.
        return chosen[np.argsort(-lengths[chosen], kind="stable")][: max(room, 0)]

    def _balanced_exactly(self, u: Array, kept: Array) -> Array:
        """Return u after the moves that leave nothing wrong but for rounding."""
        rows, q, ones = self.rows, self.q, self.claim.fit_intercept
        systems = rows.systems(u, self.sums, kept, self.claim)
        moves = 0
        for _ in range(MOST_MOVES):
            slope, total = self.sums.slopes(q[:, None] * u, ones)
            parts = zip(systems, *map(rows.split, (u, self._unmet(slope), total[None])), strict=True)
            before, u = u, rows.joined([system.moved(*part) for system, *part in parts])
            size = np.abs(before)
            falls = (u * np.sign(before) < FALLING * size) & (size < NEARLY_CERTAIN)
            if self.free and not rows.real and falls.any():  # slopes of rows that are certain, step by step
                u = rows.without(u, falls)
                systems = rows.systems(u, self.sums, kept, self.claim)
                continue
            # Probabilities that have moved far leave the equations behind.
            if rows.name == "softmax" and np.any(np.abs(u - before) > FAR_MOVE * size):
                systems = rows.systems(u, self.sums, kept, self.claim)
                continue
            moves += 1
            if moves == MOVES:
                break
        return rows.inside(u)

    def _slopes(self, u: Array, kept: Array) -> tuple[Array, Array, Array, Array, Array]:
        """Return sum_i q_i u_i x_i, how far it is off, tau and the length of the move that balances u.

        The last are columns that classes do not tell from others, but for their last bits.
        """
        claim, rows, q, sums = self.claim, self.rows, self.q, self.sums
        G, balanced = rows.masses(q[:, None] * u), claim.fit_intercept
        slope, total = sums.slopes(G, balanced)
        error, error_total = sums.slope_errors(G, slope, balanced)
        rms = np.sqrt(q @ u**2)
        unmet, off = self._unmet(slope), error + 4 * U * claim.l2 * np.abs(claim.w)
        replaced = sums.replaced  # by what was rounded
        off[replaced] += 8 * U * np.outer(sums.lengths[replaced], rms)
        if self.free and claim.positive:
            unmet, off = self._unmet(slope - error), 0.0 * error
        systems = rows.systems(u, sums, kept, claim)
        doubtful = np.unique(np.concatenate([system.doubtful for system in systems])).astype(int)
        parts = zip(systems, *map(rows.split, (u, unmet, off, total[None], error_total[None])), strict=True)
        tau, length = np.array([system.cost(*part) for system, *part in parts]).T
        # By how much slopes have moved with u, and then been made shorter.
        moved = 2.0 * np.minimum(tau, 0.5) * (rms + 1.0 * (rows.name == "absolute"))
        # Without an intercept nothing balances the moves, so that means count.
        far = np.zeros_like(sums.mean) if balanced else np.abs(sums.mean)
        moved = np.outer(sums.lengths + far, length if rows.name == "squared" else moved)
        if rows.name == "softmax":  # no u moves by more than sqrt(|u| sum_c p_c m_c^2)
            mass = q[:, None] * np.abs(u)
            moved = sums.weighted_lengths(mass) + np.outer(far, np.sqrt(mass.sum(axis=0)))
            moved = min(float(length[0]), 1.0) * moved
        error = error + moved + 8 * U * (np.abs(slope) + claim.l2 * np.abs(claim.w))
        return slope, error, tau, length, doubtful

    def _as_aimed(self, slope: Array, error: Array, kept: Kept) -> tuple[Array, Array]:
        """Return the slopes and errors where nothing is left of kept columns, nor of those that follow."""
        aim, size = self._aim(slope), self.claim.l2 * np.abs(self.claim.w)
        size, slope, error = size + np.abs(aim), slope.copy(), error.copy()
        slope[kept.columns] = aim[kept.columns]
        slope[kept.dependent] = kept.combination.T @ aim[kept.columns]
        error[kept.columns] = 32 * U * size[kept.columns]
        followed = np.abs(kept.combination).T @ size[kept.columns]
        error[kept.dependent] = 32 * U * (size[kept.dependent] + followed)
        return slope, error

    def _penalty(self, slope: Array, error: Array, kept: Kept) -> tuple[Array, Array]:
        """Return the penalty's part for each score, and how much larger it may be."""
        claim, w = self.claim, np.abs(self.claim.w)
        if self.free:
            others = self.within if math.isfinite(self.within) else 0.0
            more = ((w + others) * (np.abs(slope) + error))[kept.doubtful].sum(axis=0)
            if not claim.positive:
                return np.zeros(w.shape[1]), more
            return np.maximum(claim.w * slope, 0.0).sum(axis=0), more + (w * error).sum(axis=0)
        return penalty_excess(claim, -slope), penalty_rounding(claim, -slope, error)

    def _moves(self, u: Array, loss: Array, young: Array, tau: Array, length: Array) -> Array:
        """Return what balancing u exactly costs, and the rounding of the excess."""
        rows, q = self.rows, self.q
        if rows.name == "squared":
            length = length + 8 * U * np.sqrt(q @ u**2)
            return np.asarray(np.sqrt(2 * young) * length + length**2 / 2)
        known, terms = tau < 0.5, 2.0 * loss + young
        if isinstance(rows, Softmax):
            # p (1 + m), sum_k p_k m_k = 0: Cauchy and Schwarz for p m log(p / softmax(s)); log(1 + m) <= m.
            terms = terms + loss + 1.0 + math.log(rows.scores) + 4.0 * rows.scores
            cost = (1 + 1e-6) * (rows.log_ratio(self.score, u, q) * length + length**2)
            return np.where(known, cost + 16 * U * terms, np.inf)
        terms = terms + 2.0 * (q @ np.abs((self.score - rows.y if rows.real else self.score) * u))
        terms = terms if rows.real else terms + 2.0 * (q @ np.abs(u)) + 2.0
        share = np.where(known, tau, 0.0)
        # u was made shorter, and with it slopes that have to be what the penalty asks for.
        shorter = 2.0 * share if self.claim.l1 > 0 else 4.0 * share**2
        cost = (2.0 * share + 16 * U) * loss + shorter * rows.together(penalty_of(self.claim))
        return np.where(known, cost + 16 * U * terms, np.inf)
