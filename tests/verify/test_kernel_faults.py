"""Faults in the solver's own figures: each makes a certificate claim what is not so, and the checker tells.

A fault is put into one computation of :mod:`sixfold.solvers.kernel` at a time, and a model is fitted with it.
"""

import dataclasses

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, make_classification

from sixfold import SVC
from sixfold.errors import CertificateError
from sixfold.solvers.kernel import decomposition, dual, kernel_rows, one_vs_one

SOFT = {}
HARD = {"C": np.inf, "gamma": 1.0}
SINGLE = {"C": 100.0}  # with many rows: scores in float32


def table(classes=2, rows=80):
    X, y = make_classification(
        n_samples=rows, n_features=6, n_informative=4, n_classes=classes, flip_y=0.1, random_state=0
    )
    return X, y


def changed(module, name, change):
    """Return a fault: what a function of a module returns is changed by ``change``."""
    original = getattr(module, name)
    return lambda patch: patch.setattr(module, name, lambda *a, **k: change(original(*a, **k)))


def in_optimality(**factors):
    """Return a fault in every figure of a point: those named are multiplied."""

    def change(state):
        return state._replace(**{name: factor * getattr(state, name) for name, factor in factors.items()})

    return lambda patch: [changed(module, "optimality", change)(patch) for module in (dual, decomposition)]


def moved_intercept(patch):
    patch.setattr(dual.DualSolution, "intercept", property(lambda solution: solution.state.intercept + 0.01))


def wrong_scores(patch):
    def move_all(self, alpha, order, gram, original=dual.DualScores.move_all):
        original(self, alpha, order, gram)
        self.scores *= 1.01

    patch.setattr(dual.DualScores, "move_all", move_all)


def scores_that_do_not_follow(patch):
    patch.setattr(dual.DualScores, "_change", lambda self, rows, *_: np.zeros(rows.size))


def gram_of_another_width(patch):
    original = kernel_rows.KernelRows.gram

    def gram(self, rows, dtype, budget, out=None):
        values = original(self, rows, dtype, budget, out)
        np.power(values, 1.01, out=values)
        return values

    patch.setattr(kernel_rows.KernelRows, "gram", gram)


def no_rounding_of_scores(patch):
    patch.setattr(dual.DualScores, "_error", lambda self, dtype, change: 0.0)
    patch.setattr(dual, "_soft_rounding", lambda problem, solution, small: 0.0)


def unbalanced(patch):
    def snap(y, upper, alpha, rest=0.0):
        return np.where(y > 0, 0.99, 1.0) * alpha

    patch.setattr(decomposition, "snap", snap)


def beyond_bounds(patch):
    patch.setattr(decomposition, "snap", lambda y, upper, alpha, rest=0.0: 1.5 * alpha)


def wrong_scale(patch):
    original = dual.DualBox.__init__

    def init(self, y, upper):
        original(self, y, upper)
        self.constant_objective *= 10.0

    patch.setattr(dual.DualBox, "__init__", init)


def violation_of_nothing(patch):
    patch.setattr(dual.Optimality, "violation", property(lambda state: 0.0))


FAULTS = {
    "half the gap": (in_optimality(gap=0.5), [SOFT, HARD]),
    "no gap": (in_optimality(gap=0.0), [SOFT, HARD]),
    "a smaller objective": (in_optimality(primal=0.999), [SOFT, HARD]),
    "a larger objective": (in_optimality(primal=1.001), [SOFT, HARD]),
    "a larger scale": (wrong_scale, [SOFT]),
    "no violation": (violation_of_nothing, [SOFT, HARD]),
    "a smaller violation": (in_optimality(highest=0.0, lowest=0.0), [SOFT, HARD]),
    "rounding that takes the gap away": (changed(dual, "_soft_rounding", lambda r: r - 0.01), [SOFT]),
    "rounding of a hard margin that does": (changed(dual, "_hard_rounding", lambda r: -0.001), [HARD]),
    "a hard margin without gap": (changed(dual, "_hard_gap", lambda found: (0.0, found[1])), [HARD]),
    "a hard margin's smaller objective": (
        changed(dual, "_hard_gap", lambda found: (found[0], 0.9 * found[1])),
        [HARD],
    ),
    "another intercept": (moved_intercept, [SOFT, HARD]),
    "scores that are off": (wrong_scores, [SOFT, HARD]),
    "kernel values that are off": (gram_of_another_width, [SOFT, HARD]),
    "classes out of balance": (unbalanced, [SOFT, HARD]),
    "multipliers beyond their bounds": (beyond_bounds, [SOFT]),
}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    ("name", "parameters"),
    [(name, parameters) for name, (_, cases) in FAULTS.items() for parameters in cases],
    ids=lambda value: value if isinstance(value, str) else "hard" if value else "soft",
)
@pytest.mark.filterwarnings("ignore::sixfold.errors.StoppedEarly")
def test_a_fault_of_the_solver_is_told(name, parameters, classes, monkeypatch):
    X, y = table(classes)
    SVC(**parameters).fit(X, y).certificate_.verify(X, y)
    monkeypatch.setattr(one_vs_one, "ROWS_AT_ONCE", 0)  # one by one, as large ones
    FAULTS[name][0](monkeypatch)
    model = SVC(**parameters).fit(X, y)
    monkeypatch.undo()
    with pytest.raises(CertificateError):
        model.certificate_.verify(X, y)


def small_states(**factors):
    """Return what multiplies figures of SVMs that were solved at once."""

    def change(flat):
        states = flat.states.copy()
        for name, factor in factors.items():
            states[dual.Optimality._fields.index(name)] *= factor
        return dataclasses.replace(flat, states=states)

    return change


