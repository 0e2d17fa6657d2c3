"""sixfold: the six fundamental supervised learners, fast, exact, and each fit proves it.

Names are imported when they are first used, so ``import sixfold`` costs next to nothing.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "Certificate": "sixfold.certificate",
    "DecisionTreeClassifier": "sixfold.learners.trees.decision_tree",
    "ERMClassifier": "sixfold.learners.linear.erm",
    "ERMRegressor": "sixfold.learners.linear.erm",
    "ElasticNet": "sixfold.learners.linear.lasso",
    "ElasticNetCV": "sixfold.selection.lasso_cv",
    "ExemplarSVC": "sixfold.learners.svm.exemplar_svc",
    "GridSearchCV": "sixfold.selection.grid_search",
    "KNeighborsClassifier": "sixfold.learners.neighbors.k_neighbors",
    "KNeighborsRegressor": "sixfold.learners.neighbors.k_neighbors",
    "LargeMarginNearestNeighbor": "sixfold.learners.metric_learning.lmnn",
    "Lasso": "sixfold.learners.linear.lasso",
    "KNeighborsTransformer": "sixfold.learners.neighbors.transformers",
    "LassoCV": "sixfold.selection.lasso_cv",
    "LinearRegression": "sixfold.learners.linear.linear_regression",
    "LinearSVC": "sixfold.learners.svm.linear_svc",
    "LogisticRegression": "sixfold.learners.linear.logistic_regression",
    "LogisticRegressionCV": "sixfold.selection.logistic_cv",
    "NearestNeighbors": "sixfold.learners.neighbors.nearest_neighbors",
    "NeighborhoodComponentsAnalysis": "sixfold.learners.metric_learning.nca",
    "Nystroem": "sixfold.learners.svm.nystroem",
    "Perceptron": "sixfold.learners.linear.perceptron",
    "RadiusNeighborsClassifier": "sixfold.learners.neighbors.radius_neighbors",
    "RadiusNeighborsRegressor": "sixfold.learners.neighbors.radius_neighbors",
    "RadiusNeighborsTransformer": "sixfold.learners.neighbors.transformers",
    "RandomizedSearchCV": "sixfold.selection.grid_search",
    "Ridge": "sixfold.learners.linear.ridge",
    "RidgeCV": "sixfold.selection.ridge_cv",
    "RidgeClassifier": "sixfold.learners.linear.ridge",
    "SGDClassifier": "sixfold.learners.linear.sgd",
    "SGDRegressor": "sixfold.learners.linear.sgd",
    "SVC": "sixfold.learners.svm.svc",
    "TableEncoder": "sixfold.data.encoder.table_encoder",
    "compare": "sixfold.selection.comparison",
    "distances": "sixfold.geometry.distances",
    "kernels": "sixfold.geometry.kernels",
    "load": "sixfold.app.model_file.read",
    "patch_sklearn": "sixfold.patch.replace",
    "plot": "sixfold.plot",
    "save": "sixfold.app.model_file.write",
    "scan": "sixfold.data.scan.table",
    "unpatch_sklearn": "sixfold.patch.replace",
}

__all__ = [
    "SVC",
    "Certificate",
    "DecisionTreeClassifier",
    "ERMClassifier",
    "ERMRegressor",
    "ElasticNet",
    "ElasticNetCV",
    "ExemplarSVC",
    "GridSearchCV",
    "KNeighborsClassifier",
    "KNeighborsRegressor",
    "KNeighborsTransformer",
    "LargeMarginNearestNeighbor",
    "Lasso",
    "LassoCV",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "LogisticRegressionCV",
    "NearestNeighbors",
    "NeighborhoodComponentsAnalysis",
    "Nystroem",
    "Perceptron",
    "RadiusNeighborsClassifier",
    "RadiusNeighborsRegressor",
    "RadiusNeighborsTransformer",
    "RandomizedSearchCV",
    "Ridge",
    "RidgeCV",
    "RidgeClassifier",
    "SGDClassifier",
    "SGDRegressor",
    "TableEncoder",
    "__version__",
    "compare",
    "distances",
    "kernels",
    "load",
    "patch_sklearn",
    "plot",
    "save",
    "scan",
    "unpatch_sklearn",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sixfold' has no attribute {name!r}")
    home = importlib.import_module(_HOME[name])
    value = home if home.__name__.endswith(f".{name}") else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
