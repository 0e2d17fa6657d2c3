"""The objective is the weighted mean it says, and the gap never promises more than is true."""

import itertools

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp

from sixfold.data.blocks import MemoryBlocks
from sixfold.risk.losses import LOSSES
from sixfold.risk.penalties import make_penalty
from sixfold.risk.problem import Problem

ROWS, COLUMNS = 24, 4
BOUNDED = ["squared", "absolute", "cubed", "logistic", "hinge", "squared_hinge"]
PENALTY = [
    (name, positive) for name, positive in itertools.product([None, "l2", "l1", "elasticnet"], [False, True])
]


def draw(loss, seed=0, targets=1, weighted=False):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((ROWS, COLUMNS)) + 0.3
    X[rng.random(X.shape) < 0.3] = 0.0
    y = X @ rng.standard_normal((COLUMNS, targets)) + 1.5 * rng.standard_normal((ROWS, targets))
    if loss.labels == "sign":
        y = np.where(y > 0.3, 1.0, -1.0)
    if loss.labels == "class":
        y = rng.integers(0, 3, (ROWS, 1)).astype(float)
    weight = rng.integers(0, 4, ROWS).astype(float) if weighted else None
    return X, y, weight


def problem_of(loss, penalty, alpha=0.1, fit_intercept=True):
    name, positive = penalty
    return Problem(LOSSES[loss], make_penalty(name, 0.5, positive), alpha, fit_intercept)


def plain_objective(problem, w, b, X, y, weight):
    """R(w, b) written out with nothing shared but the loss and penalty themselves."""
    weight = np.ones(X.shape[0]) if weight is None else weight
    value = problem.loss.value(X @ w + b, y[:, 0] if problem.loss.labels == "class" else y)
    loss = (weight[:, None] * value.reshape(X.shape[0], -1)).sum() / weight.sum()
    if problem.penalty.name is None:
        return loss if np.all(w >= 0) or not problem.penalty.positive else np.inf
    return loss + problem.alpha * problem.penalty.value(w)


def optimum(problem, X, y, weight, scores=1):
    """A point near the optimum, by a smooth solver in split variables w = plus - minus.

    Kinks of the loss become linear constraints, so that SLSQP sees smooth functions only.
    """
    n, d = X.shape
    q = (np.ones(n) if weight is None else weight) / (n if weight is None else weight.sum())
    loss, penalty = problem.loss, problem.penalty
    alpha = problem.alpha if penalty.name else 0.0
    labels = y[:, 0] if loss.labels == "class" else y
    kinked = not loss.smooth
    k = d * scores

    def unpack(z):
        plus, minus = z[:k].reshape(d, scores), z[k : 2 * k].reshape(d, scores)
        return plus, minus, z[2 * k : 2 * k + scores], z[2 * k + scores :].reshape(-1, scores)

    def objective(z):
        plus, minus, b, slack = unpack(z)
        w = plus - minus
        cost = alpha * (penalty.l1 * (plus + minus).sum() + 0.5 * penalty.l2 * (w**2).sum())
        value = slack if kinked else loss.value(X @ w + b, labels)
        return cost + (q @ value).sum()

    def gradient(z):
        plus, minus, b, _ = unpack(z)
        w = plus - minus
        if kinked:
            by_w, by_b, by_slack = 0.0 * w, 0.0 * b, np.repeat(q, scores)
        else:
            u = q[:, None] * loss.gradient(X @ w + b, labels)
            by_w, by_b, by_slack = X.T @ u, u.sum(axis=0), np.empty(0)
        ridge = alpha * penalty.l2 * w
        by_plus, by_minus = (alpha * penalty.l1 + s * (by_w + ridge) for s in (1, -1))
        return np.concatenate([by_plus.ravel(), by_minus.ravel(), by_b, by_slack])

    bounds = [(0, None)] * k + [(0, 0 if penalty.positive else None)] * k
    bounds += [(None, None) if problem.fit_intercept else (0, 0)] * scores
    constraints = []
    z = np.zeros(2 * k + scores)
    if kinked:
        bounds += [(0, None)] * (n * scores)
        z = np.concatenate([z, loss.value(np.zeros((n, scores)), y).ravel()])
        eye = np.eye(scores)
        lines = np.concatenate([np.kron(X, eye), -np.kron(X, eye), np.tile(eye, (n, 1))], axis=1)
        identity = np.eye(n * scores)
        if loss.labels == "real":  # slack >= +-(s - y)
            for sign in (1, -1):
                matrix = np.concatenate([-sign * lines, identity], axis=1)
                constraints.append((matrix, -sign * y.ravel()))
        else:  # slack >= 1 - y s
            matrix = np.concatenate([y.reshape(-1, 1) * lines, identity], axis=1)
            constraints.append((matrix, np.ones(n * scores)))
    found = scipy.optimize.minimize(
        objective,
        z,
        jac=gradient,
        bounds=bounds,
        method="SLSQP",
        constraints=[
            {"type": "ineq", "fun": lambda z, m=m, r=r: m @ z - r, "jac": lambda z, m=m: m}
            for m, r in constraints
        ],
        options={"maxiter": 2000, "ftol": 1e-14},
    )
    plus, minus, b, _ = unpack(found.x)
    w = plus - minus
    if penalty.positive:
        w = np.maximum(w, 0.0)
    return w, b


