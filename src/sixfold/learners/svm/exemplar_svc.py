"""Exemplar machines: one support vector machine for each positive row, against all rows of other classes.

    minimise  |w|^2 / 2 + C_e max(0, 1 - w.x_e - b)^2 + C sum_i weight_i max(0, 1 + w.x_i + b)^2,  C_e = C rho

over w and b, for every exemplar x_e; the sum goes over the rows of all other classes, and rho is
``positive_weight``. A machine that fires has found something like its one row, so that whatever is known of
that row (a label, a mask, a caption) can be handed on: retrieval and transfer rather than a yes or no.

Machines are fitted apart, and their scores speak of different things. A sigmoid each makes them comparable,

    p_e(x) = 1 / (1 + exp(-(slope_e f_e(x) + offset_e))),      slope_e >= 0

fitted to what the machine meets beyond the margin of the negatives (f > -1), as Malisiewicz, Gupta and Efros
fit theirs to detections: the rows of the exemplar's class that it finds, itself among them, against the rows
of other classes that it takes for them. The others of its class were no part of its fit. An exemplar that
fires for many rows of other classes says less when it fires. Targets are those of Platt (1999).

A class is known by its best exemplar. The largest of many probabilities is too large, so that a class has a
sigmoid of its own, fitted to z(x) = max_e log(p_e / (1 - p_e)) on the training rows, each of which is without
the machine that was made of it (or of a copy). Classes without exemplars share the odds 1 of "none of these"
by their weights.

The loss is the squared hinge: its slopes are the multipliers of the dual, so that a bound comes with every
step, and its second derivatives are what machines share.

Source: Malisiewicz, Gupta and Efros (2011), Ensemble of exemplar-SVMs for object detection and beyond.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sixfold.budget import Budget, BudgetExhausted
from sixfold.certificate import MACHINE_PRECISION, Certificate
from sixfold.data.checks import check_rows, column_names, require_computable, row_index
from sixfold.data.labels import LabelledData, check_labelled
from sixfold.data.one_row import one_row
from sixfold.errors import CertificateError, InputError, StoppedEarly, check_number, check_option, warn
from sixfold.explain.axes import named_rows
from sixfold.explain.exemplars import ExemplarExplanation
from sixfold.geometry.kernels import Linear, Precomputed, make_kernel
from sixfold.learners.base import IterativeLearner
from sixfold.learners.neighbors.model import pick_payload
from sixfold.solvers.kernel.exemplars import coordinates, expand
from sixfold.solvers.kernel.kernel_rows import KernelRows, densify_if_small
from sixfold.solvers.margin.exemplars.machines import blocks_of, calibrate, solve_exemplars
from sixfold.solvers.margin.exemplars.rows import DenseNegatives, SparseNegatives
from sixfold.solvers.threads import thread_limit
from sixfold.verify.exemplars import Claims, recompute
from sixfold.verify.recomputed import Recomputed

Array = NDArray[Any]

MOST_SCORES = 1 << 22  # that are held at a time
FIRES = -1.0  # the margin of the negatives, beyond which scores count for the calibration
MOST_KERNEL_ROWS = 20_000  # whose kernel matrix is factored: 3.2 GB
MOST_COST = 1e150  # of all rows together: its square is still float64
ADVICE = "Allow more, or a larger tol; a smaller C, or columns of one spread, make it easier."
CLOSER = 1e-4  # part of the tolerance that coordinates of a kernel are solved to, for its own figures


class ExemplarProblem(NamedTuple):
    """What is to be solved: the exemplars and the rows that they are told from, class by class."""

    groups: list[Group]
    cost: Array  # C times the weight of each row
    rows: KernelRows | None  # seen through the kernel; None for the linear one


class Group(NamedTuple):
    """The exemplars of one class, and the rows of all others; those of weight 0 are in neither."""

    label: int
    exemplars: Array
    negatives: Array


class ExemplarSolution(NamedTuple):
    """What was found of some machines, in the order of ``exemplars``, their rows."""

    exemplars: Array
    weights: Array  # w of each machine, or, for a kernel, the coefficient of every row
    intercept: Array
    calibration: Array  # slope and offset of each sigmoid
    objective: Array
    gap: Array
    rounding: Array
    scale: Array
    iterations: Array


def is_calibrated(model: ExemplarSVC) -> bool:
    """Return True if scores become probabilities; raise an AttributeError if not."""
    if model.calibration is not None:
        return True
    raise AttributeError("predict_proba is not available when calibration=None")


class ExemplarSVC(ClassifierMixin, IterativeLearner):
    """Fit one support vector machine for each positive row, against all rows of other classes.

    Parameters
    ----------
    positive : label, list of labels, "all" or None, default=None
        Of which classes every row is an exemplar. None stands for the second of two classes, and for all of
        more. Where "all" is itself a label, pass a list.
    C : float, default=0.01
        What a row of another class costs inside the margin.
    positive_weight : float, default=50.0
        How many times that the exemplar itself costs.
    kernel : str, callable or Kernel, default="linear"
        "linear", "poly" or "polynomial", "quadratic", "rbf", a function of two tables, or one of
        :mod:`sixfold.geometry.kernels`; it has to be positive semi-definite.
    degree : int, default=3
        Of "poly".
    gamma : {"scale", "auto"} or float, default="scale"
        Of "rbf" and "poly"; 1 / (columns * variance of all numbers in X), or 1 / columns.
    coef0 : float, default=0.0
        The constant in "poly".
    calibration : {"sigmoid"} or None, default="sigmoid"
        Whether scores of different exemplars are made comparable.
    tol : float, default=1e-6
        Stop when the certified gap of every machine is below ``tol`` times its objective at the best
        constant.
    max_iter : int, default=200
        Most iterations of the machines that are fitted together.
    n_jobs : int, default=None
        Threads for the native loops; None or -1 for all.
    time_limit : float, default=None
        Most seconds; the best model so far is kept, with a :class:`StoppedEarly` warning.
    callbacks : sequence of callables, default=None
        Called with a record (iteration, seconds, objective, gap) after every iteration; True stops the fit.
    verbose : int, default=0
        Whether to print progress: the first and the last iteration, and one in half a second between.

    Attributes
    ----------
    exemplars_ : ndarray of shape (n_exemplars,)
        The rows that have a machine: those of positive classes, but for rows of weight 0.
    exemplar_labels_ : ndarray of shape (n_exemplars,)
        Their labels.
    coef_ : ndarray of shape (n_exemplars, n_features)
        w of each machine, for the linear kernel.
    intercept_ : ndarray of shape (n_exemplars,)
    support_, support_vectors_ : ndarray
        Of other kernels, the rows that some machine depends on, and they themselves.
    dual_coef_ : ndarray of shape (n_exemplars, n_SV)
        Their coefficients in each machine: negative, but for the exemplar's own.
    kernel_ : Kernel
        With the gamma that was used.
    calibration_ : ndarray of shape (n_exemplars, 2) or None
        Slope and offset of each sigmoid.
    classes_ : ndarray of shape (n_classes,)
    gaps_ : ndarray of shape (n_exemplars,)
        The certified gap of each machine, in parts of its objective at the best constant.
    certificate_ : Certificate
        How far from the least possible sum of the objectives the machines are at most;
        ``certificate_.verify(X, y)`` recomputes it.
    n_iter_ : ndarray of shape (n_exemplars,)
    history_
        One record for each iteration.

    Examples
    --------
    >>> import numpy as np
    >>> from sixfold import ExemplarSVC
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [5.0, 0.0], [0.0, 5.0]])
    >>> model = ExemplarSVC(C=1.0).fit(X, ["no", "no", "no", "yes", "yes"])
    >>> model.exemplars_
    array([3, 4])
    >>> scores, rows = model.retrieve([[4.0, 1.0], [1.0, 6.0]], k=1)
    >>> rows.ravel()
    array([3, 4])
    >>> model.transfer([[4.0, 1.0], [1.0, 6.0]], ["-", "-", "-", "to the right", "up"])
    ['to the right', 'up']
    """

    calibration_: Array | None
    _row_index: Array | None  # what the training rows are called

    def __init__(
        self,
        *,
        positive: Any = None,
        C: float = 0.01,
        positive_weight: float = 50.0,
        kernel: Any = "linear",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        calibration: str | None = "sigmoid",
        tol: float = 1e-6,
        max_iter: int | None = 200,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        callbacks: Any = None,
        verbose: int = 0,
    ) -> None:
        self.positive = positive
        self.C = C
        self.positive_weight = positive_weight
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.calibration = calibration
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.callbacks = callbacks
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit a machine for each exemplar.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : array of shape (n_samples,)
            The label of each row: text, whole numbers or booleans.
        sample_weight : array of shape (n_samples,), default=None
            How much each row counts where an exemplar is told from it, and in the calibration. An exemplar's
            own machine is the same whatever it weighs, as it would be if the row were there twice; a row of
            weight 0 is no exemplar.

        Returns
        -------
        ExemplarSVC
            The fitted model itself.
        """
        return self._run_fit(X, y, sample_weight)

    # -- the steps of a fit ----------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        check_number("C", self.C, above=0)
        check_number("positive_weight", self.positive_weight, above=0, finite=True)
        check_option("calibration", self.calibration, ("sigmoid", None))
        if (isinstance(self.kernel, str) and self.kernel == "precomputed") or isinstance(
            self.kernel, Precomputed
        ):
            raise InputError(
                "kernel='precomputed' leaves no rows to retrieve. Pass the rows as X, and the kernel as a "
                "function of two tables."
            )

    def _limits(self) -> tuple[float, int | None]:
        return self.tol, self.max_iter

    def _check(self, X: Any, y: Any, sample_weight: Any, reset: bool = True) -> LabelledData:
        given = X
        data = check_labelled(
            self, X, y, sample_weight, classes=None if reset else self.classes_, reset=reset
        )
        if reset:
            self._row_index = row_index(given)
        require_computable(data.X, "X", lambda: column_names(self, data.X.shape[1]))
        return data

    def _state_problem(self, data: LabelledData) -> ExemplarProblem:
        cost = self._cost(data)
        groups = self._groups(data, cost)
        kernel = make_kernel(
            self.kernel, densify_if_small(data.X), gamma=self.gamma, degree=self.degree, coef0=self.coef0
        )
        self.kernel_ = kernel
        if isinstance(kernel, Linear):
            return ExemplarProblem(groups, cost, None)
        count = np.count_nonzero(cost > 0)
        if count > MOST_KERNEL_ROWS:
            raise InputError(
                f"The kernel matrix of {count:,} rows is more than can be factored ({MOST_KERNEL_ROWS:,}). "
                "Use kernel='linear', or fewer rows."
            )
        return ExemplarProblem(groups, cost, KernelRows(densify_if_small(data.X), kernel))

    def _cost(self, data: LabelledData) -> Array:
        """Return C times the weight of each row."""
        weight = np.ones(data.index.size) if data.weight is None else data.weight
        largest = MOST_COST / float(weight.sum())
        if float(self.C) * max(float(self.positive_weight), 1.0) > largest:
            raise InputError(
                f"C={self.C!r} with positive_weight={self.positive_weight!r} is beyond float64 for rows "
                f"whose weights add up to {float(weight.sum()):.3g}. Use a smaller C."
            )
        return float(self.C) * weight

    def _positive_classes(self, classes: Array) -> Array:
        """Return the numbers of the classes whose rows are exemplars."""
        labels = classes.tolist()
        asked = self.positive
        if asked is None:
            return np.array([1]) if len(labels) == 2 else np.arange(len(labels))
        if isinstance(asked, str) and asked == "all" and asked not in labels:
            return np.arange(len(labels))
        if hasattr(asked, "to_list"):  # a column of pandas or Polars
            asked = asked.to_list()
        several = isinstance(asked, list | tuple | set | frozenset | np.ndarray)
        wanted = list(asked.ravel() if isinstance(asked, np.ndarray) else asked) if several else [asked]
        missing = [one for one in wanted if one not in labels]
        if missing or not wanted:
            what = f"{missing[0]!r} is not among the labels" if missing else "no label is given"
            raise InputError(
                f"positive={self.positive!r}: {what}. The labels are {', '.join(map(repr, labels[:10]))}"
                f"{', ...' * (len(labels) > 10)}; pass one of them, a list of some, or 'all'."
            )
        return np.array(sorted({labels.index(one) for one in wanted}))

    def _groups(self, data: LabelledData, cost: Array) -> list[Group]:
        counts = cost > 0
        return [
            Group(
                int(label),
                np.flatnonzero(counts & (data.index == label)),
                np.flatnonzero(counts & (data.index != label)),
            )
            for label in self._positive_classes(data.classes)
        ]

    def _threads(self, data: LabelledData) -> AbstractContextManager[None]:
        return thread_limit(self.n_jobs, values=data.X.shape[0] * data.X.shape[1])

    def _solve(self, problem: ExemplarProblem, data: LabelledData, budget: Budget) -> ExemplarSolution:
        make = self._solve_linear if problem.rows is None else self._solve_kernel
        parts = list(make(problem, data, budget))
        joined = [np.concatenate(column) for column in zip(*parts, strict=True)]
        order = np.argsort(joined[0], kind="stable")  # of rows, whatever the order of classes
        return ExemplarSolution(*(part[order] for part in joined))

    def _solve_linear(
        self, problem: ExemplarProblem, data: LabelledData, budget: Budget
    ) -> Iterator[ExemplarSolution]:
        """Go through the machines of each class, for the linear kernel."""
        X = densify_if_small(data.X)
        kind = SparseNegatives if sp.issparse(X) else DenseNegatives
        for group in problem.groups:
            own = np.full(group.exemplars.size, self._exemplar_cost)
            negatives = kind(X[group.negatives], problem.cost[group.negatives])
            found = solve_exemplars(negatives, X[group.exemplars], own, float(self.tol), budget)
            del negatives
            rows = X[np.concatenate([group.negatives, group.exemplars])]
            scores = partial(linear_scores, rows, found.w, found.b)
            calibration = self._calibrated(problem, group, scores, budget)
            figures = found.objective, found.gap, found.rounding, found.scale, found.iterations
            yield ExemplarSolution(group.exemplars, found.w, found.b, calibration, *figures)

    def _solve_kernel(
        self, problem: ExemplarProblem, data: LabelledData, budget: Budget
    ) -> Iterator[ExemplarSolution]:
        """Go through the machines of each class, for any other kernel."""
        assert problem.rows is not None
        there = np.flatnonzero(problem.cost > 0)
        place = np.zeros(data.index.size, dtype=np.intp)  # of a row among those that count
        place[there] = np.arange(there.size)
        gram = problem.rows.gram(there, np.float64, Budget())
        points, error = coordinates(gram), problem.rows.entry_error(np.float64)
        for group in problem.groups:
            own = np.full(group.exemplars.size, self._exemplar_cost)
            negatives, exemplars = place[group.negatives], place[group.exemplars]
            cost = problem.cost[group.negatives]
            seen = DenseNegatives(points[negatives], cost)
            found = solve_exemplars(seen, points[exemplars], own, CLOSER * float(self.tol), budget)
            beta = np.zeros((own.size, data.index.size))
            for part in blocks_of(own.size, there.size):
                scores = seen.scores(found.w[part], found.b[part] + found.w[part] @ seen.mean)
                made = expand(gram, negatives, cost, exemplars[part], own[part], scores, found.b[part], error)
                beta[part, there] = made.beta
                found.b[part], found.objective[part], found.gap[part] = made.b, made.objective, made.gap
                found.rounding[part] = made.rounding
            rows = gram[:, np.concatenate([negatives, exemplars])]
            values = partial(linear_scores, rows.T, beta[:, there], found.b)
            calibration = self._calibrated(problem, group, values, budget)
            figures = found.objective, found.gap, found.rounding, found.scale, found.iterations
            yield ExemplarSolution(group.exemplars, beta, found.b, calibration, *figures)

    @property
    def _exemplar_cost(self) -> float:
        return float(self.C) * float(self.positive_weight)

    def _calibrated(
        self, problem: ExemplarProblem, group: Group, scores: Callable[[slice], Array], budget: Budget
    ) -> Array:
        """Return slope and offset of the machines of a group; 1 and 0 where they are not asked for.

        ``scores`` gives those of some machines for the negatives, and then for the exemplars.
        """
        result = np.tile([1.0, 0.0], (group.exemplars.size, 1))
        if self.calibration is None:
            return result
        rows = np.concatenate([group.negatives, group.exemplars])
        weight = problem.cost[rows] / float(self.C)
        own = np.arange(rows.size) >= group.negatives.size
        with suppress(BudgetExhausted):
            for part in blocks_of(group.exemplars.size, rows.size):
                result[part] = calibrate(scores(part), weight, own, FIRES, budget)
        return result

    def _set_fitted(self, solution: ExemplarSolution, data: LabelledData, budget: Budget) -> None:
        self.classes_, self.exemplars_ = data.classes, solution.exemplars
        self._exemplar_index = data.index[solution.exemplars]
        self._rest = self._rest_shares(data)
        self.intercept_ = solution.intercept
        self.calibration_ = None if self.calibration is None else solution.calibration
        for name in ("coef_", "support_", "support_vectors_", "dual_coef_"):
            self.__dict__.pop(name, None)  # of an earlier fit with another kernel
        if isinstance(self.kernel_, Linear):
            self.coef_ = solution.weights
        else:
            self.support_ = np.flatnonzero(solution.weights.any(axis=0))
            self.support_vectors_ = data.X[self.support_]
            self.dual_coef_ = np.ascontiguousarray(solution.weights[:, self.support_])
        self._n_rows = data.index.size
        self.n_iter_, self.history_ = solution.iterations, budget.history
        self.gaps_ = solution.gap / solution.scale
        self._class_sigmoids = self._fit_class_sigmoids(data, budget)
        self._certificate = Certificate(
            "duality gap",
            math.fsum(solution.objective),
            math.fsum(solution.gap),
            math.fsum(solution.scale),
            float(self.tol),
            {"machines": int(solution.gap.size), "worst_relative_gap": float(self.gaps_.max())},
            rounding=math.fsum(solution.rounding),
        )

    def _fit_class_sigmoids(self, data: LabelledData, budget: Budget) -> Array:
        """Return slope and offset of each class; 1 and 0 for one without, or with nothing to learn from."""
        result = np.tile([1.0, 0.0], (data.classes.size, 1))
        if self.calibration is None or budget.exhausted():
            return result
        machines = np.full(data.index.size, -1)
        machines[self.exemplars_] = np.arange(self.exemplars_.size)
        twins = copies(data.X[self.exemplars_])
        best = np.empty((data.index.size, data.classes.size))
        for part in self._portions(data.index.size):
            odds = self._log_odds(data.X[part])
            for row in np.flatnonzero(machines[part] >= 0):
                odds[row, twins[machines[part][row]]] = -np.inf
            best[part] = self._best_of_classes(odds, -np.inf)
        weight = np.ones(data.index.size) if data.weight is None else data.weight
        for label in np.unique(self._exemplar_index):
            z, own = best[:, label], data.index == label
            known = np.isfinite(z) & (weight > 0)
            if not (own & known).any():
                continue
            with suppress(BudgetExhausted):
                counted = np.where(known, weight, 0.0)
                z = np.where(known, z, 0.0)[None]
                result[label] = calibrate(z, counted, own, -np.inf, budget)[0]
        return result

    def _rest_shares(self, data: LabelledData) -> Array:
        """Return the share of each class without exemplars in the weight of all of these, else 0."""
        weight = np.bincount(data.index, weights=data.weight, minlength=data.classes.size).astype(float)
        weight[self._exemplar_index] = 0.0
        total = float(weight.sum())
        return weight / total if total > 0 else weight

    def _warn(self, solution: ExemplarSolution, data: LabelledData, budget: Budget) -> None:
        if not self._certificate.converged and budget.stopped_by is None:
            budget.stopped_by = "lack of progress"  # no fit ends short of its tolerance without a word
        if budget.shortened_by is not None or budget.interrupted:
            budget.stopped_by = budget.shortened_by
            budget.conclude(self.certificate_, advice=ADVICE)
        self._warn_of_single_machines(solution)

    def _warn_of_single_machines(self, solution: ExemplarSolution) -> None:
        """Name the machines that are short of the tolerance, where the sum over all of them is not."""
        certificate = self.certificate_
        rounded = (solution.gap <= 2.0 * solution.rounding) & (self.gaps_ <= MACHINE_PRECISION)
        short = np.flatnonzero((self.gaps_ > self.tol) & ~rounded)
        if not (certificate.converged and short.size):
            return
        worst = int(self.gaps_.argmax())
        text = (
            f"All machines together are within the tolerance ({certificate}), but {short.size} of "
            f"{self.gaps_.size} alone {'is' if short.size == 1 else 'are'} not: that of row "
            f"{self.exemplars_[worst]} is within {self.gaps_[worst]:.1g}, and tol={self.tol!r} was asked for "
            f"(gaps_ has all). {ADVICE}"
        )
        warn(StoppedEarly(text, certificate))

    @property
    def exemplar_labels_(self) -> Array:
        """The label of each exemplar."""
        check_is_fitted(self)
        labels: Array = self.classes_[self._exemplar_index]
        return labels

    # -- answers ---------------------------------------------------------------------------------------------

    def exemplar_scores(self, X: Any) -> Array:
        """Return the score of every machine for each row.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples, n_exemplars)
            The probability that a row is one of the exemplar's class, by this machine alone; with
            ``calibration=None`` w.x + b.
        """
        rows = self._rows(X)
        result = np.empty((rows.shape[0], self.exemplars_.size))
        for part in self._portions(rows.shape[0]):
            odds = self._log_odds(rows[part])
            result[part] = odds if self.calibration_ is None else expit(odds)
        return result

    def retrieve(self, X: Any, k: int = 5, return_scores: bool = True) -> Any:
        """Return the exemplars that fire most for each row, the first of them first.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            The rows to find exemplars for.
        k : int, default=5
            How many.
        return_scores : bool, default=True
            Whether to return scores too.

        Returns
        -------
        scores : ndarray of shape (n_samples, k)
            As :meth:`exemplar_scores` has them; only with ``return_scores``.
        rows : ndarray of shape (n_samples, k)
            Numbers of training rows; equal scores are ordered by them.
        """
        check_is_fitted(self)
        check_number("k", k, at_least=1, whole=True)
        if k > self.exemplars_.size:
            raise InputError(
                f"k={k} exemplars are asked for, but the model has {self.exemplars_.size}. Ask for no more."
            )
        rows = self._rows(X)
        scores, found = np.empty((rows.shape[0], k)), np.empty((rows.shape[0], k), dtype=np.int64)
        for part in self._portions(rows.shape[0]):
            odds = self._log_odds(rows[part])
            best = np.argsort(-odds, axis=1, kind="stable")[:, :k]
            top = np.take_along_axis(odds, best, axis=1)
            scores[part] = top if self.calibration_ is None else expit(top)
            found[part] = self.exemplars_[best]
        return (scores, found) if return_scores else found

    def transfer(self, X: Any, annotations: Any, n_exemplars: int = 1) -> Any:
        """Return what belongs to the exemplars that fire most: labels, masks, images, records, anything.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            The rows to find exemplars for.
        annotations : array, table, list or tuple
            One entry for each training row, in their order.
        n_exemplars : int, default=1
            Of how many exemplars; more than 1 adds an axis (a list of lists for a list).

        Returns
        -------
        array, table or list
            The annotation of the exemplar that fires most for each row.
        """
        rows = self.retrieve(X, n_exemplars, return_scores=False)
        return pick_payload(annotations, rows, self._n_rows, "annotations")

    def decision_function(self, X: Any) -> Array:
        """Return the logarithm of the odds of each class.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Those of the class's best exemplar; of two classes the difference, positive for ``classes_[1]``.
            A class without exemplars has the logarithm of its share of the rows of such classes.
        """
        odds = self._class_odds(X)
        return odds[:, 1] - odds[:, 0] if odds.shape[1] == 2 else odds

    def predict(self, X: Any) -> Array:
        """Return the class of each row: that of the best exemplar, or one without exemplars if none fires.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        best = self._class_odds(X).argmax(axis=1)
        labels: Array = self.classes_[best]
        return labels

    @available_if(is_calibrated)
    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class: its odds, divided by those of all.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return np.asarray(softmax(self._class_odds(X), axis=1))

    def explain(self, x: Any) -> ExemplarExplanation:
        """Return why one row gets its class: the exemplars that fire, and why the first of them does.

        Parameters
        ----------
        x : array of shape (n_features,), or a table with one row

        Returns
        -------
        ExemplarExplanation
        """
        check_is_fitted(self)
        names = column_names(self, self.n_features_in_)
        row = self._rows(one_row(x, names))
        decisions, odds = self._decisions(row)[0], self._log_odds(row)[0]
        order = np.argsort(-odds, kind="stable")
        rows, best = self.exemplars_[order], int(order[0])
        dense = row.toarray() if sp.issparse(row) else row
        parts = self.coef_[best] * dense[0] if isinstance(self.kernel_, Linear) else np.zeros(0)
        most = np.argsort(-np.abs(parts), kind="stable")
        of_classes = self._odds_of_classes(odds[None])[0]
        labels, calibrated = self.classes_.tolist(), self.calibration_ is not None
        return ExemplarExplanation(
            answer=labels[int(of_classes.argmax())],
            classes=dict(zip(labels, softmax(of_classes).tolist(), strict=True)) if calibrated else {},
            rows=rows.tolist(),
            index=named_rows(rows, self._row_index),
            labels=self.exemplar_labels_[order].tolist(),
            decisions=decisions[order].tolist(),
            probabilities=expit(odds[order]).tolist() if calibrated else [],
            columns=[names[j] for j in most],
            contributions=parts[most].tolist(),
            intercept=float(self.intercept_[best]),
        )

    # -- public attributes as answers and the checker read them ----------------------------------------------

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self)
        return check_rows(self, X)

    def _portions(self, count: int) -> list[slice]:
        """Return runs of so many rows whose scores are held at a time."""
        step = max(MOST_SCORES // self.exemplars_.size, 1)
        return [slice(start, start + step) for start in range(0, count, step)]

    def _decisions(self, rows: Any) -> Array:
        """Return w.x + b of every machine, of shape (rows, machines)."""
        with thread_limit(self.n_jobs, values=rows.shape[0] * self.exemplars_.size * rows.shape[1] / 16):
            if isinstance(self.kernel_, Linear):
                return np.asarray(rows @ self.coef_.T) + self.intercept_
            values = self.kernel_(rows, self.support_vectors_)
            return np.asarray(values @ self.dual_coef_.T) + self.intercept_

    def _log_odds(self, rows: Any) -> Array:
        """Return the calibrated scores before the sigmoid; w.x + b where there is none."""
        decisions = self._decisions(rows)
        if self.calibration_ is None:
            return decisions
        result: Array = decisions * self.calibration_[:, 0] + self.calibration_[:, 1]
        return result

    def _class_odds(self, X: Any) -> Array:
        """Return the logarithm of the odds of each class, of shape (rows, classes)."""
        rows = self._rows(X)
        parts = [self._odds_of_classes(self._log_odds(rows[part])) for part in self._portions(rows.shape[0])]
        return np.concatenate(parts)

    def _odds_of_classes(self, odds: Array) -> Array:
        """Return the logarithm of the odds of each class by those of the exemplars."""
        with np.errstate(divide="ignore"):
            rest = np.log(self._rest)
        best = self._best_of_classes(odds, 0.0) * self._class_sigmoids[:, 0] + self._class_sigmoids[:, 1]
        return np.where(np.isin(np.arange(rest.size), self._exemplar_index), best, rest)

    def _best_of_classes(self, odds: Array, otherwise: float) -> Array:
        """Return the largest of each class, of shape (rows, classes)."""
        result = np.full((odds.shape[0], self.classes_.size), otherwise)
        for label in np.unique(self._exemplar_index):
            result[:, label] = odds[:, self._exemplar_index == label].max(axis=1)
        return result

    def _relative_to(self) -> str:
        return "the objective of machines that predict a constant"

    def _recompute(self, claimed: Certificate, X: Any, y: Any, sample_weight: Any) -> Recomputed:
        data = self._check(X, y, sample_weight, reset=False)
        if data.X.shape[0] != self._n_rows:
            raise CertificateError(
                f"The model was fitted on {self._n_rows} rows, not on {data.X.shape[0]}: the data are not "
                "those of the fit."
            )
        positive = self._positive_classes(self.classes_)
        known = data.X, data.index, self._cost(data), positive, self.exemplars_, self._exemplar_cost
        if isinstance(self.kernel_, Linear):
            return recompute(Claims(*known, self.intercept_, self.coef_), claimed)
        machines = self.kernel_, self.support_, self.support_vectors_, self.dual_coef_
        error = KernelRows(densify_if_small(data.X), self.kernel_).entry_error(np.float64)
        return recompute(Claims(*known, self.intercept_, None, *machines, error), claimed)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def copies(rows: Any) -> list[Array]:
    """Return, for each row, which rows are equal to it, itself among them.

    >>> copies(np.array([[1.0], [2.0], [1.0]]))
    [array([0, 2]), array([1]), array([0, 2])]
    """
    if sp.issparse(rows):
        rows = sp.csr_array(rows, copy=True)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        ends = rows.indptr
        keys = [rows.indices[i:j].tobytes() + rows.data[i:j].tobytes() for i, j in itertools.pairwise(ends)]
    else:
        keys = [row.tobytes() for row in rows + 0.0]  # so that -0 is 0
    groups: dict[bytes, list[int]] = {}
    for number, key in enumerate(keys):
        groups.setdefault(key, []).append(number)
    found = {key: np.array(numbers) for key, numbers in groups.items()}
    return [found[key] for key in keys]


def linear_scores(rows: Any, w: Array, b: Array, part: slice) -> Array:
    """Return w.x + b of some machines (rows of the result) for each of the rows (columns)."""
    return np.asarray(rows @ w[part].T).T + b[part, None]
