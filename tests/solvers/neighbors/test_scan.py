"""Going through all rows gives what computing every distance would give, ties included."""

import pickle
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from oracles import linear as oracles
from sixfold._native import core
from sixfold.budget import Budget
from sixfold.errors import TimeLimitReached
from sixfold.geometry.distances.base import Measure
from sixfold.solvers.neighbors.scan import ByteSearch, ScanSearch
from sixfold.solvers.threads import thread_limit

MEASURES = [
    Measure("squares"),
    Measure("squares", root=True),
    Measure("absolute", 1.0),
    Measure("largest", 1.0),
    Measure("count", 1.0),
    Measure("power", 3.0, root=True),
    Measure("power", 1.5, root=True),
    Measure("power", 0.5),
    Measure("power", 2.3),
]
every_measure = pytest.mark.parametrize("measure", MEASURES, ids=str)
every_type = pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])


def by_definition(X, Q, measure):
    """All distances (queries x rows) by the function that defines them."""
    out = np.empty((len(Q), len(X)))
    core.exact_distances(np.ascontiguousarray(X), np.ascontiguousarray(Q, dtype=np.float64), out, *measure)
    return out


def check_nearest(search, X, Q, k, measure):
    everything = by_definition(X, Q, measure)
    order = np.argsort(everything, axis=1, kind="stable")[:, :k]
    found = search.nearest(Q, k, Budget())
    np.testing.assert_array_equal(found.rows, order)
    np.testing.assert_array_equal(found.distances, np.take_along_axis(everything, order, axis=1))
    assert k * len(Q) <= found.computed <= everything.size


def check_within(search, X, Q, radius, measure):
    everything = by_definition(X, Q, measure)
    found = search.within(Q, radius, Budget())
    queries, rows = np.nonzero(everything <= radius)
    np.testing.assert_array_equal(found.rows, rows)
    np.testing.assert_array_equal(found.distances, everything[queries, rows])
    np.testing.assert_array_equal(np.diff(found.ends), np.bincount(queries, minlength=len(Q)))
    assert found.ends[0] == 0


@every_measure
@every_type
def test_the_nearest_are_those_of_the_oracle(measure, dtype):
    random = np.random.default_rng(3)
    X = (random.normal(size=(40, 21)) * 40 + 100).astype(dtype)
    Q = X[:6] + random.integers(0, 2, size=(6, 21)).astype(dtype)
    found = ScanSearch(X, measure).nearest(Q, 7, Budget())
    distances, rows = oracles.nearest(X, Q, 7, *measure)
    np.testing.assert_array_equal(found.rows, rows)
    np.testing.assert_allclose(found.distances, distances, rtol=1e-14)
    radius = float(np.median(distances))
    around = ScanSearch(X, measure).within(Q, radius, Budget())
    expected = oracles.within(X, Q, radius * (1 + 1e-13), *measure)
    found_rows = [around.rows[a:b].tolist() for a, b in zip(around.ends, around.ends[1:], strict=False)]
    if measure.family != "power":  # the last bit of a power is the library's
        assert found_rows == expected


@pytest.mark.parametrize("k", [1, 7, 8, 16, 31, 32, 33])
@pytest.mark.parametrize("rows", [31, 33, 64, 1100])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_that_give_the_first_bound_are_found_once(k, rows, dtype):
    k, random = min(k, rows), np.random.default_rng(k)
    Q = random.normal(size=(40, 9)).astype(dtype)  # rows lie in lanes for several queries
    few = random.integers(0, 3, size=(rows, 9)).astype(dtype)  # with many equal distances
    far = np.where(random.random((rows, 1)) < 0.9, dtype(1e30) ** dtype(6 if dtype == np.float64 else 1), few)
    for X in (random.normal(size=(rows, 9)).astype(dtype), few, np.zeros_like(few), far):
        for measure in (Measure("squares"), Measure("absolute", 1.0), Measure("count", 1.0)):
            check_nearest(ScanSearch(X, measure), X, Q, k, measure)


