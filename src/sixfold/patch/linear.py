"""Linear models under scikit-learn's names.

What scikit-learn calls ``tol`` is a slope or a change; ours is a certified gap, which falls as the square of
the slope does: a slope of 1e-4 is stated as a gap of 1e-8. A limit of iterations that ours does not meet is
left to scikit-learn, as the point that its solver has reached by then is what was asked for.
"""

from __future__ import annotations

import warnings
from functools import cache
from inspect import signature
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.linear_model as sk
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils import check_random_state

import sixfold
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
RIDGE_SOLVERS = ("auto", "svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga")
SPARSE_RIDGE_SOLVERS = ("auto", "sparse_cg", "sag", "lbfgs")  # where there is an intercept
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
    found = model._certificate  # as it is, without what it speaks of
    require(found.converged or found.relative_gap < NEAR_GAP, "the limit of iterations was met")


def draw_seed(random_state: Any) -> None:
    """Draw the one number that a fit of scikit-learn draws, so that what a script draws next is the same."""
    check_random_state(random_state).randint(np.iinfo(np.int32).max)


class LinearDropIn(DropIn):
    """A drop-in with ``coef_`` and ``intercept_``; who sets them anew has scikit-learn's methods answer."""

    coef_: Any
    intercept_: Any

    def _is_ours(self) -> bool:
        ours = self._ours
        if ours is None or self.intercept_ is not ours.intercept_:
            return False
        classes = getattr(ours, "classes_", None)
        kept = self.coef_ is ours.coef_ or getattr(self.coef_, "base", None) is ours.coef_  # flat, perhaps
        return kept and self.__dict__.get("classes_", classes) is classes

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


class RidgeDropIn(LinearDropIn):
    """Ridge regression, of numbers or of labels: scikit-learn's solvers are ways to the same optimum."""

    alpha: Any
    fit_intercept: bool
    max_iter: int | None
    tol: float
    solver: str
    positive: bool

    def _ridge(self, make: Any, **others: Any) -> Any:
        """Return our learner; solvers that scikit-learn refuses here are left to it."""
        require(self.max_iter is None, "max_iter counts the steps of scikit-learn's solvers")
        solvers = ("auto", "lbfgs") if self.positive else RIDGE_SOLVERS
        require(self.solver in solvers, f"solver={self.solver!r} with positive={self.positive!r}")
        return make(
            alpha=self.alpha,
            fit_intercept=self.fit_intercept,
            tol=min(self.tol, 1e-4),
            positive=self.positive,
            **others,
        )

    def _learn(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        sparse = sp.issparse(X) and self.fit_intercept
        require(
            not sparse or self.solver in SPARSE_RIDGE_SOLVERS, f"solver={self.solver!r} of a sparse table"
        )
        model = super()._learn(X, y, sample_weight)
        usual = "lbfgs" if self.positive else "sparse_cg" if sparse else "cholesky"
        self.solver_ = usual if self.solver == "auto" else self.solver
        return model

    def _set_fitted(self, model: Any) -> None:
        super()._set_fitted(model)
        steps = np.full(np.atleast_1d(model.intercept_).shape, np.max(model.n_iter_), dtype=np.int32)
        self.n_iter_ = None if self.solver_ in ("cholesky", "svd") else steps


class Ridge(RidgeDropIn, sk.Ridge):
    """scikit-learn's Ridge, fitted by ours."""

    def _learner(self) -> Any:
        return self._ridge(sixfold.Ridge)

    def _shared_learner(self) -> Any:
        require(self.solver == "auto", f"solver={self.solver!r} may refuse the table")
        return self._learner()


class RidgeClassifier(RidgeDropIn, sk.RidgeClassifier):
    """scikit-learn's RidgeClassifier, fitted by ours."""

    _answers = ("predict", "decision_function")

    def _learner(self) -> Any:
        return self._ridge(sixfold.RidgeClassifier, class_weight=self.class_weight)

    def _learn(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        require(np.ndim(y) == 1, "several labels a row")
        return super()._learn(X, y, sample_weight)

    def _set_fitted(self, model: Any) -> None:
        super()._set_fitted(model)
        if model.classes_.size == 2:
            self.coef_ = model.coef_.reshape(two_class_shape(model.coef_.shape[1]))
        self._label_binarizer = LabelBinarizer(pos_label=1, neg_label=-1).fit(model.classes_)
        if not hasattr(type(self), "classes_"):  # in some versions it is a property, of the line above
            self.classes_ = model.classes_


@cache
def two_class_shape(columns: int) -> tuple[int, ...]:
    """Return the shape of scikit-learn's coefficients for two classes, which some versions have flat."""
    model = RidgeClassifier._theirs().fit([[0.0], [1.0]], [0, 1])  # whatever the name stands for now
    return (*model.coef_.shape[:-1], columns)


class LassoDropIn(LinearDropIn):
    """Absolute values in the penalty; ``tol`` is a gap there too, of which ours is asked for the square."""

    def _lasso(self, make: Any, **others: Any) -> Any:
        require(isinstance(self.precompute, bool), "precompute is a table")
        require(self.alpha != 0, "alpha=0, of which scikit-learn warns")
        model = make(
            alpha=self.alpha,
            fit_intercept=self.fit_intercept,
            max_iter=iterations(self.max_iter),
            tol=gap_of(self.tol),
            warm_start=self.warm_start,
            positive=self.positive,
            **others,
        )
        if self.warm_start and hasattr(self, "coef_"):
            model.coef_, model.intercept_ = self.coef_, self.intercept_
        return model

    def _shared_learner(self) -> Any:
        return self._learner()

    def _learn(self, X: Any, y: Any = None, sample_weight: Any = None, check_input: bool = True) -> Any:
        require(check_input, "check_input=False is for scikit-learn's own use")
        model = super()._learn(X, y, sample_weight)
        require_converged(model)
        draw_seed(self.random_state)
        return model

    def _set_fitted(self, model: Any) -> None:
        super()._set_fitted(model)
        self.n_iter_, self.dual_gap_ = model.n_iter_, model.dual_gap_


class Lasso(LassoDropIn, sk.Lasso):
    """scikit-learn's Lasso, fitted by ours."""

    def _learner(self) -> Any:
        return self._lasso(sixfold.Lasso)


class ElasticNet(LassoDropIn, sk.ElasticNet):
    """scikit-learn's ElasticNet, fitted by ours."""

    def _learner(self) -> Any:
        return self._lasso(sixfold.ElasticNet, l1_ratio=self.l1_ratio)
