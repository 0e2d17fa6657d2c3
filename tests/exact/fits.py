"""Random fits over what breaks bounds: scales, offsets, weights, copies, collinearity, few rows, types.

A fit is a seed. ``check(seed)`` makes the table, fits the model, and returns what is wrong with its
certificate in exact arithmetic, as a list of sentences.
"""

import warnings
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from mpmath import mpf

from sixfold import ERMRegressor, LinearRegression, LinearSVC, LogisticRegression
from sixfold.errors import CertificateError, SixfoldError, SixfoldWarning
from tests.exact.oracle import Exact

LOSSES = (
    "least squares", "ridge", "lasso", "absolute", "logistic", "unpenalised logistic", "softmax", "hinge",
    "squared hinge", "unpenalised softmax",
)  # fmt: skip


@dataclass
class Found:
    """What came of one fit."""

    seed: int
    family: str
    traits: list = field(default_factory=list)
    wrong: list = field(default_factory=list)
    refused: str = ""  # why there was no fit
    converged: bool = True
    restricted: bool = False
    changed: int = 0  # coefficients that were changed and matter
    relative_gap: float = 0.0


def table(rng, traits):
    """Return X."""
    n = int(rng.choice([1, 2, 3, 5, 8, 12, 20, 40], p=[0.02, 0.04, 0.06, 0.1, 0.18, 0.25, 0.25, 0.1]))
    d = int(rng.integers(1, 7))
    X = rng.normal(size=(n, d))
    if rng.random() < 0.2:
        X = np.round(X * 3)
        traits.append("whole numbers")
    if rng.random() < 0.4:
        width = rng.choice([2, 8, 50], p=[0.5, 0.4, 0.1])
        X = X * 10.0 ** rng.uniform(-width, width, size=d)
        traits.append(f"scales 1e{width}")
    if rng.random() < 0.4:
        column = rng.integers(d)
        kind = rng.choice(["seconds", "milliseconds", "2**30", "2**40", "far"])
        traits.append(kind)
        X[:, column] = {
            "seconds": 1.7e9 + np.arange(n),
            "milliseconds": 1.7e12 + np.floor(1e5 * rng.random(n)),
            "2**30": 2.0**30 + rng.normal(size=n),
            "2**40": 2.0**40 + rng.normal(size=n),
            "far": X[:, column] + 1e8 * np.abs(X[:, column]).max(initial=0.0),
        }[kind]
    if d > 1 and rng.random() < 0.35:
        kind = rng.choice(["copy", "sum", "last bits", "collinear", "constant", "negative copy"])
        traits.append(kind)
        one, other = rng.permutation(d)[:2]
        if kind == "copy":
            X[:, one] = X[:, other]
        elif kind == "negative copy":
            X[:, one] = -2.0 * X[:, other]
        elif kind == "sum" and d > 2:
            third = next(j for j in range(d) if j not in (one, other))
            X[:, one] = X[:, other] + X[:, third]
        elif kind == "last bits":
            X[:, one] = np.where(rng.random(n) < 0.5, X[:, other], np.nextafter(X[:, other], np.inf))
        elif kind == "collinear":
            size = 10.0 ** rng.uniform(-14, -3)
            X[:, one] = X[:, other] * (1.0 + size * rng.normal(size=n))
            traits[-1] = f"collinear {size:.0e}"
        elif kind == "constant":
            X[:, one] = rng.choice([0.0, 1.0, 0.1, 1e9 + 0.1])
    return X


def weights(rng, n, traits):
    """Return weights or None."""
    kind = rng.choice(["none", "even", "decades", "zeros"], p=[0.6, 0.15, 0.15, 0.1])
    if kind == "none":
        return None
    traits.append(f"weights: {kind}")
    if kind == "even":
        return rng.uniform(0.5, 2.0, size=n)
    if kind == "decades":
        return 10.0 ** rng.uniform(-6, 6, size=n)
    weight = rng.integers(0, 3, size=n).astype(float)
    weight[rng.integers(n)] = 1.0
    return weight