@pytest.mark.parametrize("p", [0.5, 0.3])
def test_roots_that_are_subnormal_are_rounded_by_no_small_part(p):
    counts = [[1, 2], [6, 0], [2, 1], [0, 6], [7, 0], [1, 3], [1, 1], [2, 2], [0, 5], [3, 1]]
    X, measure = np.array(counts) * 5e-324, Measure("power", p, root=True)
    search, Q = ScanSearch(X, measure), np.zeros((1, 2))
    for radius in np.unique(by_definition(X, Q, measure)):
        check_within(search, X, Q, radius, measure)
    for k in range(1, len(X) + 1):
        check_nearest(search, X, Q, k, measure)


@every_measure
@every_type
@pytest.mark.parametrize("columns", [1, 21, 67, 391])
@pytest.mark.parametrize(("queries", "threads"), [(1, 1), (70, 2)])
def test_shapes_and_threads_do_not_matter(measure, dtype, columns, queries, threads):
    random = np.random.default_rng(columns)
    X = (random.normal(size=(97, columns)) * 30 + 120).astype(dtype)
    Q = np.ascontiguousarray(X[random.integers(0, 97, size=queries)])
    Q[::2] += 1
    search = ScanSearch(X, measure)
    with thread_limit(threads):
        check_nearest(search, X, Q, 9, measure)
        check_within(search, X, Q, np.median(by_definition(X, Q, measure)), measure)


@pytest.mark.parametrize("queries", [1, 2, 7])
@pytest.mark.parametrize("k", [1, 11, 6001])
@pytest.mark.parametrize("Search", [ScanSearch, ByteSearch])
def test_few_queries_share_the_rows_among_threads(Search, queries, k):
    random = np.random.default_rng(queries)
    X = random.integers(0, 9, size=(6001, 400), dtype=np.uint8)  # many are equally far
    X[::7] = X[0]
    Q = np.ascontiguousarray(X[-queries:])
    search = Search(X, Measure("absolute"))
    with thread_limit(2):
        check_nearest(search, X, Q, k, Measure("absolute"))
        check_within(search, X, Q, np.median(by_definition(X, Q, Measure("absolute"))), Measure("absolute"))


@every_measure
@given(data=st.data())
@settings(max_examples=30)
def test_equal_distances_go_to_the_lower_row(measure, data):
    dtype = data.draw(st.sampled_from([np.float64, np.float32, np.uint8]))
    columns, rows = data.draw(st.integers(1, 20)), data.draw(st.integers(1, 40))
    grid = st.sampled_from([0, 1, 2, 255]).map(dtype)
    X = data.draw(arrays(dtype, (rows, columns), elements=grid))
    Q = data.draw(arrays(dtype, (data.draw(st.integers(1, 5)), columns), elements=grid))
    k = data.draw(st.integers(1, rows))
    search = ScanSearch(X, measure)
    check_nearest(search, X, Q, k, measure)
    check_within(search, X, Q, data.draw(st.sampled_from([0.0, 1.0, 2.0, 4.0, 300.0])), measure)


odd_numbers = st.floats(-1e60, 1e60, allow_subnormal=True) | st.sampled_from(
    [0.0, 5e-324, -5e-324, 1e-310, 1e-200, 1e8, 1e8 + 1e-7, 1e8 + 2e-7, 0.1, 0.3]
)
odd_floats = st.floats(-(2.0**126), 2.0**126, width=32, allow_subnormal=True) | st.sampled_from(
    [np.float32(v) for v in (0.0, 1e-45, -1e-45, 1e-40, 1e-22, 1e8, 1e8 + 8, 1e8 + 16, 3e38, -3e38)]
)


@every_measure
@given(data=st.data())
@settings(max_examples=40)
def test_tiny_and_huge_numbers_keep_their_order(measure, data):
    dtype, numbers = data.draw(st.sampled_from([(np.float64, odd_numbers), (np.float32, odd_floats)]))
    columns, rows = data.draw(st.integers(1, 80)), data.draw(st.integers(1, 12))
    scale = dtype(data.draw(st.sampled_from([1.0, 1e-30, 2.0**-149 if dtype is np.float32 else 1e-250])))
    X = data.draw(arrays(dtype, (rows, columns), elements=numbers, fill=numbers)) * scale
    Q = data.draw(arrays(dtype, (3, columns), elements=numbers, fill=numbers)) * scale
    Q[0] = X[-1]
    search = ScanSearch(X, measure)
    check_nearest(search, X, Q, data.draw(st.integers(1, rows)), measure)
    radius = data.draw(st.sampled_from(sorted(by_definition(X, Q, measure).ravel().tolist())))
    check_within(search, X, Q, radius, measure)


