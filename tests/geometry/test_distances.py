"""Every distance against its formula, written again here with correctly rounded sums, or against a peer."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial import distance as scipy_distance
from sklearn.covariance import ledoit_wolf
from sklearn.metrics.pairwise import nan_euclidean_distances, pairwise_distances

from sixfold.errors import InputError
from sixfold.geometry.distances import DISTANCES, OTHERS, Hamming, between, make_distance


def gaps(q, x):
    return [abs(float(a) - float(b)) for a, b in zip(q, x, strict=True)]


def powers(p):
    return lambda q, x, X: math.fsum(gap**p for gap in gaps(q, x)) ** (1 / p)


def euclidean(q, x, X=None):
    return math.sqrt(math.fsum(gap * gap for gap in gaps(q, x)))


def cosine(q, x, X=None):
    # Of rows divided by their largest entry, so that subnormal squares count.
    q, x = ([float(value) for value in row] for row in (q, x))
    if not any(q) or not any(x):
        return 1.0
    q, x = ([value / max(map(abs, row)) for value in row] for row in (q, x))
    length_q, length_x = math.hypot(*q), math.hypot(*x)
    return math.fsum((a / length_q - b / length_x) ** 2 for a, b in zip(q, x, strict=True)) / 2


def standardised(q, x, X):
    V = [np.var(column, ddof=1 if len(X) > 1 else 0) or 1.0 for column in np.asarray(X, dtype=float).T]
    return math.sqrt(math.fsum(gap * gap / v for gap, v in zip(gaps(q, x), V, strict=True)))


def gower(q, x, X):
    parts = []
    for a, b, column in zip(q, x, np.asarray(X, dtype=float).T, strict=True):
        if not math.isnan(a) and not math.isnan(b):
            span = np.nanmax(column) - np.nanmin(column)
            parts.append(abs(float(a) - float(b)) / span if span else float(a != b))
    return math.fsum(parts) / len(parts) if parts else math.inf


def nan_euclidean(q, x, X=None):
    parts = [gap * gap for gap in gaps(q, x) if not math.isnan(gap)]
    return math.sqrt(math.fsum(parts) * len(q) / len(parts)) if parts else math.inf


def manhattan(q, x, X):
    return math.fsum(gaps(q, x))


def chebyshev(q, x, X):
    return max(gaps(q, x))


FORMULAS = {
    "euclidean": euclidean,
    "l2": euclidean,
    "sqeuclidean": lambda q, x, X: math.fsum(gap * gap for gap in gaps(q, x)),
    "manhattan": manhattan,
    "cityblock": manhattan,
    "l1": manhattan,
    "chebyshev": chebyshev,
    "infinity": chebyshev,
    "minkowski": euclidean,
    "p": euclidean,
    "cosine": cosine,
    "seuclidean": standardised,
    "hamming": lambda q, x, X: sum(gap != 0 for gap in gaps(q, x)) / len(q),
    "nan_euclidean": nan_euclidean,
    "gower": gower,
}
every_formula = pytest.mark.parametrize("metric", FORMULAS)
# Those whose rows are not moved or scaled before they are compared: equal to the last bit.
TO_THE_BIT = set(FORMULAS) - {"cosine", "seuclidean", "nan_euclidean", "gower"}


def by_formula(metric, Q, X):
    return np.array([[FORMULAS[metric](q, x, X) for x in X] for q in Q])


def agree(metric, found, expected):
    if metric in TO_THE_BIT:
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=2.0**-40, atol=1e-15)


def test_every_name_of_the_table_is_tested_here():
    assert set(DISTANCES) == set(FORMULAS) | {"mahalanobis", "precomputed"}


# -- formulas ------------------------------------------------------------------------------------------------


@every_formula
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (7, 1), (1, 5), (9, 4), (20, 33)])
def test_distances_are_those_of_the_formula(metric, dtype, rows, columns):
    random = np.random.default_rng(rows * columns)
    X = (random.integers(0, 40, size=(rows, columns)) * 3.3).astype(dtype)
    X[:, 0] = 7  # constant
    X = np.concatenate([X, X[:1]])  # and a row twice
    Q = np.concatenate([X[:2], X[:2] + dtype(1), np.zeros((1, columns), dtype=dtype)])
    agree(metric, between(Q, X, metric), by_formula(metric, Q, X))


few = st.sampled_from([0.0, 1.0, -1.0, 0.1, 0.2, 0.3, 5e-324, -1e-310, 1e8, 1e8 + 1e-7, 1e8 + 2e-7])
tables = st.tuples(st.integers(1, 5), st.integers(1, 4)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=few | st.floats(-1e3, 1e3))
)


@pytest.mark.parametrize("metric", sorted(TO_THE_BIT | {"cosine", "nan_euclidean"}))
@settings(max_examples=40)
@given(X=tables)
def test_duplicates_subnormals_and_offsets_lose_nothing(metric, X):
    Q = X[::-1] + np.array([0.0, 1e-7] * X.shape[1])[: X.shape[1]]
    found, expected = between(Q, X, metric), by_formula(metric, Q, X)
    if metric in TO_THE_BIT:  # but one: a term 2^106 times smaller than the sum does not tip the balance
        np.testing.assert_array_max_ulp(found, expected, 1)
    else:
        agree(metric, found, expected)
    if metric != "cosine":
        assert (np.diag(between(X, X, metric)) == 0).all()


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "seuclidean", "mahalanobis", "gower"])
def test_a_huge_offset_does_not_hide_small_differences(metric):
    # Exact in doubles at both places, so the offset must change nothing but the last digits.
    X = np.array([[0.0, 3.0], [1.0, 2.0], [2.0, 7.0], [5.0, 4.0]]) / 64
    np.testing.assert_allclose(between(X + 1e8, X + 1e8, metric), between(X, X, metric), rtol=1e-12)


@pytest.mark.parametrize("metric", ["seuclidean", "minkowski"])
def test_weights_of_columns_do_not_use_up_the_digits_of_a_huge_offset(metric):
    X = np.array([[0.0, 3.0], [1.0, 2.0], [2.0, 7.0], [5.0, 4.0]]) / 64
    given = {"V": [3.0, 7.0]} if metric == "seuclidean" else {"w": [1 / 3, 1 / 7], "p": 2}
    expected = [[math.sqrt((q[0] - x[0]) ** 2 / 3 + (q[1] - x[1]) ** 2 / 7) for x in X] for q in X]
    np.testing.assert_allclose(between(X + 1e8, X + 1e8, metric, **given), expected, rtol=1e-12)


@pytest.mark.parametrize("p", [0.5, 1.5, 3.0])
@given(X=tables)
def test_minkowski_takes_any_exponent(p, X):
    found = between(X, X, "minkowski", p=p)
    np.testing.assert_allclose(found, [[powers(p)(q, x, X) for x in X] for q in X], rtol=1e-13)


@pytest.mark.parametrize(("p", "name"), [(1, "manhattan"), (2, "euclidean"), (np.inf, "chebyshev")])
def test_exponents_with_a_name_are_that_distance(p, name):
    X = np.random.default_rng(0).normal(size=(6, 5))
    np.testing.assert_array_equal(between(X, X, "minkowski", p=p), between(X, X, name))


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, np.inf])
def test_weights_of_columns_are_those_of_scipy(p):
    random = np.random.default_rng(1)
    X, Q, w = random.normal(size=(8, 4)), random.normal(size=(3, 4)), np.array([0.5, 0.0, 2.0, 3.0])
    expected = [[scipy_distance.minkowski(q, x, p, w) for x in X] for q in Q]
    if np.isinf(p):  # a weight stretches no largest difference, it takes part or not
        expected = [[max(np.abs(q - x)[w > 0]) for x in X] for q in Q]
    np.testing.assert_allclose(between(Q, X, "minkowski", p=p, w=w), expected, rtol=1e-13)


@pytest.mark.parametrize("columns", [1, 3, 7, 49, 100])
def test_the_share_of_unequal_columns_is_a_fraction_rounded_once(columns):
    # 49 * (1 / 49) is not 1.
    X = np.tril(np.ones((columns + 1, columns)), -1)
    expected = [count / columns for count in range(columns + 1)]
    np.testing.assert_array_equal(between(np.zeros((1, columns)), X, "hamming")[0], expected)


@pytest.mark.parametrize("metric", OTHERS)
def test_other_names_are_those_of_scikit_learn(metric):
    random = np.random.default_rng(0)
    X = random.uniform(0.1, 1.0, size=(6, 2 if metric == "haversine" else 5))
    if metric not in ("braycurtis", "canberra", "correlation", "haversine"):  # the others are of booleans
        X = X > 0.4
    np.testing.assert_array_equal(between(X[:2], X, metric), pairwise_distances(X[:2], X, metric=metric))


def test_a_function_is_called_with_the_query_and_the_row():
    X, Q = np.array([[1.0], [2.0]]), np.array([[5.0]])
    found = between(Q, X, lambda q, x, scale: scale * (2 * q[0] - x[0]), scale=10.0)
    np.testing.assert_array_equal(found, [[90.0, 80.0]])


# -- cosine, Mahalanobis ----------------------------------------------------------------------------------


def test_rows_of_zeros_are_at_cosine_distance_one_of_everything():
    X, Q = np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([[0.0, 0.0], [4.0, 3.0]])
    for kind in (np.asarray, sp.csr_array):
        np.testing.assert_allclose(
            between(kind(Q), kind(X), "cosine"), [[1, 1], [1, 1 - 24 / 25]], rtol=2.0**-40
        )


def test_cosine_keeps_digits_where_rows_point_the_same_way():
    # 1 - cos(t) is t^2 / 2 for a small angle t; by its usual formula it would be 0.
    found = between([[1.0, 0.0]], [[math.cos(1e-9), math.sin(1e-9)]], "cosine")
    np.testing.assert_allclose(found, 5e-19, rtol=1e-12)


def test_rows_that_have_nothing_in_common_are_equally_far_whatever_their_lengths():
    random = np.random.default_rng(3)
    X = np.zeros((40, 9))
    X[:, :5], X[20:, :5] = random.normal(size=(40, 5)), 3.0 * X[:20, :5]
    Q = np.roll(X, 5, axis=1)[:, :9] * (np.arange(9) >= 5)
    assert (between(Q, X, "cosine") == 1.0).all()
    assert (np.diag(between(X[:20] * 7.0, X[:20] * 3.0, "cosine")) == 0.0).all()


@pytest.mark.parametrize("scale", [5e-324, 1e-200, 1e150])
def test_the_length_of_rows_does_not_matter_for_cosine(scale):
    X = np.array([[3.0, 0.0], [2.0, 2.0], [0.0, 1.0]])
    np.testing.assert_allclose(between(X * scale, X, "cosine"), between(X, X, "cosine"), rtol=1e-15)


def test_the_learnt_covariance_is_that_of_the_rows():
    random = np.random.default_rng(2)
    X = random.normal(size=(30, 4)) @ random.normal(size=(4, 4)) + 1e3
    inverse = np.linalg.inv(np.cov(X.T))
    expected = scipy_distance.cdist(X[:5], X, "mahalanobis", VI=inverse)
    for parameters in ({}, {"V": np.cov(X.T)}, {"VI": inverse}):
        found = between(X[:5], X, "mahalanobis", **parameters)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_a_singular_covariance_is_shrunk():
    random = np.random.default_rng(3)
    X = random.normal(size=(12, 3))
    X = np.column_stack([X, X[:, 0] - X[:, 1]])
    S = np.cov(X.T)
    assert np.linalg.matrix_rank(S) == 3
    _, amount = ledoit_wolf(X)
    shrunk = (1 - amount) * S + amount * np.trace(S) / 4 * np.eye(4)
    expected = scipy_distance.cdist(X, X, "mahalanobis", VI=np.linalg.inv(shrunk))
    np.testing.assert_allclose(between(X, X, "mahalanobis"), expected, rtol=1e-9, atol=1e-9)


def test_rows_that_do_not_vary_have_plain_distances():
    X = np.full((3, 2), 5.0)
    np.testing.assert_array_equal(between([[8.0, 9.0]], X, "mahalanobis"), [[5.0, 5.0, 5.0]])
    np.testing.assert_array_equal(between([[8.0, 9.0]], X[:1], "mahalanobis"), [[5.0]])


def test_a_semidefinite_inverse_sees_some_directions_only():
    found = between([[3.0, 9.0]], [[1.0, 1.0]], "mahalanobis", VI=[[1.0, 0.0], [0.0, 0.0]])
    np.testing.assert_allclose(found, [[2.0]])


# -- missing values -----------------------------------------------------------------------------------------

with_gaps = st.tuples(st.integers(1, 6), st.integers(1, 4)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.sampled_from([0.0, 1.0, 2.5, -3.0, np.nan]))
)


@given(X=with_gaps)
def test_nan_euclidean_is_that_of_scikit_learn(X):
    expected = nan_euclidean_distances(X, X)
    expected[np.isnan(expected)] = np.inf  # nothing in common
    np.testing.assert_allclose(between(X, X, "nan_euclidean"), expected, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(
        between(X, X, "nan_euclidean"), by_formula("nan_euclidean", X, X), rtol=1e-14, atol=0
    )


@pytest.mark.filterwarnings("ignore:All-NaN")
@given(X=with_gaps, Q=st.lists(st.sampled_from([0.0, 7.0, np.nan]), min_size=4, max_size=4))
def test_gower_is_the_mean_over_shared_columns(X, Q):
    Q = np.array([Q[: X.shape[1]]])
    np.testing.assert_allclose(between(Q, X, "gower"), by_formula("gower", Q, X), rtol=1e-14)


def test_gower_worked_out_by_hand():
    #             height  colour (codes)  never varies
    X = np.array([[1.0, 0.0, 5.0], [3.0, 1.0, 5.0], [np.nan, 2.0, 5.0]])
    Q = np.array([[2.0, 1.0, 5.0], [7.0, 0.0, 6.0], [2.0, np.nan, np.nan], [np.nan, np.nan, np.nan]])
    found = between(Q, X, "gower", categorical=[False, True, False])
    expected = [
        [(0.5 + 1 + 0) / 3, (0.5 + 0 + 0) / 3, (1 + 0) / 2],
        [(3 + 0 + 1) / 3, (2 + 1 + 1) / 3, (1 + 1) / 2],
        [0.5, 0.5, np.inf],
        [np.inf, np.inf, np.inf],
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-15)


# -- what must not matter -----------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", sorted(set(FORMULAS)))
@settings(max_examples=25)
@given(data=st.data())
def test_the_order_of_columns_does_not_matter(metric, data):
    columns = data.draw(st.integers(1, 60))
    X = data.draw(arrays(np.float64, (3, columns), elements=st.floats(-1e6, 1e6) | few))
    order = np.array(data.draw(st.permutations(range(columns))))
    turned = np.ascontiguousarray(X[:, order])
    np.testing.assert_array_equal(between(X, X, metric), between(turned, turned, metric))


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_the_order_of_many_columns_does_not_matter_for_cosine(kind):
    random = np.random.default_rng(5)
    X = random.lognormal(sigma=3.0, size=(200, 700)) * (random.uniform(size=(200, 700)) < 0.3)
    order = random.permutation(700)
    turned = np.ascontiguousarray(X[:, order])
    found = between(kind(X[:9]), kind(X), "cosine")
    np.testing.assert_array_equal(found, between(kind(turned[:9]), kind(turned), "cosine"))
    np.testing.assert_array_equal(found, between(X[:9], X, "cosine"))


@pytest.mark.parametrize(
    "metric",
    [name for name, (kind, _) in DISTANCES.items() if kind.takes_sparse and name != "precomputed"],
)
def test_sparse_rows_are_as_far_as_dense_ones(metric):
    random = np.random.default_rng(6)
    X = np.round(random.normal(size=(12, 20)) * (random.uniform(size=(12, 20)) < 0.3), 2)
    X[3] = 0
    np.testing.assert_array_equal(
        between(sp.csr_array(X[:5]), sp.csr_array(X), metric), between(X[:5], X, metric)
    )


def test_weights_of_columns_hold_for_sparse_rows():
    X = np.array([[0.0, 3.0, 0.0], [1.0, 0.0, 2.0]])
    found = between(sp.csr_array(X), sp.csr_array(X), "minkowski", p=1, w=[1.0, 2.0, 3.0])
    np.testing.assert_allclose(found, [[0, 13], [13, 0]])


# -- parameters ------------------------------------------------------------------------------------------

X = np.array([[1.0, 2.0], [3.0, 5.0], [4.0, 4.0]])


@pytest.mark.parametrize(
    ("metric", "parameters", "message"),
    [
        ("minkowski", {"p": 0}, r"p=0 .*above 0|p=0"),
        ("minkowski", {"p": -1}, "p=-1"),
        ("minkowski", {"p": float("nan")}, "p=nan"),
        ("minkowski", {"p": "two"}, "p='two'"),
        ("minkowski", {"w": [1.0]}, r"'w'.* has shape \(1,\). Pass one number a column, 2 in all"),
        ("minkowski", {"w": [1.0, -2.0]}, "'w'.*numbers that are at least 0"),
        ("minkowski", {"w": [1.0, np.nan]}, "'w'"),
        ("seuclidean", {"V": [1.0, 0.0]}, "'V'.*positive numbers"),
        ("seuclidean", {"V": [1.0, 1.0, 1.0]}, r"'V'.* has shape \(3,\). Pass one number a column, 2 in all"),
        (
            "mahalanobis",
            {"V": np.eye(3)},
            r"'V'.* has shape \(3, 3\). Pass a matrix .* each of the 2 columns",
        ),
        ("mahalanobis", {"V": [[1.0, np.nan], [np.nan, 1.0]]}, "'V'.*finite numbers"),
        ("mahalanobis", {"V": [[1.0, 2.0], [0.0, 1.0]]}, "'V'.* is not symmetric"),
        ("mahalanobis", {"V": [[1.0, 1.0], [1.0, 1.0]]}, "'V'.* has the eigenvalue .* no inverse. Pass"),
        ("mahalanobis", {"V": [[1.0, 2.0], [2.0, 1.0]]}, "'V'.* has the eigenvalue -1, .* no inverse. Pass"),
        ("mahalanobis", {"VI": np.eye(1)}, r"'VI'.* has shape \(1, 1\)"),
        ("mahalanobis", {"VI": [[0.0, 1.0], [0.0, 0.0]]}, "'VI'.* is not symmetric"),
        ("mahalanobis", {"VI": [[1.0, 2.0], [2.0, 1.0]]}, "'VI'.* has the negative eigenvalue -1: .* Pass"),
        ("gower", {"categorical": [True]}, r"categorical=\[True\] does not say which of the 2 columns"),
        ("gower", {"categorical": [0, 5]}, "True or False for each"),
        ("euclidean", {"p": 3}, "metric='euclidean' has no parameter 'p'; it has 'w'"),
        ("cosine", {"w": [1.0, 1.0]}, "metric='cosine' has no parameter 'w'; it has none"),
        ("mahalanobis", {"S": 1}, "metric='mahalanobis' has no parameter 'S'; it has 'V' and 'VI'"),
        ("euclidian", {}, "metric='euclidian' is not an option; did you mean 'euclidean'"),
        (None, {}, "metric=None is not an option"),
    ],
)
def test_bad_parameters_are_refused_in_a_sentence(metric, parameters, message):
    with pytest.raises(InputError, match=f"(?s){message}"):
        make_distance(metric, X, **parameters)


@pytest.mark.parametrize("value", [-1.0, np.nan, "far", None, [1.0, 2.0]])
def test_a_function_must_return_a_distance(value):
    def mine(q, x):
        return value

    with pytest.raises(
        InputError, match=r"metric=mine returned .* for the query \[1.0, 2.0\] and .* 0 or more"
    ):
        between(X, X, mine)


def test_shapes_that_do_not_belong_together_are_refused():
    for queries in (np.zeros((1, 3)), np.zeros(2)):
        with pytest.raises(InputError, match=r"queries have shape .* and rows have shape \(3, 2\). Pass two"):
            between(queries, X)


@pytest.mark.parametrize(
    ("metric", "rows", "message"),
    [
        (
            "correlation",
            [[1.0, 1.0], [1.0, 2.0]],
            r"not defined for the query \[1.0, 1.0\] .* Leave out",
        ),
        ("braycurtis", [[0.0, 0.0], [1.0, 2.0]], "not defined for the query"),
        ("haversine", [[1.0, 2.0, 3.0]], "metric='haversine' cannot compare these rows"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_rows_that_a_distance_is_not_defined_for_are_refused(metric, rows, message):
    with pytest.raises(InputError, match=message):
        between(rows, rows, metric)


def test_powers_that_overflow_are_refused():
    with pytest.raises(InputError, match=r"up to 1e\+60, .* raised to p=10. Divide the columns"):
        between([[1e60]], [[0.0]], "minkowski", p=10)
    np.testing.assert_allclose(between([[1e60]], [[0.0]], "minkowski", p=5), 1e60)


def test_a_hamming_distance_is_of_a_number_of_columns():
    distance = Hamming(4)
    assert distance == Hamming.of(np.zeros((2, 4)))
    assert distance.reported(np.array([1.0, 4.0])).tolist() == [0.25, 1.0]
