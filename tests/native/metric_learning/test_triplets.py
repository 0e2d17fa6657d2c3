"""Loops over triplets do what the formulas say, triplet after triplet, for any number of threads."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.triplets import rounded_hinge, slope
from sixfold._native import core
from sixfold.solvers.threads import thread_limit

FLAG = np.zeros(1, dtype=np.int32)


def rows(seed, classes=3, most=9, width=8, spread=1.0):
    """Rows in the order of their classes, some of them equal, with targets of the same class."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, most, classes)
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    Z = np.zeros((ends[-1], width))
    Z[:, :5] = spread * rng.integers(-3, 4, size=(ends[-1], 5)) * rng.choice([1.0, 0.37])
    targets = np.full((ends[-1], 2), -1)
    for first, last in pairwise(ends):
        for i in range(first, last):
            others = np.setdiff1d(np.arange(first, last), [i])[:2]
            targets[i, : others.size] = others
    return Z, ends, targets, rng.uniform(0.1, 2.0, ends[-1])


def brute(Z, ends, radius):
    label = np.searchsorted(ends, np.arange(len(Z)), side="right")
    squares = np.square(Z[:, None] - Z).sum(axis=2)
    return (squares < radius[:, None]) & (label[:, None] != label)


def as_lists(found):
    lists, count = np.zeros(len(found) + 1, dtype=np.int64), found.sum(axis=1)
    lists[1:] = np.cumsum(count)
    return lists, np.nonzero(found)[1].astype(np.int32)


@given(seed=st.integers(0, 10_000), reach=st.floats(0.01, 60.0))
def test_impostors_are_all_rows_of_other_classes_within_the_radius(seed, reach):
    Z, ends, _, weight = rows(seed)
    radius = reach * weight
    found_ends, found = core.find_impostors(Z, ends, radius, np.inf, FLAG)
    expected_ends, expected = as_lists(brute(Z, ends, radius * (1.0 + 1e-9)))
    assert np.array_equal(found_ends, expected_ends)
    assert np.array_equal(found, expected)


def test_more_rows_than_a_block_of_queries_and_of_others():
    rng = np.random.default_rng(0)
    Z = np.zeros((2200, 16))  # enough to be shared
    Z[:, :11] = rng.normal(size=(2200, 11))
    ends, radius = np.array([0, 70, 900, 2200]), rng.uniform(2.0, 12.0, 2200)
    expected_ends, expected = as_lists(brute(Z, ends, radius))
    for threads in (1, 2, 3):
        with thread_limit(threads):
            found_ends, found = core.find_impostors(Z, ends, radius, np.inf, FLAG)
        assert np.array_equal(found_ends, expected_ends)
        assert np.array_equal(found, expected)


def test_no_time_and_ctrl_c_end_the_search():
    Z, ends, _, weight = rows(0)
    assert core.find_impostors(Z, ends, weight, 0.0, FLAG) is None
    assert core.find_impostors(Z, ends, weight, np.inf, FLAG) is not None


def sums(Z, targets, lists, impostors, weight, width):
    """The sums of the loop, and the slope of each pair, from all triplets in the lists."""
    totals, near, far = np.zeros(4), np.zeros(targets.shape), np.zeros(impostors.size)
    for i in range(len(Z)):
        for p in range(lists[i], lists[i + 1]):
            for place, j in enumerate(targets[i]):
                if j >= 0:
                    m = 1 + np.square(Z[i] - Z[j]).sum() - np.square(Z[i] - Z[impostors[p]]).sum()
                    a = slope(m, width)
                    totals += weight[i] * np.array([rounded_hinge(m, width), max(m, 0.0), a * m, a])
                    near[i, place] += weight[i] * a
                    far[p] -= weight[i] * a
    return totals, near, far


@given(seed=st.integers(0, 10_000), width=st.floats(1e-3, 5.0))
def test_hinges_and_their_slopes_are_added_up(seed, width):
    Z, ends, targets, weight = rows(seed)
    lists, impostors = as_lists(brute(Z, ends, np.full(len(Z), 25.0)))
    near, far = np.empty(targets.shape), np.empty(impostors.size)
    farthest = np.empty(len(Z))
    found = core.hinge_sums(Z, targets, lists, impostors, weight, width, near, far, farthest)
    expected = sums(Z, targets, lists, impostors, weight, width)
    squares = np.where(targets >= 0, np.square(Z[:, None] - Z[targets]).sum(axis=2), -np.inf)
    assert np.allclose(farthest, 1.0 + squares.max(axis=1))
    for one, other in zip((found, near, far), expected, strict=True):
        assert np.allclose(one, other, rtol=1e-12, atol=1e-12)


