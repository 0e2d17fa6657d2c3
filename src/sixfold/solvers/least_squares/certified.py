"""How far least squares is from its minimum at most, in exact arithmetic.

With slope g of the objective and A = R'R the second-moment matrix (l2 included), the objective lies exactly
|R^-T g|^2 / 2 above its minimum. g is known up to e, and R up to a share ``lost`` of itself, so that it is at
most

    (|R^-T g| + |R^-1| |e|)^2 / (2 (1 - lost)^2)

above. With a penalty the duality gap |g|^2 / (2 l2) at the residuals is larger, and anyone can recompute it
from the model alone. It is far larger where rounding of the coefficients dominates; there the residuals of
the coefficients before they were rounded are handed on as the dual point that shows the smaller one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.data.blocks import Blocks
from sixfold.risk.problem import Problem
from sixfold.risk.rank import EPS, LAST_DIGITS, ColumnSpace
from sixfold.risk.rounding import UNDERFLOW
from sixfold.solvers.least_squares.moments import UNIT
from sixfold.solvers.least_squares.slopes import SecondMoments, Slope

Array = NDArray[Any]

ENTRIES = 1 << 18  # of X that are centred at a time


def gaps(factor: ColumnSpace, w: Array, at: Slope, penalised: bool = False) -> Array:
    """Return how far each target is above its minimum at most, the rounding of the slope included."""
    of_b = 0.5 * np.square(np.abs(at.off) + at.off_error)
    if factor.lost > 0.5 or (penalised and factor.dependent.size):
        return np.full(at.off.shape, np.inf)
    kept = factor.kept
    norm = factor.inverse_norm
    error = _lengths(at.slope_error[kept] / factor.scale[kept, None])
    # Dividing by R is rounded as well, by the sizes of both.
    left = _lengths(factor.half_solve(at.slope)) * (1.0 + kept.size * EPS * norm)
    above: Array = 0.5 * np.square((left + norm * error) / (1.0 - factor.lost)) + of_b
    if factor.dependent.size == 0:
        return above
    # A model that does not tell columns apart which differ in their last digits has none of their slope.
    inexact = factor.dependent[~factor.exact]
    return above + (np.abs(w) * (np.abs(at.slope) + at.slope_error))[inexact].sum(axis=0)


def _lengths(columns: Array) -> Array:
    """Return the lengths of columns, in a third of the time that NumPy takes to choose among its norms."""
    return np.asarray(np.sqrt(np.add.reduce(columns * columns, axis=0)))


def duality_gaps(problem: Problem, at: Slope) -> Array:
    """Return the duality gap of each target at its residuals, where there is a penalty."""
    of_b = 0.5 * np.square(np.abs(at.off) + at.off_error)
    return 0.5 * np.square(np.abs(at.slope) + at.slope_error).sum(axis=0) / problem.l2 + of_b


def objectives(problem: Problem, w: Array, at: Slope, y2: Array, mean_y: Array) -> tuple[Array, Array, float]:
    """Return the objective of each target and its rounding, which it includes, and the scale of gaps.

    ``y2`` are the mean squares of the targets, about ``mean_y`` where there is an intercept.
    """
    penalty = 0.5 * problem.l2 * np.square(w).sum(axis=0)
    rounding = 0.5 * at.square_error + (w.shape[0] + 8) * UNIT * penalty + 4 * UNIT * at.square
    at_zero = y2 + (mean_y**2 if problem.fit_intercept else 0.0)
    rounding += UNDERFLOW * (at_zero > 0)
    scale = 0.5 * float(y2.sum()) + 0.5e-30 * float(at_zero.sum())
    return 0.5 * at.square + penalty + rounding, rounding, scale


def unrounded_slopes(second: SecondMoments, blocks: Blocks, w: Array) -> Array:
    """Return w.x + b - y of every row for the best b, about the means."""
    centred = second.problem.fit_intercept
    mean_x, mean_y = (second.mean_x, second.mean_y) if centred else (np.zeros(second.d), np.zeros(w.shape[1]))
    parts = []
    for block in blocks:
        scores = block.X @ w - mean_x @ w if blocks.sparse else _centred_product(block.X, mean_x, w)
        parts.append(np.asarray(scores) - (np.asarray(block.y, dtype=np.float64) - mean_y))
    return np.concatenate(parts)


def _centred_product(X: Array, mean: Array, w: Array) -> Array:
    """Return (X - mean) w, some rows at a time."""
    step = max(ENTRIES // max(X.shape[1], 1), 1)
    starts = range(0, X.shape[0], step)
    return np.concatenate([(X[start : start + step] - mean) @ w for start in starts])


def restriction(factor: ColumnSpace) -> tuple[str, ...]:
    """Return the note on columns that count as dependent though they differ in their last digits."""
    columns = factor.dependent[~factor.exact]
    return (LAST_DIGITS.format(", ".join(map(str, columns[:10]))),) if columns.size else ()
