"""Nearest neighbours and their answers against a plain search: every distance, ordered by (distance, row)."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import linear as oracles
from sixfold import KNeighborsClassifier, KNeighborsRegressor
from sixfold.geometry.distances import make_distance

METRICS = {
    "euclidean": {},
    "sqeuclidean": {},
    "manhattan": {},
    "chebyshev": {},
    "minkowski": {"p": 3},
    "cosine": {},
    "seuclidean": {},
    "mahalanobis": {},
    "hamming": {},
    "nan_euclidean": {},
    "gower": {},
}
SPARSE = ("euclidean", "sqeuclidean", "manhattan", "chebyshev", "cosine", "minkowski")
LINE = np.array([[0.0], [1.0], [2.0], [4.0], [8.0]])
every_metric = pytest.mark.parametrize("metric", METRICS)


def distances(metric, X, Q):
    """Return all distances, of rows as the distance compares them, each by the oracle's formula."""
    distance = make_distance(metric, X, **METRICS[metric])
    if distance.measure is None:
        return distance.between(Q, X)
    X, Q = distance.embed(X), distance.embed(Q, query=True)
    measured = np.array([[oracles.distance(x, q, *distance.measure) for x in X] for q in Q])
    return distance.reported(measured)


def nearest(D, k):
    """Return the k smallest of each row of distances, equal ones by column."""
    rows = np.array([sorted(range(len(d)), key=lambda j: (d[j], j))[:k] for d in D])
    return np.take_along_axis(D, rows, axis=1), rows


def fitted(X, k=3, metric="euclidean", y=None, **options):
    options = {"metric_params": METRICS.get(metric) or None, **options}
    y = np.arange(X.shape[0]) % 3 if y is None else y
    return KNeighborsClassifier(n_neighbors=k, metric=metric, **options).fit(X, y)


def agree(metric, found, expected):
    # The last bit of a power or a matrix product is the library's; rows of equal distance are still equal.
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-14 if metric == "minkowski" else 0, atol=0)
    np.testing.assert_array_equal(found[1], expected[1])


TABLES = {
    "ties": lambda r: r.integers(0, 3, size=(60, 4)).astype(float),
    "one column": lambda r: r.integers(0, 9, size=(40, 1)).astype(float),
    "duplicates": lambda r: np.repeat(r.normal(size=(12, 6)), 4, axis=0),
    "constant columns": lambda r: np.column_stack([np.full(50, 7.0), r.normal(size=50), np.zeros(50)]),
    "one row": lambda r: r.normal(size=(1, 5)),
    "wide": lambda r: r.normal(size=(30, 150)),
    "offset": lambda r: 1e8 + r.integers(0, 50, size=(60, 3)) / 64,
    "tiny": lambda r: r.normal(size=(30, 4)) * 1e-150,
    "subnormal": lambda r: r.integers(0, 9, size=(30, 2)) * 5e-324,
    "scales": lambda r: r.normal(size=(40, 3)) * [1e-9, 1.0, 1e9],
}


@every_metric
@pytest.mark.parametrize("table", TABLES)
def test_neighbours_are_those_of_a_plain_search(metric, table):
    random = np.random.default_rng(0)
    X = TABLES[table](random)
    Q = np.concatenate([X[:6], X[::-1][:6] * 1.5, X[:1] * 0])
    D = distances(metric, X, Q)
    for k in {1, min(3, len(X)), len(X)}:
        found, expected = fitted(X, k, metric).kneighbors(Q), nearest(D, k)
        if metric == "minkowski":  # powers that differ in the last bit may change places
            found = found[0], expected[1]
        agree(metric, found, expected)


