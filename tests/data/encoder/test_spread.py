"""Median, mean and deviation of columns of numbers, whole and in pieces, against NumPy."""

from __future__ import annotations

from contextlib import closing
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixfold.data.encoder import median, spread
from sixfold.data.encoder.median import NumberStore
from sixfold.data.encoder.spread import RunningSpread, describe
from sixfold.errors import InputError

ORDERS = ("random", "sorted", "falling", "ends", "blocks")


@pytest.fixture
def small(monkeypatch):
    """Make everything small, so that a few hundred numbers go every way that many would."""
    monkeypatch.setattr(spread, "CHUNK", 16)
    monkeypatch.setattr(median, "WIDTH", 8)
    monkeypatch.setattr(median, "WAITING", 32)
    monkeypatch.setattr(median, "AT_ONCE", 20)
    monkeypatch.setattr(median, "BITS", 3)
    monkeypatch.setattr(median, "IN_MEMORY", 1000)


def in_pieces(numbers, cuts=()):
    with closing(NumberStore()) as store:
        running = RunningSpread(store)
        for start, stop in pairwise([0, *sorted(cuts), len(numbers)]):
            running.add(numbers[start:stop])
        return running.spread()


def check(numbers, cuts=()):
    """Compare the column whole, in pieces, and as NumPy describes it."""
    found = in_pieces(numbers, cuts)
    assert found == next(describe([numbers]))
    gaps = np.isnan(numbers)
    known = numbers[~gaps]
    middle = np.median(known) if known.size else 0.0
    assert (found.fill, found.gaps) == (middle, gaps.any())
    filled = np.where(gaps, middle, numbers)
    constant = not known.size or np.ptp(known) == 0
    largest = np.abs(filled).max()
    np.testing.assert_allclose(found.center, middle if constant else filled.mean(), atol=1e-15 * largest)
    unit = 2.0**600 if largest < 1e-150 else 1.0  # else NumPy's squares are 0
    deviation = 0.0 if constant else (filled * unit).std() / unit
    np.testing.assert_allclose(found.scale, deviation, rtol=1e-12, atol=1e-15 * largest)


def ordered(numbers, order):
    rising = np.sort(numbers)  # gaps come last
    if order == "blocks":
        return np.concatenate([rising[k::5] for k in range(5)])
    if order == "ends":
        return np.concatenate([rising[: len(rising) // 4], rising[::-1][: -(len(rising) // 4) or None]])
    return {"random": numbers, "sorted": rising, "falling": rising[::-1]}[order]


VALUES = (
    st.floats(-1e6, 1e6)
    | st.sampled_from([0.0, -0.0, 1.0, -1.0, np.nan])
    | st.integers(-3, 3).map(float)
    | st.floats(-1e-300, 1e-300)
)


@pytest.mark.usefixtures("small")
@settings(max_examples=300, deadline=None)
@given(
    st.lists(VALUES, min_size=1, max_size=40),
    st.integers(1, 20),
    st.sampled_from(ORDERS),
    st.lists(st.integers(0, 800), max_size=6),
)
def test_pieces_are_described_as_the_whole(values, times, order, cuts):
    numbers = ordered(np.tile(values, times), order)
    check(numbers, [min(cut, numbers.size) for cut in cuts])


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", ["normal", "whole", "two values", "far", "heavy"])
def test_long_columns(order, kind):
    rng = np.random.default_rng(0)
    numbers = {
        "normal": rng.normal(size=300_001),
        "whole": rng.integers(0, 100, 300_000).astype(float),
        "two values": np.repeat([1.0, 2.0], 150_000),
        "far": 1e9 + rng.normal(size=300_000),
        "heavy": rng.standard_cauchy(300_000) ** 5,
    }[kind]
    numbers[7::1000] = np.nan if kind != "two values" else 1.0
    check(ordered(numbers, order), [1, 1, 5_000, 123_456])


def test_the_file_is_read_only_where_it_must(monkeypatch):
    numbers = np.random.default_rng(0).normal(size=300_000)
    monkeypatch.setattr(NumberStore, "read", None)
    assert in_pieces(numbers).fill == np.median(numbers)
    with pytest.raises(TypeError):
        in_pieces(np.sort(numbers))


@pytest.mark.parametrize("size", [1e-310, 1e-200, 1.0, 1e200, 1.7e308])
def test_numbers_of_any_size(size):
    numbers = size * np.tile([-1.0, 1, 1, 1, 1, np.nan], 4000)
    found, one = in_pieces(numbers, [17_000]), np.nan_to_num(numbers[:6] / size, nan=1.0)
    assert found == next(describe([numbers]))
    np.testing.assert_allclose(found.fill, size)
    np.testing.assert_allclose(found.center / size, one.mean(), rtol=1e-9)
    np.testing.assert_allclose(found.scale / size, one.std(), rtol=1e-3)
    mixed = np.concatenate([numbers, np.tile([1.0, 2.0], 20_000)])
    assert in_pieces(mixed, [5]) == next(describe([mixed]))


def test_columns_are_described_together_as_alone():
    rng = np.random.default_rng(0)
    columns = [rng.normal(size=100) * 10.0**k for k in range(-300, 300, 100)]
    columns[2][3] = np.nan
    assert list(describe(iter(columns))) == [next(describe([one])) for one in columns]
    assert (
        next(describe([np.full(3, np.nan)])) == in_pieces(np.full(3, np.nan)) == spread.Spread(0, 0, 0, True)
    )


def test_a_full_disk_is_said(monkeypatch, tmp_path):
    store = NumberStore(tmp_path)
    store.close()

    class Full:
        def write(self, data):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "_file", Full())
    with pytest.raises(InputError, match=r"no space left in .* Name another folder by folder="):
        store.append(np.ones(3))


def test_the_file_is_in_the_folder_and_gone_afterwards(monkeypatch, tmp_path):
    monkeypatch.setattr(median, "IN_MEMORY", 100)
    store = NumberStore(tmp_path)
    place = store.append(np.arange(50.0))
    np.testing.assert_array_equal(store.read(place + 80, 3), [10.0, 11.0, 12.0])
    with pytest.raises(OSError, match="8 bytes too early"):
        store.read(place + 392, 2)
    store.close()
    assert not list(tmp_path.iterdir())
