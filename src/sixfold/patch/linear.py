"""Linear models under scikit-learn's names.

What scikit-learn calls ``tol`` is a slope or a change; ours is a certified gap, which falls as the square of
the slope does: a slope of 1e-4 is stated as a gap of 1e-8. A limit of iterations that ours does not meet is
left to scikit-learn, as the point that its solver has reached by then is what was asked for.
"""

from __future__ import annotations

import warnings
from inspect import signature
from typing import Any

import numpy as np
import sklearn.linear_model as sk

import sixfold
from sixfold.errors import StoppedEarly, silenced
from sixfold.patch.drop_in import DropIn, require

# From scikit-learn 1.8 on l1_ratio and C say what the penalty is.
NAMES_DEPRECATED = signature(sk.LogisticRegression).parameters["penalty"].default == "deprecated"
SMOOTH = ("lbfgs", "newton-cg", "newton-cholesky", "sag", "saga")
SOLVERS = {  # by the penalty they take
    None: SMOOTH,
    "l2": (*SMOOTH, "liblinear"),
    "l1": ("liblinear", "saga"),
    "elasticnet": ("saga",),
}
SMALLEST_GAP = 1e-12  # beyond, rounding decides
NEAR_GAP = 1e-9
ENOUGH_ITERATIONS = 100  # scikit-learn's default: who asks for as many wants the optimum
NO_JOBS = "'n_jobs' has no effect on LogisticRegression from scikit-learn 1.8 on. Leave it out."


def gap_of(tol: float) -> float:
    """Return the gap to ask for where scikit-learn is asked for this slope."""
    return max(min(float(tol) ** 2, 1e-8), SMALLEST_GAP)


def iterations(max_iter: int) -> int:
    """Return how many iterations ours may take: at least 1,000, unless few are asked for on purpose."""
    return max(max_iter, 1000) if max_iter >= ENOUGH_ITERATIONS else max_iter


def require_converged(model: Any) -> None:
    """Leave to scikit-learn what ours has not finished, unless it has come as near as its solvers come."""
    found = model.certificate_
    require(found.converged or found.relative_gap < NEAR_GAP, "the limit of iterations was met")


class LinearDropIn(DropIn):
    """A drop-in with ``coef_`` and ``intercept_``; who sets them anew has scikit-learn's methods answer."""

    coef_: Any
    intercept_: Any

    def _is_ours(self) -> bool:
        ours = self._ours
        return ours is not None and self.coef_ is ours.coef_ and self.intercept_ is ours.intercept_

    def _set_fitted(self, model: Any) -> None:
        self.coef_, self.intercept_ = model.coef_, model.intercept_


class LinearRegression(LinearDropIn, sk.LinearRegression):
    """scikit-learn's LinearRegression, fitted by ours."""

    _extras = (*DropIn._extras, "rank_", "singular_")

    def _learner(self) -> Any:
        return sixfold.LinearRegression(
            fit_intercept=self.fit_intercept, positive=self.positive, n_jobs=self.n_jobs
        )

    def _shared_learner(self) -> Any:
        return self._learner()


class LogisticRegression(LinearDropIn, sk.LogisticRegression):
    """scikit-learn's LogisticRegression, fitted by ours.

    liblinear penalises the intercept, and so is left to scikit-learn where there is one.
    """

    _answers = ("predict", "predict_proba", "predict_log_proba", "decision_function")

    def _learner(self) -> Any:
        penalty = self._stated_penalty()
        require(not self.dual, "dual=True is liblinear's")
        multi_class = getattr(self, "multi_class", "deprecated")  # until scikit-learn 1.8
        require(multi_class in ("deprecated", "auto", "multinomial"), f"multi_class={multi_class!r}")
        if self.solver == "liblinear":
            require(not self.fit_intercept, "liblinear penalises the intercept")
        require(self.solver in SOLVERS.get(penalty, ()), f"solver={self.solver!r} has no {penalty} penalty")
        model = sixfold.LogisticRegression(
            penalty=penalty,
            C=self.C,
            l1_ratio=self.l1_ratio,
            tol=gap_of(self.tol),
            fit_intercept=self.fit_intercept,
            class_weight=self.class_weight,
            max_iter=iterations(self.max_iter),
            verbose=self.verbose,
            warm_start=self.warm_start,
        )
        if self.warm_start and hasattr(self, "coef_"):
            model.coef_, model.intercept_, model.classes_ = self.coef_, self.intercept_, self.classes_
        return model

    def _shared_learner(self) -> Any:
        require(self.solver != "liblinear", "liblinear takes two classes")
        return self._learner()

    def _stated_penalty(self) -> str | None:
        """Return the penalty, which its own parameter named until scikit-learn 1.8."""
        require(self.penalty in ("deprecated", "l2", "l1", "elasticnet", None), f"penalty={self.penalty!r}")
        if self.penalty != "deprecated":
            require(not NAMES_DEPRECATED, "the parameter penalty is deprecated")
            return self.penalty
        if np.inf == self.C:
            return None
        return {0: "l2", 1: "l1"}.get(self.l1_ratio, "elasticnet")

    def _learn(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        with silenced(StoppedEarly):
            model = super()._learn(X, y, sample_weight)
        require_converged(model)
        if self.solver == "liblinear":
            require(model.classes_.size == 2, "liblinear takes two classes")
            require(model.coef_.dtype == np.float64, "liblinear makes float64 of float32")
        if self.n_jobs is not None and NAMES_DEPRECATED:
            warnings.warn(NO_JOBS, FutureWarning, stacklevel=4)
        return model

    def _set_fitted(self, model: Any) -> None:
        super()._set_fitted(model)
        self.classes_, self.n_iter_ = model.classes_, model.n_iter_
