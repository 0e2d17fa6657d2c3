"""The descent by truncated Newton against Newton's method on plain NumPy formulas."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from sixfold._native import core
from sixfold.solvers.passes import LOSS_CODES

DONE, STOPPED, STUCK = 0, 1, 2


def table(classes, rows=40, columns=12, seed=0):
    """Return a wide table with offset columns, class numbers, and weights of which some are 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)) * np.geomspace(0.1, 10.0, columns) + rng.normal(size=columns)
    y = (X @ rng.normal(size=(columns, classes)) + rng.gumbel(size=(rows, classes)) * 5).argmax(axis=1)
    return X, y.astype(float), rng.integers(0, 3, size=rows).astype(float)


def terms(scores, y):
    """Return losses, slopes and curvatures of softmax scores, or of one score with labels -1 and +1."""
    if scores.shape[1] == 1:
        margin = y * scores[:, 0]
        p = 1.0 / (1.0 + np.exp(margin))
        return np.logaddexp(0.0, -margin), (-y * p)[:, None], (p * (1.0 - p))[:, None, None]
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    one_hot = y[:, None] == np.arange(scores.shape[1])
    return -np.log(p[one_hot]), p - one_hot, p[:, :, None] * np.eye(p.shape[1]) - p[:, :, None] * p[:, None]


def objective(theta, Z, y, q, l2):
    """Return value, slope and curvature at theta (columns + 1, scores)."""
    loss, slope, bend = terms(Z @ theta, y)
    ridge = l2 * np.append(np.ones(Z.shape[1] - 1), 0.0)
    value = q @ loss + 0.5 * float(ridge @ np.square(theta).sum(axis=1))
    H = np.einsum("ij,ikl,im->jkml", q[:, None] * Z, bend, Z, optimize=True)
    H[np.arange(Z.shape[1]), :, np.arange(Z.shape[1]), :] += ridge[:, None, None] * np.eye(theta.shape[1])
    return value, Z.T @ (q[:, None] * slope) + ridge[:, None] * theta, H.reshape(theta.size, theta.size)


def least(Z, y, q, l2, scores):
    """Return the least value, by Newton's method with halved steps."""
    theta = np.zeros((Z.shape[1], scores))
    value, slope, H = objective(theta, Z, y, q, l2)
    for _ in range(30):
        step = np.linalg.lstsq(H, -slope.ravel(), rcond=1e-13)[0].reshape(theta.shape)
        length = 1.0
        while length > 1e-6 and objective(theta + length * step, Z, y, q, l2)[0] > value:
            length /= 2
        theta = theta + length * step
        value, slope, H = objective(theta, Z, y, q, l2)
    return value


def descend(X, y, weight, shift, scores, l2=1e-2, enough=1e-9, **options):
    """Return how the native descent ends, its steps and its last point."""
    loss = "softmax" if scores > 1 else "logistic"
    theta = np.zeros((X.shape[1] + 1, scores))
    parts = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
    limits = {"most_steps": 50, "most_products": 1000, "flag": np.zeros(1, np.int32)}
    limits = limits | {"seconds_left": np.inf} | options
    centred = (X.toarray() if sp.issparse(X) else X) - shift
    end, steps = core.truncated_newton(
        *parts,
        y=y,
        weight=weight,
        weight_sum=float(y.size if weight is None else weight.sum()),
        loss=LOSS_CODES.index(loss),
        l2=l2,
        shift=shift,
        intercept=True,
        spread=float(np.sqrt(np.square(centred).sum(axis=1).mean())),
        enough=enough,
        theta=theta,
        step=np.zeros_like(theta),
        report=None,
        **limits,
    )
    return end, steps, theta


@pytest.mark.parametrize("kind", ["C", "F", "float32", "sparse", "long indices"])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("scores", [1, 3, 9])
def test_the_end_is_the_minimum_within_the_gap_that_is_asked_for(scores, weighted, kind):
    X, y, weight = table(max(scores, 2))
    shift = X.mean(axis=0)
    if kind in ("sparse", "long indices"):
        shift = np.zeros(X.shape[1])
        X = sp.csr_array(np.where(np.abs(X) > 1.0, X, 0.0))
        if kind == "long indices":
            X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    else:
        X = X.astype(np.float32) if kind == "float32" else np.asarray(X, order=kind)
    y = 2.0 * y - 1.0 if scores == 1 else y
    end, steps, theta = descend(X, y, weight if weighted else None, shift, scores)
    dense = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float)
    Z = np.column_stack([dense - shift, np.ones(y.size)])
    q = weight / weight.sum() if weighted else np.full(y.size, 1.0 / y.size)
    value, lowest = objective(theta, Z, y, q, 1e-2)[0], least(Z, y, q, 1e-2, scores)
    assert end == DONE
    assert steps[-1][2] == pytest.approx(value, rel=1e-12)
    assert -1e-12 <= value - lowest <= steps[-1][3] <= 1e-9
    values = [value for _, _, value, _ in steps]
    assert all(later < former for former, later in pairwise(values))


def test_without_products_it_is_stuck_where_it_began():
    X, y, weight = table(3)
    end, _, theta = descend(X, y, weight, np.zeros(X.shape[1]), 3, most_products=0)
    assert end == STUCK
    assert not theta.any()


def test_no_time_stops_it():
    X, y, weight = table(3)
    assert descend(X, y, weight, np.zeros(X.shape[1]), 3, seconds_left=0.0)[0] == STOPPED


def test_an_overflow_is_left_to_others():
    X, y, weight = table(3)
    with np.errstate(over="ignore"):
        assert descend(X * 1e200, y, weight, np.zeros(X.shape[1]), 3)[0] == STUCK


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"y": np.zeros(3)}, "one entry a row"),
        ({"y": np.full(40, 3.0)}, "class indices"),
        ({"l2": 0.0}, "penalty"),
    ],
)
def test_sizes_are_checked_at_the_border(change, words):
    X, y, weight = table(3)
    given = {"X": X, "y": y, "weight": weight, "shift": np.zeros(X.shape[1]), "scores": 3} | change
    with pytest.raises(ValueError, match=words):
        descend(**given)
