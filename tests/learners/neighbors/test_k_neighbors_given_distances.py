"""Distances that the user brings: a sparse matrix of those that are known, an object that computes them."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import DistanceMetric

from sixfold import KNeighborsClassifier, KNeighborsRegressor
from sixfold.errors import InputError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
QUERIES = RNG.normal(size=(7, 3))
Y = RNG.normal(size=30)
LABELS = np.where(Y > 0, "up", "down")


def graph(queries, known):
    """Return a CSR matrix of the distances of each query from its nearest rows, itself among them."""
    return KNeighborsRegressor(known).fit(X, Y).kneighbors_graph(queries, mode="distance")


def precomputed(model, distances, targets):
    return model(3, metric="precomputed", weights="distance").fit(distances, targets)


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array, sp.csc_array, sp.coo_array, sp.lil_array])
@pytest.mark.parametrize(("learner", "y"), [(KNeighborsClassifier, LABELS), (KNeighborsRegressor, Y)])
def test_some_distances_of_each_row_are_enough(learner, y, kind):
    plain = learner(3, weights="distance").fit(X, y)
    model = precomputed(learner, kind(graph(X, 4)), y)
    for queries, distances in [(QUERIES, kind(graph(QUERIES, 4))), (None, None)]:
        np.testing.assert_array_equal(model.kneighbors(distances)[1], plain.kneighbors(queries)[1])
        np.testing.assert_array_equal(model.kneighbors(distances)[0], plain.kneighbors(queries)[0])
        np.testing.assert_array_equal(model.predict(distances), plain.predict(queries))
    model.certificate_.verify(kind(graph(X, 4)), y)


def test_a_zero_that_is_there_is_a_distance_and_one_that_is_not_is_unknown():
    distances = sp.csr_array((np.array([0.0, 2.0]), [2, 1], [0, 2]), shape=(1, 3))
    model = KNeighborsRegressor(1, metric="precomputed").fit(1.0 - np.eye(3), [5.0, 6.0, 7.0])
    assert model.kneighbors(distances, 2)[1].tolist() == [[2, 1]]
    assert model.predict(distances).tolist() == [7.0]
    for radius in (9.0, np.finfo(float).max, np.inf):
        assert [rows.tolist() for rows in model.radius_neighbors(distances, radius)[1]] == [[1, 2]]


def test_rows_of_weight_zero_are_no_neighbours_in_a_sparse_matrix_either():
    weight = np.ones(30)
    weight[::4] = 0.0
    plain = KNeighborsRegressor(3).fit(X, Y, weight)
    model = KNeighborsRegressor(3, metric="precomputed").fit(graph(X, 20), Y, weight)
    np.testing.assert_array_equal(model.predict(graph(QUERIES, 20)), plain.predict(QUERIES))


def test_too_few_distances_are_refused_with_the_row():
    distances = graph(QUERIES, 4).tolil()
    nearest = graph(QUERIES, 4)[5].indices
    distances[5, nearest[:2]] = 0.0  # a LIL matrix drops what is set to 0
    model = precomputed(KNeighborsRegressor, graph(X, 4), Y)
    sentence = "3 neighbors per samples are required, but some samples have only 2: of row 5, counted from 0"
    with pytest.raises(InputError, match=sentence):
        model.predict(distances)
    with pytest.raises(InputError, match=r"4 neighbors per samples .* have only 3: of row 0,"):
        model.kneighbors(None, 4)


def test_a_certificate_speaks_of_the_distances_that_are_known():
    few = graph(X, 2)  # 1 beside itself, of 3 asked for
    model = precomputed(KNeighborsRegressor, few, Y)
    assert model.certificate_.verify(few, Y).scale > 0


@pytest.mark.parametrize("kind", [sp.bsr_array, sp.dok_array])
def test_formats_without_zeros_are_refused(kind):
    model = precomputed(KNeighborsRegressor, graph(X, 4), Y)
    with pytest.raises(InputError, match="not supported due to its handling of explicit zeros"):
        model.predict(kind(graph(QUERIES, 4)))


def test_a_negative_distance_in_a_sparse_matrix_is_named():
    distances = graph(X, 4).copy()
    distances[3, 3] = -1.0
    with pytest.raises(InputError, match=r"precomputed distance matrix: -1\.0 in row 3, column 3\."):
        precomputed(KNeighborsRegressor, distances, Y)


@pytest.mark.parametrize("kind", [sp.dok_matrix, sp.dok_array])
def test_a_dictionary_of_keys_is_a_table(kind):
    plain = KNeighborsRegressor().fit(X, Y)
    np.testing.assert_array_equal(plain.predict(kind(QUERIES)), plain.predict(QUERIES))


@pytest.mark.parametrize("name", ["manhattan", "canberra"])
def test_a_distance_metric_of_scikit_learn_is_the_distance_of_its_name(name):
    model = KNeighborsRegressor(metric=DistanceMetric.get_metric(name)).fit(X, Y)
    distances, rows = KNeighborsRegressor(metric=name).fit(X, Y).kneighbors(QUERIES)
    np.testing.assert_allclose(model.kneighbors(QUERIES)[0], distances, rtol=1e-12)
    np.testing.assert_array_equal(model.kneighbors(QUERIES)[1], rows)
    model.certificate_.verify(X, Y)


def test_parameters_of_a_distance_metric_are_its_own():
    model = KNeighborsRegressor(metric=DistanceMetric.get_metric("euclidean"), metric_params={"p": 3})
    with pytest.raises(InputError, match="has its parameters already"):
        model.fit(X, Y)


def test_a_row_that_shares_nothing_with_others_leaves_the_certificate_a_number():
    table = X.copy()
    table[0, 1:], table[1:20, 0] = np.nan, np.nan
    model = KNeighborsRegressor(12, metric="nan_euclidean").fit(table, Y)  # row 0 can be compared with 10
    assert np.isinf(model.kneighbors()[0]).sum() == 2
    assert np.isfinite(model.certificate_.objective)
    model.certificate_.verify(table, Y)


def test_a_copy_keeps_its_rows_when_the_other_learns_more():
    model = KNeighborsRegressor().fit(X, Y)
    before = model.predict(QUERIES)
    other = copy.copy(model).partial_fit(QUERIES, np.zeros(7))
    np.testing.assert_array_equal(model.predict(QUERIES), before)
    model.certificate_.verify(X, Y)
    assert (model.n_samples_fit_, other.n_samples_fit_) == (30, 37)
    assert other.kneighbors(QUERIES, 1)[1].ravel().tolist() == list(range(30, 37))
