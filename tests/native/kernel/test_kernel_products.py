"""Kernel matrices and scores are those of the formulas, and the same to the last bit for any threads."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sixfold._native import core

KINDS = ["linear", "polynomial", "rbf", "sigmoid"]
UNIT = {np.float32: 2.0**-24, np.float64: 2.0**-53}
every_kind = pytest.mark.parametrize("kind", KINDS)
every_type = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def by_definition(kind, gamma, coef0, degree, A, B):
    A, B = A.astype(np.longdouble), B.astype(np.longdouble)
    products = A @ B.T
    if kind == "linear":
        return products
    if kind == "rbf":
        return np.exp(-gamma * np.square(A[:, None] - B).sum(axis=2))
    inner = gamma * products + coef0
    return np.tanh(inner) if kind == "sigmoid" else inner**degree


def block(
    form,
    A,
    B,
    dtype,
    *,
    a_index=None,
    b_index=None,
    centre=None,
    same=False,
    out=None,
    mirrored=None,
    seconds=math.inf,
):
    rows, columns = (len(X) if index is None else len(index) for X, index in ((A, a_index), (B, b_index)))
    out = np.full((rows, columns), np.nan, dtype) if out is None else out
    flag = np.zeros(1, np.int32)
    completed = core.kernel_block(*form, A, a_index, B, b_index, centre, same, out, mirrored, seconds, flag)
    return out if math.isinf(seconds) else completed


def scores(form, A, B, coefficients, dtype, *, a_index=None, b_index=None, centre=None, seconds=math.inf):
    rows = len(A) if a_index is None else len(a_index)
    out = np.full((rows, coefficients.shape[1]), np.nan)
    flag, single = np.zeros(1, np.int32), dtype == np.float32
    completed = core.kernel_scores(
        *form, A, a_index, B, b_index, centre, coefficients, single, out, seconds, flag
    )
    return out if math.isinf(seconds) else completed


@pytest.fixture
def two_threads():
    """Threads for calls that are worth it, as many as the machine has."""
    yield core.threads()
    core.limit_threads(0)


def rows_of(random, rows, columns, dtype):
    return random.normal(size=(rows, columns)).astype(dtype)


@every_kind
@every_type
@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (3, 2, 2), (8, 48, 5), (9, 49, 16), (97, 25, 130), (200, 7, 257)]
)
def test_a_block_has_the_entries_of_the_formula(kind, dtype, shape):
    p, q, columns = shape
    random = np.random.default_rng(p)
    A, B = rows_of(random, p, columns, dtype), rows_of(random, q, columns, dtype)
    form = (kind, 0.7 / columns, 0.3, 3)
    exact = by_definition(*form, A, B)
    scale = (
        np.abs(by_definition(*form, np.abs(A), np.abs(B))).max() if kind == "linear" else np.abs(exact).max()
    )
    np.testing.assert_allclose(block(form, A, B, dtype), exact, rtol=0, atol=40 * UNIT[dtype] * max(scale, 1))


@every_kind
@every_type
@pytest.mark.parametrize("width", [1, 3, 17])
def test_scores_are_the_kernel_matrix_times_the_coefficients(kind, dtype, width):
    random = np.random.default_rng(width)
    A, B = rows_of(random, 203, 6, dtype), rows_of(random, 131, 6, dtype)
    coefficients = random.normal(size=(131, width))
    form = (kind, 0.2, -0.1, 2)
    matrix = block(form, A, B, dtype).astype(np.float64)
    found = scores(form, A, B, coefficients, dtype)
    np.testing.assert_allclose(found, matrix @ coefficients, rtol=0, atol=1e-13 * np.abs(matrix).max() * 131)


@every_kind
def test_rows_are_chosen_and_repeated_by_their_numbers(kind):
    random = np.random.default_rng(0)
    X = rows_of(random, 60, 4, np.float64)
    a, b = random.integers(0, 60, size=75), random.integers(0, 60, size=33)
    form = (kind, 0.5, 0.25, 4)
    found = block(form, X, X, np.float64, a_index=a, b_index=b)
    np.testing.assert_array_equal(found, block(form, X, X, np.float64)[np.ix_(a, b)])
    weights = random.normal(size=(33, 2))
    chosen = scores(form, X, X, weights, np.float64, a_index=a, b_index=b)
    np.testing.assert_array_equal(chosen, scores(form, X[a], X[b], weights, np.float64))


@every_kind
@every_type
@given(rows=st.integers(1, 230), columns=st.integers(1, 12), seed=st.integers(0, 99))
def test_a_gram_matrix_is_exactly_symmetric_and_the_same_as_a_block(kind, dtype, rows, columns, seed):
    X = rows_of(np.random.default_rng(seed), rows, columns, dtype)
    form = (kind, 0.4, 0.1, 3)
    gram = block(form, X, X, dtype, same=True)
    np.testing.assert_array_equal(gram, gram.T)
    np.testing.assert_array_equal(gram, block(form, X, X, dtype))


@every_type
@pytest.mark.parametrize("columns", [1, 5, 127, 128, 129, 784])
def test_equal_rows_are_at_distance_zero_and_none_is_nearer(dtype, columns):
    random = np.random.default_rng(columns)
    X = rows_of(random, 70, columns, dtype) * 100
    X[53:] = X[:17]
    gram = block(("rbf", 3.0, 0.0, 1), X, X, dtype, same=True)
    np.testing.assert_array_equal(np.diagonal(gram), 1.0)
    np.testing.assert_array_equal(gram[np.arange(17), np.arange(53, 70)], 1.0)
    nudged = np.nextafter(X, np.inf)
    assert block(("rbf", 3.0, 0.0, 1), X, nudged, dtype).max() <= 1.0


@every_kind
@every_type
def test_one_and_more_threads_agree_bit_for_bit(kind, dtype, two_threads):
    random = np.random.default_rng(3)
    A, B = rows_of(random, 900, 33, dtype), rows_of(random, 350, 33, dtype)
    coefficients, form = random.normal(size=(350, 2)), (kind, 0.03, 0.5, 3)

    def everything():
        return (
            block(form, A, B, dtype),
            block(form, A, A, dtype, same=True),
            scores(form, A, B, coefficients, dtype),
        )

    many = everything()
    core.limit_threads(1)
    for together, alone in zip(many, everything(), strict=True):
        np.testing.assert_array_equal(together, alone)


@every_type
def test_a_corner_of_a_larger_matrix_is_filled_and_nothing_else(dtype):
    random = np.random.default_rng(4)
    X = rows_of(random, 101, 3, dtype)
    form = ("rbf", 0.5, 0.0, 1)
    large = np.full((120, 140), 7.0, dtype)
    block(form, X, X, dtype, same=True, out=large[5:106, 11:112])
    np.testing.assert_array_equal(large[5:106, 11:112], block(form, X, X, dtype))
    large[5:106, 11:112] = 7.0
    assert (large == 7.0).all()


@every_kind
@every_type
@given(rows=st.integers(0, 230), others=st.integers(0, 230), offset=st.integers(0, 17))
def test_the_mirrored_block_is_the_block_transposed_and_nothing_else_is_written(
    kind, dtype, rows, others, offset
):
    random, form = np.random.default_rng(rows), (kind, 0.4, 0.1, 3)
    A, B = rows_of(random, rows, 3, dtype), rows_of(random, others, 3, dtype)
    large = np.full((others + 2, offset + rows + 3), 7.0, dtype)
    mirrored = large[1:-1, offset : offset + rows]
    found = block(form, A, B, dtype, mirrored=mirrored)
    np.testing.assert_array_equal(found, block(form, A, B, dtype))
    np.testing.assert_array_equal(mirrored, found.T)
    mirrored[:] = 7.0
    assert (large == 7.0).all()


@every_type
@pytest.mark.parametrize("offset", [0, 5])
def test_matrices_larger_than_the_caches_are_the_same(dtype, offset, two_threads):
    random, form = np.random.default_rng(9), ("rbf", 0.1, 0.0, 1)
    A, B = rows_of(random, 3001, 4, dtype), rows_of(random, 2903, 4, dtype)
    large = np.full((2903, 3020), 7.0, dtype)
    mirrored = large[:, offset : offset + 3001]
    many = block(form, A, B, dtype, mirrored=mirrored)
    np.testing.assert_array_equal(mirrored, many.T)
    mirrored[:] = 7.0
    assert (large == 7.0).all()
    by_parts = [block(form, A[k : k + 500], B, dtype) for k in range(0, 3001, 500)]  # which stay in a cache
    np.testing.assert_array_equal(many, np.concatenate(by_parts))
    core.limit_threads(1)
    np.testing.assert_array_equal(block(form, A, B, dtype), many)


def test_no_others_make_an_empty_block_and_scores_of_zero():
    X, nobody = np.ones((5, 3)), np.zeros(0, np.int64)
    form = ("rbf", 1.0, 0.0, 1)
    assert block(form, X, X, np.float64, b_index=nobody).shape == (5, 0)
    assert block(form, X, X, np.float64, a_index=nobody).shape == (0, 5)
    np.testing.assert_array_equal(
        scores(form, X, X, np.zeros((0, 2)), np.float64, b_index=nobody), np.zeros((5, 2))
    )


def test_rows_without_columns_are_all_equal():
    X = np.zeros((4, 0))
    np.testing.assert_array_equal(block(("rbf", 1.0, 0.0, 1), X, X, np.float64), np.ones((4, 4)))
    np.testing.assert_array_equal(block(("linear", 1.0, 0.0, 1), X, X, np.float64), np.zeros((4, 4)))


@every_type
@pytest.mark.parametrize("gamma", [1e-300, 1e-30, 1e30, 1e300])
def test_huge_and_tiny_gamma_stay_between_zero_and_one(dtype, gamma):
    X = rows_of(np.random.default_rng(5), 40, 6, dtype)
    gram = block(("rbf", gamma, 0.0, 1), X, X, dtype, same=True)
    np.testing.assert_array_equal(gram, np.eye(40) if gamma > 1 else np.ones((40, 40)))


@every_type
def test_the_exponential_is_right_to_two_units_in_the_last_place(dtype):
    below = 80.0 if dtype == np.float32 else 680.0
    z = np.random.default_rng(6).uniform(0, np.sqrt(below), size=(4000, 1)).astype(dtype)
    found = block(("rbf", 1.0, 0.0, 1), np.zeros((1, 1), dtype), z, dtype)[0]
    squares = (z[:, 0] * z[:, 0]).astype(np.longdouble)  # as it is rounded there
    np.testing.assert_allclose(found, np.exp(-squares), rtol=2 * 2 * UNIT[dtype])


@every_type
def test_what_is_far_away_has_a_kernel_of_zero(dtype):
    A = np.array([[0.0], [1e4]], dtype)
    np.testing.assert_array_equal(block(("rbf", 1.0, 0.0, 1), A, A, dtype), np.eye(2))


@every_type
@pytest.mark.parametrize("degree", range(8))
def test_powers_are_those_of_small_integers(dtype, degree):
    A, B = np.arange(4, dtype=dtype)[:, None], np.array([[1.0], [-1.0]], dtype)
    found = block(("polynomial", 1.0, -1.0, degree), A, B, dtype)
    np.testing.assert_array_equal(found, (A @ B.T - 1.0) ** degree)


@every_type
def test_the_hyperbolic_tangent_has_its_limits_and_its_sign(dtype):
    A, B = np.array([[0.0], [1e-3], [0.7], [30.0], [1e20]], dtype), np.array([[1.0], [-1.0]], dtype)
    found = block(("sigmoid", 1.0, 0.0, 1), A, B, dtype)
    np.testing.assert_allclose(found, np.tanh((A @ B.T).astype(np.float64)), rtol=0, atol=4 * UNIT[dtype])
    np.testing.assert_array_equal(found[:, 1], -found[:, 0])


@every_type
def test_the_hyperbolic_tangent_keeps_the_digits_of_small_results(dtype):
    smallest = np.finfo(dtype).tiny
    near = np.linspace(0.0, 2.0, 20_001)[1:]
    A = np.concatenate([np.geomspace(smallest, 20.0, 20_000), near, -near])[:, None].astype(dtype)
    found = block(("sigmoid", 1.0, 0.0, 1), A, np.ones((1, 1), dtype), dtype)
    exact = np.tanh(A.astype(np.longdouble))
    np.testing.assert_array_less(np.abs(found - exact), 4 * np.spacing(np.abs(exact).astype(dtype)))


@pytest.mark.parametrize("stored", [np.float32, np.float64])
@every_type
def test_a_centre_is_subtracted_before_rounding(stored, dtype):
    random = np.random.default_rng(7)
    X = (random.normal(size=(50, 8)) + 1e4).astype(stored)
    centre = X.mean(axis=0, dtype=np.float64)
    form = ("rbf", 0.1, 0.0, 1)
    exact = by_definition(*form, X, X)
    found = block(form, X, X, dtype, centre=centre)
    np.testing.assert_allclose(found, exact, rtol=0, atol=20 * UNIT[dtype])
    if dtype == np.float32:  # it is the centre that does it
        assert np.abs(block(form, X, X, dtype) - exact).max() > 1e-3
    weights = random.normal(size=(50, 1))
    np.testing.assert_allclose(
        scores(form, X, X, weights, dtype, centre=centre), found @ weights, rtol=0, atol=1e-13 + UNIT[dtype]
    )


@every_kind
@every_type
@pytest.mark.parametrize("columns", [1, 16, 21])
def test_products_become_kernels_in_place(kind, dtype, columns):
    random = np.random.default_rng(8)
    A, B = rows_of(random, 5, 3, dtype), rows_of(random, columns, 3, dtype)
    products, form = A @ B.T, (kind, 0.6, 0.2, 3)
    exact = by_definition(*form, A, B)
    core.kernel_apply(*form, products, (A * A).sum(axis=1), (B * B).sum(axis=1))
    np.testing.assert_allclose(products, exact, rtol=0, atol=40 * UNIT[dtype] * max(1.0, np.abs(exact).max()))


def test_time_that_is_up_ends_the_work():
    X = np.ones((2000, 20))
    form = ("rbf", 1.0, 0.0, 1)
    assert block(form, X, X, np.float64, same=True, seconds=0.0) is False
    assert scores(form, X, X, np.ones((2000, 1)), np.float64, seconds=0.0) is False
    assert scores(form, X, X, np.ones((2000, 1)), np.float64, seconds=60.0) is True


def test_sizes_that_do_not_match_are_refused():
    X, form = np.ones((5, 3)), ("rbf", 1.0, 0.0, 1)
    with pytest.raises(ValueError, match="same columns"):
        block(form, X, np.ones((5, 2)), np.float64)
    with pytest.raises(ValueError, match="numbers of rows"):
        block(form, X, X, np.float64, a_index=np.array([5]))
    with pytest.raises(ValueError, match="numbers of rows"):
        block(form, X, X, np.float64, b_index=np.array([-1]))
    with pytest.raises(ValueError, match="out must"):
        block(form, X, X, np.float64, out=np.empty((5, 4)))
    with pytest.raises(ValueError, match="contiguous"):
        block(form, X, X, np.float64, out=np.empty((5, 10))[:, ::2])
    with pytest.raises(ValueError, match="mirrored likewise"):
        block(form, X, np.ones((4, 3)), np.float64, mirrored=np.empty((5, 4)))
    with pytest.raises(ValueError, match="contiguous"):
        block(form, X, X, np.float64, mirrored=np.empty((5, 10))[:, ::2])
    unaligned = np.zeros(8 * 25 + 1, np.uint8)[1:].view(np.float64).reshape(5, 5)
    with pytest.raises(ValueError, match="aligned"):
        block(form, X, X, np.float64, out=unaligned)
    with pytest.raises(ValueError, match="its own mirror"):
        block(form, X, X, np.float64, same=True, mirrored=np.empty((5, 5)))
    with pytest.raises(ValueError, match="entry a column"):
        block(form, X, X, np.float64, centre=np.ones(2))
    with pytest.raises(ValueError, match="a row of B"):
        scores(form, X, X, np.ones((4, 1)), np.float64)
    with pytest.raises(ValueError, match="linear, polynomial"):
        block(("cosine", 1.0, 0.0, 1), X, X, np.float64)
    with pytest.raises(ValueError, match="squared lengths"):
        core.kernel_apply(*form, np.ones((2, 2)), None, None)


def test_distances_that_overflow_are_not_taken_for_zero():
    far = np.full((3, 5), 1e25)  # whose squares are beyond float32
    found = block(("rbf", 0.5, 0.0, 1), far, -far, np.float32)
    assert (found < 1e-30).all()


@pytest.mark.parametrize("stored", [np.float32, np.float64])
@pytest.mark.parametrize("centre", [None, np.array([3.0, -1.0, 0.5])])
def test_rounding_is_that_of_a_sample_and_sizes_those_of_all_rows(stored, centre):
    X = (3.0 * np.random.default_rng(0).normal(size=(700, 3))).astype(stored)
    X[650] = [40.0, -60.0, 0.0]  # the longest, beyond the sample
    sample = np.array([0, 3, 17, 500])
    value, apart, number, squared_length = core.kernel_rounding("polynomial", 0.3, 1.0, 3, X, sample, centre)
    about = X.astype(np.float64) - (0.0 if centre is None else centre)
    exact = (0.3 * about[sample] @ about[sample].T + 1.0) ** 3
    assert value == pytest.approx(np.abs(exact).max(), rel=1e-14)
    assert 0.0 < apart <= 50 * np.finfo(np.float32).eps * value
    assert number == 60.0
    assert squared_length == pytest.approx(np.square(about).sum(axis=1).max(), rel=1e-14)


def test_rounding_is_infinite_where_single_precision_overflows():
    X = np.array([[1e25, 2.0], [-1e25, 1.0]])
    value, apart, number, _ = core.kernel_rounding("linear", 1.0, 0.0, 1, X, np.arange(2), None)
    assert value == pytest.approx(1e50)
    assert (apart, number) == (np.inf, 1e25)
