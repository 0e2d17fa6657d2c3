"""The perceptron: go through the rows, and move the plane towards every row it gets wrong.

    signed labels y = -1, +1    where y s <= 0:        w <- w + eta y x        b <- b + eta y
    binary labels y = 0, 1      e = y - [s > 0]:       w <- w + eta e x        b <- b + eta e

with the score s = w.x + b. Both forms move alike but for a row exactly on the plane: the signed form counts
it as wrong, the binary form as of class 0.

*Why it ends, or does not.* If a plane separates the classes with margin g, and no row is longer than R, there
are at most (R / g)^2 mistakes from a zero start, whatever the order (Novikoff, 1962); lengths include the 1
that stands for the intercept. If none does, some point lies in the hulls of both classes, and the rows that
span it are the proof (:mod:`sixfold.learners.linear.separability`).

More than two classes are learnt one against the rest.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.certificate import Certificate
from sixfold.data.blocks import Blocks
from sixfold.data.checks import TrainingData
from sixfold.errors import InputError, check_flag, check_number, check_option
from sixfold.learners.linear.classifier import LinearClassifier
from sixfold.learners.linear.model import check_start
from sixfold.learners.linear.separability import (
    certify_planes,
    measure_margins,
    separation_of,
    settle_soon,
    zero_one,
)
from sixfold.risk.problem import Problem
from sixfold.solvers.base import Solution
from sixfold.solvers.first_order.options import FirstOrderOptions
from sixfold.solvers.first_order.sgd_updates import SCHEDULES, SGDState, StepRule, sgd_epochs, sgd_pass
from sixfold.solvers.first_order.stochastic import MANY_ROWS, EpochOrder
from sixfold.solvers.separation.separation import Separation, separation_by
from sixfold.verify.recomputed import Recomputed
from sixfold.verify.separation import SeparationClaim, recompute

Array = NDArray[Any]

FORMS = {"signed": "wrong", "binary": "negative"}  # what each form takes a score of 0 for
VISITS_AT_ONCE = 1 << 17  # of a row by a score, in epochs that are one call: a millisecond or two
FIRST_EPOCHS = 10
START_SPREAD = 0.01  # the standard deviation of a random start
ROWS_A_COLUMN = 2  # up to so many, points in general position are more often separable than not (Cover 1965)
FEW_MISTAKES = 0.1  # of the visits of an epoch: a plane is near


class Perceptron(LinearClassifier):
    """Learn a separating plane from mistakes.

    Goes through the rows and adds ``eta * y * x`` to the weights where a row is on the wrong side. Same
    parameters as scikit-learn's class; the certificate tells the margin and the bound on mistakes where the
    classes are separated, and where they cannot be, the rows that prove it.

    Parameters
    ----------
    penalty : {None, "l2", "l1", "elasticnet"}, default=None
        What shrinks the weights at every row.
    alpha : float, default=0.0001
        How much the penalty counts.
    l1_ratio : float, default=0.15
        The share of the absolute values in "elasticnet".
    fit_intercept : bool, default=True
        Whether to learn b.
    max_iter : int, default=1000
        Most epochs (passes over the rows).
    tol : float or None, default=0.001
        Stop when the average error has not fallen by this much for ``n_iter_no_change`` epochs, unless a
        plane separates the classes, which is then found in time; None goes on.
    shuffle : bool, default=True
        Visit the rows in a new random order in every epoch.
    verbose : int, default=0
        Whether to print progress: the first and the last iteration, and one in half a second between.
    eta0 : float, default=1.0
        The first step.
    n_jobs : int, default=None
        Threads for the native loops; None or -1 for all.
    random_state : int or None, default=0
        The seed of shuffling and of a random start.
    early_stopping : bool, default=False
        Whether to judge by rows that are held out instead of the average error.
    validation_fraction : float, default=0.1
        The share of rows that are held out.
    n_iter_no_change : int, default=5
        Epochs without gain after which to stop.
    class_weight : dict, "balanced" or None, default=None
        How much the rows of each class count.
    warm_start : bool, default=False
        Whether to start from the weights of the last fit.
    form : {"signed", "binary"}, default="signed"
        Which of the two textbook forms; they differ for rows exactly on the plane.
    start : {"zero", "random"}, default="zero"
        Where to begin: at zero, or at small random weights.
    learning_rate : {"constant", "decay", "invscaling"}, default="constant"
        The step after t updates is ``eta0``, ``eta0 / (1 + decay t)`` or ``eta0 / (t + 1)**power_t``.
    decay : float, default=0.0001
        How fast "decay" falls.
    power_t : float, default=0.5
        The exponent of "invscaling".
    average : bool, default=False
        Whether to return the average of the weights over all updates.
    max_error : float, default=0.0
        Stop when the average error of an epoch is at most this; 0 stops when there are no mistakes.
    time_limit : float, default=None
        Most seconds; the model so far is kept, with a :class:`StoppedEarly` warning.
    callbacks : sequence of callables, default=None
        Called with a record (iteration, seconds, objective, gap) after every epoch, where both are the
        average error; True stops the fit.

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
        A separating plane with its margin, that no plane separates the classes, or, where it was ended before
        either was known, how many rows the plane has on its wrong side.
    proof_ : Proof, None, or a list of them, one a class
        The rows and weights that prove that no plane separates: a point in the hulls of both classes.
    mistakes_ : int
        How many mistakes were made, and corrected, in all epochs.
    n_iter_, history_
        The epochs it took, and a record of each.

    Examples
    --------
    >>> import numpy as np
    >>> from sixfold import Perceptron
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> Perceptron().fit(X, [0, 0, 0, 1]).predict(X)
    array([0, 0, 0, 1])
    >>> exclusive_or = Perceptron().fit(X, [0, 1, 1, 0])
    >>> exclusive_or.certificate_.kind, exclusive_or.proof_.weights
    ('not separable', array([0.25, 0.25, 0.25, 0.25]))
    """

    _state: SGDState

    def __init__(
        self,
        *,
        penalty: str | None = None,
        alpha: float = 0.0001,
        l1_ratio: float = 0.15,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 0.001,
        shuffle: bool = True,
        verbose: int = 0,
        eta0: float = 1.0,
        n_jobs: int | None = None,
        random_state: Any = 0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        class_weight: Any = None,
        warm_start: bool = False,
        form: str = "signed",
        start: str = "zero",
        learning_rate: str = "constant",
        decay: float = 0.0001,
        power_t: float = 0.5,
        average: bool = False,
        max_error: float = 0.0,
        time_limit: float | None = None,
        callbacks: Any = None,
    ) -> None:
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol  # type: ignore[assignment]
        self.shuffle = shuffle
        self.verbose = verbose
        self.eta0 = eta0
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.form = form
        self.start = start
        self.learning_rate = learning_rate
        self.decay = decay
        self.power_t = power_t
        self.average = average
        self.max_error = max_error
        self.time_limit = time_limit
        self.callbacks = callbacks

    def _loss_name(self) -> str:
        return "perceptron"

    def _check_parameters(self) -> None:
        check_option("form", self.form, FORMS)
        check_option("start", self.start, ("zero", "random"))
        check_option("learning_rate", self.learning_rate, SCHEDULES)
        check_number("eta0", self.eta0, above=0, finite=True)
        check_number("decay", self.decay, at_least=0)
        check_number("power_t", self.power_t, at_least=0)
        check_number("tol", self.tol, at_least=0, optional=True)
        check_number("max_error", self.max_error, at_least=0)
        check_number("n_iter_no_change", self.n_iter_no_change, at_least=1, whole=True)
        for name in ("shuffle", "average", "early_stopping", "warm_start"):
            check_flag(name, getattr(self, name))
        check_number("validation_fraction", self.validation_fraction, above=0)
        if self.validation_fraction >= 1:
            raise InputError(
                f"validation_fraction={self.validation_fraction!r} is out of range: a share between 0 and 1 "
                "is needed, so that rows are left to learn from."
            )

    def _limits(self) -> tuple[float, int | None]:
        return self.max_error, self.max_iter

    def _rule(self) -> StepRule:
        rate = self.decay if self.learning_rate == "decay" else self.power_t
        start, at_zero = 0 if self.average else None, FORMS[self.form]
        return StepRule(self.learning_rate, float(self.eta0), float(rate), 1, start, at_zero)

    # -- learning ----------------------------------------------------------------------------------------

    def fit(  # type: ignore[override]  # scikit-learn has the weights last
        self,
        X: Any,
        y: Any = None,
        coef_init: Any = None,
        intercept_init: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Go through the rows until there are no mistakes, or no gain, or the epochs are used up.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            The columns to predict from.
        y : array of shape (n_samples,)
            The label of each row: text, whole numbers or booleans.
        coef_init : array of shape (n_scores, n_features), default=None
            The weights to start from.
        intercept_init : array of shape (n_scores,), default=None
            The intercepts to start from.
        sample_weight : array of shape (n_samples,), default=None
            What the step of each row is multiplied by.

        Returns
        -------
        Perceptron
            The fitted model itself.
        """
        solve = partial(self._solve, coef=coef_init, intercept=intercept_init)
        return self._run_fit(X, y, sample_weight, solve=solve)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go once through these rows, from where the last call ended.

        The certificate speaks of these rows alone, and no proof is searched for.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        classes : array of shape (n_classes,), default=None
            All labels that there are; needed in the first call.
        sample_weight : array of shape (n_samples,), default=None

        Returns
        -------
        Perceptron
            The model itself.
        """
        check = partial(self._check_batch, classes=classes)
        return self._run_batch(X, y, sample_weight, check, self._learn_batch)

    def _solve(
        self, problem: Problem, data: TrainingData, budget: Budget, coef: Any = None, intercept: Any = None
    ) -> Solution:
        data.require_computable()
        blocks, random = data.blocks(), FirstOrderOptions(random_state=self.random_state).generator()
        self._state = self._begin(blocks, random, coef, intercept)
        known: dict[int, Separation] = {}  # whether a plane separates a class is found out once
        with EpochOrder(random, bool(self.shuffle)) as orders:
            self.mistakes_ = self._learn(self._state, problem, blocks, budget, orders, known)
        return self._certified(problem, data, budget, known)

    def _solve_on_cluster(
        self, problem: Problem, data: Any, budget: Budget, coef: Any = None, intercept: Any = None
    ) -> Solution:
        """Return the planes that are learnt where the rows are."""
        from sixfold.learners.linear.online_on_cluster import learn_planes

        random = FirstOrderOptions(random_state=self.random_state).generator()
        self._state = self._begin(data.blocks(), random, coef, intercept)
        return learn_planes(self, problem, data, budget)

    def _learn_batch(self, problem: Problem, data: TrainingData, budget: Budget) -> Solution:
        data.require_computable()
        blocks, random = data.blocks(), FirstOrderOptions(random_state=self.random_state).generator()
        if not hasattr(self, "coef_"):
            self._state, self.mistakes_ = self._begin(blocks, random), 0
        self._state = self._state.copy()  # a batch that fails leaves the state of the last one
        orders = EpochOrder(random, bool(self.shuffle))
        mistakes = self._one_epoch(self._state, problem, blocks, budget, orders)
        self.mistakes_ += mistakes
        budget.record(mistakes / data.y.size, mistakes / data.y.size, 1.0)
        return self._certified(problem, data, budget)

    def _begin(self, blocks: Blocks, random: Any, coef: Any = None, intercept: Any = None) -> SGDState:
        """Return the state to start from."""
        shape = (blocks.n_columns, blocks.n_targets)
        before = self.__dict__.get("_state") if self.warm_start else None
        if before is not None and before.w.shape == shape and coef is None:
            return before.copy()  # a fit that fails leaves it as it was
        w, b = np.zeros(shape), np.zeros(shape[1])
        if self.start == "random":
            w = START_SPREAD * random.standard_normal(shape)
        if coef is not None:
            w = check_start("coef_init", coef, shape[::-1]).T
        if intercept is not None:
            b = check_start("intercept_init", intercept, shape[1:])
        return SGDState.at(w, b, sparse=blocks.sparse, average=bool(self.average))

    def _learn(
        self,
        state: SGDState,
        problem: Problem,
        blocks: Blocks,
        budget: Budget,
        orders: EpochOrder,
        known: dict[int, Separation],
    ) -> int:
        """Go through the rows, epoch after epoch; return how many mistakes were made."""
        held_out = self._held_out(blocks, orders.random) if self.early_stopping else None
        best, idle, total = np.inf, 0.0, 0
        while not budget.exhausted():
            made = self._epochs(state, problem, blocks, budget, orders, held_out, idle)
            total += sum(made)
            for mistakes in made:
                visited = (blocks.n_rows - (0 if held_out is None else held_out.sum())) * blocks.n_targets
                error = mistakes / max(visited, 1)
                if budget.exhausted() or budget.record(error, error, 1.0):
                    return total
                judged = error if held_out is None else self._error(state, blocks, held_out)
                idle = 0 if self.tol is None or judged < best - self.tol else idle + 1
                best = min(best, judged)
            if idle >= self.n_iter_no_change:
                if held_out is not None or self._not_separable(blocks, budget, known):
                    break
                best, idle = np.inf, -np.inf  # there is a plane to be found: going on will find it
        return total

    def _epochs(
        self,
        state: SGDState,
        problem: Problem,
        blocks: Blocks,
        budget: Budget,
        orders: EpochOrder,
        held_out: Array | None,
        idle: float,
    ) -> list[int]:
        """Make one epoch, or as many as nobody has to look between; return the mistakes of each."""
        visits = blocks.n_rows * blocks.n_targets
        watched = held_out is not None or budget.callbacks or blocks.n_rows > MANY_ROWS
        if watched or blocks.streamed:
            return [self._one_epoch(state, problem, blocks, budget, orders, held_out)]
        patience = np.inf if self.tol is None else self.n_iter_no_change - idle
        # No more than were made before: they may end any time.
        begun = max(len(budget.history), FIRST_EPOCHS)
        count = int(min(budget.iterations_left, patience, begun))
        enough = int(min(self.max_error, 1.0) * visits) + 1
        enough -= enough / visits > self.max_error  # as the budget compares
        made = self._several_epochs(state, problem, blocks, budget, orders, count, enough)
        return [int(mistakes) for mistakes in made.sum(axis=1)]

    def _several_epochs(
        self,
        state: SGDState,
        problem: Problem,
        blocks: Blocks,
        budget: Budget,
        orders: EpochOrder,
        count: int,
        enough: int,
    ) -> Array:
        """Make so many epochs at most, those of one call; return the mistakes of each, one column a score."""
        count = min(count, max(VISITS_AT_ONCE // (blocks.n_rows * blocks.n_targets), 1))
        rows = orders.take_several(blocks.n_rows, count)
        scale = blocks.n_rows / blocks.weight_sum
        return sgd_epochs(state, blocks.whole(), problem, self._rule(), rows, enough, scale, budget)[1]

    def _go_on(
        self,
        problem: Problem,
        blocks: Blocks,
        budget: Budget,
        wrong: list[int],
        known: dict[int, Separation],
    ) -> None:
        """Add to ``known`` the planes that as many epochs again would find, of classes that have rows wrong.

        That a plane separates the classes is then known for the price of these epochs: on 2,000 x 2,000 with
        1% of entries 6 ms instead of the 300 that a search for it takes.
        """
        history, few = budget.history, ROWS_A_COLUMN * (blocks.n_columns + 1)
        near = bool(history) and 0.0 < history[-1].objective <= FEW_MISTAKES
        left = set(wrong) - known.keys()
        if not left or self.penalty is not None or not near or blocks.streamed or blocks.n_rows > few:
            return
        state, random = self._state.copy(), FirstOrderOptions(random_state=self.random_state).generator()
        orders, begun = EpochOrder(random, bool(self.shuffle)), len(history)
        while begun > 0:
            made = self._several_epochs(state, problem, blocks, budget, orders, begun, enough=0)
            begun -= made.shape[0]
            # What makes no mistake in one epoch makes none in the next.
            done = {k for k in left if made[-1, k] == 0}
            for k in done:
                model = np.ascontiguousarray(state.w[:, k : k + 1]), state.c[k : k + 1].copy()
                found = separation_by(model, zero_one(bool(self.fit_intercept)), blocks, budget, k)
                if found is not None:
                    known[k] = found
            left -= done
            if not left or budget.interrupted or budget.seconds_left <= 0:
                return

    def _not_separable(self, blocks: Blocks, budget: Budget, known: dict[int, Separation]) -> bool:
        """Return whether some class cannot be separated from the others."""
        problem = zero_one(bool(self.fit_intercept))
        settle_soon(problem, blocks, budget, range(blocks.n_targets), known)
        kinds = (separation_of(problem, blocks, budget, k, known).kind for k in range(blocks.n_targets))
        return self.penalty is not None or any(kind != "complete" for kind in kinds)

    def _one_epoch(
        self,
        state: SGDState,
        problem: Problem,
        blocks: Blocks,
        budget: Budget,
        orders: EpochOrder,
        held_out: Array | None = None,
    ) -> int:
        """Visit every row once; return how many mistakes were made."""
        before = int(state.mistakes.sum())
        scale = blocks.n_rows / blocks.weight_sum
        for block in blocks:
            order = orders.take(block.y.shape[0])
            if held_out is not None:
                order = order[~held_out[block.start + order]]
            if not sgd_pass(state, block, problem, self._rule(), order, scale, budget):
                break
        return int(state.mistakes.sum()) - before

    def _held_out(self, blocks: Blocks, random: Any) -> Array:
        """Return which rows are kept to judge by, the same share of every class."""
        labels = np.concatenate([block.y for block in blocks])
        held = np.zeros(blocks.n_rows, dtype=bool)
        for label in np.unique(labels, axis=0):
            rows = random.permutation(np.flatnonzero((labels == label).all(axis=1)))
            held[rows[: round(self.validation_fraction * rows.size)]] = True
        if not held.any():
            raise InputError(
                f"validation_fraction={self.validation_fraction!r} of {blocks.n_rows} rows holds out none. "
                "Use a larger one, or early_stopping=False."
            )
        return held

    def _error(self, state: SGDState, blocks: Blocks, rows: Array) -> float:
        """Return the share of these rows that are wrong."""
        w, b = state.model(self._rule())
        wrong = [np.asarray(block.y * (block.X @ w + b) <= 0.0) for block in blocks]
        return float(np.concatenate(wrong)[rows].mean())

    def _certified(
        self,
        problem: Problem,
        data: TrainingData,
        budget: Budget,
        known: dict[int, Separation] | None = None,
    ) -> Solution:
        """Return the planes with what holds of them; no proofs are looked for without what is ``known``."""
        w, b = (part.astype(data.X.dtype).astype(np.float64) for part in self._state.model(self._rule()))
        if not (np.isfinite(w).all() and np.isfinite(b).all()):
            raise InputError(
                f"eta0={self.eta0!r} makes weights larger than the numbers of type {data.X.dtype} can be. "
                "Use a smaller eta0: from a start at zero it does not change the plane."
            )
        blocks = data.blocks()
        report = measure_margins(w, b, blocks, problem.fit_intercept)
        if known is not None:
            self._go_on(problem, blocks, budget, np.flatnonzero(report.wrong).tolist(), known)
        certificate, proofs = certify_planes(
            report, blocks, problem.fit_intercept, budget, float(self.max_error), known
        )
        self.proof_ = proofs[0] if len(proofs) == 1 else proofs
        return Solution(w, b, certificate, "perceptron", len(budget.history))

    def _warn(self, solution: Solution, data: TrainingData, budget: Budget) -> None:
        if solution.certificate.kind != "not separable" or budget.interrupted:
            budget.conclude(self.certificate_)

    def _recompute(self, claimed: Certificate, X: Any, y: Any, sample_weight: Any) -> Recomputed:
        claim = self._claim(X, y, sample_weight)
        proofs = self.proof_ if isinstance(self.proof_, list) else [self.proof_]
        plain = [None if proof is None else (proof.rows, proof.weights) for proof in proofs]
        return recompute(
            SeparationClaim(claim.X, claim.y, claim.weights, claim.w, claim.b, claim.fit_intercept, plain),
            claimed,
        )

    def _relative_to(self) -> str:
        return "the weight of all rows, once for each plane"
