"""The ridge path gives for every penalty what the direct solver gives for it alone, and bounds its gap."""

import mpmath
import numpy as np
import pytest

from sixfold.data.blocks import Block
from sixfold.solvers.least_squares.direct import LeastSquares
from sixfold.solvers.least_squares.moments import block_moments
from sixfold.solvers.least_squares.ridge_path import (
    ColumnPath,
    RowPath,
    row_products,
    squared_lengths,
    suspects,
)
from solvers.problems import blocks, problem, solve

PENALTIES = [1e-3, 0.1, 5.0]


def moments_of(X, Y, weight=None):
    return block_moments(Block(X, Y, weight, 0), np.zeros(1, dtype=np.int32))


def row_path(X, Y, fit_intercept, weight=None):
    q = np.full(len(X), 1.0 / len(X)) if weight is None else weight / weight.sum()
    about = q @ X if fit_intercept else None
    return RowPath(row_products(X, about), Y, q, X.shape[1], fit_intercept), about


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_one_factorisation_of_moments_serves_every_penalty(fit_intercept):
    random = np.random.default_rng(7)
    X, Y = random.normal(size=(60, 8)) + 1.0, random.normal(size=(60, 2))
    path = ColumnPath(moments_of(X, Y), fit_intercept)
    models = path.models(PENALTIES)
    scores = path.predict(models, path.centred(X))
    for number, l2 in enumerate(PENALTIES):
        one, _ = solve(
            LeastSquares(), problem(penalty="l2", alpha=l2, fit_intercept=fit_intercept), blocks(X, Y)
        )
        some = slice(2 * number, 2 * number + 2)
        np.testing.assert_allclose(models.parameters[some].T, one.w, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(scores[some].T, X @ one.w + one.b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_one_factorisation_of_products_serves_every_penalty(fit_intercept):
    random = np.random.default_rng(7)
    X, Y = random.normal(size=(8, 60)) + 1.0, random.normal(size=(8, 2))
    path, about = row_path(X, Y, fit_intercept)
    models = path.models(PENALTIES)
    new = random.normal(size=(5, 60))
    scores = path.predict(models, (row_products(new, about, X), squared_lengths(new, about)))
    for number, l2 in enumerate(PENALTIES):
        one, _ = solve(
            LeastSquares(), problem(penalty="l2", alpha=l2, fit_intercept=fit_intercept), blocks(X, Y)
        )
        some = slice(2 * number, 2 * number + 2)
        np.testing.assert_allclose(scores[some].T, new @ one.w + one.b, rtol=1e-9, atol=1e-12)


def exact_gap(X, y, q, l2, w, level, centre):
    """Return how far w.(x - centre) + level is above the minimum, by the variance of y, with 60 digits."""
    n, d = X.shape
    rows = mpmath.matrix(X.tolist())
    mass = mpmath.fsum(map(mpmath.mpf, q.tolist()))
    q = [mpmath.mpf(value) / mass for value in q.tolist()]
    mean = [mpmath.fsum(q[i] * rows[i, j] for i in range(n)) for j in range(d)]
    y = [mpmath.mpf(float(value)) for value in y]
    mean_y = mpmath.fsum(q[i] * y[i] for i in range(n))
    A, c = mpmath.matrix(d, d), mpmath.matrix(d, 1)
    for j in range(d):
        c[j] = mpmath.fsum(q[i] * (rows[i, j] - mean[j]) * (y[i] - mean_y) for i in range(n))
        for k in range(d):
            A[j, k] = mpmath.fsum(q[i] * (rows[i, j] - mean[j]) * (rows[i, k] - mean[k]) for i in range(n))
            A[j, k] += mpmath.mpf(l2) * (j == k)
    best = mpmath.lu_solve(A, c)
    away = mpmath.matrix([mpmath.mpf(float(value)) for value in w]) - best
    w = [mpmath.mpf(float(value)) for value in w]
    off = level - mean_y + mpmath.fsum(w[j] * (mean[j] - mpmath.mpf(float(centre[j]))) for j in range(d))
    above = ((away.T * A * away)[0] + off**2) / 2
    return above / (mpmath.fsum(q[i] * (y[i] - mean_y) ** 2 for i in range(n)) / 2)


@pytest.mark.parametrize("seed", range(24))
def test_no_gap_is_understated(seed):
    random = np.random.default_rng(seed)
    n, d, width = 12, 3, random.choice([0, 3, 7])
    X = random.normal(size=(n, d)) * 10.0 ** random.uniform(-width, width, size=d) + random.choice(
        [0.0, 1e3, 2.0**30]
    )
    if seed % 3 == 0:
        X[:, 2] = X[:, 0] + X[:, 1] * random.choice([1e-6, 1.0])
    y, weight = random.normal(size=n) + random.choice([0.0, 1e6]), random.uniform(0.5, 2.0, size=n)
    path = ColumnPath(moments_of(X, y[:, None], weight), True)
    penalties = [1e-12, 1e-6, 1.0]
    models = path.models(penalties)
    with mpmath.workdps(60):
        for number, l2 in enumerate(penalties):
            level = mpmath.mpf(float(models.level[number]))
            exact = exact_gap(X, y, weight, l2, models.parameters[number], level, path.mean_x)
            assert float(exact) <= models.gap[number]


def test_columns_of_very_different_size_keep_their_digits():
    random = np.random.default_rng(5)
    X, y = random.normal(size=(200, 8)) * 10.0 ** np.arange(-8, 8, 2), random.normal(size=(200, 1))
    y += X @ (1.0 / np.abs(X).max(axis=0))[:, None]
    path = ColumnPath(moments_of(X, y), True)
    models = path.models([1e-15])
    one, _ = solve(LeastSquares(), problem(penalty="l2", alpha=1e-15), blocks(X, y))
    np.testing.assert_allclose(models.parameters[0], one.w[:, 0], rtol=1e-9)
    assert path.accurate(models, path.centred(X)).all()
    assert path.uncertainty(1e-15) < 1e-10


def test_moments_of_a_fold_are_those_of_all_rows_minus_the_others():
    random = np.random.default_rng(3)
    X, Y, weight = random.normal(size=(50, 4)) + 100.0, random.normal(size=(50, 1)), random.uniform(size=50)
    left = moments_of(X, Y, weight).without(moments_of(X[:10], Y[:10], weight[:10]))
    direct = moments_of(X[10:], Y[10:], weight[10:])
    assert left.rows == direct.rows
    np.testing.assert_allclose(left.weight, direct.weight)
    np.testing.assert_allclose(left.mean, direct.mean, rtol=1e-13)
    np.testing.assert_allclose(left.scatter, direct.scatter, rtol=1e-10, atol=1e-12)


def test_moments_are_not_subtracted_where_digits_are_lost():
    random = np.random.default_rng(3)
    X, Y = random.normal(size=(50, 4)), random.normal(size=(50, 1))
    everything = moments_of(X, Y)
    assert everything.without(moments_of(X[:45], Y[:45])) is None  # a tenth of the rows is left
    X[0, 2] = 1e6
    assert moments_of(X, Y).without(moments_of(X[:5], Y[:5])) is None  # and of that column next to nothing


def test_columns_that_may_be_constant_are_suspected():
    random = np.random.default_rng(3)
    X = random.normal(size=(50, 5))
    X[:, 1], X[:, 3], X[:, 4] = 0.1, 1e9 / 3, 1e6 + random.normal(size=50)
    assert suspects(moments_of(X, random.normal(size=(50, 1)))).tolist() == [1, 3]
