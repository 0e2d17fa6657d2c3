"""Graphs, radii, transfer, limits and Ctrl-C, certificates, and input that is refused in a sentence."""

import dataclasses
import os
import signal
import threading
import time

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from sixfold import KNeighborsClassifier, KNeighborsRegressor
from sixfold.errors import CertificateError, InputError, TimeLimitReached

LINE = np.array([[0.0], [1.0], [2.0], [4.0], [8.0]])
LABELS = list("abaab")


@pytest.fixture
def model():
    return KNeighborsClassifier(2).fit(LINE, LABELS)


# -- graphs and radii -----------------------------------------------------------------------------------


def test_graphs_join_rows_with_their_neighbours(model):
    graph = model.kneighbors_graph([[0.0], [5.0]])
    assert sp.issparse(graph)
    assert graph.format == "csr"
    np.testing.assert_array_equal(graph.toarray(), [[1, 1, 0, 0, 0], [0, 0, 1, 1, 0]])
    graph = model.kneighbors_graph([[0.5], [5.0]], n_neighbors=1, mode="distance")
    np.testing.assert_array_equal(graph.toarray(), [[0.5, 0, 0, 0, 0], [0, 0, 0, 1, 0]])
    own = model.kneighbors_graph(n_neighbors=1)
    np.testing.assert_array_equal(own.toarray(), np.eye(5)[[1, 0, 1, 2, 3]])


@pytest.mark.parametrize("algorithm", ["auto", "brute", "kd_tree"])
def test_a_radius_includes_its_boundary(algorithm):
    model = KNeighborsClassifier(1, algorithm=algorithm).fit(LINE, LABELS)
    distances, rows = model.radius_neighbors([[2.0], [100.0], [2.5]], radius=2.0)
    assert [r.tolist() for r in rows] == [[0, 1, 2, 3], [], [1, 2, 3]]
    assert [d.tolist() for d in distances] == [[2.0, 1.0, 0.0, 2.0], [], [1.5, 0.5, 1.5]]
    distances, rows = model.radius_neighbors([[2.0]], radius=2.0, sort_results=True)
    assert rows[0].tolist() == [2, 1, 0, 3]
    assert distances[0].tolist() == [0.0, 1.0, 2.0, 2.0]
    own = model.radius_neighbors(radius=1.0, return_distance=False)
    assert [r.tolist() for r in own] == [[1], [0, 2], [1], [], []]
    graph = model.radius_neighbors_graph([[2.0], [100.0]], radius=2.0, mode="distance")
    np.testing.assert_array_equal(graph.toarray(), [[2, 1, 0, 2, 0], [0, 0, 0, 0, 0]])
    assert graph.nnz == 4
    np.testing.assert_array_equal(model.radius_neighbors_graph([[2.0]], 2.0).toarray(), [[1, 1, 1, 1, 0]])


@pytest.mark.parametrize(
    "metric", ["euclidean", "sqeuclidean", "manhattan", "chebyshev", "cosine", "hamming", "gower"]
)
def test_every_distance_is_within_itself(metric):
    random = np.random.default_rng(0)
    X, Q = random.integers(0, 3, size=(80, 7)).astype(float), random.integers(0, 3, size=(4, 7)).astype(float)
    model = KNeighborsClassifier(80, metric=metric).fit(X, random.integers(0, 2, size=80))
    every, order = model.kneighbors(Q)
    for radius in np.unique(every):
        distances, rows = model.radius_neighbors(Q, radius=radius)
        for i in range(4):
            np.testing.assert_array_equal(rows[i], np.sort(order[i][every[i] <= radius]))
            assert distances[i].max(initial=0.0) <= radius


def test_a_share_of_columns_is_a_radius():
    X = np.tril(np.ones((50, 49)), -1)  # row i differs in i columns from zeros
    model = KNeighborsClassifier(1, metric="hamming").fit(X, np.arange(50) % 2)
    for count in range(50):
        assert model.radius_neighbors(np.zeros((1, 49)), count / 49)[1][0].size == count + 1


