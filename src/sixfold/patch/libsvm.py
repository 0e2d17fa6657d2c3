"""Our support vector machine with a kernel as LIBSVM, and scikit-learn around it, have it.

What is another there:

    rows           float64; sparse ones are answered where the fit was on sparse ones
    "balanced"     counts rows, whatever their weights are
    decisions      a pair whose decision is exactly 0 counts for its first class in the scores of classes,
                   though ``predict`` votes for the second
    dual_coef_     of a sparse fit stores its zeros too: LIBSVM reads the numbers without their places

The order of support vectors and the public signs of coefficients are the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.multiclass import _ovr_decision_function

import sixfold
from sixfold.budget import Budget
from sixfold.data.labels import LabelledData, class_factors
from sixfold.geometry.kernels.standard import gamma_for
from sixfold.learners.svm.svc import KernelProblem, KernelSolution
from sixfold.patch.drop_in import require
from sixfold.patch.liblinear import require_short_indices

Array = NDArray[Any]


class SVC(sixfold.SVC):
    """Ours, with what LIBSVM and scikit-learn make of rows, weights and decisions.

    Attributes
    ----------
    gamma_ : float
        The gamma of the fit, whether the kernel has one or not; 0 where X holds kernel values.
    _dual_coef_, _intercept_
        The signs as LIBSVM has them.
    """

    gamma_: float
    support_vectors_: Any
    dual_coef_: Any

    def _check(self, X: Any, y: Any, sample_weight: Any, reset: bool = True) -> LabelledData:
        data = super()._check(X, y, sample_weight, reset)
        require_short_indices(data.X)
        return replace(data, X=data.X.astype(np.float64, copy=False))

    def _class_factors(self, data: LabelledData) -> Array:
        return class_factors(self.class_weight, data.classes, data.index, None)

    def _state_problem(self, data: LabelledData) -> KernelProblem:
        problem = super()._state_problem(data)
        made = getattr(problem.rows.kernel, "gamma", None)
        if self._takes_values():
            self.gamma_ = 0.0
        else:
            self.gamma_ = gamma_for(self.gamma, data.X) if made is None else made
        return problem

    def _set_fitted(self, solution: KernelSolution, data: LabelledData, budget: Budget) -> None:
        super()._set_fitted(solution, data, budget)
        if sp.issparse(data.X):
            self.support_vectors_ = sp.csr_matrix(self.support_vectors_)
            self.support_vectors_.sort_indices()
            self.dual_coef_ = stored_whole(self.dual_coef_.toarray())
        # LIBSVM counts the first of two classes as positive, where the public attributes count the second.
        two = data.classes.size == 2
        self._dual_coef_ = -self.dual_coef_ if two else self.dual_coef_
        self._intercept_ = -self.intercept_ if two else self.intercept_.copy()

    def _rows(self, X: Any) -> Any:
        require(sp.issparse(self.support_vectors_) or not sp.issparse(X), "sparse rows after a dense fit")
        return super()._rows(X)

    def _shape_decisions(self, decisions: Array) -> Array:
        if self._pairwise and self.decision_function_shape == "ovr":
            scores: Array = _ovr_decision_function(decisions < 0, -decisions, self.classes_.size)
            return scores
        return super()._shape_decisions(decisions)

    def _tie_winners(self, decisions: Array) -> Array:
        winners: Array = self._shape_decisions(decisions).argmax(axis=1)
        return winners


def stored_whole(values: Array) -> Any:
    """Return a CSR matrix that stores every number, zeros too.

    >>> stored_whole(np.array([[1.0, 0.0]])).nnz
    2
    """
    rows, columns = values.shape
    indices = np.tile(np.arange(columns, dtype=np.int32), rows)
    bounds = np.arange(0, rows * columns + 1, columns, dtype=np.int32)
    return sp.csr_matrix((values.ravel(), indices, bounds), shape=values.shape)
