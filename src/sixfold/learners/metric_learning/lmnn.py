"""Large margin nearest neighbours: a distance in which rows of other classes stay outside, by a margin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.budget import Budget, Record
from sixfold.certificate import Certificate
from sixfold.data.labels import LabelledData
from sixfold.errors import InputError, StoppedEarly, check_number, warn
from sixfold.learners.metric_learning.model import LearnedMap
from sixfold.solvers.metric_learning import lmnn
from sixfold.solvers.metric_learning.triplets import TripletProblem, state_problem
from sixfold.solvers.threads import thread_limit
from sixfold.verify import triplets as checker
from sixfold.verify.recomputed import Recomputed

Array = NDArray[Any]


@dataclass(frozen=True)
class _Stated:
    """The problem, and the map to begin with in its columns."""

    problem: TripletProblem
    start: Array


class LargeMarginNearestNeighbor(LearnedMap):
    r"""Learn a linear map after which near rows are of the same class, and others farther by a margin.

    The targets of row i are the ``n_neighbors`` nearest rows of its class, by Euclidean distance between the
    rows as they are given. They are pulled nearer, and rows of other classes are pushed out of the
    neighbourhood: with :math:`d_{ij}^2 = |L x_i - L x_j|^2 = (x_i - x_j)' M (x_i - x_j)`,

    .. math::

        \min_{M \succeq 0} \;\; \rho \sum_{i,\,j} q_i d_{ij}^2
        + (1 - \rho) \sum_{i,\,j,\,l} q_i \max(0, 1 + d_{ij}^2 - d_{il}^2)
        + \lambda \sum_c v_c M_{cc}

    over all targets j of i and all rows l of other classes. The weights q, which are those of rows i, add up
    to 1 over all pairs of a row and a target, so that the objective is a mean over these; the trace of M is
    taken in columns of variance 1 (v are the variances), and lambda is ``trace_penalty`` times the mean
    square difference of targets in such a column. All rows may be multiplied by any number without changing
    anything but the units of the map. Rows of weight 0 are left out: they are neither targets nor impostors.

    The problem is convex in M. The multipliers of the triplets give a lower bound on its minimum, and the
    certificate says how far the objective is above it; with ``n_components`` the bound is that of maps of any
    rank, and the gap tells what the lower rank may cost. ``verify(X, y)`` goes through all triplets.

    Parameters
    ----------
    n_neighbors : int, default=3
        How many targets a row has; those of a class with fewer rows have all the others.
    n_components : int, default=None
        How many columns the rows have after the map; None keeps as many as there are.
    init : {"auto", "pca", "lda", "identity", "random", "whitening"} or array, default="auto"
        The map to begin with, an array of shape (n_components, n_features) or a name. "auto" is "lda" where
        there are more classes than components, else "pca" where there are fewer components than columns, else
        "identity". Without ``n_components`` it does not change what is found, but how soon.
    warm_start : bool, default=False
        Whether a fit begins where the last one ended.
    regularization : float, default=0.5
        How much pulling counts beside pushing: rho above, between 0 and 1, as in metric-learn.
    trace_penalty : float, default=1e-5
        The size of lambda; it decides where pairs of rows leave a direction open.
    max_iter : int, default=1000
        Most steps of L-BFGS.
    tol : float, default=1e-4
        Stop when the certified gap is below ``tol`` times the objective.
    verbose : int, default=0
        Whether to print progress: the first and the last iteration, and one in half a second between.
    random_state : int, RandomState or None, default=None
        The seed of init="random".
    n_jobs : int, default=None
        Threads for the native loops; None or -1 for all.
    time_limit : float, default=None
        Most seconds; the best map so far is kept, with a :class:`StoppedEarly` warning.
    callbacks : sequence of callables, default=None
        Called with a record (iteration, seconds, objective, gap) after every iteration; True stops the fit.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The map L. The rows after it are uncorrelated, the most spread column first.
    classes_ : ndarray of shape (n_classes,)
    targets_ : ndarray of shape (n_samples, n_neighbors)
        The numbers of the targets of each row; -1 where there are not so many, or the row has weight 0. There
        are fewer columns where no class has so many rows.
    triplets_ : ndarray of shape (n_triplets, 3)
        Row, target and impostor of each triplet with a multiplier.
    dual_ : ndarray of shape (n_triplets,)
        The multipliers, from 0 to (1 - rho) q of the row: the proof of the lower bound.
    certificate_ : Certificate
        How far from the least possible objective the fit is at most; ``certificate_.verify(X, y)`` recomputes
        it.
    n_iter_, history_
        How many steps there were, and one record for each. The gap is that of the last look, every ten steps.

    See Also
    --------
    sixfold.distances.Learned : the distance of the map, for nearest neighbours.

    References
    ----------
    Weinberger and Saul (2009), Distance metric learning for large margin nearest neighbor classification,
    Journal of Machine Learning Research 10.

    Examples
    --------
    >>> import numpy as np
    >>> from sixfold import LargeMarginNearestNeighbor
    >>> X = np.array([[0.0, 0.0], [1.0, 9.0], [0.0, 8.0], [4.0, 1.0], [5.0, 9.0], [4.0, 8.0]])
    >>> model = LargeMarginNearestNeighbor(n_neighbors=2).fit(X, ["a", "a", "a", "b", "b", "b"])
    >>> M = model.get_mahalanobis_matrix()
    >>> bool(M[0, 0] > 10 * M[1, 1]), model.certificate_.relative_gap < 1e-4
    (True, True)
    """

    _step = "step"

    def __init__(
        self,
        n_neighbors: int = 3,
        *,
        n_components: int | None = None,
        init: Any = "auto",
        warm_start: bool = False,
        regularization: float = 0.5,
        trace_penalty: float = 1e-5,
        max_iter: int = 1000,
        tol: float = 1e-4,
        verbose: int = 0,
        random_state: Any = None,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        callbacks: Sequence[Callable[[Record], Any]] | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.n_components = n_components
        self.init = init
        self.warm_start = warm_start
        self.regularization = regularization
        self.trace_penalty = trace_penalty
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.callbacks = callbacks

    # -- the steps of a fit ------------------------------------------------------------------------------

    def _limits(self) -> tuple[float, int | None]:
        return self.tol, self.max_iter

    def _threads(self, data: LabelledData) -> AbstractContextManager[None]:
        return thread_limit(self.n_jobs, values=data.X.size)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("n_neighbors", self.n_neighbors, at_least=1, whole=True)
        check_number("trace_penalty", self.trace_penalty, above=0, finite=True)
        check_number("regularization", self.regularization, above=0)
        if not self.regularization < 1:
            raise InputError(
                f"regularization={self.regularization!r} is out of range: it is the share of pulling, which "
                "leaves something to pushing only below 1."
            )

    def _check(self, X: Any, y: Any, sample_weight: Any, reset: bool = True) -> LabelledData:
        if sp.issparse(X):
            raise InputError("X is sparse, and distances are learnt of dense rows. Pass X.toarray().")
        return super()._check(X, y, sample_weight, reset)

    def _state_problem(self, data: LabelledData) -> LabelledData:
        counts = self._rows_of_classes(data)
        if (counts == 1).any():
            label = int(np.flatnonzero(counts == 1)[0])
            counts_too = True if data.weight is None else data.weight > 0
            row = int(np.flatnonzero((data.index == label) & counts_too)[0])
            raise InputError(
                f"Class {data.classes.tolist()[label]!r} has one row only (number {row}, counted from 0), "
                "which has no row of its class to be near to. Add rows of this class, or leave it out."
            )
        return data

    def _rows_of_classes(self, data: LabelledData) -> Array:
        """Return how many rows with a weight each class has."""
        index = data.index if data.weight is None else data.index[data.weight > 0]
        return np.bincount(index, minlength=data.classes.size)

    def _solve(
        self, stated: Any, data: LabelledData, budget: Budget
    ) -> tuple[TripletProblem, lmnn.LMNNSolution]:
        start = self._start(data)
        problem = state_problem(
            data.X,
            data.index,
            data.weight,
            int(self.n_neighbors),
            float(self.regularization),
            float(self.trace_penalty),
            budget,
        )
        return problem, lmnn.minimise(problem, start * problem.unit, budget)

    def _set_fitted(
        self, solution: tuple[TripletProblem, lmnn.LMNNSolution], data: LabelledData, budget: Budget
    ) -> None:
        problem, found = solution
        with np.errstate(over="ignore", invalid="ignore"):
            self.components_ = np.ascontiguousarray(found.L / problem.unit, dtype=data.X.dtype)
        if not np.isfinite(self.components_).all():
            raise InputError(
                f"The differences of rows are so small that the map is no {data.X.dtype} any more. Multiply "
                "the columns by a power of ten first."
            )
        self.classes_ = data.classes
        self.targets_ = np.full((data.X.shape[0], problem.targets.shape[1]), -1)
        self.targets_[problem.numbers] = np.where(
            problem.targets >= 0, problem.numbers[np.maximum(problem.targets, 0)], -1
        )
        self.triplets_ = problem.numbers[found.triplets]
        self.dual_ = found.multipliers
        self.n_iter_ = len(budget.history)
        self.history_ = budget.history
        measured = lmnn.measure(problem, self.components_ * problem.unit)
        self._certificate = self._describe_gap(measured, found, problem, data)

    def _describe_gap(
        self, measured: lmnn.Measured, found: lmnn.LMNNSolution, problem: TripletProblem, data: LabelledData
    ) -> Certificate:
        objective = measured.objective
        gap = max(objective - found.bound, 0.0)
        low_rank = self.components_.shape[0] < min(problem.rows.shape)
        relative = gap / objective if objective > 0 else 0.0
        claim = (
            f"a map of {self.components_.shape[0]} rows, from which small steps lead no further down; within "
            f"{relative:.1g} of the best map of any rank"
        )
        details = {
            "pull": measured.pull,
            "push": measured.push,
            "trace": measured.trace,
            "multipliers": int(found.multipliers.size),
        }
        return Certificate(
            "duality gap",
            objective,
            gap,
            objective,
            0.0 if low_rank else float(self.tol),
            details,
            claim if low_rank else "",
            tuple(self._notes(data)),
            rounding=measured.rounding,
        )

    def _notes(self, data: LabelledData) -> list[str]:
        """Return what has to be known of small classes."""
        counts = self._rows_of_classes(data)
        small = np.flatnonzero((counts > 0) & (counts <= self.n_neighbors))
        if not small.size:
            return []
        named = ", ".join(f"{data.classes.tolist()[c]!r} ({counts[c]} rows)" for c in small[:5])
        more = f" and {small.size - 5} more" if small.size > 5 else ""
        return [f"fewer than n_neighbors={self.n_neighbors} targets in the classes {named}{more}"]

    def _warn(self, solution: Any, data: LabelledData, budget: Budget) -> None:
        super()._warn(solution, data, budget)
        certificate = self.certificate_
        if budget.stopped_by is None and not certificate.converged and certificate.tolerance > 0:
            text = f"After {self.n_iter_} steps none leads further down ({certificate})."
            warn(StoppedEarly(f"{text} Ask for a larger tol if that is good enough.", certificate))

    # -- the certificate ---------------------------------------------------------------------------------

    def _relative_to(self) -> str:
        return "the objective itself"

    def _recompute(self, claimed: Certificate, X: Any, y: Any, sample_weight: Any) -> Recomputed:
        data = self._check(X, y, sample_weight, reset=False)
        claim = checker.TripletClaim(
            data.X,
            data.index,
            np.ones(data.X.shape[0]) if data.weight is None else data.weight,
            self.components_,
            self.targets_,
            self.triplets_,
            self.dual_,
            int(self.n_neighbors),
            float(self.regularization),
            float(self.trace_penalty),
        )
        return checker.recompute(claim, claimed)
