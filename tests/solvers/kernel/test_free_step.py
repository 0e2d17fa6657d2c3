"""Exact steps over the free multipliers, against the bordered system, and where pairs alone take for ever."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_wine

import sixfold.solvers.kernel.free_step as module
from oracles import kernel as oracle
from sixfold._native import core
from sixfold.solvers.kernel.free_step import FreeSteps, free_step, gain, most_to_hold, nanoseconds

FLAG = np.zeros(1, dtype=np.int32)


def balanced(rng, y, upper):
    """Return feasible multipliers, about half of them at a bound."""
    alpha = upper * np.clip(rng.uniform(-0.5, 1.5, y.size), 0.0, 1.0)
    total = [alpha[y > 0].sum(), alpha[y < 0].sum()]
    return np.where(y > 0, *(alpha * (min(total) / t if t else 0.0) for t in total))


@st.composite
def points(draw):
    """Draw a Gram, often singular, labels, bounds, and a feasible point."""
    rows = draw(st.integers(1, 30))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(rows, draw(st.integers(1, 6)))) * 10.0 ** draw(st.integers(-2, 3))
    if draw(st.booleans()):
        X = np.round(X)
    distance = np.square(X[:, None] - X[None]).sum(axis=2)
    gram = X @ X.T if draw(st.booleans()) else np.exp(-distance / (distance.max() + 1.0))
    y = np.where(rng.random(rows) < 0.5, 1.0, -1.0)
    upper = np.full(rows, 10.0 ** draw(st.integers(-3, 3)))
    alpha = balanced(rng, y, upper)
    if draw(st.booleans()):
        upper = np.full(rows, np.inf)
    return gram.astype(draw(st.sampled_from([np.float64, np.float32]))), y, upper, alpha


@given(points())
@settings(max_examples=200, deadline=None)
def test_a_step_is_feasible_and_never_makes_the_objective_worse(point):
    gram, y, upper, before = point
    alpha, gradient = before.copy(), oracle.dual_gradient(gram, y, before)
    unchanged = gradient.copy()
    moved = free_step(gram, y, upper, alpha, gradient)
    assert (alpha >= 0).all()
    assert (alpha <= upper).all()
    held = (before <= 0) | (before >= upper)
    np.testing.assert_array_equal(alpha[held], before[held])
    assert abs((alpha - before) @ y) <= 1e-13 * (np.abs(alpha).sum() + np.abs(before).sum())
    size = np.abs(gram).max() * (alpha.sum() + before.sum()) + 1.0
    np.testing.assert_allclose(gradient, oracle.dual_gradient(gram, y, alpha), rtol=0, atol=1e-13 * size)
    old, new = oracle.dual_value(gram, y, before), oracle.dual_value(gram, y, alpha)
    assert new >= old - 1e-13 * size * (alpha.sum() + before.sum())
    if not moved:
        np.testing.assert_array_equal(alpha, before)
        np.testing.assert_array_equal(gradient, unchanged)


@pytest.mark.parametrize(("dtype", "even"), [(np.float64, 1e-11), (np.float32, 1e-6)])
def test_without_bounds_on_the_way_it_ends_where_the_bordered_system_says(dtype, even):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 2000))
    gram, y = (X @ X.T / 2000).astype(dtype), np.repeat([1.0, -1.0], 20)
    alpha, upper = np.full(40, 1.0), np.full(40, np.inf)
    exact = gram.astype(np.float64)
    border = np.block([[exact, np.ones((40, 1))], [np.ones((1, 40)), np.zeros((1, 1))]])
    expected = y * np.linalg.solve(border, np.append(y, 0.0))[:-1]
    assert expected.min() > 0  # no bound
    gradient = oracle.dual_gradient(gram, y, alpha)
    assert free_step(gram, y, upper, alpha, gradient)
    np.testing.assert_allclose(alpha, expected, rtol=100 * even)
    assert np.ptp(-y * gradient) <= even


def test_rows_that_meet_a_bound_stay_exactly_there_while_others_go_on():
    # A diagonal Gram: b_k = y_k - shift, cut to its range. From 0.5 each, with b = y a and sum b = 0, rows of
    # upper bound 0.6 meet it, and those with an own curvature of 1 share the rest.
    y = np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0])
    upper = np.array([0.6, 0.6, 9.0, 9.0, 9.0, 9.0])
    alpha, gram = np.full(6, 0.5), np.eye(6)
    gradient = oracle.dual_gradient(gram, y, alpha)
    assert free_step(gram, y, upper, alpha, gradient)
    expected = oracle.quadratic_program(gram, y, upper)
    np.testing.assert_array_equal(alpha[:2], [0.6, 0.6])
    np.testing.assert_allclose(alpha, expected, atol=1e-8)
    assert oracle.violation(y, upper, alpha, gradient) <= 1e-12


def test_a_straight_direction_is_followed_to_the_bound():
    # Twin rows of either class: moving both pairs up gains without end until the bound is met.
    gram, y, upper = np.ones((2, 2)), np.array([1.0, -1.0]), np.array([3.0, 2.0])
    alpha = np.array([1.0, 1.0])
    gradient = oracle.dual_gradient(gram, y, alpha)
    assert free_step(gram, y, upper, alpha, gradient)
    np.testing.assert_array_equal(alpha, [2.0, 2.0])


def test_it_stops_holding_rows_at_the_limit(monkeypatch):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(60, 2))
    gram, y, upper = x @ x.T, np.repeat([1.0, -1.0], 30), np.ones(60)
    counts = []
    for most in (5, 100):
        monkeypatch.setattr(module, "FEWEST_HELD", most)
        monkeypatch.setattr(module, "HELD_ROWS_BUDGET", 0.0)
        alpha = np.full(60, 0.5)
        assert free_step(gram, y, upper, alpha, oracle.dual_gradient(gram, y, alpha))
        counts.append(int(((alpha <= 0) | (alpha >= 1)).sum()))
    assert counts[0] <= 6 < counts[1]


@pytest.mark.parametrize("alpha", [[0.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.5, 1.0, 0.0]])
def test_without_two_free_rows_nothing_moves(alpha):
    y, alpha = np.array([1.0, -1.0, 1.0]), np.array(alpha)
    gradient = oracle.dual_gradient(np.eye(3), y, alpha)
    before = alpha.copy(), gradient.copy()
    assert not free_step(np.eye(3), y, np.ones(3), alpha, gradient)
    np.testing.assert_array_equal((alpha, gradient), before)


def test_more_rows_than_can_be_factored_are_left_to_pairs(monkeypatch):
    monkeypatch.setattr(module, "MOST_FREE", 3)
    y, alpha = np.array([1.0, -1.0, 1.0, -1.0]), np.full(4, 0.5)
    assert not free_step(np.eye(4), y, np.ones(4), alpha, oracle.dual_gradient(np.eye(4), y, alpha))


@pytest.mark.parametrize("broken", [np.nan, -1.0])
def test_a_gram_that_cannot_be_factored_moves_nothing(broken):
    gram, y, alpha = np.eye(4), np.array([1.0, -1.0, 1.0, -1.0]), np.full(4, 0.5)
    gram[1, 1] = broken
    assert not free_step(gram, y, np.ones(4), alpha, np.array([0.1, 0.2, 0.3, 0.4]))
    np.testing.assert_array_equal(alpha, 0.5)


def test_indefinite_grams_still_go_downhill():
    rng = np.random.default_rng(3)
    gram = rng.normal(size=(20, 20))
    gram = gram + gram.T + 2.0 * np.eye(20) * (1.0 + np.abs(np.diag(gram)))
    y, alpha = np.repeat([1.0, -1.0], 10), np.full(20, 0.5)
    before, gradient = oracle.dual_value(gram, y, alpha), oracle.dual_gradient(gram, y, alpha)
    assert np.linalg.eigvalsh(gram).min() < -1
    assert free_step(gram, y, np.ones(20), alpha, gradient)
    assert oracle.dual_value(gram, y, alpha) > before
    assert abs(alpha @ y) <= 1e-14


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_unscaled_columns_and_a_large_bound_converge_where_pairs_do_not(kernel):
    # LIBSVM's path alone takes 1,070,000 and 157,000 iterations for these.
    X, target = load_wine(return_X_y=True)
    y, rows = np.where(target == 1, 1.0, -1.0), target.size
    distance = np.square(X[:, None] - X[None]).sum(axis=2)
    gram, upper = (X @ X.T if kernel == "linear" else np.exp(-1e-6 * distance)), np.full(rows, 1e6)
    most = 20 * rows

    def descended(rounds, with_steps):
        alpha, gradient, violation = np.zeros(rows), np.full(rows, -1.0), np.inf
        for _ in range(rounds):
            _, violation, _, _ = core.smo(gram, y, upper, alpha, gradient, 1e-3, most, np.inf, FLAG)
            if violation <= 1e-3:
                break
            if with_steps:
                free_step(gram, y, upper, alpha, gradient)
        return violation

    assert descended(5, with_steps=True) <= 1e-3
    assert descended(40, with_steps=False) > 1e-3


# -- where they pay ------------------------------------------------------------------------------------------


def start(n=40, seed=0):
    """Return a Gram matrix and a point at which all rows are free."""
    X = np.random.default_rng(seed).normal(size=(n, 2 * n))
    gram, y, alpha = X @ X.T / n, np.repeat([1.0, -1.0], n // 2), np.full(n, 0.5)
    return gram, y, np.full(n, 10.0), alpha, oracle.dual_gradient(gram, y, alpha)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_work_fits_in_as_many_matrices_as_are_counted(dtype):
    gram, y, upper, alpha, gradient = start(600)
    gram = gram.astype(dtype)
    tracemalloc.start()
    try:
        assert free_step(gram, y, upper, alpha, gradient)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 8 * module.WORK_MATRICES * 600**2


def test_a_step_is_due_when_pairs_have_taken_as_long():
    gram, y, upper, alpha, gradient = start()
    steps = FreeSteps(1 << 30)
    steps.begin(alpha, gradient)
    half = int(0.5 * nanoseconds(40, most_to_hold(40)) / (module.PAIR_NS * 40)) + 1
    assert not steps.step(gram, y, upper, alpha, gradient, half)
    assert steps.step(gram, y, upper, alpha, gradient, half)
    assert not steps.step(gram, y, upper, alpha, gradient, half)  # that time is spent


def test_a_step_that_does_not_fit_beside_the_gram_matrix_is_not_made():
    gram, y, upper, alpha, gradient = start()
    work = 8 * module.WORK_MATRICES * 40**2
    for memory, made in ((gram.nbytes + work - 1, False), (gram.nbytes + work, True)):
        steps = FreeSteps(memory)
        steps.begin(alpha, gradient)
        assert steps.step(gram, y, upper, alpha, gradient, 10**9) is made


def test_the_next_step_waits_longer_after_one_that_gained_less_than_pairs():
    gram, y, upper, alpha, gradient = start()
    zero = np.zeros(40)
    minimum = alpha.copy(), gradient.copy()
    free_step(gram, y, upper, *minimum)
    steps = FreeSteps(1 << 30)
    for patience in (2.0, 4.0):
        steps.begin(zero, -np.ones(40))  # from where pairs gained a lot, to where nothing is left to gain
        steps.step(gram, y, upper, *minimum, 10**6)
        assert steps.patience == patience
    steps.begin(alpha, gradient)  # pairs gained nothing
    assert steps.step(gram, y, upper, alpha, gradient, 10**9)
    assert steps.patience == 1.0


@given(points())
@settings(max_examples=50, deadline=None)
def test_gain_is_the_difference_of_objectives(point):
    gram, y, _, alpha = point
    gram, new = gram.astype(np.float64), 0.3 * alpha
    found = gain(alpha, oracle.dual_gradient(gram, y, alpha), new, oracle.dual_gradient(gram, y, new))
    values = [oracle.dual_value(gram, y, each) for each in (alpha, new)]
    size = np.abs(gram).max() * alpha.sum() ** 2 + alpha.sum()
    assert found == pytest.approx(values[1] - values[0], abs=1e-13 * size)
