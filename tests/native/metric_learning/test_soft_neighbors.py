"""Soft neighbours by both loops are those of the n x n matrix of probabilities."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import soft_neighbors as oracle
from sixfold._native import core

NEAR, DENSE = "near", "dense"
each_way = pytest.mark.parametrize("way", [NEAR, DENSE])


def evaluate(way, Z, y, weight=None, reach=60.0, nearest=None, most=1 << 40):
    count = len(Z)
    q = np.ones(count) if weight is None else np.asarray(weight, dtype=float)
    right, pulls, flag = np.empty(count), np.empty_like(Z), np.zeros(1, dtype=np.int32)
    rows = (Z, y.astype(np.int32), q, np.maximum(q - 1.0, 0.0), reach)
    out = (right, pulls, math.inf, flag)
    if way == NEAR:
        nearest = np.full(count, -1, dtype=np.int64) if nearest is None else nearest
        answer = core.near_soft_neighbors(*rows, most, nearest, *out)
    else:
        answer = core.dense_soft_neighbors(*rows, *out)
    return answer, right, pulls


def problem(count, columns, spread, seed=0, classes=3):
    rng = np.random.default_rng(seed)
    Z = spread * rng.standard_normal((count, columns))
    return Z - Z.mean(axis=0), rng.integers(0, classes, count)


def assert_same(found, Z, y, weight=None, tolerance=1e-11):
    _, right, pulls = found
    assert np.allclose(right, oracle.right(Z, y, weight), rtol=0, atol=tolerance)
    expected = oracle.pulls(Z, y, weight)
    assert np.allclose(pulls, expected, rtol=0, atol=tolerance * max(np.abs(Z).max(), 1.0))


@each_way
@given(
    count=st.integers(1, 130),
    columns=st.integers(1, 30),
    spread=st.sampled_from([1e-3, 0.1, 0.5, 1.0, 3.0, 10.0]),
    seed=st.integers(0, 5),
    classes=st.integers(1, 5),
)
@settings(max_examples=60, deadline=None)
def test_probabilities_and_pulls_are_those_of_the_whole_matrix(way, count, columns, spread, seed, classes):
    Z, y = problem(count, columns, spread, seed, classes)
    assert_same(evaluate(way, Z, y), Z, y)


@each_way
@pytest.mark.parametrize(("count", "columns"), [(700, 50), (1100, 2), (300, 140)])
@pytest.mark.parametrize("spread", [0.3, 1.0, 4.0])
def test_several_slabs_and_blocks_of_columns_add_up(way, count, columns, spread):
    Z, y = problem(count, columns, spread)
    assert_same(evaluate(way, Z, y), Z, y)


@each_way
def test_a_weight_of_two_is_a_row_twice(way):
    Z, y = problem(90, 4, 1.0)
    weight = np.random.default_rng(1).integers(1, 4, 90)
    repeated = np.repeat(np.arange(90), weight)
    _, right, pulls = evaluate(way, Z, y, weight)
    _, once, each = evaluate(way, np.ascontiguousarray(Z[repeated]), y[repeated])
    assert np.allclose(right[repeated], once, atol=1e-13)
    summed = np.zeros_like(Z)
    np.add.at(summed, repeated, each)
    assert np.allclose(pulls, summed, atol=1e-12)


@each_way
@pytest.mark.parametrize("weights", ["fractions", "many decades"])
def test_weights_that_are_no_counts(way, weights):
    Z, y = problem(200, 3, 1.0)
    rng = np.random.default_rng(2)
    weight = rng.random(200) if weights == "fractions" else 10.0 ** rng.uniform(-8, 8, 200)
    assert_same(evaluate(way, Z, y, weight), Z, y, weight, 1e-11 * max(weight.max(), 1.0))


@each_way
def test_equal_rows_are_at_distance_zero(way):
    Z, y = problem(40, 5, 30.0)
    Z, y = np.repeat(Z, 3, axis=0), np.tile(y, 3)
    assert_same(evaluate(way, Z, y), Z, y)


@each_way
def test_one_class_is_picked_surely_and_pulls_nothing(way):
    Z, y = problem(120, 4, 1.0, classes=1)
    _, right, pulls = evaluate(way, Z, y)
    assert (right == 1.0).all()
    assert not pulls.any()


@each_way
def test_the_number_of_threads_changes_no_bit(way):
    Z, y = problem(1500, 20, 1.0)
    results = []
    for threads in (1, 2, 3, 7):
        before = core.limit_threads(threads)
        results.append(evaluate(way, Z, y))
        core.limit_threads(before)
    for answer, right, pulls in results[1:]:
        assert answer == results[0][0]
        assert np.array_equal(right, results[0][1])
        assert np.array_equal(pulls, results[0][2])


@pytest.mark.parametrize("reach", [1.0, 3.0, 8.0, 20.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_what_is_left_out_is_within_what_is_reported(reach, weighted):
    Z, y = problem(400, 10, 1.5)
    weight = np.random.default_rng(3).uniform(0.1, 3.0, 400) if weighted else None
    (ended, kept, omitted), right, _ = evaluate(NEAR, Z, y, weight, reach)
    q = np.ones(400) if weight is None else weight
    lost = q @ np.abs(right - oracle.right(Z, y, weight))
    assert ended == 0
    assert kept < 400 * 400
    assert lost <= omitted + 1e-12
    assert reach > 1.0 or lost > 1e-3  # the reach is short enough to see it


@pytest.mark.parametrize("scale", [1.0, 1e4, 1e9, 1e120])
def test_rows_near_are_found_whatever_rounding_does_to_the_tiles(scale):
    Z, y = problem(300, 6, 1.0)
    Z[1::2] = Z[::2] + 1e-3 / scale  # pairs closer than single precision tells, far from the others
    near, dense = evaluate(NEAR, Z * scale, y), oracle.right(Z * scale, y)
    assert np.allclose(near[1], dense, rtol=0, atol=1e-9)


def test_a_row_near_that_is_known_spares_the_search_and_changes_nothing_that_counts():
    Z, y = problem(500, 20, 2.0)
    nearest = np.full(500, -1, dtype=np.int64)
    _, first, pulls = evaluate(NEAR, Z, y, nearest=nearest)
    D = np.square(Z[:, None] - Z[None]).sum(axis=2)
    np.fill_diagonal(D, np.inf)
    assert np.array_equal(nearest, D.argmin(axis=1))
    _, second, again = evaluate(NEAR, Z, y, nearest=nearest)
    assert np.allclose(first, second, atol=1e-14)
    assert np.allclose(pulls, again, atol=1e-13)
    assert_same(evaluate(NEAR, Z, y, nearest=np.roll(np.arange(500), 1)), Z, y)  # near or not


def test_too_many_pairs_end_the_search():
    Z, y = problem(400, 3, 0.1)
    assert evaluate(NEAR, Z, y, most=1000)[0][0] == 2


@each_way
def test_both_stop_when_time_is_up(way):
    Z, y = problem(3000, 10, 1.0)
    rows = (Z, y.astype(np.int32), np.ones(3000), np.zeros(3000), 60.0)
    out = (np.empty(3000), np.empty_like(Z), 0.0, np.zeros(1, dtype=np.int32))
    if way == NEAR:
        answer = core.near_soft_neighbors(*rows, 1 << 40, np.full(3000, -1), *out)
    else:
        answer = core.dense_soft_neighbors(*rows, *out)
    assert answer[0] == 1


def test_sizes_are_checked_at_the_border():
    Z, y = problem(10, 2, 1.0)
    with pytest.raises(ValueError, match="one entry a row"):
        evaluate(DENSE, Z, y[:9])
    with pytest.raises(ValueError, match="numbers of other rows"):
        evaluate(NEAR, Z, y, nearest=np.full(10, 10))
    with pytest.raises(ValueError, match="numbers of other rows"):
        evaluate(NEAR, Z, y, nearest=np.arange(10))
