"""Every learner, once: the command line, the contract tests and the documentation all go through this list.

:data:`LEARNERS` answer questions (predict, find neighbours); :data:`TRANSFORMERS` learn coordinates in which
they then work. One that is public but not listed here fails ``tests/contracts/test_registry.py``.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

# A search and a transformation have nothing to predict.
Task = Literal["regression", "classification", "search", "transformation"]
Hypothesis = Literal["linear", "linear map", "kernel", "neighbours", "tree"]


@dataclass(frozen=True)
class Demonstration:
    """Parameters worth showing, and the built-in table to show them on."""

    title: str
    example: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RegisteredLearner:
    """One learner and how to show it."""

    name: str
    module: str
    task: Task
    demonstrations: tuple[Demonstration, ...]
    hypothesis: Hypothesis = "linear"

    def make(self, **parameters: Any) -> Any:
        """Return an unfitted learner with these parameters."""
        return getattr(importlib.import_module(self.module), self.name)(**parameters)


LEARNERS: tuple[RegisteredLearner, ...] = (
    RegisteredLearner(
        "LinearRegression",
        "sixfold.learners.linear.linear_regression",
        "regression",
        (
            Demonstration("least squares", "diabetes"),
            Demonstration("ridge", "diabetes", {"penalty": "l2", "alpha": 0.1}),
            Demonstration("lasso", "diabetes", {"penalty": "l1", "alpha": 1.0}),
        ),
    ),
    RegisteredLearner(
        "Ridge",
        "sixfold.learners.linear.ridge",
        "regression",
        (
            Demonstration("alpha 10", "diabetes", {"alpha": 10.0}),
            Demonstration("positive", "diabetes", {"positive": True}),
        ),
    ),
    RegisteredLearner(
        "Lasso",
        "sixfold.learners.linear.lasso",
        "regression",
        (Demonstration("few columns", "diabetes", {"alpha": 1.0}),),
    ),
    RegisteredLearner(
        "ElasticNet",
        "sixfold.learners.linear.lasso",
        "regression",
        (Demonstration("absolute values and squares", "diabetes", {"alpha": 0.1, "l1_ratio": 0.7}),),
    ),
    RegisteredLearner(
        "ERMRegressor",
        "sixfold.learners.linear.erm",
        "regression",
        (
            Demonstration("absolute loss", "diabetes", {"loss": "absolute"}),
            Demonstration("cubed loss", "diabetes", {"loss": "cubed"}),
        ),
    ),
    RegisteredLearner(
        "LogisticRegression",
        "sixfold.learners.linear.logistic_regression",
        "classification",
        (
            Demonstration("two classes", "breast cancer"),
            Demonstration("softmax", "iris"),
            Demonstration("sparse", "breast cancer", {"l1_ratio": 1.0}),
        ),
    ),
    RegisteredLearner(
        "RidgeClassifier",
        "sixfold.learners.linear.ridge",
        "classification",
        (
            Demonstration("two classes", "breast cancer"),
            Demonstration("balanced", "iris", {"class_weight": "balanced"}),
        ),
    ),
    RegisteredLearner(
        "Perceptron",
        "sixfold.learners.linear.perceptron",
        "classification",
        (
            Demonstration("signed labels", "setosa"),
            Demonstration("binary labels", "setosa", {"form": "binary"}),
        ),
    ),
    RegisteredLearner(
        "LinearSVC",
        "sixfold.learners.svm.linear_svc",
        "classification",
        (
            Demonstration("squared hinge", "breast cancer"),
            Demonstration("hinge", "breast cancer", {"loss": "hinge"}),
        ),
    ),
    RegisteredLearner(
        "SVC",
        "sixfold.learners.svm.svc",
        "classification",
        (
            Demonstration("RBF", "iris"),
            Demonstration("polynomial", "breast cancer", {"kernel": "poly", "degree": 2, "coef0": 1.0}),
        ),
        "kernel",
    ),
    RegisteredLearner(
        "ExemplarSVC",
        "sixfold.learners.svm.exemplar_svc",
        "classification",
        (
            Demonstration("every row", "iris", {"C": 1.0}),
            Demonstration("a kernel", "breast cancer", {"C": 1.0, "kernel": "rbf"}),
        ),
        "kernel",
    ),
    RegisteredLearner(
        "ERMClassifier",
        "sixfold.learners.linear.erm",
        "classification",
        (
            Demonstration("straw man", "iris", {"loss": "squared"}),
            Demonstration("logistic, rest", "iris", {"loss": "logistic"}),
        ),
    ),
    RegisteredLearner(
        "SGDClassifier",
        "sixfold.learners.linear.sgd",
        "classification",
        (
            Demonstration("hinge", "setosa"),
            Demonstration("likelihood, averaged", "setosa", {"loss": "log_loss", "average": True}),
        ),
    ),
    RegisteredLearner(
        "SGDRegressor",
        "sixfold.learners.linear.sgd",
        "regression",
        (
            Demonstration(
                "absolute error",
                "diabetes",
                {"loss": "epsilon_insensitive", "epsilon": 0.0, "learning_rate": "adaptive"},
            ),
        ),
    ),
    RegisteredLearner(
        "KNeighborsClassifier",
        "sixfold.learners.neighbors.k_neighbors",
        "classification",
        (
            Demonstration("5 neighbours", "iris"),
            Demonstration("cosine", "iris", {"metric": "cosine", "weights": "distance"}),
        ),
        "neighbours",
    ),
    RegisteredLearner(
        "KNeighborsRegressor",
        "sixfold.learners.neighbors.k_neighbors",
        "regression",
        (Demonstration("standardised", "diabetes", {"n_neighbors": 8, "metric": "seuclidean"}),),
        "neighbours",
    ),
    RegisteredLearner(
        "RadiusNeighborsClassifier",
        "sixfold.learners.neighbors.radius_neighbors",
        "classification",
        (
            Demonstration("radius 1", "iris"),
            Demonstration(
                "radius in standard deviations",
                "breast cancer",
                {"radius": 4.0, "metric": "seuclidean", "outlier_label": "most_frequent"},
            ),
        ),
        "neighbours",
    ),
    RegisteredLearner(
        "RadiusNeighborsRegressor",
        "sixfold.learners.neighbors.radius_neighbors",
        "regression",
        (Demonstration("standardised", "diabetes", {"radius": 3.5, "metric": "seuclidean"}),),
        "neighbours",
    ),
    RegisteredLearner(
        "NearestNeighbors",
        "sixfold.learners.neighbors.nearest_neighbors",
        "search",
        (Demonstration("5 neighbours", "iris"),),
        "neighbours",
    ),
    RegisteredLearner(
        "DecisionTreeClassifier",
        "sixfold.learners.trees.decision_tree",
        "classification",
        (
            Demonstration("ID3", "iris"),
            Demonstration("depth 3", "breast cancer", {"max_depth": 3}),
        ),
        "tree",
    ),
)

TRANSFORMERS: tuple[RegisteredLearner, ...] = (
    RegisteredLearner(
        "NeighborhoodComponentsAnalysis",
        "sixfold.learners.metric_learning.nca",
        "transformation",
        (
            Demonstration("two components", "iris", {"n_components": 2}),
            Demonstration("from white classes", "iris", {"init": "whitening"}),
        ),
        "linear map",
    ),
    RegisteredLearner(
        "LargeMarginNearestNeighbor",
        "sixfold.learners.metric_learning.lmnn",
        "transformation",
        (
            Demonstration("3 targets", "iris"),
            Demonstration("two components", "breast cancer", {"n_components": 2, "init": "pca"}),
        ),
        "linear map",
    ),
    RegisteredLearner(
        "Nystroem",
        "sixfold.learners.svm.nystroem",
        "transformation",
        (
            Demonstration("50 landmarks", "iris", {"n_components": 50}),
            Demonstration("products of columns", "iris", {"kernel": "poly", "degree": 2, "n_components": 10}),
        ),
        "kernel",
    ),
)
