"""Curves of the gallery, drawn from the data that come with scikit-learn: one function a figure.

Each takes ``dark`` and returns the Axes; ``FIGURES`` lists them with what the gallery says of them.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.model_selection import train_test_split

import sixfold
from sixfold import plot


@cache
def _cancer() -> Any:
    table = datasets.load_breast_cancer(as_frame=True)
    X = (table.data - table.data.mean()) / table.data.std()
    return X, np.where(table.target == 1, "benign", "malignant")


@cache
def _diabetes() -> Any:
    return datasets.load_diabetes(as_frame=True, return_X_y=True)


@cache
def _digits() -> Any:
    X, y = datasets.load_digits(return_X_y=True)
    return X / 16.0, y


@cache
def _neighbours_search() -> Any:
    X, y = _cancer()
    return sixfold.GridSearchCV(
        sixfold.KNeighborsClassifier(), {"n_neighbors": list(range(1, 41))}, cv=5, return_train_score=True
    ).fit(X, y)


def validation_curve(dark: bool) -> Any:
    """Draw five folds for k = 1 to 40 on breast cancer."""
    return plot.validation_curve(_neighbours_search(), dark=dark)


@cache
def _pruning_search() -> Any:
    X, y = _cancer()
    return sixfold.GridSearchCV(
        sixfold.DecisionTreeClassifier(), {"max_depth": list(range(1, 13))}, cv=10, rule="1se"
    ).fit(X, y)


def one_standard_error(dark: bool) -> Any:
    """Draw the depth of a tree on breast cancer: the best, and the simplest within one standard error."""
    return plot.validation_curve(_pruning_search(), dark=dark)


@cache
def _lines_search() -> Any:
    X, y = _digits()
    grid = {"C": np.logspace(-3, 1, 5), "kernel": ["linear", "rbf", "poly"]}
    return sixfold.GridSearchCV(sixfold.SVC(gamma=0.05), grid, cv=3).fit(X[:600], y[:600])


def validation_lines(dark: bool) -> Any:
    """Draw C for three kernels on digits."""
    return plot.validation_curve(_lines_search(), "C", dark=dark)


@cache
def _kernel_search() -> Any:
    X, y = _cancer()
    grid = {"C": np.logspace(-1, 3, 5), "gamma": np.logspace(-4, 0, 5)}
    return sixfold.GridSearchCV(sixfold.SVC(), grid, cv=3).fit(X, y)


def heat_map(dark: bool) -> Any:
    """Draw C and gamma of a support vector machine on breast cancer."""
    return plot.heat_map(_kernel_search(), dark=dark)


@cache
def _random_search() -> Any:
    from scipy.stats import loguniform

    X, y = _cancer()
    spread = {"C": loguniform(1e-1, 1e3), "gamma": loguniform(1e-4, 1)}
    return sixfold.RandomizedSearchCV(sixfold.SVC(), spread, n_iter=40, cv=3, random_state=0).fit(X, y)


def random_search(dark: bool) -> Any:
    """Draw forty settings at random on breast cancer."""
    return plot.heat_map(_random_search(), "C", "gamma", dark=dark)


@cache
def _chosen(model: Any, data: Any, parameter: str, strengths: tuple[float, ...], rule: str = "best") -> float:
    X, y = data()
    search = sixfold.GridSearchCV(model(), {parameter: strengths}, cv=5, rule=rule).fit(X, y)
    return float(search.best_params_[parameter])


def _lasso() -> Any:
    return sixfold.LinearRegression(penalty="l1")


def _ridge() -> Any:
    return sixfold.LinearRegression(penalty="l2")


def _sparse_logistic() -> Any:
    return sixfold.LogisticRegression(penalty="l1")


def lasso_path(dark: bool) -> Any:
    """Draw the lasso's coefficients on diabetes, with the penalty that five folds choose."""
    X, y = _diabetes()
    alphas = np.logspace(-3, 0.7, 40)
    chosen = _chosen(_lasso, _diabetes, "alpha", tuple(alphas))
    return plot.regularisation_path(_lasso(), X, y, alphas, chosen=chosen, dark=dark)


