"""Support vector machines by interior point and by dual coordinate descent: answers, certificates, limits."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize
from sklearn.datasets import load_svmlight_file
from sklearn.svm import SVC

import pmlb
from sixfold._native import core
from sixfold.budget import Budget
from sixfold.errors import IncompatibleError
from sixfold.solvers.base import choose
from sixfold.solvers.margin.dual_coordinate import DualCoordinate
from sixfold.solvers.margin.interior_point import InteriorPoint
from sixfold.solvers.margin.small_path import SmallHinges
from sixfold.solvers.margin.support_vectors import margins, support
from sixfold.solvers.registry import all_solvers
from sixfold.solvers.smooth.newton import Newton
from sixfold.solvers.threads import thread_limit
from solvers.problems import blocks, problem, solve

HEART = pmlb.BESIDE / "heart_scale"
SOLVERS = [InteriorPoint(), DualCoordinate()]
both = pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: solver.name)


def overlapping(n, d, *, seed=0, shift=0.5):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    X = rng.standard_normal((n, d))
    X[:, 0] += shift * y
    return X, y


def dual_optimum(X, y, q, l2, intercept, squared=False):
    """Return the largest dual value by a general optimiser: a lower bound that no objective is below."""
    signed = X * y[:, None]
    gram = signed @ signed.T / l2 + (np.diag(1.0 / q) if squared else 0.0)

    def value(a):
        return 0.5 * a @ gram @ a - a.sum(), gram @ a - 1.0

    balance = [{"type": "eq", "fun": lambda a: a @ y, "jac": lambda a: y}] if intercept else []
    bounds = [(0.0, None if squared else top) for top in q]
    limits = {"bounds": bounds, "constraints": balance, "options": {"maxiter": 500, "ftol": 1e-14}}
    found = minimize(value, np.zeros(len(y)), jac=True, method="SLSQP", **limits)
    return -found.fun


# -- the answer -------------------------------------------------------------------------------


@both
@pytest.mark.skipif(not HEART.exists(), reason="the LIBSVM data set is not part of the repository")
def test_heart_scale_has_the_published_dual_objective_and_support_vectors(solver):
    X, y = load_svmlight_file(str(HEART))
    n = len(y)
    found, _ = solve(solver, problem("hinge", "l2", 1 / n), blocks(X.toarray(), y), tol=1e-8)
    a = -found.dual[:, 0] * y
    # LIBSVM's tutorial output: obj = -92.473356, rho = 1.050690, nSV = 101, all at its tolerance of 1e-3.
    assert a.sum() - 0.5 * np.square(found.w).sum() == pytest.approx(92.473356, abs=3e-5)
    assert abs(found.b[0]) == pytest.approx(1.050690, abs=2e-3)
    assert np.count_nonzero(a > 0) == 101
    peer = SVC(kernel="linear", tol=1e-10).fit(X.toarray(), y)
    np.testing.assert_allclose(found.w[:, 0], peer.coef_[0], atol=1e-3)


@pytest.mark.skipif(not HEART.exists(), reason="the LIBSVM data set is not part of the repository")
def test_stiff_weights_leave_the_vertex_its_last_digits(monkeypatch):
    monkeypatch.setattr(SmallHinges, "of", lambda *arguments: None)  # whose vertex is found elsewhere
    X, y = load_svmlight_file(str(HEART))
    found, _ = solve(InteriorPoint(), problem("hinge", "l2", 1 / len(y)), blocks(X.toarray(), y), tol=1e-8)
    # With weights that stay stiff it was 1e-11 or 3e-10, by processor, and the vertex was refused.
    assert found.certificate.gap <= 1e-12


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
@both
def test_equals_libsvm(solver, C, weighted):
    X, y = overlapping(80, 4)
    weight = np.random.default_rng(1).integers(0, 4, 80).astype(float) if weighted else None
    total = 80.0 if weight is None else weight.sum()
    found, _ = solve(solver, problem("hinge", "l2", 1 / (C * total)), blocks(X, y, weight), tol=1e-9)
    peer = SVC(kernel="linear", C=C, tol=1e-12).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(found.w[:, 0], peer.coef_[0], atol=1e-3 * np.abs(peer.coef_).max())
    assert found.certificate.converged


@given(
    n=st.integers(2, 14),
    d=st.integers(1, 6),
    seed=st.integers(0, 10_000),
    power=st.integers(-2, 2),
    intercept=st.booleans(),
    grid=st.booleans(),
    squared=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_objective_is_that_of_a_general_optimiser(n, d, seed, power, intercept, grid, squared):
    rng = np.random.default_rng(seed)
    # Integers make ties, duplicate rows and columns that are constant.
    X = rng.integers(-1, 2, (n, d)).astype(float) if grid else rng.standard_normal((n, d))
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    weight = rng.integers(0, 3, n).astype(float)
    weight[rng.integers(n)] = 1.0
    l2 = 10.0**power
    stated = problem("squared_hinge" if squared else "hinge", "l2", l2, fit_intercept=intercept)
    counted = weight > 0
    bound = dual_optimum(X[counted], y[counted], (weight / weight.sum())[counted], l2, intercept, squared)
    for solver in SOLVERS[1:] if squared else SOLVERS:
        found, _ = solve(solver, stated, blocks(X, y, weight), tol=1e-9, max_iter=3000)
        assert found.certificate.objective == pytest.approx(bound, abs=2e-7)
        assert found.certificate.converged


@given(
    seed=st.integers(0, 10_000),
    power=st.integers(-6, 6),
    scales=st.booleans(),
    far=st.booleans(),
    duplicates=st.booleans(),
    single=st.booleans(),
    layout=st.sampled_from(["C", "F", "csr"]),
)
@settings(max_examples=60, deadline=None)
# The step after the one that was good enough loses all its digits.
@example(seed=293, power=3, scales=True, far=False, duplicates=True, single=True, layout="C")
def test_the_interior_point_certifies_any_penalty_scale_and_layout(
    seed, power, scales, far, duplicates, single, layout
):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 50)), int(rng.integers(1, 9))
    X = rng.standard_normal((n, d))
    X *= 10.0 ** rng.uniform(-6, 6, d) if scales else 1.0
    X += 10.0 ** rng.uniform(0, 6, d) if far and layout != "csr" and not scales else 0.0
    y = np.where(rng.random(n) < 0.3, 1.0, -1.0)
    if single:
        y[:] = -1.0
        y[0] = 1.0
    if duplicates:
        X, y = np.vstack([X, X]), np.concatenate([y, y])
        X[:, -1] = X[:, 0]
    X = sp.csr_array(X) if layout == "csr" else np.asarray(X, order=layout)
    found, _ = solve(InteriorPoint(), problem("hinge", "l2", 10.0**power / len(y)), blocks(X, y))
    assert found.certificate.converged


def test_multipliers_are_exactly_at_their_ends_off_the_margin():
    X, y = overlapping(3000, 12)
    found, _ = solve(InteriorPoint(), problem("hinge", "l2", 1 / 3000), blocks(X, y))
    a = -found.dual[:, 0] * y
    margin = y * (X @ found.w[:, 0] + found.b[0])
    between = (a > 0) & (a < 1)
    assert 1 <= np.count_nonzero(between) <= 13
    np.testing.assert_allclose(margin[between], 1.0, atol=1e-9)
    assert (margin[a == 0] >= 1.0 - 1e-9).all()
    assert (margin[a == 1] <= 1.0 + 1e-9).all()
    assert found.certificate.relative_gap <= 1e-12


def test_a_tiny_penalty_on_separable_data_gives_the_largest_margin():
    # The nearest points of the hulls are (1, 1) and (3, 2): the plane halves the way between them.
    X = np.array([[1.0, 1.0], [0.0, 0.0], [1.0, -3.0], [3.0, 2.0], [4.0, 5.0], [7.0, 2.0]])
    y = np.array([-1.0, -1.0, -1.0, 1.0, 1.0, 1.0])
    found, _ = solve(InteriorPoint(), problem("hinge", "l2", 1e-9), blocks(X, y))
    np.testing.assert_allclose(found.w[:, 0], [0.8, 0.4], atol=1e-6)
    np.testing.assert_allclose(found.b, [-2.2], atol=1e-6)


def test_without_penalty_the_least_hinge_loss_is_found():
    X, y = overlapping(60, 2)
    found, _ = solve(InteriorPoint(), problem("hinge"), blocks(X, y))
    # As a linear program in (w, b, slacks): y (w.x + b) + slack >= 1.
    rows = np.hstack([-y[:, None] * np.column_stack([X, np.ones(60)]), -np.eye(60)])
    free = [(None, None)] * 3 + [(0.0, None)] * 60
    best = linprog(np.r_[np.zeros(3), np.full(60, 1 / 60)], A_ub=rows, b_ub=-np.ones(60), bounds=free)
    assert found.certificate.objective == pytest.approx(best.fun, abs=1e-9)


# -- one problem, told differently -------------------------------------------------------------


@both
def test_several_targets_are_solved_as_if_alone(solver):
    X, y = overlapping(120, 5)
    other = np.where(X[:, 1] > 0.3, 1.0, -1.0)
    stated = problem("hinge", "l2", 0.01)
    together, budget = solve(solver, stated, blocks(X, np.column_stack([y, other])), tol=1e-9)
    alone = [solve(solver, stated, blocks(X, target), tol=1e-9)[0] for target in (y, other)]
    np.testing.assert_allclose(together.w, np.hstack([found.w for found in alone]), atol=1e-4)
    total = sum(found.certificate.objective for found in alone)
    assert together.certificate.objective == pytest.approx(total, rel=1e-8)
    assert budget.history[-1].objective == pytest.approx(total, rel=1e-6)


@both
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sparse_rows_are_dense_rows(solver, index):
    X, y = overlapping(150, 6)
    X[np.random.default_rng(2).random(X.shape) < 0.7] = 0.0
    table = sp.csr_array(X)
    table.indices, table.indptr = table.indices.astype(index), table.indptr.astype(index)
    stated = problem("hinge", "l2", 0.01)
    dense, _ = solve(solver, stated, blocks(X, y), tol=1e-10)
    sparse, _ = solve(solver, stated, blocks(table, y), tol=1e-10)
    np.testing.assert_allclose(sparse.w, dense.w, atol=1e-4)


@both
def test_a_weight_is_a_row_that_is_there_more_often(solver):
    X, y = overlapping(60, 3)
    weight = np.random.default_rng(3).integers(0, 4, 60)
    stated = problem("hinge", "l2", 0.02)
    weighted, _ = solve(solver, stated, blocks(X, y, weight.astype(float)), tol=1e-10)
    repeated, _ = solve(solver, stated, blocks(np.repeat(X, weight, 0), np.repeat(y, weight)), tol=1e-10)
    np.testing.assert_allclose(weighted.w, repeated.w, atol=1e-4)
    assert (weighted.dual[weight == 0] == 0).all()


@both
def test_rows_of_no_weight_do_not_matter_whatever_they_hold(solver):
    X, y = overlapping(40, 3)
    weight = np.ones(40)
    weight[:5], X[:5] = 0.0, 1e6
    found, _ = solve(solver, problem("hinge", "l2", 0.1), blocks(X, y, weight), tol=1e-9)
    rest, _ = solve(solver, problem("hinge", "l2", 0.1), blocks(X[5:], y[5:]), tol=1e-9)
    np.testing.assert_allclose(found.w, rest.w, atol=1e-5)


@both
def test_blocks_of_rows_make_no_difference(solver):
    X, y = overlapping(100, 4)
    stated = problem("hinge", "l2", 0.01)
    whole, _ = solve(solver, stated, blocks(X, y), tol=1e-10)
    parts, _ = solve(solver, stated, blocks(X, y, None, 7), tol=1e-10)
    np.testing.assert_allclose(parts.w, whole.w, atol=1e-6)


@both
def test_float32_rows_are_solved_as_well_as_they_can_be_stored(solver):
    X, y = overlapping(200, 5)
    X, y = X.astype(np.float32), y.astype(np.float32)
    found, _ = solve(solver, problem("hinge", "l2", 0.01), blocks(X, y))
    assert found.certificate.converged
    assert (found.w == found.w.astype(np.float32)).all()


@both
def test_one_thread_does_the_same_as_two(solver):
    rng = np.random.default_rng(0)
    X, y = overlapping(12_000, 100)
    table = sp.csr_array(X * (rng.random(X.shape) < 0.9)) if solver.name == "dual_coordinate" else X
    stated = problem("hinge", "l2", 10.0)
    found = []
    for threads in (1, 2):
        with thread_limit(threads):
            found.append(solve(solver, stated, blocks(table, y), tol=1e-4)[0])
    assert (found[0].w == found[1].w).all()
    assert (found[0].dual == found[1].dual).all()


def test_a_large_table_has_the_optimum_that_newton_finds():
    X, y = overlapping(12_000, 100)
    stated = problem("squared_hinge", "l2", 10.0)
    found, _ = solve(DualCoordinate(), stated, blocks(X, y), tol=1e-9)
    exact, _ = solve(next(s for s in all_solvers() if s.name == "newton"), stated, blocks(X, y), tol=1e-12)
    np.testing.assert_allclose(found.w, exact.w, atol=1e-4)
    assert found.certificate.converged


def test_the_history_falls_to_the_certified_gap():
    X, y = overlapping(300, 5)
    for solver in SOLVERS:
        found, budget = solve(solver, problem("hinge", "l2", 0.01), blocks(X, y))
        gaps = [record.gap for record in budget.history]
        assert found.n_iter == len(gaps) > 1
        assert gaps[-1] <= 1e-6 < gaps[0]
        assert found.certificate.gap <= 1e-6


@both
def test_support_vectors_are_the_rows_on_or_inside_the_margin(solver):
    # By symmetry w = 1 and b = 0: rows 2 and 3 are on the margin, 1 and 4 beyond it, 0 does not count.
    X = np.array([[0.0], [-2.0], [-1.0], [1.0], [3.0]])
    y, weight = np.array([1.0, -1.0, -1.0, 1.0, 1.0]), np.array([0.0, 1.0, 1.0, 1.0, 1.0])
    data = blocks(X, y, weight, 2)
    found, _ = solve(solver, problem("hinge", "l2", 1e-3), data, tol=1e-10)
    by_multiplier = support(found.w, found.b, data, found.dual)
    by_margin = support(found.w, found.b, data)
    assert np.flatnonzero(by_multiplier).tolist() == np.flatnonzero(by_margin).tolist() == [2, 3]
    np.testing.assert_allclose(margins(found.w, found.b, data)[:, 0], [0, 2, 1, 1, 3], atol=1e-6)


# -- limits ------------------------------------------------------------------------------------


def large(solver):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60_000, 60))
    y = np.where(rng.random(60_000) < 0.5, 1.0, -1.0)
    return problem("hinge", "l2", 1e-9), blocks(sp.csr_array(X) if solver.name == "dual_coordinate" else X, y)


@both
def test_a_time_limit_ends_the_work_with_an_honest_certificate(solver):
    stated, data = large(solver)
    found, budget = solve(solver, stated, data, tol=1e-12, max_iter=None, time_limit=0.05)
    assert budget.stopped_by == "time_limit=0.05 s"
    assert not found.certificate.converged
    assert np.isfinite(found.certificate.objective)
    assert found.certificate.gap <= found.certificate.objective


@both
def test_an_iteration_limit_is_kept(solver):
    X, y = overlapping(300, 5)
    found, budget = solve(solver, problem("hinge", "l2", 1e-3), blocks(X, y), max_iter=2)
    assert len(budget.history) == found.n_iter == 2
    assert not found.certificate.converged


@both
def test_ctrl_c_ends_the_work(solver):
    stated, data = large(solver)
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begun = time.perf_counter()
    found, budget = solve(solver, stated, data, tol=1e-14, max_iter=None)
    assert budget.interrupted
    assert time.perf_counter() - begun < 30.0  # of minutes; busy machines take 7
    assert np.isfinite(found.w).all()


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize(("n", "d", "alpha"), [(300, 400, 1e-2), (300, 300, 1e-5), (400, 200, 1e-3)])
@pytest.mark.parametrize("intercept", [True, False])
def test_rows_between_their_ends_are_solved_for_together(loss, n, d, alpha, intercept):
    # Nearly all of them are; one at a time 400 x 200 rows of the hinge need 1,700 passes instead of 300.
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.05)
    y = np.where(X[:, :9].sum(axis=1) + rng.standard_normal(n) > 0, 1.0, -1.0)
    stated = problem(loss, "l2", alpha, fit_intercept=intercept)
    found, _ = solve(DualCoordinate(), stated, blocks(sp.csr_array(X), y))
    known, _ = solve(InteriorPoint() if loss == "hinge" else Newton(), stated, blocks(X, y))
    assert found.solver == "dual coordinate descent"
    assert found.certificate.converged
    assert found.certificate.lower_bound <= known.certificate.objective
    assert known.certificate.lower_bound <= found.certificate.objective


# -- choosing ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "sparse", "name"),
    [
        ((5000, 20), False, "interior_point"),
        ((50, 30), False, "interior_point"),
        ((50, 40), False, "dual_coordinate"),
        ((50, 300), False, "dual_coordinate"),
        ((20, 1500), False, "dual_coordinate"),
        ((2000, 1300), False, "interior_point"),
        ((2000, 1500), True, "dual_coordinate"),
        ((100, 5000), True, "dual_coordinate"),
    ],
)
def test_the_shape_of_the_data_decides(shape, sparse, name):
    X = sp.csr_array(shape) if sparse else np.zeros(shape)
    data = blocks(X, np.ones(shape[0]))
    assert choose("auto", problem("hinge", "l2", 0.1), data, all_solvers()).name == name


def test_dual_coordinate_descent_says_what_it_cannot_do():
    data = blocks(np.zeros((3, 2)), np.ones(3))
    with pytest.raises(IncompatibleError, match="needs the l2 penalty"):
        choose("dual_coordinate", problem("hinge", "l1", 0.1), data, all_solvers())
    with pytest.raises(IncompatibleError, match="made for the hinge"):
        choose("dual_coordinate", problem("logistic", "l2", 0.1), data, all_solvers())


def test_native_rows_check_what_they_are_given():
    X = np.zeros((3, 2))
    rows = core.dense_rows(X, np.zeros(2), 1.0)
    with pytest.raises(ValueError, match="columns \\+ 1 entries"):
        core.row_scores(rows, np.zeros(2), np.zeros(3), np.inf, Budget().flag)
    with pytest.raises(ValueError, match="one entry a column"):
        core.dense_rows(X, np.zeros(3), 1.0)
    with pytest.raises(ValueError, match="column numbers"):
        core.sparse_rows(np.ones(1), np.array([5], np.int32), np.array([0, 1], np.int32), 2, 1.0)
