"""Neighbours within a radius: votes, averages and rows without neighbours, as scikit-learn has them."""

import copy
import dataclasses
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.model_selection
import sklearn.neighbors
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from sixfold import GridSearchCV, KNeighborsClassifier, RadiusNeighborsClassifier, RadiusNeighborsRegressor
from sixfold.errors import CertificateError, InputError, SixfoldWarning, TimeLimitReached
from sixfold.learners.neighbors import stored_rows

RNG = np.random.default_rng(0)
X, Q = RNG.normal(size=(200, 3)), RNG.normal(size=(80, 3))
LABELS = np.array(["ash", "birch", "oak"])[
    (X[:, 0] + 0.3 * RNG.normal(size=200) > 0).astype(int) + (X[:, 1] > 1)
]
NUMBERS = X @ [1.0, -2.0, 0.5] + RNG.normal(size=200)
LINE, ON_LINE = np.array([[0.0], [1.0], [2.0], [4.0], [8.0]]), list("abaab")

METRICS = [
    ("euclidean", {}),
    ("manhattan", {}),
    ("chebyshev", {}),
    ("minkowski", {"p": 3}),
    ("cosine", {}),
    ("seuclidean", {"V": X.var(axis=0)}),
]
every_metric = pytest.mark.parametrize(("metric", "options"), METRICS, ids=[name for name, _ in METRICS])
every_weight = pytest.mark.parametrize("weights", ["uniform", "distance", lambda d: 1.0 / (1.0 + d)])


def both(name, **parameters):
    """Return our learner and scikit-learn's, with the same parameters."""
    ours = {"RadiusNeighborsClassifier": RadiusNeighborsClassifier}.get(name, RadiusNeighborsRegressor)
    return ours(**parameters), getattr(sklearn.neighbors, name)(**parameters)


def radius_of(metric):
    return 0.2 if metric == "cosine" else 0.9


def quietly(ask, *rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ask(*rows)


# -- beside scikit-learn -------------------------------------------------------------------------------------


@every_metric
@every_weight
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_shares_of_votes_are_scikit_learns(metric, options, weights, kind):
    if metric == "seuclidean" and kind is sp.csr_array:
        return  # which takes no sparse rows
    parameters = {"radius": radius_of(metric), "metric": metric, "weights": weights, "outlier_label": "oak"}
    p = {"p": options["p"]} if "p" in options else {"metric_params": options or None}
    ours, theirs = both("RadiusNeighborsClassifier", **parameters, **p)
    shares = ours.fit(kind(X), LABELS).predict_proba(kind(Q))
    np.testing.assert_allclose(shares, theirs.fit(X, LABELS).predict_proba(Q), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(ours.predict(kind(Q)), ours.classes_[shares.argmax(axis=1)])


@every_metric
@every_weight
def test_averages_are_scikit_learns_for_one_target_and_several(metric, options, weights):
    p = {"p": options["p"]} if "p" in options else {"metric_params": options or None}
    for y in (NUMBERS, np.column_stack([NUMBERS, X])):
        ours, theirs = both(
            "RadiusNeighborsRegressor", radius=radius_of(metric), metric=metric, weights=weights, **p
        )
        found, expected = (quietly(model.fit(X, y).predict, Q) for model in (ours, theirs))
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
        assert found.shape == expected.shape


@pytest.mark.parametrize("algorithm", ["auto", "brute", "kd_tree", "ball_tree"])
def test_distances_that_are_given_answer_as_those_that_are_computed(algorithm):
    apart, asked = np.abs(X[:, :1] - X[:, 0]), np.abs(Q[:, :1] - X[:, 0])
    by_rows = RadiusNeighborsRegressor(0.05, algorithm=algorithm).fit(X[:, :1], NUMBERS)
    given = RadiusNeighborsRegressor(0.05, metric="precomputed").fit(apart, NUMBERS)
    np.testing.assert_array_equal(quietly(by_rows.predict, Q[:, :1]), quietly(given.predict, asked))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), min_size=1, max_size=12),
    st.sampled_from([0.0, 1.0, np.sqrt(2.0), 2.0, 50.0]),
    st.data(),
)
def test_on_a_grid_the_boundary_counts_and_ties_go_to_the_nearer_class(points, radius, data):
    rows = np.array(points, dtype=float)
    y = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(points), max_size=len(points))))
    weight = np.array(
        data.draw(st.lists(st.integers(0, 2), min_size=len(points), max_size=len(points))), float
    )
    weight[np.unique(y, return_index=True)[1]] = 1.0  # a class without weight is refused
    model = RadiusNeighborsClassifier(radius, outlier_label=7).fit(rows, y, weight)
    for query, answer in zip(rows, model.predict(rows), strict=True):
        far = np.sqrt(((rows - query) ** 2).sum(axis=1))
        near = (far <= radius) & (weight > 0)
        votes = {c: (-weight[near & (y == c)].sum(), far[near & (y == c)].sum(), c) for c in set(y[near])}
        assert answer == (min(votes, key=votes.get) if votes else 7)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_a_weight_of_two_is_a_row_twice_and_one_of_zero_is_no_row(kind):
    weight = RNG.integers(0, 3, size=200)
    repeated = np.repeat(np.arange(200), weight)
    for model, y in [
        (RadiusNeighborsClassifier(1.5, weights="distance", outlier_label="most_frequent"), LABELS),
        (RadiusNeighborsRegressor(1.5), NUMBERS),
    ]:
        weighted = clone(model).fit(kind(X), y, weight)
        twice = clone(model).fit(kind(X[repeated]), y[repeated])
        ask = "predict_proba" if hasattr(model, "predict_proba") else "predict"
        found, expected = (quietly(getattr(one, ask), kind(Q)) for one in (weighted, twice))
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_weights_of_classes_are_weights_of_their_rows():
    weights = {"ash": 3.0, "birch": 1.0, "oak": 0.5}
    by_class = RadiusNeighborsClassifier(1.0, class_weight=weights, outlier_label="ash").fit(X, LABELS)
    by_row = RadiusNeighborsClassifier(1.0, outlier_label="ash").fit(
        X, LABELS, [weights[one] for one in LABELS]
    )
    np.testing.assert_allclose(by_class.predict_proba(Q), by_row.predict_proba(Q), rtol=1e-14)


