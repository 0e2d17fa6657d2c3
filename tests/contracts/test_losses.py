"""Every loss of the registry keeps the same promises; one without values by hand fails."""

import math

import numpy as np
import pytest

from sixfold.risk.losses import LOSSES

# name: rows of (score, y, value, gradient, curvature), worked out from the table of losses.py.
E = math.e
BY_HAND = {
    "squared": [
        (3.0, 1.0, 2.0, 2.0, 1.0),  # r = 2: 4 / 2
        (-1.0, 0.5, 1.125, -1.5, 1.0),  # r = -1.5: 2.25 / 2
    ],
    "absolute": [
        (3.0, 1.0, 2.0, 1.0, 0.0),
        (-1.0, 0.5, 1.5, -1.0, 0.0),
        (0.5, 0.5, 0.0, 0.0, 0.0),  # the kink
    ],
    "cubed": [
        (3.0, 1.0, 8.0 / 3.0, 4.0, 4.0),  # r = 2: 8 / 3, 2 * 2, 2 * 2
        (-1.0, 0.5, 1.125, -2.25, 3.0),  # r = -1.5: 3.375 / 3, -1.5 * 1.5, 2 * 1.5
    ],
    "logistic": [
        (0.0, 1.0, math.log(2.0), -0.5, 0.25),
        (0.0, -1.0, math.log(2.0), 0.5, 0.25),
        # margin log 3: log(1 + 1/3), 1 / (1 + 3), 3/4 * 1/4
        (math.log(3.0), 1.0, math.log(4.0 / 3.0), -0.25, 0.1875),
        # margin -log 3: log(1 + 3), 1 / (1 + 1/3)
        (math.log(3.0), -1.0, math.log(4.0), 0.75, 0.1875),
    ],
    "hinge": [
        (0.25, 1.0, 0.75, -1.0, 0.0),
        (0.25, -1.0, 1.25, 1.0, 0.0),
        (1.0, 1.0, 0.0, 0.0, 0.0),  # the kink
        (-2.0, -1.0, 0.0, 0.0, 0.0),
    ],
    "squared_hinge": [
        (0.25, 1.0, 0.28125, -0.75, 1.0),  # 0.75^2 / 2
        (0.25, -1.0, 0.78125, 1.25, 1.0),  # 1.25^2 / 2
        (1.0, 1.0, 0.0, 0.0, 0.0),
        (-2.0, -1.0, 0.0, 0.0, 0.0),
    ],
    "perceptron": [
        (0.25, 1.0, 0.0, 0.0, 0.0),
        (0.25, -1.0, 0.25, 1.0, 0.0),
        (-2.0, 1.0, 2.0, -1.0, 0.0),
        (0.0, 1.0, 0.0, 0.0, 0.0),  # the kink
    ],
    "softmax": [
        # exp: 1, 2, 1, so p = 1/4, 1/2, 1/4
        ((0.0, math.log(2.0), 0.0), 1, math.log(2.0), (0.25, -0.5, 0.25), (3 / 16, 1 / 4, 3 / 16)),
        ((0.0, math.log(2.0), 0.0), 2, math.log(4.0), (0.25, 0.5, -0.75), (3 / 16, 1 / 4, 3 / 16)),
    ],
    "zero_one": [
        (0.25, 1.0, 0.0, None, None),
        (0.25, -1.0, 1.0, None, None),
        (0.0, 1.0, 1.0, None, None),  # undecided is a mistake
        (0.0, -1.0, 1.0, None, None),
    ],
}
# Where y s (sign labels) or s - y (real targets) has a kink, in the value or in the gradient.
KINKS = {
    "absolute": 0.0,
    "hinge": 1.0,
    "squared_hinge": 1.0,
    "perceptron": 0.0,
    "zero_one": 0.0,
}
DERIVED = ("gradient", "curvature", "conjugate", "prox")


def having(*methods):
    """Every loss that has these methods, as parameters."""
    names = [name for name, loss in LOSSES.items() if all(hasattr(loss, m) for m in methods)]
    return pytest.mark.parametrize("loss", [LOSSES[name] for name in names], ids=names)


def draw(loss, seed=0, rows=200, spread=3.0):
    """Random scores and targets, away from kinks."""
    rng = np.random.default_rng(seed)
    if loss.labels == "class":
        return spread * rng.standard_normal((rows, 4)), rng.integers(0, 4, rows)
    score = spread * rng.standard_normal(rows)
    y = spread * rng.standard_normal(rows)
    if loss.labels == "sign":
        y = np.where(y > 0, 1.0, -1.0)
    if loss.name in KINKS:
        place = score * y if loss.labels == "sign" else score - y
        far = np.abs(place - KINKS[loss.name]) > 1e-3
        score, y = score[far], y[far]
    return score, y


