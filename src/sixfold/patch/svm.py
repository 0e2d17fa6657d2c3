"""Support vector machines under scikit-learn's names.

LIBLINEAR's ways to a minimum (``dual``, ``random_state``) do not change where it is; LIBSVM's ``tol`` is
ours. A fit that ours does not finish is left to scikit-learn.
"""

from __future__ import annotations

import math
from inspect import signature
from typing import Any

import numpy as np
import sklearn.svm as sk
from sklearn import get_config

from sixfold.patch import liblinear, libsvm
from sixfold.patch.drop_in import DropIn, require
from sixfold.patch.linear import LinearDropIn, draw_seed, gap_of

WAYS = {  # to minimise: whether LIBLINEAR goes by the dual problem
    ("l2", "squared_hinge"): (True, False, "auto"),
    ("l2", "hinge"): (True, "auto"),
    ("l1", "squared_hinge"): (False, "auto"),
}
KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed")
PROBABILITY = signature(sk.SVC).parameters["probability"].default  # "deprecated" from scikit-learn 1.9 on

# What scikit-learn's own methods answer from; who sets it anew has them answer.
READ = ("classes_", "support_", "support_vectors_", "_dual_coef_", "_intercept_")
SHARED = (*READ, "class_weight_", "shape_fit_", "dual_coef_", "intercept_", "n_iter_")


class LinearSVC(LinearDropIn, sk.LinearSVC):
    """scikit-learn's LinearSVC, fitted by ours: the penalty is on the intercept as well."""

    _answers = ("predict", "decision_function")

    def _learner(self) -> Any:
        require(self.multi_class == "ovr", f"multi_class={self.multi_class!r}")
        ways = WAYS.get((self.penalty, self.loss), ())
        require(
            self.dual in ways and (self.dual == "auto" or isinstance(self.dual, bool | np.bool_)),
            f"penalty={self.penalty!r}, loss={self.loss!r} and dual={self.dual!r} together",
        )
        require(math.isfinite(self.C), "C is not finite")
        require(self.tol > 0, "tol is not positive")
        require(0 < self.intercept_scaling < math.inf, "intercept_scaling is not positive")
        return liblinear.LinearSVC(
            penalty=self.penalty,
            loss=self.loss,
            tol=gap_of(self.tol),
            C=self.C,
            fit_intercept=self.fit_intercept,
            intercept_scaling=self.intercept_scaling,
            class_weight=self.class_weight,
            verbose=self.verbose,
            max_iter=self.max_iter,
        )

    def _learn(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        model = super()._learn(X, y, sample_weight)
        require(model._certificate.converged, "the limit of iterations was met")
        draw_seed(self.random_state)
        return model

    def _set_fitted(self, model: Any) -> None:
        super()._set_fitted(model)
        self.classes_, self.n_iter_ = model.classes_, model.n_iter_


class SVC(DropIn, sk.SVC):
    """scikit-learn's SVC, fitted by ours."""

    _answers = ("predict", "decision_function")
    _extras = (*DropIn._extras, "kernel_", "margin_")

    def _learner(self) -> Any:
        require(isinstance(self.kernel, str) and self.kernel in KERNELS, "the kernel is a function")
        require(self.probability == PROBABILITY, "probability is given")
        require(self.max_iter == -1, "max_iter counts LIBSVM's steps")
        require(self.tol > 0, "tol is not positive")
        require(math.isfinite(self.C), "C is not finite")
        require(get_config().get("sparse_interface", "spmatrix") == "spmatrix", "sparse arrays")
        return libsvm.SVC(
            C=self.C,
            kernel=self.kernel,
            degree=self.degree,
            gamma=self.gamma,
            coef0=self.coef0,
            shrinking=self.shrinking,
            tol=self.tol,
            cache_size=self.cache_size,
            class_weight=self.class_weight,
            verbose=self.verbose,
            decision_function_shape=self.decision_function_shape,
            break_ties=self.break_ties,
        )

    def _learn(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        require(sample_weight is None or np.ndim(sample_weight) == 1, "weights are not one a row")
        model = super()._learn(X, y, sample_weight)
        require(model._certificate.converged, "ours got no further")
        draw_seed(self.random_state)
        return model

    def _set_fitted(self, model: Any) -> None:
        for name in SHARED:
            setattr(self, name, getattr(model, name))
        self._n_support, self._num_iter, self.fit_status_ = model.n_support_, model.n_iter_, 0
        made = isinstance(self.gamma, str) and self.gamma == "scale" and self.kernel != "precomputed"
        self._gamma = np.float64(model.gamma_) if made else model.gamma_
        self._probA, self._probB, self._effective_probability = np.empty(0), np.empty(0), False
        self._sparse = not isinstance(model.dual_coef_, np.ndarray)

    def _is_ours(self) -> bool:
        ours = self._ours
        return (
            ours is not None
            and all(getattr(self, name) is getattr(ours, name) for name in READ)
            and self.break_ties == ours.break_ties
            and self.decision_function_shape == ours.decision_function_shape
        )
