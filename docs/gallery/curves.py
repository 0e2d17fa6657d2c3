"""Curves of the gallery, drawn from the data that come with scikit-learn: one function a figure.

Each computes what is shown and returns the function of ``dark`` that draws it; ``FIGURES`` lists them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import loguniform
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.model_selection import train_test_split

from sixfold import (
    SVC,
    DecisionTreeClassifier,
    GridSearchCV,
    KNeighborsClassifier,
    LinearRegression,
    LogisticRegression,
    Perceptron,
    RandomizedSearchCV,
    compare,
    plot,
)

Draw = Callable[[bool], Any]


def validation_curve() -> Draw:
    """Draw five folds for k = 1 to 40 on breast cancer."""
    X, y = load_breast_cancer(as_frame=True, return_X_y=True)
    X = (X - X.mean()) / X.std()
    grid = {"n_neighbors": range(1, 41)}
    search = GridSearchCV(KNeighborsClassifier(), grid, cv=5, return_train_score=True).fit(X, y)
    return lambda dark: plot.validation_curve(search, dark=dark)


def one_standard_error() -> Draw:
    """Draw the depth of a tree on breast cancer: the best, and the simplest within one standard error."""
    X, y = load_breast_cancer(as_frame=True, return_X_y=True)
    grid = {"max_depth": range(1, 13)}
    search = GridSearchCV(DecisionTreeClassifier(), grid, cv=10, rule="1se").fit(X, y)
    return lambda dark: plot.validation_curve(search, dark=dark)


def validation_lines() -> Draw:
    """Draw C for three kernels on digits."""
    X, y = load_digits(return_X_y=True)
    grid = {"C": np.logspace(-3, 1, 5), "kernel": ["linear", "rbf", "poly"]}
    search = GridSearchCV(SVC(gamma=0.05), grid, cv=3).fit(X[:600] / 16.0, y[:600])
    return lambda dark: plot.validation_curve(search, "C", dark=dark)


def heat_map() -> Draw:
    """Draw C and gamma of a support vector machine on breast cancer."""
    X, y = load_breast_cancer(as_frame=True, return_X_y=True)
    X = (X - X.mean()) / X.std()
    grid = {"C": np.logspace(-1, 3, 5), "gamma": np.logspace(-4, 0, 5)}
    search = GridSearchCV(SVC(), grid, cv=3).fit(X, y)
    return lambda dark: plot.heat_map(search, dark=dark)


def random_search() -> Draw:
    """Draw forty settings at random on breast cancer."""
    X, y = load_breast_cancer(as_frame=True, return_X_y=True)
    X = (X - X.mean()) / X.std()
    spread = {"C": loguniform(1e-1, 1e3), "gamma": loguniform(1e-4, 1)}
    search = RandomizedSearchCV(SVC(), spread, n_iter=40, cv=3, random_state=0).fit(X, y)
    return lambda dark: plot.heat_map(search, "C", "gamma", dark=dark)


def lasso_path() -> Draw:
    """Draw the lasso's coefficients on diabetes, with the penalty that five folds choose."""
    X, y = load_diabetes(as_frame=True, return_X_y=True)
    model, alphas = LinearRegression(penalty="l1"), np.logspace(-3, 0.7, 40)
    search = GridSearchCV(model, {"alpha": alphas}, cv=5).fit(X, y)
    chosen = search.best_params_["alpha"]
    return lambda dark: plot.regularisation_path(model, X, y, alphas, chosen=chosen, dark=dark)


def ridge_path() -> Draw:
    """Draw ridge coefficients on diabetes, with the strongest penalty within one standard error."""
    X, y = load_diabetes(as_frame=True, return_X_y=True)
    model, alphas = LinearRegression(penalty="l2"), np.logspace(-6, 1, 40)
    search = GridSearchCV(model, {"alpha": alphas}, cv=5, rule="1se").fit(X, y)
    chosen = search.best_params_["alpha"]
    return lambda dark: plot.regularisation_path(model, X, y, alphas, chosen=chosen, dark=dark)


