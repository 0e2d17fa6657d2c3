"""Which plan a learner has. Plans are imported when a search needs one, so that a search costs no more."""

from __future__ import annotations

import importlib
from typing import Any

from sixfold.selection.plans.base import Plan

_HOME = {
    "DecisionTreeClassifier": "trees.TreePlan",
    "ERMClassifier": "linear.PathPlan",
    "ERMRegressor": "linear.PathPlan",
    "KNeighborsClassifier": "neighbors.NeighborsPlan",
    "KNeighborsRegressor": "neighbors.NeighborsPlan",
    "LinearRegression": "least_squares.LeastSquaresPlan",
    "LinearSVC": "linear.PathPlan",
    "LogisticRegression": "linear.PathPlan",
    "SVC": "kernel.KernelPlan",
}


def plan_of(model: Any) -> type[Plan] | None:
    """Return the plan of a learner's class; None for classes that are not ours, subclasses among them."""
    kind = type(model)
    place = _HOME.get(kind.__name__)
    if place is None or not kind.__module__.startswith("sixfold.learners."):
        return None
    file, name = place.split(".")
    plan: type[Plan] = getattr(importlib.import_module(f"sixfold.selection.plans.{file}"), name)
    return plan