def test_differences_that_overflow_a_float_have_finite_powers():
    X = np.float32([[-1e38], [-2e38], [-1.5e38]])
    check_nearest(ScanSearch(X, Measure("power", 0.5)), X, np.float32([[3e38]]), 2, Measure("power", 0.5))


@every_measure
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_small_differences_far_from_zero_are_told_apart(measure, dtype):
    random = np.random.default_rng(1)
    step = np.spacing(dtype(1e8))
    X = (dtype(1e8) + random.integers(-4, 5, size=(300, 150)) * step).astype(dtype)
    Q = (dtype(1e8) + random.integers(-4, 5, size=(20, 150)) * step).astype(dtype)
    check_nearest(ScanSearch(X, measure), X, Q, 10, measure)


@every_measure
@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_queries_between_floats_are_not_rounded(measure, dtype):
    X = np.arange(1, 65, dtype=dtype).reshape(64, 1) * np.ones((1, 140), dtype=dtype)
    Q = np.repeat([[3.5 - 1e-12], [3.5 + 1e-12], [1e300]], 140, axis=1)
    if measure.family == "power":
        Q = Q[:2]  # the powers overflow
    elif measure.family == "squares":
        Q[2] = 1e60
    check_nearest(ScanSearch(X, measure), X, Q, 2, measure)


def test_a_search_survives_pickling():
    X = np.arange(12.0).reshape(4, 3)
    search = pickle.loads(pickle.dumps(ScanSearch(X, Measure("absolute"))))
    check_nearest(search, X, X[:2], 2, Measure("absolute"))


@pytest.mark.parametrize("Search", [ScanSearch, ByteSearch])
def test_many_queries_are_answered_in_chunks(Search, monkeypatch):
    monkeypatch.setattr("sixfold.solvers.neighbors.scan.CHUNK_NUMBERS", 64)
    X = np.random.default_rng(0).integers(0, 9, size=(50, 8), dtype=np.uint8)
    search = Search(X, Measure("absolute"))
    check_nearest(search, X, X, 5, Measure("absolute"))
    check_within(search, X, X, 12.0, Measure("absolute"))
    assert len(search.within(X[:0], 1.0, Budget()).rows) == 0


def test_far_rows_are_given_up_early():
    X = np.repeat(np.arange(1000.0), 512).reshape(1000, 512)
    found = ScanSearch(X, Measure("absolute")).nearest(X[:1], 5, Budget())
    assert found.computed < 20


# -- bytes ---------------------------------------------------------------------------------------------

MANHATTAN = Measure("absolute", 1.0)


@pytest.mark.parametrize("columns", [1, 7, 64, 129, 200])
@pytest.mark.parametrize("rows", [1, 31, 32, 33, 1300])
@pytest.mark.parametrize(("queries", "threads"), [(1, 1), (40, 2)])
def test_bytes_have_the_neighbours_of_the_definition(columns, rows, queries, threads):
    random = np.random.default_rng(columns)
    X = random.integers(0, 256, size=(rows, columns), dtype=np.uint8)
    Q = random.integers(0, 256, size=(queries, columns), dtype=np.uint8)
    Q[0] = X[-1]
    search = ByteSearch(X, MANHATTAN)
    with thread_limit(threads):
        check_nearest(search, X, Q, min(rows, 5), MANHATTAN)
        check_within(search, X, Q, np.median(by_definition(X, Q, MANHATTAN)), MANHATTAN)