def test_rows_of_weight_zero_are_within_no_radius():
    model = KNeighborsClassifier(1).fit(LINE, LABELS, [1.0, 0.0, 1.0, 1.0, 1.0])
    distances, rows = model.radius_neighbors([[1.0]], 1.0)
    assert (rows[0].tolist(), distances[0].tolist()) == ([0, 2], [1.0, 1.0])


# -- transfer -------------------------------------------------------------------------------------------


def test_anything_is_handed_on_from_the_nearest_rows(model):
    Q = [[0.2], [7.0]]
    assert model.transfer(Q, ["one", None, {"three": 3}, 4.0, "five"]) == ["one", "five"]
    assert model.transfer(Q, tuple("abcde"), n_neighbors=2) == [["a", "b"], ["e", "d"]]
    masks = np.arange(20).reshape(5, 2, 2)
    np.testing.assert_array_equal(model.transfer(Q, masks), masks[[0, 4]])
    np.testing.assert_array_equal(model.transfer(Q, masks, n_neighbors=2), masks[[[0, 1], [4, 3]]])
    frame = pd.DataFrame({"name": list("abcde"), "size": range(5)}, index=list("vwxyz"))
    pd.testing.assert_frame_equal(model.transfer(Q, frame), frame.iloc[[0, 4]])
    several = model.transfer(Q, frame, n_neighbors=2)
    pd.testing.assert_frame_equal(several[1], frame.iloc[[4, 3]])
    assert model.transfer(Q, frame["name"]).tolist() == ["a", "e"]
    table = pl.DataFrame({"name": list("abcde")})
    assert model.transfer(Q, table).equals(table[[0, 4]])
    assert model.transfer(Q, table["name"]).to_list() == ["a", "e"]


def test_a_payload_of_another_length_is_refused(model):
    with pytest.raises(InputError, match=r"payload has 4 entries for 5 training rows. Pass one for each."):
        model.transfer([[1.0]], "abcd")
    with pytest.raises(
        InputError, match=r"payload is of type int. Pass a sequence, one entry a training row."
    ):
        model.transfer([[1.0]], 7)


# -- limits ---------------------------------------------------------------------------------------------


def slow(q, x):
    time.sleep(1e-4)
    return abs(q[0] - x[0])


LONG = {
    "function": lambda r: (KNeighborsClassifier(3, metric=slow), r.normal(size=(200, 1))),
    "gower": lambda r: (KNeighborsClassifier(3, metric="gower"), r.normal(size=(20_000, 30))),
    "euclidean": lambda r: (KNeighborsRegressor(3), r.uniform(size=(40_000, 200))),
    "manhattan": lambda r: (KNeighborsRegressor(3, metric="manhattan"), r.uniform(size=(40_000, 200))),
    "minkowski": lambda r: (KNeighborsRegressor(3, p=3.5), r.uniform(size=(10_000, 200))),
}
every_long_query = pytest.mark.parametrize("name", LONG)


