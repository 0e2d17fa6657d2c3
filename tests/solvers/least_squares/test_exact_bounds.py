"""Least squares on what costs digits: the certificate holds in exact arithmetic, and is confirmed."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from mpmath import mp, mpf

from pmlb import PATHS, load
from sixfold import LinearRegression
from sixfold.errors import RankWarning, StoppedEarly


def fitted(X, y, weight=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankWarning)
        warnings.simplefilter("ignore", StoppedEarly)  # ``confirm`` asks whether it converged
        return LinearRegression(**options).fit(X, y, weight)


def objective_and_minimum(model, X, y, weight=None):
    """Return both in 150 digits; the minimum by orthogonal columns."""
    with mp.workdps(150):
        n = X.shape[0]
        q = [mpf(1)] * n if weight is None else [mpf(float(v)) for v in weight]
        q = [v / sum(q) for v in q]

        def inner(a, b):
            return mp.fsum(each * one * other for each, one, other in zip(q, a, b, strict=True))

        columns = [[mpf(float(v)) for v in column] for column in X.T]
        Y = np.reshape(y, (n, -1)).T
        w = np.atleast_2d(np.asarray(model.coef_, dtype=float))
        b = np.atleast_1d(np.asarray(model.intercept_, dtype=float))
        reached = least = mpf(0)
        basis = []
        for column in [[mpf(1)] * n] * bool(model.fit_intercept) + columns:
            rest = without(column, basis, inner)
            if inner(rest, rest) > mpf(10) ** -120 * inner(column, column):
                basis.append(rest)
        for target, weights, intercept in zip(Y, w, b, strict=True):
            values = [mpf(float(v)) for v in target]
            exact = [mpf(float(v)) for v in (*weights, intercept)]
            rows = zip(*columns, [mpf(1)] * n, strict=True)
            residual = [
                value - mp.fdot(zip(exact, row, strict=True)) for value, row in zip(values, rows, strict=True)
            ]
            rest = without(values, basis, inner)
            reached, least = reached + inner(residual, residual) / 2, least + inner(rest, rest) / 2
        return reached, min(least, reached)  # 1e-150 is not 0


def without(column, basis, inner):
    for each in basis * 2:
        share = inner(column, each) / inner(each, each)
        column = [a - share * b for a, b in zip(column, each, strict=True)]
    return column


def confirm(model, X, y, weight=None, converged=True):
    """Fail unless the certificate is true and confirmed."""
    certificate = model.certificate_
    reached, least = objective_and_minimum(model, np.asarray(X, dtype=float), y, weight)
    assert certificate.lower_bound <= least <= reached <= certificate.objective
    if certificate.unrestricted_bound is None:
        assert reached - least <= certificate.gap
    assert certificate.converged or not converged
    certificate.verify(X, y, weight)


@pytest.mark.parametrize("offset", [1.7e9, 1.7e12, 2.0**30, 2.0**40])
@pytest.mark.parametrize("seed", range(5))
def test_a_column_far_from_zero(offset, seed):
    random = np.random.default_rng(seed)
    X = np.column_stack([offset + np.arange(25), random.normal(size=25)])
    y = X[:, 1] + 0.1 * np.arange(25) + random.normal(size=25)
    confirm(fitted(X, y), X, y)
    X = X[:, :1]
    confirm(fitted(X, y), X, y)


@pytest.mark.parametrize("apart", [1e-4, 1e-8, 1e-11, 1e-12, 1e-13, 1e-14])
@pytest.mark.parametrize("seed", range(4))
def test_columns_that_are_nearly_collinear(apart, seed):
    random = np.random.default_rng(seed)
    X = random.normal(size=(20, 3))
    X[:, 2] = X[:, 0] + apart * X[:, 2]
    y = random.normal(size=20)
    weight = None if seed % 2 else random.uniform(0.1, 2.0, 20)
    # Doubles cannot hold coefficients of 1e13 to the digits that 1e-6 of the objective needs.
    confirm(fitted(X, y, weight, solver="direct"), X, y, weight, converged=apart >= 1e-11)


@pytest.mark.parametrize("n", [30, 1066])
def test_columns_that_differ_in_their_last_bits(n):
    """They are treated as one, with a word, and no bound is claimed on models that tell them apart."""
    random = np.random.default_rng(5)
    x = random.normal(size=n)
    up = random.random(n) < 0.5
    X = np.column_stack([x, np.nextafter(x, np.where(up, 9.0, -9.0)), random.normal(size=n)])
    y = np.where(up, 1.0, -1.0) * np.sign(x) + 0.1 * random.normal(size=n)
    with pytest.warns(RankWarning, match="'x1' = 'x0'"):
        model = LinearRegression().fit(X, y)
    certificate = model.certificate_
    assert certificate.converged
    assert certificate.lower_bound == 0.0
    assert "columns 1 count as combinations of others, from which they differ in their last digits" in str(
        certificate
    )
    certificate.verify(X, y)
    if n < 100:
        confirm(model, X, y)


@pytest.mark.parametrize("n", [1066, 20_000])
@pytest.mark.parametrize("value", [1.0, 0.1, 3e7])
def test_a_constant_column_at_any_number_of_rows(n, value):
    random = np.random.default_rng(6)
    X = np.column_stack([np.arange(n) % 7, np.full(n, value)])
    y = X[:, 0] + random.normal(size=n)
    with pytest.warns(RankWarning, match="'x1' is constant"):
        model = LinearRegression().fit(X, y)
    assert model.certificate_.relative_gap < 1e-12
    assert model.certificate_.lower_bound > 0
    assert model.coef_[1] == 0.0
    model.certificate_.verify(X, y)
    summary = model.summary()
    assert np.isfinite(summary.standard_error[1])
    assert np.isnan(summary.standard_error[2])


@pytest.mark.parametrize("shape", [(20, 60), (20, 20), (21, 20)])
@pytest.mark.parametrize("penalty", [None, "l2"])
def test_scales_of_a_hundred_decades(shape, penalty):
    random = np.random.default_rng(7)
    X = random.normal(size=shape) * 10.0 ** np.linspace(-50, 50, shape[1])
    y = random.normal(size=shape[0])
    model = fitted(X, y, penalty=penalty)
    if penalty is None:
        confirm(model, X, y)
    model.certificate_.verify(X, y)


@pytest.mark.parametrize("name", ["505_tecator", "201_pol"])
def test_real_tables(name):
    if name not in PATHS:
        pytest.skip("the table is not beside the project")
    X, y = load(name)
    X, y = X[:3000], y[:3000]
    model = fitted(X, y)
    assert model.certificate_.converged
    model.certificate_.verify(X, y)
    assert np.isfinite(model.summary().r_squared)


@pytest.mark.parametrize(
    ("rows", "columns", "weights", "intercept"),
    [
        (2, 1, 0, True),
        (3, 3, 0, True),
        (9, 1, 8, True),
        (12, 4, 12, True),
        (12, 4, 0, False),
        (6, 9, 3, True),
    ],
)
@pytest.mark.parametrize("kind", ["plain", "duplicates", "offset", "float32", "two targets", "exact fit"])
def test_neighbours(rows, columns, weights, intercept, kind):
    random = np.random.default_rng(rows * 10 + columns)
    X = random.normal(size=(rows, columns))
    if kind == "duplicates":
        X = X[random.integers(0, rows // 2 + 1, rows)]
    if kind == "offset":
        X[:, -1] = 1e8 + X[:, 0]
    y = random.normal(size=(rows, 2) if kind == "two targets" else rows)
    if kind == "exact fit":
        y = X @ np.arange(1.0, columns + 1)
    if kind == "float32":
        X, y = X.astype(np.float32), y.astype(np.float32)
    weight = 10.0 ** random.uniform(-weights, 0, rows) if weights else None
    confirm(fitted(X, y, weight, fit_intercept=intercept), X, y, weight)


@pytest.mark.parametrize("seed", range(60))
def test_sparse_ridge_in_the_row_space(seed):
    random = np.random.default_rng(seed)
    X = sp.random_array((12, 40), density=0.3, rng=random, format="csr")
    y = random.normal(size=12)
    model = fitted(X, y, penalty="l2", alpha=10.0 ** random.integers(-8, 3))
    assert model.certificate_.converged
    model.certificate_.verify(X, y)


def test_blocks_and_layouts_agree_on_rank_and_claims():
    random = np.random.default_rng(8)
    A = random.normal(size=(600, 3))
    X = np.column_stack([A, A @ [1.0, -1.0, 2.0], np.ones(600)])
    y = random.normal(size=600)
    for table in X, np.asfortranarray(X), sp.csr_array(X):
        model = fitted(table, y)
        assert model.rank_ == 3
        assert model.certificate_.converged
        model.certificate_.verify(table, y)


def test_single_precision_and_an_offset():
    """b in single precision is off by more than the tolerance, unless w makes up for it."""
    random = np.random.default_rng(9)
    X = (1e5 + 4.0 * random.normal(size=(40, 2))).astype(np.float32)
    y = (X - X.mean(axis=0)) @ np.float32([1.0, -2.0]) + random.normal(size=40).astype(np.float32)
    confirm(fitted(X, y), X, y)


def test_several_targets_print_as_tables():
    random = np.random.default_rng(10)
    X, Y = random.normal(size=(20, 2)), random.normal(size=(20, 2))
    summaries = LinearRegression().fit(X, Y).summary()
    assert str(summaries) == repr(summaries) == f"{summaries[0]}\n\n{summaries[1]}"
    assert "coefficient  std error" in repr(summaries)
