"""What distances learn of rows is summed up some rows at a time, whatever their layout."""

import numpy as np
import pytest

from sixfold.geometry.distances import make_distance, transforms


@pytest.mark.parametrize("entries", [1, 12, 50, 10_000])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_variances_and_covariances_are_those_of_all_rows(monkeypatch, entries, dtype):
    X = (np.random.default_rng(0).standard_normal((41, 4)) * [1, 10, 2, 5] + 100).astype(dtype)
    monkeypatch.setattr(transforms, "PASS_ENTRIES", entries)
    exact = X.astype(np.float64)
    np.testing.assert_allclose(transforms.variances_of(X), exact.var(axis=0, ddof=1), rtol=1e-13)
    root = make_distance("mahalanobis", X).root
    np.testing.assert_allclose(root @ root.T @ np.cov(exact.T), np.eye(4), atol=1e-8)
    assert np.array_equal(
        make_distance("mahalanobis", np.asfortranarray(X)).root, make_distance("mahalanobis", X).root
    )


def test_one_row_has_no_variance():
    np.testing.assert_array_equal(transforms.variances_of(np.ones((1, 3))), np.zeros(3))