def blocks_of(X, y, weight, sparse=False, rows=None):
    return MemoryBlocks(sp.csr_array(X) if sparse else X, y, weight, rows_per_block=rows)


# -- objective ------------------------------------------------------------


@pytest.mark.parametrize("loss", [name for name in LOSSES if name != "softmax"])
@pytest.mark.parametrize("targets", [1, 2])
def test_weights_count_like_repeated_rows(loss, targets):
    X, y, weight = draw(LOSSES[loss], targets=targets, weighted=True)
    problem = problem_of(loss, ("elasticnet", False))
    rng = np.random.default_rng(1)
    w, b = rng.standard_normal((COLUMNS, targets)), rng.standard_normal(targets)
    again = np.repeat(np.arange(ROWS), weight.astype(int))
    weighted = problem.objective(w, b, blocks_of(X, y, weight))
    repeated = problem.objective(w, b, blocks_of(X[again], y[again], None))
    np.testing.assert_allclose(weighted, repeated, rtol=1e-14)
    np.testing.assert_allclose(weighted, plain_objective(problem, w, b, X, y, weight), rtol=1e-14)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalty", PENALTY, ids=str)
@pytest.mark.parametrize(("sparse", "rows"), [(True, None), (False, 7), (True, 1)])
def test_objective_and_gap_do_not_depend_on_how_rows_are_kept(loss, penalty, sparse, rows):
    X, y, weight = draw(LOSSES[loss], weighted=True)
    problem = problem_of(loss, penalty)
    scores = 3 if loss == "softmax" else 1
    w = np.abs(np.random.default_rng(1).standard_normal((COLUMNS, scores)))
    b = np.linspace(-0.5, 0.5, scores)
    whole, cut = blocks_of(X, y, weight), blocks_of(X, y, weight, sparse, rows)
    expected = plain_objective(problem, w, b, X, y, weight)
    np.testing.assert_allclose(problem.objective(w, b, whole), expected, rtol=1e-14)
    np.testing.assert_allclose(problem.objective(w, b, cut), expected, rtol=1e-14)
    np.testing.assert_allclose(problem.constant_objective(cut), problem.constant_objective(whole), rtol=1e-14)
    if loss != "zero_one":
        np.testing.assert_allclose(problem.gap(w, b, cut), problem.gap(w, b, whole), rtol=1e-9, atol=1e-14)


def test_a_negative_weight_under_positive_costs_infinitely_much():
    X, y, _ = draw(LOSSES["squared"])
    w = np.array([[1.0], [1.0], [-0.1], [1.0]])
    for name in (None, "l2"):
        problem = problem_of("squared", (name, True))
        assert problem.objective(w, np.zeros(1), blocks_of(X, y, None)) == np.inf
        assert problem.gap(w, np.zeros(1), blocks_of(X, y, None)) == np.inf


def test_constant_objective_by_hand():
    X = np.zeros((3, 2))
    real, sign = np.array([[1.0], [2.0], [6.0]]), np.array([[1.0], [-1.0], [1.0]])
    weight = np.array([1.0, 1.0, 2.0])

    def constant(loss, y, weight=None, fit_intercept=True):
        problem = problem_of(loss, ("l2", False), fit_intercept=fit_intercept)
        return problem.constant_objective(blocks_of(X, y, weight))

    # Mean 3: residuals 2, 1, 3. Weighted mean 15/4: 11/4, 7/4, 9/4 twice.
    np.testing.assert_allclose(constant("squared", real), (4 + 1 + 9) / 6)
    np.testing.assert_allclose(constant("squared", real, weight), (121 + 49 + 2 * 81) / 16 / 8)
    np.testing.assert_allclose(constant("absolute", real), (2 + 1 + 3) / 3)
    np.testing.assert_allclose(constant("squared", real, None, False), (1 + 4 + 36) / 6)
    np.testing.assert_allclose(constant("logistic", sign), np.log(2))
    np.testing.assert_allclose(constant("hinge", sign), 1.0)
    classes = np.array([[0.0], [3.0], [1.0]])
    np.testing.assert_allclose(constant("softmax", classes), np.log(4))


