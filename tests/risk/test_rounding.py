"""Models rounded to the type of the data: far columns and their intercept together."""

from fractions import Fraction

import numpy as np
import pytest

from sixfold import ERMClassifier, ERMRegressor
from sixfold.data.blocks import MemoryBlocks
from sixfold.risk.rounding import rounded_model


def shift(w, b, c, centre):
    """Return how far b + centre.w is from c, exactly."""
    return float(
        sum((Fraction(m) * Fraction(v) for m, v in zip(centre, w, strict=True)), Fraction(b)) - Fraction(c)
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(20))
def test_rounding_moves_scores_less_than_the_last_digit_of_the_intercept(dtype, seed):
    random = np.random.default_rng(seed)
    offset = 1e4 if dtype == np.float32 else 2.0**40
    w, centre, c = random.normal(size=(5, 1)), offset + random.normal(size=5), random.normal(size=1)
    blocks = MemoryBlocks(np.zeros((2, 5), dtype), np.zeros((2, 1)))
    near, b = rounded_model(blocks, w, c, centre)
    digits = np.spacing(np.abs(w[:, 0]).astype(dtype)).astype(float)
    assert np.array_equal(near, near.astype(dtype))
    assert np.array_equal(b, b.astype(dtype))
    assert np.all(np.abs(near - w)[:, 0] <= 33 * digits)
    # The finest steps may be too fine: no more than 32 digits are changed.
    assert abs(shift(near[:, 0], b[0], c[0], centre)) <= 0.51 * offset * np.sort(digits)[1]


def test_coefficients_of_zero_stay_zero():
    blocks = MemoryBlocks(np.zeros((2, 2)), np.zeros((2, 1)))
    w, _ = rounded_model(blocks, np.array([[0.0], [1 / 3]]), np.ones(1), np.full(2, 1e12))
    assert w[0, 0] == 0.0


@pytest.mark.parametrize(("dtype", "offset"), [(np.float64, 2.0**40), (np.float32, 1e4)])
@pytest.mark.parametrize("loss", ["absolute", "hinge"])
def test_losses_with_kinks_are_certified_on_columns_far_from_zero(loss, dtype, offset):
    random = np.random.default_rng(3)
    X = (random.normal(size=(300, 4)) + offset).astype(dtype)
    y = (X - X.mean(axis=0)) @ random.normal(size=4) + random.normal(size=300)
    learner = ERMRegressor(loss, penalty=None) if loss == "absolute" else ERMClassifier(loss, penalty=None)
    y = y if loss == "absolute" else y > 0
    model = learner.fit(X, y)
    assert model.certificate_.converged
    model.certificate_.verify(X, y)
