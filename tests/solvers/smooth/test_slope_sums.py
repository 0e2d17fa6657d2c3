"""The sums behind a certificate, block by block, and what they say beside the whole computation."""

import numpy as np
import pytest

from sixfold.budget import Budget
from sixfold.data.blocks import MemoryBlocks
from sixfold.risk.losses import LOSSES, softmax
from sixfold.risk.penalties import make_penalty
from sixfold.risk.problem import Problem
from sixfold.solvers.smooth.newton import Newton
from sixfold.solvers.smooth.slope_sums import certify_by_sums, class_sums_at, sums_at
from sixfold.solvers.smooth.softmax_objective import SoftmaxObjective

SCORES = {"logistic": 2, "squared_hinge": 3, "softmax": 4}


def made(name, seed=0, rows=700, columns=5, dtype=np.float64, weighted=True):
    random = np.random.default_rng(seed)
    X = (random.normal(size=(rows, columns)) * [1.0, 10.0, 0.1, 1.0, 3.0] + 2.0).astype(dtype)
    scores = SCORES[name]
    y = random.integers(0, scores, (rows, 1)).astype(dtype)
    if name != "softmax":
        y = np.where(random.random((rows, scores)) < 0.4, -1.0, 1.0).astype(dtype)
    weight = random.choice([0.0, 0.5, 2.0], rows) if weighted else None
    w, b = random.normal(size=(columns, scores)).astype(dtype) * 0.1, random.normal(size=scores).astype(dtype)
    problem = Problem(LOSSES[name], make_penalty("l2"), 0.01, True)
    return problem, X, y, weight, w.astype(np.float64), b.astype(np.float64)


@pytest.mark.parametrize("name", ["logistic", "squared_hinge"])
@pytest.mark.parametrize("rows_per_block", [None, 256, 33])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [True, False])
def test_sums_of_blocks_are_those_of_numpy(name, rows_per_block, dtype, weighted):
    problem, X, y, weight, w, b = made(name, dtype=dtype, weighted=weighted)
    centre = X.astype(np.float64).mean(axis=0) + 0.1
    blocks = MemoryBlocks(X, y, weight, rows_per_block=rows_per_block)
    found = sums_at(problem, w, b, blocks, centre)
    q = np.full(len(X), 1 / len(X)) if weight is None else weight / weight.sum()
    Z, targets = X.astype(np.float64) - centre, y.astype(np.float64)
    score = Z @ w + b + centre @ w
    u, loss = problem.loss.gradient(score, targets), problem.loss.value(score, targets)
    expected = {
        "slope": Z.T @ (q[:, None] * u),
        "lengths": q @ Z**2,
        "score_squares": q @ score**2,
        "slope_squares": q @ u**2,
        "total": q @ u,
        "size": q @ np.abs(u),
        "products": q @ np.abs(score * u),
        "centred": b + centre @ w,
    }
    for part, value in expected.items():
        np.testing.assert_allclose(getattr(found, part), value, rtol=1e-11, atol=1e-13, err_msg=part)
    assert found.loss.sum() == pytest.approx((q @ loss).sum(), rel=1e-12)
    assert found.depth < 2000