def test_constant_targets_leave_a_scale_above_zero():
    problem = problem_of("squared", (None, False))
    scale = problem.constant_objective(blocks_of(np.zeros((3, 1)), np.full((3, 1), 2.0), None))
    assert 0.0 < scale < 1e-29


# -- gap ------------------------------------------------------------------


@pytest.mark.parametrize("loss", [*BOUNDED, "softmax"])
@pytest.mark.parametrize("penalty", PENALTY, ids=str)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_gap_bounds_the_distance_to_the_optimum(loss, penalty, fit_intercept):
    targets = 2 if penalty == ("l2", False) and loss != "softmax" else 1
    scores = 3 if loss == "softmax" else targets
    weighted = penalty[0] in ("l1", "l2")
    X, y, weight = draw(LOSSES[loss], targets=targets, weighted=weighted)
    problem = problem_of(loss, penalty, 0.05, fit_intercept)
    blocks = blocks_of(X, y, weight, sparse=penalty[0] == "elasticnet", rows=11)
    best_w, best_b = optimum(problem, X, y, weight, scores)
    best = plain_objective(problem, best_w, best_b, X, y, weight)
    rng = np.random.default_rng(2)
    for size in (0.0, 1e-4, 1e-2, 0.3, 3.0, 100.0):
        w = best_w + size * rng.standard_normal(best_w.shape)
        w = np.maximum(w, 0.0) if penalty[1] else w
        b = best_b + size * rng.standard_normal(best_b.shape) * fit_intercept
        excess = plain_objective(problem, w, b, X, y, weight) - best
        gap = problem.gap(w, b, blocks)
        assert gap >= excess * (1 - 1e-13) - 1e-13
        assert gap <= problem.objective(w, b, blocks)


@pytest.mark.parametrize("loss", ["squared", "cubed", "logistic", "squared_hinge", "softmax"])
@pytest.mark.parametrize("penalty", PENALTY[2:], ids=str)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_gap_closes_at_the_optimum_of_smooth_losses(loss, penalty, fit_intercept):
    X, y, weight = draw(LOSSES[loss], weighted=True)
    problem = problem_of(loss, penalty, 0.05, fit_intercept)
    w, b = optimum(problem, X, y, weight, 3 if loss == "softmax" else 1)
    blocks = blocks_of(X, y, weight)
    assert problem.gap(w, b, blocks) <= 1e-4 * problem.constant_objective(blocks)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_gap_is_zero_at_the_closed_form_of_least_squares_and_ridge(sparse, fit_intercept, alpha):
    X, y, weight = draw(LOSSES["squared"], targets=2, weighted=True)
    q = weight / weight.sum()
    mean_x, mean_y = (q @ X, q @ y) if fit_intercept else (np.zeros(COLUMNS), np.zeros(2))
    centred = X - mean_x
    gram = centred.T @ (q[:, None] * centred) + alpha * np.eye(COLUMNS)
    w = np.linalg.solve(gram, centred.T @ (q[:, None] * (y - mean_y)))
    problem = problem_of("squared", ("l2" if alpha else None, False), alpha, fit_intercept)
    gap = problem.gap(w, mean_y - mean_x @ w, blocks_of(X, y, weight, sparse, 9))
    assert gap <= 1e-28


