"""Stochastic gradient descent as scikit-learn has it: one step a row, until epochs no longer improve it.

    minimise  alpha * penalty(w) + (1 / n) sum_i weight_i loss(w.x_i + b, y_i)

    w <- max(0, 1 - eta_t alpha l2) w - eta_t weight_i loss'(w.x_i + b, y_i) x_i       for row after row

=============  =====================================  ======================================================
learning_rate  eta_t after t = 0, 1, ... updates      given to the native loop as
=============  =====================================  ======================================================
constant       eta0                                   constant
optimal        1 / (alpha (t + t0))                   decay, eta0 / (1 + rate t) with eta0 = alpha^(-1/4)
                                                      and rate = 1 / t0 = eta0 alpha
invscaling     eta0 / (t + 1)^power_t                 invscaling
adaptive       eta0, later eta0 / 5, eta0 / 25, ...   constant, from epoch to epoch
=============  =====================================  ======================================================

*Scaling.* A problem here divides by the sum of the weights and not by n, and its squared hinge is half of
scikit-learn's. With m = (sum of weights) / n, times 2 for the squared hinge, the objective above is m times
that with alpha / m; steps that are m times as large on it are the same steps.

Several classes are learnt one against the rest, each with its own end.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.data.blocks import Blocks, MemoryBlocks
from sixfold.data.checks import TrainingData, check_training
from sixfold.errors import InputError, check_flag, check_number, check_option
from sixfold.learners.linear.classifier import ProbabilisticClassifier
from sixfold.learners.linear.model import LinearModel, LinearRegressor, check_start
from sixfold.risk.problem import Problem
from sixfold.solvers.base import Solution
from sixfold.solvers.first_order.epochs import Epochs
from sixfold.solvers.first_order.options import FirstOrderOptions
from sixfold.solvers.first_order.sgd_updates import SGDState, StepRule
from sixfold.solvers.first_order.stochastic import EpochOrder, Passes

Array = NDArray[Any]

# scikit-learn's names, and what the losses are called here; of the last one only epsilon = 0 is there.
REAL_LOSSES = {"squared_error": "squared", "epsilon_insensitive": "absolute"}
CLASS_LOSSES = {
    "hinge": "hinge",
    "log_loss": "logistic",
    "squared_hinge": "squared_hinge",
    "perceptron": "perceptron",
    **REAL_LOSSES,
}
LEARNING_RATES = ("constant", "optimal", "invscaling", "adaptive")
SMALLEST_STEP = 1e-6  # at which the adaptive schedule ends


class SGDBase(LinearModel):
    """A linear model that learns by steps along the gradient of one row after the other."""

    loss: str
    epsilon: float
    shuffle: bool
    learning_rate: str
    eta0: float
    power_t: float
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    warm_start: bool
    average: bool | int

    _losses: dict[str, str]
    _state: SGDState  # at the end of the last fit or batch

    def _loss_name(self) -> str:
        check_option("loss", self.loss, self._losses)
        return self._losses[self.loss]

    def _check_parameters(self) -> None:
        if self._loss_name() == "absolute" and self.epsilon != 0:
            raise InputError(
                f"epsilon={self.epsilon!r} is not there for loss='epsilon_insensitive': pass epsilon=0.0, "
                "which is the absolute error, or another loss."
            )
        check_option("learning_rate", self.learning_rate, LEARNING_RATES)
        check_number("alpha", self.alpha, at_least=0, finite=True)
        if self.learning_rate == "optimal" and self.alpha == 0:
            raise InputError(
                "learning_rate='optimal' takes its steps from alpha, which is 0. Pass alpha > 0, or another "
                "learning_rate."
            )
        check_number("eta0", self.eta0, above=0, finite=True)
        check_number("power_t", self.power_t, at_least=0)
        check_number("tol", self.tol, at_least=0, optional=True)
        check_number("n_iter_no_change", self.n_iter_no_change, at_least=1, whole=True)
        if not isinstance(self.average, bool | np.bool_):
            check_number("average", self.average, at_least=1, whole=True)
        for name in ("shuffle", "early_stopping", "warm_start"):
            check_flag(name, getattr(self, name))
        check_number("validation_fraction", self.validation_fraction, above=0)
        if self.validation_fraction >= 1:
            raise InputError(
                f"validation_fraction={self.validation_fraction!r} is out of range: a share between 0 and 1 "
                "is needed, so that rows are left to learn from."
            )

    def _limits(self) -> tuple[float, int | None]:
        return 0.0 if self.tol is None else self.tol, self.max_iter

    @property
    def t_(self) -> float:
        """One more than the updates that were made."""
        return 1.0 + self._state.updates

    # -- the problem and its steps -----------------------------------------------------------------------

    @property
    def _loss_factor(self) -> float:
        """What the loss here is multiplied by to be scikit-learn's."""
        return 2.0 if self.loss == "squared_hinge" else 1.0

    def _scale(self, blocks: Blocks) -> float:
        """Return what the objective here is multiplied by to be scikit-learn's."""
        return self._loss_factor * blocks.weight_sum / blocks.n_rows

    def _scaled_problem(self, blocks: Blocks) -> Problem:
        problem = self._problem(blocks.weight_sum)
        return replace(problem, alpha=problem.alpha / self._scale(blocks))

    def _state_problem(self, data: TrainingData) -> Problem:
        return self._scaled_problem(data.blocks())

    def _rule(self, scale: float) -> StepRule:
        """Return the steps on a problem whose objective is scikit-learn's divided by ``scale``."""
        schedule, eta0, rate = "constant", float(self.eta0), 0.0
        if self.learning_rate == "optimal":
            eta0 = float(self.alpha) ** -0.25
            schedule, rate = "decay", eta0 * float(self.alpha)
        elif self.learning_rate == "invscaling":
            schedule, rate = "invscaling", float(self.power_t)
        average_from = int(self.average) - 1 if self.average else None
        # At zero weights every score is 0, where the gradient of the perceptron's loss would stay for ever.
        return StepRule(schedule, eta0 * scale, rate, 1, average_from, "wrong")

    # -- learning ----------------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        coef_init: Any = None,
        intercept_init: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Go through the rows, epoch after epoch, until that no longer improves the model.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            The columns to predict from.
        y : array of shape (n_samples,)
            The target of each row.
        coef_init : array of the shape of coef_, default=None
            The weights to start from.
        intercept_init : array of the shape of intercept_, default=None
            The intercepts to start from.
        sample_weight : array of shape (n_samples,), default=None
            What the step of each row is multiplied by.

        Returns
        -------
        SGDClassifier or SGDRegressor
            The fitted model itself.
        """
        solve = partial(self._solve, coef=coef_init, intercept=intercept_init)
        return self._run_fit(X, y, sample_weight, solve=solve)

    def _solve(
        self, problem: Problem, data: TrainingData, budget: Budget, coef: Any = None, intercept: Any = None
    ) -> Solution:
        data.require_computable()
        w, b = self._start(data, coef, intercept)
        random = FirstOrderOptions(random_state=self.random_state).generator()
        train, held_out = self._split(data) if self.early_stopping else (data.blocks(), None)
        with EpochOrder(random, bool(self.shuffle)) as epoch_order:
            begin = partial(self._epochs, train=train, held_out=held_out, budget=budget, order=epoch_order)
            targets = [begin(k, w[:, [k]], b[[k]]) for k in range(b.size)]
            for _ in budget.iterations():
                for target in targets:
                    target.advance()
                total = sum(target.objective for target in targets)
                self._require_finite(total)
                budget.record(total, total, 1.0)
                if budget.stopped_by is not None or all(target.finished for target in targets):
                    break
        if self.tol is None:
            budget.new_part()  # max_iter is then no limit that was met, but what was asked for
        self._state = _joined([target.state for target in targets], train.sparse)
        models = [target.state.model(target.rule) for target in targets]
        w, b = np.hstack([each[0] for each in models]), np.concatenate([each[1] for each in models])
        w, b = data.blocks().rounded(w), data.blocks().rounded(b)
        with np.errstate(all="ignore"):
            certificate = problem.certify("duality gap", w, b, data.blocks(), budget.tol)
        self._require_finite(certificate.objective)
        return Solution(w, b, certificate, "sgd", len(budget.history))

    def _solve_on_cluster(
        self, problem: Problem, data: Any, budget: Budget, coef: Any = None, intercept: Any = None
    ) -> Solution:
        """Return the model that is learnt where the rows are."""
        from sixfold.learners.linear.online_on_cluster import learn_scores

        return learn_scores(self, problem, data, budget, *self._start(data, coef, intercept))

    def _start(self, data: TrainingData, coef: Any, intercept: Any) -> tuple[Array, Array]:
        """Return the model to start from: the one given, the last one, or zero."""
        shape = (data.X.shape[1], data.y.shape[1])
        w, b = np.zeros(shape), np.zeros(shape[1])
        if self.warm_start and hasattr(self, "coef_"):
            before = self._parameters()
            if before[0].shape == shape:
                w, b = before
        if coef is not None:
            w = check_start("coef_init", coef, shape[::-1]).T
        if intercept is not None:
            b = check_start("intercept_init", intercept, shape[1:])
        return w, b

    def _epochs(
        self,
        target: int,
        w: Array,
        b: Array,
        train: MemoryBlocks,
        held_out: MemoryBlocks | None,
        budget: Budget,
        order: EpochOrder,
    ) -> Epochs:
        """Return the passes over the rows for one target."""
        blocks = MemoryBlocks(train.X, train.y[:, [target]], train.weight)
        scale = self._scale(blocks)
        return Epochs(
            Passes(self._scaled_problem(blocks), blocks, budget, order),
            SGDState.at(w, b, sparse=blocks.sparse, average=bool(self.average)),
            self._rule(scale),
            None if self.tol is None else self.tol / self._loss_factor,
            int(self.n_iter_no_change),
            SMALLEST_STEP * scale if self.learning_rate == "adaptive" else np.inf,
            None if held_out is None else partial(self._score, held_out, target),
        )

    def _split(self, data: TrainingData) -> tuple[MemoryBlocks, MemoryBlocks]:
        """Return the rows to learn from and those to judge by."""
        seed = self.random_state
        if isinstance(seed, np.random.Generator):
            seed = int(seed.integers(1 << 31))
        try:
            train, test = self._split_rows(data.y, seed)
        except ValueError as error:
            raise InputError(
                f"early_stopping=True cannot hold out validation_fraction={self.validation_fraction!r} of "
                f"the rows: {error} Use another fraction, or early_stopping=False."
            ) from None
        weight = data.weight
        parts = [
            MemoryBlocks(data.X[rows], data.y[rows], None if weight is None else weight[rows])
            for rows in (np.sort(train), np.sort(test))
        ]
        if any(part.weight_sum == 0 for part in parts):
            raise InputError(
                "Of the rows that are learnt from, or of those that are held out, all have the weight 0. Use "
                "another random_state, or early_stopping=False."
            )
        return parts[0], parts[1]

    @abstractmethod
    def _split_rows(self, y: Array, seed: Any) -> tuple[Array, Array]:
        """Return the numbers of the rows to learn from and of those to judge by."""

    @abstractmethod
    def _score(self, rows: MemoryBlocks, target: int, w: Array, b: Array) -> float:
        """Return how good the scores of some rows are: larger is better."""

    def _require_finite(self, objective: float) -> None:
        if not np.isfinite(objective):
            eta0 = self._rule(1.0).eta0
            smaller = "learning_rate='adaptive'" if self.learning_rate == "optimal" else "a smaller eta0"
            raise InputError(
                f"The weights grew without bound: the first step of learning_rate={self.learning_rate!r}, "
                f"{eta0:g}, is too large for loss={self.loss!r} on these columns. Scale them, for instance "
                f"with StandardScaler, or use {smaller}."
            )

    def _learn_batch(self, problem: Problem, data: TrainingData, budget: Budget) -> Solution:
        """Make one pass over the rows, from where the last fit or batch ended."""
        if self.early_stopping:
            raise InputError("early_stopping=True is for fit: partial_fit makes one pass over all its rows.")
        data.require_computable()
        blocks, rule = data.blocks(), self._rule(self._scale(data.blocks()))
        state = self._continued(blocks)
        random = FirstOrderOptions(random_state=self.random_state).generator()
        with EpochOrder(random, bool(self.shuffle)) as epoch_order:
            Passes(problem, blocks, budget, epoch_order).make(state, rule)
        self._state = state
        w, b = (blocks.rounded(part) for part in state.model(rule))
        objective = problem.objective(w, b, blocks)
        self._require_finite(objective)
        budget.record(objective, objective, 1.0)
        notes = ("of the last batch alone, with zero as its lower bound",)
        scale = problem.constant_objective(blocks)
        certificate = problem.certify_zero(w, b, blocks, scale, budget.tol, notes)
        return Solution(w, b, certificate, "sgd")

    def _continued(self, blocks: Blocks) -> SGDState:
        """Return a copy of the state that the last fit or batch ended in, or zero weights."""
        average = bool(self.average)
        if not hasattr(self, "coef_"):
            shape = (blocks.n_columns, blocks.n_targets)
            return SGDState.at(np.zeros(shape), np.zeros(shape[1]), sparse=blocks.sparse, average=average)
        before = self._state
        state = SGDState.at(before.w, before.c, sparse=blocks.sparse, average=average)
        state.updates = before.updates
        if average and before.mean_c.size:
            state.mean_w[:], state.mean_c[:] = before.mean_w, before.mean_c
        return state

    def _warn(self, solution: Solution, data: TrainingData, budget: Budget) -> None:
        super(LinearModel, self)._warn(solution, data, budget)  # tol is no bound of the gap


def _joined(states: list[SGDState], sparse: bool) -> SGDState:
    """Return the states of several targets as one, with the updates of the longest."""
    average = states[0].mean_c.size > 0
    w, c = np.hstack([one.w for one in states]), np.concatenate([one.c for one in states])
    state = SGDState.at(w, c, sparse=sparse, average=average)
    if average:
        state.mean_w[:] = np.hstack([one.mean_w for one in states])
        state.mean_c[:] = np.concatenate([one.mean_c for one in states])
    state.updates = max(one.updates for one in states)
    return state


class SGDClassifier(SGDBase, ProbabilisticClassifier):  # type: ignore[misc]  # fit has the weights last
    """Tell classes apart by linear scores, learnt by stochastic gradient descent.

    Minimises ``alpha * penalty(w) + mean_i loss(w.x_i + b, y_i)`` with one step a row, as scikit-learn's
    class does: without shuffling and absolute values in the penalty, the weights are the same. More than two
    classes are learnt one against the rest. :class:`ERMClassifier` finds the minimum of the same objective;
    this one is for steps of your own, rows that come in batches, and tables with many rows.

    Parameters
    ----------
    loss : {"hinge", "log_loss", "squared_hinge", "perceptron", "squared_error", "epsilon_insensitive"}, \