SMALL_FAULTS = {
    "half the gap": small_states(gap=0.5),
    "a smaller objective": small_states(primal=0.999),
    "a larger objective": small_states(primal=1.001),
    "a larger scale": small_states(scale=10.0),
    "a smaller violation": small_states(highest=0.0, lowest=0.0),
    "another intercept": small_states(intercept=1.01),
    "multipliers that are off": lambda flat: dataclasses.replace(flat, alpha=0.99 * flat.alpha),
    "rounding that takes the gap away": lambda flat: dataclasses.replace(flat, lost=flat.lost - 0.01),
}


@pytest.mark.parametrize("name", SMALL_FAULTS)
def test_a_fault_of_svms_that_are_solved_at_once_is_told(name, monkeypatch):
    X, y = table(3)
    changed(one_vs_one, "solve_small_svms", SMALL_FAULTS[name])(monkeypatch)
    model = SVC().fit(X, y)
    monkeypatch.undo()
    with pytest.raises(CertificateError):
        model.certificate_.verify(X, y)


@pytest.mark.parametrize(
    "fault", [no_rounding_of_scores, scores_that_do_not_follow], ids=["no rounding", "stale scores"]
)
@pytest.mark.filterwarnings("ignore::sixfold.errors.StoppedEarly")
def test_a_fault_of_scores_in_single_precision_is_told(fault, monkeypatch):
    X, y = make_classification(n_samples=5000, n_features=20, n_informative=10, random_state=0)
    model = SVC(**SINGLE).fit(X, y)
    assert model.certificate_.details["rounding"] > 1e-9
    model.certificate_.verify(X, y)
    fault(monkeypatch)
    model = SVC(**SINGLE).fit(X, y)
    monkeypatch.undo()
    with pytest.raises(CertificateError):
        model.certificate_.verify(X, y)


def test_a_matrix_that_is_called_definite_and_is_not_is_told(monkeypatch):
    rng = np.random.default_rng(0)
    K = rng.uniform(-0.45, 0.45, size=(30, 30))
    K = K + K.T
    np.fill_diagonal(K, 1.0)
    y = np.arange(30) % 2
    monkeypatch.setattr(decomposition, "definite_when_balanced", lambda gram: True)
    model = SVC(kernel="precomputed", C=10.0).fit(K, y)
    assert model.certificate_.kind == "duality gap"
    with pytest.raises(CertificateError, match="not positive semi-definite"):
        model.certificate_.verify(K, y)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("objective", lambda value: 0.99 * value),
        ("gap", lambda value: 0.1 * value),
        ("scale", lambda value: 2.0 * value),
    ],
)
def test_a_fault_in_the_sum_over_all_svms_is_told(name, change, monkeypatch):
    from sixfold.learners.svm import svc

    X, y = table(3)
    original = svc.certify_all

    def faulty(svms, tol):
        whole = original(svms, tol)
        return dataclasses.replace(whole, **{name: change(getattr(whole, name))})

    monkeypatch.setattr(svc, "certify_all", faulty)
    with pytest.raises(CertificateError):
        SVC().fit(X, y).certificate_.verify(X, y)


CLAIMS = {
    "scale": lambda one: {"scale": 1e6 * one.scale},
    "scale, a little": lambda one: {"scale": (1 + 1e-6) * one.scale},
    "objective": lambda one: {"objective": 1.001 * one.objective},
    "objective and gap": lambda one: {"objective": 2.0 * one.objective, "gap": 1e9},
}


@pytest.mark.parametrize("name", CLAIMS)
@pytest.mark.parametrize("classes", [2, 3])
def test_rounding_that_nothing_explains_excuses_nothing(name, classes):
    X, y = table(classes)
    model = SVC(tol=1e-9).fit(X, y)
    claimed = dataclasses.replace(model.certificate_, rounding=1e9)
    claimed.verify(X, y)
    with pytest.raises(CertificateError):
        dataclasses.replace(claimed, **CLAIMS[name](claimed)).verify(X, y)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.filterwarnings("ignore::sixfold.errors.StoppedEarly")
def test_rounding_of_scores_that_nothing_explains_excuses_nothing(classes):
    X, y = table(classes)
    model = SVC(max_iter=20).fit(X, y)
    model._score_rounding, claimed = 1e9, dataclasses.replace(model.certificate_, rounding=1e9)
    claimed.verify(X, y)
    violation, model._violation = model._violation, 0.0
    with pytest.raises(CertificateError, match="violate optimality by more than 0, but on these data"):
        claimed.verify(X, y)
    model._violation, model.intercept_ = violation, model.intercept_ + 0.1
    with pytest.raises(CertificateError):
        claimed.verify(X, y)


@pytest.mark.parametrize("factor", [0.999, 1.001])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_an_intercept_that_is_off_by_a_thousandth_is_told(kernel, classes, factor):
    X, y = table(classes)
    model = SVC(kernel=kernel).fit(X, y)
    model.certificate_.verify(X, y)
    model.intercept_ = factor * model.intercept_
    with pytest.raises(CertificateError):
        model.certificate_.verify(X, y)


@pytest.mark.parametrize("factor", [0.999, 1.001])
def test_an_intercept_is_told_where_the_objective_is_flat_in_it(factor):
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = SVC(kernel="linear").fit(X, y)
    model.certificate_.verify(X, y)
    model.intercept_ = factor * model.intercept_
    with pytest.raises(CertificateError, match="The intercept is"):
        model.certificate_.verify(X, y)
