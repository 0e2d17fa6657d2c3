"""Every penalty of the registry, free or with w >= 0, keeps the same promises."""

import numpy as np
import pytest

from sixfold.errors import InputError
from sixfold.risk.penalties import PENALTIES, make_penalty

# name: (value, subgradient, prox with step 2) of w = (1, -2, 0), with l1_ratio = 1/4
W = np.array([1.0, -2.0, 0.0])
BY_HAND = {
    None: (0.0, (0.0, 0.0, 0.0), (1.0, -2.0, 0.0)),
    "l2": (2.5, (1.0, -2.0, 0.0), (1 / 3, -2 / 3, 0.0)),  # (1 + 4) / 2; w / (1 + 2)
    "l1": (3.0, (1.0, -1.0, 0.0), (0.0, 0.0, 0.0)),  # 1 + 2; |w| <= 2 is cut to nothing
    # 3/4 + 3/4 * 5/2; sign / 4 + 3/4 w; (|w| - 1/2) / (1 + 3/2)
    "elasticnet": (2.625, (1.0, -1.75, 0.0), (0.2, -0.6, 0.0)),
}
EVERY = [
    pytest.param(make_penalty(name, 0.25, positive), id=f"{name}{'-positive' * positive}")
    for name in PENALTIES
    for positive in (False, True)
]


def every_penalty(test):
    return pytest.mark.parametrize("penalty", EVERY)(test)


def draw(penalty, seed=0, size=50):
    w = 2 * np.random.default_rng(seed).standard_normal(size)
    return np.abs(w) if penalty.positive else w


def conjugate_grid(penalty, v):
    """The supremum of v w - penalty(w) for one entry, on a grid wide enough for |v| <= 3."""
    grid = np.linspace(0.0 if penalty.positive else -20.0, 20.0, 2001)
    return max(v * w - penalty.value(np.array([w])) for w in grid)


def test_every_penalty_is_worked_out_by_hand():
    assert BY_HAND.keys() == set(PENALTIES)


@pytest.mark.parametrize("name", PENALTIES)
def test_values_agree_with_those_worked_out_by_hand(name):
    value, slope, prox = BY_HAND[name]
    free, positive = make_penalty(name, 0.25), make_penalty(name, 0.25, positive=True)
    assert free.value(W) == value
    assert positive.value(np.abs(W)) == value
    assert positive.value(W) == np.inf
    np.testing.assert_allclose(free.subgradient(W), slope, rtol=1e-15)
    np.testing.assert_allclose(free.prox(W, 2.0), prox, rtol=1e-15, atol=0)
    np.testing.assert_allclose(positive.prox(W, 2.0), np.maximum(prox, 0.0), rtol=1e-15, atol=0)


def test_conjugates_worked_out_by_hand():
    v = np.array([2.0, -3.0])
    assert make_penalty("l2").conjugate(v) == 6.5  # (4 + 9) / 2
    assert make_penalty("l2", positive=True).conjugate(v) == 2.0  # 4 / 2
    # ((2 - 1/2)^2 + (3 - 1/2)^2) / (2 * 1/2)
    assert make_penalty("elasticnet", 0.5).conjugate(v) == 8.5
    assert make_penalty("l1").conjugate(np.array([1.0, -1.0])) == 0.0
    assert make_penalty("l1").conjugate(np.array([1.0, -1.1])) == np.inf
    assert make_penalty("l1", positive=True).conjugate(np.array([1.0, -1.1])) == 0.0
    assert make_penalty(None).conjugate(np.zeros(2)) == 0.0
    assert make_penalty(None).conjugate(np.array([0.0, -1.0])) == np.inf
    assert make_penalty(None, positive=True).conjugate(np.array([0.0, -1.0])) == 0.0


@every_penalty
def test_subgradient_is_the_slope_of_the_value(penalty):
    for entry in draw(penalty)[:20]:
        up, down = (penalty.value(np.array([entry + h])) for h in (1e-6, -1e-6))
        slope = penalty.subgradient(np.array([entry]))[0]
        np.testing.assert_allclose(slope, (up - down) / 2e-6, rtol=1e-7, atol=1e-8)


@every_penalty
def test_conjugate_is_the_supremum_on_a_grid(penalty):
    for v in (-3.0, -0.9, -0.2, 0.0, 0.2, 0.9, 3.0):
        conjugate = penalty.conjugate(np.array([v]))
        brute = conjugate_grid(penalty, v)
        if conjugate == np.inf:
            assert brute >= 0.2 * 20 - 1e-9  # it grows with the grid
        else:
            assert brute - 1e-12 <= conjugate <= brute + 1e-4


