"""Rows that are searched block by block have the neighbours that they have as a whole, ties included."""

import pickle
import tempfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixfold import KNeighborsClassifier, KNeighborsRegressor, NearestNeighbors
from sixfold.budget import Budget
from sixfold.data.blocks import mapping_of
from sixfold.errors import InputError, TimeLimitReached
from sixfold.geometry.distances import make_distance
from sixfold.solvers.neighbors import blocked
from sixfold.solvers.neighbors.blocked import BlockedSearch
from sixfold.solvers.neighbors.choose import make_search
from sixfold.solvers.neighbors.search import DistanceSearch

METRICS = [
    ("euclidean", {}),
    ("sqeuclidean", {}),
    ("manhattan", {}),
    ("chebyshev", {}),
    ("cosine", {}),
    ("hamming", {}),
    ("minkowski", {"p": 3}),
    ("minkowski", {"p": 2, "w": [1.0, 0.0, 2.5]}),
    ("seuclidean", {}),
    ("mahalanobis", {}),
    ("nan_euclidean", {}),
    ("gower", {}),
]


def mapped(X):
    """Return the same rows, mapped from a file."""
    with tempfile.NamedTemporaryFile() as file:
        rows = np.memmap(file.name, dtype=X.dtype, mode="w+", shape=X.shape)
    rows[:] = X
    return rows.view(np.ndarray)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def streamed(monkeypatch):
    """Search every table that is mapped from a file in blocks of a few rows."""
    monkeypatch.setattr(blocked, "STREAMED_BYTES", 0)
    monkeypatch.setattr(blocked.BlockedSearch.__init__, "__defaults__", (None, False, 32, 7 * 3 * 8))


def draw_rows(data, dtype):
    n = data.draw(st.integers(3, 40))
    seed = data.draw(st.integers(0, 2**32 - 1))
    generator = np.random.default_rng(seed)
    if data.draw(st.booleans()):  # few values: many ties
        return generator.integers(0, 3, size=(n, 3)).astype(dtype), generator
    return (generator.standard_normal((n, 3)) * 50 + 100).astype(dtype), generator


@settings(max_examples=150)
@given(
    data=st.data(),
    metric=st.sampled_from(METRICS),
    dtype=st.sampled_from([np.float64, np.float32, np.uint8]),
)
def test_blocks_give_the_neighbours_of_all_rows(data, metric, dtype):
    X, generator = draw_rows(data, dtype)
    name, parameters = metric
    distance = make_distance(name, X, **parameters)
    kept = np.flatnonzero(generator.random(len(X)) < 0.7) if data.draw(st.booleans()) else None
    if kept is not None and kept.size == 0:
        kept = None
    whole = make_search(X, distance, "brute", 30, Budget(), kept)
    block_bytes = data.draw(st.integers(1, 50)) * X.shape[1] * X.itemsize
    tree = data.draw(st.booleans()) and distance.measure is not None and distance.measure.family != "count"
    count = len(X) if kept is None else kept.size
    search = DistanceSearch(
        BlockedSearch(X, distance, kept, tree and dtype != np.uint8, 4, block_bytes), distance, count
    )
    queries = X[generator.integers(0, len(X), data.draw(st.sampled_from([0, 1, 9, 30])))]
    k = data.draw(st.integers(1, count))
    expected, found = (one.nearest(queries, k, Budget()) for one in (whole, search))
    np.testing.assert_array_equal(found.rows, expected.rows)
    np.testing.assert_array_equal(found.distances, expected.distances)
    radius = float(np.median(expected.distances)) if expected.distances.size else 1.0
    expected, found = (one.within(queries, radius, Budget()) for one in (whole, search))
    for part in ("ends", "rows", "distances"):
        np.testing.assert_array_equal(getattr(found, part), getattr(expected, part))