@every_metric
@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.int64, bool])
def test_other_types_of_numbers_give_the_same_neighbours(metric, dtype):
    random = np.random.default_rng(1)
    X = random.integers(0, 2 if dtype is bool else 200, size=(50, 9)).astype(dtype)
    Q = random.integers(0, 2 if dtype is bool else 200, size=(8, 9)).astype(dtype)
    D = distances(metric, X.astype(float), Q.astype(float))
    agree(metric, fitted(X, 4, metric).kneighbors(Q), nearest(D, 4))


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev", "hamming", "cosine"])
@pytest.mark.parametrize("trained", [np.float64, np.float32, np.uint8])
@pytest.mark.parametrize("asked", [np.float64, np.float32, np.uint8])
def test_queries_may_be_of_another_type_than_the_training_rows(metric, trained, asked):
    random = np.random.default_rng(2)
    X = (random.uniform(0, 255, size=(40, 12))).astype(trained)
    Q = (random.uniform(0, 255, size=(7, 12))).astype(asked)
    D = distances(metric, X.astype(float), Q.astype(float))
    agree(metric, fitted(X, 5, metric).kneighbors(Q), nearest(D, 5))


@pytest.mark.parametrize("metric", SPARSE)
@pytest.mark.parametrize(
    "kinds", [(sp.csr_array, sp.csr_array), (sp.csc_matrix, np.asarray), (np.asarray, sp.coo_array)]
)
def test_sparse_rows_have_the_neighbours_of_dense_ones(metric, kinds):
    random = np.random.default_rng(3)
    X = np.round(random.normal(size=(60, 25)) * (random.uniform(size=(60, 25)) < 0.2), 1)
    X[7] = X[8] = 0
    Q = np.concatenate([X[5:12], X[:3] + 0.5])
    D = distances(metric, X, Q)
    agree(metric, fitted(kinds[0](X), 6, metric).kneighbors(kinds[1](Q)), nearest(D, 6))