def long_query(name):
    model, X = LONG[name](np.random.default_rng(0))
    model.fit(X, np.arange(len(X)) % 2)
    return model, X if len(X) > 10_000 else np.tile(X, (40_000 // len(X), 1))


@every_long_query
def test_ctrl_c_stops_a_long_query_and_the_model_answers_the_next(name):
    model, X = long_query(name)
    expected = model.predict(X[:1])
    press = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    press.start()
    with pytest.raises(KeyboardInterrupt):
        model.predict(X)
    press.join()
    assert model._store.stats.queries < len(X)  # it was not answered to the end first
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    np.testing.assert_array_equal(model.predict(X[:1]), expected)


@every_long_query
@pytest.mark.parametrize("ask", ["predict", "kneighbors", "radius_neighbors"])
def test_a_time_limit_raises_and_the_model_answers_the_next(name, ask):
    model, X = long_query(name)
    model.set_params(time_limit=0.05)
    with pytest.raises(
        TimeLimitReached, match=r"stopped by time_limit=0.05 s before it was answered. Allow more"
    ):
        getattr(model, ask)(X)
    model.set_params(time_limit=None)
    assert model.kneighbors(X[:1], 1, return_distance=False) == [[0]]


def test_an_error_while_answers_are_made_gives_ctrl_c_back(model):
    model.set_params(weights=lambda d: d[:1, :1])
    with pytest.raises(InputError) as caught:
        model.predict(LINE)
    assert caught.value.__traceback__ is not None  # whose frames are still there
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


# -- certificates ---------------------------------------------------------------------------------------


def test_the_certificate_counts_what_was_computed():
    random = np.random.default_rng(1)
    X, y = random.normal(size=(300, 4)), random.integers(0, 2, size=300)
    model = KNeighborsClassifier(3).fit(X, y)
    certificate = model.certificate_
    assert certificate.kind == "exact search"
    assert certificate.gap == 0
    assert certificate.details["queries"] == certificate.details["distances_computed"] == 0
    model.predict(X[:50])
    model.kneighbors(X[:10])
    details = model.certificate_.details
    assert details["algorithm"] == model.algorithm_
    assert details["queries"] == 60
    assert details["distances_computed"] + details["distances_ruled_out"] == 60 * 300
    assert details["distances_computed"] >= 60 * 3
    assert "exact search" in str(model.certificate_)
    assert f"of {60 * 300:,}" in str(model.certificate_)


TABLES = {
    "dense": (lambda X: X, {}),
    "bytes": (lambda X: (X * 40 + 128).clip(0, 255).astype(np.uint8), {"metric": "manhattan"}),
    "float32": (lambda X: X.astype(np.float32), {"metric": "cosine"}),
    "sparse": (lambda X: sp.csr_array(np.where(X > 0, X, 0)), {"metric": "cosine"}),
    "missing": (lambda X: np.where(X > 1.5, np.nan, X), {"metric": "gower"}),
    "mahalanobis": (lambda X: X, {"metric": "mahalanobis"}),
    "function": (lambda X: X, {"metric": lambda q, x: abs(q - x).sum()}),
    "precomputed": (lambda X: np.abs(X[:, :1] - X[:, :1].T), {"metric": "precomputed"}),
}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_certificate_can_be_verified_and_fails_for_other_data(table, weighted):
    random = np.random.default_rng(2)
    kind, options = TABLES[table]
    X, y = kind(random.normal(size=(150, 3))), random.integers(0, 3, size=150)
    weight = random.choice([0.0, 1.0, 2.0], size=150) if weighted else None
    for model in (KNeighborsClassifier(3, **options), KNeighborsRegressor(3, **options)):
        model.fit(X, y, weight)
        certificate = model.certificate_
        assert certificate.verify(X, y, weight).objective == pytest.approx(0.0, abs=1e-11)
        other = X.copy()
        other[77, 1] = other[76, 1] + 3
        with pytest.raises(
            CertificateError,
            match=r"1 of 150 rows .* the first of them row 77",
        ):
            certificate.verify(other, y, weight)
        with pytest.raises(CertificateError, match="The targets are not those of the fit"):
            certificate.verify(X, np.roll(y, 1), weight)
        with pytest.raises(CertificateError, match="keeps 150 rows, but X has 149"):
            certificate.verify(X[:-1], y[:-1], None)
        if weighted:
            with pytest.raises(CertificateError, match="Other rows have weight 0"):
                certificate.verify(X, y, np.roll(weight, 1))
        with pytest.raises(CertificateError, match="objective"):
            dataclasses.replace(certificate, objective=0.01).bind(model).verify(X, y, weight)


def test_a_kept_row_that_was_changed_is_noticed():
    random = np.random.default_rng(3)
    X, y = random.normal(size=(400, 3)), random.integers(0, 2, size=400)
    model = KNeighborsClassifier(3).fit(X.copy(), y)
    model._store.rows[333, 1] += 1e-9
    with pytest.raises(CertificateError):
        model.certificate_.verify(X, y)


def test_one_row_has_a_certificate():
    model = KNeighborsClassifier(1).fit([[1.0]], ["a"])
    model.certificate_.verify([[1.0]], ["a"])
    assert model.predict([[5.0]]) == ["a"]


# -- bad input ------------------------------------------------------------------------------------------


def refuses(message):
    return pytest.raises(InputError, match=f"(?s){message}")


def test_more_neighbours_than_rows_are_refused(model):
    with refuses("n_neighbors = 6, n_samples_fit = 5, n_samples = 1: a row has at most 5 .* Ask for fewer"):
        model.kneighbors([[1.0]], n_neighbors=6)
    with refuses("n_neighbors = 5, .*: a row has at most 4 neighbours other than itself.* Ask for fewer"):
        model.kneighbors(n_neighbors=5)
    with refuses("at most 5 neighbours"):
        KNeighborsRegressor(6).fit(LINE, range(5)).predict([[1.0]])
    with refuses("n_samples_fit = 2, .* training rows of positive weight"):
        KNeighborsRegressor(3).fit(LINE, range(5), [1.0, 0.0, 0.0, 1.0, 0.0]).predict([[1.0]])


@pytest.mark.parametrize("k", [0, -1, 2.5, "five", None, True])
def test_a_number_of_neighbours_is_a_whole_number_from_one(k, model):
    with refuses(f"n_neighbors={k!r} .*"):
        KNeighborsClassifier(k).fit(LINE, LABELS)
    if k is not None:
        with refuses(f"n_neighbors={k!r} .*"):
            model.kneighbors([[1.0]], n_neighbors=k)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": "distances"}, "weights='distances' is not an option; did you mean 'distance'"),
        ({"algorithm": "kdtree"}, "algorithm='kdtree' is not an option; did you mean 'kd_tree'"),
        ({"leaf_size": 0}, "leaf_size=0"),
        ({"p": 0}, "p=0"),
        ({"metric": "euclid"}, "metric='euclid' is not an option; did you mean 'euclidean'"),
        ({"metric_params": [1]}, r"metric_params=\[1\] is no dictionary"),
        ({"metric_params": {"q": 1}}, "has no parameter 'q'"),
        ({"time_limit": 0}, "time_limit=0"),
        ({"class_weight": "balance"}, "class_weight='balance' is neither"),
    ],
)
def test_bad_parameters_are_refused(options, message):
    with refuses(message):
        KNeighborsClassifier(2, **options).fit(LINE, LABELS)


