"""Nystroem's features: as scikit-learn has them, of better landmarks, from every kind of rows and kernel."""

import signal
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.kernel_approximation
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.pipeline import make_pipeline

from sixfold import (
    GridSearchCV,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    Nystroem,
    kernels,
)
from sixfold._native import core
from sixfold.errors import InputError, StoppedEarly
from sixfold.solvers.kernel import landmarks
from tests.oracles.landmarks import rbf, trace_error

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(150, 4))
Y = (np.sin(2.0 * X[:, 0]) + X[:, 1] ** 2 > 1.0).astype(int)


def test_uniform_landmarks_span_the_space_of_scikit_learns():
    ours = Nystroem(n_components=30, selection="uniform", random_state=5).fit(X)
    theirs = sklearn.kernel_approximation.Nystroem(n_components=30, random_state=5).fit(X)
    assert np.array_equal(ours.component_indices_, theirs.component_indices_)
    assert np.array_equal(ours.components_, theirs.components_)
    A, B = ours.transform(X), theirs.transform(X)
    np.testing.assert_allclose(A @ A.T, B @ B.T, atol=1e-8)


def test_the_default_leaves_out_less_than_scikit_learns():
    ours = [Nystroem(n_components=30, random_state=seed).fit(X).certificate_.objective for seed in range(5)]
    theirs = []
    for seed in range(5):
        Z = sklearn.kernel_approximation.Nystroem(n_components=30, random_state=seed).fit_transform(X)
        theirs.append(1.0 - np.square(Z).sum() / X.shape[0])
    assert np.mean(ours) < 0.9 * np.mean(theirs)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fitting_and_transforming_at_once_is_the_same(dtype):
    model = Nystroem(n_components=40)
    at_once = model.fit_transform(X.astype(dtype))
    after = model.transform(X.astype(dtype))
    assert at_once.dtype == after.dtype == model.normalization_.dtype == model.components_.dtype == dtype
    np.testing.assert_allclose(at_once, after, atol=2e-4 if dtype == np.float32 else 1e-9)
    assert model.get_feature_names_out()[:2].tolist() == ["nystroem0", "nystroem1"]


