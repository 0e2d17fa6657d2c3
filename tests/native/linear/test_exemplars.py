"""The sweeps over scores of exemplar machines, against plain NumPy."""

import numpy as np
import pytest
from scipy.optimize import minimize

from sixfold._native import core
from sixfold.budget import Budget

FOREVER = (np.inf, np.zeros(1, dtype=np.int32))


def random_scores(machines=5, rows=5000, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.normal(-1.2, 1.0, size=(machines, rows))
    cost = rng.uniform(0.1, 2.0, size=rows)
    cost[::7] = 0.0
    return rng, scores, cost


def test_slopes_and_their_sums():
    _, scores, cost = random_scores()
    slopes, active = np.empty_like(scores), np.empty(scores.shape, dtype=np.uint8)
    share, sums = np.empty(scores.shape[1], dtype=np.int32), np.empty((scores.shape[0], 3))
    assert core.exemplar_slopes(scores, cost, slopes, active, share, sums, *FOREVER)
    inside = np.maximum(1.0 + scores, 0.0)
    np.testing.assert_allclose(slopes, 2.0 * cost * inside)
    np.testing.assert_array_equal(active, (inside > 0) & (cost > 0))
    np.testing.assert_array_equal(share, active.sum(axis=0))
    expected = [(cost * inside**2).sum(axis=1), slopes.sum(axis=1), (active * 2.0 * cost).sum(axis=1)]
    np.testing.assert_allclose(sums, np.transpose(expected))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_are_masked(dtype):
    rng, scores, cost = random_scores()
    products = rng.normal(size=scores.shape).astype(dtype)
    active = (rng.random(scores.shape) < 0.5).astype(np.uint8)
    expected = np.where(active, products * (2.0 * cost).astype(dtype), 0.0)
    assert core.mask_products(products, cost, active, *FOREVER)
    np.testing.assert_allclose(products, expected, rtol=1e-6)


def test_steps_are_of_the_best_length():
    rng, scores, cost = random_scores()
    moves = rng.normal(size=scores.shape)
    lines = np.column_stack([rng.normal(size=5), np.full(5, 3.0), np.ones(5), rng.normal(size=(5, 2))])

    def objective(t, machine):
        slope, curvature, own, score, move = lines[machine]
        inside = np.maximum(1.0 + scores[machine] + t * moves[machine], 0.0)
        rest = own * max(1.0 - score - t * move, 0.0) ** 2
        return slope * t + 0.5 * curvature * t * t + rest + cost @ inside**2

    # Each machine's step has to point downhill.
    for machine in range(5):
        if objective(1e-7, machine) > objective(0.0, machine):
            moves[machine] *= -1.0
            lines[machine, [0, 4]] *= -1.0
    steps, before = np.empty(5), scores.copy()
    assert core.exemplar_steps(scores, moves, cost, lines, steps, *FOREVER)
    np.testing.assert_allclose(scores, before + steps[:, None] * moves)
    scores[:] = before
    for machine in range(5):
        t = np.linspace(0.5, 1.5, 101) * steps[machine]
        values = [objective(one, machine) for one in t]
        assert np.argmin(values) in (49, 50, 51)


def test_a_step_that_points_uphill_is_not_taken():
    _, scores, cost = random_scores(1)
    steps = np.full(1, np.nan)
    lines = np.array([[5.0, 1.0, 1.0, 2.0, 0.0]])
    core.exemplar_steps(scores, np.abs(scores), cost, lines, steps, *FOREVER)
    assert steps[0] == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_sigmoids_minimise_the_cross_entropy(seed):
    rng, scores, weight = random_scores(3, 400, seed)
    own = rng.random(400) < 0.2
    scores[:, own] += 1.0
    parameters = np.empty((3, 2))
    assert core.fit_sigmoids(scores, weight, own.astype(np.uint8), -1.0, parameters, *FOREVER)
    for machine in range(3):
        some = (scores[machine] > -1.0) & (weight > 0)
        s, w, mine = scores[machine, some], weight[some], own[some]
        target = np.where(mine, (w[mine].sum() + 1) / (w[mine].sum() + 2), 1 / (w[~mine].sum() + 2))

        def entropy(v, s=s, w=w, target=target):
            f = v[0] * s + v[1]
            return w @ (np.logaddexp(0.0, f) - target * f)

        best = minimize(entropy, [0.0, 0.0], bounds=[(0, None), (None, None)], tol=1e-14)
        assert entropy(parameters[machine]) <= best.fun + 1e-9
        np.testing.assert_allclose(parameters[machine], best.x, atol=1e-3)


def test_a_sigmoid_never_falls():
    scores = np.linspace(-0.9, 1.0, 50)[None]
    parameters = np.empty((1, 2))
    own = (np.arange(50) < 20).astype(np.uint8)  # the lower scores
    core.fit_sigmoids(scores, np.ones(50), own, -1.0, parameters, *FOREVER)
    assert parameters[0, 0] == 0.0
    assert parameters[0, 1] == pytest.approx(np.log(0.4 / 0.6), abs=0.05)


def test_a_round_of_hard_negatives_solves_the_dual_of_its_working_set():
    rng = np.random.default_rng(0)
    X, x, cost = rng.normal(size=(40, 6)), rng.normal(size=(1, 6)) + 1.0, rng.uniform(0.5, 2.0, size=40)
    w, b, own = np.zeros((1, 6)), np.zeros(1), np.array([3.0])
    rows, multipliers = np.zeros((1, 64), dtype=np.int32), np.zeros((1, 64))
    counts, done = np.zeros(1, dtype=np.int32), np.zeros(1, dtype=np.uint8)
    objective, bound, goals = np.zeros(1), np.zeros(1), np.array([1e-12])
    for _ in range(20):
        scores = w @ X.T + b[:, None]
        before = w.copy(), b.copy()
        assert core.hard_negative_round(
            X, cost, x, own, scores, goals, 64, rows, multipliers, counts, w, b, objective, bound, done,
            *FOREVER,
        )  # fmt: skip
        if done[0]:
            break
    assert done[0]
    np.testing.assert_array_equal(w, before[0])  # a machine that is done stays
    inside = np.maximum(1.0 + X @ w[0] + b[0], 0.0)
    loss = cost @ inside**2 + 3.0 * max(1.0 - w[0] @ x[0] - b[0], 0.0) ** 2
    assert objective[0] == pytest.approx(0.5 * w[0] @ w[0] + loss)
    a = multipliers[0, : counts[0]]
    assert (a > 0).all()
    np.testing.assert_allclose(a, 2.0 * (cost * inside)[rows[0, : counts[0]]], rtol=1e-4)
    np.testing.assert_allclose(w[0], -a @ (X[rows[0, : counts[0]]] - x[0]), atol=1e-5)


def test_loops_end_when_time_is_up():
    _, scores, cost = random_scores()
    out = np.empty((5, 2))
    with Budget(time_limit=1e-9) as budget:
        assert not core.fit_sigmoids(scores, cost, np.ones(5000, dtype=np.uint8), -1.0, out, 0.0, budget.flag)


def test_sizes_are_checked():
    _, scores, cost = random_scores()
    with pytest.raises(ValueError, match="two parameters a machine"):
        core.fit_sigmoids(scores, cost, np.ones(5000, dtype=np.uint8), -1.0, np.empty((5, 3)), *FOREVER)
    with pytest.raises(ValueError, match="one cost and one share a row"):
        core.exemplar_slopes(
            scores, cost[:9].copy(), scores.copy(), np.empty(scores.shape, dtype=np.uint8),
            np.empty(5000, dtype=np.int32), np.empty((5, 3)), *FOREVER,
        )  # fmt: skip