def test_one_row_and_equal_rows():
    assert RadiusNeighborsRegressor().fit([[2.0]], [5.0]).predict([[3.0]]).tolist() == [5.0]
    model = RadiusNeighborsClassifier(0.0).fit(np.ones((6, 2)), list("aabbbb"))
    assert model.predict([[1.0, 1.0]]).tolist() == ["b"]
    assert model.loo_predict().tolist() == ["b"] * 6


def test_training_rows_are_predicted_from_the_others():
    model = RadiusNeighborsRegressor(0.8).fit(X, NUMBERS)
    answers = quietly(model.loo_predict)
    for i in range(0, 200, 23):
        other = np.arange(200) != i
        alone = RadiusNeighborsRegressor(0.8).fit(X[other], NUMBERS[other])
        np.testing.assert_allclose(answers[i], quietly(alone.predict, X[i : i + 1])[0], rtol=1e-13)


def test_small_chunks_give_the_same_answers(monkeypatch):
    model = RadiusNeighborsClassifier(0.7, outlier_label="none").fit(X, LABELS)
    whole, rows = model.predict(Q), model.radius_neighbors(Q)[1]
    monkeypatch.setattr(stored_rows, "CHUNK_PAIRS", 300)  # one query, then as many as find 300 rows
    sizes = []
    model._map_chunks_within(*model._check_radius_queries(Q), lambda chunk, _: sizes.append(chunk))
    assert sizes[0] == slice(0, 1)
    assert sizes[1] == slice(1, 5)
    assert sizes[-1].stop == 80
    np.testing.assert_array_equal(model.predict(Q), whole)
    assert all(map(np.array_equal, model.radius_neighbors(Q)[1], rows))


# -- rows without neighbours -------------------------------------------------------------------------------


def test_a_row_without_neighbours_is_refused_unless_there_is_a_label_for_it():
    model = RadiusNeighborsClassifier().fit(LINE, ON_LINE)
    assert model.outlier_label_ is None
    with pytest.raises(InputError, match=r"No neighbors found for test samples \[1, 3\], counted from 0: no"):
        model.predict([[0.0], [20.0], [1.0], [30.0]])
    with pytest.raises(InputError, match=r"\[0, 1, 2, 3, 4, 5, 6, 7, 8, 9\] and others.*outlier_label"):
        model.predict_proba(np.full((20, 1), 50.0))


