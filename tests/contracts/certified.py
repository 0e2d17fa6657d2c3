"""What the tests of certificates share: fits that may stop early, what they learnt, and tampered models."""

import copy
import warnings
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier

from sixfold.errors import CertificateError, RankWarning, StoppedEarly
from sixfold.solvers.base import missing_methods


def fits(solver, problem):
    """Return whether the solver minimises this problem."""
    return missing_methods(solver, problem) is None and solver.objection(problem) is None


def fit(learner, parameters, data):
    """Return the fitted model; a limit that was reached is part of its certificate."""
    with warnings.catch_warnings():
        # First-order solvers need more passes than they get here; their certificates are honest about it.
        warnings.simplefilter("ignore", StoppedEarly)
        warnings.simplefilter("ignore", RankWarning)
        X, y, *weight = data
        return learner.make(**parameters).fit(X, y, **dict(zip(["sample_weight"], weight, strict=False)))


def answers(model, X):
    """Return what a model says about rows: its predictions, or the neighbours that a search finds."""
    return model.predict(X) if hasattr(model, "predict") else model.kneighbors(X, return_distance=False)


def learnt(model, X):
    """Return what two fits are compared by: a linear model itself, of others what they say about X."""
    if hasattr(model, "coef_"):
        return [model.coef_, np.asarray(model.intercept_)]
    if hasattr(model, "tree_"):
        return [model.predict_proba(X), model.apply(X)]
    if hasattr(model, "dual_coef_"):
        dual = model.dual_coef_.toarray() if sp.issparse(model.dual_coef_) else model.dual_coef_
        return [dual, model.intercept_, model.decision_function(X)]
    shares = [model.predict_proba(X)] if is_classifier(model) else []
    return [*model.kneighbors(X), answers(model, X), *shares]


def tamper(model, data):
    """Change what the model has learnt by 1e-3: coefficients, class totals, or a value of a row it keeps."""
    if hasattr(model, "coef_"):
        model.coef_ = model.coef_ * 1.001
    elif hasattr(model, "tree_"):
        model.tree_ = replace(model.tree_, totals=model.tree_.totals * 1.001)
    elif hasattr(model, "dual_coef_"):
        model.dual_coef_ = model.dual_coef_ * 1.001
    else:
        X, y = data
        other = X.copy()
        other[0, 0] *= 1.001
        model.fit(other, y)


def changes(model):
    """Go through copies of the model with one coefficient or intercept, unless zero, changed by 1e-3.

    An interior point leaves some 1e-9 of a coefficient that is zero.
    """
    for name in ("coef_", "intercept_"):
        values = np.atleast_1d(getattr(model, name))
        for place in np.ndindex(values.shape):
            if np.abs(values[place]) > 1e-8 * np.abs(values).max():
                changed = values.copy()
                changed[place] *= 1.001
                other = copy.copy(model)  # shallow: only this attribute is set anew
                setattr(other, name, changed.reshape(np.shape(getattr(model, name))))
                yield f"{name}{list(place)}", other


def unnoticed(model, data):
    """Return the changes of one coefficient by 1e-3 with which the certificate still passes."""
    passed = []
    for what, other in changes(model):
        try:
            other.certificate_.verify(*data)
            passed.append(what)
        except CertificateError:
            pass
    return passed
