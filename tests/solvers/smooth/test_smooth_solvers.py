"""Newton, L-BFGS and Newton-CG minimise smooth problems, whatever the data, and stop when told to."""

import os
import signal
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from sixfold import LinearSVC
from sixfold.budget import Budget
from sixfold.risk.losses import LOSSES
from sixfold.solvers.base import choose, climb, ladder
from sixfold.solvers.registry import all_solvers
from sixfold.solvers.smooth import newton
from sixfold.solvers.smooth.descent import line_search
from sixfold.solvers.smooth.lbfgs import LBFGS
from sixfold.solvers.smooth.newton import Newton
from sixfold.solvers.smooth.newton_cg import NewtonCG
from sixfold.solvers.smooth.objective import LinearObjective
from sixfold.solvers.smooth.softmax_objective import SoftmaxObjective
from sixfold.solvers.threads import thread_limit
from solvers.problems import blocks, problem, solve

SOLVERS = [Newton(), LBFGS(), NewtonCG()]
LINEAR = ("logistic", "squared_hinge", "cubed", "squared")
PAIRS = [
    (solver, loss)
    for solver in SOLVERS
    for loss in (*LINEAR, "softmax")
    if not solver.objection(problem(loss))
]
PAIR_IDS = [f"{solver.name}-{loss}" for solver, loss in PAIRS]
each_pair = pytest.mark.parametrize(("solver", "loss"), PAIRS, ids=PAIR_IDS)


