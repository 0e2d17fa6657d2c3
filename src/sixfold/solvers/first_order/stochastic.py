"""Stochastic gradient descent: one row, or the mean of a few rows, an update.

    sgd         the update of :mod:`sixfold.solvers.first_order.sgd_updates`      one step a row
    minibatch   the same with the mean of ``batch_size`` rows                     one step a batch

Without ``eta0``, the first step is the best of a few, each tried on a thousand rows (Bottou, 2012); it is
made four times smaller, and the best model taken up again, whenever a pass ends worse than the start. Updates
are a chain that one thread walks, so another adds up the objective of the model after the pass before: a pass
is on record when the next one ends.

Source: Bottou (2012), Stochastic gradient descent tricks.
"""

from __future__ import annotations

import math
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.data.blocks import Blocks
from sixfold.risk.problem import Problem
from sixfold.solvers.base import Solution
from sixfold.solvers.first_order.first_step import TRIAL_FACTOR, best_step, natural_step, sample
from sixfold.solvers.first_order.options import FirstOrderSolver
from sixfold.solvers.first_order.sgd_updates import ReferenceModel, SGDState, StepRule, sgd_pass
from sixfold.solvers.first_order.stopping import FirstOrderProgress, diverged
from sixfold.solvers.passes import column_spread, constant_model, objective

Array = NDArray[Any]

MANY_ROWS = 50_000  # whose order takes longer to draw (0.07 ms) than a thread to start
SGD_PATIENCE = 10  # passes without gain after which stochastic updates end


class StochasticGradient(FirstOrderSolver):
    """Stochastic gradient descent: one row an update."""

    name: ClassVar[str] = "sgd"

    @property
    def batch_size(self) -> int:
        """Rows an update."""
        return 1

    def solve(self, problem: Problem, blocks: Blocks, budget: Budget) -> Solution:
        """Minimise the problem."""
        random = self.options.generator()
        start = constant_model(problem, blocks)
        progress = FirstOrderProgress.begin(problem, blocks, budget, *start)
        begun = progress.objective
        spread = self._spread(problem, blocks)
        eta0 = self.options.eta0 or self.first_step(problem, blocks, budget, random, start[1].size, spread)
        rule = self.rule(problem, blocks.n_rows, eta0)
        state = self._state(*start, blocks, spread)
        with EpochOrder(random, self.options.shuffle) as epoch_order:
            passes = Passes(problem, blocks, budget, epoch_order)
            ended = budget.exhausted() or not passes.make(state, rule)
            if ended and state.updates > 0:
                self._keep_part(progress, state, rule)
            while not ended:
                w, b = state.model(rule)
                value, further = passes.value(w, b, state, rule)
                if progress.record(w, b, value):
                    break
                if progress.stalled(SGD_PATIENCE):
                    progress.stop("lack of progress", "further passes no longer lower the objective")
                    break
                if self.options.eta0 is None and not value <= begun:
                    rule = self.rule(problem, blocks.n_rows, rule.eta0 / TRIAL_FACTOR)
                    state, further = self._state(progress.w, progress.b, blocks, spread), False
                elif diverged(progress, value, begun, rule.eta0):
                    break
                ended = not further and not passes.make(state, rule)
        budget.exhausted()
        return self._solution(progress, eta0=rule.eta0)

    def rule(self, problem: Problem, rows: int, eta0: float) -> StepRule:
        """Return the step sizes for passes over so many rows."""
        options = self.options
        schedule = "decay" if options.learning_rate == "auto" else options.learning_rate
        rate = options.power_t
        if schedule == "decay":
            # 1 / (alpha l2 t) is the classical step for a curvature of alpha l2. Without one, the step falls
            # to a quarter in the first pass: on twelve data sets with correlations from 0 to 0.99 the largest
            # excess after five passes was 1.4% of the constant model's loss; 3.2% with 1 instead of 3, 8.3%
            # with 30.
            natural = max(eta0 * problem.l2, 3.0 * self.batch_size / max(rows, 1))
            rate = natural if options.decay is None else options.decay
        return StepRule(schedule, eta0, rate, self.batch_size, options.average_from)

    def _spread(self, problem: Problem, blocks: Blocks) -> tuple[Array, Array] | None:
        standardized = self.options.standardize and not blocks.sparse
        return column_spread(problem, blocks) if standardized else None

    def _state(self, w: Array, b: Array, blocks: Blocks, spread: tuple[Array, Array] | None) -> SGDState:
        average = self.options.average_from is not None
        center, factor = spread or (None, None)
        return SGDState.at(w, b, sparse=blocks.sparse, average=average, center=center, factor=factor)

    def _keep_part(self, progress: FirstOrderProgress, state: SGDState, rule: StepRule) -> None:
        """Let an unfinished first pass count; later ones are dropped for the last whole one."""
        w, b = state.model(rule)
        value = objective(progress.problem, w, b, progress.blocks, Budget())
        progress.bounds = False
        progress.record(w, b, value)

    def first_step(
        self,
        problem: Problem,
        blocks: Blocks,
        budget: Budget,
        random: Any,
        scores: int,
        spread: tuple[Array, Array] | None = None,
    ) -> float:
        """Return the first step that serves best on some rows."""
        rows = sample(blocks, random)
        block = next(iter(rows))
        start = constant_model(problem, rows, scores)

        def trial(eta0: float) -> float:
            state = self._state(*start, blocks, spread)
            rule = self.rule(problem, rows.n_rows, eta0)
            sgd_pass(state, block, problem, rule)
            return objective(problem, *state.model(rule), rows, Budget())

        typical = FirstOrderProgress.begin(problem, rows, budget, *start).scale
        return best_step(trial, natural_step(problem, block, spread, typical), budget)