@pytest.mark.parametrize(
    ("given", "label", "share"),
    [("b", "b", [0, 1]), ("most_frequent", "a", [1, 0]), (["b"], "b", [0, 1])],
)
def test_a_row_without_neighbours_gets_its_label_and_the_share_one(given, label, share):
    model = RadiusNeighborsClassifier(outlier_label=given).fit(LINE, ON_LINE)
    assert model.outlier_label_ == [label]
    assert model.predict([[0.0], [20.0]]).tolist() == ["a", label]
    np.testing.assert_array_equal(model.predict_proba([[20.0]]), [share])


def test_a_label_that_is_no_class_has_no_share_and_that_is_said():
    model = RadiusNeighborsClassifier(outlier_label="nothing near").fit(LINE, ON_LINE)
    assert model.predict([[0.0], [20.0]]).tolist() == ["a", "nothing near"]
    with pytest.warns(SixfoldWarning, match="Outlier label 'nothing near' is not in training classes"):
        shares = model.predict_proba([[0.0], [20.0]])
    np.testing.assert_allclose(shares, [[0.5, 0.5], [0.0, 0.0]], rtol=1e-15)


def test_the_most_frequent_label_counts_weights_and_rows_that_are_added():
    model = RadiusNeighborsClassifier(outlier_label="most_frequent").fit(LINE, ON_LINE, [1, 5, 1, 1, 0])
    assert model.predict([[99.0]]).tolist() == ["b"]
    model.partial_fit([[11.0]], ["c"], sample_weight=[9.0])
    assert model.predict([[99.0], [11.5]]).tolist() == ["c", "c"]


def test_several_columns_have_a_label_each_or_one_for_all():
    y = np.column_stack([[0, 1, 0, 0, 1], [5, 5, 6, 6, 6]])
    rows = [[0.0], [20.0]]
    for label, expected in [([1, 5], [1, 5]), (1, [1, 1]), ("most_frequent", [0, 6])]:
        ours, theirs = both("RadiusNeighborsClassifier", outlier_label=label)
        ours.fit(LINE, y), theirs.fit(LINE, y)
        assert ours.outlier_label_ == theirs.outlier_label_ == expected
        assert quietly(theirs.predict, rows)[1].tolist() == ours.predict(rows)[1].tolist() == expected
        shares = zip(quietly(ours.predict_proba, rows), quietly(theirs.predict_proba, rows), strict=True)
        for mine, other in shares:
            np.testing.assert_allclose(mine, other, atol=1e-15)


@pytest.mark.parametrize(
    ("y", "label", "sentence"),
    [
        (ON_LINE, 3, "The dtype of outlier_label 3 is inconsistent with classes"),
        ([0, 1, 0, 0, 1], "a", "The dtype of outlier_label 'a' is inconsistent with classes"),
        ([0, 1, 0, 0, 1], 0.5, "The dtype of outlier_label 0.5 is inconsistent"),
        ([0, 1, 0, 0, 1], [[5]], "is supposed to be a scalar, got"),
        (
            [0, 1, 0, 0, 1],
            [1, 2],
            r"The length of outlier_label=\[1, 2\] is inconsistent with the output: y has 1",
        ),
    ],
)
def test_a_label_of_another_kind_is_refused(y, label, sentence):
    with pytest.raises(InputError, match=sentence):
        RadiusNeighborsClassifier(outlier_label=label).fit(LINE, y)


def test_numbers_without_neighbours_are_not_known_and_that_is_said():
    model = RadiusNeighborsRegressor(1.0).fit(LINE, [1, 2, 3, 4, 5])
    with pytest.warns(UserWarning, match=r"One or more samples have no neighbors.* Rows \[1\], counted"):
        answers = model.predict([[0.0], [20.0]])
    np.testing.assert_array_equal(answers, [1.5, np.nan])


