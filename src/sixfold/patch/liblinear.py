"""Our linear support vector machine on LIBLINEAR's problem, whose penalty is on the intercept as well.

    minimise    penalty(v) + C sum_i loss(y_i v.(x_i, s)),        v = (w, b / s)

with s = ``intercept_scaling``: a column of s is appended to X, and no intercept is left free. Certificates
are of this problem, and are verified with X as users have it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

import sixfold
from sixfold.budget import Budget
from sixfold.data.checks import TrainingData
from sixfold.patch.drop_in import require
from sixfold.risk.problem import Problem
from sixfold.solvers.base import Solution
from sixfold.verify.linear.claim import LinearClaim


class LinearSVC(sixfold.LinearSVC):
    """Ours, in float64 and with a penalty on the intercept."""

    coef_: Any
    n_iter_: Any
    feature_means_: Any

    def _check(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        reset: bool = True,
        classes: NDArray[Any] | None = None,
    ) -> TrainingData:
        data = super()._check(X, y, sample_weight, reset, classes)
        require(self.class_weight is None or self.classes_.size == 2, "LIBLINEAR counts the rest with 1")
        require_short_indices(data.X)
        data = data.float64()
        return replace(data, X=with_column(data.X, self.intercept_scaling)) if self.fit_intercept else data

    def _problem(self, weight_sum: float) -> Problem:
        return replace(super()._problem(weight_sum), fit_intercept=False)

    def _set_fitted(self, solution: Solution, data: TrainingData, budget: Budget) -> None:
        super()._set_fitted(solution, data, budget)
        self.n_iter_ = int(np.max(self.n_iter_))
        if not self.fit_intercept:
            self.intercept_ = 0.0
            return
        self.intercept_ = self.intercept_scaling * self.coef_[:, -1]
        self.coef_ = np.ascontiguousarray(self.coef_[:, :-1])
        self.feature_means_ = self.feature_means_[:-1]
        with np.errstate(divide="ignore"):
            margin = 1.0 / np.linalg.norm(self.coef_, axis=1)
        self.margin_ = float(margin[0]) if margin.size == 1 else margin

    def _claim(self, X: Any, y: Any, sample_weight: Any) -> LinearClaim:
        claim = super()._claim(X, y, sample_weight)
        if not self.fit_intercept:
            return claim
        w = np.vstack([claim.w, claim.b / self.intercept_scaling])
        return replace(claim, w=w, b=np.zeros_like(claim.b))


def with_column(X: Any, value: float) -> Any:
    """Return X with one more column, which holds this value.

    >>> with_column(np.array([[1.0], [2.0]]), 5.0)
    array([[1., 5.],
           [2., 5.]])
    """
    rows, columns = X.shape
    if sp.issparse(X):
        return sp.hstack([X, np.full((rows, 1), float(value))], format="csr")
    result = np.empty((rows, columns + 1), order="C" if X.flags.c_contiguous else "F")
    result[:, :-1], result[:, -1] = X, value
    return result


def require_short_indices(X: Any) -> None:
    """Leave to scikit-learn what LIBLINEAR and LIBSVM refuse: indices of 64 bits."""
    require(not sp.issparse(X) or X.indices.dtype == X.indptr.dtype == np.int32, "indices of 64 bits")
