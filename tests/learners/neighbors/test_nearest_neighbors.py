"""The search without targets, and the transformers that hand it on."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.model_selection
import sklearn.neighbors
from sklearn.pipeline import make_pipeline

from sixfold import (
    Certificate,
    GridSearchCV,
    KNeighborsClassifier,
    KNeighborsTransformer,
    NearestNeighbors,
    RadiusNeighborsTransformer,
)
from sixfold.errors import CertificateError, InputError

RNG = np.random.default_rng(0)
X, Q = RNG.normal(size=(150, 4)), RNG.normal(size=(40, 4))
LABELS = np.where(X[:, 0] > 0, "up", "down")
LINE = np.array([[0.0], [1.0], [2.0], [4.0], [8.0]])

every_kind = pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, pd.DataFrame, np.float32])


@every_kind
@pytest.mark.parametrize(
    "parameters", [{}, {"n_neighbors": 3, "metric": "manhattan"}, {"algorithm": "kd_tree"}]
)
def test_the_neighbours_are_scikit_learns(kind, parameters):
    ours = NearestNeighbors(**parameters).fit(kind(X))
    theirs = sklearn.neighbors.NearestNeighbors(**parameters).fit(np.asarray(X, dtype=np.float64))
    if kind is np.float32:
        theirs.fit(X.astype(np.float32).astype(float))
    for rows in (Q, None):
        there = rows if rows is None or kind is not np.float32 else rows.astype(np.float32).astype(float)
        found = ours.kneighbors(rows if rows is None else kind(rows))
        expected = theirs.kneighbors(there)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-7)
        np.testing.assert_array_equal(found[1], expected[1])
        near = ours.radius_neighbors(rows if rows is None else kind(rows), sort_results=True)
        expected = theirs.radius_neighbors(there, sort_results=True)
        assert all(map(np.array_equal, near[1], expected[1]))
    assert ours.n_samples_fit_ == 150
    assert ours.effective_metric_ == theirs.effective_metric_
    graph, expected = ours.kneighbors_graph(mode="distance"), theirs.kneighbors_graph(mode="distance")
    np.testing.assert_allclose(graph.toarray(), expected.toarray(), rtol=1e-7)
    graph, expected = ours.radius_neighbors_graph(), theirs.radius_neighbors_graph()
    np.testing.assert_array_equal(graph.toarray(), expected.toarray())


def test_the_model_says_how_many_and_how_far_unless_it_is_told():
    model = NearestNeighbors(n_neighbors=2, radius=4.0).fit(LINE)
    assert model.kneighbors([[0.0]], return_distance=False).tolist() == [[0, 1]]
    assert model.kneighbors([[0.0]], 1, return_distance=False).tolist() == [[0]]
    assert model.radius_neighbors([[0.0]], return_distance=False)[0].tolist() == [0, 1, 2, 3]
    assert model.radius_neighbors([[0.0]], 0.5, return_distance=False)[0].tolist() == [0]
    assert model.radius_neighbors_graph([[0.0]]).nnz == 4


def test_rows_of_equal_distance_are_ordered_by_number():
    model = NearestNeighbors(n_neighbors=3).fit([[1.0], [-1.0], [1.0], [0.0]])
    assert model.kneighbors([[0.0]], return_distance=False).tolist() == [[3, 0, 1]]
    near = model.radius_neighbors([[0.0]], return_distance=False, sort_results=True)
    assert near[0].tolist() == [3, 0, 1, 2]


def test_the_certificate_speaks_of_the_rows_alone():
    model = NearestNeighbors().fit(X, LABELS)  # which are ignored
    model.kneighbors(Q)
    certificate = model.certificate_
    assert certificate.details["queries"] == 40
    assert certificate.verify(X).objective == certificate.verify(X, LABELS).objective == 0.0
    read = Certificate.from_json(certificate.to_json()).bind(model)
    read.verify(X)
    assert certificate.subject.fingerprint == NearestNeighbors().fit(X).certificate_.subject.fingerprint
    other = X.copy()
    other[3, 2] += 1e-3
    with pytest.raises(CertificateError, match=r"1 of 150 rows of X are not what the model keeps.* row 3"):
        certificate.verify(other)
    with pytest.raises(CertificateError, match="the data are not those of the fit"):
        read.verify(other)


def test_rows_may_be_added():
    model = NearestNeighbors(n_neighbors=2).partial_fit(X[:50]).partial_fit(X[50:])
    whole = NearestNeighbors(n_neighbors=2).fit(X)
    np.testing.assert_array_equal(model.kneighbors(Q)[1], whole.kneighbors(Q)[1])
    model.certificate_.verify(X)


def test_what_belongs_to_the_nearest_rows_is_handed_on():
    assert NearestNeighbors().fit(LINE).transfer([[3.9], [0.1]], list("abcde")) == ["d", "a"]


def test_a_search_has_nothing_to_predict_and_draws_nothing():
    model = NearestNeighbors().fit(X)
    assert not hasattr(model, "predict")
    assert not hasattr(model, "score")
    with pytest.raises(InputError, match="NearestNeighbors predicts nothing and has no history"):
        model.plot(X, LABELS)


# -- transformers --------------------------------------------------------------------------------------------


@every_kind
@pytest.mark.parametrize("mode", ["distance", "connectivity"])
@pytest.mark.parametrize("name", ["KNeighborsTransformer", "RadiusNeighborsTransformer"])
def test_the_matrix_is_scikit_learns(name, mode, kind):
    ours = {"KNeighborsTransformer": KNeighborsTransformer}.get(name, RadiusNeighborsTransformer)(mode=mode)
    theirs = getattr(sklearn.neighbors, name)(mode=mode)
    plain = X.astype(np.float32).astype(float) if kind is np.float32 else X
    for found, expected in [
        (ours.fit_transform(kind(X)), theirs.fit_transform(plain)),
        (ours.transform(kind(X[:30])), theirs.transform(plain[:30])),
    ]:
        assert sp.issparse(found)
        assert found.format == "csr"
        assert found.nnz == expected.nnz
        np.testing.assert_allclose(found.toarray(), expected.toarray(), rtol=1e-6, atol=1e-7)
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()


def test_a_frame_is_asked_for_in_vain_as_in_scikit_learn():
    for module in (KNeighborsTransformer, sklearn.neighbors.KNeighborsTransformer):
        with pytest.raises(ValueError, match="sparse"):
            module().set_output(transform="pandas").fit_transform(X)
        assert sp.issparse(module().set_output(transform="default").fit_transform(X))


@pytest.mark.parametrize("mode", ["distance", "connectivity"])
def test_a_mode_that_is_none_is_named(mode):
    assert KNeighborsTransformer(mode=mode, n_neighbors=1).fit_transform(LINE).nnz == 5 * (
        1 + (mode == "distance")
    )
    with pytest.raises(InputError, match="mode='distances' is not an option; did you mean 'distance'"):
        KNeighborsTransformer(mode="distances").fit(X)


def test_the_matrix_serves_a_model_of_given_distances():
    chain = make_pipeline(
        KNeighborsTransformer(n_neighbors=12), KNeighborsClassifier(5, metric="precomputed")
    )
    plain = KNeighborsClassifier(5).fit(X, LABELS)
    np.testing.assert_array_equal(chain.fit(X, LABELS).predict(Q), plain.predict(Q))


def test_a_grid_search_over_the_chain_gives_what_scikit_learns_search_gives():
    chain = make_pipeline(KNeighborsTransformer(n_neighbors=12), KNeighborsClassifier(metric="precomputed"))
    grid = {
        "kneighborsclassifier__n_neighbors": [1, 5, 9],
        "kneighborstransformer__metric": ["manhattan", "cosine"],
    }
    ours = GridSearchCV(chain, grid, cv=3).fit(X, LABELS)
    theirs = sklearn.model_selection.GridSearchCV(chain, grid, cv=3).fit(X, LABELS)
    np.testing.assert_array_equal(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"])


def test_certificates_of_matrices_are_verified():
    for model in (KNeighborsTransformer(), RadiusNeighborsTransformer(radius=1.5)):
        model.fit(X).transform(Q)
        assert model.certificate_.verify(X).kind == "exact search"
