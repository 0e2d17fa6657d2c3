"""Stochastic updates: the model after every row, or every few rows.

With t updates made so far, a batch B of rows (often one) and g_i = weight_i loss'(w.x_i + b, y_i),

    u = max(0, 1 - eta_t alpha l2) w - eta_t mean_B g_i x_i         b <- b - eta_t mean_B g_i
    w <- u - eta_t alpha l1 sign(u), but never across zero

which are the textbook updates (for the squared loss w <- w + eta (y - s) x, and so on) except that no
shrinkage changes the sign of a weight: subtracting eta alpha l1 sign(w) past zero would make weights jump to
and fro around the zero they belong at. Weights are scaled to a mean of 1.

=========== ==========================  ==========================================
schedule    eta_t, t = 0, 1, ...        converges for
=========== ==========================  ==========================================
constant    eta0                        data that a model fits exactly
decay       eta0 / (1 + rate t)         every convex loss whose curvature is known
invscaling  eta0 / (t + 1)^rate         every convex loss, for 1/2 <= rate <= 1
=========== ==========================  ==========================================

*Columns of different size.* Where a state has ``center`` m and ``factor`` f, column j counts as x_j - m_j and
its step is eta f_j. That is the same update in a diagonal metric, with the intercept meant at x = m instead
of x = 0: the minimiser and the penalties stay those of the original columns.

:func:`sgd_pass` makes one pass over one block, so it also serves learning from a stream; :func:`sgd_epochs`
makes several over the same rows in one call.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.data.blocks import Block
from sixfold.risk.problem import Problem
from sixfold.solvers.passes import LOSS_CODES

Array = NDArray[Any]

# The position is the number that the native loop knows the schedule by.
SCHEDULES = ("constant", "decay", "invscaling")
# What a score of 0 is to the perceptron; these follow the losses.
AT_ZERO = ("wrong", "positive", "negative")


@dataclass(frozen=True)
class StepRule:
    """How large the updates are and what they are made of.

    Attributes
    ----------
    schedule : {"constant", "decay", "invscaling"}
    eta0 : float
        The first step.
    rate : float
        The number called rate in the table above.
    batch_size : int
        Rows an update.
    average_from : int or None
        Updates after which the iterates are averaged; None for the last iterate itself.
    at_zero : {"wrong", "positive", "negative"} or None
        What the perceptron takes a score of 0 for: a mistake for either label, as where it starts from w =
        0; a prediction of +1, or of -1; None for right, which is its gradient.
    """

    schedule: str
    eta0: float
    rate: float = 0.0
    batch_size: int = 1
    average_from: int | None = None
    at_zero: str | None = None

    def step_size(self, updates: int) -> float:
        """Return eta_t after t = ``updates`` updates.

        >>> StepRule("decay", 1.0, 0.5).step_size(2), StepRule("invscaling", 1.0, 0.5).step_size(3)
        (0.5, 0.5)
        """
        if self.schedule == "decay":
            return self.eta0 / (1.0 + self.rate * updates)
        if self.schedule == "invscaling":
            return float(self.eta0 * (updates + 1.0) ** -self.rate)
        return self.eta0


@dataclass
class SGDState:
    """A model between two updates; :func:`sgd_pass` changes it in place.

    Attributes
    ----------
    w : ndarray of shape (columns, scores)
    c : ndarray of shape (scores,)
        The score at x = center, which is the intercept where there is no center.
    mean_w, mean_c : ndarray
        Their averages; empty where nothing is averaged.
    center, factor : ndarray of shape (columns,), or None
    mistakes : int64 ndarray of shape (scores,)
        Visits so far with the score on the wrong side (y s <= 0, or as ``at_zero`` says), at the model
        before the update; for softmax, of rows of that class without the one largest score. Set it to 0 to
        count anew.
    updates : int
        How many were made.
    """

    w: Array
    c: Array
    mean_w: Array
    mean_c: Array
    center: Array | None = None
    factor: Array | None = None
    mistakes: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    updates: int = 0

    @classmethod
    def at(
        cls,
        w: Array,
        b: Array,
        *,
        sparse: bool = False,
        average: bool = False,
        center: Array | None = None,
        factor: Array | None = None,
    ) -> SGDState:
        """Return the state that starts at the model (w, b)."""
        # Sparse rows update column by column, dense rows score by score.
        w = np.array(w, dtype=np.float64, order="C" if sparse else "F")
        c = np.array(b, dtype=np.float64) + (0.0 if center is None else center @ w)
        empty = w[:0, :0], c[:0]
        mean_w, mean_c = (np.zeros_like(w), np.zeros_like(c)) if average else empty
        return cls(w, c, mean_w, mean_c, center, factor, np.zeros(c.size, dtype=np.int64))

    def copy(self) -> SGDState:
        """Return a state that further updates of this one leave alone."""
        arrays = {name: getattr(self, name).copy("K") for name in ("w", "c", "mean_w", "mean_c", "mistakes")}
        return replace(self, **arrays)

    def model(self, rule: StepRule) -> tuple[Array, Array]:
        """Return (w, b) of the average where averaging has begun, else of the last iterate, as copies."""
        averaged = rule.average_from is not None and self.updates > rule.average_from
        w, c = (self.mean_w, self.mean_c) if averaged else (self.w, self.c)
        return w.copy(), c - (0.0 if self.center is None else self.center @ w)


@dataclass
class ReferenceModel:
    """The model of the pass before, whose loss is added up by a second thread while the first one updates.

    After a pass over a C-ordered block, ``loss`` has grown by sum_i weight_i loss(w.x_i + b, y_i) over all of
    its rows: the objective after one pass comes with the next.

    Attributes
    ----------
    w, b : ndarray
    loss : float
    """

    w: Array
    b: Array
    loss: float = 0.0


def sgd_pass(
    state: SGDState,
    block: Block,
    problem: Problem,
    rule: StepRule,
    order: Array | None = None,
    weight_scale: float | None = None,
    budget: Budget | None = None,
    reference: ReferenceModel | None = None,
) -> bool:
    """Make one pass over the rows of a block.

    Parameters
    ----------
    order : int64 ndarray or None
        The rows to visit, in this order; None for all of them as they come.
    weight_scale : float or None
        What weights are multiplied by; None makes those of this block have a mean of 1.
    budget : Budget or None
        Its time limit and Ctrl-C end the pass.
    reference : ReferenceModel or None
        For C-ordered blocks.

    Returns
    -------
    bool
        Whether every row was visited; if not, the state is that after the last whole update.
    """
    budget = Budget() if budget is None else budget
    scaled = _scaled_weight(block, weight_scale)
    if scaled is not None and not scaled.any():
        return True
    order = np.arange(block.y.shape[0], dtype=np.int64) if order is None else order
    compared = None
    if reference is not None:
        compared = {"reference_w": np.ascontiguousarray(reference.w.T), "reference_b": reference.b}
    finished, _, loss = _descend(
        state, block, problem, rule, order[None, :], state.mistakes[None, :], -1, scaled, budget, compared
    )
    if reference is not None:
        reference.loss += loss
    return finished


def sgd_epochs(
    state: SGDState,
    block: Block,
    problem: Problem,
    rule: StepRule,
    orders: Array,
    enough: int,
    weight_scale: float,
    budget: Budget,
) -> tuple[bool, Array]:
    """Make several passes over the rows of a block, in one call: a call takes as long as 500 visits.

    Parameters
    ----------
    orders : int64 ndarray of shape (passes, rows)
        The rows to visit in each pass.
    enough : int
        They end after a pass with at most so many mistakes over all scores.
    weight_scale, budget
        As in :func:`sgd_pass`.

    Returns
    -------
    finished : bool
        Whether the budget did not end them; the state is that after the last update.
    mistakes : int64 ndarray of shape (passes made, scores)
        Of each whole pass, and at the end of one that the budget ended.
    """
    mistakes = np.zeros((orders.shape[0], state.mistakes.size), dtype=np.int64)
    weight = _scaled_weight(block, weight_scale)
    finished, made, _ = _descend(state, block, problem, rule, orders, mistakes, enough, weight, budget)
    state.mistakes += mistakes.sum(axis=0)
    return finished, mistakes[: made + (not finished)]


def _scaled_weight(block: Block, scale: float | None) -> Array | None:
    """Return the weights that updates count; where there is no scale, they have a mean of 1."""
    if block.weight is None:
        return None
    weight = block.weight.astype(np.float64)
    total = float(block.weight.sum(dtype=np.float64))
    return weight if total == 0.0 else weight * (scale or weight.size / total)


def _descend(
    state: SGDState,
    block: Block,
    problem: Problem,
    rule: StepRule,
    orders: Array,
    mistakes: Array,
    enough: int,
    weight: Array | None,
    budget: Budget,
    compared: dict[str, Any] | None = None,
) -> tuple[bool, int, float]:
    """Return whether all passes were made, or enough of them, how many, and the loss of a reference model."""
    shared = {
        "y": np.ascontiguousarray(block.y, dtype=np.float64),
        "weight": weight,
        "orders": orders,
        "b": state.c,
        "mean_b": state.mean_c,
        "mistakes": mistakes,
        "enough": enough,
        "updates": state.updates,
        "loss": _loss_code(problem, rule),
        "schedule": SCHEDULES.index(rule.schedule),
        "eta0": rule.eta0,
        "rate": rule.rate,
        "l1": problem.l1,
        "l2": problem.l2,
        "positive": problem.penalty.positive,
        "fit_intercept": problem.fit_intercept,
        "batch_size": rule.batch_size,
        "average_from": -1 if rule.average_from is None else rule.average_from,
        "seconds_left": budget.seconds_left,
        "flag": budget.flag,
    }
    X = block.X
    if isinstance(X, np.ndarray):
        compared = compared or {"reference_w": None, "reference_b": None}
        metric = {"center": state.center, "factor": state.factor}
        finished, made, state.updates, loss = core.descend_dense(
            X=X, w=state.w.T, mean_w=state.mean_w.T, **metric, **compared, **shared
        )
        return bool(finished), made, loss
    entries = {"values": X.data, "columns": X.indices}
    starts = X.indptr.astype(X.indices.dtype, copy=False)
    finished, made, state.updates = core.descend_sparse(
        **entries, starts=starts, w=state.w, mean_w=state.mean_w, **shared
    )
    return bool(finished), made, 0.0


def _loss_code(problem: Problem, rule: StepRule) -> int:
    if rule.at_zero is not None and problem.loss.name == "perceptron":
        return len(LOSS_CODES) + AT_ZERO.index(rule.at_zero)
    return LOSS_CODES.index(problem.loss.name)
