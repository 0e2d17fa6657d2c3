"""Scores over the number of rows learnt from."""

import numpy as np
import pytest
from sklearn import model_selection
from sklearn.datasets import load_diabetes, load_iris

from sixfold import KNeighborsClassifier, LinearRegression
from sixfold.errors import InputError
from sixfold.explain.plots.style import DARK
from sixfold.plot import learning_curve

X, Y = load_iris(return_X_y=True)


def test_lines_are_the_means_of_scikit_learns_learning_curve(drawn):
    sizes = [20, 60, 100]
    ax = drawn(learning_curve(KNeighborsClassifier(), X, Y, sizes, 4))
    counts, train, held_out = model_selection.learning_curve(
        KNeighborsClassifier(), X, Y, train_sizes=sizes, cv=4, shuffle=True, random_state=0
    )
    of_train, of_held_out = [line for line in ax.lines if line.get_gid() == "mean"]
    np.testing.assert_array_equal(of_train.get_xdata(), counts)
    np.testing.assert_allclose(of_train.get_ydata(), train.mean(axis=1))
    np.testing.assert_allclose(of_held_out.get_ydata(), held_out.mean(axis=1))
    points = [group for group in ax.collections if group.get_gid() == "folds"]
    np.testing.assert_allclose(np.asarray(points[1].get_offsets())[:, 1], held_out.ravel())
    assert {text.get_text() for text in ax.texts} == {"rows learnt from", "held-out rows"}
    assert ax.get_xlabel() == "number of rows learnt from"
    assert ax.get_ylabel() == "accuracy"


def test_a_loss_is_drawn_as_a_loss(new_axes):
    table, y = load_diabetes(return_X_y=True)
    ax = new_axes("black")
    assert learning_curve(LinearRegression(), table, y, cv=3, scoring="neg_mean_squared_error", ax=ax) is ax
    assert all((line.get_ydata() > 0).all() for line in ax.lines if line.get_gid() == "mean")
    assert ax.get_ylabel() == "mean squared error, less is better"
    assert ax.lines[0].get_color() == DARK.series[1]


def test_what_cannot_be_fitted_is_refused():
    with pytest.raises(InputError, match="list has no fit"):
        learning_curve([1], X, Y)