@given(data=st.data())
def test_equal_bytes_go_to_the_lower_row(data):
    columns, rows = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 80))
    few = st.sampled_from([0, 1, 254, 255]) | st.just(7)
    X = data.draw(arrays(np.uint8, (rows, columns), elements=few))
    Q = data.draw(arrays(np.uint8, (data.draw(st.integers(1, 5)), columns), elements=few))
    search = ByteSearch(X, MANHATTAN)
    check_nearest(search, X, Q, data.draw(st.integers(1, rows)), MANHATTAN)
    check_within(search, X, Q, data.draw(st.sampled_from([0.0, 0.5, 3.0, 260.0, 1e300])), MANHATTAN)


@pytest.mark.parametrize("queries", [1, 100])
def test_many_rows_of_bytes_in_the_worst_order(queries):
    # Sorted from far to near, so that a sample taken anywhere is farther than the last rows.
    random = np.random.default_rng(0)
    X = np.sort(random.integers(0, 200, size=(6000, 1), dtype=np.uint8), axis=0)[::-1]
    X = np.ascontiguousarray(X + random.integers(0, 9, size=(6000, 60), dtype=np.uint8))
    Q = np.ascontiguousarray(X[-queries:])
    search = ByteSearch(X, MANHATTAN)
    for k in (1, 10, 500):
        check_nearest(search, X, Q, k, MANHATTAN)


@pytest.mark.parametrize("columns", [5, 60, 300])
def test_differences_of_one_sign_make_the_bound_tight(columns):
    random = np.random.default_rng(columns)
    Q = random.integers(0, 250, size=(6, columns), dtype=np.uint8)
    X = np.repeat(Q, 100, axis=0) + (random.random((600, columns)) < 0.05).astype(np.uint8)
    search = ByteSearch(X, MANHATTAN)
    check_nearest(search, X, Q, 7, MANHATTAN)
    check_within(search, X, Q, 2.0, MANHATTAN)


def test_sums_of_groups_rule_most_rows_out():
    random = np.random.default_rng(0)
    X = np.repeat(random.integers(0, 256, size=(5000, 20), dtype=np.uint8), 16, axis=1)
    X = np.ascontiguousarray(X[:, random.permutation(320)])
    assert ByteSearch(X, MANHATTAN).nearest(X[:10], 3, Budget()).computed < 10 * 5000 * 0.2


def test_queries_that_are_no_bytes_are_taken_as_they_are():
    X = np.random.default_rng(0).integers(0, 256, size=(50, 20), dtype=np.uint8)
    search = ByteSearch(X, MANHATTAN)
    for Q in (X[:3].astype(np.float64), X[:3] + 0.25, X[:3] - 300.0, X[:3] + 1e60):
        check_nearest(search, X, Q, 4, MANHATTAN)
        check_within(search, X, Q, 1500.0, MANHATTAN)


def test_rows_of_very_many_bytes_are_grouped_as_they_come():
    X = np.random.default_rng(0).integers(0, 256, size=(40, 2100), dtype=np.uint8)
    check_nearest(pickle.loads(pickle.dumps(ByteSearch(X, MANHATTAN))), X, X[:4], 3, MANHATTAN)


# -- limits --------------------------------------------------------------------------------------------


@pytest.fixture
def long_work():
    random = np.random.default_rng(0)
    X = random.normal(size=(20_000, 50))
    return ScanSearch(X, Measure("power", 2.3)), X


def test_a_time_limit_ends_a_long_query(long_work):
    search, X = long_work
    with pytest.raises(TimeLimitReached), Budget(time_limit=0.05) as budget:
        search.nearest(X, 3, budget)
    with pytest.raises(TimeLimitReached), Budget(time_limit=0.05) as budget:
        search.within(X, 3.0, budget)


def test_a_time_limit_ends_a_long_query_of_bytes():
    X = np.random.default_rng(0).integers(0, 256, size=(20_000, 128), dtype=np.uint8)
    search = ByteSearch(X, MANHATTAN)
    with pytest.raises(TimeLimitReached), Budget(time_limit=0.02) as budget:
        search.nearest(X, 3, budget)
    with pytest.raises(TimeLimitReached), Budget(time_limit=0.02) as budget:
        search.within(X, 8000.0, budget)


def test_an_interrupt_ends_a_long_query(long_work):
    search, X = long_work
    budget = Budget()
    timer = threading.Timer(0.05, budget.flag.fill, [1])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        search.nearest(X, 3, budget)
    timer.join()