def test_entries_of_a_sparse_row_that_are_given_in_parts_are_added_up():
    parts = sp.csr_array((np.array([1.0, 2.0, 5.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    found = fitted(parts, 1, "cosine").kneighbors([[0.0, 1.0]])
    np.testing.assert_array_equal(found, ([[0.0]], [[0]]))


small_tables = st.tuples(st.integers(1, 12), st.integers(1, 4)).flatmap(
    lambda shape: st.tuples(
        st.lists(
            st.lists(st.integers(-2, 2), min_size=shape[1], max_size=shape[1]),
            min_size=shape[0],
            max_size=shape[0],
        ),
        st.lists(st.lists(st.integers(-3, 3), min_size=shape[1], max_size=shape[1]), min_size=1, max_size=4),
        st.integers(1, shape[0]),
    )
)


@every_metric
@settings(max_examples=25, deadline=None)
@given(
    table=small_tables, scale=st.sampled_from([1.0, 1e-160, 1e100, 1 / 3]), offset=st.sampled_from([0.0, 1e8])
)
def test_equal_distances_are_ordered_by_row(metric, table, scale, offset):
    X, Q, k = np.array(table[0]) * scale + offset, np.array(table[1]) * scale + offset, table[2]
    agree(metric, fitted(X, k, metric).kneighbors(Q), nearest(distances(metric, X, Q), k))


@pytest.mark.parametrize("metric", [name for name in METRICS if name != "mahalanobis"])
def test_neither_algorithm_nor_threads_nor_the_order_of_columns_change_an_answer(metric):
    random = np.random.default_rng(4)
    X = np.concatenate([random.normal(size=(300, 7)), random.integers(0, 2, size=(100, 7))])
    Q, order = np.concatenate([X[::20], random.normal(size=(20, 7))]), random.permutation(7)
    expected = fitted(X, 6, metric).kneighbors(Q)
    for options in (
        {"algorithm": "kd_tree"},
        {"algorithm": "brute"},
        {"algorithm": "ball_tree", "leaf_size": 3},
        {"n_jobs": 1},
        {"n_jobs": 2},
    ):
        found = fitted(X, 6, metric, **options).kneighbors(Q)
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(fitted(X[:, order], 6, metric).kneighbors(Q[:, order]), expected)


def test_one_query_has_the_answer_it_has_among_many():
    random = np.random.default_rng(5)
    X, Q = random.normal(size=(500, 20)), random.normal(size=(40, 20))
    for metric in METRICS:
        model = fitted(X, 5, metric)
        expected = model.kneighbors(Q)
        for i in range(0, 40, 7):
            np.testing.assert_array_equal(
                model.kneighbors(Q[i : i + 1]), (expected[0][[i]], expected[1][[i]])
            )


def test_given_distances_and_functions_are_used_as_they_are():
    random = np.random.default_rng(6)
    between_rows, Q = random.integers(0, 5, size=(20, 20)), random.integers(0, 5, size=(4, 20)).astype(float)
    agree("precomputed", fitted(between_rows, 5, "precomputed").kneighbors(Q), nearest(Q, 5))
    numbers = np.arange(20.0)[:, None]
    model = fitted(numbers, 5, lambda q, x: Q[int(q[0]), int(x[0])])
    agree("a function", model.kneighbors(numbers[:4]), nearest(Q, 5))


# -- leaving one out, adding rows ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [KNeighborsClassifier, KNeighborsRegressor])
@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_leaving_one_out_is_fitting_without_it(kind, weights):
    random = np.random.default_rng(8)
    X = random.integers(0, 3, size=(40, 2)).astype(float)  # many duplicates
    y, weight = random.integers(0, 3, size=40), random.choice([0.0, 1.0, 2.0], size=40)
    model = kind(4, weights=weights).fit(X, y, weight)
    answers, (found, rows) = model.loo_predict(), model.kneighbors()
    for i in range(40):
        others = np.arange(40) != i
        alone = kind(4, weights=weights).fit(X[others], y[others], weight[others])
        assert answers[i] == alone.predict(X[[i]])[0]
        expected = alone.kneighbors(X[[i]])
        np.testing.assert_array_equal(found[[i]], expected[0])
        np.testing.assert_array_equal(rows[[i]], np.flatnonzero(others)[expected[1]])


@pytest.mark.parametrize("metric", [*METRICS, "sparse"])
@pytest.mark.parametrize("asked", [False, True])
def test_adding_rows_is_fitting_on_all_of_them(metric, asked):
    random = np.random.default_rng(9)
    X, y = random.integers(0, 4, size=(60, 5)).astype(float), np.repeat(["a", "c", "b"], 20)
    weight = random.choice([0.0, 1.0, 2.0], size=60)
    kind = sp.csr_array if metric == "sparse" else np.asarray
    options = {
        "metric": "cosine" if metric == "sparse" else metric,
        "metric_params": METRICS.get(metric) or None,
    }
    whole = KNeighborsClassifier(5, **options).fit(X, y, weight)
    model = KNeighborsClassifier(5, **options)
    for part in (slice(0, 15), slice(15, 16), slice(16, 60)):  # "b" comes last
        model.partial_fit(kind(X[part]), y[part], sample_weight=weight[part])
        if asked:
            model.predict(X[:3])
    assert model.classes_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(model.kneighbors(X), whole.kneighbors(X))
    np.testing.assert_array_equal(model.predict_proba(X), whole.predict_proba(X))
    np.testing.assert_array_equal(model.loo_predict(), whole.loo_predict())
    model.certificate_.verify(X, y, weight)


def test_rows_may_be_added_to_averages_and_to_several_columns():
    random = np.random.default_rng(10)
    X, y = random.normal(size=(30, 2)), random.integers(0, 3, size=(30, 2))
    for kind in (KNeighborsRegressor, KNeighborsClassifier):
        model = kind(3).partial_fit(X[:9], y[:9]).partial_fit(X[9:], y[9:])
        np.testing.assert_array_equal(model.predict(X), kind(3).fit(X, y).predict(X))


def test_classes_without_rows_can_be_named():
    model = KNeighborsClassifier(1).partial_fit([[0.0]], ["b"], classes=["a", "b", "c"])
    np.testing.assert_array_equal(model.predict_proba([[1.0]]), [[0.0, 1.0, 0.0]])


def test_classes_that_are_none_leave_the_model_as_it_was():
    model = KNeighborsClassifier(1).fit(LINE, list("abcab"))
    with pytest.raises(ValueError, match="Labels must be all of one kind"):
        model.partial_fit(LINE + 9.0, list("abcab"), classes=[1, 2])
    assert model.n_samples_fit_ == 5
    model.certificate_.verify(LINE, list("abcab"))
    unfitted = KNeighborsClassifier(1)
    with pytest.raises(ValueError, match="Labels must be all of one kind"):
        unfitted.partial_fit(LINE, list("abcab"), classes=[1, 2])
    assert not hasattr(unfitted, "classes_")


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    model = KNeighborsClassifier(1).fit(LINE, list("abcab"))
    model.set_params(metric="mahalanobis", metric_params={"V": -np.eye(1)})
    with pytest.raises(ValueError, match="eigenvalue"):
        model.fit(LINE * 7, list("bbbba"))
    assert model.predict([[2.1]]) == ["c"]
    unfitted = KNeighborsClassifier(1, metric="mahalanobis", metric_params={"V": -np.eye(1)})
    for _ in range(2):
        with pytest.raises(ValueError, match="eigenvalue"):
            unfitted.partial_fit(LINE, list("abcab"))


def test_parameters_set_after_the_fit_change_the_metric_at_the_next_one():
    model = KNeighborsClassifier(1).fit([[0.0, 3.0], [2.0, 2.0]], ["a", "b"])
    assert model.set_params(metric="chebyshev").predict([[0.0, 0.0]]) == ["b"]  # 3 and sqrt(8)
    model.set_params(metric="gower")
    assert model.predict([[0.0, 0.0]]) == ["b"]


def test_models_can_be_copied_and_pickled():
    random = np.random.default_rng(11)
    X, y = random.normal(size=(50, 3)), random.integers(0, 2, size=50)
    for metric in METRICS:
        model = fitted(X, 4, metric, y)
        for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
            np.testing.assert_array_equal(twin.kneighbors(X), model.kneighbors(X))
            np.testing.assert_array_equal(twin.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_rows_that_have_no_word_in_common_are_ordered_by_row(kind):
    random = np.random.default_rng(9)
    X = random.lognormal(size=(700, 60)) * (random.uniform(size=(700, 60)) < 0.05)
    Q = X[::50]
    model = fitted(kind(X), 650, "cosine")
    distances, rows = model.kneighbors(kind(Q))
    apart = (Q @ X.T == 0) | (np.linalg.norm(Q, axis=1)[:, None] == 0)
    for d, r, none in zip(distances, rows, apart, strict=True):
        assert (d[none[r]] == 1.0).all()
        last = r[none[r]]
        np.testing.assert_array_equal(last, np.flatnonzero(none)[: last.size])
    assert model.certificate_.verify(kind(X), np.arange(700) % 3)


@pytest.mark.filterwarnings("ignore:One or more of the test scores")
def test_a_metric_that_does_not_exist_is_left_out_of_a_grid():
    from sklearn.model_selection import GridSearchCV

    X = np.random.default_rng(0).normal(size=(60, 3))
    search = GridSearchCV(KNeighborsClassifier(), {"metric": ["euclidian", "euclidean"]}, cv=3)
    with pytest.warns(Warning, match="did you mean 'euclidean'"):
        search.fit(X, X[:, 0] > 0)
    assert search.best_params_ == {"metric": "euclidean"}


def test_many_neighbours_and_targets_are_answered_a_few_queries_at_a_time():
    random = np.random.default_rng(1)
    X, Y = random.normal(size=(300, 2)), random.normal(size=(300, 40))
    model = KNeighborsRegressor(299).fit(X, Y)
    sizes = []
    model._map_chunks(model._check_queries(X), lambda chunk, found: sizes.append(found.rows.size), 10**9)
    assert max(sizes) <= 1 << 20
    np.testing.assert_allclose(model.predict(X)[5], Y[model.kneighbors(X[5:6])[1][0]].mean(axis=0))
