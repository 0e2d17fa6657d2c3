"""model.plot() and search.plot() draw the figure that fits."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LassoCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sixfold
from sixfold import (
    SVC,
    DecisionTreeClassifier,
    GridSearchCV,
    KNeighborsClassifier,
    KNeighborsRegressor,
    LinearRegression,
    LogisticRegression,
    plot,
)
from sixfold.errors import InputError
from sixfold.explain.plots.choose import HOMES, plot_model
from sixfold.explain.plots.style import DARK, contrast
from sixfold.learners.registry import LEARNERS, TRANSFORMERS

X, Y = load_iris(return_X_y=True)
NUMBERS, TARGET = load_diabetes(return_X_y=True)


@pytest.mark.parametrize(
    ("model", "rows", "title"),
    [
        (DecisionTreeClassifier(max_depth=2), False, ""),
        (LogisticRegression(), False, "LogisticRegression: coefficients"),
        (KNeighborsClassifier(), True, "KNeighborsClassifier: "),
        (SVC(), True, "SVC: "),
    ],
)
def test_a_classifier_draws_what_fits(model, rows, title, drawn):
    ax = drawn(model.fit(X, Y).plot(*((X, Y) if rows else ())))
    assert ax.get_title().startswith(title)


def test_a_penalty_chosen_by_cross_validation_draws_the_path():
    model = LassoCV(cv=3, alphas=[0.01, 0.1, 1.0]).fit(NUMBERS, TARGET)
    assert plot_model(model, NUMBERS, TARGET).get_title() == "Coefficients over the penalty"
    assert plot_model(model).get_title() == "3-fold cross-validation"
    pipeline = make_pipeline(StandardScaler(), model).fit(NUMBERS, TARGET)
    assert plot_model(pipeline).get_title() == "3-fold cross-validation"
    assert plot_model(model, kind="coefficients").get_title() == "LassoCV: coefficients"
    for kept, title in ((True, "442-fold cross-validation"), (False, "RidgeCV: coefficients")):
        ridge = sixfold.RidgeCV(store_cv_results=kept).fit(NUMBERS, TARGET)
        assert ridge.plot().get_title() == title


def test_pipelines_draw_what_fits_their_last_step():
    for last, title in ((LogisticRegression(), "LogisticRegression: coefficients"), (SVC(), "SVC: 3 ")):
        assert plot_model(make_pipeline(StandardScaler(), last).fit(X, Y)).get_title().startswith(title)


def test_a_linear_classifier_of_two_columns_draws_its_boundary():
    ax = LogisticRegression().fit(X[:, :2], Y).plot(X[:, :2], Y)
    assert "rows right" in ax.get_title()


def test_regressors_draw_coefficients_or_residuals():
    assert LinearRegression().fit(NUMBERS, TARGET).plot().get_title() == "LinearRegression: coefficients"
    ax = KNeighborsRegressor().fit(NUMBERS, TARGET).plot(NUMBERS, TARGET)
    assert "root mean square error" in ax.get_title()


@pytest.mark.parametrize("kind", HOMES)
def test_every_kind_can_be_asked_for(kind, new_axes, drawn):
    if kind == "tree":
        model, rows = DecisionTreeClassifier(max_depth=2).fit(X, Y), (X, Y)
    elif kind == "residuals":
        model, rows = LinearRegression().fit(NUMBERS, TARGET), (NUMBERS, TARGET)
    elif kind == "validation":
        rows = ()
        model = sixfold.LassoCV(cv=3).fit(NUMBERS, TARGET)
    else:
        rows = X[:100], Y[:100]
        model = LogisticRegression().fit(*rows)
    options = {"strengths": [0.1, 1.0]} if kind == "path" else {}
    ax = new_axes("black")
    assert model.plot(*rows, kind=kind, ax=ax, **options) is ax
    drawn(ax)


@pytest.mark.parametrize("kind", ["boundary", "coefficients", "tree"])
def test_dark_reaches_every_figure(kind):
    model = (DecisionTreeClassifier(max_depth=2) if kind == "tree" else LogisticRegression()).fit(X[:, :2], Y)
    ax = model.plot(X[:, :2], Y, kind=kind, dark=True)
    assert contrast(ax.figure.get_facecolor(), DARK.surface) == 1.0


@pytest.mark.parametrize(
    "registered",
    LEARNERS + TRANSFORMERS,
    ids=lambda one: one.learner.__name__ if hasattr(one, "learner") else str(one),
)
def test_every_learner_has_plot(registered):
    assert callable(type(registered.make()).plot)


def test_rows_that_are_needed_are_asked_for():
    with pytest.raises(
        InputError, match=r"'boundary' of a KNeighborsClassifier shows rows.*model.plot\(X, y\)"
    ):
        KNeighborsClassifier().fit(X, Y).plot()
    with pytest.raises(InputError, match=r"model.plot\(X, y, kind='residuals'\)"):
        KNeighborsRegressor().fit(NUMBERS, TARGET).plot()
    with pytest.raises(InputError, match=r"kind='coefficient' is not an option; did you mean 'coefficients'"):
        plot_model(LogisticRegression().fit(X, Y), kind="coefficient")


def test_a_model_that_is_not_fitted_says_so():
    with pytest.raises(NotFittedError):
        LogisticRegression().plot()


def test_an_iterative_model_without_rows_draws_its_history():
    assert SVC().fit(X, Y).plot().get_title().startswith("SVC: 3 ")
    with pytest.raises(InputError, match=r"model.plot\(X, y\)"):  # one record is no history
        SVC().fit(X[:100], Y[:100]).plot()


def test_what_is_learnt_without_predicting_draws_its_history():
    nca = sixfold.NeighborhoodComponentsAnalysis(2).fit(X, Y)
    ax = nca.plot(X, Y)
    assert ax.get_title().startswith("NeighborhoodComponentsAnalysis: ")
    assert "slope of the objective" in ax.get_ylabel()
    assert "certified gap" in sixfold.LargeMarginNearestNeighbor().fit(X, Y).plot().get_ylabel()
    with pytest.raises(InputError, match="predicts nothing and has no history"):
        sixfold.NearestNeighbors().fit(X).plot()


def test_a_search_over_one_parameter_draws_a_curve_and_over_two_a_map():
    one = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 3, 5]}, cv=3).fit(X, Y)
    assert one.plot().get_title() == "3-fold cross-validation"
    two = GridSearchCV(SVC(), {"C": [0.1, 1.0, 10.0], "gamma": [0.01, 0.1, 1.0]}, cv=3).fit(X, Y)
    assert two.plot().get_title().startswith("Cross-validation over two parameters")
    assert two.plot(parameter="C").get_title() == "3-fold cross-validation"
    assert two.plot(x="gamma", y="C").get_xlabel() == "gamma of the kernel"
    names = GridSearchCV(
        KNeighborsClassifier(), {"n_neighbors": [1, 3, 5], "weights": ["uniform", "distance"]}, cv=3
    )
    assert names.fit(X, Y).plot(dark=True).get_title() == "3-fold cross-validation"


def test_parameters_that_were_never_tried_together_draw_a_curve_of_the_choice(drawn):
    grids = [{"max_depth": [1, 2, 3]}, {"min_samples_leaf": [30, 40, 50, 60]}]
    search = GridSearchCV(DecisionTreeClassifier(), grids, cv=3).fit(X, Y)
    assert "max_depth" in search.best_params_
    ax = drawn(search.plot())
    title = "3-fold cross-validation\nthe 3 of 7 settings that have max_depth"
    assert (ax.get_title(), ax.get_xlabel()) == (title, "greatest depth of the tree")
    with pytest.raises(InputError, match="No setting with a score has both"):
        plot.heat_map(search)
    default = GridSearchCV(DecisionTreeClassifier(), [{}, {"min_samples_leaf": [40, 50]}], cv=3).fit(X, Y)
    assert default.plot().get_xlabel() == "least rows of a leaf"


def test_the_public_module_lists_what_it_has():
    assert sorted(plot.__all__) == plot.__all__
    for name in plot.__all__:
        assert callable(getattr(plot, name))
        assert f"``{name}``" in plot.__doc__
        assert "ax" in getattr(plot, name).__doc__
    assert sixfold.plot is plot


def test_arrays_of_axes_are_refused_by_every_figure():
    model = LogisticRegression().fit(X, Y)
    with pytest.raises(InputError, match=r"for instance ax\[0\]"):
        model.plot(ax=np.array([None, None]))
