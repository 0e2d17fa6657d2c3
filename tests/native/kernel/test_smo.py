"""Sequential minimal optimisation, against LIBSVM's loop in NumPy and an interior-point method."""

import signal
import threading

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from oracles import kernel as oracle
from sixfold._native import core

EVER = 2**62


def solve(gram, y, upper, tolerance=1e-3, most_iterations=EVER, start=None, seconds_left=np.inf, flag=None):
    """Return alpha, gradient and what core.smo returns, from a = 0 or from `start`."""
    alpha = np.zeros(y.size) if start is None else start.copy()
    gradient = oracle.dual_gradient(gram, y, alpha)
    flag = np.zeros(1, dtype=np.int32) if flag is None else flag
    found = core.smo(gram, y, upper, alpha, gradient, tolerance, most_iterations, seconds_left, flag)
    return alpha, gradient, found


def rbf(X, gamma):
    return np.exp(-gamma * np.square(X[:, None] - X[None]).sum(axis=2))


def made_up(rows, seed, columns=3, kernel="rbf", noise=0.3):
    """Return the Gram and labels of rows that overlap a little."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    y = np.where(X[:, 0] + noise * rng.normal(size=rows) > 0, 1.0, -1.0)
    return (rbf(X, 1.0) if kernel == "rbf" else X @ X.T), y


def has_both(y):
    return np.unique(y).size == 2


@st.composite
def problems(draw, most=40):
    """Draw a Gram of either type with ties, duplicates and any scale, labels, and bounds a row."""
    rows = draw(st.integers(1, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(rows, draw(st.integers(1, 4))))
    if draw(st.booleans()):
        X = np.round(X)  # duplicates and equal distances
    scale = 10.0 ** draw(st.integers(-2, 2))
    gram = scale * (rbf(X, 0.5) if draw(st.booleans()) else X @ X.T)
    y = np.where(rng.random(rows) < draw(st.sampled_from([0.2, 0.5])), 1.0, -1.0)
    upper = 10.0 ** draw(st.integers(-2, 2)) / scale * np.where(rng.random(rows) < 0.3, rng.random(rows), 1.0)
    return gram.astype(draw(st.sampled_from([np.float64, np.float32]))), y, upper + 1e-9


@given(problems())
@settings(max_examples=150, deadline=None)
def test_the_path_is_that_of_libsvm(problem):
    gram, y, upper = problem
    most = 40  # rounding has not yet had time to part paths that choose between equals
    expected = oracle.smo(gram, y, upper, most_iterations=most)
    alpha, gradient, (iterations, violation, completed, _) = solve(gram, y, upper, most_iterations=most)
    assert iterations == expected.iterations
    assert completed
    np.testing.assert_allclose(alpha, expected.alpha, rtol=1e-12, atol=1e-14 * upper.max())
    np.testing.assert_allclose(gradient, expected.gradient, rtol=1e-12, atol=1e-12)
    assert violation == pytest.approx(expected.violation, rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("rows", [1, 2, 63, 64, 65, 127, 200])
def test_a_whole_run_is_that_of_libsvm_bit_by_bit(rows, dtype):
    gram, y = made_up(rows, seed=rows)
    gram, upper = gram.astype(dtype), np.full(rows, 2.0)
    expected = oracle.smo(gram, y, upper)
    alpha, gradient, (iterations, violation, _, _) = solve(gram, y, upper)
    assert iterations == expected.iterations
    assert violation == expected.violation
    np.testing.assert_array_equal(alpha, expected.alpha)
    np.testing.assert_array_equal(gradient, expected.gradient)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("kernel", "bound"), [("linear", 1.0), ("rbf", 10.0)])
def test_rows_left_out_on_the_way_are_caught_up_with(kernel, bound, dtype):
    # Rows are left out from 1,000 iterations on.
    gram, y = made_up(500, seed=6, kernel=kernel, columns=6 if kernel == "linear" else 3, noise=1.0)
    gram, upper = gram.astype(dtype), np.full(500, bound)
    expected = oracle.smo(gram, y, upper, 1e-4)
    alpha, gradient, (iterations, violation, _, _) = solve(gram, y, upper, 1e-4)
    assert iterations > 1500
    assert violation <= 1e-4
    assert violation == pytest.approx(oracle.violation(y, upper, alpha, gradient), abs=1e-12)
    np.testing.assert_allclose(gradient, oracle.dual_gradient(gram, y, alpha), atol=1e-11 * alpha.sum())
    best = oracle.dual_value(gram, y, expected.alpha)
    assert oracle.dual_value(gram, y, alpha) == pytest.approx(best, rel=1e-6)


def test_equal_rows_are_taken_from_the_last():
    gram, y, upper = np.eye(200), np.repeat([1.0, -1.0], 100), np.ones(200)
    alpha, _, _ = solve(gram, y, upper, most_iterations=1)
    np.testing.assert_array_equal(np.flatnonzero(alpha), [99, 199])


@pytest.mark.parametrize("distance", [1e-3, 0.3, 2.0, 1e3])
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_the_oracle_knows_the_hard_margin_of_two_rows_and_that_of_rows_in_line(distance, size):
    # |w| is 2 / distance, so that D = 2 / distance^2; rows further out change nothing.
    for x in ([0.0, 1.0], [-3.0, 0.0, 1.0, 2.0, 7.0]):
        X, y = size * distance * np.array(x), np.where(np.array(x) > 0, 1.0, -1.0)
        gram, upper = np.outer(X, X), np.full(y.size, np.inf)
        alpha = oracle.quadratic_program(gram, y, upper)
        assert oracle.dual_value(gram, y, alpha) == pytest.approx(2.0 / (size * distance) ** 2, rel=1e-9)
    with pytest.raises(AssertionError, match="the oracle ended with a gap"):
        oracle.quadratic_program(gram, -y * np.array([1, -1, 1, -1, 1]), upper)


@given(problems(most=20), st.sampled_from([1e-6, 1e-10]))
@settings(max_examples=60, deadline=None)
def test_the_objective_is_that_of_an_interior_point_method(problem, tolerance):
    gram, y, upper = problem
    gram = gram.astype(np.float64)
    alpha, gradient, (_, violation, _, _) = solve(gram, y, upper, tolerance, most_iterations=20_000)
    assume(violation <= tolerance)
    best = oracle.dual_value(gram, y, oracle.quadratic_program(gram, y, upper))
    # By concavity D* - D <= violation * sum of the largest moves of either class.
    moves = min(upper[y > 0].sum(), upper[y < 0].sum())
    assert abs(oracle.dual_value(gram, y, alpha) - best) <= tolerance * moves + 1e-7 * best + 1e-12
    np.testing.assert_allclose(gradient, oracle.dual_gradient(gram, y, alpha), atol=1e-9)


@given(problems(), st.integers(0, 60))
@settings(max_examples=100, deadline=None)
def test_the_point_is_feasible_wherever_it_stops(problem, most):
    gram, y, upper = problem
    alpha, gradient, (iterations, violation, _, _) = solve(gram, y, upper, most_iterations=most)
    assert iterations <= most
    assert (alpha >= 0).all()
    assert (alpha <= upper).all()
    assert abs(alpha @ y) <= 1e-12 * upper.sum()
    assert violation == pytest.approx(oracle.violation(y, upper, alpha, gradient), abs=1e-9)


def test_rows_without_upper_bound_reach_the_widest_margin():
    # Points -1 and +1 on a line, and two that lie further out: w = 1, so a = 1/2 each and |w|^2 / 2 = 1/2.
    x = np.array([-3.0, -1.0, 1.0, 2.0])
    alpha, _, (_, violation, _, indefinite) = solve(np.outer(x, x), np.sign(x), np.full(4, np.inf), 1e-12)
    np.testing.assert_allclose(alpha, [0.0, 0.5, 0.5, 0.0], atol=1e-12)
    assert violation <= 1e-12
    assert not indefinite


def test_rows_of_the_gram_may_lie_apart():
    gram, y = made_up(70, seed=1)
    wide = np.full((70, 100), np.nan)
    wide[:, :70] = gram
    upper = np.ones(70)
    for expected, found in zip(solve(gram, y, upper)[:2], solve(wide[:, :70], y, upper)[:2], strict=True):
        np.testing.assert_array_equal(found, expected)


def test_the_gradient_carries_what_fixed_rows_outside_contribute():
    gram, y = made_up(90, seed=2)
    inside, outside, upper = slice(0, 60), slice(60, 90), np.ones(90)
    whole = solve(gram, y, upper, tolerance=1e-9)[0]
    alpha = np.where(np.arange(90) < 60, 0.0, whole)
    # The rows outside keep their share of sum a y, so those inside start from a point that balances it.
    start = alpha.copy()
    start[inside] = whole[inside]
    gradient = oracle.dual_gradient(gram, y, start)[inside]
    part = start[inside].copy()
    core.smo(
        gram[inside, inside], y[inside], upper[inside], part, gradient, 1e-6, EVER, np.inf, np.zeros(1, "i4")
    )
    np.testing.assert_allclose(part, whole[inside], atol=1e-6)
    assert whole[outside].any()


def test_indefinite_pairs_are_reported_and_rounding_is_not():
    y, upper = np.array([1.0, -1.0, 1.0]), np.ones(3)
    indefinite = np.array([[1.0, 2.0, 2.0], [2.0, 1.0, 2.0], [2.0, 2.0, 1.0]])
    assert solve(indefinite, y, upper)[2][3]
    same = np.ones((3, 3), dtype=np.float32)
    same[0, 1] = same[1, 0] = np.nextafter(np.float32(1.0), np.float32(2.0))
    alpha, _, found = solve(same, y, upper)
    assert not found[3]
    assert alpha.sum() == 2.0


def test_rounding_ends_it_where_the_tolerance_cannot_be_reached():
    gram, y = made_up(60, seed=3)
    _, _, (iterations, violation, completed, _) = solve(
        gram, y, np.full(60, 10.0), 0.0, most_iterations=10**6
    )
    assert completed
    assert iterations < 10**6
    assert violation < 1e-10


def test_no_time_leaves_the_point_where_it_was():
    gram, y = made_up(60, seed=4)
    alpha, _, (iterations, violation, completed, _) = solve(gram, y, np.ones(60), seconds_left=-1.0)
    assert not completed
    assert iterations == 0
    assert violation == 2.0
    assert not alpha.any()


def test_control_c_ends_it_with_a_feasible_point():
    gram, y = made_up(400, seed=5, kernel="linear", columns=8)
    flag, upper = np.zeros(1, dtype=np.int32), np.full(400, 1e9)
    before = signal.signal(signal.SIGINT, lambda *_: flag.__setitem__(0, 1))
    timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
    try:
        timer.start()
        alpha, gradient, (_, _, completed, _) = solve(gram, y, upper, 0.0, flag=flag)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert not completed
    assert (alpha >= 0).all()
    assert abs(alpha @ y) <= 1e-9 * alpha.sum()
    np.testing.assert_allclose(gradient, oracle.dual_gradient(gram, y, alpha), atol=1e-8 * alpha.sum())


@pytest.mark.parametrize("broken", ["gram", "upper", "alpha", "gradient"])
def test_sizes_that_do_not_fit_are_refused(broken):
    arrays = {
        "gram": np.eye(3),
        "y": np.ones(3),
        "upper": np.ones(3),
        "alpha": np.zeros(3),
        "gradient": np.zeros(3),
    }
    arrays[broken] = arrays[broken][:2]
    with pytest.raises(ValueError, match=r"one entry a row|one row and column"):
        core.smo(
            **arrays, tolerance=1e-3, most_iterations=1, seconds_left=1.0, flag=np.zeros(1, dtype=np.int32)
        )


def test_a_gram_by_columns_is_refused():
    with pytest.raises(ValueError, match="must follow each other"):
        core.smo(
            np.eye(6)[:3, ::2],
            np.ones(3),
            np.ones(3),
            np.zeros(3),
            np.zeros(3),
            1e-3,
            1,
            1.0,
            np.zeros(1, "i4"),
        )
