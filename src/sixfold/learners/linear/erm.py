"""Empirical risk minimisation: any loss, any penalty, any solver that fits them.

    minimise  alpha * penalty(w) + (1 / n) sum_i loss(w.x_i + b, y_i)

With weights, 1/n becomes weight_i / sum of weights. The named learners are special cases of this one.

A batch of ``partial_fit`` is one pass of stochastic updates (:mod:`sixfold.solvers.first_order.sgd_updates`)
over rows that may never come back. What is certified after it is the objective on that batch, with zero as
its lower bound.
"""

from __future__ import annotations

import inspect
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any, Self, TypeVar

import numpy as np

from sixfold.budget import Budget
from sixfold.data.checks import TrainingData, check_training
from sixfold.errors import check_option
from sixfold.learners.linear.classifier import ProbabilisticClassifier
from sixfold.learners.linear.likelihood_limit import with_limit
from sixfold.learners.linear.model import LinearModel, LinearRegressor
from sixfold.risk.problem import Problem
from sixfold.solvers.base import Solution, Solver
from sixfold.solvers.first_order.options import FirstOrderOptions
from sixfold.solvers.first_order.sgd_updates import SGDState, StepRule, sgd_pass
from sixfold.solvers.first_order.stochastic import MiniBatch, StochasticGradient
from sixfold.solvers.l1.proximal_newton import PathMemory
from sixfold.solvers.registry import all_solvers
from sixfold.solvers.smooth.descent import Model

REAL_LOSSES = ("squared", "absolute", "cubed")
CLASS_LOSSES = ("logistic", "squared", "perceptron", "hinge", "squared_hinge", "softmax")
FIRST_ORDER_PARAMETERS = (
    "learning_rate", "eta0", "decay", "power_t", "average", "shuffle", "batch_size", "random_state",
)  # fmt: skip


class ERMBase(LinearModel):
    """Any loss, any penalty, any solver that fits them.

    Parameters
    ----------
    max_iter : int, default=1000
        Most iterations (epochs) of a solver, for each target.
    time_limit : float, default=None
        Most seconds; the best model so far is kept.
    callbacks : sequence of callables, default=None
        Called with a record (iteration, seconds, objective, gap) after every iteration; True stops the fit.
    learning_rate : {"auto", "constant", "decay", "invscaling"}, default="auto"
        For "gd", "sgd", "minibatch": the step after t updates is ``eta0``, ``eta0 / (1 + decay t)`` or
        ``eta0 / (t + 1)**power_t``.
    eta0 : float, default=None
        The first step; None finds one from the data.
    decay : float, default=None
        How fast "decay" falls; None takes one epoch as the unit of time.
    power_t : float, default=0.5
        The exponent of "invscaling".
    average : bool or int, default=False
        Return the average of the iterates, of all or of those after so many updates.
    shuffle : bool, default=True
        Visit the rows in a new random order in every epoch.
    batch_size : int, default=32
        Rows an update of "minibatch".
    random_state : int, default=0
        The seed of the shuffling.
    n_jobs : int, default=None
        Threads for the native loops; None or -1 for all.
    verbose : int, default=0
        Whether to print progress: the first and the last iteration, and one in half a second between.
    """

    loss: str
    learning_rate: str
    eta0: float | None
    decay: float | None
    power_t: float
    average: bool | int
    shuffle: bool
    batch_size: int

    def _options(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in FIRST_ORDER_PARAMETERS}

    def _solvers(self, start: Model | None = None, memory: PathMemory | None = None) -> list[Solver]:
        return all_solvers(start, memory, **self._options())


Kind = TypeVar("Kind", bound=type[ERMBase])


def _with_shared_parameters(model: Kind) -> Kind:
    """Add the parameters that ERMBase describes to the docstring of a learner, after its own."""
    own, shared = (inspect.cleandoc(kind.__doc__ or "") for kind in (model, ERMBase))
    model.__doc__ = own.replace("\nAttributes\n", shared.partition("----------\n")[2] + "\n\nAttributes\n", 1)
    return model


