"""The bound from sums is true at any model, and close at the minimum."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixfold.data.blocks import MemoryBlocks
from sixfold.risk.losses import LOSSES
from sixfold.risk.rank import column_space
from sixfold.risk.slope_bound import SlopeSums, certify_slopes
from sixfold.solvers.smooth.newton import Newton
from solvers.problems import problem, solve

NAMES = ("logistic", "squared_hinge", "softmax")


def sums_at(stated, X, y, q, w, b):
    """Return the sums at a model, by NumPy."""
    loss, mean = stated.loss, q @ X if stated.fit_intercept else np.zeros(X.shape[1])
    target = y[:, 0] if loss.labels == "class" else y
    score, Z = X @ w + b, X - mean
    u = loss.gradient(score, target)
    value = loss.value(score, target)
    p = u + (y == np.arange(b.size)) if loss.labels == "class" else 1.0 * (y > 0)
    least = max(float(p[q > 0].min()), 1e-300)
    return SlopeSums(
        X.shape[0], -np.log(least) if loss.labels == "class" else 0.0, q @ Z**2, Z.T @ (q[:, None] * u),
        np.atleast_1d(q @ value), q @ score**2, q @ u**2, q @ u, q @ np.abs(u), q @ np.abs(score * u), q @ p,
        b + mean @ w, np.abs(Z).max(axis=0), curvatures(stated, score, target, q, Z),
    )  # fmt: skip


def curvatures(stated, score, target, q, Z):
    """Return what the bound without penalty needs."""
    if stated.loss.name != "logistic":
        return None
    z = np.hstack([Z, np.ones((len(Z), 1))]) if stated.fit_intercept else Z
    bend = q[:, None] * stated.loss.curvature(score, target)
    return np.array([z.T @ (column[:, None] * z) for column in bend.T])


def data(name, rng, n=80, d=3, k=3):
    X = rng.normal(size=(n, d)) + rng.integers(0, 3)
    own = (X @ rng.normal(size=(d, k)) + rng.gumbel(size=(n, k))).argmax(axis=1)
    own[:k] = np.arange(k)
    return X, own[:, None].astype(float) if name == "softmax" else np.where(
        own[:, None] == np.arange(k), 1.0, -1.0
    )


@given(st.sampled_from(NAMES), st.integers(0, 10_000), st.booleans(), st.integers(-14, -1))
@settings(max_examples=80, deadline=None)
def test_no_model_is_below_the_bound(name, seed, intercept, size):
    rng = np.random.default_rng(seed)
    X, y = data(name, rng)
    weight = rng.integers(0, 4, size=len(X)) + (np.arange(len(X)) < 3).astype(float)
    stated = problem(name, "l2", 0.05, fit_intercept=intercept)
    blocks = MemoryBlocks(X, y, weight)
    best, _ = solve(Newton(), stated, blocks, tol=1e-12)
    least = best.certificate.objective - best.certificate.gap
    w = best.w + 10.0**size * rng.normal(size=best.w.shape)
    b = best.b + 10.0**size * rng.normal(size=best.b.shape) * intercept
    found = certify_slopes(stated, w, sums_at(stated, X, y, weight / weight.sum(), w, b), 10.0, 1.0)
    if size >= -3 and found is None:
        return  # slopes have to move too far: nothing is claimed
    assert found.objective >= stated.objective(w, b, blocks)
    assert found.lower_bound <= best.certificate.objective
    # Moving slopes costs as much as they are off, where mending them would cost the square of that.
    assert found.gap <= 1e3 * 10.0**size + 1e-12
    assert found.lower_bound >= least - 1e3 * 10.0**size - 1e-12


@given(st.integers(0, 10_000), st.booleans(), st.integers(-14, -1), st.sampled_from([1e-3, 1.0, 1e3]))
@settings(max_examples=40, deadline=None)
def test_no_model_without_penalty_is_below_the_bound(seed, intercept, size, unit):
    rng = np.random.default_rng(seed)
    X, y = data("logistic", rng)
    X[:, 0] *= unit
    weight = rng.integers(0, 4, size=len(X)) + (np.arange(len(X)) < 3).astype(float)
    stated = problem("logistic", None, 0.0, fit_intercept=intercept)
    blocks = MemoryBlocks(X, y, weight)
    best, _ = solve(Newton(), stated, blocks, tol=1e-12)
    proof = stated.certify("duality gap", best.w, best.b, blocks, 1e-12)  # which mends the slopes
    if not best.certificate.converged:
        return  # separated: there is no minimum
    w = best.w + 10.0**size * rng.normal(size=best.w.shape) / X.std(axis=0)[:, None]
    b = best.b + 10.0**size * rng.normal(size=best.b.shape) * intercept
    found = certify_slopes(stated, w, sums_at(stated, X, y, weight / weight.sum(), w, b), 10.0, 1.0)
    if found is None:
        return  # slopes have to move too far: nothing is claimed
    assert found.objective >= stated.objective(w, b, blocks)
    assert found.lower_bound <= proof.objective
    assert best.certificate.lower_bound <= proof.objective
    assert proof.lower_bound <= best.certificate.objective
    assert found.gap <= 1e6 * 10.0**size + 1e-9


def test_a_model_without_penalty_is_certified_to_the_last_digits():
    rng = np.random.default_rng(0)
    X, y = data("logistic", rng, n=300)
    stated = problem("logistic", None, 0.0)
    best, _ = solve(Newton(), stated, MemoryBlocks(X, y), tol=1e-12)
    q = np.full(len(X), 1.0 / len(X))
    found = certify_slopes(stated, best.w, sums_at(stated, X, y, q, best.w, best.b), 1e-10, 1.0)
    assert found.gap < 1e-10
    away = certify_slopes(stated, best.w + 1e-3, sums_at(stated, X, y, q, best.w + 1e-3, best.b), 10.0, 1.0)
    exact = stated.objective(best.w + 1e-3, best.b, MemoryBlocks(X, y)) - found.lower_bound
    assert 0.0 < exact <= away.gap


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("intercept", [True, False])
def test_columns_that_nearly_follow_from_others_are_never_called_independent(dtype, intercept):
    rng = np.random.default_rng(3)
    X, y = data("logistic", rng, n=200, d=3)
    far = 0.0
    for digits in range(17):
        Z = X.copy()
        Z[:, 2] = Z[:, 0] - 2.0 * Z[:, 1] + 10.0**-digits * rng.normal(size=200)
        Z = Z.astype(dtype).astype(float)
        stated = problem("logistic", None, 0.0, fit_intercept=intercept)
        q = np.full(len(Z), 1.0 / len(Z))
        sums = sums_at(stated, Z, y, q, np.zeros((3, 3)), np.zeros(3))
        known = sums.independent(q @ Z * intercept, float(np.finfo(dtype).eps))
        space = column_space(MemoryBlocks(Z.astype(dtype), y), intercept)
        assert not (known and space.dependent.size)
        far += known
    assert far >= 2


@pytest.mark.parametrize("name", NAMES)
def test_the_model_that_a_constant_is_added_to_is_not_called_converged(name):
    rng = np.random.default_rng(1)
    X, y = data(name, rng)
    stated = problem(name, "l2", 0.05)
    best, _ = solve(Newton(), stated, MemoryBlocks(X, y), tol=1e-9)
    q = np.full(len(X), 1.0 / len(X))
    b = best.b + 0.01 * np.arange(best.b.size) + 0.01 * (name != "softmax")
    assert certify_slopes(stated, best.w, sums_at(stated, X, y, q, best.w, best.b), 1e-9, 1.0).converged
    assert certify_slopes(stated, best.w, sums_at(stated, X, y, q, best.w, b), 1e-6, 1.0) is None


def test_every_loss_with_a_native_descent_has_a_bounded_curvature():
    assert all(np.isfinite(LOSSES[name].curvature_bound) for name in NAMES)
