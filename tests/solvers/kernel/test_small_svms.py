"""SVMs that are solved at once are those that are solved one by one."""

import numpy as np
import pytest

from sixfold.budget import Budget
from sixfold.geometry.kernels.standard import RBF, Linear, Sigmoid
from sixfold.solvers.kernel import one_vs_one, small_svms
from sixfold.solvers.kernel.kernel_rows import KernelRows
from sixfold.solvers.kernel.one_vs_one import SmallSVMs, arrange, certify_all, figures_of, fit_binary_svms

TOL = 1e-3


def table(classes=4, n=90, seed=0):
    random = np.random.default_rng(seed)
    labels = random.integers(0, classes, n)
    X = random.normal(size=(n, 3)) + 2.0 * random.normal(size=(classes, 3))[labels]
    upper = np.where(np.arange(n) % 7 == 0, 0.0, 1.0 + np.arange(n) % 3)
    return X, labels, upper


def fitted(X, labels, upper, kernel, strategy="ovo", budget=None, tol=TOL, **options):
    rows = KernelRows(X, kernel, centred=True)
    budget = Budget(tol) if budget is None else budget
    classes = int(labels.max()) + 1
    return fit_binary_svms(rows, labels, classes, upper, strategy == "ovo", tol, 200, budget, **options)


@pytest.mark.parametrize("strategy", ["ovo", "ovr"])
@pytest.mark.parametrize("kernel", [RBF(0.3), Linear(), RBF(10.0)], ids=["rbf", "linear", "narrow"])
@pytest.mark.parametrize("cost", [0.01, 1.0])
def test_svms_at_once_are_those_one_by_one(strategy, kernel, cost, monkeypatch):
    X, labels, upper = table()
    budgets = Budget(TOL), Budget(TOL)
    found = fitted(X, labels, cost * upper, kernel, strategy, budgets[0])
    monkeypatch.setattr(one_vs_one, "ROWS_AT_ONCE", 0)
    alone = fitted(X, labels, cost * upper, kernel, strategy, budgets[1])
    assert isinstance(found, SmallSVMs)
    assert isinstance(alone, list)
    for one, other in zip(found, alone, strict=True):
        assert (one.positive, one.negative) == (other.positive, other.negative)
        np.testing.assert_array_equal(one.problem.index, other.problem.index)
        np.testing.assert_array_equal(one.problem.y, other.problem.y)
        np.testing.assert_allclose(one.solution.alpha, other.solution.alpha, rtol=1e-9, atol=1e-12 * cost)
        np.testing.assert_allclose(one.solution.scores, other.solution.scores, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(one.solution.state, other.solution.state, rtol=1e-8, atol=1e-10)
        assert one.solution.iterations == other.solution.iterations
        assert one.solution.rounding == pytest.approx(other.solution.rounding, rel=1e-9)
        assert one.certificate.rounding == pytest.approx(other.certificate.rounding, rel=1e-9)
    whole, parts = certify_all(found, TOL), certify_all(alone, TOL)
    assert whole.kind == parts.kind == "duality gap"
    for name in ("objective", "gap", "scale", "rounding"):
        assert getattr(whole, name) == pytest.approx(getattr(parts, name), rel=1e-8)
    assert whole.details == pytest.approx(parts.details, rel=1e-8)
    assert list(figures_of(found)[0]) == pytest.approx(figures_of(alone)[0], rel=1e-8)
    assert figures_of(found)[1] == figures_of(alone)[1]
    for record, other in zip(budgets[0].history, budgets[1].history, strict=True):
        assert record.iteration == other.iteration
        assert record.objective == pytest.approx(other.objective, rel=1e-8)
    one, other = (arrange(svms, labels, 4, strategy == "ovo") for svms in (found, alone))
    np.testing.assert_array_equal(one.support, other.support)
    np.testing.assert_allclose(one.dual_coef, other.dual_coef, rtol=1e-9, atol=1e-12 * cost)
    np.testing.assert_allclose(one.intercept, other.intercept, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    ("kernel", "cost", "options"),
    [
        (Sigmoid(0.1, 0.0), 1.0, {}),
        (RBF(0.3), np.inf, {}),
        (RBF(0.3), 1.0, {"most_iterations": 10}),
        (RBF(0.3), 1.0, {"budget": Budget(TOL, time_limit=0.0)}),
    ],
    ids=["indefinite", "hard margin", "a limit", "no time"],
)
def test_others_are_solved_one_by_one(kernel, cost, options):
    X, labels, upper = table(n=30)
    upper = np.where(upper > 0, cost, 0.0)
    assert isinstance(fitted(X, labels, upper, kernel, **options), list)


def test_what_is_not_optimal_at_the_first_go_is_solved_one_by_one():
    X, labels, upper = table(n=200)
    svms = fitted(1e3 * X, labels, 1e6 * upper, Linear(), tol=1e-9)
    assert isinstance(svms, list)


def test_what_is_not_optimal_goes_on_from_where_it_is(monkeypatch):
    X, labels, upper = table(classes=2, n=200)
    (at_once,) = fitted(X, labels, upper, RBF(0.3))
    monkeypatch.setattr(small_svms, "BEFORE_ROUNDING", 0.0)  # no gap is small enough
    (svm,) = fitted(X, labels, upper, RBF(0.3))
    assert svm.certificate.converged
    np.testing.assert_array_equal(svm.solution.alpha, at_once.solution.alpha)
    assert svm.solution.iterations == at_once.solution.iterations


def test_a_class_without_rows_that_count_is_solved_one_by_one():
    X, labels, upper = table()
    assert isinstance(fitted(X, labels, np.where(labels == 2, 0.0, upper), RBF(0.3)), list)


def test_parts_of_the_sequence_are_lists():
    svms = fitted(*table(), RBF(0.3))
    assert [svm.positive for svm in svms[1:3]] == [svm.positive for svm in list(svms)[1:3]]
    assert svms[-1].positive == svms[5].positive
    np.testing.assert_array_equal(svms[-1].solution.alpha, svms[5].solution.alpha)
