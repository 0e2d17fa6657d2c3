"""Regions, trees, losses and overfitting for the gallery, from the data that come with scikit-learn.

Each function takes ``dark`` and returns the Axes; ``FIGURES`` lists them.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sixfold
from sixfold import plot


@cache
def _named(name: str) -> Any:
    table = getattr(datasets, f"load_{name}")(as_frame=True)
    return table.data, np.asarray(table.target_names)[table.target]


def support_vectors(dark: bool) -> Any:
    """Draw two columns of breast cancer, a Gaussian kernel, its margins and its support vectors."""
    X, y = _named("breast_cancer")
    X = X[["worst concave points", "worst texture"]]
    model = make_pipeline(StandardScaler(), sixfold.SVC(C=10.0, sigma=2.0)).fit(X[::3], y[::3])
    return plot.decision_boundary(model, X[::3], y[::3], dark=dark)


def widest_margin(dark: bool) -> Any:
    """Draw the widest margin between two kinds of iris, and the direction w across it."""
    X, y = _named("iris")
    X, y = X.loc[y != "virginica"].iloc[:, [2, 1]], y[y != "virginica"]
    return plot.decision_boundary(
        sixfold.LinearSVC(C=np.inf, loss="hinge").fit(X, y), X, y, normal=True, dark=dark
    )


def principal_directions(dark: bool) -> Any:
    """Draw thirty columns of breast cancer along their two principal directions."""
    X, y = _named("breast_cancer")
    model = make_pipeline(StandardScaler(), sixfold.LogisticRegression()).fit(X, y)
    return plot.decision_boundary(model, X, y, dark=dark)


def ten_classes(dark: bool) -> Any:
    """Draw ten kinds of digits: stripes and other markers where colours come again."""
    X, y = datasets.load_digits(return_X_y=True)
    return plot.decision_boundary(sixfold.LogisticRegression(C=0.01).fit(X, y), X[:400], y[:400], dark=dark)


def chosen_columns(dark: bool) -> Any:
    """Draw two of thirteen columns of wine, the others at their medians: five neighbours."""
    X, y = _named("wine")
    model = make_pipeline(StandardScaler(), sixfold.KNeighborsClassifier(5)).fit(X, y)
    return plot.decision_boundary(model, X, y, columns=("flavanoids", "color_intensity"), dark=dark)


def tree(dark: bool) -> Any:
    """Draw a tree of depth three on wine."""
    X, y = _named("wine")
    return plot.tree(sixfold.DecisionTreeClassifier(max_depth=3).fit(X, y), dark=dark)


def losses(dark: bool) -> Any:
    """Draw the losses of the margin."""
    return plot.losses(dark=dark)


def losses_of_residuals(dark: bool) -> Any:
    """Draw the losses of the residual."""
    return plot.losses(of="residual", dark=dark)


def overfitting(dark: bool) -> Any:
    """Draw polynomials through 40 wines, judged on the 138 others: alcohol over flavanoids."""
    X, _ = _named("wine")
    names = ("flavanoids", "alcohol (%)")
    return plot.overfitting(X["flavanoids"], X["alcohol"], held_out=138 / 178, names=names, dark=dark)


FIGURES = [
    support_vectors,
    widest_margin,
    principal_directions,
    chosen_columns,
    ten_classes,
    tree,
    losses,
    losses_of_residuals,
    overfitting,
]
