"""Binary SVMs of several classes: which there are, and that each is what it would be alone."""

import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.geometry.kernels import RBF, Sigmoid
from sixfold.solvers.kernel import decomposition, one_vs_one
from sixfold.solvers.kernel.decomposition import solve_dual
from sixfold.solvers.kernel.dual import DualProblem, certify
from sixfold.solvers.kernel.kernel_rows import KernelRows
from sixfold.solvers.kernel.one_vs_one import certify_all, fit_binary_svms, fit_svm_paths

TOL = 1e-3


@pytest.fixture(autouse=True, params=["in turn", "on threads"])
def way(request, monkeypatch):
    """One by one, in turn or on threads, with shared blocks: small ones are solved at once otherwise."""
    monkeypatch.setattr(one_vs_one, "ROWS_AT_ONCE", 0)
    monkeypatch.setattr(one_vs_one, "WORTH_SHARING", 0)
    if request.param == "on threads":
        monkeypatch.setattr(one_vs_one, "FEW_ENTRIES", 0)


def blobs(n=120, classes=4, seed=0):
    random = np.random.default_rng(seed)
    labels = np.arange(n) % classes
    centres = random.normal(size=(classes, 3)) * 2.0
    return random.normal(size=(n, 3)) + centres[labels], labels


def fitted(classes=4, strategy="ovo", budget=None, upper=None, **options):
    X, labels = blobs(classes=classes)
    rows = KernelRows(X, RBF(0.3))
    upper = np.ones(labels.size) if upper is None else upper
    budget = Budget(tol=TOL) if budget is None else budget
    return fit_binary_svms(
        rows, labels, classes, upper, strategy == "ovo", TOL, options.pop("memory", 50), budget, **options
    )


@pytest.mark.parametrize(
    ("strategy", "sides"),
    [
        ("ovo", [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]),
        ("ovr", [(0, None), (1, None), (2, None), (3, None)]),
    ],
)
def test_svms_come_in_the_order_of_their_classes(strategy, sides):
    svms = fitted(strategy=strategy)
    labels = blobs()[1]
    assert [(svm.positive, svm.negative) for svm in svms] == sides
    for svm in svms:
        own = labels[svm.problem.index]
        np.testing.assert_array_equal(svm.problem.y > 0, own == svm.positive)
        others = {svm.negative} if svm.negative is not None else set(range(4)) - {svm.positive}
        assert set(own[svm.problem.y < 0]) == others


@pytest.mark.parametrize("strategy", ["ovo", "ovr"])
def test_two_classes_are_one_svm_for_the_second(strategy):
    (svm,) = fitted(classes=2, strategy=strategy)
    assert (svm.positive, svm.negative) == (1, 0)


@pytest.mark.parametrize("strategy", ["ovo", "ovr"])
@pytest.mark.parametrize("memory", [50, 0.01, 0.001])
def test_each_svm_is_what_it_would_be_alone(monkeypatch, strategy, memory):
    monkeypatch.setattr(decomposition, "DOUBLE_ROWS", 10)  # float32, as with many rows
    X = blobs()[0]
    for svm in fitted(strategy=strategy, memory=memory):
        problem, solution = svm.problem, svm.solution
        alone = solve_dual(
            DualProblem(KernelRows(X, RBF(0.3)), problem.index, problem.y, problem.upper),
            TOL,
            1 << 26,
            Budget(),
        )
        if memory == 50:
            np.testing.assert_array_equal(solution.alpha, alone.alpha)
        exact = RBF(0.3)(X[problem.index]) @ (solution.alpha * problem.y)
        np.testing.assert_allclose(solution.scores, exact, rtol=0, atol=solution.rounding)
        assert solution.violation <= TOL
        assert solution.intercept == pytest.approx(alone.intercept, abs=5 * TOL)


