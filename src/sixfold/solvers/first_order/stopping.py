"""What gradient descent and its stochastic relatives share: options, column scaling, and when to stop.

*When to stop.* Every pass over the data is one record of the budget, with the exact objective R(w, b) after
it. A bound on min R costs several passes (without penalty a factorisation), so it is computed only

- after a pass that gained less than tol * scale: before that the tolerance is certainly not met, and
- at most once in as many passes as it costs, and in a tenth of those made.

The gap on record is that of the best model so far: its objective minus the best lower bound so far, the
first of which is 0, as no loss or penalty is negative. The best model of all passes is what is returned, and
its certificate is computed from it and the data alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.certificate import Certificate
from sixfold.data.blocks import Block, Blocks
from sixfold.errors import check_flag, check_number, check_option
from sixfold.risk.problem import Problem, normalized_weights
from sixfold.solvers.first_order.sgd_updates import LOSS_CODES, SCHEDULES

Array = NDArray[Any]

CHUNK_BYTES = 1 << 20  # of float64, so that a converted chunk stays in the L2 cache
SPREAD_ROWS = 10_000  # rows from which the size of columns is estimated
EXPLODED = 100.0  # times the objective at the start: what has grown so far does not come back
CERTIFY_WORK = 1e9  # multiplications (about 0.2 s) that a bound may still cost when time is up


@dataclass(frozen=True)
class FirstOrderOptions:
    """How the first-order solvers step.

    Attributes
    ----------
    learning_rate : {"auto", "constant", "decay", "invscaling"}
        "constant" is eta0, "decay" is eta0 / (1 + decay t), "invscaling" is eta0 / (t + 1)^power_t after t
        updates. "auto" is "decay" for stochastic updates; for full gradients it is "constant" where the loss
        is smooth, and a step that is halved when it brings nothing better where it is not.
    eta0 : float or None
        The first step; None finds one from the data.
    decay : float or None
        None lets the step fall to a quarter in the first pass, or faster where the penalty is curved enough.
    power_t : float
    average : bool or int
        True averages all iterates; a number those after so many updates.
    shuffle : bool
        Visit the rows of every block in a new random order in every pass.
    batch_size : int
        Rows an update of "minibatch".
    standardize : bool
        Step in each column according to its spread (see :mod:`sixfold.solvers.first_order.sgd_updates`); the
        problem and its solution stay the same. Stochastic updates over sparse rows never do, since it would
        touch every column.
    accelerate : bool
        Nesterov's momentum for full gradients.
    random_state : int, Generator, RandomState or None
    """

    learning_rate: str = "auto"
    eta0: float | None = None
    decay: float | None = None
    power_t: float = 0.5
    average: bool | int = False
    shuffle: bool = True
    batch_size: int = 32
    standardize: bool = True
    accelerate: bool = True
    random_state: Any = 0

    def __post_init__(self) -> None:
        check_option("learning_rate", self.learning_rate, ("auto", *SCHEDULES))
        check_number("eta0", self.eta0, above=0.0, optional=True)
        check_number("decay", self.decay, at_least=0.0, optional=True)
        check_number("power_t", self.power_t, at_least=0.0)
        check_flag("shuffle", self.shuffle)
        check_number("batch_size", self.batch_size, at_least=1, whole=True)
        if not isinstance(self.average, bool):
            check_number("average", self.average, at_least=0, whole=True)

    @property
    def average_from(self) -> int | None:
        """Updates after which iterates are averaged, or None."""
        if self.average is False:
            return None
        return 0 if self.average is True else int(self.average)

    def generator(self) -> Any:
        """Return the random numbers of ``random_state``."""
        if hasattr(self.random_state, "permutation"):
            return self.random_state
        return np.random.default_rng(self.random_state)


# -- passes over the data ------------------------------------------------------------------------------


def targets(problem: Problem, block: Block) -> Array:
    """Return y as the loss wants it: a column a score, or plain class numbers."""
    return block.y[:, 0] if problem.loss.labels == "class" else block.y


def times(X: Any, w: Array) -> Array:
    """Return X w in float64, without a float64 copy of X."""
    if X.dtype == np.float64 or sp.issparse(X):
        return np.asarray(X @ w)
    score = np.empty((X.shape[0], w.shape[1]))
    for rows in _chunks(X):
        np.matmul(X[rows].astype(np.float64), w, out=score[rows])
    return score


def transposed_times(X: Any, u: Array) -> Array:
    """Return X' u in float64, without a float64 copy of X."""
    if X.dtype == np.float64 or sp.issparse(X):
        return np.asarray(X.T @ u)
    total = np.zeros((X.shape[1], u.shape[1]))
    for rows in _chunks(X):
        total += X[rows].astype(np.float64).T @ u[rows]
    return total


