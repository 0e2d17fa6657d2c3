"""Large arrays in files: the same numbers, and memory that the process does not hold."""

import os

import numpy as np
import pytest

from sixfold._native import core
from sixfold.solvers import memory
from sixfold.solvers.memory import bounded_memory

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="Linux tells what is held")

SIZE = 3_000_000  # numbers: 24 MB


def test_large_arrays_are_in_files_and_small_ones_are_not(tmp_path):
    before = core.spilled_bytes()
    with bounded_memory(1e9, str(tmp_path)):
        small = np.ones(1000)
        assert core.spilled_bytes() == before
        large = np.ones(SIZE)
        assert core.spilled_bytes() - before >= large.nbytes
        assert os.listdir(tmp_path) == []  # files have no names
    assert small.sum() == 1000
    assert large.sum() == SIZE  # it outlives what it was made in
    del large
    assert core.spilled_bytes() == before
    assert np.ones(SIZE).sum() == SIZE
    assert core.spilled_bytes() == before


def test_arithmetic_growth_and_zeros_are_as_usual(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=SIZE)
    plain = np.append(np.sort(x[::-1] * 2 - x), [1.0, 2.0])
    with bounded_memory(1e9, str(tmp_path)):
        for _ in range(3):  # the second time, regions are used again
            zeros = np.zeros(SIZE)
            assert not zeros.any()
            zeros += 1
            del zeros
        filed = np.append(np.sort(x[::-1] * 2 - x), [1.0, 2.0])
        grown = np.ones(10)
        for size in (SIZE, 2 * SIZE, 20, SIZE):
            grown.resize(size, refcheck=False)
        assert grown[:10].tolist() == [1.0] * 10
        assert not grown[10:].any()
    np.testing.assert_array_equal(filed, plain)


@pytest.mark.limits_memory
def test_what_the_process_holds_stays_near_the_limit(tmp_path):
    held_before = resident()
    limit = held_before + 150e6
    with bounded_memory(limit / memory.NEAR, str(tmp_path)):
        arrays = [np.full(SIZE, float(k)) for k in range(25)]  # 600 MB
        held = resident() - held_before
        assert [array[-1] for array in arrays] == list(range(25))
    assert held < 400e6


def test_nested_limits_and_errors_leave_nothing_behind(tmp_path):
    before = core.spilled_bytes()

    def fail():
        with bounded_memory(1e9, str(tmp_path)):
            with bounded_memory(1e9, str(tmp_path)):
                inner = np.ones(SIZE)
            outer = np.ones(SIZE)
            assert core.spilled_bytes() - before >= inner.nbytes + outer.nbytes
            del inner, outer
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert core.spilled_bytes() == before
    large = np.ones(SIZE)
    assert core.spilled_bytes() == before
    assert large.size == SIZE


def test_a_folder_that_cannot_be_written_to_leaves_arrays_in_memory(tmp_path):
    before = core.spilled_bytes()
    with bounded_memory(1e9, str(tmp_path / "nowhere")):
        assert np.ones(SIZE).sum() == SIZE
        assert core.spilled_bytes() == before


def resident():
    with open("/proc/self/statm", encoding="ascii") as status:
        return int(status.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
