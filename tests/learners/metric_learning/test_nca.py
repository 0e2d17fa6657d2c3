"""NeighborhoodComponentsAnalysis as users meet it: scikit-learn's map, weights, limits, and hard tables."""

import itertools
import re
import signal
import threading
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn.neighbors
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris, load_wine, make_classification
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from oracles import soft_neighbors as oracle
from sixfold import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sixfold.errors import InputError, StoppedEarly

X, Y = load_iris(return_X_y=True)
pytestmark = pytest.mark.filterwarnings("ignore::sixfold.errors.StoppedEarly")


def mean_probability(components, X, y):
    return 1.0 - oracle.loss(components, X, y)


# -- the map -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"n_components": 2},
        {"n_components": 3},
        {"init": "lda", "n_components": 1},
        {"init": "random", "random_state": 0, "n_components": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("data", [load_iris, load_wine])
def test_the_objective_is_at_least_scikit_learns(parameters, data):
    table, labels = data(return_X_y=True)
    table = (table - table.mean(axis=0)) / table.std(axis=0)
    ours = NeighborhoodComponentsAnalysis(**parameters).fit(table, labels)
    theirs = sklearn.neighbors.NeighborhoodComponentsAnalysis(**parameters).fit(table, labels)
    assert ours.components_.shape == theirs.components_.shape
    reached = mean_probability(ours.components_, table, labels)
    assert reached >= mean_probability(theirs.components_, table, labels) - 1e-6
    assert reached == pytest.approx(1.0 - ours.certificate_.objective, abs=2 * ours.certificate_.rounding)


def test_rows_find_their_class_where_plain_distance_does_not():
    rng = np.random.default_rng(0)
    table = rng.standard_normal((400, 10))
    labels = (table[:, 3] > 0).astype(int) + (table[:, 7] > 0)
    plain = cross_val_score(KNeighborsClassifier(3), table, labels).mean()
    learnt = make_pipeline(NeighborhoodComponentsAnalysis(2), KNeighborsClassifier(3))
    assert cross_val_score(learnt, table, labels).mean() > plain + 0.2


def test_a_start_that_is_given_and_one_that_is_warm():
    start = np.random.default_rng(0).standard_normal((2, 4))
    model = NeighborhoodComponentsAnalysis(init=start, max_iter=3).fit(X, Y)
    assert model.components_.shape == (2, 4)
    again = NeighborhoodComponentsAnalysis(init=start, max_iter=3, warm_start=True).fit(X, Y)
    first = again.certificate_.objective
    assert again.fit(X, Y).certificate_.objective < first
    assert np.array_equal(start, np.random.default_rng(0).standard_normal((2, 4)))


@pytest.mark.parametrize("init", ["auto", "pca", "lda", "identity", "random", "whitening"])
@pytest.mark.parametrize("components", [1, 2, 4, None])
def test_every_start_leads_upwards(init, components):
    model = NeighborhoodComponentsAnalysis(components, init=init, random_state=0).fit(X, Y)
    losses = [record.objective for record in model.history_]
    assert all(after < before for before, after in itertools.pairwise(losses))
    assert model.n_iter_ == len(losses)
    assert mean_probability(model.components_, X, Y) > 0.9


def test_the_number_of_threads_changes_nothing():
    table, labels = make_classification(1200, 30, n_informative=10, n_classes=4, random_state=0)
    fits = [NeighborhoodComponentsAnalysis(n_jobs=jobs, max_iter=5).fit(table, labels) for jobs in (1, 2, 3)]
    for model in fits[1:]:
        assert np.array_equal(model.components_, fits[0].components_)


# -- what is given -------------------------------------------------------------------------------------------


def test_single_precision_stays_single_and_is_certified_as_it_is():
    model = NeighborhoodComponentsAnalysis().fit(X.astype(np.float32), Y)
    assert model.components_.dtype == np.float32
    assert model.transform(X.astype(np.float32)).dtype == np.float32
    assert model.certificate_.objective == pytest.approx(
        oracle.loss(model.components_.astype(float), X.astype(np.float32).astype(float), Y), abs=1e-12
    )
    model.certificate_.verify(X.astype(np.float32), Y)


def test_tables_and_words():
    names = ["a", "b", "c", "d"]
    words = np.array(["setosa", "versicolor", "virginica"])[Y]
    plain = NeighborhoodComponentsAnalysis().fit(X, Y)
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        model = NeighborhoodComponentsAnalysis().fit(frame, words)
        assert np.array_equal(model.components_, plain.components_)
        assert list(model.feature_names_in_) == names
        assert list(model.classes_) == ["setosa", "versicolor", "virginica"]
        model.certificate_.verify(frame, words)


def test_a_weight_of_two_is_a_row_twice_and_of_zero_none():
    weight = np.random.default_rng(0).integers(0, 4, 150)
    repeated = np.repeat(np.arange(150), weight)
    weighted = NeighborhoodComponentsAnalysis(max_iter=8).fit(X, Y, weight)
    again = NeighborhoodComponentsAnalysis(max_iter=8).fit(X[repeated], Y[repeated])
    assert np.allclose(weighted.components_, again.components_, rtol=1e-6)
    assert weighted.certificate_.objective == pytest.approx(again.certificate_.objective, abs=1e-9)
    weighted.certificate_.verify(X, Y, weight)


def test_weights_up_to_one_may_be_scaled():
    weight = np.random.default_rng(0).uniform(0.1, 1.0, 150)
    one, half = (NeighborhoodComponentsAnalysis(max_iter=8).fit(X, Y, part) for part in (weight, weight / 2))
    assert np.allclose(one.components_, half.components_, rtol=1e-6)


def test_callback_hears_the_map_and_the_iteration():
    heard = []
    model = NeighborhoodComponentsAnalysis(
        2, max_iter=5, tol=0.0, callback=lambda L, n: heard.append((L.shape, n))
    ).fit(X, Y)
    assert heard == [((8,), n) for n in (1, 2, 3, 4, 5)]
    assert model.n_iter_ == 5


def test_callbacks_can_end_the_fit():
    model = NeighborhoodComponentsAnalysis(tol=0.0, callbacks=[lambda record: record.iteration == 3]).fit(
        X, Y
    )
    assert model.n_iter_ == 3
    assert model.history_[-1].gap > 0


def test_verbose_says_how_it_gets_on(capsys):
    NeighborhoodComponentsAnalysis(verbose=1).fit(X, Y)
    assert "NeighborhoodComponentsAnalysis: iteration 1" in capsys.readouterr().out


# -- limits --------------------------------------------------------------------------------------------------


def test_a_limit_of_iterations_is_said_with_the_certificate():
    with pytest.warns(StoppedEarly, match="Stopped by max_iter=2 after 2 iterations") as found:
        model = NeighborhoodComponentsAnalysis(max_iter=2).fit(X, Y)
    assert "no bound: not convex" in str(found[0].message)
    model.certificate_.verify(X, Y)


@pytest.mark.parametrize("limit", [1e-9, 0.2])
def test_a_limit_of_time_keeps_the_best_map(limit):
    table, labels = make_classification(6000, 40, n_informative=20, n_classes=5, random_state=0)
    with pytest.warns(StoppedEarly, match="time_limit"):
        model = NeighborhoodComponentsAnalysis(time_limit=limit, max_iter=100_000, tol=0.0).fit(table, labels)
    assert model.components_.shape == (40, 40)
    if limit > 0.1:
        model.certificate_.verify(table, labels)


def test_ctrl_c_leaves_the_map_fitted():
    table, labels = make_classification(6000, 40, n_informative=20, n_classes=5, random_state=0)
    model = NeighborhoodComponentsAnalysis(max_iter=100_000, tol=0.0)
    threading.Timer(0.4, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(table, labels)
    assert model.components_.shape == (40, 40)
    assert np.isfinite(model.transform(table)).all()


# -- hard tables ---------------------------------------------------------------------------------------------


def test_one_class_keeps_the_start():
    model = NeighborhoodComponentsAnalysis().fit(X[:50], Y[:50])
    assert np.array_equal(model.components_, np.eye(4))
    assert model.certificate_.objective < 1e-12
    assert model.certificate_.verify(X[:50], Y[:50]).gap < 1e-15


def test_a_class_with_one_row_counts_as_never_right():
    labels = Y.copy()
    labels[7] = 5
    model = NeighborhoodComponentsAnalysis().fit(X, labels)
    assert model.certificate_.objective > 1 / 150
    model.certificate_.verify(X, labels)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.integers(2, 40),
    columns=st.integers(1, 8),
    classes=st.integers(1, 4),
    values=st.sampled_from(["normal", "few", "constant column", "all equal", "integers"]),
    scale=st.sampled_from([1e-150, 1e-8, 1.0, 1e4, 1e100]),
    init=st.sampled_from(["auto", "pca", "lda", "identity", "random", "whitening"]),
    components=st.sampled_from([None, 1, 2]),
    weighted=st.booleans(),
    single=st.booleans(),
    seed=st.integers(0, 9),
)
def test_any_table_gives_a_map_that_is_confirmed(
    rows, columns, classes, values, scale, init, components, weighted, single, seed
):
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((rows, columns))
    if values == "few":
        table = np.round(table)
    elif values == "constant column":
        table[:, 0] = 3.0
    elif values == "all equal":
        table[:] = 1.5
    elif values == "integers":
        table = rng.integers(-50, 50, (rows, columns)).astype(float)
    table *= min(scale, 1e8) if single else scale
    labels = rng.integers(0, classes, rows)
    weight = rng.integers(0, 3, rows) + (rng.random(rows) if seed % 2 else 0.0) if weighted else None
    if weight is not None and not weight.any():
        weight[0] = 1
    components = None if components is None else min(components, columns)
    model = NeighborhoodComponentsAnalysis(components, init=init, random_state=seed, max_iter=12)
    table = table.astype(np.float32) if single else table
    kept = np.arange(rows) if weight is None else np.flatnonzero(weight)
    if init == "pca" and (components or columns) > rows:
        with pytest.raises(InputError, match="as there are rows"):
            model.fit(table, labels, weight)
        return
    model.fit(table, labels, weight)
    assert np.isfinite(model.components_).all()
    assert 0 <= model.certificate_.objective <= 1
    model.certificate_.verify(table, labels, weight)
    counted = None if weight is None else weight[kept]
    expected = oracle.loss(model.components_.astype(float), table.astype(float)[kept], labels[kept], counted)
    assert abs(expected - model.certificate_.objective) <= 2 * model.certificate_.rounding + 1e-12


@pytest.mark.parametrize("columns", [90, 2000])
def test_more_columns_than_rows(columns):
    rng = np.random.default_rng(0)
    table, labels = rng.standard_normal((60, columns)), rng.integers(0, 3, 60)
    for components in (2, 40):
        model = NeighborhoodComponentsAnalysis(components, max_iter=10).fit(table, labels)
        assert model.components_.shape == (components, columns)
        model.certificate_.verify(table, labels)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"n_components": 5}, "n_components` (5) cannot be greater"),
        ({"n_components": 0}, "n_components=0"),
        ({"init": "whatever"}, "init='whatever'"),
        ({"init": np.ones((2, 3))}, "The input dimensionality (3) of the given"),
        ({"init": np.ones(4)}, "has 1 axes. Pass an array of shape (n_components, 4)"),
        ({"init": None}, "Pass an array of shape (n_components, 4)"),
        ({"init": np.ones((0, 4))}, "init has no rows"),
        ({"init": [["a"]]}, "is neither a name nor numbers"),
        ({"init": [[1.0, 2.0], [3.0]]}, "is neither a name nor numbers"),
        ({"init": np.ones((5, 4))}, "cannot be greater than its input dimensionality (4)"),
        ({"init": np.full((2, 4), np.nan)}, "init holds NaN"),
        ({"init": 1e200 * np.eye(4)}, "squared distances overflow"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"tol": -1.0}, "tol=-1.0"),
        ({"callback": 3}, "callback=3 cannot be called"),
        ({"time_limit": 0}, "time_limit=0"),
        ({"random_state": "x", "init": "random"}, "random_state"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_parameters_that_cannot_be_used_are_named(parameters, sentence):
    with pytest.raises(InputError, match=re.escape(sentence)):
        NeighborhoodComponentsAnalysis(**parameters).fit(X, Y)


def test_tables_that_cannot_be_used_are_named():
    broken = X.copy()
    broken[3, 2] = np.nan
    for table, labels, sentence in [
        (broken, Y, "contains NaN"),
        (sp.csr_array(X), Y, "X is sparse"),
        (X, None, "requires y"),
        (X[:1], Y[:1], "1 sample"),
        (X, X[:, 0], "Unknown label type"),
        (np.full((4, 2), 1e200), [0, 0, 1, 1], "overflow"),
    ]:
        with pytest.raises(InputError, match=sentence):
            NeighborhoodComponentsAnalysis().fit(table, labels)


def test_a_fit_that_fails_leaves_the_map_as_it_was():
    model = NeighborhoodComponentsAnalysis().fit(X, Y)
    before = model.components_.copy()
    with pytest.raises(InputError):
        model.fit(X, None)
    assert np.array_equal(model.components_, before)


def test_nothing_is_said_where_the_fit_ends_by_its_own_rule():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        NeighborhoodComponentsAnalysis(max_iter=200).fit(X, Y)


def test_a_start_from_which_nothing_leads_on_is_named():
    X, y = load_iris(return_X_y=True)
    far = NeighborhoodComponentsAnalysis(init="identity").fit(1e4 * X, y)
    assert "every row picks its nearest for sure" in str(far.certificate_)
    assert not NeighborhoodComponentsAnalysis(2).fit(X, y).certificate_.notes
