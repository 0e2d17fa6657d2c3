"""Nystroem's features: coordinates in the space that a few landmark rows span, in place of a kernel.

    phi(x) = L^-1 K(C, x),     L L' = K(C, C),        K(x, z) ~ phi(x).phi(z)

A linear model of phi is a kernel machine whose cost grows with the number of rows, not with its square.

Source: Williams and Seeger (2001), Using the Nystroem method to speed up kernel machines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from sixfold.budget import Budget
from sixfold.certificate import Certificate
from sixfold.data.checks import (
    check_rows,
    check_table,
    check_weight,
    column_names,
    require_computable,
    require_finite,
)
from sixfold.errors import CertificateError, InputError, StoppedEarly, check_number, check_option, warn
from sixfold.geometry.kernels import Kernel, Precomputed, make_kernel, require_gram
from sixfold.geometry.kernels.pairwise import PAIRWISE, Pairwise
from sixfold.learners.base import IterativeLearner
from sixfold.solvers.kernel.kernel_rows import KernelRows, densify_if_small
from sixfold.solvers.kernel.landmarks import (
    LEAST_PIVOT,
    SELECTIONS,
    Landmarks,
    certify_trace,
    features_in_place,
    find_landmarks,
)
from sixfold.verify.landmarks import TraceClaims, recompute_trace
from sixfold.verify.recomputed import Recomputed

Array = NDArray[Any]

OWN = ("linear", "poly", "polynomial", "quadratic", "rbf", "sigmoid")  # that native loops know


class Rows(NamedTuple):
    """The checked rows of a fit."""

    X: Any
    weight: Array | None


@dataclass(frozen=True)
class LandmarkProblem:
    """The rows as solvers read them, and how many landmarks are wanted."""

    rows: KernelRows
    rank: int


class Nystroem(ClassNamePrefixFeaturesOutMixin, TransformerMixin, IterativeLearner):
    """Replace rows by their coordinates in the space of a few landmarks, whose dot products are a kernel.

    Same parameters and attributes as scikit-learn's class. Landmarks are chosen so that their space holds
    more of the kernel than that of random rows, ``tol`` says how many are enough, and the certificate
    how much of the kernel's trace on the training rows the space leaves out.

    Parameters
    ----------
    kernel : str, callable or Kernel, default="rbf"
        "linear", "poly" or "polynomial", "quadratic" ((x.z)^2), "rbf", "sigmoid", "cosine", "laplacian",
        "chi2", "additive_chi2", "precomputed" (X is the matrix of kernel values), a function of two rows, or
        one of :mod:`sixfold.geometry.kernels`.
    gamma : float, "scale" or "auto", default=None
        Of "rbf", "poly", "sigmoid", "laplacian" and "chi2"; None is 1 / columns (1 for "chi2"), "scale" is
        1 / (columns * variance of all numbers in X).
    coef0 : float, default=None
        The constant in "poly" and "sigmoid"; None is 1.
    degree : int, default=None
        Of "poly"; None is 3.
    kernel_params : dict, default=None
        Further arguments of a function.
    n_components : int, default=100
        How many landmarks; with ``tol`` the most.
    random_state : int, RandomState or None, default=None
        The seed of the choice; None is 0.
    n_jobs : int, default=None
        Threads for the native loops; None or -1 for all.
    selection : {"pivoted_cholesky", "kmeans++", "uniform"}, default="pivoted_cholesky"
        How landmarks are chosen: rows of which the space so far leaves most, rows far from all landmarks, or
        any rows, those that scikit-learn draws.
    tol : float, default=None
        The share of the trace that may be left out: no more landmarks than needed are taken.
    time_limit : float, default=None
        Most seconds for the choice; what was found so far is kept, with a :class:`StoppedEarly` warning. What
        the landmarks leave out of all rows is computed in any case.
    callbacks : sequence of callables, default=None
        Called with a record (iteration, seconds, objective, gap) after every block of landmarks; True stops
        the choice.
    verbose : bool, default=False
        Whether to print progress.

    Attributes
    ----------
    components_ : ndarray or CSR array of shape (n_components, n_features)
        The landmarks, in the order in which they were chosen; empty for kernel="precomputed".
    component_indices_ : ndarray of shape (n_components,)
        Their training rows.
    normalization_ : ndarray of shape (n_components, n_components)
        L^-1: features are K(x, components_) times its transpose. In float64 where float32 would not hold
        kernel values.
    kernel_ : Kernel
        The kernel with the parameters that were used.
    certificate_ : Certificate
        The share of the kernel's trace that the features leave out, on the training rows, where it counts
        with their weights; ``certificate_.verify(X)`` computes it again.
    history_ : list of Record
        One a block of landmarks; the objective is the share left out so far.
    n_iter_ : int
        How many blocks that took.

    Examples
    --------
    >>> from sixfold import LinearSVC, Nystroem
    >>> from sixfold.data.examples import load_example
    >>> from sklearn.pipeline import make_pipeline
    >>> iris = load_example("iris")
    >>> model = make_pipeline(Nystroem(gamma=0.5, n_components=30, random_state=0), LinearSVC())
    >>> model.fit(iris.X, iris.y).score(iris.X, iris.y) > 0.95
    True
    """

    _step = "block"

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma: Any = None,
        coef0: float | None = None,
        degree: float | None = None,
        kernel_params: dict[str, Any] | None = None,
        n_components: int = 100,
        random_state: Any = None,
        n_jobs: int | None = None,
        selection: str = "pivoted_cholesky",
        tol: float | None = None,
        time_limit: float | None = None,
        callbacks: Any = None,
        verbose: Any = False,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.kernel_params = kernel_params
        self.n_components = n_components
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.selection = selection
        self.tol = tol
        self.time_limit = time_limit
        self.callbacks = callbacks
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose the landmarks.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            The rows; for kernel="precomputed" the kernel values of all rows with each other.
        y : object, default=None
            Not looked at.
        sample_weight : array of shape (n_samples,), default=None
            How much each row counts, in the choice and in the trace.

        Returns
        -------
        Nystroem
            The fitted transformer itself.
        """
        self._fit(X, sample_weight, False)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Choose the landmarks, and return the features of the same rows, which the choice has computed.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            As in :meth:`fit`.
        y : object, default=None
            Not looked at.
        sample_weight : array of shape (n_samples,), default=None
            As in :meth:`fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        return self._fit(X, sample_weight, True)

    def _fit(self, X: Any, sample_weight: Any, wanted: bool) -> Array | None:
        """Fit, and return the features of the rows if they are wanted."""
        made: list[Landmarks] = []

        def solve(problem: LandmarkProblem, data: Rows, budget: Budget) -> Landmarks:
            made.append(self._choose(problem, data, budget, wanted))
            return made[0]

        self._run_fit(X, None, sample_weight, solve=solve)
        return made[0].features if wanted else None

    def _check_parameters(self) -> None:
        check_number("n_components", self.n_components, at_least=1, whole=True)
        check_option("selection", self.selection, SELECTIONS)
        check_number("tol", self.tol, at_least=0, optional=True, finite=True)
        for name in ("coef0", "degree"):
            check_number(name, getattr(self, name), optional=True, finite=True)
        if not (self.kernel_params is None or isinstance(self.kernel_params, dict)):
            raise InputError(
                f"kernel_params={self.kernel_params!r:.50} is of type {type(self.kernel_params).__name__}. "
                "Pass a dictionary of arguments, or None."
            )
        named = isinstance(self.kernel, str) and self.kernel != "precomputed"
        if named:
            check_option("kernel", self.kernel, (*OWN, *PAIRWISE, "precomputed"), "a kernel or a function")
        elif any(value is not None for value in (self.gamma, self.coef0, self.degree)):
            raise InputError(
                "Don't pass gamma, coef0 or degree to Nystroem if using a callable or precomputed kernel: "
                "they belong to kernels by name. Use kernel_params for the arguments of a function."
            )

    def _check(self, X: Any, y: Any, sample_weight: Any, reset: bool = True) -> Rows:
        X = check_table(self, X, reset)
        if self._takes_values():
            require_finite(X, "X", lambda: column_names(self, X.shape[1]))
            require_gram(X)
        else:
            require_computable(X, "X", lambda: column_names(self, X.shape[1]))
        return Rows(X, check_weight(sample_weight, X.shape[0]))

    def _state_problem(self, data: Rows) -> LandmarkProblem:
        count = data.X.shape[0]
        if self.n_components > count:
            warn(
                f"n_components > n_samples. This is not possible.\nn_components={self.n_components} was set "
                f"to n_samples={count}: every row is a landmark, as in the full kernel.",
                UserWarning,
            )
        return LandmarkProblem(self._rows(data.X, self._make_kernel(data.X)), min(self.n_components, count))

    def _make_kernel(self, X: Any) -> Kernel:
        """Return the kernel that the parameters state, for these rows."""
        if self._takes_values():
            return Precomputed()
        if isinstance(self.kernel, Kernel):
            return make_kernel(self.kernel, X)
        params = dict(self.kernel_params or {})
        own = isinstance(self.kernel, str) and self.kernel in OWN
        whole = self.degree is None or float(self.degree).is_integer()
        if not own or not whole or params:
            gamma = self.gamma
            if isinstance(gamma, str):
                gamma = make_kernel("rbf", X, gamma=gamma).form.gamma  # type: ignore[union-attr]
            given = {"gamma": gamma, "coef0": self.coef0, "degree": self.degree}
            params |= {name: value for name, value in given.items() if value is not None}
            return make_kernel(Pairwise(self.kernel, tuple(sorted(params.items()))), X)
        return make_kernel(
            self.kernel,
            X,
            gamma="auto" if self.gamma is None else self.gamma,
            degree=3 if self.degree is None else int(self.degree),
            coef0=1.0 if self.coef0 is None else float(self.coef0),
        )

    def _rows(self, X: Any, kernel: Kernel) -> KernelRows:
        read = X if kernel.form is None else densify_if_small(X)
        if kernel.form is not None:
            kernel.diagonal(read)  # refuses values beyond float64, which native loops would go on with
        return KernelRows(read, kernel)

    def _limits(self) -> tuple[float, int | None]:
        return 0.0 if self.tol is None else self.tol, None

    def _choose(self, problem: LandmarkProblem, data: Rows, budget: Budget, wanted: bool) -> Landmarks:
        random = check_random_state(0 if self.random_state is None else self.random_state)
        rows = problem.rows
        dtype = rows.dtype
        if dtype == np.float32:
            # What kernel values are off by has to be less than what a landmark may have left.
            allowed = LEAST_PIVOT[dtype] * float(rows.diagonal().max())
            dtype = np.dtype(np.float32 if rows.entry_error(np.float32) <= allowed else np.float64)
        found = find_landmarks(rows, problem.rank, self.selection, random, dtype, budget, data.weight, wanted)
        if wanted and found.features is not None:
            found.features = found.features.astype(rows.dtype, copy=False)
        return found

    def _solve(self, problem: LandmarkProblem, data: Rows, budget: Budget) -> Landmarks:
        return self._choose(problem, data, budget, False)

    def _set_fitted(self, solution: Landmarks, data: Rows, budget: Budget) -> None:
        kernel = self._make_kernel(data.X)
        given = isinstance(kernel, Precomputed)
        self.kernel_, self.component_indices_ = kernel, solution.chosen
        self.components_ = np.empty((0, 0), data.X.dtype) if given else data.X[solution.chosen]
        self.normalization_ = solution.inverse.astype(solution.dtype)
        self.history_, self.n_iter_ = budget.history, len(budget.history)
        self._certificate = certify_trace(solution, self.tol)

    def _warn(self, solution: Landmarks, data: Rows, budget: Budget) -> None:
        if budget.interrupted:
            budget.conclude(self.certificate_)
        wanted, found = min(self.n_components, data.X.shape[0]), solution.chosen.size
        reason = budget.stopped_by
        short = not self._certificate.converged
        if reason is None and self.tol is not None and short:
            reason = f"n_components={self.n_components}"
        if reason is not None and (short or (found < wanted and self.tol is None)):
            text = (
                f"Stopped by {reason} with {found} landmark{'s' * (found != 1)}; they were kept "
                f"({self.certificate_}). Allow more, or a larger tol, if that is not good enough."
            )
            warn(StoppedEarly(text, self.certificate_))

    # -- features ------------------------------------------------------------------------------------------

    def transform(self, X: Any) -> Any:
        """Return the features of rows.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            With kernel="precomputed", the kernel values with the training rows, of shape (n_samples,
            n_train).

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        rows = check_rows(self, X)
        values = isinstance(self.kernel_, Precomputed)
        dtype = np.result_type(rows.dtype, self.normalization_.dtype)
        places = self.component_indices_ if values else np.arange(self.component_indices_.size)
        if values:
            vectors, rows = rows[:0], rows.toarray() if sp.issparse(rows) else rows
        else:
            vectors = self.components_
            if self.kernel_.form is not None:
                vectors, rows = densify_if_small(vectors), densify_if_small(rows)
        out = np.empty((rows.shape[0], places.size), dtype)  # in the precision that kernel values need
        with Budget() as budget, self._threads(None):
            KernelRows(vectors, self.kernel_).against(rows).block(places, out, budget)
            features_in_place(out, self.normalization_, budget)
        if budget.interrupted:
            raise KeyboardInterrupt
        return out.astype(np.result_type(rows.dtype, self.components_.dtype), copy=False)

    @property
    def _n_features_out(self) -> int:
        return int(self.component_indices_.size)

    def _relative_to(self) -> str:
        return "the trace of the kernel on the training rows"

    def _verify(self, claimed: Certificate, X: Any, y: Any, sample_weight: Any) -> Certificate:
        return super()._verify(claimed, X, None, sample_weight)  # a pipeline may pass a y, as to fit

    def _recompute(self, claimed: Certificate, X: Any, y: Any, sample_weight: Any) -> Recomputed:
        data = self._check(X, y, sample_weight, reset=False)
        largest = int(self.component_indices_.max(initial=-1))
        if largest >= data.X.shape[0]:
            raise CertificateError(
                f"Row {largest} is a landmark, but X has {data.X.shape[0]} rows: the data are not those of "
                "the fit."
            )
        vectors, rows = self.components_, data.X
        if self.kernel_.form is not None:  # dense rows are moved to their mean, where rounding is least
            vectors, rows = densify_if_small(vectors), densify_if_small(rows)
        claims = TraceClaims(
            vectors,
            self.component_indices_,
            self.kernel_,
            rows,
            np.ones(data.X.shape[0]) if data.weight is None else data.weight,
        )
        return recompute_trace(claims, self.normalization_, claimed)

    def _takes_values(self) -> bool:
        """Return whether X holds kernel values in place of rows."""
        return (isinstance(self.kernel, str) and self.kernel == "precomputed") or isinstance(
            self.kernel, Precomputed
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise, tags.input_tags.sparse = self._takes_values(), not self._takes_values()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
