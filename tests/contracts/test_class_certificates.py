"""Every classifier's certificate is confirmed from the data and tells a changed model or other data.

The classes overlap, so that the minimum is where some rows are on the wrong side: a change of any coefficient
by 1e-3 moves their losses, and with them the objective, by far more than it is rounded.
"""

import numpy as np
import pytest
import scipy.sparse as sp

from contracts.certified import fit, fits, unnoticed
from sixfold.errors import CertificateError
from sixfold.learners.linear.erm import CLASS_LOSSES
from sixfold.learners.registry import LEARNERS
from sixfold.solvers.registry import all_solvers

BY_NAME = {learner.name: learner for learner in LEARNERS}
NAMES = np.array(["ash", "birch", "oak"])
SLOPES = np.array([[1.0, -0.5, 0.2], [-0.8, 0.3, 0.6], [0.4, 0.7, -0.9]])


def table(classes=2, rows=61, columns=3, seed=0):
    """Return columns on different scales and away from zero, and labels drawn by their probabilities."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(rows, columns))
    scores = Z @ np.resize(SLOPES, (columns, 3))[:, :classes] + rng.gumbel(size=(rows, classes))
    return Z * np.geomspace(0.5, 2.0, columns) + 1.0, NAMES[scores.argmax(axis=1)]


def with_weights(classes):
    X, y = table(classes)
    weight = np.random.default_rng(1).uniform(0.2, 3.0, size=y.size)
    weight[::9] = 0.0
    return X, y, weight


def as_csr(X, *rest):
    return sp.csr_array(X), *rest


def as_float32(X, *rest):
    return X.astype(np.float32), *rest


def far_from_zero(X, *rest):
    """Return columns whose mean is a thousand times their spread."""
    return X + np.array([2000.0, -1500.0, 1000.0]), *rest


# Two classes have one score, three have three.
DATA = {
    "two": lambda: table(2),
    "three": lambda: table(3),
    "two, weights": lambda: with_weights(2),
    "three, weights": lambda: with_weights(3),
    "two, csr": lambda: as_csr(*table(2)),
    "three, csr": lambda: as_csr(*table(3)),
    "two, float32": lambda: as_float32(*table(2)),
    "three, weights, float32": lambda: as_float32(*with_weights(3)),
    "two, weights, far from zero": lambda: far_from_zero(*with_weights(2)),
    "three, far from zero": lambda: far_from_zero(*table(3)),
    "two, wide": lambda: table(2, rows=12, columns=20),
    "three, wide csr": lambda: as_csr(*table(3, rows=15, columns=20)),
}

PENALTIES = (
    {"penalty": None},
    {"penalty": "l2", "alpha": 0.1, "fit_intercept": False},
    {"penalty": "l2", "alpha": 1e-3, "class_weight": {"ash": 3.0, "birch": 0.5}},
    {"penalty": "l1", "alpha": 0.02, "class_weight": "balanced"},
    {"penalty": "elasticnet", "alpha": 0.05, "l1_ratio": 0.3},
)

SMALL_STEPS = {"learning_rate": "constant", "eta0": 1e-9}  # by which no data here make the objective rise
# The named learners state the same problems in their own words; "auto" is enough for them.
NAMED = (
    ("LogisticRegression", {"C": 0.1, "class_weight": "balanced"}),
    ("LogisticRegression", {"C": np.inf}),
    ("LogisticRegression", {"C": 2.0, "l1_ratio": 1.0}),
    ("LogisticRegression", {"C": 2.0, "l1_ratio": 0.4, "fit_intercept": False}),
    ("LinearSVC", {"C": 0.1, "class_weight": {"ash": 2.0}}),
    ("LinearSVC", {"loss": "hinge", "fit_intercept": False}),
    ("LinearSVC", {"loss": "hinge", "C": 10.0}),
    ("LinearSVC", {"penalty": "l1", "C": 0.3}),
    ("RidgeClassifier", {"class_weight": {"ash": 2.0}}),
    ("RidgeClassifier", {"alpha": 1e-3, "fit_intercept": False}),
    ("RidgeClassifier", {"alpha": 5.0, "positive": True}),
    ("SGDClassifier", SMALL_STEPS | {"class_weight": {"ash": 2.0}}),
    ("SGDClassifier", SMALL_STEPS | {"loss": "log_loss", "penalty": "elasticnet", "average": True}),
    ("SGDClassifier", SMALL_STEPS | {"loss": "squared_hinge", "penalty": "l1"}),
)


def settings():
    """Go through the recipe with every loss, penalty and solver that fit each other, and the named ones."""
    recipe = BY_NAME["ERMClassifier"]
    for loss in CLASS_LOSSES:
        for penalty in PENALTIES:
            for solver in all_solvers():
                parameters = {"loss": loss, **penalty, "solver": solver.name, "max_iter": 30}
                if fits(solver, recipe.make(**parameters)._problem(1.0)):
                    label = ",".join(str(value) for value in parameters.values())
                    yield pytest.param(recipe, parameters, id=f"ERMClassifier-{label}")
    for name, parameters in NAMED:
        yield pytest.param(BY_NAME[name], parameters, id=f"{name}-{parameters}")


SETTINGS = list(settings())


def usable(parameters, kind):
    """Return whether the problem has a minimum: more columns than rows always separate the classes."""
    unpenalised = parameters.get("penalty", "l2") is None or parameters.get("C") == np.inf
    return "wide" not in kind or not unpenalised


@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize(("learner", "parameters"), SETTINGS)
def test_a_fit_is_confirmed_from_the_data(learner, parameters, kind):
    data = DATA[kind]()
    if not usable(parameters, kind):
        return
    certificate = fit(learner, parameters, data).certificate_
    found = certificate.verify(*data)
    assert found.objective == pytest.approx(certificate.objective, rel=1e-9, abs=1e-12)
    assert certificate.gap >= 0
    assert certificate.objective <= certificate.scale * (1 + 1e-9)  # not worse than the zero model


# With weights that are all different: with equal ones, as many rows may be inside the margin on either side,
# and the hinge would not feel a small change of the intercept.
TELLING = ("two, weights", "three, weights", "two, weights, far from zero", "three, weights, float32")


@pytest.mark.parametrize("kind", TELLING)
@pytest.mark.parametrize(("learner", "parameters"), SETTINGS)
def test_no_changed_coefficient_passes(learner, parameters, kind):
    data = DATA[kind]()
    if usable(parameters, kind):
        assert not unnoticed(fit(learner, parameters, data), data)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("learner", "parameters"), SETTINGS)
def test_other_data_do_not_pass(learner, parameters, classes):
    X, y, weight = with_weights(classes)
    if not usable(parameters, {2: "two", 3: "three"}[classes]):
        return
    model = fit(learner, parameters, (X, y, weight))
    if not model.coef_.any():
        assert parameters["loss"] == "perceptron"  # the zero model has no loss, whatever the data
        return
    row = np.flatnonzero((model.predict(X) != y) & (weight > 0))[
        0
    ]  # it is on the wrong side: its loss counts
    column = np.abs(model.coef_).max(axis=0).argmax()
    one_cell, one_label, one_weight = X.copy(), y.copy(), weight.copy()
    one_cell[row, column] *= 1.001
    one_label[row] = model.predict(X[[row]])[0]
    one_weight[row] *= 1.001
    fewer = np.arange(y.size) != row
    others = [(one_cell, y, weight), (X, one_label, weight), (X, y, one_weight), (X, y)]
    for other in [*others, (X[fewer], y[fewer], weight[fewer])]:
        with pytest.raises(CertificateError, match="the data are not those of the fit"):
            model.certificate_.verify(*other)


@pytest.mark.parametrize("loss", CLASS_LOSSES)
def test_the_certificate_does_not_depend_on_how_labels_are_spelt(loss):
    X, y = table(3)
    learner, parameters = BY_NAME["ERMClassifier"], {"loss": loss, "max_iter": 5}
    numbers = np.searchsorted(NAMES, y)
    texts, codes = fit(learner, parameters, (X, y)), fit(learner, parameters, (X, numbers))
    assert texts.certificate_ == codes.certificate_
    np.testing.assert_array_equal(texts.coef_, codes.coef_)
