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
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from sixfold.budget import Budget, BudgetExhausted
from sixfold.data.checks import TrainingData, check_rows
from sixfold.risk.problem import Problem, normalized_weights
from sixfold.selection.plans.base import Answered, Fitted, Fold, Plan, Setting, Table
from sixfold.solvers.base import Solution
from sixfold.solvers.l1.proximal_newton import PathMemory
from sixfold.solvers.l1.score_path import PathMinimum, ScorePath
from sixfold.solvers.smooth.descent import Model

LEARNT_FROM_TABLE = ("n_features_in_", "feature_names_in_", "classes_")  # by checking it
FIRST_ORDER = ("gd", "sgd", "minibatch")
WALKED_BY = ("auto", "coordinate", "liblinear", "saga")  # solvers for absolute values


class PathPlan(Plan):
    """All penalties of LogisticRegression, LinearSVC, ERMClassifier or ERMRegressor on one fold."""

    parameters: ClassVar[tuple[str, ...]] = ("C", "alpha", "l1_ratio")
    simpler: ClassVar[Mapping[str, int]] = {"C": -1, "alpha": 1}

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

    def fit(self, fold: Fold) -> Iterator[Fitted]:
        """Yield the fitted model of every setting, strongest penalty first."""
        walk = _Walk(fold, copy(self._plain))
        for k in self.order:
            model = self._model(self.settings[k])
            yield Fitted(k, *walk.fit(model))

    def _model(self, setting: Setting) -> Any:
        """Return an unfitted model; ``clone`` takes a tenth as long as a fit."""
        model = copy(self._plain)
        for name, value in setting.items():
            if hasattr(model, name):
                setattr(model, name, value)
            else:
                model.set_params(**{name: value})
        return model


def strength(setting: Setting) -> tuple[Any, ...]:
    """Return a key that sorts settings along paths: of one mixture each, strong penalties first.

    What is no number comes last: its fit will say so, when the others are done.

    >>> strength({"C": 0.1}) < strength({"C": 1.0}) < strength({"C": "strong"})
    True
    >>> strength({"alpha": 1.0}) < strength({"alpha": 0.1})
    True
    """
    values = [setting.get(name) for name in ("l1_ratio", "C", "alpha")]
    if any(value is not None and not isinstance(value, Real) for value in values):
        return (True, 0.0, 0.0, 0.0)
    ratio, C, alpha = (-math.inf if value is None else float(value) for value in values)
    return (any(map(math.isnan, (ratio, C, alpha))), ratio, C, -alpha)


class _Walk:
    """The models of one fold, one penalty after the other."""

    def __init__(self, fold: Fold, checked: Any) -> None:
        self.fold, self.checked = fold, checked
        self.data: TrainingData = checked._check(fold.X_train, fold.y_train, fold.sample_weight)
        self.memory = PathMemory()
        self.before: Model | None = None
        self.path: ScorePath | None = None
        self.mixture: Any = None  # the penalty that the path is of
        self._rows: Any = None

    def fit(self, model: Any) -> tuple[Any, float]:
        """Return the fitted model, or its answers, and the relative gap."""
        found = self._on_path(model)
        if found is not None:
            self.before = found.w[:, None], np.array([found.b])
            return self._answered(model, found), found.gap / found.scale
        self._fit_learner(model, partial(model._solve, start=self.before, memory=self.memory))
        self.before = model._parameters()
        return model, model._certificate.relative_gap

    def _fit_learner(self, model: Any, solve: Any) -> None:
        fold = self.fold
        check = partial(_hand_over, self.checked, self.data, model)
        model._run_fit(fold.X_train, fold.y_train, fold.sample_weight, check=check, solve=solve)

    # -- two classes and absolute values -------------------------------------------------------------------

    def _on_path(self, model: Any) -> PathMinimum | None:
        """Return the minimum where it can be found without more than it takes, else None."""
        if model.solver not in WALKED_BY or not hasattr(self.checked, "classes_"):
            return None
        model.__dict__.update(self._learnt())
        problem: Problem = model._state_problem(self.data)
        blocks = self.data.blocks()
        if not ScorePath.suits(problem, self.data.X, problem.n_scores(blocks)):
            return None
        if self.path is None or self.mixture != (problem.penalty, problem.fit_intercept):
            self.data.require_computable()
            q = normalized_weights(blocks.whole(), blocks)
            self.path = ScorePath(problem, self.data.X, self.data.y[:, 0], q)
            self.mixture = (problem.penalty, problem.fit_intercept)
        try:
            with (
                model._budget(None, None) as budget,
                model._threads(self.data),
                np.errstate(over="ignore", invalid="ignore", divide="ignore"),
            ):
                found = self.path.solve(problem, budget)
        except BudgetExhausted:
            found = None
        if found is None:
            self.path = None
        return found

    def _learnt(self) -> dict[str, Any]:
        return {
            name: getattr(self.checked, name) for name in LEARNT_FROM_TABLE if hasattr(self.checked, name)
        }

    def _answered(self, model: Any, found: PathMinimum) -> Answered:
        """Return the answers of a model for the held-out rows."""
        X, sketch = self.fold.X_test, copy(model)
        sketch.coef_, sketch.intercept_ = found.w[None], np.array([found.b])
        if self._rows is None:
            self._rows = check_rows(self.checked, X)
        score = np.asarray(self._rows @ found.w).ravel() + found.b
        answers: dict[str, Any] = {
            "decision_function": score,
            "predict": lambda: sketch.classes_[(score > 0).astype(np.intp)],
        }
        if hasattr(sketch, "predict_proba"):
            answers["predict_proba"] = lambda: sketch.predict_proba(X)
            answers["predict_log_proba"] = lambda: sketch.predict_log_proba(X)
        known = {
            **self._learnt(),
            "coef_": sketch.coef_,
            "intercept_": sketch.intercept_,
            "__sklearn_tags__": sketch.__sklearn_tags__,
        }
        return Answered(partial(self._certified, model, found), X, answers, known)

    def _certified(self, model: Any, found: PathMinimum) -> Any:
        """Return the learner of this minimum; where rounding leaves too much, it is fitted further."""

        def solve(problem: Problem, data: TrainingData, budget: Budget) -> Solution:
            w, b = found.w[:, None], np.array([found.b])
            certificate, dual = problem.certify_with_dual("duality gap", w, b, data.blocks(), budget.tol)
            if not certificate.converged:
                further: Solution = model._solve(problem, data, budget, start=(w, b))
                return further
            budget.record(certificate.objective, certificate.gap, certificate.scale)
            solution = Solution(w, b, certificate, "coordinate descent", max(found.rounds, 1), dual)
            kept: Solution = model._postprocess(solution, problem, data, budget)
            return kept

        self._fit_learner(model, solve)
        return model


def _hand_over(checked: Any, data: TrainingData, model: Any, *table: Any) -> TrainingData:
    """Return the table that another model of the same class has checked, with what checking tells a model."""
    for name in LEARNT_FROM_TABLE:
        model.__dict__.pop(name, None)
        if name in checked.__dict__:
            model.__dict__[name] = checked.__dict__[name]
    shared = replace(data, estimator=model)
    shared.__dict__["_blocks"] = data.blocks()  # what is known of them is found again
    return shared