def draw(seed):
    """Return the model, X, y, weights and the record of a fit."""
    rng = np.random.default_rng([seed, 13])
    found = Found(seed, LOSSES[seed % len(LOSSES)])
    traits = found.traits
    X = table(rng, traits)
    n, d = X.shape
    spread = np.abs(X - X.mean(axis=0)).max(axis=0)
    Z = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    score = Z @ rng.normal(size=d) + rng.choice([0.1, 1.0, 3.0]) * rng.normal(size=n)
    weight = weights(rng, n, traits)
    intercept = bool(rng.random() < 0.85)
    C = 10.0 ** rng.uniform(-4, 6)
    made = {
        "least squares": lambda: LinearRegression(fit_intercept=intercept),
        "ridge": lambda: LinearRegression(penalty="l2", alpha=1.0 / C, fit_intercept=intercept),
        "lasso": lambda: LinearRegression(penalty="l1", alpha=0.3 * rng.random(), fit_intercept=intercept),
        "absolute": lambda: ERMRegressor(
            loss="absolute", penalty=rng.choice([None, "l2"]), alpha=1.0 / C, fit_intercept=intercept
        ),
        "logistic": lambda: LogisticRegression(C=C, fit_intercept=intercept),
        "unpenalised logistic": lambda: LogisticRegression(
            C=np.inf, on_separation="warn", fit_intercept=intercept
        ),
        "softmax": lambda: LogisticRegression(C=C, fit_intercept=intercept),
        "unpenalised softmax": lambda: LogisticRegression(
            C=np.inf, on_separation="warn", fit_intercept=intercept
        ),
        "hinge": lambda: LinearSVC(loss="hinge", C=C, fit_intercept=intercept),
        "squared hinge": lambda: LinearSVC(C=C, fit_intercept=intercept),
    }
    model = made[found.family]()
    if found.family in ("least squares", "ridge", "lasso", "absolute"):
        y = score + rng.choice([0.0, 10.0])
        if rng.random() < 0.2:
            y = y * 10.0 ** rng.choice([-150.0, -20.0, 20.0, 150.0])
            traits.append("scale of y")
        if rng.random() < 0.1:
            y = y + 1e9 * np.abs(y).max()
            traits.append("offset of y")
        if rng.random() < 0.05:
            y = np.full(n, 3.7)
            traits.append("constant y")
        if rng.random() < 0.05 and n > 1:
            y = X @ rng.integers(-2, 3, size=d)
            traits.append("perfect fit")
    elif "softmax" in found.family:
        y = (
            np.argsort(np.argsort(score + 0.5 * rng.normal(size=n))) % 3
            if rng.random() < 0.3
            else np.digitize(score, [-0.5, 0.7])
        )
    else:
        y = (score + rng.choice([0.0, 1.0]) * rng.normal(size=n) > 0).astype(int)
    if rng.random() < 0.1 and "scale of y" not in traits and "scales 1e50" not in traits:
        X = X.astype(np.float32)
        traits.append("float32")
    elif rng.random() < 0.1:
        X = np.where(rng.random(X.shape) < 0.4, 0.0, X)
        X = sp.csr_array(X)
        traits.append("sparse")
    return model, X, y, weight, found


def check(seed):
    """Fit, and return what is wrong."""
    model, X, y, weight, found = draw(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SixfoldWarning)
        try:
            model.fit(X, y, weight)
        except (SixfoldError, ValueError) as error:
            found.refused = f"{type(error).__name__}: {error}"
            return found
    certificate = model.certificate_
    claim = model._claim(X, y, weight)
    exact = Exact(claim)
    theta = exact.theta(claim.w, claim.b)
    value = exact.objective(theta)
    lowest = exact.lowest(theta)
    found.converged, found.restricted = certificate.converged, certificate.unrestricted_bound is not None
    found.relative_gap = certificate.relative_gap
    if mpf(certificate.objective) < value:
        found.wrong.append(
            f"objective {certificate.objective!r} below {float(value)!r} "
            f"by {float(value - mpf(certificate.objective)):.2g}"
        )
    if mpf(certificate.lower_bound) > lowest:
        over = float(mpf(certificate.lower_bound) - lowest)
        found.wrong.append(
            f"lower bound {certificate.lower_bound!r} above {float(lowest)!r} by {over:.2g}, "
            f"gap {certificate.gap:.2g}"
        )
    _verify(model, X, y, weight, found, exact, value)
    return found


def _verify(model, X, y, weight, found, exact, value):
    certificate = model.certificate_
    try:
        certificate.verify(X, y, weight)
    except CertificateError as error:
        found.wrong.append(f"accused: {str(error)[:220]}")
        return
    coef = model.coef_.copy()
    for place in np.ndindex(coef.shape):
        changed = coef.copy()
        changed[place] *= np.asarray(1.001, dtype=coef.dtype)
        model.coef_ = changed
        w, b = model._parameters()
        more = abs(exact.objective(exact.theta(w, b)) - value)
        if not more > mpf(certificate.gap):
            continue
        found.changed += 1
        try:
            certificate.verify(X, y, weight)
        except CertificateError:
            continue
        found.wrong.append(
            f"passed with coefficient {place} changed, which matters by {float(more):.2g}, "
            f"gap {certificate.gap:.2g}"
        )
    model.coef_ = coef
