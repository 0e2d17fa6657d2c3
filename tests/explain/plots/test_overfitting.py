import numpy as np
import pytest
from sklearn.linear_model import Ridge

from sixfold.errors import InputError
from sixfold.plot import overfitting

RNG = np.random.default_rng(0)
X = np.linspace(0.0, 1.0, 40)
Y = np.sin(6.0 * X) + 0.3 * np.random.default_rng(1).normal(size=40)


def errors(ax):
    return {line.get_label(): line.get_ydata() for line in ax.child_axes[-1].lines}


def test_ten_fits_and_one_curve_of_errors():
    ax = overfitting(X, Y)
    assert [panel.get_title() for panel in ax.child_axes[:-1]] == [f"degree {d}" for d in range(1, 11)]
    last = ax.child_axes[-1]
    assert last.get_xlabel() == "degree of the polynomial"
    assert [text.get_text() for text in last.get_legend().get_texts()] == ["training rows", "held-out rows"]


def test_the_error_over_training_rows_never_rises():
    assert (np.diff(errors(overfitting(X, Y))["training rows"]) <= 1e-12).all()


def test_a_fit_is_the_polynomial_of_least_squares():
    ax = overfitting(X[::2], Y[::2], degrees=[4], held_out=(X[1::2], Y[1::2]))
    grid, curve = ax.child_axes[0].lines[0].get_data()
    np.testing.assert_allclose(curve, np.polyval(np.polyfit(X[::2], Y[::2], 4), grid), atol=1e-9)
    rest = np.polyval(np.polyfit(X[::2], Y[::2], 4), X[1::2]) - Y[1::2]
    assert errors(ax)["held-out rows"][0] == pytest.approx(np.sqrt(np.mean(rest**2)))


def test_the_degree_with_the_least_error_is_named():
    ax = overfitting(X, Y)
    best = 1 + int(np.argmin(errors(ax)["held-out rows"]))
    assert ax.child_axes[-1].get_title() == f"Least error on held-out rows: degree {best}"
    assert ax.child_axes[best - 1].title.get_fontweight() == "bold"


def test_any_regressor_will_do():
    plain, shrunk = overfitting(X, Y), overfitting(X, Y, estimator=Ridge(alpha=100.0))
    assert errors(shrunk)["training rows"][-1] > errors(plain)["training rows"][-1]


@pytest.mark.parametrize(
    ("x", "y", "options", "words"),
    [
        (X, Y[:-1], {}, "one target a row"),
        (X, Y, {"degrees": []}, "degrees is empty"),
        (X, Y, {"degrees": [0]}, "degrees"),
        (X, Y, {"held_out": 1.0}, "leaves 0 to fit"),
        (X, Y, {"held_out": 0.0}, "held_out"),
        (np.ones(40), Y, {}, "degree 10 needs 11 different values of x, and the training rows have 1"),
        (np.where(X > 0.5, np.nan, X), Y, {}, "unknown or infinite"),
        ([], [], {}, "one column"),
    ],
)
def test_what_cannot_be_drawn_is_said(x, y, options, words):
    with pytest.raises(InputError, match=words):
        overfitting(x, y, **options)