def table(loss, rows=120, columns=5, seed=0, classes=3):
    """Return X and targets that no plane separates."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    s = X @ rng.normal(size=(columns, classes)) + 0.3 * np.arange(classes)
    if LOSSES[loss].labels == "class":
        return X, (s + 2.0 * rng.gumbel(size=s.shape)).argmax(axis=1).astype(float)
    noisy = s[:, 0] + 2.0 * rng.normal(size=rows)
    return X, noisy if LOSSES[loss].labels == "real" else np.where(noisy > 0, 1.0, -1.0)


def least_objective(stated, data):
    """Return the least objective, found by SciPy on plain NumPy formulas in standardised columns."""
    X = np.vstack([np.asarray(b.X.toarray() if sp.issparse(b.X) else b.X, dtype=float) for b in data])
    Y = np.vstack([b.y for b in data]).astype(float)
    q = np.concatenate([np.ones(b.y.shape[0]) if b.weight is None else b.weight for b in data])
    q = q / q.sum()
    scale = X.std(axis=0) + (X.std(axis=0) == 0)
    mean = X.mean(axis=0) if stated.fit_intercept else 0.0
    Z = np.column_stack([(X - mean) / scale, np.full(q.size, float(stated.fit_intercept))])
    scores = stated.n_scores(data)

    def objective(flat, y, width):
        theta = flat.reshape(-1, width)
        s = Z @ theta if width > 1 else (Z @ theta)[:, 0]
        w = theta[:-1] / scale[:, None]
        r = stated.loss.gradient(s, y).reshape(q.size, width)
        slope = Z.T @ (q[:, None] * r)
        slope[:-1] += stated.l2 * w / scale[:, None]
        return q @ stated.loss.value(s, y) + 0.5 * stated.l2 * np.square(w).sum(), slope.ravel()

    targets = [(Y[:, 0], scores)] if stated.loss.labels == "class" else [(y, 1) for y in Y.T]
    options = {"maxiter": 10_000, "maxfun": 100_000, "ftol": 0.0, "gtol": 1e-12, "maxls": 60}
    least = 0.0
    for y, width in targets:
        start = np.zeros(Z.shape[1] * width)
        found = minimize(
            objective, start, (y, width), jac=True, method="L-BFGS-B", options=options | {"maxcor": 30}
        )
        least += found.fun
    return least


def check(solver, stated, data, tol=1e-9, certified=True):
    """Solve, and compare the objective with the least one; return the solution."""
    found, budget = solve(solver, stated, data, tol=tol, max_iter=20_000)
    scale = found.certificate.scale
    assert found.certificate.objective == pytest.approx(stated.objective(found.w, found.b, data), rel=1e-12)
    assert found.certificate.objective <= least_objective(stated, data) + 10.0 * tol * scale + 1e-11 * scale
    assert budget.stopped_by is None
    if certified:
        assert found.certificate.converged
    if not stated.fit_intercept:
        assert not found.b.any()
    return found


@st.composite
def stated_problems(draw):
    """Draw a problem with a penalty and a table with ties, weights, zero weights and constant columns."""
    solver, loss = draw(st.sampled_from(PAIRS))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(1, 40)), draw(st.integers(1, 8))
    X = rng.normal(size=(n, d)) if draw(st.booleans()) else rng.integers(-1, 2, size=(n, d)).astype(float)
    X[:, 0] *= draw(st.sampled_from([1.0, 0.0, 1e-8, 1e8]))
    if LOSSES[loss].labels == "class":
        y = rng.integers(0, 3, size=n).astype(float)
        y[0] = 2.0
    elif LOSSES[loss].labels == "sign":
        y = rng.choice([-1.0, 1.0], size=n)
    else:
        y = rng.normal(size=n)
    weight = None if draw(st.booleans()) else rng.integers(0, 3, size=n).astype(float)
    if weight is not None:
        weight[0] = 1.0
    X = sp.csr_array(X) if draw(st.booleans()) else np.asarray(X, order=draw(st.sampled_from("CF")))
    alpha, intercept = draw(st.sampled_from([1e-3, 0.1, 10.0])), draw(st.booleans())
    rows = draw(st.sampled_from([None, 7]))
    return solver, problem(loss, "l2", alpha, fit_intercept=intercept), blocks(X, y, weight, rows)


@given(stated_problems())
@settings(max_examples=60, deadline=None)
def test_any_penalised_problem_is_solved_and_certified(case):
    check(*case, tol=1e-8)


@each_pair
@pytest.mark.parametrize("intercept", [True, False])
def test_without_penalty_the_objective_is_the_least(solver, loss, intercept):
    X, y = table(loss)
    check(solver, problem(loss, fit_intercept=intercept), blocks(X, y), certified=False)


@each_pair
@pytest.mark.parametrize("alpha", [1e-12, 1e-3, 1.0])
@pytest.mark.parametrize("kind", ["scales", "means", "collinear"])
def test_scales_means_and_dependent_columns_do_not_matter(solver, loss, alpha, kind):
    if kind != "scales" and alpha < 1e-3 and solver.name != "newton":
        return  # ill-conditioned beyond what vectors alone resolve; "auto" takes Newton here
    X, y = table(loss)
    if kind == "scales":
        X = X * np.geomspace(1e-6, 1e6, X.shape[1])
    elif kind == "means":
        X = X + np.array([1e4, -1e3, 0.0, 1e2, 10.0])
    else:
        X = np.column_stack([X, X[:, 0] - 2.0 * X[:, 1], X[:, 0], np.full(X.shape[0], 0.1)])
    check(solver, problem(loss, "l2", alpha), blocks(X, y), tol=1e-6)


@each_pair
def test_weights_count_like_copies_and_rows_of_weight_zero_not_at_all(solver, loss):
    X, y = table(loss, rows=60)
    weight = np.random.default_rng(3).integers(0, 3, size=60).astype(float)
    stated = problem(loss, "l2", 0.01)
    X[weight == 0] = 1e5  # whatever they hold
    weighted = solve(solver, stated, blocks(X, y, weight), tol=1e-12)[0]
    copies = np.repeat(np.arange(60), weight.astype(int))
    repeated = solve(solver, stated, blocks(X[copies], y[copies]), tol=1e-12)[0]
    np.testing.assert_allclose(weighted.w, repeated.w, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(weighted.b, repeated.b, rtol=1e-5, atol=1e-6)


@each_pair
def test_sparse_dense_and_cut_tables_give_one_answer(solver, loss):
    X, y = table(loss, rows=90)
    X[np.abs(X) < 0.7] = 0.0
    stated = problem(loss, "l2", 0.01)
    expected = solve(solver, stated, blocks(X, y), tol=1e-12)[0]
    for other in (sp.csr_array(X), np.asfortranarray(X)):
        for rows in (None, 17):
            found = solve(solver, stated, blocks(other, y, None, rows), tol=1e-12)[0]
            np.testing.assert_allclose(found.w, expected.w, rtol=1e-4, atol=1e-5)


@each_pair
def test_float32_is_certified_as_it_is_kept(solver, loss):
    X, y = table(loss)
    stated = problem(loss, "l2", 0.01)
    found = solve(solver, stated, blocks(X.astype(np.float32), y.astype(np.float32)))[0]
    np.testing.assert_array_equal(found.w, found.w.astype(np.float32))
    assert found.certificate.converged


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: solver.name)
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_several_targets_are_solved_as_one_by_one(solver, loss):
    X, _ = table(loss)
    Y = np.column_stack([table(loss, seed=seed)[1] for seed in (0, 1, 2)])
    stated = problem(loss, "l2", 0.01)
    together = solve(solver, stated, blocks(X, Y), tol=1e-10)[0]
    assert together.certificate.converged
    for k in range(3):
        alone = solve(solver, stated, blocks(X, Y[:, k]), tol=1e-10)[0]
        np.testing.assert_allclose(together.w[:, k], alone.w[:, 0], rtol=1e-3, atol=1e-4)


def test_softmax_without_penalty_adds_up_to_zero_over_the_classes():
    X, y = table("softmax")
    found = check(Newton(), problem("softmax"), blocks(X, y), certified=False)
    np.testing.assert_allclose(found.w.sum(axis=1), 0.0, atol=1e-10)
    np.testing.assert_allclose(found.b.sum(), 0.0, atol=1e-10)


def test_a_large_table_starts_from_a_sample_and_a_misleading_sample_does_no_harm():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40_000, 3))
    y = np.where(X @ [1.0, -1.0, 0.5] + rng.logistic(size=40_000) > 0, 1.0, -1.0)
    stated = problem("logistic", "l2", 1e-4)
    assert check(Newton(), stated, blocks(X, y), tol=1e-8).n_iter <= 5
    y[::20] = -y[::20]  # 20 = 40,000 rows over the 2,000 of the sample: all of them are wrong
    check(Newton(), stated, blocks(X, y), tol=1e-8)


def test_scores_settle_unless_a_plane_separates():
    X, y = table("logistic")
    assert solve(Newton(), problem("logistic"), blocks(X, y))[0].last_move < 0.1
    apart = solve(Newton(), problem("logistic"), blocks(X, np.where(X[:, 0] > 0, 1.0, -1.0)))[0]
    assert apart.last_move > 0.5
    assert apart.certificate.objective < 1e-5


def test_a_rounded_model_with_next_to_no_penalty_is_certified():
    """The slopes at coefficients in single precision balance no penalty of 1e-12 by themselves."""
    X, y = table("logistic")
    data = blocks(X.astype(np.float32), y.astype(np.float32))
    stated = problem("logistic", "l2", 1e-12)
    found = solve(Newton(), stated, data)[0]
    assert found.certificate.converged
    assert stated.gap(found.w, found.b, data) > 1e-6 * found.certificate.scale


@each_pair
def test_the_number_of_threads_does_not_change_a_bit(solver, loss):
    X, y = table(loss, rows=9000, columns=20)
    stated = problem(loss, "l2", 0.01)
    with thread_limit(1):
        alone = solve(solver, stated, blocks(X, y))[0]
    with thread_limit(2):
        together = solve(solver, stated, blocks(X, y))[0]
    np.testing.assert_array_equal(alone.w, together.w)


@pytest.fixture(scope="module")
def endless():
    """Return tables that no solver finishes to a tolerance of nothing before its time is up."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 300))
    return X, {
        "logistic": np.where(X[:, 0] + rng.normal(size=100_000) > 0, 1.0, -1.0),
        "softmax": rng.integers(0, 20, size=100_000).astype(float),
    }


