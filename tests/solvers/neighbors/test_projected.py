"""Searches by lower bounds give the answer that computing every distance gives, ties included."""

import pickle
import signal
import threading
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from oracles import linear as oracles
from sixfold._native import core
from sixfold.budget import Budget
from sixfold.errors import TimeLimitReached
from sixfold.geometry.distances.base import EUCLIDEAN, Measure
from sixfold.solvers.neighbors import projected
from sixfold.solvers.neighbors.projected import ProductSearch, ProjectedSearch, dense_search
from sixfold.solvers.threads import thread_limit

SQUARED = Measure("squares", 2.0, root=False)
SEARCHES = [ProjectedSearch, ProductSearch]
both_searches = pytest.mark.parametrize("search", SEARCHES)
random = np.random.default_rng


def all_distances(X, Q, measure):
    """Return every distance by the definition, which tests/native compares with math.fsum."""
    out = np.empty((len(Q), len(X)))
    core.exact_distances(X, np.ascontiguousarray(Q, dtype=np.float64), out, "squares", 2.0, measure.root)
    return out


def check(search, X, Q, k, measure=EUCLIDEAN):
    """Compare both kinds of query with all distances; the radius is one that occurs, so ties matter."""
    built = search(X, measure)
    every = all_distances(X, Q, measure)
    found = built.nearest(Q, k, Budget())
    rows = np.argsort(every, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(found.rows, rows)
    np.testing.assert_array_equal(found.distances, np.take_along_axis(every, rows, axis=1))
    assert found.computed <= len(X) * len(Q)
    radius = float(found.distances[0, -1])
    around = built.within(Q, radius, Budget())
    query, row = np.nonzero(every <= radius)
    np.testing.assert_array_equal(around.ends, np.searchsorted(query, np.arange(len(Q) + 1)))
    np.testing.assert_array_equal(around.rows, row)
    np.testing.assert_array_equal(around.distances, every[query, row])


def clouds(rows, columns, seed, rank=5, noise=0.05):
    """Rows near a plane of few directions."""
    r = random(seed)
    return r.normal(size=(rows, rank)) @ r.normal(size=(rank, columns)) + noise * r.normal(
        size=(rows, columns)
    )


# -- the answer --------------------------------------------------------------------------------------------


@both_searches
@pytest.mark.parametrize("measure", [EUCLIDEAN, SQUARED])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])
@pytest.mark.parametrize("columns", [1, 7, 65, 150])
def test_the_answer_is_that_of_all_distances(search, measure, dtype, columns):
    data = clouds(112, columns, seed=columns) * 8
    rows = np.abs(data).astype(dtype) if dtype == np.uint8 else data.astype(dtype)
    X, Q = rows[:99].copy(), rows[99:].copy()
    for queries in (Q, Q.astype(np.float64) + 0.25):
        found = search(X, measure).nearest(queries, 5, Budget())
        distances, nearest = oracles.nearest(X, queries, 5, "squares", root=measure.root)
        np.testing.assert_array_equal(found.distances, distances)
        np.testing.assert_array_equal(found.rows, nearest)
        around = search(X, measure).within(queries, distances[0, 4], Budget())
        parts = [around.rows[a:b].tolist() for a, b in pairwise(around.ends)]
        assert parts == oracles.within(X, queries, distances[0, 4], "squares", root=measure.root)


elements = (
    st.integers(-2, 2).map(float)
    | st.floats(-1e3, 1e3)
    | st.sampled_from(
        [1e8, 1e8 + 1e-7, 1e8 + 1.0, 0.1, 0.3, 5e-324, 1e-310, 1e-40, 1e-150, 1e150, -1e150, 1e30]
    )
)


@both_searches
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_numbers_at_all(search, data):
    columns = data.draw(st.sampled_from([1, 2, 5, 66, 130]))
    X = data.draw(arrays(np.float64, (data.draw(st.integers(1, 40)), columns), elements=elements))
    Q = data.draw(arrays(np.float64, (data.draw(st.integers(1, 15)), columns), elements=elements))
    repeated = data.draw(st.booleans())
    if repeated:
        X = np.ascontiguousarray(np.concatenate([X, X[::-1]]))
    k = data.draw(st.integers(1, len(X)))
    check(search, X, Q, k, data.draw(st.sampled_from([EUCLIDEAN, SQUARED])))


