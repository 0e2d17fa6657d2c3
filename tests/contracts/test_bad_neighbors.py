"""What nearest neighbours cannot be found for is refused with a sentence that says why and what to do."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from contracts.certified import answers
from sixfold import KNeighborsRegressor
from sixfold.errors import InputError
from sixfold.geometry.distances import DISTANCES
from sixfold.learners.registry import LEARNERS

X = np.random.default_rng(0).normal(size=(10, 3))
Y = np.arange(10) % 2

every_neighbour_learner = pytest.mark.parametrize(
    "learner", [one for one in LEARNERS if one.hypothesis == "neighbours"], ids=lambda learner: learner.name
)


every_neighbour_predictor = pytest.mark.parametrize(
    "learner",
    [one for one in LEARNERS if one.hypothesis == "neighbours" and one.task != "search"],
    ids=lambda learner: learner.name,
)


def refuses(sentence):
    """Expect this sentence, wherever it begins."""
    return pytest.raises(InputError, match=re.escape(sentence))


def far_from_row_two(value):
    """Return a distance that is this value from the row in which the first column is X[2, 0]."""
    return lambda q, x: value if x[0] == X[2, 0] else 1.0


@pytest.mark.parametrize(
    "learner",
    [one for one in LEARNERS if one.name.startswith("KNeighbors")],
    ids=lambda learner: learner.name,
)
@pytest.mark.parametrize("weight", [None, np.r_[np.zeros(4), np.ones(6)]], ids=["all count", "six count"])
def test_more_neighbours_than_rows_that_count_are_refused(learner, weight):
    rows = 10 if weight is None else 6
    model = learner.make(n_neighbors=rows).fit(X, Y, weight)
    assert model.kneighbors(X)[1].shape == (10, rows)
    with refuses(f"n_neighbors = {rows + 1}, n_samples_fit = {rows}, n_samples = 10: a row has at"):
        model.kneighbors(X, rows + 1)
    with refuses(f"a row has at most {rows - 1} neighbours other than itself, which are training rows of"):
        model.predict(None)


@every_neighbour_learner
def test_no_neighbours_are_refused(learner):
    with refuses("n_neighbors=0 is out of range: a whole number that is at least 1 is needed."):
        learner.make().fit(X, Y).kneighbors(X, 0)


@every_neighbour_learner
@pytest.mark.parametrize("value", [np.nan, -1.0, None, "far"])
def test_what_is_no_distance_is_refused_with_the_pair(learner, value):
    model = learner.make(metric=far_from_row_two(value)).fit(X, Y)
    with refuses(f"returned {value!r} for the query [0.1257"):
        answers(model, X)


@every_neighbour_predictor
@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        (lambda d: d[:, :2], "weights returned an array of shape (10, 2) for distances of shape (10, "),
        (lambda d: np.where(d == d[7, 1], -1.0, 1.0), "weights returned -1.0 for the distance"),
        (lambda d: np.where(d == d[7, 1], np.nan, 1.0), "of query 7, counted from 0. Weights are finite"),
        (lambda d: (d < d[7].min()).astype(float), "weights returned 0 for every neighbour of query"),
    ],
    ids=["shape", "negative", "nan", "all zero"],
)
def test_weights_that_cannot_be_counted_with_are_refused(learner, weights, sentence):
    everyone = {"radius": 100.0} if learner.name.startswith("Radius") else {}
    model = learner.make(weights=weights, **everyone).fit(X, Y)
    with refuses(sentence):
        model.predict(X + 0.1)


@pytest.mark.parametrize("metric", [name for name, (kind, _) in DISTANCES.items() if not kind.takes_missing])
@every_neighbour_learner
def test_a_gap_is_named_with_the_distances_that_take_one(learner, metric):
    distances = metric == "precomputed"
    table = np.abs(X[:, :1] - X[:, 0]) if distances else X.copy()
    table[4, 1] = np.nan
    with refuses("Input X contains NaN: in row 4 of column 'x1' (number 1), counted from 0.") as caught:
        learner.make(metric=metric).fit(table, Y)
    assert "metric='nan_euclidean' and metric='gower' take missing values" in str(caught.value)


@every_neighbour_learner
def test_a_column_of_text_is_named_with_the_distance_that_takes_it(learner):
    table = pd.DataFrame({"age": X[:, 0], "town": ["Bonn", "Ulm"] * 5})
    with refuses("column 'town' (number 1, counted from 0) holds 'Bonn' in row 0.") as caught:
        learner.make().fit(table, Y)
    assert str(caught.value).endswith("metric='gower' takes columns of numbers and of categories.")
    assert learner.make(metric="gower").fit(table, Y).kneighbors(table)[1].shape == (10, 5)


@pytest.mark.parametrize("metric", [name for name, (kind, _) in DISTANCES.items() if not kind.takes_sparse])
@every_neighbour_learner
def test_a_sparse_table_is_refused_by_distances_that_are_not(learner, metric):
    with pytest.raises(InputError, match=r"sparse.*\. Pass"):
        learner.make(metric=metric).fit(sp.csr_array(X), Y)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"metric_params": {"q": 3}}, "metric='minkowski' has no parameter 'q'; it has 'p' and 'w'."),
        (
            {"metric": "cosine", "metric_params": {"p": 3}},
            "metric='cosine' has no parameter 'p'; it has",
        ),
        ({"metric": "precomputed"}, "with a square matrix for fit, but X has shape (10, 3)."),
    ],
    ids=["unknown", "none", "not square"],
)
def test_parameters_that_the_distance_does_not_have_are_named(parameters, sentence):
    with refuses(sentence):
        KNeighborsRegressor(**parameters).fit(X, Y)


def test_a_negative_precomputed_distance_is_named():
    distances = np.abs(X[:, :1] - X[:, 0])
    distances[3, 7] = -2.0
    with refuses("precomputed distance matrix: -2.0 in row 3, column 7. Distances are 0 or more."):
        KNeighborsRegressor(metric="precomputed").fit(distances, Y)


@every_neighbour_learner
def test_rows_cannot_be_added_to_distances(learner):
    distances = np.abs(X[:, :1] - X[:, 0])
    with refuses("partial_fit adds rows, whose distances from the others metric='precomputed' does not"):
        learner.make(metric="precomputed").fit(distances, Y).partial_fit(distances, Y)
