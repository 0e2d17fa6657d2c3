"""What the general recipes share: parameters that state a problem, solvers to choose from, and batches.

A batch is one pass of stochastic updates (:mod:`sixfold.solvers.first_order.sgd_updates`) over rows that may
never come back. What is certified after it is the objective on that batch, with zero as its lower bound.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np

from sixfold.budget import Budget
from sixfold.certificate import Certificate
from sixfold.data.checks import TrainingData
from sixfold.errors import check_flag, check_number
from sixfold.learners.linear.model import LinearModel
from sixfold.risk.losses import Loss
from sixfold.risk.penalties import make_penalty
from sixfold.risk.problem import Problem
from sixfold.solvers.base import Solution, Solver
from sixfold.solvers.first_order.options import FirstOrderOptions
from sixfold.solvers.first_order.sgd_updates import SGDState, StepRule, sgd_pass
from sixfold.solvers.first_order.stochastic import MiniBatch, StochasticGradient
from sixfold.solvers.registry import all_solvers


class Recipe(LinearModel):
    """Any loss, any penalty, any solver that fits them."""

    loss: str
    penalty: str | None
    alpha: float
    l1_ratio: float
    learning_rate: str
    eta0: float | None
    decay: float | None
    power_t: float
    average: bool | int
    shuffle: bool
    batch_size: int
    random_state: Any

    _state: SGDState  # between batches
    _rule: StepRule

    @abstractmethod
    def _loss(self) -> Loss:
        """Return the loss that ``loss`` names."""

    def _problem(self, weight_sum: float) -> Problem:
        check_flag("fit_intercept", self.fit_intercept)
        check_number("alpha", self.alpha, at_least=0, finite=True)
        alpha = 0.0 if self.penalty is None else float(self.alpha)
        penalty = make_penalty(self.penalty, self.l1_ratio)
        return Problem(self._loss(), penalty, alpha, bool(self.fit_intercept))

    def _options(self) -> dict[str, Any]:
        return {
            "learning_rate": self.learning_rate,
            "eta0": self.eta0,
            "decay": self.decay,
            "power_t": self.power_t,
            "average": self.average,
            "shuffle": self.shuffle,
            "batch_size": self.batch_size,
            "random_state": self.random_state,
        }

    def _solvers(self) -> list[Solver]:
        return all_solvers(**self._options())

    def _postprocess(
        self, solution: Solution, problem: Problem, data: TrainingData, budget: Budget
    ) -> Solution:
        self.__dict__.pop("_state", None)  # batches go on from this fit
        return solution

    def _learn_batch(self, data: TrainingData, scores: int) -> None:
        """Make one pass over the rows, from where the last batch ended."""
        data.require_computable()
        blocks = data.blocks()
        problem = self._problem(blocks.weight_sum)
        # Steps are those of the textbook: the columns of later batches may have another spread.
        options = FirstOrderOptions(**self._options(), standardize=False)
        solver = (MiniBatch if self.solver == "minibatch" else StochasticGradient)(options)
        random = options.generator()
        with self._budget(data.X, data.y) as budget, self._threads(data), self._arithmetic(data):
            if not hasattr(self, "_state"):
                start = np.zeros((blocks.n_columns, scores)), np.zeros(scores)
                if hasattr(self, "coef_"):
                    start = self._parameters()
                eta0 = self.eta0 or solver.first_step(problem, blocks, budget, random, scores)
                # A perceptron at zero has to take a score of 0 for a mistake, or it would stay there.
                at_zero = "wrong" if self.loss == "perceptron" else None
                self._rule = replace(solver.rule(problem, blocks.n_rows, eta0), at_zero=at_zero)
                average = options.average_from is not None
                self._state = SGDState.at(*start, sparse=blocks.sparse, average=average)
            for block in blocks:
                rows = np.arange(block.y.shape[0], dtype=np.int64)
                order = random.permutation(rows) if self.shuffle else rows
                if not sgd_pass(self._state, block, problem, self._rule, order, None, budget):
                    break
            w, b = (part.astype(data.X.dtype).astype(np.float64) for part in self._state.model(self._rule))
            objective = problem.objective(w, b, blocks)
            if not np.isfinite(objective):
                raise FloatingPointError("the objective is not finite")
            budget.record(objective, objective, 1.0)
            notes = ("of the last batch alone, with zero as its lower bound",)
            scale = problem.constant_loss(np.zeros(scores), blocks)
            certificate = Certificate("duality gap", objective, objective, scale, budget.tol, notes=notes)
        before = getattr(self, "history_", [])
        self._set_fitted(Solution(w, b, certificate, "sgd"), data, budget)
        self.history_ = [*before, *budget.history]
        if budget.interrupted:
            budget.conclude(self.certificate_)