def draw_u(loss, y, seed=1):
    """Random u at which the conjugate is finite."""
    rng = np.random.default_rng(seed)
    if loss.labels == "class":
        u = rng.dirichlet(np.ones(4), y.shape[0])
        u[np.arange(y.shape[0]), y] -= 1.0
        return u
    low, high = loss.domain(y)
    return rng.uniform(np.maximum(low, -9.0), np.minimum(high, 9.0))


def paired(score, u):
    """The product s u of a row: over classes it is a sum."""
    return (score * u).sum(axis=1) if score.ndim == 2 else score * u


def test_every_loss_is_worked_out_by_hand():
    assert BY_HAND.keys() == LOSSES.keys()


@pytest.mark.parametrize(("name", "loss"), LOSSES.items(), ids=LOSSES)
def test_a_loss_knows_its_name(name, loss):
    assert loss.name == name


@pytest.mark.parametrize("name", BY_HAND)
def test_values_agree_with_those_worked_out_by_hand(name):
    loss = LOSSES[name]
    score, y, value, gradient, curvature = zip(*BY_HAND[name], strict=True)
    score, y = np.array(score), np.array(y)
    np.testing.assert_allclose(loss.value(score, y), value, rtol=1e-15, atol=1e-16)
    if gradient[0] is not None:
        np.testing.assert_allclose(loss.gradient(score, y), gradient, rtol=1e-15, atol=1e-16)
        np.testing.assert_allclose(loss.curvature(score, y), curvature, rtol=1e-15, atol=1e-16)


def test_zero_one_is_for_reporting_only():
    assert not any(hasattr(LOSSES["zero_one"], method) for method in (*DERIVED, "domain"))


@pytest.mark.parametrize("name", sorted(LOSSES.keys() - {"zero_one", "softmax"}))
def test_every_loss_to_minimise_has_all_methods(name):
    assert all(hasattr(LOSSES[name], method) for method in (*DERIVED, "domain"))


def test_softmax_has_all_but_what_needs_one_score_a_row():
    has = {method for method in (*DERIVED, "domain") if hasattr(LOSSES["softmax"], method)}
    assert has == {"gradient", "curvature", "conjugate"}


def differences(function, score, h=1e-5):
    """Central differences of a function of the scores, entry by entry."""
    if score.ndim == 1:
        return (function(score + h) - function(score - h)) / (2 * h)
    columns = []
    for c in range(score.shape[1]):
        step = np.zeros(score.shape[1])
        step[c] = h
        up, down = function(score + step), function(score - step)
        columns.append(((up - down) if up.ndim == 1 else (up - down)[:, c]) / (2 * h))
    return np.stack(columns, axis=1)


@having("gradient")
def test_gradient_is_the_slope_of_the_value(loss):
    score, y = draw(loss)
    slope = differences(lambda s: loss.value(s, y), score)
    np.testing.assert_allclose(loss.gradient(score, y), slope, rtol=1e-6, atol=1e-8)


@having("curvature")
def test_curvature_is_the_slope_of_the_gradient(loss):
    score, y = draw(loss)
    slope = differences(lambda s: loss.gradient(s, y), score)
    np.testing.assert_allclose(loss.curvature(score, y), slope, rtol=1e-6, atol=1e-8)


@having("curvature")
def test_curvature_bound_holds_and_is_reached(loss):
    score, y = draw(loss, rows=20_000)
    largest = loss.curvature(score, y).max()
    if loss.smooth and np.isfinite(loss.curvature_bound):
        # The Hessian diag(p) - p p' of softmax has eigenvalues up to 1/2; its diagonal up to 1/4.
        reached = 0.5 * loss.curvature_bound if loss.name == "softmax" else loss.curvature_bound
        assert 0.99 * reached <= largest <= reached
    else:
        assert loss.curvature_bound == np.inf


def test_softmax_curvature_bound_is_the_largest_eigenvalue():
    # p = (1/2, 1/2): diag(p) - p p' = [[1, -1], [-1, 1]] / 4, eigenvalues 0 and 1/2.
    assert LOSSES["softmax"].curvature_bound == 0.5


@having("gradient")
def test_smooth_means_that_the_gradient_does_not_jump(loss):
    if loss.name not in KINKS:
        assert loss.smooth
        return
    y = np.array([1.0, 1.0])
    kink = KINKS[loss.name] + (1.0 if loss.labels == "real" else 0.0)
    before, after = loss.gradient(np.array([kink - 1e-9, kink + 1e-9]), y)
    assert (abs(after - before) < 1e-8) == loss.smooth


@having("conjugate")
def test_fenchel_young_inequality(loss):
    score, y = draw(loss)
    u = draw_u(loss, y)
    conjugate = loss.conjugate(u, y)
    assert np.all(np.isfinite(conjugate))
    excess = loss.value(score, y) + conjugate - paired(score, u)
    assert np.all(excess >= -1e-12)
    np.testing.assert_allclose(loss.fenchel_young(score, u, y), excess, rtol=1e-9, atol=1e-12)
    assert np.all(loss.fenchel_young(score, u, y) >= 0.0)