@both_searches
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])
def test_equal_distances_go_to_the_lower_row(search, dtype):
    X = random(0).integers(0, 3, size=(300, 4)).astype(dtype)
    check(search, X, X[:40].copy(), 20)
    check(search, X, X[:3].copy(), 300)


@both_searches
def test_small_differences_far_from_zero_keep_their_order(search):
    X = 1e8 + random(1).normal(size=(400, 70)) * 1e-3
    check(search, X, X[:30] + 1e-5, 6)
    check(search, X.astype(np.float32), X[:30].astype(np.float32), 6)


@both_searches
@pytest.mark.parametrize("scale", [1e-320, 1e-170, 1e-150, 1e-40, 1e-20, 1e20, 1e38, 1e100, 1e150])
def test_any_scale(search, scale):
    X = clouds(150, 80, seed=2) * scale
    check(search, X, X[:13] * 1.01, 4)


@both_searches
@pytest.mark.parametrize("scale", [1e-44, 1e-38, 1e-22, 1e15, 1e19, 1e37])
def test_any_scale_of_single_precision(search, scale):
    X = (clouds(150, 80, seed=2) * scale).astype(np.float32)
    check(search, X, (X[:13] * np.float32(1.01)), 4)


@both_searches
def test_columns_of_very_different_scales(search):
    X = clouds(150, 80, seed=3) * np.logspace(-30, 30, 80)
    check(search, X, X[:13] * 1.01, 4)


@both_searches
def test_outliers_and_queries_from_far_away(search):
    X = clouds(3000, 70, seed=4)
    X[5] *= 1e40  # not in the sample that sets the scale
    X[7] *= 1e100
    Q = np.concatenate([X[:10], X[10:13] * 1e12, X[10:13] * 1e60])
    check(search, X, Q, 3)


@both_searches
def test_constant_columns_and_constant_rows(search):
    X = np.full((90, 70), 3.0)
    check(search, X, np.full((2, 70), 4.5), 7)
    X[:, 1] = random(5).normal(size=90)
    check(search, X, X[:20].copy(), 7)


@both_searches
def test_one_row_and_no_query(search):
    X = random(6).normal(size=(1, 66))
    check(search, X, random(7).normal(size=(3, 66)), 1)
    none = search(X, EUCLIDEAN).nearest(np.empty((0, 66)), 1, Budget())
    assert none.rows.shape == (0, 1)
    assert list(search(X, EUCLIDEAN).within(np.empty((0, 66)), 1.0, Budget()).ends) == [0]


@pytest.mark.parametrize("search", [*SEARCHES, dense_search])
def test_sampled_thresholds_and_many_blocks(search):
    """Enough rows for a first threshold from a sample, and more blocks, groups and chunks than one."""
    X = clouds(9000, 90, seed=8).astype(np.float32)
    Q = (X[::250] + random(9).normal(size=(36, 90)) * 0.1).astype(np.float32)
    X[:3000] = X[3000:6000]  # equal distances, far apart
    check(search, X, Q, 4)


# -- many neighbours ---------------------------------------------------------------------------------------


@both_searches
@pytest.mark.parametrize("k", [1, 2, 15, 16, 17, 50, 199, 200, 510, 513, 1023, 1024, 1025, 1499, 1500])
def test_any_number_of_neighbours(search, k):
    """Rows wait for their distances up to 1,024 neighbours, and are sorted in two ways."""
    X = clouds(1500, 70, seed=30)
    check(search, X, X[::113] + 0.01, k)


@both_searches
@pytest.mark.parametrize("k", [5, 40, 250])
@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_many_neighbours_of_other_types(search, k, dtype):
    rows = np.abs(clouds(2600, 70, seed=31) * 12).clip(0, 255).astype(dtype)
    X, Q = rows[:2560].copy(), rows[2560:].copy()
    check(search, X, Q, k)
    check(search, X, Q.astype(np.float64) + 0.125, k, SQUARED)


@both_searches
@pytest.mark.parametrize("k", [1, 16, 60, 300, 1100])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])
def test_more_rows_equally_far_than_can_wait(search, k, dtype):
    X = random(32).integers(0, 2, size=(3000, 4)).astype(dtype)
    check(search, X, X[:14].copy(), k)
    X[:] = 1
    check(search, X, X[:3].copy(), k)


