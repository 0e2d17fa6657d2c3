"""Deliberate faults in the bounds and objectives of solvers are told by ``certificate_.verify``.

Every fit is made bad on purpose, by few iterations or by coefficients that are off by a thousandth, so that
its true gap is large. Without fault its certificate passes: it is honest about it. With a fault in a solver's
own arithmetic, or in that which solvers share, the certificate claims more than is true.
"""

import importlib
import inspect
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest

from sixfold import ERMClassifier, ERMRegressor, LinearRegression, LinearSVC, LogisticRegression, Perceptron
from sixfold.errors import CertificateError, SixfoldWarning
from sixfold.solvers.registry import all_solvers

# -- data: tall and wide numbers, classes that overlap, classes that a plane separates ---------------------


def numbers(rows=80, columns=5):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns)) * np.geomspace(0.5, 2.0, columns) + 1.0
    return X, 3.0 + X @ rng.normal(size=columns) + 0.5 * rng.normal(size=rows)


def classes(count=2):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 4)) * [0.5, 1.0, 2.0, 1.0] + 1.0
    return X, (X @ rng.normal(size=(4, count)) + rng.gumbel(size=(90, count))).argmax(axis=1)


def separable():
    X, _ = classes()
    score = X @ [1.0, -2.0, 0.5, 1.0] - 0.5
    far = np.abs(score) > 0.3
    return X[far], (score > 0)[far].astype(int)


def nearly_dependent():
    X, y = numbers()
    return np.column_stack([X, X[:, 0] + 1e-5 * X[:, 1] ** 2]), y


# -- faults of a figure ------------------------------------------------------------------------------------


def half_the_gap(objective, gap, scale):
    return objective, 0.5 * gap, scale


def no_gap(objective, gap, scale):
    return objective, 0.0, scale


def lower_objective(objective, gap, scale):
    """Leave out a millionth of the losses: the objective is lower, and so is the gap."""
    return objective * (1 - 1e-6), max(gap - 1e-6 * objective, 0.0), scale


def larger_scale(objective, gap, scale):
    """Make the relative gap look small."""
    return objective, gap, 1.001 * scale


THREE = (half_the_gap, no_gap, lower_objective)
FOUR = (*THREE, larger_scale)


def in_certificate(figure):
    """Return what makes a function, or the class itself, return certificates with the fault."""

    def fault(original):
        def faulty(*given, **named):
            made = original(*given, **named)
            certificate = made[0] if isinstance(made, tuple) else made
            objective, gap, scale = figure(certificate.objective, certificate.gap, certificate.scale)
            certificate = replace(certificate, objective=objective, gap=gap, scale=scale)
            return (certificate, *made[1:]) if isinstance(made, tuple) else certificate

        return faulty

    return fault


def in_bound(figure):
    """Return what makes the bound that solvers share have the fault, for each target."""

    def fault(original):
        def faulty(*given, **named):
            found = original(*given, **named)
            gaps = np.minimum(found.objective, found.excess)
            figures = [figure(*each, 1.0)[:2] for each in zip(found.objective, gaps, strict=True)]
            objective, excess = np.array(figures).T
            return replace(found, objective=objective, excess=excess)

        return faulty

    return fault


def times(factor):
    """Return what makes a function return a multiple: of its figure, or of the first of several."""

    def fault(original):
        def faulty(*given, **named):
            found = original(*given, **named)
            return (factor * found[0], *found[1:]) if isinstance(found, tuple) else factor * found

        return faulty

    return fault


def longer(original):
    """Return what makes a function return all of a pair a hundredth longer."""
    return lambda *given: tuple(1.01 * part for part in original(*given))


def half_the_residuals(original):
    """Return what makes a function return half the second of a pair."""

    def faulty(*given):
        first, second = original(*given)
        return first, 0.5 * second

    return faulty


def wider_margin(original):
    """Return a class of certificates that doubles the margin."""

    def faulty(*given, **named):
        made = original(*given, **named)
        return replace(made, details={"margin": [2.0 * margin for margin in made.details["margin"]]})

    return faulty


def less_wrong(original):
    """Return a class of certificates that does not count the last wrong rows."""

    def faulty(*given, **named):
        made = original(*given, **named)
        return replace(made, objective=0.9 * made.objective, gap=0.9 * made.gap)

    return faulty


# -- the table ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fault:
    """A fault in one place, met by one fit.

    Attributes
    ----------
    solver : str
    place : str
        module:name of a function, or of a method wherever it is in the module.
    fault : callable
        From the function to the faulty one.
    model, data : callable
    bad : dict
        Place and change of what makes the fit bad, if not its few iterations.
    """

    solver: str
    place: str
    fault: object
    model: object
    data: object
    bad: dict

    def __str__(self):
        kind = self.fault.__qualname__.split(".")[0]
        figure = "".join(f" {cell.cell_contents}".split(" at ")[0] for cell in self.fault.__closure__ or ())
        return f"{self.solver}: {self.place} {kind}{figure}"


def short(learner, **parameters):
    return lambda: learner(**{"max_iter": 2, "tol": 1e-12, **parameters})


LS, MARGIN = "sixfold.solvers.least_squares", "sixfold.solvers.margin"
SHARED = "sixfold.risk.problem"
PLANES = "sixfold.learners.linear.separability"
OFF = {"sixfold.data.blocks:rounded": times(1.001)}