def test_weights_that_do_not_fit_are_refused(model):
    with refuses("sample_weight.* 4.* 5|4 .*5"):
        KNeighborsClassifier(2).fit(LINE, LABELS, [1.0] * 4)
    for bad in ([1.0, -1.0, 1.0, 1.0, 1.0], [1.0, np.nan, 1.0, 1.0, 1.0], [0.0] * 5):
        with refuses("sample_weight|weight 0"):
            KNeighborsClassifier(2).fit(LINE, LABELS, bad)
    for function, message in {
        lambda d: d[
            :, :1
        ]: r"weights returned an array of shape \(5, 1\) for distances of shape \(5, 2\). Return",
        lambda d: d - 1.0: "weights returned -1.0 for the distance 0 of query 0, counted from 0. Weights are",
        lambda d: d * np.nan: "weights returned nan for the distance",
        lambda d: np.where(d > 3, 1.0, 0.0): "weights returned 0 for every neighbour of query 0, .* Return a",
    }.items():
        with refuses(message):
            model.set_params(weights=function).predict(LINE)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "mahalanobis", "hamming", slow])
def test_missing_values_are_refused_naming_the_distances_that_take_them(metric):
    gaps = np.where(LINE == 4.0, np.nan, LINE)
    message = "NaN.*metric='nan_euclidean' and metric='gower' take missing values, which"
    with refuses(message):
        KNeighborsClassifier(2, metric=metric).fit(gaps, LABELS)
    with refuses(message):
        KNeighborsClassifier(2, metric=metric).fit(LINE, LABELS).predict(gaps)


@pytest.mark.parametrize("metric", ["euclidean", "nan_euclidean", "gower"])
def test_infinite_values_are_refused(metric):
    with refuses("infinity.*"):
        KNeighborsClassifier(2, metric=metric).fit(np.where(LINE == 4.0, np.inf, LINE), LABELS)