default="hinge"
        ``max(0, 1 - y s)``, ``log(1 + exp(-y s))``, ``max(0, 1 - y s)**2``, ``max(0, -y s)``,
        ``(s - y)**2 / 2`` or ``|s - y|`` (with ``epsilon=0.0``) of the score s; y is -1 or +1.
    penalty : {"l2", "l1", "elasticnet", None}, default="l2"
        ``|w|**2 / 2``, ``|w|_1``, or the mixture of both by ``l1_ratio``.
    alpha : float, default=0.0001
        How much the penalty counts; "optimal" takes its steps from it, too.
    l1_ratio : float, default=0.15
        The share of the absolute values in "elasticnet".
    fit_intercept : bool, default=True
        Whether to learn b.
    max_iter : int, default=1000
        Most epochs (passes over the rows).
    tol : float or None, default=0.001
        Stop when the objective has not fallen by this much for ``n_iter_no_change`` epochs; None makes all
        ``max_iter`` of them.
    shuffle : bool, default=True
        Visit the rows in a new random order in every epoch.
    verbose : int, default=0
        Whether to print progress: the first and the last epoch, and one in half a second between.
    epsilon : float, default=0.1
        Has to be 0.0 for "epsilon_insensitive", and is of no use for the other losses.
    n_jobs : int, default=None
        Threads for the native loops; None or -1 for all.
    random_state : int or None, default=0
        The seed of the shuffling, and of the choice of rows that are held out.
    learning_rate : {"optimal", "constant", "invscaling", "adaptive"}, default="optimal"
        The step after t updates is ``1 / (alpha (t + t0))`` with the t0 that makes the first one
        ``alpha**-0.25``, ``eta0``, or ``eta0 / (t + 1)**power_t``; "adaptive" is ``eta0``, five times smaller
        whenever it would stop.
    eta0 : float, default=0.01
        The first step of all but "optimal".
    power_t : float, default=0.5
        The exponent of "invscaling".
    early_stopping : bool, default=False
        Whether to hold rows out and judge by the accuracy on them instead of by the objective.
    validation_fraction : float, default=0.1
        The share of rows that are held out, the same of every class.
    n_iter_no_change : int, default=5
        Epochs without gain after which to stop.
    class_weight : dict, "balanced" or None, default=None
        How much the rows of each class count.
    warm_start : bool, default=False
        Whether to start from the weights of the last fit.
    average : bool or int, default=False
        Return the average of the weights over all updates, or from that update on.
    time_limit : float, default=None
        Most seconds; the model so far is kept, with a :class:`StoppedEarly` warning.
    callbacks : sequence of callables, default=None
        Called with a record (iteration, seconds, objective, gap) after every epoch; True stops the fit.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    t_ : float
        One more than the updates that were made.
    feature_means_ : ndarray of shape (n_features,)
        The means of the columns, with which :meth:`explain` compares.
    mean_rows_ : int
        How many rows they were taken from.
    certificate_ : Certificate
        How far from the least possible objective the fit is at most. Steps end by the rule above, so that it
        may be more than ``tol``.
    n_iter_, history_
        The epochs of the class that took most, and a record of each.

    Examples
    --------
    >>> import numpy as np
    >>> from sixfold import SGDClassifier
    >>> X = np.array([[-1.0, -1.0], [-2.0, -1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> model = SGDClassifier().fit(X, ["left", "left", "right", "right"])
    >>> model.predict([[-0.8, -1.0]])
    array(['left'], dtype='<U5')
    """

    _losses = CLASS_LOSSES
    _likelihood_losses = ("log_loss",)

    def __init__(
        self,
        loss: str = "hinge",
        *,
        penalty: str | None = "l2",
        alpha: float = 0.0001,
        l1_ratio: float = 0.15,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        shuffle: bool = True,
        verbose: int = 0,
        epsilon: float = 0.1,
        n_jobs: int | None = None,
        random_state: Any = 0,
        learning_rate: str = "optimal",
        eta0: float = 0.01,
        power_t: float = 0.5,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        class_weight: Any = None,
        warm_start: bool = False,
        average: bool | int = False,
        time_limit: float | None = None,
        callbacks: Any = None,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol  # type: ignore[assignment]
        self.shuffle = shuffle
        self.verbose = verbose
        self.epsilon = epsilon
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.power_t = power_t
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.average = average
        self.time_limit = time_limit
        self.callbacks = callbacks

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go once through these rows, from where the last call of fit or partial_fit ended.

        The certificate speaks of these rows alone, with zero as its lower bound.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        classes : array of shape (n_classes,), default=None
            All labels that there are; needed in the first call.
        sample_weight : array of shape (n_samples,), default=None

        Returns
        -------
        SGDClassifier
            The model itself.
        """
        if isinstance(self.class_weight, str):
            raise InputError(
                f"class_weight={self.class_weight!r} cannot be used by partial_fit, which never sees all "
                "rows. Pass a dictionary of weights, for instance of sklearn.utils.class_weight."
            )
        check = partial(self._check_batch, classes=classes)
        return self._run_batch(X, y, sample_weight, check, self._learn_batch)

    def _split_rows(self, y: Array, seed: Any) -> tuple[Array, Array]:
        from sklearn.model_selection import StratifiedShuffleSplit

        label = y[:, 0] if y.shape[1] == 1 else y.argmax(axis=1)
        split = StratifiedShuffleSplit(1, test_size=self.validation_fraction, random_state=seed)
        return next(split.split(label, label))

    def _score(self, rows: MemoryBlocks, target: int, w: Array, b: Array) -> float:
        right = (rows.X @ w[:, 0] + b > 0) == (rows.y[:, target] > 0)
        return float(np.average(right, weights=rows.weight))


class SGDRegressor(SGDBase, LinearRegressor):  # type: ignore[misc]  # fit has the weights last
    """Predict numbers by a linear function, learnt by stochastic gradient descent.

    Minimises ``alpha * penalty(w) + mean_i loss(w.x_i + b, y_i)`` with one step a row, as scikit-learn's
    class does: without shuffling and absolute values in the penalty, the weights are the same. Columns should
    be of similar size. :class:`LinearRegression` and :class:`ERMRegressor` find the minimum of the same
    objective; this one is for steps of your own and rows that come in batches.

    Parameters
    ----------
    loss : {"squared_error", "epsilon_insensitive"}, default="squared_error"
        ``(s - y)**2 / 2`` or ``|s - y|`` (with ``epsilon=0.0``) of the score s.
    penalty : {"l2", "l1", "elasticnet", None}, default="l2"
        ``|w|**2 / 2``, ``|w|_1``, or the mixture of both by ``l1_ratio``.
    alpha : float, default=0.0001
        How much the penalty counts; "optimal" takes its steps from it, too.
    l1_ratio : float, default=0.15
        The share of the absolute values in "elasticnet".
    fit_intercept : bool, default=True
        Whether to learn b.
    max_iter : int, default=1000
        Most epochs (passes over the rows).
    tol : float or None, default=0.001
        Stop when the objective has not fallen by this much for ``n_iter_no_change`` epochs; None makes all
        ``max_iter`` of them.
    shuffle : bool, default=True
        Visit the rows in a new random order in every epoch.
    verbose : int, default=0
        Whether to print progress: the first and the last epoch, and one in half a second between.
    epsilon : float, default=0.1
        Has to be 0.0 for "epsilon_insensitive", and is of no use for the other loss.
    random_state : int or None, default=0
        The seed of the shuffling, and of the choice of rows that are held out.
    learning_rate : {"invscaling", "optimal", "constant", "adaptive"}, default="invscaling"
        The step after t updates is ``eta0 / (t + 1)**power_t``, ``1 / (alpha (t + t0))`` with the t0 that
        makes the first one ``alpha**-0.25``, or ``eta0``; "adaptive" is ``eta0``, five times smaller whenever
        it would stop.
    eta0 : float, default=0.01
        The first step of all but "optimal".
    power_t : float, default=0.25
        The exponent of "invscaling".
    early_stopping : bool, default=False
        Whether to hold rows out and judge by R^2 on them instead of by the objective.
    validation_fraction : float, default=0.1
        The share of rows that are held out.
    n_iter_no_change : int, default=5
        Epochs without gain after which to stop.
    warm_start : bool, default=False
        Whether to start from the weights of the last fit.
    average : bool or int, default=False
        Return the average of the weights over all updates, or from that update on.
    n_jobs : int, default=None
        Threads for the native loops; None or -1 for all.
    time_limit : float, default=None
        Most seconds; the model so far is kept, with a :class:`StoppedEarly` warning.
    callbacks : sequence of callables, default=None
        Called with a record (iteration, seconds, objective, gap) after every epoch; True stops the fit.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : ndarray of shape (1,)
    t_ : float
        One more than the updates that were made.
    feature_means_ : ndarray of shape (n_features,)
        The means of the columns, with which :meth:`explain` compares.
    mean_rows_ : int
        How many rows they were taken from.
    certificate_ : Certificate
        How far from the least possible objective the fit is at most. Steps end by the rule above, so that it
        may be more than ``tol``.
    n_iter_, history_
        The epochs it took, and a record of each.

    Examples
    --------
    >>> import numpy as np
    >>> from sixfold import SGDRegressor
    >>> X = np.array([[-1.0], [0.0], [1.0], [2.0]])
    >>> model = SGDRegressor(eta0=0.1, penalty=None, tol=1e-9).fit(X, 3.0 * X[:, 0] + 1.0)
    >>> model.coef_.round(2), model.intercept_.round(2)
    (array([3.]), array([1.]))
    """

    _losses = REAL_LOSSES

    def __init__(
        self,
        loss: str = "squared_error",
        *,
        penalty: str | None = "l2",
        alpha: float = 0.0001,
        l1_ratio: float = 0.15,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        shuffle: bool = True,
        verbose: int = 0,
        epsilon: float = 0.1,
        random_state: Any = 0,
        learning_rate: str = "invscaling",
        eta0: float = 0.01,
        power_t: float = 0.25,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        warm_start: bool = False,
        average: bool | int = False,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        callbacks: Any = None,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol  # type: ignore[assignment]
        self.shuffle = shuffle
        self.verbose = verbose
        self.epsilon = epsilon
        self.random_state = random_state
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.power_t = power_t
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.average = average
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.callbacks = callbacks

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Go once through these rows, from where the last call of fit or partial_fit ended.

        The certificate speaks of these rows alone, with zero as its lower bound.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), default=None

        Returns
        -------
        SGDRegressor
            The model itself.
        """
        check = partial(self._check, reset=not hasattr(self, "coef_"))
        return self._run_batch(X, y, sample_weight, check, self._learn_batch)

    def _check(self, X: Any, y: Any, sample_weight: Any, reset: bool = True) -> TrainingData:
        return check_training(self, X, y, sample_weight, reset=reset, one_target=True)

    def _set_fitted(self, solution: Solution, data: TrainingData, budget: Budget) -> None:
        super()._set_fitted(solution, data, budget)
        self.intercept_ = np.atleast_1d(self.intercept_)

    def _split_rows(self, y: Array, seed: Any) -> tuple[Array, Array]:
        from sklearn.model_selection import ShuffleSplit

        split = ShuffleSplit(1, test_size=self.validation_fraction, random_state=seed)
        return next(split.split(y))

    def _score(self, rows: MemoryBlocks, target: int, w: Array, b: Array) -> float:
        from sklearn.metrics import r2_score

        return float(r2_score(rows.y, rows.X @ w + b, sample_weight=rows.weight))