@pytest.mark.parametrize("sparse", [False, True])
def test_gap_of_least_squares_is_the_exact_excess(sparse):
    # R is quadratic: the gap without penalty is the excess itself, wherever w is.
    X, y, _ = draw(LOSSES["squared"])
    problem = problem_of("squared", (None, False))
    design = np.column_stack([X, np.ones(ROWS)])
    best = np.linalg.lstsq(design, y, rcond=None)[0]
    other = best + np.random.default_rng(3).standard_normal(best.shape)
    excess = 0.5 * np.mean((design @ (other - best)) ** 2)
    gap = problem.gap(other[:-1], other[-1], blocks_of(X, y, None, sparse))
    np.testing.assert_allclose(gap, excess, rtol=1e-12)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_gap_is_zero_at_a_lasso_worked_out_by_hand(fit_intercept):
    # Orthogonal centred columns of mean square 1: w_j = soft(mean(x_j y), alpha).
    X = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    y = X @ np.array([[2.0], [0.1]]) + 5.0 * fit_intercept
    problem = problem_of("squared", ("l1", False), 0.5, fit_intercept)
    w, b = np.array([[1.5], [0.0]]), np.array([5.0 * fit_intercept])
    blocks = blocks_of(X, y, None)
    assert problem.gap(w, b, blocks) <= 1e-16
    # R = 0.5 * 1.5 + (0.5^2 + 0.1^2) / 2
    np.testing.assert_allclose(problem.objective(w, b, blocks), 0.75 + 0.13, rtol=1e-15)


def test_gap_is_zero_for_nonnegative_least_squares():
    X, y, _ = draw(LOSSES["squared"], seed=0)
    w, _ = scipy.optimize.nnls(X, y[:, 0])
    assert 0 < np.count_nonzero(w) < COLUMNS
    problem = problem_of("squared", (None, True), fit_intercept=False)
    assert problem.gap(w[:, None], np.zeros(1), blocks_of(X, y, None)) <= 1e-16


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("positive", [False, True])
def test_gap_stays_true_for_dependent_columns(sparse, positive):
    # The third column is the sum of the first two: a slope may be forbidden in one of them only.
    rng = np.random.default_rng(6)
    X = rng.standard_normal((ROWS, 2))
    X = np.column_stack([X, X.sum(axis=1)])
    problem = problem_of("squared", (None, positive), fit_intercept=False)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        y = rng.standard_normal((ROWS, 1))
        w = np.abs(rng.standard_normal((3, 1)))
        if positive:
            best = 0.5 * scipy.optimize.nnls(X, y[:, 0])[1] ** 2 / ROWS
        else:
            best = 0.5 * np.mean((y - X @ np.linalg.lstsq(X, y, rcond=None)[0]) ** 2)
        excess = 0.5 * np.mean((y - X @ w) ** 2) - best
        assert problem.gap(w, np.zeros(1), blocks_of(X, y, None, sparse)) >= excess - 1e-13


@pytest.mark.parametrize("sparse", [False, True])
def test_units_of_the_columns_do_not_decide_the_rank(sparse):
    X, y, _ = draw(LOSSES["squared"])
    units = np.array([1e9, 1.0, 1e-9, 1.0])
    problem = problem_of("squared", (None, False))
    w, b = np.ones((COLUMNS, 1)), np.zeros(1)
    gap = problem.gap(w / units[:, None], b, blocks_of(X * units, y, None, sparse))
    np.testing.assert_allclose(gap, problem.gap(w, b, blocks_of(X, y, None)), rtol=1e-9)


def test_gap_without_a_gram_matrix_is_the_objective(monkeypatch):
    monkeypatch.setattr("sixfold.risk.candidate.MAX_SPARSE_COLUMNS", 3)
    X, y, _ = draw(LOSSES["squared"])
    problem = problem_of("squared", (None, False))
    w, b, blocks = np.ones((COLUMNS, 1)), np.zeros(1), blocks_of(X, y, None, sparse=True)
    assert problem.gap(w, b, blocks) == problem.objective(w, b, blocks)


@pytest.mark.parametrize("loss", ["absolute", "logistic", "hinge", "squared_hinge", "softmax"])
def test_gap_is_useful_although_the_intercept_is_a_little_off(loss):
    # Far on the right side slopes are near 0, and taking a mean off would turn them round.
    X, y, _ = draw(LOSSES[loss])
    if loss == "softmax":
        y = np.argmax(X[:, :3], axis=1)[:, None].astype(float)
    elif loss != "absolute":
        y = np.where(X[:, :1] > 0.2, 1.0, -1.0)
    problem = problem_of(loss, ("l2", False), 2e-3 if loss == "softmax" else 0.02)
    w, b = optimum(problem, X, y, None, 3 if loss == "softmax" else 1)
    b = b + 1e-3 * np.arange(1, b.size + 1)
    blocks = blocks_of(X, y, None)
    # At the kinks of the absolute loss the convention's slope 0 is seldom the optimal one.
    share = 0.5 if loss == "absolute" else 0.1
    assert problem.gap(w, b, blocks) <= share * problem.objective(w, b, blocks)


