"""Curves of the gallery, drawn from the data that come with scikit-learn: one function a figure."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.model_selection import GridSearchCV

import sixfold
from sixfold import plot


def validation_curve(dark: bool) -> Any:
    """Draw five folds for k = 1 to 50 on iris."""
    X, y = datasets.load_iris(return_X_y=True)
    search = GridSearchCV(sixfold.KNeighborsClassifier(), {"n_neighbors": list(range(1, 51))}, cv=5)
    return plot.validation_curve(search.fit(X, y), dark=dark)


def heat_map(dark: bool) -> Any:
    """Draw C and gamma of a support vector machine on breast cancer."""
    X, y = datasets.load_breast_cancer(return_X_y=True)
    X = (X - X.mean(0)) / X.std(0)
    grid = {"C": np.logspace(-1, 3, 5), "gamma": np.logspace(-4, 0, 5)}
    search = GridSearchCV(sixfold.SVC(), grid, cv=3)
    return plot.heat_map(search.fit(X, y), dark=dark)


FIGURES = [validation_curve, heat_map]
