"""Newton's step as a least-squares problem, and the dual point that it leaves.

With S_i S_i' the second derivatives of the loss of row i in its scores and S_i r_i its slope, Newton's step
is

    minimise over delta    sum_i q_i |S_i' z_i.delta + r_i|^2 + sum_j penalty_j (theta + delta)_j^2

(iteratively reweighted least squares). What is left of the rows, u_i = S_i (S_i' z_i.delta + r_i), is a
dual point that balances the penalty, sum_i q_i u_i z_i = -penalty (theta + delta). Its gap is about half
the squared Newton decrement, however small the penalty is: the slopes of the loss themselves have |g|^2 /
(2 l2), with g what rounding and the last step have left of the slope of the objective.

*Conditioning.* Columns are centred and have mean square 1 (:mod:`sixfold.solvers.smooth.scaled_rows`). The
problem is solved by conjugate gradients on the rows (Björck 1996, Numerical methods for least squares
problems, 7.4), preconditioned by the Cholesky factor of the normal equations. These alone lose what lies
below eps of the largest curvature: nearly collinear columns, and rows of which a model is all but certain
beside others in doubt. On the rows the same directions are sqrt(eps), and cost one product each. With more
columns than rows, all of them penalised, the factor is one of the rows (:mod:`sixfold.solvers.few_rows`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import lapack

from sixfold.budget import Budget
from sixfold.data.blocks import Blocks
from sixfold.risk.losses import softmax
from sixfold.risk.problem import Problem
from sixfold.risk.rank import column_space
from sixfold.solvers.few_rows import few_rows_solver
from sixfold.solvers.linalg import EPS, scaled_cholesky
from sixfold.solvers.smooth.objective import LinearObjective, inner
from sixfold.solvers.smooth.scaled_rows import ScaledRows
from sixfold.solvers.smooth.softmax_objective import SoftmaxObjective

Array = NDArray[Any]

MAX_FACTORED = 4000  # entries of theta, whose square is factored
MAX_ROWS = 2000  # or rows, whose products have to be formed anew in every step, for each pair of classes
MOST_PRODUCTS = 400  # of conjugate gradients in one step
MOST_IDLE_PRODUCTS = 30  # after which rounding allows no better step
CORRECTIONS = 5  # of what conjugate gradients have left of the slope
UNMET = 1e3  # times the rounding of slopes: what is left then asks for a better factor
MOST_ROTATED = 1 << 33  # multiplications of that factor, a second of them
NEGLIGIBLE = 1e-12  # as a root of probability and weight, beside others in that factor
EXACT = 1e-26  # of the squared decrement: what conjugate gradients may leave of it
LEAST_CURVATURE = 1e-12  # of a row's slope: far on the wrong side there is none left, and the step has no end


@dataclass(frozen=True)
class NewtonStep:
    """A step, the dual point it leaves and the squared Newton decrement."""

    delta: Array
    dual: Array
    decrement: float


class Reweighted:
    """One target, or all classes of a softmax, in scaled rows.

    ``theta`` has the shape (columns + 1, scores), the constants last; ``penalty`` has the factors of half its
    squares, with those of the constants 0.
    """

    def __init__(
        self, problem: Problem, rows: ScaledRows, blocks: Blocks, budget: Budget, target: int
    ) -> None:
        self.problem, self.rows = problem, rows
        self.penalty = np.append(problem.l2 / np.square(rows.scale), 0.0)[:, None]
        if not problem.penalised:
            # Columns that depend on others stay at 0: no scores are lost, and no step runs off along them.
            self.penalty[column_space(blocks, problem.fit_intercept).dependent] = 1.0
        self.classes = problem.loss.labels == "class"
        self.objective: Any = (
            SoftmaxObjective(problem, blocks, budget, rows.mean, 1.0)
            if self.classes
            else LinearObjective(problem, blocks, budget, rows.mean, 1.0, target)
        )
        self.y = np.concatenate(self.objective.y)
        self.smoothing = 0.0  # of the corner of the squared hinge

    def value(self, theta: Array, score: Array) -> float:
        """Return the objective at theta, whose scores are known."""
        loss = float(self.rows.q @ self._of_scores(self.problem.loss.value, score))
        return loss + 0.5 * inner(self.penalty * theta, theta)

    def slopes(self, score: Array) -> Array:
        """Return the slopes of the loss, one row of scores a row."""
        if self.smoothing > 0:
            return -(self.y * self.smooth_hinge(score)[0])[:, None]
        return self._of_scores(self.problem.loss.gradient, score).reshape(score.shape)

    def line(
        self, score: Array, moves: Array, penalty: Callable[[float], float]
    ) -> tuple[Callable[[float], float], float]:
        """Return the slope along a step as a function of its length, and what rounding leaves of it.

        ``penalty`` is its part that is not of the loss.
        """
        q = self.rows.q[:, None]
        noise = EPS * inner(q * np.abs(self.slopes(score)), np.abs(moves))
        return lambda length: inner(q * self.slopes(score + length * moves), moves) + penalty(length), noise

    def curvatures(self, score: Array) -> Array:
        """Return the second derivatives of the loss of one score."""
        return (
            self.smooth_hinge(score)[1]
            if self.smoothing > 0
            else self.problem.loss.curvature(score[:, 0], self.y)
        )

    def smooth_hinge(self, score: Array) -> tuple[Array, Array]:
        """Return the slope t and the curvature of the squared hinge whose t satisfies t (t - m) = smoothing.

        m = 1 - y s is what a row is short of the margin; without smoothing t is m or 0.
        """
        short = 1.0 - self.y * score[:, 0]
        root = np.sqrt(short**2 + 4.0 * self.smoothing)
        slope = np.where(
            short > 0.0, 0.5 * (short + root), 2.0 * self.smoothing / (root - np.minimum(short, 0.0))
        )
        return slope, slope / root

    def _of_scores(self, function: Callable[[Array, Array], Array], score: Array) -> Array:
        return function(score if self.classes else score[:, 0], self.y)

    def gap(self, theta: Array, score: Array, u: Array) -> float:
        """Return the duality gap at a dual point; without penalty its slope is taken to be 0."""
        loss = self.problem.loss
        terms = (
            loss.fenchel_young(score, u, self.y)
            if self.classes
            else loss.fenchel_young(score[:, 0], u[:, 0], self.y)
        )
        slope = self.rows.transposed_times(self.rows.q[:, None] * u) + self.penalty * theta
        noise = 8.0 * EPS * math.sqrt(float(self.rows.q @ np.square(u).sum(axis=1)))  # columns have length 1
        slope = np.where(np.abs(slope) <= noise, 0.0, slope)
        excess = np.divide(slope**2, self.penalty, out=np.zeros_like(slope), where=self.penalty > 0)
        return float(self.rows.q @ terms + 0.5 * excess.sum())

    def step(
        self, theta: Array, score: Array, ridge: float = 0.0, rest: float = EXACT, exact: bool = False
    ) -> NewtonStep:
        """Return Newton's step of the objective with ``ridge`` more of a penalty in scaled columns.

        ``rest`` is what may be left of the squared decrement. ``exact`` asks for a dear factor of the rows
        where that of the normal equations leaves too much.
        """
        terms: _RowTerms = (_ClassTerms if self.classes else _ScoreTerms)(self, score)
        penalty = self.penalty + ridge
        penalty[-1] = 0.0
        equations = _Equations(self.rows, terms, np.sqrt(penalty))
        first = equations.start(theta)
        divide = self._preconditioner(terms, penalty, theta.shape)
        best = _conjugate_gradients(equations, first, divide, rest)
        if exact and equations.unmet(best) and score.size * theta.size**2 <= MOST_ROTATED:
            divide = self._factor_of_rows(terms, penalty, theta.shape)
            best = _conjugate_gradients(equations, best, divide, rest)
        # In the directions of least curvature rounding shows first, and hides what is left in the others.
        for _ in range(CORRECTIONS):
            point = equations.moved(best, divide(best.slope))
            if not inner(point.slope, point.slope) < inner(best.slope, best.slope):
                break
            best = point
        return NewtonStep(best.delta, terms.dual(best.left), inner(first.slope, best.delta))

    def _fixed(self, shape: tuple[int, ...]) -> Array:
        """Return which entries of theta must not move."""
        fixed = np.zeros(shape, dtype=bool)
        fixed[:-1][self.rows.constant] = True
        fixed[-1] = not self.problem.fit_intercept
        return fixed.ravel()

    def _factor_of_rows(
        self, terms: _RowTerms, penalty: Array, shape: tuple[int, ...]
    ) -> Callable[[Array], Array]:
        """Return what divides by the same matrix, by a factor of the rows and not of their products."""
        fixed, size = self._fixed(shape), math.prod(shape)
        factor = np.diag(np.sqrt(np.broadcast_to(penalty, shape).ravel()))
        if self.classes:  # whose constants may all move by the same amount
            factor[-1, -shape[1] :] = 1.0
        for rows, part in self.rows.parts():
            Z = part.toarray() if self.rows.blocks.sparse else part
            stacked = terms.stacked(rows, np.column_stack([Z, np.ones(len(Z))]))
            factor = _triangle(np.vstack([factor, stacked.reshape(-1, size)]))
        fixed |= ~factor.any(axis=0)
        factor[:, fixed] = 0.0
        factor = _triangle(np.vstack([factor, np.diag(fixed.astype(np.float64))]))

        def divide(right: Array) -> Array:
            half, _ = lapack.dtrtrs(factor, np.where(fixed, 0.0, right.ravel()), trans=1)
            return np.asarray(lapack.dtrtrs(factor, half)[0]).reshape(shape)

        return divide

    def _few_rows(self, terms: _RowTerms, penalty: Array, shape: tuple[int, ...]) -> Callable[[Array], Array]:
        """Return the same for a table of more columns than rows."""
        fixed = self._fixed(shape)
        K: Any = terms.matrix(self.rows)
        diagonal = np.where(fixed, 1.0, np.broadcast_to(penalty, shape).ravel())
        if sp.issparse(K):
            K = K @ sp.diags_array((~fixed).astype(np.float64))
        else:
            K[:, fixed] = 0.0
        if self.classes:  # whose constants may all move by the same amount
            same = np.zeros((1, K.shape[1]))
            same[0, -shape[1] :] = float(self.problem.fit_intercept)
            K = sp.vstack([K, same], format="csc") if sp.issparse(K) else np.vstack([K, same])
        solve = few_rows_solver(K, diagonal, refinements=1)
        return lambda right: np.where(fixed, 0.0, solve(right.ravel())).reshape(shape)

    def _preconditioner(
        self, terms: _RowTerms, penalty: Array, shape: tuple[int, ...]
    ) -> Callable[[Array], Array]:
        """Return what divides by the matrix of the normal equations; entries that must not move get 0."""
        if self.rows.q.size < self.rows.mean.size and penalty[:-1].min() > 0:
            return self._few_rows(terms, penalty, shape)
        size, unit = math.prod(shape), np.append(1.0 / self.rows.scale, 1.0)
        matrix = self.objective.data_curvature(terms.curvature).reshape(*shape, *shape)
        matrix *= unit[:, None, None, None] * unit[:, None]
        matrix = matrix.reshape(size, size)
        matrix.flat[:: size + 1] += np.broadcast_to(penalty, shape).ravel()
        fixed = self._fixed(shape) | (np.diag(matrix) <= 0.0)
        if fixed.any():
            matrix[fixed], matrix[:, fixed] = 0.0, 0.0
            matrix.flat[:: size + 1] += fixed
        solve = scaled_cholesky(matrix, size * EPS)
        return lambda right: np.where(fixed, 0.0, solve(right.ravel())).reshape(shape)


@dataclass(frozen=True)
class _Residuals:
    """A step so far, what it leaves of the rows and of the penalty, and the slope of both."""

    delta: Array
    left: Array
    unmet: Array
    slope: Array


class _Equations:
    """The least-squares problem of one step; ``root`` has the roots of the penalty."""

    def __init__(self, rows: ScaledRows, terms: _RowTerms, root: Array) -> None:
        self.rows, self.terms, self.root = rows, terms, root

    def start(self, theta: Array) -> _Residuals:
        """Return no step at all."""
        return self._measured(np.zeros_like(theta), -self.terms.residual, -self.root * theta)

    def moved(self, point: _Residuals, direction: Array, size: float | None = None) -> _Residuals:
        """Return the point after a move by ``direction``, or so far along it as brings down ``size``."""
        product, added = self.terms.forward(self.rows.times(direction)), self.root * direction
        bend = inner(product, product) + inner(added, added)
        length = 1.0 if size is None else size / bend if bend > 0 else 0.0
        return self._measured(
            point.delta + length * direction, point.left - length * product, point.unmet - length * added
        )

    def unmet(self, point: _Residuals) -> bool:
        """Return whether a slope is left that is more than rounding."""
        size = self.terms.backward(point.left)
        noise = EPS * math.sqrt(len(size) * inner(size, size))
        return bool(np.abs(point.slope).max(initial=0.0) > UNMET * noise)

    def _measured(self, delta: Array, left: Array, unmet: Array) -> _Residuals:
        slope = self.rows.transposed_times(self.terms.backward(left)) + self.root * unmet
        return _Residuals(delta, left, unmet, slope)


def _triangle(rows: Array) -> Array:
    return np.asarray(np.linalg.qr(rows, mode="r"))


def _conjugate_gradients(
    equations: _Equations, point: _Residuals, divide: Callable[[Array], Array], rest: float
) -> _Residuals:
    """Return the step at which the slope is least, as ``divide`` measures it."""
    best, direction = point, divide(point.slope)
    size = least = inner(point.slope, direction)
    enough, idle = rest * size, 0
    for _ in range(MOST_PRODUCTS):
        if not size > enough or idle > MOST_IDLE_PRODUCTS:
            break
        point = equations.moved(point, direction, size)
        towards = divide(point.slope)
        before, size = size, inner(point.slope, towards)
        idle = 0 if size < 0.5 * least else idle + 1
        best, least = (point, size) if size < least else (best, least)
        direction = towards + (size / before) * direction
    return best


def balanced_slopes(problem: Problem, blocks: Blocks, budget: Budget, w: Array, b: Array) -> Array | None:
    """Return a dual point of a model for every row and score; None where the equations are too large."""
    classes = problem.loss.labels == "class"
    if (blocks.n_columns + 1) * (w.shape[1] if classes else 1) > MAX_FACTORED:
        return None
    rows = ScaledRows(problem, blocks)
    theta, dual = rows.theta(w, b), np.empty((blocks.n_rows, w.shape[1]))
    for part in targets_of(problem, w.shape[1]):
        target = Reweighted(problem, rows, blocks, budget, part.start)
        dual[:, part] = target.step(theta[:, part], rows.times(theta[:, part])).dual
    return dual


def targets_of(problem: Problem, scores: int) -> list[slice]:
    """Return which scores are minimised together: all classes of a softmax, else one by one."""
    return [slice(0, scores)] if problem.loss.labels == "class" else [slice(k, k + 1) for k in range(scores)]


# -- rows ------------------------------------------------------------------------------------------------


class _RowTerms(Protocol):
    """S and r of every row at a point, with the roots of q.

    ``forward`` returns sqrt(q) S' m for moves m of the scores, ``backward`` sqrt(q) S e for what is left e,
    ``stacked`` the matrix of ``forward`` of moves z.delta for some rows z, ``matrix`` that for all rows.
    """

    curvature: Array
    residual: Array

    def forward(self, moves: Array) -> Array: ...
    def backward(self, left: Array) -> Array: ...
    def stacked(self, rows: slice, Z: Array) -> Array: ...
    def dual(self, left: Array) -> Array: ...
    def matrix(self, table: ScaledRows) -> Any: ...


class _ScoreTerms:
    """One score a row: S is the root of the curvature."""

    def __init__(self, target: Reweighted, score: Array) -> None:
        loss, y, u = target.problem.loss, target.y, target.slopes(score)
        self.limits = loss.domain(y)
        self.curvature = np.maximum(target.curvatures(score), LEAST_CURVATURE * np.abs(u[:, 0]))
        self.root_q, self.root = np.sqrt(target.rows.q)[:, None], np.sqrt(self.curvature)[:, None]
        self.both = self.root_q * self.root
        self.residual = self.root_q * np.divide(u, self.root, out=np.zeros_like(u), where=self.root > 0)

    def forward(self, moves: Array) -> Array:
        return self.both * moves

    def backward(self, left: Array) -> Array:
        return self.both * left

    def stacked(self, rows: slice, Z: Array) -> Array:
        return self.both[rows] * Z

    def matrix(self, table: ScaledRows) -> Any:
        Z = table.with_ones()
        return (sp.diags_array(self.both[:, 0]) @ Z).tocsc() if sp.issparse(Z) else self.both * Z

    def dual(self, left: Array) -> Array:
        u = np.divide(-self.root * left, self.root_q, out=np.zeros_like(left), where=self.root_q > 0)
        return np.clip(u[:, 0], *self.limits)[:, None]


class _ClassTerms:
    """A score a class: S = diag(s) (I - s s') with s the roots of the probabilities.

    The slope of a row's own class is minus the sum of the others', which keeps its digits where the row is
    nearly certain.
    """

    def __init__(self, target: Reweighted, score: Array) -> None:
        self.own, u = target.y.astype(np.intp)[:, None], target.slopes(score)
        p = softmax(score)
        np.put_along_axis(p, self.own, np.take_along_axis(p, self.own, axis=1) + LEAST_CURVATURE, axis=1)
        self.curvature = p / (1.0 + LEAST_CURVATURE)
        self.root_q, self.root = np.sqrt(target.rows.q)[:, None], np.sqrt(self.curvature)
        self.both = self.root_q * self.root
        left = np.divide(u, self.root, out=np.zeros_like(u), where=self.root > 0)
        self.residual = self.root_q * (left - self.root * (self.root * left).sum(axis=1, keepdims=True))

    def forward(self, moves: Array) -> Array:
        return self.both * (moves - np.einsum("ik,ik->i", self.curvature, moves)[:, None])

    def backward(self, left: Array) -> Array:
        return self.root_q * self._slopes(left)

    def stacked(self, rows: slice, Z: Array) -> Array:
        p, classes = self.curvature[rows], self.curvature.shape[1]
        row, own = np.nonzero(self.both[rows] > NEGLIGIBLE)  # most of all classes are next to impossible
        weight = self.both[rows][row, own][:, None] * (np.eye(classes)[own] - p[row])
        return Z[row][:, :, None] * weight[:, None, :]

    def matrix(self, table: ScaledRows) -> Any:
        Z, p, parts = table.with_ones(), self.curvature, []
        for k in range(p.shape[1]):
            factors = self.both[:, [k]] * ((np.arange(p.shape[1]) == k) - p)
            if sp.issparse(Z):
                columns = [sp.diags_array(factor) @ Z for factor in factors.T]
                parts.append(sp.hstack(columns, format="csc"))
            else:
                parts.append((Z[:, :, None] * factors[:, None, :]).reshape(len(Z), -1))
        if not sp.issparse(Z):
            return np.vstack(parts)
        order = np.arange(Z.shape[1] * p.shape[1]).reshape(p.shape[1], -1).T.ravel()
        return sp.vstack(parts, format="csc")[:, order]

    def _slopes(self, left: Array) -> Array:
        weighted = self.root * left
        return self._with_own(weighted - self.curvature * weighted.sum(axis=1, keepdims=True))

    def _with_own(self, u: Array) -> Array:
        np.put_along_axis(u, self.own, 0.0, axis=1)
        np.put_along_axis(u, self.own, -u.sum(axis=1, keepdims=True), axis=1)
        return u

    def dual(self, left: Array) -> Array:
        u = -np.divide(self._slopes(left), self.root_q, out=np.zeros_like(left), where=self.root_q > 0)
        np.put_along_axis(u, self.own, 0.0, axis=1)
        u = np.maximum(u, 0.0)  # probabilities of the other classes
        return self._with_own(u / np.maximum(u.sum(axis=1, keepdims=True), 1.0))