def test_hinges_that_are_not_rounded_have_a_slope_above_0_only():
    Z, ends, targets, weight = rows(3)
    lists, impostors = as_lists(brute(Z, ends, np.full(len(Z), 25.0)))
    near, far = np.empty(targets.shape), np.empty(impostors.size)
    smooth, hinge, linear, _ = core.hinge_sums(
        Z, targets, lists, impostors, weight, 0.0, near, far, weight.copy()
    )
    assert smooth == pytest.approx(hinge)
    assert linear == pytest.approx(hinge)


@given(seed=st.integers(0, 10_000), width=st.floats(1e-3, 5.0))
def test_triplets_are_listed_with_their_slopes(seed, width):
    Z, ends, targets, weight = rows(seed)
    lists, impostors = as_lists(brute(Z, ends, np.full(len(Z), 25.0)))
    i, place, far, a = core.list_triplets(Z, targets, lists, impostors, weight, width)
    margins = 1 + np.square(Z[i] - Z[targets[i, place]]).sum(axis=1) - np.square(Z[i] - Z[far]).sum(axis=1)
    assert np.allclose(a, slope(margins, width))
    assert (a > 0).all()
    totals, _, _ = sums(Z, targets, lists, impostors, weight, width)
    assert weight[i] @ a == pytest.approx(totals[3])


@given(seed=st.integers(0, 10_000), width=st.sampled_from([8, 16, 24, 32, 64, 72]))
def test_products_of_pairs_are_those_of_their_laplacian(seed, width):
    Z, ends, _, weight = rows(seed, width=width)
    Z[:, 5:] = np.random.default_rng(seed).normal(size=(len(Z), width - 5)) / width
    lists, others = as_lists(brute(Z, ends, 20.0 * weight))
    price = np.random.default_rng(seed).normal(size=others.size)
    price[::5] = 0.0
    first = np.repeat(np.arange(len(Z)), np.diff(lists))
    order = np.argsort(others, kind="stable")
    back = np.concatenate([[0], np.cumsum(np.bincount(others, minlength=len(Z)))])
    Y = np.empty_like(Z)
    core.pair_products(Z, lists, others, back, first[order].astype(np.int32), order, price, Y)
    expected = np.zeros_like(Z)
    np.add.at(expected, first, price[:, None] * (Z[first] - Z[others]))
    np.add.at(expected, others, price[:, None] * (Z[others] - Z[first]))
    assert np.allclose(Y, expected, atol=1e-12)


def test_sums_do_not_depend_on_the_number_of_threads():
    rng = np.random.default_rng(1)
    n = 3000
    Z, ends, weight = np.zeros((n, 8)), np.array([0, 1000, n]), rng.uniform(0.1, 1.0, n)
    Z[:, :6] = rng.normal(size=(n, 6))
    targets = ((np.arange(n) + 1) % 1000 + np.where(np.arange(n) < 1000, 0, 1000))[:, None]
    found_ends, found = core.find_impostors(Z, ends, np.full(n, 9.0), np.inf, FLAG)
    answers = []
    for threads in (1, 2, 5):
        near, far = np.empty(targets.shape), np.empty(found.size)
        with thread_limit(threads):
            answers.append(
                core.hinge_sums(Z, targets, found_ends, found, weight, 0.3, near, far, weight.copy())
            )
    assert 8 * found.size > 8 << 20  # enough to be shared
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Z": np.zeros((4, 7))}, "multiple of eight"),
        ({"targets": np.full((4, 1), 4)}, "rows of Z, or -1"),
        ({"impostors": np.array([9], dtype=np.int32)}, "those of Z"),
        ({"ends": np.array([0, 1, 1, 1, 0])}, "list of impostors"),
        ({"weight": np.ones(3)}, "an entry a row"),
        ({"of_impostors": np.empty(2)}, "weight for each pair"),
        ({"farthest": np.empty(5)}, "farthest must have"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(change, message):
    given = {
        "Z": np.zeros((4, 8)),
        "targets": np.zeros((4, 1), dtype=np.int64),
        "ends": np.array([0, 1, 1, 1, 1]),
        "impostors": np.array([2], dtype=np.int32),
        "weight": np.ones(4),
        "smoothing": 0.1,
        "of_targets": np.empty((4, 1)),
        "of_impostors": np.empty(1),
        "farthest": np.empty(4),
    }
    core.hinge_sums(**given)
    with pytest.raises(ValueError, match=message):
        core.hinge_sums(**{**given, **change})
