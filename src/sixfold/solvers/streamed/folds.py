"""Learning row by row where the rows are: the state goes from block to block, and from worker to worker.

A pass is :func:`sixfold.solvers.first_order.sgd_updates.sgd_pass` on one block after the other. Without
shuffling the updates are those of memory, bit by bit. With it the rows of each block are visited in a new
random order in every pass, one block after the other: an order that depends on how the rows are cut, but on
nothing else, as the seed of a block is made of the learner's, the pass and the number of its first row.
"""

from __future__ import annotations

import math
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.data.blocks import Block, Blocks
from sixfold.risk.problem import Problem
from sixfold.solvers.first_order.sgd_updates import SGDState, StepRule, sgd_pass
from sixfold.solvers.streamed.columns import pieces
from sixfold.solvers.streamed.sums import add_each

Array = NDArray[Any]


def visit(
    block: Block,
    state: SGDState,
    problem: Problem,
    rule: StepRule,
    scale: float,
    seed: tuple[int, int] | None,
    target: int | None,
) -> SGDState:
    """Return the state after visiting the rows of one block, of one target or of all together."""
    state = deepcopy(state)  # what came from another worker may not be written to
    for name in ("w", "c", "mean_w", "mean_c", "mistakes"):
        values = getattr(state, name)
        if not values.flags.writeable:
            setattr(state, name, values.copy(order="K"))
    order = None
    if seed is not None:
        order = np.random.default_rng([*seed, block.start]).permutation(block.y.shape[0]).astype(np.int64)
    y = block.y if target is None else np.ascontiguousarray(block.y[:, target : target + 1])
    sgd_pass(state, Block(block.X, y, block.weight, block.start), problem, rule, order, scale, Budget())
    return state


def fold_pass(
    blocks: Blocks,
    state: SGDState,
    problem: Problem,
    rule: StepRule,
    seed: tuple[int, int] | None,
    target: int | None = None,
) -> SGDState:
    """Return the state after one pass over all rows."""
    scale = blocks.n_rows / blocks.weight_sum
    step = partial(visit, problem=problem, rule=rule, scale=scale, seed=seed, target=target)
    return blocks.fold(step, state)


def whole_seed(random_state: Any) -> int:
    """Return the number that seeds all passes."""
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(1 << 31))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(1 << 31))
    return int(np.random.default_rng(None).integers(1 << 31)) if random_state is None else int(random_state)


def losses_of(block: Block, problem: Problem, w: Array, b: Array) -> Array:
    """Return the sum of losses of each score."""
    total = np.zeros(b.size)
    with np.errstate(all="ignore"):
        for rows in pieces(block):
            score = np.asarray(block.X[rows], dtype=np.float64) @ w + b
            q = (
                np.ones(score.shape[0])
                if block.weight is None
                else np.asarray(block.weight[rows], np.float64)
            )
            total += q @ problem.loss.value(score, np.asarray(block.y[rows], dtype=np.float64))
    return total


def values_of(problem: Problem, blocks: Blocks, w: Array, b: Array) -> Array:
    """Return the objective of each score; infinite where the model has overflowed."""
    sums = blocks.reduce(partial(losses_of, problem=problem, w=w, b=b), np.add) / blocks.weight_sum
    penalties = np.array([problem.penalty_value(w[:, k : k + 1]) for k in range(b.size)])
    return np.asarray(np.where(np.isfinite(sums), sums, math.inf) + penalties)


def plane_sums(block: Block, w: Array, b: Array) -> tuple[Any, ...]:
    """Return the weight of rows on the wrong side, the least margins, and the longest row, negative."""
    wrong, least, longest = np.zeros(b.size), np.full(b.size, np.inf), 0.0
    for rows in pieces(block):
        X = np.asarray(block.X[rows], dtype=np.float64)
        q = np.ones(X.shape[0]) if block.weight is None else np.asarray(block.weight[rows], np.float64)
        signed = np.asarray(block.y[rows], dtype=np.float64) * (X @ w + b)
        wrong += q @ (signed <= 0.0)
        least = np.minimum(least, signed[q > 0].min(axis=0, initial=np.inf))
        longest = max(longest, float(np.einsum("ij,ij->i", X, X)[q > 0].max(initial=0.0)))
    return wrong, least, longest


def join_planes(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the same of both sets of rows."""
    return (*add_each(one[:1], other[:1]), np.minimum(one[1], other[1]), max(one[2], other[2]))
