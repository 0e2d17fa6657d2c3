"""Penalised logistic, squared hinge and softmax losses: answers, certificates, limits."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

import sixfold.solvers.proximal_newton as module
import sixfold.solvers.working_columns as working_columns
from oracles import penalised_classification
from solvers.problems import blocks, problem
from sixfold.budget import Budget
from sixfold.errors import IncompatibleError
from sixfold.solvers.base import choose
from sixfold.solvers.coordinate import CoordinateDescent

LOSSES = ["logistic", "squared_hinge", "softmax"]


def solve(stated, data, tol=1e-9, **limits):
    """Solve, and check that the certificate says what the problem itself says of the solution."""
    with Budget(tol, **limits) as budget:
        found = CoordinateDescent().solve(stated, data, budget)
    certificate = found.certificate
    assert certificate.scale == pytest.approx(stated.constant_objective(data), rel=1e-12)
    assert certificate.objective == pytest.approx(stated.objective(found.w, found.b, data), rel=1e-11)
    honest = stated.gap(found.w, found.b, data)
    assert certificate.gap == pytest.approx(honest, rel=1e-6, abs=1e-11 * certificate.scale)
    if not stated.fit_intercept:
        assert not found.b.any()
    return found


def classification(n, d, loss="logistic", *, seed=0, classes=3, informative=4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    W = np.zeros((d, classes))
    W[:informative] = 2.0 * rng.standard_normal((min(informative, d), classes))
    noisy = X @ W + rng.gumbel(size=(n, classes))
    if loss == "softmax":
        return X + 1.0, noisy.argmax(axis=1).astype(float)
    return X + 1.0, np.where(noisy[:, 0] > noisy[:, 1], 1.0, -1.0)


def largest_alpha(X, y, loss):
    """Return a strength of the l1 penalty that is near to where all weights vanish."""
    if loss == "softmax":
        slopes = [np.abs(X.T @ ((y == k) - np.mean(y == k))).max() for k in np.unique(y)]
        return max(slopes) / len(y)
    return np.abs(X.T @ (y - y.mean())).max() / (2.0 * len(y))


# -- the answer -----------------------------------------------------------------------------------


@given(
    loss=st.sampled_from(LOSSES),
    n=st.integers(2, 14),
    d=st.integers(1, 10),
    seed=st.integers(0, 10_000),
    fraction=st.sampled_from([0.01, 0.1, 0.5, 1.1]),
    l1_ratio=st.sampled_from([1.0, 0.7, 0.0]),
    positive=st.booleans(),
    intercept=st.booleans(),
    grid=st.booleans(),
    sparse=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_is_certified_and_not_above_the_oracle(
    loss, n, d, seed, fraction, l1_ratio, positive, intercept, grid, sparse
):
    rng = np.random.default_rng(seed)
    # Integers make ties, duplicate and constant columns.
    X = rng.integers(-2, 3, (n, d)).astype(float) if grid else rng.standard_normal((n, d))
    y = rng.integers(0, 3, n).astype(float) if loss == "softmax" else rng.choice([-1.0, 1.0], n)
    weight = rng.integers(0, 3, n).astype(float)
    y[:2] = [0.0, 2.0] if loss == "softmax" else [-1.0, 1.0]
    weight[:2] = 1.0  # two labels count, so that there is a minimum
    alpha = fraction * largest_alpha(X, y, loss) + 1e-3
    stated = problem(loss, "elasticnet", alpha, l1_ratio=l1_ratio, positive=positive, fit_intercept=intercept)
    data = blocks(sp.csr_array(X) if sparse else X, y, weight)
    found = solve(stated, data)
    assert found.certificate.converged
    w, b = penalised_classification(
        X, y, weight, loss, stated.l1, stated.l2, intercept, positive, steps=1000
    )
    theirs = stated.objective(w, b, data)
    assert found.certificate.objective <= theirs + 1e-9 * found.certificate.scale
