"""Coefficients of one model, and over the penalty."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn import linear_model
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sixfold import KNeighborsClassifier, LinearRegression, LogisticRegression
from sixfold.errors import InputError
from sixfold.explain.plots.style import DARK, LIGHT
from sixfold.plot import coefficients, regularisation_path
from sixfold.selection.lasso_cv import ElasticNetCV, LassoCV
from sixfold.selection.logistic_cv import LogisticRegressionCV
from sixfold.selection.ridge_cv import RidgeCV

X, Y = load_diabetes(return_X_y=True, as_frame=True)
STRENGTHS = np.logspace(-2, 1, 7)


def lines(ax):
    return [line for line in ax.lines if line.get_gid() == "coefficient"]


def chosen(ax):
    return [line for line in ax.lines if line.get_gid() == "chosen"]


# -- one model -----------------------------------------------------------------------------------------------


def test_bars_are_coefficients_the_largest_first(drawn):
    model = LinearRegression().fit(X, Y)
    ax = drawn(coefficients(model))
    order = np.argsort(-np.abs(model.coef_))
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], model.coef_[order])
    assert [label.get_text() for label in ax.get_yticklabels()] == X.columns[order].tolist()
    assert ax.get_xlabel() == "adds to the prediction for each unit of the column"
    assert ax.get_title() == "LinearRegression: coefficients"


def test_signs_have_colours_too():
    ax = coefficients(LinearRegression().fit(X, Y), dark=True)
    shades = {bar.get_width() < 0: bar.get_facecolor() for bar in ax.patches}
    assert shades[True] != shades[False]


def test_the_class_that_is_added_to_is_named():
    table = load_breast_cancer()
    y = np.where(table.target == 1, "benign", "malignant")
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(table.data, y)
    ax = coefficients(model, names=table.feature_names, most=5)
    assert ax.get_xlabel() == "adds to the log-odds of class malignant for each unit of the column"
    assert ax.get_title() == "LogisticRegression: coefficients, 5 largest of 30"
    assert len(ax.patches) == 5


def test_classes_are_points_of_their_own():
    model = LogisticRegression().fit(*load_iris(return_X_y=True))
    ax = coefficients(model)
    points = [line for line in ax.lines if line.get_linestyle() == "None"]
    order = np.argsort(-np.abs(model.coef_).max(axis=0))
    np.testing.assert_allclose([line.get_xdata() for line in points], model.coef_[:, order])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["class 0", "class 1", "class 2"]
    assert [text.get_text() for text in ax.get_yticklabels()] == [f"column {k}" for k in order]


def test_many_classes_are_taken_together_or_one_at_a_time():
    digits, y = load_digits(return_X_y=True)
    model = LogisticRegression().fit(digits[:300] / 16, y[:300])
    together, one = coefficients(model), coefficients(model, target=3)
    lengths = np.sort(np.linalg.norm(model.coef_, axis=0))[::-1][:20]
    np.testing.assert_allclose([bar.get_width() for bar in together.patches], lengths)
    assert together.get_xlabel() == "Euclidean length over 10 classes"
    own = model.coef_[3][np.argsort(-np.abs(model.coef_[3]), kind="stable")[:20]]
    np.testing.assert_allclose([bar.get_width() for bar in one.patches], own)
    assert one.get_xlabel() == "coefficient of class 3"
    with pytest.raises(InputError, match="target=10 is out of range: there are 10, from 0 to 9"):
        coefficients(model, target=10)


def test_a_model_without_coefficients_is_refused():
    with pytest.raises(InputError, match="LinearRegression has no coef_: a fitted linear model is needed"):
        coefficients(LinearRegression())
    with pytest.raises(InputError, match="names has 2 entries, but there are 10 columns"):
        coefficients(LinearRegression().fit(X, Y), names=["a", "b"])
    with pytest.raises(InputError, match="most=0 is out of range"):
        coefficients(LinearRegression().fit(X, Y), most=0)


# -- a path --------------------------------------------------------------------------------------------------


def test_lines_are_the_coefficients_of_separate_fits(drawn):
    ax = drawn(regularisation_path(LinearRegression(penalty="l1"), X, Y, STRENGTHS))
    drawn_lines = {tuple(np.round(line.get_ydata(), 6)) for line in lines(ax)}
    fits = np.array([LinearRegression(penalty="l1", alpha=alpha).fit(X, Y).coef_ for alpha in STRENGTHS])
    assert drawn_lines == {tuple(np.round(fits[:, column], 6)) for column in range(10)}
    np.testing.assert_allclose(lines(ax)[0].get_xdata(), STRENGTHS)
    assert ax.get_xscale() == "log"
    assert ax.get_xlabel() == "strength of the penalty, alpha (weaker penalty to the right)"
    low, high = ax.get_xlim()
    assert low > high  # the weaker penalty is at the right
    assert {text.get_text() for text in ax.texts} == set(X.columns)


def test_c_grows_to_the_right():
    ax = regularisation_path(LogisticRegression(), *load_iris(return_X_y=True), [0.01, 1.0, 100.0])
    assert ax.get_xlim()[0] < ax.get_xlim()[1]
    assert ax.get_xlabel() == "inverse strength of the penalty, C (weaker penalty to the right)"
    assert ax.get_ylabel() == "coefficients of a column: Euclidean length over 3 classes"


def test_one_class_can_be_drawn():
    table, y = load_iris(return_X_y=True)
    ax = regularisation_path(LogisticRegression(), table, y, [0.01, 1.0, 100.0], target=2)
    ends = sorted(line.get_ydata()[-1] for line in lines(ax))
    np.testing.assert_allclose(ends, np.sort(LogisticRegression(C=100.0).fit(table, y).coef_[2]))
    assert ax.get_ylabel() == "coefficient of class 2"
    with pytest.raises(InputError, match="target=3 is out of range"):
        regularisation_path(LogisticRegression(), table, y, [0.01, 1.0], target=3)


def test_arrays_are_drawn_as_they_are_and_transposed_too():
    alphas, coefs, _ = linear_model.lasso_path(X.to_numpy(), Y.to_numpy(), alphas=STRENGTHS)
    one = regularisation_path(strengths=alphas, coefs=coefs, names=X.columns, chosen=0.1)
    other = regularisation_path(strengths=alphas, coefs=coefs.T, names=X.columns)
    for first, second in zip(lines(one), lines(other), strict=True):
        np.testing.assert_array_equal(first.get_ydata(), second.get_ydata())
    assert chosen(one)[0].get_xdata()[0] == 0.1
    assert chosen(one)[0].get_label() == "chosen: alpha = 0.1"
    assert not chosen(other)


def test_only_the_largest_have_names():
    ax = regularisation_path(LinearRegression(penalty="l2"), X, Y, STRENGTHS, most=3)
    ends = {text.get_text() for text in ax.texts}
    model = LinearRegression(penalty="l2", alpha=STRENGTHS[0]).fit(X, Y)
    assert ends == set(X.columns[np.argsort(-np.abs(model.coef_))[:3]])
    assert len(lines(ax)) == 10


@pytest.mark.parametrize("dark", [False, True])
def test_colours_follow_the_ground(dark, new_axes):
    theme = DARK if dark else LIGHT
    ax = new_axes(theme.surface, layout="constrained")
    assert regularisation_path(LinearRegression(penalty="l2"), X, Y, STRENGTHS, ax=ax) is ax
    assert theme.series[0] in {line.get_color() for line in lines(ax)}


@pytest.mark.parametrize(
    ("model", "plain"),
    [
        (linear_model.LassoCV(cv=3, alphas=[0.01, 0.1, 1.0] * 4), linear_model.Lasso),
        (linear_model.RidgeCV(alphas=np.logspace(-3, 1, 12)), linear_model.Ridge),
        (
            linear_model.ElasticNetCV(cv=3, l1_ratio=[0.3, 0.7], alphas=np.logspace(-3, 0, 12)),
            linear_model.ElasticNet,
        ),
    ],
    ids=["LassoCV", "RidgeCV", "ElasticNetCV"],
)
def test_fitted_searches_over_penalties_are_drawn_over_theirs_with_the_choice(model, plain):
    model.fit(X, Y)
    ax = regularisation_path(model, X, Y)
    assert chosen(ax)[0].get_xdata()[0] == pytest.approx(model.alpha_)
    weakest = float(lines(ax)[0].get_xdata()[0])
    options = {"l1_ratio": model.l1_ratio_} if hasattr(model, "l1_ratio_") else {}
    expected = plain(alpha=weakest, **options).fit(X, Y).coef_
    np.testing.assert_allclose(
        sorted(line.get_ydata()[0] for line in lines(ax)), np.sort(expected), rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (
            LassoCV(cv=3, alphas=np.logspace(-3, 0, 12), tol=1e-7),
            linear_model.LassoCV(cv=3, alphas=np.logspace(-3, 0, 12), tol=1e-7),
        ),
        (
            ElasticNetCV(cv=3, alphas=np.logspace(-3, 0, 12), l1_ratio=[0.3, 0.7], tol=1e-7),
            linear_model.ElasticNetCV(cv=3, alphas=np.logspace(-3, 0, 12), l1_ratio=[0.3, 0.7], tol=1e-7),
        ),
        (RidgeCV(alphas=np.logspace(-3, 1, 12)), linear_model.RidgeCV(alphas=np.logspace(-3, 1, 12))),
    ],
    ids=["LassoCV", "ElasticNetCV", "RidgeCV"],
)
def test_our_searches_over_penalties_draw_what_scikit_learns_draw(ours, theirs):
    one, other = ours.fit(X, Y).plot(X, Y), regularisation_path(theirs.fit(X, Y), X, Y)
    assert chosen(one)[0].get_xdata()[0] == pytest.approx(chosen(other)[0].get_xdata()[0])
    found, expected = (np.sort([line.get_ydata() for line in lines(ax)], axis=0) for ax in (one, other))
    np.testing.assert_allclose(found, expected, rtol=0.02, atol=1.0)  # coefficients are up to 800


def test_our_logistic_search_draws_what_it_keeps_and_what_it_would_fit():
    table, y = load_iris(return_X_y=True)
    model = LogisticRegressionCV(Cs=[0.1, 1.0, 10.0], cv=3, use_legacy_attributes=True).fit(
        table[:100], y[:100]
    )
    kept = regularisation_path(model)
    assert kept.get_title() == "Coefficients over the penalty, mean over folds"
    fitted = model.plot(table[:100], y[:100], kind="path", strengths=[0.1, 10.0])
    ends = sorted(line.get_ydata()[-1] for line in lines(fitted))
    np.testing.assert_allclose(
        ends, np.sort(LogisticRegression(C=10.0).fit(table[:100], y[:100]).coef_[0]), rtol=1e-3
    )


def test_few_strengths_become_a_curve():
    model = linear_model.RidgeCV().fit(X, Y)  # has tried three
    assert lines(regularisation_path(model, X, Y))[0].get_xdata().size > 10


def test_coefficients_that_are_kept_need_no_rows():
    kept = SimpleNamespace(
        Cs_=np.array([0.1, 1.0, 10.0]),
        C_=np.array([1.0]),
        classes_=np.array(["a", "b"]),
        coef_=np.ones((1, 2)),
        coefs_paths_={"b": np.arange(18.0).reshape(2, 3, 3)},  # folds, Cs, two columns and the intercept
    )
    ax = regularisation_path(kept)
    found = sorted(tuple(line.get_ydata()) for line in lines(ax))
    assert found == [(4.5, 7.5, 10.5), (5.5, 8.5, 11.5)]
    assert ax.get_title() == "Coefficients over the penalty, mean over folds"
    assert chosen(ax)[0].get_xdata()[0] == 1.0


def test_no_penalty_has_a_place():
    ax = regularisation_path(LinearRegression(penalty="l2"), X, Y, [0.0, 0.01, 1.0])
    assert ax.get_xscale() == "symlog"


def test_pipelines_have_the_penalty_of_their_last_step():
    model = make_pipeline(StandardScaler(), LogisticRegression())
    ax = regularisation_path(model, *load_iris(return_X_y=True), [0.1, 1.0])
    assert ax.get_xlabel().startswith("inverse strength of the penalty, C (logisticregression)")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "There is nothing to draw"),
        ({"coefs": [[1.0]]}, "coefs is given without strengths"),
        (
            {"coefs": [[1.0], [2.0], [3.0]], "strengths": [1.0, 2.0]},
            r"coefs has shape \(3, 1\).* 2 strengths",
        ),
        ({"coefs": [[1.0]], "strengths": [1.0]}, "needs at least 2"),
        ({"coefs": [[1.0], [1.0]], "strengths": [1.0, -1.0]}, "strengths has .* at least 0 are needed"),
        ({"model": LinearRegression(), "X": X, "y": Y}, "penalty=None, so that alpha has no effect"),
        ({"model": KNeighborsClassifier(), "X": X, "y": Y}, "neither alpha nor C"),
        ({"model": LogisticRegression()}, "a path needs X and y"),
        ({"coefs": [[1.0], [1.0]], "strengths": [1.0, 2.0], "chosen": -1}, "chosen=-1 is out of range"),
    ],
)
def test_wrong_input_is_refused_with_what_to_do(arguments, message):
    with pytest.raises(InputError, match=message):
        regularisation_path(**arguments)
