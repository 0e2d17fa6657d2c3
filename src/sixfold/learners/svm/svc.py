"""The support vector machine with a kernel: the widest margin in a space that is never written down.

    minimise    |w|^2 / 2 + C sum_i max(0, 1 - y_i (w.phi(x_i) + b)),        K(x, z) = phi(x).phi(z)

over w in the kernel's space, by its dual: w = sum_i a_i y_i phi(x_i) for the a that

    maximise    sum_i a_i - 1/2 sum_ij a_i a_j y_i y_j K(x_i, x_j),     0 <= a_i <= C,   sum_i a_i y_i = 0

Rows with a_i > 0 are the support vectors; the model depends on no others. C = inf is the hard margin. The
width of the margin in the kernel's space is 1 / |w|.

Source: Cortes and Vapnik (1995), Support-vector networks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sixfold.budget import Budget, BudgetExhausted
from sixfold.certificate import Certificate
from sixfold.data.blocks import mapping_of
from sixfold.data.checks import check_rows, column_names, require_computable, require_finite, row_index
from sixfold.data.labels import LabelledData, check_labelled, class_factors, require_weight
from sixfold.data.one_row import one_row
from sixfold.data.scan.table import ScanRows
from sixfold.errors import (
    CertificateError,
    InputError,
    NotSeparable,
    StoppedEarly,
    check_flag,
    check_number,
    check_option,
    warn,
)
from sixfold.explain.diagnosis import describe_overlap
from sixfold.explain.kernel import SupportExplanation, explain_decision
from sixfold.geometry.kernels import Called, Linear, Precomputed, make_kernel, require_gram
from sixfold.learners.base import IterativeLearner
from sixfold.learners.svm.calibration import Calibration, calibrate, decisions_of
from sixfold.learners.svm.landmark_svc import (
    LandmarkSolution,
    recompute_in_landmarks,
    solve_in_landmarks,
)
from sixfold.learners.svm.object_input import are_objects, as_objects, kernel_values, one_object
from sixfold.learners.svm.support_vectors import SupportVectors, class_scores, count_pair_votes
from sixfold.solvers.kernel.kernel_rows import KernelRows, densify_if_small
from sixfold.solvers.kernel.one_vs_one import (
    BinarySVM,
    SupportLayout,
    arrange,
    certify_all,
    figures_of,
    fit_binary_svms,
)
from sixfold.solvers.threads import thread_limit
from sixfold.verify.kernel import Claims, recompute
from sixfold.verify.recomputed import Recomputed

Array = NDArray[Any]

LITTLE_WORK = 1 << 24  # products of two numbers: some milliseconds
SPREAD_ROWS = 1000  # that tell how far columns are spread
MUCH_WIDER = 100.0  # times the spread of most columns: squared, nothing is left of the others
MOST_COST = 1e150  # of all rows together inside the margin: squares of it are still float64
ADVICE = (
    "Scale the columns to a similar spread, for instance with StandardScaler, or use a smaller C: either "
    "makes the problem easier. Or allow more, or a larger tol."
)
SHORT_CALIBRATION = (
    "The fit was ended before the cross-validation of probability=True: probabilities come from part of the "
    "rows, or from none. Allow more time, or let callbacks return False."
)


class KernelProblem(NamedTuple):
    """What is to be solved: the rows seen through the kernel, and C times the weight of each."""

    rows: KernelRows
    upper: Array


class KernelSolution(NamedTuple):
    """The binary SVMs that were found, their calibration, and whether there was time for all of it."""

    svms: Sequence[BinarySVM]
    rows: KernelRows
    calibration: Calibration | None
    calibrated: bool


def wants_probabilities(model: SVC) -> bool:
    """Return whether the model is to have probabilities."""
    return bool(model.probability) and not isinstance(model.probability, str)  # "deprecated" of 1.9 is none


def has_probabilities(model: SVC) -> bool:
    """Return True if the model is to have probabilities; raise the AttributeError of scikit-learn if not."""
    if wants_probabilities(model):
        return True
    raise AttributeError("predict_proba is not available when probability=False")


class SVC(ClassifierMixin, IterativeLearner):
    """Separate classes by the widest margin in the space of a kernel.

    Same parameters and attributes as scikit-learn's class. Every fit has a certificate: the duality gap says
    how far from the least possible objective it is at most. That takes a kernel that is positive
    semi-definite, by construction or, as a factorisation showed, on these rows (up to 1,500). Otherwise (a
    sigmoid, a matrix, a function) the fit is a stationary point, and the certificate is of kind "kkt": its
    gap is 0 where all conditions of optimality hold, and bounds nothing.

    With ``rank`` the SVMs live in the space of so many landmark rows, and time and memory grow with the rows
    and not with their square. The certificate then says that they are optimal in that space, and how much of
    the kernel it holds.

    Parameters
    ----------
    C : float, default=1.0
        What a row inside the margin costs; infinity is the hard margin.
    kernel : str, callable or Kernel, default="rbf"
        "linear", "poly" or "polynomial", "quadratic" ((x.z)^2), "rbf", "sigmoid", "precomputed" (X is the
        matrix of kernel values), a function of two tables, or one of :mod:`sixfold.geometry.kernels`.
    degree : int, default=3
        Of "poly".
    gamma : {"scale", "auto"} or float, default="scale"
        Of "rbf", "poly" and "sigmoid"; 1 / (columns * variance of all numbers in X), or 1 / columns.
    coef0 : float, default=0.0
        The constant in "poly" and "sigmoid".
    shrinking : bool, default=True
        Accepted for scikit-learn's sake; see docs/differences.md.
    probability : bool, default=False
        Whether to learn probabilities, by cross-validation in five parts. For two classes the more probable
        one is always the predicted one.
    tol : float, default=0.001
        Stop when no pair of rows violates optimality by more than this, and the certified gap is below
        ``tol`` times the objective of the best constant model.
    cache_size : float, default=200
        Most megabytes for kernel values; 8 are taken in any case.
    class_weight : dict, "balanced" or None, default=None
        How much the rows of each class count; "balanced" gives all classes the same total.
    verbose : bool, default=False
        Whether to print progress: a line for the first and the last record, and some in between.
    max_iter : int, default=-1
        Most iterations of each binary SVM; -1 or None for no limit of yours.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Whether :meth:`decision_function` has a column for each class or for each pair.
    break_ties : bool, default=False
        Whether equal votes of more than two classes are told apart by the decisions, not by the order of
        classes.
    random_state : int, RandomState or None, default=None
        The seed of the parts that ``probability=True`` learns from, and of landmarks; None is 0.
    sigma : float, default=None
        The width of "rbf" in place of gamma = 1 / (2 sigma^2).
    multi_class : {"ovo", "ovr"}, default="ovo"
        A binary SVM for each pair of classes, or for each class against the rest.
    rank : int, default=None
        How many landmark rows span the space of the SVMs: support vectors of a sample, or of few rows those
        that :class:`~sixfold.Nystroem` chooses. None for the whole space of the kernel. Of C=inf there is
        none.
    n_jobs : int, default=None
        Threads for the native loops; None or -1 for all.
    time_limit : float, default=None
        Most seconds; the best model so far is kept, with a :class:`StoppedEarly` warning.
    callbacks : sequence of callables, default=None
        Called with a record (iteration, seconds, objective, gap) after every round, or every binary SVM
        where there are several; True stops the fit, and the cross-validation of ``probability=True``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_weight_ : ndarray of shape (n_classes,)
    support_ : ndarray of shape (n_SV,)
        The rows that are support vectors, by class, then by row; with ``rank`` the landmarks.
    support_vectors_ : ndarray or CSR matrix of shape (n_SV, n_features)
        They themselves; empty for kernel="precomputed".
    n_support_ : ndarray of shape (n_classes,)
        How many each class has.
    dual_coef_ : ndarray or CSR matrix of shape (n_classes - 1, n_SV)
        a_i y_i of each support vector in its SVMs; (n_classes, n_SV) one against the rest. With ``rank`` the
        coefficient of each landmark in every SVM, of shape (n_svms, n_SV).
    intercept_ : ndarray of shape (n_svms,)
    coef_ : ndarray or CSR matrix of shape (n_svms, n_features)
        w, for the linear kernel only.
    margin_ : float or ndarray of shape (n_svms,)
        1 / |w|.
    multipliers_ : CSR matrix of shape (n_svms, n_samples)
        With ``rank`` only: a_i y_i of the training rows, by which the certificate is checked.
    trace_held_ : float
        With ``rank`` only: the share of the kernel's trace that the space of the landmarks holds on these
        rows.
    kernel_ : Kernel
        The kernel with the gamma that was used; ``Precomputed()`` for rows that only a function can compare.
    certificate_ : Certificate
        How far from the least possible objective the fit is at most; ``certificate_.verify(X, y)`` recomputes
        it.
    fit_status_ : int
        0 if the certified gap is within the tolerance, else 1.
    n_iter_ : ndarray of shape (n_svms,)
    shape_fit_ : tuple
        The shape of X.
    solver_, history_
        What was used, and a record for each round.

    Examples
    --------
    >>> import numpy as np
    >>> from sixfold import SVC
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    >>> model = SVC(C=10.0, gamma=1.0).fit(X, ["even", "even", "odd", "odd"])
    >>> model.predict([[0.9, 0.1], [0.1, 0.2]]).tolist()
    ['odd', 'even']
    """

    dual_coef_: Any
    multipliers_: Any
    trace_held_: float
    _calibration: Calibration | None
    _row_index: Array | None  # what the training rows are called
    _objects: Array | None  # the training rows, where only a function can compare them

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: Any = False,
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: Any = None,
        verbose: Any = False,
        max_iter: int | None = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        sigma: float | None = None,
        multi_class: str = "ovo",
        rank: int | None = None,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        callbacks: Any = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.sigma = sigma
        self.multi_class = multi_class
        self.rank = rank
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.callbacks = callbacks

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            The columns to predict from; for kernel="precomputed" the kernel values of all rows with each
            other; for a function any list of objects that it can compare.
        y : array of shape (n_samples,)
            The label of each row: text, whole numbers or booleans.
        sample_weight : array of shape (n_samples,), default=None
            How much each row counts: C is multiplied by it.

        Returns
        -------
        SVC
            The fitted model itself.
        """
        return self._run_fit(X, y, sample_weight)

    def _check_parameters(self) -> None:
        check_number("C", self.C, above=0)
        check_number("cache_size", self.cache_size, above=0, finite=True)
        if self.max_iter != -1:
            check_number("max_iter", self.max_iter, at_least=1, whole=True, optional=True)
        check_option("decision_function_shape", self.decision_function_shape, ("ovr", "ovo"))
        check_option("multi_class", self.multi_class, ("ovo", "ovr"))
        check_number("rank", self.rank, at_least=1, whole=True, optional=True)
        if self.rank is not None and math.isinf(self.C):
            raise InputError(
                f"rank={self.rank} and C=inf: whether landmarks leave a surface that separates the classes "
                "is not decided. Use a finite C, or rank=None."
            )
        for name in ("shrinking", "break_ties"):
            check_flag(name, getattr(self, name))
        # What scikit-learn 1.9 has for "not given"; later it will have no probabilities.
        if not (isinstance(self.probability, str) and self.probability == "deprecated"):
            check_flag("probability", self.probability)
        if self.multi_class == "ovr" and self.decision_function_shape == "ovo":
            raise InputError(
                "decision_function_shape='ovo' asks for a column for each pair of classes, which "
                "multi_class='ovr' does not have. Use 'ovr' for both, or 'ovo' for both."
            )

    def _check(self, X: Any, y: Any, sample_weight: Any, reset: bool = True) -> LabelledData:
        given = X
        beyond = isinstance(X, ScanRows) and mapping_of(X) is not None
        if reset and self.rank is None and beyond:
            raise InputError(
                f"SVC compares each row with many others, again and again, and these {len(X):,} do not fit "
                "into the memory limit of the scan. Use SVC(rank=1000), which goes over them a few times, "
                "LinearSVC, or a larger memory_limit."
            )
        objects = as_objects(X) if callable(self.kernel) and are_objects(self.kernel, X) else None
        X = X if objects is None else kernel_values(self.kernel, objects, objects)
        data = check_labelled(
            self, X, y, sample_weight, classes=None if reset else self.classes_, reset=reset
        )
        if reset:
            self._objects, self._row_index = objects, row_index(given)
        if self._takes_values():
            require_finite(data.X, "X", lambda: column_names(self, data.X.shape[1]))
            require_gram(data.X)
        else:
            require_computable(data.X, "X", lambda: column_names(self, data.X.shape[1]))
        if objects is not None:
            require_gram(data.X, Called(self.kernel))
        return data

    def _state_problem(self, data: LabelledData) -> KernelProblem:
        self._step = "round" if data.classes.size == 2 else "binary SVM"  # what a record is of
        return KernelProblem(self._make_kernel_rows(data.X), self._upper(data))

    def _make_kernel_rows(self, X: Any) -> KernelRows:
        """Return the rows of a table as solvers read them, with the kernel that the parameters state."""
        read = densify_if_small(X)
        chosen = self.kernel if self._objects is None else "precomputed"
        kernel = make_kernel(
            chosen, read, gamma=self.gamma, sigma=self.sigma, degree=self.degree, coef0=self.coef0
        )
        if kernel.form is None:
            return KernelRows(X, kernel)
        kernel.diagonal(read)  # refuses values beyond float64, which native loops would go on with
        # Only coefficients that add up to 0 leave out where the origin is.
        return KernelRows(read, kernel, centred=self.rank is None)

    def _class_factors(self, data: LabelledData) -> Array:
        """Return how much the rows of each class count."""
        return class_factors(self.class_weight, data.classes, data.index, data.weight)

    def _upper(self, data: LabelledData) -> Array:
        """Return C times the weight of each row; 0 for rows that do not count."""
        weight: Array = np.ones(data.index.size)
        if self.class_weight is not None or data.weight is not None:
            weight = self._class_factors(data)[data.index]
            weight = weight if data.weight is None else weight * data.weight
            require_weight(data.classes, data.index, weight)
        # The best constant model costs up to twice the sum of U.
        if math.isfinite(self.C) and float(self.C) > MOST_COST / float(weight.sum()):
            raise InputError(
                f"C={self.C!r} for rows whose weights add up to {float(weight.sum()):.3g} is beyond float64: "
                "the cost of a row inside the margin cannot be added up. Use C=inf for the hard margin, or a "
                "smaller C."
            )
        result: Array = np.multiply(float(self.C), weight, where=weight > 0, out=np.zeros(weight.size))
        return result

    def _limits(self) -> tuple[float, int | None]:
        return self.tol, None  # max_iter counts the iterations of each binary SVM

    def _threads(self, data: LabelledData) -> AbstractContextManager[None]:
        return self._threads_for(data.X.shape[0] ** 2 * data.X.shape[1])

    def _threads_for(self, work: float) -> AbstractContextManager[None]:
        """Let native loops use the threads that are asked for, but one where there is little work.

        Beside other busy processes, a fit of 270 rows took 28 ms with two threads, which wait for each other,
        and 1.6 ms with one.
        """
        return thread_limit(self.n_jobs, alone=work < LITTLE_WORK)

    def _solve(
        self, problem: KernelProblem, data: LabelledData, budget: Budget
    ) -> KernelSolution | LandmarkSolution:
        if self.rank is not None:
            self._step = "round"
            return solve_in_landmarks(
                self, problem.rows, problem.upper, data, budget, wants_probabilities(self)
            )

        def fit(upper: Array, within: Budget) -> Sequence[BinarySVM]:
            return fit_binary_svms(
                problem.rows,
                data.index,
                data.classes.size,
                upper,
                self.multi_class == "ovo",
                float(self.tol),
                float(self.cache_size),
                within,
                None if self.max_iter == -1 else self.max_iter,
            )

        svms = fit(problem.upper, budget)
        if math.isinf(self.C):
            self._require_separable(svms, data)
        if not wants_probabilities(self):
            return KernelSolution(svms, problem.rows, None, True)
        pairwise = self._is_pairwise(data.classes.size)

        def decide(upper: Array, held: Array) -> Array:
            layout = arrange(fit(upper, _quiet(budget)), data.index, data.classes.size, pairwise)
            return decisions_of(layout, problem.rows, held, budget)

        calibration, complete = calibrate(decide, data, problem.upper, pairwise, self.random_state, budget)
        return KernelSolution(svms, problem.rows, calibration, complete)

    def _is_pairwise(self, n_classes: int) -> bool:
        """Return whether there is a binary SVM for each pair of three classes or more."""
        return n_classes > 2 and self.multi_class == "ovo"

    def _require_separable(self, svms: Sequence[BinarySVM], data: LabelledData) -> None:
        """Raise a :class:`NotSeparable` with the proof, if there is no hard margin."""
        for svm in svms:
            proof = svm.solution.overlap
            if proof is None:
                continue
            labels = data.classes.tolist()
            positive = labels[svm.positive]
            negative = f"not {positive!r}" if svm.negative is None else labels[svm.negative]
            y = np.where(data.index == svm.positive, 1.0, -1.0)
            text = describe_overlap(proof, y, [negative, positive], "in the space of the kernel")
            text += " C=inf asks for a plane that does; use a finite C, or a kernel with more room."
            if not isinstance(svm.problem.rows.kernel, Linear):
                text += (
                    " (All this as far as float64 can tell: scale the columns, or take a narrower kernel.)"
                )
            raise NotSeparable(text, proof.rows, proof.weights)

    def _set_fitted(
        self, solution: KernelSolution | LandmarkSolution, data: LabelledData, budget: Budget
    ) -> None:
        kernel = solution.rows.kernel
        self._pairwise = self._is_pairwise(data.classes.size)
        if isinstance(solution, LandmarkSolution):
            layout = solution.layout
        else:
            layout = self._lay_out(solution.svms, solution.rows, data)
        self.classes_, self.class_weight_ = data.classes, self._class_factors(data)
        self.support_, self.n_support_, self.intercept_ = layout.support, layout.n_support, layout.intercept
        sparse, given = sp.issparse(data.X), isinstance(kernel, Precomputed)
        self.dual_coef_ = sp.csr_matrix(layout.dual_coef) if sparse else layout.dual_coef
        self.support_vectors_ = np.empty((0, 0)) if given else data.X[layout.support]
        self.kernel_, self.shape_fit_ = kernel, data.X.shape
        self._calibration, self.history_ = solution.calibration, budget.history
        for name in ("multipliers_", "trace_held_"):
            self.__dict__.pop(name, None)
        if isinstance(solution, LandmarkSolution):
            squares = [float(svm.normal @ svm.normal) for svm in solution.svms]
            iterations = [svm.passes for svm in solution.svms]
            self.multipliers_, self._certificate = solution.multipliers, solution.certificate
            self.trace_held_, self.solver_ = float(self._certificate.details["trace_held"]), "landmarks"
            self._violation, self._score_rounding = 0.0, 0.0
        else:
            squares, iterations, self._violation, self._score_rounding = figures_of(solution.svms)
            self._certificate, self.solver_ = certify_all(solution.svms, float(self.tol)), "smo"
        self.n_iter_ = np.array(iterations, dtype=np.int32)
        margins = [math.inf if square <= 0.0 else 1.0 / math.sqrt(square) for square in squares]
        self.margin_ = margins[0] if len(margins) == 1 else np.array(margins)
        if kernel.form is not None and not sparse:
            remark = describe_spreads(data.X, lambda: column_names(self, data.X.shape[1]))
            notes = (*self._certificate.notes, remark) if remark else self._certificate.notes
            self._certificate = replace(self._certificate, notes=notes)
        self.fit_status_ = int(not self._certificate.converged)

    def _lay_out(self, svms: Sequence[BinarySVM], rows: KernelRows, data: LabelledData) -> SupportLayout:
        """Return support vectors and coefficients as the public attributes have them."""
        layout = arrange(svms, data.index, data.classes.size, self._is_pairwise(data.classes.size))
        if rows.origin is None:
            return layout
        # w.(x - origin) + b = w.x + (b - w.origin), with the w that decisions are made of.
        normals = SupportVectors(layout, rows.kernel, data.X[layout.support]).normals()
        return replace(layout, intercept=layout.intercept - normals @ rows.origin)

    def _warn(self, solution: KernelSolution | LandmarkSolution, data: LabelledData, budget: Budget) -> None:
        if not (solution.calibrated or budget.interrupted):
            warn(StoppedEarly(SHORT_CALIBRATION, self.certificate_))
        if not self._certificate.converged and budget.stopped_by is None:
            budget.stopped_by = "lack of progress"  # no fit ends short of its tolerance without a word
        if budget.stopped_by is not None or budget.interrupted:
            made = int(self.n_iter_.sum())
            reached = f"{made} iteration{'s' * (made != 1)}"
            budget.conclude(self.certificate_, reached=reached, advice=self._advice(data.X))

    def _advice(self, X: Any) -> str:
        """Return what to do about a fit that ended short of its tolerance."""
        certificate, kernel = self._certificate, self.kernel_
        if np.isfinite(certificate.objective):
            lost = certificate.rounding > certificate.tolerance * certificate.scale
        else:  # the hard margin of rows that are not apart yet: scores tell
            lost = self._score_rounding > self.tol
        if not lost:
            return ADVICE
        largest = float(np.abs(kernel.diagonal(X)).max())
        if kernel.form is not None and kernel.form.kind in ("linear", "polynomial"):
            remedy = "scale the columns, for instance with StandardScaler, or choose a smaller " + (
                "degree" if kernel.form.degree > 1 else "C"
            )
        else:
            remedy = "choose a smaller C, or a larger tol"
        factor = float(np.abs(self._support().layout.dual_coef).max(initial=0.0))
        return (
            f"Kernel values up to {largest:.1g}, times dual coefficients up to {factor:.1g}, leave no digits "
            f"for tol={self.tol:g}: {remedy}."
        )

    # -- answers -------------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Array:
        """Return how far each row is on the side of each class.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            With kernel="precomputed", the kernel values with the training rows, of shape (n_samples,
            n_train).

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
            Two classes: f, positive for ``classes_[1]``. More: a score for each class, votes of the pairs
            with equal ones told apart by their decisions; with ``decision_function_shape="ovo"`` f of each
            pair, positive for its first class.
        """
        return self._map_decisions(X, self._shape_decisions)

    def _shape_decisions(self, decisions: Array) -> Array:
        """Return the decisions of all SVMs in the shape that is asked for."""
        if decisions.shape[1] == 1:
            return decisions[:, 0]
        if self._pairwise and self.decision_function_shape == "ovr":
            return class_scores(decisions, self.classes_.size)
        return decisions

    def predict(self, X: Any) -> Array:
        """Return the class of each row.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            As in :meth:`decision_function`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        if self._breaks_ties():
            index = self._map_decisions(X, self._tie_winners)
        else:
            support, rows = self._support(), self._rows(X)
            with self._query_budget(rows) as budget:
                index = support.predict(rows, budget)
        labels: Array = self.classes_[index]
        return labels

    def _map_decisions(self, X: Any, make: Callable[[Array], Array]) -> Array:
        """Return what ``make`` makes of the decisions of some rows at a time: of all those of X."""
        support, rows = self._support(), self._rows(X)
        with self._query_budget(rows) as budget:
            parts = [make(support.decisions(rows[part], budget)) for part in support.portions(rows.shape[0])]
        return np.concatenate(parts)

    def _breaks_ties(self) -> bool:
        """Return whether equal votes are told apart by decisions."""
        if self.break_ties and self.decision_function_shape == "ovo":
            raise InputError(
                "break_ties must be False when decision_function_shape is 'ovo': ties are broken by the "
                "scores of classes. Use decision_function_shape='ovr'."
            )
        return self.break_ties and self._pairwise

    def _tie_winners(self, decisions: Array) -> Array:
        """Return the class number of each row where equal votes are told apart by decisions."""
        winners: Array = class_scores(decisions, self.classes_.size).argmax(axis=1)
        return winners

    @available_if(has_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class.

        For two classes the more probable one is that of :meth:`predict`. For more, the probabilities of pairs
        are joined; the most probable class is nearly always the predicted one.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            As in :meth:`decision_function`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self, "support_")
        calibration = self._calibration
        if calibration is None:
            raise NotFittedError("predict_proba is not available when fitted with probability=False")
        n_classes, pairwise = self.classes_.size, self._pairwise
        return self._map_decisions(X, lambda f: calibration.class_probabilities(f, n_classes, pairwise))

    @available_if(has_probabilities)
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of :meth:`predict_proba`.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            As in :meth:`decision_function`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):
            logarithms: Array = np.log(self.predict_proba(X))
        return logarithms

    def explain(self, x: Any) -> SupportExplanation:
        """Return why one row gets its class: the support vectors that decide, with their shares.

        Parameters
        ----------
        x : array of shape (n_features,), or a table with one row
            Of objects that only a function can compare, the object, or a list of it alone.

        Returns
        -------
        SupportExplanation
            Of several classes, the decision of the answer, which is that of :meth:`predict`, against the
            runner-up.
        """
        support, breaks_ties = self._support(), self._breaks_ties()
        names = column_names(self, self.n_features_in_)
        row = self._rows(one_row(x, names) if self._objects is None else one_object(x))
        with self._query_budget(row) as budget:
            decisions = support.decisions(row, budget)
        answer = int((self._tie_winners if breaks_ties else support.winners)(decisions)[0])
        second, coefficients, intercept = support.runner_up(decisions, answer)
        labels = self.classes_.tolist()
        votes = count_pair_votes(decisions, len(labels))[0].astype(int).tolist() if self._pairwise else []
        return explain_decision(
            support.kernel_values(row),
            coefficients,
            intercept,
            self.support_,
            np.repeat(self.classes_, self.n_support_).tolist(),
            self._row_index,
            answer=labels[answer],
            runner_up=labels[second],
            votes=dict(zip(labels, votes, strict=True)) if votes else {},
            of="landmarks" if hasattr(self, "multipliers_") else "support vectors",
        )

    @property
    def coef_(self) -> Any:
        """The normal w of each binary SVM, for the linear kernel."""
        check_is_fitted(self, "support_")
        if not isinstance(self.kernel_, Linear):
            raise AttributeError("coef_ is only available when using a linear kernel")
        normals = self._support().normals()
        coef: Any = sp.csr_matrix(normals) if sp.issparse(self.support_vectors_) else normals
        # It is made of the dual coefficients: to change it would change nothing.
        (coef.data if sp.issparse(coef) else coef).flags.writeable = False
        return coef

    # -- public attributes as prediction and the checker read them -----------------------------------------

    def _support(self) -> SupportVectors:
        """Return the support vectors by the public attributes, so that changed ones answer as changed."""
        if not hasattr(self, "support_"):
            check_is_fitted(self, "support_")  # which asks for all tags first
        coefficients = self.dual_coef_.toarray() if sp.issparse(self.dual_coef_) else self.dual_coef_
        together = self.n_support_.sum()
        if together != coefficients.shape[1] or self.support_.size != coefficients.shape[1]:
            raise InputError(
                f"The internal representation of {type(self).__name__} was altered: there are "
                f"{self.support_.size} support vectors, {together} of the classes together and "
                f"{coefficients.shape[1]} coefficients of each SVM. Fit again."
            )
        layout = SupportLayout(self.support_, self.n_support_, coefficients, self.intercept_, self._pairwise)
        return SupportVectors(layout, self.kernel_, self.support_vectors_)

    def _rows(self, X: Any) -> Any:
        if self._objects is not None:
            X = kernel_values(self.kernel, X, self._objects)
        rows = check_rows(self, X)
        return rows.toarray() if isinstance(self.kernel_, Precomputed) and sp.issparse(rows) else rows

    @contextmanager
    def _query_budget(self, rows: Any) -> Iterator[Budget]:
        """Give a budget without limits; Ctrl-C, which native loops notice, is raised when they are done."""
        work = rows.shape[0] * rows.shape[1] * self.support_.size
        budget = Budget()
        # Loops of milliseconds need not notice: to take Ctrl-C over and hand it back costs them a tenth.
        ctrl_c = budget if work >= LITTLE_WORK else nullcontext()
        with ctrl_c, self._threads_for(work), suppress(BudgetExhausted):
            yield budget
        if budget.interrupted:
            raise KeyboardInterrupt

    def _relative_to(self) -> str:
        return "the objective itself" if math.isinf(self.C) else super()._relative_to()

    def _recompute(self, claimed: Certificate, X: Any, y: Any, sample_weight: Any) -> Recomputed:
        data = self._check(X, y, sample_weight, reset=False)
        if data.X.shape[0] != self.shape_fit_[0]:
            raise CertificateError(
                f"The model was fitted on {self.shape_fit_[0]} rows, not on {data.X.shape[0]}: the data are "
                "not those of the fit."
            )
        if hasattr(self, "multipliers_"):
            return recompute_in_landmarks(self, claimed, data, self._upper(data))
        layout = self._support().layout
        claims = Claims(
            layout.support,
            layout.n_support,
            layout.dual_coef,
            layout.intercept,
            self._pairwise,
            self.kernel_,
            self.support_vectors_,
            self._violation,
            self._score_rounding,
            data.X,
            data.index,
            self._upper(data),
        )
        return recompute(claims, claimed)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise, tags.input_tags.sparse = self._takes_values(), not self._takes_values()
        return tags

    def _takes_values(self) -> bool:
        """Return whether X holds kernel values in place of rows."""
        named = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return named or isinstance(self.kernel, Precomputed)


def describe_spreads(X: Any, names: Callable[[], list[str]]) -> str | None:
    """Return a remark if one column is spread so much wider than most that a kernel sees little else.

    >>> describe_spreads(np.array([[1.0, 50e3], [2.0, 80e3], [4.0, 20e3]]), lambda: ["years", "income"])
    "column 'income' is spread 2e+04 times as wide as most, so the kernel sees little else: scale the columns"
    """
    some = X[:: max(X.shape[0] // SPREAD_ROWS, 1)]
    about = some - np.add.reduce(some, axis=0, dtype=np.float64) / some.shape[0]
    spread = np.sqrt(np.einsum("ij,ij->j", about, about) / about.shape[0])
    usual = sorted(width for width in spread.tolist() if width > 0.0)
    if len(usual) < 2 or usual[-1] < MUCH_WIDER * usual[(len(usual) - 1) // 2]:
        return None
    times, widest = usual[-1] / usual[(len(usual) - 1) // 2], names()[int(spread.argmax())]
    return (
        f"column {widest!r} is spread {times:.1g} times as wide as most, so the kernel sees little else: "
        "scale the columns"
    )


def _quiet(budget: Budget) -> Budget:
    """Return a budget for what is left of the time, which Ctrl-C ends too, without callbacks."""
    left = None if budget.time_limit is None else max(budget.seconds_left, 0.0)
    quiet = Budget(budget.tol, None, left)
    quiet.flag = budget.flag
    return quiet
