"""Regions, trees, losses and overfitting for the gallery, from the data that come with scikit-learn.

Each computes what is shown and returns the function of ``dark`` that draws it; ``FIGURES`` lists them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sixfold import (
    SVC,
    DecisionTreeClassifier,
    KNeighborsClassifier,
    LinearSVC,
    LogisticRegression,
    plot,
)

Draw = Callable[[bool], Any]


def support_vectors() -> Draw:
    """Draw two columns of breast cancer, a Gaussian kernel, its margins and its support vectors."""
    table = load_breast_cancer(as_frame=True)
    X = table.data[["worst concave points", "worst texture"]][::3]
    y = table.target_names[table.target][::3]
    model = make_pipeline(StandardScaler(), SVC(C=10.0, sigma=2.0)).fit(X, y)
    return lambda dark: plot.decision_boundary(model, X, y, dark=dark)


def widest_margin() -> Draw:
    """Draw the widest margin between two kinds of iris, and the direction w across it."""
    table = load_iris(as_frame=True)
    X = table.data[["petal length (cm)", "sepal width (cm)"]][:100]
    y = table.target_names[table.target][:100]
    model = LinearSVC(C=np.inf, loss="hinge").fit(X, y)
    return lambda dark: plot.decision_boundary(model, X, y, normal=True, dark=dark)


def principal_directions() -> Draw:
    """Draw thirty columns of breast cancer along their two principal directions.

    Regions are those on the plane of these directions; rows are drawn where they fall when they are
    projected onto it.
    """
    table = load_breast_cancer(as_frame=True)
    X, y = table.data, table.target_names[table.target]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    return lambda dark: plot.decision_boundary(model, X, y, dark=dark)


def ten_classes() -> Draw:
    """Draw ten kinds of digits: stripes and other markers where colours come again.

    The regions are a slice through 64 columns, on the plane of the two principal directions. It meets the
    regions of six digits; the other four lie off it. Rows are projected onto it, so many are drawn on a
    region that is not theirs and are right all the same; only crosses are wrong.
    """
    X, y = load_digits(return_X_y=True)
    model = LogisticRegression(C=0.01).fit(X, y)
    return lambda dark: plot.decision_boundary(model, X[:400], y[:400], dark=dark)


def chosen_columns() -> Draw:
    """Draw two of thirteen columns of wine, the others at their medians: five neighbours."""
    table = load_wine(as_frame=True)
    X, y = table.data, table.target_names[table.target]
    model = make_pipeline(StandardScaler(), KNeighborsClassifier(5)).fit(X, y)
    columns = ("flavanoids", "color_intensity")
    return lambda dark: plot.decision_boundary(model, X, y, columns=columns, dark=dark)


def tree() -> Draw:
    """Draw a tree of depth three on wine."""
    table = load_wine(as_frame=True)
    model = DecisionTreeClassifier(max_depth=3).fit(table.data, table.target_names[table.target])
    return lambda dark: plot.tree(model, dark=dark)


def losses() -> Draw:
    """Draw the losses of the margin."""
    return lambda dark: plot.losses(dark=dark)


def losses_of_residuals() -> Draw:
    """Draw the losses of the residual."""
    return lambda dark: plot.losses(of="residual", dark=dark)


def overfitting() -> Draw:
    """Draw polynomials through 40 wines, judged on the 138 others: alcohol over flavanoids."""
    wine = load_wine(as_frame=True).data
    x, y, names = wine["flavanoids"], wine["alcohol"], ("flavanoids", "alcohol (%)")
    return lambda dark: plot.overfitting(x, y, held_out=138 / 178, names=names, dark=dark)


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