# -- certificates, explanations, limits --------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine", "seuclidean", "mahalanobis", "gower"])
def test_the_rows_within_the_radius_are_verified(metric):
    y = pd.Series(LABELS)
    model = RadiusNeighborsClassifier(0.4, metric=metric, outlier_label="oak").fit(X, y)
    model.predict(Q)
    found = model.certificate_.verify(X, y)
    assert found.kind == "exact search"
    assert "distance of the rows within the radius" in found.legend
    assert model.certificate_.details["queries"] == 80


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda ends, far, rows: (ends - (ends > 0), far[1:], rows[1:]), "is missing"),
        (lambda ends, far, rows: (ends, far + 1.0, rows), "is not at distance"),
    ],
    ids=["one less", "farther"],
)
def test_a_search_that_errs_is_found_out(monkeypatch, change, sentence):
    model = RadiusNeighborsRegressor(1.0).fit(LINE[:4], [1, 2, 3, 4])
    model.certificate_.verify(LINE[:4], [1, 2, 3, 4])
    right = stored_rows.StoredRows.within

    def wrong(*given):
        found = right(*given)
        ends, far, rows = change(found.ends, found.distances, found.rows)
        return dataclasses.replace(found, ends=ends, distances=far, rows=rows)

    monkeypatch.setattr(stored_rows.StoredRows, "within", wrong)
    with pytest.raises(CertificateError, match=f"Of the neighbours within 1 of row 0, .*{sentence}"):
        model.certificate_.verify(LINE[:4], [1, 2, 3, 4])


def test_a_radius_that_leaves_out_its_boundary_is_found_out(monkeypatch):
    model = RadiusNeighborsRegressor(1.0).fit(LINE, [1, 2, 3, 4, 5])
    right = stored_rows.StoredRows.within
    monkeypatch.setattr(
        stored_rows.StoredRows,
        "within",
        lambda self, q, chunk, r, b: right(self, q, chunk, r * (1 - 1e-15), b),
    )
    with pytest.raises(CertificateError, match="within 1 of row 0, row 1 is missing, at distance"):
        model.certificate_.verify(LINE, [1, 2, 3, 4, 5])


def test_an_explanation_lists_those_who_vote():
    model = RadiusNeighborsClassifier(2.0).fit(LINE, ON_LINE)
    explained = model.explain([1.0])
    assert explained.rows == [1, 0, 2]
    assert (explained.answer, explained.runner_up) == ("a", "b")
    assert explained.changes_at == (2, "b")
    same = KNeighborsClassifier(3).fit(LINE, ON_LINE).explain([1.0])
    assert str(explained) == str(same)
    average = RadiusNeighborsRegressor(2.0).fit(LINE, [1, 2, 3, 4, 5]).explain([1.0])
    assert average.answer == 2.0
    with pytest.raises(InputError, match="No training row is within radius=2 of this row"):
        model.explain([40.0])


def test_a_query_ends_at_its_time_limit():
    model = RadiusNeighborsClassifier(metric=lambda q, x: 1.0, time_limit=0.05).fit(X, LABELS)
    with pytest.raises(TimeLimitReached, match=r"The query was stopped by time_limit=0\.05 s before"):
        model.predict(np.tile(Q, (40, 1)))


def test_a_failed_fit_leaves_the_model_as_it_was():
    model = RadiusNeighborsClassifier(outlier_label="b").fit(LINE, ON_LINE)
    before = copy.copy(model.__dict__)
    with pytest.raises(InputError, match="outlier_label"):
        model.fit(LINE, [0, 1, 0, 0, 1])
    assert model.__dict__.keys() == before.keys()
    assert model.predict([[20.0]]).tolist() == ["b"]


# -- searches ----------------------------------------------------------------------------------------------


def test_a_grid_search_gives_what_scikit_learns_search_gives():
    model, grid = (
        RadiusNeighborsClassifier(outlier_label="oak"),
        {"radius": [0.3, 1.0], "weights": ["uniform", "distance"]},
    )
    ours = GridSearchCV(model, grid, cv=3).fit(X, LABELS)
    theirs = sklearn.model_selection.GridSearchCV(model, grid, cv=3).fit(X, LABELS)
    np.testing.assert_array_equal(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"])
    assert ours.best_params_ == theirs.best_params_
    assert len(set(ours.cv_results_["mean_test_score"])) > 1