@pytest.mark.parametrize("layout", ["C", "F", "every second column"])
@pytest.mark.parametrize("rows", [1, 95, 96, 97, 5000])
def test_sums_do_not_depend_on_how_rows_lie_or_how_many_there_are(layout, rows):
    problem, X, y, weight, w, b = made("logistic", rows=max(rows, 8))
    X, y, weight = X[:rows], y[:rows], np.ones(rows)
    laid = np.repeat(X, 2, axis=1)[:, ::2] if layout.startswith("every") else np.asarray(X, order=layout)
    found = sums_at(problem, w, b, MemoryBlocks(laid, y, weight), X[0])
    plain = sums_at(problem, w, b, MemoryBlocks(X, y, None), X[0])
    score, q = X @ w + b, 1.0 / rows
    u = problem.loss.gradient(score, y)
    np.testing.assert_allclose(found.slope, (X - X[0]).T @ u * q, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(found.lengths, ((X - X[0]) ** 2).sum(axis=0) * q, rtol=1e-12)
    np.testing.assert_allclose(found.score_squares, (score**2).sum(axis=0) * q, rtol=1e-12)
    assert np.array_equal(found.slope, plain.slope)
    assert found.depth >= plain.depth


@pytest.mark.parametrize("rows_per_block", [None, 33])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
def test_sums_of_classes_are_those_of_balanced_probabilities(rows_per_block, weighted, intercept):
    problem, X, y, weight, w, b = made("softmax", weighted=weighted)
    problem = Problem(problem.loss, problem.penalty, problem.alpha, intercept)
    b, X = b * intercept, X - 2.0
    blocks = MemoryBlocks(X, y, weight, rows_per_block=rows_per_block)
    objective = SoftmaxObjective(problem, blocks, Budget(), np.zeros(5), 0.0)
    found = class_sums_at(objective, w, b)
    q = np.full(len(X), 1 / len(X)) if weight is None else weight / weight.sum()
    score = X @ w + b
    p, own = softmax(score), y == np.arange(4)
    want, have = q @ own, q @ p
    r = p
    if intercept:
        kept = np.minimum(want / have, 1.0)
        missing = want - have * kept
        r = p * kept + (p @ (1.0 - kept))[:, None] * missing / missing.sum()
        np.testing.assert_allclose(found.total, 0.0, atol=1e-15)
    u = r - own
    np.testing.assert_allclose(found.slope, X.T @ (q[:, None] * u), rtol=1e-11, atol=1e-13)
    assert found.young == pytest.approx(q @ (r * np.log(r / p)).sum(axis=1), rel=1e-10, abs=1e-15)
    assert found.loss.sum() == pytest.approx(q @ problem.loss.value(score, y[:, 0]), rel=1e-12)
    np.testing.assert_allclose(found.mass, q @ r, rtol=1e-12)
    counts = q > 0
    least = np.log(r[counts]).min(), np.log(p[counts]).min()
    assert found.log_chance >= -sum(least) * (1.0 - 1e-12)
    for bound, value in [
        (found.score_squares, q @ score**2),
        (found.slope_squares, np.maximum(q @ u**2, q @ (p - own) ** 2)),
        (found.size, np.maximum(q @ np.abs(u), q @ np.abs(p - own))),
        (found.products, q @ np.abs(score * u)),
    ]:
        assert np.all(bound >= value * (1.0 - 1e-12))


def test_sums_of_classes_are_not_taken_far_from_zero():
    problem, X, y, weight, w, b = made("softmax")
    blocks = MemoryBlocks(X + 1e6, y, weight)
    objective = SoftmaxObjective(problem, blocks, Budget(), X.mean(axis=0) + 1e6, 1.0)
    assert class_sums_at(objective, w, b) is None


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("off", [0.0, 1e-6, 1e-3, 0.1])
def test_bounds_do_not_contradict_those_of_the_whole_computation(name, off):
    problem, X, y, weight, _, _ = made(name)
    blocks = MemoryBlocks(X, y, weight, rows_per_block=100)
    scale = problem.constant_objective(blocks)
    best = Newton().solve(problem, MemoryBlocks(X, y, weight), Budget(1e-9, 100))
    w, b = best.w * (1.0 + off), best.b
    full = problem.certify("duality gap", w, b, blocks, np.inf)
    lean = certify_by_sums(problem, w, b, blocks, X.mean(axis=0), np.inf, scale)
    assert lean is not None
    assert lean.objective == pytest.approx(full.objective, rel=1e-10)
    assert lean.lower_bound <= full.objective
    assert full.lower_bound <= lean.objective
    assert lean.lower_bound <= best.certificate.objective <= lean.objective * (1.0 + 1e-12)


def test_what_has_no_such_sums_is_left_to_others():
    problem, X, y, weight, w, b = made("logistic")
    blocks = MemoryBlocks(X, y, weight)
    free = Problem(LOSSES["logistic"], make_penalty(None), 0.0, True)
    assert certify_by_sums(free, w, b, blocks, X.mean(axis=0), np.inf, 1.0) is None
    assert certify_by_sums(problem, w, b, blocks, X.mean(axis=0), 1e-30, 1.0) is None  # does not converge
    huge = MemoryBlocks(X * 1e200, y, weight)
    assert certify_by_sums(problem, w * 1e-200, b, huge, np.zeros(5), np.inf, 1.0) is None
