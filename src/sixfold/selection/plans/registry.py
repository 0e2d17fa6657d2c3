"""Which plan a learner has. Plans are imported when a search needs one, so that it pays for no others."""

from __future__ import annotations

import importlib
from typing import Any

from sklearn.pipeline import Pipeline

from sixfold.selection.plans.base import Plan

SEPARATE = "groups.SeparateFits"
_HOME = {
    "DecisionTreeClassifier": "trees.TreePlan",
    "ERMClassifier": "linear.PathPlan",
    "ERMRegressor": "linear.PathPlan",
    "ElasticNet": "l1_path.LassoPlan",
    "ExemplarSVC": SEPARATE,
    "KNeighborsClassifier": "neighbors.NeighborsPlan",
    "KNeighborsRegressor": "neighbors.NeighborsPlan",
    "Lasso": "l1_path.LassoPlan",
    "LinearRegression": "least_squares.LeastSquaresPlan",
    "LinearSVC": "linear.PathPlan",
    "LogisticRegression": "linear.PathPlan",
    "Perceptron": SEPARATE,
    "Ridge": "least_squares.LeastSquaresPlan",
    "RidgeClassifier": SEPARATE,
    "SGDClassifier": SEPARATE,
    "SGDRegressor": SEPARATE,
    "RadiusNeighborsClassifier": SEPARATE,
    "RadiusNeighborsRegressor": SEPARATE,
    "SVC": "kernel.KernelPlan",
}


def plan_of(model: Any) -> type[Plan] | None:
    """Return the plan of a learner of ours, or of a pipeline that ends with one; None for all others."""
    if type(model) is Pipeline:
        return _load("pipeline.PipelinePlan") if plan_of(model.steps[-1][1]) else None
    kind = type(model)
    ours = kind.__module__.startswith("sixfold.learners.") and kind.__name__ in _HOME
    return _load(_HOME[kind.__name__]) if ours else None


def _load(place: str) -> type[Plan]:
    file, name = place.split(".")
    plan: type[Plan] = getattr(importlib.import_module(f"sixfold.selection.plans.{file}"), name)
    return plan