def logistic_path() -> Draw:
    """Draw L1 logistic coefficients on breast cancer, with the penalty that five folds choose."""
    X, y = load_breast_cancer(as_frame=True, return_X_y=True)
    X = (X - X.mean()) / X.std()
    y = np.where(y == 1, "benign", "malignant")
    model, strengths = LogisticRegression(penalty="l1"), np.logspace(-3, 1, 40)
    search = GridSearchCV(model, {"C": strengths}, cv=5).fit(X, y)
    chosen = search.best_params_["C"]
    return lambda dark: plot.regularisation_path(model, X, y, strengths, chosen=chosen, dark=dark)


def coefficients() -> Draw:
    """Draw the coefficients of logistic regression on breast cancer."""
    X, y = load_breast_cancer(as_frame=True, return_X_y=True)
    X = (X - X.mean()) / X.std()
    model = LogisticRegression().fit(X, np.where(y == 1, "benign", "malignant"))
    return lambda dark: model.plot(dark=dark)


def contributions() -> Draw:
    """Draw what each column adds to the score of one tumour, from the mean of all tumours to this one."""
    X, y = load_breast_cancer(as_frame=True, return_X_y=True)
    model = LogisticRegression(C=0.1).fit(X, np.where(y == 1, "benign", "malignant"))
    explanation = model.explain(X.iloc[14])
    return lambda dark: explanation.plot(dark=dark)


def learning_curve() -> Draw:
    """Draw the learning curve of five nearest neighbours on digits."""
    X, y = load_digits(return_X_y=True)
    return lambda dark: plot.learning_curve(KNeighborsClassifier(), X, y, dark=dark)


def history() -> Draw:
    """Draw Newton's iterations of logistic regression on breast cancer."""
    X, y = load_breast_cancer(as_frame=True, return_X_y=True)
    X = (X - X.mean()) / X.std()
    model = LogisticRegression(C=100.0).fit(X, y)
    return lambda dark: plot.history(model, dark=dark)


def perceptron_history() -> Draw:
    """Draw the perceptron's errors on breast cancer."""
    X, y = load_breast_cancer(as_frame=True, return_X_y=True)
    X = (X - X.mean()) / X.std()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of having been stopped after 60 passes
        model = Perceptron(max_iter=60).fit(X, y)
    return lambda dark: plot.history(model, dark=dark)


def calibration() -> Draw:
    """Draw the calibration of logistic regression on held-out breast cancers."""
    X, y = load_breast_cancer(as_frame=True, return_X_y=True)
    X = X[["mean texture", "mean smoothness", "mean symmetry"]]
    X, y = (X - X.mean()) / X.std(), np.where(y == 1, "benign", "malignant")
    X, other, y, theirs = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
    model = LogisticRegression().fit(X, y)
    return lambda dark: plot.calibration(model, other, theirs, dark=dark)


def calibration_of_classes() -> Draw:
    """Draw the calibration of three classes of wine, from two columns, on held-out rows."""
    X, y = load_wine(as_frame=True, return_X_y=True)
    X = X[["alcohol", "malic_acid"]]
    X, other, y, theirs = train_test_split(X, y, test_size=0.6, random_state=0, stratify=y)
    model = LogisticRegression().fit(X, y)
    return lambda dark: plot.calibration(model, other, theirs, bins=5, dark=dark)


def threshold() -> Draw:
    """Draw the threshold of logistic regression on held-out breast cancers."""
    X, y = load_breast_cancer(as_frame=True, return_X_y=True)
    X = X[["mean texture", "mean smoothness", "mean symmetry"]]
    X, y = (X - X.mean()) / X.std(), np.where(y == 1, "benign", "malignant")
    X, other, y, theirs = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
    model = LogisticRegression().fit(X, y)
    return lambda dark: plot.threshold(model, other, theirs, dark=dark)


def residuals() -> Draw:
    """Draw the residuals of linear regression on diabetes."""
    X, y = load_diabetes(as_frame=True, return_X_y=True)
    model = LinearRegression().fit(X, y)
    return lambda dark: plot.residuals(model, X, y, dark=dark)


def leaderboard() -> Draw:
    """Draw the learners that suit breast cancer, each tuned."""
    X, y = load_breast_cancer(as_frame=True, return_X_y=True)
    result = compare(X, y, cv=10)
    return lambda dark: plot.leaderboard(result, dark=dark)


def paired() -> Draw:
    """Draw the same learners against the best, fold by fold."""
    X, y = load_breast_cancer(as_frame=True, return_X_y=True)
    result = compare(X, y, cv=10)
    return lambda dark: plot.paired(result, dark=dark)


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
    contributions,
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
