"""Conjugate gradients: limits, one target after the other."""

import numpy as np
import pytest

from sixfold import LinearRegression
from sixfold.errors import StoppedEarly


def test_every_target_has_its_own_iterations():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 30)), rng.normal(size=(60, 2))
    with pytest.warns(StoppedEarly, match="max_iter=3"):
        model = LinearRegression(solver="cg", max_iter=3).fit(X, Y)
    assert model.n_iter_ == 6
    for k in range(2):
        with pytest.warns(StoppedEarly):
            alone = LinearRegression(solver="cg", max_iter=3).fit(X, Y[:, k])
        np.testing.assert_allclose(model.coef_[k], alone.coef_, rtol=1e-12)
