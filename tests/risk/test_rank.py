"""Dependent columns are found, and nearly dependent ones kept, for any number of rows, weights and units."""

import numpy as np
import pytest
import scipy.sparse as sp

from sixfold import ERMClassifier, ERMRegressor
from sixfold.data.blocks import MemoryBlocks
from sixfold.errors import RankWarning
from sixfold.risk.rank import column_space


def space_of(X, weight=None, centred=True, rows_per_block=None):
    return column_space(MemoryBlocks(X, np.zeros((X.shape[0], 1)), weight, rows_per_block), centred)


def dummies(random, n, classes=5):
    return np.eye(classes)[random.integers(0, classes, n)]


@pytest.mark.parametrize("n", [40, 1066, 50_000])
@pytest.mark.parametrize("kind", ["dense", "sparse", "blocks", "float32"])
def test_constants_copies_sums_and_dummies_are_found_for_any_number_of_rows(n, kind):
    random = np.random.default_rng(n)
    A = np.round(random.normal(size=(n, 3)) * 1024) / 1024
    A[random.random(A.shape) < 0.3] = 0.0
    X = np.column_stack([A, A[:, 0], A @ [1.0, 2.0, 0.5], dummies(random, n), np.full(n, 0.1)])
    table = {"dense": X, "blocks": X, "sparse": sp.csr_array(X), "float32": X.astype(np.float32)}[kind]
    space = space_of(table, rows_per_block=n // 7 if kind == "blocks" else None)
    assert space.rank == 7
    assert {3, 10} <= set(space.dependent)
    assert space.exact.all()
    assert space.constant.tolist() == [False] * 10 + [True]
    apart = X[:, space.dependent] - X[:, space.kept] @ space.combination
    assert np.ptp(apart, axis=0).max() < 1e-6
    assert space.condition < 1e3


@pytest.mark.parametrize("n", [40, 1066, 50_000])
@pytest.mark.parametrize("apart", [1e-8, 1e-11, 1e-12])
@pytest.mark.parametrize("scale", [1.0, 1e-50, 1e50])
def test_nearly_collinear_columns_are_kept(n, apart, scale):
    random = np.random.default_rng(1)
    A = random.normal(size=(n, 3))
    noise = random.normal(size=n)
    space = space_of(np.column_stack([A, A[:, 0] + apart * noise]) * scale)
    assert space.rank == 4
    assert 0.3 / apart < space.condition < 30 / apart


@pytest.mark.parametrize("n", [40, 1066, 50_000])
def test_columns_that_rounding_tells_apart_are_dependent_but_not_exactly(n):
    random = np.random.default_rng(2)
    A = random.normal(size=(n, 3))
    last_bit = np.nextafter(A[:, 0], np.where(random.random(n) < 0.5, -9.0, 9.0))
    X = np.column_stack([A, A @ [1.0, 2.0, 0.1], last_bit, A[:, 1]])
    space = space_of(X)
    assert space.rank == 3
    assert space.dependent.tolist() == [3, 4, 5]
    assert space.exact.tolist() == [False, False, True]


@pytest.mark.parametrize("offset", [1.7e9, 1.7e12])
@pytest.mark.parametrize("n", [25, 5000])
def test_a_large_offset_is_no_constant(offset, n):
    random = np.random.default_rng(3)
    X = np.column_stack([offset + np.arange(n), random.normal(size=n)])
    assert space_of(X).rank == 2
    assert space_of(np.column_stack([X, X[:, 0] - offset])).dependent.tolist() == [2]


def test_a_row_that_hardly_counts_tells_columns_apart():
    constant, copied = np.ones((50, 2)), np.column_stack([np.arange(50.0), np.arange(50.0)])
    constant[:, 0] = np.arange(50.0)
    weight = np.ones(50)
    for X in constant, copied:
        X[3, 1] += 1.0
        weight[3] = 1e-40
        assert space_of(X, weight).rank == 2
        weight[3] = 0.0
        assert space_of(X, weight).rank == 1


def test_dummies_span_the_intercept():
    X = dummies(np.random.default_rng(4), 300)
    assert space_of(X).rank == 4
    assert space_of(X, centred=False).rank == 5
    space = space_of(np.column_stack([X, np.ones(300)]), centred=False)
    assert space.rank == 5
    assert space.exact.all()


@pytest.mark.parametrize(
    ("X", "rank"),
    [
        (np.zeros((5, 2)), 0),
        (np.ones((5, 3)), 0),
        (np.ones((1, 3)), 0),
        (np.array([[0.0, 1.0], [1.0, 3.0]]), 1),
        (np.arange(4.0)[:, None], 1),
        (np.random.default_rng(5).normal(size=(20, 50)) * 10.0 ** np.linspace(-50, 50, 50), 19),
        (np.repeat(np.random.default_rng(6).normal(size=(10, 50)), 2, axis=0), 9),
    ],
)
def test_small_and_wide_tables(X, rank):
    space = space_of(X)
    assert space.rank == rank
    assert space.dependent.size == X.shape[1] - rank
    assert space.exact.all()


def test_solving_and_its_half_agree_with_the_products():
    random = np.random.default_rng(7)
    X = random.normal(size=(200, 4)) * [1.0, 1e5, 1e-5, 1.0]
    X[:, 3] = X[:, 0] + 1e-9 * X[:, 3]
    space = space_of(X)
    Z = X - X.mean(axis=0)
    slope = Z.T @ (Z @ np.array([[1.0], [1e-5], [1e5], [1.0]])) / 200
    np.testing.assert_allclose(space.solve(slope)[1:3, 0], [1e-5, 1e5], rtol=1e-6)
    assert np.square(space.half_solve(slope)).sum() == pytest.approx(slope[:, 0] @ space.solve(slope)[:, 0])


@pytest.mark.parametrize(
    "loss", ["logistic", "softmax", "squared", "hinge", "squared_hinge", "absolute", "cubed"]
)
def test_fits_of_columns_that_no_model_can_tell_apart_are_certified_within_that_restriction(loss):
    random = np.random.default_rng(0)
    X = random.normal(size=(500, 6))
    X[:, 5] = X[:, 0] + X[:, 1] + 1e-14 * random.normal(size=500)
    y = X[:, :5] @ random.normal(size=5) + random.normal(size=500)
    real = loss in ("absolute", "cubed")
    learner = (ERMRegressor if real else ERMClassifier)(loss, penalty=None)
    with pytest.warns(RankWarning):
        model = learner.fit(X, y if real else y > 0)
    certificate = model.certificate_
    assert certificate.converged
    assert certificate.lower_bound == certificate.unrestricted_bound == 0.0
    assert any("differ in their last digits" in note for note in certificate.notes)
    certificate.verify(X, y if real else y > 0)