@every_penalty
@pytest.mark.parametrize("step", [0.1, 1.0, 30.0])
def test_prox_is_the_brute_force_minimiser(penalty, step):
    for v in (-3.0, -0.3, 0.0, 0.02, 1.7):
        found = penalty.prox(np.array([v]), step)
        grid = np.linspace(0.0 if penalty.positive else -4.0, 4.0, 801)
        costs = [penalty.value(np.array([w])) + (w - v) ** 2 / (2 * step) for w in grid]
        cost = penalty.value(found) + (found[0] - v) ** 2 / (2 * step)
        assert cost <= min(costs) + 1e-12
        assert abs(found[0] - grid[np.argmin(costs)]) <= 1e-2


@every_penalty
def test_fenchel_young_is_value_plus_conjugate_minus_product(penalty):
    rng = np.random.default_rng(1)
    for seed in range(20):
        w = draw(penalty, seed)
        v = 2 * rng.standard_normal(w.size)
        v = v * penalty.feasible_fraction(v)
        excess = penalty.value(w) + penalty.conjugate(v) - w @ v
        assert excess >= -1e-12
        np.testing.assert_allclose(penalty.fenchel_young(w, v), excess, rtol=1e-12, atol=1e-12)


@every_penalty
def test_fenchel_young_is_zero_at_a_slope(penalty):
    w = draw(penalty)
    w[::3] = 0.0
    v = penalty.subgradient(w)
    # At zero every entry up to the factor of the absolute values is a slope.
    v[::3] = 0.9 * penalty.l1
    assert penalty.fenchel_young(w, v) <= 1e-14


@every_penalty
def test_fenchel_young_is_infinite_where_the_conjugate_is(penalty):
    v = np.array([5.0])
    assert np.isinf(penalty.fenchel_young(np.array([1.0]), v)) == np.isinf(penalty.conjugate(v))


@every_penalty
def test_feasible_fraction_is_the_largest(penalty):
    for seed in range(20):
        v = 2 * np.random.default_rng(seed).standard_normal(3)
        t = penalty.feasible_fraction(v)
        assert 0.0 <= t <= 1.0
        assert penalty.conjugate(t * v) < np.inf
        if t < 1.0:
            assert penalty.conjugate((t + 1e-6) * v) == np.inf


@every_penalty
def test_feasible_fraction_of_nothing_is_one(penalty):
    assert penalty.feasible_fraction(np.zeros(3)) == 1.0
    assert penalty.feasible_fraction(np.zeros(0)) == 1.0


@pytest.mark.parametrize(("ratio", "name"), [(0.0, "l2"), (1.0, "l1")])
@pytest.mark.parametrize("positive", [False, True])
def test_elastic_net_ends_are_the_other_penalties(ratio, name, positive):
    net, end = make_penalty("elasticnet", ratio, positive), make_penalty(name, positive=positive)
    w, v = draw(end), 0.4 * draw(make_penalty("l2"), 1)
    assert net.value(w) == end.value(w)
    assert net.conjugate(v) == end.conjugate(v)
    np.testing.assert_array_equal(net.prox(v, 0.3), end.prox(v, 0.3))
    assert net.quadratic == end.quadratic


@every_penalty
def test_quadratic_means_a_linear_slope_without_constraint(penalty):
    w = np.array([0.5, 2.0, 3.0])
    linear = np.allclose(penalty.subgradient(2 * w), 2 * penalty.subgradient(w))
    assert penalty.quadratic == (linear and penalty.value(-w) < np.inf)


@every_penalty
def test_float32_stays_float32(penalty):
    w = draw(penalty).astype(np.float32)
    assert penalty.prox(w, 0.5).dtype == np.float32
    assert penalty.subgradient(w).dtype == np.float32


def test_an_unknown_penalty_is_refused_with_the_nearest_name():
    with pytest.raises(
        InputError,
        match=r"penalty='elastic' is not an option; did you mean 'elasticnet'\? "
        r"The options are None, 'l2', 'l1', 'elasticnet'\.",
    ):
        make_penalty("elastic")


@pytest.mark.parametrize("ratio", [-0.1, 1.5, float("nan")])
def test_a_ratio_outside_0_to_1_is_refused(ratio):
    with pytest.raises(InputError, match=rf"l1_ratio={ratio} is outside 0 to 1\. 0 is the l2"):
        make_penalty("elasticnet", ratio)


def test_the_ratio_counts_for_elastic_net_only():
    assert make_penalty("l1", 0.3) == make_penalty("l1", 0.9)
    assert make_penalty("l2", 7.0) == make_penalty("l2")