def test_a_function_that_is_no_distance_is_refused():
    for value in (np.nan, -1.0, "x"):
        with refuses("metric=<lambda> returned .* for the query .*0 or more: correct the function"):
            KNeighborsClassifier(2, metric=lambda q, x, v=value: v).fit(LINE, LABELS).predict(LINE)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_columns_of_text_are_refused_naming_gower(kind):
    table = kind({"size": [1.0, 2.0, 3.0], "colour": ["red", "blue", "red"]})
    with refuses("metric='gower' takes columns of numbers and of categories"):
        KNeighborsClassifier(2).fit(table, ["a", "b", "a"])
    with refuses("metric='gower' takes columns of numbers and of categories"):
        KNeighborsClassifier(2).fit([[1.0, "red"], [2.0, "blue"]], ["a", "b"])


@pytest.mark.parametrize("metric", ["mahalanobis", "hamming", "gower", "nan_euclidean", slow])
def test_sparse_rows_are_refused_by_distances_that_do_not_take_them(metric):
    with refuses("sparse.*(toarray|dense)"):
        KNeighborsClassifier(2, metric=metric).fit(sp.csr_array(np.eye(5)), LABELS)


def test_distances_that_are_none_are_refused():
    D = np.abs(LINE - LINE.T)
    with refuses(r"square matrix .* X has shape \(5, 4\). Pass the distance of every training row"):
        KNeighborsClassifier(2, metric="precomputed").fit(D[:, :4], LABELS)
    with refuses("Negative values .* -1.0 in row 0, column 1. Distances are 0 or more"):
        KNeighborsClassifier(2, metric="precomputed").fit(np.where(D == 1.0, -1.0, D), LABELS)
    model = KNeighborsClassifier(2, metric="precomputed").fit(D, LABELS)
    with refuses("Negative values"):
        model.predict(-D)
    with refuses("3 features, .* 5 features"):
        model.predict(D[:, :3])
    with refuses("partial_fit adds rows, .* Fit on the distances of all rows"):
        model.partial_fit(D, LABELS)


def test_rows_that_are_added_must_be_like_those_before(model):
    with refuses("2 features, .* 1 features"):
        model.partial_fit([[1.0, 2.0]], ["a"])
    with refuses("y has number labels such as 7, but the rows before had text"):
        model.partial_fit([[1.0]], [7])
    with refuses("y has 2 columns of labels, but the rows before had 1"):
        model.partial_fit([[1.0]], [["a", "b"]])
    with refuses("y has 2 columns, but the rows before had 1"):
        KNeighborsRegressor(1).fit(LINE, range(5)).partial_fit([[1.0]], [[1.0, 2.0]])
    assert model.n_samples_fit_ == 5
    assert model.predict([[2.0]]) == ["a"]


def test_reading_a_certificate_computes_nothing():
    calls = []

    def counted(q, x):
        calls.append(1)
        return abs(q[0] - x[0])

    X = np.arange(50.0)[:, None]
    model = KNeighborsClassifier(2, metric=counted).fit(X, X[:, 0] > 9)
    assert "as if every distance were computed" in str(model.certificate_)
    assert not calls
    model.certificate_.verify(X, X[:, 0] > 9)
    assert calls


def test_a_single_query_of_a_slow_function_is_stopped_on_the_way():
    calls = []

    def slowly(q, x):
        calls.append(1)
        time.sleep(1e-3)
        return 0.0

    X = np.arange(3000.0)[:, None]
    model = KNeighborsClassifier(1, metric=slowly, time_limit=0.05).fit(X, X[:, 0] > 9)
    with pytest.raises(TimeLimitReached):
        model.predict(X[:1])
    assert len(calls) < 1000


def test_rows_that_were_made_anew_are_the_same_but_for_rounding():
    X = np.random.default_rng(0).normal(size=(40, 3))
    model = KNeighborsRegressor().fit(X, X[:, 0])
    model.certificate_.verify(X * (1.0 + 2e-16), X[:, 0])
    with pytest.raises(CertificateError, match="40 of 40 rows of X are not what the model keeps"):
        model.certificate_.verify(X * (1.0 + 1e-9), X[:, 0])