@pytest.mark.parametrize("queries", [1, 20, 5000])
@pytest.mark.parametrize(("columns", "dtype"), [(3, np.float64), (30, np.float64), (30, np.float32)])
def test_every_kind_of_search_of_a_block_is_exact(rng, queries, columns, dtype):
    X, Q = rng.standard_normal((4000, columns)).astype(dtype), rng.standard_normal((queries, columns))
    X[3000:3500] = X[:500]  # ties of rows in different blocks
    distance = make_distance("euclidean", X)
    search = BlockedSearch(X, distance, tree=columns == 3, block_bytes=700 * columns * X.itemsize)
    whole = make_search(X, distance, "brute", 30, Budget())
    found, expected = search.nearest(Q, 6, Budget()), whole.nearest(Q, 6, Budget())
    np.testing.assert_array_equal(found.rows, expected.rows)
    np.testing.assert_array_equal(found.distances, expected.distances)


def test_correlated_columns_are_projected(rng):
    X = rng.standard_normal((33_000, 8)) @ rng.standard_normal((8, 120))
    X += 0.01 * rng.standard_normal(X.shape)
    distance = make_distance("euclidean", X)
    search = BlockedSearch(X, distance, block_bytes=5000 * 120 * 8)
    assert search.projection is not None
    found, expected = (
        one.nearest(X[:40], 5, Budget()) for one in (search, make_search(X, distance, "brute", 30, Budget()))
    )
    np.testing.assert_array_equal(found.rows, expected.rows)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine", "seuclidean", "mahalanobis"])
def test_learners_search_files_as_they_search_arrays(rng, streamed, metric):
    X = np.round(rng.standard_normal((300, 3)), 1)
    y, weight = rng.integers(0, 3, 300), rng.integers(0, 3, 300).astype(float)
    Q, rows = np.round(rng.standard_normal((25, 3)), 1), mapped(X)
    assert mapping_of(rows) is not None
    for learner in (KNeighborsClassifier, KNeighborsRegressor):
        model, other = (
            learner(4, metric=metric, weights="distance").fit(one, y, weight) for one in (X, rows)
        )
        assert other.algorithm_ == "blocks of rows"
        np.testing.assert_array_equal(model.predict(Q), other.predict(Q))
        np.testing.assert_array_equal(model.predict(None), other.predict(None))
        for found, expected in zip(other.kneighbors(Q), model.kneighbors(Q), strict=True):
            np.testing.assert_array_equal(found, expected)
        near = zip(other.radius_neighbors(Q, 0.5), model.radius_neighbors(Q, 0.5), strict=True)
        for found, expected in near:
            for one, same in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, same)
        assert other.certificate_.verify(rows, y, weight) == model.certificate_.verify(X, y, weight)
    np.testing.assert_array_equal(
        KNeighborsClassifier(4, metric=metric).fit(rows, y).predict_proba(Q),
        KNeighborsClassifier(4, metric=metric).fit(X, y).predict_proba(Q),
    )


def test_a_search_of_blocks_is_pickled(rng, streamed):
    X = rng.standard_normal((50, 3))
    model = NearestNeighbors(n_neighbors=3).fit(mapped(X))
    other = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(model.kneighbors(X)[1], other.kneighbors(X)[1])


def test_numbers_too_large_for_the_distance_are_refused_by_the_fit(streamed):
    X = np.ones((40, 3))
    X[33, 1] = 1e200
    with pytest.raises(InputError, match="overflow"):
        NearestNeighbors(metric="minkowski", p=3).fit(mapped(X))


def test_small_tables_in_files_are_searched_as_arrays(rng):
    assert NearestNeighbors().fit(mapped(rng.standard_normal((50, 3)))).algorithm_ != "blocks of rows"


def test_a_query_ends_at_its_time_limit(rng, streamed):
    model = NearestNeighbors(time_limit=1e-9).fit(mapped(rng.standard_normal((50, 3))))
    with pytest.raises(TimeLimitReached):
        model.kneighbors(rng.standard_normal((5, 3)))
