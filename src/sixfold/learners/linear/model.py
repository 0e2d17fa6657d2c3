"""What all linear learners share: from a table to a certified w and b, and back to predictions.

    minimise  alpha * penalty(w) + (1 / n) sum_i loss(w.x_i + b, y_i)

With weights, 1/n becomes weight_i / sum of weights. The steps of a fit are those of
:mod:`sixfold.learners.base`; a learner adds its parameters, its loss, and how scores become answers.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from sixfold.budget import Budget, Record
from sixfold.certificate import Certificate
from sixfold.data.checks import TrainingData, check_rows, check_training
from sixfold.data.column_means import ColumnMeans, column_means
from sixfold.errors import InputError, RankWarning, check_flag, check_number, warn
from sixfold.explain.diagnosis import describe_dependence
from sixfold.learners.base import IterativeLearner, Step
from sixfold.learners.linear.explained import ExplainedScores
from sixfold.risk.losses import LOSSES, Loss
from sixfold.risk.penalties import make_penalty
from sixfold.risk.problem import Problem, normalized_weights
from sixfold.risk.rank import column_space
from sixfold.solvers.base import Solution, Solver, climb, ladder
from sixfold.solvers.l1.proximal_newton import PathMemory
from sixfold.solvers.least_squares.direct import DirectSolution
from sixfold.solvers.registry import all_solvers
from sixfold.solvers.smooth.descent import Model
from sixfold.solvers.threads import thread_limit
from sixfold.verify.recomputed import Recomputed

if TYPE_CHECKING:
    from sixfold.verify.linear import LinearClaim

Array = NDArray[Any]

MOST_COMPARED_COLUMNS = 4000  # beyond, products of all pairs of columns are no longer cheap
ROUNDING_GAP = 1e-14  # a relative gap that only rounding may have left: tol=0 asks for as good as it gets


class LinearModel(ExplainedScores, IterativeLearner):
    """A learner whose scores are w.x + b."""

    penalty: str | None
    alpha: float
    l1_ratio: Any
    fit_intercept: bool
    solver: str
    random_state: Any
    tol: float
    max_iter: int
    time_limit: float | None
    callbacks: Sequence[Callable[[Record], Any]] | None

    coef_: Any
    intercept_: Any
    n_iter_: Any
    _kinks: tuple[tuple[Array, Array], ...]  # rows on a kink of the loss and their slopes, one a score

    @abstractmethod
    def _loss_name(self) -> str:
        """Return the name of the loss; ``classes_`` is known where there are classes."""

    def _loss(self) -> Loss:
        return LOSSES[self._loss_name()]

    def _problem(self, weight_sum: float) -> Problem:
        """Return the problem that the parameters state for rows whose weights have this sum."""
        check_flag("fit_intercept", self.fit_intercept)
        positive = getattr(self, "positive", False)  # a parameter of LinearRegression
        check_flag("positive", positive)
        check_number("alpha", self.alpha, at_least=0, finite=True)
        penalty = make_penalty(self.penalty, self.l1_ratio, bool(positive))
        alpha = 0.0 if self.penalty is None else float(self.alpha)
        return Problem(self._loss(), penalty, alpha, bool(self.fit_intercept))

    def _solver_name(self) -> str:
        """Return the solver that is asked for by the name it has here."""
        return self.solver

    def _solvers(self, start: Model | None = None, memory: PathMemory | None = None) -> list[Solver]:
        """Return the solvers this learner may use, the preferred ones first.

        ``start`` and ``memory`` are the model of a problem nearby and what was found on the way to it.
        """
        return all_solvers(start, memory, random_state=self.random_state)

    def _state_problem(self, data: TrainingData) -> Problem:
        return self._problem(data.blocks().weight_sum)

    def _solve(
        self,
        problem: Problem,
        data: TrainingData,
        budget: Budget,
        start: Model | None = None,
        memory: PathMemory | None = None,
    ) -> Solution:
        blocks = data.blocks()
        rungs = ladder(self._solver_name(), problem, blocks, self._solvers(start, memory))
        if not rungs[0].notices_nonfinite:
            data.require_computable()
        solution = self._postprocess(climb(rungs, problem, blocks, budget), problem, data, budget)
        if not math.isfinite(solution.certificate.objective + solution.certificate.scale):
            raise FloatingPointError("the objective is not finite")
        return solution

    def _check(self, X: Any, y: Any, sample_weight: Any, reset: bool = True) -> TrainingData:
        """Return the table as solvers read it; compare with that of the fit unless ``reset``."""
        return check_training(self, X, y, sample_weight, reset=reset)

    def _fit_on_cluster(self, X: Any, y: Any, sample_weight: Any, solve: Step) -> Self:
        from sixfold.learners.linear.on_cluster import fit_on_cluster

        starts = getattr(solve, "keywords", {})  # of learners that take some
        return fit_on_cluster(self, X, y, sample_weight, **starts)

    def _postprocess(
        self, solution: Solution, problem: Problem, data: TrainingData, budget: Budget
    ) -> Solution:
        """Return the solution of a whole fit, with notes or another model in its place, or refuse it."""
        return self._with_unique_coefficients(solution, problem, data, budget)

    def _with_unique_coefficients(
        self, solution: Solution, problem: Problem, data: TrainingData, budget: Budget
    ) -> Solution:
        """Return the shortest of the coefficients that predict the same, and warn where there are several."""
        free = not problem.penalised and not problem.penalty.positive
        # The solver has found them already, or that there are none.
        known = isinstance(solution, DirectSolution) or solution.likelihood is not None
        blocks = data.blocks()
        # With fewer rows than columns that goes without saying, and solvers stay in the space of the rows.
        most = min(blocks.n_rows, MOST_COMPARED_COLUMNS)
        if not free or known or budget.seconds_left <= 0 or blocks.n_columns > most:
            return solution
        space = column_space(blocks, problem.fit_intercept)
        if not space.dependent.size:
            return solution
        warn(describe_dependence(space, data.names, self.fit_intercept, self._penalty_advice()), RankWarning)
        w = blocks.rounded(space.shortest(solution.w))
        mean = sum(block.X.T @ normalized_weights(block, blocks) for block in blocks)
        b = blocks.rounded(solution.b + problem.fit_intercept * (mean @ (solution.w - w)))
        before = solution.certificate
        certificate = problem.certify(before.kind, w, b, blocks, budget.tol, solution.dual)
        notes = (*before.notes, *(note for note in certificate.notes if note not in before.notes))
        return replace(solution, w=w, b=b, certificate=replace(certificate, notes=notes))

    def _penalty_advice(self) -> str:
        """Return which parameters would add a penalty that makes coefficients unique."""
        return "alpha > 0" if self.penalty is not None else "penalty='l2'"

    def _threads(self, data: TrainingData) -> AbstractContextManager[None]:
        return thread_limit(self.n_jobs, values=math.prod(data.X.shape))

    def _coef_dtype(self, data: TrainingData) -> Any:
        """Return the type in which the coefficients were certified."""
        return data.X.dtype

    def _set_fitted(self, solution: Solution, data: TrainingData, budget: Budget) -> None:
        dtype = self._coef_dtype(data)
        coef, intercept = solution.w.T.astype(dtype), solution.b.astype(dtype)
        if not self.fit_intercept:
            intercept = np.zeros_like(intercept)
        self.coef_ = np.ascontiguousarray(coef[0] if data.single_target else coef)
        self.intercept_ = intercept[0] if data.single_target else intercept
        self.solver_ = solution.solver
        self.n_iter_ = solution.n_iter
        self.history_ = budget.history
        self._certificate = solution.certificate
        self._set_means(self._means_of(solution, data))
        for name in ("dual_", "_kinks"):
            self.__dict__.pop(name, None)
        if solution.kinks:
            self._kinks = solution.kinks
        if solution.dual is not None:
            self.dual_ = solution.dual[:, 0] if solution.dual.shape[1] == 1 else solution.dual

    def _means_of(self, solution: Solution, data: TrainingData) -> ColumnMeans:
        """Return the means of the columns, those that the solver knows without another pass."""
        if isinstance(solution, DirectSolution):
            known = solution.moments
            return ColumnMeans(known.mean[: known.n_columns].copy(), known.rows, known.weight)
        if solution.means is not None:
            return solution.means
        blocks = data.blocks()
        if blocks.mean is None:
            return column_means(data.X, data.weight)
        rows = blocks.n_rows if data.weight is None else int(np.count_nonzero(data.weight))
        return ColumnMeans(blocks.mean.copy(), rows, blocks.weight_sum)

    def _run_batch(self, X: Any, y: Any, sample_weight: Any, check: Step, solve: Step) -> Self:
        def solve_and_average(problem: Problem, data: TrainingData, budget: Budget) -> Solution:
            before = self._known_means()
            solution: Solution = solve(problem, data, budget)  # type: ignore[misc]
            if isinstance(solution, DirectSolution):  # which knows the moments of all rows
                return solution
            means = column_means(data.X, data.weight)
            return replace(solution, means=means if before is None else before.with_rows_of(means))

        return super()._run_batch(X, y, sample_weight, check, solve_and_average)

    def _warn(self, solution: Solution, data: TrainingData, budget: Budget) -> None:
        self._warn_of_one_row(data)
        self._warn_of_dependence(solution, data)
        short = not self._certificate.converged and self._certificate.relative_gap > ROUNDING_GAP
        if short:  # no fit ends short of its tolerance without a word
            budget.stopped_by = budget.shortened_by or "lack of progress"
        super()._warn(solution, data, budget)

    def _warn_of_one_row(self, data: TrainingData) -> None:
        if (data.y.shape[0] if data.weight is None else np.count_nonzero(data.weight)) == 1:
            result = ": the model predicts its target everywhere" if self.fit_intercept else ""
            text = f"Only one row counts, so nothing can be learnt about the columns{result}. Pass more rows."
            warn(text, RankWarning)

    def _warn_of_dependence(self, solution: Solution, data: TrainingData) -> None:
        if isinstance(solution, DirectSolution) and solution.factor.dependent.size:
            warn(
                describe_dependence(solution.factor, data.names, self.fit_intercept, self._penalty_advice()),
                RankWarning,
            )

    def _limits(self) -> tuple[float, int | None]:
        return self.tol, self.max_iter

    @contextmanager
    def _arithmetic(self, data: TrainingData) -> Iterator[None]:
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                yield
        except FloatingPointError:
            data.refuse_overflow()

    def decision_scores(self, X: Any) -> Array:
        """Return w.x + b for rows that are checked first."""
        check_is_fitted(self, "coef_")
        X = check_rows(self, X)
        products = X @ self.coef_.T
        scores: Array = (
            np.asarray(products.toarray() if sp.issparse(products) else products) + self.intercept_
        )
        return scores

    def _recompute(self, claimed: Certificate, X: Any, y: Any, sample_weight: Any) -> Recomputed:
        from sixfold.verify.linear import recompute

        claim = self._claim(X, y, sample_weight)
        with thread_limit(self.n_jobs, values=math.prod(claim.X.shape)):
            return recompute(claim, claimed)

    def _claim(self, X: Any, y: Any, sample_weight: Any) -> LinearClaim:
        """Return the public attributes and the data as the checker reads them."""
        from sixfold.verify.linear import LinearClaim  # ten modules, which a fit does without

        check_is_fitted(self, "coef_")
        data = self._check(X, y, sample_weight, reset=False)
        data.require_finite()
        data = data.float64()
        problem = self._state_problem(data)
        targets = data.y[:, 0] if problem.loss.labels == "class" else data.y
        dual = getattr(self, "dual_", None)
        if dual is None and "_kinks" in self.__dict__:
            dual = self._dual_with_kinks(problem, data)
        # One of another length is of other data: the objective will tell.
        dual = None if dual is None or dual.shape[0] != data.y.shape[0] else dual.reshape(dual.shape[0], -1)
        return LinearClaim(
            data.X,
            targets,
            data.weight,
            *self._parameters(),
            problem.loss.name,
            problem.l1,
            problem.l2,
            problem.penalty.positive,
            problem.fit_intercept,
            dual,
            float(np.finfo(self.coef_.dtype).eps),
        )

    def _dual_with_kinks(self, problem: Problem, data: TrainingData) -> Array:
        """Return the slopes of the loss, and at the kink what the solver found there."""
        w, b = self._parameters()
        dual = np.array(problem.loss.gradient(data.X @ w + b, problem.targets(data.blocks().whole())))
        for column, (rows, slopes) in zip(dual.T, self._kinks, strict=True):
            there = rows < column.size
            column[rows[there]] = slopes[there]
        return dual

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class LinearRegressor(RegressorMixin, LinearModel):
    """A linear model whose scores are the predictions."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            The columns to predict from.
        y : array of shape (n_samples,); for LinearRegression also (n_samples, n_targets)
            The numbers to predict.
        sample_weight : array of shape (n_samples,), default=None
            How much each row counts.

        Returns
        -------
        LinearRegressor
            The fitted model itself.
        """
        return self._run_fit(X, y, sample_weight)

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


def check_start(name: str, values: Any, shape: tuple[int, ...]) -> Array:
    """Return what to start from in the shape it has to have; one score may be given without its axis."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape and (shape[0] > 1 or array.size != math.prod(shape)):
        raise InputError(
            f"{name} has shape {array.shape}, but {shape} is needed. Leave it out to start at zero."
        )
    return array.reshape(shape)
