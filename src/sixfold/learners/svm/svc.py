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
from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.data.checks import column_names, require_computable, require_finite
from sixfold.data.labels import LabelledData, check_labelled
from sixfold.errors import (
    InputError,
    NotSeparable,
    StoppedEarly,
    check_flag,
    check_number,
    check_option,
    warn,
)
from sixfold.explain.diagnosis import describe_overlap, describe_spreads
from sixfold.geometry.kernels import Linear, Precomputed, make_kernel
from sixfold.learners.svm.calibration import calibrate
from sixfold.learners.svm.object_input import are_things, as_things, kernel_values
from sixfold.learners.svm.precomputed_kernel import require_gram
from sixfold.learners.svm.support_layout import arrange
from sixfold.learners.svm.support_model import SupportModel, wants_probabilities
from sixfold.learners.svm.support_scores import as_loops_read, from_origin
from sixfold.solvers.kernel.certificate import certify_all
from sixfold.solvers.kernel.kernel_rows import KernelRows
from sixfold.solvers.kernel.one_vs_one import Machine, train

Array = NDArray[Any]

ADVICE = (
    "Scale the columns to a similar spread, for instance with StandardScaler, or use a smaller C: either "
    "makes the problem easier. Or allow more, or a larger tol."
)
SHORT_CALIBRATION = (
    "The fit was ended before the cross-validation of probability=True: probabilities come from part of the "
    "rows, or from none. Allow more time, or let callbacks return False."
)


