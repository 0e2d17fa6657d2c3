"""The checker of linear models: its bound holds against any other model, whatever dual point it is given."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from sixfold import ERMClassifier, ERMRegressor
from sixfold.certificate import Certificate
from sixfold.verify.linear import LinearClaim, recompute
from sixfold.verify.linear.losses import REAL, SIGN

ANY = Certificate("any", 0.0, 0.0, 1.0, 1e-6)
PENALTIES = ((0.0, 0.0), (0.0, 0.2), (0.1, 0.0), (0.05, 0.1))


def table(loss, seed=0, rows=40):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3)) * [0.5, 1.0, 3.0] + [0.0, 2.0, 0.0]
    score = X @ [1.0, -0.5, 0.3] + 0.5 * rng.normal(size=rows)
    if loss == "softmax":
        return X, np.digitize(score, [-1.0, 0.5])
    return X, (score if loss in REAL else np.where(score > np.median(score), 1.0, -1.0))[:, None]


def claim(loss, w, b, l1=0.0, l2=0.0, fit_intercept=True, dual=None, **changes):
    X, y = table(loss)
    given = {"X": X, "y": y, "weights": None, "positive": False}
    return LinearClaim(
        **given | changes, w=w, b=b, loss=loss, l1=l1, l2=l2, fit_intercept=fit_intercept, dual=dual
    )


def random_model(rng, loss, positive=False):
    scores = 3 if loss == "softmax" else 1
    w = rng.normal(size=(3, scores)) * rng.choice([0.1, 1.0, 10.0])
    return np.abs(w) if positive else w, rng.normal(size=scores)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", [*REAL, *SIGN, "softmax"])
def test_no_other_model_is_below_the_bound(loss, penalty, fit_intercept):
    """The lowest objective of many models is above the largest lower bound of many models and dual points."""
    rng = np.random.default_rng(1)
    weights = rng.uniform(0.0, 2.0, size=40) * (np.arange(40) % 7 > 0)
    lowest, highest = np.inf, 0.0
    for number in range(60):
        w, b = random_model(rng, loss)
        b = b if fit_intercept else 0.0 * b
        dual = None if number % 2 else rng.normal(size=(40, w.shape[1])) * rng.choice([0.01, 1.0, 100.0])
        found = recompute(claim(loss, w, b, *penalty, fit_intercept, dual, weights=weights), ANY).certificate
        assert 0.0 <= found.gap <= found.objective
        lowest, highest = min(lowest, found.objective), max(highest, found.objective - found.gap)
    assert highest <= lowest


@pytest.mark.parametrize("penalty", [(0.0, 0.0), (0.1, 0.0)])
def test_no_other_positive_model_is_below_the_bound(penalty):
    rng = np.random.default_rng(1)
    found = []
    for number in range(40):
        dual = None if number % 2 else rng.normal(size=(40, 1))
        w, b = random_model(rng, "squared", positive=True)
        found.append(recompute(claim("squared", w, b, *penalty, dual=dual, positive=True), ANY).certificate)
    assert max(one.objective - one.gap for one in found) <= min(one.objective for one in found)


@pytest.mark.parametrize("loss", [*REAL, *SIGN])
def test_the_conjugate_is_the_largest_difference(loss):
    """f*(a) = max_z (a z - f(z)), looked for on a grid."""
    value, slope, conjugate, (low, high) = (REAL | SIGN)[loss]
    z = np.linspace(-60.0, 60.0, 240_001)
    for a in np.linspace(max(low, -3.0), min(high, 3.0), 9):
        assert conjugate(np.array(a)) == pytest.approx(np.max(a * z - value(z)), abs=1e-6)
    middle = np.linspace(-5.0, 5.0, 102)  # no kink among them
    steps = (value(middle + 1e-6) - value(middle - 1e-6)) / 2e-6
    np.testing.assert_allclose(slope(middle), steps, rtol=0, atol=1e-8)


def test_softmax_of_two_classes_is_the_logistic_loss():
    X, y = table("logistic")
    w, b = np.array([[0.3], [-0.7], [0.2]]), np.array([0.1])
    loose = replace(ANY, gap=10.0)  # so that no closer bound is looked for
    one = recompute(claim("logistic", w, b, 0.0, 0.2, fit_intercept=False), loose).certificate
    labels = (y[:, 0] > 0).astype(int)
    halves = np.hstack([-w / 2, w / 2]), np.hstack([-b / 2, b / 2])
    # |w|^2 is half as large where it is shared by two.
    two = recompute(
        claim("softmax", *halves, 0.0, 0.4, fit_intercept=False, X=X, y=labels), loose
    ).certificate
    assert two.objective == pytest.approx(one.objective, rel=1e-14)
    assert two.gap == pytest.approx(one.gap, rel=1e-9)


@pytest.mark.parametrize("penalty", [{}, {"penalty": "l1", "alpha": 0.05}, {"penalty": "l2", "alpha": 0.1}])
@pytest.mark.parametrize("loss", REAL)
def test_the_bound_is_tight_at_the_minimum(loss, penalty):
    X, y = table(loss)
    model = ERMRegressor(loss=loss, **penalty, tol=1e-8).fit(X, y[:, 0])
    assert model.certificate_.verify(X, y[:, 0]).relative_gap < 2e-8


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared_hinge", "softmax"])
def test_the_bound_is_tight_at_the_minimum_of_classes(loss):
    X, y = table(loss)
    model = ERMClassifier(loss=loss, penalty="l2", alpha=0.1, tol=1e-10).fit(X, np.ravel(y))
    assert model.certificate_.verify(X, np.ravel(y)).relative_gap < 1e-9


@pytest.mark.parametrize("penalty", PENALTIES)
def test_a_sparse_table_is_the_same_claim(penalty):
    rng = np.random.default_rng(3)
    w, b = random_model(rng, "logistic")
    dense = recompute(claim("logistic", w, b, *penalty), ANY)
    sparse = recompute(claim("logistic", w, b, *penalty, X=sp.csr_array(table("logistic")[0])), ANY)
    assert sparse.certificate.gap == pytest.approx(dense.certificate.gap, rel=1e-10)
    assert sparse.objective_allowance == pytest.approx(dense.objective_allowance, rel=1e-3)


def test_rounding_that_the_solver_claims_is_allowed_only_as_far_as_moments_round():
    w, b = np.ones((3, 1)), np.zeros(1)
    claimed = Certificate("least squares", 0.0, 0.0, 1.0, 1e-6, rounding=1.0)
    assert recompute(claim("squared", w, b), claimed).objective_allowance < 1e-12
