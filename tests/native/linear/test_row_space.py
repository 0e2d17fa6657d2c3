"""Products of wide tables agree with NumPy's, in every layout, and conjugate gradients with its solver."""

import numpy as np
import pytest

from sixfold._native import core

FLAG = np.zeros(1, dtype=np.int32)


def table(rows, columns, dtype=np.float64, order="C"):
    random = np.random.default_rng(rows)
    X = np.asarray(random.normal(size=(rows, columns)) + 3.0, dtype=dtype, order=order)
    q = random.uniform(size=rows)
    return X, q / q.sum(), random


def centred_rows(X, q, centred):
    mean, square = np.empty(X.shape[1]), np.empty(X.shape[1])
    panels = np.full(core.panel_entries(*X.shape), np.nan, dtype=np.float32)
    assert core.centre_rows(X, q, centred, mean, square, panels, FLAG)
    return mean, square, panels


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 70), (40, 129), (257, 600)])
def test_means_squares_and_products_of_centred_columns(rows, columns, dtype, order):
    X, q, random = table(rows, columns, dtype, order)
    mean, square, _ = centred_rows(X, q, True)
    exact = X.astype(np.float64)
    np.testing.assert_allclose(mean, q @ exact, rtol=1e-13)
    np.testing.assert_allclose(square, q @ (exact - mean) ** 2, rtol=1e-12, atol=1e-30)
    v = random.normal(size=(2, rows))
    w, scores = np.empty((2, columns)), np.empty((2, rows))
    assert core.centred_products(X, mean, v, w, scores, FLAG)
    np.testing.assert_allclose(w, v @ (exact - mean), atol=1e-12 * rows)
    np.testing.assert_allclose(scores, w @ (exact - mean).T, atol=1e-11 * columns)
    again = np.empty((2, rows))
    assert core.centred_products(X, mean, None, w, again, FLAG)
    np.testing.assert_array_equal(again, scores)


@pytest.mark.parametrize("centred", [False, True])
def test_descent_solves_the_system_of_the_rows(centred):
    X, q, random = table(60, 500)
    X -= 3.0
    mean, _, panels = centred_rows(X, q, centred)
    root_q = np.sqrt(q)
    B = root_q[:, None] * (X - mean)
    t = random.normal(size=60)
    t -= centred * root_q * (root_q @ t)
    left, a = t.copy(), np.empty(60)
    steps, reached, stopped = core.descend_rows(panels, 500, root_q, centred, 0.1, 1e-5, 500, left, a, FLAG)
    assert (reached, stopped) == (True, False)
    assert steps < 100
    np.testing.assert_allclose(a, np.linalg.solve(B @ B.T + 0.1 * np.eye(60), t), atol=1e-3)
    assert np.linalg.norm(left) <= 1e-5 * np.linalg.norm(t)
    np.testing.assert_allclose(left, t - B @ (B.T @ a) - 0.1 * a, atol=1e-5 * np.linalg.norm(t))


def test_descent_gives_up_where_the_end_is_out_of_sight():
    X, q, random = table(200, 300)
    X[:, :2] *= 1e4
    _, _, panels = centred_rows(X, q, True)
    left, a = random.normal(size=200), np.empty(200)
    steps, reached, _ = core.descend_rows(panels, 300, np.sqrt(q), True, 1e-6, 1e-5, 20, left, a, FLAG)
    assert (steps, reached) == (3, False)


def test_any_number_of_threads_finds_the_same():
    X, q, random = table(520, 17_000)
    t = random.normal(size=520)
    found = []
    for threads in (1, 2):
        before = core.limit_threads(threads)
        mean, square, panels = centred_rows(X, q, True)
        left, a = t.copy(), np.empty(520)
        core.descend_rows(panels, 17_000, np.sqrt(q), True, 0.1, 1e-3, 30, left, a, FLAG)
        w, scores = np.empty((1, 17_000)), np.empty((1, 520))
        core.centred_products(X, mean, a[None], w, scores, FLAG)
        core.limit_threads(before)
        found.append(np.concatenate([mean, square, left, a, w[0], scores[0]]))
    np.testing.assert_array_equal(*found)
