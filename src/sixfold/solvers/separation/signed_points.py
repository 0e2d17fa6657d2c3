"""Labelled rows as points that a plane through 0 has to have on one side.

A model (w, b) puts row i on the right side by

    y_i (w.x_i + b)                                  labels -1 and +1
    (w_y - w_k).x_i + b_y - b_k  for every k != y    classes: y is the class of row i

which is p.v for v = (w, b) and one point p a row, or one a row and other class. Everything here is in units
of the columns: x_j counts as (x_j - m_j) / s_j (without intercept as x_j / s_j), an invertible change of (w,
b) that changes no sign, and takes the units out of every comparison of lengths. Rows of weight 0 are no
points.

Points have a number: the row, or row * classes + other class.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.data.blocks import Block, Blocks, squared_entries
from sixfold.risk.problem import Problem
from sixfold.solvers.linalg import EPS
from sixfold.solvers.passes import column_spread, times

Array = NDArray[Any]

CENTRED_NUMBERS = 1 << 17  # of rows that are centred at a time: they stay in the L2 cache
# Mean over spread up to which w.(x - m) is computed as w.x - w.m, at three times the speed: three digits go.
MODEST_MEAN = 1e3


class SignedPoints:
    """The points of one target.

    Parameters
    ----------
    problem : Problem
        Of which the labels and the intercept count.
    target : int
        The column of y; with classes there is one only.
    spread : bool
        Whether each column has its own unit s_j; if not, one unit serves all, which keeps distances.

    Attributes
    ----------
    labels : ndarray of shape (rows,)
        -1 and +1, or classes.
    signs : bool
        Which of the two.
    classes : int
        1 for signs.
    dimensions : int
        Of the points.
    center, unit : ndarray of shape (columns,)
        m and s.
    rounding : float
        By how much p.v may be off, relative to |p| |v|.
    """

    def __init__(
        self, problem: Problem, blocks: Blocks, budget: Budget, target: int = 0, spread: bool = True
    ) -> None:
        self.blocks, self.budget, self.intercept = blocks, budget, problem.fit_intercept
        self.signs = problem.loss.labels != "class"
        self.classes = 1 if self.signs else problem.n_scores(blocks)
        y = np.concatenate(list(blocks.map(lambda block: block.y[:, target if self.signs else 0])))
        self.labels = np.sign(y).astype(np.float64) if self.signs else y.astype(np.intp)
        self.counts = np.concatenate(list(blocks.map(lambda block: block.counts)))
        self.center, factor = column_spread(problem, blocks)
        self.unit = 1.0 / np.sqrt(factor)
        loss = float(np.max(np.abs(self.center) / self.unit, initial=1.0))
        if not spread:
            self.unit = np.full_like(self.unit, np.linalg.norm(self.unit) or 1.0)
        self.width = blocks.n_columns + self.intercept
        self.dimensions = self.width * self.classes
        # Centred exactly where that matters, so that large means cost no digits.
        self.exact = loss > MODEST_MEAN
        self.rounding = (self.width + 4) * EPS * (1.0 if self.exact else loss)

    # -- rows --------------------------------------------------------------------------------------------

    def scores(self, v: Array) -> Array:
        """Return (z, 1).v for every row and class; v has shape (dimensions,)."""
        w, constant = self._in_columns(v)
        rows = (part for block in self.budget.watch(self.blocks) for part in self._parts(block))
        return np.concatenate([self._score(part, w, constant) for part in rows])

    def _in_columns(self, v: Array) -> tuple[Array, Array]:
        v = v.reshape(self.width, -1)
        d = self.blocks.n_columns
        return v[:d] / self.unit[:, None], v[d] if self.intercept else np.zeros(v.shape[1])

    def _parts(self, block: Block) -> Iterator[Any]:
        """Yield the rows of a block, in parts small enough to be centred where they have to be."""
        if not self.exact:
            yield block.X
            return
        yield from _chunks(block.X, block.X.shape[1])

    def _score(self, rows: Any, w: Array, constant: Array) -> Array:
        if self.exact:
            return (_dense(rows) - self.center) @ w + constant
        return times(rows, w) + (constant - self.center @ w)

    def out_of_time(self) -> bool:
        """Return whether the time limit or Ctrl-C ends the work."""
        return self.budget.interrupted or self.budget.seconds_left <= 0

    def rows(self, numbers: Array) -> Array:
        """Return (z, 1) of some rows."""
        found = np.ones((numbers.size, self.width))
        for block in self.blocks:
            here = (numbers >= block.rows.start) & (numbers < block.rows.stop)
            if here.any():
                rows = _dense(block.X[numbers[here] - block.start])
                found[here, : self.blocks.n_columns] = (rows - self.center) / self.unit
        return found

    # -- points ------------------------------------------------------------------------------------------

    def row_of(self, points: Array) -> Array:
        """Return the rows of some points."""
        return points // self.classes

    def take(self, points: Array) -> Array:
        """Return the coordinates of some points, one a row."""
        row, other = np.divmod(points, self.classes)
        z = self.rows(row)
        if self.classes == 1:
            return self.labels[row, None] * z
        place = np.arange(points.size)
        sides = np.zeros((points.size, self.classes))
        sides[place, self.labels[row]] = 1.0
        sides[place, other] -= 1.0
        return (z[:, :, None] * sides[:, None, :]).reshape(points.size, self.dimensions)

    def margins(self, v: Array) -> Array:
        """Return p.v for every point, of shape (rows, classes); infinite where there is no point."""
        return np.where(self.present(), self._sides(self.scores(v)), np.inf)

    def present(self) -> Array:
        """Return which points there are, of shape (rows, classes): no row is compared with its own class."""
        if self.signs:
            return self.counts[:, None]
        return self.counts[:, None] & (self.labels[:, None] != np.arange(self.classes))

    def lengths(self, basis: Array | None = None) -> Array:
        """Return |p|, or |basis' p|, for every point; of shape (rows, 1 or classes).

        Without a basis, the points of a row are equally long.
        """
        if basis is None:
            squares = np.concatenate([self._squares(block) for block in self.budget.watch(self.blocks)])
            factor = 1.0 if self.classes == 1 else 2.0
            return np.sqrt(factor * (squares + self.intercept))[:, None]
        w, constant = self._in_columns(basis)
        parts = []
        for block in self.budget.watch(self.blocks):
            start = block.start
            for rows in _chunks(block.X, w.shape[1]):
                score = self._score(rows, w, constant).reshape(rows.shape[0], self.classes, -1)
                sides = self._sides(score, slice(start, start + rows.shape[0]))
                parts.append(np.sqrt(np.square(sides).sum(axis=-1)))
                start += rows.shape[0]
        return np.concatenate(parts)

    def _sides(self, score: Array, rows: slice = slice(None)) -> Array:
        labels = self.labels[rows].reshape(-1, *[1] * (score.ndim - 1))
        if self.classes == 1:
            return labels * score
        return np.take_along_axis(score, labels, axis=1) - score

    def _squares(self, block: Block) -> Array:
        if sp.issparse(block.X) and not self.exact:
            # sum_j (x_j - m_j)^2 / s_j^2 over the entries alone
            scale = 1.0 / self.unit**2
            entries = squared_entries(block.X) @ scale - 2.0 * (block.X @ (self.center * scale))
            return np.maximum(np.asarray(entries) + self.center**2 @ scale, 0.0)
        parts = ((_dense(rows) - self.center) / self.unit for rows in _chunks(block.X, block.X.shape[1]))
        return np.concatenate([np.einsum("ij,ij->i", z, z) for z in parts])

    def model(self, v: Array) -> tuple[Array, Array]:
        """Return the (w, b) of the original columns, of shape (columns, classes) and (classes,)."""
        w, constant = self._in_columns(v)
        return w, constant - exact_product(self.center, w) if self.intercept else constant

    # -- the original columns ------------------------------------------------------------------------------

    def original_margins(self, w: Array, b: Array) -> tuple[Array, Array]:
        """Return the margins of a model, and by how much rounding can have changed them.

        Dense rows are centred first: w.(x - m) + (b + w.m) is off by (d + 4) eps (|w|.|x - m| + |b + w.m|),
        far less than w.x + b where means are large.
        """
        parts, errors, eps = [], [], (self.width + 4) * EPS
        centred = not self.blocks.sparse or self.exact
        c = b.astype(np.longdouble) + (self.center.astype(np.longdouble) @ w if centred else 0.0)
        c = c.astype(np.float64)
        for block in self.budget.watch(self.blocks):
            for rows in _chunks(block.X, block.X.shape[1]) if centred else [block.X]:
                z = _dense(rows) - self.center if centred else rows
                parts.append(np.asarray(z @ w) + c)
                errors.append(np.asarray(abs(z) @ np.abs(w)) + np.abs(c))
        error = np.concatenate(errors)
        margin = np.where(self.present(), self._sides(np.concatenate(parts)), np.inf)
        if self.classes > 1:
            error = error + np.take_along_axis(error, self.labels[:, None], axis=1)
        return margin, eps * error

    def length_of(self, w: Array, b: Array) -> float:
        """Return |v| of a model."""
        c = b + exact_product(self.center, w) if self.intercept else np.zeros(1)
        return float(np.sqrt(np.square(w * self.unit[:, None]).sum() + np.square(c).sum()))


def exact_product(center: Array, w: Array) -> Array:
    """Return center.w with the terms multiplied and added in extended precision, rounded once."""
    return np.asarray(center.astype(np.longdouble) @ w.astype(np.longdouble), dtype=np.float64)


def _chunks(X: Any, width: int) -> Iterator[Any]:
    step = max(CENTRED_NUMBERS // max(width, 1), 1)
    return (X[start : start + step] for start in range(0, X.shape[0], step))


def _dense(rows: Any) -> Array:
    return np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64)
