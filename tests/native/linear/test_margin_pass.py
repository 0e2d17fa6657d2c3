"""The pass over the rows of a hinge, beside plain NumPy."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.solvers.margin.margin_band import WIDTHS

RNG = np.random.default_rng(0)


def run(X, v, y, weight, width, shift, constant):
    n, d = X.shape
    if sp.issparse(X):
        rows = core.sparse_rows(X.data, X.indices, X.indptr, d, constant)
    else:
        rows = core.dense_rows(X, shift, constant)
    past, sums, counts = np.empty(n), np.empty((2, d + 2)), np.empty(core.DISTANCE_BINS, dtype=np.int64)
    finished, loss, wrong = core.margin_pass(
        rows, v, y, weight, width, past, sums, counts, math.inf, Budget().flag
    )
    assert finished
    return past, sums, counts, loss, wrong


@pytest.mark.parametrize("rows", [1, 63, 1000, 70_001])
@pytest.mark.parametrize("form", ["C", "F", "float32", "sparse"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("width", [0.0, 0.3, math.inf])
def test_it_sums_what_numpy_does(rows, form, weighted, width):
    X = RNG.standard_normal((rows, 3))
    X = X.astype(np.float32) if form == "float32" else np.asarray(X, order="F" if form == "F" else "C")
    labels = np.where(RNG.random((rows, 2)) < 0.3, 1.0, -1.0)
    y, weight = labels[:, 1], np.where(RNG.random(rows) < 0.2, 0.0, RNG.random(rows)) if weighted else None
    shift, v = (np.zeros(3) if form == "sparse" else np.array([0.5, -1.0, 0.0])), RNG.standard_normal(4)
    given = sp.csr_array(X) if form == "sparse" else X
    past, sums, counts, loss, wrong = run(given, v, y, weight, width, shift, 1.0)

    q = np.ones(rows) if weight is None else weight
    Z = np.column_stack([X - shift, np.ones(rows)])
    beyond, counted = y * (Z @ v) - 1.0, q > 0
    assert np.isnan(past[~counted]).all()
    np.testing.assert_allclose(past[counted], beyond[counted], rtol=0, atol=1e-13)
    np.testing.assert_allclose(loss, q @ np.maximum(-beyond, 0.0), rtol=1e-12)
    assert wrong == np.count_nonzero((beyond <= -1.0) & counted)
    for k, label in enumerate((-1.0, 1.0)):
        inside = np.where((past <= -width) & (y == label) & counted, q, 0.0)
        np.testing.assert_allclose(sums[k], np.append(inside @ Z, inside.sum()), rtol=0, atol=1e-10 * rows)
    below = [np.count_nonzero(np.abs(past[counted]) < width) for width in WIDTHS]
    np.testing.assert_array_equal(np.cumsum(counts), below)


def test_distances_on_the_edge_of_a_bin_are_in_the_one_above():
    edges = np.append(WIDTHS[:-1], [0.0, 2.0**-60, 2.0**20])
    past, _, counts, _, _ = run(
        (1.0 + edges)[:, None], np.array([1.0, 0.0]), np.ones(edges.size), None, 0.0, np.zeros(1), 0.0
    )
    np.testing.assert_array_equal(
        np.cumsum(counts), [np.count_nonzero(np.abs(past) < width) for width in WIDTHS]
    )


def test_arrays_of_other_lengths_are_refused():
    X, y = np.zeros((3, 2)), np.ones(3)
    rows = core.dense_rows(X, np.zeros(2), 1.0)
    good = [np.zeros(3), y, None, 0.0, np.zeros(3), np.zeros((2, 4)), np.zeros(core.DISTANCE_BINS, np.int64)]
    for place, wrong in ((0, np.zeros(2)), (1, y[:2]), (4, np.zeros(2)), (5, np.zeros((2, 3)))):
        given = list(good)
        given[place] = wrong
        with pytest.raises(ValueError, match="sixfold native loop"):
            core.margin_pass(rows, *given, math.inf, Budget().flag)
