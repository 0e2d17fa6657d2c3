"""The slope of least squares at a model, from the rows or from their moments, and how far it may be off.

    r_i = y_i - b - w.x_i       slope = sum_i q_i r_i (x_i - mean) - l2 w      off = sum_i q_i r_i
                                square = sum_i q_i r_i^2

From the rows in double-double arithmetic: with u the rounding of one operation, residuals are off by (d u)^2
of the sizes of their terms, sums by (n u)^2 of theirs, and what counts is the final rounding. From the
moments A = mean x x', c = mean x y (about the mean), without another pass:

    slope = c - A w - l2 w      off = mean_y - mean.w - b      square = mean y^2 - 2 w.c + w'A w + off^2

which is off by as much as the moments are, times the sizes of y and w. A small move of the model changes the
slope by A times the move, so that the last correction needs no pass either.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.data.blocks import Block, Blocks
from sixfold.risk.problem import Problem
from sixfold.solvers.least_squares.moments import UNIT, Means, Moments

Array = NDArray[Any]

FAR = 8.0  # means by sizes from which columns are moved to their means before they are multiplied


@dataclass(frozen=True)
class Slope:
    """What is known of the objective at a model, one column a target.

    Attributes
    ----------
    slope : ndarray of shape (columns, targets)
        Minus the slope in w after the best b.
    off : ndarray of shape (targets,)
        The mean residual; zero without intercept.
    square : ndarray of shape (targets,)
        The mean squared residual.
    slope_error, off_error, square_error : ndarray
        How far these may be from exact arithmetic.
    """

    slope: Array
    off: Array
    square: Array
    slope_error: Array
    off_error: Array
    square_error: Array


@dataclass(frozen=True)
class SecondMoments:
    """The quadratic function that least squares minimises: A, c, mean y^2 and means, with their rounding."""

    problem: Problem
    moments: Moments
    A: Array
    c: Array
    y2: Array

    @classmethod
    def of(cls, problem: Problem, moments: Moments) -> SecondMoments:
        """Return them about the mean where there is an intercept, else about zero."""
        A, c, y2 = moments.second(problem.fit_intercept)
        if not all(np.isfinite(part).all() for part in (A, c, y2)):
            raise FloatingPointError("the moments are not finite")
        return cls(problem, moments, A, c, y2)

    @property
    def d(self) -> int:
        """The number of columns."""
        return self.moments.n_columns

    @property
    def mean_x(self) -> Array:
        """The means of the columns."""
        return self.moments.mean[: self.d]

    @property
    def mean_y(self) -> Array:
        """The means of the targets."""
        return self.moments.mean[self.d :]

    @property
    def sizes(self) -> Array:
        """The sizes of the columns that bound the rounding of A."""
        return self.moments.sizes(self.problem.fit_intercept)[: self.d]

    def intercept(self, w: Array) -> Array:
        """Return the best b for these w."""
        return self.mean_y - self.mean_x @ w if self.problem.fit_intercept else np.zeros(w.shape[1])

    def slope_at(self, w: Array, b: Array) -> Slope:
        """Return the slope from the moments alone."""
        l2, moments = self.problem.l2, self.moments
        d, size_w, sizes = self.d, np.abs(w), moments.sizes(self.problem.fit_intercept)
        size = sizes[:d]
        lost = moments.rounding + (2 * d + 8) * UNIT
        total = sizes[d:] + size @ size_w
        off, off_error = np.zeros_like(b), np.zeros_like(b)
        if self.problem.fit_intercept:
            off = self.intercept(w) - b
            error, size_mean = moments.mean_rounding(), np.abs(moments.mean)
            terms = size_mean[d:] + size_mean[:d] @ size_w + np.abs(b)
            off_error = error[d:] + error[:d] @ size_w + (d + 4) * UNIT * terms
        Aw = self.A @ w
        square = self.y2 + (w * (Aw - 2 * self.c)).sum(axis=0) + off**2
        square_error = lost * total**2 + 2 * np.abs(off) * off_error + off_error**2
        slope_error = (lost * size)[:, None] * total + (4 * UNIT * l2) * size_w
        return Slope(self.c - Aw - l2 * w, off, np.maximum(square, 0.0), slope_error, off_error, square_error)

    def moved(self, at: Slope, step: Array, step_b: Array, w: Array) -> Slope:
        """Return the slope after a small step that ends at w."""
        l2, size = self.problem.l2, self.sizes
        lost = self.moments.rounding + (2 * self.d + 8) * UNIT
        size_step = np.abs(step)
        total = size @ size_step
        off, off_error = at.off, at.off_error
        if self.problem.fit_intercept:
            change = step_b + self.mean_x @ step
            off = at.off - change
            terms = np.abs(step_b) + np.abs(self.mean_x) @ size_step + np.abs(at.off)
            off_error = at.off_error + self.moments.mean_rounding()[: self.d] @ size_step
            off_error = off_error + (self.d + 4) * UNIT * terms
        As = self.A @ step
        # Of the residuals alone: the penalty has no part in the square.
        falls = 2 * (step * (at.slope + l2 * (w - step))).sum(axis=0)
        square = at.square - at.off**2 - falls + (step * As).sum(axis=0) + off**2
        root = np.sqrt(at.square) + total
        square_error = at.square_error + 4 * root * (lost * total + UNIT * root)
        square_error += 2 * (np.abs(at.off) * at.off_error + np.abs(off) * off_error)
        square_error += 2 * (size_step * at.slope_error).sum(axis=0)
        slope_error = at.slope_error + (lost * size)[:, None] * total
        slope_error += 4 * UNIT * (np.abs(at.slope) + l2 * np.abs(w))
        slope = at.slope - As - l2 * step
        return Slope(slope, off, np.maximum(square, 0.0), slope_error, off_error, square_error)


def slope_on(
    problem: Problem, blocks: Blocks, means: Means, w: Array, b: tuple[Array, Array], budget: Budget
) -> Slope:
    """Return the slope from the rows, one pass a target; b is a sum of two numbers."""
    d, l2, n = means.n_columns, problem.l2, means.rows
    length, mean = means.size[:d], means.mean[:d]
    shift = mean if not blocks.sparse and (np.abs(mean) > FAR * length).any() else None

    sums = blocks.reduce(partial(_block_slopes, w=w, b=b, shift=shift, flag=budget.flag), np.add)
    sums = sums / means.weight
    raw, off, square = sums[:-2], sums[-2], sums[-1]
    plain = np.hypot(means.size, means.mean)  # the sizes about zero
    size, about = (plain[:d], np.zeros(d)) if shift is None else (length, shift)
    lost, summed = (d + 8) * UNIT, (n + 8) * UNIT
    if not blocks.sparse:
        lost, summed = 2 * lost**2, summed**2
    # Terms that are the same for all rows move all residuals alike, the others each by itself.
    size_w, level = np.abs(w), plain[d:] + np.abs(b[0])
    alike = lost * (level + np.abs(about) @ size_w)
    each = lost * (level + size @ size_w if shift is None else size @ size_w)
    root = np.sqrt(square) + alike + each
    size_off = np.abs(off)
    off_error = 8 * UNIT * size_off + alike + each + summed * root
    # What the shift leaves of the mean, as far as that is known.
    rest, rest_error = mean - about, means.mean_rounding()[:d]
    size_rest = np.abs(rest) + rest_error
    slope = raw - l2 * w
    slope_error = 8 * UNIT * (np.abs(raw) + l2 * size_w) + size[:, None] * (each + summed * root)
    if problem.fit_intercept:
        slope -= rest[:, None] * off
        slope_error += size_rest[:, None] * (alike + off_error + 4 * UNIT * size_off)
        slope_error += rest_error[:, None] * size_off
    else:  # nothing balances the residuals, so that the shift counts
        slope += about[:, None] * off
        slope_error += size_rest[:, None] * alike
        slope_error += np.abs(about)[:, None] * (off_error + 8 * UNIT * size_off)
        off, off_error = np.zeros_like(off), np.zeros_like(off)
    # The sum of the weights is rounded as all the others are.
    square_error = (summed + means.rounding + 16 * UNIT) * square + 4 * root * (alike + each)
    return Slope(slope, off, square, slope_error, off_error, square_error)


def _block_slopes(
    block: Block, w: Array, b: tuple[Array, Array], shift: Array | None, flag: NDArray[np.int32]
) -> Array:
    """Return the same sums for all targets, which a cluster can send to its workers."""
    targets = zip(w.T, *b, strict=True)
    found = [_block_slope(block, k, *target, shift, flag) for k, target in enumerate(targets)]
    return np.stack(found, axis=1)


def _block_slope(
    block: Block,
    target: int,
    w: Array,
    b: float,
    b_rest: float,
    shift: Array | None,
    flag: NDArray[np.int32],
) -> Array:
    """Return sum weight r (x - shift, 1, r) of one block for one target."""
    d = w.size
    out = np.empty(d + 2)
    weight = block.float64_weight
    if isinstance(block.X, np.ndarray):
        done, out[-1] = core.residual_slope(
            block.X, block.y, target, weight, np.ascontiguousarray(w), float(b), float(b_rest), shift,
            out[:-1], np.inf, flag,
        )  # fmt: skip
        if not done:
            raise KeyboardInterrupt
        return out
    residual = np.asarray(block.y[:, target], dtype=np.float64) - b - b_rest - block.X @ w
    weighted = residual if weight is None else weight * residual
    out[:d], out[d], out[d + 1] = block.X.T @ weighted, weighted.sum(), weighted @ residual
    return out
