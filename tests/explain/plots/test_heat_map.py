"""Cross-validation over two parameters."""

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn import model_selection
from sklearn.datasets import load_iris

from sixfold import SVC, GridSearchCV, KNeighborsClassifier
from sixfold.errors import InputError
from sixfold.plot import heat_map

X, Y = load_iris(return_X_y=True)
GRID = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.01, 0.1, 1.0]}


@pytest.fixture(scope="module", params=[GridSearchCV, model_selection.GridSearchCV], ids=["ours", "theirs"])
def search(request):
    return request.param(SVC(), GRID, cv=3).fit(X, Y)


def table_of(search, x="C", y="gamma"):
    results = search.cv_results_
    scores = {(s[x], s[y]): m for s, m in zip(results["params"], results["mean_test_score"], strict=True)}
    return np.array([[scores[a, b] for a in GRID[x]] for b in GRID[y]])


def test_cells_are_the_means(search, drawn):
    ax = drawn(heat_map(search, "C", "gamma"))
    np.testing.assert_allclose(ax.images[0].get_array(), table_of(search))
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0.1", "1", "10", "100"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0.01", "0.1", "1"]
    assert ax.get_xlabel() == "inverse strength of the penalty, C"
    assert ax.get_ylabel() == "gamma of the kernel"
    assert ax.get_ylim()[0] < ax.get_ylim()[1]  # the least at the bottom


def test_values_are_written_into_cells_with_contrast(search):
    ax = heat_map(search, "C", "gamma")
    written = {(text.get_position()[1], text.get_position()[0]): text.get_text() for text in ax.texts}
    table = table_of(search)
    assert len(written) == table.size
    for (row, column), text in written.items():
        assert float(text) == pytest.approx(table[row, column], abs=0.001)
    assert {text.get_color() for text in ax.texts} == {"#000000", "#ffffff"}


def test_values_without_room_are_left_out(search, new_axes):
    ax = new_axes()
    ax.figure.set_size_inches(1.5, 1.0)
    assert not heat_map(search, ax=ax).texts


def test_the_choice_is_framed(search):
    ax = heat_map(search, "C", "gamma")
    frames = [patch for patch in ax.patches if patch.get_gid() == "chosen"]
    assert len(frames) == 2  # white on black
    best = search.best_params_
    at = GRID["C"].index(best["C"]) - 0.5, GRID["gamma"].index(best["gamma"]) - 0.5
    assert all(frame.get_xy() == at for frame in frames)
    assert f"C = {best['C']:g}" in ax.get_title()


def test_the_colour_bar_says_what_colours_mean(search):
    ax = heat_map(search)
    bar = ax.images[0].colorbar.ax
    assert bar.get_ylabel() == "accuracy, mean of 3 folds"
    assert ax.images[0].get_cmap().name == "cividis"


@pytest.mark.parametrize("ground", ["white", "black"])
def test_it_is_drawn_on_the_users_axes(search, new_axes, drawn, ground):
    ax = new_axes(ground)
    assert heat_map(search, ax=ax) is ax
    drawn(ax)


def test_further_parameters_are_taken_at_their_best():
    grid = {"n_neighbors": [1, 5, 9], "p": [1, 2], "weights": ["uniform", "distance"]}
    search = GridSearchCV(KNeighborsClassifier(), grid, cv=3).fit(X, Y)
    ax = heat_map(search, "n_neighbors", "p")
    results = search.cv_results_
    for i, p in enumerate(grid["p"]):
        for j, k in enumerate(grid["n_neighbors"]):
            expected = max(
                mean
                for setting, mean in zip(results["params"], results["mean_test_score"], strict=True)
                if setting["p"] == p and setting["n_neighbors"] == k
            )
            assert ax.images[0].get_array()[i, j] == pytest.approx(expected)
    assert "best over weights" in ax.get_title()


def test_settings_at_random_are_points(drawn):
    spread = {"C": loguniform(1e-1, 1e3), "gamma": loguniform(1e-3, 1)}
    search = model_selection.RandomizedSearchCV(SVC(), spread, n_iter=9, cv=3, random_state=0).fit(X, Y)
    ax = drawn(heat_map(search, "C", "gamma"))
    (points,) = ax.collections
    np.testing.assert_allclose(
        points.get_offsets(),
        np.column_stack([search.cv_results_["param_C"], search.cv_results_["param_gamma"]]).astype(float),
    )
    np.testing.assert_allclose(points.get_array(), search.cv_results_["mean_test_score"])
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    ring = next(line for line in ax.lines if line.get_gid() == "chosen")
    assert ring.get_xdata()[0] == search.best_params_["C"]


def test_a_loss_is_lighter_where_it_is_less():
    search = GridSearchCV(SVC(probability=False), GRID, cv=3, scoring="neg_mean_squared_error").fit(X, Y)
    ax = heat_map(search, "C", "gamma")
    np.testing.assert_allclose(ax.images[0].get_array(), -table_of(search))
    assert ax.images[0].get_cmap().name == "cividis_r"


def test_a_choice_without_one_of_the_parameters_is_named():
    grids = [
        {"kernel": ["linear"], "C": [1.0]},
        {"kernel": ["rbf"], "C": [1e-3, 1e-2], "gamma": [1e-3, 1e-2]},
    ]
    search = GridSearchCV(SVC(), grids, cv=3).fit(X, Y)
    ax = heat_map(search, "C", "gamma")
    assert ax.get_title().endswith("the choice is none of these: C = 1, kernel = linear")
    assert not [patch for patch in ax.patches if patch.get_gid() == "chosen"]


def test_one_parameter_is_refused():
    search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 2, 3]}, cv=3).fit(X, Y)
    with pytest.raises(InputError, match=r"n_neighbors alone, and a heat map needs two.*validation_curve"):
        heat_map(search)


def test_wrong_parameters_are_refused(search):
    with pytest.raises(InputError, match="y='gama' is not an option; did you mean 'gamma'"):
        heat_map(search, "C", "gama")
    with pytest.raises(InputError, match="x and y are both 'C'"):
        heat_map(search, "C", "C")
