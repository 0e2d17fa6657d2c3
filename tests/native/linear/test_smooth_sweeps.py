"""Passes over the rows for smooth losses, against NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sixfold._native import core
from sixfold.risk.losses import LOSSES, softmax
from sixfold.solvers.passes import LOSS_CODES
from sixfold.solvers.threads import thread_limit

SMOOTH = ("squared", "cubed", "logistic", "squared_hinge")
FLAG = np.zeros(1, dtype=np.int32)
LIMITS = {"seconds_left": np.inf, "flag": FLAG}


def as_layout(X, layout):
    """Return X as one of the tables that native passes read."""
    if layout == "csr":
        return sp.csr_array(X)
    if layout == "csr64":
        X = sp.csr_array(X)
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
        return X
    if layout == "every other row":
        return np.repeat(X, 2, axis=0)[::2]
    return np.asarray(X, order=layout)


def parts(X):
    return (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)


@st.composite
def tables(draw):
    """Draw X of any layout and type with zeros, y, weights of which some are zero, and a model."""
    n, d = draw(st.integers(1, 260)), draw(st.integers(1, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(n, d)) * (rng.uniform(size=(n, d)) < draw(st.sampled_from([0.1, 1.0])))
    X = X.astype(draw(st.sampled_from([np.float32, np.float64])))
    layout = draw(st.sampled_from(["C", "F", "csr", "csr64", "every other row"]))
    weight = None if draw(st.booleans()) else rng.integers(0, 3, size=n).astype(float)
    size = draw(st.sampled_from([0.1, 1.0, 100.0]))  # scores of many hundreds: nothing may overflow
    return as_layout(X, layout), X.astype(np.float64), weight, rng, size


def close(found, expected, size):
    np.testing.assert_allclose(
        found, expected, rtol=1e-12, atol=1e-12 * max(float(np.max(np.abs(size))), 1e-300)
    )


@given(tables(), st.sampled_from(SMOOTH))
@settings(max_examples=60, deadline=None)
def test_one_pass_gives_scores_value_slope_and_curvature(table, name):
    X, dense, weight, rng, size = table
    n, d = dense.shape
    y, w, b = np.sign(rng.normal(size=n)), size * rng.normal(size=d), rng.normal()
    score, curvature, slope = np.empty(n), np.empty(n), np.empty(d + 1)
    finished, value = core.loss_sweep(
        *parts(X), y, weight, LOSS_CODES.index(name), w, b, score, curvature, slope, **LIMITS
    )
    assert finished
    loss, q = LOSSES[name], np.ones(n) if weight is None else weight
    s, z = dense @ w + b, np.column_stack([dense, np.ones(n)])
    r = q * loss.gradient(s, y)
    terms = np.abs(r) @ np.abs(z)
    close(score, s, np.abs(dense) @ np.abs(w) + abs(b))
    close(value, q @ loss.value(s, y), q @ loss.value(s, y))
    close(slope, z.T @ r, terms.max() + np.abs(r).sum() * size)
    close(curvature, q * loss.curvature(s, y), size)


@given(tables())
@settings(max_examples=40, deadline=None)
def test_a_product_with_the_curvature_and_the_squares_of_the_columns(table):
    X, dense, weight, rng, _ = table
    n, d = dense.shape
    h, v, c = rng.uniform(size=n), rng.normal(size=d), rng.normal()
    z = np.column_stack([dense, np.ones(n)])
    product = np.empty(d + 1)
    assert core.curvature_sweep(*parts(X), h, v, c, product, **LIMITS)
    close(
        product, z.T @ (h * (z @ np.append(v, c))), np.abs(z).T @ (h * (np.abs(z) @ np.abs(np.append(v, c))))
    )
    squares, q = np.empty(d + 1), np.ones(n) if weight is None else weight
    shift = np.zeros(d) if sp.issparse(X) else rng.normal(size=d)
    assert core.column_squares(*parts(X), weight, shift, squares, **LIMITS)
    close(squares, q @ (z - np.append(shift, 0.0)) ** 2, n)


@given(tables(), st.sampled_from(SMOOTH))
@settings(max_examples=40, deadline=None)
def test_the_fused_pass_agrees_with_the_plain_one_and_adds_the_weighted_products(table, name):
    X, dense, weight, rng, _ = table
    if sp.issparse(X):
        X = np.asarray(dense)
    n, d = dense.shape
    shift, theta, y = rng.normal(size=d), rng.normal(size=d + 1), np.sign(rng.normal(size=n))
    score, slope, gram = np.empty(n), np.empty(d + 1), np.empty((d + 1, d + 1))
    finished, value = core.newton_sweep(
        X, y, weight, LOSS_CODES.index(name), theta, shift, score, slope, gram, **LIMITS
    )
    assert finished
    loss, q = LOSSES[name], np.ones(n) if weight is None else weight
    z = np.column_stack([dense - shift, np.ones(n)])
    s = z @ theta
    close(score, s, np.abs(z) @ np.abs(theta))
    close(value, q @ loss.value(s, y), q @ loss.value(s, y))
    r, h = q * loss.gradient(s, y), q * loss.curvature(s, y)
    close(slope, z.T @ r, np.abs(z).T @ np.abs(r))
    # The squared hinge's curvature jumps, so a score within rounding of the margin may fall on either side.
    if name != "squared_hinge" or not np.any(np.abs(1.0 - y * s) < 1e-9):
        close(gram, z.T @ (h[:, None] * z), np.abs(z).T @ (h[:, None] * np.abs(z)))


@given(tables(), st.integers(1, 30))
@settings(max_examples=60, deadline=None)
def test_softmax_value_and_slope(table, classes):
    X, dense, weight, rng, size = table
    n, d = dense.shape
    y = rng.integers(0, classes, size=n).astype(float)
    w, b = size * rng.normal(size=(d, classes)), rng.normal(size=classes)
    slope = np.empty((d + 1, classes))
    finished, value, *_ = core.softmax_sweep(*parts(X), y, weight, w, b, slope, **LIMITS)
    assert finished
    loss, q = LOSSES["softmax"], np.ones(n) if weight is None else weight
    s, z = dense @ w + b, np.column_stack([dense, np.ones(n)])
    close(value, q @ loss.value(s, y), q @ loss.value(s, y) + q.sum() * 1e-3 * size)
    close(slope, z.T @ (q[:, None] * loss.gradient(s, y)), (np.abs(z).T @ q).max() * max(size, 1.0))


@given(tables(), st.integers(1, 30))
@settings(max_examples=60, deadline=None)
def test_softmax_divergence_and_slope_of_moved_probabilities(table, classes):
    X, dense, weight, rng, size = table
    n, d = dense.shape
    y = rng.integers(0, classes, size=n).astype(float)
    w, b = size * rng.normal(size=(d, classes)), rng.normal(size=classes)
    kept, share = rng.uniform(size=classes), rng.dirichlet(np.ones(classes))
    slope = np.empty((d + 1, classes))
    finished, value, _, squares, _ = core.softmax_sweep(
        *parts(X), y, weight, w, b, slope, kept=kept, share=share, **LIMITS
    )
    assert finished
    q = np.ones(n) if weight is None else weight
    s, z = dense @ w + b, np.column_stack([dense, np.ones(n)])
    p = softmax(s)
    u = p * kept + (p @ (1.0 - kept))[:, None] * share - (y[:, None] == np.arange(classes))
    expected = q @ LOSSES["softmax"].fenchel_young(s, u, y)
    close(value, expected, expected + q.sum() * max(size, 1.0))
    close(slope, z.T @ (q[:, None] * u), (np.abs(z).T @ q).max() * max(size, 1.0))
    close(squares, q @ np.square(u).sum(axis=1), q.sum() * max(size, 1.0))


@pytest.mark.parametrize("name", SMOOTH)
def test_losses_between_two_points_are_those_of_the_scores_between(name):
    rng = np.random.default_rng(0)
    start, end, y = rng.normal(size=3000), 3.0 * rng.normal(size=3000), np.sign(rng.normal(size=3000))
    weight, loss = rng.uniform(size=3000), LOSSES[name]
    value, slope = core.losses_along(LOSS_CODES.index(name), start, end, 0.3, y, weight)
    between = start + 0.3 * (end - start)
    assert value == pytest.approx(weight @ loss.value(between, y), rel=1e-13)
    assert slope == pytest.approx((weight * loss.gradient(between, y)) @ (end - start), rel=1e-11)


def test_small_losses_keep_their_digits():
    scores = np.array([30.0, 700.0, -700.0, 5000.0, -5000.0, 0.0])
    slope, X = np.empty(2), scores[:, None]
    for i, s in enumerate(scores):
        _, value = core.loss_sweep(
            X[i : i + 1], np.ones(1), None, 3, np.ones(1), 0.0, None, None, slope, **LIMITS
        )
        assert value == pytest.approx(np.logaddexp(0.0, -s), rel=1e-14, abs=1e-300)
    W = np.array([[0.0, 1.0]])
    wide = np.empty((2, 2))
    _, value, *_ = core.softmax_sweep(X[:1], np.ones(1), None, W, np.zeros(2), wide, **LIMITS)
    assert value == pytest.approx(np.log1p(np.exp(-30.0)), rel=1e-14)
    assert wide[0] == pytest.approx(30.0 * np.exp(-30.0) * np.array([1.0, -1.0]), rel=1e-12)


@pytest.mark.parametrize("layout", ["C", "F", "csr"])
def test_the_number_of_threads_does_not_change_a_bit(layout):
    rng = np.random.default_rng(1)
    n, d = 20_000, 40
    dense = rng.normal(size=(n, d))
    X, y, w = as_layout(dense, layout), np.sign(rng.normal(size=n)), rng.normal(size=d)
    classes, W = rng.integers(0, 5, size=n).astype(float), rng.normal(size=(d, 5))

    def everything():
        results = [np.empty(d + 1), np.empty((d + 1, 5)), np.empty(d + 1), np.empty(d + 1)]
        results.append(np.empty((d + 1, 5)))
        values = [core.loss_sweep(*parts(X), y, None, 3, w, 0.1, None, None, results[0], **LIMITS)[1]]
        values.append(core.softmax_sweep(*parts(X), classes, None, W, np.zeros(5), results[1], **LIMITS)[1])
        moved = {"kept": np.linspace(0.5, 1.0, 5), "share": np.full(5, 0.2)}
        values.append(
            core.softmax_sweep(*parts(X), classes, None, W, np.zeros(5), results[4], **moved, **LIMITS)[1]
        )
        core.curvature_sweep(*parts(X), np.abs(y), w, 0.1, results[2], **LIMITS)
        core.column_squares(*parts(X), None, np.zeros(d), results[3], **LIMITS)
        if layout != "csr":
            results += [np.empty(d), np.empty(d), np.empty(8)]
            core.slope_sums(X, y, None, n, 3, w, 0.1, np.ones(d), *results[-3:], **LIMITS)
            results += [np.empty(d + 1), np.empty((d + 1, d + 1))]
            theta = np.append(w, 0.1)
            values.append(
                core.newton_sweep(X, y, None, 3, theta, np.zeros(d), None, *results[-2:], **LIMITS)[1]
            )
        return [np.asarray(values), *results]

    with thread_limit(1):
        alone = everything()
    with thread_limit(2):
        together = everything()
    for one, two in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_pass_that_has_no_time_does_not_begin():
    # Where it began, another thread could do all of it before the one that looks at the clock.
    X, y, slope = np.ones((200_000, 20)), np.ones(200_000), np.zeros(21)
    finished, _ = core.loss_sweep(
        X, y, None, 3, np.zeros(20), 0.0, None, None, slope, seconds_left=0.0, flag=FLAG
    )
    assert not finished
    assert not slope.any()


@pytest.mark.parametrize("wrong", ["y", "w", "slope", "loss", "class"])
def test_sizes_are_checked_at_the_border(wrong):
    X, y, w, slope = np.zeros((5, 2)), np.ones(5), np.zeros(2), np.empty(3)
    if wrong == "class":
        with pytest.raises(ValueError, match="class indices"):
            core.softmax_sweep(X, 3.0 * y, None, np.zeros((2, 3)), np.zeros(3), np.empty((3, 3)), **LIMITS)
        return
    y = y[:4] if wrong == "y" else y
    w = w[:1] if wrong == "w" else w
    slope = slope[:2] if wrong == "slope" else slope
    with pytest.raises(ValueError, match="sixfold native loop"):
        core.loss_sweep(X, y, None, 1 if wrong == "loss" else 3, w, 0.0, None, None, slope, **LIMITS)


def test_a_damaged_csr_table_is_noticed():
    X = sp.csr_array(np.eye(3))
    assert core.csr_is_sound(X.indices, X.indptr, 3, X.data)
    assert not core.csr_is_sound(X.indices, X.indptr, 2, X.data)
    assert not core.csr_is_sound(X.indices, X.indptr[::-1].copy(), 3, X.data)
