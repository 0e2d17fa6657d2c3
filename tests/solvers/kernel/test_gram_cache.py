"""What the cache of Gram matrices holds is the Gram matrix, whatever was asked for before."""

import contextlib
import threading
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixfold.budget import Budget
from sixfold.geometry.kernels import RBF, Called
from sixfold.solvers.kernel import gram_cache
from sixfold.solvers.kernel.gram_cache import ClassBlocks, GramCache
from sixfold.solvers.kernel.kernel_rows import KernelRows

KERNEL = RBF(0.3)
X = np.random.default_rng(0).normal(size=(40, 3))
K = KERNEL(X)


@settings(max_examples=50, deadline=None)
@given(
    sets=st.lists(
        st.tuples(st.sets(st.integers(0, 29), min_size=1, max_size=12), st.booleans()), min_size=1, max_size=8
    ),
    room=st.integers(12, 30),
    worth_lines=st.sampled_from([1, 1024]),
)
def test_wanted_rows_are_held(sets, room, worth_lines):
    index = np.random.default_rng(1).permutation(40)[:30]
    cache = GramCache(KernelRows(X, KERNEL), index, 8 * room**2)
    for wanted, single in sets:
        dtype = np.float32 if single else np.float64
        with mock.patch.object(gram_cache, "WORTH_LINES", worth_lines):
            held, gram = cache.hold(np.array(sorted(wanted)), dtype, Budget())
        assert set(held) >= wanted
        assert len(set(held)) == held.size <= cache.capacity(dtype)
        assert gram.dtype == dtype
        assert cache._room.nbytes <= 8 * room**2
        exact = K[np.ix_(index[held], index[held])]
        np.testing.assert_allclose(gram, exact, rtol=0, atol=1e-6 if single else 1e-14)
        np.testing.assert_array_equal(gram, gram.T)


@pytest.mark.parametrize("kernel", [KERNEL, Called(lambda A, B: A @ B.T + 1e-3 * A[:, :1])])
def test_what_is_appended_is_exactly_symmetric_whoever_computes_it(kernel):
    cache = GramCache(KernelRows(X, kernel), np.arange(40), 1 << 20)
    cache.hold(np.arange(21), np.float32, Budget())
    _, gram = cache.hold(np.arange(35), np.float32, Budget())
    np.testing.assert_array_equal(gram, gram.T)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("size", "first"), [(40, 40), (40, 9), (17, 5)])
def test_rows_begin_with_a_line_of_the_cache_where_memory_allows(monkeypatch, dtype, size, first):
    monkeypatch.setattr(gram_cache, "WORTH_LINES", 20)
    cache = GramCache(KernelRows(X, KERNEL), np.arange(size), 1 << 20)
    for wanted in (np.arange(first), np.arange(size)):
        _, gram = cache.hold(wanted, dtype, Budget())
        assert gram.ctypes.data % 64 == 0
        assert gram.strides[0] % 64 == 0


def test_many_new_rows_begin_with_a_line(monkeypatch):
    monkeypatch.setattr(gram_cache, "WORTH_LINES", 20)
    cache = GramCache(KernelRows(X, KERNEL), np.arange(40), 1 << 20)
    cache.hold(np.arange(13), np.float64, Budget())
    with mock.patch.object(KernelRows, "block", autospec=True, side_effect=KernelRows.block) as block:
        cache.hold(np.arange(40), np.float64, Budget())
    starts = [call.kwargs["out"].ctypes.data % 64 for call in block.mock_calls]
    assert starts == [13 * 8 % 64, 0]


def test_positions_that_were_returned_stay_as_they_were():
    cache = GramCache(KernelRows(X, KERNEL), np.arange(40), 1 << 20)
    held, _ = cache.hold(np.arange(20), np.float64, Budget())
    cache.hold(np.arange(10, 20), np.float64, Budget())
    assert held.tolist() == list(range(20))


def test_held_rows_are_not_computed_again():
    cache = GramCache(KernelRows(X, KERNEL), np.arange(40), 1 << 20)
    cache.hold(np.arange(20), np.float64, Budget())
    with (
        mock.patch.object(KernelRows, "gram", autospec=True, side_effect=KernelRows.gram) as gram,
        mock.patch.object(KernelRows, "block", autospec=True, side_effect=KernelRows.block) as block,
    ):
        cache.hold(np.arange(2, 22), np.float64, Budget())
    assert [call.args[1].tolist() for call in gram.mock_calls] == [[20, 21]]
    assert [[rows.tolist() for rows in call.args[1:3]] for call in block.mock_calls] == [
        [list(range(20)), [20, 21]]
    ]


def test_rows_not_wanted_go_when_they_are_many():
    cache = GramCache(KernelRows(X, KERNEL), np.arange(40), 1 << 20)
    cache.hold(np.arange(20), np.float64, Budget())
    assert cache.hold(np.arange(19), np.float64, Budget())[0].size == 20
    held, gram = cache.hold(np.arange(4, 14), np.float64, Budget())
    assert held.tolist() == [10, 11, 12, 13, 4, 5, 6, 7, 8, 9]  # the last take the places of those that go
    np.testing.assert_allclose(gram, K[np.ix_(held, held)], atol=1e-14)


@pytest.mark.parametrize("memory", [0, 8 * 15**2, 1 << 20])
def test_pairs_of_classes_share_their_blocks(memory):
    rows = KernelRows(X, KERNEL)
    classes = [np.arange(0, 10), np.arange(10, 25), np.arange(25, 40)]
    blocks = ClassBlocks(rows, classes, memory)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        index = np.concatenate([classes[one], classes[other]])
        cache = GramCache(rows, index, 1 << 20, blocks, (one, other))
        held, gram = cache.hold(np.arange(index.size), np.float64, Budget())
        assert held.tolist() == list(range(index.size))
        np.testing.assert_allclose(gram, K[np.ix_(index, index)], atol=1e-14)
        assert sum(block.nbytes for block in blocks._blocks.values()) <= memory


def test_two_classes_cannot_both_have_the_last_bytes():
    classes = [np.arange(0, 10), np.arange(10, 20)]
    blocks = ClassBlocks(KernelRows(X, KERNEL), classes, 800)
    both = threading.Barrier(2)

    class Left(int):
        """What is left, looked at by both threads before either takes any of it, if they can."""

        def __ge__(self, other):
            with contextlib.suppress(threading.BrokenBarrierError):
                both.wait(0.2)
            return int(self) >= other

    blocks._left = Left(800)
    threads = [
        threading.Thread(target=blocks.fill, args=(number, np.empty((10, 10)), Budget())) for number in (0, 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(blocks._blocks) == 1
    assert blocks._left == 0


def test_each_value_of_shared_blocks_is_computed_once(monkeypatch):
    rows, asked = KernelRows(X, KERNEL), []
    original = KernelRows.gram
    monkeypatch.setattr(
        KernelRows, "gram", lambda *a, **k: (asked.append(a[1].tolist()), original(*a, **k))[1]
    )
    classes = [np.arange(0, 10), np.arange(10, 25), np.arange(25, 40)]
    blocks = ClassBlocks(rows, classes, 1 << 20)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        index = np.concatenate([classes[one], classes[other]])
        cache = GramCache(rows, index, 1 << 20, blocks, (one, other))
        cache.hold(np.arange(index.size), np.float64, Budget())
    assert sorted(asked) == [part.tolist() for part in classes]