class SVC(SupportModel):
    """Separate classes by the widest margin in the space of a kernel.

    Same parameters and attributes as scikit-learn's class. Every fit has a certificate: the duality gap says
    how far from the least possible objective it is at most. That takes a kernel that is positive
    semi-definite, by construction or, as a factorisation showed, on these rows (up to 1,500). Otherwise (a
    sigmoid, a matrix, a function) the fit is a stationary point, and the certificate is of kind "kkt": its
    gap is 0 where all conditions of optimality hold, and bounds nothing.

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
        Accepted for scikit-learn's sake, without effect: the solver works on the rows that matter anyway.
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
        Accepted for scikit-learn's sake, without effect: ``callbacks=[print]`` reports progress.
    max_iter : int, default=-1
        Most iterations of each machine; -1 or None for no limit of yours.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Whether :meth:`decision_function` has a column for each class or for each pair.
    break_ties : bool, default=False
        Whether equal votes of more than two classes are told apart by the decisions, not by the order of
        classes.
    random_state : int, RandomState or None, default=None
        The seed of the parts that ``probability=True`` learns from; None is 0.
    sigma : float, default=None
        The width of "rbf" in place of gamma = 1 / (2 sigma^2).
    multi_class : {"ovo", "ovr"}, default="ovo"
        A machine for each pair of classes, or for each class against the rest.
    n_jobs : int, default=None
        Threads for the native loops; None or -1 for all.
    time_limit : float, default=None
        Most seconds; the best model so far is kept, with a :class:`StoppedEarly` warning.
    callbacks : sequence of callables, default=None
        Called with a record (iteration, seconds, objective, gap) after every round, or every machine where
        there are several; True stops the fit, and the cross-validation of ``probability=True``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_weight_ : ndarray of shape (n_classes,)
    support_ : ndarray of shape (n_SV,)
        The rows that are support vectors, by class, then by row.
    support_vectors_ : ndarray or CSR matrix of shape (n_SV, n_features)
        They themselves; empty for kernel="precomputed".
    n_support_ : ndarray of shape (n_classes,)
        How many each class has.
    dual_coef_ : ndarray or CSR matrix of shape (n_classes - 1, n_SV)
        a_i y_i of each support vector in its machines; (n_classes, n_SV) one against the rest.
    intercept_ : ndarray of shape (n_machines,)
    coef_ : ndarray or CSR matrix of shape (n_machines, n_features)
        w, for the linear kernel only.
    margin_ : float or ndarray of shape (n_machines,)
        1 / |w|.
    kernel_ : Kernel
        The kernel with the gamma that was used; ``Precomputed()`` for rows that only a function can compare.
    certificate_ : Certificate
        How far from the least possible objective the fit is at most; ``certificate_.verify(X, y)`` recomputes
        it.
    fit_status_ : int
        0 if the certified gap is within the tolerance, else 1.
    n_iter_ : ndarray of shape (n_machines,)
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
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.callbacks = callbacks

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            The columns to predict from; for kernel="precomputed" the kernel values of all rows with each
            other; for a function any list of things that it can compare.
        y : array of shape (n_samples,)
            The label of each row: text, whole numbers or booleans.
        sample_weight : array of shape (n_samples,), default=None
            How much each row counts: C is multiplied by it.

        Returns
        -------
        SVC
            The fitted model itself.
        """
        self._check_parameters()
        data = self._check(X, y, sample_weight)
        rows = self._seen_through_kernel(data.X)
        upper = self._upper(data)
        calibration, complete = None, True
        with (
            self._callbacks(data.X, y, None) as callbacks,
            Budget(self.tol, None, self.time_limit, callbacks) as budget,
            self._threads(data.X.shape[0] ** 2 * data.X.shape[1]),
        ):
            machines = self._train(rows, data, upper, budget)
            self._require_separable(machines, data)
            if wants_probabilities(self):
                calibration, complete = calibrate(
                    lambda bounds: self._train(rows, data, bounds, _quiet(budget)),
                    rows,
                    data,
                    upper,
                    machines[0].negative is not None and len(machines) > 1,
                    self.random_state,
                    budget,
                )
        self._keep(machines, data, rows, budget)
        self._calibration = calibration
        if not (complete or budget.interrupted):
            warn(StoppedEarly(SHORT_CALIBRATION, self.certificate_))
        if budget.stopped_by is not None or budget.interrupted:
            made = int(self.n_iter_.sum())
            reached = f"{made} iteration{'s' * (made != 1)}"
            budget.conclude(self.certificate_, reached=reached, advice=self._advice(data.X))
        return self

    def _check_parameters(self) -> None:
        check_number("C", self.C, above=0)
        check_number("tol", self.tol, at_least=0)
        check_number("cache_size", self.cache_size, above=0, finite=True)
        if self.max_iter != -1:
            check_number("max_iter", self.max_iter, at_least=1, whole=True, optional=True)
        check_number("time_limit", self.time_limit, above=0, optional=True)
        check_option("decision_function_shape", self.decision_function_shape, ("ovr", "ovo"))
        check_option("multi_class", self.multi_class, ("ovo", "ovr"))
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
        things = as_things(X) if are_things(self.kernel, X) else None
        X = X if things is None else kernel_values(self.kernel, things, things)
        data = check_labelled(
            self, X, y, sample_weight, classes=None if reset else self.classes_, reset=reset
        )
        if reset:
            self._things = things
        if self._gives_values():
            require_finite(data.X, "X", lambda: column_names(self, data.X.shape[1]))
            require_gram(data.X)
        else:
            require_computable(data.X, "X", lambda: column_names(self, data.X.shape[1]))
        return data

    def _seen_through_kernel(self, X: Any) -> KernelRows:
        """Return the rows of a table as solvers read them, with the kernel that the parameters state."""
        read = as_loops_read(X)
        chosen = self.kernel if self._things is None else "precomputed"
        kernel = make_kernel(
            chosen, read, gamma=self.gamma, sigma=self.sigma, degree=self.degree, coef0=self.coef0
        )
        if kernel.form is None:
            return KernelRows(X, kernel)
        kernel.diagonal(read)  # refuses values beyond float64, which native loops would go on with
        return KernelRows(read, kernel, centred=True)

    def _train(self, rows: KernelRows, data: LabelledData, upper: Array, budget: Budget) -> list[Machine]:
        return train(
            rows,
            data.index,
            data.classes.size,
            upper,
            "ovr" if self.multi_class == "ovr" else "ovo",
            float(self.tol),
            float(self.cache_size),
            budget,
            None if self.max_iter == -1 else self.max_iter,
        )

    def _advice(self, X: Any) -> str:
        """Return what to do about a fit that ended short of its tolerance."""
        certificate, kernel = self._certificate, self.kernel_
        if np.isfinite(certificate.objective):
            lost = certificate.rounding > certificate.tolerance * certificate.scale
        else:  # the hard margin of rows that are not apart yet: scores tell
            lost = certificate.details["rounding"] > self.tol
        if not lost:
            return ADVICE
        largest = float(np.abs(kernel.diagonal(X)).max())
        if kernel.form is not None and kernel.form.kind in ("linear", "polynomial"):
            remedy = "scale the columns, for instance with StandardScaler, or choose a smaller " + (
                "degree" if kernel.form.degree > 1 else "C"
            )
        else:
            remedy = "choose a smaller C, or a larger tol"
        factor = float(np.abs(self._layout().dual_coef).max(initial=0.0))
        return (
            f"Kernel values up to {largest:.1g}, times dual coefficients up to {factor:.1g}, leave no digits "
            f"for tol={self.tol:g}: {remedy}."
        )

    def _require_separable(self, machines: list[Machine], data: LabelledData) -> None:
        """Raise a :class:`NotSeparable` with the proof, if a hard margin was asked for and there is none."""
        for machine in machines:
            proof = machine.solution.overlap
            if proof is None:
                continue
            labels = data.classes.tolist()
            positive = labels[machine.positive]
            negative = f"not {positive!r}" if machine.negative is None else labels[machine.negative]
            y = np.where(data.index == machine.positive, 1.0, -1.0)
            text = describe_overlap(proof, y, [negative, positive], "in the space of the kernel")
            text += " C=inf asks for a plane that does; use a finite C, or a kernel with more room."
            if not isinstance(machine.problem.rows.kernel, Linear):
                text += (
                    " (All this as far as float64 can tell: scale the columns, or take a narrower kernel.)"
                )
            raise NotSeparable(text, proof.rows, proof.weights)

    def _keep(self, machines: list[Machine], data: LabelledData, rows: KernelRows, budget: Budget) -> None:
        """Set the fitted attributes."""
        kernel = rows.kernel
        self._pairwise = data.classes.size > 2 and self.multi_class == "ovo"
        layout = arrange(machines, data.index, data.classes.size, self._pairwise)
        if rows.origin is not None:
            layout = from_origin(layout, data.X[layout.support], rows.origin)
        self.classes_, self.class_weight_ = data.classes, self._class_factors(data)
        self.support_, self.n_support_, self.intercept_ = layout.support, layout.n_support, layout.intercept
        sparse = sp.issparse(data.X)
        self.dual_coef_ = sp.csr_matrix(layout.dual_coef) if sparse else layout.dual_coef
        given = isinstance(kernel, Precomputed)
        self.support_vectors_ = np.empty((0, 0)) if given else data.X[layout.support]
        self.kernel_, self.shape_fit_ = kernel, data.X.shape
        self.n_iter_ = np.array([machine.solution.iterations for machine in machines], dtype=np.int32)
        squares = [machine.solution.state.square for machine in machines]
        margins = [math.inf if square <= 0.0 else 1.0 / math.sqrt(square) for square in squares]
        self.margin_ = margins[0] if len(margins) == 1 else np.array(margins)
        self.solver_, self.history_ = "smo", budget.history
        self._certificate = certify_all(machines, float(self.tol))
        if kernel.form is not None and not sparse:
            remark = describe_spreads(data.X, column_names(self, data.X.shape[1]))
            self._certificate = replace(self._certificate, notes=(remark,) if remark else ())
        self.fit_status_ = int(not self._certificate.converged)
        if not self._certificate.converged and budget.stopped_by is None:
            budget.stopped_by = "lack of progress"  # no fit ends short of its tolerance without a word


def _quiet(budget: Budget) -> Budget:
    """Return a budget for what is left of the time, which Ctrl-C ends too, and that tells no one."""
    left = None if budget.time_limit is None else max(budget.seconds_left, 0.0)
    quiet = Budget(budget.tol, None, left)
    quiet.flag = budget.flag
    return quiet
