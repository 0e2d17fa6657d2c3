"""Linear models along a path of penalties: each fit goes on from the model of the penalty before.

    minimise    alpha * penalty(w) + (1 / n) sum_i loss(w.x_i + b, y_i)          alpha = 1 / (C n), or given

The strongest penalty comes first: its model is the simplest, and that of the next one is near (Friedman,
Hastie and Tibshirani 2010). Every model is within its tolerance of the optimum, so that a path ends where
separate fits end. What is shared on a fold: the checked table, the columns that coordinate descent has worked
on, their slopes, and the second derivatives of the last penalty.

Most models are fitted learners. For two classes and absolute values in the penalty (see
:mod:`sixfold.solvers.l1.score_path`) a model is its answers for the held-out rows; the learner with its
certificate is made of it where one is asked for.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from sixfold.budget import Budget, BudgetExhausted
from sixfold.data.checks import TrainingData, check_rows
from sixfold.learners.linear.logistic_regression import LogisticRegression
from sixfold.risk.problem import Problem, normalized_weights
from sixfold.selection.plans.base import Answered, Fitted, Fold, Plan, Setting, Table
from sixfold.solvers.base import Solution
from sixfold.solvers.l1.proximal_newton import PathMemory
from sixfold.solvers.l1.score_path import PathMinimum, ScorePath
from sixfold.solvers.smooth.descent import Model
from sixfold.solvers.threads import one_blas_thread

Array = NDArray[Any]
Minimum = tuple[Array, Array, int]  # w, b, and the steps it took

LEARNT_FROM_TABLE = ("n_features_in_", "feature_names_in_", "classes_")  # by checking it
FIRST_ORDER = ("gd", "sgd", "minibatch")
WALKED_BY = ("auto", "coordinate", "liblinear", "saga")  # solvers for absolute values


class PenaltyPlan(Plan):
    """All penalties of a linear model on one fold, the strongest first."""

    def __init__(self, model: Any, settings: Sequence[Setting], table: Table) -> None:
        super().__init__(model, settings, table)
        self.order = sorted(range(len(settings)), key=lambda k: strength(settings[k]))
        self._plain = clone(model)

    @classmethod
    def objection(cls, model: Any) -> str | None:
        """Return why these candidates have to be fitted one by one, or None."""
        if model.solver in FIRST_ORDER:
            return f"solver={model.solver!r} ends where its start and its steps lead it"
        if model.callbacks or model.verbose or hasattr(model, "_skl_callbacks"):
            return "callbacks and verbose speak of each fit by itself"
        return None

    @abstractmethod
    def _walk(self, fold: Fold, checked: Any) -> Walk:
        """Return what fits one model after the other; ``checked`` is one that is to check the table."""

    def fit(self, fold: Fold) -> Iterator[Fitted]:
        """Yield the fitted model of every setting, strongest penalty first."""
        walk = self._walk(fold, copy(self._plain))
        for k in self.order:
            yield Fitted(k, *walk.fit(self._model(self.settings[k])))

    def _model(self, setting: Setting) -> Any:
        """Return an unfitted model; ``clone`` takes a tenth as long as a fit."""
        model = copy(self._plain)
        for name, value in setting.items():
            if hasattr(model, name):
                setattr(model, name, value)
            else:
                model.set_params(**{name: value})
        return model


class PathPlan(PenaltyPlan):
    """All penalties of LogisticRegression, LinearSVC, ERMClassifier or ERMRegressor on one fold."""

    parameters: ClassVar[tuple[str, ...]] = ("C", "alpha", "l1_ratio")
    simpler: ClassVar[Mapping[str, int]] = {"C": -1, "alpha": 1}

    def _walk(self, fold: Fold, checked: Any) -> Walk:
        return _LinearWalk(fold, checked)


def strength(setting: Setting) -> tuple[Any, ...]:
    """Return a key that sorts settings along paths: of one mixture each, strong penalties first.

    What no fit takes comes last: it will say so when the others are done.

    >>> strength({"C": 0.1}) < strength({"C": 1.0}) < strength({"C": -1.0}) < strength({"C": "strong"})
    True
    >>> strength({"alpha": 1.0}) < strength({"alpha": 0.1})
    True
    """
    values = [setting.get(name) for name in ("l1_ratio", "C", "alpha")]
    if any(value is not None and not isinstance(value, Real) for value in values):
        return (True, math.inf, 0.0, 0.0)
    bad = any(value is not None and not value >= 0 for value in values) or values[1] == 0
    ratio, C, alpha = (-math.inf if value is None else float(value) for value in values)
    return (bad, ratio, C, -alpha)


class Walk(ABC):
    """The models of one fold, one penalty after the other, and the table that they share."""

    def __init__(self, fold: Fold, checked: Any) -> None:
        self.fold, self.checked = fold, checked
        self.data: TrainingData = checked._check(fold.X_train, fold.y_train, fold.sample_weight)
        self._rows: Any = None

    @abstractmethod
    def fit(self, model: Any) -> tuple[Any, float]:
        """Return the fitted model, or its answers, and the relative gap."""

    @property
    def learnt(self) -> dict[str, Any]:
        """What checking the table tells a model."""
        return {
            name: getattr(self.checked, name) for name in LEARNT_FROM_TABLE if hasattr(self.checked, name)
        }

    @property
    def rows(self) -> Any:
        """The held-out rows, checked."""
        if self._rows is None:
            self._rows = check_rows(self.checked, self.fold.X_test)
        return self._rows

    def fit_learner(self, model: Any, solve: Any) -> None:
        """Fit a model to the checked table."""
        fold = self.fold
        model._run_fit(fold.X_train, fold.y_train, fold.sample_weight, partial(self._hand_over, model), solve)

    def _hand_over(self, model: Any, *table: Any) -> TrainingData:
        for name in LEARNT_FROM_TABLE:
            model.__dict__.pop(name, None)
        model.__dict__.update(self.learnt)
        shared = replace(self.data, estimator=model)
        shared.__dict__["_blocks"] = self.data.blocks()  # what is known of them is found again
        return shared

    @contextmanager
    def budget(self, model: Any) -> Iterator[Budget]:
        """Give the budget that the parameters of a model state, to be spent on the table."""
        quiet = np.errstate(over="ignore", invalid="ignore", divide="ignore")
        # Products on a path are small: threads of BLAS would wait for each other more than they work.
        with model._budget(None, None) as budget, model._threads(self.data), one_blas_thread, quiet:
            yield budget

    def sketch(self, model: Any, found: Minimum) -> Any:
        """Return the model with coefficients and little else: it can answer, and knows no certificate."""
        w, b, rounds = found
        dtype, single = self.data.X.dtype, self.data.single_target
        sketch = copy(model)
        sketch.__dict__.update(self.learnt)
        sketch.coef_ = np.ascontiguousarray(w.T[0] if single else w.T, dtype=dtype)
        sketch.intercept_ = (b[0] if single else b).astype(dtype)
        steps = max(rounds, 1)
        array = isinstance(model, LogisticRegression)  # as scikit-learn has it
        sketch.n_iter_ = np.array([steps], dtype=np.int32) if array else steps
        return sketch

    def answered(self, sketch: Any, model: Any, answers: dict[str, Any], solution: Minimum) -> Answered:
        """Return what stands for a model that is made when more is asked of it."""
        known = {
            **self.learnt,
            "coef_": sketch.coef_,
            "intercept_": sketch.intercept_,
            "n_iter_": sketch.n_iter_,
            "__sklearn_tags__": sketch.__sklearn_tags__,
        }
        return Answered(partial(self.certified, model, solution), self.fold.X_test, answers, known)

    def certified(self, model: Any, found: Minimum) -> Any:
        """Return the learner of a minimum; where rounding leaves too much, it is fitted further."""
        w, b, rounds = found

        def solve(problem: Problem, data: TrainingData, budget: Budget) -> Solution:
            blocks = data.blocks()
            kept_w, kept_b = blocks.rounded(w), blocks.rounded(b)
            certificate, dual = problem.certify_with_dual("duality gap", kept_w, kept_b, blocks, budget.tol)
            if not certificate.converged:
                further: Solution = model._solve(problem, data, budget, start=(w, b))
                return further
            budget.record(certificate.objective, certificate.gap, certificate.scale)
            solution = Solution(kept_w, kept_b, certificate, "coordinate descent", max(rounds, 1), dual)
            kept: Solution = model._postprocess(solution, problem, data, budget)
            return kept

        self.fit_learner(model, solve)
        return model


class _LinearWalk(Walk):
    """Each model from the one before."""

    def __init__(self, fold: Fold, checked: Any) -> None:
        super().__init__(fold, checked)
        self.memory = PathMemory()
        self.before: Model | None = None
        self.path: ScorePath | None = None
        self.kind: Any = None  # the penalty that the path is of

    def fit(self, model: Any) -> tuple[Any, float]:
        """Return the fitted model, or its answers, and the relative gap."""
        found = self._on_path(model)
        if found is not None:
            self.before = found.w[:, None], np.array([found.b])
            return self._answered(model, (*self.before, found.rounds)), found.gap / found.scale
        self.fit_learner(model, partial(model._solve, start=self.before, memory=self.memory))
        self.before = model._parameters()
        return model, model._certificate.relative_gap

    def _on_path(self, model: Any) -> PathMinimum | None:
        """Return the minimum of two classes under absolute values; None if that is not the problem."""
        if model.solver not in WALKED_BY or not hasattr(self.checked, "classes_"):
            return None
        model.__dict__.update(self.learnt)
        problem: Problem = model._state_problem(self.data)
        blocks = self.data.blocks()
        if not ScorePath.suits(problem, self.data.X, problem.n_scores(blocks)):
            return None
        kind = (problem.penalty, problem.fit_intercept)
        if self.path is None or self.kind != kind:
            self.data.require_computable()
            q = normalized_weights(blocks.whole(), blocks)
            self.path, self.kind = ScorePath(problem, self.data.X, self.data.y[:, 0], q), kind
        found = None
        with suppress(BudgetExhausted), self.budget(model) as budget:
            found = self.path.solve(problem, budget)
        if found is None:
            self.path = None
        return found

    def _answered(self, model: Any, found: Minimum) -> Answered:
        w, b, _ = found
        sketch, X = self.sketch(model, found), self.fold.X_test
        score = np.asarray(self.rows @ w[:, 0]) + b[0]
        answers: dict[str, Any] = {
            "decision_function": score,
            "predict": lambda: sketch.classes_[(score > 0).astype(np.intp)],
        }
        if hasattr(sketch, "predict_proba"):
            answers["predict_proba"] = lambda: sketch.predict_proba(X)
            answers["predict_log_proba"] = lambda: sketch.predict_log_proba(X)
        return self.answered(sketch, model, answers, found)