@both_searches
def test_ties_at_the_last_place(search):
    """Rows come in pairs of opposite differences, equally far; the k-th place may part a pair."""
    step = random(33).normal(size=(700, 66)).round(2)
    X = np.concatenate([step, -step])[random(34).permutation(1400)]
    for k in (17, 18, 49, 50, 51):
        check(search, X, np.zeros((2, 66)), k)


@both_searches
@pytest.mark.parametrize("nearest_first", [True, False])
def test_rows_in_the_order_of_their_distances(search, nearest_first):
    """The threshold falls with every row, or never after the first rows."""
    X = random(35).normal(size=(4000, 66))
    X = X[np.argsort(np.linalg.norm(X, axis=1))[:: 1 if nearest_first else -1]]
    check(search, X, np.full((13, 66), 1e-3), 50)


@both_searches
@pytest.mark.parametrize("beyond", [3, 200, 1500])
def test_many_rows_that_floats_cannot_hold(search, beyond):
    X = clouds(3000, 70, seed=36)
    X[1 : 2 * beyond : 2] *= 1e40  # none of them in the sample that sets the scale
    check(search, X, X[:26] * 1.01, 20)


@both_searches
@pytest.mark.parametrize("queries", [1, 30])
def test_threads_do_not_change_many_neighbours(search, queries):
    X = clouds(2500, 70, seed=37)
    X[1000:2000] = X[:1000]
    for n_jobs in (1, 2, 3):
        with thread_limit(n_jobs):
            check(search, X, X[:queries] + 0.01, 101)


def test_hardly_more_distances_than_neighbours():
    X = random(38).random((8000, 60))
    for k in (5, 50, 200):
        found = ProductSearch(X[1000:], EUCLIDEAN).nearest(X[:1000], k, Budget())
        assert found.computed <= 1.25 * k * 1000


@both_searches
def test_a_row_finds_itself_and_its_copies(search):
    """The threshold is zero from the start, so that nothing but the margins keeps the rows."""
    X = np.concatenate([random(22).normal(size=(2500, 100))] * 2)
    check(search, X, X[::97] * 1.0, 2)


@both_searches
@pytest.mark.parametrize("queries", [1, 2, 40])
def test_threads_do_not_change_the_answer(search, queries):
    X = clouds(2500, 70, seed=10)
    X[1000:2000] = X[:1000]
    Q = X[:queries] + 0.01
    answers = []
    for n_jobs in (1, 2, 3):
        with thread_limit(n_jobs):
            built = search(X, SQUARED)
            answers.append((built.nearest(Q, 9, Budget()), built.within(Q, 5.0, Budget())))
    for near, around in answers[1:]:
        np.testing.assert_array_equal(near.distances, answers[0][0].distances)
        np.testing.assert_array_equal(near.rows, answers[0][0].rows)
        np.testing.assert_array_equal(around.rows, answers[0][1].rows)


@both_searches
def test_chunks_do_not_change_the_answer(search, monkeypatch):
    X = clouds(500, 70, seed=11)
    whole = search(X, EUCLIDEAN).nearest(X, 3, Budget())
    around = search(X, EUCLIDEAN).within(X, 2.0, Budget())
    monkeypatch.setattr(projected, "WORKSPACE", 1 << 14)
    parts = search(X, EUCLIDEAN).nearest(X, 3, Budget())
    np.testing.assert_array_equal(parts.rows, whole.rows)
    np.testing.assert_array_equal(search(X, EUCLIDEAN).within(X, 2.0, Budget()).ends, around.ends)
    np.testing.assert_array_equal(search(X, EUCLIDEAN).within(X, 2.0, Budget()).rows, around.rows)


@both_searches
def test_a_search_can_be_pickled(search):
    X = clouds(200, 70, seed=12)
    built = search(X, EUCLIDEAN)
    again = pickle.loads(pickle.dumps(built))
    np.testing.assert_array_equal(again.nearest(X, 3, Budget()).rows, built.nearest(X, 3, Budget()).rows)


# -- the bounds --------------------------------------------------------------------------------------------