@_with_shared_parameters
class ERMRegressor(ERMBase, LinearRegressor):
    """Predict numbers by a linear function, with the loss, penalty and solver of your choice.

    Minimises ``alpha * penalty(w) + mean_i loss(w.x_i + b, y_i)``.

    Parameters
    ----------
    loss : {"squared", "absolute", "cubed"}, default="squared"
        ``(s - y)**2 / 2``, ``|s - y|`` or ``|s - y|**3 / 3`` of the score s.
    penalty : {None, "l2", "l1", "elasticnet"}, default=None
        ``|w|**2 / 2``, ``|w|_1``, or the mixture of both by ``l1_ratio``.
    alpha : float, default=1e-4
        How much the penalty counts.
    l1_ratio : float, default=0.5
        The share of the absolute values in "elasticnet".
    fit_intercept : bool, default=True
        Whether to fit b. It is never penalised.
    solver : str, default="auto"
        "direct" and "cg" (squared loss), "coordinate" and "rounded-newton" (smooth loss with absolute values
        in the penalty), "newton" and "refined-newton" (smooth loss), "interior_point" (absolute loss), "gd",
        "sgd", "minibatch" (everything). "auto" takes the first that fits, and lets the next go on where it
        ends short; ``solver_`` says which they were.
    tol : float, default=1e-6
        Stop when the certified gap is below ``tol`` times the objective of the constant model.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    feature_means_ : ndarray of shape (n_features,)
        The means of the columns, with which :meth:`explain` compares.
    mean_rows_ : int
        How many rows they were taken from: 4,096 at most, unless the solver knows those of all.
    certificate_ : Certificate
        How far from the least possible objective the fit is at most.
    dual_ : ndarray of shape (n_samples,)
        The dual point behind the certificate, where the solver has one ("interior_point").
    solver_, n_iter_, history_
        What was used, the iterations it took, and one record for each.

    Examples
    --------
    >>> import numpy as np
    >>> from sixfold import ERMRegressor
    >>> X = np.arange(6.0)[:, None]
    >>> y = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 50.0])  # the last one is an outlier
    >>> ERMRegressor(loss="absolute").fit(X, y).coef_.round(3)
    array([1.])
    """

    def __init__(
        self,
        loss: str = "squared",
        *,
        penalty: str | None = None,
        alpha: float = 1e-4,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        time_limit: float | None = None,
        callbacks: Any = None,
        learning_rate: str = "auto",
        eta0: float | None = None,
        decay: float | None = None,
        power_t: float = 0.5,
        average: bool | int = False,
        shuffle: bool = True,
        batch_size: int = 32,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.callbacks = callbacks
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.decay = decay
        self.power_t = power_t
        self.average = average
        self.shuffle = shuffle
        self.batch_size = batch_size
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _loss_name(self) -> str:
        check_option("loss", self.loss, REAL_LOSSES)
        return self.loss

    def _check(self, X: Any, y: Any, sample_weight: Any, reset: bool = True) -> TrainingData:
        return check_training(self, X, y, sample_weight, reset=reset, one_target=True)


@_with_shared_parameters
class ERMClassifier(ERMBase, ProbabilisticClassifier):
    """Tell classes apart by linear scores, with the loss, penalty and solver of your choice.

    Minimises ``alpha * penalty(w) + mean_i loss(w.x_i + b, y_i)``. With more than two classes every loss but
    "softmax" fits one class against the rest.

    Parameters
    ----------
    loss : {"logistic", "squared", "perceptron", "hinge", "squared_hinge", "softmax"}, default="logistic"
        ``log(1 + exp(-y s))``, ``(s - y)**2 / 2``, ``max(0, -y s)``, ``max(0, 1 - y s)``, its square halved,
        or cross-entropy of the softmax; y is -1 or +1.
    penalty : {None, "l2", "l1", "elasticnet"}, default="l2"
        ``|w|**2 / 2``, ``|w|_1``, or the mixture of both by ``l1_ratio``.
    alpha : float, default=1e-4
        How much the penalty counts.
    l1_ratio : float, default=0.5
        The share of the absolute values in "elasticnet".
    fit_intercept : bool, default=True
        Whether to fit b. It is never penalised.
    class_weight : dict, "balanced" or None, default=None
        How much the rows of each class count; "balanced" gives all classes the same total.
    solver : str, default="auto"
        "direct" and "cg" (squared loss), "newton", "newton-cg", "lbfgs" and "refined-newton" (smooth loss),
        "coordinate" and "rounded-newton" (absolute values in the penalty), "interior_point" and
        "dual_coordinate" (hinge), "gd", "sgd", "minibatch" (everything). "auto" takes the first that fits,
        and lets the next go on where it ends short; ``solver_`` says which they were.
    tol : float, default=1e-6
        Stop when the certified gap is below ``tol`` times the objective of the zero model.

    Attributes
    ----------
    coef_ : ndarray of shape (n_scores, n_features)
    intercept_ : ndarray of shape (n_scores,)
    classes_ : ndarray of shape (n_classes,)
    feature_means_ : ndarray of shape (n_features,)
        The means of the columns, with which :meth:`explain` compares.
    mean_rows_ : int
        How many rows they were taken from: 4,096 at most, unless the solver knows those of all.
    certificate_ : Certificate
        How far from the least possible objective the fit is at most.
    dual_ : ndarray
        The dual point behind the certificate, where the solver has one.
    solver_, n_iter_, history_
        What was used, the iterations it took, and one record for each.

    Examples
    --------
    >>> import numpy as np
    >>> from sixfold import ERMClassifier
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> ERMClassifier(loss="squared", penalty=None).fit(X, ["a", "a", "b", "b"]).coef_
    array([[0.6]])
    """

    _state: SGDState  # between batches
    _rule: StepRule

    def __init__(
        self,
        loss: str = "logistic",
        *,
        penalty: str | None = "l2",
        alpha: float = 1e-4,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        class_weight: Any = None,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        time_limit: float | None = None,
        callbacks: Any = None,
        learning_rate: str = "auto",
        eta0: float | None = None,
        decay: float | None = None,
        power_t: float = 0.5,
        average: bool | int = False,
        shuffle: bool = True,
        batch_size: int = 32,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.callbacks = callbacks
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.decay = decay
        self.power_t = power_t
        self.average = average
        self.shuffle = shuffle
        self.batch_size = batch_size
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _loss_name(self) -> str:
        check_option("loss", self.loss, CLASS_LOSSES)
        return self.loss

    def _postprocess(
        self, solution: Solution, problem: Problem, data: TrainingData, budget: Budget
    ) -> Solution:
        self.__dict__.pop("_state", None)  # batches go on from this fit
        return super()._postprocess(with_limit(solution, problem, data, budget), problem, data, budget)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Make one pass of stochastic updates over these rows, from where the last call ended.

        Starts from zero weights, or from those of ``fit``, with the step ``eta0`` (found on the first batch
        if None) and the schedule ``learning_rate``; ``solver="minibatch"`` updates once every ``batch_size``
        rows.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        classes : array of shape (n_classes,), default=None
            All labels that there are; needed in the first call.
        sample_weight : array of shape (n_samples,), default=None

        Returns
        -------
        ERMClassifier
            The model itself.
        """
        check = partial(self._check_batch, classes=classes)
        return self._run_batch(X, y, sample_weight, check, self._learn_batch)

    def _learn_batch(self, problem: Problem, data: TrainingData, budget: Budget) -> Solution:
        """Make one pass over the rows, from where the last batch ended."""
        data.require_computable()
        blocks, scores = data.blocks(), self.classes_.size if self.loss == "softmax" else data.y.shape[1]
        # Steps are those of the textbook: the columns of later batches may have another spread.
        options = FirstOrderOptions(**self._options(), standardize=False)
        random = options.generator()
        if "_state" not in self.__dict__:
            start = np.zeros((blocks.n_columns, scores)), np.zeros(scores)
            if hasattr(self, "coef_"):
                start = self._parameters()
            solver = (MiniBatch if self.solver == "minibatch" else StochasticGradient)(options)
            eta0 = self.eta0 or solver.first_step(problem, blocks, budget, random, scores)
            # A perceptron at zero has to take a score of 0 for a mistake, or it would stay there.
            at_zero = "wrong" if self.loss == "perceptron" else None
            self._rule = replace(solver.rule(problem, blocks.n_rows, eta0), at_zero=at_zero)
            average = options.average_from is not None
            self._state = SGDState.at(*start, sparse=blocks.sparse, average=average)
        self._state = deepcopy(self._state)  # a batch that fails leaves the state of the last one
        for block in blocks:
            rows = np.arange(block.y.shape[0], dtype=np.int64)
            order = random.permutation(rows) if self.shuffle else rows
            if not sgd_pass(self._state, block, problem, self._rule, order, None, budget):
                break
        w, b = (part.astype(data.X.dtype).astype(np.float64) for part in self._state.model(self._rule))
        objective = problem.objective(w, b, blocks)
        if not np.isfinite(objective):
            raise FloatingPointError("the objective is not finite")
        budget.record(objective, objective, 1.0)
        budget.history[:0] = getattr(self, "history_", [])  # of the batches before
        notes = ("of the last batch alone, with zero as its lower bound",)
        scale = problem.constant_loss(np.zeros(scores), blocks)
        certificate = problem.certify_zero(w, b, blocks, scale, budget.tol, notes)
        return Solution(w, b, certificate, "sgd")
