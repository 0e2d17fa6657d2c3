"""The k-d tree gives the answer that computing every distance would give, ties included."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import cKDTree

from oracles import linear as oracles
from sixfold._native import core
from sixfold.budget import Budget
from sixfold.errors import TimeLimitReached
from sixfold.geometry.distances.base import EUCLIDEAN, Measure
from sixfold.solvers.neighbors.kd_tree import KdTree
from sixfold.solvers.threads import thread_limit

MEASURES = [
    EUCLIDEAN,
    Measure("squares"),
    Measure("absolute"),
    Measure("largest"),
    Measure("power", 3.0, root=True),
    Measure("power", 0.5),
    Measure("power", 1.5, root=True),
]
every_measure = pytest.mark.parametrize("measure", MEASURES, ids=lambda m: f"{m.family}-{m.p}-{m.root}")


def by_definition(X, Q, measure):
    """Every distance by the library's definition, which tests/native compares with the oracle."""
    out = np.empty((len(Q), len(X)))
    core.exact_distances(X, np.ascontiguousarray(Q, dtype=np.float64), out, *measure)
    return out


def assert_nearest(X, Q, k, measure, tree=None):
    tree = KdTree(X, measure, leaf_size=4) if tree is None else tree
    found = tree.nearest(Q, k, Budget())
    every = by_definition(X, Q, measure)
    rows = np.argsort(every, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(found.rows, rows)
    np.testing.assert_array_equal(found.distances, np.take_along_axis(every, rows, axis=1))


def assert_within(X, Q, radius, measure, tree=None):
    tree = KdTree(X, measure, leaf_size=4) if tree is None else tree
    found = tree.within(Q, radius, Budget())
    every = by_definition(X, Q, measure)
    np.testing.assert_array_equal(np.diff(found.ends), (every <= radius).sum(axis=1))
    queries, rows = np.nonzero(every <= radius)
    np.testing.assert_array_equal(found.rows, rows)
    np.testing.assert_array_equal(found.distances, every[queries, rows])


# -- against the oracle ---------------------------------------------------------------------------------

grid = st.integers(-2, 2).map(float)
close = st.sampled_from([0.0, 0.1, 0.2, 0.30000000000000004, 0.3, 1e8, 1e8 + 1e-7, 1e8 + 2e-7, -1e8])
extreme = st.sampled_from([0.0, 5e-324, 1e-310, 1e-160, -1e-155, 1e-20, 1.0, 1e20, 1e100, -1e100])
single = st.floats(-(2.0**50), 2.0**50, width=32)
anything = st.floats(-1e60, 1e60, allow_subnormal=True)


@st.composite
def tables(draw, dtype=np.float64, kinds=None):
    """Rows and queries of a few values, so with ties and duplicates, at all kinds of scales."""
    columns, rows, queries = draw(st.integers(1, 6)), draw(st.integers(1, 60)), draw(st.integers(1, 4))
    kinds = kinds or ([grid, single] if dtype == np.float32 else [grid, close, extreme, anything])
    values = np.array(draw(st.lists(draw(st.sampled_from(kinds)), min_size=1, max_size=12)))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = random.choice(values, size=(rows, columns)).astype(dtype)
    Q = random.choice(values, size=(queries, columns))
    if draw(st.booleans()):
        X[:, 0] = values[0]
    if draw(st.booleans()):
        X = X[random.integers(0, rows, size=rows)]
    return X, Q


@every_measure
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@settings(max_examples=40)
@given(data=st.data())
def test_the_nearest_rows_are_those_of_the_definition(measure, dtype, data):
    X, Q = data.draw(tables(dtype))
    k = data.draw(st.integers(1, len(X)))
    tree = KdTree(X, measure, leaf_size=data.draw(st.integers(1, 9)))
    assert_nearest(X, Q, k, measure, tree)
    distances, _ = oracles.nearest(X, Q, k, *measure)
    np.testing.assert_allclose(tree.nearest(Q, k, Budget()).distances, distances, rtol=1e-14, atol=1e-320)


@pytest.mark.parametrize("p", [0.5, 0.3])
def test_roots_that_are_subnormal_are_rounded_by_no_small_part(p):
    counts = [[1, 2], [6, 0], [2, 1], [0, 6], [7, 0], [1, 3], [1, 1], [2, 2], [0, 5], [3, 1]]
    X, Q, measure = np.array(counts) * 5e-324, np.zeros((1, 2)), Measure("power", p, root=True)
    for radius in np.unique(by_definition(X, Q, measure)):
        assert_within(X, Q, radius, measure)
    for k in range(1, len(X) + 1):
        assert_nearest(X, Q, k, measure)


@every_measure
@settings(max_examples=30)
@given(data=st.data())
def test_ties_on_a_grid_go_to_the_lower_row(measure, data):
    X, Q = data.draw(tables(kinds=[grid]))
    k = data.draw(st.integers(1, len(X)))
    tree = KdTree(X, measure, leaf_size=3)
    found = tree.nearest(Q, k, Budget())
    _, rows = oracles.nearest(X, Q, k, *measure)
    np.testing.assert_array_equal(found.rows, rows)
    radius = oracles.distance(X[0], Q[0], *measure)
    around = tree.within(Q, radius, Budget())
    split = np.split(around.rows, around.ends[1:-1])
    assert [list(part) for part in split] == oracles.within(X, Q, radius, *measure)


@every_measure
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@settings(max_examples=40)
@given(data=st.data())
def test_rows_within_a_radius_are_those_of_the_definition(measure, dtype, data):
    X, Q = data.draw(tables(dtype))
    every = by_definition(X, Q, measure)
    radius = data.draw(st.sampled_from([0.0, *every[0]]))  # rows lie exactly on it
    assert_within(X, Q, radius, measure)


@pytest.mark.parametrize("columns", [1, 2, 3, 5, 11])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@every_measure
def test_many_leaves_and_levels(columns, dtype, measure):
    random = np.random.default_rng(columns)
    X = random.normal(size=(1500, columns)).astype(dtype)
    X[200:300] = X[:100]
    X[1000:] = np.round(X[1000:])
    Q = np.concatenate([X[::150], random.normal(size=(10, columns)), random.normal(size=(5, columns)) * 1e3])
    for k in (1, 7, 100, 1500):  # less than a leaf, more, and all
        assert_nearest(X, Q, k, measure, KdTree(X, measure))
    assert_nearest(X, Q, 5, measure, KdTree(X, measure, leaf_size=1))
    assert_within(X, Q, 1.0, measure, KdTree(X, measure))


def test_large_offsets_keep_their_order():
    random = np.random.default_rng(0)
    X = 1e8 + random.integers(0, 40, size=(2000, 3)) * 2.0**-20
    assert_nearest(X, X[:30], 9, EUCLIDEAN)


# -- equal rows --------------------------------------------------------------------------------------------


@every_measure
def test_of_equal_rows_the_first_are_nearest(measure):
    X = np.full((5000, 3), 0.7)
    found = KdTree(X, measure).nearest(np.array([[0.7] * 3, [0.1] * 3]), 6, Budget())
    np.testing.assert_array_equal(found.rows, np.tile(np.arange(6), (2, 1)))
    assert_within(X, np.array([[0.1, 0.2, 0.3]]), 10.0, measure)


def test_equal_rows_are_measured_together():
    X = np.full((100_000, 3), 0.7)
    found = KdTree(X, EUCLIDEAN).nearest(np.random.default_rng(0).random((100, 3)), 5, Budget())
    assert found.computed <= 100 * 8  # the children of the root


def test_few_distinct_rows_are_no_worse_than_distinct_ones():
    random = np.random.default_rng(1)
    X = random.integers(0, 5, size=(50_000, 3)).astype(np.float64)
    Q = X[:200]
    found = KdTree(X, EUCLIDEAN).nearest(Q, 10, Budget())
    assert_nearest(X, Q[:20], 10, EUCLIDEAN, KdTree(X, EUCLIDEAN))
    assert found.computed < 200 * 500


# -- peers, threads, limits ----------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [2, 3, 8])
@pytest.mark.parametrize(
    ("measure", "p"), [(EUCLIDEAN, 2), (Measure("absolute"), 1), (Measure("largest"), np.inf)]
)
def test_distances_agree_with_those_of_scipy(columns, measure, p):
    random = np.random.default_rng(2)
    X = random.normal(size=(20_000, columns)) + 5 * random.integers(0, 4, size=(20_000, 1))
    Q = random.normal(size=(500, columns)) + 5 * random.integers(0, 4, size=(500, 1))
    found = KdTree(X, measure).nearest(Q, 12, Budget())
    distances, _ = cKDTree(X).query(Q, 12, p=p)
    np.testing.assert_allclose(found.distances, distances, rtol=1e-13)
    assert found.computed < len(Q) * len(X) / 10


def test_threads_and_batches_do_not_change_the_answer():
    random = np.random.default_rng(3)
    X, Q = random.random((20_000, 3)).round(2), random.random((300, 3)).round(2)
    answers = []
    for threads in (1, 2):
        with thread_limit(threads):
            tree = KdTree(X, EUCLIDEAN)
            answers += [tree.nearest(Q, 10, Budget()), tree.within(Q, 0.05, Budget())]
    one_by_one = [tree.nearest(Q[i : i + 1], 10, Budget()).rows[0] for i in range(20)]
    np.testing.assert_array_equal(answers[0].rows, answers[2].rows)
    np.testing.assert_array_equal(answers[1].rows, answers[3].rows)
    np.testing.assert_array_equal(answers[1].ends, answers[3].ends)
    np.testing.assert_array_equal(answers[0].rows[:20], one_by_one)
    assert answers[0].computed == answers[2].computed


def test_queries_go_in_chunks(monkeypatch):
    random = np.random.default_rng(4)
    X, Q = random.random((500, 2)), random.random((50, 2))
    tree = KdTree(X, EUCLIDEAN)
    whole, around = tree.nearest(Q, 3, Budget()), tree.within(Q, 0.1, Budget())
    monkeypatch.setattr("sixfold.solvers.neighbors.kd_tree.QUERIES_PER_CALL", 7)
    parts, pieces = tree.nearest(Q, 3, Budget()), tree.within(Q, 0.1, Budget())
    np.testing.assert_array_equal(parts.rows, whole.rows)
    np.testing.assert_array_equal(parts.distances, whole.distances)
    np.testing.assert_array_equal(pieces.ends, around.ends)
    np.testing.assert_array_equal(pieces.rows, around.rows)


def test_no_queries_are_answered_by_nothing():
    tree = KdTree(np.eye(3), EUCLIDEAN)
    assert tree.nearest(np.empty((0, 3)), 2, Budget()).rows.shape == (0, 2)
    found = tree.within(np.empty((0, 3)), 2.0, Budget())
    assert list(found.ends) == [0]
    assert len(found.rows) == 0


def test_a_tree_can_be_pickled():
    random = np.random.default_rng(5)
    X = random.random((300, 4)).astype(np.float32)
    tree = pickle.loads(pickle.dumps(KdTree(X, EUCLIDEAN)))
    assert tree.name == "kd_tree"
    assert_nearest(X, X[:10], 4, EUCLIDEAN, tree)


def test_a_limit_ends_a_long_query():
    random = np.random.default_rng(6)
    tree = KdTree(random.normal(size=(20_000, 12)), EUCLIDEAN)
    Q = random.normal(size=(50_000, 12))
    with pytest.raises(TimeLimitReached, match="time_limit"):
        tree.nearest(Q, 10, Budget(time_limit=0.05))
    with pytest.raises(TimeLimitReached, match="time_limit"):
        tree.within(Q, 1.0, Budget(time_limit=0.05))
    pressed = Budget()
    pressed.flag[0] = 1
    with pytest.raises(KeyboardInterrupt):
        tree.nearest(Q, 10, pressed)


def test_a_limit_ends_a_long_build():
    X = np.random.default_rng(7).random((200_000, 3))
    with pytest.raises(TimeLimitReached, match="time_limit"):
        KdTree(X, EUCLIDEAN, budget=Budget(time_limit=0.0))


def test_arrays_of_another_shape_are_refused():
    tree = KdTree(np.eye(3), EUCLIDEAN)
    with pytest.raises(ValueError, match="columns of X"):
        tree.nearest(np.eye(4), 1, Budget())
    with pytest.raises(ValueError, match="not as many rows"):
        tree.nearest(np.eye(3), 4, Budget())
