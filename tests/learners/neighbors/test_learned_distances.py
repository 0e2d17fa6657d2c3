"""Neighbours in a distance that is learnt: fitted with them, cloned unfitted, searched exactly."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import GridSearchCV as BruteForce
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    QuantileTransformer,
    StandardScaler,
)

from sixfold import (
    GridSearchCV,
    KNeighborsClassifier,
    KNeighborsRegressor,
    NearestNeighbors,
    NeighborhoodComponentsAnalysis,
    RadiusNeighborsClassifier,
    load,
    save,
)
from sixfold.errors import InputError
from sixfold.geometry.distances import Learned, between

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]
L = np.array([[1.0, 0.5, 0.0, 0.0], [0.0, 0.0, -2.0, 1.0]])


def by_definition(k, L):
    """Return distances and rows of the k nearest other rows."""
    D = np.sqrt(np.square((X[:, None] - X[None]) @ L.T).sum(axis=-1))
    np.fill_diagonal(D, np.inf)
    rows = np.argsort(D, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(D, rows, axis=1), rows


def test_neighbours_in_a_given_map_are_those_by_definition():
    found, rows = KNeighborsClassifier(5, metric=Learned(L)).fit(X, Y).kneighbors()
    expected, _ = by_definition(5, L)
    assert np.allclose(found, expected, rtol=1e-12)
    assert np.allclose(np.linalg.norm((X[:, None] - X[rows]) @ L.T, axis=-1), found, rtol=1e-12)


def test_fit_learns_the_distance_from_its_own_rows_and_labels():
    model = KNeighborsClassifier(3, metric=Learned(LinearDiscriminantAnalysis())).fit(X, NAMES)
    mapped = LinearDiscriminantAnalysis().fit(X, NAMES).transform(X)
    assert (model.predict(X) == KNeighborsClassifier(3).fit(mapped, NAMES).predict(mapped)).all()
    assert not model.metric.fitted  # a parameter stays as it was
    assert model.effective_metric_.fitted


def test_a_fitted_transformer_is_taken_as_it_is():
    transformer = PCA(2).fit(X[:50])
    model = KNeighborsClassifier(metric=Learned(transformer)).fit(X, Y)
    assert model.effective_metric_.transformer is transformer
    assert np.allclose(model.effective_metric_.components, transformer.components_, atol=1e-14)


def test_a_transformer_that_is_fitted_again_is_asked_again():
    transformer = PCA(2).fit(X[:50])
    metric = Learned(transformer)
    KNeighborsClassifier(metric=metric).fit(X, Y)
    transformer.fit(X[:, :3])
    found, _ = KNeighborsClassifier(metric=metric).fit(X[:, :3], Y).kneighbors()
    expected, _ = KNeighborsClassifier(metric=Learned(transformer.components_)).fit(X[:, :3], Y).kneighbors()
    assert np.allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_a_clone_learns_anew():
    model = clone(KNeighborsClassifier(metric=Learned(PCA(2).fit(X))))
    assert not model.metric.fitted
    assert clone(KNeighborsClassifier(metric=Learned(L))).metric.fitted


def test_a_pipeline_with_a_scaler_is_one_linear_map():
    pipeline = make_pipeline(StandardScaler(), LinearDiscriminantAnalysis(n_components=1))
    model = KNeighborsClassifier(3, metric=Learned(pipeline)).fit(X, Y)
    mapped = pipeline.fit(X, Y).transform(X)
    assert np.allclose(model.kneighbors()[0], KNeighborsClassifier(3).fit(mapped, Y).kneighbors()[0])


def test_equal_rows_are_at_distance_zero_and_ordered_by_number():
    far = 1e6 + np.repeat(X[:10], 3, axis=0)
    distances, rows = KNeighborsClassifier(3, metric=Learned(L)).fit(far, np.arange(30) % 2).kneighbors(far)
    assert (distances == 0).all()
    assert (rows == np.repeat(np.arange(30).reshape(10, 3), 3, axis=0)).all()


def test_the_certificate_is_verified_and_names_what_was_learnt():
    model = KNeighborsClassifier(3, metric=Learned(LinearDiscriminantAnalysis())).fit(X, Y)
    model.predict(X)
    assert model.certificate_.verify(X, Y).gap == 0
    assert "row" in str(model.explain(X[0]))


def test_weights_reach_what_learns():
    weight = np.where(np.arange(150) % 3 == 0, 0.0, 2.0)
    model = KNeighborsClassifier(metric=Learned(StandardScaler())).fit(X, Y, weight)
    expected = StandardScaler().fit(X[weight > 0])
    assert np.allclose(np.diag(model.effective_metric_.components), 1 / expected.scale_)


def test_a_grid_over_neighbours_and_components_gives_what_separate_fits_give():
    model = KNeighborsClassifier(metric=Learned(LinearDiscriminantAnalysis()))
    grid = {"n_neighbors": [1, 5, 9], "metric__transformer__n_components": [1, 2]}
    ours, theirs = GridSearchCV(model, grid, cv=3).fit(X, Y), BruteForce(model, grid, cv=3).fit(X, Y)
    assert np.array_equal(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"])
    assert ours.best_params_ == theirs.best_params_


def test_every_fold_learns_from_its_own_rows():
    labels = np.random.default_rng(0).permutation(np.arange(60) % 2)
    noise = np.random.default_rng(1).normal(size=(60, 40))
    transformer = LinearDiscriminantAnalysis().fit(noise, labels)  # which has seen all labels
    search = GridSearchCV(
        KNeighborsClassifier(metric=Learned(transformer)), {"n_neighbors": [1]}, cv=5, refit=False
    )
    assert search.fit(noise, labels).cv_results_["mean_test_score"][0] < 0.75


@pytest.mark.parametrize("model", [KNeighborsRegressor(), RadiusNeighborsClassifier(9.0), NearestNeighbors()])
def test_every_learner_of_neighbours_takes_one(model):
    model.set_params(metric=Learned(StandardScaler())).fit(X, Y)
    plain = clone(model).set_params(metric="euclidean").fit(StandardScaler().fit_transform(X), Y)
    assert np.allclose(model.kneighbors(n_neighbors=4)[0], plain.kneighbors(n_neighbors=4)[0])


def test_more_rows_are_compared_in_the_distance_that_is_learnt():
    model = KNeighborsClassifier(3, metric=Learned(LinearDiscriminantAnalysis()))
    model.partial_fit(X[::2], Y[::2])
    before = model.effective_metric_.components
    model.partial_fit(X[1::2], Y[1::2])
    assert np.array_equal(model.effective_metric_.components, before)
    assert model.n_samples_fit_ == 150


def test_names_of_columns_do_not_matter_to_a_transformer():
    frame = pd.DataFrame(X, columns=list("abcd"))
    fitted = StandardScaler().fit(frame)
    model = KNeighborsClassifier(metric=Learned(fitted)).fit(frame, Y)
    assert (
        model.predict(frame) == KNeighborsClassifier(metric=Learned(StandardScaler())).fit(X, Y).predict(X)
    ).all()


def test_copies_pickles_and_model_files_answer_alike(tmp_path):
    model = KNeighborsClassifier(3, metric=Learned(make_pipeline(StandardScaler()))).fit(X, Y)
    save(model, tmp_path / "model.sixfold")
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), load(tmp_path / "model.sixfold")):
        assert np.array_equal(other.kneighbors(X)[0], model.kneighbors(X)[0])
        assert (other.predict(X) == model.predict(X)).all()


def test_distances_between_rows_are_learnt_ones():
    assert np.allclose(between(X[:3], X, Learned(L)), np.linalg.norm((X[:3, None] - X) @ L.T, axis=-1))


def test_a_search_claims_nothing_of_a_distance_that_is_learnt():
    model = KNeighborsClassifier(metric=Learned(LinearDiscriminantAnalysis()))
    search = GridSearchCV(model, {"n_neighbors": [1, 5]}, cv=3).fit(X, Y)
    assert str(search.certificate_) == "search: 6 fits from 3 solved problems; 6 fits make no claim"


def test_a_check_says_that_the_distance_was_learnt():
    pipeline = make_pipeline(StandardScaler(), LinearDiscriminantAnalysis())
    model = KNeighborsClassifier(metric=Learned(pipeline)).fit(X, Y)
    for certificate in (model.certificate_, model.certificate_.verify(X, Y)):
        assert "as if every distance were computed" in str(certificate)
        assert "in a distance that was learnt (LinearDiscriminantAnalysis)" in str(certificate)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: KNeighborsClassifier(metric=Learned).fit(X, Y), "metric=Learned is the class"),
        (lambda: KNeighborsClassifier(metric=PCA()).fit(X, Y), r"pass metric=distances.Learned\(...\) of it"),
        (lambda: KNeighborsClassifier(metric="lmnn").fit(X, Y), r"distances.Learned\(...\)"),
        (
            lambda: KNeighborsRegressor(metric=Learned(LinearDiscriminantAnalysis())).fit(X, Y),
            "learnt from classes, and KNeighborsRegressor has none",
        ),
        (
            lambda: NearestNeighbors(metric=Learned(NeighborhoodComponentsAnalysis())).fit(X),
            "learnt from classes, and NearestNeighbors has none",
        ),
        (lambda: Learned("pca"), "neither a transformer nor a matrix"),
        (lambda: Learned(np.ones(3)), r"shape \(3,\)"),
        (lambda: Learned(np.full((2, 2), np.nan)), "finite"),
        (lambda: between(X, X, Learned(PCA())), "not learnt yet"),
        (lambda: between(X, X, Learned(np.eye(3))), "rows of 3 columns"),
        (lambda: KNeighborsClassifier(metric=Learned(PolynomialFeatures())).fit(X, Y), "no linear map"),
        (lambda: KNeighborsClassifier(metric=Learned(L)).fit(sp.csr_array(X), Y), "sparse"),
        (lambda: KNeighborsClassifier(metric=Learned(L), metric_params={"p": 2}).fit(X, Y), "metric_params"),
        (lambda: Learned(PCA()).set_params(transformer=PCA()), "Pass another one"),
    ],
)
def test_what_cannot_be_a_learnt_distance_is_refused(make, text):
    with pytest.raises(InputError, match=text):
        make()


@pytest.mark.parametrize("size", [1e-140, 1.0, 1e8, 1e16, 1e100, 1e140])
def test_columns_of_any_size_count_behind_a_scaler(size):
    scaled = X * [1.0, size, 1.0, 1.0]  # far from 0 for their spread: a step of 1 is lost beside it
    model = KNeighborsClassifier(5, metric=Learned(StandardScaler())).fit(scaled, Y)
    mapped = StandardScaler().fit_transform(X)
    expected = np.sort(np.linalg.norm(mapped[:, None] - mapped, axis=2), axis=1)[:, :5]
    assert np.allclose(model.kneighbors(scaled)[0], expected, rtol=1e-9, atol=1e-12)


def test_a_wide_map_is_read_off_in_parts():
    rows = np.random.default_rng(0).standard_normal((9, 700))
    learnt = Learned(PCA(3).fit(rows))
    assert np.allclose(learnt.components, learnt.transformer.components_, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "transformer",
    [
        Normalizer(),
        MinMaxScaler(clip=True),
        QuantileTransformer(n_quantiles=20),
        KBinsDiscretizer(5, encode="ordinal", strategy="uniform"),
    ],
)
def test_a_map_that_is_linear_near_zero_only_is_refused(transformer):
    with pytest.raises(InputError, match="no linear map"):
        KNeighborsClassifier(metric=Learned(transformer)).fit(1e6 * X, Y)


def test_weights_that_a_transformer_does_not_take_are_refused():
    for transformer in (PCA(2), make_pipeline(StandardScaler(), PCA(2))):
        with pytest.raises(InputError, match="without sample_weight"):
            KNeighborsClassifier(metric=Learned(transformer)).fit(X, Y, sample_weight=np.ones(len(X)))


def test_images_whose_squares_overflow_are_refused():
    with pytest.raises(InputError, match="overflow"):
        KNeighborsClassifier(metric=Learned(1e200 * L)).fit(X, Y)
    model = KNeighborsClassifier(metric=Learned(1e100 * L)).fit(X, Y)
    with pytest.raises(InputError, match="overflow"):
        model.predict(1e80 * X)


def test_a_class_and_parameters_of_a_matrix_are_refused():
    with pytest.raises(InputError, match=r"Pass PCA\(\)"):
        Learned(PCA)
    with pytest.raises(InputError, match="no parameters"):
        KNeighborsClassifier(metric=Learned(L)).set_params(metric__transformer__n_components=2)