def _chunks(X: Any) -> Iterator[slice]:
    step = max(CHUNK_BYTES // (8 * max(X.shape[1], 1)), 1)
    return (slice(start, start + step) for start in range(0, X.shape[0], step))


def penalty_value(problem: Problem, w: Array) -> float:
    """Return alpha * penalty(w), infinite where a weight is negative and must not be."""
    if problem.penalised:
        with np.errstate(all="ignore"):
            return problem.alpha * problem.penalty.value(w)
    return math.inf if problem.penalty.positive and np.any(w < 0) else 0.0


def objective(problem: Problem, w: Array, b: Array, blocks: Blocks, budget: Budget) -> float:
    """Return R(w, b); infinite where the model has overflowed."""
    total = penalty_value(problem, w)
    for block in budget.watch(blocks):
        total += _block_loss(problem, w, b, block, budget) / blocks.weight_sum
    return total if math.isfinite(total) else math.inf


def _block_loss(problem: Problem, w: Array, b: Array, block: Block, budget: Budget) -> float:
    """Return sum_i weight_i loss(w.x_i + b, y_i) over a block."""
    weight = None if block.weight is None else np.asarray(block.weight, dtype=np.float64)
    if isinstance(block.X, np.ndarray) and block.X.flags.c_contiguous:
        finished, total = core.empirical_loss(
            X=block.X,
            y=np.ascontiguousarray(block.y, dtype=np.float64),
            weight=weight,
            loss=LOSS_CODES.index(problem.loss.name),
            w=np.ascontiguousarray(w.T),
            b=b,
            seconds_left=budget.seconds_left,
            flag=budget.flag,
        )
        budget.check(finished)
        return float(total)
    with np.errstate(all="ignore"):
        value = problem.loss.value(times(block.X, w) + b, targets(problem, block))
        return float(value.sum() if weight is None else (weight @ value).sum())


def constant_model(problem: Problem, blocks: Blocks, scores: int | None = None) -> tuple[Array, Array]:
    """Return the start: no weights, and the mean of real targets as intercept."""
    scores = problem.n_scores(blocks) if scores is None else scores
    b = np.zeros(scores)
    if problem.fit_intercept and problem.loss.labels == "real":
        b = blocks.reduce(
            lambda block: normalized_weights(block, blocks) @ block.y.astype(np.float64), np.add
        )
    return np.zeros((blocks.n_columns, scores)), b


def column_spread(problem: Problem, blocks: Blocks) -> tuple[Array, Array]:
    """Return where to centre each column and the factor of its step, 1 / variance.

    Any centre and any positive factor leave the problem the same, so a sample of the rows is enough. Without
    intercept nothing can be centred, and the mean square stands for the variance. A constant column has
    factor 1.
    """
    every = max(blocks.n_rows // SPREAD_ROWS, 1)
    center, variance = _column_moments(problem, blocks, every)
    if every > 1 and np.any(variance == 0.0):
        center, variance = _column_moments(problem, blocks, 1)  # too rare for the sample
    return center, 1.0 / np.where(variance > 0.0, variance, 1.0)


def _column_moments(problem: Problem, blocks: Blocks, every: int) -> tuple[Array, Array]:
    def sums(block: Block) -> Array:
        X, q = block.X[::every], normalized_weights(block, blocks)[::every]
        return np.vstack([transposed_times(X, q[:, None])[:, 0], np.full(X.shape[1], q.sum())])

    total, mass = blocks.reduce(sums, np.add)
    center = total / np.where(mass > 0.0, mass, 1.0)
    if not problem.fit_intercept:
        center = np.zeros_like(center)

    def squares(block: Block) -> Array:
        X, q = block.X[::every], normalized_weights(block, blocks)[::every]
        if sp.issparse(X):
            # sum q (x - m)^2 = sum over entries q x (x - 2 m) + m^2 sum q
            entries = transposed_times(X.multiply(X), q[:, None])[:, 0]
            return np.asarray(entries - 2.0 * center * (X.T @ q) + center**2 * q.sum())
        deviations = (np.square(X[rows] - center) for rows in _chunks(X))
        return sum(
            (q[rows] @ part for rows, part in zip(_chunks(X), deviations, strict=True)),
            np.zeros(X.shape[1]),
        )

    variance = blocks.reduce(squares, np.add) / np.where(mass > 0.0, mass, 1.0)
    # Below this the column is constant but for rounding.
    return center, np.where(variance > (1e-13 * center) ** 2, variance, 0.0)


# -- when to stop ----------------------------------------------------------------------------------------


@dataclass
class Progress:
    """The best model so far, the best lower bound, and the word on whether to go on."""

    problem: Problem
    blocks: Blocks
    budget: Budget
    scale: float  # objective of the constant model
    w: Array
    b: Array
    objective: float
    lower: float = 0.0
    bounds: bool = True  # whether lower bounds are wanted at all
    notes: list[str] = field(default_factory=list)
    _gap: float | None = None  # of the best model, where it was computed
    _previous: float = math.inf
    _checked: int = 0  # the pass after which a bound was last computed
    _milestone: float = math.inf
    _milestone_pass: int = 0

    @classmethod
    def begin(cls, problem: Problem, blocks: Blocks, budget: Budget, w: Array, b: Array) -> Progress:
        """Return the progress of a solver that starts at the constant model, w = 0."""
        at_start = at_zero = problem.constant_loss(b, blocks)
        if b.any():
            at_zero = problem.constant_loss(0.0 * b, blocks)
        # The last term is what rounding leaves of a constant target.
        return cls(problem, blocks, budget, at_start + 1e-30 * at_zero, w, b, at_start)

    @property
    def passes(self) -> int:
        """How many passes are on record."""
        return len(self.budget.history)

    def record(self, w: Array, b: Array, value: float) -> bool:
        """Note the model after one pass; true when the solver should stop."""
        if value < self.objective:
            self.w, self.b, self.objective, self._gap = w, b, value, None
        if self.objective < self._milestone - 0.1 * self.budget.tol * self.scale:
            self._milestone, self._milestone_pass = self.objective, self.passes + 1
        gained = self._previous - value
        self._previous = value
        since = self.passes + 1 - self._checked
        due = since >= max(self._bound_passes(), self.passes // 10)
        # On the way a bound serves to stop, which none does for a tolerance of 0; the certificate has one.
        wanted = self.bounds and self.budget.tol > 0.0
        if wanted and due and gained <= self.budget.tol * self.scale:
            self._checked = self.passes + 1
            self.lower = max(self.lower, self.objective - self.best_gap())
        gap = max(self.objective - self.lower, 0.0)
        return self.budget.record(value, gap, self.scale)

    def best_gap(self) -> float:
        """Return a bound on what the best model so far can be improved by."""
        if self._gap is None:
            with np.errstate(all="ignore"):
                self._gap = min(self.objective, self.problem.gap(self.w, self.b, self.blocks))
        return self._gap

    def stalled(self, passes: int) -> bool:
        """Return whether the last so many passes gained less than a tenth of the tolerance."""
        return self.passes - self._milestone_pass >= passes

    def stop(self, why: str, note: str) -> None:
        """End the work for a reason of the solver's own."""
        self.budget.stopped_by = self.budget.stopped_by or why
        self.notes.append(note)

    def certificate(self, **details: Any) -> Certificate:
        """Return what is known of the best model.

        When time is up and the bound would take long, the gap is the objective itself: true, as nothing is
        negative, and free.
        """
        self._round()
        hurried = self.budget.interrupted or self.budget.seconds_left <= 0
        if hurried and self._bound_work() > CERTIFY_WORK:
            gap = self.objective if self._gap is None else self._gap
            self.notes.append("time was up, so no better bound than zero was computed")
        else:
            gap = self.best_gap()
        return Certificate(
            "duality gap", self.objective, gap, self.scale, self.budget.tol, details, notes=tuple(self.notes)
        )

    def _round(self) -> None:
        """Turn the best model into what its learner keeps, in the precision of the data."""
        if self.blocks.dtype != np.float64:
            self.w, self.b = (a.astype(self.blocks.dtype).astype(np.float64) for a in (self.w, self.b))
            self.objective = objective(self.problem, self.w, self.b, self.blocks, Budget())
            self._gap = None

    def _bound_passes(self) -> float:
        dense = not self.problem.penalised and not self.blocks.sparse
        return 5 + (self.blocks.n_columns // 10 if dense else 0)

    def _bound_work(self) -> float:
        width = self.blocks.n_columns
        rows = self.blocks.n_rows * (min(width, 100) if self.blocks.sparse else width)
        return float(rows * (8 if self.problem.penalised else max(width, 8)))