@dataclass
class Passes:
    """Passes over the blocks.

    The objective after a pass is added up during the next, by a thread that would have nothing to do: updates
    are a chain that one thread walks.
    """

    problem: Problem
    blocks: Blocks
    budget: Budget
    epoch_order: EpochOrder

    def make(self, state: SGDState, rule: StepRule, reference: ReferenceModel | None = None) -> bool:
        """Make one pass; false if the budget ended it."""
        scale = self.blocks.n_rows / self.blocks.weight_sum
        for block in self.blocks:
            order = self.epoch_order.take(block.y.shape[0])
            if not sgd_pass(state, block, self.problem, rule, order, scale, self.budget, reference):
                return False
        return True

    def value(self, w: Array, b: Array, state: SGDState, rule: StepRule) -> tuple[float, bool]:
        """Return the objective after the pass that was made last, and whether one more was made meanwhile."""
        if self.budget.iterations_left > 1 and all(_c_ordered(block.X) for block in self.blocks):
            reference = ReferenceModel(w, b)
            if self.make(state, rule, reference):
                total = self.problem.penalty_value(w) + reference.loss / self.blocks.n_rows
                return total if math.isfinite(total) else math.inf, True
        return objective(self.problem, w, b, self.blocks, Budget()), False


def _c_ordered(X: Any) -> bool:
    return isinstance(X, np.ndarray) and X.flags.c_contiguous


class EpochOrder:
    """Random orders of rows, one a pass; the next one of many rows is drawn while the last is in use."""

    def __init__(self, random: Any, shuffle: bool) -> None:
        self.random, self.shuffle = random, shuffle
        self._drawer: ThreadPoolExecutor | None = None
        self._next: Future[Array] | None = None
        self._state: Array | None = None

    def __enter__(self) -> EpochOrder:
        return self

    def __exit__(self, *error: object) -> None:
        if self._drawer is not None:
            self._drawer.shutdown()

    def take(self, rows: int) -> Array:
        """Return all row numbers: shuffled, or as they come."""
        if not self.shuffle:
            return np.arange(rows, dtype=np.int64)
        # Waited for even if of the wrong size: random numbers come in one sequence.
        order = None if self._next is None else self._next.result()
        if order is None or order.size != rows:
            order = self._draw(rows)[0]
        if rows >= MANY_ROWS:
            self._drawer = self._drawer or ThreadPoolExecutor(1)
            self._next = self._drawer.submit(lambda: self._draw(rows)[0])
        return order

    def take_several(self, rows: int, passes: int) -> Array:
        """Return the orders of several passes, one a row; for few rows, none of which is drawn in advance."""
        return self._draw(rows, passes) if self.shuffle else np.tile(np.arange(rows), (passes, 1))

    def _draw(self, rows: int, passes: int = 1) -> Array:
        if self._state is None:
            self._state = np.frombuffer(self.random.bytes(8), dtype=np.uint64).copy()
        orders = np.empty((passes, rows), dtype=np.int64)
        core.shuffle_rows(self._state, orders)
        return orders


class MiniBatch(StochasticGradient):
    """Stochastic gradient descent: the mean gradient of ``batch_size`` rows an update."""

    name: ClassVar[str] = "minibatch"

    @property
    def batch_size(self) -> int:
        """Rows an update."""
        return int(self.options.batch_size)