@pytest.mark.parametrize(
    ("parameters", "metric", "theirs"),
    [
        ({}, "rbf", {}),
        ({"gamma": 0.7}, "rbf", {"gamma": 0.7}),
        ({"kernel": "poly", "degree": 2}, "poly", {"degree": 2}),
        ({"kernel": "polynomial", "coef0": 0.5, "gamma": 0.1}, "poly", {"coef0": 0.5, "gamma": 0.1}),
        ({"kernel": "linear"}, "linear", {}),
        ({"kernel": "laplacian", "gamma": 0.2}, "laplacian", {"gamma": 0.2}),
        ({"kernel": "cosine"}, "cosine", {}),
        ({"kernel": "chi2"}, "chi2", {}),
    ],
)
def test_kernels_mean_what_they_mean_in_scikit_learn(parameters, metric, theirs):
    rows = np.abs(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        Z = Nystroem(**parameters, n_components=150).fit_transform(rows)
    np.testing.assert_allclose(Z @ Z.T, pairwise_kernels(rows, metric=metric, **theirs), atol=1e-6)


def test_a_function_is_called_with_two_rows_and_its_arguments():
    model = Nystroem(
        kernel=lambda x, z, power: (x @ z + 1.0) ** power, kernel_params={"power": 2}, n_components=150
    )
    Z = model.fit_transform(X)
    np.testing.assert_allclose(Z @ Z.T, (X @ X.T + 1.0) ** 2, atol=1e-6)
    assert Z.shape[1] == 15  # products of up to two of four columns
    assert "another landmark would add nothing" in str(model.certificate_)
    model.certificate_.verify(X)


def test_kernels_as_objects_and_their_sums():
    kernel = kernels.RBF(sigma=1.0) + 0.5 * kernels.linear
    model = Nystroem(kernel=kernel, n_components=60).fit(X)
    assert model.kernel_ == kernel
    found = model.certificate_.verify(X)
    assert found.objective == pytest.approx(trace_error(kernel(X), model.component_indices_), abs=1e-9)


def test_precomputed_values_and_new_rows():
    K = rbf(X, X, 0.25)
    given, own = Nystroem("precomputed", n_components=20).fit(K), Nystroem(gamma=0.25, n_components=20).fit(X)
    assert np.array_equal(given.component_indices_, own.component_indices_)
    new = RANDOM.normal(size=(7, 4))
    np.testing.assert_allclose(given.transform(rbf(new, X, 0.25)), own.transform(new), atol=1e-9)
    given.certificate_.verify(K)


def test_sparse_rows_are_the_same_rows():
    rows = np.where(np.abs(X) > 0.7, X, 0.0)
    dense, sparse = Nystroem(n_components=25).fit(rows), Nystroem(n_components=25).fit(sp.csr_array(rows))
    assert np.array_equal(dense.component_indices_, sparse.component_indices_)
    assert sp.issparse(sparse.components_)
    np.testing.assert_allclose(sparse.transform(sp.csr_array(rows)), dense.transform(rows), atol=1e-9)
    np.testing.assert_allclose(sparse.transform(rows), dense.transform(sp.csr_array(rows)), atol=1e-9)
    sparse.certificate_.verify(sp.csr_array(rows))


def test_frames_have_names():
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = Nystroem(n_components=5).fit(frame)
    assert model.feature_names_in_.tolist() == list("abcd")
    assert model.set_output(transform="pandas").transform(frame).columns[0] == "nystroem0"


def test_tol_says_how_many_landmarks_are_enough():
    model = Nystroem(gamma=0.1, n_components=150, tol=0.02).fit(X)
    assert model.components_.shape[0] < 100
    assert model.certificate_.converged
    assert model.certificate_.objective <= 0.02 + 1e-6
    K = rbf(X, X, 0.1)
    assert trace_error(K, model.component_indices_[:-1]) > 0.02
    with pytest.warns(StoppedEarly, match=r"Stopped by n_components=5 with 5 landmarks.*short of the 0.02"):
        Nystroem(gamma=0.1, n_components=5, tol=0.02).fit(X)


def test_more_landmarks_than_rows_are_all_rows_with_scikit_learns_warning():
    with pytest.warns(UserWarning, match=r"n_components > n_samples. This is not possible."):
        model = Nystroem(n_components=200).fit(X)
    assert sorted(model.component_indices_) == list(range(150))


def test_a_weight_of_0_is_a_row_left_out():
    weight = np.ones(150)
    weight[:50] = 0.0
    model = Nystroem(gamma=0.3, n_components=20).fit(X, sample_weight=weight)
    assert model.component_indices_.min() >= 50
    expected = trace_error(rbf(X, X, 0.3), model.component_indices_, weight)
    assert model.certificate_.objective == pytest.approx(expected, abs=1e-9)
    model.certificate_.verify(X, sample_weight=weight)


def test_the_same_seed_makes_the_same_model_on_any_number_of_threads():
    rows = RANDOM.normal(size=(3000, 5))
    made = [Nystroem(n_components=50, n_jobs=jobs).fit_transform(rows).tobytes() for jobs in (1, 2, None)]
    assert len(set(made)) == 1
    assert Nystroem(random_state=1).fit(rows).transform(rows).tobytes() != made[0]
    assert core.threads() >= 1


def test_time_limit_keeps_what_was_found():
    with pytest.warns(StoppedEarly, match=r"Stopped by time_limit=1e-09 s with \d+ landmarks"):
        model = Nystroem(n_components=100, time_limit=1e-9).fit(X)
    assert 0 < model.components_.shape[0] < 100
    model.certificate_.verify(X)


def test_callbacks_hear_of_blocks_and_verbose_prints(capsys):
    records = []
    model = Nystroem(n_components=40, callbacks=[records.append], verbose=True).fit(X)
    assert len(records) == model.n_iter_ == len(model.history_)
    assert [one.objective for one in records] == sorted((one.objective for one in records), reverse=True)
    assert "Nystroem: block 1" in capsys.readouterr().out


def test_constant_rows_one_row_and_one_column():
    for rows in (np.ones((6, 3)), X[:1], X[:, :1]):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model = Nystroem(n_components=5).fit(rows)
        Z = model.transform(rows)
        assert np.isfinite(Z).all()
        assert Z.shape == (rows.shape[0], model.components_.shape[0])


@pytest.mark.parametrize(
    ("parameters", "rows", "sentence"),
    [
        ({"kernel": "rbf2"}, X, "kernel='rbf2'"),
        ({"n_components": 0}, X, "n_components=0"),
        ({"selection": "random"}, X, "selection='random'"),
        ({"tol": -1.0}, X, "tol=-1.0"),
        ({"kernel": "precomputed", "gamma": 1.0}, X @ X.T, "Don't pass gamma, coef0 or degree to Nystroem"),
        ({"kernel": np.dot, "degree": 2}, X, "Don't pass gamma, coef0 or degree to Nystroem"),
        ({"kernel": "precomputed"}, X, "Precomputed matrix must be a square matrix"),
        ({"kernel_params": 3}, X, "kernel_params=3"),
        ({"kernel": "sigmoid", "coef0": -2.0}, X, "is not positive semi-definite"),
        ({"kernel": "additive_chi2"}, np.abs(X), "is not positive semi-definite: it is 0 for each row"),
        ({}, np.where(X > 2.0, np.nan, X), "NaN"),
        ({"kernel": "linear"}, 1e200 * X, "overflow"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(parameters, rows, sentence):
    with pytest.raises(InputError, match=sentence):
        Nystroem(**parameters).fit(rows)


@pytest.mark.parametrize("learner", [LinearSVC(), LogisticRegression(), LinearRegression()])
def test_linear_models_of_features_are_kernel_machines(learner):
    pipeline = make_pipeline(Nystroem(gamma=0.3, n_components=80), learner).fit(X, Y)
    answers = pipeline.predict(X)
    assert np.mean((answers > 0.5) == Y) > 0.83  # of the columns themselves 0.73 at best
    assert pipeline[-1].certificate_.converged


def test_a_search_over_landmarks_finds_a_setting():
    pipeline = make_pipeline(Nystroem(random_state=0), LinearSVC())
    grid = {"nystroem__gamma": [0.01, 0.3], "nystroem__n_components": [5, 60], "linearsvc__C": [1.0, 10.0]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, Y)
    assert search.best_params_["nystroem__n_components"] == 60
    assert search.best_score_ > 0.8


def test_ctrl_c_leaves_it_fitted_and_is_raised():
    model = Nystroem(n_components=100, callbacks=[lambda record: signal.raise_signal(signal.SIGINT)])
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert 0 < model.components_.shape[0] < 100
    assert np.isfinite(model.transform(X)).all()


@pytest.mark.parametrize("selection", ["pivoted_cholesky", "kmeans++", "uniform"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 2])
def test_nearly_dependent_landmarks_are_left_out(selection, dtype, columns):
    rows = np.random.default_rng(0).normal(size=(200, columns)).astype(dtype)
    model = Nystroem(gamma=0.3, n_components=200, selection=selection).fit(rows)
    model.certificate_.verify(rows)
    features, exact = (
        model.transform(rows).astype(np.float64),
        pairwise_kernels(rows, metric="rbf", gamma=0.3),
    )
    assert np.abs(features @ features.T - exact).max() < 0.3


def test_rounding_of_kernel_values_is_counted():
    rows = 1000.0 * np.random.default_rng(0).normal(size=(50, 2))
    model = Nystroem(gamma=0.01, n_components=50).fit(rows)
    model.certificate_.verify(rows)
    assert model.certificate_.rounding > 1e-12


@pytest.mark.parametrize("scale", [1e-12, 1e10])
def test_single_precision_that_would_not_hold_kernel_values_is_left(scale):
    rows = (scale * X).astype(np.float32)
    model = Nystroem("poly", degree=2, gamma=1.0, coef0=0.0, n_components=150).fit(rows)
    features = model.transform(rows)
    assert features.dtype == np.float32
    exact = (rows.astype(np.float64) @ rows.astype(np.float64).T) ** 2
    shown = features.astype(np.float64) @ features.astype(np.float64).T
    np.testing.assert_allclose(shown, exact, atol=1e-3 * exact.max())
    model.certificate_.verify(rows)


def test_a_block_that_makes_no_landmark_is_not_the_end():
    rows = np.random.default_rng(0).normal(size=(200, 2)).astype(np.float32)
    for kernel in ("cosine", "rbf"):
        for selection in ("pivoted_cholesky", "kmeans++"):
            Nystroem(kernel, n_components=200, selection=selection).fit(rows).certificate_.verify(rows)


def test_ctrl_c_ends_the_pass_over_all_rows(monkeypatch):
    monkeypatch.setattr(landmarks, "LEAST_SAMPLE", 16)
    monkeypatch.setattr(landmarks, "STREAMED", 20)  # two to five rows at a time
    model = Nystroem(n_components=10, callbacks=[lambda record: signal.raise_signal(signal.SIGINT)])
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert model.certificate_.gap > 0.9  # of most rows nothing is known
    model.certificate_.verify(X)
    with pytest.raises(KeyboardInterrupt):
        model.fit_transform(X)


@pytest.mark.parametrize("columns", [1, 2])
def test_a_smooth_kernel_of_many_rows_is_not_called_indefinite(columns):
    rows = np.random.default_rng(2).normal(size=(2000, columns))
    model = Nystroem(gamma=0.3 / columns**2, n_components=600).fit(rows)
    assert model.certificate_.gap < 1e-4
    model.certificate_.verify(rows)


def test_a_kernel_that_is_0_everywhere_is_confirmed():
    model = Nystroem(kernel="linear", n_components=3).fit(np.zeros((6, 2)))
    assert model.component_indices_.size == 0
    assert model.certificate_.verify(np.zeros((6, 2))).objective == 0.0


@pytest.mark.parametrize("size", [1e8, 1e50])
def test_columns_of_any_size_are_confirmed(size):
    rows = size * np.random.default_rng(0).normal(size=(60, 3))
    model = Nystroem(n_components=10).fit(rows)
    assert model.certificate_.verify(rows).objective == pytest.approx(50 / 60)


def test_sparse_rows_far_from_zero_are_confirmed():
    rows = sp.csr_array(np.random.default_rng(0).normal(size=(300, 1)) + 1e5)
    model = Nystroem(gamma=1.0, n_components=10).fit(rows)
    model.certificate_.verify(rows)