@pytest.mark.parametrize("loss", [*BOUNDED, "softmax"])
def test_rows_of_weight_zero_do_not_change_the_gap(loss):
    X, y, weight = draw(LOSSES[loss], weighted=True)
    assert np.any(weight == 0)
    scores = 3 if loss == "softmax" else 1
    w = np.random.default_rng(1).standard_normal((COLUMNS, scores))
    counted = weight > 0
    for penalty in (None, "l1"):
        problem = problem_of(loss, (penalty, False))
        with_all = problem.gap(w, np.zeros(scores), blocks_of(X, y, weight))
        without = problem.gap(w, np.zeros(scores), blocks_of(X[counted], y[counted], weight[counted]))
        np.testing.assert_allclose(with_all, without, rtol=1e-12)


def test_a_dual_candidate_closes_the_gap_at_a_kink():
    # The median of 1, 2, 6 is 2, where the slopes 1, 0, -1 balance. With weights 1, 2, 2 it is
    # 2 as well, but there 1 + 2 u - 2 = 0 asks for the slope u = 1/2 at the kink.
    X, y, b = np.zeros((3, 1)), np.array([[1.0], [2.0], [6.0]]), np.array([2.0])
    w, problem = np.zeros((1, 1)), problem_of("absolute", ("l2", False))
    assert problem.gap(w, b, blocks_of(X, y, None)) <= 1e-15
    blocks = blocks_of(X, y, np.array([1.0, 2.0, 2.0]))
    assert problem.gap(w, b, blocks) > 0.1
    dual = np.array([[1.0], [0.5], [-1.0]])
    assert problem.gap(w, b, blocks, dual) <= 1e-15
    np.testing.assert_array_equal(dual, [[1.0], [0.5], [-1.0]])
    certificate = problem.certify("duality gap", w, b, blocks, 1e-6, dual)
    assert certificate.gap - certificate.rounding <= 1e-15
    assert certificate.rounding <= 1e-13


def test_tiny_slopes_do_not_overflow():
    # Logistic slopes near 1e-310: 1 / u is beyond the largest double.
    X, y = np.array([[713.0], [-713.0]]), np.array([[1.0], [-1.0]])
    problem = problem_of("logistic", ("l2", False), 1e-9)
    assert 0 <= problem.gap(np.ones((1, 1)), np.zeros(1), blocks_of(X, y, None)) <= 1e-8


def test_two_class_softmax_has_the_objective_of_logistic():
    X, y, _ = draw(LOSSES["logistic"])
    w, b = np.random.default_rng(1).standard_normal((COLUMNS, 1)), np.array([0.3])
    pair_w, pair_b = np.hstack([0 * w, w]), np.array([0.0, 0.3])
    one = problem_of("logistic", (None, False)).objective(w, b, blocks_of(X, y, None))
    two = problem_of("softmax", (None, False)).objective(pair_w, pair_b, blocks_of(X, (y + 1) / 2, None))
    np.testing.assert_allclose(one, two, rtol=1e-14)


def test_float32_rows_are_certified_in_float64():
    X, y, _ = draw(LOSSES["squared"])
    X, y = X.astype(np.float32), y.astype(np.float32)
    problem = problem_of("squared", (None, False))
    design = np.column_stack([X, np.ones(ROWS)]).astype(float)
    best = np.linalg.lstsq(design, y.astype(float), rcond=None)[0]
    gap = problem.gap(best[:-1], best[-1], blocks_of(X, y, None))
    assert gap <= 1e-28


def test_certify_collects_objective_gap_and_scale():
    X, y, _ = draw(LOSSES["squared"])
    problem, blocks = problem_of("squared", (None, False)), blocks_of(X, y, None)
    w, b = np.ones((COLUMNS, 1)), np.zeros(1)
    certificate = problem.certify("duality gap", w, b, blocks, 1e-3)
    assert certificate.kind == "duality gap"
    objective, gap = problem.objective(w, b, blocks), problem.gap(w, b, blocks)
    assert objective < certificate.objective <= objective * (1 + 1e-13)
    assert gap < certificate.gap <= gap + 1e-13 * objective
    np.testing.assert_allclose(certificate.rounding, certificate.gap - gap, rtol=0, atol=1e-15)
    assert certificate.scale == problem.constant_objective(blocks)
    assert certificate.tolerance == 1e-3
    assert not certificate.converged
