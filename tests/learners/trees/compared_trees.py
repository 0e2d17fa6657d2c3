"""A table for trees without equal values, and whether two fitted trees are the same."""

import numpy as np
from sklearn.datasets import make_classification

X, Y = make_classification(400, 8, n_informative=5, n_classes=3, random_state=0)  # no two values are equal
WEIGHT = np.random.default_rng(0).uniform(0.5, 2.0, 400)


def same(model, other):
    """Compare two trees array by array."""
    for name in ("column", "threshold", "first", "code", "child", "unknown", "rows", "totals"):
        np.testing.assert_array_equal(getattr(model.tree_, name), getattr(other.tree_, name), name)