@having("conjugate")
def test_fenchel_young_is_zero_at_the_gradient(loss):
    score, y = draw(loss)
    u = loss.gradient(score, y)
    np.testing.assert_allclose(
        loss.value(score, y) + loss.conjugate(u, y), paired(score, u), rtol=1e-12, atol=1e-12
    )
    np.testing.assert_allclose(loss.fenchel_young(score, u, y), 0.0, atol=1e-12)


@having("conjugate")
def test_fenchel_young_is_infinite_where_the_conjugate_is(loss):
    score, y = draw(loss, rows=4)
    u = draw_u(loss, y)
    u = u - np.where(y > 0, 20.0, -20.0) if loss.labels == "sign" else u + 20.0
    infinite = np.isinf(loss.conjugate(u, y))
    np.testing.assert_array_equal(np.isinf(loss.fenchel_young(score, u, y)), infinite)
    assert infinite.all() == (loss.name not in ("squared", "cubed", "squared_hinge"))


@pytest.mark.parametrize("name", ["squared", "absolute", "cubed"])
def test_fenchel_young_keeps_its_digits_for_large_targets(name):
    # Residuals of 1 and 2 on targets near 1e9: u y alone has an error of 1e-7.
    score, y = np.array([1e9 + 1.0, 1e9 - 2.0]), np.array([1e9, 1e9])
    gap = LOSSES[name].fenchel_young(score, np.array([0.5, -0.5]), y)
    small = LOSSES[name].fenchel_young(score - 1e9, np.array([0.5, -0.5]), y - 1e9)
    np.testing.assert_allclose(gap, small, rtol=1e-15)


@having("conjugate", "domain")
def test_conjugate_is_the_supremum_on_a_grid(loss):
    rng = np.random.default_rng(2)
    grid = np.linspace(-60.0, 60.0, 120_001)
    for y in (1.0, -1.0):
        targets = np.full_like(grid, y)
        for u in draw_u(loss, np.full(20, y), seed=int(rng.integers(1000))):
            brute = np.max(u * grid - loss.value(grid, targets))
            conjugate = loss.conjugate(np.array([u]), np.array([y]))[0]
            assert brute - 1e-12 <= conjugate <= brute + 1e-5


def test_softmax_conjugate_is_the_supremum_on_a_grid():
    # The supremum does not change when all scores move together, so one of them stays at zero.
    axis = np.linspace(-6.0, 6.0, 301)
    first, second = (part.ravel() for part in np.meshgrid(axis, axis))
    grid = np.column_stack([first, second, np.zeros_like(first)])
    loss = LOSSES["softmax"]
    for y, p in ((0, (0.2, 0.3, 0.5)), (1, (0.6, 0.3, 0.1)), (2, (0.1, 0.1, 0.8))):
        u = np.array(p) - np.eye(3)[y]
        brute = np.max(grid @ u - loss.value(grid, np.full(grid.shape[0], y)))
        conjugate = loss.conjugate(u[None, :], np.array([y]))[0]
        assert brute - 1e-12 <= conjugate <= brute + 1e-3
        np.testing.assert_allclose(conjugate, sum(q * math.log(q) for q in p), rtol=1e-14)


@having("domain")
def test_conjugate_is_finite_on_the_domain_and_infinite_beyond_it(loss):
    y = np.array([1.0, -1.0])
    low, high = loss.domain(y)
    inside = np.linspace(0.0, 1.0, 11)
    for share in inside:
        u = np.maximum(low, -9.0) * (1 - share) + np.minimum(high, 9.0) * share
        assert np.all(np.isfinite(loss.conjugate(u, y)))
    for end, step in ((low, -1e-6), (high, 1e-6)):
        finite = np.isfinite(end)
        beyond = loss.conjugate(np.where(finite, end + step, 0.0), y)
        np.testing.assert_array_equal(np.isinf(beyond), finite)


@having("domain")
def test_gradients_lie_in_the_domain(loss):
    score, y = draw(loss, spread=30.0)
    low, high = loss.domain(y)
    u = loss.gradient(score, y)
    assert np.all((low <= u) & (u <= high))


@having("domain")
def test_labels_may_be_integers(loss):
    y = np.array([1, -1])
    low, high = loss.domain(y)
    np.testing.assert_array_equal(low, loss.domain(y.astype(float))[0])
    np.testing.assert_array_equal(high, loss.domain(y.astype(float))[1])


