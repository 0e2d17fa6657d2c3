"""A distance is the terms rounded to doubles, their sum rounded once, whatever the order of the columns."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from oracles import linear as oracles
from sixfold._native import core

MEASURES = [
    ("squares", 2.0, False),
    ("squares", 2.0, True),
    ("absolute", 1.0, False),
    ("largest", 1.0, False),
    ("count", 1.0, False),
    ("power", 3.0, True),
    ("power", 0.5, False),
]
every_measure = pytest.mark.parametrize(("family", "p", "root"), MEASURES)


def distances(X, Q, family, p, root):
    out = np.empty((len(Q), len(X)))
    core.exact_distances(X, Q, out, family, p, root)
    return out


def by_definition(X, Q, *measure):
    return np.array([[oracles.distance(x, q, *measure) for x in X] for q in Q])


@every_measure
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])
@pytest.mark.parametrize("columns", [1, 3, 8, 29, 200])
def test_distances_are_those_of_the_definition(family, p, root, dtype, columns):
    random = np.random.default_rng(columns)
    X = (random.normal(size=(20, columns)) * 40 + 100).astype(dtype)
    Q = np.ascontiguousarray(X[:5].astype(np.float64) + random.integers(0, 2, size=(5, columns)))
    found, expected = distances(X, Q, family, p, root), by_definition(X, Q, family, p, root)
    if family == "power":  # the last bit of a power is the library's
        np.testing.assert_allclose(found, expected, rtol=1e-14)
    else:
        np.testing.assert_array_equal(found, expected)


numbers = st.floats(-1e60, 1e60, allow_subnormal=True) | st.sampled_from([0.1, 0.2, 0.3, 1e8, 1e8 + 1e-7])


@every_measure
@given(data=st.data())
def test_the_order_of_columns_does_not_matter(family, p, root, data):
    columns = data.draw(st.integers(1, 40))
    X = data.draw(arrays(np.float64, (2, columns), elements=numbers))
    order = np.array(data.draw(st.permutations(range(columns))))
    Q = np.ascontiguousarray(X[::-1])
    turned = distances(np.ascontiguousarray(X[:, order]), np.ascontiguousarray(Q[:, order]), family, p, root)
    np.testing.assert_array_equal(distances(X, Q, family, p, root), turned)


@pytest.mark.parametrize("tiny", [2.0**-60, 2.0**-500, 0.0])
def test_a_sum_half_way_between_two_doubles_is_decided_by_its_smallest_term(tiny):
    # 1 + 2^-52 and half an ulp: to even, up, unless something is missing or more is there.
    for half, more in [(1.0 + 2.0**-52, 2.0**-53), (1.0, 2.0**-53)]:
        terms = np.array([[half, more, tiny]])
        for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]):
            X = np.ascontiguousarray(terms[:, order])
            expected = math.fsum(terms[0])
            assert distances(X, np.zeros((1, 3)), "absolute", 1.0, False) == expected


@given(terms=st.lists(st.builds(math.ldexp, st.sampled_from([0, 1, 3, 5, 2**53 - 1]), st.integers(-160, 60))))
def test_sums_of_terms_of_any_size_are_rounded_once(terms):
    X = np.array([terms], dtype=np.float64)
    assert distances(X, np.zeros_like(X), "absolute", 1.0, False) == math.fsum(terms)


@every_measure
@pytest.mark.parametrize("columns", [1, 3, 20])
def test_sums_that_overflow_are_infinite(family, p, root, columns):
    X, Q = np.full((1, columns), 1e308), np.full((1, columns), -1e308)
    expected = columns if family == "count" else np.inf
    assert distances(X, Q, family, p, root) == expected
