"""Slopes of the loss that balance the penalty to the last digit: a dual point for problems that need one.

The duality gap at the slopes l'(s_i) of a model is |g|^2 / (2 l2), with g what is left of the slope of the
objective (see :mod:`sixfold.risk.problem`). Where l2 is tiny, the rounding of g makes that large, and without
penalty g must vanish altogether. Newton's equations of the loss alone say what to do:

    H beta = -g,   H = sum_i q_i z_i l''(s_i) z_i',        u_i = l'(s_i) + l''(s_i) z_i.beta

has sum_i q_i u_i z_i = -l2 (w, 0), and its gap is g'H^-1 g / 2, whatever l2. Since a row's u moves in
proportion to its curvature, u stays where the conjugate is finite: rows beyond the margin of the squared
hinge keep u = 0, and probabilities stay between 0 and 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.data.blocks import Blocks
from sixfold.risk.losses import softmax
from sixfold.risk.problem import Problem, normalized_weights
from sixfold.solvers.passes import times, transposed_times

Array = NDArray[Any]

MAX_FACTORED = 4000  # of theta, whose square is factored
CORRECTIONS = 3  # each leaves of the slope eps times the condition number of H


def balanced_slopes(
    problem: Problem, blocks: Blocks, objectives: list[Any], w: Array, b: Array
) -> Array | None:
    """Return u for every row and score, or None where H is too large to be factored."""
    if problem.loss.labels == "class":
        return _softmax_slopes(problem, blocks, objectives[0], w, b) if w.size <= MAX_FACTORED // 4 else None
    if blocks.n_columns > MAX_FACTORED:
        return None
    score = _scores(blocks, w, b)
    u = np.empty_like(score)
    for k, objective in enumerate(objectives):
        y = np.concatenate(objective.y)
        u[:, k] = problem.loss.gradient(score[:, k], y)
        h = problem.loss.curvature(score[:, k], y)
        factor = objective.factor(objective.data_curvature(h))
        for _ in range(CORRECTIONS):
            beta = factor.solve(
                -_unbalanced(problem, blocks, objective.shift, u[:, k : k + 1], w[:, k : k + 1])
            )
            u[:, k] += h * _moves(blocks, objective.shift, beta)[:, 0]
    return u


def _softmax_slopes(problem: Problem, blocks: Blocks, objective: Any, w: Array, b: Array) -> Array:
    score = _scores(blocks, w, b)
    u, p = problem.loss.gradient(score, np.concatenate(objective.y)), softmax(score)
    factor = objective.factor(objective.data_curvature(p))
    for _ in range(CORRECTIONS):
        beta = factor.solve(-_unbalanced(problem, blocks, objective.shift, u, w))
        moves = _moves(blocks, objective.shift, beta)
        u += p * (moves - (p * moves).sum(axis=1, keepdims=True))
    return np.asarray(u)


def _scores(blocks: Blocks, w: Array, b: Array) -> Array:
    return np.concatenate([times(block.X, w) + b for block in blocks])


def _moves(blocks: Blocks, shift: Array, beta: Array) -> Array:
    return _scores(blocks, beta[:-1], beta[-1] - shift @ beta[:-1])


def _unbalanced(problem: Problem, blocks: Blocks, shift: Array, u: Array, w: Array) -> Array:
    """Return sum_i q_i u_i z_i + l2 (w, 0)."""
    total = np.zeros((w.shape[0] + 1, w.shape[1]))
    for block in blocks:
        weighted = normalized_weights(block, blocks)[:, None] * u[block.rows]
        total[:-1] += transposed_times(block.X, weighted)
        total[-1] += weighted.sum(axis=0)
    total[:-1] += problem.l2 * w - shift[:, None] * total[-1]
    if not problem.fit_intercept:
        total[-1] = 0.0
    return total
