"""The sums behind a certificate, block by block, and what they say beside the whole computation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixfold import LogisticRegression
from sixfold.budget import Budget
from sixfold.data.blocks import EveryNth, MemoryBlocks
from sixfold.risk.losses import LOSSES, softmax
from sixfold.risk.penalties import make_penalty
from sixfold.risk.problem import Problem
from sixfold.risk.slope_bound import certify_slopes
from sixfold.solvers.smooth import newton
from sixfold.solvers.smooth.newton import Newton
from sixfold.solvers.smooth.slope_sums import certify_by_sums, class_sums_at, sums_at
from sixfold.solvers.smooth.softmax_objective import SoftmaxObjective
from solvers.problems import blocks as blocks_of
from solvers.problems import problem as stated

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


def rare_classes(random, classes):
    """Return rows of a few columns of any unit, of classes of which some are rare, and their weights."""
    rows, columns = int(random.integers(20, 120)), int(random.integers(1, 5))
    X = random.normal(size=(rows, columns))
    steepness = random.choice([1.0, 30.0])  # 30: nearly separated
    y = (steepness * X @ random.normal(size=(columns, classes)) + random.gumbel(size=(rows, classes))).argmax(
        axis=1
    )
    if random.random() < 0.3:
        y[y == classes - 1] = 0
    y[:classes] = np.arange(classes)  # maybe the only row of its class
    weight = random.choice([0.0, 0.5, 2.0, 50.0], rows)
    weight[:classes] = 1.0
    X = (X + random.choice([0.0, 1.0, 3.0])) * 10.0 ** random.integers(-2, 3, columns)
    return X, y.astype(float), weight


def extended_objective(problem, X, y, weight, w, b):
    """Return R(w, b) of classes with 64 bits of mantissa."""
    wide = np.longdouble
    score, q = X.astype(wide) @ w.astype(wide) + b, weight.astype(wide)
    most = score.max(axis=1)
    own = score[np.arange(len(y)), y.astype(int)]
    loss = np.log(np.exp(score - most[:, None]).sum(axis=1)) + (most - own)
    return q @ loss / q.sum() + wide(problem.l2) / 2 * np.square(w.astype(wide)).sum()


@given(
    st.integers(0, 10_000), st.integers(2, 6), st.booleans(), st.integers(-9, 0), st.integers(-13, 0),
    st.sampled_from(["both", "weights", "intercepts", "half", "nothing", "intercepts alone"]),
)  # fmt: skip
@settings(max_examples=60, deadline=None, derandomize=True)
def test_no_model_of_classes_is_below_the_bound_of_moved_probabilities(
    seed, classes, intercept, decade, size, off
):
    random = np.random.default_rng(seed)
    X, y, weight = rare_classes(random, classes)
    problem = stated("softmax", "l2", 10.0**decade, fit_intercept=intercept)
    blocks = blocks_of(X, y, weight)
    best = Newton().solve(problem, blocks, Budget(1e-11, 200))
    w, b = best.w, best.b
    if off in ("both", "weights"):
        w = w + 10.0**size * random.normal(size=w.shape) * (1e-3 + np.abs(w))
    if off in ("both", "intercepts"):
        b = b + 10.0**size * random.normal(size=b.shape) * intercept
    if off in ("half", "nothing", "intercepts alone"):
        w, b = 0.5 * (off == "half") * w, (1.0 - (off == "nothing")) * b
    sums = class_sums_at(SoftmaxObjective(problem, blocks, Budget(), 0.0 * X[0], 0.0), w, b)
    found = certify_slopes(problem, w, sums, math.inf, 1.0)
    least = extended_objective(problem, X, y, weight, best.w, best.b)
    assert found.objective >= extended_objective(problem, X, y, weight, w, b)
    assert found.lower_bound <= min(least, best.certificate.objective)


def test_a_bound_of_classes_counts_what_moving_their_probabilities_costs():
    random = np.random.default_rng(3)
    X, y, weight = rare_classes(random, 3)
    problem = stated("softmax", "l2", 0.1)
    blocks = blocks_of(X, y, weight)
    best = Newton().solve(problem, blocks, Budget(1e-11, 200))
    w, b = best.w, best.b + np.array([0.0, 1.0, 2.0])
    sums = class_sums_at(SoftmaxObjective(problem, blocks, Budget(), 0.0 * X[0], 0.0), w, b)
    assert certify_slopes(problem, w, sums, math.inf, 1.0).lower_bound <= best.certificate.objective
    sums.young = 0.0
    assert certify_slopes(problem, w, sums, math.inf, 1.0).lower_bound > best.certificate.objective


@pytest.mark.parametrize("strength", [1e-8, 1e-5, 1e-2, 1e1, 1e4, 1e7])
def test_a_sample_that_misses_what_counts_still_leads_to_the_minimum(strength, monkeypatch):
    monkeypatch.setattr(newton, "suits_small_fit", lambda *_: False)  # which begins in another way
    random = np.random.default_rng(2)
    X = random.normal(size=(30_000, 8))
    X[:, 5:] = 0.0  # in all rows but those that neither sample has
    first, second = newton._sampled(blocks_of(X, X[:, 0]), 9), 30_000 // (newton.CURVATURE_ROWS_A_COLUMN * 9)
    assert first > 1
    assert second >= newton.FEWER_FOR_CURVATURE
    few = np.arange(1, 11) * first * second + 1
    X[few, 5:] = 100.0 * random.normal(size=(10, 3))
    y = np.where(random.random(30_000) < 1.0 / (1.0 + np.exp(-X[:, 0] + 2.0)), 1.0, -1.0)
    weight = random.choice([0.0, 1.0, 3.0], 30_000)
    weight[few] = 1e4
    problem = stated("logistic", "l2", 1.0 / (strength * weight.sum()))
    blocks = blocks_of(X, y, weight)
    descend, begun = newton._descend, []
    monkeypatch.setattr(newton, "_descend", lambda *known: begun.append(known) or descend(*known))
    found = Newton().solve(problem, blocks, Budget(1e-8, 1000))
    assert len(begun) == 2  # the sample's and that of all rows, which did not end before its time
    for every in (first, second):
        assert not EveryNth(blocks, every).whole().X[:, 5:].any()
    assert found.certificate.converged
    whole = problem.certify("duality gap", found.w, found.b, blocks, 1e-8)  # which mends the slopes
    assert whole.converged
    assert found.certificate.lower_bound <= whole.objective
    assert np.abs(found.w[5:]).max() > 0
    assert found.n_iter < 40  # as many as without a sample, 31 at most, and some more


@pytest.mark.parametrize("rows", [30, 60, 300])
def test_the_checker_confirms_classes_that_are_told_apart(rows):
    """Bounds of slopes that are next to nothing would overstate the objective by 1e-11 of it."""
    X = np.random.default_rng(5).normal(size=(rows, 100))
    y = np.minimum(np.arange(rows), 10) % 10
    model = LogisticRegression().fit(X, y)
    assert model.certificate_.verify(X, y).converged
