"""What users of LargeMarginNearestNeighbor rely on."""

import signal
import threading
import time
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine, make_classification
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from oracles.triplets import targets_of, terms
from sixfold import KNeighborsClassifier, LargeMarginNearestNeighbor, distances
from sixfold.errors import InputError, StoppedEarly


def rows(seed=0, n=80, columns=5, classes=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, columns)) * np.geomspace(1.0, 10.0, columns)
    return X, np.argmax(X[:, :classes] + 0.3 * rng.normal(size=(n, classes)), axis=1)


def fit(X, y, weight=None, **parameters):
    return LargeMarginNearestNeighbor(**parameters).fit(X, y, weight)


# -- what is learnt ---------------------------------------------------------------------------------------


def test_the_objective_is_the_one_of_the_docstring():
    X, y = rows()
    weight = np.random.default_rng(1).uniform(0.2, 2.0, y.size)
    model = fit(X, y, weight, n_neighbors=2, regularization=0.3, trace_penalty=0.01)
    oracle = terms(X, y, weight, 2, 0.3, 0.01)
    assert model.certificate_.objective == pytest.approx(oracle.value(model.get_mahalanobis_matrix()))
    assert model.targets_.tolist() == targets_of(X, y, weight, 2)


def test_every_parameter_of_the_problem_changes_the_answer():
    X, y = rows()
    plain = fit(X, y).get_mahalanobis_matrix()
    for changed in ({"n_neighbors": 1}, {"regularization": 0.2}, {"trace_penalty": 0.1}, {"n_components": 2}):
        assert not np.allclose(fit(X, y, **changed).get_mahalanobis_matrix(), plain, rtol=1e-2)


def test_neighbours_are_found_better_than_before():
    X, y = load_wine(return_X_y=True)
    scaled = StandardScaler().fit_transform(X)
    learnt = distances.Learned(LargeMarginNearestNeighbor())
    before = cross_val_score(KNeighborsClassifier(3), X, y, cv=5).mean()
    after = cross_val_score(KNeighborsClassifier(3, metric=learnt), X, y, cv=5).mean()
    assert after > before + 0.1
    assert cross_val_score(KNeighborsClassifier(3, metric=learnt), scaled, y, cv=5).mean() > 0.94


def test_a_pipeline_with_neighbours():
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), LargeMarginNearestNeighbor(), KNeighborsClassifier(3))
    assert cross_val_score(model, X, y, cv=5).mean() > 0.95


def test_the_map_and_the_matrix_agree_with_the_rows_after_it():
    X, y = rows()
    model = fit(X, y)
    Z, M = model.transform(X), model.get_mahalanobis_matrix()
    assert np.square(Z[3] - Z[7]).sum() == pytest.approx((X[3] - X[7]) @ M @ (X[3] - X[7]))
    assert Z.shape == (80, 5)
    assert model.get_feature_names_out().tolist() == [f"largemarginnearestneighbor{k}" for k in range(5)]


def test_the_unit_of_the_rows_changes_only_that_of_the_map():
    X, y = rows()
    plain, small = fit(X, y), fit(X / 1024.0, y)
    assert np.allclose(small.components_, 1024.0 * plain.components_, rtol=1e-9)
    for scale in (1e150, 1e-150):
        other = fit(X * scale, y)
        assert other.certificate_.objective == pytest.approx(plain.certificate_.objective, rel=1e-6)
        other.certificate_.verify(X * scale, y)


def test_rows_of_weight_0_are_left_out():
    X, y = rows()
    keep = np.arange(y.size) % 5 > 0
    model, without = fit(X, y, keep * 2.0), fit(X[keep], y[keep])
    assert np.allclose(model.components_, without.components_, rtol=1e-6, atol=1e-9)
    assert (model.targets_[~keep] == -1).all()
    assert np.isin(model.triplets_, np.flatnonzero(keep)).all()


def test_weights_count_relative_to_each_other():
    X, y = rows()
    weight = np.random.default_rng(0).uniform(0.1, 1.0, y.size)
    assert np.allclose(fit(X, y, weight).components_, fit(X, y, 4.0 * weight).components_, rtol=1e-9)
    heavier = fit(X, y, np.where(y == 0, 10.0, 1.0))
    assert not np.allclose(heavier.components_, fit(X, y).components_, rtol=1e-2)


def test_single_precision_is_kept_and_certified_as_it_is():
    X, y = rows()
    model = fit(X.astype(np.float32), y)
    assert model.components_.dtype == np.float32
    assert model.transform(X.astype(np.float32)).dtype == np.float32
    assert model.certificate_.verify(X.astype(np.float32), y).converged
    assert np.allclose(
        model.get_mahalanobis_matrix(), fit(X, y).get_mahalanobis_matrix(), rtol=0.05, atol=1e-3
    )


