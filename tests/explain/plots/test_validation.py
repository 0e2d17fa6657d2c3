"""The cross-validation curve: its numbers are those of cv_results_, its choice that of the search."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn import linear_model, model_selection
from sklearn.datasets import load_diabetes, load_iris
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sixfold import (
    DecisionTreeClassifier,
    GridSearchCV,
    KNeighborsClassifier,
    KNeighborsRegressor,
    LogisticRegression,
)
from sixfold.errors import InputError
from sixfold.explain.plots.search_results import ValueAxis, read_search, value_text
from sixfold.explain.plots.style import DARK, LIGHT
from sixfold.plot import validation_curve

X, Y = load_iris(return_X_y=True)
NUMBERS = [1, 3, 5, 9, 15]


@pytest.fixture(scope="module", params=[GridSearchCV, model_selection.GridSearchCV], ids=["ours", "theirs"])
def search(request):
    return request.param(KNeighborsClassifier(), {"n_neighbors": NUMBERS}, cv=4, return_train_score=True).fit(
        X, Y
    )


def part(ax, gid):
    (found,) = [artist for artist in ax.get_children() if artist.get_gid() == gid]
    return found


def parts(ax, gid):
    return [artist for artist in ax.get_children() if artist.get_gid() == gid]


def test_points_line_and_bars_are_folds_mean_and_deviation(search, drawn):
    ax = drawn(validation_curve(search))
    results = search.cv_results_
    np.testing.assert_array_equal(part(ax, "mean").get_xdata(), NUMBERS)
    np.testing.assert_allclose(part(ax, "mean").get_ydata(), results["mean_test_score"])
    points = np.asarray(part(ax, "folds").get_offsets())
    assert points.shape == (4 * len(NUMBERS), 2)
    by_fold = points[:, 1].reshape(len(NUMBERS), 4).T
    np.testing.assert_allclose(by_fold, [results[f"split{fold}_test_score"] for fold in range(4)])
    (bars,) = ax.containers
    segments = bars.lines[2][0].get_segments()
    half = [(segment[1, 1] - segment[0, 1]) / 2 for segment in segments]
    np.testing.assert_allclose(half, results["std_test_score"])
    np.testing.assert_allclose(part(ax, "train").get_ydata(), results["mean_train_score"])


def test_the_choice_is_marked_and_named(search):
    ax = validation_curve(search)
    (x,), (y,) = part(ax, "chosen").get_data()
    assert x == search.best_params_["n_neighbors"]
    assert y == pytest.approx(search.best_score_)
    assert part(ax, "chosen").get_label().startswith(f"chosen: n_neighbors = {x:g}, ")


def test_labels_say_what_is_drawn(search):
    ax = validation_curve(search)
    assert ax.get_xlabel() == "number of neighbours, k"
    assert ax.get_ylabel() == "accuracy on held-out rows"
    assert ax.get_title() == "4-fold cross-validation"
    assert ax.get_xscale() == "linear"
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts[:3] == ["mean ± one standard deviation", "one fold", "mean on rows learnt from"]


@pytest.mark.parametrize(("ground", "theme"), [("white", LIGHT), ("#10131a", DARK)])
def test_it_is_drawn_on_the_users_axes_in_colours_that_suit_them(search, new_axes, drawn, ground, theme):
    ax = new_axes(ground)
    assert validation_curve(search, ax=ax) is ax
    drawn(ax)
    assert part(ax, "mean").get_color() == theme.series[0]
    assert len(ax.figure.axes) == 1


def test_one_standard_error_marks_both_and_the_line():
    search = GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2, 3, 4, None]}, cv=5, rule="1se").fit(
        X, Y
    )
    ax = validation_curve(search)
    best = int(np.argmax(search.cv_results_["mean_test_score"]))
    scores = np.array([search.cv_results_[f"split{fold}_test_score"][best] for fold in range(5)])
    line = scores.mean() - scores.std(ddof=1) / np.sqrt(5)
    np.testing.assert_allclose(part(ax, "one standard error").get_ydata(), line)
    assert part(ax, "best").get_ydata()[0] == pytest.approx(scores.mean())
    assert part(ax, "chosen").get_xdata()[0] == search.best_index_
    assert part(ax, "chosen").get_ydata()[0] >= line
    assert [text.get_text() for text in ax.get_xticklabels()] == ["1", "2", "3", "4", "None"]


def test_decades_have_a_logarithmic_axis():
    search = GridSearchCV(LogisticRegression(), {"C": [0.01, 0.1, 1.0, 10.0]}, cv=3).fit(X, Y)
    ax = validation_curve(search)
    assert ax.get_xscale() == "log"
    assert ax.get_xlabel() == "inverse strength of the penalty, C"


def test_a_loss_is_drawn_as_a_loss():
    table, y = load_diabetes(return_X_y=True)
    search = GridSearchCV(
        KNeighborsRegressor(), {"n_neighbors": [1, 5, 20]}, cv=3, scoring="neg_mean_squared_error"
    ).fit(table, y)
    ax = validation_curve(search)
    np.testing.assert_allclose(part(ax, "mean").get_ydata(), -search.cv_results_["mean_test_score"])
    assert ax.get_ylabel() == "mean squared error on held-out rows, less is better"
    assert part(ax, "chosen").get_ydata()[0] == min(part(ax, "mean").get_ydata())


@pytest.fixture(scope="module")
def two_parameters():
    grid = {"n_neighbors": NUMBERS, "weights": ["uniform", "distance"]}
    return GridSearchCV(KNeighborsClassifier(), grid, cv=3).fit(X, Y)


def test_other_parameters_are_lines_with_their_names(two_parameters):
    ax = validation_curve(two_parameters)
    assert len(parts(ax, "mean")) == 2
    assert sorted(text.get_text() for text in ax.texts) == ["weights = distance", "weights = uniform"]
    means, settings = two_parameters.cv_results_["mean_test_score"], two_parameters.cv_results_["params"]
    expected = {
        tuple(mean for mean, setting in zip(means, settings, strict=True) if setting["weights"] == weights)
        for weights in ("uniform", "distance")
    }
    assert {tuple(line.get_ydata()) for line in parts(ax, "mean")} == expected


def test_other_parameters_can_be_taken_at_their_best(two_parameters):
    ax = validation_curve(two_parameters, "n_neighbors", others="best")
    means = two_parameters.cv_results_["mean_test_score"]
    settings = two_parameters.cv_results_["params"]
    expected = [
        max(m for m, s in zip(means, settings, strict=True) if s["n_neighbors"] == k) for k in NUMBERS
    ]
    np.testing.assert_allclose(part(ax, "mean").get_ydata(), expected)
    assert ax.get_title() == "3-fold cross-validation, best over weights"


def test_many_other_settings_are_taken_at_their_best():
    grid = {"n_neighbors": NUMBERS, "weights": ["uniform", "distance"], "p": [1, 2, 3, 4]}
    search = GridSearchCV(KNeighborsClassifier(), grid, cv=3).fit(X, Y)
    assert len(parts(validation_curve(search), "mean")) == 1
    with pytest.raises(InputError, match=r"would draw 8 lines.*others='best'"):
        validation_curve(search, others="lines")


def test_names_without_an_order_are_not_joined(two_parameters):
    ax = validation_curve(two_parameters, "weights", others="best")
    assert part(ax, "mean").get_linestyle() == "None"
    assert [text.get_text() for text in ax.get_xticklabels()] == ["uniform", "distance"]


def test_lists_of_grids_skip_candidates_without_the_parameter():
    grids = [{"kneighborsclassifier__n_neighbors": [1, 3]}, {"kneighborsclassifier__p": [1]}]
    model = make_pipeline(StandardScaler(), KNeighborsClassifier())
    search = GridSearchCV(model, grids, cv=3).fit(X, Y)
    ax = validation_curve(search, "kneighborsclassifier__n_neighbors")
    assert sum(line.get_xdata().size for line in parts(ax, "mean")) == 2
    assert ax.get_xlabel() == "number of neighbours, k (kneighborsclassifier)"


def test_several_metrics_are_drawn_one_at_a_time(drawn):
    search = GridSearchCV(
        KNeighborsClassifier(),
        {"n_neighbors": NUMBERS},
        cv=3,
        scoring=["accuracy", "f1_macro"],
        refit="f1_macro",
    ).fit(X, Y)
    ruling, other = validation_curve(search), drawn(validation_curve(search, metric="accuracy"))
    np.testing.assert_allclose(part(ruling, "mean").get_ydata(), search.cv_results_["mean_test_f1_macro"])
    np.testing.assert_allclose(part(other, "mean").get_ydata(), search.cv_results_["mean_test_accuracy"])
    assert ruling.get_ylabel() == "f1 macro on held-out rows"
    with pytest.raises(InputError, match="metric='accurcy' is not an option; did you mean 'accuracy'"):
        validation_curve(search, metric="accurcy")


def test_settings_at_random_are_in_order():
    search = model_selection.RandomizedSearchCV(
        LogisticRegression(), {"C": loguniform(1e-3, 1e3)}, n_iter=8, cv=3, random_state=0
    ).fit(X, Y)
    ax = validation_curve(search)
    at = part(ax, "mean").get_xdata()
    assert (np.diff(at) > 0).all()
    assert sorted(search.cv_results_["param_C"]) == pytest.approx(at)


def test_fits_that_failed_are_left_out(drawn):
    search = model_selection.GridSearchCV(
        KNeighborsClassifier(), {"n_neighbors": [1, 3, -5]}, cv=3, error_score=np.nan
    )
    with pytest.warns(Warning, match="fits failed|non-finite"):
        search.fit(X, Y)
    ax = drawn(validation_curve(search))
    assert np.isfinite(part(ax, "mean").get_ydata()).sum() == 2
    assert part(ax, "chosen").get_xdata()[0] in (1, 3)


def test_a_search_in_which_everything_failed_says_so():
    search = model_selection.GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 2]}, cv=3).fit(X, Y)
    for name in search.cv_results_:
        if name.startswith(("mean_test", "std_test", "split")):
            search.cv_results_[name] = np.full(2, np.nan)
    with pytest.raises(InputError, match="Every fit of the search has failed"):
        validation_curve(search)


def test_many_folds_have_a_mean_and_its_standard_error():
    search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 5]}, cv=model_selection.LeaveOneOut())
    ax = validation_curve(search.fit(X[::3], Y[::3]))
    assert not parts(ax, "folds")
    segments = ax.containers[0].lines[2][0].get_segments()
    half = [(segment[1, 1] - segment[0, 1]) / 2 for segment in segments]
    np.testing.assert_allclose(half, search.cv_results_["std_test_score"] / np.sqrt(50))
    assert "mean ± one standard error" in [text.get_text() for text in ax.get_legend().get_texts()]


def test_a_setting_that_was_tried_again_counts_once():
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401

    search = model_selection.HalvingGridSearchCV(
        KNeighborsClassifier(), {"n_neighbors": [1, 3, 5, 7]}, cv=3, random_state=0
    ).fit(X, Y)
    ax = validation_curve(search)
    np.testing.assert_array_equal(part(ax, "mean").get_xdata(), [1, 3, 5, 7])
    results = search.cv_results_
    last = {s["n_neighbors"]: m for s, m in zip(results["params"], results["mean_test_score"], strict=True)}
    np.testing.assert_allclose(part(ax, "mean").get_ydata(), [last[k] for k in (1, 3, 5, 7)])
    assert part(ax, "chosen").get_ydata()[0] in part(ax, "mean").get_ydata()


def test_the_choice_is_marked_where_it_is_not_the_best_over_the_others():
    grid = {"n_neighbors": [1, 5, 9], "p": [1, 2], "weights": ["uniform", "distance"]}
    search = model_selection.GridSearchCV(KNeighborsClassifier(), grid, cv=3, refit=lambda results: 5).fit(
        X, Y
    )
    ax = validation_curve(search, "n_neighbors", others="best")
    assert part(ax, "chosen").get_ydata()[0] == search.cv_results_["mean_test_score"][5]
    assert part(ax, "chosen").get_xdata()[0] == search.best_params_["n_neighbors"]


def test_one_split_is_called_so():
    one = model_selection.ShuffleSplit(1, random_state=0)
    search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 5]}, cv=one).fit(X, Y)
    assert validation_curve(search).get_title() == "Validation on one part of the rows"


def test_the_scores_of_penalties_are_drawn_too(drawn):
    table, y = load_diabetes(return_X_y=True)
    lasso = linear_model.LassoCV(cv=4, alphas=np.logspace(-3, 0.5, 20)).fit(table, y)
    ax = drawn(validation_curve(lasso))
    np.testing.assert_allclose(part(ax, "mean").get_ydata(), lasso.mse_path_.mean(axis=1)[::-1])
    np.testing.assert_allclose(part(ax, "mean").get_xdata(), lasso.alphas_[::-1])
    assert part(ax, "chosen").get_xdata()[0] == pytest.approx(lasso.alpha_)
    assert ax.get_ylabel() == "mean squared error on held-out rows, less is better"
    net = linear_model.ElasticNetCV(cv=3, alphas=[0.01, 0.1, 1.0], l1_ratio=[0.3, 0.9]).fit(table, y)
    ax = drawn(validation_curve(net, "alpha"))
    lines = sorted(tuple(line.get_ydata()) for line in parts(ax, "mean"))
    np.testing.assert_allclose(lines, sorted(tuple(net.mse_path_[k].mean(axis=1)[::-1]) for k in range(2)))
    assert part(ax, "chosen").get_label().startswith("chosen: alpha = ")
    assert part(ax, "chosen").get_ydata()[0] == pytest.approx(net.mse_path_.mean(axis=2).min())


def test_rows_left_out_by_ridge_have_a_curve():
    table, y = load_diabetes(return_X_y=True)
    ridge = linear_model.RidgeCV(alphas=np.logspace(-3, 2, 9), store_cv_results=True).fit(table, y)
    ax = validation_curve(ridge)
    np.testing.assert_allclose(part(ax, "mean").get_ydata(), ridge.cv_results_.mean(axis=0))
    assert part(ax, "chosen").get_xdata()[0] == ridge.alpha_
    assert ax.get_title() == f"{len(y)}-fold cross-validation"


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("ratios", [(0.0,), (0.2, 0.8)])
def test_the_scores_of_logistic_regression_cv_are_drawn_too(legacy, ratios):
    folds, strengths = 3, np.array([0.1, 1.0, 10.0])
    scores = np.random.default_rng(0).random((folds, len(ratios), strengths.size))
    mean = scores.mean(axis=0)
    best = np.unravel_index(mean.argmax(), mean.shape)
    found = {"scores_": scores, "C_": strengths[best[1]], "l1_ratio_": ratios[best[0]]}
    if legacy:
        kept = np.swapaxes(scores, 1, 2) if len(ratios) > 1 else scores[:, 0]
        found = {
            "scores_": {"a": kept},
            "C_": np.array([found["C_"]]),
            "l1_ratio_": np.array([found["l1_ratio_"]]),
        }
    ax = validation_curve(
        SimpleNamespace(Cs_=strengths, l1_ratios_=np.array(ratios), scoring=None, **found), "C"
    )
    lines = sorted(tuple(line.get_ydata()) for line in parts(ax, "mean"))
    np.testing.assert_allclose(lines, sorted(map(tuple, mean)))
    np.testing.assert_allclose(part(ax, "chosen").get_data(), [[strengths[best[1]]], [mean.max()]])
    assert ax.get_ylabel() == "accuracy on held-out rows"


def test_a_scorer_with_its_sign_turned_is_a_loss():
    table, y = load_diabetes(return_X_y=True)
    loss = make_scorer(mean_absolute_error, greater_is_better=False)
    search = GridSearchCV(KNeighborsRegressor(), {"n_neighbors": [1, 5]}, cv=3, scoring=loss).fit(table, y)
    ax = validation_curve(search)
    assert ax.get_ylabel() == "mean absolute error on held-out rows, less is better"
    np.testing.assert_allclose(part(ax, "mean").get_ydata(), -search.cv_results_["mean_test_score"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            KNeighborsClassifier(),
            r"KNeighborsClassifier has no cv_results_: a fitted search is needed.*Call fit",
        ),
        ([1, 2], "list has no cv_results_"),
    ],
)
def test_what_is_no_fitted_search_is_refused(given, message):
    with pytest.raises(InputError, match=message):
        validation_curve(given)


def test_an_unknown_parameter_is_refused_with_the_nearest(search):
    with pytest.raises(
        InputError, match="parameter='n_neighbor' is not an option; did you mean 'n_neighbors'"
    ):
        validation_curve(search, "n_neighbor")
    with pytest.raises(InputError, match="others='line' is not an option"):
        validation_curve(search, others="line")


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([1, 2, 3], "linear"),
        ([0.001, 0.1, 10.0], "log"),
        ([0, 0.001, 0.1, 10.0, 100.0], "categories"),
        ([1, 2, None], "categories"),
        (["a", "b"], "categories"),
        ([True, False], "categories"),
        ([3], "categories"),
    ],
)
def test_values_have_the_axis_that_suits_them(values, scale):
    axis = ValueAxis.of(values)
    assert axis.scale == scale
    assert len({axis.place(value) for value in values}) == len(values)


def test_true_is_not_one():
    axis = ValueAxis.of([1, True, "1"])
    assert [axis.place(value) for value in (1, True, "1")] == [0, 1, 2]


def test_values_are_short_text():
    assert value_text(np.float64(1 / 3)) == "0.333"
    assert value_text(KNeighborsClassifier(3)).startswith("KNeighborsClassifier")
    assert len(value_text("x" * 100)) == 100  # names are the user's own
    assert len(value_text(list(range(100)))) <= 24


def test_a_scorer_that_is_a_function_has_its_name():
    def my_score(model, table, y):
        return 0.5

    search = model_selection.GridSearchCV(
        KNeighborsClassifier(), {"n_neighbors": [1, 2]}, cv=2, scoring=my_score
    )
    assert read_search(search.fit(X, Y)).label == "my score"