def rows_of_panels(coarse, count):
    return coarse.transpose(0, 2, 1).reshape(-1, coarse.shape[1])[:count]


def sequential_product(features, query):
    """Return the product of each row with the query, term after term in single precision."""
    total = np.zeros(len(features), dtype=np.float32)
    for column, value in zip(features.T, query, strict=True):
        total = total + column * value
    return total


def adversaries():
    r = random(13)
    yield "equal rows", r.normal(size=(200, 100))
    yield "near a plane", clouds(200, 100, seed=14, rank=3, noise=1e-7)
    yield "in a plane", clouds(200, 100, seed=15, rank=20, noise=0.0)
    yield "one long direction", r.normal(size=(200, 100)) * np.where(np.arange(100) == 0, 1e4, 1.0)
    yield "two far clusters", r.normal(size=(200, 100)) + 1e5 * (np.arange(200) % 2)[:, None]
    yield "many columns", r.normal(size=(120, 3000))
    yield "tiny beside large", r.normal(size=(200, 100)) * np.logspace(-12, 0, 200)[:, None]


@both_searches
@pytest.mark.parametrize("X", [pytest.param(X, id=kind) for kind, X in adversaries()])
def test_no_bound_is_above_the_distance_it_bounds(search, X):
    """At its own distance, and at any larger one, a row passes; equal rows leave no room for an error."""
    Q = np.concatenate([X[:40], X[40:80] * (1 + 1e-7), X[80:100] + X[:20] * 1e-3])
    built = search(X, SQUARED)
    distances = all_distances(X, Q, SQUARED) * built.frame.scale**2
    coarse, coarse_base, fine, fine_base = built._features(Q)
    levels = [(rows_of_panels(built.coarse, len(X)), coarse, coarse_base)]
    if fine is not None:
        levels.append((built.fine, fine, fine_base))
    for of_rows, of_queries, base in levels:
        for query, start, squares in zip(of_queries, base, distances, strict=True):
            limit = start - 0.5 * (1 + 1 / 1024) * squares
            assert (sequential_product(of_rows, query) >= limit).all()


@both_searches
@pytest.mark.parametrize("X", [pytest.param(X, id=kind) for kind, X in adversaries()])
@pytest.mark.parametrize("k", [1, 3, 20, 60])
def test_no_threshold_is_below_the_distance_it_bounds(search, X, k):
    """Products of whole rows bound distances from above, too: no row is lost where they hold for k rows."""
    check(search, X, np.concatenate([X[:20], X[40:50] * (1 + 1e-7), X[80:90] + X[:10] * 1e-3]), k, SQUARED)


def test_bounds_rule_out_what_they_can():
    X = clouds(6000, 100, seed=16)
    Q = X[::100] + 0.01
    for search in SEARCHES:
        assert search(X, EUCLIDEAN).nearest(Q, 5, Budget()).computed < 0.02 * len(X) * len(Q)
        assert search(1e8 + X, EUCLIDEAN).nearest(1e8 + Q, 5, Budget()).computed < 0.02 * len(X) * len(Q)


def test_projections_are_for_data_with_structure():
    assert dense_search(clouds(9000, 300, seed=17), EUCLIDEAN).name == "projected bounds"
    assert dense_search(random(18).random((6000, 100)), EUCLIDEAN).name == "fused products"
    assert dense_search(clouds(6000, 20, seed=19), EUCLIDEAN).name == "fused products"


# -- limits ------------------------------------------------------------------------------------------------


@both_searches
def test_a_time_limit_ends_a_query(search):
    X = random(20).random((20_000, 100))
    built = search(X, EUCLIDEAN)
    with pytest.raises(TimeLimitReached):
        built.nearest(X, 5, Budget(time_limit=0.01))
    with pytest.raises(TimeLimitReached):
        built.within(X, 0.5, Budget(time_limit=0.01))


@both_searches
def test_ctrl_c_ends_a_query(search):
    X = random(21).random((20_000, 100))
    built = search(X, EUCLIDEAN)
    budget = Budget()

    def ask_until_stopped():
        with budget:
            threading.Timer(0.05, signal.raise_signal, [signal.SIGINT]).start()
            for _ in range(100):
                built.nearest(X, 2000, budget)

    with pytest.raises(KeyboardInterrupt):
        ask_until_stopped()