@pytest.mark.parametrize("strategy", ["ovo", "ovr"])
@pytest.mark.parametrize("kilobytes", [20, 60, 80, 1000])
def test_caches_of_all_svms_stay_within_their_size(monkeypatch, strategy, kilobytes):
    caches, commons = [], []
    monkeypatch.setattr(one_vs_one, "LEAST_MEMORY", 0)
    for module, name, made in (
        (decomposition, "GramCache", caches),
        (decomposition, "WholeGram", caches),
        (one_vs_one, "ClassBlocks", commons),
    ):
        kind = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *a, kind=kind, made=made: (made.append(kind(*a)), made[-1])[1]
        )
    svms = fitted(strategy=strategy, memory=kilobytes / 1024)
    workers = min(core.threads(), len(svms))
    largest = max(getattr(cache, "_room", cache._gram).nbytes for cache in caches)
    common = sum(block.nbytes for blocks in commons for block in blocks._blocks.values())
    assert workers * largest + common <= 1024 * kilobytes
    if strategy == "ovr":  # these have no blocks in common, so all of it is theirs
        assert all(cache.memory == 1024 * kilobytes // workers for cache in caches)
    elif kilobytes == 1000:
        assert common == 4 * 8 * 30**2


def test_blocks_too_small_to_share_are_computed_for_each_pair(monkeypatch):
    shared = fitted()
    monkeypatch.setattr(one_vs_one, "WORTH_SHARING", 30**2 * 3 + 1)
    monkeypatch.setattr(one_vs_one.ClassBlocks, "fill", None)
    for one, other in zip(fitted(), shared, strict=True):
        np.testing.assert_array_equal(one.solution.alpha, other.solution.alpha)


def test_number_of_threads_does_not_change_the_result():
    several = fitted()
    before = core.limit_threads(1)
    try:
        single = fitted()
    finally:
        core.limit_threads(before)
    for one, other in zip(several, single, strict=True):
        np.testing.assert_array_equal(one.solution.alpha, other.solution.alpha)
        assert one.solution.intercept == other.solution.intercept


def test_rows_of_weight_zero_are_left_out():
    upper = np.ones(120)
    upper[::5] = 0.0
    for svm in fitted(upper=upper):
        assert (svm.problem.index % 5 != 0).all()
        assert (svm.problem.upper == 1.0).all()


def test_starts_are_used():
    cold = fitted()
    warm = fitted(starts=[svm.solution.alpha for svm in cold])
    assert all(svm.solution.iterations == 0 for svm in warm)
    for one, other in zip(cold, warm, strict=True):
        np.testing.assert_array_equal(one.solution.alpha, other.solution.alpha)


def test_certificates_add_up():
    svms = fitted()
    parts = [certify(svm.problem, svm.solution, TOL) for svm in svms]
    whole = certify_all(svms, TOL)
    assert whole.objective == pytest.approx(sum(part.objective for part in parts))
    assert whole.gap == pytest.approx(sum(part.gap for part in parts))
    assert whole.scale == pytest.approx(sum(part.scale for part in parts))
    assert whole.details["violation"] == max(svm.solution.violation for svm in svms)
    assert whole.details["machines"] == 6
    assert whole.converged


def test_certificate_of_one_svm_is_its_primal_minus_its_dual():
    (svm,) = fitted(classes=2)
    X, problem, solution = blobs(classes=2)[0], svm.problem, svm.solution
    K, ay = RBF(0.3)(X[problem.index]), solution.alpha * problem.y
    f = K @ ay + solution.intercept
    primal = 0.5 * ay @ K @ ay + problem.upper @ np.maximum(0.0, 1.0 - problem.y * f)
    dual = solution.alpha.sum() - 0.5 * ay @ K @ ay
    certificate = certify(problem, solution, TOL)
    assert certificate.objective == pytest.approx(primal, rel=1e-12)
    assert certificate.gap == pytest.approx(primal - dual, abs=1e-12 * primal)
    assert certificate.scale == 120.0  # the 60 rows of either class cost 2 each


@pytest.mark.parametrize("C", [1.0, np.inf])
def test_rounding_is_part_of_the_gap(C):
    (svm,) = fitted(classes=2, upper=np.full(120, C))
    found, rough = (
        certify(svm.problem, replace(svm.solution, rounding=rounding), TOL) for rounding in (0.0, 0.1)
    )
    more = rough.rounding - found.rounding
    assert more > 0.1
    assert rough.gap - found.gap == pytest.approx(more)


def test_callbacks_are_called_once_a_svm_by_the_main_thread():
    threads = []
    fitted(budget=Budget(tol=TOL, callbacks=[lambda record: threads.append(threading.current_thread())]))
    assert threads == 6 * [threading.main_thread()]


def test_callback_that_returns_true_leaves_feasible_svms():
    budget = Budget(tol=TOL, callbacks=[lambda record: True])
    svms = fitted(budget=budget)
    assert budget.stopped_by == "a callback"
    assert len(svms) == 6
    for svm in svms:
        assert abs(svm.solution.alpha @ svm.problem.y) < 1e-12


def test_interrupt_ends_all_svms():
    budget = Budget(tol=TOL)
    budget.flag[0] = 1
    svms = fitted(budget=budget)
    assert budget.stopped_by == "Ctrl-C"
    assert not any(svm.solution.alpha.any() for svm in svms)
    assert not certify_all(svms, TOL).converged


def test_time_limit_is_that_of_all_svms():
    budget = Budget(tol=TOL, time_limit=0.0)
    svms = fitted(budget=budget)
    assert budget.stopped_by == "time_limit=0 s"
    assert not any(svm.solution.alpha.any() for svm in svms)


def test_most_iterations_are_those_of_each_svm():
    budget = Budget(tol=TOL)
    svms = fitted(budget=budget, most_iterations=3)
    assert budget.stopped_by == "max_iter=3"
    assert [svm.solution.iterations for svm in svms] == 6 * [3]


def test_failure_in_a_thread_reaches_the_caller(monkeypatch):
    def broken(*arguments, **options):
        raise MemoryError("no room")

    monkeypatch.setattr(KernelRows, "block", broken)
    monkeypatch.setattr(KernelRows, "gram", broken)
    with pytest.raises(MemoryError, match="no room"):
        fitted()


def test_failure_of_one_svm_ends_the_others(monkeypatch):
    monkeypatch.setattr(one_vs_one, "FEW_ENTRIES", 0)
    monkeypatch.setattr(core, "threads", lambda: 2)
    waiting, told = threading.Event(), []

    def solve(problem, tol, memory, budget, *rest):
        if {0, 1} <= set(problem.index):  # the SVM of classes 0 and 1 goes on until it is told
            waiting.set()
            end = time.monotonic() + 10.0
            while not budget.exhausted() and time.monotonic() < end:
                time.sleep(0.001)
            told.append(budget.stopped_by)
        waiting.wait(10.0)
        raise MemoryError("no room")

    monkeypatch.setattr(one_vs_one, "solve_dual", solve)
    with pytest.raises(MemoryError, match="no room"):
        fitted(classes=3)
    assert told == ["Ctrl-C"]


# -- several C at once -------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["ovo", "ovr"])
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("workers", [1, 2])
def test_paths_are_the_fits_of_each_cost(monkeypatch, strategy, classes, workers):
    monkeypatch.setattr(one_vs_one, "FEW_ENTRIES", 0 if workers > 1 else np.inf)
    X, labels = blobs(classes=classes)
    costs = [0.1, 1.0, 1.0, 1e4, 1e5]
    weight = np.where(np.arange(labels.size) % 7 == 0, 0.0, 1.0 + np.arange(labels.size) % 3)
    paths = fit_svm_paths(
        KernelRows(X, RBF(0.3)),
        labels,
        classes,
        [cost * weight for cost in costs],
        strategy == "ovo",
        TOL,
        50,
    )
    assert len(paths) == len(costs)
    for cost, svms in zip(costs, paths, strict=True):
        alone = fitted(classes=classes, strategy=strategy, upper=cost * weight)
        for svm, other in zip(svms, alone, strict=True):
            assert (svm.positive, svm.negative) == (other.positive, other.negative)
            np.testing.assert_array_equal(svm.problem.upper, other.problem.upper)
            np.testing.assert_array_equal(svm.problem.index, other.problem.index)
            assert svm.certificate.converged
            if cost == costs[0]:
                np.testing.assert_allclose(svm.solution.alpha, other.solution.alpha, rtol=1e-9, atol=1e-12)
            assert svm.solution.intercept == pytest.approx(other.solution.intercept, abs=5 * TOL)
            apart = abs(svm.certificate.objective - other.certificate.objective)
            assert apart <= max(svm.certificate.gap, other.certificate.gap)


def test_a_solution_that_stays_optimal_is_kept():
    X, labels = blobs(classes=2)
    upper = [np.full(labels.size, cost) for cost in (1e5, 1e6, 1e7)]
    first, second, third = (
        svms[0] for svms in fit_svm_paths(KernelRows(X, RBF(2.0)), labels, 2, upper, True, TOL, 50)
    )
    assert first.solution.iterations > 0
    assert second.solution.iterations == third.solution.iterations == 0
    np.testing.assert_array_equal(third.solution.alpha, first.solution.alpha)
    assert third.certificate.scale == pytest.approx(100.0 * first.certificate.scale)


def test_where_the_intercept_is_open_each_cost_takes_a_path_of_its_own():
    # As many rows on either side, all at their bound: every intercept between two limits is optimal.
    X, labels = blobs(classes=2)
    upper = [np.full(labels.size, cost) for cost in (1e-4, 1e-3, 1e-2)]
    paths = fit_svm_paths(KernelRows(X, RBF(0.3)), labels, 2, upper, True, TOL, 50)
    for cost, (svm,) in zip(upper, paths, strict=True):
        (alone,) = fitted(classes=2, upper=cost)
        assert (alone.solution.alpha == cost).all()
        np.testing.assert_array_equal(svm.solution.alpha, alone.solution.alpha)
        assert svm.solution.intercept == pytest.approx(alone.solution.intercept, rel=1e-12)
        assert svm.solution.iterations == alone.solution.iterations


def test_indefinite_kernels_start_at_zero_for_each_cost(monkeypatch):
    starts = []
    whole = one_vs_one.solve_dual

    def solve(*given, start=None, **options):
        starts.append(start)
        return whole(*given, start=start, **options)

    monkeypatch.setattr(one_vs_one, "solve_dual", solve)
    X, labels = blobs(classes=2)
    upper = [np.full(labels.size, cost) for cost in (0.1, 0.1)]
    for kernel in (Sigmoid(0.1, -1.0), RBF(0.3)):
        fit_svm_paths(KernelRows(X, kernel), labels, 2, upper, True, TOL, 50)
    assert [start is None for start in starts] == [True, True, True, False]


def test_a_flag_ends_all_paths():
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(600, 3)), rng.integers(0, 3, 600)
    upper = [np.full(600, C) for C in (1.0, 100.0)]
    flag = np.ones(1, dtype=np.int32)
    paths = fit_svm_paths(KernelRows(X, RBF(1.0)), labels, 3, upper, True, TOL, 50, flag)
    assert {svm.stopped_by for svms in paths for svm in svms} == {"Ctrl-C"}
    assert not certify_all(paths[-1], TOL).converged