# Fits that get their certificate from what all solvers share.
THROUGH_CERTIFY = {
    "cg": (short(ERMRegressor, solver="cg", penalty="l2", alpha=1e-3, max_iter=4), numbers, {}),
    "newton": (short(ERMClassifier, solver="newton", penalty="l2", alpha=1e-3), classes, {}),
    "lbfgs": (short(ERMClassifier, solver="lbfgs", penalty="l2", alpha=1e-1, max_iter=3), classes, {}),
    "newton-cg": (short(LinearSVC, solver="newton-cg", max_iter=3), classes, {}),
    "refined-newton": (short(ERMClassifier, solver="refined-newton", penalty="l2", alpha=0.1), classes, {}),
    "rounded-newton": (
        short(ERMClassifier, solver="rounded-newton", penalty="l1", alpha=0.01, max_iter=3),
        classes,
        {},
    ),
    "interior_point": (short(ERMRegressor, solver="interior_point", loss="absolute"), numbers, {}),
    "dual_coordinate": (short(LinearSVC, solver="dual_coordinate", loss="hinge"), classes, {}),
}
FIRST_ORDER = {
    name: (short(ERMClassifier, solver=name, loss=loss, penalty="l2", alpha=0.1), classes, {})
    for name, loss in (("gd", "logistic"), ("sgd", "hinge"), ("minibatch", "logistic"))
}
SOFTMAX = {
    name: (short(LogisticRegression, solver=name, C=1.0), lambda: classes(3), {})
    for name in ("newton", "lbfgs", "newton-cg")
}
REFINED = (lambda: LinearRegression(solver="direct"), nearly_dependent, OFF)
WIDE = (  # more columns than are factored at once
    lambda: LinearRegression(penalty="l2", alpha=0.1, solver="direct"),
    lambda: numbers(12, 300),
    {f"{LS}.row_space:_balanced": times(1.5)},
)
LASSO = (  # on more columns than rows: of fewer one iteration finds the minimum
    short(LinearRegression, penalty="l1", alpha=0.001, solver="coordinate", max_iter=1),
    lambda: numbers(40, 60),
    {},
)
L1_LOGISTIC = (
    short(LogisticRegression, C=1.0, l1_ratio=1.0, solver="coordinate", max_iter=1),
    classes,
    {},
)
HARD = (lambda: LinearSVC(C=np.inf, loss="hinge"), separable, {f"{MARGIN}.hard_margin:_allowed": longer})
OVERLAP = (lambda: Perceptron(max_iter=3), classes, {})
APART = (Perceptron, separable, {})

ALL_THROUGH_CERTIFY = [
    *THROUGH_CERTIFY.items(),
    *FIRST_ORDER.items(),
    *SOFTMAX.items(),
    ("coordinate", LASSO),
    ("coordinate", L1_LOGISTIC),
]
FAULTS = [
    *(
        Fault(solver, f"{SHARED}:certify_with_dual", in_certificate(figure), *fit)
        for solver, fit in ALL_THROUGH_CERTIFY
        for figure in FOUR
    ),
    *(
        Fault(solver, f"{SHARED}:bound", in_bound(figure), *fit)
        for solver, fit in ALL_THROUGH_CERTIFY
        for figure in THREE
    ),
    *(Fault("direct", f"{LS}.direct:Certificate", in_certificate(figure), *REFINED) for figure in FOUR),
    Fault("direct", f"{LS}.slopes:_block_slope", times(0.5), *REFINED),
    *(Fault("direct", f"{LS}.row_space:Certificate", in_certificate(figure), *WIDE) for figure in FOUR),
    Fault("direct", f"{LS}.row_space:fit", half_the_residuals, *WIDE),
    *(
        Fault("hard_margin", f"{MARGIN}.hard_margin:certify_margin", in_certificate(figure), *HARD)
        for figure in FOUR
    ),
    Fault("perceptron", f"{PLANES}:Certificate", less_wrong, *OVERLAP),
    Fault(
        "perceptron",
        f"{PLANES}:Certificate",
        in_certificate(half_the_gap),
        *OVERLAP,
    ),
    Fault("perceptron", f"{PLANES}:_bounds", times(2.0), *OVERLAP),
    Fault("perceptron", f"{PLANES}:Certificate", wider_margin, *APART),
]


def inject(monkeypatch, place, fault):
    module, name = place.split(":")
    module = importlib.import_module(module)
    homes = [
        one for _, one in inspect.getmembers(module, inspect.isclass) if one.__module__ == module.__name__
    ]
    home = next(home for home in (module, *homes) if name in vars(home))
    monkeypatch.setattr(home, name, fault(vars(home)[name]))


def fitted(fault):
    X, y = fault.data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SixfoldWarning)
        return fault.model().fit(X, y), (X, y)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_fault_is_found(fault, monkeypatch):
    for place, change in fault.bad.items():
        inject(monkeypatch, place, change)
    honest, data = fitted(fault)
    honest.certificate_.verify(*data)
    inject(monkeypatch, fault.place, fault.fault)
    model, data = fitted(fault)
    assert model.certificate_ != honest.certificate_  # the fault is met at all
    with pytest.raises(CertificateError):
        model.certificate_.verify(*data)


def test_every_solver_has_a_fault():
    assert {fault.solver for fault in FAULTS} >= {solver.name for solver in all_solvers()}


def test_every_fit_uses_the_solver_that_it_is_said_to():
    for fault in FAULTS:
        asked = fault.model().get_params().get("solver", "auto")
        assert asked in (fault.solver, "auto")
