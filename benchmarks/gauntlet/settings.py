"""The settings: learner x loss or kernel x penalty x strength, and scikit-learn's counterparts of each.

A line of ``GROUPS`` is a learner with what it is run through; a new learner is a new line. C and alpha go
over 12 decades, C with an L2 penalty four further, to where it hardly counts; C = inf is the hard margin.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn import linear_model, svm

import sixfold

CLASSES, NUMBERS = "classes", "numbers"  # what y holds
PENALTIES = (None, "l2", "l1", "elasticnet")
WIDE, COARSE = range(-4, 9, 2), range(-8, 5, 4)  # exponents of C, and of alpha where there are many losses
WIDER = (*range(-4, 13, 2), math.inf)


class Group(NamedTuple):
    """A learner, its losses (or kernels, as ``form`` says), its penalties, the exponents of C or alpha."""

    learner: str
    task: str
    form: str
    forms: tuple[str, ...]
    penalties: tuple[str | None, ...]
    strength: str
    exponents: Any


# ERMClassifier goes without the perceptron's loss, whose least risk is 0 at w = 0: there is nothing to find.
GROUPS = (
    Group("LinearRegression", NUMBERS, "", ("squared",), PENALTIES, "alpha", range(-8, 5, 2)),
    Group("ERMRegressor", NUMBERS, "loss", ("squared", "absolute", "cubed"), PENALTIES, "alpha", COARSE),
    Group("LogisticRegression", CLASSES, "", ("logistic",), (None, "l2"), "C", WIDER[:-1]),
    Group("LogisticRegression", CLASSES, "", ("logistic",), ("l1", "elasticnet"), "C", WIDE),
    Group("LinearSVC", CLASSES, "loss", ("hinge", "squared_hinge"), ("l2",), "C", WIDER),
    Group("LinearSVC", CLASSES, "loss", ("squared_hinge",), ("l1",), "C", WIDE),
    Group(
        "ERMClassifier",
        CLASSES,
        "loss",
        ("logistic", "softmax", "squared", "hinge", "squared_hinge"),
        PENALTIES,
        "alpha",
        COARSE,
    ),
    Group("Perceptron", CLASSES, "", ("perceptron",), (None,), "", ()),
    Group("SVC", CLASSES, "kernel", ("rbf", "linear"), ("l2",), "C", WIDE),
)


class Setting(NamedTuple):
    """One set of parameters of one learner."""

    learner: str
    task: str
    form: str
    penalty: str | None
    strength: str
    value: float | None
    options: dict[str, Any]

    @property
    def group(self) -> str:
        """What a line of the table is about."""
        return f"{self.learner} {self.form} {self.penalty}"

    @property
    def name(self) -> str:
        """The group and the strength."""
        return self.group if self.value is None else f"{self.group} {self.strength}={self.value:g}"

    def model(self) -> Any:
        """Return the learner, unfitted, with all else as a user finds it."""
        return getattr(sixfold, self.learner)(**self.options)


def settings() -> Iterator[Setting]:
    """Yield all settings."""
    for group in GROUPS:
        for form in group.forms:
            for penalty in group.penalties:
                for exponent in group.exponents if penalty else (None,):
                    value = None if exponent is None else 10.0**exponent
                    options = {group.form: form} if group.form else {}
                    if group.learner not in ("SVC", "Perceptron"):
                        options["penalty"] = penalty
                    if value is not None:
                        options[group.strength] = value
                    if penalty == "elasticnet":
                        options["l1_ratio"] = 0.5
                    yield Setting(group.learner, group.task, form, penalty, group.strength, value, options)


def peers(setting: Setting, rows: int, classes: int) -> list[Any]:
    """Return scikit-learn's estimators for the same problem, if any, at their own tolerance."""
    kind = setting.form, setting.penalty
    alpha, C = 0.0, np.inf  # without a penalty
    if setting.strength == "alpha" and setting.value:
        alpha = setting.value
        C = 1.0 / (alpha * rows * (2.0 if setting.form == "squared_hinge" else 1.0))  # ours is halved
    elif setting.value:
        C = setting.value
    l1_ratio = {"l1": 1.0, "elasticnet": 0.5}.get(setting.penalty, 0.0)
    linear = linear_model
    if setting.learner == "SVC":
        return [svm.SVC(kernel=setting.form, C=setting.value)]
    if setting.form in ("logistic", "softmax"):
        if l1_ratio:
            found = [linear.LogisticRegression(C=C, l1_ratio=l1_ratio, solver="saga")]
            fast = l1_ratio == 1 and classes == 2
            return found + fast * [linear.LogisticRegression(C=C, l1_ratio=1.0, solver="liblinear")]
        return [linear.LogisticRegression(C=C, solver=name) for name in ("lbfgs", "newton-cholesky")]
    if setting.task == NUMBERS and setting.form == "squared":
        return {
            None: [linear.LinearRegression()],
            "l2": [linear.Ridge(alpha=alpha * rows)],
            "l1": [linear.Lasso(alpha=alpha)],
            "elasticnet": [linear.ElasticNet(alpha=alpha, l1_ratio=0.5)],
        }[setting.penalty]
    return {
        ("absolute", None): [linear.QuantileRegressor(alpha=0.0)],
        ("absolute", "l1"): [linear.QuantileRegressor(alpha=alpha / 2)],
        ("absolute", "l2"): [svm.LinearSVR(epsilon=0.0, C=min(C, 1e300))],
        ("squared", "l2"): [linear.RidgeClassifier(alpha=alpha * rows)],
        ("hinge", "l2"): [svm.LinearSVC(loss="hinge", C=min(C, 1e300))],
        ("squared_hinge", "l2"): [svm.LinearSVC(C=min(C, 1e300))],
        ("squared_hinge", "l1"): [svm.LinearSVC(penalty="l1", C=min(C, 1e300))],
        ("perceptron", None): [linear.Perceptron()],
    }.get(kind, [])