STOPPED = [(Newton(), "logistic"), (LBFGS(), "softmax"), (LBFGS(), "logistic"), (NewtonCG(), "logistic")]


@pytest.mark.parametrize(("solver", "loss"), STOPPED, ids=lambda part: getattr(part, "name", part))
def test_ctrl_c_keeps_the_best_model_so_far(solver, loss, endless):
    X, y = endless
    with Budget(tol=0.0, time_limit=60.0) as budget:
        timer = threading.Timer(0.15, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        found = solver.solve(problem(loss, "l2", 1e-9), blocks(X, y[loss]), budget)
        timer.join()
        assert budget.interrupted
    assert np.isfinite(found.w).all()
    assert found.certificate.objective <= found.certificate.scale * (1.0 + 1e-12)  # 0 steps: rounding


@pytest.mark.parametrize(("solver", "loss"), STOPPED, ids=lambda part: getattr(part, "name", part))
def test_no_time_at_all_leaves_the_constant_model(solver, loss, endless):
    X, y = endless
    found, budget = solve(solver, problem(loss, "l2", 1e-3), blocks(X[:500], y[loss][:500]), time_limit=0.0)
    assert budget.stopped_by == "time_limit=0 s"
    assert not found.w.any()
    assert found.certificate.objective == pytest.approx(found.certificate.scale)


@each_pair
def test_max_iter_is_honoured(solver, loss):
    X, y = table(loss)
    found, budget = solve(solver, problem(loss, "l2", 1e-4), blocks(X, y), tol=0.0, max_iter=2)
    assert found.n_iter == len(budget.history) == 2
    assert budget.stopped_by == "max_iter=2"


@each_pair
def test_a_tolerance_of_nothing_ends_at_rounding(solver, loss):
    X, y = table(loss)
    found, budget = solve(solver, problem(loss, "l2", 0.1), blocks(X, y), tol=0.0, max_iter=2000)
    assert budget.stopped_by is None
    assert found.certificate.relative_gap < 1e-13


def chosen(loss, X, y, penalty="l2"):
    return choose("auto", problem(loss, penalty, 0.1), blocks(X, y), all_solvers()).name


def test_auto_chooses_by_shape():
    tall, sign, classes = np.zeros((50, 5)), np.resize([1.0, -1.0], 50), np.resize([0.0, 1.0, 2.0], 50)
    wide = sp.csr_array((50, 100_000))
    assert chosen("logistic", tall, sign) == "newton"
    assert chosen("squared_hinge", tall, sign) == "newton"
    assert chosen("softmax", tall, classes) == "newton"
    assert chosen("softmax", np.zeros((50, 200)), classes) == "lbfgs"
    assert chosen("logistic", wide, sign) == "newton-cg"
    assert chosen("softmax", wide, classes) == "lbfgs"
    assert chosen("squared_hinge", wide, sign) == "dual_coordinate"
    few = sp.csr_array((5000, 200))
    assert chosen("squared_hinge", few, np.resize(sign, 5000)) == "newton-cg"
    assert chosen("logistic", few, np.resize(sign, 5000)) == "newton-cg"
    assert chosen("logistic", few, np.resize(sign, 5000), None) == "newton"


def test_sparse_rows_end_where_factors_would_cost_less():
    """Products with a badly conditioned table go on for ever: Newton's method takes over."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 300)) * (rng.random((600, 300)) < 0.02)
    X[:, 1:] += 100.0 * X[:, :1]
    X, y = sp.csr_array(X * np.logspace(-4, 4, 300)), np.where(rng.random(600) < 0.5, 1.0, -1.0)
    asked = problem("logistic", "l2", 1e-9)
    budget = Budget(tol=1e-6, max_iter=1000)
    rungs = ladder("auto", asked, blocks(X, y), all_solvers())
    assert [rung.name for rung in rungs[:2]] == ["newton-cg", "newton"]
    found = climb(rungs, asked, blocks(X, y), budget)
    assert found.certificate.converged
    assert "then Newton" in found.solver


@pytest.mark.parametrize("C", [1.0, 1e2, 1e4, 1e8])
def test_squared_hinge_of_more_words_than_texts(C):
    """At C = 1e4 conjugate gradients took 70 s for five classes; one multiplier at a time takes 20 ms."""
    rng = np.random.default_rng(0)
    X = sp.random_array((300, 3000), density=0.02, rng=rng, format="csr")
    y = np.asarray(X @ rng.normal(size=3000) > 0).astype(int)
    model = LinearSVC(C=C).fit(X, y)
    assert model.certificate_.converged
    assert model.solver_ == "dual coordinate descent"
    model.certificate_.verify(X, y)


def test_a_loss_or_penalty_with_kinks_is_refused():
    for solver in SOLVERS:
        assert "kinks" in solver.objection(problem("hinge"))
        assert "kinks" in solver.objection(problem("logistic", "l1", 1.0))


@each_pair
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
def test_values_that_cannot_be_summed_are_noticed(solver, loss, value):
    X, y = table(loss)
    X[77, 2] = value
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError):
        solve(solver, problem(loss, "l2", 0.01), blocks(X, y))


# -- conjugate gradients before the factor ----------------------------------------------------------------


@pytest.mark.parametrize(("spread", "factored"), [(0.0, False), (3.0, True)])
def test_products_come_first_and_the_factor_where_they_are_too_many(spread, factored, monkeypatch):
    rng = np.random.default_rng(0)
    turned = np.linalg.qr(rng.normal(size=(240, 240)))[0]
    X = rng.normal(size=(250, 240)) * 10.0 ** np.linspace(0, spread, 240) @ turned
    y = rng.choice([-1.0, 1.0], 250)
    factors, descend = [], newton._descend
    monkeypatch.setattr(newton, "_descend", lambda *given: factors.append(1) or descend(*given))
    found = solve(Newton(), problem("logistic", "l2", 1e-3), blocks(X, y))[0]
    assert found.certificate.converged
    assert bool(factors) == factored


@pytest.mark.parametrize(("step", "taken"), [(0.0005, True), (0.003, False)])
def test_a_last_step_that_brings_a_long_row_into_the_margin_is_not_taken(step, taken):
    # 1 - w and 1 + 1000 w are what the rows are short of the margin: the second is outside below -0.001.
    data = blocks(np.array([[1.0], [1000.0]]), np.array([1.0, -1.0]))
    stated = problem("squared_hinge", "l2", 1e-3, fit_intercept=False)
    objective = LinearObjective(stated, data, Budget(), np.zeros(1), 1.0)
    point = objective.at(np.array([[-0.002], [0.0]]))
    end = newton._with_last_step(objective, point, np.array([[step], [0.0]]))
    assert end.theta[0, 0] == (-0.002 + step if taken else -0.002)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_a_line_search_of_a_softmax_asks_for_no_point_twice(kind, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 5)), rng.integers(0, 3, 40).astype(float)
    objective = SoftmaxObjective(
        problem("softmax", "l2", 1e-2), blocks(kind(X), y), Budget(), np.zeros(5), 1.0
    )
    seen, sweep = [], SoftmaxObjective._sweep

    def noted(self, w, b, **extra):
        seen.append((w.tobytes(), b.tobytes()))
        return sweep(self, w, b, **extra)

    monkeypatch.setattr(SoftmaxObjective, "_sweep", noted)
    point = objective.at(objective.start())
    step = -50.0 * point.slope  # far too long
    end = line_search(objective, point, step, -float(np.vdot(point.slope, step)), False)
    assert end.value < point.value
    assert len(seen) > 3
    assert len(seen) == len(set(seen))
    fresh = SoftmaxObjective(objective.problem, objective.blocks, Budget(), np.zeros(5), 1.0).at(end.theta)
    assert fresh.value == end.value
    np.testing.assert_array_equal(fresh.slope, end.slope)
