"""Logistic regression: class probabilities from weighted sums, the most likely ones given the rows.

    two classes   P(second | x) = 1 / (1 + exp(-(w.x + b)))
    more          P(c | x) = exp(w_c.x + b_c) / sum_k exp(w_k.x + b_k)                  (softmax)

    minimise      C sum_i -log P(y_i | x_i) + penalty(w)

which divided by C n is alpha * penalty(w) + mean loss with alpha = 1 / (C n), the form used inside. With
weights, n is their sum. The penalty is |w|^2 / 2 for l1_ratio = 0, |w|_1 for 1, and their mixture between;
none for C = inf.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from sixfold.budget import Budget
from sixfold.data.blocks import Blocks
from sixfold.data.checks import TrainingData
from sixfold.data.labels import check_labelled
from sixfold.errors import (
    InputError,
    PerfectSeparation,
    SeparationWarning,
    check_flag,
    check_number,
    check_option,
    warn,
)
from sixfold.explain.diagnosis import describe_separation
from sixfold.explain.logit_summary import (
    Likelihood,
    LogitSummary,
    likelihood_of,
    measure_likelihood,
    summarise_logit,
)
from sixfold.learners.linear.classifier import ProbabilisticClassifier
from sixfold.learners.linear.likelihood_limit import limit_model, separates, with_note
from sixfold.risk.penalties import make_penalty
from sixfold.risk.problem import Problem, scores
from sixfold.risk.rank import column_space
from sixfold.solvers.base import Solution, Solver
from sixfold.solvers.l1.proximal_newton import PathMemory
from sixfold.solvers.separation.separating_columns import important_columns, separating_columns
from sixfold.solvers.separation.separation import SEPARATED, Separation, separate
from sixfold.solvers.smooth.descent import Model

Array = NDArray[Any]

PENALTIES = ("auto", None, "l2", "l1", "elasticnet")
SETTLED_MOVE = 0.1  # change of any row's score in the last step, below which iterates have come to rest
CERTAIN_SCORE = 12.0  # beyond, a row hardly counts any more: its probability is off by 6e-6
SEPARATED_SUMMARY = "The classes are separated: the likelihood has no maximum"
SEPARATED_NOTE = "the classes are separated, so that without the penalty the coefficients would have no limit"
# scikit-learn's names for solvers that have another name here, or no counterpart (for that loss).
SKLEARN_SOLVERS = {"newton-cholesky": "newton", "liblinear": "auto", "sag": "auto", "saga": "auto"}
SKLEARN_SOFTMAX_SOLVERS = SKLEARN_SOLVERS | {"newton-cg": "auto"}


class LogisticRegression(ProbabilisticClassifier):
    """Learn class probabilities by maximum likelihood, with or without a penalty.

    Minimises ``C * sum_i -log P(y_i | x_i) + penalty(w)``; two classes share one score, more than two are
    fitted together (softmax with cross-entropy). A drop-in for scikit-learn's class that does not end
    unconverged: columns of any scale, and a certified gap of ``tol``.

    Parameters
    ----------
    penalty : {"auto", None, "l2", "l1", "elasticnet"}, default="auto"
        What to add to the loss. "auto" lets ``l1_ratio`` and ``C`` say it, as scikit-learn 1.8 and later do.
    C : float, default=1.0
        How much the loss counts beside the penalty: a small C means a strong penalty; infinity means none.
    l1_ratio : float, default=0.0
        The share of absolute values in the penalty: 0 is "l2", 1 is "l1". None means 0.
    dual : bool, default=False
        Accepted for scikit-learn's sake; see docs/differences.md.
    tol : float, default=1e-6
        Stop when the certified gap is below ``tol`` times the loss of guessing, log(number of classes).
    fit_intercept : bool, default=True
        Whether to fit b. It is never penalised.
    intercept_scaling : float, default=1.0
        Accepted for scikit-learn's sake; see docs/differences.md.
    class_weight : dict, "balanced" or None, default=None
        How much the rows of each class count; "balanced" gives all classes the same total.
    random_state : int or None, default=0
        The seed of the stochastic solvers.
    solver : str, default="auto"
        "newton" (tall tables), "lbfgs" (many classes), "newton-cg" (many columns), "refined-newton" (weak
        penalties, columns that nearly depend on each other), "coordinate" and "rounded-newton" (absolute
        values in the penalty), "gd", "sgd", "minibatch" (everything). "auto" chooses, lets another go on
        where the first ends short, and ``solver_`` says which they were. Names of scikit-learn's solvers that
        are not here ("liblinear", "sag", "saga", and "newton-cg" for more than two classes) mean "auto";
        "newton-cholesky" means "newton".
    max_iter : int, default=1000
        Most iterations (epochs) of a solver.
    verbose : int, default=0
        Whether to print progress: the first and the last iteration, and one in half a second between.
    warm_start : bool, default=False
        Whether to start from the coefficients of the last fit ("newton", "lbfgs", "newton-cg").
    n_jobs : int, default=None
        Threads for the native loops; None or -1 for all.
    on_separation : {"warn", "raise"}, default="warn"
        What to do when there is no penalty and the classes can be separated, so that the likelihood has no
        maximum: warn and keep the model that the coefficients tend to, or raise :class:`PerfectSeparation`.
    time_limit : float, default=None
        Most seconds; the best model so far is kept, with a :class:`StoppedEarly` warning.
    callbacks : sequence of callables, default=None
        Called with a record (iteration, seconds, objective, gap) after every iteration; True stops the fit.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    feature_means_ : ndarray of shape (n_features,)
        The means of the columns, with which :meth:`explain` compares.
    mean_rows_ : int
        How many rows they were taken from: 4,096 at most, unless the solver knows those of all.
    certificate_ : Certificate
        How far from the least possible objective the fit is at most; ``certificate_.verify(X, y)`` recomputes
        it.
    solver_, n_iter_, history_
        What was used, the iterations it took (as an array of one), and one record for each.

    Examples
    --------
    >>> import numpy as np
    >>> from sixfold import LogisticRegression
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    >>> y = np.array(["no", "no", "yes", "no", "yes", "yes"])
    >>> model = LogisticRegression(C=np.inf).fit(X, y)
    >>> model.predict_proba([[2.5]]).round(3)
    array([[0.5, 0.5]])
    >>> model.certificate_.converged
    True
    """

    def __init__(
        self,
        penalty: str | None = "auto",
        *,
        C: float = 1.0,
        l1_ratio: float | None = 0.0,
        dual: bool = False,
        tol: float = 1e-6,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: Any = None,
        random_state: Any = 0,
        solver: str = "auto",
        max_iter: int = 1000,
        verbose: int = 0,
        warm_start: bool = False,
        n_jobs: int | None = None,
        on_separation: str = "warn",
        time_limit: float | None = None,
        callbacks: Any = None,
    ) -> None:
        self.penalty = penalty
        self.C = C
        self.l1_ratio = l1_ratio
        self.dual = dual
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.random_state = random_state
        self.solver = solver
        self.max_iter = max_iter
        self.verbose = verbose
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.on_separation = on_separation
        self.time_limit = time_limit
        self.callbacks = callbacks

    def _loss_name(self) -> str:
        return "logistic" if self.classes_.size == 2 else "softmax"

    def _problem(self, weight_sum: float) -> Problem:
        check_flag("fit_intercept", self.fit_intercept)
        check_option("on_separation", self.on_separation, ("warn", "raise"))
        check_number("C", self.C, above=0)
        name, l1_ratio = self._penalty()
        alpha = 0.0 if name is None else 1.0 / (self.C * weight_sum)
        return Problem(self._loss(), make_penalty(name, l1_ratio), alpha, bool(self.fit_intercept))

    def _penalty(self) -> tuple[str | None, float]:
        """Return the name of the penalty and the share of absolute values."""
        check_option("penalty", self.penalty, PENALTIES)
        if self.penalty == "elasticnet" and self.l1_ratio is None:
            raise InputError("l1_ratio must be specified when penalty is elasticnet. Use for instance 0.5.")
        l1_ratio = make_penalty("elasticnet", 0.0 if self.l1_ratio is None else self.l1_ratio).l1
        if np.inf == self.C or self.penalty is None:
            return None, l1_ratio
        if self.penalty != "auto":
            return self.penalty, l1_ratio
        return {0.0: "l2", 1.0: "l1"}.get(l1_ratio, "elasticnet"), l1_ratio

    def _solver_name(self) -> str:
        names = SKLEARN_SOLVERS if self._loss_name() == "logistic" else SKLEARN_SOFTMAX_SOLVERS
        return names.get(self.solver, self.solver)

    def _solvers(self, start: Model | None = None, memory: PathMemory | None = None) -> list[Solver]:
        check_flag("warm_start", self.warm_start)
        if start is None and self.warm_start and hasattr(self, "coef_"):
            start = self._parameters()
        scores = 1 if self.classes_.size == 2 else self.classes_.size
        fits = start is not None and start[0].shape == (self.n_features_in_, scores)
        return super()._solvers(start if fits else None, memory)

    def _postprocess(
        self, solution: Solution, problem: Problem, data: TrainingData, budget: Budget
    ) -> Solution:
        for name in ("_likelihood", "_no_summary"):
            self.__dict__.pop(name, None)
        blocks = data.blocks()
        if problem.penalised:
            apart = separates(problem, solution, blocks) if solution.wrong is None else solution.wrong == 0
            return with_note(solution, SEPARATED_NOTE) if apart else solution
        if budget.seconds_left > 0 and self._may_diverge(solution, blocks):
            found = separate(problem, blocks, budget, start=(solution.w, solution.b))
            if found.kind in SEPARATED:
                return self._separated(found, solution, problem, data, budget)
        solution = self._with_unique_coefficients(solution, problem, data, budget)
        known = solution.likelihood
        if known is not None:
            self._likelihood: Likelihood | None = likelihood_of(known, problem.fit_intercept)
        elif solution.certificate.converged:
            self._likelihood = measure_likelihood(
                solution.w,
                solution.b,
                blocks,
                problem.fit_intercept,
                budget.flag,
                column_space(blocks, problem.fit_intercept),
            )
        return solution

    def _penalty_advice(self) -> str:
        if self.penalty is not None:
            return "a finite C"
        return "penalty='l2'" + " with a finite C" * (np.inf == self.C)

    def _may_diverge(self, solution: Solution, blocks: Blocks) -> bool:
        """Return whether the coefficients may be on their way to infinity.

        Where the likelihood has a maximum, the fit converges and Newton's last step is tiny. On the way to
        infinity steps move scores by about 1, until some rows are so certain that they no longer count.
        """
        if solution.last_move > SETTLED_MOVE or not solution.certificate.converged:
            return True
        if solution.likelihood is not None:
            return solution.likelihood.largest > CERTAIN_SCORE
        return any(np.abs(scores(block, solution.w, solution.b)).max() > CERTAIN_SCORE for block in blocks)

    def _separated(
        self, found: Separation, solution: Solution, problem: Problem, data: TrainingData, budget: Budget
    ) -> Solution:
        """Raise PerfectSeparation, or warn and return the model that the coefficients tend to."""
        alone = separating_columns(problem, data.blocks())
        raises = self.on_separation == "raise"
        text = describe_separation(found, alone, data.names, self.classes_.tolist(), kept=not raises)
        if raises:
            columns = [data.names[j] for j in important_columns(found)]
            raise PerfectSeparation(text, (found.w, found.b), columns, found.kind)
        warn(text, SeparationWarning)
        self._no_summary = SEPARATED_SUMMARY
        return limit_model([found], solution, problem, data, budget.tol)

    def _set_fitted(self, solution: Solution, data: TrainingData, budget: Budget) -> None:
        super()._set_fitted(solution, data, budget)
        self.n_iter_ = np.array([solution.n_iter], dtype=np.int32)  # an array, as scikit-learn has it

    def log_likelihood(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return sum_i weight_i log P(y_i | x_i): how probable the labels are under the model.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), default=None

        Returns
        -------
        float
        """
        check_is_fitted(self, "coef_")
        data = check_labelled(self, X, y, sample_weight, classes=self.classes_, reset=False)
        log_p = np.take_along_axis(self.predict_log_proba(X), data.index[:, None], axis=1)[:, 0]
        return float(log_p.sum() if data.weight is None else data.weight @ log_p)

    def summary(self, confidence: float = 0.95) -> LogitSummary:
        """Return standard errors, z, p and confidence intervals of an unpenalised fit.

        Parameters
        ----------
        confidence : float, default=0.95
            The probability with which an interval covers the true coefficient.

        Returns
        -------
        LogitSummary
            Plain data (``to_dict()``) that prints as a table. With more than two classes a list of them, each
            class against the first.
        """
        check_is_fitted(self, "coef_")
        return summarise_logit(self, confidence)
