"""Sparse rows are found as if written out: the answers of the oracle, to the last bit and row number."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from oracles import linear as oracles
from sixfold._native import core
from sixfold.budget import Budget
from sixfold.errors import TimeLimitReached
from sixfold.geometry.distances.base import EUCLIDEAN, Measure
from sixfold.solvers.neighbors import sparse
from sixfold.solvers.neighbors.sparse import SparseSearch

SQUARES = Measure("squares")
either_root = pytest.mark.parametrize("root", [False, True])


def assert_nearest(X, Q, k, root=False, dense=None):
    """Compare with the oracle on the rows written out."""
    found = SparseSearch(X, Measure("squares", root=root)).nearest(Q, k, Budget())
    rows = X.toarray() if dense is None else dense
    distances, numbers = oracles.nearest(rows, Q.toarray(), k, "squares", root=root)
    np.testing.assert_array_equal(found.rows, numbers)
    np.testing.assert_array_equal(found.distances, distances)
    return found


def documents(n, d, seed=0, dtype=np.float64):
    """Rows of length 1 over words of which a few are everywhere, weighed by how rare they are."""
    random = np.random.default_rng(seed)
    X = np.zeros((n, d))
    for row in X:
        words = np.exp(random.uniform(0, np.log(d), 15)).astype(int) - 1
        np.add.at(row, words, 1.0)
    X *= np.log((n + 1) / (1 + (X > 0).sum(axis=0)))
    length = np.linalg.norm(X, axis=1, keepdims=True)
    return sp.csr_array((X / np.where(length > 0, length, 1.0)).astype(dtype))


# Few different numbers make ties and duplicates; the others go to the ends of what a double holds.
plain = st.sampled_from([0.0, 0.0, 0.0, 1.0, -1.0, 2.0, 0.1, 0.3])
odd = st.sampled_from([0.0, 1e-160, 5e-324, 1e100, -1e100, 1e-300, 1e8, 1e8 + 1e-7, 1e200, 3.0])
small = st.floats(-4.0, 4.0, allow_subnormal=True)


@given(data=st.data())
def test_any_rows_give_the_answers_of_the_oracle(data):
    n, m, d = (data.draw(st.integers(1, most)) for most in (12, 4, 9))
    numbers = data.draw(st.sampled_from([plain, plain | odd, plain | small]))
    X = data.draw(arrays(np.float64, (n, d), elements=numbers))
    Q = data.draw(arrays(np.float64, (m, d), elements=numbers))
    if data.draw(st.booleans()):
        Q[0] = X[-1]
    k, root = data.draw(st.integers(1, n)), data.draw(st.booleans())
    with np.errstate(over="ignore", under="ignore"), pytest.MonkeyPatch.context() as patch:
        # Without a share the lists hold all columns; with all of it the rest does.
        patch.setattr(sparse, "REST_SHARE", data.draw(st.sampled_from([-1.0, 0.3, 2.0])))
        assert_nearest(sp.csr_array(X), sp.csr_array(Q), k, root)
        search = SparseSearch(sp.csr_array(X), Measure("squares", root=root))
        radius = oracles.distance(X[0], Q[0], "squares", root=root)
        found = search.within(sp.csr_array(Q), radius, Budget())
        expected = oracles.within(X, Q, radius, "squares", root=root)
    np.testing.assert_array_equal(found.ends, np.cumsum([0, *map(len, expected)]))
    np.testing.assert_array_equal(found.rows, np.concatenate(expected))


@either_root
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scale", [1.0, 2.0**300, 2.0**-300, 1e-3])
def test_documents_of_any_scale_and_type(root, dtype, scale):
    if dtype == np.float32 and not 1e-30 < scale < 1e30:
        scale = 2.0 ** (np.sign(np.log(scale)) * 60)
    X = documents(300, 120, dtype=dtype) * dtype(scale)
    assert X.dtype == dtype
    found = assert_nearest(X, X[:20], 5, root)
    assert 20 * 5 <= found.computed < 20 * 30  # of 20 * 300
    assert_nearest(X, sp.csr_array(X[:5].astype(np.float64) * 1.1), 5, root)


def test_rows_of_many_lengths_are_ruled_out_too():
    random = np.random.default_rng(0)
    X = sp.csr_array(documents(500, 200) * random.uniform(0.01, 30.0, size=(500, 1)))
    found = assert_nearest(X, X[:20], 3)
    assert found.computed < 20 * 30


def test_more_rows_than_one_block_of_sums_holds():
    n = 40_000
    random = np.random.default_rng(0)
    columns = np.sort(random.permuted(np.tile(np.arange(30), (n, 1)), axis=1)[:, :3])
    X = sp.csr_array(
        (random.integers(1, 4, 3 * n).astype(float), columns.ravel(), np.arange(0, 3 * n + 1, 3))
    )
    rows, Q = X.toarray(), X[:20]
    squares = ((rows[None] - Q.toarray()[:, None]) ** 2).sum(axis=2)  # whole numbers: exact, with many ties
    expected = np.argsort(squares, axis=1, kind="stable")[:, :7]
    search = SparseSearch(X, SQUARES)
    for some in (Q, Q[:1]):  # many queries go to the threads one by one, few are cut along the rows
        found = search.nearest(some, 7, Budget())
        np.testing.assert_array_equal(found.rows, expected[: some.shape[0]])
        np.testing.assert_array_equal(
            found.distances, np.take_along_axis(squares, expected, 1)[: some.shape[0]]
        )
    near = search.within(Q[:3], 2.0, Budget())
    np.testing.assert_array_equal(near.rows, np.nonzero(squares[:3] <= 2.0)[1])


def test_rows_whose_squares_overflow_are_measured():
    # |x|^2 + |q|^2 of the second row overflows, 2 |x| |q| does not, and |x - q|^2 is half that of the first.
    X = sp.csr_array(1e154 * np.array([[-0.6, 0.0], [1.3 * 0.9, 1.3 * np.sqrt(1 - 0.9**2)]]))
    found = assert_nearest(X, sp.csr_array(np.array([[0.6e154, 0.0]])), 1)
    assert found.rows.tolist() == [[1]]


def test_empty_rows_and_empty_queries():
    X = sp.csr_array(np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 0.0], [0.0, 1.0]]))
    found = assert_nearest(X, sp.csr_array((1, 2)), 4)
    assert found.rows.tolist() == [[0, 2, 3, 1]]
    none = SparseSearch(X, SQUARES).nearest(sp.csr_array((0, 2)), 3, Budget())
    assert none.rows.shape == none.distances.shape == (0, 3)
    nobody = SparseSearch(X, SQUARES).within(sp.csr_array((0, 2)), 3.0, Budget())
    assert nobody.ends.tolist() == [0]
    assert_nearest(sp.csr_array((3, 2)), X, 2)
    assert_nearest(sp.csr_array((1, 0)), sp.csr_array((2, 0)), 1)


def test_columns_may_be_unsorted_repeated_and_zero():
    X = sp.csr_array(
        (np.array([2.0, 1.0, 0.0, 5.0, -1.0, 1.5]), np.array([2, 0, 1, 1, 1, 0]), np.array([0, 3, 5, 6]))
    )
    before = X.copy()
    dense = np.array([[1.0, 0.0, 2.0], [0.0, 4.0, 0.0], [1.5, 0.0, 0.0]])
    assert_nearest(X, X, 3, dense=dense)
    np.testing.assert_array_equal(X.indices, before.indices)
    np.testing.assert_array_equal(X.data, before.data)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
def test_kinds_of_tables_and_indices(index, kind):
    X = kind(documents(60, 40))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    assert_nearest(X, X[:5], 60)


def test_rows_are_kept_as_they_are_where_possible():
    X = documents(60, 40)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    _, columns, values = SparseSearch(X, SQUARES).rows
    assert np.shares_memory(columns, X.indices)
    assert np.shares_memory(values, X.data)


@pytest.mark.parametrize("queries", [1, 40])
def test_threads_do_not_change_anything(queries):
    X = sp.csr_array(np.round(documents(40_000, 50).toarray(), 1))
    answers = []
    for threads in (1, 2):
        before = core.limit_threads(threads)
        answers.append(SparseSearch(X, EUCLIDEAN).nearest(X[:queries], 5, Budget()))
        core.limit_threads(before)
    np.testing.assert_array_equal(answers[0].rows, answers[1].rows)
    np.testing.assert_array_equal(answers[0].distances, answers[1].distances)
    assert answers[0].computed == answers[1].computed


def test_chunks_are_joined(monkeypatch):
    X = documents(50, 40, dtype=np.float32)
    whole = SparseSearch(X, SQUARES)
    expected, near = whole.nearest(X, 3, Budget()), whole.within(X, 1.5, Budget())
    monkeypatch.setattr(sparse, "QUERIES_PER_CALL", 7)
    found, close = whole.nearest(X, 3, Budget()), whole.within(X, 1.5, Budget())
    np.testing.assert_array_equal(found.rows, expected.rows)
    assert found.computed == expected.computed
    for one, other in zip(vars(close).values(), vars(near).values(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_copy_through_pickle_answers_the_same():
    X = documents(50, 40)
    search = SparseSearch(X, EUCLIDEAN)
    again = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(again.nearest(X, 3, Budget()).rows, search.nearest(X, 3, Budget()).rows)


def test_a_time_limit_or_ctrl_c_ends_the_query():
    X = documents(50, 40)
    search = SparseSearch(X, SQUARES)
    for ask in (lambda budget: search.nearest(X, 3, budget), lambda budget: search.within(X, 1.0, budget)):
        with pytest.raises(TimeLimitReached, match="time_limit"):
            ask(Budget(time_limit=0.0))
        pressed = Budget()
        pressed.flag[0] = 1
        with pytest.raises(KeyboardInterrupt):
            ask(pressed)


def test_the_loops_themselves_stop():
    X = documents(50, 40)
    search = SparseSearch(X, SQUARES)
    distances, rows = np.empty((50, 3)), np.empty((50, 3), dtype=np.int64)
    limits = {"seconds_left": 0.0, "flag": np.zeros(1, dtype=np.int32)}
    asked = (*search.rows, search.lists, search.rows, False)
    before = core.limit_threads(1)  # with two, the one that does not look at the clock may do it all
    finished, computed = core.sparse_nearest(*asked, distances, rows, **limits)
    assert not finished
    assert computed == 0
    finished, *_ = core.sparse_within(*asked, 1.0, **limits)
    assert not finished
    core.limit_threads(before)


def test_other_measures_are_refused():
    with pytest.raises(ValueError, match="not by 'absolute'"):
        SparseSearch(documents(5, 4), Measure("absolute"))


def filled(**changed):
    """Call the loop that fills the lists of two rows, (1, 0, 2) and (0, 3, 4), the last column set aside."""
    given = {
        "starts": np.array([0, 2, 4]),
        "columns": np.array([0, 2, 1, 2], dtype=np.int32),
        "values": np.array([1.0, 2.0, 3.0, 4.0]),
        "lengths": np.array([5.0**0.5, 5.0]),
        "order": np.array([0, 1]),
        "cursors": np.array([0, 1, 2, 2]),
        "list_places": np.empty(2, np.int32),
        "list_values": np.empty(2, np.float32),
        "rest_of": np.array([-1, -1, 0], dtype=np.int32),
        "rest_starts": np.empty(3, np.int64),
        "rest_columns": np.empty(2, np.int32),
        "rest_values": np.empty(2, np.float32),
        "rest_lengths": np.empty(2, np.float32),
    }
    given |= {name: np.array(value, dtype=given[name].dtype) for name, value in changed.items()}
    core.sparse_fill(**given)
    return given["list_places"].tolist()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"columns": [0, 3, 1, 2]}, "columns must be those"),
        ({"columns": [0, -1, 1, 2]}, "columns must be those"),
        ({"columns": [0, 1, 1, 2]}, "room for the entries"),
        ({"starts": [0, 9, 4]}, "starts must not fall"),
        ({"starts": [-1, 2, 4]}, "starts must lie within"),
        ({"order": [0, 2]}, "every row once"),
        ({"order": [1, 1]}, "every row once"),
        ({"cursors": [0, 9, 2, 2]}, "room for the entries"),
        ({"cursors": [1, 1, 2, 2]}, "the starts of the lists"),
        ({"rest_of": [-1, -1, -1]}, "room for the entries"),
    ],
    ids=str,
)
def test_lists_are_filled_only_where_they_have_room(changed, message):
    assert filled() == [0, 1]
    with pytest.raises(ValueError, match=message):
        filled(**changed)


@pytest.mark.parametrize("column", [-1, 7])
def test_the_loops_refuse_columns_of_queries_that_the_rows_do_not_have(column):
    search = SparseSearch(documents(20, 7), SQUARES)
    query = np.array([0, 1]), np.array([column], dtype=np.int32), np.ones(1)
    limits = {"seconds_left": np.inf, "flag": np.zeros(1, np.int32)}
    with pytest.raises(ValueError, match="columns of X"):
        core.sparse_within(*search.rows, search.lists, query, False, 1.0, **limits)
