"""The objective of the softmax loss as its solvers see it: one score a class.

    f(theta) = sum_i q_i (log sum_c exp(s_ic) - s_iy) + l2 |w|^2 / 2,     s = w'(x - shift) + c

Its slope is sum_i q_i z_i (p_i - onehot(y_i))' + l2 (w, 0) with p = softmax(s) and z = (x - shift, 1); the
curvature has one block Z' diag(q p_k ([k = l] - p_l)) Z a pair of classes k, l.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.data.blocks import Blocks
from sixfold.risk.losses import softmax
from sixfold.risk.problem import Problem
from sixfold.solvers.passes import times
from sixfold.solvers.smooth.objective import ObjectivePoint, SmoothObjective, inner, parts_of

Array = NDArray[Any]

ROWS_AT_ONCE = 2048  # whose probabilities are held: those of 20,000 x 100 and 10 classes are a tenth of X


@dataclass(frozen=True)
class ClassSums:
    """Sums over the rows at a model of all classes, none of them divided by the weights.

    Attributes
    ----------
    loss : float
    rows, mass : ndarray of shape (classes,)
        The weight of the rows of each class, and sum_i weight_i p_i.
    divergence : float
        sum_i weight_i sum_k r_ik log(r_ik / p_ik), with r the probabilities that are moved into balance.
    slope : ndarray of shape (columns + 1, classes)
        sum_i weight_i (x_i, 1) (r_i - onehot(y_i))'.
    log_chance : float
        The largest log(1 / p_ik) and log(1 / r_ik).
    squares : float
        sum_i weight_i |r_i - onehot(y_i)|^2.
    depth : int
        Additions that a term goes through.
    """

    loss: float
    rows: Array
    mass: Array
    divergence: float
    slope: Array
    log_chance: float
    squares: float
    depth: int


class SoftmaxObjective(SmoothObjective):
    """The objective of the softmax loss: one score a class."""

    def __init__(
        self,
        problem: Problem,
        blocks: Blocks,
        budget: Budget,
        shift: Array,
        spread: float,
        classes: int | None = None,
    ) -> None:
        super().__init__(problem, blocks, budget, shift, spread)
        self.classes = problem.n_scores(blocks) if classes is None else classes
        self.y = [np.ascontiguousarray(block.y[:, 0], dtype=np.float64) for block in blocks]
        self._tried: ObjectivePoint | None = None
        self._known: tuple[Array, Array, ClassSums] | None = None

    def of_rows(self, blocks: Blocks, budget: Budget) -> SoftmaxObjective:
        """Return the same objective of other rows."""
        return SoftmaxObjective(self.problem, blocks, budget, self.shift, self.spread, self.classes)

    def start(self) -> Array:
        """Return the model without weights."""
        return np.zeros((self.d + 1, self.classes))

    def at(self, theta: Array, curvature: bool = False) -> ObjectivePoint:
        """Return value and slope at theta, and the curvature where it is asked for."""
        if self._tried is not None and not curvature and np.array_equal(theta, self._tried.theta):
            return self._tried
        w, b = np.ascontiguousarray(theta[:-1]), theta[-1] - self.shift @ theta[:-1]
        value, slope = self._complete(theta, *self._sweep(w, b)[:2])
        point = ObjectivePoint(theta, value, slope)
        return ObjectivePoint(theta, value, slope, None, self.curvature(point)) if curvature else point

    def _sweep(self, w: Array, b: Array, **extra: Any) -> tuple[float, Array, float, float, int]:
        """Return the sums over the rows of one native pass at w and b, neither shifted nor penalised."""
        value, slope, log_chance, squares, depth = 0.0, np.zeros((self.d + 1, self.classes)), 0.0, 0.0, 0
        part = np.empty_like(slope)
        for (block, weight, _, limits), y in zip(self._passes(), self.y, strict=True):
            finished, loss, chance, of_slopes, in_block = core.softmax_sweep(
                *parts_of(block.X), y=y, weight=weight, w=w, b=b, slope=part, **{**limits, **extra}
            )
            self.budget.check(finished)
            value += loss
            slope += part
            squares += of_slopes
            log_chance, depth = max(log_chance, chance), max(depth, in_block)
        return value, slope, log_chance, squares, depth + len(self.y)

    def objective_and_gap(self, w: Array, b: Array, to_the_end: bool = True) -> tuple[float, float]:
        """Return the objective of a problem with a squared penalty, and its gap as ``Problem.gap`` does."""
        problem, total = self.problem, self.blocks.weight_sum
        sums = self.class_sums(w, b, to_the_end)
        value = sums.loss / total + problem.alpha * problem.penalty.value(w)
        if not np.isfinite(value):
            return value, np.inf
        excess = problem.alpha * problem.penalty.fenchel_young(w, -sums.slope[:-1] / (total * problem.alpha))
        return value, min(value, sums.divergence / total + excess)

    def class_sums(self, w: Array, b: Array, to_the_end: bool = True) -> ClassSums:
        """Return the sums behind the objective and its bound.

        Two passes without anything kept a row: the first finds how much probability each class has too much,
        the second takes that to the others. The budget does not end them if they go ``to_the_end``: a stopped
        solve has a certificate too.
        The last answer is kept, since the point where a descent sees that it is done is the one to certify.
        """
        if self._known is None or not (
            np.array_equal(w, self._known[0]) and np.array_equal(b, self._known[1])
        ):
            endless = {"seconds_left": np.inf, "flag": np.zeros_like(self.budget.flag)} if to_the_end else {}
            self._known = (w, b, self._class_sums(w, b, endless))
        return self._known[2]

    def _class_sums(self, w: Array, b: Array, limits: dict[str, Any]) -> ClassSums:
        w, b = np.ascontiguousarray(w, dtype=np.float64), np.ascontiguousarray(b, dtype=np.float64)
        loss, slope, *_ = self._sweep(w, b, **limits)
        want = self._class_weights()
        have = np.maximum(want + slope[-1], 0.0)
        kept, share = np.ones(self.classes), np.zeros(self.classes)
        if self.problem.fit_intercept:
            kept = np.where(have > want, want / np.where(have > 0, have, 1.0), 1.0)
            missing = want - have * kept
            if missing.sum() > 0:
                share = missing / missing.sum()
            else:
                kept[:] = 1.0
        return ClassSums(loss, want, have, *self._sweep(w, b, kept=kept, share=share, **limits))

    def _class_weights(self) -> Array:
        """Return the sum of the weights of each class."""
        return np.sum(
            [
                np.bincount(y.astype(np.intp), weight, self.classes)
                for y, weight in zip(self.y, self.weight, strict=True)
            ],
            axis=0,
        )

    def slope_along(self, start: ObjectivePoint, end: ObjectivePoint, length: float) -> float:
        """Return the slope in the length on the way from one point to another."""
        delta = end.theta - start.theta
        if length == 1.0:
            return inner(end.slope, delta)
        self._tried = self.at(start.theta + length * delta)  # where the line ends, most likely
        return inner(self._tried.slope, delta)

    def curvature(self, point: ObjectivePoint) -> Array:
        """Return the curvature, which has one block Z' diag(q p_k ([k = l] - p_l)) Z a pair of classes.

        The same number added to the weights of all classes changes no score, so the curvature has no inverse.
        The slope has no part in these directions, and neither has a step if they are given a curvature.
        """
        w, b = point.theta[:-1], point.theta[-1] - self.shift @ point.theta[:-1]
        matrix = self.data_curvature(
            np.concatenate([softmax(times(block.X, w) + b) for block in self.blocks])
        )
        matrix.flat[:: matrix.shape[0] + 1] += np.append(
            np.full(self.d * self.classes, self.l2), np.zeros(self.classes)
        )
        return matrix

    def mean_curvature(self, theta: Array) -> Array:
        """Return for every row the mean curvature in the differences of its scores."""
        if not theta.any():  # all classes are equally likely
            return np.full(self.blocks.n_rows, 1.0 / self.classes)
        w, b = theta[:-1], theta[-1] - self.shift @ theta[:-1]
        h, at = np.empty(self.blocks.n_rows), 0
        for block in self.blocks:
            for first in range(0, block.y.shape[0], ROWS_AT_ONCE):
                p = softmax(times(block.X[first : first + ROWS_AT_ONCE], w) + b)
                h[at : at + p.shape[0]] = (p * (1.0 - p)).sum(axis=1)
                at += p.shape[0]
        return h / max(self.classes - 1, 1)

    def data_curvature(self, p: Array) -> Array:
        """Return the curvature without penalty where the rows have these probabilities."""
        size, classes = self.d + 1, self.classes
        shares = [
            p[rows] if weight is None else p[rows] * np.sqrt(weight)[:, None]
            for _, weight, rows, _ in self._passes()
        ]
        matrix = np.zeros((size, classes, size, classes))
        for k in range(classes):
            for other in range(k):
                gram = self._gram([np.ascontiguousarray(part[:, k] * part[:, other]) for part in shares])
                matrix[:, k, :, other] -= gram
                matrix[:, other, :, k] -= gram
                matrix[:, k, :, k] += gram
                matrix[:, other, :, other] += gram
        matrix /= self.blocks.weight_sum
        every = np.arange(classes)
        for j in range(size):
            matrix[j, :, j, :] += matrix[j, every, j, every].mean() / classes
        return matrix.reshape(size * classes, size * classes)