def test_softmax_conjugate_is_infinite_outside_the_simplex():
    loss, y = LOSSES["softmax"], np.array([0, 0, 0, 0])
    p = np.array([[1.0, 0.0], [0.0, 1.0], [1.1, -0.1], [0.4, 0.4]])
    u = p - np.array([1.0, 0.0])
    np.testing.assert_array_equal(loss.conjugate(u, y), [0.0, 0.0, np.inf, np.inf])


@having("prox")
@pytest.mark.parametrize("step", [1e-3, 0.3, 1.0, 7.0, 1e4])
def test_prox_is_the_brute_force_minimiser(loss, step):
    v, y = draw(loss, seed=3, rows=12)
    found = loss.prox(v, step, y)
    for s, start, target in zip(found, v, y, strict=True):
        width = 1.1 * abs(s - start) + 0.1
        grid = np.linspace(start - width, start + width, 20_001)

        def cost(points, start=start, target=target):
            return loss.value(points, np.full_like(points, target)) + (points - start) ** 2 / (2 * step)

        costs = cost(grid)
        assert cost(np.array([s]))[0] <= costs.min() + 1e-14 * (1 + abs(costs.min()))


@having("prox")
@pytest.mark.parametrize("step", [1e-3, 0.3, 7.0, 1e4])
@pytest.mark.parametrize("spread", [1.0, 100.0])
def test_prox_satisfies_its_optimality_condition(loss, step, spread):
    # s = prox(v) means that (v - s) / step is a slope at s: Fenchel-Young holds with equality.
    v, y = draw(loss, seed=4, rows=500, spread=spread)
    s = loss.prox(v, step, y)
    u = (v - s) / step
    if hasattr(loss, "domain"):
        low, high = loss.domain(y)
        rounding = 1e-15 * (np.abs(v) + np.abs(s)) / step
        assert np.all((u >= low - rounding) & (u <= high + rounding))
        u = np.clip(u, low, high)
    scale = loss.value(v, y) + np.abs(s * u) + (np.abs(v) + np.abs(s)) * np.abs(s - y) / step
    np.testing.assert_array_less(loss.fenchel_young(s, u, y), 1e-14 * (1 + scale))


def test_logistic_prox_is_accurate_to_the_last_digits():
    loss = LOSSES["logistic"]
    v, y = draw(loss, seed=5, rows=2000, spread=20.0)
    for step in (1e-2, 1.0, 50.0, 1e4):
        s = loss.prox(v, step, y)
        slope = s + step * loss.gradient(s, y) - v
        # s carries its own rounding error, which the slope of the left-hand side enlarges.
        allowed = 4e-16 * (np.abs(s) * (1 + step * loss.curvature(s, y)) + np.abs(v) + step)
        assert np.all(np.abs(slope) <= allowed)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("size", [1e4, 1e8])
def test_extreme_scores_overflow_nowhere(name, size):
    loss = LOSSES[name]
    if loss.labels == "class":
        score = size * np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 1.0], [-1.0, -1.0, -1.0]])
        y = np.array([1, 0, 2])
    else:
        score = size * np.array([1.0, 1.0, -1.0, -1.0, 0.0])
        y = np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    with np.errstate(all="raise", under="ignore"):
        assert np.all(np.isfinite(loss.value(score, y)))
        for method in ("gradient", "curvature"):
            if hasattr(loss, method):
                assert np.all(np.isfinite(getattr(loss, method)(score, y)))
        if hasattr(loss, "conjugate"):
            u = loss.gradient(score, y)
            gap = loss.fenchel_young(score, u, y)
            assert np.all(gap <= 1e-15 * (1 + np.abs(loss.value(score, y)) + size))
            assert np.all(np.isfinite(loss.fenchel_young(score, 0.5 * u, y)))
        if hasattr(loss, "prox"):
            assert np.all(np.isfinite(loss.prox(score, 1.0, y)))
            assert np.all(np.isfinite(loss.prox(score, size, y)))


@pytest.mark.parametrize("name", LOSSES)
def test_float32_stays_float32(name):
    loss = LOSSES[name]
    score, y = draw(loss, rows=500)
    score = score.astype(np.float32)
    y = y if loss.labels == "class" else y.astype(np.float32)
    assert loss.value(score, y).dtype == np.float32
    for method in ("gradient", "curvature"):
        if hasattr(loss, method):
            assert getattr(loss, method)(score, y).dtype == np.float32
    if hasattr(loss, "conjugate"):
        conjugate = loss.conjugate(loss.gradient(score, y), y)
        assert conjugate.dtype == np.float32
        assert np.all(np.isfinite(conjugate))
        assert loss.fenchel_young(score, loss.gradient(score, y), y).dtype == np.float32
    if hasattr(loss, "prox"):
        s = loss.prox(score, 0.5, y)
        assert s.dtype == np.float32
        double = loss.prox(score.astype(float), 0.5, y.astype(float))
        np.testing.assert_allclose(s, double, rtol=1e-6, atol=1e-6)