def ridge_path(dark: bool) -> Any:
    """Draw ridge coefficients on diabetes, with the strongest penalty within one standard error."""
    X, y = _diabetes()
    alphas = np.logspace(-6, 1, 40)
    chosen = _chosen(_ridge, _diabetes, "alpha", tuple(alphas), "1se")
    return plot.regularisation_path(_ridge(), X, y, alphas, chosen=chosen, dark=dark)


def logistic_path(dark: bool) -> Any:
    """Draw L1 logistic coefficients on breast cancer, with the penalty that five folds choose."""
    X, y = _cancer()
    strengths = np.logspace(-3, 1, 40)
    chosen = _chosen(_sparse_logistic, _cancer, "C", tuple(strengths))
    return plot.regularisation_path(_sparse_logistic(), X, y, strengths, chosen=chosen, dark=dark)


def coefficients(dark: bool) -> Any:
    """Draw the coefficients of logistic regression on breast cancer."""
    X, y = _cancer()
    return sixfold.LogisticRegression().fit(X, y).plot(dark=dark)


def learning_curve(dark: bool) -> Any:
    """Draw the learning curve of five nearest neighbours on digits."""
    X, y = _digits()
    return plot.learning_curve(sixfold.KNeighborsClassifier(), X, y, dark=dark)


def history(dark: bool) -> Any:
    """Draw Newton's iterations of logistic regression on breast cancer."""
    X, y = _cancer()
    return plot.history(sixfold.LogisticRegression(C=100.0).fit(X, y), dark=dark)


def perceptron_history(dark: bool) -> Any:
    """Draw the perceptron's errors on breast cancer."""
    X, y = _cancer()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = sixfold.Perceptron(max_iter=60).fit(X, y)
    return plot.history(model, dark=dark)


def _halves() -> Any:
    X, y = _cancer()
    return train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)


def calibration(dark: bool) -> Any:
    """Draw the calibration of logistic regression on held-out breast cancers."""
    X, other, y, theirs = _halves()
    columns = ["mean texture", "mean smoothness", "mean symmetry"]
    return plot.calibration(
        sixfold.LogisticRegression().fit(X[columns], y), other[columns], theirs, dark=dark
    )


def calibration_of_classes(dark: bool) -> Any:
    """Draw the calibration of three classes of wine, from two columns, on held-out rows."""
    X, y = datasets.load_wine(as_frame=True, return_X_y=True)
    X = X[["alcohol", "malic_acid"]]
    X, other, y, theirs = train_test_split(X, y, test_size=0.6, random_state=0, stratify=y)
    return plot.calibration(sixfold.LogisticRegression().fit(X, y), other, theirs, bins=5, dark=dark)


def threshold(dark: bool) -> Any:
    """Draw the threshold of logistic regression on held-out breast cancers."""
    X, other, y, theirs = _halves()
    columns = ["mean texture", "mean smoothness", "mean symmetry"]
    return plot.threshold(sixfold.LogisticRegression().fit(X[columns], y), other[columns], theirs, dark=dark)


def residuals(dark: bool) -> Any:
    """Draw the residuals of linear regression on diabetes."""
    X, y = _diabetes()
    return plot.residuals(sixfold.LinearRegression().fit(X, y), X, y, dark=dark)


@cache
def _comparison() -> Any:
    X, y = _cancer()
    return sixfold.compare(X, y, cv=10)


def leaderboard(dark: bool) -> Any:
    """Draw the learners that suit breast cancer, each tuned."""
    return plot.leaderboard(_comparison(), dark=dark)


def paired(dark: bool) -> Any:
    """Draw the same learners against the best, fold by fold."""
    return plot.paired(_comparison(), dark=dark)


FIGURES = [
    validation_curve,
    one_standard_error,
    validation_lines,
    heat_map,
    random_search,
    lasso_path,
    ridge_path,
    logistic_path,
    coefficients,
    learning_curve,
    history,
    perceptron_history,
    calibration,
    calibration_of_classes,
    threshold,
    residuals,
    leaderboard,
    paired,
]
