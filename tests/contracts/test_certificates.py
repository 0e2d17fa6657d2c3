"""Every fit's certificate is confirmed from the data, travels with the model, and tells a changed one.

A relative change of 1e-3 in one coefficient moves the objective of these problems by 1e-9 of itself or more,
whereas their figures are rounded at 1e-13: nothing has to be excused.
"""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from contracts.certified import fit, fits, tamper, unnoticed
from sixfold.errors import CertificateError
from sixfold.learners.registry import LEARNERS
from sixfold.risk.losses import LOSSES
from sixfold.solvers.registry import all_solvers

COEFFICIENTS = np.array([1.5, -1.0, 2.0, 0.7, -0.4])


def table(rows=81, columns=5, targets=None, seed=0):
    """Return a table whose columns all matter, on different scales and away from zero.

    The number of rows is odd: with as many residuals above as below, the absolute loss would not feel a small
    change of the intercept.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)) * np.geomspace(0.5, 2.0, columns) + 1.0
    slopes = np.resize(COEFFICIENTS, columns)[:, None] * np.array([1.0, -0.5, 0.8])[: targets or 1]
    Y = 3.0 + X @ slopes + 0.5 * rng.normal(size=(rows, slopes.shape[1]))
    return X, Y if targets else Y[:, 0]


def with_dependent_column():
    X, y = table()
    return np.column_stack([X, X[:, 0] - 2.0 * X[:, 1]]), y


def with_zero_weights():
    X, y = table()
    weight = np.random.default_rng(1).uniform(0.2, 3.0, size=y.size)
    weight[::9] = 0.0
    return X, y, weight


def far_from_zero():
    """Return columns whose mean is a thousand times their spread, as years or temperatures have."""
    X, y = table()
    return X + np.array([2000.0, -1500.0, 0.0, 1000.0, 500.0]), y


DATA = {
    "tall": table,
    "weights": with_zero_weights,
    "csr": lambda: (sp.csr_array(table()[0]), table()[1]),
    "float32": lambda: tuple(part.astype(np.float32) for part in table()),
    "far from zero": far_from_zero,
    "large": lambda: tuple(1e40 * part for part in table()),
    "small": lambda: tuple(1e-40 * part for part in table()),
    "dependent columns": with_dependent_column,
    "wide": lambda: table(rows=12, columns=30),
    "wide csr": lambda: (sp.csr_array(table(12, 30)[0]), table(12, 30)[1]),
    "wide float32": lambda: tuple(part.astype(np.float32) for part in table(12, 30)),
    "one row": lambda: table(rows=1),
    "two targets": lambda: table(targets=2),
    "two targets, wide": lambda: table(12, 30, targets=2),
    "constant target": lambda: (table()[0], np.full(81, 3.3)),
    "constant target, float32": lambda: (table()[0].astype(np.float32), np.full(81, 3.3)),
    "target far from zero": lambda: (table()[0].astype(np.float32), 1e9 + table()[1]),
    "exact": lambda: (table()[0], 3.0 + table()[0] @ COEFFICIENTS),
}

PENALTIES = (
    {},
    {"fit_intercept": False},
    {"penalty": "l2", "alpha": 0.1},
    {"penalty": "l2", "alpha": 1e-6},
    {"penalty": "l1", "alpha": 0.05},
    {"penalty": "elasticnet", "alpha": 0.05, "l1_ratio": 0.3},
    {"penalty": "elasticnet", "alpha": 0.05, "fit_intercept": False},
)

# The named learners state the same problems in their own words; "auto" is enough for them.
NAMED = {
    "Ridge": ({}, {"alpha": 1e-4, "fit_intercept": False}, {"alpha": 5.0, "positive": True}),
    "Lasso": ({"alpha": 0.05}, {"alpha": 0.05, "fit_intercept": False, "tol": 1e-9}),
    "ElasticNet": ({"alpha": 0.05}, {"alpha": 0.05, "l1_ratio": 0.3, "tol": 1e-9, "positive": True}),
}


def settings():
    """Go through every regressor with every loss, penalty and solver that fit each other."""
    for learner in (one for one in LEARNERS if one.task == "regression" and one.hypothesis == "linear"):
        if learner.name in NAMED:
            for parameters in NAMED[learner.name]:
                yield pytest.param(learner, parameters, id=f"{learner.name}-{parameters}")
            continue
        if "solver" not in learner.make().get_params():
            continue  # SGDRegressor, which has tests of its own
        losses = [{}]
        if "loss" in learner.make().get_params():
            losses = [{"loss": name} for name, loss in LOSSES.items() if loss.labels == "real"]
        extra = [{"positive": True}] if "positive" in learner.make().get_params() else []
        for loss in losses:
            for penalty in (*PENALTIES, *extra):
                for solver in all_solvers():
                    parameters = {**loss, **penalty, "solver": solver.name, "max_iter": 50}
                    problem = learner.make(**parameters)._problem(1.0)
                    if fits(solver, problem):
                        label = ",".join(str(value) for value in parameters.values())
                        yield pytest.param(learner, parameters, id=f"{learner.name}-{label}")


SETTINGS = list(settings())


def usable(parameters, data):
    """Return whether the learner takes these data: one target, or no loss to choose."""
    return np.ndim(data[1]) == 1 or "loss" not in parameters


@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize(("learner", "parameters"), SETTINGS)
def test_a_fit_is_confirmed_from_the_data(learner, parameters, kind):
    data = DATA[kind]()
    if not usable(parameters, data):
        return
    certificate = fit(learner, parameters, data).certificate_
    found = certificate.verify(*data)
    # The objective of a certificate includes what rounding may have done.
    off = 1e-9 * certificate.scale + certificate.rounding
    assert found.objective == pytest.approx(certificate.objective, rel=1e-9, abs=off)
    assert certificate.gap >= 0


# Each of these has coefficients that are unique and not zero, so that a change of any one is a worse model.
TELLING = ("tall", "weights", "csr", "float32", "far from zero", "two targets")


@pytest.mark.parametrize("kind", TELLING)
@pytest.mark.parametrize(("learner", "parameters"), SETTINGS)
def test_no_changed_coefficient_passes(learner, parameters, kind):
    data = DATA[kind]()
    if not usable(parameters, data):
        return
    assert not unnoticed(fit(learner, parameters, data), data)


@pytest.mark.parametrize(("learner", "parameters"), SETTINGS)
def test_other_data_do_not_pass(learner, parameters):
    X, y, weight = with_zero_weights()
    certificate = fit(learner, parameters, (X, y, weight)).certificate_
    one_cell, one_target, one_weight = X.copy(), y.copy(), weight.copy()
    one_cell[5, 2] *= 1.001
    one_target[7] *= 1.001
    one_weight[8] *= 1.001
    fewer = slice(0, -1)
    others = [(one_cell, y, weight), (X, one_target, weight), (X, y, one_weight), (X, y)]
    for other in [*others, (X[fewer], y[fewer], weight[fewer])]:
        with pytest.raises(CertificateError, match="the data are not those of the fit"):
            certificate.verify(*other)


def example(learner):
    """Return a table with numbers or labels, whatever the learner predicts."""
    X, y = table()
    if learner.task == "regression":
        return X, y
    labels = np.where(y > np.median(y), "high", "low")
    labels[::5] = labels[::5][::-1]  # so that no plane separates the classes
    return X, labels


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.name)
@pytest.mark.parametrize(
    "carry",
    [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_a_certificate_travels_with_its_model(learner, carry):
    data = example(learner)
    model = learner.make().fit(*data)
    carried = carry(model)
    assert carried.certificate_ == model.certificate_
    carried.certificate_.verify(*data)
    tamper(carried, data)
    with pytest.raises(CertificateError):
        carried.certificate_.verify(*data)
    model.certificate_.verify(*data)  # and speaks of its own model only


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.name)
def test_a_clone_has_no_certificate_until_it_is_fitted(learner):
    data = example(learner)
    model = learner.make().fit(*data)
    cloned = clone(model)
    assert not hasattr(cloned, "certificate_")
    assert cloned.fit(*data).certificate_ == model.certificate_
