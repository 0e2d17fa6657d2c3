"""Perceptron and stochastic gradients of rows on a cluster: passes by :mod:`sixfold.solvers.streamed.folds`.

Proofs that no plane separates the classes are looked for in a sample: rows that overlap there overlap in the
whole table.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget, BudgetExhausted
from sixfold.certificate import Certificate
from sixfold.data.blocks import Blocks, MemoryBlocks
from sixfold.errors import InputError
from sixfold.learners.distributed import DistributedData
from sixfold.learners.linear.separability import MarginReport, planes_certificate, zero_one
from sixfold.risk.problem import Problem
from sixfold.solvers.base import Solution
from sixfold.solvers.first_order.epochs import STEP_DIVISOR
from sixfold.solvers.first_order.sgd_updates import SGDState
from sixfold.solvers.margin.margin_band import Band
from sixfold.solvers.separation.separation import Separation, separate
from sixfold.solvers.streamed.certificates import StreamedBound
from sixfold.solvers.streamed.columns import column_spread
from sixfold.solvers.streamed.folds import fold_pass, join_planes, plane_sums, values_of, whole_seed
from sixfold.solvers.streamed.hinge import take_sample

Array = NDArray[Any]

SAMPLE_ROWS = 5000
ZERO_BOUND = "no bound but zero is computed for this loss or penalty on a cluster"


def learn_planes(model: Any, problem: Problem, data: DistributedData, budget: Budget) -> Solution:
    """Go through the rows until there are no mistakes, or no gain, or the epochs are used up."""
    _refuse_held_out(model)
    blocks, rule, seed = data.blocks(), model._rule(), whole_seed(model.random_state)
    known: dict[int, tuple[Separation, float]] = {}
    state, began = model._state, int(model._state.mistakes.sum())
    best, idle = np.inf, 0.0
    patience = blocks.watch
    for epoch in budget.iterations():
        before = int(state.mistakes.sum())
        blocks.watch = budget.check
        try:
            state = fold_pass(blocks, state, problem, rule, (seed, epoch) if model.shuffle else None)
        except BudgetExhausted:  # the model of the pass before is kept
            budget.exhausted()
            break
        finally:
            blocks.watch = patience
        error = (int(state.mistakes.sum()) - before) / (blocks.n_rows * blocks.n_targets)
        if budget.exhausted() or budget.record(error, error, 1.0):
            break
        idle = 0 if model.tol is None or error < best - model.tol else idle + 1
        best = min(best, error)
        if idle >= model.n_iter_no_change:
            kinds = [_overlap(problem, blocks, budget, k, known).kind for k in range(blocks.n_targets)]
            if model.penalty is not None or any(kind != "unknown" for kind in kinds):
                break
            best, idle = np.inf, -np.inf  # there may be a plane: going on would find it
    model._state, model.mistakes_ = state, int(state.mistakes.sum()) - began
    w, b = (part.astype(blocks.dtype).astype(np.float64) for part in state.model(rule))
    if not (np.isfinite(w).all() and np.isfinite(b).all()):
        raise InputError(f"eta0={model.eta0!r} makes weights that are no longer finite. Use a smaller eta0.")
    blocks.watch = None
    wrong, least, longest = blocks.reduce(_planes(w, b), join_planes)
    length = np.sqrt(np.square(w).sum(axis=0) + np.square(b))
    report = MarginReport(
        wrong / blocks.weight_sum,
        least / np.where(length > 0, length, 1.0),
        math.sqrt(longest + problem.fit_intercept),
    )
    hurried = budget.interrupted or budget.seconds_left <= 0
    found = [
        None if hurried or report.wrong[k] == 0.0 else _overlap(problem, blocks, budget, k, known)
        for k in range(b.size)
    ]
    proofs = [None if one is None else one.proof for one in found]
    least_wrong = np.array(
        [known[k][1] if k in known and proofs[k] is not None else 0.0 for k in range(b.size)]
    )
    certificate = planes_certificate(report, found, least_wrong, float(model.max_error))
    model.proof_ = proofs[0] if len(proofs) == 1 else proofs
    means = column_spread(blocks).means()
    return Solution(w, b, certificate, "perceptron", len(budget.history), means=means)


def _planes(w: Array, b: Array) -> Any:
    return partial(plane_sums, w=w, b=b)


def _overlap(
    problem: Problem, blocks: Blocks, budget: Budget, target: int, known: dict[int, tuple[Separation, float]]
) -> Separation:
    """Return whether rows of a sample overlap, which proves it for all; unknown where they do not."""
    if target not in known:
        sample = _sample(blocks, target)
        table = MemoryBlocks(
            np.ascontiguousarray(sample.X), np.ascontiguousarray(sample.y[:, None]), sample.weight
        )
        found = separate(zero_one(problem.fit_intercept), table, budget)
        least = 0.0
        if found.kind in ("overlap", "quasi-complete") and found.proof is not None:
            least = float(sample.weight[found.proof.rows].min()) / blocks.weight_sum
            found = replace(found, proof=replace(found.proof, rows=sample.numbers[found.proof.rows]))
        else:
            found = replace(found, kind="unknown", proof=None)
        known[target] = found, least
    return known[target][0]


def _sample(blocks: Blocks, target: int) -> Band:
    every = max(blocks.n_rows // SAMPLE_ROWS, 1)
    return blocks.reduce(partial(take_sample, every=every, target=target), Band.__add__)


def _refuse_held_out(model: Any) -> None:
    if model.early_stopping:
        raise InputError(
            "early_stopping=True holds rows out, which is done in one process. On a cluster leave it False."
        )


# -- stochastic gradients ------------------------------------------------------------------------------------


def learn_scores(
    model: Any, problem: Problem, data: DistributedData, budget: Budget, w: Array, b: Array
) -> Solution:
    """Go through the rows, epoch after epoch, until that no longer improves the model."""
    from sixfold.learners.linear.sgd import SMALLEST_STEP, _joined

    _refuse_held_out(model)
    blocks, seed = data.blocks(), whole_seed(model.random_state)
    scale, count = model._scale(blocks), b.size
    states = [SGDState.at(w[:, [k]], b[[k]], average=bool(model.average)) for k in range(count)]
    rules = [model._rule(scale)] * count
    tol = None if model.tol is None else model.tol / model._loss_factor
    smallest = SMALLEST_STEP * scale if model.learning_rate == "adaptive" else np.inf
    best, idle, finished = np.full(count, np.inf), np.zeros(count, dtype=int), np.zeros(count, dtype=bool)
    values, patience = np.full(count, np.inf), blocks.watch
    for epoch in budget.iterations():
        blocks.watch = budget.check
        try:
            for k in np.flatnonzero(~finished):
                order = (seed, epoch) if model.shuffle else None
                states[k] = fold_pass(blocks, states[k], problem, rules[k], order, int(k))
            last = np.hstack([state.w for state in states]), np.concatenate([state.c for state in states])
            values = values_of(problem, blocks, *last)
        except BudgetExhausted:
            budget.exhausted()
            break
        finally:
            blocks.watch = patience
        for k in np.flatnonzero(~finished):
            idle[k] = idle[k] + 1 if tol is not None and values[k] > best[k] - tol else 0
            best[k] = min(best[k], values[k])
            if idle[k] < model.n_iter_no_change:
                continue
            if rules[k].eta0 > smallest:
                rules[k], idle[k] = replace(rules[k], eta0=rules[k].eta0 / STEP_DIVISOR), 0
            else:
                finished[k] = True
        total = float(values.sum())
        model._require_finite(total)
        budget.record(total, total, 1.0)
        if budget.stopped_by is not None or finished.all():
            break
    if model.tol is None:
        budget.new_part()
    model._state = _joined(states, False)
    models = [state.model(rule) for state, rule in zip(states, rules, strict=True)]
    w = blocks.rounded(np.hstack([each[0] for each in models]))
    b = blocks.rounded(np.concatenate([each[1] for each in models]))
    blocks.watch = None
    spread = column_spread(blocks)
    certificate = _certificate(problem, blocks, w, b, spread, budget)
    model._require_finite(certificate.objective)
    return Solution(w, b, certificate, "sgd", len(budget.history), means=spread.means())


def _certificate(
    problem: Problem, blocks: Blocks, w: Array, b: Array, spread: Any, budget: Budget
) -> Certificate:
    """Return the duality gap of signs with squares in the penalty; else zero is the bound."""
    signs = problem.loss.labels == "sign" and problem.penalised and problem.penalty.l2 > 0
    hurried = budget.interrupted or budget.seconds_left <= 0
    if signs:
        scale = float(problem.loss.value(np.zeros((1, 1)), np.ones((1, 1)))[0, 0]) * b.size
        found = StreamedBound(problem, blocks, w, b, spread, bounded=not hurried)
        return found.certificate(scale, budget.tol)
    value = float(values_of(problem, blocks, w, b).sum())
    zero = float(values_of(problem, blocks, np.zeros_like(w), np.zeros_like(b)).sum())
    up = 64.0 * spread.depth * 2.0**-53 * (value + zero)
    return Certificate(
        "duality gap", value + up, value + up, zero, budget.tol, notes=(ZERO_BOUND,), rounding=2.0 * up
    )
