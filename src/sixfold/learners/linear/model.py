"""What all linear learners share: from a table to a certified w and b, and back to predictions.

One fit is

    check the table -> state the problem -> choose a solver -> solve within a budget -> keep and certify

A learner adds what makes it itself: its parameters, its loss, and how scores become answers.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from sixfold.budget import Budget, Record
from sixfold.certificate import Certificate
from sixfold.data.checks import TrainingData, check_rows, check_training
from sixfold.errors import RankWarning, check_number
from sixfold.explain.diagnosis import describe_dependence
from sixfold.learners.callbacks import CallbackSupport
from sixfold.risk.problem import Problem
from sixfold.solvers.base import Solution, Solver, choose, thread_limit

Array = NDArray[Any]

ROUNDING = 1e-14  # a relative gap that only rounding may have left: tol=0 asks for as good as it gets


@contextmanager
def overflow_explained(data: TrainingData) -> Iterator[None]:
    """Say which values are at fault where the arithmetic inside meets what is not finite."""
    try:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            yield
    except FloatingPointError:
        data.refuse_overflow()


class LinearModel(CallbackSupport, BaseEstimator, ABC):
    """A learner whose scores are w.x + b."""

    fit_intercept: bool
    solver: str
    tol: float
    max_iter: int
    time_limit: float | None
    callbacks: Sequence[Callable[[Record], Any]] | None
    n_jobs: int | None = None

    coef_: Any
    intercept_: Any
    n_iter_: Any

    @abstractmethod
    def _problem(self, weight_sum: float) -> Problem:
        """Return the problem that the parameters state for rows whose weights have this sum."""

    def _solver_name(self) -> str:
        """Return the solver that is asked for by the name it has here."""
        return self.solver

    @abstractmethod
    def _solvers(self) -> list[Solver]:
        """Return the solvers this learner may use, the preferred ones first."""

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        data = self._check(X, y, sample_weight)
        blocks = data.blocks()
        problem = self._problem(blocks.weight_sum)
        solver = choose(self._solver_name(), problem, blocks, self._solvers())
        if not solver.notices_nonfinite:
            data.require_computable()
        with self._budget(data) as budget, thread_limit(self.n_jobs), overflow_explained(data):
            solution = solver.solve(problem, blocks, budget)
            solution = self._examine(solution, problem, data, budget)
            if not np.isfinite([solution.certificate.objective, solution.certificate.scale]).all():
                raise FloatingPointError("the objective is not finite")
        self._keep(solution, data.single_target, data.X.dtype)
        self.history_ = budget.history
        self._warn_of_one_row(data)
        self._warn_of_dependence(solution, data)
        short = not self.certificate_.converged and self.certificate_.relative_gap > ROUNDING
        if short and budget.stopped_by is None:
            budget.stopped_by = "lack of progress"  # no fit ends short of its tolerance without a word
        budget.conclude(self.certificate_, stacklevel=4)
        return self

    def _check(self, X: Any, y: Any, sample_weight: Any, reset: bool = True) -> TrainingData:
        """Return the table as solvers read it; compare with that of the fit unless ``reset``."""
        return check_training(self, X, y, sample_weight, reset=reset)

    def _examine(self, solution: Solution, problem: Problem, data: TrainingData, budget: Budget) -> Solution:
        """Look at what was found before it is kept: a learner may note, replace or refuse it."""
        return solution

    def _keep(self, solution: Solution, single_target: bool, dtype: Any) -> None:
        """Set the fitted attributes."""
        coef, intercept = solution.w.T.astype(dtype), solution.b.astype(dtype)
        if not self.fit_intercept:
            intercept = np.zeros_like(intercept)
        self.coef_ = np.ascontiguousarray(coef[0] if single_target else coef)
        self.intercept_ = intercept[0] if single_target else intercept
        self.solver_ = solution.solver
        self.n_iter_ = solution.n_iter
        self._certificate = solution.certificate
        self._found = solution.details
        self.__dict__.pop("dual_", None)
        if "dual" in solution.details:
            dual = solution.details["dual"]
            self.dual_ = dual[:, 0] if dual.shape[1] == 1 else dual

    def _warn_of_one_row(self, data: TrainingData) -> None:
        if (data.y.shape[0] if data.weight is None else np.count_nonzero(data.weight)) == 1:
            result = ": the model predicts its target everywhere" if self.fit_intercept else ""
            text = f"Only one row counts, so nothing can be learnt about the columns{result}. Pass more rows."
            warnings.warn(text, RankWarning, stacklevel=4)

    def _warn_of_dependence(self, solution: Solution, data: TrainingData) -> None:
        root = solution.details.get("root")
        if root is not None and root.dependent.size:
            text = describe_dependence(root, data.names, self.fit_intercept)
            warnings.warn(text, RankWarning, stacklevel=4)

    @contextmanager
    def _budget(self, data: TrainingData, tol: float | None = None) -> Iterator[Budget]:
        """Return the budget that the parameters state; scikit-learn's own callbacks hear of it too."""
        tol = self.tol if tol is None else tol
        check_number("tol", tol, at_least=0)
        check_number("max_iter", self.max_iter, at_least=1, whole=True, optional=True)
        check_number("time_limit", self.time_limit, above=0, optional=True)
        with (
            self._told(data.X, data.y, self.max_iter) as told,
            Budget(tol, self.max_iter, self.time_limit, [*self._own_callbacks(), *told]) as budget,
        ):
            yield budget

    @property
    def certificate_(self) -> Certificate:
        """How far from the least possible objective the fit is at most."""
        if "_certificate" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no certificate_ before it is fitted.")
        # Bound here and not when it was made, so that a copy of the model verifies itself.
        return self._certificate.bind(self)

    def decision_scores(self, X: Any) -> Array:
        """Return w.x + b for rows that are checked first."""
        check_is_fitted(self, "coef_")
        X = check_rows(self, X)
        products = X @ self.coef_.T
        scores: Array = (
            np.asarray(products.toarray() if sp.issparse(products) else products) + self.intercept_
        )
        return scores

    def _parameters(self) -> tuple[Array, Array]:
        """Return w (columns x scores) and b (scores) in float64 from the public attributes."""
        coef = self.coef_.toarray() if sp.issparse(self.coef_) else self.coef_
        w = np.atleast_2d(np.asarray(coef, dtype=np.float64)).T
        return w, np.broadcast_to(np.asarray(self.intercept_, dtype=np.float64), w.shape[1]).copy()

    def _recompute_certificate(self, X: Any, y: Any, sample_weight: Any) -> Certificate:
        """Return the certificate of the public attributes, from the data alone."""
        check_is_fitted(self, "coef_")
        data = self._check(X, y, sample_weight, reset=False)
        data.require_finite()
        w, b = self._parameters()
        kind, tolerance = self.certificate_.kind, self.certificate_.tolerance
        dual = getattr(self, "dual_", None)
        # One of another length is of other data: the objective will tell.
        dual = None if dual is None or dual.shape[0] != data.y.shape[0] else dual.reshape(dual.shape[0], -1)
        blocks = data.float64().blocks()
        problem = self._problem(blocks.weight_sum)
        certificate = problem.certify(kind, w, b, blocks, tolerance, dual)
        return replace(certificate, details=problem.rounding(w, b, blocks))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class LinearRegressor(RegressorMixin, LinearModel):
    """A linear model whose scores are the answers."""

    def predict(self, X: Any) -> Array:
        """Return w.x + b for each row.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        return self.decision_scores(X)
