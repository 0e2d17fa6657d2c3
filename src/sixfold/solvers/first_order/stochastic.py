"""First-order solvers: gradient descent over all rows, one row, or a few rows at a time.

    gd          w <- prox(w - eta sum_i q_i loss'(s_i, y_i) x_i)      one step a pass over the data
    sgd         the update of :mod:`sixfold.solvers.first_order.sgd_updates`      one step a row
    minibatch   the same with the mean of ``batch_size`` rows         one step a batch

They serve every loss that has a gradient and every penalty, and they record the objective after every pass.

*Full gradients.* For a smooth loss the step is 1 / L, where L = curvature_bound * (largest eigenvalue of the
second moments of the columns) comes from a few rounds of power iteration and is doubled whenever the loss
rises above the parabola it promises; for the cubed loss, whose curvature has no bound, that test alone finds
L, and L may also fall. ``accelerate`` adds Nesterov's momentum, built up anew whenever the objective rises
(O'Donoghue and Candes, 2015). For a loss with kinks the step is halved, and the best model taken up again,
whenever some passes bring nothing better.

*Stochastic updates.* Without ``eta0``, the first step is the best of a few, each tried on a thousand rows
(Bottou, 2012); it is made four times smaller, and the best model taken up again, whenever a pass ends worse
than the start. Updates are a chain that one thread walks, so another adds up the objective of the model after
the pass before: a pass is on record when the next one ends.

Sources: Bottou (2012), Stochastic gradient descent tricks; Beck and Teboulle (2009), A fast iterative
shrinkage-thresholding algorithm for linear inverse problems; O'Donoghue and Candes (2015), Adaptive restart
for accelerated gradient schemes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.budget import Budget, BudgetExhausted
from sixfold.data.blocks import Block, Blocks, MemoryBlocks
from sixfold.risk.problem import Problem
from sixfold.solvers.base import Solution
from sixfold.solvers.first_order.gradient_descent import (
    FullGradient,
    descend_by_halving,
    descend_by_schedule,
    descend_smooth,
    diverged,
    smooth_step,
)
from sixfold.solvers.first_order.sgd_updates import RowState, StepRule, Watched, advance
from sixfold.solvers.first_order.stopping import (
    FirstOrderOptions,
    Progress,
    column_spread,
    constant_model,
    objective,
    penalty_value,
)

Array = NDArray[Any]

TRIAL_ROWS = 1000
TRIAL_PASSES = 50  # of full gradients over those rows
TRIAL_FACTOR = 4.0
MOST_TRIALS = 30
MANY_ROWS = 10_000  # whose order takes longer to draw (0.1 ms) than a thread to start
PATIENCE = 10  # passes without gain after which stochastic updates end


class _FirstOrder:
    """What the three solvers answer alike."""

    name: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ("gradient",)
    notices_nonfinite: ClassVar[bool] = False
    one_target: ClassVar[bool] = False

    def __init__(self, options: FirstOrderOptions | None = None) -> None:
        self.options = options or FirstOrderOptions()

    def objection(self, problem: Problem) -> str | None:
        """Return None: every loss with a gradient and every penalty will do."""
        return None

    def suits(self, problem: Problem, blocks: Blocks) -> bool:
        """Return True: they are listed last, for what no other solver minimises."""
        return True

    def _solution(self, progress: Progress, **details: Any) -> Solution:
        certificate = progress.certificate(**details)
        return Solution(progress.w, progress.b, certificate, self.name, progress.passes)


# -- full gradients --------------------------------------------------------------------------------------


class GradientDescent(_FirstOrder):
    """Gradient descent with the whole gradient, accelerated unless told otherwise.

    >>> from sixfold.risk.losses import LOSSES
    >>> from sixfold.risk.penalties import make_penalty
    >>> blocks = MemoryBlocks(np.array([[1.0], [2.0], [3.0]]), np.array([[3.0], [5.0], [7.0]]))
    >>> problem = Problem(LOSSES["squared"], make_penalty(None))
    >>> solution = GradientDescent().solve(problem, blocks, Budget(tol=1e-12))
    >>> solution.w.round(6), solution.b.round(6)
    (array([[2.]]), array([1.]))
    """

    name: ClassVar[str] = "gd"

    def solve(self, problem: Problem, blocks: Blocks, budget: Budget) -> Solution:
        """Minimise the problem."""
        options = self.options
        progress = Progress.begin(problem, blocks, budget, *constant_model(problem, blocks))
        smooth = problem.loss.smooth
        details: dict[str, Any] = {}
        try:
            gradient = FullGradient(problem, blocks, budget, options.standardize)
            if smooth and options.learning_rate in ("auto", "constant"):
                details = {"accelerated": options.accelerate}
                details["eta0"] = descend_smooth(gradient, progress, options.eta0, options.accelerate)
            elif options.learning_rate == "auto":
                details["eta0"] = options.eta0 or self._first_step(gradient, progress)
                descend_by_halving(gradient, progress, details["eta0"])
            else:
                details["eta0"] = options.eta0 or self._first_step(gradient, progress)
                descend_by_schedule(gradient, progress, self._rule(details["eta0"]))
        except BudgetExhausted:
            budget.exhausted()
        return self._solution(progress, **details)

    def _rule(self, eta0: float) -> StepRule:
        schedule = self.options.learning_rate
        decay = 0.1 if self.options.decay is None else self.options.decay
        return StepRule(schedule, eta0, decay if schedule == "decay" else self.options.power_t)

    def _first_step(self, gradient: FullGradient, progress: Progress) -> float:
        if gradient.problem.loss.smooth:
            return smooth_step(gradient, gradient.at(progress.w, progress.b))
        problem, options = gradient.problem, self.options
        rows = sample(gradient.blocks, options.generator())
        start = constant_model(problem, rows, progress.b.shape[0])

        def trial(eta0: float) -> float:
            budget = Budget(tol=0.0, max_iter=TRIAL_PASSES)
            small = Progress.begin(problem, rows, budget, *start)
            small.bounds = False
            trial_gradient = FullGradient(problem, rows, budget, options.standardize)
            descend_by_halving(trial_gradient, small, eta0)
            return small.objective

        return best_step(trial, progress.scale or 1.0, gradient.budget)


# -- stochastic updates ----------------------------------------------------------------------------------


class StochasticGradient(_FirstOrder):
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
        progress = Progress.begin(problem, blocks, budget, *start)
        begun = progress.objective
        spread = self._spread(problem, blocks)
        eta0 = self.options.eta0 or self.first_step(problem, blocks, budget, random, start[1].size, spread)
        rule = self.rule(problem, blocks.n_rows, eta0)
        state = self._state(*start, blocks, spread)
        with Orders(random, self.options.shuffle) as orders:
            passes = _Passes(problem, blocks, budget, orders)
            ended = budget.exhausted() or not passes.make(state, rule)
            if ended and state.updates > 0:
                self._keep_part(progress, state, rule)
            while not ended:
                w, b = state.model(rule)
                value, further = passes.value(w, b, state, rule)
                if progress.record(w, b, value):
                    break
                if progress.stalled(PATIENCE):
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

    def _state(self, w: Array, b: Array, blocks: Blocks, spread: tuple[Array, Array] | None) -> RowState:
        average = self.options.average_from is not None
        center, factor = spread or (None, None)
        return RowState.at(w, b, sparse=blocks.sparse, average=average, center=center, factor=factor)

    def _keep_part(self, progress: Progress, state: RowState, rule: StepRule) -> None:
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
            advance(state, block, problem, rule)
            return objective(problem, *state.model(rule), rows, Budget())

        typical = Progress.begin(problem, rows, budget, *start).scale
        return best_step(trial, _natural_step(problem, block, spread, typical), budget)


@dataclass
class _Passes:
    """Passes over the blocks.

    The objective after a pass is added up during the next, by a thread that would have nothing to do: updates
    are a chain that one thread walks.
    """

    problem: Problem
    blocks: Blocks
    budget: Budget
    orders: Orders

    def make(self, state: RowState, rule: StepRule, watched: Watched | None = None) -> bool:
        """Make one pass; false if the budget ended it."""
        scale = self.blocks.n_rows / self.blocks.weight_sum
        for block in self.blocks:
            order = self.orders.take(block.y.shape[0])
            if not advance(state, block, self.problem, rule, order, scale, self.budget, watched):
                return False
        return True

    def value(self, w: Array, b: Array, state: RowState, rule: StepRule) -> tuple[float, bool]:
        """Return the objective after the pass that was made last, and whether one more was made meanwhile."""
        if self.budget.iterations_left > 1 and all(_c_ordered(block.X) for block in self.blocks):
            watched = Watched(w, b)
            if self.make(state, rule, watched):
                total = penalty_value(self.problem, w) + watched.loss / self.blocks.n_rows
                return total if math.isfinite(total) else math.inf, True
        return objective(self.problem, w, b, self.blocks, Budget()), False


def _c_ordered(X: Any) -> bool:
    return isinstance(X, np.ndarray) and X.flags.c_contiguous


class Orders:
    """Random orders of rows; the next one of many rows is drawn while the last is in use."""

    def __init__(self, random: Any, shuffle: bool) -> None:
        self.random, self.shuffle = random, shuffle
        self._drawer: ThreadPoolExecutor | None = None
        self._next: Future[Array] | None = None

    def __enter__(self) -> Orders:
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
            order = self._draw(rows)
        if rows >= MANY_ROWS:
            self._drawer = self._drawer or ThreadPoolExecutor(1)
            self._next = self._drawer.submit(self._draw, rows)
        return order

    def _draw(self, rows: int) -> Array:
        return np.asarray(self.random.permutation(rows), dtype=np.int64)


class MiniBatch(StochasticGradient):
    """Stochastic gradient descent: the mean gradient of ``batch_size`` rows an update."""

    name: ClassVar[str] = "minibatch"

    @property
    def batch_size(self) -> int:
        """Rows an update."""
        return int(self.options.batch_size)


# -- finding a first step --------------------------------------------------------------------------------


def sample(blocks: Blocks, random: Any) -> MemoryBlocks:
    """Return some rows of the first block that has rows that count."""
    for block in blocks:
        count = np.ones(block.y.shape[0], bool) if block.weight is None else block.weight > 0
        rows = random.permutation(np.flatnonzero(count))[:TRIAL_ROWS]
        if rows.size:
            weight = None if block.weight is None else block.weight[rows]
            return MemoryBlocks(block.X[rows], block.y[rows], weight)
    raise AssertionError("the weights of a problem never sum to zero")


def _natural_step(
    problem: Problem, block: Block, spread: tuple[Array, Array] | None, typical_loss: float
) -> float:
    """Return the step that changes a typical row's score by as much as it is typically wrong."""
    X = block.X
    if spread is not None:
        squares = ((X - spread[0]) ** 2) @ spread[1]
    else:
        squares = np.asarray(X.multiply(X).sum(axis=1) if sp.issparse(X) else (X**2).sum(axis=1))
    length = float(np.mean(squares)) + problem.fit_intercept
    curvature = problem.loss.curvature_bound
    if not math.isfinite(curvature):
        # Kinked losses have slope 1 for an error of their own size; cubed losses 2 |r|, and |r|^3 / 3 = loss.
        curvature = (
            2.0 * (3.0 * typical_loss) ** (1 / 3) if problem.loss.smooth else 1.0 / (typical_loss or 1.0)
        )
    return 1.0 / (curvature * length or 1.0)


def best_step(trial: Callable[[float], float], guess: float, budget: Budget) -> float:
    """Return the step with the lowest trial among guess * 4^k, searched downhill from the guess."""
    best, value = guess, trial(guess)
    for factor in (TRIAL_FACTOR, 1.0 / TRIAL_FACTOR):
        for _ in range(MOST_TRIALS):
            reached = math.inf if budget.exhausted() else trial(best * factor)
            # Where everything overflows, smaller steps are the only hope.
            if not reached < value and not (math.isinf(value) and factor < 1.0):
                break
            best, value = best * factor, reached
        if best != guess:
            break
    return best