def test_two_threads_learn_what_one_learns():
    X, y = make_classification(1500, 12, n_informative=6, n_classes=3, random_state=0)
    maps = [fit(X, y, n_jobs=jobs, tol=1e-3).components_ for jobs in (1, 2)]
    assert np.array_equal(*maps)


@given(seed=st.integers(0, 500))
def test_every_start_ends_at_the_same_objective(seed):
    X, y = rows(seed, n=40, columns=3, classes=2)
    if np.bincount(y).min() < 2:
        return
    kinds = ("auto", "pca", "lda", "identity", "random", "whitening", np.diag([1e-3, 1.0, 50.0]))
    objectives = [fit(X, y, init=kind, random_state=seed).certificate_.objective for kind in kinds]
    assert np.allclose(objectives, objectives[0], rtol=1.1e-4)


@pytest.mark.filterwarnings("ignore::sixfold.errors.StoppedEarly")
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(4, 30),
    columns=st.integers(1, 6),
    values=st.integers(1, 4),
    k=st.integers(1, 4),
)
def test_tables_nobody_thinks_of_are_certified(seed, n, columns, values, k):
    """Ties, duplicates, constant columns, equal rows of different classes, small classes."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, values, size=(n, columns)).astype(float)
    y = np.concatenate([[0, 0, 1, 1], rng.integers(0, 2, n - 4)])
    model = fit(X, y, n_neighbors=k, max_iter=200)
    assert np.isfinite(model.components_).all()
    certificate = model.certificate_.verify(X, y)
    assert 0 <= certificate.lower_bound <= certificate.objective


# -- one fit after another ----------------------------------------------------------------------------------


def test_a_warm_start_goes_on_from_the_last_map():
    X, y = load_wine(return_X_y=True)
    model = LargeMarginNearestNeighbor(warm_start=True)
    first = model.fit(X, y).history_[0].objective
    best = model.certificate_.objective
    again = model.fit(X, y)
    assert first > 1.5 * best
    assert again.history_[0].objective < 1.01 * best
    assert again.certificate_.converged


def test_a_limit_of_steps_warns_and_leaves_a_map_with_its_gap():
    X, y = rows()
    with pytest.warns(StoppedEarly, match="max_iter=3"):
        model = fit(X, y, max_iter=3)
    assert model.n_iter_ == len(model.history_) == 3
    assert not model.certificate_.converged
    assert model.certificate_.verify(X, y).gap > 0
    model.transform(X)


def test_a_limit_of_time_warns_and_leaves_a_map():
    X, y = make_classification(1500, 30, n_informative=10, random_state=0)
    with pytest.warns(StoppedEarly, match="time_limit"):
        model = fit(X, y, time_limit=0.02, tol=1e-9)
    model.certificate_.verify(X, y)


def test_no_time_at_all_leaves_the_start():
    X, y = rows()
    with pytest.warns(StoppedEarly, match="time_limit"):
        model = fit(X, y, time_limit=1e-9)
    assert model.n_iter_ == 0
    model.certificate_.verify(X, y)


def test_ctrl_c_leaves_the_model_fitted_and_raises():
    X, y = make_classification(2000, 40, n_informative=20, random_state=0)
    model = LargeMarginNearestNeighbor(tol=0.0, max_iter=100_000)
    threading.Timer(0.5, lambda: signal.raise_signal(signal.SIGINT)).start()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert time.perf_counter() - start < 20.0
    model.certificate_.verify(X, y)


def test_callbacks_hear_of_every_step_and_may_end_the_fit():
    X, y = rows()
    heard = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoppedEarly)
        model = fit(X, y, tol=0.0, callbacks=[lambda record: heard.append(record) or len(heard) == 12])
    assert heard == model.history_
    assert len(heard) == 12
    objectives = [record.objective for record in heard]
    assert objectives[-1] < objectives[0]
    assert heard[-1].gap < heard[0].gap


def test_verbose_prints_progress(capsys):
    X, y = rows()
    fit(X, y, verbose=1)
    assert "LargeMarginNearestNeighbor: step 1, " in capsys.readouterr().out


def test_the_certificate_speaks_of_the_bound():
    X, y = rows()
    model = fit(X, y)
    certificate = model.certificate_
    assert certificate.kind == "duality gap"
    assert certificate.relative_gap <= 1e-4
    assert certificate.lower_bound == pytest.approx(model.dual_.sum(), rel=1e-9)
    parts = certificate.details
    assert parts["pull"] + parts["push"] + parts["trace"] == pytest.approx(certificate.objective)
    assert "divided by the objective itself" in certificate.legend


def test_a_low_rank_says_what_its_gap_means():
    X, y = rows()
    certificate = fit(X, y, n_components=1).certificate_
    assert "a map of 1 rows" in str(certificate)
    assert "best map of any rank" in str(certificate)
    assert certificate.lower_bound == pytest.approx(fit(X, y).certificate_.lower_bound, rel=0.05)


def test_frames_keep_their_names():
    X, y = rows()
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = fit(frame, np.array(["x", "y", "z"])[y])
    assert model.feature_names_in_.tolist() == list("abcde")
    model.set_output(transform="pandas")
    assert model.transform(frame).shape == (80, 5)
    assert model.classes_.tolist() == ["x", "y", "z"]


def test_a_copy_has_the_same_parameters():
    model = LargeMarginNearestNeighbor(5, n_components=2, regularization=0.2)
    assert clone(model).get_params() == model.get_params()


# -- what cannot be learnt from -----------------------------------------------------------------------------


def test_one_class_has_nothing_to_push_away():
    with pytest.raises(InputError, match="y has 1 class"):
        fit(rows()[0], np.zeros(80, dtype=int))


def test_a_class_with_one_row_is_named_with_its_row():
    X, y = rows()
    labels = np.array(["a", "b", "c"], dtype=object)[y]
    labels[17] = "alone"
    with pytest.raises(InputError, match=r"Class 'alone' has one row only \(number 17, counted from 0\)"):
        fit(X, labels)


def test_a_class_with_one_row_of_positive_weight_is_named_too():
    X, y = rows()
    weight = np.where((y == 2) & (np.arange(80) != np.flatnonzero(y == 2)[3]), 0.0, 1.0)
    with pytest.raises(InputError, match=f"Class 2 has one row only .number {np.flatnonzero(y == 2)[3]}"):
        fit(X, y, weight)


def test_small_classes_have_fewer_targets_and_a_remark():
    X, y = rows()
    y[:3] = 7
    y[3:][y[3:] == 7] = 0
    model = fit(X, y, n_neighbors=5)
    assert (model.targets_[:3, 2:] == -1).all()
    assert "fewer than n_neighbors=5 targets in the classes 7 (3 rows)" in str(model.certificate_)
    model.certificate_.verify(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors=0 is out of range"),
        ({"n_neighbors": 2.5}, "n_neighbors=2.5 is of type float"),
        ({"regularization": 0.0}, "regularization=0.0 is out of range"),
        ({"regularization": 1.0}, "regularization=1.0 is out of range"),
        ({"trace_penalty": 0.0}, "trace_penalty=0.0 is out of range"),
        ({"n_components": 6}, "cannot be greater than the given data dimensionality"),
        ({"n_components": 0}, "n_components=0 is out of range"),
        ({"init": "best"}, "init='best'"),
        ({"init": np.ones((2, 3))}, "must match the dimensionality"),
        ({"tol": -1.0}, "tol=-1.0 is out of range"),
        ({"max_iter": 0}, "max_iter=0 is out of range"),
    ],
)
def test_a_parameter_that_cannot_be_used_is_refused(parameters, message):
    with pytest.raises(InputError, match=message):
        fit(*rows(), **parameters)


def test_values_that_cannot_be_computed_with_are_refused():
    X, y = rows()
    gap = X.copy()
    gap[4, 2] = np.nan
    with pytest.raises(InputError, match="NaN: in row 4 of column 'x2'"):
        fit(gap, y)
    with pytest.raises(InputError, match="sparse"):
        fit(sp.csr_array(X), y)
    with pytest.raises(InputError, match="overflow"):
        fit(X * 1e200, y)


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    X, y = rows()
    model = fit(X, y)
    before = model.components_.copy()
    with pytest.raises(InputError):
        model.fit(X, np.zeros(80))
    assert np.array_equal(model.components_, before)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_map_that_its_numbers_cannot_hold_is_refused(dtype):
    X, y = rows()
    with pytest.raises(InputError, match="so small that the map"):
        fit((X * (1e-42 if dtype is np.float32 else 1e-310)).astype(dtype), y)


@pytest.mark.filterwarnings("ignore::sixfold.errors.StoppedEarly")
def test_more_neighbours_than_any_class_has_rows_cost_no_memory():
    X, y = rows()
    most = np.bincount(y).max() - 1
    model = fit(X, y, n_neighbors=2**40, max_iter=20, tol=0.1)
    assert model.targets_.shape == (y.size, most)
    model.certificate_.verify(X, y)
    assert np.array_equal(model.components_, fit(X, y, n_neighbors=most, max_iter=20, tol=0.1).components_)
