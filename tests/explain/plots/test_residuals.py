"""Residuals over predictions."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from sixfold import KNeighborsRegressor, LinearRegression, LogisticRegression
from sixfold.errors import InputError
from sixfold.explain.plots.residuals import running_median
from sixfold.explain.plots.style import DARK, LIGHT
from sixfold.plot import residuals

X, Y = load_diabetes(return_X_y=True)


@pytest.mark.parametrize("dark", [False, True])
def test_points_are_rows_and_the_line_their_running_median(dark, drawn):
    model = LinearRegression().fit(X, Y)
    ax = drawn(residuals(model, X, Y, dark=dark))
    predicted = model.predict(X)
    points = next(group for group in ax.collections if group.get_gid() == "residuals")
    np.testing.assert_allclose(points.get_offsets(), np.column_stack([predicted, Y - predicted]))
    line = next(line for line in ax.lines if line.get_gid() == "median")
    np.testing.assert_allclose(line.get_data(), running_median(predicted, Y - predicted))
    assert line.get_color() == (DARK if dark else LIGHT).series[1]
    error = np.sqrt(np.mean((Y - predicted) ** 2))
    assert (
        ax.get_title() == f"LinearRegression: root mean square error {error:.3g}, R² {model.score(X, Y):.3g}"
    )


def test_the_distribution_counts_every_row():
    model = LinearRegression().fit(X, Y)
    ax = residuals(model, X, Y)
    (side,) = ax.child_axes
    assert sum(bar.get_width() for bar in side.patches) == Y.size
    assert not residuals(model, X, Y, distribution=False).child_axes


def test_one_row_far_away_does_not_move_the_median():
    x = np.arange(100.0)
    y = np.zeros(100)
    y[50] = 1e9
    np.testing.assert_array_equal(running_median(x, y)[1], 0.0)


def test_few_rows_have_no_median(new_axes, drawn):
    ax = new_axes()
    assert residuals(KNeighborsRegressor(1).fit(X[:5], Y[:5]), X[:5], Y[:5], ax=ax) is ax
    drawn(ax)
    assert not [line for line in ax.lines if line.get_gid() == "median"]


def test_wrong_input_is_refused():
    model = LinearRegression().fit(X, Y)
    with pytest.raises(InputError, match="LogisticRegression is a classifier"):
        residuals(LogisticRegression(), X, Y)
    with pytest.raises(InputError, match="X gives 5 predictions, but y has 4 entries"):
        residuals(model, X[:5], Y[:4])
    with pytest.raises(InputError, match="list has no predict"):
        residuals([1], X, Y)
